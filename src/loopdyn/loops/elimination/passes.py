"""Numeric passes of the elimination at every state, without branches on numbers and without allocation.

With the symbols of :mod:`loopdyn.tree.aba` and K the wrench of a unit multiplier of an open row on a body (torque about
its reference point, force; world axes), each freedom eliminated from tips to roots gives

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
    CV,
    CW,
    DINV,
    IH,
    IJ,
    IM,
    KIND,
    LOAD,
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
    X,
    open_model,
    open_work,
)
from loopdyn.engine.status import AGAIN, FINE, UNDEFINED
from loopdyn.forces.dispatch import add_loads
from loopdyn.joints.dispatch import joint_plus, turns_only
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
    REFINEMENTS,
    RESIDUAL,
    RESPONSE,
    ROWS,
    SEVERED,
    SMALLEST_PIVOT,
    W_BODY,
    W_CUT,
    W_ORDER,
    W_SEVERED,
    WEAKEST_PIVOT,
    open_elimination,
    open_plan,
)
from loopdyn.loops.elimination.ldl import add_products, multiply_six, read_six, solve
from loopdyn.loops.elimination.matrix import factor_matrix, fill_relations
from loopdyn.loops.elimination.outward import of_severed_joints, outward, respond, severed_accelerations
from loopdyn.loops.elimination.prefetching import AHEAD, prefetch_responses
from loopdyn.loops.elimination.residuals import (
    NOTHING_FOUND,
    largest_relative_residual,
    largest_residual_motion,
    position_residuals,
    residual_goal,
    row_accelerations,
    velocity_residuals,
)
from loopdyn.loops.elimination.rows import apply_joint_loads, rows_and_right_sides
from loopdyn.spatial.plucker import (
    add,
    add3,
    cross,
    dot,
    get3,
    get6,
    get9,
    inertia_times,
    put3,
    scale,
    sub,
    subtract_dyad,
)
from loopdyn.tree.aba import PIVOT, eliminate, eliminate_pin, propagate_to_parent
from loopdyn.tree.jacobian import constraint_rows, linear_terms
from loopdyn.tree.kinematics import accelerations, kinematics, place_bases, place_body, rigid_bodies

# Rows are chosen again if the smallest scaled pivot has fallen to this fraction of its largest value so far.
CHOOSE_AGAIN = 1e-2
# A scaled pivot below this is rounding: the pose is singular.
SINGULAR = 1e-14
MOST_REFINEMENTS = 6


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
    """Eliminate the six motions of a severed body into rows k ... of F; returns whether all have inertia.

    Since S is a unit vector, U is a column of the inertia. Translations come first: their pivots are masses.
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
    pw, zero = add(pw, scale(u, uw)), (0.0, 0.0, 0.0)  # the remaining motions are rotations about the centre of mass
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
    """Propagate one column past the freedoms of a joint, last first; fills its responses; column and right side."""
    for n in range(count):
        m = count - 1 - n
        k = first + m
        z = dot(kw, get3(D, k, SW))
        if not turning:
            z += dot(kv, get3(D, k, SV))
        if related:  # the load of relations on the freedom itself is there already
            z += Z[at + m]
        Z[at + m] = z
        right -= z * D[k, LOAD]
        f = z * D[k, DINV]
        kw, kv = sub(kw, scale(f, get3(D, k, UW))), sub(kv, scale(f, get3(D, k, UV)))
    return kw, kv, right


@inline(always=True)
def past_free_body(F, k, Z, at, kw, kv):
    """Propagate one column past the six motions of a severed body, first to last: only the later entries of U count."""
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
    """Propagate the columns open at body i past its freedoms, in rows `first` ...: to parent, matrix and right side.

    A column is the sum of the load of its cut joint on this body and of the columns of bodies further out. `turning`:
    all freedoms are rotations about the reference point. The compiler unrolls the loops if `count`, `turning` and
    `severed` are literals.
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
            w = multiply_six(read_six(Z, at, count), shares, count)
            other = plan.at[i, RESPONSE]
            for y in range(begin, x + 1):  # the upper half of its own block is not needed
                columns = plan.node[plan.open[y, O_NODE], ROWS]
                add_products(E.matrix, plan.block[block + y - begin] + s * columns, w, Z, other, columns, count)
                other += columns * count
            at += count
        block += x - begin + 1


@inline(always=True)
def inward(model, work, plan, E, begin, end, status):
    """Articulated inertias and open columns from the tips to the roots of the forest: matrix and its right side.

    The pass covers the bodies `begin` to `end` of the order. Returns a body whose pivot vanishes, or `status`.
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
                propagate_to_parent(B, i, p, J, H, M, pw, pv)
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


@inline
def refine(ints, floats, work, worst, contradiction):
    """Refine the multipliers until the residuals of the rows are small or stop falling; returns both residuals."""
    model, data = open_model(ints, floats), open_work(ints, work)
    plan, E = open_plan(ints), open_elimination(ints, work)
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
        worst, contradiction = largest_relative_residual(model, data, plan, E, found)
    severed_accelerations(model, data, plan, 0, plan.severed_joint.shape[0])
    E.diagnostics[REFINEMENTS] = count
    return worst, contradiction


@inline(always=True)
def weakness(E):
    """AGAIN if the smallest pivot has fallen far below its largest value for the same rows, or a row was dropped."""
    least, weakest = E.diagnostics[SMALLEST_PIVOT].real, E.diagnostics[WEAKEST_PIVOT].real
    if weakest > 0.0 and (least < weakest or E.diagnostics[DROPPED].real > 0.0):
        return AGAIN
    if weakest > 0.0:  # rows chosen close to a singular pose are compared with their pivots further away
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
    model, data, plan = open_model(ints, floats), open_work(ints, work), open_plan(ints)
    apply_joint_loads(model, data, plan.severed_joint, plan.wave[wave, W_SEVERED], plan.wave[wave + 1, W_SEVERED])


@inline
def relate(ints, floats, work):
    """Columns of the relations of coordinates."""
    model, data = open_model(ints, floats), open_work(ints, work)
    plan, E = open_plan(ints), open_elimination(ints, work)
    fill_relations(model, data, plan, E)


@inline
def finish_severed(ints, floats, work, wave):
    """Accelerations of the coordinates of severed joints."""
    model, data, plan = open_model(ints, floats), open_work(ints, work), open_plan(ints)
    severed_accelerations(model, data, plan, plan.wave[wave, W_SEVERED], plan.wave[wave + 1, W_SEVERED])


@kernel(short_loops=True)
def accelerate(ints, floats, work):
    """Accelerations `work.a` and multipliers at the state in `work`; returns a status."""
    return accelerate_in(whole(ints), whole(floats), whole(work))


@inline(always=True)
def accelerate_in(ints, floats, work):
    """`accelerate` on windows.

    A large mechanism is processed in waves (plan.WAVE). What few mechanisms need is in functions of its own that open
    the arrays again: here it would cost all mechanisms time.
    """
    model, data = open_model(ints, floats), open_work(ints, work)
    plan, E = open_plan(ints), open_elimination(ints, work)
    waves, severed, status = plan.wave.shape[0] - 1, plan.severed_joint.shape[0] > 0, FINE
    place_bases(model, data)
    E.matrix[:] = 0.0
    for k in range(model.nv):
        data.load[k] = data.tau[k]
    for w in range(waves):  # with forces or relations there is one wave only
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
    worst, contradiction = largest_relative_residual(model, data, plan, E, found)
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


@kernel(short_loops=True)
def correct(ints, floats, work):
    """One linear correction of position and then of velocity, the smallest in the mass metric.

    Overwrites q and v in `work`; E.diagnostics[RESIDUAL] receives the position residual before. Nothing is corrected if
    the status is not FINE: nearly dependent rows would lead far away.
    """
    model, data = open_model(ints, floats), open_work(ints, work)
    plan, E = open_plan(ints), open_elimination(ints, work)
    status = accelerate(ints, floats, work)  # for its factor; written out here it would be compiled twice
    if status != FINE:
        return status
    q = data.q
    for level in range(2):
        if level == 0:
            position_residuals(model, data, plan, E)
            E.diagnostics[RESIDUAL] = largest_residual_motion(E)
        else:  # at the new pose with the old factor: the error is of second order in the two corrections
            kinematics(model, data)
            constraint_rows(model, data)
            velocity_residuals(model, data, plan, E)
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
    """Total load of all joints on each body: torque about its reference point and force, into load (bodies, 6).

    The accelerations are those in `work.a`. `joints` has the body and the cut of each tree joint that is among the
    cuts; rows and factors of all constraints are left in `work`.
    """
    model, data = open_model(ints, floats), open_work(ints, work)
    B = data.body
    rigid_bodies(model, data)
    add_loads(model, data)
    for k in range(model.nv):  # a rotor is turned by the joint's two bodies
        data.load[k] -= model.armature[k] * data.a[k]
    apply_joint_loads(model, data, joints, 0, joints.shape[0])
    constraint_rows(model, data)
    accelerations(model, data)
    for n in range(model.linear.shape[0]):
        linear_terms(model, data, n)
    for i in range(model.n_bases, model.tree.shape[0]):
        J, H, M = get6(B, i, IJ), get9(B, i, IH), get6(B, i, IM)
        torque, force = inertia_times(J, H, M, get3(B, i, AW), get3(B, i, AV))
        put3(load, i, 0, add(torque, get3(B, i, PW)))
        put3(load, i, 3, add(force, get3(B, i, PV)))
