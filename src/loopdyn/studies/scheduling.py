"""Scheduling of a study: chunks of designs for the workers, their results, workers that die, Ctrl-C, progress."""

from __future__ import annotations

import os
import pickle
import platform
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Future, wait
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loopdyn.errors import LoopdynError, warn
from loopdyn.files import WritingError
from loopdyn.interrupts import Halt
from loopdyn.studies.evaluation import DIED, FINISHED, STATUSES, Chunk, Job, evaluate_chunk, forget_job, offer_job
from loopdyn.studies.executors import DYING, Pool
from loopdyn.studies.store import FinishedDesigns, Store

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

PULSE = 0.1  # seconds between two updates of the progress bar, and two checks for Ctrl-C
LONG = 2.0  # seconds that a chunk should take
MOST = 2000  # designs in a chunk
AHEAD = 2  # chunks per worker that are under way, so that none waits for the next
HOPELESS = 8  # designs during which a worker died, with no design that finished: the workers themselves fail


class Board:
    """Results of all designs of a study."""

    def __init__(self, designs: int, columns: int):
        self.values = np.full((designs, columns), np.nan)
        self.status, self.seconds = np.zeros(designs, np.int8), np.full(designs, np.nan)
        self.reasons: dict[int, str] = {}
        self.warnings: dict[str, int] = {}  # texts, and the first design that each is about
        self.processors: set[str] = set()
        self.done = self.failed = 0
        self.stopped = ""  # why the study ended early

    def put(self, part: FinishedDesigns) -> None:
        """Keep finished designs."""
        self.values[part.designs], self.status[part.designs] = part.values, part.status
        self.seconds[part.designs] = part.seconds
        for k, reason in zip(part.designs.tolist(), part.reasons, strict=True):
            if reason:
                self.reasons[k] = reason
        self.done += len(part.designs)
        self.failed += int(np.count_nonzero(part.status != FINISHED))

    def left(self) -> Indices:
        """Numbers of the designs that are not finished."""
        return np.flatnonzero(self.status == 0)


@dataclass(frozen=True, eq=False)
class Dispatch:
    """Designs that are under way in a worker; `alone`: nothing else is, since a worker died during them."""

    designs: Indices
    alone: bool = False
    with_model: bool = False


class Scheduler:
    """Distributes designs over the workers of a pool until all are done, or the user stops.

    Parameters
    ----------
    job : Job
    rows : (n, parameters) array
        Values of the parameters of all designs.
    board : Board
    pool : Pool
    store : Store or None
    stop : Halt
    show : callable
        Called with the board, about ten times a second.
    """

    def __init__(
        self,
        job: Job,
        rows: Array,
        board: Board,
        pool: Pool,
        store: Store | None,
        stop: Halt,
        show: Callable[[Board], object],
    ):
        self.rows, self.board, self.pool, self.store, self.stop, self.show = rows, board, pool, store, stop, show
        self.key, self.home = os.urandom(8).hex(), (platform.node(), os.getpid())
        self.waiting, self.next = board.left(), 0
        self.suspects: deque[Indices] = deque()
        self.flying: dict[Future[Chunk], Dispatch] = {}
        self.cost, self.measured = 0.0, 0  # seconds, and the designs that took them
        self.fresh = 0  # designs that workers have finished
        self.dead = 0  # designs that were marked since workers died during them
        self.model = b"" if pool.inside else _pickled(job)
        offer_job(self.key, job, stop)

    def run(self) -> None:
        """Compute all designs that are missing."""
        try:
            self._loop()
        finally:
            forget_job(self.key)

    def _loop(self) -> None:
        while True:
            self._fill()
            if not self.flying:
                return
            done, _ = wait(self.flying, PULSE, FIRST_COMPLETED)
            try:
                for future in done:
                    if future in self.flying:
                        self._collect(future, self.flying.pop(future))
                self.show(self.board)
            except KeyboardInterrupt:  # by the user's function of progress
                self.stop.ask()
            except WritingError as error:  # a full disk: what is known stays in memory
                self._end(str(error))
            if self.stop.wanted and not self.board.stopped:
                self._end("stopped by the user")

    def _end(self, why: str) -> None:
        """Start nothing more; what is under way is finished."""
        self.board.stopped = self.board.stopped or why
        self.stop.ask()
        for future in [f for f in self.flying if f.cancel()]:
            self.flying.pop(future)

    # ------------------------------------------------------------------------------------------- sending

    def _fill(self) -> None:
        """Give work to all workers."""
        while not self.stop.wanted and not self.board.stopped:
            if self.suspects:
                if self.flying:
                    return
                self._send(Dispatch(self.suspects.popleft(), alone=True))
                return
            if self.next >= len(self.waiting) or len(self.flying) >= AHEAD * self.pool.workers:
                return
            size = self._size()
            self._send(Dispatch(self.waiting[self.next : self.next + size]))
            self.next += size

    def _size(self) -> int:
        """Number of designs in the next chunk, by what they have cost so far."""
        if not self.measured:
            return 1
        left = len(self.waiting) - self.next
        fair = -(-left // (2 * AHEAD * self.pool.workers))  # the last chunks are small, so that all end together
        return int(np.clip(LONG * self.measured / max(self.cost, 1e-9), 1, min(MOST, max(fair, 1))))

    def _send(self, task: Dispatch) -> None:
        rows, model = self.rows[task.designs], self.model if task.with_model else None
        try:
            future = self.pool.submit(evaluate_chunk, self.key, model, self.home, task.designs, rows)
        except (BrokenExecutor, RuntimeError) as error:  # the latter: it was shut down
            self._died(task, error)
            return
        self.flying[future] = task

    # ----------------------------------------------------------------------------------------- receiving

    def _collect(self, future: Future[Chunk], task: Dispatch) -> None:
        try:
            found = future.result()
        except BrokenExecutor as error:
            self._died(task, error)
            return
        except CancelledError as error:
            if not self.stop.wanted:
                self._died(task, error)
            return
        except Exception as error:
            if type(error).__name__ == DYING:  # Dask has restarted its worker
                self._suspect(task)
                return
            raise
        if found.lacks_model:
            self._send(Dispatch(task.designs, task.alone, with_model=True))
        else:
            self._keep(found, task)

    def _keep(self, found: Chunk, task: Dispatch) -> None:
        """Keep the results of a chunk, first on disk."""
        there = np.flatnonzero(found.status != 0)  # the user may have stopped in the middle
        reasons = [found.reasons.get(k, "") for k in there.tolist()]
        part = FinishedDesigns(
            task.designs[there], found.values[there], found.status[there], found.seconds[there], reasons
        )
        for text, k in found.warnings.items():
            first = int(task.designs[k])
            self.board.warnings[text] = min(first, self.board.warnings.get(text, first))
        self.board.processors.add(found.worker)
        self.cost, self.measured = self.cost + float(part.seconds.sum()), self.measured + len(there)
        self.fresh += len(there)
        self._record(part)

    def _record(self, part: FinishedDesigns) -> None:
        self.board.put(part)
        if self.store is not None and len(part.designs):
            self.store.add(part)

    # ------------------------------------------------------------------------------------ workers that die

    def _died(self, task: Dispatch, error: BaseException) -> None:
        """Restart workers after one has died; what was under way is tried again, alone."""
        tasks = [task, *self.flying.values()]
        finished = [f for f in self.flying if f.done() and not f.cancelled() and f.exception() is None]
        kept = {id(self.flying[f]) for f in finished}
        for future in finished:
            self._collect(future, self.flying.pop(future))
        self.flying.clear()
        if not self.pool.restart():
            self.board.stopped = f"the executor does not work any more ({type(error).__name__}: {error})"
            return
        for one in tasks:
            if id(one) not in kept:
                self._suspect(one)

    def _suspect(self, task: Dispatch) -> None:
        """Try designs again, alone; in halves if a worker died while they were alone; mark one that was alone twice."""
        n = len(task.designs)
        if not task.alone:
            self.suspects.append(task.designs)
        elif n > 1:
            self.suspects.extend([task.designs[: n // 2], task.designs[n // 2 :]])
        else:
            self._mark(task.designs)

    def _mark(self, designs: Indices) -> None:
        reason = "the worker died twice during this design: it was killed, ran out of memory or crashed"
        nothing = np.full((1, self.board.values.shape[1]), np.nan)
        self._record(FinishedDesigns(designs, nothing, np.array([DIED], np.int8), np.full(1, np.nan), [reason]))
        self.dead += 1
        if not self.fresh and self.dead >= HOPELESS:
            self.board.stopped = f"workers died in {self.dead} designs, and none was finished"


def _pickled(job: Job) -> bytes:
    """Job as bytes; raises in words if a function cannot be sent."""
    try:
        return pickle.dumps(job)
    except Exception as error:  # of any type, from what users give
        pass_on = error
    try:
        import cloudpickle
    except ImportError:
        raise LoopdynError(
            f"the study cannot be sent to other processes ({pass_on}). Define its functions in a module that they can "
            "import, or use executor='threads'."
        ) from None
    return bytes(cloudpickle.dumps(job))


class StudyBar:
    """Progress bar of a study: rate, failures, time left."""

    def __init__(self, name: str, total: int, wanted: bool | Callable[[int], object]):
        self.name, self.total, self.wanted = name, total, wanted
        self.bar: Any = None
        self.begin, self.before = time.perf_counter(), -1

    def __enter__(self) -> StudyBar:
        if self.wanted is True:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

            console = Console(stderr=True)
            if console.is_terminal:
                facts = TextColumn("{task.fields[facts]}")
                shown = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), facts
                self.bar = Progress(*shown, TimeRemainingColumn(), console=console, transient=True)
                self.task = self.bar.add_task(self.name, total=self.total, facts="")
                self.bar.start()
        return self

    def show(self, board: Board) -> None:
        """Show what is done."""
        if self.before < 0:
            self.before = board.done
        if callable(self.wanted):
            self.wanted(board.done)
        if self.bar is not None:
            rate = (board.done - self.before) / max(time.perf_counter() - self.begin, 1e-3)
            self.bar.update(self.task, completed=board.done, facts=f"{rate:.3g}/s, {board.failed} failed")

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.stop()


def warn_of(board: Board, name: str) -> None:
    """Warn of what workers warned of, and of differing processors."""
    for text, k in board.warnings.items():
        warn(f"{name}: design {k}: {text}")
    if len(board.processors) > 1:
        warn(
            f"{name}: designs were computed on different processors ({', '.join(sorted(board.processors))}), so that "
            "last digits may differ between them."
        )


__all__ = ["STATUSES", "Board", "Scheduler", "StudyBar", "warn_of"]
