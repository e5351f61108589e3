"""Large systems: sparse steps and the mobility that rests on them, judged by the dense ones."""

from __future__ import annotations

import numpy as np
import pytest

import loopdyn as ld
from loopdyn.analysis import mobility as mobility_module
from loopdyn.loops import projection, sparse_steps
from loopdyn.loops.projection import metric, smallest_step
from loopdyn.loops.sparse_steps import OwnRow, sparse_rows

# Of the largest entry of a step. Both solve the same equations; singular values of the library's rows are above 1e-3,
# and the sparse equations lose as many digits as their square has.
SAME = 1e-8
CLOSED = [name for name, build in ld.library.ALL.items() if build().compile().nc]


def beside(system, rng):
    """A state beside the reference pose, loops open."""
    step = 1e-2 * rng.normal(size=system.nv) * system.speed_units
    return ld.State(0.0, ld.tree.increment(system, system.q_reference, step), rng.normal(size=system.nv))


@pytest.fixture
def nothing_dense(monkeypatch):
    """Dense matrices of a system raise."""

    def refuse(*_args):
        raise AssertionError("a dense matrix was made")

    for module, names in (
        (projection, ("terms", "open_tree_mass_matrix", "constraint_equations")),
        (mobility_module, ("terms", "joint_rank", "free_terms")),
    ):
        for name in names:
            monkeypatch.setattr(module, name, refuse)


@pytest.mark.parametrize("name", CLOSED)
def test_sparse_steps_are_the_smallest_ones_of_the_dense_equations(name):
    system, rng = ld.library.ALL[name]().compile(), np.random.default_rng(0)
    state = beside(system, rng)
    now, rows, units = ld.terms(system, state), sparse_rows(system, state), system.row_units
    assert np.abs(rows.phi - now.phi / units).max() < 1e-12
    assert np.abs(rows.rate - (now.J @ state.v + now.phi_t) / units).max() < 1e-9
    r = now.J @ rng.normal(size=system.nv) / units  # a residual that a step can remove
    dense = smallest_step(now.J / units[:, None], r, metric(now.M)) / system.speed_units
    step, missing = rows.step(r)
    assert np.abs(step - dense).max() < SAME * np.abs(dense).max()
    assert np.abs(missing).max() < 1e-12
    assert np.abs(rows.times(step) + r).max() < 1e-10


def test_rows_of_freedoms_are_their_rates():
    system = ld.library.four_bar().compile()
    state = ld.assemble(system, q={"A": 0.3}, v={"A": 2.0})
    j, k, *_ = system.labels.speeds["C"]  # the cut joint
    rows = sparse_rows(system, state, [OwnRow(j, k, 1.0)])
    angle = {x: ld.assemble(system, q={"A": 0.3 + x}).q for x in (-1e-4, 1e-4)}
    motions = [ld.tree.body_motion(system, ld.State(0.0, q, 0 * state.v)) for q in angle.values()]
    one, other = (ld.tree.functions.joint_coordinates(j, motion)[k] for motion in motions)
    rate = (other - one) / 2e-4 * 2.0  # central differences: error of the second order, 1e-8
    assert abs(rows.times(state.v / system.speed_units)[-1] - rate) < 1e-6


@pytest.mark.parametrize("name", ["four_bar", "tower", "star_ladder", "stewart_6ups", "delta_robot"])
def test_an_assembly_by_sparse_steps_is_that_of_dense_ones(name, monkeypatch):
    system = ld.library.ALL[name]().compile()
    dense = ld.assemble(system)
    monkeypatch.setattr(sparse_steps, "LARGEST_DENSE_STEP", -1)
    sparse = ld.assemble(system)
    assert np.abs(sparse.q - dense.q).max() < 1e-9
    assert np.abs(sparse.v - dense.v).max() < 1e-7 * max(1.0, np.abs(dense.v).max())
    assert sparse.note == dense.note


def test_a_search_by_sparse_steps_finds_the_closures_of_dense_ones(monkeypatch):
    system = ld.library.four_bar().compile()
    monkeypatch.setattr(sparse_steps, "LARGEST_DENSE_STEP", -1)
    found = ld.assemble(system, q={"A": 0.3}, search=True)
    assert found.note == "nearest of 2 closures found from 60 starts"  # a four-bar has two assembly modes


@pytest.mark.usefixtures("nothing_dense")
def test_a_large_ladder_is_assembled_and_judged_without_dense_matrices():
    system = ld.library.star_ladder(140).compile()
    state = ld.assemble(system)
    found = ld.mobility(system, state)
    assert (found.dof, found.redundant, found.verdict, found.idle) == (2, 0, "regular", ())
    assert found.rank == found.rows == 6 * system.nb - 2
    assert found.gap > 1e3


def test_the_entries_of_the_equations_grow_with_the_number_of_bodies():
    for build in (ld.library.star_ladder, ld.library.tower):
        each = []
        for L in (20, 40):
            system = build(L).compile()
            rows = sparse_rows(system, system.state())
            each.append((rows.matrix.nnz + rows._parts[1].nnz) / system.nb)
        assert each[1] == pytest.approx(each[0], rel=0.05)  # the ends of a ladder differ from its middle


def verdict(found):
    """All that mobility() decides."""
    numbers = (found.dof, found.dof_here, found.redundant, found.redundant_here, found.rank, found.rows, found.grubler)
    return (*numbers, found.idle, found.verdict, found.dependent, found.unique)


def same_verdicts(system, monkeypatch):
    state = ld.assemble(system)
    dense = verdict(ld.mobility(system, state))
    with monkeypatch.context() as patch:
        patch.setattr(sparse_steps, "LARGEST_DENSE_STEP", -1)
        assert verdict(ld.mobility(system, state)) == dense


@pytest.mark.parametrize("name", sorted(ld.library.ALL))
def test_mobility_by_sparse_steps_has_the_verdicts_of_dense_ones(name, monkeypatch):
    same_verdicts(ld.library.ALL[name]().compile(), monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 500, 50))
def test_mobility_of_random_mechanisms_has_the_verdicts_of_dense_steps(first, monkeypatch):
    for seed in range(first, first + 50):
        m = ld.library.random_mechanism(seed, bodies=3 + seed % 6, loops=1 + seed % 3)
        same_verdicts(m.compile(), monkeypatch)
