"""The packed arrays: what is written from the lists of segments, and what is put into them."""

import importlib.util
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import pytest

import loopdyn as ld
from loopdyn.engine import records as rec
from loopdyn.engine.layout import fill, opened

ROOT = Path(__file__).parents[2]


def openers():
    spec = importlib.util.spec_from_file_location("openers", ROOT / "tools" / "openers.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", openers().MODULES)
def test_openers_are_those_of_the_lists_of_segments(name):
    path, text = openers().written(name)
    assert path.read_text(encoding="utf-8") == text, "run: python tools/openers.py"


def places(views: Any, array: np.ndarray) -> list[tuple[int, int]]:
    """First number and length of the views of an array, in numbers."""
    begin = array.__array_interface__["data"][0]
    own = [x for x in views if isinstance(x, np.ndarray) and x.dtype == array.dtype and np.shares_memory(x, array)]
    return sorted(((x.__array_interface__["data"][0] - begin) // array.itemsize, x.size) for x in own)


def test_segments_of_a_system_fill_its_arrays_one_behind_another():
    system = ld.library.double_wishbone().compile()
    work = system.work()
    model, views = system.model, system.open_work(work)
    for begin, array, opened_views in ((rec.H_SIZE, system.ints, model), (0, system.floats, model), (0, work, views)):
        for first, length in places(opened_views, array):
            assert first == begin
            begin += length
        assert begin == array.size


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
