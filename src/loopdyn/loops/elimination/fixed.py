"""Rows chosen at one pose for all others, and the check at each state that they are still the ones to keep there.

The rank is not decided again: all rows are eliminated, those that were found dependent behind the others of their set,
and the pivots tell. Where the same rows are dropped as before, the others are clearly independent and every freedom
has inertia, rank and rows are those that were decided; anywhere else whoever asks must decide again.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from loopdyn.engine import records as rec
from loopdyn.engine.jit import kernel
from loopdyn.engine.records import DINV, open_model, open_work
from loopdyn.loops.elimination.layout import FREE_DINV, SMALLEST_PIVOT, open_elimination
from loopdyn.loops.elimination.solver import Elimination
from loopdyn.system.system import State
from loopdyn.thresholds import NEARLY_CLOSED
from loopdyn.tree.jacobian import linear_terms

Array = NDArray[np.float64]

# Rows are clearly independent: smallest pivot as a fraction of what its row had. The root of it is the distance to a
# singular pose: 1e-3, four orders above that at which rank is lost (thresholds.CANDIDATE); rounding is enlarged by the
# inverse of it, and then refined.
INDEPENDENT = 1e-6
# A freedom has inertia: its pivot as a fraction of that at the pose of the choice. Those that have none are at 1e-12.
MOBILE = 1e-6


@kernel
def holds(ints, floats, work, limits):
    """Whether the choice of rows holds at the state in `work`, where `accelerate` was run; `limits`: see `fix`.

    Loops must be closed, too: at an open pose rank means that of the closed one next to it.
    """
    model, data = open_model(ints, floats), open_work(ints, work)
    E = open_elimination(ints, work)
    n, nv, free = E.pivot.shape[0], model.nv, E.free.shape[0]
    if not E.diagnostics[SMALLEST_PIVOT].real >= INDEPENDENT:
        return False
    for k in range(n):
        if (E.inverse[k] != 0.0) != (limits[k] > 0.0):
            return False
    for k in range(nv):
        if not data.dof[k, DINV].real <= limits[n + k]:
            return False
    for k in range(free):
        if not E.free[k, FREE_DINV].real <= limits[n + nv + k]:
            return False
    first = n + nv + free
    for k in range(limits.size - first):
        if not abs(data.phi[k].real) <= limits[first + k]:  # of relations it is zero here
            return False
    for m in range(model.linear.shape[0]):
        if not abs(linear_terms(model, data, m)[0].real) <= limits[first + model.linear[m, rec.L_ROW]]:
            return False
    return True


def fix(elimination: Elimination, state: State) -> Array | None:
    """Have all rows eliminated, and give the limits within which the choice made at a closed state holds.

    They are one array: for each row of the matrix whether it is kept; for each freedom, then for each motion of a
    severed body, the largest inverse pivot; for each row of the system the largest residual. None where the choice does
    not even hold at the state: it cannot be told there by pivots.
    """
    e, system = elimination, elimination.system
    kept = set(e.plan.kept.tolist())
    e.eliminate_all(state)
    E, severed = e.views, set(e.plan.forest.severed)
    inverse = e.work.dof[:, rec.DINV] / MOBILE
    tree = system.model.tree
    for i in severed:  # its own joint is not eliminated
        inverse[tree[i, rec.V0] : tree[i, rec.V0] + tree[i, rec.NV]] = np.inf
    closed = np.where(system.holonomic, NEARLY_CLOSED * system.row_units, np.inf)
    keep = [float(r in kept) for r in e.plan.kept.tolist()]
    limits = np.concatenate([keep, inverse, E.free[:, FREE_DINV] / MOBILE, closed])
    return limits if holds(*e.arrays, limits) else None
