"""Passages of a run through singular poses: momentum steps take over, and the regular method goes on behind them.

Near a singular pose accelerations are found with fewer and fewer digits, and forces may grow without bound. Momentum
steps need neither: the reactions over a step are those that close the joints at its end.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loopdyn.analysis.mobility import second_order
from loopdyn.errors import SingularityError
from loopdyn.formulations.base import SingularityMonitor
from loopdyn.integrators import chart
from loopdyn.integrators.base import Extrapolation, Stepper
from loopdyn.integrators.walking import LANDING, Crossed
from loopdyn.loops.rank import is_large, scaled
from loopdyn.loops.reactions import LOST, Reactions, impulses
from loopdyn.run.locking import impulse_as_data, impulse_of
from loopdyn.system.system import State, System
from loopdyn.tree.functions import energy, terms

Array = NDArray[np.float64]

# A passage is over where the indicator rises, is above this share of the largest so far, as large as at the entry or
# above ENOUGH, and would have been zero at least BEHIND steps of the regular method ago; or where it is above FAR.
RISEN, ENOUGH, BEHIND, FAR = 0.02, 0.2, 2.0, 0.5
TOUCHED = (
    LANDING  # share of the farthest indicator, below which a passage that does not cross a pose begins or ends in it
)
# Share of the largest singular value, below which one is zero: the pose is singular; and share of the fastest speed, by
# which speeds there may differ from those of a branch.
ZERO, ALONG = 1e-7, 1e-6
RELAXED = 100.0  # times the tolerances, where rounding leaves them out of reach
COLLAPSED = 1e3  # shortest possible steps, below which the size of a step tells nothing


@dataclass(frozen=True)
class Passage:
    """A part of a run beside or through a singular pose.

    Attributes
    ----------
    start, stop : float
        Times in s.
    through : bool
        Whether the mechanism went by the pose, or through it, by momentum steps; if not, two circuits of the mechanism
        come close to each other without meeting, and it stayed on its own, by small regular steps.
    poses : tuple of float
        When it went through singular poses, s, each known to within 1e-5 rad or sizes of the mechanism.
    indicator : float
        Smallest length of a constraint row beyond the others at the ends of its steps, as a share of the largest of
        the run: zero in a singular pose.
    relaxed : float
        Times the tolerances of the run that were used; more than one where rounding left those out of reach.
    steps : int
    energy_jump : float
        Energy at its end less that at its start and the work done, J.
    impulses : Reactions, optional
        Of all joints and constraints over the momentum steps, N m s and N s; none where only regular steps were made.
        Components in the direction in which forces are unbounded are not unique: they depend on where the steps end.
    branches : tuple of (nv,) arrays
        Speeds along the branches that meet in the pose, the fastest one being 1 rad/s or size of the mechanism per s;
        empty where they are not known: they are found where one row is lost and the mechanism has one freedom.
    """

    start: float
    stop: float
    through: bool
    poses: tuple[float, ...]
    indicator: float
    relaxed: float
    steps: int
    energy_jump: float
    branches: tuple[Array, ...] = field(default=(), repr=False)
    impulses: Reactions | None = field(default=None, repr=False)

    @property
    def crossed(self) -> bool:
        """Whether a step ended on the other side of a singular pose."""
        return bool(self.poses)

    @property
    def unbounded(self) -> bool:
        """Whether forces may grow without bound in it: it goes through a singular pose, or begins or ends in one."""
        return self.crossed or self.indicator < TOUCHED

    def as_data(self) -> dict[str, Any]:
        """Plain numbers, for files."""
        branches = [b.tolist() for b in self.branches]
        return {**asdict(self), "branches": branches, "impulses": impulse_as_data(self.impulses)}

    def __str__(self) -> str:
        """One line."""
        kind = "momentum" if self.through else "small"
        when = ", ".join(f"{t:.6g}" for t in self.poses)
        if self.crossed:
            what = f"passage of {'singular poses' if len(self.poses) > 1 else 'a singular pose'} at t = {when} s by"
        elif not self.through:
            what = "near miss of a singular pose, followed by"
        elif self.unbounded:
            what = "way out of or into a singular pose by"
        else:
            what = "pose that is nearly singular, passed by"
        met = f", {len(self.branches)} branches meet there" if self.branches else ""
        relaxed = f", tolerances times {self.relaxed:g}" if self.relaxed > 1.0 else ""
        return (
            f"{what} {self.steps} {kind} steps until t = {self.stop:.6g} s; indicator down to {self.indicator:.1e}, "
            f"energy changed by {self.energy_jump:.1e} J{relaxed}{met}"
        )


def passage_of(data: dict[str, Any]) -> Passage:
    """The passage of :meth:`Passage.as_data`."""
    known = {f.name: data[f.name] for f in fields(Passage) if f.name in data}
    branches, poses = tuple(np.array(b) for b in data["branches"]), tuple(data.get("poses", ()))
    return Passage(**{**known, "branches": branches, "poses": poses, "impulses": impulse_of(data.get("impulses"))})


def tangents(system: System, pose: State, rank: int) -> tuple[Array, ...]:
    """Speeds along the branches that meet in a singular pose; none for large systems, or where more rows are lost.

    With U0 the dependency of the rows and N the two motions that they allow to first order, the branches are those x of
    N for which the form U0^T phi''(x, x) vanishes.
    """
    if is_large(system):
        return ()
    units = system.speed_units
    U, s, Vt = np.linalg.svd(scaled(system, terms(system, pose).J))
    lost = int(np.count_nonzero(s[:rank] < LOST * s[0]))
    N = units[:, None] * Vt[rank - lost :].T
    if lost != 1 or N.shape[1] != 2:
        return ()
    ((a, b), (_, c)) = second_order(system, pose, U[:, rank - 1 : rank], N)[0]
    root = b * b - a * c
    if root <= 0.0:
        return ()  # an isolated pose, or branches that touch
    # of a x^2 + 2 b x y + c y^2 = 0 without a small difference
    largest = -(b + np.copysign(np.sqrt(root), b))
    found = [N @ np.array(x) for x in ((largest, a), (c, largest))]
    return tuple(v / np.abs(v / units).max() for v in found)


def require_branch(system: System, state: State, rank: int, inexact: float = 0.0) -> None:
    """Refuse speeds in a singular pose that are along none of its branches; not in large systems.

    Along a branch there are accelerations with J a = gamma, though of the rows fewer than `rank` are independent.
    Speeds may be `inexact` by this share of the fastest.

    Raises
    ------
    SingularityError
        With the branches, where they are found.
    """
    if is_large(system) or not system.nc:
        return
    now, fastest = terms(system, state), float(np.abs(state.v / system.speed_units).max(initial=0.0))
    U, s, _ = np.linalg.svd(scaled(system, now.J))
    here = int(np.count_nonzero(s > ZERO * s[0]))
    wrong = float(np.abs(U[:, here:].T @ (now.gamma / system.row_units)).max(initial=0.0))
    if here >= rank or (fastest > 0.0 and wrong <= max(ALONG, inexact) * fastest**2):
        return
    found = [
        ", ".join(f"{label} {x:.6g}" for label, x in zip(system.speeds, branch, strict=True))
        for branch in tangents(system, state, rank)
    ]
    known = f" ({'; '.join(found)})" if found else ""
    what = "at rest" if fastest == 0.0 else "moves along none of its branches"
    raise SingularityError(
        f"'{system.name}' is in a singular pose at t = {state.t:g} s and {what}: where it goes is not determined. "
        f"Give it speeds along one of its branches{known}, or start beside the pose."
    )


class Crossing:
    """A passage in the making: the regular stepper it came from, and the one that makes its steps.

    Parameters
    ----------
    regular : Stepper
        It has stopped at the start of a step that it should not take.
    monitor : SingularityMonitor
        Of its solver.
    start : State, optional
        The start of the run, or where it begins anew, if it could not even begin there.
    works : array, optional
        Those until then.
    largest : float
        Indicator so far, where it is known.
    """

    def __init__(
        self,
        regular: Stepper,
        monitor: SingularityMonitor,
        start: State | None = None,
        works: Array | None = None,
        largest: float = 0.0,
    ):
        m, nv = regular.memory, regular.system.nv
        self.regular, self.monitor = regular, monitor
        if m.count[chart.PENDING] == 1:  # the step is not taken
            m.count[chart.PENDING] = 0
            m.count[chart.ACCEPTED] -= 1
        self.size = float(m.clock[chart.SIZE])  # of the step that was not taken
        here = State(float(m.clock[chart.START]), regular.unwrapped(m.q), m.y[nv : 2 * nv].copy())
        self.start = here if start is None else start
        self.works = m.y[2 * nv :].copy() if works is None else works
        self.steps = int(m.count[chart.ACCEPTED])
        self.through, self.relaxed = True, 1.0
        self.stepper = self._by_momentum(regular, self.start, self.works)
        self.stepper.walker.hands_over = True
        if start is None and self.size > COLLAPSED * float(m.clock[chart.LEAST]):
            self.stepper.memory.clock[chart.NEXT] = self.size
        self.entry = self.last = self.smallest = self._indicator(self.start)
        # the largest of the run is known to the regular solver, in its own measure
        self.largest = max(largest, self.entry / self.monitor.indicator)
        self.stepper.walker.farthest = self.largest
        self.time = self.start.t
        self.path = [self.start]  # ends of the momentum steps
        self.ended, self.reached, self.done = False, self.start, self.works  # state and works where it ended
        self.branches: tuple[Array, ...] = ()
        self.across: list[Crossed] = []  # momentum steps through singular poses
        self.meets = False  # whether small regular steps came to a singular pose: it is no near miss

    def _indicator(self, state: State) -> float:
        return self.monitor.momentum.begin(state.t, state.q, state.v)

    def _by_momentum(self, here: Stepper, state: State, works: Array) -> Stepper:
        """Momentum steps from a state on."""
        stepper = here.with_solver(self.monitor.momentum, Extrapolation())
        stepper.start(state, float(here.memory.clock[chart.END]), works)
        return stepper

    def _start_of_step(self) -> tuple[State, Array]:
        """Where the step begins that is made now, and the works until there."""
        m, nv = self.stepper.memory, self.stepper.system.nv
        state = State(float(m.clock[chart.START]), self.stepper.unwrapped(m.q), m.y[nv : 2 * nv].copy())
        return state, m.y[2 * nv :].copy()

    def change(self) -> Stepper:
        """Go on by small regular steps: it seems that two circuits come close here and do not meet.

        Where that cannot be, since the pose is singular, begin once more with a larger tolerance.
        """
        m = self.stepper.memory
        self.across = [c for c in self.stepper.walker.crossed if c.stop.t <= m.clock[chart.START]]
        if m.count[chart.PENDING] == 1:  # the last step is taken back
            m.count[[chart.PENDING, chart.ACCEPTED]] -= 1
            m.count[chart.REJECTED] += 1
        try:
            self.stepper = self._regular_at(*self._start_of_step())
            self.through = False
        except SingularityError:
            self._begin_again()
        return self.stepper

    def _begin_again(self) -> None:
        """Momentum steps from the entry on, with a larger tolerance: rounding left the given one out of reach."""
        before = self.stepper.memory
        self.through, self.relaxed = True, RELAXED
        self.stepper = self._by_momentum(self.regular, self.start, self.works)
        m = self.stepper.memory
        m.clock[[chart.RTOL, chart.ATOL]] *= RELAXED
        m.count[chart.REJECTED] = before.count[chart.REJECTED] + before.count[chart.ACCEPTED] - self.steps
        self.stepper.walker.farthest = self.largest
        self.last = self.smallest = self.entry
        self.time, self.path, self.across = self.start.t, [self.start], []

    def _regular_at(self, state: State, works: Array) -> Stepper:
        here = self.stepper
        after = here.with_solver(self.regular.solver, self.regular.integrator)
        tolerances = [chart.RTOL, chart.ATOL]  # those of the run, also where the passage was made with larger ones
        after.memory.clock[tolerances] = self.regular.memory.clock[tolerances]
        self.monitor.restart()
        after.start(state, float(here.memory.clock[chart.END]), works)
        return after

    def must_be_undone(self) -> bool:
        """Whether the last regular step of a near miss led to the other circuit, or turned so far that it may have.

        Or into a singular pose: then it is no near miss.
        """
        if self.through:
            return False
        self.monitor.restart()
        m, nv, momentum = self.stepper.memory, self.stepper.system.nv, self.monitor.momentum
        momentum.begin(float(m.clock[chart.START]), m.q, m.y[nv : 2 * nv])
        end = momentum.look(self.stepper.t, m.q1, m.v1)
        self.meets = bool(momentum.indicator_at(end) < LANDING * self.largest)
        return self.meets or not momentum.stays(end)

    def undo(self) -> Stepper:
        """Begin the last step, taken or not, again with half its size, by rows that are chosen where it begins."""
        m = self.stepper.memory
        size, (state, works) = float(m.clock[chart.SIZE]), self._start_of_step()
        m.count[chart.ACCEPTED] -= m.count[chart.PENDING]
        m.count[chart.REJECTED] += 1
        if self.meets or 0.5 * size < m.clock[chart.LEAST] or not self._starts_anew(state, works):
            self._begin_again()
        else:
            m.clock[chart.NEXT] = 0.5 * size
        return self.stepper

    def _starts_anew(self, state: State, works: Array) -> bool:
        """Prepare the regular solver at a state, with whose pivots others are then compared; False where singular."""
        w, m = self.stepper.views, self.stepper.memory
        w.t[0], w.q[:], w.v[:] = state.t, m.q, state.v
        try:
            self.stepper.again()
            self.monitor.restart()
            self.stepper.start(state, float(m.clock[chart.END]), works)
        except SingularityError:
            return False
        return True

    def is_over(self) -> bool:
        """Look at the step that was taken last."""
        state = self.stepper.state()
        s, h = self._indicator(state), state.t - self.time
        self.smallest = min(self.smallest, s)
        if self.through:
            walker = self.stepper.walker
            self.smallest = min(self.smallest, walker.nearest)
            self.path.append(state)
            self.across = list(walker.crossed)
            if self.across and not self.branches:
                self.branches = tangents(self.stepper.system, self.across[-1].poses[0], self.stepper.rank)
        rate = (s - self.last) / h if h > 0.0 else 0.0
        self.last, self.time, self.largest = s, state.t, max(self.largest, s)
        if rate <= 0.0:
            return False
        risen = s > RISEN * self.largest and s >= min(self.entry, ENOUGH * self.largest)
        return (risen and s > BEHIND * rate * self.size) or s > FAR * self.largest

    def leave(self) -> Stepper:
        """The regular stepper, started where the passage ends."""
        return self._regular_at(self.stepper.state(), self.stepper.memory.new[2 * self.stepper.system.nv :].copy())

    def end_at(self, state: State, works: Array) -> None:
        """Let it end inside the last step: something happens there."""
        self.ended, self.reached, self.done = True, state, works
        if self.through:
            self.path = [s for s in self.path if s.t < state.t] + [state]
            self.across = [c for c in self.stepper.walker.crossed if c.poses[0].t <= state.t]
            momentum = self.monitor.momentum
            there = momentum.look(state.t, state.q, state.v)
            self.smallest = min(self.smallest, momentum.indicator_at(there))

    def passage(self) -> Passage:
        """What happened."""
        here = self.stepper
        m, nv = here.memory, here.system.nv
        if not self.ended:  # it does with the last step
            self.end_at(here.state(), (m.new if m.count[chart.PENDING] == 1 else m.y)[2 * nv :].copy())
        now, works = self.reached, self.done
        before, after = (moving_energy(here.system, state) for state in (self.start, now))
        jump = after - before - float((works - self.works).sum())
        steps = int(m.count[chart.ACCEPTED]) - self.steps
        share = self.smallest / self.largest
        return Passage(
            self.start.t,
            now.t,
            self.through,
            tuple(pose.t for c in self.across for pose in c.poses if pose.t <= now.t),
            share,
            self.relaxed,
            steps,
            jump,
            self.branches,
            self._impulses(),
        )

    def _impulses(self) -> Reactions | None:
        if len(self.path) < 2 or not (self.through or self.across):
            return None
        return impulses(self.stepper.system, self.path, [pose for c in self.across for pose in c.poses])


def passage_by_one_step(system: System, made: Crossed, rank: int) -> Passage:
    """A step of `momentum` alone that went through a singular pose."""
    jump = moving_energy(system, made.stop) - moving_energy(system, made.start) - made.work
    branches = tangents(system, made.poses[0], rank)
    times = made.start.t, made.stop.t
    of_joints = impulses(system, (made.start, made.stop), made.poses)
    poses = tuple(pose.t for pose in made.poses)
    return Passage(*times, True, poses, made.indicator, 1.0, 1, jump, branches, of_joints)


def moving_energy(system: System, state: State) -> float:
    """Kinetic energy and that of gravity, J: what works of forces change."""
    found = energy(system, state)
    return found.kinetic + found.gravity
