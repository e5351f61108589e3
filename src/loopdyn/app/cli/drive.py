"""``loopdyn drive``: kinematic analysis over a range of an input."""

from __future__ import annotations

from math import isfinite
from pathlib import Path
from typing import Annotated

import typer

from loopdyn.app.cli.answers import exit_on_error, print_json, print_lines, print_text
from loopdyn.app.cli.models import load_system, tolerated_start
from loopdyn.app.cli.options import (
    PAGES,
    PICTURES,
    AngleTolerance,
    AsJson,
    LengthTolerance,
    ModelFile,
    Parameters,
    check_names,
    write_files,
    write_plot,
)


def drive(
    file: ModelFile,
    joint: Annotated[str, typer.Argument(metavar="JOINT", help="Joint coordinate to drive, e.g. A.")],
    start: Annotated[float, typer.Option("--from", help="Start of the range, in the units of the file.")],
    stop: Annotated[float, typer.Option("--to", help="End of the range, in the units of the file.")],
    points: Annotated[int, typer.Option("--points", help="Number of poses, at least 2.")] = 361,
    csv: Annotated[Path | None, typer.Option("--csv", help="Write all poses as a table to this file.")] = None,
    plot: Annotated[Path | None, typer.Option("--plot", help="Write plots: .png, .svg, .pdf.")] = None,
    html: Annotated[Path | None, typer.Option("--html", help="Write a page that shows the motion.")] = None,
    angle_tolerance: AngleTolerance = None,
    length_tolerance: LengthTolerance = None,
    changed: Parameters = None,
    as_json: AsJson = False,
) -> None:
    """Kinematic analysis over a range of an input: positions, ratios, dead points.

    Closes the loops, moves the input to the start of the range and then to its
    end. Prints the range of each coordinate and the turning points, dead points
    and change points, all in the units of the file. If the input cannot reach the
    end, the results until then are printed and written, and the exit code is 1.

    Example: loopdyn drive four_bar.yaml A --from 0 --to 360 --plot turn.png
    """
    from loopdyn.analysis.drive import drive as move

    command = f"loopdyn drive {file} {joint} --from {start:g} --to {stop:g}"
    check_names(csv=(csv, ()), plot=(plot, PICTURES), html=(html, PAGES))
    if points < 2:
        raise typer.BadParameter(f"{points} is less than 2.", param_hint="--points")
    if not (isfinite(start) and isfinite(stop)):
        raise typer.BadParameter("the range must be finite.", param_hint="--from, --to")
    system = load_system(file, changed, command)
    with exit_on_error(command):
        near = tolerated_start(system, angle_tolerance, length_tolerance)
        result = move(system, joint, (start, stop, points), near=near)
        written = write_files(
            (csv, result.to_csv),
            (plot, lambda name: write_plot(name, result.plot, dpi=150)),
            (html, result.animate),
        )
    if as_json:
        print_json(result.as_data() | {"written": written})
    else:
        print_text(str(result))
        print_lines(*([f"  written: {', '.join(written)}"] if written else []))
    if result.status == "stopped":
        raise typer.Exit(1)
