"""Measures along a path: values of terms at all states, and the programs of the formulas run on them.

Terms are computed when a measure needs them, once for all measures, in SI units and in the type of the state: with
complex coordinates, speeds or accelerations a complex step gives derivatives. Angles between points are continuous
along the path: the turns follow from their rates, so that outputs may be further apart than half a turn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from loopdyn.analysis.measured_rows import MeasuredRows
from loopdyn.engine.cached import cached_property
from loopdyn.errors import LoopdynError, ModelError, Problem
from loopdyn.quantities.dimensions import unit_factor
from loopdyn.quantities.expressions import Program, Term, run_program
from loopdyn.quantities.wording import nearest
from loopdyn.system.cut_angles import FULL_TURN, AnglePath
from loopdyn.system.directions import PLANES, angle_path, direction_path
from loopdyn.system.measures import ACCELERATION, LEVELS, POSITION, CompiledMeasure, Quantity
from loopdyn.system.system import State, System, point_on
from loopdyn.tree import kinematics
from loopdyn.tree.functions import Motion, motion_in
from loopdyn.tree.joint_readings import measured

if TYPE_CHECKING:
    import xarray

    from loopdyn.results.drive import Drive
    from loopdyn.results.run import Run
    from loopdyn.system.labels import JointLabel

Array = NDArray[Any]  # of floats or complex numbers
Loads = Callable[[Quantity], Array]


@dataclass(frozen=True)
class Path:
    """States with their accelerations: row k at t[k]; `along` is the variable by which `v` are derivatives."""

    t: Array
    q: Array
    v: Array
    a: Array
    along: Array

    @property
    def dtype(self) -> Any:
        """Type of the numbers: complex if any of them is."""
        return np.result_type(self.t, self.q, self.v, self.a, float)


def motions_along(system: System, path: Path) -> list[Motion]:
    """Motion of all bodies at each state of a path, in the type of the path."""
    work = system.work(path.dtype)
    w, found = system.open_work(work), []
    for k in range(len(path.t)):
        w.t[0], w.q[:], w.v[:], w.a[:] = path.t[k], path.q[k], path.v[k], path.a[k]
        kinematics.move(system.ints, system.floats, work)
        found.append(motion_in(system, w))
    return found


class Measured:
    """Values of measures along a path.

    Parameters
    ----------
    system : System
    path : Path
    loads : callable, optional
        Values along the path of a term that is a load, in SI units.
    motions : list of Motion, optional
        Motions of the bodies, if they are known.
    turns : mapping, optional
        Angles at the first state, whose full turns are those of these values; by default angles begin within half a
        turn.

    Attributes
    ----------
    ends : dict
        Angles at the last state, to continue from.

    Examples
    --------
    >>> import loopdyn as ld
    >>> m = ld.library.pendulum()
    >>> m.add_measure("half", "A.speed/2")
    'half'
    >>> system = m.compile()
    >>> zero = np.zeros(1)
    >>> path = Path(zero, np.full((1, 1), 0.5), np.ones((1, 1)), np.zeros((1, 1)), zero)
    >>> Measured(system, path).values("half")
    array([0.5])
    """

    def __init__(
        self,
        system: System,
        path: Path,
        loads: Loads | None = None,
        motions: Sequence[Motion] | None = None,
        turns: Mapping[str, float] | None = None,
    ):
        self.system, self.path, self._loads, self._motions = system, path, loads, motions
        self._turns: Mapping[str, float] = turns or {}
        self.ends: dict[str, float] = {}
        self._known: dict[tuple[str, str, int], Array] = {}

    def values(self, name: str) -> Array:
        """Values (n,) of a measure in its unit."""
        return self.of(known_measure(self.system, name))

    def of(self, measure: CompiledMeasure) -> Array:
        """Values (n,) of a compiled formula in its unit."""
        n, units = len(self.path.t), self.system.units
        jets = np.zeros((n, len(measure.quantities), 3), self.path.dtype)
        for j, quantity in enumerate(measure.quantities):
            jets[:, j, 0] = self.quantity(quantity) / unit_factor(quantity.dimension, units)
        return run_along(measure.program, jets)

    def quantity(self, quantity: Quantity) -> Array:
        """Values (n,) of a term in SI units."""
        key = quantity.kind, quantity.name, quantity.index
        if key not in self._known:
            self._known[key] = self._computed(quantity)
        return self._known[key]

    def _computed(self, quantity: Quantity) -> Array:
        kind, p = quantity.kind, self.path
        if kind == "time":
            return p.t
        if kind == "measure":
            return self.values(quantity.name) * unit_factor(quantity.dimension, self.system.units)
        if kind == "points":
            assert quantity.term is not None
            return self._of_points(quantity.term)
        if quantity.label is not None:
            source = {"coordinate": p.q, "speed": p.v, "acceleration": p.a}[kind]
            place = quantity.label.place
            found: Array = source[:, place] if place >= 0 else self.of_cut(kind, quantity.name, quantity.label)
            return found
        if self._loads is None:
            raise LoopdynError(f"'{quantity.name}' is a load, which is not known here. Take it from a run.")
        return self._loads(quantity)

    # -------------------------------------------------------------------------------------------- joints

    def of_cut(self, kind: str, name: str, label: JointLabel) -> Array:
        """Values (n,) of a "coordinate", "speed" or "acceleration" of a cut joint, SI."""
        s, p = self.system, self.path
        if label.scalar:
            return self._cut[kind][name]
        if kind == "acceleration":
            hint = "Compile with other cuts=[...], so that the joint is one of the tree."
            raise LoopdynError(f"'{name}.acceleration' is one of a cut joint with a quaternion, which has none. {hint}")
        which = ("coordinate", "speed").index(kind)
        return np.array([measured(s, State(float(p.t[k]), p.q[k], p.v[k]), name)[which] for k in range(len(p.t))])

    @cached_property
    def _cut(self) -> Mapping[str, Mapping[str, Array]]:
        """Coordinates, speeds and accelerations of cut joints by label, angles continuous along the path."""
        s = self.system
        rows = s.kept.take("measured rows", lambda: MeasuredRows(s))
        try:
            x, dx, ddx = self._read(rows)
        finally:
            s.kept.give("measured rows", rows)
        self.ends |= dict(zip(rows.cut, x[-1].real.tolist() if len(x) else (), strict=False))
        names = {"coordinate": x, "speed": dx, "acceleration": ddx}
        return {kind: dict(zip(rows.cut, values.T, strict=True)) for kind, values in names.items()}

    def _read(self, rows: MeasuredRows) -> tuple[Array, Array, Array]:
        """Coordinates, speeds and accelerations (n, cut coordinates) of cut joints."""
        s, p, n, m = self.system, self.path, len(self.path.t), len(rows.cut)
        x, dx, ddx = (np.zeros((n, m), p.dtype) for _ in range(3))
        near = np.array([self._turns.get(label, 0.0) for label in rows.cut])
        labels = [s.labels.coordinates[label] for label in rows.cut]
        turning = [c.joint.spec.is_periodic(c.k) and not s.knows_turns(c.joint, c.k) for c in labels]
        for k in range(n):
            phi, J, rate, gamma = rows(p.t[k], p.q[k], p.v[k], near)
            x[k], dx[k] = phi[rows.measured], rate[rows.measured]
            ddx[k] = (J @ p.a[k] - gamma)[rows.measured]
            for j, c in enumerate(labels):
                x[k, j] += s.with_turns(c.joint, c.k, float(x[k, j].real), p.q[k].real) - x[k, j].real
            if k:  # turns as the rates say
                expected = near + 0.5 * (dx[k - 1] + dx[k]).real * float(p.along[k] - p.along[k - 1])
                x[k] += np.where(turning, FULL_TURN * np.round((expected - x[k].real) / FULL_TURN), 0.0)
            near = x[k].real
        return x, dx, ddx

    # -------------------------------------------------------------------------------------------- points

    @cached_property
    def _stacked(self) -> dict[str, Array]:
        motions = motions_along(self.system, self.path) if self._motions is None else self._motions
        names = [f.name for f in fields(Motion) if f.name != "bodies"]
        return {name: np.array([getattr(m, name) for m in motions]) for name in names}

    @cached_property
    def _places(self) -> Mapping[str, Array]:
        return self.system.mechanism.resolver().points

    def _point(self, name: str) -> tuple[Array, Array, Array]:
        """Position, velocity and acceleration (n, 3) of a named point, world axes."""
        body = str(self.system.mechanism.points[name].on)
        place = self._places[name] / self.system.units.factor("length")
        own, row, m = point_on(self.system, body, place), self.system.bodies.index(body), self._stacked
        arm = m["rotation"][:, row] @ own
        w, alpha = m["angular_velocity"][:, row], m["angular_acceleration"][:, row]
        turning = np.cross(w, arm)
        velocity = m["velocity"][:, row] + turning
        acceleration = m["acceleration"][:, row] + np.cross(alpha, arm) + np.cross(w, turning)
        return m["position"][:, row] + arm, velocity, acceleration

    def _of_points(self, term: Term) -> Array:
        points = [self._point(name) for name in term.points]
        f = term.function
        if f == "distance":
            return _size(points[1][0] - points[0][0])
        if f == "speed":
            return _size(points[0][1])
        if f == "angle":
            return self._angle(term, points)
        value = points[0]["xva".index(f[0]) if len(f) == 2 else 0]
        if term.body:
            row, m = self.system.bodies.index(term.body), self._stacked
            value = np.einsum("nij,ni->nj", m["rotation"][:, row], value - m["position"][:, row])
        component: Array = value[:, "xyz".index(f[-1])]
        return component

    def _angle(self, term: Term, points: Sequence[tuple[Array, Array, Array]]) -> Array:
        """Angle of a direction or between two, with the turns that follow from its rate."""
        if len(points) == 3 and not term.about:
            u, w = points[0][0] - points[1][0], points[2][0] - points[1][0]
            return _arctan2(_size(np.cross(u, w)), np.sum(u * w, axis=1))
        i, j = PLANES[term.about or "z"]
        if len(points) == 2:
            d, dd = (points[1][k] - points[0][k] for k in (0, 1))
            return self._followed(term, _arctan2(d[:, j], d[:, i]), _turning(d, dd, i, j))
        (u, du), (w, dw) = ((points[n][0] - points[1][0], points[n][1] - points[1][1]) for n in (0, 2))
        sine, cosine = u[:, i] * w[:, j] - u[:, j] * w[:, i], u[:, i] * w[:, i] + u[:, j] * w[:, j]
        rate = _turning(w, dw, i, j) - _turning(u, du, i, j)
        return self._followed(term, _arctan2(sine, cosine), rate)

    def _followed(self, term: Term, angle: Array, rate: Array) -> Array:
        """Angles within half a turn, with their full turns along the path."""
        found = _continuous(angle, rate, self.path.along)
        if not len(found):
            return found
        name, first = str(term), float(found[0].real)
        start = self._turns[name] if name in self._turns else self._at_start(term, first)
        found = np.asarray(found + FULL_TURN * np.round((start - first) / FULL_TURN))
        self.ends[name] = float(found[-1].real)
        return found

    def _at_start(self, term: Term, angle: float) -> float:
        """Angle at the start of the path with the turns that follow from joint coordinates, as in laws of forces."""
        path = self.system.kept.find("directions", term, lambda: self._path_of(term))
        return angle if path is None else path.nearest(angle, self.path.q[0].real)

    def _path_of(self, term: Term) -> AnglePath | None:
        """Path of tree angles from which the turns of a direction or rotation follow; None if they do not."""
        s, points = self.system, self.system.mechanism.points
        held = [(s.bodies.index(str(points[name].on)), self._places[name]) for name in term.points]
        pairs = [(held[0], held[1])] if len(held) == 2 else [(held[1], held[0]), (held[1], held[2])]
        m, about = s.model, term.about or "z"
        found = [
            direction_path(m.tree, m.body, s.joints, s.reference_poses, s.n_bases, s.q_reference, x, about)
            for x in pairs
        ]
        return angle_path(found, s.q_reference)


def run_along(program: Program, jets: Array) -> Array:
    """Values (n,) of a program for variables with jets (n, variables, 3)."""
    stack = np.empty((program.depth, 3), jets.dtype)
    with np.errstate(all="ignore"):
        found = [run_program(program.code, 0, len(program.code), program.constants, jet, stack)[0] for jet in jets]
    return np.array(found, jets.dtype)


def _size(vectors: Array) -> Array:
    """Lengths (n,) of vectors, without conjugation."""
    return np.asarray(np.sqrt(np.sum(vectors * vectors, axis=1)))


def _arctan2(y: Array, x: Array) -> Array:
    """Angle of the direction (x, y), above -pi, up to pi; of complex numbers to first order in the imaginary parts."""
    angle = np.arctan2(y.real + 0.0, x.real)
    if not np.iscomplexobj(y):
        return np.asarray(angle)
    square = x.real**2 + y.real**2
    return np.asarray(angle + 1j * (x.real * y.imag - y.real * x.imag) / square)


def _turning(d: Array, rate: Array, i: int, j: int) -> Array:
    """Rate of the direction of d in the plane of components i and j; zero where it has none."""
    square = (d[:, i] ** 2 + d[:, j] ** 2).real
    across = (d[:, i] * rate[:, j] - d[:, j] * rate[:, i]).real
    return np.asarray(np.divide(across, square, out=np.zeros(len(d)), where=square > 0.0))


def _continuous(angle: Array, rate: Array, along: Array) -> Array:
    """Angles with the full turns by which they change as their rates say."""
    expected = 0.5 * (rate[1:] + rate[:-1]) * np.diff(along.real)
    turns = np.cumsum(np.round((expected - np.diff(angle.real)) / FULL_TURN))
    return np.asarray(angle + FULL_TURN * np.concatenate([[0.0], turns])[: len(angle)])


# ------------------------------------------------------------------------------------------ of results


def known_measure(system: System, name: str) -> CompiledMeasure:
    """Measure of this name; raises if there is none."""
    if name not in system.measures:
        raise ModelError([Problem("measure", f"there is no measure '{name}'", nearest(name, system.measures))])
    return system.measures[name]


def labelled(name: str, values: Array, unit: str, dim: str, coords: Mapping[str, Any]) -> xarray.DataArray:
    """A measure along a path, with its unit."""
    import xarray as xr

    return xr.DataArray(values, dims=dim, coords=coords, name=name, attrs={"units": unit})


def along_run(run: Run) -> Measured:
    """Measures along a run; reactions and loads are computed if one needs them."""
    p = run.path
    return Measured(run.system, Path(p.t, p.q, p.v, p.a, p.t), partial(_load_along, run))


def _load_along(run: Run, quantity: Quantity) -> Array:
    """Values (n,) along a run of a term that is a load, in SI units."""
    if quantity.kind == "reaction":
        found: Array = run.wrench[0][:, run.joints.index(quantity.name), quantity.index]
        return found
    if quantity.kind == "row":
        return np.asarray(run.wrench[2][:, list(run._other_rows).index(quantity.name)])
    return np.asarray(run.loads[0 if quantity.kind == "load" else 1][:, quantity.index])


def along_drive(drive: Drive) -> Measured:
    """Measures along a drive; speeds are derivatives by its parameter."""
    p = drive.path
    return Measured(drive.system, Path(p.t, p.q, p.v, p.a, drive.parameter_si()), motions=drive._motions)


def known_to_drive(drive: Drive) -> dict[str, CompiledMeasure]:
    """Measures that a drive determines: of positions, and of a motion in time also of speeds and accelerations."""
    most = ACCELERATION if drive.parameter == "time" else POSITION
    return {name: measure for name, measure in drive.system.measures.items() if measure.level <= most}


def drive_measure(drive: Drive, name: str) -> xarray.DataArray:
    """A measure along a drive; raises if the drive does not determine it."""
    measure = known_measure(drive.system, name)
    if name not in known_to_drive(drive):
        needs = LEVELS[measure.level]
        hint = "Take it from a run." if measure.level > ACCELERATION else "Drive with formulas of t, or use a run."
        raise LoopdynError(f"measure '{name}' depends on {needs}, which this drive does not have. {hint}")
    return labelled(name, drive._measured.of(measure), measure.unit, drive.along, drive._coords())
