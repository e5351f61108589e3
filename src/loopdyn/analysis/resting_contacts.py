"""Contacts that are closed at a state about which a mechanism is linearized.

A side that presses is a row of the constraints: the equations hold as long as its force, the margin, does not vanish. A
side that has opened, or lifts off, has no row. Where a small motion to one side closes a contact and one to the other
opens it there are no linear equations, which is said.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from loopdyn.contacts.base import Side
from loopdyn.errors import LoopdynError
from loopdyn.loops.one_sided import PULLED, ContactState, Pressing
from loopdyn.system.builder import build
from loopdyn.system.sides import add_rows, all_closed, remove_rigid, sides_of
from loopdyn.system.system import State, System
from loopdyn.thresholds import AT_LIMIT

Array = NDArray[np.float64]


class Resting(NamedTuple):
    """A system whose pressing sides are constraint rows.

    Attributes
    ----------
    system : System
    forces : dict
        Forces by which these sides press, by name, in declared units.
    notes : tuple of str
        Remarks on the contacts that are closed.
    """

    system: System
    forces: dict[str, float]
    notes: tuple[str, ...]


def with_resting_contacts(system: System, state: State, parameters: Sequence[str] = ()) -> Resting:
    """System with the rows of the contacts that press at a state; raises where small motions have no linear equations.

    Parameters
    ----------
    system : System
    state : State
    parameters : sequence of str
        Parameters by which equations are differentiated.
    """
    if not system.mechanism.contacts:
        return Resting(system, {}, ())
    sides = sides_of(system)
    at = ContactState(system, system, sides, state)
    closed = _closed(system, at)
    if not closed:
        return Resting(system, {}, ())
    leaving = [k for k in closed if at.rate[k] > at.slow[k]]
    rests = [k for k in closed if k not in leaving]
    found = at.pressing(rests)
    _require_pressed(system, at, found)
    shared = at.indeterminate([*found.active, *found.implied])
    forces, notes = {}, []
    for k in found.active:
        name, (symbol, unit) = sides[k].name, _force(system, sides[k])
        forces[name] = float(found.force[k]) / unit
        more = ", shared with others in one way of many" if k in shared else ""
        notes.append(f"valid while contact '{name}' stays closed: it presses with {forces[name]:.6g} {symbol}{more}")
    notes += [f"contact '{sides[k].name}' stays closed as long as the others do" for k in found.implied]
    lifts = [k for k in closed if k not in (*found.active, *found.implied)]
    notes += [f"contact '{sides[k].name}' opens here: the equations are those without it" for k in lifts]
    pressing = [sides[k] for k in found.active]
    _require_formulas(system, pressing, parameters)
    return Resting(_with_rows(system, pressing), forces, tuple(notes))


def _closed(system: System, at: ContactState) -> list[int]:
    """Sides whose gap is zero; raises if one is passed, or hit at a speed."""
    closed = [k for k, gap in enumerate(at.gap / at.unit) if gap <= AT_LIMIT]
    for k in closed:
        name = at.sides[k].name
        if at.gap[k] < -AT_LIMIT * at.unit[k]:
            raise LoopdynError(
                f"contact '{name}' is passed at this state of '{system.name}', where no motion can be. Choose a state "
                "that it allows."
            )
        if at.rate[k] < -at.slow[k]:
            raise LoopdynError(
                f"contact '{name}' is hit at a speed at this state of '{system.name}': small motions begin with an "
                "impact, and have no linear equations. Choose a state before or after it."
            )
    return closed


def _require_pressed(system: System, at: ContactState, found: Pressing) -> None:
    """Raise if a side touches without a force: small motions to one side lift it, those to the other are held."""
    least = PULLED * at.acceleration * at.scale  # a smaller force is rounding
    idle = [at.sides[k].name for k in found.active if found.force[k] <= least[k]]
    if idle:
        raise LoopdynError(
            f"contact {', '.join(idle)} of '{system.name}' touches without pressing: it holds small motions to one "
            "side and not those to the other, so there are no linear equations. Choose a state where it presses, or "
            "one off it."
        )


def _force(system: System, side: Side) -> tuple[str, float]:
    """Declared unit of the force of a side, and its SI value: a torque at an angle."""
    closed = all_closed(system)
    of = closed.row_dimensions[closed.constraint_rows.index(side.name)]
    dimension = "torque" if of == "angle" else "force"
    return system.units.symbol(dimension), system.units.factor(dimension)


def _require_formulas(system: System, sides: Sequence[Side], parameters: Sequence[str]) -> None:
    """Raise if a parameter moves a contact whose row has numbers, not formulas, in its place."""
    names = {side.name for side in sides}
    for name in parameters:
        value = system.mechanism.parameters.get(name)
        if not isinstance(value, int | float):
            continue
        other = system.with_parameters(**{name: float(value) + 1e-3 * (abs(value) or 1.0)})
        moved = [s.name for s, now in zip(sides_of(other), sides_of(system), strict=True) if s.row != now.row]
        if names & set(moved):
            raise LoopdynError(
                f"parameter '{name}' moves contact {', '.join(sorted(names & set(moved)))}, by which there are no "
                "derivatives here. Leave it out, or replace the contact by a constraint."
            )


def _with_rows(system: System, sides: Sequence[Side]) -> System:
    """System with the rows of sides and without rigid contacts, of the same tree."""
    if not sides:
        return system

    def made() -> System:
        m = system.mechanism.model_copy(deep=True)
        remove_rigid(m, sides_of(system))
        add_rows(m, sides)
        return build(m, list(system.topology.cuts), counted=system.counted).tolerating_as(system)

    return system.kept.find("resting contacts", tuple(side.name for side in sides), made)


__all__ = ["Resting", "with_resting_contacts"]
