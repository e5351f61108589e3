"""Variables of a Dataset that are computed when they are read."""

from __future__ import annotations

from collections.abc import Callable
from threading import RLock
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xarray import Variable
from xarray.backends import BackendArray
from xarray.core import indexing

Compute = Callable[[], NDArray[Any]]


class Computed(BackendArray):
    """Array of known shape and type whose values are computed when they are read.

    A read gives new memory: who writes into it does not change what others read. In a pickle it is numbers.

    Parameters
    ----------
    compute : callable
        Gives the values; it keeps what it has computed, since each read calls it.
    shape : tuple of int
    dtype : type
    lock : RLock
        Shared by all variables that are computed together, so that two threads do not compute the same twice.
    """

    def __init__(self, compute: Compute, shape: tuple[int, ...], dtype: Any, lock: RLock):
        self.compute, self.shape, self.dtype, self.lock = compute, shape, np.dtype(dtype), lock

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        """Values at the positions that xarray asks for."""
        basic = indexing.IndexingSupport.BASIC
        return indexing.explicit_indexing_adapter(key, self.shape, basic, lambda part: np.array(self._values()[part]))

    def _values(self) -> NDArray[Any]:
        with self.lock:
            values = self.compute()
        if values.shape != self.shape or values.dtype != self.dtype:
            raise AssertionError(f"{values.dtype} of shape {values.shape}, not {self.dtype} of {self.shape}")
        return values

    def __reduce__(self) -> Any:
        return _of_numbers, (self._values(),)


def _of_numbers(values: NDArray[Any]) -> Computed:
    return Computed(lambda: values, values.shape, values.dtype, RLock())


def computed(
    dims: Any, compute: Compute, shape: tuple[int, ...], lock: RLock, attributes: Any = None, dtype: Any = float
) -> Variable:
    """Variable of a Dataset that is computed at the first read, and then kept.

    Examples
    --------
    >>> late = computed("time", lambda: np.arange(3.0), (3,), RLock(), {"units": "s"})
    >>> late.shape, late.values.tolist()
    ((3,), [0.0, 1.0, 2.0])
    """
    layers: Any = indexing  # as in the backends of xarray itself, which its annotations do not allow
    source = layers.LazilyIndexedArray(Computed(compute, shape, dtype, lock))
    return Variable(dims, layers.MemoryCachedArray(layers.CopyOnWriteArray(source)), attributes)
