"""`Run`: result of a simulation."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from loopdyn.engine import records as rec
from loopdyn.engine.cached import cached_property
from loopdyn.errors import LoopdynError, RunError
from loopdyn.files import write
from loopdyn.loops.reactions_along import States, reactions_along
from loopdyn.results.balancing import Counterweight
from loopdyn.results.bearings import Bearings
from loopdyn.results.comparison import differences
from loopdyn.results.contacts import compliant_energy, contact_values, indeterminate
from loopdyn.results.dataset import labelled
from loopdyn.results.force_loads import force_loads
from loopdyn.results.interpolation import between
from loopdyn.results.measures import Measured, along_run
from loopdyn.results.path import PathResult
from loopdyn.results.tables import dataframe, summary_table, write_workbook
from loopdyn.results.units import load_dimensions
from loopdyn.run.events import Event
from loopdyn.run.locking import Phase
from loopdyn.run.singular_passage import Passage
from loopdyn.system.labels import FORCE, GAP, IMPULSE, LOAD, Label
from loopdyn.system.system import State, System
from loopdyn.tables import csv_text
from loopdyn.tree import kinematics, path_measures, power
from loopdyn.tree.user_rows import user_rows

if TYPE_CHECKING:
    import pandas
    import xarray

    from loopdyn.output.plot.runs import RunPlots

Array = NDArray[np.float64]

# Fraction of the weight times the size of the mechanism below which energies are rounding.
NO_ENERGY = 1e-6


@dataclass(frozen=True)
class Statistics:
    """Counts of an integrator, and computing time in seconds: in all, and for the integration alone."""

    steps: int = 0
    rejected: int = 0
    evaluations: int = 0
    seconds: float = 0.0
    integrating: float = 0.0  # without preparation; includes checks of outputs and events


@dataclass(frozen=True)
class Trajectory:
    """Results at the output times as plain arrays, row k at time t[k]."""

    t: Array
    q: Array
    v: Array
    a: Array
    work: Array  # (n, sources) of forces, user forces, drivers and bases; no columns for absent sources
    steps: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.t)

    def __getitem__(self, part: slice) -> Trajectory:
        return Trajectory(*(getattr(self, f.name)[part] for f in fields(self)))


@dataclass(frozen=True)
class Diagnostics:
    """Diagnostics at the output times: energies, momenta and residuals of the constraints."""

    energy: Array  # (n, 2) kinetic, in gravity
    momentum: Array  # (n, 6) linear, angular about the world origin
    residual: Array  # (n, 3, nc) position, velocity, acceleration


def measure(system: System, path: Trajectory) -> Diagnostics:
    """Energies, momenta and residuals along a trajectory."""
    n = len(path)
    balance, residual = np.zeros((n, 8)), np.zeros((n, 3, system.nc))
    if n:
        arrays = path.t, path.q, path.v, path.a
        path_measures.measures(system.ints, system.floats, system.work(), arrays, balance, residual)
    if system.mechanism.user_constraints:  # called from Python, state by state
        user = user_rows(system)
        for k in range(n):
            found = user(path.t[k], path.q[k], path.v[k])
            residual[k, :, -len(found.phi) :] = found.phi, found.rate, found.J @ path.a[k] - found.gamma
    return Diagnostics(balance[:, :2], balance[:, 2:], residual)


def pieces(phases: Sequence[Phase], start: int, stop: int) -> list[tuple[System, int, int]]:
    """Outputs from `start` to `stop` by phase: system, first output, and one past the last."""
    ends = [*(p.first for p in phases[1:]), stop]
    found = [(p.system, max(p.first, start), min(end, stop)) for p, end in zip(phases, ends, strict=True)]
    return [(system, a, b) for system, a, b in found if b > a]


@dataclass(frozen=True, eq=False)
class Run(PathResult):
    """Result of a simulation: a trajectory, its events, statistics and derived quantities.

    Attributes
    ----------
    system : System
    path : Trajectory
        Plain arrays at the output times, SI; :attr:`data` and ``run["A"]`` have them in the declared units, and more.
    status : str
        "finished", "stopped" (by an event), "interrupted" (by the user) or "failed".
    message : str
        Reason why it ended, and what to do.
    events : tuple of Event
    statistics : Statistics
    settings : mapping
        Formulation, integrator, tolerances, drift control, as text and numbers.
    passages : tuple of Passage
        Singular passages and near misses.
    """

    system: System = field(repr=False)
    path: Trajectory = field(repr=False)
    status: str
    message: str
    events: tuple[Event, ...] = ()
    statistics: Statistics = field(default_factory=Statistics)
    settings: Mapping[str, Any] = field(default_factory=dict)
    jumps: Array = field(default_factory=lambda: np.zeros(0), repr=False)  # (n,) energy dissipated by events so far
    phases: tuple[Phase, ...] = field(default=(), repr=False)  # with changed constraints; empty: one phase
    # (n, nv) independent speeds, and the criterion of their choice; empty for other formulations
    active: NDArray[np.bool_] = field(default_factory=lambda: np.zeros((0, 0), bool), repr=False)
    criterion: Array = field(default_factory=lambda: np.zeros((0, 0)), repr=False)
    passages: tuple[Passage, ...] = ()

    def __getstate__(self) -> dict[str, Any]:
        """Copy of all that is known: reading :attr:`data` while it is pickled keeps further results here."""
        return dict(self.__dict__)

    # ------------------------------------------------------------------------------------------ the results

    @property
    def samples(self) -> Trajectory:
        """Motion at the output times, SI: :attr:`path`; no accelerations where contacts act in momentum steps."""
        stepped = np.zeros(len(self.path), bool)
        for p in self.passages:
            stepped |= (p.contacts is not None) & (self.path.t >= p.start) & (self.path.t <= p.stop)
        return replace(self.path, a=np.where(stepped[:, None], np.nan, self.path.a)) if stepped.any() else self.path

    def _loads(self, label: Label) -> Array:
        if label.kind == "reaction":
            return self.wrench[0][:, self.joints.index(label.element), label.index]
        if label.kind == "constraint load":
            return self.wrench[2][:, list(self._other_rows).index(label.name.removesuffix(LOAD))]
        if label.kind in (GAP, FORCE, IMPULSE):
            return contact_values(self, label)
        return self.loads[label.kind == "power"][:, label.index]

    def _remarks(self, label: Label) -> dict[str, bool]:
        return {"indeterminate": True} if label.kind == FORCE and indeterminate(self, label.element) else {}

    @cached_property
    def pieces(self) -> list[tuple[System, int, int]]:
        """System, first output and one past the last of each phase."""
        return pieces(self.phases or (Phase(self.system),), 0, len(self.path))

    @cached_property
    def _rows(self) -> dict[str, str]:
        """Labels of all constraint rows of all phases, with their dimensions."""
        systems = [self.system, *(system for system, _, _ in self.pieces)]
        return {label: d for s in systems for label, d in zip(s.constraint_rows, s.row_dimensions, strict=True)}

    @cached_property
    def diagnostics(self) -> Diagnostics:
        """Energies and residuals at the output times; residuals of rows that are inactive then are zero."""
        n, rows = len(self.path), list(self._rows)
        found = Diagnostics(np.zeros((n, 2)), np.zeros((n, 6)), np.zeros((n, 3, len(rows))))
        for system, a, b in self.pieces:
            part = measure(system.exact or system, self.path[a:b])  # including residuals of rows that are left open
            found.energy[a:b], found.momentum[a:b] = part.energy, part.momentum
            found.residual[a:b, :, [rows.index(label) for label in system.constraint_rows]] = part.residual
        return found

    @cached_property
    def energy_balance(self) -> Array:
        """Energy at each output time minus the initial energy and all work done since, J: zero up to errors."""
        jumps = self.jumps if len(self.jumps) else 0.0
        known: Array = self.diagnostics.energy.sum(axis=1) - self.path.work.sum(axis=1) + jumps
        balance: Array = known - known[:1]
        return balance

    @property
    def energy_error(self) -> float:
        """Relative energy-balance error: the largest error divided by the largest energy exchanged.

        The energy exchanged is taken as at least a millionth of the weight times the size of the mechanism: at rest it
        is rounding.
        """
        if not len(self.path):
            return 0.0
        size = max(_energy_scale(self.diagnostics.energy, self.path.work), least_energy(self.system))
        return float(np.abs(self.energy_balance).max()) / size if size > 0.0 else 0.0

    @property
    def decided(self) -> str:
        """Automatic decisions of the run, in one line; empty if none."""
        auto = str(self.settings.get("formulation", "")).startswith("Auto")
        choice = [str(self.settings["plan"]).replace("\n", "; ")] if auto and "plan" in self.settings else []
        piles = sum(p.contacts is not None for p in self.passages)
        through = sum(p.unbounded for p in self.passages) - piles
        missed = sum(not (p.through or p.unbounded) for p in self.passages)
        beside = len(self.passages) - through - missed - piles
        counted = {
            "contacts by momentum steps, of first order": piles,
            "singular passages by momentum steps": through,
            "near misses of singular poses by small steps": missed,
            "nearly singular poses by momentum steps": beside,
        }
        found = choice + [f"{what}: {count}" for what, count in counted.items() if count]
        found += ["a switch to the stiff integrator" for e in self.events if e.kind == "stiff"]
        switches = sum(e.kind == "coordinate switch" for e in self.events)
        found += [f"coordinate switches: {switches}"] if switches else []
        if self.left_open:
            unit = self.system.units.symbol
            left = ", ".join(f"{row} {x:.1e} {unit(self._rows[row])}" for row, x in self.left_open.items())
            found.append(f"redundant constraints left open within the tolerance, largest residuals: {left}")
        return "; ".join(found)

    @property
    def largest_residual(self) -> float:
        """Largest residual of a loop or constraint at position level, in natural units (rad, or relative to the size).

        Redundant constraints that are left open within a tolerance are excluded, see :attr:`left_open`.
        """
        units = np.array([1.0 if d == "angle" else self.system.size for d in self._rows.values()])
        kept = np.where(self._tolerated, 0.0, self.diagnostics.residual[:, 0] / units)
        return float(np.abs(kept).max(initial=0.0))

    @cached_property
    def _tolerated(self) -> NDArray[np.bool_]:
        """Flags (n, rows) of rows that are left open within a tolerance at the output times."""
        rows, found = list(self._rows), np.zeros((len(self.path), len(self._rows)), bool)
        for system, a, b in self.pieces:
            if system.tolerated is not None:
                found[a:b, [rows.index(label) for label in system.tolerated.rows]] = True
        return found

    @property
    def left_open(self) -> dict[str, float]:
        """Redundant constraints that are left open within a tolerance: the largest residual of each, declared units."""
        largest = np.where(self._tolerated, np.abs(self.diagnostics.residual[:, 0]), 0.0).max(axis=0, initial=0.0)
        rows, units = list(self._rows), [self.system.units.factor(d) for d in self._rows.values()]
        return {rows[k]: float(largest[k]) / units[k] for k in np.flatnonzero(self._tolerated.any(axis=0)).tolist()}

    @cached_property
    def wrench(self) -> tuple[Array, NDArray[np.bool_], Array]:
        """Reactions (n, joints, 6), which components are unique (joints, 6), and loads of other rows (n, rows).

        Inactive elements have zero loads. In singular passages forces may be unbounded and are NaN; ``passages`` have
        the impulses.
        """
        n, names, rows = len(self.path), self.joints, list(self._other_rows)
        wrench, unique, others = np.zeros((n, len(names), 6)), np.ones((len(names), 6), bool), np.zeros((n, len(rows)))
        for system, a, b in self.pieces:
            k, p = a + np.flatnonzero(~self.unbounded[a:b]), self.path
            found = reactions_along(system, States(p.t[k], p.q[k], p.v[k], p.a[k]))
            there = [names.index(name) for name in found.joints]
            wrench[k[:, None], there] = found.wrench
            unique[there] &= found.unique.all(axis=0)
            others[k[:, None], [rows.index(label) for label in found.rows]] = found.multipliers
        wrench[self.unbounded], others[self.unbounded] = np.nan, np.nan
        return wrench, unique, others

    @cached_property
    def unbounded(self) -> NDArray[np.bool_]:
        """Flags (n,) of output times inside singular passages, where forces may be unbounded."""
        inside = np.zeros(len(self.path), bool)
        for p in self.passages:
            inside |= p.unbounded & (self.path.t >= p.start) & (self.path.t <= p.stop)
        return inside

    @cached_property
    def joints(self) -> tuple[str, ...]:
        """Names of all joints that carry reactions, in the order of :attr:`wrench`."""
        return tuple(self.system.mechanism.joints)

    @cached_property
    def _other_rows(self) -> dict[str, str]:
        """Rows of constraints and drivers of all phases, with the dimensions of their loads."""
        found: dict[str, str] = {}
        for system in (self.system, *(system for system, _, _ in self.pieces)):
            taken = sum(len(j.spec.rows_when_cut) for j in system.joints.values() if not j.in_tree)
            loads = load_dimensions(system.row_dimensions[taken:])
            found |= dict(zip(system.constraint_rows[taken:], loads, strict=True))
        return found

    @cached_property
    def data(self) -> xarray.Dataset:  # computed once
        """Dataset of all results with labels and declared units; energies, powers and momenta are SI.

        ``units`` of a variable is its unit, or the name of the coordinate that has one for each label.

        A variable is computed when it is read: coordinates alone cost nothing, printing computes nothing, and
        ``run.data.load()`` computes all. What is computed belongs to the Dataset: writing into it does not change the
        run.

        Examples
        --------
        >>> import loopdyn as ld
        >>> system = ld.library.pendulum().compile()
        >>> run = ld.simulate(system, ld.assemble(system), (0, 1), progress=False)
        >>> run.data["q"].dims
        ('time', 'coordinate')
        """
        return labelled(self)

    @cached_property
    def loads(self) -> tuple[Array, Array]:
        """Loads (n, forces), and powers (n, sources) of all sources of work.

        The load of a spring or actuator between two points is its tension, that of a motor, spring or friction on a
        joint acts on its coordinate; that of a bushing or an applied force is the magnitude of its force or, if it has
        torques only, of its torque.
        """
        p = self.path
        return force_loads(self.system, States(p.t, p.q, p.v, p.a), bool(self.settings.get("moved")))

    @cached_property
    def _measured(self) -> Measured:
        return along_run(self)

    @cached_property
    def elastic_energy(self) -> Array:
        """Elastic energy of springs between points and on joint coordinates, of bushings and compliant stops, J."""
        s, p = self.system, self.path
        out = compliant_energy(self)
        work = s.work()
        w = s.open_work(work)
        if len(s.forces):
            for k in range(len(p)):
                w.t[0], w.q[:], w.v[:] = p.t[k], p.q[k], p.v[k]
                out[k] += power.elastic_energy(s.ints, s.floats, work)
        return out

    # -------------------------------------------------------------------------------------- between the times

    def state(self, k: int) -> State:
        """State at output k."""
        if not -len(self.path) <= k < len(self.path):
            raise LoopdynError(f"the run has outputs 0 to {len(self.path) - 1}, not {k}.")
        system = next(system for system, a, b in self.pieces if a <= k % len(self.path) < b)
        p = self.path
        return State(float(p.t[k]), p.q[k], p.v[k], tolerated=system.tolerated, system=self.system)

    def at(self, t: float) -> State:
        """State at any time of the run, interpolated between outputs.

        Between two outputs coordinates follow the quintic polynomial through q, v and a of both, and speeds its
        derivative; the denser the outputs, the better the state is closed.

        Examples
        --------
        >>> import loopdyn as ld
        >>> system = ld.library.pendulum().compile()
        >>> run = ld.simulate(system, ld.assemble(system), (0, 1), progress=False)
        >>> run.at(0.0)["A"]
        0.0
        """
        p = self.path
        if not len(p) or not p.t[0] <= t <= p.t[-1]:
            reached = f"from {p.t[0]:g} to {p.t[-1]:g} s" if len(p) else "nowhere"
            raise LoopdynError(f"the run goes {reached}, not to t = {t:g} s. Simulate a longer span.")
        k = int(np.searchsorted(p.t, t, side="right")) - 1
        if p.t[k] == t or k + 1 == len(p):
            return self.state(k)
        state = between(self.system, p, k, t)
        return replace(state, tolerated=self.state(k).tolerated, system=self.system)

    # ------------------------------------------------------------------------------------- summary, comparison

    @cached_property
    def shaking(self) -> Array:
        """Shaking force and moment (n, 6) on the ground, moment about the world origin, weight included.

        Force first. Reactions of applied forces are counted as if they acted on the ground.
        """
        s, p = self.system, self.path
        body, g = s.model.body[s.n_bases :], np.asarray(s.model.gravity)
        mass, com = body[:, rec.MASS, None], body[:, rec.COM : rec.COM + 3]
        I = s.inertias[s.n_bases :]
        out = np.zeros((len(p), 6))
        work = s.work()
        w = s.open_work(work)
        for k in range(len(p)):
            w.t[0], w.q[:], w.v[:], w.a[:] = p.t[k], p.q[k], p.v[k], p.a[k]
            kinematics.move(s.ints, s.floats, work)
            B = w.body[s.n_bases :]
            R = B[:, rec.R : rec.R + 9].reshape(-1, 3, 3)
            omega, alpha = B[:, rec.W : rec.W + 3], B[:, rec.AW : rec.AW + 3]
            c = np.einsum("nij,nj->ni", R, com)
            a = B[:, rec.AV : rec.AV + 3] + np.cross(alpha, c) + np.cross(omega, np.cross(omega, c))
            inertia = R @ I @ R.transpose(0, 2, 1)
            spin = np.einsum("nij,nj->ni", inertia, alpha) + np.cross(omega, np.einsum("nij,nj->ni", inertia, omega))
            force = mass * (a - g)
            out[k, :3] = -force.sum(axis=0)
            out[k, 3:] = -(np.cross(B[:, rec.X : rec.X + 3] + c, force) + spin).sum(axis=0)
        return out

    def bearings(self) -> Bearings:
        """Loads of all bearings in world and body axes, with peaks, means and RMS; prints as a table.

        Examples
        --------
        >>> import loopdyn as ld
        >>> system = ld.library.four_bar().compile()
        >>> run = ld.simulate(system, ld.assemble(system), (0, 1), progress=False)
        >>> force, moment, known = run.bearings().load("C", axes="child")
        >>> force.shape, known.tolist()
        ((201, 3), [True, True, False, False, False, True])
        """
        wrench, unique, _ = self.wrench
        return Bearings.of(self.system, self.path.t, self.path.q, self.joints, wrench, unique)

    def counterweight(
        self, body: str, mass: float, at: ArrayLike, *, motors: Sequence[str] | None = None
    ) -> Counterweight:
        """Effect of a mass added to a body in the same motion: shaking, bearings, motors.

        The motion is assumed unchanged, with motor loads adapted to the mass; a run of the changed model would move
        differently unless drivers prescribe its motion.

        Parameters
        ----------
        body : str
        mass : float
            Point mass in the declared unit; negative for removed material.
        at : (3,)
            Position in world coordinates at the reference pose, in the declared unit.
        motors : list of labels, optional
            Motors that produce the motion, see :func:`loopdyn.inverse_dynamics`; by default the motors and drivers of
            the model. Required if these are redundant.

        Examples
        --------
        >>> import loopdyn as ld
        >>> system = ld.library.slider_crank().compile()
        >>> run = ld.simulate(system, ld.assemble(system), (0, 0.5), progress=False)
        >>> change = run.counterweight("crank", 1.0, at=(-0.1, -0.05, 0), motors=["A"])
        >>> change.after.shape == change.before.shape
        True
        """
        return Counterweight(self, body, float(mass), tuple(np.ravel(at).tolist()), motors)

    def summary(self) -> pandas.DataFrame:
        """Smallest and largest value with their times, and RMS over time, of reactions, loads, powers and the shaking.

        Statically indeterminate components are marked by a question mark.

        Examples
        --------
        >>> import loopdyn as ld
        >>> system = ld.library.pendulum().compile()
        >>> run = ld.simulate(system, ld.assemble(system), (0, 1), progress=False)
        >>> "A.fy" in run.summary().index
        True
        """
        return summary_table(self)

    def compare(self, other: Run) -> pandas.DataFrame:
        """Largest differences from another run at the times of this one, with their times.

        Compares coordinates, speeds and unique reactions that both runs have, and the energies.

        Examples
        --------
        >>> import loopdyn as ld
        >>> system = ld.library.pendulum().compile()
        >>> runs = [ld.simulate(system, ld.assemble(system), (0, 1), rtol=r, progress=False) for r in (1e-8, 1e-10)]
        >>> bool(runs[0].compare(runs[1])["largest"].max() < 1e-5)
        True
        """
        return differences(self, other)

    # -------------------------------------------------------------------------------------------------- plots

    @property
    def plot(self) -> RunPlots:
        """Plots with matplotlib: ``run.plot.reactions("C")``, ``run.plot.energies()`` and others."""
        from loopdyn.output.plot.runs import RunPlots

        return RunPlots(self)

    def animate(self, path: str | os.PathLike[str], **options: Any) -> Path:
        """Write a page for the browser (.html), a film (.gif, .mp4) or a picture (.png) of the motion.

        Options are those of :func:`loopdyn.output.viewer.page.write_page` and
        :func:`loopdyn.output.plot.film.write_film`.
        """
        from loopdyn.output.animation import animate

        return animate(self, Path(path), **options)

    # ------------------------------------------------------------------------------------------- files

    def to_dataframe(self) -> pandas.DataFrame:
        """One row per time: coordinates, speeds, accelerations, reactions, energies, residuals.

        ``unbounded`` marks times in singular passages, at which no forces are given.
        """
        return dataframe(self)

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write :meth:`to_dataframe` to a file, all digits kept."""
        write(path, csv_text(self.to_dataframe()))

    def to_excel(self, path: str | os.PathLike[str]) -> None:
        """Write :meth:`summary`, the table of :meth:`bearings`, events and settings to sheets of a workbook.

        Examples
        --------
        >>> import tempfile, loopdyn as ld
        >>> system = ld.library.pendulum().compile()
        >>> run = ld.simulate(system, ld.assemble(system), (0, 1), progress=False)
        >>> run.to_excel(tempfile.mkdtemp() + "/run.xlsx")
        """
        write_workbook(self, Path(path))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything, the model included, to a NetCDF file; :func:`loopdyn.load_run` reads it."""
        from loopdyn.io.runs import save_run

        save_run(self, path)

    def __str__(self) -> str:
        t = self.path.t
        span = f"{len(t)} outputs from {t[0]:g} to {t[-1]:g} s" if len(t) else "no outputs"
        lines = [f"{self.system.name}: {self.status}, {span}", *([self.message] if self.message else [])]
        lines.append(f"energy-balance error {self.energy_error:.1e}, largest residual {self.largest_residual:.1e}")
        return "\n".join([*lines, *(f"{e.t:.6g} s: {e.name}" for e in self.events)])

    def raise_if_failed(self) -> Run:
        """Raise :class:`RunError` if the run failed; else return the run itself."""
        if self.status == "failed":
            raise RunError(self.message)
        return self


def _energy_scale(energy: Array, work: Array) -> float:
    """Largest energy exchanged: kinetic, change of potential energy of gravity, work of forces."""
    return float(
        max(
            energy[:, 0].max(initial=0.0),
            np.ptp(energy[:, 1]) if len(energy) else 0.0,
            np.abs(work).max(initial=0.0),
        )
    )


def least_energy(system: System) -> float:
    """Energy in J below which an exchange of energy is rounding."""
    return NO_ENERGY * system.weight * system.size
