"""Write docs/reference/commands.md, all commands with their arguments and options, from the program itself.

python docs/command_reference.py

`tests/docs/test_command_reference.py` compares the page with what this script makes, and with the help texts.
"""

from __future__ import annotations

import re
import types
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

import typer.main

from loopdyn.app.cli import app

PAGE = Path(__file__).parent / "reference" / "commands.md"
INTRODUCTION = """\
# Commands and options

Written from the program by `docs/command_reference.py`. What holds for all commands is in
[the command line](command_line.md).
`loopdyn COMMAND --help` prints the same.
"""
NAMES = {str: "text", int: "number", float: "number", Path: "file"}


def commands() -> dict[str, Any]:
    """Commands of the program by name, in the order of its help."""
    return dict(typer.main.get_command(app).commands)  # type: ignore[attr-defined]


def shown(text: str) -> str:
    """Text for a cell of a table: one line, bars and brackets escaped."""
    return " ".join(text.split()).replace("|", "\\|").replace("\\[", "[").replace("<", "&lt;")


def values(annotation: Any) -> str:
    """Kind of value, or its choices."""
    if get_origin(annotation) is Literal:
        return ", ".join(f"`{choice}`" for choice in get_args(annotation))
    if get_origin(annotation) in (Union, types.UnionType):
        return values(next(a for a in get_args(annotation) if a is not type(None)))
    if get_origin(annotation) in (list, tuple):
        return values(get_args(annotation)[0])
    return NAMES.get(annotation, "text")


def name_of(parameter: Any) -> str:
    """Name of the value in the help text, without the brackets of an optional argument."""
    name = parameter.metavar or ""
    return name.removeprefix("[").removesuffix("...").removesuffix("]") if is_argument(parameter) else name


def is_argument(parameter: Any) -> bool:
    """Whether it is an argument, and not an option."""
    return type(parameter).__name__.endswith("Argument")


def value_of(parameter: Any) -> str:
    """Value that follows an argument or option: its name in the help, its kind, or its choices."""
    if getattr(parameter, "is_flag", False):
        return ""
    kind = values(parameter.type_descriptor.annotation)
    many = parameter.multiple or parameter.nargs == -1
    several = ", repeatable" if many and "repeatable" not in (parameter.help or "").lower() else ""
    name = name_of(parameter)
    name = "" if is_argument(parameter) else name
    return f"`{name}`{several}" if name and not kind.startswith("`") else kind + several


def default_of(parameter: Any) -> str:
    """Default of an argument or option."""
    value = parameter.default
    if parameter.required:
        return "required"
    if getattr(parameter, "is_flag", False):
        if parameter.secondary_opts:
            return f"`{(parameter.opts if value else parameter.secondary_opts)[0]}`"
        return "off"
    if value is None or callable(value) or value in ("", [], ()):
        return ""
    many = value if isinstance(value, list | tuple) else [value]
    return ", ".join(f"`{x:g}`" if isinstance(x, float) else f"`{x}`" for x in many)


def command(name: str, entry: Any) -> list[str]:
    """Section of a command: what it does, its arguments and options."""
    parameters = [p for p in entry.params if not p.hidden]
    given = [p for p in parameters if is_argument(p)]
    usage = " ".join(p.metavar or p.name.upper() for p in given)
    lines = [f"## {name}", "", f"    {' '.join(['loopdyn', name, *([usage] if usage else []), '[OPTIONS]'])}", ""]
    text = re.sub(r"^Example: (.*)$", r"Example: `\1`", entry.help.replace("\\[", "["), flags=re.M)
    lines += [text.strip(), ""]
    if parameters:
        lines += ["| argument or option | value | default | meaning |", "|---|---|---|---|"]
    for p in parameters:
        spelled = (
            f"`{name_of(p) or p.name.upper()}`"
            if p in given
            else ", ".join(f"`{x}`" for x in (*p.opts, *p.secondary_opts))
        )
        lines.append(f"| {spelled} | {value_of(p)} | {default_of(p)} | {shown(p.help or '')} |")
    return [*lines, ""] if parameters else lines


def page() -> str:
    """The whole page."""
    lines = [INTRODUCTION]
    for name, entry in commands().items():
        lines += command(name, entry)
    return "\n".join(lines).rstrip("\n") + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
