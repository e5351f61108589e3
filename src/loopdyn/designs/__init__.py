"""Designs of a study: grids, tables, samples of tolerances, and samples of other tools."""

from loopdyn.public_names import offer

__getattr__, __dir__, __all__ = offer(__name__, __file__)
