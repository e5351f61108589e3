"""Recursive coordinate reduction, equation by equation.

Anderson, Critchley 2003, "Improved 'Order-N' performance algorithm for the simulation of constrained multi-rigid-body
dynamic systems". :mod:`loopdyn.formulations.rcr.plan` decides the order of the operations; this module performs them at
every state.

====================  ======================  ==================================================================
paper                 code                    meaning
====================  ======================  ==================================================================
P_k^k                 ``SW``, ``SV``          motion subspace of a joint, at its own point, world axes
S^k                   ``ARM``                 shift between joint points: no more than an arm in world axes
E_i                   ``work.rows``           wrenches of the closing joint; the phantom body is not needed
Delta^-1 P^T S tau    ``X``                   inverse of the dependent columns of the rows of a cell
u_k by u_1 .. u_p     ``E``                   one row per speed: how it follows from the tentative speeds
Gamma^k P             ``W``                   partial velocities (58): columns of body k, one per tentative speed
Xi A_t + Theta        ``motion``              acceleration of body k for constant tentative speeds
I^, F^                ``IJ .. PV``            articulated inertia and (less) force of a body
I^{p;0}, M_p          ``H``, ``M``            inertia that couples a group to its base, and its own mass matrix
====================  ======================  ==================================================================

Deviations:

* No phantom bodies: rows are the wrenches that the closing joint transmits, so its own freedoms are eliminated from the
  start. Loops need not end on their base, nor be cut at their end.
* X is the inverse of a small matrix instead of the recursion (44)-(49) for the same; redundant rows are left out.
* Gamma is multiplied by the subspace of the independent joints at once, (58): columns instead of 6 x 6 matrices, and
  (61)-(66) become one small matrix. (51), (55) contain Gamma^(k-1), not Gamma^k.
* One vector replaces Xi and Theta, (74)-(80).
* After (66) the paper adds the inertia of a loop to its base unchanged, which loses the load of the closing joint on a
  moving base. Here the base receives H00 - H M^-1 H^T.
* Tentative speeds that are still bound by rows put aside are solved for at the end of a group.
"""

from __future__ import annotations

import numpy as np

from loopdyn.engine.dense import cholesky, solve_cholesky
from loopdyn.engine.jit import inline, kernel, whole, window
from loopdyn.engine.records import (
    ARM,
    AV,
    AW,
    CV,
    CW,
    DINV,
    H_BASES,
    H_SOLVER,
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
    open_head,
    open_model,
    open_tree,
    open_work,
)
from loopdyn.engine.status import FINE, NO_INERTIA, NOT_A_NUMBER, SINGULAR_SET
from loopdyn.forces.dispatch import add_loads
from loopdyn.formulations.rcr.dependent_speeds import (
    acceleration_right_sides,
    columns,
    follow,
    follow_steadily,
    narrow,
    position_right_sides,
    relations,
    speed_right_sides,
    take_rows,
)
from loopdyn.formulations.rcr.layout import (
    ACCELERATIONS,
    AFFINE,
    ASKED,
    D_ENTRY,
    D_LOCAL,
    D_SPEED,
    FLIPPED,
    FORM,
    FULL,
    G_BASE,
    G_CLOSING,
    G_CLOSING_END,
    G_FREEDOMS,
    G_M,
    G_STEPS,
    G_STEPS_END,
    G_TENTATIVE,
    G_WIDTH,
    G_X,
    JUMP,
    K_DEPENDENT,
    K_DIRECT,
    K_DIRECT_END,
    K_PARTS,
    K_PARTS_END,
    K_ROWS,
    K_ROWS_END,
    K_X,
    N_GROUPS,
    PIVOT,
    POSITIONS,
    SPEEDS,
    STEADY,
    X_BODY,
    X_LOCAL,
    X_SIGN,
    Y_CHILD,
    Y_PATH,
    Y_PATH_END,
    open_cells,
    open_numbers,
)
from loopdyn.joints.dispatch import is_pin, joint_plus
from loopdyn.spatial.plucker import (
    add,
    add3,
    add6,
    add9,
    cross,
    dot,
    get3,
    get6,
    get9,
    inertia_times,
    put3,
    put6,
    put9,
    scale,
    shift_inertia,
    sub,
    subtract_dyad,
)
from loopdyn.tree.aba import eliminate, eliminate_pin, propagate_to_parent
from loopdyn.tree.jacobian import constraint_rows
from loopdyn.tree.kinematics import place_bodies

# Largest error of dependent speeds before they are corrected, as a fraction of the fastest speed, and speed, in natural
# units per s, below which the mechanism is at rest. A larger error is not one of the step but a switch to another
# branch.
SMOOTH, AT_REST = 0.3, 1e-9


# -------------------------------------------------------------------------------------------------------- kinetics


@inline(always=True)
def reduce_group(model, work, P, G, g):
    """Mass matrix and right side of a group, and its contribution to its base; False without inertia.

    [Anderson2003 eqs. (56)-(66)], with the load of the closing joint on the base: H00 - H M^-1 H^T.
    """
    B = work.body
    base, d = P.group[g, G_BASE], P.group[g, G_FREEDOMS]
    o, at = P.group[g, G_M], P.group[g, G_TENTATIVE]
    for m in range(d):
        G.F[at + m] = 0.0
        for n in range(m + 1):
            G.M[o + m * d + n] = 0.0
        if base >= 0:
            put3(G.H, at + m, 0, (0.0, 0.0, 0.0))
            put3(G.H, at + m, 3, (0.0, 0.0, 0.0))
    for s in range(P.group[g, G_STEPS], P.group[g, G_STEPS_END]):
        b = P.step[s]
        if b < 0:
            continue
        J, H, M = get6(B, b, IJ), get9(B, b, IH), get6(B, b, IM)
        fw, fv = inertia_times(J, H, M, get3(G.motion, b, 0), get3(G.motion, b, 3))
        fw, fv = add(fw, get3(B, b, PW)), add(fv, get3(B, b, PV))
        slot = P.slot[b]
        for m in range(d):
            w, v = get3(G.W, slot + m, 0), get3(G.W, slot + m, 3)
            G.F[at + m] -= dot(w, fw) + dot(v, fv)
            uw, uv = inertia_times(J, H, M, w, v)
            for n in range(m + 1):
                G.M[o + m * d + n] += dot(uw, get3(G.W, slot + n, 0)) + dot(uv, get3(G.W, slot + n, 3))
            if base >= 0:
                r = sub(get3(B, b, X), get3(B, base, X))
                add3(G.H, at + m, 0, add(uw, cross(r, uv)))
                add3(G.H, at + m, 3, uv)
        for k in range(model.tree[b, V0], model.tree[b, V0] + model.tree[b, NV]):
            push = work.load[k] - model.armature[k] * G.x[k]  # less the load of the rotor at the acceleration `x`
            if push != 0.0:
                for m in range(d):
                    G.F[at + m] += G.E[P.e[k] + m] * push
            if model.armature[k] != 0.0:
                for m in range(d):
                    turned = model.armature[k] * G.E[P.e[k] + m]
                    for n in range(m + 1):
                        G.M[o + m * d + n] += turned * G.E[P.e[k] + n]
        if base >= 0:
            r = sub(get3(B, b, X), get3(B, base, X))
            J, H, M = shift_inertia(J, H, M, r)
            add6(B, base, IJ, J)
            add9(B, base, IH, H)
            add6(B, base, IM, M)
            add3(B, base, PW, add(fw, cross(r, fv)))
            add3(B, base, PV, fv)
    inertia = window(G.M, o, d, d)
    sound = cholesky(inertia)
    if base >= 0:
        forward_coupling(P, G, work, g)
    solve_cholesky(inertia, window(G.F, at, d))
    return sound


@inline(always=True)
def forward_coupling(P, G, work, g):
    """H <- L^-1 H^T row by row; the base loses H M^-1 H^T and gains H M^-1 F."""
    B = work.body
    base, d, o, at = P.group[g, G_BASE], P.group[g, G_FREEDOMS], P.group[g, G_M], P.group[g, G_TENTATIVE]
    J, H, M = get6(B, base, IJ), get9(B, base, IH), get6(B, base, IM)
    for m in range(d):
        w, v, y = get3(G.H, at + m, 0), get3(G.H, at + m, 3), G.F[at + m]
        for n in range(m):
            x = G.M[o + m * d + n]
            w, v = sub(w, scale(x, get3(G.H, at + n, 0))), sub(v, scale(x, get3(G.H, at + n, 3)))
            y -= x * G.side[n]
        x = 1.0 / G.M[o + m * d + m]
        w, v, y = scale(x, w), scale(x, v), x * y
        put3(G.H, at + m, 0, w)
        put3(G.H, at + m, 3, v)
        G.side[m] = y
        J, H, M = subtract_dyad(J, H, M, 1.0, w, v)
        add3(B, base, PW, scale(y, w))
        add3(B, base, PV, scale(y, v))
    put6(B, base, IJ, J)
    put9(B, base, IH, H)
    put6(B, base, IM, M)


@inline(always=True)
def expand_group(model, work, P, G, g):
    """Accelerations of all speeds of a group, from that of its base [Anderson2003 eqs. (70), (55) with Gamma^(k-1)]."""
    B = work.body
    base, d, o, at = P.group[g, G_BASE], P.group[g, G_FREEDOMS], P.group[g, G_M], P.group[g, G_TENTATIVE]
    if base >= 0:  # F <- F - L^-T (L^-1 H^T A_0)
        aw, av = get3(B, base, AW), get3(B, base, AV)
        for i in range(d - 1, -1, -1):
            x = dot(get3(G.H, at + i, 0), aw) + dot(get3(G.H, at + i, 3), av)
            for j in range(i + 1, d):
                x -= G.M[o + j * d + i] * G.side[j]
            G.side[i] = x / G.M[o + i * d + i]
            G.F[at + i] -= G.side[i]
    for s in range(P.group[g, G_STEPS], P.group[g, G_STEPS_END]):
        b = P.step[s]
        if b >= 0:
            for k in range(model.tree[b, V0], model.tree[b, V0] + model.tree[b, NV]):
                a = G.x[k]
                for m in range(d):
                    a += G.E[P.e[k] + m] * G.F[at + m]
                work.a[k] = a


@kernel(short_loops=True)
def inward(ints, floats, work):
    """From tips to bases: bodies outside of loops one by one [Anderson2003 eqs. (14)-(19)], groups as a whole."""
    model, data = open_model(ints, floats), open_work(ints, work)
    P, G = open_cells(ints), open_numbers(ints, floats, work)
    B = data.body
    status = FINE
    for i in range(model.tree.shape[0] - 1, model.n_bases - 1, -1):
        if P.slot[i] >= 0:
            if P.start[i] >= 0 and not reduce_group(model, data, P, G, P.start[i]):
                status = NO_INERTIA
            continue
        p, first = model.tree[i, PARENT], model.tree[i, V0]
        J, H, M = get6(B, i, IJ), get9(B, i, IH), get6(B, i, IM)
        bw, bv = inertia_times(J, H, M, get3(B, i, CW), get3(B, i, CV))
        pw, pv = add(get3(B, i, PW), bw), add(get3(B, i, PV), bv)
        size_w, size_v = J[0] + J[1] + J[2], M[0] + M[1] + M[2]
        for k in range(first + model.tree[i, NV] - 1, first - 1, -1):
            load, armature = data.load[k], model.armature[k]
            if is_pin(model.tree[i, KIND]):
                sound, d, u, uw, uv = eliminate_pin(data.dof, k, size_w, load, armature, J, H, pw)
            else:
                sound, d, u, uw, uv = eliminate(data.dof, k, size_w, size_v, load, armature, J, H, M, pw, pv)
            if not sound:
                status = i
            J, H, M = subtract_dyad(J, H, M, d, uw, uv)
            pw, pv = add(pw, scale(u, uw)), add(pv, scale(u, uv))
        if p >= model.n_bases:
            propagate_to_parent(B, i, p, J, H, M, pw, pv)
    return status


@kernel(short_loops=True)
def outward(ints, floats, work):
    """Accelerations from the bases to the tips [Anderson2003 eqs. (67)-(71)]; of bodies only where they are needed."""
    model, data = open_model(ints, floats), open_work(ints, work)
    P, G = open_cells(ints), open_numbers(ints, floats, work)
    B, D = data.body, data.dof
    for i in range(model.n_bases, model.tree.shape[0]):
        if P.start[i] >= 0:
            expand_group(model, data, P, G, P.start[i])
        inside = P.slot[i] >= 0
        if inside and P.carries[i] == 0:
            continue
        p, iv = model.tree[i, PARENT], model.tree[i, V0]
        aw = get3(B, p, AW)
        av = add(get3(B, p, AV), cross(aw, get3(B, i, ARM)))
        for k in range(iv, iv + model.tree[i, NV]):
            if inside:
                a = data.a[k]
            else:
                a = D[k, LOAD] - D[k, DINV] * (dot(get3(D, k, UW), aw) + dot(get3(D, k, UV), av))
                data.a[k] = a
            aw, av = add(aw, scale(a, get3(D, k, SW))), add(av, scale(a, get3(D, k, SV)))
        put3(B, i, AW, add(aw, get3(B, i, CW)))
        put3(B, i, AV, add(av, get3(B, i, CV)))


# --------------------------------------------------------------------------------------------------------- kernels


@kernel(short_loops=True)
def weigh(ints, floats, work, stage):
    """Bodies and rows at the state in `work`: motion and velocity terms, inertia and loads where the stage needs them.

    This one, `columns`, `right_sides`, `follow`, `inward` and `outward` are kernels, though only other kernels call
    them, so that they stay functions: inlined, their variables would be set to zero at every call, which takes half of
    the time of a four-bar.
    """
    model, data = open_model(ints, floats), open_work(ints, work)
    place_bodies(model, data, stage != SPEEDS)
    if stage == ACCELERATIONS:
        if model.force.shape[0] > 0:
            add_loads(model, data)
        else:  # saves a small mechanism the call
            for k in range(model.nv):
                data.load[k] = data.tau[k]
    constraint_rows(model, data)
    if model.linear.shape[0] > 0:
        relations(ints, floats, work)


@kernel(short_loops=True)
def right_sides(ints, floats, work, stage):
    """Right sides of the rows for a stage."""
    model, data = open_model(ints, floats), open_work(ints, work)
    P, G = open_cells(ints), open_numbers(ints, floats, work)
    if stage == SPEEDS:
        speed_right_sides(model, data, G)
    elif stage == ACCELERATIONS:
        acceleration_right_sides(model, data, G)
    else:
        position_right_sides(model, data, P, G)


@inline(always=True)
def take_speeds(work, P, G):
    """Add the correction to the speeds of all groups; notes its size."""
    jump, fastest = 0.0, AT_REST
    for k in range(work.v.shape[0]):
        if P.e[k] >= 0:
            work.v[k] += G.x[k]
            x = G.x[k].real / G.unit[k]
            jump = max(jump, x * x)
        x = work.v[k].real / G.unit[k]
        fastest = max(fastest, x * x)
    G.notes[JUMP] = np.sqrt(jump / fastest)


@kernel(short_loops=True)
def accelerate(ints, floats, work):
    """Accelerations `work.a` at the state in `work`, whose dependent speeds are first computed as the form requires.

    For `correct` it computes a correction of the positions in `work.a` instead. Stages are iterations of a loop, so
    that each pass is compiled once.
    """
    return accelerate_in(whole(ints), whole(floats), whole(work))


@inline(always=True)
def accelerate_in(ints, floats, work):
    """`accelerate` on windows."""
    model, data = open_model(ints, floats), open_work(ints, work)
    P, G, o = open_cells(ints), open_numbers(ints, floats, work), ints[H_SOLVER]
    follows = ints[o + FORM] != FULL and ints[o + N_GROUPS] > 0
    first, last = SPEEDS if follows else ACCELERATIONS, ACCELERATIONS
    if G.notes[ASKED].real == POSITIONS:
        first, last = POSITIONS, POSITIONS
    for stage in range(first, last + 1):
        weigh(ints, floats, work, stage)
        if stage == first or ints[o + AFFINE] == 0:
            columns(ints, floats, work)
        if stage == SPEEDS and ints[o + STEADY] == 1:
            follow_steadily(data, P, G)
        else:
            right_sides(ints, floats, work, stage)
            follow(ints, floats, work, stage != SPEEDS)
        if stage == SPEEDS:
            take_speeds(data, P, G)
    for g in range(P.group.shape[0]):
        if P.group[g, G_FREEDOMS] < P.group[g, G_WIDTH]:
            narrow(ints, floats, work, g)
    status = inward(ints, floats, work)
    outward(ints, floats, work)
    total = 0.0
    for k in range(model.nv):
        total += data.a[k].real
    if not np.isfinite(total):
        return NOT_A_NUMBER if G.notes[PIVOT].real > 0.0 else SINGULAR_SET
    if follows and (G.notes[FLIPPED].real > 0.0 or G.notes[JUMP].real > SMOOTH):
        return SINGULAR_SET  # the set became singular during the step
    return status


@kernel(short_loops=True)
def correct(ints, floats, work):
    """One linear correction of the positions in `work`, smallest in the mass metric; speeds follow later."""
    data, tree = open_head(ints, work), open_tree(ints)
    G = open_numbers(ints, floats, work)
    G.notes[ASKED], G.notes[JUMP] = POSITIONS, 0.0
    status, q = accelerate(ints, floats, work), data.q
    G.notes[ASKED] = ACCELERATIONS
    for i in range(ints[H_BASES], tree.shape[0]):
        joint_plus(tree[i, KIND], tree[i, NV], q, tree[i, Q0], data.a, tree[i, V0], q)
    return status


# ------------------------------------------------------------------------------------------------------ multipliers


@inline(always=True)
def load_rows(model, work, P, G, c, lam, first):
    """Subtract the load of the rows of cell c, with multipliers lam[first:] in natural units, from the load to balance.

    It acts on the speeds of its paths (`x`) and on the bodies at their ends (`motion`: torque about the joint point,
    and force).
    """
    B, D = work.body, work.dof
    n = P.cell[c, K_ROWS_END] - P.cell[c, K_ROWS]
    for part in range(P.cell[c, K_PARTS], P.cell[c, K_PARTS_END]):
        take_rows(work, P, G, c, part)
        x = get3(G.point, part, 0)
        torque, force = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
        for i in range(n):
            y = lam[first + i]
            torque, force = add(torque, scale(y, get3(G.N, i, 0))), add(force, scale(y, get3(G.N, i, 3)))
        for z in range(P.part[part, Y_PATH], P.part[part, Y_PATH_END]):
            b, sign, local = P.path[z, X_BODY], 1.0 * P.path[z, X_SIGN], P.path[z, X_LOCAL]
            about = add(torque, cross(sub(x, get3(B, b, X)), force))
            for f in range(model.tree[b, NV]):
                k = model.tree[b, V0] + f
                if P.local[local + f] < 0:
                    G.x[k] -= sign * (dot(about, get3(D, k, SW)) + dot(force, get3(D, k, SV)))
        for side in range(2):
            b = P.part[part, Y_CHILD + side]
            if b >= model.n_bases:
                sign = 1.0 - 2.0 * side
                about = add(torque, cross(sub(x, get3(B, b, X)), force))
                add3(G.motion, b, 0, scale(sign, about))
                add3(G.motion, b, 3, scale(sign, force))
    for z in range(P.cell[c, K_DIRECT], P.cell[c, K_DIRECT_END]):
        if P.direct[z, D_LOCAL] < 0:
            value = work.factor[P.direct[z, D_ENTRY]] * G.row_scale[P.row[P.cell[c, K_ROWS]]]
            G.x[P.direct[z, D_SPEED]] -= value * lam[first]


@inline(always=True)
def lift(model, work, G, b, base):
    """Propagate the loads on body b inward past its joint."""
    B, D = work.body, work.dof
    w, v, p = get3(G.motion, b, 0), get3(G.motion, b, 3), model.tree[b, PARENT]
    for k in range(model.tree[b, V0], model.tree[b, V0] + model.tree[b, NV]):
        G.x[k] -= dot(w, get3(D, k, SW)) + dot(v, get3(D, k, SV))
    if p >= model.n_bases and p != base:
        add3(G.motion, p, 0, add(w, cross(get3(B, b, ARM), v)))
        add3(G.motion, p, 3, v)


@kernel(short_loops=True)
def multipliers(ints, floats, work, lam):
    """Multipliers (nc) of all rows, zero for those that are not kept, after `accelerate`; `work.tau` has M a - h.

    The load on the speeds is distributed over the rows along the steps in reverse: the transpose of `columns`, in
    linear time.
    """
    model, data = open_model(ints, floats), open_work(ints, work)
    P, G = open_cells(ints), open_numbers(ints, floats, work)
    for k in range(model.nv):
        G.x[k] = data.tau[k]
    for b in range(model.tree.shape[0]):
        put3(G.motion, b, 0, (0.0, 0.0, 0.0))
        put3(G.motion, b, 3, (0.0, 0.0, 0.0))
    for k in range(model.nc):
        lam[k] = 0.0
    for g in range(P.group.shape[0]):
        base, t, d = P.group[g, G_BASE], P.group[g, G_WIDTH], P.group[g, G_FREEDOMS]
        n, at, x = t - d, P.group[g, G_TENTATIVE], P.group[g, G_X]
        for i in range(n):  # load on the tentative speeds that follow
            G.side[i] = 0.0
            for s in range(P.group[g, G_STEPS], P.group[g, G_STEPS_END]):
                b = P.step[s]
                if b >= 0:
                    for k in range(model.tree[b, V0], model.tree[b, V0] + model.tree[b, NV]):
                        G.side[i] += G.E[P.e[k] + d + i] * G.x[k]
        for j in range(n):
            G.F[at + j] = 0.0
            for i in range(n):
                G.F[at + j] += G.X[x + i * n + j] * G.side[i]
        m = 0
        for c in range(P.group[g, G_CLOSING], P.group[g, G_CLOSING_END]):
            load_rows(model, data, P, G, c, G.F, at + m)
            for r in range(P.cell[c, K_ROWS], P.cell[c, K_ROWS_END]):
                lam[P.row[r]] = G.F[at + m] * G.row_scale[P.row[r]]
                m += 1
        for s in range(P.group[g, G_STEPS_END] - 1, P.group[g, G_STEPS] - 1, -1):
            b = P.step[s]
            if b >= 0:
                lift(model, data, G, b, base)
                continue
            c = -1 - b
            first, n, x = P.cell[c, K_ROWS], P.cell[c, K_ROWS_END] - P.cell[c, K_ROWS], P.cell[c, K_X]
            for j in range(n):
                G.side[j] = 0.0
                for i in range(n):
                    G.side[j] += G.X[x + i * n + j] * G.x[P.dependent[P.cell[c, K_DEPENDENT] + i]]
                lam[P.row[first + j]] = G.side[j] * G.row_scale[P.row[first + j]]
            load_rows(model, data, P, G, c, G.side, 0)
