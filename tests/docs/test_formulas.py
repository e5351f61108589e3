"""Formulas of the pages can be drawn: every command in them is known."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.M | re.S)
BLOCK = re.compile(r"\$\$(.*?)\$\$", re.S)
IN_LINE = re.compile(r"\$([^$\n]+)\$")


def formulas(page: Path) -> list[str]:
    text = CODE.sub("", page.read_text(encoding="utf-8"))
    rest = BLOCK.sub("", text)
    assert not [line for line in rest.splitlines() if line.count("$") % 2], (
        f"{page}: a formula does not end in its line"
    )
    return BLOCK.findall(text) + IN_LINE.findall(rest)


def test_every_formula_of_the_pages_is_drawn_completely():
    convert = pytest.importorskip("latex2mathml.converter", reason="pip install 'loopdyn[docs]'").convert
    found = [(page, formula) for page in sorted((ROOT / "docs").rglob("*.md")) for formula in formulas(page)]
    assert len(found) > 500
    drawn = [(page.name, formula, convert(formula.strip())) for page, formula in found]
    # a command that the converter does not know is left with its backslash, an environment with its separators
    assert [one for one in drawn if "\\" in one[2] or "<mi>&</mi>" in one[2]] == []
