"""The page of commands and options is that of the program, and its help texts show the same."""

import re
import runpy
from itertools import takewhile
from pathlib import Path

import pytest
from typer.testing import CliRunner

from loopdyn.app.cli import app

ROOT = Path(__file__).parents[2]
SCRIPT = runpy.run_path(str(ROOT / "docs" / "command_reference.py"))
TEXT = (ROOT / "docs" / "reference" / "commands.md").read_text(encoding="utf-8")
SECTIONS = {part.partition("\n")[0]: part for part in TEXT.split("\n## ")[1:]}


def test_the_page_is_the_one_that_the_script_writes():
    assert SCRIPT["page"]() == TEXT, "run: python docs/command_reference.py"


def test_the_page_has_the_commands_that_the_help_text_lists():
    printed = help_of()
    listed = printed.partition("Commands")[2]
    assert list(SECTIONS) == [name for name in re.findall(r"^\W*([a-z]+) ", listed, re.M)]


@pytest.mark.parametrize("name", SECTIONS)
def test_a_section_has_the_options_and_defaults_of_the_help_text(name):
    """The help text is what the user reads, made by another library than the page."""
    printed = help_of(name)
    spelled = {x for row in re.findall(r"^\| (`-.*?) \|", SECTIONS[name], re.M) for x in re.findall(r"`(-\S+)`", row)}
    in_help = options_of(printed) - {"--help", "-h"}
    assert spelled == in_help
    defaults = re.findall(r"\[default: ([^\]]+)\]", printed)
    for value in defaults:
        shown = f"`--{value}`" if f"`--{value}`" in SECTIONS[name] else f"`{value}`"
        assert any(shown in f"`{x}`" or same_number(value, x) for x in re.findall(r"`([^`]+)`", SECTIONS[name])), value


def help_of(*command: str) -> str:
    """Help text of a command on a wide terminal, without colours."""
    result = CliRunner().invoke(app, [*command, "--help"], env={"COLUMNS": "400", "TERM": "dumb", "NO_COLOR": "1"})
    assert result.exit_code == 0, result.output
    return re.sub(r"\x1b\[[0-9;]*m", "", result.output)


def options_of(printed: str) -> set[str]:
    """Options of a help text: the words with a hyphen at the beginnings of the lines of its list."""
    found: set[str] = set()
    for line in printed.partition("Options")[2].splitlines():
        found |= set(takewhile(lambda word: word.startswith("-"), line.strip("│|* ").split()))
    return found


def same_number(one: str, other: str) -> bool:
    """Whether two texts are the same number."""
    try:
        return float(one) == float(other)
    except ValueError:
        return False
