"""Vectors, rotations and Plücker algebra in kernels."""
