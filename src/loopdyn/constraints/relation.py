"""Relations of joint coordinates and speeds given by a formula: phi(t, q) = 0, and psi(t, q, v) = 0 at velocity level.

Both are *linear* records (:mod:`loopdyn.engine.records`) whose factors are computed at the state. The variables of the
program are t and, for each entry j, its coordinate (1 + 2 j) and its speed (2 + 2 j). Run along the motion at zero
joint accelerations, the program gives the row and its derivatives in time; run along one variable, a factor:

=============  ===================================  ==============================================
               phi(t, q) = 0                        psi(t, q, v) = 0
=============  ===================================  ==============================================
position       phi                                  no condition (0)
velocity       phi' = sum d phi/dx x' + phi_t       psi
acceleration   sum d phi/dx x'' = gamma             sum d psi/dx' x'' = gamma
factor         d phi/dx                             d psi/dx'
gamma          -phi'' at zero accelerations         -psi' at zero accelerations
=============  ===================================  ==============================================
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from pydantic import Field

from loopdyn.constraints.base import Constraint, LinearRecord
from loopdyn.engine.jit import inline
from loopdyn.engine.records import RELATION, VELOCITY_RELATION
from loopdyn.forces.base import Freedom, Places, law_program
from loopdyn.quantities.expressions import run_program
from loopdyn.quantities.units import Path, Resolver, Scalar
from loopdyn.quantities.wording import nearest
from loopdyn.spatial.plucker import put3


class Relation(Constraint):
    """A formula of joint coordinates and time that stays zero.

    Parameters
    ----------
    formula : str
        In the units of the model; its variables are ``t``, the names of `coordinates`, and parameters.
    coordinates : mapping
        Names used in the formula, and the joint coordinates they stand for: ``{"a": "A", "s": "B.slide"}``.

    Notes
    -----
    The row counts as a length (in the model's unit of length) if any coordinate is one, else as an angle. The load on
    a coordinate is the multiplier times the derivative of the formula by it. Where all these derivatives vanish the
    row loses rank.

    Examples
    --------
    A non-circular gear:

    >>> Relation(formula="b + a - 0.2*sin(a)", coordinates={"a": "A", "b": "B"}).joints()
    ('A', 'B')
    """

    label: ClassVar[str] = "relation"

    type: Literal["relation"] = "relation"
    formula: Scalar
    coordinates: dict[str, str]

    def joints(self) -> tuple[str, ...]:
        """Joints of the coordinates."""
        return tuple(dict.fromkeys(label.partition(".")[0] for label in self.coordinates.values()))

    def reads(self) -> tuple[str, ...]:
        """Coordinates that the formula names."""
        return tuple(self.coordinates.values())

    def resolve(self, r: Resolver, places: Places, element: str, path: Path) -> LinearRecord | None:
        """Freedoms of the coordinates; the formula as their program."""
        return _record(RELATION, self.formula, self.coordinates, {}, r, places, element, path)


class VelocityRelation(Constraint):
    """A formula of joint speeds, joint coordinates and time that stays zero: a condition on velocities only.

    Parameters
    ----------
    formula : str
        In the units of the model; its variables are ``t``, the names of `speeds` and `coordinates`, and parameters.
    speeds, coordinates : mapping
        Names used in the formula, and the joint speeds and coordinates they stand for.

    Notes
    -----
    It need not be linear in the speeds. The row counts as a length per second if any of the speeds is one, else as an
    angle per second. The load on a speed is the multiplier times the derivative of the formula by it. Where all these
    derivatives vanish (a formula quadratic in the speeds, at rest) the row loses rank.

    Examples
    --------
    A skate on a plane that does not slip sideways:

    >>> skate = VelocityRelation(
    ...     formula="vy*cos(angle) - vx*sin(angle)",
    ...     speeds={"vx": "P.x", "vy": "P.y"}, coordinates={"angle": "P.angle"})
    >>> skate.joints()
    ('P',)
    """

    label: ClassVar[str] = "velocity_relation"

    type: Literal["velocity_relation"] = "velocity_relation"
    formula: Scalar
    speeds: dict[str, str]
    coordinates: dict[str, str] = Field(default_factory=dict)

    def joints(self) -> tuple[str, ...]:
        """Joints of the speeds and coordinates."""
        labels = (*self.speeds.values(), *self.coordinates.values())
        return tuple(dict.fromkeys(label.partition(".")[0] for label in labels))

    def reads(self) -> tuple[str, ...]:
        """Coordinates that the formula names."""
        return tuple(self.coordinates.values())

    def resolve(self, r: Resolver, places: Places, element: str, path: Path) -> LinearRecord | None:
        """Freedoms of the speeds and coordinates; the formula as their program."""
        return _record(VELOCITY_RELATION, self.formula, self.coordinates, self.speeds, r, places, element, path)


def _record(
    kind: int,
    formula: float | str,
    coordinates: Mapping[str, str],
    speeds: Mapping[str, str],
    r: Resolver,
    places: Places,
    element: str,
    path: Path,
) -> LinearRecord | None:
    """One entry per freedom, whether its coordinate, its speed or both are named."""
    key = "coordinates" if kind == RELATION else "speeds"
    moving = coordinates if kind == RELATION else speeds
    if not moving:
        r.problem(element, f"names no {key}", f"Give '{key}' as a mapping of names to joint {key}.", (*path, key))
        return None
    if not isinstance(formula, str):
        r.problem(element, "'formula' is a number", "Write a formula of the names given.", (*path, "formula"))
        return None
    for group, given in (("coordinates", coordinates), ("speeds", speeds)):
        if "t" in given:
            r.problem(element, "'t' is time", "Use another name.", (*path, group, "t"))
            return None
    for name in coordinates.keys() & speeds.keys():
        r.problem(element, f"'{name}' names a coordinate and a speed", "Use two names.", (*path, "speeds", name))
        return None
    entries: dict[str, Freedom] = {}
    variables: dict[str, tuple[int, str]] = {}  # name: index of the variable, dimension
    for group, given in (("coordinates", coordinates), ("speeds", speeds)):
        for name, label in given.items():
            where = (*path, group, name)
            f = entries.get(label) or places.freedom(label, element, where)
            if f is None:
                return None
            if group == "coordinates" and f.dimension == "":
                hint = "Use a joint with scalar coordinates, or a UserConstraint."
                r.problem(element, f"'{label}' has no single coordinate", hint, where)
                return None
            entries.setdefault(label, f)
            number = 1 + 2 * list(entries).index(label)
            if group == "speeds":
                variables[name] = number + 1, "angular_speed" if f.rotation else "speed"
            else:
                variables[name] = number, f.dimension
    read = r.expression(formula, element, (*path, "formula"))
    if read is None:
        return None
    unused = [name for name in variables if name not in read.names]
    unknown = sorted(read.names - {"t", *variables, *r.parameters})
    for name in unused:
        r.problem(element, f"the formula does not use '{name}'", "Remove it, or use it.", (*path, "formula"))
    for name in unknown:
        hint = nearest(name, ["t", *variables, *r.parameters])
        r.problem(element, f"the formula uses '{name}', which has no meaning", hint, (*path, "formula"))
    if unused or unknown:
        return None
    dimension = "angle" if all(entries[label].rotation for label in moving.values()) else "length"
    # variables that the formula does not name are there all the same, under names that no formula can use
    names = ["t", *(f"{what} {label}" for label in entries for what in ("coordinate", "speed"))]
    dimensions = ["number"] * len(names)
    for name, (number, unit) in variables.items():
        names[number], dimensions[number] = name, unit
    program = law_program(formula, dict(zip(names, dimensions, strict=True)), dimension, r, element, (*path, "formula"))
    return LinearRecord(list(entries.values()), [0.0] * len(entries), program, dimension, kind)


@inline
def put_motion(jets, j, x, dx, ddx):
    """Variables of entry j along the motion: its coordinate and its speed, with their derivatives."""
    put3(jets, 1 + 2 * j, 0, (x, dx, ddx))
    put3(jets, 2 + 2 * j, 0, (dx, ddx, 0.0 * ddx))


@inline
def terms(model, work, program, first, count, of_velocities):
    """phi, velocity residual, gamma and explicit rate of a relation whose entries were put by `put_motion`.

    Leaves the factors in `work.factor`.
    """
    jets = work.jets
    begin, end = model.program[program], model.program[program + 1]
    jets[0, 0], jets[0, 1], jets[0, 2] = work.t[0], 1.0, 0.0
    f, f1, f2 = run_program(model.code, begin, end, model.constants, jets, work.stack)
    for k in range(1 + 2 * count):
        jets[k, 1] = 0.0
        jets[k, 2] = 0.0
    speed = 1 if of_velocities else 0
    carried = 0.0 * f  # part of psi that the factors account for
    for j in range(count):
        k = 1 + 2 * j + speed
        jets[k, 1] = 1.0
        work.factor[first + j] = run_program(model.code, begin, end, model.constants, jets, work.stack)[1]
        jets[k, 1] = 0.0
        carried += work.factor[first + j] * jets[2 + 2 * j, 0]
    if of_velocities:
        return 0.0 * f, f, -f1, f - carried
    return f, f1, -f2, f1 - carried
