"""Checks of the kernels of several formulations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from numba.core.runtime import _nrt_python, rtsys

import loopdyn as ld
from loopdyn.integrators.loop import nothing

CALLS = 100


def check_nothing_is_allocated(functions: Sequence[Any], arrays: tuple[Any, ...]) -> None:
    """Calls of kernels allocate no more than those of an empty one: handles of the arrays."""
    if not hasattr(nothing, "overloads"):
        pytest.skip("with the JIT off")

    def allocated(function: Any) -> int:
        function(*arrays)
        before = rtsys.get_allocation_stats().alloc
        for _ in range(CALLS):
            function(*arrays)
        return rtsys.get_allocation_stats().alloc - before

    _nrt_python.memsys_enable_stats()
    try:
        handing_over = allocated(nothing)
        assert [allocated(f) for f in functions] == [handing_over] * len(functions)
    finally:
        _nrt_python.memsys_disable_stats()


def check_complex_numbers(system: ld.System, state: ld.State, work: Any, evaluate: Callable[[Any], None]) -> None:
    """A complex step gives the derivative of the accelerations by the first coordinate, as differences do.

    `evaluate` runs kernels on a copy of `work` with the state in it.
    """
    if hasattr(nothing, "overloads"):
        pytest.skip("compiled for real numbers; the same source is checked with the JIT off")

    def at(dq: complex) -> Any:
        copy = work.astype(complex)
        w = system.open_work(copy)
        w.t[0], w.q[:], w.v[:] = state.t, state.q, state.v
        w.q[0] += dq
        evaluate(copy)
        return w.a.copy()

    h = 1e-5  # errors of the difference: its square times the third derivative, and 1e-16/h
    difference = (at(h) - at(-h)).real / (2.0 * h)
    np.testing.assert_allclose(at(1e-30j).imag / 1e-30, difference, rtol=1e-6)
