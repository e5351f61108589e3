"""Poles of a linear system, with chains of exactly zero ones taken out first.

A freedom that nothing holds (a cyclic coordinate, an idle rod, a rolling wheel) is a chain of zero poles, a block of
Jordan's form, whose computed eigenvalues would be of the size of the root of rounding. The staircase algorithm takes
the null space of A out, then that of what is left, until nothing is singular: their dimensions are the numbers of
chains that are at least so long, and what is left has all other poles with full accuracy.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# A singular value of the scaled A counts as zero: fraction of the largest. Exact derivatives leave rounding, some
# 1e-14. A slow oscillation next to a fast one has the square of the ratio of both: one a million times slower would
# count as zero.
ZERO = 1e-12


class Poles(NamedTuple):
    """Poles of A and the vectors that belong to them.

    Attributes
    ----------
    values : (k,) array
        Poles other than zero, in rad/s: by size, then by imaginary part.
    vectors : (n, k) array
        Right eigenvectors.
    chains : tuple of int
        Length of each chain of zero poles, the longest first.
    still : (n, m) array
        Vectors with A x = 0, one for each chain.
    """

    values: NDArray[np.complex128]
    vectors: NDArray[np.complex128]
    chains: tuple[int, ...]
    still: Array


def balancing(A: Array, units: Array, speeds: NDArray[np.bool_]) -> Array:
    """Units (n,) of the states in which A is balanced: those of speeds are divided by the time of the fastest motion.

    Arguments as of :func:`poles_of`.

    Examples
    --------
    >>> balancing(np.array([[0.0, 1.0], [-9.0, 0.0]]), np.ones(2), np.array([False, True]))
    array([1., 3.])
    """
    scale = units.copy()
    inner = A * units / units[:, None]
    slow = np.abs(inner[np.ix_(speeds, ~speeds)]).max(initial=0.0) ** 0.5
    scale[speeds] *= max(slow, np.abs(inner[np.ix_(speeds, speeds)]).max(initial=0.0)) or 1.0
    return scale


def poles_of(A: Array, units: Array, speeds: NDArray[np.bool_]) -> Poles:
    """Poles of A (n, n), SI.

    Parameters
    ----------
    A : (n, n) array
    units : (n,) array
        Natural unit of each state.
    speeds : (n,) array of bool
        States that are speeds: their unit is divided by the time in which the fastest motion changes.

    Examples
    --------
    A mass that nothing holds, and one on a spring:

    >>> A = np.array([[0.0, 0, 1, 0], [0, 0, 0, 1], [0, 0, 0, 0], [0, -4.0, 0, 0]])
    >>> found = poles_of(A, np.ones(4), np.array([False, False, True, True]))
    >>> found.values.imag, found.chains
    (array([-2.,  2.]), (2,))
    """
    n, scale = len(A), balancing(A, units, speeds)
    N = A * scale / scale[:, None]
    sizes: list[int] = []
    Q, still, size = np.eye(n), np.zeros((n, 0)), float(np.linalg.norm(N, 2)) if n else 0.0
    while len(N):
        _, s, Vt = np.linalg.svd(N)
        count = int(np.count_nonzero(s <= ZERO * size))
        if not count:
            break
        W = np.vstack([Vt[len(s) - count :], Vt[: len(s) - count]]).T  # null space first
        if not sizes:
            still = W[:, :count]
        turned = W.T @ N @ W
        Q[:, n - len(N) :] = Q[:, n - len(N) :] @ W
        sizes.append(count)
        N = turned[count:, count:]
    chains = tuple(sum(1 for k in sizes if k > c) for c in range(sizes[0])) if sizes else ()
    values, vectors = _eigenvectors(A * scale / scale[:, None], Q, N)
    return Poles(values, scale[:, None] * vectors, tuple(sorted(chains, reverse=True)), scale[:, None] * still)


def _eigenvectors(full: Array, Q: Array, N: Array) -> tuple[NDArray[np.complex128], NDArray[np.complex128]]:
    """Poles of what is left, N, and their eigenvectors among all states, A = Q [0 strictly upper, B; 0, N] Q^T."""
    from scipy.linalg import eig

    if not len(N):
        return np.zeros(0, complex), np.zeros((len(full), 0), complex)
    values, y = eig(N)
    order = np.lexsort((values.imag, np.round(values.real, 9), np.round(np.abs(values), 9)))
    values, y = values[order].astype(complex), y[:, order].astype(complex)
    k = len(full) - len(N)
    T = Q.T @ full @ Q
    x = np.zeros((k, len(values)), complex)
    for n, p in enumerate(values):  # (p - T11) x = T12 y; T11 is nilpotent
        x[:, n] = np.linalg.solve(p * np.eye(k) - np.triu(T[:k, :k], 1), T[:k, k:] @ y[:, n])
    vectors: Any = Q @ np.vstack([x, y])
    return values, vectors / np.linalg.norm(vectors, axis=0)
