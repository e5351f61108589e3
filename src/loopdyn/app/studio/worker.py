"""The server's end of a process that computes (:mod:`loopdyn.app.studio.work`)."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from loopdyn.app.studio.work import serve
from loopdyn.errors import LoopdynError

PATIENCE = 2.0  # seconds that a process is given to end by itself


class Worker:
    """Computes in a process of its own, one thing after the other; the process is started when it is first needed.

    After :meth:`close` it is not started any more, whoever still waits for his turn.
    """

    def __init__(self, root: Path):
        self.root = root
        self._process: Any = None
        self._turn = asyncio.Lock()
        self._closed = False

    def start(self) -> None:
        """Start the process, unless it is there."""
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
        """Have one of the methods of :class:`~loopdyn.app.studio.work.Desk` called.

        Raises
        ------
        LoopdynError
            What went wrong there; also if the process was ended or died.
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
                    "the computation was ended, or ran out of memory; nothing is kept. Try again, or make it smaller."
                ) from None

    def stop(self) -> None:
        """Ask a run to end with what it has."""
        with contextlib.suppress(OSError):
            self._stops.send(None)

    def close(self) -> None:
        """End the process for good."""
        self._closed = True
        self.end()

    def end(self) -> None:
        """End the process, whatever it does; the next call starts another one."""
        if self._process is None:
            return
        self._process.kill()
        self._process.join(PATIENCE)
        self._process = None
