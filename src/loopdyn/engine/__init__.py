"""Compilation and disk cache of kernels: the only code that uses Numba's internals."""
