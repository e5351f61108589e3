"""Kernels as arguments of other kernels, by their address."""

from __future__ import annotations

import weakref
from typing import Any

import numba
import numpy as np
from numba.extending import typeof_impl

# Pointers of each kernel by the types of their arguments: to look up a kernel and its address takes 50 us.
_POINTERS: weakref.WeakKeyDictionary[Any, dict[tuple[Any, ...], Pointer]] = weakref.WeakKeyDictionary()
_ARRAY_TYPES: dict[tuple[Any, ...], Any] = {}  # Numba's types by what distinguishes arrays


class Pointer(numba.types.WrapperAddressProtocol):  # type: ignore[misc]
    """A kernel compiled for given types, as a value that other kernels can be handed."""

    def __init__(self, compiled: Any):
        self._compiled = compiled  # keeps the code alive
        self._address = int(compiled.library.get_pointer_to_function(compiled.fndesc.llvm_cfunc_wrapper_name))
        self.type = numba.types.FunctionType(compiled.signature)

    def __wrapper_address__(self) -> int:
        return self._address

    def signature(self) -> Any:
        """Types of the arguments and of the result."""
        return self._compiled.signature


@typeof_impl.register(Pointer)  # type: ignore[untyped-decorator]
def _type_of_pointer(value: Pointer, context: Any) -> Any:
    return value.type


def pointer(function: Any, *arguments: Any) -> Any:
    """A kernel as an argument of other kernels, by its address, for arguments of these types.

    The type of such an argument is its signature alone: what calls it is compiled once for all functions, while
    :func:`loopdyn.engine.jit.specialise` compiles the caller again for each, the whole of the function included.

    Examples
    --------
    >>> from loopdyn.engine.jit import kernel
    >>> @kernel
    ... def apply(function, x):
    ...     return function(x)
    >>> @kernel
    ... def add_three(x):
    ...     return x + 3.0
    >>> apply(pointer(add_three, 1.0), 4.0)
    7.0
    """
    if not hasattr(function, "overloads"):  # with the JIT off
        return function
    types = tuple(_type_of(a) for a in arguments)
    known = _POINTERS.setdefault(function, {})
    if types not in known:
        function.compile(types)
        known[types] = Pointer(function.overloads[types])
    return known[types]


def _type_of(value: Any) -> Any:
    """Type of a value in compiled code."""
    if type(value) is not np.ndarray:
        return numba.typeof(value)
    flags = value.flags
    key = value.dtype, value.ndim, flags.c_contiguous, flags.f_contiguous, flags.writeable, flags.aligned
    if key not in _ARRAY_TYPES:
        _ARRAY_TYPES[key] = numba.typeof(value)
    return _ARRAY_TYPES[key]


__all__ = ["pointer"]
