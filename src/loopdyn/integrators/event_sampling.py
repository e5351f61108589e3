"""Sampling of event functions, whose zeros are events, between the steps of a compiled run.

A function is sampled along the dense output of a step at Chebyshev points, and at one point beyond either end. The step
may contain a zero if the function changes sign between two samples, or if three samples in a row have one sign, the
middle one is nearest to zero, and the parabola through them comes much nearer. Only then does the compiled run return
to Python, which locates the zero. Gaps of contacts (:mod:`loopdyn.integrators.gap_rows`) are sampled only in steps in
which they may come near zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from loopdyn.engine.jit import inline, kernel, specialise, window
from loopdyn.engine.pointers import pointer
from loopdyn.engine.records import open_head
from loopdyn.integrators.gap_rows import GapRows, measure, no_gaps, rows_of, stays_open, unowned_gaps
from loopdyn.integrators.memory import SIZE, START, STOP, put_end, put_start
from loopdyn.quantities.expressions import Program, pack, run_program
from loopdyn.system.cut_angles import FULL_TURN

PARTS = 8  # intervals between the samples in a step
# Chebyshev's points of the step and one more beyond either end, as shares of the step.
_INSIDE = 0.5 - 0.5 * np.cos(np.pi * np.arange(PARTS + 1) / PARTS)
SAMPLES = np.concatenate([[-_INSIDE[1]], _INSIDE, [1.0 + _INSIDE[1]]])
NEARER = 0.5  # a dip is examined if the parabola falls below this fraction of the smallest sample

# Bound at run time.
before: Any = None
function: Any = None
number: Any = None


class EventFunctions(NamedTuple):
    """Event functions of a run: jitted ones, formulas, gaps; none where Python searches for events itself."""

    q: Any  # (nq,) turns included
    v: Any  # (nv,)
    values: Any  # (samples, n)
    code: Any  # programs of the formulas; their variables are t, q, v
    constants: Any
    program: Any  # (formulas + 1,)
    variables: Any  # (1 + nq + nv, 3)
    stack: Any  # (depth, 3)
    gaps: GapRows


@kernel
def no_functions(t, q, v, out):
    """Stands for the jitted functions where there are none."""


def one_more(t, q, v, out):
    """Evaluate the functions bound before, and one more."""
    before(t, q, v, out)
    out[number] = function(t, q, v)


def event_functions(
    nq: int, nv: int, functions: Sequence[Any], programs: Sequence[Program], gaps: GapRows | None = None
) -> tuple[EventFunctions, Any, Any]:
    """Work arrays, and the addresses of the function that evaluates all jitted ones, and of that for the gaps."""
    gaps = no_gaps() if gaps is None else gaps
    all_, q, v = no_functions, np.zeros(nq), np.zeros(nv)
    out = np.zeros(len(functions) + len(programs) + gaps.row.size)
    for k, jitted in enumerate(functions):
        all_ = specialise(one_more, before=all_, function=jitted, number=k)
    code, constants, program, depth = pack(programs)
    values = np.zeros((len(SAMPLES), len(out)))
    variables, stack = np.zeros((1 + nq + nv, 3)), np.zeros((depth, 3))
    made = EventFunctions(q, v, values, code, constants, program, variables, stack, gaps)
    return made, pointer(all_, 0.0, q, v, out), rows_of(gaps)


@cache
def no_events(nq: int, nv: int) -> tuple[EventFunctions, Any, Any]:
    """Arrays where nothing is watched: of no length, or never written to."""
    return event_functions(nq, nv, (), ())


@inline(always=True)
def unowned_events(e):
    """Arrays as bare addresses, without reference counting, except those handed to a function by its address."""
    return EventFunctions(
        e.q,
        e.v,
        e.values,
        window(e.code, 0, e.code.size),
        window(e.constants, 0, e.constants.size),
        window(e.program, 0, e.program.size),
        window(e.variables.ravel(), 0, e.variables.shape[0], e.variables.shape[1]),
        window(e.stack.ravel(), 0, e.stack.shape[0], e.stack.shape[1]),
        unowned_gaps(e.gaps),
    )


@kernel
def read_state(ints, work, m, events):
    """Coordinates and speeds in `work`, turns included; returns the time."""
    w = open_head(ints, work)
    events.q[:] = w.q
    for i in range(m.wrapped.size):
        events.q[m.wrapped[i]] += m.turns[i] * FULL_TURN
    events.v[:] = w.v
    return w.t[0]


@kernel
def sample(ints, work, m, events, functions, rows, k):
    """Values of all event functions at the state in `work`, turns included, into row k."""
    t, x, gaps = read_state(ints, work, m, events), events.variables, events.gaps
    nq = events.q.size
    functions(t, events.q, events.v, events.values[k])
    x[0, 0] = t
    x[1 : 1 + nq, 0] = events.q
    x[1 + nq :, 0] = events.v
    formulas = events.program.size - 1
    first = events.values.shape[1] - gaps.row.size
    for n in range(formulas):
        value = run_program(events.code, events.program[n], events.program[n + 1], events.constants, x, events.stack)
        events.values[k, first - formulas + n] = value[0]
    if gaps.row.size > 0:
        measure(gaps, rows, t, events.q, events.v, events.values[k, first:], gaps.ends[1])


@kernel
def gaps_stay_open(ints, work, m, events, rows, stages):
    """Whether no gap may come near zero in the last step; those at its end are kept for the next one."""
    gaps, h, moved = events.gaps, m.clock[SIZE], 0.0
    if gaps.at[0] == m.clock[START]:
        gaps.ends[0], gaps.ends[1] = gaps.ends[2], gaps.ends[3]
    else:
        put_start(ints, work, m)
        t = read_state(ints, work, m, events)
        measure(gaps, rows, t, events.q, events.v, gaps.ends[0], gaps.ends[1])
    put_end(ints, work, m)
    t = read_state(ints, work, m, events)
    measure(gaps, rows, t, events.q, events.v, gaps.ends[2], gaps.ends[3])
    gaps.at[0] = m.clock[STOP]
    for i in range(m.v1.size):
        fastest = 0.0
        for j in range(stages):
            fastest = max(fastest, abs(m.k[j, i]))
        moved += h * fastest / m.unit[i]
    open_ = True
    for n in range(gaps.row.size):
        open_ = open_ and stays_open(gaps, n, h, moved)
    return open_


@kernel
def sign_changes(a, b):
    """Whether a function passes zero from a to b; starting at zero is no passage."""
    return a < 0.0 <= b or a > 0.0 >= b


@kernel
def may_dip(x0, x1, x2, a, b, c):
    """Whether a function with samples a, b, c of one sign may have zeros around the middle one."""
    s = 1.0 if a > 0.0 else -1.0
    a, b, c = s * a, s * b, s * c
    if not (b >= 0.0 and a >= b and c >= b and a + c > 2.0 * b):
        return False
    left, right = (b - a) / (x1 - x0), (c - b) / (x2 - x1)
    bend = (right - left) / (x2 - x0)
    slope = (left * (x2 - x1) + right * (x1 - x0)) / (x2 - x0)
    return b - slope * slope / (4.0 * bend) <= NEARER * b


@kernel
def zero_may_be_inside(values):
    """Whether any function may have a zero in the step, or is NaN."""
    last = values.shape[0] - 2
    for n in range(values.shape[1]):
        for k in range(1, last + 1):
            a, b, c = values[k - 1, n], values[k, n], values[k + 1, n]
            if np.isnan(b) or (k < last and sign_changes(b, c)):
                return True
            if may_dip(SAMPLES[k - 1], SAMPLES[k], SAMPLES[k + 1], a, b, c):
                return True
    return False
