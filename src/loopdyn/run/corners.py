"""Where laws have corners, lest a step of an integrator jump over a short motion or across a kink.

Profiles and tables of time have them at times, tables of a position, speed or length at values of it. Steps end there,
and the integration begins anew. A table is followed beyond its ends, so that it can be said that it was left.
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

MOST = 1_000_000  # corners of a profile in a run; each ends a step
LOOKS = 8  # at a step in which a table may be left
SEEN = 1e-9  # share of the range of a table: a step that moves less across a corner does not feel it


def corners(system: System, start: float, end: float) -> Array:
    """Times (n,) in s between `start` and `end` at which a profile or table begins another piece, ascending.

    Examples
    --------
    >>> import loopdyn as ld
    >>> m = ld.library.pendulum()
    >>> name = m.add_driver("d", "A", ld.profiles.Cycloidal(distance=1.0, time=0.5, dwell_before=0.2))
    >>> corners(m.compile(), 0.0, 10.0).tolist()
    [0.2, 0.7]
    """
    numbers = system.mechanism.resolver()
    found = [t for p in _profiles(system.mechanism) for t in _of_profile(p, numbers, start, end)]
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


def _of_profile(profile: Profile, r: Resolver, start: float, end: float) -> Iterator[float]:
    curve = profile.resolve(r, "profile", ())
    if curve is None:
        return  # compiling has said what is wrong
    first = max(0.0, np.floor(start / curve.cycle_time))
    last = np.ceil(min(end, curve.duration) / curve.cycle_time)
    if (last - first) * len(curve.corners) > MOST:
        raise LoopdynError(
            f"the profile '{profile.profile}' repeats every {curve.cycle_time:g} s, {last - first:.3g} times between "
            f"{start:g} and {end:g} s, and a step must end at each of its corners. Check 'time' and 'cycles', or ask "
            "for less time."
        )
    for k in range(int(first), int(last)):
        yield from (float(t) for t in k * curve.cycle_time + curve.corners if start < t < end)


# ----------------------------------------------------------------------------------------------- tables


def _places(lookup: Lookup) -> Array:
    """Values of the variable at which something changes: corners, and ends that are not passed in silence."""
    ends = lookup.knots[[0, -1]] if lookup.outside != "extend" else lookup.knots[:0]
    return np.unique(np.concatenate([lookup.corners, ends]))


def table_corners(system: System) -> list[Watched]:
    """Crossings of the corners and ends of tables whose variable is not the time, one function for each table."""
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
    """A function that passes zero at the places, negative before the first one."""
    inside = (places[1:] + places[:-1]) / 2.0
    size = max(float(np.ptp(places)), abs(float(places[0])), 1.0)
    between = np.concatenate([[places[0] - size], inside, [places[-1] + size]])
    x = np.empty(2 * len(places) + 1)
    x[::2], x[1::2] = between, places
    y = np.zeros(len(x))
    y[::2] = (-1.0) ** np.arange(1, len(between) + 1)
    return table_program(x, y, variable, interpolation="linear")


def passes_corner(system: System, found: Found, start: State, end: State) -> bool:
    """Whether a step from `start` to `end` crosses a corner by more than would be seen.

    A mechanism that rests at a corner crosses it by rounding all the time.
    """
    table = found.watched.table
    assert table is not None
    moved = table_variable(system, table, end) - table_variable(system, table, start)
    return abs(moved) > SEEN * float(np.ptp(table.lookup.knots))


def leaves(system: System, found: Found, state: State) -> bool:
    """Whether the crossing of a corner, at a state, leads out of the table."""
    table = found.watched.table
    assert table is not None
    places, knots = _places(table.lookup), table.lookup.knots
    k = int(np.argmin(np.abs(places - table_variable(system, table, state))))
    piece = k if (-1.0) ** (k + 1) * found.side > 0.0 else k + 1  # behind the crossing; 0 is before the first place
    before, after = piece == 0 and places[0] == knots[0], piece == len(places) and places[-1] == knots[-1]
    return bool(before or after)


def goes_beyond(system: System, table: TableUse, curve: Callable[[float], State], start: float, stop: float) -> bool:
    """Whether a table is left between two times by more than rounding: a crank may turn around at its end."""
    times = np.linspace(start, stop, LOOKS + 1)[1:].tolist()
    return any(table.lookup.left_by(table_variable(system, table, curve(t))) for t in times)
