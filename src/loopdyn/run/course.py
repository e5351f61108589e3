"""Where a run is: the stepper that makes its steps now, the times at which it must stop, and what is recorded of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loopdyn.formulations.base import Formulation
from loopdyn.formulations.registry import prepare_at, require_support
from loopdyn.integrators.stepper import Stepper
from loopdyn.loops.rank import decide
from loopdyn.run.events import Watch
from loopdyn.run.locking import Phase
from loopdyn.run.recorder import Journal, Recorder
from loopdyn.system.system import State, System

Array = NDArray[np.float64]


@dataclass
class Course:
    """The present of a run, which all that happens in it changes.

    Parameters
    ----------
    system : System
        Of the first phase.
    stepper : Stepper
    method : Formulation
    watch : Watch
        What is looked for; its system and rank are those of the present phase.
    end : float
        Last time, s.
    corners : array
        Of profiles and of tables of time, s: no step goes across.
    recorder : Recorder
    journal : Journal
    settings : mapping
        How the run is made, in words and numbers.
    passed : float
        Time up to which events are done inside a step that goes on behind them, s.
    """

    system: System
    stepper: Stepper
    method: Formulation
    watch: Watch
    end: float
    corners: Array
    recorder: Recorder
    journal: Journal
    settings: dict[str, Any]
    passed: float = -np.inf

    def next_stop(self, t: float) -> float:
        """Just before the next time event or corner, or the end: a step that ends there must not meet what jumps."""
        due = [e.t for e in self.watch.times if t < e.t < self.end]
        due += self.corners[np.searchsorted(self.corners, t, side="right") :][:1].tolist()
        return min([float(np.nextafter(x, -np.inf)) for x in due] + [self.end])

    @property
    def stop(self) -> float:
        """Where the run must stop next, or should have stopped in the last step."""
        return self.next_stop(max(self.stepper.step_start, self.passed))

    @property
    def search_events_in_python(self) -> bool:
        """Whether crossings are looked for between all steps: these, or what is watched, are not compiled."""
        return bool(self.watch.crossings) and (self.stepper.in_python or not self.watch.compiled)

    def enter(self, phase: Phase, state: State) -> None:
        """Go on with the constraints of another phase; the stepper is still to be started."""
        system = phase.system
        require_support(system, self.method)
        decided = decide(system, state)
        rank, solver = decided.count, prepare_at(system, self.method, state, decided)
        self.watch.system, self.watch.rank = system, rank
        self.stepper = self.stepper.with_system(system, solver, rank)
        self.journal.enter(phase, solver, state)
        if "plan" in self.settings:
            plan = f"{self.settings['plan']}\nfrom t = {state.t:g} s on: {self.method.explains(system, solver)}"
            self.settings = self.settings | {"plan": plan}
