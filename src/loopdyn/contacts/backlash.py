"""Backlash: a sum of joint coordinates stays within its free play."""

from __future__ import annotations

from typing import ClassVar, Literal

from loopdyn.constraints.coupler import Coupler
from loopdyn.contacts.base import OneSided, Side, check_restitution
from loopdyn.forces.base import Places, sum_of_terms
from loopdyn.quantities.units import Path, Resolver, Scalar
from loopdyn.quantities.wording import element_of


class Backlash(OneSided):
    """Free play of a gear, a rack, a coupling or a key: a coupler whose two flanks touch one at a time.

    The sum of factor times coordinate, less `offset`, stays within -play/2 ... play/2.

    Parameters
    ----------
    terms : mapping
        Factor of each coordinate, by its label, as in a :class:`loopdyn.constraints.Coupler`.
    play : number
        Free play, positive, in units of the sum: angle or length.
    offset : number
        Middle of the play, in the same units.
    restitution : number
        Coefficient of restitution: speed after an impact divided by speed before, from 0 (plastic) to 1 (elastic).

    Examples
    --------
    >>> Backlash(terms={"A": 1.0, "B": -3.0}, play=0.004).offset
    0.0
    """

    label: ClassVar[str] = "backlash"

    type: Literal["backlash"] = "backlash"
    terms: dict[str, Scalar]
    play: Scalar
    offset: Scalar = 0.0
    restitution: Scalar = 0.0

    def joints(self) -> tuple[str, ...]:
        """Joints of the terms."""
        return tuple(element_of(name) for name in self.terms)

    def reads(self) -> tuple[str, ...]:
        """Coordinates of the terms."""
        return tuple(self.terms)

    def sides(self, name: str, r: Resolver) -> list[Side]:
        """Lower and upper flank."""
        element, path = f"contact '{name}'", ("contacts", name)
        middle = r.scalar(self.offset, "number", element, (*path, "offset"))
        half = 0.5 * r.scalar(self.play, "number", element, (*path, "play"))
        flanks = (("lower", 1, middle - half), ("upper", -1, middle + half))
        return [
            Side(name, f"{name} {key}", sign, Coupler(terms=self.terms, offset=bound), self.restitution)
            for key, sign, bound in flanks
        ]

    def check(self, r: Resolver, places: Places, element: str, path: Path) -> None:
        """Record the problems of its numbers and names."""
        sum_of_terms(self.terms, r, places, element, path)
        r.scalar(self.offset, "number", element, (*path, "offset"))
        play = r.scalar(self.play, "number", element, (*path, "play"))
        if play <= 0.0:
            hint = "Give a positive play; without any use a coupler."
            r.problem(element, f"'play' is {play:g}", hint, (*path, "play"))
        check_restitution(self.restitution, r, element, path)
