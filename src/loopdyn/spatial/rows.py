"""Vectors in rows of arrays, in Python."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
NEXT, AFTER = [1, 2, 0], [2, 0, 1]  # axes


def cross_rows(a: Array, b: Array) -> Array:
    """Cross products of rows (n, 3): the numbers of `np.cross` in a fraction of its time.

    Examples
    --------
    >>> cross_rows(np.array([[1.0, 0.0, 0.0]]), np.array([[0.0, 2.0, 0.0]])).tolist()
    [[0.0, 0.0, 2.0]]
    """
    product: Array = a[:, NEXT] * b[:, AFTER] - a[:, AFTER] * b[:, NEXT]
    return product


__all__ = ["cross_rows"]
