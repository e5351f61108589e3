"""Four criteria for the best independent coordinates, and the choice of a set.

Blajer, Schiehlen, Schirm 1994, section 3. All criteria are given as a matrix W (k, n) with one column per coordinate:
|W_i|^2 is the criterion of coordinate i, and the measure of a set I of k coordinates is

    Q(I) = det N_II,   N = W^T W

which is |W_i|^2 for one freedom and zero exactly where the set is singular. For two and more freedoms the k largest
|W_i|^2 may belong to a singular set; Q is what is maximised.

===============  =======================================================================  ===================
criterion        N_ij                                                                     needs
===============  =======================================================================  ===================
``tangent``      G_ij / sqrt(M^-1(i,i) M^-1(j,j)), G = D^T M_d^-1 D, eq. (23a)            M_d, factorised
``orthogonal``   the same with G = M^-1 - M^-1 C^T (C M^-1 C^T)^-1 C M^-1, eq. (23b)      M^-1, C M^-1 C^T
``svd``          null space of C alone, coordinates in natural units                      no inertia
``lu``           the same; coordinates left by elimination with complete pivoting         no inertia
===============  =======================================================================  ===================
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from loopdyn.errors import SingularityError
from loopdyn.loops.rank import of_matrix

Array = NDArray[np.float64]

# An exchange must increase the measure by this factor, so that rounding does not cause endless exchanges.
WORTH = 1.0 + 1e-9


def null_space(C: Array, rank: int) -> Array:
    """Orthonormal basis (n, k) of the null space of C, `rank` of whose rows are independent."""
    return np.asarray(np.linalg.svd(C)[2][rank:].T if len(C) else np.eye(C.shape[1]), float)


def tangent(M: Array, D: Array, free: Array) -> Array:
    """W of eq. (23a) from any basis D (k, n) of the tangent space; `free` are the M^-1(i, i).

    Examples
    --------
    The pendulum of Fig. 1 as a body with coordinates x, y, gamma: eq. (26) at gamma = 0.

    >>> m, rho, J = 2.0, 0.7, 0.3
    >>> W = tangent(np.diag([m, m, J]), np.array([[0.0, rho, 1.0]]), np.array([1 / m, 1 / m, 1 / J]))
    >>> (W**2).round(6)
    array([[0.      , 0.765625, 0.234375]])
    """
    R = np.linalg.cholesky(D @ M @ D.T)
    return np.asarray(np.linalg.solve(R, D) / np.sqrt(free), float)


def orthogonal(M: Array, C: Array) -> Array:
    """W of eq. (23b); the rows of C are independent.

    Raises
    ------
    SingularityError
        If M has no inverse.

    Examples
    --------
    >>> W = orthogonal(np.diag([2.0, 2.0, 0.3]), np.array([[1.0, 0.0, 0.0], [0.0, 1.0, -0.7]]))
    >>> (W**2).round(6)
    array([[0.      , 0.765625, 0.234375]])
    """
    try:
        L = np.linalg.cholesky(M)
    except np.linalg.LinAlgError:
        raise SingularityError(
            "criterion 'orthogonal' needs the inverse of the mass matrix of the open tree, and a body has no inertia "
            "there. Use criterion 'tangent', or cut the mechanism elsewhere: compile(cuts=[...])."
        ) from None
    half = np.linalg.inv(L)  # M^-1 = half^T half
    free = (half**2).sum(axis=0)
    X = half @ C.T
    G = half.T @ half - _squared(np.linalg.solve(np.linalg.cholesky(X.T @ X), X.T @ half))
    N = G / np.sqrt(np.outer(free, free))
    values, vectors = np.linalg.eigh(N)  # N has rank k: W is what is left of it
    keep = slice(len(C), None)
    return np.asarray(np.sqrt(np.maximum(values[keep], 0.0))[:, None] * vectors[:, keep].T, float)


def _squared(Y: Array) -> Array:
    return np.asarray(Y.T @ Y, float)


# --------------------------------------------------------------------------------------------- choice of a set


def largest(W: Array, count: int) -> list[int]:
    """Columns of W chosen one after another by the longest component orthogonal to those before: pivoted Cholesky.

    Examples
    --------
    >>> largest(np.array([[1.0, 0.9, 0.0], [0.0, 0.1, 0.5]]), 2)
    [0, 2]
    """
    W = W.copy()
    found: list[int] = []
    for _ in range(count):
        lengths = (W**2).sum(axis=0)
        lengths[found] = -1.0
        j = int(np.argmax(lengths))
        found.append(j)
        if lengths[j] > 0.0:
            W -= np.outer(W[:, j], W[:, j] @ W) / lengths[j]
    return found


def exchanged(W: Array, chosen: list[int]) -> list[int]:
    """Exchange one column at a time as long as the measure of the set grows.

    Replacing column i by j multiplies Q by the square of the component of W_j along W_i in the basis of the set.

    Examples
    --------
    >>> exchanged(np.array([[1.0, 0.9, 0.0], [0.0, 0.1, 0.5]]), [0, 1])
    [0, 2]
    """
    chosen = list(chosen)
    for _ in range(W.size):
        inside = W[:, chosen]
        if not chosen or np.linalg.matrix_rank(inside) < len(chosen):
            break
        gains = np.linalg.solve(inside, W) ** 2
        gains[:, chosen] = 0.0
        i, j = np.unravel_index(int(np.argmax(gains)), gains.shape)
        if not gains[i, j] > WORTH:
            break
        chosen[i] = int(j)
    return chosen


def measure(W: Array, chosen: list[int]) -> float:
    """Q of a set.

    Examples
    --------
    >>> measure(np.array([[1.0, 0.9, 0.0], [0.0, 0.1, 0.5]]), [0, 2])
    0.25
    """
    return float(np.linalg.det(W[:, chosen]) ** 2)


def largest_gain(W: Array, chosen: list[int], allowed: NDArray[np.bool_]) -> float:
    """Largest factor by which replacing one column increases the measure of a set; large close to a singular set.

    For one freedom that is the measure of the best coordinate over that of the one chosen.

    Examples
    --------
    >>> largest_gain(np.array([[1.0, 0.5]]), [1], np.ones(2, bool))
    4.0
    """
    inside = W[:, chosen]
    if np.linalg.matrix_rank(inside) < len(chosen):
        return float("inf")
    return float((np.linalg.solve(inside, W[:, allowed]) ** 2).max())


def best_set(W: Array, allowed: NDArray[np.bool_] | None = None, start: list[int] | None = None) -> list[int]:
    """Best set found by pivoting and exchange, in ascending order; also starting from `start`, if given.

    Parameters
    ----------
    W : (k, n) array
    allowed : (n,) array of bool, optional
    start : list, optional

    Examples
    --------
    >>> best_set(np.array([[1.0, 0.9, 0.0], [0.0, 0.1, 0.5]]))
    [0, 2]
    """
    k = len(W)
    places = np.arange(W.shape[1]) if allowed is None else np.flatnonzero(allowed)
    W = W[:, places]
    found = exchanged(W, largest(W, k))
    if start is not None:
        other = exchanged(W, np.searchsorted(places, start).tolist())
        found = other if measure(W, other) > WORTH * measure(W, found) else found
    return sorted(places[found].tolist())


def by_elimination(C: Array, rank: int, allowed: NDArray[np.bool_] | None = None) -> list[int]:
    """Coordinates that elimination with complete pivoting leaves; those that are not allowed are eliminated first.

    Examples
    --------
    >>> by_elimination(np.array([[1.0, 3.0, 2.0]]), 1)
    [0, 2]
    """
    C, n = C.copy(), C.shape[1]
    order: list[int] = []
    forced = np.zeros(n, bool) if allowed is None else ~np.asarray(allowed, bool)
    for _ in range(rank):
        size = np.abs(C)
        size[:, order] = -1.0
        open_ = forced & ~np.isin(np.arange(n), order)
        if open_.any():
            size[:, ~open_] = -1.0
        i, j = np.unravel_index(int(np.argmax(size)), size.shape)
        order.append(int(j))
        if C[i, j] != 0.0:
            row = C[i] / C[i, j]
            C = C - np.outer(C[:, j], row)
            C[i] = 0.0
    return [i for i in range(n) if i not in order]


def independent_rows(B: Array, holonomic: NDArray[np.bool_], count: int) -> list[int]:
    """The `count` most independent rows of B; as many holonomic ones as possible.

    Examples
    --------
    >>> B = np.array([[1.0, 0.0, 0.0], [2.0, 0.0, 0.0], [0.0, 1.0, 1.0]])
    >>> independent_rows(B, np.array([True, True, True]), 2)
    [1, 2]
    """
    if holonomic.all() or not count:
        return sorted(largest(B.T, count))
    held = np.flatnonzero(holonomic)
    first = held[largest(B[held].T, of_matrix(B[held]).count)]
    Q = np.linalg.qr(B[first].T)[0]
    rest = B - (B @ Q) @ Q.T
    rest[held] = 0.0
    return sorted([*first.tolist(), *largest(rest.T, count - len(first))])
