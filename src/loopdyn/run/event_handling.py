"""Handling of events in a run: locate them in the last step, record them, and restart the integration after them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from loopdyn.errors import ConvergenceError, LoopdynError
from loopdyn.integrators.moreau import Moreau
from loopdyn.run.breakpoints import crosses_breakpoint, goes_beyond, leaves
from loopdyn.run.contact_steps import ContactStepping, suitable_step
from loopdyn.run.contacts import Reaction, Unsettled, book
from loopdyn.run.context import RunContext
from loopdyn.run.event_actions import apply
from loopdyn.run.events import Action, Found, Watched
from loopdyn.run.locking import Add, Lock, Release, change, compiled
from loopdyn.run.singular_passage import SingularPoses, moving_energy, require_branch
from loopdyn.system.system import State, System, TableUse
from loopdyn.thresholds import CONSISTENT
from loopdyn.tree.power import GIVEN, N_OTHERS
from loopdyn.tree.residuals import residuals
from loopdyn.tree.tables import leave_table, table_place

Array = NDArray[np.float64]

LATER = 20  # later times in a step at which contacts are decided, each four times as late as the one before


class Ending(NamedTuple):
    """End of a run: its status "finished", "stopped", "interrupted" or "failed", and the reason."""

    status: str
    message: str


class _Due(NamedTuple):
    """A due event, with the state at which it happens and the works done up to it."""

    kind: str
    name: str
    state: State
    works: Array
    stop: bool
    action: Action | None
    found: Found | None = None


class EventHandler:
    """Finds events in the last step of a run and carries out their actions.

    Parameters
    ----------
    context : RunContext
    poses : SingularPoses
        An ongoing passage ends where an event restarts the integration.
    """

    def __init__(self, context: RunContext, poses: SingularPoses):
        self.context, self.poses = context, poses
        self.pile: ContactStepping | None = None  # sums over momentum steps with contacts

    def handle(self, look: bool) -> Ending | None:
        """Handle time events and, if `look` is set, crossings in the last step, in the order of time.

        Return how the run ends if an event ends it or the last time is reached.
        """
        context = self.context
        while True:
            stop = context.stop
            stopped = self._crossings(stop) if look and context.watch.crossings else ""
            if not look and context.contacts:
                context.contacts.check_outputs(context.recorder)
                context.contacts.overdue(context.stepper.state())
            if not stopped and context.stepper.t < stop:
                return None
            stopped = stopped or self._time_events(stop)
            if stopped:
                return Ending("stopped", stopped)
            if stop >= context.end:
                if self.poses.ongoing is not None:
                    self.poses.end_at(context.stepper.interpolate(stop), context.stepper.works)
                return Ending("finished", f"reached t = {context.end:g} s")

    def start_anew(self, state: State, works: Array, before: State) -> None:
        """Restart at `state` after an event at the state `before`, up to which `works` were done.

        Contacts are decided again. Inside a singular passage another passage begins: momentum steps continue.
        """
        context = self.context
        try:
            reaction = context.contacts.react(context.journal.phase, state) if context.contacts else None
        except Unsettled as error:
            self.leave_contacts_to_steps(error, state, works)
            return
        if reaction is not None:
            state = self.change_contacts(reaction, state, works)
        self._restart(state, works, before)

    def _restart(self, state: State, works: Array, before: State) -> None:
        context, ongoing = self.context, self.poses.ongoing
        if context.contacts:
            context.contacts.hold(state)
        end = context.next_stop(state.t)
        if ongoing is None:
            context.stepper.start(state, end, works)
        else:
            self.poses.leave(before, works)
            context.stepper.aim(end)
            self.poses.begin(state, works, ongoing.largest)

    def _react(self, state: State, met: Watched | None, stays: bool) -> Reaction | None:
        """Reaction of contacts to a state inside the last step; if it fails, outputs after it are removed."""
        try:
            return self.context.contacts.react(self.context.journal.phase, state, met, stays)
        except LoopdynError:
            self.context.recorder.take_back(state.t)
            raise

    def leave_contacts_to_steps(self, error: Unsettled, state: State, works: Array) -> None:
        """Continue by momentum steps with contacts, where `auto` may choose; else raises."""
        context, phase = self.context, self.context.journal.phase
        takes_over = context.method.passes(context.system) and not context.method.steps
        if not takes_over or self.poses.ongoing is not None:
            raise error
        free = replace(phase, touching=(), implied=(), indeterminate=())
        free = compiled(context.system, free, context.with_inputs)
        if free.system is not context.system:  # locks and other changes of constraints
            raise error
        context.recorder.take_back(state.t)
        context.contacts.leave_to_steps()
        watch = context.watch
        watch.crossings, watch.gaps = [w for w in watch.crossings if not w.contact], None
        context.enter(replace(free, first=context.recorder.written), state)
        monitor = context.stepper.monitor
        assert monitor is not None
        steps = Moreau(step=suitable_step(context.system, state))
        context.stepper = context.stepper.with_solver(monitor.momentum, steps)
        context.stepper.watch([], [])
        context.stepper.start(state, context.next_stop(state.t), works)
        self.pile = ContactStepping(context, state)
        name = f"{error.why}: momentum steps of {steps.step:.2g} s, of first order, go on"
        context.journal.book("momentum steps", name, state)

    def change_contacts(self, reaction: Reaction, state: State, works: Array) -> State:
        """Record impacts and other changes of contacts at a state, and enter their phase; returns the state after.

        What drivers and moving bases do in impacts is added to `works`.
        """
        context = self.context
        phase = reaction.phase
        if reaction.new_phase:
            phase = compiled(context.system, replace(phase, first=context.recorder.written), context.with_inputs)
        loss = moving_energy(context.journal.phase.system, state) - moving_energy(phase.system, reaction.after)
        if context.settings["moved"]:
            works[GIVEN - N_OTHERS] += reaction.given
            loss += reaction.given
        book(context.journal, reaction.notes, state, reaction.after, loss)
        context.recorder.lose(loss)
        if reaction.new_phase:
            self.poses.leave(state, works)
            context.enter(phase, reaction.after)
        return reaction.after

    # ------------------------------------------------------------------------------------------- crossings

    def _crossings(self, stop: float) -> str:
        """Handle crossings in the last step before the next stop; return why the run stops, or ""."""
        try:
            return self._crossings_in_step(stop)
        except ConvergenceError:
            ongoing, made = self.poses.ongoing, self.context.stepper.stepping
            if ongoing is None or made is None or made.poses:
                raise
            self.poses.change(ongoing)  # the motion is not smooth near a singular pose that it narrowly misses
            return ""

    def _crossings_in_step(self, stop: float) -> str:
        context, stepper, watch = self.context, self.context.stepper, self.context.watch
        start, stop = max(stepper.step_start, context.passed), min(stepper.step_end, stop)
        end = stepper.state() if stop == stepper.step_end else stepper.interpolate(stop)
        curve = stepper.dense_output
        if stepper.stepping is not None and stepper.stepping.extrapolate:
            if not watch.sees(curve, start, stop, end):
                return ""
            curve = stepper.stepping.on_polynomial
        handled = start
        for part in self._parts(start, stop):
            here = end if part == stop else stepper.interpolate(part)
            while (found := watch.find(curve, start, part, here)) is not None:
                why = self._found(found, curve, start, stop, end)
                if why is not None:
                    return why
                handled = start = found.t
            start = part
        try:
            overdue = bool(context.contacts) and context.contacts.overdue(end)
        except LoopdynError:
            context.recorder.take_back(handled)
            raise
        if overdue:
            self._contacts_change(None, stop)
        return ""

    def _parts(self, start: float, stop: float) -> list[float]:
        """Ends of the parts of a step in which crossings are looked for.

        While contacts hold a mechanism at rest steps are long: laws of time may let go of it, and take hold again,
        within one. Then they are looked for from output to output.
        """
        times = self.context.recorder.times
        between = times[(times > start) & (times < stop)]
        alone = not (len(between) and self.context.contacts and self.context.contacts.depend_on_time)
        return [stop] if alone else [*between.tolist(), stop]

    def _found(
        self, found: Found, curve: Callable[[float], State], start: float, stop: float, end: State
    ) -> str | None:
        """Handle a crossing in the last step; why the run stops, "" if the integration was restarted, else None."""
        context, stepper, watch = self.context, self.context.stepper, self.context.watch
        state, works = stepper.interpolate(found.t), stepper.works
        event, table = found.watched.event, found.watched.table
        if table is not None and crosses_breakpoint(watch.system, found, curve(start), end):
            left = leaves(watch.system, found, state)
            left = left and goes_beyond(watch.system, table, curve, found.t, stop)
            context.recorder.take_back(found.t)
            if left:
                self._leave_table(table, state)
            self.start_anew(state, works, state)
            return ""
        if found.watched.contact:
            return "" if self._contacts_change(found, stop, stays=found.t == start) else None
        if event.stop or event.action is not None:
            context.recorder.take_back(found.t)
            due = _Due(found.watched.kind, event.name, state, works, event.stop, event.action, found)
            return self._happen(due)[0]
        if table is None:
            context.journal.book(found.watched.kind, event.name, state)
        return None

    def _contacts_change(self, found: Found | None, stop: float, stays: bool = False) -> bool:
        """React of contacts to an event in the last step, or at its end; False if they do not change.

        A gap that `stays` closed was met at the start of the step, which it does not leave upwards.
        Forces are located on the polynomial of the step, and decided at states that satisfy the constraints: the
        difference, as large as the tolerance, is bridged by later times.
        """
        context, stepper = self.context, self.context.stepper
        t = stop if found is None else found.t
        times = [t, *(x for k in range(LATER) if (x := t + (stop - t) * 4.0 ** (k + 1 - LATER)) > t)]
        several = found is not None and found.watched.kind == "separation"
        for t in times if several else times[:1]:
            state, works = stepper.interpolate(t), stepper.works
            try:
                reaction = self._react(state, None if found is None else found.watched, stays)
            except Unsettled as error:
                self.leave_contacts_to_steps(error, state, works)
                return True
            if reaction is not None:
                context.recorder.take_back(t)
                after = self.change_contacts(reaction, state, works)
                self._restart(after, works, state)
                context.journal.note_independent(after.t, context.stepper)
                return True
        return False

    def _leave_table(self, table: TableUse, state: State) -> None:
        """Report once that a table is left; raises if that is an error."""
        name, journal = f"{table.element} leaves its table of {table.of}", self.context.journal
        if table.lookup.outside != "extend" and all((e.kind, e.name) != ("table", name) for e in journal.events):
            journal.book("table", name, state)
            leave_table(table, f" at t = {state.t:.6g} s")

    # ----------------------------------------------------------------------------------------------- times

    def _time_events(self, now: float) -> str:
        """Handle events due now and restart just after them; return why the run stops, or ""."""
        context = self.context
        behind = float(np.nextafter(now, np.inf))
        due = [e for e in context.watch.times if now <= e.t <= behind]
        breakpoint = context.breakpoints[np.searchsorted(context.breakpoints, now) :][:1]
        if not due and not (breakpoint <= behind).any():
            return ""
        reached, works = context.stepper.interpolate(now), context.stepper.works
        if context.stepper.t > now and not any(e.stop or e.action for e in due):  # see `steps_past_stop`
            for event in due:
                context.journal.book("time", event.name, reached)
            context.passed = behind
            context.stepper.aim(max(context.stepper.t, context.stop))
            return ""
        context.recorder.take_back(now)
        for table in context.system.tables:
            if table_place(context.system, table) == 0 and (table.lookup.knots[-1] == breakpoint).any():
                self._leave_table(table, reached)
        if not due:
            reached = State(float(np.nextafter(breakpoint[0], np.inf)), reached.q, reached.v)
        for event in due:
            stopped, after = self._happen(_Due("time", event.name, reached, works, event.stop, event.action))
            if stopped:
                return stopped
            reached = State(min(float(np.nextafter(event.t, np.inf)), context.end), after.q, after.v)
        self.start_anew(reached, works, reached)
        return ""

    # -------------------------------------------------------------------------------- what an event changes

    def _happen(self, due: _Due) -> tuple[str, State]:
        """Record an event that stops the run or changes its state, and restart after it.

        Return why the run stops (or ""), and the state after the event.
        """
        context, state, action = self.context, due.state, due.action
        impulse, loss, after = None, 0.0, state
        if isinstance(action, Lock | Release | Add):
            written, adapt = context.recorder.written, context.with_inputs
            phase, jump = change(context.system, context.journal.phase, state, action, written, adapt)
            after, loss, impulse = jump.state, jump.energy_loss, jump.impulse
            if not due.stop:
                self.poses.leave(state, due.works)  # the regular method continues with the new constraints
                context.enter(phase, after)
        elif action is not None:
            after = apply(action, state, due.name)
            self._check_action(due.name, after)
            loss = moving_energy(context.system, state) - moving_energy(context.system, after)
        context.journal.book(due.kind, due.name, state, after, energy_loss=loss, of_joints=impulse)
        why = self._why_it_stops(due, after)
        if why:
            context.recorder.write_end(context.stepper, state.t)
            self.poses.end_at(state, due.works)
            return why, after
        context.recorder.lose(loss)
        self.start_anew(after, due.works, state)
        context.journal.note_independent(state.t, context.stepper)
        return "", after

    def _check_action(self, name: str, after: State) -> None:
        """Raise if the run cannot continue from the state after an action."""
        context, watch = self.context, self.context.watch
        inexact = 10.0 * float(context.settings["rtol"])  # accuracy of the state before the action
        check_closed(watch.system, after, f"after the action of '{name}'", max(CONSISTENT, inexact))
        if context.stepper.integrator.drives_steppers:  # steps of momentum may be at a singular pose
            require_branch(watch.system, after, watch.rank, inexact)

    @staticmethod
    def _why_it_stops(due: _Due, after: State) -> str:
        """Reason why the run stops at an event, or ""."""
        t, rest = due.state.t, None if due.found is None else due.found.watched.rest
        if due.stop:
            return f"{due.name} at t = {t:g} s"
        if rest is not None and rest(after):
            return f"{due.name}: it comes to rest there at t = {t:g} s. To go on, add a contact: ld.contacts.Stop."
        return ""


def check_closed(system: System, state: State, when: str, allowed: float = CONSISTENT) -> None:
    """Raise if constraint equations are violated, in position or velocity, by more than `allowed`."""
    if system.nc == 0:
        return
    phi, rate = (x / system.row_units for x in residuals(system, state))
    holonomic = np.where(system.holonomic, phi, 0.0)
    fastest = max(1.0, float(np.abs(state.v / system.speed_units).max(initial=0.0)))
    for what, values, scale in (("open", holonomic, 1.0), ("opening", rate, fastest)):
        k = int(np.argmax(np.abs(values)))
        if abs(values[k]) > allowed * scale:
            raise LoopdynError(
                f"row '{system.constraint_rows[k]}' is {what} by {abs(values[k]):.2g} in natural units"
                f"{' per s' if what == 'opening' else ''} {when}. Close it first: ld.assemble(system, ...)."
            )
