"""Momenta of all bodies: of a motion, and of the chord between two poses; loads without velocity terms.

A body that moves freely from the pose (c0, R0) of its centre of mass and axes to (c1, R1) in the time h has the
momentum and the angular momentum about its centre of mass, in world axes,

    P = m (c1 - c0) / h,    L = R0 (mu + 1/2 psi x mu + 1/4 (psi . mu) psi),    mu = I psi / h,    R0^T R1 = cay(psi)

the same at both ends: the discrete Legendre transform of m |c1 - c0|^2 / 2h + psi . I psi / 2h, with Cayley's map
cay(psi) = 1 + 4 / (4 + |psi|^2) (psi^ + psi^ psi^ / 2). No inverse of the inertia is needed. A rotor of inertia G that
turns with a coordinate has the momentum G (q1 - q0) / h along it.
"""

from loopdyn.engine.jit import inline, kernel
from loopdyn.engine.records import (
    ARM,
    COM,
    INERTIA,
    MASS,
    NV,
    PARENT,
    PV,
    PW,
    Q0,
    SV,
    SW,
    V0,
    R,
    W,
    X,
    open_model,
    open_work,
)
from loopdyn.forces.dispatch import add_loads
from loopdyn.spatial.plucker import (
    add,
    add3,
    cross,
    dot,
    get3,
    get6,
    get9,
    mul,
    neg,
    put3,
    rot,
    rot_t,
    scale,
    sub,
    symv,
    transpose,
)
from loopdyn.tree.energies import centre_of_mass
from loopdyn.tree.kinematics import ZERO, kinematics


@inline
def gather(model, work, load, out):
    """Project momenta of, or loads on, all bodies onto the freedoms of the tree, into out (nv).

    `load` (bodies, 6) has the torque about the body's reference point and the force, and is overwritten.
    """
    B = work.body
    for i in range(model.tree.shape[0] - 1, model.n_bases - 1, -1):
        p, iv = model.tree[i, PARENT], model.tree[i, V0]
        torque, force = get3(load, i, 0), get3(load, i, 3)
        for k in range(iv, iv + model.tree[i, NV]):
            out[k] = dot(get3(work.dof, k, SW), torque) + dot(get3(work.dof, k, SV), force)
        add3(load, p, 0, add(torque, cross(get3(B, i, ARM), force)))
        add3(load, p, 3, force)


@inline
def put_about_reference(model, work, i, load, spin, momentum):
    """Row i of `load` from an angular momentum about the centre of mass and a momentum, at the pose in `work`."""
    c = rot(get9(work.body, i, R), get3(model.body, i, COM))
    put3(load, i, 0, add(spin, cross(c, momentum)))
    put3(load, i, 3, momentum)


@inline
def clear_bases(model, load):
    """Set the momenta of the bases to zero."""
    for i in range(model.n_bases):
        put3(load, i, 0, ZERO)
        put3(load, i, 3, ZERO)


@kernel
def momenta(ints, floats, work, load, out):
    """Generalised momenta out (nv) of the motion (t, q, v) in `work`, including that due to moving bases.

    `load` (bodies, 6) is scratch.
    """
    model, data = open_model(ints, floats), open_work(ints, work)
    kinematics(model, data)
    clear_bases(model, load)
    for i in range(model.n_bases, model.tree.shape[0]):
        Ri, w = get9(data.body, i, R), get3(data.body, i, W)
        _, v = centre_of_mass(model, data, i)
        spin = rot(Ri, symv(get6(model.body, i, INERTIA), rot_t(Ri, w)))
        put_about_reference(model, data, i, load, spin, scale(model.body[i, MASS], v))
    gather(model, data, load, out)
    for k in range(model.nv):
        out[k] += model.armature[k] * data.v[k]


@inline
def turn_between(R0, R1):
    """psi with R0^T R1 = cay(psi), in the axes of the body: twice the tangent of half the angle, along the axis."""
    F = mul(transpose(R0), R1)
    return scale(2.0 / (1.0 + F[0] + F[4] + F[8]), (F[7] - F[5], F[2] - F[6], F[3] - F[1]))


@kernel
def chord(ints, floats, work, other, h, load, far, start, end):
    """Generalised momenta at both ends, start and end (nv), of the chord from the poses in `work` to those in `other`.

    h is the time between them, in s; `load` and `far` (bodies, 6) are scratch. Both must have poses and subspaces.
    """
    model, data, then = open_model(ints, floats), open_work(ints, work), open_work(ints, other)
    clear_bases(model, load)
    clear_bases(model, far)
    for i in range(model.n_bases, model.tree.shape[0]):
        R0, R1, c = get9(data.body, i, R), get9(then.body, i, R), get3(model.body, i, COM)
        moved = sub(add(get3(then.body, i, X), rot(R1, c)), add(get3(data.body, i, X), rot(R0, c)))
        psi = turn_between(R0, R1)
        mu = scale(1.0 / h, symv(get6(model.body, i, INERTIA), psi))
        spin = rot(R0, add(add(mu, scale(0.5, cross(psi, mu))), scale(0.25 * dot(psi, mu), psi)))
        momentum = scale(model.body[i, MASS] / h, moved)
        put_about_reference(model, data, i, load, spin, momentum)
        put_about_reference(model, then, i, far, spin, momentum)
    gather(model, data, load, start)
    gather(model, then, far, end)
    for i in range(model.n_bases, model.tree.shape[0]):  # rotors, of scalar coordinates only
        for k in range(model.tree[i, NV]):
            n = model.tree[i, V0] + k
            if model.armature[n] != 0.0:
                c = model.tree[i, Q0] + k
                momentum_of_rotor = model.armature[n] * (then.q[c] - data.q[c]) / h
                start[n] += momentum_of_rotor
                end[n] += momentum_of_rotor


@kernel
def loads(ints, floats, work, load, out):
    """Generalised forces out (nv) at (t, q, v) in `work`: gravity, all loads and `work.tau`, no velocity terms.

    `load` (bodies, 6) is scratch.
    """
    model, data = open_model(ints, floats), open_work(ints, work)
    g = (model.gravity[0], model.gravity[1], model.gravity[2])
    kinematics(model, data)
    for i in range(model.tree.shape[0]):
        weight = scale(-model.body[i, MASS], g) if i >= model.n_bases else ZERO
        put3(data.body, i, PV, weight)
        put3(data.body, i, PW, cross(rot(get9(data.body, i, R), get3(model.body, i, COM)), weight))
    add_loads(model, data)
    for i in range(model.tree.shape[0]):
        put3(load, i, 0, neg(get3(data.body, i, PW)))
        put3(load, i, 3, neg(get3(data.body, i, PV)))
    gather(model, data, load, out)
    for k in range(model.nv):
        out[k] += data.load[k]
