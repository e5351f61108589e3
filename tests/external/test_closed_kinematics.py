"""Jacobians of random closed mechanisms against Pinocchio: its body Jacobians and its constraint Jacobians."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import null_space, qr

import loopdyn as ld

pin = pytest.importorskip("pinocchio", reason="Pinocchio has no wheels for this platform")

from tests.external.pinocchio_models import Twin, joint_axes, joint_frames  # noqa: E402  after the check for Pinocchio
from tests.external.test_pinocchio import assert_same_motion, wrench_first  # noqa: E402

# Free components of the twist of M seen from F, in F axes, linear part first as in Pinocchio.
FREE = {
    "revolute": [5], "prismatic": [2], "cylindrical": [2, 5], "spherical": [3, 4, 5], "planar": [0, 1, 5],
    "translational": [0, 1, 2], "weld": [],
}  # fmt: skip
# Rounding 1e-16 times the condition of the closed mechanisms, up to 1e4 here, with two digits for other machines.
TOLERANCE = 1e-9
SEEDS = range(40)


def constraint_jacobian(twin, m, name):
    """Rows of a cut joint over Pinocchio's speeds."""
    joint = m.joints[name]
    frames, axes = joint_frames(m, joint), pin.SE3(joint_axes(joint), np.zeros(3))
    (one, pose1), (two, pose2) = twin.place[joint.parent], twin.place[joint.child]
    places = pose1 * frames[0] * axes, pose2 * frames[1] * axes
    model = pin.RigidConstraintModel(pin.ContactType.CONTACT_6D, twin.model, one, places[0], two, places[1])
    rows = pin.getConstraintJacobian(twin.model, twin.data, model, model.createData())
    return np.delete(rows, FREE[joint.type], axis=0)


def closed_mechanisms():
    """Random mechanisms with two loops, closed by cut joints whose free directions are fixed in F."""
    for seed in SEEDS:
        m = ld.library.random_mechanism(seed, 8, 2)
        system = m.compile()
        if all(m.joints[name].type in FREE for name in system.topology.cuts):
            yield seed, m, system


def test_closed_jacobians_equal_those_of_pinocchios_constraints():
    compared = 0
    for seed, m, system in closed_mechanisms():
        state = ld.assemble(system)
        twin = Twin(m, system)
        _, _, T, _ = twin.update(state)
        J = np.vstack([constraint_jacobian(twin, m, name) for name in system.topology.cuts]) @ T
        N = null_space(J, rcond=1e-9)
        if not N.shape[1]:
            continue
        chosen = qr(N.T, pivoting=True, mode="economic")[2][: N.shape[1]]
        motion = N @ np.linalg.inv(N[chosen])
        inputs = [system.speeds[k] for k in chosen]
        k = ld.kinematics(system, state)
        for body in m.bodies:
            theirs = wrench_first(twin.jacobian(body)) @ T @ motion
            ours = k.jacobian(body, wrt=inputs).values
            assert np.abs(ours - theirs).max() <= TOLERANCE * max(1.0, np.abs(theirs).max()), f"seed {seed}, {body}"
        compared += 1
    assert compared >= 5


def test_poses_and_velocities_of_closed_mechanisms_equal_pinocchios():
    for seed, m, system in closed_mechanisms():
        state = ld.assemble(system, v=np.random.default_rng(seed).normal(size=system.nv))
        twin, a = Twin(m, system), np.random.default_rng(seed).normal(size=system.nv)
        twin.update(state, a)
        k = ld.kinematics(system, state, a=a)
        assert_same_motion(twin, k._accelerated, f"seed {seed}")
