"""``loopdyn studio``: a page to edit and run mechanisms."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from loopdyn.app.cli.answers import print_text
from loopdyn.app.cli.options import complete_models
from loopdyn.errors import LoopdynError


def studio(
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="[FILE]",
            help="Model file: .yaml; .xml (MJCF), .urdf and .sdf are converted to NAME.yaml first.",
            autocompletion=complete_models,
        ),
    ] = None,
    port: Annotated[int, typer.Option("--port", help="Port of 127.0.0.1; 0: any free one.", min=0, max=65535)] = 8765,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page in the browser.")] = True,
) -> None:
    r"""Open a local page to edit a mechanism, drag its input, run it and view the results.

    Served to this machine only, until Ctrl-C. Files are read and written in the
    current folder and below, nowhere else. Without a file it starts with a
    four-bar. Needs the extra: pip install 'loopdyn\[studio]'.

    Example: loopdyn studio four_bar.yaml
    """
    from loopdyn.app.studio import open_studio

    try:
        file = None if file is None else _as_yaml(file)
        open_studio(file, port=port, browser=browser)
    except LoopdynError as error:
        print_text(str(error), err=True)
        raise typer.Exit(1) from None


def _as_yaml(file: Path) -> Path:
    """Model file for the editor: the file itself, or another tool's, converted next to it."""
    from loopdyn.interchange.convert import convert
    from loopdyn.interchange.loading import READ, YAML

    target = file.with_suffix(".yaml")
    if file.suffix.lower() in YAML or file.suffix.lower() not in READ or not file.exists():
        return file  # the studio says what is wrong with it
    if target.exists():
        raise LoopdynError(f"'{target}' exists, so '{file}' is not converted to it. Open it, or move it away.")
    for report in convert(file, target):
        print_text(str(report))
    return target
