"""Sides of the contacts of a system: their numbers, and systems in which some of them are closed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loopdyn.constraints.user import UserConstraint
from loopdyn.contacts.base import Side
from loopdyn.errors import ModelError, Problem
from loopdyn.model.mechanism import Mechanism
from loopdyn.quantities.dimensions import dimension
from loopdyn.system.builder import build
from loopdyn.system.measures import LEVELS, POSITION, CompiledMeasure
from loopdyn.system.system import System

BOUNDED = {dimension(**{name: 1}): name for name in ("length", "angle")}  # dimensions that a stop may bound


def sides_of(system: System) -> tuple[Side, ...]:
    """All rigid sides of all contacts, their numbers in the declared units."""
    return tuple(side for side in all_sides(system) if not side.compliant)


def all_sides(system: System) -> tuple[Side, ...]:
    """All sides of all contacts, compliant ones among them."""
    return system.kept.find("sides", None, lambda: _resolved(system))


def _resolved(system: System) -> tuple[Side, ...]:
    m = system.mechanism
    if not m.contacts:
        return ()
    r = m.resolver()

    def number(x: float | str) -> float:
        return float(r.scalar(x, "number", "contact", ()))

    found = []
    for name, contact in m.contacts.items():
        for side in contact.sides(name, r):
            keys = ("restitution", "bound", "stiffness", "damping")
            numbers: dict[str, Any] = {key: number(getattr(side, key)) for key in keys}
            found.append(replace(side, **numbers))
    return tuple(side if side.measure is None else _of_measure(system, side) for side in found)


def _of_measure(system: System, side: Side) -> Side:
    """A side that bounds a measure, with its row: a function of the coordinates, since measures are no constraints."""
    from loopdyn.results.measures import Measured, Path

    measure = system.measures[str(side.measure)]
    problem = _unbounded(system, measure)
    if problem is not None:
        path = ("contacts", side.element, "measure")
        raise ModelError(system.mechanism.locate([Problem(f"contact '{side.element}'", *problem, path=path)]))
    factor, bound = measure.factor, float(side.bound)

    def residual(t: Any, q: NDArray[Any]) -> NDArray[Any]:
        none = np.zeros((1, system.nv))
        path = Path(np.array([t]), q[None], none, none, np.zeros(1))
        found: NDArray[Any] = (Measured(system, path).of(measure) - bound) * factor
        return found

    of = BOUNDED[measure.dimension]
    return replace(side, row=UserConstraint(function=residual, rows=(side.name,), dimension=of))  # type: ignore[arg-type]


def _unbounded(system: System, measure: CompiledMeasure) -> tuple[str, str] | None:
    """Reason why a stop cannot bound a measure, and what to do instead; None if it can."""
    what = f"bounds the measure '{measure.name}', "
    if measure.level != POSITION:
        return what + f"which depends on {LEVELS[measure.level]}", "Bound a measure of positions and angles."
    if measure.dimension not in BOUNDED:
        return what + "which is neither a length nor an angle", "Write it as one, or leave it out."
    if _turns(system, measure):
        return (
            what + "whose angle between points has no turns that a stop could count",
            "Bound a joint coordinate, or write atan2(...) of coordinates, which stays within half a turn.",
        )
    return None


def _turns(system: System, measure: CompiledMeasure) -> bool:
    """Whether a measure has an angle between points that jumps by a full turn."""
    for quantity in measure.quantities:
        term = quantity.term
        if term is not None and term.function == "angle" and (len(term.points) == 2 or term.about):
            return True
        if quantity.kind == "measure" and _turns(system, system.measures[quantity.name]):
            return True
    return False


def add_rows(m: Mechanism, sides: Iterable[Side]) -> None:
    """Add the rows of closed sides to a mechanism."""
    for side in sides:
        getattr(m, side.section)[side.name] = side.row


def remove_rigid(m: Mechanism, sides: Iterable[Side]) -> None:
    """Remove the contacts of rigid sides from a mechanism; compliant ones, which are forces, stay."""
    for name in {side.element for side in sides if not side.compliant}:
        m.contacts.pop(name, None)


def all_closed(system: System) -> System:
    """System of the same tree with the rows of all sides: their residuals are the gaps, whether closed or not."""

    def made() -> System:
        m = system.mechanism.snapshot()
        for rows in (m.constraints, m.drivers, m.user_constraints, m.contacts):
            rows.clear()
        add_rows(m, all_sides(system))
        return build(m, system.topology.cuts, counted=system.counted)

    return system.kept.find("all closed", None, made)


def gap_dimensions(system: System) -> dict[str, str]:
    """Dimension of the gap of each contact, "length" or "angle"."""
    if not system.mechanism.contacts:
        return {}
    closed = all_closed(system)
    of = dict(zip(closed.constraint_rows, closed.row_dimensions, strict=True))
    return {side.element: of[side.name] for side in all_sides(system)}
