"""Sampled curve of the poses of a mechanism with one degree of freedom, and roots of functions along it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from loopdyn.analysis.assembly import assembled
from loopdyn.analysis.assembly_speeds import speed_rows
from loopdyn.analysis.statics import BALANCED, Statics
from loopdyn.errors import ConvergenceError
from loopdyn.loops.continuation import along, follow, last_before, least_between, zero_between
from loopdyn.loops.rank import scaled
from loopdyn.thresholds import SAME_POSE
from loopdyn.tree.functions import apart, constraint_equations, difference, increment
from loopdyn.tree.joint_readings import coordinate

Array = NDArray[np.float64]
ALONG = 0.04  # step along the curve of poses
MOST = 20_000  # most steps along the curve
RESOLUTION = 1e-15  # fraction of a step to which the end of the range is located: rounding
FEW = 4  # steps before which the curve cannot have returned to its start ...
CLOSE_BY, SINGULAR = 0.1, 1e-6  # ratio of singular values: of a sample that is examined, and of a singular pose
OVERLAP = 3  # ... and number of steps added then, so that no gap remains
TOUCHING = 1e-9  # fraction of the largest g on the curve below which a minimum of |g| counts as zero
ARGUMENT = 1e-13  # fraction of a step to which a root on the curve is located
MINIMUM = 1e-9  # fraction of a step to which a minimum is located: the square root of rounding


# ------------------------------------------------------------------------------------ along the curve of poses


class SampledCurve:
    """All poses of a mechanism with one degree of freedom reachable from a start within a range of a coordinate."""

    def __init__(self, statics: Statics, label: str, span: tuple[float, float]):
        self.statics, self.label, self.span = statics, label, span
        q = self._into_range()
        n = statics.poses.motions(q)[0][:, 0]
        if (speed_rows(statics.system, statics.state(q), [label]) @ (statics.units * n))[0] < 0.0:
            n = -n
        self.lost: list[float] = []  # values of the coordinate beyond which the curve could not be followed
        ahead, closed = self._march(q, n)
        behind: list[tuple[Array, Array]] = []
        if not closed:
            behind, _ = self._march(q, -n)
        # poses and directions in which the next one lies
        self.points = [(p, -x) for p, x in reversed(behind[1:])] + ahead

    def value(self, q: Array) -> float:
        """Value of the coordinate, without jumps by full turns for tree joints."""
        return coordinate(self.statics.system, self.statics.state(q), self.label)

    def _into_range(self) -> Array:
        low, high = self.span
        x = self.value(self.statics.start)
        if low <= x <= high:
            return self.statics.start
        s = self.statics
        nearer = low if abs(x - low) < abs(x - high) else high
        return assembled(s.system, q={self.label: nearer}, near=s.state(s.start), t=s.t).q

    def _march(self, q: Array, n: Array) -> tuple[list[tuple[Array, Array]], bool]:
        """Successive poses until the range is left or the start is reached again."""
        low, high = self.span
        points, overlap = [(q, n)], 0
        for h, there, m in follow(self.statics.poses, q, n, ALONG, MOST):
            if not low <= self.value(there) <= high:
                share = self._at_bound(*points[-1], h)
                last = self.step(*points[-1], share * h)
                if last is not None and share > 0.0:
                    points.append(last)
                return points, False
            points.append((there, m))
            if overlap or (len(points) > FEW and self._again(there, q)):
                overlap += 1
                if overlap == OVERLAP:
                    return points, True
        self.lost.append(self.value(points[-1][0]))
        return points, False

    def singular(self) -> list[float]:
        """Values of the coordinate at singular poses, where other branches cross the curve."""
        s = self.statics
        if not s.poses.count:
            return []

        def least(q: Array) -> float:
            values = np.linalg.svd(scaled(s.system, constraint_equations(s.system, s.state(q))[1]), compute_uv=False)
            return float(values[s.poses.count - 1] / values[0])

        sizes = [least(q) for q, _ in self.points]
        found: list[float] = []
        for k in range(1, len(sizes) - 1):
            if not (sizes[k - 1] >= sizes[k] <= sizes[k + 1] and sizes[k] < CLOSE_BY):
                continue
            for n in (k - 1, k):
                (q, x), h = self.points[n], self._length(n)

                def of(share: float, q: Array = q, x: Array = x, h: float = h) -> float:
                    end = self.step(q, x, share * h)
                    return np.inf if end is None else least(end[0])

                share, size = least_between(of, 0.0, 1.0, MINIMUM)
                if min(size, sizes[k]) < SINGULAR:
                    at = self.step(q, x, share * h)
                    found.append(self.value(q if at is None else at[0]))
                    break
        return found

    def _again(self, q: Array, first: Array) -> bool:
        """Whether q is next to the first pose, modulo full turns on which no force depends."""
        s = self.statics
        turns = np.where(s.system.turning, np.round(difference(s.system, first, q) / (2.0 * np.pi)), 0.0)
        wound = increment(s.system, first, 2.0 * np.pi * turns)
        if s.system.counted:
            own = slice(s.system.nq - len(s.system.counted), None)
            wound[own] = first[own] + 2.0 * np.pi * np.round((q[own] - first[own]) / (2.0 * np.pi))
        return apart(s.system, q, first) <= 0.6 * ALONG and self._as_loaded(wound, first)

    def step(self, q: Array, n: Array, h: float) -> tuple[Array, Array] | None:
        """Pose at a distance h along n and the direction there; None if it is not near the tangent."""
        return along(self.statics.poses, q, n, h)

    def _at_bound(self, q: Array, n: Array, h: float) -> float:
        """Fraction of a step out of the range at which the range ends, just inside it."""
        low, high = self.span

        def inside(share: float) -> bool:
            end = self.step(q, n, share * h)
            return end is not None and low <= self.value(end[0]) <= high

        return last_before(inside, 0.0, 1.0, RESOLUTION)

    def roots(self, function: Callable[[Array, Array], float]) -> list[Array]:
        """Poses at which a function of pose and direction vanishes: sign changes, and double roots."""
        values = np.array([function(q, n) for q, n in self.points])
        largest = float(np.abs(values).max(initial=0.0))
        found: list[Array] = []

        def between(k: int) -> Callable[[float], float]:
            q, n = self.points[k]
            h = self._length(k)

            def of(share: float) -> float:
                end = (q, n) if share == 0.0 else self.step(q, n, share * h)
                if end is None:  # cannot happen within a step that succeeded
                    raise ConvergenceError(f"the curve of poses was lost at {self.label} = {self.value(q):.6g}.")
                return function(*end)

            return of

        def pose(k: int, share: float) -> Array:
            q, n = self.points[k]
            end = None if share == 0.0 else self.step(q, n, share * self._length(k))
            return q if end is None else end[0]

        for k in range(len(values) - 1):
            a, b = values[k], values[k + 1]
            if abs(a) <= BALANCED * largest:
                found.append(self.points[k][0])
            elif a * b < 0.0 and abs(b) > BALANCED * largest:
                found.append(pose(k, zero_between(between(k), 0.0, 1.0, ARGUMENT)))
            elif k > 0 and a * values[k - 1] > 0.0 and abs(values[k - 1]) >= abs(a) <= abs(b):
                found += self._touching(k, float(np.sign(a)), largest, between, pose)
        if len(values) and abs(values[-1]) <= BALANCED * largest:
            found.append(self.points[-1][0])
        distinct: list[Array] = []
        for q in found:
            if not any(apart(self.statics.system, q, p) <= SAME_POSE and self._as_loaded(q, p) for p in distinct):
                distinct.append(q)
        return distinct

    def _length(self, k: int) -> float:
        """Step from point k to the next: the component along the tangent."""
        s = self.statics
        (q, n), (p, _) = self.points[k], self.points[k + 1]
        return float(n @ (difference(s.system, q, p) / s.units))

    def _touching(
        self,
        k: int,
        sign: float,
        largest: float,
        between: Callable[[int], Callable[[float], float]],
        pose: Callable[[int, float], Array],
    ) -> list[Array]:
        """Roots near a sample where |function| has a minimum without a sign change: none, one or two."""
        found: list[Array] = []
        for n in (k - 1, k):
            of = between(n)

            def raised(share: float, of: Callable[[float], float] = of) -> float:
                return sign * of(share)

            share, least = least_between(raised, 0.0, 1.0, MINIMUM)
            if least < -TOUCHING * largest:
                found += [pose(n, zero_between(of, *ends, ARGUMENT)) for ends in ((0.0, share), (share, 1.0))]
            elif least <= TOUCHING * largest:
                found.append(pose(n, share))
        return found

    def _as_loaded(self, q: Array, p: Array) -> bool:
        """Whether forces are equal: that of a torsion spring depends on its full turns."""
        a, b = self.statics.loads(q), self.statics.loads(p)
        return bool(np.allclose(a, b, rtol=SAME_POSE, atol=SAME_POSE * self.statics.scale(q), equal_nan=True))
