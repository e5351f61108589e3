"""The page of evidence names tests and files that exist."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "evidence.md"
HEADS = ["issue item", "what must be shown", "test or command", "figure seen", "commit, date"]
FILE = r"(?:tests|examples|benchmarks|docs|src)/[\w./-]+\.\w+"


def rows() -> list[list[str]]:
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def functions_of(file: Path) -> set[str]:
    """Names of the functions in a file of tests, those of classes included, without importing it."""
    return {n.name for n in ast.walk(ast.parse(file.read_text(encoding="utf-8"))) if isinstance(n, ast.FunctionDef)}


def named() -> list[str]:
    """Every file, or test in a file, that the table names."""
    return sorted({found for row in rows()[2:] for found in re.findall(rf"{FILE}(?:::\w+)*", row[2])})


def test_the_table_has_its_five_columns_in_every_row():
    head, rule, *others = rows()
    assert head == HEADS
    assert set("".join(rule)) <= set("-: ")
    assert others
    assert [row for row in others if len(row) != len(HEADS) or not all(row[:4])] == []


def test_every_row_names_a_test_or_a_command_of_loopdyn():
    for row in rows()[2:]:
        assert re.search(rf"{FILE}|`(loopdyn|make|python) ", row[2]), row[2]


@pytest.mark.parametrize("name", named())
def test_what_is_named_exists(name):
    file, *path = name.split("::")
    assert (ROOT / file).is_file(), f"there is no file {file}"
    if path:
        assert path[-1] in functions_of(ROOT / file), f"there is no test {path[-1]} in {file}"
