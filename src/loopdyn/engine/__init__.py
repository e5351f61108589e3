"""Compilation and disk cache of kernels: the only code that uses Numba's internals."""

from loopdyn.engine.compile_notice import NOTICE

NOTICE.listen()
