"""Draw the pictures of how-to pages from what their own examples compute.

python docs/howto/pictures.py
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

FOLDER = Path(__file__).parent
BLUE, ORANGE = "#1f5fa8", "#b3410e"


def names_of(page: str) -> dict[str, Any]:
    """Names that the Python examples of a page define, run in a folder of their own with the files of the page."""
    names: dict[str, Any] = {}
    text = (FOLDER / page).read_text("utf-8")
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        os.chdir(folder)
        try:
            for name, file in re.findall(r"Save it as `(\S+)`:\n\n```yaml\n(.*?)^```", text, re.M | re.S):
                Path(name).write_text(file)
            for block in re.findall(r"^```python\n(.*?)^```", text, re.M | re.S):
                exec(compile(block, page, "exec"), names)
        finally:
            os.chdir(here)
    return names


def axes() -> tuple[Any, Any, Any]:
    """Two axes next to each other."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.0, 3.0), layout="constrained")
    for ax in (left, right):
        ax.grid(color="0.9")
        ax.axhline(0.0, color="0.6", linewidth=0.8)
    return figure, left, right


def motor_sizing(folder: Path) -> None:
    """Torque of the crank over time, with its RMS over the cycle, and over speed."""
    names = names_of("motor_sizing.md")
    times, load, speed = names["times"], names["load"], names["speed"]
    rms = np.sqrt(np.trapezoid(load**2, times) / names["cycle"])
    figure, left, right = axes()
    left.plot(times, load, color=BLUE)
    left.axhline(rms, color=ORANGE, linestyle="--", label=f"RMS over the cycle, {rms:.1f} N m")
    left.set(xlabel="t in s", ylabel="torque of the crank in N m", ylim=(-5, 96))
    left.legend(frameon=False, loc="upper right")
    right.plot(speed * 60 / (2 * np.pi), load, color=BLUE)
    power = np.argmax(np.abs(load * speed))
    right.plot(speed[power] * 60 / (2 * np.pi), load[power], "o", color=ORANGE)
    at = speed[power] * 60 / (2 * np.pi), load[power]
    right.annotate(f"{load[power] * speed[power]:.0f} W", at, (6, 0), textcoords="offset points", va="center")
    right.set(xlabel="turns of the crank per minute", ylabel="torque of the crank in N m", xlim=(0, 72))
    figure.savefig(folder / "motor_sizing.png", dpi=110)


def play_and_stops(folder: Path) -> None:
    """Rocker that comes to rest on its stop; relative rotation of pinion and wheel within their play."""
    names = names_of("play_and_stops.md")
    figure, left, right = axes()
    stopped, within = names["stopped"], names["within"]
    left.plot(stopped["D"]["time"], stopped["D"], color=BLUE, label="rocker")
    left.axhline(10.0, color=ORANGE, linestyle="--", label="stop")
    left.set(xlabel="t in s", ylabel="D in degrees")
    left.legend(frameon=False)
    right.plot(within["time"], within, color=BLUE, label="P + 2 W")
    for side in (-0.25, 0.25):
        right.axhline(side, color=ORANGE, linestyle="--", label="flanks" if side > 0 else None)
    right.set(xlabel="t in s", ylabel="rotation within the play in degrees", ylim=(-0.4, 0.4))
    right.legend(frameon=False, loc="upper right")
    figure.savefig(folder / "play_and_stops.png", dpi=110)


def zero_freedom(folder: Path) -> None:
    """Four-bar that moves, the same with one bar too many, and bars in one line."""
    import loopdyn as ld

    names = names_of("zero_freedom.md")
    strutted = names["four_bar"]()
    pin = ld.Revolute(axis=(0, 0, 1))
    strutted.add_body("strut", ld.Inertia.rod(mass=0.2, start=(50, 0, 0), end=(45, 45, 0)))
    strutted.add_joint("E", pin, strutted.ground, "strut", at=(50, 0, 0))
    strutted.add_joint("F", pin, "coupler", "strut", at=(45, 45, 0))
    figure, places = plt.subplots(1, 3, figsize=(9.0, 2.8), layout="constrained")
    titles = ("1 degree of freedom", "one bar too many: a structure", "in one line: shaky")
    flat = ld.Mechanism("flat", units={"length": "mm", "angle": "deg"})
    for name, start, end in (("one", 0, 40), ("two", 40, 100)):
        flat.add_body(name, ld.Inertia.rod(mass=0.1, start=(start, 0, 0), end=(end, 0, 0)))
    flat.add_joint("A", pin, flat.ground, "one", at=(0, 0, 0))
    flat.add_joint("B", pin, "one", "two", at=(40, 0, 0))
    flat.add_joint("C", pin, flat.ground, "two", at=(100, 0, 0))
    for ax, m, title in zip(places, (names["four_bar"](), strutted, flat), titles, strict=True):
        m.compile().plot(ax=ax, names=False)
        ax.set_title(title, fontsize=10)
        ax.set_axis_off()
    figure.savefig(folder / "zero_freedom.png", dpi=110)


def ride_frequency(folder: Path) -> None:
    """Suspension at rest; frequencies of ride and wheel hop over the stiffness of the spring."""
    import loopdyn as ld

    names = names_of("ride_frequency.md")
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.0, 3.4), layout="constrained")
    names["system"].plot(names["rest"].state, left, names=False)
    left.set_title("at rest", fontsize=10)
    left.set_axis_off()
    springs = np.linspace(60.0, 140.0, 17)
    frequencies = []
    for spring in springs:
        car = names["quarter_car"](spring).compile()
        frequencies.append(ld.linearize(car, ld.equilibrium(car)).modes().frequency)
    ride, hop = np.array(frequencies).T
    right.plot(springs, ride, color=BLUE, label="ride")
    right.plot(springs, hop / 10, color=ORANGE, ls="--", label="wheel hop, divided by 10")
    right.axhline(1.3, color="0.5", ls=":", lw=1)
    right.set(xlabel="stiffness of the spring in N/mm", ylabel="frequency in Hz", ylim=(1.0, 1.6))
    right.legend(frameon=False)
    figure.savefig(folder / "ride_frequency.png", dpi=110)


def tolerance(folder: Path) -> None:
    """Samples of the coupler point with the worst case; contributions of the lengths to the variance."""
    names = names_of("tolerance.md")
    found, summary, parts = names["found"], names["summary"], names["parts"]
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.0, 3.2), layout="constrained")
    table = found.study.table()
    left.plot(table["P.x"], table["P.y"], ".", color=BLUE, ms=3, label="400 samples")
    left.plot(found.nominal["P.x"], found.nominal["P.y"], "P", color="black", label="nominal")
    low, high = (summary.loc[["P.x", "P.y"], name].to_numpy() for name in ("worst_low", "worst_high"))
    left.add_patch(plt.Rectangle(low, *(high - low), fill=False, ec=ORANGE, ls="--", label="worst case"))
    left.set(xlabel="x in mm", ylabel="y in mm")
    left.legend(frameon=True, fontsize=8)
    lengths = list(dict.fromkeys(parts["dimension"]))
    for shift, name, hatch, colour in ((-0.2, "P.x", "", BLUE), (0.2, "P.y", "///", "white")):
        own = parts.loc[name].set_index("dimension").loc[lengths, "of_variance"]
        right.bar(np.arange(len(lengths)) + shift, 100 * own, 0.4, label=name[-1], hatch=hatch, color=colour, ec=BLUE)
    right.set_xticks(range(len(lengths)), lengths)
    right.set_ylabel("part of the variance in %")
    right.legend(frameon=False)
    figure.savefig(folder / "tolerance.png", dpi=110)


def main(folder: Path = FOLDER) -> None:
    """Write all pictures to a folder."""
    for draw in (motor_sizing, play_and_stops, zero_freedom, ride_frequency, tolerance):
        draw(folder)
        plt.close("all")


if __name__ == "__main__":
    main()
