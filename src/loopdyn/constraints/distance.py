"""Distance between two points: a massless rod with ball ends; its length may be a function of time."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np

from loopdyn.constraints.base import Constraint, PairRecord, motion_in_time, two_bodies
from loopdyn.engine.jit import inline
from loopdyn.forces.base import Law, Places, law_program
from loopdyn.quantities.units import Path, Place, Resolver
from loopdyn.spatial.plucker import add, cross, dot, put3, scale

DISTANCE = 20
ZERO = (0.0, 0.0, 0.0)


class Distance(Constraint):
    """The distance of two points is constant, or a function of time.

    Without `length` it is the distance at the reference pose. The multiplier is the force that pushes the
    points apart.

    Parameters
    ----------
    body1, body2 : str
        Names of the bodies.
    point1, point2 : (3,)
        The points, in world coordinates at the reference pose, in units of length.
    length : number, formula of ``t``, table or profile, optional
        In units of length.

    Examples
    --------
    >>> Distance(body1="crank", body2="rocker", point1=(0, 1, 0), point2=(1, 1, 0)).rows
    ('distance',)
    """

    label: ClassVar[str] = "distance"
    code: ClassVar[int] = DISTANCE
    drawn_as: ClassVar[Literal["rod"]] = "rod"
    rows: ClassVar[tuple[str, ...]] = ("distance",)

    type: Literal["distance"] = "distance"
    body1: str
    body2: str
    point1: Place
    point2: Place
    length: Law | None = None

    def bodies(self) -> tuple[str, ...]:
        """Its two bodies."""
        return self.body1, self.body2

    def resolve(self, r: Resolver, places: Places, element: str, path: Path) -> PairRecord | None:
        """Bodies and points; program of the length."""
        bodies = two_bodies(self.body1, self.body2, ("body1", "body2"), r, places, element, path)
        p1 = r.vector(self.point1, "length", element, (*path, "point1"))
        p2 = r.vector(self.point2, "length", element, (*path, "point2"))
        now = float(np.linalg.norm(p2 - p1))
        law = now / r.units.factor("length") if self.length is None else self.length
        program = law_program(law, {"t": "number"}, "length", r, element, (*path, "length"), motion=True)
        if self.length is None and now == 0.0:
            r.problem(element, "its points coincide", "Use a spherical joint, or give different points.", path)
        if bodies is None:
            return None
        points = places.point(bodies[0], p1), places.point(bodies[1], p2)
        return PairRecord(bodies, points[0], points[1], self.rows, programs=[program])


@inline
def rows(model, work, program, d, wF, v, k):
    """phi = |d| - length(t); undefined at zero distance."""
    L, L1, L2 = motion_in_time(model, work, program)
    size = np.sqrt(dot(d, d))
    e = scale(1.0 / size, d)
    rate = add(v, cross(wF, d))  # of d, seen from the world
    along = dot(e, rate)
    work.phi[k] = size - L
    put3(work.rows, k, 0, ZERO)
    put3(work.rows, k, 3, e)
    work.phi_t[k] = -L1
    # e . d'' = L'' - (|d'|^2 - along^2)/|d|, and e . (alpha_F x d) = 0
    work.gamma[k] = L2 - (dot(rate, rate) - along * along) / size
    return k + 1
