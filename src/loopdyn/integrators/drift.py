"""Drift control: keeps loops closed while accelerations are integrated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from loopdyn.loops.projection import metric, smallest_step
from loopdyn.system.system import State, System
from loopdyn.tree.functions import terms


@dataclass(frozen=True)
class Baumgarte:
    """Drift control by feedback: ``J a = gamma - 2 rate (J v + phi_t) - rate^2 phi``, critically damped.

    Parameters
    ----------
    rate : float
        In 1/s: residuals of the constraints decay like exp(-rate t). Large rates make the equations stiff.

    Examples
    --------
    >>> Baumgarte(rate=50.0).rate
    50.0
    """

    rate: float = 20.0


Drift = Literal["none", "projection", "velocity", "baumgarte"] | Baumgarte
DRIFTS = ("none", "projection", "velocity", "baumgarte")
# Levels that a drift control corrects after a step; a solver that satisfies them itself needs no correction.
LEVELS: dict[Any, set[str]] = {"projection": {"position", "velocity"}, "velocity": {"velocity"}}


def feedback(system: System, state: State, rate: float, rank: int) -> NDArray[np.float64]:
    """Baumgarte's accelerations (nv,), which are added to those of a solver; `rank` rows are independent."""
    now, rows = terms(system, state), system.row_units
    pull = (2.0 * rate * (now.J @ state.v + now.phi_t) + rate * rate * now.phi) / rows
    return smallest_step(now.J / rows[:, None], pull, metric(now.M), rank)


def corrects_positions(drift: Drift) -> bool:
    """Whether the drift control keeps position residuals from growing with time."""
    return drift in ("projection", "baumgarte") or isinstance(drift, Baumgarte)
