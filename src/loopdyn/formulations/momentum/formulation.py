"""`momentum`: the reactions over a step are those that close the joints at its end [Huang2002].

The default, "rattle", applies this idea to positions and velocities
(:mod:`loopdyn.formulations.momentum.kernels`): steps of order two that conserve momentum, are symplectic, and pass
singular poses; compositions of order 4 and 6. The scheme printed in the paper is "huang2002"
(:mod:`loopdyn.formulations.momentum.published_scheme`).

A stepping formulation gives steps, not accelerations; these are computed by `graph`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from loopdyn.engine import records as rec
from loopdyn.engine.layout import fill, opened, with_block
from loopdyn.engine.status import FINE
from loopdyn.errors import ConvergenceError, LoopdynError, SingularityError
from loopdyn.formulations import failures
from loopdyn.formulations.base import Formulation, PassingSolver, Solution, Solver, Step
from loopdyn.formulations.graph import Graph
from loopdyn.formulations.momentum import kernels, layout
from loopdyn.formulations.momentum.published_scheme import HuangSolver
from loopdyn.loops.projection import correct, project
from loopdyn.loops.rank import Rank, is_large
from loopdyn.system.system import State, System
from loopdyn.tree.functions import increment, terms

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
Scheme = Literal["rattle", "huang2002"]

# Substeps of a step of higher order, first half; the middle one makes their sum one, the others follow in reverse
# order: Suzuki's five of order 4, nine of order 6 by Kahan and Li [Hairer2006 section V.3].
PARTS: dict[int, tuple[float, ...]] = {
    2: (),
    4: (1.0 / (4.0 - 4.0 ** (1.0 / 3.0)),) * 2,
    6: (0.39216144400731413928, 0.33259913678935943860, -0.70624617255763935981, 0.08221359629355080023),
}


# In natural units: indicator below which a pose is singular; distance from it at which the allowed motions are
# determined; distance over which speeds are differenced. Then the number of trials to find that distance.
SINGULAR, BESIDE, DIFFERENCE, TRIALS = 1e-9, 1e-5, 1e-3, 20
# Number of speeds up to which steps by dense matrices are at least as fast as by the elimination of `graph` (60 to 80
# on ladders and windows), and up to which a run may start in a singular pose.
LARGEST_DENSE_STEPS = 80
# Distance at which the motions allowed by a branch are determined before and behind a singular pose; they replace those
# found at an inexact state if the cosine of the angle between the two is above this.
AROUND, ALIKE = 1e-3, 0.9
BLURRED = 1e-4  # indicator, in natural units, below which accelerations of regular solvers lose half their digits


def nearby_regular_pose(system: System, state: State, move: float = BESIDE) -> State:
    """Closed pose at a distance, in natural units, from a singular one, in the direction of its speeds.

    Raises
    ------
    SingularityError
        If the speeds are zero: the branch is then not determined.
    """
    fastest = float(np.abs(state.v / system.speed_units).max(initial=0.0))
    if fastest == 0.0:
        raise SingularityError(
            f"'{system.name}' is at rest in a singular pose at t = {state.t:g} s: its branch is not determined. "
            "Give it speeds along one of its branches, or start at a pose nearby."
        )
    q = increment(system, state.q, move / fastest * state.v)
    return project(system, State(state.t, q, np.zeros(system.nv))).state


def parts(order: int) -> tuple[float, ...]:
    """Sizes of the substeps that compose a step of higher order, as shares of it.

    Examples
    --------
    >>> len(parts(2)), len(parts(4)), len(parts(6)), round(sum(parts(6)), 12)
    (1, 5, 9, 1.0)
    """
    half = PARTS[order]
    return (*half, 1.0 - 2.0 * sum(half), *half[::-1])


class MomentumSolver(PassingSolver):
    """`Momentum` prepared for one system: steps, and accelerations by the solver of regular poses."""

    dense: ClassVar[bool] = True  # whether rows and inertias are in dense matrices

    def __init__(self, system: System, rank: Rank, regular: Solver, order: int):
        self.system, self._rank, self.regular = system, rank, regular
        self.rank = rank.count
        self.parts = parts(order)
        self.ints, self.floats, size = self._block()
        # the start, two that alternate, and the middle of a step or another state
        self.arrays = [np.zeros(size) for _ in range(4)]
        self.places: list[layout.Place] = [opened(layout.open_place, self.ints, work) for work in self.arrays]
        self._heads: list[rec.Head] = [opened(rec.open_head, system.ints, place.work) for place in self.places]
        self.scratch: layout.Scratch = opened(layout.open_scratch, self.ints, self.floats, self.arrays[-1])
        self.first = 0.0
        self._inexact = np.nan  # of the present start; NaN if there is none
        self._across: Array | None = None  # (nv, rank), see `orientation`; of the present start
        self._same = np.eye(self.rank)
        self._moving_bases = bool((system.model.base_programs >= 0).any())

    @cached_property
    def _auxiliary(self) -> MomentumSolver:
        """Second solver, for evaluations that must not disturb the present steps."""
        return type(self)(self.system, self._rank, self.regular, 2)

    def solve(self, t: float, q: Array, v: Array) -> Solution:
        """Accelerations and multipliers of the regular solver at one state.

        In a singular pose, or so close to it that digits are lost, accelerations are differences of momentum steps in
        both directions: the motion is smooth, while multipliers grow without bound; the least-squares solution of
        minimum norm is returned. ``diagnostics["singular"]`` is then one.
        """
        try:
            if self._auxiliary.begin(t, q, v) > BLURRED:
                return self.regular(t, q, v)
        except SingularityError:
            pass  # a singular pose, where the regular solver fails; at rest the steps below raise
        a = self._auxiliary._by_differences(t, q, v)
        now, rows = terms(self.system, State(t, np.array(q), np.array(v))), self.system.row_units
        force = now.M @ a - now.h
        lam = np.linalg.lstsq((now.J / rows[:, None]).T, force, rcond=None)[0] / rows
        residual = float(np.abs((now.J @ a - now.gamma) / rows).max(initial=0.0))
        return Solution(a, lam, {"residual": residual, "singular": 1.0})

    def _by_differences(self, t: float, q: Array, v: Array) -> Array:
        """Accelerations by differences of the speeds before and after, at two distances."""
        self.begin(t, q, v)
        units = self.system.speed_units
        h = DIFFERENCE / max(float(np.abs(v / units).max(initial=0.0)), DIFFERENCE)
        for _ in range(TRIALS):
            try:
                coarse, fine = (
                    (self.take_steps(step, (1.0,)).v - self.take_steps(-step, (1.0,)).v) / (2.0 * step)
                    for step in (h, 0.5 * h)
                )
            except ConvergenceError:
                h *= 0.1
                continue
            a = np.asarray((4.0 * fine - coarse) / 3.0)
            bend = 0.5 * h * h * float(np.abs(a / units).max(initial=0.0))
            if bend <= 2.0 * DIFFERENCE:
                return a
            h *= float(np.sqrt(DIFFERENCE / bend))  # at rest the speeds do not give the distance
        raise ConvergenceError(f"accelerations near the singular pose at t = {t:g} s are not found. Start elsewhere.")

    def _block(self) -> tuple[Ints, Array, int]:
        """Arrays of the system with those of the places behind them; of the work array of a place, the length."""
        s, velocities = self.system, np.flatnonzero(~self.system.holonomic)
        rows, speeds, freedoms = (s.nc, s.nv, s.nv - self.rank) if self.dense else (0, 0, 0)
        header = {
            layout.P_ROWS: rows, layout.P_SPEEDS: speeds, layout.P_FREEDOMS: freedoms,
            layout.P_VELOCITIES: len(velocities), layout.P_COPY: len(s.work()),
        }  # fmt: skip
        ints, floats, size = with_block(s.ints, s.floats, 0, rec.H_SOLVER, header, layout.momentum_sizes)
        views = opened(layout.open_scratch, ints, floats, np.zeros(size))
        fill(views, of_velocity=velocities, unit=s.speed_units, row_unit=s.row_units)
        return ints, floats, size

    # ------------------------------------------------------------------------------------------------ steps

    def begin(self, t: float, q: Array, v: Array, inexact: float = 0.0) -> float:
        """Make a closed state the start of the following steps; returns its indicator.

        If its pose is only known to within `inexact`, in natural units, the motions that it allows close to a singular
        pose are determined from poses before and behind it.
        """
        self._take_laws()
        w = self._heads[0]
        if inexact == self._inexact and t == w.t[0] and (w.q == q).all() and (w.v == v).all():
            return self.first  # as before
        first, self._across, self._inexact = self._begun(0, t, q, v), None, np.nan
        self.first = float(first.number[layout.INDICATOR])
        if self.first < SINGULAR or (inexact > 0.0 and self.first < max(BLURRED, 10.0 * inexact)):
            self._choose_near_singular(t, first, v, self.first > 10.0 * inexact > 0.0)
        self._inexact = inexact
        return self.first

    def _take_laws(self) -> None:
        """Take over laws that have changed in the arrays of the system, as the inputs of a simulation do."""
        own, given = self.floats[: len(self.system.floats)], self.system.floats
        if not np.array_equal(own, given):
            own[:] = given
            self._inexact = np.nan  # what was prepared at the start depends on them

    def _choose_near_singular(self, t: float, here: layout.Place, v: Array, compare: bool) -> None:
        """Choose rows that are independent near a singular pose, and the motions of the branch along the speeds v.

        The motions are the mean of those before and behind the pose, extrapolated from two distances to remove the
        curvature; rows that depend on each other here are independent there. With `compare`, the motions found here are
        kept if they differ: then two circuits come close, and before and behind are different circuits.
        """
        s, total = self.system, np.zeros((self.system.nv, self.system.nv))
        state = State(t, self._heads[0].q.copy(), v)
        around = max(AROUND, 3.0 * float(here.number[layout.INDICATOR]))
        for distance, weight in ((2.0 * around, -1.0), (around, 4.0)):
            for move in (distance, -distance):
                there = self.place_at(t, nearby_regular_pose(s, state, move).q, v)
                total += weight / 6.0 * there.N.T @ there.N
        N = np.linalg.eigh(total)[1][:, self.rank :].T
        if compare and np.linalg.svd(N @ here.N.T, compute_uv=False).min(initial=1.0) < ALIKE:
            return
        here.kept[:], here.N[:] = there.kept, N

    def step(self, t: float, q: Array, v: Array, h: float) -> tuple[Array, Array, Array]:
        """One step of the time h, composed of several if the order is above two: q, v, impulse of the rows.

        Raises
        ------
        ConvergenceError
            If no impulses close the joints at its end, or loads and speeds there do not settle.
        """
        self.begin(t, q, v)
        made = self.take_steps(h, self.parts)
        return made.q, made.v, made.impulse

    def take_steps(
        self, h: float, shares: Sequence[float], visit: Callable[[float, Array, Array], None] | None = None
    ) -> Step:
        """Make steps of order two, shares of the time h, one after another from the last :meth:`begin`.

        `visit` is called with the state (t, q, v) at the end of each.
        """
        if visit is None:  # all in one call
            return self.take_sequences(h, np.array([shares]))[1]
        self.scratch.total[:] = 0.0
        least, here, there = np.inf, 0, 1
        for share in shares:
            _, made = self._taken((here, there, 3 - there), h, np.array([[share]]))
            least, here, there = min(least, made.indicator), there, 3 - there
            head = self._heads[here]
            visit(float(head.t[0]), head.q, self.places[here].v)
        self.last = replace(self.last, indicator=least)
        return self.last

    def take_sequences(self, h: float, shares: Array) -> tuple[Array, Step]:
        """Make sequences of steps, each from the last :meth:`begin`, in one call.

        A row of `shares` has those of a sequence, then zeros. Returns the increments and speeds at the end of each, and
        the last sequence with the smallest indicator of all.
        """
        self.scratch.total[:] = 0.0
        return self._taken((0, 1, 2), h, shares)

    def _taken(self, places: tuple[int, int, int], h: float, shares: Array) -> tuple[Array, Step]:
        """Make sequences of steps from a place to two others by turns."""
        ends = np.zeros((len(shares), 2 * self.system.nv))
        status, n, made, least = self._sequences(places, h, shares, ends)
        last = places[0 if made == 0 else 2 - made % 2]
        if status != FINE:
            raise failures.step_failed(status, float(self.places[last].number[layout.TIME]), float(shares[n, made]) * h)
        here, impulse = self.places[last], self.scratch.total / self.system.row_units
        self.last = Step(self._heads[last].q.copy(), here.v.copy(), least, impulse, here)
        return ends, self.last

    def _sequences(self, places: Sequence[int], h: float, shares: Array, ends: Array) -> tuple[int, int, int, float]:
        """Status, sequences and steps of the last one that were made, smallest indicator, see `kernels.steps`."""
        work = (self.arrays[k] for k in (*places, -1))
        status, n, made, least = kernels.steps(self.ints, self.floats, *work, h, shares, self._moving_bases, ends)
        return int(status), int(n), int(made), float(least)

    def closed(self, t: float, q: Array, v: Array) -> tuple[Array, Array]:
        """One linear correction of coordinates and speeds back to the constraints."""
        if self.scratch.of_velocity.size:  # they do not count for positions
            return correct(self.system, t, q, v, self.rank)
        w = self._heads[-1]
        w.t[0], w.q[:], w.v[:] = t, q, v
        if not kernels.correct(self.ints, self.floats, self.arrays[-1]):
            raise ConvergenceError(f"the loops cannot be closed at t = {t:g} s near a singular pose.")
        return w.q.copy(), w.v.copy()

    def place_at(self, t: float, q: Array, v: Array) -> layout.Place:
        """Place of a state at which a step could end; the start of the steps is unchanged."""
        return self._begun(-1, t, q, v)

    def _begun(self, k: int, t: float, q: Array, v: Array) -> layout.Place:
        """Place k at a state."""
        w = self._heads[k]
        w.t[0], w.q[:], w.v[:] = t, q, v
        kernels.begin(self.ints, self.floats, self.arrays[k])
        return self.places[k]

    def indicator_at(self, place: layout.Place) -> float:
        """Indicator of a place."""
        return float(place.number[layout.INDICATOR])

    def orientation(self, place: layout.Place) -> Array:
        """Square matrix that tells on which side of singular poses a place is: identity at the start of the steps.

        It has the components of the kept rows of the place along those at the start, in the basis that the latter form
        with the tangents there times the mass matrix. It is singular where the rows of the place and these tangents
        are dependent; each loss of rank moves an eigenvalue through zero to the left half-plane.
        """
        first = self.places[0]
        if place is first or first.number[layout.INDICATOR] < SINGULAR:
            return self._same  # a singular start is on neither side
        kept = first.kept[: self.rank].astype(np.int64)
        if self._across is None:
            self._across = np.linalg.inv(np.vstack([first.J[kept], first.N @ first.M]))[:, : self.rank]
        return np.asarray(place.J[kept] @ self._across)

    def rank_losses_between(self, a: Array, b: Array) -> int:
        """Number of times that rows lose their independence between two places with these orientations.

        Two losses leave the sign of the determinant unchanged, so the eigenvalues of the map from a to b are counted.
        """
        try:
            change = b if a is self._same else np.linalg.solve(a, b)
            if np.abs(change - self._same).sum(axis=1).max(initial=0.0) < 1.0:
                return 0  # by Gershgorin's theorem all eigenvalues are on the right
            return int(np.count_nonzero(np.linalg.eigvals(change).real < 0.0))
        except np.linalg.LinAlgError:
            return len(a)  # one is a singular pose to the last digit: any number may be lost

    def same_side(self, last: layout.Place) -> bool:
        """Whether a place is on the same side of singular poses as the start of the steps."""
        return self.rank_losses_between(self.orientation(self.places[0]), self.orientation(last)) == 0


@dataclass(frozen=True)
class Momentum(Formulation):
    """Steps that conserve momentum and close the joints at their end; they pass singular poses.

    Parameters
    ----------
    scheme : str
        "rattle", or "huang2002" for the scheme of the paper as it is printed.
    order : int, optional
        Order of steps of one size, :class:`loopdyn.integrators.Steps`: 2, or 4 or 6 by symmetric composition. By
        default steps are extrapolated and their size is chosen by the tolerances; steps of one size then have order 2.

    Examples
    --------
    >>> import loopdyn as ld
    >>> system = ld.library.four_bar().compile()
    >>> state = ld.assemble(system, v={"A": 2.0})
    >>> run = ld.simulate(system, state, (0, 0.5), formulation="momentum", progress=False)
    >>> run.status, run.largest_residual < 1e-9
    ('finished', True)
    """

    name: ClassVar[str] = "momentum"
    steps: ClassVar[bool] = True
    scheme: Scheme = "rattle"
    order: int | None = None

    def __post_init__(self) -> None:
        if self.scheme not in get_args(Scheme):
            known = ", ".join(get_args(Scheme))
            raise LoopdynError(f"momentum: there is no scheme '{self.scheme}'. Give one of {known}.")
        if self.order is not None and self.order not in PARTS:
            raise LoopdynError(f"momentum: order is {self.order}. Give 2, 4 or 6.")
        if self.order is not None and self.scheme == "huang2002":
            raise LoopdynError("momentum: the scheme of the paper is of order one. Leave the order out.")

    @property
    def one_size(self) -> bool:
        """Whether its steps can only be of one size."""
        return self.order is not None or self.scheme == "huang2002"

    def supports(self, system: System) -> str | None:
        """All systems that `graph` supports, except user forces, and rows that constrain velocities in large systems.

        "huang2002" has four types of joints only.
        """
        return system.kept.find("momentum", self, lambda: self._refusal(system))

    def _refusal(self, system: System) -> str | None:
        """Reason why a system is not supported, or None."""
        if self.scheme == "huang2002":
            return HuangSolver.refusal(system)
        for j in system.joints.values():
            if j.in_tree and not j.spec.is_scalar() and system.model.armature[j.v0 : j.v0 + len(j.spec.speeds)].any():
                return f"joint '{j.name}' has armature, which has a momentum here along single coordinates only"
        if is_large(system) and not in_linear_time(system):
            return "it is large, and some of its rows constrain velocities only"
        if system.mechanism.user_forces:
            return "the model has user forces, which the steps of this formulation do not call"
        return Graph().supports(system)

    def passes(self, system: System) -> bool:
        """True for "rattle"; the matrix of the published scheme is singular there."""
        return self.scheme == "rattle"

    def plan(self, system: System) -> str:
        """Unknowns of a step, and how it is solved."""
        sizes = f"{system.nv} increments and {system.nc} impulses of constraints"
        how = "of one size" if self.one_size else "extrapolated, their size by the tolerances"
        by = "by the elimination of graph, in linear time" if in_linear_time(system) else "by dense matrices"
        return f"momentum ({self.scheme}): {sizes} a step, {by}; steps {how}; accelerations by graph"

    def prepare(self, system: System, rank: Rank) -> Solver:
        """Work arrays, and the solver of accelerations."""
        if self.scheme == "huang2002":
            return HuangSolver(system, Graph().prepare(system, rank), rank)
        return step_maker(system, rank, Graph().prepare(system, rank), self.order or 2)


def step_maker(system: System, rank: Rank, regular: Solver, order: int) -> MomentumSolver:
    """Solver for the steps: by dense matrices for small systems, in linear time for large ones."""
    from loopdyn.formulations.momentum.large import LargeMomentumSolver  # which imports this module

    return (LargeMomentumSolver if in_linear_time(system) else MomentumSolver)(system, rank, regular, order)


def in_linear_time(system: System) -> bool:
    """Whether the steps of a system are solved by the elimination of `graph`."""
    return system.nv > LARGEST_DENSE_STEPS and bool(system.holonomic.all())
