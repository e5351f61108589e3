"""The program ``loopdyn``: its commands in the order of ``--help``, Ctrl-C, standard output, the version."""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Iterable
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from loopdyn.app.cli.answers import INTERRUPTED, warnings_as_notes

COMMANDS = {  # module of each; it is imported when the command is called or listed, slow ones inside the command
    "new": "new",
    "inspect": "inspect",
    "view": "view",
    "compare": "compare",
    "drive": "drive",
    "run": "run",
    "convert": "convert",
    "equilibrium": "equilibrium",
    "inverse": "inverse",
    "modes": "modes",
    "study": "study",
    "tolerance": "study",
    "report": "report",
    "schema": "schema",
    "demo": "demo",
    "studio": "studio",
    "bench": "bench",
    "warm": "warm",
    "doctor": "doctor",
}


class _Commands(TyperGroup):
    """All commands; Ctrl-C in any of them prints a message."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            typer.echo("stopped by Ctrl-C: incomplete files were left as they were before", err=True)
            raise typer.Exit(INTERRUPTED) from None


def program(names: Iterable[str] = COMMANDS) -> typer.Typer:
    """The program with some of its commands, or all."""
    made = typer.Typer(
        name="loopdyn",
        cls=_Commands,
        help="Dynamics of closed-loop and constrained rigid multibody mechanisms.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    made.callback()(_options)
    for name in names:
        made.command()(getattr(import_module(f"loopdyn.app.cli.{COMMANDS[name]}"), name))
    return made


def main() -> None:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal without box characters must not cause an error
            stream.reconfigure(errors="replace")
    # To prepare all commands takes as long as to read a small model: where one is named, only that.
    named = sys.argv[1:2]
    made = program(named if named and named[0] in COMMANDS else COMMANDS)
    try:
        try:
            made(prog_name="loopdyn")
        finally:
            sys.stdout.flush()
    except OSError as error:
        if error.filename is not None:  # not an error of standard output
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nothing more can be written there
        if error.errno != errno.EPIPE:  # a closed pipe needs no message
            typer.echo(f"standard output cannot be written: {error.strerror}. Free some space.", err=True)
        sys.exit(1)


def _show_version(wanted: bool) -> None:
    if wanted:
        from loopdyn import __version__

        typer.echo(f"loopdyn {__version__}")
        raise typer.Exit


def _options(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    context.with_resource(warnings_as_notes())
