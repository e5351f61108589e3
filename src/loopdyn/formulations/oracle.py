"""The reference for all formulations: plain, dense, rank-revealing, never compiled, never optimised.

    M a = h + J^T lam,   J a = gamma

With the singular value decomposition of the scaled J, r singular values kept: a = a_p + N z, where a_p is the
smallest solution of J a = gamma, N a basis of the null space, and z from N^T M N z = N^T (h - M a_p). lam is
the multiplier of minimum norm of the scaled rows. M may be singular as long as N^T M N is not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from loopdyn.errors import SingularityError
from loopdyn.formulations.base import Array, Formulation, FunctionSolver, Solution, Solver
from loopdyn.loops.rank import Rank
from loopdyn.system.system import State, System
from loopdyn.tree.functions import terms
from loopdyn.tree.massless_motions import motions_without_inertia


@dataclass(frozen=True)
class Oracle(Formulation):
    """Dense reference solution by singular value decomposition.

    Examples
    --------
    >>> import loopdyn as ld
    >>> print(Oracle().plan(ld.library.four_bar().compile()))
    oracle: dense, 3 speeds, 5 rows; singular value decomposition of J, dense N^T M N
    """

    name: ClassVar[str] = "oracle"

    def plan(self, system: System) -> str:
        """One line."""
        sizes = f"{system.nv} speeds, {system.nc} rows"
        return f"oracle: dense, {sizes}; singular value decomposition of J, dense N^T M N"

    def prepare(self, system: System, rank: Rank) -> Solver:
        """Nothing to prepare."""

        def solve(t: float, q: Array, v: Array) -> Solution:
            now = terms(system, State(t, q, v))
            return solve_dense(now.M, now.h, now.J, now.gamma, system.speed_units, system.row_units, rank.count)

        return FunctionSolver(solve)


def solve_dense(M: Array, h: Array, J: Array, gamma: Array, columns: Array, rows: Array, rank: int) -> Solution:
    """Accelerations and multipliers of minimum norm, with `rank` independent rows; `columns`, `rows`: units."""
    D = np.diag(columns)
    A = (J @ D) / rows[:, None]
    U, s, Vt = np.linalg.svd(A, full_matrices=True)
    s, U1, V1, N = s[:rank], U[:, :rank], Vt[:rank].T, Vt[rank:].T
    scaled_M, scaled_h = D @ M @ D, D @ h
    a = V1 @ ((U1.T @ (gamma / rows)) / s)
    if N.shape[1]:
        reduced = N.T @ scaled_M @ N
        if motions_without_inertia(scaled_M, N).size:
            raise SingularityError(
                "the mass matrix has no inertia against some motion that the constraints allow. "
                "Give the bodies that can move freely there mass or inertia."
            )
        a = a + N @ np.linalg.solve(reduced, N.T @ (scaled_h - scaled_M @ a))
    force = scaled_M @ a - scaled_h  # = A^T (rows * lam)
    lam = (U1 @ ((V1.T @ force) / s)) / rows
    residual = float(np.abs(A @ a - gamma / rows).max(initial=0.0))
    return Solution(D @ a, lam, {"residual": residual})
