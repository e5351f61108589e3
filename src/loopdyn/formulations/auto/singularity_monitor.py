"""How close a mechanism is to a singular pose, watched between the steps of a run.

Every solution of `graph` comes with the pivots of J M^-1 J^T: each is the square of the length, in the metric of the
masses, of a constraint row beyond those before it. The indicator is the smallest root of a pivot as a share of the
largest that it has been for the same row; it falls linearly with the distance to a singular pose. Rows are not brought
to length one: a row that vanishes at a pose would be blown up. A step is not taken where

- the indicator was below NEAR at one of its stages: never go on from beside a singular pose;
- it was below LOW, and has a dip inside the step, or would be zero within AHEAD further steps of this size.

A low indicator may only tell that other rows would be the better choice here, as it does several times in a swing of
Bennett's linkage. Where it is low, the rows of small systems are chosen anew, as momentum steps do: if the smallest of
them is longer than CLEARLY of the longest that it has been, this share is the indicator; and where those of `graph` are
then below POOR, it is asked to choose anew, too: a loop of rows that vanish in a pose while others keep it closed, such
as a parallelogram with a gear, would else be corrected far away from there.

The constants are shares of lengths and of steps: they have no unit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from loopdyn.engine.jit import inline, kernel, window
from loopdyn.engine.records import H_NC, H_NV, open_head, open_model, open_work
from loopdyn.engine.status import AGAIN, FINE, PASSAGE
from loopdyn.formulations.momentum.kernels import INDICATOR, N_NUMBERS, Rows, Units, factor_rows, natural_rows
from loopdyn.loops.elimination import passes
from loopdyn.loops.elimination.layout import P_ROWS, open_elimination, plan_start, work_start
from loopdyn.tree.jacobian import all_rows

if TYPE_CHECKING:
    from loopdyn.system.system import System

LOW, NEAR, AHEAD = 0.2, 1e-3, 2.5
# Of the longest so far. Stages are at most half a step apart, those of DOP853 0.27: between two of them with more than
# half of the longest, a line to zero and one back would have to come from beyond the longest at the ends of the step.
CLEARLY = 0.5
POOR = 1e-2  # of the longest so far: a correction amplifies what is missing by the inverse of it
# Products in a choice of rows, up to which it takes less time than the accelerations at one state.
SMALL = 5000

# The last numbers of the scratch part of the work array: the indicator at the last step, now, and the smallest in this
# step; the longest that the smallest row has been, of those chosen anew; how many are chosen, zero if they never are.
# The largest pivot so far of each row follows them; before them is room to choose rows.
LAST, NOW, LEAST, LONGEST, CHOSEN, N_MONITOR = range(6)


def scratch_size(system: System, rank: int) -> int:
    """Numbers that the watch needs; more than N_MONITOR where rows are chosen."""
    nv, nc = system.nv, system.nc
    if not 0 < rank * nc * nv <= SMALL:
        return N_MONITOR
    return system.work().size + nv + nc + N_NUMBERS + 3 * nc * nv + 4 * nc + (nv - rank) * nv + N_MONITOR


@inline
def scratch_start(ints, work, o):
    """Where the room to choose rows begins, with as many numbers as the work of the system alone has."""
    nv, nc, rank = ints[H_NV], ints[H_NC], int(work[o + CHOSEN])
    return o - work_start(ints) - nv - nc - N_NUMBERS - 3 * nc * nv - 4 * nc - (nv - rank) * nv


@inline
def share_of_pivots(E, pivots):
    """The smallest pivot as a share of the largest that it has been, with roots taken."""
    share = 1.0
    for k in range(pivots.size):
        if pivots[k] > 0.0:
            share = min(share, max(E.pivot[k], 0.0) / pivots[k])
    return np.sqrt(share)


@inline
def length_of_chosen(ints, floats, work, o):
    """Smallest row of those chosen at the state in `work`, as a share of the longest so far; numbers begin at o.

    Accelerations have been found there, and stay.
    """
    nv, nc, rank = ints[H_NV], ints[H_NC], int(work[o + CHOSEN])
    own, a = work_start(ints), scratch_start(ints, work, o)
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
    o = work.size - ints[plan_start(ints) + P_ROWS] - N_MONITOR
    pivots = work[o + N_MONITOR :]
    for k in range(pivots.size):
        pivots[k] = max(pivots[k], E.pivot[k])
    now = share_of_pivots(E, pivots)
    if now < LOW and work[o + CHOSEN] > 0.0:
        chosen = length_of_chosen(ints, floats, work, o)
        if chosen > CLEARLY:
            if now < POOR and status == FINE:
                status = AGAIN
            now = chosen
    work[o + NOW] = now
    work[o + LEAST] = min(work[o + LEAST], now)
    return status


@kernel(short_loops=True)
def correct(ints, floats, work):
    """One correction as `graph` makes it, but not by rows that are a poor choice here."""
    o = work.size - ints[plan_start(ints) + P_ROWS] - N_MONITOR
    if work[o + CHOSEN] == 0.0:
        return passes.correct(ints, floats, work)
    w, a = open_head(ints, work), scratch_start(ints, work, o)
    for k in range(w.q.size):
        work[a + k] = w.q[k]
    for k in range(w.v.size):
        work[a + w.q.size + k] = w.v[k]
    status = passes.correct(ints, floats, work)
    E = open_elimination(ints, plan_start(ints), work, work_start(ints))
    if status == FINE and share_of_pivots(E, work[o + N_MONITOR :]) < POOR:
        for k in range(w.q.size):
            w.q[k] = work[a + k]
        for k in range(w.v.size):
            w.v[k] = work[a + w.q.size + k]
        status = accelerate(ints, floats, work)
        if status == FINE:  # no others are better
            status = passes.correct(ints, floats, work)
    return status


@kernel(short_loops=True)
def accepted(ints, floats, work):
    """Whether a step may be taken, at whose end `accelerate` was run; PASSAGE if it leads to a singular pose."""
    o = work.size - ints[plan_start(ints) + P_ROWS] - N_MONITOR
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
