"""Singularity monitor: an indicator of how close a mechanism is to a singular pose, checked after every step of a run.

Every solution of `graph` provides the pivots of J M^-1 J^T: each is the squared length, in the mass metric, of the
component of a constraint row that is orthogonal to the rows before it. The indicator is the smallest square root of a
pivot, each as a fraction of its largest value so far for the same row; it falls linearly with the distance to a
singular pose. Rows are not normalised: that would amplify a row that vanishes at a pose. A step is rejected if

- the indicator was below NEAR at one of its stages: a run never continues from a pose next to a singular one;
- the indicator was below LOW, and has a dip inside the step, or would be zero within AHEAD further steps of this size.

A low indicator may also mean that other rows would be a better choice, as happens several times in a swing of Bennett's
linkage. Where it is low, the rows of small systems are therefore chosen again, as momentum steps do: if the smallest of
them is longer than the share CLEARLY of its largest value so far, this share is the indicator. If the rows of `graph`
are then below POOR, it must choose again as well: a loop whose rows vanish in a pose while others keep it closed, such
as a parallelogram with a gear, would otherwise be corrected to a pose far away.

The constants are shares of lengths and of steps: they have no unit.
"""

from __future__ import annotations

import numpy as np

from loopdyn.engine.jit import inline, kernel
from loopdyn.engine.layout import Floats, Ints, fill, opened, with_block
from loopdyn.engine.records import H_MONITOR, open_head, open_model, open_work
from loopdyn.engine.status import AGAIN, FINE, PASSAGE
from loopdyn.formulations.auto import layout
from loopdyn.formulations.auto.layout import LAST, LEAST, LONGEST, NOW, open_monitor
from loopdyn.formulations.momentum.kernels import factor_rows, natural_rows
from loopdyn.formulations.momentum.layout import INDICATOR
from loopdyn.loops.elimination import passes
from loopdyn.loops.elimination.layout import open_elimination
from loopdyn.loops.elimination.plan import EliminationPlan
from loopdyn.tree.jacobian import all_rows

LOW, NEAR, AHEAD = 0.2, 1e-3, 2.5
# Fraction of the longest so far. Stages are at most half a step apart, those of DOP853 0.27: if the length fell
# linearly to zero and rose again between two stages with more than half of the longest, it would exceed the longest at
# the ends of the step.
CLEARLY = 0.5
POOR = 1e-2  # fraction of the longest so far: a correction amplifies the residual by its inverse
# Largest number of products in a choice of rows: up to it, it takes less time than the accelerations at one state.
SMALL = 5000


def add_monitor(plan: EliminationPlan, rank: int) -> tuple[Ints, Floats, int]:
    """Arrays of a plan followed by a block for the monitor; of the work array, the length.

    Rows may be chosen again in small systems, except if joints are severed: the kernels then see their rows among those
    of the system.
    """
    key = "monitor", rank
    if key not in plan.extended:
        plan.extended[key] = _with_monitor(plan, rank)
    return plan.extended[key]


def _with_monitor(plan: EliminationPlan, rank: int) -> tuple[Ints, Floats, int]:
    s = plan.system
    chooses = 0 < rank * s.nc * s.nv <= SMALL and not plan.severed
    rows, speeds, freedoms, copy = (s.nc, s.nv, s.nv - rank, len(s.work())) if chooses else (0, 0, 0, 0)
    header = {
        layout.M_PIVOTS: plan.pattern.rows, layout.M_CHOSEN: rank if chooses else 0, layout.M_ROWS: rows,
        layout.M_SPEEDS: speeds, layout.M_FREEDOMS: freedoms, layout.M_COPY: copy,
    }  # fmt: skip
    ints, floats, work = with_block(plan.ints, plan.floats, plan.work, H_MONITOR, header, layout.monitor_sizes)
    monitor = opened(open_monitor, ints, floats, np.zeros(work))
    fill(monitor, unit=s.speed_units[:speeds], row_unit=s.row_units[:rows])
    return ints, floats, work


@inline
def share_of_pivots(E, m):
    """Square root of the smallest pivot, each as a fraction of its largest value so far."""
    share = 1.0
    for k in range(m.pivot.shape[0]):
        if m.pivot[k] > 0.0:
            share = min(share, max(E.pivot[k], 0.0) / m.pivot[k])
    return np.sqrt(share)


@inline
def length_of_chosen(ints, floats, work, m):
    """Smallest row of those chosen at the state in `work`, as a fraction of its longest so far.

    Accelerations must have been computed there, and are kept.
    """
    for i in range(m.work.shape[0]):  # bodies have been placed
        m.work[i] = work[i]
    all_rows(open_model(ints, floats), open_work(ints, m.work), m.J, m.rate)
    natural_rows(ints, m, m)
    factor_rows(m, True)
    m.indicator[LONGEST] = max(m.indicator[LONGEST], m.number[INDICATOR])
    return m.number[INDICATOR] / m.indicator[LONGEST]


@kernel(short_loops=True)
def accelerate(ints, floats, work):
    """Accelerations of `graph`; notes the indicator and its smallest value in this step."""
    status = passes.accelerate(ints, floats, work)
    E, m = open_elimination(ints, work), open_monitor(ints, floats, work)
    for k in range(m.pivot.shape[0]):
        m.pivot[k] = max(m.pivot[k], E.pivot[k])
    now = share_of_pivots(E, m)
    if now < LOW and m.chosen > 0:
        chosen = length_of_chosen(ints, floats, work, m)
        if chosen > CLEARLY:
            if now < POOR and status == FINE:
                status = AGAIN
            now = chosen
    m.indicator[NOW] = now
    m.indicator[LEAST] = min(m.indicator[LEAST], now)
    return status


@kernel(short_loops=True)
def correct(ints, floats, work):
    """One correction of `graph`, unless its rows are a poor choice here."""
    m = open_monitor(ints, floats, work)
    if m.chosen == 0:
        return passes.correct(ints, floats, work)
    w, before = open_head(ints, work), open_head(ints, m.work)
    for k in range(w.q.size):
        before.q[k] = w.q[k]
    for k in range(w.v.size):
        before.v[k] = w.v[k]
    status = passes.correct(ints, floats, work)
    if status == FINE and share_of_pivots(open_elimination(ints, work), m) < POOR:
        for k in range(w.q.size):
            w.q[k] = before.q[k]
        for k in range(w.v.size):
            w.v[k] = before.v[k]
        status = accelerate(ints, floats, work)
        if status == FINE:  # no other rows are better
            status = passes.correct(ints, floats, work)
    return status


@kernel(short_loops=True)
def accepted(ints, floats, work):
    """Whether a step, at whose end `accelerate` was run, may be accepted; PASSAGE if it leads to a singular pose."""
    m = open_monitor(ints, floats, work)
    s, last, least = m.indicator[NOW], m.indicator[LAST], m.indicator[LEAST]
    if last > 0.0:  # not at the start of the run
        dips = least < 0.5 * min(last, s)
        ends = s < AHEAD * (last - s)
        if least < NEAR or (least < LOW and (dips or ends)):
            return PASSAGE
    m.indicator[LAST], m.indicator[LEAST] = s, np.inf
    if m.chosen > 0:
        length_of_chosen(ints, floats, work, m)  # for the longest so far
    return FINE
