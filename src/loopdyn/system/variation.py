"""Other numbers, same structure: a mechanism is compiled again for other values of its parameters.

Compiled once in full, a :class:`Structure` knows which parameters each part of the model refers to. For other values
it resolves only the parts that refer to a changed one, by the same functions as a full compilation, so that the numbers
are the same to the last bit; tree, labels and the array of integers are shared. Wherever something else than numbers
changes (the tree, the programs of formulas, the rows, the counted angles), or a value is wrong, it gives up, and the
mechanism is compiled in full.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from loopdyn.engine import records as rec
from loopdyn.engine.layout import opened
from loopdyn.engine.records import open_model
from loopdyn.errors import ExpressionError, ModelError, Problem
from loopdyn.joints.base import limits_of
from loopdyn.model.copies import fields_to_copy, sharing_parts
from loopdyn.model.inertia import MassProperties, Mesh
from loopdyn.model.mechanism import Mechanism, Structures
from loopdyn.model.points import resolve_points
from loopdyn.quantities.expressions import Expression, parsed
from loopdyn.quantities.units import PointName, Resolver
from loopdyn.system.builder import Builder, build, build_or_explain
from loopdyn.system.freezing import frames_of_cuts
from loopdyn.system.kept import Kept
from loopdyn.system.law_terms import names_read
from loopdyn.system.sides import all_closed, sides_of
from loopdyn.system.support import any_singular
from loopdyn.system.system import Asked, System, TableUse

Array = NDArray[np.float64]
Names = frozenset[str]

NOT_OF_PLACE = ("type", "parent", "child", "armature", "limits", "at_limit")  # fields of joints
ANYTHING = ""  # stands for what is no parameter: a file that may have changed
POINT = "point "  # before the name of a point, which no parameter has


def build_by(
    structures: Structures | None, m: Mechanism, cuts: Sequence[str] | Literal["all"] | None, free: Sequence[str]
) -> System:
    """Build a mechanism, by a structure of `structures` if it was compiled before with other parameters."""
    found = None if structures is None else _build_again(structures, m, cuts, free)
    system = found or build_or_explain(m, cuts, free)
    if m.contacts:
        all_closed(system)  # the contacts of a system are those of now, whatever is done to the mechanism later
    else:
        sides_of(system)
    return system


def _build_again(
    structures: Structures, m: Mechanism, cuts: Sequence[str] | Literal["all"] | None, free: Sequence[str]
) -> System | None:
    """Build a mechanism by a known structure; None if it is wrong, or numbers change the structure."""
    if isinstance(free, str):
        return None  # a mistake, which is explained elsewhere
    asked = Asked(cuts if cuts is None or isinstance(cuts, str) else tuple(cuts), tuple(free))
    known: Structure | None = structures.get(asked)
    if known is None or not known.describes(m):
        try:
            known = structures[asked] = Structure(m, asked)
        except ModelError:
            return None
        return known.remembered_by(replace(known.system, mechanism=m))
    return known.system_of(m)


class _Needs(NamedTuple):
    """Parameters to which the formulas of each part refer."""

    pose: Mapping[str, Names]  # by body
    mass: Mapping[str, Names]  # by body, its pose included
    joint: Mapping[str, Names]  # by joint, frames of its bodies included
    armature: Names
    limits: Names
    forces: Names
    constraints: Names
    base: Names
    start: Names
    gravity: Names


class Structure:
    """A mechanism compiled in full, for others that differ from it in the values of parameters alone.

    Parameters
    ----------
    m : Mechanism
    asked : Asked
        Cuts and free bodies, as for :func:`loopdyn.system.builder.build`.
    """

    def __init__(self, m: Mechanism, asked: Asked):
        self.m, self.asked = m.snapshot(), asked
        self.builder = Builder(self.m)
        self.system = self.builder.build(*asked)
        _ = self.system.measures  # whose formulas are checked
        self.values = self.builder.r.parameters
        self.formulas = {n: parsed(x) for n, x in self.m.parameters.items() if isinstance(x, str)}
        self.order = _evaluation_order(self.formulas)
        self.needs = _needs(self.m)
        self.fields_to_copy = fields_to_copy(self.m)
        self.singular = any_singular(self.builder.masses[self.builder.n_bases :])
        self.places = _places(self.system)

    def describes(self, m: Mechanism) -> bool:
        """Whether a mechanism differs in its parameters alone."""
        mine, other = self.m.__dict__, m.__dict__
        return all(mine[key] == other[key] for key in mine if key != "parameters")

    def system_of(self, m: Mechanism) -> System | None:
        """System of a mechanism that this structure describes; None if more than numbers changes, or one is wrong."""
        values = self._values(m.parameters)
        if values is None:
            return None
        changed = {ANYTHING}
        for name, x in values.items():
            y = self.values[name]
            if x != y or (x == 0.0 and math.copysign(1.0, x) != math.copysign(1.0, y)):
                changed.add(name)
        r, before = Resolver(values, m.units), self.builder.r.points
        r.limits = limits_of(m.joints)
        resolve_points(m.points, r)
        changed |= {POINT + name for name, p in r.points.items() if p.tobytes() != before[name].tobytes()}
        return _Again(self, m, r, changed).system()

    def remembered_by(self, system: System) -> System:
        """The system, for which this structure is kept together with its parameters."""
        parameters = dict(system.mechanism.parameters)
        system.kept.find("structure", None, lambda: (self, parameters))
        return system

    def _values(self, parameters: Mapping[str, float | str]) -> dict[str, float] | None:
        """Values of all parameters; None if one is another formula, or has no value."""
        values: dict[str, float] = {}
        for name, given in parameters.items():
            if isinstance(given, str):
                if name not in self.formulas or self.formulas[name].text != given:
                    return None
            else:
                values[name] = given + 0.0  # -0.0 is 0.0, as in `resolve_parameters`
        try:
            for name in (n for n in self.order if n not in values):
                values[name] = self.formulas[name].evaluate(values)
        except ExpressionError:
            return None
        return {name: values[name] for name in parameters}


class _Again(Builder):
    """One repetition of the work of a builder, part by part in its order, where parameters have changed."""

    def __init__(self, known: Structure, m: Mechanism, r: Resolver, changed: set[str]):
        self.__dict__.update(known.builder.__dict__)
        self.m, self.r = m, r
        self.known, self.needs, self.changed = known, known.needs, changed

    def _touched(self, names: Names) -> bool:
        return not names.isdisjoint(self.changed)

    def system(self) -> System | None:
        """System with the new numbers, or None if it has to be built in full."""
        before = self.known.builder
        try:
            self._bodies_and_joints()
            self._raise()
            if not self._same_tree():
                return None
            given = self.joints, self.poses, self.masses
            changed = self.new_joints, self.new_masses
            self.placement = before.placement.with_numbers(self.r, self.topology, *given, *changed)
            again = self._elements()
            self._raise()
        except ModelError:  # all problems are found together where it is built in full
            return None
        if self.row_list != before.row_list:
            return None
        floats = self._frozen() if again else self._filled()
        return None if floats is None else self._made(floats)

    def _bodies_and_joints(self) -> None:
        """Resolve poses, mass properties and joints that refer to changed parameters."""
        needs = self.needs
        self.poses, self.masses, self.joints = list(self.poses), list(self.masses), dict(self.joints)
        moved = {self.rows[name] for name, names in needs.pose.items() if self._touched(names)}
        for k in moved:
            self.poses[k] = self._pose(self.names[k])
        self.new_masses = [self.rows[name] for name, names in needs.mass.items() if self._touched(names)]
        for k in self.new_masses:
            self.masses[k] = self._mass(self.names[k])
        self.new_joints: set[str] = set()
        for name, names in needs.joint.items():
            joint = self.joints[name]
            if self._touched(names) or joint.parent in moved or joint.child in moved:
                found = self._joint(name, joint.spec)
                if found is not None:  # else its problem is recorded
                    self.joints[name] = found
                    self.new_joints.add(name)
        self.moved_bases = any(k < self.n_bases for k in moved)
        self.moved = bool(moved or self.new_joints)
        if self.moved or self.new_masses:
            self.suspicious = self._suspicions()

    def _same_tree(self) -> bool:
        """Whether tree and cuts are those of before: numbers decide only where bodies lack inertia, and of rotors."""
        limits = self._touched(self.needs.limits)
        if limits:
            self.limits = self._limits()
        self.rotors = self._touched(self.needs.armature)
        if self.rotors:
            self.armatures = {name: self._armature_of(joint) for name, joint in self.joints.items()}
        before = self.known.builder
        lacking = self.known.singular or any_singular(
            [self.masses[k] for k in self.new_masses if not _same_inertia(self.masses[k], before.masses[k])]
        )
        if not (limits or self.rotors or lacking):
            return True
        asked = self.known.asked
        topology = self._topology(asked.cuts, asked.free)
        return topology == before.topology and self.read == before.read

    def _elements(self) -> bool:
        """Resolve forces, constraints, base motions and start; whether the arrays must be frozen again for them."""
        needs = self.needs
        bound = bool(self.forces or self.pairs or self.linear or self.read)  # points and paths follow the placement
        again = (self.moved and bound) or any(map(self._touched, (needs.forces, needs.constraints, needs.base)))
        if again:
            self.forces = self._forces()
            self._constraints()
            self.base_programs = self._base_programs()
        self._contacts()
        if self._touched(needs.start):
            self.start = self._start()
        if self._touched(needs.limits):
            self.at_limit = self._at_limit(self.limits)
        if self._touched(needs.gravity):
            self.gravity = self._gravity()
        self.all_tables = self.tables() if again else self.known.system.tables
        return again

    def _frozen(self) -> Array | None:
        """Floats of arrays frozen in full; None if the integers are not those of before."""
        known = self.known.system
        ints, floats, counted = self.freezer().freeze(self.known.asked.counted)
        return floats if tuple(counted) == known.counted and np.array_equal(ints, known.ints) else None

    def _filled(self) -> Array:
        """Floats of before, and new ones of bodies, joints, gravity and rotors."""
        at, placement = self.known.places, self.placement
        floats = self.known.system.floats.copy()
        floats[at["body"]] = placement.body_data.ravel()
        cuts = self.known.system.topology.cuts
        if self.moved and cuts:
            joints = [placement.joints[name] for name in cuts]
            frames = frames_of_cuts(joints, placement.own)
            floats[at["cut_frames"]][: frames.size] = frames.ravel()
        if self.moved_bases:
            poses = [np.concatenate([x, R.ravel()]) for x, R in placement.poses[: self.n_bases]]
            floats[at["base_pose"]] = np.array(poses).ravel()
        floats[at["gravity"]] = self.gravity
        if self.rotors:
            floats[at["armature"]] = self.armature()
        floats.flags.writeable = False
        return floats

    def _made(self, floats: Array) -> System | None:
        known = self.known.system
        made = object.__new__(System)
        made.__dict__.update(
            known.__getstate__(),  # without what is kept with it
            mechanism=self.m,
            joints=self.placement.joints,
            limits=self.limits,
            at_limit=self.at_limit,
            start=self.start,
            warnings=self.warnings(known.counted),
            tables=self.all_tables,
            unsupported=self.unsupported,
            reference_poses=tuple(self.placement.poses),
            floats=floats,
            kept=Kept(known),
        )
        try:
            _ = self.m.measures and made.measures  # a parameter may leave a formula without a value
        except ModelError:
            return None
        return self.known.remembered_by(made)


def _same_inertia(a: MassProperties, b: MassProperties) -> bool:
    """Whether mass and inertia about the mass centre are equal; the centre may differ."""
    return a[0] == b[0] and a[2].tobytes() == b[2].tobytes()


def same_geometry(system: System, other: System) -> bool:
    """Whether two systems have one structure and the same constraint equations, limits and ranges of tables.

    They may differ in masses, inertias, rotors, gravity and forces. Every body of the other one has inertia against
    every motion: rank and plan, once decided for one of them, then hold for both.
    """
    if system is other:
        return True
    a, b, m = system.model, other.model, system.mechanism
    places = ["cut_frames", "base_pose", "factor", "reader_angle"]
    places += ["constants"] if m.constraints or m.drivers or m.base else []  # else they are those of forces
    return (
        system.ints is other.ints
        and all(np.array_equal(getattr(a, name), getattr(b, name)) for name in places)
        and np.array_equal(a.body[:, rec.OFFSET :], b.body[:, rec.OFFSET :])
        and (system.limits, system.at_limit, system.unsupported) == (other.limits, other.at_limit, other.unsupported)
        and all(_same_range(x, y) for x, y in zip(system.tables, other.tables, strict=True))
        and not any_singular(list(zip(b.body[:, rec.MASS], other.mass_centres, other.inertias))[system.n_bases :])
        and bool(np.array_equal(a.armature == 0.0, b.armature == 0.0))
    )


def _same_range(a: TableUse, b: TableUse) -> bool:
    x, y = a.lookup, b.lookup
    return np.array_equal(x.knots, y.knots) and np.array_equal(x.corners, y.corners) and x.outside == y.outside


# --------------------------------------------------------------------------------- what a part refers to


def _needs(m: Mechanism) -> _Needs:
    known: Names = frozenset({*m.parameters, ANYTHING, *(POINT + name for name in m.points)})
    own = {name: names_in({k: x for k, x in vars(body).items() if k != "frames"}) for name, body in m.bodies.items()}
    frames = {name: names_in(body.frames) for name, body in m.bodies.items()}
    none: Names = frozenset()
    joints = {
        name: names_in({k: x for k, x in vars(j).items() if k not in NOT_OF_PLACE})
        | frames.get(str(j.parent), none)
        | frames.get(str(j.child), none)
        for name, j in m.joints.items()
    }
    return _Needs(
        pose={name: known & names_in(body.pose) for name, body in m.bodies.items()},
        mass={name: known & names for name, names in own.items()},
        joint={name: known & names for name, names in joints.items()},
        armature=known & names_in([j.armature for j in m.joints.values()]),
        limits=known & names_in([(j.limits, j.at_limit) for j in m.joints.values()]),
        forces=known & (names_in(m.forces) | names_read(m)),
        constraints=known & names_in((m.constraints, m.drivers)),
        base=known & names_in(m.base),
        start=known & names_in(m.start),
        gravity=known & names_in(m.gravity),
    )


def names_in(part: Any) -> Names:
    """Names in all texts of a part that can be read as formulas; labels and names of bodies may be among them.

    Examples
    --------
    >>> sorted(names_in({"at": ("crank*cos(angle)", 0, 0), "parent": "ground"}))
    ['angle', 'crank', 'ground']
    """
    if isinstance(part, PointName):
        return frozenset({POINT + part})
    if isinstance(part, str):
        try:
            return parsed(part).names
        except ExpressionError:
            return frozenset()
    if isinstance(part, BaseModel):
        inside = names_in(part.__dict__)
        return inside | {ANYTHING} if isinstance(part, Mesh) else inside  # its notes are then made again, too
    values = part.values() if isinstance(part, Mapping) else part if isinstance(part, list | tuple) else ()
    return frozenset().union(*(names_in(x) for x in values))


def _evaluation_order(formulas: Mapping[str, Expression]) -> list[str]:
    """Parameters that are formulas, each after those to which it refers."""
    order: list[str] = []

    def add(name: str) -> None:
        if name in formulas and name not in order:
            for other in sorted(formulas[name].names):
                add(other)
            order.append(name)

    for name in formulas:
        add(name)
    return order


def _places(system: System) -> dict[str, slice]:
    """Slices of the segments in the array of floats."""
    numbers = np.arange(len(system.floats), dtype=float)
    views = opened(open_model, system.ints, numbers)
    found = {}
    for name in ("body", "cut_frames", "base_pose", "gravity", "armature"):
        view = getattr(views, name).ravel()
        found[name] = slice(int(view[0]), int(view[-1]) + 1) if view.size else slice(0, 0)
    return found


# ------------------------------------------------------------------------------------------ of a system


def with_parameters(system: System, parameters: Mapping[str, Any]) -> System:
    """System of the same mechanism with overridden parameters, see :meth:`System.with_parameters`."""
    exact = system.exact or system
    known, before = exact.kept.find("structure", None, lambda: _structure_of(exact))
    m = sharing_parts(known.m, known.fields_to_copy, before, parameters)
    found = known.system_of(m)
    if found is not None:
        return found
    asked = known.asked
    return build_or_explain(m, asked.cuts, asked.free) if asked.counted is None else build(m, *asked)


def _structure_of(system: System) -> tuple[Structure, dict[str, float | str]]:
    """Structure and parameters of a system; raises if its mechanism is no longer the one that was compiled."""
    found = Structure(system.mechanism, system.asked)
    if not (np.array_equal(found.system.ints, system.ints) and np.array_equal(found.system.floats, system.floats)):
        hint = "Compile it again, and use that system."
        raise ModelError([Problem(f"mechanism '{system.name}'", "it was changed after it was compiled", hint)])
    found.system = system  # whose plans are then used again
    return found, found.m.parameters
