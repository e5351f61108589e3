"""Draw sensitivities.png: why a derivative jumps at an event, for a ball that rebounds, from closed forms alone.

python docs/theory/sensitivities_picture.py
"""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
G, E = 9.81, 0.8


def height(t: Array, h: float) -> Array:
    """Height of a ball that falls from h and rebounds once."""
    T = np.sqrt(2 * h / G)
    s = t - T
    return np.where(s < 0, h - 0.5 * G * t**2, E * G * T * s - 0.5 * G * s**2)


def derivative(t: Array, h: float) -> Array:
    """Derivative of the height by h: one before the event, that of docs/theory/sensitivities.md after it."""
    T = np.sqrt(2 * h / G)
    s = t - T
    return np.where(s < 0, 1.0, (E * G * (s - T) + G * s) / (G * T))


def main() -> None:
    """Write the picture next to this file."""
    t = np.linspace(0, 0.8, 1601)
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
    for h, style in ((1.0, "-"), (1.05, "--")):
        left.plot(t, height(t, h), style, color="0.15", label=f"h = {h:g} m")
    left.annotate("later event", (0.457, 0.03), (0.08, 0.25), arrowprops={"arrowstyle": "->"})
    left.set(xlabel="t, s", ylabel="height, m", title="two motions: the event moves with h")
    left.legend()
    T = np.sqrt(2 / G)
    before, after = t < T, t > T
    for part in (before, after):
        right.plot(t[part], derivative(t[part], 1.0), color="#1f5fa8")
    right.annotate("", (T, -E), (T, 1), arrowprops={"arrowstyle": "->", "ls": "--"})
    right.text(T + 0.01, 0.1, "saltation")
    right.set(xlabel="t, s", ylabel="derivative of the height by h", title="the derivative jumps at the event")
    figure.savefig(Path(__file__).with_name("sensitivities.png"), dpi=110)


if __name__ == "__main__":
    main()
