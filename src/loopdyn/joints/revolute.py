"""Revolute joint (pin): one rotation about the axis, z of F."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np

from loopdyn.engine.jit import inline
from loopdyn.joints.base import ABOUT_AXIS, Array, AxisJoint, BearingLoads, Turning, turn_about_z
from loopdyn.joints.reading import about_z, angle_about_z, near
from loopdyn.joints.rows import displacement, tilt
from loopdyn.spatial.plucker import put3, rot, row, scale
from loopdyn.spatial.rotations import axis_rotation

ZERO, Z_AXIS = (0.0, 0.0, 0.0), (0.0, 0.0, 1.0)


class Revolute(AxisJoint):
    """Pin: the child turns about `axis`. Coordinate: the angle.

    Parameters
    ----------
    axis : (3,)
        Direction of the pin; its length does not matter.
    **placement : Any
        Bodies, place, limits and armature, as for every :class:`loopdyn.joints.Joint`; :meth:`Mechanism.add_joint
        <loopdyn.Mechanism.add_joint>` takes them as well.

    Examples
    --------
    >>> Revolute(axis=(0, 0, 1))
    Revolute(type='revolute', axis=(0.0, 0.0, 1.0))
    """

    label: ClassVar[str] = "revolute joint"
    kind: ClassVar[int] = 1
    coordinates: ClassVar[tuple[str, ...]] = ("",)
    speeds: ClassVar[tuple[str, ...]] = ("",)
    dimensions: ClassVar[tuple[str, ...]] = ("angle",)
    speed_dimensions: ClassVar[tuple[str, ...]] = ("angle",)
    rows_when_cut: ClassVar[tuple[str, ...]] = ("mx", "my", "fx", "fy", "fz")
    row_dimensions: ClassVar[tuple[str, ...]] = ("angle", "angle", "length", "length", "length")
    bearing_loads: ClassVar[BearingLoads] = ABOUT_AXIS
    turning: ClassVar[Turning] = "about z"
    reversed_by_sign: ClassVar[bool] = True

    type: Literal["revolute"] = "revolute"

    @staticmethod
    def measure(E: Array, d: Array, par: tuple[float, float]) -> Array:
        """Angle about z."""
        return np.array([turn_about_z(E)])


@inline
def rotation(A, par, q, i):
    return axis_rotation(row(A, 2), q[i])


@inline
def motion(RF, RM, A, par, q, i, v, j, S):
    a = rot(RF, row(A, 2))
    put3(S, j, 0, a)
    put3(S, j, 3, ZERO)
    return ZERO, scale(v[j], a), ZERO, ZERO, ZERO


@inline(always=True)
def rows(F, M, par, d, wF, wM, v, phi, G, gamma, k):
    k = tilt(F, M, wF, wM, phi, G, gamma, k)
    k = displacement(row(F, 0), d, wF, v, phi, G, gamma, k)
    k = displacement(row(F, 1), d, wF, v, phi, G, gamma, k)
    return displacement(row(F, 2), d, wF, v, phi, G, gamma, k)


@inline
def pose(par, q, i):
    return ZERO, axis_rotation(Z_AXIS, q[i])


@inline
def read(par, d, E, q, i):
    q[i] = near(about_z(E), q[i])


@inline
def coordinate(k, F, M, par, d):
    return angle_about_z(F, M)


@inline
def wrench(k, F, M, par):
    return row(F, 2), ZERO
