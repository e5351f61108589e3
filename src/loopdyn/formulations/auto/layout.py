"""Data of the singularity monitor of `auto` in the arrays of the kernels: a block behind the plan of `graph`."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

from loopdyn.engine.jit import inline, window
from loopdyn.engine.layout import FLOATS, N_ADDRESSES, WORK, Block, Opener
from loopdyn.engine.records import H_MONITOR
from loopdyn.formulations.momentum.layout import N_NUMBERS

# Header: pivots of `graph`; number of rows chosen again where the indicator is low, zero if they never are; for that,
# zero if they never are: all rows, speeds, freedoms, and the length of the work array of the system.
M_PIVOTS, M_CHOSEN, M_ROWS, M_SPEEDS, M_FREEDOMS, M_COPY, M_SIZE = range(N_ADDRESSES, N_ADDRESSES + 7)

# indicator: at the last step, now, the smallest in this step; the longest that the smallest row has been, of those that
# are chosen again.
LAST, NOW, LEAST, LONGEST, N_INDICATOR = range(5)


class Monitor(NamedTuple):
    """Named views of the block; from `number` on those of a :class:`momentum.layout.Place`, to choose rows with."""

    chosen: Annotated[int, "chosen"]
    unit: Annotated[Any, "floats", "speeds"]  # natural unit of each speed
    row_unit: Annotated[Any, "floats", "rows"]
    indicator: Annotated[Any, "work", "N_INDICATOR"]
    pivot: Annotated[Any, "work", "pivots"]  # the largest so far of each row
    number: Annotated[Any, "work", "N_NUMBERS"]
    work: Annotated[Any, "work", "copy"]  # copy of what the system works with
    J: Annotated[Any, "work", "rows, speeds"]
    phi: Annotated[Any, "work", "rows"]
    rate: Annotated[Any, "work", "rows"]
    phi_t: Annotated[Any, "work", "rows"]
    T: Annotated[Any, "work", "rows, speeds"]
    mirror: Annotated[Any, "work", "rows, speeds"]
    kept: Annotated[Any, "work", "rows"]
    N: Annotated[Any, "work", "freedoms, speeds"]


BLOCK = Block(
    sizes="monitor_sizes",
    header="M_",
    openers=(Opener("open_monitor", Monitor),),
    address="H_MONITOR",
)

# Written by tools/openers.py from the classes above; change these and run it.


def monitor_sizes(ints: Any) -> tuple[int, int, int]:
    """Lengths that the block adds to the arrays, from the headers in `ints`."""
    o = ints[H_MONITOR]
    speeds = ints[o + M_SPEEDS]
    rows = ints[o + M_ROWS]
    pivots = ints[o + M_PIVOTS]
    copy = ints[o + M_COPY]
    freedoms = ints[o + M_FREEDOMS]
    n_ints = M_SIZE
    n_floats = speeds + rows
    n_work = N_INDICATOR + pivots + N_NUMBERS + copy + rows * speeds + rows + rows + rows + rows * speeds
    n_work += rows * speeds + rows + freedoms * speeds
    return int(n_ints), int(n_floats), int(n_work)


@inline(always=True)
def open_monitor(ints, floats, work):
    """Named views of the block; from `number` on those of a :class:`momentum.layout.Place`, to choose rows with."""
    o = ints[H_MONITOR]
    speeds = ints[o + M_SPEEDS]
    rows = ints[o + M_ROWS]
    pivots = ints[o + M_PIVOTS]
    copy = ints[o + M_COPY]
    freedoms = ints[o + M_FREEDOMS]
    chosen = ints[o + M_CHOSEN]
    at_unit = ints[o + FLOATS]
    at_row_unit = at_unit + speeds
    at_indicator = ints[o + WORK]
    at_pivot = at_indicator + N_INDICATOR
    at_number = at_pivot + pivots
    at_work = at_number + N_NUMBERS
    at_J = at_work + copy
    at_phi = at_J + rows * speeds
    at_rate = at_phi + rows
    at_phi_t = at_rate + rows
    at_T = at_phi_t + rows
    at_mirror = at_T + rows * speeds
    at_kept = at_mirror + rows * speeds
    at_N = at_kept + rows
    return Monitor(
        chosen,
        window(floats, at_unit, speeds),
        window(floats, at_row_unit, rows),
        window(work, at_indicator, N_INDICATOR),
        window(work, at_pivot, pivots),
        window(work, at_number, N_NUMBERS),
        window(work, at_work, copy),
        window(work, at_J, rows, speeds),
        window(work, at_phi, rows),
        window(work, at_rate, rows),
        window(work, at_phi_t, rows),
        window(work, at_T, rows, speeds),
        window(work, at_mirror, rows, speeds),
        window(work, at_kept, rows),
        window(work, at_N, freedoms, speeds),
    )
