"""Parts of a mechanism whose motion is asked for: a body, a point of a body, or joint speeds; in declared units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loopdyn.analysis.assembly_speeds import speed_rows
from loopdyn.errors import LoopdynError
from loopdyn.loops.reactions import freedom_rate
from loopdyn.quantities.wording import unknown as unknown_names
from loopdyn.system.system import State, System, point_on
from loopdyn.tree.functions import Motion, body_motion, open_tree_body_jacobian

Array = NDArray[np.float64]

TWIST = ("wx", "wy", "wz", "vx", "vy", "vz")
XYZ = ("x", "y", "z")


def declared(system: System, dimensions: Sequence[str]) -> Array:
    """SI value of the declared unit of each dimension; those of rates are the same, time is in s."""
    return np.array([system.units.factor(d) for d in dimensions])


def declared_point(system: System, body: str, at: Any) -> Array:
    """Point in the frame of a body, from world coordinates at the reference pose in declared units."""
    return point_on(system, body, at)


def unknown(what: str, name: object, known: Sequence[str]) -> LoopdynError:
    """Error for a name that does not exist, with the nearest known one."""
    return unknown_names("", what, [str(name)], known)


def speed_labels(system: System, labels: str | Sequence[str], what: str = "joint speed") -> tuple[str, ...]:
    """Labels of speeds of tree or cut joints, checked."""
    given = (labels,) if isinstance(labels, str) else tuple(labels)
    for label in given:
        if label not in system.labels.speeds:
            raise unknown(what, label, list(system.labels.speeds))
    if len(set(given)) < len(given):
        raise LoopdynError(f"a {what} is named twice: {', '.join(given)}. Name each once.")
    return given


def speed_dimensions(system: System, labels: Sequence[str]) -> tuple[str, ...]:
    """Dimension, "angle" or "length", of each speed times s."""
    return tuple(system.labels.speeds[label].dimension for label in labels)


@dataclass(frozen=True, eq=False)
class MovingPart:
    """Body (six components, angular first), point of a body (three), or joint speeds (one each).

    Attributes
    ----------
    name : str
        For messages.
    components, dimensions : tuple of str
        Names of the components, and "angle" or "length" of each.
    body : int
        Row of the body; -1 for joint speeds.
    own : (3,) array
        Point in the frame of the body.
    """

    name: str
    components: tuple[str, ...]
    dimensions: tuple[str, ...]
    body: int = -1
    own: Array | None = None

    def rows(self, system: System, state: State) -> Array:
        """Derivatives (components, nv) by the speeds of the tree, SI."""
        if self.own is None:
            return speed_rows(system, state, self.components)
        motion = body_motion(system, State(state.t, state.q, np.zeros(system.nv)))
        J = open_tree_body_jacobian(system, system.bodies[self.body], state)
        J[3:] -= np.cross(motion.rotation[self.body] @ self.own, J[:3].T).T  # v + w x arm
        return J[-len(self.components) :]

    def velocity(self, system: System, state: State) -> Array:
        """Velocity at a state, SI; bases move as they are prescribed to."""
        if self.own is None:
            return joint_speeds(system, state, self.components)
        motion = body_motion(system, state)
        arm, w = motion.rotation[self.body] @ self.own, motion.angular_velocity[self.body]
        twist = np.concatenate([w, motion.velocity[self.body] + np.cross(w, arm)])
        return twist[-len(self.components) :]

    def position(self, motion: Motion) -> Array:
        """World position of the point, or of the origin of the body's frame."""
        if self.own is None:
            raise LoopdynError(f"'{self.name}' has no position. Name a body, or a body and a point.")
        result: Array = motion.position[self.body] + motion.rotation[self.body] @ self.own
        return result


def joint_speeds(system: System, state: State, labels: Sequence[str]) -> Array:
    """Speeds of tree and cut joints at a state, SI."""
    motion, found = body_motion(system, state), []
    for label in labels:
        of = system.labels.speeds[label]
        found.append(state.v[of.place] if of.place >= 0 else freedom_rate(system, state, motion, of.joint, of.k)[1])
    return np.array(found, float)


def part_of(system: System, what: Any, point: Any = None) -> MovingPart:
    """Part named by a body, a pair of body and point, a joint speed, or several joint speeds."""
    if isinstance(what, tuple) and len(what) == 2 and isinstance(what[0], str) and not isinstance(what[1], str):
        what, point = what
    if point is not None:
        if what not in system.bodies:
            raise unknown("body", what, system.bodies)
        row, own = system.bodies.index(what), declared_point(system, what, point)
        return MovingPart(f"the point of '{what}'", XYZ, ("length",) * 3, row, own)
    speeds = system.labels.speeds
    if isinstance(what, str) and what in system.bodies:
        if what in speeds:
            raise LoopdynError(f"'{what}' is a body and a joint. Write ['{what}'] for the joint, or rename one.")
        return MovingPart(f"'{what}'", TWIST, ("angle",) * 3 + ("length",) * 3, system.bodies.index(what), np.zeros(3))
    if isinstance(what, str) and what not in speeds:
        raise unknown("body or joint", what, [*system.bodies, *speeds])
    if not isinstance(what, str) and not (isinstance(what, Sequence) and what):
        raise LoopdynError(f"{what!r} names nothing that moves. Give a body, (body, point), or labels of joints.")
    labels = speed_labels(system, what)
    return MovingPart(", ".join(labels), labels, speed_dimensions(system, labels))
