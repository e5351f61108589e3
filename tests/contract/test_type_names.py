"""A force or constraint type is known to its own file and to `dispatch.py`; who else names one has a reason."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

import loopdyn
from loopdyn.constraints import dispatch as constraints
from loopdyn.constraints.driver import Driver
from loopdyn.forces import dispatch as forces

SOURCES = Path(loopdyn.__file__).parent

# Files that may name types, and why. Not counted: the library, which builds mechanisms of them, and interchange, which
# translates the elements of other formats into them and back, and contacts, whose sides are constraints.
REASONS = {
    "model/mechanism.py": "add_motor and add_driver are verbs of the builder",
    "analysis/inverse_dynamics.py": "asks what the motors must do",
    "analysis/drive_inputs.py": "checks the form of a law as a driver does",
    "output/first_page.py": "draws the loads of motors; a report turns the coordinate of the first one",
    "formulations/closure/planner.py": "solves relations with constant factors for one coordinate",
    "constraints/driver.py": "a driver is a coupler of one coordinate",
    "system/builder.py": "drivers are a section of their own beside the constraints",
    "app/warm.py": "an example that is compiled in advance",
}
# How many files each type is named in beyond its own and `dispatch.py`. Others in none; these numbers must not grow.
MOST = {"joint_spring": 1, "motor": 3, "coupler": 2, "driver": 3}
TYPES = {t.model_fields["type"].default: t for t in (*forces.TYPES, *constraints.TYPES)} | {"driver": Driver}
NOT_COUNTED = ("library", "interchange", "contacts")
PLACES = [p for p in sorted(SOURCES.rglob("*.py")) if p.relative_to(SOURCES).parts[0] not in NOT_COUNTED]


@cache
def words_of(path: Path) -> tuple[set[str], set[str]]:
    """Names in the code of a file, and strings that are given or compared as a `type`."""
    names, types = set(), set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Name):
            names.add(node.id)
        elif isinstance(node, ast.Attribute):
            names.add(node.attr)
        elif isinstance(node, ast.alias):
            names.add(node.name)
        elif (isinstance(node, ast.keyword) and node.arg == "type") or (
            isinstance(node, ast.Compare) and isinstance(node.left, ast.Attribute) and node.left.attr == "type"
        ):
            types |= {x.value for x in ast.walk(node) if isinstance(x, ast.Constant) and isinstance(x.value, str)}
    return names, types


def named_in(path: Path) -> set[str]:
    """Types that a file names: by class, by code, or as a `type`."""
    names, types = words_of(path)
    return {name for name, t in TYPES.items() if t.__name__ in names or name.upper() in names or name in types}


def own(name: str) -> set[str]:
    package = "forces" if TYPES[name] in forces.TYPES else "constraints"
    return {f"{package}/{name}.py", f"{package}/dispatch.py"}


@pytest.fixture(scope="module")
def places() -> dict[str, set[str]]:
    """Files in which each type is named, beyond its own."""
    found: dict[str, set[str]] = {name: set() for name in TYPES}
    for path in PLACES:
        for name in named_in(path):
            found[name].add(path.relative_to(SOURCES).as_posix())
    return {name: files - own(name) for name, files in found.items()}


def test_whoever_names_a_type_has_a_reason(places):
    known = {file for files in places.values() for file in files}
    assert known == set(REASONS)


@pytest.mark.parametrize("name", TYPES)
def test_a_type_is_named_in_no_more_files_than_before(places, name):
    assert len(places[name]) <= MOST.get(name, 0), sorted(places[name])


def test_kernels_choose_by_code_in_one_file_alone():
    """Codes of types are read by `dispatch.py`, in the file of the type, and where a reason is given."""
    for path in PLACES:
        where, names = path.relative_to(SOURCES).as_posix(), words_of(path)[0]
        others = [name for name in TYPES if name.upper() in names and where not in own(name)]
        assert not others or where in ("constraints/driver.py", "formulations/closure/planner.py"), where


def test_user_forces_are_called_in_one_place():
    called = [path for path in PLACES if "user_forces.values()" in path.read_text()]
    assert [path.relative_to(SOURCES).as_posix() for path in called] == ["tree/functions.py"]


def test_columns_of_forces_are_read_by_name():
    """`model.force[n, 4]` says nothing; nor does `force_data[n, 6]`."""
    bare = re.compile(r"\bforce(_data)?\[[^]\n]*\b\d+\]|get[369]\(\w*\.?force_data, \w+, \d")
    for path in PLACES:
        if "model.force" in path.read_text():
            assert not bare.findall(path.read_text()), path
