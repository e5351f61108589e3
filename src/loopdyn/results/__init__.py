"""Runs and what is computed from them."""
