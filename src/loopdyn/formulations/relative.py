"""Relative coordinates with multipliers of the cut joints: the "traditional O(n)" method.

Anderson, Critchley 2003, sections 2.3-2.5; the same equations as [Mufti1983 eq. (73)] in tree coordinates.

====================  ==================  ==========================================================
paper                 code                meaning
====================  ==================  ==========================================================
eta                   ``eta`` (nv)        accelerations of the tree with the cut joints open
zeta                  ``zeta`` (nv, nc)   responses of the tree to unit multipliers, M^-1 J^T
Phi_,q                ``J`` (nc, nv)      Jacobian of the rows of the cut joints
psi                   ``gamma`` (nc)      right side at acceleration level
lambda                ``lam`` (nc)        multipliers
====================  ==================  ==========================================================

Deviations: the recursion runs in world axes with scalar pivots (:mod:`loopdyn.tree.aba`); redundant rows are
legal: (32) is solved with as many eigenvectors as the rank decided beforehand, with one refinement, and lambda
is of minimum norm.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from loopdyn.errors import SingularityError
from loopdyn.formulations.base import Array, Formulation, FunctionSolver, Solution, Solver, SolverKernels
from loopdyn.loops.rank import Rank
from loopdyn.system.system import State, System
from loopdyn.tree.aba import aba
from loopdyn.tree.functions import add_user_forces, no_inertia_in_tree, require_rows
from loopdyn.tree.response import tree_terms
from loopdyn.tree.user_rows import user_rows


@dataclass(frozen=True)
class Relative(Formulation):
    """Tree coordinates and multipliers of the cut joints: linear for the tree, cubic in the rows.

    Examples
    --------
    >>> import loopdyn as ld
    >>> print(ld.Relative().plan(ld.library.four_bar().compile()))
    relative: tree of 3 speeds by articulated bodies, 5 multipliers of cut joints (C) by a dense 5 x 5 matrix
    """

    name: ClassVar[str] = "relative"

    def plan(self, system: System) -> str:
        """One line."""
        cuts = ", ".join(system.topology.cuts[:6]) + (", ..." if len(system.topology.cuts) > 6 else "")
        rows = f"{system.nc} multipliers of cut joints ({cuts}) by a dense {system.nc} x {system.nc} matrix"
        return f"relative: tree of {system.nv} speeds by articulated bodies, {rows if system.nc else 'no loops'}"

    def prepare(self, system: System, rank: Rank) -> Solver:
        """Work arrays."""
        work = system.work()
        w = system.open_work(work)
        nv, nc = system.nv, system.nc
        eta, zeta, J, rate = np.empty(nv), np.empty((nc, nv)), np.empty((nc, nv)), np.empty(nc)
        scratch = np.empty((2, len(system.bodies), 6))
        units, user = system.row_units, user_rows(system)

        def solve(t: float, q: Array, v: Array) -> Solution:
            w.t[0], w.q[:], w.v[:] = t, q, v
            w.tau[:] = 0.0
            add_user_forces(system, t, q, v, w.tau)
            user(t, q, v).write(w, J, rate)
            status = tree_terms(system.ints, system.floats, work, eta, zeta, J, rate, scratch)
            if status >= 0:
                raise no_inertia_in_tree(system, State(t, q, v), status)
            require_rows(system, w, J, t)
            A = J / units[:, None]
            matrix = A @ (zeta / units[:, None]).T  # [Anderson2003 eq. (32)], rows in natural units
            right = (w.gamma - J @ eta) / units
            y, residual = _minimum_norm(0.5 * (matrix + matrix.T), right, rank.count)
            lam = y / units
            return Solution(eta + zeta.T @ lam, lam, {"residual": residual})  # [Anderson2003 eq. (13)]

        return FunctionSolver(solve, None if nc else _kernels_of_tree(system))


def _kernels_of_tree(system: System) -> SolverKernels:
    """The articulated-body kernel, where there are no constraints."""
    own = system.work()
    w = system.open_work(own)

    def explain(status: int) -> SingularityError:
        return no_inertia_in_tree(system, State(float(w.t[0]), w.q.copy(), w.v.copy()), status)

    return SolverKernels(aba, None, system.ints, system.floats, own, explain)


def _minimum_norm(S: Array, b: Array, rank: int) -> tuple[Array, float]:
    """Minimum-norm y with S y = b for a positive semidefinite S of known rank, and the remaining residual."""
    if len(b) == 0:
        return b.copy(), 0.0
    values, vectors = np.linalg.eigh(S)
    values, vectors = values[len(b) - rank :], vectors[:, len(b) - rank :]
    y = vectors @ ((vectors.T @ b) / values)
    y += vectors @ ((vectors.T @ (b - S @ y)) / values)
    return y, float(np.abs(b - S @ y).max())
