"""Reactions along a path: the compiled pass gives what the general way gives at each state, and is all that is done."""

from __future__ import annotations

import numpy as np
import pytest

import loopdyn as ld
from loopdyn.loops import reactions_along as along
from loopdyn.loops.reactions_along import States, reactions_along
from loopdyn.loops.reactions_balance import Balance
from loopdyn.results import run as run_module


def states_of(system, count=6):
    """Closed states of a short run, with accelerations."""
    run = ld.simulate(system, ld.assemble(system), (0, 0.1), t_eval=np.linspace(0, 0.1, count), progress=False)
    p, k = run.path, np.flatnonzero(~run.unbounded)
    return States(p.t[k], p.q[k], p.v[k], p.a[k])


@pytest.mark.parametrize("name", sorted(ld.library.ALL))
def test_the_compiled_pass_gives_what_sparse_matrices_give_at_each_state(name):
    system = ld.library.ALL[name]().compile()
    path = states_of(system)
    found, general = reactions_along(system, path), Balance(system)
    assert found.rows == general.others
    for k in range(len(path.t)):
        state = ld.State(float(path.t[k]), path.q[k], path.v[k])
        load = general.loads(state, path.a[k])
        wrench, unique, others, _ = general.distribute(state, load, system.size, None)
        # forces of the solvers' rounding: accelerations agree to 1e-11, so loads and what balances them do
        size = max(np.abs(load).max(), np.abs(wrench).max(initial=0.0))
        np.testing.assert_allclose(found.wrench[k], wrench, atol=1e-9 * size)
        np.testing.assert_allclose(found.multipliers[k], others, atol=1e-9 * size)
        np.testing.assert_array_equal(found.unique[k], unique)
        assert found.residual[k] <= 1e-9 * size
    assert not found.one_by_one.any()


def test_compliances_and_motor_loads_are_those_of_the_general_way():
    system = ld.library.stewart_6ups().compile()
    path, general = states_of(system, 3), Balance(system)
    joint, speed = general.names[0], system.speeds[0]
    loads, soft = {speed: np.array([1.0, -2.0, 3.0])}, {joint: [1, 2, 3, 4, 5, 6]}
    found = reactions_along(system, path, loads, compliance=soft)
    for k in range(3):
        state = ld.State(float(path.t[k]), path.q[k], path.v[k])
        load = general.loads(state, path.a[k]) - general.of_motors({speed: float(loads[speed][k])})
        wrench = general.distribute(state, load, system.size, soft).wrench
        np.testing.assert_allclose(found.wrench[k], wrench, atol=1e-9 * np.abs(wrench).max())


@pytest.mark.parametrize("outputs", [11, 101])
def test_calls_do_not_grow_with_the_number_of_outputs(outputs, monkeypatch):
    """Compiled calls and general ones are counted; nothing is timed."""
    system = ld.library.four_bar().compile()
    start, times = ld.assemble(system), np.linspace(0, 1, outputs)
    run = ld.simulate(system, start, (0, 1), t_eval=times, progress=False)
    calls, whole = [], along.distribute_along
    monkeypatch.setattr(along, "distribute_along", lambda *given: (calls.append(len(given[4])), whole(*given))[1])
    monkeypatch.setattr(Balance, "distribute", None)
    assert np.isfinite(run.data["wrench"].values).all()
    assert calls == [1, outputs]  # the first state tells whether rows are redundant


def test_a_variable_computes_no_others(monkeypatch):
    system = ld.library.four_bar().compile()
    run = ld.simulate(system, ld.assemble(system), (0, 0.1), t_eval=np.linspace(0, 0.1, 3), progress=False)
    passes = []
    for name in ("reactions_along", "measure"):
        whole = getattr(run_module, name)
        monkeypatch.setattr(run_module, name, lambda *a, n=name, f=whole: (passes.append(n), f(*a))[1])
    for name in ("q", "v", "a", "steps"):
        assert run.data[name].values.size
    assert "wrench" in str(run.data)
    assert passes == []
    energy = run.data["energy_kinetic"].values
    assert passes == ["measure"]
    run.data["momentum"].load()
    assert passes == ["measure"]
    run.data.load()
    assert passes == ["measure", "reactions_along"]
    np.testing.assert_array_equal(run.data["energy_kinetic"].values, energy)


def test_printing_a_run_computes_no_reactions_and_saving_it_computes_them_once(monkeypatch, tmp_path):
    system = ld.library.four_bar().compile()
    run = ld.simulate(system, ld.assemble(system), (0, 0.1), t_eval=np.linspace(0, 0.1, 3), progress=False)
    passes, whole = [], run_module.reactions_along
    monkeypatch.setattr(run_module, "reactions_along", lambda *given: (passes.append(given), whole(*given))[1])
    assert "finished" in str(run)
    assert "wrench" in run.data._repr_html_() + str(run.data)
    assert passes == []
    run.save(tmp_path / "run.nc")  # everything: the file has the reactions
    run.save(tmp_path / "again.nc")
    assert len(passes) == 1
    np.testing.assert_array_equal(ld.load_run(tmp_path / "run.nc").data["wrench"].values, run.data["wrench"].values)


def test_what_is_written_into_the_dataset_stays_there():
    system = ld.library.pendulum().compile()
    run = ld.simulate(system, system.state(), (0, 0.1), t_eval=[0, 0.1], progress=False)
    before = run.wrench[0].copy()
    run.data["wrench"].values[:] = 7.0
    np.testing.assert_array_equal(run.wrench[0], before)
