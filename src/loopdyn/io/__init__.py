"""Model files: reading, writing, and their JSON Schema."""

from loopdyn.io.yaml import load, save, schema

__all__ = ["load", "save", "schema"]
