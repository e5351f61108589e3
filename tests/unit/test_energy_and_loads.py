"""Energies of all springs, loads of all forces, one RMS; accelerations that cannot be are refused."""

from __future__ import annotations

import numpy as np
import pytest

import loopdyn as ld


def run_of(m, cuts=None, end=0.4, **start):
    system = m.compile(cuts=cuts)
    return ld.simulate(system, ld.assemble(system, **start), (0, end), rtol=1e-11, progress=False)


def pendulum():
    m = ld.Mechanism("p", gravity=(0, -9.81, 0))
    m.add_body("bob", ld.Inertia.rod(mass=1.0, start=(0, 0, 0), end=(1, 0, 0), radius=0.01))
    return m


def total(run):
    return (run.data["energy_kinetic"] + run.data["energy_potential"]).values


def test_energy_of_a_spring_on_a_cut_joint_is_counted():
    m = pendulum()
    m.add_joint("A", ld.Revolute(axis=(0, 0, 1)), m.ground, "bob", at=(0, 0, 0))
    m.add_force(None, ld.forces.JointSpring(joint="A", stiffness=7.0, rest=0.2))
    run = run_of(m, cuts=["A"], v={"free:bob.wz": 1.0, "free:bob.vy": 0.0})
    angle = np.arctan2(*run.point("bob", (1, 0, 0))["position"].values[:, 1::-1].T)
    # 1e-9 J of some 5 J: the tolerance of the run
    np.testing.assert_allclose(run.elastic_energy, 3.5 * (angle - 0.2) ** 2, atol=1e-9)
    np.testing.assert_allclose(total(run), total(run)[0], atol=1e-8)


def test_energy_of_a_bushing_is_counted():
    m = pendulum()
    k, kt = (900.0, 1200.0, 1000.0), (40.0, 50.0, 30.0)
    m.add_force(
        "mount", ld.forces.Bushing(body1="ground", body2="bob", at=(0, 0, 0), stiffness=k, angular_stiffness=kt)
    )
    run = run_of(m)
    d = run.point("bob", (0, 0, 0))["position"].values
    angle = np.arctan2(*run.point("bob", (1, 0, 0))["position"].values[:, 1::-1].T - d[:, 1::-1].T)
    expected = 0.5 * (d**2 @ np.array(k)) + 0.5 * kt[2] * angle**2  # a motion in the plane
    np.testing.assert_allclose(run.elastic_energy, expected, atol=1e-9)
    np.testing.assert_allclose(total(run), total(run)[0], atol=1e-8)
    # the load is the size of the force
    load = run.data["load"].sel(force="mount")
    np.testing.assert_allclose(load, np.linalg.norm(d * np.array(k), axis=1), rtol=1e-7, atol=1e-7)
    assert run.data["force_units"].values.tolist() == ["N"]


def test_dampers_and_moving_bases_do_not_enter_the_elastic_energy():
    m = pendulum()
    m.move_base(x="0.1*sin(20*t)", rz="0.2*sin(5*t)")
    m.add_joint("A", ld.Revolute(axis=(0, 0, 1)), m.ground, "bob", at=(0, 0, 0))
    m.add_force(None, ld.forces.JointSpring(joint="A", stiffness=7.0, damping=3.0))
    tree = run_of(m, v={"A": 2.0}, end=0.2)
    expected = 3.5 * tree.path.q[:, tree.system.coordinates.index("A")] ** 2
    np.testing.assert_allclose(tree.elastic_energy, expected, rtol=1e-12, atol=1e-15)


def test_loads_of_applied_forces_and_of_pure_torques_are_their_sizes():
    m = pendulum()
    m.add_joint("A", ld.Revolute(axis=(0, 0, 1)), m.ground, "bob", at=(0, 0, 0))
    m.add_force("push", ld.forces.AppliedForce(body="bob", force=(3, 4, 0), torque=(0, 0, 1), at=(1, 0, 0)))
    m.add_force("turn", ld.forces.AppliedForce(body="bob", torque=(0, 0, "2*t"), at=(1, 0, 0)))
    run = run_of(m, end=0.1)
    loads = run.data["load"]
    np.testing.assert_allclose(loads.sel(force="push"), 5.0, rtol=1e-12)
    np.testing.assert_allclose(loads.sel(force="turn"), 2.0 * run.path.t, rtol=1e-12)
    assert run.data["force_units"].values.tolist() == ["N", "N*m"]
    assert {"push load", "turn load"} <= set(run.summary().index)


def test_rms_is_that_over_time_in_summary_and_bearings():
    """Outputs that are dense at one end: the mean over the outputs would be another number."""
    m = pendulum()
    m.add_joint("A", ld.Revolute(axis=(0, 0, 1)), m.ground, "bob", at=(0, 0, 0))
    m.add_motor("motor", "A", torque="10*t")
    system = m.compile()
    times = np.sort(np.concatenate([np.linspace(0, 0.1, 400), np.linspace(0.1, 1.0, 400)[1:]]))
    run = ld.simulate(system, ld.assemble(system), (0, 1), t_eval=times, progress=False)
    # of 10 t over 1 s: 10/sqrt(3); 1e-5: the trapezoidal rule over intervals of 1/400 of the span
    assert run.summary().loc["motor load", "rms"] == pytest.approx(10 / np.sqrt(3), rel=1e-5)
    planar = np.hypot(*(run.data["wrench"].sel(joint="A", component=c).values for c in ("fx", "fy")))
    assert run.bearings().table().loc["A radial force", "rms"] == pytest.approx(
        np.sqrt(np.trapezoid(planar**2, times)), rel=1e-9
    )


def test_accelerations_of_the_wrong_number_or_not_finite_are_refused():
    system = ld.library.four_bar().compile()
    state = ld.assemble(system)
    with pytest.raises(ld.errors.ModelError, match=r"3 accelerations are needed, the shape \(1,\) was given"):
        ld.reactions(system, state, np.zeros(1))
    bad = np.zeros(3)
    bad[1] = np.nan
    with pytest.raises(ld.errors.ModelError, match=r"a is array.*nan.* Give numbers"):
        ld.reactions(system, state, bad)
