"""`Partition`: minimal equations in coordinates of the mechanism itself, the best ones at each time.

Of the n speeds of the tree as many are independent as the mechanism has freedoms; the others follow from the
constraint rows. What is computed at a state is in :mod:`loopdyn.formulations.partition.kernels`, equation by equation;
how coordinates are compared, in :mod:`loopdyn.formulations.partition.criteria`. Here a set is chosen, used, and
exchanged for a better one.

The state that is integrated has one of two forms (end of section 2 of the paper):

* ``k+n``: v_I and all q. At every evaluation v_D = A v_I + eta. Positions drift as slowly as the tolerance allows, and
  are projected where the run asks for it.
* ``2k``: v_I and q_I. At every evaluation q_D is solved from phi(t, q) = 0, then v_D. Nothing drifts.

Integrators keep full states and derivatives in any case; the dependent ones are overwritten by what follows from the
independent ones. So a change of coordinates between two steps changes nothing that a multistep method remembers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from loopdyn.engine.records import PARENT, model_sizes
from loopdyn.engine.records import V0 as FIRST_SPEED
from loopdyn.errors import LoopdynError, SingularityError
from loopdyn.formulations.base import Array, Compiled, Formulation, Solution, Solver
from loopdyn.formulations.partition import criteria
from loopdyn.formulations.partition import kernels as blajer
from loopdyn.loops.rank import Rank, decide, of_matrix, scaled
from loopdyn.quantities.wording import nearest
from loopdyn.system.system import State, System
from loopdyn.tree.functions import add_user_forces, closure, require_rows
from loopdyn.tree.user_rows import user_rows

# Share of the smallest pivot of C_D, when a set was taken, below which the set is no longer followed, there being none
# better: rounding in q_D grows with the inverse of the pivot and in v_D with its square, 1e-16 becomes 1e-10. Nearer to
# a pose where all sets are singular, steps are spent on that, or the run slips onto another branch of the motion.
FOLLOWED = 1e-3

Criterion = Literal["tangent", "orthogonal", "svd", "lu"]
Form = Literal["k+n", "2k"]


@dataclass(frozen=True)
class Choice:
    """Independent speeds and rows that are kept, by number, and what `blajer.check` compares later states with."""

    independent: tuple[int, ...]
    rows: tuple[int, ...]
    sign: float
    pivot: float


class WorkArrays:
    """Arrays of the kernels for one system and one form of the state, with views of them."""

    def __init__(self, system: System, rank: int, form: int, weighing: int, candidate: Array, switch: float):
        n_ints, n_floats = model_sizes(system.ints)
        nv, nc, r = system.nv, system.nc, rank
        header = np.zeros(blajer.P_SIZE, np.int64)
        header[blajer.P_K], header[blajer.P_R] = nv - r, r
        header[blajer.P_FORM], header[blajer.P_AFFINE] = form, system.affine
        header[blajer.P_WEIGHING], header[blajer.P_FLOATS] = weighing, n_floats
        lists = np.zeros(nv + r, np.int64)
        self.ints = np.concatenate(
            [system.ints[:n_ints], header, lists, system.holonomic.astype(np.int64), _above(system)]
        )
        own = [system.row_units, system.speed_units, candidate, [switch]]
        self.floats = np.concatenate([system.floats[:n_floats], *own])
        self.work = np.concatenate([system.work(), np.zeros(blajer.own_work(nv - r, r, nv, nc))])
        self.system, self.n_ints = system, n_ints
        self.reopen()

    def reopen(self) -> None:
        """Views of the arrays as they are now."""
        self.arrays = (self.ints, self.floats, self.work)
        self.state = self.system.open_work(self.work)
        python = getattr(blajer.open_partition, "py_func", blajer.open_partition)
        own = self.n_ints, self.floats, self.work, len(self.system.work())
        self.views: blajer.Partitioned = python(self.ints, *own)

    def extend(self, numbers: Callable[[int, int], tuple[NDArray[np.int64], Array, int]]) -> None:
        """Put more behind the arrays: `numbers` of where floats and work begin; the last int says where ints do."""
        ints, floats, work = numbers(len(self.floats), len(self.work))
        self.ints = np.concatenate([self.ints, ints, [len(self.ints)]])
        self.floats = np.concatenate([self.floats, floats])
        self.work = np.concatenate([self.work, np.zeros(work)])
        self.reopen()

    def use(self, independent: Sequence[int], rows: Sequence[int]) -> None:
        """Write the lists that the kernels read."""
        P = self.views
        P.I[:], P.rows[:] = independent, rows
        P.D[:] = [i for i in range(P.M.shape[0]) if i not in set(independent)]

    def compare_with(self, choice: Choice) -> None:
        """... and what later states are compared with."""
        self.use(choice.independent, choice.rows)
        self.views.notes[[blajer.SIGN_CHOSEN, blajer.PIVOT_CHOSEN]] = choice.sign, choice.pivot

    def put(self, t: float, q: Array, v: Array) -> None:
        """Write a state."""
        self.state.t[0], self.state.q[:], self.state.v[:] = t, q, v


def _above(system: System) -> NDArray[np.int64]:
    """For each speed the next one towards the root of the tree, or -1."""
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


class PartitionSolver:
    """A prepared :class:`Partition`; call it with ``(t, q, v)``.

    Attributes
    ----------
    active : tuple of str
        Speeds that are independent now in the run that is driven by `compiled`; calls choose for themselves.

    Examples
    --------
    >>> import loopdyn as ld
    >>> system = ld.library.four_bar().compile()
    >>> state = ld.assemble(system, v={"A": 2.0})
    >>> solve = ld.prepare(system, "partition", state)
    >>> solve.active, solve(state.t, state.q, state.v).diagnostics["rows_dropped"]
    (('A',), 3.0)
    """

    def __init__(self, system: System, rank: Rank, options: Partition):
        self.system, self.rank, self.options = system, rank, options
        self.freedoms = system.nv - rank.count
        candidate = options.allowed(system, self.freedoms).astype(float)
        by = blajer.BY_INERTIA if options.criterion in ("tangent", "orthogonal") else blajer.BY_GEOMETRY
        self._settings = by, candidate, options.switch
        self.calls = WorkArrays(system, rank.count, blajer.FULL, *self._settings)
        form = blajer.K_PLUS_N if options.form == "k+n" else blajer.TWO_K
        self.run = WorkArrays(system, rank.count, form, *self._settings)
        self.user = user_rows(system)
        self.functions = bool(system.mechanism.user_forces or system.mechanism.user_constraints)
        self._held: Choice | None = None  # whose lists the arrays of `calls` hold
        # of a run, and of calls from Python, which may be at other states
        self.choice = self.called = self.choose(rank.state or system.state(), None)
        self._pivot_taken = self.choice.pivot

    @property
    def active(self) -> tuple[str, ...]:
        """Labels of the independent speeds."""
        return tuple(self.system.speeds[i] for i in self.choice.independent)

    # -------------------------------------------------------------------------------------------- choosing

    def choose(self, state: State, current: Choice | None) -> Choice:
        """The best set at a state, or the current one with rows chosen anew where the gain is not worth a switch."""
        if current is not None and (self._forced or not self._is_singular(current.independent, state)):
            now, wanted = self._with_rows(current.independent, state), self.options.switch
        else:
            J = scaled(self.system, closure(self.system, state)[1])
            if self.options.criterion == "lu":
                return self._with_rows(criteria.by_elimination(J, self.rank.count, self._allowed), state)
            start = criteria.best_set(criteria.null_space(J, self.rank.count).T, self._allowed)
            now, wanted = self._with_rows(start, state), criteria.WORTH
        if self._forced:
            return now
        W, before = self.projections(), list(now.independent)
        found = criteria.best_set(W, self._allowed, before)
        is_better = criteria.measure(W, found) > wanted * criteria.measure(W, before)
        return self._with_rows(found, state) if is_better else now

    @property
    def _forced(self) -> bool:
        """Whether there is one set alone."""
        return int(self._allowed.sum()) == self.freedoms

    def _is_singular(self, independent: Sequence[int], state: State) -> bool:
        """Whether the other speeds do not follow from these, by the judgement of :mod:`loopdyn.loops.rank`."""
        J = scaled(self.system, closure(self.system, state)[1])
        return of_matrix(np.delete(J, list(independent), axis=1)).count < self.rank.count

    @property
    def _allowed(self) -> NDArray[np.bool_]:
        return np.asarray(self.calls.views.candidate > 0.0)

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
        """Rows for a set, chosen by pivots, and the evaluation there."""
        if self._is_singular(independent, state):
            raise self._singular(state.t, independent)
        s, c = self.system, self.calls
        J = np.delete(scaled(s, closure(s, state)[1]), list(independent), axis=1)
        self._held = None
        c.use(independent, criteria.independent_rows(J, s.holonomic, self.rank.count))
        self._evaluate(state.t, state.q, state.v)
        blajer.check(*c.arrays)
        P = c.views
        return Choice(tuple(int(i) for i in P.I), tuple(int(i) for i in P.rows), *P.notes[[blajer.SIGN, blajer.PIVOT]])

    def _singular(self, t: float, independent: Sequence[int]) -> SingularityError:
        return singular_set(self.system, self.options, t, independent)

    def criterion(self, t: Array, q: Array, v: Array, active: NDArray[np.bool_]) -> Array:
        """How well each speed would serve as an independent one, at many states with sets that are good there.

        Not a number where a set is singular, as at the end of a run that failed there.
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
            blajer.check(*self.calls.arrays)
            found[n] = (self.projections() ** 2).sum(axis=0)
        return found

    # ----------------------------------------------------------------------------------------------- solving

    def _evaluate(self, t: float, q: Array, v: Array) -> None:
        """Everything at a state with the set that the arrays hold; raises what a status means."""
        c = self.calls
        c.put(t, q, v)
        if self.functions:
            c.state.tau[:] = 0.0
            add_user_forces(self.system, t, q, v, c.state.tau)
            self.user(t, q, v).write(c.state, c.views.J, c.views.rate)
        status = blajer.accelerate(*c.arrays)
        if status != blajer.FINE:
            require_rows(self.system, c.state, c.views.J, t)
            raise self._explain(status, t)

    def accelerations(self, t: float, q: Array, v: Array) -> Array:
        """Accelerations (nv,) alone, as a view that the next call overwrites: the fastest call from Python.

        Where another set is better by the factor `switch` it is taken.
        """
        c = self.calls
        if self._held is not self.called:
            c.compare_with(self.called)
            self._held = self.called
        try:
            self._evaluate(t, q, v)
            again = blajer.check(*c.arrays) == blajer.AGAIN
        except SingularityError:
            again = True
        if again:
            self._held = self.called = self.choose(State(t, np.array(q), np.array(v)), None)
            c.compare_with(self.called)
            self._evaluate(t, q, v)
        result: Array = c.state.a
        return result

    def __call__(self, t: float, q: Array, v: Array) -> Solution:
        """Accelerations and multipliers at one state, which is taken as it is given."""
        c, s, P = self.calls, self.system, self.calls.views
        self.accelerations(t, q, v)
        a = c.state.a.copy()
        lam = _multipliers(P.J / P.row_unit[:, None], P.rows, P.D, P.M @ a - P.h) / P.row_unit
        residual = np.abs((P.J @ a - c.state.gamma) / P.row_unit).max(initial=0.0)
        diagnostics = {
            "residual": float(residual),
            "smallest_pivot": float(P.notes[blajer.PIVOT]),
            "gain": float(P.notes[blajer.GAIN]),
            "rows_dropped": float(s.nc - self.rank.count),
        }
        return Solution(a, lam, diagnostics)

    # ----------------------------------------------------------------------------------------------- driving

    @property
    def compiled(self) -> Compiled:
        """Its kernels, for compiled loops; there are none for models with functions in Python."""
        if self.functions:
            raise AttributeError("compiled")
        self.run.compare_with(self.choice)
        keeps = ("velocity",) if self.options.form == "k+n" else ("position", "velocity")
        return Compiled(
            blajer.accelerate,
            blajer.correct if self.system.nc else None,
            *self.run.arrays,
            lambda status: self._explain(status, float(self.run.state.t[0])),
            self._again,
            self._remember,
            self._recall,
            accepted=blajer.check,
            keeps=keeps,
        )

    def _again(self) -> Compiled:
        """After an accepted step whose end asks for it: the choice at that state, with hysteresis."""
        w = self.run.state
        state = State(float(w.t[0]), w.q.copy(), w.v.copy())
        before, self.choice = self.choice, self.choose(state, self.choice)
        if self.choice.independent != before.independent:
            self._pivot_taken = self.choice.pivot
            self._taken(state)
        elif self.choice.pivot < FOLLOWED * self._pivot_taken and self._may_slip(state):
            raise self._singular(state.t, self.choice.independent)
        return self.compiled

    def _may_slip(self, state: State) -> bool:
        """Whether another branch of the motion is near a state at which the set is nearly singular."""
        return True

    def _taken(self, state: State) -> None:
        """What else changes where another set is taken at a state."""

    def _remember(self) -> dict[str, NDArray[Any]]:
        """Choices of the run and of calls, for a checkpoint: chosen anew, rows and with them last digits may differ."""
        found: dict[str, NDArray[Any]] = {"pivot_taken": np.array(self._pivot_taken)}
        found["fastest"] = np.array(self.run.views.notes[blajer.FASTEST])
        for name, c in (("run", self.choice), ("called", self.called)):
            lists = {"independent": c.independent, "rows": c.rows}
            found |= {f"{name}_{k}": np.array(x, np.int64) for k, x in lists.items()}
            found[f"{name}_scale"] = np.array([c.sign, c.pivot])
        return found

    def _recall(self, kept: Mapping[str, NDArray[Any]]) -> Compiled:
        """Take them up again."""

        def choice(name: str) -> Choice:
            sign, pivot = (float(x) for x in kept[f"{name}_scale"])
            independent, rows = (tuple(int(i) for i in kept[f"{name}_{k}"]) for k in ("independent", "rows"))
            return Choice(independent, rows, sign, pivot)

        self.choice, self.called, self._held = choice("run"), choice("called"), None
        self._pivot_taken = float(kept["pivot_taken"])
        self.run.views.notes[blajer.FASTEST] = float(kept["fastest"])
        return self.compiled

    def _explain(self, status: int, t: float) -> LoopdynError:
        if status == blajer.SINGULAR_SET:
            at = State(t, self.run.state.q.copy(), self.run.state.v.copy())
            moved = bool(self.system.mechanism.drivers or self.system.mechanism.base)  # by given motions
            jumps = self.run.views.notes[blajer.JUMP] > blajer.SMOOTH and moved
            if jumps and not self._is_singular(self.choice.independent, at):
                return LoopdynError(
                    f"the speeds of the other coordinates jump at t = {t:.9g} s, where the pose is regular: a given "
                    "motion may change its speed at once there, or the steps may be too long. Make the motion smooth "
                    "(ld.profiles), use smaller steps, or formulation='auto'."
                )
            return self._singular(t, self.choice.independent)
        if status == blajer.NO_INERTIA:
            return SingularityError(
                f"the mass matrix of the independent speeds {', '.join(self.active)} is not positive definite at "
                f"t = {t:g} s. Give the bodies that move there mass or inertia."
            )
        if status == blajer.NOT_CLOSED:
            return SingularityError(
                f"positions of the other coordinates cannot be solved from those of {', '.join(self.active)} near "
                f"t = {t:g} s: the pose is singular or nearly so, or the steps are too long. Use smaller steps, "
                "form='k+n', or see ld.coordinates(system, state)."
            )
        return SingularityError(
            f"accelerations are not finite numbers at t = {t:g} s. Check springs and actuators whose points "
            "coincide there, formulas that divide by zero, and the state."
        )


def _multipliers(J: Array, rows: Array, D: Array, force: Array) -> Array:
    """lam with J^T lam = force, of minimum norm: from its dependent components [Blajer1994 eq. (1)]."""
    kept = J[np.ix_(rows, D)]
    lam = np.linalg.solve(kept.T, force[D])
    if len(rows) == len(J):
        return np.asarray(lam[np.argsort(rows)], float)
    B = np.linalg.solve(kept.T, J[:, D].T).T  # all rows as combinations of those kept
    return np.asarray(B @ np.linalg.solve(B.T @ B, lam), float)


def singular_set(system: System, options: Partition, t: float, independent: Sequence[int]) -> SingularityError:
    """The error of a set of speeds from which the others do not follow."""
    names = ", ".join(f"'{system.speeds[i]}'" for i in independent) or "the speeds that are allowed"
    other = "The pose is singular, or the steps are too long: start beside it"
    if not (system.mechanism.user_forces or system.mechanism.user_constraints):
        other += ", use formulation='auto'"
    limited = options.independent or options.candidates
    hint = "Leave `independent` and `candidates` out" if limited else other
    return SingularityError(
        f"{names} cannot be independent at t = {t:g} s: the other speeds do not follow from them there. {hint}, or "
        "see ld.coordinates(system, state)."
    )


@dataclass(frozen=True)
class Partition(Formulation):
    """Minimal equations of motion in the best independent coordinates, chosen by geometry and inertia.

    Parameters
    ----------
    criterion : str
        By what coordinates are compared: "tangent", "orthogonal" (the projective criterion in its two forms, equal in
        value), "svd", "lu" (geometry alone).
    switch : float
        Another set is taken after an accepted step where its measure is larger by this factor.
    independent : list of str, optional
        Speeds that are independent, whatever the criterion says.
    candidates : list of str, optional
        Speeds among which the independent ones are chosen; by default all.
    form : str
        What is integrated: "k+n" (independent speeds, all coordinates) or "2k" (independent speeds and coordinates).
    owner : str
        Formulation whose options these are, for messages.

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
    owner: str = field(default="partition", repr=False)

    def __post_init__(self) -> None:
        for name, value, known in (("criterion", self.criterion, Criterion), ("form", self.form, Form)):
            if value not in get_args(known):
                raise LoopdynError(f"partition: there is no {name} '{value}'. {nearest(str(value), get_args(known))}")
        if not self.switch >= 1.0:
            raise LoopdynError(f"{self.owner}: switch is {self.switch}. Give a factor of at least 1, such as 2.")
        if self.independent is not None and self.candidates is not None:
            raise LoopdynError(f"{self.owner}: both independent and candidates are given. Give one of them.")
        for name in ("independent", "candidates"):
            labels = getattr(self, name)
            if labels is not None:
                object.__setattr__(self, name, tuple(labels))

    def supports(self, system: System) -> str | None:
        """Everything, but for positions solved where rows constrain velocities alone."""
        if self.form == "2k" and not system.holonomic.all():
            row = system.constraint_rows[int(np.argmin(system.holonomic))]
            return (
                f"'{row}' constrains velocities alone, so positions do not follow from as many others; use form='k+n'"
            )
        return None

    def allowed(self, system: System, freedoms: int) -> NDArray[np.bool_]:
        """Which speeds may be independent."""
        labels = self.independent if self.independent is not None else self.candidates
        if labels is None:
            return np.ones(system.nv, bool)
        for label in labels:
            if label not in system.speeds:
                raise LoopdynError(f"{self.owner}: there is no speed '{label}'. {nearest(label, system.speeds)}")
        chosen = np.isin(system.speeds, labels)
        wrong = chosen.sum() != freedoms if self.independent is not None else chosen.sum() < freedoms
        if wrong:
            what = "independent" if self.independent is not None else "candidates"
            raise LoopdynError(
                f"{self.owner}: {what} names {chosen.sum()} speeds, and '{system.name}' has {freedoms} freedoms. "
                f"See ld.coordinates(system, state), or leave {what} out, as where locks change their number."
            )
        return chosen

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


@dataclass(frozen=True)
class Chosen(Formulation):
    """Base of formulations that choose independent speeds as `partition` does, with the same options."""

    form: ClassVar[Form] = "k+n"

    independent: Sequence[str] | None = None
    candidates: Sequence[str] | None = None
    switch: float = 2.0

    def __post_init__(self) -> None:
        options = self._partition()
        object.__setattr__(self, "independent", options.independent)
        object.__setattr__(self, "candidates", options.candidates)

    def _partition(self) -> Partition:
        """The same options for the choice of coordinates."""
        return Partition(
            switch=self.switch,
            independent=self.independent,
            candidates=self.candidates,
            form=self.form,
            owner=self.name,
        )

    def supports(self, system: System) -> str | None:
        """No functions in Python."""
        if system.mechanism.user_forces or system.mechanism.user_constraints:
            return f"it has functions in Python, which {self.name} does not call"
        return None
