"""A simulation made step by step: equal to `simulate` and to SciPy under the same inputs, and what it refuses."""

import threading
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import loopdyn as ld

G, MASS, LENGTH = 9.81, 2.0, 0.8
H = 1e-3


def rod(**joint) -> ld.Mechanism:
    """A rod on a pin with a motor: with m L^2/3 a = torque - m g L/2 cos(q)."""
    m = ld.Mechanism("rod", gravity=(0, -G, 0))
    m.add_body("rod", ld.Inertia.rod(mass=MASS, start=(0, 0, 0), end=(LENGTH, 0, 0)))
    m.add_joint("A", ld.Revolute(axis=(0, 0, 1), **joint), "ground", "rod", at=(0, 0, 0))
    m.add_motor("motor", "A", torque=0.0)
    return m


@pytest.fixture(scope="module")
def pendulum() -> ld.System:
    return rod().compile()


def by_scipy(torque, times: np.ndarray, q0: float = 0.0, v0: float = 0.0) -> np.ndarray:
    """Angle and speed of the rod at the ends of steps, each integrated by itself; `torque(k, t)` in step k."""
    inertia, y, found = MASS * LENGTH**2 / 3, [q0, v0], [[q0, v0]]
    for k, span in enumerate(pairwise(times)):

        def rate(t, y, k=k):
            return [y[1], (torque(k, t) - MASS * G * LENGTH / 2 * np.cos(y[0])) / inertia]

        y = solve_ivp(rate, span, y, method="DOP853", rtol=1e-12, atol=1e-12).y[:, -1]
        found.append(y)
    return np.array(found)


# ------------------------------------------------------------------------------------------------ right numbers


@pytest.mark.parametrize(
    "integrator", ["auto", "dp5", "stiff", ld.integrators.RK4(step=4e-3), ld.integrators.ABM(step=1e-3)], ids=str
)
def test_a_held_torque_gives_the_motion_of_equations_written_by_hand(pendulum, integrator):
    """SciPy integrates m L^2/3 a = u - m g L/2 cos(q) from step to step; 10 ms steps, which are no multiple of 4 ms."""
    u = np.random.default_rng(1).uniform(-20, 20, 60)
    sim = ld.Simulation(pendulum, inputs=["motor"], step=0.01, integrator=integrator, rtol=1e-9)
    times = 0.01 * np.arange(len(u) + 1)
    expected, found = by_scipy(lambda k, t: u[k], times), []
    for x in u:
        assert sim.step([x])
        found.append([sim.state.q[0], sim.state.v[0]])
    # the adaptive methods make 1e-9 per step relative to the speed of some rad/s; those of fixed step h^4 a''' with
    # h = 4 ms, and ABM starts again at every jump with a method of low order
    allowed = 1e-6 if isinstance(integrator, str) else 2e-5 if integrator.name == "rk4" else 2e-3
    np.testing.assert_allclose(found, expected[1:], atol=allowed)
    assert sim.t == pytest.approx(0.6, abs=1e-12)


def test_a_linear_hold_gives_the_motion_of_equations_written_by_hand(pendulum):
    """From zero before the first step on straight lines to the values given; SciPy as above."""
    u = np.random.default_rng(2).uniform(-20, 20, 40)
    ends = np.concatenate([[0.0], u])
    times = 0.01 * np.arange(len(u) + 1)
    expected = by_scipy(lambda k, t: ends[k] + (ends[k + 1] - ends[k]) * (t - times[k]) / 0.01, times)
    sim = ld.Simulation(pendulum, inputs=["motor"], step=0.01, hold="linear", rtol=1e-10)
    found = [[sim.state.q[0], sim.state.v[0]] for x in u if sim.step({"motor": x})]
    np.testing.assert_allclose(found, expected[1:], atol=1e-7)  # errors of 1e-10 in 40 steps, grown with the motion


def test_without_inputs_steps_are_those_of_one_motion(pendulum):
    """An undamped pendulum released from the horizontal, by SciPy; the integrator goes on from step to step."""
    sim = ld.Simulation(pendulum, step=0.05)
    expected = by_scipy(lambda k, t: 0.0, 0.05 * np.arange(41))
    found = [[sim.state.q[0], sim.state.v[0]] for _ in range(40) if sim.step()]
    np.testing.assert_allclose(found, expected[1:], atol=1e-6)  # 2 s at rtol 1e-8


def five_bar() -> ld.Mechanism:
    m = ld.library.five_bar()
    for joint in ("A", "E"):
        m.add_motor(f"motor {joint}", joint, torque=0.0)
    return m


def test_a_controlled_five_bar_at_1_khz_equals_simulate_with_the_same_sample_and_hold():
    """PD control of both cranks; `simulate` is given the recorded torques, which jump at each step."""
    system = five_bar().compile()
    state = ld.assemble(system)
    joints = ("A", "E")
    start = np.array([ld.Simulation(system, state)[j] for j in joints])
    sim = ld.Simulation(system, state, [f"motor {j}" for j in joints], H)
    torques = []
    for k in range(200):
        wanted = start + 0.3 * np.sin(2 * np.pi * k * H) * np.array([1, -1])
        u = [40.0 * (x - sim[j]) - 4.0 * sim[f"{j}.speed"] for j, x in zip(joints, wanted, strict=True)]
        torques.append(u)
        assert sim.step(u)
    torques = np.array(torques)
    m = ld.library.five_bar()
    for n, joint in enumerate(joints):  # a sum of steps, exact sample and hold; in several motors, formulas being short
        u = torques[:, n].tolist()
        terms = [f"({u[0]!r})", *(f"({y - x!r})*step(t - {(k + 1) * H!r})" for k, (x, y) in enumerate(pairwise(u)))]
        for first in range(0, len(terms), 30):
            m.add_motor(f"motor {joint} {first}", joint, torque=" + ".join(terms[first : first + 30]))
    held = m.compile()
    events = [ld.events.At((k + 1) * H, f"step {k}") for k in range(199)]
    run = ld.simulate(held, ld.assemble(held), (0, 0.2), t_eval=[0.2], events=events, progress=False)
    # both have errors of 1e-8 of the speeds (some rad/s) in each of 200 steps
    np.testing.assert_allclose(sim.state.q, run.path.q[-1], atol=2e-7)
    np.testing.assert_allclose(sim.state.v, run.path.v[-1], atol=2e-5)


def test_the_reaction_of_a_held_rod_is_its_weight(pendulum):
    """Held still by the torque m g L/2: the pin carries m g upwards, and the motor its torque."""
    sim = ld.Simulation(pendulum, inputs=["motor"], step=H)
    for _ in range(5):
        sim.step([MASS * G * LENGTH / 2])
    assert sim["A"] == pytest.approx(0.0, abs=1e-12)
    assert sim["A.fy"] == pytest.approx(MASS * G, rel=1e-9)
    assert sim["motor.load"] == sim["motor.load"] == pytest.approx(MASS * G * LENGTH / 2, rel=1e-12)
    sim.step([0.0])  # released: the reaction of a falling rod is m g/4 at the start, not that of the step before
    assert sim["A.fy"] == pytest.approx(MASS * G / 4, rel=1e-3)
    assert sim["A.acceleration"] == pytest.approx(-1.5 * G / LENGTH, rel=1e-3)


def test_inputs_and_values_are_in_the_units_of_the_mechanism():
    """The rod in mm, deg, g, N mm: the same motion as in SI, each number converted by hand."""
    m = ld.Mechanism("rod", gravity=(0, -G, 0), units=ld.Units(length="mm", angle="deg", mass="g", torque="N*mm"))
    inertia = ld.Inertia.rod(mass=1e3 * MASS, start=(0, 0, 0), end=(1e3 * LENGTH, 0, 0))
    m.add_body("rod", inertia)
    m.add_joint("A", ld.Revolute(axis=(0, 0, 1)), "ground", "rod", at=(0, 0, 0))
    m.add_motor("motor", "A", torque=0.0)
    system = m.compile()
    sim = ld.Simulation(system, inputs=["motor"], step=0.01)
    si = ld.Simulation(rod().compile(), inputs=["motor"], step=0.01)
    for x in (5.0, -3.0, 8.0):
        sim.step({"motor": 1e3 * x})
        si.step({"motor": x})
    assert sim["A"] == pytest.approx(np.degrees(si["A"]), rel=1e-9)
    assert sim["A.speed"] == pytest.approx(np.degrees(si["A.speed"]), rel=1e-9)
    assert sim["motor.load"] == pytest.approx(8e3)
    assert sim["A.fy"] == pytest.approx(si["A.fy"], rel=1e-9)
    np.testing.assert_allclose(sim.state.q, si.state.q, rtol=1e-9)  # arrays are in SI units


def test_a_component_of_a_force_is_an_input():
    """A mass on rails under a constant force: x = F t^2/2m."""
    m = ld.Mechanism("cart", gravity=(0, 0, 0))
    m.add_body("cart", ld.Inertia(mass=4.0, com=(0, 0, 0), inertia={"xx": 1, "yy": 1, "zz": 1}))
    m.add_joint("S", ld.Prismatic(axis=(1, 0, 0)), "ground", "cart", at=(0, 0, 0))
    m.add_force("push", ld.forces.AppliedForce(body="cart", force=(0, 0, 0), at=(0, 0, 0)))
    sim = ld.Simulation(m.compile(), inputs=["push.fx"], step=0.1)
    for _ in range(10):
        sim.step({"push.fx": 2.0})
    assert sim["S"] == pytest.approx(2.0 * 1.0**2 / (2 * 4.0), rel=1e-12)
    assert sim["S.speed"] == pytest.approx(0.5, rel=1e-12)


# ------------------------------------------------------------------------------------------------------ drivers


def driven() -> ld.System:
    m = ld.library.four_bar()
    m.add_driver("drive", "A", "8*t")
    return m.compile()


def test_a_driver_takes_an_acceleration():
    """x = x0 + v0 t + a t^2/2 over each step, by hand; loops stay closed."""
    system = driven()
    state = ld.assemble(system)
    sim = ld.Simulation(system, state, ["drive"], 0.01)
    x, v = sim["A"], sim["A.speed"]
    assert v == pytest.approx(8.0)
    for a in (3.0, -5.0, 0.0, 20.0):
        sim.step([a])
        x, v = x + v * 0.01 + a * 0.01**2 / 2, v + a * 0.01
        assert sim["A"] == pytest.approx(x, abs=1e-10)
        assert sim["A.speed"] == pytest.approx(v, abs=1e-8)
        assert sim["A.acceleration"] == pytest.approx(a, abs=1e-6)


def test_a_driver_takes_position_and_speed_at_the_end_of_a_step():
    system = driven()
    sim = ld.Simulation(system, ld.assemble(system), ["drive"], 0.01)
    start = sim["A"]
    for k in range(1, 20):
        t = 0.01 * k
        sim.step({"drive": (start + 8 * t + 0.1 * np.sin(9 * t) ** 2, 8 + 0.9 * np.sin(18 * t))})
        assert sim["A"] == pytest.approx(start + 8 * t + 0.1 * np.sin(9 * t) ** 2, abs=1e-10)
        assert sim["A.speed"] == pytest.approx(8 + 0.9 * np.sin(18 * t), abs=1e-8)


def test_the_load_of_a_driver_is_that_of_inverse_dynamics():
    """The rod driven with constant acceleration a from rest at q = 0: torque = m L^2/3 a + m g L/2 cos(q)."""
    m = rod()
    m.add_driver("drive", "A", 0.0)
    sim = ld.Simulation(m.compile(), inputs=["drive", "motor"], step=0.01)
    for _ in range(30):
        sim.step([6.0, 0.5])
    assert sim["A"] == pytest.approx(6.0 * 0.3**2 / 2, rel=1e-9)
    expected = MASS * LENGTH**2 / 3 * 6.0 + MASS * G * LENGTH / 2 * np.cos(sim["A"]) - 0.5
    assert sim["drive.load"] == pytest.approx(expected, rel=1e-8)


def test_a_driver_without_the_speed_at_the_end_is_an_impact_and_refused():
    sim = ld.Simulation(driven(), inputs=["drive"])
    with pytest.raises(ld.LoopdynError, match="speed would jump, which is an impact"):
        sim.step({"drive": (0.5,)})
    sim.step({"drive": (sim["A"] + 8e-3, 8.0)})
    with pytest.raises(ld.LoopdynError, match="position and speed, which it has reached"):
        sim.step()


# ------------------------------------------------------------------------------------------- events and endings


def test_it_stops_at_an_event_with_the_words_of_simulate(pendulum):
    event = ld.events.Crossing("a + pi/4", "low", stop=True, coordinates={"a": "A"})
    sim = ld.Simulation(pendulum, inputs=["motor"], step=0.01, events=[event])
    while sim.step([1.0]):
        pass
    held = rod()
    held.forces["motor"] = ld.forces.Motor(joint="A", torque=1.0, name="motor")
    system = held.compile()
    run = ld.simulate(system, ld.assemble(system), (0, 2), events=[event], progress=False)
    assert (sim.status, sim.message) == (run.status, run.message)
    assert sim.t == pytest.approx(run.path.t[-1], abs=1e-8)
    assert sim["A"] == pytest.approx(-np.pi / 4, abs=1e-9)
    assert [e.name for e in sim.events] == ["low"]
    with pytest.raises(ld.LoopdynError, match=r"has stopped: low at t = .*sim.reset"):
        sim.step([1.0])


def test_an_action_and_a_time_event_inside_a_step(pendulum):
    """The rod is stopped at t = 25 ms, in the middle of a step, and falls again from there: SciPy from then on."""

    def still(state):
        return ld.State(state.t, state.q, 0.0 * state.v)

    sim = ld.Simulation(pendulum, step=0.01, events=[ld.events.At(0.025, "brake", action=still)])
    for _ in range(10):
        sim.step()
    before = by_scipy(lambda k, t: 0.0, np.array([0.0, 0.025]))[-1]
    after = by_scipy(lambda k, t: 0.0, np.array([0.025, 0.1]), before[0], 0.0)[-1]
    np.testing.assert_allclose([sim["A"], sim["A.speed"]], after, atol=1e-7)
    assert [(e.name, e.kind) for e in sim.events] == [("brake", "time")]


def test_a_joint_is_locked_and_inputs_go_on(pendulum):
    """Locked at 20 ms: the rod stands still, and the lock carries the weight less the torque of the motor."""
    sim = ld.Simulation(
        pendulum, inputs=["motor"], step=0.01, events=[ld.events.At(0.02, "lock", action=ld.events.Lock("A"))]
    )
    for k in range(6):
        sim.step([float(k)])
    assert sim["A.speed"] == pytest.approx(0.0, abs=1e-12)
    assert sim["motor.load"] == 5.0
    assert sim["lock A.load"] == pytest.approx(MASS * G * LENGTH / 2 * np.cos(sim["A"]) - 5.0, rel=1e-9)


def test_limits_rebound_as_in_simulate():
    system = rod(limits=(-0.5, 1.0), at_limit={"rebound": 0.5}).compile()
    sim = ld.Simulation(system, step=0.01)
    for _ in range(60):
        sim.step()
    run = ld.simulate(system, ld.assemble(system), (0, 0.6), t_eval=[0.6], progress=False)
    assert [e.kind for e in sim.events] == [e.kind for e in run.events]
    np.testing.assert_allclose(sim.state.q, run.path.q[-1], atol=1e-6)


@pytest.mark.parametrize("inputs", [False, True])
def test_flat_poses_are_passed_while_the_inputs_change(inputs):
    """A window of two cranks and a coupler, lengths and masses one: (5/3) a = 2 g sin(q) + torque, by SciPy.

    It is flat twice on the way; there momentum steps go on, also where an input changes.
    """
    m = ld.library.n_four_bar(1)
    crank = next(label for label in m.compile().coordinates if not label.startswith("B"))
    m.add_motor("motor", crank, torque=0.0)
    system = m.compile()
    sign = np.array([-1.0 if c.startswith("B") else 1.0 for c in system.coordinates])  # the coupler turns back
    state, h = system.state(0.33 * sign, 1.4 * sign), 0.01
    sim = ld.Simulation(system, state, ["motor"] if inputs else [], h, rtol=1e-9)
    u, y = np.random.default_rng(5).uniform(-2, 2, 130) * inputs, np.array([0.33, 1.4])
    for k, x in enumerate(u):
        assert sim.step([x] if inputs else None), sim.message

        def rate(t, y, x=x):
            return [y[1], (2 * G * np.sin(y[0]) + x) / (5 / 3)]

        y = solve_ivp(rate, (h * k, h * k + h), y, method="DOP853", rtol=1e-12, atol=1e-12).y[:, -1]
    assert sum(p.crossed for p in sim.passages) >= 2
    assert all(np.isfinite(p.impulses.wrench).all() for p in sim.passages)
    # errors of the passages are 1e-9 of the speed, and grow along an unstable motion as that of a rod upside down
    np.testing.assert_allclose([sim[crank], sim[f"{crank}.speed"]], y, atol=2e-5)


def test_a_failure_ends_it_in_words():
    m = rod()
    m.add_motor("bad", "A", torque="1/(0.05 - t)*sqrt(0.05 - t)")
    sim = ld.Simulation(m.compile(), step=0.02)
    going = [sim.step() for _ in range(3)]
    assert going == [True, True, False]
    assert sim.status == "failed"
    assert "t = 0.0" in sim.message
    with pytest.raises(ld.LoopdynError, match="has failed"):
        sim.step()


# ------------------------------------------------------------------------------------------- copies and resets


def test_a_copy_goes_on_to_the_last_bit():
    system = five_bar().compile()
    sim = ld.Simulation(system, inputs=["motor A", "motor E"], step=H)
    u = np.random.default_rng(3).uniform(-3, 3, (300, 2))
    for x in u[:150]:
        sim.step(x)
    other = sim.copy()
    for x in u[150:]:
        sim.step(x)
    for x in u[150:]:
        other.step(x)
    assert other.t == sim.t
    assert np.array_equal(sim.state.q, other.state.q)
    assert np.array_equal(sim.state.v, other.state.v)
    assert sim["B.fx"] == other["B.fx"]


def test_a_reset_simulation_is_a_new_one_to_the_last_bit():
    system = five_bar().compile()
    state = ld.assemble(system)
    used, new = (ld.Simulation(system, state, ["motor A", "motor E"], H) for _ in range(2))
    for _ in range(50):
        used.step([2.0, -1.0])
    used.reset()
    assert used.t == state.t
    assert used.events == ()
    for x in np.random.default_rng(4).uniform(-3, 3, (50, 2)):
        used.step(x)
        new.step(x)
        assert np.array_equal(used.state.q, new.state.q)
        assert np.array_equal(used.state.v, new.state.v)


def test_two_simulations_of_one_system_in_two_threads_do_not_meet():
    system = five_bar().compile()
    state = ld.assemble(system)
    ends: dict[float, np.ndarray] = {}

    def run(u: float) -> None:
        sim = ld.Simulation(system, state, ["motor A"], H)
        for _ in range(200):
            sim.step([u])
        ends[u] = sim.state.q

    for u in (1.0, -1.0):
        run(u)
    alone = dict(ends)
    threads = [threading.Thread(target=run, args=(u,)) for u in alone]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for u, q in alone.items():
        assert np.array_equal(ends[u], q)


# ----------------------------------------------------------------------------------- functions, and Ctrl-C in them


def test_a_user_force_is_called_and_inputs_are_seen_beside_it():
    """A damper as a Python function, with a held torque: SciPy on the same equation."""
    m = rod()

    def damper(t, q, v, out):
        out[0] -= 0.7 * v[0]

    m.add_force("damper", ld.forces.UserForce(function=damper))
    sim = ld.Simulation(m.compile(), inputs=["motor"], step=0.02)
    inertia, y = MASS * LENGTH**2 / 3, [0.0, 0.0]
    for k, u in enumerate((3.0, 9.0, -4.0, 2.0)):
        sim.step([u])

        def rate(t, y, u=u):
            return [y[1], (u - 0.7 * y[1] - MASS * G * LENGTH / 2 * np.cos(y[0])) / inertia]

        y = solve_ivp(rate, (0.02 * k, 0.02 * k + 0.02), y, method="DOP853", rtol=1e-12, atol=1e-12).y[:, -1]
    np.testing.assert_allclose([sim["A"], sim["A.speed"]], y, atol=1e-7)


def test_a_keyboard_interrupt_inside_a_step_leaves_the_last_whole_step():
    m, calls = rod(), [np.inf]

    def stops(t, q, v, out):
        calls[0] -= 1
        if calls[0] == 0:
            raise KeyboardInterrupt

    m.add_force("stops", ld.forces.UserForce(function=stops))
    system = m.compile()
    sim, whole = (ld.Simulation(system, inputs=["motor"], step=0.02) for _ in range(2))
    for u in (1.0, 2.0):
        sim.step([u])
        whole.step([u])
    calls[0] = 7
    with pytest.raises(KeyboardInterrupt):
        sim.step([5.0])
    assert sim.t == pytest.approx(0.04)
    assert np.array_equal(sim.state.q, whole.state.q)
    assert sim["motor.load"] == 2.0
    for one in (sim, whole):
        one.step([3.0])
    assert np.array_equal(sim.state.q, whole.state.q)


# ------------------------------------------------------------------------------------------------- wrong input


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"inputs": ["moter"]}, r"there is no motor, force or driver.*motor"),
        ({"inputs": ["motor", "motor"]}, "named twice"),
        ({"inputs": "motor"}, "list of names|Give a list"),
        ({"step": 0.0}, "positive number of seconds"),
        ({"step": -1e-3}, "positive number of seconds"),
        ({"step": float("nan")}, "step is nan"),
        ({"hold": "cubic"}, "hold"),
        ({"formulation": "grpah"}, "there is no formulation"),
        ({"rtol": 2.0}, "rtol is 2"),
    ],
)
def test_a_wrong_argument_is_told_in_words(pendulum, given, message):
    with pytest.raises(ld.LoopdynError, match=message):
        ld.Simulation(pendulum, **given)


@pytest.mark.parametrize(
    ("u", "message"),
    [
        ([1.0, 2.0], r"2 values are given\. Give 1: motor"),
        ([], "0 values"),
        ({"moter": 1.0}, "there is no input 'moter'"),
        ([float("nan")], "input 'motor' is nan"),
        ({"motor": float("inf")}, "input 'motor' is inf"),
        ({"motor": "1"}, "input 'motor' is '1'"),
        ([None], "input 'motor' is None"),
        ("motor", "Give a mapping or a list"),
        ([[1.0, 2.0]], "input 'motor'"),
    ],
)
def test_wrong_values_are_told_in_words_and_change_nothing(pendulum, u, message):
    sim = ld.Simulation(pendulum, inputs=["motor"])
    sim.step([1.0])
    before = sim.state
    with pytest.raises(ld.LoopdynError, match=message):
        sim.step(u)
    assert sim.t == H
    assert np.array_equal(sim.state.q, before.q)
    assert sim.step()  # the torque stays as it is
    assert sim["motor.load"] == 1.0


def test_an_unknown_label_is_told_with_the_nearest_one(pendulum):
    sim = ld.Simulation(pendulum)
    with pytest.raises(ld.LoopdynError, match=r"there is no label 'A.fz2'.*'A.fz'"):
        sim["A.fz2"]
    with pytest.raises(ld.LoopdynError, match="a label is text"):
        sim[0]


def test_an_open_state_is_refused():
    system = ld.library.four_bar().compile()
    with pytest.raises(ld.LoopdynError, match="open"):
        ld.Simulation(system, system.state(q={"A": 0.9}))


# ----------------------------------------------------------------------------------------------------- Gymnasium


def test_the_environment_of_the_example_passes_the_checks_of_gymnasium(monkeypatch):
    """Skipped only where Gymnasium, an extra that the tests do not install, is absent."""
    pytest.importorskip("gymnasium")
    from gymnasium.utils.env_checker import check_env

    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "examples"))
    import gymnasium_five_bar

    env = gymnasium_five_bar.FiveBar()
    check_env(env, skip_render_check=True)
    assert gymnasium_five_bar.controlled(env, 0) == gymnasium_five_bar.controlled(env, 0)
