"""Plots, drawings, animations, reports."""
