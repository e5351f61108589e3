"""Universal joint (Hooke, cardan): two rotations, the first axis fixed in the parent, the second in the child."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np

from loopdyn.engine.jit import inline
from loopdyn.joints.base import UNIVERSAL, Array, Joint
from loopdyn.joints.rows import directions, displacement
from loopdyn.quantities.units import Path, Resolver, Vec3
from loopdyn.spatial.plucker import add, cross, mul, put3, rot, row, scale
from loopdyn.spatial.rotations import about_axis, axis_rotation

ZERO = (0.0, 0.0, 0.0)

# Sine of the angle below which two axes count as parallel: the joint would lose one of its freedoms.
PARALLEL = 1e-6


class Universal(Joint):
    """Hooke joint: turns about `axis1`, fixed in the parent, then about `axis2`, fixed in the child.

    Coordinates: the two angles. The axes need not be perpendicular. F has x along the first axis and z
    along their common normal.

    Examples
    --------
    >>> Universal(axis1=(1, 0, 0), axis2=(0, 1, 0)).labels("U")[0]
    ['U.1', 'U.2']
    """

    label: ClassVar[str] = "universal joint"
    kind: ClassVar[int] = UNIVERSAL
    coordinates: ClassVar[tuple[str, ...]] = ("1", "2")
    speeds: ClassVar[tuple[str, ...]] = ("1", "2")
    dimensions: ClassVar[tuple[str, ...]] = ("angle", "angle")
    rows_when_cut: ClassVar[tuple[str, ...]] = ("normal", "fx", "fy", "fz")

    type: Literal["universal"] = "universal"
    axis1: Vec3
    axis2: Vec3

    def axes(self, r: Resolver, element: str, path: Path) -> tuple[Array, tuple[float, float]]:
        """x along axis 1, z along the common normal; par = cosine and sine of the angle between the axes."""
        a1 = r.direction(self.axis1, element, (*path, "axis1"))
        a2 = r.direction(self.axis2, element, (*path, "axis2"))
        normal = np.cross(a1, a2)
        sine = float(np.linalg.norm(normal))
        if sine < PARALLEL:
            hint = "Give two different directions, or use a revolute joint."
            r.problem(element, "'axis1' and 'axis2' are parallel", hint, (*path, "axis2"))
            return np.eye(3), (0.0, 1.0)
        z = normal / sine
        return np.array([a1, np.cross(z, a1), z]), (float(a1 @ a2), sine)

    @staticmethod
    def measure(E: Array, d: Array, par: tuple[float, float]) -> Array:
        """The two angles, each in (-pi, pi]."""
        a2 = np.array([par[0], par[1], 0.0])
        turned = E @ a2
        q1 = np.arctan2(turned[2], turned[1])
        R2 = about_axis((1, 0, 0), -q1) @ E
        sine = 0.5 * a2 @ np.array([R2[2, 1] - R2[1, 2], R2[0, 2] - R2[2, 0], R2[1, 0] - R2[0, 1]])
        return np.array([q1, np.arctan2(sine, 0.5 * (np.trace(R2) - 1.0))])


@inline
def second_axis(A, par):
    return add(scale(par[0], row(A, 0)), scale(par[1], row(A, 1)))


@inline(always=True)
def rotation(A, par, q, i):
    return mul(axis_rotation(row(A, 0), q[i]), axis_rotation(second_axis(A, par), q[i + 1]))


@inline
def motion(RF, RM, A, par, q, i, v, j, S):
    a1 = rot(RF, row(A, 0))
    a2 = rot(RM, second_axis(A, par))
    put3(S, j, 0, a1)
    put3(S, j, 3, ZERO)
    put3(S, j + 1, 0, a2)
    put3(S, j + 1, 3, ZERO)
    w1, w2 = scale(v[j], a1), scale(v[j + 1], a2)
    return ZERO, add(w1, w2), ZERO, cross(w1, w2), ZERO


@inline
def rows(F, M, par, d, wF, wM, v, phi, G, gamma, k):
    # the angle between the axes stays; the multiplier is the torque about their common normal
    k = directions(-1.0 / par[1], row(F, 0), second_axis(M, par), wF, wM, par[0], phi, G, gamma, k)
    k = displacement(row(F, 0), d, wF, v, phi, G, gamma, k)
    k = displacement(row(F, 1), d, wF, v, phi, G, gamma, k)
    return displacement(row(F, 2), d, wF, v, phi, G, gamma, k)
