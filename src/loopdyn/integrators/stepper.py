"""An integrator combined with a solver: makes steps, undoes them, and interpolates inside the last one.

No other module reads the memory of an integrator (:mod:`loopdyn.integrators.memory`): callers use the methods and
properties of :class:`Stepper`, and :meth:`Stepper.advance` returns one :class:`Outcome`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loopdyn.engine.jit import rebind, specialise
from loopdyn.engine.pointers import pointer
from loopdyn.engine.status import AGAIN, FINE, NOT_A_NUMBER, RAISED, TURNED
from loopdyn.engine.uncompiled import python_function
from loopdyn.errors import LoopdynError
from loopdyn.files import Misfit
from loopdyn.formulations.base import CoordinateChoice, SingularityMonitor, Solver, SolverKernels
from loopdyn.integrators import event_sampling, loop, memory
from loopdyn.integrators.base import Adaptive, Fixed, Integrator
from loopdyn.integrators.dependence import moves_by_itself
from loopdyn.integrators.drift import LEVELS, Baumgarte, Drift, feedback
from loopdyn.integrators.extrapolation import SteppingDriver
from loopdyn.integrators.gap_rows import GapRows
from loopdyn.integrators.memory import Output
from loopdyn.integrators.outcome import Counts, Outcome
from loopdyn.integrators.stiff import DIFFERENCE
from loopdyn.loops.projection import correct as corrected
from loopdyn.quantities.expressions import Program
from loopdyn.system.cut_angles import FULL_TURN
from loopdyn.system.system import State, System
from loopdyn.tree.functions import add_user_forces, increment
from loopdyn.tree.power import N_OTHERS
from loopdyn.tree.turns import count

Array = NDArray[np.float64]

FIRST_MOVE = 0.01  # largest motion of a first adaptive step at the initial speeds, in natural units
LONGEST = 0.1  # longest adaptive step as a fraction of the span, so that short inputs are not skipped
SHORTEST = 1e-14  # fraction of the span, or of the time itself, below which a step cannot shrink
# Errors of speeds are relative to the fastest so far, but at least to the speed that this fraction of the mechanism's
# own accelerations gives in its own time: at rest in an equilibrium the fastest is rounding. Below a tolerance of 1e-8
# the floor grows, so that errors of this many units in the last place of the accelerations are always allowed.
NEGLIGIBLE, LAST_PLACES = 1e-6, 64 * float(np.finfo(float).eps)


SOLVER = "solver_"  # prefix of the names under which choices of a solver are saved


@lru_cache(maxsize=64)
def _mixed_signs(n: int) -> Array:
    """Numbers 1 and -1 in no order, the same in every call."""
    signs: Array = np.random.default_rng(0).choice([-1.0, 1.0], n)
    signs.flags.writeable = False
    return signs


class Stepper:
    """An integrator combined with a solver: memory, bound functions, and methods for Python.

    Parameters
    ----------
    system : System
    solver : Solver
    integrator : Integrator
    drift : str or Baumgarte
    rank : int
        Independent constraint rows, for corrections.
    rtol, atol : float
    moved : bool, optional
        Whether drivers or bases do work; by default whether they move.
    """

    def __init__(
        self,
        system: System,
        solver: Solver,
        integrator: Integrator,
        drift: Drift,
        rank: int,
        rtol: float,
        atol: float,
        moved: bool | None = None,
    ):
        self.system, self.solver, self.integrator, self.rank, self.drift = system, solver, integrator, rank, drift
        self.method = integrator.method()
        self.error: LoopdynError | None = None  # last failure of a solver in Python
        self.stepping: SteppingDriver | None = None  # makes the steps of a stepping formulation
        self._own_rate = 0.0  # 1/s, rate of the motions due to gravity and stiffness at the start, if known
        self._arrays(rtol, atol, moves_by_itself(system) if moved is None else moved)
        self._bind(solver.kernels, drift)
        self.watch([], [])

    # ---------------------------------------------------------------------------------------- preparation

    def _arrays(self, rtol: float, atol: float, moved: bool) -> None:
        s, stages = self.system, len(self.method.p)
        forces = len(s.model.force)
        self.sources = forces + N_OTHERS if forces or moved or s.mechanism.user_forces else 0
        self.memory = memory.empty(s, self.sources, stages, self.integrator.history)
        self.weights = np.zeros(stages)
        self.memory.clock[[memory.RTOL, memory.ATOL, memory.STABLE]] = rtol, atol, self.integrator.stable
        self.memory.count[memory.MOVED] = moved

    def _bind(self, compiled: SolverKernels | None, drift: Drift) -> None:
        """Bind compiled functions if the solver has them and the drift control allows it, else Python functions."""
        s = self.system
        corrects = s.nc > 0 and drift != "none"
        self.compiled = compiled
        own = self.integrator.in_python(self)
        kept = compiled is not None and drift in LEVELS and LEVELS[drift] <= set(compiled.keeps)
        correctable = drift == "projection" and compiled is not None and compiled.correct is not None
        usable = compiled is not None and (not corrects or kept or correctable) and own is None
        usable = usable and not s.mechanism.user_forces  # they are called from Python
        if usable and compiled is not None:
            self.ints, self.floats, self.work = arrays = compiled.ints, compiled.floats, compiled.work
            self.accelerate = compiled.accelerate
            correct = compiled.correct if corrects and not kept else loop.nothing
            functions = compiled.accelerate, correct, compiled.accepted or loop.nothing
            self._handed = tuple(pointer(f, *arrays) for f in functions)
            self._extend, self._within = loop.extend, loop.within
            self._chunk = _specialised(loop.chunk, attempt=self.integrator.attempt())
        else:
            self.ints, self.floats, self.work = s.ints, s.floats, s.work()
            self.accelerate = self._in_python(Baumgarte() if drift == "baumgarte" else drift)
            # a stepping formulation closes the loops itself
            corrects = corrects and drift in ("projection", "velocity") and not self.integrator.drives_steppers
            correct = self._correction(drift == "projection") if corrects else loop.nothing
            monitor = self.monitor
            accepted = loop.nothing if monitor is None else lambda *_: monitor.step_status()
            self._handed = self.accelerate, correct, accepted
            self._extend = python_function(loop.extend)
            self._within = rebind(python_function(loop.within), extend=self._extend)
            if isinstance(own, SteppingDriver):
                self.stepping = own
                self._within, own = own.within, own.attempt
            attempt = own or python_function(self.integrator.attempt())
            found = {"attempt": attempt, "land": python_function(loop.land), "within": self._within}
            for small in (memory.unowned, memory.begin, loop.renew, loop.choose_size, loop.judge):  # calls cost more
                found[small.__name__] = python_function(small)
            found["unowned_events"] = lambda events: events
            self._chunk = rebind(loop.chunk, **found)
        self.in_python = not usable
        self.views = s.open_work(self.work)

    def _in_python(self, drift: Any) -> Callable[..., int]:
        """accelerate(ints, floats, work) from a solver that is a Python function."""
        system, solver = self.system, self.solver
        rate = drift.rate if isinstance(drift, Baumgarte) and system.nc else 0.0

        def accelerate(ints: Any, floats: Any, work: Any) -> int:
            w = self.views
            t = float(w.t[0])
            w.tau[:] = 0.0
            add_user_forces(system, t, w.q, w.v, w.tau)  # for their power; the solver calls them too
            try:
                a = solver(t, w.q.copy(), w.v.copy()).a
            except LoopdynError as error:
                self.error = error
                return RAISED
            except np.linalg.LinAlgError as error:  # numbers that are not finite
                self.error = LoopdynError(f"the equations of motion cannot be solved at t = {t:g} s: {error}.")
                return RAISED
            if rate:
                a = a + feedback(system, State(t, w.q, w.v), rate, self.rank)
            w.a[:] = a
            return FINE

        return accelerate

    def _correction(self, position: bool) -> Callable[..., int]:
        def correct(ints: Any, floats: Any, work: Any) -> int:
            w = self.views
            try:
                q, v = corrected(self.system, float(w.t[0]), w.q.copy(), w.v.copy(), self.rank, position=position)
            except (LoopdynError, np.linalg.LinAlgError) as error:
                self.error = LoopdynError(f"the loops cannot be closed at t = {w.t[0]:g} s: {error}.")
                return RAISED
            w.q[:], w.v[:] = q, v
            return FINE

        return correct

    # ---------------------------------------------------------------------------------------------- running

    def start(self, state: State, end: float, works: Array | None = None) -> None:
        """Start, or restart after a jump, at `state`; `works` are the works until then."""
        m, w = self.memory, self.views
        self._put(state)
        if self.system.counted:
            count(self.ints, self.floats, self.work)
        self.check(lambda: self.accelerate(self.ints, self.floats, self.work))
        self.check(lambda: memory.note(self.ints, self.floats, self.work, m, np.zeros_like(m.y), 0))
        memory.keep_end(self.ints, self.work, m, 0)
        m.extra[:] = m.a1
        m.y[2 * self.system.nv :] = 0.0 if works is None else works
        m.turns[:] = 0.0
        self._event_functions[0].gaps.at[0] = np.nan  # speeds may have jumped
        m.clock[[memory.START, memory.STOP, memory.ORIGIN]] = state.t
        m.count[[memory.PENDING, memory.SINCE, memory.RETRIED, memory.JUMPED]] = 0
        m.clock[memory.FASTEST] = max(m.clock[memory.FASTEST], float(np.abs(m.v1 / m.unit).max(initial=0.0)))
        if self.stepping is not None:
            self.stepping.first, self.stepping.anew = 0.0, state.t
        self.aim(end)
        memory.begin(m)
        m.stage[:] = m.y
        w.q[:] = m.q  # without the turns that were subtracted; outputs add them again
        m.clock[memory.NEXT] = self.first_step()

    @property
    def stiffness_detected(self) -> bool:
        """Whether stability has limited the steps for so long that another integrator should take over."""
        return bool(self.memory.count[memory.STIFF] >= loop.MANY_STIFF)

    def forget_stiffness(self) -> None:
        """Count the steps that stability limits from zero again."""
        self.memory.count[memory.STIFF] = 0

    def with_integrator(self, integrator: Integrator) -> Stepper:
        """Another integrator on the same solver, not yet started."""
        return self._like(self.system, self.solver, integrator, self.rank)

    def with_solver(self, solver: Solver, integrator: Integrator) -> Stepper:
        """Another solver and integrator on the same system, not yet started."""
        return self._like(self.system, solver, integrator, self.rank)

    def with_system(self, system: System, solver: Solver, rank: int) -> Stepper:
        """Stepper of this integrator for another system of the same coordinates, not yet started."""
        return self._like(system, solver, self.integrator, rank)

    def _like(self, system: System, solver: Solver, integrator: Integrator, rank: int) -> Stepper:
        """A stepper with the same settings, counts and event functions."""
        m = self.memory
        rtol, atol = (float(x) for x in m.clock[[memory.RTOL, memory.ATOL]])
        other = Stepper(system, solver, integrator, self.drift, rank, rtol, atol, bool(m.count[memory.MOVED]))
        other.watch(*self._wanted)
        kept = [memory.MOST, memory.LEAST, memory.FASTEST]
        other.memory.clock[kept] = m.clock[kept]
        counts = [memory.ACCEPTED, memory.REJECTED, memory.EVALUATED]
        other.memory.count[counts] = m.count[counts]
        return other

    def allow(self, start: float, end: float) -> None:
        """Set the longest and the shortest step for a span of time."""
        m, given = self.memory, self.integrator
        longest = given.longest if isinstance(given, Adaptive) else None
        m.clock[memory.MOST] = longest or LONGEST * (end - start)
        m.clock[memory.LEAST] = SHORTEST * max(abs(start), abs(end))

    def set_slowest(self, first: State) -> None:
        """Set the floor of the speeds that errors are relative to, from the mechanism's own accelerations and rates.

        For a mechanism released from rest the speeds after a first step are known as well, unless a stiff spring stops
        it before, in its own time.
        """
        m, rate = self.memory, self.own_rate(first)
        self._own_rate = rate
        floor = max(NEGLIGIBLE, LAST_PLACES / float(m.clock[memory.RTOL])) * rate
        if not first.v.any():
            push = float(np.abs(self.views.a / m.unit).max(initial=0.0))  # own_rate leaves those of the state there
            lasts = min(float(m.clock[memory.MOST]), 1.0 / rate if rate > 0.0 else np.inf)
            floor = max(floor, min(np.sqrt(2.0 * FIRST_MOVE * push), push * lasts))
        m.clock[memory.FASTEST] = max(float(m.clock[memory.FASTEST]), floor)

    def own_rate(self, state: State) -> float:
        """Rate, 1/s, of the motions due to gravity and stiffness at a state.

        It is the square root of gravity over the size of the mechanism or, if larger, of the change of accelerations
        with the pose in a direction in which all coordinates take part, in natural units.
        """
        s, w, unit = self.system, self.views, self.memory.unit
        own = float(np.linalg.norm(s.model.gravity)) / s.size
        aside = DIFFERENCE * unit * _mixed_signs(s.nv)
        found = []
        for q in (increment(s, state.q, aside), state.q):  # the state itself last, so that it stays in the work array
            w.t[0], w.q[:], w.v[:] = state.t, q, state.v
            if self.accelerate(self.ints, self.floats, self.work) == FINE and np.isfinite(w.a).all():
                found.append(w.a / unit)
        if len(found) < 2:  # a singular pose, or a law that ends there: gravity alone is known
            return float(np.sqrt(own))
        change = float(np.abs(found[1] - found[0]).max(initial=0.0)) / DIFFERENCE
        return float(np.sqrt(max(own, change)))

    def first_step(self) -> float:
        """Size of the first step: the given one, or the time of a small motion, at most that of its own rate."""
        m = self.memory
        if isinstance(self.integrator, Fixed):
            return self.integrator.step
        speed, push = (float(np.abs(x / m.unit).max(initial=0.0)) for x in (m.v1, m.a1))
        by_speed = FIRST_MOVE / speed if speed > 0.0 else np.inf
        by_push = np.sqrt(2.0 * FIRST_MOVE / push) if push > 0.0 else np.inf
        by_rate = 1.0 / self._own_rate if self._own_rate > 0.0 else np.inf
        return float(min(by_speed, by_push, by_rate, m.clock[memory.MOST]))

    def aim(self, end: float) -> None:
        """Integrate up to `end`."""
        self.memory.clock[memory.END] = end

    def propose(self, size: float) -> None:
        """Set the size of the next attempt."""
        self.memory.clock[memory.NEXT] = size

    def law_jumped(self) -> None:
        """Compute the derivatives at the state reached again, where a law has changed; the step size is kept."""
        self.memory.count[memory.JUMPED] = 1

    def advance(self, out: Output, limit: int) -> Outcome:
        """Make at most `limit` steps, and write the outputs in them."""
        m = self.memory
        before = m.count[memory.ACCEPTED]
        arrays = self.ints, self.floats, self.work, m, self.method
        code = self._chunk(*arrays, out, self.weights, *self._event_functions, limit, *self._handed)
        end = loop.ENDS[code]
        return Outcome(
            end,
            stepped=bool(m.count[memory.ACCEPTED] > before),
            landed=end == "asks" and self.pending,
            may_hold_event=bool(m.count[memory.SEEN] == 1),
            status=int(m.count[memory.STATUS]),
        )

    def undo(self) -> bool:
        """Undo the last step, if there is one since the start: the state reached is then where it began."""
        was_pending = self.pending
        self.memory.count[memory.ACCEPTED] -= was_pending
        self.memory.count[memory.PENDING] = 0
        return was_pending

    def count_rejected(self, tries: int = 1) -> None:
        """Add to the number of rejected steps."""
        self.memory.count[memory.REJECTED] += tries

    def take_counts(self, other: Stepper) -> None:
        """Continue the counts of another stepper; its last step cannot be undone here."""
        self.memory.count[:] = other.memory.count
        self.memory.count[memory.PENDING] = 0

    def write(self, out: Output) -> None:
        """Write the state of the last start or interpolation as the next output."""
        memory.write(self.ints, self.work, self.memory, out, self.memory.stage)

    def watch(self, functions: Sequence[Any], programs: Sequence[Program], gaps: GapRows | None = None) -> None:
        """Set event functions: a chunk ends where a jitted function, a formula or a gap may have passed zero."""
        self._wanted = functions, programs, gaps
        sizes = self.system.nq, self.system.nv
        if self.in_python or not (functions or programs or gaps):  # compiled functions are for compiled chunks
            self._event_functions = event_sampling.no_events(*sizes)
        else:
            self._event_functions = event_sampling.event_functions(*sizes, functions, programs, gaps)

    def prepare_again(self, state: State | None = None) -> None:
        """Continue with a solver that has been prepared again, at a state or where it reported AGAIN."""
        if state is not None:
            self._put(state)
        if self.compiled is None or self.compiled.choices is None:
            raise self.failure(AGAIN)
        self._use(self.compiled.choices.choose_again())

    @property
    def monitor(self) -> SingularityMonitor | None:
        """Singularity monitor of the solver, if it has one."""
        return None if self.compiled is None else self.compiled.monitor

    @property
    def coordinates(self) -> CoordinateChoice | None:
        """Choice of independent speeds of the solver in compiled loops, if it has one."""
        return None if self.compiled is None or self.in_python else self.compiled.coordinates

    def _put(self, state: State) -> None:
        """Put a state into the work array."""
        self.views.t[0], self.views.q[:], self.views.v[:] = state.t, state.q, state.v

    def _use(self, compiled: SolverKernels) -> None:
        self.compiled = compiled
        self.ints, self.floats, self.work = compiled.ints, compiled.floats, compiled.work
        self.views = self.system.open_work(self.work)

    def save(self) -> dict[str, NDArray[Any]]:
        """Data of a checkpoint by name: the memory, and the choices of the solver."""
        return memory.save(self.memory) | {f"{SOLVER}{name}": array for name, array in self._choice().items()}

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Restore what :meth:`save` returned; raises Misfit if it does not belong to such a stepper."""
        memory.restore(self.memory, saved)
        choice = self._checked_choice(saved)
        if choice and self.compiled is not None and self.compiled.choices is not None:
            compiled = self.compiled.choices.restore_choices(choice)
            if not self.in_python:
                self._use(compiled)

    def _choice(self) -> dict[str, NDArray[Any]]:
        choices = None if self.compiled is None else self.compiled.choices
        return {} if choices is None else dict(choices.save_choices())

    def _checked_choice(self, saved: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
        """Choices of a solver by name without the prefix, if they are possible for this solver."""
        s, present = self.system, self._choice()
        found = {n.removeprefix(SOLVER): np.asarray(x) for n, x in saved.items() if n.startswith(SOLVER)}
        most = 6 * (len(s.joints) + s.nv + s.nc + 1)  # rows, speeds or nodes that there can be
        if found.keys() != present.keys():
            raise Misfit("it holds choices of another solver")
        for name, array in found.items():
            integers = array.dtype.kind == "i"
            if array.dtype != present[name].dtype or array.ndim != present[name].ndim:
                raise Misfit(f"the choice '{name}' of the solver has another type")
            if integers and array.size and not -1 <= array.min() <= array.max() <= most:
                raise Misfit(f"the choice '{name}' of the solver is out of range")
        return found

    def check(self, evaluate: Callable[[], int]) -> None:
        """Evaluate, once more after AGAIN with the solver prepared again, and raise the error of the status."""
        status = evaluate()
        if status == AGAIN:
            asked = self.evaluated()
            self.prepare_again()
            self._put(asked)
            status = evaluate()
        if status != FINE:
            raise self.failure(status)

    def failure(self, status: int) -> LoopdynError:
        """Error of a status."""
        if status == NOT_A_NUMBER:
            bad = np.flatnonzero(~np.isfinite(self.views.a))
            label = self.system.speeds[int(bad[0])] if bad.size else self.system.speeds[0]
            return LoopdynError(
                f"the acceleration of '{label}' is not a finite number. Check formulas that divide by zero or leave "
                "their range, springs whose points meet, and the size of the steps."
            )
        if status == TURNED:
            return LoopdynError(
                f"a step turns a cut joint ({', '.join(self.system.counted)}) by more than "
                f"{loop.FARTHEST / self.system.units.factor('angle'):.3g} {self.system.units.angle}, "
                "so that its full turns, which something depends on, cannot be counted. Use shorter steps."
            )
        if self.compiled is not None and not self.in_python:
            return self.compiled.explain(status)
        return self.error or LoopdynError("the solver failed without a reason")

    def why_failed(self) -> str:
        """Reason why the last steps failed, in words."""
        m, s, t = self.memory, self.system, self.step_start
        status = int(m.count[memory.STATUS])
        if status != FINE:
            return f"after t = {t:g} s: {self.failure(status)}"
        if m.count[memory.RETRIED] >= loop.MANY_REJECTED:
            return (
                f"one step was rejected {loop.MANY_REJECTED} times in a row at t = {t:.9g} s, at last with a size "
                f"of {self.step_size:.2g} s: errors do not fall with the step. If hardly anything moves there, give "
                "atol, such as 1e-9; else a force may jump (use an event), or rtol may be too small."
            )
        change = np.abs(m.k[:, s.nv : 2 * s.nv] / s.speed_units)
        worst = s.speeds[int(np.argmax(np.nanmax(change, axis=0)))] if s.nv else ""
        return (
            f"the step size becomes too small at t = {t:.9g} s, where the acceleration of '{worst}' is largest. The "
            "pose may be singular (see ld.mobility there), a force may jump (use an event), or rtol may be too small."
        )

    # ----------------------------------------------------------------------------------- what has been reached

    @property
    def pending(self) -> bool:
        """Whether a step was accepted since the start, which can be undone."""
        return bool(self.memory.count[memory.PENDING] == 1)

    @property
    def counts(self) -> Counts:
        """Counts so far."""
        return Counts(*(int(self.memory.count[k]) for k in (memory.ACCEPTED, memory.REJECTED, memory.EVALUATED)))

    @property
    def tolerances(self) -> tuple[float, float]:
        """Relative and absolute tolerance."""
        rtol, atol = self.memory.clock[[memory.RTOL, memory.ATOL]].tolist()
        return rtol, atol

    @tolerances.setter
    def tolerances(self, given: tuple[float, float]) -> None:
        self.memory.clock[[memory.RTOL, memory.ATOL]] = given

    @property
    def target(self) -> float:
        """Target time."""
        return float(self.memory.clock[memory.END])

    @property
    def step_start(self) -> float:
        """Time at which the last step began, or the next one does."""
        return float(self.memory.clock[memory.START])

    @property
    def step_end(self) -> float:
        """Time at which the last step, or the last attempt, ended."""
        return float(self.memory.clock[memory.STOP])

    @property
    def step_size(self) -> float:
        """Size of the last step, or of the last attempt."""
        return float(self.memory.clock[memory.SIZE])

    @property
    def shortest_step(self) -> float:
        """Size below which steps cannot shrink."""
        return float(self.memory.clock[memory.LEAST])

    @property
    def t(self) -> float:
        """Time reached."""
        return self.step_end if self.pending else self.step_start

    def state(self) -> State:
        """State reached, turns included."""
        m, nv = self.memory, self.system.nv
        q, v = (m.q1, m.v1) if self.pending else (m.q, m.y[nv : 2 * nv])
        return State(self.t, self.unwrapped(q), v.copy())

    @property
    def accelerations_reached(self) -> Array:
        """Accelerations (nv,) at the state reached."""
        m, nv = self.memory, self.system.nv
        return np.array(m.a1 if self.pending else m.k[0, nv : 2 * nv])

    @property
    def works_reached(self) -> Array:
        """Works until the state reached."""
        m = self.memory
        return np.array((m.new if self.pending else m.y)[2 * self.system.nv :])

    def start_of_step(self) -> tuple[State, Array]:
        """State where the last step began, or the next one does, turns included, and the works until there."""
        m, nv = self.memory, self.system.nv
        return State(self.step_start, self.unwrapped(m.q), m.y[nv : 2 * nv].copy()), np.array(m.y[2 * nv :])

    def ends_of_step(self) -> tuple[State, State]:
        """Both ends of the last step, with angles within a turn."""
        m, nv = self.memory, self.system.nv
        start = State(self.step_start, m.q.copy(), m.y[nv : 2 * nv].copy())
        return start, State(self.step_end, m.q1.copy(), m.v1.copy())

    def unwrapped(self, q: Array) -> Array:
        """Coordinates with the turns that were subtracted added again."""
        q = q.copy()
        q[self.memory.wrapped] += self.memory.turns * FULL_TURN
        return q

    def evaluated(self) -> State:
        """State at which the solver was called last, with angles within a turn."""
        w = self.views
        return State(float(w.t[0]), w.q.copy(), w.v.copy())

    def interpolate(self, t: float) -> State:
        """State at a time inside the last step, on the dense output and corrected; `works` are then those there."""
        m = self.memory
        handed = m, self.method, t, self.weights, *self._handed[:2]
        self.check(lambda: int(self._within(self.ints, self.floats, self.work, *handed)))
        return State(t, self.unwrapped(self.views.q), self.views.v.copy())

    def dense_output(self, t: float) -> State:
        """State at a time inside the last step, on the dense output without a correction: at little cost."""
        m = self.memory
        handed = m, self.method, self._handed[0]
        self.check(lambda: int(self._extend(self.ints, self.floats, self.work, *handed)))
        loop.evaluate_dense_output(self.ints, self.work, m, self.method, t, self.weights)
        if self.system.counted:
            count(self.ints, self.floats, self.work)
        return State(t, self.unwrapped(self.views.q), self.views.v.copy())

    @property
    def works(self) -> Array:
        """Works until the state that was interpolated last."""
        return np.array(self.memory.stage[2 * self.system.nv :])


@cache
def _specialised(function: Any, **bound: Any) -> Any:
    """`specialise`, once for the same functions in a process: finding a kernel in the cache takes time too."""
    return specialise(function, **bound)
