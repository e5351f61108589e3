"""A regular method, and momentum steps through singular poses: `formulation`, `indicator` (how close one is)."""
