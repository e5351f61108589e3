"""Recursive coordinate reduction, equation by equation.

Anderson, Critchley 2003, "Improved 'Order-N' performance algorithm for the simulation of constrained multi-rigid-body
dynamic systems". :mod:`loopdyn.formulations.rcr.plan` decides what is done in which order; here it is done at every
state.

====================  ======================  ==================================================================
paper                 code                    meaning
====================  ======================  ==================================================================
P_k^k                 ``SW``, ``SV``          motion subspace of a joint, at its own point, world axes
S^k                   ``ARM``                 shift between joint points: no more than an arm in world axes
E_i                   ``work.rows``           wrenches of the closing joint; the phantom body is not needed
Delta^-1 P^T S tau    ``X``                   inverse of the dependent columns of the rows of a cell
u_k by u_1 .. u_p     ``E``                   one row per speed: how it follows from the tentative speeds
Gamma^k P             ``W``                   partial velocities (58): columns of body k, one per tentative speed
Xi A_t + Theta        ``motion``              what body k does where the tentative speeds do not change
I^, F^                ``IJ .. PV``            articulated inertia and (less) force of a body
I^{p;0}, M_p          ``H``, ``M``            inertia of a group that couples it to its base, and its own
====================  ======================  ==================================================================

Deviations:

* No phantom bodies: rows are the wrenches that the closing joint transmits, so its own freedoms are eliminated from the
  start. Loops need not end on their base, nor be cut at their end.
* X is the inverse of a small matrix instead of the recursion (44)-(49) for the same; redundant rows are left out.
* Gamma is multiplied by the subspace of the independent joints at once, (58): columns instead of 6 x 6 matrices, and
  (61)-(66) become one small matrix. (51), (55) contain Gamma^(k-1), not Gamma^k.
* One vector replaces Xi and Theta, (74)-(80).
* After (66) the paper lets the inertia of a loop become that of its base as it is, which loses the load of the closing
  joint on a base that moves. Here the base receives H00 - H M^-1 H^T.
* Tentative speeds that rows put aside still bind are solved for at the end of a group.
"""

from typing import Any, NamedTuple

import numpy as np

from loopdyn.engine.jit import inline, kernel, whole, window
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
    DINV,
    E_CUT,
    E_FREEDOM,
    F_POINT,
    H_BASES,
    H_ENTRIES,
    H_NC,
    H_NV,
    H_ROWS,
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
    V,
    W,
    X,
    open_head,
    open_model,
    open_tree,
    open_work,
)
from loopdyn.engine.status import AGAIN, FINE, NO_INERTIA, NOT_A_NUMBER, SINGULAR_SET
from loopdyn.forces import add_loads
from loopdyn.joints import joint_plus
from loopdyn.joints.base import REVOLUTE
from loopdyn.loops.elimination.layout import plan_start, work_start
from loopdyn.spatial.plucker import (
    add,
    add3,
    add6,
    add9,
    centripetal,
    cross,
    dot,
    get3,
    get6,
    get9,
    inertia_times,
    neg,
    put3,
    put6,
    put9,
    rot,
    scale,
    shift_inertia,
    sub,
    subtract_dyad,
)
from loopdyn.tree.aba import eliminate, eliminate_pin, hand_on
from loopdyn.tree.jacobian import constraint_rows, freedom_of_cut, linear_terms
from loopdyn.tree.kinematics import place_bodies, rigid_bodies

# Header of the plan, behind the ints of the system: lengths of its tables, of its arrays of numbers, and settings.
N_GROUPS, N_STEPS, N_CELLS, N_ROWS, N_DEPENDENT, N_PARTS, N_PATH, N_LOCAL, N_DIRECT, N_TENTATIVE = range(10)
N_COLUMNS, N_E, N_X, N_REDUCED, N_M, FORM, AFFINE, STEADY, FLOATS, N_HEADER = range(10, 20)

# group[g]: base or -1; steps; closing cells; tentative speeds, how many of them are independent, where they begin;
# where its M, its reduced rows and its X of those begin.
G_BASE, G_STEPS, G_STEPS_END, G_CLOSING, G_CLOSING_END, G_WIDTH, G_FREEDOMS, G_TENTATIVE = range(8)
G_M, G_REDUCED, G_X, N_GROUP = range(8, 12)
# cell[c]: rows, dependent speeds, parts, direct entries; where X and its reduced rows begin; number of tentative speeds
K_ROWS, K_ROWS_END, K_DEPENDENT, K_PARTS, K_PARTS_END, K_DIRECT, K_DIRECT_END, K_X, K_REDUCED, K_WIDTH, N_CELL = range(
    11
)
# part[p]: cut, entry of a relation or -1, bodies at the ends of the ways or -1, bodies on the ways
Y_CUT, Y_ENTRY, Y_CHILD, Y_PARENT, Y_PATH, Y_PATH_END, N_PART = range(7)
# path[x]: a body, which side (+1 or -1), where the places of its speeds among the dependent ones begin
X_BODY, X_SIGN, X_LOCAL, N_PATH_COLUMNS = range(4)
# direct[x]: entry of a relation, its speed, place of that among the dependent ones or -1
D_ENTRY, D_SPEED, D_LOCAL, N_DIRECT_COLUMNS = range(4)

# Forms of the state: all given; or dependent speeds follow from the independent ones.
FULL, K_PLUS_N = range(2)
SPEEDS, ACCELERATIONS, POSITIONS = range(3)  # stages of an evaluation

# Smallest pivot of a cell as a share of what it was at the choice, cells whose determinant has changed its sign, how
# far the dependent speeds were from following, best gain of an exchange; given: the last stage that is asked for.
PIVOT, FLIPPED, JUMP, GAIN, ASKED, N_NOTES = range(6)

# Share of the fastest speed by which dependent speeds may be off before they are made to follow, and speed, rad or
# sizes of the mechanism per s, below which all is at rest. More is no error of a step but another branch of the motion.
SMOOTH, STILL = 0.3, 1e-9
WEAK_PIVOT = 0.1  # share of the pivot at the choice, below which rows and coordinates are chosen anew
# Share of the largest term of its inertia: below it a freedom counts in the criterion as if it had that much.
LEAST_SHARE = 1e-12
MOST_ROWS = 6  # of a cell


class Cells(NamedTuple):
    """The plan."""

    slot: Any  # (bodies,) first column of a body of a group, else -1
    start: Any  # (bodies,) the group whose first body it is, or -1
    carries: Any  # (bodies,) 1 where something outside of its group stands on it: its acceleration is asked for
    e: Any  # (nv,) where the row of E of a speed begins, -1 outside of groups
    holonomic: Any  # (nc,) 0 for rows that constrain velocities alone
    group: Any  # (groups, N_GROUP)
    step: Any  # (steps,) a body, or cell -1 - step
    cell: Any  # (cells, N_CELL)
    row: Any  # (rows,)
    dependent: Any  # (dependent,)
    part: Any  # (parts, N_PART)
    path: Any  # (path, N_PATH_COLUMNS)
    local: Any  # (local,)
    direct: Any  # (direct, N_DIRECT_COLUMNS)
    tentative: Any  # (tentative,)


class Numbers(NamedTuple):
    """Numbers of the plan, and the own work."""

    row_scale: Any  # (nc,) one over the natural unit of each row
    unit: Any  # (nv,)
    candidate: Any  # (nv,) 1 where a speed may be independent, else 0
    switch: Any  # (1,) gain that is worth an exchange
    E: Any  # (n_e,)
    W: Any  # (columns, 6)
    X: Any  # (n_x,) inverses of the cells
    Y: Any  # (n_x,) what they are inverses of; scratch
    reduced: Any  # (n_reduced,) rows of cells in tentative speeds
    N: Any  # (MOST_ROWS, 6) wrenches of the rows of a cell
    point: Any  # (parts, 3) where they act
    entry: Any  # (entries, 9) torque, force, point of each entry of a relation that acts on a cut joint
    motion: Any  # (bodies, 6)
    x: Any  # (nv,) of the speeds, like motion of the bodies
    right: Any  # (nc,)
    rate: Any  # (nc,) of the relations
    M: Any  # (n_m,) mass matrix of each group, then its Cholesky factor
    F: Any  # (tentative,) its right side, then accelerations
    H: Any  # (tentative, 6) coupling to the base
    side: Any  # (width or rows,) scratch
    free: Any  # (nv,) mobility M^-1(i, i) of a speed in the open tree
    spread: Any  # (bodies, 21) covariance of accelerations, for the mobilities
    chosen: Any  # (cells, 2) sign of the determinant and smallest pivot of a cell at the choice; 0 if not yet known
    notes: Any  # (N_NOTES,)


@inline(always=True)
def open_cells(ints, o):
    """The plan, which begins at o in the int array."""
    n, nv, nc = ints[H_ROWS], ints[H_NV], ints[H_NC]
    a = o + N_HEADER
    b = a + 3 * n
    c = b + nv + nc
    d = c + ints[o + N_GROUPS] * N_GROUP
    e = d + ints[o + N_STEPS]
    f = e + ints[o + N_CELLS] * N_CELL
    g = f + ints[o + N_ROWS]
    h = g + ints[o + N_DEPENDENT]
    i = h + ints[o + N_PARTS] * N_PART
    j = i + ints[o + N_PATH] * N_PATH_COLUMNS
    k = j + ints[o + N_LOCAL]
    m = k + ints[o + N_DIRECT] * N_DIRECT_COLUMNS
    return Cells(
        window(ints, a, n),
        window(ints, a + n, n),
        window(ints, a + 2 * n, n),
        window(ints, b, nv),
        window(ints, b + nv, nc),
        window(ints, c, ints[o + N_GROUPS], N_GROUP),
        window(ints, d, ints[o + N_STEPS]),
        window(ints, e, ints[o + N_CELLS], N_CELL),
        window(ints, f, ints[o + N_ROWS]),
        window(ints, g, ints[o + N_DEPENDENT]),
        window(ints, h, ints[o + N_PARTS], N_PART),
        window(ints, i, ints[o + N_PATH], N_PATH_COLUMNS),
        window(ints, j, ints[o + N_LOCAL]),
        window(ints, k, ints[o + N_DIRECT], N_DIRECT_COLUMNS),
        window(ints, m, ints[o + N_TENTATIVE]),
    )


@inline(always=True)
def open_numbers(ints, o, floats, work, a):
    """Numbers of the plan, whose ints begin at o, and the own work, which begins at a."""
    n, nv, nc, entries = ints[H_ROWS], ints[H_NV], ints[H_NC], ints[H_ENTRIES]
    f, cells, t = ints[o + FLOATS], ints[o + N_CELLS], ints[o + N_TENTATIVE]
    b = a + ints[o + N_E]
    c = b + 6 * ints[o + N_COLUMNS]
    d = c + ints[o + N_X]
    e = d + ints[o + N_X]
    g = e + ints[o + N_REDUCED]
    h = g + 6 * MOST_ROWS
    i = h + 3 * ints[o + N_PARTS]
    j = i + 9 * entries
    k = j + 6 * n
    m = k + nv
    p = m + 2 * nc
    q = p + ints[o + N_M]
    r = q + t
    s = r + 6 * t
    u = s + t + MOST_ROWS
    v = u + nv
    w = v + 21 * n
    y = w + 2 * cells
    return Numbers(
        window(floats, f, nc),
        window(floats, f + nc, nv),
        window(floats, f + nc + nv, nv),
        window(floats, f + nc + 2 * nv, 1),
        window(work, a, ints[o + N_E]),
        window(work, b, ints[o + N_COLUMNS], 6),
        window(work, c, ints[o + N_X]),
        window(work, d, ints[o + N_X]),
        window(work, e, ints[o + N_REDUCED]),
        window(work, g, MOST_ROWS, 6),
        window(work, h, ints[o + N_PARTS], 3),
        window(work, i, entries, 9),
        window(work, j, n, 6),
        window(work, k, nv),
        window(work, m, nc),
        window(work, m + nc, nc),
        window(work, p, ints[o + N_M]),
        window(work, q, t),
        window(work, r, t, 6),
        window(work, s, t + MOST_ROWS),
        window(work, u, nv),
        window(work, v, n, 21),
        window(work, w, cells, 2),
        window(work, y, N_NOTES),
    )


def own_work(header: Any, bodies: int, nv: int, nc: int, entries: int) -> int:
    """Length of the own work."""
    t = int(header[N_TENTATIVE])
    total = int(header[N_E]) + 6 * int(header[N_COLUMNS]) + 2 * int(header[N_X]) + int(header[N_REDUCED])
    total += 6 * MOST_ROWS + 3 * int(header[N_PARTS]) + 9 * entries + 27 * bodies + 2 * nv + 2 * nc
    return total + int(header[N_M]) + 8 * t + MOST_ROWS + 2 * int(header[N_CELLS]) + N_NOTES


# ---------------------------------------------------------------------------------------------- small matrices


@inline(always=True)
def invert(A, B, o, n):
    """B <- A^-1, both (n, n) by rows from o on; A is destroyed. Returns the sign of det A and its smallest pivot."""
    sign, least = 1.0, np.inf
    for i in range(n):
        for j in range(n):
            B[o + i * n + j] = 1.0 if i == j else 0.0
    for j in range(n):
        best = j
        for i in range(j + 1, n):
            x, y = A[o + i * n + j].real, A[o + best * n + j].real
            if x * x > y * y:
                best = i
        if best != j:
            sign = -sign
            for m in range(n):
                A[o + j * n + m], A[o + best * n + m] = A[o + best * n + m], A[o + j * n + m]
                B[o + j * n + m], B[o + best * n + m] = B[o + best * n + m], B[o + j * n + m]
        pivot = A[o + j * n + j]
        if pivot.real < 0.0:
            sign = -sign
        least = min(least, pivot.real * pivot.real)
        inverse = 1.0 / pivot
        for m in range(j + 1, n):
            A[o + j * n + m] *= inverse
        for m in range(n):
            B[o + j * n + m] *= inverse
        for i in range(n):
            if i != j:
                x = A[o + i * n + j]
                for m in range(j + 1, n):
                    A[o + i * n + m] -= x * A[o + j * n + m]
                for m in range(n):
                    B[o + i * n + m] -= x * B[o + j * n + m]
    return sign, np.sqrt(least)


@inline(always=True)
def cholesky(M, o, n):
    """Lower factor of M (n, n) from o on, in place, with inverse diagonal; False where M is not positive definite."""
    sound = True
    for j in range(n):
        for m in range(j):
            x = M[o + j * n + m]
            for i in range(j, n):
                M[o + i * n + j] -= M[o + i * n + m] * x
        sound = sound and M[o + j * n + j].real > 0.0
        d = 1.0 / np.sqrt(M[o + j * n + j])
        M[o + j * n + j] = d
        for i in range(j + 1, n):
            M[o + i * n + j] *= d
    return sound


@inline(always=True)
def solve_cholesky(M, o, n, b, k):
    """b[k:k + n] <- M^-1 b with the factor."""
    for i in range(n):
        x = b[k + i]
        for j in range(i):
            x -= M[o + i * n + j] * b[k + j]
        b[k + i] = x * M[o + i * n + i]
    for i in range(n - 1, -1, -1):
        x = b[k + i]
        for j in range(i + 1, n):
            x -= M[o + j * n + i] * b[k + j]
        b[k + i] = x * M[o + i * n + i]


# -------------------------------------------------------------------------------------------------- loop operators


@inline(always=True)
def close_at(model, work, P, G, part):
    """Where the rows of a part act, into `point`."""
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

    [Anderson2003 eqs. (41), (43)]: P_k shifted to where the loop closes.
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
    """Compare the pivot of a cell with what it was at the choice; at the choice itself keep it."""
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
    """The closing rows of a group, which few have: inverse of the columns of the speeds that follow."""
    model, data = open_model(ints, floats), open_work(ints, work)
    o = plan_start(ints)
    P, G = open_cells(ints, o), open_numbers(ints, o, floats, work, work_start(ints))
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
    """Independent columns alone: those of the speeds that follow are added to them."""
    model, o = open_model(ints, floats), plan_start(ints)
    P, G = open_cells(ints, o), open_numbers(ints, o, floats, work, work_start(ints))
    t, d, x, r = P.group[g, G_WIDTH], P.group[g, G_FREEDOMS], P.group[g, G_X], P.group[g, G_REDUCED]
    n = t - d
    for m in range(d):
        for i in range(n):  # how follower i follows from m
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
    o = plan_start(ints)
    P, G = open_cells(ints, o), open_numbers(ints, o, floats, work, work_start(ints))
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
    """Right sides of the rows of cell c less what is known already, into `side`."""
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
    """Tentative speeds that follow at the end, where the others are at rest, and what that does to all."""
    model, data = open_model(ints, floats), open_work(ints, work)
    o = plan_start(ints)
    P, G = open_cells(ints, o), open_numbers(ints, o, floats, work, work_start(ints))
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
    """Motions `x` of speeds and `motion` of bodies for the right sides `right` of the rows, independent speeds at rest.

    `biased`: with velocity terms and the given accelerations of bases.
    """
    model, data = open_model(ints, floats), open_work(ints, work)
    o = plan_start(ints)
    P, G = open_cells(ints, o), open_numbers(ints, o, floats, work, work_start(ints))
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
    """Corrections `x` of all speeds by E alone, which is enough where nothing in the rows depends on time.

    No more than the sums of (45), (51): in such groups dependent speeds are zero where the independent ones are.
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
    """Terms of the relations of coordinates, which few mechanisms have; bodies are left unaccelerated.

    phi, gamma and `rate` of their rows; torque, force and point of their entries that act on cut joints.
    """
    model, data = open_model(ints, floats), open_work(ints, work)
    G = open_numbers(ints, plan_start(ints), floats, work, work_start(ints))
    for i in range(model.n_bases, model.tree.shape[0]):
        put3(data.body, i, AW, (0.0, 0.0, 0.0))
        put3(data.body, i, AV, (0.0, 0.0, 0.0))
    for n in range(model.linear.shape[0]):
        row = model.linear[n, L_ROW]
        data.phi[row], G.rate[row], data.gamma[row], data.explicit[row] = linear_terms(model, data, n)
        for e in range(model.linear[n, L_FIRST], model.linear[n, L_FIRST] + model.linear[n, L_COUNT]):
            if model.entry[e, E_CUT] >= 0:
                cut, freedom = model.entry[e, E_CUT], model.entry[e, E_FREEDOM]
                _, _, _, torque, force, x = freedom_of_cut(model, data, cut, freedom)
                put3(G.entry, e, 0, scale(data.factor[e], torque))
                put3(G.entry, e, 3, scale(data.factor[e], force))
                put3(G.entry, e, 6, x)


@inline(always=True)
def missing_speeds(model, work, G):
    """Right sides for a correction of the speeds: less the rate of each row."""
    B = work.body
    for n in range(model.cut.shape[0]):
        i, j = model.cut[n, C_PARENT], model.cut[n, C_CHILD]
        x = add(get3(B, j, X), rot(get9(B, j, R), get3(model.cut_frames, n, M_POINT)))
        wi, wj = get3(B, i, W), get3(B, j, W)
        vi = add(get3(B, i, V), cross(wi, sub(x, get3(B, i, X))))
        w, v = sub(wj, wi), sub(add(get3(B, j, V), cross(wj, sub(x, get3(B, j, X)))), vi)
        for k in range(model.cut[n, C_ROW], model.cut[n, C_ROW] + model.cut[n, C_ROWS]):
            G.right[k] = -(dot(get3(work.rows, k, 0), w) + dot(get3(work.rows, k, 3), v) + work.explicit[k])
    for n in range(model.linear.shape[0]):
        G.right[model.linear[n, L_ROW]] = -G.rate[model.linear[n, L_ROW]]


@inline(always=True)
def missing_accelerations(model, work, G):
    """Right sides of the rows for bodies without acceleration."""
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
def missing_positions(model, work, P, G):
    """Right sides for a correction of the positions, and nothing else: no loads, no velocity terms, bases at rest."""
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


# -------------------------------------------------------------------------------------------------------- kinetics


@inline(always=True)
def reduce_group(model, work, P, G, g):
    """Mass matrix and right side of a group, and what it hands on to its base; False without inertia.

    [Anderson2003 eqs. (56)-(66)], with what the closing joint puts on the base: H00 - H M^-1 H^T.
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
            push = work.load[k] - model.armature[k] * G.x[k]  # less what turns the rotor without the independent speeds
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
    sound = cholesky(G.M, o, d)
    if base >= 0:
        forward_coupling(P, G, work, g)
    solve_cholesky(G.M, o, d, G.F, at)
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
        x = G.M[o + m * d + m]
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
            G.side[i] = x * G.M[o + i * d + i]
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
    o = plan_start(ints)
    P, G = open_cells(ints, o), open_numbers(ints, o, floats, work, work_start(ints))
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
            if model.tree[i, KIND] == REVOLUTE:
                sound, d, u, uw, uv = eliminate_pin(data.dof, k, size_w, load, armature, J, H, pw)
            else:
                sound, d, u, uw, uv = eliminate(data.dof, k, size_w, size_v, load, armature, J, H, M, pw, pv)
            if not sound:
                status = i
            J, H, M = subtract_dyad(J, H, M, d, uw, uv)
            pw, pv = add(pw, scale(u, uw)), add(pv, scale(u, uv))
        if p >= model.n_bases:
            hand_on(B, i, p, J, H, M, pw, pv)
    return status


@kernel(short_loops=True)
def outward(ints, floats, work):
    """Accelerations from the bases to the tips [Anderson2003 eqs. (67)-(71)]; of bodies, where they are asked for."""
    model, data = open_model(ints, floats), open_work(ints, work)
    o = plan_start(ints)
    P, G = open_cells(ints, o), open_numbers(ints, o, floats, work, work_start(ints))
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

    This one, `columns`, `missing`, `follow`, `inward` and `outward` are kernels, though only called by others, so that
    they stay functions: inlined, their variables would be set to zero at every call, half of the time of a four-bar.
    """
    model, data = open_model(ints, floats), open_work(ints, work)
    place_bodies(model, data, stage != SPEEDS)
    if stage == ACCELERATIONS:
        if model.force.shape[0] > 0:
            add_loads(model, data)
        else:  # spares a small mechanism the call
            for k in range(model.nv):
                data.load[k] = data.tau[k]
    constraint_rows(model, data)
    if model.linear.shape[0] > 0:
        relations(ints, floats, work)


@kernel(short_loops=True)
def missing(ints, floats, work, stage):
    """Right sides of the rows for a stage."""
    model, data = open_model(ints, floats), open_work(ints, work)
    o = plan_start(ints)
    P, G = open_cells(ints, o), open_numbers(ints, o, floats, work, work_start(ints))
    if stage == SPEEDS:
        missing_speeds(model, data, G)
    elif stage == ACCELERATIONS:
        missing_accelerations(model, data, G)
    else:
        missing_positions(model, data, P, G)


@inline(always=True)
def take_speeds(work, P, G):
    """Add the correction to the speeds of all groups; notes how large it was."""
    jump, fastest = 0.0, STILL
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
    """Accelerations `work.a` at the state in `work`; dependent speeds are first made to follow, as the form says.

    Where `correct` asks for it, a correction of the positions in `work.a` instead. Stages are turns of a loop, so that
    each pass is compiled once.
    """
    return accelerate_in(whole(ints), whole(floats), whole(work))


@inline(always=True)
def accelerate_in(ints, floats, work):
    """`accelerate` on windows."""
    model, data = open_model(ints, floats), open_work(ints, work)
    o = plan_start(ints)
    P, G = open_cells(ints, o), open_numbers(ints, o, floats, work, work_start(ints))
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
            missing(ints, floats, work, stage)
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
        return SINGULAR_SET  # the set was singular on the way here
    return status


@kernel(short_loops=True)
def correct(ints, floats, work):
    """One linear correction of the positions in `work`, the smallest in the mass metric; speeds follow later."""
    data, tree = open_head(ints, work), open_tree(ints)
    G = open_numbers(ints, plan_start(ints), floats, work, work_start(ints))
    G.notes[ASKED], G.notes[JUMP] = POSITIONS, 0.0
    status, q = accelerate(ints, floats, work), data.q
    G.notes[ASKED] = ACCELERATIONS
    for i in range(ints[H_BASES], tree.shape[0]):
        joint_plus(tree[i, KIND], tree[i, NV], q, tree[i, Q0], data.a, tree[i, V0], q)
    return status


# ------------------------------------------------------------------------------------------------------ multipliers


@inline(always=True)
def load_rows(model, work, P, G, c, lam, first):
    """Take the load of the rows of cell c, with multipliers lam[first:] in natural units, off what is to be carried.

    From speeds on its ways (`x`), and from bodies at their ends (`motion`: torque about the joint point, and force).
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
    """Let the loads on body b pass its joint, inward."""
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

    What the rows must put on the speeds is shared out along the steps in reverse: the transposed of `columns`, in
    linear time.
    """
    model, data = open_model(ints, floats), open_work(ints, work)
    o = plan_start(ints)
    P, G = open_cells(ints, o), open_numbers(ints, o, floats, work, work_start(ints))
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
        for i in range(n):  # what the tentative speeds that follow must be given
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


# -------------------------------------------------------------------------------------------------------- criterion


@inline
def add_symmetric(J, H, M, a, b):
    """(J, H, M) - (a b^T + b a^T) for a, b of two vectors each."""
    p, q = (add(a[0], b[0]), add(a[1], b[1])), (sub(a[0], b[0]), sub(a[1], b[1]))
    J, H, M = subtract_dyad(J, H, M, 0.5, p[0], p[1])
    return subtract_dyad(J, H, M, -0.5, q[0], q[1])


@inline(always=True)
def mobilities(model, work, G):
    """M^-1(i, i) of every speed in the open tree, in linear time, into `free`.

    Accelerations of a tree under random loads of covariance M have the covariance M^-1. Along the articulated-body
    algorithm a = u - U . a' / d with u independent of all inward, of variance 1/d: so variances go outward body by
    body. `spread` is the covariance of a body's acceleration, (linear, mixed, angular) blocks.
    """
    B, D = work.body, work.dof
    for i in range(model.tree.shape[0] - 1, model.n_bases - 1, -1):
        p, first = model.tree[i, PARENT], model.tree[i, V0]
        J, H, M = get6(B, i, IJ), get9(B, i, IH), get6(B, i, IM)
        size_w, size_v = (J[0] + J[1] + J[2]).real, (M[0] + M[1] + M[2]).real
        for k in range(first + model.tree[i, NV] - 1, first - 1, -1):
            sw, sv = get3(D, k, SW), get3(D, k, SV)
            uw, uv = inertia_times(J, H, M, sw, sv)
            pivot = dot(sw, uw) + dot(sv, uv) + model.armature[k]
            least = LEAST_SHARE * (dot(sw, sw).real * size_w + dot(sv, sv).real * size_v)
            d = 1.0 / (pivot if pivot.real > least else pivot * 0.0 + least)
            put3(D, k, UW, uw)
            put3(D, k, UV, uv)
            D[k, DINV] = d
            J, H, M = subtract_dyad(J, H, M, d, uw, uv)
        if p >= model.n_bases:
            J, H, M = shift_inertia(J, H, M, get3(B, i, ARM))
            add6(B, p, IJ, J)
            add9(B, p, IH, H)
            add6(B, p, IM, M)
    for i in range(model.n_bases, model.tree.shape[0]):
        p, first = model.tree[i, PARENT], model.tree[i, V0]
        J, H, M = (
            (0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
            (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
            (0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
        )
        if p >= model.n_bases:
            J, H, M = get6(G.spread, p, 0), get9(G.spread, p, 6), get6(G.spread, p, 15)
            J, H, M = shift_inertia(J, H, M, neg(get3(B, i, ARM)))
        for k in range(first, first + model.tree[i, NV]):
            d, uw, uv = D[k, DINV], get3(D, k, UW), get3(D, k, UV)
            yv, yw = inertia_times(J, H, M, uv, uw)
            s = dot(uv, yv) + dot(uw, yw)
            G.free[k] = d + d * d * s
            sw, sv = get3(D, k, SW), get3(D, k, SV)
            f = 0.5 * (d + d * d * s)
            z = sub(scale(d, yv), scale(f, sv)), sub(scale(d, yw), scale(f, sw))
            J, H, M = add_symmetric(J, H, M, (sv, sw), z)
        put6(G.spread, i, 0, J)
        put9(G.spread, i, 6, H)
        put6(G.spread, i, 15, M)


@inline(always=True)
def best_exchange(model, P, G):
    """The largest factor by which the measure of a set grows when one independent speed gives way to another.

    Q is multiplied by E_ji^2 free_i / free_j where j takes the place of i (see blajer.best_exchange).
    """
    best = 0.0
    for g in range(P.group.shape[0]):
        d, at = P.group[g, G_FREEDOMS], P.group[g, G_TENTATIVE]
        for s in range(P.group[g, G_STEPS], P.group[g, G_STEPS_END]):
            b = P.step[s]
            if b >= 0:
                for k in range(model.tree[b, V0], model.tree[b, V0] + model.tree[b, NV]):
                    weight = G.candidate[k] / G.free[k].real
                    for m in range(d):
                        i, x = P.tentative[at + m], G.E[P.e[k] + m].real
                        if i != k:
                            best = max(best, x * x * weight * G.free[i].real)
    return best


@kernel(short_loops=True)
def check(ints, floats, work):
    """After an accepted step: AGAIN if other coordinates or rows should be chosen. `accelerate` was just run.

    Leaves the mobilities in `free` and the gain of the best exchange in `notes`.
    """
    model, data = open_model(ints, floats), open_work(ints, work)
    o = plan_start(ints)
    P, G = open_cells(ints, o), open_numbers(ints, o, floats, work, work_start(ints))
    rigid_bodies(model, data)
    mobilities(model, data, G)
    G.notes[GAIN] = best_exchange(model, P, G)
    if G.notes[GAIN].real > G.switch[0]:
        return AGAIN
    return AGAIN if G.notes[PIVOT].real < WEAK_PIVOT else FINE
