"""Thresholds that several modules share, one table: what a word means in numbers, in which unit, and why.

"Natural units": angles in rad, lengths relative to the size of the mechanism. A constant that one algorithm has for
itself stands in its file, with its reason.
"""

from __future__ import annotations

# name = value         unit                    meaning; reason

# A loop is closed: largest residual of the constraint equations, natural units. A thousand times rounding of a
# mechanism of some ten bodies, a thousandth of the tightest tolerance a run is given (1e-9).
CLOSED = 1e-12

# A residual that no further Newton step improves, natural units: two units of rounding of one.
ROUNDING = 5e-16

# Rows are exact, natural units: met but for rounding after rows that contradict them by 1e-10 or more were left open.
# Ten times CLOSED, as singular values near zero amplify rounding there.
EXACT = 1e-11

# A pose may be taken for closed and projected to CLOSED, natural units: results of files with nine digits and of runs.
NEARLY_CLOSED = 1e-9

# A motion is one of the mechanism, share of the largest term: above the drift of a run at its default tolerance.
CONSISTENT = 1e-6

# Two poses are one, natural units: root of CLOSED, as poses next to a singular one are located to that.
SAME_POSE = 1e-6

# A singular value is a candidate for zero, share of the largest of the scaled Jacobian, or of one: at a closed pose
# spurious ones are at 1e-12 and those of real mechanisms above 1e-5.
CANDIDATE = 1e-7

# A singular value is rounding in a Newton correction, share as above: at poses that are not closed yet, dependent rows
# show values of the size of their residual, and near a singular pose small ones still lead there.
DEPENDENT = 1e-10
