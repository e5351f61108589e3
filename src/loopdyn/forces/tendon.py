"""A tendon over several joints: a force on a sum of joint coordinates times factors."""

from __future__ import annotations

from typing import ClassVar, Literal

from loopdyn.engine.records import N_FORCE_FLOATS
from loopdyn.forces.base import JOINT_TENDON, Force, Law, Places, Record, law_program
from loopdyn.quantities.units import Path, Resolver, Scalar

# Of each term in the floats of the record: speed and coordinate of the tree, by number, and the factor.
TERM_SPEED, TERM_COORDINATE, TERM_FACTOR, N_TERM = range(4)
MOST_TERMS = N_FORCE_FLOATS // N_TERM


class JointTendon(Force):
    """A tendon, belt or differential over several joints.

    Its length is the sum of the factors times the coordinates of the joints. `force` acts on the length: each
    coordinate receives its factor times the force. It is a number, a formula of ``t``, ``length`` and ``speed`` (rate
    of the length) and of parameters, or a table. A tendon over angles alone has an angle for its length, and its force
    is a torque.

    Examples
    --------
    >>> JointTendon(terms={"left": 0.5, "right": 0.5}, force="40*(0.3 - length) - speed").terms["left"]
    0.5
    """

    label: ClassVar[str] = "joint_tendon"

    type: Literal["joint_tendon"] = "joint_tendon"
    terms: dict[str, Scalar]
    force: Law

    def joints(self) -> tuple[str, ...]:
        """Joints of the terms."""
        return tuple(name.partition(".")[0] for name in self.terms)

    def reads(self) -> tuple[str, ...]:
        """Coordinates of the terms."""
        return tuple(self.terms)

    def resolve(self, r: Resolver, places: Places, element: str, path: Path) -> Record | None:
        """Coordinates with their factors; one program."""
        if not 0 < len(self.terms) <= MOST_TERMS:
            message, hint = f"has {len(self.terms)} terms", f"Give one to {MOST_TERMS} coordinates with their factors."
            r.problem(element, message, hint, (*path, "terms"))
            return None
        freedoms = []
        for name in self.terms:
            where = (*path, "terms", name)
            f = places.freedom(name, element, where)
            if f is None:
                return None
            if f.dimension == "":
                r.problem(element, f"'{name}' has no single coordinate", "Use a joint with one.", where)
                return None
            if f.cut >= 0:
                hint = "Compile with other cuts=[...]: a tendon reads coordinates of the tree."
                r.problem(element, f"joint '{name}' is cut", hint, where)
                return None
            freedoms.append(f)
        lengths = any(f.dimension == "length" for f in freedoms)
        dimension, rate, out = ("length", "speed", "force") if lengths else ("angle", "angular_speed", "torque")
        unit = r.units.factor(dimension)
        floats: list[float] = []
        for f, (name, factor) in zip(freedoms, self.terms.items(), strict=True):
            value = r.scalar(factor, "number", element, (*path, "terms", name))
            floats += [f.index, f.coordinate, value * unit / r.units.factor(f.dimension)]
        variables = {"t": "number", "length": dimension, "speed": rate}
        program = law_program(self.force, variables, out, r, element, (*path, "force"))
        return Record(JOINT_TENDON, [len(freedoms), -1], floats, [program], first_program=1)
