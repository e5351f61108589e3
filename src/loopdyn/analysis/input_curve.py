"""Equations for the poses of a driven mechanism: at a fixed parameter, and as a curve of poses and parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from loopdyn.thresholds import CANDIDATE
from loopdyn.tree.functions import difference, increment

if TYPE_CHECKING:
    from loopdyn.analysis.path_following import Follower

Array = NDArray[np.float64]


class AtParameter:
    """Equations of a pose at a fixed parameter."""

    def __init__(self, follower: Follower, s: float, near: Array):
        self.follower, self.near = follower, near
        self.t, self.u = follower.time(s), follower.inputs(s)[0]

    def evaluate(self, q: Array) -> tuple[Array, Array]:
        """Residuals, and D."""
        f = self.follower
        phi, J, _, _ = f.rows(self.t, q, np.zeros(f.nv), self.near)
        return f.residual(phi, f.coordinates(q, phi), self.u), f.matrix(J)

    def correction(self, q: Array, r: Array, D: Array) -> Array:
        """Smallest motion that closes the linearised equations."""
        return np.asarray(np.linalg.lstsq(D, -r, rcond=None)[0], float)

    def moved(self, q: Array, x: Array) -> Array:
        """Pose moved by x."""
        return increment(self.follower.system, q, self.follower.units * x)


class CurvePlace(NamedTuple):
    """Pose and parameter; angles of cut joints are taken nearest to their previous values."""

    q: Array
    s: float
    near: Array


class InputCurve:
    """Curve of poses and parameters, in nv + 1 dimensions."""

    def __init__(self, follower: Follower):
        self.follower = follower

    def evaluate(self, y: CurvePlace) -> tuple[Array, Array]:
        """Residuals, and A."""
        f = self.follower
        t, (u, u1, _) = f.time(y.s), f.inputs(y.s)
        phi, J, rate, _ = f.rows(t, y.q, np.zeros(f.nv), y.near)
        r = f.residual(phi, f.coordinates(y.q, phi), u)
        return r, np.column_stack([f.matrix(J), f.column(rate, u1)])

    def correction(self, y: CurvePlace, r: Array, A: Array) -> Array:
        """Smallest motion, orthogonal to the curve, that closes the linearised equations."""
        return np.asarray(np.linalg.lstsq(A, -r, rcond=None)[0], float)

    def moved(self, y: CurvePlace, x: Array) -> CurvePlace:
        """Place moved by x."""
        f = self.follower
        return CurvePlace(increment(f.system, y.q, x[:-1] * f.units), y.s + float(x[-1]) * f.unit, y.near)

    def difference(self, y: CurvePlace, other: CurvePlace) -> Array:
        """Motion from one place to another."""
        f = self.follower
        return np.append(difference(f.system, y.q, other.q) / f.units, (other.s - y.s) / f.unit)

    def settled(self, y: CurvePlace) -> CurvePlace:
        """Closed place, with the current angles of cut joints."""
        f = self.follower
        phi = f.rows(f.time(y.s), y.q, np.zeros(f.nv), y.near)[0]
        return CurvePlace(y.q, y.s, phi[f.rows.measured])

    def tangent(self, y: CurvePlace) -> Array | None:
        """Null vector of A; None if A loses rank."""
        rank, z = self.follower.whole(y.s, y.q, y.near)
        return None if rank < CANDIDATE else z
