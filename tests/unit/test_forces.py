"""Forces against values computed by hand, on bodies whose motion tells the load at once.

A free body without gravity has m a = F and I alpha + w x I w = torque about its centre: :func:`loads` reads the loads
back from the accelerations. Tolerances of 1e-12 are relative to loads of order 1 to 100.
"""

from __future__ import annotations

import numba
import numpy as np
import pytest
from scipy.interpolate import PchipInterpolator
from scipy.spatial.transform import Rotation as Turn
from tests.independent import (
    TYPES,
    assert_same_motion,
    closed_state,
    constrained,
    first_derivative,
    point,
    random_inertia,
    random_joint,
    random_rotation,
    random_state,
    rotation_vector,
    transfer,
    turn,
)

import loopdyn as ld

pytestmark = pytest.mark.jit_off

MASS, MOMENTS = 2.0, np.diag([0.3, 0.4, 0.5])


def free_bodies(*centres: tuple[float, float, float], **options) -> ld.Mechanism:
    """Bodies b1, b2, ... that float, each with its centre at the given place."""
    m = ld.Mechanism("free", **options)
    for k, centre in enumerate(centres, 1):
        m.add_body(f"b{k}", ld.Inertia(MASS, centre, MOMENTS))
    return m


def loads(m: ld.Mechanism, state: ld.State, system: ld.System) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Force on each body and torque about its centre, from its acceleration."""
    motion = ld.tree.body_motion(system, state, ld.tree.open_tree_forward_dynamics(system, state))
    found = {}
    for k, name in enumerate(system.bodies):
        if name not in m.bodies:
            continue
        R, w, alpha = motion.rotation[k], motion.angular_velocity[k], motion.angular_acceleration[k]
        arm = R @ np.array(m.bodies[name].com)
        I = R @ MOMENTS @ R.T
        acceleration = motion.acceleration[k] + np.cross(alpha, arm) + np.cross(w, np.cross(w, arm))
        found[name] = (MASS * acceleration, I @ alpha + np.cross(w, I @ w))
    return found


def loads_at_rest(m: ld.Mechanism, t: float = 0.0) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    system = m.compile()
    return loads(m, system.state(t=t), system)


def pin(inertia: float = 1.0, **options) -> ld.Mechanism:
    """A wheel on a hinge: its acceleration is the torque divided by its inertia."""
    m = ld.Mechanism("pin", **options)
    m.add_body("wheel", ld.Inertia(1.0, (0, 0, 0), np.diag([inertia, inertia, inertia])))
    m.add_joint("A", ld.Revolute(axis=(0, 0, 1)), m.ground, "wheel", at=(0, 0, 0))
    return m


def slide(**options) -> ld.Mechanism:
    m = ld.Mechanism("slide", **options)
    m.add_body("block", ld.Inertia(2.0, (0, 0, 0), np.eye(3)))
    m.add_joint("S", ld.Prismatic(axis=(1, 0, 0)), m.ground, "block", at=(0, 0, 0))
    return m


def acceleration(m: ld.Mechanism, q: float = 0.0, v: float = 0.0, t: float = 0.0) -> float:
    system = m.compile()
    return float(ld.tree.open_tree_forward_dynamics(system, system.state([q], [v], t))[0])


# ------------------------------------------------------------------------------------ between two points


def test_spring_pulls_its_ends_together_by_stiffness_times_stretch():
    m = free_bodies((0, 0, 0), (3, 4, 0))
    m.add_force(None, ld.forces.SpringDamper("b1", "b2", (0, 0, 0), (3, 4, 0), stiffness=10.0, length=2.0))
    found = loads_at_rest(m)
    np.testing.assert_allclose(found["b1"][0], (18, 24, 0), atol=1e-12)  # 10 (5 - 2) N along (0.6, 0.8)
    np.testing.assert_allclose(found["b2"][0], (-18, -24, 0), atol=1e-12)
    np.testing.assert_allclose([found["b1"][1], found["b2"][1]], 0, atol=1e-12)


def test_spring_off_the_centre_turns_the_body_and_damper_acts_on_the_rate_of_length():
    """Points at (0, 1, 0) of b1 and (3, 5, 1) of b2; b2 moves with (1, 2, 0) and turns with (0, 0, 2)."""
    m = free_bodies((0, 0, 0), (3, 4, 0))
    m.add_force(None, ld.forces.SpringDamper("b1", "b2", (0, 1, 0), (3, 5, 1), stiffness=10.0, damping=3.0, length=2.0))
    system = m.compile()
    state = system.state(v={"free:b2.wz": 2.0, "free:b2.vx": 1.0, "free:b2.vy": 2.0})
    # speeds are those of the body frame's origin, the world origin: the end moves with v + w x (3, 5, 1)
    end = np.array([1.0, 2.0, 0]) + np.cross([0, 0, 2.0], [3, 5, 1])
    line = np.array([3.0, 4.0, 1.0])
    length = np.sqrt(26.0)
    pull = 10.0 * (length - 2.0) + 3.0 * (line @ end) / length
    force = pull * line / length
    found = loads(m, state, system)
    np.testing.assert_allclose(found["b1"][0], force, rtol=1e-12)
    np.testing.assert_allclose(found["b1"][1], np.cross([0, 1, 0], force), atol=1e-12)
    np.testing.assert_allclose(found["b2"][0], -force, rtol=1e-12)
    np.testing.assert_allclose(found["b2"][1], np.cross([0, 1, 1], -force), atol=1e-12)


def test_spring_without_a_length_is_slack_at_the_reference_pose():
    m = free_bodies((0, 0, 0), (3, 4, 0))
    m.add_force(None, ld.forces.SpringDamper("b1", "b2", (0, 1, 0), (3, 5, 1), stiffness=1e4))
    for force, torque in loads_at_rest(m).values():
        np.testing.assert_allclose([force, torque], 0, atol=1e-11)
    system = m.compile()
    stretched = system.state({"free:b2.px": 3.0, "free:b2.py": 4.0, "free:b2.pz": 1.0})  # twice the distance
    found = loads(m, stretched, system)
    np.testing.assert_allclose(found["b1"][0], 1e4 * np.array([3, 4, 1]), rtol=1e-12)


@pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning")  # of NumPy, as plain Python
def test_spring_whose_ends_meet_is_an_error_in_words():
    m = free_bodies((0, 0, 0))
    m.add_force(None, ld.forces.SpringDamper("b1", m.ground, (1, 0, 0), (1, 0, 0), stiffness=1.0, length=0.5))
    system = m.compile()
    with pytest.raises(ld.errors.SingularityError, match="points coincide"):
        ld.tree.open_tree_forward_dynamics(system, system.state())


def test_actuator_pushes_its_ends_apart_by_a_formula_of_time_length_and_speed():
    m = free_bodies((0, 0, 0), (0, 5, 0), parameters={"p": 4.0})
    m.add_force(
        None,
        ld.forces.Actuator(
            body1="b1", body2="b2", point1=(0, 0, 0), point2=(0, 5, 0), force="p*t + 2*length - 3*speed"
        ),
    )
    system = m.compile()
    found = loads(m, system.state(v={"free:b2.vy": -2.0}, t=1.5), system)
    np.testing.assert_allclose(found["b2"][0], (0, 4 * 1.5 + 2 * 5 + 3 * 2, 0), rtol=1e-12)
    np.testing.assert_allclose(found["b1"][0], (0, -22, 0), rtol=1e-12)


def test_actuator_by_a_table_of_its_length():
    points = [(1.0, 0.0), (2.0, 5.0), (4.0, 1.0), (5.0, 3.0)]
    curve = PchipInterpolator(*np.array(points).T)
    for length in (1.0, 1.7, 3.3, 4.9):
        m = free_bodies((0, 0, 0), (0, length, 0))
        table = ld.forces.Table(of="length", points=points)
        m.add_force(
            None, ld.forces.Actuator(body1="b1", body2="b2", point1=(0, 0, 0), point2=(0, length, 0), force=table)
        )
        assert loads_at_rest(m)["b2"][0][1] == pytest.approx(float(curve(length)), abs=1e-12)


# ------------------------------------------------------------------------------------ on a joint coordinate


def test_joint_spring_damper_on_an_angle_and_on_a_slide():
    m = pin(inertia=0.5)
    m.add_force(None, ld.forces.JointSpring(joint="A", stiffness=8.0, damping=0.3, rest=0.2))
    assert acceleration(m, q=1.1, v=-2.0) == pytest.approx((-8.0 * 0.9 + 0.3 * 2.0) / 0.5, rel=1e-13)
    m = slide()
    m.add_force(None, ld.forces.JointSpring(joint="S", stiffness=50.0, damping=4.0, rest=-0.1))
    assert acceleration(m, q=0.3, v=0.5) == pytest.approx((-50.0 * 0.4 - 4.0 * 0.5) / 2.0, rel=1e-13)


def test_joint_spring_winds_up_over_full_turns_in_the_tree():
    m = pin()
    m.add_force(None, ld.forces.JointSpring(joint="A", stiffness=2.0))
    assert acceleration(m, q=7.0) == pytest.approx(-14.0, rel=1e-13)


def test_friction_is_viscous_plus_smooth_coulomb():
    m = pin()
    m.add_force(None, ld.forces.JointFriction(joint="A", viscous=0.2, coulomb=1.5, transition=0.05))
    for speed in (-3.0, -0.02, 0.0, 0.04, 10.0):
        expected = -0.2 * speed - 1.5 * np.tanh(speed / 0.05)
        assert acceleration(m, v=speed) == pytest.approx(expected, abs=1e-13)


def test_motor_takes_numbers_formulas_and_tables_of_time_position_and_speed():
    points = [(0.0, 10.0), (50.0, 8.0), (100.0, 0.0)]
    curve = PchipInterpolator(*np.array(points).T)
    state = {"q": 0.4, "v": 3.0, "t": 2.0}
    cases = [
        (2.5, state, 2.5),
        ("3 - 0.2*speed", state, 2.4),
        ("k*position**2 + sin(t)", state, 7 * 0.16 + np.sin(2.0)),
        ("stall*(1 - speed/idle)", state, 5.0 * (1 - 3.0 / 20.0)),
        (ld.forces.Table(of="speed", points=points), {"v": 70.0}, float(curve(70.0))),
        (ld.forces.Table(of="position", points=points), {"q": 12.0}, float(curve(12.0))),
        (ld.forces.Table(points=points), {"t": 33.0}, float(curve(33.0))),
    ]
    for law, where, expected in cases:
        m = pin(inertia=0.5, parameters={"k": 7.0, "stall": 5.0, "idle": 20.0})
        m.add_motor("drive", "A", law)
        assert acceleration(m, **where) == pytest.approx(expected / 0.5, rel=1e-12)
    m = slide()
    m.add_motor("drive", "S", force="6 - speed")
    assert acceleration(m, v=2.0) == pytest.approx(2.0)


def test_motor_on_one_freedom_of_a_ball_joint_knows_time_and_speed():
    """Torque about the child's own y axis, which has turned; no load on the others."""
    m = ld.Mechanism("ball")
    m.add_body("b", ld.Inertia(1.0, (0, 0, 0), MOMENTS))
    m.add_joint("B", ld.Spherical(), m.ground, "b", at=(0, 0, 0))
    m.add_motor("drive", "B.wy", torque="2*t - 3*speed")
    system = m.compile()
    w = np.array([0.0, 0.5, 0.0])  # about a principal axis: no gyroscopic torque
    R = turn((1, 2, 3), 1.0)
    x, y, z, s = Turn.from_matrix(R).as_quat()
    state = system.state([s, x, y, z], w, t=4.0)
    np.testing.assert_allclose(ld.tree.open_tree_forward_dynamics(system, state), (0, (8.0 - 1.5) / 0.4, 0), atol=1e-12)


@pytest.mark.parametrize(
    ("build", "joint", "key"), [(pin, "A", "force"), (slide, "S", "torque")], ids=["force on angle", "torque on slide"]
)
def test_motor_of_the_wrong_kind_is_refused(build, joint, key):
    m = build()
    m.add_motor("drive", joint, **{key: 1.0})
    with pytest.raises(ld.errors.ModelError, match="takes a"):
        m.compile()


FREEDOMS = [(k, n) for k in TYPES for n in range(len(random_joint(k, np.random.default_rng(0)).speeds))]


@pytest.mark.parametrize(("kind", "n"), FREEDOMS, ids=[f"{k}-{n}" for k, n in FREEDOMS])
def test_loads_on_a_joint_give_the_same_motion_whether_it_is_in_the_tree_or_cut(kind, n):
    """Spring, friction and motor on freedom n; in the cut system coordinate and speed are read from the frames."""
    for seed in range(2):
        rng = np.random.default_rng(seed)
        m = ld.Mechanism("pair", gravity=(1, -9, 2))
        for name in ("a", "b"):
            m.add_body(name, random_inertia(rng, rng.normal(size=3)))
        spec = random_joint(kind, rng)
        m.add_joint("X", spec, *(("a", "b") if seed else ("b", "a")), at=rng.normal(size=3))
        label = spec.labels("X")[1][n]
        scalar = len(spec.speeds) == len(spec.coordinates)
        turning = spec.dimensions[n] == "angle" if scalar else n < 3
        law = "3*sin(t) - 2*position + 0.5*speed*position" if scalar else "3*sin(t) - 2*speed"
        m.add_motor("motor", label, **{"torque" if turning else "force": law})
        m.add_force(None, ld.forces.JointFriction(joint=label, viscous=0.5, coulomb=2.0, transition=0.3))
        m.add_force(None, ld.forces.JointSpring(joint=label, stiffness=7.0 if scalar else 0.0, damping=0.4, rest=0.3))
        tree, cut = m.compile(cuts=[]), m.compile(cuts=["X"])
        assert cut.topology.cuts == ("X",)
        state = random_state(tree, rng, 0.6, t=0.8)
        expected = ld.tree.body_motion(tree, state, ld.tree.open_tree_forward_dynamics(tree, state))
        same = transfer(cut, expected, state.t)
        found = ld.tree.body_motion(cut, same, constrained(cut, same)[0])
        assert_same_motion(expected, found, 1e-10)


def test_springs_on_a_cut_joint_count_turns():
    rng = np.random.default_rng(0)
    for joint in (ld.joints.Helical(axis=(0, 0, 1), pitch=0.1), ld.Revolute(axis=(0, 0, 1))):
        m = ld.Mechanism("pair")
        for name in ("a", "b"):
            m.add_body(name, random_inertia(rng, (0, 0, 0)))
        m.add_joint("X", joint, "a", "b", at=(0, 0, 0))
        m.add_force(None, ld.forces.JointSpring(joint="X", stiffness=2.0))
        tree, cut = m.compile(), m.compile(cuts=["X"])
        assert not tree.warnings
        assert not cut.warnings
        assert cut.counted == (() if joint.type == "helical" else ("X",))  # the slide of a screw shows its turns
        state = tree.state({"X": 8.0})
        expected = ld.tree.body_motion(tree, state, ld.tree.open_tree_forward_dynamics(tree, state))
        same = transfer(cut, expected)
        same.q[cut.nq - len(cut.counted) :] = 8.0
        assert_same_motion(expected, ld.tree.body_motion(cut, same, constrained(cut, same)[0]), 1e-10)


def test_spring_on_a_loop_gives_the_same_motion_for_every_cut():
    """A four-bar with springs, motor and friction on all four hinges."""
    m = ld.library.four_bar()
    for k, joint in enumerate("ABCD"):
        m.add_force(None, ld.forces.JointSpring(joint=joint, stiffness=3.0 + k, damping=0.2, rest=0.1 * k))
        m.add_force(None, ld.forces.JointFriction(joint=joint, coulomb=0.5, transition=0.2))
    m.add_motor("drive", "C", torque="1 + 0.3*position - 0.2*speed")
    system = m.compile()
    state = closed_state(system, np.random.default_rng(2), spread=0.2)
    expected = ld.tree.body_motion(system, state, constrained(system, state)[0])
    for cut in "ABCD":
        other = m.compile(cuts=[cut])
        same = transfer(other, expected)
        assert_same_motion(expected, ld.tree.body_motion(other, same, constrained(other, same)[0]), 1e-9)


# -------------------------------------------------------------------------------------------------- bushing


def test_bushing_on_a_displaced_body_pushes_back_along_its_own_axes():
    R = turn((1, 2, 3), 0.8)
    stiffness, at = np.array([100.0, 200.0, 300.0]), np.array([0.5, -0.2, 0.3])
    m = free_bodies((0, 0, 0))
    rotation = ld.joints.Rotation(axis=(1, 2, 3), angle=0.8)
    m.add_force(
        None,
        ld.forces.Bushing(body1=m.ground, body2="b1", at=at, rotation=rotation, stiffness=stiffness, damping=(1, 2, 3)),
    )
    system = m.compile()
    d, rate = np.array([0.02, -0.03, 0.05]), np.array([0.4, 0.1, -0.6])
    speeds = dict(zip(("free:b1.vx", "free:b1.vy", "free:b1.vz"), rate, strict=True))
    state = system.state(dict(zip(("free:b1.px", "free:b1.py", "free:b1.pz"), d, strict=True)), speeds)
    force, torque = loads(m, state, system)["b1"]
    expected = -R @ np.diag(stiffness) @ R.T @ d - R @ np.diag([1, 2, 3]) @ R.T @ rate
    np.testing.assert_allclose(force, expected, rtol=1e-12)
    np.testing.assert_allclose(torque, np.cross(at, expected), rtol=1e-11)  # acts at the second frame's origin


def test_bushing_under_a_small_rotation_is_six_springs():
    """theta = 1e-7: torque -K theta to the first order, the next being 1e-7 of it."""
    R, stiffness = turn((1, 2, 3), 0.8), np.array([10.0, 20.0, 30.0])
    m = free_bodies((0, 0, 0))
    m.add_force(
        None,
        ld.forces.Bushing(
            body1=m.ground,
            body2="b1",
            at=(0, 0, 0),
            rotation=ld.joints.Rotation(axis=(1, 2, 3), angle=0.8),
            angular_stiffness=stiffness,
            angular_damping=(1, 2, 3),
        ),
    )
    system = m.compile()
    theta, w = 1e-7 * np.array([1.0, -2.0, 0.5]), 1e-7 * np.array([0.3, 0.2, -1.0])
    q = ld.tree.increment(system, system.q_reference, [*theta, 0, 0, 0])
    _, torque = loads(m, system.state(q, [*w, 0, 0, 0]), system)["b1"]
    expected = -R @ np.diag(stiffness) @ R.T @ theta - R @ np.diag([1, 2, 3]) @ R.T @ w
    np.testing.assert_allclose(torque, expected, rtol=3e-7)


def test_isotropic_bushing_is_the_gradient_of_its_energy_at_any_rotation():
    """V = 1/2 k |d|^2 with d in axes of frame 1, K anisotropic, + 1/2 kt |theta|^2; up to rotations of 3 rad."""
    rng = np.random.default_rng(3)
    stiffness, twist, at = np.array([10.0, 20.0, 30.0]), 5.0, np.array([0.3, 0.4, -0.1])
    R0 = turn((1, 2, 3), 0.8)
    m = free_bodies((0, 0, 0), (1, 0, 0))
    m.add_force(
        None,
        ld.forces.Bushing(
            body1="b1",
            body2="b2",
            at=at,
            rotation=ld.joints.Rotation(axis=(1, 2, 3), angle=0.8),
            stiffness=stiffness,
            angular_stiffness=(twist, twist, twist),
        ),
    )
    system = m.compile()
    for size in (1e-4, 0.1, 1.0, 3.0):
        xi = np.zeros(12)
        first = system.joints["free:b1"].v0
        xi[first : first + 6] = rng.normal(size=6)
        q = ld.tree.increment(system, system.q_reference, xi)
        # b2 turned against b1 by `size`
        R1 = ld.tree.body_motion(system, system.state(q)).rotation[system.bodies.index("b1")]
        relative = R1 @ Turn.from_rotvec(size * np.array([2, -1, 2]) / 3).as_matrix()
        k = system.joints["free:b2"].q0
        q[k : k + 3] = rng.normal(size=3)
        q[k + 3 : k + 7] = np.roll(Turn.from_matrix(relative).as_quat(), 1)

        def energy(xi: np.ndarray, q=q) -> float:
            motion = ld.tree.body_motion(system, system.state(ld.tree.increment(system, q, xi)))
            i, j = motion.bodies.index("b1"), motion.bodies.index("b2")
            F, M = motion.rotation[i] @ R0, motion.rotation[j] @ R0
            d = F.T @ (point(motion, "b2", at)[0] - point(motion, "b1", at)[0])
            theta = rotation_vector(F.T @ M)
            return 0.5 * d @ (stiffness * d) + 0.5 * twist * theta @ theta

        h = ld.terms(system, system.state(q)).h
        gradient = [
            first_derivative(lambda s, e=e: np.array(energy(s * e)), 1e-3) for e in np.eye(12)
        ]  # error of differences near 1e-10
        np.testing.assert_allclose(h, -np.array(gradient), atol=1e-8)


def test_bushing_loads_are_opposite_and_damping_is_seen_from_the_first_frame():
    """Rotating together as one body, a pair feels no damping."""
    rng = np.random.default_rng(1)
    m = free_bodies((0, 0, 0), (1, 0, 0))
    each = {k: rng.uniform(1, 5, 3) for k in ("stiffness", "damping", "angular_stiffness", "angular_damping")}
    m.add_force(None, ld.forces.Bushing(body1="b1", body2="b2", at=(0.5, 0.2, 0.1), **each))
    system = m.compile()
    w, u = rng.normal(size=3), rng.normal(size=3)
    motionless = {
        f"free:{b}.{s}": x for b in ("b1", "b2") for s, x in zip(("wx", "wy", "wz", "vx", "vy", "vz"), [*w, *u])
    }
    for force, torque in loads(m, system.state(v=motionless), system).values():
        np.testing.assert_allclose([force, torque], 0, atol=1e-12)


# ------------------------------------------------------------------------------------- applied, user, pairs


def test_applied_force_in_world_axes_keeps_its_direction_and_in_body_axes_turns():
    m = free_bodies((0, 0, 0), (0, 0, 0))
    at, force, torque = (0.5, 0, 0), (1.0, 2.0, 3.0), (-1.0, 0.0, 2.0)
    m.add_force(None, ld.forces.AppliedForce(body="b1", force=force, torque=torque, at=at))
    m.add_force(None, ld.forces.AppliedForce(body="b2", force=force, torque=torque, at=at, axes="body"))
    system = m.compile()
    half = np.sqrt(0.5)
    state = system.state({f"free:{b}.{s}": half for b in ("b1", "b2") for s in ("w", "z")})  # a quarter turn about z
    found = loads(m, state, system)
    arm = np.array([0, 0.5, 0])  # where the point has gone
    np.testing.assert_allclose(found["b1"][0], force, atol=1e-12)
    np.testing.assert_allclose(found["b1"][1], np.array(torque) + np.cross(arm, force), atol=1e-12)
    turned, twisted = np.array([-2.0, 1.0, 3.0]), np.array([0.0, -1.0, 2.0])
    np.testing.assert_allclose(found["b2"][0], turned, atol=1e-12)
    np.testing.assert_allclose(found["b2"][1], twisted + np.cross(arm, turned), atol=1e-12)


def test_applied_force_in_body_axes_means_world_axes_at_the_reference_pose():
    """A body frame that is turned at the reference pose makes no difference."""
    rng = np.random.default_rng(0)
    R = random_rotation(rng)
    x, y, z, w = Turn.from_matrix(R).as_quat()
    m = ld.Mechanism("posed")
    m.add_body(
        "b1", ld.Inertia(MASS, (0, 0, 0), MASS * np.eye(3)), pose=ld.Frame(position=(1, 2, 3), rotation=(w, x, y, z))
    )
    m.add_force(None, ld.forces.AppliedForce(body="b1", force=(1, 2, 3), at=(0, 0, 0), axes="body"))
    system = m.compile()
    motion = ld.tree.body_motion(system, system.state(), ld.tree.open_tree_forward_dynamics(system, system.state()))
    np.testing.assert_allclose(motion.acceleration[1], np.array([1, 2, 3]) / MASS, atol=1e-13)


def test_components_of_an_applied_force_may_be_formulas_and_tables_of_time():
    points = [(0.0, 0.0), (1.0, 4.0), (2.0, -1.0), (3.0, 0.5)]
    curve = PchipInterpolator(*np.array(points).T)
    m = free_bodies((0, 0, 0), parameters={"amplitude": 10.0})
    m.add_force(
        None,
        ld.forces.AppliedForce(
            body="b1",
            force=(2, "amplitude*sin(3*t)", ld.forces.Table(points=points)),
            torque=("t**2", 0, "5*step(t - 1)"),
            at=(0, 0, 0),
        ),
    )
    for t in (0.3, 1.4):
        force, torque = loads_at_rest(m, t)["b1"]
        np.testing.assert_allclose(force, (2, 10 * np.sin(3 * t), curve(t)), rtol=1e-12)
        np.testing.assert_allclose(torque, (t**2, 0, 5.0 if t > 1 else 0.0), atol=1e-12)


def plain(t, q, v, out):
    out[0] -= 0.1 * v[0] ** 3
    out[1] += 2.0 * np.sin(t) + q[0]


@pytest.mark.parametrize("function", [plain, numba.njit(plain)], ids=["plain", "jitted"])
def test_user_functions_add_generalised_forces(function):
    m = ld.library.random_mechanism(5, bodies=4, loops=0, joints=["revolute"], forces=True)
    system = m.compile()
    state = random_state(system, np.random.default_rng(0), t=0.9)
    expected = np.zeros(system.nv)
    expected[0] = -0.1 * state.v[0] ** 3
    expected[1] = 2.0 * np.sin(0.9) + state.q[0]
    M = ld.tree.open_tree_mass_matrix(system, state)
    before = M @ ld.tree.open_tree_forward_dynamics(system, state)
    m.add_force(None, ld.forces.UserForce(function=function))
    with_user = m.compile()
    a = ld.tree.open_tree_forward_dynamics(with_user, state)
    np.testing.assert_allclose(M @ a - before, expected, atol=1e-11)
    tau = np.arange(system.nv, dtype=float)
    a = ld.tree.open_tree_forward_dynamics(with_user, state, tau)
    np.testing.assert_allclose(M @ a - before, expected + tau, atol=1e-11)
    np.testing.assert_allclose(ld.tree.open_tree_inverse_dynamics(with_user, a, state), tau, atol=1e-11)
    np.testing.assert_allclose(ld.terms(with_user, state).h - before, expected, atol=1e-11)


def test_user_functions_cannot_change_the_state_nor_a_solver_that_would_not_call_them():
    def greedy(t, q, v, out):
        q[:] = 99.0
        v[:] = 99.0
        out[0] += 1.0

    m = pin(inertia=2.0)
    m.add_force(None, ld.forces.UserForce(function=greedy))
    system = m.compile()
    state = system.state([0.1], [0.2])
    assert ld.tree.open_tree_forward_dynamics(system, state)[0] == pytest.approx(0.5)
    assert (state.q[0], state.v[0]) == (0.1, 0.2)
    with pytest.raises(ld.errors.ModelError, match="user forces"):
        ld.tree.TreeSolver(system)


PAIRS = {
    "spring": ld.forces.SpringDamper("b1", "b2", (0.1, 0.5, 0), (1.2, 0, 0.4), stiffness=10.0, damping=2.0, length=0.3),
    "actuator": ld.forces.Actuator(
        body1="b1", body2="b2", point1=(0.1, 0.5, 0), point2=(1.2, 0, 0.4), force="5 + length - speed"
    ),
    "bushing": ld.forces.Bushing(
        body1="b1", body2="b2", at=(0.3, 1, 0), stiffness=(1, 2, 3), damping=(3, 2, 1), angular_stiffness=(4, 5, 6),
        angular_damping=(6, 5, 4),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PAIRS)
def test_action_equals_reaction(name):
    """Forces add up to zero, and so do their moments about the origin, in any pose and motion."""
    m = free_bodies((0, 0, 0), (1, 0, 0))
    m.add_force(None, PAIRS[name])
    system = m.compile()
    state = random_state(system, np.random.default_rng(4))
    found = loads(m, state, system)
    motion = ld.tree.body_motion(system, state)
    assert np.linalg.norm(found["b1"][0]) > 0.1
    np.testing.assert_allclose(found["b1"][0] + found["b2"][0], 0, atol=1e-11)
    moment = sum(torque + np.cross(point(motion, b, m.bodies[b].com)[0], force) for b, (force, torque) in found.items())
    np.testing.assert_allclose(moment, 0, atol=1e-10)


def test_gravity_acts_at_the_centre_of_mass():
    m = free_bodies((1, 2, 3), gravity=(0.5, -9.81, 2.0))
    force, torque = loads_at_rest(m)["b1"]
    np.testing.assert_allclose(force, MASS * np.array([0.5, -9.81, 2.0]), rtol=1e-12)
    np.testing.assert_allclose(torque, 0, atol=1e-12)


# ---------------------------------------------------------------------------------------------------- units


def test_stiffness_and_laws_are_converted_from_the_units_of_the_model():
    """One newton metre per degree is 180/pi N m/rad; laws see degrees and give N mm."""
    deg = np.pi / 180
    m = pin(units={"angle": "deg"})
    m.add_force(None, ld.forces.JointSpring(joint="A", stiffness=0.1, damping=0.02, rest=10.0))
    expected = -0.1 / deg * (0.5 - 10 * deg) - 0.02 / deg * 2.0
    assert acceleration(m, q=0.5, v=2.0) == pytest.approx(expected, rel=1e-12)
    m = pin(units={"angle": "deg", "torque": "N*mm"})
    m.add_motor("drive", "A", "1000*position - 10*speed")
    assert acceleration(m, q=0.5, v=2.0) == pytest.approx(0.5 / deg - 0.01 * 2.0 / deg, rel=1e-12)
    m = pin(units={"angle": "deg", "torque": "kN*m"})
    m.add_motor("drive", "A", ld.forces.Table(of="speed", points=[(0, 1), (360, 0)]))
    assert acceleration(m, v=np.pi) == pytest.approx(500.0, rel=1e-12)  # half way down
    m = slide(units={"length": "mm", "force": "kN"})
    m.add_force(None, ld.forces.JointFriction(joint="S", viscous=0.001, coulomb=0.01, transition=20.0))
    expected = -(1.0 / 1e-3) * 0.05 - 10.0 * np.tanh(0.05 / 0.02)  # 0.001 kN s/mm is 1000 N s/m
    assert acceleration(m, v=0.05) == pytest.approx(expected / 2.0, rel=1e-12)
