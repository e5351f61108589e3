"""Constraint types, one file each; :mod:`loopdyn.constraints.dispatch` lists them and chooses among them in kernels."""

from loopdyn.constraints.dispatch import *  # noqa: F403
from loopdyn.constraints.dispatch import __all__ as __all__  # the list of the public names
