"""`Closure`: minimal equations whose dependent coordinates are explicit functions of the independent ones.

The computation at every state is in :mod:`loopdyn.formulations.closure.kernels` (positions) and
:mod:`loopdyn.formulations.partition.kernels` (A, eta, xi and the minimal equations of `partition`); the order of the
steps is found by :mod:`loopdyn.formulations.closure.planner`. This module chooses a set of coordinates, plans for it
and uses it.

The state that is integrated is (q_I, v_I): at every evaluation q_D = g(q_I, t), v_D = A v_I + eta. Loops are closed to
rounding, nothing drifts, and nothing is projected. The *branch* of each group at the start of a run is kept: it is the
sign of the group's determinant. A step is rejected if a group cannot be closed, so that the run ends at the limit
position, unless a coordinate switch occurs before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, islice
from math import comb
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from loopdyn.engine.layout import opened
from loopdyn.engine.status import CANNOT_CLOSE, FINE, NOT_CLOSED, NOT_THERE
from loopdyn.errors import LoopdynError, SingularityError
from loopdyn.formulations import failures
from loopdyn.formulations.base import Array, Solver, SolverKernels
from loopdyn.formulations.choosing import Choosing
from loopdyn.formulations.closure import kernels, layout
from loopdyn.formulations.closure.plan import ClosurePlan
from loopdyn.formulations.closure.planner import is_explicit, plan_closure
from loopdyn.formulations.partition import criteria
from loopdyn.formulations.partition import kernels as partition
from loopdyn.formulations.partition.formulation import (
    FOLLOWED,
    Choice,
    PartitionArrays,
    PartitionSolver,
)
from loopdyn.formulations.partition.layout import FASTEST, GAIN, K_PLUS_N
from loopdyn.loops.rank import Rank, decide, scaled
from loopdyn.system.system import State, System
from loopdyn.thresholds import NEARLY_CLOSED
from loopdyn.tree.functions import constraint_equations, increment

MANY_SETS = 500  # largest number of sets of coordinates that are checked for explicit dependent coordinates
MANY_VARIANTS = 20  # largest number of such sets that are prepared in advance
# A set that makes the others explicit is used unless the exchange of one coordinate improves the measure by this
# factor. Entries of A are then at most its root, in the metric of the criterion: rounding errors of 1e-16 become 1e-15.
WORTH = 100.0
# Near the limit position of such a set, where the discriminant of a group is this small, A and with it the errors of a
# step grow without bound: there an explicit set has no advantage.
NEAR_LIMIT = 0.1
# A plan is tested at a pose near the one at which it was made: axes that are parallel at one pose only form no planar
# group. Largest motion of the coordinates in natural units, and number of trials with smaller motions.
ASIDE, TRIALS = 0.1, 8
SMALL = 1e-8  # motion, in natural units, for the rate of a discriminant that is about 1e-6


class Closer:
    """A plan with arrays of its own, for closing poses from Python.

    Examples
    --------
    >>> import loopdyn as ld
    >>> system = ld.library.four_bar().compile()
    >>> state = ld.assemble(system)
    >>> close = Closer(plan_closure(system, state, [0]))
    >>> q = close(0.0, state.q + [0.2, 0.0, 0.0], close.plan.signs(state))
    >>> bool(abs(ld.tree.constraint_equations(system, ld.State(0.0, q, state.v))[0]).max() < 1e-14)
    True
    """

    def __init__(self, plan: ClosurePlan):
        self.plan, system = plan, plan.system
        self.ints, self.floats, size = plan.add_to(system.ints, system.floats, len(system.work()))
        self.work = np.zeros(size)
        self.state = system.open_work(self.work)
        self.views: layout.Closing = opened(layout.open_closing, self.ints, self.floats, self.work)

    def __call__(self, t: float, q: Array, signs: Array) -> Array | None:
        """Coordinates of the closed pose in the given branches; None if a group or block cannot be closed."""
        self.state.t[0], self.state.q[:] = t, q
        self.views.sign[:] = signs
        found = kernels.close(self.ints, self.floats, self.work) == FINE
        return self.state.q.copy() if found else None

    @property
    def failed(self) -> int:
        """Group that could not be closed at the last call."""
        return int(self.views.notes[layout.WHICH])

    @property
    def margins(self) -> Array:
        """Discriminants of the groups at the last call, in natural units; invalid after a negative one."""
        return np.array(self.views.margin)


# ------------------------------------------------------------------------------------------------------ plan


def plan_for(system: System, state: State, independent: Sequence[int]) -> ClosurePlan:
    """Plan of a set at a closed state, tested at a pose nearby; if it fails there, without groups or in one block.

    Examples
    --------
    >>> import loopdyn as ld
    >>> system = ld.library.slider_crank().compile()
    >>> plan_for(system, ld.assemble(system), [0]).explicit
    True
    """
    plan = plan_closure(system, state, independent)
    if plan.groups and not _holds(plan, state):
        plan = plan_closure(system, state, independent, groups=False)
    if len(plan.blocks) > 1 and not _holds(plan, state):
        plan = plan_closure(system, state, independent, groups=False, apart=False)
    return plan


def _holds(plan: ClosurePlan, state: State) -> bool:
    """Whether the plan closes poses near `state`."""
    system, close = plan.system, Closer(plan)
    signs = plan.signs(state)
    way = np.zeros(system.nv)
    chosen = [system.speeds.index(x) for x in plan.independent]
    way[chosen] = np.random.default_rng(0).uniform(-1.0, 1.0, len(chosen))
    for step in np.outer(ASIDE * 0.5 ** np.arange(TRIALS), [1.0, -1.0]).ravel():
        q = close(state.t, increment(system, state.q, step * way * system.speed_units), signs)
        if q is None:
            continue
        phi = constraint_equations(system, State(state.t, q, np.zeros(system.nv)))[0] / system.row_units
        return bool(np.abs(phi[system.holonomic]).max(initial=0.0) < NEARLY_CLOSED)
    return False


def explicit_sets(system: System, rank: Rank, allowed: NDArray[np.bool_]) -> list[tuple[int, ...]]:
    """Sets of independent speeds that make all other coordinates explicit; the best at the state first.

    If there are too many sets, only those of whole joints are tried, and among these the ones with the fewest joints
    are used: they determine the pose of a body, such as that of a platform on a free joint.

    Examples
    --------
    >>> import loopdyn as ld
    >>> system = ld.library.five_bar().compile()
    >>> found = explicit_sets(system, decide(system, ld.assemble(system)), np.ones(4, bool))
    >>> len(found), [system.speeds[k] for k in found[0]]  # all pairs of its four coordinates
    (6, ['A', 'D'])
    """
    state, k = rank.state or system.state(), system.nv - rank.count
    if k == 0:
        return []
    W = criteria.null_space(scaled(system, constraint_equations(system, state)[1]), rank.count).T
    found: list[tuple[int, ...]] = []
    left = MANY_SETS
    for family in _sets(system, k, allowed):
        sets = [(criteria.measure(W, list(c)), c) for c in islice(family, left)]
        left -= len(sets)
        for value, c in sorted(sets, key=lambda x: (-x[0], x[1])):
            if value <= 0.0 or len(found) == MANY_VARIANTS:
                break
            if is_explicit(system, state, c) and plan_for(system, state, c).explicit:
                found.append(c)
        if found or left == 0:
            break
    return found


def _sets(system: System, k: int, allowed: NDArray[np.bool_]) -> Iterator[Iterator[tuple[int, ...]]]:
    """Sets of k speeds: all, if they are not too many, else those of whole joints, by the number of joints."""
    possible = np.flatnonzero(allowed).tolist()
    if comb(len(possible), k) <= MANY_SETS:
        yield combinations(possible, k)
        return
    joints = [range(j.v0, j.v0 + len(j.spec.speeds)) for j in system.joints.values() if j.in_tree and j.spec.speeds]
    whole = [speeds for speeds in joints if all(allowed[list(speeds)])]
    for count in range(1, k + 1):
        fitting = (some for some in combinations(whole, count) if sum(len(speeds) for speeds in some) == k)
        yield (tuple(sorted(v for speeds in some for v in speeds)) for some in fitting)


# ---------------------------------------------------------------------------------------------------- solver


class ClosureSolver(PartitionSolver):
    """A prepared :class:`Closure`; call it with ``(t, q, v)``.

    Of its arguments it uses t, q_I and v; of the dependent coordinates only the branch or, if the plan iterates, all of
    them as the start.

    Examples
    --------
    >>> import loopdyn as ld
    >>> system = ld.library.four_bar().compile()
    >>> state = ld.assemble(system, v={"A": 2.0})
    >>> solve = ld.prepare(system, "closure", state)
    >>> solve.active, solve.plan_.explicit
    (('A',), True)
    """

    def __init__(self, system: System, rank: Rank, options: Choosing):
        allowed = options.allowed(system, system.nv - rank.count)
        self._planned = False
        self.variants = explicit_sets(system, rank, allowed)
        self._plans: dict[tuple[int, ...], tuple[ClosurePlan, State]] = {}  # of a set, and where it was made
        self._closers: dict[tuple[int, ...], Closer] = {}
        super().__init__(system, rank, options)
        self._install(rank.state or system.state())

    def choose(self, state: State, current: Choice | None) -> Choice:
        """Best set that makes the others explicit; if none is regular enough, the best of all sets, with iteration.

        With hysteresis, as in `partition`.
        """
        if self.forced or not self.variants:
            return super().choose(state, current)
        if current is not None and self._is_singular(current.independent, state):
            current = None
        J = scaled(self.system, constraint_equations(self.system, state)[1])
        start = criteria.best_set(criteria.null_space(J, self.rank.count).T, self.allowed)
        now = self._with_rows(start if current is None else current.independent, state)
        W, switch = self.projections(), self.options.switch
        best = tuple(criteria.best_set(W, self.allowed, list(now.independent)))

        def value(chosen: tuple[int, ...]) -> float:
            return criteria.measure(W, list(chosen))

        explicit = max(self.variants, key=value)
        iterated = current is not None and current.independent not in self.variants
        gain = criteria.largest_gain(W, list(explicit), self.allowed)
        worth = WORTH if self._least_margin(explicit, state) > NEAR_LIMIT else switch
        good = gain < worth / (switch if iterated else 1.0)
        target = explicit if good else best
        if current is not None and iterated != good and value(target) <= switch * value(current.independent):
            target = current.independent
        return now if target == now.independent else self._with_rows(target, state)

    def _least_margin(self, chosen: tuple[int, ...], state: State) -> float:
        """Smallest discriminant of the groups of a set at a state; negative if a group cannot be closed."""
        close = self._closer(chosen, state)
        close(state.t, state.q, close.plan.signs(state))
        return float(close.margins.min(initial=1.0))

    def _install(self, state: State) -> None:
        """Make the plan for the present choice, and its arrays with the state of the run."""
        self.plan_, self._planned = self._closer(self.choice.independent, state).plan, True
        head = self.run.work[: len(self.system.work())].copy()
        by, candidate, switch = self._settings
        fastest = self.run.views.notes[FASTEST]
        self.run = PartitionArrays(self.system, self.rank.count, K_PLUS_N, by, candidate, switch)
        self.run.extend(self.plan_.add_to)
        self.run.work[: len(head)] = head
        self.run.reopen()
        self.run.views.notes[FASTEST] = fastest
        self.closing: layout.Closing = opened(layout.open_closing, *self.run.arrays)
        self.closing.sign[:] = self.plan_.signs(state)

    @property
    def branch(self) -> dict[str, int]:
        """Branch of the run: +1 or -1 for each group."""
        return {g.name: int(s) for g, s in zip(self.plan_.groups, self.closing.sign, strict=True)}

    def accelerations(self, t: float, q: Array, v: Array) -> Array:
        """Accelerations (nv,) alone, as a view that the next call overwrites.

        Another set is chosen if that of the last call is singular, or cannot be closed.
        """
        given = State(t, np.array(q), np.array(v))
        try:
            return self._with_called(given)
        except SingularityError:
            if self.forced:
                raise
            self.called = self.choose(given, None)
            return self._with_called(given)

    def _with_called(self, given: State) -> Array:
        close, q = self._closer(self.called.independent, given), given.q
        if close.plan.explicit:
            closed = close(given.t, q, close.plan.signs(given))
            if closed is None:
                raise self._open_group(given.t, close.plan, close.failed, q)
            q = closed
        if self._held is not self.called:
            self.calls.compare_with(self.called)
            self._held = self.called
        self._evaluate(given.t, q, given.v)
        partition.check(*self.calls.arrays)
        result: Array = self.calls.state.a
        return result

    def _closer(self, chosen: tuple[int, ...], state: State) -> Closer:
        """Closer for poses from Python; makes the plan of the set at the state if it has none."""
        if chosen not in self._plans:
            self._plans[chosen] = plan_for(self.system, state, chosen), state
        plan, _ = self._plans[chosen]
        if chosen not in self._closers or self._closers[chosen].plan is not plan:
            self._closers[chosen] = Closer(plan)
        return self._closers[chosen]

    # -------------------------------------------------------------------------------------------------- runs

    def _kernels(self) -> SolverKernels:
        self.run.compare_with(self.choice)
        # a better set that was not chosen, because it needs iteration, is no reason to choose again after every step
        self.run.views.switch[0] = self.options.switch * max(1.0, self._gain)
        return SolverKernels(
            kernels.accelerate,
            None,
            *self.run.arrays,
            lambda status: self.explain(status, float(self.run.state.t[0])),
            accepted=kernels.accepted,
            keeps=("position", "velocity"),
            choices=self,
            coordinates=self,
        )

    def _may_switch_branch(self, state: State) -> bool:
        """Whether the run may switch to another branch; not at a limit position of a group, where a run ends by itself.

        At a limit position the discriminant of the group is linear in time and negative beyond it; where two branches
        cross it is quadratic and as large behind as before.
        """
        speeds = np.zeros(self.system.nv)
        speeds[list(self.choice.independent)] = state.v[list(self.choice.independent)]
        fastest = float(np.abs(speeds / self.system.speed_units).max(initial=0.0))
        if not self.plan_.groups or not fastest > 0.0:
            return True

        close = self._closer(self.choice.independent, state)

        def margins(dt: float) -> Array:
            close(state.t, increment(self.system, state.q, dt * speeds), self.closing.sign)
            return close.margins

        now, aside = margins(0.0), SMALL / fastest
        g = int(np.argmin(now))
        rate = float(margins(aside)[g] - now[g]) / aside
        if now[g] > FOLLOWED or rate >= 0.0:
            return bool(now[g] > FOLLOWED)  # the group is not the reason, or the motion leads away from its limit
        return bool(margins(-4.0 * now[g] / rate)[g] > 0.0)  # minus three times, or once, what it is now

    def _with_rows(self, independent: Sequence[int], state: State) -> Choice:
        found = super()._with_rows(independent, state)
        self._gain = float(self.calls.views.notes[GAIN])
        return found

    def _taken(self, state: State) -> None:
        """Use the plan for the set, and the branch of each of its groups."""
        self._install(state)

    def save_choices(self) -> dict[str, NDArray[Any]]:
        """Choices of `partition`, the state at which the plan was made, and the branch."""
        _, made = self._plans[self.choice.independent]
        own = {"made_t": np.array(made.t), "made_q": made.q, "branch": self.closing.sign.copy()}
        return super().save_choices() | own | {"gain": np.array(self._gain)}

    def restore_choices(self, saved: Mapping[str, NDArray[Any]]) -> SolverKernels:
        """Restore saved choices."""
        super().restore_choices(saved)
        self._plans.pop(self.choice.independent, None)
        self._install(State(float(saved["made_t"]), np.array(saved["made_q"], float), np.zeros(self.system.nv)))
        self.closing.sign[:] = saved["branch"]
        self._gain = float(saved["gain"])
        return self._kernels()

    @property
    def explained(self) -> str:
        """Plan, and branch of each group, for the record of a run."""
        named = ", ".join(f"{name} {'+-'[s < 0]}" for name, s in self.branch.items())
        return f"{self.plan_}\n  branch: {named or 'none'}"

    def explain(self, status: int, t: float) -> LoopdynError:
        """Error of a status at the time t."""
        if status == CANNOT_CLOSE:
            return self._open_group(t, self.plan_, int(self.closing.notes[layout.WHICH]), self.run.state.q)
        if status == NOT_CLOSED:
            left = "; ".join(", ".join(block.coordinates) for block in self.plan_.blocks)
            return failures.block_not_closed(t, left, self._values(self.run.state.q, self.plan_))
        if status == NOT_THERE:
            return failures.rows_left_open(t, self.system)
        return super().explain(status, t)

    def singular(self, t: float, independent: Sequence[int]) -> SingularityError:
        """Error for a set of speeds that does not determine the others, with their values."""
        found = super().singular(t, independent)
        if not self._planned:  # the first set has not been found yet
            return found
        return SingularityError(f"{found} It is at {self._values(self.run.state.q, self.plan_)}.")

    def _values(self, q: Array, plan: ClosurePlan) -> str:
        s = self.system
        return ", ".join(f"{x} = {q[s.coordinates.index(x)]:.9g}" for x in plan.independent if x in s.coordinates)

    def _open_group(self, t: float, plan: ClosurePlan, which: int, q: Array) -> SingularityError:
        return failures.cannot_close(t, plan.groups[which].joints, plan.independent, self._values(q, plan))


@dataclass(frozen=True)
class Closure(Choosing):
    """Minimal equations in independent coordinates, with the dependent ones as explicit functions of these.

    Parameters
    ----------
    independent : list of str, optional
        Speeds that are always independent.
    candidates : list of str, optional
        Speeds among which the independent ones are chosen, by default all. Sets that make the others explicit are
        prepared in advance; among these the best by the projective criterion of `partition` is used, with coordinate
        switches during a run. If all of them are nearly singular, or there are none, the best of all sets is used and
        the others are iterated.
    switch : float
        Another set is chosen after an accepted step if its measure is larger by this factor.

    Examples
    --------
    >>> import loopdyn as ld
    >>> print(ld.Closure(independent=["A"]).plan(ld.library.four_bar().compile()))
    closure: A independent, 2 coordinates follow, all in closed form
      1. B-C-D: three pins (RRR), places coupler, rocker
    """

    name: ClassVar[str] = "closure"
    form = "2k"

    independent: Sequence[str] | None = None
    candidates: Sequence[str] | None = None
    switch: float = 2.0

    def supports(self, system: System) -> str | None:
        """All systems whose rows constrain positions and that call no Python function."""
        if system.tolerated is not None:
            return f"{system.tolerated}, and loops that are closed by formulas leave nothing open"
        return self.functions_refused(system) or self.positions_refused(system, "'partition'")

    def plan(self, system: System) -> ClosurePlan:  # type: ignore[override]
        """Groups that are solved explicitly, and coordinates that are iterated, at the reference pose."""
        return ClosureSolver(system, decide(system, system.state()), self).plan_

    def prepare(self, system: System, rank: Rank) -> Solver:
        """Choice and plan at the state where the rank was decided."""
        return ClosureSolver(system, rank, self)
