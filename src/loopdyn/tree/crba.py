"""Composite-rigid-body algorithm: the mass matrix of a tree [Featherstone2008 chapter 6]."""

from loopdyn.engine.jit import inline, kernel
from loopdyn.engine.records import (
    ARM,
    IH,
    IJ,
    IM,
    NV,
    PARENT,
    SV,
    SW,
    V0,
    open_model,
    open_work,
)
from loopdyn.spatial.plucker import add, add6, add9, cross, dot, get3, get6, get9, inertia_times, shift_inertia


@inline(always=True)
def composite(model, work):
    """Composite inertia of all bodies that a joint carries, about the reference point of its body: IJ, IH, IM."""
    B = work.body
    for i in range(model.tree.shape[0] - 1, model.n_bases - 1, -1):
        p = model.tree[i, PARENT]
        if p >= model.n_bases:
            J, H, M = shift_inertia(get6(B, i, IJ), get9(B, i, IH), get6(B, i, IM), get3(B, i, ARM))
            add6(B, p, IJ, J)
            add9(B, p, IH, H)
            add6(B, p, IM, M)


@inline(always=True)
def mass_matrix(model, work, M):
    """M (nv, nv), symmetric, from the composite inertias: column by column along the path to the root."""
    B, D = work.body, work.dof
    M[:, :] = 0.0
    for i in range(model.n_bases, model.tree.shape[0]):
        J, H, Q = get6(B, i, IJ), get9(B, i, IH), get6(B, i, IM)
        for k in range(model.tree[i, V0], model.tree[i, V0] + model.tree[i, NV]):
            w, f = inertia_times(J, H, Q, get3(D, k, SW), get3(D, k, SV))
            j = i
            while j >= model.n_bases:
                for n in range(model.tree[j, V0], model.tree[j, V0] + model.tree[j, NV]):
                    m = dot(get3(D, n, SW), w) + dot(get3(D, n, SV), f)
                    M[k, n] = m
                    M[n, k] = m
                w = add(w, cross(get3(B, j, ARM), f))
                j = model.tree[j, PARENT]
            M[k, k] += model.armature[k]


@kernel
def crba(ints, floats, work, M):
    """Mass matrix into M (nv, nv), from the poses and inertias of the bodies in `work`, which are overwritten."""
    model, data = open_model(ints, floats), open_work(ints, work)
    composite(model, data)
    mass_matrix(model, data, M)
