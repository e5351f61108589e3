"""The list of joint types, and the only module that chooses among them by code.

`tests/contract/test_joints.py` finds types with a missing branch here. `compile()` refuses a joint
whose code is not in the list, so kernels meet no other; where they choose among all types, another code gives NaN.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np

from loopdyn.engine.jit import inline, kernel
from loopdyn.joints import (
    additive,
    cylindrical,
    free,
    helical,
    planar,
    prismatic,
    revolute,
    spherical,
    translational,
    universal,
    weld,
)
from loopdyn.joints.base import Array, Joint
from loopdyn.joints.cylindrical import Cylindrical
from loopdyn.joints.free import Free
from loopdyn.joints.helical import Helical
from loopdyn.joints.planar import Planar
from loopdyn.joints.prismatic import Prismatic
from loopdyn.joints.reading import fixed_in_frame, near
from loopdyn.joints.revolute import Revolute
from loopdyn.joints.spherical import Spherical
from loopdyn.joints.translational import Translational
from loopdyn.joints.universal import Universal
from loopdyn.joints.weld import Weld
from loopdyn.quantities.units import OneOf
from loopdyn.spatial.plucker import get9, put3

AnyJoint = Annotated[
    Revolute | Prismatic | Helical | Cylindrical | Universal | Planar | Translational | Spherical | Free | Weld,
    OneOf("type"),
]

# In the order of their codes.
JOINT_TYPES: tuple[type[Joint], ...] = (
    Weld, Revolute, Prismatic, Helical, Cylindrical, Universal, Planar, Translational, Spherical, Free
)  # fmt: skip
WELD, REVOLUTE, PRISMATIC, HELICAL, CYLINDRICAL, UNIVERSAL, PLANAR, TRANSLATIONAL, SPHERICAL, FREE = (
    t.kind for t in JOINT_TYPES
)

NAN = (np.nan, np.nan, np.nan)
NAN_ROTATION = (np.nan, np.nan, np.nan, np.nan, np.nan, np.nan, np.nan, np.nan, np.nan)
IDENTITY = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)


def is_known(joint: Joint) -> bool:
    """Whether kernels know the joint by its code."""
    return type(joint) in JOINT_TYPES or any(isinstance(joint, t) and joint.kind == t.kind for t in JOINT_TYPES)


# ----------------------------------------------------------------------------------------------- in the tree


@inline(always=True)
def joint_rotation(kind, A, par, q, i):
    """Rotation of M against F in the shared axes."""
    if kind == REVOLUTE:
        E = revolute.rotation(A, par, q, i)
    elif kind == PRISMATIC:
        E = prismatic.rotation(A, par, q, i)
    elif kind == HELICAL:
        E = helical.rotation(A, par, q, i)
    elif kind == CYLINDRICAL:
        E = cylindrical.rotation(A, par, q, i)
    elif kind == UNIVERSAL:
        E = universal.rotation(A, par, q, i)
    elif kind == PLANAR:
        E = planar.rotation(A, par, q, i)
    elif kind == TRANSLATIONAL:
        E = translational.rotation(A, par, q, i)
    elif kind == SPHERICAL:
        E = spherical.rotation(A, par, q, i)
    elif kind == FREE:
        E = free.rotation(A, par, q, i)
    elif kind == WELD:
        E = weld.rotation(A, par, q, i)
    else:
        E = NAN_ROTATION
    return E


@inline(always=True)
def joint_motion(kind, RF, RM, A, par, q, i, v, j, S):
    """Displacement, relative velocity and bias; writes the motion subspace into S."""
    if kind == REVOLUTE:
        out = revolute.motion(RF, RM, A, par, q, i, v, j, S)
    elif kind == PRISMATIC:
        out = prismatic.motion(RF, RM, A, par, q, i, v, j, S)
    elif kind == HELICAL:
        out = helical.motion(RF, RM, A, par, q, i, v, j, S)
    elif kind == CYLINDRICAL:
        out = cylindrical.motion(RF, RM, A, par, q, i, v, j, S)
    elif kind == UNIVERSAL:
        out = universal.motion(RF, RM, A, par, q, i, v, j, S)
    elif kind == PLANAR:
        out = planar.motion(RF, RM, A, par, q, i, v, j, S)
    elif kind == TRANSLATIONAL:
        out = translational.motion(RF, RM, A, par, q, i, v, j, S)
    elif kind == SPHERICAL:
        out = spherical.motion(RF, RM, A, par, q, i, v, j, S)
    elif kind == FREE:
        out = free.motion(RF, RM, A, par, q, i, v, j, S)
    elif kind == WELD:
        out = weld.motion(RF, RM, A, par, q, i, v, j, S)
    else:
        out = (NAN, NAN, NAN, NAN, NAN)
    return out


@inline
def joint_plus(kind, n, q, i, xi, j, out):
    """out = q (+) xi for one joint with n freedoms."""
    if kind == SPHERICAL:
        spherical.plus(q, i, xi, j, out)
    elif kind == FREE:
        free.plus(q, i, xi, j, out)
    else:
        additive.plus(n, q, i, xi, j, out)


@inline
def joint_minus(kind, n, q, p, i, xi, j):
    """Increments xi with p = q (+) xi."""
    if kind == SPHERICAL:
        spherical.minus(q, p, i, xi, j)
    elif kind == FREE:
        free.minus(q, p, i, xi, j)
    else:
        additive.minus(n, q, p, i, xi, j)


@inline
def joint_rate(kind, n, xi, v, j, out):
    """out = xi' at the speeds v."""
    if kind == SPHERICAL:
        spherical.rate(xi, v, j, out)
    elif kind == FREE:
        free.rate(xi, v, j, out)
    else:
        additive.rate(n, xi, v, j, out)


@inline
def joint_mean_speeds(kind, n, xi, h, j, v):
    """Speeds v half-way along a step of length h with the increments xi."""
    if kind == FREE:
        free.mean_speeds(xi, h, j, v)
    else:
        additive.mean_speeds(n, xi, h, j, v)


@inline
def is_pin(kind):
    """Whether it is a revolute joint: the most frequent type, which passes over the tree treat separately."""
    return kind == REVOLUTE


@inline
def turns_only(kind):
    """Whether all freedoms are rotations about the coinciding origins of F and M: no displacement."""
    return kind == REVOLUTE or kind == UNIVERSAL or kind == SPHERICAL


# -------------------------------------------------------------------------------------------------- by pose


@inline
def joint_pose(kind, par, q, i):
    """Displacement and rotation of M against F, in F axes, at the coordinates q[i:]."""
    if kind == REVOLUTE:
        d, E = revolute.pose(par, q, i)
    elif kind == PRISMATIC:
        d, E = prismatic.pose(par, q, i)
    elif kind == HELICAL:
        d, E = helical.pose(par, q, i)
    elif kind == CYLINDRICAL:
        d, E = cylindrical.pose(par, q, i)
    elif kind == UNIVERSAL:
        d, E = universal.pose(par, q, i)
    elif kind == PLANAR:
        d, E = planar.pose(par, q, i)
    elif kind == TRANSLATIONAL:
        d, E = translational.pose(par, q, i)
    elif kind == SPHERICAL:
        d, E = spherical.pose(par, q, i)
    elif kind == FREE:
        d, E = free.pose(par, q, i)
    elif kind == WELD:
        d, E = weld.pose(par, q, i)
    else:
        d, E = NAN, NAN_ROTATION
    return d, E


@inline
def read_joint(kind, par, d, E, q, i):
    """Coordinates q[i:] of the displacement d and the rotation E of M against F, in F axes; the nearest to q."""
    if kind == REVOLUTE:
        revolute.read(par, d, E, q, i)
    elif kind == PRISMATIC:
        prismatic.read(par, d, E, q, i)
    elif kind == HELICAL:
        helical.read(par, d, E, q, i)
    elif kind == CYLINDRICAL:
        cylindrical.read(par, d, E, q, i)
    elif kind == UNIVERSAL:
        universal.read(par, d, E, q, i)
    elif kind == PLANAR:
        planar.read(par, d, E, q, i)
    elif kind == TRANSLATIONAL:
        translational.read(par, d, E, q, i)
    elif kind == SPHERICAL:
        spherical.read(par, d, E, q, i)
    elif kind == FREE:
        free.read(par, d, E, q, i)
    elif kind == WELD:
        weld.read(par, d, E, q, i)
    else:
        q[i] = np.nan


# ------------------------------------------------------------------------------------------------ when cut


@inline(always=True)
def joint_rows(kind, F, M, par, d, wF, wM, v, phi, G, gamma, k):
    """Constraint rows of a cut joint, from row k on; pins and balls, the most frequent types, are inlined."""
    if kind == REVOLUTE:
        revolute.rows(F, M, par, d, wF, wM, v, phi, G, gamma, k)
    elif kind == SPHERICAL:
        spherical.rows(F, M, par, d, wF, wM, v, phi, G, gamma, k)
    else:
        other_rows(kind, F, M, par, d, wF, wM, v, phi, G, gamma, k)


@inline
def other_rows(kind, F, M, par, d, wF, wM, v, phi, G, gamma, k):
    """Constraint rows of joints that are cut less often."""
    if kind == PRISMATIC:
        prismatic.rows(F, M, par, d, wF, wM, v, phi, G, gamma, k)
    elif kind == HELICAL:
        helical.rows(F, M, par, d, wF, wM, v, phi, G, gamma, k)
    elif kind == CYLINDRICAL:
        cylindrical.rows(F, M, par, d, wF, wM, v, phi, G, gamma, k)
    elif kind == UNIVERSAL:
        universal.rows(F, M, par, d, wF, wM, v, phi, G, gamma, k)
    elif kind == PLANAR:
        planar.rows(F, M, par, d, wF, wM, v, phi, G, gamma, k)
    elif kind == TRANSLATIONAL:
        translational.rows(F, M, par, d, wF, wM, v, phi, G, gamma, k)
    elif kind == WELD:
        weld.rows(F, M, par, d, wF, wM, v, phi, G, gamma, k)
    elif kind != FREE:  # which has none
        phi[k] = np.nan


@inline
def joint_coordinate(kind, k, F, M, par, d):
    """Coordinate k; a periodic angle within (-pi, pi]."""
    if kind == REVOLUTE:
        x = revolute.coordinate(k, F, M, par, d)
    elif kind == PRISMATIC:
        x = prismatic.coordinate(k, F, M, par, d)
    elif kind == HELICAL:
        x = helical.coordinate(k, F, M, par, d)
    elif kind == CYLINDRICAL:
        x = cylindrical.coordinate(k, F, M, par, d)
    elif kind == UNIVERSAL:
        x = universal.coordinate(k, F, M, par, d)
    elif kind == PLANAR:
        x = planar.coordinate(k, F, M, par, d)
    elif kind == TRANSLATIONAL:
        x = translational.coordinate(k, F, M, par, d)
    elif kind == SPHERICAL:
        x = spherical.coordinate(k, F, M, par, d)
    elif kind == FREE:
        x = free.coordinate(k, F, M, par, d)
    else:
        x = np.nan * d[0]
    return x


@inline
def joint_wrench(kind, k, F, M, par):
    """Wrench (torque, force) on M at its origin whose power is the speed of freedom k."""
    if kind == REVOLUTE:
        torque, force = revolute.wrench(k, F, M, par)
    elif kind == PRISMATIC:
        torque, force = prismatic.wrench(k, F, M, par)
    elif kind == HELICAL:
        torque, force = helical.wrench(k, F, M, par)
    elif kind == CYLINDRICAL:
        torque, force = cylindrical.wrench(k, F, M, par)
    elif kind == UNIVERSAL:
        torque, force = universal.wrench(k, F, M, par)
    elif kind == PLANAR:
        torque, force = planar.wrench(k, F, M, par)
    elif kind == TRANSLATIONAL:
        torque, force = translational.wrench(k, F, M, par)
    elif kind == SPHERICAL:
        torque, force = spherical.wrench(k, F, M, par)
    elif kind == FREE:
        torque, force = free.wrench(k, F, M, par)
    else:
        torque, force = NAN, NAN
    return torque, force


@inline
def joint_wrench_rate(kind, k, F, M, par, wF, wM, torque, force):
    """Rates of the wrench of freedom k: of the torque in world axes, of the force seen from F."""
    if kind == UNIVERSAL:
        rates = universal.wrench_rate(k, F, M, par, wF, wM)
    elif kind == FREE:
        rates = free.wrench_rate(wF, wM, torque, force)
    else:
        rates = fixed_in_frame(wF, torque)
    return rates


@inline
def is_periodic(kind, k):
    """Whether coordinate k is an angle whose full turns the pose does not determine (`Joint.is_periodic`)."""
    return kind == REVOLUTE or kind == UNIVERSAL or (kind == CYLINDRICAL and k == 0) or (kind == PLANAR and k == 2)


@inline
def nearest_turn(kind, k, x, before):
    """Periodic coordinate k with the whole turns that bring it within half a turn of `before`; others unchanged."""
    if is_periodic(kind, k):
        x = near(x, before)
    return x


@inline
def counted_angle(model, work, reader, kind, k, x):
    """Coordinate k of a cut joint, x by its pose, with the full turns for the force or entry that reads it."""
    first, count = model.reader[reader, 0], model.reader[reader, 1]
    before = work.near[reader]
    if count > 0:
        before = 0.0 * before + model.reader_angle[reader]
        for n in range(first, first + count):
            before += model.path[n, 1] * work.q[model.path[n, 0]]
    return nearest_turn(kind, k, x, before)


# ---------------------------------------------------------------------------------------- called from Python


@kernel
def fill_twists(kind, frames, par, q, v, out):
    joint_motion(kind, get9(frames, 0, 0), get9(frames, 1, 0), IDENTITY, (par[0], par[1]), q, 0, v, 0, out)


@kernel
def fill_wrenches(kind, n, frames, par, out):
    for k in range(n):
        torque, force = joint_wrench(kind, k, get9(frames, 0, 0), get9(frames, 1, 0), (par[0], par[1]))
        put3(out, k, 0, torque)
        put3(out, k, 3, force)


def twists(joint: Joint, F: Array, M: Array, par: tuple[float, float]) -> Array:
    """Motion subspace (freedoms, 6): twists of M against F at its origin, angular part first, world axes.

    F and M are rotation matrices (3, 3): the axes of the frames as columns.
    """
    out, still = np.zeros((len(joint.speeds), 6)), np.zeros(7)
    fill_twists(joint.kind, np.array([F, M]).reshape(2, 9), np.array(par), still, still, out)
    return out


def wrenches(joint: Joint, F: Array, M: Array, par: tuple[float, float]) -> Array:
    """Torque and force (freedoms, 6) on M at its origin for each freedom, whose power is its speed and no other."""
    out = np.zeros((len(joint.speeds), 6))
    fill_wrenches(joint.kind, len(out), np.array([F.T, M.T]).reshape(2, 9), np.array(par), out)
    return out
