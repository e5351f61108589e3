"""The state during a step, shared by the kernels of all integrators.

A step starts at coordinates q0. The integrated vector is y = (xi, v, work): increments xi along the manifolds of
the joints, q = q0 (+) xi, zero at the start of every step; speeds; and the work of every force. For most joints
xi' = v; other joints define it (`rate` of :mod:`loopdyn.joints.spherical` and :mod:`loopdyn.joints.free`). So
quaternions keep unit length and every method keeps its order.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from loopdyn.engine.jit import inline, kernel, window
from loopdyn.engine.records import H_BASES, H_COUNTED, KIND, NV, Q0, V0, open_head, open_model, open_tree, open_work
from loopdyn.engine.status import FINE, NOT_A_NUMBER
from loopdyn.files import Misfit, fitting
from loopdyn.integrators.dependence import angles_to_wrap
from loopdyn.joints.dispatch import joint_minus, joint_plus, joint_rate
from loopdyn.system.cut_angles import FULL_TURN
from loopdyn.system.system import System
from loopdyn.tree.power import powers

# clock: times and sizes. ORIGIN: where the count of fixed steps began; STOP: end of the step; STABLE: step size times
# the fastest rate up to which the method is stable, zero if stiffness is not monitored.
START, SIZE, STOP, NEXT, END, ORIGIN, LEAST, MOST, RTOL, ATOL, FASTEST, ERROR, STABLE, N_CLOCK = range(14)
# count: counters and flags. PENDING: the last step is not yet the start of the next; SINCE: steps since ORIGIN; PAST:
# states in the history; MOVED: drivers or bases move; RETRIED: rejections of this step; EXTENDED: see `extend`; STIFF,
# CALM: steps at the limit of stability, and those below it since; SAMPLED: the last step has been searched for events;
# SEEN: it may contain one; JUMPED: a law has changed at the end of the last step, see `loop.renew`.
ACCEPTED, REJECTED, EVALUATED, PENDING, SINCE, PAST, MOVED, STATUS, RETRIED, EXTENDED, STIFF, CALM = range(12)
SAMPLED, SEEN, JUMPED, N_COUNT = range(12, 16)


class Memory(NamedTuple):
    """State of an integrator: the last step and the start of the next. ny = 2 nv + number of works."""

    clock: Any  # (N_CLOCK,)
    count: Any  # (N_COUNT,) int
    q: Any  # (nq,) coordinates at the start of the step
    y: Any  # (ny,) zero increments, speeds and works at the start
    k: Any  # (stages, ny) derivatives
    stage: Any  # (ny,) the stage that is being computed
    new: Any  # (ny,) the end of the step before it is corrected
    q1: Any  # (nq,) the end of the step
    v1: Any  # (nv,)
    a1: Any  # (nv,)
    power1: Any  # (works,)
    extra: Any  # (nv,) for the method's own use; initially the accelerations at the start of the run
    unit: Any  # (nv,) natural unit of increments, and per second of speeds
    wrapped: Any  # (n,) int: coordinates that are angles and kept within a turn
    turns: Any  # (n,) whole turns that were subtracted
    past_q: Any  # (n, nq) states before the start of the step, the latest first
    past_v: Any  # (n, nv)
    past_a: Any  # (n, nv + works) accelerations and powers
    load: Any  # (forces,) scratch


def empty(system: System, works: int, stages: int, past: int) -> Memory:
    """Memory for a method with this number of stages and of past states."""
    s, ny = system, 2 * system.nv + works
    wrapped = angles_to_wrap(s)
    return Memory(
        clock=np.zeros(N_CLOCK),
        count=np.zeros(N_COUNT, np.int64),
        q=np.zeros(s.nq),
        y=np.zeros(ny),
        k=np.zeros((stages, ny)),
        stage=np.zeros(ny),
        new=np.zeros(ny),
        q1=np.zeros(s.nq),
        v1=np.zeros(s.nv),
        a1=np.zeros(s.nv),
        power1=np.zeros(works),
        extra=np.zeros(s.nv),
        unit=np.array(s.speed_units),
        wrapped=wrapped,
        turns=np.zeros(len(wrapped)),
        past_q=np.zeros((past, s.nq)),
        past_v=np.zeros((past, s.nv)),
        past_a=np.zeros((past, s.nv + works)),
        load=np.zeros(len(s.model.force)),
    )


def save(m: Memory) -> dict[str, NDArray[Any]]:
    """All arrays, by names for a file."""
    return {f"memory_{name}": array for name, array in m._asdict().items()}


def restore(m: Memory, saved: Mapping[str, Any]) -> None:
    """Restore what :func:`save` returned, after checks: compiled steps trust it.

    Raises
    ------
    Misfit
    """
    arrays = m._asdict()
    given = {name: fitting(f"memory_{name}", saved.get(f"memory_{name}"), array) for name, array in arrays.items()}
    count, clock = given["count"], given["clock"]
    flags = [PENDING, MOVED, RETRIED, EXTENDED, SAMPLED, SEEN, JUMPED]
    if np.delete(count, STATUS).min() < 0 or count[flags].max() > 1:
        raise Misfit("its counts of steps are not possible")
    if count[PAST] > len(m.past_q) or not np.array_equal(given["wrapped"], m.wrapped):
        raise Misfit("its history of states is not possible")
    known = [clock[[START, STOP, END, NEXT]], *(given[name] for name in ("q", "q1", "v1", "y", "turns"))]
    if not all(np.isfinite(x).all() for x in known):
        raise Misfit("its state is not a finite number")
    for name, array in arrays.items():
        array[...] = given[name]


@inline(always=True)
def unowned(m):
    """Memory as bare addresses, without reference counting, which took longer than a stage."""
    return Memory(
        window(m.clock, 0, m.clock.size),
        window(m.count, 0, m.count.size),
        window(m.q, 0, m.q.size),
        window(m.y, 0, m.y.size),
        window(m.k.ravel(), 0, m.k.shape[0], m.k.shape[1]),
        window(m.stage, 0, m.stage.size),
        window(m.new, 0, m.new.size),
        window(m.q1, 0, m.q1.size),
        window(m.v1, 0, m.v1.size),
        window(m.a1, 0, m.a1.size),
        window(m.power1, 0, m.power1.size),
        window(m.extra, 0, m.extra.size),
        window(m.unit, 0, m.unit.size),
        window(m.wrapped, 0, m.wrapped.size),
        window(m.turns, 0, m.turns.size),
        window(m.past_q.ravel(), 0, m.past_q.shape[0], m.past_q.shape[1]),
        window(m.past_v.ravel(), 0, m.past_v.shape[0], m.past_v.shape[1]),
        window(m.past_a.ravel(), 0, m.past_a.shape[0], m.past_a.shape[1]),
        window(m.load, 0, m.load.size),
    )


class Output(NamedTuple):
    """Results at the requested times; the caller owns the arrays."""

    t: Any  # (n,)
    q: Any  # (n, nq) turns included
    v: Any  # (n, nv)
    a: Any  # (n, nv)
    work: Any  # (n, works)
    steps: Any  # (n,) int: number of steps until then
    written: Any  # (1,) int: outputs so far


@kernel
def rates(ints, xi, v, out):
    """out = xi' (nv) of all joints."""
    tree = open_tree(ints)
    for i in range(ints[H_BASES], tree.shape[0]):
        joint_rate(tree[i, KIND], tree[i, NV], xi, v, tree[i, V0], out)


@kernel
def place(ints, work, m, y, t):
    """Write the state q (+) y to `work`."""
    tree, w = open_tree(ints), open_head(ints, work)
    w.t[0] = t
    for i in range(ints[H_BASES], tree.shape[0]):
        joint_plus(tree[i, KIND], tree[i, NV], m.q, tree[i, Q0], y, tree[i, V0], w.q)
    for k in range(w.q.size - ints[H_COUNTED], w.q.size):  # within half a turn of what they are
        w.q[k] = m.q[k]
    for k in range(w.v.size):
        w.v[k] = y[w.v.size + k]


@inline
def combine(m, weights, n, h, out):
    """out = y + h sum weights k over the first n derivatives."""
    for i in range(m.y.size):
        out[i] = 0.0
    for j in range(n):
        weight = h * weights[j]
        if weight != 0.0:  # as half of them are
            for i in range(m.y.size):
                out[i] += weight * m.k[j, i]
    for i in range(m.y.size):
        out[i] += m.y[i]


@kernel
def stage(ints, work, m, weights, n, c):
    """State y + h sum weights k over the first n derivatives, into `m.stage` and `work`, at the share c of the step."""
    h = m.clock[SIZE]
    combine(m, weights, n, h, m.stage)
    place(ints, work, m, m.stage, m.clock[START] + c * h)


@kernel
def note(ints, floats, work, m, y, row):
    """Derivative of the state in `work`, whose increments are those of y, into row `row` of k."""
    w, k = open_head(ints, work), m.k[row]
    nv = w.v.size
    rates(ints, y, w.v, k)
    for i in range(nv):
        k[nv + i] = w.a[i]
    if k.size > 2 * nv:
        powers(open_model(ints, floats), open_work(ints, work), m.count[MOVED] == 1, k[2 * nv :], m.load)
    m.count[EVALUATED] += 1
    return FINE if np.isfinite(np.sum(w.a)) else NOT_A_NUMBER


@kernel
def begin(m):
    """Make the end of the last step, or the start of the run, the start of the next; q1, v1, a1, power1 are known."""
    nv = m.v1.size
    if m.past_q.shape[0] > 0:
        if m.count[PENDING] == 1:
            for n in range(m.past_q.shape[0] - 1, 0, -1):
                m.past_q[n], m.past_v[n], m.past_a[n] = m.past_q[n - 1], m.past_v[n - 1], m.past_a[n - 1]
            m.past_q[0], m.past_v[0], m.past_a[0] = m.q, m.y[nv : 2 * nv], m.k[0, nv:]
            m.count[PAST] = min(m.count[PAST] + 1, m.past_q.shape[0])
        else:
            m.count[PAST] = 0
    if m.count[PENDING] == 1:
        m.clock[START] = m.clock[STOP]
        m.y[2 * nv :] = m.new[2 * nv :]
        m.count[SINCE] += 1
    m.count[PENDING] = 0
    for n in range(m.wrapped.size):
        i = m.wrapped[n]
        turns = np.round(m.q1[i] / FULL_TURN)
        m.q1[i] -= turns * FULL_TURN
        m.turns[n] += turns
    m.q[:] = m.q1
    m.y[:nv] = 0.0
    m.y[nv : 2 * nv] = m.v1
    m.k[0, :nv] = m.v1
    m.k[0, nv : 2 * nv] = m.a1
    m.k[0, 2 * nv :] = m.power1


@kernel
def keep_end(ints, work, m, row):
    """Store the corrected end of the step from `work`, and its derivatives from row `row` of k."""
    w = open_head(ints, work)
    m.q1[:] = w.q
    m.v1[:] = w.v
    m.a1[:] = w.a
    m.power1[:] = m.k[row, 2 * w.v.size :]


@kernel
def put_start(ints, work, m):
    """Write the start of the step to `work`."""
    w = open_head(ints, work)
    w.t[0], w.q[:], w.v[:] = m.clock[START], m.q, m.y[w.v.size : 2 * w.v.size]


@kernel
def put_end(ints, work, m):
    """Write the end of the step to `work`."""
    w = open_head(ints, work)
    w.t[0], w.q[:], w.v[:], w.a[:] = m.clock[STOP], m.q1, m.v1, m.a1


@kernel
def write(ints, work, m, out, works):
    """Write the state in `work`, turns included, as the next output."""
    w = open_head(ints, work)
    n = out.written[0]
    out.q[n, :] = w.q
    for i in range(m.wrapped.size):
        out.q[n, m.wrapped[i]] += m.turns[i] * FULL_TURN
    out.v[n, :] = w.v
    out.a[n, :] = w.a
    out.work[n, :] = works[2 * w.v.size :]
    out.steps[n] = m.count[ACCEPTED]
    out.written[0] = n + 1


@kernel
def recall(ints, m):
    """Derivatives at the states of the history, in the chart of this step, into rows 1, 2, ... of k."""
    tree, nv = open_tree(ints), m.v1.size
    for n in range(m.count[PAST]):
        for i in range(ints[H_BASES], tree.shape[0]):
            joint_minus(tree[i, KIND], tree[i, NV], m.q, m.past_q[n], tree[i, Q0], m.stage, tree[i, V0])
        rates(ints, m.stage, m.past_v[n], m.k[1 + n])
        m.k[1 + n, nv:] = m.past_a[n]
