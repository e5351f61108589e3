"""Tables as laws: no force that the points do not hold, ends, corners; motions stay smooth."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.interpolate import CubicSpline

import loopdyn as ld
from loopdyn.run.breakpoints import time_breakpoints

# Force of a press in N over the position of its slide in mm, as a user wrote it: nothing beyond -10 mm.
PRESS = [[-15, 100000], [-14, 80000], [-10, 0], [0, 0], [40, 0]]
ROUNDING = 1e-12


def slide(law, **settings):
    """A mass of 1 kg on a slide in mm, with a motor."""
    m = ld.Mechanism("slide", units={"length": "mm"}, **settings)
    m.add_body("mass", ld.Inertia.sphere(mass=1, radius=1))
    m.add_joint("S", ld.Prismatic(axis=(1, 0, 0)), m.ground, "mass", at=(0, 0, 0))
    m.add_motor("work", "S", force=law)
    return m.compile()


def force(system, mm, **state):
    """Force of the motor: 1 kg times the acceleration."""
    return float(ld.accelerations(system, system.state(q={"S": mm}, **state), "oracle")[0])


def table(points=PRESS, **options):
    return {"of": "position", "points": points, **options}


@pytest.mark.jit_off
@pytest.mark.parametrize("mm", [-9.0, -5.0, 0.0, 5.0, 20.0, 39.0])
def test_a_table_gives_no_force_where_its_points_are_zero(mm):
    assert force(slide(table()), mm) == 0.0  # natural cubic splines gave -26,575 N at -5 mm, 47,244 N at 20 mm


@pytest.mark.jit_off
def test_a_monotone_table_is_fritsch_and_carlsons_by_hand():
    # slopes at the points: -20000 N/mm at -15 and -14 (both chords), 0 at -10 (a chord of zero beside it);
    # Hermite's cubic half way of the second piece: (80000 + 0)/2 + 4/8*(-20000 - 0) = 30000
    system = slide(table())
    assert force(system, -12.0) == pytest.approx(30000.0, rel=ROUNDING)
    assert force(system, -14.5) == pytest.approx(90000.0, rel=ROUNDING)


@pytest.mark.jit_off
def test_a_monotone_table_stays_between_neighbouring_points():
    x = np.array([0.0, 1.0, 1.5, 4.0, 4.2, 9.0])
    y = np.array([0.0, 10.0, 10.0, -5.0, 80.0, 81.0])
    system = slide(table(list(zip(x, y, strict=True))))
    for k in range(len(x) - 1):
        low, high = sorted(y[k : k + 2])
        for mm in np.linspace(x[k], x[k + 1], 17)[1:-1]:
            assert low - 1e-9 <= force(system, mm) <= high + 1e-9  # rounding of 80 N through scaling


@pytest.mark.jit_off
@pytest.mark.parametrize(
    ("options", "mm", "expected"),
    [
        ({}, -20.0, 100000.0),
        ({}, 60.0, 0.0),
        ({"interpolation": "linear"}, -20.0, 100000.0),
        ({"interpolation": "cubic", "outside": "hold"}, 60.0, 0.0),
    ],
)
def test_beyond_its_ends_a_table_of_a_force_is_held_and_says_so(options, mm, expected):
    system = slide(table(**options))
    with pytest.warns(ld.LoopdynWarning, match=r"force 'work': its table of position goes from -15 to 40 and is left"):
        assert force(system, mm) == pytest.approx(expected, rel=ROUNDING)


@pytest.mark.jit_off
def test_a_linear_table_is_straight_between_the_points():
    system = slide(table(interpolation="linear"))
    for mm in (-14.75, -12.0, -11.0, 3.0):
        expected = np.interp(mm, *np.array(PRESS).T)
        assert force(system, mm) == pytest.approx(expected, rel=1e-11, abs=1e-9)


@pytest.mark.jit_off
def test_a_cubic_table_that_is_extended_is_the_natural_spline_of_old():
    system = slide(table(interpolation="cubic", outside="extend"))
    spline = CubicSpline(*np.array(PRESS, float).T, bc_type="natural")  # SciPy's
    for mm in (-14.3, -12.0, -5.0, 20.0, 39.0):
        assert force(system, mm) == pytest.approx(spline(mm), rel=1e-11)  # rounding through four equations and mm
    # beyond a natural end, where its curvature is zero, a straight line
    assert force(system, 60.0) == pytest.approx(spline(40.0) + 20.0 * spline(40.0, 1), rel=1e-11)
    assert force(system, -17.0) == pytest.approx(spline(-15.0) - 2.0 * spline(-15.0, 1), rel=1e-11)


@pytest.mark.jit_off
def test_an_extended_linear_table_goes_on_along_its_end_pieces():
    system = slide(table(interpolation="linear", outside="extend"))
    assert force(system, -16.0) == pytest.approx(120000.0, rel=ROUNDING)


@pytest.mark.jit_off
def test_a_table_that_must_not_be_left_raises_and_names_the_force():
    system = slide(table(outside="error"))
    assert force(system, 40.0) == 0.0
    with pytest.raises(ld.LoopdynError, match=r"force 'work': its table of position goes from -15 to 40 and is left: "):
        force(system, 40.1)


@pytest.mark.jit_off
def test_reactions_equilibria_and_inverse_dynamics_say_that_a_table_is_left():
    system = slide(table([[-1, 5], [1, 0]]))
    beyond = system.state(q={"S": 2.0})
    with pytest.warns(ld.LoopdynWarning, match="is left: position = 2"):
        ld.reactions(system, beyond, np.zeros(1))
    with pytest.warns(ld.LoopdynWarning, match="is left: position = 2"):
        ld.equilibrium(system, beyond)
    m = system.mechanism.model_copy(deep=True)
    m.add_body("other", ld.Inertia.sphere(mass=1, radius=1))
    m.add_joint("T", ld.Prismatic(axis=(1, 0, 0)), m.ground, "other", at=(0, 0, 0))
    both = m.compile()
    with pytest.warns(ld.LoopdynWarning, match="is left: position = 2"):
        ld.inverse_dynamics(both, [both.state(q={"S": 2.0})], accelerations=np.zeros((1, 2)), motors=["T"])


# ------------------------------------------------------------------------------------------------- motions


def test_tables_that_are_motions_stay_c2_cubics():
    # A sine by points of 10 degrees: h = pi/18. The second derivative of a natural cubic spline errs by about
    # h^2/12 = 0.0025 inside; PCHIP's errs by the order of one.
    t = np.linspace(0.0, 2.0 * np.pi, 37)
    m = ld.Mechanism("driven")
    m.add_body("mass", ld.Inertia.sphere(mass=1, radius=0.1))
    m.add_joint("S", ld.Prismatic(axis=(1, 0, 0)), m.ground, "mass", at=(0, 0, 0))
    m.add_driver("d", "S", ld.forces.Table(points=list(zip(t, np.sin(t), strict=True))))
    system = m.compile()
    for x in np.linspace(1.0, 5.0, 41):
        state = system.state(q={"S": np.sin(x)}, v={"S": np.cos(x)}, t=x)
        assert abs(ld.terms(system, state).gamma[0] + np.sin(x)) < 0.003


def test_a_motion_by_a_table_is_not_held_and_not_linear():
    for options, words in (
        ({"interpolation": "linear"}, "speed of a motion would jump"),
        ({"outside": "hold"}, "stop at once"),
    ):
        m = ld.library.pendulum()
        m.add_driver("d", "A", {"points": [[0, 0], [1, 1]], **options})
        with pytest.raises(ld.errors.ModelError, match=words):
            m.compile()


def test_loads_of_inverse_dynamics_become_cubic_tables():
    m = ld.library.pendulum()
    m.add_driver("d", "A", "0.3*sin(t)")
    found = ld.inverse_dynamics(m.compile(), {"A": "0.3*sin(t)"}, np.linspace(0, 1, 11)).mechanism()
    assert found.forces["motor_A"].torque.interpolation == "cubic"


def test_a_drive_beyond_a_table_that_must_not_be_left_is_refused():
    system = ld.library.four_bar().compile()
    law = ld.forces.Table(points=[(0, 0), (1, 1)], outside="error")
    with pytest.raises(ld.LoopdynError, match=r"motion of 'A': its table of t goes from 0 to 1 and is left"):
        ld.drive(system, "A", law, t_span=(0, 2))


# ---------------------------------------------------------------------------------------------------- runs


SPRING = [[-20, 40], [-5, 0], [5, 0], [20, -40]]  # N over mm: a spring with play, straight pieces


def test_a_run_over_the_corners_of_a_table_is_exact_and_restarts_there():
    system = slide(table(SPRING, interpolation="linear"))
    start = system.state(q={"S": 15.0})
    run = ld.simulate(system, start, (0, 1.0), t_eval=[0, 1.0], rtol=1e-12, progress=False)
    # the closed form: a spring of 40/15 N/mm beyond the play, free flight inside: the period of a whole swing is
    # 2*pi/w + 4*(5 mm)/(w*10 mm) = (2*pi + 2)/w, with w^2 = 40/0.015 per s^2
    w = np.sqrt(40 / 0.015)
    period = (2 * np.pi + 2) / w
    phase = 1.0 % period

    def position(t):
        quarter, flight = np.pi / 2 / w, 1.0 / w
        if t < quarter:
            return 5e-3 + 10e-3 * np.cos(w * t)
        t -= quarter
        if t < flight:
            return 5e-3 - 10e-3 * w * t
        t -= flight
        return -5e-3 - 10e-3 * np.sin(w * t) if t < 2 * quarter else None

    expected = position(phase) if phase <= period / 2 else -position(phase - period / 2)
    assert run.status == "finished"
    # 1e-12 m per step (rtol; the size of a mechanism with one joint is 1 m), some hundreds of steps over six swings
    assert abs(run.path.q[-1, 0] - expected) < 1e-9
    assert run.energy_error < 1e-8
    assert not [e for e in run.events if "table" in e.name]


def test_corners_are_met_whatever_the_variable_is():
    """The same law of the position of a joint in the tree, of a cut joint, and of the length of an actuator."""
    ends = []
    for kind in ("tree", "cut", "length"):
        m = ld.Mechanism("slide", units={"length": "mm"})
        m.add_body("mass", ld.Inertia.sphere(mass=1, radius=1))
        m.add_joint("S", ld.Prismatic(axis=(1, 0, 0)), m.ground, "mass", at=(0, 0, 0))
        if kind == "length":
            points = [[100 + x, y] for x, y in SPRING]
            law = {"of": "length", "points": points, "interpolation": "linear"}
            m.add_force(
                "work",
                ld.forces.Actuator(body1="ground", body2="mass", point1=(-100, 0, 0), point2=(0, 0, 0), force=law),
            )
        else:
            m.add_motor("work", "S", force=table(SPRING, interpolation="linear"))
        system = m.compile(cuts=["S"]) if kind == "cut" else m.compile()
        state = ld.assemble(system, q={"S": 15.0})
        run = ld.simulate(system, state, (0, 0.3), t_eval=[0, 0.3], rtol=1e-12, progress=False)
        assert run.status == "finished"
        assert run.energy_error < 1e-8
        ends.append(run.point("mass", (0, 0, 0))["position"].values[-1, 0])
    # 1e-12 m per step in some hundred steps
    np.testing.assert_allclose(ends, ends[0], rtol=0, atol=1e-6)  # mm


def test_a_run_says_once_that_a_table_is_left_and_goes_on():
    system = slide(table([[-1, 0], [10, 2]]))
    with pytest.warns(ld.LoopdynWarning) as caught:
        run = ld.simulate(system, system.state(v={"S": 100.0}), (0, 0.5), progress=False)
    assert [str(w.message).split(";")[0] for w in caught] == [
        f"force 'work': its table of position goes from -1 to 10 and is left at t = {run.events[0].t:.6g} s"
    ]
    (event,) = run.events
    assert event.name == "force 'work' leaves its table of position"
    assert event.state.q[0] == pytest.approx(10e-3, rel=1e-9)
    # behind it, 2 N on 1 kg from the speed that it had there
    t = 0.5 - event.t
    assert run.path.q[-1, 0] == pytest.approx(10e-3 + event.state.v[0] * t + t * t, rel=1e-8)


def test_a_run_ends_where_a_table_that_must_not_be_left_ends():
    system = slide(table([[-1, 0], [10, 2]], outside="error"))
    run = ld.simulate(system, system.state(v={"S": 100.0}), (0, 0.5), progress=False)
    assert run.status == "failed"
    assert "force 'work': its table of position goes from -1 to 10 and is left" in run.message
    assert len(run.path) > 2
    assert run.path.q[-1, 0] <= 10e-3 + 1e-12


def test_knots_of_a_table_of_time_are_corners_and_its_end_is_said():
    points = [[0, 0], [0.1, 3], [0.2, 0]]
    system = slide({"points": points, "interpolation": "linear"})
    assert time_breakpoints(system, 0.0, 1.0).tolist() == [0.1, 0.2]
    with pytest.warns(ld.LoopdynWarning, match=r"its table of t goes from 0 to 0.2 and is left at t = 0.2 s"):
        run = ld.simulate(system, system.state(), (0, 1.0), t_eval=[0, 0.2, 1.0], progress=False)
    # a triangular pulse of 0.3 N s on 1 kg: half of it after half the time
    np.testing.assert_allclose(run.path.v[:, 0], [0, 0.3, 0.3], atol=1e-12)
    np.testing.assert_allclose(run.path.q[:, 0], [0, 0.03, 0.27], atol=1e-12)


def test_a_smooth_table_has_no_corners_inside():
    system = slide({"points": [[0, 0], [1, 1], [2, 4], [3, 2]], "interpolation": "cubic", "outside": "extend"})
    assert time_breakpoints(system, 0.0, 10.0).size == 0


def test_a_run_within_its_tables_says_nothing():
    system = slide(table(SPRING))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ld.simulate(system, system.state(q={"S": 15.0}), (0, 0.2), progress=False).events == ()


def test_a_mechanism_that_rests_at_a_corner_is_not_started_anew_all_the_time():
    system = slide(table([[-10, 40], [0, 0], [10, -80]], interpolation="linear"))
    m = system.mechanism.model_copy(deep=True)
    m.add_force("damper", ld.forces.JointFriction(joint="S", viscous=0.2))
    system = m.compile()
    run = ld.simulate(system, system.state(q={"S": 5.0}), (0, 5.0), progress=False)
    assert run.status == "finished"
    # a swing of 0.09 s, damped by 100 per s: some tens of restarts until nothing is left
    assert run.statistics.steps < 5000


# --------------------------------------------------------------------------------------------- equilibria


def test_a_stiffness_at_the_corner_of_a_table_is_one_sided_and_says_so():
    # 4 N/mm before, 8 N/mm behind the corner, at which it rests
    system = slide(table([[-10, 40], [0, 0], [10, -80]], interpolation="linear"))
    found = ld.equilibrium(system, system.state())
    assert found.stiffness[0, 0] == pytest.approx(8.0, rel=1e-9)  # N/mm
    assert "towards larger values of position" in found.note
    assert "corner" not in ld.equilibrium(slide(table(SPRING)), system.state()).note


# -------------------------------------------------------------------------------------------------- files


def test_the_options_of_a_table_are_read_from_files_and_written(tmp_path):
    system = slide(table(interpolation="linear", outside="error"))
    system.mechanism.save(tmp_path / "m.yaml")
    again = ld.load(tmp_path / "m.yaml").forces["work"].force
    assert (again.interpolation, again.outside) == ("linear", "error")
    with pytest.raises(ld.errors.ModelError, match="interpolation"):
        ld.forces.Table(points=[(0, 0), (1, 1)], interpolation="linaer")
