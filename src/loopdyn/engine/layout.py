"""Packed arrays, described once: segments that lie one behind another in the arrays of the kernels.

A kernel receives three arrays: integers and floats, which are frozen, and the work array. A class of views lists their
segments in the order in which they lie there::

    class Model(NamedTuple):
        tree: Annotated[Any, "ints", "bodies, N_TREE"]
        n_bases: Annotated[int, "bases"]

`tree` is a table in the array of integers with as many rows as there are bodies, and N_TREE columns; `n_bases` is a
length alone. Small letters are lengths that stand in a header, capitals are constants of the module. From these classes
`tools/openers.py` writes what opens the arrays in kernels, and the lengths of the arrays, to the end of the module; a
test writes it again and compares.

The integers begin with the header of the system. What a solver needs besides lies behind what the system needs, as a
*block* whose address is in that header. A block begins with a header of its own, and this with the addresses of its
floats and its work.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple, get_type_hints

import numpy as np
from numpy.typing import NDArray

from loopdyn.engine.uncompiled import python_function

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Sizes = Callable[[Any], tuple[int, int, int]]  # lengths in ints, floats and work, from the headers

FLOATS, WORK, N_ADDRESSES = range(3)  # at the beginning of the header of a block


class Segment(NamedTuple):
    """One segment of a block."""

    name: str
    array: str
    shape: tuple[str, ...]  # expressions in lengths and constants


@cache
def segments(views: type) -> tuple[Segment, ...]:
    """Segments that a class of views lists, in their order."""
    found: list[Segment] = []
    for name, hint in get_type_hints(views, include_extras=True).items():
        match getattr(hint, "__metadata__", None):
            case (array, shape):
                found.append(Segment(name, array, tuple(shape.split(", "))))
    return tuple(found)


class Opener(NamedTuple):
    """A function that kernels open arrays with; it returns views of the class, or one or some of them."""

    name: str
    views: type
    part: type | str | None = None  # a class with some of the names, or one name


@dataclass(frozen=True)
class Block:
    """Segments with one header, those of the system or of a solver."""

    sizes: str  # name of the function that tells the lengths
    header: str  # how the names of what stands in the header begin; ...SIZE is its length
    openers: tuple[Opener, ...]
    address: str | None = None  # in the header of the system, which itself has none


def with_block(
    ints: Ints, floats: Floats, work: int, address: int, header: Mapping[int, int], sizes: Sizes
) -> tuple[Ints, Floats, int]:
    """Arrays with a block behind them, empty except for its header; of the work array, the length.

    Parameters
    ----------
    ints, floats : ndarray
    work : int
        Length of the work array so far.
    address : int
        Where the header of the system has the address of the block.
    header : dict
        What stands in the header of the block, by place.
    sizes : callable
        The function written for the block.
    """
    at = len(ints)
    ints = np.concatenate([ints, np.zeros(N_ADDRESSES + len(header), np.int64)])
    ints[address], ints[at + FLOATS], ints[at + WORK] = at, len(floats), work
    ints[[at + place for place in header]] = list(header.values())
    n_ints, n_floats, n_work = sizes(ints)
    ints = np.concatenate([ints, np.zeros(at + n_ints - len(ints), np.int64)])
    return ints, np.concatenate([floats, np.zeros(n_floats)]), work + n_work


def opened(opener: Any, *arrays: NDArray[Any]) -> Any:
    """Views of arrays from Python: openers are compiled into kernels only."""
    return python_function(opener)(*arrays)


def fill(views: Any, **tables: Any) -> None:
    """Write all segments of the frozen arrays that have been opened, by name.

    Raises
    ------
    AssertionError
        If one is left out, or has another size than the header says.
    """
    kind: type = type(views)
    names = {s.name for s in segments(kind) if s.array != "work"}
    if names != tables.keys():
        raise AssertionError(f"segments left out or unknown: {sorted(names ^ tables.keys())}")
    for name in names:
        table, view = np.asarray(tables[name]), getattr(views, name)
        if table.size != view.size:
            raise AssertionError(f"segment '{name}' has {table.size} numbers, its header says {view.size}")
        view[...] = table.reshape(view.shape)
