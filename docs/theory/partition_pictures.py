"""Draw the pictures of partition.md with loopdyn: Figs. 1 to 3 of Blajer 1994, and a run that changes coordinates.

python docs/theory/partition_pictures.py
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np

import loopdyn as ld
from loopdyn.analysis.coordinates import Sweep

HERE = Path(__file__).parent
LOOKS: list[dict[str, Any]] = [  # colour and marker of each coordinate; lines are dashed for the SVD
    {"color": "tab:blue"},
    {"color": "tab:orange", "marker": "o", "ms": 4, "mfc": "white", "markevery": 0.1},
    {"color": "tab:green", "marker": "^", "ms": 5, "markevery": (0.05, 0.1)},
]
HATCHES = ("", "////", "xxxx")
MASSES = {"1, 2, 1.5 kg": (1.0, 2.0, 1.5), "link 3 ten times": (1.0, 2.0, 15.0), "link 1 ten times": (10.0, 2.0, 1.5)}
LENGTHS = (1.0, 0.4, 0.9, 0.8)  # l0 .. l3: alpha1 never singular
BOTH_SINGULAR = (1.0, 0.7, 0.6, 0.5)
LOOPING = ([2.6, -2.365501815045841, 1.3038054455195054], [6.0, 0.33680300519902995, -12.437099448376784])


def pendulum(m: float, rho: float, J: float) -> ld.System:
    """A body in x, y and its angle, its pivot cut."""
    model = ld.Mechanism("pendulum")
    body = model.add_body("G", ld.Inertia.planar(mass=m, com=(rho, 0, 0), izz=J))
    model.add_joint("G", ld.Planar(normal=(0, 0, 1)), model.ground, body, at=(rho, 0, 0))
    model.add_joint("O", ld.Revolute(axis=(0, 0, 1)), model.ground, body, at=(0, 0, 0))
    return model.compile(cuts=["O"])


def four_bar(L: tuple[float, ...], masses: tuple[float, ...]) -> ld.System:
    """Fig. 2: angles from +y towards +x, O1 at the origin, O4 at (l0, 0), cut there."""
    model = ld.Mechanism("four_bar", gravity=(0, -9.81, 0))
    y, parent = 0.0, model.ground
    for k in range(3):
        model.add_body(f"link{k + 1}", ld.Inertia.rod(mass=masses[k], start=(0, y, 0), end=(0, y + L[k + 1], 0)))
        model.add_joint(f"α{k + 1}", ld.Revolute(axis=(0, 0, -1)), parent, f"link{k + 1}", at=(0, y, 0))
        y, parent = y + L[k + 1], f"link{k + 1}"
    ends = {"parent_frame": ld.Frame(position=(L[0], 0, 0)), "child_frame": ld.Frame(position=(0, y, 0))}
    model.add_joint("O4", ld.Revolute(axis=(0, 0, -1)), model.ground, "link3", **ends)
    return model.compile(cuts=["O4"])


def swept(masses: tuple[float, ...]) -> Sweep:
    """The criterion over a turn of link 1."""
    system = four_bar(LENGTHS, masses)
    start = system.state([0.0, 1.1365400685873746, 1.7735719819882496])
    return ld.analyses.coordinates(system, start).sweep("α1")


def fig_1() -> None:
    """Criterion of the physical pendulum, eq. (26), for a small and a large moment of inertia."""
    figure, panels = plt.subplots(1, 2, figsize=(9.0, 3.2), sharey=True, layout="constrained")
    gamma = np.linspace(0.0, np.pi / 2, 61)
    for ax, J in zip(panels, (0.3, 3.0), strict=True):
        system, rho = pendulum(2.0, 0.7, J), 0.7
        found = []
        for g in gamma:
            q = {"G.x": rho * (np.cos(g) - 1), "G.y": rho * np.sin(g), "G.angle": g}
            found.append(ld.analyses.coordinates(system, system.state(q=q)))
        for label, name, look in zip(system.speeds, ("x", "y", "γ"), LOOKS, strict=True):
            ax.plot(gamma, [f.cosine[label] for f in found], label=name, **look)
            ax.plot(gamma, [f.svd[label] for f in found], "--", lw=0.9, **look)
        ax.set(title=f"m = 2 kg, ϱ = 0.7 m, J = {J:g} kg m²", xlabel="γ in rad")
        ax.grid(color="0.9")
    panels[0].set_ylabel("cos² α (dashed: SVD, lengths in sizes)")
    panels[1].legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    figure.savefig(HERE / "partition_1.png", dpi=110)


def fig_2() -> None:
    """The four-bar as it is drawn by the library."""
    system = four_bar(LENGTHS, (1.0, 2.0, 1.5))
    ax = system.plot(system.state([0.7, 0.2897609626433363, 2.1643225063775535]))
    ax.figure.savefig(HERE / "partition_2.png", dpi=80)


def fig_3() -> None:
    """Criterion of the four-bar over a turn of link 1, three sets of masses; the SVD is the same for all."""
    figure, panels = plt.subplots(1, 3, figsize=(11.0, 3.4), sharey=True, layout="constrained")
    for ax, (name, masses) in zip(panels, MASSES.items(), strict=True):
        sweep = swept(masses)
        best = np.argmax(sweep.cosine, axis=1)
        for n, look in enumerate(LOOKS):
            ax.plot(sweep.value, sweep.cosine[:, n], label=f"α{n + 1}", **look)
            ax.plot(sweep.value, sweep.svd[:, n], "--", lw=0.9, **look)
            bar = {"fc": look["color"], "ec": "white", "hatch": HATCHES[n], "lw": 0}
            ax.fill_between(sweep.value, 1.02, 1.07, where=best == n, **bar)
        ax.set(title=f"masses {name}", xlabel="α1 in rad", ylim=(-0.02, 1.08))
        ax.grid(color="0.9")
    panels[0].set_ylabel("cos² α (dashed: SVD; bar: the best)")
    panels[2].legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    figure.savefig(HERE / "partition_3.png", dpi=110)


def changes() -> None:
    """A motion through both singular poses, in the best coordinate; and Adams over the changes."""
    system = four_bar(BOTH_SINGULAR, (0.7, 0.6, 0.5))
    state = system.state(*LOOPING)
    run = ld.simulate(system, state, (0, 2), formulation="partition", rtol=1e-10, progress=False)
    figure = run.plot.active()
    figure.savefig(HERE / "partition_4.png", dpi=90)
    end = ld.simulate(system, state, (0, 2), rtol=1e-13, t_eval=[2.0], progress=False).path.q[-1]
    steps = [1e-3, 5e-4, 2.5e-4, 1.25e-4]
    print("| step in s | error, changed on the way | error, begun anew | error, graph |")
    print("|---|---|---|---|")
    for step in steps:
        options = {"integrator": ld.integrators.ABM(step=step), "t_eval": [2.0], "progress": False}
        method = ld.Partition(candidates=["α1", "α3"])
        on_the_way = ld.simulate(system, state, (0, 2), formulation=method, **options)
        anew = [ld.events.At(e.t, "anew") for e in on_the_way.events]
        begun = ld.simulate(system, state, (0, 2), formulation=method, events=anew, **options)
        graph = ld.simulate(system, state, (0, 2), formulation="graph", **options)
        errors = [np.abs(r.path.q[-1] - end).max() for r in (on_the_way, begun, graph)]
        print(f"| {step:g} | " + " | ".join(f"{e:.2e}" for e in errors) + " |")


if __name__ == "__main__":
    fig_1()
    fig_2()
    fig_3()
    changes()
