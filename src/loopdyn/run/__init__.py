"""Simulation: from the first state to the last, with events, locks, singular passages and checkpoints."""
