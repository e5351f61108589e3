"""Linear relations between joint coordinates: gears, rack and pinion, screws."""

from __future__ import annotations

from typing import ClassVar, Literal

from loopdyn.constraints.base import Constraint, LinearRecord, motion_in_time
from loopdyn.engine.jit import inline
from loopdyn.forces.base import Places, law_program, sum_of_terms
from loopdyn.quantities.units import Path, Resolver, Scalar
from loopdyn.quantities.wording import element_of
from loopdyn.spatial.plucker import get3

COUPLER = 0


class Coupler(Constraint):
    """A linear relation of joint coordinates: sum of ``factor * coordinate`` equals `offset`.

    ``{"A": 1, "B": -2}`` is a gear with ratio 2; with a slide in it, a rack and pinion. Factors are in the units of
    the model: length or angle of the row per unit of each coordinate; the row itself is a length if any coordinate
    is one.

    Parameters
    ----------
    terms : mapping
        Factor of each coordinate, by its label.
    offset : number
        In units of the row: length or angle.

    Examples
    --------
    >>> Coupler(terms={"A": 1.0, "B": -2.0}).offset
    0.0
    """

    label: ClassVar[str] = "coupler"
    code: ClassVar[int] = COUPLER

    type: Literal["coupler"] = "coupler"
    terms: dict[str, Scalar]
    offset: Scalar = 0.0

    def joints(self) -> tuple[str, ...]:
        """Joints of the terms."""
        return tuple(element_of(name) for name in self.terms)

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


@inline
def terms(model, work, program, first, count):
    """phi = sum of factor * coordinate - program(t), velocity residual, gamma and phi_t.

    The motions of the entries are in the jets (:func:`loopdyn.constraints.base.put_motion`).
    """
    f, f1, f2 = motion_in_time(model, work, program)
    phi, rate, gamma = -f, -f1, f2
    for j in range(count):
        c = model.factor[first + j]
        x, dx, ddx = get3(work.jets, 1 + 2 * j, 0)
        work.factor[first + j] = c
        phi += c * x
        rate += c * dx
        gamma -= c * ddx
    return phi, rate, gamma, -f1
