"""Builder of a system: checks a mechanism, chooses its tree, freezes it, and reports all problems at once."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from loopdyn.constraints.base import Constraint, LinearRecord, PairRecord
from loopdyn.constraints.dispatch import TYPES as CONSTRAINT_TYPES
from loopdyn.constraints.driver import Driver
from loopdyn.constraints.user import UserConstraint
from loopdyn.contacts.dispatch import TYPES as CONTACT_TYPES
from loopdyn.errors import ModelError, Path, Problem
from loopdyn.forces.base import Force, Record, law_program
from loopdyn.forces.dispatch import TYPES as FORCE_TYPES
from loopdyn.joints import Joint
from loopdyn.joints.base import Frame
from loopdyn.joints.dispatch import is_known
from loopdyn.model.copies import ELEMENTS as SECTIONS
from loopdyn.model.inertia import MassProperties
from loopdyn.model.mechanism import GROUND, Mechanism, name_problem, unrelated
from loopdyn.model.points import point_names
from loopdyn.quantities.expressions import Program
from loopdyn.quantities.wording import element_of, nearest
from loopdyn.system.freezing import Freezer
from loopdyn.system.graph import Edge, Forest, adjacency
from loopdyn.system.labels import JointLabel, JointLabels, row_labels
from loopdyn.system.law_terms import LawTerms, names_read
from loopdyn.system.placement import Placement, row_of
from loopdyn.system.spanning_tree import (
    forest_of_cuts,
    forest_of_read_joints,
    rotors_in_tree,
    shallow_forest,
    supported_forest,
)
from loopdyn.system.support import any_singular, unsupported_bodies
from loopdyn.system.suspicions import Placed, adrift, gravity_note, suspicions
from loopdyn.system.system import Asked, JointData, Pose, System, TableUse, compose
from loopdyn.system.topology import Topology
from loopdyn.system.uncollected import collector_paused

Array = NDArray[np.float64]

ORIGIN, AXES = np.zeros(3), np.eye(3)  # frame of a body that has no pose of its own, shared by all of them
ORIGIN.flags.writeable = AXES.flags.writeable = False
ELEMENTS = ("parameters", *SECTIONS)  # sections of named things


def build_or_explain(m: Mechanism, cuts: Sequence[str] | Literal["all"] | None, free: Sequence[str]) -> System:
    """Build a system by :func:`build`; the error lists the problems of all elements."""
    try:
        with collector_paused():
            system = build(m, cuts, free)
            _ = system.measures  # whose formulas are checked
            return system
    except ModelError as error:
        raise ModelError(_all_problems(m, error.problems)) from None


def _all_problems(m: Mechanism, problems: Sequence[Problem]) -> list[Problem]:
    """Problems found so far, and those of the rest of the mechanism.

    Some checks need the result of others, so building ends early. It is repeated without the wrong elements, and
    problems of elements that refer to them are not reported.
    """
    found, broken = list(problems), set[tuple[str | int, ...]]()
    while new := {p.path[:2] for p in problems if len(p.path) > 1 and p.path[0] in ELEMENTS} - broken:
        broken |= new
        rest = {s: {k: v for k, v in getattr(m, s).items() if (s, k) not in broken} for s in ELEMENTS}
        try:
            build(m.model_copy(update=rest))
            break
        except ModelError as error:
            problems = error.problems
        found += unrelated(problems, {str(name) for _, name in broken})
    return m.locate(list(dict.fromkeys(found)))


def build(
    m: Mechanism,
    cuts: Sequence[str] | Literal["all"] | None = None,
    free: Sequence[str] = (),
    counted: Sequence[str] | None = None,
) -> System:
    """Check a mechanism and freeze it; raises one ModelError with all problems.

    Its warnings are issued by :meth:`Mechanism.compile`, not here: systems derived from others would repeat them.
    `counted` names the angles of cut joints that are coordinates of their own (:mod:`loopdyn.system.cut_angles`), by
    default all that an element depends on and whose full turns do not follow from the tree.
    """
    try:
        return Builder(m).build(cuts, free, counted)
    except ModelError as error:
        raise ModelError(m.locate(error.problems)) from None


class Builder:
    """Collects the data of `build` in the order in which it becomes known; bodies are numbered as in `names`."""

    def __init__(self, m: Mechanism):
        self.m = m
        self.r = m.resolver()
        moved = [b for b in m.base if b != GROUND]
        self.names = [GROUND, *moved, *(b for b in m.bodies if b not in m.base)]
        self.rows = {name: k for k, name in enumerate(self.names)}
        self.n_bases = 1 + len(moved)
        self._q_at: dict[type[Joint], Array] = {}

    def build(
        self, cuts: Sequence[str] | Literal["all"] | None, free: Sequence[str], counted: Sequence[str] | None
    ) -> System:
        """Build the system, each part in the order in which it becomes known."""
        self._check_sections()
        self.poses = [self._pose(name) for name in self.names]
        self.masses = [self._mass(name) for name in self.names]
        self.joints = self._joints()
        self.armatures = {name: self._armature_of(joint) for name, joint in self.joints.items()}
        self.read_by_laws = names_read(self.m) if self.m.measures else set()
        self._raise()
        ends = [(j.parent, j.child) for j in self.joints.values()]
        self.adrift = list(adrift(self.m, self.names, self.n_bases, ends))
        self.suspicious = self._suspicions()
        self.limits = self._limits()
        self.topology = self._topology(cuts, free)
        self.placement = Placement(self.r, self.topology, self.joints, self.poses, self.masses)
        self.forces = self._forces()
        self._constraints()
        self._contacts()
        self.base_programs = self._base_programs()
        self.start = self._start()
        self.at_limit = self._at_limit(self.limits)
        self.gravity = self._gravity()
        self._raise()
        ints, floats, own = self.freezer().freeze(counted)
        return System(
            name=self.m.name,
            mechanism=self.m,
            topology=self.topology,
            bodies=tuple(self.placement.order),
            joints=self.placement.joints,
            coordinates=(*self.placement.q_labels, *own),
            counted=tuple(own),
            speeds=tuple(self.placement.v_labels),
            constraint_rows=tuple(label for label, _, _ in self.row_list),
            row_dimensions=tuple(dimension for _, dimension, _ in self.row_list),
            holonomic=np.array([holonomic for _, _, holonomic in self.row_list], bool),
            forces=tuple(self.m.forces),
            law_terms=tuple(self.placement.terms.labels),
            limits=self.limits,
            at_limit=self.at_limit,
            start=self.start,
            warnings=self.warnings(own),
            tables=self.tables(),
            unsupported=self.unsupported,
            reference_poses=tuple(self.placement.poses),
            ints=ints,
            floats=floats,
            asked=Asked(cuts if cuts is None or isinstance(cuts, str) else tuple(cuts), tuple(free), counted),
        )

    def warnings(self, own: Sequence[str]) -> tuple[str, ...]:
        """Warnings about legal but suspicious values; `own`: angles of cut joints that are coordinates."""
        found = [*self.suspicious, *gravity_note(self.gravity), *self.r.notes]
        if own and any(program is not None for line in self.base_programs for program in line[3:]):
            found.append(
                f"full turns of {', '.join(own)} of cut joints, on which elements depend, are counted "
                "in runs only, since a base turns. For other analyses beyond half a turn cut other joints: cuts=[...]."
            )
        return tuple(found)

    def freezer(self) -> Freezer:
        """Everything that was resolved, to be written into arrays."""
        joints = self.placement.joints
        return Freezer(
            self.placement,
            self.n_bases,
            [joints[self.topology.edges[k].name] for k in self.topology.cut_edges],
            self.forces,
            self.pairs,
            self.linear,
            len(self.row_list),
            sum(len(user.rows) for user in self.m.user_constraints.values()),
            self.base_programs,
            self.gravity,
            self.armature(),
            list(self.read),
        )

    @cached_property
    def _ends(self) -> NDArray[np.int64]:
        """Rows of the bodies of each joint."""
        return np.array([(j.parent, j.child) for j in self.joints.values()], np.int64).reshape(-1, 2)

    def _suspicions(self) -> list[str]:
        centres = np.array([com for _, com, _ in self.masses])
        points, child = np.array([j.M[0] for j in self.joints.values()]).reshape(-1, 3), self._ends[:, 1]
        if not all(pose[1] is AXES for pose in self.poses):  # else the frames of the bodies are that of the world
            p, R = (np.array([pose[k] for pose in self.poses]) for k in (0, 1))
            centres = p + np.einsum("nij,nj->ni", R, centres)
            points = p[child] + np.einsum("nij,nj->ni", R[child], points)
        placed = Placed(list(self.joints), self._ends, points)
        found = suspicions(self.m.units, self.names, self.n_bases, centres, self.masses, placed)
        return [*found, *self.adrift]

    def _raise(self) -> None:
        if self.r.problems:
            raise ModelError(self.r.problems)

    # -------------------------------------------------------------------------------------- the elements

    def _check_sections(self) -> None:
        sections = {"points": "point", "bodies": "body", "joints": "joint", "forces": "force", "measures": "measure"}
        for section, kind in sections.items():
            for name in getattr(self.m, section):
                problem = name_problem(kind, name)
                if problem is not None:
                    self.r.problem(problem.element, problem.message, problem.hint, (section, name))
        if GROUND in self.m.bodies:
            self.r.problem("body 'ground'", "this name is reserved", "Choose another name.", ("bodies", GROUND))
        for name in (*self.m.constraints, *self.m.user_constraints, *self.m.drivers, *self.m.contacts):
            section = next((s for s in ("drivers", "contacts") if name in getattr(self.m, s)), "constraints")
            problem = name_problem(section[:-1], name)
            if problem is not None:
                self.r.problem(problem.element, problem.message, problem.hint, (section, name))
            groups = (self.m.joints, self.m.constraints, self.m.user_constraints, self.m.drivers, self.m.contacts)
            if sum(name in group for group in groups) > 1:
                what = "there is a joint, constraint, driver or contact of this name"
                self.r.problem(f"{section[:-1]} '{name}'", what, "Choose another name.", (section, name))
        for name, point in self.m.points.items():
            if point.on is not None and point.on not in self.names:
                hint = nearest(point.on, self.names)
                self.r.problem(f"point '{name}'", f"there is no body '{point.on}'", hint, ("points", name, "on"))
        for name in self.m.base:
            if name != GROUND and name not in self.m.bodies:
                hint = nearest(name, [GROUND, *self.m.bodies])
                self.r.problem(f"base '{name}'", f"there is no body '{name}'", hint, ("base", name))

    def _pose(self, name: str) -> Pose:
        body = self.m.bodies.get(name)
        if body is None or body.pose is None:
            return ORIGIN, AXES
        return body.pose.resolve(self.r, f"body '{name}'", ("bodies", name, "pose"))

    def _mass(self, name: str) -> MassProperties:
        """Mass properties in the body's own frame."""
        body = self.m.bodies.get(name)
        if body is None:
            return 0.0, np.zeros(3), np.zeros((3, 3))
        if body.axes == "body" and body.pose is not None and (points := point_names(body)):
            hint = "Give coordinates in the axes of the body, or write its mass properties in world axes."
            message = f"the point '{points[0]}' is in world axes, its mass properties are in its own"
            self.r.problem(f"body '{name}'", message, hint, ("bodies", name))
        mass, com, inertia = body.resolve(self.r, f"body '{name}'", ("bodies", name))
        if body.axes == "body" or body.pose is None:
            return mass, com, inertia
        p, R = self.poses[self.rows[name]]
        return mass, R.T @ (com - p), R.T @ inertia @ R

    def _joints(self) -> dict[str, JointData]:
        joints = {}
        for name, spec in self.m.joints.items():
            joint = self._joint(name, spec)
            if joint is not None:
                joints[name] = joint
        return joints

    def _joint(self, name: str, spec: Joint) -> JointData | None:
        r, element, path = self.r, f"joint '{name}'", ("joints", name)
        if not is_known(spec):
            hint = "Use one of the types of ld.joints; a type of your own is added as CONTRIBUTING.md says."
            r.problem(element, f"its type '{type(spec).__name__}' is not known to the kernels", hint, path)
            return None
        ends = []
        for key in ("parent", "child"):
            body = getattr(spec, key)
            if body is None:
                r.problem(element, f"'{key}' is missing", f"Add '{key}: NAME OF A BODY'.", path)
                ends.append(-1)
            else:
                ends.append(row_of(self.rows, body, r, element, (*path, key)))
        A, par = spec.axes(r, element, path)
        if min(ends) < 0:
            return None
        if ends[0] == ends[1]:
            r.problem(element, f"joins body '{spec.parent}' to itself", "Name two different bodies.", (*path, "child"))
            return None
        if max(ends) < self.n_bases:
            message = f"joins '{spec.parent}' and '{spec.child}', whose motions are both given"
            r.problem(element, message, "Remove the joint, or the motion of one of them.", path)
            return None
        frames = self._frames(spec, ends, element, path)
        if frames is None:
            return None
        (pF, RF), (pM, RM) = frames
        F = (pF, RF @ A.T)
        M = F if frames[0] is frames[1] else (pM, RM @ A.T)
        q = self._q_reference(spec, ends, F, M, par)
        return JointData(name, spec, ends[0], ends[1], F, M, par, q)

    def _frames(self, spec: Joint, ends: list[int], element: str, path: Path) -> list[Pose] | None:
        """Frames of the placement on parent and child, each in its body's own frame."""
        r = self.r
        given = (spec.parent_frame, spec.child_frame)
        if spec.at is not None:
            if given != (None, None):
                r.problem(element, "is placed twice", "Give either 'at' or the two frames.", (*path, "at"))
            at = r.vector(spec.at, "length", element, (*path, "at"))
            if all(self.poses[b][1] is AXES for b in ends):  # the frames of the bodies are that of the world
                return [(at + 0.0, AXES)] * 2  # -0.0 becomes 0.0, as in the sums below
            return [(R.T @ (at - p), R.T) for p, R in (self.poses[b] for b in ends)]
        if None in given:
            hint = "Give 'at' (world point at the reference pose), or 'parent_frame' and 'child_frame'."
            r.problem(element, "has no placement", hint, path)
            return None
        frames = []
        for key, body, frame in zip(("parent_frame", "child_frame"), ends, given, strict=True):
            if isinstance(frame, Frame):
                frames.append(frame.resolve(r, element, (*path, key)))
                continue
            name = self.names[body]
            known = self.m.bodies[name].frames if name in self.m.bodies else {}
            if frame not in known:
                hint = nearest(str(frame), known)
                r.problem(element, f"body '{name}' has no frame '{frame}'", hint, (*path, key))
                return None
            frames.append(known[str(frame)].resolve(r, f"body '{name}'", ("bodies", name, "frames", str(frame))))
        return frames

    def _q_reference(self, spec: Joint, ends: list[int], F: Pose, M: Pose, par: tuple[float, float]) -> Array:
        if spec.at is not None:  # F and M are one frame: the same coordinates for all joints of a type
            if type(spec) not in self._q_at:
                self._q_at[type(spec)] = spec.measure(AXES, ORIGIN, par)
            return self._q_at[type(spec)].copy()
        (xF, EF), (xM, EM) = (compose(self.poses[b], frame) for b, frame in zip(ends, (F, M), strict=True))
        return spec.measure(EF.T @ EM, EF.T @ (xM - xF), par)

    # ---------------------------------------------------------------------------------------- the tree

    def _topology(self, cuts: Sequence[str] | Literal["all"] | None, free: Sequence[str]) -> Topology:
        readers = (x for s in ("forces", "constraints", "drivers", "contacts") for x in getattr(self.m, s).values())
        loaded = {j for reader in readers for j in reader.joints()} | {element_of(x) for x in self.read_by_laws}
        self.read = self._read_angles()
        read = set(self.read.values())
        edges = tuple(
            Edge(
                j.name,
                j.parent,
                j.child,
                j.spec.type,
                len(j.spec.speeds),
                loaded=j.name in loaded,
                read=j.name in read,
                rotor=j.spec.armature is not None and bool(self.armatures[j.name].any()),
            )
            for j in self.joints.values()
        )
        roots = self._free_bodies(cuts, free)
        unsupported = None
        if any_singular(self.masses[self.n_bases :]):
            joints = list(self.joints.values())
            rotors = list(self.armatures.values())
            unsupported = unsupported_bodies(joints, rotors, self.masses, self.poses)
        if cuts is None:
            forest = shallow_forest(self.names, edges, adjacency(len(self.names), edges), self.n_bases, roots)
            forest = rotors_in_tree(edges, self.n_bases, forest)
            if unsupported is not None:
                forest = supported_forest(self.names, edges, self.n_bases, forest, unsupported)
            forest = forest_of_read_joints(edges, self.n_bases, forest, unsupported)
        else:
            forest = self._forest_of_cuts(edges, cuts)
        bad = [] if unsupported is None else unsupported(forest)
        self.unsupported = tuple(dict.fromkeys(self.names[b] for b in bad))
        topology = Topology(self.m.name, tuple(self.names), edges, self.n_bases, forest)
        for k in topology.cut_edges:
            if edges[k].rotor:
                message = "has armature and is cut, but a rotor needs a coordinate of the tree"
                hint = "Cut a joint of the loop without armature, or model the rotor as a body with a coupler."
                self.r.problem(f"joint '{edges[k].name}'", message, hint, ("joints", edges[k].name, "armature"))
        self._raise()
        return topology

    def _read_angles(self) -> dict[str, str]:
        """Angles on whose full turns forces, constraints, drivers or limits (over half a turn) depend; their joints."""
        labels = [label for c in (*self.m.forces.values(), *self.m.constraints.values()) for label in c.reads()]
        labels += [label for d in (*self.m.drivers.values(), *self.m.contacts.values()) for label in d.reads()]
        labels += sorted(self.read_by_laws)
        labels += [label for label, bounds in self.limits.items() if max(map(abs, bounds)) > math.pi]
        known = JointLabels(self.joints.values()).coordinates if labels else {}
        turning = {label: found.joint for label, found in known.items() if found.joint.spec.is_periodic(found.k)}
        return {label: turning[label].name for label in labels if label in turning}

    def _free_bodies(self, cuts: Sequence[str] | Literal["all"] | None, free: Sequence[str]) -> list[int]:
        """Rows of the bodies that get a free joint."""
        known = self.names[self.n_bases :]
        if isinstance(free, str):
            raise ModelError([Problem("free", f"'{free}' is not a list", "Give names of bodies in a list.")])
        wrong = [name for name in free if name not in known]
        if wrong:
            raise ModelError(Problem("free", f"there is no body '{n}' to make free", nearest(n, known)) for n in wrong)
        if free and cuts is not None:
            hint = "Give one of them: the cut joints decide which bodies are free."
            raise ModelError([Problem("free", "both cuts and free bodies are given", hint)])
        return [self.rows[name] for name in free]

    def _forest_of_cuts(self, edges: Sequence[Edge], cuts: Sequence[str] | Literal["all"]) -> Forest:
        number = {e.name: k for k, e in enumerate(edges)}
        chosen = list(number) if isinstance(cuts, str) and cuts == "all" else cuts
        if isinstance(chosen, str):
            raise ModelError([Problem("cuts", f"'{cuts}' is not a list", 'Give joint names in a list, or "all".')])
        wrong = [name for name in chosen if name not in number]
        if wrong:
            raise ModelError(Problem("cuts", f"there is no joint '{n}'", nearest(n, number)) for n in wrong)
        forest = forest_of_cuts(self.names, edges, self.n_bases, {number[name] for name in chosen})
        if isinstance(forest, list):
            loop = ", ".join(edges[k].name for k in forest)
            hint = "Cut one of its joints as well."
            raise ModelError([Problem("cuts", f"the joints {loop} still form a loop", hint)])
        return forest

    # ----------------------------------------------------------------------------------- forces, motions

    def _forces(self) -> list[tuple[Force, Record]]:
        found: list[tuple[Force, Record]] = []
        self.placement.terms = LawTerms(self.m, self.r, self.placement)
        for name, force in self.m.forces.items():
            element, path = f"force '{name}'", ("forces", name)
            if type(force) not in FORCE_TYPES:
                self._unlisted(element, force.type, "forces", path)
                continue
            record = force.resolve(self.r, self.placement, element, path)
            if record is not None:
                found.append((force, record))
        return found

    def _unlisted(self, element: str, kind: str, package: str, path: Path) -> None:
        """Record a problem for a type that kernels do not know."""
        hint = f"List it in loopdyn/{package}/dispatch.py."
        self.r.problem(element, f"its type '{kind}' is not known to the kernels", hint, path)

    def tables(self) -> tuple[TableUse, ...]:
        """Laws that are tables."""
        number = {f"force '{name}'": n for n, name in enumerate(self.m.forces)}
        return tuple(TableUse(element, of, x, number.get(element, -1)) for element, of, x in self.r.tables)

    def _constraints(self) -> None:
        """Records of the constraints and drivers, and the list of all rows: label, dimension, holonomic."""
        self.pairs: list[tuple[int, PairRecord]] = []  # with type codes
        self.linear: list[tuple[int, LinearRecord]] = []
        self.row_list: list[tuple[str, str, bool]] = []
        linear_rows = []
        for k in self.topology.cut_edges:
            j = self.placement.joints[self.topology.edges[k].name]
            rows = zip(j.spec.rows_when_cut, j.spec.row_dimensions, strict=True)
            self.row_list += [(f"{j.name}.{row}", dimension, True) for row, dimension in rows]
        for section, items in (("constraints", self.m.constraints), ("drivers", self.m.drivers)):
            for name, spec in items.items():
                element, path = f"{section[:-1]} '{name}'", (section, name)
                if type(spec) not in (*CONSTRAINT_TYPES, Driver):
                    self._unlisted(element, spec.label, "constraints", path)
                    continue
                record = spec.resolve(self.r, self.placement, element, path)
                if isinstance(record, PairRecord) and isinstance(spec, Constraint):
                    self.pairs.append((spec.code, record))
                    labels = row_labels(name, record.rows)
                    self.row_list += [
                        (label, "angle" if row in spec.angles else "length", row not in spec.nonholonomic)
                        for label, row in zip(labels, record.rows, strict=True)
                    ]
                elif isinstance(record, LinearRecord):
                    self.linear.append((spec.code, record))
                    linear_rows.append((name, record.dimension, record.holonomic))
        self.row_list += linear_rows
        for name, user in self.m.user_constraints.items():
            self._check_user(name, user)
            self.row_list += [(x, user.dimension, user.level == "position") for x in row_labels(name, user.rows)]

    def _contacts(self) -> None:
        for name, contact in self.m.contacts.items():
            element, path = f"contact '{name}'", ("contacts", name)
            if type(contact) in CONTACT_TYPES:
                contact.check(self.r, self.placement, element, path)
            else:
                self._unlisted(element, contact.type, "contacts", path)

    def _check_user(self, name: str, user: UserConstraint) -> None:
        if not user.rows or len(set(user.rows)) < len(user.rows):
            self.r.problem(f"constraint '{name}'", "its rows have no names of their own", "Name each row differently.")

    def _base_programs(self) -> list[list[Program | None]]:
        """Programs of the six motions of each base; None if it does not move."""
        table: list[list[Program | None]] = []
        for name in self.names[: self.n_bases]:
            motion = self.m.base.get(name)
            line: list[Program | None] = []
            for key in ("x", "y", "z", "rx", "ry", "rz"):
                law = 0.0 if motion is None else getattr(motion, key)
                if law == 0.0:
                    line.append(None)
                    continue
                dimension = "angle" if key.startswith("r") else "length"
                element, path = f"base '{name}'", ("base", name, key)
                line.append(law_program(law, {"t": "number"}, dimension, self.r, element, path, motion=True))
            table.append(line)
        return table

    def _armature_of(self, joint: JointData) -> Array:
        """Inertia of the rotors of a joint, one number for each speed; problems are recorded."""
        spec, element, path = joint.spec, f"joint '{joint.name}'", ("joints", joint.name, "armature")
        found = np.zeros(len(spec.speeds))
        given = spec.armature
        if given is None:
            return found
        ball = not (spec.is_scalar() or isinstance(given, dict)) and set(spec.speed_dimensions) == {"angle"}
        names = {"": given} if not isinstance(given, dict) else given
        for suffix, value in names.items():
            scalar = suffix in spec.coordinates and spec.is_scalar()
            if not (scalar or ball):
                known = spec.speeds if spec.is_scalar() else ()
                hint = f"Give a mapping with: {', '.join(known)}." if known and known != ("",) else "Remove it."
                self.r.problem(element, f"has no coordinate '{suffix or joint.name}' for armature", hint, path)
                continue
            turns = ball or spec.dimensions[spec.coordinates.index(suffix)] == "angle"
            x = self.r.scalar(value, "inertia" if turns else "mass", element, path)
            if x < 0.0:
                self.r.problem(element, "'armature' is negative", "Give zero or a positive number.", path)
            found[:] = np.where(ball or np.array(spec.speeds) == suffix, x, found)
        return found

    def armature(self) -> Array:
        """Armature of each speed of the tree, kg m^2 or kg."""
        found = np.zeros(len(self.placement.v_labels))
        for j in self.placement.joints.values():
            if j.in_tree and j.name in self.armatures:
                found[j.v0 : j.v0 + len(j.spec.speeds)] = self.armatures[j.name]
        return found

    def _limits(self) -> dict[str, tuple[float, float]]:
        limits = {}
        for name, spec in self.m.joints.items():
            element, path = f"joint '{name}'", ("joints", name, "limits")
            if spec.limits is None:
                continue
            given = spec.limits if isinstance(spec.limits, dict) else {"": spec.limits}
            for suffix, bounds in given.items():
                if suffix not in spec.coordinates or not spec.is_scalar():
                    known = spec.coordinates if spec.is_scalar() else ()
                    hint = f"Give a mapping with: {', '.join(known)}." if known and known != ("",) else "Remove them."
                    self.r.problem(element, f"has no coordinate '{suffix or name}' for limits", hint, path)
                    continue
                dimension = spec.dimensions[spec.coordinates.index(suffix)]
                low, high = self.r.vector(bounds, dimension, element, path)
                if low > high:
                    self.r.problem(element, "its lower limit is above the upper one", "Exchange them.", path)
                limits[f"{name}.{suffix}" if suffix else name] = (float(low), float(high))
        return limits

    def _at_limit(self, limits: Mapping[str, tuple[float, float]]) -> dict[str, str | float]:
        """Behaviour of runs at the limits, by the same labels."""
        found: dict[str, str | float] = {}
        for name, spec in self.m.joints.items():
            element, path = f"joint '{name}'", ("joints", name, "at_limit")
            if spec.at_limit is not None and spec.limits is None:
                self.r.problem(element, "has 'at_limit' but no limits", "Add limits: [low, high], or remove it.", path)
            mode: str | float = "warn"
            if isinstance(spec.at_limit, str):
                mode = spec.at_limit
            elif spec.at_limit is not None:
                mode = self.r.scalar(spec.at_limit.rebound, "number", element, (*path, "rebound"))
                if not 0.0 <= mode <= 1.0:
                    self.r.problem(element, f"'rebound' is {mode:g}", "Give a number from 0 to 1.", path)
            found |= {label: mode for label in limits if element_of(label) == name}
        return found

    def _gravity(self) -> Array:
        return self.r.vector(self.m.gravity, "acceleration", "mechanism", ("gravity",))

    def _start(self) -> tuple[dict[str, float], dict[str, float]]:
        """Start values of tree and cut joints in SI, by label."""
        rates = {"angle": "angular_speed", "length": "speed"}
        found: tuple[dict[str, float], dict[str, float]] = ({}, {})
        for key, of, out in zip(("q", "v"), ("coordinates", "speeds"), found, strict=True):
            given = getattr(self.m.start, key)
            named = (self.placement.joints.get(element_of(label)) for label in given)
            known: dict[str, JointLabel] = getattr(JointLabels(j for j in named if j is not None), of)
            for label, value in given.items():
                path = ("start", key, label)
                if label not in known:
                    hint = nearest(label, getattr(self.placement.labels, of))
                    self.r.problem("start", f"there is no coordinate '{label}'", hint, path)
                else:
                    dimension = known[label].dimension
                    out[label] = self.r.scalar(value, rates[dimension] if key == "v" else dimension, "start", path)
        return found
