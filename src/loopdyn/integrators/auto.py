"""An explicit integrator that switches to an implicit one where the equations are stiff."""

from __future__ import annotations

from typing import ClassVar

from loopdyn.integrators.runge_kutta import DOP853
from loopdyn.integrators.stiff import Stiff


class AutoIntegrator(DOP853):
    """DOP853 until stability rather than accuracy limits its steps, then Stiff; recorded in ``run.events``.

    Examples
    --------
    >>> AutoIntegrator().stiff()
    Stiff(longest=None)
    """

    name: ClassVar[str] = "auto"
    stable: ClassVar[float] = 6.1  # [Hairer1996 section IV.2]

    def stiff(self) -> Stiff:
        """Integrator for stiff equations."""
        return Stiff(longest=self.longest)
