"""Events of a simulation: event functions, where they cross zero, and their actions.

An event is located on the dense output of a step; an event that changes the state restarts the integration.

**Which crossings are found.** A function is sampled at nine points of every step and one beyond either end, see
:mod:`loopdyn.integrators.event_sampling`. Each change of sign between samples is a crossing, located to rounding. Where
three successive samples approach zero and recede again, the extremum between them is located: so two crossings are
found however short the time between them, as long as the function has only one extremum within three samples, at most
0.4 of a step. A function that is smooth on the time scale of the motion has; one that oscillates faster than the
mechanism moves needs shorter steps: ``ld.integrators.DOP853(longest=...)``. After an `action` a function is sampled
again from the second sample on, 4 % of a step later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loopdyn.engine.uncompiled import python_function
from loopdyn.errors import LoopdynError
from loopdyn.files import Misfit
from loopdyn.integrators.event_sampling import SAMPLES, may_dip, sign_changes
from loopdyn.integrators.gap_rows import GapRows
from loopdyn.loops.reactions import Reactions, freedom_rate
from loopdyn.quantities.expressions import Program, parse
from loopdyn.quantities.expressions import opcodes as OP
from loopdyn.quantities.wording import nearest, unknown
from loopdyn.run.event_actions import impact
from loopdyn.run.locking import Add, Impulses, Lock, Release, computed, impulse_as_data, impulse_of, require_lockable
from loopdyn.run.measured_events import measured_functions, of_measures
from loopdyn.system.cut_angles import FULL_TURN
from loopdyn.system.system import State, System, TableUse
from loopdyn.thresholds import AT_LIMIT
from loopdyn.tree.functions import body_motion, joint_coordinates

Array = NDArray[np.float64]
Function = Callable[[float, Array, Array], float]
Action = Callable[[State], State] | Lock | Release | Add

HALVINGS = 30  # halvings of a step towards the start of a bounce, in search of a moment off the limit
TINY = 1e-300  # stands for a value of which only the sign is known
TOGETHER = 1e-12  # fraction of a step within which two crossings count as simultaneous
DIP = 1e-9  # fraction of an interval to which the time of an extremum is located
REST = 1e-3  # speed, in natural units per s, below which a joint does not rebound but comes to rest


@dataclass(frozen=True)
class Crossing:
    """A function ``f(t, q, v)`` or a formula passes through zero.

    Parameters
    ----------
    function : callable or str
        A function of time, coordinates and speeds, all SI. A formula, or a function compiled by Numba
        (``@numba.njit``), is evaluated inside the compiled run; any other one is called between all steps. A formula
        without `coordinates` and `speeds` may name measures (``"lift - 20"``) and what they may name.
    name : str
    direction : int
        1: only upwards, -1: only downwards, 0: both.
    stop : bool
        End the run there.
    action : callable, Lock, Release or Add, optional
        ``action(state) -> state``: the state to go on from, which must be closed; or a joint locked, a constraint
        released or added, with the impulses that it takes.
    coordinates, speeds : mapping
        For a formula: names used in it besides ``t``, and the coordinates and speeds they stand for, in declared units.

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
    """Event at a given time: the integration stops exactly there and restarts, e.g. where a motor is switched.

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
    """Joint limits as events: a coordinate that reaches a limit ends the run, or rebounds.

    It overrides `at_limit` of these joints in the model. A part that settles at a limit ends the run: one that
    is to rest there and leave it again is a :class:`loopdyn.contacts.Stop`.

    Parameters
    ----------
    restitution : float, optional
        Coefficient of restitution (speed after the impact divided by speed before), 0 to 1; the impulse acts on the
        whole mechanism. Without it the run stops at the limit.
    joints : list of labels, optional
        Coordinates; by default all that have limits in the model.
    warn : bool
        Continue beyond the limit, with an event and a warning.

    Examples
    --------
    >>> Limits(restitution=0.8).restitution
    0.8
    """

    restitution: float | None = None
    joints: Sequence[str] | None = None
    warn: bool = False

    def __post_init__(self) -> None:
        if self.restitution is not None and not 0.0 <= self.restitution <= 1.0:
            raise LoopdynError(f"restitution is {self.restitution}. Give a number from 0 to 1.")
        if self.restitution is not None and self.warn:
            raise LoopdynError("ld.events.Limits: restitution and warn exclude each other. Leave one of them out.")


Given = Crossing | At | Limits | Function
# Kinds of events: zero crossing of a user's function; a time given by the user; a joint at or beyond a limit; an impact
# of contacts; a contact that closes and stays closed; one that opens; a table left; steps limited by stability; other
# independent coordinates, or other redundant rows left open, from then on; momentum steps through or near a singular
# pose; small steps near one; an estimated state in a singular pose; contacts by momentum steps from then on.
KINDS = (
    "crossing",
    "time",
    "limit",
    "impact",
    "contact",
    "separation",
    "table",
    "stiff",
    "coordinate switch",
    "rows left open",
    "singular passage",
    "near miss",
    "singular pose",
    "momentum steps",
)


@dataclass(frozen=True)
class Event:
    """Event of a run.

    Attributes
    ----------
    t : float
        Time in s.
    name : str
    state, after : State
        State before and after the event; equal if it changed nothing.
    energy_loss : float
        Energy dissipated by the event, J.
    impulse : Reactions, optional
        Impulses of all joints, N s and N m s, if constraints changed or momentum steps passed a singular pose; its
        `multipliers` have those of constraints, drivers and locks.
    kind : str
        "crossing", "time", "limit", "impact" (of contacts), "contact" (closed from then on), "separation" (of
        contacts), "table" (left), "stiff" (the stiff integrator takes over), "coordinate switch" (of the independent
        speeds), "rows left open" (other redundant constraints), "singular passage", "near miss", "singular pose"
        (the state there is estimated) or "momentum steps" (with contacts, see :class:`loopdyn.integrators.Moreau`).
    """

    t: float
    name: str
    state: State
    after: State
    energy_loss: float = 0.0
    of_joints: Impulses = field(default=None, repr=False)
    kind: str = field(kw_only=True)

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise LoopdynError(f"'{self.kind}' is no kind of event. {nearest(self.kind, KINDS)}")

    @cached_property
    def impulse(self) -> Reactions | None:
        """Impulses of all joints, if there are any; computed when they are read."""
        return computed(self.of_joints)

    def as_data(self) -> dict[str, Any]:
        """Plain data, for files."""
        states = {name: [s.q.tolist(), s.v.tolist()] for name, s in (("state", self.state), ("after", self.after))}
        numbers = {"t": self.t, "energy_loss": self.energy_loss, "impulse": impulse_as_data(self.impulse)}
        return {"name": self.name, "kind": self.kind, **numbers, **states}


def event_of(system: System, data: Mapping[str, Any]) -> Event:
    """Event from the data of :meth:`Event.as_data`."""
    t, states = float(data["t"]), []
    for name in ("state", "after"):
        q, v = (np.array(x, float) for x in data[name])
        if (q.shape, v.shape) != ((system.nq,), (system.nv,)):
            raise Misfit(f"an event has {q.size} coordinates and {v.size} speeds")
        states.append(State(t, q, v, system=system))
    if data["kind"] not in KINDS:
        raise Misfit(f"'{data['kind']}' is no kind of event")
    (before, after), impulse = states, impulse_of(data["impulse"])
    return Event(t, str(data["name"]), before, after, float(data["energy_loss"]), impulse, kind=data["kind"])


@dataclass
class Watched:
    """Zero crossing to detect, with what is known of its function."""

    event: Crossing
    program: Program | None = None  # of a formula; its variables are t, q, v
    kind: str = "crossing"  # of the event
    rest: Callable[[State], bool] | None = None  # whether the state after the action is at rest at a limit
    table: TableUse | None = None  # table whose breakpoints these are: the integration restarts, without an event
    contact: bool = False  # the gap of a contact, or the forces of those that are closed
    gap: bool = False  # one of `Watch.gaps`
    leaves: bool = False  # a limit beyond which the run continues, with a warning
    beyond_at_start: str = ""  # text of the warning if the run starts beyond it
    # time of the last crossing, and a value with the right sign to use there, where the function is zero up to rounding
    since: float = np.nan
    held: float = np.nan

    @property
    def compiled(self) -> bool:
        """Whether it can be evaluated without Python."""
        function = self.event.function
        return self.gap or self.program is not None or python_function(function) is not function

    def value(self, state: State) -> float:
        """Value at a state; raises if it is NaN."""
        value = self.guess(state)
        if np.isnan(value):
            raise LoopdynError(f"event '{self.event.name}' is NaN at t = {state.t:g} s. Correct its function.")
        return value

    def guess(self, state: State) -> float:
        """Value at a state that may lie outside the run."""
        if self.program is not None:
            return self.program.evaluate([state.t, *state.q, *state.v])
        assert callable(self.event.function)
        return float(self.event.function(state.t, state.q, state.v))

    def hold(self, t: float, value: float) -> None:
        """Use `value` as the function's value at the time t."""
        self.since, self.held = t, value


@dataclass(frozen=True)
class Found:
    """A crossing in a step."""

    t: float
    watched: Watched
    side: float  # sign of the function behind it


@dataclass
class Watch:
    """All events to detect in a run; `system` and the `rank` of its rows are those of the current phase."""

    system: System
    rank: int
    crossings: list[Watched] = field(default_factory=list)
    times: list[At] = field(default_factory=list)
    unseen: list[str] = field(default_factory=list)  # warnings on limits that cannot be monitored
    gaps: GapRows | None = None  # open gaps of contacts

    @property
    def compiled(self) -> bool:
        """Whether all event functions are compiled."""
        return all(w.compiled for w in self.crossings)

    def holds(self, t: float) -> bool:
        """Whether a crossing has just happened at the time t, so that the next step must be checked on its own."""
        return any(w.since == t for w in self.crossings)

    def save(self) -> dict[str, Any]:
        """Times and values of :meth:`Watched.hold`, by names for a file."""
        own = {name: function.save() for name, function in measured_functions(self.crossings)}
        return {"held": np.array([(w.since, w.held) for w in self.crossings])} | own

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Restore the data of :meth:`save`."""
        for watched, (since, held) in zip(self.crossings, saved["held"], strict=True):
            watched.hold(float(since), float(held))
        for name, function in measured_functions(self.crossings):
            function.restore(saved[name])

    def suspicious(self, events: Iterable[Event]) -> list[str]:
        """Warnings after a run with these events: limits that were exceeded or could not be monitored."""
        found, happened = list(self.unseen), list(events)
        for w in self.crossings:
            times = [e.t for e in happened if w.leaves and e.name == w.event.name]
            if w.beyond_at_start:
                found.append(f"{w.beyond_at_start}. The run continues there: at_limit: warn.")
            elif times:
                found.append(
                    f"{w.event.name} from t = {min(times):.6g} s on: the run continues as if there were no limit. With "
                    "at_limit: stop, or {rebound: 0.5}, next to the limits of the joint, it ends or rebounds there."
                )
        return found

    def functions(self) -> tuple[list[Any], list[Program], GapRows | None]:
        """Jitted functions, formulas and gaps."""
        jitted = [w.event.function for w in self.crossings if w.program is None and not w.gap]
        return jitted, [w.program for w in self.crossings if w.program is not None], self.gaps

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
        """First crossing in the step from `start` to `stop`.

        The sign of the function just after the crossing is kept: the new one if nothing else changes, the old one at a
        limit that is not passed, NaN (unknown) after any other action. Simultaneous crossings of other functions remain
        to be found.
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
    """Time and value of the extremum towards or beyond zero of a function that has the sign of `near` around it."""
    from scipy.optimize import minimize_scalar

    sign = float(np.sign(near))
    found = minimize_scalar(
        lambda t: sign * w.value(inside(t)), bounds=(low, high), method="bounded", options={"xatol": DIP * (high - low)}
    )
    return float(found.x), sign * float(found.fun)


def _root(w: Watched, inside: Callable[[float], State], low: float, high: float, b: float) -> float:
    """Time of the crossing, to rounding; b is the value at its end.

    At the start of a bounce the value is zero up to rounding: a later moment with the right sign is searched; if there
    is none, the coordinate does not leave its limit.
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


def with_limits_of_model(system: System, given: Sequence[Given]) -> list[Given]:
    """Given events and those required by `at_limit` of joints, without limits that are given already."""
    said = [e.joints if e.joints is not None else system.limits for e in given if isinstance(e, Limits)]
    said += [contact.replaces_limits() for contact in system.mechanism.contacts.values()]
    left = {label: mode for label, mode in system.at_limit.items() if all(label not in labels for labels in said)}
    found: list[Given] = list(given)
    for mode in dict.fromkeys(left.values()):
        joints = [label for label, its in left.items() if its == mode]
        restitution = mode if isinstance(mode, float) else None
        found.append(Limits(restitution, joints, warn=mode == "warn"))
    return found


def watch(system: System, given: Iterable[Given], rank: int, first: State, end: float) -> Watch:
    """Events to detect from a state on: limits split by coordinate and side, plain functions with a name."""
    found = Watch(system, rank)
    for k, event in enumerate(given):
        action = getattr(event, "action", None)
        if isinstance(action, Lock):
            require_lockable(system, action.joint)
        if isinstance(event, At):
            if not first.t < event.t <= end:
                raise LoopdynError(f"event '{event.name}' is at t = {event.t:g} s, outside of t_span. Move it inside.")
            found.times.append(event)
        elif isinstance(event, Limits):
            found.crossings += _limits(found, event, first)
        elif isinstance(event, Crossing):
            event = of_measures(system, event)
            found.crossings.append(Watched(event, crossing_program(system, event)))
        elif callable(event):
            name = getattr(event, "__name__", "").strip("<>") or f"event {k + 1}"
            found.crossings.append(Watched(Crossing(event, name)))
        else:
            raise LoopdynError(
                f"{event!r} is no event. Give ld.events.Crossing, ld.events.At, ld.events.Limits or a function "
                "f(t, q, v)."
            )
    found.times.sort(key=lambda e: e.t)
    return found


def crossing_program(system: System, event: Crossing) -> Program | None:
    """Program of a formula with the variables t, all coordinates, all speeds; None for a function."""
    if not isinstance(event.function, str):
        return None
    names, places, scales = ["t"], [0], [1.0]
    for given, labels, first in (
        (event.coordinates, system.coordinates, 1),
        (event.speeds, system.speeds, 1 + system.nq),
    ):
        for name, label in given.items():
            if label not in labels:
                raise unknown(f"event '{event.name}': '{name}'", "coordinate or speed of the tree", [label], labels)
            names.append(name)
            places.append(first + labels.index(label))
            scales.append(1.0 / system.labels.factor(label, speed=first > 1))
    program = parse(event.function).program(names, input_scale=scales)
    reads = (program.code & OP.MASK) == OP.VARIABLE
    moved = np.array(places)[np.where(reads, program.code >> OP.BITS, 0)]
    return replace(program, code=np.where(reads, OP.VARIABLE + (moved << OP.BITS), program.code))


def _limits(present: Watch, event: Limits, first: State) -> list[Watched]:
    system = present.system
    labels = list(system.limits) if event.joints is None else list(event.joints)
    if not labels:
        raise LoopdynError("ld.events.Limits: no joint of the model has limits. Give a joint limits=(low, high).")
    found = []
    for label in labels:
        if label not in system.limits:
            raise LoopdynError(f"ld.events.Limits: '{label}' has no limits. {nearest(label, system.limits)}")
        c = _Coordinate(system, label)
        low, high = system.limits[label]
        if c.place is None and c.periodic and high - low >= FULL_TURN:
            present.unseen.append(
                f"'{label}' belongs to a cut joint, whose angle is known modulo one turn: its limits, a turn or more "
                "apart, are not monitored. Compile with other cuts=[...]."
            )
            continue
        x = c.value(first)
        turns = c.turns_to_range(x)  # limits less than a turn apart hold modulo full turns
        turns = turns if low <= x - turns <= high and high - low < FULL_TURN else 0.0
        for bound, side, direction in zip((low, high), ("lower", "upper"), (-1, 1), strict=True):
            if np.isfinite(bound):
                watched = _limit(present, event, c, float(bound + turns), side, direction)
                _begin(watched, c, first, direction * (x - bound - turns), event)
                found.append(watched)
    return found


def _begin(watched: Watched, c: _Coordinate, first: State, beyond: float, event: Limits) -> None:
    """Fix the sign at a limit at which the coordinate starts; a start beyond it is a warning, or an error at a stop."""
    if beyond > AT_LIMIT * c.unit:
        low, high = c.system.limits[c.label]
        entry = c.system.labels.scalars[c.label]
        unit, factor = c.system.units.symbol(entry.dimension), c.system.units.factor(entry.dimension)
        where = f"'{c.label}' starts outside its limits [{low / factor:.6g}, {high / factor:.6g}] {unit}"
        where += f", by {beyond / factor:.3g} {unit}"
        if not event.warn:
            raise LoopdynError(f"{where}, and is to stop or rebound there. Start inside, or use at_limit: warn.")
        watched.beyond_at_start = where
    elif beyond >= -AT_LIMIT * c.unit and not event.warn:
        watched.hold(first.t, -float(watched.event.direction) * TINY)


class _Coordinate:
    """A coordinate that has limits: one of the tree, or of a cut joint, measured from the poses of its bodies."""

    def __init__(self, system: System, label: str):
        self.system, self.label = system, label
        self.joint, self.k, *_ = system.labels.coordinates[label]
        self.angle = self.joint.spec.dimensions[self.k] == "angle"
        self.periodic = self.joint.spec.is_periodic(self.k)
        self.unit = 1.0 if self.angle else system.size
        self.place = system.coordinates.index(label) if label in system.coordinates else None

    def value(self, state: State) -> float:
        """Value at a state; the angle of a cut joint is within half a turn of the middle of its range."""
        if self.place is not None:
            return float(state.q[self.place])
        x = float(joint_coordinates(self.joint, body_motion(self.system, state))[self.k])
        return x - self.turns_to_range(x) if self.periodic else x

    def turns_to_range(self, x: float) -> float:
        """Full turns, rad, by which an angle x is off the range of the joint; zero inside it."""
        low, high = self.system.limits[self.label]
        middle = 0.5 * (low + high)
        if low <= x <= high or not self.periodic or not np.isfinite(middle):
            return 0.0
        return FULL_TURN * round((x - middle) / FULL_TURN)

    def rate(self, state: State) -> tuple[Array, float]:
        """Gradient (nv,) of the rate by the speeds, and the rate."""
        return freedom_rate(self.system, state, body_motion(self.system, state), self.joint, self.k)


def _limit(present: Watch, event: Limits, c: _Coordinate, bound: float, side: str, direction: int) -> Watched:
    name = f"{c.label} {'beyond' if event.warn else 'at'} its {side} limit"
    at = bound + direction * AT_LIMIT * c.unit if event.warn else bound  # rounding does not exceed a limit
    stop = event.restitution is None and not event.warn
    if c.place is not None:
        declared = at / c.system.labels.factor(c.label)
        crossing = Crossing(f"x - ({declared!r})", name, direction, stop, coordinates={"x": c.label})
    else:
        crossing = Crossing(lambda t, q, v: c.value(State(t, q, v)) - at, name, direction, stop)
    program = crossing_program(c.system, crossing)
    if event.restitution is None:
        return Watched(crossing, program, kind="limit", leaves=event.warn)
    e = event.restitution

    def rebound(state: State) -> State:
        q = state.q.copy()
        if present.system.nc == 0 and c.place is not None:  # rounding here would open a loop
            q[c.place] = bound
        state = State(state.t, q, state.v)
        return State(state.t, q, impact(present.system, state, *c.rate(state), c.unit, e, present.rank))

    def rests(state: State) -> bool:
        return bool(abs(c.rate(state)[1]) < REST * c.unit)

    return Watched(replace(crossing, action=rebound), program, kind="limit", rest=rests)
