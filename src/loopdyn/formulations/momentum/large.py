"""Momentum steps of large systems in linear time, by the elimination of `graph` instead of dense matrices.

The equations are those of :mod:`loopdyn.formulations.momentum.kernels`. Let P(q) r be the constrained response to a
load r: the accelerations of `graph` at rest with the load less those without it. Then

    q1 <- closed(q1 + h P(q0) (p0 + h/2 f0 - d0(q0, q1)))       until it no longer changes
    v1 =  P(q1) (d1(q0, q1) + h/2 f1) + speeds due to moving drivers

solve the two pairs of equations: impulses of the rows balance a load to which the response is zero. The first iteration
converges by a factor of about the angle that links turn in a step. All quantities are in SI units.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from loopdyn.engine.status import FINE, NOT_CLOSED, UNDEFINED, UNSETTLED
from loopdyn.errors import SingularityError
from loopdyn.formulations.base import Solution, Solver
from loopdyn.formulations.momentum import kernels, layout
from loopdyn.formulations.momentum.formulation import BLURRED, SINGULAR, MomentumSolver
from loopdyn.loops.elimination.minimum_energy import minimum_energy_motion
from loopdyn.loops.elimination.passes import accelerate
from loopdyn.loops.elimination.passes import correct as correct_once
from loopdyn.loops.elimination.solver import Elimination
from loopdyn.loops.rank import Rank
from loopdyn.system.system import System
from loopdyn.tree.functions import difference, increment
from loopdyn.tree.kinematics import move
from loopdyn.tree.momenta import chord, loads, momenta

Array = NDArray[np.float64]

MOST = 100  # largest number of iterations
# Changes below STALLED, in natural units, that no longer shrink to SLOWEST of the last are rounding.
STALLED, SLOWEST = 1e-10, 0.9
# Number of weakest combinations of rows that are monitored, of inverse iterations for them, and seed of their start.
WEAKEST, INVERSIONS, PROBE = 6, 8, 0


class LargeMomentumSolver(MomentumSolver):
    """`MomentumSolver` without dense matrices."""

    dense = False

    def __init__(self, system: System, rank: Rank, regular: Solver, order: int):
        super().__init__(system, rank, regular, order)
        self.elimination = Elimination(system, rank.state or system.state(), rank.count)
        self.elimination.keep_rows()
        self._largest = np.zeros(self.elimination.plan.pattern.rows)  # pivot of each row so far
        self._row_units = self.elimination.plan.row_units
        self._anchor: tuple[Array, Array] | None = None  # weakest rows at the start, see `orientation`
        rows = self._largest.size
        self._same = np.eye(min(WEAKEST, rows))
        self._probe = np.random.default_rng(PROBE).normal(size=(rows, min(WEAKEST, rows)))

    # --------------------------------------------------------------------------------- solutions by `graph`

    def _solve(self, t: float, q: Array, load: Array | float) -> tuple[Array, Array]:
        """Accelerations and multipliers at rest, with a load on the freedoms in addition to those of the model."""
        e = self.elimination
        e.set_state(t, q, 0.0)
        e.work.tau[:] = load
        e.run(accelerate)  # the rows are those of the start: as many as are independent in the regular motion
        e.work.tau[:] = 0.0
        return e.work.a.copy(), e.views.multipliers[: self.system.nc].copy()

    def _constrained_response(self, place: layout.Place, impulse: Array, h: float) -> tuple[Array, Array]:
        """Constrained response P(q) to an impulse, and the multipliers of the rows that balance the rest of it.

        As a load over the time h of a step it is of the size of the forces, so that the difference loses few digits.
        """
        q, t = self.system.open_work(place.work).q, float(place.number[layout.TIME])
        (a, lam), (a0, lam0) = self._solve(t, q, impulse / h), self._solve(t, q, 0.0)
        return h * (a - a0), h * (lam - lam0)

    def closed(self, t: float, q: Array, v: Array) -> tuple[Array, Array]:
        """One linear correction of coordinates and speeds back to the constraints."""
        e = self.elimination
        e.set_state(t, q, v)
        e.run(correct_once)
        return e.work.q.copy(), e.work.v.copy()

    def _indicator(self, t: float, q: Array) -> float:
        """Square root of the smallest pivot, each as a fraction of its largest value so far."""
        self._solve(t, q, 0.0)
        pivots = np.maximum(self.elimination.views.pivot, 0.0)
        self._largest = np.maximum(self._largest, pivots)
        share = np.divide(pivots, self._largest, out=np.ones_like(pivots), where=self._largest > 0.0)
        return float(np.sqrt(share.min(initial=1.0)))

    # ---------------------------------------------------------------------------------------------- steps

    def solve(self, t: float, q: Array, v: Array) -> Solution:
        """As :class:`MomentumSolver`; multipliers near a singular pose are those of `graph`."""
        if self._indicator(t, q) > BLURRED:
            return self.regular(t, q, v)
        a = self._auxiliary._by_differences(t, q, v)
        return Solution(a, self._solve(t, q, 0.0)[1], {"singular": 1.0})

    def begin(self, t: float, q: Array, v: Array, inexact: float = 0.0) -> float:
        """Make a closed state the start of the following steps; returns its indicator.

        The allowed motions are those of its own rows, however `inexact` it is.
        """
        self._note(self.places[0], t, q, v)
        self._anchor = None
        self.first = float(self.places[0].number[layout.INDICATOR])
        if self.first < SINGULAR:
            raise SingularityError(
                f"'{self.system.name}' is in a singular pose at t = {t:g} s, and too large to search its branches. "
                "Start at a pose nearby."
            )
        return self.first

    def place_at(self, t: float, q: Array, v: Array) -> layout.Place:
        """Place of a state at which a step could end; the start of the steps is unchanged."""
        self._note(self.places[-1], t, q, v)
        return self.places[-1]

    def _note(self, place: layout.Place, t: float, q: Array, v: Array) -> None:
        """Compute the data of a place that a step needs."""
        s, load = self.system, self.scratch.load
        w = s.open_work(place.work)
        w.t[0], w.q[:], w.v[:] = t, q, v
        place.v[:], place.number[layout.TIME] = v, t
        momenta(s.ints, s.floats, place.work, load, place.p)
        loads(s.ints, s.floats, place.work, load, place.f)
        place.number[layout.INDICATOR] = self._indicator(t, np.array(q, float))

    def _sequences(self, places: Sequence[int], h: float, shares: Array, ends: Array) -> tuple[int, int, int, float]:
        """As :class:`MomentumSolver`."""
        least, count = np.inf, 0
        for n, sequence in enumerate(shares):
            if n > 0:
                self.scratch.total[:] = 0.0
            here = places[0]
            for count, share in enumerate(sequence[sequence != 0.0].tolist()):
                there = places[1 + count % 2]
                A, B = self.places[here], self.places[there]
                status = self._close(A, B, share * h)
                status = self._end_speeds(A, B, share * h) if status == FINE else status
                if status != FINE:
                    return status, n, count, least
                here, least = there, min(least, float(B.number[layout.INDICATOR]))
            ends[n] = *difference(self.system, self._heads[places[0]].q, self._heads[here].q), *self.places[here].v
        return FINE, len(shares), count + 1, least

    def _close(self, A: layout.Place, B: layout.Place, h: float) -> int:
        """Solve for the position at the end B of a step from A; returns a status."""
        s, units = self.system, self.scratch.unit
        wA, wB, t1 = s.open_work(A.work), s.open_work(B.work), float(A.number[layout.TIME]) + h
        rest = np.zeros(s.nv)
        B.number[layout.TIME] = wB.t[0] = t1
        wB.q[:], wB.v[:] = self.closed(t1, increment(s, wA.q, h * A.v), rest)[0], A.v
        last = np.inf
        for _ in range(MOST):
            move(s.ints, s.floats, B.work)
            chord(s.ints, s.floats, A.work, B.work, h, self.scratch.load, self.scratch.far, A.d, B.d)
            x, lam = self._constrained_response(A, A.p + 0.5 * h * A.f - A.d, h)
            q = self.closed(t1, increment(s, wB.q, h * x), rest)[0]
            size = float(np.abs(difference(s, wB.q, q) / units).max(initial=0.0))
            if not size < kernels.FAR:
                return UNDEFINED if np.isnan(size) else NOT_CLOSED
            wB.q[:] = q
            if size <= kernels.ROUNDING or (size < STALLED and size > SLOWEST * last):
                move(s.ints, s.floats, B.work)
                chord(s.ints, s.floats, A.work, B.work, h, self.scratch.load, self.scratch.far, A.d, B.d)
                self.scratch.total[:] += lam * self.scratch.row_unit
                B.number[layout.INDICATOR] = self._indicator(t1, wB.q)
                return FINE
            last = size
        return NOT_CLOSED

    def _end_speeds(self, A: layout.Place, B: layout.Place, h: float) -> int:
        """Solve for the speeds at the end B with its loads, which may depend on them; returns a status."""
        s, S, load = self.system, self.scratch, self.scratch.load
        w, t1 = s.open_work(B.work), float(B.number[layout.TIME])
        S.still[:] = 0.0
        if self._moving_bases:
            w.v[:] = 0.0
            momenta(s.ints, s.floats, B.work, load, S.still)
        # speeds of minimum energy among those with the prescribed motion of the drivers
        asked = self.closed(t1, w.q, np.zeros(s.nv))[1]
        B.v[:] = A.v
        last = np.inf
        for _ in range(MOST):
            w.v[:] = B.v
            loads(s.ints, s.floats, B.work, load, B.f)
            x = self._constrained_response(B, B.d + 0.5 * h * B.f - S.still, h)[0]
            change = float(np.abs((x + asked - B.v) / S.unit).max(initial=0.0))
            fastest = float(np.abs(x / S.unit).max(initial=0.0))
            B.v[:] = x + asked
            if np.isnan(change):
                return UNDEFINED
            if change <= kernels.ROUNDING * fastest or (change < STALLED * fastest and change > SLOWEST * last):
                w.v[:] = B.v
                momenta(s.ints, s.floats, B.work, load, B.p)
                S.total[:] -= self._constrained_response(B, B.p - B.d - 0.5 * h * B.f, h)[1] * S.row_unit
                return FINE
            last = change
        return UNSETTLED

    def orientation(self, place: layout.Place) -> Array:
        """Square matrix that tells on which side of singular poses a place is, as far as the weakest rows tell.

        With u the weakest combinations of rows at the start, and p the momenta of the minimum-energy motions that
        change them there, it has the products of p with the motions that change u at the place. It is a part of the
        inverse of the matrix of :class:`MomentumSolver`: a loss of rank moves an eigenvalue through infinity to the
        left half-plane, if the other rows stay independent.
        """
        if self._anchor is None:
            u, x = self._weakest(self.places[0])
            self._anchor = u, self._momenta(self.places[0], x)
        u, p = self._anchor
        self._factor(place)
        return np.asarray(p.T @ self._minimum_energy_motions(u)[1])

    def _momenta(self, place: layout.Place, motions: Array) -> Array:
        """M v at a place for the motions v, columns of a matrix."""
        s, load, found = self.system, self.scratch.load, np.zeros((motions.shape[1] + 1, self.system.nv))
        w = s.open_work(place.work)
        for speeds, p in zip((*motions.T, 0.0), found, strict=True):  # the last one: moving bases alone
            w.v[:] = speeds
            momenta(s.ints, s.floats, place.work, load, p)
        w.v[:] = place.v
        moved: Array = (found[:-1] - found[-1]).T
        return moved

    def _factor(self, place: layout.Place) -> None:
        """Prepare :meth:`_minimum_energy_motions` at a place."""
        self._solve(float(place.number[layout.TIME]), self.system.open_work(place.work).q, 0.0)

    def _minimum_energy_motions(self, u: Array) -> tuple[Array, Array]:
        """(J M^-1 J^T)^-1 u for combinations u of rows in natural units, and motions x of least energy with J x = u."""
        e = self.elimination
        solved, x = np.empty_like(u), np.empty((self.system.nv, u.shape[1]))
        step = e.views.step[: len(u)]  # entries of rows that are left out follow
        for k in range(u.shape[1]):
            step[:] = u[:, k] * self._row_units
            minimum_energy_motion(*e.arrays)
            solved[:, k], x[:, k] = step * self._row_units, e.views.rates
        return solved, x

    def _weakest(self, place: layout.Place) -> tuple[Array, Array]:
        """The weakest combinations u of rows, in natural units, and the motions x of least energy with J x = u."""
        self._factor(place)
        u = self._probe
        for _ in range(INVERSIONS):
            u = np.linalg.qr(self._minimum_energy_motions(u)[0])[0]
        return u, self._minimum_energy_motions(u)[1]
