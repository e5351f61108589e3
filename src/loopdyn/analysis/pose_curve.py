"""Poses of a mechanism with one degree of freedom, as a curve for :mod:`loopdyn.loops.continuation`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from loopdyn.analysis.contradictions import within_tolerance
from loopdyn.loops.projection import Loops
from loopdyn.loops.rank import scaled
from loopdyn.system.system import State, System
from loopdyn.tree.functions import constraint_equations

Array = NDArray[np.float64]


class PoseCurve(Loops):
    """Closed poses at a time, v = 0, and the motions that the constraints allow there.

    Redundant rows that the system leaves open within a tolerance are chosen again if the kept rows become nearly
    dependent: `system` is the one that is closed at the last pose.
    """

    def __init__(self, system: System, t: float, rank: int, *, mass_metric: bool = False, norm: float = 2):
        super().__init__(system, t, mass_metric=mass_metric)
        self.count, self.norm = rank, norm

    def state(self, q: Array) -> State:
        """State at rest, with the rows that it leaves open."""
        return State(self.t, q, self.still, tolerated=self.system.tolerated)

    def settled(self, q: Array) -> Array:
        """Closed pose; redundant rows are chosen again if necessary."""
        self.system, state = within_tolerance(self.system, self.state(q), "a pose on the curve")
        return state.q

    def motions(self, q: Array) -> tuple[Array, Array]:
        """Orthonormal basis N (nv, k) of the motions, in natural units, and the scaled rows."""
        J = scaled(self.system, constraint_equations(self.system, self.state(q))[1])
        if not self.system.nc:
            return np.eye(self.system.nv), J
        return np.linalg.svd(J)[2][self.count :].T, J

    def tangent(self, q: Array) -> Array:
        """Only motion, of unit length in the norm of the curve's arc length."""
        n: Array = self.motions(q)[0][:, 0]
        return n / float(np.linalg.norm(n, self.norm))
