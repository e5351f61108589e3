"""Articulated-body algorithm: accelerations of a tree in linear time [Featherstone2008 chapter 7].

Inward, each freedom is eliminated by a scalar pivot: with the articulated inertia I and bias p of body i,

    U = I S,  d = S . U + G,  u = (tau - S . p) / d,  I <- I - U U^T / d,  p <- p + U u

with G the armature of the freedom; the remaining inertia and bias are shifted to the parent. Outward,
a = u - U . a' / d with a' the acceleration accumulated so far.
"""

from loopdyn.engine.jit import inline, kernel
from loopdyn.engine.records import (
    ARM,
    AV,
    AW,
    CV,
    CW,
    DINV,
    IH,
    IJ,
    IM,
    KIND,
    LOAD,
    NV,
    PARENT,
    PV,
    PW,
    SV,
    SW,
    UV,
    UW,
    V0,
    open_model,
    open_work,
)
from loopdyn.engine.status import FINE
from loopdyn.forces.dispatch import add_loads
from loopdyn.joints.dispatch import is_pin
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
    rot_t,
    scale,
    shift_inertia,
    subtract_dyad,
    symv,
)
from loopdyn.tree.kinematics import rigid_bodies

# A pivot below this fraction of the inertia it is part of is rounding: a rod about its own line, a massless body.
PIVOT = 1e-13


@inline
def eliminate_pin(D, k, size, load, armature, J, H, pw):
    """Eliminate a rotation about the reference point; `size`: trace of J before the joint's first freedom is."""
    s = get3(D, k, SW)
    uw, uv = symv(J, s), rot_t(H, s)
    pivot = dot(s, uw) + armature
    sound = pivot.real > PIVOT * (dot(s, s) * size).real
    d = 1.0 / pivot
    u = (load - dot(s, pw)) * d
    put3(D, k, UW, uw)
    put3(D, k, UV, uv)
    D[k, DINV] = d
    D[k, LOAD] = u
    return sound, d, u, uw, uv


@inline
def eliminate(D, k, size_w, size_v, load, armature, J, H, M, pw, pv):
    """Eliminate any freedom; `size_w`, `size_v`: traces of J and M before any freedom of this joint is eliminated."""
    sw, sv = get3(D, k, SW), get3(D, k, SV)
    uw, uv = inertia_times(J, H, M, sw, sv)
    pivot = dot(sw, uw) + dot(sv, uv) + armature
    sound = pivot.real > PIVOT * (dot(sw, sw) * size_w + dot(sv, sv) * size_v).real
    d = 1.0 / pivot
    u = (load - dot(sw, pw) - dot(sv, pv)) * d
    put3(D, k, UW, uw)
    put3(D, k, UV, uv)
    D[k, DINV] = d
    D[k, LOAD] = u
    return sound, d, u, uw, uv


@inline(always=True)
def propagate_to_parent(B, i, p, J, H, M, pw, pv):
    """Add the remaining inertia and bias of body i to its parent p, about the parent's reference point."""
    r = get3(B, i, ARM)
    J, H, M = shift_inertia(J, H, M, r)
    add6(B, p, IJ, J)
    add9(B, p, IH, H)
    add6(B, p, IM, M)
    add3(B, p, PW, add(pw, cross(r, pv)))
    add3(B, p, PV, pv)


@inline(always=True)
def inward(model, work):
    """Articulated inertias from the tips to the root; returns the row of a body whose pivot vanishes, or FINE."""
    B, D = work.body, work.dof
    status = FINE
    for i in range(model.tree.shape[0] - 1, model.n_bases - 1, -1):
        p, iv = model.tree[i, PARENT], model.tree[i, V0]
        J, H, M = get6(B, i, IJ), get9(B, i, IH), get6(B, i, IM)
        cw, cv = get3(B, i, CW), get3(B, i, CV)
        bw, bv = inertia_times(J, H, M, cw, cv)
        pw, pv = add(get3(B, i, PW), bw), add(get3(B, i, PV), bv)
        if is_pin(model.tree[i, KIND]):
            size, load, armature = J[0] + J[1] + J[2], work.load[iv], model.armature[iv]
            sound, d, u, uw, uv = eliminate_pin(D, iv, size, load, armature, J, H, pw)
            if not sound:
                status = i
            J, H, M = subtract_dyad(J, H, M, d, uw, uv)
            pw, pv = add(pw, scale(u, uw)), add(pv, scale(u, uv))
        else:
            size_w, size_v = J[0] + J[1] + J[2], M[0] + M[1] + M[2]
            for k in range(iv + model.tree[i, NV] - 1, iv - 1, -1):
                load, armature = work.load[k], model.armature[k]
                sound, d, u, uw, uv = eliminate(D, k, size_w, size_v, load, armature, J, H, M, pw, pv)
                if not sound:
                    status = i
                J, H, M = subtract_dyad(J, H, M, d, uw, uv)
                pw, pv = add(pw, scale(u, uw)), add(pv, scale(u, uv))
        if p >= model.n_bases:
            propagate_to_parent(B, i, p, J, H, M, pw, pv)
    return status


@inline(always=True)
def outward(model, work):
    """Accelerations from the root to the tips."""
    B, D = work.body, work.dof
    for i in range(model.n_bases, model.tree.shape[0]):
        p, iv = model.tree[i, PARENT], model.tree[i, V0]
        aw = get3(B, p, AW)
        av = add(get3(B, p, AV), cross(aw, get3(B, i, ARM)))
        # U contains the bias already (p was shifted by I c), so a' leaves c out until the end
        if is_pin(model.tree[i, KIND]):
            a = D[iv, LOAD] - D[iv, DINV] * (dot(get3(D, iv, UW), aw) + dot(get3(D, iv, UV), av))
            work.a[iv] = a
            aw = add(aw, scale(a, get3(D, iv, SW)))
        else:
            for k in range(iv, iv + model.tree[i, NV]):
                a = D[k, LOAD] - D[k, DINV] * (dot(get3(D, k, UW), aw) + dot(get3(D, k, UV), av))
                work.a[k] = a
                aw = add(aw, scale(a, get3(D, k, SW)))
                av = add(av, scale(a, get3(D, k, SV)))
        put3(B, i, AW, add(aw, get3(B, i, CW)))
        put3(B, i, AV, add(av, get3(B, i, CV)))


@inline(always=True)
def articulated_body(model, work):
    """Accelerations `work.a` of the tree at (t, q, v, tau); returns the row of a body without inertia, or -1."""
    rigid_bodies(model, work)
    if model.force.shape[0] > 0:
        add_loads(model, work)
    else:  # saves a small mechanism the call
        for k in range(model.nv):
            work.load[k] = work.tau[k]
    status = inward(model, work)
    outward(model, work)
    return status


@kernel(short_loops=True)
def aba(ints, floats, work):
    """`articulated_body` on packed arrays: the state is read from and the result written to `work`."""
    return articulated_body(open_model(ints, floats), open_work(ints, work))
