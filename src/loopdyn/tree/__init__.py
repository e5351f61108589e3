"""Dynamics of the spanning tree: kernels, one algorithm per file, and the functions called from Python (`functions`).

Functions whose names begin with ``open_tree`` ignore the loops: cut joints, constraints and drivers hold nothing there.
The public functions here check their arguments; modules of loopdyn import from `functions`.
"""

from typing import Any

import loopdyn.engine.loaded  # noqa: F401  # their kernels are called from Python
from loopdyn.public_names import missing
from loopdyn.tree.functions import (
    Energy,
    Motion,
    Terms,
    TreeSolver,
    add_user_forces,
    body_motion,
    constraint_equations,
    counted,
    difference,
    energy,
    increment,
    joint_coordinates,
    open_tree_body_jacobian,
    open_tree_forward_dynamics,
    open_tree_inverse_dynamics,
    open_tree_mass_matrix,
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
    "body_motion",
    "constraint_equations",
    "counted",
    "difference",
    "energy",
    "increment",
    "joint_coordinates",
    "open_tree_body_jacobian",
    "open_tree_forward_dynamics",
    "open_tree_inverse_dynamics",
    "open_tree_mass_matrix",
    "readings",
    "relative_pose",
    "require_rows",
    "terms",
    "user_rows",
]


def __getattr__(name: str) -> Any:
    raise missing(__name__, name)
