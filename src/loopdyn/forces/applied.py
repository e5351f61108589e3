"""Forces and torques applied to a body at a point, in world or body axes."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np

from loopdyn.engine.jit import inline
from loopdyn.engine.records import FORCE_BODY1, FORCE_OWN, FORCE_TORQUE, ON_BODIES, R
from loopdyn.forces.base import Force, Law, Places, Record, law_program
from loopdyn.forces.loading import body_point, law, push, twist
from loopdyn.quantities.units import Path, Place, Resolver
from loopdyn.spatial.plucker import dot, get3, get9, mul, rot

APPLIED = 6
POINT, AXES = 0, 3  # in the axes of the body; axes as columns
BODY_AXES = 1  # its own integer: components are in axes that turn with the body


class AppliedForce(Force):
    """A force at a point of a body and a torque on it.

    Components are numbers, formulas of ``t`` and parameters, or tables of ``t``; in world axes, or with
    ``axes="body"`` in axes that turn with the body and are the world's at the reference pose. As a load of a run it is
    one number: the size of the force, or of the torque where no force is given.

    Parameters
    ----------
    body : str
        Name of the body.
    force, torque : (3,)
        In units of force and torque.
    at : (3,)
        Point of application, in world coordinates at the reference pose, in units of length.
    axes : {"world", "body"}
        Axes of the components.

    Examples
    --------
    >>> AppliedForce(body="crank", force=(0, "10*sin(t)", 0), at=(0, 0.5, 0)).axes
    'world'
    """

    label: ClassVar[str] = "applied"
    code: ClassVar[int] = APPLIED
    acts_on: ClassVar[int] = ON_BODIES
    stores_energy: ClassVar[bool] = False

    type: Literal["applied"] = "applied"
    body: str
    force: tuple[Law, Law, Law] = (0.0, 0.0, 0.0)
    torque: tuple[Law, Law, Law] = (0.0, 0.0, 0.0)
    at: Place
    axes: Literal["world", "body"] = "world"

    def bodies(self) -> tuple[str, ...]:
        """The ground, which bears it, and the body."""
        return "ground", self.body

    def resolve(self, r: Resolver, places: Places, element: str, path: Path) -> Record | None:
        """Body, point and axes; six programs, of the torque and of the force."""
        body = places.body(self.body, element, (*path, "body"))
        at = r.vector(self.at, "length", element, (*path, "at"))
        programs = []
        for key in ("torque", "force"):
            given: Any = getattr(self, key)
            for k, one in enumerate(given):
                where = (*path, key, k)
                programs.append(law_program(one, {"t": "number"}, key, r, element, where, terms=places.terms))
        if body < 0:
            return None
        axes = places.axes(body, np.eye(3)) if self.axes == "body" else np.eye(3)
        return Record(
            (body, -1),
            floats=[*places.point(body, at), *axes.ravel()],
            programs=programs,
            torque=all(x == 0.0 for x in self.force) and any(x != 0.0 for x in self.torque),
            own=BODY_AXES if self.axes == "body" else 0,
        )


@inline
def act(model, work, n):
    """Force at the point and torque, by programs of t."""
    B, i, t = work.body, model.force[n, FORCE_BODY1], work.t[0]
    torque = (law(model, work, n, 0, t, t), law(model, work, n, 1, t, t), law(model, work, n, 2, t, t))
    force = (law(model, work, n, 3, t, t), law(model, work, n, 4, t, t), law(model, work, n, 5, t, t))
    if model.force[n, FORCE_OWN] == BODY_AXES:
        A = mul(get9(B, i, R), get9(model.force_data, n, AXES))
        torque, force = rot(A, torque), rot(A, force)
    x, _ = body_point(B, i, get3(model.force_data, n, POINT))
    twist(B, i, torque)
    push(B, i, x, force)
    return np.sqrt(dot(torque, torque)) if model.force[n, FORCE_TORQUE] == 1 else np.sqrt(dot(force, force))
