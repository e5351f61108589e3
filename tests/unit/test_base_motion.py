"""Ground and root bodies moved by given functions of time (Mufti 1983, Remark 3).

Closed forms are the textbook equations of motion in a moving frame, written out here; the rotation and its rates come
from SymPy. Tolerances of 1e-11 are relative to accelerations of order 10.
"""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp
from tests.independent import (
    TYPES,
    first_derivative,
    path,
    random_inertia,
    random_joint,
    random_rotation,
    random_state,
    turn,
)

import loopdyn as ld

pytestmark = pytest.mark.jit_off

G, LENGTH = 9.81, 0.7
T = sp.symbols("t")


def pendulum(axis=(0, 0, 1)) -> ld.Mechanism:
    """A point mass hanging at (0, -LENGTH, 0) on a hinge at the origin."""
    m = ld.Mechanism("pendulum", gravity=(0, -G, 0))
    m.add_body("bob", ld.Inertia.point(mass=1.3, at=(0, -LENGTH, 0)))
    m.add_joint("A", ld.Revolute(axis=axis), m.ground, "bob", at=(0, 0, 0))
    return m


def acceleration(m: ld.Mechanism, q: float, v: float, t: float) -> float:
    system = m.compile()
    return float(ld.tree.open_tree_forward_dynamics(system, system.state([q], [v], t))[0])


@pytest.mark.parametrize("t", [0.0, 0.13, 1.0])
def test_pendulum_on_a_base_that_shakes_sideways_and_up_and_down(t):
    """theta'' = -(g + y'')/l sin theta - x''/l cos theta."""
    m = pendulum()
    m.move_base(x="0.1*sin(7*t)", y="0.05*cos(9*t)")
    ddx, ddy = -0.1 * 49 * np.sin(7 * t), -0.05 * 81 * np.cos(9 * t)
    for q in (0.0, 0.5, 2.5):
        expected = -(G + ddy) / LENGTH * np.sin(q) - ddx / LENGTH * np.cos(q)
        assert acceleration(m, q, 1.7, t) == pytest.approx(expected, abs=1e-11)


def test_pendulum_on_a_base_that_turns_about_the_vertical_feels_the_centrifugal_force():
    """theta'' = Omega^2 sin theta cos theta - g/l sin theta, Omega(t) the rate of turning."""
    m = pendulum()
    m.move_base(ry="2*t + 0.3*sin(4*t)")
    for t in (0.0, 0.4, 1.1):
        rate = 2 + 1.2 * np.cos(4 * t)
        for q in (0.3, 1.2):
            expected = rate**2 * np.sin(q) * np.cos(q) - G / LENGTH * np.sin(q)
            assert acceleration(m, q, -0.6, t) == pytest.approx(expected, abs=1e-11)


def test_pendulum_on_a_base_that_turns_about_its_own_axis_keeps_its_absolute_angle():
    """theta + phi obeys the equation of the pendulum at rest."""
    m = pendulum()
    m.move_base(rz="0.8*sin(3*t)")
    t, q = 0.37, 0.6
    phi, ddphi = 0.8 * np.sin(3 * t), -0.8 * 9 * np.sin(3 * t)
    assert acceleration(m, q, 0.9, t) == pytest.approx(-G / LENGTH * np.sin(q + phi) - ddphi, abs=1e-11)


def test_bead_on_a_turning_rod_is_thrown_outwards():
    """s'' = phi'^2 s, whatever phi''."""
    m = ld.Mechanism("bead")
    m.add_body("bead", ld.Inertia.point(mass=0.4, at=(0, 0, 0)))
    m.add_joint("S", ld.Prismatic(axis=(1, 0, 0)), m.ground, "bead", at=(0, 0, 0))
    m.move_base(rz="t + 2*t**2")
    assert acceleration(m, 0.8, 3.0, 0.5) == pytest.approx((1 + 4 * 0.5) ** 2 * 0.8, abs=1e-12)


def rotation_and_rates(rx, ry, rz, t):
    """R = Rz Ry Rx, its angular velocity and acceleration in world axes, by SymPy."""
    a, b, c = sp.sympify(rx), sp.sympify(ry), sp.sympify(rz)
    Rx = sp.Matrix([[1, 0, 0], [0, sp.cos(a), -sp.sin(a)], [0, sp.sin(a), sp.cos(a)]])
    Ry = sp.Matrix([[sp.cos(b), 0, sp.sin(b)], [0, 1, 0], [-sp.sin(b), 0, sp.cos(b)]])
    Rz = sp.Matrix([[sp.cos(c), -sp.sin(c), 0], [sp.sin(c), sp.cos(c), 0], [0, 0, 1]])
    R = Rz * Ry * Rx
    W = R.diff(T) * R.T
    w = sp.Matrix([W[2, 1], W[0, 2], W[1, 0]])
    found = (np.array(x.subs(T, t).evalf(20), float) for x in (R, w, w.diff(T)))
    R0, w0, dw0 = found
    return R0, w0.ravel(), dw0.ravel()


LAWS = {"rx": "0.4*sin(2*t)", "ry": "0.3*t**2", "rz": "0.5*cos(3*t) + t"}


def test_turning_about_three_axes_has_the_angular_velocity_and_acceleration_of_its_rotation_matrix():
    m = pendulum()
    m.move_base(x="sin(t)", y="t**3", z="exp(-t)", **LAWS)
    system = m.compile()
    for t in (0.0, 0.35, 1.2):
        R, w, dw = rotation_and_rates(**LAWS, t=t)
        motion = ld.tree.body_motion(system, system.state(t=t))
        np.testing.assert_allclose(motion.rotation[0], R, atol=1e-14)
        np.testing.assert_allclose(motion.angular_velocity[0], w, atol=1e-13)
        np.testing.assert_allclose(motion.angular_acceleration[0], dw, atol=1e-13)
        np.testing.assert_allclose(motion.position[0], (np.sin(t), t**3, np.exp(-t)), rtol=1e-14)
        np.testing.assert_allclose(motion.velocity[0], (np.cos(t), 3 * t**2, -np.exp(-t)), rtol=1e-14)
        np.testing.assert_allclose(motion.acceleration[0], (-np.sin(t), 6 * t, np.exp(-t)), rtol=1e-14)


def test_free_particle_seen_from_a_turning_ground_has_coriolis_centrifugal_and_euler_accelerations():
    """In axes of the ground: r'' = R^T (g - x'') - 2 w x r' - w x (w x r) - w' x r."""
    m = ld.Mechanism("particle", gravity=(0.5, -9.0, 1.0))
    m.add_body("p", ld.Inertia.point(mass=2.0, at=(0, 0, 0)))
    m.add_joint("P", ld.joints.Translational(), m.ground, "p", at=(0, 0, 0))
    m.move_base(x="0.2*sin(3*t)", **LAWS)
    system = m.compile()
    t, r, v = 0.6, np.array([0.4, -0.3, 0.8]), np.array([1.0, 2.0, -1.5])
    R, w, dw = rotation_and_rates(**LAWS, t=t)
    w, dw = R.T @ w, R.T @ dw
    ddx = np.array([-1.8 * np.sin(3 * t), 0, 0])
    expected = R.T @ ([0.5, -9.0, 1.0] - ddx) - 2 * np.cross(w, v) - np.cross(w, np.cross(w, r)) - np.cross(dw, r)
    np.testing.assert_allclose(ld.tree.open_tree_forward_dynamics(system, system.state(r, v, t)), expected, atol=1e-12)


# ----------------------------------------------------------------------------------------------- root bodies


def test_root_body_is_moved_about_the_origin_of_its_own_frame():
    rng = np.random.default_rng(2)
    p, R0 = np.array([1.0, 2.0, 3.0]), random_rotation(rng)
    from tests.independent import quaternion

    m = ld.Mechanism("platform")
    m.add_body("platform", ld.Inertia(5.0, (1, 2, 3), np.eye(3)), pose=ld.Frame(position=p, rotation=quaternion(R0)))
    m.add_body("arm", random_inertia(rng, (1, 2, 3)))
    m.add_joint("A", ld.Revolute(axis=(0, 0, 1)), "platform", "arm", at=(1, 2, 3.5))
    m.move_base("platform", y="0.5*t**2", **LAWS)
    system = m.compile()
    assert system.topology.bases == ("ground", "platform")
    assert system.nv == 1
    t = 0.7
    R, w, _ = rotation_and_rates(**LAWS, t=t)
    motion = ld.tree.body_motion(system, system.state(t=t))
    k = motion.bodies.index("platform")
    np.testing.assert_allclose(motion.position[k], p + [0, 0.5 * t * t, 0], atol=1e-14)
    np.testing.assert_allclose(motion.rotation[k], R @ R0, atol=1e-14)
    np.testing.assert_allclose(motion.velocity[k], (0, t, 0), atol=1e-14)
    np.testing.assert_allclose(motion.acceleration[k], (0, 1, 0), atol=1e-14)
    np.testing.assert_allclose(motion.angular_velocity[k], w, atol=1e-13)
    # the hinge sits half a metre above the platform's origin and goes with it
    arm = motion.bodies.index("arm")
    hinge = motion.position[arm] + motion.rotation[arm] @ [1, 2, 3.5]
    np.testing.assert_allclose(hinge, p + [0, 0.5 * t * t, 0] + R @ [0, 0, 0.5], atol=1e-13)


def test_a_moved_root_and_a_moved_ground_give_the_same_motion():
    one, two = pendulum(), pendulum()
    laws = {"x": "0.1*sin(7*t)", "z": "t**2"} | LAWS
    one.move_base(**laws)
    two.add_body("base", ld.Inertia(7.0, (0, 0, 0), np.eye(3)))  # its mass does not matter
    two.joints["A"] = two.joints["A"].model_copy(update={"parent": "base"})
    two.move_base("base", **laws)
    assert acceleration(two, 0.4, 0.8, 0.3) == pytest.approx(acceleration(one, 0.4, 0.8, 0.3), abs=1e-12)
    system = two.compile()
    assert ld.tree.energy(system, system.state(t=1.0)).kinetic == pytest.approx(
        ld.tree.energy(one.compile(), one.compile().state(t=1.0)).kinetic, rel=1e-12
    )


def test_a_root_without_motion_stands_still():
    m = ld.Mechanism("fixed", gravity=(0, -G, 0))
    m.add_body("wall", ld.Inertia.point(mass=1.0))
    m.add_body("bob", ld.Inertia.point(mass=1.3, at=(0, -LENGTH, 0)))
    m.add_joint("A", ld.Revolute(axis=(0, 0, 1)), "bob", "wall", at=(0, 0, 0))
    m.move_base("wall")
    assert acceleration(m, -0.4, 0.0, 3.0) == pytest.approx(G / LENGTH * np.sin(0.4) * np.cos(0), abs=1e-12)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("reverse", [False, True])
def test_accelerations_on_a_moving_base_are_differences_of_velocities_and_velocities_of_poses(kind, reverse):
    """A chain on a ground that moves in all six ways; differences with h = 1e-3 are good to 1e-9."""
    rng = np.random.default_rng(5)
    m = ld.Mechanism("chain", gravity=(1, -9, 2))
    m.move_base(x="0.3*sin(2*t)", y="0.2*t**2", z="0.1*cos(3*t)", **LAWS)
    before = m.ground
    for k in range(2):
        body = m.add_body(f"b{k}", random_inertia(rng, rng.normal(size=3)))
        ends = (body, before) if reverse else (before, body)
        m.add_joint(f"J{k}", random_joint(kind, rng), *ends, at=rng.normal(size=3))
        before = body
    system = m.compile()
    state = random_state(system, rng, 0.5, t=0.4)
    a = ld.tree.open_tree_forward_dynamics(system, state)
    e = ld.terms(system, state)
    np.testing.assert_allclose(e.M @ a, e.h, atol=1e-11 * (1 + np.abs(e.h).max(initial=0)))
    a = rng.normal(size=system.nv)
    motion, along = ld.tree.body_motion(system, state, a), path(system, state, a)
    for field, rate in (
        ("position", "velocity"),
        ("velocity", "acceleration"),
        ("angular_velocity", "angular_acceleration"),
    ):
        difference = first_derivative(lambda s, f=field: getattr(ld.tree.body_motion(system, along(s)), f), 1e-3)
        np.testing.assert_allclose(difference, getattr(motion, rate), atol=5e-9, err_msg=rate)
    rate = first_derivative(lambda s: ld.tree.body_motion(system, along(s)).rotation, 1e-3)
    for k in range(3):
        w = motion.angular_velocity[k]
        np.testing.assert_allclose(np.cross(w, motion.rotation[k].T).T, rate[k], atol=5e-9)


def test_generalised_forces_on_a_moving_base_follow_from_newton_and_euler():
    """Force on the only body, from its acceleration, seen through the joint that carries it: tau = S . wrench."""
    rng = np.random.default_rng(9)
    m = ld.Mechanism("one", gravity=(1, -9, 2))
    com, I = np.array([0.3, 0.2, -0.4]), np.diag([0.2, 0.3, 0.4])
    m.add_body("b", ld.Inertia(1.7, com, I))
    m.add_joint("U", ld.Universal(axis1=(1, 0, 0), axis2=(0, 1, 0)), m.ground, "b", at=(0, 0, 0))
    m.move_base(x="0.3*sin(2*t)", y="0.2*t**2", **LAWS)
    system = m.compile()
    state, a = random_state(system, rng, t=0.4), rng.normal(size=2)
    motion = ld.tree.body_motion(system, state, a)
    R, w, alpha = motion.rotation[1], motion.angular_velocity[1], motion.angular_acceleration[1]
    arm = R @ com
    force = 1.7 * (motion.acceleration[1] + np.cross(alpha, arm) + np.cross(w, np.cross(w, arm)) - [1, -9, 2])
    J = R @ I @ R.T
    torque = J @ alpha + np.cross(w, J @ w) + np.cross(arm, force)  # about the joint, where the body frame is
    ground = motion.rotation[0]
    axes = [ground @ [1, 0, 0], ground @ turn((1, 0, 0), state.q[0]) @ [0, 1, 0]]
    np.testing.assert_allclose(ld.tree.open_tree_inverse_dynamics(system, a, state), axes @ torque, atol=1e-12)


def test_damper_to_a_moving_base_feels_the_velocity_of_the_base():
    m = ld.Mechanism("damper")
    m.add_body("b", ld.Inertia(2.0, (0, 0, 0), np.eye(3)))
    m.add_force(None, ld.forces.SpringDamper(m.ground, "b", (0, 0, 0), (1, 0, 0), damping=3.0))
    m.move_base(x="0.5*t")
    system = m.compile()
    # the free joint stands on the ground: give the body the opposite speed, so that it is at rest
    state = system.state({"free:b.px": 0.0}, {"free:b.vx": -0.5})
    a = ld.tree.open_tree_forward_dynamics(system, state)
    motion = ld.tree.body_motion(system, state, a)
    np.testing.assert_allclose(motion.velocity[1], 0, atol=1e-15)
    np.testing.assert_allclose(motion.acceleration[1], (3.0 * 0.5 / 2.0, 0, 0), atol=1e-13)


def test_base_motion_by_a_table_is_a_smooth_curve():
    """Natural cubic spline through the points: second derivatives are continuous and in the equations of motion."""
    from scipy.interpolate import CubicSpline

    points = [(0.0, 0.0), (0.5, 0.2), (1.0, -0.1), (2.0, 0.3)]
    curve = CubicSpline(*np.array(points).T, bc_type="natural")
    m = pendulum()
    m.move_base(x=ld.forces.Table(points=points))
    for t in (0.2, 0.5, 0.9, 1.5):
        expected = -float(curve(t, 2)) / LENGTH
        assert acceleration(m, 0.0, 0.0, t) == pytest.approx(expected, abs=1e-11)


def test_formulas_of_a_base_motion_know_time_and_parameters_only():
    m = pendulum()
    m.parameters = {"amplitude": 0.1}
    m.move_base(x="amplitude*sin(t)")
    assert acceleration(m, 0.0, 0.0, 1.0) == pytest.approx(0.1 * np.sin(1.0) / LENGTH, abs=1e-12)
    m.move_base(x="amplitude*speed")
    with pytest.raises(ld.errors.ModelError, match="speed"):
        m.compile()


def test_motion_of_an_unknown_body_is_refused():
    m = pendulum()
    m.move_base("bobb", x="t")
    with pytest.raises(ld.errors.ModelError, match="there is no body 'bobb'"):
        m.compile()


def test_a_moved_body_that_a_joint_fixes_to_the_ground_is_refused():
    """Its motion is given already: no freedom is left to meet the rows of the joint."""
    m = pendulum()
    m.move_base("bob", x="t")
    with pytest.raises(ld.errors.ModelError, match="bob"):
        m.compile()
