"""Steps that conserve momentum [Huang2002]: `formulation`, `kernels`, `large` (linear time), `published_scheme`."""
