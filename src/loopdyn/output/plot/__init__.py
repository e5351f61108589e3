"""Plots and pictures with matplotlib, which is imported when something is drawn; a file per kind of plot."""
