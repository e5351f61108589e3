"""Checkpoints: a run that is killed goes on, and equals the run that was not."""

import dataclasses
import functools
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import loopdyn as ld
from loopdyn.engine.contents import content_digest
from loopdyn.integrators import memory
from loopdyn.loops.elimination.solver import Elimination
from loopdyn.run import driver, progress
from loopdyn.run.restart import Checkpoint

SCRIPT = """
import sys
from loopdyn.run import driver, progress
driver.SAVE_EVERY, progress.PULSE = 0.0, 0.005
sys.path.insert(0, sys.argv[2])
from test_checkpoint import run_pendulum
run_pendulum(sys.argv[1], until=float(sys.argv[3]))
"""


def run_pendulum(folder=None, integrator=None, until: float = 20.0, events=()) -> ld.Run:
    """Long enough to be killed in the middle of it."""
    system = ld.library.pendulum().compile()
    times = np.linspace(0.0, until, 401)
    integrator = integrator or ld.integrators.RK4(step=2.5e-5)
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


@pytest.mark.parametrize("integrator", [ld.integrators.DOP853(), ld.integrators.RK4(step=1e-3)])
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
    [
        (ld.integrators.RK4(step=2e-3), "projection"),
        (ld.integrators.DOP853(), "projection"),
        (ld.integrators.RK4(step=1e-2), "velocity"),
    ],
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
@pytest.mark.parametrize("integrator", [ld.integrators.RK4(step=2e-3), ld.integrators.DOP853()], ids=["rk4", "dop853"])
def test_minimal_coordinates_go_on_bit_for_bit_through_switches_and_constraint_changes(
    tmp_path, interrupt_at, name, integrator
):
    """Coordinates that are exchanged on the way, then a lock of one of two freedoms; stopped in every part."""
    system = ld.library.five_bar().compile()
    state = ld.assemble(system, v={"A": 6.0, "E": -3.0})
    events = [ld.events.At(0.7, "lock", action=ld.events.Lock("E"))]
    kind = {"partition": ld.Partition, "closure": ld.Closure, "rcr": ld.Rcr}[name]
    options = kind(candidates=["A", "B", "E"])

    def run(folder=None) -> ld.Run:
        return ld.simulate(system, state, (0, 1), t_eval=np.linspace(0, 1, 51), formulation=options, rtol=1e-9,
                           integrator=integrator, events=events, checkpoint=folder, progress=False)  # fmt: skip

    whole = run()
    assert whole.status == "finished", whole.message
    assert sum(e.kind == "coordinate switch" for e in whole.events) >= 2
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
    events = [ld.events.Crossing(lambda t, q, v: q[0] - np.pi / 2, "lowest")]
    options = {"integrator": ld.integrators.DOP853(), "until": 5.0, "events": events}
    whole = run_pendulum(**options)
    monkeypatch.setattr(driver, "SAVE_EVERY", 0.0)
    interrupt_at(30)
    assert run_pendulum(tmp_path / "run", **options).status == "interrupted"
    resumed = run_pendulum(tmp_path / "run", **options)
    assert [e.t for e in resumed.events] == [e.t for e in whole.events]


def test_a_finished_run_is_read_and_not_computed_again(tmp_path):
    first = run_pendulum(tmp_path / "run", ld.integrators.DOP853(), until=2.0)
    again = run_pendulum(tmp_path / "run", ld.integrators.DOP853(), until=2.0)
    assert again.status == "finished"
    assert again.statistics.evaluations == first.statistics.evaluations
    np.testing.assert_array_equal(again.path.q, first.path.q)


def test_a_folder_of_another_simulation_is_refused(tmp_path):
    run_pendulum(tmp_path / "run", ld.integrators.DOP853(), until=1.0)
    with pytest.raises(ld.LoopdynError, match="t_eval, t_span differ"):
        run_pendulum(tmp_path / "run", ld.integrators.DOP853(), until=2.0)


# ----------------------------------------------------------------------------------------- what it belongs to


def run_with_force(folder: Path, function) -> ld.Run:
    m = ld.library.pendulum()
    m.add_force("push", ld.forces.UserForce(function=function))
    system = m.compile()
    return ld.simulate(system, system.state(), (0, 0.1), t_eval=[0, 0.1], progress=False, checkpoint=folder)


def run_with_events(folder: Path, *events) -> ld.Run:
    return run_pendulum(folder, ld.integrators.DOP853(), until=0.5, events=events)


def constant(torque):
    def push(t, q, v, out):
        out[0] += torque

    return push


def test_a_user_force_with_another_closure_is_another_simulation(tmp_path):
    first = run_with_force(tmp_path / "run", constant(0.0))
    with pytest.raises(ld.LoopdynError, match="belongs to another simulation: user force 'push' differ"):
        run_with_force(tmp_path / "run", constant(50.0))
    again = run_with_force(tmp_path / "run", constant(0.0))  # another function object with the same content
    assert again.statistics.evaluations == first.statistics.evaluations


@dataclasses.dataclass
class Controller:
    gain: float

    def __call__(self, t, q, v, out):
        out[0] -= self.gain * q[0]


class PlainController:
    def __init__(self, gain: float):
        self.gain = gain

    def act(self, t, q, v, out):
        out[0] -= self.gain * q[0]


GAIN = [1.0]


def push_by_global(t, q, v, out):
    out[0] -= GAIN[0] * q[0]


@pytest.mark.parametrize(
    "kind",
    [
        Controller,
        lambda g: PlainController(g).act,
        lambda g: functools.partial(np.multiply, g),
        lambda g: functools.cache(lambda t: g * t),
    ],
)
def test_functions_differ_by_the_data_they_carry(kind):
    assert content_digest(kind(1.0)) == content_digest(kind(1.0))
    assert content_digest(kind(1.0)) != content_digest(kind(2.0))


def test_functions_differ_by_the_globals_they_read(monkeypatch):
    before = content_digest(push_by_global)
    monkeypatch.setattr(sys.modules[__name__], "GAIN", [2.0])
    assert content_digest(push_by_global) != before


def test_a_digest_is_equal_in_another_process(tmp_path):
    """Once compiled by this process, once read from the file that Python keeps beside the source."""
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import test_checkpoint as m; "
        "print(m.content_digest([m.constant(2.0), m.Controller(1.0), {'b', 'a'}, m.push_by_global]))"
    )
    command = [sys.executable, "-c", code, str(Path(__file__).parent)]
    said = [subprocess.run(command, capture_output=True, text=True, check=True).stdout for _ in range(2)]
    assert said[0] == said[1]


def test_what_cannot_be_compared_is_refused_by_name(tmp_path):
    with (tmp_path / "log").open("w") as log, pytest.raises(ld.LoopdynError, match="user force 'push': it uses an obj"):
        run_with_force(tmp_path / "run", lambda t, q, v, out: log.write("x"))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (ld.events.At(0.1, "early"), ld.events.At(0.2, "early")),
        (ld.events.At(0.1, "early"), ld.events.At(0.1, "late")),
        (ld.events.At(0.1, "e"), ld.events.At(0.1, "e", action=lambda state: state)),
        (ld.events.Crossing(lambda t, q, v: q[0] - 0.1, "e"), ld.events.Crossing(lambda t, q, v: q[0] - 0.2, "e")),
        (
            ld.events.Crossing("a - 0.1", "e", coordinates={"a": "A"}),
            ld.events.Crossing("a - 0.2", "e", coordinates={"a": "A"}),
        ),
        (ld.events.Crossing("t - 0.1", "e"), ld.events.Crossing("t - 0.1", "e", direction=1)),
        (lambda t, q, v: q[0] - 0.1, lambda t, q, v: q[0] - 0.2),
    ],
)
def test_events_of_the_same_type_with_other_data_are_another_simulation(tmp_path, first, second):
    run_with_events(tmp_path / "run", first)
    with pytest.raises(ld.LoopdynError, match="belongs to another simulation: event 1"):
        run_with_events(tmp_path / "run", second)
    assert run_with_events(tmp_path / "run", first).status == "finished"


def test_other_tolerances_and_options_are_another_simulation(tmp_path):
    run_pendulum(tmp_path / "run", ld.integrators.DOP853(), until=0.5)
    with pytest.raises(ld.LoopdynError, match="integrator differ"):
        run_pendulum(tmp_path / "run", ld.integrators.DOP853(longest=0.01), until=0.5)


# ------------------------------------------------------------------------------------------------ damaged ones


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> tuple[Path, ld.Run]:
    """A finished run with a segment for every look at it."""
    folder = tmp_path_factory.mktemp("checkpoint") / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(driver, "SAVE_EVERY", -1.0)
        patch.setattr(progress, "PULSE", 0.0)
        patch.setattr(progress, "FEW", 1)
        run = run_pendulum(folder, ld.integrators.DOP853(), until=0.5)
    assert 4 < segments(folder) < 100
    return folder, run


def damaged(whole, tmp_path: Path) -> tuple[Path, Path]:
    """A copy of the folder, and its last segment."""
    folder = tmp_path / "copy"
    shutil.copytree(whole[0], folder)
    return folder, sorted(folder.glob("segment_*.npz"))[-1]


def flip_a_bit(data: bytes) -> bytes:
    return data[:1000] + bytes([data[1000] ^ 4]) + data[1001:]


@pytest.mark.parametrize(
    "harm",
    [lambda data: b"", lambda data: b"garbage", lambda data: data[:-100], lambda data: data[:500], flip_a_bit],
    ids=["empty", "garbage", "shorter", "a part", "one bit"],
)
@pytest.mark.parametrize("which", [-1, -3, 0])
def test_a_damaged_segment_is_left_out_and_said_and_the_run_goes_on_from_the_one_before(tmp_path, whole, harm, which):
    folder, _ = damaged(whole, tmp_path)
    files = sorted(folder.glob("segment_*.npz"))
    victim = files[which]
    victim.write_bytes(harm(victim.read_bytes()))
    with pytest.warns(UserWarning, match=f"{victim.name} is damaged .* the run (resumes from|starts again)"):
        run = run_pendulum(folder, ld.integrators.DOP853(), until=0.5)
    for a, b in zip(arrays(run), arrays(whole[1]), strict=True):
        np.testing.assert_array_equal(a, b)
    assert len(list(folder.glob("*.damaged"))) == len(files[which:] if which else files)
    again = run_pendulum(folder, ld.integrators.DOP853(), until=0.5)  # without a warning
    np.testing.assert_array_equal(again.path.q, run.path.q)


def test_a_segment_of_another_run_is_not_taken(tmp_path, whole):
    folder, last = damaged(whole, tmp_path)
    run_pendulum(tmp_path / "other", ld.integrators.DOP853(), until=0.4)
    shutil.copy(tmp_path / "other" / "segment_000001.npz", last)
    with pytest.warns(UserWarning, match="checksum is wrong"):
        run = run_pendulum(folder, ld.integrators.DOP853(), until=0.5)
    np.testing.assert_array_equal(run.path.q, whole[1].path.q)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe", b"5", b"null"])
def test_a_damaged_description_is_refused_in_words(tmp_path, whole, content):
    folder, _ = damaged(whole, tmp_path)
    (folder / "run.json").write_bytes(content)
    with pytest.raises(ld.LoopdynError, match=r"damaged run.json|belongs to another"):
        run_pendulum(folder, ld.integrators.DOP853(), until=0.5)


def forged(folder: Path, **changes) -> None:
    """The last segment with other content and a checksum that fits."""
    description = json.loads((folder / "run.json").read_text())
    checkpoint = Checkpoint(folder, description)
    content = list(checkpoint.read())[-1]
    for name, change in changes.items():
        made = change(content.pop(name))
        content |= {} if made is None else {name: made}
    os.unlink(folder / f"segment_{checkpoint.count:06d}.npz")
    checkpoint = Checkpoint(folder, description)
    list(checkpoint.read())
    checkpoint.add(content)


def with_item(k, value):
    def change(x):
        x = x.copy()
        x.flat[k] = value
        return x

    return change


FORGERIES = {
    "memory_count": [None, lambda x: x.astype(float), lambda x: x[:-1]],
    "memory_q": [lambda x: x * np.nan, lambda x: np.zeros(100)],
    "memory_k": [lambda x: x[:-1]],
    "output_q": [lambda x: np.zeros((100000, 1)), lambda x: x.astype(int), lambda x: x.ravel(), None],
    "first": [lambda x: x * 0 - 5, lambda x: x * 0 + 10**9, None],
    "scalars": [lambda x: x[:2]],
    "phases": [lambda x: np.array('[{"x": 1}, {"y": 2}]'), lambda x: np.array("{"), lambda x: np.array(5)],
    "events": [lambda x: np.array('[{"kind": "crossing"}]'), lambda x: np.array("[5]")],
    "partition": [lambda x: np.array("[5]")],
    "passages": [lambda x: np.array("[{}]")],
}
CASES = [(name, change) for name, changes in FORGERIES.items() for change in changes]
# flags and the count of past states; the others may be any number from 0 on, a status any at all
BOUNDED = (memory.PENDING, memory.PAST, memory.MOVED, memory.RETRIED, memory.EXTENDED, memory.SAMPLED, memory.SEEN)
CASES += [("memory_count", with_item(k, 10**9)) for k in BOUNDED]
CASES += [("memory_count", with_item(k, -(10**9))) for k in range(memory.N_COUNT) if k != memory.STATUS]


@pytest.mark.parametrize(("name", "change"), CASES)
def test_a_forged_segment_is_refused_in_words(tmp_path, whole, name, change):
    """Its checksum fits, but compiled steps would read outside of their arrays."""
    folder, _ = damaged(whole, tmp_path)
    forged(folder, **{name: change or (lambda x: None)})
    with pytest.raises(ld.LoopdynError, match=r"segment_\d+.npz: .* not of this simulation"):
        run_pendulum(folder, ld.integrators.DOP853(), until=0.5)
