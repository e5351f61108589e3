"""Measures in laws of forces: parts of their programs, and the terms that kernels compute for them.

A measure that a law names becomes a part of the program of the law. What it reads of the mechanism are motions of
points and of joint coordinates, the terms of :mod:`loopdyn.forces.measured`; distances, angles and sizes of velocities
are arithmetic of them. A law may depend on positions, speeds and time, not on what follows from it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from loopdyn.errors import ExpressionError, Path
from loopdyn.forces.base import Table
from loopdyn.forces.loading import LAW_VARIABLES
from loopdyn.forces.measured import TERM_VARIABLES
from loopdyn.joints.base import COMPONENTS
from loopdyn.quantities.dimensions import unit_factor
from loopdyn.quantities.expressions import FormulaPart, Term, parse, parsed, variable
from loopdyn.quantities.units import Resolver, Units
from loopdyn.system.cut_angles import AnglePath
from loopdyn.system.directions import PLANES, angle_path, direction_path
from loopdyn.system.measures import LEVELS, LOAD, SPEED, MeasureCompiler, Quantity

if TYPE_CHECKING:
    from loopdyn.model.mechanism import Mechanism
    from loopdyn.system.labels import JointLabels
    from loopdyn.system.placement import Placement
    from loopdyn.system.system import JointData

Array = NDArray[np.float64]

LOADS = (*COMPONENTS, "load", "power")  # last parts of labels that are loads
# Functions of points as formulas of their positions x, y, z and velocities u, v, w: P, Q, R are numbered 0, 1, 2.
SIZE = "sqrt(({})**2 + ({})**2 + ({})**2)"
FORMULAS = {
    **{axis: axis + "0" for axis in "xyz"},
    **{"v" + axis: name + "0" for axis, name in zip("xyz", "uvw", strict=True)},
    "distance": SIZE.format("x1 - x0", "y1 - y0", "z1 - z0"),
    "speed": SIZE.format("u0", "v0", "w0"),
    "angle": "atan2(" + SIZE.format("ay*bz - az*by", "az*bx - ax*bz", "ax*by - ay*bx") + ", ax*bx + ay*by + az*bz)",
}


@dataclass(frozen=True)
class NamesOfMeasures:
    """Names that formulas of measures may have, while the system is being built."""

    mechanism: Mechanism
    units: Units
    labels: JointLabels
    bodies: Sequence[str]
    joints: Mapping[str, JointData]
    forces: Sequence[str] = ()
    constraint_rows: Sequence[str] = ()


class LawTerms:
    """Terms and parts of programs of the measures that laws name, in the order in which they are asked for.

    Attributes
    ----------
    labels : list of str
        Names of the terms.
    ints, points : list
        Rows of the tables `term` and `term_point` of :mod:`loopdyn.engine.records`.
    """

    def __init__(self, m: Mechanism, r: Resolver, placement: Placement):
        self.m, self.r, self.placement = m, r, placement
        self.labels: list[str] = []
        self.ints: list[list[int]] = []
        self.points: list[Array] = []
        self._parts: dict[str, FormulaPart | None] = {}

    @cached_property
    def _compiler(self) -> MeasureCompiler:
        p = self.placement
        known = NamesOfMeasures(self.m, self.m.units, p.labels, p.order, p.joints)
        return MeasureCompiler(known)  # type: ignore[arg-type]  # it asks for nothing else

    def part(self, name: str, element: str, path: Path) -> FormulaPart | None:
        """Program of a measure as a part of others; None, with the problem recorded, if no law can read it."""
        if name not in self._parts:
            self._parts[name] = None  # while it is being made
            try:
                self._parts[name] = self._made(name, element, path)
            except ExpressionError as error:
                self.r.problem(element, f"cannot read the measure '{name}': {error}", path=path)
        return self._parts[name]

    def _made(self, name: str, element: str, path: Path) -> FormulaPart | None:
        where = ("measures", name)
        formula = parse(self.m.measures[name].formula, with_terms=True)
        level = next((LOAD for n in formula.names if n.rpartition(".")[2] in LOADS and "." in n), -1)
        for other in sorted(formula.names & self.m.measures.keys()):
            if other in self._parts and self._parts[other] is None and other not in self._compiler.done:
                self.r.problem(f"measure '{name}'", f"'{other}' refers to it", "Write one without the other.", where)
                return None
            if self.part(other, element, path) is None:
                return None
        compiled = self._compiler.compile(name, formula, where) if level < 0 else None
        if compiled is None and level < 0:
            self.r.problems.extend(self._compiler.problems)
            return None
        level = level if compiled is None else compiled.level
        if compiled is None or level > SPEED:
            hint = "Laws may depend on positions, angles, distances and speeds."
            self.r.problem(element, f"the measure '{name}' depends on {LEVELS[level]}", hint, path)
            return None
        self._compiler.done[name] = compiled
        constants = {n: x for n, x in self.r.parameters.items() if n in formula.names}
        return formula.part({q: self._meaning(quantity) for q, quantity in _named(compiled.quantities)}, constants)

    def _meaning(self, quantity: Quantity) -> FormulaPart:
        """A quantity in the units of the model as a part of a program."""
        if quantity.kind == "time":
            return variable(0)
        if quantity.kind == "measure":
            part = self._parts[quantity.name]
            assert part is not None
            return part
        factor = unit_factor(quantity.dimension, self.m.units)
        if quantity.term is not None:
            return self._of_points(quantity.term, factor)
        return variable(self._freedom(quantity) + (quantity.kind == "speed"), 1.0 / factor)

    def _freedom(self, quantity: Quantity) -> int:
        """First variable of a joint coordinate."""
        label = quantity.name
        f = self.placement.freedom(label, "", ()) if label in self.placement.labels.speeds else None
        if f is None or (quantity.kind == "coordinate" and f.dimension == ""):
            raise ExpressionError(f"'{label}' is a coordinate without a speed of its own. Use coordinates of points")
        return self._variables(f"joint {label}", [-1, f.cut, f.index, f.coordinate], np.zeros(3))

    def _of_points(self, term: Term, factor: float) -> FormulaPart:
        names = [self._point(name) for name in term.points]
        if term.function == "angle" and (len(names) == 2 or term.about):
            return self._rotation(term, names, factor)
        meanings: dict[str, FormulaPart] = {}
        for n, first in enumerate(names):
            meanings |= {f"{x}{n}": variable(first + k) for k, x in enumerate("xyzuvw")}
        text = FORMULAS[term.function]
        if term.function == "angle":  # of the directions a and b from Q
            for name, n in (("a", 0), ("b", 2)):
                meanings |= {f"{name}{x}": parse(f"{x}{n} - {x}1").part(meanings) for x in "xyz"}
        if term.body:
            origin, tip = self._frame(term.body, "xyz".index(term.function))
            meanings |= {f"o{x}": variable(origin + k) for k, x in enumerate("xyz")}
            meanings |= {f"e{x}": variable(tip + k) for k, x in enumerate("xyz")}
            text = " + ".join(f"({x}0 - o{x})*(e{x} - o{x})" for x in "xyz")
        return parse(f"({text})*unit").part(meanings, {"unit": 1.0 / factor})

    def _rotation(self, term: Term, points: Sequence[int], factor: float) -> FormulaPart:
        """Direction from one point to another, or rotation between two, with the full turns of the tree angles."""
        path = self._turns_of(term)
        if path is None:
            a, b = term.points[0], term.points[-1]
            hint = f"write atan2(y({b}) - y({a}), x({b}) - x({a})), which stays within half a turn"
            hint = hint if len(points) == 2 else f"write angle({', '.join(term.points)}), from 0 to half a turn"
            what = f"the full turns of '{term}' do not follow from joint coordinates, so that it would jump by one"
            raise ExpressionError(f"{what}. Use points of one body, or {hint}")
        i, j = PLANES[term.about or "z"]
        ends = ((0, 1),) if len(points) == 2 else ((1, 0), (1, 2))
        of = {f"{x}{n}": variable(points[n] + k) for n in range(len(points)) for x, k in (("x", i), ("y", j))}
        for name, (p, q) in zip("ab", ends, strict=False):
            of |= {f"{name}{x}": parse(f"{x}{q} - {x}{p}").part(of) for x in "xy"}
        of["raw"] = parse("atan2(ay, ax)" if len(ends) == 1 else "atan2(ax*by - ay*bx, ax*bx + ay*by)").part(of)
        near = [f"({sign})*q{n}" for n, (_, sign) in enumerate(path.steps)]
        labels = self.placement.q_labels
        for n, (k, _) in enumerate(path.steps):
            ints = [-1, -1, self.placement.labels.speeds[labels[k]].place, k]
            of[f"q{n}"] = variable(self._variables(f"joint {labels[k]}", ints, np.zeros(3)))
        numbers = {"offset": path.offset + np.pi, "turn": 2.0 * np.pi, "unit": 1.0 / factor}
        of["near"] = parse(" + ".join(["offset", *near])).part(of, numbers)
        return parse("(near - mod(near - raw, turn))*unit").part(of, numbers)

    def _turns_of(self, term: Term) -> AnglePath | None:
        """Path of tree angles from which the turns of a direction or rotation follow."""
        p = self.placement
        q = p.reference_coordinates()
        held = [(p.rows[str(self.m.points[name].on)], self.r.points[name]) for name in term.points]
        pairs = [(held[0], held[1])] if len(held) == 2 else [(held[1], held[0]), (held[1], held[2])]
        about = term.about or "z"
        found = [direction_path(p.tree, p.body_data, p.joints, p.poses, p.n_bases, q, x, about) for x in pairs]
        return angle_path(found, q)

    def _point(self, name: str) -> int:
        """First variable of a named point."""
        row = self.placement.rows[str(self.m.points[name].on)]
        return self._variables(f"point {name}", [row, -1, -1, -1], self.placement.point(row, self.r.points[name]))

    def _frame(self, body: str, axis: int) -> tuple[int, int]:
        """First variables of the origin of a body, and of the point at one metre along an axis of its own."""
        row = self.placement.rows[body]
        x, R = self.placement.poses[row]
        places = {f"origin of {body}": x, f"{'xyz'[axis]} of {body}": x + R[:, axis]}
        ints = [row, -1, -1, -1]
        origin, tip = (self._variables(label, ints, self.placement.point(row, p)) for label, p in places.items())
        return origin, tip

    def _variables(self, label: str, ints: list[int], point: Array) -> int:
        if label not in self.labels:
            self.labels.append(label)
            self.ints.append(ints)
            self.points.append(point)
        return LAW_VARIABLES + TERM_VARIABLES * self.labels.index(label)


def _named(quantities: Sequence[Quantity]) -> Iterator[tuple[str, Quantity]]:
    """Quantities by their names in a formula."""
    for quantity in quantities:
        rate = quantity.kind == "speed"
        yield f"{quantity.name}.speed" if rate else quantity.name, quantity


def names_read(m: Mechanism) -> set[str]:
    """Names in the formulas of all measures that laws of forces name: labels, parameters, ``point P`` of points."""
    found: set[str] = set()
    left = {name for force in m.forces.values() for name in _names(list(vars(force).values()))} & m.measures.keys()
    done: set[str] = set()
    while left:
        name = left.pop()
        done.add(name)
        try:
            formula = parse(m.measures[name].formula, with_terms=True)
        except ExpressionError:  # reported where measures are compiled
            continue
        found |= formula.names - formula.terms.keys()
        found |= {f"point {p}" for term in formula.terms.values() for p in term.points}
        left |= formula.names & m.measures.keys() - done
    return found


def _names(part: Any) -> set[str]:
    """Names in the formulas of the fields of a force."""
    if isinstance(part, Table):
        return {part.of}
    if isinstance(part, list | tuple):
        return {name for one in part for name in _names(one)}
    if not isinstance(part, str):
        return set()
    try:
        return set(parsed(part).names)
    except ExpressionError:
        return set()
