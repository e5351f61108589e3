"""Marks that several files of tests give to a part of their cases."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

# Mechanisms of the gallery: other mechanisms of the library stand for them in tests that go over all of it.
GALLERY = {"peaucellier", "theo_jansen", "scissor_lift", "double_wishbone", "delta_robot", "cardan_shaft"}


def gallery_slow(names: Iterable[str]) -> list[Any]:
    """Cases of these names, of which mechanisms of the gallery are left to `make test-all`."""
    return [pytest.param(name, marks=pytest.mark.slow) if name in GALLERY else name for name in names]
