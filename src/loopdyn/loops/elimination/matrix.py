"""The matrix of the multipliers: terms of relations between coordinates, factorisation, residuals of relations."""

from loopdyn.engine.jit import inline
from loopdyn.engine.records import (
    AV,
    AW,
    C_CHILD,
    C_KIND,
    C_PARENT,
    E_CUT,
    E_FREEDOM,
    L_COUNT,
    L_FIRST,
    L_ROW,
)
from loopdyn.joints.dispatch import joint_wrench
from loopdyn.loops.elimination.layout import (
    DROPPED,
    FIRST_ROW,
    MATRIX_ONLY,
    R_CHILD,
    R_PARENT,
    R_RESPONSE,
    ROWS,
    SMALLEST_PIVOT,
    START,
)
from loopdyn.loops.elimination.ldl import factor
from loopdyn.loops.elimination.rows import add_column, at_point
from loopdyn.spatial.plucker import (
    dot,
    get3,
    neg,
    put3,
    scale,
)
from loopdyn.tree.jacobian import freedom_of_cut, linear_terms, pair


@inline(always=True)
def fill_relations(model, work, plan, E):
    """Columns and right sides of relations between coordinates; a tree coordinate enters by its response."""
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


@inline(always=True)
def factor_matrix(plan, E):
    """Factorise the matrix of multipliers; note the smallest pivot relative to its diagonal entry, and rows dropped."""
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


@inline(always=True)
def relation_acceleration(model, work, plan, E, n):
    """Acceleration residual of relation n between coordinates, and the size of its terms."""
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
