"""How close a mechanism is to a singular pose, watched between the steps of a run.

Every solution of `graph` comes with the pivots of J M^-1 J^T: each is the square of the length, in the metric of the
masses, of a constraint row beyond those before it. The indicator is the smallest root of a pivot as a share of the
largest that it has been for the same row; it falls linearly with the distance to a singular pose. Rows are not brought
to length one: a row that vanishes at a pose would be blown up. A step is not taken where

- the indicator was below NEAR at one of its stages: never go on from beside a singular pose;
- it was below LOW, and has a dip inside the step, or would be zero within AHEAD further steps of this size.

A low indicator may only tell that other rows would be the better choice here, as it does several times in a swing of
Bennett's linkage. Where it is low, the rows of small systems are chosen anew, as momentum steps do: if the smallest of
them is longer than CLEARLY of the longest that it has been, this share is the indicator.

The constants are shares of lengths and of steps: they have no unit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from loopdyn._jit import inline, kernel, window
from loopdyn.elimination import passes
from loopdyn.elimination.layout import P_ROWS, open_elimination, plan_start, work_start
from loopdyn.elimination.passes import FINE
from loopdyn.formulations.rattle import INDICATOR, N_NUMBERS, Rows, Units, factor_rows, natural_rows
from loopdyn.records import H_NC, H_NV, open_model, open_work
from loopdyn.tree.jacobian import all_rows

if TYPE_CHECKING:
    from loopdyn.system import System

LOW, NEAR, AHEAD = 0.2, 1e-3, 2.5
# Of the longest so far. Stages are at most half a step apart, those of DOP853 0.27: between two of them with more than
# half of the longest, a line to zero and one back would have to come from beyond the longest at the ends of the step.
CLEARLY = 0.5
# Products in a choice of rows, up to which it takes less time than the accelerations at one state.
SMALL = 5000

# The last numbers of the spare part of the work array: the indicator at the last step, now, and the smallest in this
# step; the longest that the smallest row has been, of those chosen anew; how many are chosen, zero if they never are.
# The largest pivot so far of each row follows them; before them is room to choose rows.
LAST, NOW, LEAST, LONGEST, CHOSEN, N_WATCH = range(6)
PASSAGE = -5  # status: the step leads to a singular pose; below those of `graph` and of the integrators


def room(system: System, rank: int) -> int:
    """Numbers that the watch needs; more than N_WATCH where rows are chosen."""
    nv, nc = system.nv, system.nc
    if not 0 < rank * nc * nv <= SMALL:
        return N_WATCH
    return system.work().size + nv + nc + N_NUMBERS + 3 * nc * nv + 4 * nc + (nv - rank) * nv + N_WATCH


@inline
def length_of_chosen(ints, floats, work, o):
    """Smallest row of those chosen at the state in `work`, as a share of the longest so far; numbers begin at o.

    Accelerations have been found there, and stay.
    """
    nv, nc, rank = ints[H_NV], ints[H_NC], int(work[o + CHOSEN])
    own = work_start(ints)  # as many numbers are the work of the system alone
    a = o - own - nv - nc - N_NUMBERS - 3 * nc * nv - 4 * nc - (nv - rank) * nv
    b = a + own
    c = b + nv
    d = c + nc
    e = d + N_NUMBERS
    f = e + nc * nv
    g = f + nc * nv
    h = g + nc * nv
    k = h + 4 * nc
    P = Rows(
        window(work, d, N_NUMBERS),
        window(work, a, own),
        window(work, e, nc, nv),
        window(work, h, nc),
        window(work, h + nc, nc),
        window(work, h + 2 * nc, nc),
        window(work, f, nc, nv),
        window(work, g, nc, nv),
        window(work, h + 3 * nc, nc),
        window(work, k, nv - rank, nv),
    )
    for i in range(own):  # bodies have been placed
        P.work[i] = work[i]
    all_rows(open_model(ints, floats), open_work(ints, P.work), P.J, P.rate)
    natural_rows(ints, P, Units(window(work, b, nv), window(work, c, nc)))
    factor_rows(P, True)
    work[o + LONGEST] = max(work[o + LONGEST], P.number[INDICATOR])
    return P.number[INDICATOR] / work[o + LONGEST]


@kernel(short_loops=True)
def accelerate(ints, floats, work):
    """Accelerations as `graph` finds them; notes the indicator and the smallest of this step."""
    status = passes.accelerate(ints, floats, work)
    E = open_elimination(ints, plan_start(ints), work, work_start(ints))
    o = work.size - ints[plan_start(ints) + P_ROWS] - N_WATCH
    pivots = work[o + N_WATCH :]
    share = 1.0
    for k in range(pivots.size):
        pivots[k] = max(pivots[k], E.pivot[k])
        if pivots[k] > 0.0:
            share = min(share, max(E.pivot[k], 0.0) / pivots[k])
    now = np.sqrt(share)
    if now < LOW and work[o + CHOSEN] > 0.0:
        chosen = length_of_chosen(ints, floats, work, o)
        if chosen > CLEARLY:
            now = chosen
    work[o + NOW] = now
    work[o + LEAST] = min(work[o + LEAST], now)
    return status


@kernel(short_loops=True)
def accepted(ints, floats, work):
    """Whether a step may be taken, at whose end `accelerate` was run; PASSAGE if it leads to a singular pose."""
    o = work.size - ints[plan_start(ints) + P_ROWS] - N_WATCH
    s, last, least = work[o + NOW], work[o + LAST], work[o + LEAST]
    if last > 0.0:  # not at the start of all
        dips = least < 0.5 * min(last, s)
        ends = s < AHEAD * (last - s)
        if least < NEAR or (least < LOW and (dips or ends)):
            return PASSAGE
    work[o + LAST], work[o + LEAST] = s, np.inf
    if work[o + CHOSEN] > 0.0:
        length_of_chosen(ints, floats, work, o)  # for the longest so far
    return FINE
