"""Plots of runs: motion, loads, energies, residuals, choice of coordinates."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from loopdyn.errors import LoopdynError, ModelError, Problem
from loopdyn.files import write, write_figure
from loopdyn.joints.base import AxisJoint
from loopdyn.output.drawing import COLOURS, RunLike, determined
from loopdyn.output.plot.axes import ROUNDING, TITLE, Array, axis_name, legend, new_panels, no_blown_up_rounding
from loopdyn.quantities.wording import nearest, unknown
from loopdyn.results.bearings import FRAMES, Bearings
from loopdyn.results.units import coordinate_units, speed_units

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class RunPlots:
    """Plots of a run; each method makes a figure and returns it.

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

    def __call__(self, *labels: str) -> Figure:
        """Overview, or the coordinates that are named."""
        return self.coordinates(*labels) if labels else self.overview()

    # ------------------------------------------------------------------------------------ everything

    def overview(self) -> Figure:
        """Coordinates, speeds, energies and residuals in one figure."""
        s = self._system
        figure, panels = new_panels(f"{s.name}: overview", 4 if s.nc else 3)
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
            raise LoopdynError(f"plots cannot be written as '{file.name}'. The name must end in .png, .svg or .pdf.")
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
        return self._labelled("a", "Accelerations", labels, self._system.speeds, speed_units(self._system, 2))

    def measures(self, *names: str) -> Figure:
        """Measures of the model over time, all or those named; one panel per unit."""
        known = self._system.measures
        if not known:
            raise LoopdynError("the model has no measures. Add them: measures: {name: formula}, or m.add_measure.")
        return self._labelled("measures", "Measures", names, list(known), [m.unit for m in known.values()])

    def phase(self, label: str) -> Figure:
        """Phase portrait of one coordinate: speed over coordinate."""
        both = [c for c in self._system.coordinates if c in self._system.speeds]
        if label not in both:
            hint = nearest(label, both)
            raise ModelError([Problem("phase portrait", f"'{label}' has no coordinate with a speed of its own", hint)])
        kq, kv = self._system.coordinates.index(label), self._system.speeds.index(label)
        q, v = self._variable("q").values[:, kq], self._variable("v").values[:, kv]
        figure, (ax,) = new_panels(f"{self._system.name}: phase portrait of {label}", 1, height=4.6)
        ax.plot(q, v, color=COLOURS[0], lw=1.4)
        ax.plot(q[0], v[0], "o", color=COLOURS[0], mfc="white", label=f"t = {self._time[0]:g} s")
        ax.plot(q[-1], v[-1], "o", color=COLOURS[0], label=f"t = {self._time[-1]:g} s")
        ax.set_xlabel(f"{label} in {coordinate_units(self._system)[kq]}")
        ax.set_ylabel(f"speed of {label} in {speed_units(self._system)[kv]}")
        legend(ax, 2)
        return figure

    # --------------------------------------------------------------------------------------- loads

    def reactions(self, joint: str, axes: str = "joint") -> Figure:
        """Force and moment on the child of a joint, in its own axes or those of the "world", its "parent" or "child".

        Statically indeterminate components, and those they mix with in other axes, are hatched.
        """
        wrench = self._variable("wrench")
        names = [str(name) for name in wrench["joint"].values]
        if joint not in names:
            raise unknown("reactions", "joint", [joint], names)
        values = wrench.sel(joint=joint).values
        unique = determined(self._data).sel(joint=joint).values
        if axes != "joint":
            force, moment, known = self._bearings().load(joint, axes)
            values, unique = np.hstack([moment, force]), np.roll(known, 3)
        components = [str(c) for c in wrench["component"].values]
        child = self._system.bodies[self._system.joints[joint].child]
        where = "world axes" if axes == "world" else f"axes of the {axes}"
        figure, panels = new_panels(f"{self._system.name}: reaction in {joint} on {child}, {where}", 2)
        units = self._system.units
        scale = float(np.nanmax(np.abs(values), initial=0.0))
        for ax, first, unit in ((panels[0], 3, units.force), (panels[1], 0, units.torque)):
            for n in range(3):
                k = first + n
                _component(ax, self._time, values[:, k], components[k], COLOURS[n], determined=bool(unique[k]))
            ax.set_ylabel(unit)
            no_blown_up_rounding(ax, scale)
            legend(ax, 3)
        panels[-1].set_xlabel("time in s")
        return figure

    def polar(self, joint: str) -> Figure:
        """Polar plot of the radial force of a bearing on its child.

        In axes of the world (if the joint axis keeps its direction there), of the parent and of the child: a load that
        is constant in axes of a ring wears one spot of it. The dot is the first time. A statically indeterminate force
        is refused, since it has no such curve.

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
        if not isinstance(data.spec, AxisJoint):
            raise LoopdynError(f"polar: '{joint}' has no axis. Use plot.reactions('{joint}').")
        if not loads.unique[n, 3:5].all():
            raise LoopdynError(
                f"polar: the force across the axis of '{joint}' is statically indeterminate, so there is no "
                f"curve to draw. See ld.mobility for the redundant constraints, or use plot.reactions('{joint}')."
            )
        views = [("parent", data.F[1], self._system.bodies[data.parent]), ("child", data.M[1], None)]
        F = loads.axes[:, n, FRAMES.index("world")]
        if data.parent >= self._system.n_bases and np.ptp(F[:, :, 2], axis=0).max(initial=0.0) < ROUNDING:
            views.insert(0, ("world", F[0], "the world"))
        figure, panels = plt.subplots(
            1, len(views), figsize=(4.6 * len(views), 5.4), subplot_kw={"projection": "polar"}, layout="constrained"
        )
        figure.suptitle(f"{self._system.name}: force in {joint}, {self._system.units.force}", **TITLE)
        for ax, (axes, frame, body) in zip(panels, views, strict=True):
            first, second = _across(frame)
            force = loads.load(joint, axes)[0]
            x, y = force @ first, force @ second
            ax.plot(np.arctan2(y, x), np.hypot(x, y), color=COLOURS[0], lw=1.3)
            ax.plot(np.arctan2(y[:1], x[:1]), np.hypot(x[:1], y[:1]), "o", color=COLOURS[0], ms=5)
            name = body or self._system.bodies[data.child]
            ax.set_title(f"in axes of {name}; 0° is {axis_name(first)}", fontsize=9)
            ax.tick_params(labelsize=8)
        if not np.isfinite(loads.wrench[:, n]).all():
            figure.supxlabel("gaps: singular passages, where forces may be unbounded", fontsize=8)
        return figure

    def shaking(self) -> Figure:
        """Shaking force and moment about the world origin on the ground."""
        units = self._system.units
        values = self._of_run("shaking") / np.repeat([units.factor("force"), units.factor("torque")], 3)
        figure, panels = new_panels(f"{self._system.name}: force and moment on the frame, weight included", 2)
        scale = float(np.abs(values).max(initial=0.0))
        for ax, first, unit in ((panels[0], 0, units.force), (panels[1], 3, units.torque)):
            for k in range(3):
                ax.plot(
                    self._time, values[:, first + k], color=COLOURS[k], label=("f" if first == 0 else "m") + "xyz"[k]
                )
            ax.set_ylabel(unit)
            no_blown_up_rounding(ax, scale)
            legend(ax, 3)
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
        """Kinetic, potential and total energy, and the energy-balance error."""
        figure, panels = new_panels(f"{self._system.name}: energy", 1 + ("energy_balance" in self._data))
        self._draw_energies(panels[0])
        if "energy_balance" in self._data:
            panels[1].plot(self._time, self._data["energy_balance"].values, color=COLOURS[4], label="balance error")
            panels[1].set_ylabel("J")
            legend(panels[1], 1)
        panels[-1].set_xlabel("time in s")
        return figure

    def residuals(self) -> Figure:
        """Largest residual of the constraints at position, velocity and acceleration level, logarithmic."""
        figure, (ax,) = new_panels(f"{self._system.name}: residuals of the constraints", 1)
        self._draw_residuals(ax)
        ax.set_xlabel("time in s")
        return figure

    def active(self) -> Figure:
        """Independent speeds over time, and the criterion of their choice."""
        active, criterion = self._variable("partition"), self._variable("criterion")
        names = [str(name) for name in active["speed"].values]
        figure, (bars, ax) = new_panels(f"{self._system.name}: independent coordinates", 2)
        for n, name in enumerate(names):
            colour, on = COLOURS[n % len(COLOURS)], active.values[:, n].astype(bool)
            bars.fill_between(self._time, n - 0.4, n + 0.4, where=on, color=colour, lw=0)
            ax.plot(self._time, criterion.values[:, n], color=colour, lw=1.2, label=name)
        bars.set_yticks(range(len(names)), names)
        bars.set_ylim(len(names) - 0.5, -0.5)
        ax.set_ylabel("criterion, cos² α")
        ax.set_xlabel("time in s")
        legend(ax, len(names))
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
        legend(ax, len(columns))

    def _draw_energies(self, ax: Axes) -> None:
        kinetic, potential = self._variable("energy_kinetic").values, self._variable("energy_potential").values
        lines = (("kinetic", kinetic), ("potential", potential), ("total", kinetic + potential))
        for (name, values), colour in zip(lines, COLOURS[:3], strict=True):
            ax.plot(self._time, values, color=colour, label=name)
        ax.set_ylabel("J")
        legend(ax, 3)

    def _draw_residuals(self, ax: Axes) -> None:
        for level, colour in zip(("position", "velocity", "acceleration"), COLOURS, strict=False):
            rows = np.abs(self._variable(f"residual_{level}").values).reshape(len(self._time), -1)
            values = rows.max(axis=1, initial=0.0)
            ax.plot(self._time, np.where(values > 0.0, values, np.nan), color=colour, label=level)
        ax.set_yscale("log")
        units = self._system.units
        ax.set_ylabel(f"{units.length} or {units.angle}, per s, per s²")
        legend(ax, 3)

    def _labelled(
        self, name: str, what: str, chosen: Sequence[str], labels: Sequence[str], units: Sequence[str]
    ) -> Figure:
        """Columns of a variable, one panel per unit."""
        wrong = [label for label in chosen if label not in labels]
        if wrong:
            raise unknown(what.lower(), "label", wrong, labels)
        values = self._variable(name).values
        shown = [labels.index(label) for label in chosen] if chosen else range(len(labels))
        by_unit: dict[str, list[int]] = {}
        for k in shown:
            by_unit.setdefault(units[k], []).append(k)
        figure, panels = new_panels(f"{self._system.name}: {what.lower()}", max(len(by_unit), 1))
        for ax, (unit, columns) in zip(panels, by_unit.items(), strict=False):
            self._draw_columns(ax, values, columns, labels)
            ax.set_ylabel("quaternion" if unit == "1" and name == "q" else unit)
        panels[-1].set_xlabel("time in s")
        return figure


def _component(ax: Axes, time: Array, values: Array, name: str, colour: str, *, determined: bool) -> None:
    if determined:
        ax.plot(time, values, color=colour, label=name)
        return
    label = f"{name}, indeterminate"
    ax.fill_between(time, 0.0, values, facecolor="none", edgecolor=colour, hatch="////", lw=0.0, alpha=0.7, label=label)
    ax.plot(time, values, "--", color=colour)


def _across(axes: Array) -> tuple[Array, Array]:
    """Two directions normal to z of a frame, right-handed with it: along an axis of its body if normal to z, or x."""
    z = axes[:, 2]
    level = [e for e in np.eye(3) if abs(e @ z) < ROUNDING]
    first = level[0] if level else axes[:, 0]
    return first, np.cross(z, first)
