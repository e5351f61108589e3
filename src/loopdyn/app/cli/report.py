"""``loopdyn report``: one page about a mechanism."""

from __future__ import annotations

from math import isfinite
from pathlib import Path
from typing import Annotated, Any

import typer

from loopdyn.app.cli.answers import INTERRUPTED, exit_on_error
from loopdyn.app.cli.conversion import pair_of_tolerances
from loopdyn.app.cli.models import load_mechanism
from loopdyn.app.cli.options import (
    AngleTolerance,
    Duration,
    LengthTolerance,
    ModelFile,
    Parameters,
    check_names,
    draw_into_files,
)


def report(
    file: ModelFile,
    output: Annotated[Path, typer.Option("-o", "--output", help="Page to write, .html.")] = Path("report.html"),
    until: Duration = 1.0,
    turn: Annotated[
        str | None, typer.Option("--turn", help="Input of the kinematic analysis; else that of a driver or motor.")
    ] = None,
    start: Annotated[float | None, typer.Option("--from", help="Start of its range, in the units of the file.")] = None,
    stop: Annotated[float | None, typer.Option("--to", help="End of its range, in the units of the file.")] = None,
    table: Annotated[Path | None, typer.Option("--variants", help="Table of parameters, .csv: a run per line.")] = None,
    title: Annotated[str | None, typer.Option("--title", help="Heading; else the name of the mechanism.")] = None,
    author: Annotated[str, typer.Option("--author", help="Author, for the first page.")] = "",
    notes: Annotated[str, typer.Option("--notes", help="Notes for the first page.")] = "",
    angle_tolerance: AngleTolerance = None,
    length_tolerance: LengthTolerance = None,
    changed: Parameters = None,
) -> None:
    """Write a report about a mechanism as one page.

    First title, author, notes, units, loads of motors over their speeds with their
    characteristics and the worst bearings, the last cycle apart from the start-up; then
    picture, mobility and redundancy, kinematic analysis over a turn of the input, a
    run, loads of all bearings, shaking forces, energy-balance error, settings and
    versions; with --variants, all variants side by side. The page needs no other
    file.

    Example: loopdyn report four_bar.yaml -o four_bar.html -t 2 --turn A
    """
    from loopdyn.output.report import report as write
    from loopdyn.studies.variants import variants

    check_names(output=(output, (".html",)))
    if not (isfinite(until) and until > 0.0):
        raise typer.BadParameter(f"{until} is not a positive number of seconds.", param_hint="--time")
    if (start is None) != (stop is None):
        raise typer.BadParameter("give both ends of the range, or neither.", param_hint="--from, --to")
    with exit_on_error(f"loopdyn report {file}"):
        mechanism = load_mechanism(file, changed)
        tolerance = pair_of_tolerances(angle_tolerance, length_tolerance)
        found = None if table is None else variants(mechanism, table, (0.0, until), tolerance=tolerance)
        draw_into_files()
        over = None if start is None or stop is None else (start, stop)
        chosen: dict[str, Any] = {"turn": turn, "over": over, "variants": found, "tolerance": tolerance}
        write(mechanism, output, t_span=(0.0, until), title=title, author=author, notes=notes, **chosen)
    typer.echo(f"written: {output}")
    if found is not None and found.stopped:
        typer.echo(found.stopped, err=True)
        raise typer.Exit(INTERRUPTED)
