"""Formulations of the equations of motion, one folder per paper, with one contract for all."""
