"""What simulate gives, refuses, and does where things go wrong."""

import numpy as np
import pytest

import loopdyn as ld
from loopdyn.engine.status import FINE
from loopdyn.integrators import memory

G = 9.81


@pytest.fixture(scope="module")
def four_bar() -> ld.System:
    return ld.library.four_bar().compile()


@pytest.fixture(scope="module")
def run(four_bar) -> ld.Run:
    return ld.simulate(four_bar, ld.assemble(four_bar), (0, 0.5), t_eval=np.linspace(0, 0.5, 51), progress=False)


@pytest.fixture(scope="module")
def rod_on_spring() -> ld.System:
    """A rod on a pin, held at its tip by a spring; it rests where the torque of the spring is that of its weight."""
    m = ld.Mechanism("rod_on_spring", gravity=(0, -G, 0))
    m.add_body("rod", ld.Inertia.rod(mass=1.0, start=(0, 0, 0), end=(1, 0, 0)))
    m.add_joint("A", ld.Revolute(axis=(0, 0, 1)), "ground", "rod", at=(0, 0, 0))
    spring = ld.forces.SpringDamper("ground", "rod", (1, 1, 0), (1, 0, 0), stiffness=300, damping=5, length=0.9)
    m.add_force("spring", spring)
    return m.compile()


# ------------------------------------------------------------------------------------------------ what it gives


def test_data_has_labels_and_units(run, four_bar):
    data = run.data
    assert data["q"].dims == ("time", "coordinate")
    assert data["wrench"].dims == ("time", "joint", "component")
    assert list(data["joint"].values) == ["A", "B", "C", "D"]
    assert data["time"].attrs["units"] == "s"
    assert data["energy_kinetic"].attrs["units"] == "J"
    assert list(data["coordinate_units"].values) == ["rad"] * 3
    assert data["residual_position"].sizes["row"] == four_bar.nc
    assert not data["unique"].sel(joint="A", component="mx")


def test_energy_and_residuals_are_part_of_every_run(run):
    assert np.abs(run.data["energy_balance"]).max() < 1e-6
    assert run.energy_error < 1e-7
    for name in ("residual_position", "residual_velocity", "residual_acceleration"):
        assert np.abs(run.data[name]).max() < 1e-9


def test_default_outputs_are_dense_enough_to_look_at():
    system = ld.library.pendulum().compile()
    assert len(ld.simulate(system, system.state(), (0, 0.1), progress=False).path) == 201
    assert len(ld.simulate(system, system.state(), (0, 5), progress=False).path) == 501


def test_a_state_between_outputs_lies_on_the_trajectory(four_bar, run):
    """Against the same run with outputs there; the curve between outputs 10 ms apart is of order six."""
    dense = ld.simulate(four_bar, ld.assemble(four_bar), (0, 0.5), t_eval=[0.111, 0.333], progress=False)
    for k, t in enumerate((0.111, 0.333)):
        assert np.abs(run.at(t).q - dense.path.q[k]).max() < 1e-7
        assert np.abs(run.at(t).v - dense.path.v[k]).max() < 1e-4
    with pytest.raises(ld.LoopdynError, match="the run goes from 0 to"):
        run.at(0.6)


def test_a_state_between_outputs_of_a_tumbling_body():
    m = ld.Mechanism("brick")
    m.add_body("brick", ld.Inertia.box(mass=1.0, size=(0.3, 0.2, 0.1), at=(0.2, 0.1, 0)))
    m.add_joint("J", ld.Free(), m.ground, "brick", at=(0, 0, 0))
    system = m.compile()
    state = system.state(v=[1.0, 2.0, 3.0, 0.5, 0.0, 1.0])
    coarse = ld.simulate(system, state, (0, 1), t_eval=np.linspace(0, 1, 51), rtol=1e-11, progress=False)
    fine = ld.simulate(system, state, (0, 1), t_eval=[0.371], rtol=1e-11, progress=False)
    # degree five: the error of an interval of 20 ms at 4 rad/s is some (0.08)^6/720
    assert np.abs(coarse.at(0.371).q - fine.path.q[0]).max() < 1e-9
    assert np.abs(coarse.at(0.371).v - fine.path.v[0]).max() < 1e-7


def test_the_path_of_a_point_starts_where_it_was_given(run, four_bar):
    pose = ld.library.four_bar().compile().joints["C"]
    at = four_bar._joint_point(pose)
    path = run.point("coupler", at=at)["position"]
    np.testing.assert_allclose(path.values[0], at, atol=1e-12)
    other = run.point("rocker", at=at)["position"]
    np.testing.assert_allclose(path.values, other.values, atol=1e-9)  # a joint holds them together
    with pytest.raises(ld.LoopdynError, match="no body 'rockr'"):
        run.point("rockr", at=at)


def test_a_turning_crank_keeps_its_digits_and_counts_its_turns():
    """A balanced wheel at 200 rad/s for 100 s: 3183 turns, and sin and cos as precise as after one."""
    m = ld.Mechanism("wheel")
    m.add_body("wheel", ld.Inertia.cylinder(mass=1.0, radius=1.0, length=0.1, axis=(0, 0, 1), at=(0, 0, 0)))
    m.add_joint("A", ld.Revolute(axis=(0, 0, 1)), m.ground, "wheel", at=(0, 0, 0))
    system = m.compile()
    run = ld.simulate(
        system,
        system.state(v=[200.0]),
        (0, 100),
        t_eval=[100.0],
        integrator=ld.integrators.RK4(step=0.005),
        progress=False,
    )
    assert run.path.q[0, 0] == pytest.approx(20000.0, abs=1e-8)


def test_drivers_and_motors_work_is_booked():
    """A wheel driven at a given angle: kinetic energy equals the work of the driver."""
    m = ld.Mechanism("wheel")
    m.add_body("wheel", ld.Inertia.cylinder(mass=2.0, radius=1.0, length=0.1, axis=(0, 0, 1), at=(0, 0, 0)))
    m.add_joint("A", ld.Revolute(axis=(0, 0, 1)), m.ground, "wheel", at=(0, 0, 0))
    m.add_driver("drive", "A", "1.5*t**2")
    system = m.compile()
    run = ld.simulate(system, ld.assemble(system), (0, 1), rtol=1e-10, progress=False)
    assert run.path.v[-1, 0] == pytest.approx(3.0, abs=1e-9)
    assert run.data["work"].sel(source="drivers and bases").values[-1] == pytest.approx(0.5 * 9.0, abs=1e-8)
    # torque on the wheel: inertia 1 kg m^2 times 3 rad/s^2
    assert run.data["constraint_load"].values[:, 0] == pytest.approx(3.0, abs=1e-8)
    assert run.energy_error < 1e-8


def test_springs_and_dampers_are_booked():
    """A mass on a spring and damper: potential energy, and the energy the damper took."""
    m = ld.Mechanism("oscillator")
    m.add_body("mass", ld.Inertia.sphere(mass=1.0, radius=0.1, at=(1, 0, 0)))
    m.add_joint("s", ld.Prismatic(axis=(1, 0, 0)), m.ground, "mass", at=(1, 0, 0))
    m.add_force("spring", ld.forces.SpringDamper("ground", "mass", (0, 0, 0), (1, 0, 0), stiffness=100.0, length=1.0))
    m.add_force("damper", ld.forces.JointFriction(joint="s", viscous=1.0))
    system = m.compile()
    run = ld.simulate(system, system.state(q=[0.1]), (0, 1), rtol=1e-10, progress=False)
    w = np.sqrt(100.0 - 0.25)
    t = run.path.t
    exact = 0.1 * np.exp(-0.5 * t) * (np.cos(w * t) + 0.5 / w * np.sin(w * t))
    assert np.abs(run.path.q[:, 0] - exact).max() < 1e-9
    data = run.data
    assert data["energy_potential"].values == pytest.approx(50.0 * exact**2, abs=1e-8)
    total = data["energy_kinetic"] + data["energy_potential"]
    taken = data["work"].sel(source="damper")
    assert np.abs(total - total[0] - taken).max() < 1e-9
    assert data["load"].sel(force="spring").values == pytest.approx(100.0 * exact, abs=1e-7)


def test_energy_is_counted_from_the_start_also_where_it_is_no_output():
    """Motors lift the platform before the first output: that is no blow-up."""
    system = ld.library.stewart_6ups().compile()
    run = ld.simulate(system, ld.assemble(system), (0, 1), t_eval=[0.5, 1.0], progress=False)
    assert run.status == "finished", run.message
    assert run.energy_error < 1e-6


def test_user_forces_are_called_and_their_work_is_booked():
    def brake(t, q, v, out):
        out[0] -= 0.5 * v[0]

    m = ld.library.pendulum()
    m.add_force("brake", ld.forces.UserForce(function=brake))
    system = m.compile()
    run = ld.simulate(system, system.state(), (0, 1), formulation="oracle", t_eval=np.linspace(0, 1, 11),
                      progress=False)  # fmt: skip
    assert run.data["work"].sel(source="user forces").values[-1] < -0.1
    assert run.energy_error < 1e-7


# ------------------------------------------------------------------------------------------- stiff mechanisms


def damped() -> ld.System:
    """A mass on a spring with a damper so strong that one root is -1e5/s and the other -0.1/s."""
    m = ld.Mechanism("door_closer")
    m.add_body("mass", ld.Inertia.sphere(mass=1.0, radius=0.1, at=(1, 0, 0)))
    m.add_joint("s", ld.Prismatic(axis=(1, 0, 0)), m.ground, "mass", at=(1, 0, 0))
    m.add_force("closer", ld.forces.JointSpring(joint="s", stiffness=1e4, damping=1e5))
    return m.compile()


def test_a_stiff_integrator_needs_far_fewer_evaluations():
    system = damped()
    run = ld.simulate(system, system.state(q=[0.1]), (0, 1), integrator="stiff", rtol=1e-8, progress=False)
    fast, slow = np.roots([1.0, 1e5, 1e4])
    t = run.path.t
    exact = 0.1 * (slow * np.exp(fast * t) - fast * np.exp(slow * t)) / (slow - fast)
    assert run.status == "finished"
    assert np.abs(run.path.q[:, 0] - exact).max() < 1e-7
    # an explicit method of twelve stages is held to steps of some 6/1e5 s: more than 200,000 evaluations
    assert run.statistics.evaluations < 4000


def test_generalized_alpha_steps_over_what_is_too_fast():
    """On the slow root, with steps a thousand times the time of the fast one."""
    system = damped()
    slow = np.roots([1.0, 1e5, 1e4])[1]
    run = ld.simulate(system, system.state(q=[0.1], v=[0.1 * slow]), (0, 1), progress=False,
                      integrator=ld.integrators.GeneralizedAlpha(step=0.01, rho=0.5)).raise_if_failed()  # fmt: skip
    assert run.path.q[-1, 0] == pytest.approx(0.1 * np.exp(slow), rel=1e-6)


# ------------------------------------------------------------------------------------------------ drift control


@pytest.mark.parametrize("drift", ["none", "velocity", "baumgarte", "projection", ld.integrators.Baumgarte(rate=40.0)])
def test_every_drift_control_follows_the_motion(four_bar, drift):
    run = ld.simulate(four_bar, ld.assemble(four_bar), (0, 0.5), t_eval=[0.5], drift=drift, rtol=1e-9, progress=False)
    # theta1(0.5) of tests/data/reference/four_bar/reference.csv, turned from the reference pose at 1 rad
    from tests.literature.test_trajectories import reference

    expected = reference("four_bar/reference.csv", 0.5)["theta1"][-1] - 1.0
    assert run.path.q[-1, 0] == pytest.approx(expected, abs=2e-7)


def test_drift_control_does_what_it_says(four_bar):
    residual = {}
    for drift in ("none", "velocity", "baumgarte", "projection"):
        run = ld.simulate(four_bar, ld.assemble(four_bar), (0, 2), t_eval=np.linspace(0, 2, 21), drift=drift,
                          integrator=ld.integrators.RK4(step=0.01), progress=False)  # fmt: skip
        residual[drift] = [np.abs(run.diagnostics.residual[:, k]).max() for k in (0, 1)]
    assert residual["none"][0] > 10 * residual["baumgarte"][0]
    assert residual["none"][0] > residual["velocity"][0] > 10 * residual["projection"][0]
    assert residual["velocity"][1] < 1e-10
    assert residual["projection"][0] < 1e-7


# ----------------------------------------------------------------------------------------- what can go wrong


def test_a_number_that_is_none_ends_the_run_and_is_named():
    """The motor's torque is not a number from 0.3 s on."""
    m = ld.library.pendulum()
    m.add_motor("drive", "A", torque="sqrt(0.3 - t)")
    system = m.compile()
    for integrator in (ld.integrators.DOP853(), ld.integrators.RK4(step=0.01)):
        run = ld.simulate(system, system.state(), (0, 1), integrator=integrator, progress=False)
        assert run.status == "failed"
        assert "'A'" in run.message
        assert "not a finite number" in run.message
        assert run.path.t[-1] == pytest.approx(0.3, abs=0.011)
        assert np.isfinite(run.path.q).all()
        with pytest.raises(ld.errors.RunError, match="not a finite number"):
            run.raise_if_failed()


def test_a_blow_up_of_energy_ends_the_run():
    """A stiff spring with steps that are far too long."""
    m = ld.Mechanism("oscillator")
    m.add_body("mass", ld.Inertia.sphere(mass=1.0, radius=0.1, at=(1, 0, 0)))
    m.add_joint("s", ld.Prismatic(axis=(1, 0, 0)), m.ground, "mass", at=(1, 0, 0))
    m.add_force("spring", ld.forces.JointSpring(joint="s", stiffness=1e4))
    system = m.compile()
    run = ld.simulate(system, system.state(q=[0.01]), (0, 10), integrator=ld.integrators.RK4(step=0.05), progress=False)
    assert run.status == "failed"
    assert "energy" in run.message
    assert "'s'" in run.message
    assert 0 < len(run.path) < 1001


def test_an_open_loop_ends_the_run(four_bar):
    run = ld.simulate(four_bar, ld.assemble(four_bar, v={"A": 30.0}), (0, 30), integrator=ld.integrators.RK4(step=0.04),
                      drift="none", progress=False)  # fmt: skip
    assert run.status == "failed"
    assert "open by" in run.message or "energy" in run.message
    assert len(run.path) > 1


def test_a_start_that_is_open_is_refused(four_bar):
    with pytest.raises(ld.LoopdynError, match=r"'C\.f.' is open by"):
        ld.simulate(four_bar, four_bar.state(q={"A": 0.1}), (0, 1), progress=False)
    with pytest.raises(ld.LoopdynError, match=r"'C\.f.' is opening by"):
        ld.simulate(four_bar, four_bar.state(v={"A": 0.1}), (0, 1), progress=False)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"t_span": (1, 0)}, "t_span is"),
        ({"t_span": (0, np.inf)}, "t_span is"),
        ({"t_eval": [0.5, 0.2]}, "ascending"),
        ({"t_eval": [0.5, 2.0]}, "outside of t_span"),
        ({"rtol": 0.0}, "rtol is"),
        ({"atol": -1.0}, "atol is"),
        ({"drift": "projektion"}, "Give 'none' or 'projection'"),
        ({"integrator": "rk4"}, r"RK4\(step="),
        ({"integrator": "rk5"}, "there is no integrator 'rk5'"),
        ({"formulation": "relativ"}, "Did you mean 'relative'"),
    ],
)
def test_wrong_arguments_are_refused_in_words(options, words):
    system = ld.library.pendulum().compile()
    given = {"t_span": (0, 1), "progress": False} | options
    with pytest.raises(ld.LoopdynError, match=words):
        ld.simulate(system, system.state(), given.pop("t_span"), **given)


def test_options_of_integrators_are_checked():
    with pytest.raises(ld.LoopdynError, match="step is -1"):
        ld.integrators.RK4(step=-1)
    with pytest.raises(ld.LoopdynError, match="longest is 0"):
        ld.integrators.DOP853(longest=0)
    with pytest.raises(ld.LoopdynError, match="rho is 2"):
        ld.integrators.GeneralizedAlpha(step=1e-3, rho=2)
    with pytest.raises(ld.LoopdynError, match="no argument"):
        ld.integrators.DOP853(step=1.0)


@pytest.mark.jit_off
def test_the_same_source_runs_compiled_and_in_python():
    """Relative on a tree is compiled, the oracle is driven from Python: same steps, same results but for rounding."""
    system = ld.library.pendulum().compile()
    runs = [
        ld.simulate(system, system.state(), (0, 0.5), t_eval=[0.25, 0.5], formulation=f, progress=False)
        for f in ("relative", "oracle")
    ]
    assert runs[0].settings["compiled"]
    assert not runs[1].settings["compiled"]
    assert runs[0].statistics.steps == runs[1].statistics.steps
    np.testing.assert_allclose(runs[0].path.q, runs[1].path.q, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("span", "why"),
    [
        ((1e15, 1e15 + 1), "0.12 s apart, too far for a span of 1 s"),  # 2^-3 s, as 1e15 is between 2^49 and 2^50
        ((0.0, 5e-324), "Give a span from 1e-100 s on"),
        ((0.0, 1e-310), "Give a span from 1e-100 s on"),
        ((-1e308, 1e308), "inf s long"),
    ],
)
def test_a_span_that_time_cannot_resolve_is_refused(span, why):
    system = ld.library.pendulum().compile()
    with pytest.raises(ld.LoopdynError, match=why):
        ld.simulate(system, system.state(), span, progress=False)


@pytest.mark.parametrize("span", [(1e9, 1e9 + 0.5), (0.0, 1e-99)])
def test_a_span_that_time_can_just_resolve_is_run(span):
    """A pendulum let go at rest from the horizontal, at q = 0, hardly moves in 1e-99 s and falls in half a second."""
    system = ld.library.pendulum().compile()
    run = ld.simulate(system, system.state(), span, t_eval=span, progress=False)
    assert run.status == "finished", run.message
    assert run.path.t.tolist() == list(span)


# ---------------------------------------------------------------------------------------------- starts at rest


def check_rest(run: ld.Run, start: ld.State) -> None:
    """The mechanism stays where it is, to the tolerance, by steps as long as they may be: a tenth of the span."""
    assert run.status == "finished", run.message
    assert run.statistics.steps <= 40  # ten and, where stability limits the first ones, those until it is noticed
    assert run.statistics.rejected <= 10
    assert np.abs(run.path.q - start.q).max() < 1e-8  # rtol; nothing moves but for rounding
    assert run.energy_error < 1e-6  # rounding of 1e-16 of m g L, against a millionth of it


@pytest.mark.jit_off
@pytest.mark.parametrize("rtol", [1e-5, 1e-8, 1e-12])
def test_a_run_from_an_equilibrium_takes_few_steps(rod_on_spring, rtol):
    """7,901 steps, half of them rejected, when speeds were judged against the fastest so far: rounding."""
    start = ld.equilibrium(rod_on_spring).state
    check_rest(ld.simulate(rod_on_spring, start, (0, 2), rtol=rtol, progress=False), start)


def test_a_run_of_a_suspension_from_its_equilibrium_takes_few_steps():
    """75,263 steps until 0.085 s before."""
    system = ld.library.double_wishbone().compile()
    start = ld.equilibrium(system).state
    check_rest(ld.simulate(system, start, (0, 0.45), progress=False), start)


@pytest.mark.parametrize("stiffness", [0.0, 1e2, 1e5, 1e8])
def test_the_natural_rate_is_that_of_the_vibration(stiffness):
    """A mass of 2 kg on a vertical slide: sqrt(k / m) on a spring, sqrt(g / size) where gravity is larger."""
    from loopdyn.formulations.registry import prepare
    from loopdyn.integrators.runge_kutta import DOP853
    from loopdyn.integrators.stepper import Stepper

    m = ld.Mechanism("mass", gravity=(0, -G, 0))
    m.add_body("mass", ld.Inertia(mass=2.0, com=(0, 0.5, 0), inertia=np.eye(3).tolist()))
    m.add_joint("A", ld.Prismatic(axis=(0, 1, 0)), "ground", "mass", at=(0, 0, 0))
    m.add_force("spring", ld.forces.JointSpring("A", stiffness=stiffness))
    system = m.compile()
    stepper = Stepper(system, prepare(system, "graph"), DOP853(), "projection", 0, 1e-8, 0.0)
    expected = np.sqrt(max(stiffness / 2.0, G / system.size))
    assert stepper.own_rate(system.state()) == pytest.approx(expected, rel=1e-3)  # differenced over 1e-7


def test_slow_motions_keep_their_digits():
    """A pendulum that swings by 1e-9 rad: its cosine to 1e-6 of that, though speeds are below the floor by then.

    1 kg on 1 m hangs at A = pi/2 and swings at the rate sqrt(g / 1 m).
    """
    system = ld.library.pendulum().compile()
    rest, rate = np.pi / 2, np.sqrt(9.81)
    run = ld.simulate(system, system.state(q={"A": rest + 1e-9}), (0, 1), progress=False)
    assert np.abs(run.path.q[:, 0] - rest - 1e-9 * np.cos(rate * run.path.t)).max() < 1e-15  # last places of pi/2


@pytest.mark.jit_off
def test_many_rejections_in_a_row_end_the_run_with_a_reason():
    """An error that does not fall with the step, as rounding does not."""

    class Never(ld.integrators.DOP853):
        def in_python(self, stepper):
            def attempt(ints, floats, work, m, method, accelerate):
                m.new[:], m.clock[memory.ERROR] = m.y, 2.0
                return FINE

            return attempt

    system = ld.library.pendulum().compile()
    run = ld.simulate(system, system.state(), (0, 1), formulation="graph", integrator=Never(), progress=False)
    assert run.status == "failed"
    assert run.statistics.rejected == 50
    assert "one step was rejected 50 times in a row at t = 0 s" in run.message
    assert "give atol" in run.message


@pytest.mark.parametrize("angle", [7.0, -6.1, 13.0, 200 * np.pi / 180])
@pytest.mark.parametrize(
    "settings", [{}, {"integrator": "dp5"}, {"integrator": ld.integrators.RK4(0.01)}, {"formulation": "oracle"}]
)
def test_the_first_output_is_the_state_that_the_run_starts_from(angle, settings):
    system = ld.library.pendulum().compile()
    state = system.state(q={"A": angle})
    run = ld.simulate(system, state, (0.0, 0.1), progress=False, **settings)
    assert run.path.q[0, 0] == pytest.approx(angle, abs=1e-14)  # turns are taken off and added: one rounding
    assert run.at(0.0).q[0] == pytest.approx(angle, abs=1e-14)
    assert np.abs(np.diff(run.path.q[:, 0])).max() < 1.0  # no jump by a turn


def test_a_run_goes_on_from_another_one_with_its_turns():
    """A pendulum that turns over: both runs, one after another, are the whole run."""
    system = ld.library.pendulum().compile()
    state = system.state(v={"A": 30.0})
    whole = ld.simulate(system, state, (0.0, 2.0), t_eval=[1.0, 2.0], progress=False)
    first = ld.simulate(system, state, (0.0, 1.0), progress=False)
    second = ld.simulate(system, first.at(1.0), (1.0, 2.0), progress=False)
    assert second.path.q[0, 0] == pytest.approx(
        whole.path.q[0, 0], abs=1e-5
    )  # rtol of runs, 1e-6 by default, times 30 rad
    assert second.path.q[-1, 0] == pytest.approx(whole.path.q[-1, 0], abs=1e-5)  # ten times as much, a second later
