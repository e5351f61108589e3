"""From a closed state to a trajectory: solver, integrator, outputs, checks, progress."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from loopdyn.analysis.contradictions import beyond_tolerance, choose_again, look
from loopdyn.engine.status import FINE, PASSAGE, TURNED
from loopdyn.errors import ConvergenceError, LoopdynError, SingularityError, warn
from loopdyn.files import WritingError
from loopdyn.formulations.base import Formulation
from loopdyn.formulations.momentum.formulation import beside
from loopdyn.formulations.registry import DEFAULT, chosen, prepare_at, require_support
from loopdyn.integrators import chart
from loopdyn.integrators.base import (
    DRIFTS,
    Auto,
    Baumgarte,
    Drift,
    Integrator,
    Stepper,
    Stiff,
    depends_on_time,
    for_formulation,
    moves_by_itself,
)
from loopdyn.integrators.chart import Output
from loopdyn.integrators.stepping import ASKS, FINISHED, MANY_REJECTED, RUNNING
from loopdyn.interrupts import Stop, deferred, deferring
from loopdyn.loops.rank import Rank, dead_point, decide, require_regular
from loopdyn.quantities.wording import nearest
from loopdyn.results.run import Diagnostics, Run, Statistics, Trajectory, least_energy, measure, pieces, weight
from loopdyn.run.checkpoint import SOLVER, Checkpoint, description
from loopdyn.run.corners import corners, goes_beyond, leaves, passes_corner, table_corners
from loopdyn.run.events import Action, Event, Given, Watch, Watched, apply, watch, with_limits_of_model
from loopdyn.run.locking import Lock, Phase, Release, change, impulse_as_data, impulse_of, phase_of
from loopdyn.run.passages import Crossing, Passage, moving_energy, passage_by_one_step, passage_of, require_branch
from loopdyn.system.system import State, System, TableUse
from loopdyn.tree.functions import energy, terms
from loopdyn.tree.tables import check_tables, leave_table, table_place

Array = NDArray[np.float64]

# Outputs where none are asked for: one every 10 ms, but within these numbers.
INTERVAL, FEWEST, MOST = 0.01, 200, 5000
# Floating-point numbers that a span must hold, so that outputs and steps have times of their own, and seconds, so that
# squares of steps are no zeros.
RESOLVED, SHORTEST_SPAN = 1e5, 1e-100
# Residual, rad or sizes of the mechanism, of a start that counts as closed.
CLOSED = 1e-6
# ... at which loops count as open during a run: with corrections, and without.
OPEN, OPEN_UNCORRECTED = 1e-3, 0.1
# Error of the energy balance, as a share of the largest energy that moved, that counts as a blow-up ...
BLOW_UP = 0.5
SUSPICIOUS = 0.01  # ... and one that is warned of
LOST_WAY = 0.01  # ... the same in a passage of a singular pose
SAVE_EVERY = 10.0  # seconds of computing between two segments of a checkpoint
PULSE, MANY = 0.1, 1_000_000  # seconds of computing, and steps, between two looks at the progress
FEW = 16  # steps before the first look
MOST_OUTPUTS = 100_000_000  # times of a run: more is a slip, and would not fit into memory
WORTH = 100  # steps still to go, at their present size, from which it is worth going over to the stiff integrator
OWN = "by the steps themselves"  # drift control of formulations that make steps
# A step that may lead to a singular pose is taken if the indicator is above CLEAR at the ends of so many parts of it
# (more of them where it has a dip inside) and, by a parabola through them, over the next step.
CLEAR, LOOKS = 0.03, (2, 6)
PATIENCE = 10  # times a solver may ask to be prepared anew without a step in between


@deferring
def simulate(
    system: System,
    state: State,
    t_span: tuple[float, float],
    *,
    t_eval: ArrayLike | None = None,
    formulation: str | Formulation = DEFAULT,
    integrator: str | Integrator = "auto",
    rtol: float = 1e-8,
    atol: float | None = None,
    drift: Drift = "projection",
    events: Sequence[Given] = (),
    progress: bool | Callable[[float], object] = True,
    checkpoint: str | os.PathLike[str] | None = None,
) -> Run:
    """Integrate the motion of a mechanism.

    Parameters
    ----------
    system : System
    state : State
        A closed state, e.g. from :func:`loopdyn.assemble`, taken as that at the first time of `t_span`.
    t_span : (2,)
        First and last time in s.
    t_eval : array, optional
        Output times, ascending, inside the span. By default one every 10 ms, at least 200 and at most 5000 over the
        span. Steps of the integrator do not depend on them.
    formulation : str or Formulation
        How accelerations are found.
    integrator : str or Integrator
        "auto" (DOP853, and Stiff from where stability limits its steps, see ``run.events``), "dop853", "dp5", "stiff",
        or one with its options, e.g. ``ld.RK4(step=1e-3)``.
    rtol : float
        Error of a step: of positions in rad or sizes of the mechanism, of speeds relative to the fastest so far.
    atol : float, optional
        Added to it: rad or sizes of the mechanism, and the same per second. By default nothing is added, and the
        fastest speed so far counts as no smaller than a natural floor, a millionth of what gravity and stiffness give:
        in an equilibrium it is rounding. With a number there is no such floor.
    drift : str or Baumgarte
        What keeps loops closed: "projection" (one linear correction of position and velocity per step), "velocity"
        (of velocity alone), "baumgarte" (feedback), "none".
    events : list
        What is watched: :class:`Crossing`, :class:`At`, :class:`Limits`, or functions ``f(t, q, v)`` whose zeros are
        recorded. What happened is in ``run.events``. Limits of joints are watched in every run: what happens there is
        said by `at_limit` of the joint, if no :class:`Limits` is among the events.
    progress : bool or function
        Show a progress bar, where the output is a terminal; or call this function with the time reached, some ten times
        a second. Where it raises KeyboardInterrupt, the run ends with what was computed, as by Ctrl-C (a second Ctrl-C
        ends it at once).
    checkpoint : path, optional
        Folder to which segments of the run are added as it goes. Called again with the same arguments, a run that was
        interrupted or killed goes on from the last segment that is whole. With other arguments, functions of user
        forces and events included, it is refused.

    Returns
    -------
    Run
        Also where the simulation could not reach the end: see its `status` and `message`.

    Warns
    -----
    LoopdynWarning
        If a joint leaves its limits, or the relative energy-balance error is above 1 %.

    Examples
    --------
    >>> import loopdyn as ld
    >>> system = ld.library.four_bar().compile()
    >>> run = ld.simulate(system, ld.assemble(system), (0, 0.5), progress=False)
    >>> run.status, run.energy_error < 1e-7, run.largest_residual < 1e-9
    ('finished', True, True)
    """
    begin = time.perf_counter()
    start, end = _span(t_span)
    system = system.for_state(state)
    first = State(start, np.array(state.q, float), np.array(state.v, float))
    times = _times(t_eval, start, end)
    check_settings(rtol, atol, drift)
    events = with_limits_of_model(system, events)
    method = chosen(formulation)
    stepping = for_formulation(integrator, method)
    if stepping.walks and drift != "projection":
        raise LoopdynError(f"{method.name} closes loops by its own steps, in its own way. Leave drift out.")
    require_support(system, method)
    decided, singular = _rank_at(system, method, first)
    solver, rank = prepare_at(system, method, first, decided), decided.count
    _check_closed(system, first, "at the start")
    stepper = Stepper(system, solver, stepping, drift, rank, rtol, atol or 0.0)
    settings = _settings(method, stepper, rtol, atol)
    check_tables(system, [first])
    watched = watch(system, events, rank, first, end)
    watched.crossings += table_corners(system)
    simulation = _Simulation(
        system,
        stepper,
        times,
        end,
        drift,
        method,
        watched,
        settings,
        corners(system, start, end),
        singular=singular,
    )
    if checkpoint is not None:
        methods = {"formulation": method, "integrator": stepping}
        asked = description(system, first, times, end, events, methods, settings)
        simulation.checkpoint = Checkpoint(checkpoint, asked)
    run = simulation.go(first, progress, begin)
    for text in simulation.suspicious():
        warn(text)
    return run


def _rank_at(system: System, method: Formulation, state: State) -> tuple[Rank, bool]:
    """Rank of the rows at a state or, where it is singular and the method can go through, where its speeds lead.

    And whether it is singular.
    """
    decided = decide(system, state)
    try:
        require_regular(system, decided)
    except SingularityError:
        if not method.passes(system):
            raise
        require_branch(system, state, decided.count + 1)
        return decide(system, beside(system, state)), True
    return decided, False


def _settings(method: Formulation, stepper: Stepper, rtol: float, atol: float | None) -> dict[str, Any]:
    """How a run is made, as words and numbers."""
    drift, plan = stepper.drift, method.explains(stepper.system, stepper.solver)
    return {
        **({"plan": plan} if plan else {}),
        "formulation": repr(method),
        "integrator": repr(stepper.integrator),
        "rtol": rtol,
        "atol": atol,
        "drift": OWN if stepper.integrator.walks else repr(drift) if isinstance(drift, Baumgarte) else drift,
        "compiled": not stepper.in_python,
        "moved": moves_by_itself(stepper.system),
        **({"tolerated": str(stepper.system.tolerated)} if stepper.system.tolerated is not None else {}),
    }


# --------------------------------------------------------------------------------------------- what is given


def _span(t_span: tuple[float, float]) -> tuple[float, float]:
    span = np.asarray(t_span, float)
    if span.shape != (2,) or not np.isfinite(span).all() or not span[1] > span[0]:
        raise LoopdynError(f"t_span is {t_span}. Give the first and the last time in s, the last one being later.")
    start, end = span.tolist()
    if not SHORTEST_SPAN <= end - start < np.inf:
        raise LoopdynError(f"t_span is {t_span}, {end - start:g} s long. Give a span from {SHORTEST_SPAN:g} s on.")
    apart = float(np.spacing(max(abs(start), abs(end))))  # of two floating-point numbers there
    if end - start < RESOLVED * apart:
        raise LoopdynError(
            f"t_span is {t_span}: numbers as large as these times are {apart:.2g} s apart, too far for a span of "
            f"{end - start:g} s. Let time begin at 0."
        )
    return start, end


def output_times(start: float, end: float, every: float) -> Array:
    """Times at a distance of `every`, the last one of the span included.

    Examples
    --------
    >>> output_times(0.0, 1.0, 0.4)
    array([0. , 0.4, 0.8, 1. ])
    """
    if not (np.isfinite(every) and every > 0.0) or not end > start:
        raise LoopdynError(f"outputs every {every} s from {start:g} to {end:g} s. Give positive numbers of seconds.")
    if (end - start) / every > MOST_OUTPUTS:
        raise LoopdynError(f"outputs every {every:g} s from {start:g} to {end:g} s are more than {MOST_OUTPUTS:,}.")
    times = np.array([start + every * k for k in range(int(np.floor((end - start) / every + 1e-9)) + 1)])
    times[-1] = min(times[-1], end)
    return times if times[-1] > end - 1e-9 * every else np.array([*times, end])


def _times(t_eval: ArrayLike | None, start: float, end: float) -> Array:
    if t_eval is None:
        return np.linspace(start, end, 1 + int(np.clip(np.ceil((end - start) / INTERVAL), FEWEST, MOST)))
    times = np.array(t_eval, float)
    if times.ndim != 1 or not len(times) or not np.isfinite(times).all() or np.any(np.diff(times) <= 0.0):
        raise LoopdynError("t_eval must be a list of ascending times in s.")
    if times[0] < start or times[-1] > end:
        raise LoopdynError(f"t_eval goes from {times[0]:g} to {times[-1]:g} s, outside of t_span. Extend t_span.")
    return times


def check_settings(rtol: float, atol: float | None, drift: Any) -> None:
    """Refuse tolerances and drift controls that make no sense.

    Examples
    --------
    >>> check_settings(1e-8, None, "projektion")
    Traceback (most recent call last):
    ...
    loopdyn.errors.LoopdynError: there is no drift control 'projektion'. Did you mean 'projection'?
    """
    if not 0.0 < rtol < 1.0:
        raise LoopdynError(f"rtol is {rtol}. Give a number between 0 and 1, such as 1e-8.")
    if atol is not None and not (np.isfinite(atol) and atol >= 0.0):
        raise LoopdynError(f"atol is {atol}. Give zero or a positive number, such as 1e-10.")
    if not isinstance(drift, Baumgarte) and drift not in DRIFTS:
        raise LoopdynError(f"there is no drift control '{drift}'. {nearest(str(drift), DRIFTS)}")


def _check_closed(system: System, state: State, when: str, allowed: float = CLOSED) -> None:
    if system.nc == 0:
        return
    now, unit = terms(system, state), system.row_units
    holonomic = np.where(system.holonomic, now.phi / unit, 0.0)
    rate = (now.J @ state.v + now.phi_t) / unit
    fastest = max(1.0, float(np.abs(state.v / system.speed_units).max(initial=0.0)))
    for what, values, scale in (("open", holonomic, 1.0), ("opening", rate, fastest)):
        k = int(np.argmax(np.abs(values)))
        if abs(values[k]) > allowed * scale:
            raise LoopdynError(
                f"row '{system.constraint_rows[k]}' is {what} by {abs(values[k]):.2g} (rad or sizes of the mechanism"
                f"{', per s' if what == 'opening' else ''}) {when}. Close it first: ld.assemble(system, ...)."
            )


# ------------------------------------------------------------------------------------------------ the run


@dataclass(frozen=True)
class _Checks:
    """What is looked at in n new outputs."""

    gap: Array  # (n, nc) of the loops, rad or sizes of the mechanism
    balance: Array  # (n,) error of the energy, J
    scale: Array  # (n,) largest energy that moved so far, J
    wrong: NDArray[np.bool_]  # (n,)


@dataclass(frozen=True)
class _Independent:
    """Since when, in which phase, which speeds are independent."""

    t: float
    phase: int
    speeds: tuple[str, ...]


@dataclass
class _Simulation:
    """A run in the making."""

    system: System
    stepper: Stepper
    times: Array
    end: float
    drift: Drift
    method: Formulation
    watch: Watch
    settings: dict[str, Any]
    corners: Array  # of profiles and of tables of time, s
    checkpoint: Checkpoint | None = None
    singular: bool = False  # whether it starts in a singular pose
    events: list[Event] = field(default_factory=list)
    checked: int = 0  # outputs that have been looked at
    saved: int = 0  # outputs that are in a segment
    lost: float = 0.0  # energy that events took away, J
    partition: list[_Independent] = field(default_factory=list)
    crossing: Crossing | None = None  # a singular pose that is being passed
    passages: list[Passage] = field(default_factory=list)
    passed: float = -np.inf  # time up to which events are done inside a step that goes on behind them
    farthest: float = 0.0  # from a singular pose at which it was looked closer: indicator of momentum

    def __post_init__(self) -> None:
        s, n = self.system, len(self.times)
        m = n + 1  # one more for the place where an event stops the run
        self.t = np.append(self.times, np.nan)
        rows = (np.zeros((m, s.nq)), np.zeros((m, s.nv)), np.zeros((m, s.nv)), np.zeros((m, self.stepper.sources)))
        self.out = Output(self.t[:n], *rows, steps=np.zeros(m, np.int64))
        self.jumps = np.zeros(m)
        self.phases, self.solvers = [Phase(s, tolerated=s.tolerated)], [self.stepper.solver]
        self.entered: list[State] = []  # where each phase after the first one began
        self.weight = weight(s)
        self.scale = least_energy(s)
        self.reference = 0.0  # energy at the start
        self.error = 0.0  # of the energy, for the progress bar
        self.largest_error = 0.0  # of the energy, J
        if self.watch.compiled:
            self.stepper.watch(*self.watch.functions())

    @property
    def looks_itself(self) -> bool:
        """Whether crossings are looked for between all steps: these, or what is watched, are not compiled."""
        return bool(self.watch.crossings) and (self.stepper.in_python or not self.watch.compiled)

    @property
    def written(self) -> int:
        """Outputs so far."""
        return int(self.stepper.memory.count[chart.OUTPUT])

    def go(self, first: State, progress: bool | Callable[[float], object], begin: float) -> Run:
        """Start or resume, go on until something ends it, and give what there is."""
        self.stepper.allow(first.t, self.end)
        self.reference = moving_energy(self.system, first)
        done = self._resume()
        ready = time.perf_counter()
        if not done:
            self._note_partition(first.t)
            names = [w.event.name for w in self.watch.crossings if w.beyond_at_start]
            self.events += [Event(first.t, name, first, first) for name in names]
            if self.settings["atol"] is None:
                self.stepper.set_slowest(first)
            self._start(first)
            if self.times[0] == first.t:
                self._write(self.stepper.memory.y)
        status, message, whole = "failed", "", True
        with deferred() as stop, _Bar(self.system.name, first.t, self.end, progress, stop) as bar:
            try:
                status, message = self._advance(bar, stop)
            except KeyboardInterrupt:  # perhaps in the middle of a step: what was looked at is kept
                self.stepper.memory.count[chart.OUTPUT] = self.checked
                status, message, whole = "interrupted", f"stopped by the user at t = {self.stepper.t:g} s", False
            except LoopdynError as error:
                message = f"at t = {self.stepper.t:g} s: {error}"
        integrating = time.perf_counter() - ready
        if status == "failed" and (dead := dead_point(self.system, self._last_pose())):
            message = f"{message} At t = {self.stepper.t:.9g} s {dead}"
        if status in ("finished", "interrupted") and whole:
            try:
                self._save()
            except WritingError as error:
                warn(f"the last segment of the checkpoint is missing: {error}")
        return self._result(status, message, time.perf_counter() - begin, integrating)

    def _last_pose(self) -> State:
        """Pose at the end of the last step that was accepted, at rest."""
        m = self.stepper.memory
        q = self.stepper.unwrapped(m.q1 if m.count[chart.PENDING] else m.q)
        return State(self.stepper.t, q, np.zeros(self.system.nv))

    def _start(self, first: State) -> None:
        """Begin at a state, which may be a singular pose."""
        end = self._next_stop(first.t)
        self.stepper.aim(end)
        if self.singular and self._begins_passage(first):
            return
        try:
            self.stepper.start(first, end)
        except SingularityError:
            if not self._begins_passage(first):
                raise

    def _start_anew(self, state: State, works: Array, before: State) -> None:
        """Begin once more behind what happened at the state `before`, up to which `works` were done.

        Inside a passage another one begins: momentum steps go on.
        """
        end = self._next_stop(state.t)
        if self.crossing is None:
            self.stepper.start(state, end, works)
        else:
            largest = self.crossing.largest
            self._leave_passage(before, works)
            self.stepper.aim(end)
            self._begins_passage(state, works, largest)

    def _next_stop(self, t: float) -> float:
        """Just before the next time event or corner, or the end: a step that ends there must not meet what jumps."""
        due = [e.t for e in self.watch.times if t < e.t < self.end]
        due += self.corners[np.searchsorted(self.corners, t, side="right") :][:1].tolist()
        return min([float(np.nextafter(x, -np.inf)) for x in due] + [self.end])

    @property
    def _stop(self) -> float:
        """Where the run must stop next, or should have stopped in the last step."""
        return self._next_stop(max(float(self.stepper.memory.clock[chart.START]), self.passed))

    def _write(self, y: Array) -> None:
        chart.write(self.stepper.ints, self.stepper.work, self.stepper.memory, self.out, y)

    def _advance(self, bar: _Bar, stop: Stop) -> tuple[str, str]:
        limit, asked, saved = FEW, 0, time.perf_counter()
        landed = False  # a step has been taken whose outputs are still to be written
        while True:
            if stop.wanted and not landed:
                return "interrupted", f"stopped by the user at t = {self.stepper.t:g} s"
            m, tick = self.stepper.memory, time.perf_counter()
            before = int(m.count[chart.ACCEPTED])
            closely = (
                self.looks_itself
                or self.system.tolerated is not None
                or self.crossing is not None
                or m.clock[chart.END] > self._stop
                or self.watch.holds(self.stepper.t if not landed else float(m.clock[chart.START]))
            )
            code = self.stepper.run(self.out, 0 if landed else 1 if closely else limit)
            stepped = landed or m.count[chart.ACCEPTED] > before
            elapsed = time.perf_counter() - tick
            limit = max(1, int(min(4 * limit, limit * PULSE / max(elapsed, 1e-6), MANY)))
            asked = asked + 1 if code == ASKS and not stepped else 0
            landed = code == ASKS and m.count[chart.PENDING] == 1
            if code == ASKS and self._is_blocked:
                if self._steps_past_stop():
                    continue
                return "failed", self._what_blocks()
            if self.crossing is not None and self._looks_beside_singular_pose(code, stepped):
                continue
            if code == ASKS and asked <= PATIENCE:
                if self._asks_in_vain():
                    continue
                self._note_partition(self.stepper.t)
                continue
            crossing, stepper = self.crossing, self.stepper
            look = stepped and (closely or m.count[chart.SEEN] == 1)
            ended = self._what_happens(look) if code in (RUNNING, FINISHED) else None
            self._note_steps()
            wrong = self._look()
            if wrong:
                return "failed", wrong
            if ended is not None:
                return ended
            if stepped and code == RUNNING and (wrong := self._check_tolerated()):
                return "failed", wrong
            bar.show(self.stepper.t, self.error)
            if code not in (RUNNING, FINISHED):
                if m.count[chart.STATUS] == TURNED:
                    return "failed", self._why()
                if self._stays_clear():
                    landed = True
                    continue
                if self._begins_passage():
                    continue
                return "failed", self._why()
            if stepped and crossing is not None and self.stepper is stepper and crossing.is_over():
                self._go_on_regularly(crossing)
            if self.stepper.finds_it_stiff:
                self._go_stiff_if_worth_it()
            if time.perf_counter() - saved > SAVE_EVERY:
                self._save()
                saved = time.perf_counter()

    # ----------------------------------------------------------------------------------- singular poses

    def _asks_in_vain(self) -> bool:
        """Prepare the solver anew, as it asks; where the pose is nearly singular, begin a passage and return True."""
        try:
            if self._is_low() and self._begins_passage():
                return True
            self.stepper.again()
        except SingularityError:
            if not self._begins_passage():
                raise
            return True
        return False

    def _is_low(self) -> bool:
        """Whether the pose at which the solver asks is close to a singular one."""
        monitor, w = self.stepper.monitor, self.stepper.views
        return monitor is not None and monitor.near_singular(State(float(w.t[0]), w.q.copy(), w.v.copy()))

    def _stays_clear(self) -> bool:
        """Look closer at a step that may lead to a singular pose; True if it does not and is taken."""
        stepper, m, nv = self.stepper, self.stepper.memory, self.system.nv
        monitor = stepper.monitor
        if monitor is None or self.crossing is not None or m.count[chart.STATUS] != PASSAGE:
            return False
        monitor.hold_step()
        start, stop = float(m.clock[chart.START]), float(m.clock[chart.STOP])
        momentum = monitor.momentum
        parts = np.arange(1, looks := LOOKS[monitor.dips]) / looks
        try:
            inside = [stepper.inside(start + x * (stop - start)) for x in parts]
        except SingularityError:  # states between its ends are not closed: it leads across a singular pose
            return False
        # the indicator of momentum does not depend on which rows `graph` has chosen
        seen = [momentum.begin(start, m.q, m.y[nv : 2 * nv])]
        places = [(s.t, s.q, s.v) for s in inside] + [(stop, m.q1, m.v1)]
        for place in places:
            last = momentum.look(*place)
            seen.append(momentum.indicator_at(last))
        self.farthest = max(self.farthest, *seen)
        if not (momentum.stays(last) and _is_clear(np.array(seen), CLEAR * self.farthest)):
            return False
        monitor.take_step()
        return True

    def _steps_past_stop(self) -> bool:
        """Allow momentum steps to end behind the next stop, where the mechanism is in a singular pose.

        The state there is then taken from inside a step, as long as no force may jump in it.
        """
        stop, walker = self._stop, self.stepper.walker
        may_jump = stop < self.end or any(e.t == stop for e in self.watch.times) or bool((self.corners == stop).any())
        if may_jump and depends_on_time(self.system):
            return False
        self.stepper.aim(float(self.stepper.memory.clock[chart.END]) + walker.first)
        self.stepper.memory.clock[chart.NEXT] = walker.first
        return True

    def _begins_passage(self, start: State | None = None, works: Array | None = None, largest: float = 0.0) -> bool:
        """Hand over to momentum steps where the regular method cannot go on or start, if it may; False if not."""
        monitor = self.stepper.monitor
        if self.crossing is not None or monitor is None:
            return False
        self.crossing = Crossing(self.stepper, monitor, start, works, largest)
        self.stepper = self.crossing.stepper
        return True

    def _looks_beside_singular_pose(self, code: int, stepped: bool) -> bool:
        """Whether the last step of a crossing led to another circuit, and is made again."""
        crossing = self.crossing
        if crossing is None:
            return False
        if code == ASKS and crossing.through:
            self.stepper = crossing.change()
        elif code == ASKS or (stepped and crossing.must_be_undone()):
            self.stepper = crossing.undo()
        else:
            return False
        self._take_back(self.stepper.t)
        return True

    def _go_on_regularly(self, crossing: Crossing) -> None:
        """Take up the regular method behind a singular pose, and book the passage."""
        self._book_passage(crossing)
        self.crossing = None
        self._check_passage(crossing)
        self.stepper = crossing.leave()
        self.stepper.aim(self._next_stop(self.stepper.t))  # momentum steps may have aimed behind the end

    def _leave_passage(self, state: State, works: Array) -> None:
        """End a passage that is being made, if there is one, where the run begins anew."""
        crossing, self.crossing = self.crossing, None
        if crossing is None:
            return
        if self.stepper.memory.count[chart.ACCEPTED] > crossing.steps:
            crossing.end_at(state, works)
            self._book_passage(crossing)
            self._check_passage(crossing)
        regular = crossing.regular
        regular.memory.count[:] = self.stepper.memory.count
        regular.memory.count[chart.PENDING] = 0
        self.stepper = regular

    def _note_steps(self) -> None:
        """Book what happened in steps that the formulation made itself, which nothing else tells."""
        walker, now = getattr(self.stepper, "walker", None), self.stepper.t
        if walker is None:
            return
        for t in walker.guessed:
            name = "state in a singular pose, where no step ends: it is taken from both ends of a step"
            if all((e.t, e.name) != (t, name) for e in self.events):
                state = self.stepper.state()
                self.events.append(Event(t, name, state, state))
        walker.guessed.clear()
        if self.crossing is None:
            for made in walker.crossed:
                if made.poses[0].t <= now:  # an event may have taken the step back
                    passage = passage_by_one_step(self.stepper.system, made, self.stepper.rank)
                    self.passages.append(passage)
                    what = str(passage)
                    self.events.append(Event(passage.start, what, made.start, made.stop, impulse=passage.impulses))
            walker.crossed.clear()

    def _book_passage(self, crossing: Crossing) -> None:
        made = crossing.passage()
        self.passages.append(made)
        self.events.append(Event(made.start, str(made), crossing.start, crossing.reached, impulse=made.impulses))

    def _check_passage(self, crossing: Crossing) -> None:
        """Refuse to go on behind a passage in which energy came or went: it did not follow the motion."""
        system, jump = crossing.stepper.system, self.passages[-1].energy_jump
        ends = crossing.start, crossing.reached
        moved = [abs(moving_energy(system, s) - self.reference) for s in ends]
        moved += [energy(system, s).kinetic for s in ends]
        if abs(jump) > LOST_WAY * max(self.scale, *moved):  # outputs may be far apart
            raise LoopdynError(
                f"energy changed by {jump:.2g} J in the passage of a singular pose, more than {LOST_WAY:.0%} of what "
                "moves. Use smaller tolerances, or move what happens there."
            )

    def _go_stiff_if_worth_it(self) -> None:
        """Hand over to the stiff integrator, and say so, unless the end is near."""
        before = self.stepper
        h, state = float(before.memory.clock[chart.SIZE]), before.state()
        if isinstance(before.integrator, Auto) and self.end - state.t > WORTH * h:
            self.stepper = before.with_integrator(before.integrator.stiff())
            self.stepper.start(state, float(before.memory.clock[chart.END]), before.memory.new[2 * self.system.nv :])
            self.stepper.memory.clock[chart.NEXT] = h
            name = f"stiff: stability, not accuracy, limits steps to {h:.2g} s; {self.stepper.integrator!r} goes on"
            self.events.append(Event(state.t, name, state, state))

    # -------------------------------------------------------------------------------- rows left open

    def _check_tolerated(self) -> str:
        """Look at the redundant rows that are left open within a tolerance; what is wrong, if the run cannot go on.

        Where they leave the tolerance, or those that are kept get close to depending on each other, others are left
        open from here on, which is an event.
        """
        system = self.phases[-1].system
        if system.tolerated is None or system.exact is None or self.crossing is not None:
            return ""
        state = self.stepper.state()
        watched = look(system, state)
        if not (watched.beyond or watched.weak):
            return ""
        found = choose_again(system, state)
        if found is not None:
            self._leave_open(*found, state)
            return ""
        return beyond_tolerance(watched, f"t = {state.t:g} s")

    def _leave_open(self, system: System, after: State, state: State) -> None:
        """Go on with other redundant rows left open."""
        works = self.stepper.works.copy()
        before = self.phases[-1]
        self._enter(replace(before, system=system, first=self.written, tolerated=system.tolerated), after)
        loss = moving_energy(before.system, state) - moving_energy(system, after)
        rows = [", ".join(s.tolerated.rows) if s.tolerated else "none" for s in (before.system, system)]
        self.events.append(Event(state.t, f"left open: {rows[0]} -> {rows[1]}", state, after, loss))
        self.lost += loss
        self.jumps[self.written :] = self.lost
        self._start_anew(after, works, state)
        self._note_partition(state.t)

    # ---------------------------------------------------------------------------------------------- events

    def _what_happens(self, look: bool) -> tuple[str, str] | None:
        """Crossings, if they are to be looked for, and time events in the last step, in their order.

        Status and message, if they end the run.
        """
        while True:
            stop = self._stop
            stopped = self._crossings(stop) if look and self.watch.crossings else ""
            if not stopped and self.stepper.t < stop:
                return None
            stopped = stopped or self._time_events(stop)
            if stopped:
                return "stopped", stopped
            if stop >= self.end:
                if self.crossing is not None:
                    self.crossing.end_at(self.stepper.inside(stop), self.stepper.works)
                return "finished", f"reached t = {self.end:g} s"

    def _crossings(self, stop: float) -> str:
        """Look for crossings in the last step until the next stop; why the run stops, if it does."""
        try:
            return self._crossings_in_step(stop)
        except ConvergenceError:
            crossing, walker = self.crossing, getattr(self.stepper, "walker", None)
            if crossing is None or walker is None or walker.poses:
                raise
            self.stepper = crossing.change()  # the motion is not smooth beside a singular pose, which it misses
            self._take_back(self.stepper.t)
            return ""

    def _crossings_in_step(self, stop: float) -> str:
        m, stepper = self.stepper.memory, self.stepper
        start, stop = max(float(m.clock[chart.START]), self.passed), min(float(m.clock[chart.STOP]), stop)
        end = stepper.state() if stop == m.clock[chart.STOP] else stepper.inside(stop)
        curve = stepper.on_curve
        walker = getattr(stepper, "walker", None)
        if walker is not None and walker.extrapolate:
            if not self.watch.sees(curve, start, stop, end):
                return ""
            curve = walker.on_polynomial
        while (found := self.watch.find(curve, start, stop, end)) is not None:
            state, event, works = stepper.inside(found.t), found.watched.event, stepper.works
            table = found.watched.table
            if table is not None and passes_corner(self.watch.system, found, curve(start), end):
                left = leaves(self.watch.system, found, state)
                left = left and goes_beyond(self.watch.system, table, curve, found.t, stop)
                self._take_back(found.t)
                if left:
                    self._leave_table(table, state)
                self._start_anew(state, works, state)
                return ""
            if event.stop or event.action is not None:
                self._take_back(found.t)
                return self._happen(event.name, state, works, event.stop, event.action, found.watched)[0]
            if found.watched.table is None:
                self.events.append(Event(found.t, event.name, state, state))
            start = found.t
        return ""

    def _leave_table(self, table: TableUse, state: State) -> None:
        """Say once that a table is left; raises where that is an error."""
        name = f"{table.element} leaves its table of {table.of}"
        if table.lookup.outside != "extend" and all(e.name != name for e in self.events):
            self.events.append(Event(state.t, name, state, state))
            leave_table(table, f" at t = {state.t:.6g} s")

    def _time_events(self, now: float) -> str:
        """Whatever is due now; why the run stops, if it does. What follows begins just behind it."""
        behind = float(np.nextafter(now, np.inf))
        due = [e for e in self.watch.times if now <= e.t <= behind]
        corner = self.corners[np.searchsorted(self.corners, now) :][:1]
        if not due and not (corner <= behind).any():
            return ""
        reached = self.stepper.inside(now)
        works = self.stepper.works
        if self.stepper.t > now and not any(e.stop or e.action for e in due):  # see `_steps_past_stop`
            self.events += [Event(now, e.name, reached, reached) for e in due]
            self.passed = behind
            self.stepper.aim(max(self.stepper.t, self._stop))
            return ""
        self._take_back(now)
        for table in self.system.tables:
            if table_place(self.system, table) == 0 and (table.lookup.knots[-1] == corner).any():
                self._leave_table(table, reached)
        if not due:
            reached = State(float(np.nextafter(corner[0], np.inf)), reached.q, reached.v)
        for event in due:
            stopped, after = self._happen(event.name, reached, works, event.stop, event.action, None)
            if stopped:
                return stopped
            reached = State(min(float(np.nextafter(event.t, np.inf)), self.end), after.q, after.v)
        self._start_anew(reached, works, reached)
        return ""

    def _take_back(self, t: float) -> None:
        """Remove outputs after t: the steps that gave them are not taken."""
        count = self.stepper.memory.count
        self.checked = min(self.checked, int(np.searchsorted(self.times, t, side="right")))
        count[chart.OUTPUT] = min(count[chart.OUTPUT], int(np.searchsorted(self.times, t, side="right")))

    def _happen(
        self, name: str, state: State, works: Array, stop: bool, action: Action | None, watched: Watched | None
    ) -> tuple[str, State]:
        """Book an event that stops the run or changes its state, and begin anew behind it.

        Why the run stops, if it does, and the state behind it.
        """
        impulse = None
        if isinstance(action, Lock | Release):
            phase, jump = change(self.system, self.phases[-1], state, action, self.written)
            after, loss, impulse = jump.state, jump.energy_loss, jump.impulse
            if not stop:
                self._leave_passage(state, works)  # the regular method goes on with the new constraints
                self._enter(phase, after)
        else:
            after = state if action is None else apply(action, state, name)
            if action is not None:
                inexact = 10.0 * float(self.settings["rtol"])  # as the state before is
                _check_closed(self.watch.system, after, f"after the action of '{name}'", max(CLOSED, inexact))
                if self.stepper.integrator.walks:  # beside singular poses, as far as one knows
                    require_branch(self.watch.system, after, self.watch.rank, inexact)
            loss = moving_energy(self.system, state) - moving_energy(self.system, after) if action is not None else 0.0
        self.events.append(Event(state.t, name, state, after, loss, impulse))
        rests = not stop and watched is not None and watched.rest is not None and watched.rest(after)
        if stop or rests:
            if self.written == 0 or self.t[self.written - 1] < state.t:
                self.t[self.written] = state.t
                self.stepper.inside(state.t)
                self._write(self.stepper.memory.stage)
            if self.crossing is not None:
                self.crossing.end_at(state, works)
            if rests:
                return f"{name}: it comes to rest there at t = {state.t:g} s. To go on, lock the joint: ld.Lock.", after
            return f"{name} at t = {state.t:g} s", after
        self.lost += loss
        self.jumps[self.written :] = self.lost
        self._start_anew(after, works, state)
        self._note_partition(state.t)
        return "", after

    def _enter(self, phase: Phase, state: State) -> None:
        """Go on with the constraints of another phase; the stepper is still to be started."""
        system = phase.system
        require_support(system, self.method)
        decided = decide(system, state)
        rank, solver = decided.count, prepare_at(system, self.method, state, decided)
        self.watch.system, self.watch.rank = system, rank
        self.stepper = self.stepper.with_system(system, solver, rank)
        self.phases.append(phase)
        self.solvers.append(solver)
        self.entered.append(state)
        if "plan" in self.settings:
            plan = f"{self.settings['plan']}\nfrom t = {state.t:g} s on: {self.method.explains(system, solver)}"
            self.settings = self.settings | {"plan": plan}

    def _note_partition(self, t: float) -> None:
        """Book which speeds are independent from now on, where a solver has such; a change is an event."""
        coordinates = self.stepper.coordinates
        active = None if coordinates is None else coordinates.active
        phase = len(self.phases) - 1
        last = self.partition[-1] if self.partition else None
        if active is None or (last is not None and (last.phase, last.speeds) == (phase, active)):
            return
        if last is not None and last.speeds != active:
            before, now = (", ".join(speeds) or "none" for speeds in (last.speeds, active))
            state = self.stepper.state()
            self.events.append(Event(t, f"independent: {before} -> {now}", state, state))
        self.partition.append(_Independent(t, phase, active))

    # ----------------------------------------------------------------------------------------- checkpoints

    def _save(self) -> None:
        """Outputs since the last segment, and all that is needed to go on; not where that is only for a short time."""
        if self.checkpoint is None or self.crossing is not None or self.passed > self.stepper.memory.clock[chart.START]:
            return
        n, o = self.written, self.out
        first = min(self.saved, n)
        data = {f"memory_{name}": array for name, array in self.stepper.memory._asdict().items()}
        data |= {f"{SOLVER}{name}": array for name, array in self.stepper.choice().items()}
        rows = {"q": o.q, "v": o.v, "a": o.a, "work": o.work, "steps": o.steps, "jumps": self.jumps}
        data |= {f"output_{name}": array[first:n] for name, array in rows.items()}
        data["first"] = np.array(first)
        data["stiff"] = np.array(isinstance(self.stepper.integrator, Stiff))
        data["scalars"] = np.array([self.scale, self.reference, self.lost, self.error])
        data["held"] = np.array([(w.since, w.held) for w in self.watch.crossings])
        data["phases"] = np.array(json.dumps([p.as_data() for p in self.phases]))
        data["event_impulses"] = np.array(json.dumps([impulse_as_data(e.impulse) for e in self.events]))
        data["event_names"] = np.array([e.name for e in self.events], str)
        data["event_numbers"] = np.array([[e.t, e.energy_loss] for e in self.events]).reshape(-1, 2)
        for name in ("state", "after"):
            states = [getattr(e, name) for e in self.events]
            data[f"event_{name}"] = np.array([np.concatenate([s.q, s.v]) for s in states])
        data["entered"] = np.array([[s.t, *s.q, *s.v] for s in self.entered])
        data["passages"] = np.array(json.dumps([p.as_data() for p in self.passages]))
        data["partition"] = np.array(json.dumps([asdict(x) for x in self.partition]))
        self.checkpoint.add(data)
        self.saved = n

    def _resume(self) -> bool:
        """Take up where the last segment ended; False if there is none."""
        last: dict[str, Any] = {}
        checkpoint = self.checkpoint
        if checkpoint is None:
            return False
        for last in checkpoint.read():
            with checkpoint.understood():
                self._take_outputs(checkpoint, last)
        if last:
            with checkpoint.understood():
                self._take_up(checkpoint, last)
        return bool(last)

    def _take_outputs(self, checkpoint: Checkpoint, segment: dict[str, Any]) -> None:
        o, first, n = self.out, int(segment["first"]), len(segment["output_q"])
        if not 0 <= first <= self.saved or first + n > len(self.t):
            raise checkpoint.misfit(f"it has outputs {first} to {first + n} of {len(self.times)}")
        rows = {"q": o.q, "v": o.v, "a": o.a, "work": o.work, "steps": o.steps, "jumps": self.jumps}
        for name, array in rows.items():
            place = array[first : first + n]
            place[...] = checkpoint.fits(f"output_{name}", segment.get(f"output_{name}"), place)
        self.saved = first + n

    def _take_up(self, checkpoint: Checkpoint, last: dict[str, Any]) -> None:
        """All but the outputs, from the last segment."""
        phases = [phase_of(self.system, data) for data in json.loads(str(last["phases"]))[1:]]
        for phase, (t, *qv) in zip(phases, last["entered"], strict=True):
            self._enter(phase, self._packed(float(t), np.array(qv)))
        if last["stiff"] and isinstance(self.stepper.integrator, Auto):
            self.stepper = self.stepper.with_integrator(self.stepper.integrator.stiff())
        checkpoint.restore_memory(self.stepper.memory, last, self.saved)
        self.stepper.recall(checkpoint.choices(self.stepper.choice(), last, self.system))
        scalars = checkpoint.fits("scalars", last.get("scalars"), np.zeros(4))
        self.scale, self.reference, self.lost, self.error = scalars.tolist()
        for watched, (since, held) in zip(self.watch.crossings, last["held"], strict=True):
            watched.hold(float(since), float(held))
        self.events = [
            Event(
                float(t), str(name), self._packed(t, before), self._packed(t, after), float(loss), impulse_of(impulse)
            )
            for name, (t, loss), before, after, impulse in zip(
                last["event_names"],
                last["event_numbers"],
                last["event_state"],
                last["event_after"],
                json.loads(str(last["event_impulses"])),
                strict=True,
            )
        ]
        self.checked = self.written
        self.jumps[self.written :] = self.lost
        self.passages = [passage_of(p) for p in json.loads(str(last["passages"]))]
        self.partition = [
            _Independent(x["t"], x["phase"], tuple(x["speeds"])) for x in json.loads(str(last["partition"]))
        ]

    def _packed(self, t: float, qv: Array) -> State:
        return State(float(t), qv[: self.system.nq], qv[self.system.nq :])

    # -------------------------------------------------------------------------------------- what can go wrong

    def _look(self) -> str:
        """Check the outputs that are new; the first one that is wrong and all after it are taken back."""
        for system, start, stop in pieces(self.phases, self.checked, self.written):
            path = self._path(start, stop)
            checks = self._checks(system, path, measure(system, path))
            bad = np.flatnonzero(checks.wrong)
            if bad.size:
                k = int(bad[0])
                self.stepper.memory.count[chart.OUTPUT] = start + k
                return self._what(system, path, checks, k)
            self.scale = float(checks.scale[-1])
            self.largest_error = max(self.largest_error, float(checks.balance.max()))
            self.error = float(checks.balance[-1]) / self.scale if self.scale > 0.0 else 0.0
            self.checked = stop
        return ""

    def _checks(self, s: System, path: Trajectory, found: Diagnostics) -> _Checks:
        moved = found.energy.sum(axis=1) - self.reference
        finite = np.isfinite(path.q).all(axis=1) & np.isfinite(path.a).all(axis=1)
        gap = np.where(s.holonomic, np.abs(found.residual[:, 0]) / s.row_units, 0.0)
        balance = np.abs(moved - path.work.sum(axis=1) + self.jumps[self.checked : self.checked + len(path)])
        largest = np.max([found.energy[:, 0], np.abs(moved), np.abs(path.work).max(axis=1, initial=0.0)], axis=0)
        scale = np.maximum.accumulate(np.append(self.scale, largest))[1:]
        # at rest at both ends of a swing nothing seems to have moved: what gravity could move is counted too
        lifted = self.weight * s.size if s.model.gravity.any() else 0.0
        wrong = ~finite | (gap.max(axis=1, initial=0.0) > (OPEN if self._corrects else OPEN_UNCORRECTED))
        return _Checks(gap, balance, scale, wrong | (balance > BLOW_UP * np.maximum(scale, lifted)))

    def suspicious(self) -> list[str]:
        """What is to be warned of after the run."""
        found = list(self.watch.unseen)
        for w in self.watch.crossings:
            times = [e.t for e in self.events if w.leaves and e.name == w.event.name]
            if w.beyond_at_start:
                found.append(f"{w.beyond_at_start}. The run goes on there: at_limit: warn.")
            elif times:
                found.append(
                    f"{w.event.name} from t = {min(times):.6g} s on: the run goes on as if there were none. With "
                    "at_limit: stop, or {rebound: 0.5}, beside the limits of the joint it ends there, or rebounds."
                )
        if self.largest_error > SUSPICIOUS * self.scale > 0.0:
            found.append(
                f"the relative energy-balance error of the run is {self.largest_error / self.scale:.1%}, more than "
                f"{SUSPICIOUS:.0%}. Use a smaller rtol or smaller steps; a force that jumps needs an event."
            )
        return found

    @property
    def _corrects(self) -> bool:
        return self.drift in ("projection", "baumgarte") or isinstance(self.drift, Baumgarte)

    def _what(self, s: System, path: Trajectory, checks: _Checks, k: int) -> str:
        """What is wrong with output k."""
        t = path.t[k]
        for values, labels, what in ((path.q, s.coordinates, "coordinate"), (path.a, s.speeds, "acceleration")):
            bad = np.flatnonzero(~np.isfinite(values[k]))
            if bad.size:
                return f"the {what} of '{labels[bad[0]]}' is not a finite number at t = {t:g} s. Use smaller steps."
        gap = checks.gap[k]
        if gap.max(initial=0.0) > (OPEN if self._corrects else OPEN_UNCORRECTED):
            row = s.constraint_rows[int(np.argmax(gap))]
            hint = "Use smaller tolerances or steps"
            hint = hint if self._corrects else 'Use drift="projection", or smaller tolerances'
            return (
                f"'{row}' is open by {gap.max():.2g} (rad or sizes of the mechanism) at t = {t:g} s. {hint}, and look "
                "at the pose: near a singular one, try another formulation."
            )
        fast = int(np.argmax(np.abs(path.v[k] / s.speed_units)))
        return (
            f"energy is off by {checks.balance[k]:.3g} J at t = {t:g} s, more than half of what moves; the fastest is "
            f"'{s.speeds[fast]}' at {path.v[k, fast]:.3g} (rad/s or m/s). Use smaller steps or tolerances."
        )

    def _why(self) -> str:
        """What made a chunk of steps fail, in words."""
        m, s = self.stepper.memory, self.system
        status, t = int(m.count[chart.STATUS]), float(m.clock[chart.START])
        if status != FINE:
            return f"after t = {t:g} s: {self.stepper.failure(status)}"
        if self.crossing is not None:
            return (
                f"steps shrink to nothing at t = {t:.9g} s beside a singular pose, from which the mechanism hardly "
                "moves on: rounding would decide on which branch. End the run before, or use larger tolerances."
            )
        if m.count[chart.RETRIED] >= MANY_REJECTED:
            return (
                f"{MANY_REJECTED} tries of one step were rejected in a row at t = {t:.9g} s, the last with a size of "
                f"{m.clock[chart.SIZE]:.2g} s: errors do not fall with the step. If hardly anything moves there, give "
                "atol, such as 1e-9; else a force may jump (use an event), or rtol may be too small."
            )
        change = np.abs(m.k[: len(m.k), s.nv : 2 * s.nv] / s.speed_units)
        worst = s.speeds[int(np.argmax(np.nanmax(change, axis=0)))] if s.nv else ""
        return (
            f"steps shrink to nothing at t = {t:.9g} s, where the acceleration of '{worst}' is largest. The pose may "
            "be singular (look at ld.mobility there), a force may jump (use an event), or rtol may be too small."
        )

    @property
    def _is_blocked(self) -> bool:
        """Whether the run is to stop in a singular pose next, where no step ends."""
        walker = getattr(self.stepper, "walker", None)
        return walker is not None and walker.blocked

    def _what_blocks(self) -> str:
        """Why no step can end at the next stop, in words."""
        stop = self._stop
        due = next((e for e in self.watch.times if stop <= e.t <= np.nextafter(stop, np.inf)), None)
        what = "a corner of a profile or table" if due is None else f"'{due.name}'"
        return (
            f"no step can end at t = {stop:.9g} s, the time of {what}: the pose is singular there, and forces, which "
            "depend on time, may jump. Move it a little, or use a larger rtol; if nothing happens there, ask for "
            "an output instead (t_eval)."
        )

    # ------------------------------------------------------------------------------------------- the result

    def _path(self, start: int, stop: int) -> Trajectory:
        o, part = self.out, slice(start, stop)
        return Trajectory(self.t[part], o.q[part], o.v[part], o.a[part], o.work[part], o.steps[part])

    def _result(self, status: str, message: str, seconds: float, integrating: float) -> Run:
        if self.crossing is not None and self.stepper.t > self.crossing.start.t:
            self._book_passage(self.crossing)
        steps, rejected, evaluations = (
            int(self.stepper.memory.count[k]) for k in (chart.ACCEPTED, chart.REJECTED, chart.EVALUATED)
        )
        statistics = Statistics(steps, rejected, evaluations, seconds, integrating)
        n = self.written
        return Run(
            self.system,
            self._path(0, n),
            status,
            message,
            tuple(sorted(self.events, key=lambda e: e.t)),
            statistics,
            self.settings,
            self.jumps[:n],
            tuple(self.phases),
            *self._active(n),
            tuple(self.passages),
        )

    def _active(self, n: int) -> tuple[NDArray[np.bool_], Array]:
        """Which speeds were independent at the outputs, and the criterion by which they are chosen there."""
        if not self.partition:
            return np.zeros((0, 0), bool), np.zeros((0, 0))
        active = np.zeros((n, self.system.nv), bool)
        criterion = np.zeros((n, self.system.nv))
        ends = [*(p.first for p in self.phases[1:]), n]
        for k, (phase, end, solver) in enumerate(zip(self.phases, ends, self.solvers, strict=True)):
            part, kernels = slice(phase.first, min(end, n)), solver.kernels
            sets = [x for x in self.partition if x.phase == k]
            if not sets or part.stop <= part.start or kernels is None or kernels.coordinates is None:
                continue
            which = np.maximum(np.searchsorted([x.t for x in sets], self.t[part], side="right") - 1, 0)
            active[part] = np.array([np.isin(self.system.speeds, x.speeds) for x in sets])[which]
            path = self.t[part], self.out.q[part], self.out.v[part]
            criterion[part] = kernels.coordinates.criterion(*path, active[part])
        return active, criterion


def _is_clear(seen: Array, least: float) -> bool:
    """Whether an indicator stays away from zero over a step, seen at the ends of equal parts of it, and over the next.

    It falls to zero and rises again along two lines: none that leads through two neighbouring points may reach zero
    within another part. Over the next step it is continued by a parabola.
    """
    x = np.linspace(0.0, 1.0, len(seen))
    ahead = np.polyval(np.polyfit(x, seen, 2), 1.0 + x)
    onward, back = 2.0 * seen[1:] - seen[:-1], 2.0 * seen[:-1] - seen[1:]
    return bool(min(seen.min(), ahead.min()) > least and min(onward.min(), back.min()) > 0.0)


class _Bar:
    """A progress bar: simulated time, its speed against real time, and the error of the energy."""

    def __init__(self, name: str, start: float, end: float, wanted: bool | Callable[[float], object], stop: Stop):
        self.start, self.name, self.wanted, self.end, self.stop = start, name, wanted, end, stop
        self.begin = time.perf_counter()
        self.bar: Any = None

    def __enter__(self) -> _Bar:
        if self.wanted is True:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

            console = Console(stderr=True)
            if console.is_terminal:
                text = TextColumn("{task.fields[shown]}", markup=False)
                self.bar = Progress(
                    TextColumn(self.name, markup=False),
                    BarColumn(),
                    text,
                    TimeRemainingColumn(),
                    console=console,
                    transient=True,
                )
                self.task = self.bar.add_task("", total=self.end - self.start, shown="")
                self.bar.start()
        return self

    def show(self, t: float, error: float) -> None:
        """How far it is."""
        if callable(self.wanted):
            try:
                self.wanted(t)
            except KeyboardInterrupt:
                self.stop.ask()
        if self.bar is not None:
            pace = (t - self.start) / max(time.perf_counter() - self.begin, 1e-9)
            shown = f"{t:.3g} of {self.end:g} s, {pace:.3g} x real time, energy error {error:.0e}"
            self.bar.update(self.task, completed=t - self.start, shown=shown)

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.stop()


__all__ = ["check_settings", "output_times", "simulate"]
