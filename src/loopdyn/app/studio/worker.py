"""Server side of the computing process (:mod:`loopdyn.app.studio.work`)."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from loopdyn.app.studio.work import serve
from loopdyn.errors import LoopdynError

PATIENCE = 2.0  # seconds that a process has to end by itself


class Worker:
    """Computes in a separate process, one call after the other; the process is started when it is first needed.

    After :meth:`close` it is not started again, even for calls that are waiting.
    """

    def __init__(self, root: Path):
        self.root = root
        self._process: Any = None
        self._turn = asyncio.Lock()
        self._closed = False

    def start(self) -> None:
        """Start the process, unless it is running."""
        if self._process is not None and self._process.is_alive():
            return
        context = get_context("spawn")  # a fork of a process with threads may hang
        self._messages, theirs = context.Pipe()
        stopped, self._stops = context.Pipe(duplex=False)
        self._process = context.Process(target=serve, args=(theirs, stopped, str(self.root)), daemon=True)
        self._process.start()
        theirs.close()
        stopped.close()

    async def call(self, method: str, progress: Callable[[float], object] | None = None, /, **arguments: Any) -> Any:
        """Call a method of :class:`~loopdyn.app.studio.work.Desk` in the process.

        Raises
        ------
        LoopdynError
            The error of the method; also if the process was ended or died.
        """
        async with self._turn:
            if self._closed:
                raise LoopdynError("the page was closed. Open it again.")
            self.start()
            try:
                self._messages.send((method, arguments))
                while True:
                    kind, value = await asyncio.to_thread(self._messages.recv)
                    if kind == "progress":
                        if progress is not None:
                            progress(value)
                    elif kind == "error":
                        raise LoopdynError(value)
                    else:
                        return value
            except (EOFError, OSError):
                raise LoopdynError(
                    "the computation was ended, or ran out of memory, without results. Try again, or reduce the model."
                ) from None

    def stop(self) -> None:
        """Request a run to end and keep its results."""
        with contextlib.suppress(OSError):
            self._stops.send(None)

    def close(self) -> None:
        """End the process for good."""
        self._closed = True
        self.end()

    def end(self) -> None:
        """End the process at once; the next call starts another one."""
        if self._process is None:
            return
        self._process.kill()
        self._process.join(PATIENCE)
        self._process = None
