"""Stiff equations: steps of SciPy's Radau IIA of order 5, each in the chart of its start."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from loopdyn.errors import LoopdynError
from loopdyn.integrators import chart

if TYPE_CHECKING:
    from loopdyn.integrators.base import Stepper

Array = NDArray[np.float64]

FREE = 1e200  # tolerance of what does not count for the size of a step


def make(stepper: Stepper) -> Callable[..., int]:
    """A function that makes one step, its size chosen by SciPy."""
    from scipy.integrate import Radau

    m = stepper.memory
    nv = stepper.system.nv

    def derivative(t: float, y: Array) -> Array:
        chart.place(stepper.ints, stepper.work, m, y, t)
        status = stepper.accelerate(stepper.ints, stepper.floats, stepper.work)
        if status == chart.FINE:
            status = chart.note(stepper.ints, stepper.floats, stepper.work, m, y, 1)
        return np.array(m.k[1]) if status == chart.FINE else np.full(len(y), np.nan)

    def tolerances() -> Array:
        """Positions against 1 rad or the size of the mechanism, speeds against the fastest so far."""
        fastest = max(m.clock[chart.FASTEST], float(np.abs(m.a1 / m.unit).max(initial=0.0)) * m.clock[chart.NEXT])
        out = np.full(len(m.y), FREE)
        out[:nv] = (m.clock[chart.ATOL] + m.clock[chart.RTOL]) * m.unit
        out[nv : 2 * nv] = (m.clock[chart.ATOL] + m.clock[chart.RTOL] * fastest) * m.unit
        result: Array = np.maximum(out, np.finfo(float).tiny)
        return result

    def attempt(ints: Any, floats: Any, work: Any, memory: Any, method: Any, accelerate: Any) -> int:
        start, end = float(m.clock[chart.START]), float(m.clock[chart.END])
        first = min(m.clock[chart.NEXT], m.clock[chart.MOST], end - start)
        # relative tolerances are in the absolute ones already; SciPy does not take less than this
        rtol = 100.0 * np.finfo(float).eps
        step = Radau(
            derivative,
            start,
            m.y.copy(),
            end,
            max_step=m.clock[chart.MOST],
            rtol=rtol,
            atol=tolerances(),
            first_step=first,
        )
        message = step.step()
        if step.status == "failed" or not np.isfinite(step.y).all():
            stepper.error = stepper.error or LoopdynError(f"the stiff integrator cannot go on: {message}")
            return 0
        m.clock[chart.STOP], m.clock[chart.SIZE] = step.t, step.t - start
        m.clock[chart.NEXT], m.clock[chart.ERROR] = step.h_abs, 0.0
        m.new[:] = step.y
        return chart.FINE

    return attempt
