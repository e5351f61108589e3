"""Compiled system for writers of other formats: bodies with their joints, frames of cut joints, loads in SI.

Poses are those of the tree at the reference coordinates, so that every tree joint is met exactly, however it was drawn.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from loopdyn.engine import records as rec
from loopdyn.errors import ExpressionError, Problem
from loopdyn.forces import Table
from loopdyn.interchange.draft import Pose, compose, inverse
from loopdyn.model.mechanism import Mechanism
from loopdyn.quantities.units import Resolver
from loopdyn.system.system import JointData, State, System
from loopdyn.tree.functions import body_motion, increment

Array = NDArray[np.float64]

# Points at which a formula is tested for being affine: beyond the three points that determine its coefficients.
PROBES = ((2.3, -1.7), (-5.1, 3.3), (0.01, 40.0))
AFFINE = 1e-9  # ... and how well it must agree there, relative to its values
STEP = 1e-5  # s: speeds of cut joints are differences of their coordinates over this time; error of the order STEP^2


@dataclass(frozen=True)
class Link:
    """Body of the tree: mass properties in its own frame, its pose, and its inboard joint."""

    name: str
    parent: str
    joint: JointData
    backwards: bool  # it is the declared parent of its joint
    mass: float
    com: Array
    inertia: Array
    pose: Pose  # in the world, at the reference coordinates


class Compiled:
    """Data of a mechanism for writers."""

    def __init__(self, mechanism: Mechanism, system: System):
        self.mechanism = mechanism
        self.system = system
        self.r: Resolver = mechanism.resolver()
        self.poses = self._poses(system.state())
        self.links = [self._link(i) for i in range(system.n_bases, len(system.bodies))]

    @cached_property
    def by_name(self) -> dict[str, Link]:
        """Bodies of the tree by name."""
        return {link.name: link for link in self.links}

    @property
    def cuts(self) -> list[JointData]:
        """Joints that close loops; a cut free joint does not."""
        return [j for j in self.system.joints.values() if not j.in_tree and j.spec.rows_when_cut]

    def _poses(self, state: State) -> dict[str, Pose]:
        motion = body_motion(self.system, state)
        return {name: (motion.position[k], motion.rotation[k]) for k, name in enumerate(motion.bodies)}

    def _link(self, i: int) -> Link:
        model = self.system.model
        data, name = model.body[i], self.system.bodies[i]
        joint = next(j for j in self.system.joints.values() if j.body == i)
        axes = data[rec.BODY_AXES : rec.BODY_AXES + 9].reshape(3, 3)
        inertia, com = axes.T @ self.system.inertias[i] @ axes, self.system.mass_centres[i]
        parent = self.system.bodies[int(model.tree[i, rec.PARENT])]
        backwards = joint.child != i
        return Link(name, parent, joint, backwards, float(data[rec.MASS]), com, inertia, self.poses[name])

    def ends(self, j: JointData) -> tuple[str, str]:
        """Declared parent and child."""
        return self.system.bodies[j.parent], self.system.bodies[j.child]

    def world_frames(self, j: JointData, poses: Mapping[str, Pose] | None = None) -> tuple[Pose, Pose]:
        """F and M of a joint in the world, at the reference coordinates or at given poses of the bodies."""
        at = self.poses if poses is None else poses
        parent, child = self.ends(j)
        return compose(at[parent], j.F), compose(at[child], j.M)

    def body_point(self, body: str, p: Array) -> Array:
        """World point at the declared reference pose, in the frame of a body."""
        x, R = self.system.reference_poses[self.system.bodies.index(body)]
        result: Array = R.T @ (p - x)
        return result

    def joint_motion(self, state: State) -> dict[str, tuple[Array, Array]]:
        """Coordinates and speeds of all joints with scalar coordinates at a state, of cut joints too."""
        found = {}
        moved = [
            self._poses(State(state.t, increment(self.system, state.q, h * state.v), state.v)) for h in (-STEP, STEP)
        ]
        now = self._poses(state)
        for j in self.system.joints.values():
            if len(j.spec.coordinates) != len(j.spec.speeds):
                continue
            if j.in_tree:
                n = len(j.spec.speeds)
                found[j.name] = state.q[j.q0 : j.q0 + n], state.v[j.v0 : j.v0 + n]
            else:
                before, q, after = (self._measured(j, poses) for poses in (moved[0], now, moved[1]))
                angle = np.array([d == "angle" for d in j.spec.dimensions], bool)
                change = after - before
                turns = np.where(angle, 2 * np.pi * np.round(change / (2 * np.pi)), 0.0)
                found[j.name] = q, (change - turns) / (2 * STEP)
        return found

    def _measured(self, j: JointData, poses: Mapping[str, Pose]) -> Array:
        (xF, EF), (xM, EM) = self.world_frames(j, poses)
        return j.spec.measure(EF.T @ EM, EF.T @ (xM - xF), j.par)

    def loaded(self) -> set[str]:
        """Joints whose coordinates are used by forces, relations, drivers or limits."""
        m = self.mechanism
        readers = (*m.forces.values(), *m.constraints.values(), *m.drivers.values())
        found = {j for reader in readers for j in reader.joints()}
        return found | {name for name, j in m.joints.items() if j.limits is not None}

    def affine(
        self, law: object, first: str, dimension: str, speed: str, out: str
    ) -> tuple[float, float, float] | None:
        """SI coefficients of a law c0 + c1*first + c2*speed; None if it is not of this form."""
        unit, unit_speed = self.r.units.factor(dimension), self.r.units.factor(speed)
        scale = self.r.units.factor(out)
        if isinstance(law, Table):
            return None
        if not isinstance(law, str):
            return float(law) * scale, 0.0, 0.0  # type: ignore[arg-type]
        formula = self.r.expression(law, "", ())
        if formula is None or "t" in formula.names:
            return None

        def at(x: float, v: float) -> float:
            return float(formula.evaluate({**self.r.parameters, first: x, "speed": v}))

        try:
            c0 = at(0.0, 0.0)
            c1, c2 = at(1.0, 0.0) - c0, at(0.0, 1.0) - c0
            fits = all(
                abs(at(x, v) - c0 - c1 * x - c2 * v) <= AFFINE * max(abs(c0), abs(c1 * x), abs(c2 * v), abs(at(x, v)))
                for x, v in PROBES
            )
        except ExpressionError:
            return None
        return (c0 * scale, c1 * scale / unit, c2 * scale / unit_speed) if fits else None


def not_held(kind: str, name: str, what: str, format_name: str) -> Problem:
    """Problem of an element that a format cannot describe."""
    hint = "Remove it first, or leave it out on purpose: leave_out=True (--leave-out)."
    return Problem(f"{kind} '{name}'", f"{what} cannot be said in {format_name}", hint)


def unwritable(m: Mechanism, format_name: str) -> list[Problem]:
    """Problems of Python functions, which no format of robots holds, and of a body that is called like the ground."""
    found = [not_held("force", n, "a Python function", format_name) for n in m.user_forces]
    found += [not_held("constraint", n, "a Python function", format_name) for n in m.user_constraints]
    if "world" in m.bodies:
        message = f"'world' is the name of the ground in {format_name}"
        found.append(Problem("body 'world'", message, "Give the body another name."))
    return found


def principal(inertia: Array) -> tuple[Array, Array]:
    """Principal moments, limited to those of a possible body, and axes as columns of a right-handed rotation."""
    moments, axes = np.linalg.eigh(0.5 * (inertia + inertia.T))
    if np.linalg.det(axes) < 0.0:
        axes[:, 0] *= -1.0
    moments = np.maximum(moments, 0.0)
    moments[2] = min(moments[2], (moments[0] + moments[1]) * (1.0 - 1e-15))  # rounding must not break the triangle
    return moments, axes


def relative(a: Pose, b: Pose) -> Pose:
    """Pose of B in A, both given in the world."""
    return compose(inverse(a), b)


def unique(wanted: str, taken: set[str]) -> str:
    """Reserve a new name that is not in use."""
    found = next(n for n in itertools.chain([wanted], (f"{wanted}_{k}" for k in itertools.count(2))) if n not in taken)
    taken.add(found)
    return found
