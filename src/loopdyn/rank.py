"""The one place that decides rank: how many constraint rows are independent, and how clear that is.

Off the constraint manifold a redundant row shows a small singular value of the size of the drift, so a
running tolerance breaks. The rank is decided once, on a pose projected to rounding, where true and spurious
singular values are far apart, and kept until an event changes the constraints.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from loopdyn import records as rec
from loopdyn.elimination.solver import Elimination
from loopdyn.errors import SingularityError
from loopdyn.projection import project
from loopdyn.system import State, System
from loopdyn.tree import body_motion, increment, terms

Array = NDArray[np.float64]

# Singular values of the scaled Jacobian below this share of the largest are candidates for zero ...
CANDIDATE = 1e-7
# ... and the decision is clear if the smallest kept and the largest dropped differ by this factor.
CLEAR_GAP = 1e3
# Systems with more speeds or rows than this are judged without dense matrices.
LARGEST_DENSE = 400
CLOSING_STEPS = 20  # Newton steps to a closed pose
NEIGHBOUR = 1e-3  # rad or sizes of the mechanism to a neighbouring pose
CLOSED = 1e-12  # largest residual, in rad or sizes of the mechanism, of a pose that counts as closed
# A motion has no inertia if what M gives for it is this share of the terms it is the sum of ...
MASSLESS = 1e-12
# ... or this share of the largest inertia of any motion.
NOTHING = 1e-18
MOVING = 1e-6  # share of the fastest above which a body moves


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
        Of the scaled Jacobian, descending; empty for a large system, which is judged by the pivots of an elimination.
    state : State or None
        The closed state at which it was decided.
    """

    count: int
    rows: int
    gap: float
    singular_values: Array
    state: State | None = None

    @property
    def redundant(self) -> int:
        """Rows that say nothing new at this pose."""
        return self.rows - self.count

    @property
    def clear(self) -> bool:
        """Whether kept and dropped singular values are far apart."""
        return self.gap >= CLEAR_GAP


def scaled(system: System, J: Array) -> Array:
    """J in natural units of rows and speeds: its entries are of the order of one, or zero.

    Rows are not brought to length one: a row that vanishes at a pose but for rounding would be blown up.
    """
    result: Array = J * system.speed_units / system.row_units[:, None]
    return result


def of_matrix(A: Array) -> Rank:
    """Rank of a scaled matrix by the largest gap among its small singular values."""
    rows = A.shape[0]
    if 0 in A.shape:
        return Rank(0, rows, np.inf, np.zeros(0))
    s = np.asarray(np.linalg.svd(A, compute_uv=False), float)
    top = max(float(s[0]), 1.0)  # in natural units entries are of the order of one: rows of mere rounding count as zero
    floor = np.finfo(float).eps * max(A.shape) * top
    count = int(np.count_nonzero(s > max(CANDIDATE * top, floor)))
    if count == 0:
        return Rank(0, rows, np.inf, s)
    dropped = s[count] if count < len(s) else 0.0
    return Rank(count, rows, float(s[count - 1] / max(dropped, floor)), s)


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
    if is_large(system):
        elimination = Elimination(system, state)
        closed = elimination.project(state, CLOSING_STEPS)
        elimination.choose(closed)
        return Rank(elimination.count, system.nc, float(np.sqrt(elimination.gap)), np.zeros(0), closed)
    closed = project(system, state).state
    return replace(of_matrix(scaled(system, terms(system, closed).J)), state=closed)


def require_regular(system: System, rank: Rank) -> None:
    """Raise SingularityError if more rows are independent at a closed neighbour of the pose where `rank` was decided.

    At such a pose the rows leave accelerations open that they determine beside it: what a solver would return is one
    of many. Large systems are judged by the pivots of their elimination alone, whose smallest is reported.
    """
    if is_large(system) or rank.state is None or rank.count == min(system.nc, system.nv):
        return
    here, h = rank.state, system.holonomic
    J = scaled(system, terms(system, here).J)
    null = np.linalg.svd(J)[2][rank.count :]
    x = null.T @ np.random.default_rng(0).normal(size=len(null))
    step = NEIGHBOUR * system.speed_units * x / max(float(np.abs(x).max(initial=0.0)), 1e-300)
    beside = project(system, State(here.t, increment(system, here.q, step), np.zeros(system.nv)))
    now = terms(system, beside.state)
    if np.abs((now.phi / system.row_units)[h]).max(initial=0.0) > CLOSED:
        return  # no closed pose that way: what moves there is shaky, not a freedom
    more = of_matrix(scaled(system, now.J)).count - rank.count
    if more > 0:
        raise SingularityError(
            f"'{system.name}' is in a singular pose at t = {here.t:g} s: {more} of its constraint rows depend on "
            "others here and not beside it. Accelerations are not unique there; start beside it, or see "
            "ld.mobility(system, state)."
        )


def is_large(system: System) -> bool:
    """Whether dense matrices of the system are to be avoided."""
    return max(system.nc, system.nv) > LARGEST_DENSE


def without_inertia(M: Array, N: Array) -> Array | None:
    """A motion in the span of N against which M has no inertia but for rounding, or None.

    Rounding is judged against the terms that the inertia of a motion is the sum of, not against other inertias: a
    light body is not a body without inertia. M is in natural units.
    """
    if 0 in N.shape:
        return None
    values, vectors = np.linalg.eigh(N.T @ M @ N)
    for x in (N @ vectors).T:
        inertia, terms_ = x @ M @ x, np.abs(x) @ np.abs(M) @ np.abs(x)
        if inertia <= max(MASSLESS * terms_, NOTHING * values[-1]):
            return np.asarray(x, float)
    return None


def require_inertia(system: System, state: State, rank: Rank) -> None:
    """Raise SingularityError if the constraints allow a motion at the closed pose next to `state` that has no inertia.

    Its acceleration is not determined: what a solver would return for it is rounding divided by rounding. In a large
    system the tree alone must have inertia; :func:`decide` has then found its pivots sound.
    """
    if is_large(system):
        return
    closed = rank.state or project(system, state).state
    now, units = terms(system, closed), system.speed_units
    N = np.linalg.svd(scaled(system, now.J))[2][rank.count :].T if system.nc else np.eye(system.nv)
    x = without_inertia(now.M * np.outer(units, units), N)
    if x is None:
        return
    moving = _moving_bodies(system, closed, units * x)
    one = len(moving) == 1
    them = f"body '{moving[0]}' can" if one else f"bodies {', '.join(repr(b) for b in moving)} can together"
    raise SingularityError(
        f"{them} move where {'it has' if one else 'they have'} no inertia, so the acceleration is not determined (a "
        f"thin rod that can turn about its own line, for example). Give {'it' if one else 'one of them'} mass or "
        "inertia, as a rod gets by a radius, or a joint that holds it."
    )


def _moving_bodies(system: System, pose: State, v: Array) -> list[str]:
    """Bodies that move at these speeds: turn, or displace their centre of mass."""
    motion = body_motion(system, State(pose.t, pose.q, v))
    still = body_motion(system, State(pose.t, pose.q, np.zeros(system.nv)))
    spin = motion.angular_velocity - still.angular_velocity
    model = system.model.body
    own = model[:, rec.BODY_AXES : rec.BODY_AXES + 9].reshape(-1, 3, 3)
    com = np.einsum("nji,nj->ni", own, model[:, rec.COM : rec.COM + 3] - model[:, rec.ORIGIN : rec.ORIGIN + 3])
    arm = np.einsum("nij,nj->ni", motion.rotation, com)
    speed = (motion.velocity - still.velocity + np.cross(spin, arm)) / system.size
    size = np.maximum(np.linalg.norm(spin, axis=1), np.linalg.norm(speed, axis=1))
    size[: system.n_bases] = 0.0
    return [system.bodies[k] for k in np.flatnonzero(size > MOVING * size.max())]
