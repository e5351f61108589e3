"""Analyses of a mechanism: assembly, mobility, kinematics, statics, loads, linearization, sensitivity."""
