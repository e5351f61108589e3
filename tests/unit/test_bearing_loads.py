"""Loads of bearings, shaking and counterweights against closed forms; what is not determined is never a fact."""

from __future__ import annotations

import matplotlib
import numpy as np
import pytest
from tests.independent import turn

import loopdyn as ld

matplotlib.use("Agg")
import matplotlib.pyplot as plt

MASS, LENGTH, RATE = 2.0, 0.5, 12.0
EXACT = 1e-9  # relative: a driver holds the motion, so only rounding is left
PERIOD = 2 * np.pi / RATE


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def rotor(gravity: float = 0.0, **extra) -> ld.Mechanism:
    """A rod turning about its end at a constant rate, in the xy plane."""
    m = ld.Mechanism("rotor", gravity=(0, -gravity, 0), **extra)
    m.add_body("rod", ld.Inertia.rod(mass=MASS, start=(0, 0, 0), end=(LENGTH, 0, 0), radius=0.01))
    m.add_joint("A", ld.Revolute(axis=(0, 0, 1)), m.ground, "rod", at=(0, 0, 0))
    m.add_driver("turn", "A", f"{RATE}*t")
    return m


def turned(m: ld.Mechanism, outputs: int = 41) -> ld.Run:
    system = m.compile()
    times = np.linspace(0.0, PERIOD, outputs)
    return ld.simulate(system, ld.assemble(system, q={}), (0.0, PERIOD), t_eval=times, progress=False)


@pytest.fixture(scope="module")
def crank() -> ld.Run:
    """A slider-crank driven at a constant rate through one turn."""
    m = ld.library.slider_crank()
    m.start = type(m.start)()
    m.add_driver("turn", "A", f"{RATE}*t")
    return turned(m)


def test_the_load_of_a_rotor_turns_in_the_world_and_stands_still_in_its_own_axes():
    """The rod is pulled inward by m w^2 l/2; on the child, so towards the pivot."""
    run = turned(rotor())
    pull = MASS * RATE**2 * LENGTH / 2
    loads = run.bearings()
    world, moment, known = loads.load("A", "world")
    angle = RATE * run.path.t
    assert world == pytest.approx(-pull * np.column_stack([np.cos(angle), np.sin(angle), 0 * angle]), abs=EXACT * pull)
    own, _, _ = loads.load("A", "child")
    assert own == pytest.approx(np.tile([-pull, 0.0, 0.0], (len(angle), 1)), abs=EXACT * pull)
    assert np.array_equal(loads.load("A", "parent")[0], world)  # the ground
    assert moment == pytest.approx(0.0, abs=EXACT * pull)
    assert known.all()
    row = loads.table().loc["A radial force"]
    assert [row["peak"], row["mean"], row["rms"]] == pytest.approx([pull] * 3, rel=EXACT)
    assert row["unit"] == "N"
    assert list(loads.table().index) == ["A radial force"]  # nothing else is there


def test_peak_mean_and_rms_of_a_rotor_with_weight():
    """|F|^2 = P^2 + W^2 - 2 P W sin(a) on the child: largest, with its time, when the rod hangs down."""
    g = 100.0
    run = turned(rotor(g), outputs=81)
    P, W = MASS * RATE**2 * LENGTH / 2, MASS * g
    row = run.bearings().table().loc["A radial force"]
    assert row["peak"] == pytest.approx(P + W, rel=EXACT)
    assert row["t_peak"] == pytest.approx(0.75 * PERIOD)
    # the trapezoidal rule is exact to rounding for a whole period of a smooth function
    assert row["rms"] == pytest.approx(np.hypot(P, W), rel=EXACT)


def test_axes_of_a_tilted_spatial_joint_agree_with_each_other():
    run = ld.simulate(
        s := ld.library.bennett().compile(), ld.assemble(s), (0, 0.2), t_eval=np.linspace(0, 0.2, 21), progress=False
    )
    loads = run.bearings()
    data = loads.data
    assert data["force"].dims == ("time", "joint", "axes", "xyz")
    for joint in loads.joints:
        sizes = [np.linalg.norm(loads.load(joint, axes)[0], axis=1) for axes in ("world", "parent", "child")]
        assert np.allclose(sizes, sizes[0], rtol=1e-12)
        # world = rotation of the body times components in the body's axes
        R = run.body(s.bodies[s.joints[joint].child])["rotation"].values
        own = loads.load(joint, "child")[0]
        assert np.einsum("tij,tj->ti", R, own) == pytest.approx(
            loads.load(joint, "world")[0], abs=1e-9 * sizes[0].max()
        )


def test_undetermined_components_are_marked_in_all_axes_and_in_the_table(crank):
    loads = crank.bearings()
    table = loads.table()
    assert bool(table.loc["A radial force", "determined"])
    assert not table.loc["A axial force ?", "determined"]
    force_known = loads.load("B", "world")[2]
    assert force_known.tolist() == [True, True, False, False, False, True]
    # of the guide only the force in the plane of motion is known: no sum is made of what is known and what is not
    assert loads.parts("D")["fx"][2] != loads.parts("D")["fy"][2]
    assert "guiding force" not in loads.parts("D")
    text = str(loads)
    assert "statically indeterminate" in text
    assert "A axial force" in text.splitlines()[-1]


def test_what_mixes_with_an_undetermined_component_is_undetermined_too():
    """The same mechanism turned in space: world axes mix the plane of motion with its normal."""
    tilted = ld.library.turned(ld.library.four_bar(), turn((1, 1, 0), 0.7))
    system = tilted.compile()
    run = ld.simulate(system, ld.assemble(system), (0, 0.1), t_eval=np.linspace(0, 0.1, 11), progress=False)
    assert not run.bearings().load("C", "world")[2][:3].any()
    assert run.bearings().table().loc["C radial force", "determined"]


def test_unbounded_forces_are_left_out_and_counted():
    run = turned(rotor(), outputs=21)
    wrench, unique, _ = run.wrench
    holes = wrench.copy()
    holes[5:8] = np.nan
    loads = ld.results.Bearings.of(run.system, run.path.t, run.path.q, ["A"], holes, unique)
    assert loads.table().loc["A radial force", "peak"] == pytest.approx(MASS * RATE**2 * LENGTH / 2)
    assert "left out: 3 times" in str(loads)


def test_polar_plot_shows_the_line_in_each_body_and_refuses_what_is_not_known(crank):
    figure = turned(rotor()).plot.polar("A")
    ground, rod = figure.axes
    assert "ground" in ground.get_title()
    assert "rod" in rod.get_title()
    angles, sizes = rod.lines[0].get_data()
    assert np.abs(angles) == pytest.approx(np.pi)
    assert sizes == pytest.approx(MASS * RATE**2 * LENGTH / 2)
    assert np.ptp(np.unwrap(ground.lines[0].get_data()[0])) == pytest.approx(2 * np.pi)
    assert [ax.get_title().split(";")[0] for ax in crank.plot.polar("B").axes] == [
        "in axes of the world", "in axes of crank", "in axes of rod",
    ]  # fmt: skip
    with pytest.raises(ld.LoopdynError, match=r"'D' is statically indeterminate.*plot.reactions\('D'\)"):
        crank.plot.polar("D")
    with pytest.raises(ld.LoopdynError, match="there is no joint 'X'"):
        crank.plot.polar("X")


def test_plot_of_reactions_in_other_axes_hatches_what_is_not_determined(crank):
    labels = [text.get_text() for text in crank.plot.reactions("B", "child").axes[0].get_legend().get_texts()]
    assert labels == ["fx", "fy", "fz, indeterminate"]
    with pytest.raises(ld.LoopdynError, match="there are no axes 'moon'"):
        crank.plot.reactions("B", "moon")
    assert len(crank.plot.shaking().axes) == 2


# -------------------------------------------------------------------------------------------- counterweights


@pytest.mark.parametrize("units", [{}, {"length": "mm", "mass": "g"}], ids=["SI", "mm and g"])
def test_a_counterweight_balances_a_rotor_in_any_units(units):
    """m_c r_c = m l/2: no force shakes the frame."""
    k, g = (1000.0, 1000.0) if units else (1.0, 1.0)
    m = ld.Mechanism("rotor", units=units)
    m.add_body("rod", ld.Inertia.rod(mass=MASS * g, start=(0, 0, 0), end=(LENGTH * k, 0, 0), radius=0.01 * k))
    m.add_joint("A", ld.Revolute(axis=(0, 0, 1)), m.ground, "rod", at=(0, 0, 0))
    m.add_driver("turn", "A", f"{RATE}*t")
    run = turned(m)
    change = run.counterweight("rod", 5.0 * g, at=(-MASS * LENGTH / 2 / 5.0 * k, 0, 0))
    pull = MASS * RATE**2 * LENGTH / 2
    assert np.linalg.norm(change.before[:, :3], axis=1) == pytest.approx(pull)
    assert np.abs(change.after).max() < EXACT * pull
    before, after = change.bearings()
    assert before.table().loc["A radial force", "peak"] == pytest.approx(pull)
    assert np.abs(after.wrench).max() < EXACT * pull


def test_a_counterweight_on_a_crank_changes_what_the_kinematics_of_its_point_say(crank):
    """At a constant rate its acceleration is -w^2 p: shaking, load of the drive and bearing A change by m(a - g)."""
    mass, at = 1.2, np.array([-0.08, -0.05, 0.0])
    change = crank.counterweight("crank", mass, at)
    angle = RATE * crank.path.t
    x = at[0] * np.cos(angle) - at[1] * np.sin(angle)
    y = at[0] * np.sin(angle) + at[1] * np.cos(angle)
    p = np.column_stack([x, y, 0 * x])
    force = mass * (-(RATE**2) * p - [0.0, -9.81, 0.0])
    size = np.abs(force).max()
    assert change.after[:, :3] - change.before[:, :3] == pytest.approx(-force, abs=EXACT * size)
    assert change.after[:, 3:] - change.before[:, 3:] == pytest.approx(-np.cross(p, force), abs=EXACT * size)
    drive = change.loads[1].load[:, 0] - change.loads[0].load[:, 0]
    assert drive == pytest.approx(mass * 9.81 * x, abs=EXACT * size)  # lifts its weight; the rate is constant
    before, after = change.bearings()
    assert after.load("A")[0][:, :2] - before.load("A")[0][:, :2] == pytest.approx(force[:, :2], abs=EXACT * size)
    assert after.load("B")[0][:, :2] == pytest.approx(before.load("B")[0][:, :2], abs=EXACT * size)
    table = change.table()
    assert table.loc["B radial force", "peak before"] == pytest.approx(table.loc["B radial force", "peak after"])
    assert "the motion is assumed unchanged" in str(change)
    assert "motor A" in table.index


def test_a_counterweight_on_a_body_written_in_its_own_axes_is_placed_in_the_world():
    m = ld.Mechanism("rotor")
    pose = ld.Frame(position=(0.1, 0.2, 0.0), rotation=ld.joints.Rotation(axis=(0, 0, 1), angle=1.0))
    m.add_body("rod", ld.Inertia(MASS, (0.1, 0, 0), np.diag([0.01, 0.02, 0.02]).tolist()), pose=pose, axes="body")
    m.add_joint("A", ld.Revolute(axis=(0, 0, 1)), m.ground, "rod", at=(0, 0, 0))
    m.add_driver("turn", "A", f"{RATE}*t")
    run = turned(m, outputs=5)
    com = np.array([0.1 + 0.1 * np.cos(1.0), 0.2 + 0.1 * np.sin(1.0), 0.0])
    assert np.abs(run.counterweight("rod", MASS, -com).after[:, :3]).max() < 1e-9


def test_who_keeps_the_motion_must_be_known_for_bearings_and_wrong_bodies_are_refused(crank):
    system = ld.library.slider_crank().compile()
    free = ld.simulate(system, ld.assemble(system), (0, 0.1), t_eval=np.linspace(0, 0.1, 11), progress=False)
    change = free.counterweight("crank", 1.0, (0.1, 0.0, 0.0))
    assert change.after.shape == (len(free.path), 6)
    with pytest.raises(ld.LoopdynError, match="has no motor and no driver"):
        change.bearings()
    assert free.counterweight("crank", 1.0, (0.1, 0.0, 0.0), motors=["A"]).table().loc["motor A", "unit"] == "N*m"
    with pytest.raises(ld.LoopdynError, match=r"there is no body 'krank'. Did you mean 'crank'"):
        crank.counterweight("krank", 1.0, (0, 0, 0))
    with pytest.raises(ld.LoopdynError, match="does not move"):
        crank.counterweight("ground", 1.0, (0, 0, 0))
    with pytest.raises(ld.LoopdynError, match="three numbers"):
        crank.counterweight("crank", 1.0, (0, 0))


# ------------------------------------------------------------------------------------- reactions with loads


def test_reactions_with_the_load_of_a_motor_that_the_model_does_not_have():
    """A lever held level by a motor: its bearing carries the weight, and no moment about its axis."""
    m = ld.Mechanism("lever", gravity=(0, -10, 0))
    m.add_body("rod", ld.Inertia.rod(mass=2.0, start=(0, 0, 0), end=(1, 0, 0), radius=0.01))
    m.add_joint("A", ld.Revolute(axis=(0, 0, 1)), m.ground, "rod", at=(0, 0, 0))
    system = m.compile()
    found = ld.reactions(system, system.state(), np.zeros(1), loads={"A": 10.0})
    assert found["A"]["fy"] == pytest.approx(20.0)
    assert found.residual < 1e-12
    with pytest.raises(ld.LoopdynError, match="there is no joint speed 'B'"):
        ld.reactions(system, system.state(), np.zeros(1), loads={"B": 10.0})
    with pytest.raises(ld.LoopdynError, match="Give the accelerations too"):
        ld.reactions(system, system.state(), loads={"A": 10.0})


def test_a_weight_of_nothing_changes_nothing_and_motors_that_are_too_many_must_be_named():
    """A slider-crank with a motor at the crank and a gas force, a motor too, at the slider."""
    m = ld.library.slider_crank()
    m.add_force("drive", ld.forces.Motor(joint="A", torque=3.0))
    slide = next(name for name, joint in m.joints.items() if joint.type == "prismatic")
    m.add_force("gas", ld.forces.Motor(joint=slide, force=-200.0))
    system = m.compile()
    run = ld.simulate(system, ld.assemble(system), (0.0, 0.1), progress=False)
    with pytest.raises(ld.LoopdynError, match="are redundant"):
        run.counterweight("crank", 0.0, (0, 0, 0)).table()
    before, after = run.counterweight("crank", 0.0, (0, 0, 0), motors=["A"]).bearings()
    # the motor gives 3 N m in the run and in the inverse, so the loads are those of the run
    assert before.wrench == pytest.approx(run.bearings().wrench, abs=1e-6, rel=1e-6, nan_ok=True)
    assert after.wrench == pytest.approx(before.wrench, abs=1e-9, nan_ok=True)
