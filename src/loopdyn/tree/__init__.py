"""Dynamics of the spanning tree: kernels, one algorithm per file, and the functions called from Python (`functions`).

The public functions here check their arguments; modules of loopdyn import from `functions`.
"""

from loopdyn.tree.functions import (
    Energy,
    Motion,
    Terms,
    TreeSolver,
    add_user_forces,
    body_jacobian,
    body_motion,
    constraint_equations,
    counted,
    difference,
    energy,
    forward_dynamics,
    increment,
    inverse_dynamics,
    joint_coordinates,
    mass_matrix,
    readings,
    relative_pose,
    require_rows,
    terms,
)
from loopdyn.tree.user_rows import user_rows

__all__ = [
    "Energy",
    "Motion",
    "Terms",
    "TreeSolver",
    "add_user_forces",
    "body_jacobian",
    "body_motion",
    "constraint_equations",
    "counted",
    "difference",
    "energy",
    "forward_dynamics",
    "increment",
    "inverse_dynamics",
    "joint_coordinates",
    "mass_matrix",
    "readings",
    "relative_pose",
    "require_rows",
    "terms",
    "user_rows",
]
