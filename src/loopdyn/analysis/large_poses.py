"""Poses of large systems, examined without dense matrices: all work grows with the number of bodies.

The independent rows are factorised by the elimination (:mod:`loopdyn.loops.elimination`). With them it gives

- the smallest motion x with J x = r on these rows, and so a random allowed velocity: a random one less its part that
  the rows forbid;
- the forms of the second-order test at one velocity v. With J x = gamma(v) on the independent rows, the dependent ones
  give U0^T phi''(v, v) = J x - gamma(v). A quadratic form that vanishes at a random v vanishes everywhere; the number
  of independent forms is the rank of their values at random velocities, as many as are necessary;
- the rank at neighbouring poses, by its pivots with the dependent rows behind the others.

Bases of null spaces are formed only where the walk over neighbours contradicts the forms, up to `MOST_FREEDOMS`.
"""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from loopdyn.analysis.finite_motion import (
    CLOSING_STEPS,
    SECOND_ORDER,
    ZERO_THERE,
    RankLosses,
    polarised,
    vanishing,
)
from loopdyn.loops.elimination.minimum_energy import minimum_energy_motion
from loopdyn.loops.elimination.passes import accelerate
from loopdyn.loops.elimination.solver import Elimination
from loopdyn.loops.projection import project
from loopdyn.loops.rank import CLEAR_GAP
from loopdyn.loops.sparse_steps import SparseRows, sparse_rows
from loopdyn.system.system import State, System
from loopdyn.thresholds import EXACT
from loopdyn.tree.functions import increment

Array = NDArray[np.float64]

SPARE = 3  # velocities beyond the rank of the forms there: a rank that more of them do not raise is the whole
REFINEMENTS = 2  # of the smallest motion: the matrix of multipliers squares the condition number of the rows
# Fraction of the fastest speed below which the form of a part is not enlarged: rounding of 1e-15 stays below 1e-10.
HARDLY = 1e-2
MOST_FREEDOMS = 100  # two steps along each: as much work as some hundred neighbours


class EliminatedRows:
    """Rows of a large system as chosen at one pose: the independent ones, and all of them with the others behind."""

    def __init__(self, system: System, state: State):
        self.system = system
        self.independent, self.every = Elimination(system, state), Elimination(system, state)
        self.every.eliminate_all(state)
        self.independent.keep_rows()
        kept = self.independent.plan.kept
        self.of_system = np.flatnonzero(kept < system.nc)  # places of the rows of the system in the matrix
        self.kept = kept[self.of_system]
        self.dependent = np.setdiff1d(np.arange(system.nc), self.kept)
        self._factorised: State | None = None

    @property
    def count(self) -> int:
        """Number of independent rows at the pose of the choice."""
        return self.independent.count

    def closed(self, state: State) -> State:
        """Pose closed in the independent rows."""
        self._factorised = None
        return self.independent.project(State(state.t, state.q, 0.0 * state.v), CLOSING_STEPS)

    def rank(self, state: State, near: float) -> int:
        """Rank at a neighbour of the pose that is closed up to `near`, fraction of the size of the mechanism.

        Where surfaces phi = 0 touch, the coordinates of a link are uncertain by the root of this residual in units of
        the link: pivots, which are squares, are zero below the residual. `ZERO_THERE` is ten times that of EXACT.
        """
        residual = near * self.system.size / self.system.link_length
        return self.system.nc - self.every.dropped_at(state, ZERO_THERE**2 / EXACT * max(residual, EXACT))

    def smallest(self, rows: SparseRows, state: State, r: Array) -> Array:
        """Smallest x in the mass metric with J x = r in the independent rows at a state; natural units."""
        e, system = self.independent, self.system
        if self._factorised is not state:
            e.set_state(state.t, state.q, 0.0 * state.v)
            e.keep_rows()
            e.run(accelerate)
            self._factorised = state
        x, step = np.zeros(system.nv), e.views.step
        for _ in range(1 + REFINEMENTS):
            left = (r - rows.times(x)) * system.row_units
            step[:] = 0.0
            step[self.of_system] = left[self.kept]
            minimum_energy_motion(*e.arrays)
            x = x + e.views.rates / system.speed_units
        return x


class LargePose:
    """Closed pose of a large system; see :class:`loopdyn.analysis.finite_motion.Pose`.

    Parameters
    ----------
    system : System
    state : State
        At rest.
    eliminated : EliminatedRows
        Chosen at the pose that is examined, of which this is one or a neighbour.
    rank : int, optional
        Rank at a neighbour.
    """

    walks: ClassVar[int] = 2
    more_walks: ClassVar[int] = 12
    most_freedoms: ClassVar[float] = MOST_FREEDOMS

    def __init__(self, system: System, state: State, eliminated: EliminatedRows, rank: int | None = None):
        self.system, self.state, self.eliminated = system, state, eliminated
        self.rank = eliminated.count if rank is None else rank

    @property
    def freedoms(self) -> int:
        """Instantaneous degrees of freedom."""
        return self.system.nv - self.rank

    @cached_property
    def rows(self) -> SparseRows:
        """Constraint rows at rest."""
        return sparse_rows(self.system, State(self.state.t, self.state.q, np.zeros(self.system.nv)))

    def velocity(self, rng: np.random.Generator) -> Array:
        """Random allowed velocity; its largest entry is one in natural units."""
        x = rng.normal(size=self.system.nv)
        r = self.rows.times(x)
        if self.rank == self.eliminated.count:
            x = x - self.eliminated.smallest(self.rows, self.state, r)
        else:  # more rows are independent than at the pose where they were chosen
            x = x + self.rows.step(r)[0]
        velocity: Array = self.system.speed_units * x / np.abs(x).max()
        return velocity

    def basis(self) -> Array:
        """Basis (nv, freedoms) of the allowed velocities, orthonormal in natural units."""
        rng, units = np.random.default_rng(1), self.system.speed_units[:, None]
        some = np.array([self.velocity(rng) for _ in range(self.freedoms)]).reshape(-1, self.system.nv).T
        basis: Array = units * np.linalg.qr(some / units)[0]
        return basis

    def closed_near(self, step: Array, near: float) -> LargePose | None:
        """Closed pose next to this one moved by `step`; None if none was found."""
        system, at = self.system, self.state
        moved = State(at.t, increment(system, at.q, step), np.zeros(system.nv))
        found = self.eliminated.closed(moved)
        if not np.abs(sparse_rows(system, found).phi).max() <= near:  # rows that were dependent are not any more
            found = project(system, moved, most=CLOSING_STEPS).state
        if not np.abs(sparse_rows(system, found).phi).max() <= near:
            return None
        return LargePose(system, found, self.eliminated, self.eliminated.rank(found, near))

    def forms_at(self, v: Array) -> Array:
        """phi''(v, v) of the dependent rows, without what the independent ones make of it; natural units."""
        system, at = self.system, self.state
        there = [sparse_rows(system, State(at.t, at.q, sign * v)).gamma for sign in (1.0, -1.0)]
        gamma = 0.5 * (there[0] + there[1]) - self.rows.gamma  # linear terms belong to phi_t
        x = self.eliminated.smallest(self.rows, at, gamma)
        missing: Array = (self.rows.times(x) - gamma)[self.eliminated.dependent]
        return missing

    def _squared_speed(self, v: Array) -> Array:
        """Square of the speed of the bodies of each dependent row, at least that of parts that hardly move.

        The second derivative of a row is of this order, in units of a link.
        """
        chosen, system = self.eliminated.dependent, self.system
        unit = np.where(system.row_units == 1.0, 1.0, system.size / system.link_length)[chosen]
        speed = self.rows.sizes(v / system.speed_units)[chosen] * unit
        squared: Array = np.maximum(speed, HARDLY) ** 2 / unit
        return squared

    def rank_losses(self) -> RankLosses:
        """Losses of rank that belong to this pose alone, from the forms at random velocities."""
        rng, n = np.random.default_rng(2), self.freedoms
        most = min(len(self.eliminated.dependent), n * (n + 1) // 2)  # there are no more independent forms
        values = squares = np.zeros((0, len(self.eliminated.dependent)))
        count, taken = 0, 0
        while taken < min(most, count + 1) or taken < min(most, count) + SPARE:
            more = [self.velocity(rng) for _ in range(max(SPARE, taken))]
            values, taken = np.vstack([values, *map(self.forms_at, more)]), taken + len(more)
            squares = np.vstack([squares, *map(self._squared_speed, more)])
            scale = squares.mean(axis=0)  # the same for all velocities: it does not change the number of forms
            _, s, Vt = np.linalg.svd(values / scale, full_matrices=False)
            least = SECOND_ORDER * max(1.0, s[0])  # of parts that move the form of a true loss is of the order of one
            count = int(np.count_nonzero(s > least))
        zero = float(s[count:].max(initial=0.0))
        doubt = (
            ""
            if zero < least / CLEAR_GAP
            else (
                f"second-order test: forms of {zero:.1g} are neither zero nor clearly above {least:.0e} (natural units)"
            )
        )
        if count == 0 or n > MOST_FREEDOMS:
            return RankLosses(count, self.velocity, doubt)
        N = self.basis()
        forms = polarised(lambda v: Vt[:count] @ (self.forms_at(v) / scale), N)
        return RankLosses(count, lambda generator: N @ vanishing(forms, generator.normal(size=n)), doubt, forms)
