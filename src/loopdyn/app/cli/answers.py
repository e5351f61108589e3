"""Output of commands: lines, JSON, error messages and warnings, exit codes."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from math import isfinite
from typing import Any, NoReturn

import typer

from loopdyn.errors import LoopdynError, LoopdynWarning, ModelError

INTERRUPTED = 130  # exit code after Ctrl-C, by convention of shells


def printable(text: str) -> str:
    """Text as one line without control characters: names come from files, and a terminal would obey them."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def print_lines(*lines: str, err: bool = False) -> None:
    """Print each text on its own line, to standard error if `err`."""
    for line in lines:
        typer.echo(printable(line), err=err)


def print_text(text: str, *, err: bool = False) -> None:
    """Print a text of one or more lines, to standard error if `err`."""
    print_lines(*text.split("\n"), err=err)


def print_json(data: Any) -> None:
    """Print data as JSON; infinity and NaN, which JSON does not have, become null."""
    typer.echo(json.dumps(_plain(data), indent=2))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    return None if isinstance(value, float) and not isfinite(value) else value


# ------------------------------------------------------------------------------------------- errors and warnings


@contextmanager
def exit_on_error(command: str, what: str = "the model") -> Iterator[None]:
    """Print errors as messages that say what to correct; exit code 1."""
    try:
        yield
    except LoopdynError as error:
        stop(str(error), command, what)


def stop(text: str, command: str, what: str = "the model") -> NoReturn:
    """Print what is wrong and what to do; exit code 1."""
    print_text(text, err=True)
    print_lines(f"Correct {what}, then run again: {command}", err=True)
    raise typer.Exit(1)


@contextmanager
def list_problems(command: str) -> Iterator[None]:
    """Print all problems of a model error, one per line, and their number; exit code 1."""
    try:
        yield
    except LoopdynError as error:
        problems = error.problems if isinstance(error, ModelError) else (error,)
        count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        again = f"{count}. Correct the model, then run again: {command}"
        print_lines(*(str(problem) for problem in problems), again, err=True)
        raise typer.Exit(1) from None


@contextmanager
def refuse_options() -> Iterator[None]:
    """Report errors as wrong use of the command, exit code 2."""
    try:
        yield
    except LoopdynError as error:
        raise typer.BadParameter(str(error)) from None


@contextmanager
def warnings_as_notes() -> Iterator[None]:
    """Show loopdyn's warnings as notes, without the position in the code."""
    shown_by_python = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
        if issubclass(category, LoopdynWarning):
            typer.echo(printable(f"note: {message}"), err=True)
        else:
            shown_by_python(message, category, *place, **more)

    warnings.showwarning = show
    try:
        yield
    finally:
        warnings.showwarning = shown_by_python


@contextmanager
def collected_warnings() -> Iterator[list[str]]:
    """Collect the texts of loopdyn's warnings for JSON; they are shown as notes as well."""
    notes: list[str] = []
    with warnings.catch_warnings():
        shown_by_python = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
            if issubclass(category, LoopdynWarning):
                notes.append(str(message))
            shown_by_python(message, category, *place, **more)

        warnings.showwarning = show
        warnings.simplefilter("always", LoopdynWarning)
        yield notes
