"""Forces and torques applied to a body at a point, in world or body axes."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from loopdyn.forces.base import APPLIED, Force, Law, Places, Record, law_program
from loopdyn.quantities.units import Path, Resolver, Vec3


class AppliedForce(Force):
    """A force at a point of a body and a torque on it.

    Components are numbers, formulas of ``t`` and parameters, or tables of ``t``; in world axes, or with
    ``axes="body"`` in axes that turn with the body and are the world's at the reference pose. As a load of a run it is
    one number: the size of the force, or of the torque where no force is given.

    Examples
    --------
    >>> AppliedForce(body="crank", force=(0, "10*sin(t)", 0), at=(0, 0.5, 0)).axes
    'world'
    """

    label: ClassVar[str] = "applied"

    type: Literal["applied"] = "applied"
    body: str
    force: tuple[Law, Law, Law] = (0.0, 0.0, 0.0)
    torque: tuple[Law, Law, Law] = (0.0, 0.0, 0.0)
    at: Vec3
    axes: Literal["world", "body"] = "world"

    def resolve(self, r: Resolver, places: Places, element: str, path: Path) -> Record | None:
        """Body, number of the first of six programs, whether axes turn with the body; point and axes."""
        import numpy as np

        body = places.body(self.body, element, (*path, "body"))
        at = r.vector(self.at, "length", element, (*path, "at"))
        programs = []
        for key in ("torque", "force"):
            laws: Any = getattr(self, key)
            for k, law in enumerate(laws):
                programs.append(law_program(law, {"t": "number"}, key, r, element, (*path, key, k)))
        if body < 0:
            return None
        axes = places.axes(body, np.eye(3)) if self.axes == "body" else np.eye(3)
        turns_only = all(law == 0.0 for law in self.force) and any(law != 0.0 for law in self.torque)
        ints = [body, -1, int(self.axes == "body"), int(turns_only)]
        return Record(APPLIED, ints, [*places.point(body, at), *axes.ravel()], programs, first_program=1)
