"""Kinematic analysis over a range of inputs: coordinates, derivatives, paths of points."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from loopdyn.output.drawing import COLOURS
from loopdyn.output.plot.axes import INK, legend, new_panels
from loopdyn.results.drive import Drive

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot_drive(drive: Drive, labels: Sequence[str] = ()) -> Figure:
    """Plot coordinates, first and second derivatives, and smallest singular value over the parameter, with events."""
    chosen = list(labels) or [str(x) for x in drive.data["speed"].values if drive.unit(str(x)) != "1"]
    by_unit: dict[str, list[str]] = {}
    for label in chosen:
        by_unit.setdefault(drive.unit(label), []).append(label)
    figure, panels = new_panels(f"{drive.system.name} driven at {', '.join(drive.inputs)}", 3 * len(by_unit) + 1)
    x = drive.parameter_values()
    rows = [("q", "coordinate", 0), ("v", "speed", 1), ("a", "speed", 2)]
    for ax, (name, dim, order, unit) in zip(panels, [(*r, u) for r in rows for u in by_unit], strict=False):
        for n, label in enumerate(by_unit[unit]):
            if dim == "coordinate" and label not in drive.data["coordinate"].values:
                continue
            column = drive.data[name].sel({dim: label})
            ax.plot(x, column, color=COLOURS[n % len(COLOURS)], label=label + "'" * order)
            ax.set_ylabel(column[column.attrs["units"]].item())
        legend(ax, len(by_unit[unit]))
    panels[-1].plot(x, drive.data["quality"].values, color=INK)
    panels[-1].set_ylabel("quality")
    panels[-1].set_ylim(bottom=0.0)
    panels[-1].set_xlabel(drive.parameter_label())
    styles = {"turning point": ":", "change point": "--"}
    for event in drive.events:
        if event.kind == "turning point" and event.label not in chosen:
            continue
        for ax in panels:
            ax.axvline(event.value, ls=styles.get(event.kind, "-"), color="0.6", lw=0.9, zorder=0.5)
    return figure


def plot_drive_point(drive: Drive, body: str, path: Any) -> Figure:
    """Plot the path of a point of a body, seen along the world axis of its smallest extent."""
    unit, x = path["position"].attrs["units"], path["position"].values
    flat = int(np.argmin(np.ptp(x, axis=0)[::-1]))  # z if equal
    first, second = (k for k in range(3) if k != 2 - flat)
    figure, (ax,) = new_panels(f"{drive.system.name}: path of a point of {body}", 1, height=5.0)
    ax.plot(x[:, first], x[:, second], color=COLOURS[0])
    ax.plot(x[0, first], x[0, second], "o", color=COLOURS[0], mfc="white", label="start")
    ax.plot(x[-1, first], x[-1, second], "o", color=COLOURS[0], label="end")
    ax.set_aspect("equal", adjustable="datalim")
    ax.set_xlabel(f"{'xyz'[first]} in {unit}")
    ax.set_ylabel(f"{'xyz'[second]} in {unit}")
    legend(ax, 2)
    return figure
