"""Adams-Bashforth-Moulton of order 4 with a fixed step: predict, evaluate, correct, evaluate.

The history holds full states: coordinates, speeds, accelerations and powers. In each step their derivatives are
written in the chart of that step, so that the method keeps its order across coordinate switches and for quaternions.
The first three steps, and those after an event, use the classical Runge-Kutta method.
"""

from __future__ import annotations

from functools import cache
from typing import Any, ClassVar

import numpy as np

from loopdyn.engine.jit import kernel
from loopdyn.engine.status import FINE
from loopdyn.integrators.base import Fixed
from loopdyn.integrators.loop import Method, finish
from loopdyn.integrators.memory import PAST, note, recall, stage
from loopdyn.integrators.runge_kutta import rk4

HISTORY = 3  # states before the start of a step
PREDICTED = HISTORY + 1  # row of k for the predicted state, after the start and the history


@cache
def abm4() -> Method:
    """Rows 1 to 3 of `a` and the first row of `e` are of the starting method, row 4 of `a` predicts, `b` corrects."""
    start, n = rk4(), PREDICTED + 1
    a, e = np.zeros((n, n)), np.zeros((2, n))
    a[:4, :4], e[0, :4] = start.a, start.b
    a[PREDICTED, :4] = np.array([55.0, -59.0, 37.0, -9.0]) / 24.0
    b = np.array([19.0, -5.0, 1.0, 0.0, 9.0]) / 24.0
    c = np.append(start.c, 1.0)
    return Method(a, b, c, e, np.zeros((0, n + 1)), np.zeros(0), np.zeros((n + 1, 0)), 0)


@kernel
def predict_and_correct(ints, floats, work, m, method, accelerate):
    """One step; by Runge-Kutta while the history is incomplete."""
    starting = m.count[PAST] < HISTORY
    first, last = (1, HISTORY) if starting else (PREDICTED, PREDICTED)
    if not starting:
        recall(ints, m)
    for i in range(first, last + 1):
        stage(ints, work, m, method.a[i], i, method.c[i])
        status = accelerate(ints, floats, work)
        if status != FINE:
            return status
        status = note(ints, floats, work, m, m.stage, i)
        if status != FINE:
            return status
    finish(m, method, method.e[0] if starting else method.b)
    return FINE


class ABM(Fixed):
    """Adams-Bashforth-Moulton of order 4, two evaluations a step.

    Examples
    --------
    >>> ABM(step=1e-3).history
    3
    """

    name: ClassVar[str] = "abm"
    history: ClassVar[int] = HISTORY

    def method(self) -> Method:
        """Predictor and corrector."""
        return abm4()

    def attempt(self) -> Any:
        """Kernel of one step."""
        return predict_and_correct
