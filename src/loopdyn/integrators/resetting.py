"""Stepper that is used for many runs: before each it is made what it was when it was new."""

from __future__ import annotations

from loopdyn.integrators.stepper import Stepper
from loopdyn.system.system import System


class Resetting:
    """Everything that the steps of a stepper change, as it is now: results do not depend on the runs before.

    Parameters
    ----------
    stepper : Stepper
        Not yet started, with compiled steps.
    """

    def __init__(self, stepper: Stepper):
        self.stepper = stepper
        self._arrays = stepper.ints, stepper.floats, stepper.work
        changing = (*stepper.memory, stepper.weights, stepper.work)
        self._saved = [(array, array.copy()) for array in changing if array.size]

    def reset(self, system: System) -> None:
        """Make the stepper what it was, for a system of the same structure and event functions."""
        self.stepper.system = system
        self.stepper._own_rate, self.stepper.error = 0.0, None
        for array, saved in self._saved:
            array[...] = saved
        self.stepper.memory.unit[...] = system.speed_units

    @property
    def possible(self) -> bool:
        """Whether the stepper still has its arrays: a solver that has chosen again uses others."""
        return all(a is b for a, b in zip(self._arrays, self._used(), strict=True))

    def _used(self) -> tuple[object, ...]:
        return self.stepper.ints, self.stepper.floats, self.stepper.work
