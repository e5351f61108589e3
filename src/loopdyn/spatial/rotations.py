"""Rotations: axis and angle, unit quaternions ``(w, x, y, z)``, and the maps between them.

Kernel helpers take and return tuples (see :mod:`loopdyn.spatial.plucker`); the functions at the end work on NumPy
arrays, for the public layer.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from loopdyn.engine.jit import inline
from loopdyn.spatial.plucker import add, cross, scale

# Below this squared angle sin(x)/x is taken from its series; the first term left out is x^6/5040 < 1e-19 there.
_SMALL_ANGLE_SQUARED = 1e-6
# The same for the rate of a rotation vector; the first term left out is x^6/1209600 < 1e-18 there.
_SMALL_TURN_SQUARED = 1e-4


@inline
def axis_rotation(u, angle):
    """Rotation matrix about the unit vector u (Rodrigues)."""
    s = np.sin(angle)
    c = np.cos(angle)
    f = 1.0 - c
    x, y, z = u
    return (
        c + f * x * x,
        f * x * y - s * z,
        f * x * z + s * y,
        f * x * y + s * z,
        c + f * y * y,
        f * y * z - s * x,
        f * x * z - s * y,
        f * y * z + s * x,
        c + f * z * z,
    )


@inline
def atan2(y, x):
    """Angle of (x, y) in [-pi, pi], also in complex arithmetic."""
    rho = np.sqrt(x * x + y * y)
    if x.real >= 0.0:
        return 2.0 * np.arctan(y / (rho + x))
    angle = 2.0 * np.arctan(y / (rho - x))
    if y.real >= 0.0:
        return np.pi - angle
    return -np.pi - angle


@inline
def quaternion_matrix(q):
    """Rotation matrix of the unit quaternion q = (w, x, y, z)."""
    w, x, y, z = q
    return (
        1.0 - 2.0 * (y * y + z * z),
        2.0 * (x * y - w * z),
        2.0 * (x * z + w * y),
        2.0 * (x * y + w * z),
        1.0 - 2.0 * (x * x + z * z),
        2.0 * (y * z - w * x),
        2.0 * (x * z - w * y),
        2.0 * (y * z + w * x),
        1.0 - 2.0 * (x * x + y * y),
    )


@inline
def quaternion_product(p, q):
    return (
        p[0] * q[0] - p[1] * q[1] - p[2] * q[2] - p[3] * q[3],
        p[0] * q[1] + p[1] * q[0] + p[2] * q[3] - p[3] * q[2],
        p[0] * q[2] - p[1] * q[3] + p[2] * q[0] + p[3] * q[1],
        p[0] * q[3] + p[1] * q[2] - p[2] * q[1] + p[3] * q[0],
    )


@inline
def quaternion_exp(w):
    """Unit quaternion of the rotation vector w."""
    n2 = w[0] * w[0] + w[1] * w[1] + w[2] * w[2]
    if n2.real < _SMALL_ANGLE_SQUARED:
        c = 1.0 - n2 / 8.0 + n2 * n2 / 384.0
        s = 0.5 - n2 / 48.0 + n2 * n2 / 3840.0
    else:
        n = np.sqrt(n2)
        c = np.cos(0.5 * n)
        s = np.sin(0.5 * n) / n
    return (c, s * w[0], s * w[1], s * w[2])


@inline
def quaternion_log(q):
    """Rotation vector of the unit quaternion q, of length at most pi."""
    s2 = q[1] * q[1] + q[2] * q[2] + q[3] * q[3]
    c = q[0]
    sign = 1.0
    if c.real < 0.0:
        sign = -1.0
    c = sign * c
    if s2.real < _SMALL_ANGLE_SQUARED:
        # 2 asin(s)/s
        k = 2.0 + s2 / 3.0 + 3.0 * s2 * s2 / 20.0
    else:
        s = np.sqrt(s2)
        # atan2(s, c) by a formula that also holds in complex arithmetic
        k = 4.0 * np.arctan(s / (1.0 + c)) / s
    k = sign * k
    return (k * q[1], k * q[2], k * q[3])


@inline
def rotation_vector_rate(xi, w):
    """Rate of the rotation vector xi of q0 exp(xi/2), whose angular velocity in its own axes is w.

    The inverse of the derivative of the exponential map: w + 1/2 xi x w + c xi x (xi x w) with
    c = (1 - (|xi|/2) cot(|xi|/2)) / |xi|^2.
    """
    n2 = xi[0] * xi[0] + xi[1] * xi[1] + xi[2] * xi[2]
    if n2.real < _SMALL_TURN_SQUARED:
        c = 1.0 / 12.0 + n2 / 720.0 + n2 * n2 / 30240.0
    else:
        half = 0.5 * np.sqrt(n2)
        c = (1.0 - half * np.cos(half) / np.sin(half)) / n2
    x = cross(xi, w)
    return add(add(w, scale(0.5, x)), scale(c, cross(xi, x)))


@inline
def matrix_quaternion(R):
    """Unit quaternion with w >= 0 of a rotation matrix; the largest component is computed first."""
    t = R[0] + R[4] + R[8]
    if t.real >= R[0].real and t.real >= R[4].real and t.real >= R[8].real:
        s = 2.0 * np.sqrt(1.0 + t)
        q = (0.25 * s, (R[7] - R[5]) / s, (R[2] - R[6]) / s, (R[3] - R[1]) / s)
    elif R[0].real >= R[4].real and R[0].real >= R[8].real:
        s = 2.0 * np.sqrt(1.0 + R[0] - R[4] - R[8])
        q = ((R[7] - R[5]) / s, 0.25 * s, (R[1] + R[3]) / s, (R[2] + R[6]) / s)
    elif R[4].real >= R[8].real:
        s = 2.0 * np.sqrt(1.0 - R[0] + R[4] - R[8])
        q = ((R[2] - R[6]) / s, (R[1] + R[3]) / s, 0.25 * s, (R[5] + R[7]) / s)
    else:
        s = 2.0 * np.sqrt(1.0 - R[0] - R[4] + R[8])
        q = ((R[3] - R[1]) / s, (R[2] + R[6]) / s, (R[5] + R[7]) / s, 0.25 * s)
    if q[0].real < 0.0:
        q = (-q[0], -q[1], -q[2], -q[3])
    return q


# ------------------------------------------------------------------------------------------ NumPy layer


def to_matrix(quaternion: ArrayLike) -> NDArray[np.float64]:
    """Rotation matrix (3, 3) of a quaternion ``(w, x, y, z)``, which is normalised first.

    Examples
    --------
    >>> to_matrix([1, 0, 0, 1]).round(12) + 0.0
    array([[ 0., -1.,  0.],
           [ 1.,  0.,  0.],
           [ 0.,  0.,  1.]])
    """
    q = np.asarray(quaternion, float)
    w, x, y, z = (float(c) for c in q / np.linalg.norm(q))
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def from_matrix(matrix: ArrayLike) -> NDArray[np.float64]:
    """Unit quaternion ``(w, x, y, z)`` with ``w >= 0`` of a rotation matrix.

    Examples
    --------
    >>> from_matrix([[1, 0, 0], [0, -1, 0], [0, 0, -1]])
    array([0., 1., 0., 0.])
    """
    from scipy.spatial.transform import Rotation

    x, y, z, w = Rotation.from_matrix(np.array(matrix, float)).as_quat()  # a copy: SciPy below 1.17 writes to it
    return np.array([w, x, y, z]) * (-1.0 if w < 0 else 1.0) + 0.0


def about_axis(axis: ArrayLike, angle: float) -> NDArray[np.float64]:
    """Rotation matrix about `axis`, which is normalised first, by `angle` in radians.

    Examples
    --------
    >>> about_axis([0, 0, 2], np.pi / 2).round(12) + 0.0
    array([[ 0., -1.,  0.],
           [ 1.,  0.,  0.],
           [ 0.,  0.,  1.]])
    """
    a = np.asarray(axis, float)
    half = 0.5 * angle
    return to_matrix(np.concatenate([[np.cos(half)], np.sin(half) * a / np.linalg.norm(a)]))


def perpendicular_frame(axis: ArrayLike, x: ArrayLike | None = None) -> NDArray[np.float64]:
    """Right-handed frame whose third row is `axis`; rows are the unit vectors x, y, z.

    The first row is `x` made perpendicular to the axis; without it, the X direction is used, or Y where the
    axis is within about 25 degrees of X.

    Examples
    --------
    >>> perpendicular_frame([0, 0, 1])
    array([[1., 0., 0.],
           [0., 1., 0.],
           [0., 0., 1.]])
    """
    z = np.asarray(axis, float)
    z = z / np.sqrt(z @ z)
    if x is None:
        x = (1.0, 0.0, 0.0) if abs(z[0]) < 0.9 else (0.0, 1.0, 0.0)
    first = np.asarray(x, float)
    first = first - (first @ z) * z
    a, b, c = (first / np.sqrt(first @ first)).tolist()
    p, q, r = z.tolist()
    return np.array([[a, b, c], [q * c - r * b, r * a - p * c, p * b - q * a], [p, q, r]])
