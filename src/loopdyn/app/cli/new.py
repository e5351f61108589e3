"""``loopdyn new``: a model file to start from."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Literal

import typer

from loopdyn.app.cli.answers import exit_on_error, print_lines, stop
from loopdyn.app.cli.options import check_names

Kind = Literal["four-bar", "slider-crank", "five-bar", "pendulum", "blank"]
YAML = (".yaml", ".yml")


def new(
    name: Annotated[
        Path | None, typer.Argument(metavar="[NAME]", help="File to write; .yaml is added. By default the kind's name.")
    ] = None,
    kind: Annotated[Kind, typer.Option("-k", "--kind", help="What to start from.")] = "four-bar",
) -> None:
    """Write a commented model file to start from. An existing file is never overwritten.

    Example: loopdyn new my_linkage --kind slider-crank
    """
    from loopdyn.files import write

    file = Path(kind.replace("-", "_") if name is None else name)
    file = file if file.suffix in YAML else file.with_name(f"{file.name}.yaml")
    command = f"loopdyn new {file} --kind {kind}"
    check_names(name=(file, YAML))
    if file.exists():
        stop(f"'{file}' exists, and is not overwritten.", command, "the name")
    text = (files("loopdyn.app") / "templates" / f"{kind}.yaml").read_text("utf-8")
    title = re.sub(r"\W+", "_", file.stem) or "mechanism"
    with exit_on_error(command, "the name"):
        write(file, text.replace("name: NAME", f"name: {title}").replace(" FILE", f" {file.name}"))
    print_lines(f"written: {file}", f"Show it: loopdyn view {file}")
