"""Formulations of the equations of motion, one folder per paper, behind one contract."""
