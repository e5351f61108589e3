"""Compliant contacts in a run: where their loads begin and end, the integration restarts, with an event.

The load of a compliant side is kinked there and, with damping, jumps. At the depth d it presses while d > 0 and
stiffness*d + damping*d' > 0: while the smaller one of d and d + (damping/stiffness) d' is positive.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from loopdyn.contacts.base import Side
from loopdyn.loops.one_sided import gaps
from loopdyn.run.events import Crossing, Event, Watched, crossing_program
from loopdyn.system.sides import all_sides
from loopdyn.system.system import State, System

Array = NDArray[np.float64]

FEW = 10  # outputs over half a sine, of which the largest is at least 95 % of the peak


def compliant_changes(system: System) -> list[Watched]:
    """Event functions of all compliant sides: one for the beginning of each load, one for its end."""
    found = []
    for side in all_sides(system):
        if side.compliant:
            found += [_change(system, side, kind, way) for kind, way in (("contact", 1), ("separation", -1))]
    return found


def unsampled(system: System, events: Sequence[Event], times: Array) -> list[str]:
    """Warnings of loads of compliant sides that come and go between outputs: peaks of results miss them."""
    found = []
    for side in all_sides(system):
        if side.compliant:
            began = [e.t for e in events if e.name == f"{side.name}: contact"]
            ended = [e.t for e in events if e.name == f"{side.name}: separation"]
            spans = [(a, b) for a in began for b in [min((t for t in ended if t > a), default=np.inf)] if b < np.inf]
            short = [(a, b) for a, b in spans if np.sum((times >= a) & (times <= b)) < FEW]
            if short:
                a, b = min(short, key=lambda x: x[1] - x[0])
                found.append(
                    f"the load of '{side.name}' from t = {a:.6g} to {b:.6g} s falls between outputs, and peaks, which "
                    f"are those of outputs, miss it. Give more of them: t_eval with steps below {(b - a) / FEW:.2g} s."
                )
    return found


def _change(system: System, side: Side, kind: str, direction: int) -> Watched:
    name, delay = f"{side.name}: {kind}", float(side.damping) / float(side.stiffness)
    if side.coordinate in system.coordinates and side.coordinate in system.speeds:
        sign = -side.sign
        text = f"min({sign}*(x - ({side.bound!r})), {sign}*(x - ({side.bound!r}) + {delay!r}*v))"
        x, v = {"x": side.coordinate}, {"v": side.coordinate}
        crossing = Crossing(text, name, direction, action=_as_it_is, coordinates=x, speeds=v)
        return Watched(crossing, crossing_program(system, crossing), kind=kind)
    return Watched(Crossing(partial(_pressing, system, side, delay), name, direction, action=_as_it_is), kind=kind)


def _pressing(system: System, side: Side, delay: float, t: float, q: Array, v: Array) -> float:
    gap, rate = (float(x[0]) for x in gaps(system, State(t, q, v), [side]))
    return min(-gap, -gap - delay * rate)


def _as_it_is(state: State) -> State:
    return state
