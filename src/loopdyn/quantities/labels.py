"""Labelled results (xarray) in which an unknown label raises an error with the nearest known one."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import xarray as xr
from xarray.indexes import PandasIndex

from loopdyn.quantities.wording import unknown


class LabelIndex(PandasIndex):
    """Index of names along a dimension."""

    def sel(self, labels: dict[Any, Any], method: Any = None, tolerance: Any = None) -> Any:
        """Positions of the labels; xarray calls this for ``.sel`` and ``.loc``."""
        try:
            return super().sel(labels, method, tolerance)
        except KeyError:
            known = [str(name) for name in self.index]
            ((dim, wanted),) = labels.items()
            wrong = [str(name) for name in np.atleast_1d(np.asarray(wanted)).tolist() if str(name) not in known]
            raise unknown("", str(dim), wrong[:1] or [str(wanted)], known) from None


class Dataset(xr.Dataset):  # type: ignore[no-untyped-call]
    """An :class:`xarray.Dataset` whose errors for unknown variables and names suggest the nearest known one."""

    __slots__ = ()

    def __getitem__(self, key: Any) -> Any:
        try:
            return super().__getitem__(key)
        except KeyError:
            known = [str(name) for name in self.variables]
            wrong = [str(name) for name in (key if isinstance(key, list) else [key]) if str(name) not in known]
            raise unknown("", "variable", wrong[:1] or [str(key)], known) from None


def dataset(
    data: Mapping[Any, Any], coords: Mapping[Any, Any], attributes: Mapping[Any, Any] | None = None
) -> xr.Dataset:
    """Dataset of results; dimensions whose coordinates are names get a :class:`LabelIndex`.

    Examples
    --------
    >>> found = dataset({"load": ("joint", [1.0, 2.0])}, {"joint": ["crank", "rocker"]})
    >>> found["load"].sel(joint="crnk")
    Traceback (most recent call last):
    loopdyn.errors.UnknownLabelError: there is no joint 'crnk'. Did you mean 'crank'?
    """
    return Dataset(data, xr.Coordinates(*_indexed(coords)), attributes)


def _indexed(coords: Mapping[Any, Any]) -> tuple[dict[Any, xr.Variable], dict[Any, PandasIndex]]:
    """Variables of coordinates and indexes of their dimensions; made here, xarray does not have to find them."""
    variables: dict[Any, xr.Variable] = {}
    indexes: dict[Any, PandasIndex] = {}
    for name, given in coords.items():
        names = given.tolist() if isinstance(given, np.ndarray) and given.dtype.kind == "U" else given
        if isinstance(names, list) and all(isinstance(x, str) for x in names):
            variables[name], indexes[name] = _labels(name, tuple(names))  # copied by xarray
            continue
        variable = variables[name] = xr.as_variable(given, name=name, auto_convert=False)
        if variable.dims == (name,):
            kind = LabelIndex if variable.dtype.kind in "UO" else PandasIndex
            indexes[name] = kind.from_variables({name: variable}, options={})
            variables[name] = indexes[name].create_variables({name: variable})[name]
    return variables, indexes


@lru_cache(maxsize=256)  # results of one system have the same names
def _labels(dim: str, names: tuple[str, ...]) -> tuple[xr.Variable, PandasIndex]:
    """Variable and index of the names along a dimension."""
    index = LabelIndex.from_variables({dim: xr.Variable(dim, np.array(names, str))}, options={})
    return index.create_variables()[dim], index
