"""`drive`: kinematic analysis of a mechanism over a range of its inputs, or along a motion of them.

The curve is followed by :mod:`loopdyn.analysis.following`; here are the question, the result and its words.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from loopdyn.analysis.assembly import assemble
from loopdyn.analysis.contradictions import beyond_tolerance, choose_again, largest_open, look, said_open
from loopdyn.analysis.following import LOST, End, Follower, Inputs, Point, Rows
from loopdyn.analysis.mobility import mobility
from loopdyn.constraints import Driver
from loopdyn.errors import LoopdynError, ModelError, Problem, warn
from loopdyn.files import write
from loopdyn.forces.base import Table, law_program
from loopdyn.loops.projection import project
from loopdyn.loops.rank import dead_drivers, of_matrix
from loopdyn.quantities.profiles import Profile
from loopdyn.quantities.wording import nearest
from loopdyn.system.system import JointData, State, System, TableUse, Tolerated, point_on
from loopdyn.tables import csv_text
from loopdyn.tree.functions import Motion, body_motion, increment
from loopdyn.tree.tables import leave_table

if TYPE_CHECKING:
    import pandas
    import xarray
    from matplotlib.figure import Figure

Array = NDArray[np.float64]

POINTS = 361  # of a range without a number of its own: a turn by degrees
MOST_POINTS = 1_000_000  # of a range: more is a slip
SHARE = 0.3  # of the largest motion in which a coordinate takes part to be named in a message
NAMED = 6  # coordinates named at most
MANY_TURNS = 10.0  # of a range in rad: more are likely degrees
FILM = 4.0  # seconds that a film of a range takes
AT_START = 1e-9  # rad or sizes of the mechanism: a dead point as near as this to the start of a range is at the start
BESIDE = 1e-2  # rad or sizes of the mechanism, to a pose beside a dead point

Kind = Literal[
    "dead point", "change point", "turning point", "limit", "end of a curve", "tolerance", "left open", "lost"
]


@dataclass(frozen=True)
class DriveEvent:
    """A pose that matters, located to rounding.

    Attributes
    ----------
    kind : str
        "dead point": the inputs cannot go on, the loops would open; other coordinates move while the inputs stand.
        "turning point": a coordinate turns back, its transmission ratio is zero; as an input it would be dead here.
        "change point": rows of the loops become dependent and branches of motion cross; the drive keeps to its own.
        "limit": a joint has reached its limit. "end of a curve": a row is undefined beyond. "tolerance": a redundant
        constraint that is left open leaves its tolerance. "left open": others are left open from here on, the pose
        jumps by the tolerance at most. "lost": none of these.
    value : float
        Parameter of the drive there: value of a single input, share of the way for several, or the time. SI.
    inputs : dict
        Values of the inputs, SI.
    label : str
        Coordinate that turns back or is at its limit.
    text : str
        The same in words.
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
class Drive:
    """What a mechanism does when its inputs are moved; print it for a summary.

    Attributes
    ----------
    system : System
    inputs : tuple of str
    parameter : str
        What the motion is given over: "input" (a range of one input), "share" (ranges of several, from 0 to 1), "time".
    status : str
        "complete", or "stopped" before the end of the range.
    message : str
        Why it stopped, and what to do next.
    events : tuple of DriveEvent
        In the order of the motion.
    data : xarray.Dataset
        By step: `q` of all coordinates, those of cut joints included; `v` and `a`, their first and second derivatives
        by the parameter (for a range of one input: per unit of its speed, the kinematic influence coefficients);
        `ratio` and `ratio2`, first and second derivatives by the inputs; `quality`; `regular`. SI units.
    units : str
        "SI" or "model": of what is printed, plotted and tabulated. `data` is always in SI units.
    tolerated : tuple
        By step, the redundant constraints that are left open within a tolerance, see :func:`loopdyn.assemble`, or None.
    left_open : dict
        Largest residual of each of them, rad or m.
    """

    system: System = field(repr=False)
    inputs: tuple[str, ...]
    parameter: str
    status: str
    message: str
    events: tuple[DriveEvent, ...] = field(repr=False)
    data: xarray.Dataset = field(repr=False)
    units: Literal["SI", "model"] = "SI"
    tolerated: tuple[Tolerated | None, ...] = field(default=(), repr=False)
    left_open: dict[str, float] = field(default_factory=dict, repr=False)

    @property
    def limit(self) -> DriveEvent | None:
        """Where the motion had to stop, if it had to."""
        return self.events[-1] if self.status == "stopped" and self.events else None

    @property
    def steps(self) -> int:
        """How many poses there are."""
        return int(self.data.sizes["step"])

    def state(self, k: int) -> State:
        """State of step k: derivatives by the parameter as speeds."""
        if not -self.steps <= k < self.steps:
            raise LoopdynError(f"the drive has steps 0 to {self.steps - 1}, not {k}.")
        d = self.data
        q = d["q"].values[k, : self.system.nq]
        v = np.array(d["v"].values[k, : self.system.nv])
        return State(float(d["time"].values[k]), np.array(q), v, tolerated=self.tolerated[k])

    # ------------------------------------------------------------------------------------------- what it says

    def ratio(self, output: str, by: str | None = None) -> xarray.DataArray:
        """Transmission ratio of two coordinates: the speed of `output` per speed of `by` along the motion.

        Parameters
        ----------
        output, by : str
            Labels, also of cut joints; `by` is the first input unless it is given. Where `by` stands still the ratio is
            infinite.

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
            raise ModelError([Problem("drive", f"there is no coordinate '{label}'", nearest(label, labels))])
        return label

    @cached_property
    def _motions(self) -> list[Motion]:
        """Motion of all bodies at each step; derivatives are by the parameter."""
        s, d = self.system, self.data
        frozen = self.parameter != "time" and bool(s.mechanism.base)  # a base in motion is to stand still
        found = []
        for k in range(self.steps):
            state, a = self.state(k), d["a"].values[k, : s.nv]
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

    def poses(self) -> tuple[Array, Array]:
        """Positions (step, body, 3) and rotations (step, body, 3, 3) of the frames of all bodies."""
        return np.array([m.position for m in self._motions]), np.array([m.rotation for m in self._motions])

    def point(self, body: str, at: ArrayLike) -> xarray.Dataset:
        """Path of a point of a body (a coupler curve), with its first and second derivatives by the parameter.

        Parameters
        ----------
        body : str
        at : (3,)
            The point in world coordinates at the reference pose, in m (in the units of the model if the drive is).

        Examples
        --------
        >>> import loopdyn as ld
        >>> turn = ld.drive(ld.library.four_bar().compile(), "A", (0, 6.2, 63))
        >>> turn.point("coupler", at=(0.5, 0.5, 0))["position"].dims
        ('step', 'xyz')
        """
        from loopdyn.quantities.labels import dataset

        s, given = self.system, np.asarray(at, float)
        own = point_on(s, body, given * self._scale("length"))
        row = s.bodies.index(body)
        parts: dict[str, list[Array]] = {"position": [], "velocity": [], "acceleration": []}
        for m in self._motions:
            arm, w = m.rotation[row] @ own, m.angular_velocity[row]
            parts["position"].append(m.position[row] + arm)
            parts["velocity"].append(m.velocity[row] + np.cross(w, arm))
            turning = np.cross(m.angular_acceleration[row], arm) + np.cross(w, np.cross(w, arm))
            parts["acceleration"].append(m.acceleration[row] + turning)
        per = self._per()
        units = {"position": "m", "velocity": f"m{per}", "acceleration": f"m{per}{'²' if per else ''}"}
        data = {k: (("step", "xyz"), np.array(v), {"units": units[k]}) for k, v in parts.items()}
        return dataset(data, {**self._coords(), "xyz": ["x", "y", "z"]}, {"body": body, "at": given.tolist()})

    def _per(self) -> str:
        if self.parameter == "share":
            return ""
        if self.parameter == "time":
            return "/s"
        return f"/{self.data['coordinate_units'].sel(coordinate=self.inputs[0]).item()}"

    def _coords(self) -> dict[str, Any]:
        return {name: self.data.coords[name] for name in ("parameter", "time")}

    def transmission_angle(self, output: str, at: str | None = None) -> xarray.DataArray:
        """Transmission angle at the output link of a planar mechanism, rad, from 0 (dead) to pi/2 (best).

        The output link is the one that the joint `output`, a pin or a slide, holds to the ground. It is moved by a
        coupler, a body with two joints, through their common joint `at`. The force between them acts, but for weight,
        inertia and friction, along the line through both pins of the coupler (for a slide between them, square to it),
        and the angle is 90 degrees less that between this line and the direction in which the point of the output link
        moves: for a four-bar the angle between coupler and rocker, for a slider-crank that between the rod and the
        normal of the slide. It concerns the output link alone; `quality` in the data, the smallest singular value of
        the Jacobian of all rows and inputs in natural units (rad, sizes of the mechanism), is meant for any mechanism.

        Parameters
        ----------
        output : str
            Joint between the ground and the output link.
        at : str, optional
            Joint between coupler and output link, where there are several.

        Examples
        --------
        >>> import loopdyn as ld
        >>> turn = ld.drive(ld.library.four_bar().compile(), "A", (0, 6.2, 63))
        >>> round(float(turn.transmission_angle("D").min()), 2)
        0.89
        """
        import xarray as xr

        value = _transmission(self.system, self._motions, output, at)
        name = f"transmission angle at {output}"
        return xr.DataArray(value, dims="step", coords=self._coords(), name=name, attrs={"units": "rad"})

    # --------------------------------------------------------------------------------------------- in words

    def _scale(self, dimension: str) -> float:
        """SI value of one unit of what is shown."""
        return self.system.mechanism.units.factor(dimension) if self.units == "model" and dimension else 1.0

    def _dimension(self, label: str) -> str:
        known = [str(x) for dim in ("coordinate", "speed") for x in self.data[dim].values]
        if label not in known:
            raise ModelError([Problem("drive", f"there is no coordinate '{label}'", nearest(label, known))])
        return _dimensions(self.system).get(label, "")

    def unit(self, label: str) -> str:
        """Unit in which a coordinate is shown."""
        dimension = self._dimension(label)
        shown = self.system.mechanism.units if self.units == "model" else None
        names = {"angle": shown.angle if shown else "rad", "length": shown.length if shown else "m"}
        return names.get(dimension, "1")

    def shown(self, label: str, value: float | Array) -> Any:
        """Value of a coordinate in the unit in which it is shown."""
        return value / self._scale(self._dimension(label))

    def parameter_label(self) -> str:
        """Name and unit of the parameter, for axes and tables."""
        if self.parameter == "time":
            return "time in s"
        return "share of the way" if self.parameter == "share" else f"{self.inputs[0]} in {self.unit(self.inputs[0])}"

    def parameter_values(self) -> Array:
        """Values of the parameter in the unit in which it is shown."""
        values = np.asarray(self.data["parameter"].values, float)
        return np.asarray(self.shown(self.inputs[0], values) if self.parameter == "input" else values)

    def to_dataframe(self) -> pandas.DataFrame:
        """One row per step in the units that are shown, which the names of the columns tell."""
        import pandas as pd

        d = self.data
        columns: dict[str, Any] = {}
        if self.parameter != "input":
            for k, label in enumerate(self.inputs):
                columns[f"input {label} [{self.unit(label)}]"] = self.shown(label, d["input_value"].values[:, k])
        for k, label in enumerate(str(x) for x in d["coordinate"].values):
            columns[f"{label} [{self.unit(label)}]"] = self.shown(label, d["q"].values[:, k])
        per = {"time": ("s", 1.0), "share": ("", 1.0)}.get(
            self.parameter, (self.unit(self.inputs[0]), self.shown(self.inputs[0], 1.0))
        )
        for name, power, mark in (("v", 1, "'"), ("a", 2, "''")):
            for k, label in enumerate(str(x) for x in d["speed"].values):
                below = f"/{per[0]}{'^2' if power == 2 else ''}" if per[0] else ""
                unit = self.unit(label) if self._dimension(label) else _speed_unit(label)
                columns[f"{label}{mark} [{unit}{below}]"] = self.shown(label, d[name].values[:, k]) / per[1] ** power
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
            lines.append(f"  {'coordinate':<16}{'unit':<6}" + "".join(f"{h:>19}" if h[0] == "s" and h[-1] == "o" else
                         f"{h:>13}" for h in heads))  # fmt: skip
            ratios = self._largest_ratios()
            for k, label in enumerate(str(x) for x in d["coordinate"].values):
                x = np.asarray(self.shown(label, d["q"].values[:, k]))
                low, high = int(np.argmin(x)), int(np.argmax(x))
                numbers = (x[low], span[low], x[high], span[high])
                cells = "".join(f"{n:>13.6g}" for n in numbers) + f"{ratios.get(label, ''):>19}"
                lines.append(f"  {label:<16}{self.unit(label):<6}{cells}")
            worst = int(np.argmin(d["quality"].values))
            lines.append(f"  quality (0 is singular) at least {d['quality'].values[worst]:.3g}, at {span[worst]:.6g}")
        lines += [f"  {e.text}" for e in self.events] or ["  no dead, turning or change points"]
        lines += [f"  {said_open(self.left_open)}"] if self.left_open else []
        return "\n".join(lines)

    def _largest_ratios(self) -> dict[str, str]:
        """Largest speed of each coordinate per speed of the input, in the units that are shown; of one input only."""
        if len(self.inputs) != 1 or not self.steps:
            return {}
        one = self.shown(self.inputs[0], 1.0)
        out = {}
        for k, label in enumerate(str(x) for x in self.data["speed"].values):
            if self._dimension(label):
                largest = np.abs(self.shown(label, self.data["ratio"].values[:, k, 0]) / one).max()
                out[label] = "unbounded" if np.isnan(largest) else f"{largest:.4g}"
        return out

    def as_data(self) -> dict[str, Any]:
        """The summary as plain data, in the units that are shown."""
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
                    "min": float(np.min(self.shown(str(label), self.data["q"].values[:, k]))),
                    "max": float(np.max(self.shown(str(label), self.data["q"].values[:, k]))),
                }
                for k, label in enumerate(self.data["coordinate"].values)
                if self.steps
            },
            "quality": float(self.data["quality"].min()) if self.steps else None,
            "left_open": dict(self.left_open),
            "events": [
                {
                    "kind": e.kind,
                    "inputs": {label: float(self.shown(label, x)) for label, x in e.inputs.items()},
                    "coordinate": e.label,
                    "text": e.text,
                }
                for e in self.events
            ],
        }

    # -------------------------------------------------------------------------------------------- looking at it

    def plot(self, *labels: str) -> Figure:
        """Coordinates, their first and second derivatives and the quality over the parameter, with the events.

        Parameters
        ----------
        *labels : str
            Coordinates to show; by default all that have one number.
        """
        from loopdyn.output.plot.drives import plot_drive

        return plot_drive(self, [self._known(label) for label in labels])

    def plot_point(self, body: str, at: ArrayLike) -> Figure:
        """The path of a point of a body, drawn in the plane in which it is widest; arguments as in :meth:`point`."""
        from loopdyn.output.plot.drives import plot_drive_point

        return plot_drive_point(self, body, self.point(body, at))

    def animate(self, path: str | os.PathLike[str], *, seconds: float = FILM, **options: Any) -> Path:
        """Write a page for the browser (.html), a film (.gif, .mp4) or a picture (.png) of the motion.

        Parameters
        ----------
        path : str or Path
        seconds : float
            How long a film of a range takes; a motion of time takes its own.
        **options
            Those of :func:`loopdyn.output.viewer.page.write_page` and :func:`loopdyn.output.plot.film.write_film`.
        """
        from loopdyn.output.animation import animate

        if not self.steps:
            raise LoopdynError("there is no pose to show: the drive ended at its start. Give another range.")
        return animate(_Film(self, seconds), Path(path), **options)


class _Film:
    """A drive as what pages and films need of a run; a range is passed through in a given time."""

    def __init__(self, drive: Drive, seconds: float):
        from loopdyn.quantities.labels import dataset

        self.system, self._drive = drive.system, drive
        s, d = drive.system, drive.data
        time, rate = d["time"].values, np.ones(drive.steps)
        if drive.parameter != "time":  # evenly along the parameter, forth and back
            way = np.diff(d["parameter"].values, prepend=d["parameter"].values[:1])
            total = float(np.abs(way).sum()) or 1.0
            time = seconds * np.cumsum(np.abs(way)) / total
            rate = np.sign(np.append(way[1:], way[-1:])) * total / seconds
        self.data = dataset(
            {
                "q": (("time", "coordinate"), d["q"].values[:, : s.nq]),
                "v": (("time", "speed"), d["v"].values[:, : s.nv] * rate[:, None]),
                "a": (("time", "speed"), d["a"].values[:, : s.nv] * rate[:, None] ** 2),
            },
            {"time": time, "coordinate": list(s.coordinates), "speed": list(s.speeds)},
        )

    def poses(self) -> tuple[Array, Array]:
        """Those of the drive."""
        return self._drive.poses()


# ------------------------------------------------------------------------------------------------ the question


def drive(
    system: System,
    inputs: str | Mapping[str, Any],
    motion: Any = None,
    *,
    times: Any = None,
    near: State | None = None,
    limits: bool = True,
    units: Literal["SI", "model"] = "SI",
) -> Drive:
    """Move the inputs of a mechanism and see what all of it does: positions, velocities, accelerations, dead points.

    Parameters
    ----------
    system : System
    inputs : str, or mapping of label to motion
        Joint coordinate that is driven, or several with their ranges or motions. Together, with the drivers of the
        model, they must determine the motion.
    motion : tuple, array, profile, formula or Table
        Of a single input. A tuple ``(start, stop)`` or ``(start, stop, n)`` is a range of n steps, a list or array are
        values; joint coordinates, zero at the reference pose. A profile of :mod:`loopdyn.quantities.profiles`, a
        formula of ``t`` or a table are motions in time, in the units of the model.
    times : tuple or array, optional
        Times of a motion: ``(start, stop)``, ``(start, stop, n)`` or values, s; by default the whole of a profile.
    near : State, optional
        Where the way to the start of the range begins, which decides the branch; by default the start of the model.
        Redundant constraints that it leaves open within a tolerance are left open on the way.
    limits : bool
        Whether the motion ends at the limits of joints.
    units : {"SI", "model"}
        Of ranges and values, and of what is printed and plotted; results in `data` are in SI units in any case.

    Returns
    -------
    Drive
        Up to where the inputs can go; ``.status`` and ``.message`` say whether that is the end of the range.

    Raises
    ------
    LoopdynError
        If the inputs do not determine the motion, are not there, or cannot be brought to the start of the range.

    Examples
    --------
    >>> import loopdyn as ld, numpy as np
    >>> turn = ld.drive(ld.library.four_bar().compile(), "A", (0, 2 * np.pi))
    >>> turn.status, [(e.kind, e.label) for e in turn.events if e.label == "D"]
    ('complete', [('turning point', 'D'), ('turning point', 'D')])
    """
    if near is not None:
        system = system.for_state(near)
    if units not in ("SI", "model"):
        raise LoopdynError(f"units '{units}' are unknown. Use 'SI' or 'model'.")
    given = {inputs: motion} if isinstance(inputs, str) else dict(inputs)
    if not given:
        raise LoopdynError(
            "no input is given. Name the joint coordinate that is driven, e.g. ld.drive(system, 'A', ...)."
        )
    if not isinstance(inputs, str) and motion is not None:
        raise LoopdynError("motions are given twice. Put each into the mapping of the inputs.")
    if not system.holonomic.all():
        row = system.constraint_rows[int(np.argmin(system.holonomic))]
        raise LoopdynError(
            f"the row '{row}' constrains velocities only, so positions depend on the way and not on the inputs alone. "
            "Add a driver and use ld.simulate."
        )
    rows = Rows(system)
    known = [label for label in rows.labels if _dimensions(system).get(label)]
    wrong = [label for label in given if label not in known]
    if wrong:
        raise ModelError(
            Problem("drive", f"there is no joint coordinate '{w}' to drive", nearest(w, known)) for w in wrong
        )
    course = _course(system, given, times, units)
    return _Driving(system, rows, course, limits, units).run(near)


@dataclass(frozen=True)
class _Course:
    """What the inputs are to do: in pieces, each with its function, its parameters and its first value."""

    labels: tuple[str, ...]
    parameter: str
    pieces: tuple[tuple[Inputs, Array], ...]  # the targets of a piece begin with the last one of the piece before
    start: Array  # values of the inputs at the first target
    unit: float  # natural unit of the parameter
    time: float = 0.0  # at the first target of a motion


def _dimensions(system: System) -> dict[str, str]:
    """Dimension of every coordinate that is one number, by label: "angle" or "length"."""
    found: dict[str, str] = {}
    for j in system.joints.values():
        if len(j.spec.coordinates) == len(j.spec.speeds):
            found |= dict(zip(j.spec.labels(j.name)[0], j.spec.dimensions, strict=True))
    return found


def _speed_unit(label: str) -> str:
    """Unit of a speed without a coordinate of its own, times s."""
    return "m" if label.rpartition(".")[2].startswith("v") else "rad"


def _note_many_turns(ranges: Mapping[str, Array]) -> None:
    """Warn of ranges in rad that look like degrees."""
    for label, values in ranges.items():
        turns = float(np.ptp(values)) / (2.0 * np.pi)
        if turns > MANY_TURNS:
            text = f"'{label}' is driven over {np.ptp(values):g} rad, {turns:.3g} turns. If degrees are meant, use "
            text += 'np.radians(...), or units="model" with a model in degrees.'
            warn(text)


def _course(system: System, given: Mapping[str, Any], times: Any, units: str) -> _Course:
    labels = tuple(given)
    in_time = [isinstance(m, (str | Profile | Table, Mapping)) for m in given.values()]
    if any(in_time) and not all(in_time):
        raise LoopdynError("some inputs have a range and others a motion in time. Give all of them one or the other.")
    if all(in_time):
        return _motion_course(system, given, times)
    if times is not None:
        raise LoopdynError("times are given for a range, which has none. Leave them out, or give a motion of t.")
    sizes = {"angle": 1.0, "length": system.size}
    dimensions = [_dimensions(system)[label] for label in labels]
    factors = [system.mechanism.units.factor(d) if units == "model" else 1.0 for d in dimensions]
    values = [_range(label, m) * f for (label, m), f in zip(given.items(), factors, strict=True)]
    if units == "SI":
        _note_many_turns({n: v for n, d, v in zip(labels, dimensions, values, strict=True) if d == "angle"})
    if len({len(v) for v in values}) > 1:
        counts = ", ".join(f"{label}: {len(v)}" for label, v in zip(labels, values, strict=True))
        raise LoopdynError(f"the inputs have ranges of different lengths ({counts}). Give all of them as many steps.")
    u = np.array(values).T
    if len(labels) == 1:
        one, none = np.ones(1), np.zeros(1)
        return _Course(labels, "input", ((lambda s: (np.array([s]), one, none), u[:, 0]),), u[0], sizes[dimensions[0]])
    shares = np.linspace(0.0, 1.0, len(u))
    straight = np.abs(np.diff(u, 2, axis=0)).max(initial=0.0) <= 1e-12 * np.abs(u).max()
    ends = [0, len(u) - 1] if straight else range(len(u))
    pieces = []
    for i, j in itertools.pairwise(ends):
        pieces.append((_line(u[i], u[j], shares[i], shares[j]), shares[i : j + 1]))
    return _Course(labels, "share", tuple(pieces), u[0], 1.0)


def _line(u0: Array, u1: Array, s0: float, s1: float) -> Inputs:
    slope, none = (u1 - u0) / (s1 - s0), np.zeros(len(u0))
    return lambda s: (u0 + slope * (s - s0), slope, none)


def _range(label: str, given: Any) -> Array:
    hint = "Give (start, stop), (start, stop, n), a list of values, a profile, or a formula of t."
    try:
        numbers = np.asarray(given, float)
    except (TypeError, ValueError, OverflowError):
        numbers = np.zeros(0)
    if numbers.ndim != 1 or len(numbers) < 2 or not np.isfinite(numbers).all():
        raise LoopdynError(f"the motion of '{label}' is not clear. {hint}")
    if isinstance(given, tuple):
        if len(given) > 3 or (len(given) == 3 and not (given[2] == int(given[2]) and 2 <= given[2] <= MOST_POINTS)):
            between = f"n from 2 to {MOST_POINTS:,}"
            raise LoopdynError(f"the range of '{label}' is not clear: a tuple is (start, stop, n), {between}. {hint}")
        numbers = np.linspace(numbers[0], numbers[1], POINTS if len(given) == 2 else int(given[2]))
    return numbers


def _motion_course(system: System, given: Mapping[str, Any], times: Any) -> _Course:
    r = system.mechanism.resolver()
    programs, ends = [], []
    for label, law in given.items():
        element = f"motion of '{label}'"
        motion = Driver(joint=label, motion=law).motion  # which says what is wrong with its form
        dimension = _dimensions(system)[label]
        programs.append(law_program(motion, {"t": "number"}, dimension, r, element, (), motion=True))
        if isinstance(motion, Profile):
            curve = motion.resolve(r, element, ())
            ends.append(
                np.inf if curve is None else curve.duration if np.isfinite(curve.duration) else curve.cycle_time
            )
        else:
            ends.append(np.inf)
    if r.problems:
        raise ModelError(dict.fromkeys(r.problems))
    if times is None:
        finite = [x for x in ends if np.isfinite(x)]
        if not finite:
            raise LoopdynError("a motion in time needs times. Give times=(start, stop) in s.")
        times = (0.0, max(finite))
    t = _range("times", times)
    for element, of, lookup in r.tables:
        if lookup.left_by(float(t.min())) or lookup.left_by(float(t.max())):
            leave_table(TableUse(element, of, lookup), f": times go from {t.min():g} to {t.max():g} s")

    def inputs(s: float) -> tuple[Array, Array, Array]:
        jets = np.array([p.jet([(s, 1.0, 0.0)]) for p in programs])
        return jets[:, 0], jets[:, 1], jets[:, 2]

    return _Course(tuple(given), "time", ((inputs, t),), inputs(float(t[0]))[0], float(np.ptp(t)) or 1.0, float(t[0]))


@dataclass(frozen=True)
class _Stretch:
    """A part of the way with one choice of rows: see :meth:`Follower.follow`."""

    follower: Follower
    first: Point
    found: list[Point]
    path: list[Point]
    end: End | None

    def state(self, s: float, q: Array) -> State:
        """A pose of it, at rest."""
        return State(self.follower.time(s), q, np.zeros(self.follower.nv))


class _Driving:
    """One drive: from the start of the model to the start of the range, then along it."""

    def __init__(self, system: System, rows: Rows, course: _Course, limits: bool, units: Literal["SI", "model"]):
        self.system, self.rows, self.course, self.units = system, rows, course, units
        self.limits = dict(system.limits) if limits else {}
        self.t = course.time

    def follower(self, inputs: Inputs, unit: float, *, moving: bool = False, held: Sequence[int] = ()) -> Follower:
        """The curve for these inputs; time stands still unless it moves."""
        time = (lambda s: s) if moving else (lambda s: self.t)
        return Follower(self.rows, self.course.labels, inputs, unit, time, moving, held, self.limits, self._watch)

    def _watch(self, p: Point) -> tuple[Literal["tolerance", "left open"], str] | None:
        """Whether redundant rows that are left open leave the tolerance at a point, or others are to be."""
        system, state = self.rows.system, State(p.t, p.q, np.zeros(self.system.nv))
        if system.tolerated is None:
            return None
        watched = look(system, state)
        again = choose_again(system, state) if watched.beyond or watched.weak else None
        if again is not None and again[0].tolerated is not None:
            self.rows = Rows(again[0])
            return "left open", f"{', '.join(system.tolerated.rows)} -> {', '.join(again[0].tolerated.rows)}"
        wrong = beyond_tolerance(watched, "this pose")
        return ("tolerance", wrong.split(". ")[0]) if wrong else None

    def _follow(
        self, inputs: Inputs, unit: float, p: Point, targets: Array, *, moving: bool = False, held: Sequence[int] = ()
    ) -> list[_Stretch]:
        """Along the inputs from a point to the targets, in stretches with one choice of rows each."""
        stretches: list[_Stretch] = []
        s, q, near, left = float(p.s), p.q, p.near, [float(x) for x in targets]
        while True:
            follower = self.follower(inputs, unit, moving=moving, held=held)
            if stretches:
                closed = follower.close(s, q, near)
                if closed is None:
                    stretches[-1] = replace(stretches[-1], end=End("lost", s, stretches[-1].state(s, q), near))
                    return stretches
                q = closed
            first = follower.point(s, q, near)
            found, path, end = follower.follow(first, left)
            stretches.append(_Stretch(follower, first, found, path, end))
            if end is None or end.kind != "left open":
                return stretches
            s, q, near, left = end.s, end.state.q, end.near, left[len(found) :]

    def run(self, near: State | None) -> Drive:
        """Follow the whole course."""
        c, zero = self.course, np.zeros(len(self.rows.cut))
        start = assemble(self.system, near=near, t=self.t if c.parameter == "time" else None)
        self.t = start.t
        none = np.zeros(len(c.labels))
        still = self.follower(lambda s: (none, none, none), 1.0)
        phi = self.rows(self.t, start.q, np.zeros(self.system.nv), zero)[0]
        here = still.coordinates(start.q, phi)[still.index]
        self._turn_limits(still.coordinates(start.q, phi))
        held = self._check(still, start)
        # the way to the start of the range
        way = self.follower(_line(here, c.start, 0.0, 1.0), 1.0, held=held)
        p = way.point(0.0, start.q, zero)
        if np.abs((c.start - here) / way.input_units).max() > 0.0:
            last = self._follow(way.inputs, 1.0, p, np.ones(1), held=held)[-1]
            if last.end is not None:
                raise self._unreachable(last.follower, last.end)
            p = last.found[0]
        stretches: list[_Stretch] = []
        for inputs, targets in c.pieces:
            begin = replace(p, s=float(targets[0]))
            new = self._follow(inputs, c.unit, begin, targets, moving=c.parameter == "time", held=held)
            if stretches:  # the first target was the last one before
                new[0] = replace(new[0], found=new[0].found[1:])
            stretches += new
            p = next((x.found[-1] for x in reversed(stretches) if x.found), new[0].first)
            if new[-1].end is not None:
                break
        end = stretches[-1].end
        points = [p for x in stretches for p in x.found]
        events = [e for x in stretches for e in self._events(x.follower, x.path, x.found, x.end)]
        systems = [x.follower.system for x in stretches for _ in x.found]
        poses = [State(p.t, p.q, np.zeros(self.system.nv)) for p in points]
        message = f"{events[-1].text}. {_NEXT[end.kind]}" if end is not None else ""
        if held:
            names = ", ".join(self.system.speeds[k] for k in held)
            message = f"{message} Idle: {names} kept at zero.".strip()
        status = "complete" if end is None else "stopped"
        return Drive(
            self.system, c.labels, c.parameter, status, message, tuple(events), self._dataset(points), self.units,
            tuple(s.tolerated for s in systems), largest_open(zip(systems, poses, strict=True)),
        )  # fmt: skip

    def _turn_limits(self, x: Array) -> None:
        """Limits of angles are meant but for whole turns: those that hold the start, or are next to it, are taken."""
        for label, (low, high) in self.limits.items():
            joint, here = self.system.joints[label.partition(".")[0]], x[self.rows.labels.index(label)]
            turning = _dimensions(self.system)[label] == "angle" and joint.spec.type != "helical"
            if turning and not low <= here <= high:  # limits more than a turn apart may hold it as they are
                turns = 2 * np.pi * np.round((here - (low + high) / 2) / (2 * np.pi))
                self.limits[label] = (low + turns, high + turns)

    # ------------------------------------------------------------------------------------------------ checks

    def _check(self, follower: Follower, start: State) -> tuple[int, ...]:
        """Refuse inputs that do not determine the motion, or contradict it; idle speeds that are to be kept at zero."""
        s, k = self.system, len(self.course.labels)
        J = self.rows(start.t, start.q, np.zeros(s.nv), np.zeros(len(self.rows.cut)))[1]
        D = follower.matrix(J)
        all_, loops = of_matrix(D), of_matrix(D[: s.nc])
        names = ", ".join(self.course.labels)
        freedoms = s.nv - loops.count
        if all_.count - loops.count < k:
            self._refuse_dependent(follower, start, D, loops.count, freedoms)
        left = s.nv - all_.count
        if left == 0:
            return ()
        found = mobility(s, start)
        if found.verdict == "singular here":
            raise LoopdynError(
                f"'{s.name}' starts at a change point, where {names} does not tell which branch of motion is meant. "
                "Start beside it: near=ld.assemble(system, q={...})."
            )
        N = np.linalg.svd(D)[2][all_.count :].T
        if len(found.idle) == left:
            return self._idle(N, left)
        moves = follower.gradients(J) * s.speed_units @ N / follower.all_units[:, None]
        shares = np.abs(moves).max(axis=1)
        moving = [label for label, x in zip(self.rows.labels, shares, strict=True) if x > SHARE * shares.max()]
        more = self._to_drive(moves, left)
        hint = f"for example {', '.join((names, *more))}" if more else "or add drivers to the model"
        listed = ", ".join(moving[:NAMED]) + (", ..." if len(moving) > NAMED else "")
        raise LoopdynError(
            f"{names} {'does' if k == 1 else 'do'} not determine the motion of '{s.name}': {left} of its {freedoms} "
            f"freedoms {'is' if left == 1 else 'are'} left, in {listed}. Drive {freedoms} coordinates, {hint}."
        )

    def _refuse_dependent(self, follower: Follower, start: State, D: Array, rank: int, freedoms: int) -> NoReturn:
        """Inputs that are not independent at the start: because it is a dead point, or anywhere."""
        s, names = self.system, ", ".join(self.course.labels)
        N = np.linalg.svd(D[: s.nc])[2][rank:] if s.nc else np.eye(s.nv)
        step = BESIDE * s.speed_units * (np.random.default_rng(0).normal(size=len(N)) @ N)
        beside = project(s, State(start.t, increment(s, start.q, step), np.zeros(s.nv))).state
        J = self.rows(beside.t, beside.q, np.zeros(s.nv), np.zeros(len(self.rows.cut)))[1]
        there = follower.matrix(J)
        if of_matrix(there).count - of_matrix(there[: s.nc]).count == len(self.course.labels):
            raise LoopdynError(
                f"'{s.name}' starts at a dead point of {names}, from which it can go two ways. Start beside it: "
                "near=ld.assemble(system, q={...}), or start: {q: {...}} in the model."
            )
        one = len(self.course.labels) == 1
        raise LoopdynError(
            f"'{s.name}' has {freedoms} freedom{'' if freedoms == 1 else 's'}, and {names} {'is' if one else 'are'} "
            f"not independent: the loops, drivers or other inputs fix {'it' if one else 'one of them'}. Drive other "
            "coordinates, or fewer."
        )

    def _to_drive(self, moves: Array, left: int) -> list[str]:
        """Coordinates that, driven too, would determine the motions left; on the ground if that is possible."""
        from scipy.linalg import qr

        s = self.system
        grounded = {j.name for j in s.joints.values() if min(j.parent, j.child) < s.n_bases}
        scalar = [i for i, label in enumerate(self.rows.labels) if _dimensions(s).get(label)]
        standing = [i for i in scalar if self.rows.labels[i].partition(".")[0] in grounded]
        for among in (standing, scalar):
            if len(among) >= left and of_matrix(moves[among]).count == left:
                return [
                    self.rows.labels[among[i]] for i in qr(moves[among].T, pivoting=True, mode="economic")[2][:left]
                ]
        return []

    def _idle(self, N: Array, left: int) -> tuple[int, ...]:
        """Speeds of the tree that, kept at zero, stop the idle motions N; those of balls where that is possible."""
        from scipy.linalg import qr

        s = self.system
        balls = [j.v0 + i for j in s.joints.values() if j.in_tree and j.spec.type == "spherical" for i in range(3)]
        for among in (balls, list(range(s.nv))):
            if len(among) >= left and of_matrix(N[among]).count == left:
                chosen = qr(N[among].T, pivoting=True, mode="economic")[2][:left]
                return tuple(sorted(among[i] for i in chosen))
        return ()

    def _unreachable(self, follower: Follower, end: End) -> LoopdynError:
        """The range begins where the mechanism cannot go."""
        wanted = self._said(dict(zip(self.course.labels, self.course.start, strict=True)))
        missing = np.abs((self.course.start - follower.inputs(end.s)[0]) / follower.input_units).max()
        if end.kind == "dead point" and missing < AT_START:
            return LoopdynError(
                f"'{self.system.name}' has a dead point at {wanted}, where the range begins, and can go on from it in "
                "two ways. Begin beside it, or drive another coordinate through it."
            )
        there = self._event(follower, end.kind, end.s, end.state, end.label, end.reason, end.value).text
        return LoopdynError(
            f"'{self.system.name}' cannot be brought to {wanted}, where the range begins: {there}. Begin within reach, "
            "or start from another pose or branch with near=ld.assemble(system, q={...})."
        )

    # ------------------------------------------------------------------------------------------------ results

    def _events(self, follower: Follower, path: list[Point], found: list[Point], end: End | None) -> list[DriveEvent]:
        """What happened on a piece of the way, in order."""
        last = found[-1].s if end is None and found else path[-1].s
        direction = 1.0 if path[-1].s >= path[0].s else -1.0
        monotonic = all((b.s - a.s) * direction >= 0.0 for a, b in itertools.pairwise(path))
        events: list[tuple[int, float, DriveEvent]] = []

        def add(kind: Kind, place: int, p: Point, label: str, reason: str = "") -> None:
            if monotonic and (p.s - last) * direction > 1e-12 * follower.unit:
                return  # behind the end of the range: a point that was needed to pass a crossing
            value = float(p.x[self.rows.labels.index(label)]) if label else 0.0
            event = self._event(follower, kind, p.s, State(p.t, p.q, np.zeros(follower.nv)), label, reason, value)
            onward = 1.0 if place + 1 == len(path) or path[place + 1].s >= path[place].s else -1.0
            events.append((place, onward * p.s, event))

        for place, p, lost in follower.crossings(path):
            add("change point", place, p, "", "" if lost > 0 else "the inputs depend on each other there")
        for place, p, label in follower.turning_points(path):
            add("turning point", place, p, label)
        for place, p in enumerate(path):
            ended = end is not None and end.kind == "dead point" and abs(p.s - end.s) <= 1e-12 * follower.unit
            if _is_dead(p) and not ended and not (place and _is_dead(path[place - 1])):  # reached by the range itself
                add("dead point", place, p, "")
        events.sort(key=lambda e: e[:2])
        found_events = [e for _, _, e in events]
        if end is not None:
            found_events.append(self._event(follower, end.kind, end.s, end.state, end.label, end.reason, end.value))
        return found_events

    def _said(self, inputs: Mapping[str, float]) -> str:
        """Values of coordinates in the units that are shown."""
        parts, units = [], self.system.mechanism.units
        for label, value in inputs.items():
            dimension = _dimensions(self.system)[label]
            factor = units.factor(dimension) if self.units == "model" else 1.0
            name = getattr(units, dimension) if self.units == "model" else {"angle": "rad", "length": "m"}[dimension]
            parts.append(f"{label} = {value / factor:.9g} {name}")
        return ", ".join(parts)

    def _event(
        self, follower: Follower, kind: Kind, s: float, state: State, label: str, reason: str, value: float = 0.0
    ) -> DriveEvent:
        """An event in words; `value` is that of the coordinate that turns back or is at its limit."""
        u, _, _ = follower.inputs(s)
        inputs = dict(zip(self.course.labels, u.tolist(), strict=True))
        at = self._said(inputs) + (f", t = {s:.9g} s" if follower.moving else "")
        names = ", ".join(self.course.labels)
        if kind == "dead point":
            moving = self._moving_there(follower, s, state)
            own = dead_drivers(follower.system, state)[0]  # of the model, which may stop before the inputs do
            stopped = "driver " + ", ".join(repr(n) for n in own) if own else names
            text = (
                f"dead point at {at}: {stopped} cannot go on, the loops would open; there {moving} can move without it"
            )
        elif kind == "turning point":
            limit = self._said({label: value})
            text = f"turning point of {label} at {at}: {limit} is a limit of {label}, its ratio to {names} is zero"
        elif kind == "change point":
            why = reason or "rows of the loops become dependent and branches of motion cross"
            text = f"change point at {at}: {why}"
        elif kind == "limit":
            text = f"limit of joint coordinate {self._said({label: value})} at {at}"
        elif kind == "end of a curve":
            text = f"end at {at}: {reason}"
        elif kind == "tolerance":
            text = f"end of the tolerance at {at}: {reason}"
        elif kind == "left open":
            text = f"other redundant constraints are left open from {at} on: {reason}"
        else:
            text = f"lost at {at}: the curve of closed poses cannot be followed"
        state = replace(state, tolerated=follower.system.tolerated)
        return DriveEvent(kind, float(s), inputs, label, text, state)

    def _moving_there(self, follower: Follower, s: float, state: State) -> str:
        """Coordinates that move at a dead point, at which the inputs stand."""
        J = follower.rows(state.t, state.q, np.zeros(follower.nv), np.zeros(len(self.rows.cut)))[1]
        z = np.linalg.svd(follower.matrix(J))[2][follower.nv - 1]
        shares = np.abs(follower.gradients(J) @ (follower.units * z)) / follower.all_units
        moving = [label for label, x in zip(self.rows.labels, shares, strict=True) if x > SHARE * shares.max()]
        return ", ".join(moving[:NAMED]) + (", ..." if len(moving) > NAMED else "")

    def _without_derivatives(self, p: Point) -> Point:
        """A dead point: but for those of the inputs, derivatives are unbounded, or do not follow from them."""
        own = [self.rows.labels.index(label) for label in self.course.labels]
        unknown = {name: np.full_like(getattr(p, name), np.nan) for name in ("v", "a", "ratio", "ratio2")}
        for name, values in unknown.items():
            values[own] = getattr(p, name)[own]
        return replace(p, regular=False, **unknown)

    def _dataset(self, points: Sequence[Point]) -> xarray.Dataset:
        """Everything with labels and units."""
        from loopdyn.quantities.labels import dataset

        s, c, rows = self.system, self.course, self.rows
        points = [self._without_derivatives(p) if _is_dead(p) else p for p in points]
        n, k, nl = len(points), len(c.labels), len(rows.labels)
        others = [k for k, label in enumerate(rows.cut) if label not in s.counted]
        coordinates = [*s.coordinates, *(rows.cut[k] for k in others)]
        q = np.array([[*p.q, *p.near[others]] for p in points]).reshape(n, len(coordinates))

        def stacked(name: str, *shape: int) -> Array:
            return np.array([getattr(p, name) for p in points], float).reshape(n, *shape)

        dims = _dimensions(s)
        units = [{"angle": "rad", "length": "m"}.get(dims.get(label, ""), "1") for label in coordinates]
        per = {"input": f"per {'rad' if c.labels and dims[c.labels[0]] == 'angle' else 'm'} of {c.labels[0]}",
               "share": "over the whole way", "time": "per s"}[c.parameter]  # fmt: skip
        data = {
            "q": (("step", "coordinate"), q, {"units": "rad, m or 1 (quaternion)"}),
            "v": (("step", "speed"), stacked("v", nl), {"units": f"rad or m, {per}"}),
            "a": (("step", "speed"), stacked("a", nl), {"units": f"rad or m, {per}, squared"}),
            "ratio": (("step", "speed", "input"), stacked("ratio", nl, k), {"units": "rad or m per rad or m"}),
            "ratio2": (("step", "speed", "input", "input2"), stacked("ratio2", nl, k, k),
                       {"units": "rad or m per rad or m, squared"}),
            "quality": ("step", stacked("quality"), {"means": "smallest singular value of all rows and inputs"}),
            "regular": ("step", np.array([p.regular for p in points], bool),
                        {"means": "false: a dead point, or interpolated at a change point, along the branch followed"}),
        }  # fmt: skip
        unit = {"input": units[coordinates.index(c.labels[0])], "share": "1", "time": "s"}[c.parameter]
        coords = {
            "parameter": ("step", stacked("s"), {"units": unit}),
            "time": ("step", stacked("t"), {"units": "s"}),
            "input_value": (("step", "input"), stacked("u", k)),
            "input": list(c.labels),
            "input2": list(c.labels),
            "coordinate": np.array(coordinates, str),
            "speed": np.array(rows.labels, str),
            "coordinate_units": ("coordinate", np.array(units, str)),
        }
        return dataset(data, coords, {"name": s.name, "parameter": c.parameter})


def _is_dead(p: Point) -> bool:
    """Whether the inputs stand in a dead point; crossings of branches are passed by points that are not regular."""
    return p.regular and p.quality < LOST


_NEXT = {
    "dead point": "End the range before it, or drive another coordinate through it",
    "change point": "Begin a second range on the other side of it, from a pose on the branch that is meant",
    "limit": "Give a shorter range, or limits=False",
    "end of a curve": "Make the curve longer, or the range shorter",
    "tolerance": "Correct the dimensions that ld.assemble names without a tolerance, or allow a larger one",
    "lost": "Give more steps, or begin from another pose with near=...",
}


# -------------------------------------------------------------------------------------------- transmission angle


def _transmission(system: System, motions: Sequence[Motion], output: str, at: str | None) -> Array:
    """Angles (n,) between the line of force and the normal of the path, of the point at which the output is moved."""
    out, joint, other = _linkage(system, output, at)
    ground_is_parent = out.parent < system.n_bases
    link = out.child if ground_is_parent else out.parent
    found = []
    for m in motions:

        def place(j: JointData, m: Motion = m) -> Array:
            return np.asarray(m.position[j.child] + m.rotation[j.child] @ j.M[0])

        def axis(j: JointData, m: Motion = m) -> Array:
            return np.asarray((m.rotation[j.parent] @ j.F[1])[:, 2])

        normal = axis(out if out.spec.type == "revolute" else other)
        if joint.spec.type == "prismatic":
            point, line = place(other), np.cross(normal, axis(joint))
        else:
            point, line = place(joint), place(other) - place(joint)
        path = np.cross(axis(out), point - place(out)) if out.spec.type == "revolute" else axis(out)
        size = float(np.linalg.norm(line) * np.linalg.norm(path))
        if size == 0.0:
            raise LoopdynError(f"the transmission angle at '{output}' is not defined: joints of body "
                               f"'{system.bodies[link]}' coincide. Use drive.data['quality'].")  # fmt: skip
        found.append(np.arcsin(min(1.0, abs(float(line @ path)) / size)))
    return np.array(found)


def _linkage(system: System, output: str, at: str | None) -> tuple[JointData, JointData, JointData]:
    """The output joint, that between output link and coupler, and the other one of the coupler."""
    use = "Use drive.data['quality'], which any mechanism has."
    if output not in system.joints:
        raise ModelError(
            [Problem("transmission angle", f"there is no joint '{output}'", nearest(output, system.joints))]
        )
    out = system.joints[output]
    if out.spec.type not in ("revolute", "prismatic") or (out.parent < system.n_bases) == (out.child < system.n_bases):
        raise LoopdynError(f"the transmission angle needs a pin or slide on the ground, '{output}' is none. {use}")
    link = out.child if out.parent < system.n_bases else out.parent

    def joints_of(body: int, but: JointData) -> list[JointData]:
        return [j for j in system.joints.values() if j is not but and body in (j.parent, j.child)]

    choice = []
    for j in joints_of(link, out):
        coupler = j.child if j.parent == link else j.parent
        rest = joints_of(coupler, j)
        if coupler >= system.n_bases and len(rest) == 1 and rest[0].spec.type == "revolute":
            choice.append((j, rest[0]))
    if at is not None:
        choice = [pair for pair in choice if pair[0].name == at]
    if len(choice) != 1:
        names = ", ".join(pair[0].name for pair in choice)
        link_name = system.bodies[link]
        if choice:
            raise LoopdynError(
                f"body '{link_name}' is moved at {names}. Name one: transmission_angle('{output}', at=...)."
            )
        raise LoopdynError(
            f"no body with two joints, the other one a pin, moves '{link_name}'{f' at {at}' if at else ''}: it has no "
            f"transmission angle. {use}"
        )
    joint, other = choice[0]
    kinds = {out.spec.type, joint.spec.type, other.spec.type}
    axes = [system.reference_poses[j.child][1] @ j.M[1][:, 2] for j in (out, joint, other) if j.spec.type == "revolute"]
    parallel = all(np.linalg.norm(np.cross(axes[0], z)) < 1e-6 for z in axes)
    if not kinds <= {"revolute", "prismatic"} or not parallel:
        raise LoopdynError(f"the joints at '{output}' do not move in one plane: no transmission angle. {use}")
    return out, joint, other


__all__ = ["Drive", "DriveEvent", "drive"]
