"""Projection: the nearest closed position and velocity, in the mass metric.

One step solves, for the rows `J` and their residual `r`,

    minimise  1/2 x^T M x   subject to   J x = -r

and moves by x. `M` may be singular where the constraints hold the motion (thin rods, massless links): the
smallest motion among the remaining freedoms is then meant, which :func:`metric` takes care of.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from loopdyn.system.system import State, System
from loopdyn.tree.functions import increment, terms

Array = NDArray[np.float64]

# A direction without inertia counts as if it had this share of the largest scaled inertia.
LEAST_INERTIA = 1e-9


@dataclass(frozen=True)
class Projection:
    """A projected state, its residuals and the steps it took."""

    state: State
    position: float  # largest |phi|
    velocity: float  # largest |J v + phi_t|
    steps: int


def metric(M: Array) -> Array:
    """Cholesky factor L of a positive definite metric for small motions: M with a floor under its inertias.

    It decides only which of many closures is taken as the nearest; closures themselves do not depend on it.
    """
    d = np.sqrt(np.where(np.diag(M) > 0.0, np.diag(M), 1.0))
    w, U = np.linalg.eigh(M / np.outer(d, d))
    w = np.maximum(w, LEAST_INERTIA * max(w.max(initial=0.0), 1.0))
    scaled = (U * w) @ U.T
    return np.asarray(np.linalg.cholesky(scaled * np.outer(d, d)), float)


def smallest_step(J: Array, r: Array, L: Array, rank: int | None = None) -> Array:
    """Smallest x with J x = -r in the metric L L^T; least squares where rows contradict each other.

    Rows are in natural units. `rank`, where it is known, says how many singular values count; otherwise those
    above rounding do: against the largest one, and against a row of length one, lest rows that are zero but for
    rounding count as rows.
    """
    A = np.linalg.solve(L, J.T).T
    U, s, Vt = np.linalg.svd(A, full_matrices=False)
    least = 1e-10 * max(s[:1].sum(), 1.0 / np.linalg.norm(L)) if len(L) else 0.0
    keep = np.arange(len(s)) < (rank if rank is not None else np.count_nonzero(s > least))
    y = Vt[keep].T @ ((U[:, keep].T @ -r) / s[keep])
    x: Array = np.linalg.solve(L.T, y)
    return x


def project(
    system: System, state: State, *, rank: int | None = None, tolerance: float = 1e-13, most: int = 20
) -> Projection:
    """Close all loops in position, then in velocity, from a state that is nearly closed.

    Parameters
    ----------
    system : System
    state : State
    rank : int, optional
        Number of independent rows, where it has been decided.
    tolerance : float
        Of the residuals, times the size of the mechanism for rows that are lengths.
    most : int
        Newton steps at most; the best state found is returned in any case, with its residuals.

    Examples
    --------
    >>> import loopdyn as ld
    >>> system = ld.library.four_bar().compile()
    >>> project(system, system.state(q={"A": 1e-3})).position < 1e-13
    True
    """
    if system.nc == 0:
        return Projection(state, 0.0, 0.0, 0)
    t, q, v, rows = state.t, state.q, state.v, system.row_units
    now = terms(system, state)
    best, steps = _size(now.phi / rows), 0
    while best > tolerance and steps < most:
        J, phi = (now.J / rows[:, None])[system.holonomic], (now.phi / rows)[system.holonomic]
        trial_q = increment(system, q, smallest_step(J, phi, metric(now.M), rank if system.holonomic.all() else None))
        trial = terms(system, State(t, trial_q, v))
        steps += 1
        if _size(trial.phi / rows) >= best:
            break
        q, now, best = trial_q, trial, _size(trial.phi / rows)
    L = metric(now.M)
    v = v + smallest_step(now.J / rows[:, None], (now.J @ v + now.phi_t) / rows, L, rank)
    for _ in range(0 if system.affine else most):
        now = terms(system, State(t, q, v))
        if _size((now.J @ v + now.phi_t) / rows) <= tolerance:
            break
        v = v + smallest_step(now.J / rows[:, None], (now.J @ v + now.phi_t) / rows, L, rank)
    return Projection(State(t, q, v), _size(now.phi), _size(now.J @ v + now.phi_t), steps)


def correct(
    system: System, t: float, q: Array, v: Array, rank: int | None = None, *, position: bool = True
) -> tuple[Array, Array]:
    """One linear correction of the coordinates, if `position`, and of the speeds, back to the constraints.

    Examples
    --------
    >>> import loopdyn as ld
    >>> system = ld.library.four_bar().compile()
    >>> near = system.state(q={"A": 1e-5})
    >>> q, v = correct(system, 0.0, near.q, near.v, 2)
    >>> bool(abs(terms(system, State(0.0, q, v)).phi).max() < 1e-9)
    True
    """
    rows = system.row_units
    now = terms(system, State(t, q, v))
    if position:
        h = system.holonomic
        J, phi = (now.J / rows[:, None])[h], (now.phi / rows)[h]
        q = increment(system, q, smallest_step(J, phi, metric(now.M), rank if h.all() else None))
        now = terms(system, State(t, q, v))
    v = v + smallest_step(now.J / rows[:, None], (now.J @ v + now.phi_t) / rows, metric(now.M), rank)
    return q, v


def _size(x: Array) -> float:
    return float(np.abs(x).max(initial=0.0))


__all__ = ["Projection", "correct", "metric", "project", "smallest_step"]
