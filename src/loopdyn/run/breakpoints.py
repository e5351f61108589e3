"""Breakpoints of profiles and tables, where the law or its slope jumps: no integration step straddles one.

Profiles and tables of time have breakpoints at times; tables of a position, speed or length have them at values of that
variable. A step ends at each breakpoint and the integration restarts. A table is extrapolated beyond its ends, so that
leaving it can be reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from loopdyn.errors import LoopdynError
from loopdyn.quantities.expressions import Lookup, Program, table_program
from loopdyn.quantities.profiles import Profile
from loopdyn.quantities.units import Resolver
from loopdyn.run.events import Crossing, Found, Watched
from loopdyn.system.system import State, System, TableUse
from loopdyn.tree.tables import table_place, table_variable

Array = NDArray[np.float64]

MOST = 1_000_000  # most breakpoints of a profile in a run; each ends a step
LOOKS = 8  # samples of a step in which a table may be left
SEEN = 1e-9  # fraction of a table's range: a shorter step across a breakpoint is not affected by it


def time_breakpoints(system: System, start: float, end: float) -> Array:
    """Times (n,) in s between `start` and `end` at which a profile or table begins another piece, ascending.

    Examples
    --------
    >>> import loopdyn as ld
    >>> m = ld.library.pendulum()
    >>> name = m.add_driver("d", "A", ld.profiles.Cycloidal(distance=1.0, time=0.5, dwell_before=0.2))
    >>> time_breakpoints(m.compile(), 0.0, 10.0).tolist()
    [0.2, 0.7]
    """
    origin = system.kept.origin  # its variations differ in parameters alone, which are no profiles
    kept, kind = (system.kept, "profiles") if origin is None else (origin.kept, "profiles of variations")
    profiles: tuple[Profile, ...] = kept.find(kind, None, lambda: tuple(_profiles(system.mechanism)))
    numbers = system.mechanism.resolver() if profiles else None
    found = [t for p in profiles if numbers is not None for t in _profile_times(p, numbers, start, end)]
    for table in system.tables:
        if table_place(system, table) == 0:
            found += [t for t in _places(table.lookup).tolist() if start < t < end]
    return np.unique(np.array(found, float))


def _profiles(part: Any) -> Iterator[Profile]:
    """All profiles in a model."""
    if isinstance(part, Profile):
        yield part
    elif isinstance(part, BaseModel):
        for name in type(part).model_fields:
            yield from _profiles(getattr(part, name))
    elif isinstance(part, dict):
        for value in part.values():
            yield from _profiles(value)


def _profile_times(profile: Profile, r: Resolver, start: float, end: float) -> Iterator[float]:
    curve = profile.resolve(r, "profile", ())
    if curve is None:
        return  # compile() has reported the error
    first = max(0.0, np.floor(start / curve.cycle_time))
    last = np.ceil(min(end, curve.duration) / curve.cycle_time)
    if (last - first) * len(curve.corners) > MOST:
        raise LoopdynError(
            f"the profile '{profile.profile}' repeats every {curve.cycle_time:g} s, {last - first:.3g} times between "
            f"{start:g} and {end:g} s, and a step must end at each of its breakpoints. Check 'time' and 'cycles', or "
            "shorten the run."
        )
    for k in range(int(first), int(last)):
        yield from (float(t) for t in k * curve.cycle_time + curve.corners if start < t < end)


# ----------------------------------------------------------------------------------------------- tables


def _places(lookup: Lookup) -> Array:
    """Values of the variable at which the law changes: breakpoints, and ends unless the table is extended."""
    ends = lookup.knots[[0, -1]] if lookup.outside != "extend" else lookup.knots[:0]
    return np.unique(np.concatenate([lookup.corners, ends]))


def table_breakpoints(system: System) -> list[Watched]:
    """Event functions for breakpoints and ends of tables whose variable is not time, one for each table."""
    found = []
    for table in system.tables:
        place = table_place(system, table)
        if place != 0 and len(_places(table.lookup)):
            found.append(_watched(system, table, place))
    return found


def _watched(system: System, table: TableUse, place: int | None) -> Watched:
    program = _signs(_places(table.lookup), place or 0)
    name = f"table of {table.element}"
    if place is not None:
        return Watched(Crossing("0", name), program, table=table)

    def function(t: float, q: Array, v: Array) -> float:
        return program.evaluate([table_variable(system, table, State(t, q, v))])

    return Watched(Crossing(function, name), table=table)


def _signs(places: Array, variable: int) -> Program:
    """Piecewise linear function that is zero at `places`, negative before the first and alternating in sign."""
    inside = (places[1:] + places[:-1]) / 2.0
    size = max(float(np.ptp(places)), abs(float(places[0])), 1.0)
    between = np.concatenate([[places[0] - size], inside, [places[-1] + size]])
    x = np.empty(2 * len(places) + 1)
    x[::2], x[1::2] = between, places
    y = np.zeros(len(x))
    y[::2] = (-1.0) ** np.arange(1, len(between) + 1)
    return table_program(x, y, variable, interpolation="linear")


def crosses_breakpoint(system: System, found: Found, start: State, end: State) -> bool:
    """Whether a step from `start` to `end`, which crosses a breakpoint, moves by more than rounding.

    A mechanism at rest at a breakpoint crosses it by rounding in every step.
    """
    table = found.watched.table
    assert table is not None
    moved = table_variable(system, table, end) - table_variable(system, table, start)
    return abs(moved) > SEEN * float(np.ptp(table.lookup.knots))


def leaves(system: System, found: Found, state: State) -> bool:
    """Whether crossing a breakpoint at `state` leaves the range of the table."""
    table = found.watched.table
    assert table is not None
    places, knots = _places(table.lookup), table.lookup.knots
    k = int(np.argmin(np.abs(places - table_variable(system, table, state))))
    piece = k if (-1.0) ** (k + 1) * found.side > 0.0 else k + 1  # after the crossing; 0 is before the first place
    before, after = piece == 0 and places[0] == knots[0], piece == len(places) and places[-1] == knots[-1]
    return bool(before or after)


def goes_beyond(system: System, table: TableUse, curve: Callable[[float], State], start: float, stop: float) -> bool:
    """Whether a table is left by more than rounding between two times; a crank may reverse exactly at its end."""
    times = np.linspace(start, stop, LOOKS + 1)[1:].tolist()
    return any(table.lookup.left_by(table_variable(system, table, curve(t))) for t in times)
