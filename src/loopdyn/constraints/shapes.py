"""Planar profiles of bodies: point, circle, line, polyline, curve.

Profiles are given in world coordinates at the reference pose and projected on the plane of the contact along its
normal, so that bodies may lie in different planes. Open and closed polylines and curves have their material on the
left of the direction in which they are given, seen against the normal: closed ones are counter-clockwise, holes
clockwise.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from loopdyn.constraints.point_on_curve import curve_programs
from loopdyn.constraints.polylines import crossing, signed_area
from loopdyn.quantities.expressions import Program
from loopdyn.quantities.units import Path, Place, Resolver, Scalar, Spec, Vec2, Vec3

Array = NDArray[np.float64]

FLAT = 1e-9  # fraction of its size by which a curve may leave its plane: rounding of formulas
CHECKED = 200  # points at which a curve is checked for crossings and orientation


class PointShape(Spec):
    """A point: the tip of a pawl, a knife-edge follower.

    Parameters
    ----------
    at : (3,)
        In world coordinates at the reference pose, in units of length.

    Examples
    --------
    >>> PointShape(at=(1, 0, 0)).type
    'point'
    """

    label: ClassVar[str] = "point profile"
    type: Literal["point"] = "point"
    at: Place


class CircleShape(Spec):
    """A circle: a roller, a pin, or with ``hollow=True`` a hole.

    Parameters
    ----------
    centre : (3,)
        In world coordinates at the reference pose, in units of length.
    radius : number or formula
        In units of length.
    hollow : bool
        Whether the material is outside of the circle.

    Examples
    --------
    >>> CircleShape(centre=(1, 0, 0), radius=0.2).hollow
    False
    """

    label: ClassVar[str] = "circular profile"
    type: Literal["circle"] = "circle"
    centre: Place
    radius: Scalar
    hollow: bool = False


class LineShape(Spec):
    """An endless straight edge: a flat follower, the floor.

    Parameters
    ----------
    through : (3,)
        A point of the line, in world coordinates at the reference pose, in units of length.
    outward : (3,)
        Direction at the reference pose, across the line, away from the material.

    Examples
    --------
    >>> LineShape(through=(0, 0, 0), outward=(0, 1, 0)).type
    'line'
    """

    label: ClassVar[str] = "straight profile"
    type: Literal["line"] = "line"
    through: Place
    outward: Vec3


class PolylineShape(Spec):
    """Straight edges between points: a block, a ratchet wheel, a bounded edge.

    Parameters
    ----------
    points : list of (3,)
        Corners, in world coordinates at the reference pose, in units of length; the material is on the left of the
        direction from each to the next.
    closed : bool
        Whether the last corner is joined to the first.
    hollow : bool
        Whether a closed polyline is a hole, given clockwise: the material is outside.

    Examples
    --------
    >>> PolylineShape(points=[(0, 0, 0), (2, 0, 0), (2, 1, 0), (0, 1, 0)], closed=True).type
    'polyline'
    """

    label: ClassVar[str] = "profile of straight edges"
    type: Literal["polyline"] = "polyline"
    points: tuple[Place, ...]
    closed: bool = False
    hollow: bool = False


class CurveShape(Spec):
    """A smooth curve: a cam, a curved slot.

    Parameters
    ----------
    points : list of (3,)
        The curve as a spline with continuous curvature (C2) through these points.
    x, y, z : formulas of ``u``
        Instead of `points`: formulas of the parameter `u`, in world coordinates at the reference pose.
    u : (2,)
        Range of the parameter.
    closed : bool
        Whether the curve closes: its end is joined to its start.
    hollow : bool
        Whether a closed curve is a hole, given clockwise: the material is outside.

    Examples
    --------
    >>> CurveShape(x="2*cos(u)", y="sin(u)", u=(0, "2*pi"), closed=True).type
    'curve'
    """

    label: ClassVar[str] = "curved profile"
    type: Literal["curve"] = "curve"
    points: tuple[Place, ...] = ()
    x: Scalar = 0.0
    y: Scalar = 0.0
    z: Scalar = 0.0
    u: Vec2 = (0.0, 1.0)
    closed: bool = False
    hollow: bool = False


AnyShape = Annotated[
    PointShape | CircleShape | LineShape | PolylineShape | CurveShape,
    Field(discriminator="type"),
]


class Plane:
    """Plane of a contact: projects on it, and records problems of profiles."""

    def __init__(self, normal: Array, r: Resolver, element: str) -> None:
        self.normal, self.r, self.element = normal, r, element
        self.height = 0.0  # of the profile, along the normal
        x = np.eye(3)[int(np.argmin(np.abs(normal)))]
        x = x - (x @ normal) * normal
        self.x = x / np.linalg.norm(x)
        self.y = np.cross(normal, self.x)

    def problem(self, message: str, hint: str, path: Path) -> None:
        """Record a problem of the contact."""
        self.r.problem(self.element, message, hint, path)

    def place(self, p: Any, path: Path) -> Array:
        """Projection of a point."""
        found = self.r.vector(p, "length", self.element, path)
        self.height = float(found @ self.normal)
        return found - self.height * self.normal

    def flat(self, points: Array) -> Array:
        """Coordinates (n, 2) in the plane; counter-clockwise seen against the normal."""
        found: Array = points @ np.array([self.x, self.y]).T
        return found

    # ----------------------------------------------------------------------------- numbers of each profile

    def point(self, shape: PointShape, path: Path) -> tuple[Array, float]:
        """Centre and radius, which is zero."""
        return self.place(shape.at, (*path, "at")), 0.0

    def circle(self, shape: CircleShape, path: Path) -> tuple[Array, float]:
        """Centre and radius."""
        radius = self.r.scalar(shape.radius, "length", self.element, (*path, "radius"))
        if not radius > 0.0 and radius == radius:
            self.problem("the radius of its circle is not positive", "Give its radius.", (*path, "radius"))
        return self.place(shape.centre, (*path, "centre")), radius

    def line(self, shape: LineShape, path: Path) -> tuple[Array, float]:
        """Unit normal away from the material, and distance of the line from the origin along it."""
        outward = self.r.direction(shape.outward, self.element, (*path, "outward"))
        outward = outward - (outward @ self.normal) * self.normal
        size = float(np.linalg.norm(outward))
        if size < FLAT:
            hint = "Give a direction in the plane of the contact."
            self.problem("'outward' is along the normal of the contact", hint, (*path, "outward"))
            return self.x, 0.0
        outward = outward / size
        return outward, float(outward @ self.place(shape.through, (*path, "through")))

    def polyline(self, shape: PolylineShape, path: Path) -> Array | None:
        """Corners (n, 3); None if a problem was recorded."""
        where = (*path, "points")
        before = len(self.r.problems)
        points = np.array([self.place(p, (*where, n)) for n, p in enumerate(shape.points)]).reshape(-1, 3)
        if len(self.r.problems) > before:
            return None
        if shape.closed and len(points) > 1 and np.array_equal(points[0], points[-1]):
            points = points[:-1]
        least = 3 if shape.closed else 2
        if len(points) < least:
            self.problem("its polyline has too few points", f"Give at least {'two' if least == 2 else 'three'}.", where)
            return None
        edges = np.diff(np.vstack([points, points[:1]]) if shape.closed else points, axis=0)
        short = np.flatnonzero(~(np.linalg.norm(edges, axis=1) > 0.0))
        if short.size:
            n = int(short[0])
            also = (n + 1) % len(points) + 1
            message = f"points {n + 1} and {also} of its polyline coincide in the plane of the contact"
            self.problem(message, "Remove one.", (*where, n))
            return None
        return points if self._sound(self.flat(points), shape, "polyline", where) else None

    def curve(self, shape: CurveShape, path: Path) -> list[Program] | None:
        """Programs of the curve; None if a problem was recorded."""
        programs = curve_programs(shape, self.r, self.element, path)
        if programs is None:
            return None
        data = programs[3].constants
        u = np.linspace(data[1], data[2], CHECKED + 1)[: CHECKED + 1 - shape.closed]
        points = np.array([[p.evaluate([x]) for p in programs[:3]] for x in u])
        height = points @ self.normal
        if np.ptp(height) > FLAT * np.ptp(points, axis=0).max():
            hint = "Give 'normal' of the contact, or a plane curve."
            self.problem("its curve does not lie in a plane parallel to that of the contact", hint, path)
            return None
        self.height = float(height.mean())
        return programs if self._sound(self.flat(points), shape, "curve", path) else None

    def _sound(self, points: Array, shape: PolylineShape | CurveShape, name: str, path: Path) -> bool:
        """Whether a profile does not cross itself and is given in the right direction."""
        if shape.hollow and not shape.closed:
            hint = "Set closed: true; the material of an open profile is on its left."
            self.problem(f"its {name} is hollow but open", hint, path)
            return False
        crossed = crossing(points, shape.closed)
        if crossed is not None:
            at = f"edges {crossed[0] + 1} and {crossed[1] + 1}" if name == "polyline" else "at two values of 'u'"
            self.problem(f"its {name} crosses or touches itself ({at})", "Check its points or formulas.", path)
            return False
        if shape.closed and (signed_area(points) < 0.0) != shape.hollow:
            way = "clockwise" if not shape.hollow else "counter-clockwise"
            message = f"its {name} goes round {way}, seen against the normal of the contact"
            other = "set hollow: true if it is a hole" if not shape.hollow else "a hole is given clockwise"
            self.problem(message, f"Reverse it: the material is on its left; {other}.", path)
            return False
        return True
