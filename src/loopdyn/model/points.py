"""Named points of a model: given by coordinates, or constructed from other points, lengths and angles.

A drawing gives lengths; a point that is the intersection of two of them follows when one changes, and the other stays
as it is. Points are computed when the model is compiled and hold at the reference pose.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator, ConfigDict, Field

from loopdyn.quantities.expressions import in_order
from loopdyn.quantities.units import Path, Place, PointName, Resolver, Scalar, Spec, Vec2, Vec3
from loopdyn.spatial.rotations import perpendicular_frame

Array = NDArray[np.float64]

# Keys that define a point, and the point they define.
CONSTRUCTIONS: Mapping[frozenset[str], str] = {
    frozenset(keys.split()): meaning
    for keys, meaning in {
        "at": "at coordinates",
        "from offset": "displaced from a point",
        "from length angle": "at a length and an angle from a point",
        "from to length": "on the line from one point to another",
        "from to length angle": "at a length and an angle against the line from one point to another",
        "from to share": "at a fraction of the way from one point to another",
        "from lengths side": "at given lengths from two points",
    }.items()
}
IN_PLANE = 1e-9  # sine of the angle by which a line may leave the plane of a construction, by rounding
TOUCHING = 1e-12  # part of a squared length by which circles may miss each other by rounding and touch


def _ends(value: Any) -> Any:
    """Accept one point, or a list of two."""
    return (value,) if isinstance(value, str) or not isinstance(value, list | tuple) or len(value) == 3 else value


class NamedPoint(Spec):
    """A point at the reference pose, and the body that carries it.

    Parameters
    ----------
    on : str, optional
        Body to which the point belongs: needed where a measure follows it.
    at : (3,) or str, optional
        Coordinates, or another point.
    from_ : str, (3,), or two of them, optional
        Point at which the construction begins, in files `from`; two points for `lengths`.
    to : str or (3,), optional
        Second point of a line.
    length : number, optional
        Distance from `from_`, towards `to` or at an `angle`.
    angle : number, optional
        From the x direction, or from the line to `to`, counter-clockwise seen against `normal`.
    share : number, optional
        Fraction of the way to `to`: 0.5 is the midpoint.
    offset : (3,), optional
        Displacement along world axes.
    lengths : (2,), optional
        Distances from the two points of `from_`.
    side : {"left", "right"}, optional
        Side of the line from the first to the second on which their intersection is, seen against `normal`.
    normal : (3,)
        Normal of the plane of the construction; z by default.

    Examples
    --------
    >>> NamedPoint(from_=("B", "D"), lengths=("coupler", 0.4), side="left").lengths
    ('coupler', 0.4)
    """

    model_config = ConfigDict(populate_by_name=True)

    label: ClassVar[str] = "point"
    short: ClassVar[str] = "at"  # alone, it stands for the whole in a file

    on: str | None = None
    at: Place | None = None
    from_: Annotated[tuple[Place, ...], BeforeValidator(_ends, json_schema_input_type=Place | tuple[Place, Place])] = (
        Field(default=(), alias="from")
    )
    to: Place | None = None
    length: Scalar | None = None
    lengths: Vec2 | None = None
    angle: Scalar | None = None
    share: Scalar | None = None
    offset: Vec3 | None = None
    side: Literal["left", "right"] | None = None
    normal: Vec3 = (0.0, 0.0, 1.0)

    def references(self) -> list[str]:
        """Names of the points from which it is constructed."""
        return [str(p) for p in (self.at, *self.from_, self.to) if isinstance(p, PointName)]

    def resolve(self, r: Resolver, element: str, path: Path) -> Array:
        """World position in m; NaN, with the problem recorded, if the keys define no point."""
        keys = ("at", "to", "length", "lengths", "angle", "share", "offset", "side")
        given = frozenset(key for key in keys if getattr(self, key) is not None) | ({"from"} if self.from_ else set())
        count = 2 if "lengths" in given else 1
        if given not in CONSTRUCTIONS or (self.from_ and len(self.from_) != count):
            said = ", ".join(sorted(given)) or "none"
            known = "; ".join(", ".join(sorted(k)) for k in CONSTRUCTIONS)
            hint = f"Give one of: {known}; with 'lengths', 'from' has two points, otherwise one."
            r.problem(element, f"its keys ({said}) define no point", hint, path)
            return np.full(3, np.nan)
        if self.at is not None:
            return r.vector(self.at, "length", element, (*path, "at"))
        ends = [r.vector(p, "length", element, (*path, "from")) for p in self.from_]
        normal = r.direction(self.normal, element, (*path, "normal"))
        if self.lengths is not None:
            return self._intersection(ends, normal, r, element, path)
        if self.offset is not None:
            return ends[0] + r.vector(self.offset, "length", element, (*path, "offset"))
        if self.to is None:
            x, y, _ = perpendicular_frame(normal)
            return ends[0] + self._polar(x, y, r, element, path)
        to = r.vector(self.to, "length", element, (*path, "to"))
        if self.share is not None:
            return ends[0] + r.scalar(self.share, "number", element, (*path, "share")) * (to - ends[0])
        along, across = _line(ends[0], to, None if self.angle is None else normal, r, element, path)
        return ends[0] + self._polar(along, across, r, element, path)

    def _polar(self, x: Array, y: Array, r: Resolver, element: str, path: Path) -> Array:
        """Displacement by the length at the angle from x towards y."""
        length = r.scalar(0.0 if self.length is None else self.length, "length", element, (*path, "length"))
        if self.angle is None:
            return length * x
        angle = r.scalar(self.angle, "angle", element, (*path, "angle"))
        return length * (math.cos(angle) * x + math.sin(angle) * y)

    def _intersection(self, ends: list[Array], normal: Array, r: Resolver, element: str, path: Path) -> Array:
        """Point at both lengths from the two ends, on the chosen side of the line between them."""
        assert self.lengths is not None
        a, b = r.vector(self.lengths, "length", element, (*path, "lengths"))
        along, across = _line(ends[0], ends[1], normal, r, element, path)
        d = float(np.linalg.norm(ends[1] - ends[0]))
        if min(a, b) < 0.0:
            r.problem(element, "a length is negative", "Give positive lengths.", (*path, "lengths"))
        x = 0.5 * (d * d + a * a - b * b) / d if d > 0.0 else math.nan
        square = a * a - x * x
        if square < -TOUCHING * a * a:
            long, one, unit = d > a + b, r.units.factor("length"), r.units.length
            miss = f"{(d - a - b if long else abs(a - b) - d) / one:.6g} {unit}"
            apart = f"the two points are {d / one:.6g} {unit} apart"
            what = f"the lengths {a / one:.6g} and {b / one:.6g} {unit} do not meet: {apart}"
            hint = f"Make the lengths longer by {miss} together." if long else f"Make the longer one shorter by {miss}."
            r.problem(element, what, hint, (*path, "lengths"))
            return np.full(3, np.nan)
        height = math.sqrt(max(square, 0.0))
        return ends[0] + x * along + (height if self.side == "left" else -height) * across


def _line(start: Array, end: Array, normal: Array | None, r: Resolver, element: str, path: Path) -> tuple[Array, Array]:
    """Unit vectors along a line and, in the plane with this normal, to its left."""
    line, nowhere = end - start, np.full(3, np.nan)
    size = float(np.linalg.norm(line))
    if size == 0.0:
        r.problem(element, "the two points of its line coincide", "Give two different points.", path)
        return nowhere, nowhere
    along = line / size
    if normal is None:
        return along, nowhere
    if abs(float(along @ normal)) > IN_PLANE:
        hint = "Give 'normal: [x, y, z]' perpendicular to the line."
        r.problem(element, "the line of its points is not in the plane of the construction", hint, (*path, "normal"))
    return along, np.cross(normal, along)


def _shorthand(value: Any) -> Any:
    return {"at": value} if isinstance(value, list | tuple | np.ndarray) else value


PointField = Annotated[NamedPoint, BeforeValidator(_shorthand, json_schema_input_type=NamedPoint | Vec3)]


def point_names(part: Any) -> list[str]:
    """Names of points in all fields of a part of a model.

    Examples
    --------
    >>> point_names(NamedPoint(from_="A", offset=(1, 0, 0)))
    ['A']
    """
    if isinstance(part, PointName):
        return [str(part)]
    inside = part.__dict__ if isinstance(part, Spec) else part
    values = inside.values() if isinstance(inside, Mapping) else inside if isinstance(inside, list | tuple) else ()
    return [name for x in values for name in point_names(x)]


def resolve_points(points: Mapping[str, NamedPoint], r: Resolver) -> None:
    """Compute all points, each after those from which it is constructed, into `r.points`."""
    known = {name: [p for p in point.references() if p in points] for name, point in points.items()}
    order, cycles = in_order(known)
    r.points |= {name: np.full(3, np.nan) for name in points}
    for cycle in cycles:
        what = f"is constructed from itself: {' -> '.join([*cycle, cycle[0]])}"
        r.problem(f"point '{cycle[0]}'", what, "Give one of them by coordinates.", ("points", cycle[0]))
    for name in order:
        r.points[name] = points[name].resolve(r, f"point '{name}'", ("points", name))
