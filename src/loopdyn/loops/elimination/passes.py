"""Numeric passes of the elimination: what is done at every state, without a branch on numbers and without allocation.

With the letters of :mod:`loopdyn.tree.aba`, K the 6-vector that a unit multiplier of an open row puts on a body
(torque about its reference point, force; world axes), each freedom eliminated from tips to roots gives

    z = S . K    K <- K - U z/d    matrix += z z^T/d    right -= z u

for all rows open at the body; `matrix` is that of the multipliers, ``matrix lam = right``. A severed body is
eliminated like one on a free joint: six unit motions, whatever its own joint is.
"""

import numpy as np

from loopdyn.engine.jit import inline, kernel, prefetch, whole
from loopdyn.engine.records import (
    ARM,
    AV,
    AW,
    C_CHILD,
    C_KIND,
    C_PARENT,
    C_ROW,
    C_ROWS,
    CV,
    CW,
    DINV,
    E_CUT,
    E_FREEDOM,
    F_POINT,
    IH,
    IJ,
    IM,
    KIND,
    L_COUNT,
    L_FIRST,
    L_ROW,
    LOAD,
    M_POINT,
    NV,
    PARENT,
    PV,
    PW,
    Q0,
    SV,
    SW,
    UV,
    UW,
    V0,
    R,
    W,
    X,
    open_model,
    open_work,
)
from loopdyn.engine.status import AGAIN, FINE, UNDEFINED
from loopdyn.forces import add_loads, push, twist
from loopdyn.joints.dispatch import is_pin, joint_plus, joint_wrench, turns_only
from loopdyn.loops.elimination.layout import (
    BLOCKS,
    DROPPED,
    FIRST_ROW,
    FREE_DINV,
    FREE_LOAD,
    FREE_UV,
    FREE_UW,
    MATRIX_ONLY,
    O_CUT,
    O_FIRST,
    O_NODE,
    O_SLOT,
    O_UP,
    OPEN_BEGIN,
    OPEN_END,
    R_CHILD,
    R_PARENT,
    R_RESPONSE,
    REFINEMENTS,
    RESIDUAL,
    RESPONSE,
    ROWS,
    SEVERED,
    SMALLEST_PIVOT,
    START,
    W_BODY,
    W_CUT,
    W_ORDER,
    W_SEVERED,
    WEAKEST_PIVOT,
    open_elimination,
    open_plan,
    plan_start,
    work_start,
)
from loopdyn.loops.elimination.ldl import NONE, add_products, each, factor, plus, solve, some
from loopdyn.spatial.plucker import (
    add,
    add3,
    centripetal,
    cross,
    dot,
    get3,
    get6,
    get9,
    inertia_times,
    neg,
    put3,
    rot,
    scale,
    sub,
    subtract_dyad,
)
from loopdyn.tree.aba import PIVOT, eliminate, eliminate_pin, hand_on
from loopdyn.tree.jacobian import constraint_rows, freedom_of_cut, linear_terms, pair, rows_of_pair
from loopdyn.tree.kinematics import accelerations, kinematics, place_bases, place_body, rigid_bodies

# Rows are chosen again where the smallest scaled pivot has fallen to this share of what it has been.
CHOOSE_AGAIN = 1e-2
# A scaled pivot below this is rounding: the pose is singular.
SINGULAR = 1e-14
# Refinement ends when the residual is this share of the terms it is the difference of, at a pose that is well
# conditioned; when it is rounding; or after so many times.
RESIDUAL_GOAL = 1e-12
RESIDUAL_ROUNDING = 4e-15
MOST_REFINEMENTS = 6


# -------------------------------------------------------------------------------------- rows and columns


@inline(always=True)
def bring_loads(model, work, joints, begin, end):
    """Loads on the freedoms of tree joints, as wrenches on their two bodies; `joints`: body and cut of each.

    Of those from `begin` to `end`.
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
    """Add to column s, of body i, a torque and a force at the world point x."""
    add3(K, s, 0, add(torque, cross(sub(x, get3(B, i, X)), force)))
    add3(K, s, 3, force)


@inline
def at_point(motion, i, w0, v0, x, B):
    """Linear part, at the world point x of body i, of a motion given at its reference point (velocity terms apart)."""
    return add(get3(motion, i, v0), cross(get3(motion, i, w0), sub(x, get3(B, i, X))))


@inline(always=True)
def rows_and_right_sides(model, work, plan, E, begin, end):
    """Rows of cut joints and pair constraints, the points at which they act, and their right sides.

    Of those from `begin` to `end` in their order; right sides are for bodies without acceleration.
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


@inline(always=True)
def fill_relations(model, work, plan, E):
    """Columns and right sides of relations of coordinates; one of the tree is met by the response of its freedom."""
    B = work.body
    E.response[:] = 0.0
    E.column[:, :] = 0.0
    for i in range(model.n_bases, model.tree.shape[0]):
        put3(B, i, AW, (0.0, 0.0, 0.0))
        put3(B, i, AV, (0.0, 0.0, 0.0))
    for n in range(model.linear.shape[0]):
        row = plan.index[model.linear[n, L_ROW]]
        _, _, gamma, _ = linear_terms(model, work, n)
        for e in range(model.linear[n, L_FIRST], model.linear[n, L_FIRST] + model.linear[n, L_COUNT]):
            cut, c = model.entry[e, E_CUT], work.factor[e]
            if row >= E.pivot.shape[0]:  # dropped
                continue
            if cut < 0:
                E.response[plan.relation_entry[e, R_RESPONSE]] += c
            else:
                _, _, _, torque, force, xM = freedom_of_cut(model, work, cut, model.entry[e, E_FREEDOM])
                torque, force = scale(c, torque), scale(c, force)
                if plan.relation_entry[e, R_CHILD] >= 0:
                    j = model.cut[cut, C_CHILD]
                    add_column(E.column, plan.relation_entry[e, R_CHILD], B, j, xM, torque, force)
                if plan.relation_entry[e, R_PARENT] >= 0:
                    i = model.cut[cut, C_PARENT]
                    add_column(E.column, plan.relation_entry[e, R_PARENT], B, i, xM, neg(torque), neg(force))
        E.right[row] = gamma
        E.step[row] = gamma


# ------------------------------------------------------------------------------------------- elimination


@inline
def eliminate_motion(F, k, size, pivot, push, uw, uv):
    """Eliminate a unit motion of a severed body with U = (uw, uv), the bias `push` along it; see `eliminate`."""
    sound = pivot.real > PIVOT * size.real
    d = 1.0 / pivot
    u = -push * d
    put3(F, k, FREE_UW, uw)
    put3(F, k, FREE_UV, uv)
    F[k, FREE_DINV] = d
    F[k, FREE_LOAD] = u
    return sound, d, u


@inline(always=True)
def eliminate_free_body(F, k, J, H, M, pw, pv):
    """Eliminate the six motions of a severed body into rows k ... of F; whether all have inertia.

    With S a unit vector U is a column of the inertia. Translations come first, whose pivots are masses.
    """
    turning, moving = J[0] + J[1] + J[2], M[0] + M[1] + M[2]
    uw, uv = (H[0], H[3], H[6]), (M[0], M[3], M[4])
    s1, d, u = eliminate_motion(F, k, moving, uv[0], pv[0], uw, uv)
    J, H, M = subtract_dyad(J, H, M, d, uw, uv)
    pw, pv = add(pw, scale(u, uw)), add(pv, scale(u, uv))
    uw, uv = (H[1], H[4], H[7]), (M[3], M[1], M[5])
    s2, d, u = eliminate_motion(F, k + 1, moving, uv[1], pv[1], uw, uv)
    J, H, M = subtract_dyad(J, H, M, d, uw, uv)
    pw, pv = add(pw, scale(u, uw)), add(pv, scale(u, uv))
    uw, uv = (H[2], H[5], H[8]), (M[4], M[5], M[2])
    s3, d, u = eliminate_motion(F, k + 2, moving, uv[2], pv[2], uw, uv)
    J, H, M = subtract_dyad(J, H, M, d, uw, uv)
    pw, zero = add(pw, scale(u, uw)), (0.0, 0.0, 0.0)  # what is left turns about the centre of mass
    uw = (J[0], J[3], J[4])
    s4, d, u = eliminate_motion(F, k + 3, turning, uw[0], pw[0], uw, zero)
    J, H, M = subtract_dyad(J, H, M, d, uw, zero)
    pw = add(pw, scale(u, uw))
    uw = (J[3], J[1], J[5])
    s5, d, u = eliminate_motion(F, k + 4, turning, uw[1], pw[1], uw, zero)
    J, H, M = subtract_dyad(J, H, M, d, uw, zero)
    pw = add(pw, scale(u, uw))
    uw = (J[4], J[5], J[2])
    s6, d, u = eliminate_motion(F, k + 5, turning, uw[2], pw[2], uw, zero)
    return s1 and s2 and s3 and s4 and s5 and s6


@inline(always=True)
def past_joint(D, first, count, turning, related, Z, at, kw, kv, right):
    """One column past the freedoms of a joint, last first: fills its responses, returns the column and right side."""
    for n in range(count):
        m = count - 1 - n
        k = first + m
        z = dot(kw, get3(D, k, SW))
        if not turning:
            z += dot(kv, get3(D, k, SV))
        if related:  # what relations put on a freedom itself is there already
            z += Z[at + m]
        Z[at + m] = z
        right -= z * D[k, LOAD]
        f = z * D[k, DINV]
        kw, kv = sub(kw, scale(f, get3(D, k, UW))), sub(kv, scale(f, get3(D, k, UV)))
    return kw, kv, right


@inline(always=True)
def past_free_body(F, k, Z, at, kw, kv):
    """The same past the six motions of a severed body, the first of them first: of U only what comes after counts."""
    x = kv[0]
    Z[at], right, f = x, -x * F[k, FREE_LOAD], x * F[k, FREE_DINV]
    y, z = kv[1] - f * F[k, FREE_UV + 1], kv[2] - f * F[k, FREE_UV + 2]
    kw = sub(kw, scale(f, get3(F, k, FREE_UW)))
    Z[at + 1], right, f = y, right - y * F[k + 1, FREE_LOAD], y * F[k + 1, FREE_DINV]
    z -= f * F[k + 1, FREE_UV + 2]
    kw = sub(kw, scale(f, get3(F, k + 1, FREE_UW)))
    Z[at + 2], right, f = z, right - z * F[k + 2, FREE_LOAD], z * F[k + 2, FREE_DINV]
    x, y, z = sub(kw, scale(f, get3(F, k + 2, FREE_UW)))
    Z[at + 3], right, f = x, right - x * F[k + 3, FREE_LOAD], x * F[k + 3, FREE_DINV]
    y -= f * F[k + 3, FREE_UW + 1]
    z -= f * F[k + 3, FREE_UW + 2]
    Z[at + 4], right, f = y, right - y * F[k + 4, FREE_LOAD], y * F[k + 4, FREE_DINV]
    z -= f * F[k + 4, FREE_UW + 2]
    Z[at + 5] = z
    return right - z * F[k + 5, FREE_LOAD]


@inline(always=True)
def pivots(D, k, column, n):
    """Inverse pivots, in a column of D, of the n freedoms in rows k ..., then zeros."""
    return (
        D[k, column],
        D[k + 1, column] if n > 1 else 0.0,
        D[k + 2, column] if n > 2 else 0.0,
        D[k + 3, column] if n > 3 else 0.0,
        D[k + 4, column] if n > 4 else 0.0,
        D[k + 5, column] if n > 5 else 0.0,
    )


@inline(always=True)
def eliminate_columns(model, work, plan, E, i, first, count, turning, severed):
    """Columns open at body i past its freedoms, in rows `first` ...: to the parent, matrix and right side.

    A column is what its cut joint puts on this very body and what bodies further out have handed on. `turning`: all
    freedoms are rotations about the reference point. Where `count`, `turning` and `severed` are literals the compiler
    unrolls it.
    """
    B, D, K, Z = work.body, work.dof, E.column, E.response
    p, related = model.tree[i, PARENT], model.linear.shape[0] > 0
    x0, r, cw, cv = get3(B, i, X), get3(B, i, ARM), get3(B, i, CW), get3(B, i, CV)
    begin, end, at = plan.at[i, OPEN_BEGIN], plan.at[i, OPEN_END], plan.at[i, RESPONSE]
    for x in range(begin, end):
        node, slot, up, cut = plan.open[x, O_NODE], plan.open[x, O_SLOT], plan.open[x, O_UP], plan.open[x, O_CUT]
        row, sign, arm = plan.node[node, FIRST_ROW], 0.0, (0.0, 0.0, 0.0)
        if cut >= 0:
            sign, arm = 1.0 if model.cut[cut, C_CHILD] == i else -1.0, sub(get3(E.point, cut, 0), x0)
        for s in range(plan.node[node, ROWS]):
            kw, kv = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
            if cut >= 0:
                k = plan.kept[row + s]
                kv = scale(sign, get3(work.rows, k, 3))
                kw = add(scale(sign, get3(work.rows, k, 0)), cross(arm, kv))
            if slot >= 0:
                kw, kv = add(kw, get3(K, slot + s, 0)), add(kv, get3(K, slot + s, 3))
            if severed:
                right = past_free_body(E.free, first, Z, at, kw, kv)
            else:
                right = -(dot(kw, cw) + dot(kv, cv))
                kw, kv, right = past_joint(D, first, count, turning, related, Z, at, kw, kv, right)
                kw = add(kw, cross(r, kv))  # about the parent's reference point
                if up < 0:  # the base's own acceleration is given
                    right -= dot(kw, get3(B, p, AW)) + dot(kv, get3(B, p, AV))
                elif plan.open[x, O_FIRST] == 1:
                    put3(K, up + s, 0, kw)
                    put3(K, up + s, 3, kv)
                else:
                    add3(K, up + s, 0, kw)
                    add3(K, up + s, 3, kv)
            E.step[row + s] += right
            at += count
    if count == 0:  # a weld
        return
    block, at = plan.at[i, BLOCKS], plan.at[i, RESPONSE]
    if severed:
        shares = pivots(E.free, first, FREE_DINV, count)
    else:
        shares = pivots(D, first, DINV, count)
    for x in range(begin, end):
        for s in range(plan.node[plan.open[x, O_NODE], ROWS]):
            w = each(some(Z, at, count), shares, count)
            other = plan.at[i, RESPONSE]
            for y in range(begin, x + 1):  # of its own block the upper half is superfluous
                columns = plan.node[plan.open[y, O_NODE], ROWS]
                add_products(E.matrix, plan.block[block + y - begin] + s * columns, w, Z, other, columns, count)
                other += columns * count
            at += count
        block += x - begin + 1


# Bodies ahead of the present one whose numbers are asked for.
AHEAD = 3


@inline(always=True)
def prefetch_responses(plan, E, i):
    """Ask for the responses of body i: the first 32, of which few bodies have more."""
    at = plan.at[i, RESPONSE]
    prefetch(E.response, at)
    prefetch(E.response, at + 8)
    prefetch(E.response, at + 16)
    prefetch(E.response, at + 24)


@inline(always=True)
def prefetch_motion(model, work, i):
    """Ask for what accelerations of body i are found with: its row from X to AV, and those of two freedoms."""
    prefetch(work.body, i, X)
    prefetch(work.body, i, X + 8)
    prefetch(work.body, i, X + 16)
    prefetch(work.body, i, AV + 2)
    first = model.tree[i, V0]
    prefetch(work.dof, first, 0)
    prefetch(work.dof, first, 8)
    prefetch(work.dof, first + 1, 2)
    prefetch(work.dof, first + 1, 10)


@inline(always=True)
def inward(model, work, plan, E, begin, end, status):
    """Articulated inertias and open columns from the tips to the roots of the forest: matrix and its right side.

    Of the bodies from `begin` to `end` in the order of elimination. Returns one whose pivot vanishes, or `status`.
    """
    B = work.body
    for x in range(begin, end):
        i, later = plan.order[x], plan.order[min(x + AHEAD, plan.order.shape[0] - 1)]
        prefetch_responses(plan, E, later)
        prefetch(plan.block, plan.at[later, BLOCKS])
        prefetch(plan.block, plan.at[later, BLOCKS] + 8)
        p, first, count = model.tree[i, PARENT], model.tree[i, V0], model.tree[i, NV]
        severed, turning = plan.at[i, SEVERED] >= 0, turns_only(model.tree[i, KIND])
        J, H, M = get6(B, i, IJ), get9(B, i, IH), get6(B, i, IM)
        pw, pv = get3(B, i, PW), get3(B, i, PV)
        size_w, size_v = J[0] + J[1] + J[2], M[0] + M[1] + M[2]
        if severed:
            if not eliminate_free_body(E.free, 6 * plan.at[i, SEVERED], J, H, M, pw, pv):
                status = i
        else:
            bw, bv = inertia_times(J, H, M, get3(B, i, CW), get3(B, i, CV))
            pw, pv = add(pw, bw), add(pv, bv)
            for k in range(first + count - 1, first - 1, -1):
                load, armature = work.load[k], model.armature[k]
                if turning:
                    sound, d, u, uw, uv = eliminate_pin(work.dof, k, size_w, load, armature, J, H, pw)
                else:
                    sound, d, u, uw, uv = eliminate(work.dof, k, size_w, size_v, load, armature, J, H, M, pw, pv)
                if not sound:
                    status = i
                if k > first or p >= model.n_bases:
                    J, H, M = subtract_dyad(J, H, M, d, uw, uv)
                    pw, pv = add(pw, scale(u, uw)), add(pv, scale(u, uv))
            if p >= model.n_bases:
                hand_on(B, i, p, J, H, M, pw, pv)
        if plan.at[i, OPEN_BEGIN] == plan.at[i, OPEN_END]:
            continue
        if severed:
            eliminate_columns(model, work, plan, E, i, 6 * plan.at[i, SEVERED], 6, False, True)
        elif turning and count == 1:
            eliminate_columns(model, work, plan, E, i, first, 1, True, False)
        elif turning and count == 2:
            eliminate_columns(model, work, plan, E, i, first, 2, True, False)
        else:
            eliminate_columns(model, work, plan, E, i, first, count, False, False)
    return status


@inline(always=True)
def factor_matrix(plan, E):
    """Factor of the matrix of multipliers; its smallest pivot as a share of what its row had, and the rows dropped."""
    for k in range(plan.node.shape[0]):
        row, m, place = plan.node[k, FIRST_ROW], plan.node[k, ROWS], plan.node[k, START]
        for a in range(m):
            E.diagonal[row + a] = E.matrix[place + a * (m + 1)]
    if E.diagnostics[MATRIX_ONLY].real > 0.0:
        return
    dropped = factor(plan, E.matrix, E.floor, E.pivot, E.inverse)
    least = 1.0
    for k in range(E.pivot.shape[0]):
        pivot, whole = E.pivot[k].real, E.diagonal[k].real
        if pivot < least * whole and E.inverse[k] != 0.0:
            least = pivot / whole
    E.diagnostics[SMALLEST_PIVOT] = least
    E.diagnostics[DROPPED] = dropped


# ---------------------------------------------------------------------------------------- accelerations


@inline(always=True)
def gather(plan, E, lam, i, count):
    """What the multipliers put on each of the `count` freedoms of body i, then zeros."""
    w, z = NONE, plan.at[i, RESPONSE]
    if count == 0:
        return w
    for x in range(plan.at[i, OPEN_BEGIN], plan.at[i, OPEN_END]):
        node = plan.open[x, O_NODE]
        row = plan.node[node, FIRST_ROW]
        for s in range(plan.node[node, ROWS]):
            w = plus(w, lam[row + s], E.response, z, count)
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

    Of bodies from `begin` to `end` of their sequence; those before them have theirs. Accelerations of freedoms go to
    `out`, those of bodies to columns `at` ... of `motion`, which has those of the bases. Not `whole`: what the
    multipliers alone add, without loads, velocity terms and the motion of bases.
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
    """What the missing in `E.step` takes to mend: motion of bodies into `E.motion`, of freedoms into `E.rates`."""
    model, data = open_model(ints, floats), open_work(ints, work)
    plan, E = open_plan(ints, plan_start(ints)), open_elimination(ints, plan_start(ints), work, work_start(ints))
    solve(plan, E.matrix, E.inverse, E.step)
    for i in range(model.n_bases):
        put3(E.motion, i, 0, (0.0, 0.0, 0.0))
        put3(E.motion, i, 3, (0.0, 0.0, 0.0))
    outward(model, data, plan, E, E.step, E.motion, 0, E.rates, False, 0, plan.sequence.shape[0])


@inline(always=True)
def of_severed_joints(model, work, plan, motion, out):
    """What a change of the motion of the bodies does to the freedoms of severed joints."""
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
        # what the freedoms of the joint make up for: motion of the body beyond what its parent and velocities ask for
        w = sub(sub(get3(B, i, AW), alpha), get3(B, i, CW))
        v = add(get3(B, p, AV), add(cross(alpha, get3(B, i, ARM)), get3(B, i, CV)))
        v = sub(get3(B, i, AV), v)
        F, M, par, d, _, _, _, _ = pair(model, work, cut)
        if model.cut[cut, C_PARENT] == i:  # the body carries F; seen from it M moves the other way
            w, v = neg(w), neg(add(v, cross(w, d)))
        for k in range(model.tree[i, NV]):
            torque, force = joint_wrench(model.cut[cut, C_KIND], k, F, M, par)
            work.a[model.tree[i, V0] + k] = dot(torque, w) + dot(force, v)


# What `note_row` has found before the first row.
NOTHING_FOUND = (0.0, 0.0, 0.0, 0.0)


@inline(always=True)
def note_row(E, index, missing, size, found):
    """Keep what is missing in a row, a difference of terms of this size; `found` with this row among the others.

    That is, the largest so far: what is missing and the size of the terms in rows that are kept, as squares in the
    metric of the matrix, where rows of any unit compare; what is missing in rows that were dropped; terms of all rows.
    """
    E.step[index] = missing
    kept, terms, dropped, all_terms = found
    if index >= E.pivot.shape[0]:
        dropped = max(dropped, abs(missing.real))
    elif E.inverse[index] != 0.0:
        whole = E.diagonal[index].real
        kept = max(kept, missing.real * missing.real / whole)
        terms = max(terms, size * size / whole)
    return kept, terms, dropped, max(all_terms, size)


@inline(always=True)
def row_accelerations(model, work, plan, E, begin, end, found):
    """Into `E.step` what is missing in the rows of the cuts from `begin` to `end` in their order; bases do not count.

    Returns what is `found` with these, see `note_row`.
    """
    B, zero = work.body, (0.0, 0.0, 0.0)
    for x in range(begin, end):
        n = plan.cut_order[x]
        i, j, xM = model.cut[n, C_PARENT], model.cut[n, C_CHILD], get3(E.point, n, 0)
        wM, vM, wF, vF = zero, zero, zero, zero
        if j >= model.n_bases:
            wM, vM = get3(B, j, AW), at_point(B, j, AW, AV, xM, B)
        if i >= model.n_bases:
            wF, vF = get3(B, i, AW), at_point(B, i, AW, AV, xM, B)
        for k in range(model.cut[n, C_ROW], model.cut[n, C_ROW] + model.cut[n, C_ROWS]):
            right, torque, force = E.right[plan.index[k]], get3(work.rows, k, 0), get3(work.rows, k, 3)
            at_child, at_parent = dot(torque, wM) + dot(force, vM), dot(torque, wF) + dot(force, vF)
            size = abs(right.real) + abs(at_child.real) + abs(at_parent.real)
            found = note_row(E, plan.index[k], right - at_child + at_parent, size, found)
    return found


@inline(always=True)
def largest_missing_share(model, work, plan, E, found):
    """The largest that is missing in a row, as a share of the terms it is the difference of.

    Of the rows that are kept, and of those that were dropped, which depend on others and must agree with them. Of the
    latter terms of all rows together are the measure, since those of one row may vanish. `found`: in rows of cuts.
    """
    for n in range(model.linear.shape[0]):
        missing, size = relation_acceleration(model, work, plan, E, n)
        found = note_row(E, plan.index[model.linear[n, L_ROW]], missing, size, found)
    kept, terms, dropped, all_terms = found
    worst = np.sqrt(kept / terms) if terms > 0.0 else 0.0
    return worst, dropped / all_terms if all_terms > 0.0 else 0.0


@inline(always=True)
def relation_acceleration(model, work, plan, E, n):
    """What is missing in relation n of coordinates, and the size of its terms."""
    B, row = work.body, plan.index[model.linear[n, L_ROW]]
    missing, size = E.right[row], abs(E.right[row].real)
    for e in range(model.linear[n, L_FIRST], model.linear[n, L_FIRST] + model.linear[n, L_COUNT]):
        cut, index, c = model.entry[e, E_CUT], model.entry[e, E_FREEDOM], work.factor[e]
        if cut < 0:
            part = c * work.a[index]
            missing -= part
            size += abs(part.real)
        else:
            F, M, par, _, _, _, _, xM = pair(model, work, cut)
            torque, force = joint_wrench(model.cut[cut, C_KIND], index, F, M, par)
            i, j = model.cut[cut, C_PARENT], model.cut[cut, C_CHILD]
            if j >= model.n_bases:
                part = c * (dot(torque, get3(B, j, AW)) + dot(force, at_point(B, j, AW, AV, xM, B)))
                missing -= part
                size += abs(part.real)
            if i >= model.n_bases:
                part = c * (dot(torque, get3(B, i, AW)) + dot(force, at_point(B, i, AW, AV, xM, B)))
                missing += part
                size += abs(part.real)
    return missing, size


@inline(always=True)
def residual_goal(E):
    """Where refinement ends: what is missing comes back enlarged by the inverse root of the smallest pivot."""
    return max(RESIDUAL_GOAL * np.sqrt(E.diagnostics[SMALLEST_PIVOT].real), RESIDUAL_ROUNDING)


@inline
def refine(ints, floats, work, worst, contradiction):
    """Correct the multipliers by what is missing in the rows, until nothing is or it no longer helps; returns both."""
    model, data = open_model(ints, floats), open_work(ints, work)
    plan, E = open_plan(ints, plan_start(ints)), open_elimination(ints, plan_start(ints), work, work_start(ints))
    B = data.body
    goal = residual_goal(E)
    count, before = 0, np.inf
    while not (worst <= goal or worst > 0.5 * before or count == MOST_REFINEMENTS):
        before = worst
        count += 1
        respond(ints, floats, work)
        for k in range(model.nv):
            data.a[k] += E.rates[k]
        for i in range(model.n_bases, model.tree.shape[0]):
            add3(B, i, AW, get3(E.motion, i, 0))
            add3(B, i, AV, get3(E.motion, i, 3))
        for k in range(E.lam.shape[0]):
            E.lam[k] += E.step[k]
        found = row_accelerations(model, data, plan, E, 0, model.cut.shape[0], NOTHING_FOUND)
        worst, contradiction = largest_missing_share(model, data, plan, E, found)
    severed_accelerations(model, data, plan, 0, plan.severed_joint.shape[0])
    E.diagnostics[REFINEMENTS] = count
    return worst, contradiction


@inline(always=True)
def weakness(E):
    """AGAIN where the smallest pivot has fallen far below what it has been for the same rows, or one was dropped."""
    least, weakest = E.diagnostics[SMALLEST_PIVOT].real, E.diagnostics[WEAKEST_PIVOT].real
    if weakest > 0.0 and (least < weakest or E.diagnostics[DROPPED].real > 0.0):
        return AGAIN
    if weakest > 0.0:  # rows chosen beside a singular pose are measured by better ones
        E.diagnostics[WEAKEST_PIVOT] = max(weakest, CHOOSE_AGAIN * least)
    return FINE


# ---------------------------------------------------------------------------------------------- kernels


@inline
def load_all(ints, floats, work):
    """Loads of forces, motors and springs."""
    add_loads(open_model(ints, floats), open_work(ints, work))


@inline
def load_severed(ints, floats, work, wave):
    """Loads on the freedoms of severed joints."""
    model, data, plan = open_model(ints, floats), open_work(ints, work), open_plan(ints, plan_start(ints))
    bring_loads(model, data, plan.severed_joint, plan.wave[wave, W_SEVERED], plan.wave[wave + 1, W_SEVERED])


@inline
def relate(ints, floats, work):
    """Columns of the relations of coordinates."""
    model, data = open_model(ints, floats), open_work(ints, work)
    plan, E = open_plan(ints, plan_start(ints)), open_elimination(ints, plan_start(ints), work, work_start(ints))
    fill_relations(model, data, plan, E)


@inline
def finish_severed(ints, floats, work, wave):
    """Accelerations of the coordinates of severed joints."""
    model, data, plan = open_model(ints, floats), open_work(ints, work), open_plan(ints, plan_start(ints))
    severed_accelerations(model, data, plan, plan.wave[wave, W_SEVERED], plan.wave[wave + 1, W_SEVERED])


@kernel(short_loops=True)
def accelerate(ints, floats, work):
    """Accelerations `work.a` and multipliers at the state in `work`; returns a status."""
    return accelerate_in(whole(ints), whole(floats), whole(work))


@inline(always=True)
def accelerate_in(ints, floats, work):
    """`accelerate` on windows.

    A large mechanism is gone through in waves (plan.WAVE). What few mechanisms need is in functions of its own that
    open the arrays again: here it would cost all of them.
    """
    model, data = open_model(ints, floats), open_work(ints, work)
    plan, E = open_plan(ints, plan_start(ints)), open_elimination(ints, plan_start(ints), work, work_start(ints))
    waves, severed, status = plan.wave.shape[0] - 1, plan.severed_joint.shape[0] > 0, FINE
    place_bases(model, data)
    E.matrix[:] = 0.0
    for k in range(model.nv):
        data.load[k] = data.tau[k]
    for w in range(waves):  # forces and relations are there in the first only: it is the last one then
        for x in range(plan.wave[w, W_BODY], plan.wave[w + 1, W_BODY]):
            place_body(model, data, plan.sequence[x], True)
        if model.force.shape[0] > 0:
            load_all(ints, floats, work)
        if severed:
            load_severed(ints, floats, work, w)
        rows_and_right_sides(model, data, plan, E, plan.wave[w, W_CUT], plan.wave[w + 1, W_CUT])
        if model.linear.shape[0] > 0:
            relate(ints, floats, work)
        status = inward(model, data, plan, E, plan.wave[w, W_ORDER], plan.wave[w + 1, W_ORDER], status)
    factor_matrix(plan, E)
    if E.diagnostics[MATRIX_ONLY].real > 0.0:
        return status
    for k in range(E.lam.shape[0]):
        E.lam[k] = E.step[k]
    solve(plan, E.matrix, E.inverse, E.lam)
    found = NOTHING_FOUND
    for w in range(waves):
        begin, end = plan.wave[w, W_BODY], plan.wave[w + 1, W_BODY]
        outward(model, data, plan, E, E.lam, data.body, AW, data.a, True, begin, end)
        found = row_accelerations(model, data, plan, E, plan.wave[w, W_CUT], plan.wave[w + 1, W_CUT], found)
        if severed:
            finish_severed(ints, floats, work, w)
    worst, contradiction = largest_missing_share(model, data, plan, E, found)
    E.diagnostics[REFINEMENTS] = 0.0
    if worst > residual_goal(E):
        worst, contradiction = refine(ints, floats, work, worst, contradiction)
    E.diagnostics[RESIDUAL] = max(worst, contradiction)
    for k in range(E.multipliers.shape[0]):
        E.multipliers[k] = 0.0
    for k in range(E.lam.shape[0]):
        E.multipliers[plan.kept[k]] = E.lam[k]
    total = 0.0
    for k in range(model.nv):
        total += abs(data.a[k])
    if status == FINE and not np.isfinite(total):
        status = UNDEFINED
    return weakness(E) if status == FINE else status


@inline(always=True)
def missing_positions(model, work, plan, E):
    """Into `E.step` the negative residual of every row at position level; `constraint_rows` was run."""
    for n in range(model.cut.shape[0]):
        for k in range(model.cut[n, C_ROW], model.cut[n, C_ROW] + model.cut[n, C_ROWS]):
            E.step[plan.index[k]] = -work.phi[k]
    for n in range(model.linear.shape[0]):
        E.step[plan.index[model.linear[n, L_ROW]]] = -linear_terms(model, work, n)[0]


@inline(always=True)
def missing_velocities(model, work, plan, E):
    """The same at velocity level."""
    for n in range(model.cut.shape[0]):
        _, _, _, _, wF, wM, v, _ = pair(model, work, n)
        w = sub(wM, wF)
        for k in range(model.cut[n, C_ROW], model.cut[n, C_ROW] + model.cut[n, C_ROWS]):
            rate = dot(get3(work.rows, k, 0), w) + dot(get3(work.rows, k, 3), v) + work.explicit[k]
            E.step[plan.index[k]] = -rate
    for n in range(model.linear.shape[0]):
        E.step[plan.index[model.linear[n, L_ROW]]] = -linear_terms(model, work, n)[1]


@inline(always=True)
def largest_missing(E):
    """Largest entry of `E.step` in the metric of the matrix: the motion it asks for."""
    worst = 0.0
    for k in range(E.pivot.shape[0]):
        if E.inverse[k] != 0.0:
            worst = max(worst, abs(E.step[k].real) / np.sqrt(E.diagonal[k].real))
    return worst


@kernel(short_loops=True)
def correct(ints, floats, work):
    """One linear correction of position and then of velocity, the smallest in the mass metric.

    Overwrites q and v in `work`; E.diagnostics[RESIDUAL] receives what was missing in position. Where the status is not
    FINE nothing is corrected: by rows that are nearly dependent it would lead far away.
    """
    model, data = open_model(ints, floats), open_work(ints, work)
    plan, E = open_plan(ints, plan_start(ints)), open_elimination(ints, plan_start(ints), work, work_start(ints))
    status = accelerate(ints, floats, work)  # for its factor; written out here it would be compiled twice
    if status != FINE:
        return status
    q = data.q
    for level in range(2):
        if level == 0:
            missing_positions(model, data, plan, E)
            E.diagnostics[RESIDUAL] = largest_missing(E)
        else:  # at the new place with the old factor: what that leaves is of second order in the two corrections
            kinematics(model, data)
            constraint_rows(model, data)
            missing_velocities(model, data, plan, E)
        respond(ints, floats, work)
        of_severed_joints(model, data, plan, E.motion, E.rates)
        if level == 0:
            for i in range(model.n_bases, model.tree.shape[0]):
                joint_plus(model.tree[i, KIND], model.tree[i, NV], q, model.tree[i, Q0], E.rates, model.tree[i, V0], q)
        else:
            for k in range(model.nv):
                data.v[k] += E.rates[k]
    return FINE


@kernel
def balance(ints, floats, work, joints, load):
    """What all joints together must put on each body: torque about its reference point and force into load (bodies, 6).

    The accelerations are those in `work.a`. `joints` has the body and the cut of each tree joint that is among the
    cuts; rows and factors of all constraints are left in `work`.
    """
    model, data = open_model(ints, floats), open_work(ints, work)
    B = data.body
    rigid_bodies(model, data)
    add_loads(model, data)
    for k in range(model.nv):  # a rotor is turned by the joint's two bodies
        data.load[k] -= model.armature[k] * data.a[k]
    bring_loads(model, data, joints, 0, joints.shape[0])
    constraint_rows(model, data)
    accelerations(model, data)
    for n in range(model.linear.shape[0]):
        linear_terms(model, data, n)
    for i in range(model.n_bases, model.tree.shape[0]):
        J, H, M = get6(B, i, IJ), get9(B, i, IH), get6(B, i, IM)
        torque, force = inertia_times(J, H, M, get3(B, i, AW), get3(B, i, AV))
        put3(load, i, 0, add(torque, get3(B, i, PW)))
        put3(load, i, 3, add(force, get3(B, i, PV)))
