"""Every example in README and docs runs."""

import os
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import loopdyn as ld
from loopdyn.app.cli import app
from loopdyn.public_names import MOVED, NAMESPACES

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
TUTORIAL = ROOT / "docs" / "tutorial.md"
# Pages whose examples take long; what they show has tests of its own.
LONG = ("docs/gallery/", "docs/howto/formulation.md", "docs/statics_and_loads.md", "docs/designer.md")
OWN_TESTS = (TUTORIAL, ROOT / "docs" / "designer.md")  # of commands on files that the page itself makes


def cases(left_out: tuple[Path, ...]) -> list:
    """All other pages; long ones are left to `make test-all`."""
    names = {str(page.relative_to(ROOT)): page for page in PAGES if page not in left_out}
    slow = {name: (pytest.mark.slow,) for name in names if name.startswith(LONG)}
    return [pytest.param(page, id=name, marks=slow.get(name, ())) for name, page in names.items()]


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.M | re.S)


def save_files(page: Path, folder: Path) -> None:
    """Write the model files that a page asks its reader to save."""
    for name, text in re.findall(r"Save it as `(\S+)`:\n\n```yaml\n(.*?)^```", page.read_text(), re.M | re.S):
        (folder / name).write_text(text)


@pytest.mark.parametrize("page", cases((TUTORIAL,)))
def test_the_python_examples_of_a_page_run(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    save_files(page, tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    names: dict = {}
    for block in blocks(page, "python"):
        exec(compile(block, str(page), "exec"), names)


@pytest.mark.parametrize("name", ["docs/robot.md", "docs/howto/ride_frequency.md", "docs/howto/motor_sizing.md"])
def test_lines_of_output_that_a_page_shows_are_printed_by_its_examples(name, tmp_path, monkeypatch, capsys):
    """Words to the letter, numbers to three digits; a line that ends in dots is the beginning of one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    names: dict = {}
    for block in blocks(ROOT / name, "python"):
        exec(compile(block, name, "exec"), names)

    def plain(line: str) -> str:
        return " ".join(re.sub(r"-?\d+\.\d+", lambda x: f"{float(x[0]):.3g}", line).split())

    printed = [plain(line) for line in capsys.readouterr().out.splitlines()]
    for line in (plain(x) for block in blocks(ROOT / name, "text") for x in block.splitlines() if x.strip()):
        assert any(line in p or (line.endswith("...") and line[:-3] in p) for p in printed), line


@pytest.mark.parametrize("page", cases(OWN_TESTS))
def test_the_commands_of_a_page_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    save_files(page, tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    for block in blocks(page, "sh"):
        for line in block.splitlines():
            program, *arguments = shlex.split(line)
            assert program == "loopdyn"
            result = CliRunner().invoke(app, arguments)
            assert result.exit_code == 0, result.output
            written = [name for name in arguments if re.search(r"\.(html|png|csv|xlsx)$", name)]
            assert all((tmp_path / name).stat().st_size > 0 for name in written)


def test_the_tutorial_can_be_followed_word_for_word(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    follow = runpy.run_path(str(ROOT / "docs" / "follow_tutorial.py"))["follow"]
    follow(TUTORIAL, (sys.executable, "-m", "loopdyn"))
    for name in ("four_bar.png", "four_bar.html", "four_bar.yaml", "turn.png", "page.html", "loads.xlsx"):
        assert (tmp_path / name).stat().st_size > 0


@pytest.mark.slow
@pytest.mark.parametrize("script", sorted((ROOT / "docs" / "theory").glob("*_picture*.py")), ids=lambda p: p.stem)
def test_the_pictures_of_the_theory_pages_can_be_made_anew(script, tmp_path):
    """In a folder of their own: those that are committed stay."""
    copy = tmp_path / script.name
    copy.write_text(script.read_text())
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    made = subprocess.run([sys.executable, str(copy)], env=environment, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    pictures = list(tmp_path.glob("*.png"))
    assert pictures
    assert all((script.parent / picture.name).exists() for picture in pictures)


@pytest.mark.slow
@pytest.mark.parametrize("script", ["docs/pictures.py", "docs/howto/pictures.py"])
def test_the_pictures_of_the_tutorial_and_of_how_to_pages_can_be_made_again(script, tmp_path):
    runpy.run_path(str(ROOT / script))["main"](tmp_path)
    pictures = [*tmp_path.glob("*.png"), *tmp_path.glob("*.gif")]
    assert len(pictures) >= 3
    assert all(((ROOT / script).parent / picture.name).exists() for picture in pictures)


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


MODULES = {"library", "profiles", "tree", *NAMESPACES}


def test_everything_that_is_public_is_in_the_reference():
    text = "".join(page.read_text() for page in (ROOT / "docs" / "reference").glob("*.md"))
    found = set(re.findall(r"^::: loopdyn\.([\w.]+)$", text, re.M))
    assert set(ld.__all__) - found <= set(NAMESPACES) | {"tree", "library", "profiles"}
    for namespace in NAMESPACES:
        assert {f"{namespace}.{n}" for n in getattr(ld, namespace).__all__ if n not in ld.__all__} <= found
    known = {f"{n}.{name}" for n in (*NAMESPACES, "profiles") for name in getattr(ld, n).__all__}
    assert found <= {*ld.__all__, *known}


def test_the_list_of_public_names_is_that_of_the_package():
    text = (ROOT / "docs" / "reference" / "index.md").read_text()
    top, rest = text.partition("## At the top")[2].split("## Namespaces")
    assert sorted(re.findall(r"`(\w+)`", top)) == sorted(set(ld.__all__) - MODULES)
    rows, moved = rest.split("## Names that moved")
    listed = {
        n: re.findall(r"`(\w+)`", names) for n, names in re.findall(r"^\| \[`ld\.(\w+)`\]\S+ \| (.*) \|$", rows, re.M)
    }
    assert set(listed) == MODULES
    for namespace in NAMESPACES:
        assert listed[namespace] == sorted(getattr(ld, namespace).__all__)
    assert dict(re.findall(r"^\| `ld\.([\w.]+)` \| `ld\.([\w.]+)` \|$", moved, re.M)) == MOVED


def test_there_are_few_names_at_the_top():
    """About fifty, with room for some verbs to come."""
    assert len(set(ld.__all__) - MODULES) <= 65
