"""Base of all forces: contract, records in the frozen arrays, and laws (numbers, formulas, tables, profiles).

A force type is one file, named after the type. It holds

* the code of the type, a number that no other type has, and names for its floats in the frozen arrays,
* a subclass of :class:`Force` with the user's data,
* kernels, by what it acts on: `pull` along a line (:mod:`loopdyn.forces.line`), `load` on a freedom
  (:mod:`loopdyn.forces.freedom`), else `act`, which puts the loads where they belong and returns their size,
* `energy`, if it stores any.

:mod:`loopdyn.forces.dispatch` lists the types and chooses among them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator, Discriminator, Field, Tag

from loopdyn.engine import records as rec
from loopdyn.errors import ExpressionError
from loopdyn.quantities.expressions import (
    FormulaPart,
    Interpolation,
    Outside,
    Program,
    constant_program,
    parse,
    table_program,
)
from loopdyn.quantities.profiles import AnyProfile, Profile
from loopdyn.quantities.units import Path, Resolver, Scalar, Spec, Vec2
from loopdyn.quantities.wording import element_of

Array = NDArray[np.float64]
Scales = tuple[float, float]
Preloaded = Literal["length", "rest", "torque", "force"]  # a free length, or a law that becomes a constant


@dataclass(frozen=True)
class Freedom:
    """One freedom of a joint: in the tree (v index `speed`, q index or -1) or in the list of cut joints."""

    cut: int  # index of the cut joint, -1 for a tree joint
    index: int  # v index of a tree joint; number of the freedom within a cut joint
    coordinate: int  # q index of a tree joint, -1 if it has no scalar coordinate
    dimension: str  # "angle", "length" or "" (no scalar coordinate)
    rotation: bool  # load is a torque


@dataclass
class Record:
    """Data of one force for the kernels: indices of what it acts on, and its numbers."""

    bodies: tuple[int, int] = (-1, -1)  # rows of the bodies
    freedom: Freedom | None = None
    floats: list[float] = field(default_factory=list)
    programs: list[Program] = field(default_factory=list)
    torque: bool = False  # whether its load is a torque
    own: int = 0  # an integer with a meaning defined by the type

    def packed(self, force: Force, first_program: int) -> list[int]:
        """Row of integers of the force, whose programs are numbered from `first_program` on."""
        f = self.freedom or Freedom(-1, -1, -1, "", False)
        ints = [0] * rec.N_FORCE_INTS
        ints[rec.FORCE_CODE], ints[rec.FORCE_ON] = force.code, force.acts_on
        ints[rec.FORCE_BODY1], ints[rec.FORCE_BODY2] = self.bodies
        ints[rec.FORCE_CUT], ints[rec.FORCE_FREEDOM], ints[rec.FORCE_COORDINATE] = f.cut, f.index, f.coordinate
        ints[rec.FORCE_PROGRAM] = first_program if self.programs else -1
        ints[rec.FORCE_TORQUE], ints[rec.FORCE_OWN] = int(self.torque), self.own
        return ints


class Places(Protocol):
    """Queries of forces to the system under construction."""

    def body(self, name: str, element: str, path: Path) -> int:
        """Row of a body; -1, with the problem recorded, if there is none of this name."""

    def point(self, body: int, p: Array) -> Array:
        """World point at the reference pose, as seen from the body's reference point in its own axes."""

    def axes(self, body: int, R: Array) -> Array:
        """World axes at the reference pose (columns of R), seen in the body's own axes."""

    def freedom(self, label: str, element: str, path: Path) -> Freedom | None:
        """Freedom called `label`; None, with the problem recorded, if there is none."""

    @property
    def terms(self) -> MeasureTerms:
        """Measures, for laws of forces."""


class MeasureTerms(Protocol):
    """Queries of laws to the measures of the system under construction."""

    def part(self, name: str, element: str, path: Path) -> FormulaPart | None:
        """Program of a measure as a part of others; None, with the problem recorded, if no law can read it."""


@dataclass(frozen=True)
class Sum:
    """A sum of joint coordinates times factors, in SI units: a length if any coordinate is one, else an angle."""

    freedoms: list[Freedom]
    factors: list[float]
    dimension: str


def sum_of_terms(
    terms: Mapping[str, Scalar], r: Resolver, places: Places, element: str, path: Path, most: int | None = None
) -> Sum | None:
    """The sum of factors by coordinate; None, with the problem recorded, if they are not one to `most` coordinates."""
    if not terms or (most is not None and len(terms) > most):
        message = f"has {len(terms)} terms" if terms else "has no terms"
        number = "at least one coordinate and its factor" if most is None else f"one to {most} coordinates with factors"
        r.problem(element, message, f"Give {number}.", (*path, "terms"))
        return None
    freedoms = []
    for name in terms:
        f = places.freedom(name, element, (*path, "terms", name))
        if f is None:
            return None
        if f.dimension == "":
            message = f"'{name}' has no single coordinate"
            r.problem(element, message, "Use a joint with one.", (*path, "terms", name))
            return None
        freedoms.append(f)
    dimension = "length" if any(f.dimension == "length" for f in freedoms) else "angle"
    values = [r.scalar(factor, "number", element, (*path, "terms", name)) for name, factor in terms.items()]
    unit = r.units.factor(dimension)
    factors = [x * unit / r.units.factor(f.dimension) for x, f in zip(values, freedoms, strict=True)]
    return Sum(freedoms, factors, dimension)


class Table(Spec):
    """A law given by points.

    Parameters
    ----------
    of : str
        Name of the variable: ``"t"``, ``"position"``, ``"speed"``, ``"length"``; in laws of forces also of a measure.
    points : list of pairs (x, y)
        In the units of the model, x ascending.
    interpolation : {"monotone", "linear", "cubic"}, optional
        Interpolation between the points. ``"monotone"`` (the default of forces and torques): monotone cubics
        (PCHIP), which never overshoot; the slope is continuous. ``"linear"``: straight lines. ``"cubic"`` (the default
        of motions): the natural cubic spline, whose curvature is continuous and which overshoots.
    outside : {"hold", "extend", "error"}, optional
        Beyond the first and the last point. ``"hold"`` (the default of forces and torques): their values hold, and a
        :class:`LoopdynWarning` says so when the table is first left. ``"extend"`` (the default of motions): the curve
        is extended along its tangents. ``"error"``: it is an error, and ends a run.

    Notes
    -----
    The speed of a motion (of a driver, a base, a length, a point) cannot jump: ``"linear"`` and ``"hold"`` are refused.

    Examples
    --------
    >>> Table(of="speed", points=[(0, 10), (100, 0)]).of
    'speed'
    """

    label: ClassVar[str] = "table"

    of: str = "t"
    points: tuple[Vec2, ...]
    interpolation: Interpolation | None = None
    outside: Outside | None = None

    def program(
        self,
        r: Resolver,
        element: str,
        path: Path,
        variable: int,
        scales: Scales,
        motion: bool,
        measure: FormulaPart | None = None,
    ) -> Program:
        """Program of the table as a function of variable number `variable`, or of a measure.

        `scales` are those of input and output.
        """
        if motion and self.interpolation == "linear":
            hint = "Use 'cubic' or 'monotone', or a profile: motion: {profile: trapezoid, ...}."
            r.problem(element, "along straight lines the speed of a motion would jump", hint, (*path, "interpolation"))
        if motion and self.outside == "hold":
            hint = "Use 'extend', or a profile, which ends at rest: motion: {profile: spline, points: ...}."
            r.problem(
                element, "a motion that is held at the end of its table would stop at once", hint, (*path, "outside")
            )
        points = np.array([r.vector(p, "number", element, (*path, "points", n)) for n, p in enumerate(self.points)])
        x, y = points.reshape(-1, 2).T
        program = table_program(
            x,
            y,
            variable,
            interpolation=self.interpolation or ("cubic" if motion else "monotone"),
            outside=self.outside or ("extend" if motion else "hold"),
            input_scale=scales[0],
            output_scale=scales[1],
            entry=() if measure is None else measure.instructions,
        )
        assert program.table is not None
        r.tables.append((element, self.of, program.table))
        return program


def _law(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    return value


def _form(value: Any) -> str:
    """Form of a law: name of its profile, a table, or a number or formula."""
    if isinstance(value, Profile):
        return value.profile
    if isinstance(value, Mapping) and "profile" in value:
        return str(value["profile"])
    return "table" if isinstance(value, Mapping | Table) else "number"


Law = Annotated[
    Annotated[Table, Tag("table")] | AnyProfile | Annotated[Scalar, Tag("number")],
    Discriminator(_form),
    BeforeValidator(_law),
]


def law_program(
    law: Table | Profile | float | str,
    variables: dict[str, str],
    dimension: str,
    r: Resolver,
    element: str,
    path: Path,
    *,
    motion: bool = False,
    terms: MeasureTerms | None = None,
) -> Program:
    """Program of a law of the named variables (name: dimension), result in SI.

    Formulas and tables are written in the units of the model; scaling at both ends of the program makes
    SI of it. A law that is a `motion` must have a speed, and is differentiated twice: its tables are smoother than
    those of forces. With `terms` formulas may name measures.
    """
    names = list(variables)
    scales = [1.0 / r.units.factor(d) for d in variables.values()]
    output = r.units.factor(dimension)
    try:
        if isinstance(law, Profile):
            if "t" not in variables:
                r.problem(element, "a profile is a law of time, which is not possible here", "Give a number.", path)
                return constant_program(0.0)
            curve = law.resolve(r, element, path, names.index("t"), output)
            return constant_program(0.0) if curve is None else curve.program
        if isinstance(law, Table) and law.of in r.measures and law.of not in variables:
            of = _parts_of_measures([law.of], names, r, element, path, terms)
            if of is None:
                return constant_program(0.0)
            if of[law.of].fault:
                raise ExpressionError(of[law.of].fault)
            return law.program(r, element, path, -1, (1.0, output), motion, of[law.of])
        if isinstance(law, Table):
            if law.of not in variables:
                known = ", ".join(names)
                r.problem(element, f"a table of '{law.of}' is not possible here", f"Use one of: {known}.", path)
                return constant_program(0.0)
            k = names.index(law.of)
            return law.program(r, element, path, k, (scales[k], output), motion)
        if not isinstance(law, str):
            return constant_program(law * output)
        formula = r.expression(law, element, path)
        if formula is None:
            return constant_program(0.0)
        for kind, other in (("parameter", r.parameters), ("measure", r.measures)):
            for name in sorted(formula.names & set(names) & set(other)):
                message = f"'{name}' is both a {kind} and a variable of this formula"
                r.problem(element, message, f"Rename the {kind}.", path)
        parts: Mapping[str, FormulaPart] | None = {}
        read = sorted(formula.names & r.measures - {*names, *r.parameters})
        if read:
            parts = _parts_of_measures(read, names, r, element, path, terms)
        if parts is None:
            return constant_program(0.0)
        constants = {k: v for k, v in r.parameters.items() if k not in variables}
        return formula.program(names, constants, input_scale=scales, output_scale=output, parts=parts)
    except ExpressionError as error:
        r.problem(element, str(error), path=path)
        return constant_program(0.0)


def _parts_of_measures(
    read: Sequence[str], variables: Sequence[str], r: Resolver, element: str, path: Path, terms: MeasureTerms | None
) -> Mapping[str, FormulaPart] | None:
    """Parts of a program for the measures that a law reads; None, with the problem recorded, if it cannot."""
    if terms is None:
        hint = f"A formula here knows {', '.join(variables)} and parameters. Laws of forces may name measures."
        r.problem(element, f"the measure '{read[0]}' cannot be used in it", hint, path)
        return None
    found = {name: terms.part(name, element, path) for name in read}
    parts = {name: part for name, part in found.items() if part is not None}
    return parts if len(parts) == len(read) else None


class Force(Spec):
    """Base of all force types; `name` is the name under which a mechanism lists it.

    Parameters
    ----------
    name : str, optional
        Name in results; by default that of its key in the file.
    """

    code: ClassVar[int]  # in kernels
    acts_on: ClassVar[int]  # ON_LINE, ON_FREEDOM, ON_COORDINATES, ON_BODIES of `engine.records`
    stores_energy: ClassVar[bool]  # whether it has an `energy`
    drawn_as: ClassVar[Literal["coil", "piston"] | None] = None  # between `point1` of `body1` and `point2` of `body2`

    type: str
    name: str | None = Field(default=None, exclude=True)

    def resolve(self, r: Resolver, places: Places, element: str, path: Path) -> Record | None:
        """Record for the kernels; None if a problem was recorded."""
        raise NotImplementedError

    def bodies(self) -> tuple[str, ...]:
        """Bodies between which it acts; none if it acts on joint coordinates."""
        return ()

    def joints(self) -> tuple[str, ...]:
        """Joints whose coordinates it depends on or acts on."""
        joint = getattr(self, "joint", None)
        return () if joint is None else (element_of(joint),)

    def reads(self) -> tuple[str, ...]:
        """Labels of the joint coordinates whose value, not only rate, it depends on."""
        return ()

    def preloaded(self) -> Preloaded | None:
        """Field by which `preload` sets its load; None if there is none."""
        return None

    def sticks(self) -> bool:
        """Whether it is dry friction, which holds small loads: an equilibrium then has others around it."""
        return False


def check_not_negative(r: Resolver, element: str, path: Path, **values: float) -> None:
    """Record a problem for each negative value."""
    for name, value in values.items():
        if value < 0.0:
            r.problem(element, f"'{name}' is negative", "Give zero or a positive number.", (*path, name))


def law_reads(law: Table | Profile | float | str | None, variable: str) -> bool:
    """Whether a law depends on a variable; False for a formula that cannot be read, which is reported elsewhere.

    Examples
    --------
    >>> law_reads("3 - 0.2*speed", "position"), law_reads("-2*position", "position")
    (False, True)
    """
    if isinstance(law, Table):
        return law.of == variable
    if not isinstance(law, str):
        return False
    try:
        return variable in parse(law).names
    except ExpressionError:
        return False


def freedom_dimensions(freedom: Freedom) -> dict[str, str]:
    """Variables of a law on a joint coordinate, with their dimensions."""
    if freedom.dimension == "":
        return {"t": "number", "speed": "angular_speed" if freedom.rotation else "speed"}
    position, speed = ("angle", "angular_speed") if freedom.rotation else ("length", "speed")
    return {"t": "number", "position": position, "speed": speed}
