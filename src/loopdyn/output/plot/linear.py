"""Poles, and frequency responses, of a linearization."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from loopdyn.output.drawing import COLOURS
from loopdyn.output.plot.axes import legend, new_panels
from loopdyn.results.linearization import Linearization

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot_poles(found: Linearization) -> Figure:
    """Plot the poles in the complex plane, rad/s; zero ones with their number."""
    figure, (ax,) = new_panels(f"{found.system.name}: poles", 1, height=4.5)
    poles, zeros = found.poles(), sum(found.zero_chains)
    others = poles[zeros:]
    ax.axvline(0.0, color="0.6", linewidth=0.8)
    ax.plot(others.real, others.imag, "x", color=COLOURS[0], markersize=8, label="poles")
    if zeros:
        ax.plot([0.0], [0.0], "o", fillstyle="none", color=COLOURS[1], label=f"{zeros} zero")
    ax.set_xlabel("real part in rad/s")
    ax.set_ylabel("imaginary part in rad/s")
    legend(ax, 2)
    return figure


def plot_response(found: Linearization, response: Any) -> Figure:
    """Plot gain and phase of each output for each input over the angular frequency."""
    figure, (gain, phase) = new_panels(f"{found.system.name}: frequency response", 2, height=3.0)
    omega, n = response["omega"].values, 0
    for i, into in enumerate(found.inputs):
        for k, out in enumerate(found.outputs):
            values = response.values[:, k, i]
            label = f"{out.name} [{out.unit}] per {into.name} [{into.unit}]"
            gain.loglog(omega, np.abs(values), color=COLOURS[n % len(COLOURS)], label=label)
            phase.semilogx(omega, np.degrees(np.unwrap(np.angle(values))), color=COLOURS[n % len(COLOURS)])
            n += 1
    gain.set_ylabel("gain")
    phase.set_ylabel("phase in deg")
    phase.set_xlabel("rad/s")
    legend(gain, n)
    return figure
