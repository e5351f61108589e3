"""`Closure`: minimal equations whose dependent coordinates are explicit functions of the independent ones.

What is done at every state is in :mod:`loopdyn.formulations.closing` (positions) and :mod:`loopdyn.formulations.blajer`
(A, eta, xi and the minimal equations, as `partition` has them); the order of the steps is found by
:mod:`loopdyn.formulations.groups`. Here a set of coordinates is chosen, planned and used.

The state that is integrated is (q_I, v_I): at every evaluation q_D = g(q_I, t), v_D = A v_I + eta. Loops are closed to
rounding, nothing drifts, and nothing is projected. The closure of each group that a run starts in, its *branch*, is
kept: it is given by the sign of the group's determinant. Where a group cannot be closed a step is rejected, so that the
run ends at the limit, unless other coordinates take over before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, islice
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from loopdyn.errors import LoopdynError, SingularityError
from loopdyn.formulations import blajer, closing, criteria
from loopdyn.formulations.base import Array, Compiled, Formulation, Solver
from loopdyn.formulations.groups import Plan, make_plan
from loopdyn.formulations.partition import Partition, PartitionSolver, WorkArrays
from loopdyn.rank import Rank, decide, scaled
from loopdyn.system import State, System
from loopdyn.tree import closure as rows_at
from loopdyn.tree import increment

MANY_SETS = 500  # sets of coordinates that are tried for one whose dependent ones are explicit
WORTH = 0.01  # share of the best set's measure that such a set must have to be preferred
# A plan is tried beside the pose at which it was made: axes that are parallel there only are no planar group. How far
# coordinates are moved, rad or sizes of the mechanism, at most, and how often a smaller move is tried.
ASIDE, TRIALS = 0.1, 8


class Closer:
    """A plan with arrays of its own, for closing poses from Python.

    Examples
    --------
    >>> import loopdyn as ld
    >>> system = ld.library.four_bar().compile()
    >>> state = ld.assemble(system)
    >>> close = Closer(make_plan(system, state, [0]))
    >>> q = close(0.0, state.q + [0.2, 0.0, 0.0], close.plan.signs(state))
    >>> bool(abs(ld.tree.closure(system, ld.State(0.0, q, state.v))[0]).max() < 1e-14)
    True
    """

    def __init__(self, plan: Plan):
        self.plan, system = plan, plan.system
        ints, floats, work = plan.numbers(len(system.floats), len(system.work()))
        self.ints = np.concatenate([system.ints, ints, [len(system.ints)]])
        self.floats = np.concatenate([system.floats, floats])
        self.work = np.concatenate([system.work(), np.zeros(work)])
        self.state = system.open_work(self.work)
        self.views = _open(self.ints, self.floats, self.work)

    def __call__(self, t: float, q: Array, signs: Array) -> Array | None:
        """Coordinates that close the explicit groups in the given branches, or None where some group cannot be."""
        self.state.t[0], self.state.q[:] = t, q
        self.views.sign[:] = signs
        found = closing.close(self.ints, self.floats, self.work) == closing.FINE
        return self.state.q.copy() if found else None

    @property
    def failed(self) -> int:
        """Which group could not be closed at the last call."""
        return int(self.views.notes[closing.WHICH])

    @property
    def margins(self) -> Array:
        """Discriminants of the groups at the last call, in natural units; those after a negative one are not valid."""
        return np.array(self.views.margin)


def _open(ints: Array, floats: Array, work: Array) -> closing.Closing:
    python = getattr(closing.open_closing, "py_func", closing.open_closing)
    opened: closing.Closing = python(ints, floats, work)
    return opened


# -------------------------------------------------------------------------------------------------- planning


def plan_for(system: System, state: State, independent: Sequence[int]) -> Plan:
    """The plan of a set at a closed state, tried beside it; without groups where it fails there.

    Examples
    --------
    >>> import loopdyn as ld
    >>> system = ld.library.slider_crank().compile()
    >>> plan_for(system, ld.assemble(system), [0]).explicit
    True
    """
    plan = make_plan(system, state, independent)
    if plan.groups and not _holds(plan, state):
        plan = make_plan(system, state, independent, groups=False)
    if plan.explicit and not _holds(plan, state):  # some constraint is not among the steps
        labels = tuple(x for k, x in enumerate(system.coordinates) if x not in plan.independent)
        plan = replace(plan, groups=(), steps=(), lists=(), iterated=labels)
    return plan


def _holds(plan: Plan, state: State) -> bool:
    """Whether poses that the plan closes beside `state` are closed."""
    system, close = plan.system, Closer(plan)
    signs = plan.signs(state)
    way = np.zeros(system.nv)
    chosen = [system.speeds.index(x) for x in plan.independent]
    way[chosen] = np.random.default_rng(0).uniform(-1.0, 1.0, len(chosen))
    for step in np.outer(ASIDE * 0.5 ** np.arange(TRIALS), [1.0, -1.0]).ravel():
        q = close(state.t, increment(system, state.q, step * way * system.speed_units), signs)
        if q is None:
            continue
        if not plan.explicit:
            return True  # what is iterated closes the rest
        phi = rows_at(system, State(state.t, q, np.zeros(system.nv)))[0] / system.row_units
        return bool(np.abs(phi[system.holonomic]).max(initial=0.0) < closing.STILL_CLOSED)
    return False


def explicit_speeds(system: System, rank: Rank, allowed: Array) -> list[int] | None:
    """Speeds to choose from so that the others are explicit: for one freedom all such, for more the best set found.

    None if there are none.
    """
    state, k = rank.state or system.state(), system.nv - rank.count
    if k == 0:
        return None
    possible = np.flatnonzero(allowed)
    W = criteria.null_space(scaled(system, rows_at(system, state)[1]), rank.count).T
    sets = [(criteria.measure(W, list(c)), c) for c in islice(combinations(possible.tolist(), k), MANY_SETS)]
    best = criteria.measure(W, criteria.best_set(W, allowed > 0))
    found: list[int] = []
    for value, c in sorted(sets, reverse=True):
        if value < WORTH * best and (k > 1 or value <= 0.0):
            break
        if plan_for(system, state, c).explicit:
            found += c
            if k > 1:
                return found
    return found or None


# --------------------------------------------------------------------------------------------------- solving


class ClosureSolver(PartitionSolver):
    """A prepared :class:`Closure`; call it with ``(t, q, v)``.

    Of the state it is called with it reads t, q_I and v; of the dependent coordinates only in which branch they are,
    or, where the plan iterates, all of them.

    Examples
    --------
    >>> import loopdyn as ld
    >>> system = ld.library.four_bar().compile()
    >>> state = ld.assemble(system, v={"A": 2.0})
    >>> solve = ld.prepare(system, "closure", state)
    >>> solve.active, solve.plan_.explicit
    (('A',), True)
    """

    def __init__(self, system: System, rank: Rank, options: Partition, limited: bool):
        self._by_user = limited  # whether the options are
        super().__init__(system, rank, options)
        self._plans: dict[tuple[int, ...], tuple[Plan, State]] = {}  # of a set, and where it was made
        self.calls_closer: Closer
        self._install(rank.state or system.state())

    @property
    def _limited(self) -> bool:
        return self._by_user

    def _install(self, state: State) -> None:
        """Plan for the present choice, and arrays for it that hold the state of the run."""
        chosen = self.choice.independent
        if chosen not in self._plans:
            self._plans[chosen] = plan_for(self.system, state, chosen), state
        self.plan_, _ = self._plans[chosen]
        self.calls_closer = Closer(self.plan_)
        form = blajer.K_PLUS_N if self.plan_.explicit else blajer.TWO_K
        head = self.run.work[: len(self.system.work())].copy()
        by, candidate, switch = self._settings
        self.run = WorkArrays(self.system, self.rank.count, form, by, candidate, switch)
        self.run.extend(self.plan_.numbers)
        self.run.work[: len(head)] = head
        self.run.reopen()
        self.run.compare_with(self.choice)
        self.closing = _open(*self.run.arrays)
        self.closing.sign[:] = self.plan_.signs(state)

    @property
    def branch(self) -> dict[str, int]:
        """The closure that the run is in: +1 or -1 for each group."""
        return {g.name: int(s) for g, s in zip(self.plan_.groups, self.closing.sign, strict=True)}

    def accelerations(self, t: float, q: Array, v: Array) -> Array:
        """Accelerations (nv,) alone, as a view that the next call overwrites."""
        if self.plan_.explicit:
            given = State(t, np.array(q), np.array(v))
            closed = self.calls_closer(t, given.q, self.plan_.signs(given))
            if closed is None:
                raise self._open_group(t, self.calls_closer.views, given.q)
            q = closed
        if self._held is not self.choice:
            self.calls.compare_with(self.choice)
            self._held = self.choice
        self._evaluate(t, q, v)
        blajer.check(*self.calls.arrays)
        result: Array = self.calls.state.a
        return result

    # ----------------------------------------------------------------------------------------------- driving

    @property
    def compiled(self) -> Compiled:
        """Its kernels."""
        self.run.compare_with(self.choice)
        return Compiled(
            closing.accelerate,
            None,
            *self.run.arrays,
            lambda status: self._explain(status, float(self.run.state.t[0])),
            self._again,
            self._remember,
            self._recall,
            accepted=closing.accepted,
            keeps=("position", "velocity"),
        )

    def _taken(self, state: State) -> None:
        """The plan for the set, and the branch of each of its groups."""
        self._install(state)

    def _remember(self) -> dict[str, NDArray[Any]]:
        """... the state at which the plan was made, and the branch."""
        _, made = self._plans[self.choice.independent]
        own = {"made_t": np.array(made.t), "made_q": made.q, "branch": self.closing.sign.copy()}
        return super()._remember() | own

    def _recall(self, kept: Mapping[str, NDArray[Any]]) -> Compiled:
        """Take them up again."""
        super()._recall(kept)
        self._plans.pop(self.choice.independent, None)
        self._install(State(float(kept["made_t"]), np.array(kept["made_q"], float), np.zeros(self.system.nv)))
        self.closing.sign[:] = kept["branch"]
        return self.compiled

    @property
    def explained(self) -> str:
        """The plan, and the branch of each group, for the record of a run."""
        named = ", ".join(f"{name} {'+-'[s < 0]}" for name, s in self.branch.items())
        return f"{self.plan_}\n  branch: {named or 'none'}"

    def _explain(self, status: int, t: float) -> LoopdynError:
        if status == closing.CANNOT_CLOSE:
            return self._open_group(t, self.closing, self.run.state.q)
        if status == closing.NOT_THERE:
            return LoopdynError(
                f"the groups of '{self.system.name}' close, and some constraint row is open at t = {t:g} s: axes that "
                "were parallel are not any more. Use formulation='partition'."
            )
        return super()._explain(status, t)

    def _singular(self, t: float, independent: Sequence[int]) -> SingularityError:
        found = super()._singular(t, independent)
        at = getattr(self, "run", None)
        if at is None or not hasattr(self, "plan_"):
            return found
        return SingularityError(f"{found} It is at {self._values(at.state.q)}.")

    def _values(self, q: Array) -> str:
        s = self.system
        return ", ".join(f"{x} = {q[s.coordinates.index(x)]:.9g}" for x in self.active if x in s.coordinates)

    def _open_group(self, t: float, views: closing.Closing, q: Array) -> SingularityError:
        group = self.plan_.groups[int(views.notes[closing.WHICH])]
        return SingularityError(
            f"the joints {', '.join(group.joints)} cannot be closed at {self._values(q)} (t = {t:.9g} s): that is the "
            f"limit of {', '.join(self.active)}, where the group is stretched or folded. Let other coordinates take "
            "over: leave `independent` out, or see ld.coordinates(system, state)."
        )


@dataclass(frozen=True)
class Closure(Formulation):
    """Minimal equations in independent coordinates, with the others as explicit functions of them.

    Parameters
    ----------
    independent : list of str, optional
        Speeds that are independent, whatever happens.
    candidates : list of str, optional
        Speeds among which the independent ones are chosen, by the projective criterion of `partition`. By default those
        that make the others explicit; for two or more freedoms the best set that does, and if there is none all speeds.
    switch : float
        Another set is taken after an accepted step where its measure is larger by this factor.

    Examples
    --------
    >>> import loopdyn as ld
    >>> print(ld.Closure(independent=["A"]).plan(ld.library.four_bar().compile()))
    closure: A independent, 2 coordinates follow, all in closed form
      1. B-C-D: three pins (RRR), places coupler, rocker
    """

    name: ClassVar[str] = "closure"

    independent: Sequence[str] | None = None
    candidates: Sequence[str] | None = None
    switch: float = 2.0

    def __post_init__(self) -> None:
        options = self._partition()
        object.__setattr__(self, "independent", options.independent)
        object.__setattr__(self, "candidates", options.candidates)

    def _partition(self, candidates: Sequence[str] | None = None) -> Partition:
        """The same options for the choice of coordinates."""
        chosen = self.candidates if candidates is None else candidates
        options = {"switch": self.switch, "independent": self.independent, "candidates": chosen}
        return Partition(**options, form="2k", owner=self.name)  # type: ignore[arg-type]

    def supports(self, system: System) -> str | None:
        """Everything whose rows hold positions and that calls no Python function."""
        if system.mechanism.user_forces or system.mechanism.user_constraints:
            return "it has functions in Python, which closure does not call; use 'partition'"
        reason = self._partition().supports(system)
        return None if reason is None else reason.replace("use form='k+n'", "use 'partition'")

    def plan(self, system: System) -> Plan:  # type: ignore[override]
        """Which groups are solved explicitly and which coordinates are iterated, at the reference pose; print it."""
        solver = self.prepare(system, decide(system, system.state()))
        assert isinstance(solver, ClosureSolver)
        return solver.plan_

    def prepare(self, system: System, rank: Rank) -> Solver:
        """Choice and plan at the state where the rank was decided."""
        options, limited = self._partition(), self.independent is not None or self.candidates is not None
        if not limited:
            found = explicit_speeds(system, rank, np.ones(system.nv))
            if found is not None:
                options = self._partition([system.speeds[k] for k in found])
        return ClosureSolver(system, rank, options, limited)
