"""A point of one body on a line or plane of another, in a slot, or led along a path given in time."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np

from loopdyn.constraints.base import (
    POINT_MOTION,
    POINT_ON_LINE,
    POINT_ON_PLANE,
    SLOT,
    Constraint,
    PairRecord,
    frame_rows,
    two_bodies,
)
from loopdyn.engine.jit import inline
from loopdyn.forces.base import Law, Places, law_program
from loopdyn.joints.rows import displacement, tilt
from loopdyn.quantities.units import Path, Resolver, Vec3
from loopdyn.spatial.plucker import row
from loopdyn.spatial.rotations import perpendicular_frame


class PointOnLine(Constraint):
    """A point of `body` stays on a line of `on` through the point's place at the reference pose, or through `through`.

    Examples
    --------
    >>> PointOnLine(on="frame", body="slider", point=(1, 0, 0), direction=(1, 0, 0)).rows
    ('fx', 'fy')
    """

    label: ClassVar[str] = "point_on_line"
    rows: ClassVar[tuple[str, ...]] = ("fx", "fy")

    type: Literal["point_on_line"] = "point_on_line"
    on: str
    body: str
    point: Vec3
    direction: Vec3
    through: Vec3 | None = None

    def resolve(self, r: Resolver, places: Places, element: str, path: Path) -> PairRecord | None:
        """F has z along the line."""
        axes = perpendicular_frame(r.direction(self.direction, element, (*path, "direction")))
        return _guided(POINT_ON_LINE, self, self.rows, axes, r, places, element, path)


class PointOnPlane(Constraint):
    """A point of `body` stays on a plane of `on` through the point's place at the reference pose, or through `through`.

    Examples
    --------
    >>> PointOnPlane(on="ground", body="foot", point=(0, 0, 0), normal=(0, 0, 1)).rows
    ('fz',)
    """

    label: ClassVar[str] = "point_on_plane"
    rows: ClassVar[tuple[str, ...]] = ("fz",)

    type: Literal["point_on_plane"] = "point_on_plane"
    on: str
    body: str
    point: Vec3
    normal: Vec3
    through: Vec3 | None = None

    def resolve(self, r: Resolver, places: Places, element: str, path: Path) -> PairRecord | None:
        """F has z along the normal."""
        axes = perpendicular_frame(r.direction(self.normal, element, (*path, "normal")))
        return _guided(POINT_ON_PLANE, self, self.rows, axes, r, places, element, path)


class Slot(Constraint):
    """A pin of `body` slides along a straight slot of `on` and turns about its axis, which keeps its direction.

    Examples
    --------
    >>> Slot(on="arm", body="block", point=(1, 0, 0), direction=(1, 0, 0), axis=(0, 0, 1)).rows
    ('mx', 'my', 'fy', 'fz')
    """

    label: ClassVar[str] = "slot"
    rows: ClassVar[tuple[str, ...]] = ("mx", "my", "fy", "fz")

    type: Literal["slot"] = "slot"
    on: str
    body: str
    point: Vec3
    direction: Vec3
    axis: Vec3
    through: Vec3 | None = None

    def resolve(self, r: Resolver, places: Places, element: str, path: Path) -> PairRecord | None:
        """F has x along the slot and z along the pin."""
        x = r.direction(self.direction, element, (*path, "direction"))
        z = r.direction(self.axis, element, (*path, "axis"))
        if abs(x @ z) > 1e-9:
            hint = "Make 'direction' perpendicular to 'axis'."
            r.problem(element, "the slot is not perpendicular to its pin", hint, (*path, "direction"))
            return None
        return _guided(SLOT, self, self.rows, perpendicular_frame(z, x), r, places, element, path)


class PointMotion(Constraint):
    """A point of `body` follows a path given in time, seen from `on` in world axes of the reference pose.

    `x`, `y`, `z` are its coordinates as functions of ``t``; a coordinate that is left out stays free.

    Examples
    --------
    >>> PointMotion(on="ground", body="tool", point=(1, 0, 0), x="1 + 0.1*sin(t)").type
    'point_motion'
    """

    label: ClassVar[str] = "point_motion"

    type: Literal["point_motion"] = "point_motion"
    on: str
    body: str
    point: Vec3
    x: Law | None = None
    y: Law | None = None
    z: Law | None = None

    def resolve(self, r: Resolver, places: Places, element: str, path: Path) -> PairRecord | None:
        """One row per given coordinate; par[0] is the set of coordinates as bits."""
        given = [k for k in "xyz" if getattr(self, k) is not None]
        if not given:
            r.problem(element, "no coordinate is given", "Give 'x', 'y' or 'z' as a function of t.", path)
            return None
        bodies = two_bodies(self.on, self.body, ("on", "body"), r, places, element, path)
        p = r.vector(self.point, "length", element, (*path, "point"))
        laws = ((getattr(self, k), (*path, k)) for k in given)
        programs = [law_program(law, {"t": "number"}, "length", r, element, at, motion=True) for law, at in laws]
        if bodies is None:
            return None
        F, M = places.point(bodies[0], np.zeros(3)), places.point(bodies[1], p)
        names = tuple("f" + k for k in given)
        axes = frame_rows(places, bodies[0], np.eye(3))
        bits = float(sum(1 << "xyz".index(k) for k in given))
        return PairRecord(POINT_MOTION, bodies, F, M, names, axes, par=(bits, 0.0), programs=programs)


def _guided(
    kind: int,
    c: PointOnLine | PointOnPlane | Slot,
    names: tuple[str, ...],
    axes: np.ndarray,
    r: Resolver,
    places: Places,
    element: str,
    path: Path,
) -> PairRecord | None:
    """A point of one body guided by a frame of another."""
    bodies = two_bodies(c.on, c.body, ("on", "body"), r, places, element, path)
    p = r.vector(c.point, "length", element, (*path, "point"))
    origin = p if c.through is None else r.vector(c.through, "length", element, (*path, "through"))
    if bodies is None:
        return None
    return PairRecord(
        kind,
        bodies,
        places.point(bodies[0], origin),
        places.point(bodies[1], p),
        names,
        frame_rows(places, bodies[0], axes),
        frame_rows(places, bodies[1], axes),
    )


@inline
def on_line(F, d, wF, v, phi, G, gamma, k):
    k = displacement(row(F, 0), d, wF, v, phi, G, gamma, k)
    return displacement(row(F, 1), d, wF, v, phi, G, gamma, k)


@inline
def on_plane(F, d, wF, v, phi, G, gamma, k):
    return displacement(row(F, 2), d, wF, v, phi, G, gamma, k)


@inline
def in_slot(F, M, d, wF, wM, v, phi, G, gamma, k):
    k = tilt(F, M, wF, wM, phi, G, gamma, k)
    k = displacement(row(F, 1), d, wF, v, phi, G, gamma, k)
    return displacement(row(F, 2), d, wF, v, phi, G, gamma, k)


@inline
def led(f, motion, d, wF, v, phi, G, gamma, explicit, k):
    """f . d follows motion(t) = (value, rate, acceleration)."""
    displacement(f, d, wF, v, phi, G, gamma, k)
    phi[k] -= motion[0]
    explicit[k] = -motion[1]
    gamma[k] += motion[2]
    return k + 1
