"""Open rows of the elimination: loads of unit multipliers on the bodies, and right sides.

Symbols as in :mod:`loopdyn.loops.elimination.passes`.
"""

from loopdyn.engine.jit import inline
from loopdyn.engine.records import (
    AV,
    AW,
    C_CHILD,
    C_KIND,
    C_PARENT,
    C_ROW,
    C_ROWS,
    F_POINT,
    M_POINT,
    NV,
    V0,
    R,
    W,
    X,
)
from loopdyn.forces.loading import push, twist
from loopdyn.joints.dispatch import joint_wrench
from loopdyn.spatial.plucker import (
    add,
    add3,
    centripetal,
    cross,
    dot,
    get3,
    get9,
    neg,
    put3,
    rot,
    scale,
    sub,
)
from loopdyn.tree.jacobian import pair, rows_of_pair

# -------------------------------------------------------------------------------------- rows and columns


@inline(always=True)
def apply_joint_loads(model, work, joints, begin, end):
    """Apply the loads on the freedoms of the tree joints `begin` to `end` as wrenches to their two bodies.

    `joints` has the body and the cut of each joint.
    """
    B = work.body
    for n in range(begin, end):
        i, cut = joints[n, 0], joints[n, 1]
        first, behind = model.tree[i, V0], model.tree[i, V0] + model.tree[i, NV]
        loaded = False
        for k in range(first, behind):
            loaded = loaded or work.load[k] != 0.0
        if not loaded:
            continue
        F, M, par, _, _, _, _, xM = pair(model, work, cut)
        parent, child = model.cut[cut, C_PARENT], model.cut[cut, C_CHILD]
        for k in range(first, behind):
            torque, force = joint_wrench(model.cut[cut, C_KIND], k - first, F, M, par)
            torque, force = scale(work.load[k], torque), scale(work.load[k], force)
            twist(B, child, torque)
            push(B, child, xM, force)
            twist(B, parent, neg(torque))
            push(B, parent, xM, neg(force))


@inline
def add_column(K, s, B, i, x, torque, force):
    """Add a torque, and a force at the world point x, to column s of body i."""
    add3(K, s, 0, add(torque, cross(sub(x, get3(B, i, X)), force)))
    add3(K, s, 3, force)


@inline
def at_point(motion, i, w0, v0, x, B):
    """Linear part at the world point x of a motion of body i given at its reference point, without velocity terms."""
    return add(get3(motion, i, v0), cross(get3(motion, i, w0), sub(x, get3(B, i, X))))


@inline(always=True)
def rows_and_right_sides(model, work, plan, E, begin, end):
    """Rows, points of action and right sides of the cut joints and pair constraints `begin` to `end` of the order.

    Right sides are those for zero accelerations of the bodies.
    """
    B = work.body
    for x in range(begin, end):
        n = plan.cut_order[x]
        rows_of_pair(model, work, n)
        i, j = model.cut[n, C_PARENT], model.cut[n, C_CHILD]
        rF = rot(get9(B, i, R), get3(model.cut_frames, n, F_POINT))
        rM = rot(get9(B, j, R), get3(model.cut_frames, n, M_POINT))
        xM = add(get3(B, j, X), rM)
        put3(E.point, n, 0, xM)
        bias = sub(centripetal(get3(B, j, W), rM), centripetal(get3(B, i, W), rF))
        for k in range(model.cut[n, C_ROW], model.cut[n, C_ROW] + model.cut[n, C_ROWS]):
            torque, force = get3(work.rows, k, 0), get3(work.rows, k, 3)
            right = work.gamma[k] - dot(force, bias)
            if j < model.n_bases:
                right -= dot(torque, get3(B, j, AW)) + dot(force, at_point(B, j, AW, AV, xM, B))
            if i < model.n_bases:
                right += dot(torque, get3(B, i, AW)) + dot(force, at_point(B, i, AW, AV, xM, B))
            E.right[plan.index[k]] = right
            E.step[plan.index[k]] = right
