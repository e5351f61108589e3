"""The program ``loopdyn``: its commands in the order of ``--help``, Ctrl-C, standard output, the version."""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Callable, Iterable
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from loopdyn.app.cli.answers import INTERRUPTED, warnings_as_notes
from loopdyn.app.cli.bench import bench
from loopdyn.app.cli.compare import compare
from loopdyn.app.cli.convert import convert
from loopdyn.app.cli.demo import demo
from loopdyn.app.cli.doctor import doctor
from loopdyn.app.cli.drive import drive
from loopdyn.app.cli.equilibrium import equilibrium
from loopdyn.app.cli.inspect import inspect
from loopdyn.app.cli.inverse import inverse
from loopdyn.app.cli.modes import modes
from loopdyn.app.cli.new import new
from loopdyn.app.cli.report import report
from loopdyn.app.cli.run import run
from loopdyn.app.cli.schema import schema
from loopdyn.app.cli.studio import studio
from loopdyn.app.cli.study import study, tolerance
from loopdyn.app.cli.view import view
from loopdyn.app.cli.warm import warm

COMMANDS = (  # commands import slow modules when they are called
    new,
    inspect,
    view,
    compare,
    drive,
    run,
    convert,
    equilibrium,
    inverse,
    modes,
    study,
    tolerance,
    report,
    schema,
    demo,
    studio,
    bench,
    warm,
    doctor,
)


class _Commands(TyperGroup):
    """All commands; Ctrl-C in any of them prints a message."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            typer.echo("stopped by Ctrl-C: incomplete files were left as they were before", err=True)
            raise typer.Exit(INTERRUPTED) from None


def _program(commands: Iterable[Callable[..., None]]) -> typer.Typer:
    """The program with these commands."""
    program = typer.Typer(
        name="loopdyn",
        cls=_Commands,
        help="Dynamics of closed-loop and constrained rigid multibody mechanisms.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    program.callback()(_options)
    for command in commands:
        program.command()(command)
    return program


def main() -> None:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal without box characters must not cause an error
            stream.reconfigure(errors="replace")
    # Options of all commands take as long to prepare as a small model to read: where one is named, only its own.
    named = [command for command in COMMANDS if sys.argv[1:2] == [command.__name__]]
    program = _program(named) if named else app
    try:
        try:
            program(prog_name="loopdyn")
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


app = _program(COMMANDS)
