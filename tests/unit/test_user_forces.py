"""Forces given as Python functions: called by the default formulation and others; who refuses says who can."""

import numpy as np
import pytest

import loopdyn as ld
from loopdyn.loops.elimination import layout

CALLING = ("auto", "graph", "relative", "partition", "oracle", "absolute")


def torque(size: float) -> ld.forces.UserForce:
    def push(t, q, v, out):
        out[0] += size

    return ld.forces.UserForce(function=push)


def pushed_four_bar(by_function: bool) -> ld.System:
    """A four-bar with 3 N m on its crank, from a function or from a motor."""
    m = ld.library.four_bar()
    if by_function:
        m.add_force("push", torque(3.0))
    else:
        m.add_motor("push", "A", torque=3.0)
    system = m.compile(cuts=["C"])
    assert system.speeds[0] == "A"
    return system


@pytest.mark.jit_off
@pytest.mark.parametrize("formulation", CALLING)
def test_a_user_force_turns_a_rotor(formulation):
    """A rod of 2 kg and 1 m about its end: I = 2/3, so 3 N m give 4.5 rad/s^2, and 0.5 4.5 t^2 in a run."""
    m = ld.Mechanism("rotor")
    m.add_body("rod", ld.Inertia.rod(mass=2.0, start=(0, 0, 0), end=(1, 0, 0)))
    m.add_joint("A", ld.Revolute(axis=(0, 0, 1)), "ground", "rod", at=(0, 0, 0))
    m.add_force("push", torque(3.0))
    system = m.compile()
    assert ld.accelerations(system, system.state(), formulation)[0] == pytest.approx(4.5, rel=1e-12)
    run = ld.simulate(system, system.state(), (0, 1), formulation=formulation, t_eval=[1.0], progress=False)
    assert run.path.q[0, 0] == pytest.approx(2.25, rel=1e-9)
    assert run.data["work"].sel(source="user forces").values[0] == pytest.approx(3.0 * 2.25, rel=1e-9)


@pytest.mark.parametrize("formulation", ["auto", "graph", "relative"])
def test_a_user_force_in_a_loop_does_what_a_motor_does(formulation):
    """Against the oracle, and in a run against the motor of the same torque, to the tolerance of both."""
    system, motor = pushed_four_bar(True), pushed_four_bar(False)
    state = ld.assemble(system, v={"A": 1.0})
    judged = ld.accelerations(system, state, "oracle")
    np.testing.assert_allclose(ld.accelerations(system, state, formulation), judged, rtol=1e-10)
    np.testing.assert_allclose(ld.accelerations(motor, state, "oracle"), judged, rtol=1e-10)
    runs = [ld.simulate(s, state, (0, 0.5), formulation=formulation, t_eval=[0.5], progress=False)
            for s in (system, motor)]  # fmt: skip
    np.testing.assert_allclose(runs[0].path.q, runs[1].path.q, atol=1e-6)
    assert runs[0].energy_error < 1e-7


def test_rows_chosen_anew_do_not_lose_the_force():
    """Where rows become weak they are chosen without the function; what follows counts it again."""
    system = pushed_four_bar(True)
    state = ld.assemble(system, v={"A": 1.0})
    solve = ld.prepare(system, "graph", state)
    solve.elimination.views.diagnostics[layout.WEAKEST_PIVOT] = np.inf
    found = solve(state.t, state.q, state.v).a
    np.testing.assert_allclose(found, ld.accelerations(system, state, "oracle"), rtol=1e-10)


def test_a_constant_that_changes_between_calls_is_seen():
    """As a controller does: the function is called every time."""
    size = np.zeros(1)

    def push(t, q, v, out):
        out[0] += size[0]

    m = ld.library.four_bar()
    m.add_force("push", ld.forces.UserForce(function=push))
    system = m.compile()
    state = ld.assemble(system)
    solve = ld.prepare(system, "auto", state)
    found = []
    for size[0] in (0.0, 1.0, 2.0):
        found.append(solve(state.t, state.q, state.v).a)
    # accelerations are linear in the load
    np.testing.assert_allclose(found[2] - found[1], found[1] - found[0], rtol=1e-9)
    assert np.abs(found[1] - found[0]).max() > 1e-3


@pytest.mark.parametrize("formulation", ["closure", "rcr", "momentum"])
def test_who_refuses_user_forces_names_those_that_can(formulation):
    system = pushed_four_bar(True)
    with pytest.raises(ld.LoopdynError, match=r"These can: .*relative, graph, partition, auto"):
        ld.accelerations(system, ld.assemble(system), formulation)


def test_auto_says_that_it_makes_no_momentum_steps():
    system = pushed_four_bar(True)
    plan = ld.Auto().plan(system).splitlines()[0]
    assert plan.startswith("auto: graph, in linear time; no momentum steps: the model has user forces")
