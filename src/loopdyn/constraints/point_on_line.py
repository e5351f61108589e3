"""A point of one body on a line of another."""

from __future__ import annotations

from typing import ClassVar, Literal

from loopdyn.constraints.base import Constraint, PairRecord, guided
from loopdyn.engine.jit import inline
from loopdyn.forces.base import Places
from loopdyn.joints.rows import displacement
from loopdyn.quantities.units import Path, Place, Resolver, Vec3
from loopdyn.spatial.plucker import row
from loopdyn.spatial.rotations import perpendicular_frame

POINT_ON_LINE = 21


class PointOnLine(Constraint):
    """A point of `body` stays on a line of `on` through the point's place at the reference pose, or through `through`.

    Parameters
    ----------
    on, body : str
        Body with the line, and the body with the point.
    point : (3,)
        The point, in world coordinates at the reference pose, in units of length.
    direction : (3,)
        Direction of the line at the reference pose.
    through : (3,), optional
        A point of the line, in the same coordinates.

    Examples
    --------
    >>> PointOnLine(on="frame", body="slider", point=(1, 0, 0), direction=(1, 0, 0)).rows
    ('fx', 'fy')
    """

    label: ClassVar[str] = "point_on_line"
    code: ClassVar[int] = POINT_ON_LINE
    rows: ClassVar[tuple[str, ...]] = ("fx", "fy")

    type: Literal["point_on_line"] = "point_on_line"
    on: str
    body: str
    point: Place
    direction: Vec3
    through: Place | None = None

    def bodies(self) -> tuple[str, ...]:
        """Its two bodies."""
        return self.on, self.body

    def resolve(self, r: Resolver, places: Places, element: str, path: Path) -> PairRecord | None:
        """F has z along the line."""
        axes = perpendicular_frame(r.direction(self.direction, element, (*path, "direction")))
        return guided(self, self.rows, axes, r, places, element, path)


@inline
def rows(F, d, wF, v, phi, G, gamma, k):
    k = displacement(row(F, 0), d, wF, v, phi, G, gamma, k)
    return displacement(row(F, 1), d, wF, v, phi, G, gamma, k)
