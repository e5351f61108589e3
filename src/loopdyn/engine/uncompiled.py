"""Python functions from which kernels and functions of users are compiled.

Only `engine/` uses the attribute of Numba's dispatchers that has them; other code calls :func:`python_function`.
"""

from __future__ import annotations

from typing import Any


def python_function(function: Any) -> Any:
    """Python function from which a kernel, or a jitted function of a user, is compiled; any other object unchanged.

    A function is compiled exactly if the result is another object.

    Examples
    --------
    >>> from loopdyn.engine.jit import kernel
    >>> def add_three(x):
    ...     return x + 3.0
    >>> python_function(kernel(add_three)) is add_three, python_function(add_three) is add_three
    (True, True)
    """
    return getattr(function, "py_func", function)
