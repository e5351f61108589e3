"""Plot of the criterion for independent coordinates along a motion."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loopdyn.analysis.coordinates import Sweep
from loopdyn.output.drawing import COLOURS
from loopdyn.output.plot.axes import legend, new_panels
from loopdyn.results.units import coordinate_units

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot_criterion(sweep: Sweep) -> Figure:
    """Plot the projective criterion of each coordinate along a motion; dashed, the criterion by geometry alone."""
    figure, (ax,) = new_panels(f"{sweep.system.name}: projective criterion", 1, height=3.6)
    for n, label in enumerate(sweep.system.speeds):
        colour = COLOURS[n % len(COLOURS)]
        ax.plot(sweep.value, sweep.cosine[:, n], color=colour, label=label)
        ax.plot(sweep.value, sweep.svd[:, n], "--", color=colour, lw=0.9, label=f"{label}, SVD")
    ax.set_ylim(-0.02, 1.02)
    ax.set_ylabel("cos² α")
    ax.set_xlabel(f"{sweep.label} in {coordinate_units(sweep.system)[sweep.system.coordinates.index(sweep.label)]}")
    legend(ax, 2 * len(sweep.system.speeds))
    return figure
