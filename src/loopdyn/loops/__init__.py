"""Closed loops: rank, projection, reactions, elimination in linear time."""

import loopdyn.engine.loaded  # noqa: F401  # their kernels are called from Python
