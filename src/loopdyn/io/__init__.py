"""Model files: reading, writing, and their JSON Schema."""

from loopdyn.io.runs import load_run, save_run
from loopdyn.io.yaml import load, save, schema

__all__ = ["load", "load_run", "save", "save_run", "schema"]
