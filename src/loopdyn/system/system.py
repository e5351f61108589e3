"""`System`: a mechanism checked, cut into a tree and frozen into arrays. `State`: where it is and how it moves."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from loopdyn.constraints.base import LinearRecord, PairRecord
from loopdyn.constraints.user import UserConstraint
from loopdyn.engine import records as rec
from loopdyn.errors import LoopdynError, ModelError, Path, Problem
from loopdyn.forces.base import JOINT_FRICTION, JOINT_SPRING, MOTOR, Freedom, Record, law_program
from loopdyn.forces.tendon import JointTendon
from loopdyn.joints import REVERSED_BY_SIGN, Free, Joint
from loopdyn.joints.base import Frame
from loopdyn.model.inertia import MassProperties
from loopdyn.model.mechanism import GROUND, Mechanism, name_problem
from loopdyn.quantities.expressions import Lookup, Program, pack
from loopdyn.quantities.wording import nearest
from loopdyn.system.cut_angles import AnglePath, Tables, cut_angle_path
from loopdyn.system.labels import Label, Labels
from loopdyn.system.suspicions import gravity_note, suspicions
from loopdyn.system.topology import (
    Edge,
    Forest,
    Topology,
    adjacency,
    forest_of_cuts,
    forest_of_read_joints,
    rotors_in_tree,
    shallow_forest,
    supported_forest,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.float64]
Pose = tuple[Array, Array]  # position (3), rotation matrix (3, 3)

VAGUE = 1e15  # rad or m: neighbouring numbers are 0.1 apart, so that no loop closes
# A body counts as unsupported if the inertia that its joint moves is this small against the terms it is the sum of.
SUPPORT = 1e-12


@dataclass(frozen=True)
class Tolerated:
    """Constraint rows that are left open within a tolerance, since they repeat others but for rounded dimensions.

    Attributes
    ----------
    rows : tuple of str
        Their labels. All other rows are met exactly.
    angle, length : float
        By how much they may be open, in rad and in m.
    """

    rows: tuple[str, ...]
    angle: float
    length: float

    def of(self, system: System) -> Array:
        """By how much each row of a system may be open: zero for those that are met exactly."""
        allowed = {"angle": self.angle, "length": self.length}
        pairs = zip(system.constraint_rows, system.row_dimensions, strict=True)
        return np.array([allowed[d] if row in self.rows else 0.0 for row, d in pairs])

    def __str__(self) -> str:
        return f"{', '.join(self.rows)} left open within {self.angle:.3g} rad, {self.length:.3g} m"


@dataclass(frozen=True)
class State:
    """Time, coordinates and speeds.

    Attributes
    ----------
    t : float
        Time in s.
    q : (nq,) array
        Coordinates of the tree joints, SI; then the counted angles of cut joints (``system.counted``), rad.
    v : (nv,) array
        Speeds of the tree joints, SI.
    note : str
        How the state was found, where that matters.
    tolerated : Tolerated or None
        Constraint rows that the state leaves open, see :func:`loopdyn.assemble`; analyses and runs that begin at the
        state leave them open, too.
    """

    t: float
    q: Array
    v: Array
    note: str = ""
    tolerated: Tolerated | None = None


@dataclass(frozen=True)
class TableUse:
    """A table among the laws of a compiled system."""

    element: str  # whose law it is: "force 'press'"
    of: str  # name of the variable
    lookup: Lookup
    force: int = -1  # number of the force; -1 for a motion, which is a law of t

    def left(self, where: str) -> str:
        """What it means that the variable leaves the table there, in words."""
        first, last = (self.lookup.knots[k] * self.lookup.scale for k in (0, -1))
        end = f"{self.element}: its table of {self.of} goes from {first:.6g} to {last:.6g} and is left{where}"
        if self.lookup.outside == "error":
            return f"{end}. Add points, or say what holds there: outside: hold | extend."
        return f"{end}; the value at its end is held. Add points, or say what is meant: outside: extend | error."


@dataclass(frozen=True)
class JointData:
    """A joint of a compiled system: its frames, and where its coordinates or rows are."""

    name: str
    spec: Joint
    parent: int  # rows of the body table
    child: int
    F: Pose  # frame on the parent, in the parent's body frame; its axes are columns
    M: Pose  # frame on the child, in the child's body frame
    par: tuple[float, float]
    q_reference: Array  # coordinates at the reference pose
    body: int = -1  # row of the body it leads to, -1 if it is cut
    q0: int = -1
    v0: int = -1
    cut: int = -1  # index among the cut joints

    @property
    def in_tree(self) -> bool:
        """Whether its coordinates are among the system's."""
        return self.body >= 0


@dataclass(frozen=True, eq=False)
class System:
    """A mechanism frozen into arrays, ready to be computed with.

    Attributes
    ----------
    name : str
        Name of the mechanism.
    topology : Topology
        Tree, cut joints, loops.
    bodies : tuple of str
        Names by row of the arrays; the bases come first.
    joints : dict of JointData
        All joints by name, the added free joints of floating bodies included.
    coordinates, speeds : tuple of str
        Labels of q and v.
    counted : tuple of str
        The last of the coordinates: angles of cut joints that something reads and whose full turns do not follow from
        those of the tree. They have no speed of their own and follow the pose, turns being counted along the motion.
    constraint_rows : tuple of str
        Labels of the rows of phi, J and gamma: of cut joints, then constraints, then drivers. Rows of joints are
        "joint.component"; a constraint with one row is labelled by its name, the rows of others by "name.row".
    row_dimensions : tuple of str
        "angle" or "length" for each row.
    holonomic : (nc,) array of bool
        False for rows that constrain velocities only.
    limits : mapping
        Lowest and highest value of the coordinates that have limits, of cut joints too; SI.
    at_limit : mapping
        What runs do there, by the same labels: "warn", "stop", or the restitution of a rebound.
    warnings : tuple of str
        What is legal but worth knowing; :meth:`Mechanism.compile` shows each as a :class:`LoopdynWarning`.
    tables : tuple of TableUse
        Laws that are tables, of forces and of motions in time.
    unsupported : tuple of str
        Bodies that the tree lets move without inertia at the reference pose, the outermost first: they are legal if cut
        joints, constraints or drivers hold them, but methods that go along the tree do not take them.
    reference_poses : tuple
        Position and rotation matrix of each body's own frame at the reference pose, by row.
    tolerated : Tolerated or None
        Rows that are zero in this system: they are left open within a tolerance.
    exact : System or None
        The system with these rows.
    """

    name: str
    mechanism: Mechanism = field(repr=False)
    topology: Topology = field(repr=False)
    bodies: tuple[str, ...] = field(repr=False)
    joints: Mapping[str, JointData] = field(repr=False)
    coordinates: tuple[str, ...] = field(repr=False)
    counted: tuple[str, ...] = field(repr=False)
    speeds: tuple[str, ...] = field(repr=False)
    constraint_rows: tuple[str, ...] = field(repr=False)
    row_dimensions: tuple[str, ...] = field(repr=False)
    holonomic: NDArray[np.bool_] = field(repr=False)
    forces: tuple[str, ...] = field(repr=False)
    limits: Mapping[str, tuple[float, float]] = field(repr=False)
    at_limit: Mapping[str, str | float] = field(repr=False)
    start: tuple[Mapping[str, float], Mapping[str, float]] = field(repr=False)
    warnings: tuple[str, ...] = field(repr=False)
    tables: tuple[TableUse, ...] = field(repr=False)
    unsupported: tuple[str, ...] = field(repr=False)
    reference_poses: tuple[Pose, ...] = field(repr=False)
    ints: NDArray[np.int64] = field(repr=False)
    floats: Array = field(repr=False)
    tolerated: Tolerated | None = field(default=None, repr=False)
    exact: System | None = field(default=None, repr=False)

    @cached_property
    def _tolerating(self) -> dict[Tolerated, System]:
        return {}

    def tolerating(self, tolerated: Tolerated) -> System:
        """The system without some rows of cut joints and constraints, which stay in their places as zero rows."""
        exact = self.exact or self
        if tolerated not in exact._tolerating:
            ints = exact.ints.copy()
            cut = getattr(rec.open_model, "py_func", rec.open_model)(ints, exact.floats).cut
            for label in tolerated.rows:
                k = exact.constraint_rows.index(label)
                n = int(np.flatnonzero((cut[:, rec.C_ROW] <= k) & (k < cut[:, rec.C_ROW] + cut[:, rec.C_ROWS]))[0])
                cut[n, rec.C_SKIPPED] |= 1 << (k - cut[n, rec.C_ROW])
            ints.flags.writeable = False
            exact._tolerating[tolerated] = replace(exact, ints=ints, tolerated=tolerated, exact=exact)
        return exact._tolerating[tolerated]

    def for_state(self, state: State) -> System:
        """The system as a state closes it: without the rows that it leaves open within a tolerance."""
        return self if state.tolerated is None else self.tolerating(state.tolerated)

    def tolerating_as(self, other: System) -> System:
        """The system without the rows that another one leaves open, as far as it has them."""
        if other.tolerated is None:
            return self
        left = tuple(row for row in other.tolerated.rows if row in self.constraint_rows)
        return self.tolerating(replace(other.tolerated, rows=left))

    @property
    def n_bases(self) -> int:
        """Rows of the body table that are bases."""
        return int(self.ints[rec.H_BASES])

    @property
    def nb(self) -> int:
        """Number of bodies."""
        return int(self.ints[rec.H_ROWS] - self.ints[rec.H_BASES])

    @property
    def nq(self) -> int:
        """Number of coordinates."""
        return int(self.ints[rec.H_NQ])

    @property
    def nv(self) -> int:
        """Number of speeds."""
        return int(self.ints[rec.H_NV])

    @property
    def nc(self) -> int:
        """Number of constraint rows."""
        return int(self.ints[rec.H_NC])

    @cached_property
    def turning(self) -> NDArray[np.bool_]:
        """Which speeds are rotations; others are translations. Not to be read off their units: a size may be one."""
        found = np.ones(self.nv, bool)
        for j in self.joints.values():
            if j.in_tree:
                for k, suffix in enumerate(j.spec.speeds):
                    scalar = len(j.spec.dimensions) == len(j.spec.speeds)
                    found[j.v0 + k] = (j.spec.dimensions[k] != "length") if scalar else not suffix.startswith("v")
        return found

    @cached_property
    def speed_units(self) -> Array:
        """Natural unit of each speed: 1 rad/s for rotations, the size of the mechanism per s for translations."""
        return np.where(self.turning, 1.0, self.size)

    @cached_property
    def row_units(self) -> Array:
        """Natural unit of each constraint row: 1 rad for angles, the size of the mechanism for lengths."""
        return np.array([1.0 if d == "angle" else self.size for d in self.row_dimensions])

    @cached_property
    def affine(self) -> bool:
        """Whether all rows are affine in the speeds for sure: a formula or function of speeds may be anything."""
        by_formula = bool(np.any(self.model.linear[:, rec.L_KIND] == rec.VELOCITY_RELATION))
        return not by_formula and all(c.level == "position" for c in self.mechanism.user_constraints.values())

    @cached_property
    def absolute(self) -> System:
        """The same bodies, each free, and every joint a constraint; no turns are counted.

        It is without rotors and tendons, which need a tree.
        """
        m = self.mechanism
        joints = {name: j.model_copy(update={"armature": None}) for name, j in m.joints.items()}
        forces = {name: f for name, f in m.forces.items() if not isinstance(f, JointTendon)}
        free = build(m.model_copy(update={"joints": joints, "forces": forces}), "all", counted=())
        return free.tolerating_as(self)

    @cached_property
    def size(self) -> float:
        """Size of the mechanism in m: largest distance of a joint from the mean of all joints at the reference pose."""
        points = [self._joint_point(j) for j in self.joints.values() if j.spec.type != "free"]
        if len(points) < 2:
            return 1.0
        spread = float(np.linalg.norm(np.array(points) - np.mean(points, axis=0), axis=1).max())
        return spread if spread > 0.0 else 1.0

    def _joint_point(self, joint: JointData) -> Array:
        """World position of M's origin at the reference pose."""
        pose = self.reference_poses[joint.child]
        result: Array = pose[0] + pose[1] @ joint.M[0]
        return result

    @cached_property
    def model(self) -> rec.Model:
        """Views of the frozen arrays."""
        python = getattr(rec.open_model, "py_func", rec.open_model)
        opened: rec.Model = python(self.ints, self.floats)
        return opened

    def work(self, dtype: Any = np.float64) -> NDArray[Any]:
        """A fresh work array."""
        return np.zeros(rec.work_size(self.ints), dtype)

    def open_work(self, work: NDArray[Any]) -> rec.Work:
        """Named views of a work array."""
        python = getattr(rec.open_work, "py_func", rec.open_work)
        opened: rec.Work = python(self.ints, work)
        return opened

    @cached_property
    def q_reference(self) -> Array:
        """Coordinates at the reference pose."""
        q = np.zeros(self.nq)
        for j in self.joints.values():
            if j.in_tree:
                q[j.q0 : j.q0 + len(j.q_reference)] = j.q_reference
        for n, label in enumerate(self.counted, self.nq - len(self.counted)):
            found = self.labels.coordinates[label]
            q[n] = found.joint.q_reference[found.k]
        q.flags.writeable = False
        return q

    @cached_property
    def base_turns(self) -> bool:
        """Whether the given motion of some base has rotations."""
        return bool(np.any(self.model.base_programs[:, 3:] >= 0))

    @cached_property
    def labels(self) -> Labels:
        """What the labels of joint coordinates and speeds stand for, of tree and cut joints alike."""
        return Labels(self.joints.values(), self.counted, self.nq)

    @cached_property
    def _paths(self) -> dict[tuple[int, int], AnglePath | None]:
        return {}

    def with_turns(self, joint: JointData, k: int, x: float, q: Array) -> float:
        """Coordinate k of a cut joint, measured as x, with its full turns at the coordinates q, where they are known.

        They follow from the tree where all axes of the loop are parallel, and are counted where something reads them.
        """
        path = self._angle_path(joint, k)
        return x if path is None else path.nearest(x, q)

    def knows_turns(self, joint: JointData, k: int) -> bool:
        """Whether coordinate k of a cut joint is an angle whose full turns a state tells."""
        return self._angle_path(joint, k) is not None

    def _angle_path(self, joint: JointData, k: int) -> AnglePath | None:
        if not joint.spec.is_periodic(k):
            return None
        label = joint.spec.labels(joint.name)[0][k]
        if label in self.counted:
            return AnglePath(((self.coordinates.index(label), 1),), 0.0)
        if (joint.cut, k) not in self._paths:
            m = self.model
            tables = Tables(m.tree, m.body, m.base_programs, m.base_pose, self.q_reference)
            self._paths[joint.cut, k] = cut_angle_path(tables, m.cut, m.cut_frames, joint.cut, k)
        return self._paths[joint.cut, k]

    def state(
        self,
        q: Mapping[str, float] | ArrayLike | None = None,
        v: Mapping[str, float] | ArrayLike | None = None,
        t: float = 0.0,
    ) -> State:
        """State of the tree; loops are not closed by this.

        Parameters
        ----------
        q, v : mapping of label to value, or array, optional
            Coordinates and speeds in SI units. Those that are not named stay at the reference pose and at rest.
        t : float
            Time in s.

        Examples
        --------
        >>> import loopdyn as ld
        >>> system = ld.library.four_bar().compile()
        >>> float(system.state(q={"A": 0.3}).q[system.coordinates.index("A")])
        0.3
        """
        values = []
        for given, labels, known, start, kind in (
            (q, self.coordinates, self.labels.coordinates, self.q_reference, "coordinate"),
            (v, self.speeds, self.labels.speeds, np.zeros(self.nv), "speed"),
        ):
            values.append(_values(given, labels, known, start, kind))
        _normalise(values[0], self)
        if not math.isfinite(t):
            raise ModelError([Problem("state", f"time is {t}", "Give a finite time in s.")])
        return State(float(t), values[0], values[1])

    def plot(self, state: State | None = None, ax: Axes | None = None, *, names: bool = True) -> Axes:
        """Draw the mechanism at a state: in its plane if it is planar, in 3-D otherwise.

        Parameters
        ----------
        state : State, optional
            By default the reference pose.
        ax : matplotlib Axes, optional
            Where to draw, 3-D axes for a spatial mechanism; a new figure by default.
        names : bool
            Write the names of joints and bodies.

        Returns
        -------
        matplotlib Axes
        """
        from loopdyn.output.plot.mechanism import plot_system

        drawn: Axes = plot_system(self, state, ax, names=names)
        return drawn


def point_on(system: System, body: str, at: ArrayLike) -> Array:
    """A point of a body in the body's own frame, given in world coordinates in m at the reference pose."""
    if body not in system.bodies:
        raise ModelError([Problem("point", f"there is no body '{body}'", nearest(body, system.bodies))])
    given = np.asarray(at, float)
    if given.shape != (3,) or not np.isfinite(given).all():
        raise ModelError([Problem("point", f"the point of '{body}' is not x, y, z", "Give three numbers.")])
    x, R = system.reference_poses[system.bodies.index(body)]
    own: Array = R.T @ (given - x)
    return own


def require_state(system: System, state: State) -> None:
    """Raise ModelError if a state has not the numbers of coordinates and speeds that a system has."""
    for name, value, size in (("q", state.q, system.nq), ("v", state.v, system.nv)):
        if np.shape(value) != (size,):
            message = f"{name} has shape {np.shape(value)}, '{system.name}' needs ({size},)"
            raise ModelError([Problem("state", message, "Make it with system.state(...) or ld.assemble.")])


def require_exact(system: System, state: State | None, what: str, instead: str) -> None:
    """Refuse states and systems that leave redundant rows open, for analyses that close loops by formulas."""
    tolerated = system.tolerated if state is None else state.tolerated or system.tolerated
    if tolerated is not None:
        raise LoopdynError(
            f"{what} closes loops by formulas, which leave no constraint open, and this state does ({tolerated}). Use "
            f"{instead}, or correct the dimensions that ld.assemble names without a tolerance."
        )


def _values(given: Any, labels: Sequence[str], known: Mapping[str, Label], start: Array, kind: str) -> Array:
    out = np.array(start, float)
    if isinstance(given, Mapping):
        wrong = [label for label in given if label not in known or known[label].place < 0]
        if wrong:
            raise ModelError(_unknown_label(known, kind, label, labels) for label in wrong)
        for label, value in given.items():
            out[known[label].place] = value
    elif given is not None:
        out = np.array(given, float)
        if out.shape != (len(labels),):
            message = f"{len(labels)} {kind}s are needed, {out.size} were given"
            raise ModelError([Problem("state", message, f"Order: {', '.join(labels[:8])}...")])
    bad = [label for label, value in zip(labels, out, strict=True) if not math.isfinite(value)]
    if bad:
        raise ModelError(Problem("state", f"{kind} '{label}' is not finite", "Give a number.") for label in bad)
    vague = [label for label, value in zip(labels, out, strict=True) if abs(value) >= VAGUE and kind == "coordinate"]
    if vague:
        message = "is so large that no digits are left behind the point"
        raise ModelError(Problem("state", f"{kind} '{x}' {message}", "Give an angle within some turns.") for x in vague)
    return out


def _unknown_label(known: Mapping[str, Label], kind: str, label: str, labels: Sequence[str]) -> Problem:
    if label in known:
        message = f"joint '{known[label].joint.name}' is cut, so '{label}' is not among the {kind}s of the tree"
        return Problem("state", message, "Compile with other cuts=[...], or assemble the mechanism.")
    return Problem("state", f"there is no {kind} '{label}'", nearest(label, labels))


def _normalise(q: Array, system: System) -> None:
    """Bring quaternions to unit length; one of length zero is an error."""
    for j in system.joints.values():
        if j.in_tree and "w" in j.spec.coordinates:
            k = j.q0 + j.spec.coordinates.index("w")
            length = np.linalg.norm(q[k : k + 4])
            if length == 0.0:
                raise ModelError([Problem(f"joint '{j.name}'", "its quaternion is zero", "Use (1, 0, 0, 0).")])
            q[k : k + 4] /= length


# ------------------------------------------------------------------------------------------------ building


def build(
    m: Mechanism,
    cuts: Sequence[str] | Literal["all"] | None = None,
    free: Sequence[str] = (),
    counted: Sequence[str] | None = None,
) -> System:
    """Check a mechanism and freeze it; raises one ModelError with all problems.

    Its warnings are shown by :meth:`Mechanism.compile`, not here: systems that are made from others would repeat them.
    `counted` names the angles of cut joints that are coordinates of their own (:mod:`loopdyn.system.cut_angles`), by
    default all that something reads and whose turns do not follow from the tree.
    """
    try:
        builder = _Builder(m)
        return builder.build(cuts, free, counted)
    except ModelError as error:
        raise ModelError(m.locate(error.problems)) from None


class _Builder:
    """Gathers what `build` needs in the order in which it becomes known; answers the questions of forces."""

    def __init__(self, m: Mechanism):
        self.m = m
        self.r = m.resolver()
        moved = [b for b in m.base if b != GROUND]
        self.names = [GROUND, *moved, *(b for b in m.bodies if b not in m.base)]
        self.rows = {name: k for k, name in enumerate(self.names)}
        self.n_bases = 1 + len(moved)
        self.warnings: list[str] = []

    def build(
        self, cuts: Sequence[str] | Literal["all"] | None, free: Sequence[str], counted: Sequence[str] | None
    ) -> System:
        self._check_sections()
        self.poses = [self._pose(name) for name in self.names]
        self.masses = [self._mass(name) for name in self.names]
        self.joints = self._joints()
        for joint in self.joints.values():
            self._armature_of(joint)
        self._raise()
        self.warnings += self._suspicions()
        self.limits = self._limits()
        self.topology = self._topology(cuts, free)
        self._place_bodies()
        forces = self._forces()
        self._constraints()
        base_programs = self._base_programs()
        start = self._start()
        at_limit = self._at_limit(self.limits)
        gravity = self.r.vector(self.m.gravity, "acceleration", "mechanism", ("gravity",))
        self.warnings += [*gravity_note(gravity), *self.r.notes]
        self._raise()
        ints, floats = self._freeze(forces, base_programs, gravity, counted)
        return System(
            name=self.m.name,
            mechanism=self.m,
            topology=self.topology,
            bodies=tuple(self.order),
            joints=self.joints,
            coordinates=(*self.q_labels, *self.counted),
            counted=tuple(self.counted),
            speeds=tuple(self.v_labels),
            constraint_rows=tuple(label for label, _, _ in self.row_list),
            row_dimensions=tuple(dimension for _, dimension, _ in self.row_list),
            holonomic=np.array([holonomic for _, _, holonomic in self.row_list], bool),
            forces=tuple(self.m.forces),
            limits=self.limits,
            at_limit=at_limit,
            start=start,
            warnings=tuple(self.warnings),
            tables=self._tables(),
            unsupported=self.unsupported,
            reference_poses=tuple(self.poses[self.rows[name]] for name in self.order),
            ints=ints,
            floats=floats,
        )

    def _suspicions(self) -> list[str]:
        centres = np.array([p + R @ com for (p, R), (_, com, _) in zip(self.poses, self.masses, strict=True)])
        joints = {}
        for name, j in self.joints.items():
            p, R = self.poses[j.child]
            joints[name] = ((j.parent, j.child), p + R @ j.M[0])
        return list(suspicions(self.m, self.names, self.n_bases, centres, self.masses, joints))

    def _raise(self) -> None:
        if self.r.problems:
            raise ModelError(self.r.problems)

    # -------------------------------------------------------------------------------------- the elements

    def _check_sections(self) -> None:
        for kind, names in (("body", self.m.bodies), ("joint", self.m.joints), ("force", self.m.forces)):
            section = {"body": "bodies", "joint": "joints", "force": "forces"}[kind]
            for name in names:
                problem = name_problem(kind, name)
                if problem is not None:
                    self.r.problem(problem.element, problem.message, problem.hint, (section, name))
        if GROUND in self.m.bodies:
            self.r.problem("body 'ground'", "this name is reserved", "Choose another name.", ("bodies", GROUND))
        for name in (*self.m.constraints, *self.m.user_constraints, *self.m.drivers):
            section = "drivers" if name in self.m.drivers else "constraints"
            problem = name_problem(section[:-1], name)
            if problem is not None:
                self.r.problem(problem.element, problem.message, problem.hint, (section, name))
            groups = (self.m.joints, self.m.constraints, self.m.user_constraints, self.m.drivers)
            taken = sum(name in group for group in groups) > 1
            if taken:
                hint = "Rows are labelled by these names; choose another."
                self.r.problem(
                    f"{section[:-1]} '{name}'",
                    "there is a joint, constraint or driver of this name",
                    hint,
                    (section, name),
                )
        for name in self.m.base:
            if name != GROUND and name not in self.m.bodies:
                hint = nearest(name, [GROUND, *self.m.bodies])
                self.r.problem(f"base '{name}'", f"there is no body '{name}'", hint, ("base", name))

    def _pose(self, name: str) -> Pose:
        body = self.m.bodies.get(name)
        if body is None or body.pose is None:
            return np.zeros(3), np.eye(3)
        return body.pose.resolve(self.r, f"body '{name}'", ("bodies", name, "pose"))

    def _mass(self, name: str) -> MassProperties:
        """Mass properties in the body's own frame."""
        body = self.m.bodies.get(name)
        if body is None:
            return 0.0, np.zeros(3), np.zeros((3, 3))
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
        ends = []
        for key in ("parent", "child"):
            body = getattr(spec, key)
            if body is None:
                r.problem(element, f"'{key}' is missing", f"Add '{key}: NAME OF A BODY'.", path)
                ends.append(-1)
            else:
                ends.append(self.body(body, element, (*path, key)))
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
        F, M = (pF, RF @ A.T), (pM, RM @ A.T)
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
            return [(R.T @ (at - p), R.T) for p, R in (self.poses[b] for b in ends)]
        if None in given:
            hint = "Give 'at' (world point at the reference pose), or 'parent_frame' and 'child_frame'."
            r.problem(element, "has no place", hint, path)
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
        if spec.at is not None:
            return spec.measure(np.eye(3), np.zeros(3), par)
        (xF, EF), (xM, EM) = (_compose(self.poses[b], frame) for b, frame in zip(ends, (F, M), strict=True))
        return spec.measure(EF.T @ EM, EF.T @ (xM - xF), par)

    # ---------------------------------------------------------------------------------------- the tree

    def _topology(self, cuts: Sequence[str] | Literal["all"] | None, free: Sequence[str]) -> Topology:
        readers = (*self.m.forces.values(), *self.m.constraints.values(), *self.m.drivers.values())
        loaded = {j for reader in readers for j in reader.joints()}
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
                rotor=bool(self._armature_of(j).any()),
            )
            for j in self.joints.values()
        )
        roots = self._free_bodies(cuts, free)
        unsupported = self._unsupported(edges) if _any_singular(self.masses[self.n_bases :]) else None
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
                hint = "Cut a joint of the loop that has none, or make the rotor of one a body with a coupler."
                self.r.problem(f"joint '{edges[k].name}'", message, hint, ("joints", edges[k].name, "armature"))
        self._raise()
        return topology

    def _read_angles(self) -> dict[str, str]:
        """Angles whose turns count, for forces, constraints, drivers, limits of over half a turn; their joints."""
        labels = [label for c in (*self.m.forces.values(), *self.m.constraints.values()) for label in c.reads()]
        labels += [label for d in self.m.drivers.values() for label in d.reads()]
        labels += [label for label, bounds in self.limits.items() if max(map(abs, bounds)) > math.pi]
        known = Labels(self.joints.values()).coordinates
        turning = {label: found.joint for label, found in known.items() if found.joint.spec.is_periodic(found.k)}
        return {label: turning[label].name for label in labels if label in turning}

    def _free_bodies(self, cuts: Sequence[str] | Literal["all"] | None, free: Sequence[str]) -> list[int]:
        """Rows of the bodies that are to hang on a free joint."""
        known = self.names[self.n_bases :]
        if isinstance(free, str):
            raise ModelError([Problem("free", f"'{free}' is not a list", "Give names of bodies in a list.")])
        wrong = [name for name in free if name not in known]
        if wrong:
            raise ModelError(
                Problem("free", f"there is no body '{n}' to hang freely", nearest(n, known)) for n in wrong
            )
        if free and cuts is not None:
            hint = "Give one of them: joints that are cut decide what hangs freely."
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

    def _unsupported(self, edges: Sequence[Edge]) -> Any:
        """Function that lists bodies whose joint moves too little inertia, once for each such freedom."""
        inertias = [_about_world_origin(m, pose) for m, pose in zip(self.masses, self.poses, strict=True)]
        columns = [_columns(self.joints[e.name], self.poses) for e in edges]
        rotors = [self._armature_of(self.joints[e.name]) for e in edges]

        def unsupported(forest: Forest) -> list[int]:
            total = [i.copy() for i in inertias]
            size = [np.abs(i) for i in inertias]
            bad = []
            for b in reversed(forest.order):
                k = forest.joint[b]
                S, rotor = (np.eye(6), np.zeros(6)) if k < 0 else (columns[k], rotors[k])
                felt, loose = _felt_through(S, total[b], size[b], rotor)
                bad += [b] * loose
                total[forest.parent[b]] += felt
                size[forest.parent[b]] += size[b]
            return bad

        return unsupported

    def _place_bodies(self) -> None:
        """Axes and reference point of each body, and the constants of its joint, from the root outwards."""
        forest, edges = self.topology.forest, self.topology.edges
        self.order = [*self.names[: self.n_bases], *self.topology.order]
        row = {name: k for k, name in enumerate(self.order)}
        self.new_row = [row[name] for name in self.names]
        n = len(self.order)
        self.tree = np.zeros((n, rec.N_TREE), np.int64)
        self.body_data = np.zeros((n, rec.N_BODY))
        # user's body frame in kernel terms: origin from the reference point, axes in the body's kernel axes
        self.own: list[Pose] = [(np.zeros(3), np.eye(3)) for _ in range(n)]
        self.q_labels: list[str] = []
        self.v_labels: list[str] = []
        moved = dict(self.joints)
        for b in forest.order:
            k = forest.joint[b]
            joint = self._free_root(b) if k < 0 else self.joints[edges[k].name]
            reverse = joint.child != b
            i, p = self.new_row[b], self.new_row[forest.parent[b]]
            moved[joint.name] = JointData(
                joint.name, joint.spec, self.new_row[joint.parent], self.new_row[joint.child], joint.F, joint.M,
                joint.par, joint.q_reference, i, len(self.q_labels), len(self.v_labels),
            )  # fmt: skip
            self._place_body(i, p, moved[joint.name], reverse)
            q, v = joint.spec.labels(joint.name)
            self.q_labels += q
            self.v_labels += v
        for number, k in enumerate(self.topology.cut_edges):
            j = self.joints[edges[k].name]
            moved[j.name] = JointData(
                j.name, j.spec, self.new_row[j.parent], self.new_row[j.child], j.F, j.M, j.par, j.q_reference,
                cut=number,
            )  # fmt: skip
        self.joints = moved
        self.labels = Labels(moved.values())
        for name, k in self.rows.items():
            self._mass_data(self.new_row[k], self.masses[k])
            del name

    def _free_root(self, b: int) -> JointData:
        name = f"free:{self.names[b]}"
        nothing = (np.zeros(3), np.eye(3))
        p, R = self.poses[b]
        return JointData(name, Free(), 0, b, nothing, nothing, (0.0, 0.0), Free.measure(R, p, (0.0, 0.0)))

    def _place_body(self, i: int, p: int, joint: JointData, reverse: bool) -> None:
        kind = joint.spec.kind
        inboard, outboard = (joint.M, joint.F) if reverse else (joint.F, joint.M)
        origin, axes = self.own[p]
        A = (axes @ inboard[1]).T  # joint axes as rows; at zero coordinates the same for parent and child
        own_axes = A.T @ outboard[1].T
        self.own[i] = (-own_axes @ outboard[0], own_axes)
        sign = -1.0 if reverse and kind in REVERSED_BY_SIGN else 1.0
        data = self.body_data[i]
        data[rec.OFFSET : rec.OFFSET + 3] = origin + axes @ inboard[0]
        data[rec.AXES : rec.AXES + 9] = sign * A.ravel()
        data[rec.PAR : rec.PAR + 2] = joint.par
        reversed_in_kernel = reverse and kind not in REVERSED_BY_SIGN
        self.tree[i] = [p, kind, joint.q0, joint.v0, len(joint.spec.speeds), reversed_in_kernel]

    def _mass_data(self, i: int, mass: MassProperties) -> None:
        m, com, inertia = mass
        origin, axes = self.own[i]
        I = axes @ inertia @ axes.T
        data = self.body_data[i]
        data[rec.MASS] = m
        data[rec.COM : rec.COM + 3] = origin + axes @ com
        data[rec.INERTIA : rec.INERTIA + 6] = [I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2]]
        data[rec.ORIGIN : rec.ORIGIN + 3] = origin
        data[rec.BODY_AXES : rec.BODY_AXES + 9] = axes.ravel()

    # ------------------------------------------------------------------------------ what forces ask for

    def body(self, name: str, element: str, path: Path) -> int:
        """Row of a body: in the user's order before the tree is chosen, in the order of the arrays after."""
        if name not in self.rows:
            self.r.problem(element, f"there is no body '{name}'", nearest(name, self.rows), path)
            return -1
        k = self.rows[name]
        return self.new_row[k] if hasattr(self, "new_row") else k

    def point(self, body: int, p: Array) -> Array:
        """World point at the reference pose, seen from the body's reference point in its kernel axes."""
        x, R = self.poses[self.rows[self.order[body]]]
        origin, axes = self.own[body]
        result: Array = origin + axes @ (R.T @ (p - x))
        return result

    def axes(self, body: int, R: Array) -> Array:
        """World axes at the reference pose (columns of R), seen in the body's kernel axes."""
        _, R_body = self.poses[self.rows[self.order[body]]]
        result: Array = self.own[body][1] @ R_body.T @ R
        return result

    def freedom(self, label: str, element: str, path: Path) -> Freedom | None:
        """Freedom called `label`."""
        found = self.labels.speeds.get(label)
        if found is None:
            self._no_freedom(label, element, path)
            return None
        joint, k = found.joint, found.k
        dimension, rotation = found.dimension if found.scalar else "", found.dimension == "angle"
        if joint.in_tree:
            return Freedom(-1, found.place, joint.q0 + k if found.scalar else -1, dimension, rotation)
        return Freedom(joint.cut, k, -1, dimension, rotation)

    def _no_freedom(self, label: str, element: str, path: Path) -> None:
        joint = self.joints.get(label.partition(".")[0])
        if joint is None:
            self.r.problem(element, f"there is no joint '{label}'", nearest(label, self.joints), path)
            return
        labels = joint.spec.labels(joint.name)[1]
        hint = f"Name one of its freedoms: {', '.join(labels)}." if labels else "A weld has no freedom."
        self.r.problem(element, f"joint '{joint.name}' has no freedom '{label}'", hint, path)

    # ----------------------------------------------------------------------------------- forces, motions

    def _forces(self) -> list[Record]:
        found = []
        for name, force in self.m.forces.items():
            record = force.resolve(self.r, self, f"force '{name}'", ("forces", name))
            if record is not None:
                found.append(record)
        return found

    def _tables(self) -> tuple[TableUse, ...]:
        number = {f"force '{name}'": n for n, name in enumerate(self.m.forces)}
        return tuple(TableUse(element, of, x, number.get(element, -1)) for element, of, x in self.r.tables)

    def _constraints(self) -> None:
        """Records of the constraints and drivers, and the list of all rows: label, dimension, holonomic."""
        self.pairs: list[PairRecord] = []
        self.linear: list[LinearRecord] = []
        self.row_list: list[tuple[str, str, bool]] = []
        linear_rows = []
        for k in self.topology.cut_edges:
            j = self.joints[self.topology.edges[k].name]
            self.row_list += [(f"{j.name}.{row}", row_dimension(row), True) for row in j.spec.rows_when_cut]
        for section, items in (("constraints", self.m.constraints), ("drivers", self.m.drivers)):
            for name, spec in items.items():
                record = spec.resolve(self.r, self, f"{section[:-1]} '{name}'", (section, name))
                if isinstance(record, PairRecord):
                    self.pairs.append(record)
                    labels = row_labels(name, record.rows)
                    self.row_list += [
                        (label, row_dimension(row), "slip" not in row)
                        for label, row in zip(labels, record.rows, strict=True)
                    ]
                elif isinstance(record, LinearRecord):
                    self.linear.append(record)
                    linear_rows.append((name, record.dimension, record.kind != rec.VELOCITY_RELATION))
        self.row_list += linear_rows
        for name, user in self.m.user_constraints.items():
            self._check_user(name, user)
            self.row_list += [(x, user.dimension, user.level == "position") for x in row_labels(name, user.rows)]

    def _check_user(self, name: str, user: UserConstraint) -> None:
        element = f"constraint '{name}'"
        if not user.rows or len(set(user.rows)) < len(user.rows):
            self.r.problem(element, "its rows have no names of their own", "Give a different name to each row.")

    def _user_rows(self) -> int:
        return sum(len(user.rows) for user in self.m.user_constraints.values())

    def _base_programs(self) -> list[list[Program | None]]:
        """Programs of the six motions of each base; None where it does not move."""
        table: list[list[Program | None]] = []
        for name in self.order[: self.n_bases]:
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
        ball = spec.type == "spherical" and not isinstance(given, dict)
        names = {"": given} if not isinstance(given, dict) else given
        for suffix, value in names.items():
            scalar = suffix in spec.coordinates and len(spec.coordinates) == len(spec.speeds)
            if not (scalar or ball):
                known = [s for s in spec.speeds if s in spec.coordinates] if spec.type != "free" else []
                hint = f"Give a mapping with: {', '.join(known)}." if known and known != [""] else "Remove it."
                self.r.problem(element, f"has no coordinate '{suffix or joint.name}' for armature", hint, path)
                continue
            turns = ball or spec.dimensions[spec.coordinates.index(suffix)] == "angle"
            x = self.r.scalar(value, "inertia" if turns else "mass", element, path)
            if x < 0.0:
                self.r.problem(element, "'armature' is negative", "Give zero or a positive number.", path)
            found[:] = np.where(ball or np.array(spec.speeds) == suffix, x, found)
        return found

    def _armature(self) -> Array:
        """Of each speed of the tree, kg m^2 or kg."""
        found = np.zeros(len(self.v_labels))
        for j in self.joints.values():
            if j.in_tree:
                found[j.v0 : j.v0 + len(j.spec.speeds)] = self._armature_of(j)
        return found

    def _limits(self) -> dict[str, tuple[float, float]]:
        limits = {}
        for name, spec in self.m.joints.items():
            element, path = f"joint '{name}'", ("joints", name, "limits")
            if spec.limits is None:
                continue
            given = spec.limits if isinstance(spec.limits, dict) else {"": spec.limits}
            for suffix, bounds in given.items():
                if suffix not in spec.coordinates or "w" in spec.coordinates:
                    known = [s for s in spec.coordinates if "w" not in spec.coordinates]
                    hint = f"Give a mapping with: {', '.join(known)}." if known and known != [""] else "Remove them."
                    self.r.problem(element, f"has no coordinate '{suffix or name}' for limits", hint, path)
                    continue
                dimension = spec.dimensions[spec.coordinates.index(suffix)]
                low, high = self.r.vector(bounds, dimension, element, path)
                if low > high:
                    self.r.problem(element, "its lower limit is above the upper one", "Exchange them.", path)
                limits[f"{name}.{suffix}" if suffix else name] = (float(low), float(high))
        return limits

    def _at_limit(self, limits: Mapping[str, tuple[float, float]]) -> dict[str, str | float]:
        """What runs do at the limits, by the same labels."""
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
            found |= {label: mode for label in limits if label.partition(".")[0] == name}
        return found

    def _start(self) -> tuple[dict[str, float], dict[str, float]]:
        """Start values in SI by label, of tree joints and of cut joints alike."""
        rates = {"angle": "angular_speed", "length": "speed"}
        dimensions = (
            {label: found.dimension for label, found in self.labels.coordinates.items()},
            {label: rates[found.dimension] for label, found in self.labels.speeds.items()},
        )
        found: tuple[dict[str, float], dict[str, float]] = ({}, {})
        for key, known, out in zip(("q", "v"), dimensions, found, strict=True):
            for label, value in getattr(self.m.start, key).items():
                path = ("start", key, label)
                if label not in known:
                    self.r.problem("start", f"there is no coordinate '{label}'", nearest(label, known), path)
                else:
                    out[label] = self.r.scalar(value, known[label], "start", path)
        return found

    # ---------------------------------------------------------------------------------------- the arrays

    def _freeze(
        self,
        forces: list[Record],
        base_programs: list[list[Program | None]],
        gravity: Array,
        counted: Sequence[str] | None,
    ) -> tuple[NDArray[np.int64], Array]:
        programs: list[Program] = []
        force_ints = np.full((len(forces), rec.N_FORCE_INTS), -1, np.int64)
        force_data = np.zeros((len(forces), rec.N_FORCE_FLOATS))
        for n, record in enumerate(forces):
            force_ints[n, 0] = record.code
            force_ints[n, 1 : 1 + len(record.ints)] = record.ints
            if record.programs:
                force_ints[n, 1 + record.first_program] = len(programs)
                programs += record.programs
            force_data[n, : len(record.floats)] = record.floats
        base = np.full((self.n_bases, rec.N_BASE_PROGRAMS), -1, np.int64)
        for i, line in enumerate(base_programs):
            for k, program in enumerate(line):
                if program is not None:
                    base[i, k] = len(programs)
                    programs.append(program)
        cut, cut_frames = self._cut_data(programs)
        linear, entries, factors = self._linear_data(programs)
        code, constants, start, depth = pack(programs)
        base_pose = np.array([np.concatenate([p, R.ravel()]) for p, R in self.poses[: self.n_bases]])
        paths = self._paths(base, base_pose, cut, cut_frames)
        self.counted = [label for label in paths if paths[label] is None and (counted is None or label in counted)]
        if self.counted and (base[:, 3:] >= 0).any():
            self.warnings.append(
                f"full turns of {', '.join(self.counted)} of cut joints, which something reads, are counted "
                "in runs only, since a base turns. For other analyses beyond half a turn cut other joints: cuts=[...]."
            )
        reader, path, reader_angle = self._readers(forces, paths)
        nq = len(self.q_labels) + len(self.counted)
        header = [len(self.order), self.n_bases, nq, len(self.v_labels), len(cut), len(self.row_list)]
        header += [len(forces), len(code), len(programs), len(constants), len(linear), len(entries), max(depth, 1)]
        header.append(max([3, *(1 + 2 * len(c.freedoms) for c in self.linear)]))  # laws of forces have three variables
        header += [self._user_rows(), len(path), len(self.counted)]
        places = np.array([self._cut_freedom(label) for label in self.counted], np.int64).reshape(-1, rec.N_COUNTED)
        int_parts = [np.array(header), self.tree, cut, force_ints, code, start, base, linear, entries]
        int_parts += [reader, path, places]
        float_parts = [self.body_data, cut_frames, force_data, constants, base_pose, factors, gravity, reader_angle]
        float_parts.append(self._armature())
        ints = np.concatenate([np.asarray(p, np.int64).ravel() for p in int_parts])
        floats = np.concatenate([np.asarray(p, np.float64).ravel() for p in float_parts])
        if (len(ints), len(floats)) != rec.model_sizes(header):
            raise AssertionError("layout of the frozen arrays and of the kernels differ")
        ints.flags.writeable = floats.flags.writeable = False
        return ints, floats

    def _cut_freedom(self, label: str) -> tuple[int, int]:
        """Cut joint and number of one of its freedoms."""
        found = self.labels.coordinates[label]
        return found.joint.cut, found.k

    def _paths(
        self, base: NDArray[np.int64], base_pose: Array, cut: NDArray[np.int64], cut_frames: Array
    ) -> dict[str, AnglePath | None]:
        """Paths of the cut angles that are read, by label; None where their turns do not follow from the tree."""
        q = np.zeros(len(self.q_labels))
        for j in self.joints.values():
            if j.in_tree:
                q[j.q0 : j.q0 + len(j.q_reference)] = j.q_reference
        tables = Tables(self.tree, self.body_data, base, base_pose, q)
        return {
            label: cut_angle_path(tables, cut, cut_frames, *self._cut_freedom(label))
            for label, name in self.read.items()
            if not self.joints[name].in_tree
        }

    def _readers(
        self, forces: list[Record], paths: Mapping[str, AnglePath | None]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], Array]:
        """What forces and then entries of relations read cut angles by: tables of readers and of paths, offsets."""
        own = {label: len(self.q_labels) + k for k, label in enumerate(self.counted)}
        found: dict[tuple[int, int], AnglePath] = {}
        for label, p in paths.items():
            if label in own:
                found[self._cut_freedom(label)] = AnglePath(((own[label], 1),), 0.0)
            elif p is not None:
                found[self._cut_freedom(label)] = p
        on_freedom = (JOINT_SPRING, JOINT_FRICTION, MOTOR)
        read = [(f.ints[0], f.ints[1]) if f.code in on_freedom else (-1, -1) for f in forces]
        read += [(f.cut, f.index) for c in self.linear for f in c.freedoms]
        reader, offsets = np.zeros((len(read), rec.N_READER), np.int64), np.zeros(len(read))
        steps: list[tuple[int, int]] = []
        for k, what in enumerate(read):
            if what in found:
                reader[k] = len(steps), len(found[what].steps)
                steps += found[what].steps
                offsets[k] = found[what].offset
        return reader, np.array(steps, np.int64).reshape(-1, rec.N_STEP), offsets

    def _cut_data(self, programs: list[Program]) -> tuple[NDArray[np.int64], Array]:
        """Tables of cut joints, then of pair constraints."""
        joints = [self.joints[self.topology.edges[k].name] for k in self.topology.cut_edges]
        n = len(joints) + len(self.pairs)
        cut = np.zeros((n, rec.N_CUT), np.int64)
        frames = np.zeros((n, rec.N_CUT_FRAMES))
        row = 0
        for k, j in enumerate(joints):
            rows = len(j.spec.rows_when_cut)
            cut[k] = [j.parent, j.child, j.spec.kind, row, rows, -1, 0]
            row += rows
            for start, body, (p, R) in ((rec.F_POINT, j.parent, j.F), (rec.M_POINT, j.child, j.M)):
                origin, axes = self.own[body]
                frames[k, start : start + 3] = origin + axes @ p
                frames[k, start + 3 : start + 12] = (axes @ R).T.ravel()
            frames[k, rec.C_PAR : rec.C_PAR + 2] = j.par
        for k, c in enumerate(self.pairs, len(joints)):
            cut[k] = [*c.bodies, c.kind, row, len(c.rows), len(programs) if c.programs else -1, 0]
            programs += c.programs
            row += len(c.rows)
            frames[k] = np.concatenate([c.F_point, c.F_axes.ravel(), c.M_point, c.M_axes.ravel(), c.par])
        return cut, frames

    def _linear_data(self, programs: list[Program]) -> tuple[NDArray[np.int64], NDArray[np.int64], Array]:
        """Tables of relations between coordinates: relations, their entries, the factors of these."""
        first_row = len(self.row_list) - len(self.linear) - self._user_rows()
        linear: list[list[int]] = []
        entries: list[list[int]] = []
        factors: list[float] = []
        for n, c in enumerate(self.linear):
            linear.append([first_row + n, len(entries), len(c.freedoms), len(programs), c.kind])
            programs.append(c.program)
            entries += [[f.cut, f.index, f.coordinate] for f in c.freedoms]
            factors += c.coefficients
        return (
            np.array(linear, np.int64).reshape(-1, rec.N_LINEAR),
            np.array(entries, np.int64).reshape(-1, rec.N_ENTRY),
            np.array(factors, float),
        )


# ------------------------------------------------------------------------------------- small geometry


def row_labels(name: str, rows: Sequence[str]) -> list[str]:
    """Labels of the rows of a constraint: its name if it has one, and name.row if it has several.

    Examples
    --------
    >>> row_labels("rod", ["distance"]), row_labels("pin", ["x", "y"])
    (['rod'], ['pin.x', 'pin.y'])
    """
    return [name] if len(rows) == 1 else [f"{name}.{row}" for row in rows]


def row_dimension(row: str) -> str:
    """Whether a constraint row of this name is an angle or a length."""
    return "angle" if row in ("mx", "my", "mz", "normal") else "length"


def _compose(a: Pose, b: Pose) -> Pose:
    return a[0] + a[1] @ b[0], a[1] @ b[1]


def _any_singular(masses: Sequence[MassProperties]) -> bool:
    """Whether some body alone could not be moved in all directions: no mass, or no inertia about some axis."""
    if not masses:
        return False
    moments = np.linalg.eigvalsh(np.array([inertia for _, _, inertia in masses]))
    return any(m <= 0.0 for m, _, _ in masses) or bool(np.any(moments[:, 0] <= SUPPORT * moments[:, 2]))


def _about_world_origin(mass: MassProperties, pose: Pose) -> Array:
    """6x6 inertia about the world origin, world axes at the reference pose, angular part first."""
    m, com, inertia = mass
    c = pose[0] + pose[1] @ com
    skew = np.array([[0, -c[2], c[1]], [c[2], 0, -c[0]], [-c[1], c[0], 0]])
    J = pose[1] @ inertia @ pose[1].T - m * skew @ skew
    return np.block([[J, m * skew], [-m * skew, m * np.eye(3)]])


def _columns(joint: JointData, poses: Sequence[Pose]) -> Array:
    """Motion subspace of a joint at its reference coordinates, about the world origin, world axes."""
    x, E = _compose(poses[joint.child], joint.M)
    z, zero = E[:, 2], np.zeros(3)
    kind = joint.spec.type
    a2 = joint.par[0] * E[:, 0] + joint.par[1] * E[:, 1]
    twists = {
        "revolute": [(z, zero)],
        "prismatic": [(zero, z)],
        "helical": [(z, joint.par[0] * z)],
        "cylindrical": [(z, zero), (zero, z)],
        "universal": [(E[:, 0], zero), (a2, zero)],
        "planar": [(zero, E[:, 0]), (zero, E[:, 1]), (z, zero)],
        "translational": [(zero, E[:, k]) for k in range(3)],
        "spherical": [(E[:, k], zero) for k in range(3)],
        "free": [(E[:, k], zero) for k in range(3)] + [(zero, E[:, k]) for k in range(3)],
        "weld": [],
    }[kind]
    return np.array([np.concatenate([w, v + np.cross(x, w)]) for w, v in twists]).reshape(-1, 6).T


def _felt_through(S: Array, inertia: Array, size: Array, armature: Array) -> tuple[Array, int]:
    """Inertia that is felt through a joint with freedoms S and armature, and how many freedoms move none.

    The articulated inertia I - I S (S^T I S + G)^-1 S^T I, judged against the size of the terms that make it up.
    """
    if S.shape[1] == 0:
        return inertia, 0
    U = inertia @ S
    scale = np.abs(S).T @ size @ np.abs(S) + np.diag(armature)
    d = np.sqrt(np.where(np.diag(scale) > 0.0, np.diag(scale), 1.0))
    values, vectors = np.linalg.eigh((S.T @ U + np.diag(armature)) / np.outer(d, d))
    kept = values > SUPPORT
    V = vectors[:, kept] / d[:, None]
    return inertia - (U @ V / values[kept]) @ (U @ V).T, int(np.count_nonzero(~kept))
