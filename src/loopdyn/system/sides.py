"""Sides of the contacts of a system: their numbers, and systems in which some of them are closed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from loopdyn.contacts.base import Side
from loopdyn.model.mechanism import Mechanism
from loopdyn.system.builder import build
from loopdyn.system.system import System


def sides_of(system: System) -> tuple[Side, ...]:
    """All sides of all contacts, their restitution and bounds as numbers in the declared units."""
    return system.kept.find("sides", None, lambda: _resolved(system.mechanism))


def _resolved(m: Mechanism) -> tuple[Side, ...]:
    if not m.contacts:
        return ()
    r = m.resolver()

    def number(x: float | str) -> float:
        return float(r.scalar(x, "number", "contact", ()))

    given = [side for name, contact in m.contacts.items() for side in contact.sides(name, r)]
    return tuple(replace(s, restitution=number(s.restitution), bound=number(s.bound)) for s in given)


def add_rows(m: Mechanism, sides: Iterable[Side]) -> None:
    """Add the rows of closed sides to a mechanism."""
    for side in sides:
        getattr(m, side.section)[side.name] = side.row


def all_closed(system: System) -> System:
    """System of the same tree with the rows of all sides: their residuals are the gaps, whether closed or not."""

    def made() -> System:
        m = system.mechanism.snapshot()
        for rows in (m.constraints, m.drivers, m.user_constraints, m.contacts):
            rows.clear()
        add_rows(m, sides_of(system))
        return build(m, system.topology.cuts, counted=system.counted)

    return system.kept.find("all closed", None, made)
