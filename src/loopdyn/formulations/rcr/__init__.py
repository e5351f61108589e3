"""Recursive coordinate reduction [Anderson2003]: `formulation` (options, solver), `plan` (loop groups), `kernels`."""
