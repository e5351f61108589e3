"""A tendon over several joints: a force on a sum of joint coordinates times factors."""

from __future__ import annotations

from typing import ClassVar, Literal

from loopdyn.engine.jit import inline
from loopdyn.engine.records import FORCE_OWN, N_FORCE_FLOATS, ON_COORDINATES
from loopdyn.forces.base import Force, Law, Places, Record, law_program, sum_of_terms
from loopdyn.forces.loading import law
from loopdyn.quantities.units import Path, Resolver, Scalar
from loopdyn.quantities.wording import element_of

JOINT_TENDON = 7
# Its own integer is the number of terms. Floats of each: speed and coordinate of the tree, by number, and the factor.
TERM_SPEED, TERM_COORDINATE, TERM_FACTOR, N_TERM = range(4)
MOST_TERMS = N_FORCE_FLOATS // N_TERM


class JointTendon(Force):
    """A tendon, belt or differential over several joints.

    Its length is the sum of the factors times the coordinates of the joints. `force` acts on the length: each
    coordinate receives its factor times the force. It is a number, a formula of ``t``, ``length`` and ``speed`` (rate
    of the length) and of parameters, or a table. A tendon over angles alone has an angle for its length, and its force
    is a torque.

    Parameters
    ----------
    terms : mapping
        Factor of each coordinate, by its label: length per angle for an angle, without unit for a slide.
    force : number, formula, table or profile
        In units of force, or of torque if all coordinates are angles.

    Examples
    --------
    >>> JointTendon(terms={"left": 0.5, "right": 0.5}, force="40*(0.3 - length) - speed").terms["left"]
    0.5
    """

    label: ClassVar[str] = "joint_tendon"
    code: ClassVar[int] = JOINT_TENDON
    acts_on: ClassVar[int] = ON_COORDINATES
    stores_energy: ClassVar[bool] = False

    type: Literal["joint_tendon"] = "joint_tendon"
    terms: dict[str, Scalar]
    force: Law

    def joints(self) -> tuple[str, ...]:
        """Joints of the terms."""
        return tuple(element_of(name) for name in self.terms)

    def reads(self) -> tuple[str, ...]:
        """Coordinates of the terms."""
        return tuple(self.terms)

    def resolve(self, r: Resolver, places: Places, element: str, path: Path) -> Record | None:
        """Coordinates with their factors; one program."""
        found = sum_of_terms(self.terms, r, places, element, path, MOST_TERMS)
        if found is None:
            return None
        floats: list[float] = []
        for name, f, factor in zip(self.terms, found.freedoms, found.factors, strict=True):
            if f.cut >= 0:
                hint = "Compile with other cuts=[...]: a tendon reads coordinates of the tree."
                r.problem(element, f"joint '{name}' is cut", hint, (*path, "terms", name))
                return None
            floats += [f.index, f.coordinate, factor]
        rate, out = ("speed", "force") if found.dimension == "length" else ("angular_speed", "torque")
        variables = {"t": "number", "length": found.dimension, "speed": rate}
        program = law_program(self.force, variables, out, r, element, (*path, "force"), terms=places.terms)
        return Record(floats=floats, programs=[program], torque=out == "torque", own=len(found.freedoms))


@inline
def act(model, work, n):
    """Load the coordinates of the terms; returns the force on their sum and its speed."""
    terms, data = model.force[n, FORCE_OWN], model.force_data
    length, speed = 0.0 * work.t[0], 0.0 * work.t[0]
    for k in range(terms):
        c = data[n, N_TERM * k + TERM_FACTOR]
        length += c * work.q[int(data[n, N_TERM * k + TERM_COORDINATE])]
        speed += c * work.v[int(data[n, N_TERM * k + TERM_SPEED])]
    f = law(model, work, n, 0, length, speed)
    for k in range(terms):
        work.load[int(data[n, N_TERM * k + TERM_SPEED])] += data[n, N_TERM * k + TERM_FACTOR] * f
    return f, speed
