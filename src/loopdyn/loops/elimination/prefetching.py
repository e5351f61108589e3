"""Prefetching of the memory that the passes need soon."""

from loopdyn.engine.jit import inline, prefetch
from loopdyn.engine.records import (
    AV,
    V0,
    X,
)
from loopdyn.loops.elimination.layout import (
    RESPONSE,
)

# Number of bodies between the present one and the one that is prefetched.
AHEAD = 3


@inline(always=True)
def prefetch_responses(plan, E, i):
    """Prefetch the first 32 responses of body i; few bodies have more."""
    at = plan.at[i, RESPONSE]
    prefetch(E.response, at)
    prefetch(E.response, at + 8)
    prefetch(E.response, at + 16)
    prefetch(E.response, at + 24)


@inline(always=True)
def prefetch_motion(model, work, i):
    """Prefetch the data for the acceleration of body i: its row from X to AV, and the rows of two freedoms."""
    prefetch(work.body, i, X)
    prefetch(work.body, i, X + 8)
    prefetch(work.body, i, X + 16)
    prefetch(work.body, i, AV + 2)
    first = model.tree[i, V0]
    prefetch(work.dof, first, 0)
    prefetch(work.dof, first, 8)
    prefetch(work.dof, first + 1, 2)
    prefetch(work.dof, first + 1, 10)
