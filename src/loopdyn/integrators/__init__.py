"""Integrators: adaptive, fixed-step and stiff ones, one family a file."""
