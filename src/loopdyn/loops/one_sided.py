"""One-sided rows: which of the closed ones press, and what impacts do to the speeds.

For the closed gaps g >= 0 of a mechanism, with N a basis of the motions that the other rows allow,

    g'' = A z + b,    A = B (N^T M N)^-1 B^T,    B = (dg/dq) N,

where b are the accelerations of the gaps without contact. Gauss's principle under g'' >= 0 is the complementarity
problem g'' >= 0, z >= 0, g'' z = 0: its solution is unique in g'' if N^T M N is positive definite, and in the forces z
of independent rows. Impacts are the same problem in impulses (Moreau): speeds of approaching gaps are reversed by
Newton's law, by one coefficient of restitution e,

    r+ = r- + A Z,    Z >= 0,    r+ + e r- >= 0,    Z (r+ + e r-) = 0.

The change of kinetic energy is -(1 - e)/(1 + e) Z A Z/2, never positive. Rows are scaled so that the diagonal of A is
one: forces and accelerations then have one unit, which a single threshold compares.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from loopdyn.contacts.base import Side
from loopdyn.errors import LoopdynError, SingularityError, warn
from loopdyn.loops.complementarity import solve_lcp
from loopdyn.loops.rank import decide
from loopdyn.system.sides import all_closed, sides_of
from loopdyn.system.system import State, System
from loopdyn.thresholds import AT_LIMIT
from loopdyn.tree.functions import terms
from loopdyn.tree.massless_motions import motions_without_inertia
from loopdyn.tree.residuals import residuals

Array = NDArray[np.float64]
Indices = list[int]

# Height, natural units, below which a rebound is no flight: the side rests. Ten thousand units of rounding.
RESTING_HEIGHT = 1e-12
# Speed of a gap that is rounding: fraction of the fastest that the kinetic energy of the mechanism could give it.
RESTING_SPEED = 1e-11
# Acceleration of a gap, or contact force, that is zero: fraction of the accelerations of the mechanism, mass metric.
# A side that is neither pressed nor lifted by more stays closed until it is pulled by ten times as much.
WEAK, PULLED = 1e-11, 1e-10
# Part of a row in the mass metric that rows before it do not contain, below which it depends on them.
INDEPENDENT = 1e-9
# Part of a gap's row, natural units, that the loops leave movable, below which the loops alone hold the gap.
HELD = 1e-9
# Most impacts one after another at one time: chains of a hundred parts take some ten thousand.
MOST_IMPACTS = 100_000
ACT_IN_RUNS = "forces and accelerations are those without it. Take them from ld.simulate(...)."
GAIN = 1e-9  # of the kinetic energy: an impact that gains more is an error


def gaps(base: System, state: State, sides: Sequence[Side] | None = None) -> tuple[Array, Array]:
    """Gaps of sides of a system, by default all rigid ones, and their rates, SI units.

    Examples
    --------
    >>> import loopdyn as ld
    >>> m = ld.library.pendulum()
    >>> m.add_contact("wall", ld.contacts.Stop(joint="A", upper=1.0))
    'wall'
    >>> system = m.compile()
    >>> gap, rate = gaps(system, system.state(q={"A": 0.25}, v={"A": 2.0}))
    >>> gap, rate
    (array([0.75]), array([-2.]))
    """
    closed, sides = all_closed(base), sides_of(base) if sides is None else sides
    rows = [closed.constraint_rows.index(s.name) for s in sides]
    sign = np.array([s.sign for s in sides], float)
    phi, rate = residuals(closed, state)
    return sign * phi[rows], sign * rate[rows]


def closed_sides(system: System, states: Iterable[State]) -> list[str]:
    """Names of the sides whose gap is zero or below at one of the states."""
    if not system.mechanism.contacts:
        return []
    near, sides, closed = AT_LIMIT * all_closed(system).size, sides_of(system), set[str]()
    for state in states:
        closed |= {side.name for side, gap in zip(sides, gaps(system, state)[0], strict=True) if gap <= near}
    return [side.name for side in sides if side.name in closed]


def warn_if_closed(system: System, states: Iterable[State], means: str = ACT_IN_RUNS) -> None:
    """Warn of contacts that are closed at a state or along a path, where they do not act on the result."""
    closed = closed_sides(system, states)
    if closed:
        warn(
            f"{system.name}: {', '.join(closed)} is closed at this state, or passed along the path, but contacts act "
            f"in runs only: {means}"
        )


@dataclass(frozen=True)
class Pressing:
    """Sides that are closed at a state, by their index.

    `active` are independent rows; `implied` stay closed because the active ones do: their force is zero in this
    distribution, which is one of many. `force` (N or N m) are the forces of all sides.
    """

    active: tuple[int, ...]
    implied: tuple[int, ...]
    force: Array


@dataclass(frozen=True)
class Struck:
    """Result of an impact: speeds after it, the impulses (N s or N m s) of all sides, and those that approached."""

    v: Array
    impulse: Array
    hit: tuple[int, ...]


class ContactState:
    """The gaps of a system at a state, with everything that contacts need there; SI units.

    Parameters
    ----------
    base : System
        System of the run, without contacts.
    bilateral : System
        System of the present phase, without contacts.
    sides : sequence of Side
    state : State
    """

    def __init__(self, base: System, bilateral: System, sides: Sequence[Side], state: State):
        self.sides, self.state = sides, state
        self.base, self.bilateral = base, bilateral
        closed = all_closed(base)
        rows = [closed.constraint_rows.index(s.name) for s in sides]
        sign = np.array([s.sign for s in sides], float)
        self.unit = closed.row_units[rows]
        there = terms(closed, state)
        self.J = sign[:, None] * there.J[rows]
        self._phi_t, self._gamma = sign * there.phi_t[rows], sign * there.gamma[rows]
        self.gap = sign * there.phi[rows]
        self._free_motions()
        self.rate = self.J @ state.v + self._phi_t

    def _free_motions(self) -> None:
        """A basis of the motions that the other rows allow, their inertia, and accelerations without contact."""
        s, state = self.bilateral, self.state
        now, rank = terms(s, state), decide(s, state).count
        D, rows = s.speed_units, s.row_units
        U, sigma, Vt = np.linalg.svd((now.J * D) / rows[:, None], full_matrices=True)
        self.N = D[:, None] * Vt[rank:].T
        if motions_without_inertia(now.M * np.outer(D, D), Vt[rank:].T).size:
            raise SingularityError(
                f"'{s.name}' has a motion without inertia, whose accelerations no contact determines. Give the "
                "bodies that can move freely mass or inertia."
            )
        inertia = self.N.T @ now.M @ self.N
        a = D * (Vt[:rank].T @ ((U[:, :rank].T @ (now.gamma / rows)) / sigma[:rank]))
        a = a + self.N @ np.linalg.solve(inertia, self.N.T @ (now.h - now.M @ a))
        self.B = self.J @ self.N
        self.response = np.linalg.solve(inertia, self.B.T)  # of the free motions to unit impulses
        self.A = self.B @ self.response
        self.b = self.J @ a - self._gamma
        self._summed = np.abs(self.J) @ np.abs(a) + np.abs(self._gamma)  # of the terms of b
        movable = np.linalg.norm(self.B, axis=1) > HELD * np.linalg.norm(self.J * D, axis=1)
        self.held = ~movable
        self.scale = np.where(movable, 1.0 / np.sqrt(np.where(movable, np.diag(self.A), 1.0)), 0.0)
        moved = self.N.T @ now.M @ state.v
        self.twice_kinetic = float(moved @ np.linalg.solve(inertia, moved))
        fastest = float(np.abs(state.v / D).max(initial=0.0))
        pushed = float(np.sqrt(max(a @ now.M @ a, 0.0)))
        self.acceleration = pushed + np.sqrt(self.twice_kinetic) * fastest

    @property
    def slow(self) -> Array:
        """Speed of each gap below which it counts as zero."""
        falling = np.sqrt(2.0 * RESTING_HEIGHT * self.unit * np.abs(self.b))
        inverse = np.where(self.held, 0.0, np.sqrt(np.abs(np.diag(self.A))))
        found: Array = np.maximum(falling, RESTING_SPEED * inverse * np.sqrt(self.twice_kinetic))
        return found

    def with_speeds(self, v: Array) -> ContactState:
        """Everything about the gaps at this pose with other speeds."""
        state = State(self.state.t, self.state.q, v)
        return ContactState(self.base, self.bilateral, self.sides, state)

    # ------------------------------------------------------------------------------------- accelerations

    def pressing(self, closed: Sequence[int], pulled: Sequence[int] = ()) -> Pressing:
        """Closed sides that press; those that are `pulled` are not kept closed without a force."""
        self._check_held(closed)
        found = [k for k in closed if not self.held[k]]
        d = self.scale[found]
        A, b = self.A[np.ix_(found, found)] * np.outer(d, d), self.b[found] * d
        weak = WEAK * self.acceleration
        b = np.where(np.abs(b) <= weak, 0.0, b)
        z = solve_lcp(A, b)
        if z is None:
            raise LoopdynError(f"no contact forces keep {self._names(found)} closed. Check whether these stops agree.")
        w = A @ z + b
        active = [n for n in range(len(found)) if z[n] > 0.0]
        idle = [n for n in range(len(found)) if z[n] <= 0.0 and w[n] <= weak and found[n] not in pulled]
        implied: Indices = []
        for n in idle:
            rest = A[n, n] - A[n, active] @ np.linalg.solve(A[np.ix_(active, active)], A[active, n]) if active else 1.0
            (active if rest > INDEPENDENT else implied).append(n)
        force = np.zeros(len(self.sides))
        force[found] = z * d
        return Pressing(tuple(sorted(found[n] for n in active)), tuple(sorted(found[n] for n in implied)), force)

    def _check_held(self, closed: Sequence[int]) -> None:
        """Raise if the loops alone close a gap that must not close further."""
        for k in closed:
            if self.held[k] and (self.rate[k] < -self.slow[k] or self.b[k] < -HELD * self._summed[k]):
                raise LoopdynError(
                    f"{self._names([k])} is reached by a motion that is given: no force of the stop can keep it "
                    "open. Move the stop, or drive the mechanism otherwise."
                )

    def indeterminate(self, closed: Sequence[int]) -> tuple[int, ...]:
        """Closed sides whose forces depend on how the load is distributed among redundant rows."""
        found = [k for k in closed if not self.held[k]]
        if not found:
            return ()
        d = self.scale[found]
        values, vectors = np.linalg.eigh(self.A[np.ix_(found, found)] * np.outer(d, d))
        null = vectors[:, values <= INDEPENDENT]
        return tuple(k for n, k in enumerate(found) if np.abs(null[n]).max(initial=0.0) > np.sqrt(INDEPENDENT))

    # ------------------------------------------------------------------------------------------- impacts

    def stopped(self, which: Sequence[int]) -> tuple[Array, Array]:
        """Speeds at which the given independent gaps are at rest, and the impulses (of all sides) to that."""
        k = list(which)
        impulse = np.zeros(len(self.sides))
        if k:
            d = self.scale[k]
            A = self.A[np.ix_(k, k)] * np.outer(d, d)
            impulse[k] = d * np.linalg.solve(A, -self.rate[k] * d)
        return self.state.v + self.N @ (self.response @ impulse), impulse

    def simultaneous(self, closed: Sequence[int]) -> Struck:
        """Impact of all closed sides at once, by one coefficient of restitution."""
        slow = self.slow
        hit = [k for k in closed if self.rate[k] < -slow[k]]
        self._check_held(hit)
        taking = [k for k in closed if self.rate[k] <= slow[k] and not self.held[k]]
        e = self.sides[hit[0]].restitution
        d = self.scale[taking]
        r = np.where(np.abs(self.rate[taking]) <= slow[taking], 0.0, self.rate[taking])
        A = self.A[np.ix_(taking, taking)] * np.outer(d, d)
        z = solve_lcp(A, (1.0 + float(e)) * r * d)
        if z is None:
            raise LoopdynError(f"no impulses keep {self._names(taking)} from closing. Check whether these stops agree.")
        pushing = [k for n, k in enumerate(taking) if z[n] > 0.0 and k in hit]
        if len({float(self.sides[k].restitution) for k in pushing}) > 1 or any(
            self.sides[k].restitution != e for k in pushing
        ):
            raise LoopdynError(
                f"{self._names(pushing)} are hit at the same time with different restitution, for which Newton's law "
                'could gain energy. Give them one restitution, or choose impact="sequential" in the mechanism.'
            )
        impulse = np.zeros(len(self.sides))
        impulse[taking] = z * d
        return self._struck(impulse, hit)

    def sequential(self, closed: Sequence[int]) -> Struck:
        """Impacts one after another, always that of the gap that closes fastest, as in a chain of balls."""
        slow, found = self.slow, [k for k in closed if not self.held[k]]
        hit = [k for k in closed if self.rate[k] < -slow[k]]
        self._check_held(hit)
        r, impulse = self.rate.copy(), np.zeros(len(self.sides))
        for _ in range(MOST_IMPACTS):
            closing = [k for k in found if r[k] < -slow[k]]
            if not closing:
                return self._struck(impulse, hit)
            k = min(closing, key=lambda n: r[n] / self.unit[n])
            if k not in hit:
                hit.append(k)
            push = -(1.0 + float(self.sides[k].restitution)) * r[k] / self.A[k, k]
            impulse[k] += push
            r += self.A[:, k] * push
        raise LoopdynError(f'the impacts between {self._names(found)} do not end. Choose impact="simultaneous".')

    def _struck(self, impulse: Array, hit: Indices) -> Struck:
        """Result of impulses; raises if the contacts gained energy."""
        work = float(impulse @ (self.rate + 0.5 * self.A @ impulse))
        if work > GAIN * max(self.twice_kinetic, float(impulse @ self.A @ impulse)):
            raise LoopdynError(f"the impact of {self._names(hit)} would gain {work:.3g} J. Check their restitution.")
        return Struck(self.state.v + self.N @ (self.response @ impulse), impulse, tuple(hit))

    def _names(self, which: Sequence[int]) -> str:
        return ", ".join(f"'{self.sides[k].name}'" for k in which)
