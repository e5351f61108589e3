"""Projection: the nearest closed position and velocity, in the mass metric.

One step solves, for the rows `J` and their residual `r`,

    minimise  1/2 x^T M x   subject to   J x = -r

and moves by x. `M` may be singular where the constraints hold the motion (thin rods, massless links);
:func:`metric` makes it positive definite.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from loopdyn.loops.continuation import Rule, close, largest
from loopdyn.loops.sparse_steps import OwnRow, SparseRows, sparse_rows, takes_sparse_steps
from loopdyn.system.system import State, System
from loopdyn.thresholds import DEPENDENT, ROUNDING
from loopdyn.tree.functions import Terms, constraint_equations, difference, increment, open_tree_mass_matrix, terms

Array = NDArray[np.float64]

# A direction without inertia is given this fraction of the largest scaled inertia.
LEAST_INERTIA = 1e-9


@dataclass(frozen=True)
class Projection:
    """A projected state and its residuals."""

    state: State
    position: float  # largest |phi|
    velocity: float  # largest |J v + phi_t|


def metric(M: Array) -> Array:
    """Cholesky factor L of a positive definite metric for small motions: M with a floor under its inertias.

    It decides only which of many closed poses counts as the nearest.
    """
    d = np.sqrt(np.where(np.diag(M) > 0.0, np.diag(M), 1.0))
    w, U = np.linalg.eigh(M / np.outer(d, d))
    w = np.maximum(w, LEAST_INERTIA * max(w.max(initial=0.0), 1.0))
    scaled = (U * w) @ U.T
    return np.asarray(np.linalg.cholesky(scaled * np.outer(d, d)), float)


def smallest_step(J: Array, r: Array, L: Array, rank: int | None = None) -> Array:
    """Smallest x with J x = -r in the metric L L^T; least squares where rows contradict each other.

    Rows are in natural units. `rank`, if known, is the number of singular values that count; otherwise those above
    rounding do, relative to the largest one and to a row of length one, so that rows of mere rounding do not count.
    """
    return smallest_steps(J, L, rank)(r)


def smallest_steps(J: Array, L: Array, rank: int | None = None) -> Callable[[Array], Array]:
    """Function that gives :func:`smallest_step` for a residual: J is decomposed once for all of them."""
    A = np.linalg.solve(L, J.T).T
    U, s, Vt = np.linalg.svd(A, full_matrices=False)
    least = DEPENDENT * max(s[:1].sum(), 1.0 / np.linalg.norm(L)) if len(L) else 0.0
    keep = np.arange(len(s)) < (rank if rank is not None else np.count_nonzero(s > least))
    U, s, V = U[:, keep], s[keep], Vt[keep].T

    def step(r: Array) -> Array:
        return np.asarray(np.linalg.solve(L.T, V @ ((U.T @ -r) / s)))

    return step


class Loops:
    """The constraint equations at position level at one time, as :mod:`loopdyn.loops.continuation` solves them.

    Corrections are smallest in the mass metric or, where inertia does not matter, in natural units.
    """

    def __init__(
        self,
        system: System,
        t: float,
        *,
        free: NDArray[np.bool_] | None = None,  # speeds that may move; all by default
        mass_metric: bool = False,
        rank: int | None = None,  # number of independent rows, if it has been decided
    ):
        self.system, self.t, self.rank, self.mass_metric = system, t, rank, mass_metric
        self.sparse = mass_metric and takes_sparse_steps(system)
        self.free = np.ones(system.nv, bool) if free is None else free
        self.units, self.still = system.speed_units, np.zeros(system.nv)

    def state(self, q: Array) -> State:
        """The pose at rest."""
        return State(self.t, q, self.still)

    def evaluate(self, q: Array) -> tuple[Array, Array | SparseRows]:
        """Residuals and Jacobian by the speeds in SI units, rows in natural units; of a large system sparse rows."""
        h = self.system.holonomic
        if self.sparse:
            now = sparse_rows(self.system, self.state(q))
            return now.phi[h], now.chosen(h)
        phi, J = constraint_equations(self.system, self.state(q))
        rows = self.system.row_units[h]
        return phi[h] / rows, J[h] / rows[:, None]

    def correction(self, q: Array, r: Array, J: Array | SparseRows, given: Array | None = None) -> Array:
        """The smallest motion, natural units, that closes the linearised equations.

        Speeds that may not move go by `given`, SI units, or are zero.
        """
        x, free = np.zeros(self.system.nv), self.free
        if not free.any():
            return x
        if isinstance(J, SparseRows):
            x[free] = J.step(r if given is None else r + J.times(given / self.units), free)[0][free]
        else:
            r = r if given is None else r + J @ given
            L = np.diag(1.0 / self.units[free])
            if self.mass_metric:
                L = metric(open_tree_mass_matrix(self.system, self.state(q))[np.ix_(free, free)])
            x[free] = smallest_step(J[:, free], r, L, self.rank) / self.units[free]
        return x

    def moved(self, q: Array, x: Array) -> Array:
        """The pose moved by x, natural units."""
        return increment(self.system, q, self.units * x)

    def difference(self, q: Array, p: Array) -> Array:
        """The motion from one pose to another, natural units."""
        return difference(self.system, q, p) / self.units


def project(
    system: System, state: State, *, rank: int | None = None, tolerance: float = 1e-13, most: int = 20
) -> Projection:
    """Close all loops in position, then in velocity, from a state that is nearly closed.

    Parameters
    ----------
    system : System
    state : State
    rank : int, optional
        Number of independent rows, if it has been decided.
    tolerance : float
        Largest residual; for rows that are lengths, times the size of the mechanism.
    most : int
        Largest number of Newton steps; the best state found is returned in any case, with its residuals.

    Examples
    --------
    >>> import loopdyn as ld
    >>> system = ld.library.four_bar().compile()
    >>> project(system, system.state(q={"A": 1e-3})).position < 1e-13
    True
    """
    if system.nc == 0:
        return Projection(state, 0.0, 0.0)
    t, v = state.t, state.v
    loops = Loops(system, t, mass_metric=True, rank=rank if system.holonomic.all() else None)
    found = close(loops, state.q, Rule(steps=most, enough=tolerance, closed=0.0, falls=1.0))
    q = found.y
    if takes_sparse_steps(system):
        v, r, rows = nearest_sparse_speeds(system, State(t, q, v), tolerance, most)
        return Projection(State(t, q, v), largest(rows.phi * system.row_units), largest(r * system.row_units))
    v, now = nearest_speeds(system, State(t, q, v), tolerance, most, rank=rank)
    return Projection(State(t, q, v), largest(now.phi), largest(now.J @ v + now.phi_t))


def nearest_speeds(
    system: System,
    state: State,
    enough: float,
    most: int,
    *,
    rank: int | None = None,
    given: tuple[Array, Array] | None = None,
) -> tuple[Array, Terms]:
    """Speeds nearest to those of a closed state, in the mass metric, that keep the constraints; and the terms there.

    Parameters
    ----------
    system : System
    state : State
    enough : float
        Residual, in natural units, that is not worth another step.
    most : int
        Steps at most. Where rows are affine in the speeds the first one is exact; a second one is against rounding
        where speeds are given.
    rank : int, optional
        Number of independent rows, where it has been decided.
    given : (rows, values), optional
        Speeds that are to be met besides: rows (n, nv) times v are the values (n,).
    """
    v, now = state.v, terms(system, state)
    rows, values = (np.zeros((0, system.nv)), np.zeros(0)) if given is None else given
    L: Array | None = None
    step: Callable[[Array], Array] | None = None
    exact = 1 if given is None else 2
    for n in range(exact if system.affine else most):
        A = np.vstack([now.J / system.row_units[:, None], rows])
        b = np.concatenate([now.phi_t / system.row_units, -values])
        r = A @ v + b
        rounding = ROUNDING * (np.abs(A) @ np.abs(v) + np.abs(b))
        if (np.abs(r) <= rounding).all() or (n > 0 and not system.affine and largest(r) <= enough):
            break
        L = metric(now.M) if L is None else L
        step = smallest_steps(A, L, rank) if step is None else step
        v = v + step(r)
        if not system.affine:  # rows are functions of the speeds
            now, step = terms(system, State(state.t, state.q, v)), None
    return v, now


def nearest_sparse_speeds(
    system: System, state: State, enough: float, most: int, own: Sequence[OwnRow] = (), values: Array | None = None
) -> tuple[Array, Array, SparseRows]:
    """Nearest speeds of a large system, with `values` for those that have rows of their `own`; residuals, and the rows.

    Residuals are in natural units, those of `own` rows last.
    """
    v, wanted = state.v, np.zeros(len(own)) if values is None else values
    for n in range(most + 1):
        rows = sparse_rows(system, State(state.t, state.q, v), own)
        r = np.append(rows.rate, rows.times(v / system.speed_units)[system.nc :] - wanted if len(own) else wanted)
        if n > 0 and (largest(r) <= enough or n == (min(most, 2) if system.affine else most)):
            break
        v = v + system.speed_units * rows.step(r)[0]
    return v, r, rows


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
    if position:
        loops = Loops(system, t, mass_metric=True, rank=rank if system.holonomic.all() else None)
        q = loops.moved(q, loops.correction(q, *loops.evaluate(q)))
    return q, nearest_speeds(system, State(t, q, v), 0.0, 1, rank=rank)[0]


__all__ = [
    "Loops",
    "Projection",
    "correct",
    "metric",
    "nearest_sparse_speeds",
    "nearest_speeds",
    "project",
    "smallest_step",
]
