"""Force types, one file each; :mod:`loopdyn.forces.dispatch` lists them and chooses among them in kernels."""

from loopdyn.forces.dispatch import *  # noqa: F403
from loopdyn.forces.dispatch import __all__ as __all__  # the list of the public names
