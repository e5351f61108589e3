"""Result of :func:`loopdyn.drive`: poses, derivatives and events over the parameter, as text, tables and plots."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from loopdyn.analysis.contradictions import said_open
from loopdyn.analysis.transmission_angle import transmission_angles
from loopdyn.errors import LoopdynError
from loopdyn.files import write
from loopdyn.quantities.wording import unknown
from loopdyn.results.measures import Measured, along_drive, drive_measure, known_to_drive
from loopdyn.results.path import PathResult, Samples, per
from loopdyn.system.system import State, System, Tolerated
from loopdyn.tables import csv_text
from loopdyn.tree.functions import Motion, body_motion

if TYPE_CHECKING:
    import pandas
    import xarray
    from matplotlib.figure import Figure

Array = NDArray[np.float64]

FILM = 4.0  # default length of a film of a range, s

Kind = Literal[
    "dead point", "change point", "turning point", "limit", "end of a curve", "tolerance", "left open", "lost"
]


@dataclass(frozen=True)
class DriveEvent:
    """Special pose of a kinematic analysis, located to rounding.

    Attributes
    ----------
    kind : str
        "dead point": the inputs cannot go on, the loops would open; other coordinates can move while the inputs are
        fixed. "turning point": a coordinate reverses, its transmission ratio is zero; as an input it would have a dead
        point here. "change point": rows of the loops become dependent and branches cross; the analysis stays on its
        branch. "limit": a joint has reached its limit. "end of a curve": a row is undefined beyond. "tolerance": a
        redundant constraint that is left open exceeds its tolerance. "left open": others are left open from here on,
        the pose jumps by the tolerance at most. "lost": none of these.
    value : float
        Parameter there: value of a single input, fraction of the ranges of several, or time, s.
    inputs : dict
        Values of the inputs, in declared units.
    label : str
        Coordinate that reverses or is at its limit.
    text : str
        Description in words.
    state : State
        The pose, at rest.
    """

    kind: Kind
    value: float
    inputs: dict[str, float]
    label: str
    text: str
    state: State = field(repr=False)


@dataclass(frozen=True, eq=False)
class Drive(PathResult):
    """Kinematic analysis of a mechanism over its inputs; prints a summary.

    Speeds and accelerations are derivatives by the parameter: ``drive["B.speed"]`` over a range of one input is the
    kinematic influence coefficient. The dimension of the path is `time` for a motion in time, else `sample`.

    Attributes
    ----------
    system : System
    inputs : tuple of str
    parameter : str
        Independent variable: "input" (a range of one input), "share" (ranges of several, from 0 to 1) or "time".
    status : str
        "complete", or "stopped" before the end of the range.
    message : str
        Reason why it stopped, and what to do.
    events : tuple of DriveEvent
        In the order of the motion.
    data : xarray.Dataset
        `q` of all coordinates, those of cut joints included; `v` and `a`, their first and second derivatives by the
        parameter; `ratio` and `ratio2`, first and second derivatives by the inputs; `quality`, the smallest singular
        value; `regular`. In declared units.
    path : Samples
        Arrays t, q, v, a of the tree, SI; derivatives are by the parameter.
    cut : mapping
        Coordinate and derivatives (n, 3) of cut joints by label, SI.
    tolerated : tuple
        By step, the redundant constraints that are left open within a tolerance, see :func:`loopdyn.assemble`, or None.
    left_open : dict
        Largest residual of each of them, in declared units.
    """

    system: System = field(repr=False)
    inputs: tuple[str, ...]
    parameter: str
    status: str
    message: str
    events: tuple[DriveEvent, ...] = field(repr=False)
    data: xarray.Dataset = field(repr=False)
    path: Samples = field(repr=False)
    cut: Mapping[str, Array] = field(repr=False)
    tolerated: tuple[Tolerated | None, ...] = field(default=(), repr=False)
    left_open: dict[str, float] = field(default_factory=dict, repr=False)

    @property
    def limit(self) -> DriveEvent | None:
        """Event at which the motion had to stop, if it had to."""
        return self.events[-1] if self.status == "stopped" and self.events else None

    @property
    def steps(self) -> int:
        """Number of poses."""
        return len(self.path.t)

    @property
    def samples(self) -> Samples:
        """Motion, SI; derivatives are by the parameter."""
        return self.path

    @property
    def along(self) -> str:  # type: ignore[override]
        """Dimension of the path: "time", or "sample" for a range."""
        return "time" if self.parameter == "time" else "sample"

    def _of_cut(self, label: str, rate: int) -> Array:
        """Values found along the path, whose turns are those of the steps between the samples."""
        return self.cut[label][:, rate] if label in self.cut else super()._of_cut(label, rate)

    def state(self, k: int) -> State:
        """State of step k, with derivatives by the parameter as speeds."""
        if not -self.steps <= k < self.steps:
            raise LoopdynError(f"the drive has steps 0 to {self.steps - 1}, not {k}.")
        p = self.path
        return State(float(p.t[k]), np.array(p.q[k]), np.array(p.v[k]), tolerated=self.tolerated[k], system=self.system)

    def _per(self, dimension: str, rate: int) -> tuple[str, float]:
        units = self.system.units
        if self.parameter == "time" or not rate:
            return units.symbol(dimension, rate), units.factor(dimension)
        if self.parameter == "share":
            return units.symbol(dimension), units.factor(dimension)
        by = self.system.labels.scalars[self.inputs[0]].dimension
        return per(units.symbol(dimension), units.symbol(by), rate), units.factor(dimension) / units.factor(by) ** rate

    # --------------------------------------------------------------------------------------------- quantities

    def ratio(self, output: str, by: str | None = None) -> xarray.DataArray:
        """Transmission ratio of two coordinates: the speed of `output` per speed of `by` along the motion.

        Parameters
        ----------
        output, by : str
            Labels of tree or cut joints; by default `by` is the first input. Where the speed of `by` is zero the ratio
            is infinite.

        Examples
        --------
        >>> import loopdyn as ld
        >>> turn = ld.drive(ld.library.four_bar().compile(), "A", (0, 6.2, 63))
        >>> bool(abs(turn.ratio("D")).max() < 1)
        True
        """
        of = self.data["v"]
        if len(self.inputs) == 1 and by in (None, self.inputs[0]):
            found = self.data["ratio"].sel(speed=self._known(output)).isel(input=0, drop=True)
        else:
            with np.errstate(divide="ignore", invalid="ignore"):
                found = of.sel(speed=self._known(output)) / of.sel(speed=self._known(by or self.inputs[0])).values
        return found.drop_vars("speed").rename(f"{output} per {by or self.inputs[0]}")

    def _known(self, label: str) -> str:
        labels = [str(x) for x in self.data["speed"].values]
        if label not in labels:
            raise unknown("drive", "coordinate", [label], labels)
        return label

    @cached_property
    def _motions(self) -> list[Motion]:
        """Motion of all bodies at each step; derivatives are by the parameter."""
        s, p = self.system, self.path
        frozen = self.parameter != "time" and bool(s.mechanism.base)  # a moving base is taken at rest
        found = []
        for k in range(self.steps):
            state, a = State(float(p.t[k]), p.q[k], p.v[k]), p.a[k]
            now = body_motion(s, state, a)
            if frozen:
                back = body_motion(s, State(state.t, state.q, -state.v), a)
                rest = body_motion(s, State(state.t, state.q, 0.0 * state.v))
                now = Motion(
                    now.bodies,
                    now.position,
                    now.rotation,
                    (now.velocity - back.velocity) / 2,
                    (now.angular_velocity - back.angular_velocity) / 2,
                    (now.acceleration + back.acceleration) / 2 - rest.acceleration,
                    (now.angular_acceleration + back.angular_acceleration) / 2 - rest.angular_acceleration,
                )
            found.append(now)
        return found

    @cached_property
    def _measured(self) -> Measured:
        return along_drive(self)

    def _measure(self, name: str) -> xarray.DataArray:
        """Measure of positions, or in a motion in time also of speeds."""
        return drive_measure(self, name)

    def _coords(self) -> dict[str, Any]:
        return {name: self.data.coords[name] for name in ("parameter", "time")}

    def transmission_angle(self, output: str, at: str | None = None) -> xarray.DataArray:
        """Transmission angle at the output link of a planar mechanism, from 0 (dead) to a right angle (best).

        The joint `output`, revolute or prismatic, connects the output link to the ground. A coupler, a body with two
        joints, moves it through their common joint `at`. Without weight, inertia and friction the force between them
        acts along the line through both revolute joints of the coupler (perpendicular to the axis of a prismatic joint
        between them), and the angle is 90 degrees minus that between this line and the direction of motion of the point
        on the output link: for a four-bar the angle between coupler and rocker, for a slider-crank that between the rod
        and the normal of the slide. It concerns the output link alone; `quality` in the data, the smallest singular
        value of the Jacobian of all rows and inputs in natural units, is defined for any mechanism.

        Parameters
        ----------
        output : str
            Joint between the ground and the output link.
        at : str, optional
            Joint between coupler and output link, if there are several.

        Examples
        --------
        >>> import loopdyn as ld
        >>> turn = ld.drive(ld.library.four_bar().compile(), "A", (0, 6.2, 63))
        >>> round(float(turn.transmission_angle("D").min()), 2)
        0.89
        """
        import xarray as xr

        units = self.system.units
        value = np.asarray(transmission_angles(self.system, self._motions, output, at)) / units.factor("angle")
        name = f"transmission angle at {output}"
        return xr.DataArray(value, dims=self.along, coords=self._coords(), name=name, attrs={"units": units.angle})

    # -------------------------------------------------------------------------------------- text and tables

    def unit(self, label: str) -> str:
        """Declared unit of a coordinate; 1 for a component of a quaternion."""
        known = {**self.system.labels.speeds, **self.system.labels.coordinates}
        if label not in known:
            raise unknown("drive", "coordinate", [label], known)
        return self.system.units.symbol(known[label].dimension)

    def parameter_label(self) -> str:
        """Name and unit of the parameter, for axes and tables."""
        if self.parameter == "time":
            return "time in s"
        return "fraction of range" if self.parameter == "share" else f"{self.inputs[0]} in {self.unit(self.inputs[0])}"

    def parameter_values(self) -> Array:
        """Values of the parameter, in the declared unit of the input."""
        return np.asarray(self.data["parameter"].values, float)

    def parameter_si(self) -> Array:
        """Values of the parameter in s, rad or m, or as fractions of the range."""
        return self.parameter_values() * (
            self.system.labels.factor(self.inputs[0]) if self.parameter == "input" else 1.0
        )

    def to_dataframe(self) -> pandas.DataFrame:
        """Data frame with one row per step, in declared units, which the column names contain."""
        import pandas as pd

        d = self.data
        columns: dict[str, Any] = {}
        if self.parameter != "input":
            for k, label in enumerate(self.inputs):
                columns[f"input {label} [{self.unit(label)}]"] = d["input_value"].values[:, k]
        for name, dim, mark in (("q", "coordinate", ""), ("v", "speed", "'"), ("a", "speed", "''")):
            units = d[d[name].attrs["units"]].values
            for k, label in enumerate(str(x) for x in d[dim].values):
                columns[f"{label}{mark} [{units[k]}]"] = d[name].values[:, k]
        for name, measure in known_to_drive(self).items():
            columns[f"{name} [{measure.unit}]"] = self[name].values
        columns["quality"] = d["quality"].values
        columns["regular"] = d["regular"].values
        return pd.DataFrame(columns, index=pd.Index(self.parameter_values(), name=self.parameter_label()))

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write :meth:`to_dataframe` to a file, all digits kept."""
        write(path, csv_text(self.to_dataframe()))

    def __str__(self) -> str:
        s, d = self.system, self.data
        span = self.parameter_values()
        title = f"{s.name} driven at {', '.join(self.inputs)}: {self.steps} steps"
        lines = [f"{title}, {self.parameter_label()} from {span[0]:.6g} to {span[-1]:.6g}" if len(span) else title]
        lines.append(f"  {self.status}{': ' + self.message if self.message else ''}")
        if len(span):
            at = {"input": self.inputs[0], "share": "share", "time": "t"}[self.parameter]
            heads = ("smallest", f"at {at}", "largest", f"at {at}", "speed ratio up to")
            name = max(16, 1 + max(len(str(x)) for x in d["coordinate"].values))
            wide = [max(13, 2 + len(h)) for h in heads]  # of a column; names of joints may be long
            lines.append(
                f"  {'coordinate':<{name}}{'unit':<6}" + "".join(f"{h:>{w}}" for h, w in zip(heads, wide, strict=True))
            )
            ratios = self._largest_ratios()
            for k, label in enumerate(str(x) for x in d["coordinate"].values):
                x = d["q"].values[:, k]
                low, high = int(np.argmin(x)), int(np.argmax(x))
                numbers = (x[low], span[low], x[high], span[high])
                cells = "".join(f"{n:>{w}.6g}" for n, w in zip(numbers, wide, strict=False))
                lines.append(f"  {label:<{name}}{self.unit(label):<6}{cells}{ratios.get(label, ''):>{wide[-1]}}")
            worst = int(np.argmin(d["quality"].values))
            least = float(d["quality"].values[worst])
            lines.append(f"  smallest singular value (quality) at least {least:.3g}, at {span[worst]:.6g}")
        lines += [f"  {e.text}" for e in self.events] or ["  no dead, turning or change points"]
        lines += [f"  {said_open(self.system, self.left_open)}"] if self.left_open else []
        return "\n".join(lines)

    def _largest_ratios(self) -> dict[str, str]:
        """Largest speed of each coordinate per speed of the input; for one input only."""
        if len(self.inputs) != 1 or not self.steps:
            return {}
        out = {}
        for k, label in enumerate(str(x) for x in self.data["speed"].values):
            if label in self.system.labels.scalars:
                largest = np.abs(self.data["ratio"].values[:, k, 0]).max()
                out[label] = "unbounded" if np.isnan(largest) else f"{largest:.4g}"
        return out

    def as_data(self) -> dict[str, Any]:
        """Summary as plain data, in declared units."""
        span = self.parameter_values()
        return {
            "name": self.system.name,
            "inputs": list(self.inputs),
            "parameter": self.parameter_label(),
            "status": self.status,
            "message": self.message,
            "steps": self.steps,
            "from": float(span[0]) if len(span) else None,
            "to": float(span[-1]) if len(span) else None,
            "coordinates": {
                str(label): {
                    "unit": self.unit(str(label)),
                    "min": float(np.min(self.data["q"].values[:, k])),
                    "max": float(np.max(self.data["q"].values[:, k])),
                }
                for k, label in enumerate(self.data["coordinate"].values)
                if self.steps
            },
            "quality": float(self.data["quality"].min()) if self.steps else None,
            "left_open": dict(self.left_open),
            "events": [
                {
                    "kind": e.kind,
                    "inputs": dict(e.inputs),
                    "coordinate": e.label,
                    "text": e.text,
                }
                for e in self.events
            ],
        }

    # -------------------------------------------------------------------------------------------------- plots

    def plot(self, *labels: str) -> Figure:
        """Plot coordinates, their first and second derivatives and the smallest singular value, with the events.

        Parameters
        ----------
        *labels : str
            Coordinates to show; by default all that have one number.
        """
        from loopdyn.output.plot.drives import plot_drive

        return plot_drive(self, [self._known(label) for label in labels])

    def plot_point(self, body: str, at: ArrayLike) -> Figure:
        """Plot the path of a point of a body in the plane of its largest extent; arguments as in :meth:`point`."""
        from loopdyn.output.plot.drives import plot_drive_point

        return plot_drive_point(self, body, self.point(body, at))

    def animate(self, path: str | os.PathLike[str], *, seconds: float = FILM, **options: Any) -> Path:
        """Write a page for the browser (.html), a film (.gif, .mp4) or a picture (.png) of the motion.

        Parameters
        ----------
        path : str or Path
        seconds : float
            Length of a film of a range; a motion in time has its own.
        **options
            Those of :func:`loopdyn.output.viewer.page.write_page` and :func:`loopdyn.output.plot.film.write_film`.
        """
        from loopdyn.output.animation import animate_drive

        return animate_drive(self, Path(path), seconds, **options)


__all__ = ["Drive", "DriveEvent"]
