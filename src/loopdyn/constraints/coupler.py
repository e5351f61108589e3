"""Relations between joint coordinates: gears, rack and pinion, screws; and drivers that prescribe one in time."""

from __future__ import annotations

from typing import ClassVar, Literal

from loopdyn.constraints.base import Constraint, LinearRecord
from loopdyn.forces.base import Law, Places, law_program, sum_of_terms
from loopdyn.quantities.units import Path, Resolver, Scalar, Spec


class Coupler(Constraint):
    """A linear relation of joint coordinates: sum of ``factor * coordinate`` equals `offset`.

    ``{"A": 1, "B": -2}`` is a gear with ratio 2; with a slide in it, a rack and pinion. Factors are in the units of
    the model: length or angle of the row per unit of each coordinate; the row itself is a length if any coordinate
    is one.

    Examples
    --------
    >>> Coupler(terms={"A": 1.0, "B": -2.0}).offset
    0.0
    """

    label: ClassVar[str] = "coupler"

    type: Literal["coupler"] = "coupler"
    terms: dict[str, Scalar]
    offset: Scalar = 0.0

    def joints(self) -> tuple[str, ...]:
        """Joints of the terms."""
        return tuple(name.partition(".")[0] for name in self.terms)

    def reads(self) -> tuple[str, ...]:
        """Coordinates of the terms."""
        return tuple(self.terms)

    def resolve(self, r: Resolver, places: Places, element: str, path: Path) -> LinearRecord | None:
        """Freedoms with their factors."""
        found = sum_of_terms(self.terms, r, places, element, path)
        if found is None:
            return None
        program = law_program(self.offset, {}, found.dimension, r, element, (*path, "offset"))
        return LinearRecord(found.freedoms, found.factors, program, found.dimension)


class Driver(Spec):
    """Prescribes a joint coordinate as a function of time; a distance is driven by its own `length`.

    `motion` is a formula of ``t`` and parameters, a table of ``t``, or a profile (:mod:`loopdyn.quantities.profiles`).
    The multiplier is the load of the drive.

    Examples
    --------
    >>> Driver(joint="A", motion="2*pi*t").motion
    '2*pi*t'
    """

    label: ClassVar[str] = "driver"

    joint: str
    motion: Law

    def joints(self) -> tuple[str, ...]:
        """The driven joint."""
        return (self.joint.partition(".")[0],)

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
