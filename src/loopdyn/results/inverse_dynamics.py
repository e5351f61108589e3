"""Result of `inverse_dynamics`: motor loads along a motion, as text, tables and plots."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from loopdyn.analysis.contradictions import largest_open, said_open
from loopdyn.errors import LoopdynError
from loopdyn.files import write
from loopdyn.forces import Table
from loopdyn.loops.reactions_along import States, reactions_along
from loopdyn.model.mechanism import Mechanism
from loopdyn.results.bearings import Bearings
from loopdyn.system.system import State, System
from loopdyn.tables import csv_text

if TYPE_CHECKING:
    import pandas
    import xarray
    from matplotlib.figure import Figure

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class InverseDynamics:
    """Motor loads along a motion; prints as a table.

    Attributes
    ----------
    system : System
        Mechanism without the motors and drivers that the motors replace.
    motors : tuple of str
        Labels of the joint speeds on which the motors act.
    units : tuple of str
        "N m" or "N" for each motor.
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
    units: tuple[str, ...]
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

    @cached_property
    def data(self) -> xarray.Dataset:
        """Dataset of all results, with labels and units."""
        from loopdyn.quantities.labels import dataset

        by_motor = ("time", "motor")
        return dataset(
            {
                "load": (by_motor, self.load, {"units": "N m or N"}),
                "speed": (by_motor, self.speed, {"units": "rad/s or m/s"}),
                "power": (by_motor, self.power, {"units": "W"}),
                "internal": (by_motor, self.internal, {"units": "N m or N", "means": "self-balanced part of the load"}),
                "residual": (
                    ("time", "freedom"),
                    self.residual,
                    {"units": "N m or N", "means": "no motor supplies it"},
                ),
                "possible": ("time", self.possible),
                "q": (("time", "coordinate"), self.q, {"units": "rad, m or 1 (quaternion)"}),
            },
            {
                "time": ("time", self.t, {"units": "s"}),
                "motor": np.array(self.motors, str),
                "motor_units": ("motor", np.array(self.units, str)),
                "freedom": np.array(self.system.speeds, str),
                "coordinate": np.array(self.system.coordinates, str),
            },
            {
                "name": self.system.name,
                "verdict": self.verdict,
                "rule": self.rule,
                "replaced": ", ".join(self.replaced),
            },
        )

    def table(self) -> pandas.DataFrame:
        """Peak with its time and RMS of load, speed and power of each motor, SI; the work over the motion."""
        import pandas as pd

        rows = {}
        for k, (motor, unit) in enumerate(zip(self.motors, self.units, strict=True)):
            speed_unit = "rad/s" if unit == "N m" else "m/s"
            known = np.isfinite(self.load[:, k])
            t = self.t[known]
            for what, values, u in (
                ("load", self.load[known, k], unit),
                ("speed", self.speed[known, k], speed_unit),
                ("power", self.power[known, k], "W"),
            ):
                if not len(values):
                    continue
                peak = int(np.argmax(np.abs(values)))
                rms = _rms(values, t)
                rows[f"{motor} {what}"] = (u, values[peak], t[peak], rms, values.min(), values.max())
        return pd.DataFrame.from_dict(rows, orient="index", columns=["unit", "peak", "t_peak", "rms", "min", "max"])

    def __str__(self) -> str:
        lines = [f"{self.system.name}: {self.verdict}, {len(self.t)} times from {self.t[0]:g} to {self.t[-1]:g} s"]
        if self.rule:
            lines.append(f"distribution: {self.rule}")
        if self.replaced:
            lines.append(f"motors and drivers of the model replaced by these loads: {', '.join(self.replaced)}")
        lines.append(f"{'':<14}{'peak':>12}{'at t in s':>12}{'RMS':>12}  unit")
        for name, (unit, peak, t, rms, *_) in self.table().iterrows():
            lines.append(f"{name!s:<14}{peak:>12.5g}{t:>12.5g}{rms:>12.5g}  {unit}")
        missing = int(np.count_nonzero(~np.isfinite(self.load).all(axis=1)))
        if missing:
            lines.append(f"not given at {missing} times in or near singular poses, where loads are not unique")
        if not self.possible.all():
            lines.append(what_is_missing(self))
        if self.left_open:
            lines.append(said_open(self.left_open))
        return "\n".join(lines)

    def to_dataframe(self) -> pandas.DataFrame:
        """One row per time: load, speed and power of each motor, SI."""
        import pandas as pd

        columns = {}
        for k, (motor, unit) in enumerate(zip(self.motors, self.units, strict=True)):
            columns[f"{motor} load in {unit}"] = self.load[:, k]
            columns[f"{motor} speed in {'rad/s' if unit == 'N m' else 'm/s'}"] = self.speed[:, k]
            columns[f"{motor} power in W"] = self.power[:, k]
        return pd.DataFrame(columns, index=pd.Index(self.t, name="time in s"))

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write :meth:`to_dataframe` to a file, all digits kept."""
        write(path, csv_text(self.to_dataframe()))

    def state(self, k: int) -> State:
        """State k of the motion."""
        if not -len(self.t) <= k < len(self.t):
            raise LoopdynError(f"the motion has states 0 to {len(self.t) - 1}, not {k}.")
        piece = next(s for s, first, end in self.pieces if first <= k % len(self.t) < end)
        return State(float(self.t[k]), self.q[k], self.v[k], tolerated=piece.tolerated)

    @cached_property
    def left_open(self) -> dict[str, float]:
        """Redundant constraints that are left open within a tolerance: largest residual of each, rad or m."""
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
        for k, (label, unit) in enumerate(zip(self.motors, self.units, strict=True)):
            key = "torque" if unit == "N m" else "force"
            values = self.load[:, k] / m.units.factor(key)
            law = Table(of="t", points=np.column_stack([self.t, values]).tolist(), interpolation="cubic")
            m.add_motor(element_name("motor", label), label, **{key: law})
        return m

    def plot(self) -> Figure:
        """Plot load over speed of each motor, for comparison with its characteristic: a closed curve over a cycle."""
        from loopdyn.output.plot.motors import plot_motors

        return plot_motors(self)


def what_is_missing(found: InverseDynamics) -> str:
    """Message with the largest load that the motion needs and no motor can supply."""
    worst = np.abs(found.residual / np.where(found.system.turning, 1.0, 1.0 / found.system.size))
    k, n = np.unravel_index(int(np.argmax(worst)), worst.shape)
    label = found.system.speeds[int(n)]
    unit = "N m" if found.system.turning[int(n)] else "N"
    return (
        f"the motors {', '.join(found.motors)} cannot produce this motion of '{found.system.name}' ({found.verdict}): "
        f"at t = {found.t[int(k)]:g} s a load of {found.residual[k, n]:.4g} {unit} is missing on {label}, which none "
        "of them can supply."
    )


def element_name(what: str, label: str) -> str:
    """Name of an element that acts on a coordinate, with dots of the label replaced."""
    return f"{what}_{label.replace('.', '_')}"


def _rms(values: Array, t: Array) -> float:
    """Root mean square over time; of the samples if times do not ascend."""
    if len(t) < 2 or t[-1] <= t[0] or np.any(np.diff(t) < 0.0):
        return float(np.sqrt(np.mean(values**2)))
    return float(np.sqrt(np.trapezoid(values**2, t) / (t[-1] - t[0])))
