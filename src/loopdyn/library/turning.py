"""Mechanism in another orientation."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from loopdyn.errors import ModelError, Problem
from loopdyn.forces import Table
from loopdyn.joints import Frame, Rotation
from loopdyn.library._common import vec3
from loopdyn.model.mechanism import GROUND, Body, Mechanism
from loopdyn.quantities.expressions import resolve_parameters
from loopdyn.quantities.units import Resolver, Units
from loopdyn.spatial.rotations import from_matrix, to_matrix

Array = NDArray[np.float64]

GENERIC = (0.76, 0.31, -0.47, 0.33)  # quaternion, no axis or angle in particular


def turned(mechanism: Mechanism, rotation: ArrayLike = GENERIC) -> Mechanism:
    """Mechanism with its gravity, rotated about the origin.

    In a generic orientation no component is zero by chance, which would make a test or a benchmark easier. Joint
    coordinates keep their meaning, and `start`, motors and limits with them: ball, free and translational joints,
    whose axes would be the world's, get turned frames. So do the bodies. Formulas are replaced by their values
    where a vector had to be turned.

    Parameters
    ----------
    mechanism : Mechanism
        It is not changed.
    rotation : (4,) or (3, 3)
        Quaternion (w, x, y, z) or rotation matrix; by default a generic one.

    Raises
    ------
    ModelError
        For base motion, constraints, drivers and named points, and for an applied force given by tables.

    Examples
    --------
    >>> from loopdyn.library import pendulum
    >>> turned(pendulum(), (1, 0, 0, 1)).joints["A"].axis
    (0.0, 0.0, 1.0)
    """
    given = np.asarray(rotation, float)
    Q = given if given.shape == (3, 3) else to_matrix(given)
    for section in ("base", "constraints", "drivers", "points"):
        if getattr(mechanism, section):
            raise ModelError([Problem(section, f"a mechanism with '{section}' cannot be turned", "Remove them first.")])
    turn = _Turn(mechanism, Q)
    other = mechanism.model_copy(deep=True)
    other._source = None  # no longer what a file says
    other.gravity = turn.vector(mechanism.gravity)
    other.bodies = {name: turn.body(name, body) for name, body in mechanism.bodies.items()}
    other.joints = {name: turn.joint(joint) for name, joint in mechanism.joints.items()}
    other.forces = {name: turn.force(name, force) for name, force in mechanism.forces.items()}
    return other


def _rotation(R: Array) -> Rotation:
    w, x, y, z = from_matrix(R).tolist()
    return Rotation(quaternion=(w, x, y, z))


class _Turn:
    """One rotation applied to the parts of one mechanism."""

    def __init__(self, mechanism: Mechanism, Q: Array):
        self.mechanism, self.Q = mechanism, Q
        # plain values in the units of the model; only angles are converted, for rotation matrices
        self.values = Resolver(resolve_parameters(mechanism.parameters), Units(angle=mechanism.units.angle))

    def number(self, value: float | str) -> float:
        return float(self.checked(self.values.scalar(value, "number", self.mechanism.name, ())))

    def checked(self, result: Any) -> Any:
        if self.values.problems:
            raise ModelError(self.mechanism.locate(self.values.problems))
        return result

    def vector(self, value: Any) -> Any:
        return vec3(self.Q @ [self.number(x) for x in value])

    def frame(self, frame: Frame | None) -> Frame:
        position, R = self.checked((frame or Frame()).resolve(self.values, self.mechanism.name, ()))
        return Frame(position=vec3(self.Q @ position), rotation=_rotation(self.Q @ R))

    def turned_frame(self, body: str, at: Any) -> Frame:
        """Frame on a turned body (or the ground) where the world's was, at a point, before everything was turned."""
        if body == GROUND:
            return self.frame(Frame(position=at))
        pose = self.mechanism.bodies[body].pose or Frame()
        position, R = self.checked(pose.resolve(self.values, body, ()))
        p = R.T @ (np.array([self.number(x) for x in at]) - position)
        return Frame(position=vec3(p), rotation=_rotation(R.T))

    def body(self, name: str, body: Body) -> Body:
        """Own frame turned; mass properties too, unless they are given in it."""
        pose = self.frame(body.pose)
        if body.axes == "body":
            return body.model_copy(update={"pose": pose})
        mass, com, inertia = self.checked(body.resolve(self.values, f"body '{name}'", ()))
        matrix = self.Q @ inertia @ self.Q.T
        return Body(mass=mass, com=self.Q @ com, inertia=(matrix + matrix.T) / 2, pose=pose, frames=body.frames)

    def joint(self, joint: Any) -> Any:
        """A joint by its place has its axes in the world; one by frames has them in its frames."""
        changes: dict[str, Any] = {}
        if joint.at is None:
            if joint.parent == GROUND:
                changes["parent_frame"] = self.frame(joint.parent_frame)
            if joint.child == GROUND:
                changes["child_frame"] = self.frame(joint.child_frame)
            return joint.model_copy(update=changes)
        A, par = self.checked(joint.axes(self.values, self.mechanism.name, ()))
        directions = joint.axes_in_frame(par)
        if joint.coordinates and not (directions and joint.is_scalar()):  # coordinates along the axes of the placement
            frames = {f"{end}_frame": self.turned_frame(getattr(joint, end), joint.at) for end in ("parent", "child")}
            return joint.model_copy(update={"at": None, **frames})
        changes = {key: vec3(self.Q @ A.T @ direction) for key, direction in directions.items()}
        return joint.model_copy(update=changes | {"at": self.vector(joint.at)})

    def force(self, name: str, force: Any) -> Any:
        changes: dict[str, Any] = {}
        for key in ("point1", "point2", "at"):
            if hasattr(force, key):
                changes[key] = self.vector(getattr(force, key))
        if hasattr(force, "rotation"):
            changes["rotation"] = self.frame(Frame(rotation=force.rotation)).rotation
        vectors = {key: getattr(force, key, None) for key in ("force", "torque")}  # a motor's law is one number
        changes |= {key: self.laws(name, laws) for key, laws in vectors.items() if isinstance(laws, tuple)}
        return force.model_copy(update=changes)

    def laws(self, name: str, laws: Any) -> Any:
        """Components that may be formulas of time: turned as formulas."""
        if any(isinstance(law, Table) for law in laws):
            message = "a table of the components of a force cannot be turned"
            raise ModelError([Problem(f"force '{name}'", message, "Use a formula.")])
        if all(not isinstance(law, str) for law in laws):
            return self.vector(laws)
        return tuple(
            " + ".join(f"({q!r})*({law})" for q, law in zip(row, laws, strict=True)) for row in self.Q.tolist()
        )
