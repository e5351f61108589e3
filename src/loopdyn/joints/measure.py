"""Coordinate, speed and load direction of one freedom of a joint, read from the frames F and M.

Used where a joint that carries a spring, a motor or friction is cut, so that its coordinate is not among
the tree's. Angles are found within (-pi, pi]; a helical joint counts its turns by the slide.
"""

import numpy as np

from loopdyn._jit import inline
from loopdyn.joints.base import (
    CYLINDRICAL,
    FREE,
    HELICAL,
    PLANAR,
    PRISMATIC,
    REVOLUTE,
    SPHERICAL,
    TRANSLATIONAL,
    UNIVERSAL,
)
from loopdyn.rotations import atan2
from loopdyn.spatial import add, dot, row, scale, sub

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
def universal_freedom(k, F, M, par):
    """Angle k of a universal joint, and the torque that works on this angle alone (dual axis)."""
    a1 = row(F, 0)
    a2 = add(scale(par[0], row(M, 0)), scale(par[1], row(M, 1)))
    if k == 0:
        angle = atan2(dot(a2, row(F, 2)), dot(a2, row(F, 1)))
        dual = scale(1.0 / (par[1] * par[1]), sub(a1, scale(par[0], a2)))
    else:
        # about a2: from x of M, turned back, to a1; both seen perpendicular to a2
        m1 = row(M, 0)
        p, c = sub(a1, scale(dot(a1, a2), a2)), sub(m1, scale(dot(m1, a2), a2))
        s = (
            a2[0] * (p[1] * c[2] - p[2] * c[1])
            + a2[1] * (p[2] * c[0] - p[0] * c[2])
            + a2[2] * (p[0] * c[1] - p[1] * c[0])
        )
        angle = atan2(s, dot(p, c))
        dual = scale(1.0 / (par[1] * par[1]), sub(a2, scale(par[0], a1)))
    return angle, dual


@inline
def joint_freedom(kind, k, F, M, par, d):
    """Coordinate k, and the wrench (torque, force) on M at its origin whose power is that freedom's speed.

    Spherical and free joints have no scalar coordinate; theirs is returned as zero and never used.
    """
    z = row(F, 2)
    if kind == REVOLUTE:
        x, torque, force = angle_about_z(F, M), z, ZERO
    elif kind == PRISMATIC:
        x, torque, force = dot(z, d), ZERO, z
    elif kind == HELICAL:
        angle = angle_about_z(F, M)
        turns = np.floor((dot(z, d).real / par[0] - angle.real) / (2.0 * np.pi) + 0.5)
        x, torque, force = angle + 2.0 * np.pi * turns, z, ZERO
    elif kind == CYLINDRICAL:
        if k == 0:
            x, torque, force = angle_about_z(F, M), z, ZERO
        else:
            x, torque, force = dot(z, d), ZERO, z
    elif kind == PLANAR:
        if k == 2:
            x, torque, force = angle_about_z(F, M), z, ZERO
        else:
            x, torque, force = dot(pick(F, k), d), ZERO, pick(F, k)
    elif kind == TRANSLATIONAL:
        x, torque, force = dot(pick(F, k), d), ZERO, pick(F, k)
    elif kind == SPHERICAL:
        x, torque, force = 0.0 * d[0], pick(M, k), ZERO
    elif kind == FREE:
        if k < 3:
            x, torque, force = 0.0 * d[0], pick(M, k), ZERO
        else:
            x, torque, force = 0.0 * d[0], ZERO, pick(M, k - 3)
    else:  # universal
        angle, dual = universal_freedom(k, F, M, par)
        x, torque, force = angle, dual, ZERO
    return x, torque, force
