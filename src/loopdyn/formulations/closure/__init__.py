"""Explicit closing of loops [Blajer1993]: `formulation` (options, solver), `plan` (groups), `kernels`, `torus`."""
