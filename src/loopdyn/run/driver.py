"""Driver of a run: a small state machine with named states; the outcome of its steps decides the next state.

    regular            steps of the chosen integrator and formulation
    stiff              steps of the stiff integrator, since stability limited the step size
    singular passage   momentum steps through or near a singular pose
    momentum steps     contacts act in momentum steps of one size, up to the end
    near miss          small regular steps near a singular pose, where two circuits come close without meeting
    finished, stopped, interrupted, failed            the run has ended, see `RunDriver.ended`

A run changes from `regular` or `stiff` to `singular passage` where a step leads to a singular pose, from there possibly
to `near miss` and back, and returns to its former state after the pose.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loopdyn.analysis.contradictions import beyond_tolerance, check_open_rows, choose_again
from loopdyn.engine.status import FINE, TURNED
from loopdyn.errors import LoopdynError, SingularityError, warn
from loopdyn.files import WritingError
from loopdyn.integrators.auto import AutoIntegrator
from loopdyn.integrators.moreau import Moreau
from loopdyn.integrators.outcome import Outcome
from loopdyn.integrators.stiff import Stiff
from loopdyn.interrupts import Halt
from loopdyn.loops.rank import dead_point
from loopdyn.results.run import Run, Statistics
from loopdyn.run.contact_steps import ContactStepping
from loopdyn.run.contacts import Unsettled
from loopdyn.run.context import RunContext
from loopdyn.run.event_handling import Ending, EventHandler
from loopdyn.run.locking import phase_of
from loopdyn.run.progress import Progress
from loopdyn.run.restart import Checkpoint
from loopdyn.run.singular_passage import SingularPoses, moving_energy
from loopdyn.system.system import State, System

Array = NDArray[np.float64]

WORTH = 100  # remaining steps, at their current size, from which switching to the stiff integrator pays
PATIENCE = 10  # times a solver may request to be prepared again without a step in between
SAVE_EVERY = 10.0  # seconds of computing between two segments of a checkpoint


class RunDriver:
    """Drives a run from its start to its end, some steps at a time.

    Parameters
    ----------
    context : RunContext
    first : State
        Start of the run.
    singular : bool
        Whether that is a singular pose.
    """

    def __init__(self, context: RunContext, first: State, singular: bool = False):
        self.context, self.first, self.singular = context, first, singular
        self.poses = SingularPoses(context)
        self.events = EventHandler(context, self.poses)
        self.ended: Ending | None = None
        self.landed = False  # a step has been taken whose outputs are still to be written
        self.asked = 0  # times the solver has requested to be prepared again, without a step in between
        self.seconds = 0.0  # computing time of the last steps
        self.complete = True  # no step was left unfinished: the run can be resumed from here
        self.works: Array | None = None  # at the start, of drivers in impacts
        context.stepper.allow(first.t, context.end)
        context.recorder.reference = moving_energy(context.system, first)
        if context.watch.crossings and context.watch.compiled:
            context.stepper.watch(*context.watch.functions())

    @property
    def mode(self) -> str:
        """Name of the state that the run is in."""
        if self.ended is not None:
            return self.ended.status
        if self.poses.ongoing is not None:
            return "singular passage" if self.poses.ongoing.through else "near miss"
        if self.events.pile is not None:
            return "momentum steps"
        return "stiff" if isinstance(self.context.stepper.integrator, Stiff) else "regular"

    # ------------------------------------------------------------------------------------------------ start

    def begin(self) -> None:
        """Begin at the first state, which may be a singular pose."""
        context, first = self.context, self.first
        context.journal.note_independent(first.t, context.stepper)
        for watched in context.watch.crossings:
            if watched.beyond_at_start:
                context.journal.book(watched.kind, watched.event.name, first)
        if context.settings["atol"] is None:
            context.stepper.set_slowest(first)
        if context.contacts:
            self._begin_contacts()
        self._start()
        if context.contacts.in_steps:
            self.events.pile = ContactStepping(context, self.first)
        if context.recorder.times[0] == first.t:
            context.stepper.write(context.recorder.out)

    def _begin_contacts(self) -> None:
        """Decide which contacts are closed at the start."""
        context, first = self.context, self.first
        context.contacts.start(first)
        if isinstance(context.stepper.integrator, Moreau):
            context.contacts.leave_to_steps()
            return
        context.watch_contacts(context.journal.phase, first)
        try:
            reaction = context.contacts.react(context.journal.phase, first)
        except Unsettled as error:
            self.events.leave_contacts_to_steps(error, first, np.zeros(context.stepper.sources))
            return
        if reaction is not None:
            self.works = np.zeros(context.stepper.sources)
            self.first = self.events.change_contacts(reaction, first, self.works)

    def _start(self) -> None:
        end = self.context.next_stop(self.first.t)
        self.context.stepper.aim(end)
        if self.singular and self.poses.begin(self.first):
            return
        try:
            self.context.stepper.start(self.first, end, self.works)
        except SingularityError:
            if not self.poses.begin(self.first):
                raise

    # ------------------------------------------------------------------------------------------------ steps

    def run(self, progress: Progress, stop: Halt, checkpoint: Checkpoint | None) -> None:
        """Make steps until the run ends; recorded outputs are kept whatever ends it."""
        try:
            self._run(progress, stop, checkpoint)
        except KeyboardInterrupt:  # perhaps in the middle of a step: checked outputs are kept
            self.context.recorder.keep(self.context.recorder.checked)
            self.complete = False
            self._interrupt()
        except LoopdynError as error:
            self.fail(error)

    def fail(self, error: LoopdynError) -> None:
        """End the run by an error."""
        self.ended = Ending("failed", f"at t = {self.context.stepper.t:g} s: {error}")

    def _run(self, progress: Progress, stop: Halt, checkpoint: Checkpoint | None) -> None:
        saved = time.perf_counter()
        while self.ended is None:
            if stop.wanted and not self.landed:
                self._interrupt()
                return
            settled = self.advance(progress.limit)
            progress.keep_pace(self.seconds)
            if settled and self.ended is None:
                progress.show(self.context.stepper.t, self.context.recorder.error)
                if not self.landed and time.perf_counter() - saved > SAVE_EVERY:
                    self.save(checkpoint)
                    saved = time.perf_counter()

    def _interrupt(self) -> None:
        self.ended = Ending("interrupted", f"stopped by the user at t = {self.context.stepper.t:g} s")

    def advance(self, limit: int) -> bool:
        """Make at most `limit` steps and act on their outcome.

        Return True if outputs were checked, False if the last step must first be completed or repeated.
        """
        check_each = self.must_check_each_step()
        tick = time.perf_counter()
        limit = 0 if self.landed else 1 if check_each else limit
        outcome = self.context.stepper.advance(self.context.recorder.out, limit)
        self.seconds = time.perf_counter() - tick
        return self.settle(outcome, check_each)

    def settle(self, outcome: Outcome, check_each: bool = False) -> bool:
        """Act on the outcome of steps; see :meth:`advance`. `check_each`: it was one step, which may hold events."""
        outcome = replace(outcome, stepped=outcome.stepped or self.landed)
        self.asked = self.asked + 1 if outcome.end == "asks" and not outcome.stepped else 0
        self.landed = outcome.landed
        if self._must_repeat_step(outcome):
            return False
        ongoing, stepper, ended = self.poses.ongoing, self.context.stepper, None
        if outcome.succeeded:
            ended = self.events.handle(outcome.stepped and (check_each or outcome.may_hold_event))
            if self.events.pile is not None:
                self.events.pile.collect()
        self.poses.note_steps()
        wrong = self.context.recorder.check(self.context.journal.phases)
        if not wrong and ended is None and outcome.stepped and outcome.end == "running":
            wrong = self._check_tolerated()
        self.ended = Ending("failed", wrong) if wrong else ended
        if self.ended is not None:
            return True
        if not outcome.succeeded:
            self._recover(outcome)
            return True
        if outcome.stepped and ongoing is not None and self.context.stepper is stepper and ongoing.is_over():
            self.poses.go_on_regularly()
        if self.context.stepper.stiffness_detected:
            self._switch_to_stiff_if_it_pays()
        return True

    def must_check_each_step(self) -> bool:
        """Whether the next step must be checked before more steps follow."""
        context, stepper = self.context, self.context.stepper
        return (
            context.search_events_in_python
            or self.events.pile is not None
            or context.system.tolerated is not None
            or self.poses.ongoing is not None
            or context.contacts.close
            or stepper.target > context.stop
            or context.watch.holds(stepper.step_start if self.landed else stepper.t)
        )

    def _must_repeat_step(self, outcome: Outcome) -> bool:
        """Whether the last step must be repeated or completed after a change; ends the run if no change helps."""
        asks = outcome.end == "asks"
        if asks and self.poses.blocked:
            if not self.poses.steps_past_stop():
                self.ended = Ending("failed", self.poses.what_blocks())
            return True
        if self.poses.repeat_if_wrong_circuit(outcome):
            return True
        if asks and self.asked <= PATIENCE:
            if not self._reprepare_or_pass():
                self.context.journal.note_independent(self.context.stepper.t, self.context.stepper)
            return True
        return False

    def _reprepare_or_pass(self) -> bool:
        """Prepare the solver again, as requested; if the pose is nearly singular, begin a passage and return True."""
        try:
            if self.poses.near_singular() and self.poses.begin():
                return True
            self.context.stepper.prepare_again()
        except SingularityError:
            if not self.poses.begin():
                raise
            return True
        return False

    def _recover(self, outcome: Outcome) -> None:
        """Recover from failed steps near a singular pose; end the run if a singular pose is not the reason."""
        if outcome.status != TURNED:
            self.landed = self.poses.step_avoids_singularity(outcome)
            if self.landed or self.poses.begin():
                return
        self.ended = Ending("failed", self._why_failed(outcome))

    def _why_failed(self, outcome: Outcome) -> str:
        """Reason in words why steps failed."""
        if outcome.status == FINE and self.poses.ongoing is not None:
            return (
                f"the steps shrink to zero at t = {self.context.stepper.step_start:.9g} s near a singular pose, which "
                "the mechanism leaves very slowly: rounding would decide on which branch. End the run earlier, or use "
                "larger tolerances."
            )
        return self.context.stepper.why_failed()

    def _switch_to_stiff_if_it_pays(self) -> None:
        """Switch to the stiff integrator, and record it as an event, unless the end is near."""
        before = self.context.stepper
        h, state = before.step_size, before.state()
        if isinstance(before.integrator, AutoIntegrator) and self.context.remaining(state.t) > WORTH * h:
            after = self.context.stepper = before.with_integrator(before.integrator.stiff())
            after.start(state, before.target, before.works_reached)
            after.propose(h)
            name = f"stiff: stability, not accuracy, limits steps to {h:.2g} s; {after.integrator!r} goes on"
            self.context.journal.book("stiff", name, state)

    # -------------------------------------------------------------------------------- rows left open

    def _check_tolerated(self) -> str:
        """Check the redundant constraint rows that are left open within a tolerance; return an error message, or "".

        If they exceed the tolerance, or the rows that are kept become nearly dependent, other rows are left open from
        now on, which is an event.
        """
        system = self.context.journal.phase.system
        if system.tolerated is None or system.exact is None or self.poses.ongoing is not None:
            return ""
        state = self.context.stepper.state()
        watched = check_open_rows(system, state)
        if not (watched.beyond or watched.weak):
            return ""
        found = choose_again(system, state)
        if found is not None:
            self._leave_open(*found, state)
            return ""
        return beyond_tolerance(watched, f"t = {state.t:g} s")

    def _leave_open(self, system: System, after: State, state: State) -> None:
        """Continue with other redundant rows left open."""
        context, before, works = self.context, self.context.journal.phase, self.context.stepper.works_reached
        context.enter(replace(before, system=system, first=context.recorder.written, tolerated=system.tolerated), after)
        loss = moving_energy(before.system, state) - moving_energy(system, after)
        rows = [", ".join(s.tolerated.rows) if s.tolerated else "none" for s in (before.system, system)]
        context.journal.book("rows left open", f"left open: {rows[0]} -> {rows[1]}", state, after, energy_loss=loss)
        context.recorder.lose(loss)
        self.events.start_anew(after, works, state)
        context.journal.note_independent(state.t, context.stepper)

    # ----------------------------------------------------------------------------------------- checkpoints

    def save(self, checkpoint: Checkpoint | None) -> None:
        """Add a segment with all that is needed to resume to the checkpoint; not inside a singular passage."""
        context = self.context
        if checkpoint is None or self.in_passage:
            return
        checkpoint.add(self.saved())
        context.recorder.saved = context.recorder.written

    @property
    def in_passage(self) -> bool:
        """Whether the run is in a singular passage, or has just left a step of one: it cannot be saved there."""
        ongoing = self.poses.ongoing is not None or self.events.pile is not None
        return ongoing or self.context.passed > self.context.stepper.step_start

    def saved(self) -> dict[str, Any]:
        """All that is needed to resume, by name; the arrays are those in use."""
        context = self.context
        data: dict[str, Any] = {"stiff": np.array(isinstance(context.stepper.integrator, Stiff))}
        data["crowded"] = np.array(context.contacts.crowded)
        for part in (context.stepper, context.recorder, context.journal, context.watch):
            data |= part.save()
        return data

    def resume(self, checkpoint: Checkpoint | None) -> bool:
        """Resume from the last segment of a checkpoint; False if there is none."""
        last: dict[str, Any] = {}
        if checkpoint is None:
            return False
        for last in checkpoint.read():
            with checkpoint.understood():
                self.context.recorder.restore_outputs(last)
        if last:
            with checkpoint.understood():
                self._restore(last)
        return bool(last)

    def _restore(self, saved: dict[str, Any]) -> None:
        self.restore_stepper(saved)
        for part in (self.context.recorder, self.context.journal, self.context.watch):
            part.restore(saved)

    def restore_stepper(self, saved: dict[str, Any]) -> None:
        """Enter the phases of a saved run again, and restore its stepper."""
        context, nq = self.context, self.context.system.nq
        found = json.loads(str(saved["phases"]))[1:]
        phases = [phase_of(context.system, data, context.with_inputs) for data in found]
        for phase, (t, *qv) in zip(phases, saved["entered"], strict=True):
            context.enter(phase, State(float(t), np.array(qv[:nq]), np.array(qv[nq:])))
        if not phases:
            context.watch_contacts(context.journal.phase, self.first)
        if saved["stiff"] and isinstance(context.stepper.integrator, AutoIntegrator):
            context.stepper = context.stepper.with_integrator(context.stepper.integrator.stiff())
        context.stepper.restore(saved)
        context.contacts.crowded = int(saved["crowded"])

    # ------------------------------------------------------------------------------------------- the result

    def result(self, seconds: float, integrating: float, checkpoint: Checkpoint | None) -> Run:
        """Run with everything recorded, after it has ended."""
        context, recorder, journal = self.context, self.context.recorder, self.context.journal
        status, message = self.ending()
        if status in ("finished", "interrupted") and self.complete:
            try:
                self.save(checkpoint)
            except WritingError as error:
                warn(f"the last segment of the checkpoint is missing: {error}")
        self.poses.book_rest()
        if (pile := self.events.pile) is not None:
            journal.book_passage(pile.passage(), pile.start, context.stepper.state())
        path = recorder.path()
        return Run(
            context.system,
            path,
            status,
            message,
            tuple(sorted(journal.events, key=lambda e: e.t)),
            Statistics(*context.stepper.counts, seconds, integrating),
            context.settings,
            recorder.jumps[: len(path)],
            tuple(journal.phases),
            *journal.independent_at(path),
            tuple(journal.passages),
        )

    def ending(self) -> Ending:
        """Status of a run that has ended, and the reason; a dead point is named."""
        assert self.ended is not None
        status, message = self.ended
        if status == "failed" and (dead := dead_point(self.context.system, self._last_pose())):
            message = f"{message} At t = {self.context.stepper.t:.9g} s {dead}"
        return Ending(status, message)

    def _last_pose(self) -> State:
        """Pose at the end of the last accepted step, at rest."""
        reached = self.context.stepper.state()
        return State(reached.t, reached.q, np.zeros(self.context.system.nv))

    def suspicious(self) -> Iterable[str]:
        """Warnings to issue after the run."""
        return [*self.context.watch.suspicious(self.context.journal.events), *self.context.recorder.suspicious()]
