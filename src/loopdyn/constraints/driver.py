"""Drivers, which prescribe a joint coordinate in time."""

from __future__ import annotations

from typing import ClassVar

from loopdyn.constraints.base import LinearRecord
from loopdyn.constraints.coupler import COUPLER
from loopdyn.forces.base import Law, Places, law_program
from loopdyn.quantities.units import Path, Resolver, Spec
from loopdyn.quantities.wording import element_of


class Driver(Spec):
    """Prescribes a joint coordinate as a function of time; a distance is driven by its own `length`.

    `motion` is a formula of ``t`` and parameters, a table of ``t``, or a profile (:mod:`loopdyn.quantities.profiles`).
    The multiplier is the load of the drive.

    Parameters
    ----------
    joint : str
        Label of the coordinate.
    motion : formula of ``t``, table or profile
        In units of angle or length; t in s.

    Examples
    --------
    >>> Driver(joint="A", motion="2*pi*t").motion
    '2*pi*t'
    """

    label: ClassVar[str] = "driver"
    code: ClassVar[int] = COUPLER  # of one coordinate, with an offset that changes in time

    joint: str
    motion: Law

    def joints(self) -> tuple[str, ...]:
        """The driven joint."""
        return (element_of(self.joint),)

    def reads(self) -> tuple[str, ...]:
        """The driven coordinate."""
        return (self.joint,)

    def resolve(self, r: Resolver, places: Places, element: str, path: Path) -> LinearRecord | None:
        """One freedom with factor one."""
        f = places.freedom(self.joint, element, (*path, "joint"))
        if f is None:
            return None
        if f.dimension == "":
            hint = "Drive a joint with a scalar coordinate."
            r.problem(element, f"'{self.joint}' has no single coordinate", hint, (*path, "joint"))
            return None
        program = law_program(self.motion, {"t": "number"}, f.dimension, r, element, (*path, "motion"), motion=True)
        return LinearRecord([f], [1.0], program, f.dimension)
