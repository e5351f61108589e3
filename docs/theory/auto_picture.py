"""Draw the picture of auto.md: a contra-parallelogram through its flat poses.

python docs/theory/auto_picture.py
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np

import loopdyn as ld

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.linkages import linkage


def main() -> None:
    """Angles of crank and rocker, the force in a pin, and where momentum steps were made."""
    m, _ = linkage((1.0, 0.5, 1.0, 0.5), 1.0, -1)
    system = m.compile()
    state = ld.assemble(system, v={"A": -3.0})
    run = ld.simulate(system, state, (0, 2), t_eval=np.linspace(0, 2, 801), progress=False)
    figure, (above, below) = plt.subplots(2, 1, figsize=(7.0, 5.0), sharex=True, layout="constrained")
    for label, name, style in (("A", "crank", "-"), ("D", "rocker", "--")):
        above.plot(run.data["time"], run.data["q"].sel(coordinate=label), style, label=name)
    force = run.data["wrench"].sel(joint="C", component=["fx", "fy"])
    below.semilogy(run.data["time"], np.sqrt((force**2).sum("component", skipna=False)), color="black")
    for axes in (above, below):
        for p in run.passages:
            axes.axvspan(p.start, p.stop, color="tab:orange", alpha=0.25, lw=0)
    above.set(ylabel="angle from the start in rad", title="Contra-parallelogram through its flat poses")
    below.set(xlabel="time in s", ylabel="force in pin C in N", title="Orange: momentum steps, no forces are given")
    above.legend()
    figure.savefig(Path(__file__).with_name("auto.png"), dpi=110)


if __name__ == "__main__":
    main()
