"""Moving and joining parts: sets of bodies whose relative poses are known."""

from __future__ import annotations

from loopdyn.engine.jit import inline
from loopdyn.formulations.closure.layout import AXES, F_AXES, J_PARENT, M_POINT, POINT, S_END, S_JOINT, S_MOVED
from loopdyn.spatial.plucker import add, cross, dot, get3, get9, mul, put3, put9, rot, scale, sub, transpose
from loopdyn.spatial.rotations import atan2, axis_rotation

ZERO, IDENTITY = (0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)
X_AXIS, Y_AXIS = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0)


# ------------------------------------------------------------------------------------------------ one joint


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
    """Component of u perpendicular to the unit vector n."""
    return sub(u, scale(dot(n, u), n))


@inline
def move_part(C, start, stop, p, R):
    """Move the bodies of a list: x -> p + R x."""
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
    """Move the part at the other end of joint j, a list of bodies, so that M is at d, E from F; `end` is fixed."""
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
def attach_both(C, s):
    """Attach the two moving parts to the fixed one at the zeros of their joints."""
    (j1, _, j3), (e1, _, e3), (m1, m2, m3) = ring(C, s)
    attach(C, j1, e1, m1, m2, ZERO, IDENTITY)
    attach(C, j3, 1 - e3, m2, m3, ZERO, IDENTITY)
