"""Progress bar of a run, and the number of steps between two updates."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from loopdyn.interrupts import Halt

PULSE, MANY = 0.1, 1_000_000  # seconds of computing, and steps, between two updates
FEW = 16  # steps before the first update
SOON = 0.3  # seconds of a run before a bar is shown


class Progress:
    """Progress bar with simulated time, speed relative to real time, and energy-balance error.

    Parameters
    ----------
    name : str
    start, end : float
        Simulated times in s.
    wanted : bool or function
        Show a bar if the output is a terminal; or a function to call with the time reached.
    stop : Halt
        Set if that function raises KeyboardInterrupt.
    """

    def __init__(self, name: str, start: float, end: float, wanted: bool | Callable[[float], object], stop: Halt):
        self.start, self.name, self.wanted, self.end, self.stop = start, name, wanted, end, stop
        self.begin = time.perf_counter()
        self.limit = FEW  # steps until the next update
        self.bar: Any = None
        self.undecided = wanted is True

    def __enter__(self) -> Progress:
        return self

    def _open(self) -> None:
        """Show the bar if the output is a terminal; `rich` is imported for runs that take a while only."""
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar

        self.undecided = False
        console = Console(stderr=True)
        if console.is_terminal:
            columns = (
                TextColumn(self.name, markup=False),
                BarColumn(),
                TextColumn("{task.fields[shown]}", markup=False),
                TimeRemainingColumn(),
            )
            self.bar = Bar(*columns, console=console, transient=True)
            self.task = self.bar.add_task("", total=self.end - self.start, shown="")
            self.bar.start()

    def keep_pace(self, seconds: float) -> None:
        """Choose the number of next steps so that they take about one update interval; the last took `seconds`."""
        self.limit = max(1, int(min(4 * self.limit, self.limit * PULSE / max(seconds, 1e-6), MANY)))

    def show(self, t: float, error: float) -> None:
        """Show the time reached and the relative energy-balance error."""
        if callable(self.wanted):
            try:
                self.wanted(t)
            except KeyboardInterrupt:
                self.stop.ask()
        if self.undecided and time.perf_counter() - self.begin > SOON:
            self._open()
        if self.bar is not None:
            pace = (t - self.start) / max(time.perf_counter() - self.begin, 1e-9)
            shown = f"{t:.3g} of {self.end:g} s, {pace:.3g} x real time, energy error {error:.0e}"
            self.bar.update(self.task, completed=t - self.start, shown=shown)

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.stop()
