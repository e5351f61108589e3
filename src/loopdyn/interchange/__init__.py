"""Models in the formats of other tools: reading and writing them with their loops, and reports of losses."""

from loopdyn.interchange.loading import load
from loopdyn.interchange.mjcf.imported import ImportedMJCF
from loopdyn.interchange.mjcf.reading import read_mjcf
from loopdyn.interchange.mjcf.writing import write_mjcf
from loopdyn.interchange.report import Imported, Report
from loopdyn.interchange.sdf.reading import read_sdf
from loopdyn.interchange.urdf_reading import read_urdf
from loopdyn.interchange.urdf_writing import write_urdf

__all__ = [
    "Imported",
    "ImportedMJCF",
    "Report",
    "load",
    "read_mjcf",
    "read_sdf",
    "read_urdf",
    "write_mjcf",
    "write_urdf",
]
