"""Force types, one file each; :mod:`loopdyn.forces.dispatch` lists them and chooses among them in kernels."""

from loopdyn.forces.dispatch import *  # noqa: F403  # its __all__ is the list of the public names
