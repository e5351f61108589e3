"""Plots of sensitivities: contributions of parameters to quantities."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from loopdyn.output.drawing import COLOURS
from loopdyn.output.plot.axes import legend, new_panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from loopdyn.results.sensitivity import Sensitivity


def plot_sensitivity(found: Sensitivity) -> Figure:
    """Plot derivative times parameter of each quantity: the largest bar first, or curves along the path."""
    title = f"{found.system.name}: contributions of parameters"
    sizes = np.array(list(found.parameters.values()))
    names = list(found.parameters)
    height = 2.7 if found.along else 0.8 + 0.3 * len(names)
    figure, panels = new_panels(title, len(found.of), height=height)
    for i, (ax, name) in enumerate(zip(panels, found.of, strict=True)):
        unit = found.units[i]
        if found.along:
            ((_, x),) = found.along.items()
            for j, parameter in enumerate(names):
                ax.plot(x, found.derivatives[i, j] * sizes[j], color=COLOURS[j % len(COLOURS)], label=parameter)
            ax.set_ylabel(f"{name} in {unit}")
            legend(ax, len(names))
            continue
        values = found.derivatives[i] * sizes
        order = np.argsort(np.abs(values))
        ax.barh([names[k] for k in order], values[order], color=COLOURS[0])
        ax.axvline(0.0, color="0.4", linewidth=0.8)
        ax.set_title(f"{name} = {float(found.values[i]):.6g} {unit}", fontsize=10)
    panels[-1].set_xlabel(", ".join(found.along) or "derivative times value of the parameter")
    return figure
