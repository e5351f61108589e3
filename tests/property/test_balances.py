"""Balances that hold whatever the mechanism: power, momentum, and what follows from M a = h.

Mechanisms are drawn by Hypothesis (derandomised: every run sees the same ones). Energies, momenta and the power of all
loads are computed by the test from the motion of the bodies (tests/independent.py). Rates are taken by complex step
through the kernels, exact to rounding, so the tolerances leave room for the conditioning of light bodies at the end
of long branches and nothing else: 1e-10 relative to the largest term of a sum, where errors near 1e-14 are usual.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp
from tests.independent import (
    TYPES,
    balances,
    closed_state,
    constrained,
    point,
    random_inertia,
    random_joint,
    random_state,
    rotation_vector,
    turn,
    value,
)

import loopdyn as ld
from loopdyn.library.random import MAKERS
from loopdyn.tree.energies import energy as energy_kernel
from loopdyn.tree.kinematics import plus

DETERMINISTIC = settings(derandomize=True, database=None, deadline=None, max_examples=50)
MANY = settings(DETERMINISTIC, max_examples=400)
TOLERANCE = 1e-10

seeds = st.integers(0, 2**32 - 1)
sizes = st.integers(1, 9)


def tree(seed: int, bodies: int, **options: bool) -> tuple[ld.Mechanism, ld.System, ld.State]:
    m = ld.library.random_mechanism(seed, bodies=bodies, loops=0, **options)
    system = m.compile()
    return m, system, random_state(system, np.random.default_rng(seed), t=0.7)


def linkage(seed: int, bodies: int, loops: int, **options: bool) -> tuple[ld.Mechanism, ld.System, ld.State]:
    """With ball joints and hinges for the most part, so that there is room for loops; closed in position and speed."""
    types = [*MAKERS, "spherical", "revolute", "spherical", "universal"]
    m = ld.library.random_mechanism(seed, bodies=bodies, loops=loops, joints=types, **options)
    system = m.compile()
    return m, system, closed_state(system, np.random.default_rng(seed), t=0.7)


def rates(system: ld.System, state: ld.State, a: np.ndarray) -> np.ndarray:
    """Time derivatives of kinetic energy, energy in gravity, momentum (3) and angular momentum (3) along a motion."""
    step = 1e-30  # nothing is subtracted, so it may be as small as one likes
    work = system.work(np.complex128)
    w = system.open_work(work)
    w.t[0] = state.t + 1j * step
    w.v[:] = state.v + 1j * step * a
    q = state.q.astype(complex)
    plus(system.ints, system.floats, q, 1j * step * state.v, w.q)
    out = np.empty(8, complex)
    energy_kernel(system.ints, system.floats, work, out)
    return out.imag / step


# -------------------------------------------------------------------- power of the loads, from their definitions


def load_powers(m: ld.Mechanism, system: ld.System, state: ld.State) -> list[float]:
    """Power of gravity and of every force, for mechanisms whose bodies have no pose of their own."""
    motion = ld.tree.body_motion(system, state)
    _, p, *_ = balances(m, motion)
    powers = [float(p @ np.array(m.gravity, float))]
    for force in m.forces.values():
        powers.append(POWER[force.type](force, motion, system, state))
    return powers


def line(force, motion):
    (x1, v1), (x2, v2) = point(motion, force.body1, force.point1), point(motion, force.body2, force.point2)
    length = np.linalg.norm(x2 - x1)
    return length, (x2 - x1) @ (v2 - v1) / length


def spring_power(force, motion, system, state):
    length, rate = line(force, motion)
    free = np.linalg.norm(np.subtract(force.point2, force.point1)) if force.length is None else force.length
    return -(force.stiffness * (length - free) + force.damping * rate) * rate


def actuator_power(force, motion, system, state):
    length, rate = line(force, motion)
    return value(force.force, {"t": state.t, "length": length, "speed": rate}) * rate


def bushing_power(force, motion, system, state):
    i, j = (motion.bodies.index(b) for b in (force.body1, force.body2))
    at_reference = turn(force.rotation.axis, force.rotation.angle)
    F, M = motion.rotation[i] @ at_reference, motion.rotation[j] @ at_reference
    (x1, v1), (x2, v2) = point(motion, force.body1, force.at), point(motion, force.body2, force.at)
    spin = motion.angular_velocity[j] - motion.angular_velocity[i]
    d = F.T @ (x2 - x1)
    rate = F.T @ (v2 - v1 - np.cross(motion.angular_velocity[i], x2 - x1))
    theta, turning = rotation_vector(F.T @ M), F.T @ spin
    push = -np.array(force.stiffness) * d - np.array(force.damping) * rate
    twist = -np.array(force.angular_stiffness) * theta - np.array(force.angular_damping) * turning
    return push @ rate + twist @ turning


def applied_power(force, motion, system, state):
    k = motion.bodies.index(force.body)
    axes = motion.rotation[k] if force.axes == "body" else np.eye(3)
    push, twist = (axes @ [value(c, {"t": state.t}) for c in law] for law in (force.force, force.torque))
    return push @ point(motion, force.body, force.at)[1] + twist @ motion.angular_velocity[k]


def coordinate(force, system, state):
    return state.q[system.coordinates.index(force.joint)], state.v[system.speeds.index(force.joint)]


def joint_spring_power(force, motion, system, state):
    x, speed = coordinate(force, system, state)
    return (-force.stiffness * (x - force.rest) - force.damping * speed) * speed


def friction_power(force, motion, system, state):
    _, speed = coordinate(force, system, state)
    return -(force.viscous * speed + force.coulomb * np.tanh(speed / force.transition)) * speed


def motor_power(force, motion, system, state):
    x, speed = coordinate(force, system, state)
    law = force.force if force.torque is None else force.torque
    return value(law, {"t": state.t, "position": x, "speed": speed}) * speed


POWER = {
    "spring_damper": spring_power,
    "actuator": actuator_power,
    "bushing": bushing_power,
    "applied": applied_power,
    "joint_spring": joint_spring_power,
    "joint_friction": friction_power,
    "motor": motor_power,
}


def check_power(m: ld.Mechanism, system: ld.System, state: ld.State, a: np.ndarray) -> None:
    powers = load_powers(m, system, state)
    scale = 1.0 + sum(abs(p) for p in powers)
    kinetic = rates(system, state, a)[0]
    assert kinetic == pytest.approx(sum(powers), abs=TOLERANCE * scale, rel=0)


# ------------------------------------------------------------------------------------------ energy and power


def check_kinetic_energy(seed: int, bodies: int, floating: bool) -> None:
    m, system, state = tree(seed, bodies, floating=floating)
    got = ld.tree.energy(system, state)
    T, p, L, _, moment = balances(m, ld.tree.body_motion(system, state))
    M = ld.tree.open_tree_mass_matrix(system, state)
    assert got.kinetic == pytest.approx(T, rel=1e-12)
    assert 0.5 * state.v @ M @ state.v == pytest.approx(T, rel=1e-12)
    np.testing.assert_allclose(got.momentum, p, atol=1e-12 * (1 + np.abs(p).max()))
    np.testing.assert_allclose(got.angular_momentum, L, atol=1e-12 * (1 + np.abs(L).max()))
    assert got.gravity == pytest.approx(-np.array(m.gravity) @ moment, abs=1e-11)


@DETERMINISTIC
@given(seeds, sizes, st.booleans())
def test_energies_and_momenta_are_the_sums_over_the_bodies_and_T_is_half_v_M_v(seed, bodies, floating):
    check_kinetic_energy(seed, bodies, floating)


def check_tree_power(seed: int, bodies: int, floating: bool) -> None:
    m, system, state = tree(seed, bodies, floating=floating, forces=True)
    check_power(m, system, state, ld.tree.open_tree_forward_dynamics(system, state))


@DETERMINISTIC
@given(seeds, sizes, st.booleans())
def test_kinetic_energy_of_a_tree_grows_by_the_power_of_all_loads(seed, bodies, floating):
    check_tree_power(seed, bodies, floating)


@pytest.mark.jit_off
@pytest.mark.parametrize("kind", [k for k in MAKERS if k != "weld"])
def test_power_balance_holds_for_trees_of_one_joint_type(kind):
    for seed in range(5):
        m = ld.library.random_mechanism(seed, bodies=4, loops=0, joints=[kind], forces=True)
        system = m.compile()
        state = random_state(system, np.random.default_rng(seed), t=0.3)
        check_power(m, system, state, ld.tree.open_tree_forward_dynamics(system, state))


@pytest.mark.slow
@MANY
@given(seeds, st.integers(1, 25), st.booleans())
def test_energy_sums_and_power_balance_hold_for_many_trees(seed, bodies, floating):
    check_kinetic_energy(seed, bodies, floating)
    check_tree_power(seed, bodies, floating)


@DETERMINISTIC
@given(seeds, st.integers(5, 9), st.integers(1, 2), st.booleans())
def test_closed_loops_do_no_work(seed, bodies, loops, floating):
    """Constraint forces of the cut joints are workless: the balance holds with the loads alone."""
    m, system, state = linkage(seed, bodies, loops, floating=floating)
    a, _ = constrained(system, state)
    check_power(m, system, state, a)


@pytest.mark.jit_off
def test_energy_of_a_double_pendulum_with_a_spring_is_conserved_over_a_run():
    """Integrated by SciPy at rtol 1e-10; the total energy then drifts by less than 1e-8 of what is exchanged."""
    m = ld.Mechanism("double", gravity=(0, -9.81, 0))
    one = m.add_body("one", ld.Inertia(1.0, (0.5, 0, 0), np.diag([0.02, 0.1, 0.1])))
    two = m.add_body("two", ld.Inertia(0.7, (1.4, 0, 0), np.diag([0.02, 0.07, 0.08])))
    m.add_joint("A", ld.Universal(axis1=(0, 0, 1), axis2=(0, 1, 0)), m.ground, one, at=(0, 0, 0))
    m.add_joint("B", ld.Revolute(axis=(0, 0.2, 1)), one, two, at=(1, 0, 0))
    m.add_force(None, ld.forces.SpringDamper(m.ground, two, (0.3, 1.0, 0.2), (1.5, 0, 0), stiffness=12.0, length=0.4))
    m.add_force(None, ld.forces.JointSpring(joint="B", stiffness=2.0, rest=0.3))
    system = m.compile()

    def total(y: np.ndarray) -> float:
        state = system.state(y[:3], y[3:])
        motion = ld.tree.body_motion(system, state)
        T, *_, moment = balances(m, motion)
        x2, _ = point(motion, two, (1.5, 0, 0))
        spring = 6.0 * (np.linalg.norm(x2 - [0.3, 1.0, 0.2]) - 0.4) ** 2
        return T + 9.81 * moment[1] + spring + 1.0 * (y[2] - 0.3) ** 2

    def rhs(t: float, y: np.ndarray) -> np.ndarray:
        return np.concatenate([y[3:], ld.tree.open_tree_forward_dynamics(system, system.state(y[:3], y[3:], t))])

    run = solve_ivp(rhs, (0, 1.0), [0.1, 0.2, -0.1, 0.5, -1.0, 2.0], method="DOP853", rtol=1e-10, atol=1e-12)
    energies = [total(y) for y in run.y.T]
    kinetic = [balances(m, ld.tree.body_motion(system, system.state(y[:3], y[3:])))[0] for y in run.y.T]
    assert np.ptp(kinetic) > 3.0  # J: energy was exchanged
    assert np.ptp(energies) < 1e-8 * np.ptp(kinetic)


# --------------------------------------------------------------------------------------- momentum of free systems


def add_internal_forces(m: ld.Mechanism, rng: np.random.Generator) -> None:
    """One force of each kind between bodies of the system, none to the ground."""
    names = list(m.bodies)

    def two() -> dict[str, str]:
        a, b = rng.choice(names, size=2, replace=False).tolist()
        return {"body1": a, "body2": b}

    def points() -> dict[str, list[float]]:
        return {key: rng.normal(size=3).tolist() for key in ("point1", "point2")}

    m.add_force(None, ld.forces.SpringDamper(**two(), **points(), stiffness=30.0, damping=2.0, length=0.3))
    m.add_force(None, ld.forces.Actuator(**two(), **points(), force="3*cos(2*t) + 0.5*length - 0.3*speed"))
    stiff = {k: rng.uniform(1, 5, 3) for k in ("stiffness", "damping", "angular_stiffness", "angular_damping")}
    m.add_force(
        None,
        ld.forces.Bushing(
            **two(), at=rng.normal(size=3), rotation=ld.joints.Rotation(axis=(1, 2, 3), angle=0.4), **stiff
        ),
    )
    for name, spec in m.joints.items():
        for label, suffix in zip(spec.labels(name)[1], spec.speeds, strict=True):
            turning = suffix.startswith("w") or dict(zip(spec.coordinates, spec.dimensions)).get(suffix) == "angle"
            m.add_force(None, ld.forces.JointFriction(joint=label, viscous=0.1, coulomb=0.3, transition=0.2))
            law = {"torque" if turning else "force": "2*sin(t) - speed"}
            m.add_motor(f"drive {label.replace('.', ' ')}", label, **law)
            if len(spec.speeds) == len(spec.coordinates):
                m.add_force(None, ld.forces.JointSpring(joint=label, stiffness=4.0, damping=0.2, rest=0.3))


def check_momentum(m: ld.Mechanism, system: ld.System, state: ld.State, a: np.ndarray) -> None:
    """dp/dt = m g and dL/dt = c x m g, about the origin; internal forces do not appear."""
    change = rates(system, state, a)
    motion = ld.tree.body_motion(system, state, a)
    _, _, _, mass, moment = balances(m, motion)
    g = np.array(m.gravity, float)
    scale = 1.0 + sum(b.mass * np.abs(motion.acceleration[motion.bodies.index(n)]).max() for n, b in m.bodies.items())
    reach = 1.0 + np.abs(motion.position).max()
    np.testing.assert_allclose(change[2:5], mass * g, atol=TOLERANCE * scale)
    np.testing.assert_allclose(change[5:8], np.cross(moment, g), atol=TOLERANCE * scale * reach)


@DETERMINISTIC
@given(seeds, st.integers(2, 9), st.booleans())
def test_momentum_of_a_floating_tree_changes_by_gravity_alone(seed, bodies, gravity):
    m = ld.library.random_mechanism(seed, bodies=bodies, loops=0, floating=True)
    rng = np.random.default_rng(seed)
    if not gravity:
        m.gravity = (0, 0, 0)
    add_internal_forces(m, rng)
    system = m.compile()
    state = random_state(system, rng, t=0.4)
    check_momentum(m, system, state, ld.tree.open_tree_forward_dynamics(system, state))


@DETERMINISTIC
@given(seeds, st.integers(5, 9), st.integers(1, 2), st.booleans())
def test_momentum_of_a_floating_closed_linkage_changes_by_gravity_alone(seed, bodies, loops, absolute):
    """Also with forces on joints that are cut, whose wrench pairs are put on the two bodies one by one."""
    types = [*MAKERS, "spherical", "revolute", "spherical", "universal"]
    m = ld.library.random_mechanism(seed, bodies=bodies, loops=loops, joints=types, floating=True)
    rng = np.random.default_rng(seed)
    add_internal_forces(m, rng)
    system = m.compile(cuts="all" if absolute else None)
    state = closed_state(system, rng, t=0.4)
    a, _ = constrained(system, state)
    check_momentum(m, system, state, a)


@pytest.mark.jit_off
def test_a_floating_body_alone_obeys_the_equations_of_newton_and_euler():
    """Accelerations in axes that turn with the body, by hand: I a = -w x I w + torque, u' = R^T F/m - w x u."""
    rng = np.random.default_rng(5)
    I = np.diag([0.3, 0.5, 0.6])
    m = ld.Mechanism("body", gravity=(1.0, -2.0, 3.0))
    m.add_body("b", ld.Inertia(2.0, (0, 0, 0), I))
    m.add_force(None, ld.forces.AppliedForce(body="b", force=(1, 2, 3), torque=(-1, 0.5, 2), at=(0, 0, 0), axes="body"))
    system = m.compile()
    state = random_state(system, rng)
    w, u = state.v[:3], state.v[3:]
    R = ld.tree.body_motion(system, state).rotation[1]
    a = ld.tree.open_tree_forward_dynamics(system, state)
    np.testing.assert_allclose(a[:3], np.linalg.solve(I, [-1, 0.5, 2] - np.cross(w, I @ w)), rtol=1e-12)
    np.testing.assert_allclose(a[3:], np.array([1, 2, 3]) / 2.0 + R.T @ [1, -2, 3] - np.cross(w, u), atol=1e-12)


# --------------------------------------------------------------------------------------------------- M a = h


def check_dynamics(seed: int, bodies: int, floating: bool) -> None:
    _, system, state = tree(seed, bodies, floating=floating, forces=True)
    rng = np.random.default_rng(seed + 1)
    tau = rng.normal(size=system.nv)
    e = ld.terms(system, state)
    assert np.array_equal(e.M, e.M.T)
    moments = np.linalg.eigvalsh(e.M)
    assert system.nv == 0 or moments[0] > 0.0
    a = ld.tree.open_tree_forward_dynamics(system, state)
    size = np.abs(e.M) @ np.abs(a) + np.abs(e.h) + 1.0
    np.testing.assert_array_less(np.abs(e.M @ a - e.h), TOLERANCE * size)
    # inverse dynamics of the forward ones, and the other way round
    with_tau = ld.tree.open_tree_forward_dynamics(system, state, tau)
    np.testing.assert_array_less(
        np.abs(ld.tree.open_tree_inverse_dynamics(system, with_tau, state) - tau), TOLERANCE * size
    )
    chosen = rng.normal(size=system.nv)
    back = ld.tree.open_tree_forward_dynamics(system, state, ld.tree.open_tree_inverse_dynamics(system, chosen, state))
    error = np.abs(e.M @ (back - chosen))  # as forces: accelerations of light bodies are ill-conditioned
    np.testing.assert_array_less(error, TOLERANCE * (size + np.abs(e.M) @ np.abs(chosen)))
    np.testing.assert_array_less(
        np.abs(ld.tree.open_tree_inverse_dynamics(system, chosen, state) - (e.M @ chosen - e.h)),
        1e-11 * (size + np.abs(e.M) @ np.abs(chosen)),
    )


@DETERMINISTIC
@given(seeds, sizes, st.booleans())
def test_forward_and_inverse_dynamics_undo_each_other_and_M_a_is_h_with_M_positive_definite(seed, bodies, floating):
    check_dynamics(seed, bodies, floating)


@pytest.mark.slow
@MANY
@given(seeds, st.integers(1, 40), st.booleans())
def test_forward_and_inverse_dynamics_undo_each_other_on_many_trees(seed, bodies, floating):
    check_dynamics(seed, bodies, floating)


@pytest.mark.jit_off
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("reverse", [False, True])
def test_M_a_is_h_for_each_joint_type_in_both_directions(kind, reverse):
    """Chain ground - body - body with the joint turned about or not, so that each kernel branch is entered."""
    rng = np.random.default_rng(3)
    m = ld.Mechanism("chain", gravity=(1, -9, 2))
    previous = m.ground
    for k in range(3):
        body = m.add_body(f"b{k}", random_inertia(rng, rng.normal(size=3)))
        ends = (body, previous) if reverse else (previous, body)
        m.add_joint(f"J{k}", random_joint(kind, rng), *ends, at=rng.normal(size=3))
        previous = body
    system = m.compile()
    state = random_state(system, rng)
    e, a = ld.terms(system, state), ld.tree.open_tree_forward_dynamics(system, state)
    np.testing.assert_allclose(e.M @ a, e.h, atol=1e-10 * (1 + np.abs(e.h).max(initial=0)))
    check_power(m, system, state, a)


@pytest.mark.jit_off
def test_solver_without_tau_does_not_remember_that_of_the_call_before():
    system = ld.library.pendulum().compile()
    solve = ld.tree.TreeSolver(system)
    before = solve(0.0, [0.1], [0.2]).copy()
    with_torque = solve(0.0, [0.1], [0.2], [5.0]).copy()
    assert with_torque[0] != before[0]
    assert solve(0.0, [0.1], [0.2])[0] == before[0]
