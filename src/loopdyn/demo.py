"""What loopdyn can show at this stage: the library's mechanisms, their loops, and the speed of their tree dynamics."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from loopdyn import library, tree
from loopdyn.system import System


def main(picture: Path = Path("loopdyn_demo.png")) -> None:
    """Print a four-bar and its loop, then every mechanism of the library with checks and times; draw two graphs."""
    console = Console()
    system = library.four_bar().compile()
    console.print(
        "[bold]A four-bar linkage, described by bodies and joints; loopdyn finds the loop and cuts it:[/bold]"
    )
    console.print(str(system.topology), highlight=False)
    terms = tree.terms(system, system.state(v={"A": 2.0}))
    console.print(f"\nrows of the cut joint: {', '.join(system.constraint_rows)}")
    console.print(f"loop gap at the reference pose: {np.abs(terms.phi).max():.1e}\n")
    console.print(_table())
    _draw(picture)
    console.print(f"\ngraphs of the four-bar and of the 6-UPS platform: {picture}")
    console.print("next: loopdyn inspect examples/mechanisms/four_bar_mm.yaml")


def _table() -> Table:
    table = Table(
        title="The library: loops found, dynamics of the spanning tree",
        caption="gap: of the loops at the reference pose; residual: |M a - h| / |h|; "
        "us: microseconds of one evaluation, called from Python",
    )
    table.add_column("mechanism", no_wrap=True)
    for name in ("bodies", "joints", "loops", "nv", "rows", "gap", "residual", "us"):
        table.add_column(name, justify="right")
    for name, make in library.ALL.items():
        system = make().compile()
        state = system.state(v=np.linspace(-1.0, 1.0, system.nv))
        terms = tree.terms(system, state)
        a = tree.forward_dynamics(system, state)
        gap = np.abs(terms.phi).max() if system.nc else 0.0
        error = np.abs(terms.M @ a - terms.h).max() / np.abs(terms.h).max()
        counts = (system.nb, len(system.joints), len(system.topology.loops), system.nv, system.nc)
        table.add_row(name, *map(str, counts), f"{gap:.0e}", f"{error:.0e}", f"{_microseconds(system):.1f}")
    return table


def _microseconds(system: System, calls: int = 2000) -> float:
    """Time of one evaluation of all tree accelerations, called from Python."""
    solve = tree.TreeSolver(system)
    q, v = system.q_reference, np.zeros(system.nv)
    best = np.inf
    for _ in range(3):
        begin = time.perf_counter()
        for _ in range(calls):
            solve(0.0, q, v)
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
