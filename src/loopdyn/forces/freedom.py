"""Coordinate and speed of the freedom of a joint, in the tree or cut, for forces on one freedom."""

from loopdyn.engine.jit import inline
from loopdyn.engine.records import (
    C_CHILD,
    C_KIND,
    C_PAR,
    C_PARENT,
    F_AXES,
    F_POINT,
    FORCE_COORDINATE,
    FORCE_CUT,
    FORCE_FREEDOM,
    M_AXES,
    M_POINT,
    W,
)
from loopdyn.forces.loading import body_frame, body_point
from loopdyn.joints.dispatch import counted_angle, joint_coordinate, joint_wrench
from loopdyn.spatial.plucker import cross, dot, get3, get9, sub


@inline
def tree_motion(work, speed, coordinate):
    """Coordinate (zero if there is no scalar one) and speed of a freedom of a tree joint."""
    dx = work.v[speed]
    x = 0.0 * dx
    if coordinate >= 0:
        x = work.q[coordinate]
    return x, dx


@inline
def tree_freedom(model, work, n):
    """Coordinate (zero if there is no scalar one) and speed of a tree joint that force n depends on."""
    return tree_motion(work, model.force[n, FORCE_FREEDOM], model.force[n, FORCE_COORDINATE])


@inline
def cut_freedom(model, work, n):
    """Coordinate and speed of a cut joint that force n depends on; torque, force at xM of a unit load on the child."""
    return cut_motion(model, work, model.force[n, FORCE_CUT], model.force[n, FORCE_FREEDOM], n)


@inline
def cut_motion(model, work, cut, index, reader):
    """Coordinate, as `reader` reads it, and speed of a freedom of a cut joint; torque, force at xM of its unit load."""
    B = work.body
    i, j = model.cut[cut, C_PARENT], model.cut[cut, C_CHILD]
    xF, vF = body_point(B, i, get3(model.cut_frames, cut, F_POINT))
    xM, vM = body_point(B, j, get3(model.cut_frames, cut, M_POINT))
    F = body_frame(B, i, get9(model.cut_frames, cut, F_AXES))
    M = body_frame(B, j, get9(model.cut_frames, cut, M_AXES))
    par = (model.cut_frames[cut, C_PAR], model.cut_frames[cut, C_PAR + 1])
    d = sub(xM, xF)
    kind = model.cut[cut, C_KIND]
    torque, force = joint_wrench(kind, index, F, M, par)
    x = counted_angle(model, work, reader, kind, index, joint_coordinate(kind, index, F, M, par, d))
    wF = get3(B, i, W)
    v = sub(sub(vM, vF), cross(wF, d))
    dx = dot(torque, sub(get3(B, j, W), wF)) + dot(force, v)
    return x, dx, torque, force, xM


@inline
def freedom_coordinate(model, work, n):
    """Coordinate that force n depends on, with its full turns."""
    if model.force[n, FORCE_CUT] >= 0:
        x = cut_freedom(model, work, n)[0]
    else:
        x = tree_freedom(model, work, n)[0]
    return x
