"""Cylindrical joint: rotation about and translation along one axis, z of F."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np

from loopdyn.engine.jit import inline
from loopdyn.joints.base import ABOUT_AXIS, Array, AxisJoint, BearingLoads, Turning, turn_about_z
from loopdyn.joints.reading import about_z, angle_about_z, near
from loopdyn.joints.rows import displacement, tilt
from loopdyn.spatial.plucker import dot, put3, rot, row, scale
from loopdyn.spatial.rotations import axis_rotation

ZERO, Z_AXIS = (0.0, 0.0, 0.0), (0.0, 0.0, 1.0)


class Cylindrical(AxisJoint):
    """Sleeve: the child turns about `axis` and slides along it. Coordinates: angle, slide.

    Parameters
    ----------
    axis : (3,)
        Direction of the axis; its length does not matter.
    **placement : Any
        Bodies, place, limits and armature, as for every :class:`loopdyn.joints.Joint`; :meth:`Mechanism.add_joint
        <loopdyn.Mechanism.add_joint>` takes them as well.

    Examples
    --------
    >>> Cylindrical(axis=(1, 0, 0)).labels("C")[0]
    ['C.angle', 'C.slide']
    """

    label: ClassVar[str] = "cylindrical joint"
    kind: ClassVar[int] = 4
    coordinates: ClassVar[tuple[str, ...]] = ("angle", "slide")
    speeds: ClassVar[tuple[str, ...]] = ("angle", "slide")
    dimensions: ClassVar[tuple[str, ...]] = ("angle", "length")
    speed_dimensions: ClassVar[tuple[str, ...]] = ("angle", "length")
    rows_when_cut: ClassVar[tuple[str, ...]] = ("mx", "my", "fx", "fy")
    row_dimensions: ClassVar[tuple[str, ...]] = ("angle", "angle", "length", "length")
    bearing_loads: ClassVar[BearingLoads] = ABOUT_AXIS
    turning: ClassVar[Turning] = "about z"
    reversed_by_sign: ClassVar[bool] = True

    type: Literal["cylindrical"] = "cylindrical"

    @staticmethod
    def measure(E: Array, d: Array, par: tuple[float, float]) -> Array:
        """Angle about z and displacement along it."""
        return np.array([turn_about_z(E), d[2]])


@inline
def rotation(A, par, q, i):
    return axis_rotation(row(A, 2), q[i])


@inline
def motion(RF, RM, A, par, q, i, v, j, S):
    a = rot(RF, row(A, 2))
    put3(S, j, 0, a)
    put3(S, j, 3, ZERO)
    put3(S, j + 1, 0, ZERO)
    put3(S, j + 1, 3, a)
    return scale(q[i + 1], a), scale(v[j], a), scale(v[j + 1], a), ZERO, ZERO


@inline
def rows(F, M, par, d, wF, wM, v, phi, G, gamma, k):
    k = tilt(F, M, wF, wM, phi, G, gamma, k)
    k = displacement(row(F, 0), d, wF, v, phi, G, gamma, k)
    return displacement(row(F, 1), d, wF, v, phi, G, gamma, k)


@inline
def pose(par, q, i):
    return (0.0, 0.0, q[i + 1]), axis_rotation(Z_AXIS, q[i])


@inline
def read(par, d, E, q, i):
    q[i], q[i + 1] = near(about_z(E), q[i]), d[2]


@inline
def coordinate(k, F, M, par, d):
    if k == 0:
        x = angle_about_z(F, M)
    else:
        x = dot(row(F, 2), d)
    return x


@inline
def wrench(k, F, M, par):
    if k == 0:
        torque, force = row(F, 2), ZERO
    else:
        torque, force = ZERO, row(F, 2)
    return torque, force
