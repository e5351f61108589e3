"""Checks that a formulation keeps the contract."""
