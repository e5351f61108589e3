"""Contact of two planar profiles: cam and follower, pin and slot, ratchet and pawl, block and floor."""

from __future__ import annotations

from typing import ClassVar, Literal

from loopdyn.constraints.higher_pair import HigherPair, gaps_between
from loopdyn.constraints.shapes import AnyShape
from loopdyn.contacts.base import OneSided, Side, check_restitution
from loopdyn.forces.base import Places
from loopdyn.quantities.units import Path, Resolver, Scalar, Vec3


class Contact(OneSided):
    """Contact of planar profiles of two bodies: they touch and separate, without friction.

    Parameters
    ----------
    body1, body2 : str
        The two bodies.
    shape1, shape2 : profile
        Profile of each body: :class:`PointShape`, :class:`CircleShape`, :class:`LineShape`, :class:`PolylineShape`,
        :class:`CurveShape`.
    normal : (3,)
        Normal of the plane of the contact at the reference pose, parallel to which the bodies move. The profiles are
        projected on it, and the force acts in the middle between them.
    restitution : number
        Coefficient of restitution: speed after an impact divided by speed before, from 0 (plastic) to 1 (elastic).

    Notes
    -----
    The gap is positive if the bodies are apart, the force pushes them apart along the common normal. A polyline has a
    side for each place where it can touch while it touches elsewhere: each corner on a line or in a hollow circle; a
    circle on each part between two pockets, so that a pin touches one or both walls of a slot. A circle, a point or a
    line has one side with a curve, that of the nearest point: the two walls of a curved slot are two contacts.

    Examples
    --------
    >>> from loopdyn.constraints import CircleShape, CurveShape
    >>> cam = CurveShape(x="2*cos(u)", y="sin(u)", u=(0, "2*pi"), closed=True)
    >>> roller = CircleShape(centre=(0, 3, 0), radius=1)
    >>> Contact(body1="cam", shape1=cam, body2="follower", shape2=roller).restitution
    0.0
    """

    label: ClassVar[str] = "contact"

    type: Literal["contact"] = "contact"
    body1: str
    shape1: AnyShape
    body2: str
    shape2: AnyShape
    normal: Vec3 = (0.0, 0.0, 1.0)
    restitution: Scalar = 0.0

    def sides(self, name: str, r: Resolver) -> list[Side]:
        """One side for each gap of the profiles."""
        found = gaps_between(self.shape1, self.shape2, self.normal, r, f"contact '{name}'", ("contacts", name))
        count = 0 if found is None else len(found.gaps)
        names = [f"{name} {k + 1}" for k in range(count)] if count > 1 else [name]
        return [Side(name, names[k], 1, self._row(k), self.restitution, corners=True) for k in range(count)]

    def _row(self, k: int) -> HigherPair:
        """Constraint that holds while gap k is closed."""
        return HigherPair(
            body1=self.body1, shape1=self.shape1, body2=self.body2, shape2=self.shape2, normal=self.normal, gap=k + 1
        )

    def check(self, r: Resolver, places: Places, element: str, path: Path) -> None:
        """Record the problems of its numbers, bodies and profiles."""
        check_restitution(self.restitution, r, element, path)
        self._row(0).resolve(r, places, element, path)
