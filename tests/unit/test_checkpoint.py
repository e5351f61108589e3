"""Checkpoints: a run that is killed goes on, and equals the run that was not."""

import importlib
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import loopdyn as ld
from loopdyn.elimination.solver import Elimination

module = importlib.import_module("loopdyn.simulate")  # the function of this name hides it

SCRIPT = """
import sys
import importlib
module = importlib.import_module("loopdyn.simulate")
module.SAVE_EVERY, module.PULSE = 0.0, 0.005
sys.path.insert(0, sys.argv[2])
from test_checkpoint import run_pendulum
run_pendulum(sys.argv[1], until=float(sys.argv[3]))
"""


def run_pendulum(folder=None, integrator=None, until: float = 20.0, events=()) -> ld.Run:
    """Long enough to be killed in the middle of it."""
    system = ld.library.pendulum().compile()
    times = np.linspace(0.0, until, 401)
    integrator = integrator or ld.RK4(step=2.5e-5)
    return ld.simulate(system, system.state(), (0, until), t_eval=times, integrator=integrator, events=events,
                       checkpoint=folder, progress=False)  # fmt: skip


def arrays(run: ld.Run) -> tuple[np.ndarray, ...]:
    p = run.path
    return p.t, p.q, p.v, p.a, p.work, p.steps


def segments(folder: Path) -> int:
    return len(list(folder.glob("segment_*.npz")))


def start_and_kill(folder: Path, after: float, until: float) -> bool:
    """Kill a process `after` seconds behind its next segment; False if it was done before."""
    command = [sys.executable, "-c", SCRIPT, str(folder), str(Path(__file__).parent), str(until)]
    process = subprocess.Popen(command, env=os.environ)
    before, limit = segments(folder), time.monotonic() + 120.0
    while segments(folder) == before and process.poll() is None:
        assert time.monotonic() < limit
        time.sleep(0.005)
    time.sleep(after)
    done = process.poll() is not None
    process.kill()
    process.wait()
    return not done


def check_kills(folder: Path, number: int, seed: int, until: float) -> None:
    whole = run_pendulum(until=until)  # first, so that the kernels are compiled before anything is killed
    rng = np.random.default_rng(seed)
    kills, seen = 0, 0
    while kills < number:
        if not start_and_kill(folder, float(rng.uniform(0.0, 0.03)), until):
            break
        kills += 1
        assert segments(folder) > seen  # nothing is lost, each process adds to it
        seen = segments(folder)
    assert kills == number  # the run is long enough to be killed so often
    resumed = run_pendulum(folder, until=until)
    assert resumed.status == "finished"
    for a, b in zip(arrays(resumed), arrays(whole), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_run_that_is_killed_three_times_equals_the_whole_one_bit_for_bit(tmp_path):
    check_kills(tmp_path / "run", 3, 1, until=10.0)


@pytest.mark.slow
def test_a_run_can_be_killed_twenty_times(tmp_path):
    check_kills(tmp_path / "run", 20, 2, until=60.0)


@pytest.mark.parametrize("integrator", [ld.DOP853(), ld.RK4(step=1e-3)])
def test_an_interrupted_run_keeps_its_results_and_goes_on(tmp_path, interrupt_at, integrator):
    """Ctrl-C in the middle, twice; adaptive steps are stored too, so even they go on bit for bit."""
    whole = run_pendulum(integrator=integrator, until=10.0)
    for stop in (20, 200):
        interrupt_at(stop)
        run = run_pendulum(tmp_path / "run", integrator, until=10.0)
        if run.status == "finished":
            break
        assert run.status == "interrupted"
        n = len(run.path)
        np.testing.assert_array_equal(run.path.q, whole.path.q[:n])
    interrupt_at(0)
    resumed = run_pendulum(tmp_path / "run", integrator, until=10.0)
    for a, b in zip(arrays(resumed), arrays(whole), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    ("integrator", "drift"),
    [(ld.RK4(step=2e-3), "projection"), (ld.DOP853(), "projection"), (ld.RK4(step=1e-2), "velocity")],
    ids=["rk4", "dop853", "driven from Python"],
)
def test_a_run_goes_on_bit_for_bit_where_the_solver_has_chosen_its_rows_anew(
    tmp_path, monkeypatch, interrupt_at, integrator, drift
):
    """A Bennett linkage, of whose loop three rows depend on others: which ones are left out changes as it turns."""
    system = ld.library.bennett().compile()
    state, times = ld.assemble(system, v={"P1": 6.0}), np.linspace(0.0, 1.0, 51)
    choices = []
    choose = Elimination.choose
    monkeypatch.setattr(Elimination, "choose", lambda self, *given: choices.append(1) or choose(self, *given))

    def run(folder=None) -> ld.Run:
        return ld.simulate(system, state, (0, 1), t_eval=times, formulation="graph", integrator=integrator,
                           drift=drift, checkpoint=folder, progress=False)  # fmt: skip

    whole = run()
    assert len(choices) >= 3  # at the start, and twice on the way
    steps = whole.statistics.steps
    for stop in (steps // 2, steps // 4):  # behind choices
        interrupt_at(stop)
        assert run(tmp_path / "run").status == "interrupted"
    interrupt_at(0)
    for a, b in zip(arrays(run(tmp_path / "run")), arrays(whole), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", ["partition", "closure", pytest.param("rcr", marks=pytest.mark.slow)])
@pytest.mark.parametrize("integrator", [ld.RK4(step=2e-3), ld.DOP853()], ids=["rk4", "dop853"])
def test_minimal_coordinates_go_on_bit_for_bit_through_switches_and_constraint_changes(
    tmp_path, interrupt_at, name, integrator
):
    """Coordinates that are exchanged on the way, then a lock of one of two freedoms; stopped in every part."""
    system = ld.library.five_bar().compile()
    state = ld.assemble(system, v={"A": 6.0, "E": -3.0})
    events = [ld.At(0.7, "lock", action=ld.Lock("E"))]
    kind = {"partition": ld.Partition, "closure": ld.Closure, "rcr": ld.Rcr}[name]
    options = kind(candidates=["A", "B", "E"])

    def run(folder=None) -> ld.Run:
        return ld.simulate(system, state, (0, 1), t_eval=np.linspace(0, 1, 51), formulation=options, rtol=1e-9,
                           integrator=integrator, events=events, checkpoint=folder, progress=False)  # fmt: skip

    whole = run()
    assert whole.status == "finished", whole.message
    assert sum("independent" in e.name for e in whole.events) >= 2
    steps = whole.statistics.steps
    for stop in (steps // 3, steps // 3, steps // 4):
        interrupt_at(stop)
        assert run(tmp_path / "run").status == "interrupted"
    interrupt_at(0)
    resumed = run(tmp_path / "run")
    for a, b in zip(arrays(resumed), arrays(whole), strict=True):
        np.testing.assert_array_equal(a, b)
    assert [e.name for e in resumed.events] == [e.name for e in whole.events]
    np.testing.assert_array_equal(resumed.active, whole.active)
    assert resumed.settings["formulation"] == whole.settings["formulation"]


def test_events_survive_an_interruption(tmp_path, monkeypatch, interrupt_at):
    events = [ld.Crossing(lambda t, q, v: q[0] - np.pi / 2, "lowest")]
    options = {"integrator": ld.DOP853(), "until": 5.0, "events": events}
    whole = run_pendulum(**options)
    monkeypatch.setattr(module, "SAVE_EVERY", 0.0)
    interrupt_at(30)
    assert run_pendulum(tmp_path / "run", **options).status == "interrupted"
    resumed = run_pendulum(tmp_path / "run", **options)
    assert [e.t for e in resumed.events] == [e.t for e in whole.events]


def test_a_finished_run_is_read_and_not_computed_again(tmp_path):
    first = run_pendulum(tmp_path / "run", ld.DOP853(), until=2.0)
    again = run_pendulum(tmp_path / "run", ld.DOP853(), until=2.0)
    assert again.status == "finished"
    assert again.statistics.evaluations == first.statistics.evaluations
    np.testing.assert_array_equal(again.path.q, first.path.q)


def test_a_folder_of_another_simulation_is_refused(tmp_path):
    run_pendulum(tmp_path / "run", ld.DOP853(), until=1.0)
    with pytest.raises(ld.LoopdynError, match="t_eval, t_span differ"):
        run_pendulum(tmp_path / "run", ld.DOP853(), until=2.0)
