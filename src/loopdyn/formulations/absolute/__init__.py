"""Absolute coordinates [Mufti1983]: `formulation` (options, solver), `kernels` (equation by equation)."""
