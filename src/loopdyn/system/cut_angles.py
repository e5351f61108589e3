"""Full turns of the angles of cut joints.

A pose determines an angle only modulo one turn. If all rotations on the tree path between the two bodies of a cut joint
are about axes parallel to its own, its angle is a sum of tree angles up to rounding, and the turns follow from that
sum. Otherwise (Bennett's linkage) the turns depend on how the pose was reached: an angle on which an element depends is
then an additional coordinate after those of the tree, set to the measured angle with as many turns as bring it nearest
to its previous value.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from loopdyn.engine import records as rec
from loopdyn.joints.base import turn_about_z
from loopdyn.joints.dispatch import JOINT_TYPES

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

# Sine of the angle below which axes count as parallel. The sum differs from the angle by a periodic function of about
# this size, which does not grow with the turns; it need only be far below half a turn.
PARALLEL = 1e-3
FULL_TURN = 2.0 * np.pi


@dataclass(frozen=True)
class Tables:
    """Tables from which the path of an angle is found (:mod:`loopdyn.engine.records`)."""

    tree: Ints
    body: Array
    base_programs: Ints
    base_pose: Array
    q_reference: Array


@dataclass(frozen=True)
class AnglePath:
    """An angle within half a turn of ``offset + sum sign * q[coordinate]`` over the steps."""

    steps: tuple[tuple[int, int], ...]  # coordinate, sign
    offset: float

    def nearest(self, angle: float, q: Array) -> float:
        """Angle with its full turns at the coordinates q."""
        near = self.offset + sum(sign * float(q[k]) for k, sign in self.steps)
        return angle + FULL_TURN * float(np.floor((near - angle) / FULL_TURN + 0.5))


def cut_angle_path(tables: Tables, cut: Ints, cut_frames: Array, n: int, k: int) -> AnglePath | None:
    """Path of coordinate k of cut joint n; None if not all axes on it are parallel.

    The axes of all bodies on a base coincide at zero coordinates, so axes of frames are compared there. At the
    reference pose the angle is within half a turn of zero, whichever joint is cut.
    """
    kind, parent, child = (int(cut[n, c]) for c in (rec.C_KIND, rec.C_PARENT, rec.C_CHILD))
    if JOINT_TYPES[kind].turning != "about z" or not JOINT_TYPES[kind].is_periodic(k):
        return None
    F, M = (cut_frames[n, first : first + 9].reshape(3, 3) for first in (rec.F_AXES, rec.M_AXES))
    n_bases = len(tables.base_programs)
    up = [_to_root(tables.tree, n_bases, i) for i in (parent, child)]
    turns = [np.eye(3), np.eye(3)]  # from the axes of each side to common axes
    shared = set(up[0]) & set(up[1])
    if not shared:  # on two bases
        bases = [chain[-1] for chain in up]
        if (tables.base_programs[bases, 3:] >= 0).any():
            return None  # rotations of a moving base are not among the coordinates
        turns = [tables.base_pose[b, 3:].reshape(3, 3) for b in bases]
    axes = [A @ R.T for A, R in zip((F, M), turns, strict=True)]  # rows
    if axes[0][2] @ axes[1][2] < np.cos(PARALLEL):
        return None
    steps: list[tuple[int, int]] = []
    for chain, R, side in zip(up, turns, (-1, 1), strict=True):
        for i in (i for i in chain if i not in shared and i >= n_bases):
            joint = JOINT_TYPES[tables.tree[i, rec.KIND]]
            if joint.turning == "none":
                continue
            along = float(axes[0][2] @ R @ tables.body[i, rec.AXES + 6 : rec.AXES + 9])
            if joint.turning != "about z" or abs(along) < np.cos(PARALLEL):
                return None
            sign = side * (1 if along > 0.0 else -1) * (-1 if tables.tree[i, rec.REVERSED] else 1)
            steps.append((int(tables.tree[i, rec.Q0]) + joint.dimensions.index("angle"), sign))
    offset = turn_about_z(axes[0] @ axes[1].T)
    start = offset + sum(sign * tables.q_reference[k] for k, sign in steps)
    return AnglePath(tuple(steps), offset - FULL_TURN * float(np.round(start / FULL_TURN)))


def _to_root(tree: Ints, n_bases: int, i: int) -> list[int]:
    """Body and its ancestors, the base last."""
    chain = [i]
    while chain[-1] >= n_bases:
        chain.append(int(tree[chain[-1], rec.PARENT]))
    return chain
