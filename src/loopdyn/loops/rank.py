"""The only module that decides rank: how many constraint rows are independent, and how clear the decision is.

Off the constraint manifold a redundant row has a small singular value of the size of the drift, so a tolerance
applied during a run fails. The rank is decided once, at a pose projected to rounding, where true and spurious
singular values are far apart, and kept until an event changes the constraints.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from loopdyn.errors import SingularityError
from loopdyn.loops.continuation import Rule, close
from loopdyn.loops.elimination.solver import Elimination
from loopdyn.loops.projection import Loops, project
from loopdyn.system.system import State, System, state_key
from loopdyn.thresholds import CANDIDATE, CLOSED
from loopdyn.tree.functions import Terms, bodies_without_inertia, constraint_equations, increment, terms
from loopdyn.tree.massless_motions import LARGEST_DENSE

Array = NDArray[np.float64]
T = TypeVar("T")

# The decision is clear if the smallest singular value kept and the largest dropped differ by this factor.
CLEAR_GAP = 1e3
CLOSING_STEPS = 20  # Newton steps to a closed pose
ROUNDING = 1e-12  # rounding of a sum, as a fraction of its terms
NEIGHBOUR = 1e-3  # distance to a neighbouring pose, in natural units
NEARBY = Rule(steps=CLOSING_STEPS, enough=CLOSED, falls=1.0)  # from there to a closed pose
# A driver has no effect if the motion it causes is this small relative to its row, in natural units; a run whose steps
# shrink before a dead point ends at some 1e-4.
DEAD = 1e-2
TAKES_PART = 0.3  # a driver or speed takes part in a motion from this fraction of the largest on


@dataclass(frozen=True)
class Rank:
    """Number of independent rows at a pose.

    Attributes
    ----------
    count : int
        Independent rows.
    rows : int
        All rows.
    gap : float
        Smallest singular value kept over the largest dropped, both of the scaled Jacobian.
    singular_values : array
        Of the scaled Jacobian, descending; empty for a large system, which is judged by pivots of the elimination.
        Pivots are squares: their roots take the place of singular values.
    margin : float
        Distance to a loss of rank: smallest singular value kept, as a fraction of the largest or of one. In a large
        system the smallest part of a row that those before it do not contain, in the mass metric.
    state : State or None
        The closed state at which it was decided.
    """

    count: int
    rows: int
    gap: float
    singular_values: Array
    state: State | None = None
    margin: float = np.inf

    @property
    def redundant(self) -> int:
        """Number of rows that depend on others at this pose."""
        return self.rows - self.count

    @property
    def clear(self) -> bool:
        """Whether kept and dropped singular values are far apart."""
        return self.gap >= CLEAR_GAP


def scaled(system: System, J: Array) -> Array:
    """J in natural units of rows and speeds: its entries are of the order of one, or zero.

    Rows are not normalised: that would amplify the rounding of a row that vanishes at a pose.
    """
    result: Array = J * system.speed_units / system.row_units[:, None]
    return result


def of_matrix(A: Array, candidate: float = CANDIDATE) -> Rank:
    """Rank of a scaled matrix: singular values below `candidate` times the largest, or one, count as zero."""
    rows = A.shape[0]
    if 0 in A.shape:
        return Rank(0, rows, np.inf, np.zeros(0))
    s = np.asarray(np.linalg.svd(A, compute_uv=False), float)
    top = max(float(s[0]), 1.0)  # in natural units entries are of order one: rows of mere rounding count as zero
    floor = np.finfo(float).eps * max(A.shape) * top
    count = int(np.count_nonzero(s > max(candidate * top, floor)))
    if count == 0:
        return Rank(0, rows, np.inf, s)
    dropped = s[count] if count < len(s) else 0.0
    return Rank(count, rows, float(s[count - 1] / max(dropped, floor)), s, margin=float(s[count - 1] / top))


def decide(system: System, state: State) -> Rank:
    """Rank of the constraint rows at the closed pose next to `state`.

    Examples
    --------
    >>> import loopdyn as ld
    >>> system = ld.library.four_bar().compile()
    >>> rank = decide(system, system.state())
    >>> rank.count, rank.redundant, rank.clear
    (2, 3, True)
    """
    return _known(system, "rank", state, None, lambda: _decide(system, state))


def _known(system: System, kind: str, state: State, count: int | None, make: Callable[[], T]) -> T:
    """Result found before at the same state, for the same number of independent rows."""
    if system.mechanism.user_constraints:  # functions need not give the same again
        return make()
    return system.kept.find(kind, (state_key(state), count), make)


def _decide(system: System, state: State) -> Rank:
    state = State(state.t, np.array(state.q, float), np.array(state.v, float))  # arrays that nobody else changes
    if is_large(system) and not system.mechanism.user_constraints:  # which the elimination does not have
        elimination = Elimination(system, state)
        closed = elimination.project(state, CLOSING_STEPS)
        elimination.choose(closed)
        smallest = elimination.reference  # nothing dropped: compared with rounding
        gap = elimination.gap if elimination.count < system.nc else smallest / np.finfo(float).eps
        return Rank(
            elimination.count, system.nc, float(np.sqrt(gap)), np.zeros(0), closed, margin=float(np.sqrt(smallest))
        )
    closed = project(system, state).state
    return replace(of_matrix(scaled(system, terms(system, closed).J)), state=closed)


def require_regular(system: System, rank: Rank) -> None:
    """Raise SingularityError if more rows are independent at a closed neighbour of the pose where `rank` was decided.

    At such a singular pose the rows do not determine accelerations that they determine nearby: a solver would return
    one of many. Large systems are judged by the pivots of their elimination alone, whose smallest is reported.
    """
    here = rank.state
    if is_large(system) or here is None or rank.count == min(system.nc, system.nv):
        return
    more = _known(system, "more nearby", here, rank.count, lambda: _more_nearby(system, here, rank.count))
    if more > 0:
        raise SingularityError(
            f"'{system.name}' is in a singular pose at t = {here.t:g} s: {more} of its constraint rows depend on "
            "others here, but not at poses nearby. Accelerations are not unique there; start at a pose nearby, or see "
            "ld.mobility(system, state)."
        )


def _more_nearby(system: System, here: State, count: int) -> int:
    """Number of rows beyond `count` that are independent at a closed neighbour of a pose."""
    N = _allowed(system, here, count)
    x = N @ _generic(N.shape[1])
    step = NEIGHBOUR * system.speed_units * x / max(float(np.abs(x).max(initial=0.0)), 1e-300)
    found = close(Loops(system, here.t), increment(system, here.q, step), NEARBY)
    if not found.closed:
        return 0  # no closed pose in this direction: an infinitesimal motion, not a freedom
    _, J = constraint_equations(system, State(here.t, found.y, np.zeros(system.nv)))
    return of_matrix(scaled(system, J)).count - count


@lru_cache(maxsize=64)
def _generic(n: int) -> Array:
    """Coefficients of a motion in which all of n freedoms take part, the same ones each time."""
    found = np.random.default_rng(0).normal(size=n)
    found.flags.writeable = False
    return found


def _allowed(system: System, closed: State, count: int) -> Array:
    """Motions that the rows allow at a closed pose where `count` are independent: columns, in natural units."""
    return _known(
        system,
        "allowed",
        closed,
        count,
        lambda: np.asarray(np.linalg.svd(scaled(system, terms(system, closed).J))[2][count:].T),
    )


def moved_in_time(now: Terms, v: Array) -> NDArray[np.bool_]:
    """Rows that depend on time explicitly, by more than the rounding of their terms."""
    rounding = ROUNDING * (np.abs(now.J) @ np.abs(v))
    result: NDArray[np.bool_] = np.abs(now.phi_t) > rounding
    return result


def dead_drivers(system: System, pose: State) -> tuple[list[str], list[str]]:
    """Drivers that have lost their effect at a pose, and labels of speeds that can move there without them.

    At such a dead point the rows of drivers, and of constraints that depend on time, depend on those of the loops: the
    loops would open if the drivers went on. Large systems are not examined.
    """
    if is_large(system) or not system.nc:
        return [], []
    try:
        now = terms(system, pose)
    except SingularityError:  # undefined rows are reported elsewhere
        return [], []
    names = system.row_elements
    joints, drivers = system.joints, system.mechanism.drivers
    moved = moved_in_time(now, pose.v)
    driven = np.array([n in drivers or (n not in joints and moved[k]) for k, n in enumerate(names)], bool)
    J = scaled(system, now.J)
    N = np.linalg.svd(J[~driven])[2][of_matrix(J[~driven]).count :].T if not driven.all() else np.eye(system.nv)
    if not 0 < driven.sum() <= N.shape[1]:
        return [], []
    U, s, Vt = np.linalg.svd(J[driven] @ N)
    k = int(driven.sum()) - 1
    if s[k] > DEAD * np.linalg.norm(J[driven], axis=1).max():
        return [], []
    part, motion = np.abs(U[:, k]), np.abs(N @ Vt[k])
    rows = np.flatnonzero(driven)[part > TAKES_PART * part.max()]
    moving = [label for label, x in zip(system.speeds, motion, strict=True) if x > TAKES_PART * motion.max()]
    return list(dict.fromkeys(names[i] for i in rows)), moving


def dead_point(system: System, pose: State) -> str:
    """Description of the drivers at a dead point; empty if there are none."""
    dead, moving = dead_drivers(system, pose)
    if not dead:
        return ""
    one = len(dead) == 1
    return (
        f"driver{'' if one else 's'} {', '.join(repr(n) for n in dead)} {'is' if one else 'are'} at a dead point: "
        f"{'it' if one else 'they'} cannot go on, the loops would open; there {', '.join(moving[:6])} can move without "
        f"{'it' if one else 'them'}. See where with ld.drive, and keep {'its' if one else 'their'} motion short of it."
    )


def is_large(system: System) -> bool:
    """Whether the system is too large for dense matrices."""
    return max(system.nc, system.nv) > LARGEST_DENSE


def require_inertia(system: System, state: State, rank: Rank) -> None:
    """Raise SingularityError if the constraints allow a motion without inertia at the closed pose next to `state`.

    Its acceleration is not determined: a solver would return rounding divided by rounding. In a large system the tree
    alone must have inertia; :func:`decide` has then checked its pivots.
    """
    if is_large(system):
        return
    closed = rank.state or project(system, state).state
    groups = _known(system, "without inertia", closed, rank.count, lambda: _without_inertia(system, closed, rank.count))
    if not groups:
        return
    one, alone = len(groups) == 1, len(groups[0]) == 1
    named = [f"body '{g[0]}'" if len(g) == 1 else f"bodies {_listed(g)} together" for g in groups]
    if not one:
        them, has, receiver = f"{'; '.join(named)}: each", "there is", "each"
    elif alone:
        them, has, receiver = named[0], "it has", "it"
    else:
        them, has, receiver = named[0], "they have", "one of them"
    raise SingularityError(
        f"{them} can move where {has} no inertia, so the acceleration is not determined (a thin rod that can turn "
        f"about its own line, for example). Give {receiver} mass or inertia, as a rod gets by a radius, or a joint "
        "that holds it."
    )


def _without_inertia(system: System, closed: State, count: int) -> list[tuple[str, ...]]:
    """Groups of bodies that can move without inertia at a closed pose where `count` rows are independent."""
    return bodies_without_inertia(system, closed, _allowed(system, closed, count) if system.nc else None)


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(repr(name) for name in names)
