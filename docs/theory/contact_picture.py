"""Draw contact.png: a bouncing ball, which forces a closed gap may have, and a rocker on a stop.

python docs/theory/contact_picture.py
"""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

import loopdyn as ld

E = 0.8  # coefficient of restitution


def ball(ax: Axes) -> None:
    """A ball from 1 m: rebounds, and the time at which it rests."""
    m = ld.Mechanism("ball", gravity=(0, 0, -9.81))
    m.add_body("ball", ld.Inertia.point(1.0, at=(0, 0, 0)))
    m.add_joint("z", ld.Prismatic(axis=(0, 0, 1)), m.ground, "ball", at=(0, 0, 0))
    m.add_contact("floor", ld.contacts.Stop(joint="z", lower=0.0, restitution=E))
    system = m.compile()
    times = np.linspace(0, 5, 2001)
    run = ld.simulate(system, system.state(q={"z": 1.0}), (0, 5), t_eval=times, progress=False)
    ax.plot(run["z"].time, run["z"], lw=1.2)
    rest = np.sqrt(2 / 9.81) * (1 + E) / (1 - E)
    ax.axvline(rest, color="0.4", ls="--", lw=1)
    ax.annotate("at rest from here", (rest, 0.5), (rest - 0.1, 0.5), ha="right", va="center")
    ax.set(xlabel="t, s", ylabel="height, m", title=f"impacts with e = {E}, then rest")


def corner(ax: Axes) -> None:
    """What a closed gap may do: stay closed with a force, or open without."""
    ax.plot([0, 0], [0, 1], lw=3, color="#1f5fa8")
    ax.plot([0, 1], [0, 0], lw=3, color="#b3410e", ls=(0, (4, 1)))
    ax.text(0.05, 0.62, "stays closed:\nforce, no acceleration", color="#1f5fa8", va="center")
    ax.text(0.5, 0.06, "opens: no force", color="#b3410e", ha="center")
    ax.set(xlim=(-0.08, 1.05), ylim=(-0.08, 1.05), xlabel="acceleration of the gap", ylabel="contact force")
    ax.set(xticks=[0], yticks=[0], title="one closed gap")


def rocker(ax: Axes) -> None:
    """Speed of a four-bar's crank before and after its rocker hits a stop."""
    for e, style in ((1.0, "-"), (0.5, "--"), (0.0, ":")):
        m = ld.library.four_bar()
        m.add_contact("stop", ld.contacts.Stop(joint="D", upper=0.3, restitution=e))
        system = m.compile()
        start = ld.assemble(system, q={"A": 0.0}, v={"A": 3.0})
        run = ld.simulate(system, start, (0, 0.8), t_eval=np.linspace(0, 0.8, 1601), progress=False)
        ax.plot(run["D"].time, run["D"], style, label=f"e = {e:g}")
    ax.axhline(0.3, color="0.4", lw=1)
    ax.text(0.02, 0.305, "stop", va="bottom")
    ax.set(ylim=(-0.01, 0.33), xlabel="t, s", ylabel="angle of the rocker, rad", title="rocker of a four-bar on a stop")
    ax.legend(loc="lower right")


def main() -> None:
    """Write the picture next to this file."""
    figure, axes = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
    ball(axes[0])
    corner(axes[1])
    rocker(axes[2])
    figure.savefig(Path(__file__).with_name("contact.png"), dpi=110)


if __name__ == "__main__":
    main()
