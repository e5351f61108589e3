"""Draw the pictures of closure.md with loopdyn: Figs. 1 to 3 of Blajer 1993, and the closures over a turn.

python docs/theory/closure_pictures.py
"""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np

import loopdyn as ld

HERE = Path(__file__).parent
LENGTHS, MASSES = (1.0, 0.4, 0.9, 0.8), (1.0, 2.0, 1.5)  # l0 .. l3, links 1 to 3
START = [0.7, 0.2897609626433363, 2.1643225063775535]


def four_bar() -> ld.System:
    """Fig. 2: angles from +y towards +x, O1 at the origin, O4 at (l0, 0), cut there."""
    model = ld.Mechanism("four_bar", gravity=(0, -9.81, 0))
    y, parent = 0.0, model.ground
    for k in range(3):
        end = y + LENGTHS[k + 1]
        model.add_body(f"link{k + 1}", ld.Inertia.rod(mass=MASSES[k], start=(0, y, 0), end=(0, end, 0)))
        model.add_joint(f"α{k + 1}", ld.Revolute(axis=(0, 0, -1)), parent, f"link{k + 1}", at=(0, y, 0))
        y, parent = end, f"link{k + 1}"
    ends = {"parent_frame": ld.Frame(position=(LENGTHS[0], 0, 0)), "child_frame": ld.Frame(position=(0, y, 0))}
    model.add_joint("O4", ld.Revolute(axis=(0, 0, -1)), model.ground, "link3", **ends)
    return model.compile(cuts=["O4"])


def fig_1() -> None:
    """What is computed at a state, with the plan of Andrews' squeezer in the place of g."""
    system = ld.library.andrews().compile()
    plan = ld.Closure(independent=["O"]).plan(system)
    lines = [
        f"t, q_I, v_I: {', '.join(plan.independent)}",
        *(f"g {k}: {'-'.join(group.joints)}" for k, group in enumerate(plan.groups, 1)),
        "q_D = g(q_I, t)   eq. (5)",
        "A, η: v_D = A v_I + η   eq. (6)",
        "M, h of the open tree   eq. (1)",
        "ξ: a_D = A a_I + ξ   eq. (7)",
        "M' = D M Dᵀ,  h' = D (h − M [0; ξ])   eqs. (13), (14)",
        "M' a_I = h'   eq. (12)",
    ]
    figure, ax = plt.subplots(figsize=(5.4, 5.6), layout="constrained")
    ax.set(xlim=(0, 1), ylim=(-len(lines), 0.5))
    ax.set_axis_off()
    for k, line in enumerate(lines):
        explicit = line.startswith("g ")
        style = {"boxstyle": "round,pad=0.4", "fc": "#deebf7" if explicit else "white", "ec": "0.4"}
        ax.text(0.5, -k, line, ha="center", va="center", bbox=style, fontsize=10)
        if k:
            ax.annotate("", (0.5, -k + 0.3), (0.5, -k + 0.7), arrowprops={"arrowstyle": "->", "color": "0.4"})
    ax.set_title("One evaluation; explicit groups of Andrews' squeezer shaded", fontsize=10)
    figure.savefig(HERE / "closure_1.png", dpi=100)


def fig_2(system: ld.System) -> None:
    """The four-bar as it is drawn by the library."""
    ax = system.plot(system.state(START))
    ax.figure.savefig(HERE / "closure_2.png", dpi=80)


def fig_3(system: ld.System) -> None:
    """The singular configurations of case b, α3 independent: two, and their mirror pictures."""
    poses = ld.analyses.singular_poses(system, "α3", span=(-np.pi, np.pi))
    figure, panels = plt.subplots(1, len(poses), figsize=(3.0 * len(poses), 2.9), layout="constrained")
    for ax, pose in zip(panels, poses, strict=True):
        system.plot(pose.state, ax, names=False)
        a1 = (pose.state.q[0] + np.pi) % (2 * np.pi) - np.pi
        ax.set_title(f"α3 = {pose.value:.4f}, α1 = {a1:.4f}", fontsize=10)
    figure.savefig(HERE / "closure_3.png", dpi=90)


def closures(system: ld.System) -> None:
    """All closures over a turn of α1 and over α3, which has limits, by the sign of their group."""
    near = system.state(START)
    figure, panels = plt.subplots(1, 2, figsize=(9.0, 3.2), layout="constrained")
    for ax, label, other in zip(panels, ("α1", "α3"), ("α3", "α1"), strict=True):
        curves: dict[str, list[tuple[float, float]]] = {}
        for x in np.linspace(-np.pi, np.pi, 721):
            for branch in ld.analyses.branches(system, {label: float(x)}, near=near):
                angle = branch.state.q[system.coordinates.index(other)]
                curves.setdefault(branch.name, []).append((float(x), (angle + np.pi) % (2 * np.pi) - np.pi))
        for k, (name, points) in enumerate(curves.items()):
            x, y = np.array(points).T
            ax.plot(x, y, ".", ms=2, color=f"C{k}", label=None if k else name)
            if k:  # told apart without colour by triangles on some of its points
                ax.plot(x, y, "^", ms=5, mfc="none", color=f"C{k}", markevery=8, label=name)
        for pose in ld.analyses.singular_poses(system, label, span=(-np.pi, np.pi), near=near):
            ax.axvline(pose.value, color="0.6", lw=0.8)
        ax.set(xlabel=f"{label} in rad", ylabel=f"{other} in rad")
        ax.grid(color="0.9")
        legend = ax.legend(loc="center", frameon=False)
        legend.legend_handles[0].set_markersize(8)
    figure.savefig(HERE / "closure_4.png", dpi=100)


if __name__ == "__main__":
    linkage = four_bar()
    fig_1()
    fig_2(linkage)
    fig_3(linkage)
    closures(linkage)
