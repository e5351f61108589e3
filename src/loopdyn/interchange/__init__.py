"""Models in the formats of other tools: reading them with their loops, writing them, and what is lost on the way."""

from loopdyn.interchange.mjcf_reading import ImportedMJCF, read_mjcf
from loopdyn.interchange.report import Imported, Report

__all__ = ["Imported", "ImportedMJCF", "Report", "read_mjcf"]
