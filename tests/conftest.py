"""Fixtures that several files of tests share."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from loopdyn.run import progress


@pytest.fixture
def interrupt_at(monkeypatch) -> Callable[..., None]:
    """`interrupt_at(n)`: the next run looks after every step and is stopped, as by Ctrl-C, at its n-th look.

    `interrupt_at(t=0.3)`: at its first look after that time.
    """
    show = progress.Progress.show

    def arm(n: int = 0, t: float = float("inf")) -> None:
        looks = 0

        def look(self, now: float, error: float) -> None:
            nonlocal looks, t
            looks += 1
            if looks == n or now > t:
                t = float("inf")
                self.stop.ask()
            show(self, now, error)

        monkeypatch.setattr(progress, "PULSE", 0.0)
        monkeypatch.setattr(progress, "FEW", 1)
        monkeypatch.setattr(progress.Progress, "show", look)

    return arm
