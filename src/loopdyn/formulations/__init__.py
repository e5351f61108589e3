"""Formulations of the equations of motion, one file per method, behind one contract."""
