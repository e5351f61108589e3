"""Kinetic energy, rotors included, potential energy of gravity, linear and angular momentum of a tree."""

from loopdyn.engine.jit import inline, kernel
from loopdyn.engine.records import COM, INERTIA, MASS, R, V, W, X, open_model, open_work
from loopdyn.spatial.plucker import add, cross, dot, get3, get6, get9, rot, rot_t, scale, symv
from loopdyn.tree.kinematics import kinematics


@inline
def centre_of_mass(model, work, i):
    """World position and velocity of the centre of mass of body i."""
    B = work.body
    c = rot(get9(B, i, R), get3(model.body, i, COM))
    return add(get3(B, i, X), c), add(get3(B, i, V), cross(get3(B, i, W), c))


@inline
def balance(model, work, out):
    """out[0:8] = kinetic energy, potential energy of gravity, momentum, angular momentum about the world origin."""
    g = (model.gravity[0], model.gravity[1], model.gravity[2])
    for k in range(8):
        out[k] = 0.0
    for i in range(model.n_bases, model.tree.shape[0]):
        m, Ri, w = model.body[i, MASS], get9(work.body, i, R), get3(work.body, i, W)
        x, v = centre_of_mass(model, work, i)
        spin = rot(Ri, symv(get6(model.body, i, INERTIA), rot_t(Ri, w)))
        p = scale(m, v)
        L = add(spin, cross(x, p))
        out[0] += 0.5 * (m * dot(v, v) + dot(w, spin))
        out[1] -= m * dot(g, x)
        for k in range(3):
            out[2 + k] += p[k]
            out[5 + k] += L[k]
    for k in range(model.nv):  # rotors
        out[0] += 0.5 * model.armature[k] * work.v[k] * work.v[k]


@kernel
def energy(ints, floats, work, out):
    """Energies and momenta of all bodies at (t, q, v) in `work`; bases are not counted."""
    model, data = open_model(ints, floats), open_work(ints, work)
    kinematics(model, data)
    balance(model, data, out)
