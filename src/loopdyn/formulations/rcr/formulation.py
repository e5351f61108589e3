"""`Rcr`: recursive coordinate reduction, linear in bodies and loops, velocities satisfied exactly.

The computation at a state is in :mod:`loopdyn.formulations.rcr.kernels`, equation by equation; the order in which loops
are closed in :mod:`loopdyn.formulations.rcr.plan`. This module chooses independent speeds and switches to better ones
by the projective criterion of :mod:`loopdyn.formulations.partition.criteria`, as `partition` does, group by group.

The state that is integrated has all coordinates and the independent speeds: at every evaluation the dependent speeds
follow. Integrators keep full states in any case; the dependent speeds are overwritten, so that a coordinate switch
between two steps does not affect the history of a multistep method.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from loopdyn.engine.status import FINE
from loopdyn.formulations.base import Array, Solution, Solver, SolverKernels
from loopdyn.formulations.choosing import Choosing, ChoosingSolver
from loopdyn.formulations.graph import Graph, GraphSolver
from loopdyn.formulations.partition import criteria
from loopdyn.formulations.rcr import criterion, kernels, layout
from loopdyn.formulations.rcr.packing import ReductionArrays
from loopdyn.formulations.rcr.plan import (
    CoupledGroup,
    JacobianEntries,
    ReductionPlan,
    Tree,
    bound_speeds,
    plan_reduction,
)
from loopdyn.loops.rank import Rank, decide, is_large
from loopdyn.system.system import State, System
from loopdyn.tree.functions import terms
from loopdyn.tree.rnea import rnea

# Width (number of tentative speeds) of a group above which `graph` is used instead. An evaluation takes 0.8 to 1.7
# times that of `graph` up to a width of 6 and 1.3 to 2.5 times from 8 to 28; towers take 2.0 at 13, 2.2 at 22, 2.4 at
# 26, 3.5 at 48 (benchmarks/rcr.py): from about here on exact velocities cost more than a second evaluation.
WIDEST = 24


class RcrSolver(ChoosingSolver):
    """A prepared :class:`Rcr`; call it with ``(t, q, v)``.

    Attributes
    ----------
    active : tuple of str
        Present independent speeds of the run that uses `kernels`; calls from Python choose their own.

    Examples
    --------
    >>> import loopdyn as ld
    >>> system = ld.library.four_bar().compile()
    >>> state = ld.assemble(system, v={"A": 2.0})
    >>> solve = ld.prepare(system, "rcr", state)
    >>> solve.active, solve(state.t, state.q, state.v).diagnostics["rows_dropped"]
    (('A',), 3.0)
    """

    def __init__(self, system: System, rank: Rank, options: Choosing):
        super().__init__(system, rank, options)
        self._tree = Tree(system)
        self._chosen: tuple[State, tuple[int, ...]] = rank.state or system.state(), ()  # where, and the set before
        self.plan_ = self.choose(self._chosen[0], None)
        # for calls, whose states are not corrected, and for runs
        self.calls, self.run = (self._arrays(self.plan_, form) for form in (layout.FULL, layout.K_PLUS_N))

    def _arrays(self, plan: ReductionPlan, form: int) -> ReductionArrays:
        return ReductionArrays(plan, form, self.allowed.astype(float), self.options.switch)

    @property
    def independent(self) -> tuple[int, ...]:
        """Independent speeds of the plan."""
        return self.plan_.independent

    @property
    def explained(self) -> str:
        """The plan, for the record of a run."""
        return str(self.plan_)

    # ------------------------------------------------------------------------------------- choice of a set

    def _with(self, independent: list[int], state: State) -> ReductionPlan:
        """The plan for a set at a state."""
        plan = plan_reduction(self._numbers(state), self.rank.count, independent, self.allowed)
        if plan is None:
            raise self.singular(state.t, independent)
        return plan

    def _numbers(self, state: State) -> JacobianEntries:
        """Rows at a state, for the planner."""
        arrays = self._arrays(ReductionPlan(self.system, (), (), ()), layout.FULL)
        arrays.put(state.t, state.q, state.v)
        kernels.accelerate(*arrays.arrays)  # for the points at which the rows act
        return JacobianEntries(self.system, self._tree, arrays.state, arrays.views.entry)

    def choose(self, state: State, current: Sequence[int] | None) -> ReductionPlan:
        """Best plan at a state, or the current set with cells chosen again if the gain is not worth a switch."""
        numbers, count = self._numbers(state), self.rank.count
        forced = np.flatnonzero(self.allowed).tolist() if self.forced else None
        wanted, plan = self.options.switch, None
        if current is not None or forced is not None:
            plan = plan_reduction(numbers, count, forced or current, self.allowed)
        if plan is None and forced is None:
            plan, wanted = plan_reduction(numbers, count, None, self.allowed), criteria.WORTH
        if plan is None:
            raise self.singular(state.t, forced or current or ())
        if forced is not None or plan.width > WIDEST:
            return plan
        better, gain = self._better(plan, state, wanted)
        other = None if better is None else plan_reduction(numbers, count, better, self.allowed)
        if other is None or (other.width > plan.width and not gain > self.options.switch):
            return plan  # no better set, or the gain is not worth a wider group
        return other

    def _better(self, plan: ReductionPlan, state: State, wanted: float) -> tuple[list[int] | None, float]:
        """A set whose measure is larger by the factor `wanted` in some group, or None; the largest such factor."""
        arrays = self._arrays(plan, layout.FULL)
        arrays.put(state.t, state.q, state.v)
        kernels.accelerate(*arrays.arrays)
        criterion.check(*arrays.arrays)
        G, tree, found = arrays.views, self._tree, set(plan.independent)
        largest = 1.0
        for g in plan.groups:
            if not g.freedoms:
                continue
            speeds = np.array([k for b in g.bodies for k in tree.speeds(b)])
            E = np.array([G.E[arrays.tables.e[k] : arrays.tables.e[k] + g.freedoms] for k in speeds])
            W = E.T / np.sqrt(G.free[speeds])
            before = np.flatnonzero(np.isin(speeds, g.tentative[: g.freedoms])).tolist()
            after = self._best_set(W, speeds, before, self._first_speeds(plan, g), wanted)
            gain = criteria.measure(W, after) / criteria.measure(W, before)
            if gain > wanted:
                found = (found - set(speeds[before].tolist())) | set(speeds[after].tolist())
                largest = max(largest, gain)
        return (sorted(found) if largest > 1.0 else None), largest

    def _best_set(
        self, W: Array, speeds: NDArray[np.int64], before: list[int], near: list[int], wanted: float
    ) -> list[int]:
        """Best set, or a nearly equally good one from `near`: speeds far apart may make a group wider."""
        allowed = self.allowed[speeds]
        best = criteria.best_set(W, allowed, before)
        local = allowed & np.isin(speeds, near)
        if local.sum() < len(W):
            return best
        found = criteria.best_set(W, local)
        good, top, now = (criteria.measure(W, x) for x in (found, best, before))
        return found if good * self.options.switch > top and good > wanted * now else best

    def _first_speeds(self, plan: ReductionPlan, g: CoupledGroup) -> list[int]:
        """Speeds bound by the first cell of a group."""
        first = next((plan.cells[-1 - x] for x in g.steps if x < 0), None)
        return [] if first is None else bound_speeds(plan.elements[first.element], self._tree)

    def criterion(self, t: Array, q: Array, v: Array, active: NDArray[np.bool_]) -> Array:
        """Criterion of each speed as an independent one, at many states with regular sets.

        These are the projections of `partition` with a dense mass matrix; NaN for systems too large for that.
        """
        found = np.full((len(t), self.system.nv), np.nan)
        if is_large(self.system):
            return found
        for n in range(len(t)):
            state = State(float(t[n]), q[n], v[n])
            if not n or (active[n] != active[n - 1]).any():
                arrays = self._arrays(self._with(np.flatnonzero(active[n]).tolist(), state), layout.FULL)
            arrays.put(state.t, state.q, state.v)
            kernels.accelerate(*arrays.arrays)
            criterion.check(*arrays.arrays)
            W = criteria.tangent(terms(self.system, state).M, arrays.motions(), arrays.views.free)
            found[n] = (W**2).sum(axis=0)
        return found

    # ----------------------------------------------------------------------------------------------- solving

    def accelerations(self, t: float, q: Array, v: Array) -> Array:
        """Accelerations (nv,) alone, as a view that the next call overwrites: the fastest call from Python.

        Set and cells are chosen again if another set is better by the factor `switch`, or the cells have become weak.
        """
        c = self.calls
        c.put(t, q, v)
        status = kernels.accelerate(*c.arrays)
        if status != FINE or c.views.notes[layout.PIVOT] < criterion.WEAK_PIVOT:
            c = self.calls = self._arrays(self.choose(State(t, np.array(q), np.array(v)), None), layout.FULL)
            c.put(t, q, v)
            status = kernels.accelerate(*c.arrays)
            if status != FINE:
                raise self.explain(status, t)
        result: Array = c.state.a
        return result

    def solve(self, t: float, q: Array, v: Array) -> Solution:
        """Accelerations and multipliers at one state, which is not corrected."""
        a = self.accelerations(t, q, v).copy()
        c, lam = self.calls, np.empty(self.system.nc)
        rnea(*c.arrays)
        kernels.multipliers(*c.arrays, lam)
        c.state.tau[:] = 0.0
        diagnostics = {
            "pivot_share": float(c.views.notes[layout.PIVOT]),
            "rows_dropped": float(self.system.nc - self.rank.count),
        }
        return Solution(a, lam, diagnostics)

    # -------------------------------------------------------------------------------------------------- runs

    @property
    def kernels(self) -> SolverKernels:
        """Its kernels, for compiled loops."""
        return SolverKernels(
            kernels.accelerate,
            kernels.correct if self.system.nc else None,
            *self.run.arrays,
            lambda status: self.explain(status, float(self.run.state.t[0])),
            accepted=criterion.check,
            keeps=("velocity",),
            choices=self,
            coordinates=self,
        )

    def _use_plan(self, plan: ReductionPlan) -> None:
        """Use a plan in the run and keep the state."""
        head = self.run.work[: len(self.system.work())]
        self.plan_, self.run = plan, self._arrays(plan, layout.K_PLUS_N)
        self.run.work[: len(head)] = head

    def choose_again(self) -> SolverKernels:
        """Choose again, with hysteresis, after an accepted step whose end asks for it."""
        w = self.run.state
        self._chosen = State(float(w.t[0]), w.q.copy(), w.v.copy()), self.plan_.independent
        self._use_plan(self.choose(*self._chosen))
        return self.kernels

    def save_choices(self) -> dict[str, NDArray[Any]]:
        """State at which the plan was chosen, the set before, and its cells there, for a checkpoint."""
        state, before = self._chosen
        return {
            "state": np.array([state.t, *state.q, *state.v]),
            "before": np.array(before, np.int64),
            "cells": self.run.views.chosen.copy(),
        }

    def restore_choices(self, saved: Mapping[str, NDArray[Any]]) -> SolverKernels:
        """Make the same choice again."""
        t, q, v = np.split(saved["state"], [1, 1 + self.system.nq])
        before = tuple(int(k) for k in saved["before"])
        self._chosen = State(float(t[0]), q, v), before
        self._use_plan(self.choose(self._chosen[0], before or None))
        self.run.views.chosen[:] = saved["cells"]
        return self.kernels


class WideGroupSolver(GraphSolver):
    """Solver of `graph` that keeps the plan that was too wide, for the record of a run."""

    def __init__(self, system: System, rank: Rank, too_wide: str):
        super().__init__(system, rank)
        self._too_wide = too_wide

    @property
    def explained(self) -> str:
        """The plan that was too wide."""
        return self._too_wide


@dataclass(frozen=True)
class Rcr(Choosing):
    """Recursive coordinate reduction: loops are closed one after another, in linear time, and velocities exactly.

    Parameters
    ----------
    independent : list of str, optional
        Speeds that are independent, regardless of the criterion.
    candidates : list of str, optional
        Speeds among which the independent ones are chosen; by default all.
    switch : float
        Another set is chosen after an accepted step if its measure is larger by this factor.

    Examples
    --------
    >>> import loopdyn as ld
    >>> print(ld.Rcr().plan(ld.library.four_bar().compile()))
    rcr: 1 of 3 speeds independent; 2 of 5 rows kept; 1 group of loops, 0 bodies outside of loops
      1. on ground: 3 bodies, independent: A
         C: B, D by 2 of 5 rows
    """

    name: ClassVar[str] = "rcr"

    independent: Sequence[str] | None = None
    candidates: Sequence[str] | None = None
    switch: float = 2.0

    def supports(self, system: System) -> str | None:
        """All systems without functions in Python."""
        return self.functions_refused(system)

    def plan(self, system: System) -> str:
        """Groups, cells and dependent speeds at the reference pose; groups too wide, for which `graph` is used."""
        rank = decide(system, system.state())
        solver = RcrSolver(system, rank, self)
        return str(solver.plan_) + self._too_wide(system, solver.plan_)

    def _too_wide(self, system: System, plan: ReductionPlan) -> str:
        if plan.width <= WIDEST:
            return ""
        wide = [n for n, g in enumerate(plan.groups, 1) if len(g.tentative) > WIDEST]
        return (
            f"\nhanded to graph: group {', '.join(map(str, wide))} of width {plan.width} is too wide (over {WIDEST})"
            f"\n{Graph().plan(system)}"
        )

    def prepare(self, system: System, rank: Rank) -> Solver:
        """Plan and arrays at the state where the rank was decided; the solver of `graph` where a group is too wide."""
        solver = RcrSolver(system, rank, self)
        if solver.plan_.width <= WIDEST:
            return solver
        return WideGroupSolver(system, rank, str(solver.plan_) + self._too_wide(system, solver.plan_))
