"""Power and load of every force at one state, and the power of drivers and moving bases."""

from loopdyn.engine.jit import inline, kernel
from loopdyn.engine.records import (
    AV,
    AW,
    C_CHILD,
    C_PARENT,
    COM,
    FORCE_BODY1,
    FORCE_BODY2,
    FORCE_CUT,
    FORCE_ON,
    INERTIA,
    MASS,
    ON_COORDINATES,
    ON_FREEDOM,
    PV,
    PW,
    R,
    V,
    W,
    open_model,
    open_work,
)
from loopdyn.forces.dispatch import act, energy
from loopdyn.forces.measured import put_terms
from loopdyn.spatial.plucker import add, centripetal, cross, dot, get3, get6, get9, put3, rot, rot_t, sub, symv
from loopdyn.tree.energies import centre_of_mass
from loopdyn.tree.kinematics import accelerations, kinematics

ZERO = (0.0, 0.0, 0.0)

# Sources of power after the forces: user forces, and drivers with moving bases.
USER, GIVEN, N_OTHERS = range(3)


@inline
def clear(B, i):
    if i >= 0:
        put3(B, i, PW, ZERO)
        put3(B, i, PV, ZERO)


@inline
def received(model, B, i):
    """Power of the load in PW, PV on body row i; zero for a base, whose motion is prescribed."""
    if i < model.n_bases:
        return 0.0
    return -dot(get3(B, i, PW), get3(B, i, W)) - dot(get3(B, i, PV), get3(B, i, V))


@inline
def of_tree(model, n):
    """Whether force n acts on coordinates of the tree and depends on no body."""
    on = model.force[n, FORCE_ON]
    return on == ON_COORDINATES or (on == ON_FREEDOM and model.force[n, FORCE_CUT] < 0)


@inline
def force_power(model, work, n):
    """Power of force n on the bodies, and its load."""
    B, cut = work.body, model.force[n, FORCE_CUT]
    i, j = model.force[n, FORCE_BODY1], model.force[n, FORCE_BODY2]
    if cut >= 0:
        i, j = model.cut[cut, C_PARENT], model.cut[cut, C_CHILD]
    clear(B, i)
    clear(B, j)
    load, speed = act(model, work, n)
    if of_tree(model, n):
        power = load * speed
    else:
        power = received(model, B, i) + received(model, B, j)
    return power, load


@inline
def total_power(model, work):
    """Rate of the kinetic and gravitational energy of all bodies, from their motion with the accelerations work.a."""
    accelerations(model, work)
    B = work.body
    g = (model.gravity[0], model.gravity[1], model.gravity[2])
    total = 0.0
    for i in range(model.n_bases, model.tree.shape[0]):
        m, Ri, w, alpha = model.body[i, MASS], get9(B, i, R), get3(B, i, W), get3(B, i, AW)
        c = rot(Ri, get3(model.body, i, COM))
        a = add(get3(B, i, AV), add(cross(alpha, c), centripetal(w, c)))
        _, v = centre_of_mass(model, work, i)
        total += m * dot(sub(a, g), v)
        total += dot(rot_t(Ri, w), symv(get6(model.body, i, INERTIA), rot_t(Ri, alpha)))  # w . (w x I w) = 0
    for k in range(model.nv):  # rotors
        total += model.armature[k] * work.a[k] * work.v[k]
    return total


@inline
def reads_bodies(model):
    """Whether some force depends on more than coordinates and speeds of the tree."""
    found = model.term.shape[0] > 0
    for n in range(model.force.shape[0]):
        found = found or not of_tree(model, n)
    return found


@inline
def powers(model, work, moved, power, load):
    """Power of every force, of user forces and, if `moved`, of drivers and bases, at (t, q, v, a) in `work`.

    power (forces + N_OTHERS), load (forces). The power of drivers and bases is the total less that of all forces; it is
    zero, and not computed, if nothing has a prescribed motion.
    """
    if moved or reads_bodies(model):
        kinematics(model, work)
    work.jets[:, :] = 0.0
    put_terms(model, work)
    n, known = model.force.shape[0], 0.0
    for k in range(n):
        power[k], load[k] = force_power(model, work, k)
        known += power[k]
    user = 0.0
    for k in range(model.nv):
        user += work.tau[k] * work.v[k]
    power[n + USER] = user
    power[n + GIVEN] = 0.0
    if moved:
        power[n + GIVEN] = total_power(model, work) - known - user


@kernel
def elastic_energy(ints, floats, work):
    """Energy stored in all forces, at (t, q) in `work`."""
    model, data = open_model(ints, floats), open_work(ints, work)
    kinematics(model, data)
    total = 0.0
    for n in range(model.force.shape[0]):
        total += energy(model, data, n)
    return total


@kernel
def power_of_forces(ints, floats, work, moved, power, load):
    """`powers` on packed arrays."""
    powers(open_model(ints, floats), open_work(ints, work), moved, power, load)
