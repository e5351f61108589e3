"""Plots of runs and pictures of mechanisms with matplotlib, which is imported when something is drawn."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from loopdyn.analysis.coordinates import Sweep
from loopdyn.analysis.drive import Drive
from loopdyn.errors import LoopdynError, ModelError, Problem
from loopdyn.files import in_words, write, write_figure
from loopdyn.output.drawing import (
    COLOURS,
    GROUND_COLOUR,
    Drawing,
    RunLike,
    Shape,
    determined,
    poses_of,
    speed_units,
)
from loopdyn.quantities.wording import nearest
from loopdyn.results.bearings import FRAMES, GROUPS, Bearings
from loopdyn.results.run import coordinate_units
from loopdyn.system.system import JointData, State, System
from loopdyn.tree.functions import body_motion

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from loopdyn.analysis.inverse_dynamics import InverseDynamics
    from loopdyn.studies.variants import Variants

Array = NDArray[np.float64]
Poses = tuple[Array, Array]  # positions (body, 3) and rotations (body, 3, 3)

LEGEND_ROWS = 18  # entries of a legend before another column is begun
INK = "#1c2430"


class RunPlots:
    """Plots of a run, one method a picture; each makes a figure of its own and returns it.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np, xarray as xr, loopdyn as ld
    >>> class Two:  # as a run would be
    ...     system = ld.library.pendulum().compile()
    ...     data = xr.Dataset({"q": (("time", "coordinate"), [[0.0], [0.1]])}, {"time": [0.0, 1.0]})
    >>> RunPlots(Two()).coordinates().axes[0].get_ylabel()
    'rad'
    """

    def __init__(self, run: RunLike):
        self._run = run
        self._data = run.data
        self._system = run.system
        self._time = np.asarray(run.data["time"], float)

    # ------------------------------------------------------------------------------------ everything

    def overview(self) -> Figure:
        """Coordinates, speeds, energies and residuals in one figure."""
        s = self._system
        figure, panels = _panels(f"{s.name}: overview", 4 if s.nc else 3)
        for ax, name, labels, units in (
            (panels[0], "q", s.coordinates, coordinate_units(s)),
            (panels[1], "v", s.speeds, speed_units(s)),
        ):
            self._draw_columns(ax, self._variable(name).values, range(len(labels)), labels)
            ax.set_ylabel(f"{'coordinates' if name == 'q' else 'speeds'}, {', '.join(dict.fromkeys(units))}")
        self._draw_energies(panels[2])
        if s.nc:
            self._draw_residuals(panels[3])
        panels[-1].set_xlabel("time in s")
        return figure

    def save(self, path: str | Path) -> Path:
        """Write the overview as a picture (.png, .svg), or it and the reactions of all joints as pages (.pdf).

        Examples
        --------
        >>> import tempfile, matplotlib, loopdyn as ld
        >>> matplotlib.use("Agg")
        >>> system = ld.library.pendulum().compile()
        >>> run = ld.simulate(system, ld.assemble(system), (0, 1), progress=False)
        >>> run.plot.save(tempfile.mkdtemp() + "/run.png").suffix
        '.png'
        """
        import matplotlib.pyplot as plt
        from matplotlib.backends.backend_pdf import PdfPages

        file = Path(path)
        if file.suffix not in (".png", ".svg", ".pdf"):
            raise LoopdynError(f"plots are not written as '{file.name}'. End the name in .png, .svg or .pdf.")
        if file.suffix != ".pdf":
            figure = self.overview()
            write_figure(file, figure, dpi=150)
            plt.close(figure)
            return file
        joints = [str(name) for name in self._variable("joint").values]
        buffer = io.BytesIO()
        with PdfPages(buffer) as pages:
            for joint in (None, *joints):
                figure = self.overview() if joint is None else self.reactions(joint)
                pages.savefig(figure)
                plt.close(figure)
        write(file, buffer.getvalue())
        return file

    # -------------------------------------------------------------------------------------- motion

    def coordinates(self, *labels: str) -> Figure:
        """Coordinates over time, all or those named; one panel per unit."""
        return self._labelled("q", "Coordinates", labels, self._system.coordinates, coordinate_units(self._system))

    def velocities(self, *labels: str) -> Figure:
        """Speeds over time, all or those named; one panel per unit."""
        return self._labelled("v", "Speeds", labels, self._system.speeds, speed_units(self._system))

    def accelerations(self, *labels: str) -> Figure:
        """Accelerations over time, all or those named; one panel per unit."""
        units = [unit.replace("/s", "/s²") for unit in speed_units(self._system)]
        return self._labelled("a", "Accelerations", labels, self._system.speeds, units)

    def phase(self, label: str) -> Figure:
        """Phase portrait of one coordinate: speed over coordinate."""
        both = [c for c in self._system.coordinates if c in self._system.speeds]
        if label not in both:
            hint = nearest(label, both)
            raise ModelError([Problem("phase portrait", f"'{label}' has no coordinate with a speed of its own", hint)])
        kq, kv = self._system.coordinates.index(label), self._system.speeds.index(label)
        q, v = self._variable("q").values[:, kq], self._variable("v").values[:, kv]
        figure, (ax,) = _panels(f"{self._system.name}: phase portrait of {label}", 1, height=4.6)
        ax.plot(q, v, color=COLOURS[0], lw=1.4)
        ax.plot(q[0], v[0], "o", color=COLOURS[0], mfc="white", label=f"t = {self._time[0]:g} s")
        ax.plot(q[-1], v[-1], "o", color=COLOURS[0], label=f"t = {self._time[-1]:g} s")
        ax.set_xlabel(f"{label} in {coordinate_units(self._system)[kq]}")
        ax.set_ylabel(f"speed of {label} in {speed_units(self._system)[kv]}")
        _legend(ax, 2)
        return figure

    # --------------------------------------------------------------------------------------- loads

    def reactions(self, joint: str, axes: str = "joint") -> Figure:
        """Force and moment on the child of a joint, in its own axes or those of the "world", its "parent" or "child".

        Undetermined components, and those they mix with in other axes, are hatched.
        """
        wrench = self._variable("wrench")
        names = [str(name) for name in wrench["joint"].values]
        if joint not in names:
            raise ModelError([Problem("reactions", f"there is no joint '{joint}' in the run", nearest(joint, names))])
        values = wrench.sel(joint=joint).values
        unique = determined(self._data).sel(joint=joint).values
        if axes != "joint":
            force, moment, known = self._bearings().load(joint, axes)
            values, unique = np.hstack([moment, force]), np.roll(known, 3)
        components = [str(c) for c in wrench["component"].values]
        child = self._system.bodies[self._system.joints[joint].child]
        where = "world axes" if axes == "world" else f"axes of the {axes}"
        figure, panels = _panels(f"{self._system.name}: reaction in {joint} on {child}, {where}", 2)
        scale = float(np.nanmax(np.abs(values), initial=0.0))
        for ax, first, unit in ((panels[0], 3, "N"), (panels[1], 0, "N m")):
            for n in range(3):
                k = first + n
                _component(ax, self._time, values[:, k], components[k], COLOURS[n], determined=bool(unique[k]))
            ax.set_ylabel(unit)
            _no_blown_up_rounding(ax, scale)
            _legend(ax, 3)
        panels[-1].set_xlabel("time in s")
        return figure

    def polar(self, joint: str) -> Figure:
        """Force in a bearing on its child in the plane across its axis, as a line that its tip draws.

        In axes of the world (where the axis keeps its direction there), of the parent and of the child: a load that
        stands still in axes of a ring wears one spot of it. The dot is the first time. A force that redundancy leaves
        undetermined is refused: there is no such line.

        Examples
        --------
        >>> import matplotlib, loopdyn as ld
        >>> matplotlib.use("Agg")
        >>> system = ld.library.four_bar().compile()
        >>> run = ld.simulate(system, ld.assemble(system), (0, 1), progress=False)
        >>> len(run.plot.polar("B").axes)
        3
        """
        import matplotlib.pyplot as plt

        loads = self._bearings()
        n = loads.index(joint)
        data = self._system.joints[joint]
        if data.spec.type not in GROUPS or data.spec.type == "planar":
            raise LoopdynError(f"polar: '{joint}' has no axis to look along. Use plot.reactions('{joint}').")
        if not loads.unique[n, 3:5].all():
            raise LoopdynError(
                f"polar: the force across the axis of '{joint}' is not determined by the rigid model, so there is no "
                f"line to draw. See ld.mobility for the redundant constraints, or use plot.reactions('{joint}')."
            )
        views = [("parent", data.F[1], self._system.bodies[data.parent]), ("child", data.M[1], None)]
        F = loads.axes[:, n, FRAMES.index("world")]
        if data.parent >= self._system.n_bases and np.ptp(F[:, :, 2], axis=0).max(initial=0.0) < ROUNDING:
            views.insert(0, ("world", F[0], "the world"))
        figure, panels = plt.subplots(
            1, len(views), figsize=(4.6 * len(views), 5.4), subplot_kw={"projection": "polar"}, layout="constrained"
        )
        figure.suptitle(f"{self._system.name}: force in {joint}, N", fontsize=12, fontweight="bold", color=INK)
        for ax, (axes, frame, body) in zip(panels, views, strict=True):
            first, second = _across(frame)
            force = loads.load(joint, axes)[0]
            x, y = force @ first, force @ second
            ax.plot(np.arctan2(y, x), np.hypot(x, y), color=COLOURS[0], lw=1.3)
            ax.plot(np.arctan2(y[:1], x[:1]), np.hypot(x[:1], y[:1]), "o", color=COLOURS[0], ms=5)
            name = body or self._system.bodies[data.child]
            ax.set_title(f"in axes of {name}; 0° is {_axis_name(first)}", fontsize=9)
            ax.tick_params(labelsize=8)
        if not np.isfinite(loads.wrench[:, n]).all():
            figure.supxlabel("gaps: passages of singular poses, where forces may be unbounded", fontsize=8)
        return figure

    def shaking(self) -> Figure:
        """Force and moment about the world origin that the mechanism puts on what it stands on."""
        values = self._of_run("shaking")
        figure, panels = _panels(f"{self._system.name}: force and moment on the frame, weight included", 2)
        scale = float(np.abs(values).max(initial=0.0))
        for ax, first, unit in ((panels[0], 0, "N"), (panels[1], 3, "N m")):
            for k in range(3):
                ax.plot(
                    self._time, values[:, first + k], color=COLOURS[k], label=("f" if unit == "N" else "m") + "xyz"[k]
                )
            ax.set_ylabel(unit)
            _no_blown_up_rounding(ax, scale)
            _legend(ax, 3)
        panels[-1].set_xlabel("time in s")
        return figure

    def _bearings(self) -> Bearings:
        found: Bearings = self._of_run("bearings")()
        return found

    def _of_run(self, name: str) -> Any:
        if not hasattr(self._run, name):
            raise LoopdynError(f"only a run of ld.simulate has '{name}'. Load it with ld.load_run, or simulate it.")
        return getattr(self._run, name)

    # ------------------------------------------------------------------------------------- quality

    def energies(self) -> Figure:
        """Kinetic, potential and total energy, and the error of the energy balance."""
        figure, panels = _panels(f"{self._system.name}: energy", 1 + ("energy_balance" in self._data))
        self._draw_energies(panels[0])
        if "energy_balance" in self._data:
            panels[1].plot(self._time, self._data["energy_balance"].values, color=COLOURS[4], label="balance error")
            panels[1].set_ylabel("J")
            _legend(panels[1], 1)
        panels[-1].set_xlabel("time in s")
        return figure

    def residuals(self) -> Figure:
        """Largest residual of the constraints at position, velocity and acceleration level, logarithmic."""
        figure, (ax,) = _panels(f"{self._system.name}: residuals of the constraints", 1)
        self._draw_residuals(ax)
        ax.set_xlabel("time in s")
        return figure

    def active(self) -> Figure:
        """Which speeds are independent at each time, and the criterion by which they were chosen."""
        active, criterion = self._variable("partition"), self._variable("criterion")
        names = [str(name) for name in active["speed"].values]
        figure, (bars, ax) = _panels(f"{self._system.name}: independent coordinates", 2)
        for n, name in enumerate(names):
            colour, on = COLOURS[n % len(COLOURS)], active.values[:, n].astype(bool)
            bars.fill_between(self._time, n - 0.4, n + 0.4, where=on, color=colour, lw=0)
            ax.plot(self._time, criterion.values[:, n], color=colour, lw=1.2, label=name)
        bars.set_yticks(range(len(names)), names)
        bars.set_ylim(len(names) - 0.5, -0.5)
        ax.set_ylabel("criterion, cos² α")
        ax.set_xlabel("time in s")
        _legend(ax, len(names))
        return figure

    # -------------------------------------------------------------------------------------- shared

    def _variable(self, name: str) -> Any:
        if name not in self._data:
            known = ", ".join(str(v) for v in self._data.data_vars)
            raise LoopdynError(f"the run of '{self._system.name}' has no '{name}'. It has: {known}.")
        return self._data[name]

    def _draw_columns(self, ax: Axes, values: Array, columns: Sequence[int], labels: Sequence[str]) -> None:
        for n, k in enumerate(columns):
            style = ("-", "--", ":", "-.")[n // len(COLOURS) % 4]
            ax.plot(self._time, values[:, k], style, color=COLOURS[n % len(COLOURS)], label=labels[k])
        _legend(ax, len(columns))

    def _draw_energies(self, ax: Axes) -> None:
        kinetic, potential = self._variable("energy_kinetic").values, self._variable("energy_potential").values
        lines = (("kinetic", kinetic), ("potential", potential), ("total", kinetic + potential))
        for (name, values), colour in zip(lines, COLOURS[:3], strict=True):
            ax.plot(self._time, values, color=colour, label=name)
        ax.set_ylabel("J")
        _legend(ax, 3)

    def _draw_residuals(self, ax: Axes) -> None:
        for level, colour in zip(("position", "velocity", "acceleration"), COLOURS, strict=False):
            rows = np.abs(self._variable(f"residual_{level}").values).reshape(len(self._time), -1)
            values = rows.max(axis=1, initial=0.0)
            ax.plot(self._time, np.where(values > 0.0, values, np.nan), color=colour, label=level)
        ax.set_yscale("log")
        ax.set_ylabel("m or rad, per s, per s²")
        _legend(ax, 3)

    def _labelled(
        self, name: str, what: str, chosen: Sequence[str], labels: Sequence[str], units: Sequence[str]
    ) -> Figure:
        """Columns of a variable, one panel per unit."""
        wrong = [label for label in chosen if label not in labels]
        if wrong:
            raise ModelError(Problem(what.lower(), f"there is no '{n}'", nearest(n, labels)) for n in wrong)
        values = self._variable(name).values
        shown = [labels.index(label) for label in chosen] if chosen else range(len(labels))
        by_unit: dict[str, list[int]] = {}
        for k in shown:
            by_unit.setdefault(units[k], []).append(k)
        figure, panels = _panels(f"{self._system.name}: {what.lower()}", max(len(by_unit), 1))
        for ax, (unit, columns) in zip(panels, by_unit.items(), strict=False):
            self._draw_columns(ax, values, columns, labels)
            ax.set_ylabel("quaternion" if unit == "1" else unit)
        panels[-1].set_xlabel("time in s")
        return figure


def _panels(title: str, count: int, height: float = 2.7) -> tuple[Figure, list[Axes]]:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(count, 1, figsize=(8.4, 0.5 + height * count), sharex=True, layout="constrained")
    panels: list[Axes] = list(np.atleast_1d(axes))
    figure.suptitle(title, fontsize=12, fontweight="bold", color=INK)
    for ax in panels:
        ax.grid(color="0.9")
        ax.set_axisbelow(True)
        ax.spines[["top", "right"]].set_visible(False)
    return figure, panels


def _legend(ax: Axes, entries: int) -> None:
    """To the right of the data, never on it."""
    columns = max(1, -(-entries // LEGEND_ROWS))
    size = 9 if entries <= LEGEND_ROWS // 2 else 7
    ax.legend(
        loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0.0, frameon=False, ncols=columns, fontsize=size
    )


def _component(ax: Axes, time: Array, values: Array, name: str, colour: str, *, determined: bool) -> None:
    if determined:
        ax.plot(time, values, color=colour, label=name)
        return
    label = f"{name}, undetermined"
    ax.fill_between(time, 0.0, values, facecolor="none", edgecolor=colour, hatch="////", lw=0.0, alpha=0.7, label=label)
    ax.plot(time, values, "--", color=colour)


# What is this small against the largest number of a picture is rounding, not a curve.
ROUNDING = 1e-9


def _no_blown_up_rounding(ax: Axes, scale: float) -> None:
    low, high = ax.get_ylim()
    if high - low < ROUNDING * scale:
        ax.set_ylim(-0.1 * scale, 0.1 * scale)


def _across(axes: Array) -> tuple[Array, Array]:
    """Two directions across z of a frame, right-handed with it: one of its body's own axes if it lies there, or x."""
    z = axes[:, 2]
    level = [e for e in np.eye(3) if abs(e @ z) < ROUNDING]
    first = level[0] if level else axes[:, 0]
    return first, np.cross(z, first)


def plot_motors(found: InverseDynamics) -> Figure:
    """Load over speed of each motor along a motion, one panel each."""
    import matplotlib.pyplot as plt

    n = len(found.motors)
    columns = min(n, 3)
    figure, axes = plt.subplots(
        -(-n // columns), columns, figsize=(max(6.0, 4.6 * columns), 0.5 + 3.6 * (-(-n // columns))), squeeze=False,
        layout="constrained",
    )  # fmt: skip
    figure.suptitle(
        f"{found.system.name}: loads of motors over their speeds", fontsize=12, fontweight="bold", color=INK
    )
    for ax in axes.ravel()[n:]:
        ax.set_visible(False)
    for k, (ax, motor, unit) in enumerate(zip(axes.ravel(), found.motors, found.units, strict=False)):
        turns = unit == "N m"
        sure = np.where(found.possible, found.load[:, k], np.nan)
        ax.plot(found.speed[:, k], sure, color=COLOURS[k % len(COLOURS)], label=motor)
        if not found.possible.all():
            wrong = np.where(found.possible, np.nan, found.load[:, k])
            ax.plot(found.speed[:, k], wrong, ":", color="0.5", label="motion not possible")
        ax.plot(found.speed[:1, k], found.load[:1, k], "o", color=COLOURS[k % len(COLOURS)], ms=5)
        ax.axhline(0.0, color="0.75", lw=0.8, zorder=0)
        ax.axvline(0.0, color="0.75", lw=0.8, zorder=0)
        ax.set(xlabel="speed in rad/s" if turns else "speed in m/s", ylabel="torque in N m" if turns else "force in N")
        ax.set_title(motor, fontsize=10)
        ax.grid(color="0.92")
    return figure


# ------------------------------------------------------------------------------------- choice of coordinates


def plot_criterion(sweep: Sweep) -> Figure:
    """The projective criterion of each coordinate along a motion; dashed, what geometry alone would say."""
    figure, (ax,) = _panels(f"{sweep.system.name}: projective criterion", 1, height=3.6)
    for n, label in enumerate(sweep.system.speeds):
        colour = COLOURS[n % len(COLOURS)]
        ax.plot(sweep.value, sweep.cosine[:, n], color=colour, label=label)
        ax.plot(sweep.value, sweep.svd[:, n], "--", color=colour, lw=0.9, label=f"{label}, SVD")
    ax.set_ylim(-0.02, 1.02)
    ax.set_ylabel("cos² α")
    ax.set_xlabel(f"{sweep.label} in {coordinate_units(sweep.system)[sweep.system.coordinates.index(sweep.label)]}")
    _legend(ax, 2 * len(sweep.system.speeds))
    return figure


# ------------------------------------------------------------------------------------------------- drives


def plot_drive(drive: Drive, labels: Sequence[str] = ()) -> Figure:
    """Coordinates, first and second derivatives, and quality of a drive over its parameter; events as lines."""
    chosen = list(labels) or [str(x) for x in drive.data["speed"].values if drive.unit(str(x)) != "1"]
    by_unit: dict[str, list[str]] = {}
    for label in chosen:
        by_unit.setdefault(drive.unit(label), []).append(label)
    figure, panels = _panels(f"{drive.system.name} driven at {', '.join(drive.inputs)}", 3 * len(by_unit) + 1)
    x = drive.parameter_values()
    below, one = {"time": ("/s", 1.0), "share": ("", 1.0)}.get(
        drive.parameter, (f"/{drive.unit(drive.inputs[0])}", float(drive.shown(drive.inputs[0], 1.0)))
    )
    rows = [("q", "coordinate", 0), ("v", "speed", 1), ("a", "speed", 2)]
    for ax, (name, dim, order, unit) in zip(panels, [(*r, u) for r in rows for u in by_unit], strict=False):
        for n, label in enumerate(by_unit[unit]):
            if dim == "coordinate" and label not in drive.data["coordinate"].values:
                continue
            y = drive.shown(label, drive.data[name].sel({dim: label}).values) / one**order
            ax.plot(x, y, color=COLOURS[n % len(COLOURS)], label=label + "'" * order)
        ax.set_ylabel(unit + (below + ("²" if order == 2 and below else "")) * (order > 0))
        _legend(ax, len(by_unit[unit]))
    panels[-1].plot(x, drive.data["quality"].values, color=INK)
    panels[-1].set_ylabel("quality")
    panels[-1].set_ylim(bottom=0.0)
    panels[-1].set_xlabel(drive.parameter_label())
    styles = {"turning point": ":", "change point": "--"}
    for event in drive.events:
        if event.kind == "turning point" and event.label not in chosen:
            continue
        at = drive.shown(drive.inputs[0], event.value) if drive.parameter == "input" else event.value
        for ax in panels:
            ax.axvline(at, ls=styles.get(event.kind, "-"), color="0.6", lw=0.9, zorder=0.5)
    return figure


def plot_variants(found: Variants, label: str) -> Figure:
    """A coordinate of all variants against time."""
    runs = [(v.name, v.run) for v in found.variants if v.run is not None]
    if not runs:
        raise LoopdynError(f"no variant of '{found.title}' has a run to plot. Print the variants to see why.")
    labels = runs[0][1].system.coordinates
    if label not in labels:
        raise LoopdynError(f"there is no coordinate '{label}' to plot. {nearest(label, labels)}")
    figure, (ax,) = _panels(f"{found.title}: {label} of {len(runs)} variants", 1, height=3.6)
    for n, (name, run) in enumerate(runs):
        k = run.system.coordinates.index(label)
        ax.plot(run.path.t, run.path.q[:, k], color=COLOURS[n % len(COLOURS)], label=name)
    ax.set(xlabel="time in s", ylabel=f"{label} in {coordinate_units(runs[0][1].system)[labels.index(label)]}")
    _legend(ax, len(runs))
    return figure


def plot_drive_point(drive: Drive, body: str, path: Any) -> Figure:
    """The path of a point of a body, seen along the direction in which it is flattest of the world's axes."""
    unit = drive.system.mechanism.units.length if drive.units == "model" else "m"
    scale = drive.system.mechanism.units.factor("length") if drive.units == "model" else 1.0
    x = path["position"].values / scale
    flat = int(np.argmin(np.ptp(x, axis=0)[::-1]))  # of equal ones, z
    first, second = (k for k in range(3) if k != 2 - flat)
    figure, (ax,) = _panels(f"{drive.system.name}: path of a point of {body}", 1, height=5.0)
    ax.plot(x[:, first], x[:, second], color=COLOURS[0])
    ax.plot(x[0, first], x[0, second], "o", color=COLOURS[0], mfc="white", label="start")
    ax.plot(x[-1, first], x[-1, second], "o", color=COLOURS[0], label="end")
    ax.set_aspect("equal", adjustable="datalim")
    ax.set_xlabel(f"{'xyz'[first]} in {unit}")
    ax.set_ylabel(f"{'xyz'[second]} in {unit}")
    _legend(ax, 2)
    return figure


# ------------------------------------------------------------------------------------------ the mechanism


def plot_system(system: System, state: State | None = None, ax: Any = None, *, names: bool = True) -> Any:
    """Draw a mechanism at a state: in its plane if it is planar, in 3-D otherwise.

    Parameters
    ----------
    system : System
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
    motion = body_motion(system, system.state() if state is None else state)
    drawing = Drawing(system)
    if ax is None:
        ax = _new_axes(drawing)
    _draw(ax, drawing, (motion.position, motion.rotation), names)
    time = "" if state is None else f" at t = {state.t:g} s"
    ax.set_title(f"{system.name}{time}", fontsize=12, fontweight="bold", color=INK)
    return ax


def _new_axes(drawing: Drawing) -> Any:
    import matplotlib.pyplot as plt

    if drawing.normal is not None:
        return plt.subplots(figsize=(7.5, 6.0), layout="constrained")[1]
    figure = plt.figure(figsize=(7.5, 6.8), layout="constrained")
    return figure.add_subplot(projection="3d", computed_zorder=True)


Projection = Callable[[Array], Array]


def _axes_of_picture(drawing: Drawing) -> Array:
    """Rows: right, up of a plane picture, and its normal; for a spatial one right, depth and up."""
    normal, up = drawing.normal, drawing.up
    if normal is None:
        right = np.eye(3)[0] if abs(up[0]) < 0.9 else np.eye(3)[1]
        right = right - (right @ up) * up
        right /= np.linalg.norm(right)
        return np.array([right, np.cross(up, right), up])
    high = up if abs(normal @ up) < 0.5 else np.eye(3)[1] if abs(normal[1]) < 0.9 else np.eye(3)[2]
    high = high - (high @ normal) * normal
    high /= np.linalg.norm(high)
    return np.array([np.cross(high, normal), high, normal])


def _draw(ax: Any, drawing: Drawing, poses: Poses, names: bool) -> None:
    """All bodies, joints and springs into `ax`, and equal scales on its axes."""
    flat = drawing.normal is not None
    basis = _axes_of_picture(drawing)
    positions, rotations = poses

    def seen(row: int, points: Array) -> Array:
        """Points of a body's frame in the axes of the picture, one row each."""
        all_three = (positions[row] + np.atleast_2d(points) @ rotations[row].T) @ basis.T
        result: Array = all_three[:, :2] if flat else all_three
        return result

    room = []
    for body in drawing.bodies:
        for shape in body.shapes:
            _draw_shape(ax, shape, partial(seen, body.row), body.colour, drawing, flat)
            room.append(seen(body.row, shape.outline()))
    for span in drawing.spans:
        a, b = (seen(row, p)[0] for row, p in zip(span.bodies, span.points, strict=True))
        line = _coil(a, b, 0.03 * drawing.size) if span.kind == "spring_damper" else np.array([a, b])
        ax.plot(*line.T, color="#c2803a", lw=1.3, zorder=3)
        room.append(np.array([a, b]))
        for row, end in zip(span.bodies, (a, b), strict=True):
            if row < drawing.system.n_bases and flat:
                _draw_support(ax, end, 0.045 * drawing.size)
    for joint in drawing.joints:
        at = seen(joint.child, joint.M[0])[0]
        _draw_joint(ax, drawing, joint, at, seen, flat)
        room.append(at[None])
    if names:
        _write_names(ax, drawing, seen, flat)
    _frame(ax, np.concatenate(room), flat, basis)


def _draw_shape(ax: Any, shape: Shape, seen: Projection, colour: str, drawing: Drawing, flat: bool) -> None:
    if shape.kind == "rod":
        ends = shape.position + np.outer([-0.5, 0.5], shape.axes[:, 2]) * shape.size[1]
        width = float(np.clip(3.2 * shape.size[0] / drawing.bar, 3.2, 9.0))
        ax.plot(*seen(ends).T, color=colour, lw=width, solid_capstyle="round", zorder=2)
        return
    for outline in _outlines(shape):
        points = seen(outline)
        if flat:
            ax.fill(*points.T, facecolor=colour, edgecolor=colour, alpha=0.45, lw=1.2, zorder=1.5)
        else:
            from mpl_toolkits.mplot3d.art3d import Poly3DCollection

            ax.add_collection3d(Poly3DCollection([points], facecolor=colour, edgecolor=colour, alpha=0.3, lw=0.8))


def _outlines(shape: Shape) -> Iterator[Array]:
    """Closed lines (n, 3) that show a shape, in the body's frame."""
    round_ = np.linspace(0.0, 2 * np.pi, 33)
    ring = np.column_stack([np.cos(round_), np.sin(round_), np.zeros(33)])
    if shape.kind == "mesh":
        assert shape.points is not None
        yield from (shape.position + triangle @ shape.axes.T for triangle in shape.points)
        return
    if shape.kind == "plate":
        assert shape.points is not None
        local = [np.column_stack([shape.points, np.zeros(len(shape.points))])]
    elif shape.kind == "cylinder":
        radius, length = shape.size
        local = [radius * ring + [0.0, 0.0, z] for z in (-length / 2, length / 2)]
        x, z = radius, length / 2  # seen from the side, a rectangle
        local += [np.array([[-x, 0, -z], [x, 0, -z], [x, 0, z], [-x, 0, z]]) @ turn for turn in (np.eye(3), QUARTER)]
    elif shape.kind == "sphere":
        local = [shape.size[0] * ring[:, order] for order in ([0, 1, 2], [0, 2, 1], [2, 0, 1])]
    else:  # box
        corners = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]) / 2
        local = []
        for k in range(3):
            for side in (-0.5, 0.5):
                local.append(np.insert(corners, k, side, axis=1) * np.array(shape.size))
    for line in local:
        yield shape.position + line @ shape.axes.T


QUARTER = np.array([[0.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])  # a quarter turn about z


# Symbols of joints: marker of matplotlib and its size in points.
MARKERS = {
    "revolute": ("o", 9.0),
    "prismatic": ("s", 11.0),
    "helical": ("D", 9.0),
    "cylindrical": ("h", 11.0),
    "universal": ("P", 11.0),
    "planar": ("d", 10.0),
    "translational": ("X", 10.0),
    "spherical": ("o", 12.0),
    "weld": ("s", 6.0),
}


def _draw_joint(ax: Any, drawing: Drawing, joint: JointData, at: Array, seen: Any, flat: bool) -> None:
    marker, size = MARKERS[joint.spec.type]
    grounded = min(joint.parent, joint.child) < drawing.system.n_bases
    fill = GROUND_COLOUR if grounded else "white"
    inner = INK if joint.spec.type == "spherical" else fill
    ax.plot(*at[:, None], marker, ms=size, mfc=inner, mec=INK, mew=1.4, zorder=5)
    if joint.spec.type in ("prismatic", "cylindrical", "helical", "revolute"):
        axis, reach = joint.F[1][:, 2], (0.12 if joint.spec.type == "revolute" else 0.3) * drawing.size
        line = seen(joint.parent, joint.F[0] + np.outer([-reach, reach], axis))
        if not (flat and joint.spec.type == "revolute"):
            ax.plot(*line.T, color="0.45", lw=1.0, ls=(0, (6, 2, 1, 2)), zorder=1)
    if grounded and flat and joint.spec.type != "prismatic":
        _draw_support(ax, at, 0.045 * drawing.size)


def _draw_support(ax: Any, at: Array, side: float) -> None:
    """The sign for what is fixed to the ground, below a point of a plane picture."""
    foot = at + side * np.array([[0.0, 0.0], [-0.8, -1.5], [0.8, -1.5]])
    ax.fill(*foot.T, facecolor="0.85", edgecolor=INK, lw=1.0, zorder=1.8)
    for k in range(5):
        start = at + side * np.array([-1.0 + 0.45 * k, -1.5])
        ax.plot(*np.array([start, start + side * np.array([-0.35, -0.5])]).T, color=INK, lw=0.8, zorder=1.7)


def _coil(a: Array, b: Array, radius: float) -> Array:
    """A zigzag between two points, for a spring."""
    way = b - a
    length = float(np.linalg.norm(way))
    if length == 0.0:
        return np.array([a, b])
    across = np.zeros(len(a))
    across[np.argmin(np.abs(way))] = 1.0
    across -= (across @ way) * way / length**2
    across *= radius / np.linalg.norm(across)
    s = np.array([0.0, 0.15, *np.linspace(0.18, 0.82, 12), 0.85, 1.0])
    sides = np.array([0.0, 0.0, *(1.0 if k % 2 else -1.0 for k in range(12)), 0.0, 0.0])
    result: Array = a + np.outer(s, way) + np.outer(sides, across)
    return result


def _write_names(ax: Any, drawing: Drawing, seen: Any, flat: bool) -> None:
    by_place: dict[tuple[float, ...], list[str]] = {}
    for joint in drawing.joints:
        place = tuple(np.round(seen(joint.child, joint.M[0])[0] / drawing.size, 3) * drawing.size)
        by_place.setdefault(place, []).append(joint.name)
    style = {"fontsize": 9, "color": INK, "zorder": 7, "annotation_clip": False}
    box = {"boxstyle": "round,pad=0.12", "fc": "white", "ec": "none", "alpha": 0.7}
    for place, joints in by_place.items():
        _note(ax, ", ".join(joints), np.array(place), (7, 7), flat, {**style, "fontweight": "bold", "bbox": box})
    for body in drawing.bodies[drawing.system.n_bases :]:
        where = seen(body.row, body.com)[0]
        _note(ax, body.name, where, (6, -12), flat, {**style, "color": body.colour, "fontstyle": "italic", "bbox": box})


def _note(ax: Any, text: str, at: Array, offset: tuple[int, int], flat: bool, style: dict[str, Any]) -> None:
    """Text some points beside a place, also in 3-D, where `annotate` knows of two coordinates alone."""
    if flat:
        ax.annotate(text, at, offset, textcoords="offset points", **style)
    else:
        style = {k: v for k, v in style.items() if k != "annotation_clip"}
        ax.text(*at, f" {text}", **style, va="bottom" if offset[1] > 0 else "top")


def _frame(ax: Any, points: Array, flat: bool, basis: Array) -> None:
    """Equal scales and some room around."""
    low, high = points.min(axis=0), points.max(axis=0)
    names = [_axis_name(row) for row in basis]
    if flat:
        room = 0.09 * float(np.max(high - low))
        ax.set_xlim(low[0] - room, high[0] + room)
        ax.set_ylim(low[1] - room, high[1] + room)
        ax.set_aspect("equal", adjustable="box")
        ax.set_xlabel(f"{names[0]} in m")
        ax.set_ylabel(f"{names[1]} in m")
        ax.grid(color="0.92")
        ax.set_axisbelow(True)
        return
    _set_room(ax, low, high)
    ax.set(xlabel=f"{names[0]} in m", ylabel=f"{names[1]} in m", zlabel=f"{names[2]} in m")
    ax.view_init(elev=18, azim=-62)
    for axis in (ax.xaxis, ax.yaxis, ax.zaxis):
        axis.pane.set_facecolor("0.985")
        axis._axinfo["grid"]["color"] = "0.9"
    ax.tick_params(labelsize=8)


def _set_room(ax: Any, low: Array, high: Array) -> None:
    """Limits of 3-D axes with one scale for all three and the mechanism standing on the floor of the box."""
    longest = float(np.max(high - low))
    size = 1.08 * np.maximum(high - low, 0.35 * longest)  # a flat box would be hard to read in depth
    middle = (low + high) / 2
    ax.set(xlim=middle[0] + size[0] * HALVES, ylim=middle[1] + size[1] * HALVES)
    ax.set_zlim(low[2] - 0.02 * longest, low[2] - 0.02 * longest + size[2])
    ax.set_box_aspect(size, zoom=1.05)


HALVES = np.array([-0.5, 0.5])


def _axis_name(direction: Array) -> str:
    """Name of a world axis, or the direction."""
    k = int(np.argmax(np.abs(direction)))
    if abs(direction[k]) > 1 - 1e-9:
        return ("" if direction[k] > 0 else "−") + "xyz"[k]
    return "(" + ", ".join(f"{c:.2f}" for c in direction) + ")"


# ------------------------------------------------------------------------------------------------- films


def write_film(run: RunLike, path: str | Path, *, fps: int = 25, speed: float = 1.0, dpi: int = 100) -> Path:
    """Write a run as a film (``.gif``, ``.mp4``) or its first moment as a picture (``.png``).

    Parameters
    ----------
    run : Run
    path : str or Path
        File to write. MP4 needs ffmpeg, on the path or from the package imageio-ffmpeg.
    fps : int
        Frames per second of film.
    speed : float
        Seconds of the run per second of film.
    dpi : int
        Pixels per inch of a picture 7.5 inches wide.

    Returns
    -------
    Path
        The file.
    """
    import matplotlib.pyplot as plt

    path = Path(path)
    kind = path.suffix.lower()
    if kind not in (".gif", ".mp4", ".png"):
        raise LoopdynError(f"film '{path}': the kind '{kind}' is unknown. End its name in .gif, .mp4 or .png.")
    if not (fps > 0 and speed > 0 and np.isfinite(speed)):
        raise LoopdynError(f"film '{path}': fps and speed must be positive, they are {fps} and {speed}. Change them.")
    writer = None if kind == ".png" else _writer(kind, fps)
    drawing = Drawing(run.system)
    time = np.asarray(run.data["time"], float)
    poses = poses_of(run)
    ax = _new_axes(drawing)
    figure = ax.figure
    limits = _room_of_motion(drawing, poses)

    def draw(t: float) -> None:
        k = int(np.argmin(np.abs(time - t)))
        ax.clear()
        _draw(ax, drawing, (poses[0][k], poses[1][k]), names=False)
        _keep_limits(ax, limits)
        ax.set_title(f"{run.system.name}   t = {time[k]:.3f} s", fontsize=12, fontweight="bold", color=INK)

    try:
        draw(time[0])
        if writer is None:
            write_figure(path, figure, dpi=dpi)
            return path
        figure.canvas.draw()
        figure.set_layout_engine("none")  # laid out once: the axes stand still
        with in_words(path), tempfile.TemporaryDirectory() as folder:
            part = Path(folder) / f"film{kind}"
            with writer.saving(figure, part, dpi):
                for t in np.arange(time[0], time[-1] + 0.5 * speed / fps, speed / fps):
                    draw(t)
                    writer.grab_frame()
            write(path, part.read_bytes())
    finally:
        plt.close(figure)
    return path


def _writer(kind: str, fps: int) -> Any:
    import matplotlib
    from matplotlib.animation import FFMpegWriter, PillowWriter

    if kind == ".gif":
        return PillowWriter(fps=fps)
    if not FFMpegWriter.isAvailable():
        try:
            import imageio_ffmpeg
        except ImportError:
            raise LoopdynError(
                "film: MP4 needs ffmpeg, which is not there. Install it, pip install imageio-ffmpeg, or write a .gif."
            ) from None
        matplotlib.rcParams["animation.ffmpeg_path"] = imageio_ffmpeg.get_ffmpeg_exe()
    # 4:2:0 colours, which every player knows, need even numbers of pixels
    return FFMpegWriter(fps=fps, extra_args=["-pix_fmt", "yuv420p", "-vf", "crop=trunc(iw/2)*2:trunc(ih/2)*2"])


def _room_of_motion(drawing: Drawing, poses: tuple[Array, Array]) -> tuple[Array, Array]:
    """Lowest and highest values along the axes of the picture, over all poses."""
    basis = _axes_of_picture(drawing)[: 3 if drawing.normal is None else 2]
    points = []
    for body in drawing.bodies:
        own = [*drawing.joint_points(body.row), *(p for s in body.shapes for p in s.outline())]
        if own:
            all_ = poses[0][:, body.row, None] + np.array(own) @ poses[1][:, body.row].transpose(0, 2, 1)
            points.append((all_ @ basis.T).reshape(-1, len(basis)))
    every = np.concatenate(points)
    return every.min(axis=0), every.max(axis=0)


def _keep_limits(ax: Any, limits: tuple[Array, Array]) -> None:
    low, high = limits
    room = 0.09 * float(np.max(high - low))
    if len(low) == 2:
        ax.set(xlim=(low[0] - room, high[0] + room), ylim=(low[1] - room, high[1] + room))
        return
    _set_room(ax, low, high)
