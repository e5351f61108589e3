"""Coordinate, speed and load direction of one freedom of a joint, read from the frames F and M.

Used where a joint that carries a spring, a motor or friction is cut, so that its coordinate is not among
the tree's. Angles are found within (-pi, pi], and `counted_angle` adds their full turns; a helical joint counts its
turns by the slide.
"""

import numpy as np

from loopdyn.engine.jit import inline
from loopdyn.joints.base import CYLINDRICAL, HELICAL, PLANAR, PRISMATIC, REVOLUTE, TRANSLATIONAL, UNIVERSAL
from loopdyn.joints.universal import second_axis
from loopdyn.spatial.plucker import cross, dot, row, scale, sub
from loopdyn.spatial.rotations import atan2

ZERO = (0.0, 0.0, 0.0)


@inline
def angle_about_z(F, M):
    fx, fy = row(F, 0), row(F, 1)
    mx, my = row(M, 0), row(M, 1)
    return atan2(dot(fy, mx) - dot(fx, my), dot(fx, mx) + dot(fy, my))


@inline
def pick(A, k):
    """Row k of a frame for a k known only at run time."""
    if k == 0:
        v = row(A, 0)
    elif k == 1:
        v = row(A, 1)
    else:
        v = row(A, 2)
    return v


@inline
def nearest_turn(kind, k, x, near):
    """Coordinate k with as many whole turns as bring it within half a turn of `near`; others as they are.

    The angle of a helical joint already counts its turns.
    """
    turns = kind == REVOLUTE or kind == UNIVERSAL or (kind == CYLINDRICAL and k == 0) or (kind == PLANAR and k == 2)
    if turns:
        x = x + 2.0 * np.pi * np.floor((near.real - x.real) / (2.0 * np.pi) + 0.5)
    return x


@inline
def counted_angle(model, work, reader, kind, k, x):
    """Coordinate k of a cut joint, found as x from the pose, with the full turns that a force or an entry reads."""
    first, count = model.reader[reader, 0], model.reader[reader, 1]
    near = work.near[reader]
    if count > 0:
        near = 0.0 * near + model.reader_angle[reader]
        for n in range(first, first + count):
            near += model.path[n, 1] * work.q[model.path[n, 0]]
    return nearest_turn(kind, k, x, near)


@inline
def universal_angle(k, F, M, par):
    """Angle k of a universal joint."""
    a1, a2 = row(F, 0), second_axis(M, par)
    if k == 0:
        angle = atan2(dot(a2, row(F, 2)), dot(a2, row(F, 1)))
    else:
        # about a2: from x of M, turned back, to a1; both seen perpendicular to a2
        m1 = row(M, 0)
        p, c = sub(a1, scale(dot(a1, a2), a2)), sub(m1, scale(dot(m1, a2), a2))
        angle = atan2(dot(a2, cross(p, c)), dot(p, c))
    return angle


@inline
def universal_dual(k, F, M, par):
    """Torque that works on angle k of a universal joint alone (dual axis)."""
    a1, a2 = row(F, 0), second_axis(M, par)
    if k == 0:
        dual = sub(a1, scale(par[0], a2))
    else:
        dual = sub(a2, scale(par[0], a1))
    return scale(1.0 / (par[1] * par[1]), dual)


@inline
def joint_coordinate(kind, k, F, M, par, d):
    """Coordinate k. Spherical and free joints have no scalar coordinate; theirs is returned as zero and never used."""
    z = row(F, 2)
    if kind == REVOLUTE or (kind == CYLINDRICAL and k == 0) or (kind == PLANAR and k == 2):
        x = angle_about_z(F, M)
    elif kind == PRISMATIC or kind == CYLINDRICAL:
        x = dot(z, d)
    elif kind == HELICAL:
        angle = angle_about_z(F, M)
        turns = np.floor((dot(z, d).real / par[0] - angle.real) / (2.0 * np.pi) + 0.5)
        x = angle + 2.0 * np.pi * turns
    elif kind == PLANAR or kind == TRANSLATIONAL:
        x = dot(pick(F, k), d)
    elif kind == UNIVERSAL:
        x = universal_angle(k, F, M, par)
    else:
        x = 0.0 * d[0]
    return x


@inline
def joint_direction(kind, k, F, M, par):
    """Wrench (torque, force) on M at its origin whose power is the speed of freedom k."""
    z = row(F, 2)
    if kind == REVOLUTE or kind == HELICAL or (kind == CYLINDRICAL and k == 0) or (kind == PLANAR and k == 2):
        torque, force = z, ZERO
    elif kind == PRISMATIC or kind == CYLINDRICAL:
        torque, force = ZERO, z
    elif kind == PLANAR or kind == TRANSLATIONAL:
        torque, force = ZERO, pick(F, k)
    elif kind == UNIVERSAL:
        torque, force = universal_dual(k, F, M, par), ZERO
    elif k < 3:  # spherical, free
        torque, force = pick(M, k), ZERO
    else:
        torque, force = ZERO, pick(M, k - 3)
    return torque, force


@inline
def joint_freedom(kind, k, F, M, par, d):
    """Coordinate k, and the wrench (torque, force) on M at its origin whose power is that freedom's speed."""
    torque, force = joint_direction(kind, k, F, M, par)
    return joint_coordinate(kind, k, F, M, par, d), torque, force
