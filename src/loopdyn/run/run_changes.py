"""Changes of a whole run by parameters: segments between discontinuities, and functionals of quantities along it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from loopdyn.analysis.output_changes import ChangingOutput, Moves, along_moves, derivatives
from loopdyn.analysis.pose_changes import Changes
from loopdyn.analysis.variations import Family, Local
from loopdyn.errors import LoopdynError
from loopdyn.formulations.base import Formulation
from loopdyn.loops.continuation import largest
from loopdyn.loops.rank import decide, require_inertia, require_regular
from loopdyn.quantities.wording import nearest
from loopdyn.results.measures import Path
from loopdyn.results.run import Run
from loopdyn.run.breakpoints import time_breakpoints
from loopdyn.run.events import Event, Given, Watch, Watched, watch, with_limits_of_model
from loopdyn.run.locking import Add, Lock, Phase, Release
from loopdyn.run.measured_events import MeasureFunction
from loopdyn.run.phase_changes import change_phase
from loopdyn.run.simulate import drive_to_end, output_grid, prepare_run, run_choices
from loopdyn.run.variational import ChangedState, Pass, Stages
from loopdyn.system.measures import ACCELERATION
from loopdyn.system.system import State, System
from loopdyn.tree.functions import difference

Array = NDArray[np.float64]

FUNCTIONAL = re.compile(r"(end|peak|lowest|integral|mean|rms|time)\((.*)\)", re.DOTALL)
CHANGELESS = ("coordinate switch", "stiff", "table")  # kinds of events that change nothing of the motion
EQUAL = 1e-6  # fraction of the span of a quantity by which two of its peaks must differ
DIFFERS = 1e-5  # natural units, relative to the motion: largest difference of the second pass from the run
POLISHED = 3  # Newton steps to the time of an event


class Functional(NamedTuple):
    """A number of a run: of a quantity, or the time of an event."""

    text: str
    kind: str
    inside: str


def functional(text: str) -> Functional:
    """Read ``"peak(A.speed)"``; a quantity alone is that at the end.

    Examples
    --------
    >>> functional("rms(C.fx)")
    Functional(text='rms(C.fx)', kind='rms', inside='C.fx')
    """
    found = FUNCTIONAL.fullmatch(text.strip())
    return Functional(text, *found.groups()) if found else Functional(text, "end", text)


@dataclass
class SmoothStretch:
    """Stretch of smooth motion, its states with their weights, and its ends."""

    first: ChangedState
    record: Stages
    last: ChangedState
    began: Array  # dt (p,) of its start
    ended: Array  # ... and of its end
    smooth: tuple[tuple[float, Array], tuple[float, Array]]  # breakpoints of laws around it
    passing: Pass = field(repr=False)  # with the constraints that act on it


@dataclass
class RunChanges:
    """A run with its changes.

    Attributes
    ----------
    run : Run
    segments : list of SmoothStretch
    times : dict
        Times of events by name, with their changes (p,).
    """

    run: Run
    family: Family
    segments: list[SmoothStretch]
    times: dict[str, list[tuple[float, Array]]]


def changes_of_run(
    family: Family,
    first: State,
    changes: Mapping[str, Changes],
    span: tuple[float, float],
    events: Sequence[Given],
    formulation: str | Formulation,
    rtol: float,
) -> RunChanges:
    """Simulate, and integrate the changes along the run in a second pass."""
    s, (start, end) = family.system, span
    given = with_limits_of_model(s, events)
    choices = run_choices(formulation, "auto", rtol, None, "projection")
    driver = prepare_run(s, first, end, output_grid(None, start, end), choices, given)
    run = drive_to_end(driver)
    run.raise_if_failed()
    _require_smooth(s, run)
    rank = decide(s, first)
    require_regular(s, rank)
    require_inertia(s, first, rank)
    return _Following(family, run, Pass(family, rank.count, rtol), (events, first, end)).follow(first, changes)


def _require_smooth(system: System, run: Run) -> None:
    """Raise if a run has events at which there are no derivatives."""
    for e in run.events:
        if e.kind in ("singular passage", "near miss", "singular pose", "rows left open"):
            raise LoopdynError(
                f"the run of '{system.name}' has no derivatives: {e.kind} at t = {e.t:.6g} s. End it before, or start "
                "it elsewhere."
            )


class _Following:
    """The second pass: from the start through all discontinuities to the end."""

    def __init__(self, family: Family, run: Run, passing: Pass, given: tuple[Sequence[Given], State, float]):
        self.family, self.run, self.given = family, run, given
        self.phase = Phase(family.system)
        self.none = np.zeros(len(family.parameters))
        self._enter(passing)

    def _enter(self, passing: Pass) -> None:
        """Continue with a pass: find events by functions of its system and its neighbours."""
        self.passing = passing
        self.watch = self._watched_by(passing.system)
        self.varied = {name: [self._watched_by(x) for x in of] for name, of in passing.family.neighbours.items()}

    def _watched_by(self, system: System) -> Watch:
        events, first, end = self.given
        return watch(system, with_limits_of_model(system, events), self.passing.count, first, end)

    def follow(self, first: State, changes: Mapping[str, Changes]) -> RunChanges:
        """Integrate all segments."""
        passing, run = self.passing, self.run
        names = self.family.parameters
        dq = np.array([passing.raw(first.q, changes[x].xi) for x in names])
        dv = np.array([changes[x].dv for x in names])
        node = passing.node(first.t, np.array(first.q), np.array(first.v), dq, dv)
        passing.fastest = max(largest(x / self.family.system.speed_units) for x in run.path.v)
        segments: list[SmoothStretch] = []
        times: dict[str, list[tuple[float, Array]]] = {}
        began, end = self.none, float(run.path.t[-1])
        behind: ChangedState | None
        boundaries = self._boundaries(first.t, end)
        laws = {t: self._breakpoint_changes(t, first.t, end) for t, event in boundaries if event is None}
        for t, event in boundaries:
            passing = self.passing
            following = min((x for x in laws if x >= t), default=np.inf)
            around = passing.smooth = passing.smooth[0], (following, laws.get(following, self.none))
            record, behind = Stages(), None
            jumps = event is None or event.kind == "time"  # laws may jump there: the step must not see it
            stop = float(np.nextafter(t, -np.inf)) if jumps else t
            last = passing.integrate(node, stop, record) if stop > node.t else node
            if event is None:
                dt = laws[t]
                later = min((x for x in laws if x > t), default=np.inf)
                passing.smooth = (t, dt), (later, laws.get(later, self.none))
                behind = passing.after(last, dt, None, None, float(np.nextafter(t, np.inf)))
            else:
                last, dt, behind = self._event(last, event)
                times.setdefault(event.name, []).append((last.t, dt))
            segments.append(SmoothStretch(node, record, last, began, dt, around, passing))
            if behind is None:
                return self._made(segments, times)
            node, began = behind, dt
        record, passing = Stages(), self.passing
        last = passing.integrate(node, end, record) if end > node.t else node
        segments.append(SmoothStretch(node, record, last, began, self.none, passing.smooth, passing))
        return self._made(segments, times)

    def _made(self, segments: list[SmoothStretch], times: dict[str, list[tuple[float, Array]]]) -> RunChanges:
        """The result, if the pass ends where the run does."""
        s, run, last = self.family.system, self.run, segments[-1].last
        p = run.path
        apart = largest(difference(s, p.q[-1], last.q) / s.speed_units)
        apart = max(apart, largest((p.v[-1] - last.v) / s.speed_units) / max(self.passing.fastest, 1e-300))
        if self.run.status == "finished" and apart > DIFFERS:
            raise LoopdynError(
                f"the pass with the changes differs from the run of '{s.name}' at its end by {apart:.2g} in natural "
                "units: the motion depends on rounding (it is chaotic), or an event was missed. Shorten the run, or "
                f"give a smaller rtol than {self.passing.rtol:g}."
            )
        return RunChanges(run, self.family, segments, times)

    def _boundaries(self, start: float, end: float) -> list[tuple[float, Event | None]]:
        """Breakpoints and events in the order of time."""
        found: list[tuple[float, Event | None]] = [
            (float(t), None) for t in time_breakpoints(self.family.system, start, end).tolist() if t < end
        ]
        found += [(e.t, e) for e in self.run.events if e.kind not in CHANGELESS and start < e.t <= end]
        return sorted(found, key=lambda x: x[0])

    def _breakpoint_changes(self, t: float, start: float, end: float) -> Array:
        """Changes (p,) of the time of a breakpoint of a profile or table."""
        times = time_breakpoints(self.family.system, start, end)
        k, count = int(np.argmin(np.abs(times - t))), len(times)

        def at(s: System) -> float:
            there = time_breakpoints(s, start, end)
            if len(there) != count:
                raise LoopdynError(
                    f"the number of breakpoints of the laws of '{s.name}' in the run changes with a parameter. End the "
                    "run at another time."
                )
            return float(there[k])

        found = self.family.by_parameter(at)
        return np.array([found[name] for name in self.family.parameters])

    # ------------------------------------------------------------------------------------------------ events

    def _event(self, last: ChangedState, event: Event) -> tuple[ChangedState, Array, ChangedState | None]:
        """State at an event, changes of its time, and node behind it; None where the run stops."""
        passing, names = self.passing, self.family.parameters
        if event.kind == "time":
            at = next(e for e in self.watch.times if e.name == event.name and abs(e.t - event.t) < 1e-9 * max(1, e.t))
            if at.stop:
                return last, self.none, None
            later = float(np.nextafter(last.t, np.inf))
            if isinstance(at.action, Lock | Release | Add):
                return last, self.none, self._change_phase(last, self.none, at.action, later)
            by = None
            if at.action is not None:
                found = at.action(last.state)
                by = {name: (np.zeros_like(found.q), np.zeros_like(found.v)) for name in names}
            return last, self.none, passing.after(last, self.none, at.action, by, later)
        k, watched = self._watched(event.name)
        if watched.leaves:
            return last, self.none, passing.after(last, self.none, None, None, last.t)
        last = self._located(last, watched)
        self._give_turns(k, watched, last.state)
        own = {
            name: self.family.difference(name, [w.crossings[k].guess(last.state) for w in watches])
            for name, watches in self.varied.items()
        }
        dt = passing.time_changes(last, watched.guess, own, event.name)
        if watched.event.stop or (watched.rest is not None and watched.rest(event.after)):
            return last, dt, None
        reset, by = watched.event.action, None
        if isinstance(reset, Lock | Release | Add):
            return last, dt, self._change_phase(last, dt, reset, last.t)
        if reset is not None:
            by = {}
            for name, watches in self.varied.items():
                states = [f(last.state) for w in watches if callable(f := w.crossings[k].event.action)]
                by[name] = (
                    self.family.difference(name, [x.q - states[0].q for x in states]),
                    self.family.difference(name, [x.v for x in states]),
                )
        return last, dt, passing.after(last, dt, reset, by, last.t)

    def _watched(self, name: str) -> tuple[int, Watched]:
        found = [(k, w) for k, w in enumerate(self.watch.crossings) if w.event.name == name and w.table is None]
        if len(found) != 1:
            raise LoopdynError(f"{len(found)} events are called '{name}'. Give each a name of its own.")
        return found[0]

    def _give_turns(self, k: int, watched: Watched, state: State) -> None:
        """Give the functions of the neighbours the full turns of angles at a state, which may be half a turn."""
        function = watched.event.function
        if not isinstance(function, MeasureFunction):
            return
        watched.guess(state)
        for watches in self.varied.values():
            for w in watches:
                other = w.crossings[k].event.function
                assert isinstance(other, MeasureFunction)
                other.restore(function.save())

    def _located(self, node: ChangedState, watched: Watched) -> ChangedState:
        """State at the zero of an event function next to a node."""
        passing = self.passing
        for _ in range(POLISHED):
            value = watched.guess(node.state)
            slope = float(
                passing.along(
                    lambda s: np.array([watched.guess(s)]), node, passing.rate(node.q, node.v), node.local.a, 1.0
                )[0]
            )
            h = -value / slope if slope else 0.0
            if abs(h) <= 4.0 * np.spacing(max(abs(node.t), 1.0)) or abs(h) > 1e-3 * abs(node.t):
                break
            new = passing.step(node, h)[0]
            node = passing.accepted(node.t + h, *new)
        return node

    def _change_phase(self, last: ChangedState, dt: Array, action: Lock | Release | Add, t: float) -> ChangedState:
        """State behind a change of constraints, and continue with these."""
        made = change_phase(self.passing, self.family, self.phase, last, dt, action, t)
        passing, self.phase, behind = made
        self._enter(passing)
        return behind


# ------------------------------------------------------------------------------------------- functionals


class Functionals:
    """Values and derivatives (p,) of functionals of a run."""

    def __init__(self, found: RunChanges):
        self.found, self.family = found, found.family
        self.system = found.family.system
        self._known: dict[float, dict[str, float]] = {}  # angles of the output by time

    def of(self, what: Functional) -> tuple[float, Array, str]:
        """Value, derivatives and unit."""
        if what.kind == "time":
            t, dt = self._time(what)
            return t, dt, "s"
        output = ChangingOutput(self.system, what.inside)
        self._known.clear()
        if what.kind == "end":
            last = self.found.segments[-1]
            y, dy, _ = self._at(output, last, last.last, last.ended)
            return y, dy, output.unit
        if what.kind in ("peak", "lowest"):
            sign = 1.0 if what.kind == "peak" else -1.0
            return *self._peak(output, sign, what.text), output.unit
        return self._mean(output, what.kind)

    def _time(self, what: Functional) -> tuple[float, Array]:
        name, _, number = what.inside.rpartition(",")
        times = self.found.times
        if not number.strip().isdigit():
            name, number = what.inside, "1"
        name, n = name.strip(), int(number)
        if name not in times:
            raise LoopdynError(f"no event '{name}' happened in this run. {nearest(name, times)}")
        if n > len(times[name]) or n < 1:
            raise LoopdynError(f"event '{name}' happened {len(times[name])} times, not {n}.")
        return times[name][n - 1]

    def _turns(self, output: ChangingOutput, node: ChangedState) -> dict[str, float]:
        """Angles at a node with the full turns that they have in the run."""
        if node.t not in self._known:
            p = self.found.run.path
            here, k = _path([node.state], [node.local.a]), int(np.searchsorted(p.t, node.t))
            pairs = ((p.t, here.t), (p.q, here.q), (p.v, here.v), (p.a, here.a), (p.t, here.along))
            self._known[node.t] = output.angles(self.system, Path(*(np.concatenate([x[:k], y]) for x, y in pairs)))
        return self._known[node.t]

    def _value(self, output: ChangingOutput, seg: SmoothStretch, node: ChangedState) -> float:
        turns = self._turns(output, node)
        return float(output.values(seg.passing.system, _path([node.state], [node.local.a]), turns)[0])

    @staticmethod
    def _derived(
        output: ChangingOutput,
        seg: SmoothStretch,
        path: Path,
        changes: Sequence[Sequence[Changes]],
        turns: Mapping[str, float],
    ) -> tuple[Array, Array]:
        """Values (n,) and derivatives (p, n) on a stretch."""
        family = seg.passing.family
        moves = {name: Moves([c[k] for c in changes]) for k, name in enumerate(family.parameters)}
        output.require_determined(family.system, path)
        values = output.values(family.system, path, turns)
        found = derivatives(family, output, path, moves, turns)
        return values, np.array([found[name] for name in family.parameters])

    def _at(
        self, output: ChangingOutput, seg: SmoothStretch, node: ChangedState, dt: Array
    ) -> tuple[float, Array, Array]:
        """Value at a node; its total derivatives if the time of the node changes by dt; and those at fixed time."""
        changes = seg.passing.changes(node)
        path = _path([node.state], [node.local.a])
        y, dy = self._derived(output, seg, path, [changes], self._turns(output, node))
        fixed = dy[:, 0]
        if not dt.any():
            return float(y[0]), fixed, fixed
        return float(y[0]), fixed + self._rate(output, seg, node) * dt, fixed

    @staticmethod
    def _rate(output: ChangingOutput, seg: SmoothStretch, node: ChangedState) -> float:
        """Rate of a quantity along the motion; of accelerations by a five-point difference of states nearby."""
        passing, s = seg.passing, seg.passing.system
        if output.level < ACCELERATION:
            flow = Moves([Changes(node.v, node.local.a, np.zeros(s.nv), 1.0)])
            return float(along_moves(s, output, _path([node.state], [node.local.a]), flow)[0])
        h = 1e-3 / max(passing.fastest, 1e-300)
        bare = Pass(Family(s, ()), passing.count, passing.rtol)
        here = bare.node(node.t, node.q, node.v, np.zeros((0, s.nq)), np.zeros((0, s.nv)))

        def at(x: float) -> float:
            q, v, _, _ = bare.step(here, x * h)[0]
            a = Local(s, State(node.t + x * h, q, v), passing.count).a
            return float(output.values(s, _path([State(node.t + x * h, q, v)], [a]))[0])

        return (8.0 * (at(1.0) - at(-1.0)) - (at(2.0) - at(-2.0))) / (12.0 * h)

    # ------------------------------------------------------------------------------------------- integrals

    def _mean(self, output: ChangingOutput, kind: str) -> tuple[float, Array, str]:
        """Integral, mean or RMS over the time of the run."""
        power = 2 if kind == "rms" else 1
        total, slope = 0.0, np.zeros(len(self.family.parameters))
        segments = self.found.segments
        for seg in segments:
            r = seg.record
            if r.states:
                y, dy = self._derived(output, seg, _path(r.states, r.a), r.changes, self._turns(output, seg.first))
                w = np.array(r.weights)
                total += float(w @ y**power)
                slope += power * (dy * y ** (power - 1)) @ w
            for node, dt, sign in ((seg.first, seg.began, -1.0), (seg.last, seg.ended, 1.0)):
                if dt.any():
                    at = self._value(output, seg, node)
                    slope += sign * at**power * dt
        if kind == "integral":
            return total, slope, f"{output.unit}*s"
        span, longer = segments[-1].last.t - segments[0].first.t, segments[-1].ended
        mean, dmean = total / span, slope / span - total * longer / span**2
        if kind == "mean":
            return mean, dmean, output.unit
        if mean == 0.0:
            raise LoopdynError(f"the RMS of '{output.text}' is zero, where it has no derivative.")
        return float(np.sqrt(mean)), dmean / (2.0 * np.sqrt(mean)), output.unit

    # ----------------------------------------------------------------------------------------------- peaks

    def _peak(self, output: ChangingOutput, sign: float, text: str) -> tuple[float, Array]:
        """Largest value, times the sign, and its derivatives; raises if two peaks are equal."""
        found: list[tuple[float, float, Array]] = []  # value times the sign, time, derivatives
        for k, seg in enumerate(self.found.segments):
            seg.passing.smooth = seg.smooth
            nodes = [seg.first, *seg.record.nodes]
            nodes = nodes if nodes[-1].t == seg.last.t else [*nodes[:-1], seg.last]
            slopes = [sign * self._rate(output, seg, n) for n in nodes]
            found += [
                self._inside(output, seg, low, high, sign)
                for (low, a), (high, b) in pairwise(zip(nodes, slopes, strict=True))
                if a > 0.0 > b
            ]
            later = k > 0 and self._continuous(output, k)  # its first state is the last one of the segment before
            if slopes[0] <= 0.0 and not (later and slopes[0] <= 0.0 < self._rate_before(output, k, sign)):
                found.append(self._end(output, seg, nodes[0], seg.began, sign))
            if slopes[-1] >= 0.0 and len(nodes) > 1:
                found.append(self._end(output, seg, nodes[-1], seg.ended, sign))
        found.sort(key=lambda x: -x[0])
        run = self.found.run
        seen, turns = np.zeros(0), None
        for s, a, b in run.pieces:
            p = run.path[a:b]
            path = Path(p.t, p.q, p.v, p.a, p.t)
            seen = np.append(seen, sign * output.values(s, path, turns))
            turns = output.angles(s, path, turns)
        span = max(float(np.ptp(seen)), 1e-300)
        if not found or float(seen.max()) > found[0][0] + EQUAL * span:
            raise LoopdynError(f"'{text}': a peak between two steps was missed. Give a smaller rtol.")
        if len(found) > 1 and found[0][0] - found[1][0] <= EQUAL * span:
            raise LoopdynError(
                f"'{text}' has two equal peaks, at t = {found[0][1]:.6g} and {found[1][1]:.6g} s: which is larger "
                "depends on the parameters, so there is no derivative. Take a shorter run, or the mean or RMS."
            )
        return sign * found[0][0], found[0][2]

    def _rate_before(self, output: ChangingOutput, k: int, sign: float) -> float:
        seg = self.found.segments[k - 1]
        return sign * self._rate(output, seg, seg.last)

    def _continuous(self, output: ChangingOutput, k: int) -> bool:
        """Whether a quantity is continuous at the start of a segment."""
        before, behind = self.found.segments[k - 1 : k + 1]
        a, b = self._value(output, before, before.last), self._value(output, behind, behind.first)
        return abs(a - b) <= 1e-12 * max(abs(a), abs(b))

    def _end(
        self, output: ChangingOutput, seg: SmoothStretch, node: ChangedState, dt: Array, sign: float
    ) -> tuple[float, float, Array]:
        """Value, time and derivatives at an end of a stretch."""
        value, slope, _ = self._at(output, seg, node, dt)
        return sign * value, node.t, slope

    def _inside(
        self, output: ChangingOutput, seg: SmoothStretch, low: ChangedState, high: ChangedState, sign: float
    ) -> tuple[float, float, Array]:
        """Peak between two nodes, where the rate of the quantity vanishes."""
        from scipy.optimize import brentq

        passing, span = seg.passing, high.t - low.t

        def at(x: float) -> ChangedState:
            return passing.accepted(low.t + x * span, *passing.step(low, x * span)[0]) if x > 0.0 else low

        def rate(x: float) -> float:
            return self._rate(output, seg, at(x))

        x = float(brentq(rate, 0.0, 1.0, xtol=1e-12))
        node = at(x)
        value, slope, _ = self._at(output, seg, node, np.zeros(len(self.family.parameters)))
        return sign * value, node.t, slope


def _path(states: Sequence[State], a: Sequence[Array]) -> Path:
    t = np.array([s.t for s in states])
    return Path(t, np.array([s.q for s in states]), np.array([s.v for s in states]), np.array(a), t)
