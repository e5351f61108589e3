"""Ctrl-C ends what is being computed and keeps what was computed."""

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from typer.testing import CliRunner

import loopdyn as ld
from loopdyn.app.cli import app
from loopdyn.interrupts import deferred
from loopdyn.studies import variants as sweeps

LONG = 1e5  # seconds of motion that nobody waits for
# Python itself has a handler for Ctrl-C from here on; before, the system ends it
COMMAND = [sys.executable, "-c", "from loopdyn_command import main; print('begins', flush=True); main()"]


@pytest.fixture(autouse=True)
def default_handler():
    """As in a terminal, also where the tests run in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def press(*after: float) -> list[threading.Timer]:
    """Ctrl-C after so many seconds each."""
    timers = [threading.Timer(t, os.kill, (os.getpid(), signal.SIGINT)) for t in after]
    for timer in timers:
        timer.start()
    return timers


def pendulum_run(until: float = LONG, **options) -> ld.results.Run:
    system = ld.library.pendulum().compile()
    return ld.simulate(system, system.state(), (0, until), progress=False, **options)


def test_a_run_returns_within_a_second_of_ctrl_c():
    whole = pendulum_run(1.0)
    press(0.3)
    begin = time.perf_counter()
    run = pendulum_run()
    assert time.perf_counter() - begin < 1.3
    assert run.status == "interrupted"
    assert run.message.startswith("stopped by the user at t = ")
    assert 0 < len(run.path) < 5001
    assert whole.status == "finished"


def test_ctrl_c_at_any_moment_inside_simulate_gives_a_run():
    """Also while it is being prepared, and while its results are put together."""
    system = ld.library.four_bar().compile()
    state = ld.assemble(system)
    ld.simulate(system, state, (0, 2), progress=False)  # compiles and prepares
    begin = time.perf_counter()
    whole = ld.simulate(system, state, (0, 2), progress=False)
    longest = 2.0 * (time.perf_counter() - begin)
    rng, seen = np.random.default_rng(3), set()
    for _ in range(40):
        with deferred():  # the timer may strike before the first line, or after the last one
            timers = press(float(rng.uniform(0.0, longest)))
            run = ld.simulate(system, state, (0, 2), progress=False)
            timers[0].join()
        assert run.status in ("interrupted", "finished")
        np.testing.assert_array_equal(run.path.q, whole.path.q[: len(run.path)])
        seen.add(run.status)
    assert "interrupted" in seen


def test_a_second_ctrl_c_is_obeyed_at_once_and_the_results_before_are_kept():
    calls = []

    def slow(t, q, v, out):
        calls.append(t)
        time.sleep(1.0 if len(calls) > 400 else 0.0)

    m = ld.library.pendulum()
    m.add_force("slow", ld.forces.UserForce(function=slow))
    system = m.compile()
    ends = press(1.0, 1.3)
    begin = time.perf_counter()
    run = ld.simulate(system, system.state(), (0, 10), progress=False)
    assert time.perf_counter() - begin < 4.0
    assert run.status == "interrupted"
    assert np.isfinite(run.path.q).all()
    for timer in ends:
        timer.join()


def test_after_a_run_ctrl_c_is_as_it_was():
    pendulum_run(0.1)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_a_handler_of_the_program_itself_is_left_alone():
    seen = []
    signal.signal(signal.SIGINT, lambda *_: seen.append(1))
    press(0.01)[0].join()
    pendulum_run(0.1)
    assert seen == [1]


def test_runs_in_other_threads_are_possible():
    found = []
    thread = threading.Thread(target=lambda: found.append(pendulum_run(0.1).status))
    thread.start()
    thread.join()
    assert found == ["finished"]


def rod() -> ld.Mechanism:
    m = ld.Mechanism("rod", gravity=(0, -10, 0), parameters={"length": 1.0})
    m.add_body("rod", ld.Inertia.rod(mass=1.0, start=(0, 0, 0), end=("length", 0, 0)))
    m.add_joint("A", ld.Revolute(axis=(0, 0, 1)), m.ground, "rod", at=(0, 0, 0))
    return m


@pytest.fixture
def table(tmp_path):
    file = tmp_path / "variants.csv"
    file.write_text("length\n" + "".join(f"{1.0 + 0.01 * k}\n" for k in range(50)))
    return file


def test_ctrl_c_stops_a_sweep_and_keeps_what_was_computed(table, interrupt_at):
    interrupt_at(30)  # some looks at each run: the second or third of them is stopped
    found = ld.analyses.variants(rod(), table, (0, 1.0), progress=False)
    begun = len(found.variants)
    assert 1 <= begun < 50
    assert found.stopped == f"stopped by the user: {begun} of 50 variants were started"
    assert [v.run.status for v in found.variants] == ["finished"] * (begun - 1) + ["interrupted"]
    assert list(found.table()["status"]) == [v.run.status for v in found.variants]
    assert str(found).endswith(found.stopped)


def test_ctrl_c_between_two_runs_of_a_sweep_stops_it(table, monkeypatch):
    real = sweeps.assemble
    count = []

    def assemble(system, **options):
        count.append(1)
        if len(count) == 3:
            signal.raise_signal(signal.SIGINT)
        return real(system, **options)

    monkeypatch.setattr(sweeps, "assemble", assemble)
    found = ld.analyses.variants(rod(), table, (0, 0.1), progress=False)
    assert [v.run.status for v in found.variants] == ["finished", "finished"]
    assert found.stopped == "stopped by the user: 2 of 50 variants were started"


def test_a_sweep_that_is_stopped_at_once_has_an_empty_table(table, monkeypatch):
    monkeypatch.setattr(sweeps, "assemble", lambda s, **options: signal.raise_signal(signal.SIGINT))
    found = ld.analyses.variants(rod(), table, (0, 0.1), progress=False)
    assert len(found.table()) == 0
    assert found.stopped == "stopped by the user: 0 of 50 variants were started"


def test_the_command_writes_what_was_computed_and_exits_with_130(tmp_path, table, interrupt_at):
    rod().save(tmp_path / "rod.yaml")
    interrupt_at(5)
    single = CliRunner().invoke(app, ["run", str(tmp_path / "rod.yaml"), "--csv", str(tmp_path / "run.csv")])
    assert single.exit_code == 130
    assert "interrupted: stopped by the user" in single.output
    assert len((tmp_path / "run.csv").read_text().split("\n")) > 2
    interrupt_at(30)
    options = ["--variants", str(table), "-t", "1", "--csv", str(tmp_path / "sweep.csv")]
    sweep = CliRunner().invoke(app, ["run", str(tmp_path / "rod.yaml"), *options])
    assert sweep.exit_code == 130
    assert "stopped by the user: " in sweep.output
    lines = (tmp_path / "sweep.csv").read_text().strip().split("\n")
    assert 2 <= len(lines) < 50


def test_ctrl_c_in_any_command_is_answered_in_words(tmp_path, monkeypatch):
    rod().save(tmp_path / "rod.yaml")
    monkeypatch.setattr("loopdyn.interchange.loading.read_model", lambda file: signal.raise_signal(signal.SIGINT))
    for command in ("inspect", "compare", "run", "equilibrium", "inverse", "report"):
        ended = CliRunner().invoke(app, [command, str(tmp_path / "rod.yaml")])
        assert (command, ended.exit_code) == (command, 130)
        assert ended.output == "stopped by Ctrl-C: incomplete files were left as they were before\n"


def test_ctrl_c_while_loopdyn_is_imported_is_answered_in_words():
    code = "import sys, loopdyn_command as c; sys.argv[1:] = ['inspect']; print('begins', flush=True); c.main()"
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "begins\n"
    time.sleep(0.1)  # while it is being imported
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode in (2, 130)  # 2: it was done before, and misses the model
    assert "Traceback" not in said


DELETED = """
import signal, time
import loopdyn_command
import loopdyn.app.cli

class Deleted:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)

def command():
    Deleted()
    time.sleep(30)

loopdyn.app.cli.main = command
loopdyn_command.main()
"""


def test_ctrl_c_while_an_object_is_deleted_is_not_lost():
    """Python prints what is raised there, and goes on."""
    ended = subprocess.run([sys.executable, "-c", DELETED], capture_output=True, text=True, timeout=25)
    assert (ended.returncode, ended.stderr) == (130, "stopped by Ctrl-C\n")


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ("run", "MODEL", "-t", "400", "--csv", "o.csv"),
        ("run", "MODEL", "-t", "400", "--checkpoint", "folder"),
        ("run", "MODEL", "-t", "20", "--variants", "variants.csv", "--csv", "v.csv"),
        ("drive", "MODEL", "A", "--from", "0", "--to", "100", "--points", "30001"),
        ("report", "MODEL", "-t", "100", "-o", "r.html"),
        ("inspect", "MODEL"),
        ("compare", "MODEL"),
        ("bench", "A01"),
        ("demo",),
    ],
    ids=lambda words: " ".join(words[:1]),
)
def test_a_real_ctrl_c_at_any_time_ends_a_command_in_words(tmp_path, table, words):
    m = ld.library.four_bar()
    m.save(tmp_path / "model.yaml")
    rng = np.random.default_rng(1)
    given = [str(tmp_path / "model.yaml") if w == "MODEL" else w for w in words]
    for delay in rng.uniform(0.2, 5.0, 5):
        process = subprocess.Popen(
            [*COMMAND, *given], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert process.stdout.readline() == "begins\n"
        time.sleep(delay)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
        assert process.returncode in (0, 1, 130)
        assert "Traceback" not in said
