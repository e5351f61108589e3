"""The solver of contacts: what is computed where, how it grows, and what happens where a solver fails."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from tests.unit.test_stops import ball

import loopdyn as ld
from loopdyn.contacts import Stop
from loopdyn.loops import free_motion as fm
from loopdyn.loops.one_sided import ContactState
from loopdyn.run.contacts import Contacts
from loopdyn.run.locking import Phase, as_it_is, compiled
from loopdyn.system.sides import sides_of

G = 9.81
Z = (0, 0, 1)


def chain(count: int) -> ld.System:
    """Links of 0.1 m and 0.1 kg on pins, in a row; the last one has a stop at 0.5 rad."""
    m = ld.Mechanism("chain", gravity=(0, -G, 0))
    parent = m.ground
    for k in range(count):
        start, end = (0.1 * k, 0, 0), (0.1 * (k + 1), 0, 0)
        name = m.add_body(f"b{k}", ld.Inertia.rod(mass=0.1, start=start, end=end))
        m.add_joint(f"J{k}", ld.Revolute(axis=Z), parent, name, at=start)
        parent = name
    m.add_contact("stop", Stop(joint=f"J{count - 1}", upper=0.5, restitution=0.5))
    m.add_contact("first", Stop(joint="J0", lower=0.0, restitution=0.5))
    return m.compile()


def at_stop(system: ld.System) -> ld.State:
    """The last link at its stop and turning into it, the others at random speeds."""
    v = np.random.default_rng(1).normal(size=system.nv)
    v[-1], v[0] = 3.0, -1.0
    q = np.zeros(system.nq)
    q[-1] = 0.5
    return system.state(q, v)


def test_responses_by_elimination_are_those_of_dense_matrices():
    """Five windows of bars: both ways at a state in motion, rows of gaps and random ones."""
    system = ld.library.n_four_bar(5).compile()
    state = ld.assemble(system, q={"A0": 0.5}, v={"A0": 1.5})
    rows = np.random.default_rng(0).normal(size=(3, system.nv))
    dense, sparse = fm._Dense(system, state), fm._Sparse(system, state)
    np.testing.assert_allclose(sparse.a, dense.a, atol=1e-11 * np.abs(dense.a).max())
    expected = dense.respond(rows)
    # condition of the loops times rounding
    np.testing.assert_allclose(sparse.respond(rows), expected, atol=1e-11 * np.abs(expected).max())
    assert sparse.movable(rows, expected).all()
    assert dense.movable(rows, expected).all()
    assert sparse.pushed == pytest.approx(dense.pushed, rel=1e-11)
    assert sparse.twice_kinetic == pytest.approx(dense.twice_kinetic, rel=1e-11)


def test_both_ways_know_what_the_loops_hold():
    """All coordinates of a driven four-bar are given, those of a free one are not."""
    m = ld.library.four_bar()
    free = m.compile()
    m.add_driver("motor", "A", "0.3*t")
    driven = m.compile()
    for system, held in ((driven, True), (free, False)):
        state = ld.assemble(system, v={"A": 0.3})
        for kind in (fm._Dense, fm._Sparse):
            found, rows = kind(system, state), np.eye(system.nv)
            np.testing.assert_array_equal(found.movable(rows, found.respond(rows)), not held)


def test_an_impact_of_a_long_chain_is_that_of_dense_matrices(monkeypatch):
    """200 links: speeds after the impact of two stops, by the elimination and by dense matrices."""
    system = chain(200)
    state, found = at_stop(system), []
    for large in (True, False):
        monkeypatch.setattr(fm, "takes_sparse_steps", lambda s, large=large: large)
        found.append(ContactState(system, system, sides_of(system), state).simultaneous([0, 1]))
    np.testing.assert_allclose(found[0].v, found[1].v, atol=1e-8 * np.abs(found[1].v).max())
    np.testing.assert_allclose(found[0].impulse, found[1].impulse, rtol=1e-8)
    # Newton's law: the speeds of both gaps are reversed by one half
    assert found[0].v[-1] == pytest.approx(-1.5, rel=1e-8)
    assert found[0].v[0] == pytest.approx(0.5, rel=1e-8)


def test_memory_of_an_impact_grows_with_the_number_of_bodies():
    """Peak of one impact of 200, 400 and 800 links: twice the links take at most 2.3 times; dense, it is 4 times."""
    peaks = []
    for count in (200, 400, 800):
        system = chain(count)
        sides, state = sides_of(system), at_stop(system)
        ContactState(system, system, sides, state).simultaneous([0, 1])  # what is prepared once
        tracemalloc.start()
        ContactState(system, system, sides, state).simultaneous([0, 1])
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 2.3 * peaks[0]
    assert peaks[2] < 2.3 * peaks[1]


def test_one_evaluation_for_each_contact(monkeypatch):
    """Work of a change of contacts: two evaluations of the elimination for each closed side, and one."""
    system, count = chain(200), [0]
    state, sides = at_stop(system), sides_of(system)
    ContactState(system, system, sides, state)
    original = fm.accelerate

    def counted(*arrays):
        count[0] += 1
        return original(*arrays)

    monkeypatch.setattr(fm, "accelerate", counted)
    for closed in ([0], [0, 1]):
        count[0] = 0
        ContactState(system, system, sides, state, closed)
        assert count[0] == 1 + 2 * len(closed)


@pytest.mark.jit_off
def test_what_pulls_is_known_where_the_solver_fails():
    """A ball on the floor is lifted by a force a little above its weight: it is let go, whatever the solver says."""
    m = ball(0.5).mechanism
    m.add_motor("lift", "z", force=2.0 * G * (1 + 2e-10))
    system = m.compile()
    contacts = Contacts(system, lambda: None)

    class Fails:
        def __call__(self, t, q, v):
            raise ld.errors.SingularityError("no forces")

    contacts.adapt = lambda: as_it_is
    phase = compiled(system, Phase(system, touching=("floor",)))
    contacts.watched(phase, Fails, system.state())
    contacts._forces.pull = 1e-10 * G * np.sqrt(2.0)  # of a part that moves in other directions
    at = contacts._at(phase, system.state(), [0])
    assert at.pulled([0], 0.5 * contacts._forces.pull) == [0]


@pytest.mark.jit_off
def test_forces_of_rows_that_depend_on_each_other_do_not_tell_what_pulls():
    """Two stops of one coordinate at the same bound: one force of many; complementarity decides, one is implied."""
    m = ball(0.5).mechanism
    m.add_contact("again", Stop(joint="z", lower=0.0, restitution=0.5))
    system = m.compile()
    run = ld.simulate(system, system.state(), (0, 1), progress=False)
    assert (run["z"] == 0.0).all()
    total = run["floor.force"].values + run["again.force"].values
    np.testing.assert_allclose(total, 2.0 * G, rtol=1e-12)
    assert run["floor.force"].attrs.get("indeterminate") or run["again.force"].attrs.get("indeterminate")
