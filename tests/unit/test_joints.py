"""Joints: what their coordinates mean, how they are read from a pose, how they move on their manifold.

Poses are computed by :func:`tests.independent.placement`, straight from the table in docs/notation.md with SciPy's
rotations. Tolerances of 1e-13 leave room for some ten roundings of numbers of order one.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation as Turn
from tests.independent import (
    LABELS,
    TYPES,
    after,
    assert_same_motion,
    first_derivative,
    from_quaternion,
    path,
    placement,
    quaternion,
    random_coordinates,
    random_inertia,
    random_joint,
    random_rotation,
    random_state,
    rotation_vector,
    turn,
)

import loopdyn as ld

pytestmark = pytest.mark.jit_off


def frame(p: np.ndarray, R: np.ndarray) -> ld.Frame:
    return ld.Frame(position=p, rotation=ld.joints.Rotation(quaternion=quaternion(R)))


def by_frames(spec, q, rng):
    """Parent and child with poses of their own, joined by frames such that the coordinates are q at the reference."""
    (xP, RP), (pF, RF), (pM, RM) = ((rng.normal(size=3), random_rotation(rng)) for _ in range(3))
    d, E = placement(spec, q)
    x, R = xP + RP @ (pF + RF @ d), RP @ RF @ E  # the joint's frame on the child, in the world
    RC = R @ RM.T
    xC = x - RC @ pM
    m = ld.Mechanism("frames")
    m.add_body("parent", random_inertia(rng, xP), pose=frame(xP, RP))
    m.add_body("child", random_inertia(rng, xC), pose=frame(xC, RC), frames={"mount": frame(pM, RM)})
    m.add_joint("root", ld.joints.Weld(), m.ground, "parent", at=(0, 0, 0))
    m.add_joint("A", spec, "parent", "child", parent_frame=frame(pF, RF), child_frame="mount")
    return m, (xC, RC)


@pytest.mark.parametrize("kind", TYPES)
def test_labels_and_sizes_are_those_of_the_notation(kind):
    rng = np.random.default_rng(0)
    spec = random_joint(kind, rng)
    assert spec.labels("A") == LABELS[kind]
    m = ld.Mechanism("one")
    m.add_body("b", random_inertia(rng, (0, 0, 0)))
    m.add_joint("A", spec, m.ground, "b", at=(0, 0, 0))
    system = m.compile()
    assert (list(system.coordinates), list(system.speeds)) == LABELS[kind]
    assert len(spec.dimensions) == len(spec.coordinates) == system.nq
    assert len(spec.speeds) == system.nv


@pytest.mark.parametrize("kind", TYPES)
def test_coordinates_at_the_reference_pose_are_read_from_the_poses_of_frame_given_bodies(kind):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        spec, q = random_joint(kind, rng), random_coordinates(kind, rng, most=3.0)
        m, (x, R) = by_frames(spec, q, rng)
        system = m.compile()
        np.testing.assert_allclose(system.q_reference, q, atol=1e-13)
        motion = ld.tree.body_motion(system, system.state())
        k = motion.bodies.index("child")
        np.testing.assert_allclose(motion.position[k], x, atol=1e-13)
        np.testing.assert_allclose(motion.rotation[k], R, atol=1e-13)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("reverse", [False, True])
def test_any_coordinates_place_the_child_as_defined(kind, reverse):
    """Joint by `at`: F and M coincide at the reference pose. Entered from the parent or, reversed, from the child."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        spec, q, at = random_joint(kind, rng), random_coordinates(kind, rng, most=3.0), rng.normal(size=3)
        m = ld.Mechanism("one")
        m.add_body("b", random_inertia(rng, (0, 0, 0)))
        ends = ("b", m.ground) if reverse else (m.ground, "b")
        m.add_joint("A", spec, *ends, at=at)
        system = m.compile()
        motion = ld.tree.body_motion(system, system.state(q))
        d, E = placement(spec, q)
        if reverse:  # the ground seen from the body is (d, E)
            d, E = -E.T @ d, E.T
        np.testing.assert_allclose(motion.rotation[1], E, atol=1e-13)
        np.testing.assert_allclose(motion.position[1] + E @ at, at + d, atol=1e-13)


@pytest.mark.parametrize("kind", TYPES)
def test_at_the_reference_pose_coordinates_of_joints_placed_by_a_point_are_zero(kind):
    rng = np.random.default_rng(1)
    m = ld.Mechanism("one")
    m.add_body("b", random_inertia(rng, (0, 0, 0)), pose=frame(rng.normal(size=3), random_rotation(rng)))
    m.add_joint("A", random_joint(kind, rng), m.ground, "b", at=rng.normal(size=3))
    system = m.compile()
    expected = [1.0 if label == "A.w" else 0.0 for label in LABELS[kind][0]]
    np.testing.assert_array_equal(system.q_reference, expected)


@pytest.mark.parametrize("kind", TYPES)
def test_joints_placed_by_frames_and_by_a_point_give_the_same_motion(kind):
    """The same two-body chain, written once with points in the world and once with frames on turned body frames."""
    rng = np.random.default_rng(4)
    at, spec = rng.normal(size=(2, 3)), [random_joint(kind, rng) for _ in range(2)]
    inertia = [random_inertia(rng, rng.normal(size=3)) for _ in range(2)]
    poses = [(rng.normal(size=3), random_rotation(rng)) for _ in range(2)]
    one, two = ld.Mechanism("at", gravity=(1, -9, 2)), ld.Mechanism("frames", gravity=(1, -9, 2))
    for k in range(2):
        one.add_body(f"b{k}", inertia[k])
        two.add_body(f"b{k}", inertia[k], pose=frame(*poses[k]))
    for k, parent in enumerate(("ground", "b0")):
        one.add_joint(f"J{k}", spec[k], parent, f"b{k}", at=at[k])
        frames = []
        for name in (parent, f"b{k}"):
            x, R = (np.zeros(3), np.eye(3)) if name == "ground" else poses[int(name[1])]
            frames.append(frame(R.T @ (at[k] - x), R.T))  # world axes at the joint, seen from the body
        two.add_joint(f"J{k}", spec[k], parent, f"b{k}", parent_frame=frames[0], child_frame=frames[1])
    a, b = one.compile(), two.compile()
    np.testing.assert_allclose(b.q_reference, a.q_reference, atol=1e-14)
    state = random_state(a, rng)
    accelerations = [ld.tree.open_tree_forward_dynamics(s, state) for s in (a, b)]
    np.testing.assert_allclose(accelerations[1], accelerations[0], rtol=1e-10, atol=1e-11)
    motions = [ld.tree.body_motion(s, state, acc) for s, acc in zip((a, b), accelerations, strict=True)]
    for k in range(2):  # the body frames differ: compare world axes and a common point
        R = motions[1].rotation[k + 1] @ poses[k][1].T
        np.testing.assert_allclose(R, motions[0].rotation[k + 1], atol=1e-13)
        np.testing.assert_allclose(motions[1].position[k + 1] - R @ poses[k][0], motions[0].position[k + 1], atol=1e-13)


@pytest.mark.parametrize("kind", TYPES)
def test_speeds_are_the_rates_defined_in_the_notation(kind):
    """Velocity of M's origin and angular velocity from differences of poses, h = 1e-3: error near 1e-11."""
    rng = np.random.default_rng(2)
    spec, q = random_joint(kind, rng), random_coordinates(kind, rng)
    v = rng.normal(size=len(spec.speeds))
    m = ld.Mechanism("one")
    m.add_body("b", random_inertia(rng, (0, 0, 0)))
    m.add_joint("A", spec, m.ground, "b", at=(0, 0, 0))
    system = m.compile()
    motion = ld.tree.body_motion(system, system.state(q, v))
    _, E = placement(spec, q)

    rate_x = first_derivative(lambda s: placement(spec, after(kind, q, v, s))[0], 1e-3)
    rate_R = first_derivative(lambda s: placement(spec, after(kind, q, v, s))[1], 1e-3)
    np.testing.assert_allclose(motion.velocity[1], rate_x, atol=1e-10)
    w = motion.angular_velocity[1]
    np.testing.assert_allclose(np.cross(w, E.T).T, rate_R, atol=1e-10)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("reverse", [False, True])
def test_accelerations_of_bodies_are_second_differences_of_their_poses(kind, reverse):
    """Chain of two joints of the type, so that the first moves the second; h = 1e-3: error near 1e-9."""
    rng = np.random.default_rng(8)
    m = ld.Mechanism("chain")
    before = m.ground
    for k in range(2):
        body = m.add_body(f"b{k}", random_inertia(rng, (0, 0, 0)))
        m.add_joint(
            f"J{k}", random_joint(kind, rng), *((body, before) if reverse else (before, body)), at=rng.normal(size=3)
        )
        before = body
    system = m.compile()
    state, a = random_state(system, rng, 0.5), rng.normal(size=system.nv)
    motion, along = ld.tree.body_motion(system, state, a), path(system, state, a)
    h = 1e-3
    moved = {s: ld.tree.body_motion(system, along(s * h)) for s in (-2, -1, 1, 2)}
    for field, rate in (
        ("position", "velocity"),
        ("velocity", "acceleration"),
        ("angular_velocity", "angular_acceleration"),
    ):
        f = {s: getattr(x, field) for s, x in moved.items()}
        difference = (f[-2] - 8 * f[-1] + 8 * f[1] - f[2]) / (12 * h)
        np.testing.assert_allclose(difference, getattr(motion, rate), atol=2e-9, err_msg=rate)
    turned = {s: x.rotation for s, x in moved.items()}
    rate = (turned[-2] - 8 * turned[-1] + 8 * turned[1] - turned[2]) / (12 * h)
    for k in range(3):
        w = motion.angular_velocity[k]
        np.testing.assert_allclose(np.cross(w, motion.rotation[k].T).T, rate[k], atol=2e-9)


@pytest.mark.parametrize("kind", TYPES)
def test_body_jacobians_are_the_velocities_per_unit_speed(kind):
    rng = np.random.default_rng(6)
    m = ld.Mechanism("chain")
    before = m.ground
    for k in range(2):
        body = m.add_body(f"b{k}", random_inertia(rng, (0, 0, 0)), pose=frame(rng.normal(size=3), random_rotation(rng)))
        m.add_joint(f"J{k}", random_joint(kind, rng), body, before, at=rng.normal(size=3))
        before = body
    system = m.compile()
    state = random_state(system, rng)
    motion = ld.tree.body_motion(system, state)
    for k, name in enumerate(system.bodies):
        J = ld.tree.open_tree_body_jacobian(system, name, state)
        np.testing.assert_allclose(J[:3] @ state.v, motion.angular_velocity[k], atol=1e-13)
        np.testing.assert_allclose(J[3:] @ state.v, motion.velocity[k], atol=1e-13)


# ----------------------------------------------------------------------------------------------- manifolds


def one_of_each(seed: int) -> tuple[ld.System, np.random.Generator]:
    rng = np.random.default_rng(seed)
    m = ld.Mechanism("all")
    for kind in TYPES:
        m.add_body(kind, random_inertia(rng, (0, 0, 0)))
        m.add_joint(f"J {kind}", random_joint(kind, rng), m.ground, kind, at=rng.normal(size=3))
    return m.compile(), rng


def test_increments_and_differences_undo_each_other():
    for seed in range(10):
        system, rng = one_of_each(seed)
        q = random_state(system, rng).q
        xi = rng.uniform(-1, 1, system.nv)  # rotation vectors shorter than pi: the shortest way is unique
        p = ld.tree.increment(system, q, xi)
        np.testing.assert_allclose(ld.tree.difference(system, q, p), xi, atol=1e-13)
        np.testing.assert_allclose(ld.tree.increment(system, q, ld.tree.difference(system, q, p)), p, atol=1e-13)
        np.testing.assert_allclose(ld.tree.increment(system, q, np.zeros(system.nv)), q, atol=3e-16)
        small = 1e-9 * xi
        np.testing.assert_allclose(
            ld.tree.difference(system, q, ld.tree.increment(system, q, small)), small, atol=1e-15
        )


def test_increments_turn_about_the_axes_of_the_child():
    system, rng = one_of_each(3)
    q, xi = random_state(system, rng).q, rng.normal(size=system.nv)
    p = ld.tree.increment(system, q, xi)
    ball, free = system.joints["J spherical"], system.joints["J free"]
    i, j = ball.q0, ball.v0
    expected = from_quaternion(q[i : i + 4]) @ Turn.from_rotvec(xi[j : j + 3]).as_matrix()
    np.testing.assert_allclose(from_quaternion(p[i : i + 4]), expected, atol=1e-14)
    i, j = free.q0, free.v0
    R = from_quaternion(q[i + 3 : i + 7])
    np.testing.assert_allclose(p[i : i + 3], q[i : i + 3] + R @ xi[j + 3 : j + 6], atol=1e-14)
    expected = R @ Turn.from_rotvec(xi[j : j + 3]).as_matrix()
    np.testing.assert_allclose(from_quaternion(p[i + 3 : i + 7]), expected, atol=1e-14)
    for name in ("revolute", "prismatic", "helical", "cylindrical", "universal", "planar", "translational"):
        k = system.joints[f"J {name}"]
        n = len(k.spec.speeds)
        np.testing.assert_allclose(p[k.q0 : k.q0 + n], q[k.q0 : k.q0 + n] + xi[k.v0 : k.v0 + n], atol=1e-15)


def test_quaternions_stay_at_length_one_through_ten_thousand_steps():
    """Each step removes what rounding added, so that errors do not add up: a few roundings remain."""
    m = ld.Mechanism("two")
    for name, joint in (("a", ld.Spherical()), ("b", ld.Free())):
        m.add_body(name, ld.Inertia.sphere(mass=1.0, radius=0.1))
        m.add_joint(f"J{name}", joint, m.ground, name, at=(0, 0, 0))
    system = m.compile()
    rng = np.random.default_rng(0)
    q = random_state(system, rng).q
    ball, free = system.joints["Ja"].q0, system.joints["Jb"].q0 + 3
    for xi in 0.5 * rng.normal(size=(1000, system.nv)):
        for _ in range(10):
            q = ld.tree.increment(system, q, xi)
    for k in (ball, free):
        assert np.linalg.norm(q[k : k + 4]) == pytest.approx(1.0, abs=1e-15)


def test_difference_takes_the_shortest_rotation_whatever_the_sign_of_the_quaternion():
    m = ld.Mechanism("ball")
    m.add_body("a", ld.Inertia.sphere(mass=1.0, radius=0.1))
    m.add_joint("J", ld.Spherical(), m.ground, "a", at=(0, 0, 0))
    system = m.compile()
    q = np.array([1.0, 0, 0, 0])
    for angle in (1e-12, 1e-4, 1e-3, 0.5, 2.0, 3.0, 3.14159):
        p = np.array([np.cos(angle / 2), 0, np.sin(angle / 2), 0])
        for sign in (1, -1):
            np.testing.assert_allclose(ld.tree.difference(system, q, sign * p), (0, angle, 0), rtol=1e-12, atol=1e-27)
    far = np.array([np.cos(2.5), 0, np.sin(2.5), 0])  # 5 rad about y: the short way is 5 - 2 pi
    np.testing.assert_allclose(ld.tree.difference(system, q, far), (0, 5 - 2 * np.pi, 0), rtol=1e-12)


# -------------------------------------------------------------------------------------------------- details


def test_helical_joint_counts_its_turns_by_the_slide():
    spec = ld.joints.Helical(axis=(0, 0, 1), pitch=-0.2)
    for angle in (-20.0, -3.2, 0.1, 3.1, 7.0, 100.0):
        d, E = placement(spec, [angle])
        assert spec.measure(E, d, (-0.2, 0.0))[0] == pytest.approx(angle, abs=1e-12)


def test_universal_joint_turns_about_the_first_axis_in_the_parent_and_the_second_in_the_child():
    """Axes not perpendicular; the second axis is seen from the parent turned by the first angle."""
    a1, a2 = np.array([1.0, 0, 0]), np.array([1.0, 1.0, 0]) / np.sqrt(2)
    m = ld.Mechanism("u")
    m.add_body("b", ld.Inertia.sphere(mass=1.0, radius=0.1))
    m.add_joint("U", ld.Universal(axis1=a1, axis2=a2), m.ground, "b", at=(0, 0, 0))
    system = m.compile()
    motion = ld.tree.body_motion(system, system.state({"U.1": 0.4, "U.2": 1.1}, {"U.1": 2.0, "U.2": 3.0}))
    np.testing.assert_allclose(motion.rotation[1], turn(a1, 0.4) @ turn(a2, 1.1), atol=1e-15)
    np.testing.assert_allclose(motion.angular_velocity[1], 2 * a1 + 3 * turn(a1, 0.4) @ a2, atol=1e-15)


def test_planar_joint_takes_world_x_in_the_plane_or_y_where_x_is_nearly_normal():
    def direction_of_x(normal):
        m = ld.Mechanism("p")
        m.add_body("b", ld.Inertia.sphere(mass=1.0, radius=0.1))
        m.add_joint("P", ld.Planar(normal=normal), m.ground, "b", at=(0, 0, 0))
        system = m.compile()
        return ld.tree.body_motion(system, system.state({"P.x": 1.0})).position[1]

    np.testing.assert_allclose(direction_of_x((0, 0, 3)), (1, 0, 0), atol=1e-15)
    n = np.array([0.5, 0.2, 1.0]) / np.linalg.norm([0.5, 0.2, 1.0])
    x = np.array([1, 0, 0]) - n[0] * n
    np.testing.assert_allclose(direction_of_x(n), x / np.linalg.norm(x), atol=1e-15)
    n = np.array([1.0, 0.05, 0.1]) / np.linalg.norm([1.0, 0.05, 0.1])
    y = np.array([0, 1, 0]) - n[1] * n
    np.testing.assert_allclose(direction_of_x(n), y / np.linalg.norm(y), atol=1e-15)


def test_axes_are_normalised():
    """A long axis does not make a coordinate longer."""
    m = ld.Mechanism("s")
    m.add_body("b", ld.Inertia.sphere(mass=1.0, radius=0.1))
    m.add_joint("P", ld.Prismatic(axis=(0, 30, 40)), m.ground, "b", at=(0, 0, 0))
    system = m.compile()
    np.testing.assert_allclose(ld.tree.body_motion(system, system.state([2.0])).position[1], (0, 1.2, 1.6), rtol=1e-15)


@pytest.mark.parametrize(
    ("joint", "said"),
    [
        (ld.Revolute(axis=(0, 0, 0)), "'axis' has length zero"),
        (ld.Universal(axis1=(1, 0, 0), axis2=(-2, 0, 0)), "'axis1' and 'axis2' are parallel"),
        (ld.Planar(normal=(0, 0, 1), x=(0, 0, 2)), "'x' is along the normal"),
        (ld.joints.Helical(axis=(0, 0, 1), pitch=0), "'pitch' is zero"),
    ],
)
def test_axes_without_a_direction_are_refused(joint, said):
    m = ld.Mechanism("wrong")
    m.add_body("b", ld.Inertia.sphere(mass=1.0, radius=0.1))
    m.add_joint("A", joint, m.ground, "b", at=(0, 0, 0))
    with pytest.raises(ld.errors.ModelError, match=said):
        m.compile()


def test_rotations_can_be_given_in_three_ways():
    """Roll, pitch and yaw about the fixed axes x, y, z in this order."""
    R = turn((0, 0, 1), 0.3) @ turn((0, 1, 0), -0.5) @ turn((1, 0, 0), 0.7)
    vector = rotation_vector(R)
    ways = [
        ld.joints.Rotation(rpy=(0.7, -0.5, 0.3)),
        ld.joints.Rotation(quaternion=quaternion(R)),
        ld.joints.Rotation(axis=vector, angle=float(np.linalg.norm(vector))),
    ]
    for way in ways:
        m = ld.Mechanism("pose")
        m.add_body("b", ld.Inertia.sphere(mass=1.0, radius=0.1), pose=ld.Frame(position=(1, 2, 3), rotation=way))
        motion = ld.tree.body_motion(m.compile(), m.compile().state())
        np.testing.assert_allclose(motion.rotation[1], R, atol=1e-15)
        np.testing.assert_allclose(motion.position[1], (1, 2, 3), atol=1e-15)


def test_states_by_label_keep_the_rest_at_the_reference_pose():
    system, _ = one_of_each(1)
    state = system.state({"J revolute": 0.5, "J spherical.x": 2.0}, {"J free.vz": 3.0}, t=1.5)
    assert state.t == 1.5
    assert state.q[system.coordinates.index("J revolute")] == 0.5
    k = system.joints["J spherical"].q0
    np.testing.assert_allclose(state.q[k : k + 4], np.array([1, 2, 0, 0]) / np.sqrt(5))  # brought to length one
    changed = {"J revolute", "J spherical.w", "J spherical.x"}
    for label, a, b in zip(system.coordinates, state.q, system.q_reference, strict=True):
        assert a == b or label in changed
    assert np.count_nonzero(state.v) == 1
    assert_same_motion(
        ld.tree.body_motion(system, system.state()), ld.tree.body_motion(system, system.state(system.q_reference)), 0.0
    )


def test_values_without_a_name_are_the_fields_in_their_order():
    assert ld.Revolute((0, 0, 2)) == ld.Revolute(axis=(0, 0, 2))
    assert ld.joints.Helical((0, 0, 1), 0.01) == ld.joints.Helical(axis=(0, 0, 1), pitch=0.01)
    ends = {"body1": "a", "body2": "b", "point1": (0, 0, 0), "point2": (1, 0, 0)}
    spring = ld.forces.SpringDamper(**ends, stiffness=10.0, damping=1.0, length=0.5, name="s")
    assert ld.forces.SpringDamper("a", "b", (0, 0, 0), (1, 0, 0), 10.0, 1.0, 0.5, name="s") == spring
    with pytest.raises(ld.errors.ModelError, match=r"2 values have no name. Without a name: axis"):
        ld.Revolute((0, 0, 1), 3.0)
    with pytest.raises(ld.errors.ModelError, match="'axis' is given twice"):
        ld.Revolute((0, 0, 1), axis=(1, 0, 0))
