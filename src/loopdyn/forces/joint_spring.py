"""Spring-damper on a joint coordinate: linear or torsional."""

from __future__ import annotations

from typing import ClassVar, Literal

from loopdyn.engine.jit import inline
from loopdyn.engine.records import ON_FREEDOM
from loopdyn.forces.base import Force, Places, Record, check_not_negative
from loopdyn.quantities.units import Path, Resolver, Scalar

JOINT_SPRING = 2
STIFFNESS, DAMPING, REST = range(3)


class JointSpring(Force):
    """Spring and damper on a joint coordinate: torsional on an angle, linear on a slide.

    The load on the coordinate is ``-stiffness*(position - rest) - damping*speed``.

    Parameters
    ----------
    joint : str
        Label of the coordinate.
    stiffness, damping : number
        Torque per angle or force per length; for damping times second.
    rest : number
        Coordinate without load, in units of angle or length.

    Examples
    --------
    >>> JointSpring(joint="A", stiffness=5.0, rest=0.2).rest
    0.2
    """

    label: ClassVar[str] = "joint_spring"
    code: ClassVar[int] = JOINT_SPRING
    acts_on: ClassVar[int] = ON_FREEDOM
    stores_energy: ClassVar[bool] = True

    type: Literal["joint_spring"] = "joint_spring"
    joint: str
    stiffness: Scalar = 0.0
    damping: Scalar = 0.0
    rest: Scalar = 0.0

    def reads(self) -> tuple[str, ...]:
        """Its joint, unless it is only a damper."""
        return () if self.stiffness == 0.0 else (self.joint,)

    def preloaded(self) -> Literal["rest"]:
        """Its rest position."""
        return "rest"

    def resolve(self, r: Resolver, places: Places, element: str, path: Path) -> Record | None:
        """Freedom; stiffness, damping, rest position."""
        f = places.freedom(self.joint, element, (*path, "joint"))
        if f is None:
            return None
        turn = "angular_" if f.rotation else ""
        k = r.scalar(self.stiffness, turn + "stiffness", element, (*path, "stiffness"))
        c = r.scalar(self.damping, turn + "damping", element, (*path, "damping"))
        if f.dimension == "" and k != 0.0:
            hint = "Use a bushing, which is meant for several rotations at once."
            r.problem(element, f"'{self.joint}' has no single coordinate for a spring", hint, (*path, "joint"))
            return None
        rest = r.scalar(self.rest, f.dimension or "number", element, (*path, "rest"))
        check_not_negative(r, element, path, stiffness=k, damping=c)
        return Record(freedom=f, floats=[k, c, rest], torque=f.rotation)


@inline
def load(model, n, x, dx):
    k, c, rest = model.force_data[n, STIFFNESS], model.force_data[n, DAMPING], model.force_data[n, REST]
    return -k * (x - rest) - c * dx


@inline
def energy(model, n, x):
    wound = x - model.force_data[n, REST]
    return 0.5 * model.force_data[n, STIFFNESS] * wound * wound
