"""Momentum steps with contacts in a run (:mod:`loopdyn.integrators.moreau`): what they lose, and how they are recorded.

They are chosen by ``integrator=Moreau(step=...)``, and by `auto` where contacts do not settle one after another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from loopdyn.integrators.moreau import ContactSteps
from loopdyn.run.singular_passage import Passage, moving_energy
from loopdyn.system.sides import sides_of
from loopdyn.system.system import State, System

if TYPE_CHECKING:
    from loopdyn.run.context import RunContext

Array = NDArray[np.float64]

FINE_STEP = 1e-3  # of the shorter of two times: to fall, or to move at the fastest speed, by the size of the mechanism
SAME_TIME = 8.0  # units in the last place by which times of parts of a step are rounded


def suitable_step(system: System, state: State) -> float:
    """Size of the steps that `auto` makes, s."""
    g = float(np.linalg.norm(system.model.gravity))
    fastest = float(np.abs(state.v / system.speed_units).max(initial=0.0))
    return FINE_STEP / max(float(np.sqrt(g / system.size)), fastest, FINE_STEP)


class ContactStepping:
    """Sums over the momentum steps of a run.

    Parameters
    ----------
    context : RunContext
    start : State
    """

    def __init__(self, context: RunContext, start: State):
        self.context, self.start = context, start
        self.steps = context.stepper.counts.steps
        self.sides = sides_of(context.system)
        self.impulse, self.lost = np.zeros(len(self.sides)), 0.0
        self.works = context.stepper.works_reached

    def collect(self) -> None:
        """Add the last step, or the part of it that an event has left, and the energy lost until outputs in it."""
        context, stepper = self.context, self.context.stepper
        made, recorder = stepper.stepping, context.recorder
        assert isinstance(made, ContactSteps)
        new = range(recorder.checked, recorder.written)
        parts = [made.whole, *made.inside]

        def at(t: float) -> tuple[float, float, Array] | None:
            near = SAME_TIME * float(np.spacing(abs(t)))
            return next((part for part in parts if abs(part[0] - t) <= near), None)

        for k in new:
            found = at(float(recorder.t[k]))
            if found is not None:
                recorder.jumps[k] = recorder.lost + found[1]
        last = at(stepper.t)
        made.inside = []
        if last is not None:
            made.whole = np.nan, 0.0, last[2]  # it is counted once
            self.lost += last[1]
            self.impulse += last[2]
            recorder.lose(last[1])

    def passage(self) -> Passage:
        """Record of the steps."""
        stepper, system = self.context.stepper, self.context.system
        now, works = stepper.state(), stepper.works_reached
        before, after = (moving_energy(system, state) for state in (self.start, now))
        jump = after - before - float((works - self.works).sum()) + self.lost
        impulses = {side.name: float(x) for side, x in zip(self.sides, self.impulse, strict=True)}
        steps = stepper.counts.steps - self.steps
        return Passage(self.start.t, now.t, True, (), 0.0, 1.0, steps, jump, contacts=impulses)
