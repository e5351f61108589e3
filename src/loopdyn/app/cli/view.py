"""``loopdyn view``: a page with the mechanism in 3-D."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from loopdyn.app.cli.answers import exit_on_error, print_lines
from loopdyn.app.cli.models import load_system, tolerated_start
from loopdyn.app.cli.options import AngleTolerance, LengthTolerance, ModelFile, Parameters, check_names


def view(
    file: ModelFile,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Page to write, .html; by default NAME.html, in this folder.")
    ] = None,
    turn: Annotated[
        str | None,
        typer.Option(
            "--turn", metavar="JOINT", help="Coordinate to move; else that of a driver, motor or one freedom."
        ),
    ] = None,
    start: Annotated[float | None, typer.Option("--from", help="Start of its range, in units of the file.")] = None,
    stop: Annotated[float | None, typer.Option("--to", help="End of its range, in units of the file.")] = None,
    show: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in the browser.")] = True,
    angle_tolerance: AngleTolerance = None,
    length_tolerance: LengthTolerance = None,
    changed: Parameters = None,
) -> None:
    """Write a page that shows the mechanism in 3-D, and open it in the browser.

    Closes the loops at the start of the model. If the mechanism has a driver, a
    motor, or one degree of freedom, the page moves it along: an angle by a turn, or
    as far as the linkage can go. Otherwise it shows the start pose, and says why.
    The page needs no other file and no network.

    Example: loopdyn view four_bar.yaml --turn A --from 0 --to 90
    """
    from loopdyn.analysis.assembly import assemble
    from loopdyn.app.viewing import write_view

    page = Path(f"{file.stem}.html") if output is None else output
    check_names(output=(page, (".html",)))
    if (start is None) != (stop is None):
        raise typer.BadParameter("give both ends of the range, or neither.", param_hint="--from, --to")
    command = f"loopdyn view {file}"
    system = load_system(file, changed, command)
    with exit_on_error(command):
        state = tolerated_start(system, angle_tolerance, length_tolerance)
        over = None if start is None or stop is None else (start, stop)
        shown = write_view(system, assemble(system) if state is None else state, page, turn, over)
    print_lines(shown, f"written: {page}")
    if show:
        typer.launch(page.resolve().as_uri())
