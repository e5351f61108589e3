"""Dependent speeds of `rcr` from tentative ones, cell by cell, and the right sides of the rows.

Paper, symbols and deviations: :mod:`loopdyn.formulations.rcr.kernels`.
"""

from __future__ import annotations

import numpy as np

from loopdyn.engine.dense import invert
from loopdyn.engine.jit import inline, kernel
from loopdyn.engine.records import (
    ARM,
    AV,
    AW,
    C_CHILD,
    C_PARENT,
    C_ROW,
    C_ROWS,
    CV,
    CW,
    E_CUT,
    E_FREEDOM,
    F_POINT,
    L_COUNT,
    L_FIRST,
    L_ROW,
    M_POINT,
    NV,
    PARENT,
    PV,
    PW,
    SV,
    SW,
    V0,
    R,
    V,
    W,
    X,
    open_model,
    open_work,
)
from loopdyn.formulations.rcr.layout import (
    D_ENTRY,
    D_LOCAL,
    D_SPEED,
    FLIPPED,
    G_BASE,
    G_CLOSING,
    G_CLOSING_END,
    G_FREEDOMS,
    G_REDUCED,
    G_STEPS,
    G_STEPS_END,
    G_TENTATIVE,
    G_WIDTH,
    G_X,
    K_DEPENDENT,
    K_DIRECT,
    K_DIRECT_END,
    K_PARTS,
    K_PARTS_END,
    K_REDUCED,
    K_ROWS,
    K_ROWS_END,
    K_WIDTH,
    K_X,
    PIVOT,
    X_BODY,
    X_LOCAL,
    X_SIGN,
    Y_CHILD,
    Y_CUT,
    Y_ENTRY,
    Y_PATH,
    Y_PATH_END,
    open_cells,
    open_numbers,
)
from loopdyn.spatial.plucker import add, centripetal, cross, dot, get3, get9, put3, rot, scale, sub
from loopdyn.tree.jacobian import freedom_of_cut, linear_terms

# -------------------------------------------------------------------------------------------------- loop operators


@inline(always=True)
def close_at(model, work, P, G, part):
    """Point at which the rows of a part act, into `point`."""
    e = P.part[part, Y_ENTRY]
    if e < 0:
        n = P.part[part, Y_CUT]
        j = model.cut[n, C_CHILD]
        arm = rot(get9(work.body, j, R), get3(model.cut_frames, n, M_POINT))
        put3(G.point, part, 0, add(get3(work.body, j, X), arm))
    else:
        put3(G.point, part, 0, get3(G.entry, e, 6))


@inline(always=True)
def take_rows(work, P, G, c, part):
    """Wrenches of the rows of cell c on a part, in natural units, into `N`."""
    begin, e = P.cell[c, K_ROWS], P.part[part, Y_ENTRY]
    for i in range(P.cell[c, K_ROWS_END] - begin):
        row = P.row[begin + i]
        s = G.row_scale[row]
        if e < 0:
            put3(G.N, i, 0, scale(s, get3(work.rows, row, 0)))
            put3(G.N, i, 3, scale(s, get3(work.rows, row, 3)))
        else:
            put3(G.N, i, 0, scale(s, get3(G.entry, e, 0)))
            put3(G.N, i, 3, scale(s, get3(G.entry, e, 3)))


@inline(always=True)
def reduce_rows(model, work, P, G, c):
    """Rows of cell c: columns of dependent speeds into `Y`, of tentative ones, moved to the right, into `reduced`.

    [Anderson2003 eqs. (41), (43)]: P_k shifted to the point where the loop closes.
    """
    B, D = work.body, work.dof
    first, t = P.cell[c, K_ROWS], P.cell[c, K_WIDTH]
    n, y, r = P.cell[c, K_ROWS_END] - first, P.cell[c, K_X], P.cell[c, K_REDUCED]
    for i in range(n * n):
        G.Y[y + i] = 0.0
    for i in range(n * t):
        G.reduced[r + i] = 0.0
    for part in range(P.cell[c, K_PARTS], P.cell[c, K_PARTS_END]):
        close_at(model, work, P, G, part)
        take_rows(work, P, G, c, part)
        x = get3(G.point, part, 0)
        for z in range(P.part[part, Y_PATH], P.part[part, Y_PATH_END]):
            b, sign, local = P.path[z, X_BODY], 1.0 * P.path[z, X_SIGN], P.path[z, X_LOCAL]
            arm = sub(x, get3(B, b, X))
            for f in range(model.tree[b, NV]):
                k, place = model.tree[b, V0] + f, P.local[local + f]
                sw = get3(D, k, SW)
                sv = add(get3(D, k, SV), cross(sw, arm))
                for i in range(n):
                    value = sign * (dot(get3(G.N, i, 0), sw) + dot(get3(G.N, i, 3), sv))
                    if place >= 0:
                        G.Y[y + i * n + place] += value
                    else:
                        for m in range(t):
                            G.reduced[r + i * t + m] -= value * G.E[P.e[k] + m]
        for side in range(2):
            b = P.part[part, Y_CHILD + side]
            if b >= model.n_bases:
                sign = 1.0 - 2.0 * side
                arm = sub(x, get3(B, b, X))
                for m in range(t):
                    w = get3(G.W, P.slot[b] + m, 0)
                    v = add(get3(G.W, P.slot[b] + m, 3), cross(w, arm))
                    for i in range(n):
                        G.reduced[r + i * t + m] -= sign * (dot(get3(G.N, i, 0), w) + dot(get3(G.N, i, 3), v))
    for z in range(P.cell[c, K_DIRECT], P.cell[c, K_DIRECT_END]):
        k, place = P.direct[z, D_SPEED], P.direct[z, D_LOCAL]
        value = work.factor[P.direct[z, D_ENTRY]] * G.row_scale[P.row[first]]
        if place >= 0:
            G.Y[y + place] += value
        else:
            for m in range(t):
                G.reduced[r + m] -= value * G.E[P.e[k] + m]


@inline(always=True)
def note_pivot(G, c, sign, pivot):
    """Compare the pivot of a cell with its value at the choice; store it if none is stored."""
    if G.chosen[c, 1] == 0.0:
        G.chosen[c, 0], G.chosen[c, 1] = sign, pivot
    if G.chosen[c, 0].real != sign:
        G.notes[FLIPPED] += 1.0
    share = pivot / G.chosen[c, 1].real
    if not share >= G.notes[PIVOT].real:
        G.notes[PIVOT] = share


@inline(always=True)
def close_cell(model, work, P, G, c):
    """Rows of E of the dependent speeds of cell c [Anderson2003 eqs. (45)-(48), (51) with Gamma^(k-1)]."""
    reduce_rows(model, work, P, G, c)
    first, t = P.cell[c, K_DEPENDENT], P.cell[c, K_WIDTH]
    n, x, r = P.cell[c, K_ROWS_END] - P.cell[c, K_ROWS], P.cell[c, K_X], P.cell[c, K_REDUCED]
    sign, pivot = invert(G.Y, G.X, x, n)
    note_pivot(G, c, sign, pivot)
    for i in range(n):
        e = P.e[P.dependent[first + i]]
        for m in range(t):
            total = 0.0
            for j in range(n):
                total += G.X[x + i * n + j] * G.reduced[r + j * t + m]
            G.E[e + m] = total


@inline(always=True)
def place_columns(model, work, P, G, b, base, t):
    """Partial velocities of body b relative to the base [Anderson2003 eqs. (46), (52), (58)]."""
    B, D = work.body, work.dof
    p, r = model.tree[b, PARENT], get3(B, b, ARM)
    moving = p >= model.n_bases and p != base
    for m in range(t):
        w, v = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
        if moving:
            w = get3(G.W, P.slot[p] + m, 0)
            v = add(get3(G.W, P.slot[p] + m, 3), cross(w, r))
        for k in range(model.tree[b, V0], model.tree[b, V0] + model.tree[b, NV]):
            e = G.E[P.e[k] + m]
            w, v = add(w, scale(e, get3(D, k, SW))), add(v, scale(e, get3(D, k, SV)))
        put3(G.W, P.slot[b] + m, 0, w)
        put3(G.W, P.slot[b] + m, 3, v)


@inline
def close_last(ints, floats, work, g):
    """Closing rows of a group, which few groups have: inverse of the columns of the tentative speeds that follow."""
    model, data = open_model(ints, floats), open_work(ints, work)
    P, G = open_cells(ints), open_numbers(ints, floats, work)
    t, d = P.group[g, G_WIDTH], P.group[g, G_FREEDOMS]
    n, x, r = t - d, P.group[g, G_X], P.group[g, G_REDUCED]
    for c in range(P.group[g, G_CLOSING], P.group[g, G_CLOSING_END]):
        reduce_rows(model, data, P, G, c)
    for i in range(n):
        for j in range(n):
            G.Y[x + i * n + j] = -G.reduced[r + i * t + d + j]
    sign, pivot = invert(G.Y, G.X, x, n)
    note_pivot(G, P.group[g, G_CLOSING], sign, pivot)


@inline
def narrow(ints, floats, work, g):
    """Reduce columns to independent speeds: columns of tentative speeds that follow are added to these."""
    model = open_model(ints, floats)
    P, G = open_cells(ints), open_numbers(ints, floats, work)
    t, d, x, r = P.group[g, G_WIDTH], P.group[g, G_FREEDOMS], P.group[g, G_X], P.group[g, G_REDUCED]
    n = t - d
    for m in range(d):
        for i in range(n):  # dependence of follower i on m
            total = 0.0
            for j in range(n):
                total += G.X[x + i * n + j] * G.reduced[r + j * t + m]
            G.side[i] = total
        for s in range(P.group[g, G_STEPS], P.group[g, G_STEPS_END]):
            b = P.step[s]
            if b >= 0:
                for i in range(n):
                    for y in range(6):
                        G.W[P.slot[b] + m, y] += G.side[i] * G.W[P.slot[b] + d + i, y]
                for k in range(model.tree[b, V0], model.tree[b, V0] + model.tree[b, NV]):
                    for i in range(n):
                        G.E[P.e[k] + m] += G.side[i] * G.E[P.e[k] + d + i]


@kernel(short_loops=True)
def columns(ints, floats, work):
    """E, W and X of all groups, in tentative speeds."""
    model, data = open_model(ints, floats), open_work(ints, work)
    P, G = open_cells(ints), open_numbers(ints, floats, work)
    G.notes[PIVOT], G.notes[FLIPPED] = np.inf, 0.0
    for g in range(P.group.shape[0]):
        base, t = P.group[g, G_BASE], P.group[g, G_WIDTH]
        for m in range(t):
            e = P.e[P.tentative[P.group[g, G_TENTATIVE] + m]]
            for j in range(t):
                G.E[e + j] = 1.0 if j == m else 0.0
        for s in range(P.group[g, G_STEPS], P.group[g, G_STEPS_END]):
            b = P.step[s]
            if b >= 0:
                place_columns(model, data, P, G, b, base, t)
            else:
                close_cell(model, data, P, G, -1 - b)
        if P.group[g, G_FREEDOMS] < t:
            close_last(ints, floats, work, g)


# -------------------------------------------------------------------------- motions with tentative speeds at rest


@inline(always=True)
def remaining(model, work, P, G, c, biased):
    """Right sides of the rows of cell c less the contributions known already, into `side`."""
    B, D = work.body, work.dof
    first = P.cell[c, K_ROWS]
    n = P.cell[c, K_ROWS_END] - first
    for i in range(n):
        G.side[i] = G.right[P.row[first + i]] * G.row_scale[P.row[first + i]]
    for part in range(P.cell[c, K_PARTS], P.cell[c, K_PARTS_END]):
        take_rows(work, P, G, c, part)
        x = get3(G.point, part, 0)
        for z in range(P.part[part, Y_PATH], P.part[part, Y_PATH_END]):
            b, sign, local = P.path[z, X_BODY], 1.0 * P.path[z, X_SIGN], P.path[z, X_LOCAL]
            w, v = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
            if biased:
                w, v = get3(B, b, CW), get3(B, b, CV)
            for f in range(model.tree[b, NV]):
                k = model.tree[b, V0] + f
                if P.local[local + f] < 0:
                    w, v = add(w, scale(G.x[k], get3(D, k, SW))), add(v, scale(G.x[k], get3(D, k, SV)))
            v = add(v, cross(w, sub(x, get3(B, b, X))))
            for i in range(n):
                G.side[i] -= sign * (dot(get3(G.N, i, 0), w) + dot(get3(G.N, i, 3), v))
        for side in range(2):
            b = P.part[part, Y_CHILD + side]
            if b >= model.n_bases or (biased and b >= 0):
                sign = 1.0 - 2.0 * side
                w, v = get3(G.motion, b, 0), get3(G.motion, b, 3)
                v = add(v, cross(w, sub(x, get3(B, b, X))))
                for i in range(n):
                    G.side[i] -= sign * (dot(get3(G.N, i, 0), w) + dot(get3(G.N, i, 3), v))
    for z in range(P.cell[c, K_DIRECT], P.cell[c, K_DIRECT_END]):
        if P.direct[z, D_LOCAL] < 0:
            value = work.factor[P.direct[z, D_ENTRY]] * G.row_scale[P.row[first]]
            G.side[0] -= value * G.x[P.direct[z, D_SPEED]]


@inline(always=True)
def place_motion(model, work, G, b, base, biased):
    """Motion of body b relative to its base [Anderson2003 eqs. (46), (72)-(80) as one vector]."""
    B, D = work.body, work.dof
    p = model.tree[b, PARENT]
    w, v = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
    if (p >= model.n_bases and p != base) or (biased and p < model.n_bases):
        w = get3(G.motion, p, 0)
        v = add(get3(G.motion, p, 3), cross(w, get3(B, b, ARM)))
    if biased:
        w, v = add(w, get3(B, b, CW)), add(v, get3(B, b, CV))
    for k in range(model.tree[b, V0], model.tree[b, V0] + model.tree[b, NV]):
        w, v = add(w, scale(G.x[k], get3(D, k, SW))), add(v, scale(G.x[k], get3(D, k, SV)))
    put3(G.motion, b, 0, w)
    put3(G.motion, b, 3, v)


@inline
def follow_last(ints, floats, work, g, biased):
    """Tentative speeds that follow at the end, for zero independent speeds, and their effect on all others."""
    model, data = open_model(ints, floats), open_work(ints, work)
    P, G = open_cells(ints), open_numbers(ints, floats, work)
    t, d, x = P.group[g, G_WIDTH], P.group[g, G_FREEDOMS], P.group[g, G_X]
    n, at = t - d, P.group[g, G_TENTATIVE]
    m = 0
    for c in range(P.group[g, G_CLOSING], P.group[g, G_CLOSING_END]):
        remaining(model, data, P, G, c, biased)
        for i in range(P.cell[c, K_ROWS_END] - P.cell[c, K_ROWS]):
            G.F[at + m] = G.side[i]
            m += 1
    for i in range(n):
        total = 0.0
        for j in range(n):
            total += G.X[x + i * n + j] * G.F[at + j]
        G.side[i] = total
    for s in range(P.group[g, G_STEPS], P.group[g, G_STEPS_END]):
        b = P.step[s]
        if b >= 0:
            for i in range(n):
                for y in range(6):
                    G.motion[b, y] += G.side[i] * G.W[P.slot[b] + d + i, y]
            for k in range(model.tree[b, V0], model.tree[b, V0] + model.tree[b, NV]):
                for i in range(n):
                    G.x[k] += G.side[i] * G.E[P.e[k] + d + i]


@kernel(short_loops=True)
def follow(ints, floats, work, biased):
    """Motions `x` of speeds and `motion` of bodies for the right sides `right` of the rows, independent speeds zero.

    `biased`: with velocity terms and the prescribed accelerations of bases.
    """
    model, data = open_model(ints, floats), open_work(ints, work)
    P, G = open_cells(ints), open_numbers(ints, floats, work)
    for b in range(model.n_bases):
        put3(G.motion, b, 0, get3(data.body, b, AW))
        put3(G.motion, b, 3, get3(data.body, b, AV))
    for g in range(P.group.shape[0]):
        base, t = P.group[g, G_BASE], P.group[g, G_WIDTH]
        for m in range(t):
            G.x[P.tentative[P.group[g, G_TENTATIVE] + m]] = 0.0
        for s in range(P.group[g, G_STEPS], P.group[g, G_STEPS_END]):
            b = P.step[s]
            if b >= 0:
                place_motion(model, data, G, b, base, biased)
            else:
                c = -1 - b
                remaining(model, data, P, G, c, biased)
                n, x, first = P.cell[c, K_ROWS_END] - P.cell[c, K_ROWS], P.cell[c, K_X], P.cell[c, K_DEPENDENT]
                for i in range(n):
                    total = 0.0
                    for j in range(n):
                        total += G.X[x + i * n + j] * G.side[j]
                    G.x[P.dependent[first + i]] = total
        if P.group[g, G_FREEDOMS] < t:
            follow_last(ints, floats, work, g, biased)


@inline(always=True)
def follow_steadily(work, P, G):
    """Corrections `x` of all speeds by E alone, which suffices if no row depends on time.

    These are the sums of (45), (51): in such groups dependent speeds are zero if the independent ones are.
    """
    for g in range(P.group.shape[0]):
        t, at = P.group[g, G_WIDTH], P.group[g, G_TENTATIVE]
        for m in range(t):
            k = P.tentative[at + m]
            G.F[at + m], G.x[k] = work.v[k], 0.0
        for s in range(P.group[g, G_STEPS], P.group[g, G_STEPS_END]):
            if P.step[s] < 0:
                c = -1 - P.step[s]
                first = P.cell[c, K_DEPENDENT]
                for i in range(P.cell[c, K_ROWS_END] - P.cell[c, K_ROWS]):
                    k = P.dependent[first + i]
                    total = -work.v[k]
                    for m in range(t):
                        total += G.E[P.e[k] + m] * G.F[at + m]
                    G.x[k] = total


# ----------------------------------------------------------------------------------------------------- right sides


@inline
def relations(ints, floats, work):
    """Terms of the relations between coordinates, which few mechanisms have; for zero accelerations of the bodies.

    phi, gamma and `rate` of their rows; torque, force and point of their entries that act on cut joints.
    """
    model, data = open_model(ints, floats), open_work(ints, work)
    G = open_numbers(ints, floats, work)
    for i in range(model.n_bases, model.tree.shape[0]):
        put3(data.body, i, AW, (0.0, 0.0, 0.0))
        put3(data.body, i, AV, (0.0, 0.0, 0.0))
    for n in range(model.linear.shape[0]):
        row = model.linear[n, L_ROW]
        data.phi[row], G.rate[row], data.gamma[row], data.phi_t[row] = linear_terms(model, data, n)
        for e in range(model.linear[n, L_FIRST], model.linear[n, L_FIRST] + model.linear[n, L_COUNT]):
            if model.entry[e, E_CUT] >= 0:
                cut, freedom = model.entry[e, E_CUT], model.entry[e, E_FREEDOM]
                _, _, _, torque, force, x = freedom_of_cut(model, data, cut, freedom)
                put3(G.entry, e, 0, scale(data.factor[e], torque))
                put3(G.entry, e, 3, scale(data.factor[e], force))
                put3(G.entry, e, 6, x)


@inline(always=True)
def speed_right_sides(model, work, G):
    """Right sides for a correction of the speeds: the negative rate of each row."""
    B = work.body
    for n in range(model.cut.shape[0]):
        i, j = model.cut[n, C_PARENT], model.cut[n, C_CHILD]
        x = add(get3(B, j, X), rot(get9(B, j, R), get3(model.cut_frames, n, M_POINT)))
        wi, wj = get3(B, i, W), get3(B, j, W)
        vi = add(get3(B, i, V), cross(wi, sub(x, get3(B, i, X))))
        w, v = sub(wj, wi), sub(add(get3(B, j, V), cross(wj, sub(x, get3(B, j, X)))), vi)
        for k in range(model.cut[n, C_ROW], model.cut[n, C_ROW] + model.cut[n, C_ROWS]):
            G.right[k] = -(dot(get3(work.rows, k, 0), w) + dot(get3(work.rows, k, 3), v) + work.phi_t[k])
    for n in range(model.linear.shape[0]):
        G.right[model.linear[n, L_ROW]] = -G.rate[model.linear[n, L_ROW]]


@inline(always=True)
def acceleration_right_sides(model, work, G):
    """Right sides of the rows for zero accelerations of the bodies."""
    B = work.body
    for n in range(model.cut.shape[0]):
        i, j = model.cut[n, C_PARENT], model.cut[n, C_CHILD]
        rF = rot(get9(B, i, R), get3(model.cut_frames, n, F_POINT))
        rM = rot(get9(B, j, R), get3(model.cut_frames, n, M_POINT))
        bias = sub(centripetal(get3(B, j, W), rM), centripetal(get3(B, i, W), rF))
        for k in range(model.cut[n, C_ROW], model.cut[n, C_ROW] + model.cut[n, C_ROWS]):
            G.right[k] = work.gamma[k] - dot(get3(work.rows, k, 3), bias)
    for n in range(model.linear.shape[0]):
        G.right[model.linear[n, L_ROW]] = work.gamma[model.linear[n, L_ROW]]


@inline(always=True)
def position_right_sides(model, work, P, G):
    """Right sides for a correction of the positions alone: no loads, no velocity terms, bases at rest."""
    B, zero = work.body, (0.0, 0.0, 0.0)
    for k in range(model.nc):
        G.right[k] = -work.phi[k] if P.holonomic[k] == 1 else 0.0
    for i in range(model.tree.shape[0]):
        put3(B, i, PW, zero)
        put3(B, i, PV, zero)
        put3(B, i, CW, zero)
        put3(B, i, CV, zero)
        put3(B, i, AW, zero)
        put3(B, i, AV, zero)
    for k in range(model.nv):
        work.load[k] = 0.0
