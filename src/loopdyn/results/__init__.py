"""Results of simulations and analyses, and quantities computed from them.

The public names, with those of results that are defined next to their analysis, are listed in ``__init__.pyi``.
"""

from loopdyn.public_names import offer

__getattr__, __dir__, __all__ = offer(__name__, __file__)
