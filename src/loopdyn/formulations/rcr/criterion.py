"""Criterion for the choice of coordinates of `rcr`, group by group.

Paper, symbols and deviations: :mod:`loopdyn.formulations.rcr.kernels`.
"""

from __future__ import annotations

from loopdyn.engine.jit import inline, kernel
from loopdyn.engine.records import ARM, DINV, IH, IJ, IM, NV, PARENT, SV, SW, UV, UW, V0, open_model, open_work
from loopdyn.engine.status import AGAIN, FINE
from loopdyn.formulations.rcr.layout import (
    G_FREEDOMS,
    G_STEPS,
    G_STEPS_END,
    G_TENTATIVE,
    GAIN,
    PIVOT,
    open_cells,
    open_numbers,
)
from loopdyn.spatial.plucker import (
    add,
    add6,
    add9,
    dot,
    get3,
    get6,
    get9,
    inertia_times,
    neg,
    put3,
    put6,
    put9,
    scale,
    shift_inertia,
    sub,
    subtract_dyad,
)
from loopdyn.tree.kinematics import rigid_bodies

WEAK_PIVOT = 0.1  # fraction of the pivot at the choice, below which rows and coordinates are chosen again
# Smallest inertia of a freedom in the criterion, as a fraction of the largest term of its inertia.
LEAST_SHARE = 1e-12


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
    algorithm a = u - U . a' / d with u of variance 1/d and independent of all bodies inward: so variances are computed
    outward, body by body. `spread` is the covariance of a body's acceleration, (linear, mixed, angular) blocks.
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
    """Largest factor by which the measure of a set grows when one independent speed is replaced by another.

    Replacing i by j multiplies Q by E_ji^2 free_i / free_j (see blajer.best_exchange).
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
    """AGAIN if other coordinates or rows should be chosen after an accepted step; `accelerate` was just run.

    Leaves the mobilities in `free` and the gain of the best exchange in `notes`.
    """
    model, data = open_model(ints, floats), open_work(ints, work)
    P, G = open_cells(ints), open_numbers(ints, floats, work)
    rigid_bodies(model, data)
    mobilities(model, data, G)
    G.notes[GAIN] = best_exchange(model, P, G)
    if G.notes[GAIN].real > G.switch[0]:
        return AGAIN
    return AGAIN if G.notes[PIVOT].real < WEAK_PIVOT else FINE
