"""`momentum`: the reactions over a step are those that close the joints at its end [Huang2002].

The default, "rattle", keeps that idea and closes positions and velocities
(:mod:`loopdyn.formulations.momentum.kernels`): steps of order two that conserve momentum, are symplectic, and pass
singular poses; compositions of order 4 and 6. The scheme that is printed in the paper is "huang2002"
(:mod:`loopdyn.formulations.momentum.published_scheme`).

A stepping formulation gives steps, not accelerations: those are the ones of `graph`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

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

# Parts of a step of higher order, the first half; the middle one makes their sum one, the others follow in reverse
# order: Suzuki's five of order 4, the nine of order 6 by Kahan and Li [Hairer2006 section V.3].
PARTS: dict[int, tuple[float, ...]] = {
    2: (),
    4: (1.0 / (4.0 - 4.0 ** (1.0 / 3.0)),) * 2,
    6: (0.39216144400731413928, 0.33259913678935943860, -0.70624617255763935981, 0.08221359629355080023),
}


# An indicator, in natural units, below which a pose is singular; distance, rad or sizes of the mechanism, at which the
# motions that are allowed beside it are looked at; distance over which speeds are differenced, and trials to find it.
SINGULAR, BESIDE, DIFFERENCE, TRIALS = 1e-9, 1e-5, 1e-3, 20
# Speeds up to which dense matrices make steps as fast as the elimination of `graph` does or faster: 60 to 80 on ladders
# and windows; and up to which a run may start in a singular pose.
LARGEST_DENSE_STEPS = 80
# Distance at which the motions that a branch allows are looked at before and behind a singular pose; those at a state
# that is not exact count instead as long as the cosine of their angle is above this.
AROUND, ALIKE = 1e-3, 0.9
BLURRED = 1e-4  # indicator, in natural units, below which accelerations of regular solvers lose half of their digits


def nearby_regular_pose(system: System, state: State, move: float = BESIDE) -> State:
    """The closed pose at a distance, rad or sizes of the mechanism, from a singular one, where its speeds lead.

    Raises
    ------
    SingularityError
        If there are none: where the mechanism goes is then not determined.
    """
    fastest = float(np.abs(state.v / system.speed_units).max(initial=0.0))
    if fastest == 0.0:
        raise SingularityError(
            f"'{system.name}' is at rest in a singular pose at t = {state.t:g} s: where it goes is not determined. "
            "Give it speeds along one of its branches, or start beside the pose."
        )
    q = increment(system, state.q, move / fastest * state.v)
    return project(system, State(state.t, q, np.zeros(system.nv))).state


def parts(order: int) -> tuple[float, ...]:
    """Sizes of the steps of which one of a higher order is composed, as shares of it.

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
        # the start, two by turns, and the middle of a step or another state
        self.places: list[kernels.Place] = [self._place() for _ in range(4)]
        self.scratch = self._scratch()
        self.first = 0.0
        self._moving_bases = bool((system.model.base_programs >= 0).any())

    @cached_property
    def _auxiliary(self) -> MomentumSolver:
        """Another one, for questions that must not disturb the steps that are being made."""
        return type(self)(self.system, self._rank, self.regular, 2)

    def __call__(self, t: float, q: Array, v: Array) -> Solution:
        """Accelerations and multipliers at one state, as the regular solver gives them.

        In a singular pose, or so close to it that digits are lost, accelerations are those of momentum steps to both
        sides: the motion goes through smoothly, while multipliers grow without bound and are those of minimum norm that
        come closest. ``diagnostics["singular"]`` is then one.
        """
        try:
            if self._auxiliary.begin(t, q, v) > BLURRED:
                return self.regular(t, q, v)
        except SingularityError:
            pass  # the regular solver refuses, or the state is at rest, of which the steps will tell
        a = self._auxiliary._by_differences(t, q, v)
        now, rows = terms(self.system, State(t, np.array(q), np.array(v))), self.system.row_units
        force = now.M @ a - now.h
        lam = np.linalg.lstsq((now.J / rows[:, None]).T, force, rcond=None)[0] / rows
        residual = float(np.abs((now.J @ a - now.gamma) / rows).max(initial=0.0))
        return Solution(a, lam, {"residual": residual, "singular": 1.0})

    def _by_differences(self, t: float, q: Array, v: Array) -> Array:
        """Accelerations by speeds before and after, at two distances."""
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
            h *= float(np.sqrt(DIFFERENCE / bend))  # at rest the speeds do not tell how far it goes
        raise ConvergenceError(f"accelerations beside the singular pose at t = {t:g} s are not found. Start beside it.")

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
            explicit=np.zeros(s.nc),
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
        """Take a closed state as the start of the steps that follow; its indicator.

        Where its pose is only known to within `inexact`, rad or sizes of the mechanism, the motions that it allows
        close to a singular pose are found from poses before and behind it.
        """
        s, first = self.system, self.places[0]
        w = s.open_work(first.work)
        w.t[0], w.q[:], w.v[:] = t, q, v
        kernels.begin(s.ints, s.floats, first, self.scratch)
        self.first = float(first.number[kernels.INDICATOR])
        if self.first < SINGULAR or (inexact > 0.0 and self.first < max(BLURRED, 10.0 * inexact)):
            self._choose_near_singular(t, first, v, self.first > 10.0 * inexact > 0.0)
        return self.first

    def _choose_near_singular(self, t: float, here: kernels.Place, v: Array, compare: bool) -> None:
        """Rows that are independent beside a singular pose, and the motions that its branch of the speeds v allows.

        These are the mean of those before and behind the pose, at two distances, so that what bends is left out: rows
        that depend on each other here do not there. With `compare`, those found here stay if they are other ones: then
        two circuits come close, and before and behind is not the same one.
        """
        s, total = self.system, np.zeros((self.system.nv, self.system.nv))
        state = State(t, s.open_work(here.work).q.copy(), v)
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
        """One step of the time h, composed of several where the order is above two: q, v, impulse of the rows.

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
        """Steps of order two, shares of the time h, one after another from the last :meth:`begin` on.

        `visit` is called with the state (t, q, v) at the end of each.
        """
        s, total = self.system, self.scratch.total
        least = np.inf
        total[:] = 0.0
        start, *turns, _ = self.places
        here = start
        for k, share in enumerate(shares):
            there = turns[k % 2]
            status = self._part(here, there, share * h)
            if status != FINE:
                raise failures.step_failed(status, float(here.number[kernels.TIME]), share * h)
            least = min(least, float(there.number[kernels.INDICATOR]))
            here = there
            if visit is not None:
                visit(float(here.number[kernels.TIME]), s.open_work(here.work).q, here.v)
        w = s.open_work(here.work)
        self.last = Step(w.q.copy(), here.v.copy(), least, total / s.row_units, here)
        return self.last

    def _part(self, here: kernels.Place, there: kernels.Place, h: float) -> int:
        """One step of order two, whose multipliers are added to `scratch.total`; a status."""
        s, middle = self.system, self.places[-1]
        return int(kernels.step(s.ints, s.floats, here, there, middle, self.scratch, h, self._moving_bases))

    def closed(self, t: float, q: Array, v: Array) -> tuple[Array, Array]:
        """One linear correction of coordinates and speeds back to the constraints."""
        return correct(self.system, t, q, v, self.rank)

    def place_at(self, t: float, q: Array, v: Array) -> kernels.Place:
        """A state as a place where a step could end; the start of the steps stays."""
        s, place = self.system, self.places[-1]
        w = s.open_work(place.work)
        w.t[0], w.q[:], w.v[:] = t, q, v
        kernels.begin(s.ints, s.floats, place, self.scratch)
        return place

    def indicator_at(self, place: kernels.Place) -> float:
        """The indicator of a place."""
        return float(place.number[kernels.INDICATOR])

    def orientation(self, place: kernels.Place) -> Array:
        """A square matrix that tells on which side of singular poses a place is: one at the start of the steps.

        It leads from the rows that are kept, with the tangents at the start times the masses, to those of the place. It
        is singular where these are; each loss of rank brings an eigenvalue through zero to the left.
        """
        first = self.places[0]
        if first.number[kernels.INDICATOR] < SINGULAR:
            return np.eye(self.rank)  # the start is on neither side
        kept = first.kept[: self.rank]
        across: Array = np.linalg.inv(np.vstack([first.J[kept], first.N @ first.M]))[:, : self.rank]
        return np.asarray(place.J[kept] @ across)

    def rank_losses_between(self, a: Array, b: Array) -> int:
        """How many times rows lost their independence between two places with these marks, in whatever poses.

        Two losses leave the sign of a determinant as it is, so eigenvalues of what leads from a to b are counted.
        """
        try:
            return int(np.count_nonzero(np.linalg.eigvals(b @ np.linalg.inv(a)).real < 0.0))
        except np.linalg.LinAlgError:
            return len(a)  # one is a singular pose to the last digit: any may be lost

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
        Of steps of one size, :class:`loopdyn.Steps`: 2, or 4 or 6 by symmetric composition. By default steps are
        extrapolated and chosen by the tolerances; of one size, they are of order 2.

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
        """What `graph` treats, but for user forces, and rows of velocities in large systems.

        "huang2002" has four types of joints.
        """
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
        """Steps of "rattle" do; the matrix of the scheme of the paper is singular there."""
        return self.scheme == "rattle"

    def plan(self, system: System) -> str:
        """The unknowns of a step."""
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
    """What makes steps: dense matrices are the faster way for small systems only."""
    from loopdyn.formulations.momentum.large import LargeMomentumSolver  # which imports this module

    return (LargeMomentumSolver if in_linear_time(system) else MomentumSolver)(system, rank, regular, order)


def in_linear_time(system: System) -> bool:
    """Whether steps of a system are made by the elimination of `graph`."""
    return system.nv > LARGEST_DENSE_STEPS and bool(system.holonomic.all())
