"""Motor on a joint coordinate, driven by a number, a formula or a table."""

from __future__ import annotations

from typing import ClassVar, Literal

from loopdyn.engine.jit import inline
from loopdyn.engine.records import FORCE_OWN, ON_FREEDOM
from loopdyn.forces.base import Force, Law, Places, Record, freedom_dimensions, law_program, law_reads
from loopdyn.forces.loading import law
from loopdyn.quantities.units import Path, Resolver

MOTOR = 4
HAS_POSITION = 1  # its own integer: the second variable of the law is the position, not the speed


class Motor(Force):
    """A torque (or a force, on a slide) on a joint coordinate.

    `torque` or `force` is a number, a formula of ``t``, ``position`` and ``speed`` of the coordinate and of
    parameters, or a table.

    Parameters
    ----------
    joint : str
        Label of the coordinate.
    torque : number, formula, table or profile, optional
        For an angle, in units of torque.
    force : number, formula, table or profile, optional
        For a slide, in units of force.

    Examples
    --------
    >>> Motor(joint="A", torque="3 - 0.2*speed").torque
    '3 - 0.2*speed'
    """

    label: ClassVar[str] = "motor"
    code: ClassVar[int] = MOTOR
    acts_on: ClassVar[int] = ON_FREEDOM
    stores_energy: ClassVar[bool] = False

    type: Literal["motor"] = "motor"
    joint: str
    torque: Law | None = None
    force: Law | None = None

    def reads(self) -> tuple[str, ...]:
        """Its joint, if the law depends on the position."""
        return (self.joint,) if any(law_reads(one, "position") for one in (self.torque, self.force)) else ()

    def preloaded(self) -> Literal["force", "torque"]:
        """Its law, as a constant."""
        return "force" if self.torque is None else "torque"

    def resolve(self, r: Resolver, places: Places, element: str, path: Path) -> Record | None:
        """Freedom and one program."""
        f = places.freedom(self.joint, element, (*path, "joint"))
        if f is None:
            return None
        key, other = ("torque", "force") if f.rotation else ("force", "torque")
        given = getattr(self, key)
        if getattr(self, other) is not None or given is None:
            r.problem(element, f"'{self.joint}' takes a {key}, not a {other}", f"Give '{key}' and nothing else.", path)
            return None
        variables = freedom_dimensions(f)
        program = law_program(given, variables, key, r, element, (*path, key), terms=places.terms)
        # kernels offer t, position, speed in this order; without a scalar coordinate the second is left out
        own = HAS_POSITION if "position" in variables else 0
        return Record(freedom=f, programs=[program], torque=f.rotation, own=own)


@inline
def load(model, work, n, x, dx):
    if model.force[n, FORCE_OWN] != HAS_POSITION:
        x = dx
    return law(model, work, n, 0, x, dx)
