"""Runs of a rollout in one thread: one stepper for all samples, made what it was before each.

A sample whose steps simply reach the end is one compiled call. Everything else (a singular pose, stiffness, an event,
rows that are weak, outputs that fail a check, parameters that change more than numbers) is left to
:func:`loopdyn.simulate`, from the start of the sample.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from loopdyn.errors import LoopdynError
from loopdyn.formulations.base import FixedSolver, Formulation
from loopdyn.integrators.base import Integrator
from loopdyn.integrators.resetting import Resetting
from loopdyn.integrators.stepper import Stepper
from loopdyn.interrupts import Halt
from loopdyn.loops.rank import decide, require_inertia, require_regular
from loopdyn.results.run import Run, Trajectory, measure
from loopdyn.run.breakpoints import table_breakpoints, time_breakpoints
from loopdyn.run.events import watch, with_limits_of_model
from loopdyn.run.locking import Phase
from loopdyn.run.recorder import Recorder
from loopdyn.run.simulate import simulate
from loopdyn.studies.rollout_samples import RolloutSamples
from loopdyn.system.system import State, System
from loopdyn.system.variation import same_but_for_geometry, same_geometry
from loopdyn.thresholds import AT_LIMIT, CONSISTENT
from loopdyn.tree.functions import difference
from loopdyn.tree.tables import check_tables

Array = NDArray[np.float64]
DRIFT: Literal["projection"] = "projection"
STEPS = 1000  # in one compiled call, between two checks for Ctrl-C
# Natural units between two poses by which rank is judged: rows that are independent a distance x away have pivots of
# x squared, 1e-2, far above those that count as dependent (elimination/solver.py: 1e-5 at most).
APART = 0.1


@dataclass(frozen=True)
class Task:
    """Settings that all samples share."""

    samples: RolloutSamples
    times: Array
    span: tuple[float, float]
    method: Formulation
    integrator: Integrator
    rtol: float
    atol: float | None


class SampleOutcome(NamedTuple):
    """Result of one sample."""

    status: str
    reason: str
    path: Trajectory | None = None
    energy_error: float = np.nan  # relative energy-balance error
    seconds: float = 0.0
    warnings: tuple[str, ...] = ()  # about its parameters
    run: Run | None = None  # if it was simulated step by step


class Runner:
    """Runs samples one after the other; each thread has its own.

    Parameters
    ----------
    task : Task
    stop : Halt
        Request of the user to stop.
    """

    def __init__(self, task: Task, stop: Halt):
        self.task, self.stop = task, stop
        self._ready: _Prepared | None = None
        self._simple = True  # whether one preparation serves all samples

    def run(self, k: int) -> SampleOutcome:
        """Run sample k."""
        begin = time.perf_counter()
        samples, warnings = self.task.samples, tuple[str, ...]()
        try:
            varied = samples.varied(k)
            warnings = varied.warnings if samples.parameters else ()
            system = samples.with_inputs(varied, k)
            state = samples.state_of(k, system)
            outcome = self.run_from(varied, system, state)
        except LoopdynError as error:
            outcome = SampleOutcome("failed", str(error))
        return outcome._replace(seconds=time.perf_counter() - begin, warnings=warnings)

    def run_from(self, varied: System, system: System, state: State) -> SampleOutcome:
        """Run from a state; `system` is `varied`, that with other parameters, with the tables of the sample."""
        same = state.tolerated is None and same_but_for_geometry(self.task.samples.system, varied)
        return (self._at_once(system, state) if same else None) or self._in_full(system, state)

    def _at_once(self, system: System, state: State) -> SampleOutcome | None:
        """Outcome of a sample whose steps reach the end in compiled calls alone; None if they do not."""
        if self._simple and (self._ready is None or not self._ready.usable):
            self._ready = prepared(self.task, self.stop)
            self._simple = self._ready is not None
        return self._ready.run(system, state) if self._simple and self._ready is not None else None

    def _in_full(self, system: System, state: State) -> SampleOutcome:
        """Outcome of a simulation, which is prepared at the state itself."""
        task = self.task
        run = simulate(
            system,
            state,
            task.span,
            t_eval=task.times,
            formulation=task.method,
            integrator=task.integrator,
            rtol=task.rtol,
            atol=task.atol,
            progress=False,
        )
        return SampleOutcome(run.status, run.message, run.path, run.energy_error, run=run)


def prepared(task: Task, stop: Halt) -> _Prepared | None:
    """Preparation for all samples at a pose that depends on the system alone; None if there is none."""
    system, method = task.samples.system, task.method
    m, at = system.mechanism, system.state(t=task.span[0])
    if m.user_forces or m.user_constraints or m.contacts or system.tolerated is not None:
        return None
    try:
        rank = decide(system, at)
        require_regular(system, rank)
        require_inertia(system, at, rank)
        fixed = method.prepare_fixed(system, rank)
        if fixed is None:
            return None
        solver = method.prepare(system, rank)
        stepper = Stepper(system, solver, task.integrator, DRIFT, rank.count, task.rtol, task.atol or 0.0)
        inside = _Inside(system)
        watched = watch(system, with_limits_of_model(system, ()), rank.count, inside.state(at), task.span[1])
        watched.crossings += table_breakpoints(system)
    except LoopdynError:  # each sample is judged by itself, with its own error
        return None
    kernels = solver.kernels
    simple = not stepper.in_python and watched.compiled and not watched.unseen and inside.possible
    if not simple or kernels is None or kernels.refer_to is None or task.integrator.drives_steppers:
        return None
    stepper.watch(*watched.functions())
    return _Prepared(task, stop, fixed, stepper, inside, watching=bool(watched.crossings))


class _Inside:
    """Limits of coordinates: a state strictly inside them all starts no event."""

    def __init__(self, system: System):
        self.places = [system.labels.coordinates[label].place for label in system.limits]
        bounds = np.array(list(system.limits.values()), float).reshape(-1, 2)
        unit = np.array(
            [1.0 if system.labels.coordinates[x].dimension == "angle" else system.size for x in system.limits]
        )
        self.low, self.high = bounds[:, 0] + AT_LIMIT * unit, bounds[:, 1] - AT_LIMIT * unit
        self.possible = all(place >= 0 for place in self.places) and bool((self.low < self.high).all())

    def holds(self, state: State) -> bool:
        """Whether a state is inside."""
        if not self.places:
            return True
        q = state.q[self.places]
        return bool(((self.low < q) & (q < self.high)).all())

    def state(self, near: State) -> State:
        """A state inside, to make the event functions with; not a closed one."""
        q = near.q.copy()
        if self.possible and self.places:
            middle = np.where(np.isfinite(self.low + self.high), 0.5 * (self.low + self.high), q[self.places])
            q[self.places] = np.clip(middle, self.low, self.high)
        return State(near.t, q, near.v)


class _Prepared:
    """Solver, stepper and checks for all samples of one structure.

    `watching`: event functions are called, which are those of the geometry.
    """

    def __init__(
        self, task: Task, stop: Halt, fixed: FixedSolver, stepper: Stepper, inside: _Inside, *, watching: bool
    ):
        self.watching = watching
        self.task, self.stop, self.fixed, self.stepper, self.inside = task, stop, fixed, stepper, inside
        self.resetting = Resetting(stepper)
        assert stepper.compiled is not None
        assert stepper.compiled.refer_to is not None
        self.refer_to = stepper.compiled.refer_to
        self.system, self.breakpoints = stepper.system, time_breakpoints(stepper.system, *task.span)

    @property
    def usable(self) -> bool:
        """Whether the stepper can be reset."""
        return self.resetting.possible

    def run(self, system: System, state: State) -> SampleOutcome | None:
        """Outcome of a sample, checked; None if it has to be simulated step by step."""
        task, stepper, (start, end) = self.task, self.stepper, self.task.span
        first = State(start, np.array(state.q, float), np.array(state.v, float))
        moved = not same_geometry(self.system, system)
        if moved and self.watching:
            return None
        self.fixed.use_numbers(system)
        if not (self.inside.holds(first) and self.fixed.attempt(start, first.q, first.v)):
            return None
        moving = self._closed(system, first)
        if moving is None:
            return None
        self.resetting.reset(system)
        breakpoints = self.breakpoints if system is self.system else time_breakpoints(system, start, end)
        recorder = Recorder(system, task.times, stepper.sources, DRIFT)
        recorder.reference = moving
        try:
            self.refer_to(system, first)
            check_tables(system, [first])
            stepper.allow(start, end)
            if task.atol is None:
                stepper.set_slowest(first)
            reached = self._steps(first, recorder, breakpoints)
        except LoopdynError:
            return None
        if self.stop.wanted and not reached:
            return SampleOutcome("interrupted", "the user stopped")
        if not (reached and self.usable) or recorder.check([Phase(system)]) or recorder.suspicious():
            return None
        if moved and not self._regular(system, first, recorder.path()):
            return None
        error = recorder.largest_error / recorder.scale if recorder.scale > 0.0 else 0.0
        return SampleOutcome("finished", f"reached t = {end:g} s", recorder.path(), error)

    def _closed(self, system: System, first: State) -> float | None:
        """Kinetic energy and that of gravity, J, at a state that is closed; None if it is not."""
        a = self.fixed.found(full=False)
        nothing = np.zeros((1, 0)), np.zeros(1, np.int64)
        one = Trajectory(np.array([first.t]), first.q[None], first.v[None], np.asarray(a)[None], *nothing)
        found = measure(system, one)
        fastest = max(1.0, float(np.abs(first.v / system.speed_units).max(initial=0.0)))
        gap, rate = np.abs(found.residual[0, :2] / system.row_units)
        closed = gap[system.holonomic].max(initial=0.0) <= CONSISTENT and rate.max(initial=0.0) <= CONSISTENT * fastest
        return float(found.energy[0].sum()) if closed else None

    def _regular(self, system: System, first: State, path: Trajectory) -> bool:
        """Whether as many rows are independent at poses nearby as at the first, where those of the preparation are.

        The motion itself leads to such a pose; where it does not lead far, one is searched.
        """
        for k in (len(path) - 1, len(path) // 2):
            apart = np.abs(difference(system, first.q, path.q[k]) / system.speed_units).max(initial=0.0)
            if apart >= APART and self.fixed.attempt(float(path.t[k]), path.q[k], path.v[k]):
                return True
        try:
            require_regular(system, decide(system, first))
        except LoopdynError:
            return False
        return True

    def _steps(self, first: State, recorder: Recorder, breakpoints: Array) -> bool:
        """Make all steps, from breakpoint to breakpoint as `simulate` does; whether they reach the end."""
        stepper, out, end = self.stepper, recorder.out, self.task.span[1]
        stops = [*(float(np.nextafter(t, -np.inf)) for t in breakpoints), end]
        stepper.start(first, stops[0])
        if recorder.times[0] == first.t:
            stepper.write(out)
        for k, stop in enumerate(stops):
            while True:
                outcome = stepper.advance(out, STEPS)
                if outcome.end != "running" or outcome.may_hold_event or stepper.stiffness_detected:
                    break
                if self.stop.wanted:
                    return False
            if outcome.end != "reached" or outcome.may_hold_event or stepper.stiffness_detected:
                return False
            if stop < end:
                reached, works = stepper.interpolate(stop), stepper.works
                behind = float(np.nextafter(breakpoints[k], np.inf))
                stepper.start(State(behind, reached.q, reached.v), stops[k + 1], works)
        return True
