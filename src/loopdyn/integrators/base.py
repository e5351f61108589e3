"""Integrators by name, drift control, and the stepper that joins an integrator to a solver."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from loopdyn.engine import records as rec
from loopdyn.engine.jit import pointer, rebind, specialise
from loopdyn.engine.status import AGAIN, FINE, NOT_A_NUMBER, RAISED, TURNED
from loopdyn.errors import LoopdynError
from loopdyn.forces.base import JOINT_SPRING, JOINT_TENDON, MOTOR
from loopdyn.forces.tendon import N_TERM, TERM_COORDINATE
from loopdyn.formulations.base import CoordinateChoice, Formulation, SingularityMonitor, Solver, SolverKernels
from loopdyn.integrators import adams, chart, generalized_alpha, runge_kutta, stepping, stiff, walking, watching
from loopdyn.integrators.chart import Memory, Output
from loopdyn.integrators.stepping import Method
from loopdyn.loops.projection import correct as corrected
from loopdyn.loops.projection import metric, smallest_step
from loopdyn.quantities.expressions import Program
from loopdyn.quantities.expressions import opcodes as OP
from loopdyn.quantities.wording import nearest
from loopdyn.system.system import State, System
from loopdyn.tree.functions import add_user_forces, increment, terms
from loopdyn.tree.power import N_OTHERS
from loopdyn.tree.turns import count

Array = NDArray[np.float64]

FIRST_MOVE = 0.01  # rad or sizes of the mechanism that a first adaptive step may move at the speeds of the start
LONGEST = 0.1  # share of the span that an adaptive step may take, so that what begins later is not leapt over
SHORTEST = 1e-14  # share of the span, or of the time itself, below which a step cannot shrink
# Speeds are judged against the fastest so far, but at least against what this share of the mechanism's own
# accelerations gives in its own time: at rest in an equilibrium the fastest is rounding. Below a tolerance of 1e-8 the
# floor grows, so that errors of this many last places of the accelerations are always allowed.
NEGLIGIBLE, LAST_PLACES = 1e-6, 64 * float(np.finfo(float).eps)


# -------------------------------------------------------------------------------------------- the methods


@dataclass(frozen=True)
class Integrator:
    """Base of all integrators; subclasses add their options as fields."""

    name: ClassVar[str] = ""
    history: ClassVar[int] = 0  # states that are kept beside the start of a step
    stable: ClassVar[float] = 0.0  # step times fastest rate up to which it is stable, if that is to be watched
    walks: ClassVar[bool] = False  # it drives formulations that make steps themselves, and no others

    def method(self) -> Method:
        """Coefficients."""
        raise NotImplementedError

    def attempt(self) -> Any:
        """The function that makes a step (see :mod:`loopdyn.integrators.stepping`), before it is bound to a solver."""
        return stepping.explicit

    def in_python(self, stepper: Stepper) -> Any:
        """The same for a method that exists in Python only, made for a stepper; None for the others."""
        return None


@dataclass(frozen=True)
class _Fixed(Integrator):
    """A method with steps of one size.

    Parameters
    ----------
    step : float
        Size of a step in s; the last one is shorter if the span asks for it.
    """

    step: float

    def __post_init__(self) -> None:
        if not (isinstance(self.step, Real) and np.isfinite(self.step) and self.step > 0.0):
            raise LoopdynError(f"{self.name}: step is {self.step}. Give a positive number of seconds.")


@dataclass(frozen=True)
class _Adaptive(Integrator):
    """A method that chooses its steps by the tolerances.

    Parameters
    ----------
    longest : float, optional
        Longest step in s; by default a tenth of the span.
    """

    longest: float | None = None

    def __post_init__(self) -> None:
        if self.longest is not None and not self.longest > 0.0:
            raise LoopdynError(f"{self.name}: longest is {self.longest}. Give a positive number of seconds.")


class RK4(_Fixed):
    """The classical Runge-Kutta method of order 4.

    Examples
    --------
    >>> RK4(step=1e-3).step
    0.001
    """

    name: ClassVar[str] = "rk4"

    def method(self) -> Method:
        """Four stages."""
        return runge_kutta.rk4()


class ABM(_Fixed):
    """Adams-Bashforth-Moulton of order 4, two evaluations a step.

    Examples
    --------
    >>> ABM(step=1e-3).history
    3
    """

    name: ClassVar[str] = "abm"
    history: ClassVar[int] = adams.HISTORY

    def method(self) -> Method:
        """Predictor and corrector."""
        return adams.abm4()

    def attempt(self) -> Any:
        """Its own way to make a step."""
        return adams.predict_and_correct


@dataclass(frozen=True)
class GeneralizedAlpha(_Fixed):
    """Generalised-alpha: implicit, order 2, constraints held at position level, numerical damping of fast motion.

    Parameters
    ----------
    step : float
        Size of a step in s.
    rho : float
        What is left of an infinitely fast vibration after a step: 1 none damped, 0 all of it.

    Examples
    --------
    >>> GeneralizedAlpha(step=1e-3).rho
    0.8
    """

    name: ClassVar[str] = "generalized_alpha"
    rho: float = 0.8

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0.0 <= self.rho <= 1.0:
            raise LoopdynError(f"{self.name}: rho is {self.rho}. Give a number from 0 to 1.")

    def method(self) -> Method:
        """Both ends of a step."""
        return stepping.ends_only()

    def in_python(self, stepper: Stepper) -> Any:
        """Newton's method on dense matrices."""
        return generalized_alpha.make(stepper, self.rho)


class Stiff(_Adaptive):
    """Radau IIA of order 5: adaptive and implicit, for stiff springs and dampers.

    Examples
    --------
    >>> Stiff(longest=0.1).longest
    0.1
    """

    name: ClassVar[str] = "stiff"

    def method(self) -> Method:
        """Three stages that are solved together."""
        return stiff.radau()

    def attempt(self) -> Any:
        """Its own way to make a step."""
        return stiff.attempt


class DP5(_Adaptive):
    """Dormand-Prince 5(4): adaptive, for loose tolerances and motions that are not smooth.

    Examples
    --------
    >>> DP5().method().order
    5
    """

    name: ClassVar[str] = "dp5"

    def method(self) -> Method:
        """Seven stages, the last of which is the first of the next step."""
        return runge_kutta.dp5()


class DOP853(_Adaptive):
    """Dormand-Prince 8(5,3): adaptive, with dense output of order 7; the default.

    Examples
    --------
    >>> DOP853().method().order
    8
    """

    name: ClassVar[str] = "dop853"

    def method(self) -> Method:
        """Twelve stages, three more where the inside of a step is looked at."""
        return runge_kutta.dop853()


class Auto(DOP853):
    """DOP853 until stability and not accuracy limits its steps for a while, then Stiff; said in ``run.events``.

    Examples
    --------
    >>> Auto().stiff()
    Stiff(longest=None)
    """

    name: ClassVar[str] = "auto"
    stable: ClassVar[float] = 6.1  # [Hairer1996 section IV.2]

    def stiff(self) -> Stiff:
        """What follows where the equations are stiff."""
        return Stiff(longest=self.longest)


class Steps(_Fixed):
    """Steps of one size, made by the formulation itself: for ``Momentum(order=...)``.

    Examples
    --------
    >>> Steps(step=1e-3).step
    0.001
    """

    name: ClassVar[str] = "steps"
    walks: ClassVar[bool] = True

    def method(self) -> Method:
        """Both ends of a step."""
        return walking.walked(0)

    def in_python(self, stepper: Stepper) -> Any:
        """One step of the formulation."""
        return walking.Walker(stepper, extrapolate=False)


class Extrapolation(_Adaptive):
    """Steps made by the formulation itself, four sizes of them extrapolated: adaptive, for ``Momentum()``.

    Examples
    --------
    >>> Extrapolation().method().order
    7
    """

    name: ClassVar[str] = "extrapolation"
    walks: ClassVar[bool] = True

    def method(self) -> Method:
        """Both ends of a step."""
        return walking.walked(walking.ESTIMATE)

    def in_python(self, stepper: Stepper) -> Any:
        """Steps of four sizes."""
        return walking.Walker(stepper, extrapolate=True)


CLASSES: dict[str, type[Integrator]] = {
    "auto": Auto,
    "dop853": DOP853,
    "dp5": DP5,
    "rk4": RK4,
    "abm": ABM,
    "generalized_alpha": GeneralizedAlpha,
    "stiff": Stiff,
    "steps": Steps,
    "extrapolation": Extrapolation,
}


def chosen(integrator: str | Integrator) -> Integrator:
    """The integrator of a name with its default options, or the one given.

    Examples
    --------
    >>> chosen("auto")
    Auto(longest=None)
    """
    return integrator if isinstance(integrator, Integrator) else named(integrator, None)


def for_formulation(integrator: str | Integrator, formulation: Formulation) -> Integrator:
    """The integrator that is chosen for a formulation; raises where the one given cannot drive it.

    Examples
    --------
    >>> from loopdyn.formulations.momentum.formulation import Momentum
    >>> for_formulation("auto", Momentum())
    Extrapolation(longest=None)
    """
    if not formulation.steps:
        found = chosen(integrator)
        if found.walks:
            raise LoopdynError(
                f"{found.name} drives formulations that make steps themselves, such as momentum. Use auto."
            )
        return found
    found = Extrapolation() if integrator == "auto" and not formulation.one_size else chosen(integrator)
    if formulation.one_size and not isinstance(found, Steps):
        raise LoopdynError(f"steps of {formulation} are of one size. Give it: integrator=Steps(step=1e-3).")
    if not found.walks:
        raise LoopdynError(f"{formulation.name} makes its steps itself. Use Steps(step=...), or auto.")
    return found


def named(name: str, step: float | None) -> Integrator:
    """The integrator of a name, with a step where it needs one.

    Examples
    --------
    >>> named("rk4", 1e-3)
    RK4(step=0.001)
    """
    kind = CLASSES.get(name)
    if kind is None:
        raise LoopdynError(f"there is no integrator '{name}'. {nearest(str(name), CLASSES)}")
    if issubclass(kind, _Fixed):
        if step is None:
            raise LoopdynError(f"{name} needs the size of a step. Give it: {kind.__name__}(step=1e-3), or --step.")
        return kind(step=step)
    if step is not None:
        raise LoopdynError(
            f"{name} chooses its steps itself. Leave the step out, or use rk4 or abm; for momentum: steps."
        )
    return kind()


# ----------------------------------------------------------------------------------------------- the drift


@dataclass(frozen=True)
class Baumgarte:
    """Drift control by feedback: ``J a = gamma - 2 rate (J v + phi_t) - rate^2 phi``, critically damped.

    Parameters
    ----------
    rate : float
        In 1/s: errors of the loops decay like exp(-rate t). Large rates make the equations stiff.

    Examples
    --------
    >>> Baumgarte(rate=50.0).rate
    50.0
    """

    rate: float = 20.0


Drift = Literal["none", "projection", "velocity", "baumgarte"] | Baumgarte
DRIFTS = ("none", "projection", "velocity", "baumgarte")
# Levels that a drift control corrects after a step; a solver that keeps them itself needs no correction.
LEVELS: dict[Any, set[str]] = {"projection": {"position", "velocity"}, "velocity": {"velocity"}}


# --------------------------------------------------------------------------------------------- the stepper


class Stepper:
    """An integrator on a solver: memory, bound functions, and the questions Python asks.

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
        self.error: LoopdynError | None = None  # of a solver in Python, from its last failure
        self.adaptive = isinstance(integrator, _Adaptive)
        self._own_rate = 0.0  # 1/s, of the motions that gravity and stiffness give at the start, where it is known
        self._arrays(rtol, atol, moves_by_itself(system) if moved is None else moved)
        self._bind(solver.kernels, drift)
        self.watch([], [])

    # ------------------------------------------------------------------------------------------ preparing

    def _arrays(self, rtol: float, atol: float, moved: bool) -> None:
        s = self.system
        forces = len(s.model.force)
        self.sources = forces + N_OTHERS if forces or moved or s.mechanism.user_forces else 0
        ny, rows = 2 * s.nv + self.sources, len(self.method.p)
        past = self.integrator.history
        wrapped = angles_to_wrap(s)
        self.memory = Memory(
            clock=np.zeros(chart.N_CLOCK),
            count=np.zeros(chart.N_COUNT, np.int64),
            q=np.zeros(s.nq),
            y=np.zeros(ny),
            k=np.zeros((rows, ny)),
            stage=np.zeros(ny),
            new=np.zeros(ny),
            q1=np.zeros(s.nq),
            v1=np.zeros(s.nv),
            a1=np.zeros(s.nv),
            power1=np.zeros(self.sources),
            extra=np.zeros(s.nv),
            unit=np.array(s.speed_units),
            wrapped=wrapped,
            turns=np.zeros(len(wrapped)),
            past_q=np.zeros((past, s.nq)),
            past_v=np.zeros((past, s.nv)),
            past_a=np.zeros((past, s.nv + self.sources)),
            load=np.zeros(forces),
        )
        self.weights = np.zeros(rows)
        self.memory.clock[[chart.RTOL, chart.ATOL, chart.STABLE]] = rtol, atol, self.integrator.stable
        self.memory.count[chart.MOVED] = moved

    def _bind(self, compiled: SolverKernels | None, drift: Drift) -> None:
        """Compiled functions where the solver has them and the drift control allows it, else Python's."""
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
            correct = compiled.correct if corrects and not kept else stepping.nothing
            functions = compiled.accelerate, correct, compiled.accepted or stepping.nothing
            self._handed = tuple(pointer(f, *arrays) for f in functions)
            self._extend, self._within = stepping.extend, stepping.within
            self._chunk = _specialised(stepping.chunk, attempt=self.integrator.attempt())
        else:
            self.ints, self.floats, self.work = s.ints, s.floats, s.work()
            self.accelerate = self._in_python(Baumgarte() if drift == "baumgarte" else drift)
            # a formulation that makes steps itself closes them in its own way
            corrects = corrects and drift in ("projection", "velocity") and not self.integrator.walks
            correct = self._correction(drift == "projection") if corrects else stepping.nothing
            monitor = self.monitor
            accepted = stepping.nothing if monitor is None else lambda *_: monitor.step_status()
            self._handed = self.accelerate, correct, accepted
            self._extend = _plain(stepping.extend)
            self._within = rebind(_plain(stepping.within), extend=self._extend)
            if isinstance(own, walking.Walker):
                self.walker = own
                self._within, own = own.within, own.attempt
            attempt = own or _plain(self.integrator.attempt())
            found = {"attempt": attempt, "land": _plain(stepping.land), "within": self._within}
            found["unowned"] = _plain(chart.unowned)
            self._chunk = rebind(stepping.chunk, **found)
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
                now, rows = terms(system, State(t, w.q, w.v)), system.row_units
                pull = (2.0 * rate * (now.J @ w.v + now.phi_t) + rate * rate * now.phi) / rows
                a = a + smallest_step(now.J / rows[:, None], pull, metric(now.M), self.rank)
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
        """Begin, or begin anew after a jump, at `state`; `works` were done until then."""
        m, w = self.memory, self.views
        w.t[0], w.q[:], w.v[:] = state.t, state.q, state.v
        if self.system.counted:
            count(self.ints, self.floats, self.work)
        self.check(lambda: self.accelerate(self.ints, self.floats, self.work))
        self.check(lambda: chart.note(self.ints, self.floats, self.work, m, np.zeros_like(m.y), 0))
        chart.keep_end(self.ints, self.work, m, 0)
        m.extra[:] = m.a1
        m.y[2 * self.system.nv :] = 0.0 if works is None else works
        m.turns[:] = 0.0
        m.clock[[chart.START, chart.STOP, chart.ORIGIN]] = state.t
        m.count[[chart.PENDING, chart.SINCE, chart.RETRIED]] = 0
        m.clock[chart.FASTEST] = max(m.clock[chart.FASTEST], float(np.abs(m.v1 / m.unit).max(initial=0.0)))
        if hasattr(self, "walker"):
            self.walker.first, self.walker.anew = 0.0, state.t
        self.aim(end)
        chart.begin(m)
        w.q[:] = m.q  # without the turns that were taken off, which outputs add again
        m.clock[chart.NEXT] = self.first_step()

    @property
    def finds_it_stiff(self) -> bool:
        """Whether stability has limited the steps for so long that another integrator is due."""
        return bool(self.memory.count[chart.STIFF] >= stepping.MANY_STIFF)

    def with_integrator(self, integrator: Integrator) -> Stepper:
        """Another integrator on the same solver, not yet started."""
        return self._like(self.system, self.solver, integrator, self.rank)

    def with_solver(self, solver: Solver, integrator: Integrator) -> Stepper:
        """Another solver and integrator on the same system, not yet started."""
        return self._like(self.system, solver, integrator, self.rank)

    def with_system(self, system: System, solver: Solver, rank: int) -> Stepper:
        """The same integrator on another system of the same coordinates, not yet started."""
        return self._like(system, solver, self.integrator, rank)

    def _like(self, system: System, solver: Solver, integrator: Integrator, rank: int) -> Stepper:
        """The same settings, counts and watched functions."""
        m = self.memory
        rtol, atol = (float(x) for x in m.clock[[chart.RTOL, chart.ATOL]])
        other = Stepper(system, solver, integrator, self.drift, rank, rtol, atol, bool(m.count[chart.MOVED]))
        other.watch(*self._wanted)
        kept = [chart.MOST, chart.LEAST, chart.FASTEST]
        other.memory.clock[kept] = m.clock[kept]
        counts = [chart.ACCEPTED, chart.REJECTED, chart.EVALUATED, chart.OUTPUT]
        other.memory.count[counts] = m.count[counts]
        return other

    def allow(self, start: float, end: float) -> None:
        """Set the longest and the shortest step for a span of time."""
        m, longest = self.memory, getattr(self.integrator, "longest", None)
        m.clock[chart.MOST] = longest or LONGEST * (end - start)
        m.clock[chart.LEAST] = SHORTEST * max(abs(start), abs(end))

    def set_slowest(self, first: State) -> None:
        """Take speeds below the natural floor of the mechanism for no larger than that when errors are judged.

        Of a mechanism that is let go at rest, those that it has after a first step are known, too; a stiff spring stops
        it before, in its own time.
        """
        m, rate = self.memory, self.own_rate(first)
        self._own_rate = rate
        floor = max(NEGLIGIBLE, LAST_PLACES / float(m.clock[chart.RTOL])) * rate
        if not first.v.any():
            push = float(np.abs(self.views.a / m.unit).max(initial=0.0))  # own_rate leaves those of the state there
            lasts = min(float(m.clock[chart.MOST]), 1.0 / rate if rate > 0.0 else np.inf)
            floor = max(floor, min(np.sqrt(2.0 * FIRST_MOVE * push), push * lasts))
        m.clock[chart.FASTEST] = max(float(m.clock[chart.FASTEST]), floor)

    def own_rate(self, state: State) -> float:
        """Rate, 1/s, of the motions that gravity and stiffness give at a state.

        The root of gravity over the size of the mechanism or, where that is larger, of the change of accelerations with
        the pose in a direction in which all coordinates take part, in natural units.
        """
        s, w, unit = self.system, self.views, self.memory.unit
        own = float(np.linalg.norm(s.model.gravity)) / s.size
        aside = stiff.DIFFERENCE * unit * np.random.default_rng(0).choice([-1.0, 1.0], s.nv)
        found = []
        for q in (increment(s, state.q, aside), state.q):  # the state itself last: it stays in the work array
            w.t[0], w.q[:], w.v[:] = state.t, q, state.v
            if self.accelerate(self.ints, self.floats, self.work) == FINE and np.isfinite(w.a).all():
                found.append(w.a / unit)
        if len(found) < 2:  # a singular pose, or a law that ends there: gravity alone is known
            return float(np.sqrt(own))
        change = float(np.abs(found[1] - found[0]).max(initial=0.0)) / stiff.DIFFERENCE
        return float(np.sqrt(max(own, change)))

    def first_step(self) -> float:
        """Size of a first step: the one given, or the time in which the motion goes a small way, at most its own."""
        m = self.memory
        if not self.adaptive:
            return float(getattr(self.integrator, "step"))  # noqa: B009
        speed, push = (float(np.abs(x / m.unit).max(initial=0.0)) for x in (m.v1, m.a1))
        by_speed = FIRST_MOVE / speed if speed > 0.0 else np.inf
        by_push = np.sqrt(2.0 * FIRST_MOVE / push) if push > 0.0 else np.inf
        by_rate = 1.0 / self._own_rate if self._own_rate > 0.0 else np.inf
        return float(min(by_speed, by_push, by_rate, m.clock[chart.MOST]))

    def aim(self, end: float) -> None:
        """Integrate up to `end`."""
        self.memory.clock[chart.END] = end

    def run(self, out: Output, limit: int) -> int:
        """At most `limit` steps; the code a chunk ends with."""
        arrays = self.ints, self.floats, self.work, self.memory, self.method
        return int(self._chunk(*arrays, out, self.weights, *self._watched, limit, *self._handed))

    def watch(self, functions: Sequence[Any], programs: Sequence[Program]) -> None:
        """End a chunk of steps where one of these may have passed zero: jitted functions and formulas of (t, q, v)."""
        self._wanted = functions, programs
        given = ([], []) if self.in_python else self._wanted  # compiled functions are for compiled chunks
        self._watched = watching.watched(self.system.nq, self.system.nv, *given)

    def again(self) -> None:
        """Go on with a solver that has been prepared anew, at the state where it asked for it."""
        if self.compiled is None or self.compiled.choices is None:
            raise self.failure(AGAIN)
        self._use(self.compiled.choices.choose_again())

    @property
    def monitor(self) -> SingularityMonitor | None:
        """How close singular poses are, if the solver tells."""
        return None if self.compiled is None else self.compiled.monitor

    @property
    def coordinates(self) -> CoordinateChoice | None:
        """Which speeds are independent, if the solver has such in compiled loops."""
        return None if self.compiled is None or self.in_python else self.compiled.coordinates

    def _use(self, compiled: SolverKernels) -> None:
        self.compiled = compiled
        self.ints, self.floats, self.work = compiled.ints, compiled.floats, compiled.work
        self.views = self.system.open_work(self.work)

    def choice(self) -> dict[str, NDArray[Any]]:
        """What the solver has chosen on its way, for a checkpoint."""
        choices = None if self.compiled is None else self.compiled.choices
        return {} if choices is None else dict(choices.save_choices())

    def recall(self, choice: dict[str, NDArray[Any]]) -> None:
        """Go on with what was chosen before a checkpoint."""
        if choice and self.compiled is not None and self.compiled.choices is not None:
            compiled = self.compiled.choices.restore_choices(choice)
            if not self.in_python:
                self._use(compiled)

    def check(self, evaluate: Callable[[], int]) -> None:
        """Evaluate, once more where the solver asks to be prepared anew, and raise what the status means."""
        status = evaluate()
        if status == AGAIN:
            t, q, v = float(self.views.t[0]), self.views.q.copy(), self.views.v.copy()
            self.again()
            self.views.t[0], self.views.q[:], self.views.v[:] = t, q, v
            status = evaluate()
        if status != FINE:
            raise self.failure(status)

    def failure(self, status: int) -> LoopdynError:
        """What a status means."""
        if status == NOT_A_NUMBER:
            bad = np.flatnonzero(~np.isfinite(self.views.a))
            label = self.system.speeds[int(bad[0])] if bad.size else self.system.speeds[0]
            return LoopdynError(
                f"the acceleration of '{label}' is not a finite number. Check formulas that divide by zero or leave "
                "their range, springs whose points meet, and the size of the steps."
            )
        if status == TURNED:
            return LoopdynError(
                f"a step turns a cut joint ({', '.join(self.system.counted)}) by more than {stepping.FARTHEST:g} rad, "
                "so that its full turns, which something depends on, cannot be counted. Use shorter steps."
            )
        if self.compiled is not None and not self.in_python:
            return self.compiled.explain(status)
        return self.error or LoopdynError("the solver failed without a reason")

    # -------------------------------------------------------------------------------------------- the state

    @property
    def t(self) -> float:
        """Time reached."""
        m = self.memory
        return float(m.clock[chart.STOP if m.count[chart.PENDING] else chart.START])

    def state(self) -> State:
        """State reached, turns included."""
        return State(self.t, self.unwrapped(self.memory.q1), self.memory.v1.copy())

    def unwrapped(self, q: Array) -> Array:
        """Coordinates with the turns that were taken off."""
        q = q.copy()
        q[self.memory.wrapped] += self.memory.turns * chart.FULL_TURN
        return q

    def inside(self, t: float) -> State:
        """State at a time inside the last step, on the dense output and corrected; `works` then are those there."""
        m = self.memory
        handed = m, self.method, t, self.weights, *self._handed[:2]
        self.check(lambda: int(self._within(self.ints, self.floats, self.work, *handed)))
        return State(t, self.unwrapped(self.views.q), self.views.v.copy())

    def on_curve(self, t: float) -> State:
        """State at a time inside the last step, on the dense output as it is: for looking around, at little cost."""
        m = self.memory
        handed = m, self.method, self._handed[0]
        self.check(lambda: int(self._extend(self.ints, self.floats, self.work, *handed)))
        stepping.look_inside(self.ints, self.work, m, self.method, t, self.weights)
        if self.system.counted:
            count(self.ints, self.floats, self.work)
        return State(t, self.unwrapped(self.views.q), self.views.v.copy())

    @property
    def works(self) -> Array:
        """Works at the state that was asked for last."""
        return np.array(self.memory.stage[2 * self.system.nv :])


def _plain(function: Any) -> Any:
    """A kernel as the Python function it was written as."""
    return getattr(function, "py_func", function)


@cache
def _specialised(function: Any, **bound: Any) -> Any:
    """`specialise`, once for the same functions in a process: finding a kernel in the cache takes time too."""
    return specialise(function, **bound)


# ------------------------------------------------------------------------------------ questions to a system


def _reads(system: System, program: int, variable: int) -> bool:
    """Whether a program of the frozen arrays reads a variable."""
    model = system.model
    code = model.code[model.program[program] : model.program[program + 1]]
    return bool(np.any((code & OP.MASK == OP.VARIABLE) & (code >> OP.BITS == variable)))


def moves_by_itself(system: System) -> bool:
    """Whether drivers or bases move, or may move, as time goes: energy then enters through constraints."""
    model = system.model
    if system.mechanism.user_constraints or np.any(model.linear[:, rec.L_KIND] == rec.VELOCITY_RELATION):
        return True  # whether they do is not known
    programs = [*model.base_programs.ravel(), *model.cut[:, rec.C_PROGRAM], *model.linear[:, rec.L_PROGRAM]]
    return any(_reads(system, int(k), 0) for k in programs if k >= 0)


def depends_on_time(system: System) -> bool:
    """Whether anything in the equations may change with time by itself, and so may jump at a time."""
    model, users = system.model, system.mechanism.user_forces or system.mechanism.user_constraints
    return bool(users) or any(_reads(system, k, 0) for k in range(len(model.program) - 1))


def _of_tendons(system: System) -> set[int]:
    """Coordinates that tendons over joints read."""
    model = system.model
    found = [
        data[TERM_COORDINATE : N_TERM * force[1] : N_TERM]
        for force, data in zip(model.force, model.force_data, strict=True)
        if force[0] == JOINT_TENDON
    ]
    return {int(c) for part in found for c in part}


def angles_to_wrap(system: System) -> NDArray[np.int64]:
    """Coordinates that are plain angles, so that whole turns can be taken off: nothing reads their value."""
    if system.mechanism.user_forces or system.mechanism.user_constraints:
        return np.zeros(0, np.int64)
    angles = {
        j.q0 + k
        for j in system.joints.values()
        if j.in_tree
        for k in range(len(j.spec.dimensions))
        if j.spec.is_periodic(k)
    }
    model = system.model
    angles -= {int(c) for cut, _, c in model.entry if cut < 0}
    angles -= set(model.path[:, 0].tolist())
    for force in model.force:
        reads = force[0] == JOINT_SPRING or (force[0] == MOTOR and _reads(system, int(force[4]), 1))
        if reads and force[1] < 0:
            angles.discard(int(force[3]))
    angles -= _of_tendons(system)
    return np.array(sorted(angles), np.int64)
