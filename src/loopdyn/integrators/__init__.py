"""Integrators: adaptive, fixed-step and stiff methods, one family per file.

The public names are listed in ``__init__.pyi``.
"""

import loopdyn.engine.loaded  # noqa: F401  # their kernels are called from Python
from loopdyn.public_names import offer

__getattr__, __dir__, __all__ = offer(__name__, __file__)
