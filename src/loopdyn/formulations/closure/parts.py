"""Parts of a mechanism whose bodies stand still relative to each other: joints read, parts moved and joined."""

from __future__ import annotations

import numpy as np

from loopdyn.engine.jit import inline
from loopdyn.formulations.closure.layout import AXES, F_AXES, J_PARENT, M_POINT, POINT, S_END, S_JOINT, S_MOVED
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
from loopdyn.spatial.plucker import add, cross, dot, get3, get9, mul, put3, put9, rot, scale, sub, transpose
from loopdyn.spatial.rotations import atan2, axis_rotation, matrix_quaternion, quaternion_matrix

ZERO, IDENTITY = (0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)
X_AXIS, Y_AXIS, Z_AXIS = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)


# ------------------------------------------------------------------------------------------------ one joint


@inline
def joint_pose(kind, par, q, i):
    """Displacement and rotation of M against F, in F axes, at the coordinates q[i:]."""
    d, E = ZERO, IDENTITY
    if kind == REVOLUTE:
        E = axis_rotation(Z_AXIS, q[i])
    elif kind == PRISMATIC:
        d = (0.0, 0.0, q[i])
    elif kind == HELICAL:
        d, E = (0.0, 0.0, par[0] * q[i]), axis_rotation(Z_AXIS, q[i])
    elif kind == CYLINDRICAL:
        d, E = (0.0, 0.0, q[i + 1]), axis_rotation(Z_AXIS, q[i])
    elif kind == PLANAR:
        d, E = (q[i], q[i + 1], 0.0), axis_rotation(Z_AXIS, q[i + 2])
    elif kind == TRANSLATIONAL:
        d = (q[i], q[i + 1], q[i + 2])
    elif kind == UNIVERSAL:
        E = mul(axis_rotation(X_AXIS, q[i]), axis_rotation((par[0], par[1], 0.0), q[i + 1]))
    elif kind == SPHERICAL:
        E = quaternion_matrix((q[i], q[i + 1], q[i + 2], q[i + 3]))
    elif kind == FREE:
        d = (q[i], q[i + 1], q[i + 2])
        E = quaternion_matrix((q[i + 3], q[i + 4], q[i + 5], q[i + 6]))
    return d, E


@inline
def about_z(E):
    """Angle of a rotation about z."""
    return atan2(E[3] - E[1], E[0] + E[4])


@inline
def near(x, before):
    """The angle x with as many turns as bring it nearest to what it was."""
    return x + 2.0 * np.pi * np.floor((before.real - x.real) / (2.0 * np.pi) + 0.5)


@inline
def put_quaternion(q, i, E):
    """q[i:i+4] of the rotation E, of the two the one nearer to what it was."""
    w, x, y, z = matrix_quaternion(E)
    s = -1.0 if (w * q[i] + x * q[i + 1] + y * q[i + 2] + z * q[i + 3]).real < 0.0 else 1.0
    q[i], q[i + 1], q[i + 2], q[i + 3] = s * w, s * x, s * y, s * z


@inline
def read_joint(kind, par, d, E, q, i):
    """Coordinates q[i:] of the displacement d and the rotation E of M against F, in F axes."""
    if kind == REVOLUTE:
        q[i] = near(about_z(E), q[i])
    elif kind == PRISMATIC:
        q[i] = d[2]
    elif kind == HELICAL:
        q[i] = near(about_z(E), d[2] / par[0])
    elif kind == CYLINDRICAL:
        q[i], q[i + 1] = near(about_z(E), q[i]), d[2]
    elif kind == PLANAR:
        q[i], q[i + 1], q[i + 2] = d[0], d[1], near(about_z(E), q[i + 2])
    elif kind == TRANSLATIONAL:
        q[i], q[i + 1], q[i + 2] = d
    elif kind == UNIVERSAL:
        a2 = (par[0], par[1], 0.0)
        turned = rot(E, a2)
        first = atan2(turned[2], turned[1])
        R2 = mul(axis_rotation(X_AXIS, -first), E)
        sine = 0.5 * dot(a2, (R2[7] - R2[5], R2[2] - R2[6], R2[3] - R2[1]))
        second = atan2(sine, 0.5 * (R2[0] + R2[4] + R2[8] - 1.0))
        q[i], q[i + 1] = near(first, q[i]), near(second, q[i + 1])
    elif kind == SPHERICAL:
        put_quaternion(q, i, E)
    elif kind == FREE:
        q[i], q[i + 1], q[i + 2] = d
        put_quaternion(q, i + 3, E)


@inline
def frame_at(C, j, end):
    """Origin and axes (columns) of the frame of joint j on its parent (end 0) or child (end 1), in that body's part."""
    b, k = C.joint[j, J_PARENT + end], M_POINT * end
    R = get9(C.pose, b, AXES)
    return add(get3(C.pose, b, POINT), rot(R, get3(C.frame, j, k))), mul(R, get9(C.frame, j, k + F_AXES))


@inline
def column(R, k):
    """Column k of a matrix."""
    return (R[k], R[3 + k], R[6 + k])


@inline
def within(n, u):
    """The part of u perpendicular to the unit vector n."""
    return sub(u, scale(dot(n, u), n))


@inline
def move_part(C, start, stop, p, R):
    """Bodies of a list: x -> p + R x."""
    for n in range(start, stop):
        b = C.lists[n]
        put3(C.pose, b, POINT, add(p, rot(R, get3(C.pose, b, POINT))))
        put9(C.pose, b, AXES, mul(R, get9(C.pose, b, AXES)))


@inline
def turning(n, u, r):
    """Rotation about the unit vector n that brings u into the half-plane of r."""
    u, r = within(n, u), within(n, r)
    return axis_rotation(n, atan2(dot(n, cross(u, r)), dot(u, r)))


@inline
def turn_part(C, start, stop, centre, n, u, r):
    """Turn a part about the axis n through `centre` so that u points along r, as far as it can."""
    R = turning(n, u, r)
    move_part(C, start, stop, sub(centre, rot(R, centre)), R)


@inline
def attach(C, j, end, start, stop, d, E):
    """Move the part at the other end of joint j, a list of bodies, so that M is at d, E from F; `end` stands still."""
    p, R = frame_at(C, j, end)
    p2, R2 = frame_at(C, j, 1 - end)
    if end == 0:
        goal, axes = add(p, rot(R, d)), mul(R, E)
    else:
        axes = mul(R, transpose(E))
        goal = sub(p, rot(axes, d))
    turn = mul(axes, transpose(R2))
    move_part(C, start, stop, sub(goal, rot(turn, p2)), turn)


@inline
def ring(C, s):
    """Joints of a step, their ends on the part that comes first, and where its lists begin."""
    step = C.step[s]
    return (
        (step[S_JOINT], step[S_JOINT + 1], step[S_JOINT + 2]),
        (step[S_END], step[S_END + 1], step[S_END + 2]),
        (step[S_MOVED], step[S_MOVED + 1], step[S_MOVED + 2]),
    )


@inline
def hang_both(C, s):
    """The two parts that move, at the zero of their joints with the one that stands still."""
    (j1, _, j3), (e1, _, e3), (m1, m2, m3) = ring(C, s)
    attach(C, j1, e1, m1, m2, ZERO, IDENTITY)
    attach(C, j3, 1 - e3, m2, m3, ZERO, IDENTITY)
