"""A higher pair: two planar profiles, one on each of two bodies, that touch."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from loopdyn.constraints import gaps
from loopdyn.constraints.base import Constraint, PairRecord, frame_rows, two_bodies
from loopdyn.constraints.polylines import convex_chains, convex_corners, depths, pocket_radius, with_split
from loopdyn.constraints.shapes import (
    AnyShape,
    Array,
    CircleShape,
    CurveShape,
    LineShape,
    Plane,
    PointShape,
    PolylineShape,
)
from loopdyn.forces.base import Places
from loopdyn.quantities.expressions import Program, data_program
from loopdyn.quantities.units import Path, Resolver, Vec3

HIGHER_PAIR = 28

MOST_GAPS = 200  # largest number of gaps of two profiles: each of them is computed at every step

NOT_OFFERED = (
    "Offered: points and circles on circles, lines, polylines and curves; lines on polylines and curves; polylines on "
    "polylines; points, circles and polylines in hollow circles."
)

Round = tuple[float, Array]  # radius and centre
Surface = tuple[int, list[float]]  # kind and data


class HigherPair(Constraint):
    """Two planar profiles stay in contact at one place: cam and follower that never separate.

    Parameters
    ----------
    body1, body2 : str
        The two bodies.
    shape1, shape2 : profile
        Profile of each body: :class:`PointShape`, :class:`CircleShape`, :class:`LineShape`, :class:`PolylineShape`,
        :class:`CurveShape`.
    normal : (3,)
        Normal of the plane of the pair at the reference pose, parallel to which the bodies move. The profiles are
        projected on it, and the force acts in the middle between them.
    gap : int
        Number of the place, from 1 on, where profiles can touch at several places at the same time: each corner of a
        polyline on a line or in a hollow circle; a circle on each part of a polyline between two pockets; each corner
        of either of two polylines on each such part of the other.

    Notes
    -----
    The residual is the gap, positive if the bodies are apart; the multiplier `fn` is the force that pushes them apart
    along the common normal. A circle, a point or a line has one gap with a curve, that of the nearest point.

    Examples
    --------
    >>> roller = CircleShape(centre=(0, 3, 0), radius=2)
    >>> cam = CurveShape(x="2*cos(u)", y="sin(u)", u=(0, "2*pi"), closed=True)
    >>> HigherPair(body1="cam", shape1=cam, body2="follower", shape2=roller).rows
    ('fn',)
    """

    label: ClassVar[str] = "higher_pair"
    code: ClassVar[int] = HIGHER_PAIR
    rows: ClassVar[tuple[str, ...]] = ("fn",)

    type: Literal["higher_pair"] = "higher_pair"
    body1: str
    shape1: AnyShape
    body2: str
    shape2: AnyShape
    normal: Vec3 = (0.0, 0.0, 1.0)
    gap: int = 1

    def bodies(self) -> tuple[str, ...]:
        """Its two bodies."""
        return self.body1, self.body2

    def resolve(self, r: Resolver, places: Places, element: str, path: Path) -> PairRecord | None:
        """F and M in world axes of the reference pose, in which profiles are written."""
        bodies = two_bodies(self.body1, self.body2, ("body1", "body2"), r, places, element, path)
        found = gaps_between(self.shape1, self.shape2, self.normal, r, element, path)
        if found is not None and not 1 <= self.gap <= len(found.gaps):
            r.problem(element, f"has {len(found.gaps)} gaps, but 'gap' is {self.gap}", "Count from 1.", (*path, "gap"))
            return None
        if bodies is None or found is None:
            return None
        F, M = (places.point(body, found.origin) for body in bodies)
        axes = [frame_rows(places, body, np.eye(3)) for body in bodies]
        programs = found.gaps[self.gap - 1].programs(found.normal)
        return PairRecord(bodies, F, M, self.rows, axes[0], axes[1], programs=programs)


@dataclass
class Gaps:
    """All gaps of two profiles; points are seen from `origin`, at the height at which forces act."""

    gaps: list[_Gap]
    normal: Array
    origin: Array


def gaps_between(
    shape1: AnyShape, shape2: AnyShape, normal: Vec3, r: Resolver, element: str, path: Path
) -> Gaps | None:
    """All gaps between two profiles; None if a problem was recorded."""
    before = len(r.problems)
    along = r.direction(normal, element, (*path, "normal"))
    planes = Plane(along, r, element), Plane(along, r, element)
    shapes = _Shape(planes[0], shape1, (*path, "shape1")), _Shape(planes[1], shape2, (*path, "shape2"))
    if len(r.problems) > before:
        return None
    found = _gaps(shapes[0], shapes[1], False)
    if not found or (shapes[0].corners and shapes[1].corners):
        found += _gaps(shapes[1], shapes[0], True)
    if not found:
        r.problem(element, f"contact of a {shapes[0].name} with a {shapes[1].name} is not offered", NOT_OFFERED, path)
    elif len(found) > MOST_GAPS:
        message = f"its profiles can touch at {len(found)} places, at most {MOST_GAPS} are possible"
        r.problem(element, message, "Give fewer corners, or a curve.", path)
    else:
        _check_fit(shapes, r, element, path)
    height = 0.5 * (planes[0].height + planes[1].height)
    return None if len(r.problems) > before else Gaps(found, along, height * along)


def _check_fit(shapes: Sequence[_Shape], r: Resolver, element: str, path: Path) -> None:
    """Record a problem if a pin is not smaller than its hole."""
    for hole, pin, key in ((shapes[0], shapes[1], "shape2"), (shapes[1], shapes[0], "shape1")):
        if hole.hollow and any(radius >= hole.rounds[0][0] for radius, _ in pin.rounds):
            r.problem(element, "its circle does not fit into its hole", "Give a smaller radius.", (*path, key))


class _Shape:
    """A profile as lists of what can touch: rounds, surfaces for rounds, an edge, a curve."""

    def __init__(
        self, plane: Plane, shape: PointShape | CircleShape | LineShape | PolylineShape | CurveShape, path: Path
    ):
        self.name = shape.label
        self.circle = isinstance(shape, CircleShape)
        self.hollow = isinstance(shape, CircleShape) and shape.hollow
        self.rounds: list[Round] = []
        self.surfaces: list[Surface] = []
        self.edge: Round | None = None  # distance and normal of a line
        self.curve: list[Program] | None = None
        self.corners = isinstance(shape, PolylineShape)
        if isinstance(shape, PointShape):
            at, radius = plane.point(shape, path)
            self.rounds = [(radius, at)]
        elif isinstance(shape, CircleShape):
            at, radius = plane.circle(shape, path)
            self.rounds = [(radius, at)]
            self.surfaces = [(gaps.ON_CIRCLE, [*at, radius, -1.0 if shape.hollow else 1.0, *plane.x])]
            self.name = "hollow circle" if shape.hollow else self.name
        elif isinstance(shape, LineShape):
            n, height = plane.line(shape, path)
            self.surfaces, self.edge = [(gaps.ON_LINE, [*n, height])], (height, n)
        elif isinstance(shape, PolylineShape):
            self._polyline(plane, shape, path)
        else:
            self.curve = plane.curve(shape, path)

    def _polyline(self, plane: Plane, shape: PolylineShape, path: Path) -> None:
        corners = plane.polyline(shape, path)
        if corners is None:
            return
        corners = with_split(corners, plane.flat(corners)) if shape.closed else corners
        flat = plane.flat(corners)
        self.rounds = [(0.0, corners[k]) for k in convex_corners(flat, shape.closed)]
        for chain in convex_chains(flat, shape.closed):
            edges = list(zip(chain.corners, chain.corners[1:], strict=False))
            c, closed = chain.corners, shape.closed
            first = pocket_radius(flat, closed, c[0]) if chain.first_in_pocket else 0.0
            last = pocket_radius(flat, closed, c[-1]) if chain.last_in_pocket else 0.0
            head = [float(len(c)), first, last]
            behind = [min(x, 1e300) for x in depths(flat, shape.closed, edges)]
            self.surfaces.append((gaps.ON_CHAIN, [*head, *corners[chain.corners].ravel(), *behind]))

    def takes(self, other: _Shape) -> bool:
        """Whether rounds of another profile are offered on its surfaces."""
        if self.curve is not None:
            return bool(other.rounds) and not other.corners and not other.hollow
        to_circle = self.circle and not self.hollow
        return bool(self.surfaces) and bool(other.rounds) and not other.hollow and not (to_circle and other.corners)


def _gaps(surface: _Shape, touching: _Shape, on_second: bool) -> list[_Gap]:
    """Gaps between the surfaces of one profile and the rounds, or the edge, of another; none if not offered."""
    if surface.curve is not None and touching.edge is not None:
        height, outward = touching.edge
        return [_Gap(not on_second, gaps.EDGE_ON_CURVE, 0.0, np.zeros(3), [*outward, height], surface.curve)]
    if not surface.takes(touching):
        return []
    surfaces = surface.surfaces if surface.curve is None else [(gaps.ON_CURVE, [])]
    found = itertools.product(surfaces, touching.rounds)
    return [_Gap(on_second, kind, radius, at, data, surface.curve or []) for (kind, data), (radius, at) in found]


@dataclass
class _Gap:
    """One gap: its surface, and the round that touches it."""

    on_second: bool  # whether the surface is that of the second body
    kind: int
    radius: float
    centre: Array
    surface: list[float]
    curve: list[Program]

    def programs(self, normal: Array) -> list[Program]:
        """Data of the kernel, then the curve."""
        head = [*normal, float(self.on_second), float(self.kind), self.radius, *self.centre]
        return [data_program([float(x) for x in (*head, *self.surface)]), *self.curve]
