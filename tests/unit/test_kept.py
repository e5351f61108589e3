"""What is prepared for a system is found again, and changes no result."""

import copy
import gc
import pickle
import sys
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import loopdyn as ld
from loopdyn.formulations import registry
from loopdyn.integrators.stepper import Stepper
from loopdyn.loops import rank
from loopdyn.loops.elimination import solver
from loopdyn.loops.projection import project
from loopdyn.system.kept import MOST, Kept
from loopdyn.thresholds import CLOSED
from loopdyn.tree import terms
from loopdyn.tree.functions import TreeSolver

SMALL = [name for name in ld.library.ALL if name != "random_mechanism"]
Z = (0, 0, 1)


def closed_states(system, count, seed=0, reach=0.4):
    """Closed states around the reference pose, with speeds that the loops allow."""
    rng, found = np.random.default_rng(seed), []
    for _ in range(20 * count):
        q = ld.tree.increment(system, system.q_reference, reach * system.speed_units * rng.normal(size=system.nv))
        near = ld.State(rng.uniform(0.0, 2.0), q, system.speed_units * rng.normal(size=system.nv))
        made = project(system, near)
        if made.position < CLOSED * min(system.size, 1.0) and made.velocity < 1e-10:
            found.append(made.state)
        if len(found) == count:
            break
    return found


def answer(system, state, formulation="auto"):
    """Accelerations, or the words in which they are refused."""
    try:
        return ld.accelerations(system, state, formulation)
    except ld.LoopdynError as error:
        return str(error)


def same(a, b):
    return a == b if isinstance(a, str) or isinstance(b, str) else np.array_equal(a, b)


def parallelogram(cranks=3, excess=0.0):
    """A plate on equal parallel rods, flat along x where all loops are singular; more than two rods are redundant.

    The second rod is longer by `excess`.
    """
    m = ld.Mechanism("parallelogram", gravity=(0, -9.81, 0))
    plate = m.add_body("plate", ld.Inertia.rod(1.0, (0, 1, 0), (2, 1, 0), radius=0.01))
    for k, x in enumerate(np.linspace(0.0, 2.0, cranks)):
        rod = m.add_body(f"rod{k}", ld.Inertia.rod(0.2, (x, 0, 0), (x, 1, 0), radius=0.01))
        m.add_joint(f"A{k}", ld.Revolute(axis=Z), m.ground, rod, at=(x, 0, 0))
        head, on_plate = ld.Frame(position=(x, 1 + excess * (k == 1), 0)), ld.Frame(position=(x, 1, 0))
        m.add_joint(f"B{k}", ld.Revolute(axis=Z), rod, plate, parent_frame=head, child_frame=on_plate)
    return m


def turned(system, angle, speed=0.0):
    """The parallelogram with all its rods turned by an angle: its plate does not turn."""
    q, v = ({n: s * x for n, s in signs(system).items()} for x in (angle, speed))
    return system.state(q=q, v=v)


def signs(system):
    """How the coordinates of the tree follow the rods: those at the plate turn back."""
    return {name: 1.0 if name.startswith("A") else -1.0 for name in system.coordinates}


class Counter:
    """Counts the calls of functions that decide and prepare."""

    def __init__(self, monkeypatch):
        self.calls = {}
        for module, name in (
            (rank, "_decide"), (rank, "_more_nearby"), (rank, "_without_inertia"), (rank, "of_matrix"),
            (solver, "plan_elimination"), (np.linalg, "svd"), (registry, "_fixed"),
        ):  # fmt: skip
            monkeypatch.setattr(module, name, self.counting(name, getattr(module, name)))

    def counting(self, name, function):
        def call(*values, **named):
            self.calls[name] = self.calls.get(name, 0) + 1
            return function(*values, **named)

        return call


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("name", ["four_bar", "stewart_6ups", "andrews", "bennett"])
def test_accelerations_at_further_states_decide_and_plan_nothing(name, full, monkeypatch):
    system = ld.library.ALL[name]().compile()
    states = closed_states(system, 4, reach=0.05)
    assert len(states) == 4
    ld.accelerations(system, states[0])
    counter = Counter(monkeypatch)
    for state in states:
        ld.accelerations(system, state, full=full)
    assert not counter.calls


def test_preparing_again_decides_and_plans_nothing(monkeypatch):
    system = ld.library.four_bar().compile()
    state = ld.assemble(system, q={"A": 0.3})
    for formulation in ("auto", "graph"):
        ld.prepare(system, formulation, state)
    counter = Counter(monkeypatch)
    for formulation in ("auto", "graph"):
        ld.prepare(system, formulation, state)
    assert not counter.calls


@pytest.mark.parametrize("outputs", [11, 101])
def test_a_second_simulation_decides_and_plans_nothing_and_its_calls_do_not_grow_with_its_outputs(outputs, monkeypatch):
    system = ld.library.four_bar().compile()
    start, times = ld.assemble(system), np.linspace(0.0, 1.0, outputs)
    first = ld.simulate(system, start, (0, 1), t_eval=times, progress=False)
    counter, advances, whole = Counter(monkeypatch), [], Stepper.advance
    monkeypatch.setattr(Stepper, "advance", lambda *given: advances.append(given[-1]) or whole(*given))
    again = ld.simulate(system, start, (0, 1), t_eval=times, progress=False)
    assert not counter.calls
    assert len(advances) <= 2  # compiled calls from the first step to the last: one, and one more if it is long
    work = [(r.statistics.steps, r.statistics.evaluations) for r in (first, again)]
    assert work[0] == work[1]
    np.testing.assert_array_equal(again.path.q, first.path.q)


@pytest.mark.parametrize("name", SMALL)
def test_results_do_not_depend_on_the_calls_before(name):
    m = ld.library.ALL[name]()
    system = m.compile()
    states = closed_states(system, 6)
    order = np.random.default_rng(1).permutation(np.tile(np.arange(len(states)), 2))
    alone = [answer(m.compile(), state) for state in states]
    for k in order:
        assert same(answer(system, states[k]), alone[k])


@pytest.mark.parametrize("name", SMALL)
def test_accelerations_agree_with_the_dense_solution_at_every_pose(name):
    system = ld.library.ALL[name]().compile()
    for state in closed_states(system, 6, seed=2):
        expected, found = answer(system, state, "oracle"), answer(system, state)
        if isinstance(expected, str):
            assert found == expected
        else:
            # rounding, enlarged by the condition of the rows at poses that happen to be beside singular ones
            s = np.linalg.svd(rank.scaled(system, terms(system, state).J), compute_uv=False)
            least = min((x for x in s if x > 1e-7), default=1.0)
            assert np.abs(found - expected).max() <= 1e-10 * (1.0 + np.abs(expected).max()) / least


@pytest.mark.parametrize("cranks", [2, 3])
def test_singular_poses_are_refused_between_regular_ones_in_any_order(cranks):
    m = parallelogram(cranks)
    system = m.compile()
    flat, beside, regular = (turned(system, x, 1.0) for x in (np.pi / 2, np.pi / 2 - 1e-5, 0.3))
    expected = [answer(m.compile(), x) for x in (flat, beside, regular)]
    assert "singular pose" in expected[0]
    assert not isinstance(expected[1], str)
    for k in np.random.default_rng(0).integers(0, 3, 12):
        assert same(answer(system, (flat, beside, regular)[k]), expected[k])
    dense = ld.accelerations(system, regular, "oracle")
    assert np.abs(expected[2] - dense).max() < 1e-12 * np.abs(dense).max()


def prepared_there(m, state):
    """What a solver says at a state that was prepared for it, by a system that has seen no other."""
    try:
        return ld.prepare(m.compile(), "auto", state)(state.t, state.q, state.v).a
    except ld.LoopdynError as error:
        return str(error)


@pytest.mark.parametrize("cranks", [2, 3])
def test_answers_on_the_way_into_a_singular_pose_are_those_of_a_solver_prepared_there(cranks):
    m = parallelogram(cranks)
    system = m.compile()
    for distance in 10.0 ** -np.arange(0.0, 10.0, 0.5):
        state = turned(system, np.pi / 2 - distance, 1.0)
        expected, found = prepared_there(m, state), answer(system, state)
        if isinstance(expected, str):
            assert found == expected
        else:  # rounding, enlarged by the inverse of the smallest singular value
            assert np.abs(found - expected).max() < 1e-14 * (1.0 + np.abs(expected).max()) / distance


def test_poses_closed_by_search_beside_a_singular_pose_have_the_rank_that_is_decided_there():
    """All three modes of two loops meet there, and the rows beyond the first two are dependent to some 1e-7."""
    m = parallelogram(3)
    system, rng, found = m.compile(), np.random.default_rng(0), 0
    for distance in (1e-1, 1e-2, 1e-3, 1e-4):
        for _ in range(8):
            q = turned(system, np.pi / 2).q + distance * rng.normal(size=system.nv)
            made = project(system, ld.State(0.0, q, np.zeros(system.nv)))
            if made.position < 1e-13:
                found += 1
                assert same(answer(system, made.state), prepared_there(m, made.state))
    assert found > 10


def test_open_states_give_what_a_solver_prepared_there_gives():
    system = ld.library.four_bar().compile()
    ld.accelerations(system, ld.assemble(system))
    for gap in (1e-3, 0.1):
        opened = system.state(q={"A": gap}, v={"A": 1.0})
        prepared = ld.prepare(system, "auto", opened)(opened.t, opened.q, opened.v)
        assert np.array_equal(ld.accelerations(system, opened), prepared.a)


def test_states_that_leave_rows_open_are_answered_as_by_a_system_that_has_seen_no_others():
    m = parallelogram(3, excess=1e-6)
    system = m.compile()
    loose = ld.assemble(system, tolerance=1e-5)
    assert loose.tolerated is not None
    exact = ld.State(0.0, loose.q, loose.v)
    expected = [answer(m.compile(), state) for state in (loose, exact)]
    for k in (0, 1, 1, 0, 0, 1):
        assert same(answer(system, (loose, exact)[k]), expected[k])
    dense = ld.accelerations(system, loose, "oracle")
    assert np.abs(expected[0] - dense).max() < 1e-12 * (1.0 + np.abs(dense).max())


def test_drivers_are_followed_at_other_times():
    m = ld.library.four_bar()
    m.add_driver("motor", "A", "0.5*sin(3*t)")
    system = m.compile()
    for t in (0.0, 0.2, 0.7, 0.2, 5.0):
        state = ld.assemble(system, v={}, t=t)
        expected = ld.accelerations(m.compile(), state, "oracle")
        assert np.abs(ld.accelerations(system, state) - expected).max() < 1e-10 * (1.0 + np.abs(expected).max())
        # d2/dt2 of 0.5 sin(3 t)
        crank = system.speeds.index("A")
        assert abs(ld.accelerations(system, state)[crank] + 4.5 * np.sin(3 * t)) < 1e-10


def test_bad_states_are_refused_as_before_after_good_ones():
    system = ld.library.four_bar().compile()
    state = ld.assemble(system)
    ld.accelerations(system, state)
    for bad in (np.nan, np.inf):
        with pytest.raises(ld.errors.ModelError, match=r"Give finite numbers"):
            ld.accelerations(system, ld.State(0.0, state.q + bad, state.v))
    with pytest.raises(ld.LoopdynError, match="there is no formulation"):
        ld.accelerations(system, state, "grap")


def test_results_are_the_arrays_of_the_caller():
    system = ld.library.four_bar().compile()
    one, two = ld.assemble(system, v={"A": 1.0}), ld.assemble(system, v={"A": 2.0})
    for full in (False, True):
        a = ld.accelerations(system, one, full=full)
        kept = copy.deepcopy(a)
        ld.accelerations(system, two, full=full)
        assert (np.array_equal(a.a, kept.a) and np.array_equal(a.lam, kept.lam)) if full else np.array_equal(a, kept)


@pytest.mark.parametrize("name", ["four_bar", "stewart_6ups"])
def test_threads_give_the_serial_results_bit_for_bit(name):
    m = ld.library.ALL[name]()
    system, serial = m.compile(), m.compile()
    states = closed_states(system, 8, reach=0.1) * 25
    expected = [ld.accelerations(serial, s) for s in states]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for threads in (2, 8):
            with ThreadPoolExecutor(threads) as pool:
                found = list(pool.map(lambda s: ld.accelerations(system, s), states))
            assert all(np.array_equal(a, b) for a, b in zip(expected, found, strict=True))
    finally:
        sys.setswitchinterval(before)


def test_a_solver_that_two_threads_use_at_once_raises():
    """Kernels release the GIL: two threads would write to one work array, and both results would be wrong."""
    system = ld.library.star_ladder(300).compile()
    state = ld.assemble(system)
    solvers = [ld.prepare(system, "graph", state), TreeSolver(system)]
    for solve in solvers:
        expected = np.array(getattr(solve(state.t, state.q, state.v), "a", solve(state.t, state.q, state.v)))
        with solve._free, pytest.raises(ld.LoopdynError, match="two threads at once"):
            solve(state.t, state.q, state.v)
        found = solve(state.t, state.q, state.v)  # it is free again
        assert np.array_equal(getattr(found, "a", found), expected)


def test_copies_and_pickles_do_not_carry_what_is_kept():
    system = ld.library.four_bar().compile()
    empty = len(pickle.dumps(system))
    state = ld.assemble(system)
    a = ld.accelerations(system, state)
    assert len(pickle.dumps(system)) == empty
    for other in (copy.copy(system), pickle.loads(pickle.dumps(system))):
        assert "kept" not in vars(other)
        assert np.array_equal(ld.accelerations(other, state), a)
        assert other != system


def test_a_system_that_nobody_uses_is_freed():
    system = ld.library.four_bar().compile()
    ld.reactions(system, ld.assemble(system))
    known = weakref.ref(system)
    del system
    gc.collect()
    assert known() is None


def test_what_is_kept_is_bounded():
    kept = Kept()
    for k in range(10 * MOST):
        kept.find("number", k, lambda k=k: k)
        for thing in range(2 * MOST):
            kept.give(k, thing)
    assert {kind: len(entries) for kind, entries in kept._found.items()} == {"number": MOST, "idle": MOST}
    assert {len(pool) for pool in kept._found["idle"].values()} == {MOST}


def test_options_without_a_hash_are_possible():
    system = ld.library.four_bar().compile()
    state = ld.assemble(system)
    method = ld.Partition(independent=["A"])
    for _ in range(2):
        assert np.abs(ld.accelerations(system, state, method) - ld.accelerations(system, state)).max() < 1e-12
