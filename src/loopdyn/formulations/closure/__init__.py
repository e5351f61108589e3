"""Explicit loop closure [Blajer1993]: `formulation` (options, solver), `plan` (groups), `kernels`, `closed_forms`."""
