"""`Run`: what a simulation gives."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from loopdyn.errors import LoopdynError, ModelError, Problem
from loopdyn.events import Event
from loopdyn.integrators.chart import rates
from loopdyn.reactions import COMPONENTS, reactions
from loopdyn.system import State, System
from loopdyn.tree import body_motion, difference, energies, increment, jacobian, power
from loopdyn.wording import nearest

if TYPE_CHECKING:
    import xarray

Array = NDArray[np.float64]

OTHER_SOURCES = ("user forces", "drivers and bases")  # of work, beside the forces of the model
SMALL = 1e-4  # share of an output interval over which rates are differenced; its square is the relative error


@dataclass(frozen=True)
class Statistics:
    """Work of an integrator."""

    steps: int = 0
    rejected: int = 0
    evaluations: int = 0
    seconds: float = 0.0


class RunError(LoopdynError):
    """A run ended before its time."""


@dataclass(frozen=True)
class Trajectory:
    """Results at the output times as plain arrays, row k at time t[k]."""

    t: Array
    q: Array
    v: Array
    a: Array
    work: Array  # (n, sources) of forces, user forces, drivers and bases; no columns where there is nothing of it
    steps: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.t)


@dataclass(frozen=True)
class Diagnostics:
    """What is measured at the output times: energies and residuals of the constraints."""

    energy: Array  # (n, 2) kinetic, in gravity
    momentum: Array  # (n, 6) linear, angular about the world origin
    residual: Array  # (n, 3, nc) position, velocity, acceleration


def measure(system: System, path: Trajectory) -> Diagnostics:
    """Energies, momenta and residuals along a trajectory."""
    n, nc, nv = len(path), system.nc, system.nv
    found = Diagnostics(np.zeros((n, 2)), np.zeros((n, 6)), np.zeros((n, 3, nc)))
    work = system.work()
    w = system.open_work(work)
    out, J, rate = np.empty(8), np.empty((nc, nv)), np.empty(nc)
    for k in range(n):
        w.t[0], w.q[:], w.v[:] = path.t[k], path.q[k], path.v[k]
        energies.energy(system.ints, system.floats, work, out)
        found.energy[k], found.momentum[k] = out[:2], out[2:]
        if nc:
            jacobian.closure(system.ints, system.floats, work, J, rate)
            found.residual[k] = w.phi, rate, J @ path.a[k] - w.gamma
    return found


@dataclass(frozen=True, eq=False)
class Run:
    """A trajectory with everything that is known about it.

    Attributes
    ----------
    system : System
    path : Trajectory
        Plain arrays at the output times; :attr:`data` has the same with labels, and more.
    status : str
        "finished", "stopped" (by an event), "interrupted" (by the user) or "failed".
    message : str
        Why it ended where it did, and what to do next.
    events : tuple of Event
    statistics : Statistics
    settings : mapping
        Formulation, integrator, tolerances, drift control: as words and numbers.
    """

    system: System = field(repr=False)
    path: Trajectory = field(repr=False)
    status: str
    message: str
    events: tuple[Event, ...] = ()
    statistics: Statistics = field(default_factory=Statistics)
    settings: Mapping[str, Any] = field(default_factory=dict)
    jumps: Array = field(default_factory=lambda: np.zeros(0), repr=False)  # (n,) energy that events took away so far

    # ------------------------------------------------------------------------------------------ the results

    @cached_property
    def diagnostics(self) -> Diagnostics:
        """Energies and residuals at the output times."""
        return measure(self.system, self.path)

    @cached_property
    def energy_balance(self) -> Array:
        """Energy at each output time less that of the start and all work done since, J: zero but for errors."""
        energy = self.diagnostics.energy.sum(axis=1)
        jumps = self.jumps if len(self.jumps) else 0.0
        result: Array = energy - energy[0] - self.path.work.sum(axis=1) + jumps
        return result

    @property
    def energy_error(self) -> float:
        """Largest error of the energy balance, relative to the largest energy that moved."""
        if not len(self.path):
            return 0.0
        size = _energy_scale(self.diagnostics.energy, self.path.work)
        return float(np.abs(self.energy_balance).max()) / size if size > 0.0 else 0.0

    @property
    def largest_residual(self) -> float:
        """Largest residual of a loop or constraint at position level, in rad or sizes of the mechanism."""
        return float(np.abs(self.diagnostics.residual[:, 0] / self.system.row_units).max(initial=0.0))

    @cached_property
    def wrench(self) -> tuple[Array, NDArray[np.bool_], Array]:
        """Reactions (n, joints, 6), which components are unique (joints, 6), and loads of other rows (n, rows)."""
        found = [reactions(self.system, self._state(k), self.path.a[k]) for k in range(len(self.path))]
        others = [list(r.multipliers.values()) for r in found]
        names = self._joint_names
        return (
            np.array([r.wrench for r in found]).reshape(-1, len(names), 6),
            np.all(np.array([r.unique for r in found], bool).reshape(-1, len(names), 6), axis=0, keepdims=True)[0],
            np.array(others, float).reshape(len(found), -1),
        )

    @cached_property
    def _joint_names(self) -> tuple[str, ...]:
        return tuple(name for name, j in self.system.absolute.joints.items() if not j.in_tree)

    @cached_property
    def _other_rows(self) -> tuple[str, ...]:
        free = self.system.absolute
        taken = sum(len(free.joints[name].spec.rows_when_cut) for name in self._joint_names)
        return free.constraint_rows[taken:]

    @cached_property
    def data(self) -> xarray.Dataset:
        """Everything with labels and units; reactions are computed when this is first asked for.

        Examples
        --------
        >>> import loopdyn as ld
        >>> system = ld.library.pendulum().compile()
        >>> run = ld.simulate(system, ld.assemble(system), (0, 1), progress=False)
        >>> run.data["q"].dims
        ('time', 'coordinate')
        """
        import xarray as xr

        s, p, d = self.system, self.path, self.diagnostics
        wrench, unique, others = self.wrench
        units = coordinate_units(s)
        per_row = ("time", "row")
        data: dict[str, Any] = {
            "q": (("time", "coordinate"), p.q, {"units": "rad, m or 1 (quaternion)"}),
            "v": (("time", "speed"), p.v, {"units": "rad/s or m/s"}),
            "a": (("time", "speed"), p.a, {"units": "rad/s2 or m/s2"}),
            "wrench": (("time", "joint", "component"), wrench, {"units": "N m, N", "on": "child at M, axes of F"}),
            "unique": (("joint", "component"), unique),
            "constraint_load": (("time", "constraint"), others, {"units": "N or N m"}),
            "energy_kinetic": ("time", d.energy[:, 0], {"units": "J"}),
            "energy_potential": ("time", d.energy[:, 1] + self.elastic_energy, {"units": "J"}),
            "energy_balance": ("time", self.energy_balance, {"units": "J"}),
            "momentum": (("time", "xyz"), d.momentum[:, :3], {"units": "kg m/s"}),
            "angular_momentum": (("time", "xyz"), d.momentum[:, 3:], {"units": "kg m2/s", "about": "world origin"}),
            "residual_position": (per_row, d.residual[:, 0], {"units": "rad or m"}),
            "residual_velocity": (per_row, d.residual[:, 1], {"units": "rad/s or m/s"}),
            "residual_acceleration": (per_row, d.residual[:, 2], {"units": "rad/s2 or m/s2"}),
            "steps": ("time", p.steps),
        }
        coords: dict[str, Any] = {
            "time": ("time", p.t, {"units": "s"}),
            "coordinate": np.array(s.coordinates, str),
            "speed": np.array(s.speeds, str),
            "joint": np.array(self._joint_names, str),
            "component": list(COMPONENTS),
            "row": np.array(s.constraint_rows, str),
            "constraint": np.array(self._other_rows, str),
            "xyz": ["x", "y", "z"],
            "coordinate_units": ("coordinate", units),
        }
        if p.work.shape[1]:
            loads, powers = self.loads
            data["load"] = (("time", "force"), loads, {"units": "N or N m"})
            data["power"] = (("time", "source"), powers, {"units": "W"})
            data["work"] = (("time", "source"), p.work, {"units": "J"})
            coords |= {"force": np.array(s.forces, str), "source": [*s.forces, *OTHER_SOURCES]}
        return xr.Dataset(data, coords, {"name": s.name, **self._attributes()})

    def _attributes(self) -> dict[str, Any]:
        return {"status": self.status, "message": self.message, "settings": json.dumps(dict(self.settings))}

    @cached_property
    def loads(self) -> tuple[Array, Array]:
        """Loads (n, forces) of motors, springs and friction, and powers (n, sources) of all sources of work."""
        s, p = self.system, self.path
        forces = len(s.forces)
        loads, powers = np.zeros((len(p), forces)), np.zeros((len(p), forces + power.N_OTHERS))
        work = s.work()
        w = s.open_work(work)
        for k in range(len(p)):
            w.t[0], w.q[:], w.v[:], w.a[:] = p.t[k], p.q[k], p.v[k], p.a[k]
            w.tau[:] = 0.0
            for force in s.mechanism.user_forces.values():
                force.function(float(p.t[k]), p.q[k].copy(), p.v[k].copy(), w.tau)
            power.power_of_forces(s.ints, s.floats, work, bool(self.settings.get("moved")), powers[k], loads[k])
        return loads, powers

    @cached_property
    def elastic_energy(self) -> Array:
        """Energy in springs between points and on joint coordinates, J."""
        s, p = self.system, self.path
        out = np.zeros(len(p))
        work = s.work()
        w = s.open_work(work)
        if len(s.forces):
            for k in range(len(p)):
                w.t[0], w.q[:], w.v[:] = p.t[k], p.q[k], p.v[k]
                out[k] = power.elastic_energy(s.ints, s.floats, work)
        return out

    def poses(self) -> xarray.Dataset:
        """Position (time, body, xyz) and rotation (time, body, xyz, axis) of every body's frame, bases included."""
        import xarray as xr

        s, p = self.system, self.path
        n, nb = len(p), len(s.bodies)
        position, rotation = np.empty((n, nb, 3)), np.empty((n, nb, 3, 3))
        for k in range(n):
            now = body_motion(s, self._state(k))
            position[k], rotation[k] = now.position, now.rotation
        return xr.Dataset(
            {
                "position": (("time", "body", "xyz"), position, {"units": "m"}),
                "rotation": (("time", "body", "xyz", "axis"), rotation, {"columns": "axes of the body's frame"}),
            },
            {
                "time": ("time", p.t, {"units": "s"}),
                "body": list(s.bodies),
                "xyz": ["x", "y", "z"],
                "axis": ["x", "y", "z"],
            },
        )

    def point(self, body: str, at: ArrayLike) -> xarray.DataArray:
        """Path of a point of a body, given in world coordinates at the reference pose.

        Examples
        --------
        >>> import loopdyn as ld
        >>> system = ld.library.pendulum().compile()
        >>> run = ld.simulate(system, ld.assemble(system), (0, 1), progress=False)
        >>> run.point("bob", at=(-1, 0, 0)).dims
        ('time', 'xyz')
        """
        if body not in self.system.bodies:
            raise ModelError([Problem("point", f"there is no body '{body}'", nearest(body, self.system.bodies))])
        x, R = self.system.reference_poses[self.system.bodies.index(body)]
        own = R.T @ (np.asarray(at, float) - x)
        poses = self.poses().sel(body=body)
        path = poses["position"] + (poses["rotation"].values @ own)
        return path.rename(f"{body}").drop_vars("body").assign_attrs(units="m")

    # -------------------------------------------------------------------------------------- between the times

    def _state(self, k: int) -> State:
        return State(float(self.path.t[k]), self.path.q[k], self.path.v[k])

    def at(self, t: float) -> State:
        """State at any time of the run: that of an output time, or in between a curve through both neighbours.

        Between outputs coordinates follow the curve of degree five through q, v and a of both; the state is as near
        to closed as the outputs are dense.

        Examples
        --------
        >>> import loopdyn as ld
        >>> system = ld.library.pendulum().compile()
        >>> run = ld.simulate(system, ld.assemble(system), (0, 1), progress=False)
        >>> run.at(0.0).q
        array([0.])
        """
        p = self.path
        if not len(p) or not p.t[0] <= t <= p.t[-1]:
            reached = f"from {p.t[0]:g} to {p.t[-1]:g} s" if len(p) else "nowhere"
            raise LoopdynError(f"the run goes {reached}, not to t = {t:g} s. Simulate a longer span.")
        k = int(np.searchsorted(p.t, t, side="right")) - 1
        if p.t[k] == t or k + 1 == len(p):
            return self._state(k)
        s, h = self.system, float(p.t[k + 1] - p.t[k])
        x = (t - p.t[k]) / h
        xi = difference(s, p.q[k], p.q[k + 1])
        v0, a0 = _rates(s, np.zeros(s.nv), p.v[k], p.a[k], h)
        v1, a1 = _rates(s, xi, p.v[k + 1], p.a[k + 1], h)
        b = np.array([xi - h * v0 - h * h / 2 * a0, h * (v1 - v0 - h * a0), h * h * (a1 - a0)])
        c = np.array([[10.0, -4.0, 0.5], [-15.0, 7.0, -1.0], [6.0, -3.0, 0.5]]) @ b
        moved = h * x * v0 + (h * x) ** 2 / 2 * a0 + x**3 * (c[0] + x * (c[1] + x * c[2]))
        # speeds: the cubic through v and a of both
        slope = np.array([h * p.a[k], h * p.a[k + 1]])
        rise = p.v[k + 1] - p.v[k]
        v = p.v[k] + x * slope[0] + x**2 * (3 * rise - 2 * slope[0] - slope[1]) + x**3 * (slope.sum(axis=0) - 2 * rise)
        return State(float(t), increment(s, p.q[k], moved), v)

    def raise_if_failed(self) -> Run:
        """Raise :class:`RunError` if the run failed; else return the run itself."""
        if self.status == "failed":
            raise RunError(self.message)
        return self


def _rates(system: System, xi: Array, v: Array, a: Array, h: float) -> tuple[Array, Array]:
    """First and second derivative of increments xi at speeds v and accelerations a: v and a but for quaternions."""
    d = SMALL * h
    first, ahead, behind = (np.empty(system.nv) for _ in range(3))
    rates(system.ints, xi, v, first)
    rates(system.ints, xi + d * first, v + d * a, ahead)
    rates(system.ints, xi - d * first, v - d * a, behind)
    return first, (ahead - behind) / (2.0 * d)


def _energy_scale(energy: Array, work: Array) -> float:
    """The largest energy that moved: kinetic, in gravity since the start, work of forces."""
    return float(
        max(
            energy[:, 0].max(initial=0.0),
            np.ptp(energy[:, 1]) if len(energy) else 0.0,
            np.abs(work).max(initial=0.0),
        )
    )


def coordinate_units(system: System) -> list[str]:
    """Unit of each coordinate: rad, m, or 1 for the components of a quaternion."""
    units = ["1"] * system.nq
    for j in system.joints.values():
        if j.in_tree:
            for k, dimension in enumerate(j.spec.dimensions):
                units[j.q0 + k] = {"angle": "rad", "length": "m"}.get(dimension, "1")
    return units
