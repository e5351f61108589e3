"""Every quantity of a tree beside Pinocchio, an independent program, on random mechanisms with every joint type.

The relative error is the largest difference over a scale: the largest entry of Pinocchio's array, but not less than
one in SI units (masses, lengths and speeds of these mechanisms are of order one, accelerations and forces of order ten to
a hundred), so that a quantity that vanishes is compared with what is usual.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest

import loopdyn as ld

pin = pytest.importorskip("pinocchio", reason="Pinocchio has no wheels for this platform")

from tests.external.pinocchio_models import (  # noqa: E402  after the check that Pinocchio is there
    Twin,
    body_pose,
    joint_axes,
    joint_frames,
    unit,
)

# Rounding grows with the condition of the mass matrix, at most some 1e4 here: 1e-9 leaves room for it and none for a
# wrong term.
TOLERANCE = 1e-9

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


@lru_cache(maxsize=None)
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
    welds = {j.type for seed in range(TREES) for j in random_tree(seed)[0].mechanism.joints.values()}
    movable = {"revolute", "prismatic", "helical", "cylindrical", "universal", "planar", "translational", "spherical"}
    assert found == {(kind, reverse) for kind in (*movable, "free") for reverse in (False, True)}
    assert welds == {*movable, "free", "weld"}


@some_trees
def test_poses_velocities_and_accelerations_of_bodies_equal_pinocchios(seeds):
    for seed in seeds:
        twin, state = random_tree(seed)
        a = np.random.default_rng(seed).normal(size=twin.system.nv)
        ours = ld.tree.body_motion(twin.system, state, a)
        twin.update(state, a)
        for name, of_body in {
            "position": lambda b: twin.pose(b).translation,
            "rotation": lambda b: twin.pose(b).rotation,
            "velocity": lambda b: twin.velocity(b).linear,
            "angular_velocity": lambda b: twin.velocity(b).angular,
            "acceleration": lambda b: twin.acceleration(b).linear,
            "angular_acceleration": lambda b: twin.acceleration(b).angular,
        }.items():
            assert_equal(getattr(ours, name), [of_body(b) for b in ours.bodies], f"seed {seed}, {name}")


@some_trees
def test_body_jacobians_equal_pinocchios(seeds):
    for seed in seeds:
        twin, state = random_tree(seed)
        _, _, T, _ = twin.update(state)
        for body in twin.mechanism.bodies:
            ours = ld.tree.body_jacobian(twin.system, state, body)
            assert_equal(ours, wrench_first(twin.jacobian(body)) @ T, f"seed {seed}, Jacobian of {body}")


@some_trees
def test_mass_matrix_equals_pinocchios(seeds):
    for seed in seeds:
        twin, state = random_tree(seed)
        assert_equal(ld.tree.mass_matrix(twin.system, state), dynamics(twin, state)[0], f"seed {seed}, M")


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
        assert_equal(ld.tree.inverse_dynamics(twin.system, state, a), theirs, f"seed {seed}, tau")


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
        assert_equal(ld.tree.forward_dynamics(twin.system, state, tau), theirs, f"seed {seed}, a")
        solve = ld.tree.TreeSolver(twin.system)
        assert_equal(solve(state.t, state.q, state.v, tau), theirs, f"seed {seed}, a of the solver")


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
