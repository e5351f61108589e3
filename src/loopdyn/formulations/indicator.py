"""How close a mechanism is to a singular pose, watched between the steps of a run.

Every solution of `graph` comes with the pivots of J M^-1 J^T: each is the square of the length, in the metric of the
masses, of a constraint row beyond those before it. The indicator is the smallest root of a pivot as a share of the
largest that it has been for the same row; it falls linearly with the distance to a singular pose. Rows are not brought
to length one: a row that vanishes at a pose would be blown up. A step is not taken where

- the indicator was below NEAR at one of its stages: never go on from beside a singular pose;
- it was below LOW, and has a dip inside the step, or would be zero within AHEAD further steps of this size.

The constants are shares of lengths and of steps: they have no unit.
"""

import numpy as np

from loopdyn._jit import kernel
from loopdyn.elimination import passes
from loopdyn.elimination.layout import P_ROWS, open_elimination, plan_start, work_start
from loopdyn.elimination.passes import FINE

LOW, NEAR, AHEAD = 0.2, 1e-3, 2.5

# The spare part of the work array: the indicator at the last step, now, and the smallest in this step; then the
# largest pivot so far of each row.
LAST, NOW, LEAST, N_WATCH = range(4)
PASSAGE = -4  # status: the step leads to a singular pose


@kernel
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
    work[o + NOW] = np.sqrt(share)
    work[o + LEAST] = min(work[o + LEAST], work[o + NOW])
    return status


@kernel
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
    return FINE
