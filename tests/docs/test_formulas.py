"""Formulas of the pages can be drawn: every command in them is known."""

import re
import runpy
from pathlib import Path
from types import SimpleNamespace

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


def test_dots_above_letters_are_accents_which_keep_their_size():
    pytest.importorskip("latex2mathml", reason="pip install 'loopdyn[docs]'")
    pytest.importorskip("mkdocs", reason="pip install 'loopdyn[docs]'")
    hook = runpy.run_path(str(ROOT / "docs" / "formulas.py"))["on_page_content"]
    page = SimpleNamespace(file=SimpleNamespace(src_path="page.md"))
    for letter in (r"\dot q", r"\ddot{\varphi}", r"\bar x", r"\tilde L", r"\hat C"):
        drawn = hook(rf'<span class="arithmatex">\({letter}\)</span>', page)
        assert drawn.count('<mover accent="true">') == 1, letter


def test_every_formula_of_the_pages_is_drawn_completely():
    convert = pytest.importorskip("latex2mathml.converter", reason="pip install 'loopdyn[docs]'").convert
    found = [(page, formula) for page in sorted((ROOT / "docs").rglob("*.md")) for formula in formulas(page)]
    assert len(found) > 500
    drawn = [(page.name, formula, convert(formula.strip())) for page, formula in found]
    # a command that the converter does not know is left with its backslash, an environment with its separators
    assert [one for one in drawn if "\\" in one[2] or "<mi>&</mi>" in one[2]] == []
