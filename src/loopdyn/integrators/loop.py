"""The integration loop, for any method and any solver.

It is written once and used twice: compiled, where a chunk of many steps is one call, and as plain Python for solvers
that exist in Python only. Its arguments are

    accelerate(ints, floats, work) -> status            accelerations at the state in `work`
    correct(ints, floats, work) -> status               projection of the state in `work` onto the constraints
    accepted(ints, floats, work) -> status              AGAIN if the solver must be prepared again after the step

as functions or, compiled, by their addresses (:func:`loopdyn.engine.jit.pointer`): nothing is compiled per solver.

    attempt(ints, floats, work, m, method, accelerate)  one step of size clock[SIZE]: `m.new` and clock[ERROR]

is bound as a global name. The codes are listed in :mod:`loopdyn.engine.status`.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from loopdyn.engine.jit import kernel
from loopdyn.engine.records import H_COUNTED
from loopdyn.engine.status import AGAIN, FINE, NOT_A_NUMBER, TURNED
from loopdyn.integrators.event_sampling import (
    SAMPLES,
    gaps_stay_open,
    sample,
    unowned_events,
    zero_may_be_inside,
)
from loopdyn.integrators.memory import (
    ACCEPTED,
    ATOL,
    CALM,
    END,
    ERROR,
    EXTENDED,
    FASTEST,
    JUMPED,
    LEAST,
    MOST,
    NEXT,
    ORIGIN,
    PAST,
    PENDING,
    REJECTED,
    RETRIED,
    RTOL,
    SAMPLED,
    SEEN,
    SINCE,
    SIZE,
    STABLE,
    START,
    STATUS,
    STIFF,
    STOP,
    begin,
    combine,
    keep_end,
    note,
    place,
    put_end,
    stage,
    unowned,
    write,
)
from loopdyn.tree.turns import count

# How a chunk of steps ended.
RUNNING, FINISHED, FAILED, ASKS = range(4)
ENDS = ("running", "reached", "failed", "asks")  # names of these codes
# Largest rotation, rad, of a counted angle in a step of fixed size: a pose inside a step is read within half a turn of
# its start, and rates may change by half within it.
FARTHEST = 2.0

# Safety factor and limits of the step size as usual [Hairer1993 section II.4], with a smaller safety factor: at 0.9 a
# quarter of the steps of a four-bar was rejected, and 0.8 took 4 % less work for the same error on ten mechanisms.
SAFETY, SHRINK, GROW = 0.8, 0.2, 10.0
SNAP = 1e-9  # a remainder below this fraction of a step is added to the step
# Rejections of one step after which the run is given up: each shrinks it to 0.8 at most, all together to 1e-5. Where a
# force jumps, about 20 are enough; more occur only where the error does not depend on the step, such as rounding.
MANY_REJECTED = 50
MANY_STIFF, MANY_CALM = 15, 6  # steps at the limit of stability that mean stiffness, and steps below it that end it


# Bound at run time.
attempt: Any = None


class Method(NamedTuple):
    """Coefficients of an explicit method; its rows of k are the stages, then the end of the step, then `extra`."""

    a: Any  # (stages, stages)
    b: Any  # (stages,)
    c: Any  # (stages,)
    e: Any  # (2, stages) errors of order `order` and lower; zero for a fixed step
    a_extra: Any  # (extra, stages + 1 + extra) stages for the dense output alone
    c_extra: Any  # (extra,)
    p: Any  # (stages + 1 + extra, degree) weights of the dense output as polynomials without constant term; of degree
    # zero where it is the cubic through both ends
    order: int  # of the error estimate; zero for a fixed step


@cache
def ends_only() -> Method:
    """For methods with a step function of their own: the start, the end, and a cubic between them."""
    one = np.zeros(1)
    return Method(np.zeros((1, 1)), one, one, np.zeros((2, 1)), np.zeros((0, 2)), np.zeros(0), np.zeros((2, 0)), 0)


@kernel
def nothing(ints, floats, work):
    """Stands for `correct` or `accepted` where there is nothing to do."""
    return FINE


@kernel
def choose_size(m, adaptive):
    """Size and end of the next step; the last one ends exactly at END."""
    start, end = m.clock[START], m.clock[END]
    if adaptive:
        h = min(m.clock[NEXT], m.clock[MOST])
        stop = start + h
    else:
        h = m.clock[NEXT]
        stop = m.clock[ORIGIN] + (m.count[SINCE] + 1) * h
    if stop > end - SNAP * h:
        stop = end
    m.clock[STOP] = stop
    m.clock[SIZE] = h if not adaptive and stop < end else stop - start


@kernel
def finish(m, method, weights):
    """End of the step by the weights of its stages, and its error: at most 1 if the step is accepted."""
    h, n, nv = m.clock[SIZE], weights.size, m.v1.size
    fastest = m.clock[FASTEST]
    combine(m, weights, n, h, m.new)
    for i in range(nv):
        fastest = max(fastest, abs(m.new[nv + i]) / m.unit[i])
    high, low = 0.0, 0.0
    if method.order > 0:
        for i in range(2 * nv):
            # positions in natural units, speeds relative to the fastest so far
            unit = m.unit[i] if i < nv else m.unit[i - nv] * fastest
            scale = m.clock[ATOL] * m.unit[i % nv] + m.clock[RTOL] * unit
            e1, e2 = 0.0, 0.0
            for j in range(n):
                e1 += method.e[0, j] * m.k[j, i]
                e2 += method.e[1, j] * m.k[j, i]
            if scale > 0.0:
                high, low = max(high, abs(e1) / scale), max(low, abs(e2) / scale)
    # [Hairer1993 section II.10] with two estimates; with one, its value
    both = np.sqrt(high * high + 0.01 * low * low)
    m.clock[ERROR] = h * high * high / both if both > 0.0 else 0.0
    if not np.isfinite(np.sum(m.new)):
        m.clock[ERROR] = np.inf


@kernel
def judge(m, order):
    """Whether an adaptive step is accepted; sets the size of the next attempt."""
    error, h = m.clock[ERROR], m.clock[SIZE]
    if error <= 1.0:
        factor = GROW if error == 0.0 else min(GROW, SAFETY * error ** (-1.0 / order))
        if m.count[RETRIED] > 0:  # after a rejection a step does not grow
            factor = min(factor, 1.0)
        m.count[RETRIED] = 0
        m.clock[NEXT] = h * factor
        return True
    m.clock[NEXT] = h * (max(SHRINK, SAFETY * error ** (-1.0 / order)) if error < np.inf else SHRINK)
    m.count[REJECTED] += 1
    m.count[RETRIED] += 1
    return False


@kernel
def remember_speed(m):
    """Update the fastest speed so far, in natural units per second."""
    for i in range(m.v1.size):
        m.clock[FASTEST] = max(m.clock[FASTEST], abs(m.v1[i]) / m.unit[i])


@kernel
def detect_stiffness(m, method):
    """Count steps that are limited by the stability of the method [Hairer1996 section IV.2].

    The last stage and the end of the step are two states at one time: the difference of their derivatives over that of
    the states estimates the fastest rate of the equations. Increments are compared with h times speeds.
    """
    h, nv, end = m.clock[SIZE], m.v1.size, method.c.size
    states, rates = 0.0, 0.0
    for i in range(nv):
        x, v = (m.new[i] - m.stage[i]) / m.unit[i], (m.new[nv + i] - m.stage[nv + i]) / m.unit[i]
        a = (m.k[end, nv + i] - m.k[end - 1, nv + i]) / m.unit[i]
        states += x * x / (h * h) + v * v
        rates += v * v / (h * h) + a * a
    if h * h * rates > m.clock[STABLE] ** 2 * states:
        m.count[STIFF] += 1
        m.count[CALM] = 0
    else:
        m.count[CALM] += 1
        if m.count[CALM] >= MANY_CALM:
            m.count[STIFF] = 0


@kernel
def evaluate_dense_output(ints, work, m, method, t, weights):
    """State at the time t inside the last step, on its dense output, into `work` and `m.stage`."""
    h = m.clock[SIZE]
    x = (t - m.clock[START]) / h
    if method.p.shape[1] == 0:
        end = method.c.size
        b, c = x * x * (3.0 - 2.0 * x), h * x * (1.0 - x)
        for i in range(m.y.size):
            slope = (1.0 - x) * m.k[0, i] - x * m.k[end, i]
            m.stage[i] = m.y[i] + b * (m.new[i] - m.y[i]) + c * slope
        place(ints, work, m, m.stage, t)
    else:
        for i in range(method.p.shape[0]):
            total = 0.0
            for j in range(method.p.shape[1] - 1, -1, -1):
                total = (total + method.p[i, j]) * x
            weights[i] = total
        stage(ints, work, m, weights, weights.size, x)


@kernel
def explicit_step(ints, floats, work, m, method, accelerate):
    """One step of an explicit Runge-Kutta method."""
    for i in range(1, method.c.size):
        stage(ints, work, m, method.a[i], i, method.c[i])
        status = accelerate(ints, floats, work)
        if status != FINE:
            return status
        status = note(ints, floats, work, m, m.stage, i)
        if status != FINE:
            return status
    finish(m, method, method.b)
    return FINE


@kernel
def extend(ints, floats, work, m, method, accelerate):
    """Compute the additional stages of the dense output, once per step."""
    rows = method.c.size + 1
    for i in range(method.c_extra.size):
        if m.count[EXTENDED] == 1:
            break
        stage(ints, work, m, method.a_extra[i], rows + i, method.c_extra[i])
        status = accelerate(ints, floats, work)
        if status != FINE:
            return status
        note(ints, floats, work, m, m.stage, rows + i)
    m.count[EXTENDED] = 1
    return FINE


@kernel
def within(ints, floats, work, m, method, t, weights, accelerate, correct):
    """Corrected state at the time t inside the last step, with its accelerations, into `work` and `m.stage`."""
    if t >= m.clock[STOP]:
        put_end(ints, work, m)
        m.stage[:] = m.new
        return FINE
    status = extend(ints, floats, work, m, method, accelerate)
    if status != FINE:
        return status
    evaluate_dense_output(ints, work, m, method, t, weights)
    status = correct(ints, floats, work)
    if status != FINE:
        return status
    if ints[H_COUNTED] > 0:
        count(ints, floats, work)
    return accelerate(ints, floats, work)


@kernel
def sample_events(ints, floats, work, m, method, weights, events, functions, rows, accelerate):
    """Sample the event functions along the last step; SEEN if one of them may pass zero there."""
    m.count[SAMPLED] = 1
    if events.gaps.row.size > 0:
        far = gaps_stay_open(ints, work, m, events, rows, method.c.size + 1)
        if far and events.gaps.row.size == events.values.shape[1]:
            return FINE
    status = extend(ints, floats, work, m, method, accelerate)
    if status != FINE:
        return status
    h, last = m.clock[STOP] - m.clock[START], SAMPLES.size - 2
    for k in range(SAMPLES.size):
        if k == last:
            put_end(ints, work, m)
        else:
            evaluate_dense_output(ints, work, m, method, m.clock[START] + SAMPLES[k] * h, weights)
            if ints[H_COUNTED] > 0:
                count(ints, floats, work)
        sample(ints, work, m, events, functions, rows, k)
    m.count[SEEN] = 1 if zero_may_be_inside(events.values) else 0
    return FINE


@kernel
def land(ints, floats, work, m, method, accelerate, correct):
    """Finish an accepted step: correct its end and compute the accelerations there."""
    place(ints, work, m, m.new, m.clock[STOP])
    status = correct(ints, floats, work)
    if status != FINE:
        return status
    if ints[H_COUNTED] > 0:
        count(ints, floats, work)
    status = accelerate(ints, floats, work)
    if status != FINE:
        return status
    status = note(ints, floats, work, m, m.new, method.c.size)
    if status != FINE:
        return status
    keep_end(ints, work, m, method.c.size)
    if m.clock[STABLE] > 0.0:
        detect_stiffness(m, method)
    remember_speed(m)
    m.count[PENDING] = 1
    m.count[EXTENDED] = 0
    m.count[SAMPLED] = 0
    m.count[SEEN] = 0
    m.count[ACCEPTED] += 1
    return FINE


@kernel
def turned(ints, floats, work, m):
    """Rotation of the fastest counted angle in the step, by its rates at both ends."""
    place(ints, work, m, m.y, m.clock[START])
    start = count(ints, floats, work)
    place(ints, work, m, m.new, m.clock[STOP])
    return m.clock[SIZE] * max(start, count(ints, floats, work))


@kernel
def renew(ints, floats, work, m, accelerate):
    """Compute the derivatives at the start of the next step again, where a law has changed; the history ends there."""
    nv = m.v1.size
    place(ints, work, m, m.y, m.clock[START])
    status = accelerate(ints, floats, work)
    if status == FINE:
        status = note(ints, floats, work, m, m.y, 0)
    if status == FINE:
        m.extra[:] = m.k[0, nv : 2 * nv]
        m.clock[ORIGIN] = m.clock[START]
        m.count[SINCE], m.count[PAST], m.count[JUMPED] = 0, 0, 0
    return status


def chunk(
    ints, floats, work, memory, method, out, weights, watched, functions, rows, limit, accelerate, correct, accepted
):
    """Make at most `limit` steps towards clock[END], fewer if one may contain an event; writes the outputs in them."""
    m, events, taken = unowned(memory), unowned_events(watched), 0
    while True:
        status = FINE
        if m.count[PENDING] == 1:
            if events.values.size > 0 and m.count[SAMPLED] == 0:
                status = sample_events(ints, floats, work, m, method, weights, events, functions, rows, accelerate)
            while status == FINE and out.written[0] < out.t.size and out.t[out.written[0]] <= m.clock[STOP]:
                t = out.t[out.written[0]]
                status = within(ints, floats, work, m, method, t, weights, accelerate, correct)
                if status == FINE:
                    write(ints, work, m, out, m.stage)
            if status == FINE:
                if m.clock[STOP] >= m.clock[END]:
                    return FINISHED
                if taken >= limit or (taken > 0 and (m.count[SEEN] == 1 or m.count[STIFF] >= MANY_STIFF)):
                    return RUNNING
                begin(m)
        if status == FINE and m.count[JUMPED] == 1:
            status = renew(ints, floats, work, m, accelerate)
        if status == FINE:
            choose_size(m, method.order > 0)
            status = attempt(ints, floats, work, m, method, accelerate)
            if status == FINE and m.clock[ERROR] == np.inf:
                status = NOT_A_NUMBER
            if status == FINE and ints[H_COUNTED] > 0:
                far = turned(ints, floats, work, m) / FARTHEST
                if far > 1.0 and method.order > 0:
                    m.clock[ERROR] = max(m.clock[ERROR], far**method.order)
                elif far > 1.0:
                    status = TURNED
            if method.order > 0 and status != AGAIN:
                if status != FINE:
                    m.clock[ERROR] = np.inf
                if not judge(m, method.order):
                    if m.clock[NEXT] >= m.clock[LEAST] and m.count[RETRIED] < MANY_REJECTED:
                        continue
                    m.count[STATUS] = status
                    return FAILED
            if status == FINE:
                status = land(ints, floats, work, m, method, accelerate, correct)
                taken += 1
                if status == FINE:
                    status = accepted(ints, floats, work)
        if status != FINE:
            m.count[STATUS] = status
            return ASKS if status == AGAIN else FAILED
