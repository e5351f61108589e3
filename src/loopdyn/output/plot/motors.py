"""Motor loads of inverse dynamics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from loopdyn.output.drawing import COLOURS
from loopdyn.output.plot.axes import TITLE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from loopdyn.results.inverse_dynamics import InverseDynamics


def plot_motors(found: InverseDynamics, motors: Sequence[str]) -> Figure:
    """Plot load over speed of each motor along a motion, one panel each."""
    import matplotlib.pyplot as plt

    n, d = len(motors), found.data
    columns = min(n, 3)
    figure, axes = plt.subplots(
        -(-n // columns), columns, figsize=(max(6.0, 4.6 * columns), 0.5 + 3.6 * (-(-n // columns))), squeeze=False,
        layout="constrained",
    )  # fmt: skip
    figure.suptitle(f"{found.system.name}: loads of motors over their speeds", **TITLE)
    for ax in axes.ravel()[n:]:
        ax.set_visible(False)
    for k, (ax, motor) in enumerate(zip(axes.ravel(), motors, strict=False)):
        load, speed = (d[name].sel(motor=motor) for name in ("load", "motor_speed"))
        turns = found.dimensions[found.motors.index(motor)] == "torque"
        sure = np.where(found.possible, load, np.nan)
        ax.plot(speed, sure, color=COLOURS[k % len(COLOURS)], label=motor)
        if not found.possible.all():
            wrong = np.where(found.possible, np.nan, load)
            ax.plot(speed, wrong, ":", color="0.5", label="motion not possible")
        ax.plot(speed[:1], load[:1], "o", color=COLOURS[k % len(COLOURS)], ms=5)
        ax.axhline(0.0, color="0.75", lw=0.8, zorder=0)
        ax.axvline(0.0, color="0.75", lw=0.8, zorder=0)
        kind = "torque" if turns else "force"
        ax.set(xlabel=f"speed in {speed['motor_speed_units'].item()}", ylabel=f"{kind} in {load['motor_units'].item()}")
        ax.set_title(motor, fontsize=10)
        ax.grid(color="0.92")
    return figure
