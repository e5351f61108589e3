"""Result of `inverse_dynamics`: motor loads along a motion, as text, tables and plots."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from loopdyn.analysis.contradictions import largest_open, said_open
from loopdyn.errors import LoopdynError
from loopdyn.files import write
from loopdyn.forces import Table
from loopdyn.loops.reactions_along import States, reactions_along
from loopdyn.model.mechanism import Mechanism
from loopdyn.quantities.wording import unknown
from loopdyn.results.bearings import Bearings, rms
from loopdyn.results.path import PathResult
from loopdyn.results.units import coordinate_units, dimensions, factors, load_dimensions, shown, symbols
from loopdyn.system.labels import Label
from loopdyn.system.system import State, System
from loopdyn.tables import csv_text

if TYPE_CHECKING:
    import pandas
    import xarray
    from matplotlib.figure import Figure

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class InverseDynamics(PathResult):
    """Motor loads along a motion; prints as a table. Its arrays are SI, :attr:`data` and tables in declared units.

    Attributes
    ----------
    system : System
        Mechanism without the motors and drivers that the motors replace.
    motors : tuple of str
        Labels of the joint speeds on which the motors act.
    dimensions : tuple of str
        "torque" or "force" for each motor.
    t, q, v, a : arrays
        The motion.
    load, speed : (n, motors) arrays
        SI. NaN where the mechanism is in a singular pose.
    internal : (n, motors) array
        Self-balanced part of the loads, which does not affect the motion.
    residual : (n, nv) array
        Generalised forces, by speed of the tree, that the motion needs and no motor can supply.
    possible : (n,) array of bool
        Whether the residual is zero up to rounding.
    freedoms, rank : int
        Degrees of freedom of the mechanism, and number of them that the motors can drive independently.
    rule : str
        Distribution of loads among redundant motors; empty if none is redundant.
    replaced : tuple of str
        Motors and drivers of the model that were left out.
    pieces : tuple
        Parts with one set of constraints: the mechanism, the first sample and one past the last; a single part unless
        constraints change within the motion.
    """

    system: System = field(repr=False)
    motors: tuple[str, ...]
    dimensions: tuple[str, ...]
    t: Array = field(repr=False)
    q: Array = field(repr=False)
    v: Array = field(repr=False)
    a: Array = field(repr=False)
    load: Array = field(repr=False)
    speed: Array = field(repr=False)
    internal: Array = field(repr=False)
    residual: Array = field(repr=False)
    possible: NDArray[np.bool_] = field(repr=False)
    freedoms: int
    rank: int
    rule: str
    replaced: tuple[str, ...]
    pieces: tuple[tuple[System, int, int], ...] = field(repr=False)

    @property
    def verdict(self) -> str:
        """Statement whether the mechanism is fully, under- or over-actuated."""
        n = len(self.motors)
        under = f"{self.freedoms - self.rank} of {self.freedoms} degrees of freedom without a motor"
        over = f"{n - self.rank} of {n} motors redundant"
        if self.rank < self.freedoms:
            return f"under-actuated: {under}" + (f"; {over}" if n > self.rank else "")
        return f"over-actuated: {over}" if n > self.rank else "fully actuated"

    @property
    def power(self) -> Array:
        """Power (n, motors) of each motor, W."""
        return self.load * self.speed

    @property
    def samples(self) -> InverseDynamics:
        """Motion, SI: the result itself has its arrays t, q, v, a."""
        return self

    def _loads(self, label: Label) -> Array:
        if label.kind == "reaction":
            names = list(self.system.mechanism.joints)
            return self.wrench[0][:, names.index(label.element), label.index]
        raise LoopdynError(
            f"inverse dynamics has no '{label.name}'. It has reactions, and loads of motors by their coordinates: "
            f"data['load'].sel(motor='{self.motors[0]}')."
        )

    @cached_property
    def _motor_units(self) -> tuple[list[str], list[str], Array, Array]:
        """Declared units of the loads and speeds of the motors, and their SI values."""
        s, moved = self.system, [self.system.labels.speeds[label].dimension for label in self.motors]
        return symbols(s, self.dimensions), symbols(s, moved, 1), factors(s, self.dimensions), factors(s, moved)

    @cached_property
    def data(self) -> xarray.Dataset:  # type: ignore[override]  # computed once
        """Dataset of all results, with labels and declared units; powers are in W."""
        from loopdyn.quantities.labels import dataset

        s, by_motor, by_speed = self.system, ("time", "motor"), ("time", "speed")
        units, speed_symbols, one, one_speed = self._motor_units
        moved = dimensions(s, "speed")
        loads = load_dimensions(moved)
        inner = {"units": "motor_units", "means": "self-balanced part of the load"}
        q = shown(s, self.q, dimensions(s, "coordinate"))
        return dataset(
            {
                "load": (by_motor, self.load / one, {"units": "motor_units"}),
                "motor_speed": (by_motor, self.speed / one_speed, {"units": "motor_speed_units"}),
                "power": (by_motor, self.power, {"units": "W"}),
                "internal": (by_motor, self.internal / one, inner),
                "residual": (by_speed, shown(s, self.residual, loads), {"units": "residual_units"}),
                "possible": ("time", self.possible),
                "q": (("time", "coordinate"), q, {"units": "coordinate_units"}),
                "v": (by_speed, shown(s, self.v, moved), {"units": "speed_units"}),
                "a": (by_speed, shown(s, self.a, moved), {"units": "acceleration_units"}),
            },
            {
                "time": ("time", self.t, {"units": "s"}),
                "motor": np.array(self.motors, str),
                "motor_units": ("motor", np.array(units, str)),
                "motor_speed_units": ("motor", np.array(speed_symbols, str)),
                "speed": np.array(s.speeds, str),
                "speed_units": ("speed", np.array(symbols(s, moved, 1), str)),
                "acceleration_units": ("speed", np.array(symbols(s, moved, 2), str)),
                "residual_units": ("speed", np.array(symbols(s, loads), str)),
                "coordinate": np.array(s.coordinates, str),
                "coordinate_units": ("coordinate", np.array(coordinate_units(s), str)),
            },
            {"name": s.name, "verdict": self.verdict, "rule": self.rule, "replaced": ", ".join(self.replaced)},
        )

    def _columns(self) -> dict[str, tuple[str, Array]]:
        """Load, speed and power (n,) of each motor in declared units, and their units, by name."""
        units, moved, one, one_speed = self._motor_units
        found: dict[str, tuple[str, Array]] = {}
        for k, motor in enumerate(self.motors):
            found[f"{motor} load"] = units[k], self.load[:, k] / one[k]
            found[f"{motor} speed"] = moved[k], self.speed[:, k] / one_speed[k]
            found[f"{motor} power"] = "W", self.power[:, k]
        return found

    def table(self) -> pandas.DataFrame:
        """Peak with its time and RMS of load, speed and power of each motor, in declared units."""
        import pandas as pd

        rows = {}
        known = np.isfinite(self.load)
        for n, (name, (unit, every)) in enumerate(self._columns().items()):
            there = known[:, n // 3]
            values, t = every[there], self.t[there]
            if len(values):
                peak = int(np.argmax(np.abs(values)))
                rows[name] = (unit, values[peak], t[peak], rms(values, t), values.min(), values.max())
        return pd.DataFrame.from_dict(rows, orient="index", columns=["unit", "peak", "t_peak", "rms", "min", "max"])

    def __str__(self) -> str:
        lines = [f"{self.system.name}: {self.verdict}, {len(self.t)} times from {self.t[0]:g} to {self.t[-1]:g} s"]
        if self.rule:
            lines.append(f"distribution: {self.rule}")
        if self.replaced:
            lines.append(f"motors and drivers of the model replaced by these loads: {', '.join(self.replaced)}")
        lines.append(f"{'':<14}{'peak':>12}{'at t in s':>12}{'RMS':>12}  unit")
        for name, (unit, peak, t, mean, *_) in self.table().iterrows():
            lines.append(f"{name!s:<14}{peak:>12.5g}{t:>12.5g}{mean:>12.5g}  {unit}")
        missing = int(np.count_nonzero(~np.isfinite(self.load).all(axis=1)))
        if missing:
            lines.append(f"not given at {missing} times in or near singular poses, where loads are not unique")
        if not self.possible.all():
            lines.append(what_is_missing(self))
        if self.left_open:
            lines.append(said_open(self.system, self.left_open))
        return "\n".join(lines)

    def to_dataframe(self) -> pandas.DataFrame:
        """One row per time: load, speed and power of each motor, in declared units, which the names contain."""
        import pandas as pd

        columns = {f"{name} in {unit}": values for name, (unit, values) in self._columns().items()}
        return pd.DataFrame(columns, index=pd.Index(self.t, name="time in s"))

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write :meth:`to_dataframe` to a file, all digits kept."""
        write(path, csv_text(self.to_dataframe()))

    def state(self, k: int) -> State:
        """State k of the motion."""
        if not -len(self.t) <= k < len(self.t):
            raise LoopdynError(f"the motion has states 0 to {len(self.t) - 1}, not {k}.")
        piece = next(s for s, first, end in self.pieces if first <= k % len(self.t) < end)
        return State(float(self.t[k]), self.q[k], self.v[k], tolerated=piece.tolerated, system=self.system)

    @cached_property
    def left_open(self) -> dict[str, float]:
        """Redundant constraints that are left open within a tolerance: largest residual of each, declared units."""
        return largest_open((s, self.state(k)) for s, first, end in self.pieces for k in range(first, end))

    @cached_property
    def wrench(self) -> tuple[Array, NDArray[np.bool_]]:
        """Reactions (n, joints, 6) with these loads, and which are unique (joints, 6), as in :attr:`Run.wrench`."""
        names = tuple(self.system.mechanism.joints)
        wrench, unique = np.full((len(self.t), len(names), 6), np.nan), np.ones((len(names), 6), bool)
        for system, first, end in self.pieces:
            k = first + np.flatnonzero(np.isfinite(self.load[first:end]).all(axis=1))
            loads = dict(zip(self.motors, self.load[k].T, strict=True))
            found = reactions_along(system, States(self.t[k], self.q[k], self.v[k], self.a[k]), loads)
            order = [names.index(name) for name in found.joints]
            wrench[k] = 0.0  # reactions of joints that are released then
            wrench[k[:, None], order] = found.wrench
            unique[order] &= found.unique.all(axis=0)
        return wrench, unique

    def bearings(self) -> Bearings:
        """Loads of all bearings along the motion, as in :meth:`Run.bearings`."""
        wrench, unique = self.wrench
        return Bearings.of(self.system, self.t, self.q, tuple(self.system.mechanism.joints), wrench, unique)

    def mechanism(self) -> Mechanism:
        """Model with a motor for each load, given as a table of ``t``: its simulation reproduces the motion.

        Between the times loads follow a smooth curve through the samples. Motors are named after their coordinates,
        e.g. ``"motor_A"``.
        """
        if len(self.pieces) > 1:
            raise LoopdynError("constraints change within the motion, but a model has one set of them. Split the run.")
        if len(self.t) < 2 or np.any(np.diff(self.t) <= 0.0) or not np.isfinite(self.load).all():
            raise LoopdynError("motors of a model need loads at two or more ascending times. Give such times.")
        m = self.system.mechanism.model_copy(deep=True)
        for k, (label, key) in enumerate(zip(self.motors, self.dimensions, strict=True)):
            values = self.load[:, k] / m.units.factor(key)
            law = Table(of="t", points=np.column_stack([self.t, values]).tolist(), interpolation="cubic")
            m.add_motor(element_name("motor", label), label, **{key: law})
        return m

    def plot(self, *motors: str) -> Figure:
        """Plot load over speed of motors, for comparison with their characteristics: a closed curve over a cycle.

        Parameters
        ----------
        *motors : str
            Labels of the motors to show; by default all.
        """
        from loopdyn.output.plot.motors import plot_motors

        wrong = [label for label in motors if label not in self.motors]
        if wrong:
            raise unknown("plot", "motor", wrong, self.motors)
        return plot_motors(self, motors or self.motors)

    def animate(self, path: str | os.PathLike[str], **options: Any) -> Path:
        """Write a page (.html), a film (.gif, .mp4) or a picture (.png) of the motion, as :meth:`Run.animate`."""
        from loopdyn.output.animation import animate

        return animate(self, Path(path), **options)


def what_is_missing(found: InverseDynamics) -> str:
    """Message with the largest load that the motion needs and no motor can supply."""
    worst = np.abs(found.residual / np.where(found.system.turning, 1.0, 1.0 / found.system.size))
    k, n = np.unravel_index(int(np.argmax(worst)), worst.shape)
    label = found.system.speeds[int(n)]
    (dimension,) = load_dimensions(dimensions(found.system, "speed")[int(n) : int(n) + 1])
    units = found.system.units
    load = f"{found.residual[k, n] / units.factor(dimension):.4g} {units.symbol(dimension)}"
    return (
        f"the motors {', '.join(found.motors)} cannot produce this motion of '{found.system.name}' ({found.verdict}): "
        f"at t = {found.t[int(k)]:g} s a load of {load} is missing on {label}, which none "
        "of them can supply."
    )


def element_name(what: str, label: str) -> str:
    """Name of an element that acts on a coordinate, with dots of the label replaced."""
    return f"{what}_{label.replace('.', '_')}"
