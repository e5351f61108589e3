"""Memory that the passes need soon is asked for ahead of time."""

from loopdyn.engine.jit import inline, prefetch
from loopdyn.engine.records import (
    AV,
    V0,
    X,
)
from loopdyn.loops.elimination.layout import (
    RESPONSE,
)

# Bodies ahead of the present one whose numbers are asked for.
AHEAD = 3


@inline(always=True)
def prefetch_responses(plan, E, i):
    """Ask for the responses of body i: the first 32, of which few bodies have more."""
    at = plan.at[i, RESPONSE]
    prefetch(E.response, at)
    prefetch(E.response, at + 8)
    prefetch(E.response, at + 16)
    prefetch(E.response, at + 24)


@inline(always=True)
def prefetch_motion(model, work, i):
    """Ask for what accelerations of body i are found with: its row from X to AV, and those of two freedoms."""
    prefetch(work.body, i, X)
    prefetch(work.body, i, X + 8)
    prefetch(work.body, i, X + 16)
    prefetch(work.body, i, AV + 2)
    first = model.tree[i, V0]
    prefetch(work.dof, first, 0)
    prefetch(work.dof, first, 8)
    prefetch(work.dof, first + 1, 2)
    prefetch(work.dof, first + 1, 10)
