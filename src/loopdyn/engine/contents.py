"""Digests of values by their content, objects included, equal in every process; used to compare requests.

:func:`loopdyn.engine.fingerprint.fingerprint` is for code that is compiled: it reads the code of all functions, also of
installed packages, and knows objects by their names. Here a function is its code, its defaults, the values
of its closure, and the globals that it reads, including functions. Code of Python, of loopdyn and of installed packages
is identified by its name: it changes with their versions. What a function reads in other ways (files, clocks, random
numbers) is not covered.
"""

from __future__ import annotations

import functools
import hashlib
import site
import sys
import sysconfig
import types
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from loopdyn.engine.fingerprint import parts_of, parts_of_code
from loopdyn.engine.uncompiled import python_function
from loopdyn.errors import LoopdynError

Known = Mapping[type, Callable[[Any], Any]]


def content_digest(value: Any, known: Known | None = None) -> str:
    """Digest of a value that changes when the value, or any code or data it refers to, changes.

    Parameters
    ----------
    value : object
    known : mapping, optional
        Replacement for objects of a type, e.g. without cached values.

    Raises
    ------
    LoopdynError
        If a part of it cannot be distinguished from others of its kind.

    Examples
    --------
    >>> def law(gain):
    ...     return lambda t: gain * t
    >>> digests = [content_digest(law(gain)) for gain in (1.0, 1.0, 2.0)]
    >>> digests[0] == digests[1], digests[0] == digests[2]
    (True, False)
    """
    try:
        text = _Description(known or {}).of(value)
    except RecursionError:
        raise LoopdynError("it refers to data that are nested too deeply to be compared") from None
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:20]


class _Description:
    """Text of values; a value that contains itself is named by its nesting distance, so that cycles end."""

    def __init__(self, known: Known):
        self.known = known
        self.around: list[int] = []  # addresses of what is being described
        self.done: dict[int, str] = {}
        self.kept: list[Any] = []  # alive, so that no two of them have the same address

    def of(self, value: Any) -> str:
        """Text of one value: itself, or a digest of what is in it."""
        if value is None or isinstance(value, bool | int | float | complex | str | bytes):
            return f"{type(value).__name__} {value!r}"
        if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.dtype != object):
            return f"{value.dtype.str} {value.shape} {value.tobytes().hex()}"
        me = id(value)
        if me in self.around:
            return f"#{len(self.around) - self.around.index(me)}"
        if me not in self.done:
            self.around.append(me)
            self.kept.append(value)
            text = f"{type(value).__module__}.{type(value).__qualname__}{self._inside(value)}"
            self.done[me] = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
            self.around.pop()
        return self.done[me]

    def _inside(self, value: Any) -> str:
        for kind, stands_for in self.known.items():
            if isinstance(value, kind):
                return self.of(stands_for(value))
        if isinstance(value, np.ndarray):
            return f"{value.shape}{self._row(value.ravel().tolist())}"
        if isinstance(value, tuple | list):
            return self._row(value)
        if isinstance(value, set | frozenset):  # the order of strings differs between processes
            return f"{{{','.join(sorted(map(self.of, value)))}}}"
        if isinstance(value, Mapping):
            return f"{{{','.join(f'{self.of(k)}:{self.of(v)}' for k, v in sorted(value.items(), key=_key))}}}"
        if isinstance(value, types.CodeType):
            return self._row(parts_of_code(value))
        if isinstance(value, types.ModuleType):
            return value.__name__
        python = python_function(value)
        if isinstance(python, types.FunctionType):
            code, *data = parts_of(python, _is_open)
            if _is_open(python.__module__):
                return self._row([code, *data])
            return f"{_name(python)}{self._row(data[:-1])}"  # its defaults and closure, not its globals
        if isinstance(value, type):
            return self._class(value) if _is_open(value.__module__) else _name(value)
        return self._object(value)

    def _row(self, values: Any) -> str:
        return f"({','.join(self.of(x) for x in values)})"

    def _class(self, value: type) -> str:
        own = {k: v for k, v in vars(value).items() if not (k.startswith("__") and k.endswith("__")) or callable(v)}
        data = (bool, int, float, str, tuple, list, dict, np.ndarray)
        kept = (types.FunctionType, classmethod, staticmethod, property, *data)
        own = {k: v for k, v in own.items() if isinstance(v, kept) or _is_open(type(v).__module__)}
        return self._row([value.__bases__, own])

    def _object(self, value: Any) -> str:
        if isinstance(value, types.MethodType):
            return self._row([value.__func__, value.__self__])
        if isinstance(value, classmethod | staticmethod):
            return self.of(value.__func__)
        if isinstance(value, property):
            return self._row([value.fget])
        if callable(value) and hasattr(value, "__wrapped__"):  # e.g. by functools.cache
            return self.of(value.__wrapped__)
        if isinstance(value, functools.partial):
            return self._row([value.func, value.args, value.keywords])
        if isinstance(value, np.ufunc | types.BuiltinFunctionType):
            owner = getattr(value, "__self__", None)
            bound = owner is not None and not isinstance(owner, types.ModuleType)
            return f"{_name(value)}{self.of(owner) if bound else ''}"
        if is_dataclass(value):
            return self._row([type(value), {f.name: getattr(value, f.name) for f in fields(value)}])
        return self._row([type(value), self._state(value)])

    def _state(self, value: Any) -> Any:
        """State of an object of any other class: what pickling would write."""
        try:
            return value.__reduce_ex__(4)[1:3]
        except Exception as error:
            kind = f"{type(value).__module__}.{type(value).__qualname__}"
            raise LoopdynError(f"it uses an object of type {kind}, which cannot be compared ({error})") from None


def _key(item: tuple[Any, Any]) -> str:
    return f"{type(item[0]).__name__} {item[0]!r}"


def _name(value: Any) -> str:
    return f" {getattr(value, '__module__', '')}.{getattr(value, '__qualname__', getattr(value, '__name__', ''))}"


@functools.cache
def _installed() -> tuple[Path, ...]:
    """Folders of code that changes only with its version."""
    paths = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    paths |= {site.getusersitepackages(), str(Path(__file__).parents[1])}
    return tuple(Path(p).resolve() for p in paths if p)


@functools.cache
def _is_open(module: str | None) -> bool:
    """Whether code of `module` belongs to the user, so that its content counts."""
    if module is None or module == "__main__":
        return True
    if module.partition(".")[0] in sys.builtin_module_names or module.partition(".")[0] == "loopdyn":
        return False
    file = getattr(sys.modules.get(module), "__file__", None)
    if file is None:
        return module not in sys.modules or not hasattr(sys.modules[module], "__spec__")
    return not any(Path(file).resolve().is_relative_to(folder) for folder in _installed())


__all__ = ["content_digest"]
