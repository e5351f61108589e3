"""Force types: the list, and the only module that chooses among them by code.

The contract of a type is in :mod:`loopdyn.forces.base`; everything else about it is in its own file. compile() rejects
a type that is not listed here.
"""

from __future__ import annotations

from typing import Annotated, get_args

import numpy as np

from loopdyn.engine.jit import inline
from loopdyn.engine.records import (
    C_CHILD,
    C_PARENT,
    FORCE_BODY1,
    FORCE_BODY2,
    FORCE_CODE,
    FORCE_CUT,
    FORCE_FREEDOM,
    FORCE_ON,
    ON_FREEDOM,
    ON_LINE,
)
from loopdyn.forces import (
    actuator,
    applied,
    bushing,
    joint_friction,
    joint_spring,
    joint_tendon,
    motor,
    spring_damper,
)
from loopdyn.forces.actuator import ACTUATOR, Actuator
from loopdyn.forces.applied import APPLIED, AppliedForce
from loopdyn.forces.base import Force, Law, Table
from loopdyn.forces.bushing import BUSHING, Bushing
from loopdyn.forces.freedom import cut_freedom, freedom_coordinate, tree_freedom
from loopdyn.forces.joint_friction import JOINT_FRICTION, JointFriction
from loopdyn.forces.joint_spring import JOINT_SPRING, JointSpring
from loopdyn.forces.joint_tendon import JOINT_TENDON, JointTendon
from loopdyn.forces.line import stretch
from loopdyn.forces.loading import push, wrench_pair
from loopdyn.forces.measured import put_terms
from loopdyn.forces.motor import MOTOR, Motor
from loopdyn.forces.spring_damper import SPRING_DAMPER, SpringDamper
from loopdyn.forces.user import UserForce
from loopdyn.quantities.units import OneOf
from loopdyn.spatial.plucker import scale

# The public names of `loopdyn.forces`.
__all__ = [
    "Actuator",
    "AppliedForce",
    "Bushing",
    "Force",
    "JointFriction",
    "JointSpring",
    "JointTendon",
    "Law",
    "Motor",
    "SpringDamper",
    "Table",
    "UserForce",
]

AnyForce = Annotated[
    SpringDamper | JointSpring | JointFriction | JointTendon | Motor | Actuator | Bushing | AppliedForce,
    OneOf("type"),
]
TYPES: tuple[type[Force], ...] = get_args(get_args(AnyForce)[0])


# ------------------------------------------------------------------------------------------------- loads


@inline
def pull(model, work, n, length, rate):
    """Pull of a force along the line through two points at a distance that changes at a rate."""
    code, f = model.force[n, FORCE_CODE], np.nan * rate
    if code == SPRING_DAMPER:
        f = spring_damper.pull(model, n, length, rate)
    elif code == ACTUATOR:
        f = actuator.pull(model, work, n, length, rate)
    return f


@inline
def freedom_load(model, work, n, x, dx):
    """Load of a force on a joint coordinate x with the speed dx."""
    code, f = model.force[n, FORCE_CODE], np.nan * dx
    if code == JOINT_SPRING:
        f = joint_spring.load(model, n, x, dx)
    elif code == JOINT_FRICTION:
        f = joint_friction.load(model, n, dx)
    elif code == MOTOR:
        f = motor.load(model, work, n, x, dx)
    return f


@inline
def on_line(model, work, n):
    """Pull two points together; returns the pull."""
    x1, x2, e, length, rate = stretch(model, work, n)
    f = pull(model, work, n, length, rate)
    push(work.body, model.force[n, FORCE_BODY1], x1, scale(f, e))
    push(work.body, model.force[n, FORCE_BODY2], x2, scale(-f, e))
    return f


@inline
def on_freedom(model, work, n):
    """Load one freedom of a joint, in the tree or cut; returns the load and the speed of the freedom."""
    cut = model.force[n, FORCE_CUT]
    if cut < 0:
        x, dx = tree_freedom(model, work, n)
        f = freedom_load(model, work, n, x, dx)
        work.load[model.force[n, FORCE_FREEDOM]] += f
    else:
        x, dx, torque, force, xM = cut_freedom(model, work, n)
        f = freedom_load(model, work, n, x, dx)
        i, j = model.cut[cut, C_PARENT], model.cut[cut, C_CHILD]
        wrench_pair(work.body, i, j, xM, scale(f, torque), scale(f, force))
    return f, dx


@inline(always=True)
def act(model, work, n):
    """Add the loads of force n; returns its load and, where it acts on coordinates, the speed that the load works on.

    The load is the pull of a line, the torque or force on a coordinate, else the size of the force or torque.
    """
    code, on = model.force[n, FORCE_CODE], model.force[n, FORCE_ON]
    load, speed = np.nan * work.t[0], 0.0 * work.t[0]
    if on == ON_LINE:
        load = on_line(model, work, n)
    elif on == ON_FREEDOM:
        load, speed = on_freedom(model, work, n)
    elif code == BUSHING:
        load = bushing.act(model, work, n)
    elif code == JOINT_TENDON:
        load, speed = joint_tendon.act(model, work, n)
    elif code == APPLIED:
        load = applied.act(model, work, n)
    return load, speed


@inline(always=True)
def add_loads(model, work):
    """Add all loads to the bias wrenches of the bodies and to the loads on freedoms.

    Poses, velocities and rigid bias wrenches must be known (see :mod:`loopdyn.tree.rigid`).
    """
    for k in range(model.nv):
        work.load[k] = work.tau[k]
    work.jets[:, :] = 0.0
    put_terms(model, work)
    for n in range(model.force.shape[0]):
        act(model, work, n)


# ------------------------------------------------------------------------------------------------- energy


@inline
def energy(model, work, n):
    """Energy stored in force n at the pose in `work`; zero for types that store none."""
    code, found = model.force[n, FORCE_CODE], 0.0 * work.t[0]
    if code == SPRING_DAMPER:
        found = spring_damper.energy(model, n, stretch(model, work, n)[3])
    elif code == JOINT_SPRING:
        found = joint_spring.energy(model, n, freedom_coordinate(model, work, n))
    elif code == BUSHING:
        found = bushing.energy(model, work, n)
    return found
