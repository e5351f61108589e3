"""Points of forces along the line through two points, and their motion."""

from __future__ import annotations

import numpy as np

from loopdyn.engine.jit import inline
from loopdyn.engine.records import FORCE_BODY1, FORCE_BODY2
from loopdyn.forces.base import Places
from loopdyn.forces.loading import body_point
from loopdyn.quantities.units import Path, Resolver
from loopdyn.spatial.plucker import dot, get3, scale, sub

# Floats of the record: a point on each body, in its own axes; a type's own numbers follow.
POINT1, POINT2, OWN = 0, 3, 6


def two_points(
    force: object, r: Resolver, places: Places, element: str, path: Path
) -> tuple[tuple[int, int], list[float], float] | None:
    """Rows of the two bodies, their points in body axes, and the distance at the reference pose."""
    ints: list[int] = []
    floats: list[float] = []
    world = []
    for k in ("1", "2"):
        name, p = getattr(force, "body" + k), getattr(force, "point" + k)
        ints.append(places.body(name, element, (*path, "body" + k)))
        world.append(r.vector(p, "length", element, (*path, "point" + k)))
    if min(ints) < 0:
        return None
    if ints[0] == ints[1]:
        r.problem(element, "joins a body to itself", "Name two different bodies.", (*path, "body2"))
        return None
    for body, p in zip(ints, world, strict=True):
        floats.extend(places.point(body, p))
    return (ints[0], ints[1]), floats, float(np.linalg.norm(world[1] - world[0]))


@inline
def stretch(model, work, n):
    """The two points in the world, the direction from the first to the second, their distance and its rate."""
    x1, v1 = body_point(work.body, model.force[n, FORCE_BODY1], get3(model.force_data, n, POINT1))
    x2, v2 = body_point(work.body, model.force[n, FORCE_BODY2], get3(model.force_data, n, POINT2))
    line = sub(x2, x1)
    length = np.sqrt(dot(line, line))
    e = scale(1.0 / length, line)
    return x1, x2, e, length, dot(e, sub(v2, v1))
