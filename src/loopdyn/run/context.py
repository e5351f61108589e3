"""Mutable state of a run: the current stepper, the times at which it must stop, and the recorders."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loopdyn.errors import LoopdynError
from loopdyn.formulations.base import Formulation, Solver
from loopdyn.formulations.registry import prepare_at, require_support
from loopdyn.integrators.stepper import Stepper
from loopdyn.loops.rank import decide
from loopdyn.run.contacts import Contacts
from loopdyn.run.events import Watch
from loopdyn.run.locking import Phase, as_it_is
from loopdyn.run.recorder import Journal, Recorder
from loopdyn.system.system import State, System

Array = NDArray[np.float64]


@dataclass
class RunContext:
    """Mutable state of a run, shared by its driver, event handler and singular passages.

    Parameters
    ----------
    system : System
        System of the first phase.
    stepper : Stepper
    method : Formulation
    watch : Watch
        Events to detect; its system and rank are those of the current phase.
    end : float
        Last time, s.
    breakpoints : array
        Breakpoints of profiles and of tables of time, s: no step straddles one.
    recorder : Recorder
    journal : Journal
    settings : mapping
        Formulation, integrator, tolerances and other settings, as text and numbers.
    outlook : float, optional
        Time, s, over which another integrator must pay off; by default the rest of the run.
    with_inputs : callable
        Writes the present inputs of a simulation into a system made from the same model.
    laws_jump : bool
        Whether laws may jump at the end, where the run is continued.
    passed : float
        Time up to which events inside the current step have been handled, s.
    """

    system: System
    stepper: Stepper
    method: Formulation
    watch: Watch
    end: float
    breakpoints: Array
    recorder: Recorder
    journal: Journal
    settings: dict[str, Any]
    outlook: float | None = None
    with_inputs: Callable[[System], None] = as_it_is
    laws_jump: bool = False
    passed: float = -np.inf

    def __post_init__(self) -> None:
        """Begin with no contact closed."""
        self.contacts = Contacts(self.system, lambda: self.with_inputs)

    def next_stop(self, t: float) -> float:
        """Time just before the next time event or breakpoint, or the end: the step must not see the jump."""
        due = [e.t for e in self.watch.times if t < e.t < self.end]
        due += self.breakpoints[np.searchsorted(self.breakpoints, t, side="right") :][:1].tolist()
        return min([float(np.nextafter(x, -np.inf)) for x in due] + [self.end])

    def remaining(self, t: float) -> float:
        """Time, s, over which another integrator must pay off."""
        return self.end - t if self.outlook is None else self.outlook

    @property
    def stop(self) -> float:
        """Time at which the run must stop next, or should have stopped in the last step."""
        return self.next_stop(max(self.stepper.step_start, self.passed))

    @property
    def search_events_in_python(self) -> bool:
        """Whether event functions are evaluated after every step, since the steps or the functions are not compiled."""
        return bool(self.watch.crossings) and (self.stepper.in_python or not self.watch.compiled)

    def enter(self, phase: Phase, state: State) -> None:
        """Continue with the constraints of another phase; the stepper must still be started."""
        system = phase.system
        if self.contacts.in_steps and system is not self.system:
            raise LoopdynError(
                "constraints cannot change while contacts act in momentum steps. Leave out locks, releases and added "
                "constraints, or the integrator Moreau."
            )
        require_support(system, self.method)
        decided = decide(system, state)
        rank, solver = decided.count, prepare_at(system, self.method, state, decided)
        self.watch.system, self.watch.rank = system, rank
        self.stepper = self.stepper.with_system(system, solver, rank)
        self.journal.enter(phase, solver, state)
        self.watch_contacts(phase, state)
        if "plan" in self.settings:
            plan = f"{self.settings['plan']}\nfrom t = {state.t:g} s on: {self.method.explains(system, solver)}"
            self.settings = self.settings | {"plan": plan}

    def watch_contacts(self, phase: Phase, state: State) -> None:
        """Watch the gaps and forces of contacts in a phase that begins at a state."""
        if not self.contacts:
            return
        system, watch = phase.system, self.watch

        def solver() -> Solver:
            return prepare_at(system, self.method, state, decide(system, state))

        own = [w for w in watch.crossings if not w.contact]
        watch.crossings = own + self.contacts.watched(phase, solver, state)
        watch.gaps = self.contacts.open_gaps(phase)
        self.stepper.watch(*(watch.functions() if watch.compiled else ([], [])))
