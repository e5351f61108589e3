"""`Graph`: accelerations and multipliers of any topology, exactly and in linear time.

The spanning tree is eliminated body by body as in the articulated-body algorithm; the multipliers of the cut joints
travel along as columns and are solved at the end by sparse elimination. Where loops stand on one another the tree
is severed further, so that no body carries many columns (:mod:`loopdyn.elimination`).

Rows that depend on others are left out: how many is decided by :mod:`loopdyn.rank`, which ones is chosen by pivots
and chosen again where the mechanism has moved on so far that others are better. After each solve the rows are
evaluated with the accelerations found, and the multipliers are refined until nothing is missing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from loopdyn.elimination import layout
from loopdyn.elimination.passes import accelerate
from loopdyn.elimination.solver import Elimination
from loopdyn.errors import SingularityError
from loopdyn.formulations.base import Array, Formulation, Solution, Solver
from loopdyn.rank import Rank
from loopdyn.system import State, System
from loopdyn.tree import terms

# The rows are chosen again where the smallest scaled pivot has fallen to this share of what it was.
CHOOSE_AGAIN = 1e-2
# A scaled pivot below this is rounding: the pose is singular.
SINGULAR = 1e-14


class GraphSolver:
    """A prepared :class:`Graph`; call it with ``(t, q, v)``."""

    def __init__(self, system: System, rank: Rank):
        self.rank = rank
        self.elimination = Elimination(system, rank.state or system.state(), rank.count)

    def __call__(self, t: float, q: Array, v: Array) -> Solution:
        """Accelerations and multipliers at one state."""
        e = self.elimination
        e.set_state(t, q, v)
        e.run(accelerate)
        if e.views.diagnostics[layout.SMALLEST_PIVOT] < CHOOSE_AGAIN * e.reference:
            self._choose_again(t, q, v)
        if not np.isfinite(e.work.a).all():
            self._undefined(t, q, v)
        found = e.views.diagnostics
        diagnostics = {
            "residual": float(found[layout.RESIDUAL]),
            "refinements": float(found[layout.REFINEMENTS]),
            "smallest_pivot": float(found[layout.SMALLEST_PIVOT]),
            "rows_dropped": float(e.system.nc - e.count),
        }
        return Solution(e.work.a.copy(), e.views.multipliers[: e.system.nc].copy(), diagnostics)

    def _undefined(self, t: float, q: Array, v: Array) -> None:
        """Raise the error that says what has no finite value: a constraint row, or something else."""
        terms(self.elimination.system, State(t, np.array(q, float), np.array(v, float)))
        raise SingularityError(
            f"accelerations are not finite numbers at t = {t:g} s. Check springs and actuators whose points coincide "
            "there, formulas that divide by zero, and the state."
        )

    def _choose_again(self, t: float, q: Array, v: Array) -> None:
        e = self.elimination
        state = State(t, np.array(q, float), np.array(v, float))
        e.choose(state, self.rank.count)
        if e.reference < SINGULAR:
            raise e.rank_loss(t, f"the smallest scaled pivot is {e.reference:.1e}")


@dataclass(frozen=True)
class Graph(Formulation):
    """Exact and linear in the number of bodies, for every mechanism whose loops are of bounded width.

    Examples
    --------
    >>> import loopdyn as ld
    >>> system = ld.library.four_bar().compile()
    >>> print(ld.Graph().plan(system))  # doctest: +ELLIPSIS
    graph: 3 bodies in 2 trees, 3 speeds; 2 rows of multipliers kept of 5
    cut: C; severed besides: none
    ...
    """

    name: ClassVar[str] = "graph"

    def supports(self, system: System) -> str | None:
        """No user forces and user constraints: they are called from Python."""
        if system.mechanism.user_forces:
            return "the model has user forces, which this formulation does not call yet"
        if system.mechanism.user_constraints:
            return "the model has user constraints, which this formulation does not call"
        return None

    def plan(self, system: System) -> str:
        """Forest, cuts, order of elimination and operations; rows are chosen at the reference pose."""
        return str(Elimination(system, system.state()).plan)

    def prepare(self, system: System, rank: Rank) -> Solver:
        """Plan, rows, work arrays."""
        return GraphSolver(system, rank)
