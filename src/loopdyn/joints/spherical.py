"""Spherical joint (ball): three rotations, a unit quaternion as coordinates."""

from __future__ import annotations

from typing import ClassVar, Literal

from loopdyn.engine.jit import inline
from loopdyn.joints.base import Array, Joint, Turning
from loopdyn.joints.reading import pick, put_quaternion
from loopdyn.joints.rows import displacement
from loopdyn.spatial.plucker import add, mul, put3, rot, row, scale, transpose
from loopdyn.spatial.rotations import (
    from_matrix,
    quaternion_exp,
    quaternion_log,
    quaternion_matrix,
    quaternion_product,
    rotation_vector_rate,
)

ZERO = (0.0, 0.0, 0.0)


class Spherical(Joint):
    """Ball: the child turns about a point. Coordinates: quaternion of M in F; speeds: omega in M axes.

    Examples
    --------
    >>> Spherical().labels("S")
    (['S.w', 'S.x', 'S.y', 'S.z'], ['S.wx', 'S.wy', 'S.wz'])
    """

    label: ClassVar[str] = "spherical joint"
    kind: ClassVar[int] = 8
    coordinates: ClassVar[tuple[str, ...]] = ("w", "x", "y", "z")
    speeds: ClassVar[tuple[str, ...]] = ("wx", "wy", "wz")
    dimensions: ClassVar[tuple[str, ...]] = ("number", "number", "number", "number")
    speed_dimensions: ClassVar[tuple[str, ...]] = ("angle", "angle", "angle")
    rows_when_cut: ClassVar[tuple[str, ...]] = ("fx", "fy", "fz")
    row_dimensions: ClassVar[tuple[str, ...]] = ("length", "length", "length")
    turning: ClassVar[Turning] = "about a point"
    reversed_by_sign: ClassVar[bool] = False

    type: Literal["spherical"] = "spherical"

    @staticmethod
    def measure(E: Array, d: Array, par: tuple[float, float]) -> Array:
        """Quaternion of the rotation."""
        return from_matrix(E)


@inline
def seen_in_shared_axes(A, q, i):
    """Rotation of the quaternion q[i:i+4], given in the axes A, seen in the shared axes: A^T R A."""
    R = quaternion_matrix((q[i], q[i + 1], q[i + 2], q[i + 3]))
    return mul(transpose(A), mul(R, A))


@inline
def rotation(A, par, q, i):
    return seen_in_shared_axes(A, q, i)


@inline
def motion(RF, RM, A, par, q, i, v, j, S):
    x, y, z = rot(RM, row(A, 0)), rot(RM, row(A, 1)), rot(RM, row(A, 2))
    put3(S, j, 0, x)
    put3(S, j, 3, ZERO)
    put3(S, j + 1, 0, y)
    put3(S, j + 1, 3, ZERO)
    put3(S, j + 2, 0, z)
    put3(S, j + 2, 3, ZERO)
    # the axes turn with M: their rate contributes omega_F x w only, since w x w = 0
    return ZERO, add(add(scale(v[j], x), scale(v[j + 1], y)), scale(v[j + 2], z)), ZERO, ZERO, ZERO


@inline
def turn(q, i, xi, j, out):
    """out = q exp(xi) for the quaternion at i and the rotation vector at j, M axes; kept at unit length."""
    p = (q[i], q[i + 1], q[i + 2], q[i + 3])
    r = quaternion_product(p, quaternion_exp((xi[j], xi[j + 1], xi[j + 2])))
    # one Newton step for 1/|r|: rounding is removed, exact derivatives are kept
    k = 1.5 - 0.5 * (r[0] * r[0] + r[1] * r[1] + r[2] * r[2] + r[3] * r[3])
    out[i] = k * r[0]
    out[i + 1] = k * r[1]
    out[i + 2] = k * r[2]
    out[i + 3] = k * r[3]


@inline
def turn_between(q, p, i, xi, j):
    """xi with p = q exp(xi)."""
    w = quaternion_log(
        quaternion_product((q[i], -q[i + 1], -q[i + 2], -q[i + 3]), (p[i], p[i + 1], p[i + 2], p[i + 3]))
    )
    xi[j] = w[0]
    xi[j + 1] = w[1]
    xi[j + 2] = w[2]


@inline
def turn_rate(xi, v, j, out):
    """out = xi' for the rotation vector at j and the angular velocity v, M axes."""
    turn = (xi[j], xi[j + 1], xi[j + 2])
    out[j], out[j + 1], out[j + 2] = rotation_vector_rate(turn, (v[j], v[j + 1], v[j + 2]))


@inline
def plus(q, i, xi, j, out):
    turn(q, i, xi, j, out)


@inline
def minus(q, p, i, xi, j):
    turn_between(q, p, i, xi, j)


@inline
def rate(xi, v, j, out):
    turn_rate(xi, v, j, out)


@inline
def rows(F, M, par, d, wF, wM, v, phi, G, gamma, k):
    k = displacement(row(F, 0), d, wF, v, phi, G, gamma, k)
    k = displacement(row(F, 1), d, wF, v, phi, G, gamma, k)
    return displacement(row(F, 2), d, wF, v, phi, G, gamma, k)


@inline
def pose(par, q, i):
    return ZERO, quaternion_matrix((q[i], q[i + 1], q[i + 2], q[i + 3]))


@inline
def read(par, d, E, q, i):
    put_quaternion(q, i, E)


@inline
def coordinate(k, F, M, par, d):
    """Zero, which is not used: its freedoms have no scalar coordinates."""
    return 0.0 * d[0]


@inline
def wrench(k, F, M, par):
    return pick(M, k), ZERO
