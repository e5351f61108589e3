"""The packed arrays: what is written from the lists of segments, and what is put into them."""

import importlib.util
import re
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import pytest

import loopdyn as ld
from loopdyn.engine import records as rec
from loopdyn.engine.layout import fill, opened
from loopdyn.formulations.auto import layout as auto
from loopdyn.formulations.closure import layout as closure
from loopdyn.formulations.partition import layout as partition
from loopdyn.formulations.rcr import layout as rcr
from loopdyn.loops.elimination import layout as elimination

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.jit_off


def openers():
    spec = importlib.util.spec_from_file_location("openers", ROOT / "tools" / "openers.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", openers().MODULES)
def test_openers_are_those_of_the_lists_of_segments(name):
    path, text = openers().written(name)
    assert path.read_text(encoding="utf-8") == text, "run: python tools/openers.py"


def test_all_offsets_are_written_from_lists():
    """No other module opens the arrays of kernels at places that it computes."""
    listed = {openers().written(name)[0] for name in openers().MODULES}
    opens = re.compile(r"\bwindow\((ints|floats|work), ")
    assert {path for path in (ROOT / "src").rglob("*.py") if opens.search(path.read_text(encoding="utf-8"))} == listed


def places(array: np.ndarray, *views: Any) -> list[tuple[int, int]]:
    """First number and length of the views of an array, in their order there."""
    begin = array.__array_interface__["data"][0]
    own = [x for some in views for x in some if isinstance(x, np.ndarray) and np.shares_memory(x, array)]
    return sorted(((x.__array_interface__["data"][0] - begin) // array.itemsize, x.size) for x in own)


SOLVERS = {  # openers of what a solver has in the arrays, and the lengths of the headers
    "graph": ((elimination.open_plan, elimination.open_elimination), rec.H_SIZE + elimination.P_SIZE),
    "auto": (
        (elimination.open_plan, elimination.open_elimination, auto.open_monitor),
        rec.H_SIZE + elimination.P_SIZE + auto.M_SIZE,
    ),
    "partition": ((partition.open_partition,), rec.H_SIZE + partition.P_SIZE),
    "closure": ((partition.open_partition, closure.open_closing), rec.H_SIZE + partition.P_SIZE + closure.C_SIZE),
    "rcr": ((rcr.open_cells, rcr.open_numbers), rec.H_SIZE + rcr.N_SIZE),
}


@pytest.mark.parametrize("solver", SOLVERS)
def test_segments_of_a_solver_fill_its_arrays_and_do_not_overlap(solver):
    system = ld.library.double_wishbone().compile()
    compiled = ld.prepare(system, solver, ld.assemble(system)).kernels
    arrays = {"ints": compiled.ints, "floats": compiled.floats, "work": compiled.work}
    functions, headers = SOLVERS[solver]
    views = []
    for function in (rec.open_model, rec.open_work, *functions):
        code = getattr(function, "py_func", function).__code__
        views.append(opened(function, *(arrays[name] for name in code.co_varnames[: code.co_argcount])))
    for name, array in arrays.items():
        found, end = places(array, *views), 0
        for first, length in found:
            assert first >= end
            end = first + length
        assert end <= array.size
        assert sum(length for _, length in found) == array.size - (headers if name == "ints" else 0)


class Two(NamedTuple):
    """Two tables."""

    counts: Annotated[Any, "ints", "3"]
    table: Annotated[Any, "floats", "2, 2"]


def test_a_segment_that_is_left_out_or_of_another_size_is_refused():
    views = Two(np.zeros(3, np.int64), np.zeros((2, 2)))
    with pytest.raises(AssertionError, match=r"\['table'\]"):
        fill(views, counts=[1, 2, 3])
    with pytest.raises(AssertionError, match="'table' has 3 numbers, its header says 4"):
        fill(views, counts=[1, 2, 3], table=[1.0, 2.0, 3.0])
    fill(views, counts=[1, 2, 3], table=[1.0, 2.0, 3.0, 4.0])
    assert views.table.tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_a_head_is_the_beginning_of_the_work():
    system = ld.library.four_bar().compile()
    work = system.work()
    whole, head = system.open_work(work), opened(rec.open_head, system.ints, work)
    assert all(np.shares_memory(getattr(head, name), getattr(whole, name)) for name in head._fields)
