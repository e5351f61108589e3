"""Every quantity of a tree beside Pinocchio, an independent program, on random mechanisms with every joint type.

The relative error is the largest difference over a scale: the largest entry of Pinocchio's array, but not less than
one in SI units (masses, lengths and speeds of these mechanisms are of order one, accelerations and forces of order
ten to a hundred), so that a quantity that vanishes is compared with what is usual.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
from tests.independent import TYPES

import loopdyn as ld
from loopdyn.library.random import MAKERS

pin = pytest.importorskip("pinocchio", reason="Pinocchio has no wheels for this platform")

from tests.external.pinocchio_models import (  # noqa: E402  after the check that Pinocchio is there
    Twin,
    body_inertia,
    body_pose,
    joint_axes,
    joint_frames,
    unit,
)

# The goal is 1e-9. Rounding grows with the condition of the mass matrix, up to 1e5 here, and was measured to stay below
# 1e-13; with two digits more for other machines there is no room for a wrong term.
TOLERANCE = 1e-11

KINDS = tuple(MAKERS)
# Joint types that random mechanisms do not have, and what judges them instead.
NOT_COMPARED: dict[str, str] = {}

GROUPS = 20
TREES = 200
SEEDS = [range(k, k + TREES // GROUPS) for k in range(0, TREES, TREES // GROUPS)]
some_trees = pytest.mark.parametrize(
    "seeds",
    [pytest.param(s, id=f"seeds_{s[0]}_to_{s[-1]}", marks=pytest.mark.jit_off if s[0] == 0 else ()) for s in SEEDS],
)


def assert_equal(ours, theirs, what):
    ours, theirs = np.asarray(ours, float), np.asarray(theirs, float)
    assert ours.shape == theirs.shape, f"{what}: shapes {ours.shape} and {theirs.shape}"
    if ours.size:
        scale = max(1.0, np.abs(theirs).max())
        error = np.abs(ours - theirs).max() / scale
        assert error <= TOLERANCE, f"{what}: relative error {error:.2e} on the scale {scale:.3g}"


def random_state(system, rng, t=0.7):
    """Angles up to three radians either way, slides up to half a metre, any attitude, speeds of order one."""
    q = rng.uniform(-3.0, 3.0, system.nq)
    for k, label in enumerate(system.coordinates):
        if label.rpartition(".")[2] in ("x", "y", "z", "px", "py", "pz", "slide"):
            q[k] *= 0.5 / 3.0
    for joint in system.joints.values():
        if joint.in_tree and joint.spec.type == "prismatic":
            q[joint.q0] *= 0.5 / 3.0
        elif joint.in_tree and joint.spec.type in ("spherical", "free"):
            k = joint.q0 + joint.spec.coordinates.index("w")
            q[k : k + 4] = rng.normal(size=4)
    return system.state(q, rng.normal(size=system.nv), t)


@cache
def random_tree(seed):
    """Twin models of a random tree and a state; every fourth tree floats, every second has forces of all kinds."""
    m = ld.library.random_mechanism(seed, 1 + seed % 12, 0, floating=seed % 4 == 0, forces=seed % 2 == 1)
    system = m.compile()
    return Twin(m, system), random_state(system, np.random.default_rng(seed))


def wrench_first(a):
    """Twists or Jacobians of Pinocchio, linear part first, in loopdyn's order."""
    return np.concatenate([a[3:], a[:3]])


def dynamics(twin, state):
    """M and h of loopdyn's coordinates, from Pinocchio."""
    q, v, T, c = twin.update(state)
    model, data = twin.model, twin.data
    wrenches, tau = twin.loads(state)
    M = pin.crba(model, data, q, pin.Convention.LOCAL)
    M = np.triu(M) + np.triu(M, 1).T
    needed = pin.rnea(model, data, q, v, c, wrenches)  # also for what T a leaves out
    return T.T @ M @ T, tau - T.T @ needed


# ------------------------------------------------------------------------------------------------- random trees


def test_the_random_trees_have_every_joint_type_in_both_directions():
    found = {(k.kind, k.reverse) for seed in range(TREES) for k in random_tree(seed)[0].links}
    types = {j.type for seed in range(TREES) for j in random_tree(seed)[0].mechanism.joints.values()}
    assert found == {(kind, reverse) for kind in KINDS if kind != "weld" for reverse in (False, True)}
    assert types == set(KINDS)
    assert set(TYPES) == {*KINDS, *NOT_COMPARED}


@some_trees
def test_poses_velocities_and_accelerations_of_bodies_equal_pinocchios(seeds):
    for seed in seeds:
        twin, state = random_tree(seed)
        a = np.random.default_rng(seed).normal(size=twin.system.nv)
        twin.update(state, a)
        assert_same_motion(twin, ld.tree.body_motion(twin.system, state, a), f"seed {seed}")


@some_trees
def test_body_jacobians_equal_pinocchios(seeds):
    for seed in seeds:
        twin, state = random_tree(seed)
        _, _, T, _ = twin.update(state)
        for body in twin.mechanism.bodies:
            ours = ld.tree.open_tree_body_jacobian(twin.system, body, state)
            assert_equal(ours, wrench_first(twin.jacobian(body)) @ T, f"seed {seed}, Jacobian of {body}")


@some_trees
def test_mass_matrix_equals_pinocchios(seeds):
    for seed in seeds:
        twin, state = random_tree(seed)
        assert_equal(ld.tree.open_tree_mass_matrix(twin.system, state), dynamics(twin, state)[0], f"seed {seed}, M")


@some_trees
def test_velocity_gravity_and_force_terms_equal_pinocchios(seeds):
    for seed in seeds:
        twin, state = random_tree(seed)
        ours = ld.terms(twin.system, state)
        M, h = dynamics(twin, state)
        assert_equal(ours.h, h, f"seed {seed}, h")
        assert_equal(ours.M, M, f"seed {seed}, M of terms")


@some_trees
def test_inverse_dynamics_equals_pinocchios(seeds):
    for seed in seeds:
        twin, state = random_tree(seed)
        a = np.random.default_rng(seed).normal(size=twin.system.nv)
        q, v, T, c = twin.update(state)
        wrenches, loads = twin.loads(state)
        theirs = T.T @ pin.rnea(twin.model, twin.data, q, v, T @ a + c, wrenches) - loads
        assert_equal(ld.tree.open_tree_inverse_dynamics(twin.system, a, state), theirs, f"seed {seed}, tau")


@some_trees
def test_forward_dynamics_equals_pinocchios(seeds):
    for seed in seeds:
        twin, state = random_tree(seed)
        tau = 5.0 * np.random.default_rng(seed).normal(size=twin.system.nv)
        q, v, T, c = twin.update(state)
        wrenches, loads = twin.loads(state)
        tau_pin = np.linalg.solve(T.T, tau + loads) if len(tau) else np.zeros(0)
        a_pin = pin.aba(twin.model, twin.data, q, v, tau_pin, wrenches, pin.Convention.LOCAL)
        theirs = np.linalg.solve(T, a_pin - c) if len(tau) else a_pin
        assert_equal(ld.tree.open_tree_forward_dynamics(twin.system, state, tau), theirs, f"seed {seed}, a")
        solve = ld.tree.TreeSolver(twin.system)
        assert_equal(solve(state.t, state.q, state.v, tau), theirs, f"seed {seed}, a of the solver")
        again = ld.tree.open_tree_forward_dynamics(twin.system, state)
        assert_equal(solve(state.t, state.q, state.v), again, f"seed {seed}, a of the solver, called without tau")


@some_trees
def test_energies_and_momenta_equal_pinocchios(seeds):
    for seed in seeds:
        twin, state = random_tree(seed)
        ours = ld.tree.energy(twin.system, state)
        q, v, _, _ = twin.update(state)
        model, data = twin.model, twin.data
        assert_equal(ours.kinetic, pin.computeKineticEnergy(model, data, q, v), f"seed {seed}, kinetic energy")
        momentum = pin.computeCentroidalMomentum(model, data, q, v)
        centre = pin.centerOfMass(model, data, q) if model.nv else np.zeros(3)
        assert_equal(ours.momentum, momentum.linear, f"seed {seed}, momentum")
        about_origin = momentum.angular + np.cross(centre, momentum.linear)
        assert_equal(ours.angular_momentum, about_origin, f"seed {seed}, angular momentum")


@some_trees
def test_energy_in_gravity_and_centre_of_mass_equal_pinocchios(seeds):
    for seed in seeds:
        twin, state = random_tree(seed)
        system = twin.system
        twin.update(state)
        potential = pin.computePotentialEnergy(twin.model, twin.data, twin.state(state)[0])
        fixed = [b for b, (joint, _) in twin.place.items() if joint == 0 and b in twin.mechanism.bodies]
        if not fixed:  # Pinocchio leaves out bodies that are welded to the ground
            assert_equal(ld.tree.energy(system, state).gravity, potential, f"seed {seed}, energy in gravity")
        masses = twin.masses()
        for g in np.eye(3):
            m = twin.mechanism.model_copy(update={"gravity": tuple(g)})
            ours = ld.tree.energy(m.compile(), state).gravity
            assert_equal(ours, -sum(mass * (x @ g) for mass, x in masses), f"seed {seed}, mass times centre of mass")


@pytest.mark.parametrize("seed", range(4))
def test_a_tree_of_40_bodies_equals_pinocchios(seed):
    m = ld.library.random_mechanism(1000 + seed, 40, 0, floating=seed % 2 == 0, forces=True)
    system = m.compile()
    assert_same_dynamics(Twin(m, system), random_state(system, np.random.default_rng(seed)), f"seed {seed}")


def assert_same_dynamics(twin, state, what):
    """Motion of all bodies, M, h and the accelerations of `state`."""
    system = twin.system
    M, h = dynamics(twin, state)
    ours = ld.terms(system, state)
    assert_equal(ours.M, M, f"{what}, M")
    assert_equal(ours.h, h, f"{what}, h")
    a = ld.tree.open_tree_forward_dynamics(system, state)
    assert_equal(a, np.linalg.solve(M, h), f"{what}, a")
    twin.update(state, a)
    assert_same_motion(twin, ld.tree.body_motion(system, state, a), what)


def assert_same_motion(twin, motion, what):
    """Poses, velocities and accelerations of all bodies; after `update` of the twin with the same accelerations."""
    bodies = motion.bodies
    assert_equal(motion.position, [twin.pose(b).translation for b in bodies], f"{what}, position")
    assert_equal(motion.rotation, [twin.pose(b).rotation for b in bodies], f"{what}, rotation")
    velocity, acceleration = [twin.velocity(b) for b in bodies], [twin.acceleration(b) for b in bodies]
    assert_equal(motion.velocity, [v.linear for v in velocity], f"{what}, velocity")
    assert_equal(motion.angular_velocity, [v.angular for v in velocity], f"{what}, angular velocity")
    assert_equal(motion.acceleration, [a.linear for a in acceleration], f"{what}, acceleration")
    assert_equal(motion.angular_acceleration, [a.angular for a in acceleration], f"{what}, angular acceleration")


# ----------------------------------------------------------------------------- poses of bodies, joints by frames


def as_frame(X):
    x, y, z, w = pin.SE3ToXYZQUAT(X)[3:]
    return ld.Frame(position=X.translation, rotation=(w, x, y, z))


def placed_by_frames(twin, state, rng):
    """The same mechanism drawn at the pose of `state`: bodies with frames of their own, joints placed by frames."""
    old = twin.mechanism
    new = ld.Mechanism("by_frames", gravity=old.gravity)
    twin.update(state)
    own = {b: random_pose(rng) for b in old.bodies}  # the new own frame, in the old one
    own["ground"] = pin.SE3.Identity()
    for k, body in enumerate(old.bodies):
        pose = twin.pose(body) * own[body]
        axes = "body" if k % 2 else "world"
        inertia = own[body].actInv(body_inertia(old, body))
        inertia = inertia if axes == "body" else pose.act(inertia)
        given = ld.Inertia(inertia.mass, inertia.lever, inertia.inertia)
        new.add_body(body, given, pose=as_frame(pose), axes=axes)
    for name, joint in old.joints.items():
        turn = pin.SE3(random_pose(rng).rotation, np.zeros(3))  # axes are meant in the frames
        F, M = (
            as_frame(own[body].actInv(frame * turn))
            for body, frame in zip((joint.parent, joint.child), joint_frames(old, joint), strict=True)
        )
        data = {
            k: tuple(turn.rotation.T @ getattr(joint, k))
            for k in ("axis", "axis1", "axis2", "normal", "x")
            if getattr(joint, k, None)
        }
        if joint.type == "helical":
            data["pitch"] = joint.pitch
        new.add_joint(name, type(joint)(**data), joint.parent, joint.child, parent_frame=F, child_frame=M)
    return new


def random_pose(rng):
    return pin.SE3(pin.Quaternion(*unit(rng.normal(size=4))).matrix(), rng.normal(size=3))


def add_forces(m, rng):
    """Forces whose points and axes are in the world at the reference pose."""
    a, b, c = (list(m.bodies) * 3)[:3]
    points = {"point1": tuple(rng.normal(size=3)), "point2": tuple(rng.normal(size=3))}
    m.add_force(None, ld.forces.SpringDamper(body1="ground", body2=a, stiffness=30.0, damping=2.0, **points))
    m.add_force(
        None, ld.forces.Actuator(body1=b, body2="ground", force="2 + sin(t) - 0.4*length - 0.2*speed", **points)
    )
    three = rng.uniform(1, 10, (4, 3)).tolist()
    keys = ("stiffness", "damping", "angular_stiffness", "angular_damping")
    turn = ld.joints.Rotation(rpy=tuple(rng.normal(size=3)))
    m.add_force(
        None,
        ld.forces.Bushing(
            body1=c, body2="ground", at=tuple(rng.normal(size=3)), rotation=turn, **dict(zip(keys, three, strict=True))
        ),
    )
    for axes in ("body", "world"):
        m.add_force(
            None,
            ld.forces.AppliedForce(
                body=b, at=tuple(rng.normal(size=3)), force=(1, "cos(t)", 2), torque=(0.5, -1, "t"), axes=axes
            ),
        )


@pytest.mark.jit_off
@pytest.mark.parametrize("seed", range(10))
def test_bodies_with_poses_and_joints_by_frames_equal_pinocchios(seed):
    rng = np.random.default_rng(seed)
    old = ld.library.random_mechanism(seed, 6, 0)
    twin = Twin(old, old.compile())
    drawn_at = random_state(twin.system, rng)
    m = placed_by_frames(twin, drawn_at, rng)
    add_forces(m, rng)
    system = m.compile()
    state = random_state(system, rng)
    assert_same_dynamics(Twin(m, system), state, f"seed {seed}")
    # at the reference pose the bodies are where they were drawn, so the coordinates were measured correctly
    reference = ld.tree.body_motion(system, system.state())
    poses = [body_pose(m, b) for b in reference.bodies]
    assert_equal(reference.position, [X.translation for X in poses], f"seed {seed}, reference position")
    assert_equal(reference.rotation, [X.rotation for X in poses], f"seed {seed}, reference rotation")


# ------------------------------------------------------------------------------------------------- moving bases

MOTION = {
    "x": "0.3*sin(2*t)",
    "y": "0.2*t**2 - 0.1*t",
    "z": "0.1*cos(3*t) + 0.4",
    "rx": "0.5*sin(1.5*t) + 0.3",
    "ry": "0.7*t",
    "rz": "exp(-t) - 0.6*cos(2*t)",
}
OTHER_MOTION = {"x": "0.5*t", "z": "sin(t)**2", "rx": "t**3", "ry": "-0.4", "rz": "0.2*sin(5*t)"}


def move_bases(m, moved):
    """Move the ground, the first body, or the ground and the root of a second mechanism."""
    if moved in ("ground", "both"):
        m.move_base(**MOTION)
    if moved == "root":
        m.move_base("body1", **OTHER_MOTION)
    if moved == "both":
        pose = ld.Frame(position=(0.3, -0.2, 0.5), rotation=ld.joints.Rotation(axis=(1, 2, 3), angle=0.8))
        m.add_body("root", ld.Inertia(1.0, (1, 2, 3), np.eye(3)), pose=pose)
        m.add_body("rider", ld.Inertia(1.5, (0.9, 0.2, 0.4), 0.1 * np.eye(3)))
        m.add_joint("ride", ld.Planar(normal=(1, 2, -1)), "rider", "root", at=(0.5, 0.4, 0.1))
        m.move_base("root", **OTHER_MOTION)


@pytest.mark.jit_off
@pytest.mark.parametrize("moved", ["ground", "root", "both"])
@pytest.mark.parametrize("seed", range(6))
def test_trees_on_moving_bases_equal_pinocchios_with_the_base_driven(seed, moved):
    m = ld.library.random_mechanism(seed, 6, 0, floating=moved == "root", forces=True)
    move_bases(m, moved)
    system = m.compile()
    twin = Twin(m, system)
    state = random_state(system, np.random.default_rng(seed), t=0.45)
    assert_same_dynamics(twin, state, f"seed {seed}, {moved}")
    energy = ld.tree.energy(system, state)
    twin.update(state)
    q, v, _, _ = twin.state(state)
    kinetic = pin.computeKineticEnergy(twin.model, twin.data, q, v)
    assert_equal(energy.kinetic, kinetic, f"seed {seed}, {moved}, kinetic energy")


# --------------------------------------------------------------------------------------------------- cut joints


class Jet:
    """A number with its first and second derivative by time."""

    def __init__(self, x, dx=0.0, ddx=0.0):
        self.x, self.dx, self.ddx = x, dx, ddx

    def __add__(self, other):
        o = other if isinstance(other, Jet) else Jet(other)
        return Jet(self.x + o.x, self.dx + o.dx, self.ddx + o.ddx)

    def __mul__(self, other):
        o = other if isinstance(other, Jet) else Jet(other)
        return Jet(self.x * o.x, self.dx * o.x + self.x * o.dx, self.ddx * o.x + 2 * self.dx * o.dx + self.x * o.ddx)

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self):
        return self * -1.0

    def __sub__(self, other):
        return self + other * -1.0

    def through(self, f, df, ddf):
        """A function of this number from its value and two derivatives."""
        return Jet(f, df * self.dx, ddf * self.dx**2 + df * self.ddx)

    def __truediv__(self, other):
        o = other if isinstance(other, Jet) else Jet(other)
        return self * o.through(1 / o.x, -1 / o.x**2, 2 / o.x**3)

    def sqrt(self):
        root = math.sqrt(self.x)
        return self.through(root, 0.5 / root, -0.25 / root**3)

    def atan2(self, c):
        """Angle of (c, self); its derivatives are those of arctan(self/c)."""
        r = self / c
        slope = 1 / (1 + r.x**2)
        jet = r.through(0.0, slope, -2 * r.x * slope**2)
        return Jet(math.atan2(self.x, c.x), jet.dx, jet.ddx)


def jets(value, rate, second):
    make = np.frompyfunc(Jet, 3, 1)
    return make(value, rate, second)


def quaternion(E):
    """Quaternion with w >= 0: a column of 4 q q^T, taken where it is largest."""
    (xx, xy, xz), (yx, yy, yz), (zx, zy, zz) = E
    columns = [
        [xx + yy + zz + 1.0, zy - yz, xz - zx, yx - xy],
        [zy - yz, xx - yy - zz + 1.0, yx + xy, xz + zx],
        [xz - zx, yx + xy, yy - xx - zz + 1.0, zy + yz],
        [yx - xy, xz + zx, zy + yz, zz - xx - yy + 1.0],
    ]
    k = max(range(4), key=lambda j: columns[j][j].x)
    length = columns[k][k].sqrt() * (2.0 if columns[k][0].x >= 0 else -2.0)
    return [x / length for x in columns[k]]


def closure_rows(joint, F, M, xF, xM):
    """phi of a cut joint as docs/notation.md and the joint's `rows_when_cut` define it: M seen from F, in F axes.

    mx, my: the z axis of M tilts in F. mx, my, mz: twice the vector part of the relative quaternion. fx, fy, fz:
    displacement. screw: slide less pitch times angle. normal: angle between the two axes of a universal joint.
    """
    E, d = F.T @ M, F.T @ (xM - xF)
    tilt, shift = [-E[1, 2], E[0, 2]], list(d)
    if joint.type in ("weld", "prismatic", "translational"):
        turn = [x * 2.0 for x in quaternion(E)[1:]]
        return turn + {"weld": shift, "prismatic": shift[:2], "translational": []}[joint.type]
    if joint.type == "universal":
        c = unit(joint.axis1) @ unit(joint.axis2)
        s = math.sqrt(1 - c**2)
        return [(E[0, 0] * c + E[0, 1] * s - c) * (-1 / s), *shift]
    if joint.type == "helical":
        angle = (E[1, 0] - E[0, 1]).atan2(E[0, 0] + E[1, 1])
        turns = round((d[2].x / joint.pitch - angle.x) / (2 * math.pi))
        return [*tilt, *shift[:2], d[2] - (angle + 2 * math.pi * turns) * joint.pitch]
    rest = {"revolute": shift, "cylindrical": shift[:2], "planar": shift[2:]}
    return shift if joint.type == "spherical" else tilt + rest[joint.type] if joint.type in rest else []


def end_of_joint(twin, body, frame, twist, acceleration):
    """Axes and origin of a joint's frame on a body as jets, for a motion of the body's own frame."""
    (v, w), (a, alpha) = twist, acceleration
    X = twin.pose(body) * frame
    arm = X.translation - twin.pose(body).translation
    W, A = pin.skew(w), pin.skew(alpha)
    return (
        jets(X.rotation, W @ X.rotation, (A + W @ W) @ X.rotation),
        jets(X.translation, v + W @ arm, a + A @ arm + W @ W @ arm),
    )


def all_rows(twin, motion):
    """Rows of all cut joints; motion(body) gives (v, omega), (a, alpha) of its own frame."""
    rows = []
    for name in twin.system.topology.cuts:
        joint = twin.mechanism.joints[name]
        axes = pin.SE3(joint_axes(joint), np.zeros(3))
        ends = [
            end_of_joint(twin, body, frame * axes, *motion(body))
            for body, frame in zip((joint.parent, joint.child), joint_frames(twin.mechanism, joint), strict=True)
        ]
        (F, xF), (M, xM) = ends
        rows += closure_rows(joint, F, M, xF, xM)
    return rows


def assert_same_closure(twin, state, rng, what):
    """phi, J, phi_t and gamma against derivatives of phi along motions computed by Pinocchio."""
    system, still = twin.system, (np.zeros(3), np.zeros(3))
    ours = ld.terms(system, state)
    a = rng.normal(size=system.nv)
    _, _, T, _ = twin.update(state, a)
    jacobians = {b: twin.jacobian(b) @ T for b in twin.place}
    J = np.empty((system.nc, system.nv))
    for k in range(system.nv):
        J[:, k] = [r.dx for r in all_rows(twin, lambda b, k=k: (np.split(jacobians[b][:, k], 2), still))]
    rows = all_rows(twin, lambda b: (np.split(twin.velocity(b).vector, 2), np.split(twin.acceleration(b).vector, 2)))
    assert_equal(ours.phi, [r.x for r in rows], f"{what}, phi")
    assert_equal(ours.J, J, f"{what}, J")
    assert_equal(ours.J @ state.v + ours.phi_t, [r.dx for r in rows], f"{what}, rate of phi")
    assert_equal(ours.J @ a - ours.gamma, [r.ddx for r in rows], f"{what}, second rate of phi")


@pytest.mark.jit_off
@pytest.mark.parametrize("seed", range(20))
def test_rows_of_cut_joints_equal_derivatives_of_pinocchios_poses(seed):
    m = ld.library.random_mechanism(seed, 8, 2, redundant=1)
    system = m.compile()
    rng = np.random.default_rng(seed)
    assert_same_closure(Twin(m, system), random_state(system, rng), rng, f"seed {seed}")


@pytest.mark.parametrize("moved", ["nothing", "ground", "root", "both"])
@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_joints_in_absolute_coordinates_equal_derivatives_of_pinocchios_poses(kind, moved):
    m = ld.library.random_mechanism(7, 3, 0, [kind], floating=moved == "root")
    move_bases(m, moved)
    system = m.compile(cuts="all")
    rng = np.random.default_rng(7)
    twin = Twin(m, system)
    assert_same_closure(twin, random_state(system, rng, t=0.45), rng, f"{kind}, {moved}")


# ------------------------------------------------------------------- the same tree in joint and in absolute coordinates


def absolute_state(system, motion, t):
    """Coordinates and speeds of free bodies that move as `motion` says, and the accelerations it leaves."""
    q, v, a = {}, {}, {}
    for k, body in enumerate(motion.bodies):
        if body == "ground":
            continue
        R = motion.rotation[k]
        x, y, z, w = pin.Quaternion(R).coeffs()
        omega, speed = R.T @ motion.angular_velocity[k], R.T @ motion.velocity[k]
        alpha, rate = R.T @ motion.angular_acceleration[k], R.T @ motion.acceleration[k] - np.cross(omega, speed)
        q |= {
            f"free:{body}.{s}": c
            for s, c in zip(("px", "py", "pz", "w", "x", "y", "z"), (*motion.position[k], w, x, y, z))
        }
        for values, numbers in ((v, (*omega, *speed)), (a, (*alpha, *rate))):
            values |= {f"free:{body}.{s}": c for s, c in zip(("wx", "wy", "wz", "vx", "vy", "vz"), numbers)}
    return system.state(q, v, t), np.array([a[label] for label in system.speeds])


def absolute_speeds(free, tree, state, motion):
    """V (nv of free bodies, nv of the tree): speeds of free bodies per speed of the tree."""
    V = np.empty((free.nv, tree.nv))
    for body in free.bodies[1:]:
        R = motion.rotation[motion.bodies.index(body)]
        k = free.speeds.index(f"free:{body}.wx")
        J = ld.tree.open_tree_body_jacobian(tree, body, state)
        V[k : k + 6] = np.vstack([R.T @ J[:3], R.T @ J[3:]])
    return V


@pytest.mark.jit_off
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", [*KINDS, "any"])
def test_cut_joints_carry_the_same_motion_and_loads_as_in_the_tree(kind, seed):
    """M, h and the rows of the freed bodies, projected on the motions the joints allow, are those of the tree.

    Every joint has a spring, friction and a motor, which work on its coordinates where it is in the tree and on the
    frames of its bodies where it is cut.
    """
    rng = np.random.default_rng(seed)
    m = ld.library.random_mechanism(seed, 5, 0, None if kind == "any" else [kind], forces=True)
    for name, joint in m.joints.items():
        scalar = len(joint.coordinates) == len(joint.speeds)
        for suffix, label in zip(joint.speeds, joint.labels(name)[1], strict=True):
            angle = suffix.startswith("w") if not scalar else joint.dimensions[joint.speeds.index(suffix)] == "angle"
            law = "0.7 - 0.3*speed + 0.2*t" + (" + 0.4*position" if scalar else "")
            m.add_motor(f"motor {label}".replace(".", " "), label, **{"torque" if angle else "force": law})
            m.add_force(None, ld.forces.JointFriction(joint=label, viscous=0.3, coulomb=0.2, transition=0.5))
            if scalar:
                m.add_force(None, ld.forces.JointSpring(joint=label, stiffness=3.0, damping=0.2, rest=0.4))
    tree, free = m.compile(), m.compile(cuts="all")
    state = random_state(tree, rng)
    assert_same_dynamics(Twin(m, tree), state, f"seed {seed}")
    motion = ld.tree.body_motion(tree, state)
    freed, c = absolute_state(free, motion, state.t)
    V = absolute_speeds(free, tree, state, motion)
    joint, absolute = ld.terms(tree, state), ld.terms(free, freed)
    assert_equal(absolute.phi, np.zeros(free.nc), f"seed {seed}, phi")
    assert_equal(V @ state.v, freed.v, f"seed {seed}, v")
    assert_equal(absolute.J @ V, np.zeros((free.nc, tree.nv)), f"seed {seed}, J V")
    assert_equal(absolute.J @ c, absolute.gamma, f"seed {seed}, gamma")
    assert_equal(V.T @ absolute.M @ V, joint.M, f"seed {seed}, M")
    assert_equal(V.T @ (absolute.h - absolute.M @ c), joint.h, f"seed {seed}, h")
