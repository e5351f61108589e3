"""Result of :func:`loopdyn.kinematics`: motion of bodies and points at one state, Jacobians, singular poses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from threading import RLock
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from loopdyn.analysis.closed_motion import (
    idle_only,
    input_map,
    moving_joints,
    ranks,
    require_determined,
    usual_ranks,
)
from loopdyn.analysis.moving_parts import (
    XYZ,
    MovingPart,
    declared,
    declared_point,
    joint_speeds,
    part_of,
    speed_dimensions,
    speed_labels,
    unknown,
)
from loopdyn.errors import LoopdynError
from loopdyn.formulations.registry import accelerations_at
from loopdyn.loops.rank import of_matrix, scaled
from loopdyn.system.system import State, System
from loopdyn.thresholds import CANDIDATE
from loopdyn.tree.functions import Motion, body_motion, constraint_equations

if TYPE_CHECKING:
    import xarray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Singularity:
    """Classification of a pose by ranks; prints in words.

    The ranks of J, of J with the inputs locked, with the output locked, and with both locked are compared with those
    at neighbouring poses. Lengths are divided by `length`.

    Attributes
    ----------
    kind : str
        "regular"; or "type I" (an input moves while the output is at rest), "type II" (the output moves while the
        inputs are locked), "type III" (both), of Gosselin and Angeles; "passive" (something else moves while inputs and
        output are at rest), or "constraint" (the constraints lose rank, and inputs and output see nothing of it).
    zlatanov : tuple of str
        Those of Zlatanov's six types that occur: "RI", "RO" (redundant input, output), "II", "IO" (impossible input,
        output), "RPM" (redundant passive motion), "IIM" (increased instantaneous mobility).
    freedoms, freedoms_here : int
        Degrees of freedom next to the pose, and instantaneous ones at the pose.
    values : dict
        Smallest singular value that vanishes at such a pose, by matrix: "constraints" (J), "inputs locked",
        "output locked"; infinite for a matrix that has none.
    length : float
        Unit of length, in the declared unit.
    moving : dict
        Joints that move in the motions that "inputs locked", and "output locked", leave, if they are singular.
    """

    name: str
    inputs: tuple[str, ...]
    output: str
    kind: str
    zlatanov: tuple[str, ...]
    freedoms: int
    freedoms_here: int
    values: dict[str, float]
    length: float
    unit: str
    moving: dict[str, str] = field(default_factory=dict)

    @property
    def regular(self) -> bool:
        """Whether no rank is lost."""
        return self.kind == "regular"

    def __str__(self) -> str:
        of = f"{self.name}, inputs {', '.join(self.inputs)}" + (f", output {self.output}" if self.output else "")
        lines = [f"{of}: {self.kind}" + (f" ({', '.join(self.zlatanov)})" if self.zlatanov else "")]
        lines += [f"  {WORDS[key]}" for key in self.zlatanov]
        for locked, joints in self.moving.items():
            lines.append(f"  with the {locked}, there still move: {joints}")
        if self.freedoms != self.freedoms_here:
            lines.append(f"  degrees of freedom: {self.freedoms}, here {self.freedoms_here}")
        values = ", ".join(f"{key} {x:.3g}" for key, x in self.values.items())
        lines.append(f"  smallest singular values, unit of length {self.length:.4g} {self.unit}: {values}")
        return "\n".join(lines)


WORDS = {
    "RI": "RI, redundant input: inputs can move while the output is at rest",
    "RO": "RO, redundant output: the output can move while the inputs are locked",
    "II": "II, impossible input: some speeds of the inputs are impossible",
    "IO": "IO, impossible output: some velocities of the output are impossible that are possible nearby",
    "RPM": "RPM, redundant passive motion: something moves while inputs and output are at rest",
    "IIM": "IIM, increased instantaneous mobility: the constraints lose rank",
}


@dataclass(frozen=True, eq=False)
class Kinematics:
    """Motion of all bodies of a closed mechanism at one state, in declared units.

    Attributes
    ----------
    system : System
    state : State
        Closed state.
    a : (nv,) array or None
        Accelerations of the tree, SI, if they were given; otherwise those of the actual motion are computed when
        something needs them.
    """

    system: System = field(repr=False)
    state: State
    a: Array | None = field(default=None, repr=False)

    @cached_property
    def _motion(self) -> Motion:
        """Poses and velocities; its accelerations have no meaning."""
        return body_motion(self.system, self.state)

    @cached_property
    def _accelerated(self) -> Motion:
        a = self.a if self.a is not None else np.asarray(accelerations_at(self.system, self.state), float)
        return body_motion(self.system, self.state, a)

    def _unit(self, dimension: str, rate: int = 0) -> tuple[float, dict[str, str]]:
        """SI value of the declared unit, and its attribute."""
        units = self.system.units
        return units.factor(dimension), {"units": units.symbol(dimension, rate)}

    # ----------------------------------------------------------------------------------- bodies and points

    def body(self, name: str) -> xarray.Dataset:
        """Pose, velocity and acceleration of the frame of a body, in world axes.

        Variables: `position`, `rotation` (columns are the axes of the body's frame), `velocity`, `angular_velocity`,
        `acceleration`, `angular_acceleration`. Accelerations are computed when they are read.

        Examples
        --------
        >>> import loopdyn as ld
        >>> system = ld.library.four_bar().compile()
        >>> k = ld.kinematics(system, ld.assemble(system, v={"A": 2.0}))
        >>> k.body("crank")["angular_velocity"].values.round(12).tolist()
        [0.0, 0.0, 2.0]
        """
        if name not in self.system.bodies:
            raise unknown("body", name, self.system.bodies)
        row, m = self.system.bodies.index(name), self._motion
        data = self._vectors(
            {"position": ("length", 0, m.position[row]), "velocity": ("length", 1, m.velocity[row]),
             "angular_velocity": ("angle", 1, m.angular_velocity[row])},
            {"acceleration": ("length", lambda: self._accelerated.acceleration[row]),
             "angular_acceleration": ("angle", lambda: self._accelerated.angular_acceleration[row])},
        )  # fmt: skip
        data["rotation"] = (("xyz", "axis"), m.rotation[row], {"units": "1", "columns": "axes of the body's frame"})
        return self._dataset(data, {"axis": list(XYZ)}, {"body": name})

    def point(self, body: str, at: ArrayLike) -> xarray.Dataset:
        """Position, velocity and acceleration of a point of a body, in world axes.

        Parameters
        ----------
        body : str
        at : (3,)
            World coordinates of the point at the reference pose.

        Examples
        --------
        >>> import loopdyn as ld
        >>> system = ld.library.pendulum().compile()
        >>> k = ld.kinematics(system, system.state(v={"A": 3.0}))
        >>> k.point("bob", at=(-1, 0, 0))["velocity"].values.round(12).tolist()
        [0.0, -3.0, 0.0]
        """
        if body not in self.system.bodies:
            raise unknown("body", body, self.system.bodies)
        row, own, m = self.system.bodies.index(body), declared_point(self.system, body, at), self._motion
        arm, w = m.rotation[row] @ own, m.angular_velocity[row]

        def acceleration() -> Array:
            now = self._accelerated
            turning = np.cross(now.angular_acceleration[row], arm) + np.cross(w, np.cross(w, arm))
            found: Array = now.acceleration[row] + turning
            return found

        data = self._vectors(
            {"position": ("length", 0, m.position[row] + arm),
             "velocity": ("length", 1, m.velocity[row] + np.cross(w, arm))},
            {"acceleration": ("length", acceleration)},
        )  # fmt: skip
        return self._dataset(data, {}, {"body": body, "at": np.asarray(at, float).tolist()})

    def _vectors(self, known: dict[str, Any], late: dict[str, Any]) -> dict[str, Any]:
        """Variables over `xyz`, converted; late ones are accelerations, computed when they are read."""
        from loopdyn.quantities.lazy import computed

        data: dict[str, Any] = {}
        for name, (dimension, rate, values) in known.items():
            factor, attributes = self._unit(dimension, rate)
            data[name] = ("xyz", values / factor, attributes)
        for name, (dimension, compute) in late.items():
            factor, attributes = self._unit(dimension, 2)
            data[name] = computed("xyz", _scaled(compute, factor), (3,), RLock(), attributes)
        return data

    def _dataset(self, data: dict[str, Any], coords: dict[str, Any], about: dict[str, Any]) -> xarray.Dataset:
        from loopdyn.quantities.labels import dataset

        return dataset(data, {"xyz": list(XYZ), **coords}, {"time": self.state.t, **about})

    # ------------------------------------------------------------------------------------ by the inputs

    def jacobian(self, of: Any, point: ArrayLike | None = None, *, wrt: str | Sequence[str]) -> xarray.DataArray:
        """Jacobian of a body, point or joint by the speeds of inputs, with all loops closed.

        Parameters
        ----------
        of : str, or sequence of str
            Body: the rows are its angular velocity, then the velocity of its frame's origin, in world axes. Or labels
            of joint speeds.
        point : (3,), optional
            Point of the body, world coordinates at the reference pose: the rows are its velocity.
        wrt : str or sequence of str
            Inputs: labels of joint speeds, of tree or cut joints.

        Returns
        -------
        xarray.DataArray
            Dimensions `component` and `input`. Its coordinate `explicit` is the velocity while the inputs are at rest,
            due to drivers and moved bases; `component_units` and `input_units` are the units of the speeds.

        Raises
        ------
        LoopdynError
            If the inputs are dependent, or leave a motion of what is asked for: it names the joints that can move.

        Examples
        --------
        Two cranks of a five-bar move the point C:

        >>> import loopdyn as ld
        >>> system = ld.library.five_bar().compile()
        >>> ld.kinematics(system).jacobian("BC", (0.5, -0.9, 0), wrt=["A", "E"]).shape
        (3, 2)
        """
        part, inputs = part_of(self.system, of, point), speed_labels(self.system, wrt, "input")
        found = input_map(self.system, self.state, inputs)
        require_determined(self.system, self.state, found, part)
        return self._labelled(part, inputs, part.rows(self.system, self.state) @ found.V, found.v0, "component")

    def ratios(self, inputs: str | Sequence[str]) -> xarray.DataArray:
        """Transmission ratios: speeds of all joints, of the tree and cut, per speed of each input.

        Speeds of idle motions (a rod that spins between two balls) are NaN, and `idle` of the attributes names them.

        Raises
        ------
        LoopdynError
            If the inputs are dependent, or leave motions that are not idle.

        Examples
        --------
        >>> import loopdyn as ld
        >>> ratios = ld.kinematics(ld.library.four_bar().compile()).ratios("A")
        >>> bool(abs(ratios.sel(speed="D")) < 1)
        True
        """
        system, state = self.system, self.state
        given = speed_labels(system, inputs, "input")
        labels = tuple(system.labels.speeds)
        part = MovingPart("all joints", labels, speed_dimensions(system, labels))
        found = input_map(system, state, given)
        rows = part.rows(system, state)
        spinning = np.zeros(len(labels), bool)
        if found.left.size:
            if not idle_only(system, state, found):
                require_determined(system, state, found, part)
            length = np.array([1.0 if d == "angle" else system.size for d in part.dimensions])
            spinning = np.abs((rows * system.speed_units) @ found.left / length[:, None]).max(axis=1) > CANDIDATE
        ratios = rows @ found.V
        ratios[spinning] = np.nan
        made = self._labelled(part, given, ratios, found.v0, "speed")
        made["explicit"] = made["explicit"].where(~spinning)
        return made.assign_attrs(idle=[label for label, x in zip(labels, spinning, strict=True) if x])

    def _labelled(self, part: MovingPart, inputs: tuple[str, ...], J: Array, v0: Array, dim: str) -> xarray.DataArray:
        """Jacobian in declared units."""
        from loopdyn.quantities.labels import dataset

        s, of = self.system, speed_dimensions(self.system, inputs)
        above, below = declared(s, part.dimensions), declared(s, of)
        at_rest = State(self.state.t, self.state.q, v0)
        explicit = joint_speeds(s, at_rest, part.components) if part.own is None else part.velocity(s, at_rest)
        coords = {
            dim: list(part.components), "input": list(inputs),
            "explicit": (dim, explicit / above, {"units": f"{dim}_units"}),
            f"{dim}_units": (dim, [s.units.symbol(d, 1) for d in part.dimensions]),
            "input_units": ("input", [s.units.symbol(d, 1) for d in of]),
        }  # fmt: skip
        name = "ratio" if dim == "speed" else "jacobian"
        found: xarray.DataArray = dataset({name: ((dim, "input"), J * below / above[:, None])}, coords)[name]
        return found.assign_attrs(units=f"{dim}_units per input_units", of=part.name)

    # ----------------------------------------------------------------------------------------- singular poses

    def singularity(self, inputs: str | Sequence[str], output: Any = None, length: float | None = None) -> Singularity:
        """Classify the pose by ranks, for given inputs and output.

        Parameters
        ----------
        inputs : str or sequence of str
            Labels of joint speeds.
        output : str, (body, point) or sequence of str, optional
            Body, point of a body, or labels of joint speeds; without it the inputs alone are judged.
        length : float, optional
            Unit of length of the singular values; by default the size of the mechanism (`system.size`).

        Examples
        --------
        >>> import loopdyn as ld
        >>> found = ld.kinematics(ld.library.four_bar().compile()).singularity("A", "D")
        >>> found.kind, found.freedoms
        ('regular', 1)
        """
        s, pose = self.system, State(self.state.t, self.state.q, np.zeros(self.system.nv))
        labels = speed_labels(s, inputs, "input")
        part = None if output is None else part_of(s, output)
        unit, attributes = self._unit("length")
        if length is not None and not 0.0 < length < np.inf:
            raise LoopdynError(f"the unit of length is {length}. Give a positive length.")
        L = s.size if length is None else length * unit
        usual, here = usual_ranks(s, pose, labels, part, L), ranks(s, pose, labels, part, L)
        found = zlatanov(s.nv, len(labels), usual, here.counts, part is not None)
        names = ("constraints", "inputs locked", "output locked")[: 2 if part is None else 3]
        values = {n: _vanishing(here.values[k], usual[k]) for k, n in enumerate(names)}
        moving = {}
        for k, rows in ((1, labels), (2, part)):
            if part is not None and usual[k] > here.counts[k]:
                moving[names[k]] = self._moving_with(pose, rows)
        return Singularity(
            s.name, labels, "" if part is None else part.name.strip("'"), _kind(found), found, s.nv - usual[0],
            s.nv - here.counts[0], values, L / unit, attributes["units"], moving,
        )  # fmt: skip

    def _moving_with(self, pose: State, locked: tuple[str, ...] | MovingPart | None) -> str:
        """Joints that move while some joints, or a part, are locked."""
        s = self.system
        part = locked if isinstance(locked, MovingPart) else part_of(s, list(locked or ()))
        scale = np.array([1.0 if d == "angle" else s.size for d in part.dimensions])
        J, rows = scaled(s, constraint_equations(s, pose)[1]), part.rows(s, pose) * s.speed_units / scale[:, None]
        D = np.vstack([J, rows])
        return moving_joints(s, pose, np.linalg.svd(D)[2][of_matrix(D).count :].T)


def _scaled(compute: Callable[[], Array], factor: float) -> Callable[[], Array]:
    """Function whose values are divided by a factor."""
    return lambda: compute() / factor


def _vanishing(values: Array, count: int) -> float:
    """Singular value that is the smallest one next to the pose."""
    return float(values[count - 1]) if 0 < count <= len(values) else np.inf


def zlatanov(
    nv: int, inputs: int, usual: tuple[int, int, int, int], here: tuple[int, int, int, int], output: bool
) -> tuple[str, ...]:
    """Types of Zlatanov that occur at a pose, from the ranks of J, (J, S), (J, O), (J, S, O) nearby and here."""
    (j, s, o, so), (j0, s0, o0, so0) = here, usual
    occurs = {
        "RI": output and so - o > so0 - o0,
        "RO": output and so - s > so0 - s0,
        "II": s - j < s0 - j0,
        "IO": output and o - j < o0 - j0,
        "RPM": so < so0,
        "IIM": j < j0,
    }
    return tuple(key for key, x in occurs.items() if x)


def _kind(found: tuple[str, ...]) -> str:
    """Type of Gosselin and Angeles, or what else it is."""
    if "RI" in found and "RO" in found:
        return "type III"
    if "RI" in found:
        return "type I"
    if "RO" in found:
        return "type II"
    if "RPM" in found:
        return "passive"
    return "constraint" if found else "regular"
