"""Events of a simulation: what is watched, where it happened, and what it does.

An event is found on the dense output of a step, and a change of the state begins the integration anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loopdyn.errors import LoopdynError
from loopdyn.projection import metric, smallest_step
from loopdyn.system import State, System
from loopdyn.tree import terms
from loopdyn.wording import nearest

Array = NDArray[np.float64]
Function = Callable[[float, Array, Array], float]
Action = Callable[[State], State]

SAMPLES = 5  # parts of a step in whose ends a crossing is looked for, so that two in one step are seen
HALVINGS = 30  # how near to the start of a bounce its height is looked for
TINY = 1e-300  # stands for a value that is positive or negative and nothing else
REST = 1e-3  # speed, rad/s or sizes of the mechanism per s, below which a rebound is none


@dataclass(frozen=True)
class Crossing:
    """A function ``f(t, q, v)`` passes through zero.

    Parameters
    ----------
    function : callable
        Of time, coordinates and speeds, all in SI units.
    name : str
    direction : int
        1: only upwards, -1: only downwards, 0: both.
    stop : bool
        End the run there.
    action : callable, optional
        ``action(state) -> state``: the state to go on from. It must be closed.

    Examples
    --------
    >>> Crossing(lambda t, q, v: q[0] - 1.0, "passes", direction=1).direction
    1
    """

    function: Function
    name: str = "crossing"
    direction: int = 0
    stop: bool = False
    action: Action | None = None


@dataclass(frozen=True)
class At:
    """Something happens at a time: the integration stops there exactly and begins anew, e.g. where a motor switches.

    Examples
    --------
    >>> At(0.5, "switch").t
    0.5
    """

    t: float
    name: str = "time"
    stop: bool = False
    action: Action | None = None


@dataclass(frozen=True)
class Limits:
    """The limits of the joints: a coordinate that reaches one ends the run, or rebounds.

    Parameters
    ----------
    restitution : float, optional
        Speed after the impact over that before, 0 to 1; the impulse acts on the whole mechanism. Without it the run
        stops at the limit.
    joints : list of labels, optional
        Which coordinates; by default all that have limits in the model.

    Examples
    --------
    >>> Limits(restitution=0.8).restitution
    0.8
    """

    restitution: float | None = None
    joints: Sequence[str] | None = None

    def __post_init__(self) -> None:
        if self.restitution is not None and not 0.0 <= self.restitution <= 1.0:
            raise LoopdynError(f"restitution is {self.restitution}. Give a number from 0 to 1.")


Given = Crossing | At | Limits | Function


@dataclass(frozen=True)
class Event:
    """Something that happened during a run.

    Attributes
    ----------
    t : float
        Time in s.
    name : str
    state, after : State
        Before and after the event changed anything; the same where it did not.
    energy_loss : float
        Energy that the event took away, J.
    """

    t: float
    name: str
    state: State
    after: State
    energy_loss: float = 0.0


@dataclass
class Watched:
    """A crossing that is looked for, and its value where the last step ended."""

    event: Crossing
    rest: Callable[[State], bool] | None = None  # whether the state after the action is at rest at a limit
    value: float | None = None  # None where it is not to be trusted: just after it happened


@dataclass
class Watch:
    """All events of a run."""

    crossings: list[Watched] = field(default_factory=list)
    times: list[At] = field(default_factory=list)

    def begin(self, state: State, happened: Watched | None = None) -> None:
        """Values at the start of what follows; that of what just happened is zero but for rounding.

        Behind a limit a coordinate is on the allowed side of it, by however little.
        """
        for w in self.crossings:
            w.value = value_of(w.event, state)
            if w is happened:
                w.value = None if w.rest is None else -w.event.direction * TINY

    def find(
        self, inside: Callable[[float], State], start: float, stop: float, end: State
    ) -> tuple[float, Watched] | None:
        """The first crossing in the step from `start` to `stop`; without one the values at its end are kept."""
        if not self.crossings:
            return None
        times = np.linspace(start, stop, SAMPLES + 1)
        states = [inside(t) for t in times[1:-1]] + [end]
        found: list[tuple[float, Watched]] = []
        last: list[float] = []
        for w in self.crossings:
            values = [np.nan if w.value is None else w.value, *(value_of(w.event, s) for s in states)]
            last.append(values[-1])
            for k in range(SAMPLES):
                a, b = values[k], values[k + 1]
                if _crosses(a, b, w.event.direction):
                    found.append((_root(w.event, inside, float(times[k]), float(times[k + 1]), b), w))
                    break
        if found:
            return min(found, key=lambda item: item[0])
        for w, value in zip(self.crossings, last, strict=True):
            w.value = value
        return None


def value_of(event: Crossing, state: State) -> float:
    """Value of the function of a crossing; one that is not a number is an error."""
    value = float(event.function(state.t, state.q, state.v))
    if np.isnan(value):
        raise LoopdynError(f"event '{event.name}' is not a number at t = {state.t:g} s. Mend its function.")
    return value


def _crosses(a: float, b: float, direction: int) -> bool:
    rises, falls = a < 0.0 <= b, a > 0.0 >= b
    return (rises and direction >= 0) or (falls and direction <= 0)


def _root(event: Crossing, inside: Callable[[float], State], low: float, high: float, b: float) -> float:
    """Time of the crossing, to rounding.

    At the start of a bounce the value is zero but for rounding: a moment of the right sign is looked for behind it; if
    there is none the coordinate does not leave its limit.
    """
    from scipy.optimize import brentq

    if b == 0.0:
        return high
    trials = [low, *(low + (high - low) * 0.5**k for k in range(1, HALVINGS))]
    above = next((t for t in trials if value_of(event, inside(t)) * b < 0.0), None)
    if above is None:
        return low
    eps = float(np.finfo(float).eps)
    xtol = 4.0 * eps * max(abs(high), high - low)
    return float(brentq(lambda t: value_of(event, inside(t)), above, high, xtol=xtol, rtol=4.0 * eps))


def watch(system: System, given: Iterable[Given], rank: int, start: float, end: float) -> Watch:
    """What is to be looked for, with limits taken apart and plain functions given a name."""
    found = Watch()
    for k, event in enumerate(given):
        if isinstance(event, At):
            if not start < event.t <= end:
                raise LoopdynError(f"event '{event.name}' is at t = {event.t:g} s, outside of t_span. Move it inside.")
            found.times.append(event)
        elif isinstance(event, Limits):
            found.crossings += _limits(system, event, rank)
        elif isinstance(event, Crossing):
            found.crossings.append(Watched(event))
        elif callable(event):
            name = getattr(event, "__name__", "").strip("<>") or f"event {k + 1}"
            found.crossings.append(Watched(Crossing(event, name)))
        else:
            raise LoopdynError(f"{event!r} is no event. Give ld.Crossing, ld.At, ld.Limits or a function f(t, q, v).")
    found.times.sort(key=lambda e: e.t)
    return found


def _limits(system: System, event: Limits, rank: int) -> list[Watched]:
    labels = list(system.limits) if event.joints is None else list(event.joints)
    if not labels:
        raise LoopdynError("ld.Limits: no joint of the model has limits. Give a joint limits=(low, high).")
    found = []
    for label in labels:
        if label not in system.limits:
            raise LoopdynError(f"ld.Limits: '{label}' has no limits. {nearest(label, system.limits)}")
        if label not in system.coordinates:
            raise LoopdynError(
                f"ld.Limits: '{label}' belongs to a cut joint, whose limits cannot be watched. Compile with other "
                "cuts=[...]."
            )
        i, k = system.coordinates.index(label), system.speeds.index(label)
        for bound, side, direction in zip(system.limits[label], ("lower", "upper"), (-1, 1), strict=True):
            if np.isfinite(bound):
                found.append(_limit(system, event, rank, f"{label} at its {side} limit", i, k, bound, direction))
    return found


def _limit(
    system: System, event: Limits, rank: int, name: str, i: int, k: int, bound: float, direction: int
) -> Watched:
    def distance(t: float, q: Array, v: Array) -> float:
        return float(q[i] - bound)

    crossing = Crossing(distance, name, direction, stop=event.restitution is None)
    if event.restitution is None:
        return Watched(crossing)
    e = event.restitution

    def rebound(state: State) -> State:
        q = state.q.copy()
        q[i] = bound if system.nc == 0 else q[i]  # a loop would be opened by it
        return State(state.t, q, impact(system, State(state.t, q, state.v), k, e, rank))

    def rests(state: State) -> bool:
        return bool(abs(state.v[k]) < REST * system.speed_units[k])

    return Watched(replace(crossing, action=rebound), rests)


def impact(system: System, state: State, k: int, restitution: float, rank: int) -> Array:
    """Speeds after an impact that turns speed k about while loops stay closed: the smallest change in the mass metric.

    Examples
    --------
    A single mass only changes its sign:

    >>> import loopdyn as ld
    >>> system = ld.library.pendulum().compile()
    >>> impact(system, system.state(v={"A": -2.0}), 0, 0.5, 0)
    array([1.])
    """
    now, rows = terms(system, state), system.row_units
    row = np.zeros((1, system.nv))
    row[0, k] = 1.0 / system.speed_units[k]
    J = np.vstack([now.J / rows[:, None], row])
    r = np.append((now.J @ state.v + now.phi_t) / rows, (1.0 + restitution) * state.v[k] / system.speed_units[k])
    v: Array = state.v + smallest_step(J, r, metric(now.M), min(rank + 1, system.nv))
    return v


def apply(action: Action, state: State, name: str) -> State:
    """The state after an action, at the same time."""
    after: Any = action(state)
    if not isinstance(after, State) or after.q.shape != state.q.shape or after.v.shape != state.v.shape:
        raise LoopdynError(f"event '{name}': its action must return a State of the same system.")
    return State(state.t, np.array(after.q, float), np.array(after.v, float))
