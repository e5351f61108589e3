"""An elimination prepared for one system: which rows it keeps, and the calls of its kernels."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loopdyn.engine import records as rec
from loopdyn.engine.layout import Ints, opened
from loopdyn.errors import SingularityError
from loopdyn.loops.elimination import layout
from loopdyn.loops.elimination.passes import CHOOSE_AGAIN, SINGULAR, accelerate, correct
from loopdyn.loops.elimination.plan import EliminationPlan, plan_elimination, plans_alike, with_numbers_of
from loopdyn.system.system import State, System
from loopdyn.tree.functions import no_inertia_in_tree

Array = NDArray[np.float64]

# A pivot below this fraction of the largest in its set of rows is rounding: the row depends on earlier ones.
DEPENDENT_PIVOT = 1e-13
# A set of rows that constrains no further motion, such as a joint parallel to another, is zero up to rounding squared.
# The scale of a set is therefore at least this fraction of the largest set or, where all sets are such (a door on two
# hinges), of the most mobile freedom; bodies of very different mass are still told apart.
NOTHING = 1e-9
# Off the constraint manifold the pivot of a dependent row grows with the square of the drift; where the number of
# independent rows is known, the threshold is raised up to this share.
LARGEST_DEPENDENT = 1e-5


class Elimination:
    """A plan with independent rows, and the arrays of its kernels.

    Parameters
    ----------
    system : System
    state : State
        Closed state at which the rows are chosen.
    independent : int, optional
        Number of independent rows, where it has been decided.
    add : callable, optional
        Puts the block of whoever calls the kernels behind the arrays of a plan; returns ints, floats and the length of
        the work array.

    Attributes
    ----------
    plan : EliminationPlan
    count : int
        Rows of the system, cut joints and constraints, that are independent.
    gap : float
        Smallest pivot kept over the largest dropped, each as a fraction of its set of rows.
    reference : float
        Smallest scaled pivot at the state where the rows were chosen.
    threshold : float
        Fraction of the largest pivot in a set of rows, below which rows were dropped there.
    """

    def __init__(
        self,
        system: System,
        state: State,
        independent: int | None = None,
        add: Callable[[EliminationPlan], tuple[Ints, Array, int]] | None = None,
    ):
        self.system, self._add = system, add
        self._use(self._planned())
        self.choose(state, independent)

    def _planned(
        self, severed: Collection[int] | None = None, rows: Mapping[str, Sequence[int]] | None = None
    ) -> EliminationPlan:
        """A plan, kept with the system: structure and rows alone decide it."""
        of_rows = None if rows is None else tuple((name, tuple(some)) for name, some in rows.items())
        key = None if severed is None else frozenset(severed), of_rows
        system, origin = self.system, self.system.kept.origin

        def make() -> EliminationPlan:
            if origin is None or not system.kept.find("same plans", None, lambda: plans_alike(system, origin)):
                return plan_elimination(system, severed, rows)
            first = origin.kept.find("plan", key, lambda: plan_elimination(origin, severed, rows))
            return with_numbers_of(system, first)

        return system.kept.find("plan", key, make)

    def _use(self, plan: EliminationPlan) -> None:
        self.plan = plan
        ints, floats, size = (plan.ints, plan.floats, plan.work) if self._add is None else self._add(plan)
        self.arrays = (ints, np.array(floats), np.zeros(size))  # a copy: other numbers may be written into it
        model: rec.Model = opened(rec.open_model, ints, self.arrays[1])
        model.constants[:] = self.system.model.constants  # inputs of a simulation change them
        self.work: rec.Work = opened(rec.open_work, ints, self.arrays[2])
        self.views: layout.EliminationWork = opened(layout.open_elimination, ints, self.arrays[2])

    def _replan(self, rows: dict[str, list[int]] | None = None) -> None:
        self._use(self._planned(self.plan.forest.severed, rows))

    def use_numbers(self, system: System) -> None:
        """Continue with another system: plans are alike, rows are the same functions of time and coordinates."""
        if system is not self.system:
            self.system, self.plan = system, with_numbers_of(system, self.plan)
            self.arrays[1][: len(self.plan.floats)] = self.plan.floats

    def set_state(self, t: float, q: Any, v: Any) -> None:
        """Write a state into the work array."""
        self.work.t[0] = t
        self.work.q[:] = q
        self.work.v[:] = v

    # ------------------------------------------------------------------------------------ choosing rows

    def choose(self, state: State, count: int | None = None) -> None:
        """Choose independent rows at a state; within a set of rows those with the largest pivots are preferred.

        Parameters
        ----------
        state : State
        count : int, optional
            Number of independent rows of the system, if it was decided before and the state may be off the
            constraint manifold.

        Raises
        ------
        SingularityError
            If fewer rows are independent here than `count`.
        """
        if any(len(n.rows) != n.all_rows for n in self.plan.forest.nodes):
            self._replan()
        shares, threshold = self._shares(state, DEPENDENT_PIVOT), DEPENDENT_PIVOT
        if (shares < DEPENDENT_PIVOT).any() or (count is not None and count < self.system.nc):
            self._replan(self._orders())
            shares = self._shares(state, DEPENDENT_PIVOT)
        redundant = None if count is None else self.system.nc - count
        while redundant is not None and (shares < threshold).sum() < redundant and threshold < LARGEST_DEPENDENT:
            threshold *= 10.0
            shares = self._shares(state, threshold)
        keep, self.threshold = shares >= threshold, threshold
        if redundant is not None and (~keep).sum() != redundant:
            raise self._refusal(state.t, f"{(~keep).sum()} rows depend on others, {redundant} were expected")
        self.count = self.system.nc - int((~keep).sum())
        dropped = max(float(shares[~keep].max(initial=0.0)), np.finfo(float).eps)
        self.gap = float(shares[keep].min(initial=1.0)) / dropped if (~keep).any() else np.inf
        if not keep.all():
            gone = set(self.plan.kept[~keep].tolist())
            self._replan({n.name: [r for r in n.rows if r not in gone] for n in self.plan.forest.nodes})
        self.refer_to(state, count is not None)

    def refer_to(self, state: State, decided: bool = True) -> None:
        """Judge the rows that are kept, and from now on their pivots, by those at a state.

        Raises
        ------
        SingularityError
            If the rows are dependent there, and their number was decided.
        """
        self.set_state(state.t, state.q, state.v)
        self.keep_rows()
        self.run(accelerate)
        found = self.views.diagnostics
        self.reference = 0.0 if found[layout.DROPPED] > 0.0 else float(found[layout.SMALLEST_PIVOT])
        if decided and self.reference < SINGULAR:
            raise self._refusal(state.t, f"the smallest scaled pivot is {self.reference:.1e}")
        found[layout.WEAKEST_PIVOT] = max(CHOOSE_AGAIN * self.reference, SINGULAR)

    def choice(self) -> dict[str, NDArray[Any]]:
        """Rows of each node in order, their number, and the pivot below which they are chosen again."""
        rows = [n.rows for n in self.plan.forest.nodes]
        return {
            "rows": np.array([r for some in rows for r in some], np.int64),
            "counts": np.array([len(some) for some in rows], np.int64),
            "weakest": self.views.diagnostics[[layout.WEAKEST_PIVOT]],
        }

    def take(self, choice: Mapping[str, NDArray[Any]]) -> None:
        """Restore the rows of an earlier :meth:`choice`."""
        rows = iter(choice["rows"].tolist())
        counted = zip(self.plan.forest.nodes, choice["counts"].tolist(), strict=True)
        self._replan({node.name: list(islice(rows, count)) for node, count in counted})
        self.views.diagnostics[layout.WEAKEST_PIVOT] = choice["weakest"][0]

    def _shares(self, state: State, threshold: float) -> Array:
        """Pivot of each row as a fraction of the largest in its set; rows below `threshold` are dropped meanwhile."""
        E, n, scale = self.views, self.plan.pattern.rows, self._scale(state)
        E.floor[:] = threshold * scale
        self.run(accelerate)
        E.floor[:] = 0.0
        shares: Array = np.divide(E.pivot, scale, out=np.zeros(n), where=scale > 0.0)
        return shares

    def _scale(self, state: State) -> Array:
        """Scale of the pivot of each row: the largest in its set at a state, or what counts as zero."""
        E = self.views
        self.set_state(state.t, state.q, state.v)
        E.floor[:] = 0.0
        self.keep_rows()
        self.run(accelerate)
        units = self.plan.row_units
        inertia = E.diagonal / units**2  # in natural units, where angles and lengths compare
        largest = np.zeros(len(self.plan.forest.nodes))
        np.maximum.at(largest, self.plan.row_nodes, inertia)
        largest = np.maximum(largest, NOTHING * max(largest.max(initial=0.0), self._mobility()))
        scale: Array = largest[self.plan.row_nodes] * units**2
        return scale

    def eliminate_all(self, state: State) -> None:
        """Plan all rows, the dependent ones behind the others of their set, to be dropped at each state."""
        every = self._planned(self.plan.forest.severed).forest.nodes
        pairs = zip(self.plan.forest.nodes, every, strict=True)
        self._replan({n.name: [*n.rows, *(r for r in a.rows if r not in n.rows)] for n, a in pairs})
        self.views.floor[:] = self.threshold * self._scale(state)
        self.run(accelerate)

    def dropped_at(self, state: State, threshold: float) -> int:
        """Number of rows whose pivots at a state are below `threshold` in their sets, in the present order of rows."""
        return int((self._shares(state, threshold) < threshold).sum())

    def _mobility(self) -> float:
        """Largest acceleration of a freedom under a unit load, in natural units, at the last evaluation."""
        whole = self.plan.whole_speeds
        found = self.work.dof[whole, rec.DINV] / self.system.speed_units[whole] ** 2
        free = self.views.free[:, layout.FREE_DINV].reshape(-1, 2, 3) / np.array([[self.system.size], [1.0]]) ** 2
        return max(float(found.max(initial=0.0)), float(free.max(initial=0.0)))

    def _orders(self) -> dict[str, list[int]]:
        """Rows of each node, the most independent first, by pivoted Cholesky of its own block of the matrix."""
        E, pattern = self.views, self.plan.pattern
        E.diagnostics[layout.MATRIX_ONLY] = 1.0
        self.run(accelerate)
        E.diagnostics[layout.MATRIX_ONLY] = 0.0
        units = self.plan.row_units
        orders = {}
        for k, node in enumerate(self.plan.forest.nodes):
            p, m = int(pattern.place[k]), len(node.rows)
            first, start = int(pattern.first[p]), pattern.where(p, p)
            lower = np.tril(E.matrix[start : start + m * m].reshape(m, m))
            block = lower + np.tril(lower, -1).T
            block /= np.outer(units[first : first + m], units[first : first + m])
            orders[node.name] = [node.rows[a] for a in _pivot_order(block)]
        return orders

    # ---------------------------------------------------------------------------------------- the kernels

    def run(self, kernel: Any) -> None:
        """Call a kernel on the arrays; raises if a body has no inertia and leaves other statuses to the caller."""
        status = kernel(*self.arrays)
        if status >= 0:
            raise self.no_inertia(status)

    def keep_rows(self) -> None:
        """Ignore weak pivots until rows are chosen again."""
        self.views.diagnostics[layout.WEAKEST_PIVOT] = 0.0

    def no_inertia(self, body: int) -> SingularityError:
        """Error for a body whose pivot vanishes."""
        w = self.work
        return no_inertia_in_tree(self.system, State(float(w.t[0]), w.q.copy(), w.v.copy()), body)

    def project(self, state: State, steps: int = 1) -> State:
        """Close positions and velocities by linear corrections, until the residual is rounding or after `steps`."""
        self.set_state(state.t, state.q, state.v)
        before = np.inf
        self.keep_rows()
        for _ in range(steps):
            self.run(correct)
            missing = float(self.views.diagnostics[layout.RESIDUAL])
            if not missing < 0.5 * before:
                break
            before = missing
        return State(state.t, self.work.q.copy(), self.work.v.copy(), state.note)

    def _refusal(self, t: float, what: str) -> SingularityError:
        """Error for a pose where rows lose their independence; the next call must choose rows again."""
        self.views.diagnostics[layout.WEAKEST_PIVOT] = np.inf
        return SingularityError(
            f"'{self.system.name}' is in a singular pose at t = {t:g} s: {what}. Accelerations are not unique there; "
            "start at a pose nearby, or see ld.mobility(system, state)."
        )


def _pivot_order(A: Array) -> list[int]:
    """Order of pivoted Cholesky: at each step the largest remaining diagonal."""
    A = A.copy()
    left, order = list(range(len(A))), []
    while left:
        k = max(left, key=lambda i: A[i, i])
        left.remove(k)
        order.append(k)
        if A[k, k] > 0.0:
            A -= np.outer(A[:, k], A[k]) / A[k, k]
    return order
