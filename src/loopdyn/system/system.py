"""`System`: a mechanism checked, cut into a tree and frozen into arrays."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from loopdyn.engine import records as rec
from loopdyn.engine.layout import opened
from loopdyn.errors import LoopdynError, ModelError, Problem, warn
from loopdyn.joints import Joint
from loopdyn.model.mechanism import Mechanism
from loopdyn.quantities.expressions import Lookup
from loopdyn.quantities.wording import element_of
from loopdyn.system.cut_angles import AnglePath, Tables, cut_angle_path
from loopdyn.system.kept import Kept
from loopdyn.system.labels import Labels, Named
from loopdyn.system.measures import CompiledMeasure, measures_of
from loopdyn.system.state import State, Tolerated, require_state, state_key
from loopdyn.system.state_values import label_values, normalise
from loopdyn.system.topology import Topology

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from loopdyn.quantities.units import Units

Array = NDArray[np.float64]
Pose = tuple[Array, Array]  # position (3), rotation matrix (3, 3)


@dataclass(frozen=True)
class TableUse:
    """Table used as a law in a compiled system."""

    element: str  # whose law it is: "force 'press'"
    of: str  # name of the variable
    lookup: Lookup
    force: int = -1  # number of the force; -1 for a motion, which is a law of t

    def left(self, where: str) -> str:
        """Message for a variable that leaves the table there."""
        first, last = (self.lookup.knots[k] * self.lookup.scale for k in (0, -1))
        end = f"{self.element}: its table of {self.of} goes from {first:.6g} to {last:.6g} and is left{where}"
        if self.lookup.outside == "error":
            return f"{end}. Add points, or choose outside: hold | extend."
        return f"{end}; the value at its end is held. Add points, or choose outside: extend | error."


class Asked(NamedTuple):
    """Choices with which a mechanism was compiled, see :func:`loopdyn.system.builder.build`."""

    cuts: tuple[str, ...] | str | None = None
    free: tuple[str, ...] = ()
    counted: Sequence[str] | None = None


@dataclass(frozen=True)
class JointData:
    """Joint of a compiled system: its frames, and the indices of its coordinates or rows."""

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

    def placed(self, row: Sequence[int], body: int = -1, q0: int = -1, v0: int = -1, cut: int = -1) -> JointData:
        """Joint with its indices, and with the rows of its bodies exchanged for those that `row` gives."""
        made = object.__new__(JointData)  # a third of the time of the constructor: there are many joints
        ends = {"parent": row[self.parent], "child": row[self.child]}
        made.__dict__.update(self.__dict__, **ends, body=body, q0=q0, v0=v0, cut=cut)
        return made

    def frames(self, position: Array, rotation: Array) -> tuple[Array, Array, Array, Array]:
        """Axes (3, 3) of F and M as columns and their origins, world, from the poses of all bodies by row."""
        (xF, F), (xM, M) = (self.frame(end, position, rotation) for end in (0, 1))
        return F, M, xF, xM

    def frame(self, end: int, position: Sequence[Array] | Array, rotation: Sequence[Array] | Array) -> Pose:
        """Origin and axes (columns) of the frame on its parent (0) or child (1), world, from the poses of all."""
        body, frame = ((self.parent, self.F), (self.child, self.M))[end]
        return compose((position[body], rotation[body]), frame)


@cache
def _fields() -> tuple[str, ...]:
    return tuple(f.name for f in fields(System))


@dataclass(frozen=True, eq=False)
class System:
    """Mechanism compiled into arrays.

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
        The last coordinates: angles of cut joints on which an element depends and whose full turns do not follow from
        the tree. They have no speed of their own and follow the pose; turns are counted along the motion.
    constraint_rows : tuple of str
        Labels of the rows of phi, J and gamma: of cut joints, then constraints, then drivers. Rows of joints are
        "joint.component"; a constraint with one row is labelled by its name, the rows of others by "name.row".
    row_dimensions : tuple of str
        "angle" or "length" for each row.
    law_terms : tuple of str
        Points and joint coordinates that laws of forces read through measures.
    holonomic : (nc,) array of bool
        False for rows that constrain velocities only.
    limits : mapping
        Lowest and highest value of the coordinates of tree and cut joints that have limits; SI.
    at_limit : mapping
        Behaviour of runs at limits, by label: "warn", "stop", or the restitution of a rebound.
    warnings : tuple of str
        Legal but suspicious values; :meth:`Mechanism.compile` issues each as a :class:`LoopdynWarning`.
    tables : tuple of TableUse
        Laws that are tables, of forces and of motions in time.
    unsupported : tuple of str
        Bodies that can move in the tree without inertia at the reference pose, the outermost first: they are legal if
        cut joints, constraints or drivers hold them, but recursive methods do not accept them.
    reference_poses : tuple
        Position and rotation matrix of each body's own frame at the reference pose, by row.
    tolerated : Tolerated or None
        Rows that are zero in this system: they are left open within a tolerance.
    exact : System or None
        The system with these rows.
    asked : Asked
        Choices with which it was compiled.
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
    law_terms: tuple[str, ...] = field(repr=False)
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
    asked: Asked = field(default=Asked(), repr=False)

    @cached_property
    def kept(self) -> Kept:
        """Store of what was prepared for the system, see :class:`Kept`."""
        return Kept()

    def __getstate__(self) -> dict[str, Any]:
        """The fields alone: a copy, or what pickle reads, prepares for itself."""
        own = self.__dict__
        return {name: own[name] for name in _fields()}

    @cached_property
    def _tolerating(self) -> dict[Tolerated, System]:
        return {}

    def tolerating(self, tolerated: Tolerated) -> System:
        """System without some rows of cut joints and constraints, which stay in place as zero rows."""
        exact = self.exact or self
        if tolerated not in exact._tolerating:
            ints = exact.ints.copy()
            cut = opened(rec.open_model, ints, exact.floats).cut
            for label in tolerated.rows:
                k = exact.constraint_rows.index(label)
                n = int(np.flatnonzero((cut[:, rec.C_ROW] <= k) & (k < cut[:, rec.C_ROW] + cut[:, rec.C_ROWS]))[0])
                cut[n, rec.C_SKIPPED] |= 1 << (k - cut[n, rec.C_ROW])
            ints.flags.writeable = False
            exact._tolerating[tolerated] = replace(exact, ints=ints, tolerated=tolerated, exact=exact)
        return exact._tolerating[tolerated]

    def for_state(self, state: State) -> System:
        """System for a state: without the rows that the state leaves open within a tolerance."""
        return self if state.tolerated is None else self.tolerating(state.tolerated)

    def tolerating_as(self, other: System) -> System:
        """System without those of its rows that another system leaves open."""
        if other.tolerated is None:
            return self
        left = tuple(row for row in other.tolerated.rows if row in self.constraint_rows)
        return self.tolerating(replace(other.tolerated, rows=left))

    def with_parameters(self, **parameters: Any) -> System:
        """System of the same mechanism with overridden parameters: other numbers, same structure.

        Equal to ``mechanism.with_(...).compile()`` with the same cuts, but faster: tree, labels, integers and plans are
        shared, only numbers that depend on the parameters are computed. Where the structure changes with them, the
        mechanism is compiled in full. Rows that this system leaves open within a tolerance are rows of the new one.

        Parameters
        ----------
        **parameters : float or str
            New values by name, in the units of the model.

        Raises
        ------
        ModelError
            If there is no such parameter, or the mechanism is wrong with this value, as :meth:`Mechanism.compile`.

        Warns
        -----
        LoopdynWarning
            For legal but suspicious values.

        Examples
        --------
        >>> import loopdyn as ld
        >>> system = ld.library.four_bar().compile()
        >>> longer = system.with_parameters(crank=0.35)
        >>> longer.mechanism.parameters["crank"], longer.topology is system.topology
        (0.35, True)
        """
        from loopdyn.system.variation import with_parameters

        made = with_parameters(self, parameters)
        for text in made.warnings:
            warn(f"{self.name}: {text}")
        return made

    @cached_property
    def row_elements(self) -> tuple[str, ...]:
        """Names of the joints and constraints that the constraint rows belong to, one for each row."""
        return tuple(element_of(label) for label in self.constraint_rows)

    @cached_property
    def n_bases(self) -> int:
        """Number of bases, the first rows of the body table."""
        return int(self.ints[rec.H_BASES])

    @cached_property
    def nb(self) -> int:
        """Number of bodies."""
        return int(self.ints[rec.H_BODIES] - self.ints[rec.H_BASES])

    @cached_property
    def nq(self) -> int:
        """Number of coordinates."""
        return int(self.ints[rec.H_NQ])

    @cached_property
    def nv(self) -> int:
        """Number of speeds."""
        return int(self.ints[rec.H_NV])

    @cached_property
    def nc(self) -> int:
        """Number of constraint rows."""
        return int(self.ints[rec.H_NC])

    @cached_property
    def inertias(self) -> Array:
        """Inertias (n, 3, 3) of all bodies about their centres of mass, in kernel axes."""
        columns = rec.INERTIA + np.array([0, 3, 4, 3, 1, 5, 4, 5, 2])  # xx yy zz xy xz yz
        result: Array = self.model.body[:, columns].reshape(-1, 3, 3)
        return result

    @cached_property
    def mass_centres(self) -> Array:
        """Centres of mass (n, 3) of all bodies, each in its own frame."""
        data = self.model.body
        axes = data[:, rec.BODY_AXES : rec.BODY_AXES + 9].reshape(-1, 3, 3)
        arm = data[:, rec.COM : rec.COM + 3] - data[:, rec.ORIGIN : rec.ORIGIN + 3]
        result: Array = np.einsum("nji,nj->ni", axes, arm)
        return result

    @cached_property
    def turning(self) -> NDArray[np.bool_]:
        """Flags of speeds that are rotations; others are translations. Units cannot tell: the size may be 1 m."""
        found = np.ones(self.nv, bool)
        for j in self.joints.values():
            if j.in_tree:
                found[j.v0 : j.v0 + len(j.spec.speeds)] = [d == "angle" for d in j.spec.speed_dimensions]
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
        """Whether all rows are known to be affine in the speeds: a user's formula or function may not be."""
        m = self.mechanism
        given = all(c.affine for c in m.constraints.values())
        return given and all(c.level == "position" for c in m.user_constraints.values())

    @cached_property
    def absolute(self) -> System:
        """System of the same bodies, each free, with every joint a constraint; turns are not counted.

        It has no rotors and no forces on several coordinates, which need a tree.
        """
        from loopdyn.system.builder import build

        m = self.mechanism
        joints = {name: j.model_copy(update={"armature": None}) for name, j in m.joints.items()}
        forces = {name: f for name, f in m.forces.items() if f.acts_on != rec.ON_COORDINATES}
        free = build(m.model_copy(update={"joints": joints, "forces": forces}), "all", counted=())
        return free.tolerating_as(self)

    @cached_property
    def size(self) -> float:
        """Size of the mechanism in m: largest distance of a joint from the mean of all joints at the reference pose."""
        points = [self._joint_point(j) for j in self.joints.values() if j.spec.rows_when_cut]
        if len(points) < 2:
            return 1.0
        spread = float(np.linalg.norm(np.array(points) - np.mean(points, axis=0), axis=1).max())
        return spread if spread > 0.0 else 1.0

    @cached_property
    def weight(self) -> float:
        """Mass times gravity of all bodies, in N, or their mass if there is no gravity."""
        g = float(np.linalg.norm(self.model.gravity)) or 1.0
        return g * float(self.model.body[self.n_bases :, rec.MASS].sum())

    @cached_property
    def link_length(self) -> float:
        """Usual distance in m from joint to joint along the tree; `size` where no body is carried by another.

        The size of a mechanism of many links grows with their number, this length does not: in units of it numbers that
        concern one link are of the order of one.
        """
        inner = self.model.tree[:, rec.PARENT] >= self.n_bases
        lengths = np.linalg.norm(self.model.body[inner, rec.OFFSET : rec.OFFSET + 3], axis=1)
        lengths = lengths[lengths > 0.0]
        return float(np.median(lengths)) if len(lengths) else self.size

    def _joint_point(self, joint: JointData) -> Array:
        """World position of M's origin at the reference pose."""
        pose = self.reference_poses[joint.child]
        result: Array = pose[0] + pose[1] @ joint.M[0]
        return result

    @cached_property
    def model(self) -> rec.Model:
        """Views of the frozen arrays."""
        views: rec.Model = opened(rec.open_model, self.ints, self.floats)
        return views

    def work(self, dtype: Any = np.float64) -> NDArray[Any]:
        """A fresh work array."""
        return np.zeros(self._work_size, dtype)

    @cached_property
    def _work_size(self) -> int:
        return rec.system_sizes(self.ints)[2]

    def open_work(self, work: NDArray[Any]) -> rec.Work:
        """Named views of a work array."""
        return rec.Work(*(work[part].reshape(shape) for part, shape in self._work_parts))

    @cached_property
    def _work_parts(self) -> list[tuple[slice, tuple[int, ...]]]:
        """Part of the work array that each of its views shows, and its shape: the integers alone decide them."""
        origin = self.kept.origin
        kept = origin.kept if origin is not None and origin.ints is self.ints else self.kept
        places = np.arange(self._work_size)
        return kept.find("work", None, lambda: [_part(view) for view in opened(rec.open_work, self.ints, places)])

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

    @property
    def units(self) -> Units:
        """Units that the mechanism declares: those of labelled numbers. Arrays without labels are in SI units."""
        return self.mechanism.units

    @cached_property
    def labels(self) -> Labels:
        """Table of all labels: of coordinates, speeds, accelerations, reactions, loads and bodies."""
        loads = ["torque" if turns else "force" for turns in self.model.force[:, rec.FORCE_TORQUE]]
        others = sum(len(j.spec.rows_when_cut) for j in self.joints.values() if not j.in_tree)
        rows = dict(zip(self.constraint_rows[others:], self.row_dimensions[others:], strict=True))
        contacts = {name: contact.reads() for name, contact in self.mechanism.contacts.items()}
        forces = dict(zip(self.forces, loads))
        named = Named(self.units, tuple(self.mechanism.joints), forces, rows, self.bodies, contacts)
        return Labels(self.joints.values(), self.counted, self.nq, named)

    @cached_property
    def measures(self) -> dict[str, CompiledMeasure]:
        """Measures of the mechanism with their units, see :mod:`loopdyn.model.measures`."""
        return measures_of(self)

    @cached_property
    def _paths(self) -> dict[tuple[int, int], AnglePath | None]:
        return {}

    def with_turns(self, joint: JointData, k: int, x: float, q: Array) -> float:
        """Coordinate k of a cut joint, measured as x, with its full turns at the coordinates q, if they are known.

        They follow from the tree if all axes of the loop are parallel, and are counted if an element depends on them.
        """
        path = self._angle_path(joint, k)
        return x if path is None else path.nearest(x, q)

    def knows_turns(self, joint: JointData, k: int) -> bool:
        """Whether coordinate k of a cut joint is an angle whose full turns are known from a state."""
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
        """State of the tree; loops are not closed.

        Parameters
        ----------
        q, v : mapping of label to value, or array, optional
            Coordinates and speeds: by label in the declared units, as arrays SI. Others have their values at the
            reference pose, at rest.
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
            if isinstance(given, Mapping):
                given = self.in_si(given, speeds=kind == "speed")
            values.append(label_values(given, labels, known, start, kind))
        normalise(values[0], self.joints.values())
        if not math.isfinite(t):
            raise ModelError([Problem("state", f"time is {t}", "Give a finite time in s.")])
        return State(float(t), values[0], values[1], system=self)

    def in_si(self, given: Mapping[str, Any], *, speeds: bool = False) -> dict[str, Any]:
        """Coordinates or speeds by label, given in the declared units, in SI units; unknown labels as they are."""
        known = self.labels.speeds if speeds else self.labels.coordinates
        return {k: x * self.units.factor(known[k].dimension) if k in known else x for k, x in given.items()}

    def in_units(self, given: Mapping[str, float], *, speeds: bool = False) -> dict[str, float]:
        """Coordinates or speeds by label, given in SI units, in the declared units."""
        return {label: x / self.labels.factor(label, speeds) for label, x in given.items()}

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


def _part(view: NDArray[np.int64]) -> tuple[slice, tuple[int, ...]]:
    """Part of an array that a view shows, and its shape, from the places in it."""
    start = int(view.flat[0]) if view.size else 0
    return slice(start, start + view.size), view.shape


def point_on(system: System, body: str, at: ArrayLike) -> Array:
    """Point of a body in its own frame, SI, given in world coordinates at the reference pose in the declared unit."""
    row = system.labels.body(body, "point")
    given = np.asarray(at, float) * system.units.factor("length")
    if given.shape != (3,) or not np.isfinite(given).all():
        raise ModelError([Problem("point", f"the point of '{body}' is not x, y, z", "Give three numbers.")])
    x, R = system.reference_poses[row]
    own: Array = R.T @ (given - x)
    return own


def require_exact(system: System, state: State | None, what: str, instead: str) -> None:
    """Raise if a state or system leaves redundant rows open, for analyses that close loops in closed form."""
    tolerated = system.tolerated if state is None else state.tolerated or system.tolerated
    if tolerated is not None:
        raise LoopdynError(
            f"{what} closes loops in closed form and can leave no constraint open, but this state does ({tolerated}). "
            f"Use {instead}, or correct the dimensions that ld.assemble names without a tolerance."
        )


def compose(a: Pose, b: Pose) -> Pose:
    """Composition of pose a with pose b, which is relative to a."""
    return a[0] + a[1] @ b[0], a[1] @ b[1]


__all__ = [
    "Asked",
    "JointData",
    "Pose",
    "State",
    "System",
    "TableUse",
    "Tolerated",
    "compose",
    "point_on",
    "require_exact",
    "require_state",
    "state_key",
]
