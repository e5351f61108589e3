"""Generalised-alpha on the manifolds of the joints, constraints at position level (index 3).

Chung, Hulbert 1993 for the coefficients; Arnold, Bruels 2007 for mechanisms with constraints:

    q1 = q0 (+) (h v0 + h^2 (1/2 - beta) a0 + h^2 beta a1)      (1 - am) a1 + am a0 = (1 - af) v1' + af v0'
    v1 = v0 + h (1 - gamma) a0 + h gamma a1                     M v1' = f(q1, v1) + J^T lam,   phi(q1) = 0

a is a variable of the method beside the accelerations v'. Newton's method finds the increments and multipliers; its
matrix is taken by differences of the residual, so that stiff springs and dampers are in it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from loopdyn.engine.status import RAISED
from loopdyn.errors import LoopdynError
from loopdyn.integrators import chart
from loopdyn.system.system import State
from loopdyn.tree.functions import increment, terms

if TYPE_CHECKING:
    from loopdyn.integrators.base import Stepper

Array = NDArray[np.float64]

DIFFERENCE = 1e-7  # rad or sizes of the mechanism, over which the residual is differenced
ENOUGH = 1e-12  # change of the increments, rad or sizes of the mechanism, at which Newton's method ends
MOST = 20  # its iterations at most


def make(stepper: Stepper, rho: float) -> Callable[..., int]:
    """A function that makes one step."""
    system, m, nv = stepper.system, stepper.memory, stepper.system.nv
    am, af = (2.0 * rho - 1.0) / (rho + 1.0), rho / (rho + 1.0)
    gamma = 0.5 + af - am
    beta = 0.25 * (gamma + 0.5) ** 2
    rows, units, holonomic = system.row_units, system.speed_units, system.holonomic

    def attempt(ints: Any, floats: Any, work: Any, memory: Any, method: Any, accelerate: Any) -> int:
        h, t = float(m.clock[chart.SIZE]), float(m.clock[chart.STOP])
        v0, d0, a0 = m.y[nv : 2 * nv], m.k[0, nv : 2 * nv], m.extra

        def end(x: Array) -> tuple[Array, Array, Array]:
            """Speeds, accelerations and a at the end for increments x."""
            a = (x - h * v0 - h * h * (0.5 - beta) * a0) / (h * h * beta)
            return v0 + h * ((1.0 - gamma) * a0 + gamma * a), ((1.0 - am) * a + am * a0 - af * d0) / (1.0 - af), a

        def residual(x: Array, lam: Array) -> tuple[Array, Array]:
            """Unbalanced loads and residuals of the rows in natural units, and the Jacobian of the rows."""
            v, d, _ = end(x)
            now = terms(system, State(t, increment(system, m.q, in_chart(x)), v))
            loads = now.M @ d - now.h - now.J.T @ (lam / rows)
            closed = np.where(holonomic, now.phi, now.J @ v + now.phi_t) / rows
            return np.concatenate([units * loads, closed]), now.J / rows[:, None]

        def in_chart(x: Array) -> Array:
            """Increments from the start for displacements x along the axes of a body in the middle of the step."""
            xi = np.empty(nv)
            chart.rates(ints, 0.5 * x, x, xi)
            return xi

        x = h * v0 + 0.5 * h * h * a0
        lam = np.zeros(system.nc)
        try:
            r, J = residual(x, lam)
            A = np.zeros((nv + system.nc, nv + system.nc))
            for k in range(nv):
                step = np.zeros(nv)
                step[k] = DIFFERENCE * units[k]
                A[:, k] = (residual(x + step, lam)[0] - r) / DIFFERENCE
            A[:nv, nv:] = -units[:, None] * J.T
            # loads and rows differ in size by h^2: both are brought to the order of one
            load = float(np.abs(A[:nv, :nv]).max(initial=0.0)) or 1.0
            scale = np.concatenate([np.full(nv, load), np.ones(system.nc)])
            column = np.concatenate([np.ones(nv), np.full(system.nc, load)])
            U, s, Vt = np.linalg.svd(A / scale[:, None] * column)
            kept = nv + stepper.rank
            inverse = (Vt[:kept].T / s[:kept]) @ U[:, :kept].T
            for _ in range(MOST):
                change = -(inverse @ (r / scale)) * column
                x, lam = x + units * change[:nv], lam + change[nv:]
                r, _ = residual(x, lam)
                if np.abs(change[:nv]).max(initial=0.0) < ENOUGH:
                    break
            else:
                raise LoopdynError(f"Newton's method does not converge at t = {t:g} s. Use a smaller step.")
        except (LoopdynError, np.linalg.LinAlgError) as error:
            stepper.error = error if isinstance(error, LoopdynError) else LoopdynError(f"at t = {t:g} s: {error}.")
            return RAISED
        v, d, m.extra[:] = end(x)
        m.new[:nv], m.new[nv : 2 * nv] = in_chart(x), v
        chart.place(ints, work, m, m.new, t)
        stepper.views.a[:] = d
        status = chart.note(ints, floats, work, m, m.new, 1)
        m.new[2 * nv :] = m.y[2 * nv :] + 0.5 * h * (m.k[0, 2 * nv :] + m.k[1, 2 * nv :])
        m.clock[chart.ERROR] = 0.0
        return int(status)

    return attempt
