"""``loopdyn inverse``: motor loads for a given motion."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from loopdyn.app.cli.answers import exit_on_error, print_json, print_lines, print_text, refuse_options
from loopdyn.app.cli.models import load_system, tolerated_start
from loopdyn.app.cli.options import (
    PICTURES,
    AngleTolerance,
    AsJson,
    Duration,
    LengthTolerance,
    ModelFile,
    Parameters,
    assignments,
    check_labels,
    check_names,
    write_files,
    write_plot,
)

if TYPE_CHECKING:
    from loopdyn.results.inverse_dynamics import InverseDynamics

SAMPLES = 200  # default number of intervals of a motion


def inverse(
    file: ModelFile,
    motion: Annotated[
        list[str] | None,
        typer.Option("--motion", metavar="A=FORMULA", help="Coordinate by a formula of t (file's units)."),
    ] = None,
    until: Duration = 1.0,
    every: Annotated[float | None, typer.Option("--every", help="Seconds between times; else 200 steps.")] = None,
    motors: Annotated[list[str] | None, typer.Option("--motor", metavar="A", help="Coordinate with a motor.")] = None,
    weights: Annotated[
        list[str] | None, typer.Option("--weight", metavar="A=1", help="Weight of load^2, for redundant motors.")
    ] = None,
    preload: Annotated[
        list[str] | None,
        typer.Option("--preload", metavar="A=5", help="Preload (file's units), for redundant motors."),
    ] = None,
    csv: Annotated[Path | None, typer.Option("--csv", help="Write loads, speeds and powers as a table.")] = None,
    plot: Annotated[Path | None, typer.Option("--plot", help="Write load over speed: .png, .svg, .pdf.")] = None,
    angle_tolerance: AngleTolerance = None,
    length_tolerance: LengthTolerance = None,
    changed: Parameters = None,
    as_json: AsJson = False,
) -> None:
    """Inverse dynamics: motor loads for a given motion, and bearing loads.

    The motion is given by formulas in the units of the file, one --motion for each
    degree of freedom, or by the drivers of the model. Motors are the coordinates
    named by --motor, else those of the motion with a motor or driver in the model,
    else all that have one, else those of the motion; motors and drivers of the model
    on these coordinates are left out. Results are in the units of the file. The
    exit code is 1 if the model is wrong or the motion is impossible.

    Example: loopdyn inverse slider_crank.yaml --motion "A=360*t" -t 1
    """
    from loopdyn.analysis.inverse_dynamics import inverse_dynamics
    from loopdyn.run.simulate import output_times

    command = f"loopdyn inverse {file}"
    laws = assignments("--motion", motion)
    shares, loads = _numbers("--weight", weights), _numbers("--preload", preload)
    check_names(csv=(csv, ()), plot=(plot, PICTURES))
    with refuse_options():
        times = output_times(0.0, until, until / SAMPLES if every is None else every)
    system = load_system(file, changed, command)
    for option, labels in (("--motion", laws), ("--motor", motors or []), ("--weight", shares), ("--preload", loads)):
        check_labels(system, option, labels)
    with exit_on_error(command, "the model or the options"):
        begin = tolerated_start(system, angle_tolerance, length_tolerance)
        found = inverse_dynamics(
            system, laws, times, motors=motors, weights=shares or None, preload=loads or None, near=begin
        )
        bearings = found.bearings()
    with exit_on_error(command, "the options"):
        written = write_files((csv, found.to_csv), (plot, lambda name: write_plot(name, found.plot)))
    if as_json:
        bearing_rows = bearings.table().to_dict(orient="index")
        print_json({"name": system.name} | _as_data(found) | {"bearings": bearing_rows, "written": written})
    else:
        print_text(f"{found}\n\n{bearings}")
        print_lines(*(["", f"written           {', '.join(written)}"] if written else []))


def _as_data(found: InverseDynamics) -> dict[str, Any]:
    return {
        "verdict": found.verdict,
        "rule": found.rule,
        "replaced": list(found.replaced),
        "left_open": found.left_open,
        "motors": found.table().to_dict(orient="index"),
    }


def _numbers(option: str, given: list[str] | None) -> dict[str, float]:
    found = {}
    for name, text in assignments(option, given).items():
        try:
            found[name] = float(text)
        except ValueError:
            raise typer.BadParameter(f"'{text}' of '{name}' is not a number.", param_hint=option) from None
    return found
