"""`Mechanism`: description of a mechanism. Names, bodies, joints, forces, parameters, units. No mathematics.

A mechanism keeps every number as it was written. :meth:`Mechanism.compile` checks it all at once, reports
every problem found, and freezes it into a :class:`loopdyn.System`.
"""

from __future__ import annotations

import copy
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, ValidationError

from loopdyn.constraints import Constraint, Driver, UserConstraint
from loopdyn.constraints.dispatch import AnyConstraint
from loopdyn.contacts import OneSided
from loopdyn.contacts.dispatch import AnyContact
from loopdyn.errors import ModelError, Problem, warn
from loopdyn.forces import Force, Motor, UserForce
from loopdyn.forces.base import Law
from loopdyn.forces.dispatch import AnyForce
from loopdyn.joints import Frame, Joint
from loopdyn.joints.base import limits_of
from loopdyn.joints.dispatch import AnyJoint
from loopdyn.model.copies import ELEMENTS, own_copy, with_own_sections
from loopdyn.model.inertia import Inertia
from loopdyn.model.measures import Measure, MeasureField
from loopdyn.model.points import NamedPoint, PointField, resolve_points
from loopdyn.model.tolerances import Tolerance, ToleranceField, check_tolerances
from loopdyn.quantities.expressions import resolve_parameters
from loopdyn.quantities.units import ReadableSignature, Resolver, Scalar, Spec, Units, Vec3
from loopdyn.quantities.wording import describe, explain, nearest

if TYPE_CHECKING:
    from loopdyn.system.system import System

GROUND = "ground"


class Body(Inertia):
    """Rigid body: mass properties, and the pose of its own frame at the reference pose.

    Without a `pose` its frame has world axes and the world origin at the reference pose. `axes` says in which
    axes the mass properties are written: ``"world"`` at the reference pose, or ``"body"``.

    Parameters
    ----------
    pose : Frame, optional
        Pose of its own frame at the reference pose.
    axes : {"world", "body"}
        Axes of the mass properties.
    frames : mapping
        Named frames on the body.
    **mass_properties : Any
        Those of :class:`loopdyn.Inertia`.
    """

    label: ClassVar[str] = "body"

    pose: Frame | None = None
    axes: Literal["world", "body"] = "world"
    frames: dict[str, Frame] = Field(default_factory=dict)

    def __init__(self, **data: Any) -> None:
        Spec.__init__(self, **data)

    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]


class BaseMotion(Spec):
    """Given motion of the ground or of a root body: formulas of ``t``, tables or profiles.

    ``x``, ``y``, ``z`` displace its frame along world axes; ``rx``, ``ry``, ``rz`` turn it about the fixed axes
    x, y, z in this order.
    """

    label: ClassVar[str] = "base motion"

    x: Law = 0.0
    y: Law = 0.0
    z: Law = 0.0
    rx: Law = 0.0
    ry: Law = 0.0
    rz: Law = 0.0


class Start(Spec):
    """Coordinates and speeds to start from, by label, in the units of the model."""

    label: ClassVar[str] = "start"

    q: dict[str, Scalar] = Field(default_factory=dict)
    v: dict[str, Scalar] = Field(default_factory=dict)


PARTS = {
    "bodies": Body,
    "joints": Joint,
    "constraints": Constraint,
    "user_constraints": UserConstraint,
    "drivers": Driver,
    "contacts": OneSided,
    "forces": Force,
    "user_forces": UserForce,
    "base": BaseMotion,
    "points": NamedPoint,
    "measures": Measure,
    "tolerances": Tolerance,
}


class Structures(dict[Any, Any]):
    """Structures that were compiled from a mechanism and its copies with other parameters, which share this object.

    Filled by :func:`loopdyn.system.variation.build_by`. Neither a copy nor what pickle reads has them.
    """

    def __deepcopy__(self, memo: Any) -> Structures:
        return Structures()

    def __reduce__(self) -> tuple[Any, ...]:
        return Structures, ()


class Mechanism(BaseModel):
    """Description of a mechanism.

    Parameters
    ----------
    name : str
        Name of the mechanism.
    gravity : (3,), optional
        Acceleration of gravity in m/s^2; none by default.
    units : Units or dict, optional
        Units of all numbers, e.g. ``{"length": "mm", "angle": "deg"}``; SI by default.
    parameters : dict, optional
        Named numbers; formulas in any number of the model may use them.
    impact : {"simultaneous", "sequential"}
        Whether contacts that are hit at one time share one impact, or are hit one after another, as balls in a row.

    Examples
    --------
    >>> m = Mechanism("pendulum", gravity=(0, -9.81, 0), parameters={"length": 0.5})
    >>> rod = m.add_body("rod", Inertia.rod(mass=1.0, start=(0, 0, 0), end=("length", 0, 0)))
    >>> from loopdyn import Revolute
    >>> m.add_joint("A", Revolute(axis=(0, 0, 1)), m.ground, rod, at=(0, 0, 0))
    'A'
    >>> m.compile().nv
    1
    """

    model_config = ConfigDict(extra="forbid", validate_assignment=True)

    loopdyn: Literal[1] = 1
    name: str = "mechanism"
    units: Units = Units()
    parameters: dict[str, Scalar] = {}
    gravity: Vec3 = (0.0, 0.0, 0.0)
    points: dict[str, PointField] = {}
    bodies: dict[str, Body] = {}
    joints: dict[str, AnyJoint] = {}
    constraints: dict[str, AnyConstraint] = {}
    drivers: dict[str, Driver] = {}
    contacts: dict[str, AnyContact] = {}
    impact: Literal["simultaneous", "sequential"] = "simultaneous"
    forces: dict[str, AnyForce] = {}
    base: dict[str, BaseMotion] = {}
    measures: dict[str, MeasureField] = {}
    tolerances: dict[str, ToleranceField] = {}
    start: Start = Start()
    user_forces: dict[str, UserForce] = Field(default={}, exclude=True)
    user_constraints: dict[str, UserConstraint] = Field(default={}, exclude=True)

    _source: Any = PrivateAttr(default=None)  # the file it came from: lines for messages, comments for saving
    _structures: Structures | None = PrivateAttr(default=None)

    def __init__(self, name: str = "mechanism", **data: Any) -> None:
        try:
            super().__init__(name=name, **data)
        except ValidationError as error:
            raise ModelError(explain(error, type(self), f"mechanism '{name}'", {"name": name, **data})) from None

    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]

    def __setattr__(self, name: str, value: Any) -> None:
        element = f"mechanism '{self.name}'"
        if not (name in type(self).model_fields or name in self.__private_attributes__):
            problem = Problem(element, f"it has no '{name}'", nearest(name, type(self).model_fields))
            raise ModelError([problem])
        try:
            super().__setattr__(name, value)
        except ValidationError as error:
            raise ModelError(explain(error, type(self), element, {name: value})) from None

    def __eq__(self, other: object) -> bool:
        # the content counts, not the file it was read from
        return isinstance(other, Mechanism) and self.__dict__ == other.__dict__

    @property
    def ground(self) -> str:
        """Name of the ground, the fixed body."""
        return GROUND

    def _repr_html_(self) -> str:
        """3-D view for Jupyter."""
        from loopdyn.output.notebook import mechanism_view

        return mechanism_view(self)

    # ------------------------------------------------------------------------------------------ building

    def add_body(
        self,
        name: str,
        inertia: Inertia,
        *,
        pose: Frame | Mapping[str, Any] | None = None,
        axes: Literal["world", "body"] = "world",
        frames: Mapping[str, Frame] | None = None,
    ) -> str:
        """Add a body and return its name, to be used in joints and forces.

        Parameters
        ----------
        name : str
            Name of the body.
        inertia : Inertia
            Mass properties.
        pose : Frame, optional
            Position and orientation of the body's own frame at the reference pose; by default the world's.
        axes : {"world", "body"}
            Axes and origin in which the mass properties are written.
        frames : mapping of Frame, optional
            Named frames on the body, to place joints by.
        """
        self._check_new("body", name, self.bodies, reserved=GROUND)
        given = {f: getattr(inertia, f) for f in inertia.model_fields_set}
        data = {Inertia.model_fields[f].alias or f: value for f, value in given.items()}
        extra = {"pose": pose, "axes": axes, "frames": dict(frames or {})}
        defaults: dict[str, Any] = {"pose": None, "axes": "world", "frames": {}}
        data.update({k: v for k, v in extra.items() if v != defaults[k]})
        self.bodies[name] = _named(Body, data, f"body '{name}'")
        return name

    def add_joint(
        self,
        name: str,
        joint: Joint,
        parent: str,
        child: str,
        *,
        at: str | Sequence[Any] | None = None,
        parent_frame: str | Frame | None = None,
        child_frame: str | Frame | None = None,
        limits: Any = None,
        at_limit: Any = None,
        armature: Any = None,
    ) -> str:
        """Join two bodies.

        Parameters
        ----------
        name : str
            Name of the joint, also the label of its coordinate.
        joint : Joint
            Type and axes, e.g. ``Revolute(axis=(0, 0, 1))``; may be used for many joints.
        parent, child : str
            Names of the bodies. Coordinates measure the child's motion seen from the parent.
        at : (3,) or str, optional
            World point at the reference pose, or the name of a point.
        parent_frame, child_frame : str or Frame, optional
            Instead of `at`: frames on the two bodies.
        limits : optional
            Range of the coordinate(s).
        at_limit : optional
            Behaviour of a run at the limits: "warn" (the default), "stop", ``{"rebound": 0.5}``.
        armature : optional
            Inertia of a rotor that turns with the coordinate(s).
        """
        self._check_new("joint", name, self.joints)
        update = {
            "parent": parent,
            "child": child,
            "at": at,
            "parent_frame": parent_frame,
            "child_frame": child_frame,
            "limits": limits,
            "at_limit": at_limit,
            "armature": armature,
        }
        data = {k: getattr(joint, k) for k in joint.model_fields_set}
        data.update({k: v for k, v in update.items() if v is not None})
        self.joints[name] = _named(type(joint), data, f"joint '{name}'")
        return name

    def add_force(self, name: str | None, force: Force) -> str:
        """Add a force; a name None is that given with the force, or one made from its type.

        Examples
        --------
        >>> from loopdyn.forces import AppliedForce
        >>> m = Mechanism("m")
        >>> b = m.add_body("b", Inertia.sphere(mass=1.0, radius=0.1))
        >>> m.add_force("push", AppliedForce(body=b, force=(1, 0, 0), at=(0, 0, 0)))
        'push'
        """
        name = name or force.name
        if name is None:
            n = 1
            while f"{force.type}_{n}" in self.forces or f"{force.type}_{n}" in self.user_forces:
                n += 1
            name = f"{force.type}_{n}"
        self._check_new("force", name, {**self.forces, **self.user_forces})
        target: dict[str, Any] = self.user_forces if isinstance(force, UserForce) else self.forces
        target[name] = force.model_copy(update={"name": None})
        return name

    def add_motor(self, name: str, joint: str, torque: Any = None, *, force: Any = None) -> str:
        """Put a motor on a joint coordinate: a number, a formula of ``t``, ``position`` and ``speed``, or a table.

        Examples
        --------
        >>> m = Mechanism("m")
        >>> m.add_motor("drive", "A", torque="3 - 0.2*speed")
        'drive'
        """
        given = {k: v for k, v in (("torque", torque), ("force", force)) if v is not None}
        return self.add_force(name, _named(Motor, {"joint": joint, **given}, f"force '{name}'"))

    def add_constraint(self, name: str, constraint: Constraint) -> str:
        """Add a constraint: a distance, a guided point, a slot, rolling, or a relation of joint coordinates.

        Examples
        --------
        >>> from loopdyn.constraints import Coupler
        >>> m = Mechanism("gears")
        >>> m.add_constraint("mesh", Coupler(terms={"A": 1.0, "B": 2.0}))
        'mesh'
        """
        self._check_new("constraint", name, self._row_names())
        target: dict[str, Any] = self.user_constraints if isinstance(constraint, UserConstraint) else self.constraints
        target[name] = constraint
        return name

    def add_driver(self, name: str, joint: str, motion: Any) -> str:
        """Prescribe a joint coordinate as a function of time.

        Parameters
        ----------
        name : str
        joint : str
            Label of the coordinate, e.g. ``"A"`` or ``"C.angle"``.
        motion : formula of ``t``, number, Table or profile of :mod:`loopdyn.quantities.profiles`
            In the units of the model.

        Examples
        --------
        >>> m = Mechanism("m")
        >>> m.add_driver("turn", "A", "2*pi*t")
        'turn'
        """
        self._check_new("driver", name, self._row_names())
        self.drivers[name] = _named(Driver, {"joint": joint, "motion": motion}, f"driver '{name}'")
        return name

    def add_contact(self, name: str, contact: OneSided) -> str:
        """Add a contact, e.g. ``ld.contacts.Stop(joint="A", lower=0.0)``, which a part reaches and leaves again."""
        self._check_new("contact", name, {**self._row_names(), **self.contacts})
        self.contacts[name] = contact  # type: ignore[assignment]  # of any type
        return name

    def move_base(self, body: str = GROUND, **motion: Any) -> None:
        """Move the ground, or a root body, by given functions of time.

        Parameters
        ----------
        body : str
            ``"ground"`` or a body that no joint connects to the ground.
        **motion : number, formula of ``t``, table, or profile
            ``x, y, z``: displacement; ``rx, ry, rz``: rotation about the fixed axes x, y, z in this order.

        Examples
        --------
        >>> m = Mechanism("shaker")
        >>> m.move_base(x="0.01*sin(2*pi*5*t)")
        """
        self.base[body] = _named(BaseMotion, motion, f"base motion of '{body}'")

    def add_point(self, name: str, at: Any = None, *, on: str | None = None, **construction: Any) -> str:
        """Add a point by coordinates, or constructed from others, to be named wherever a point is given.

        Parameters
        ----------
        name : str
        at : (3,) or str, optional
            World coordinates at the reference pose.
        on : str, optional
            Body that carries it, for measures.
        **construction
            Instead of `at`: `from_`, `to`, `length`, `angle`, `share`, `offset`, `lengths`, `side`, `normal`, see
            :class:`loopdyn.model.points.NamedPoint`.

        Examples
        --------
        >>> m = Mechanism("m", parameters={"crank": 0.3})
        >>> m.add_point("A", (0, 0, 0)), m.add_point("B", from_="A", length="crank", angle=0.5)
        ('A', 'B')
        """
        self._check_new("point", name, self.points)
        given = {k: v for k, v in {"at": at, "on": on, **construction}.items() if v is not None}
        self.points[name] = _named(NamedPoint, given, f"point '{name}'")
        return name

    def add_measure(self, name: str, formula: str) -> str:
        """Add a measure: a formula of points, joint coordinates, speeds and loads, see :mod:`loopdyn.model.measures`.

        Examples
        --------
        >>> Mechanism("m").add_measure("ratio", "D.speed/A.speed")
        'ratio'
        """
        self._check_new("measure", name, self.measures)
        self.measures[name] = _named(Measure, {"formula": formula}, f"measure '{name}'")
        return name

    def _row_names(self) -> dict[str, Any]:
        """All elements whose rows are labelled by their names."""
        return {**self.constraints, **self.user_constraints, **self.drivers, **self.joints}

    def _check_new(self, kind: str, name: Any, existing: Mapping[str, Any], reserved: str | None = None) -> None:
        problem = name_problem(kind, name)
        if problem is None and name == reserved:
            problem = Problem(f"{kind} '{name}'", "this name is reserved", "Choose another name.")
        if problem is None and name in existing:
            problem = Problem(f"{kind} '{name}'", f"there is already a {kind} of this name", "Choose another name.")
        if problem is not None:
            raise ModelError([problem])

    # ------------------------------------------------------------------------------------------- variants

    def with_(self, **parameters: Any) -> Mechanism:
        """Copy with overridden parameters.

        Examples
        --------
        >>> m = Mechanism("m", parameters={"crank": 0.5})
        >>> m.with_(crank=0.6).parameters
        {'crank': 0.6}
        """
        if self._structures is None:
            self._structures = Structures()
        other = self.snapshot()
        other._structures = self._structures
        other._override(parameters)
        return other

    def _override(self, parameters: Mapping[str, Any]) -> None:
        unknown = [name for name in parameters if name not in self.parameters]
        if unknown:
            raise ModelError(
                Problem(f"parameter '{n}'", "there is no such parameter", nearest(n, self.parameters)) for n in unknown
            )
        before = self.parameters
        self.parameters = dict(parameters)  # the new ones are checked, the others have been
        self.__dict__["parameters"] = {**before, **self.parameters}

    def snapshot(self) -> Mechanism:
        """Copy that later changes of this mechanism do not reach; parts that nobody can change are shared."""
        other = self.model_copy()
        for section in ELEMENTS:
            other.__dict__[section] = {name: own_copy(part) for name, part in getattr(self, section).items()}
        for section in ("user_forces", "user_constraints"):  # of functions, which may be objects
            other.__dict__[section] = copy.deepcopy(getattr(self, section))
        other.__dict__["parameters"] = dict(self.parameters)
        other.__dict__["start"] = own_copy(self.start)
        other._structures = None
        return other

    # ------------------------------------------------------------------------------------------- freezing

    def compile(self, cuts: Sequence[str] | Literal["all"] | None = None, *, free: Sequence[str] = ()) -> System:
        """Check everything, find the loops and freeze the mechanism into arrays.

        Parameters
        ----------
        cuts : list of joint names or "all", optional
            Joints to cut. By default loopdyn chooses them; ``"all"`` frees every body (absolute coordinates). Joints
            on whose angles springs, motors, drivers or constraints depend are cut only if that holds for all joints of
            a loop.
        free : list of body names
            Bodies that get a free joint to the ground, as a platform on legs: joints that connect them to the rest of
            the tree are cut, and their poses are among the coordinates.

        Raises
        ------
        ModelError
            Lists every problem of the model.

        Warns
        -----
        LoopdynWarning
            For legal but suspicious values; also in :attr:`System.warnings`.

        Examples
        --------
        >>> import loopdyn as ld
        >>> system = ld.library.stewart_6ups().compile(free=["platform"])
        >>> system.topology.free_roots, system.topology.cuts
        (('platform',), ('S1', 'S2', 'S3', 'S4', 'S5', 'S6'))
        """
        from loopdyn.system.variation import build_by

        self._require_parts()
        system = build_by(self._structures, with_own_sections(self), cuts, free)
        for text in system.warnings:
            warn(f"{self.name}: {text}")
        return system

    def _require_parts(self) -> None:
        """Raise ModelError if an object among the elements is not an element."""
        problems = [
            Problem(f"{section} '{name}'", f"this is {describe(part)}", f"Give a {kind.__name__}.")
            for section, kind in PARTS.items()
            for name, part in getattr(self, section).items()
            if not isinstance(part, kind)
        ]
        if problems:
            raise ModelError(problems)

    def resolver(self) -> Resolver:
        """Resolver for the numbers of this mechanism; raises if its parameters are wrong."""
        r = Resolver(resolve_parameters(self.parameters), self.units)
        r.measures = frozenset(self.measures)
        r.limits = limits_of(self.joints)
        resolve_points(self.points, r)
        check_tolerances(self.tolerances, self.parameters, r)
        return r

    def locate(self, problems: Sequence[Problem]) -> list[Problem]:
        """Add file and line to problems, for a mechanism that was read from a file."""
        if self._source is None:
            return list(problems)
        located: list[Problem] = self._source.locate(problems)
        return located

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a model file; comments of the file it was read from are kept.

        Parameters
        ----------
        path : str or Path
            Name of the file, ending in ``.yaml``.
        """
        from loopdyn.io.yaml import save

        save(self, path)


_NOT_IN_NAMES = re.compile(r"[.:\x00-\x1f]")


def name_problem(kind: str, name: Any) -> Problem | None:
    """Problem of the name of an element, if any."""
    if not isinstance(name, str) or not name.strip():
        return Problem(f"{kind} {name!r}", "the name is not a text", "Give a short name.")
    if _NOT_IN_NAMES.search(name) or name != name.strip():
        return Problem(f"{kind} '{name}'", "the name has '.', ':' or blanks around it", "Use letters, digits and '_'.")
    return None


def unrelated(problems: Sequence[Problem], missing: set[str]) -> list[Problem]:
    """Problems that are unrelated to missing elements."""
    kept = [p for p in problems if not missing & _names_in(p)]
    # a list of known names would lack the missing ones
    return [replace(p, hint="Check the name.") if p.hint.startswith("Known: ") else p for p in kept]


def _names_in(problem: Problem) -> set[str]:
    """Names that a problem mentions in quotes, including the parts of labels such as 'A.angle' and of formulas."""
    quoted = re.findall(r"'([^']*)'", f"{problem.element} {problem.message}")
    return {*quoted, *(label.split(".")[0] for label in quoted), *re.findall(r"\w+", " ".join(quoted))}


def _named(kind: type[Any], data: Mapping[str, Any], element: str) -> Any:
    """Build a part, with its errors under the name of the element."""
    try:
        return kind.model_validate(dict(data))
    except ValidationError as error:
        raise ModelError(explain(error, kind, element, data)) from None


Mechanism.__signature__ = ReadableSignature()  # type: ignore[assignment]
