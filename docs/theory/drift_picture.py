"""Draw drift.png: gap of a four-bar over time for every drift control (tests/literature/test_anderson2003.py).

python docs/theory/drift_picture.py
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.literature.test_anderson2003 import SETS, TIMES, gap

LOOKS = {
    "none": {"color": "tab:red"},
    "velocity": {"color": "tab:orange", "ls": "--"},
    "baumgarte": {"color": "tab:purple", "ls": "-."},
    "projection": {"color": "tab:blue", "marker": "o", "ms": 4, "mfc": "white", "markevery": 0.1},
}


def main() -> None:
    """One panel per set of parameters."""
    figure, axes = plt.subplots(1, 3, figsize=(12, 3.9), sharex=True, sharey=True, layout="constrained")
    t = np.linspace(0, 20, 2001)
    for ax, (name, (gravity, speed, _, reference)) in zip(axes, SETS.items(), strict=True):
        for drift, look in LOOKS.items():
            largest = np.maximum.accumulate(gap(name, drift))
            ax.loglog(t[10:], np.maximum(largest[10:], 1e-17), label=drift, **look)
        ax.loglog(TIMES, reference, "k+", ms=8, label="prototype, acceleration level")
        guide = reference[-1] * (t[100:] / 20.0) ** 2
        ax.loglog(t[100:], 3 * guide, "k:", lw=1, label="square of time")
        ax.set_title(f"{name}: g = {gravity:g} m/s², crank {speed:g} rad/s", fontsize=10)
        ax.set_xlabel("time in s")
        ax.grid(color="0.9")
    axes[0].set_ylabel("largest gap so far in m")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=6, frameon=False)
    figure.savefig(Path(__file__).parent / "drift.png", dpi=90)


if __name__ == "__main__":
    main()
