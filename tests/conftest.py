"""Fixtures that several files of tests share."""

from __future__ import annotations

import importlib
from collections.abc import Callable

import pytest


@pytest.fixture
def interrupt_at(monkeypatch) -> Callable[[int], None]:
    """`interrupt_at(n)`: the next run looks after every step and is stopped, as by Ctrl-C, at its n-th look."""
    module = importlib.import_module("loopdyn.simulate")  # the function of this name hides it
    real = module._Simulation._look

    def arm(n: int) -> None:
        looks = 0

        def look(self):
            nonlocal looks
            looks += 1
            if looks == n:
                raise KeyboardInterrupt
            return real(self)

        monkeypatch.setattr(module, "PULSE", 0.0)
        monkeypatch.setattr(module, "FEW", 1)
        monkeypatch.setattr(module._Simulation, "_look", look)

    return arm
