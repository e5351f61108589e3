"""Stiff equations: Radau IIA of order 5 [Hairer1996 section IV.8].

A step from y to y + Z3 solves the three stages Z = h A f(y + Z) by Newton's method with one Jacobian. With T that
brings the inverse of A to block-diagonal form, Z = T W, its matrix decouples into a real and a complex one:

    (mu/h - f_y) dW0 = (T^-1 F)_0 - mu/h W0           and the same with complex mu for W1 + i W2

It covers increments and speeds; works are integrated with the weights of the stages.
"""

from __future__ import annotations

from functools import cache
from typing import Any, ClassVar

import numpy as np

from loopdyn.engine.jit import kernel
from loopdyn.engine.status import FINE, NOT_A_NUMBER
from loopdyn.integrators.base import Adaptive
from loopdyn.integrators.loop import Method
from loopdyn.integrators.memory import (
    ATOL,
    ERROR,
    FASTEST,
    RTOL,
    SIZE,
    START,
    note,
    place,
)

S6 = np.sqrt(6.0)
NODES = np.array([(4.0 - S6) / 10.0, (4.0 + S6) / 10.0, 1.0])
A = np.array(
    [
        [(88.0 - 7.0 * S6) / 360.0, (296.0 - 169.0 * S6) / 1800.0, (-2.0 + 3.0 * S6) / 225.0],
        [(296.0 + 169.0 * S6) / 1800.0, (88.0 + 7.0 * S6) / 360.0, (-2.0 - 3.0 * S6) / 225.0],
        [(16.0 - S6) / 36.0, (16.0 + S6) / 36.0, 1.0 / 9.0],
    ]
)
ERROR_WEIGHTS = np.array([-13.0 - 7.0 * S6, -13.0 + 7.0 * S6, -1.0]) / 3.0


def _blocks() -> tuple[float, complex, np.ndarray, np.ndarray]:
    """Real and complex eigenvalue of the inverse of A, T and its inverse."""
    values, vectors = np.linalg.eig(np.linalg.inv(A))
    real, pair = int(np.argmin(np.abs(values.imag))), int(np.argmin(values.imag))
    T = np.stack([vectors[:, real].real, vectors[:, pair].real, -vectors[:, pair].imag], axis=1)
    return float(values[real].real), complex(values[pair]), T, np.linalg.inv(T)


MU, MU_PAIR, T, T_INVERSE = _blocks()

# Step of the differences of accelerations, in natural units. For speeds it is this per step, but no more than this per
# second: dry friction changes over a hundredth, and the steps that lead here may take a millionth.
DIFFERENCE = 1e-7
ENOUGH = 1e-2  # last change of Newton's method against the tolerance of the step
MOST = 10  # iterations
DIVERGES = 16.0  # error assigned if Newton's method does not converge: about half the step is tried next


@cache
def radau() -> Method:
    """Start, three stages, the end of the step, and a cubic between both ends."""
    c, none = np.concatenate([[0.0], NODES]), np.zeros(0)
    return Method(np.zeros((4, 4)), np.zeros(4), c, np.zeros((2, 4)), np.zeros((0, 5)), none, np.zeros((5, 0)), 4)


@kernel
def tolerances(m, end, scale):
    """Scales of errors: positions in natural units, speeds relative to the fastest so far; `end` - start given."""
    nv = m.unit.size
    fastest = m.clock[FASTEST]
    for i in range(nv):
        fastest = max(fastest, abs(m.y[nv + i] + end[nv + i]) / m.unit[i])
    for i in range(nv):
        scale[i] = (m.clock[ATOL] + m.clock[RTOL]) * m.unit[i]
        # at rest, with no motion to come, there is nothing to compare with
        scale[nv + i] = max((m.clock[ATOL] + m.clock[RTOL] * fastest) * m.unit[i], 1e-300)


@kernel
def solve_matrices(J, h):
    """Inverses of mu/h - J for both eigenvalues."""
    one = np.eye(J.shape[0])
    return np.linalg.inv(MU / h * one - J), np.linalg.inv(MU_PAIR / h * one - J)


@kernel
def newton_step(F, W, Z, real, pair, h, scale):
    """One iteration, in place; returns the largest change relative to the tolerance."""
    G = T_INVERSE @ F
    d = real @ (G[0] - MU / h * W[0])
    e = pair @ ((G[1] + 1j * G[2]) - MU_PAIR / h * (W[1] + 1j * W[2]))
    W[0] += d
    W[1] += e.real
    W[2] += e.imag
    Z[:] = T @ W
    return max(np.max(np.abs(d) / scale), np.max(np.abs(e) / scale))


@kernel
def step_error(Z, f, real, h, scale, out):
    """Error estimate with the derivative f at the start, into `out`; returns its size relative to the tolerance."""
    out[:] = real @ (f + (ERROR_WEIGHTS @ Z) / h)
    return np.max(np.abs(out) / scale)


@kernel
def attempt(ints, floats, work, m, method, accelerate):
    """One step."""
    h, start, nv = m.clock[SIZE], m.clock[START], m.v1.size
    n = 2 * nv
    J, scale, error = np.empty((n, n)), np.empty(n), np.zeros(n)
    for j in range(n):
        d = DIFFERENCE * m.unit[j] if j < nv else DIFFERENCE * m.unit[j - nv] / max(h, 1.0)
        m.stage[:] = m.y
        m.stage[j] += d
        place(ints, work, m, m.stage, start)
        status = accelerate(ints, floats, work)
        if status == FINE:
            status = note(ints, floats, work, m, m.stage, 1)
        if status != FINE:
            return status
        J[:, j] = (m.k[1, :n] - m.k[0, :n]) / d
    real, pair = solve_matrices(J, h)
    W, Z, F = np.zeros((3, n)), np.zeros((3, n)), np.empty((3, n))
    change, before = np.inf, np.inf
    for iteration in range(MOST):
        for i in range(3):
            m.stage[:n] = m.y[:n] + Z[i]
            place(ints, work, m, m.stage, start + NODES[i] * h)
            status = accelerate(ints, floats, work)
            if status == FINE:
                status = note(ints, floats, work, m, m.stage, 1 + i)
            if status != FINE:
                return status
            F[i] = m.k[1 + i, :n]
        tolerances(m, Z[2], scale)
        before, change = change, newton_step(F, W, Z, real, pair, h, scale)
        if not np.isfinite(change):
            return NOT_A_NUMBER
        if change <= ENOUGH or (iteration > 1 and change > before):
            break
    if change > ENOUGH:
        m.clock[ERROR] = DIVERGES
        return FINE
    tolerances(m, Z[2], scale)
    m.clock[ERROR] = step_error(Z, m.k[0, :n], real, h, scale, error)
    if m.clock[ERROR] > 1.0:  # stiff parts of the estimate are damped by a second solution [Hairer1996 (8.20)]
        m.stage[:n] = m.y[:n] + error
        place(ints, work, m, m.stage, start)
        status = accelerate(ints, floats, work)
        if status == FINE:
            status = note(ints, floats, work, m, m.stage, method.c.size)
        if status != FINE:
            return status
        m.clock[ERROR] = step_error(Z, m.k[method.c.size, :n], real, h, scale, error)
    m.new[:n] = m.y[:n] + Z[2]
    m.new[n:] = m.y[n:] + h * (A[2, 0] * m.k[1, n:] + A[2, 1] * m.k[2, n:] + A[2, 2] * m.k[3, n:])
    return FINE


class Stiff(Adaptive):
    """Radau IIA of order 5: adaptive and implicit, for stiff springs and dampers.

    Examples
    --------
    >>> Stiff(longest=0.1).longest
    0.1
    """

    name: ClassVar[str] = "stiff"

    def method(self) -> Method:
        """Three stages that are solved together."""
        return radau()

    def attempt(self) -> Any:
        """Kernel of one step."""
        return attempt
