"""Coordinate partitioning [Blajer1994]: `formulation` (options, solver), `kernels` (its equations), `criteria`."""
