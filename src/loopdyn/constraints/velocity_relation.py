"""Relations of joint speeds given by a formula: psi(t, q, v) = 0, at velocity level."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from loopdyn.constraints.base import Constraint, LinearRecord
from loopdyn.constraints.formula import formula_record
from loopdyn.forces.base import Places
from loopdyn.quantities.units import Path, Resolver, Scalar
from loopdyn.quantities.wording import element_of

VELOCITY_RELATION = 2


class VelocityRelation(Constraint):
    """A formula of joint speeds, joint coordinates and time that stays zero: a condition on velocities only.

    Parameters
    ----------
    formula : str
        In the units of the model; its variables are ``t``, the names of `speeds` and `coordinates`, and parameters.
    speeds, coordinates : mapping
        Names used in the formula, and the joint speeds and coordinates they stand for.

    Notes
    -----
    It need not be linear in the speeds. The row counts as a length per second if any of the speeds is one, else as an
    angle per second. The load on a speed is the multiplier times the derivative of the formula by it. Where all these
    derivatives vanish (a formula quadratic in the speeds, at rest) the row loses rank.

    Examples
    --------
    A skate on a plane that does not slip sideways:

    >>> skate = VelocityRelation(
    ...     formula="vy*cos(angle) - vx*sin(angle)",
    ...     speeds={"vx": "P.x", "vy": "P.y"}, coordinates={"angle": "P.angle"})
    >>> skate.joints()
    ('P',)
    """

    label: ClassVar[str] = "velocity_relation"
    code: ClassVar[int] = VELOCITY_RELATION
    affine: ClassVar[bool] = False

    type: Literal["velocity_relation"] = "velocity_relation"
    formula: Scalar
    speeds: dict[str, str]
    coordinates: dict[str, str] = Field(default_factory=dict)

    def joints(self) -> tuple[str, ...]:
        """Joints of the speeds and coordinates."""
        labels = (*self.speeds.values(), *self.coordinates.values())
        return tuple(dict.fromkeys(element_of(label) for label in labels))

    def reads(self) -> tuple[str, ...]:
        """Coordinates that the formula names."""
        return tuple(self.coordinates.values())

    def resolve(self, r: Resolver, places: Places, element: str, path: Path) -> LinearRecord | None:
        """Freedoms of the speeds and coordinates; the formula as their program."""
        return formula_record(self.formula, self.coordinates, self.speeds, r, places, element, path)
