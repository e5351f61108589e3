"""Motor loads of inverse dynamics."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from loopdyn.output.drawing import COLOURS
from loopdyn.output.plot.axes import TITLE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from loopdyn.results.inverse_dynamics import InverseDynamics


def plot_motors(found: InverseDynamics) -> Figure:
    """Plot load over speed of each motor along a motion, one panel each."""
    import matplotlib.pyplot as plt

    n = len(found.motors)
    columns = min(n, 3)
    figure, axes = plt.subplots(
        -(-n // columns), columns, figsize=(max(6.0, 4.6 * columns), 0.5 + 3.6 * (-(-n // columns))), squeeze=False,
        layout="constrained",
    )  # fmt: skip
    figure.suptitle(f"{found.system.name}: loads of motors over their speeds", **TITLE)
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
