"""Closing loops and following curves of poses: the numerical methods, shared by all analyses.

Everything here is in natural units (angles in rad, lengths relative to the size of the mechanism) and knows no
mechanism: the caller gives its equations (:class:`ResidualEquations`, :class:`SolutionCurve`) and judges the result.

Close
    Newton's method with the equations' own smallest correction. A pose below :data:`CLOSED` is improved as long as a
    step halves the residual: at a singular pose the residual is the square of the distance to it. From a predicted pose
    the method is not damped: it converges in a few steps or the step along the curve was too long, and a shorter one
    costs less than damping. From far away steps are limited and halved until the residual falls.
Predict and control
    A step along a curve leads to the closed pose next to a prediction. It is accepted if the prediction was good: then
    the pose is on the branch that was followed. A shorter step follows a rejected one, a longer step an accepted one.
Locate
    Zeros (:func:`zero_between`), minima (:func:`least_between`) and ends (:func:`last_before`) between two points.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from loopdyn.thresholds import CLOSED, ROUNDING

Array = NDArray[np.float64]
Y = TypeVar("Y")  # a pose, or a pose and a parameter
D = TypeVar("D")  # data of an evaluation that the correction needs: the Jacobian

HALVED = 0.5  # the iteration at a closed pose ends once a step leaves more than this fraction of the residual
DESCENT = 1e-4  # fraction of the predicted decrease of the residual that a damped step must reach
LEAST_SHARE = 1e-2  # smallest fraction of a damped step that is tried before the search is given up
NO_BETTER = 1e-10  # closed, though damped steps cannot lower the residual any more: rounding of large mechanisms
STALLED, STALLED_AT = 8, 0.9  # within so many damped steps the residual must fall to this share, else it is a minimum
# On a circle of curvature k a step h along the tangent needs a correction of k h^2 / 2, and the tangent turns by k h.
# Both limits stand for k h = 0.4 or so, a fifteenth of the circle.
CORRECTION, TURN = 0.2, 0.9  # largest correction as a fraction of the step; smallest cosine between its end tangents
GROWTH, SHRINKAGE = 1.5, 0.5  # factor of the step length after an accepted step, and after a rejected one
FINEST = 1e-6  # fraction of the longest step below which the curve is lost: it bends too sharply to be followed
RESOLUTION = 8.9e-16  # relative tolerance of a root: the smallest that Brent's method accepts


class ResidualEquations(Protocol[Y, D]):
    """Equations that a closed pose satisfies."""

    def evaluate(self, y: Y) -> tuple[Array, D]:
        """Residuals, and the data that :meth:`correction` needs."""

    def correction(self, y: Y, r: Array, data: D) -> Array:
        """The smallest motion that brings the linearised residuals to zero."""

    def moved(self, y: Y, x: Array) -> Y:
        """The pose moved by x."""


def largest(r: Array) -> float:
    """The largest residual."""
    return float(np.abs(r).max(initial=0.0))


def euclidean(r: Array) -> float:
    """Euclidean norm, for poses of least residual."""
    return float(np.linalg.norm(r))


@dataclass(frozen=True)
class Rule:
    """Settings of Newton's method: steps allowed, and when it ends or gives up."""

    steps: int  # largest number of steps
    longest: float = math.inf  # largest motion of any coordinate in one step
    damped: bool = False  # whether steps are halved until the residual falls
    falls: float | None = None  # a step that leaves this fraction of the residual or more is undone; the method ends
    enough: float = ROUNDING  # residual at which the method ends
    closed: float = CLOSED  # largest residual of a closed pose
    diverged: float = math.inf  # residual above which the method gives up
    norm: Callable[[Array], float] = largest


PREDICTED = Rule(steps=12, diverged=10.0)  # from a prediction: 6 steps double the digits from 0.1 to rounding


@dataclass(frozen=True)
class Closed(Generic[Y]):
    """The pose at which Newton's method ended, its residual, and whether it is closed."""

    y: Y
    size: float
    closed: bool


def close(equations: ResidualEquations[Y, D], y: Y, rule: Rule) -> Closed[Y]:
    """The closed pose next to y, or the best one found."""
    r, data = equations.evaluate(y)
    sizes = [rule.norm(r)]
    for _ in range(rule.steps):
        size = sizes[-1]
        if size <= rule.enough or not math.isfinite(size) or size > max(rule.diverged, sizes[0]):
            break
        x = equations.correction(y, r, data)
        x = x * min(1.0, rule.longest / max(largest(x), 1e-300))
        share = 1.0
        while True:
            trial = equations.moved(y, share * x)
            r1, data1 = equations.evaluate(trial)
            new = rule.norm(r1)
            useless = rule.falls is not None and not new < rule.falls * size
            if useless or (size < rule.closed and new > HALVED * size):
                return Closed(y, size, size < rule.closed)
            if not rule.damped or new < (1.0 - DESCENT * share) * size:
                break
            share *= 0.5
            if share < LEAST_SHARE:
                return Closed(y, size, size < NO_BETTER)
        y, r, data = trial, r1, data1
        sizes.append(new)
        if rule.damped and len(sizes) > STALLED and new > STALLED_AT * sizes[-STALLED - 1]:
            break
    return Closed(y, sizes[-1], sizes[-1] < rule.closed)


class SolutionCurve(ResidualEquations[Y, D], Protocol[Y, D]):
    """A curve of closed poses: one equation less than unknowns."""

    def settled(self, y: Y) -> Y:
        """The closed pose, with the caller's own data about it brought up to date."""

    def tangent(self, y: Y) -> Array | None:
        """Tangent of either sense, whose norm is the unit of arc length; None where it is not unique."""

    def difference(self, y: Y, other: Y) -> Array:
        """The motion from one pose to another."""


class StepLength:
    """Length h of the next step: grows after accepted steps, shrinks after rejected ones.

    The curve is lost if a step fails that is shorter than `finest` times the longest one.
    """

    def __init__(self, longest: float, finest: float = FINEST, first: float | None = None):
        self.h = longest if first is None else first
        self.longest, self.finest = longest, finest

    def limit(self, longest: float) -> None:
        """Limit the length of all further steps."""
        self.longest = longest
        self.h = min(self.h, longest)

    def counted(self) -> None:
        """Accept the last step: the next may be longer."""
        self.h = min(GROWTH * self.h, self.longest)

    def failed(self) -> bool:
        """Reject the last step; returns whether a shorter one can be tried."""
        self.h *= SHRINKAGE
        return self.h >= self.finest * self.longest


def along(curve: SolutionCurve[Y, D], y: Y, z: Array, h: float) -> tuple[Y, Array] | None:
    """Point of the curve one step of length h along the tangent z, and its tangent; None if the prediction was poor."""
    predicted = curve.moved(y, h * z)
    found = close(curve, predicted, PREDICTED)
    there = curve.settled(found.y) if found.closed else None
    if there is None or largest(curve.difference(predicted, there)) > CORRECTION * h:
        return None
    z1 = curve.tangent(there)
    if z1 is None:
        return None
    cosine = float(z1 @ z) / float(np.linalg.norm(z1) * np.linalg.norm(z))
    if abs(cosine) < TURN:
        return None
    return there, z1 if cosine > 0.0 else -z1


def follow(curve: SolutionCurve[Y, D], y: Y, z: Array, longest: float, most: int) -> Iterator[tuple[float, Y, Array]]:
    """Successive points, each with the length of the step to it and its tangent, until the curve is lost."""
    step = StepLength(longest)
    for _ in range(most):
        found = along(curve, y, z, step.h)
        if found is None:
            if not step.failed():
                return
            continue
        y, z = found
        yield step.h, y, z
        step.counted()


def zero_between(f: Callable[[float], float], a: float, b: float, fine: float) -> float:
    """Zero of a function that changes sign between a and b, to `fine` or rounding."""
    from scipy.optimize import brentq

    return float(brentq(f, *sorted((a, b)), xtol=fine, rtol=RESOLUTION))


def least_between(f: Callable[[float], float], a: float, b: float, fine: float) -> tuple[float, float]:
    """Minimum of a function between a and b: its place and its value."""
    from scipy.optimize import minimize_scalar

    found = minimize_scalar(f, bounds=tuple(sorted((a, b))), method="bounded", options={"xatol": fine})
    return float(found.x), float(found.fun)


def last_before(holds: Callable[[float], bool], a: float, b: float, fine: float) -> float:
    """Last place where a condition holds, between a, where it does, and b, where it does not; to `fine`."""
    while abs(b - a) > fine:
        middle = 0.5 * (a + b)
        a, b = (middle, b) if holds(middle) else (a, middle)
    return a
