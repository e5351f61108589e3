"""Closing, following and locating on curves in closed form: what `loops/continuation.py` promises its callers."""

from __future__ import annotations

import math

import numpy as np
import pytest

from loopdyn.loops.continuation import (
    PREDICTED,
    Rule,
    StepLength,
    along,
    close,
    euclidean,
    follow,
    last_before,
    least_between,
    zero_between,
)
from loopdyn.thresholds import CLOSED


class Equation:
    """f(y) = 0 by its smallest correction."""

    def __init__(self, f, gradient):
        self.f, self.gradient = f, gradient

    def evaluate(self, y):
        return np.atleast_1d(self.f(y)), np.atleast_2d(self.gradient(y))

    def correction(self, y, r, J):
        return np.linalg.lstsq(J, -r, rcond=None)[0]

    def moved(self, y, x):
        return y + x


class PlaneCurve(Equation):
    """A curve f(x, y) = 0."""

    def difference(self, y, other):
        return other - y

    def settled(self, y):
        return y

    def tangent(self, y):
        gx, gy = self.gradient(y)
        size = math.hypot(gx, gy)
        return np.array([-gy, gx]) / size if size > 1e-9 else None


CIRCLE = PlaneCurve(lambda y: y @ y - 1.0, lambda y: 2.0 * y)


def test_a_pose_is_closed_to_rounding():
    found = close(Equation(lambda y: y**2 - 2.0, lambda y: 2.0 * y), np.array([1.4]), PREDICTED)
    assert found.closed
    assert abs(found.y[0] - math.sqrt(2.0)) < 1e-15


def test_a_double_root_is_approached_as_long_as_the_residual_halves():
    # each step halves the distance: a residual of 1e-12 alone would leave 1e-6
    found = close(Equation(lambda y: y**2, lambda y: 2.0 * y), np.array([0.1]), Rule(steps=60))
    assert found.closed
    assert abs(found.y[0]) < 3e-8


def test_damped_steps_converge_where_full_steps_run_away():
    arctan = Equation(np.arctan, lambda y: 1.0 / (1.0 + y**2))  # full steps diverge from |y| > 1.392
    assert not close(arctan, np.array([3.0]), Rule(steps=5)).closed
    found = close(arctan, np.array([3.0]), Rule(steps=40, damped=True))
    assert found.closed
    assert abs(found.y[0]) < CLOSED


def test_equations_without_a_solution_end_in_a_gap():
    found = close(Equation(lambda y: y**2 + 1.0, lambda y: 2.0 * y), np.array([0.5]), Rule(steps=40, damped=True))
    assert not found.closed
    assert found.size == pytest.approx(1.0, abs=1e-3)


def test_a_start_at_which_equations_are_not_defined_is_not_closed():
    found = close(Equation(lambda y: np.array([np.inf]), lambda y: np.eye(1)), np.zeros(1), Rule(steps=5, damped=True))
    assert not found.closed
    assert found.size == math.inf


def test_contradicting_equations_end_at_the_least_residual():
    # y = 0 and y = 1: least squares at 1/2
    both = Equation(lambda y: np.array([y[0], y[0] - 1.0]), lambda y: np.ones((2, 1)))
    found = close(both, np.array([3.0]), Rule(steps=10, enough=0.0, closed=0.0, falls=0.99, norm=euclidean))
    assert found.y[0] == pytest.approx(0.5, abs=1e-15)
    assert not found.closed


def test_a_step_along_a_circle_ends_on_it_with_the_tangent_there():
    y, z = along(CIRCLE, np.array([1.0, 0.0]), np.array([0.0, 1.0]), 0.1)
    assert abs(y @ y - 1.0) < 1e-15
    assert np.allclose(z, [-y[1], y[0]], atol=1e-15)


def test_a_step_beyond_a_sharp_bend_does_not_count():
    assert along(CIRCLE, np.array([1.0, 0.0]), np.array([0.0, 1.0]), 1.0) is None


def test_a_circle_is_followed_all_the_way_round():
    y, z, way = np.array([1.0, 0.0]), np.array([0.0, 1.0]), 0.0
    for _, p, _ in follow(CIRCLE, y, z, 0.05, 126):
        way += math.atan2(y[0] * p[1] - y[1] * p[0], y @ p)
        y = p
    # 126 steps, each of the angle whose tangent is 0.05
    assert way == pytest.approx(126 * math.atan(0.05), abs=1e-10)
    assert way > 2.0 * math.pi - 0.05


def test_a_curve_that_ends_in_a_cusp_is_lost_there():
    # y^2 = x^3 from x = 1 down to the cusp at the origin, where the gradient vanishes and the tangent turns round
    cusp = PlaneCurve(lambda y: y[1] ** 2 - y[0] ** 3, lambda y: np.array([-3.0 * y[0] ** 2, 2.0 * y[1]]))
    z = -np.array([2.0, 3.0]) / math.sqrt(13.0)
    last = [p for _, p, _ in follow(cusp, np.array([1.0, 1.0]), z, 0.1, 10_000)][-1]
    assert np.abs(last).max() < 1e-3  # there x is told to the cube root of CLOSED, 1e-4


def test_steps_grow_to_the_longest_and_shrink_to_the_finest():
    step = StepLength(1.0, 0.1, first=0.5)
    step.counted()
    step.counted()
    assert step.h == 1.0
    step.limit(0.4)
    assert step.h == 0.4
    assert [step.failed() for _ in range(4)] == [True, True, True, False]


def test_places_between_two_points_are_located():
    assert zero_between(math.cos, 2.0, 1.0, 1e-15) == pytest.approx(math.pi / 2, abs=1e-15)
    where, value = least_between(math.cos, 2.0, 4.0, 1e-9)
    assert where == pytest.approx(math.pi, abs=1e-7)
    assert value == pytest.approx(-1.0, abs=1e-14)
    assert last_before(lambda x: x < 0.3, 0.0, 1.0, 1e-15) == pytest.approx(0.3, abs=2e-15)
