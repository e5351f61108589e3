"""A regular method, with momentum steps through singular poses: `formulation`, `singularity_monitor`."""
