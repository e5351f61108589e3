"""Power and load of every force at one state, and the power that enters through drivers and moving bases."""

import numpy as np

from loopdyn.engine.jit import inline, kernel
from loopdyn.engine.records import (
    AV,
    AW,
    C_CHILD,
    C_PARENT,
    COM,
    INERTIA,
    MASS,
    PV,
    PW,
    R,
    V,
    W,
    open_model,
    open_work,
)
from loopdyn.forces import along_line, applied, bushing, joint_tendon, on_freedom
from loopdyn.forces.base import (
    ACTUATOR,
    APPLIED,
    BUSHING,
    JOINT_FRICTION,
    JOINT_SPRING,
    JOINT_TENDON,
    MOTOR,
    SPRING,
    TURNS_ONLY,
)
from loopdyn.spatial.plucker import add, centripetal, cross, dot, get3, get6, get9, put3, rot, rot_t, sub, symv
from loopdyn.tree.energies import centre_of_mass
from loopdyn.tree.kinematics import accelerations, kinematics

ZERO = (0.0, 0.0, 0.0)

# Beyond the forces, by number: what user functions give, and what drivers and moving bases give.
USER, GIVEN, N_OTHERS = range(3)


@inline
def clear(B, i):
    put3(B, i, PW, ZERO)
    put3(B, i, PV, ZERO)


@inline
def received(model, B, i):
    """Power of the load in PW, PV of body row i; a base is not counted, its motion is given."""
    if i < model.n_bases:
        return 0.0
    return -dot(get3(B, i, PW), get3(B, i, W)) - dot(get3(B, i, PV), get3(B, i, V))


@inline
def size(model, n, force, torque):
    """Size of the force, or of the torque of what has torques only."""
    return np.sqrt(dot(torque, torque)) if model.force[n, TURNS_ONLY] == 1 else np.sqrt(dot(force, force))


@inline
def force_power(model, work, n):
    """Power of force n on the bodies, and its load: pull of a line, torque or force on a freedom, else its size."""
    B = work.body
    code, i, j = model.force[n, 0], model.force[n, 1], model.force[n, 2]
    load = 0.0 * work.t[0]
    if code == JOINT_TENDON:
        load, speed = joint_tendon(model, work, n)
        return load * speed, load
    if code == JOINT_SPRING or code == JOINT_FRICTION or code == MOTOR:
        cut, index = i, j
        if cut < 0:
            load = on_freedom(model, work, n, code)
            return load * work.v[index], load
        i, j = model.cut[cut, C_PARENT], model.cut[cut, C_CHILD]
    elif code == APPLIED:
        j = i
    clear(B, i)
    clear(B, j)
    if code == SPRING or code == ACTUATOR:
        load = along_line(model, work, n, code)
    elif code == BUSHING:
        force, torque = bushing(model, work, n)
        load = size(model, n, force, torque)
    elif code == APPLIED:
        force, torque = applied(model, work, n)
        return received(model, B, i), size(model, n, force, torque)
    else:
        load = on_freedom(model, work, n, code)
    return received(model, B, i) + received(model, B, j), load


@inline
def total_power(model, work):
    """Rate of kinetic energy and energy in gravity of all bodies, from their motion with the accelerations work.a."""
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
    """Whether some force reads more than a coordinate and a speed of the tree."""
    for n in range(model.force.shape[0]):
        code, i = model.force[n, 0], model.force[n, 1]
        of_freedom = (code == JOINT_SPRING or code == JOINT_FRICTION or code == MOTOR) and i < 0
        if not (of_freedom or code == JOINT_TENDON):
            return True
    return False


@inline
def powers(model, work, moved, power, load):
    """Power of every force, of user forces and, if `moved`, of drivers and bases, at (t, q, v, a) in `work`.

    power (forces + N_OTHERS), load (forces). What enters through drivers and bases is what forces leave unexplained
    of the total: zero, and not computed, where nothing moves by itself.
    """
    if moved or reads_bodies(model):
        kinematics(model, work)
    work.jets[:, :] = 0.0
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


@inline
def stored(load, k):
    """Energy in a spring of stiffness k under a load."""
    return 0.5 * load * load / k if k > 0.0 else 0.0 * load


@kernel
def elastic_energy(ints, floats, work):
    """Energy in springs between points, on joint coordinates and in bushings at (t, q) in `work`.

    Speeds are taken as zero, so that the load of a spring is that of its stiffness alone.
    """
    model, data = open_model(ints, floats), open_work(ints, work)
    for k in range(model.nv):
        data.v[k] = 0.0
    kinematics(model, data)
    for i in range(model.tree.shape[0]):  # bases move by themselves, and drag bodies along
        put3(data.body, i, W, ZERO)
        put3(data.body, i, V, ZERO)
    total = 0.0
    for n in range(model.force.shape[0]):
        code = model.force[n, 0]
        if code == SPRING:
            total += stored(along_line(model, data, n, code), model.force_data[n, 6])
        elif code == JOINT_SPRING:
            total += stored(on_freedom(model, data, n, code), model.force_data[n, 0])
        elif code == BUSHING:
            force, torque = bushing(model, data, n)
            kt, k = get3(model.force_data, n, 24), get3(model.force_data, n, 27)
            total += stored(torque[0], kt[0]) + stored(torque[1], kt[1]) + stored(torque[2], kt[2])
            total += stored(force[0], k[0]) + stored(force[1], k[1]) + stored(force[2], k[2])
    return total


@kernel
def power_of_forces(ints, floats, work, moved, power, load):
    """`powers` on packed arrays."""
    powers(open_model(ints, floats), open_work(ints, work), moved, power, load)
