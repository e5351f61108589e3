"""A point of one body on a plane of another."""

from __future__ import annotations

from typing import ClassVar, Literal

from loopdyn.constraints.base import Constraint, PairRecord, guided
from loopdyn.engine.jit import inline
from loopdyn.forces.base import Places
from loopdyn.joints.rows import displacement
from loopdyn.quantities.units import Path, Place, Resolver, Vec3
from loopdyn.spatial.plucker import row
from loopdyn.spatial.rotations import perpendicular_frame

POINT_ON_PLANE = 22


class PointOnPlane(Constraint):
    """A point of `body` stays on a plane of `on` through the point's place at the reference pose, or through `through`.

    Parameters
    ----------
    on, body : str
        Body with the plane, and the body with the point.
    point : (3,)
        The point, in world coordinates at the reference pose, in units of length.
    normal : (3,)
        Normal of the plane at the reference pose.
    through : (3,), optional
        A point of the plane, in the same coordinates.

    Examples
    --------
    >>> PointOnPlane(on="ground", body="foot", point=(0, 0, 0), normal=(0, 0, 1)).rows
    ('fz',)
    """

    label: ClassVar[str] = "point_on_plane"
    code: ClassVar[int] = POINT_ON_PLANE
    rows: ClassVar[tuple[str, ...]] = ("fz",)

    type: Literal["point_on_plane"] = "point_on_plane"
    on: str
    body: str
    point: Place
    normal: Vec3
    through: Place | None = None

    def bodies(self) -> tuple[str, ...]:
        """Its two bodies."""
        return self.on, self.body

    def resolve(self, r: Resolver, places: Places, element: str, path: Path) -> PairRecord | None:
        """F has z along the normal."""
        axes = perpendicular_frame(r.direction(self.normal, element, (*path, "normal")))
        return guided(self, self.rows, axes, r, places, element, path)


@inline
def rows(F, d, wF, v, phi, G, gamma, k):
    return displacement(row(F, 2), d, wF, v, phi, G, gamma, k)
