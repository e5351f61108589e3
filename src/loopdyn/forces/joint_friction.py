"""Friction in a joint coordinate: viscous, and Coulomb friction made smooth, independent of the bearing load."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np

from loopdyn.engine.jit import inline
from loopdyn.engine.records import ON_FREEDOM
from loopdyn.forces.base import Force, Places, Record, check_not_negative
from loopdyn.quantities.units import Path, Resolver, Scalar

JOINT_FRICTION = 3
VISCOUS, COULOMB, TRANSITION = range(3)

DEFAULT_TRANSITION = 0.01  # rad/s or m/s, where none is given


class JointFriction(Force):
    """Friction: ``-viscous*speed - coulomb*tanh(speed/transition)``.

    `coulomb` is a torque or force that does not depend on the load of the bearing; `transition` is the speed
    over which it changes sign, by default 0.01 rad/s or 0.01 m/s, whatever the units of the model are.

    Parameters
    ----------
    joint : str
        Label of the coordinate.
    viscous : number
        Torque times second per angle, or force times second per length.
    coulomb : number
        In units of torque or force.
    transition : number, optional
        Speed, in units of angle or length per second.

    Examples
    --------
    >>> JointFriction(joint="A", viscous=0.01, coulomb=0.2, transition=0.05).coulomb
    0.2
    """

    label: ClassVar[str] = "joint_friction"
    code: ClassVar[int] = JOINT_FRICTION
    acts_on: ClassVar[int] = ON_FREEDOM
    stores_energy: ClassVar[bool] = False

    type: Literal["joint_friction"] = "joint_friction"
    joint: str
    viscous: Scalar = 0.0
    coulomb: Scalar = 0.0
    transition: Scalar | None = None

    def sticks(self) -> bool:
        """True with Coulomb friction."""
        return self.coulomb != 0.0

    def resolve(self, r: Resolver, places: Places, element: str, path: Path) -> Record | None:
        """Freedom; viscous, Coulomb and transition."""
        f = places.freedom(self.joint, element, (*path, "joint"))
        if f is None:
            return None
        turn = "angular_" if f.rotation else ""
        c = r.scalar(self.viscous, turn + "damping", element, (*path, "viscous"))
        load = r.scalar(self.coulomb, "torque" if f.rotation else "force", element, (*path, "coulomb"))
        speed = DEFAULT_TRANSITION
        if self.transition is not None:
            speed = r.scalar(self.transition, turn + "speed", element, (*path, "transition"))
        check_not_negative(r, element, path, viscous=c, coulomb=load)
        if speed <= 0.0:
            r.problem(element, "'transition' must be positive", "Give a small speed.", (*path, "transition"))
            return None
        return Record(freedom=f, floats=[c, load, speed], torque=f.rotation)


@inline
def load(model, n, dx):
    viscous, coulomb, transition = (
        model.force_data[n, VISCOUS],
        model.force_data[n, COULOMB],
        model.force_data[n, TRANSITION],
    )
    return -viscous * dx - coulomb * np.tanh(dx / transition)
