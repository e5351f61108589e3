"""Translational joint: three translations along the axes of F, no rotation."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np

from loopdyn.engine.jit import inline
from loopdyn.joints.base import Array, Joint, Turning
from loopdyn.joints.reading import pick
from loopdyn.joints.rows import no_rotation
from loopdyn.spatial.plucker import add, dot, put3, rot, row, scale

ZERO = (0.0, 0.0, 0.0)
IDENTITY = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)


class Translational(Joint):
    """The child moves in all three directions without turning. Coordinates: x, y, z in F.

    Examples
    --------
    >>> Translational().labels("T")[0]
    ['T.x', 'T.y', 'T.z']
    """

    label: ClassVar[str] = "translational joint"
    kind: ClassVar[int] = 7
    coordinates: ClassVar[tuple[str, ...]] = ("x", "y", "z")
    speeds: ClassVar[tuple[str, ...]] = ("x", "y", "z")
    dimensions: ClassVar[tuple[str, ...]] = ("length", "length", "length")
    speed_dimensions: ClassVar[tuple[str, ...]] = ("length", "length", "length")
    rows_when_cut: ClassVar[tuple[str, ...]] = ("mx", "my", "mz")
    row_dimensions: ClassVar[tuple[str, ...]] = ("angle", "angle", "angle")
    turning: ClassVar[Turning] = "none"
    reversed_by_sign: ClassVar[bool] = True

    type: Literal["translational"] = "translational"

    @staticmethod
    def measure(E: Array, d: Array, par: tuple[float, float]) -> Array:
        """Displacements along x, y, z."""
        return np.array(d, float)


@inline
def rotation(A, par, q, i):
    return IDENTITY


@inline
def motion(RF, RM, A, par, q, i, v, j, S):
    x, y, z = rot(RF, row(A, 0)), rot(RF, row(A, 1)), rot(RF, row(A, 2))
    put3(S, j, 0, ZERO)
    put3(S, j, 3, x)
    put3(S, j + 1, 0, ZERO)
    put3(S, j + 1, 3, y)
    put3(S, j + 2, 0, ZERO)
    put3(S, j + 2, 3, z)
    d = add(add(scale(q[i], x), scale(q[i + 1], y)), scale(q[i + 2], z))
    dd = add(add(scale(v[j], x), scale(v[j + 1], y)), scale(v[j + 2], z))
    return d, ZERO, dd, ZERO, ZERO


@inline
def rows(F, M, par, d, wF, wM, v, phi, G, gamma, k):
    return no_rotation(F, M, wF, wM, phi, G, gamma, k)


@inline
def pose(par, q, i):
    return (q[i], q[i + 1], q[i + 2]), IDENTITY


@inline
def read(par, d, E, q, i):
    q[i], q[i + 1], q[i + 2] = d


@inline
def coordinate(k, F, M, par, d):
    return dot(pick(F, k), d)


@inline
def wrench(k, F, M, par):
    return ZERO, pick(F, k)
