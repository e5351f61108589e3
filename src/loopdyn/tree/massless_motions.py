"""Motions without inertia, and the bodies that move in them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy
from numpy.typing import NDArray

Array = NDArray[np.float64]

# A motion has no inertia if its inertia is below this fraction of the terms whose sum it is ...
MASSLESS = 1e-12
# ... or below this fraction of the largest inertia of any motion.
NOTHING = 1e-18
# Systems with more speeds or rows than this are analysed without dense matrices.
LARGEST_DENSE = 400


def motions_without_inertia(M: Array, N: Array) -> Array:
    """Motions (n, k) in the span of N (n, m) that have no inertia in M up to rounding; k is often zero.

    Rounding is relative to the terms whose sum is the inertia of a motion, not to other inertias: a light body is not a
    body without inertia. M is in natural units. Independent motions of bodies are in different columns.

    Examples
    --------
    >>> motions_without_inertia(np.diag([2.0, 0.0, 1e-9]), np.eye(3)).T
    array([[0., 1., 0.]])
    """
    if 0 in N.shape:
        return np.zeros((len(M), 0))
    values, vectors = np.linalg.eigh(N.T @ M @ N)
    found = []
    for x in (N @ vectors).T:
        inertia, terms = x @ M @ x, np.abs(x) @ np.abs(M) @ np.abs(x)
        if inertia <= max(MASSLESS * terms, NOTHING * values[-1]):
            found.append(x)
    X = np.array(found).reshape(-1, len(M)).T
    if X.shape[1] < 2:
        return X
    pivots = scipy.linalg.qr(X.T, mode="r", pivoting=True)[1][: X.shape[1]]  # eigenvectors of equal values are mixed
    return np.asarray(np.linalg.solve(X[pivots].T, X.T).T, float)


def smallest_groups(groups: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
    """Each group once, without groups that contain another.

    Examples
    --------
    >>> smallest_groups([["b", "c"], ["c"], ["a"], ["c"]])
    [('c',), ('a',)]
    """
    distinct = list(dict.fromkeys(tuple(g) for g in groups))
    return [g for g in distinct if not any(set(other) < set(g) for other in distinct)]
