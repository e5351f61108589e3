"""What joints, forces and constraints are written in: units, labels, expressions, profiles, words."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(__name__, submodules=["profiles"])
