"""Sparse elimination: the multipliers of all cut joints in linear time, on any topology.

`plan` (pure Python, once per system) decides what is eliminated in which order; `passes` has the kernels that do it,
with `rows`, `matrix`, `outward`, `residuals` and `ldl` below it. :mod:`loopdyn.formulations.graph` is the formulation
made of them.
"""
