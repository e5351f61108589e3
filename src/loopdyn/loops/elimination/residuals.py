"""Residuals of the rows at position, velocity and acceleration level; solutions are refined and checked by them."""

import numpy as np

from loopdyn.engine.jit import inline
from loopdyn.engine.records import (
    AV,
    AW,
    C_CHILD,
    C_PARENT,
    C_ROW,
    C_ROWS,
    L_ROW,
)
from loopdyn.loops.elimination.layout import (
    SMALLEST_PIVOT,
)
from loopdyn.loops.elimination.matrix import relation_acceleration
from loopdyn.loops.elimination.rows import at_point
from loopdyn.spatial.plucker import (
    dot,
    get3,
    sub,
)
from loopdyn.tree.jacobian import linear_terms, pair

# Refinement ends when the residual is this fraction of the terms whose difference it is (at a well-conditioned pose),
# when it is rounding, or after MOST_REFINEMENTS iterations.
RESIDUAL_GOAL = 1e-12
RESIDUAL_ROUNDING = 4e-15


# Initial value of `found` in `note_residual`.
NOTHING_FOUND = (0.0, 0.0, 0.0, 0.0)


@inline(always=True)
def note_residual(E, index, missing, size, found):
    """Store the residual of a row, a difference of terms of this size; returns `found` updated by this row.

    `found` has the largest values so far: residual and size of terms of the rows that are kept, both squared in the
    metric of the matrix, in which rows of any unit are comparable; residual of the rows that were dropped, before or by
    the elimination; size of the terms of all rows.
    """
    E.step[index] = missing
    kept, terms, dropped, all_terms = found
    if index >= E.pivot.shape[0] or E.inverse[index] == 0.0:
        dropped = max(dropped, abs(missing.real))
    else:
        whole = E.diagonal[index].real
        kept = max(kept, missing.real * missing.real / whole)
        terms = max(terms, size * size / whole)
    return kept, terms, dropped, max(all_terms, size)


@inline(always=True)
def row_accelerations(model, work, plan, E, begin, end, found):
    """Acceleration residuals of the cuts `begin` to `end` of `plan.cut_order`, into `E.step`; bases do not count.

    Returns `found` updated by these rows, see `note_residual`.
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
            found = note_residual(E, plan.index[k], right - at_child + at_parent, size, found)
    return found


@inline(always=True)
def largest_relative_residual(model, work, plan, E, found):
    """Largest residual relative to the terms whose difference it is: of the rows kept, and of the rows dropped.

    Rows that were dropped depend on others and must agree with them. They are compared with the largest terms of all
    rows, since those of one row may vanish. `found` contains the rows of the cuts already.
    """
    for n in range(model.linear.shape[0]):
        missing, size = relation_acceleration(model, work, plan, E, n)
        found = note_residual(E, plan.index[model.linear[n, L_ROW]], missing, size, found)
    kept, terms, dropped, all_terms = found
    worst = np.sqrt(kept / terms) if terms > 0.0 else 0.0
    return worst, dropped / all_terms if all_terms > 0.0 else 0.0


@inline(always=True)
def residual_goal(E):
    """Residual at which refinement ends: the smallest pivot amplifies it by its inverse root."""
    return max(RESIDUAL_GOAL * np.sqrt(E.diagnostics[SMALLEST_PIVOT].real), RESIDUAL_ROUNDING)


@inline(always=True)
def position_residuals(model, work, plan, E):
    """Negative position residual of every row, into `E.step`; `constraint_rows` must have been run."""
    for n in range(model.cut.shape[0]):
        for k in range(model.cut[n, C_ROW], model.cut[n, C_ROW] + model.cut[n, C_ROWS]):
            E.step[plan.index[k]] = -work.phi[k]
    for n in range(model.linear.shape[0]):
        E.step[plan.index[model.linear[n, L_ROW]]] = -linear_terms(model, work, n)[0]


@inline(always=True)
def velocity_residuals(model, work, plan, E):
    """Negative velocity residual of every row, into `E.step`; `constraint_rows` must have been run."""
    for n in range(model.cut.shape[0]):
        _, _, _, _, wF, wM, v, _ = pair(model, work, n)
        w = sub(wM, wF)
        for k in range(model.cut[n, C_ROW], model.cut[n, C_ROW] + model.cut[n, C_ROWS]):
            rate = dot(get3(work.rows, k, 0), w) + dot(get3(work.rows, k, 3), v) + work.phi_t[k]
            E.step[plan.index[k]] = -rate
    for n in range(model.linear.shape[0]):
        E.step[plan.index[model.linear[n, L_ROW]]] = -linear_terms(model, work, n)[1]


@inline(always=True)
def largest_residual_motion(E):
    """Largest entry of `E.step` in the metric of the matrix: the size of the motion that corrects it."""
    worst = 0.0
    for k in range(E.pivot.shape[0]):
        if E.inverse[k] != 0.0:
            worst = max(worst, abs(E.step[k].real) / np.sqrt(E.diagonal[k].real))
    return worst
