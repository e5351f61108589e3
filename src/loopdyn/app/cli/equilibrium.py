"""``loopdyn equilibrium``: static equilibria and their stability."""

from __future__ import annotations

from math import isfinite
from typing import Annotated, Any

import typer

from loopdyn.app.cli.answers import exit_on_error, print_json, print_text
from loopdyn.app.cli.models import load_system, tolerated_start
from loopdyn.app.cli.options import (
    AngleTolerance,
    AsJson,
    LengthTolerance,
    ModelFile,
    Parameters,
    assignments,
    check_labels,
)


def equilibrium(
    file: ModelFile,
    search: Annotated[
        list[str] | None,
        typer.Option("--search", metavar="A=FROM:TO", help="Range of a coordinate (file's units)."),
    ] = None,
    at: Annotated[float, typer.Option("--at", metavar="SECONDS", help="Time of drivers and motors in s.")] = 0.0,
    angle_tolerance: AngleTolerance = None,
    length_tolerance: LengthTolerance = None,
    changed: Parameters = None,
    as_json: AsJson = False,
) -> None:
    """Find static equilibria and their stability.

    Without --search the mechanism is released at the start of the model and comes
    to rest in a stable equilibrium. With --search all equilibria over a range of a
    coordinate are found, one line each: stable, unstable or neutral. Numbers
    are printed in the units of the file. The exit
    code is 1 if the model is wrong, if none is found or if a driver or base moves
    at that time.

    Example: loopdyn equilibrium toggle.yaml --search A=-60:60
    """
    from loopdyn.analysis.equilibrium import equilibrium as find

    command = f"loopdyn equilibrium {file}"
    ranges = {label: _range(text) for label, text in assignments("--search", search).items()}
    system = load_system(file, changed, command)
    check_labels(system, "--search", ranges)
    about: dict[str, Any] = {"name": system.name}
    with exit_on_error(command, "the model or the options"):
        begin = tolerated_start(system, angle_tolerance, length_tolerance, at)
        if ranges:
            several = find(system, begin, search=ranges, t=at)
            about |= {"complete": several.complete, "note": several.note}
            found, text = list(several), str(several)
        else:
            one = find(system, begin, t=at)
            found, text = [one], f"{one}\n\n{one.reactions}"
    if as_json:
        print_json(about | {"equilibria": [e.as_data() for e in found]})
    else:
        print_text(text)


def _range(text: str) -> tuple[float, float]:
    try:
        low, high = (float(x) for x in text.split(":"))
    except ValueError:
        raise typer.BadParameter(f"'{text}' is not a range. Write FROM:TO, as 0:360.", param_hint="--search") from None
    if not (isfinite(low) and isfinite(high) and low < high):
        raise typer.BadParameter(f"the range '{text}' does not ascend.", param_hint="--search")
    return low, high
