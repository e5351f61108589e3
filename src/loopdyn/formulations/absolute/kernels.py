"""Matrices of Mufti's report that :mod:`loopdyn.formulations.absolute.formulation` is made of, in plain NumPy.

I. H. Mufti, *Equations of motion for rigid multibody systems*, National Research Council Canada,
Division of Mechanical Engineering, DM-3 (NRC 22797), 1983. The report as a whole, equation by equation, for bodies
joined at points, is in ``tests/literature/mufti1983.py``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

Array = NDArray[np.float64]


def tilde(v: Array) -> Array:
    """Matrices of the cross product, one for each vector in the last axis [Mufti1983 eq. (11)].

    Examples
    --------
    >>> tilde(np.array([1.0, 2.0, 3.0])) @ np.array([1.0, 0.0, 0.0])
    array([ 0.,  3., -2.])
    """
    x, y, z = v[..., 0], v[..., 1], v[..., 2]
    o = np.zeros_like(x)
    return np.stack([np.stack([o, -z, y], -1), np.stack([z, o, -x], -1), np.stack([-y, x, o], -1)], -2)


def blocks(A: Array) -> Array:
    """(p, q, 3, 3) blocks as one (3p, 3q) matrix."""
    p, q = A.shape[:2]
    return A.transpose(0, 2, 1, 3).reshape(3 * p, 3 * q)


def expand(C: Array) -> Array:
    """Each scalar as that multiple of the unit matrix, so that it acts on 3-vectors."""
    return np.asarray(np.kron(C, np.eye(3)), np.float64)


def incidence(arcs: Any, n: int) -> Array:
    """Incidence matrix: +1 at the initial, -1 at the final vertex of each arc [Mufti1983 eq. (1)].

    Examples
    --------
    >>> incidence([(0, 1), (0, 2)], 3)
    array([[ 1.,  1.],
           [-1.,  0.],
           [ 0., -1.]])
    """
    C = np.zeros((n, len(arcs)))
    for j, (plus, minus) in enumerate(arcs):
        if plus >= 0:
            C[plus, j] += 1.0
        if minus >= 0:
            C[minus, j] -= 1.0
    return C


def path_matrix(S: Array) -> Array:
    """T = S^-1 of a rooted tree: -1 where arc k is on the path to body l [Mufti1983 eqs. (22)-(25)].

    `S` is square: column j has -1 at the body that arc j leads to and +1 at the body it comes from, if any.
    """
    n = len(S)
    to, start = S.argmin(axis=0), np.where(S.max(axis=0) > 0, S.argmax(axis=0), -1)
    beyond: list[list[int]] = [[] for _ in range(n + 1)]  # arcs that start at each body; last: at no body
    for j in range(n):
        beyond[start[j]].append(j)
    T, todo = np.zeros((n, n)), list(beyond[-1])
    while todo:
        j = todo.pop()
        if start[j] >= 0:
            T[:, to[j]] = T[:, start[j]]  # eq. (24): the path to j+, and arc j
        T[j, to[j]] -= 1.0
        todo += beyond[to[j]]
    return T


def centripetal(W: Array, L: Array) -> Array:
    """W_i x (W_i x L_ij) for all i, j: the hat of the paper."""
    return np.cross(W[:, None, :], np.cross(W[:, None, :], L))


def saddle(J: Array, u: Array, H: Array, gamma: Array) -> tuple[Array, Array]:
    """x, y with J x = u + H y and H^T x = gamma, all at once [Mufti1983 eq. (10)]."""
    n, k = H.shape
    s = float(np.trace(J)) / max(n, 1) or 1.0  # J and H in comparable units; nothing but massless bodies: any
    matrix = np.block([[J / s, -H], [-H.T, np.zeros((k, k))]])
    x = np.linalg.solve(matrix, np.concatenate([u / s, -gamma]))
    return x[:n], s * x[n:]


def complement_by_qr(H: Array) -> tuple[Array, Array]:
    """Y, Z with H^T Y = 1, H^T Z = 0, for independent columns [Mufti1983 eq. (A-6)]."""
    Q, R = scipy.linalg.qr(H)
    k = H.shape[1]
    return scipy.linalg.solve_triangular(R[:k], Q[:, :k].T).T, Q[:, k:]


def by_complement(J: Array, u: Array, gamma: Array, Y: Array, Z: Array) -> tuple[Array, Array]:
    """x = Y gamma + Z z: Lagrange's form of d'Alembert's principle [Mufti1983 eqs. (40-a)-(40-c), (A-2)]."""
    x = Y @ gamma
    if Z.shape[1]:
        x = x + Z @ scipy.linalg.cho_solve(scipy.linalg.cho_factor(Z.T @ J @ Z), Z.T @ (u - J @ x))
    return x, Y.T @ (J @ x - u)
