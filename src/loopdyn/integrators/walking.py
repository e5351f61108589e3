"""Steps that a formulation makes itself, such as `momentum`: of one size, or extrapolated.

A symmetric step of order two has an error in even powers of its size. With 1, 2, 3 and 4 of them over the same time,
polynomials in the square of the size give a step of order 8 and an estimate of its error [Hairer1993 section II.9].
States inside a step are made by shorter steps from its start, from which nothing goes on.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from loopdyn.errors import LoopdynError
from loopdyn.integrators import chart
from loopdyn.integrators.chart import FINE
from loopdyn.integrators.stepping import Method, ends_only, look_inside
from loopdyn.projection import correct
from loopdyn.tree import difference, increment

if TYPE_CHECKING:
    from loopdyn.formulations.momentum import MomentumSolver
    from loopdyn.integrators.base import Stepper

Array = NDArray[np.float64]

COUNTS = (1, 2, 3, 4)  # steps over the same time that are extrapolated; measured best of those tried
ESTIMATE = 7  # order of the difference between the last two extrapolations
# A part of a step that ends closer to a singular pose than this share of the farthest so far loses too many digits
# there; a step shorter by LANDED (as its error then, just above what is allowed) is tried.
LANDING, LANDED = 1e-5, 1.0 + 1e-9


@cache
def walked(order: int) -> Method:
    """Both ends of a step, and one more row for powers on the way; `order` is zero for steps of one size."""
    return ends_only()._replace(p=np.zeros((3, 0)), order=order)


class Walker:
    """Makes the steps of a stepper whose formulation makes them itself."""

    def __init__(self, stepper: Stepper, extrapolate: bool):
        self.stepper, self.extrapolate = stepper, extrapolate
        self.solver: MomentumSolver = stepper.solver  # type: ignore[assignment]
        self.farthest = 0.0  # largest indicator so far

    # ------------------------------------------------------------------------------------ what chunks call

    def attempt(self, ints: Any, floats: Any, work: Any, m: Any, method: Any, accelerate: Any) -> int:
        """One step of size clock[SIZE]: `m.new` and clock[ERROR]."""
        nv, h = self.stepper.system.nv, float(m.clock[chart.SIZE])
        try:
            q, v, works, error = self._go(h)
        except LoopdynError as failure:
            self.stepper.error = failure
            return 0
        m.new[:nv], m.new[nv : 2 * nv], m.new[2 * nv :] = difference(self.stepper.system, m.q, q), v, works
        m.clock[chart.ERROR] = error
        return FINE

    def within(
        self, ints: Any, floats: Any, work: Any, m: Any, method: Any, t: float, weights: Any, accelerate: Any, _: Any
    ) -> int:
        """The state at the time t inside the last step, with its accelerations, into `work` and `m.stage`."""
        if t >= m.clock[chart.STOP]:
            chart.put_end(ints, work, m)
            m.stage[:] = m.new
            return FINE
        look_inside(ints, work, m, method, t, weights)  # for the works
        h, w = t - float(m.clock[chart.START]), self.stepper.views
        if h > 0.0:
            try:
                w.q[:], w.v[:], _, _ = self._go(h)
            except LoopdynError as failure:
                self.stepper.error = failure
                return 0
        w.t[0] = t
        return int(accelerate(ints, floats, work))

    # --------------------------------------------------------------------------------------------- one step

    def _go(self, h: float) -> tuple[Array, Array, Array, float]:
        """State, works and error after the time h from the start of the step."""
        m, nv, s = self.stepper.memory, self.stepper.system.nv, self.solver
        t, q, v = float(m.clock[chart.START]), m.q.copy(), m.y[nv : 2 * nv].copy()
        if self.extrapolate:
            return self._extrapolated(t, q, v, h)
        made = s.step(t, q, v, h)
        works = m.y[2 * nv :] + 0.5 * h * (m.k[0, 2 * nv :] + self._powers(t + h, made.q, made.v))
        return made.q, made.v, works, 0.0

    def _extrapolated(self, t: float, q: Array, v: Array, h: float) -> tuple[Array, Array, Array, float]:
        stepper, m = self.stepper, self.stepper.memory
        system, nv = stepper.system, stepper.system.nv
        self.farthest = max(self.farthest, self.solver.begin(t, q, v))
        table: list[Array] = []
        nearest = np.inf
        for count in COUNTS:
            sum_of_powers = 0.5 * m.k[0, 2 * nv :].copy()

            def visit(at: float, q1: Array, v1: Array, total: Array = sum_of_powers) -> None:
                total += self._powers(at, q1, v1)

            made = self.solver.walk(h, (1.0 / count,) * count, visit if stepper.sources else None)
            nearest = min(nearest, made.indicator)
            last = 0.5 * self._powers(t + h, made.q, made.v)
            works = m.y[2 * nv :] + h / count * (sum_of_powers - last)
            table.append(np.concatenate([difference(system, q, made.q), made.v, works]))
        before = table[-1]
        for j in range(1, len(COUNTS)):
            before = table[-1]
            for i in range(len(COUNTS) - 1, j - 1, -1):
                ratio = (COUNTS[i] / COUNTS[i - j]) ** 2
                table[i] = table[i] + (table[i] - table[i - 1]) / (ratio - 1.0)
        y = table[-1]
        error = self._error(y - before)
        if nearest < LANDING * self.farthest:
            error = max(error, LANDED)
        if error <= 1.0:
            made_q = increment(system, q, y[:nv])
            q1, v1 = correct(system, t + h, made_q, y[nv : 2 * nv], stepper.rank)
            return q1, v1, y[2 * nv :], error
        return q, v, y[2 * nv :], error

    def _error(self, difference: Array) -> float:
        """Against the tolerances: positions in natural units, speeds relative to the fastest so far."""
        m, nv = self.stepper.memory, self.stepper.system.nv
        rtol, atol, fastest = (float(m.clock[k]) for k in (chart.RTOL, chart.ATOL, chart.FASTEST))
        units = np.concatenate([m.unit, m.unit * fastest])
        scale = atol * np.concatenate([m.unit, m.unit]) + rtol * units
        share = np.abs(difference[: 2 * nv])[scale > 0.0] / scale[scale > 0.0]
        return float(share.max(initial=0.0))

    def _powers(self, t: float, q: Array, v: Array) -> Array:
        """Powers of all forces at a state."""
        stepper = self.stepper
        if not stepper.sources:
            return np.zeros(0)
        w, m = stepper.views, stepper.memory
        w.t[0], w.q[:], w.v[:] = t, q, v
        status = stepper.accelerate(stepper.ints, stepper.floats, stepper.work)
        if status != FINE:
            raise stepper.failure(status)
        chart.note(stepper.ints, stepper.floats, stepper.work, m, np.zeros_like(m.y), 2)
        return np.array(m.k[2, 2 * stepper.system.nv :])
