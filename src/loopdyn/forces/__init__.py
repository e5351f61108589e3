"""Force types, one file each, and the kernel that adds up their loads."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field

from loopdyn.engine.jit import inline
from loopdyn.engine.records import (
    C_CHILD,
    C_KIND,
    C_PAR,
    C_PARENT,
    F_AXES,
    F_POINT,
    M_AXES,
    M_POINT,
    PV,
    PW,
    R,
    V,
    W,
    X,
)
from loopdyn.forces.applied import AppliedForce
from loopdyn.forces.base import (
    ACTUATOR,
    BUSHING,
    JOINT_FRICTION,
    JOINT_SPRING,
    JOINT_TENDON,
    MOTOR,
    SPRING,
    Force,
    Law,
    Table,
)
from loopdyn.forces.bushing import Bushing
from loopdyn.forces.friction import JointFriction
from loopdyn.forces.motor import Actuator, Motor
from loopdyn.forces.springs import JointSpring, SpringDamper
from loopdyn.forces.tendon import N_TERM, TERM_COORDINATE, TERM_FACTOR, TERM_SPEED, JointTendon
from loopdyn.forces.user import UserForce
from loopdyn.joints.dispatch import counted_angle, joint_coordinate, joint_wrench
from loopdyn.joints.rows import rot_f
from loopdyn.quantities.expressions import run_program
from loopdyn.spatial.plucker import add, add3, cross, dot, get3, get9, mul, neg, rot, rot_t, scale, sub, transpose
from loopdyn.spatial.rotations import matrix_quaternion, quaternion_log

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
    Field(discriminator="type"),
]


# --------------------------------------------------------------------------------- places on moving bodies


@inline
def body_point(B, i, p):
    """World position and velocity of the point p of body i (own axes, from its reference point)."""
    arm = rot(get9(B, i, R), p)
    return add(get3(B, i, X), arm), add(get3(B, i, V), cross(get3(B, i, W), arm))


@inline
def body_frame(B, i, A):
    """World axes, as rows, of a frame whose axes are the rows of A in the axes of body i."""
    return mul(A, transpose(get9(B, i, R)))


@inline
def push(B, i, x, force):
    """Put a force on body i at the world point x: the bias wrench is less by it."""
    add3(B, i, PW, cross(force, sub(x, get3(B, i, X))))
    add3(B, i, PV, neg(force))


@inline
def twist(B, i, torque):
    """Put a torque on body i."""
    add3(B, i, PW, neg(torque))


@inline
def law(model, work, k, t, x, dx):
    """Value of program k for the variables t, x, dx."""
    work.jets[0, 0] = t
    work.jets[1, 0] = x
    work.jets[2, 0] = dx
    return run_program(model.code, model.program[k], model.program[k + 1], model.constants, work.jets, work.stack)[0]


# ------------------------------------------------------------------------------------- one kind at a time


@inline
def along_line(model, work, n, code):
    """Spring-damper or actuator between two points; returns its pull."""
    B = work.body
    i, j = model.force[n, 1], model.force[n, 2]
    x1, v1 = body_point(B, i, get3(model.force_data, n, 0))
    x2, v2 = body_point(B, j, get3(model.force_data, n, 3))
    line = sub(x2, x1)
    length = np.sqrt(dot(line, line))
    e = scale(1.0 / length, line)
    rate = dot(e, sub(v2, v1))
    if code == SPRING:
        k, c, free = get3(model.force_data, n, 6)
        pull = k * (length - free) + c * rate
    else:
        pull = -law(model, work, model.force[n, 3], work.t[0], length, rate)
    push(B, i, x1, scale(pull, e))
    push(B, j, x2, scale(-pull, e))
    return pull


@inline
def freedom_load(model, work, n, code, x, dx):
    """Load of a spring, friction or motor on a joint coordinate x with speed dx."""
    p0, p1, p2 = get3(model.force_data, n, 0)
    if code == JOINT_SPRING:
        f = -p0 * (x - p2) - p1 * dx
    elif code == JOINT_FRICTION:
        f = -p0 * dx - p1 * np.tanh(dx / p2)
    elif model.force[n, 5] == 1:
        f = law(model, work, model.force[n, 4], work.t[0], x, dx)
    else:  # no scalar coordinate: variables are t and speed
        f = law(model, work, model.force[n, 4], work.t[0], dx, dx)
    return f


@inline
def on_freedom(model, work, n, code):
    """Spring, friction or motor on one freedom of a joint, in the tree or cut; returns its load."""
    cut, index, coordinate = model.force[n, 1], model.force[n, 2], model.force[n, 3]
    if cut < 0:
        dx = work.v[index]
        x = 0.0 * dx
        if coordinate >= 0:
            x = work.q[coordinate]
        f = freedom_load(model, work, n, code, x, dx)
        work.load[index] += f
    else:
        B = work.body
        i, j = model.cut[cut, C_PARENT], model.cut[cut, C_CHILD]
        xF, vF = body_point(B, i, get3(model.cut_frames, cut, F_POINT))
        xM, vM = body_point(B, j, get3(model.cut_frames, cut, M_POINT))
        F = body_frame(B, i, get9(model.cut_frames, cut, F_AXES))
        M = body_frame(B, j, get9(model.cut_frames, cut, M_AXES))
        par = (model.cut_frames[cut, C_PAR], model.cut_frames[cut, C_PAR + 1])
        d = sub(xM, xF)
        kind = model.cut[cut, C_KIND]
        torque, force = joint_wrench(kind, index, F, M, par)
        x = counted_angle(model, work, n, kind, index, joint_coordinate(kind, index, F, M, par, d))
        wF = get3(B, i, W)
        v = sub(sub(vM, vF), cross(wF, d))
        dx = dot(torque, sub(get3(B, j, W), wF)) + dot(force, v)
        f = freedom_load(model, work, n, code, x, dx)
        torque, force = scale(f, torque), scale(f, force)
        twist(B, j, torque)
        push(B, j, xM, force)
        twist(B, i, neg(torque))
        push(B, i, xM, neg(force))
    return f


@inline
def joint_tendon(model, work, n):
    """Force on a sum of tree coordinates times factors; returns it and the speed of the sum."""
    terms, data = model.force[n, 1], model.force_data
    length, speed = 0.0 * work.t[0], 0.0 * work.t[0]
    for k in range(terms):
        c = data[n, N_TERM * k + TERM_FACTOR]
        length += c * work.q[int(data[n, N_TERM * k + TERM_COORDINATE])]
        speed += c * work.v[int(data[n, N_TERM * k + TERM_SPEED])]
    f = law(model, work, model.force[n, 2], work.t[0], length, speed)
    for k in range(terms):
        work.load[int(data[n, N_TERM * k + TERM_SPEED])] += data[n, N_TERM * k + TERM_FACTOR] * f
    return f, speed


@inline
def bushing(model, work, n):
    """Six springs and dampers between frame 1 on body i and frame 2 on body j; returns force and torque in frame 1."""
    B, data = work.body, model.force_data
    i, j = model.force[n, 1], model.force[n, 2]
    x1, v1 = body_point(B, i, get3(data, n, 0))
    x2, v2 = body_point(B, j, get3(data, n, 12))
    F = body_frame(B, i, get9(data, n, 3))
    M = body_frame(B, j, get9(data, n, 15))
    w1 = get3(B, i, W)
    gap = sub(x2, x1)
    d = rot_f(F, gap)
    rate = rot_f(F, sub(sub(v2, v1), cross(w1, gap)))
    theta = quaternion_log(matrix_quaternion(mul(F, transpose(M))))
    spin = rot_f(F, sub(get3(B, j, W), w1))
    kt, k, ct, c = get3(data, n, 24), get3(data, n, 27), get3(data, n, 30), get3(data, n, 33)
    f = (-k[0] * d[0] - c[0] * rate[0], -k[1] * d[1] - c[1] * rate[1], -k[2] * d[2] - c[2] * rate[2])
    m = (
        -kt[0] * theta[0] - ct[0] * spin[0],
        -kt[1] * theta[1] - ct[1] * spin[1],
        -kt[2] * theta[2] - ct[2] * spin[2],
    )
    force, torque = rot_t(F, f), rot_t(F, m)
    twist(B, j, torque)
    push(B, j, x2, force)
    twist(B, i, neg(torque))
    push(B, i, x2, neg(force))
    return f, m


@inline
def applied(model, work, n):
    """Force and torque given by six programs of t; returns them."""
    B = work.body
    i, k, turning = model.force[n, 1], model.force[n, 2], model.force[n, 3]
    t = work.t[0]
    torque = (law(model, work, k, t, t, t), law(model, work, k + 1, t, t, t), law(model, work, k + 2, t, t, t))
    force = (law(model, work, k + 3, t, t, t), law(model, work, k + 4, t, t, t), law(model, work, k + 5, t, t, t))
    if turning == 1:
        A = mul(get9(B, i, R), get9(model.force_data, n, 3))
        torque, force = rot(A, torque), rot(A, force)
    x, _ = body_point(B, i, get3(model.force_data, n, 0))
    twist(B, i, torque)
    push(B, i, x, force)
    return force, torque


@inline(always=True)
def add_loads(model, work):
    """Add all loads to the bias wrenches of the bodies and to the loads on freedoms.

    Poses, velocities and rigid bias wrenches must be known (see :mod:`loopdyn.tree.rigid`).
    """
    for k in range(model.nv):
        work.load[k] = work.tau[k]
    work.jets[:, :] = 0.0
    for n in range(model.force.shape[0]):
        code = model.force[n, 0]
        if code == SPRING or code == ACTUATOR:
            along_line(model, work, n, code)
        elif code == JOINT_SPRING or code == JOINT_FRICTION or code == MOTOR:
            on_freedom(model, work, n, code)
        elif code == BUSHING:
            bushing(model, work, n)
        elif code == JOINT_TENDON:
            joint_tendon(model, work, n)
        else:
            applied(model, work, n)
