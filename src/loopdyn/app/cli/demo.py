"""``loopdyn demo``: a demonstration on two mechanisms."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from loopdyn.app.cli.answers import exit_on_error
from loopdyn.app.cli.options import check_names


def demo(
    page: Annotated[Path, typer.Option("--html", help="Page to write, .html.")] = Path("loopdyn_demo.html"),
) -> None:
    """Simulate a four-bar and a 6-UPS platform, compare all formulations, and write an animated page.

    Needs no arguments.
    """
    from loopdyn.app.demo import main as run

    check_names(html=(page, (".html",)))
    with exit_on_error("loopdyn demo", "the options"):
        run(page)
