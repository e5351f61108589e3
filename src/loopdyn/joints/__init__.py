"""Joint types, one file each, and the places where a kernel chooses among them by code."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from loopdyn.engine.jit import inline
from loopdyn.joints import (
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
from loopdyn.joints.base import (
    CYLINDRICAL,
    FREE,
    HELICAL,
    PLANAR,
    PRISMATIC,
    REVOLUTE,
    SPHERICAL,
    TRANSLATIONAL,
    UNIVERSAL,
    WELD,
    Frame,
    Joint,
    Rotation,
    RotationField,
)
from loopdyn.joints.cylindrical import Cylindrical
from loopdyn.joints.free import Free
from loopdyn.joints.helical import Helical
from loopdyn.joints.planar import Planar
from loopdyn.joints.prismatic import Prismatic
from loopdyn.joints.revolute import Revolute
from loopdyn.joints.spherical import Spherical
from loopdyn.joints.translational import Translational
from loopdyn.joints.universal import Universal
from loopdyn.joints.weld import Weld

__all__ = [
    "Cylindrical",
    "Frame",
    "Free",
    "Helical",
    "Joint",
    "Planar",
    "Prismatic",
    "Revolute",
    "Rotation",
    "RotationField",
    "Spherical",
    "Translational",
    "Universal",
    "Weld",
]

AnyJoint = Annotated[
    Revolute | Prismatic | Helical | Cylindrical | Universal | Planar | Translational | Spherical | Free | Weld,
    Field(discriminator="type"),
]

# Types whose motion, read from the child's side, is the same type with its axes turned about.
REVERSED_BY_SIGN = (WELD, REVOLUTE, PRISMATIC, HELICAL, CYLINDRICAL, TRANSLATIONAL)


@inline(always=True)
def joint_rotation(kind, A, par, q, i):
    """Rotation of M against F in the shared axes, for any joint type."""
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
    else:
        E = weld.rotation(A, par, q, i)
    return E


@inline(always=True)
def joint_motion(kind, RF, RM, A, par, q, i, v, j, S):
    """Displacement, relative velocity and bias of any joint type; writes its motion subspace into S."""
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
    else:
        out = weld.motion(RF, RM, A, par, q, i, v, j, S)
    return out


@inline
def joint_rows(kind, F, M, par, d, wF, wM, v, phi, G, gamma, k):
    """Constraint rows of a cut joint of any type, from row k on; returns the next free row."""
    if kind == REVOLUTE:
        k = revolute.rows(F, M, par, d, wF, wM, v, phi, G, gamma, k)
    elif kind == PRISMATIC:
        k = prismatic.rows(F, M, par, d, wF, wM, v, phi, G, gamma, k)
    elif kind == HELICAL:
        k = helical.rows(F, M, par, d, wF, wM, v, phi, G, gamma, k)
    elif kind == CYLINDRICAL:
        k = cylindrical.rows(F, M, par, d, wF, wM, v, phi, G, gamma, k)
    elif kind == UNIVERSAL:
        k = universal.rows(F, M, par, d, wF, wM, v, phi, G, gamma, k)
    elif kind == PLANAR:
        k = planar.rows(F, M, par, d, wF, wM, v, phi, G, gamma, k)
    elif kind == TRANSLATIONAL:
        k = translational.rows(F, M, par, d, wF, wM, v, phi, G, gamma, k)
    elif kind == SPHERICAL:
        k = spherical.rows(F, M, par, d, wF, wM, v, phi, G, gamma, k)
    elif kind == FREE:
        k = free.rows(F, M, par, d, wF, wM, v, phi, G, gamma, k)
    else:
        k = weld.rows(F, M, par, d, wF, wM, v, phi, G, gamma, k)
    return k


@inline
def joint_plus(kind, n, q, i, xi, j, out):
    """out = q (+) xi for one joint with n freedoms."""
    if kind == SPHERICAL:
        spherical.plus(q, i, xi, j, out)
    elif kind == FREE:
        free.plus(q, i, xi, j, out)
    else:
        for k in range(n):
            out[i + k] = q[i + k] + xi[j + k]


@inline
def joint_minus(kind, n, q, p, i, xi, j):
    """xi with p = q (+) xi for one joint with n freedoms."""
    if kind == SPHERICAL:
        spherical.minus(q, p, i, xi, j)
    elif kind == FREE:
        free.minus(q, p, i, xi, j)
    else:
        for k in range(n):
            xi[j + k] = p[i + k] - q[i + k]
