"""Explicit Runge-Kutta methods: the classical one of order 4, Dormand-Prince 5(4) and 8(5,3)."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from runpy import run_path
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import scipy
from numpy.polynomial import Polynomial

from loopdyn.integrators.base import Adaptive, Fixed
from loopdyn.integrators.loop import Method


def _without_extra(a: np.ndarray, b: np.ndarray, c: np.ndarray, e: np.ndarray, p: np.ndarray, order: int) -> Method:
    return Method(a, b, c, e, np.zeros((0, b.size + 1)), np.zeros(0), np.ascontiguousarray(p), order)


@cache
def rk4() -> Method:
    """The classical method of order 4, with a cubic between the ends of a step."""
    a = np.zeros((4, 4))
    a[1, 0], a[2, 1], a[3, 2] = 0.5, 0.5, 1.0
    b, c = np.array([1.0, 2.0, 2.0, 1.0]) / 6.0, np.array([0.0, 0.5, 0.5, 1.0])
    return _without_extra(a, b, c, np.zeros((2, 4)), np.zeros((5, 0)), 0)


@cache
def dp5() -> Method:
    """Dormand-Prince 5(4) [Hairer1993 table II.5.2] with its dense output of order 4, as in SciPy."""
    from scipy.integrate import RK45

    a, b = np.zeros((7, 7)), np.append(RK45.B, 0.0)
    a[:6, :5] = RK45.A
    a[6] = b
    c, e = np.append(RK45.C, 1.0), np.vstack([RK45.E, np.zeros(7)])
    return _without_extra(a, b, c, e, np.vstack([RK45.P, np.zeros(4)]), 5)


@cache
def dop853() -> Method:
    """Dormand-Prince 8(5,3) [Hairer1993 section II.10] with its dense output of order 7; coefficients from SciPy."""
    # the file of the coefficients by itself: scipy.integrate imports more than all of loopdyn
    table = SimpleNamespace(**run_path(str(Path(scipy.__path__[0]) / "integrate" / "_ivp" / "dop853_coefficients.py")))
    n, all_ = table.N_STAGES, table.N_STAGES_EXTENDED
    a, b = np.ascontiguousarray(table.A[:n, :n]), np.array(table.B)
    e = np.vstack([table.E5[:n], table.E3[:n]])  # the end of the step has weight zero in both
    # y = x(F0 + (1-x)(F1 + x(F2 + (1-x)(F3 + ...)))) with F linear in the derivatives, written as polynomials in x
    F = np.zeros((7, all_))
    F[0, :n] = b
    F[1], F[2] = -F[0], 2.0 * F[0]
    F[1, 0] += 1.0
    F[2, 0] -= 1.0
    F[2, n] -= 1.0
    F[3:] = table.D
    p = np.zeros((all_, 7))
    basis = Polynomial([1.0])
    for k in range(7):
        basis *= Polynomial([0.0, 1.0]) if k % 2 == 0 else Polynomial([1.0, -1.0])
        p[:, : len(basis.coef) - 1] += np.outer(F[k], basis.coef[1:])
    return Method(a, b, table.C[:n].copy(), e, table.A[n + 1 :].copy(), table.C[n + 1 :].copy(), p, 8)


class RK4(Fixed):
    """The classical Runge-Kutta method of order 4.

    Examples
    --------
    >>> RK4(step=1e-3).step
    0.001
    """

    name: ClassVar[str] = "rk4"

    def method(self) -> Method:
        """Four stages."""
        return rk4()


class DP5(Adaptive):
    """Dormand-Prince 5(4): adaptive, for loose tolerances and motions that are not smooth.

    Examples
    --------
    >>> DP5().method().order
    5
    """

    name: ClassVar[str] = "dp5"

    def method(self) -> Method:
        """Seven stages, the last of which is the first of the next step."""
        return dp5()


class DOP853(Adaptive):
    """Dormand-Prince 8(5,3): adaptive, with dense output of order 7; the default.

    Examples
    --------
    >>> DOP853().method().order
    8
    """

    name: ClassVar[str] = "dop853"

    def method(self) -> Method:
        """Twelve stages, and three more for the dense output."""
        return dop853()
