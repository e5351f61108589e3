"""The first page claims what was measured: its figures are those of the pages of benchmarks and evidence."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEADING = "## What loopdyn does, and what other tools gave\n"
MEASURED = "".join((ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("benchmarks.md", "evidence.md"))


def table(page: str) -> list[list[str]]:
    section = (ROOT / page).read_text(encoding="utf-8").partition(HEADING)[2].partition("\n## ")[0]
    return [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| ")][1:]


ROWS = table("README.md")


def figures(text: str) -> list[str]:
    """Numbers with a decimal point or an exponent."""
    return re.findall(r"(?<![\w.])(?:\d+\.\d+(?:e-?\d+)?|\d+e-?\d+)(?![\w.]*\d)", text)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0][:30])
def test_figures_of_the_first_page_are_measured(row):
    _, ours, others, command = row
    for figure in figures(f"{ours} {others}"):
        mantissa, _, exponent = figure.partition("e-")
        spelled = {figure, f"{mantissa}e-{int(exponent):02d}" if exponent else figure}
        assert any(re.search(rf"(?<![\d.]){re.escape(x)}(?!\d)", MEASURED) for x in spelled), figure
    assert re.search(r"`(python benchmarks/|loopdyn |pytest tests/)", command)


def test_the_home_page_has_the_same_table():
    assert len(ROWS) >= 7
    assert table("docs/index.md") == ROWS


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_the_moving_picture_is_small_and_comes_first(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    assert 0 < text.index("motion.gif") < text.index(HEADING)
    assert (ROOT / "docs" / "motion.gif").stat().st_size < 400_000
