"""Actuator between two points, driven by a number, a formula or a table."""

from __future__ import annotations

from typing import ClassVar, Literal

from loopdyn.engine.jit import inline
from loopdyn.engine.records import ON_LINE
from loopdyn.forces.base import Force, Law, Places, Record, law_program
from loopdyn.forces.line import two_points
from loopdyn.forces.loading import law
from loopdyn.quantities.units import Path, Place, Resolver

ACTUATOR = 1


class Actuator(Force):
    """A force along the line through two points, e.g. a hydraulic cylinder; positive pushes them apart.

    `force` is a number, a formula of ``t``, ``length`` (distance of the points) and ``speed`` (its rate) and of
    parameters, or a table.

    Parameters
    ----------
    body1, body2 : str
        Names of the bodies.
    point1, point2 : (3,)
        The points, in world coordinates at the reference pose, in units of length.
    force : number, formula, table or profile
        In units of force.

    Examples
    --------
    >>> Actuator(body1="ground", body2="boom", point1=(0, 0, 0), point2=(1, 0, 0), force="1000*step(t - 1)").force
    '1000*step(t - 1)'
    """

    label: ClassVar[str] = "actuator"
    code: ClassVar[int] = ACTUATOR
    acts_on: ClassVar[int] = ON_LINE
    stores_energy: ClassVar[bool] = False
    drawn_as: ClassVar[Literal["piston"]] = "piston"

    type: Literal["actuator"] = "actuator"
    body1: str
    body2: str
    point1: Place
    point2: Place
    force: Law

    def bodies(self) -> tuple[str, ...]:
        """Its two bodies."""
        return self.body1, self.body2

    def preloaded(self) -> Literal["force"]:
        """Its law, as a constant."""
        return "force"

    def resolve(self, r: Resolver, places: Places, element: str, path: Path) -> Record | None:
        """Bodies and points; one program."""
        ends = two_points(self, r, places, element, path)
        variables = {"t": "number", "length": "length", "speed": "speed"}
        program = law_program(self.force, variables, "force", r, element, (*path, "force"), terms=places.terms)
        if ends is None:
            return None
        bodies, floats, _ = ends
        return Record(bodies, floats=floats, programs=[program])


@inline
def pull(model, work, n, length, rate):
    return -law(model, work, n, 0, length, rate)
