"""Relations of joint coordinates given by a formula: phi(t, q) = 0."""

from __future__ import annotations

from typing import ClassVar, Literal

from loopdyn.constraints.base import Constraint, LinearRecord
from loopdyn.constraints.formula import formula_record
from loopdyn.forces.base import Places
from loopdyn.quantities.units import Path, Resolver, Scalar
from loopdyn.quantities.wording import element_of

RELATION = 1


class Relation(Constraint):
    """A formula of joint coordinates and time that stays zero.

    Parameters
    ----------
    formula : str
        In the units of the model; its variables are ``t``, the names of `coordinates`, and parameters.
    coordinates : mapping
        Names used in the formula, and the joint coordinates they stand for: ``{"a": "A", "s": "B.slide"}``.

    Notes
    -----
    The row counts as a length (in the model's unit of length) if any coordinate is one, else as an angle. The load on
    a coordinate is the multiplier times the derivative of the formula by it. Where all these derivatives vanish the
    row loses rank.

    Examples
    --------
    A non-circular gear:

    >>> Relation(formula="b + a - 0.2*sin(a)", coordinates={"a": "A", "b": "B"}).joints()
    ('A', 'B')
    """

    label: ClassVar[str] = "relation"
    code: ClassVar[int] = RELATION

    type: Literal["relation"] = "relation"
    formula: Scalar
    coordinates: dict[str, str]

    def joints(self) -> tuple[str, ...]:
        """Joints of the coordinates."""
        return tuple(dict.fromkeys(element_of(label) for label in self.coordinates.values()))

    def reads(self) -> tuple[str, ...]:
        """Coordinates that the formula names."""
        return tuple(self.coordinates.values())

    def resolve(self, r: Resolver, places: Places, element: str, path: Path) -> LinearRecord | None:
        """Freedoms of the coordinates; the formula as their program."""
        return formula_record(self.formula, self.coordinates, None, r, places, element, path)
