"""Draw the pictures of graphs.md: labelled trees with their matrices, and a linkage with its tree and its loops.

python docs/theory/graphs_pictures.py
"""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

import loopdyn as ld

HERE = Path(__file__).parent
PATCH = {"facecolor": "white", "edgecolor": "none", "pad": 1.5}  # behind words on a line
# Places of the six bodies of [Mufti1983 Fig. 1], root at the top, and the body at the start of the arc to each.
PLACES = {
    "root": (0.0, 2.0),
    "left": (-0.9, 1.0),
    "right": (0.9, 1.0),
    "p": (-1.7, 0.0),
    "q": (-0.9, 0.0),
    "r": (-0.1, 0.0),
}
PARENTS = {"left": "root", "right": "root", "p": "left", "q": "left", "r": "left"}
# Numbers of bodies and of the arcs that end at them: regular as in Fig. 3a, arbitrary as in Fig. 3b of the report.
REGULAR = {"root": 1, "left": 2, "right": 3, "p": 4, "q": 5, "r": 6}
REGULAR_ARCS = {"left": 1, "right": 2, "p": 3, "q": 4, "r": 5}
ARBITRARY = {"root": 1, "left": 4, "right": 5, "p": 6, "q": 2, "r": 3}
ARBITRARY_ARCS = {"left": 2, "right": 1, "p": 3, "q": 4, "r": 5}


def incidence(bodies: dict[str, int], arcs: dict[str, int]) -> NDArray[np.int64]:
    """+1 where an arc starts, -1 where it ends [Mufti1983 eq. (1)]."""
    C = np.zeros((len(bodies), len(arcs)), np.int64)
    for name, arc in arcs.items():
        C[bodies[PARENTS[name]] - 1, arc - 1] = 1
        C[bodies[name] - 1, arc - 1] = -1
    return C


def tree(ax: Axes, bodies: dict[str, int], arcs: dict[str, int], title: str) -> None:
    """The directed tree with its numbers."""
    for name, arc in arcs.items():
        start, end = np.array(PLACES[PARENTS[name]]), np.array(PLACES[name])
        ax.annotate("", end, start, arrowprops={"arrowstyle": "-|>", "shrinkA": 13, "shrinkB": 13, "lw": 1.4})
        ax.text(*((start + end) / 2), f"$h_{arc}$", fontsize=10, ha="center", va="center", bbox=PATCH)
    for name, number in bodies.items():
        ax.plot(*PLACES[name], "o", ms=25, mfc="#dbe7f3", mec="0.2")
        ax.text(*PLACES[name], f"$b_{number}$", ha="center", va="center", fontsize=11)
    ax.set(xlim=(-2.2, 1.5), ylim=(-0.4, 2.4), title=title)
    ax.set_axis_off()


def matrix(ax: Axes, entries: NDArray[np.int64], rows: list[str], columns: list[str], title: str) -> None:
    """Entries in a grid; signs are printed, so that no colour is needed to read them."""
    ax.imshow(entries, cmap="RdBu", vmin=-3, vmax=3)
    for (i, j), value in np.ndenumerate(entries):
        ax.text(j, i, f"{value:+d}" if value else "0", ha="center", va="center", color="0.1" if value else "0.6")
    ax.set_xticks(range(len(columns)), columns)
    ax.set_yticks(range(len(rows)), rows)
    ax.xaxis.tick_top()
    ax.tick_params(length=0)
    ax.set_title(title, fontsize=11)


def labelling(path: Path) -> None:
    """Both labellings, their incidence matrices, and the path matrix of the regular one."""
    figure, axes = plt.subplots(2, 3, figsize=(11, 6.6), layout="constrained")
    names, joints = [f"$b_{k}$" for k in range(1, 7)], [f"$h_{k}$" for k in range(1, 6)]
    tree(axes[0, 0], REGULAR, REGULAR_ARCS, "regular labelling")
    C = incidence(REGULAR, REGULAR_ARCS)
    matrix(axes[0, 1], C, names, joints, "$C$: upper triangular without its first row")
    S = np.column_stack([-np.eye(6, 1, dtype=np.int64), C])
    T = np.rint(np.linalg.inv(S)).astype(np.int64)
    matrix(axes[0, 2], T, ["$h_0$", *joints], names, "$T = S^{-1}$: arcs on the path to each body")
    tree(axes[1, 0], ARBITRARY, ARBITRARY_ARCS, "arbitrary labelling")
    matrix(axes[1, 1], incidence(ARBITRARY, ARBITRARY_ARCS), names, joints, "$C$: no such structure")
    axes[1, 2].set_axis_off()
    figure.savefig(path, dpi=110)
    plt.close(figure)


WATT = {"ground": (0, 0), "crank": (-1, 1), "coupler": (0, 1.6), "rocker": (1, 1), "EG": (0.6, 2.6), "FG": (1.8, 2.0)}


def watt(path: Path) -> None:
    """Graph of Watt's six-bar: tree, cut joints, and the short loops that the cuts close."""
    topology = ld.library.watt().compile().topology
    figure, ax = plt.subplots(figsize=(7.2, 4.6), layout="constrained")
    for edge in topology.edges:
        start, end = (np.array(WATT[topology.names[b]]) for b in (edge.parent, edge.child))
        cut = edge.name in topology.cuts
        ax.plot(*np.transpose([start, end]), "--" if cut else "-", color="0.15", lw=1.3 if cut else 2.4)
        words = f"{edge.name}, cut" if cut else edge.name
        ax.text(*((start + end) / 2), words, fontsize=10, ha="center", va="center", bbox=PATCH)
    for name, place in WATT.items():
        ax.plot(*place, "o", ms=15, mfc="0.8" if name == "ground" else "#dbe7f3", mec="0.2", zorder=3)
        above = name in ("coupler", "EG", "FG")
        ax.text(place[0], place[1] + (0.17 if above else -0.3), name, fontsize=10, ha="center")
    ax.text(-0.02, 0.85, "loop 1", ha="center", style="italic")
    ax.text(0.93, 1.85, "loop 2", ha="center", style="italic")
    ax.set(xlim=(-1.5, 2.6), ylim=(-0.4, 3.0), title="Watt's six-bar: joints of the tree full, cut joints dashed")
    ax.set_axis_off()
    figure.savefig(path, dpi=110)
    plt.close(figure)


if __name__ == "__main__":
    labelling(HERE / "graphs_labelling.png")
    watt(HERE / "graphs_watt.png")
