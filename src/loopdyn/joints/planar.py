"""Planar joint: two translations in a plane fixed in the parent and the rotation about its normal, z of F."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np

from loopdyn.engine.jit import inline
from loopdyn.joints.base import Array, BearingLoads, Joint, Turning, turn_about_z
from loopdyn.joints.reading import about_z, angle_about_z, near, pick
from loopdyn.joints.rows import displacement, tilt
from loopdyn.quantities.units import Path, Resolver, Vec3
from loopdyn.spatial.plucker import add, dot, put3, rot, row, scale
from loopdyn.spatial.rotations import axis_rotation, perpendicular_frame

ZERO, Z_AXIS = (0.0, 0.0, 0.0), (0.0, 0.0, 1.0)


class Planar(Joint):
    """The child moves in a plane of the parent. Coordinates: x, y, angle about `normal`.

    `x` is the direction of the first coordinate; without it the X direction projected on the plane is
    taken, or Y where the normal is nearly along X.

    Parameters
    ----------
    normal : (3,)
        Normal of the plane of motion.
    x : (3,), optional
        Direction of the first coordinate, projected on the plane; by default world X, or Y if X is nearly normal.
    **placement : Any
        Bodies, place, limits and armature, as for every :class:`loopdyn.joints.Joint`; :meth:`Mechanism.add_joint
        <loopdyn.Mechanism.add_joint>` takes them as well.

    Examples
    --------
    >>> Planar(normal=(0, 0, 1)).labels("P")[0]
    ['P.x', 'P.y', 'P.angle']
    """

    label: ClassVar[str] = "planar joint"
    kind: ClassVar[int] = 6
    coordinates: ClassVar[tuple[str, ...]] = ("x", "y", "angle")
    speeds: ClassVar[tuple[str, ...]] = ("x", "y", "angle")
    dimensions: ClassVar[tuple[str, ...]] = ("length", "length", "angle")
    speed_dimensions: ClassVar[tuple[str, ...]] = ("length", "length", "angle")
    rows_when_cut: ClassVar[tuple[str, ...]] = ("mx", "my", "fz")
    row_dimensions: ClassVar[tuple[str, ...]] = ("angle", "angle", "length")
    bearing_loads: ClassVar[BearingLoads] = {"normal force": (5,), "tilting moment": (0, 1)}
    turning: ClassVar[Turning] = "about z"
    reversed_by_sign: ClassVar[bool] = False

    type: Literal["planar"] = "planar"
    normal: Vec3
    x: Vec3 | None = None

    def axes(self, r: Resolver, element: str, path: Path) -> tuple[Array, tuple[float, float]]:
        """Frame with the normal as z."""
        normal = r.direction(self.normal, element, (*path, "normal"))
        if self.x is None:
            return perpendicular_frame(normal), (0.0, 0.0)
        x = r.direction(self.x, element, (*path, "x"))
        if np.linalg.norm(np.cross(normal, x)) < 1e-6:
            r.problem(element, "'x' is along the normal", "Give a direction in the plane.", (*path, "x"))
            return perpendicular_frame(normal), (0.0, 0.0)
        return perpendicular_frame(normal, x), (0.0, 0.0)

    @staticmethod
    def axes_in_frame(par: tuple[float, float]) -> dict[str, Array]:
        """The normal is z."""
        return {"normal": np.array([0.0, 0.0, 1.0]), "x": np.array([1.0, 0.0, 0.0])}

    @staticmethod
    def measure(E: Array, d: Array, par: tuple[float, float]) -> Array:
        """Displacements along x and y, angle about z."""
        return np.array([d[0], d[1], turn_about_z(E)])


@inline
def rotation(A, par, q, i):
    return axis_rotation(row(A, 2), q[i + 2])


@inline
def motion(RF, RM, A, par, q, i, v, j, S):
    x, y, z = rot(RF, row(A, 0)), rot(RF, row(A, 1)), rot(RF, row(A, 2))
    put3(S, j, 0, ZERO)
    put3(S, j, 3, x)
    put3(S, j + 1, 0, ZERO)
    put3(S, j + 1, 3, y)
    put3(S, j + 2, 0, z)
    put3(S, j + 2, 3, ZERO)
    d = add(scale(q[i], x), scale(q[i + 1], y))
    return d, scale(v[j + 2], z), add(scale(v[j], x), scale(v[j + 1], y)), ZERO, ZERO


@inline
def rows(F, M, par, d, wF, wM, v, phi, G, gamma, k):
    k = tilt(F, M, wF, wM, phi, G, gamma, k)
    return displacement(row(F, 2), d, wF, v, phi, G, gamma, k)


@inline
def pose(par, q, i):
    return (q[i], q[i + 1], 0.0), axis_rotation(Z_AXIS, q[i + 2])


@inline
def read(par, d, E, q, i):
    q[i], q[i + 1], q[i + 2] = d[0], d[1], near(about_z(E), q[i + 2])


@inline
def coordinate(k, F, M, par, d):
    if k == 2:
        x = angle_about_z(F, M)
    else:
        x = dot(pick(F, k), d)
    return x


@inline
def wrench(k, F, M, par):
    if k == 2:
        torque, force = row(F, 2), ZERO
    else:
        torque, force = ZERO, pick(F, k)
    return torque, force
