"""Draw glossary_poses.png: turning points and a singular pose of four-bars, computed by the law of cosines.

python docs/glossary_poses.py
"""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

FRAME = 1.0


def triangle(near: float, far: float) -> np.ndarray:
    """Corner at the distances from the two ends of the frame, above it."""
    x = (near**2 + FRAME**2 - far**2) / (2 * FRAME)
    return np.array([x, np.sqrt(near**2 - x**2)])


def draw(ax: Axes, B: np.ndarray, C: np.ndarray, title: str) -> None:
    """Links AB, BC, CD of a four-bar on the frame AD."""
    A, D = np.zeros(2), np.array([FRAME, 0.0])
    for (p, q), name, style in (((A, B), "crank", "-"), ((B, C), "coupler", "--"), ((C, D), "rocker", "-.")):
        ax.plot(*np.transpose([p, q]), style, lw=3, label=name)
    ax.plot(*np.transpose([A, D]), color="0.6", lw=1)
    for p, name in ((A, "A"), (B, "B"), (C, "C"), (D, "D")):
        ax.plot(*p, "o", color="black", mfc="white", zorder=3)
        ax.annotate(name, p, textcoords="offset points", xytext=(5, 7))
    ax.set(title=title, aspect="equal", xlim=(-0.25, 1.7), ylim=(-0.15, 1.0))
    ax.axis("off")


def main() -> None:
    """Draw the three poses."""
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(11, 3.4))
    crank, coupler, rocker = 0.3, 0.9, 0.7
    C = triangle(crank + coupler, rocker)
    draw(left, C * crank / (crank + coupler), C, "crank and coupler in line")
    crank, coupler, rocker = 0.8, 0.5, 0.6
    B = triangle(crank, coupler + rocker)
    D = np.array([FRAME, 0.0])
    draw(middle, B, D + (B - D) * rocker / (coupler + rocker), "coupler and rocker in line")
    draw(right, np.array([0.5, 0.0]), np.array([1.5, 0.0]), "all links in line")
    left.legend(loc="upper left", fontsize=8)
    figure.tight_layout()
    figure.savefig(Path(__file__).with_name("glossary_poses.png"), dpi=110)


if __name__ == "__main__":
    main()
