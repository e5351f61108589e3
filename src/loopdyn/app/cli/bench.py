"""``loopdyn bench``: benchmark problems whose solutions are known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from loopdyn.app.cli.answers import exit_on_error, print_lines, refuse_options
from loopdyn.app.cli.options import PICTURES, Benches, Formulations, check_names
from loopdyn.errors import LoopdynError

if TYPE_CHECKING:
    from loopdyn.app.bench import BenchResult


def bench(
    names: Annotated[
        list[Benches] | None, typer.Argument(metavar="[NAME]...", help="By default all.", case_sensitive=False)
    ] = None,
    formulations: Annotated[
        list[Formulations] | None, typer.Option("-f", "--formulation", help="Repeatable; auto by default.")
    ] = None,
    rtol: Annotated[float, typer.Option("--rtol", help="Relative tolerance of a step.")] = 1e-8,
    peers: Annotated[bool, typer.Option("--peers", help="Also run MuJoCo, if it is installed.")] = False,
    step: Annotated[float, typer.Option("--step", help="Step size of MuJoCo in s.")] = 1e-3,
    plot: Annotated[
        Path | None, typer.Option("--plot", help="Draw errors over computing time: .png, .svg, .pdf.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Run benchmark problems with known solutions: error, energy error, steps, time.

    The problems of the IFToMM library (A01 pendulum, A02 windows that fold flat,
    A03 Andrews' squeezer, A04 Bricard, A05 flyball governor) and ladders. Without
    a name all of them are run, which takes some minutes.

    Example: loopdyn bench A02 A04 -f auto -f momentum
    """
    from loopdyn.app import bench as problems
    from loopdyn.run.simulate import check_settings

    check_names(plot=(plot, PICTURES))
    if not step > 0.0:
        raise typer.BadParameter(f"--step is {step}. Give a positive number of seconds.")
    results: list[BenchResult] = []
    failed = False
    with refuse_options():
        check_settings(rtol, None, "projection")
        for name in problems.chosen([name.value for name in names or []]):
            for formulation in [f.value for f in formulations or []] or ["auto"]:
                results.append(problems.run_problem(name, formulation, rtol))
                failed = failed or results[-1].status != "finished"
                if not as_json:
                    typer.echo(f"{name} by {formulation}: {results[-1].status}", err=True)
            if peers:
                results += _by_peer(name, step)
    with exit_on_error("loopdyn bench", "the options"):
        if plot is not None:
            problems.plot(results, str(plot))
    if as_json:
        typer.echo(json.dumps(problems.as_data(results), indent=2))
    else:
        _show(problems.table(results))
    if failed:
        raise typer.Exit(1)


def _by_peer(name: str, step: float) -> list[BenchResult]:
    """Result of MuJoCo; none, with a note, if it is not installed or MJCF cannot describe the model."""
    from loopdyn.app.bench import run_by_mujoco

    try:
        return [run_by_mujoco(name, step)]
    except LoopdynError as error:
        print_lines(f"{name} by MuJoCo is left out: {error}", err=True)
        return []


def _show(table: list[list[str]]) -> None:
    from rich.console import Console
    from rich.table import Table

    heads, *rows = table
    shown = Table(*heads)
    for row in rows:
        shown.add_row(*row)
    Console(width=None if Console().is_terminal else 160).print(shown)
