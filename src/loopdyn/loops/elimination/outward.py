"""Outward pass of the elimination: from the multipliers to the motion of the bodies, from roots to tips.

Symbols as in :mod:`loopdyn.loops.elimination.passes`.
"""

from loopdyn.engine.jit import inline
from loopdyn.engine.records import (
    ARM,
    AV,
    AW,
    C_CHILD,
    C_KIND,
    C_PARENT,
    CV,
    CW,
    DINV,
    KIND,
    LOAD,
    NV,
    PARENT,
    SV,
    SW,
    UV,
    UW,
    V0,
    open_model,
    open_work,
)
from loopdyn.joints.dispatch import is_pin, joint_wrench
from loopdyn.loops.elimination.layout import (
    FIRST_ROW,
    FREE_DINV,
    FREE_LOAD,
    FREE_UV,
    FREE_UW,
    O_NODE,
    OPEN_BEGIN,
    OPEN_END,
    RESPONSE,
    ROWS,
    SEVERED,
    open_elimination,
    open_plan,
)
from loopdyn.loops.elimination.ldl import NONE, add_scaled, solve
from loopdyn.loops.elimination.prefetching import AHEAD, prefetch_motion, prefetch_responses
from loopdyn.loops.elimination.rows import at_point
from loopdyn.spatial.plucker import (
    add,
    cross,
    dot,
    get3,
    neg,
    put3,
    scale,
    sub,
)
from loopdyn.tree.jacobian import pair

# ---------------------------------------------------------------------------------------- accelerations


@inline(always=True)
def gather(plan, E, lam, i, count):
    """Loads of the multipliers on each of the `count` freedoms of body i, then zeros."""
    w, z = NONE, plan.at[i, RESPONSE]
    if count == 0:
        return w
    for x in range(plan.at[i, OPEN_BEGIN], plan.at[i, OPEN_END]):
        node = plan.open[x, O_NODE]
        row = plan.node[node, FIRST_ROW]
        for s in range(plan.node[node, ROWS]):
            w = add_scaled(w, lam[row + s], E.response, z, count)
            z += count
    return w


@inline(always=True)
def move_free_body(F, k, w, motion, i, at, whole):
    """Acceleration of a severed body i, whose six motions are in rows k ... of F and have loads w; see `outward`."""
    part = 1.0 if whole else 0.0
    zw = part * F[k + 5, FREE_LOAD] + F[k + 5, FREE_DINV] * w[5]
    yw = w[4] - F[k + 4, FREE_UW + 2] * zw
    yw = part * F[k + 4, FREE_LOAD] + F[k + 4, FREE_DINV] * yw
    xw = w[3] - F[k + 3, FREE_UW + 1] * yw - F[k + 3, FREE_UW + 2] * zw
    xw = part * F[k + 3, FREE_LOAD] + F[k + 3, FREE_DINV] * xw
    aw = (xw, yw, zw)
    z = w[2] - dot(get3(F, k + 2, FREE_UW), aw)
    z = part * F[k + 2, FREE_LOAD] + F[k + 2, FREE_DINV] * z
    y = w[1] - dot(get3(F, k + 1, FREE_UW), aw) - F[k + 1, FREE_UV + 2] * z
    y = part * F[k + 1, FREE_LOAD] + F[k + 1, FREE_DINV] * y
    x = w[0] - dot(get3(F, k, FREE_UW), aw) - F[k, FREE_UV + 1] * y - F[k, FREE_UV + 2] * z
    x = part * F[k, FREE_LOAD] + F[k, FREE_DINV] * x
    put3(motion, i, at, aw)
    put3(motion, i, at + 3, (x, y, z))


@inline(always=True)
def move_body(model, work, w, motion, at, out, whole, i, first, count, turning):
    """Acceleration of body i and of its freedoms, which have loads w; see `outward`."""
    B, D, p = work.body, work.dof, model.tree[i, PARENT]
    aw = get3(motion, p, at)
    av = add(get3(motion, p, at + 3), cross(aw, get3(B, i, ARM)))
    for m in range(count):
        k = first + m
        a = D[k, DINV] * (w[m] - dot(get3(D, k, UW), aw) - dot(get3(D, k, UV), av))
        if whole:
            a += D[k, LOAD]
        aw = add(aw, scale(a, get3(D, k, SW)))
        if not turning:
            av = add(av, scale(a, get3(D, k, SV)))
        out[k] = a
    if whole:
        aw, av = add(aw, get3(B, i, CW)), add(av, get3(B, i, CV))
    put3(motion, i, at, aw)
    put3(motion, i, at + 3, av)


@inline(always=True)
def outward(model, work, plan, E, lam, motion, at, out, whole, begin, end):
    """Accelerations of bodies and freedoms from the roots to the tips, for the multipliers `lam`.

    The pass covers the bodies `begin` to `end` of the sequence; earlier ones must be done. Accelerations of freedoms go
    to `out`, those of bodies to columns `at` ... of `motion`, which contains those of the bases. If not `whole`, only
    the contribution of the multipliers is computed, without loads, velocity terms and the motion of bases.
    """
    for x in range(begin, end):
        i, later = plan.sequence[x], plan.sequence[min(x + AHEAD, plan.sequence.shape[0] - 1)]
        prefetch_responses(plan, E, later)
        prefetch_motion(model, work, later)
        first, count = model.tree[i, V0], model.tree[i, NV]
        if plan.at[i, SEVERED] >= 0:
            w = gather(plan, E, lam, i, 6)
            move_free_body(E.free, 6 * plan.at[i, SEVERED], w, motion, i, at, whole)
        elif is_pin(model.tree[i, KIND]):
            w = gather(plan, E, lam, i, 1)
            move_body(model, work, w, motion, at, out, whole, i, first, 1, True)
        else:
            w = gather(plan, E, lam, i, count)
            move_body(model, work, w, motion, at, out, whole, i, first, count, False)


@inline
def respond(ints, floats, work):
    """Motion that removes the residuals in `E.step`: of bodies into `E.motion`, of freedoms into `E.rates`."""
    model, data = open_model(ints, floats), open_work(ints, work)
    plan, E = open_plan(ints), open_elimination(ints, work)
    solve(plan, E.matrix, E.inverse, E.step)
    for i in range(model.n_bases):
        put3(E.motion, i, 0, (0.0, 0.0, 0.0))
        put3(E.motion, i, 3, (0.0, 0.0, 0.0))
    outward(model, data, plan, E, E.step, E.motion, 0, E.rates, False, 0, plan.sequence.shape[0])


@inline(always=True)
def of_severed_joints(model, work, plan, motion, out):
    """Change of the freedoms of severed joints due to a change of the motion of the bodies."""
    B = work.body
    for n in range(plan.severed_joint.shape[0]):
        i, cut = plan.severed_joint[n, 0], plan.severed_joint[n, 1]
        F, M, par, _, _, _, _, xM = pair(model, work, cut)
        parent, child = model.cut[cut, C_PARENT], model.cut[cut, C_CHILD]
        w = sub(get3(motion, child, 0), get3(motion, parent, 0))
        v = sub(at_point(motion, child, 0, 3, xM, B), at_point(motion, parent, 0, 3, xM, B))
        for k in range(model.tree[i, NV]):
            torque, force = joint_wrench(model.cut[cut, C_KIND], k, F, M, par)
            out[model.tree[i, V0] + k] = dot(torque, w) + dot(force, v)


@inline(always=True)
def severed_accelerations(model, work, plan, begin, end):
    """Accelerations of the coordinates of severed joints from `begin` to `end`."""
    B = work.body
    for n in range(begin, end):
        i, cut = plan.severed_joint[n, 0], plan.severed_joint[n, 1]
        p = model.tree[i, PARENT]
        alpha = get3(B, p, AW)
        # acceleration that the freedoms of the joint contribute: that of the body less the parent's and velocity terms
        w = sub(sub(get3(B, i, AW), alpha), get3(B, i, CW))
        v = add(get3(B, p, AV), add(cross(alpha, get3(B, i, ARM)), get3(B, i, CV)))
        v = sub(get3(B, i, AV), v)
        F, M, par, d, _, _, _, _ = pair(model, work, cut)
        if model.cut[cut, C_PARENT] == i:  # the body carries F; seen from it M moves in the opposite sense
            w, v = neg(w), neg(add(v, cross(w, d)))
        for k in range(model.tree[i, NV]):
            torque, force = joint_wrench(model.cut[cut, C_KIND], k, F, M, par)
            work.a[model.tree[i, V0] + k] = dot(torque, w) + dot(force, v)
