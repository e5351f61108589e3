"""Finite motion around a closed pose: which losses of rank are permanent, and which belong to the pose alone.

Whether a loss of rank is permanent (an overconstrained mechanism) or belongs to this pose alone (a change point) is
decided to second order: with U0 a basis of the left null space of the rows and N a basis of their null space, a loss
belongs to the pose if the quadratic forms U0^T phi''(v, v) do not vanish for all v in N. A random walk over
neighbouring closed poses, whose rank is computed, is an independent check; it starts along velocities for which these
forms vanish, as they do along every finite motion. If the walk does not regain the rank that the forms say is lost,
either some velocities lead to no finite motion (a shaky mechanism), which is tested by steps along all of them, or the
verdict is "undecided".

The rows of a small system are one dense matrix (:class:`DensePose`); those of a large one are never formed
(:mod:`loopdyn.analysis.large_poses`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from loopdyn.loops.projection import project
from loopdyn.loops.rank import CLEAR_GAP, Rank, scaled
from loopdyn.loops.sparse_steps import sparse_rows
from loopdyn.system.system import State, System
from loopdyn.thresholds import EXACT
from loopdyn.tree.functions import difference, increment, terms

Array = NDArray[np.float64]

SECOND_ORDER = 1e-6  # fraction of the largest form below which a quadratic form counts as zero
STEP = 0.05  # natural units: length of a step of the walk
GENERATIONS = 3  # steps of a walk
# Residual, in natural units, below which a neighbour counts as closed: EXACT, or this multiple of the residual that
# rounded dimensions leave at the pose itself, or that singular values counted as zero cause along a step.
AS_NEAR = 3.0
# If the surfaces phi = 0 touch instead of crossing, a residual EXACT leaves coordinates uncertain by its square root:
# singular values of a neighbour below this are zero. Those lost at the pose alone are of the order of STEP there.
ZERO_THERE = 1e-5
CONE_STEPS = 40  # Newton steps to such a velocity; at double roots each only halves the distance
TRIES = 10  # searches for a velocity, without success, outside the span of those for which the forms vanish
# Part of such a unit velocity outside the span that counts. A velocity that is off by x has forms of the order of x
# squared, so those of it must be far smaller than the square; Newton's method leaves 1e-13 at most.
OUTSIDE = 1e-2
REACHED = 0.1  # fraction of a step that remains when the loops are closed: about one, or nearly zero
CLOSING_STEPS = 50  # Newton steps to a neighbour; where surfaces touch each only halves the distance


@dataclass(frozen=True)
class RankLosses:
    """Losses of rank that belong to a pose alone.

    Attributes
    ----------
    count : int
        Their number: independent quadratic forms that do not vanish.
    possible : callable
        Random allowed velocity for which all forms vanish, if there is one.
    doubt : str
        Reason why the number is in doubt; empty if it is clear.
    forms : (k, freedoms, freedoms) array, optional
        The forms on a basis of the allowed velocities.
    """

    count: int
    possible: Callable[[np.random.Generator], Array]
    doubt: str = ""
    forms: Array | None = None


class Pose(Protocol):
    """Closed pose, the rank of its rows, and the velocities that they allow, in SI units."""

    walks: ClassVar[int]  # walks over its neighbours
    # Most walks of one step, if the forms say that rank is lost and no neighbour has regained it.
    more_walks: ClassVar[int]
    most_freedoms: ClassVar[float]  # most freedoms along each of which steps are made

    @property
    def system(self) -> System:
        """The system."""
        ...

    @property
    def state(self) -> State:
        """The closed state, at rest."""
        ...

    @property
    def rank(self) -> int:
        """Number of independent rows."""
        ...

    @property
    def freedoms(self) -> int:
        """Instantaneous degrees of freedom."""
        ...

    def velocity(self, rng: np.random.Generator) -> Array:
        """Random allowed velocity."""
        ...

    def basis(self) -> Array:
        """Basis (nv, freedoms) of the allowed velocities, orthonormal in natural units."""
        ...

    def closed_near(self, step: Array, near: float) -> Pose | None:
        """Closed pose next to this one moved by `step`; None if its residual stays above `near`."""
        ...

    def rank_losses(self) -> RankLosses:
        """Losses of rank that belong to this pose alone."""
        ...


@dataclass(frozen=True)
class FiniteMotion:
    """Verdict, degrees of freedom of finite motion, a pose nearby without rank loss (None: nothing moves), doubts."""

    verdict: str
    dof: int
    best: Pose | None
    doubts: tuple[str, ...] = ()


def finite_motion(at: Pose, here: Rank) -> FiniteMotion:
    """Finite motion around a pose at which the rank `here` was decided."""
    if here.redundant == 0:
        return FiniteMotion("regular", at.freedoms, at)
    doubts = [] if here.clear else [_unclear(here)]
    if at.freedoms == 0:
        return FiniteMotion("undecided" if doubts else "overconstrained", 0, None, tuple(doubts))
    losses, near = at.rank_losses(), _near(at, here)
    doubts += [losses.doubt] if losses.doubt else []
    best = _largest_rank(at, losses, near)
    lost = 0 if best is None else max(0, best.rank - here.count)
    if best is not None and lost == losses.count:  # the walk confirms the forms
        verdict, dof = "singular here" if lost else "overconstrained", at.freedoms - lost
    elif best is not None and best.freedoms > best.most_freedoms:
        verdict, dof = "undecided", at.freedoms - lost
        doubts.append(
            f"finite motion: {losses.count} rows are lost at this pose to second order, neighbouring poses regain "
            f"{lost}; steps along each freedom would tell, but {best.freedoms} are more than {best.most_freedoms:g}"
        )
    else:
        dof = 0 if best is None else _reached(best, near)
        verdict = "shaky" if losses.count > lost and dof < at.freedoms - lost else "undecided"
        if verdict == "shaky" and losses.forms is not None and not _forbids(losses.forms):
            doubts.append(
                f"finite motion: {losses.count} rows are lost at this pose to second order, neighbouring poses found "
                f"regain {lost}, but it is not proved that some velocities lead to no motion: many branches may meet"
            )
    return FiniteMotion("undecided" if doubts else verdict, dof, best, tuple(doubts))


def _unclear(here: Rank) -> str:
    kind = "singular values" if len(here.singular_values) else "pivots"
    return (
        f"rank: {kind} that count and those that do not differ by a factor of {here.gap:.2g}; from {CLEAR_GAP:g} on "
        "the rank is clear"
    )


def _near(at: Pose, here: Rank) -> float:
    """Residual below which a neighbour of a pose counts as closed."""
    dropped = float(here.singular_values[here.count : here.count + 1].sum())
    residual = float(np.abs(sparse_rows(at.system, at.state).phi).max(initial=0.0))
    return max(EXACT, AS_NEAR * residual, AS_NEAR * GENERATIONS * STEP * dropped)


def _largest_rank(at: Pose, losses: RankLosses, near: float) -> Pose | None:
    """Neighbour of largest rank reached by random steps; None if nothing can move."""
    rng, system = np.random.default_rng(0), at.system
    columns, expected = system.speed_units, at.rank + losses.count
    best: Pose | None = None
    for walk in range(at.more_walks):
        if walk >= at.walks and best is not None and best.rank >= expected:
            break
        place, step = at, losses.possible(rng)
        for _ in range(GENERATIONS if walk < at.walks else 1):
            step = step * STEP / np.abs(step / columns).max()
            found = place.closed_near(step, near)
            if found is None:
                break
            if np.abs(difference(system, place.state.q, found.state.q) / columns).max() < REACHED * STEP:
                break
            best = found if best is None or found.rank > best.rank else best
            if found.freedoms == 0:
                break
            place, step = found, found.velocity(rng)
    return best


def _reached(at: Pose, near: float) -> int:
    """Number of independent finite motions of a neighbour, from steps forward minus back, which cancels curvature."""
    system = at.system
    columns = system.speed_units
    moves = []
    for x in at.basis().T:
        step = x * STEP / np.abs(x / columns).max()
        there = [at.closed_near(sign * step, near) for sign in (1.0, -1.0)]
        ends = [difference(system, at.state.q, n.state.q) if n is not None else np.zeros(system.nv) for n in there]
        moves.append((ends[0] - ends[1]) / (2 * STEP * columns))
    return int(np.count_nonzero(np.linalg.svd(np.array(moves), compute_uv=False) > REACHED)) if moves else 0


def _forbids(forms: Array) -> bool:
    """Whether the forms prove that some velocities lead to no finite motion.

    They do if a combination of them is positive semidefinite and not zero: it vanishes on its null space alone. The
    combination tried is the one nearest to the projector on the velocities outside the span of :func:`_possible`.
    """
    n = forms.shape[1]
    Q = _possible(forms)
    _, s, span = np.linalg.svd(forms.reshape(len(forms), -1), full_matrices=False)
    span = span[s > SECOND_ORDER * max(1.0, s[0])]
    nearest = (span.T @ (span @ (np.eye(n) - Q @ Q.T).ravel())).reshape(n, n)
    values = np.linalg.eigvalsh(nearest)
    return bool(values[-1] > SECOND_ORDER and values[0] > -SECOND_ORDER * values[-1])


def _possible(forms: Array) -> Array:
    """Orthonormal velocities (n, m) that span those found for which all forms vanish.

    Each is searched from a random one outside the span of those before it, since Newton's method from anywhere ends at
    few of them; the search ends after `TRIES` without success.
    """
    rng, n = np.random.default_rng(3), forms.shape[1]
    zero = SECOND_ORDER * OUTSIDE**2 * max(1.0, float(np.abs(forms).max()))
    Q, failed = np.zeros((n, 0)), 0
    while Q.shape[1] < n and failed < TRIES:
        start = rng.normal(size=n)
        x = vanishing(forms, start - Q @ (Q.T @ start))
        new = x - Q @ (Q.T @ x)
        if np.abs(forms @ x @ x).max() < zero and np.linalg.norm(new) > OUTSIDE:
            Q, failed = np.column_stack([Q, new / np.linalg.norm(new)]), 0
        else:
            failed += 1
    return Q


# ------------------------------------------------------------------------------------------------ quadratic forms


def second_order(system: System, pose: State, U0: Array, N: Array) -> Array:
    """Quadratic forms U0^T phi''(v, v) on N, (dependencies, dof, dof)."""

    def gamma(v: Array) -> Array:
        return terms(system, State(pose.t, pose.q, v)).gamma

    still = gamma(np.zeros(system.nv))

    def phi2(v: Array) -> Array:
        """U0^T phi''(v, v) in scaled rows: terms quadratic in v; J a drops out, linear terms belong to phi_t."""
        value: Array = -U0.T @ ((0.5 * (gamma(v) + gamma(-v)) - still) / system.row_units)
        return value

    return polarised(phi2, N)


def polarised(quadratic: Callable[[Array], Array], N: Array) -> Array:
    """Symmetric forms (k, n, n) on the columns of N of a function (k,) that is quadratic in v."""
    n = N.shape[1]
    own = np.array([quadratic(x) for x in N.T])
    forms = np.zeros((own.shape[1], n, n))
    for i in range(n):
        forms[:, i, i] = own[i]
        for j in range(i):
            forms[:, i, j] = forms[:, j, i] = 0.5 * (quadratic(N[:, i] + N[:, j]) - own[i] - own[j])
    return forms


def vanishing(forms: Array, start: Array) -> Array:
    """Unit vector for which all forms vanish, by Newton steps from `start`, if there is one."""
    x = start / np.linalg.norm(start)
    for _ in range(CONE_STEPS):
        slope: Array = forms @ x
        x = x - np.linalg.lstsq(2 * slope, slope @ x, rcond=1e-12)[0]
        x = x / np.linalg.norm(x)
    return x


# ---------------------------------------------------------------------------------------------------- small systems


@dataclass(frozen=True)
class DensePose:
    """Pose of a small system: bases of both null spaces, by singular values."""

    system: System
    state: State
    rank: int
    U0: Array  # left null space of the scaled rows
    N: Array  # null space, SI units

    walks: ClassVar[int] = 6
    more_walks: ClassVar[int] = 30
    most_freedoms: ClassVar[float] = np.inf

    @classmethod
    def of(cls, system: System, state: State, A: Array, count: int | None = None) -> DensePose:
        """Pose at which A are the scaled rows; `count`: their rank, if it has been decided."""
        U, s, Vt = np.linalg.svd(A, full_matrices=True)
        if count is None:
            count = int(np.count_nonzero(s > ZERO_THERE * max(1.0, s[0])))
        return cls(system, state, count, U[:, count:], system.speed_units[:, None] * Vt[count:].T)

    @property
    def freedoms(self) -> int:
        """Instantaneous degrees of freedom."""
        return int(self.N.shape[1])

    def velocity(self, rng: np.random.Generator) -> Array:
        """Random allowed velocity."""
        found: Array = self.N @ rng.normal(size=self.freedoms)
        return found

    def basis(self) -> Array:
        """Basis of the allowed velocities."""
        return self.N

    def closed_near(self, step: Array, near: float) -> DensePose | None:
        """Closed pose next to this one moved by `step`; None if none was found."""
        system, at = self.system, self.state
        moved = State(at.t, increment(system, at.q, step), np.zeros(system.nv))
        found = project(system, moved, most=CLOSING_STEPS).state
        now = terms(system, found)
        if np.abs(now.phi / system.row_units).max() > near:
            return None
        return DensePose.of(system, found, scaled(system, now.J))

    def rank_losses(self) -> RankLosses:
        """Losses of rank that belong to this pose alone, from all forms on N."""
        forms = second_order(self.system, self.state, self.U0, self.N)
        s = np.linalg.svd(forms.reshape(len(forms), -1), compute_uv=False)
        # rows and columns are scaled to one, so the form of a true rank loss is of the order of one
        count = int(np.count_nonzero(s > SECOND_ORDER * max(1.0, s[0])))
        return RankLosses(count, lambda rng: self.N @ vanishing(forms, rng.normal(size=self.freedoms)), forms=forms)
