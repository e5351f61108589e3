"""Draw motion.gif, the film of README and the home page, and the pictures of tutorials from their own code.

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
BLUE, ORANGE = "#1f5fa8", "#b3410e"

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


def session(page: str, before: str = "") -> dict[str, Any]:
    """Names that the Python of a page defines, before a heading if one is given, run in a folder that is removed."""
    text = (FOLDER / page).read_text("utf-8")
    text = text.partition(f"\n## {before}")[0] if before else text
    names: dict[str, Any] = {}
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        os.chdir(folder)
        Path("examples").symlink_to(FOLDER.parent / "examples")
        try:
            for block in re.findall(r"^```python\n(.*?)^```", text, re.M | re.S):
                exec(compile(block, page, "exec"), names)
        finally:
            os.chdir(here)
    return names


def tutorial(folder: Path) -> None:
    """Pictures of the steps of the tutorial, by the plot functions of loopdyn."""
    names = session("tutorial.md", before="7.")
    system, run = names["system"], names["run"]
    poses = {"drawing": system.plot(), "pose": system.plot(names["state"])}
    for ax in poses.values():
        ax.set_title("")
        ax.set_axis_off()
    pictures = {name: ax.figure for name, ax in poses.items()}
    pictures["mobility"] = overlaid(system, "A", (0, 45, 90, 180, 270))
    pictures |= {"topology": system.topology.plot().figure, "turn": names["turn"].plot("D")}
    pictures |= {"motor": run.plot.velocities("A"), "bearing": run.plot.polar("B")}
    for name, figure in pictures.items():
        width, height = figure.get_size_inches()
        figure.set_size_inches(6.4, 6.4 * height / width)
        figure.savefig(folder / f"tutorial_{name}.png", dpi=90, bbox_inches="tight")
    plt.close("all")
    write_film(folder / "tutorial_motion.gif", [turn_of(run)], (4.6, 3.4))


def overlaid(system: ld.System, joint: str, values: tuple[float, ...]) -> Any:
    """Figure of a mechanism at several values of a coordinate; all poses except the first one are pale."""
    figure, ax = plt.subplots()
    seen = []  # limits of all poses
    for value in values[::-1]:
        before = [*ax.lines, *ax.patches, *ax.collections, *ax.texts]
        system.plot(ld.assemble(system, q={joint: value}), ax, names=value == values[0])
        for part in (*ax.lines, *ax.patches, *ax.collections, *ax.texts):
            if value != values[0] and part not in before:
                part.set_alpha(0.25)
        seen.append(limits(ax))
    low, high = np.min(seen, axis=0)[:, 0], np.max(seen, axis=0)[:, 1]
    ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), title="")
    ax.set_axis_off()
    return figure


def save(figure: Any, path: Path) -> None:
    """Write a picture and close it."""
    figure.savefig(path, dpi=100)
    plt.close(figure)


def robot(folder: Path) -> None:
    """Pictures of the robot engineer's hour: poses, opening, poles, closing under control."""
    names = session("robot.md")
    system = names["system"]
    figure, places = plt.subplots(1, 2, figsize=(7.0, 3.4), subplot_kw={"projection": "3d"})
    figure.subplots_adjust(0.0, 0.0, 1.0, 0.88, 0.0, 0.0)
    for ax, angle in zip(places, (-0.4, 0.5), strict=True):
        state = ld.assemble(system, q={"left_driver": angle})
        system.plot(state, ax, names=False)
        k = ld.kinematics(system, state)
        for body, tip in (names["left"], names["right"]):  # the file's shapes are not read: fingers up to their tips
            line = np.array([k.body(body)["position"].values, k.point(body, tip)["position"].values])
            ax.plot(*line.T, color="0.3", linewidth=3)
            ax.plot(*line[1:].T, "o", color=ORANGE)
        ax.view_init(elev=0, azim=0)
        ax.set_proj_type("ortho")
        ax.set(ylim=(-0.09, 0.09), zlim=(0.09, 0.23), title=f"{angle:g} rad")
        ax.set_box_aspect((1, 1.8, 1.4), zoom=1.3)
        ax.set_axis_off()
    save(figure, folder / "robot_gripper.png")

    angles, openings, slopes = names["angles"], names["openings"], names["slopes"]
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.6, 3.0), layout="constrained")
    left.plot(angles, 1000 * openings, color=BLUE)
    left.set(xlabel="left_driver in rad", ylabel="opening in mm")
    right.plot(angles, 1000 * slopes, color=BLUE, label="closed Jacobian")
    right.plot(
        (angles[1:] + angles[:-1]) / 2, 1000 * names["differences"], "o", color=ORANGE, ms=3, label="differences"
    )
    right.set(xlabel="left_driver in rad", ylabel="slope in mm/rad")
    right.legend(frameon=False)
    save(figure, folder / "robot_jacobian.png")

    figure, ax = plt.subplots(figsize=(4.6, 3.2), layout="constrained")
    for poles, marker, colour, words in (
        (np.linalg.eigvals(names["A"]), "x", BLUE, "without controller"),
        (names["closed"], "o", ORANGE, "with controller"),
    ):
        ax.plot(poles.real, poles.imag, marker, color=colour, label=words, mfc="none")
    ax.axvline(0.0, color="0.6", linewidth=0.8)
    ax.set(xlabel="real part in rad/s", ylabel="imaginary part in rad/s")
    ax.legend(frameon=False, loc="center left")
    save(figure, folder / "robot_poles.png")

    times, deviation = np.array([0.0, *names["times"]]), np.array([-names["target"], 0.0])
    values, vectors = np.linalg.eig(names["A"] - names["B"] @ names["gain"])
    linear = (
        vectors @ (np.linalg.solve(vectors, deviation.astype(complex))[:, None] * np.exp(np.outer(values, times)))
    ).real
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.6, 3.0), layout="constrained")
    left.plot(times[1:], names["path"], color=BLUE, label="stepped")
    left.plot(times, names["target"] + linear[0], color=ORANGE, ls="--", label="linear model")
    left.set(xlabel="t in s", ylabel="left_driver in rad")
    left.legend(frameon=False)
    right.plot(times[1:], names["torques"], color=BLUE)
    right.axhline(names["hold"], color="0.4", ls=":", label="torque at rest")
    right.set(xlabel="t in s", ylabel="torque in N m")
    right.legend(frameon=False)
    save(figure, folder / "robot_steps.png")


def main(folder: Path = FOLDER) -> None:
    """Write all pictures to a folder."""
    write_film(folder / "motion.gif", [four_bar(), platform()], (7.6, 3.6))
    tutorial(folder)
    robot(folder)


if __name__ == "__main__":
    main()
