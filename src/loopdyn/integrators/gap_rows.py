"""Gaps of contacts along the steps of a compiled run.

Gaps and their rates are computed once per step, at its end. The cubic through both ends tells how much a gap changes in
between: one that stays farther from zero than that is not touched. A gap with corners may change faster, but not by
more than the bodies move. Where both do not settle it, gaps are sampled like all event functions.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from loopdyn.engine.jit import inline, kernel, window
from loopdyn.engine.pointers import pointer
from loopdyn.engine.records import open_work
from loopdyn.system.system import System
from loopdyn.tree import jacobian

INSIDE = np.array([0.25, 0.5, 0.75])  # shares of a step at which the cubic is evaluated
# A point of a body moves by at most the sum of what the coordinates do, in natural units, times its distance from the
# joints, which is below twice the size of the mechanism.
REACH = 2.0


# Numbers of a gap: factor from the row to the gap in natural units; what is added to it; zero where the gap is smooth,
# else see above, and infinite if that bounds nothing.
FACTOR, MARGIN, CORNERS = range(3)


class GapRows(NamedTuple):
    """Gaps as rows of a system of the same tree that has rows for all of them."""

    ints: Any
    floats: Any
    work: Any
    rate: Any  # (nc,) of all rows
    row: Any  # (n,) of each gap
    number: Any  # (n, 3) FACTOR, MARGIN, CORNERS
    ends: Any  # (4, n) gaps at the start of the last step, rates there, gaps at its end, rates there
    at: Any  # (1,) time of that end; NaN if it is to be computed again


def gap_rows(system: System, rows: NDArray[np.int64], factor: NDArray[np.float64], corners: Any) -> GapRows:
    """Gaps that are rows of a system times a factor; `corners` flags those that are not smooth."""
    moving = bool((system.model.base_programs >= 0).any())
    reach = np.where(corners, np.inf if moving else REACH, 0.0)
    number = np.column_stack([factor, np.zeros(len(rows)), reach])
    own = np.array(system.ints), np.array(system.floats), system.work(), np.zeros(system.nc)
    return GapRows(*own, rows, number, np.zeros((4, len(rows))), np.full(1, np.nan))


def some(gaps: GapRows, which: NDArray[np.int64], margin: NDArray[np.float64]) -> GapRows:
    """Some of the gaps, with margins."""
    number = gaps.number[which]
    number[:, MARGIN] = margin
    ends, at = np.zeros((4, len(which))), np.full(1, np.nan)
    return gaps._replace(row=gaps.row[which], number=number, ends=ends, at=at)


def no_gaps() -> GapRows:
    """Arrays of no length where there are no contacts."""
    i, x = np.zeros(0, np.int64), np.zeros(0)
    return GapRows(i, x, x, x, i, np.zeros((0, 3)), np.zeros((4, 0)), np.full(1, np.nan))


@kernel
def no_rows(ints, floats, work, rate):
    """Stands for the residuals where there are no gaps."""


def rows_of(gaps: GapRows) -> Any:
    """Address of the function that computes the rows."""
    return pointer(jacobian.residuals if gaps.row.size else no_rows, gaps.ints, gaps.floats, gaps.work, gaps.rate)


@inline(always=True)
def unowned_gaps(g):
    """Arrays as bare addresses, without reference counting, except those handed to a function by its address."""
    return GapRows(
        g.ints,
        g.floats,
        g.work,
        g.rate,
        window(g.row, 0, g.row.size),
        window(g.number.ravel(), 0, g.number.shape[0], g.number.shape[1]),
        window(g.ends.ravel(), 0, g.ends.shape[0], g.ends.shape[1]),
        window(g.at, 0, 1),
    )


@kernel
def measure(gaps, rows, t, q, v, gap, rate):
    """Gaps and their rates at a state."""
    w = open_work(gaps.ints, gaps.work)
    w.t[0] = t
    w.q[:] = q
    w.v[:] = v
    rows(gaps.ints, gaps.floats, gaps.work, gaps.rate)
    for n in range(gaps.row.size):
        k, factor = gaps.row[n], gaps.number[n, FACTOR]
        gap[n] = factor * w.phi[k] + gaps.number[n, MARGIN]
        rate[n] = factor * gaps.rate[k]


@kernel
def stays_open(gaps, n, h, moved):
    """Whether a gap is farther from zero than it changes in a step of the time h in which the bodies move."""
    a, u, b, w = gaps.ends[0, n], gaps.ends[1, n], gaps.ends[2, n], gaps.ends[3, n]
    low, high = min(a, b), max(a, b)
    for i in range(INSIDE.size):
        x = INSIDE[i]
        y = 1.0 - x
        between = y * y * (1.0 + 2.0 * x) * a + x * x * (1.0 + 2.0 * y) * b + h * x * y * (y * u - x * w)
        low, high = min(low, between), max(high, between)
    corners = gaps.number[n, CORNERS]
    return low > high - low and (corners == 0.0 or low > corners * moved)  # not so if anything is NaN
