"""Every example in README and docs runs."""

import re
from pathlib import Path

import pytest

import loopdyn as ld

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.M | re.S)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_the_python_examples_of_a_page_run(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    for block in blocks(page, "python"):
        exec(compile(block, str(page), "exec"), names)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_the_model_files_of_a_page_load_and_compile(page, tmp_path):
    for block in blocks(page, "yaml"):
        file = tmp_path / "model.yaml"
        file.write_text(block)
        ld.load(file).compile()


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_the_links_of_a_page_lead_to_files(page):
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
        assert (page.parent / target).exists(), target


def test_what_is_cited_is_in_the_list_of_references_and_nothing_else():
    files = [f for folder in ("src", "docs", "tests") for f in (ROOT / folder).rglob("*") if f.suffix in (".py", ".md")]
    cited = {key for f in files for key in re.findall(r"\[([A-Z][A-Za-z]+[12]\d{3})\b", f.read_text())}
    listed = set(re.findall(r"^@\w+\{(\w+),", (ROOT / "docs" / "references.bib").read_text(), re.M))
    assert cited == listed
