"""What `Graph` costs: nothing is allocated, memory and time are linear, the order of the file does not matter."""

from __future__ import annotations

import cProfile
import pstats
import time

import numpy as np
import pytest
from numba.core.runtime import _nrt_python, rtsys

import loopdyn as ld
from loopdyn.loops.elimination import plan as elimination_plan
from loopdyn.loops.elimination.passes import accelerate, correct
from loopdyn.loops.elimination.plan import LIMITS, plan_elimination
from loopdyn.loops.elimination.solver import Elimination

FAMILIES = {"star_ladder": 2, "n_four_bar": 2, "tower": 3, "ladder": 2}  # bodies of a cell


def prepared(m: ld.Mechanism) -> Elimination:
    """An elimination whose rows are chosen at the reference pose, where all these models are closed."""
    system = m.compile()
    return Elimination(system, system.state())


def moving(elimination: Elimination, seed: int = 0) -> ld.State:
    """Closed state with speeds of order one, beside the reference pose: there some models accelerate nothing."""
    system = elimination.system
    v = np.random.default_rng(seed).normal(size=system.nv)
    state = elimination.project(ld.State(0.0, system.q_reference, v), 2)
    for _ in range(5):
        v = state.v / np.sqrt(np.mean(state.v**2))
        state = elimination.project(ld.State(0.0, state.q + 0.02 * v, v), 10)
    return state


def shuffled(m: ld.Mechanism, rng: np.random.Generator) -> ld.Mechanism:
    other = m.model_copy(deep=True)
    for section in ("bodies", "joints"):
        items = list(getattr(other, section).items())
        setattr(other, section, {items[k][0]: items[k][1] for k in rng.permutation(len(items))})
    return other


# ---------------------------------------------------------------------------------------------------- allocation


@pytest.fixture
def allocations():
    """Number of allocations by compiled code so far."""
    _nrt_python.memsys_enable_stats()
    yield lambda: rtsys.get_allocation_stats().alloc
    _nrt_python.memsys_disable_stats()


@pytest.mark.parametrize("kernel", [accelerate, correct], ids=["accelerate", "correct"])
@pytest.mark.parametrize("family", FAMILIES)
def test_the_kernels_allocate_nothing(family, kernel, allocations):
    """A call from Python makes a handle for each of its three arrays; nothing beyond these, whatever the size."""
    calls, arguments = 50, 3
    for size in (1, 6):
        e = prepared(ld.library.turned(getattr(ld.library, family)(size)))
        state = moving(e)
        e.set_state(state.t, state.q, state.v)
        kernel(*e.arrays)
        before = allocations()
        for _ in range(calls):
            kernel(*e.arrays)
        assert allocations() - before == arguments * calls


# ---------------------------------------------------------------------------------------------- order of the file


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("family", FAMILIES)
def test_the_order_of_bodies_and_joints_changes_the_result_by_rounding_only(family, seed):
    m = ld.library.turned(getattr(ld.library, family)(12))
    given, other = prepared(m), prepared(shuffled(m, np.random.default_rng(seed)))
    state = moving(given, seed)
    q = dict(zip(given.system.coordinates, state.q, strict=True))
    v = dict(zip(given.system.speeds, state.v, strict=True))
    found = []
    for e, at in ((given, state), (other, other.system.state(q, v))):
        e.choose(at)
        found.append(dict(zip(e.system.speeds, e.work.a.tolist(), strict=True)))
    a, b = (np.array([values[label] for label in given.system.speeds]) for values in found)
    assert np.abs(a).max() > 0.1  # rad/s^2: a state that tells something
    # 36 bodies, pivots above 1e-3 of their rows: rounding of 1e-16 grows by that and by the number of bodies
    np.testing.assert_allclose(b, a, rtol=0, atol=1e-11 * np.abs(a).max())
    assert other.plan.flops == pytest.approx(given.plan.flops, rel=0.2)


# -------------------------------------------------------------------------------------------------- linear growth


@pytest.mark.parametrize("family", ["star_ladder", "n_four_bar", "tower"])
def test_operations_and_memory_of_a_plan_grow_linearly(family):
    small, large = (prepared(getattr(ld.library, family)(n // FAMILIES[family])) for n in (120, 480))
    for measure in (lambda e: e.plan.flops, memory):
        per_body = [measure(e) / e.system.nb for e in (small, large)]
        assert per_body[1] < 1.15 * per_body[0]  # what is fixed and the ends of the row are shared by more bodies


def memory(e: Elimination) -> int:
    """Bytes of everything the kernels read and write: model, plan, work."""
    return sum(array.nbytes for array in e.arrays)


@pytest.mark.slow
@pytest.mark.parametrize("family", ["star_ladder", "n_four_bar", "tower"])
def test_time_grows_linearly(family):
    """Ratio in one run, sizes in turns, shortest of many; the bound leaves room for caches and a busy machine."""
    eliminations = [prepared(getattr(ld.library, family)(n // FAMILIES[family])) for n in (300, 3000)]
    best = [np.inf, np.inf]
    for _ in range(60):
        for k, e in enumerate(eliminations):
            start = time.perf_counter()
            accelerate(*e.arrays)
            best[k] = min(best[k], (time.perf_counter() - start) / e.system.nb)
    assert best[1] < 2.0 * best[0]


@pytest.mark.slow
def test_memory_is_below_4_kb_per_body_at_100_000_bodies():
    e = prepared(ld.library.star_ladder(50_000))
    assert memory(e) < 4000 * e.system.nb
    assert np.isfinite(e.work.a).all()


# ------------------------------------------------------------------------------------------- work of compile()


def test_work_of_compiling_and_planning_grows_with_the_number_of_bodies():
    """Calls of Python functions, counted; nothing is timed."""
    each = []
    plan_elimination(ld.library.star_ladder(3).compile())  # imports
    for n in (40, 160):
        m = ld.library.star_ladder(n)
        compiling, planning = cProfile.Profile(), cProfile.Profile()
        system = compiling.runcall(m.compile)
        planning.runcall(plan_elimination, system)
        each.append([pstats.Stats(p).total_calls / system.nb for p in (compiling, planning)])
    assert np.all(np.array(each[1]) < 1.05 * np.array(each[0]))  # what is done once is shared by more bodies
    assert np.all(np.array(each[1]) < [235, 180])  # 226 and 174 calls per body when this was written


def test_forests_that_would_be_equal_are_grown_once(monkeypatch):
    """A ladder of two bodies a cell never has more than a few rows open: most limits sever nothing."""
    limits, grown = [], elimination_plan._grown_within
    monkeypatch.setattr(elimination_plan, "_grown_within", lambda *given: (limits.append(given[-1]), grown(*given))[1])
    given = plan_elimination(ld.library.star_ladder(20).compile())
    assert limits[0] == max(elimination_plan.LIMITS)
    assert len(limits) < len(elimination_plan.LIMITS)
    every = [elimination_plan.grow(given.system, given.forest.sequence, severing(given.system, x)) for x in LIMITS]
    costs = [elimination_plan._tree_flops(given.system, f) + elimination_plan._pattern(f).flops for f in every]
    assert given.flops == min(costs)
    assert given.forest == every[costs.index(min(costs))]


def severing(system, limit):
    """Rule that severs joints at which more than `limit` rows are open."""
    allowed = elimination_plan._severable(system)
    return lambda i, rows: bool(allowed[i]) and rows > limit
