"""A point of one body led along a path given in time, seen from another."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np

from loopdyn.constraints.base import Constraint, PairRecord, frame_rows, motion_in_time, two_bodies
from loopdyn.engine.jit import inline
from loopdyn.forces.base import Law, Places, law_program
from loopdyn.joints.reading import pick
from loopdyn.joints.rows import displacement
from loopdyn.quantities.units import Path, Place, Resolver

POINT_MOTION = 24


class PointMotion(Constraint):
    """A point of `body` follows a path given in time, seen from `on` in world axes of the reference pose.

    `x`, `y`, `z` are its coordinates as functions of ``t``; a coordinate that is left out stays free.

    Parameters
    ----------
    on, body : str
        Body from which the path is seen, and the body with the point.
    point : (3,)
        The point, in world coordinates at the reference pose, in units of length.
    x, y, z : formula of ``t``, table or profile, optional
        In units of length; t in s.

    Examples
    --------
    >>> PointMotion(on="ground", body="tool", point=(1, 0, 0), x="1 + 0.1*sin(t)").type
    'point_motion'
    """

    label: ClassVar[str] = "point_motion"
    code: ClassVar[int] = POINT_MOTION

    type: Literal["point_motion"] = "point_motion"
    on: str
    body: str
    point: Place
    x: Law | None = None
    y: Law | None = None
    z: Law | None = None

    def bodies(self) -> tuple[str, ...]:
        """Its two bodies."""
        return self.on, self.body

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
        return PairRecord(bodies, F, M, names, axes, par=(bits, 0.0), programs=programs)


@inline
def rows(model, work, program, F, par, d, wF, v, k):
    """f . d follows a motion in time for each axis f of F that is led."""
    phi, G, gamma, phi_t = work.phi, work.rows, work.gamma, work.phi_t
    bits = int(par[0])
    for i in range(3):
        if (bits >> i) & 1 == 1:
            motion = motion_in_time(model, work, program)
            displacement(pick(F, i), d, wF, v, phi, G, gamma, k)
            phi[k] -= motion[0]
            phi_t[k] = -motion[1]
            gamma[k] += motion[2]
            program += 1
            k += 1
    return k
