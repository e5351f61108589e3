"""A pin of one body in a straight slot of another."""

from __future__ import annotations

from typing import ClassVar, Literal

from loopdyn.constraints.base import Constraint, PairRecord, guided
from loopdyn.engine.jit import inline
from loopdyn.forces.base import Places
from loopdyn.joints.rows import displacement, tilt
from loopdyn.quantities.units import Path, Place, Resolver, Vec3
from loopdyn.spatial.plucker import row
from loopdyn.spatial.rotations import perpendicular_frame

SLOT = 25


class Slot(Constraint):
    """A pin of `body` slides along a straight slot of `on` and turns about its axis, which keeps its direction.

    Parameters
    ----------
    on, body : str
        Body with the slot, and the body with the pin.
    point : (3,)
        Centre of the pin, in world coordinates at the reference pose, in units of length.
    direction, axis : (3,)
        Directions of the slot and of the pin at the reference pose.
    through : (3,), optional
        A point of the slot, in the same coordinates.

    Examples
    --------
    >>> Slot(on="arm", body="block", point=(1, 0, 0), direction=(1, 0, 0), axis=(0, 0, 1)).rows
    ('mx', 'my', 'fy', 'fz')
    """

    label: ClassVar[str] = "slot"
    code: ClassVar[int] = SLOT
    angles: ClassVar[tuple[str, ...]] = ("mx", "my")
    rows: ClassVar[tuple[str, ...]] = ("mx", "my", "fy", "fz")

    type: Literal["slot"] = "slot"
    on: str
    body: str
    point: Place
    direction: Vec3
    axis: Vec3
    through: Place | None = None

    def bodies(self) -> tuple[str, ...]:
        """Its two bodies."""
        return self.on, self.body

    def resolve(self, r: Resolver, places: Places, element: str, path: Path) -> PairRecord | None:
        """F has x along the slot and z along the pin."""
        x = r.direction(self.direction, element, (*path, "direction"))
        z = r.direction(self.axis, element, (*path, "axis"))
        if abs(x @ z) > 1e-9:
            hint = "Make 'direction' perpendicular to 'axis'."
            r.problem(element, "the slot is not perpendicular to its pin", hint, (*path, "direction"))
            return None
        return guided(self, self.rows, perpendicular_frame(z, x), r, places, element, path)


@inline
def rows(F, M, d, wF, wM, v, phi, G, gamma, k):
    k = tilt(F, M, wF, wM, phi, G, gamma, k)
    k = displacement(row(F, 1), d, wF, v, phi, G, gamma, k)
    return displacement(row(F, 2), d, wF, v, phi, G, gamma, k)
