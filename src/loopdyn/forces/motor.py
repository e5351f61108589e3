"""Motors on a joint coordinate and actuators between two points, driven by a number, a formula or a table."""

from __future__ import annotations

from typing import ClassVar, Literal

from loopdyn.forces.base import ACTUATOR, MOTOR, Force, Law, Places, Record, freedom_dimensions, law_program, law_reads
from loopdyn.forces.springs import two_points
from loopdyn.quantities.units import Path, Resolver, Vec3


class Motor(Force):
    """A torque (or a force, on a slide) on a joint coordinate.

    `torque` or `force` is a number, a formula of ``t``, ``position`` and ``speed`` of the coordinate and of
    parameters, or a table.

    Examples
    --------
    >>> Motor(joint="A", torque="3 - 0.2*speed").torque
    '3 - 0.2*speed'
    """

    label: ClassVar[str] = "motor"

    type: Literal["motor"] = "motor"
    joint: str
    torque: Law | None = None
    force: Law | None = None

    def reads(self) -> tuple[str, ...]:
        """Its joint, if the law is one of the position."""
        return (self.joint,) if any(law_reads(law, "position") for law in (self.torque, self.force)) else ()

    def resolve(self, r: Resolver, places: Places, element: str, path: Path) -> Record | None:
        """Freedom and one program."""
        f = places.freedom(self.joint, element, (*path, "joint"))
        if f is None:
            return None
        key, other = ("torque", "force") if f.rotation else ("force", "torque")
        law = getattr(self, key)
        if getattr(self, other) is not None or law is None:
            r.problem(element, f"'{self.joint}' takes a {key}, not a {other}", f"Give '{key}' and nothing else.", path)
            return None
        variables = freedom_dimensions(f)
        program = law_program(law, variables, key, r, element, (*path, key))
        # kernels offer t, position, speed in this order; without a scalar coordinate the second is left out
        has_position = int("position" in variables)
        return Record(MOTOR, [f.cut, f.index, f.coordinate, -1, has_position], [], [program], first_program=3)


class Actuator(Force):
    """A force along the line through two points, e.g. a hydraulic cylinder; positive pushes them apart.

    `force` is a number, a formula of ``t``, ``length`` (distance of the points) and ``speed`` (its rate) and of
    parameters, or a table.

    Examples
    --------
    >>> Actuator(body1="ground", body2="boom", point1=(0, 0, 0), point2=(1, 0, 0), force="1000*step(t - 1)").force
    '1000*step(t - 1)'
    """

    label: ClassVar[str] = "actuator"

    type: Literal["actuator"] = "actuator"
    body1: str
    body2: str
    point1: Vec3
    point2: Vec3
    force: Law

    def resolve(self, r: Resolver, places: Places, element: str, path: Path) -> Record | None:
        """Bodies and points; one program."""
        ends = two_points(self, r, places, element, path)
        variables = {"t": "number", "length": "length", "speed": "speed"}
        program = law_program(self.force, variables, "force", r, element, (*path, "force"))
        if ends is None:
            return None
        ints, floats, _ = ends
        return Record(ACTUATOR, [*ints, -1], floats, [program], first_program=2)
