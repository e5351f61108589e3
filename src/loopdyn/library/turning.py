"""The same mechanism in another orientation."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from loopdyn.errors import ModelError, Problem
from loopdyn.expressions import resolve_parameters
from loopdyn.forces import Table
from loopdyn.joints import Frame, Rotation
from loopdyn.library._common import vec3
from loopdyn.model import GROUND, Body, Mechanism, Start
from loopdyn.quantities import Resolver, Units
from loopdyn.rotations import from_matrix, perpendicular_frame, to_matrix

Array = NDArray[np.float64]

GENERIC = (0.76, 0.31, -0.47, 0.33)  # quaternion, no axis or angle in particular

# Labels of coordinates and speeds that are components of a vector, in axes that are the world's at the reference pose.
VECTORS = (("x", "y", "z"), ("px", "py", "pz"), ("wx", "wy", "wz"), ("vx", "vy", "vz"))


def turned(mechanism: Mechanism, rotation: ArrayLike = GENERIC) -> Mechanism:
    """The same mechanism and its gravity, rigidly turned about the origin.

    In a generic orientation no component is zero by chance, so that a test or a benchmark is not flattered. Joint
    coordinates of the same state stay the same, and `start` with them, but for ball, free and translational
    joints, whose axes are the world's: their vectors in `start` are turned too. Formulas are replaced by their
    values where a vector had to be turned.

    Parameters
    ----------
    mechanism : Mechanism
        Is left as it is.
    rotation : (4,) or (3, 3)
        Quaternion (w, x, y, z) or rotation matrix; by default a generic one.

    Raises
    ------
    ModelError
        For base motion, constraints and drivers, for limits along world axes, and for tables of an applied force.

    Examples
    --------
    >>> from loopdyn.library import pendulum
    >>> turned(pendulum(), (1, 0, 0, 1)).joints["A"].axis
    (0.0, 0.0, 1.0)
    """
    given = np.asarray(rotation, float)
    Q = given if given.shape == (3, 3) else to_matrix(given)
    for section in ("base", "constraints", "drivers"):
        if getattr(mechanism, section):
            raise ModelError([Problem(section, f"a mechanism with '{section}' cannot be turned", "Remove them first.")])
    turn = _Turn(mechanism, Q)
    other = mechanism.model_copy(deep=True)
    other._source = None  # no longer what a file says
    other.gravity = turn.vector(mechanism.gravity)
    other.bodies = {name: turn.body(name, body) for name, body in mechanism.bodies.items()}
    other.joints = {name: turn.joint(name, joint) for name, joint in mechanism.joints.items()}
    other.forces = {name: turn.force(name, force) for name, force in mechanism.forces.items()}
    other.start = Start(q=turn.start(mechanism.start.q), v=turn.start(mechanism.start.v))
    return other


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
        w, x, y, z = from_matrix(self.Q @ R).tolist()
        return Frame(position=vec3(self.Q @ position), rotation=Rotation(quaternion=(w, x, y, z)))

    def body(self, name: str, body: Body) -> Body:
        """Own frame turned; mass properties too, unless they are given in it."""
        pose = self.frame(body.pose)
        if body.axes == "body":
            return body.model_copy(update={"pose": pose})
        mass, com, inertia = self.checked(body.resolve(self.values, f"body '{name}'", ()))
        matrix = self.Q @ inertia @ self.Q.T
        return Body(mass=mass, com=self.Q @ com, inertia=(matrix + matrix.T) / 2, pose=pose, frames=body.frames)

    def joint(self, name: str, joint: Any) -> Any:
        """A joint by its place has its axes in the world; one by frames has them in its frames."""
        changes: dict[str, Any] = {}
        if joint.at is None:
            if joint.parent == GROUND:
                changes["parent_frame"] = self.frame(joint.parent_frame)
            if joint.child == GROUND:
                changes["child_frame"] = self.frame(joint.child_frame)
            return joint.model_copy(update=changes)
        if joint.type in ("translational", "free") and joint.limits is not None:
            message = "limits along world axes cannot be turned"
            raise ModelError([Problem(f"joint '{name}'", message, "Place the joint by frames.")])
        if joint.type == "planar" and joint.x is None:
            normal = [self.number(x) for x in joint.normal]
            joint = joint.model_copy(update={"x": tuple(perpendicular_frame(normal)[0].tolist())})
        for key in ("at", "axis", "axis1", "axis2", "normal", "x"):
            if getattr(joint, key, None) is not None:
                changes[key] = self.vector(getattr(joint, key))
        return joint.model_copy(update=changes)

    def force(self, name: str, force: Any) -> Any:
        changes: dict[str, Any] = {}
        for key in ("point1", "point2", "at"):
            if hasattr(force, key):
                changes[key] = self.vector(getattr(force, key))
        if force.type == "bushing":
            changes["rotation"] = self.frame(Frame(rotation=force.rotation)).rotation
        if force.type == "applied":
            changes |= {key: self.laws(name, getattr(force, key)) for key in ("force", "torque")}
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

    def start(self, given: dict[str, Any]) -> dict[str, Any]:
        """Vectors in world axes turned, all else as it is."""
        result = dict(given)
        for name, joint in self.mechanism.joints.items():
            if joint.type not in ("spherical", "free", "translational"):
                continue
            for suffixes in VECTORS:
                labels = [f"{name}.{s}" for s in suffixes]
                if joint.at is not None and any(label in given for label in labels):
                    result |= dict(zip(labels, self.vector([given.get(label, 0.0) for label in labels]), strict=True))
        return result
