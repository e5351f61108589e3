"""A sphere, or a point, of one body on a plane of another, in space."""

from __future__ import annotations

from typing import ClassVar, Literal

from loopdyn.constraints.base import two_bodies
from loopdyn.constraints.point_on_plane import PointOnPlane
from loopdyn.contacts.base import OneSided, Side, check_restitution
from loopdyn.forces.base import Places
from loopdyn.quantities.units import Path, Place, Resolver, Scalar, Vec3


class SphereOnPlane(OneSided):
    """Contact of a sphere of `body` with a plane of `on`: they touch and separate, without friction.

    Parameters
    ----------
    on, body : str
        Body with the plane, and the body with the sphere.
    through : (3,)
        A point of the plane, in world coordinates at the reference pose, in units of length.
    outward : (3,)
        Direction across the plane at the reference pose, away from the material of `on`.
    centre : (3,)
        Centre of the sphere, in the same coordinates.
    radius : number
        In units of length; 0 for a point: a foot, a corner of a block.
    restitution : number
        Coefficient of restitution: speed after an impact divided by speed before, from 0 (plastic) to 1 (elastic).

    Examples
    --------
    >>> ball = SphereOnPlane("ground", "ball", through=(0, 0, 0), outward=(0, 0, 1), centre=(0, 0, 2), radius=1)
    >>> ball.restitution
    0.0
    """

    label: ClassVar[str] = "sphere on plane"

    type: Literal["sphere_on_plane"] = "sphere_on_plane"
    on: str
    body: str
    through: Place
    outward: Vec3
    centre: Place
    radius: Scalar = 0.0
    restitution: Scalar = 0.0

    def sides(self, name: str, r: Resolver) -> list[Side]:
        """One side: the centre on the plane at the height of the radius."""
        element, path = f"contact '{name}'", ("contacts", name)
        unit = r.units.factor("length")
        normal = r.direction(self.outward, element, (*path, "outward"))
        through = r.vector(self.through, "length", element, (*path, "through"))
        height = through + r.scalar(self.radius, "length", element, (*path, "radius")) * normal
        row = PointOnPlane(
            on=self.on, body=self.body, point=self.centre, normal=self.outward, through=tuple(height / unit)
        )
        return [Side(name, name, 1, row, self.restitution)]

    def check(self, r: Resolver, places: Places, element: str, path: Path) -> None:
        """Record the problems of its numbers, bodies and points."""
        two_bodies(self.on, self.body, ("on", "body"), r, places, element, path)
        for key in ("through", "centre"):
            r.vector(getattr(self, key), "length", element, (*path, key))
        r.direction(self.outward, element, (*path, "outward"))
        if r.scalar(self.radius, "length", element, (*path, "radius")) < 0.0:
            r.problem(element, "'radius' is negative", "Give a radius, or 0 for a point.", (*path, "radius"))
        check_restitution(self.restitution, r, element, path)
