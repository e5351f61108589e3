"""What loopdyn can show at this stage: loops found and closed, mobility, reactions, formulations that agree."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from loopdyn import library
from loopdyn.analysis.assembly import assemble
from loopdyn.analysis.mobility import mobility
from loopdyn.formulations.registry import CLASSES, accelerations, prepare
from loopdyn.reactions import reactions
from loopdyn.system import State, System
from loopdyn.tree import forward_dynamics


def main(picture: Path = Path("loopdyn_demo.png")) -> None:
    """A four-bar from description to reactions, then every mechanism of the library; draws two graphs."""
    console = Console(highlight=False)
    system = library.four_bar().compile()
    state = assemble(system, q={"A": 0.3}, v={"A": 2.0})
    console.print(
        "[bold]A four-bar linkage, described by bodies and joints. loopdyn finds the loop and cuts it:[/bold]"
    )
    console.print(str(system.topology))
    console.print("\n[bold]closed with A = 0.3 rad turning at 2 rad/s, it can move like this:[/bold]")
    console.print(str(mobility(system, state)))
    console.print("\n[bold]and its pins carry (N, N m):[/bold]")
    console.print(str(reactions(system, state, np.asarray(accelerations(system, state)))))
    console.print()
    console.print(_table())
    _draw(picture)
    console.print(f"\ngraphs of the four-bar and of the 6-UPS platform: {picture}")
    console.print("next: loopdyn inspect examples/mechanisms/four_bar_mm.yaml")


def _table() -> Table:
    table = Table(
        title="The library",
        caption=f"red.: redundant constraints; differ: largest relative difference of accelerations between "
        f"{', '.join(CLASSES)}; us: microseconds of one evaluation (graph), called from Python",
    )
    table.add_column("mechanism", no_wrap=True)
    for name in ("bodies", "joints", "loops", "dof", "red.", "differ", "us"):
        table.add_column(name, justify="right", no_wrap=True)
    for name, make in library.ALL.items():
        system = make().compile()
        state = assemble(system, v=np.linspace(-1.0, 1.0, system.nv) * system.speed_units)
        m = mobility(system, state)
        counts = (system.nb, len(system.topology.edges), len(system.topology.loops), m.dof, m.redundant)
        table.add_row(
            name, *map(str, counts), f"{_difference(system, state):.0e}", f"{_microseconds(system, state):.0f}"
        )
    return table


def _difference(system: System, state: State) -> float:
    """Largest difference of the formulations' accelerations, relative to the largest with and without loops.

    Loops that balance exactly make accelerations vanish, and only the open tree's tell what rounding is measured by.
    """
    found = [np.asarray(accelerations(system, state, name)) for name in CLASSES]
    scale = max(np.abs(found[0]).max(), np.abs(forward_dynamics(system, state)).max())
    return float(max(np.abs(a - found[0]).max() for a in found[1:]) / scale)


def _microseconds(system: System, state: State, calls: int = 200) -> float:
    solve = prepare(system, "graph", state)
    best = np.inf
    for _ in range(3):
        begin = time.perf_counter()
        for _ in range(calls):
            solve(state.t, state.q, state.v)
        best = min(best, (time.perf_counter() - begin) / calls)
    return best * 1e6


def _draw(picture: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(13, 5.5), layout="constrained")
    library.four_bar().compile().topology.plot(axes[0])
    library.stewart_6ups().compile().topology.plot(axes[1])
    figure.savefig(picture, dpi=110)
    plt.close(figure)
