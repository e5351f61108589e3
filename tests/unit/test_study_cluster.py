"""Studies that are killed, and studies on a real Dask cluster: scheduler and workers are processes of this machine."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import loopdyn as ld

distributed = pytest.importorskip("distributed")

DESIGNS = 60
OVER = (0.0, 0.05)
MEASURE = {"p": "peak(C radial force)", "x": "D at t=0.03"}
SEED = random.randrange(10**6)  # moments differ from run to run; the seed is in the message

DRIVER = """
import sys
import numpy as np
import loopdyn as ld
def main():
    executor, folder = sys.argv[1], sys.argv[2]
    designs = {"crank": np.linspace(0.28, 0.32, %d)}
    ld.study(ld.library.four_bar(), designs, %r, over=%r, store=folder, executor=executor, workers=WORKERS,
             progress=False)
if __name__ == "__main__":
    main()
""" % (DESIGNS, MEASURE, OVER)  # noqa: UP031  # braces


def designs():
    return {"crank": np.linspace(0.28, 0.32, DESIGNS)}


def study(**options):
    return ld.study(ld.library.four_bar(), designs(), MEASURE, over=OVER, progress=False, **options)


@pytest.fixture(scope="module")
def serial():
    return study(workers=1)


def same(found, serial):
    assert found.data["status"].values.tolist() == ["finished"] * DESIGNS
    for name in MEASURE:
        assert found[name].values.tobytes() == serial[name].values.tobytes()


@pytest.fixture
def few_at_a_time(monkeypatch):
    """Chunks of two designs, so that a moment is in the middle of a study."""
    monkeypatch.setattr("loopdyn.studies.scheduling.Scheduler._size", lambda self: 2)


class Cluster:
    """Scheduler and two workers in processes of their own."""

    def __init__(self, folder):
        self.file = folder / "scheduler.json"
        self.folder = folder
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--port", "0", "--no-dashboard"]
        command += ["--host", "127.0.0.1", "--scheduler-file", str(self.file)]
        self.quiet, self.processes = quiet, [subprocess.Popen(command, **quiet)]
        self.workers = []
        for _ in range(2):
            self.add()
        self.client = distributed.Client(scheduler_file=str(self.file), timeout=60)
        self.client.wait_for_workers(2, timeout=60)

    def add(self):
        command = [
            sys.executable,
            "-m",
            "distributed.cli.dask_worker",
            "--nthreads",
            "1",
            "--no-nanny",
            "--no-dashboard",
        ]
        command += ["--scheduler-file", str(self.file), "--local-directory", str(self.folder)]
        self.workers.append(subprocess.Popen(command, **self.quiet))
        self.processes.append(self.workers[-1])

    def close(self):
        self.client.close()
        for one in self.processes:
            one.kill()
            one.wait()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    found = Cluster(tmp_path_factory.mktemp("cluster"))
    yield found
    found.close()


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_cluster_gives_the_serial_numbers_also_if_a_worker_is_killed_in_the_middle(cluster, serial, few_at_a_time):
    same(study(executor=cluster.client), serial)
    shot = []

    def shoot(done):
        if done > DESIGNS // 4 and not shot:
            shot.append(cluster.workers.pop())
            shot[0].kill()

    found = ld.study(ld.library.four_bar(), designs(), MEASURE, over=OVER, executor=cluster.client, progress=shoot)
    assert shot
    same(found, serial)


def killed_driver(tmp_path, executor, workers, k, serial):
    """Kill a driver with all its processes at a random moment, then continue."""
    moment = random.Random(SEED + k).uniform(0.0, 1.0)
    file, store = tmp_path / "driver.py", tmp_path / f"store{k}"
    text = DRIVER.replace("WORKERS", str(workers))
    slow = "from loopdyn.studies.scheduling import Scheduler\nScheduler._size = lambda self: 2\n"
    file.write_text(slow + text)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    driver = subprocess.Popen([sys.executable, str(file), executor, str(store)], env=environment)
    parts, limit = store / "parts", time.monotonic() + 120
    while not (parts.is_dir() and any(parts.glob("part_??????.nc"))) and driver.poll() is None:
        assert time.monotonic() < limit
        time.sleep(0.02)
    assert driver.poll() in (None, 0), f"the driver failed by itself, seed {SEED}"  # its words are in the output
    time.sleep(0.4 * moment)
    with contextlib.suppress(ProcessLookupError):
        driver.send_signal(signal.SIGKILL)
    driver.wait()
    written = {f.name: f.read_bytes() for f in parts.glob("part_??????.nc")}
    found = study(store=store, executor=executor, workers=workers if "://" not in executor else None)
    same(found, serial)
    after = {f.name: f.read_bytes() for f in parts.glob("part_??????.nc")}
    assert {name: after[name] for name in written} == written, f"seed {SEED}"  # what was finished is not repeated
    return len(written)


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("k", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in range(1, 20))])
def test_a_study_continues_after_its_driver_on_a_cluster_was_killed(tmp_path, cluster, serial, k):
    assert killed_driver(tmp_path, cluster.client.scheduler.address, None, k, serial) >= 1


@pytest.mark.parametrize("k", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in range(1, 20))])
def test_a_study_continues_after_its_driver_with_processes_was_killed(tmp_path, serial, k):
    assert killed_driver(tmp_path, "threads" if k == 0 else "processes", 2, k, serial) >= 1


@pytest.mark.slow
def test_the_cluster_of_this_machine_gives_the_serial_numbers(serial):
    same(study(executor="dask", workers=2), serial)


def test_a_cluster_that_is_not_there_is_told_in_words(monkeypatch):
    monkeypatch.setattr("loopdyn.studies.executors.PATIENCE", 1.0)
    with pytest.raises(ld.LoopdynError, match=r"no Dask scheduler at tcp://127.0.0.1:1"):
        ld.study(ld.library.four_bar(), {"crank": [0.3]}, "D", executor="tcp://127.0.0.1:1", progress=False)
