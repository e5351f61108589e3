"""A regular method, and momentum steps through singular poses: `formulation`, `singularity_monitor`."""
