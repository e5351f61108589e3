"""Draw graph.png: a mechanism, its graph, and its elimination; everything is read from the plan itself.

python docs/theory/graph_picture.py
"""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.lines import Line2D

import loopdyn as ld
from loopdyn.loops.elimination.plan import plan_elimination

STAGES = 6
SEVERED = ("L3", "R3", "L5", "R5")  # both rails at every second stage; in a long tower the plan chooses such joints
TREE, CUT, CUT_AGAIN, BODY = "0.25", "tab:red", "tab:orange", "tab:blue"
TRAVEL, FILL = "tab:green", "tab:purple"


def ends(system: ld.System) -> dict[str, np.ndarray]:
    """World points of the joints of each body at the reference pose, as x and z."""
    found: dict[str, list[np.ndarray]] = {name: [] for name in system.bodies}
    for j in system.joints.values():
        for body, (p, _) in ((j.parent, j.F), (j.child, j.M)):
            x, R = system.reference_poses[body]
            found[system.bodies[body]].append((x + R @ p)[[0, 2]])
    return {name: np.array(points) for name, points in found.items()}


def draw_mechanism(ax, system, places, status) -> None:
    """Links and joints as they are at the reference pose."""
    for body, points in places.items():
        if body == "ground":
            for x, z in points:
                ax.plot([x - 0.1, x + 0.1], [z, z], color="0.25", lw=5, solid_capstyle="butt", zorder=0)
            continue
        ax.plot(*points[[0, -1]].T, color=BODY, lw=5, alpha=0.35, solid_capstyle="round", zorder=1)
        ax.text(*points.mean(axis=0), body, ha="center", va="center", fontsize=8, zorder=4)
    for j in system.joints.values():
        x = place_of_joint(system, j)
        ax.plot(
            *x,
            "o",
            ms=12 if status[j.name] == CUT else 7,
            mfc="white",
            mec=status[j.name],
            mew=2,
            zorder=2 if status[j.name] == CUT else 3,
        )
        side = -1 if x[0] < 0 else 1
        shift = 0.07 if j.name[0] in "LR" else -0.07
        ax.text(x[0] + side * 0.05, x[1] + shift, j.name, ha="right" if side < 0 else "left", va="center", fontsize=8)
    ax.set_title("the mechanism: a tower of six stages", fontsize=10)
    ax.set_xlim(-0.75, 0.75)


def place_of_joint(system, j) -> np.ndarray:
    """World point of a joint at the reference pose, as x and z."""
    x, R = system.reference_poses[j.child]
    return (x + R @ j.M[0])[[0, 2]]


def draw_graph(ax, system, plan, places, status) -> None:
    """Bodies, joints between them, and the nodes of the plan that are open at each body."""
    at = {name: points.mean(axis=0) for name, points in places.items()}
    at["ground"] = np.array([0.0, 0.3])
    for j in system.joints.values():
        a, b = at[system.bodies[j.parent]], at[system.bodies[j.child]]
        style = "-" if status[j.name] == TREE else "--"
        ax.plot(*np.array([a, b]).T, style, color=status[j.name], lw=1.8, zorder=1)
        ax.text(*(0.5 * (a + b)), j.name, fontsize=7, ha="center", va="center", color=status[j.name],
                bbox={"fc": "white", "ec": "none", "pad": 0.6}, zorder=2)  # fmt: skip
    for i, name in enumerate(system.bodies):
        x, z = at[name]
        ax.plot(x, z, "o", ms=24, mfc="#dbe8f5" if name != "ground" else "0.85", mec="0.3", zorder=3)
        ax.text(x, z, name.replace("ground", "gr."), ha="center", va="center", fontsize=6.5, zorder=4)
        if i >= system.n_bases:
            names = ", ".join(plan.forest.nodes[k].name for k in plan.forest.open[i])
            side = -1 if x < -0.1 else 1
            if abs(x) < 0.15:
                ax.text(x, z - 0.13, names, ha="center", va="center", fontsize=7, color=TRAVEL)
            else:
                ax.text(x + side * 0.11, z, names, ha="right" if side < 0 else "left", va="center", fontsize=7,
                        color=TRAVEL)  # fmt: skip
    ax.set_title("its graph; in green the multipliers that travel with each body", fontsize=10)
    ax.set_xlim(-1.05, 1.05)


def draw_matrix(ax, plan) -> None:
    """Pattern of the matrix and of its factor."""
    pattern, nodes = plan.pattern, plan.forest.nodes
    n = pattern.rows
    order = np.argsort(pattern.place)
    present = np.zeros((n, n), bool)
    for clique in {plan.forest.open[i] for i in plan.forest.roots}:
        rows = [r for k in clique for r in range(*pattern.first[pattern.place[k] : pattern.place[k] + 2])]
        present[np.ix_(rows, rows)] = True
    width = np.diff(pattern.first)
    place = np.repeat(np.arange(len(nodes)), width)  # of each row
    for row in range(n):
        for column in range(row + 1):
            if place[row] != place[column] and place[row] not in pattern.below[place[column]]:
                continue
            color = TRAVEL if present[row, column] else FILL
            for x, y in {(column, row), (row, column)}:
                alpha = 1.0 if x <= y else 0.3  # the factor needs the lower half only
                ax.add_patch(plt.Rectangle((x - 0.42, y - 0.42), 0.84, 0.84, color=color, alpha=alpha, lw=0))
    middle = [(pattern.first[p] + pattern.first[p + 1] - 1) / 2 for p in range(len(nodes))]
    ax.set_xticks(middle, [nodes[k].name for k in order], fontsize=8)
    ax.set_yticks(middle, [nodes[k].name for k in order], fontsize=8)
    for edge in pattern.first:
        ax.axhline(edge - 0.5, color="0.8", lw=0.6, zorder=0)
        ax.axvline(edge - 0.5, color="0.8", lw=0.6, zorder=0)
    ax.set(xlim=(-0.5, n - 0.5), ylim=(n - 0.5, -0.5), aspect="equal")
    ax.tick_params(length=0)
    ax.set_title(
        "what is left: the matrix of multipliers, in the\norder of its elimination (purple: fill)", fontsize=10
    )


def main() -> None:
    """Write the picture beside this file."""
    system = ld.library.tower(STAGES).compile()
    plan = plan_elimination(system, {system.joints[name].body for name in SEVERED})
    status = (
        dict.fromkeys(system.joints, TREE)
        | dict.fromkeys(system.topology.cuts, CUT)
        | dict.fromkeys(SEVERED, CUT_AGAIN)
    )
    places = ends(system)
    fig, axes = plt.subplots(1, 3, figsize=(14, 7.6), layout="constrained", width_ratios=(1, 1.35, 1.15))
    draw_mechanism(axes[0], system, places, status)
    draw_graph(axes[1], system, plan, places, status)
    draw_matrix(axes[2], plan)
    for ax in axes[:2]:
        ax.axis("off")
        ax.set_ylim(-3.25, 0.45)
    handles = [
        Line2D([], [], color=TREE, label="joint of the tree: eliminated with its body"),
        Line2D([], [], color=CUT, ls="--", label="cut joint: closes a loop, its multipliers travel"),
        Line2D([], [], color=CUT_AGAIN, ls="--", label="severed joint: cut besides, so that few travel together"),
    ]
    fig.legend(handles=handles, loc="outside lower center", ncols=3, fontsize=9, frameon=False)
    fig.savefig(Path(__file__).with_name("graph.png"), dpi=110)


if __name__ == "__main__":
    main()
