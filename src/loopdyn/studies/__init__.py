"""Studies: many runs of one mechanism."""
