"""Measures in laws of forces: against equations written by hand, other elements, and the same model cut elsewhere."""

import re

import numpy as np
import pytest
from scipy.integrate import quad, solve_ivp
from tests.unit.test_measures import INERTIA, MM, arm

import loopdyn as ld
from loopdyn.system.builder import Builder

ROUNDED = 1e-12  # relative: some tens of operations on numbers of the size of one, each rounded to 1.1e-16
SOLVED = 1e-9  # relative: systems of at most 12 equations are solved in between, conditioned below 1e5
FORMULATIONS = (
    ld.Graph(),
    ld.Relative(),
    ld.Rcr(),
    ld.Partition(),
    ld.Closure(),
    ld.Momentum(),
    ld.Absolute(),
    ld.formulations.Oracle(),
)
WEIGHT = 2.0 * 9.81 * 0.05  # N m of gravity along -y at the angle zero


def spring_by_measure(units=None):
    """Arm of 0.1 m; a motor as strong as an elastic band from its tip to R, (0, 0.2 m), of lever arm x(P) y(R)/d."""
    m = arm(units, long="distance(P, R)", lever="x(P)*y(R)/long", slow="A.speed")
    m.gravity = tuple(x / m.units.factor("acceleration") for x in (0.0, -9.81, 0.0))
    length, torque = m.units.factor("length"), m.units.factor("torque")
    m.parameters |= {
        "k": 40.0 * length**2 / torque,
        "free": 0.05 / length,
        "c": 0.01 * m.units.factor("angle") / torque,
    }
    m.add_motor("band", "A", torque="k*(long - free)*lever - c*slow")
    return m


def acceleration(q, v):
    """Of the arm, by hand: J q'' = k (d - d0) x(P) y(R)/d - c q' - m g l cos(q)/2, d^2 = l^2 + h^2 - 2 l h sin(q)."""
    d = np.sqrt(0.05 - 0.04 * np.sin(q))
    return (40.0 * (d - 0.05) * 0.02 * np.cos(q) / d - 0.01 * v - WEIGHT * np.cos(q)) / INERTIA


@pytest.mark.parametrize("units", [None, MM], ids=["SI", "mm"])
@pytest.mark.parametrize("formulation", FORMULATIONS, ids=lambda f: type(f).__name__)
def test_an_arm_with_a_torque_by_measures_obeys_the_equation_written_by_hand(formulation, units):
    system = spring_by_measure(units).compile()
    state = system.state([0.4], [3.0])  # arrays are SI
    assert ld.accelerations(system, state, formulation) == pytest.approx([acceleration(0.4, 3.0)], rel=SOLVED)


def test_a_run_follows_the_equation_and_its_energy_is_accounted_for():
    system = spring_by_measure(MM).compile()
    run = ld.simulate(system, system.state([0.4], [0.0]), (0.0, 2.0), rtol=1e-10)
    by_hand = solve_ivp(lambda t, y: [y[1], acceleration(*y)], (0, 2), [0.4, 0.0], rtol=1e-12, atol=1e-14)
    assert float(run.path.q[-1, 0]) == pytest.approx(by_hand.y[0, -1], abs=1e-7)  # errors grow some hundredfold in 2 s
    assert abs(run.energy_error) < 1e-8  # the balance holds to the tolerance of the integration
    torque = run["band.load"].values * 1e-3  # declared in N mm
    assert np.allclose(run["band.power"], torque * run.path.v[:, 0], rtol=ROUNDED, atol=ROUNDED)


def test_the_stiffness_at_an_equilibrium_is_the_derivative_of_the_law():
    def moment(q):
        return INERTIA * acceleration(q, 0.0)

    rest = ld.equilibrium(spring_by_measure().compile())
    q, h = float(rest["A"]), 1e-5
    assert moment(q) == pytest.approx(0.0, abs=1e-8)
    slope = -(moment(q + h) - moment(q - h)) / (2 * h)  # central differences: good to 1e-9 relative
    assert rest.stiffness[0, 0] == pytest.approx(slope, rel=1e-6)


def band(**given):
    """Mechanism of two arms on slides and pins, with a pull between their tips by an actuator or a spring-damper."""
    m = ld.Mechanism("band", gravity=(0, -9.81, 0))
    for name, x in (("left", 0.0), ("right", 1.0)):
        m.add_body(name, ld.Inertia.rod(1.0, (x, 0, 0), (x, 0.4, 0), 0.01))
        m.add_joint(name[0].upper(), ld.Revolute(axis=(0, 0, 1)), m.ground, name, at=(x, 0, 0))
        m.add_point(f"{name}_tip", (x, 0.4, 0), on=name)
    ends = {"body1": "left", "body2": "right", "point1": (0, 0.4, 0), "point2": (1, 0.4, 0)}
    m.add_force("pull", given["force"](**ends, **given["law"]))
    for name, formula in given.get("measures", {}).items():
        m.add_measure(name, formula)
    return m


@pytest.mark.parametrize("formulation", [ld.Graph(), ld.Absolute(), ld.Momentum()], ids=lambda f: type(f).__name__)
def test_an_actuator_that_reads_a_distance_is_a_spring_damper(formulation):
    spring = band(force=ld.forces.SpringDamper, law={"stiffness": 30.0, "damping": 2.0, "length": 0.9})
    rate = "((x(right_tip) - x(left_tip))*(vx(right_tip) - vx(left_tip))"
    rate += " + (y(right_tip) - y(left_tip))*(vy(right_tip) - vy(left_tip)))/far"
    measures = {"far": "distance(left_tip, right_tip)", "rate": rate}
    law = {"force": "-30*(far - 0.9) - 2*rate"}
    found = []
    for m in (spring, band(force=ld.forces.Actuator, law=law, measures=measures)):
        system = m.compile()
        found.append(ld.accelerations(system, system.state([0.3, -0.7], [1.0, 2.0]), formulation))
    assert found[0] == pytest.approx(found[1], rel=SOLVED)


def test_components_of_an_applied_force_and_coordinates_in_the_frame_of_a_body():
    m = arm(side="x(R, arm)", height="y(P)")
    m.gravity = (0, 0, 0)
    m.add_force(
        "f", ld.forces.AppliedForce(body="arm", force=(0, "3*height + t", 0), torque=(0, 0, "side"), at=(0.1, 0, 0))
    )
    system = m.compile()
    q = 0.5
    torque = (3 * 0.1 * np.sin(q) + 2.0) * 0.1 * np.cos(q) + 0.2 * np.sin(q)
    assert ld.accelerations(system, system.state([q], [0.0], t=2.0)) == pytest.approx([torque / INERTIA], rel=SOLVED)


def test_the_angle_between_three_points_is_a_measure_of_laws():
    m = arm(between="angle(P, O, R)")
    m.gravity = (0, 0, 0)
    m.add_motor("motor", "A", torque="between")
    system = m.compile()
    found = ld.accelerations(system, system.state([0.5], [0.0]))
    assert found == pytest.approx([(np.pi / 2 - 0.5) / INERTIA], rel=SOLVED)


TURNED = 3 * 2 * np.pi + 0.7  # three turns of a crank and a part of the fourth


def driven(law, cuts, measures):
    """A crank-rocker without forces but a motor on the rocker."""
    m = ld.library.four_bar()
    m.forces.clear()
    for name, formula in measures.items():
        m.add_measure(name, formula)
    m.add_motor("motor", "D", torque=law)
    return m.compile(cuts=cuts)


@pytest.mark.parametrize("label", ["A", "C"])
@pytest.mark.parametrize("formulation", FORMULATIONS, ids=lambda f: type(f).__name__)
def test_a_joint_that_a_law_reads_may_be_cut_and_turn_many_times(label, formulation):
    measures = {"turn": label, "rate": f"{label}.speed"}
    found = []
    for cuts in ([label], ["D"]):  # cut, its angle is measured, its turns follow from the tree; else it is a coordinate
        system = driven("-2*turn - rate", cuts, measures)
        state = ld.assemble(system, {"A": TURNED}, {"A": 2.0})
        a = ld.accelerations(system, state, formulation)
        speeds = [system.speeds.index(x) for x in "ABC" if x in system.speeds and x != label]
        read = ld.analyses.measures(system, state)["turn"]
        assert read == pytest.approx(state[label], rel=ROUNDED)
        found.append([read, *a[speeds]])
    assert found[0] == pytest.approx(found[1], rel=SOLVED)
    assert abs(found[0][0]) > (4 * np.pi if label == "A" else 0.1)


def test_a_run_that_turns_reads_the_angle_of_a_cut_joint_with_its_turns():
    ends = []
    for cuts in (["A"], ["C"]):
        system = driven("-0.5*turn", cuts, {"turn": "A"})
        start = ld.assemble(system, {"A": 0.3}, {"A": 60.0})
        run = ld.simulate(system, start, (0.0, 0.4), rtol=1e-9)
        ends.append([float(run["B"][-1]), float(run["C"][-1]), float(run["turn"][-1])])
    assert ends[0] == pytest.approx(ends[1], rel=1e-6)  # two runs with the tolerance 1e-9 over some hundred steps
    assert ends[0][2] > 4 * np.pi


def test_a_turning_coordinate_of_the_tree_that_a_measure_reads_keeps_its_turns():
    m = arm(turned="A")
    m.gravity = (0, 0, 0)
    m.add_motor("motor", "A", torque="-0.001*turned")
    system = m.compile()
    run = ld.simulate(system, system.state([0.0], [40.0]), (0.0, 0.5), rtol=1e-10)
    w = np.sqrt(0.001 / INERTIA)  # harmonic motion, over more than a turn
    assert float(run["A"][-1]) == pytest.approx(40.0 / w * np.sin(0.5 * w), rel=1e-7)
    assert float(run["A"].max()) > 2 * np.pi


def test_parameters_and_points_of_measures_are_those_of_a_full_compilation():
    m = arm(long="gain*distance(P, R)")
    m.parameters |= {"gain": 2.0, "high": 0.2}
    m.points["R"] = m.points["R"].model_copy(update={"at": (0, "high", 0)})
    m.add_motor("motor", "A", torque="long")
    other = m.compile().with_parameters(gain=3.0, high=0.3)
    m.parameters |= {"gain": 3.0, "high": 0.3}
    full = m.compile()
    assert np.array_equal(other.ints, full.ints)
    assert np.array_equal(other.floats, full.floats)


def test_a_file_says_the_same(tmp_path):
    m = spring_by_measure(MM)
    m.save(tmp_path / "arm.yaml")
    again = ld.load(tmp_path / "arm.yaml").compile()
    state = again.state([0.4], [3.0])
    assert ld.accelerations(again, state) == pytest.approx([acceleration(0.4, 3.0)], rel=SOLVED)


def test_the_work_of_a_law_of_positions_is_its_integral():
    m = arm(high="y(P)")
    m.gravity = (0, 0, 0)
    m.add_motor("motor", "A", torque="5*high")
    system = m.compile()
    run = ld.simulate(system, system.state([0.2], [1.0]), (0.0, 0.3), rtol=1e-11)
    q, v = run.path.q[:, 0], run.path.v[:, 0]
    work = quad(lambda x: 0.5 * np.sin(x), q[0], q[-1])[0]
    assert 0.5 * INERTIA * (v[-1] ** 2 - v[0] ** 2) == pytest.approx(work, rel=1e-8)


@pytest.mark.parametrize(
    ("measure", "words"),
    [
        ("A.acceleration", "force 'motor': the measure 'it' depends on accelerations"),
        ("ax(P)", "force 'motor': the measure 'it' depends on accelerations"),
        ("A.fx", "force 'motor': the measure 'it' depends on loads"),
        ("motor.power", "force 'motor': the measure 'it' depends on loads"),
        ("angle(Q, P)", "full turns of 'angle\\(Q, P\\)' do not follow from joint coordinates"),
        ("2*it", "refers to"),
        ("nothing + 1", "measure 'it': .* unknown name 'nothing'"),
    ],
)
def test_a_measure_that_no_law_can_read_is_refused_in_words(measure, words):
    m = arm(it=measure)
    m.add_point("Q", (0.3, 0, 0), on="ground")  # the arm passes it: the direction from it depends on the way there
    m.add_motor("motor", "A", torque="it")
    with pytest.raises(ld.errors.ModelError, match=words):
        m.compile()


def test_what_is_no_law_of_a_force_refuses_measures():
    m = arm(high="y(P)")
    m.add_driver("drive", "A", "high")
    with pytest.raises(ld.errors.ModelError, match=r"measure 'high' cannot be used in it.* Laws of forces may name"):
        m.compile()
    m = arm(speed="A.speed")
    m.add_motor("motor", "A", torque="speed")
    with pytest.raises(ld.errors.ModelError, match=re.escape("'speed' is both a measure and a variable")):
        m.compile()
    m = arm(high="y(P)")
    m.add_driver("drive", "A", ld.forces.Table(of="high", points=[(0, 1), (1, 2)]))
    with pytest.raises(ld.errors.ModelError, match="measure 'high' cannot be used in it"):
        m.compile()


@pytest.mark.parametrize("units", [None, MM], ids=["SI", "mm"])
@pytest.mark.parametrize("of", ["angle(O, P)", "angle(P, X, O2, about=z)"])
def test_a_direction_in_a_law_counts_the_turns_of_the_joint(units, of):
    # the direction from the pin to the tip is the angle of the joint; that seen from the fixed X is its opposite
    m = arm(units, it=of)
    m.gravity = (0, 0, 0)
    one = m.units.factor("length")
    m.add_point("X", (0, 0, 0), on="arm")  # on the axis of the pin, too
    m.add_point("O2", (0.1 / one, 0, 0), on="ground")
    torque = 0.01 * m.units.factor("angle") / m.units.factor("torque")
    sign = 1.0 if of == "angle(O, P)" else -1.0
    m.add_motor("motor", "A", torque=f"{-sign * torque}*it")
    system = m.compile()
    for q in (0.4, 3.0, 3.3, 3 * 2 * np.pi + 0.7, -9.0):
        state = system.state([q], [0.0])
        assert ld.accelerations(system, state) == pytest.approx([-0.01 * q / INERTIA], rel=SOLVED)
        assert ld.analyses.measures(system, state)["it"] * m.units.factor("angle") == pytest.approx(sign * q, rel=1e-12)
    run = ld.simulate(system, system.state([0.0], [40.0]), (0.0, 0.5), rtol=1e-10)
    w = np.sqrt(0.01 / INERTIA)  # harmonic motion, over more than a turn
    assert run.path.q[-1, 0] == pytest.approx(40.0 / w * np.sin(0.5 * w), rel=1e-7)
    assert np.abs(run.path.q).max() > 2 * np.pi
    np.testing.assert_allclose(run["it"] * m.units.factor("angle"), sign * run.path.q[:, 0], atol=1e-9)


def test_a_direction_on_a_coupler_counts_turns_whatever_is_cut():
    # the direction of the crank of a crank-rocker is its angle at the pin A plus that of its drawing, 3 turns later too
    found = []
    for cuts in (["A"], ["C"], ["D"]):
        m = ld.library.four_bar()
        m.forces.clear()
        m.add_point("foot", (0, 0, 0), on="ground")
        m.add_point("tip", m.joints["B"].at, on="coupler")  # of the crank as well, by the pin B
        m.add_measure("turn", "angle(foot, tip)")
        m.add_motor("motor", "D", torque="-2*turn")
        system = m.compile(cuts=cuts)
        state = ld.assemble(system, {"A": TURNED}, {"A": 2.0})
        drawn, turn = (ld.analyses.measures(system, x)["turn"] for x in (system.state(), state))
        assert turn == pytest.approx(TURNED + drawn, rel=SOLVED)
        found.append(ld.reactions(system, state)["B.fx"])
    assert found[1] == pytest.approx(found[2], rel=SOLVED)
    assert found[0] == pytest.approx(found[2], rel=SOLVED)


@pytest.mark.parametrize("interpolation", ["linear", "monotone"])
def test_a_table_of_a_measure_is_a_law_of_it(interpolation):
    # 2 N m per metre of height above 20 mm, none below: by hand
    m = arm(MM, high="y(P)")
    m.gravity = (0, 0, 0)
    points = [(-100, 0), (20, 0), (100, 160)]  # N mm against mm
    m.add_motor("motor", "A", torque=ld.forces.Table(of="high", points=points, interpolation=interpolation))
    system = m.compile()
    for height in (0.05, 0.01, -0.05):
        q = float(np.arcsin(height / 0.1))
        torque = 2.0 * max(height - 0.02, 0.0)
        if interpolation == "monotone" and height > 0.02:
            # cubic from (20, 0) with slope 0 to (100, 160) with the end slope of PCHIP for these points
            from scipy.interpolate import PchipInterpolator

            torque = float(PchipInterpolator(*zip(*points, strict=True))(1000 * height)) / 1000
        assert ld.accelerations(system, system.state([q], [0.0])) == pytest.approx(
            [torque / INERTIA], rel=SOLVED, abs=1e-9
        )
    if interpolation == "linear":  # over its corner and back: energy is that of the law, integrated by hand
        run = ld.simulate(system, system.state([0.0], [1.0]), (0.0, 0.6), rtol=1e-9)
        q, v = run.path.q[:, 0], run.path.v[:, 0]
        high = 0.1 * np.sin(q)
        angle = np.arcsin(0.2)
        work = np.where(high > 0.02, 2 * (0.1 * (np.cos(angle) - np.cos(q)) - 0.02 * (q - angle)), 0.0)
        np.testing.assert_allclose(0.5 * INERTIA * (v**2 - 1.0), work, atol=1e-9)
        assert high.max() > 0.05


def test_a_table_of_a_measure_that_is_left_is_reported_and_its_parameters_are_those_of_a_full_compilation(tmp_path):
    m = arm(high="gain*y(P)")
    m.parameters |= {"gain": 1.0}
    m.gravity = (0, 0, 0)
    m.add_motor("motor", "A", torque=ld.forces.Table(of="high", points=[(-0.01, 0.1), (0.05, 0.1)]))
    with pytest.warns(ld.LoopdynWarning, match="its table of high goes from -0.01 to 0.05 and is left"):
        run = ld.simulate(m.compile(), t_span=(0, 1.0), progress=False)
    assert "leaves its table of high" in next(e.name for e in run.events)
    other = m.compile().with_parameters(gain=2.0)
    m.parameters["gain"] = 2.0
    full = m.compile()
    assert np.array_equal(other.ints, full.ints)
    assert np.array_equal(other.floats, full.floats)
    m.save(tmp_path / "arm.yaml")
    assert np.array_equal(ld.load(tmp_path / "arm.yaml").compile().floats, full.floats)


def test_coordinates_of_cut_joints_are_read_beside_the_terms_of_a_law():
    m = ld.library.watt()
    m.add_point("P", (0.4, 0.5, 0.0), on=list(m.bodies)[1])
    m.add_point("O", (0.0, 0.0, 0.0), on="ground")
    m.add_measure("far", "distance(P, O)")
    m.add_motor("motor", next(iter(m.joints)), torque="far")
    system = m.compile()
    run = ld.simulate(system, t_span=(0.0, 0.1), t_eval=[0.0, 0.05, 0.1], progress=False)
    cut = system.topology.cuts
    assert len(cut) == 2
    for name in cut:  # pins about z: rates and accelerations are differences of those of the two bodies
        parent, child = (run.body(str(b)) for b in (m.joints[name].parent, m.joints[name].child))
        for label, part in ((f"{name}.speed", "angular_velocity"), (f"{name}.acceleration", "angular_acceleration")):
            apart = (child[part] - parent[part]).sel(xyz="z").values
            assert run[label].values == pytest.approx(apart, rel=SOLVED, abs=SOLVED)


def test_no_table_of_labels_is_made_where_no_law_reads_a_measure():
    """It takes a tenth of the time to compile a large mechanism."""
    made = Builder(ld.library.star_ladder(3))
    made.build(None, (), None)
    assert "labels" not in vars(made.placement)
