"""Status codes of kernels: the only list.

A kernel returns FINE, the row of a body without inertia (zero or more), or one of the negative codes below. Codes that
a solver returns are turned into errors in words by :mod:`loopdyn.formulations.failures`, those of integrators by
``Stepper.failure``; nobody else puts them into words.

| code | returned by | meaning |
|---|---|---|
| row, 0 or more | tree, graph, rcr | this body can move where it has no inertia in the tree |
| FINE | all | all is well |
| NOT_A_NUMBER | integrators, partition, closure, rcr | accelerations, or the error of a step, are not finite |
| AGAIN | graph, partition, closure, rcr | rows or coordinates have become a poor choice: prepare the solver anew here |
| UNDEFINED | graph, momentum | accelerations, or the iterates of a step, are not finite |
| PASSAGE | auto | the step leads to a singular pose |
| TURNED | integrators | a counted angle turns too far in a step of fixed size for its full turns to be certain |
| SINGULAR_SET | partition, closure, rcr | the other speeds do not follow from those chosen as independent |
| NO_INERTIA | partition, closure, rcr | the mass matrix of the independent speeds is not positive definite |
| NOT_CLOSED | partition, closure, momentum | iterated positions do not converge to closed loops |
| CANNOT_CLOSE | closure | a group of joints does not reach: the limit of the independent coordinates |
| NOT_THERE | closure | the groups close, and some other row is open |
| UNSETTLED | momentum | loads and speeds at the end of a step do not settle |
| SINGULAR_END | momentum | a step ends in a singular pose |
| RAISED | solvers and steps in Python | an error was raised; the stepper keeps it |

They are plain integers, so that Numba compiles them as constants.
"""

from __future__ import annotations

FINE, NOT_A_NUMBER, AGAIN, UNDEFINED, PASSAGE, TURNED = -1, -2, -3, -4, -5, -6
SINGULAR_SET, NO_INERTIA, NOT_CLOSED, CANNOT_CLOSE, NOT_THERE = -7, -8, -9, -10, -11
UNSETTLED, SINGULAR_END, RAISED = -12, -13, -14
