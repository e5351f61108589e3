"""``loopdyn studio``: a page to edit and run mechanisms."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from loopdyn.app.cli.answers import print_text
from loopdyn.errors import LoopdynError


def studio(
    file: Annotated[Path | None, typer.Argument(metavar="[FILE]", help="Model file to open, ending in .yaml.")] = None,
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
        open_studio(file, port=port, browser=browser)
    except LoopdynError as error:
        print_text(str(error), err=True)
        raise typer.Exit(1) from None
