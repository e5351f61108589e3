"""Positions reached over a grid of inputs, with singular poses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from loopdyn.output.drawing import COLOURS
from loopdyn.output.plot.axes import legend, new_panels
from loopdyn.results.workspace import Workspace

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot_workspace(found: Workspace) -> Figure:
    """Plot positions, seen along the world axis of their smallest extent, and singular poses by type."""
    x = found.data["position"].values[found.data["reached"].values]
    flat = 2 - int(np.argmin(np.ptp(x, axis=0)[::-1]))  # z if equal
    first, second = (k for k in range(3) if k != flat)
    figure, (ax,) = new_panels(f"{found.system.name}: workspace of {found.output}", 1, height=5.0)
    ax.plot(x[:, first], x[:, second], ".", color=COLOURS[0], label="reached")
    kinds = sorted({p.kind for p in found.singular})
    for n, kind in enumerate(kinds, 1):
        at = np.array([p.position for p in found.singular if p.kind == kind])
        ax.plot(at[:, first], at[:, second], "x", color=COLOURS[n % len(COLOURS)], label=f"singular, {kind}")
    unit = found.system.units.symbol("length")
    ax.set_aspect("equal", adjustable="datalim")
    ax.set_xlabel(f"{'xyz'[first]} in {unit}")
    ax.set_ylabel(f"{'xyz'[second]} in {unit}")
    legend(ax, 1 + len(kinds))
    return figure
