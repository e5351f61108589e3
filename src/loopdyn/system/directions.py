"""Full turns of the directions between points, as those of cut joints (:mod:`loopdyn.system.cut_angles`).

A pose determines the direction from one point to another only modulo one turn. If one body carries both, or a pin about
the same axis holds one of them on such a body, and all rotations from the ground to this body are about parallel axes,
the direction is a sum of tree angles, and its turns follow from that sum.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from loopdyn.engine import records as rec
from loopdyn.joints.dispatch import JOINT_TYPES
from loopdyn.system.cut_angles import FULL_TURN, PARALLEL, AnglePath
from loopdyn.system.system import JointData, Pose, compose

Array = NDArray[np.float64]
Held = tuple[int, Array]  # row of the body that carries a point, and its place in the world at the reference pose

HALF_TURN = -np.pi + 1e-9  # below it rounding decides between the two signs: then half a turn is positive
PLANES = {"x": (1, 2), "y": (2, 0), "z": (0, 1)}  # components in the plane normal to an axis, right-handed


def direction_path(
    tree: NDArray[np.int64],
    body: Array,
    joints: Mapping[str, JointData],
    poses: Sequence[Pose],
    n_bases: int,
    q_reference: Array,
    ends: tuple[Held, Held],
    about: str,
) -> AnglePath | None:
    """Path of the direction from one point to another; None if its turns do not follow from the angles of the tree.

    `tree` and `body` are tables of :mod:`loopdyn.engine.records`, `poses` those of the bodies at the reference pose. At
    that pose the direction is within half a turn of zero.
    """
    i, j = PLANES[about]
    axis = np.eye(3)["xyz".index(about)]
    d = ends[1][1] - ends[0][1]
    reach = float(np.hypot(d[i], d[j]))
    shared = set.intersection(*(_bodies_that_hold(end, joints, poses, axis, PARALLEL * reach) for end in ends))
    for row in sorted(shared) if reach > 0.0 else ():
        steps = _steps(tree, body, n_bases, row, axis)
        if steps is not None:
            start = sum(sign * float(q_reference[k]) for k, sign in steps)
            angle = float(np.arctan2(d[j], d[i]))
            angle += FULL_TURN if angle < HALF_TURN else 0.0
            return AnglePath(steps, angle - start)
    return None


def angle_path(directions: Sequence[AnglePath | None], q_reference: Array) -> AnglePath | None:
    """Path of a direction, or of the rotation from the first of two to the second; None if one has none."""
    known = [path for path in directions if path is not None]
    if len(known) < len(directions):
        return None
    if len(known) == 1:
        return known[0]
    first, second = known
    steps = (*((k, -sign) for k, sign in first.steps), *second.steps)
    offset = second.offset - first.offset
    start = offset + sum(sign * float(q_reference[k]) for k, sign in steps)
    return AnglePath(steps, offset - FULL_TURN * float(np.round(start / FULL_TURN)))


def _bodies_that_hold(
    end: Held, joints: Mapping[str, JointData], poses: Sequence[Pose], axis: Array, near: float
) -> set[int]:
    """Rows of the body of a point and of all that pins, or screws, about `axis` through the point connect with it."""
    found, left = {end[0]}, [end[0]]
    while left:
        row = left.pop()
        for joint in (j for j in joints.values() if row in (j.parent, j.child) and j.spec.dimensions == ("angle",)):
            x, R = compose(poses[joint.parent], joint.F)
            away = end[1] - x
            across = float(np.linalg.norm(away - (away @ axis) * axis))
            other = joint.parent + joint.child - row
            if abs(R[:, 2] @ axis) > np.cos(PARALLEL) and across <= near and other not in found:
                found.add(other)
                left.append(other)
    return found


def _steps(
    tree: NDArray[np.int64], body: Array, n_bases: int, row: int, axis: Array
) -> tuple[tuple[int, int], ...] | None:
    """Coordinates and signs of the rotations from the ground to a body; None if one is not about the axis."""
    steps: list[tuple[int, int]] = []
    while row >= n_bases:
        joint, i = JOINT_TYPES[tree[row, rec.KIND]], row
        row = int(tree[i, rec.PARENT])
        if joint.turning == "none":
            continue
        # at zero coordinates the axes of bodies are those of the world
        along = float(axis @ body[i, rec.AXES + 6 : rec.AXES + 9])
        if joint.turning != "about z" or abs(along) < np.cos(PARALLEL):
            return None
        sign = (1 if along > 0.0 else -1) * (-1 if tree[i, rec.REVERSED] else 1)
        steps.append((int(tree[i, rec.Q0]) + joint.dimensions.index("angle"), sign))
    return tuple(steps) if row == 0 else None  # the rotations of a moving base are not among the coordinates
