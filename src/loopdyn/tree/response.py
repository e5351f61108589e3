"""Responses of a tree to generalised forces: M^-1 F with the factors of the articulated-body algorithm."""

from loopdyn.engine.jit import inline, kernel
from loopdyn.engine.records import ARM, DINV, NV, PARENT, SV, SW, UV, UW, V0, open_model, open_work
from loopdyn.forces.dispatch import add_loads
from loopdyn.spatial.plucker import add, cross, dot, get3, put3, scale
from loopdyn.tree.aba import inward, outward
from loopdyn.tree.jacobian import all_rows
from loopdyn.tree.kinematics import rigid_bodies


@inline
def respond(model, work, force, out, wrench, motion):
    """out = M^-1 force for one vector of nv generalised forces; `wrench`, `motion`: scratch (rows, 6).

    The recursion is that of the accelerations with `force` as the only load. `inward` of
    :mod:`loopdyn.tree.aba` must have been run at this state: U and 1/(S . U) are read from `work.dof`.
    """
    B, D = work.body, work.dof
    n = model.tree.shape[0]
    wrench[:, :] = 0.0
    for i in range(n - 1, model.n_bases - 1, -1):
        p, iv = model.tree[i, PARENT], model.tree[i, V0]
        pw, pv = get3(wrench, i, 0), get3(wrench, i, 3)
        for k in range(iv + model.tree[i, NV] - 1, iv - 1, -1):
            u = D[k, DINV] * (force[k] - dot(get3(D, k, SW), pw) - dot(get3(D, k, SV), pv))
            out[k] = u
            pw, pv = add(pw, scale(u, get3(D, k, UW))), add(pv, scale(u, get3(D, k, UV)))
        if p >= model.n_bases:
            pw = add(pw, cross(get3(B, i, ARM), pv))
            put3(wrench, p, 0, add(get3(wrench, p, 0), pw))
            put3(wrench, p, 3, add(get3(wrench, p, 3), pv))
    motion[: model.n_bases, :] = 0.0
    for i in range(model.n_bases, n):
        p, iv = model.tree[i, PARENT], model.tree[i, V0]
        aw = get3(motion, p, 0)
        av = add(get3(motion, p, 3), cross(aw, get3(B, i, ARM)))
        for k in range(iv, iv + model.tree[i, NV]):
            out[k] -= D[k, DINV] * (dot(get3(D, k, UW), aw) + dot(get3(D, k, UV), av))
            aw = add(aw, scale(out[k], get3(D, k, SW)))
            av = add(av, scale(out[k], get3(D, k, SV)))
        put3(motion, i, 0, aw)
        put3(motion, i, 3, av)


@kernel
def tree_terms(ints, floats, work, eta, zeta, J, rate, scratch):
    """eta, zeta^T and J at the state in `work`, gamma into `work`; returns a body without inertia, or -1."""
    model, data = open_model(ints, floats), open_work(ints, work)
    rigid_bodies(model, data)
    add_loads(model, data)
    status = inward(model, data)
    outward(model, data)
    for k in range(model.nv):
        eta[k] = data.a[k]
    all_rows(model, data, J, rate)
    for k in range(model.nc):  # [Anderson2003 eqs. (25), (28), (29)]: one column of zeta per multiplier
        respond(model, data, J[k], zeta[k], scratch[0], scratch[1])
    return status
