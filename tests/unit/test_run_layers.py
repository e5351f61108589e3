"""The rooms of a run: who may read the memory of an integrator, and which names are taken."""

import ast
import importlib
from pathlib import Path

import pytest

import loopdyn as ld
from loopdyn.formulations.registry import prepare
from loopdyn.integrators import memory
from loopdyn.integrators.registry import CLASSES
from loopdyn.integrators.runge_kutta import DOP853
from loopdyn.integrators.stepper import Stepper
from loopdyn.run.recorder import Recorder

SOURCE = Path(ld.__file__).parent
OWNERS = SOURCE / "integrators"
# What of `integrators.memory` is no slot: the arrays for outputs, and a kernel over all joints.
SHARED = {"Output", "rates"}
SLOTS = {name for name in vars(memory) if name.isupper()} | {"Memory"}
ROOMS = sorted([*OWNERS.glob("*.py"), *(SOURCE / "run").glob("*.py")])


def read_outside(file: Path) -> list[str]:
    """Places in a file where the memory of an integrator is read: its module, its slots, or the array of a stepper."""
    found = []
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module == "loopdyn.integrators.memory":
            found += [f"{file.name}:{node.lineno} {a.name}" for a in node.names if a.name not in SHARED]
        elif isinstance(node, ast.ImportFrom) and node.module == "loopdyn.integrators":
            found += [f"{file.name}:{node.lineno} {a.name}" for a in node.names if a.name == "memory"]
        elif isinstance(node, ast.Attribute) and node.attr == "memory" and "stepper" in ast.unparse(node.value):
            found.append(f"{file.name}:{node.lineno} {ast.unparse(node)}")
        elif isinstance(node, ast.Subscript) and ast.unparse(node.value).split(".")[-1] in ("clock", "count"):
            slots = {ast.unparse(x).split(".")[-1] for x in ast.walk(node.slice) if isinstance(x, ast.expr)} & SLOTS
            found += [f"{file.name}:{node.lineno} {slot}" for slot in slots]
    return found


def test_nobody_outside_the_integrators_reads_a_slot_of_their_memory():
    assert [x for file in SOURCE.rglob("*.py") if OWNERS not in file.parents for x in read_outside(file)] == []


def test_reading_a_slot_is_noticed(tmp_path):
    file = tmp_path / "reader.py"
    file.write_text("from loopdyn.integrators import memory\nh = self.stepper.memory.clock[memory.SIZE]\n")
    assert len(read_outside(file)) == 3


def test_no_class_inside_has_the_name_of_a_public_one():
    """Its methods would be taken for public ones, and their arguments checked at every step."""
    public = set(ld.__all__) - {"Auto"}  # an integrator, which users may make, and a formulation
    for file in ROOMS:
        module = importlib.import_module(f"loopdyn.{file.parent.name}.{file.stem}")
        for name in public & {n.name for n in ast.parse(file.read_text()).body if isinstance(n, ast.ClassDef)}:
            assert getattr(ld, name) is getattr(module, name), f"{file.name}: {name}"


def test_integrators_are_known_by_their_own_names():
    assert all(kind.name == name for name, kind in CLASSES.items())


@pytest.mark.jit_off
def test_a_step_that_is_undone_leaves_the_state_where_it_began():
    system = ld.library.pendulum().compile()
    first = system.state(q={"A": 0.3})
    stepper = Stepper(system, prepare(system, "graph"), DOP853(), "projection", 0, 1e-8, 0.0)
    recorder = Recorder(system, first.q[:0], stepper.sources, "projection")
    stepper.allow(0.0, 1.0)
    stepper.start(first, 1.0)
    assert stepper.advance(recorder.out, 1).stepped
    assert stepper.t > 0.0
    assert stepper.undo()
    assert (stepper.t, stepper.state().q[0], stepper.counts.steps) == (0.0, 0.3, 0)
    assert not stepper.undo()  # there is none left
