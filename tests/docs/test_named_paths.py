"""Files, folders and modules that the pages name exist.

A path starts at the root of the project (`tests/unit/test_jit.py`) or of the package (`engine/cache.py`); `<type>`
stands for any name. A file that no longer exists is named only in a sentence that says so, without its folder.
"""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "loopdyn"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]

FROM_ROOT = re.compile(r"(?<![\w./-])(?:src|tests|benchmarks|tools|docs|prototypes)/[\w./*<>-]*[\w*>/]")
QUOTED = re.compile(r"`([\w./<>]+/[\w.<>]*)`")
MODULE = re.compile(r"(?<![\w./])loopdyn\.((?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*)")
PACKAGES = {"loopdyn", *(path.name for path in PACKAGE.iterdir() if path.is_dir())}


def is_path(name: str) -> bool:
    """Whether a file or folder has this path, from the root or from the package."""
    pattern = re.sub(r"<\w+>", "*", name).rstrip("/")
    return any(next(folder.glob(pattern), None) is not None for folder in (ROOT, PACKAGE.parent, PACKAGE))


@cache
def names_in(file: Path) -> dict[str, str]:
    """Names that a module assigns, defines (in its classes, too) or imports; of imported ones, the module."""
    names: dict[str, str] = {}
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.setdefault(node.name, "")
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.setdefault(node.id, "")
        elif isinstance(node, ast.ImportFrom):
            names.update({alias.asname or alias.name: node.module or "" for alias in node.names})
    return names


def is_module(dotted: str) -> bool:
    """Whether `a.b.C` is a module of the package, or a name in one."""
    folder, (first, *others) = PACKAGE, dotted.split(".")
    while others and (folder / first).is_dir():
        folder, (first, *others) = folder / first, others
    if (folder / first).is_dir():
        return True
    if (folder / f"{first}.py").is_file():
        return names_in(folder / f"{first}.py").keys() >= set(others)
    stub = folder / "__init__.pyi"  # of the public names
    names = names_in(stub if stub.is_file() else folder / "__init__.py")
    listed = folder / "dispatch.py"  # whose names the package imports by a star
    names = names | names_in(listed) if listed.is_file() else names
    return first in names and (not others or is_module(".".join([names[first], first, *others])))


def missing(text: str) -> list[str]:
    """Paths and modules in a text that do not exist."""
    quoted = {name for name in QUOTED.findall(text) if name.endswith(".py") or name.split("/")[0] in PACKAGES}
    paths = [path for path in sorted({*FROM_ROOT.findall(text), *quoted}) if not is_path(path)]
    modules = {name for name in MODULE.findall(text) if not name.endswith(".json")}  # a file that a user writes
    return paths + [f"loopdyn.{name}" for name in sorted(modules) if not is_module(name)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_folders_and_modules_of_a_page_exist(page):
    assert missing(page.read_text(encoding="utf-8")) == []


def test_paths_of_the_page_on_the_architecture_are_recognised():
    assert len(set(QUOTED.findall((ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")))) > 20


@pytest.mark.parametrize(
    "name",
    [
        "tests/unit/test_nothing.py",
        "`engine/nothing.py`",
        "`partition/kernels.py`",  # in formulations/
        "`formulations/nothing/`",
        "src/loopdyn/nothing",
        "loopdyn.engine.nothing",
        "loopdyn.engine.jit.nothing",
        "loopdyn.profiles.Nothing",
    ],
)
def test_a_name_of_nothing_is_noticed(name):
    assert missing(f"It is in {name}.") == [name.strip("`")]


@pytest.mark.parametrize(
    "name",
    [
        "tests/unit/test_jit.py",
        "`engine/jit.py`",
        "`formulations/partition/`",
        "`src/loopdyn/joints/<type>.py`",
        "loopdyn.engine.jit.window",
        "loopdyn.profiles.Spline",
        "loopdyn.simulate",
    ],
)
def test_a_name_of_something_is_accepted(name):
    assert missing(f"It is in {name}.") == []
