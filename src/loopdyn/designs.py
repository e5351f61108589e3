"""Designs of a study: grids, tables, samples of tolerances, and samples of other tools."""

from loopdyn.model.tolerances import Tolerance
from loopdyn.studies.designs import Designs, array, grid, samples, table

__all__ = ["Designs", "Tolerance", "array", "grid", "samples", "table"]
