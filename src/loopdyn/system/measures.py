"""Measures of a system: their terms, units and programs; all problems of their formulas.

A formula becomes a program of its terms, which is run in the units of the model, so that numbers and parameters in it
mean what they mean in the rest of the model. What a term depends on is its level: positions, speeds, accelerations or
loads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from loopdyn.engine import records as rec
from loopdyn.errors import ExpressionError, ModelError, Problem
from loopdyn.joints.base import COMPONENTS
from loopdyn.quantities.dimensions import NUMBER, TIME, Dimension, dimension, dimension_of, unit_factor, unit_symbol
from loopdyn.quantities.expressions import TERMS, Expression, Program, Term, in_order, parse
from loopdyn.quantities.expressions import opcodes as OP
from loopdyn.quantities.expressions.reading import Token, refusal, suggestion
from loopdyn.quantities.wording import element_of
from loopdyn.system.labels import JointLabel

if TYPE_CHECKING:
    from loopdyn.system.system import System

POSITION, SPEED, ACCELERATION, LOAD = range(4)
LEVELS = ("positions", "speeds", "accelerations", "loads")
LENGTH, FORCE, TORQUE = dimension(length=1), dimension(force=1), dimension(torque=1)
POWER = dimension(force=1, length=1, time=-1)  # as a force times a speed in the units of the model
BASIC = {"length": LENGTH, "angle": dimension(angle=1), "number": NUMBER}


@dataclass(frozen=True)
class Quantity:
    """A term of a formula: what it is, its dimension and its level.

    `kind` is "time", "measure", "points" (of `term`), "coordinate", "speed", "acceleration" (of `label`), "reaction"
    (of joint `name`, component `index`), "row" (load of a constraint or driver), "load" or "power" (of a force).
    """

    kind: str
    name: str
    dimension: Dimension
    level: int
    term: Term | None = None
    label: JointLabel | None = None
    index: int = 0


@dataclass(frozen=True)
class CompiledMeasure:
    """A measure of a system.

    Attributes
    ----------
    name : str
    formula : str
    unit : str
        Unit of its values, e.g. "mm/s".
    factor : float
        SI value of one unit.
    level : int
        0: depends on positions and time, 1: on speeds, 2: on accelerations, 3: on loads.
    quantities : tuple of Quantity
        Variables of `program`, in the units of the model.
    program : Program
    """

    name: str
    formula: str
    dimension: Dimension
    unit: str
    factor: float
    level: int
    quantities: tuple[Quantity, ...]
    program: Program


def measures_of(system: System) -> dict[str, CompiledMeasure]:
    """All measures of a system, in their order; raises ModelError with all problems."""
    found = MeasureCompiler(system)
    compiled = found.all()
    if found.problems:
        raise ModelError(system.mechanism.locate(found.problems))
    return compiled


def compiled_formula(system: System, text: str, element: str) -> CompiledMeasure:
    """A formula of the same terms that is no measure of the model, e.g. of an event."""
    compiler = MeasureCompiler(system)
    compiler.done = dict(system.measures)
    made = compiler.compile(element, text, ())
    if made is None:
        raise ModelError(Problem(element, p.message, p.hint) for p in compiler.problems)
    return made


def compiled_label(system: System, label: str) -> CompiledMeasure | None:
    """A label of the system as a measure; None if it is none of a number. Formulas cannot name all labels."""
    compiler = MeasureCompiler(system)
    quantity = compiler._of_joint(label) or compiler._of_load(label)
    if quantity is None:
        return None
    units, of = system.units, quantity.dimension
    program = parse("x").program(["x"])
    return CompiledMeasure(
        label, label, of, unit_symbol(of, units), unit_factor(of, units), quantity.level, (quantity,), program
    )


class MeasureCompiler:
    """Compiles the measures of one system and collects their problems."""

    def __init__(self, system: System):
        self.system, self.m, self.units = system, system.mechanism, system.units
        self.problems: list[Problem] = []
        self.done: dict[str, CompiledMeasure] = {}

    @cached_property
    def parameters(self) -> Mapping[str, float]:
        """Values of the parameters."""
        return self.m.resolver().parameters

    def all(self) -> dict[str, CompiledMeasure]:
        """All measures that are right, in their order."""
        formulas = {}
        for name, measure in self.m.measures.items():
            path = ("measures", name)
            taken = self._taken(name)
            if taken:
                self._problem(name, f"there is {taken} of this name", "Choose another name.")
            try:
                formulas[name] = parse(measure.formula, with_terms=True)
            except ExpressionError as error:
                self.problems.append(Problem(f"measure '{name}'", str(error), path=path))
        order, cycles = in_order({n: sorted(f.names & formulas.keys()) for n, f in formulas.items()})
        for cycle in cycles:
            what = f"refers to itself: {' -> '.join([*cycle, cycle[0]])}"
            self._problem(cycle[0], what, "Write one of them without the others.")
        for name in order:
            if formulas[name].names & self.m.measures.keys() <= self.done.keys():  # else reported
                made = self.compile(name, formulas[name], ("measures", name))
                if made is not None:
                    self.done[name] = made
        return {name: self.done[name] for name in self.m.measures if name in self.done}

    def _taken(self, name: str) -> str:
        sections = {"bodies": "a body", "joints": "a joint", "forces": "a force", "user_forces": "a force"}
        sections |= {"constraints": "a constraint", "user_constraints": "a constraint", "drivers": "a driver"}
        sections |= {"contacts": "a contact"}
        sections |= {"parameters": "a parameter"}
        found = [words for section, words in sections.items() if name in getattr(self.m, section)]
        return "a variable" if name == "t" else found[0] if found else ""

    def _problem(self, name: str, message: str, hint: str) -> None:
        self.problems.append(Problem(f"measure '{name}'", message, hint, path=("measures", name)))

    def compile(self, name: str, given: str | Expression, path: tuple[str, ...]) -> CompiledMeasure | None:
        """Compile one formula; None, with the problem recorded, if it is wrong."""
        try:
            formula = parse(given, with_terms=True) if isinstance(given, str) else given
            quantities: dict[str, Quantity] = {}
            for token in formula.tokens:
                text = str(token.value)
                if token.op == OP.VARIABLE and text not in quantities:
                    found = self._quantity(formula, token)
                    if found is not None:
                        quantities[text] = found
            of = dimension_of(formula, {n: x.dimension for n, x in quantities.items()}, self.units)
            constants = {n: x for n, x in self.parameters.items() if n in formula.names}
            program = formula.program(list(quantities), constants)
        except ExpressionError as error:
            element = f"measure '{name}'" if path else name
            self.problems.append(Problem(element, str(error), path=path))
            return None
        level = max((x.level for x in quantities.values()), default=POSITION)
        unit, factor = unit_symbol(of, self.units), unit_factor(of, self.units)
        return CompiledMeasure(name, formula.text, of, unit, factor, level, tuple(quantities.values()), program)

    # -------------------------------------------------------------------------------------------- names

    def _quantity(self, formula: Expression, token: Token) -> Quantity | None:
        """Meaning of a name in a formula; None for a parameter."""
        name = str(token.value)
        if name in formula.terms:
            return self._of_points(formula, token, formula.terms[name])
        look: tuple[Callable[[str], Quantity | None], ...] = (self._of_time, self._of_joint, self._of_load)
        found = next((x for of in look if (x := of(name)) is not None), None)
        if found is not None and name in self.parameters:
            what = f"'{name}' is both a parameter and a joint coordinate"
            raise refusal(formula.text, token.column, what, "Rename the parameter")
        if found is None and name not in self.parameters:
            raise self._unknown(formula, token)
        return found

    def _of_time(self, name: str) -> Quantity | None:
        if name == "t":
            return Quantity("time", name, TIME, POSITION)
        measure = self.done.get(name)
        return None if measure is None else Quantity("measure", name, measure.dimension, measure.level)

    def _of_joint(self, name: str) -> Quantity | None:
        labels = self.system.labels
        if name in labels.coordinates:
            label = labels.coordinates[name]
            return Quantity("coordinate", name, BASIC[label.dimension], POSITION, label=label)
        base, _, last = name.rpartition(".")
        order = {"speed": 1, "acceleration": 2}.get(last)
        if order is None or base not in labels.speeds:
            return None
        label = labels.speeds[base]
        basic = {"time": -order, label.dimension: 1}
        return Quantity(last, base, dimension(**basic), order, label=label)

    def _of_load(self, name: str) -> Quantity | None:
        base, _, last = name.rpartition(".")
        if last in COMPONENTS and base in self.m.joints:
            k = COMPONENTS.index(last)
            return Quantity("reaction", base, TORQUE if k < 3 else FORCE, LOAD, index=k)
        if last not in ("load", "power"):
            return None
        if base in self.system.forces:
            k = self.system.forces.index(base)
            torque = bool(self.system.model.force[k, rec.FORCE_TORQUE])
            load = TORQUE if torque else FORCE
            return Quantity(last, base, load if last == "load" else POWER, LOAD, index=k)
        rows = self.system.constraint_rows
        if last == "load" and base in rows and element_of(base) not in self.m.joints:
            turns = self.system.row_dimensions[rows.index(base)] == "angle"
            return Quantity("row", base, TORQUE if turns else FORCE, LOAD)
        return None

    def _of_points(self, formula: Expression, token: Token, term: Term) -> Quantity:
        for name in term.points:
            point = self.m.points.get(name)
            if point is None:
                hint = suggestion(name, self.m.points, "points")
                raise refusal(formula.text, token.column, f"there is no point '{name}'", hint)
            if point.on is None:
                hint = f"Write 'on: BODY' next to '{name}' in points, 'on: ground' if it is fixed"
                raise refusal(formula.text, token.column, f"point '{name}' is on no body", hint)
        if term.body and term.body not in self.system.bodies:
            hint = suggestion(term.body, self.system.bodies, "bodies")
            raise refusal(formula.text, token.column, f"there is no body '{term.body}'", hint)
        f = TERMS[term.function]
        of = dimension(angle=1) if f.angle else dimension(length=1, time=-f.rate)
        return Quantity("points", str(token.value), of, f.rate, term=term)

    def _unknown(self, formula: Expression, token: Token) -> ExpressionError:
        name = str(token.value)
        if name in self.m.points:
            hint = f"Write e.g. x({name}) or distance({name}, ...)"
            return refusal(formula.text, token.column, f"'{name}' is a point and no number", hint)
        joint = element_of(name)
        if joint in self.system.joints and joint != name:
            q, v = self.system.joints[joint].spec.labels(joint)
            known = [*q, *(f"{x}.{last}" for x in v for last in ("speed", "acceleration"))]
            known += [f"{joint}.{c}" for c in COMPONENTS]
        else:
            known = [*self.parameters, *self.system.labels.coordinates, *self.m.measures, "t"]
            known += [f"{force}.{last}" for force in self.system.forces for last in ("load", "power")]
        hint = suggestion(name, known, "names")
        return refusal(formula.text, token.column, f"unknown name '{name}'", hint)
