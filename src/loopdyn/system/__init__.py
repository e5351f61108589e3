"""Compiled mechanism: spanning tree, cut joints, frozen arrays."""
