"""One-sided rows: which of the closed ones press, and what impacts do to the speeds.

For the closed gaps g >= 0 of a mechanism, with N a basis of the motions that the other rows allow,

    g'' = A z + b,    A = B (N^T M N)^-1 B^T,    B = (dg/dq) N,

where b are the accelerations of the gaps without contact. Gauss's principle under g'' >= 0 is the complementarity
problem g'' >= 0, z >= 0, g'' z = 0: its solution is unique in g'' if N^T M N is positive definite, and in the forces z
of independent rows. Impacts are the same problem in impulses (Moreau): speeds of approaching gaps are reversed by
Newton's law, by their coefficients of restitution e,

    r+ = r- + A Z,    Z >= 0,    r+ + e r- >= 0,    Z (r+ + e r-) = 0.

The work of the impulses is the sum of (1 - e) Z r-/2, which is never positive, whatever the coefficients are: gaps that
open already take no part, so that no r- is positive. Rows are scaled so that the diagonal of A is
one: forces and accelerations then have one unit, which a single threshold compares.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from loopdyn.contacts.base import Side
from loopdyn.errors import LoopdynError, warn
from loopdyn.loops.complementarity import solve_lcp
from loopdyn.loops.free_motion import HELD, free_motion, rows_at
from loopdyn.system.sides import all_closed, sides_of
from loopdyn.system.system import State, System
from loopdyn.thresholds import AT_LIMIT
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


class NoContactForces(LoopdynError):
    """Accelerations that no contact forces can give: parts that jam."""


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
    """Result of an impact: speeds after it, the impulses (N s or N m s) of all sides, and those that approached.

    `work` is that of the impulses, J, never positive.
    """

    v: Array
    impulse: Array
    hit: tuple[int, ...]
    work: float


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
    closed : sequence of int, optional
        Those that may be closed: of the others gap and rate alone are known. By default all.
    """

    def __init__(
        self, base: System, bilateral: System, sides: Sequence[Side], state: State, closed: Sequence[int] | None = None
    ):
        self.sides, self.state = sides, state
        self.base, self.bilateral = base, bilateral
        self.closed = list(range(len(sides))) if closed is None else list(closed)
        self._place = {k: n for n, k in enumerate(self.closed)}
        all_, sign = all_closed(base), np.array([s.sign for s in sides], float)
        rows = np.array([all_.constraint_rows.index(s.name) for s in sides], np.int64)
        self.unit = all_.row_units[rows]
        phi, rate, J, gamma = rows_at(all_, state, rows[self.closed])
        self.gap, self.rate = sign * phi[rows], sign * rate[rows]
        own = sign[self.closed]
        self._respond(own[:, None] * J, own * gamma)

    def _respond(self, J: Array, gamma: Array) -> None:
        """Accelerations of the closed gaps without contact, and what impulses of one do to the others."""
        free, n, units = free_motion(self.bilateral, self.state), len(self.sides), self.bilateral.speed_units
        self.response = free.respond(J)
        self._A = J @ self.response
        movable = free.movable(J, self.response)
        self.b, self.inverse, self._summed = np.zeros((3, n))
        self.held, self.scale = np.zeros(n, bool), np.zeros(n)
        k, diagonal = self.closed, np.diag(self._A)
        self.b[k] = J @ free.a - gamma
        self._summed[k] = np.abs(J) @ np.abs(free.a) + np.abs(gamma)  # of the terms of b
        self.held[k] = ~movable
        self.scale[k] = np.where(movable, 1.0 / np.sqrt(np.where(movable, diagonal, 1.0)), 0.0)
        self.inverse[k] = np.where(movable, np.sqrt(np.abs(diagonal)), 0.0)
        self.twice_kinetic = free.twice_kinetic
        fastest = float(np.abs(self.state.v / units).max(initial=0.0))
        self.acceleration = free.pushed + np.sqrt(self.twice_kinetic) * fastest

    def scaled(self, which: Sequence[int]) -> tuple[Array, Array]:
        """A for some of the closed sides, with a diagonal of ones, and the factors to that."""
        n, d = [self._place[k] for k in which], self.scale[list(which)]
        return self._A[np.ix_(n, n)] * np.outer(d, d), d

    def moved(self, impulse: Array) -> Array:
        """Speeds after impulses of the closed sides."""
        found: Array = self.state.v + self.response @ impulse[self.closed]
        return found

    def work(self, impulse: Array) -> float:
        """Work of impulses of the closed sides, J."""
        Z = impulse[self.closed]
        return float(Z @ (self.rate[self.closed] + 0.5 * self._A @ Z))

    @property
    def slow(self) -> Array:
        """Speed of each gap below which it counts as zero."""
        falling = np.sqrt(2.0 * RESTING_HEIGHT * self.unit * np.abs(self.b))
        found: Array = np.maximum(falling, RESTING_SPEED * self.inverse * np.sqrt(self.twice_kinetic))
        return found

    def with_speeds(self, v: Array) -> ContactState:
        """Everything about the gaps at this pose with other speeds."""
        state = State(self.state.t, self.state.q, v)
        return ContactState(self.base, self.bilateral, self.sides, state, self.closed)

    # ------------------------------------------------------------------------------------- accelerations

    def pressing(self, closed: Sequence[int], pulled: Sequence[int] = ()) -> Pressing:
        """Closed sides that press; those that are `pulled` are not kept closed without a force."""
        self.check_held(closed)
        found = [k for k in closed if not self.held[k]]
        A, d = self.scaled(found)
        b = self.b[found] * d
        weak = WEAK * self.acceleration
        b = np.where(np.abs(b) <= weak, 0.0, b)
        z = solve_lcp(A, b)
        if z is None:
            raise NoContactForces(
                f"no contact forces keep {self._names(found)} closed. Check whether these stops agree."
            )
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

    def check_held(self, closed: Sequence[int]) -> None:
        """Raise if the loops alone close a gap that must not close further."""
        for k in closed:
            if self.held[k] and (self.rate[k] < -self.slow[k] or self.b[k] < -HELD * self._summed[k]):
                raise LoopdynError(
                    f"{self._names([k])} is reached by a motion that is given: no force of the stop can keep it "
                    "open. Move the stop, or drive the mechanism otherwise."
                )

    def pulled(self, rows: Sequence[int], least: float) -> list[int]:
        """Sides, closed as rows, whose force would pull by `least` or more, mass metric.

        Forces of rows that depend on each other are not unique: complementarity alone decides on them.
        """
        found = [k for k in rows if not self.held[k]]
        A, d = self.scaled(found)
        if not found or float(np.linalg.eigvalsh(A)[0]) <= INDEPENDENT:
            return []
        z = np.linalg.solve(A, -self.b[found] * d)
        return [k for k, force in zip(found, z.tolist(), strict=True) if force <= -least]

    def indeterminate(self, closed: Sequence[int]) -> tuple[int, ...]:
        """Closed sides whose forces depend on how the load is distributed among redundant rows."""
        found = [k for k in closed if not self.held[k]]
        if not found:
            return ()
        values, vectors = np.linalg.eigh(self.scaled(found)[0])
        null = vectors[:, values <= INDEPENDENT]
        return tuple(k for n, k in enumerate(found) if np.abs(null[n]).max(initial=0.0) > np.sqrt(INDEPENDENT))

    # ------------------------------------------------------------------------------------------- impacts

    def stopped(self, which: Sequence[int]) -> tuple[Array, Array]:
        """Speeds at which the given independent gaps are at rest, and the impulses (of all sides) to that."""
        k = list(which)
        impulse = np.zeros(len(self.sides))
        if k:
            A, d = self.scaled(k)
            impulse[k] = d * np.linalg.solve(A, -self.rate[k] * d)
        return self.moved(impulse), impulse

    def simultaneous(self, closed: Sequence[int]) -> Struck:
        """Impact of all closed sides at once, each by its coefficient of restitution."""
        slow = self.slow
        hit = [k for k in closed if self.rate[k] < -slow[k]]
        self.check_held(hit)
        taking = [k for k in closed if self.rate[k] <= slow[k] and not self.held[k]]
        e = np.array([float(self.sides[k].restitution) for k in taking])
        A, d = self.scaled(taking)
        r = np.where(np.abs(self.rate[taking]) <= slow[taking], 0.0, self.rate[taking])
        z = solve_lcp(A, (1.0 + e) * r * d)
        if z is None:
            raise LoopdynError(f"no impulses keep {self._names(taking)} from closing. Check whether these stops agree.")
        impulse = np.zeros(len(self.sides))
        impulse[taking] = z * d
        return self._struck(impulse, hit)

    def sequential(self, closed: Sequence[int]) -> Struck:
        """Impacts one after another, always that of the gap that closes fastest, as in a chain of balls."""
        slow, found = self.slow, [k for k in closed if not self.held[k]]
        hit = [k for k in closed if self.rate[k] < -slow[k]]
        self.check_held(hit)
        r, impulse = self.rate.copy(), np.zeros(len(self.sides))
        for _ in range(MOST_IMPACTS):
            closing = [k for k in found if r[k] < -slow[k]]
            if not closing:
                return self._struck(impulse, hit)
            k = min(closing, key=lambda n: r[n] / self.unit[n])
            if k not in hit:
                hit.append(k)
            n = self._place[k]
            push = -(1.0 + float(self.sides[k].restitution)) * r[k] / self._A[n, n]
            impulse[k] += push
            r[self.closed] += self._A[:, n] * push
        raise LoopdynError(f'the impacts between {self._names(found)} do not end. Choose impact="simultaneous".')

    def _struck(self, impulse: Array, hit: Indices) -> Struck:
        """Result of impulses; raises if the contacts gained energy."""
        work, Z = self.work(impulse), impulse[self.closed]
        if work > GAIN * max(self.twice_kinetic, float(Z @ self._A @ Z)):
            raise LoopdynError(f"the impact of {self._names(hit)} would gain {work:.3g} J. Check their restitution.")
        return Struck(self.moved(impulse), impulse, tuple(hit), work)

    def _names(self, which: Sequence[int]) -> str:
        return ", ".join(f"'{self.sides[k].name}'" for k in which)
