"""Path following: the poses of a driven mechanism along its branch, up to a dead point, limit or end.

The inputs x (k of the joint coordinates) are given as functions u of one parameter s: an input value, a fraction of
the path, or time. Closed poses satisfy

    phi(t, q) = 0          rows of loops, constraints and drivers
    x(q) - u(s) = 0        inputs

and form a curve (q(s), s). With D the Jacobian of these rows by q, and A = [D, c] with the derivatives by s as an
additional column, in natural units:

* D has full rank: q is a smooth function of s, with q' = -D^+ c and q'' from the second derivatives of the rows. Points
  are found by Newton's method from the Taylor polynomial of degree two of the last one.
* D loses rank and A does not: the curve turns back in s. This is a *dead point*, beyond which the inputs cannot move.
  The curve is followed by arc length there, and the zero of its tangent's component along s is located.
* A loses rank: branches cross, a *change point*. The branch is smooth: it is continued on the other side, and poses in
  the gap are interpolated to degree five.

Second derivatives of rows by the motion alone are the even part of `gamma` in the speeds (see mobility), so that time
is constant where the parameter is not time.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from loopdyn.analysis.input_curve import AtParameter, CurvePlace, InputCurve
from loopdyn.analysis.measured_rows import MeasuredRows
from loopdyn.errors import LoopdynError, SingularityError
from loopdyn.loops.continuation import (
    PREDICTED,
    StepLength,
    along,
    close,
    follow,
    last_before,
    least_between,
    zero_between,
)
from loopdyn.system.system import State
from loopdyn.thresholds import AT_LIMIT, CANDIDATE, ROUNDING, STILL
from loopdyn.tree.functions import difference, increment

Array = NDArray[np.float64]
Inputs = Callable[[float], tuple[Array, Array, Array]]  # u, u' and u'' (k,) at a parameter

# Lengths are in natural units.
REACH = 0.1  # largest motion of any coordinate in one step
SAME_BRANCH = 0.1  # fraction of a step by which the prediction may be wrong, and
TURNED = 0.5  # fraction of the speeds by which predicted speeds may be
COARSE = 0.06  # fraction of a step that is tried, by halving, before the curve is followed by arc length
NEAR = 2e-3  # singular value of A below which a pose is too near to a crossing to distinguish the branches
WIDEST = 0.3  # distance over which a crossing is passed
ARC = 0.02  # step in arc length
MOST_ARCS = 400  # most such steps: a quarter of a closed curve that makes no progress in the parameter
NODES = (-3, -2, -1, 1, 2, 3)  # samples about a crossing, in steps that reach over ...
NODES_WITHIN = 0.8  # ... this fraction of the distance to the neighbours
DIPS = 3.0  # minima above this multiple of their drop from the neighbours do not reach zero
SAME_PLACE = 1e-7  # in units of the parameter: distance within which two crossings are the same
RESOLUTION = 1e-14  # accuracy of located events, in units of the parameter
SLACK = 1e-9  # error allowed in the prediction of a short step


@dataclass(frozen=True)
class CurvePoint:
    """Closed pose of the curve; derivatives are by the parameter, `x`, `v`, `a` are ordered as `Rows.labels`.

    `ratio` (labels, k) and `ratio2` (labels, k, k) are derivatives by the inputs, `quality` the smallest singular value
    of D.
    """

    s: float
    t: float
    q: Array
    x: Array  # NaN for speeds without a coordinate of their own
    v: Array
    a: Array
    u: Array
    ratio: Array
    ratio2: Array
    quality: float
    near: Array
    regular: bool = True


@dataclass(frozen=True)
class CurveEnd:
    """Point beyond which the curve could not be followed."""

    kind: Literal["dead point", "change point", "limit", "end of a curve", "tolerance", "left open", "lost"]
    s: float
    state: State
    near: Array
    label: str = ""  # coordinate at a limit
    value: float = 0.0  # ... and the limit
    reason: str = ""


@dataclass
class Follower:
    """Follower of the curve of poses of one system for given inputs."""

    rows: MeasuredRows
    labels: Sequence[str]  # of the inputs
    inputs: Inputs
    unit: float  # natural unit of the parameter
    time: Callable[[float], float]
    moving: bool  # whether the parameter is time
    held: Sequence[int] = ()  # idle speeds of the tree that are kept at zero
    limits: dict[str, tuple[float, float]] = field(default_factory=dict)
    # called at each step: returns why the path ends there, if rows that are left open exceed the tolerance or change
    watch: Callable[[CurvePoint], tuple[Literal["tolerance", "left open"], str] | None] = lambda p: None

    def __post_init__(self) -> None:
        system, all_labels = self.rows.system, self.rows.labels
        self.system, self.nv = system, system.nv
        self.index = [all_labels.index(label) for label in self.labels]
        self.units = system.speed_units
        measuring = self.rows.measuring
        cut_units = measuring.row_units[self.rows.measured]
        self.all_units = np.concatenate([self.units, cut_units])
        self.input_units = self.all_units[self.index]
        self.row_units = measuring.row_units
        self._tree = np.array([k for k, label in enumerate(system.speeds) if label in system.coordinates], int)
        self._coordinate = np.array([system.coordinates.index(system.speeds[k]) for k in self._tree], int)
        self._own_scale = self.units / self.row_units[self.rows.own, None]
        self._eye = np.eye(self.nv)

    # ------------------------------------------------------------------------------------------------- rows

    def coordinates(self, q: Array, phi: Array) -> Array:
        """All coordinates by label, from a pose and the rows there."""
        x = np.full(len(self.all_units), np.nan)
        x[self._tree] = q[self._coordinate]
        x[self.nv :] = phi[self.rows.measured]
        return x

    def gradients(self, J: Array) -> Array:
        """Derivatives (labels, nv) of all coordinates by the speeds."""
        return np.concatenate([self._eye, J[self.rows.measured]])

    def matrix(self, J: Array) -> Array:
        """D in natural units."""
        own = J[self.rows.own] * self._own_scale
        given = self.gradients(J)[self.index] * self.units / self.input_units[:, None]
        return np.concatenate([own, given, self._eye[list(self.held)]])

    def residual(self, phi: Array, x: Array, u: Array) -> Array:
        """Residuals of the rows of D in natural units."""
        own = phi[self.rows.own] / self.row_units[self.rows.own]
        return np.concatenate([own, (x[self.index] - u) / self.input_units, np.zeros(len(self.held))])

    def column(self, rate: Array, u1: Array) -> Array:
        """Derivatives of the residuals by the parameter, times its natural unit; `rate` is that at rest."""
        own, drift = np.zeros(len(self.rows.own)), np.zeros(len(self.index))
        if self.moving:
            own = rate[self.rows.own] / self.row_units[self.rows.own]
            drift = np.concatenate([np.zeros(self.nv), rate[self.rows.measured]])[self.index]
        return self.unit * np.concatenate([own, (drift - u1) / self.input_units, np.zeros(len(self.held))])

    def bend(self, t: float, q: Array, v: Array, near: Array) -> Array:
        """Right-hand side of all rows at acceleration level for the speeds v."""
        return self.rows(t, q, v, near)[3] if self.moving else self.even_bend(t, q, v, near)

    def even_bend(self, t: float, q: Array, v: Array, near: Array) -> Array:
        """Part of :meth:`bend` that is due to motion alone, even in the speeds."""
        if self.rows.steady:
            return self.rows(t, q, v, near)[3]
        rest = self.rows(t, q, np.zeros(self.nv), near)[3]
        result: Array = 0.5 * (self.rows(t, q, v, near)[3] + self.rows(t, q, -v, near)[3]) - rest
        return result

    # ----------------------------------------------------------------------------------------------- points

    def close(self, s: float, q: Array, near: Array) -> Array | None:
        """Closed pose next to q at the parameter s; None if Newton's method finds none."""
        found = close(AtParameter(self, s, near), q, PREDICTED)
        return found.y if found.closed else None

    def point(self, s: float, q: Array, near: Array) -> CurvePoint:
        """Point with all its derivatives at a closed pose."""
        t, (u, u1, u2) = self.time(s), self.inputs(s)
        phi, J, rate, _ = self.rows(t, q, np.zeros(self.nv), near)
        x = self.coordinates(q, phi)
        near = phi[self.rows.measured]
        U, sigma, Vt = np.linalg.svd(self.matrix(J), full_matrices=False)
        inverse = (Vt.T / np.maximum(sigma, np.finfo(float).tiny)) @ U.T * self.units[:, None]
        k, B, first = len(self.index), self.gradients(J), len(self.rows.own)
        v = -inverse @ self.column(rate, u1) / self.unit
        a = self._second(inverse, B, t, q, v, near, u2, self.bend)
        K = inverse[:, first : first + k] / self.input_units
        ratio2 = np.zeros((len(B), k, k))
        if k == 1 and not self.moving and u1[0] == 1.0 and u2[0] == 0.0:
            ratio2[:, 0, 0] = a
        else:
            flat = np.zeros(k)
            for i in range(k):
                ratio2[:, i, i] = self._second(inverse, B, t, q, K[:, i], near, flat, self.even_bend)
            for i in range(k):
                for j in range(i):
                    both = self._second(inverse, B, t, q, K[:, i] + K[:, j], near, flat, self.even_bend)
                    ratio2[:, i, j] = ratio2[:, j, i] = 0.5 * (both - ratio2[:, i, i] - ratio2[:, j, j])
        v_all = np.concatenate([v, self._rates(B, v, rate)])
        return CurvePoint(s, t, q, x, v_all, a, u, B @ K, ratio2, float(sigma[-1]), near)

    def _rates(self, B: Array, v: Array, rate: Array) -> Array:
        """Speeds of cut coordinates; `rate` is the part due to time alone."""
        moved: Array = B[self.nv :] @ v
        return moved + rate[self.rows.measured] if self.moving else moved

    def _second(
        self,
        inverse: Array,
        B: Array,
        t: float,
        q: Array,
        v: Array,
        near: Array,
        u2: Array,
        bend: Callable[[float, Array, Array, Array], Array],
    ) -> Array:
        """Accelerations of all coordinates for speeds v of the tree and accelerations u2 of the inputs."""
        gamma = bend(t, q, v, near)
        bias = np.concatenate([np.zeros(self.nv), gamma[self.rows.measured]])
        own = gamma[self.rows.own] / self.row_units[self.rows.own]
        right = np.concatenate([own, (u2 + bias[self.index]) / self.input_units, np.zeros(len(self.held))])
        result: Array = B @ (inverse @ right) - bias
        return result

    def step(self, p: CurvePoint, s: float) -> CurvePoint | None:
        """Point at s on the branch of p; None if that is not certain."""
        d = s - p.s
        v, a = p.v[: self.nv], p.a[: self.nv]
        xi = v * d + 0.5 * a * d * d
        guess = increment(self.system, p.q, xi)
        q = self.close(s, guess, p.near)
        if q is None:
            return None
        wrong = float(np.abs(difference(self.system, guess, q) / self.units).max(initial=0.0))
        way = float(np.abs(xi / self.units).max(initial=0.0))
        if wrong > SAME_BRANCH * way + SLACK:
            return None
        new = self.point(s, q, p.near)
        expected = p.ratio + p.ratio2 @ (new.u - p.u)  # by geometry alone, since motions in time start and stop
        size = float(np.abs(new.ratio * self.input_units / self.all_units[:, None]).max(initial=0.0))
        turned = np.abs((new.ratio - expected) * self.input_units / self.all_units[:, None]).max(initial=0.0)
        return new if turned <= TURNED * size else None

    # --------------------------------------------------------------------------------------------- the curve

    def follow(
        self, p: CurvePoint, targets: Sequence[float]
    ) -> tuple[list[CurvePoint], list[CurvePoint], CurveEnd | None]:
        """Points at the targets, regular points of the path, and its end if it did not reach the last target."""
        found: list[CurvePoint] = []
        path, ahead = [p], None  # ahead: the point after a crossing; targets before it are interpolated
        for target in targets:
            while True:
                base = path[-1]
                if ahead is not None and (target - base.s) * (ahead.s - base.s) < 0.0:
                    ahead = None  # back again
                if ahead is not None and abs(target - base.s) <= abs(ahead.s - base.s):
                    ends = {base.s: base, ahead.s: ahead}
                    found.append(ends[target] if target in ends else self.between(base, ahead, target))
                    break
                if ahead is not None:
                    path.append(ahead)
                    ahead = None
                    continue
                if base.s == target:
                    found.append(base)
                    break
                try:
                    new, ahead, end = self._towards(base, target)
                except SingularityError as error:
                    return found, path, self._end_of_rows(base, target, error)
                further = new or ahead
                if further is not None:
                    end = self._beyond_limit(base, further) or end
                if end is not None:
                    return found, path, end
                if new is not None:
                    path.append(new)
                    stop = self.watch(new)
                    if stop is not None:
                        state = State(new.t, new.q, np.zeros(self.nv))
                        return found, path, CurveEnd(stop[0], new.s, state, new.near, reason=stop[1])
        return found, path if ahead is None else [*path, ahead], None

    def _towards(self, p: CurvePoint, target: float) -> tuple[CurvePoint | None, CurvePoint | None, CurveEnd | None]:
        """One step: the point it leads to, the point after a crossing, or the end."""
        span = target - p.s
        speed = float(np.abs(p.v[: self.nv] / self.units).max(initial=0.0))
        share = min(1.0, REACH / (speed * abs(span))) if speed > 0.0 else 1.0
        step = StepLength(share, COARSE)
        while True:
            s = target if step.h >= 1.0 else p.s + step.h * span
            new = self.step(p, s)
            if new is not None and self._clear(new):
                return new, None, None
            if new is not None:
                return (None, *self._past_crossing(p, new, target))
            if not step.failed():
                break
        found, end = self._by_arc_length(p, target)
        return found, None, end

    def _end_of_rows(self, p: CurvePoint, target: float, error: SingularityError) -> CurveEnd:
        """Last point before rows become undefined, e.g. beyond the end of a curve, by bisection."""
        last = p

        def defined(s: float) -> bool:
            nonlocal last
            try:
                new = self.step(last, s)
            except SingularityError:
                new = None
            last = new or last
            return new is not None

        last_before(defined, p.s, target, RESOLUTION * max(self.unit, abs(p.s)))
        p = last
        reason = str(error).split(". ")[0]
        return CurveEnd("end of a curve", p.s, State(p.t, p.q, np.zeros(self.nv)), p.near, reason=reason)

    def _clear(self, p: CurvePoint) -> bool:
        """Whether branches are distinct at a point: A is far from losing rank, or the point is near a dead point."""
        return p.quality > NEAR or self.whole(p.s, p.q, p.near)[0] > NEAR

    def whole(self, s: float, q: Array, near: Array) -> tuple[float, Array]:
        """Smallest singular value of A, without that of its null vector, and this vector (nv + 1)."""
        A = InputCurve(self).evaluate(CurvePlace(q, s, near))[1]
        _, sigma, Vt = np.linalg.svd(A, full_matrices=True)
        return float(sigma[self.nv - 1]) if len(sigma) >= self.nv else 0.0, Vt[-1]

    def _past_crossing(
        self, p: CurvePoint, there: CurvePoint, target: float
    ) -> tuple[CurvePoint | None, CurveEnd | None]:
        """Point on the other side of a crossing of branches, on the branch of p."""
        sign = 1.0 if target > p.s else -1.0
        speed = float(np.abs(p.v[: self.nv] / self.units).max(initial=0.0))
        way = max(abs(there.s - p.s) * speed, ARC)
        while way < WIDEST:
            new = self.step(p, p.s + sign * way / speed)
            if new is not None and self._clear(new):
                return new, None
            way *= 1.5
        state = State(there.t, there.q, np.zeros(self.nv))
        reason = "beyond it the branches cannot be distinguished"
        return None, CurveEnd("change point", there.s, state, there.near, reason=reason)

    def between(self, p: CurvePoint, new: CurvePoint, s: float) -> CurvePoint:
        """Point between two points of a branch, by quintic polynomials; speeds are those of tree joints."""
        h = new.s - p.s
        z = (s - p.s) / h
        xi = np.concatenate([difference(self.system, p.q, new.q), new.near - p.near])
        c = _quintic(xi, p.v, new.v, p.a, new.a, h)
        x, v, a = _values(c, z, h)
        q = increment(self.system, p.q, x[: self.nv])
        near = p.near + x[self.nv :]
        phi = np.zeros(self.rows.measuring.nc)
        phi[self.rows.measured] = near
        ratio = (1 - z) * p.ratio + z * new.ratio
        ratio2 = (1 - z) * p.ratio2 + z * new.ratio2
        u, u1, u2 = self.inputs(s)
        if len(self.index) == 1 and u1[0] != 0.0 and not self.moving:
            ratio = v[:, None] / u1[0]
            ratio2 = ((a - ratio[:, 0] * u2[0]) / u1[0] ** 2)[:, None, None]
        quality = self._quality(s, q, near)
        return CurvePoint(s, self.time(s), q, self.coordinates(q, phi), v, a, u, ratio, ratio2, quality, near, False)

    def _quality(self, s: float, q: Array, near: Array) -> float:
        J = self.rows(self.time(s), q, np.zeros(self.nv), near)[1]
        return float(np.linalg.svd(self.matrix(J), compute_uv=False)[self.nv - 1])

    # ------------------------------------------------------------------------------------------- by arc length

    def _by_arc_length(self, p: CurvePoint, target: float) -> tuple[CurvePoint | None, CurveEnd | None]:
        """Follow the curve by arc length until the parameter turns back or has passed the target."""
        sign = 1.0 if target > p.s else -1.0
        z = np.append(self.unit * p.v[: self.nv] / self.units, 1.0)
        z *= sign / np.linalg.norm(z)
        y = CurvePlace(p.q, p.s, p.near)
        for h, y1, z1 in follow(InputCurve(self), y, z, ARC, MOST_ARCS):
            if z1[-1] * sign <= 0.0:
                return None, self._dead_point(y, z, h)
            y, z = y1, z1
            if (y.s - target) * sign >= 0.0:
                q = self.close(target, y.q, y.near)
                if q is None:
                    break
                return self.point(target, q, y.near), None
        rank, _ = self.whole(y.s, y.q, y.near)
        state = State(self.time(y.s), y.q, np.zeros(self.nv))
        return None, CurveEnd("change point" if rank < NEAR else "lost", y.s, state, y.near)

    def _dead_point(self, y: CurvePlace, z: Array, h: float) -> CurveEnd:
        """Dead point: zero of the tangent's component along the parameter, at an arc length between 0 and h."""

        def at(way: float) -> tuple[CurvePlace, Array]:
            found = along(InputCurve(self), y, z, way) if way > 0.0 else (y, z)
            if found is None:
                raise LoopdynError("a dead point was lost while it was located. Give more points near it.")
            return found

        there, _ = at(zero_between(lambda way: float(at(way)[1][-1]), 0.0, h, ROUNDING))
        return CurveEnd("dead point", there.s, State(self.time(there.s), there.q, np.zeros(self.nv)), there.near)

    # ------------------------------------------------------------------------------------------------- limits

    def _beyond_limit(self, p: CurvePoint, new: CurvePoint) -> CurveEnd | None:
        """End where a coordinate leaves its range between two points."""
        for label, (low, high) in self.limits.items():
            k = self.rows.labels.index(label)
            slack = AT_LIMIT * self.all_units[k]
            if low - slack <= new.x[k] <= high + slack:
                continue
            bound = low if new.x[k] < low else high

            def beyond(s: float, k: int = k, bound: float = bound) -> float:
                return float(self.at(p, new, s).x[k] - bound)

            if beyond(p.s) * beyond(new.s) >= 0.0:  # already beyond it before
                s = p.s
            else:
                s = zero_between(beyond, p.s, new.s, RESOLUTION * self.unit)
            there = self.at(p, new, s)
            return CurveEnd("limit", s, State(there.t, there.q, np.zeros(self.nv)), there.near, label, bound)
        return None

    def at(self, p: CurvePoint, new: CurvePoint, s: float) -> CurvePoint:
        """Closed point at s between two neighbours of the path; interpolated near a crossing."""
        if s in (p.s, new.s):
            return p if s == p.s else new
        guess = self.between(p, new, s)
        if guess.quality < NEAR:
            return guess
        q = self.close(s, guess.q, guess.near)
        return guess if q is None else self.point(s, q, guess.near)

    # ------------------------------------------------------------------------------------------------- events

    def crossings(self, path: Sequence[CurvePoint]) -> list[tuple[int, CurvePoint, int]]:
        """Poses at which D loses rank while the branch continues.

        Each comes with the index of the point before it and the number of loop rows that become dependent.
        """
        found: list[tuple[int, CurvePoint, int]] = []
        sigma = [p.quality for p in path]
        for i in range(1, len(path) - 1):
            if not sigma[i] <= min(sigma[i - 1], sigma[i + 1]) or path[i - 1].s == path[i + 1].s:
                continue
            falls = max(sigma[i - 1], sigma[i + 1]) - sigma[i]
            if sigma[i] > max(DIPS * falls, NEAR):
                continue
            there = self._lowest(path[i - 1], path[i], path[i + 1])
            again = bool(found) and i - found[-1][0] <= 2 and abs(there.s - found[-1][1].s) < SAME_PLACE * self.unit
            if there.quality < CANDIDATE and not again:
                before = i if (there.s - path[i].s) * (path[i + 1].s - path[i].s) >= 0.0 else i - 1
                found.append((before, there, self.lost_rows(there, path[i - 1])))
        return found

    def lost_rows(self, there: CurvePoint, regular: CurvePoint) -> int:
        """Number of loop rows that become dependent at a pose, compared with a regular one."""

        def rank(p: CurvePoint, zero: float) -> int:
            J = self.rows(p.t, p.q, np.zeros(self.nv), p.near)[1]
            own = J[self.rows.own] * self._own_scale
            return int(np.count_nonzero(np.linalg.svd(own, compute_uv=False) > zero)) if len(own) else 0

        return rank(regular, CANDIDATE) - rank(there, 10.0 * CANDIDATE)

    def _lowest(self, before: CurvePoint, middle: CurvePoint, after: CurvePoint) -> CurvePoint:
        """Point with the least smallest singular value between two others, on the polynomials through them."""

        def at(s: float) -> CurvePoint:
            one, other = (before, middle) if (s - middle.s) * (before.s - middle.s) > 0.0 else (middle, after)
            return self.between(one, other, s)

        low, high = sorted((before.s, after.s))
        lowest, _ = least_between(lambda s: at(s).quality, low, high, 1e-13 * max(self.unit, abs(middle.s)))
        best = min((at(lowest), middle), key=lambda p: p.quality)
        # With a sign the singular value passes smoothly through zero: the zero of a polynomial through it is located,
        # since its minimum is known only to the square root of rounding.
        h = NODES_WITHIN * min(best.s - low, high - best.s) / len(NODES)
        if best.quality > NEAR or h == 0.0:
            return best
        signed = [math.copysign(at(best.s + n * h).quality, n) for n in NODES]
        roots = np.polynomial.Polynomial.fit(NODES, signed, len(NODES) - 1, domain=[-1, 1]).roots()
        real = roots[np.abs(roots.imag) < 1e-9].real
        if not len(real):
            return best
        exact = at(best.s + h * float(real[np.argmin(np.abs(real))]))
        return exact if exact.quality < 2.0 * best.quality + CANDIDATE else best

    def turning_points(self, path: Sequence[CurvePoint]) -> list[tuple[int, CurvePoint, str]]:
        """Points at which coordinates reverse while the inputs move on: zeros of their derivatives, by path index."""
        by_input = len(self.index) == 1  # else by the parameter

        def rates(p: CurvePoint) -> Array:
            return p.ratio[:, 0] if by_input else p.v

        all_rates = np.array([rates(p) for p in path])
        size = np.abs(all_rates / self.all_units).max(initial=0.0)
        found: list[tuple[int, CurvePoint, str]] = []
        for k, label in enumerate(self.rows.labels):
            if k in self.index or np.isnan(path[0].x[k]):
                continue
            column = all_rates[:, k]
            signs = np.where(np.abs(column) <= STILL * size * self.all_units[k], 0.0, np.sign(column))
            moving = np.flatnonzero(signs).tolist()
            if moving and moving[0] == 1 and path[0].regular:  # the path begins or ends in one
                found.append((0, path[0], label))
            if moving and moving[-1] == len(path) - 2 and path[-1].regular:
                found.append((len(path) - 1, path[-1], label))
            for i, j in itertools.pairwise(moving):
                if signs[i] == signs[j] or j - i > 2 or np.ptp([path[n].s for n in (i, j)]) == 0.0:
                    continue
                p, new = path[i], path[j]
                if not (p.regular and new.regular):
                    continue
                if j - i == 2:
                    found.append((i + 1, path[i + 1], label))
                    continue

                def rate(s: float, k: int = k, p: CurvePoint = p, new: CurvePoint = new) -> float:
                    return float(rates(self.at(p, new, s))[k])

                s = zero_between(rate, p.s, new.s, RESOLUTION * self.unit)
                found.append((i, self.at(p, new, s), label))
        return found


def _quintic(xi: Array, v0: Array, v1: Array, a0: Array, a1: Array, h: float) -> Array:
    """Quintic coefficients (6, n) in z in [0, 1], from 0 to xi, with these derivatives by s = h z at both ends."""
    b = np.array([xi - h * v0 - h * h / 2 * a0, h * (v1 - v0 - h * a0), h * h * (a1 - a0)])
    c = np.array([[10.0, -4.0, 0.5], [-15.0, 7.0, -1.0], [6.0, -3.0, 0.5]]) @ b
    return np.vstack([np.zeros_like(xi), h * v0, h * h / 2 * a0, c])


def _values(c: Array, z: float, h: float) -> tuple[Array, Array, Array]:
    """Value, first and second derivative by s of a quintic of :func:`_quintic`."""
    n = np.arange(6)
    powers = z**n
    first = np.append(0.0, n[1:] * z ** n[:-1])
    second = np.concatenate([np.zeros(2), n[2:] * n[1:-1] * z ** n[:-2]])
    return powers @ c, first @ c / h, second @ c / h**2
