"""Plot of variants of a mechanism."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loopdyn.errors import LoopdynError
from loopdyn.output.drawing import COLOURS
from loopdyn.output.plot.axes import legend, new_panels
from loopdyn.quantities.wording import unknown
from loopdyn.results.units import coordinate_units

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from loopdyn.studies.variants import Variants


def plot_variants(found: Variants, label: str) -> Figure:
    """Plot a coordinate of all variants over time."""
    runs = [(v.name, v.run) for v in found.variants if v.run is not None]
    if not runs:
        raise LoopdynError(f"no variant of '{found.title}' has a run to plot. Print the variants to see why.")
    labels = runs[0][1].system.coordinates
    if label not in labels:
        raise unknown("plot", "coordinate", [label], labels)
    figure, (ax,) = new_panels(f"{found.title}: {label} of {len(runs)} variants", 1, height=3.6)
    for n, (name, run) in enumerate(runs):
        k = run.system.coordinates.index(label)
        ax.plot(run.path.t, run.path.q[:, k], color=COLOURS[n % len(COLOURS)], label=name)
    ax.set(xlabel="time in s", ylabel=f"{label} in {coordinate_units(runs[0][1].system)[labels.index(label)]}")
    legend(ax, len(runs))
    return figure
