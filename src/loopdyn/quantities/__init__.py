"""Quantities of a model: units, labels, expressions, profiles, and the wording of problems."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(__name__, submodules=["profiles"])
