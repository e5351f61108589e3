"""Draw the pictures of rcr.md with loopdyn: Figs. 6, 8 and 10 of Anderson and Critchley 2003.

python docs/theory/rcr_pictures.py   (Fig. 11: python benchmarks/rcr.py --plot docs/theory/rcr_11.png)
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1]))

from tests.literature.test_anderson2003 import TARGETS, gap, three_legs  # noqa: E402

import loopdyn as ld  # noqa: E402


def fig_6(ax: plt.Axes) -> None:
    """Gap of the spinning four-bar with constraints at acceleration level, and with reduced coordinates."""
    t = np.linspace(0, 20, 2001)[1:]
    for label, found, style in (
        ("multipliers, no correction", gap("spinning", "none"), "-"),
        ("rcr", gap("spinning", "velocity", ld.Rcr(independent=["q1"])), ":"),
    ):
        ax.loglog(t, found[1:], style, lw=0.8, label=label)
    ax.set(xlabel="t, s", ylabel="gap, m", title="Fig. 6: drift of a four-bar, RK4, 0.01 s")
    ax.legend()


def fig_8(ax: plt.Axes) -> None:
    """The two independent angles of the redundant five-bar."""
    system, state = three_legs()
    t = np.linspace(0, 0.3, 121)
    run = ld.simulate(system, state, (0, 0.3), t_eval=t, rtol=1e-9, formulation="rcr", progress=False)
    target = np.array(TARGETS["five_bar"]["q12"])
    for n, (label, style) in enumerate((("q1", "-"), ("q2", "--"))):
        ax.plot(t, run.path.q[:, system.coordinates.index(label)], style, label=label)
        ax.plot(TARGETS["five_bar"]["t"], target[:, n], "k+")
    ax.set(xlabel="t, s", ylabel="rad", title="Fig. 8: redundant five-bar")
    ax.legend()


def fig_10(ax: plt.Axes) -> None:
    """Both angles of ladders of several lengths, and of the pendulum that they all equal (crosses)."""
    t = np.linspace(0, 5, 201)
    for L in (1, 5, 10):
        system = ld.library.ladder(L).compile()
        run = ld.simulate(system, ld.assemble(system), (0, 5), t_eval=t, rtol=1e-9, formulation="rcr", progress=False)
        for n, (label, style) in enumerate((("U0.1", "-"), (f"U{L}.2", "--"))):
            angle = run.path.q[:, system.coordinates.index(label)]
            ax.plot(t, angle, style, lw=3.0 / (1 + 0.4 * L), color=f"C{n}")
    for key in ("q1", "q2"):
        ax.plot(TARGETS["ladder"]["t"], TARGETS["ladder"][key], "k+")
    ax.set(xlabel="t, s", ylabel="rad", title="Fig. 10: ladders of 1, 5, 10 cells")


def main() -> None:
    """One picture of three panels."""
    figure, panels = plt.subplots(1, 3, figsize=(12.0, 3.4), layout="constrained")
    for draw, ax in zip((fig_6, fig_8, fig_10), panels, strict=True):
        draw(ax)
        ax.grid(alpha=0.3)
    figure.savefig(HERE / "rcr.png", dpi=130)


if __name__ == "__main__":
    main()
