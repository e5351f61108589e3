"""The contract of a formulation is in its types: status codes, solvers, kernels, and who may ask what a solver is."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest

import loopdyn as ld
from loopdyn.analysis.comparing import every_formulation
from loopdyn.engine import status
from loopdyn.formulations import base
from loopdyn.formulations.base import Formulation, PassingSolver, Solver, SteppingSolver

SOURCE = Path(ld.__file__).parent
CODES = {name: value for name, value in vars(status).items() if name.isupper()}
CONTRACT = {name for name, value in vars(base).items() if isinstance(value, type) and value.__module__ == base.__name__}
# Attributes of solvers and formulations that the contract names; asked for by name they would be optional in secret.
PARTS = {
    name
    for kind in (getattr(base, name) for name in CONTRACT)
    for name in {*vars(kind), *getattr(kind, "__annotations__", {})}
    if not name.startswith("_")
}


def modules() -> dict[Path, ast.Module]:
    return {path.relative_to(SOURCE): ast.parse(path.read_text()) for path in sorted(SOURCE.rglob("*.py"))}


MODULES = modules()


def room_of(path: Path) -> Path:
    """The folder of a formulation, or its module if it has none."""
    return path.parent if len(path.parts) > 2 else path


def classes_by_room() -> dict[str, Path]:
    """Classes of formulations and solvers, with the room where they are defined; the contract itself has none."""
    names: dict[str, Path] = {}
    known = set(CONTRACT)
    own = {path: tree for path, tree in MODULES.items() if path.parts[0] == "formulations"}
    for _ in range(4):  # subclasses of subclasses
        for path, tree in own.items():
            for node in (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)):
                bases = {b.id for b in node.bases if isinstance(b, ast.Name)}
                if bases & known and node.name not in CONTRACT:
                    known.add(node.name)
                    names[node.name] = room_of(path)
    return names


def from_formulations(tree: ast.Module) -> set[str]:
    """Names that a module imports from formulations."""
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return {a.name for node in imports if "formulations" in (node.module or "").split(".") for a in node.names}


def calls(tree: ast.Module, *functions: str) -> list[ast.Call]:
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
    return [node for node in found if node.func.id in functions]


def test_status_codes_are_different_negative_numbers():
    """Zero or more is the row of a body; one code taken for another would end a run with the wrong words."""
    assert len(set(CODES.values())) == len(CODES)
    assert max(CODES.values()) == status.FINE == -1


def test_every_status_code_is_explained_in_the_list():
    missing = [name for name in CODES if f"| {name} |" not in status.__doc__]
    assert not missing


def test_status_codes_are_defined_in_one_module_only():
    names = set(CODES) - {"TURNED"}  # closure/closed_forms.py: also how far a rod is turned
    found = []
    for path, tree in MODULES.items():
        if path == Path("engine/status.py"):
            continue
        for node in tree.body:
            targets = node.targets if isinstance(node, ast.Assign) else []
            named = {n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)}
            found += [f"{path}: {name}" for name in sorted(named & names)]
    assert not found


@pytest.mark.parametrize("folder", ["tree", "loops", "formulations", "integrators"])
def test_no_kernel_returns_a_number_for_a_status(folder):
    """A function that returns a status by name anywhere returns none as a number."""
    found = []
    for path, tree in MODULES.items():
        if path.parts[0] != folder:
            continue
        for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
            values = [node.value for node in ast.walk(function) if isinstance(node, ast.Return) and node.value]
            parts = [p for v in values for p in ([v.body, v.orelse] if isinstance(v, ast.IfExp) else [v])]
            by_name = any(isinstance(p, ast.Name) and p.id in CODES for p in parts)
            numbers = [ast.unparse(p) for p in parts if ast.unparse(p).lstrip("-").isdigit()]
            if by_name and numbers:
                found.append(f"{path}: {function.name} returns {', '.join(numbers)}")
    assert not found


def test_nobody_outside_its_folder_asks_whether_a_solver_is_of_a_class():
    """isinstance, issubclass and cast to classes of the contract are what types are for; to others they are not."""
    rooms, found = classes_by_room(), []
    assert {"GraphSolver", "AutoSolver", "MomentumSolver", "PartitionSolver", "RcrSolver"} <= set(rooms)
    for path, tree in MODULES.items():
        for call in calls(tree, "isinstance", "issubclass", "cast"):
            named = {n.id for argument in call.args for n in ast.walk(argument) if isinstance(n, ast.Name)}
            named &= from_formulations(tree)  # an integrator is called Auto, too
            found += [f"{path}: {ast.unparse(call)}" for name in named & set(rooms) if rooms[name] != room_of(path)]
    assert not found


def test_nobody_looks_for_a_part_of_the_contract_by_its_name():
    assert {"kernels", "explained", "active", "criterion", "accepted", "monitor", "one_size"} <= PARTS
    found = []
    for path, tree in MODULES.items():
        for call in calls(tree, "getattr", "hasattr"):
            name = call.args[1]
            if isinstance(name, ast.Constant) and name.value in PARTS - {"name", "step"}:
                found.append(f"{path}: {ast.unparse(call)}")
    assert not found


@pytest.mark.parametrize("name", every_formulation())
def test_every_formulation_prepares_a_solver_of_the_contract(name):
    system = ld.library.double_pendulum().compile()
    method = every_formulation()[name]
    solver = ld.prepare(system, method)
    assert isinstance(solver, Solver)
    assert isinstance(solver, SteppingSolver) == method.steps
    assert isinstance(solver, PassingSolver) == (method.steps and method.passes(system))
    assert isinstance(solver.explained, str)


@pytest.mark.jit_off
def test_a_formulation_that_prepares_a_bare_function_is_refused_in_words():
    @dataclass(frozen=True)
    class Bare(Formulation):
        name: ClassVar[str] = "bare"

        def prepare(self, system, rank):
            return lambda t, q, v: None

    with pytest.raises(ld.LoopdynError, match=r"bare gives no Solver. Make it of a function by FunctionSolver"):
        ld.prepare(ld.library.pendulum().compile(), Bare())


def test_an_unknown_status_is_an_error_of_the_code_and_not_put_into_words():
    solver = ld.prepare(ld.library.four_bar().compile(), "partition")
    with pytest.raises(RuntimeError, match="status -99"):
        solver.kernels.explain(-99)
