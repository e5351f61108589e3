"""Draw motion.gif, the film of README and the home page, and the pictures of the tutorial from its own code.

python docs/pictures.py
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import tempfile
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from PIL import Image

import loopdyn as ld

FOLDER = Path(__file__).parent
FRAMES, PERIOD = 48, 2.4  # of one turn, and its duration in s
COLOURS = 32

Part = tuple[ld.System, list[ld.State], str | None]  # a mechanism, its states over a period, projection of its axes


def four_bar() -> Part:
    """Four-bar of the library, its crank turned once by kinematic analysis."""
    system = ld.library.four_bar().compile()
    turn = ld.drive(system, "A", np.linspace(0.0, 2 * np.pi, FRAMES + 1))
    return system, [turn.state(k) for k in range(FRAMES)], None


def platform() -> Part:
    """6-UPS platform of the library with drivers on its legs, each a sixth of a period after the previous one."""
    m = ld.library.stewart_6ups()
    for k in range(6):
        del m.forces[f"leg{k + 1}"]
        m.add_driver(f"leg{k + 1}", f"P{k + 1}", f"0.08*(sin(2*pi*t + {k}*pi/3) - sin({k}*pi/3))")
    system = m.compile()
    times = np.linspace(0, 1, FRAMES + 1)
    run = ld.simulate(system, ld.assemble(system), (0.0, 1.0), t_eval=times, progress=False).raise_if_failed()
    return system, [run.state(k) for k in range(FRAMES)], "3d"


def turn_of(run: Any) -> Part:
    """Third turn of the crank A of a run, in degrees, at equal times."""
    a = run["A"]
    start, stop = (np.interp(x, a, a["time"]) for x in (720.0, 1080.0))
    return run.system, [run.at(t) for t in np.linspace(start, stop, FRAMES, endpoint=False)], None


def write_film(path: Path, parts: list[Part], size: tuple[float, float]) -> None:
    """Write a GIF of mechanisms next to each other that repeats without a jump; axes are not shown."""
    figure = plt.figure(figsize=size, dpi=84)
    figure.subplots_adjust(0.0, 0.0, 1.0, 1.0, 0.0, 0.0)
    axes = [figure.add_subplot(1, len(parts), n, projection=p) for n, (*_, p) in enumerate(parts, 1)]
    bounds: list[list[tuple[float, float]]] = [[] for _ in parts]
    images: list[Image.Image] = []
    for measuring in (True, False):  # first the limits of all frames, then the frames
        for k in range(FRAMES):
            for ax, bound, (system, states, _) in zip(axes, bounds, parts, strict=True):
                ax.clear()
                system.plot(states[k], ax, names=False)
                ax.set_title("")
                ax.set_axis_off()
                if measuring:
                    now = limits(ax)
                    bound[:] = [(min(a[0], b[0]), max(a[1], b[1])) for a, b in zip(bound or now, now, strict=True)]
                else:
                    ax.set(**dict(zip(("xlim", "ylim", "zlim"), bound, strict=False)))
            if not measuring:
                drawn = io.BytesIO()
                figure.savefig(drawn, dpi=84)
                images.append(Image.open(drawn).convert("RGB"))
    palette = images[0].quantize(COLOURS)
    film = [image.quantize(palette=palette, dither=Image.Dither.NONE) for image in images]
    step = round(1000 * PERIOD / FRAMES)
    film[0].save(path, save_all=True, append_images=film[1:], duration=step, loop=0, optimize=True)
    plt.close(figure)


def limits(ax: Any) -> list[tuple[float, float]]:
    """Limits of all axes of a picture."""
    return [ax.get_xlim(), ax.get_ylim(), *([ax.get_zlim()] if hasattr(ax, "get_zlim") else [])]


def session(steps: int) -> dict[str, Any]:
    """Names that the Python of the first steps of the tutorial defines, run in a folder that is removed."""
    text = (FOLDER / "tutorial.md").read_text("utf-8").partition(f"\n## {steps + 1}.")[0]
    names: dict[str, Any] = {}
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        os.chdir(folder)
        try:
            for block in re.findall(r"^```python\n(.*?)^```", text, re.M | re.S):
                exec(compile(block, "tutorial.md", "exec"), names)
        finally:
            os.chdir(here)
    return names


def tutorial(folder: Path) -> None:
    """Pictures of the steps of the tutorial, by the plot functions of loopdyn."""
    names = session(6)
    system, run = names["system"], names["run"]
    poses = {"drawing": system.plot(), "pose": system.plot(names["state"])}
    for ax in poses.values():
        ax.set_title("")
        ax.set_axis_off()
    pictures = {name: ax.figure for name, ax in poses.items()}
    pictures |= {"topology": system.topology.plot().figure, "turn": names["turn"].plot("D")}
    pictures |= {"motor": run.plot.velocities("A"), "bearing": run.plot.polar("B")}
    for name, figure in pictures.items():
        width, height = figure.get_size_inches()
        figure.set_size_inches(6.4, 6.4 * height / width)
        figure.savefig(folder / f"tutorial_{name}.png", dpi=90, bbox_inches="tight")
    plt.close("all")
    write_film(folder / "tutorial_motion.gif", [turn_of(run)], (4.6, 3.4))


def main(folder: Path = FOLDER) -> None:
    """Write all pictures to a folder."""
    write_film(folder / "motion.gif", [four_bar(), platform()], (7.6, 3.6))
    tutorial(folder)


if __name__ == "__main__":
    main()
