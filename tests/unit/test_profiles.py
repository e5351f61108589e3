"""Motion profiles: closed forms written here once more, peaks, dwell and repetition, files, drivers."""

from __future__ import annotations

import json
from math import inf, pi, sqrt

import numpy as np
import pytest
from jsonschema import Draft202012Validator

import loopdyn as ld
from loopdyn.io.reading import parse_document
from loopdyn.io.yaml import schema
from loopdyn.quantities import profiles

# Laws of x in [0, 1] with their first and second derivatives, as textbooks on cams print them.
LAWS = {
    profiles.Polynomial345: (
        lambda x: 10 * x**3 - 15 * x**4 + 6 * x**5,
        lambda x: 30 * x**2 - 60 * x**3 + 30 * x**4,
        lambda x: 60 * x - 180 * x**2 + 120 * x**3,
    ),
    profiles.Polynomial4567: (
        lambda x: 35 * x**4 - 84 * x**5 + 70 * x**6 - 20 * x**7,
        lambda x: 140 * x**3 - 420 * x**4 + 420 * x**5 - 140 * x**6,
        lambda x: 420 * x**2 - 1680 * x**3 + 2100 * x**4 - 840 * x**5,
    ),
    profiles.Cycloidal: (
        lambda x: x - np.sin(2 * pi * x) / (2 * pi),
        lambda x: 1 - np.cos(2 * pi * x),
        lambda x: 2 * pi * np.sin(2 * pi * x),
    ),
    profiles.Harmonic: (
        lambda x: (1 - np.cos(pi * x)) / 2,
        lambda x: pi / 2 * np.sin(pi * x),
        lambda x: pi**2 / 2 * np.cos(pi * x),
    ),
}
EVERY = [
    *(cls(distance=-40, time=0.8) for cls in LAWS),
    profiles.Trapezoid(distance=90, time=2, ramp_up=0.2, ramp_down=0.5),
    profiles.Trapezoid(distance=0.3, speed=0.5, acceleration=2, deceleration=4),
    profiles.SCurve(distance=90, time=2, ramp=0.4, smooth=0.5),
    profiles.SCurve(distance=0.5, speed=1, acceleration=10, jerk=100),
    profiles.Spline(points=[(0, 1), (0.5, 3), (2, -4)]),
]
ROUNDING = 1e-13  # of numbers of the order of 100, through some ten operations


@pytest.mark.parametrize("cls", LAWS)
def test_a_law_is_that_of_the_textbook_in_all_derivatives(cls):
    h, T, wait, start = 90.0, 0.7, 0.2, 5.0
    curve = cls(distance=h, time=T, dwell_before=wait, start=start).curve()
    t = np.linspace(0.2001, 0.8999, 101)
    x = (t - wait) / T
    f, f1, f2 = LAWS[cls]
    # 1e-12: the polynomials cancel terms a hundred times their value, over x known to rounding
    for found, expected in zip(curve.at(t), (start + h * f(x), h / T * f1(x), h / T**2 * f2(x)), strict=True):
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * h / T**2)


@pytest.mark.parametrize("cls", LAWS)
def test_peaks_of_a_law_are_reached_and_not_passed(cls):
    p = cls(distance=-3, time=0.5)
    _, v, a = p.curve().at(np.linspace(0, 0.5, 20001))
    assert np.abs(v).max() == pytest.approx(p.peak_speed, rel=1e-7)  # sampled: the square of the spacing
    assert np.abs(a).max() == pytest.approx(p.peak_acceleration, rel=1e-7)
    known = {"polynomial_345": (1.875, 10 / sqrt(3)), "polynomial_4567": (2.1875, 84 * sqrt(5) / 25)}
    known |= {"cycloidal": (2, 2 * pi), "harmonic": (pi / 2, pi**2 / 2)}
    speed, acceleration = known[p.profile]
    assert (p.peak_speed, p.peak_acceleration) == pytest.approx((speed * 3 / 0.5, acceleration * 3 / 0.25), rel=1e-15)


@pytest.mark.parametrize("cls", LAWS)
def test_limits_of_speed_and_acceleration_give_the_shortest_time(cls):
    slow = cls(distance=2, speed=0.5)
    assert slow.peak_speed == pytest.approx(0.5, rel=1e-15)
    hard = cls(distance=2, speed=1e6, acceleration=3)
    assert hard.peak_acceleration == pytest.approx(3, rel=1e-14)


def test_a_trapezoid_by_limits_and_by_shares():
    # 0.3 m at 0.5 m/s and 2 m/s^2: ramps of 0.25 s over 0.0625 m each, the rest of 0.175 m in 0.35 s
    p = profiles.Trapezoid(distance=0.3, speed=0.5, acceleration=2)
    assert (p.duration, p.peak_speed, p.peak_acceleration) == pytest.approx((0.85, 0.5, 2.0), rel=1e-15)
    x, v, a = p.curve().at([0.125, 0.25, 0.4, 0.725])
    np.testing.assert_allclose(x, [2 * 0.125**2 / 2, 0.0625, 0.0625 + 0.15 * 0.5, 0.3 - 0.125**2], atol=1e-15)
    np.testing.assert_allclose(v, [0.25, 0.5, 0.5, 0.25], atol=1e-15)
    np.testing.assert_allclose(a[[0, 2, 3]], [2, 0, -2], atol=1e-14)
    # too short to reach the speed: d = v^2/2a + v^2/2b
    short = profiles.Trapezoid(distance=0.01, speed=0.5, acceleration=2, deceleration=4)
    peak = sqrt(2 * 0.01 * 2 * 4 / 6)
    assert (short.duration, short.peak_speed) == pytest.approx((peak / 2 + peak / 4, peak), rel=1e-14)
    thirds = profiles.Trapezoid(distance=-90, time=2)
    assert (thirds.peak_speed, thirds.peak_acceleration) == pytest.approx((67.5, 101.25), rel=1e-14)


@pytest.mark.parametrize(
    ("distance", "speed", "time", "peaks"),
    [
        (0.5, 1, 0.7, (1.0, 10.0)),  # all limits reached: Tj = 0.1, Ta = 0.2, 0.3 s at 1 m/s
        (0.05, 1, 4 * (0.05 / 200) ** (1 / 3), None),  # neither speed nor acceleration: four equal phases
        # acceleration reached, speed not: d = v Ta with v = a (Ta - Tj)
        (0.4, 2, 2 * (0.05 + sqrt(0.0025 + 0.04)), (10 * (sqrt(0.0025 + 0.04) - 0.05), 10.0)),
    ],
)
def test_an_s_curve_by_limits_takes_the_shortest_time(distance, speed, time, peaks):
    p = profiles.SCurve(distance=distance, speed=speed, acceleration=10, jerk=100)
    assert p.duration == pytest.approx(time, rel=1e-14)
    if peaks:
        assert (p.peak_speed, p.peak_acceleration) == pytest.approx(peaks, rel=1e-13)
    assert p.peak_speed <= speed + 1e-13
    assert p.peak_acceleration <= 10 + 1e-12
    t = np.linspace(0, time, 4001)
    jerk = np.diff(p.curve().at(t)[2]) / np.diff(t)
    assert np.abs(jerk).max() == pytest.approx(100, rel=1e-9)


@pytest.mark.parametrize("p", EVERY, ids=lambda p: p.profile)
def test_velocity_and_acceleration_are_the_derivatives_of_the_position(p):
    q = p.model_copy(update={"dwell_before": 0.1, "dwell_after": 0.2, "back": True, "cycles": 2.0})
    curve = q.curve()
    t = np.linspace(-0.1, curve.duration + 0.1, 333)
    h = 1e-4 * curve.travel_time
    (x0, v0, a0), (x1, v1, a1), (_, v, a) = curve.at(t - h), curve.at(t + h), curve.at(t)
    smooth = np.abs(a1 - a0) < 1e-2 * curve.peak_acceleration  # no kink in between
    assert smooth.mean() > 0.9
    # differences: h^2 of third derivatives, of the order of peak/T, and rounding over h; h of jerk where that jumps
    np.testing.assert_allclose(((x1 - x0) / (2 * h))[smooth], v[smooth], atol=1e-6 * curve.peak_speed)
    np.testing.assert_allclose(((v1 - v0) / (2 * h))[smooth], a[smooth], atol=2e-3 * curve.peak_acceleration)


@pytest.mark.parametrize("p", EVERY, ids=lambda p: p.profile)
def test_dwell_return_and_repetition(p):
    one = p.curve()
    T, (rest, end) = one.travel_time, one.at([0, one.duration])[0]
    q = p.model_copy(update={"dwell_before": 0.1, "dwell_after": 0.2, "back": True, "cycles": 3.0})
    curve = q.curve()
    cycle = 0.3 + 2 * T
    assert curve.cycle_time == pytest.approx(cycle, rel=1e-15)
    assert curve.duration == pytest.approx(3 * cycle, rel=1e-15)
    size = abs(end - rest)
    for n in range(3):
        x, v, a = curve.at(n * cycle + np.array([0.0, 0.05, 0.1 + T + 0.1, 0.1 + T + 0.15]))
        np.testing.assert_allclose(x, [rest, rest, end, end], atol=ROUNDING * size)
        np.testing.assert_allclose(v[1:], 0, atol=0)
        np.testing.assert_allclose(a[1:], 0, atol=0)
    x, v, a = curve.at([-1.0, 3 * cycle + 1.0])  # before and after
    np.testing.assert_allclose(x, rest, atol=ROUNDING * size)
    assert (v == 0).all()
    assert (a == 0).all()
    # without a way back it goes on in the same direction, here for ever
    on = p.model_copy(update={"dwell_after": 0.2, "endless": True}).curve()
    assert on.duration == inf
    x, v, _ = on.at((T + 0.2) * np.arange(1, 5) - 0.1)
    np.testing.assert_allclose(x, rest + (end - rest) * np.arange(1, 5), atol=10 * ROUNDING * size)


def test_a_spline_passes_its_points_at_rest_at_both_ends_and_goes_back_through_them():
    p = profiles.Spline(points=[(0, 1), (0.5, 3), (2, -4)], back=True, start=10)
    x, v, _ = p.curve().at([0, 0.5, 2, 3.5, 4])
    np.testing.assert_allclose(x, [11, 13, 6, 13, 11], atol=1e-13)
    np.testing.assert_allclose(v[[0, 2, 4]], 0, atol=1e-13)


def test_a_periodic_spline_goes_on_smoothly():
    curve = profiles.Spline(points=[(0, 0), (1, 3), (2, 4), (3, 9)], ends="periodic", endless=True).curve()
    before, after = curve.at(3 - 1e-9), curve.at(3 + 1e-9)
    for one, other in zip(before, after, strict=True):
        assert abs(one - other) < 1e-7  # over 2e-9 s
    assert float(curve.at(7.0)[0]) == pytest.approx(9 + 9 + 3, abs=1e-13)


# ----------------------------------------------------------------------------------------------- in a model


def arm(units: dict[str, str] | None = None) -> ld.Mechanism:
    m = ld.Mechanism("arm", units=units or {})
    body = m.add_body("arm", ld.Inertia.rod(mass=1, start=(0, 0, 0), end=(1, 0, 0), radius=0.1))
    m.add_joint("A", ld.Revolute(axis=(0, 0, 1)), m.ground, body, at=(0, 0, 0))
    return m


def test_a_driver_follows_a_profile_in_the_units_of_the_model():
    m = arm({"angle": "deg"})
    m.parameters = {"swing": 90.0}
    m.add_driver("turn", "A", profiles.Harmonic(distance="swing", time=2))
    system = m.compile()
    t = ld.terms(system, system.state(q={"A": np.degrees(0.3)}, t=0.5))
    x = pi / 2 * (1 - np.cos(pi / 4)) / 2
    v = pi / 2 * pi / 4 * np.sin(pi / 4)
    a = pi / 2 * pi**2 / 8 * np.cos(pi / 4)
    assert (t.phi[0], t.phi_t[0], t.gamma[0]) == pytest.approx((0.3 - x, -v, a), rel=1e-14)


def test_a_run_follows_the_profile_of_its_driver():
    m = arm()
    m.add_driver("turn", "A", profiles.Polynomial345(distance=1.5, time=0.5, back=True))
    system = m.compile()
    run = ld.simulate(system, ld.assemble(system), (0, 1), t_eval=[0.25, 0.5, 1.0], progress=False)
    np.testing.assert_allclose(run.path.q[:, 0], [0.75, 1.5, 0.0], atol=1e-9)  # tolerance of the run


@pytest.mark.parametrize("p", EVERY, ids=lambda p: p.profile)
def test_a_profile_survives_a_file_and_the_schema_knows_it(p, tmp_path):
    m = arm()
    m.add_driver("turn", "A", p.model_copy(update={"dwell_after": 0.5, "back": True, "cycles": "2"}))
    m.move_base(x=profiles.Cycloidal(distance=0.1, time=1, endless=True))
    file = tmp_path / "arm.yaml"
    m.save(file)
    again = ld.load(file)
    assert again == m
    assert type(again.drivers["turn"].motion) is type(p)
    assert f"profile: {p.profile}" in file.read_text()
    validator = Draft202012Validator(json.loads(json.dumps(schema())))
    assert validator.is_valid(parse_document(file.read_text(), "x").root.plain())
    again.compile()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{profile: trapezoidal, distance: 1, time: 2}", "unknown profile 'trapezoidal'. Did you mean 'trapezoid'?"),
        ("{profile: harmonic, distanc: 1, time: 2}", "unknown key 'distanc'. Did you mean 'distance'?"),
        ("{profile: trapezoid, distance: 1}", "'time' is missing. Give 'time', or speed and acceleration."),
        ("{profile: trapezoid, distance: 1, time: 1, speed: 2}", "'speed' and 'time' are both given"),
        ("{profile: trapezoid, distance: 1, time: 1, ramp_up: 0.8}", "ramp_up and ramp_down add up to 1.13333"),
        ("{profile: trapezoid, distance: 1, time: 1, deceleration: 2}", "'deceleration' and 'time' are both given"),
        ("{profile: s_curve, distance: 1, time: -1}", "'time' is -1. Give a positive number."),
        ("{profile: s_curve, distance: 1, time: 1, ramp: 0.7}", "'ramp' is 0.7. Give a fraction above 0, at most 0.5."),
        ("{profile: cycloidal, distance: 0, time: 1}", "the distance is zero"),
        ("{profile: cycloidal, distance: 1, time: 1, cycles: 1.5}", "'cycles' is 1.5. Give a whole number"),
        ("{profile: cycloidal, distance: 1, time: 1, dwell_after: -1}", "'dwell_after' is -1"),
        ("{profile: cycloidal, distance: 'nothing', time: 1}", "unknown name 'nothing'"),
        ("{profile: spline, points: [[0, 0]]}", "1 point(s) are given"),
        ("{profile: spline, points: [[1, 0], [2, 1]]}", "the first point is at t = 1"),
        ("{profile: spline, points: [[0, 0], [2, 1], [1, 3]]}", "times must increase, but 1 follows 2"),
        ("{profile: spline, points: [[0, 0], [2, 0]]}", "all points have the same position"),
        ("{profile: spline, points: [[0, 0], [2, 1]], ends: periodic, back: true}", "has no dwells and no way back"),
        ("{profile: spline, points: [[0, 0], [2, 1]], ends: periodic, cycles: 2}", "would end at full speed"),
    ],
)
def test_what_is_wrong_with_a_profile_is_said_with_its_line(text, said, tmp_path):
    file = tmp_path / "arm.yaml"
    m = arm()
    m.add_driver("turn", "A", 0.25)
    m.save(file)
    file.write_text(file.read_text().replace("0.25", text))
    line = next(n for n, x in enumerate(file.read_text().splitlines(), 1) if "turn" in x)
    with pytest.raises(ld.errors.ModelError) as error:
        ld.load(file).compile()
    assert f"arm.yaml:{line}: driver 'turn'" in str(error.value)
    assert said in str(error.value)


def test_a_profile_where_time_is_not_known_is_refused():
    with pytest.raises(ld.errors.ModelError, match="expected a number"):
        ld.constraints.Coupler(terms={"A": 1}, offset=profiles.Harmonic(distance=1, time=1))


# ------------------------------------------------------------------------------------------- runs over corners


DWELLING = {
    "trapezoid": ld.profiles.Trapezoid(distance=0.5, time=0.3, dwell_before=0.05),
    "cycloidal": ld.profiles.Cycloidal(distance=0.5, time=0.3, dwell_before=0.05, dwell_after=0.1, back=True, cycles=2),
    "S-curve": ld.profiles.SCurve(distance=0.5, time=0.3, dwell_before=0.3, endless=True),
    "polynomial": ld.profiles.Polynomial345(distance=0.5, time=0.3, dwell_after=0.1, endless=True),
}


@pytest.mark.parametrize("name", DWELLING)
def test_a_driver_that_dwells_is_not_jumped_over(name):
    """A slide of 2 kg: at every time it is where the profile says.

    The work of the driver is a quadrature over steps whose size the motion alone decides, and that is exact here: of
    the polynomial, with two steps a cycle, half a percent is missing.
    """
    m = ld.Mechanism("slide", gravity=(0, 0, 0))
    m.add_body("block", ld.Inertia.box(mass=2.0, size=(0.1, 0.1, 0.1)))
    m.add_joint("P", ld.Prismatic(axis=(1, 0, 0)), m.ground, "block", at=(0, 0, 0))
    m.add_driver("drive", "P", DWELLING[name])
    system = m.compile()
    run = ld.simulate(system, ld.assemble(system), (0, 2), t_eval=np.linspace(0, 2, 41), progress=False)
    assert run.status == "finished", run.message
    assert run.energy_error < 1e-2
    assert not run.events
    x, v, _ = DWELLING[name].curve().at(run.path.t)
    assert np.abs(run.path.q[:, 0] - x).max() < 1e-9
    assert np.abs(run.path.v[:, 0] - v).max() < 1e-7


def test_a_loop_is_driven_over_the_corners_of_a_profile():
    m = ld.library.four_bar()
    m.start = type(m.start)()
    m.add_driver("drive", "A", ld.profiles.Trapezoid(distance=1.5, time=0.3, dwell_before=0.2, back=True, cycles=2))
    system = m.compile()
    run = ld.simulate(system, ld.assemble(system), (0, 2), progress=False)
    assert run.status == "finished", run.message
    assert run.energy_error < 1e-6
