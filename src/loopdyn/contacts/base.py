"""Base of all one-sided contacts: constraint equations that hold while they press, and are absent otherwise.

A contact has one or more sides. The gap of a side is never negative; while it is closed, the side is the row of an
ordinary constraint, whose multiplier pushes the gap open. Each type says of each side which constraint that is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from loopdyn.forces.base import Force, Places
from loopdyn.quantities.units import Path, Resolver, Scalar, Spec


@dataclass(frozen=True)
class Side:
    """One side of a contact.

    Attributes
    ----------
    element : str
        Name of the contact.
    name : str
        Name of the side, and of its row while it is closed.
    sign : int
        1 or -1: the gap is the residual of the row times this sign.
    row : Constraint or Driver
        The constraint of one row that holds while the side is closed.
    restitution : number
        Coefficient of restitution.
    coordinate : str, optional
        Label of the joint coordinate that the side bounds, if it bounds one ...
    bound : number
        ... and its value there.
    section : str
        Section of a mechanism to which the row belongs.
    measure : str, optional
        Name of the measure that the side bounds: its row needs the compiled system.
    stiffness, damping : number
        Of a compliant side, which is no row but a force; 0 for a rigid one.
    corners : bool
        Whether the gap is less smooth than the motion.
    """

    element: str
    name: str
    sign: int
    row: Any  # a Constraint or Driver
    restitution: float | str
    coordinate: str | None = None
    bound: float | str = 0.0
    section: Literal["constraints", "drivers", "user_constraints"] = "constraints"
    measure: str | None = None
    stiffness: float | str = 0.0
    damping: float | str = 0.0
    corners: bool = False

    @property
    def compliant(self) -> bool:
        """Whether a force acts instead of the row; its numbers must be known."""
        return self.stiffness != 0.0


class OneSided(Spec):
    """Base of all types of contact."""

    label: ClassVar[str] = "contact"

    type: str

    def sides(self, name: str, r: Resolver) -> list[Side]:
        """Sides of this contact, of this name; how many there are may depend on its numbers."""
        raise NotImplementedError

    def force(self, r: Resolver, places: Places, element: str, path: Path) -> Force | None:
        """Force by which it acts if it is compliant; None if it is rigid."""
        return None

    def joints(self) -> tuple[str, ...]:
        """Joints whose coordinates it bounds."""
        return ()

    def reads(self) -> tuple[str, ...]:
        """Labels of the joint coordinates whose value it depends on."""
        return ()

    def replaces_limits(self) -> tuple[str, ...]:
        """Labels of the coordinates whose limits are its bounds: runs do not monitor them once more."""
        return ()

    def check(self, r: Resolver, places: Places, element: str, path: Path) -> None:
        """Record the problems of its numbers, names and points."""
        raise NotImplementedError


def check_restitution(value: Scalar, r: Resolver, element: str, path: Path) -> None:
    """Record a problem if a coefficient of restitution is not between 0 and 1."""
    e = r.scalar(value, "number", element, (*path, "restitution"))
    if not 0.0 <= e <= 1.0:
        message = f"'restitution' is {e:g}"
        r.problem(element, message, "Give a number from 0 (plastic) to 1 (elastic).", (*path, "restitution"))
