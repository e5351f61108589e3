"""Weld: no relative motion."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np

from loopdyn.engine.jit import inline
from loopdyn.joints.base import Array, Joint, Turning
from loopdyn.joints.rows import displacement, no_rotation
from loopdyn.spatial.plucker import row

ZERO = (0.0, 0.0, 0.0)
IDENTITY = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)


class Weld(Joint):
    """The child is fixed to the parent.

    Examples
    --------
    >>> Weld().labels("W")
    ([], [])
    """

    label: ClassVar[str] = "weld joint"
    kind: ClassVar[int] = 0
    coordinates: ClassVar[tuple[str, ...]] = ()
    speeds: ClassVar[tuple[str, ...]] = ()
    dimensions: ClassVar[tuple[str, ...]] = ()
    speed_dimensions: ClassVar[tuple[str, ...]] = ()
    rows_when_cut: ClassVar[tuple[str, ...]] = ("mx", "my", "mz", "fx", "fy", "fz")
    row_dimensions: ClassVar[tuple[str, ...]] = ("angle", "angle", "angle", "length", "length", "length")
    turning: ClassVar[Turning] = "none"
    reversed_by_sign: ClassVar[bool] = True

    type: Literal["weld"] = "weld"

    @staticmethod
    def measure(E: Array, d: Array, par: tuple[float, float]) -> Array:
        """Nothing to measure."""
        return np.zeros(0)


@inline
def rotation(A, par, q, i):
    return IDENTITY


@inline
def motion(RF, RM, A, par, q, i, v, j, S):
    return ZERO, ZERO, ZERO, ZERO, ZERO


@inline
def rows(F, M, par, d, wF, wM, v, phi, G, gamma, k):
    k = no_rotation(F, M, wF, wM, phi, G, gamma, k)
    k = displacement(row(F, 0), d, wF, v, phi, G, gamma, k)
    k = displacement(row(F, 1), d, wF, v, phi, G, gamma, k)
    return displacement(row(F, 2), d, wF, v, phi, G, gamma, k)


@inline
def pose(par, q, i):
    return ZERO, IDENTITY


@inline
def read(par, d, E, q, i):
    pass
