"""Importing this module imports Numba: for packages whose kernels are called from Python in loops."""

from loopdyn.engine.jit import load_numba

load_numba()
