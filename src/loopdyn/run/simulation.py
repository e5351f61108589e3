"""`Simulation`: a motion under somebody's control, step by step, on the state machine of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from loopdyn.analysis.assembly import assemble
from loopdyn.errors import LoopdynError, warn
from loopdyn.formulations.base import Formulation
from loopdyn.formulations.registry import DEFAULT
from loopdyn.integrators.base import Fixed, Integrator
from loopdyn.integrators.drift import Drift
from loopdyn.integrators.outcome import Outcome
from loopdyn.integrators.stepper import Stepper
from loopdyn.interrupts import held
from loopdyn.run.breakpoints import time_breakpoints
from loopdyn.run.driver import RunDriver
from loopdyn.run.event_handling import Ending
from loopdyn.run.events import Event, Given, with_limits_of_model
from loopdyn.run.inputs import JUMPED, SAME, InputPlaces, Inputs
from loopdyn.run.labelled_values import value_of
from loopdyn.run.simulate import RESOLVED, SHORTEST_SPAN, prepare_run, run_choices
from loopdyn.run.singular_passage import Passage
from loopdyn.system.system import State, System

Array = NDArray[np.float64]

KEPT = 256  # steps whose ends are recorded until they are checked together
MOST_STEPS = 10_000  # steps of the integrator in one compiled call, which a Ctrl-C does not interrupt
# Steps of the simulation over which times of breakpoints are known, and those over which the stiff integrator must pay
# off: a step of the simulation is at least ten steps of the other one.
AHEAD, OUTLOOK = 1000, 10
TEN = 10.0  # the longest step of an integrator is a tenth of the span it is given


class Simulation:
    """A simulation that is made step by step, e.g. by a controller.

    The motion is that of :func:`simulate` whose inputs are held over each step, with its events, singular passages and
    drift control. Nothing is prepared again for a step. Labelled numbers are in the units of the mechanism, arrays of
    states in SI units.

    Parameters
    ----------
    system : System
    state : State, optional
        A closed state, and the time to begin at; by default the start of the model, assembled.
    inputs : list of str
        Motors, actuators, forces (a component as "push.fx") and drivers, whose laws are replaced by the values given
        to :meth:`step`. Before the first step loads are zero, and drivers keep their speed.
    step : float
        Time of a step, s.
    hold : {"zero", "linear"}
        Loads over a step: held, or along a straight line from the value of the step before to the one given.
    formulation, integrator, rtol, atol, drift, events
        As for :func:`simulate`.

    Examples
    --------
    A pendulum, held up by a motor:

    >>> import loopdyn as ld
    >>> m = ld.library.pendulum()
    >>> motor = m.add_motor("motor", "A", torque=0.0)
    >>> sim = ld.Simulation(m.compile(), inputs=["motor"], step=1e-3)
    >>> for _ in range(100):
    ...     going = sim.step({"motor": 20.0 * (0.1 - sim["A"]) - 5.0 * sim["A.speed"]})
    >>> going, round(sim.t, 6), sim.status
    (True, 0.1, 'running')
    """

    def __init__(
        self,
        system: System,
        state: State | None = None,
        inputs: Sequence[str] = (),
        step: float = 1e-3,
        *,
        hold: Literal["zero", "linear"] = "zero",
        formulation: str | Formulation = DEFAULT,
        integrator: str | Integrator = "auto",
        rtol: float = 1e-8,
        atol: float | None = None,
        drift: Drift = "projection",
        events: Sequence[Given] = (),
    ):
        if not (np.isfinite(step) and step >= SHORTEST_SPAN):
            raise LoopdynError(f"Simulation: step is {step}. Give a positive number of seconds, such as 1e-3.")
        if isinstance(inputs, str):
            raise LoopdynError(f"Simulation: inputs are '{inputs}'. Give a list of names: inputs=['{inputs}'].")
        self.step_size = float(step)
        self._choices = run_choices(formulation, integrator, rtol, atol, drift)
        self._given, self._hold, self._events = system, hold, tuple(events)
        first = assemble(system) if state is None else state
        self._inputs = Inputs(system.for_state(first), inputs, hold)
        self._begin(first)

    def _begin(self, state: State) -> None:
        """Prepare everything at a state."""
        h, inputs = self.step_size, self._inputs
        first = State(float(state.t), np.array(state.q, float), np.array(state.v, float))
        if h < RESOLVED * float(np.spacing(abs(first.t))):
            raise LoopdynError(f"Simulation: steps of {h:g} s are lost in rounding at t = {first.t:g} s. Begin at 0.")
        self._first, self._count, self._t = first, 0, first.t
        self._ended: Ending | None = None
        self._last: tuple[State, Array] | None = None  # state and accelerations at an event that ended it
        self._warned: set[str] = set()
        inputs.begin(first)
        system = inputs.system
        self._write_into(system)
        events = with_limits_of_model(system, self._events)
        times = np.full(KEPT, np.inf)
        self._driver = prepare_run(system, first, first.t + TEN * h, times, self._choices, events, np.inf)
        context = self._driver.context
        context.outlook, context.laws_jump = OUTLOOK * h * TEN, bool(inputs.names)
        context.with_inputs = self._write_into
        self._recorder, self._out = context.recorder, context.recorder.out
        self._recorder.times = self._out.t  # they are set as the steps are made
        self._know_breakpoints()
        context.end = first.t + h
        self._driver.begin()
        self._bind()
        self._warn()

    # ------------------------------------------------------------------------------------------------ reading

    @property
    def t(self) -> float:
        """Time reached, s."""
        return self._t

    @property
    def state(self) -> State:
        """State reached: arrays SI, ``sim.state["A.speed"]`` in declared units."""
        return replace(self._reached()[0], system=self._driver.context.journal.phase.system)

    @property
    def a(self) -> Array:
        """Accelerations (nv,) at the state reached, SI, under the inputs of the step that led there."""
        return self._reached()[1].copy()

    def __getitem__(self, label: str) -> float:
        """Value of a label at the state reached, in the units of the mechanism.

        A coordinate ("A"), speed ("A.speed"), acceleration ("A.acceleration"), component of a reaction ("C.fx") or load
        of a force, constraint or driver ("motor.load"). Loads are those under the inputs of the step that led there; in
        a singular passage, where they may be unbounded, they are NaN.
        """
        if not isinstance(label, str):
            raise LoopdynError(f"a label is text, such as 'A' or 'C.fx', not {label!r}.")
        state, a = self._reached()
        return value_of(self._driver.context.journal.phase.system, label, state, a)

    @property
    def status(self) -> str:
        """State of the simulation: "running", "stopped" (by an event) or "failed"."""
        return "running" if self._ended is None else self._ended.status

    @property
    def message(self) -> str:
        """Reason why it ended; empty while it is running."""
        return "" if self._ended is None else self._ended.message

    @property
    def events(self) -> tuple[Event, ...]:
        """Events so far."""
        return tuple(sorted(self._driver.context.journal.events, key=lambda e: e.t))

    @property
    def passages(self) -> tuple[Passage, ...]:
        """Singular passages and near misses so far."""
        return tuple(self._driver.context.journal.passages)

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the inputs, in the order of a list of values."""
        return self._inputs.names

    def _reached(self) -> tuple[State, Array]:
        """State reached and its accelerations: NaN in a singular passage, and in momentum steps with contacts."""
        if self._last is not None:
            return self._last
        stepper = self._driver.context.stepper
        if self._driver.poses.ongoing is not None or self._driver.events.pile is not None:
            state = stepper.state() if stepper.t == self._t else stepper.interpolate(self._t)
            return state, np.full(len(state.v), np.nan)
        return stepper.state(), stepper.accelerations_reached

    # ------------------------------------------------------------------------------------------------ stepping

    def step(self, u: Any = None) -> bool:
        """Make one step; return whether more can follow.

        Parameters
        ----------
        u : mapping or list, optional
            Values of the inputs in the units of the mechanism, by name or in the order of `inputs`; those that are not
            given stay as they are. For a driver a number is its acceleration over the step, a pair the position and
            speed at its end.

        Raises
        ------
        LoopdynError
            If a value is wrong, or the simulation has ended: see `status` and `message`.
        """
        if self._ended is not None:
            raise LoopdynError(
                f"the simulation has {self._ended.status}: {self._ended.message} Begin again: sim.reset()."
            )
        values = self._inputs.read(u)
        end = self._first.t + (self._count + 1) * self.step_size
        if not (self._simple and end < self._next_time):
            return self._step_carefully(values, end)
        try:
            return self._step_at_once(values, end)
        except KeyboardInterrupt:
            with held():
                self._complete(end)
            raise

    def _step_at_once(self, values: list[Any], end: float) -> bool:
        """Make a step in one compiled call, unless something happens in it."""
        stepper, out = self._stepper, self._out
        change = self._inputs.set(values, self._t, end)
        if change != SAME:
            self._inputs.write(self._targets)
        if change == JUMPED or self._fixed:
            stepper.law_jumped()
        stepper.aim(end)
        out.t[out.written[0]] = end
        outcome = stepper.advance(out, MOST_STEPS)
        if outcome.end == "reached" and not outcome.may_hold_event and not stepper.stiffness_detected:
            self._commit(end)
            return self._ended is None
        with held():
            return self._go_on(end, outcome)

    def _complete(self, end: float) -> None:
        """Complete a step that a Ctrl-C has interrupted after the compiled call; undo it if it came before."""
        if self._t == end:
            return
        if self._stepper.t > self._t:
            self._go_on(end, replace(self._stepper.advance(self._out, MOST_STEPS), stepped=True))
        else:
            self._inputs.revert(self._targets)

    def _step_carefully(self, values: list[Any], end: float) -> bool:
        """Make a step in Python, after which something may have to be done, or in which functions are called."""
        before = None if self._driver.in_passage else _Before(self._driver)
        try:
            self._set_inputs(values, end)
            return self._go_on(end)
        except BaseException:  # Ctrl-C, or an error in a function of the user
            if before is None:
                self._ended = Ending("failed", f"a step was interrupted in a singular passage at t = {self._t:g} s.")
            else:
                before.restore()
                self._targets = self._all_targets()
                self._inputs.revert(self._targets)
                self._bind()
            raise

    def _set_inputs(self, values: list[Any], end: float) -> None:
        """Write the inputs of the next step to all arrays; a singular passage begins again where they change."""
        driver, context = self._driver, self._driver.context
        change, ongoing = self._inputs.set(values, self._t, end), driver.poses.ongoing
        context.end = end
        if change == SAME and not self._fixed:
            context.stepper.aim(max(context.stepper.t, context.next_stop(self._t)))
            return
        state, works = context.stepper.state(), context.stepper.works_reached
        if ongoing is not None:
            driver.poses.leave(state, works)
            self._compute_impulses()
        self._targets = self._all_targets()
        self._inputs.write(self._targets)
        context.stepper.aim(context.next_stop(self._t))
        if ongoing is not None:
            driver.poses.begin(state, works, ongoing.largest)
        elif context.stepper.stepping is not None:
            context.stepper.start(state, context.next_stop(self._t), works)
        elif change == JUMPED and context.contacts.pulls(state):
            driver.events.start_anew(state, works, state)
        elif change == JUMPED or self._fixed:
            context.stepper.law_jumped()

    def _go_on(self, end: float, outcome: Outcome | None = None) -> bool:
        """Drive the run to the end of the step, from the outcome of its first steps if there are any."""
        driver, context = self._driver, self._driver.context
        context.end = end
        self._out.t[self._out.written[0]] = end
        try:
            if outcome is not None:
                driver.settle(outcome)
            while driver.ended is None:
                driver.advance(MOST_STEPS)
        except LoopdynError as error:
            driver.fail(error)
        if context.stepper.stiffness_detected:
            context.stepper.forget_stiffness()
        if driver.ended is not None and driver.ended.status != "finished":
            self._end(driver.ending())
        else:
            driver.ended = None
            self._commit(end)
            self._go_on_after_passage()
            if context.stepper.t > end:  # momentum steps past a singular pose at the end
                context.passed = end
        self._compute_impulses()
        self._bind()
        self._warn()
        return self._ended is None

    def _go_on_after_passage(self) -> None:
        """Return to the regular method if a singular passage is over."""
        try:
            self._driver.poses.go_on_after_end()
        except LoopdynError as error:
            self._driver.fail(error)
            self._end(self._driver.ending())

    def _end(self, ending: Ending) -> None:
        """End the simulation where an event or a failure ended it."""
        self._ended, journal, stepper = ending, self._driver.context.journal, self._driver.context.stepper
        state, a = stepper.state(), stepper.accelerations_reached
        if ending.status == "stopped":
            state, a = journal.events[-1].after, self._out.a[max(self._recorder.written - 1, 0)].copy()
        self._t, self._last = state.t, (state, a)

    def _commit(self, end: float) -> None:
        """Count a step that was made; check the recorded ends of steps when there are many."""
        self._inputs.commit()
        self._t, self._count = end, self._count + 1
        if self._out.written[0] >= KEPT:
            self._check()

    def _check(self) -> None:
        """Check the recorded ends of steps, and make room for more."""
        recorder, context, h = self._recorder, self._driver.context, self.step_size
        wrong = recorder.check(context.journal.phases)
        if wrong:
            self._driver.ended = Ending("failed", wrong)
            self._end(self._driver.ending())
            return
        recorder.empty()
        context.journal.phases[:] = [replace(phase, first=0) for phase in context.journal.phases]
        context.stepper.allow(self._t, self._t + TEN * h)
        if self._t + KEPT * h > self._known_until:
            self._know_breakpoints()
        self._warn()

    # --------------------------------------------------------------------------------------------- preparation

    def _know_breakpoints(self) -> None:
        """Find the breakpoints of profiles and tables in the time ahead."""
        context, self._known_until = self._driver.context, self._t + AHEAD * self.step_size
        context.breakpoints = time_breakpoints(self._inputs.system, self._t, self._known_until)
        self._find_next_time()

    def _find_next_time(self) -> None:
        """Find the next time before which no time event and no breakpoint is due."""
        context = self._driver.context
        due = [e.t for e in context.watch.times if e.t > self._t] + context.breakpoints[
            np.searchsorted(context.breakpoints, self._t, side="right") :
        ][:1].tolist()
        self._next_time = float(np.nextafter(min(due, default=np.inf), -np.inf)) if due else np.inf

    def _bind(self) -> None:
        """Find what the next step needs: the stepper, the places of its inputs, and whether it is a simple one."""
        driver = self._driver
        self._stepper: Stepper = driver.context.stepper
        self._fixed = isinstance(self._stepper.integrator, Fixed)
        self._targets = self._all_targets()
        plain = not (self._stepper.in_python or driver.landed or driver.poses.ongoing is not None)
        self._simple = plain and self._ended is None and not driver.must_check_each_step()
        self._find_next_time()

    def _write_into(self, system: System) -> None:
        """Write the present inputs into a system made from the same model, before a solver is prepared for it."""
        if self._inputs.names:
            self._inputs.write(list(map(self._target, self._systems(system))))

    def _systems(self, system: System) -> list[System]:
        """Systems with whose arrays accelerations, and the speeds after a joint is locked, are computed."""
        both = self._choices.method.uses_absolute or self._inputs.drivers
        return [system, system.absolute] if both else [system]

    def _target(self, system: System) -> InputPlaces:
        return self._inputs.target(system, system.ints, system.floats)

    def _all_targets(self) -> list[InputPlaces]:
        """Places of the inputs in the arrays of the system, of its solver, and of the one that a passage replaces."""
        if not self._inputs.names:
            return []
        context, ongoing = self._driver.context, self._driver.poses.ongoing
        solvers = [context.stepper.solver, *([] if ongoing is None else [ongoing.regular.solver])]
        solvers += context.contacts.solvers
        system = context.journal.phase.system
        found = {id(s.floats): (s, s.ints, s.floats) for s in self._systems(system)}
        for solver in solvers:
            if (kernels := solver.kernels) is not None:
                found[id(kernels.floats)] = system, kernels.ints, kernels.floats
        return [self._inputs.target(*one) for one in found.values()]

    def _compute_impulses(self) -> None:
        """Compute the impulses of new singular passages now: they depend on the inputs, which change."""
        for passage in self._driver.context.journal.passages if self._inputs.names else ():
            _ = passage.impulses

    def _warn(self) -> None:
        """Issue each warning once."""
        for text in self._driver.suspicious():
            about = text.partition(" of the run is ")[0]
            if about not in self._warned:
                self._warned.add(about)
                warn(text)

    # --------------------------------------------------------------------------------------- again, and copies

    def reset(self, state: State | None = None) -> None:
        """Begin again, at a state or where it began: as a new simulation would.

        Parameters
        ----------
        state : State, optional
            A closed state; by default the first one.
        """
        self._begin(self._first if state is None else state)

    def copy(self) -> Simulation:
        """Return an independent copy that goes on as this one does, to the last bit.

        Raises
        ------
        LoopdynError
            In a singular passage.
        """
        if self._driver.in_passage:
            raise LoopdynError(
                f"in a singular passage, or while contacts act in momentum steps, at t = {self._t:g} s, there is no "
                "copy. Make it before or after."
            )
        self._check()
        other = object.__new__(Simulation)
        for name in ("step_size", "_choices", "_given", "_hold", "_events"):
            setattr(other, name, getattr(self, name))
        other._inputs = Inputs(self._given.for_state(self._first), self._inputs.names, self._hold)
        other._begin(self._first)
        other._go_on_as(self)
        return other

    def _go_on_as(self, other: Simulation) -> None:
        """Continue where another simulation of the same kind is, whose outputs have been checked."""
        mine, theirs = self._driver.context, other._driver.context
        saved = {name: np.array(x) for name, x in other._driver.saved().items()}
        self._inputs.copy_from(other._inputs)
        self._write_into(mine.system)
        self._driver.restore_stepper(saved)
        mine.watch.restore(saved)
        mine.journal.continue_as(theirs.journal)
        self._recorder.continue_as(other._recorder)
        self._first, self._count, self._t = other._first, other._count, other._t
        self._ended, self._last, self._warned = other._ended, other._last, set(other._warned)
        mine.end, mine.passed = theirs.end, theirs.passed
        self._know_breakpoints()
        self._bind()
        self._inputs.write(self._targets)

    def __repr__(self) -> str:
        return f"Simulation({self._given.name!r}, t={self._t:g}, status={self.status!r})"


class _Before:
    """A run before a step, to which it can return; not inside a singular passage."""

    def __init__(self, driver: RunDriver):
        self.driver, context = driver, driver.context
        self.stepper, self.passed, self.end = context.stepper, context.passed, context.end
        self.saved = {name: np.array(x) for name, x in context.stepper.save().items()}
        self.watched, self.crowded = context.watch.save(), context.contacts.crowded
        self.journal, self.recorder = context.journal.lengths(), context.recorder.sums()
        self.flags = driver.landed, driver.asked

    def restore(self) -> None:
        """Return to it."""
        driver, context = self.driver, self.driver.context
        driver.poses.ongoing, driver.ended = None, None
        driver.landed, driver.asked = self.flags
        context.stepper, context.passed, context.end = self.stepper, self.passed, self.end
        context.journal.shorten(self.journal)
        context.watch.system = context.journal.phase.system
        self.stepper.restore(self.saved)
        context.watch_contacts(context.journal.phase, self.stepper.state())
        context.watch.restore(self.watched)
        context.contacts.crowded = self.crowded
        context.recorder.restore_sums(self.recorder)
