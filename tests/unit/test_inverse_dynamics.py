"""Inverse dynamics: equal to forward runs, to virtual work written here, and to its stated rules."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from tests.independent import first_derivative
from tests.linkages import linkage, pose
from tests.marks import gallery_slow

import loopdyn as ld

# Loads are found from accelerations that forward dynamics found to rounding (1e-12 or so of the largest term).
EQUAL = 1e-9

G = 9.81


def span(name: str) -> float:
    """Seconds of a short motion of a library mechanism."""
    return 0.01 if name == "andrews" else 0.1


BUILD = dict(ld.library.ALL)
for seed in (2, 5, 7):  # a motor on a joint drawn at random, of the tree or cut; nearly all freedoms have none
    BUILD[f"random {seed}"] = partial(ld.library.random_mechanism, seed, forces=True)
BUILD["random floating"] = partial(ld.library.random_mechanism, 7, forces=True, floating=True, redundant=1)
WITH_MOTORS = [name for name, build in BUILD.items() if any(f.type == "motor" for f in build().forces.values())]


def motors_of(m: ld.Mechanism) -> dict[str, str]:
    return {name: f.joint for name, f in m.forces.items() if f.type == "motor"}


@pytest.fixture(scope="module")
def runs() -> dict[str, ld.results.Run]:
    """Short forward runs of all library mechanisms with motors, and of the five-bar with two."""
    found = {}
    for name in [*WITH_MOTORS, "five_bar"]:
        m = BUILD[name]()
        if name == "five_bar":
            m.add_motor("one", "A", torque="3 - 0.5*speed")
            m.add_motor("two", "E", torque="-2*cos(5*t)")
        system = m.compile()
        times = np.linspace(0.0, span(name), 21)
        found[name] = ld.simulate(system, ld.assemble(system), (0.0, span(name)), t_eval=times, progress=False)
    return found


def test_the_library_has_mechanisms_with_motors():
    assert {"andrews", "stewart_3rrs", "stewart_6ups", "random 2", "random floating"} <= set(WITH_MOTORS)


@pytest.mark.parametrize("name", gallery_slow([*WITH_MOTORS, "five_bar"]))
def test_loads_of_a_run_are_those_its_motors_had(runs, name):
    run = runs[name]
    found = ld.inverse_dynamics(run.system, run)
    of_model = motors_of(run.system.mechanism)
    assert set(found.replaced) == set(of_model)
    for joint in of_model.values():
        asked = found.data["load"].sel(motor=joint).values
        # several motors of a model on one coordinate have one load together
        had = sum(run.data["load"].sel(force=f).values for f, j in of_model.items() if j == joint)
        assert asked == pytest.approx(had, rel=EQUAL, abs=EQUAL * max(1.0, np.abs(had).max()))


@pytest.mark.parametrize("name", gallery_slow([*WITH_MOTORS, "five_bar"]))
def test_loads_put_back_as_motors_give_the_accelerations_of_the_motion(runs, name):
    run = runs[name]
    found = ld.inverse_dynamics(run.system, run)
    system = found.mechanism().compile(cuts=list(run.system.topology.cuts))
    assert system.speeds == run.system.speeds
    size = np.abs(run.path.a).max()
    for k in range(0, len(run.path), 5):
        a = ld.accelerations(system, found.state(k), formulation="oracle")
        assert np.abs(a - run.path.a[k]).max() < EQUAL * size


DRIVEN = {
    "four_bar": {"A": "1 + 3*t + sin(2*t)"},
    "slider_crank": {"A": "12*t"},
    "watt": {"A": "2*t"},
    "stephenson": {"A": "-2*t"},
    "five_bar": {"A": "0.3*sin(3*t)", "E": "0.4*t*t"},
    "rssr": {"A": "0.5*t"},
}


@pytest.mark.parametrize("name", DRIVEN)
def test_loads_of_drivers_in_a_forward_run_are_the_loads_of_motors_for_its_motion(name):
    m = ld.library.ALL[name]()
    labels = [label for j in m.compile().joints.values() for label in j.spec.labels(j.name)[0]]
    motion = {label if label in labels else labels[0]: law for label, law in DRIVEN[name].items()}
    for label, law in motion.items():
        m.add_driver(f"drive {label}", label, law)
    system = m.compile()
    m.start = type(m.start)()
    state = ld.assemble(m.compile(), q={})
    times = np.linspace(0.0, 0.5, 26)
    run = ld.simulate(system, state, (0.0, 0.5), t_eval=times, progress=False)
    loads = run.data["constraint_load"].sel(constraint=[f"drive {label}" for label in motion]).values
    size = np.abs(loads).max()
    of_run = ld.inverse_dynamics(system, run)
    assert np.abs(of_run.load - loads).max() < EQUAL * size
    # the same motion by formulas, in a model without drivers; speeds of the run carry the error of its integration
    bare = ld.library.ALL[name]()
    bare.start = type(bare.start)()
    by_formula = ld.inverse_dynamics(bare.compile(cuts=list(system.topology.cuts)), motion, times, near=state)
    assert by_formula.motors == tuple(motion)
    assert np.abs(by_formula.load - loads).max() < 1e-6 * size


# ------------------------------------------------------------------- a four-bar by virtual work, written here

LENGTHS, MASSES, START = (1.0, 0.3, 0.9, 0.6), (1.0, 2.0, 1.5), 0.7


def centres_and_angles(x: float) -> np.ndarray:
    """Of crank, coupler, rocker at a crank angle: centre x, y and angle, one row each."""
    A, B, C, D = pose(LENGTHS, x, 1)
    angles = (x, np.arctan2(*(C - B)[::-1]), np.arctan2(*(C - D)[::-1]))  # without jumps: only the crank goes round
    return np.array([[*((p + q) / 2), a] for p, q, a in zip((A, B, D), (B, C, C), angles, strict=True)])


def slopes(x: float) -> np.ndarray:
    return first_derivative(lambda s: centres_and_angles(x + s), 1e-3)


def inertia(x: float) -> float:
    """Reduced inertia: twice the kinetic energy at a crank rate of one."""
    lengths = LENGTHS[1:]
    moments = [m * length**2 / 12 for m, length in zip(MASSES, lengths, strict=True)]
    return sum(m * (s[0] ** 2 + s[1] ** 2) + J * s[2] ** 2 for m, J, s in zip(MASSES, moments, slopes(x), strict=True))


def needed(x: float, w: float, a: float) -> float:
    """Load on the crank that gives it the acceleration a at the rate w (Eksergian's equation)."""
    weight = sum(m * G * s[1] for m, s in zip(MASSES, slopes(x), strict=True))
    change = first_derivative(lambda s: np.array([inertia(x + s)]), 1e-3)[0]
    return inertia(x) * a + 0.5 * change * w * w + weight


def crank_motion(t: float) -> tuple[float, float, float]:
    return 2 * t + 0.5 * np.sin(3 * t), 2 + 1.5 * np.cos(3 * t), -4.5 * np.sin(3 * t)


@pytest.fixture(scope="module")
def four_bar() -> ld.System:
    return linkage(LENGTHS, START, 1, MASSES)[0].compile()


TIMES = np.linspace(0.0, 2.0, 21)
MOTION = {"A": "2*t + 0.5*sin(3*t)"}
# five-point formulas with steps of 1e-3, one inside the other
DIFFERENCES = 1e-7


def test_one_motor_on_a_four_bar_gives_what_virtual_work_says(four_bar):
    found = ld.inverse_dynamics(four_bar, MOTION, TIMES)
    expected = [needed(START + x, w, a) for x, w, a in map(crank_motion, TIMES)]
    assert found.verdict == "fully actuated"
    assert found.rule == ""
    assert found.load[:, 0] == pytest.approx(expected, abs=DIFFERENCES * np.abs(expected).max())
    assert found.speed[:, 0] == pytest.approx([crank_motion(t)[1] for t in TIMES], rel=1e-12)
    assert np.array_equal(found.power, found.load * found.speed)


def shares() -> tuple[np.ndarray, np.ndarray]:
    """What the crank alone would need, and how fast the rocker turns per turn of the crank."""
    x = [(START + x, w, a) for x, w, a in map(crank_motion, TIMES)]
    return np.array([needed(*k) for k in x]), np.array([slopes(k[0])[2, 2] for k in x])


@pytest.mark.parametrize("weights", [None, {"A": 1.0, "D": 4.0}])
def test_redundant_motors_share_by_the_stated_rule(four_bar, weights):
    """Virtual work: u_A + r u_D = Q with r = dD/dA. Least w_A u_A^2 + w_D u_D^2: u_i ~ r_i/w_i."""
    Q, r = shares()
    found = ld.inverse_dynamics(four_bar, MOTION, TIMES, motors=["A", "D"], weights=weights)
    wA, wD = (1.0, 1.0) if weights is None else (weights["A"], weights["D"])
    scale = Q / (1.0 / wA + r * r / wD)
    expected = np.column_stack([scale / wA, scale * r / wD])
    assert found.verdict == "over-actuated: 1 of 2 motors redundant"
    assert ("force^2" if weights is None else "weight") in found.rule
    assert np.abs(found.load - expected).max() < DIFFERENCES * np.abs(expected).max()
    assert np.all(found.internal == 0.0)


def test_a_preload_adds_its_self_balanced_part_and_moves_nothing(four_bar):
    Q, r = shares()
    found = ld.inverse_dynamics(four_bar, MOTION, TIMES, motors=["A", "D"], preload={"A": 5.0, "D": -5.0})
    least = np.column_stack([Q, r * Q]) / (1 + r * r)[:, None]
    balanced = np.column_stack([-r, np.ones_like(r)]) / np.sqrt(1 + r * r)[:, None]  # no virtual work
    internal = balanced * (balanced @ [5.0, -5.0])[:, None]
    assert np.abs(found.internal - internal).max() < DIFFERENCES * 5.0
    assert np.abs(found.load - least - internal).max() < DIFFERENCES * np.abs(found.load).max()
    system = found.mechanism().compile(cuts=list(four_bar.topology.cuts))
    a = [ld.accelerations(system, found.state(k), formulation="oracle") for k in range(len(TIMES))]
    assert np.abs(np.array(a) - found.a).max() < EQUAL * np.abs(found.a).max()


def test_a_motor_on_the_cut_joint_does_as_much_as_one_on_the_tree(four_bar):
    """Whichever joint is cut: loads, and with them reactions, are the same."""
    results = []
    for cut in ("C", "D"):
        system = linkage(LENGTHS, START, 1, MASSES)[0].compile(cuts=[cut])
        found = ld.inverse_dynamics(system, MOTION, TIMES, motors=["D"])
        force, _, known = found.bearings().load("B")
        assert known[:2].all()
        results.append((found.load[:, 0], found.speed[:, 0], force[:, :2]))
    Q, r = shares()
    for load, speed, force in results:
        assert load == pytest.approx(Q / r, abs=1e-5 * np.abs(Q / r).max())  # r is small at the turning points
        assert speed == pytest.approx(r * [crank_motion(t)[1] for t in TIMES], abs=1e-9)
        assert np.abs(force - results[0][2]).max() < 1e-8 * np.abs(force).max()


def test_reactions_with_motor_loads_are_those_of_the_driven_run(four_bar):
    m, _ = linkage(LENGTHS, START, 1, MASSES)
    m.add_driver("drive", "A", MOTION["A"])
    driven = m.compile(cuts=list(four_bar.topology.cuts))
    run = ld.simulate(driven, ld.assemble(driven, q={}), (0, 2), t_eval=TIMES, progress=False)
    found = ld.inverse_dynamics(driven, run)
    assert np.abs(found.wrench[0] - run.wrench[0]).max() < EQUAL * np.abs(run.wrench[0]).max()
    assert np.array_equal(found.wrench[1], run.wrench[1])


# ------------------------------------------------------------------------------------ what is not possible


def test_a_motion_that_too_few_motors_cannot_make_is_refused_and_its_residual_is_what_is_missing():
    system = ld.library.five_bar().compile()
    motion = {"A": "0.2*sin(t)", "E": "0.1*t"}
    times = np.linspace(0, 1, 5)
    with pytest.raises(ld.LoopdynError, match=r"cannot produce this motion of 'five_bar'.*none of them can supply"):
        ld.inverse_dynamics(system, motion, times, motors=["A"])
    full = ld.inverse_dynamics(system, motion, times)
    part = ld.inverse_dynamics(system, motion, times, motors=["A"], impossible="mark")
    assert part.verdict == "under-actuated: 1 of 2 degrees of freedom without a motor"
    assert not part.possible.any()
    assert "cannot produce this motion" in str(part)
    # loads and residual together do the work that the full set of motors does, for every motion
    units = system.speed_units
    for k in range(len(times)):
        state = part.state(k)
        J = ld.terms(system, state).J
        N = np.linalg.svd(J * units)[2][2:].T
        one = np.zeros(system.nv)
        one[system.speeds.index("A")] = part.load[k, 0]
        both = np.zeros(system.nv)
        for motor, u in zip(full.motors, full.load[k], strict=True):
            both[system.speeds.index(motor)] = u
        assert np.abs(N.T @ (one + part.residual[k] - both)).max() < 1e-9


def test_a_free_motion_needs_nothing_of_its_motor():
    system = ld.library.five_bar().compile()
    run = ld.simulate(system, ld.assemble(system), (0, 0.3), progress=False)
    found = ld.inverse_dynamics(system, run, motors=["A"])
    assert found.possible.all()
    assert np.abs(found.load).max() < 1e-9


def test_states_with_accelerations_are_a_motion_and_states_alone_are_not(four_bar):
    found = ld.inverse_dynamics(four_bar, MOTION, TIMES)
    states = [found.state(k) for k in range(len(TIMES))]
    again = ld.inverse_dynamics(four_bar, states, accelerations=found.a, motors=["A"])
    assert np.array_equal(again.load, found.load)
    assert np.array_equal(ld.inverse_dynamics(four_bar, found, motors=["A"]).load, found.load)  # has t, q, v, a
    with pytest.raises(ld.LoopdynError, match="Give accelerations"):
        ld.inverse_dynamics(four_bar, states, motors=["A"])
    with pytest.raises(ld.LoopdynError, match="accelerations violate the constraints"):
        ld.inverse_dynamics(four_bar, states, accelerations=np.ones_like(found.a), motors=["A"])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"motors": ["X"]}, "there is no joint coordinate 'X'. Known: A, B, C, D"),
        ({"motors": ["A", "A"]}, "named twice"),
        ({"motors": "A"}, "motors is 'A'. Give a list"),
        ({"motors": []}, "has no motor and no driver"),
        ({"weights": {"A": 1.0}}, "not redundant"),
        ({"motors": ["A", "D"], "rule": "weights"}, "needs weights"),
        ({"motors": ["A", "D"], "rule": "fair"}, "rule is 'fair'. Give"),
        ({"motors": ["A", "D"], "weights": {"A": 1.0}}, "weights of D are missing"),
        ({"motors": ["A", "D"], "weights": {"A": 1.0, "D": 0.0}}, "must be positive"),
        ({"motors": ["A", "D"], "rule": "minimum norm", "weights": {"A": 1.0, "D": 1.0}}, "weights need"),
        ({"motors": ["A", "D"], "preload": {"B": 1.0}}, "'B' is not among the motors"),
        ({"motors": ["A", "D"], "preload": {"A": [1.0, 2.0]}}, "one per time"),
        ({"impossible": "ignore"}, "Give 'raise' or 'mark'"),
        ({"tolerance": 0.0}, "positive fraction"),
    ],
)
def test_wrong_options_are_refused_with_what_to_do(four_bar, options, words):
    with pytest.raises(ld.LoopdynError, match=words):
        ld.inverse_dynamics(four_bar, MOTION, TIMES, **options)


@pytest.mark.parametrize(
    ("motion", "times", "words"),
    [
        (MOTION, None, "needs times"),
        (MOTION, [0.0, 0.0], "ascending"),
        ({"Z": "t"}, TIMES, "there is no joint coordinate 'Z'"),
        ({"A": "t +"}, TIMES, "formula"),
        ({"D": "2*t"}, TIMES, r"t = 0\.5198.* dead point"),  # crank folded on the coupler
        ({}, TIMES, "has no motor and no driver"),
    ],
)
def test_wrong_motions_are_refused_with_what_to_do(four_bar, motion, times, words):
    with pytest.raises(ld.LoopdynError, match=words):
        ld.inverse_dynamics(four_bar, motion, times)


def test_times_of_a_motion_are_given_as_for_every_path():
    # A rod of 2 kg and 1 m from the horizontal: torque m g l/2 cos(angle) + m l^2/3 angle''
    m = ld.Mechanism("rod", gravity=(0, -10, 0))
    m.add_body("rod", ld.Inertia.rod(mass=2.0, start=(0, 0, 0), end=(1, 0, 0)))
    m.add_joint("A", ld.Revolute(axis=(0, 0, 1)), m.ground, "rod", at=(0, 0, 0))
    system = m.compile()
    found = ld.inverse_dynamics(system, {"A": "t**2"}, t_span=(0.5, 1.5))
    assert (len(found.t), found.t[0], found.t[-1]) == (361, 0.5, 1.5)
    np.testing.assert_allclose(found.load[:, 0], 10 * np.cos(found.t**2) + 4 / 3, rtol=1e-12, atol=1e-13)
    some = ld.inverse_dynamics(system, {"A": "t**2"}, t_span=(0, 2), t_eval=[1.0, 1.5])
    np.testing.assert_allclose(some.load[:, 0], 10 * np.cos([1.0, 2.25]) + 4 / 3, rtol=1e-12)
    whole = ld.inverse_dynamics(system, {"A": ld.profiles.Cycloidal(distance=1.0, time=0.8)})
    assert (whole.t[0], whole.t[-1], whole.q[-1, 0]) == pytest.approx((0.0, 0.8, 1.0))
    written = {"profile": "cycloidal", "distance": 1.0, "time": 0.8}  # as in a file
    assert ld.inverse_dynamics(system, {"A": written}).t[-1] == pytest.approx(0.8)
    assert ld.drive(system, "A", written)["A"].values[-1] == pytest.approx(1.0)
    with pytest.raises(ld.LoopdynError, match="outside of t_span"):
        ld.inverse_dynamics(system, {"A": "t"}, [0.0, 2.0], t_span=(0, 1))
    with pytest.raises(ld.LoopdynError, match="times belong to a motion by formulas"):
        ld.inverse_dynamics(system, found, t_span=(0, 1))


def test_formulas_are_in_the_units_of_the_model_and_results_in_si():
    m = ld.Mechanism("lever", gravity=(0, -10, 0), units={"length": "mm", "angle": "deg", "mass": "g"})
    m.add_body("rod", ld.Inertia.rod(mass=2000, start=(0, 0, 0), end=(1000, 0, 0)))
    m.add_joint("A", ld.Revolute(axis=(0, 0, 1)), m.ground, "rod", at=(0, 0, 0))
    found = ld.inverse_dynamics(m.compile(), {"A": "60*t"}, [0.0, 1.0])
    assert found.load[:, 0] == pytest.approx([10.0, 5.0], abs=1e-12)  # 2 kg x 10 m/s^2 x 0.5 m x cos(60 deg)
    assert found.speed[:, 0] == pytest.approx(np.pi / 3)
    table = found.table()
    assert table.loc["A load", "unit"] == "N*m"
    assert table.loc["A load", "peak"] == pytest.approx(10.0)
    # straight line between two samples of 100 and 25: mean square 62.5
    assert table.loc["A load", "rms"] == pytest.approx(62.5**0.5)
    assert found.mechanism().forces["motor_A"].torque.points[0][1] == pytest.approx(10.0)


def test_in_a_run_with_a_lock_each_part_has_its_own_constraints():
    """Without load of the motor before, and with none to find after: the lock on B holds all there is."""
    system = linkage(LENGTHS, START, 1, MASSES)[0].compile()
    state = ld.assemble(system, v={"A": 3.0})
    stop = ld.events.At(0.1, "stop", action=ld.events.Lock("B"))
    run = ld.simulate(system, state, (0, 0.2), t_eval=np.linspace(0, 0.2, 21), events=[stop], progress=False)
    found = ld.inverse_dynamics(system, run, motors=["A"])
    assert len(found.pieces) == 2
    assert np.abs(found.load).max() < 1e-9
    assert np.abs(found.wrench[0] - run.wrench[0]).max() < EQUAL * np.abs(run.wrench[0]).max()
    with pytest.raises(ld.LoopdynError, match="constraints change within the motion"):
        found.mechanism()


def test_a_motor_on_a_moving_base_and_forces_by_functions_count():
    m = ld.library.four_bar()
    m.move_base(x="0.1*sin(3*t)", rz="0.2*t")

    def drag(t, q, v, tau):
        tau[0] -= 0.1 * v[0]

    m.add_force("drag", ld.forces.UserForce(drag))
    m.add_motor("motor", "C", torque="0.3 - 0.01*speed")  # a cut joint
    system = m.compile(cuts=["C"])
    run = ld.simulate(system, ld.assemble(system), (0, 0.2), t_eval=np.linspace(0, 0.2, 21), progress=False)
    found = ld.inverse_dynamics(system, run)
    load = run.data["load"].sel(force="motor").values
    assert found.load[:, 0] == pytest.approx(load, abs=1e-9)
    assert found.speed[:, 0] == pytest.approx((0.3 - load) / 0.01, abs=1e-9)


def test_torque_speed_plot_has_a_panel_for_each_motor(four_bar):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure = ld.inverse_dynamics(four_bar, MOTION, TIMES, motors=["A", "D"]).plot()
    assert [ax.get_title() for ax in figure.axes if ax.get_visible()] == ["A", "D"]
    assert figure.axes[0].get_ylabel() == "torque in N*m"
    plt.close(figure)
