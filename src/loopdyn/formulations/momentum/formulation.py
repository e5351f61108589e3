"""`momentum`: the reactions over a step are those that close the joints at its end [Huang2002].

The default, "rattle", applies this idea to positions and velocities
(:mod:`loopdyn.formulations.momentum.kernels`): steps of order two that conserve momentum, are symplectic, and pass
singular poses; compositions of order 4 and 6. The scheme printed in the paper is "huang2002"
(:mod:`loopdyn.formulations.momentum.published_scheme`).

A stepping formulation gives steps, not accelerations; these are computed by `graph`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from loopdyn.engine import records as rec
from loopdyn.engine.layout import opened
from loopdyn.engine.status import FINE
from loopdyn.errors import ConvergenceError, LoopdynError, SingularityError
from loopdyn.formulations import failures
from loopdyn.formulations.base import Formulation, PassingSolver, Solution, Solver, Step
from loopdyn.formulations.graph import Graph
from loopdyn.formulations.momentum import kernels
from loopdyn.formulations.momentum.published_scheme import HuangSolver
from loopdyn.loops.projection import correct, project
from loopdyn.loops.rank import Rank, is_large
from loopdyn.system.system import State, System
from loopdyn.tree.functions import increment, terms

Array = NDArray[np.float64]
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

    def __init__(self, system: System, rank: Rank, regular: Solver, order: int):
        self.system, self._rank, self.regular = system, rank, regular
        self.rank = rank.count
        self.parts = parts(order)
        # the start, two that alternate, and the middle of a step or another state
        self.places: list[kernels.Place] = [self._place() for _ in range(4)]
        self._heads: dict[int, rec.Head] = {id(p): opened(rec.open_head, system.ints, p.work) for p in self.places}
        self.scratch = self._scratch()
        self.first = 0.0
        self._across: Array | None = None  # (nv, rank), see `orientation`; of the present start
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

    def _place(self) -> kernels.Place:
        s, freedoms = self.system, self.system.nv - self.rank
        rows, speeds = (s.nc, s.nv), (s.nv,)
        return kernels.Place(
            number=np.zeros(kernels.N_NUMBERS),
            work=s.work(),
            v=np.zeros(speeds),
            J=np.zeros(rows),
            phi=np.zeros(s.nc),
            rate=np.zeros(s.nc),
            phi_t=np.zeros(s.nc),
            T=np.zeros(rows),
            mirror=np.zeros(rows),
            kept=np.zeros(s.nc, np.int64),
            N=np.zeros((freedoms, s.nv)),
            M=np.zeros((s.nv, s.nv)),
            p=np.zeros(speeds),
            f=np.zeros(speeds),
            d=np.zeros(speeds),
            impulse=np.zeros(speeds),
        )

    def _scratch(self) -> kernels.Scratch:
        s, freedoms = self.system, self.system.nv - self.rank
        return kernels.Scratch(
            unit=np.array(s.speed_units),
            row_unit=np.array(s.row_units),
            of_velocity=np.flatnonzero(~s.holonomic),
            load=np.zeros((len(s.bodies), 12)),
            goal=np.zeros(s.nc),
            x=np.zeros(s.nv),
            y=np.zeros((freedoms, 1)),
            xi=np.zeros(s.nv),
            A=np.zeros((freedoms, freedoms)),
            order=np.zeros(freedoms),
            along=np.zeros((freedoms, s.nv)),
            still=np.zeros(s.nv),
            total=np.zeros(s.nc),
        )

    # ------------------------------------------------------------------------------------------------ steps

    def begin(self, t: float, q: Array, v: Array, inexact: float = 0.0) -> float:
        """Make a closed state the start of the following steps; returns its indicator.

        If its pose is only known to within `inexact`, in natural units, the motions that it allows close to a singular
        pose are determined from poses before and behind it.
        """
        s, first, self._across = self.system, self.places[0], None
        w = self._head(first)
        w.t[0], w.q[:], w.v[:] = t, q, v
        kernels.begin(s.ints, s.floats, first, self.scratch)
        self.first = float(first.number[kernels.INDICATOR])
        if self.first < SINGULAR or (inexact > 0.0 and self.first < max(BLURRED, 10.0 * inexact)):
            self._choose_near_singular(t, first, v, self.first > 10.0 * inexact > 0.0)
        return self.first

    def _choose_near_singular(self, t: float, here: kernels.Place, v: Array, compare: bool) -> None:
        """Choose rows that are independent near a singular pose, and the motions of the branch along the speeds v.

        The motions are the mean of those before and behind the pose, extrapolated from two distances to remove the
        curvature; rows that depend on each other here are independent there. With `compare`, the motions found here are
        kept if they differ: then two circuits come close, and before and behind are different circuits.
        """
        s, total = self.system, np.zeros((self.system.nv, self.system.nv))
        state = State(t, self._head(here).q.copy(), v)
        around = max(AROUND, 3.0 * float(here.number[kernels.INDICATOR]))
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
        here, one, two, _ = self.places
        least, self.scratch.total[:] = np.inf, 0.0
        # all in one call, unless each end is visited
        for part in [tuple(shares)] if visit is None else [(share,) for share in shares]:
            status, made, nearest = self._parts(here, one, two, h, part)
            if status != FINE:
                last = here if made == 0 else one if made % 2 == 1 else two
                raise failures.step_failed(status, float(last.number[kernels.TIME]), part[made] * h)
            here, least = one if made % 2 == 1 else two, min(least, nearest)
            if visit is not None:
                visit(float(here.number[kernels.TIME]), self._head(here).q, here.v)
                one, two = two, one
        self.last = Step(
            self._head(here).q.copy(), here.v.copy(), least, self.scratch.total / self.system.row_units, here
        )
        return self.last

    def _head(self, place: kernels.Place) -> rec.Head:
        """Time, coordinates and speeds in the work array of a place."""
        return self._heads[id(place)]

    def _parts(
        self, start: kernels.Place, one: kernels.Place, two: kernels.Place, h: float, shares: Sequence[float]
    ) -> tuple[int, int, float]:
        """Make steps of order two from a place to two others by turns, and add their multipliers to `scratch.total`.

        Returns a status, how many were made, and the smallest indicator at their ends.
        """
        s, places = self.system, (start, one, two, self.places[-1], self.scratch)
        status, made, least = kernels.steps(s.ints, s.floats, *places, h, np.array(shares), self._moving_bases)
        return int(status), int(made), float(least)

    def closed(self, t: float, q: Array, v: Array) -> tuple[Array, Array]:
        """One linear correction of coordinates and speeds back to the constraints."""
        s, place = self.system, self.places[-1]
        if self.scratch.of_velocity.size:  # they do not count for positions
            return correct(s, t, q, v, self.rank)
        w = self._head(place)
        w.t[0], w.q[:], w.v[:] = t, q, v
        if not kernels.correct(s.ints, s.floats, place, self.scratch):
            raise ConvergenceError(f"the loops cannot be closed at t = {t:g} s near a singular pose.")
        return w.q.copy(), w.v.copy()

    def place_at(self, t: float, q: Array, v: Array) -> kernels.Place:
        """Place of a state at which a step could end; the start of the steps is unchanged."""
        s, place = self.system, self.places[-1]
        w = self._head(place)
        w.t[0], w.q[:], w.v[:] = t, q, v
        kernels.begin(s.ints, s.floats, place, self.scratch)
        return place

    def indicator_at(self, place: kernels.Place) -> float:
        """Indicator of a place."""
        return float(place.number[kernels.INDICATOR])

    def orientation(self, place: kernels.Place) -> Array:
        """Square matrix that tells on which side of singular poses a place is: identity at the start of the steps.

        It has the components of the kept rows of the place along those at the start, in the basis that the latter form
        with the tangents there times the mass matrix. It is singular where the rows of the place and these tangents
        are dependent; each loss of rank moves an eigenvalue through zero to the left half-plane.
        """
        first = self.places[0]
        if first.number[kernels.INDICATOR] < SINGULAR:
            return np.eye(self.rank)  # the start is singular: on neither side
        kept = first.kept[: self.rank]
        if self._across is None:
            self._across = np.linalg.inv(np.vstack([first.J[kept], first.N @ first.M]))[:, : self.rank]
        return np.asarray(place.J[kept] @ self._across)

    def rank_losses_between(self, a: Array, b: Array) -> int:
        """Number of times that rows lose their independence between two places with these orientations.

        Two losses leave the sign of the determinant unchanged, so the eigenvalues of the map from a to b are counted.
        """
        try:
            return int(np.count_nonzero(np.linalg.eigvals(b @ np.linalg.inv(a)).real < 0.0))
        except np.linalg.LinAlgError:
            return len(a)  # one is a singular pose to the last digit: any number may be lost

    def same_side(self, last: kernels.Place) -> bool:
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
