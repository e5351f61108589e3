"""Functions shared by several families of the library."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from loopdyn.errors import LoopdynError
from loopdyn.joints import Revolute

PIN = Revolute(axis=(0, 0, 1))  # gravity of planar mechanisms


def vec3(a: ArrayLike, digits: int | None = None) -> tuple[float, float, float]:
    """Three plain numbers, rounded for files that can be read and are the same everywhere."""
    v = np.asarray(a, float)
    x, y, z = (v if digits is None else np.round(v, digits)).tolist()
    return x, y, z


def at_least_one(name: str, n: int) -> None:
    """Raise if a size is below one."""
    if n < 1:
        raise LoopdynError(f"{name} = {n}: must be at least 1")
