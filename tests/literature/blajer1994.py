"""Eq. (23b) of Blajer, Schiehlen and Schirm (1994), and the reactions by the three schemes of its section 5.

The generalised constraint forces are B^T f, where f are physical forces and torques and the rows of B map speeds to the
rates of the constrained displacements. The constraint rows of loopdyn for cut joints and constraints are such
displacements, M seen from F in axes of F, so B is their Jacobian and f their multipliers; with ``compile(cuts="all")``
they are the wrenches of all joints.

:func:`loopdyn.reactions` computes the same reactions in linear time and for every formulation. These schemes are dense
and serve for comparison.

===========  ==================================================  ====================================================
scheme       equation                                            needs
===========  ==================================================  ====================================================
``"35"``     (B M^-1 B^T) f = B ([0; xi] - M^-1 h)               M^-1, a matrix of the size of f; no accelerations
``"37"``     [B^T, (D M)^T] (f; z) = M a - h                     one matrix of the size of a; z = 0 is a check
``"38"``     B^T f = M a - h                                     least squares
===========  ==================================================  ====================================================
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from loopdyn.errors import LoopdynError, SingularityError
from loopdyn.formulations.partition.formulation import Partition, PartitionSolver
from loopdyn.loops.rank import decide
from loopdyn.quantities.wording import nearest
from loopdyn.system.system import State, System

Array = NDArray[np.float64]
Scheme = Literal["35", "37", "38"]


def orthogonal_projections(M: Array, C: Array) -> Array:
    """cos^2 beta_i of eq. (23b) as printed, from quantities that a range-space method has anyway."""
    X = np.linalg.solve(M, C.T)
    S = np.linalg.cholesky(C @ X)
    return np.asarray((np.linalg.solve(S, X.T) ** 2).sum(axis=0) / np.diag(np.linalg.inv(M)), float)


def scheme_35(M: Array, h: Array, B: Array, xi: Array) -> Array:
    """f from the state alone [Blajer1994 eq. (35)]; `xi` (n) is zero for the independent coordinates."""
    try:
        L = np.linalg.cholesky(M)
    except np.linalg.LinAlgError:
        raise SingularityError(
            "scheme 35 needs the inverse of the mass matrix, and some body has no inertia. Use scheme 37 or 38."
        ) from None
    X = np.linalg.solve(L, np.column_stack([B.T, h]))
    Y, y = X[:, :-1], X[:, -1]
    return np.asarray(np.linalg.solve(Y.T @ Y, B @ xi - Y.T @ y), float)


def scheme_37(M: Array, h: Array, B: Array, D: Array, a: Array) -> tuple[Array, Array]:
    """f, and z, which is zero up to rounding [Blajer1994 eq. (37)]; D (k, n) spans the tangent space."""
    both = np.linalg.solve(np.vstack([B, D @ M]).T, M @ a - h)
    return np.asarray(both[: len(B)], float), np.asarray(both[len(B) :], float)


def scheme_38(M: Array, h: Array, B: Array, a: Array) -> Array:
    """f by least squares [Blajer1994 eq. (38)]."""
    Q, R = np.linalg.qr(B.T)
    return np.asarray(np.linalg.solve(R, Q.T @ (M @ a - h)), float)


def reactions_by(system: System, state: State, scheme: Scheme = "37") -> Array:
    """Multipliers (nc,) of all rows of a system at a closed state, in the order of `system.constraint_rows`.

    Parameters
    ----------
    system : System
        With ``compile(cuts="all")`` the rows are those of all joints.
    state : State
    scheme : str
        "35", "37" or "38".

    Returns
    -------
    (nc,) array
        For dependent rows the distribution of minimum norm, lengths and angles in natural units.

    Examples
    --------
    >>> import loopdyn as ld
    >>> system = ld.library.four_bar().compile()
    >>> state = ld.assemble(system, v={"A": 2.0})
    >>> f = [reactions_by(system, state, s) for s in ("35", "37", "38")]
    >>> bool(np.ptp(f, axis=0).max() < 1e-10)
    True
    """
    system = system.for_state(state)
    if scheme not in get_args(Scheme):
        raise LoopdynError(f"there is no scheme '{scheme}'. {nearest(str(scheme), get_args(Scheme))}")
    solver = PartitionSolver(system, decide(system, state), Partition())
    a = solver(state.t, state.q, state.v).a
    P = solver.calls.views
    units = P.row_unit[:, None]
    rows = P.J / units
    B = rows[P.rows]
    if scheme == "35":
        xi = np.zeros(system.nv)
        xi[P.D] = P.xi[:, 0]
        f = scheme_35(P.M, P.h, B, xi)
    elif scheme == "37":
        D = np.zeros((len(P.I), system.nv))
        D[np.arange(len(P.I)), P.I], D[:, P.D] = 1.0, P.A.T
        f = scheme_37(P.M, P.h, B, D, a)[0]
    else:
        f = scheme_38(P.M, P.h, B, a)
    if len(B) < system.nc:  # distributed over all rows, which are combinations T of the kept ones
        T = np.linalg.solve(B[:, P.D].T, rows[:, P.D].T).T
        f = T @ np.linalg.solve(T.T @ T, f)
    return np.asarray(f / P.row_unit, float)
