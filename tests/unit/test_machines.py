"""Linkages and machines of the gallery against closed forms, which are written here without loopdyn."""

from __future__ import annotations

from math import acos, atan2, cos, hypot, pi, sin, tan

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import loopdyn as ld
from loopdyn import library

CLOSED = 1e-12  # sizes are of order one and loops are closed to rounding


def turned_about(point, pivot, axis, angle):
    """A point turned about a line through `pivot`."""
    axis = np.asarray(axis, float)
    turn = Rotation.from_rotvec(angle * axis / np.linalg.norm(axis)).as_matrix()
    return pivot + turn @ (np.asarray(point, float) - pivot)


# -------------------------------------------------------------------------------------------------- Peaucellier


@pytest.mark.parametrize("change", [{}, {"arm": 0.8, "side": 0.3, "crank": 0.3}])
def test_peaucellier_draws_a_straight_line(change):
    m = library.peaucellier().with_(**change)
    p = {"arm": 1.0, "side": 0.4, "crank": 0.35} | change
    system = m.compile()
    corner = m.resolver().vector(m.joints["C"].at, "length", "", ())
    turn = ld.drive(system, "Q", (-1.2, 0.3, 61))
    C = turn.point("AC", at=corner)["position"].values
    line = (p["arm"] ** 2 - p["side"] ** 2) / (2 * p["crank"])
    assert np.abs(C[:, 0] - line).max() < CLOSED
    # height by the inversion: C is on the line from O that has half the angle of the crank
    crank = 0.5 + turn.data["q"].sel(coordinate="Q").values
    np.testing.assert_allclose(C[:, 1], line * np.tan(crank / 2), atol=CLOSED)


# ------------------------------------------------------------------------------------------------- Theo Jansen


def left(a, r1, b, r2):
    """Point at the distances r1 of a and r2 of b, to the left of the line from a to b."""
    dx, dy = b[0] - a[0], b[1] - a[1]
    d = hypot(dx, dy)
    angle = atan2(dy, dx) + acos((r1 * r1 + d * d - r2 * r2) / (2 * r1 * d))
    return a[0] + r1 * cos(angle), a[1] + r1 * sin(angle)


def jansen_foot(angle):
    """Foot of the leg, in Jansen's units, from his letters a to m as he publishes them."""
    a, b, c, d, e, f, g, h, i, j, k, l, m = 38.0, 41.5, 39.3, 40.1, 55.8, 39.4, 36.7, 65.7, 49.0, 50.0, 61.9, 7.8, 15.0
    P, F = (m * cos(angle), m * sin(angle)), (-a, -l)
    U, W = left(F, b, P, j), left(P, k, F, c)
    V = left(F, d, U, e)
    X = left(W, g, V, f)
    return left(W, i, X, h)


def test_the_foot_of_jansens_leg_goes_where_his_numbers_say():
    m = library.theo_jansen()
    r = m.resolver()
    foot = r.vector(("yx", "yy", 0), "length", "", ())
    assert 100 * foot[:2] == pytest.approx(jansen_foot(0.6), abs=1e-11)
    turn = ld.drive(m.compile(), "O", (0, -2 * pi, 73))
    assert turn.status == "complete"  # the crank turns fully
    found = turn.point("lower", at=foot)["position"].values
    expected = [jansen_foot(0.6 + q) for q in turn.data["q"].sel(coordinate="O").values]
    np.testing.assert_allclose(100 * found[:, :2], expected, atol=1e-10)


# ------------------------------------------------------------------------------------------------ scissor lift


@pytest.mark.parametrize("n", [1, 3, 20])
def test_the_scissor_lift_is_as_high_as_its_bars_in_a_row_times_the_sine(n):
    m = library.scissor_lift(n)
    turn = ld.drive(m.compile(), "A", (0, 0.8, 17))
    x = 0.5 + turn.data["q"].sel(coordinate="A").values
    P = turn.point("platform", at=(0, n * sin(0.5), 0))["position"].values
    np.testing.assert_allclose(P[:, 0], 0, atol=n * CLOSED)
    np.testing.assert_allclose(P[:, 1], n * np.sin(x), atol=n * CLOSED)
    np.testing.assert_allclose(turn.data["q"].sel(coordinate="foot"), np.cos(x) - cos(0.5), atol=n * CLOSED)


@pytest.mark.parametrize("n", [1, 20])
def test_the_force_that_holds_the_scissor_lift_is_that_of_virtual_work(n):
    system = library.scissor_lift(n).compile()
    loads = ld.inverse_dynamics(system, {"foot": "0*t"}, [0.0, 1.0])
    # heights of payload and upper block n sin x, of the bars (k - 1/2) sin x twice; the foot at cos x
    weight = 9.81 * (n * (20.0 + 0.5) + n * n * 1.0)
    assert loads.load[0] == pytest.approx([-weight / tan(0.5)], rel=1e-9)


# --------------------------------------------------------------------------------------------- double wishbone


def spheres(centres, distances, near):
    """Point at given distances of three others, the solution near `near`."""
    a, b, c = centres
    ex = (b - a) / np.linalg.norm(b - a)
    i = ex @ (c - a)
    ey = (c - a) - i * ex
    ey /= np.linalg.norm(ey)
    ez = np.cross(ex, ey)
    d, j = np.linalg.norm(b - a), ey @ (c - a)
    r1, r2, r3 = distances
    x = (r1**2 - r2**2 + d**2) / (2 * d)
    y = (r1**2 - r3**2 + i**2 + j**2 - 2 * i * x) / (2 * j)
    z = np.sqrt(r1**2 - x**2 - y**2)
    both = [a + x * ex + y * ey + s * z * ez for s in (1, -1)]
    return min(both, key=lambda p: np.linalg.norm(p - near))


def test_the_wishbones_guide_the_wheel_as_circles_and_spheres_say():
    lower_pivot, lower_axis = np.array([0, 0.35, 0.2]), (1, 0.05, 0.03)
    upper_pivot, upper_axis = np.array([-0.02, 0.42, 0.5]), np.array([1, -0.04, -0.06])
    low, up = np.array([0.01, 0.75, 0.17]), np.array([-0.015, 0.7, 0.52])
    inner, outer = np.array([-0.12, 0.33, 0.26]), np.array([-0.13, 0.72, 0.27])
    distance = {n: np.linalg.norm(p) for n, p in (("ll", up - low), ("lo", outer - low), ("uo", outer - up))}
    rod = np.linalg.norm(outer - inner)

    system = library.double_wishbone().compile()
    n = 21
    travel, steer = np.linspace(-0.2, 0.2, n), np.linspace(0.01, -0.02, n)
    turn = ld.drive(system, {"lower": travel, "rack": steer, "hub": np.linspace(0, 3, n)})
    found = {name: turn.point("upright", at=p)["position"].values for name, p in (("u", up), ("l", low), ("o", outer))}
    near_up, near_outer = found["u"][0], found["o"][0]
    for k in range(n):
        L = turned_about(low, lower_pivot, lower_axis, travel[k])
        # the upper ball: on its circle, at the distance of the lower one: A cos f + B sin f = C
        e = upper_axis / np.linalg.norm(upper_axis)
        r = up - upper_pivot
        centre, u = upper_pivot + (r @ e) * e, r - (r @ e) * e
        w = np.cross(e, u)
        A, B = 2 * u @ (centre - L), 2 * w @ (centre - L)
        C = distance["ll"] ** 2 - u @ u - (centre - L) @ (centre - L)
        both = [atan2(B, A) + s * acos(C / hypot(A, B)) for s in (1, -1)]
        U = min((centre + u * cos(f) + w * sin(f) for f in both), key=lambda p: np.linalg.norm(p - near_up))
        O = spheres((L, U, inner + [0, steer[k], 0]), (distance["lo"], distance["uo"], rod), near_outer)
        near_up, near_outer = U, O
        for name, expected in (("l", L), ("u", U), ("o", O)):
            np.testing.assert_allclose(found[name][k], expected, atol=1e-11)  # a square root of differences


# ------------------------------------------------------------------------------------------------- delta robot


def delta_arms(place, base=0.2, arm=0.3, rod=0.7, platform=0.06):
    """Angles of the arms below the horizontal for a place of the platform: the textbook inverse kinematics."""
    angles = []
    for k in range(3):
        c, s = cos(2 * pi * k / 3), sin(2 * pi * k / 3)
        x, y, z = c * place[0] + s * place[1] + platform - base, -s * place[0] + c * place[1], place[2]
        # (x - arm cos f)^2 + y^2 + (z + arm sin f)^2 = rod^2
        A, B, C = 2 * arm * x, -2 * arm * z, x * x + y * y + z * z + arm**2 - rod**2
        angles.append(atan2(B, A) - acos(C / hypot(A, B)))
    return angles


def test_the_platform_of_the_delta_robot_is_where_its_inverse_kinematics_say_and_does_not_turn():
    system = library.delta_robot().compile()
    home = np.array([0, 0, -0.3 * sin(0.4) - np.sqrt(0.49 - (0.14 + 0.3 * cos(0.4)) ** 2)])
    n = 25
    s = np.linspace(0, 2 * pi, n)
    path = home + np.column_stack([0.15 * np.sin(s), 0.1 * np.sin(2 * s), 0.08 * (1 - np.cos(s))])
    arms = np.array([delta_arms(p) for p in path]) - 0.4
    assert np.abs(arms[0]).max() < 1e-13
    turn = ld.drive(system, {f"A{k + 1}": arms[:, k] for k in range(3)})
    assert turn.status == "complete"
    np.testing.assert_allclose(turn.point("platform", at=home)["position"], path, atol=1e-11)
    rotation = turn.poses()[1][:, system.bodies.index("platform")]
    np.testing.assert_allclose(rotation, np.broadcast_to(np.eye(3), rotation.shape), atol=1e-11)


# ------------------------------------------------------------------------------------------------ cardan shaft


@pytest.mark.parametrize("phase", [0.0, pi / 2, 0.7])
def test_the_speed_of_the_cardan_shaft_is_that_of_two_crosses_in_a_row(phase):
    bend = 0.5
    system = library.cardan_shaft().with_(phase=phase).compile()
    turn = ld.drive(system, "in", (0, 2 * pi, 73))
    x = 0.3 + turn.data["q"].sel(coordinate="in").values
    # tan(middle) = cos(bend) tan(input) from the fork across the plane of the shafts, and again at the second cross
    middle = np.arctan2(np.sin(x) * cos(bend), np.cos(x)) + phase
    first = cos(bend) / (1 - np.sin(x) ** 2 * sin(bend) ** 2)
    second = cos(bend) / (1 - np.cos(middle) ** 2 * sin(bend) ** 2)
    np.testing.assert_allclose(turn.ratio("out"), first * second, atol=1e-11)
    np.testing.assert_allclose(turn.data["q"].sel(coordinate="spline"), 0, atol=CLOSED)
    if phase == 0:
        np.testing.assert_allclose(turn.ratio("out"), 1, atol=1e-11)
    if phase == pi / 2:
        assert float(turn.ratio("out").max()) == pytest.approx(1 / cos(bend) ** 2, rel=1e-2)  # between samples
