"""Events of a simulation: what is watched, where it happened, and what it does.

An event is found on the dense output of a step, and a change of the state begins the integration anew.

**What is found.** A function is sampled at nine points of every step (:mod:`loopdyn.integrators.watching`) and one
beyond either end. Each change of sign between samples is a crossing, located to rounding. Where three samples in a row
come near to zero and turn away again, the smallest value between them is looked for: so two crossings are found
however short the time between them, as long as the function turns only once within three samples, at most 0.4 of a
step. A function that is smooth on the scale of the motion does; one that oscillates faster than the mechanism moves
needs shorter steps: ``ld.DOP853(longest=...)``. After an `action` a function is watched again from the second sample
on, 4 % of a step later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loopdyn.errors import LoopdynError
from loopdyn.expressions import Program, parse
from loopdyn.expressions import opcodes as OP
from loopdyn.integrators.watching import SAMPLES, may_dip, sign_changes
from loopdyn.locking import Lock, Release, require_lockable
from loopdyn.projection import metric, smallest_step
from loopdyn.reactions import Reactions
from loopdyn.system import State, System, TableUse
from loopdyn.tree import terms
from loopdyn.wording import nearest

Array = NDArray[np.float64]
Function = Callable[[float, Array, Array], float]
Action = Callable[[State], State] | Lock | Release

HALVINGS = 30  # how near to the start of a bounce its height is looked for
TINY = 1e-300  # stands for a value that is positive or negative and nothing else
TOGETHER = 1e-12  # share of a step within which two crossings happen at one time
DIP = 1e-9  # share of an interval to which the time of a smallest value is found
REST = 1e-3  # speed, rad/s or sizes of the mechanism per s, below which a rebound is none


@dataclass(frozen=True)
class Crossing:
    """A function ``f(t, q, v)`` or a formula passes through zero.

    Parameters
    ----------
    function : callable or str
        Of time, coordinates and speeds, all in SI units. A formula, or a function compiled by Numba
        (``@numba.njit``), is evaluated inside the compiled run; any other one is called between all steps.
    name : str
    direction : int
        1: only upwards, -1: only downwards, 0: both.
    stop : bool
        End the run there.
    action : callable, Lock or Release, optional
        ``action(state) -> state``: the state to go on from, which must be closed; or a joint locked, or a constraint
        released, with the impulses that it takes.
    coordinates, speeds : mapping
        For a formula: names used in it beside ``t``, and the coordinates and speeds they stand for.

    Examples
    --------
    >>> Crossing(lambda t, q, v: q[0] - 1.0, "passes", direction=1).direction
    1
    >>> Crossing("a - pi/2", "upright", coordinates={"a": "A"}).name
    'upright'
    """

    function: Function | str
    name: str = "crossing"
    direction: int = 0
    stop: bool = False
    action: Action | None = None
    coordinates: Mapping[str, str] = field(default_factory=dict)
    speeds: Mapping[str, str] = field(default_factory=dict)


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

    A stop that a joint comes to rest on is not offered.

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
    impulse : Reactions, optional
        Where constraints changed or momentum steps went through a singular pose: impulses of all joints, N s and N m s,
        and in its `multipliers` those of constraints, drivers and locks.
    """

    t: float
    name: str
    state: State
    after: State
    energy_loss: float = 0.0
    impulse: Reactions | None = None


@dataclass
class Watched:
    """A crossing that is looked for."""

    event: Crossing
    program: Program | None = None  # of the formula, if it is one; its variables are t, q, v
    rest: Callable[[State], bool] | None = None  # whether the state after the action is at rest at a limit
    table: TableUse | None = None  # a table whose corners these are: the integration begins anew, which is no event
    # where it has just happened: the time, and what stands for the value there, which is zero but for rounding
    since: float = np.nan
    held: float = np.nan

    @property
    def compiled(self) -> bool:
        """Whether it can be evaluated without Python."""
        return self.program is not None or hasattr(self.event.function, "py_func")

    def value(self, state: State) -> float:
        """Value at a state; one that is not a number is an error."""
        value = self.guess(state)
        if np.isnan(value):
            raise LoopdynError(f"event '{self.event.name}' is not a number at t = {state.t:g} s. Mend its function.")
        return value

    def guess(self, state: State) -> float:
        """Value at a state that may lie outside the run."""
        if self.program is not None:
            return self.program.evaluate([state.t, *state.q, *state.v])
        assert callable(self.event.function)
        return float(self.event.function(state.t, state.q, state.v))

    def hold(self, t: float, value: float) -> None:
        """Take `value` as that at the time t."""
        self.since, self.held = t, value


@dataclass(frozen=True)
class Found:
    """A crossing in a step."""

    t: float
    watched: Watched
    side: float  # sign of the function behind it


@dataclass
class Watch:
    """All events of a run; `system` and `rank` of its rows are those of the present phase."""

    system: System
    rank: int
    crossings: list[Watched] = field(default_factory=list)
    times: list[At] = field(default_factory=list)

    @property
    def compiled(self) -> bool:
        """Whether all crossings can be looked for without Python."""
        return all(w.compiled for w in self.crossings)

    def holds(self, t: float) -> bool:
        """Whether something has just happened at the time t: what follows needs a close look."""
        return any(w.since == t for w in self.crossings)

    def functions(self) -> tuple[list[Any], list[Program]]:
        """Jitted functions and formulas."""
        jitted = [w.event.function for w in self.crossings if w.program is None]
        return jitted, [w.program for w in self.crossings if w.program is not None]

    def sees(self, inside: Callable[[float], State], start: float, stop: float, end: State) -> bool:
        """Whether there is a crossing in the step from `start` to `stop`, which ends at the state `end`."""
        return bool(self._all(inside, start, stop, end))

    def _all(self, inside: Callable[[float], State], start: float, stop: float, end: State) -> list[Found]:
        """The first crossing of each function in a step."""
        if not stop > start:
            return []
        times = start + SAMPLES * (stop - start)
        times[-2] = stop
        states = [*(inside(t) for t in times[:-2]), end, inside(times[-1])]
        return [f for w in self.crossings if (f := _first(w, inside, times, states)) is not None]

    def find(self, inside: Callable[[float], State], start: float, stop: float, end: State) -> Found | None:
        """The first crossing in the step from `start` to `stop`.

        It is held from there on: behind a crossing that changes nothing the function is beyond zero, behind a limit it
        is before it, behind another action nobody knows. What crosses at the same time is still to be found.
        """
        found = self._all(inside, start, stop, end)
        if not found:
            return None
        first = min(found, key=lambda f: f.t)
        for other in found:
            if other.t <= first.t + TOGETHER * (stop - start):
                other.watched.hold(first.t, -other.side * TINY)
        event = first.watched.event
        if event.action is None:
            first.watched.hold(first.t, first.side * TINY)
        elif first.watched.rest is None:
            first.watched.hold(first.t, np.nan)
        return first


def _first(w: Watched, inside: Callable[[float], State], times: Array, states: list[State]) -> Found | None:
    """The first crossing of one function among its samples."""
    values = [w.guess(states[0]), *(w.value(s) for s in states[1:-1]), w.guess(states[-1])]
    if w.since == times[1]:
        values[1] = w.held
    points = list(zip(times[1:-1].tolist(), values[1:-1], strict=True))
    for k in range(1, len(times) - 1):
        if may_dip(*times[k - 1 : k + 2], *values[k - 1 : k + 2]):
            low, high = max(times[k - 1], times[1]), min(times[k + 1], times[-2])
            t, value = _smallest(w, inside, float(low), float(high), values[k - 1])
            if value * values[k - 1] <= 0.0:
                points.append((t, value))
    points.sort()
    for (low, a), (high, b) in pairwise(points):
        rises = a < 0.0
        if sign_changes(a, b) and w.event.direction * (1 if rises else -1) >= 0:
            return Found(_root(w, inside, low, high, b), w, 1.0 if rises else -1.0)
    return None


def _smallest(
    w: Watched, inside: Callable[[float], State], low: float, high: float, near: float
) -> tuple[float, float]:
    """Time and value where a function that has the sign of `near` around comes nearest to zero, or beyond it."""
    from scipy.optimize import minimize_scalar

    sign = float(np.sign(near))
    found = minimize_scalar(
        lambda t: sign * w.value(inside(t)), bounds=(low, high), method="bounded", options={"xatol": DIP * (high - low)}
    )
    return float(found.x), sign * float(found.fun)


def _root(w: Watched, inside: Callable[[float], State], low: float, high: float, b: float) -> float:
    """Time of the crossing, to rounding; b is the value at its end.

    At the start of a bounce the value is zero but for rounding: a moment of the right sign is looked for behind it; if
    there is none the coordinate does not leave its limit.
    """
    from scipy.optimize import brentq

    def value(t: float) -> float:
        return b if t >= high else w.value(inside(t))

    if b == 0.0:
        return high
    trials = [low, *(low + (high - low) * 0.5**k for k in range(1, HALVINGS))]
    above = next((t for t in trials if value(t) * b < 0.0), None)
    if above is None:
        return low
    eps = float(np.finfo(float).eps)
    xtol = 4.0 * eps * max(abs(high), high - low)
    return float(brentq(value, above, high, xtol=xtol, rtol=4.0 * eps))


def watch(system: System, given: Iterable[Given], rank: int, start: float, end: float) -> Watch:
    """What is to be looked for, with limits taken apart and plain functions given a name."""
    found = Watch(system, rank)
    for k, event in enumerate(given):
        action = getattr(event, "action", None)
        if isinstance(action, Lock):
            require_lockable(system, action.joint)
        if isinstance(event, At):
            if not start < event.t <= end:
                raise LoopdynError(f"event '{event.name}' is at t = {event.t:g} s, outside of t_span. Move it inside.")
            found.times.append(event)
        elif isinstance(event, Limits):
            found.crossings += _limits(found, event)
        elif isinstance(event, Crossing):
            found.crossings.append(Watched(event, _program(system, event)))
        elif callable(event):
            name = getattr(event, "__name__", "").strip("<>") or f"event {k + 1}"
            found.crossings.append(Watched(Crossing(event, name)))
        else:
            raise LoopdynError(f"{event!r} is no event. Give ld.Crossing, ld.At, ld.Limits or a function f(t, q, v).")
    found.times.sort(key=lambda e: e.t)
    return found


def _program(system: System, event: Crossing) -> Program | None:
    """A formula as a program whose variables are t, all coordinates, all speeds; None for a function."""
    if not isinstance(event.function, str):
        return None
    names, places = ["t"], [0]
    for given, labels, first in (
        (event.coordinates, system.coordinates, 1),
        (event.speeds, system.speeds, 1 + system.nq),
    ):
        for name, label in given.items():
            if label not in labels:
                raise LoopdynError(
                    f"event '{event.name}': '{name}' stands for '{label}', which the tree of joints does not have. "
                    f"{nearest(label, labels)}"
                )
            names.append(name)
            places.append(first + labels.index(label))
    program = parse(event.function).program(names)
    reads = (program.code & OP.MASK) == OP.VARIABLE
    moved = np.array(places)[np.where(reads, program.code >> OP.BITS, 0)]
    return replace(program, code=np.where(reads, OP.VARIABLE + (moved << OP.BITS), program.code))


def _limits(present: Watch, event: Limits) -> list[Watched]:
    system = present.system
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
                found.append(_limit(present, event, f"{label} at its {side} limit", i, k, bound, direction))
    return found


def _limit(present: Watch, event: Limits, name: str, i: int, k: int, bound: float, direction: int) -> Watched:
    system = present.system
    label = system.coordinates[i]
    crossing = Crossing(f"x - ({float(bound)!r})", name, direction, event.restitution is None, coordinates={"x": label})
    program = _program(system, crossing)
    if event.restitution is None:
        return Watched(crossing, program)
    e = event.restitution

    def rebound(state: State) -> State:
        q = state.q.copy()
        q[i] = bound if present.system.nc == 0 else q[i]  # a loop would be opened by it
        return State(state.t, q, impact(present.system, State(state.t, q, state.v), k, e, present.rank))

    def rests(state: State) -> bool:
        return bool(abs(state.v[k]) < REST * system.speed_units[k])

    return Watched(replace(crossing, action=rebound), program, rests)


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


def apply(action: Callable[[State], State], state: State, name: str) -> State:
    """The state after an action, at the same time."""
    after: Any = action(state)
    if not isinstance(after, State) or after.q.shape != state.q.shape or after.v.shape != state.v.shape:
        raise LoopdynError(f"event '{name}': its action must return a State of the same system.")
    return State(state.t, np.array(after.q, float), np.array(after.v, float))
