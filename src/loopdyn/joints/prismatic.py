"""Prismatic joint (slider): one translation along the axis, z of F."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np

from loopdyn.engine.jit import inline
from loopdyn.joints.base import Array, AxisJoint, BearingLoads, Turning
from loopdyn.joints.rows import displacement, no_rotation
from loopdyn.spatial.plucker import dot, put3, rot, row, scale

ZERO = (0.0, 0.0, 0.0)
IDENTITY = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)


class Prismatic(AxisJoint):
    """Slider: the child moves along `axis` without turning. Coordinate: the displacement.

    Parameters
    ----------
    axis : (3,)
        Direction of the slide; its length does not matter.
    **placement : Any
        Bodies, place, limits and armature, as for every :class:`loopdyn.joints.Joint`; :meth:`Mechanism.add_joint
        <loopdyn.Mechanism.add_joint>` takes them as well.

    Examples
    --------
    >>> Prismatic(axis=(1, 0, 0), limits=(0, 0.5)).limits
    (0.0, 0.5)
    """

    label: ClassVar[str] = "prismatic joint"
    kind: ClassVar[int] = 2
    coordinates: ClassVar[tuple[str, ...]] = ("",)
    speeds: ClassVar[tuple[str, ...]] = ("",)
    dimensions: ClassVar[tuple[str, ...]] = ("length",)
    speed_dimensions: ClassVar[tuple[str, ...]] = ("length",)
    rows_when_cut: ClassVar[tuple[str, ...]] = ("mx", "my", "mz", "fx", "fy")
    row_dimensions: ClassVar[tuple[str, ...]] = ("angle", "angle", "angle", "length", "length")
    bearing_loads: ClassVar[BearingLoads] = {
        "guiding force": (3, 4), "tilting moment": (0, 1), "axial moment": (2,)
    }  # fmt: skip
    turning: ClassVar[Turning] = "none"
    reversed_by_sign: ClassVar[bool] = True

    type: Literal["prismatic"] = "prismatic"

    @staticmethod
    def measure(E: Array, d: Array, par: tuple[float, float]) -> Array:
        """Displacement along z."""
        return np.array([d[2]])


@inline
def rotation(A, par, q, i):
    return IDENTITY


@inline
def motion(RF, RM, A, par, q, i, v, j, S):
    a = rot(RF, row(A, 2))
    put3(S, j, 0, ZERO)
    put3(S, j, 3, a)
    return scale(q[i], a), ZERO, scale(v[j], a), ZERO, ZERO


@inline
def rows(F, M, par, d, wF, wM, v, phi, G, gamma, k):
    k = no_rotation(F, M, wF, wM, phi, G, gamma, k)
    k = displacement(row(F, 0), d, wF, v, phi, G, gamma, k)
    return displacement(row(F, 1), d, wF, v, phi, G, gamma, k)


@inline
def pose(par, q, i):
    return (0.0, 0.0, q[i]), IDENTITY


@inline
def read(par, d, E, q, i):
    q[i] = d[2]


@inline
def coordinate(k, F, M, par, d):
    return dot(row(F, 2), d)


@inline
def wrench(k, F, M, par):
    return ZERO, row(F, 2)
