"""Universal joint (Hooke, cardan): two rotations, the first axis fixed in the parent, the second in the child."""

from __future__ import annotations

import math
from typing import ClassVar, Literal

import numpy as np

from loopdyn.engine.jit import inline
from loopdyn.joints.base import Array, Joint, Turning
from loopdyn.joints.reading import near
from loopdyn.joints.rows import directions, displacement
from loopdyn.quantities.units import Path, Resolver, Vec3
from loopdyn.spatial.plucker import add, cross, dot, mul, put3, rot, row, scale, sub
from loopdyn.spatial.rotations import about_axis, atan2, axis_rotation

ZERO, X_AXIS = (0.0, 0.0, 0.0), (1.0, 0.0, 0.0)

# Sine of the angle below which two axes count as parallel: the joint would lose one of its freedoms.
PARALLEL = 1e-6


class Universal(Joint):
    """Hooke joint: turns about `axis1`, fixed in the parent, then about `axis2`, fixed in the child.

    Coordinates: the two angles. The axes need not be perpendicular. F has x along the first axis and z
    along their common normal.

    Parameters
    ----------
    axis1, axis2 : (3,)
        First axis, fixed in the parent, and second axis, fixed in the child.
    **placement : Any
        Bodies, place, limits and armature, as for every :class:`loopdyn.joints.Joint`; :meth:`Mechanism.add_joint
        <loopdyn.Mechanism.add_joint>` takes them as well.

    Examples
    --------
    >>> Universal(axis1=(1, 0, 0), axis2=(0, 1, 0)).labels("U")[0]
    ['U.1', 'U.2']
    """

    label: ClassVar[str] = "universal joint"
    kind: ClassVar[int] = 5
    coordinates: ClassVar[tuple[str, ...]] = ("1", "2")
    speeds: ClassVar[tuple[str, ...]] = ("1", "2")
    dimensions: ClassVar[tuple[str, ...]] = ("angle", "angle")
    speed_dimensions: ClassVar[tuple[str, ...]] = ("angle", "angle")
    rows_when_cut: ClassVar[tuple[str, ...]] = ("normal", "fx", "fy", "fz")
    row_dimensions: ClassVar[tuple[str, ...]] = ("angle", "length", "length", "length")
    rows_vary: ClassVar[bool] = True
    turning: ClassVar[Turning] = "about two axes"
    reversed_by_sign: ClassVar[bool] = False

    type: Literal["universal"] = "universal"
    axis1: Vec3
    axis2: Vec3

    def axes(self, r: Resolver, element: str, path: Path) -> tuple[Array, tuple[float, float]]:
        """x along axis 1, z along the common normal; par = cosine and sine of the angle between the axes."""
        a1 = r.direction(self.axis1, element, (*path, "axis1"))
        a2 = r.direction(self.axis2, element, (*path, "axis2"))
        normal = _cross(a1, a2)
        sine = math.sqrt(float(normal @ normal))
        if sine < PARALLEL:
            hint = "Give two different directions, or use a revolute joint."
            r.problem(element, "'axis1' and 'axis2' are parallel", hint, (*path, "axis2"))
            return np.eye(3), (0.0, 1.0)
        z = normal / sine
        return np.array([a1, _cross(z, a1), z]), (float(a1 @ a2), sine)

    @staticmethod
    def axes_in_frame(par: tuple[float, float]) -> dict[str, Array]:
        """The first axis is x, the second lies in the xy plane."""
        return {"axis1": np.array([1.0, 0.0, 0.0]), "axis2": np.array([par[0], par[1], 0.0])}

    @classmethod
    def row_wrenches(cls, E: Array, par: tuple[float, float]) -> Array:
        """Torque about the common normal of x of F and the second axis, which is fixed in M; forces."""
        found = np.eye(6)[[0, 3, 4, 5]]
        _, y, z = E @ np.array([par[0], par[1], 0.0])
        found[0, :3] = np.array([0.0, -z, y]) / par[1]
        return found

    @staticmethod
    def measure(E: Array, d: Array, par: tuple[float, float]) -> Array:
        """The two angles, each in (-pi, pi]."""
        a2 = np.array([par[0], par[1], 0.0])
        turned = E @ a2
        q1 = np.arctan2(turned[2], turned[1])
        R2 = about_axis((1, 0, 0), -q1) @ E
        sine = 0.5 * a2 @ np.array([R2[2, 1] - R2[1, 2], R2[0, 2] - R2[2, 0], R2[1, 0] - R2[0, 1]])
        return np.array([q1, np.arctan2(sine, 0.5 * (np.trace(R2) - 1.0))])


def _cross(a: Array, b: Array) -> Array:
    """a x b; np.cross takes 40 us, most of it to find out that these are three numbers each."""
    (a1, a2, a3), (b1, b2, b3) = a.tolist(), b.tolist()
    return np.array([a2 * b3 - a3 * b2, a3 * b1 - a1 * b3, a1 * b2 - a2 * b1])


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


@inline
def pose(par, q, i):
    return ZERO, mul(axis_rotation(X_AXIS, q[i]), axis_rotation((par[0], par[1], 0.0), q[i + 1]))


@inline
def read(par, d, E, q, i):
    a2 = (par[0], par[1], 0.0)
    turned = rot(E, a2)
    first = atan2(turned[2], turned[1])
    R2 = mul(axis_rotation(X_AXIS, -first), E)
    sine = 0.5 * dot(a2, (R2[7] - R2[5], R2[2] - R2[6], R2[3] - R2[1]))
    second = atan2(sine, 0.5 * (R2[0] + R2[4] + R2[8] - 1.0))
    q[i], q[i + 1] = near(first, q[i]), near(second, q[i + 1])


@inline
def coordinate(k, F, M, par, d):
    a1, a2 = row(F, 0), second_axis(M, par)
    if k == 0:
        angle = atan2(dot(a2, row(F, 2)), dot(a2, row(F, 1)))
    else:
        # about a2: from x of M, turned back, to a1; both seen perpendicular to a2
        m1 = row(M, 0)
        p, c = sub(a1, scale(dot(a1, a2), a2)), sub(m1, scale(dot(m1, a2), a2))
        angle = atan2(dot(a2, cross(p, c)), dot(p, c))
    return angle


@inline
def dual(k, a1, a2, par):
    """Dual vector of axis k in the plane of a1 and a2: perpendicular to the other axis, product 1 with its own."""
    if k == 0:
        u = sub(a1, scale(par[0], a2))
    else:
        u = sub(a2, scale(par[0], a1))
    return scale(1.0 / (par[1] * par[1]), u)


@inline
def wrench(k, F, M, par):
    """Torque that works on angle k alone."""
    return dual(k, row(F, 0), second_axis(M, par), par), ZERO


@inline
def wrench_rate(k, F, M, par, wF, wM):
    """Rate of the dual axis: one part turns with F, the other with M."""
    return dual(k, cross(wF, row(F, 0)), cross(wM, second_axis(M, par)), par), ZERO
