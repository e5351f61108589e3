"""Analyses for special questions; the usual ones are at the top."""

from loopdyn.public_names import offer

__getattr__, __dir__, __all__ = offer(__name__, __file__)
