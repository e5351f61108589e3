"""Base of all integrators."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from loopdyn.errors import LoopdynError
from loopdyn.integrators.loop import Method, explicit_step

if TYPE_CHECKING:
    from loopdyn.integrators.stepper import Stepper


@dataclass(frozen=True)
class Integrator:
    """Base of all integrators; subclasses add their options as fields."""

    name: ClassVar[str] = ""
    history: ClassVar[int] = 0  # earlier states that are kept in addition to the start of a step
    stable: ClassVar[float] = 0.0  # limit of stability, step size times fastest rate; 0: stiffness is not monitored
    drives_steppers: ClassVar[bool] = False  # whether it is for stepping formulations, and only for these

    def method(self) -> Method:
        """Coefficients."""
        raise NotImplementedError

    def attempt(self) -> Any:
        """Function that makes one step (see :mod:`loopdyn.integrators.loop`), before it is bound to a solver."""
        return explicit_step

    def in_python(self, stepper: Stepper) -> Any:
        """Function that makes one step of a method in Python, for a stepper; None for methods with a kernel."""
        return None


@dataclass(frozen=True)
class Fixed(Integrator):
    """A method with steps of one size.

    Parameters
    ----------
    step : float
        Size of a step in s; the last one is shorter if needed to end at the end of the span.
    """

    step: float

    def __post_init__(self) -> None:
        if not (isinstance(self.step, Real) and np.isfinite(self.step) and self.step > 0.0):
            raise LoopdynError(f"{self.name}: step is {self.step}. Give a positive number of seconds.")


@dataclass(frozen=True)
class Adaptive(Integrator):
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
