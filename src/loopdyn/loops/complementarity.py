"""Linear complementarity problems: w = q + A z, w >= 0, z >= 0, w z = 0, by Lemke's method.

The rule: the covering vector is one for every row, the entering variable is the complement of the one that left, and
ties of the ratio test are broken lexicographically. For a positive semidefinite A, the case of contacts without
friction, this ends after a finite number of pivots, with a solution or with the proof that there is none
(Cottle, Pang and Stone, The Linear Complementarity Problem, sections 4.4 and 4.9).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

NEGLIGIBLE = 1e-13  # of a pivot, relative to one: rows and columns are scaled to a diagonal of ones
PIVOTS = 50  # most pivots per row; the method needs about one


def solve_lcp(A: Array, q: Array) -> Array | None:
    """Solution z, or None if there is none; A positive semidefinite, scaled to a diagonal of ones or zeros.

    Examples
    --------
    >>> solve_lcp(np.array([[1.0, 0.5], [0.5, 1.0]]), np.array([-1.0, 1.0]))
    array([1., 0.])
    >>> solve_lcp(np.zeros((1, 1)), np.array([-1.0])) is None
    True
    """
    n = len(q)
    scale = float(np.abs(q).max(initial=0.0))
    if n == 0 or q.min() >= 0.0:
        return np.zeros(n)
    # columns: w, z, the covering variable, right side; w are basic at first
    T = np.hstack([np.eye(n), -A, -np.ones((n, 1)), (q / scale)[:, None]])
    basis = np.arange(n)
    row = int(np.argmin(T[:, -1]))
    entering, cover = 2 * n, 2 * n
    for _ in range(PIVOTS * n + PIVOTS):
        leaving = int(basis[row])
        _pivot(T, row, entering)
        basis[row] = entering
        if leaving == cover:
            z = np.zeros(2 * n + 1)
            z[basis] = T[:, -1]
            return np.maximum(z[n : 2 * n], 0.0) * scale
        entering = leaving + n if leaving < n else leaving - n
        row = _leaving_row(T, basis, entering, cover)
        if row < 0:
            return None
    return None


def _pivot(T: Array, row: int, column: int) -> None:
    """Make a variable basic in a row."""
    T[row] /= T[row, column]
    factors = T[:, column].copy()
    factors[row] = 0.0
    T -= np.outer(factors, T[row])


def _leaving_row(T: Array, basis: NDArray[np.int64], entering: int, cover: int) -> int:
    """Row of the variable that leaves the basis, -1 if none limits the entering one."""
    n = len(T)
    rows = np.flatnonzero(T[:, entering] > NEGLIGIBLE)
    if not rows.size:
        return -1
    ratios = T[rows, -1] / T[rows, entering]
    tied = rows[ratios <= ratios.min() + NEGLIGIBLE]
    if cover in basis[tied]:
        return int(tied[basis[tied] == cover][0])
    for column in range(n):  # of the inverse of the basis
        if len(tied) == 1:
            break
        x = T[tied, column] / T[tied, entering]
        tied = tied[x <= x.min() + NEGLIGIBLE]
    return int(tied[0])
