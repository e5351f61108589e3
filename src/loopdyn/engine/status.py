"""Status codes of kernels: the only list.

A kernel returns FINE, the row of a body without inertia (zero or more), or one of the negative codes below. Codes that
a solver returns are turned into errors in words by :mod:`loopdyn.formulations.failures`, those of integrators by
``Stepper.failure``; no other code does so.

| code | returned by | meaning |
|---|---|---|
| row, 0 or more | tree, graph, rcr | this body has a motion without inertia in the tree |
| FINE | all | success |
| NOT_A_NUMBER | integrators, partition, closure, rcr | accelerations, or the error of a step, are not finite |
| AGAIN | graph, partition, closure, rcr | rows or coordinates have become a poor choice: prepare the solver again |
| UNDEFINED | graph, momentum | accelerations, or the iterates of a step, are not finite |
| PASSAGE | auto | the step leads to a singular pose |
| TURNED | integrators | a counted angle turns too far in a step of fixed size for its full turns to be certain |
| SINGULAR_SET | partition, closure, rcr | the independent speeds do not determine the others |
| NO_INERTIA | partition, closure, rcr | the mass matrix of the independent speeds is not positive definite |
| NOT_CLOSED | partition, closure, momentum | iterated positions do not converge to closed loops |
| CANNOT_CLOSE | closure | a group of joints cannot be closed: limit position of the independent coordinates |
| NOT_THERE | closure | the groups are closed, but another row is open |
| UNSETTLED | momentum | loads and speeds at the end of a step do not converge |
| SINGULAR_END | momentum | a step ends in a singular pose |
| RAISED | solvers and steps in Python | an error was raised; the stepper keeps it |

They are plain integers, so that Numba compiles them as constants.
"""

from __future__ import annotations

FINE, NOT_A_NUMBER, AGAIN, UNDEFINED, PASSAGE, TURNED = -1, -2, -3, -4, -5, -6
SINGULAR_SET, NO_INERTIA, NOT_CLOSED, CANNOT_CLOSE, NOT_THERE = -7, -8, -9, -10, -11
UNSETTLED, SINGULAR_END, RAISED = -12, -13, -14
