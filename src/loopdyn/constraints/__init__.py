"""Constraint types, one file each; :mod:`loopdyn.constraints.dispatch` lists them and chooses among them in kernels."""

from loopdyn.constraints.dispatch import *  # noqa: F403  # its __all__ is the list of the public names
