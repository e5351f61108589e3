"""Helical joint (screw): rotation about the axis, z of F, with a proportional slide along it."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np

from loopdyn.engine.jit import inline
from loopdyn.joints.base import ABOUT_AXIS, Array, AxisJoint, BearingLoads, Turning, turn_about_z
from loopdyn.joints.reading import about_z, angle_about_z, near
from loopdyn.joints.rows import displacement, screw, tilt
from loopdyn.quantities.units import Path, Resolver, Scalar
from loopdyn.spatial.plucker import dot, put3, rot, row, scale
from loopdyn.spatial.rotations import axis_rotation

ZERO, Z_AXIS = (0.0, 0.0, 0.0), (0.0, 0.0, 1.0)


class Helical(AxisJoint):
    """Screw: the child turns about `axis` and slides along it by `pitch` times the angle.

    Coordinate: the angle, which counts turns. `pitch` is in m/rad (length per angle of the model's units).

    Parameters
    ----------
    axis : (3,)
        Direction of the screw; its length does not matter.
    pitch : number
        Slide per angle, in units of length per unit of angle (m/rad by default).
    **placement : Any
        Bodies, place, limits and armature, as for every :class:`loopdyn.joints.Joint`; :meth:`Mechanism.add_joint
        <loopdyn.Mechanism.add_joint>` takes them as well.

    Examples
    --------
    >>> Helical(axis=(0, 0, 1), pitch=0.002).pitch
    0.002
    """

    label: ClassVar[str] = "helical joint"
    kind: ClassVar[int] = 3
    coordinates: ClassVar[tuple[str, ...]] = ("",)
    speeds: ClassVar[tuple[str, ...]] = ("",)
    dimensions: ClassVar[tuple[str, ...]] = ("angle",)
    speed_dimensions: ClassVar[tuple[str, ...]] = ("angle",)
    rows_when_cut: ClassVar[tuple[str, ...]] = ("mx", "my", "fx", "fy", "screw")
    row_dimensions: ClassVar[tuple[str, ...]] = ("angle", "angle", "length", "length", "length")
    bearing_loads: ClassVar[BearingLoads] = ABOUT_AXIS
    constants: ClassVar[dict[str, str]] = {"pitch": "pitch"}
    turning: ClassVar[Turning] = "about z"
    reversed_by_sign: ClassVar[bool] = True

    type: Literal["helical"] = "helical"
    pitch: Scalar

    def axes(self, r: Resolver, element: str, path: Path) -> tuple[Array, tuple[float, float]]:
        """Frame with the axis as z; par = (pitch, 0)."""
        pitch = r.scalar(self.pitch, "pitch", element, (*path, "pitch"))
        if pitch == 0.0:
            r.problem(element, "'pitch' is zero", "Use a revolute joint where nothing slides.", (*path, "pitch"))
            pitch = 1.0
        return super().axes(r, element, path)[0], (pitch, 0.0)

    @classmethod
    def row_wrenches(cls, E: Array, par: tuple[float, float]) -> Array:
        """The axial force has a torque of -pitch times the force with it."""
        found = np.eye(6)[[0, 1, 3, 4, 5]]
        found[4, 2] = -par[0]
        return found

    @classmethod
    def is_periodic(cls, k: int) -> bool:
        """False: the slide determines the turns."""
        return False

    @staticmethod
    def measure(E: Array, d: Array, par: tuple[float, float]) -> Array:
        """Angle about z, with the turns determined by the slide."""
        angle = turn_about_z(E)
        return np.array([angle + 2 * np.pi * np.round((d[2] / par[0] - angle) / (2 * np.pi))])


@inline
def rotation(A, par, q, i):
    return axis_rotation(row(A, 2), q[i])


@inline
def motion(RF, RM, A, par, q, i, v, j, S):
    a = rot(RF, row(A, 2))
    put3(S, j, 0, a)
    put3(S, j, 3, scale(par[0], a))
    return scale(par[0] * q[i], a), scale(v[j], a), scale(par[0] * v[j], a), ZERO, ZERO


@inline
def rows(F, M, par, d, wF, wM, v, phi, G, gamma, k):
    k = tilt(F, M, wF, wM, phi, G, gamma, k)
    k = displacement(row(F, 0), d, wF, v, phi, G, gamma, k)
    k = displacement(row(F, 1), d, wF, v, phi, G, gamma, k)
    return screw(par[0], F, M, d, wF, wM, v, phi, G, gamma, k)


@inline
def pose(par, q, i):
    return (0.0, 0.0, par[0] * q[i]), axis_rotation(Z_AXIS, q[i])


@inline
def read(par, d, E, q, i):
    q[i] = near(about_z(E), d[2] / par[0])


@inline
def coordinate(k, F, M, par, d):
    return near(angle_about_z(F, M), dot(row(F, 2), d) / par[0])


@inline
def wrench(k, F, M, par):
    return row(F, 2), ZERO
