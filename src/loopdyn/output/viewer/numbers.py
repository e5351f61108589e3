"""Encoding of numbers in a page."""

from __future__ import annotations

import base64
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


def packed(values: ArrayLike, kind: Literal["float32", "float64"] = "float32") -> dict[str, Any]:
    """Array as base64, little-endian."""
    array = np.ascontiguousarray(values, np.dtype(kind).newbyteorder("<"))
    return {"type": kind, "shape": list(array.shape), "data": base64.b64encode(array.tobytes()).decode("ascii")}


def quaternions(R: Array) -> Array:
    """Quaternions (..., 4), w first, of rotation matrices (..., 3, 3)."""
    from scipy.spatial.transform import Rotation

    xyzw = Rotation.from_matrix(R.reshape(-1, 3, 3)).as_quat()
    wxyz: Array = np.roll(xyzw, 1, axis=1).reshape(*R.shape[:-2], 4)
    return wxyz


def floats(values: Array) -> list[float]:
    """Numbers in a form that JSON can represent."""
    return [float(v) for v in values]
