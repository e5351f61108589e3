"""`Graph`: accelerations and multipliers of any topology, exactly and in linear time.

The spanning tree is eliminated body by body as in the articulated-body algorithm; the multipliers of the cut joints are
propagated as columns and solved at the end by sparse elimination. Where loops are stacked, further joints are severed,
so that no body carries many columns (:mod:`loopdyn.loops.elimination`).

Rows that depend on others are left out: :mod:`loopdyn.loops.rank` decides how many, pivots decide which ones. They are
chosen again once the mechanism has moved so far that others are better. After each solution the residuals of the rows
are evaluated, and the multipliers are refined until these are rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from loopdyn.engine.layout import Ints
from loopdyn.engine.status import AGAIN, FINE, PASSAGE, UNDEFINED
from loopdyn.errors import SingularityError
from loopdyn.formulations import failures
from loopdyn.formulations.base import Array, FixedSolver, Formulation, Solution, Solver, SolverKernels
from loopdyn.loops.elimination import layout
from loopdyn.loops.elimination.fixed import fix, holds
from loopdyn.loops.elimination.passes import accelerate, correct
from loopdyn.loops.elimination.plan import EliminationPlan
from loopdyn.loops.elimination.solver import Elimination
from loopdyn.loops.rank import Rank
from loopdyn.system.system import State, System
from loopdyn.tree.functions import add_user_forces, terms


class GraphSolver(Solver):
    """A prepared :class:`Graph`; call it with ``(t, q, v)``.

    Examples
    --------
    >>> import loopdyn as ld
    >>> system = ld.library.four_bar().compile()
    >>> state = ld.assemble(system, v={"A": 2.0})
    >>> solve = ld.prepare(system, "graph", state)
    >>> solution = solve(state.t, state.q, state.v)
    >>> solution.diagnostics["rows_dropped"], solution.diagnostics["residual"] < 1e-12
    (3.0, True)
    >>> bool((solve.accelerations(state.t, state.q, state.v) == solution.a).all())
    True
    """

    def __init__(
        self, system: System, rank: Rank, add: Callable[[EliminationPlan], tuple[Ints, Array, int]] | None = None
    ):
        self.rank = rank
        self._has_functions = bool(system.mechanism.user_forces)
        self.elimination = Elimination(system, rank.state or system.state(), rank.count, add)
        self._open()

    def _open(self) -> None:
        e = self.elimination
        self._arrays, self._t, self._q, self._v, self._a = e.arrays, e.work.t, e.work.q, e.work.v, e.work.a

    def accelerations(self, t: float, q: Array, v: Array) -> Array:
        """Accelerations (nv,) alone, as a view that the next call overwrites: the fastest call from Python."""
        self._t[0] = t
        self._q[...] = q  # half the time of [:]
        self._v[...] = v
        if self._has_functions:
            self._call_functions(t, q, v)
        status = accelerate(*self._arrays)
        if status != FINE:
            self._recover(status, t, q, v)
            if self._has_functions:  # rows were chosen without user forces
                self._call_functions(t, q, v)
                self.elimination.run(accelerate)
        result: Array = self._a
        return result

    def _call_functions(self, t: float, q: Array, v: Array) -> None:
        """Write the generalised forces of user forces to the work array."""
        tau = self.elimination.work.tau
        tau[...] = 0.0
        add_user_forces(self.elimination.system, t, q, v, tau)

    def solve(self, t: float, q: Array, v: Array) -> Solution:
        """Accelerations and multipliers at one state."""
        self.accelerations(t, q, v)
        return self._solution()

    def _solution(self) -> Solution:
        """Solution of the last evaluation, in arrays of its own."""
        e, found = self.elimination, self.elimination.views.diagnostics
        diagnostics = {
            "residual": float(found[layout.RESIDUAL]),
            "refinements": float(found[layout.REFINEMENTS]),
            "smallest_pivot": float(found[layout.SMALLEST_PIVOT]),
            "rows_dropped": float(e.system.nc - e.count),
        }
        return Solution(self._a.copy(), e.views.multipliers[: e.system.nc].copy(), diagnostics)

    @property
    def kernels(self) -> SolverKernels:
        """Its kernels, for compiled loops."""
        return SolverKernels(accelerate, correct, *self.elimination.arrays, self.explain, choices=self)

    def choose_again(self) -> SolverKernels:
        """Choose rows again at the state in the work array, where the present ones have become weak."""
        self._recover(AGAIN, float(self._t[0]), self._q, self._v)
        return self.kernels

    def save_choices(self) -> Mapping[str, NDArray[Any]]:
        """Rows that are kept, and their reference pivot."""
        return self.elimination.choice()

    def restore_choices(self, saved: Mapping[str, NDArray[Any]]) -> SolverKernels:
        """Restore saved rows."""
        self.elimination.take(saved)
        self._open()
        return self.kernels

    def explain(self, status: int) -> SingularityError:
        """Error of a status at the state in the work array."""
        if status == AGAIN:
            return failures.rows_dependent(float(self._t[0]))
        return self._failure(status, State(float(self._t[0]), self._q.copy(), self._v.copy()))

    def _recover(self, status: int, t: float, q: Array, v: Array) -> None:
        """Choose rows again if they have become weak; raise the error of any other status."""
        state = State(t, np.array(q, float), np.array(v, float))
        if status != AGAIN or not np.isfinite(self.elimination.views.diagonal).all():
            raise self._failure(status, state)
        try:
            self.elimination.choose(state, self.rank.count)
        finally:
            self._open()

    def _failure(self, status: int, state: State) -> SingularityError:
        """Error of a status at a state."""
        if status >= 0:
            return self.elimination.no_inertia(status)
        if status == PASSAGE:
            return failures.singular_ahead(state.t)
        if status not in (UNDEFINED, AGAIN):
            raise failures.unknown(status)
        terms(self.elimination.system, state)  # names the constraint row, if it is one that has no finite value
        return failures.not_finite(state.t)


class FixedRowsSolver(GraphSolver, FixedSolver):
    """A prepared :class:`Graph` that never chooses rows again: it tells where others are to be kept."""

    def __init__(self, system: System, rank: Rank):
        super().__init__(system, rank)
        state = rank.state or system.state()
        self._limits = fix(self.elimination, state)
        self._open()

    @property
    def usable(self) -> bool:
        """Whether the rows hold where they were chosen."""
        return self._limits is not None

    def attempt(self, t: float, q: Array, v: Array) -> bool:
        """Compute at a state; whether the rows hold there."""
        self._t[0] = t
        self._q[...] = q
        self._v[...] = v
        return accelerate(*self._arrays) == FINE and bool(holds(*self._arrays, self._limits))

    def found(self, full: bool) -> Array | Solution:
        """Result of the last attempt: accelerations, or the whole solution."""
        return self._solution() if full else self._a.copy()


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
        """No user constraints; user forces are called from Python."""
        if system.mechanism.user_constraints:
            return "the model has user constraints, which this formulation does not call"
        return None

    def plan(self, system: System) -> str:
        """Forest, cuts, order of elimination and operations; rows are chosen at the reference pose."""
        return str(Elimination(system, system.state()).plan)

    def prepare(self, system: System, rank: Rank) -> Solver:
        """Plan, rows, work arrays."""
        return GraphSolver(system, rank)

    def prepare_fixed(self, system: System, rank: Rank) -> FixedSolver | None:
        """Rows of one pose, unless they may depend on speeds."""
        if not system.affine:
            return None
        solver = FixedRowsSolver(system, rank)
        return solver if solver.usable else None
