"""First page of a report: whose it is, units, motors against their characteristics, worst bearings, the last cycle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from loopdyn.output.drawing import COLOURS
from loopdyn.output.plot.axes import TITLE
from loopdyn.quantities.expressions import parsed, resolve_parameters
from loopdyn.results.bearings import rms
from loopdyn.results.run import Run
from loopdyn.system.system import System

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = NDArray[np.float64]

WORST = 5  # bearings that are listed
LEAST = 3  # outputs of a cycle
POINTS = 101  # of a characteristic


@dataclass(frozen=True)
class Cycle:
    """The last full turn of the input in a run, and what is before it: the start-up.

    Examples
    --------
    >>> import numpy as np
    >>> Cycle.last(np.array([0.0, 2.0, 5.0, 8.0, 10.0]), 6.0).first
    1
    """

    first: int  # output with which it begins

    @classmethod
    def last(cls, angle: Array, turn: float) -> Cycle | None:
        """The last turn of an angle; None if there is none, or too few outputs in it."""
        before = np.flatnonzero(np.abs(angle[-1] - angle) >= turn * (1.0 - 1e-9)) if len(angle) else np.array([], int)
        return cls(int(before[-1])) if len(before) and len(angle) - before[-1] >= LEAST else None


def cycle_of(run: Run, label: str | None) -> Cycle | None:
    """The last full turn of an input, if it is an angle and turns fully in a run."""
    known = run.system.labels.coordinates
    if label not in known or known[label].dimension != "angle":
        return None
    return Cycle.last(run[label].values, 2.0 * np.pi / run.system.units.factor("angle"))


def worst_bearings(run: Run, cycle: Cycle | None) -> list[list[Any]]:
    """Rows of the bearings with the largest forces: name, largest in start-up and in the last cycle, its RMS.

    Without a cycle: name, largest and RMS of the whole run. A force with indeterminate components has a question mark.
    """
    bearings, rows = run.bearings(), list[tuple[str, list[float]]]()
    for joint in bearings.joints:
        force, _, known = bearings.load(joint)
        size = np.linalg.norm(force, axis=1)
        unbounded = np.isnan(size)
        size[unbounded] = 0.0
        first = 0 if cycle is None else cycle.first
        last = size[first:]
        peaks = (
            [float(np.max(last))] if cycle is None else [float(np.max(size[: cycle.first + 1])), float(np.max(last))]
        )
        name = joint + ("" if known[:3].all() else " ?") + (", unbounded in a singular pose" if unbounded.any() else "")
        rows.append((name, [*peaks, rms(last, run.path.t[first:])]))
    return [[name, *values] for name, values in sorted(rows, key=lambda row: -max(row[1]))[:WORST]]


def motors_of(system: System) -> dict[str, str]:
    """Names of the motors of a model, with the coordinates they act on."""
    return {name: str(f.joint) for name, f in system.mechanism.forces.items() if f.type == "motor"}


def characteristic(system: System, motor: str, speeds: Array) -> Array | None:
    """Load of a motor at these speeds in declared units; None if it depends on something else than its speed."""
    m = system.mechanism
    law = m.forces[motor].torque if m.forces[motor].torque is not None else m.forces[motor].force  # type: ignore[union-attr]
    if isinstance(law, float | int):
        return np.full(len(speeds), float(law))
    if not isinstance(law, str):
        return None
    formula, values = parsed(law), resolve_parameters(m.parameters)
    if not formula.names <= {"speed", *values}:
        return None
    return np.array([formula.evaluate({**values, "speed": float(v)}) for v in speeds])


def plot_motor_loads(run: Run, cycle: Cycle | None) -> Figure | None:
    """Plot the load of each motor over its speed, start-up apart, with its characteristic; None without motors."""
    import matplotlib.pyplot as plt

    motors = motors_of(run.system)
    if not motors:
        return None
    figure, axes = plt.subplots(1, len(motors), figsize=(max(6.0, 4.6 * len(motors)), 4.0), squeeze=False,
                                layout="constrained")  # fmt: skip
    figure.suptitle(f"{run.system.name}: loads of motors over their speeds", **TITLE)
    first = 0 if cycle is None else cycle.first
    for k, (ax, (name, joint)) in enumerate(zip(axes[0], motors.items(), strict=True)):
        load, speed = run[f"{name}.load"], run[f"{joint}.speed"]
        whole = 1.1 * float(speed.values[np.argmax(np.abs(speed.values))]) * np.linspace(0.0, 1.0, POINTS)
        curve = characteristic(run.system, name, whole)
        if curve is not None:
            ax.plot(whole, curve, "--", color="0.4", label="characteristic")
        if first:
            ax.plot(speed[: first + 1], load[: first + 1], color="0.7", label="start-up")
        ax.plot(speed[first:], load[first:], color=COLOURS[k % len(COLOURS)], label="last cycle" if cycle else "run")
        ax.set(xlabel=f"speed in {speed.attrs['units']}", ylabel=f"load in {load.attrs['units']}")
        ax.set_title(name, fontsize=10)
        ax.grid(color="0.92")
        ax.legend(fontsize=9)
    return figure
