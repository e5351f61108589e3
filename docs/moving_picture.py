"""Draw motion.gif: a four-bar over one turn of its crank, and a 6-UPS platform over one period of its legs.

python docs/moving_picture.py
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from PIL import Image

import loopdyn as ld

FRAMES, PERIOD = 48, 2.4  # of one turn, and its duration in s
COLOURS = 32


def four_bar() -> tuple[ld.System, list[ld.State]]:
    """Four-bar of the library, its crank turned once by kinematic analysis."""
    system = ld.library.four_bar().compile()
    turn = ld.drive(system, "A", np.linspace(0.0, 2 * np.pi, FRAMES + 1))
    return system, [turn.state(k) for k in range(FRAMES)]


def platform() -> tuple[ld.System, list[ld.State]]:
    """6-UPS platform of the library with drivers on its legs, each a sixth of a period after the previous one."""
    m = ld.library.stewart_6ups()
    for k in range(6):
        del m.forces[f"leg{k + 1}"]
        m.add_driver(f"leg{k + 1}", f"P{k + 1}", f"0.08*(sin(2*pi*t + {k}*pi/3) - sin({k}*pi/3))")
    system = m.compile()
    run = ld.simulate(system, ld.assemble(system), (0.0, 1.0), t_eval=np.linspace(0, 1, FRAMES + 1), progress=False)
    run.raise_if_failed()
    return system, [run.state(k) for k in range(FRAMES)]


def limits(ax: Any) -> list[tuple[float, float]]:
    """Limits of all axes of a picture."""
    return [ax.get_xlim(), ax.get_ylim(), *([ax.get_zlim()] if hasattr(ax, "get_zlim") else [])]


def main() -> None:
    """Write the film next to this file."""
    parts = four_bar(), platform()
    figure = plt.figure(figsize=(7.6, 3.6), dpi=84)
    axes = figure.add_subplot(1, 2, 1), figure.add_subplot(1, 2, 2, projection="3d")
    figure.subplots_adjust(0.0, 0.0, 1.0, 1.0, 0.0, 0.0)
    bounds: list[list[tuple[float, float]]] = [[], []]
    images: list[Image.Image] = []
    for measuring in (True, False):  # first the limits of all frames, then the frames
        for k in range(FRAMES):
            for ax, bound, (system, states) in zip(axes, bounds, parts, strict=True):
                ax.clear()
                system.plot(states[k], ax, names=False)
                ax.set_title("")
                ax.set_axis_off()
                if measuring:
                    now = limits(ax)
                    old = bound or now
                    bound[:] = [(min(a[0], b[0]), max(a[1], b[1])) for a, b in zip(old, now, strict=True)]
                else:
                    ax.set(**dict(zip(("xlim", "ylim", "zlim"), bound, strict=False)))
            if not measuring:
                drawn = io.BytesIO()
                figure.savefig(drawn, dpi=84)
                images.append(Image.open(drawn).convert("RGB"))
    palette = images[0].quantize(COLOURS)
    film = [image.quantize(palette=palette, dither=Image.Dither.NONE) for image in images]
    film[0].save(
        Path(__file__).with_name("motion.gif"),
        save_all=True,
        append_images=film[1:],
        duration=round(1000 * PERIOD / FRAMES),
        loop=0,
        optimize=True,
    )


if __name__ == "__main__":
    main()
