"""Rolling without slipping on a plane: a sphere, and a thin disc. Two of the three rows are nonholonomic."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np

from loopdyn.constraints.base import Constraint, PairRecord, Wheel, frame_rows, two_bodies
from loopdyn.engine.jit import inline
from loopdyn.forces.base import Places
from loopdyn.quantities.units import Path, Place, Resolver, Scalar, Vec3
from loopdyn.spatial.plucker import add, cross, dot, neg, put3, row, scale, sub
from loopdyn.spatial.rotations import perpendicular_frame

ROLLING = 26
SPHERE, DISC = 0.0, 1.0  # second constant of its record; the first is the radius


class Rolling(Constraint):
    """A sphere or a thin disc of `body` rolls on a plane of `on` without slipping.

    Parameters
    ----------
    on, body : str
        Body with the plane, and the body that rolls.
    normal : (3,)
        Normal of the plane, towards the rolling body.
    through : (3,)
        A point of the plane.
    centre : (3,)
        Centre of the sphere or disc.
    radius : number
    axis : (3,), optional
        Axis of a disc; without it a sphere rolls.

    Examples
    --------
    >>> Rolling(on="ground", body="wheel", normal=(0, 0, 1), through=(0, 0, 0), centre=(0, 0, 0.3), radius=0.3).rows
    ('contact', 'slip_x', 'slip_y')
    """

    label: ClassVar[str] = "rolling"
    code: ClassVar[int] = ROLLING
    rows: ClassVar[tuple[str, ...]] = ("contact", "slip_x", "slip_y")
    nonholonomic: ClassVar[tuple[str, ...]] = ("slip_x", "slip_y")

    type: Literal["rolling"] = "rolling"
    on: str
    body: str
    normal: Vec3
    through: Place
    centre: Place
    radius: Scalar
    axis: Vec3 | None = None

    def wheel(self) -> Wheel:
        """The sphere or disc that rolls."""
        return Wheel(self.body, self.centre, self.radius, self.axis)

    def bodies(self) -> tuple[str, ...]:
        """Its two bodies."""
        return self.on, self.body

    def resolve(self, r: Resolver, places: Places, element: str, path: Path) -> PairRecord | None:
        """F in the plane with z along the normal; M at the centre with z along the axis of a disc."""
        bodies = two_bodies(self.on, self.body, ("on", "body"), r, places, element, path)
        normal = r.direction(self.normal, element, (*path, "normal"))
        through = r.vector(self.through, "length", element, (*path, "through"))
        centre = r.vector(self.centre, "length", element, (*path, "centre"))
        radius = r.scalar(self.radius, "length", element, (*path, "radius"))
        if radius <= 0.0:
            r.problem(element, "'radius' must be positive", "Give a length.", (*path, "radius"))
        axis = normal if self.axis is None else r.direction(self.axis, element, (*path, "axis"))
        if self.axis is not None and np.linalg.norm(np.cross(axis, normal)) < 1e-6:
            r.problem(element, "the disc lies flat on the plane", "Its axis cannot be the normal.", (*path, "axis"))
            return None
        if bodies is None:
            return None
        return PairRecord(
            bodies,
            places.point(bodies[0], through),
            places.point(bodies[1], centre),
            self.rows,
            frame_rows(places, bodies[0], perpendicular_frame(normal)),
            frame_rows(places, bodies[1], perpendicular_frame(axis)),
            (radius, SPHERE if self.axis is None else DISC),
        )


@inline
def no_slip(f, c, c_rate, d, wF, omega, v, G, gamma, k):
    """f . (v + omega x c) = 0 for a direction f fixed in F and a contact arm c with rate c_rate, seen from F."""
    put3(G, k, 0, cross(c, f))
    put3(G, k, 3, f)
    # seen from F: omega changes by alpha_M - alpha_F - omega_F x omega, v by a_M - a_F - ... - 2 omega_F x v - ...
    turning = dot(cross(c, f), cross(wF, omega))
    moving = dot(f, add(scale(2.0, cross(wF, v)), cross(wF, cross(wF, d))))
    gamma[k] = moving + turning - dot(f, cross(omega, c_rate))


@inline
def rows(par, F, M, d, wF, wM, v, phi, G, gamma, k):
    """Contact at distance of the radius, and no slip along x and y of F at the contact."""
    z = row(F, 2)
    omega = sub(wM, wF)
    radius = par[0]
    c = scale(-radius, z)
    rate = (0.0, 0.0, 0.0)
    if par[1] == DISC:
        # lowest point of the rim: c = -radius n/|n|, n = z - (z.m) m, seen from F
        m = row(M, 2)
        s = dot(z, m)
        n = sub(z, scale(s, m))
        size = np.sqrt(1.0 - s * s)
        m1 = cross(omega, m)
        s1 = dot(z, m1)
        n1 = neg(add(scale(s1, m), scale(s, m1)))
        size1 = -s * s1 / size
        c = scale(-radius / size, n)
        rate = scale(-radius / size, sub(n1, scale(size1 / size, n)))
    phi[k] = dot(z, add(d, c))
    phi[k + 1] = 0.0  # nonholonomic: no condition on positions
    phi[k + 2] = 0.0
    no_slip(z, c, rate, d, wF, omega, v, G, gamma, k)
    no_slip(row(F, 0), c, rate, d, wF, omega, v, G, gamma, k + 1)
    no_slip(row(F, 1), c, rate, d, wF, omega, v, G, gamma, k + 2)
    return k + 3
