"""Building blocks for reading coordinates from a pose, and directions of loads from the frames F and M.

Single coordinates are read where a joint that carries a spring, a motor or friction is cut, so that its coordinate is
not among the tree's. Angles are found within (-pi, pi]; `dispatch.counted_angle` adds their full turns.
"""

import numpy as np

from loopdyn.engine.jit import inline
from loopdyn.spatial.plucker import cross, dot, row
from loopdyn.spatial.rotations import atan2, matrix_quaternion

ZERO = (0.0, 0.0, 0.0)


@inline
def angle_about_z(F, M):
    """Angle about z from F to M, frames as rows in world axes."""
    fx, fy = row(F, 0), row(F, 1)
    mx, my = row(M, 0), row(M, 1)
    return atan2(dot(fy, mx) - dot(fx, my), dot(fx, mx) + dot(fy, my))


@inline
def about_z(E):
    """Angle of a rotation about z."""
    return atan2(E[3] - E[1], E[0] + E[4])


@inline
def near(x, before):
    """Angle x with the turns that bring it nearest to its previous value."""
    return x + 2.0 * np.pi * np.floor((before.real - x.real) / (2.0 * np.pi) + 0.5)


@inline
def put_quaternion(q, i, E):
    """q[i:i+4] of the rotation E: the one of the two quaternions nearer to its previous value."""
    w, x, y, z = matrix_quaternion(E)
    s = -1.0 if (w * q[i] + x * q[i + 1] + y * q[i + 2] + z * q[i + 3]).real < 0.0 else 1.0
    q[i], q[i + 1], q[i + 2], q[i + 3] = s * w, s * x, s * y, s * z


@inline
def pick(A, k):
    """Row k of a frame for a k known only at run time."""
    if k == 0:
        v = row(A, 0)
    elif k == 1:
        v = row(A, 1)
    else:
        v = row(A, 2)
    return v


@inline
def fixed_in_frame(wF, torque):
    """Rates of a wrench that is fixed in F: of the torque in world axes, of the force seen from F.

    Also valid for torques fixed in M: the difference is omega x torque, which has no power on omega.
    """
    return cross(wF, torque), ZERO
