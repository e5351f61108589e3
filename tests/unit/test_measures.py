"""Measures: formulas of points, joint coordinates, speeds and loads, against closed forms and hand calculation."""

import copy
import pickle
import re

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from scipy.spatial.transform import Rotation
from tests.unit.test_points import drawing

import loopdyn as ld
from loopdyn.results.measures import Measured, Path

Z = (0, 0, 1)
MM = {"length": "mm", "angle": "deg", "mass": "g", "torque": "N*mm"}
ROUNDED = 1e-12  # relative: some ten operations on numbers of the size of one, each rounded to 1.1e-16
INERTIA = 2.0 * 0.1**2 / 3.0 + 2.0 * 0.001**2 / 4.0  # of the arm about its joint: a rod of the radius 1 mm
STEPS = 1e-9  # relative: runs below with the default tolerance of 1e-8, and motions that it integrates exactly


def arm(units=None, **measures):
    """Arm of 0.1 m and 2 kg that turns about z, with its tip P, in SI or other units; start at rest."""
    m = ld.Mechanism("arm", units=units or {})
    one = 1.0 / m.units.factor("length")
    body = m.add_body("arm", ld.Inertia.rod(2.0 / m.units.factor("mass"), (0, 0, 0), (0.1 * one, 0, 0), 0.001 * one))
    m.add_joint("A", ld.Revolute(axis=Z), m.ground, body, at=(0, 0, 0))
    m.add_point("O", (0, 0, 0), on="ground")
    m.add_point("P", (0.1 * one, 0, 0), on="arm")
    m.add_point("R", (0, 0.2 * one, 0), on="ground")
    for name, formula in measures.items():
        m.add_measure(name, formula)
    return m


def at(m, q=0.5, v=2.0, a=None):
    system = m.compile()
    return ld.analyses.measures(system, system.state([q], [v], t=3.0), a)


@pytest.mark.parametrize(
    ("formula", "expected", "unit"),
    [
        ("x(P)", 0.1 * np.cos(0.5), "m"),
        ("y(P)", 0.1 * np.sin(0.5), "m"),
        ("z(P)", 0.0, "m"),
        ("x(R, arm)", 0.2 * np.sin(0.5), "m"),
        ("y(R, arm)", 0.2 * np.cos(0.5), "m"),
        ("distance(P, R)", np.sqrt(0.01 + 0.04 - 0.04 * np.sin(0.5)), "m"),
        ("angle(O, P)", 0.5, "rad"),
        ("angle(P, O)", 0.5 + np.pi, "rad"),  # half a turn at the reference pose, and on with the joint
        ("angle(P, O, R)", np.pi / 2 - 0.5, "rad"),
        ("angle(R, O, P)", np.pi / 2 - 0.5, "rad"),
        ("angle(R, O, P, about=z)", 0.5 - np.pi / 2, "rad"),
        ("speed(P)", 0.2, "m/s"),
        ("vx(P)", -0.2 * np.sin(0.5), "m/s"),
        ("ay(P)", -0.4 * np.sin(0.5), "m/s^2"),
        ("A", 0.5, "rad"),
        ("A.speed", 2.0, "rad/s"),
        ("t", 3.0, "s"),
        ("sin(2*t) + 0.5", np.sin(6.0) + 0.5, "1"),
        ("sin(A)", np.sin(0.5), "1"),
        ("sqrt(x(P)**2 + y(P)**2)", 0.1, "m"),
        ("x(P)*vy(P) - y(P)*vx(P)", 0.02, "m^2/s"),
        ("1/A.speed", 0.5, "s/rad"),
        ("max(x(P), 1)", 1.0, "m"),
        ("x(P) if A > 0 else y(P)", 0.1 * np.cos(0.5), "m"),
        ("A.fx", -2.0 * 0.05 * 4.0 * np.cos(0.5), "N"),  # m r omega^2, towards the pivot
        ("A.fx*y(P)", -2.0 * 0.05 * 4.0 * np.cos(0.5) * 0.1 * np.sin(0.5), "N*m"),
        ("A.acceleration", 0.0, "rad/s^2"),
    ],
)
def test_terms_have_the_values_and_units_of_hand_calculation(formula, expected, unit):
    found = at(arm(it=formula))
    assert found["it"] == pytest.approx(expected, rel=ROUNDED, abs=ROUNDED)
    assert found.units["it"] == unit


UNITS = {  # formula, its SI value over the value in mm, deg, g, N mm
    "x(P)": 1e-3,
    "A": np.pi / 180,
    "angle(O, P)": np.pi / 180,
    "A.speed": np.pi / 180,
    "speed(P)": 1e-3,
    "ax(P)": 1e-3,
    "A.fx": 1.0,
    "motor.load": 1e-3,
    "motor.power": 1e-3,
    "motor.load*A.speed": 1e-3 * np.pi / 180,
    "distance(P, R)*A.fy": 1e-3,
    "motor.load + A.fx*x(P)": 1e-3,
}


@pytest.mark.parametrize("formula", UNITS)
def test_the_same_measure_in_mm_and_degrees_is_the_same_physics(formula):
    si, mm = arm(it=formula), arm(MM, it=formula)
    si.add_motor("motor", "A", torque=0.3)
    mm.add_motor("motor", "A", torque=300)
    assert at(mm)["it"] * UNITS[formula] == pytest.approx(at(si)["it"], rel=ROUNDED)


def test_loads_are_those_of_hand_calculation():
    m = arm(load="motor.load", power="motor.power", given="turn.load")
    m.add_motor("motor", "A", torque="0.3")
    m.add_driver("turn", "A", "0.5 + 2*(t - 3) + 2*(t - 3)**2")  # acceleration of 4 rad/s^2
    found = at(m)
    assert (found["load"], found["power"]) == pytest.approx((0.3, 0.6), rel=ROUNDED)
    inertia = 2.0 * (0.1**2 / 3 + 0.001**2 / 4)  # of a solid cylinder about a diameter at its end
    # the driver gives what the motor does not
    assert abs(found["given"]) == pytest.approx(abs(4 * inertia - 0.3), rel=1e-9)


def test_measures_may_name_measures_and_parameters():
    m = arm(twice="2*once - gap", once="x(P)")
    m.parameters = {"gap": 0.05}
    assert at(m)["twice"] == pytest.approx(0.2 * np.cos(0.5) - 0.05, rel=ROUNDED)
    assert at(m.with_(gap=0.0))["twice"] == pytest.approx(0.2 * np.cos(0.5), rel=ROUNDED)


def test_toe_and_camber_of_a_wheel_carrier_are_those_of_scipy():
    m = ld.Mechanism("wheel", units={"length": "mm", "angle": "deg"})
    body = m.add_body("carrier", ld.Inertia.sphere(1.0, 100))
    m.add_joint("F", ld.Free(), m.ground, body, at=(0, 0, 0))
    points = {"inner": (10, 500, 300), "outer": (12, 620, 305)}
    for name, p in points.items():
        m.add_point(name, p, on="carrier")
    m.add_measure("toe", "angle(inner, outer) - 90")
    m.add_measure("camber", "angle(inner, outer, about=x)")
    system = m.compile()
    turn = Rotation.from_euler("xyz", [4.0, -3.0, 7.0], degrees=True)
    x, y, z, w = turn.as_quat()
    found = ld.analyses.measures(system, system.state([0.01, 0.02, 0.03, w, x, y, z]))
    d = turn.apply(np.subtract(points["outer"], points["inner"]))
    assert found["toe"] == pytest.approx(np.degrees(np.arctan2(d[1], d[0])) - 90, abs=1e-11)
    assert found["camber"] == pytest.approx(np.degrees(np.arctan2(d[2], d[1])), abs=1e-11)


# ------------------------------------------------------------------------------------------------ mechanisms


def four_bar():
    m = drawing()
    m.add_point("A0", "A", on="ground")
    m.add_point("B0", "B", on="crank")
    m.add_point("C0", "C", on="coupler")
    m.add_point("D0", "D", on="ground")
    m.add_point("E", on="coupler", from_="B", to="C", length=400, angle=30)
    for name, formula in {
        "turn": "angle(A0, B0)",
        "mu": "angle(B0, C0, D0)",
        "rise": "y(E)",
        "loop": "C + A + B - D",
        "loop_speed": "C.speed + A.speed + B.speed - D.speed",
        "loop_acceleration": "C.acceleration + A.acceleration + B.acceleration - D.acceleration",
        "ratio": "D.speed/A.speed",
    }.items():
        m.add_measure(name, formula)
    return m


def by_law_of_cosines(turn):
    """Transmission angle and height of the coupler point, mm, of the four-bar at crank angles in rad."""
    B = 300 * np.array([np.cos(turn), np.sin(turn)])
    diagonal = np.hypot(1000 - B[0], B[1])
    mu = np.arccos((900**2 + 700**2 - diagonal**2) / (2 * 900 * 700))
    coupler = np.arctan2(-B[1], 1000 - B[0]) + np.arccos((900**2 + diagonal**2 - 700**2) / (2 * 900 * diagonal))
    return np.degrees(mu), B[1] + 400 * np.sin(coupler + np.pi / 6)


def test_a_drive_of_a_four_bar_has_the_transmission_angle_and_coupler_point_of_the_closed_form(tmp_path):
    turn = ld.drive(four_bar().compile(), "A", (0, 720, 25))  # 30 degrees a step, two turns
    mu, rise = by_law_of_cosines(np.pi / 3 + np.radians(turn.data["parameter"].values))
    # the drive closes loops to 1e-10 of the size at least
    assert np.abs(turn["mu"] - mu).max() < 1e-7
    assert np.abs(turn["rise"] - rise).max() < 1e-6
    assert np.abs(turn["turn"] - np.linspace(60, 780, 25)).max() < 1e-9
    assert turn["mu"].attrs["units"] == "deg"
    assert np.array_equal(turn.to_dataframe()["rise [mm]"], turn["rise"])
    with pytest.raises(ld.LoopdynError, match="'ratio' depends on speeds, which this drive does not have"):
        turn["ratio"]


@pytest.mark.parametrize("cuts", [["B"], ["C"], ["D"]])
def test_coordinates_speeds_and_accelerations_of_cut_joints_fulfil_the_loop_equation(cuts):
    # all axes are parallel: the rocker has turned by D, and by A + B + C
    system = four_bar().compile(cuts)
    run = ld.simulate(system, ld.assemble(system, v={"A": np.degrees(3.0)}), (0, 3), progress=False)
    assert np.ptp(run["turn"].values) > 400  # more than a turn
    assert np.abs(run["loop"]).max() < 1e-6  # deg; loops are closed to 1e-10 rad at least
    assert np.abs(run["loop_speed"]).max() < 1e-6
    assert np.abs(run["loop_acceleration"]).max() < 1e-5


def test_the_stroke_of_a_slider_crank_is_that_of_the_closed_form():
    m = ld.Mechanism("press", units={"length": "mm", "angle": "deg"}, parameters={"crank": 50, "rod": 200})
    m.add_point("O", (0, 0, 0), on="ground")
    m.add_point("B", on="crank", from_="O", length="crank", angle=90)
    m.add_point("C", on="slide", from_=("O", "B"), lengths=("sqrt(rod**2 - crank**2)", "rod"), side="right")
    m.add_body("crank", ld.Inertia.rod(1.0, "O", "B", 5))
    m.add_body("rod", ld.Inertia.rod(1.0, "B", "C", 5))
    m.add_body("slide", ld.Inertia.point(1.0, at="C"))
    m.add_joint("A", ld.Revolute(axis=Z), m.ground, "crank", at="O")
    m.add_joint("K", ld.Revolute(axis=Z), "crank", "rod", at="B")
    m.add_joint("L", ld.Revolute(axis=Z), "rod", "slide", at="C")
    m.add_joint("S", ld.Prismatic(axis=(1, 0, 0)), m.ground, "slide", at="C")
    m.add_measure("stroke", "distance(O, C) - (rod - crank)")
    turn = ld.drive(m.compile(), "A", (0, 345, 24))
    angle = np.pi / 2 + np.radians(turn.data["parameter"].values)
    expected = 50 * np.cos(angle) + np.sqrt(200**2 - (50 * np.sin(angle)) ** 2) - 150
    assert np.abs(turn["stroke"] - expected).max() < 1e-6  # mm; loops are closed to 1e-10 of the size


# ------------------------------------------------------------------------------------------------- runs, events


def spinning(units=MM, events=(), t_eval=None, **measures):
    """Run of 10 s at 2 rad/s, without loads."""
    system = arm(units, **measures).compile()
    t_eval = np.linspace(0, 10, 4) if t_eval is None else t_eval
    return ld.simulate(system, system.state([0.0], [2.0]), (0, 10), t_eval=t_eval, events=events, progress=False)


def test_full_turns_are_counted_between_outputs_further_apart_than_a_turn():
    run = spinning(turn="angle(O, P)", seen="angle(R, O, P, about=z)")
    assert run["turn"].values == pytest.approx(np.degrees(2.0 * run.path.t), rel=STEPS)
    assert run["seen"].values == pytest.approx(np.degrees(2.0 * run.path.t) - 90, rel=STEPS)


def test_events_on_measures_happen_at_the_times_of_the_closed_form():
    events = [
        ld.events.Crossing("turn - 800", "far"),
        ld.events.Crossing("high - 50", "up", direction=1),
        ld.events.Crossing("A.speed - 1000", "never"),
    ]
    run = spinning(events=events, turn="angle(O, P)", high="y(P)")
    times = {name: [e.t for e in run.events if e.name == name] for name in ("far", "up", "never")}
    assert times["far"] == pytest.approx([np.radians(800) / 2], rel=STEPS)
    assert times["up"] == pytest.approx((np.pi / 6 + 2 * np.pi * np.arange(4)) / 2, rel=STEPS)
    assert times["never"] == []


def test_an_angle_that_passes_half_a_turn_is_no_event():
    run = spinning(events=[ld.events.Crossing("turn - 5000", "never")], turn="angle(O, P)")
    assert run.events == ()


def test_events_on_angles_survive_a_restart(tmp_path):
    system = arm(MM, turn="angle(O, P)").compile()
    given = {"t_eval": np.linspace(0, 10, 41), "events": [ld.events.Crossing("turn - 800", "far")], "progress": False}
    first = system.state([0.0], [2.0])
    whole = ld.simulate(system, first, (0, 10), **given)
    again = ld.simulate(system, first, (0, 10), checkpoint=tmp_path / "c", **given)
    resumed = ld.simulate(system, first, (0, 10), checkpoint=tmp_path / "c", **given)
    assert [e.t for e in whole.events] == [e.t for e in again.events] == [e.t for e in resumed.events]


def test_events_on_loads_are_refused():
    with pytest.raises(ld.LoopdynError, match=r"event 'pull': 'A.fx - 1' depends on loads"):
        spinning(events=[ld.events.Crossing("A.fx - 1", "pull")])


def test_a_run_has_its_measures_in_data_tables_and_files(tmp_path):
    run = spinning(high="y(P)", pull="hypot(A.fx, A.fy)")
    high = 100 * np.sin(2 * run.path.t)
    assert run["high"].values == pytest.approx(high, abs=1e-6)
    data = run.data["measures"]
    assert data.dims == ("time", "measure")
    assert data["measure_units"].values.tolist() == ["mm", "N"]
    assert data.sel(measure="pull").values == pytest.approx(np.full(4, 2.0 * 0.05 * 4.0), rel=STEPS)
    assert np.array_equal(run.to_dataframe()["high [mm]"], run["high"])
    run.to_csv(tmp_path / "run.csv")
    assert "pull [N]" in (tmp_path / "run.csv").read_text().splitlines()[0]
    run.save(tmp_path / "run.nc")
    np.testing.assert_allclose(ld.load_run(tmp_path / "run.nc")["high"], run["high"], atol=1e-12)  # mm, rounding
    with pytest.raises(ld.LoopdynError, match=r"there is no label 'hihg'. Did you mean 'high'"):
        run["hihg"]


def test_measures_are_plotted_one_panel_for_each_unit():
    figure = spinning(high="y(P)", low="x(P)", turn="angle(O, P)").plot.measures()
    assert [ax.get_ylabel() for ax in figure.axes] == ["mm", "deg"]


def test_a_complex_step_gives_the_derivatives_of_closed_forms():
    system = arm(high="y(P)", gap="distance(P, R)", turn="angle(O, P)", pace="vx(P)", push="ay(P)").compile()
    h = 1e-30
    zero = np.zeros(1)
    q, v, a = (np.full((1, 1), x, complex) for x in (0.5, 2.0, 3.0))

    def derivative(name, **step):
        p = {"q": q, "v": v, "a": a} | {key: x + 1j * h for key, x in {"q": q, "v": v, "a": a}.items() if key in step}
        return Measured(system, Path(zero, p["q"], p["v"], p["a"], zero)).values(name)[0].imag / h

    gap = np.sqrt(0.05 - 0.04 * np.sin(0.5))
    assert derivative("high", q=1) == pytest.approx(0.1 * np.cos(0.5), rel=ROUNDED)
    assert derivative("gap", q=1) == pytest.approx(-0.02 * np.cos(0.5) / gap, rel=ROUNDED)
    assert derivative("turn", q=1) == pytest.approx(1.0, rel=ROUNDED)
    assert derivative("pace", v=1) == pytest.approx(-0.1 * np.sin(0.5), rel=ROUNDED)
    assert derivative("push", a=1) == pytest.approx(0.1 * np.cos(0.5), rel=ROUNDED)


# ----------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("formula", "words"),
    [
        ("x(P) + A", "column 8: '+' joins mm and deg"),
        ("x(P) + 2*y(P)**2", "'+' joins mm and mm^2"),
        ("max(x(P), speed(P))", "'max' joins mm and mm/s"),
        ("x(P) if A > t else 0", "'a comparison' joins"),
        ("sin(A)", "'sin' takes radians, its argument is in deg. Write sin(radians(...))"),
        ("exp(x(P))", "'exp' of a quantity in mm"),
        ("x(P)**A", "the exponent is in deg"),
        ("motor.load + A.fx*x(P)*1", "joins N*m and N*mm"),
        ("distance(P)", "'distance' takes 2 points, 1 given. Write distance(P, Q)"),
        ("distance(P, Q)", "there is no point 'Q'"),
        ("distance(P, N)", "point 'N' is on no body. Write 'on: BODY'"),
        ("x(P, hand)", "there is no body 'hand'"),
        ("angle(O, P, about=w)", "'about=w' is no axis"),
        ("distance(P, 3)", "the name of a point is expected here"),
        ("P + 1", "'P' is a point and no number. Write e.g. x(P)"),
        ("A.spede", "unknown name 'A.spede'. Did you mean 'A.speed'?"),
        ("motr.load", "unknown name 'motr.load'. Did you mean 'motor.load'?"),
        ("dist(P, O)", "unknown function 'dist'. Did you mean 'distance'?"),
        ("it + 1", "refers to itself: it -> it"),
        ("1/0", "has no finite value"),
    ],
)
def test_wrong_formulas_are_refused_at_compile_with_their_place(formula, words):
    m = arm({"length": "mm", "angle": "deg"}, it=formula)
    m.add_point("N", (0, 0, 0))
    m.add_motor("motor", "A", torque=1)
    with pytest.raises(ld.errors.ModelError, match="measure 'it': .*" + re.escape(words)):
        m.compile()


def test_all_wrong_measures_are_reported_at_once_and_with_their_lines(tmp_path):
    file = tmp_path / "m.yaml"
    file.write_text("loopdyn: 1\nbodies: {b: {mass: 1}}\nmeasures:\n  one: 'x(P)'\n  two: 'nothing + 1'\n  b: 't'\n")
    with pytest.raises(ld.errors.ModelError) as error:
        ld.load(file).compile()
    found = {p.element: (p.line, p.message) for p in error.value.problems}
    assert [found[f"measure '{name}'"][0] for name in ("one", "two")] == [4, 5]
    assert "there is no point 'P'" in found["measure 'one'"][1]
    assert "unknown name 'nothing'" in found["measure 'two'"][1]
    assert found["measure 'b'"] == (6, "there is a body of this name")


def test_systems_with_other_parameters_have_their_own_measures():
    m = four_bar()
    m.add_measure("long", "distance(B0, C0)/coupler + start")
    system = m.compile()
    other = system.with_parameters(coupler=850.0, start=50.0)
    reference = other.state()
    assert ld.analyses.measures(other, reference)["long"] == pytest.approx(51.0, rel=ROUNDED)
    assert ld.analyses.measures(system, system.state())["long"] == pytest.approx(61.0, rel=ROUNDED)
    m.add_measure("bad", "1/(coupler - 800)")
    with pytest.raises(ld.errors.ModelError, match=r"measure 'bad': .* has no finite value"):
        m.compile().with_parameters(coupler=800.0)


def test_measures_print_as_a_table_with_units():
    assert str(at(arm(MM, high="y(P)"))).split() == ["high", "47.942554", "mm"]


@pytest.fixture(scope="module")
def ball_run():
    """A run of a spatial four-bar whose ball joint C is cut, with measures of it."""
    m = ld.library.rssr()
    m.add_measure("spin", "C.wx.speed + 2*C.wz.speed")
    m.add_measure("part", "C.y")
    m.add_measure("load", "C.fx")
    system = m.compile(cuts=["C"])
    return ld.simulate(system, ld.assemble(system, v={"A": 2.0}), (0, 0.2), t_eval=[0, 0.1, 0.2], progress=False)


def test_measures_read_speeds_of_a_cut_ball_joint(ball_run):
    run, joint = ball_run, ball_run.system.mechanism.joints["C"]
    parent, child = (run.body(str(b)) for b in (joint.parent, joint.child))
    apart = (child["angular_velocity"] - parent["angular_velocity"]).values
    # Frames of both bodies are parallel to the world at the reference pose: M has the axes of the child.
    own = np.einsum("nij,ni->nj", child["rotation"].values, apart)
    assert run["spin"].values == pytest.approx(own[:, 0] + 2.0 * own[:, 2], rel=STEPS)
    assert run.data["measures"].sel(measure="spin").values.tolist() == run["spin"].values.tolist()
    assert run["part"].values == pytest.approx(run["C.y"].values, rel=ROUNDED)


def test_accelerations_of_a_cut_ball_joint_are_refused_by_name():
    m = ld.library.rssr()
    m.add_measure("bad", "C.wx.acceleration")
    with pytest.raises(ld.LoopdynError, match=r"C\.wx\.acceleration.*other cuts"):
        _ = ld.analyses.measures(m.compile(cuts=["C"]))["bad"]


def test_runs_are_pickled_and_copied_after_a_measure_was_read(ball_run):
    before = ball_run["load"].values  # N, and the Dataset is made, whose variables are computed when they are read
    assert "wrench" in ball_run.data
    for again in (pickle.loads(pickle.dumps(ball_run)), copy.deepcopy(ball_run)):
        assert again["load"].values.tolist() == before.tolist()
        assert again.data["measures"].values.tolist() == ball_run.data["measures"].values.tolist()


def test_turns_of_cut_joints_follow_from_rates_between_distant_outputs():
    m = ld.library.bennett()  # four revolutes in space, all of which turn fully: no path of the tree counts the turns
    m.gravity = (0.0, 0.0, 0.0)
    m.add_measure("turned", "P1")
    runs = []
    for cut in ("P1", "P3"):
        system = m.compile(cuts=[cut])
        state = ld.assemble(system, q={"P1": 0.3}, v={"P1": 40.0})
        # 0.125 s apart: eight outputs for about six and a half turns
        runs.append(ld.simulate(system, state, (0.0, 1.0), t_eval=np.linspace(0.0, 1.0, 9), progress=False))
    cut, in_tree = runs
    assert in_tree.path.q[-1, in_tree.system.coordinates.index("P1")] > 30.0
    # Two integrations with relative tolerances of 1e-8 a step, over six turns.
    for label in ("P1", "turned"):
        assert cut[label].values == pytest.approx(in_tree["P1"].values, abs=1e-5)
    assert in_tree["P3"].values == pytest.approx(cut["P3"].values, abs=1e-5)


def test_one_measure_serves_all_uses_with_the_numbers_of_its_closed_form(tmp_path):
    """Height l sin(A) of the tip of an arm, A in degrees, l in mm, that turns at 90 deg/s: y = l sin(90 deg t)."""
    m = arm(MM, high="y(P)")
    m.gravity = (0, 0, 0)
    m.parameters["l"] = 100.0
    m.points["P"] = m.points["P"].model_copy(update={"at": ("l", 0, 0)})
    m.add_motor("motor", "A", torque="0*high")
    m.add_motor("pull", "A", torque=0.0)
    system = m.compile()
    start = system.state({"A": 0.0}, {"A": 90.0})
    times = np.linspace(0, 1, 11)
    expected = 100.0 * np.sin(0.5 * np.pi * times)
    event = ld.events.Crossing("high - 50", "half way")  # sin(30 deg) = 1/2: after a third of a second
    run = ld.simulate(system, start, (0, 1), t_eval=times, events=[event], progress=False)
    assert run.events[0].t == pytest.approx(1 / 3, abs=1e-8)
    np.testing.assert_allclose(run["high"], expected, atol=1e-6)
    figure = run.plot.measures("high")
    np.testing.assert_allclose(figure.axes[0].lines[0].get_ydata(), expected, atol=1e-6)
    plt.close(figure)
    run.to_csv(tmp_path / "run.csv")
    column = pd.read_csv(tmp_path / "run.csv").filter(regex=r"\bhigh\b")
    np.testing.assert_allclose(column.to_numpy()[:, 0], expected, atol=1e-6)
    np.testing.assert_allclose(ld.drive(system, "A", (0, 90, 11))["high"], expected, atol=1e-9)
    study = ld.study(m, {"l": [100, 150]}, {"top": "peak(high)"}, over={"A": (0, 30, 4)}, progress=False)
    assert study["top"].values == pytest.approx([50.0, 75.0])
    given = {"over": {"A": (0, 30, 4)}, "tolerances": {"l": "± 1"}, "samples": 4, "progress": False}
    spread = ld.tolerance(m, {"top": "peak(high)"}, **given)
    assert spread.nominal["top"] == pytest.approx(50.0)
    at = system.state({"A": 30.0})
    slope = ld.sensitivity(system, "high", "l", state=at)
    assert (slope.value("high"), float(slope.derivatives[0, 0])) == pytest.approx((50.0, 0.5))
    linear = ld.linearize(system, at, outputs=["high"])  # mm per degree: l cos(30 deg) pi/180
    assert float(linear.C.sel(output="high", state="A")) == pytest.approx(100.0 * np.sqrt(0.75) * np.pi / 180)
    m.forces["motor"] = m.forces["motor"].model_copy(update={"torque": "3*high"})
    law = ld.linearize(m.compile(), at)  # N mm: 150 at 30 degrees, against the inertia of the arm
    assert float(law.residual.sel(rate="A.speed")) == pytest.approx(np.degrees(0.15 / INERTIA), rel=1e-9)
