"""Figures, axes, titles and legends of all plots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Array = NDArray[np.float64]

MARKERS, MARKED = "osD^v<>Px*", 9  # of curves, and their number along each
LEGEND_ROWS = 18  # entries of a legend before another column is begun
INK = "#1c2430"
TITLE: dict[str, Any] = {"fontsize": 12, "fontweight": "bold", "color": INK}
# Values this small relative to the largest number of a picture are rounding, not a curve.
ROUNDING = 1e-9


def new_panels(title: str, count: int, height: float = 2.7) -> tuple[Figure, list[Axes]]:
    """A figure with panels below each other over one abscissa."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(count, 1, figsize=(8.4, 0.5 + height * count), sharex=True, layout="constrained")
    panels: list[Axes] = list(np.atleast_1d(axes))
    figure.suptitle(title, **TITLE)
    for ax in panels:
        ax.grid(color="0.9")
        ax.set_axisbelow(True)
        ax.spines[["top", "right"]].set_visible(False)
    return figure, panels


def mark_curves(ax: Axes) -> None:
    """Give the curves of a picture markers, if there are several, so that they differ without colour, too."""
    curves = [c for c in ax.lines if not str(c.get_label()).startswith("_") and c.get_marker() in ("None", "", None)]
    if len(curves) < 2:
        return
    for k, curve in enumerate(curves):
        step = max(1, len(np.atleast_1d(curve.get_xdata())) // MARKED)
        curve.set(
            marker=MARKERS[k % len(MARKERS)],
            markersize=4.5,
            markerfacecolor="none" if k < len(MARKERS) else curve.get_color(),
            markevery=(k * step // len(curves), step),
        )


def legend(ax: Axes, entries: int) -> None:
    """Add a legend to the right of the data, never on it; curves get markers."""
    mark_curves(ax)
    columns = max(1, -(-entries // LEGEND_ROWS))
    size = 9 if entries <= LEGEND_ROWS // 2 else 7
    ax.legend(
        loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0.0, frameon=False, ncols=columns, fontsize=size
    )


def no_blown_up_rounding(ax: Axes, scale: float) -> None:
    """Set limits at which a curve of rounding errors appears as zero."""
    low, high = ax.get_ylim()
    if high - low < ROUNDING * scale:
        ax.set_ylim(-0.1 * scale, 0.1 * scale)


def axis_name(direction: Array) -> str:
    """Name of a world axis, or the direction."""
    k = int(np.argmax(np.abs(direction)))
    if abs(direction[k]) > 1 - 1e-9:
        return ("" if direction[k] > 0 else "−") + "xyz"[k]
    return "(" + ", ".join(f"{c:.2f}" for c in direction) + ")"
