"""`Partition`: minimal equations in independent joint coordinates, the best ones at each time.

The number of independent speeds is that of the degrees of freedom; the other speeds of the tree follow from the
constraint rows. The computation at a state is in :mod:`loopdyn.formulations.partition.kernels`, equation by equation;
the comparison of coordinates in :mod:`loopdyn.formulations.partition.criteria`. This module chooses a set, uses it, and
switches to a better one.

The state that is integrated has one of two forms (end of section 2 of the paper):

* ``k+n``: v_I and all q. At every evaluation v_D = A v_I + eta. Positions drift within the tolerance, and are projected
  by the drift control of the run.
* ``2k``: v_I and q_I. At every evaluation q_D is solved from phi(t, q) = 0, then v_D. Nothing drifts.

Integrators keep full states and derivatives in any case; the dependent ones are overwritten by functions of the
independent ones. So a coordinate switch between two steps does not affect the history of a multistep method.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, get_args

import numpy as np
from numpy.typing import NDArray

from loopdyn.engine.layout import Ints, fill, opened, with_block
from loopdyn.engine.records import H_SOLVER, PARENT
from loopdyn.engine.records import V0 as FIRST_SPEED
from loopdyn.engine.status import AGAIN, FINE, NOT_CLOSED, SINGULAR_SET
from loopdyn.errors import LoopdynError, SingularityError
from loopdyn.formulations import failures
from loopdyn.formulations.base import Array, Solution, Solver, SolverKernels
from loopdyn.formulations.choosing import Choosing, ChoosingSolver, Criterion, Form
from loopdyn.formulations.partition import criteria, kernels, layout
from loopdyn.loops.rank import Rank, decide, of_matrix, scaled
from loopdyn.quantities.wording import nearest
from loopdyn.system.system import State, System
from loopdyn.tree.functions import add_user_forces, constraint_equations, require_rows
from loopdyn.tree.user_rows import user_rows

# Fraction of the smallest pivot of C_D at the choice of a set, below which the run ends if there is no better set:
# rounding in q_D grows with the inverse of the pivot and in v_D with its square, 1e-16 becomes 1e-10. Closer to a pose
# where all sets are singular, rounding limits the steps, or the run switches to another branch.
FOLLOWED = 1e-3


@dataclass(frozen=True)
class Choice:
    """Independent speeds and rows that are kept, by number, and what `kernels.check` compares later states with."""

    independent: tuple[int, ...]
    rows: tuple[int, ...]
    sign: float
    pivot: float


class PartitionArrays:
    """Arrays of the kernels for one system and one form of the state, with views of them."""

    def __init__(self, system: System, rank: int, form: int, weighing: int, candidate: Array, switch: float):
        k, r = system.nv - rank, rank
        header = {
            layout.P_K: k, layout.P_R: r, layout.P_FORM: form, layout.P_AFFINE: int(system.affine),
            layout.P_WEIGHING: weighing,
        }  # fmt: skip
        self.ints, self.floats, size = with_block(
            system.ints, system.floats, len(system.work()), H_SOLVER, header, layout.partition_sizes
        )
        self.system, self.work = system, np.zeros(size)
        self.reopen()
        fill(
            self.views,
            I=np.zeros(k), D=np.zeros(r), rows=np.zeros(r), holonomic=system.holonomic, above=_above(system),
            row_unit=system.row_units, unit=system.speed_units, candidate=candidate, switch=switch,
        )  # fmt: skip

    def reopen(self) -> None:
        """Open the views of the present arrays."""
        self.arrays = (self.ints, self.floats, self.work)
        self.state = self.system.open_work(self.work)
        self.views: layout.Partitioned = opened(layout.open_partition, *self.arrays)

    def extend(self, add: Callable[[Ints, Array, int], tuple[Ints, Array, int]]) -> None:
        """Put a block behind the arrays: `add` is given ints, floats and the length of the work, and returns these."""
        self.ints, self.floats, size = add(self.ints, self.floats, len(self.work))
        self.work = np.concatenate([self.work, np.zeros(size - len(self.work))])
        self.reopen()

    def use(self, independent: Sequence[int], rows: Sequence[int]) -> None:
        """Write the lists that the kernels read."""
        P = self.views
        P.I[:], P.rows[:] = independent, rows
        P.D[:] = [i for i in range(P.M.shape[0]) if i not in set(independent)]

    def compare_with(self, choice: Choice) -> None:
        """Write the values that later states are compared with."""
        self.use(choice.independent, choice.rows)
        self.views.notes[[layout.SIGN_CHOSEN, layout.PIVOT_CHOSEN]] = choice.sign, choice.pivot

    def put(self, t: float, q: Array, v: Array) -> None:
        """Write a state."""
        self.state.t[0], self.state.q[:], self.state.v[:] = t, q, v


def _above(system: System) -> NDArray[np.int64]:
    """Next speed towards the root of the tree for each speed, or -1."""
    tree = system.model.tree
    last = np.full(len(tree), -1)  # the last speed of each body, or of the next body towards the root that has any
    above = np.full(system.nv, -1, np.int64)
    for i in range(system.n_bases, len(tree)):
        last[i] = last[tree[i, PARENT]]
        end = tree[i + 1, FIRST_SPEED] if i + 1 < len(tree) else system.nv
        for k in range(tree[i, FIRST_SPEED], end):
            above[k] = last[i]
            last[i] = k
    return above


class PartitionSolver(ChoosingSolver):
    """A prepared :class:`Partition`; call it with ``(t, q, v)``.

    Attributes
    ----------
    active : tuple of str
        Present independent speeds of the run that uses `kernels`; calls from Python choose their own.

    Examples
    --------
    >>> import loopdyn as ld
    >>> system = ld.library.four_bar().compile()
    >>> state = ld.assemble(system, v={"A": 2.0})
    >>> solve = ld.prepare(system, "partition", state)
    >>> solve.active, solve(state.t, state.q, state.v).diagnostics["rows_dropped"]
    (('A',), 3.0)
    """

    def __init__(self, system: System, rank: Rank, options: Choosing):
        super().__init__(system, rank, options)
        by = layout.BY_INERTIA if options.criterion in ("tangent", "orthogonal") else layout.BY_GEOMETRY
        self._settings = by, self.allowed.astype(float), options.switch
        self.calls = PartitionArrays(system, rank.count, layout.FULL, *self._settings)
        form = layout.K_PLUS_N if options.form == "k+n" else layout.TWO_K
        self.run = PartitionArrays(system, rank.count, form, *self._settings)
        self.user = user_rows(system)
        self.functions = bool(system.mechanism.user_forces or system.mechanism.user_constraints)
        self._held: Choice | None = None  # whose lists the arrays of `calls` hold
        # of a run, and of calls from Python, which may be at other states
        self.choice = self.called = self.choose(rank.state or system.state(), None)
        self._pivot_taken = self.choice.pivot

    @property
    def independent(self) -> tuple[int, ...]:
        """Independent speeds of the present choice."""
        return self.choice.independent

    # ------------------------------------------------------------------------------------- choice of a set

    def choose(self, state: State, current: Choice | None) -> Choice:
        """Best set at a state, or the current one with rows chosen again if the gain is not worth a switch."""
        if current is not None and (self.forced or not self._is_singular(current.independent, state)):
            now, wanted = self._with_rows(current.independent, state), self.options.switch
        else:
            J = scaled(self.system, constraint_equations(self.system, state)[1])
            if self.options.criterion == "lu":
                return self._with_rows(criteria.by_elimination(J, self.rank.count, self.allowed), state)
            start = criteria.best_set(criteria.null_space(J, self.rank.count).T, self.allowed)
            now, wanted = self._with_rows(start, state), criteria.WORTH
        if self.forced:
            return now
        W, before = self.projections(), list(now.independent)
        found = criteria.best_set(W, self.allowed, before)
        is_better = criteria.measure(W, found) > wanted * criteria.measure(W, before)
        return self._with_rows(found, state) if is_better else now

    def _is_singular(self, independent: Sequence[int], state: State) -> bool:
        """Whether these speeds do not determine the others, as decided by :mod:`loopdyn.loops.rank`."""
        J = scaled(self.system, constraint_equations(self.system, state)[1])
        return of_matrix(np.delete(J, list(independent), axis=1)).count < self.rank.count

    def projections(self) -> Array:
        """W (k, n) of the criterion at the state of the last evaluation: see `criteria`."""
        P = self.calls.views
        D = np.zeros((len(P.I), self.system.nv))
        D[np.arange(len(P.I)), P.I], D[:, P.D] = 1.0, P.A.T  # D = [1 A^T]
        if self.options.criterion == "orthogonal":
            return criteria.orthogonal(P.M, P.J[P.rows])
        if self.options.criterion == "tangent":
            return criteria.tangent(P.M, D, P.free)
        return np.asarray(np.linalg.qr((D / P.unit).T)[0].T, float)

    def _with_rows(self, independent: Sequence[int], state: State) -> Choice:
        """Choice of rows for a set by pivots, and the evaluation with them."""
        if self._is_singular(independent, state):
            raise self.singular(state.t, independent)
        s, c = self.system, self.calls
        J = np.delete(scaled(s, constraint_equations(s, state)[1]), list(independent), axis=1)
        self._held = None
        c.use(independent, criteria.independent_rows(J, s.holonomic, self.rank.count))
        self._evaluate(state.t, state.q, state.v)
        kernels.check(*c.arrays)
        P = c.views
        return Choice(tuple(int(i) for i in P.I), tuple(int(i) for i in P.rows), *P.notes[[layout.SIGN, layout.PIVOT]])

    def criterion(self, t: Array, q: Array, v: Array, active: NDArray[np.bool_]) -> Array:
        """Criterion of each speed as an independent one, at many states with regular sets.

        NaN where a set is singular, as at the end of a run that failed there.
        """
        found = np.full((len(t), self.system.nv), np.nan)
        chosen = False
        for n in range(len(t)):
            state, independent = State(float(t[n]), q[n], v[n]), np.flatnonzero(active[n]).tolist()
            chosen = chosen and not (active[n] != active[n - 1]).any()
            try:
                if chosen:
                    try:
                        self._evaluate(state.t, state.q, state.v)
                    except SingularityError:  # other rows than before, if any
                        chosen = False
                if not chosen:
                    self._with_rows(independent, state)
            except SingularityError:
                continue
            chosen = True
            kernels.check(*self.calls.arrays)
            found[n] = (self.projections() ** 2).sum(axis=0)
        return found

    # ----------------------------------------------------------------------------------------------- solving

    def _evaluate(self, t: float, q: Array, v: Array) -> None:
        """Evaluate a state with the set in the arrays; raises the error of a status."""
        c = self.calls
        c.put(t, q, v)
        if self.functions:
            c.state.tau[:] = 0.0
            add_user_forces(self.system, t, q, v, c.state.tau)
            self.user(t, q, v).write(c.state, c.views.J, c.views.rate)
        status = kernels.accelerate(*c.arrays)
        if status != FINE:
            require_rows(self.system, c.state, c.views.J, t)
            raise self.explain(status, t)

    def accelerations(self, t: float, q: Array, v: Array) -> Array:
        """Accelerations (nv,) alone, as a view that the next call overwrites: the fastest call from Python.

        Switches to another set if that is better by the factor `switch`.
        """
        c = self.calls
        if self._held is not self.called:
            c.compare_with(self.called)
            self._held = self.called
        try:
            self._evaluate(t, q, v)
            again = kernels.check(*c.arrays) == AGAIN
        except SingularityError:
            again = True
        if again:
            self._held = self.called = self.choose(State(t, np.array(q), np.array(v)), None)
            c.compare_with(self.called)
            self._evaluate(t, q, v)
        result: Array = c.state.a
        return result

    def solve(self, t: float, q: Array, v: Array) -> Solution:
        """Accelerations and multipliers at one state, which is not corrected."""
        c, s, P = self.calls, self.system, self.calls.views
        self.accelerations(t, q, v)
        a = c.state.a.copy()
        lam = _multipliers(P.J / P.row_unit[:, None], P.rows, P.D, P.M @ a - P.h) / P.row_unit
        residual = np.abs((P.J @ a - c.state.gamma) / P.row_unit).max(initial=0.0)
        diagnostics = {
            "residual": float(residual),
            "smallest_pivot": float(P.notes[layout.PIVOT]),
            "gain": float(P.notes[layout.GAIN]),
            "rows_dropped": float(s.nc - self.rank.count),
        }
        return Solution(a, lam, diagnostics)

    # -------------------------------------------------------------------------------------------------- runs

    @property
    def kernels(self) -> SolverKernels | None:
        """Its kernels, for compiled loops; there are none for models with functions in Python."""
        return None if self.functions else self._kernels()

    def _kernels(self) -> SolverKernels:
        self.run.compare_with(self.choice)
        keeps = ("velocity",) if self.options.form == "k+n" else ("position", "velocity")
        return SolverKernels(
            kernels.accelerate,
            kernels.correct if self.system.nc else None,
            *self.run.arrays,
            lambda status: self.explain(status, float(self.run.state.t[0])),
            accepted=kernels.check,
            keeps=keeps,
            choices=self,
            coordinates=self,
        )

    def choose_again(self) -> SolverKernels:
        """Choose again, with hysteresis, after an accepted step whose end asks for it."""
        w = self.run.state
        state = State(float(w.t[0]), w.q.copy(), w.v.copy())
        before, self.choice = self.choice, self.choose(state, self.choice)
        if self.choice.independent != before.independent:
            self._pivot_taken = self.choice.pivot
            self._taken(state)
        elif self.choice.pivot < FOLLOWED * self._pivot_taken and self._may_switch_branch(state):
            raise self.singular(state.t, self.choice.independent)
        return self._kernels()

    def _may_switch_branch(self, state: State) -> bool:
        """Whether the run may switch to another branch near a state at which the set is nearly singular."""
        return True

    def _taken(self, state: State) -> None:
        """Update other data when another set is chosen at a state."""

    def save_choices(self) -> dict[str, NDArray[Any]]:
        """Choices of the run and of calls, for a checkpoint: choosing again could change the last digits."""
        found: dict[str, NDArray[Any]] = {"pivot_taken": np.array(self._pivot_taken)}
        found["fastest"] = np.array(self.run.views.notes[layout.FASTEST])
        for name, c in (("run", self.choice), ("called", self.called)):
            lists = {"independent": c.independent, "rows": c.rows}
            found |= {f"{name}_{k}": np.array(x, np.int64) for k, x in lists.items()}
            found[f"{name}_scale"] = np.array([c.sign, c.pivot])
        return found

    def restore_choices(self, saved: Mapping[str, NDArray[Any]]) -> SolverKernels:
        """Restore saved choices."""

        def choice(name: str) -> Choice:
            sign, pivot = (float(x) for x in saved[f"{name}_scale"])
            independent, rows = (tuple(int(i) for i in saved[f"{name}_{k}"]) for k in ("independent", "rows"))
            return Choice(independent, rows, sign, pivot)

        self.choice, self.called, self._held = choice("run"), choice("called"), None
        self._pivot_taken = float(saved["pivot_taken"])
        self.run.views.notes[layout.FASTEST] = float(saved["fastest"])
        return self._kernels()

    def explain(self, status: int, t: float) -> LoopdynError:
        """Error of a status at the time t."""
        if status == SINGULAR_SET:
            at = State(t, self.run.state.q.copy(), self.run.state.v.copy())
            moved = bool(self.system.mechanism.drivers or self.system.mechanism.base)  # by given motions
            jumps = self.run.views.notes[layout.JUMP] > kernels.SMOOTH and moved
            if jumps and not self._is_singular(self.choice.independent, at):
                return failures.speeds_jump(t)
        if status == NOT_CLOSED:
            return failures.not_closed(t, self.active)
        return super().explain(status, t)


def _multipliers(J: Array, rows: Array, D: Array, force: Array) -> Array:
    """lam with J^T lam = force, of minimum norm: from its dependent components [Blajer1994 eq. (1)]."""
    kept = J[np.ix_(rows, D)]
    lam = np.linalg.solve(kept.T, force[D])
    if len(rows) == len(J):
        return np.asarray(lam[np.argsort(rows)], float)
    B = np.linalg.solve(kept.T, J[:, D].T).T  # all rows as combinations of those kept
    return np.asarray(B @ np.linalg.solve(B.T @ B, lam), float)


@dataclass(frozen=True)
class Partition(Choosing):
    """Minimal equations of motion in the best independent coordinates, chosen by geometry and inertia.

    Parameters
    ----------
    criterion : str
        Criterion by which coordinates are compared: "tangent", "orthogonal" (the projective criterion in its two forms,
        equal in value), "svd", "lu" (geometry alone).
    switch : float
        Another set is chosen after an accepted step if its measure is larger by this factor.
    independent : list of str, optional
        Speeds that are independent, regardless of the criterion.
    candidates : list of str, optional
        Speeds among which the independent ones are chosen; by default all.
    form : str
        Integrated state: "k+n" (independent speeds, all coordinates) or "2k" (independent speeds and coordinates).

    Examples
    --------
    >>> import loopdyn as ld
    >>> print(ld.Partition().plan(ld.library.four_bar().compile()))
    partition: 1 of 3 speeds independent, at the reference pose A; 2 of 5 rows kept; form k+n, criterion tangent
    """

    name: ClassVar[str] = "partition"

    criterion: Criterion = "tangent"
    switch: float = 2.0
    independent: Sequence[str] | None = None
    candidates: Sequence[str] | None = None
    form: Form = "k+n"

    def __post_init__(self) -> None:
        for name, value, known in (("criterion", self.criterion, Criterion), ("form", self.form, Form)):
            if value not in get_args(known):
                raise LoopdynError(f"partition: there is no {name} '{value}'. {nearest(str(value), get_args(known))}")
        super().__post_init__()

    def supports(self, system: System) -> str | None:
        """All systems, except form "2k" with rows that constrain velocities alone."""
        return self.positions_refused(system, "form='k+n'") if self.form == "2k" else None

    def plan(self, system: System) -> str:
        """One line."""
        rank = decide(system, system.state())
        solver = PartitionSolver(system, rank, self)
        active = ", ".join(solver.active) or "none"
        return (
            f"partition: {solver.freedoms} of {system.nv} speeds independent, at the reference pose {active}; "
            f"{rank.count} of {system.nc} rows kept; form {self.form}, criterion {self.criterion}"
        )

    def prepare(self, system: System, rank: Rank) -> Solver:
        """Arrays, and the choice at the state where the rank was decided."""
        return PartitionSolver(system, rank, self)
