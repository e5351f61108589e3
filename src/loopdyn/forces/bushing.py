"""Bushing: six springs and dampers between a frame on one body and a frame on another."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np

from loopdyn.forces.base import BUSHING, Force, Places, Record
from loopdyn.forces.springs import check_not_negative
from loopdyn.joints.base import RotationField
from loopdyn.quantities.units import Path, Resolver, Vec3


class Bushing(Force):
    """An elastic connection in three directions and about three axes.

    The frames coincide at the reference pose, at the world point `at`, turned by `rotation`. With d the
    displacement of the second frame from the first and theta its rotation vector, both in axes of the first,
    the load on body 2 is ``-stiffness*d - damping*rate`` and the same for the rotation. The force acts at the
    origin of the second frame. As a load of a run it is one number: the size of the force, or of the torque where
    there is no stiffness and damping along the axes.

    Examples
    --------
    >>> Bushing(body1="frame", body2="arm", at=(0, 0, 0), stiffness=(1e6, 1e6, 1e5)).stiffness
    (1000000.0, 1000000.0, 100000.0)
    """

    label: ClassVar[str] = "bushing"

    type: Literal["bushing"] = "bushing"
    body1: str
    body2: str
    at: Vec3
    rotation: RotationField = None
    stiffness: Vec3 = (0.0, 0.0, 0.0)
    damping: Vec3 = (0.0, 0.0, 0.0)
    angular_stiffness: Vec3 = (0.0, 0.0, 0.0)
    angular_damping: Vec3 = (0.0, 0.0, 0.0)

    def resolve(self, r: Resolver, places: Places, element: str, path: Path) -> Record | None:
        """Bodies; point and axes on each; angular and linear stiffness, angular and linear damping."""
        bodies = [places.body(getattr(self, key), element, (*path, key)) for key in ("body1", "body2")]
        at = r.vector(self.at, "length", element, (*path, "at"))
        R = np.eye(3) if self.rotation is None else self.rotation.resolve(r, element, (*path, "rotation"))
        coefficients: list[float] = []
        for key in ("angular_stiffness", "stiffness", "angular_damping", "damping"):
            values = r.vector(getattr(self, key), key, element, (*path, key))
            for value in values:
                check_not_negative(r, element, path, **{key: float(value)})
            coefficients.extend(values)
        if min(bodies) < 0:
            return None
        if bodies[0] == bodies[1]:
            r.problem(element, "joins a body to itself", "Name two different bodies.", (*path, "body2"))
            return None
        floats: list[float] = []
        for body in bodies:
            floats.extend(places.point(body, at))
            floats.extend(places.axes(body, R).T.ravel())  # rows are the axes
        turns_only = not any(coefficients[3:6]) and not any(coefficients[9:12]) and any(coefficients)
        return Record(BUSHING, [*bodies, -1, int(turns_only)], [*floats, *coefficients])
