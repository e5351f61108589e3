"""Numeric passes of the distribution of loads over the joints, at every state of a path.

With L the load of all joints on a body and those further out, and K y that of the open rows, its joint transmits
L - K y. The part along the freedoms S vanishes, S . (L - K y) = 0; the other part is that of the rows G of the joint,
which are orthogonal to each other. All loads are torques about the body's reference point and forces, in world axes.
"""

import numpy as np

from loopdyn.engine.jit import inline
from loopdyn.engine.records import (
    C_CHILD,
    C_KIND,
    C_PARENT,
    C_ROW,
    C_ROWS,
    M_POINT,
    PARENT,
    SV,
    SW,
    V0,
    R,
    X,
)
from loopdyn.joints.dispatch import joint_wrench
from loopdyn.joints.rows import rot_f
from loopdyn.loops.distribution.layout import (
    A_CUT,
    A_ROW,
    A_SIGN,
    A_SLOT,
    COUPLES,
    CUT,
    FREEDOMS,
    I_BODY,
    I_CUT,
    I_ENTRY,
    I_FREEDOM,
    I_ROW,
    I_SLOT,
    I_USER,
    LOOSE,
    PAIRS,
    R_CUT,
    R_ENTRY,
    R_FREEDOM,
    R_ROW,
    R_SIGN,
    R_SLOT,
    ROW,
    SHARES,
    SLOTS,
    SLOTS_END,
    THETA,
    U_COLUMN,
    U_ROW,
    U_TARGET,
    UNKNOWN,
    UP,
    V_CUT,
    V_JOINT,
    V_ROW,
)
from loopdyn.loops.elimination.fixed import INDEPENDENT
from loopdyn.spatial.plucker import add, add3, cross, dot, get3, get9, put3, rot, scale, sub
from loopdyn.tree.jacobian import pair

# Column of a freedom over the rows: square of its norm as a fraction of the natural one. Above the first, rows act on
# the freedom; below the second, it is rounding; between them it is not clear.
SHORT, NOTHING = 1e-10, 1e-24
# A freedom moves nothing that is not moved by others: its pivot as a fraction of what its diagonal entry had, times the
# weakest pivot that has changed it. Rounding leaves 1e-16 times a few tens, divided by this pivot; from this limit to
# INDEPENDENT pivots do not tell whether rank is lost.
VANISHED_PIVOT = 1e-14
# A row has a part in a component of the wrench of its joint, in axes of F; as UNIQUE of `reactions_balance`.
IN_DIRECTION = 1e-7

# Unbalanced load as a fraction of the largest, above which the solution is refined: some tens of roundings. Probes are
# not refined: above PROBED their self-balanced parts are not known to the hundredth of what counts (IN_DIRECTION).
ROUNDED, PROBED = 1e-14, 1e-9
MOST_REFINEMENTS = 6

# summary[k]: facts about the distribution at state k. UNCLEAR: number of pivots that do not tell; KEPT: freedoms with a
# pivot, which is the number of independent rows; MISSING: largest unbalanced load on a body, N or N m; OFF: the same in
# natural units, as a fraction of the largest load.
UNCLEAR, KEPT, MISSING, OFF, N_SUMMARY = range(5)


@inline
def moved(torque, force, arm):
    """Torque of a load about a point from which `arm` leads to the point it is given about."""
    return add(torque, cross(arm, force))


@inline
def point_of(model, work, n):
    """Origin of M of cut n: where its rows act."""
    j = model.cut[n, C_CHILD]
    return add(get3(work.body, j, X), rot(get9(work.body, j, R), get3(model.cut_frames, n, M_POINT)))


@inline
def propagate_loads(model, work, plan, s):
    """Loads of all joints on each body become those on it and all bodies further out."""
    B, L = work.body, s.load
    for i in range(model.tree.shape[0] - 1, model.n_bases - 1, -1):
        p = model.tree[i, PARENT]
        if p >= model.n_bases and plan.at[i, LOOSE] == 0:
            force = get3(L, i, 3)
            add3(L, p, 0, moved(get3(L, i, 0), force, sub(get3(B, i, X), get3(B, p, X))))
            add3(L, p, 3, force)


@inline
def vary(model, work, plan, s, weights):
    """Directions and weights of rows whose wrenches, seen in F, depend on the pose."""
    for n in range(plan.varying.shape[0]):
        cut, r, joint = plan.varying[n, V_CUT], plan.varying[n, V_ROW], plan.varying[n, V_JOINT]
        F, _, _, _, _, _, _, _ = pair(model, work, cut)
        for m in range(model.cut[cut, C_ROWS]):
            k = model.cut[cut, C_ROW] + m
            put3(s.direction, r + m, 0, rot_f(F, get3(work.rows, k, 0)))
            put3(s.direction, r + m, 3, rot_f(F, get3(work.rows, k, 3)))
            weight = 0.0
            for c in range(6):
                weight += weights[joint, c] * s.direction[r + m, c] * s.direction[r + m, c]
            s.root[r + m] = np.sqrt(weight)


@inline
def fill_columns(model, work, plan, s, user):
    """Loads of unit unknowns on the bodies they act on, and across joints."""
    B, K = work.body, s.column
    K[:, :] = 0.0
    for n in range(plan.acting.shape[0]):
        x, cut, r, sign = plan.acting[n, A_SLOT], plan.acting[n, A_CUT], plan.acting[n, A_ROW], plan.acting[n, A_SIGN]
        arm, k = sub(point_of(model, work, cut), get3(B, end_of(model, cut, sign), X)), model.cut[cut, C_ROW]
        for m in range(model.cut[cut, C_ROWS]):
            f = sign / s.root[r + m]
            force = scale(f, get3(work.rows, k + m, 3))
            put3(K, x + m, 0, moved(scale(f, get3(work.rows, k + m, 0)), force, arm))
            put3(K, x + m, 3, force)
    if plan.related.shape[0] > 0 or plan.inner.shape[0] > 0:
        fill_relations(model, work, plan, s, user)


@inline
def end_of(model, cut, sign):
    """Body of a cut that its rows act on with this sign."""
    return model.cut[cut, C_CHILD] if sign > 0 else model.cut[cut, C_PARENT]


@inline
def fill_relations(model, work, plan, s, user):
    """Columns of relations between coordinates and of user rows."""
    B = work.body
    s.inner[:, :] = 0.0
    for n in range(plan.related.shape[0]):
        x, cut, sign = plan.related[n, R_SLOT], plan.related[n, R_CUT], plan.related[n, R_SIGN]
        f = sign * work.factor[plan.related[n, R_ENTRY]] / s.root[plan.related[n, R_ROW]]
        F, M, par, _, _, _, _, xM = pair(model, work, cut)
        torque, force = joint_wrench(model.cut[cut, C_KIND], plan.related[n, R_FREEDOM], F, M, par)
        torque, force = scale(f, torque), scale(f, force)
        add3(s.column, x, 0, moved(torque, force, sub(xM, get3(B, end_of(model, cut, sign), X))))
        add3(s.column, x, 3, force)
    for n in range(plan.inner.shape[0]):
        x, i, k = plan.inner[n, I_SLOT], plan.inner[n, I_BODY], plan.inner[n, I_FREEDOM]
        cut, entry = plan.inner[n, I_CUT], plan.inner[n, I_ENTRY]
        f = work.factor[entry] if entry >= 0 else user[plan.inner[n, I_USER], model.tree[i, V0] + k]
        f *= (1.0 if model.cut[cut, C_CHILD] == i else -1.0) / s.root[plan.inner[n, I_ROW]]
        F, M, par, _, _, _, _, xM = pair(model, work, cut)
        torque, force = joint_wrench(model.cut[cut, C_KIND], k, F, M, par)
        torque, force = scale(f, torque), scale(f, force)
        add3(s.inner, x, 0, moved(torque, force, sub(xM, get3(B, i, X))))
        add3(s.inner, x, 3, force)


@inline
def rows_of_joint(model, work, plan, s, i):
    """Rows of the tree joint of body i, scaled so that products with a load are scaled multipliers, into `s.joint`.

    Returns how many there are and the arm from the reference point to where they act.
    """
    cut, r = plan.at[i, CUT], plan.at[i, ROW]
    if cut < 0:
        return 0, (0.0, 0.0, 0.0)
    sign = 1.0 if model.cut[cut, C_CHILD] == i else -1.0
    count, k = model.cut[cut, C_ROWS], model.cut[cut, C_ROW]
    for m in range(count):
        torque, force = get3(work.rows, k + m, 0), get3(work.rows, k + m, 3)
        f = sign * s.root[r + m] / (dot(torque, torque) + dot(force, force))
        put3(s.joint, m, 0, scale(f, torque))
        put3(s.joint, m, 3, scale(f, force))
    return count, sub(point_of(model, work, cut), get3(work.body, i, X))


@inline
def along(work, k, loose, first, torque, force):
    """Part of a load along freedom k of a body, or along a unit motion of a severed one."""
    if loose:
        return torque[k] if k < 3 else force[k - 3]
    return dot(get3(work.dof, first + k, SW), torque) + dot(get3(work.dof, first + k, SV), force)


@inline
def natural_size(work, k, loose, first, length):
    """Square of the natural size of the column of a freedom."""
    if loose:
        return length * length if k < 3 else 1.0
    w, v = get3(work.dof, first + k, SW), get3(work.dof, first + k, SV)
    return length * length * dot(w, w) + dot(v, v)


@inline
def gather_loads(model, work, plan, s, i):
    """Part of the loads of body i in the first right side; `s.share` must be known."""
    at, r, theta, first = plan.at, plan.at[i, ROW], plan.at[i, THETA], model.tree[i, V0]
    count, to_joint = rows_of_joint(model, work, plan, s, i)
    torque, force = get3(s.load, i, 0), get3(s.load, i, 3)
    there = sub(torque, cross(to_joint, force))
    for m in range(count):
        s.y[r + m, 0] = dot(get3(s.joint, m, 0), there) + dot(get3(s.joint, m, 3), force)
    begin, end, own = at[i, SLOTS], at[i, SLOTS_END], at[i, SHARES]
    if begin == end:
        return
    for k in range(at[i, FREEDOMS]):
        s.x[theta + k, 0] = along(work, k, at[i, LOOSE] == 1, first, torque, force)
    for x in range(begin, end):
        total = 0.0
        for m in range(count):
            total += s.share[own + m] * s.y[r + m, 0]
        s.x[plan.slot[x, UNKNOWN], 0] += total
        own += count


@inline
def gather(model, work, plan, s, i, probes, length):
    """Part of body i in the matrix and in the right sides of probes; propagate its columns to its parent."""
    K, at, x0 = s.column, plan.at, get3(work.body, i, X)
    begin, end, freedoms, theta, r = at[i, SLOTS], at[i, SLOTS_END], at[i, FREEDOMS], at[i, THETA], at[i, ROW]
    if begin == end:
        return
    loose, first, related = at[i, LOOSE] == 1, model.tree[i, V0], plan.inner.shape[0] > 0
    count, to_joint = rows_of_joint(model, work, plan, s, i)
    for k in range(freedoms):
        s.natural[theta + k] = natural_size(work, k, loose, first, length)
    pairs, couple, share = at[i, PAIRS], at[i, COUPLES], at[i, SHARES]
    up = sub(x0, get3(work.body, model.tree[i, PARENT], X))
    for x in range(begin, end):
        u, above = plan.slot[x, UNKNOWN], plan.slot[x, UP]
        kw, kv = get3(K, x, 0), get3(K, x, 3)
        if above >= 0:
            add3(K, above, 0, moved(kw, kv, up))
            add3(K, above, 3, kv)
        if related:
            kw, kv = add(kw, get3(s.inner, x, 0)), add(kv, get3(s.inner, x, 3))
        for k in range(freedoms):
            s.matrix[plan.couple[couple + k]] = along(work, k, loose, first, kw, kv)
        couple += freedoms
        kw, own = sub(kw, cross(to_joint, kv)), share + (x - begin) * count
        for m in range(count):
            y = dot(get3(s.joint, m, 0), kw) + dot(get3(s.joint, m, 3), kv)
            s.share[own + m] = y
            for c in range(probes.shape[1]):
                s.x[u, 1 + c] -= y * probes[r + m, c]
        for z in range(begin, x + 1):
            other, product = share + (z - begin) * count, 0.0
            for m in range(count):
                product += s.share[own + m] * s.share[other + m]
            s.matrix[plan.pair[pairs]] += product
            pairs += 1


@inline
def begin_matrix(plan, s, probes):
    """Matrix and right sides before any body is gathered: the rows of cuts alone."""
    s.matrix[:] = 0.0
    s.x[:, :] = 0.0
    for u in range(s.x.shape[0]):
        r = plan.unknown[u, U_ROW]
        s.size[u], s.weakest[u] = 0.0, 1.0
        if r >= 0:
            s.matrix[plan.unknown[u, U_COLUMN]] = 1.0
            for c in range(probes.shape[1]):
                s.x[u, 1 + c] = probes[r, c]


@inline
def factor(plan, s):
    """Factorise the matrix, L D L^T, in place: rows have positive pivots, freedoms negative ones or none.

    Returns the number of pivots that do not tell whether they vanish, and the number of freedoms with a pivot.
    """
    A, unclear, kept = s.matrix, 0, 0
    for u in range(s.x.shape[0]):
        at, end, t = plan.unknown[u, U_COLUMN], plan.unknown[u + 1, U_COLUMN], plan.unknown[u, U_TARGET]
        row, pivot, weakest = plan.unknown[u, U_ROW] >= 0, A[at], s.weakest[u]
        inverse = 1.0 / pivot if row else 0.0
        if not row:
            size, natural = s.size[u], s.natural[u]
            if size > NOTHING * natural and -pivot * weakest > VANISHED_PIVOT * size:
                inverse = 1.0 / pivot
                kept += 1
                weakest = min(weakest, -pivot / size)
                if not (size >= SHORT * natural and weakest >= INDEPENDENT):
                    unclear += 1
        s.inverse[u] = inverse
        for e in range(at + 1, end):
            f = A[e] * inverse
            if row:
                s.size[plan.below[e]] += f * A[e]
            if inverse != 0.0:
                s.weakest[plan.below[e]] = min(s.weakest[plan.below[e]], weakest)
            for o in range(e, end):
                A[plan.target[t]] -= f * A[o]
                t += 1
        for e in range(at + 1, end):
            A[e] *= inverse
    return unclear, kept


@inline
def solve(plan, s, columns):
    """Solve for the first right sides in `s.x` with the factor."""
    n = s.x.shape[0]
    for u in range(n):
        for e in range(plan.unknown[u, U_COLUMN] + 1, plan.unknown[u + 1, U_COLUMN]):
            for c in range(columns):
                s.x[plan.below[e], c] -= s.matrix[e] * s.x[u, c]
    for u in range(n - 1, -1, -1):
        for c in range(columns):
            s.x[u, c] *= s.inverse[u]
        for e in range(plan.unknown[u, U_COLUMN] + 1, plan.unknown[u + 1, U_COLUMN]):
            for c in range(columns):
                s.x[u, c] -= s.matrix[e] * s.x[plan.below[e], c]


@inline
def recover(model, plan, s, columns):
    """Scaled multipliers of all rows for the first right sides."""
    for u in range(s.x.shape[0]):
        r = plan.unknown[u, U_ROW]
        if r >= 0:
            for c in range(columns):
                s.y[r, c] = s.x[u, c]
    for i in range(model.n_bases, model.tree.shape[0]):
        cut, r = plan.at[i, CUT], plan.at[i, ROW]
        if cut < 0:
            continue
        count, own = model.cut[cut, C_ROWS], plan.at[i, SHARES]
        for m in range(count):
            for c in range(1, columns):
                s.y[r + m, c] = 0.0
        for x in range(plan.at[i, SLOTS], plan.at[i, SLOTS_END]):
            u = plan.slot[x, UNKNOWN]
            for m in range(count):
                for c in range(columns):
                    s.y[r + m, c] -= s.share[own + m] * s.x[u, c]
            own += count


@inline
def find_missing(model, work, plan, s):
    """Load on each body that the reactions leave unbalanced, from the loads in `s.load` that have been propagated."""
    B, related = work.body, plan.inner.shape[0] > 0
    s.missing[:, :] = 0.0
    for i in range(model.n_bases, model.tree.shape[0]):
        torque, force, x0 = get3(s.load, i, 0), get3(s.load, i, 3), get3(B, i, X)
        for x in range(plan.at[i, SLOTS], plan.at[i, SLOTS_END]):
            y, kw, kv = s.x[plan.slot[x, UNKNOWN], 0], get3(s.column, x, 0), get3(s.column, x, 3)
            if related:
                kw, kv = add(kw, get3(s.inner, x, 0)), add(kv, get3(s.inner, x, 3))
            torque, force = sub(torque, scale(y, kw)), sub(force, scale(y, kv))
        cut, r = plan.at[i, CUT], plan.at[i, ROW]
        if cut >= 0:
            sign = 1.0 if model.cut[cut, C_CHILD] == i else -1.0
            arm, k = sub(point_of(model, work, cut), x0), model.cut[cut, C_ROW]
            for m in range(model.cut[cut, C_ROWS]):
                f = sign * s.y[r + m, 0] / s.root[r + m]
                gv = get3(work.rows, k + m, 3)
                torque = sub(torque, scale(f, moved(get3(work.rows, k + m, 0), gv, arm)))
                force = sub(force, scale(f, gv))
        add3(s.missing, i, 0, torque)
        add3(s.missing, i, 3, force)
        p = model.tree[i, PARENT]
        if p >= model.n_bases and plan.at[i, LOOSE] == 0:
            back = moved(torque, force, sub(x0, get3(B, p, X)))
            add3(s.missing, p, 0, scale(-1.0, back))
            add3(s.missing, p, 3, scale(-1.0, force))


@inline
def largest(model, load, length):
    """Largest component of loads on the bodies in N or N m, and in N with torques divided by the length."""
    worst, natural = 0.0, 0.0
    for i in range(model.n_bases, model.tree.shape[0]):
        for k in range(6):
            x = abs(load[i, k])
            worst = larger(worst, x)
            natural = larger(natural, x / length if k < 3 else x)
    return worst, natural


@inline
def larger(x, y):
    """The larger of two numbers; NaN if one of them is NaN, which `max` may lose."""
    return y if y > x or y != y else x


@inline
def take_motors(model, work, s, pushed, push):
    """Subtract loads `push` on freedoms of joints, given by cut and freedom in `pushed`, from those on the bodies."""
    B, L = work.body, s.load
    for n in range(push.size):
        cut = pushed[n, 0]
        F, M, par, _, _, _, _, xM = pair(model, work, cut)
        torque, force = joint_wrench(model.cut[cut, C_KIND], pushed[n, 1], F, M, par)
        for side in range(2):
            i = model.cut[cut, C_CHILD] if side == 0 else model.cut[cut, C_PARENT]
            f = -push[n] if side == 0 else push[n]
            if i >= model.n_bases:
                add3(L, i, 0, scale(f, moved(torque, force, sub(xM, get3(B, i, X)))))
                add3(L, i, 3, scale(f, force))


@inline
def solve_for(model, work, plan, s, columns):
    """Scaled multipliers for the loads in `s.load`, and for probes up to so many columns; loads that they leave."""
    propagate_loads(model, work, plan, s)
    for i in range(model.n_bases, model.tree.shape[0]):
        gather_loads(model, work, plan, s, i)
    solve(plan, s, columns)
    recover(model, plan, s, columns)
    find_missing(model, work, plan, s)


@inline
def refine(model, work, plan, s):
    """Distribute what is left unbalanced in the same way, and add it."""
    for i in range(model.n_bases, model.tree.shape[0]):
        for k in range(6):
            s.load[i, k] = s.missing[i, k]
    for r in range(s.first.size):
        s.first[r] = s.y[r, 0]
    for u in range(s.x.shape[0]):
        s.x[u, 0] = 0.0
    solve_for(model, work, plan, s, 1)
    for r in range(s.first.size):
        s.y[r, 0] += s.first[r]


@inline
def distribute(model, work, plan, s, user, probes, weights, length, summary):
    """Scaled multipliers `s.y` of all rows that balance the loads in `s.load`, with the rows in `work`.

    The norm is minimised. The columns behind the first are the self-balanced parts of `probes`. `summary` gets what the
    caller must check.
    """
    size = largest(model, s.load, length)[1]
    vary(model, work, plan, s, weights)
    fill_columns(model, work, plan, s, user)
    begin_matrix(plan, s, probes)
    for i in range(model.tree.shape[0] - 1, model.n_bases - 1, -1):
        gather(model, work, plan, s, i, probes, length)
    summary[UNCLEAR], summary[KEPT] = factor(plan, s)
    solve_for(model, work, plan, s, s.x.shape[1])
    for r in range(s.y.shape[0]):
        size = larger(size, abs(s.y[r, 0]))
    left, natural = largest(model, s.missing, length)
    if s.x.shape[1] > 1 and natural > PROBED * size:
        summary[UNCLEAR] += 1
    for _ in range(MOST_REFINEMENTS):
        if not natural > ROUNDED * size:
            break
        refine(model, work, plan, s)
        before = natural
        left, natural = largest(model, s.missing, length)
        if not natural < 0.5 * before:  # accelerations do not satisfy the constraints any better
            break
    summary[MISSING], summary[OFF] = left, natural / size if size != 0.0 else natural


@inline
def write_wrenches(plan, s, wrench, unique, others, least):
    """Wrenches of all joints in axes of F, which of their components are unique, and loads of the other rows.

    A component is unique if no row in its direction has a part of `least` in self-balanced sets of reactions.
    """
    wrench[:, :] = 0.0
    unique[:, :] = True
    rows, columns = s.direction.shape[0], s.y.shape[1]
    for r in range(rows):
        j, lam, found = plan.row_joint[r], s.y[r, 0] / s.root[r], 0.0
        for c in range(1, columns):
            found += s.y[r, c] * s.y[r, c]
        held = found < (columns - 1) * least * least or columns == 1
        for c in range(6):
            wrench[j, c] += lam * s.direction[r, c]
            if not held and abs(s.direction[r, c]) > IN_DIRECTION:
                unique[j, c] = False
    for r in range(others.size):
        others[r] = s.y[rows + r, 0] / s.root[rows + r]
