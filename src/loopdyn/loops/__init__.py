"""Closed loops: rank, projection, reactions, elimination in linear time."""
