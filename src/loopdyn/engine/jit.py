"""The one door to Numba.

Every compiled function of loopdyn is made by :func:`kernel`, and by :func:`specialise` where a
kernel is to call a function chosen at run time. Five rules live here and nowhere else:

* **Kernels are kept on disk by their content** (`engine.cache`). Numba itself looks only at the file of the function it
  compiles and would go on using an old callee from another file.
* **A function bound at run time is bound as a global** of a re-created function with a name of its
  own. Passed as an argument or held in a closure it would be compiled again in every process.
* **Kernels release the GIL**: what they write to belongs to one thread (a solver is taken by one thread at a time).
* **NaN and infinity keep their meaning** (no ``nnan``/``ninf`` in the fast-math flags): bad numbers
  must be seen, not optimised away.
* **Numba is imported when the first kernel is needed**: to import it takes longer than to read a model and to find what
  is wrong with it. Packages above `system`, whose kernels Python calls in loops, call :func:`load_numba` first: theirs
  are then dispatchers of Numba at once, without a :class:`Deferred` before them.

With ``NUMBA_DISABLE_JIT=1`` the same sources run as plain Python.
"""

from __future__ import annotations

import functools
import math
import os
import sys
import threading
import types
from collections.abc import Callable
from typing import Any

from loopdyn.engine.fingerprint import fingerprint

OPTIONS = {
    "nopython": True,
    "fastmath": {"contract", "reassoc", "nsz", "arcp"},
    "error_model": "numpy",
}

_LOADING = threading.RLock()
_DEFERRED: list[Deferred] = []  # kernels and helpers without a dispatcher
_make: Callable[..., Any] | None = None  # `compiler.dispatcher`, as soon as Numba is imported


def load_numba() -> None:
    """Import Numba, and make the dispatchers of all kernels and helpers so far."""
    global _make
    with _LOADING:
        if _make is not None or _jit_is_off():
            return
        from loopdyn.engine import windows  # noqa: F401  # their types become known to Numba
        from loopdyn.engine.compile_notice import NOTICE
        from loopdyn.engine.compiler import dispatcher

        NOTICE.listen()
        while _DEFERRED:  # a Ctrl-C in between leaves the rest for the next call
            one = _DEFERRED[-1]
            one.made = one.made or dispatcher(one.py_func, one.options)
            _DEFERRED.pop()
        _make = dispatcher


def _jit_is_off() -> bool:
    """Whether kernels run as plain Python; Numba's own setting counts as soon as it is imported."""
    numba = sys.modules.get("numba")
    if numba is not None and hasattr(numba, "config"):
        return bool(numba.config.DISABLE_JIT)
    return os.environ.get("NUMBA_DISABLE_JIT", "0").strip() not in ("", "0")


class Deferred:
    """A kernel or helper that was met before Numba was imported; it passes everything on to its dispatcher."""

    made: Any = None  # the dispatcher

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]):
        self.options = options
        self.py_func = self.__wrapped__ = function
        self.__module__, self.__doc__ = function.__module__, function.__doc__  # a class has its own of these
        _DEFERRED.append(self)

    def __call__(self, *args: Any) -> Any:
        """Call the kernel."""
        return (self.made or self._loaded())(*args)

    def __getattr__(self, name: str) -> Any:
        if name in ("__name__", "__qualname__"):
            return getattr(self.py_func, name)
        return getattr(self.made or self._loaded(), name)

    @property
    def _numba_type_(self) -> Any:
        """Type by which compiled functions know it."""
        return (self.made or self._loaded())._numba_type_

    def __reduce__(self) -> str:
        return self.py_func.__qualname__  # by its name, as functions are

    def _loaded(self) -> Any:
        load_numba()
        return self.made


def _compiled(function: Callable[..., Any], **options: Any) -> Any:
    """`function` as a kernel or helper; itself with the JIT off."""
    if _jit_is_off():
        return function
    return Deferred(function, options) if _make is None else _make(function, options)


def kernel(function: Callable[..., Any] | None = None, *, short_loops: bool = False) -> Any:
    """Compile `function` on first call; cached on disk if it comes from a file and was not typed in.

    ``@kernel(short_loops=True)`` is for one whose loops have few turns: the vectoriser of LLVM made `graph` up to a
    third slower, by a share that changed from process to process.
    """
    if function is None:
        return functools.partial(kernel, short_loops=short_loops)
    return _compiled(function, short_loops=short_loops)


def inline(function: Callable[..., Any] | None = None, *, always: bool = False) -> Any:
    """A function that is compiled into its callers only: algebra over tuples, passes over opened arrays.

    It cannot be called from Python (except with the JIT off), which spares it the wrappers that unpack
    arguments: they took a third of the compile time. LLVM does the inlining; Numba's own inlining at the level
    of its intermediate code gives the same speed but was measured to compile twice as long.

    ``@inline(always=True)`` is for a pass over the whole tree, too large for LLVM to inline by itself: handing the
    opened arrays to it takes 0.2 us, as much as two bodies. Not for what is called in many places or for each body.
    Its loops are left to the kernel that it becomes part of.
    """
    if function is None:
        return functools.partial(inline, always=always)
    return _compiled(function, always=always)


def window(array: Any, start: int, *shape: int) -> Any:
    """View of a one-dimensional array from `start` on, in the given shape (one or two lengths).

    In compiled code it is an address and nothing more: no count of owners, which takes an atomic instruction
    wherever a view is handed on, no check of the ends, no index that counts from the end. It must not outlive the
    call of a kernel.

    Examples
    --------
    >>> import numpy as np
    >>> window(np.arange(6.0), 2, 2, 2)
    array([[2., 3.],
           [4., 5.]])
    """
    return array[start : start + math.prod(shape)].reshape(shape)


def whole(array: Any) -> Any:
    """All of a one-dimensional array as a :func:`window`.

    A kernel that uses its arrays only so is not their owner: to count owners takes six atomic instructions a call.
    """
    return window(array, 0, array.size)


def prefetch(array: Any, *index: int) -> None:
    """Ask for a number of a :func:`window` that will be needed soon, which need not exist; nothing else happens.

    For tables whose rows are not read one after another: the processor foresees only those.

    Examples
    --------
    >>> import numpy as np
    >>> prefetch(window(np.arange(6.0), 0, 3, 2), 2, 0)
    """


def specialise(function: Any, /, **bound: Any) -> Any:
    """Return `function` re-created with `bound` as globals: a kernel that calls functions chosen at run time.

    Parameters
    ----------
    function : kernel
        A kernel that calls the functions to be chosen by global name.
    **bound : jitted functions or numbers
        What each of these names is to mean.

    Returns
    -------
    kernel
        A kernel of its own name, found in the cache by later processes that bind the same content.

    Examples
    --------
    >>> @kernel
    ... def twice(x):
    ...     return step(step(x))
    >>> @kernel
    ... def add_three(x):
    ...     return x + 3.0
    >>> specialise(twice, step=add_three)(1.0)
    7.0
    """
    python = getattr(function, "py_func", function)
    return kernel(_recreated(python, f"{python.__name__}_{fingerprint((python, bound))[:16]}", bound))


def rebind(function: Callable[..., Any], /, **bound: Any) -> Callable[..., Any]:
    """Bind globals of a function as :func:`specialise` does, but without compilation, for `bound` Python functions.

    Examples
    --------
    >>> def twice(x):
    ...     return step(step(x))
    >>> rebind(twice, step=lambda x: x + 3.0)(1.0)
    7.0
    """
    return _recreated(function, function.__name__, bound)


def _recreated(python: Any, name: str, bound: dict[str, Any]) -> types.FunctionType:
    """`python` as a function of its own name whose globals are extended by `bound`."""
    made = types.FunctionType(
        python.__code__, {**python.__globals__, **bound}, name, python.__defaults__, python.__closure__
    )
    made.__qualname__ = name
    made.__module__ = python.__module__
    return made
