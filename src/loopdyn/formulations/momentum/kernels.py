"""Steps that conserve momentum and close the joints at their end; see :mod:`loopdyn.formulations.momentum.formulation`.

A step of the time h begins at a closed state (q0, v0). With p(q, v) the generalised momenta of the tree, f its applied
loads without velocity terms, and d0 and d1 the generalised momenta of the chord from q0 to q1 at its two ends
(:mod:`loopdyn.tree.momenta`),

    p(q0, v0) + h/2 f0 + J0^T Q0 = d0(q0, q1),      phi(t1, q1) = 0             momentum and closure: q1, Q0
    p(q1, v1) = d1(q0, q1) + h/2 f1 + J1^T Q1,      J1 v1 + phi_t = 0           momentum and closure: v1, Q1

These are the discrete Euler-Lagrange equations of the tree with impulses of the constraints at both ends: symplectic,
symmetric, of order two. No inertia is inverted. Along the motions N that the rows allow, J N = 0, the
impulses drop out,

    N0^T (p0 + h/2 f0 - d0(q0, q1)) = 0,  phi(q1) = 0           N1^T (p(q1, v1) - d1 - h/2 f1) = 0,  J1 v1 + phi_t = 0

and these are solved, the first pair by Newton's method with the matrix (J1; N0^T M0 / h): it is regular if the
tangents at both ends are not normal to each other, on both sides of a singular pose and across it. As many rows count
as are independent in the regular motion: near a singular pose one of them is nearly dependent, but kept.

Rows that constrain velocities alone are closed in the middle of the step. All quantities are in natural units (angles
in rad, lengths relative to the size of the mechanism), to which `unit` (nv) and `row_unit` (nc) convert.
"""

from __future__ import annotations

import numpy as np

from loopdyn.engine.dense import factorise, solve
from loopdyn.engine.jit import inline, kernel
from loopdyn.engine.records import H_BASES, KIND, NV, Q0, V0, open_head, open_tree, open_work
from loopdyn.engine.status import FINE, NOT_CLOSED, SINGULAR_END, UNDEFINED, UNSETTLED
from loopdyn.formulations.momentum.layout import INDICATOR, TIME, open_place, open_scratch
from loopdyn.joints.dispatch import joint_mean_speeds, joint_minus, joint_plus
from loopdyn.tree.crba import crba
from loopdyn.tree.jacobian import constraint_terms
from loopdyn.tree.kinematics import place
from loopdyn.tree.momenta import chord, loads, momenta

# Newton's method ends if the next change is rounding, in natural units ...
ROUNDING = 2e-14
# ... or if changes smaller than this no longer shrink to SLOWEST of the last: near a singular pose rounding grows.
STALLED, SLOWEST = 1e-9, 0.5
FAR = 10.0  # change, in natural units, above which it has diverged
MOST = 30  # largest number of iterations


# ---------------------------------------------------------------------------------------------- the rows


@inline
def turn(P, x):
    """x <- Q x."""
    rank = P.J.shape[1] - P.N.shape[0]
    n = x.size
    for k in range(rank - 1, -1, -1):
        s = 0.0
        for j in range(k, n):
            s += P.mirror[k, j] * x[j]
        for j in range(k, n):
            x[j] -= s * P.mirror[k, j]


@inline
def choose_row(P, k):
    """Exchange into place k the row with the longest component orthogonal to the rows before it."""
    nc, nv = P.J.shape
    best, longest = k, -1.0
    for i in range(k, nc):
        s = 0.0
        for j in range(k, nv):
            s += P.T[i, j] * P.T[i, j]
        if s > longest:
            best, longest = i, s
    P.kept[k], P.kept[best] = P.kept[best], P.kept[k]
    for j in range(nv):
        P.T[k, j], P.T[best, j] = P.T[best, j], P.T[k, j]


@inline
def factor_rows(P, choose):
    """Factorise the rows by reflections, one after another: those in `P.kept` or, with `choose`, rows chosen here."""
    nc, nv = P.J.shape
    rank = nv - P.N.shape[0]
    rows = nc if choose else rank
    for i in range(rows):
        if choose:
            P.kept[i] = i
        for j in range(nv):
            P.T[i, j] = P.J[int(P.kept[i]), j]
    least = np.inf
    for k in range(rank):
        if choose:
            choose_row(P, k)
        rest = 0.0
        for j in range(k, nv):
            rest += P.T[k, j] * P.T[k, j]
        rest = np.sqrt(rest)
        least = min(least, rest)
        if not rest > 0.0:
            break
        reflect(P, k, rest, rows)
    P.number[INDICATOR] = least
    for m in range(P.N.shape[0]):
        for j in range(nv):
            P.N[m, j] = 1.0 if j == rank + m else 0.0
        turn(P, P.N[m])


@inline
def reflect(P, k, rest, rows):
    """Apply reflection k, which turns the rest of row k, of the length `rest`, to axis k, to the rows below."""
    nv = P.J.shape[1]
    x = P.T[k, k]
    end = -rest if x > 0.0 else rest
    # normal n with |n|^2 = 2, so that the reflection is x - n (n . x)
    c = 1.0 / np.sqrt(rest * (rest + abs(x)))
    for j in range(k, nv):
        P.mirror[k, j] = c * (P.T[k, j] - (end if j == k else 0.0))
        P.T[k, j] = 0.0
    P.T[k, k] = end
    for i in range(k + 1, rows):
        s = 0.0
        for j in range(k, nv):
            s += P.mirror[k, j] * P.T[i, j]
        for j in range(k, nv):
            P.T[i, j] -= s * P.mirror[k, j]


@inline
def smallest(P, goal, x):
    """x (nv): minimum-norm motion with J x = goal (nc)."""
    nv = x.size
    rank = nv - P.N.shape[0]
    for i in range(nv):
        x[i] = 0.0
    for i in range(rank):
        s = goal[int(P.kept[i])]
        for j in range(i):
            s -= P.T[i, j] * x[j]
        x[i] = s / P.T[i, i]
    turn(P, x)


@inline
def add_multipliers(P, S):
    """S.total += multipliers of the kept rows for the load `P.impulse`, which is in their span."""
    nv = P.impulse.size
    rank = nv - P.N.shape[0]
    for k in range(nv):
        S.x[k] = P.impulse[k]
    for k in range(rank):  # Q^T x
        s = 0.0
        for j in range(k, nv):
            s += P.mirror[k, j] * S.x[j]
        for j in range(k, nv):
            S.x[j] -= s * P.mirror[k, j]
    for i in range(rank - 1, -1, -1):
        for j in range(i + 1, rank):
            S.x[i] -= P.T[j, i] * S.x[j]
        S.x[i] /= P.T[i, i]
        S.total[int(P.kept[i])] += S.x[i]


@inline
def rows_at(ints, floats, P, S):
    """Rows at the state in the work array of a place."""
    place(ints, floats, P.work, False)
    constraint_terms(ints, floats, P.work, P.J, P.rate)
    natural_rows(ints, P, S)


@inline
def natural_rows(ints, P, S):
    """Convert the rows to natural units."""
    w = open_work(ints, P.work)
    nc, nv = P.J.shape
    for i in range(nc):
        P.phi[i] = w.phi[i] / S.row_unit[i]
        P.rate[i] /= S.row_unit[i]
        P.phi_t[i] = P.rate[i]
        for j in range(nv):
            P.J[i, j] *= S.unit[j] / S.row_unit[i]
            P.phi_t[i] -= P.J[i, j] * w.v[j] / S.unit[j]


@inline
def natural(S, x):
    """Convert momenta or loads x (nv) to natural units."""
    for k in range(x.size):
        x[k] *= S.unit[k]


@inline
def put(ints, P, t, v):
    """Write time and speeds to the work array of a place, which has its coordinates already."""
    w = open_head(ints, P.work)
    P.number[TIME] = t
    w.t[0] = t
    for k in range(v.size):
        w.v[k] = v[k]


@kernel
def begin(ints, floats, work):
    """Compute the data of a place that a step needs, at the state (t, q, v) in it."""
    P, S = open_place(ints, work), open_scratch(ints, floats, work)
    w = open_head(ints, P.work)
    for k in range(w.v.size):
        P.v[k] = w.v[k]
    P.number[TIME] = w.t[0]
    rows_at(ints, floats, P, S)
    factor_rows(P, True)
    mass_at(ints, floats, P, S)
    momenta(ints, floats, P.work, S.load, P.p)
    loads(ints, floats, P.work, S.load, P.f)
    natural(S, P.p)
    natural(S, P.f)


@inline
def mass_at(ints, floats, P, S):
    """Mass matrix in natural units."""
    place(ints, floats, P.work, True)
    crba(ints, floats, P.work, P.M)
    for i in range(P.M.shape[0]):
        for j in range(P.M.shape[0]):
            P.M[i, j] *= S.unit[i] * S.unit[j]


@inline
def dot_row(A, i, x):
    """Row i of A times x."""
    s = 0.0
    for j in range(x.size):
        s += A[i, j] * x[j]
    return s


@inline
def complete(P, S):
    """S.x <- S.x + N1 y with y from (along N1) y = S.y - along x; False if the tangents are normal to each other."""
    n, nv = P.N.shape
    for i in range(n):
        S.y[i, 0] -= dot_row(S.along, i, S.x)
        for j in range(n):
            S.A[i, j] = dot_row(S.along, i, P.N[j])
    factorise(S.A, S.order)
    solve(S.A, S.order, S.y)
    for i in range(n):
        for j in range(nv):
            S.x[j] += S.y[i, 0] * P.N[i, j]


# ------------------------------------------------------------------------------------------- the position


@inline
def start_from(ints, P, q, xi):
    """Write the coordinates q, moved by the increments xi in SI units, to the work array of a place."""
    w = open_head(ints, P.work)
    for k in range(q.size):
        w.q[k] = q[k]
    move_on(ints, P, xi)


@inline
def move_on(ints, P, xi):
    """Move the coordinates in the work array of a place by the increments xi in SI units."""
    tree, q = open_tree(ints), open_head(ints, P.work).q
    for i in range(ints[H_BASES], tree.shape[0]):
        joint_plus(tree[i, KIND], tree[i, NV], q, tree[i, Q0], xi, tree[i, V0], q)


@inline
def middle_speeds(ints, xi, h, v):
    """Speeds v (nv) in the middle of a step with the increments xi, SI units."""
    tree = open_tree(ints)
    for i in range(ints[H_BASES], tree.shape[0]):
        joint_mean_speeds(tree[i, KIND], tree[i, NV], xi, h, tree[i, V0], v)


@inline
def gaps(ints, floats, A, B, C, S, h):
    """-residual of all rows at the end B into S.goal; for rows of velocities h times that in the middle of the step."""
    for i in range(S.goal.size):
        S.goal[i] = -B.phi[i]
    if S.of_velocity.size > 0:
        tree, q0, q1 = open_tree(ints), open_head(ints, A.work).q, open_head(ints, B.work).q
        for i in range(ints[H_BASES], tree.shape[0]):
            joint_minus(tree[i, KIND], tree[i, NV], q0, q1, tree[i, Q0], S.xi, tree[i, V0])
        middle_speeds(ints, S.xi, h, C.v)
        for k in range(S.xi.size):
            S.xi[k] *= 0.5
        start_from(ints, C, q0, S.xi)
        put(ints, C, A.number[TIME] + 0.5 * h, C.v)
        rows_at(ints, floats, C, S)
        for n in range(S.of_velocity.size):
            k = S.of_velocity[n]
            S.goal[k] = -h * C.rate[k]


@inline
def close(ints, floats, A, B, C, S, h):
    """Solve for the position at the end B of a step from A; returns a status."""
    n, nv = A.N.shape
    for i in range(n):
        for j in range(nv):
            S.along[i, j] = dot_row(A.M, j, A.N[i])
    for i in range(A.kept.size):
        B.kept[i] = A.kept[i]
    for k in range(nv):
        S.xi[k] = h * A.v[k]
    start_from(ints, B, open_head(ints, A.work).q, S.xi)
    last = np.inf
    for _ in range(MOST):
        put(ints, B, A.number[TIME] + h, A.v)
        rows_at(ints, floats, B, S)
        factor_rows(B, False)
        if B.number[INDICATOR] == 0.0:
            return SINGULAR_END
        chord(ints, floats, A.work, B.work, h, S.load, S.far, A.d, B.d)
        natural(S, A.d)
        natural(S, B.d)
        gaps(ints, floats, A, B, C, S, h)
        smallest(B, S.goal, S.x)
        for i in range(n):
            total = 0.0
            for j in range(nv):
                total += A.N[i, j] * (A.p[j] + 0.5 * h * A.f[j] - A.d[j])
            S.y[i, 0] = h * total
        complete(B, S)
        size = 0.0
        for k in range(nv):
            size = max(size, abs(S.x[k]))
        if not size < FAR:
            return UNDEFINED if np.isnan(size) else NOT_CLOSED
        if size <= ROUNDING or (size < STALLED and size > SLOWEST * last):
            for k in range(nv):
                A.impulse[k] = A.d[k] - A.p[k] - 0.5 * h * A.f[k]
            return FINE
        last = size
        for k in range(nv):
            S.xi[k] = S.x[k] * S.unit[k]
        move_on(ints, B, S.xi)
    return NOT_CLOSED


# ------------------------------------------------------------------------------------------- the velocity


@inline
def end_speeds(ints, floats, A, B, S, h, moving_bases):
    """Solve for the speeds at the end B with its loads, which may depend on them; returns a status."""
    n, nv = B.N.shape
    w = open_head(ints, B.work)
    for k in range(nv):
        S.still[k] = 0.0
    if moving_bases:
        for k in range(nv):
            w.v[k] = 0.0
        momenta(ints, floats, B.work, S.load, S.still)
        natural(S, S.still)
    mass_at(ints, floats, B, S)
    for i in range(n):
        for j in range(nv):
            S.along[i, j] = dot_row(B.M, j, B.N[i])
    for k in range(nv):
        B.v[k] = A.v[k]
    last = np.inf
    for _ in range(MOST):
        put(ints, B, B.number[TIME], B.v)
        if S.of_velocity.size > 0:  # they may be nonlinear in the speeds
            rows_at(ints, floats, B, S)
        loads(ints, floats, B.work, S.load, B.f)
        natural(S, B.f)
        for i in range(S.goal.size):
            S.goal[i] = -B.phi_t[i]
        smallest(B, S.goal, S.x)
        for i in range(n):
            total = 0.0
            for j in range(nv):
                total += B.N[i, j] * (B.d[j] + 0.5 * h * B.f[j] - S.still[j])
            S.y[i, 0] = total
        complete(B, S)
        change, fastest = 0.0, 0.0
        for k in range(nv):
            change = max(change, abs(S.x[k] - B.v[k] / S.unit[k]))
            fastest = max(fastest, abs(S.x[k]))
            B.v[k] = S.x[k] * S.unit[k]
        if np.isnan(change):
            return UNDEFINED
        if change <= ROUNDING * fastest or (change < STALLED * fastest and change > SLOWEST * last):
            put(ints, B, B.number[TIME], B.v)
            momenta(ints, floats, B.work, S.load, B.p)
            natural(S, B.p)
            for k in range(nv):
                B.impulse[k] = B.p[k] - B.d[k] - 0.5 * h * B.f[k]
            return FINE
        last = change
    return UNSETTLED


@inline
def step(ints, floats, A, B, C, S, h, moving_bases):
    """Make a step of order two of the time h from place A to place B, with C for its middle; returns a status."""
    status = close(ints, floats, A, B, C, S, h)
    if status == FINE:
        add_multipliers(A, S)
        status = end_speeds(ints, floats, A, B, S, h, moving_bases)
    if status == FINE:
        add_multipliers(B, S)
    return status


@inline
def note_end(ints, start, there, end):
    """Write increments since the start and speeds to `end` (2 nv)."""
    tree, q0, q1, nv = open_tree(ints), open_head(ints, start.work).q, open_head(ints, there.work).q, there.v.size
    for i in range(ints[H_BASES], tree.shape[0]):
        joint_minus(tree[i, KIND], tree[i, NV], q0, q1, tree[i, Q0], end, tree[i, V0])
    for k in range(nv):
        end[nv + k] = there.v[k]


@kernel
def steps(ints, floats, first, second, third, middle, h, shares, moving_bases, ends):
    """Make sequences of steps of order two from the place `first`, to `second` and `third` by turns.

    A row of `shares` has the steps of a sequence as shares of the time h, then zeros; its end, increments and speeds,
    goes to a row of `ends`. The scratch is that of `middle`; its `total` has the multipliers of the last sequence,
    added to what is there if it is the only one. Returns a status, the number of sequences and of steps of the last one
    that were made, and the smallest indicator at their ends.
    """
    S, C = open_scratch(ints, floats, middle), open_place(ints, middle)
    start, one, two = open_place(ints, first), open_place(ints, second), open_place(ints, third)
    least = np.inf
    for n in range(shares.shape[0]):
        here, there, made = start, one, 0
        if n > 0:
            for i in range(S.total.size):
                S.total[i] = 0.0
        while made < shares.shape[1] and shares[n, made] != 0.0:
            there = one if made % 2 == 0 else two
            status = step(ints, floats, here, there, C, S, h * shares[n, made], moving_bases)
            if status != FINE:
                return status, n, made, least
            made += 1
            here, least = there, min(least, there.number[INDICATOR])
        note_end(ints, start, there, ends[n])
    return FINE, shares.shape[0], made, least


@inline
def smallest_in_mass(P, S):
    """S.x (nv): smallest motion in the mass metric with J x = S.goal."""
    n, nv = P.N.shape
    for i in range(n):
        S.y[i, 0] = 0.0
        for j in range(nv):
            S.along[i, j] = dot_row(P.M, j, P.N[i])
    smallest(P, S.goal, S.x)
    complete(P, S)


@kernel
def correct(ints, floats, work):
    """One linear correction of the coordinates, then of the speeds, in a place; False if undefined.

    Both are the smallest in the mass metric. All rows constrain positions.
    """
    P, S = open_place(ints, work), open_scratch(ints, floats, work)
    w = open_head(ints, P.work)
    for level in range(2):
        rows_at(ints, floats, P, S)
        factor_rows(P, True)
        mass_at(ints, floats, P, S)
        for i in range(S.goal.size):
            S.goal[i] = -P.phi[i] if level == 0 else -P.rate[i]
        smallest_in_mass(P, S)
        for k in range(S.x.size):
            S.xi[k] = S.x[k] * S.unit[k]
            if not np.isfinite(S.xi[k]):
                return False
        if level == 0:
            move_on(ints, P, S.xi)
        else:
            for k in range(S.x.size):
                w.v[k] += S.xi[k]
    return True
