"""Thresholds that several modules share, in one table: meaning, unit and reason of each.

"Natural units": angles in rad, lengths relative to the size of the mechanism. A constant that one algorithm has for
itself stands in its file, with its reason.
"""

from __future__ import annotations

# A loop is closed: largest residual of the constraint equations.
# Natural units. Some thousand units of rounding: Newton's method reaches it in long loops as well.
CLOSED = 1e-12

# No further Newton step improves a pose: largest residual.
# Natural units. Two units of rounding of one.
ROUNDING = 5e-16

# Rows are satisfied exactly, while rows that contradict them stay open: largest residual, or fraction of a singular
# value. Natural units. Ten times CLOSED, far below contradictions that rounded dimensions make.
EXACT = 1e-11

# A pose is intended to be closed, and may be projected to CLOSED: largest residual.
# Natural units. Poses written with nine digits.
NEARLY_CLOSED = 1e-9

# A coordinate is at a limit: largest amount by which it may exceed the limit.
# Natural units. Far above the rounding of a closed pose, far below a dimension.
AT_LIMIT = 1e-9

# A coordinate does not move in a motion: its fraction of the largest one.
# Natural units. Far above the rounding of speeds, far below a ratio that matters to a designer.
STILL = 1e-9

# A state or a motion satisfies the constraints: residual as a fraction of the largest term.
# Samples written with seven digits.
CONSISTENT = 1e-6

# Two poses are the same: largest difference, whole turns not counted.
# Natural units. Root of CLOSED: next to a singular pose the residual is the square of the distance.
SAME_POSE = 1e-6

# Rank is lost: fraction of the largest singular value of the scaled Jacobian, or of one.
# At a pose located to the root of rounding, 1.5e-8, a vanishing singular value has this size.
CANDIDATE = 1e-7

# Rows depend on others in a Newton correction: fraction of the largest singular value, or of one.
# Far below CANDIDATE: near a singular pose small singular values still lead to it.
DEPENDENT = 1e-10

# Steps that close loops are made by dense matrices up to here, by sparse ones above: more speeds or constraint rows.
# Assembly of ladders takes as long by both ways at some 160: docs/decisions/0019-sparse-steps.md.
LARGEST_DENSE_STEP = 150
