"""Bodies that can move in the tree without inertia at the reference pose."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from loopdyn.joints.dispatch import twists
from loopdyn.model.inertia import MassProperties
from loopdyn.system.graph import Forest
from loopdyn.system.system import JointData, Pose, compose

Array = NDArray[np.float64]

# A body counts as unsupported if the inertia along its joint is this small relative to the terms that it is the sum of.
SUPPORT = 1e-12


def unsupported_bodies(
    joints: Sequence[JointData],
    rotors: Sequence[Array],
    masses: Sequence[MassProperties],
    poses: Sequence[Pose],
) -> Callable[[Forest], list[int]]:
    """Function that lists bodies with too little inertia along their joint, once for each such freedom.

    Joints and the inertias of their rotors are in the order of the edges, masses and poses in that of the bodies.
    """
    inertias = [_about_world_origin(m, pose) for m, pose in zip(masses, poses, strict=True)]
    columns = [_columns(joint, poses) for joint in joints]

    def unsupported(forest: Forest) -> list[int]:
        total = [i.copy() for i in inertias]
        size = [np.abs(i) for i in inertias]
        bad = []
        for b in reversed(forest.order):
            k = forest.joint[b]
            S, rotor = (np.eye(6), np.zeros(6)) if k < 0 else (columns[k], rotors[k])
            inertia, without = articulated_inertia(S, total[b], size[b], rotor)
            bad += [b] * without
            total[forest.parent[b]] += inertia
            size[forest.parent[b]] += size[b]
        return bad

    return unsupported


def any_singular(masses: Sequence[MassProperties]) -> bool:
    """Whether some body has singular inertia: no mass, or no inertia about some axis."""
    if not masses:
        return False
    moments = np.linalg.eigvalsh(np.array([inertia for _, _, inertia in masses]))
    return any(m <= 0.0 for m, _, _ in masses) or bool(np.any(moments[:, 0] <= SUPPORT * moments[:, 2]))


def articulated_inertia(S: Array, inertia: Array, size: Array, armature: Array) -> tuple[Array, int]:
    """Articulated inertia at the parent of a joint with freedoms S and armature; number of freedoms without inertia.

    I - I S (S^T I S + G)^-1 S^T I, compared with the size of its terms.
    """
    if S.shape[1] == 0:
        return inertia, 0
    U = inertia @ S
    scale = np.abs(S).T @ size @ np.abs(S) + np.diag(armature)
    d = np.sqrt(np.where(np.diag(scale) > 0.0, np.diag(scale), 1.0))
    values, vectors = np.linalg.eigh((S.T @ U + np.diag(armature)) / np.outer(d, d))
    kept = values > SUPPORT
    V = vectors[:, kept] / d[:, None]
    return inertia - (U @ V / values[kept]) @ (U @ V).T, int(np.count_nonzero(~kept))


def _about_world_origin(mass: MassProperties, pose: Pose) -> Array:
    """6x6 inertia about the world origin, world axes at the reference pose, angular part first."""
    m, com, inertia = mass
    c = pose[0] + pose[1] @ com
    skew = np.array([[0, -c[2], c[1]], [c[2], 0, -c[0]], [-c[1], c[0], 0]])
    J = pose[1] @ inertia @ pose[1].T - m * skew @ skew
    return np.block([[J, m * skew], [-m * skew, m * np.eye(3)]])


def _columns(joint: JointData, poses: Sequence[Pose]) -> Array:
    """Motion subspace of a joint at its reference coordinates, about the world origin, world axes."""
    x, M = compose(poses[joint.child], joint.M)
    F = poses[joint.parent][1] @ joint.F[1]
    S = twists(joint.spec, F, M, joint.par)
    return np.hstack([S[:, :3], S[:, 3:] + np.cross(x, S[:, :3])]).T
