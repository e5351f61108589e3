"""Integrators: adaptive, fixed-step and stiff methods, one family per file."""
