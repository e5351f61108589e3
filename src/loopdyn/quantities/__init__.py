"""What joints, forces and constraints are written in: units, labels, expressions, profiles, words."""
