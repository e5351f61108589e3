"""Draw linearize.png: the frequency of the arms of a governor over the speed of its shaft.

python docs/linearize_picture.py
"""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np

import loopdyn as ld

G = 9.81


def frequency(speed: float) -> float:
    """Frequency of the arms in rad/s about their position at a speed of the shaft."""
    tilt = np.arccos(min(1.0, G / speed**2))
    m = ld.Mechanism("governor", gravity=(0, 0, -G))
    m.add_body("shaft", ld.Inertia.cylinder(mass=1.0, radius=0.02, length=0.5, axis=(0, 0, 1)))
    m.add_joint("shaft", ld.Revolute(axis=(0, 0, 1)), m.ground, "shaft", at=(0, 0, 0))
    for name, sign in (("left", 1.0), ("right", -1.0)):
        m.add_body(name, ld.Inertia.point(0.5, at=(-sign * np.sin(tilt), 0, -np.cos(tilt))))
        m.add_joint(f"arm_{name}", ld.Revolute(axis=(0, sign, 0)), "shaft", name, at=(0, 0, 0))
    m.add_driver("drive", "shaft", f"{speed!r}*t")
    system = m.compile()
    return float(ld.linearize(system, ld.assemble(system)).modes().omega.max(initial=0.0))


def main() -> None:
    """Write the picture next to this file."""
    speeds = np.linspace(0.5, 6.0, 111)
    values = np.array([frequency(float(x)) for x in speeds])
    figure, ax = plt.subplots(figsize=(7.2, 3.2), layout="constrained")
    ax.plot(speeds, values, color="#1f77b4", label="frequency of the arms")
    ax.axvline(np.sqrt(G), color="0.5", linewidth=0.8)
    ax.annotate("critical speed", (np.sqrt(G), 4.5), (1.6, 4.5), arrowprops={"arrowstyle": "->"}, va="center")
    ax.set_xlabel("speed of the shaft in rad/s")
    ax.set_ylabel("rad/s")
    ax.legend(frameon=False)
    ax.grid(color="0.9")
    figure.savefig(Path(__file__).with_name("linearize.png"), dpi=110)


if __name__ == "__main__":
    main()
