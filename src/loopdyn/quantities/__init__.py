"""Quantities of a model: units, labels, expressions, profiles, and the wording of problems."""
