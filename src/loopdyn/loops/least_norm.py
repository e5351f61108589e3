"""Minimum-norm solution of sparse equations of balance."""

from __future__ import annotations

import numpy as np
import scipy
from numpy.typing import NDArray

Array = NDArray[np.float64]
# Fraction of the largest entry squared that makes the equations of balance regular, see smallest_solution.
PROXIMAL = 1e-13
BALANCED = 1e-15  # fraction of the load that is rounding
MOST_REPETITIONS = 40


def smallest_solution(A: scipy.sparse.csr_matrix, b: Array) -> Array:
    """Minimum-norm y with A^T y = b, column by column, for solvable right sides; sparse, in linear time.

    y = A m with (A^T A + e) m = b, iterated on the residual: e > 0 makes the matrix regular however many motions the
    rows leave free, and the iteration removes its influence (proximal iteration). A^T A, which would square the
    condition number, is not formed.
    """
    n, m = A.shape
    y = np.zeros((n, b.shape[1]))
    if n == 0:
        return y
    size = float(np.abs(A.data).max(initial=0.0)) or 1.0
    A = A / size
    down, up = A.tocoo(), A.T.tocsr()
    # K = [[1, -A], [A^T, PROXIMAL]]
    rows = np.concatenate([np.arange(n), down.row, n + down.col, np.arange(n, n + m)])
    columns = np.concatenate([np.arange(n), n + down.col, down.row, np.arange(n, n + m)])
    values = np.concatenate([np.ones(n), -down.data, down.data, np.full(m, PROXIMAL)])
    factor = scipy.sparse.linalg.splu(scipy.sparse.csc_matrix((values, (rows, columns)), shape=(n + m, n + m)))
    scale = np.abs(b).max(axis=0)
    before = np.inf
    for _ in range(MOST_REPETITIONS):
        missing = b / size - up @ y
        left = float((np.abs(missing).max(axis=0) / np.where(scale > 0.0, scale, 1.0)).max() * size)
        if left <= BALANCED or left > 0.9 * before:
            break
        before = left
        y += factor.solve(np.vstack([np.zeros((n, b.shape[1])), missing]))[:n]
    return y
