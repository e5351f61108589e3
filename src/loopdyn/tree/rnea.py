"""Recursive Newton-Euler algorithm: inverse dynamics in linear time [Featherstone2008 chapter 5]."""

from loopdyn.engine.jit import inline, kernel
from loopdyn.engine.records import (
    ARM,
    AV,
    AW,
    IH,
    IJ,
    IM,
    NV,
    PARENT,
    PV,
    PW,
    SV,
    SW,
    V0,
    open_model,
    open_work,
)
from loopdyn.forces.dispatch import add_loads
from loopdyn.spatial.plucker import add, add3, cross, dot, get3, get6, get9, inertia_times
from loopdyn.tree.kinematics import accelerations, rigid_bodies


@inline(always=True)
def wrenches(model, work):
    """Wrench that each joint must carry, PW and PV, about the body's reference point, for the motion in `work`.

    The rows of the bases receive the total wrench of all that they carry.
    """
    B = work.body
    for i in range(model.n_bases, model.tree.shape[0]):
        w, v = inertia_times(get6(B, i, IJ), get9(B, i, IH), get6(B, i, IM), get3(B, i, AW), get3(B, i, AV))
        add3(B, i, PW, w)
        add3(B, i, PV, v)
    for i in range(model.tree.shape[0] - 1, model.n_bases - 1, -1):
        p = model.tree[i, PARENT]
        force = get3(B, i, PV)
        add3(B, p, PW, add(get3(B, i, PW), cross(get3(B, i, ARM), force)))
        add3(B, p, PV, force)


@inline(always=True)
def inverse_dynamics(model, work, tau):
    """Generalised forces for the accelerations `work.a` into tau (nv), less loads on bodies, not on freedoms."""
    rigid_bodies(model, work)
    add_loads(model, work)
    accelerations(model, work)
    wrenches(model, work)
    for i in range(model.n_bases, model.tree.shape[0]):
        iv = model.tree[i, V0]
        w, v = get3(work.body, i, PW), get3(work.body, i, PV)
        for k in range(iv, iv + model.tree[i, NV]):
            tau[k] = dot(get3(work.dof, k, SW), w) + dot(get3(work.dof, k, SV), v) + model.armature[k] * work.a[k]


@kernel
def rnea(ints, floats, work):
    """Generalised forces needed for the accelerations `work.a` in addition to all loads; into `work.tau`."""
    model, data = open_model(ints, floats), open_work(ints, work)
    for k in range(model.nv):
        data.tau[k] = 0.0
    inverse_dynamics(model, data, data.tau)
    for k in range(model.nv):
        data.tau[k] -= data.load[k]
