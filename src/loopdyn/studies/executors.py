"""Pools of workers for a study: threads, processes, a Dask cluster, or any executor of `concurrent.futures`."""

from __future__ import annotations

import os
import signal
import threading
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import connection, get_context, parent_process
from multiprocessing import process as processes
from typing import Any

from loopdyn.errors import LoopdynError
from loopdyn.quantities.wording import nearest

KINDS = ("threads", "processes", "dask")
PATIENCE = 20.0  # seconds to wait for a scheduler
DYING = "KilledWorker"  # Dask's error about a task during which several workers died


def cores() -> int:
    """Number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Pool:
    """Workers of a study.

    Attributes
    ----------
    workers : int
        Number of chunks that are computed at the same time.
    inside : bool
        Whether they are threads of this process.
    words : str
        Description for people.
    """

    inside = False

    def __init__(self, executor: Executor, workers: int, words: str):
        self.executor, self.workers, self.words = executor, workers, words

    def submit(self, function: Any, *arguments: Any) -> Future[Any]:
        """Start a call in a worker."""
        return self.executor.submit(function, *arguments)

    def restart(self) -> bool:
        """Replace workers that died; whether there are workers again."""
        return False

    def close(self, *, kill: bool = False) -> None:
        """Release what was started; `kill`: without waiting for what is being computed."""


class Threads(Pool):
    """Threads of this process."""

    inside = True

    def __init__(self, workers: int):
        super().__init__(ThreadPoolExecutor(workers), workers, f"{workers} thread{'s' * (workers > 1)}")

    def close(self, *, kill: bool = False) -> None:
        """Wait for the threads, which end with the design they compute."""
        self.executor.shutdown(wait=True, cancel_futures=True)


class Processes(Pool):
    """Processes on this machine, which are replaced when they die."""

    def __init__(self, workers: int):
        if getattr(processes.current_process(), "_inheriting", False):
            raise LoopdynError(
                "a study with processes was started while a worker imported this program. Put the study below "
                "`if __name__ == '__main__':`, or use executor='threads'."
            )
        super().__init__(_process_pool(workers), workers, f"{workers} process{'es' * (workers > 1)}")

    def restart(self) -> bool:
        """Start new processes in place of all."""
        self.executor.shutdown(wait=False, cancel_futures=True)
        self.executor = _process_pool(self.workers)
        return True

    def close(self, *, kill: bool = False) -> None:
        """End the processes."""
        if kill:
            for one in list((getattr(self.executor, "_processes", None) or {}).values()):
                one.kill()
        self.executor.shutdown(wait=not kill, cancel_futures=True)


def _process_pool(workers: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=begin_process)


def begin_process() -> None:
    """Leave Ctrl-C to the driver, and end when the driver has ended in whatever way."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()
    assert parent is not None
    sentinel = parent.sentinel

    def follow() -> None:
        connection.wait([sentinel])
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()


class Dask(Pool):
    """Workers of a Dask cluster: of one that is running, or of a new one on this machine."""

    def __init__(self, client: Any, own: tuple[Any, ...] = ()):
        self.client, self.own = client, own
        count = sum(client.nthreads().values())
        if not count:
            client.wait_for_workers(1, timeout=60)
            count = sum(client.nthreads().values())
        super().__init__(client.get_executor(), count, f"a Dask cluster of {count} workers")

    def close(self, *, kill: bool = False) -> None:
        """Close what was opened here."""
        self.executor.shutdown(wait=False)
        for one in self.own:
            one.close()


class Foreign(Pool):
    """An executor of the user, which stays open."""

    def __init__(self, executor: Executor):
        workers = int(getattr(executor, "_max_workers", 0) or cores())
        super().__init__(executor, workers, f"{type(executor).__name__} of {workers} workers")
        self.inside = isinstance(executor, ThreadPoolExecutor)


def pool_of(executor: Any, workers: int | None, *, compiled: bool) -> Pool:
    """Pool for the argument `executor` of a study; `compiled`: threads can compute at the same time."""
    if workers is not None and workers < 1:
        raise LoopdynError(f"workers is {workers}. Give a positive number, or leave it out for one per core.")
    count = workers or cores()
    if executor is None:
        return Threads(count if compiled else workers or 1)
    if isinstance(executor, str):
        if executor == "threads":
            return Threads(count)
        if executor == "processes":
            return Processes(count)
        if executor == "dask":
            return _local_cluster(count)
        if "://" in executor:
            return Dask(*_client(executor, workers))
        raise LoopdynError(
            f"there is no executor '{executor}'. {nearest(executor, KINDS)} The address of a Dask scheduler begins "
            "with tcp:// or tls://."
        )
    if workers is not None:
        raise LoopdynError("workers are those of the executor that is given. Leave workers out.")
    if isinstance(executor, Executor):
        return Foreign(executor)
    if hasattr(executor, "get_executor"):
        return Dask(executor)
    raise LoopdynError(
        f"executor is {executor!r}. Give 'threads', 'processes', 'dask', the address of a Dask scheduler, a Dask "
        "client, or an executor of concurrent.futures."
    )


def _distributed() -> Any:
    try:
        import distributed
    except ImportError:
        raise LoopdynError("a Dask cluster needs the package distributed. Install it: pip install loopdyn[cluster].") \
            from None  # fmt: skip
    return distributed


def _local_cluster(workers: int) -> Dask:
    found = _distributed()
    cluster = found.LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0")
    client = found.Client(cluster)
    return Dask(client, (client, cluster))


def _client(address: str, workers: int | None) -> tuple[Any, tuple[Any, ...]]:
    if workers is not None:
        raise LoopdynError("workers are those of the cluster. Leave workers out.")
    try:
        client = _distributed().Client(address, timeout=PATIENCE)
    except (OSError, ValueError) as error:
        raise LoopdynError(
            f"there is no Dask scheduler at {address}: {error}. Start it, or give its address."
        ) from None
    return client, (client,)


__all__ = ["DYING", "Pool", "cores", "pool_of"]
