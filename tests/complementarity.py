"""Linear complementarity problems in plain NumPy: the oracle of one-sided contacts. Nothing here uses loopdyn.

Find z >= 0 with w = A z + b >= 0 and w . z = 0. Two independent methods: all active sets, one after another, and
Lemke's pivoting. For a mechanism with mass matrix M, bilateral rows J and gaps with rows B (all dense, from wherever),

    accelerations   M a = h + J^T lam + B^T z,   J a = gamma,   B a - kappa = w >= 0   (w: g'' of closed gaps)
    impulses        M (v+ - v-) = J^T Lam + B^T Z,   J v+ = J v-,   B v+ + e B v- = w >= 0   (Moreau-Newton)

The bilateral rows are removed by a basis N of their null space from a singular value decomposition, which holds for
dependent rows too: a = a0 + N y, N^T M N y = N^T (h - M a0 + B^T z), so A = B N (N^T M N)^-1 N^T B^T.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

Array = np.ndarray


def all_active_sets(A: Array, b: Array, tolerance: float = 1e-9) -> list[Array]:
    """Every solution z whose active rows are independent, of at most 10 rows."""
    n = len(b)
    assert n <= 10, "2^n sets"
    scale = max(1.0, float(np.abs(b).max(initial=0.0)))
    found = []
    for size in range(n + 1):
        for active in combinations(range(n), size):
            z, rows = np.zeros(n), list(active)
            if size:
                block = A[np.ix_(rows, rows)]
                if np.linalg.cond(block) > 1e12:
                    continue
                z[rows] = np.linalg.solve(block, -b[rows])
            w = A @ z + b
            if (z > -tolerance * max(1.0, np.abs(z).max(initial=0.0))).all() and (w > -tolerance * scale).all():
                found.append(z)
    return found


def lemke(A: Array, b: Array) -> Array | None:
    """Solution by Lemke's pivoting with the lexicographic rule; None if it ends on a ray (no solution for this A)."""
    n = len(b)
    if (b >= 0.0).all():
        return np.zeros(n)
    # Tableau of w - A z - 1 z0 = b; columns: w, z, z0, right side.
    T = np.hstack([np.eye(n), -A, -np.ones((n, 1)), b[:, None]])
    basis = list(range(n))
    row, entering = int(np.argmin(b)), 2 * n
    for _ in range(50 * (n + 1)):
        T[row] /= T[row, entering]
        for k in range(n):
            if k != row:
                T[k] -= T[k, entering] * T[row]
        leaving, basis[row] = basis[row], entering
        z0 = max((T[k, -1] for k in range(n) if basis[k] == 2 * n), default=0.0)
        if z0 <= 1e-12 * np.abs(b).max():  # gone, or rounding
            z = np.zeros(n)
            for k, variable in enumerate(basis):
                if n <= variable < 2 * n:
                    z[variable - n] = T[k, -1]
            return z
        entering = leaving + n if leaving < n else leaving - n
        column = T[:, entering]
        rows = [k for k in range(n) if column[k] > 1e-12]
        if not rows:
            return None
        least = min(T[k, -1] / column[k] for k in rows)
        tied = [k for k in rows if T[k, -1] / column[k] <= least + 1e-13 * (1.0 + abs(least))]
        with_z0 = [k for k in tied if basis[k] == 2 * n]
        row = with_z0[0] if with_z0 else min(tied, key=lambda k: tuple(T[k, :n] / column[k]))
    raise AssertionError("Lemke's method did not end")


def null_space(J: Array, n: int) -> Array:
    """Orthonormal basis (n, k) of the null space of J, whose rows may depend on each other."""
    if not len(J):
        return np.eye(n)
    size = np.linalg.norm(J, axis=1, keepdims=True)
    _, s, V = np.linalg.svd(J / np.where(size > 0.0, size, 1.0))
    return V[int((s > 1e-9 * s.max()).sum()) :].T


def contact_accelerations(
    M: Array, h: Array, J: Array, gamma: Array, B: Array, kappa: Array
) -> tuple[Array, Array, Array]:
    """Accelerations a, contact forces z, and accelerations w of the gaps."""
    N = null_space(J, len(h))
    a0 = np.linalg.lstsq(J, gamma, rcond=None)[0] if len(J) else np.zeros(len(h))
    inverse = N @ np.linalg.solve(N.T @ M @ N, N.T)
    free = a0 + inverse @ (h - M @ a0)
    z = _solution(B @ inverse @ B.T, B @ free - kappa)
    a = free + inverse @ (B.T @ z)
    return a, z, B @ a - kappa


def contact_impulses(M: Array, J: Array, B: Array, v: Array, e: float) -> tuple[Array, Array]:
    """Speeds after the impact, and impulses of the contacts, by Moreau's rule with one restitution for all.

    `B` are the rows of all closed gaps.
    """
    N = null_space(J, len(v))
    inverse = N @ np.linalg.solve(N.T @ M @ N, N.T)
    before = B @ v
    Z = _solution(B @ inverse @ B.T, (1.0 + e) * before)
    return v + inverse @ (B.T @ Z), Z


def _solution(A: Array, b: Array) -> Array:
    if not len(b):
        return np.zeros(0)
    size = np.sqrt(np.maximum(np.diag(A), 1e-300))  # rows of one unit
    scaled, right = A / size[:, None] / size, b / size
    if len(b) <= 10:
        found = all_active_sets(scaled, right)
        if found:
            return found[0] / size
    z = lemke(scaled, right)
    assert z is not None, "no solution"
    return z / size


def impulses_of_loops(M: Array, J: Array, change: Array, contact: Array) -> Array:
    """Impulses of independent bilateral rows for a change of the speeds: J^T Lam = M (v+ - v-) - B^T Z."""
    return np.linalg.lstsq(J.T, M @ change - contact, rcond=None)[0]


# --------------------------------------------------------------------------------------------- self-checks


def check_methods_agree(count: int = 300, seed: int = 0) -> float:
    """Largest violation of complementarity, and difference of w between both methods, over random problems."""
    rng = np.random.default_rng(seed)
    worst = 0.0
    for _ in range(count):
        n, rank = int(rng.integers(1, 9)), int(rng.integers(1, 9))
        G = rng.normal(size=(n, rank))  # dependent rows where rank < n
        A, b = G @ G.T, G @ rng.normal(size=rank)  # in the range of A: feasible, w is unique
        found, z = all_active_sets(A, b), lemke(A, b)
        assert found
        assert z is not None
        for solution in (found[0], z):
            w = A @ solution + b
            worst = max(worst, -float(solution.min()), -float(w.min()), float(np.abs(w * solution).max()))
        worst = max(worst, float(np.abs(A @ (found[0] - z)).max()))
    return worst


def check_gauss(count: int = 50, seed: int = 1) -> float:
    """Largest excess of Gauss's constraint over that of random feasible accelerations near it: never positive."""
    rng = np.random.default_rng(seed)
    worst = -np.inf
    for _ in range(count):
        n, m, k = 6, 2, 4
        L = rng.normal(size=(n, n))
        M, h, J, B = L @ L.T + np.eye(n), rng.normal(size=n), rng.normal(size=(m, n)), rng.normal(size=(k, n))
        gamma, kappa = rng.normal(size=m), rng.normal(size=k)
        a, _, _ = contact_accelerations(M, h, J, gamma, B, kappa)
        free = np.linalg.solve(M, h)

        def compulsion(x: Array, free: Array = free, M: Array = M) -> float:
            return 0.5 * float((x - free) @ M @ (x - free))

        N = null_space(J, n)
        for _ in range(40):
            x = a + N @ rng.normal(size=N.shape[1]) * rng.choice([1e-3, 0.1, 1.0])
            if (B @ x >= kappa).all():
                worst = max(worst, compulsion(a) - compulsion(x))
    return worst
