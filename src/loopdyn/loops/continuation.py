"""Closing loops and following curves of poses: the numerical methods, once for all who use them.

Everything here is in natural units (angles in rad, lengths relative to the size of the mechanism) and knows no
mechanism: a caller brings its equations (:class:`Equations`, :class:`Curve`) and judges what is found.

Close
    Newton's method with the equations' own smallest correction. A pose below :data:`CLOSED` is improved as long as a
    step halves the residual: at a singular pose the residual is the square of the distance to it. From a predicted pose
    the method is not damped: it converges in a few steps or the step along the curve was too long, and a shorter one
    costs less than damping. From far away steps are limited and halved until the residual falls.
Predict and control
    A step along a curve leads to the closed pose next to a prediction. It counts if the prediction was good: then the
    pose is on the branch that was followed. Otherwise a shorter step is tried, and after success a longer one.
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
D = TypeVar("D")  # what an evaluation leaves for the correction: the Jacobian

HALVED = 0.5  # share of the residual that a step may leave at a closed pose, or it was the last one
DESCENT = 1e-4  # share of the fall that is predicted by which a damped step must lower the residual
LEAST_SHARE = 1e-2  # of a damped step that is tried before it counts as leading nowhere
NO_BETTER = 1e-10  # residual that damped steps cannot lower any more, but which is closed: rounding of large mechanisms
STALLED, STALLED_AT = 8, 0.9  # damped steps in which the residual must fall to this share, else the pose is a least gap
# On a circle of curvature k a step h along the tangent needs a correction of k h^2 / 2, and the tangent turns by k h.
# Both limits stand for k h = 0.4 or so, a fifteenth of the circle.
CORRECTION, TURN = 0.2, 0.9  # share of a step by which closing may move its end, and cosine between its tangents
GROWTH, SHRINKAGE = 1.5, 0.5  # of a step after one that counted, and after one that did not
FINEST = 1e-6  # share of the longest step at which a curve counts as lost: its bends are then too sharp to be followed
RESOLUTION = 8.9e-16  # relative, of a root: the least that Brent's method takes


class Equations(Protocol[Y, D]):
    """Equations that a closed pose satisfies."""

    def evaluate(self, y: Y) -> tuple[Array, D]:
        """Residuals, and what :meth:`correction` needs."""

    def correction(self, y: Y, r: Array, data: D) -> Array:
        """The smallest motion that brings the linearised residuals to zero."""

    def moved(self, y: Y, x: Array) -> Y:
        """The pose moved by x."""


def largest(r: Array) -> float:
    """The largest residual."""
    return float(np.abs(r).max(initial=0.0))


def euclidean(r: Array) -> float:
    """The root of the sum of squares, for poses of least residual."""
    return float(np.linalg.norm(r))


@dataclass(frozen=True)
class Rule:
    """How poses are closed: which steps, and when the method ends or gives up."""

    steps: int  # at most
    longest: float = math.inf  # motion of any coordinate in one step
    damped: bool = False  # whether steps are halved until the residual falls
    falls: float | None = None  # a step that leaves this share of the residual or more is undone and was the last one
    enough: float = ROUNDING  # residual that is not worth another step
    closed: float = CLOSED  # residual of a pose that is closed
    diverged: float = math.inf  # residual after which the method is given up
    norm: Callable[[Array], float] = largest


PREDICTED = Rule(steps=12, diverged=10.0)  # from a prediction: 6 steps double the digits from 0.1 to rounding


@dataclass(frozen=True)
class Closure(Generic[Y]):
    """The pose at which Newton's method ended, its residual, and whether it is closed."""

    y: Y
    size: float
    closed: bool


def close(equations: Equations[Y, D], y: Y, rule: Rule) -> Closure[Y]:
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
                return Closure(y, size, size < rule.closed)
            if not rule.damped or new < (1.0 - DESCENT * share) * size:
                break
            share *= 0.5
            if share < LEAST_SHARE:
                return Closure(y, size, size < NO_BETTER)
        y, r, data = trial, r1, data1
        sizes.append(new)
        if rule.damped and len(sizes) > STALLED and new > STALLED_AT * sizes[-STALLED - 1]:
            break
    return Closure(y, sizes[-1], sizes[-1] < rule.closed)


class Curve(Equations[Y, D], Protocol[Y, D]):
    """A curve of closed poses: one equation less than unknowns."""

    def settled(self, y: Y) -> Y:
        """A closed pose, with what the caller keeps about it brought up to date."""

    def tangent(self, y: Y) -> Array | None:
        """Tangent of either sense, whose norm is the unit of length; None where it is not unique."""

    def difference(self, y: Y, other: Y) -> Array:
        """The motion from one pose to another."""


class StepLength:
    """Length h of the next step: grows after steps that count, shrinks after those that do not.

    A curve is lost where a step fails that is `finest` times the longest one.
    """

    def __init__(self, longest: float, finest: float = FINEST, first: float | None = None):
        self.h = longest if first is None else first
        self.longest, self.finest = longest, finest

    def limit(self, longest: float) -> None:
        """Let no step be longer."""
        self.longest = longest
        self.h = min(self.h, longest)

    def counted(self) -> None:
        """The last step counts: the next may be longer."""
        self.h = min(GROWTH * self.h, self.longest)

    def failed(self) -> bool:
        """The last step does not count; whether a shorter one is worth a try."""
        self.h *= SHRINKAGE
        return self.h >= self.finest * self.longest


def along(curve: Curve[Y, D], y: Y, z: Array, h: float) -> tuple[Y, Array] | None:
    """The point of the curve at the length h along the tangent z, with the tangent there; None if that is uncertain."""
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


def follow(curve: Curve[Y, D], y: Y, z: Array, longest: float, most: int) -> Iterator[tuple[float, Y, Array]]:
    """Points one after another, each with the length of the step to it and its tangent, until the curve is lost."""
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
    """Where a function with a change of sign between a and b vanishes, to `fine` or rounding."""
    from scipy.optimize import brentq

    return float(brentq(f, *sorted((a, b)), xtol=fine, rtol=RESOLUTION))


def least_between(f: Callable[[float], float], a: float, b: float, fine: float) -> tuple[float, float]:
    """Where a function is least between a and b, and its value there."""
    from scipy.optimize import minimize_scalar

    found = minimize_scalar(f, bounds=tuple(sorted((a, b))), method="bounded", options={"xatol": fine})
    return float(found.x), float(found.fun)


def last_before(holds: Callable[[float], bool], a: float, b: float, fine: float) -> float:
    """The last place between a, where a condition holds, and b, where it does not, to `fine`."""
    while abs(b - a) > fine:
        middle = 0.5 * (a + b)
        a, b = (middle, b) if holds(middle) else (a, middle)
    return a
