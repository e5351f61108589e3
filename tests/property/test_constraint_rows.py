"""Rows of cut joints: phi, J, phi_t and gamma belong together for every joint type, on and off closure.

A joint between a platform that is moved by formulas and a body that hangs on the (differently moved) ground, and one
between two bodies of the tree. Along a path with speeds v and accelerations a

    d phi/dt = J v + phi_t,    d2 phi/dt2 = J a - gamma

judged by five-point differences of phi (h = 1e-3: truncation near h^4 = 1e-12 times the fifth derivative, rounding
1e-16/h for the first and 1e-16/h^2 = 1e-10 for the second derivative), and exactly by complex steps.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.independent import (
    ROWS,
    TYPES,
    closed_state,
    first_derivative,
    path,
    quaternion,
    random_inertia,
    random_joint,
    random_rotation,
    random_state,
    rotation_vector,
    second_derivative,
    transfer,
)

import loopdyn as ld
from loopdyn.engine.status import FINE
from loopdyn.tree import aba, energies, jacobian, kinematics

DETERMINISTIC = settings(derandomize=True, database=None, deadline=None, max_examples=40)
H = 1e-3
STEP = 1e-30  # of complex steps
CUT_TYPES = [k for k in TYPES if k != "free"]


def bench(kind: str, seed: int, moving: bool = True) -> tuple[ld.System, np.random.Generator]:
    """Ground and platform moved; bodies a, b, c in a tree of several joint types; two joints of `kind`, cut."""
    rng = np.random.default_rng(seed)
    m = ld.Mechanism("bench", gravity=(1, -9, 2))
    for name in ("platform", "a", "b", "c"):
        m.add_body(name, random_inertia(rng, rng.normal(size=3)))
    m.add_joint("U", ld.Universal(axis1=(1, 0.2, 0), axis2=(0.1, 1, 0.3)), "a", m.ground, at=rng.normal(size=3))
    m.add_joint("S", ld.Spherical(), "a", "b", at=rng.normal(size=3))
    m.add_joint("T", ld.Free(), m.ground, "c", at=rng.normal(size=3))
    m.add_joint("X", random_joint(kind, rng), "platform", "b", at=0.3 * rng.normal(size=3))
    m.add_joint("Y", random_joint(kind, rng), "c", "a", at=0.3 * rng.normal(size=3))
    if moving:
        m.move_base(x="0.2*sin(2*t)", y="0.1*t**2", rz="0.3*sin(t)", rx="0.2*t")
        m.move_base("platform", z="0.1*cos(3*t)", x="0.2*t", rx="0.2*sin(2*t)", ry="0.3*t", rz="-0.1*t**2")
    else:
        m.move_base("platform")
    return m.compile(cuts=["X", "Y"]), rng


def continuous(kind: str, system: ld.System, state: ld.State) -> bool:
    """Away from half a turn, where the relative rotation (and the number of turns of a screw) jumps."""
    motion = ld.tree.body_motion(system, state)
    for name in ("X", "Y"):
        j = system.joints[name]
        R = (motion.rotation[j.parent] @ j.F[1]).T @ motion.rotation[j.child] @ j.M[1]
        if np.linalg.norm(rotation_vector(R)) > 2.8:
            return False
        rows = zip(ld.terms(system, state).phi, system.constraint_rows, strict=True)
        phi = [p for p, label in rows if "screw" in label]
        if kind == "helical" and any(abs(abs(p) - np.pi * abs(j.par[0])) < 0.05 for p in phi):
            return False
    return True


def off_closure(kind: str, seed: int, spread: float = 0.5) -> tuple[ld.System, ld.State, np.random.Generator]:
    system, rng = bench(kind, seed)
    state = random_state(system, rng, spread, t=0.4)
    while not continuous(kind, system, state):
        state = random_state(system, rng, spread, t=0.4)
    return system, state, rng


def check_rates(kind: str, seed: int) -> None:
    system, state, rng = off_closure(kind, seed)
    e = ld.terms(system, state)
    a = rng.normal(size=system.nv)
    along = path(system, state, a)

    def phi(s: float) -> np.ndarray:
        return ld.terms(system, along(s)).phi

    np.testing.assert_allclose(first_derivative(phi, H), e.J @ state.v + e.phi_t, atol=2e-8)
    np.testing.assert_allclose(second_derivative(phi, 2 * H), e.J @ a - e.gamma, atol=5e-7)
    # time alone: what moving bases do at frozen coordinates
    fixed = first_derivative(lambda s: ld.terms(system, ld.State(state.t + s, state.q, state.v)).phi, H)
    np.testing.assert_allclose(fixed, e.phi_t, atol=2e-8)
    for k in range(system.nv):
        unit = np.eye(system.nv)[k]
        column = first_derivative(
            lambda s, unit=unit: (
                ld.terms(system, ld.State(state.t, ld.tree.increment(system, state.q, s * unit), state.v)).phi
            ),
            H,
        )
        np.testing.assert_allclose(column, e.J[:, k], atol=2e-9)


@pytest.mark.jit_off
@pytest.mark.parametrize("kind", CUT_TYPES)
def test_rates_of_phi_are_J_v_plus_phi_t_and_J_a_minus_gamma(kind):
    for seed in range(4):
        check_rates(kind, seed)


@pytest.mark.slow
@DETERMINISTIC
@given(st.sampled_from(CUT_TYPES), st.integers(0, 2**32 - 1))
def test_rates_of_phi_at_many_states(kind, seed):
    check_rates(kind, seed)


# ------------------------------------------------------------------------------------------------ complex steps


def complex_closure(system: ld.System, t: complex, q: np.ndarray, v: np.ndarray):
    work = system.work(np.complex128)
    w = system.open_work(work)
    w.t[0], w.q[:], w.v[:] = t, q, v
    J, rate = np.empty((system.nc, system.nv), complex), np.empty(system.nc, complex)
    kinematics.place(system.ints, system.floats, work, False)
    jacobian.constraint_terms(system.ints, system.floats, work, J, rate)
    return w.phi, w.gamma, J, rate


def moved(system: ld.System, q: np.ndarray, xi: np.ndarray) -> np.ndarray:
    out = np.empty(system.nq, complex)
    kinematics.plus(system.ints, system.floats, q.astype(complex), xi.astype(complex), out)
    return out


@pytest.mark.jit_off
@pytest.mark.parametrize("kind", CUT_TYPES)
def test_complex_steps_of_phi_and_of_its_rate_give_J_phi_t_and_gamma_to_rounding(kind):
    """Second derivatives as a complex step of the rate J v + phi_t, first derivatives of phi itself."""
    for seed in range(4):
        system, state, rng = off_closure(kind, seed)
        e, a = ld.terms(system, state), rng.normal(size=system.nv)
        scale = 1 + np.abs(e.J).max()
        for k in range(system.nv):
            q = moved(system, state.q, 1j * STEP * np.eye(system.nv)[k])
            phi, *_ = complex_closure(system, state.t, q, state.v)
            np.testing.assert_allclose(phi.imag / STEP, e.J[:, k], atol=1e-13 * scale)
            np.testing.assert_allclose(phi.real, e.phi, atol=1e-14)
        phi, *_ = complex_closure(system, state.t + 1j * STEP, state.q, state.v)
        np.testing.assert_allclose(phi.imag / STEP, e.phi_t, atol=1e-12 * scale)
        # at a first step in v the bend of the path (half of a s^2) does not matter
        q = moved(system, state.q, 1j * STEP * state.v)
        _, _, _, rate = complex_closure(system, state.t + 1j * STEP, q, state.v + 1j * STEP * a)
        np.testing.assert_allclose(rate.real, e.J @ state.v + e.phi_t, atol=1e-12 * scale)
        size = 1 + np.abs(e.J) @ np.abs(a) + np.abs(e.gamma)
        np.testing.assert_array_less(np.abs(rate.imag / STEP - (e.J @ a - e.gamma)), 1e-12 * size)


@pytest.mark.jit_off
def test_complex_step_through_forward_dynamics_and_energy_agrees_with_differences():
    """The same kernel source in complex128: derivatives of accelerations along a direction, all forces included."""
    for seed in (1, 4, 9):
        m = ld.library.random_mechanism(seed, bodies=8, loops=1, forces=True)
        m.move_base(x="0.1*sin(2*t)", ry="0.3*t**2")
        system = m.compile()
        rng = np.random.default_rng(seed)
        state = random_state(system, rng, 0.5, t=0.4)
        dq, dv = rng.normal(size=system.nv), rng.normal(size=system.nv)

        def at(s: float, system=system, state=state, dq=dq, dv=dv) -> ld.State:
            return ld.State(state.t + s, ld.tree.increment(system, state.q, s * dq), state.v + s * dv)

        work = system.work(np.complex128)
        w = system.open_work(work)
        w.t[0], w.v[:] = state.t + 1j * STEP, state.v + 1j * STEP * dv
        w.q[:] = moved(system, state.q, 1j * STEP * dq)
        assert aba.aba(system.ints, system.floats, work) == FINE
        exact, values = w.a.imag / STEP, w.a.real.copy()
        out = np.empty(8, complex)
        energies.energy(system.ints, system.floats, work, out)
        np.testing.assert_allclose(values, ld.tree.open_tree_forward_dynamics(system, state), rtol=1e-9, atol=1e-9)
        differences = first_derivative(lambda s, at=at, x=system: ld.tree.open_tree_forward_dynamics(x, at(s)), 1e-4)
        scale = 1 + np.abs(exact).max()  # accelerations of some hundred, curved within 1e-2
        np.testing.assert_allclose(differences, exact, atol=1e-8 * scale)
        kinetic = first_derivative(lambda s, at=at, x=system: np.array(ld.tree.energy(x, at(s)).kinetic), H)
        assert out[0].imag / STEP == pytest.approx(float(kinetic), rel=1e-8)


# ------------------------------------------------------------------------------------------- meaning of the rows


@pytest.mark.jit_off
@pytest.mark.parametrize("kind", TYPES)
def test_names_of_the_rows_say_how_many_there_are_and_complete_the_freedoms(kind):
    rng = np.random.default_rng(0)
    spec = random_joint(kind, rng)
    assert spec.rows_when_cut == ROWS[kind]
    assert len(spec.rows_when_cut) + len(spec.speeds) == 6
    system, _ = bench(kind, 0)
    assert system.constraint_rows == tuple(f"{j}.{row}" for j in ("X", "Y") for row in ROWS[kind])
    assert system.nc == 2 * len(ROWS[kind])


def rows_of(system: ld.System, state: ld.State) -> np.ndarray:
    work = system.work()
    w = system.open_work(work)
    w.t[0], w.q[:], w.v[:] = state.t, state.q, state.v
    kinematics.place(system.ints, system.floats, work, False)
    jacobian.constraint_terms(system.ints, system.floats, work, np.empty((system.nc, system.nv)), np.empty(system.nc))
    return w.rows.copy()


def wrench_pair_jacobian(system: ld.System, state: ld.State, name: str, rows: np.ndarray) -> np.ndarray:
    """J of wrenches on the declared child at M's origin and the opposite ones on the parent, from body Jacobians."""
    j, motion = system.joints[name], ld.tree.body_motion(system, state)
    at = motion.position[j.child] + motion.rotation[j.child] @ j.M[0]
    J = np.zeros((len(rows), system.nv))
    for body, sign in ((j.child, 1.0), (j.parent, -1.0)):
        B = ld.tree.open_tree_body_jacobian(system, system.bodies[body], state)
        arm = at - motion.position[body]
        torque = rows[:, :3] + np.cross(arm, rows[:, 3:])
        J += sign * np.hstack([torque, rows[:, 3:]]) @ B
    return J


@pytest.mark.jit_off
@pytest.mark.parametrize("kind", CUT_TYPES)
def test_multipliers_are_the_wrench_on_the_declared_child_at_M_in_F_axes(kind):
    """At closure each row is a unit torque or force along an axis of F; J^T lam is what this wrench pair does."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        m = ld.Mechanism("pair")
        for name in ("a", "b"):
            m.add_body(name, random_inertia(rng, rng.normal(size=3)))
        m.add_joint("X", random_joint(kind, rng), "a", "b", at=rng.normal(size=3))
        system = m.compile(cuts=["X"])
        # a pose that is closed: taken from the tree in which the joint is kept
        kept = m.compile()
        state = transfer(system, ld.tree.body_motion(kept, random_state(kept, rng, 0.6)))
        e = ld.terms(system, state)
        np.testing.assert_allclose(e.phi, 0, atol=1e-14)
        np.testing.assert_allclose(e.J @ state.v, 0, atol=1e-12)
        j, motion = system.joints["X"], ld.tree.body_motion(system, state)
        F = motion.rotation[j.parent] @ j.F[1]
        rows = rows_of(system, state)
        np.testing.assert_allclose(wrench_pair_jacobian(system, state, "X", rows), e.J, atol=1e-13)
        seen = np.hstack([rows[:, :3] @ F, rows[:, 3:] @ F])  # components along the axes of F
        for k, row in enumerate(ROWS[kind]):
            if row == "normal":  # unit torque about the common normal of the two axes, at this pose
                a1 = motion.rotation[j.parent] @ np.array(j.spec.axis1)
                a2 = motion.rotation[j.child] @ np.array(j.spec.axis2)
                n = np.cross(a1, a2)
                expected = np.concatenate([F.T @ n / np.linalg.norm(n), np.zeros(3)])
            elif row == "screw":  # a force along z drives the slide, and -pitch times it the angle
                expected = np.array([0, 0, -j.par[0], 0, 0, 1])
            else:
                expected = np.eye(6)[["mx", "my", "mz", "fx", "fy", "fz"].index(row)]
            np.testing.assert_allclose(seen[k], expected, atol=1e-13, err_msg=row)


@pytest.mark.jit_off
def test_multiplier_of_a_pendulum_at_rest_carries_the_weight():
    """A body of 2 kg hangs on a cut hinge: the wrench on the child is +m g upwards, given in F axes."""
    m = ld.Mechanism("weight", gravity=(0, 0, -9.81))
    m.add_body("b", ld.Inertia(2.0, (0, 0, -1.0), 0.1 * np.eye(3)))
    m.add_joint("X", ld.Revolute(axis=(0, 1, 0)), m.ground, "b", at=(0, 0, 0))
    system = m.compile(cuts=["X"])
    e = ld.terms(system, system.state())
    lam = np.linalg.solve(e.J @ np.linalg.solve(e.M, e.J.T), e.gamma - e.J @ np.linalg.solve(e.M, e.h))
    force = system.joints["X"].F[1] @ lam[2:]  # from F axes to world axes
    np.testing.assert_allclose(force, (0, 0, 2.0 * 9.81), atol=1e-12)
    np.testing.assert_allclose(lam[:2], 0, atol=1e-12)


@pytest.mark.jit_off
@pytest.mark.parametrize("kind", CUT_TYPES)
def test_rows_far_off_closure_still_lead_back_to_it(kind):
    """Newton's method on the rows closes the joint again: phi = 0 means closed, and only that."""
    for seed in range(3):
        system, rng = bench(kind, seed, moving=False)
        state = closed_state(system, rng, spread=0.2)
        motion = ld.tree.body_motion(system, state)
        assert np.abs(ld.terms(system, state).phi).max() < 1e-12
        for name in ("X", "Y"):
            j = system.joints[name]
            (xF, F), (xM, M) = (
                (motion.position[b] + motion.rotation[b] @ p, motion.rotation[b] @ R)
                for b, (p, R) in ((j.parent, j.F), (j.child, j.M))
            )
            E, d = F.T @ M, F.T @ (xM - xF)
            if kind in ("revolute", "helical", "cylindrical", "planar"):
                np.testing.assert_allclose(np.abs(E[2, 2]), 1, atol=1e-12)
                assert E[2, 2] > 0
            if kind in ("prismatic", "translational", "weld"):
                np.testing.assert_allclose(E, np.eye(3), atol=1e-12)
            if kind in ("revolute", "universal", "spherical", "weld"):
                np.testing.assert_allclose(d, 0, atol=1e-12)
            if kind in ("prismatic", "helical", "cylindrical"):
                np.testing.assert_allclose(d[:2], 0, atol=1e-12)
            if kind == "planar":
                assert abs(d[2]) < 1e-12
            if kind == "helical":
                turns = (d[2] / j.par[0] - np.arctan2(E[1, 0], E[0, 0])) / (2 * np.pi)
                assert abs(turns - round(turns)) < 1e-12
            if kind == "universal":
                a1, a2 = np.array(j.spec.axis1), np.array(j.spec.axis2)
                now = (motion.rotation[j.parent] @ a1) @ (motion.rotation[j.child] @ a2)
                assert now == pytest.approx(a1 @ a2, abs=1e-12)


@pytest.mark.jit_off
def test_weld_rows_do_not_vanish_at_half_a_turn():
    """2 (x, y, z) of the relative quaternion is largest there: a loop cannot close the wrong way round."""
    rng = np.random.default_rng(1)
    m = ld.Mechanism("weld")
    m.add_body("b", random_inertia(rng, (0, 0, 0)))
    m.add_joint("X", ld.joints.Weld(), m.ground, "b", at=(0, 0, 0))
    free = m.compile(cuts=["X"])
    for axis in np.eye(3):
        phi = ld.terms(free, free.state([0, 0, 0, 0.0, *axis])).phi
        assert np.linalg.norm(phi[:3]) == pytest.approx(2.0)
    q = [0, 0, 0, *quaternion(random_rotation(rng))]
    assert np.linalg.norm(ld.terms(free, free.state(q)).phi[:3]) > 0.1
