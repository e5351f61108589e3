"""Free joint: six freedoms, for bodies that float."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np

from loopdyn.engine.jit import inline
from loopdyn.joints.base import Array, Joint, Turning
from loopdyn.joints.reading import pick, put_quaternion
from loopdyn.joints.spherical import seen_in_shared_axes, turn, turn_between, turn_rate
from loopdyn.spatial.plucker import add, cross, put3, rot, rot_t, row, scale, sub
from loopdyn.spatial.rotations import from_matrix, quaternion_exp, quaternion_matrix

ZERO = (0.0, 0.0, 0.0)


class Free(Joint):
    """The child moves freely. Coordinates: position and quaternion of M in F; speeds: omega and v in M axes.

    Examples
    --------
    >>> Free().labels("body")[1]
    ['body.wx', 'body.wy', 'body.wz', 'body.vx', 'body.vy', 'body.vz']
    """

    label: ClassVar[str] = "free joint"
    kind: ClassVar[int] = 9
    coordinates: ClassVar[tuple[str, ...]] = ("px", "py", "pz", "w", "x", "y", "z")
    speeds: ClassVar[tuple[str, ...]] = ("wx", "wy", "wz", "vx", "vy", "vz")
    dimensions: ClassVar[tuple[str, ...]] = ("length", "length", "length", "number", "number", "number", "number")
    speed_dimensions: ClassVar[tuple[str, ...]] = ("angle", "angle", "angle", "length", "length", "length")
    rows_when_cut: ClassVar[tuple[str, ...]] = ()
    row_dimensions: ClassVar[tuple[str, ...]] = ()
    turning: ClassVar[Turning] = "about a point"
    reversed_by_sign: ClassVar[bool] = False

    type: Literal["free"] = "free"

    @staticmethod
    def measure(E: Array, d: Array, par: tuple[float, float]) -> Array:
        """Position and quaternion."""
        return np.concatenate([d, from_matrix(E)])

    @classmethod
    def gradient(cls, k: int, E: Array) -> Array:
        """Gradient of the position, which is in F axes, by the velocity in M axes."""
        return np.concatenate([np.zeros(3), E[k]])

    @staticmethod
    def curvature(v: Array) -> Array:
        """Moved by (+), the origin moves along a line, while its velocity is constant in axes that turn with M."""
        return np.concatenate([np.zeros(3), np.cross(v[:3], v[3:])])


@inline
def rotation(A, par, q, i):
    return seen_in_shared_axes(A, q, i + 3)


@inline
def motion(RF, RM, A, par, q, i, v, j, S):
    x, y, z = rot(RM, row(A, 0)), rot(RM, row(A, 1)), rot(RM, row(A, 2))
    put3(S, j, 0, x)
    put3(S, j, 3, ZERO)
    put3(S, j + 1, 0, y)
    put3(S, j + 1, 3, ZERO)
    put3(S, j + 2, 0, z)
    put3(S, j + 2, 3, ZERO)
    put3(S, j + 3, 0, ZERO)
    put3(S, j + 3, 3, x)
    put3(S, j + 4, 0, ZERO)
    put3(S, j + 4, 3, y)
    put3(S, j + 5, 0, ZERO)
    put3(S, j + 5, 3, z)
    d = rot(RF, rot_t(A, (q[i], q[i + 1], q[i + 2])))
    w = add(add(scale(v[j], x), scale(v[j + 1], y)), scale(v[j + 2], z))
    dd = add(add(scale(v[j + 3], x), scale(v[j + 4], y)), scale(v[j + 5], z))
    return d, w, dd, ZERO, cross(w, dd)


@inline
def plus(q, i, xi, j, out):
    """Move the position along the axes of M before the rotation; then rotate."""
    R = quaternion_matrix((q[i + 3], q[i + 4], q[i + 5], q[i + 6]))
    p = rot(R, (xi[j + 3], xi[j + 4], xi[j + 5]))
    out[i] = q[i] + p[0]
    out[i + 1] = q[i + 1] + p[1]
    out[i + 2] = q[i + 2] + p[2]
    turn(q, i + 3, xi, j, out)


@inline
def minus(q, p, i, xi, j):
    R = quaternion_matrix((q[i + 3], q[i + 4], q[i + 5], q[i + 6]))
    d = rot_t(R, (p[i] - q[i], p[i + 1] - q[i + 1], p[i + 2] - q[i + 2]))
    xi[j + 3] = d[0]
    xi[j + 4] = d[1]
    xi[j + 5] = d[2]
    turn_between(q, p, i + 3, xi, j)


@inline
def rate(xi, v, j, out):
    """Rate of the rotation as for a ball; the position moves along the axes of M before the rotation."""
    turn_rate(xi, v, j, out)
    E = quaternion_matrix(quaternion_exp((xi[j], xi[j + 1], xi[j + 2])))
    out[j + 3], out[j + 4], out[j + 5] = rot(E, (v[j + 3], v[j + 4], v[j + 5]))


@inline
def mean_speeds(xi, h, j, v):
    """The position moves along the axes at the start of the step, the speeds are along those of its middle."""
    for k in range(j, j + 3):
        v[k] = xi[k] / h
    E = quaternion_matrix(quaternion_exp((0.5 * xi[j], 0.5 * xi[j + 1], 0.5 * xi[j + 2])))
    v[j + 3], v[j + 4], v[j + 5] = rot_t(E, (xi[j + 3] / h, xi[j + 4] / h, xi[j + 5] / h))


@inline
def rows(F, M, par, d, wF, wM, v, phi, G, gamma, k):
    return k


@inline
def pose(par, q, i):
    return (q[i], q[i + 1], q[i + 2]), quaternion_matrix((q[i + 3], q[i + 4], q[i + 5], q[i + 6]))


@inline
def read(par, d, E, q, i):
    q[i], q[i + 1], q[i + 2] = d
    put_quaternion(q, i + 3, E)


@inline
def coordinate(k, F, M, par, d):
    """Zero, which is not used: its freedoms have no scalar coordinates."""
    return 0.0 * d[0]


@inline
def wrench(k, F, M, par):
    if k < 3:
        torque, force = pick(M, k), ZERO
    else:
        torque, force = ZERO, pick(M, k - 3)
    return torque, force


@inline
def wrench_rate(wF, wM, torque, force):
    """Rates of forces that are fixed in M: seen from F they rotate."""
    return cross(wF, torque), cross(sub(wM, wF), force)
