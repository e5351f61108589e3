"""Transmission angle at the output link of a planar mechanism."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from loopdyn.errors import LoopdynError, ModelError, Problem
from loopdyn.quantities.wording import nearest
from loopdyn.system.system import JointData, System
from loopdyn.tree.functions import Motion

Array = NDArray[np.float64]


def transmission_angles(system: System, motions: Sequence[Motion], output: str, at: str | None) -> Array:
    """Angles (n,) between the line of force and the path normal at the point where the coupler moves the output."""
    out, joint, other = _linkage(system, output, at)
    ground_is_parent = out.parent < system.n_bases
    link = out.child if ground_is_parent else out.parent
    found = []
    for m in motions:

        def place(j: JointData, m: Motion = m) -> Array:
            return np.asarray(m.position[j.child] + m.rotation[j.child] @ j.M[0])

        def axis(j: JointData, m: Motion = m) -> Array:
            return np.asarray((m.rotation[j.parent] @ j.F[1])[:, 2])

        normal = axis(out if out.spec.type == "revolute" else other)
        if joint.spec.type == "prismatic":
            point, line = place(other), np.cross(normal, axis(joint))
        else:
            point, line = place(joint), place(other) - place(joint)
        path = np.cross(axis(out), point - place(out)) if out.spec.type == "revolute" else axis(out)
        size = float(np.linalg.norm(line) * np.linalg.norm(path))
        if size == 0.0:
            raise LoopdynError(f"the transmission angle at '{output}' is not defined: joints of body "
                               f"'{system.bodies[link]}' coincide. Use drive.data['quality'].")  # fmt: skip
        found.append(np.arcsin(min(1.0, abs(float(line @ path)) / size)))
    return np.array(found)


def _linkage(system: System, output: str, at: str | None) -> tuple[JointData, JointData, JointData]:
    """Output joint, joint between output link and coupler, and other joint of the coupler."""
    use = "Use drive.data['quality'], which is defined for any mechanism."
    if output not in system.joints:
        raise ModelError(
            [Problem("transmission angle", f"there is no joint '{output}'", nearest(output, system.joints))]
        )
    out = system.joints[output]
    if out.spec.type not in ("revolute", "prismatic") or (out.parent < system.n_bases) == (out.child < system.n_bases):
        raise LoopdynError(
            f"'{output}' is not a revolute or prismatic joint on the ground: no transmission angle. {use}"
        )
    link = out.child if out.parent < system.n_bases else out.parent

    def joints_of(body: int, but: JointData) -> list[JointData]:
        return [j for j in system.joints.values() if j is not but and body in (j.parent, j.child)]

    choice = []
    for j in joints_of(link, out):
        coupler = j.child if j.parent == link else j.parent
        rest = joints_of(coupler, j)
        if coupler >= system.n_bases and len(rest) == 1 and rest[0].spec.type == "revolute":
            choice.append((j, rest[0]))
    if at is not None:
        choice = [pair for pair in choice if pair[0].name == at]
    if len(choice) != 1:
        names = ", ".join(pair[0].name for pair in choice)
        link_name = system.bodies[link]
        if choice:
            raise LoopdynError(
                f"body '{link_name}' is moved at {names}. Name one: transmission_angle('{output}', at=...)."
            )
        raise LoopdynError(
            f"no body with two joints, the other one revolute, moves '{link_name}'{f' at {at}' if at else ''}: "
            f"it has no transmission angle. {use}"
        )
    joint, other = choice[0]
    kinds = {out.spec.type, joint.spec.type, other.spec.type}
    axes = [system.reference_poses[j.child][1] @ j.M[1][:, 2] for j in (out, joint, other) if j.spec.type == "revolute"]
    parallel = all(np.linalg.norm(np.cross(axes[0], z)) < 1e-6 for z in axes)
    if not kinds <= {"revolute", "prismatic"} or not parallel:
        raise LoopdynError(f"the joints at '{output}' do not move in one plane: no transmission angle. {use}")
    return out, joint, other
