"""Digests of code that are equal in every process, checkout and environment, and change with what the code computes.

The digest of a function covers its bytecode, constants, defaults and closure, and the same of every function, number,
array and type that it reaches by name, wherever these are defined. Paths, line numbers, comments and docstrings are no
part of it. Functions of NumPy and Numba are named only: their versions belong to whoever keeps the digest.
"""

from __future__ import annotations

import hashlib
import re
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

_NAMED_ONLY = {"builtins", "math", "cmath", "numpy", "numba"}
_PLAIN = {str, bytes, int, float, bool, type(None)}
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def fingerprint(value: Any, memory: dict[int, Described] | None = None) -> str:
    """Digest of a value and of all code that it refers to.

    Parameters
    ----------
    value : object
        A function, compiled or not, or tuples, dicts, arrays, numbers with functions among them.
    memory : dict, optional
        Functions described by earlier calls with the same dict, reused as they are: for code whose globals do not
        change.

    Returns
    -------
    str
        64 hexadecimal digits.

    Examples
    --------
    >>> def rate(x):
    ...     return 2.0 * x
    >>> before = fingerprint(rate)
    >>> def rate(x):
    ...     "Twice as much."
    ...     return 2.0 * x  # the same code
    >>> fingerprint(rate) == before
    True
    >>> def rate(x):
    ...     return 3.0 * x
    >>> fingerprint(rate) == before
    False
    """
    text, functions = _reach(value, {} if memory is None else memory)
    digest = hashlib.sha256(text.encode())
    for one in functions:
        digest.update(one.text.encode())
    return digest.hexdigest()


def reached(value: Any, memory: dict[int, Described] | None = None) -> list[types.FunctionType]:
    """Functions that a value refers to, directly or not; the same list in every process where its digest is the same.

    Examples
    --------
    >>> def square(x):
    ...     return x * x
    >>> def fourth_power(x):
    ...     return square(square(x))
    >>> [function.__name__ for function in reached(fourth_power)]
    ['fourth_power', 'square']
    """
    return [one.function for one in _reach(value, {} if memory is None else memory)[1]]


def _reach(value: Any, memory: dict[int, Described]) -> tuple[str, list[Described]]:
    """Text of a value, and all functions it refers to, in the order of the code."""
    functions: dict[int, Described] = {}
    text, new = _describe(value)
    while new:
        found = {}
        for function in new:
            if id(function) not in functions:
                found[id(function)] = memory.get(id(function)) or Described(function)
        memory.update(found)
        functions.update(found)
        new = [function for one in found.values() for function in one.uses]
    return text, list(functions.values())


class Described:
    """The text of one function, and the functions that it refers to."""

    def __init__(self, function: types.FunctionType):
        self.function = function  # kept alive: its id is the key
        self.text, self.uses = _describe([function.__qualname__, *parts_of(function, _is_opened)], function.__doc__)


def parts_of(function: types.FunctionType, is_opened: Callable[[str], bool]) -> list[Any]:
    """Code, defaults, closure and named globals of a function; for opened modules, the attributes it may use.

    Examples
    --------
    >>> def law(gain):
    ...     return lambda t: gain * t
    >>> parts_of(law(2.0), lambda module: True)[3]
    [2.0]
    """
    code, globals_ = function.__code__, function.__globals__
    names = list(_names(code))
    used = [(name, globals_[name]) for name in names if name in globals_]
    for _, value in used:  # grows as it goes
        if isinstance(value, types.ModuleType) and is_opened(value.__name__):
            taken = [(name, getattr(value, name)) for name in names if hasattr(value, name)]
            # with its name: small integers are one object, and two names may swap theirs
            used += [(name, new) for name, new in taken if not any(name == n and new is known for n, known in used)]
    cells = [_content(cell) for cell in function.__closure__ or ()]
    return [code, function.__defaults__, function.__kwdefaults__, cells, used]


def parts_of_code(code: types.CodeType, doc: str | None = None) -> tuple[Any, ...]:
    """Parts of `code` that determine what it computes: without file names, lines and the docstring `doc`.

    Examples
    --------
    >>> parts_of_code(compile("1 + x", "one", "eval")) == parts_of_code(compile("1 + x", "two", "eval"))
    True
    """
    constants = [None if doc is not None and one == doc else one for one in code.co_consts]
    shape = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
    variables = (code.co_varnames, code.co_freevars, code.co_cellvars)
    return shape, code.co_code, code.co_exceptiontable, code.co_names, variables, constants


def _content(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # a variable that is not assigned yet
        return None


def _is_opened(module: str | None) -> bool:
    """Tell whether code of `module` is read."""
    return (module or "").partition(".")[0] not in _NAMED_ONLY


def _describe(value: Any, doc: str | None = None) -> tuple[str, list[types.FunctionType]]:
    """Text of a value, with functions by name, and these functions; `doc` is left out of the constants."""
    functions: list[types.FunctionType] = []

    def text(value: Any) -> str:
        if type(value) in _PLAIN:  # most values, and quick
            return _ADDRESS.sub("", repr(value))
        python = getattr(getattr(value, "_dispatcher", value), "py_func", value)  # a @vectorize keeps it further in
        if isinstance(python, types.FunctionType) and _is_opened(python.__module__):
            functions.append(python)
            options = getattr(value, "targetoptions", None)  # how Numba compiles it
            pipeline = getattr(getattr(value, "_compiler", None), "pipeline_class", None)
            return f"function {python.__qualname__} {text((options, pipeline))}"
        if isinstance(python, types.MethodType):
            return f"method {text(python.__func__)} of {text(python.__self__)}"
        if isinstance(value, types.CodeType):
            return f"code {text(parts_of_code(value, doc))}"
        if isinstance(value, np.ndarray):  # its repr rounds, and leaves out the middle of a long one
            content = text(value.tolist()) if value.dtype.hasobject else value.tobytes().hex()
            return f"array {value.dtype} {value.shape} {value.flags.f_contiguous} {content}"
        if isinstance(value, (tuple, list)):
            return f"{type(value).__qualname__}({','.join(map(text, value))})"
        if isinstance(value, (set, frozenset)):  # the order of strings differs between processes
            return f"{{{','.join(sorted(map(text, value)))}}}"
        if isinstance(value, dict):
            return f"{{{','.join(f'{k!r}:{text(v)}' for k, v in sorted(value.items(), key=repr))}}}"
        if isinstance(value, type):
            return f"{value.__module__}.{value.__qualname__}{getattr(value, '_fields', '')}"
        if isinstance(value, types.ModuleType):
            return value.__name__
        return _ADDRESS.sub("", repr(value))

    return text(value), functions


def _names(code: types.CodeType) -> Iterator[str]:
    """Global and attribute names in `code` and in the comprehensions and functions inside it."""
    yield from code.co_names
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from _names(const)
