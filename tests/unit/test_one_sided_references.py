"""The references of one-sided machines against published numbers, conservation and second methods."""

from __future__ import annotations

import numpy as np
import pytest
from tests import complementarity as lcp
from tests import one_sided_references as ref


def test_two_methods_solve_random_complementarity_problems():
    """Residuals of 300 problems of at most 8 rows, dependent ones too: rounding, times the condition of the blocks."""
    assert lcp.check_methods_agree() < 1e-9


def test_no_feasible_acceleration_has_a_smaller_gaussian_constraint():
    assert lcp.check_gauss() <= 1e-12


def test_lemke_says_when_there_is_no_solution():
    assert lcp.lemke(np.zeros((1, 1)), np.array([-1.0])) is None


def test_newtons_cradle_by_the_simultaneous_rule():
    rows = np.array([[-float(i == k) + float(i == k + 1) for i in range(5)] for k in range(4)])
    v, Z = lcp.contact_impulses(np.eye(5), np.zeros((0, 5)), rows, np.array([1.0, 0, 0, 0, 0]), 1.0)
    np.testing.assert_allclose(v, [-0.6, 0.4, 0.4, 0.4, 0.4], atol=1e-14)
    np.testing.assert_allclose(Z, [1.6, 1.2, 0.8, 0.4], atol=1e-14)


@pytest.mark.parametrize("e", [0.0, 0.3, 1.0])
def test_an_impact_with_one_restitution_never_gains_energy(e):
    rng = np.random.default_rng(4)
    for _ in range(50):
        n, k = 6, int(rng.integers(1, 9))
        L = rng.normal(size=(n, n))
        M, J, B = L @ L.T + np.eye(n), rng.normal(size=(2, n)), rng.normal(size=(k, n))
        v = lcp.null_space(J, n) @ rng.normal(size=4)
        after, Z = lcp.contact_impulses(M, J, B, v, e)
        assert after @ M @ after <= v @ M @ v * (1 + 1e-9)  # rounding, times the condition of the blocks
        assert (Z >= -1e-9).all()
        assert np.abs(J @ after).max() < 1e-10
        if e == 1.0 and k == 1:
            assert after @ M @ after == pytest.approx(v @ M @ v, rel=1e-9)


def test_bouncing_ball():
    times, heights, rest = ref.bouncing_ball(1.0, 0.8)
    assert rest == pytest.approx(4.0637127689, abs=5e-11)
    assert heights[:2] == pytest.approx([0.64, 0.4096], rel=1e-15)
    flights = np.diff(times)
    np.testing.assert_allclose(flights, 2 * np.sqrt(2 * heights[:-1] / ref.GRAVITY), rtol=1e-12)


def test_housner():
    assert ref.housner_ratio(0.25) == pytest.approx(0.9081869214, abs=5e-11)
    # Small angles: theta'' - p^2 theta = -p^2 alpha, first impact at acosh(1/(1 - angle/alpha))/p (Housner 1963).
    R, alpha, angle = 1.0, 0.02, 0.008
    p = np.sqrt(3 * ref.GRAVITY / (4 * R))
    times, _ = ref.rocking_block(R, alpha, angle, 1)
    assert times[0] == pytest.approx(np.arccosh(1 / (1 - angle / alpha)) / p, rel=1e-3)  # sin x = x errs by x^2/6
    times, speeds = ref.rocking_block(R, 0.25, 0.1, 1)
    energy = 2 * p**2 * (np.cos(0.25 - 0.1) - np.cos(0.25))  # w^2 = 2 p^2 (cos(alpha - theta0) - cos(alpha))
    assert speeds[0] == pytest.approx(ref.housner_ratio(0.25) * np.sqrt(energy), rel=1e-10)


def test_cam_lifts_off_at_its_speed_and_touches_where_the_gap_is_zero():
    cam = ref.Cam()
    limit = cam.lift_off_speed()
    assert limit == pytest.approx(np.sqrt((20 + 0.5 * 9.81 + 2 * 2000 * 0.01) / (0.5 * 0.01)), rel=1e-15)
    angles = np.linspace(0, 2 * np.pi, 721)
    assert min(cam.force(x / (0.999 * limit), 0.999 * limit) for x in angles) > 0
    assert min(cam.force(x / (1.001 * limit), 1.001 * limit) for x in angles) < 0
    assert cam.events(0.999 * limit, 0.2) == []
    omega = 1.15 * limit
    events = cam.events(omega, 0.2)
    assert [kind for _, kind in events[:4]] == ["separation", "landing"] * 2
    assert abs(cam.force(events[0][0], omega)) < 1e-9
    # Between landing and separation the motion is that of the cam: the second separation is a turn after the first.
    assert events[2][0] - events[0][0] == pytest.approx(2 * np.pi / omega, rel=1e-12)
    # The flight by integration, to its tolerance.
    from scipy.integrate import solve_ivp

    s = np.sin(omega * events[0][0])
    y = [cam.R + cam.e * s, cam.e * omega * np.cos(omega * events[0][0])]
    run = solve_ivp(
        lambda _t, y: [y[1], -cam.g - (cam.F0 + cam.k * (y[0] - cam.R + cam.e)) / cam.m],
        (events[0][0], events[1][0]), y, rtol=1e-12, atol=1e-14,
    )  # fmt: skip
    assert run.y[0, -1] == pytest.approx(cam.R + cam.e * np.sin(omega * events[1][0]), abs=1e-11)


def test_geneva_drive_has_the_numbers_of_the_textbook():
    assert ref.geneva(np.array(0.0))[1] == pytest.approx(1 + np.sqrt(2), rel=1e-14)
    angle, peak = ref.geneva_peak()
    assert (np.degrees(angle), peak) == pytest.approx((11.464, 5.40698), rel=5e-5)
    alpha = np.linspace(-np.pi / 4, np.pi / 4, 20001)
    beta, rate, second = ref.geneva(alpha)
    assert np.abs(second).max() == pytest.approx(peak, rel=1e-6)
    assert (rate[0], second[0], second[-1]) == pytest.approx((0.0, 1.0, -1.0), abs=1e-14)
    np.testing.assert_allclose(np.gradient(beta, alpha)[1:-1], rate[1:-1], atol=1e-7)  # h^2 times the third derivative
    np.testing.assert_allclose(np.gradient(rate, alpha)[1:-1], second[1:-1], atol=1e-6)
    # The pin is in the slot: seen from the wheel's axis, at d from the crank's, in the direction of beta.
    a, d = 1.0, np.sqrt(2.0)
    np.testing.assert_allclose(np.arctan2(a * np.sin(alpha), d - a * np.cos(alpha)), beta, atol=1e-15)
    turned = ref.geneva_indexing(np.linspace(0, 20 * np.pi, 11), 1.0, -0.9 * np.pi)
    np.testing.assert_allclose(turned, np.arange(11) * np.pi / 2, atol=1e-12)
    assert ref.geneva_wrong_entry(0.1, 0.01, 5.0, -np.pi / 4, 0.0)[1] == pytest.approx(0.0, abs=1e-15)


def test_gears_with_backlash_by_closed_forms_of_the_first_events():
    """From rest in the middle: b/2 = T/(2 I1) t^2; after a reversal: b = T/(2 I1) t^2 once more."""
    gears = ref.Gears()
    events = gears.events(6)
    assert events[0][0] == pytest.approx(np.sqrt(gears.b * gears.I1 / gears.T), rel=1e-14)
    assert events[2][0] - events[1][0] == pytest.approx(np.sqrt(2 * gears.b * gears.I1 / gears.T), rel=1e-12)
    assert [e[1:3] for e in events[:4]] == [("contact", 1), ("separation", 1), ("contact", -1), ("separation", -1)]
    # The angular momentum I1 phi1' + I2/n phi2' is the integral of the torque.
    total = [gears.I1 * e[3] + gears.I2 / gears.n * e[4] for e in events[:2]]
    assert total == pytest.approx([gears.T * events[0][0], gears.T * events[1][0]], rel=1e-13)


def test_slider_crank_with_play_obeys_its_law_of_impact():
    s = ref.Slider()
    t0, y0 = 0.0, s.at_start()
    e, v = s.pin(t0, y0)
    np.testing.assert_allclose([*e, *v], 0.0, atol=1e-15)  # in the middle and at rest
    for t, before, after, impulse in s.impacts(3):
        e, v = s.pin(t, before)
        u = e / np.hypot(*e)
        assert np.hypot(*e) == pytest.approx(s.c, abs=1e-13)
        assert u @ s.pin(t, after)[1] == pytest.approx(-s.e * (u @ v), rel=1e-12)
        assert s.M * (after[3] - before[3]) == pytest.approx(impulse * u[0], rel=1e-12)
        assert impulse > 0


@pytest.mark.parametrize("e", [0.0, 0.5, 1.0])
def test_four_bar_on_a_stop_balances_momentum_in_minimal_coordinates(e):
    bars, crank, rate = ref.FourBar(), 0.8, 10.0
    found = bars.impact(crank, rate, e)
    np.testing.assert_allclose(found["after"], -e * found["before"], rtol=0, atol=1e-11)
    np.testing.assert_allclose(found["before"], bars.rates(crank) * rate, rtol=1e-12)
    inertia = bars.reduced_inertia(crank)
    assert found["stop"] == pytest.approx((1 + e) * inertia * abs(found["before"][2]), rel=1e-12)


def test_press_keeps_its_energy():
    """Kinetic energy against the work of the force, gravity and the work-piece; error of the integration 1e-11."""
    press = ref.Press()
    times = np.linspace(0, 0.3, 61)
    theta, w = press.run(times)
    reach = 2 * press.L * np.cos(theta) - press.depth
    energy = 0.5 * np.array([press.mass(x)[0] for x in theta]) * w**2 + 0.5 * press.k * np.maximum(reach, 0) ** 2
    energy += press.P * press.L * np.sin(theta) - press.m * ref.GRAVITY * 2 * press.L * np.cos(theta)
    energy -= press.bar * ref.GRAVITY * 2 * press.L * np.cos(theta)
    np.testing.assert_allclose(energy, energy[0], rtol=0, atol=1e-6 * np.abs(energy).max())
    assert (reach > 0).any()
    assert (reach < 0).any()


def test_ratchet_holds():
    """A vertical face at (1, 0), torque 5 clockwise; the pawl above on the left of the face line is pressed in."""
    force, moment = ref.ratchet(5.0, np.array([1.0, 0.0]), np.array([0.0, -1.0]), np.array([1.5, 1.0]))
    assert (force, moment) == (5.0, -2.5)
