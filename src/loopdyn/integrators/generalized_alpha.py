"""Generalised-alpha on the manifolds of the joints, constraints at position level (index 3).

Chung, Hulbert 1993 for the coefficients; Arnold, Bruels 2007 for mechanisms with constraints:

    q1 = q0 (+) (h v0 + h^2 (1/2 - beta) a0 + h^2 beta a1)      (1 - am) a1 + am a0 = (1 - af) v1' + af v0'
    v1 = v0 + h (1 - gamma) a0 + h gamma a1                     M v1' = f(q1, v1) + J^T lam,   phi(q1) = 0

a is an auxiliary variable of the method besides the accelerations v'. Newton's method finds the increments and
multipliers; its matrix is computed by differences of the residual, so that it includes stiff springs and dampers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from loopdyn.engine.status import RAISED
from loopdyn.errors import LoopdynError
from loopdyn.integrators import memory
from loopdyn.integrators.base import Fixed
from loopdyn.integrators.loop import Method, ends_only
from loopdyn.system.system import State
from loopdyn.tree.functions import increment, terms

if TYPE_CHECKING:
    from loopdyn.integrators.stepper import Stepper

Array = NDArray[np.float64]

DIFFERENCE = 1e-7  # step of the differences of the residual, in natural units
ENOUGH = 1e-12  # change of the increments, in natural units, at which Newton's method ends
MOST = 20  # largest number of its iterations


class _Newton(NamedTuple):
    """Inverse of the matrix of Newton's method, with rows and columns scaled to order one."""

    inverse: Array
    scale: Array  # of loads and rows
    column: Array  # of increments and multipliers


class _Steps:
    """Makes the steps of a stepper.

    Parameters
    ----------
    stepper : Stepper
    rho : float
        Spectral radius at infinite frequency.
    """

    def __init__(self, stepper: Stepper, rho: float):
        self.stepper, self.system = stepper, stepper.system
        self.am, self.af = (2.0 * rho - 1.0) / (rho + 1.0), rho / (rho + 1.0)
        self.gamma = 0.5 + self.af - self.am
        self.beta = 0.25 * (self.gamma + 0.5) ** 2

    def attempt(self, ints: Any, floats: Any, work: Any, m: Any, method: Any, accelerate: Any) -> int:
        """One step of size clock[SIZE]: `m.new`."""
        h, t, nv = float(m.clock[memory.SIZE]), float(m.clock[memory.STOP]), self.system.nv
        try:
            x = self._solve(m, h * m.y[nv : 2 * nv] + 0.5 * h * h * m.extra, np.zeros(self.system.nc))
        except (LoopdynError, np.linalg.LinAlgError) as error:
            failure = error if isinstance(error, LoopdynError) else LoopdynError(f"at t = {t:g} s: {error}.")
            self.stepper.error = failure
            return RAISED
        v, d, m.extra[:] = self._end(m, x)
        m.new[:nv], m.new[nv : 2 * nv] = self._in_chart(x), v
        memory.place(ints, work, m, m.new, t)
        self.stepper.views.a[:] = d
        status = memory.note(ints, floats, work, m, m.new, 1)
        m.new[2 * nv :] = m.y[2 * nv :] + 0.5 * h * (m.k[0, 2 * nv :] + m.k[1, 2 * nv :])
        m.clock[memory.ERROR] = 0.0
        return int(status)

    def _end(self, m: Any, x: Array) -> tuple[Array, Array, Array]:
        """Speeds, accelerations and a at the end for increments x."""
        h, nv = float(m.clock[memory.SIZE]), self.system.nv
        v0, d0, a0 = m.y[nv : 2 * nv], m.k[0, nv : 2 * nv], m.extra
        a = (x - h * v0 - h * h * (0.5 - self.beta) * a0) / (h * h * self.beta)
        d = ((1.0 - self.am) * a + self.am * a0 - self.af * d0) / (1.0 - self.af)
        return v0 + h * ((1.0 - self.gamma) * a0 + self.gamma * a), d, a

    def _in_chart(self, x: Array) -> Array:
        """Increments from the start for displacements x along the axes of a body in the middle of the step."""
        xi = np.empty(self.system.nv)
        memory.rates(self.stepper.ints, 0.5 * x, x, xi)
        return xi

    def _residual(self, m: Any, x: Array, lam: Array) -> tuple[Array, Array]:
        """Unbalanced loads and residuals of the rows in natural units, and the Jacobian of the rows."""
        s, rows = self.system, self.system.row_units
        v, d, _ = self._end(m, x)
        now = terms(s, State(float(m.clock[memory.STOP]), increment(s, m.q, self._in_chart(x)), v))
        loads = now.M @ d - now.h - now.J.T @ (lam / rows)
        closed = np.where(s.holonomic, now.phi, now.J @ v + now.phi_t) / rows
        return np.concatenate([s.speed_units * loads, closed]), now.J / rows[:, None]

    def _solve(self, m: Any, x: Array, lam: Array) -> Array:
        """Increments x by the simplified Newton method with one matrix; raises if it does not converge."""
        nv, units = self.system.nv, self.system.speed_units
        r, J = self._residual(m, x, lam)
        by = self._newton(m, x, lam, r, J)
        for _ in range(MOST):
            change = -(by.inverse @ (r / by.scale)) * by.column
            x, lam = x + units * change[:nv], lam + change[nv:]
            r, _ = self._residual(m, x, lam)
            if np.abs(change[:nv]).max(initial=0.0) < ENOUGH:
                return x
        t = float(m.clock[memory.STOP])
        raise LoopdynError(f"Newton's method does not converge at t = {t:g} s. Use a smaller step.")

    def _newton(self, m: Any, x: Array, lam: Array, r: Array, J: Array) -> _Newton:
        """Inverse of the Newton matrix on the independent rows, at increments and multipliers with the residual r."""
        nv, nc, units = self.system.nv, self.system.nc, self.system.speed_units
        A = np.zeros((nv + nc, nv + nc))
        for k in range(nv):
            step = np.zeros(nv)
            step[k] = DIFFERENCE * units[k]
            A[:, k] = (self._residual(m, x + step, lam)[0] - r) / DIFFERENCE
        A[:nv, nv:] = -units[:, None] * J.T
        # loads and rows differ in size by h^2: both are scaled to order one
        load = float(np.abs(A[:nv, :nv]).max(initial=0.0)) or 1.0
        scale, column = np.repeat([load, 1.0], [nv, nc]), np.repeat([1.0, load], [nv, nc])
        U, s, Vt = np.linalg.svd(A / scale[:, None] * column)
        kept = nv + self.stepper.rank
        return _Newton((Vt[:kept].T / s[:kept]) @ U[:, :kept].T, scale, column)


@dataclass(frozen=True)
class GeneralizedAlpha(Fixed):
    """Generalised-alpha: implicit, order 2, constraints held at position level, numerical damping of fast motion.

    Parameters
    ----------
    step : float
        Size of a step in s.
    rho : float
        Spectral radius at infinite frequency: the share of an infinitely fast vibration that is left after a step. 1 is
        without numerical damping, 0 damps it fully.

    Examples
    --------
    >>> GeneralizedAlpha(step=1e-3).rho
    0.8
    """

    name: ClassVar[str] = "generalized_alpha"
    rho: float = 0.8

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0.0 <= self.rho <= 1.0:
            raise LoopdynError(f"{self.name}: rho is {self.rho}. Give a number from 0 to 1.")

    def method(self) -> Method:
        """Both ends of a step."""
        return ends_only()

    def in_python(self, stepper: Stepper) -> Any:
        """Newton's method on dense matrices."""
        return _Steps(stepper, self.rho).attempt
