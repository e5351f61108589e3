"""Coordinates and speeds of joints, also of cut ones, read from a state."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from loopdyn.joints.dispatch import wrenches
from loopdyn.quantities.wording import unknown
from loopdyn.system.system import JointData, State, System
from loopdyn.tree.functions import Motion, body_motion, joint_coordinates

Array = NDArray[np.float64]


def coordinate(system: System, state: State, label: str, who: str = "state") -> float:
    """Value of a coordinate of a tree or cut joint, rad or m; full turns of a cut joint are included if known.

    Examples
    --------
    >>> import loopdyn as ld
    >>> system = ld.library.four_bar().compile()
    >>> round(coordinate(system, ld.assemble(system, {"A": 0.3}), "A"), 9)
    0.3
    """
    found = system.labels.coordinates.get(label)
    if found is None or (found.joint.in_tree and not found.scalar):
        raise unknown(who, "joint coordinate", [label], system.labels.scalars)
    j, k = found.joint, found.k
    if j.in_tree:
        return float(state.q[found.place])
    motion = body_motion(system, state)
    return system.with_turns(j, k, float(joint_coordinates(j, motion)[k]), state.q)


def measured(system: System, state: State, label: str) -> tuple[float, float]:
    """Coordinate and speed of a cut joint; NaN for the one that has no such label."""
    motion, labels = body_motion(system, state), system.labels
    x = rate = np.nan
    if label in labels.coordinates:
        j, k, *_ = labels.coordinates[label]
        x = system.with_turns(j, k, float(joint_coordinates(j, motion)[k]), state.q)
    if label in labels.speeds:
        j, k, *_ = labels.speeds[label]
        rate = joint_rate(motion, j, k)
    return x, rate


def ends(motion: Motion, j: JointData, k: int) -> Iterator[tuple[int, float, Array, Array]]:
    """Row of each body of a joint, its sign, and the unit wrench of freedom k about the origin of the body."""
    F, M, _, xM = j.frames(motion.position, motion.rotation)
    torque, force = np.split(wrenches(j.spec, F, M, j.par)[k], 2)
    for body, sign in ((j.child, 1.0), (j.parent, -1.0)):
        yield body, sign, torque + np.cross(xM - motion.position[body], force), force


def joint_rate(motion: Motion, j: JointData, k: int) -> float:
    """Speed k of a joint, which may be cut, from the motion of its bodies: the power of its unit wrench."""
    return sum(
        sign * float(moment @ motion.angular_velocity[body] + force @ motion.velocity[body])
        for body, sign, moment, force in ends(motion, j, k)
    )
