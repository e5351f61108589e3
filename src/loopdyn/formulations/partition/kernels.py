"""Coordinate partitioning and its projective criterion, equation by equation.

Blajer, Schiehlen, Schirm 1994, "A projective criterion to the coordinate partitioning method for multibody dynamics".
:mod:`loopdyn.formulations.partition.formulation` chooses the coordinates between steps; this module has the computation
at every state.

====================  ====================  ==========================================================
paper                 code                  meaning
====================  ====================  ==========================================================
q_I, q_D              ``I`` (k), ``D`` (r)  which speeds are independent, which dependent
C, C_D                ``J[rows]``, ``CD``   Jacobian of the rows that are kept, its dependent columns (r, r)
a                     ``rate``              phi_t; as J v + phi_t the residual at velocity level
b                     ``-gamma``            right side at acceleration level
A, eta                ``A`` (r, k)          q'_D = A q'_I + eta
xi                    ``xi`` (r)            q''_D = A q''_I + xi
D = [1 A^T]           never formed          columns span the motions that the constraints allow
M, h                  ``M``, ``h``          of the tree, cut joints open
M_d, h_d              ``Md``, ``hd``        of the minimal equations; ``Md`` is overwritten by its Cholesky factor
M^-1(i, i)            ``free`` (nv)         mobility of coordinate i in the open tree
cos^2 alpha_i         ``cosine`` (nv)       the criterion
====================  ====================  ==========================================================

Deviations:

* Coordinates and speeds are those of the tree; partition and criterion act on columns of speeds, so quaternions need
  no special treatment. Rows are those of all cut joints, constraints and drivers; of redundant ones r are kept.
* Nothing is permuted: the lists I and D are addresses, as the paper recommends below (6).
* xi = -C_D^-1 b and eta = -C_D^-1 a as in section 2; section 4 prints both with the wrong sign.
* v_D is corrected, v_D <- v_D - C_D^-1 (C v + a), which is (7) where rows are affine in the speeds and a Newton step
  for those that are not.
* k_i of (16)-(23) is the dual base vector, whose squared length is M^-1(i, i).
* M may be singular as long as M_d is not. In the criterion a coordinate without inertia in the open tree is given a
  very small one: its projection is nearly zero, as in the limit of vanishing mass.
"""

import numpy as np

from loopdyn.engine.dense import cholesky, factorise, solve, solve_cholesky
from loopdyn.engine.jit import inline, kernel
from loopdyn.engine.records import H_SOLVER, KIND, NV, Q0, V0, open_model, open_work
from loopdyn.engine.status import AGAIN, FINE, NO_INERTIA, NOT_A_NUMBER, NOT_CLOSED, SINGULAR_SET
from loopdyn.formulations.partition.layout import (
    BY_INERTIA,
    FASTEST,
    FULL,
    GAIN,
    JUMP,
    P_AFFINE,
    P_FORM,
    P_WEIGHING,
    PIVOT,
    PIVOT_CHOSEN,
    SIGN,
    SIGN_CHOSEN,
    TWO_K,
    open_partition,
)
from loopdyn.joints.dispatch import joint_plus
from loopdyn.thresholds import NEARLY_CLOSED
from loopdyn.tree.crba import composite, mass_matrix
from loopdyn.tree.jacobian import all_rows
from loopdyn.tree.kinematics import kinematics
from loopdyn.tree.rnea import inverse_dynamics

CLOSING_STEPS = 10  # largest number of Newton steps for positions; a good start needs two or three
LAST_CORRECTION = 1e-13  # natural units: a correction below it is the last one
# Largest error of dependent speeds before they are corrected, as a fraction of the fastest speed, and speed, in natural
# units per s, below which the mechanism is at rest. A larger error is not one of the step but a switch to another
# branch. Where all speeds pass zero together, as drivers may prescribe, they are compared with SLOW of the fastest so
# far: errors within the tolerance of a step are much smaller.
SMOOTH, AT_REST, SLOW = 0.3, 1e-9, 1e-3
# Fraction of the smallest pivot of C_D at the choice, below which rows and coordinates are chosen again.
WEAK_PIVOT = 0.1
# Smallest inertia of a coordinate in the criterion: fraction of its own terms, and of the largest one in natural units.
LEAST_SHARE, LEAST = 1e-12, 1e-18


# ------------------------------------------------------------------------------------------------- kinematics


@inline
def rows_at(model, data, P):
    """J, rate and gamma of all rows at the state."""
    kinematics(model, data)
    all_rows(model, data, P.J, P.rate)


@inline
def take_dependent(P):
    """Factors of C_D, the dependent columns of the rows that are kept."""
    for i in range(P.rows.shape[0]):
        n = P.rows[i]
        for j in range(P.D.shape[0]):
            P.CD[i, j] = P.J[n, P.D[j]] / P.row_unit[n]
    P.notes[SIGN], P.notes[PIVOT] = factorise(P.CD, P.order)


@inline
def dependent_speeds(data, P):
    """v_D from v_I: v_D is corrected so that the residual J v + phi_t vanishes [Blajer1994 eq. (7)]."""
    for i in range(P.rows.shape[0]):
        P.xi[i, 0] = P.rate[P.rows[i]] / P.row_unit[P.rows[i]]
    solve(P.CD, P.order, P.xi)
    jump, fastest = 0.0, max(AT_REST, SLOW * P.notes[FASTEST].real)
    for j in range(P.D.shape[0]):
        data.v[P.D[j]] -= P.xi[j, 0]
        x = P.xi[j, 0].real / P.unit[P.D[j]]
        jump = max(jump, np.sqrt(x * x))
    for i in range(data.v.shape[0]):
        x = data.v[i].real / P.unit[i]
        fastest = max(fastest, np.sqrt(x * x))
    P.notes[JUMP] = jump / fastest


@inline
def dependent_corrections(data, P):
    """P.xi <- -C_D^-1 phi without rows that constrain velocities alone; returns the largest entry in natural units."""
    for i in range(P.rows.shape[0]):
        n = P.rows[i]
        P.xi[i, 0] = -data.phi[n] / P.row_unit[n] if P.holonomic[n] == 1 else 0.0
    solve(P.CD, P.order, P.xi)
    largest = 0.0
    for j in range(P.D.shape[0]):
        x = P.xi[j, 0].real / P.unit[P.D[j]]
        largest = max(largest, x * x)
    return np.sqrt(largest)


@inline
def move(model, data, motion):
    """q <- q (+) motion."""
    q = data.q
    for i in range(model.n_bases, model.tree.shape[0]):
        joint_plus(model.tree[i, KIND], model.tree[i, NV], q, model.tree[i, Q0], motion, model.tree[i, V0], q)


@inline
def dependent_positions(model, data, P):
    """q_D from q_I: phi(t, q_I, q_D) = 0 solved for q_D by Newton's method with one factorisation [Blajer1994 eq. (2)].

    The start is the integrated q_D, so the assembly branch is kept.
    """
    before = np.inf
    for step in range(CLOSING_STEPS):
        rows_at(model, data, P)
        if step == 0:
            take_dependent(P)
        largest = dependent_corrections(data, P)
        if not largest < before:
            break
        before = largest
        P.motion[:] = 0.0
        for j in range(P.D.shape[0]):
            P.motion[P.D[j]] = P.xi[j, 0]
        move(model, data, P.motion)
        if largest < LAST_CORRECTION:
            break
    return before < NEARLY_CLOSED


# --------------------------------------------------------------------------------------------------- dynamics


@inline
def tree_dynamics(model, data, P):
    """M and h of the open tree [Blajer1994 eq. (1)]."""
    for k in range(model.nv):
        data.a[k] = 0.0
    inverse_dynamics(model, data, P.h)
    for k in range(model.nv):
        P.h[k] = data.load[k] - P.h[k]
    composite(model, data)
    mass_matrix(model, data, P.M)


@inline
def dependence(data, P):
    """A = -C_D^-1 C_I and xi = -C_D^-1 b [Blajer1994 eqs. (7), (8)]."""
    for i in range(P.rows.shape[0]):
        n = P.rows[i]
        for m in range(P.I.shape[0]):
            P.A[i, m] = -P.J[n, P.I[m]] / P.row_unit[n]
        P.xi[i, 0] = data.gamma[n] / P.row_unit[n]
    solve(P.CD, P.order, P.A)
    solve(P.CD, P.order, P.xi)


@inline
def minimal_mass(P):
    """M_d = D M D^T, factorised [Blajer1994 eq. (13)]; False if it is not positive definite."""
    k, r = P.I.shape[0], P.D.shape[0]
    for i in range(P.M.shape[0]):
        for m in range(k):
            P.MD[i, m] = P.M[i, P.I[m]]
        for j in range(r):
            x = P.M[i, P.D[j]]
            for m in range(k):
                P.MD[i, m] += x * P.A[j, m]
    for n in range(k):
        for m in range(k):
            P.Md[n, m] = P.MD[P.I[n], m]
    for j in range(r):
        for n in range(k):
            x = P.A[j, n]
            for m in range(k):
                P.Md[n, m] += x * P.MD[P.D[j], m]
    return cholesky(P.Md)


@inline
def minimal_motion(P, h, out):
    """out = D^T z + [0; xi] with M_d z = D (h - M [0; xi]) [Blajer1994 eqs. (12), (14), (10)].

    Among all motions whose dependent part is xi for zero independent ones, it is the motion driven by h; with h = 0 the
    smallest in the mass metric.
    """
    k, r = P.I.shape[0], P.D.shape[0]
    for i in range(P.M.shape[0]):
        x = h[i]
        for j in range(r):
            x -= P.M[i, P.D[j]] * P.xi[j, 0]
        out[i] = x
    for m in range(k):
        P.hd[m] = out[P.I[m]]
    for j in range(r):
        x = out[P.D[j]]
        for m in range(k):
            P.hd[m] += P.A[j, m] * x
    solve_cholesky(P.Md, P.hd)
    for m in range(k):
        out[P.I[m]] = P.hd[m]
    for j in range(r):
        x = P.xi[j, 0]
        for m in range(k):
            x += P.A[j, m] * P.hd[m]
        out[P.D[j]] = x


@kernel
def accelerate(ints, floats, work):
    """Accelerations `work.a` at the state in `work`, whose dependent part is first computed as the form requires."""
    model, data = open_model(ints, floats), open_work(ints, work)
    P = open_partition(ints, floats, work)
    o = ints[H_SOLVER]
    form, affine = ints[o + P_FORM], ints[o + P_AFFINE] == 1
    if form == TWO_K and not dependent_positions(model, data, P):
        return NOT_CLOSED
    if form != FULL:
        rows_at(model, data, P)
        take_dependent(P)
        dependent_speeds(data, P)
    tree_dynamics(model, data, P)
    all_rows(model, data, P.J, P.rate)
    if form == FULL or not affine:
        take_dependent(P)
    dependence(data, P)
    sound = minimal_mass(P)
    minimal_motion(P, P.h, data.a)
    total = 0.0
    for i in range(model.nv):
        total += data.a[i].real
    if not np.isfinite(total):
        return NOT_A_NUMBER if P.notes[PIVOT].real > 0.0 else SINGULAR_SET
    if form != FULL and (P.notes[SIGN].real != P.notes[SIGN_CHOSEN].real or P.notes[JUMP].real > SMOOTH):
        return SINGULAR_SET  # the set became singular during the step
    return FINE if sound else NO_INERTIA


@kernel
def correct(ints, floats, work):
    """One linear correction of the positions in `work`, smallest in the mass metric; speeds follow from v_I."""
    model, data = open_model(ints, floats), open_work(ints, work)
    P = open_partition(ints, floats, work)
    status = accelerate(ints, floats, work)
    if status == FINE:
        dependent_corrections(data, P)
        P.nothing[:] = 0.0
        minimal_motion(P, P.nothing, P.motion)
        move(model, data, P.motion)
    return status


# -------------------------------------------------------------------------------------------------- criterion


@inline
def mobilities(P):
    """M^-1(i, i) into `free`: M = L^T L along the paths of the tree, then the lengths of the rows of L^-1.

    Entries of L exist between a freedom and those towards its root alone [Featherstone2008 section 6.5].
    """
    M, L, n = P.M, P.L, P.M.shape[0]
    largest = 0.0
    for k in range(n):
        largest = max(largest, M[k, k].real * P.unit[k] * P.unit[k])
        j = k
        while j >= 0:
            L[k, j] = M[k, j]
            j = P.above[j]
    for k in range(n - 1, -1, -1):
        least = max(LEAST_SHARE * M[k, k].real, LEAST * largest / (P.unit[k] * P.unit[k]))
        if not L[k, k].real > least:
            L[k, k] = least
        L[k, k] = np.sqrt(L[k, k])
        i = P.above[k]
        while i >= 0:
            L[k, i] /= L[k, k]
            i = P.above[i]
        i = P.above[k]
        while i >= 0:
            j = i
            while j >= 0:
                L[i, j] -= L[k, i] * L[k, j]
                j = P.above[j]
            i = P.above[i]
    for k in range(n):
        x = P.motion
        x[k] = 1.0 / L[k, k]
        P.free[k] = x[k] * x[k]
        j = P.above[k]
        while j >= 0:
            total = 0.0
            i = k
            while i != j:
                total += x[i] * L[i, j]
                i = P.above[i]
            x[j] = -total / L[j, j]
            P.free[k] += x[j] * x[j]
            j = P.above[j]


@inline
def tangent_projections(P):
    """cos^2 alpha_i = |R^-1 D_i|^2 / M^-1(i, i) with M_d = R R^T, D_i column i of D [Blajer1994 eq. (23a)]."""
    k, x = P.I.shape[0], P.hd
    for m in range(k):
        x[:] = 0.0
        x[m] = 1.0
        P.cosine[P.I[m]] = _length(P.Md, x, m) / P.free[P.I[m]]
    for j in range(P.D.shape[0]):
        x[:] = P.A[j]
        P.cosine[P.D[j]] = _length(P.Md, x, 0) / P.free[P.D[j]]


@inline
def _length(R, x, first):
    """|R^-1 x|^2, x zero before `first`; x is overwritten."""
    total = 0.0
    for i in range(first, x.shape[0]):
        for j in range(first, i):
            x[i] -= R[i, j] * x[j]
        x[i] /= R[i, i]
        total += x[i] * x[i]
    return total


@inline
def best_exchange(P):
    """Largest factor by which the measure of the set grows when one coordinate is replaced by another.

    With N_ij = G_ij / sqrt(free_i free_j), G = D^T M_d^-1 D of rank k, the columns I of G are D^T G_II. So det N_II
    is multiplied by A_ji^2 free_i / free_j where j takes the place of i; for k = 1 that is cos^2 alpha_j over
    cos^2 alpha_i.
    """
    best = 0.0
    for j in range(P.D.shape[0]):
        weight = P.candidate[P.D[j]] / P.free[P.D[j]].real
        for m in range(P.I.shape[0]):
            gain = (P.A[j, m] * P.A[j, m]).real * weight * P.free[P.I[m]].real
            if gain > best:
                best = gain
    return best


@kernel
def check(ints, floats, work):
    """AGAIN if other coordinates or rows should be chosen after an accepted step; `accelerate` was just run.

    Leaves the criterion in `cosine` and the gain of the best exchange in `notes`.
    """
    P, v = open_partition(ints, floats, work), open_work(ints, work).v
    for i in range(v.shape[0]):
        x = v[i].real / P.unit[i]
        P.notes[FASTEST] = max(P.notes[FASTEST].real, np.sqrt(x * x))
    if ints[ints[H_SOLVER] + P_WEIGHING] == BY_INERTIA:
        mobilities(P)
        tangent_projections(P)
    else:
        for i in range(P.free.shape[0]):
            P.free[i] = P.unit[i] * P.unit[i]
    P.notes[GAIN] = best_exchange(P)
    if P.notes[GAIN].real > P.switch[0]:
        return AGAIN
    return AGAIN if P.notes[PIVOT].real < WEAK_PIVOT * P.notes[PIVOT_CHOSEN].real else FINE
