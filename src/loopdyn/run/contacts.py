"""Contacts in a run: which sides are closed, when that changes, and what impacts do.

Between changes the closed sides are ordinary constraint rows of the present phase (:mod:`loopdyn.run.locking`).
Two kinds of events end it: an open gap closes, or the force of a closed side would have to pull. Then, in one place,
impacts are computed, and the complementarity problem of accelerations (:mod:`loopdyn.loops.one_sided`) decides which
sides are closed from then on. Sequences of ever shorter rebounds end where a rebound would rise no higher than 1e-12 of
the natural unit of the gap: the side rests from then on, its energy is booked, and the event has the time at which the
sequence ends, by the geometric series of its flights.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loopdyn.analysis.reconnect import impulses_between
from loopdyn.contacts.base import Side
from loopdyn.errors import LoopdynError
from loopdyn.formulations.base import Solver
from loopdyn.integrators.dependence import depends_on_time
from loopdyn.integrators.gap_rows import GapRows, gap_rows, measure, rows_of, some
from loopdyn.loops.one_sided import PULLED, ContactState, NoContactForces, Pressing, Struck, gaps
from loopdyn.run.contact_ends import edge_at, ends_of
from loopdyn.run.events import TINY, Crossing, Watched
from loopdyn.run.locking import Impulses, Phase, compiled
from loopdyn.run.recorder import Journal, Recorder
from loopdyn.system.sides import all_closed, sides_of
from loopdyn.system.system import State, System
from loopdyn.thresholds import AT_LIMIT
from loopdyn.tree.functions import energy

Array = NDArray[np.float64]

IMPACTS = 100  # most impacts of all closed sides one after another at one time
CHANGES = 100  # most changes of the closed sides at one time
MANY, CROWDED = 20, 50  # sides closed at once that are many; most changes with so many of them in a run
UNNOTICED = 1e-6  # natural units by which a gap may close before a run that did not notice it ends
IMPLIED = 1e-8  # natural units by which the gap of an implied side may close before contacts are decided again


class Unsettled(LoopdynError):
    """Contacts that do not settle one after another at a time."""

    def __init__(self, why: str):
        super().__init__(f"{why}. Let contacts act in momentum steps: formulation='momentum', Moreau(step=...).")
        self.why = why


@dataclass(frozen=True)
class Note:
    """An event of contacts, to be recorded."""

    kind: str
    name: str
    t: float
    loss: float = 0.0  # J
    impulse: Impulses = None


@dataclass(frozen=True)
class Reaction:
    """Change by contacts at a state: the state after it, the phase from then on, and events."""

    after: State
    phase: Phase
    new_phase: bool
    given: float  # J, work of drivers and moving bases in impacts
    notes: list[Note] = field(default_factory=list)


class Contacts:
    """The contacts of a run.

    Parameters
    ----------
    base : System
        System of the run.
    adapt : callable
        Gives the function that writes the inputs of a simulation into a system.
    """

    def __init__(self, base: System, adapt: Callable[[], Callable[[System], None]]):
        self.base, self.adapt = base, adapt
        self.sides: tuple[Side, ...] = sides_of(base)
        self._unit, self._sign = np.zeros(0), np.zeros(0)
        self._dimensions: list[str] = []
        if self.sides:
            closed = all_closed(base)
            rows = [closed.constraint_rows.index(s.name) for s in self.sides]
            self._unit, self._dimensions = closed.row_units[rows], [closed.row_dimensions[k] for k in rows]
            self._sign = np.array([s.sign for s in self.sides], float)
            corners = [s.corners for s in self.sides]
            self._gaps = gap_rows(closed, np.array(rows), self._sign / self._unit, corners)
            self._rows = rows_of(self._gaps)
            self._compiled = np.array(rows) < closed.nc - int(closed.model.n_user)  # rows of users are in Python
        self._forces: _Forces | None = None
        self._open: list[tuple[int, Watched]] = []  # sides that are not closed, and their gaps as event functions
        self._ends: list[tuple[int, Watched]] = []  # closed sides, and where their edges end
        self._changed_at, self._changes = np.nan, 0
        self.close = False  # whether an open gap was not larger than rounding at the end of the last step
        self.in_steps = False  # whether contacts act inside momentum steps: they are no events then
        self.crowded = 0  # changes with many closed sides

    def __bool__(self) -> bool:
        return bool(self.sides) and not self.in_steps

    def leave_to_steps(self) -> None:
        """Let contacts act inside momentum steps from now on."""
        self.in_steps, self.close, self._forces, self._open, self._ends = True, False, None, [], []

    # ---------------------------------------------------------------------------------------- what is watched

    def gaps(self, state: State) -> tuple[Array, Array]:
        """Gaps of all sides and their rates, natural units."""
        gap, rate = np.zeros((2, len(self.sides)))
        measure(self._gaps, self._rows, state.t, state.q, state.v, gap, rate)
        if self._compiled.all() and (np.isfinite(gap) & np.isfinite(rate)).all():
            return gap, rate
        gap, rate = gaps(self.base, state)  # raises, and names the row, where it is not defined
        return gap / self._unit, rate / self._unit

    def watched(self, phase: Phase, solver: Callable[[], Solver], state: State) -> list[Watched]:
        """Event functions in a phase that begins at a state: open gaps, and the smallest force of closed sides."""
        self._forces, self._open = None, []
        closed = [k for k, side in enumerate(self.sides) if side.name in phase.touching]
        for k, side in enumerate(self.sides):
            if k in closed:
                continue
            given = Crossing(partial(self._value, k, self._margin(phase, side)), f"{side.name} closes", direction=-1)
            self._open.append((k, Watched(given, kind="contact", contact=True, gap=bool(self._compiled[k]))))
        found = [w for _, w in self._open]
        self._ends = []
        for k in closed:
            ends = ends_of(self.base, self.sides[k], phase.edges.get(self.sides[k].name, -1))
            if ends is not None:
                left = Crossing(ends, f"{self.sides[k].name} ends", direction=-1)
                self._ends.append((k, Watched(left, kind="separation", contact=True)))
        found += [w for _, w in self._ends]
        self.hold(state)
        if closed:
            at = self._at(phase, state, closed)
            names = list(phase.system.constraint_rows)
            rows = [names.index(self.sides[k].name) for k in closed]
            d = np.where(at.held[closed], 0.0, 1.0 / np.where(at.scale > 0.0, at.scale, 1.0)[closed])
            self._forces = _Forces(solver(), closed, rows, self._sign[closed] * d, PULLED * at.acceleration)
            pulls = Crossing(self._forces, "contact opens", direction=-1)
            found.append(Watched(pulls, kind="separation", contact=True))
        return found

    def hold(self, state: State) -> None:
        """Take gaps that are zero up to rounding for open at a state at which the integration restarts."""
        gap = self.gaps(state)[0]
        self.close = any(gap[k] <= AT_LIMIT for k, _ in self._open)
        for k, watched in self._open:
            if abs(gap[k]) <= AT_LIMIT:
                watched.hold(state.t, TINY)

    @cached_property
    def _time_in_laws(self) -> bool:
        return depends_on_time(self.base)

    @property
    def depend_on_time(self) -> bool:
        """Whether sides are closed whose forces may change although nothing moves."""
        return self._forces is not None and self._time_in_laws

    @property
    def solvers(self) -> list[Solver]:
        """The solver that tells the forces of closed sides, if there are any: inputs must reach it."""
        return [] if self._forces is None else [self._forces.solve]

    def open_gaps(self, phase: Phase) -> GapRows | None:
        """Gaps of the sides that are watched, for compiled steps."""
        which = [k for k, watched in self._open if watched.gap]
        margin = [self._margin(phase, self.sides[k]) for k in which]
        return some(self._gaps, np.array(which), np.array(margin)) if which else None

    @staticmethod
    def _margin(phase: Phase, side: Side) -> float:
        return IMPLIED if side.name in phase.implied else 0.0

    def _value(self, k: int, margin: float, t: float, q: Array, v: Array) -> float:
        return float(self.gaps(State(t, q, v))[0][k]) + margin

    def _at(self, phase: Phase, state: State, closed: Sequence[int]) -> ContactState:
        """Everything about the gaps at a state of a phase, of which some are closed."""
        adapt = self.adapt()
        free = compiled(self.base, replace(phase, touching=(), implied=(), indeterminate=()), adapt).system
        adapt(free)  # the inputs of a simulation are in the system of the present phase alone
        return ContactState(self.base, free, self.sides, state, closed)

    # ------------------------------------------------------------------------------------------- reactions

    def start(self, state: State) -> None:
        """Raise if a run starts beyond a stop."""
        gap, _ = self.gaps(state)
        for k in np.flatnonzero(gap < -AT_LIMIT).tolist():
            of, units = self._dimensions[k], self.base.units
            depth = f"{-gap[k] * self._unit[k] / units.factor(of):.3g} {units.symbol(of)}"
            raise LoopdynError(
                f"contact '{self.sides[k].element}': the start is beyond it, by {depth}. Start at a pose inside: "
                "ld.assemble(system, near=state) gives the nearest one; or give other start values, or another bound."
            )

    def overdue(self, state: State) -> bool:
        """Whether a gap closes beyond zero, or a force pulls, at the end of a step in which no event was found."""
        gap, rate = self.gaps(state)
        self.close = any(gap[k] <= AT_LIMIT for k, _ in self._open)
        deep = [k for k, _ in self._open if gap[k] < -UNNOTICED]
        if deep:
            raise self._unnoticed(deep[0], gap[deep[0]])
        beyond = any(gap[k] < -AT_LIMIT and rate[k] < 0.0 for k, _ in self._open)
        return beyond or self.pulls(state)

    def pulls(self, state: State) -> bool:
        """Whether the force of a closed side would have to pull at a state."""
        return self._forces is not None and self._forces(state.t, state.q, state.v) < 0.0

    def check_outputs(self, recorder: Recorder) -> None:
        """Raise if a new output of several compiled steps is beyond a stop; outputs from there on are removed.

        Compiled steps see gaps that are closed at their ends. Inside them stops of coordinates of the tree are checked
        here, which costs next to nothing.
        """
        path = recorder.path(recorder.checked)
        for k, _ in self._open:
            side = self.sides[k]
            if side.coordinate in self.base.coordinates:
                x = path.q[:, self.base.coordinates.index(side.coordinate)]
                bound = float(side.bound) * self.base.labels.factor(side.coordinate)
                gap = side.sign * (x - bound) / self._unit[k]
                beyond = np.flatnonzero(gap < -UNNOTICED)
                if beyond.size:
                    recorder.keep(recorder.checked + int(beyond[0]))
                    raise self._unnoticed(k, float(gap[beyond[0]]))

    def _unnoticed(self, k: int, gap: float) -> LoopdynError:
        return LoopdynError(
            f"'{self.sides[k].name}' was passed unnoticed inside a step, by {-gap:.2g} in natural units. Use shorter "
            "steps: ld.integrators.DOP853(longest=...)."
        )

    def react(self, phase: Phase, state: State, met: Watched | None = None, stays: bool = False) -> Reaction | None:
        """Impacts and changes of the closed sides at a state; None if nothing changes.

        The gap that was `met` there is closed, whatever rounding says. If it `stays` closed, its rebound does not rise
        above the rounding by which it is below zero: it is at rest.
        """
        gap, _ = self.gaps(state)
        reached = [k for k, w in self._open if w is met]
        ended = [k for k, w in self._ends if w is met]
        kept = {*phase.touching, *phase.implied, *(self.sides[k].name for k in reached)}
        closed = [k for k, side in enumerate(self.sides) if gap[k] <= AT_LIMIT or side.name in kept]
        closed = [k for k in closed if k not in ended and not edge_at(self.base, self.sides[k], state)[1]]
        if not (closed or ended):
            return None
        self._count(state)
        at = self._at(phase, state, closed)
        f = self._forces
        pulled = [] if f is None else at.pulled([k for k in f.closed if k in closed], 0.5 * f.pull)
        after, struck = self._impacts(at, closed)
        at = after
        slow = [k for k in closed if at.rate[k] <= at.slow[k] or (stays and k in reached and _falls_back(at, k))]
        try:
            pressing = at.pressing(slow, pulled if not struck else ())
        except NoContactForces as error:
            raise Unsettled(str(error).partition(". ")[0]) from error
        at, settled = self._settled(at, pressing)
        following = self._phase_of(phase, at, pressing)
        names = tuple((f.touching, f.implied) for f in (phase, following))
        if not struck and names[0] == names[1] and not settled.any():
            return None
        self.crowded += len(closed) >= MANY
        if self.crowded > CROWDED:
            raise Unsettled(f"{len(closed)} contacts and more keep changing at t = {state.t:.9g} s")
        notes = self._impact_notes(phase, state, at.state, struck) if struck else []
        notes += self._changes_of(phase, following, after, pressing)
        given = sum(x.work for x in struck)
        given = energy(self.base, after.state).kinetic - energy(self.base, state).kinetic - given if struck else 0.0
        return Reaction(at.state, following, names[0] != names[1], given, notes)

    def _count(self, state: State) -> None:
        """Raise if contacts change again and again at one time."""
        self._changes = self._changes + 1 if state.t == self._changed_at else 0
        self._changed_at = state.t
        if self._changes > CHANGES:
            raise Unsettled(f"contacts change more than {CHANGES} times at t = {state.t:.9g} s")

    def _impacts(self, at: ContactState, closed: list[int]) -> tuple[ContactState, list[Struck]]:
        """Impacts of closed sides until no gap closes, and the state after them."""
        found: list[Struck] = []
        for _ in range(IMPACTS):
            if not any(at.rate[k] < -at.slow[k] for k in closed):
                return at, found
            sequential = self.base.mechanism.impact == "sequential"
            struck = at.sequential(closed) if sequential else at.simultaneous(closed)
            found.append(struck)
            at = at.with_speeds(struck.v)
        raise Unsettled(f"more than {IMPACTS} impacts at t = {at.state.t:.9g} s do not separate the parts")

    @staticmethod
    def _settled(at: ContactState, pressing: Pressing) -> tuple[ContactState, Array]:
        """The speeds at which active sides are at rest, and the impulses to that; zero where they already are."""
        moving = [k for k in pressing.active if at.rate[k] != 0.0]
        if not moving:
            return at, np.zeros(len(at.sides))
        v, impulse = at.stopped(pressing.active)
        known = np.abs(at.rate) <= at.slow * 1e-3
        if all(known[k] for k in moving):  # rounding, which the correction of drift removes
            return at, np.zeros(len(at.sides))
        return at.with_speeds(v), impulse

    def _phase_of(self, phase: Phase, at: ContactState, pressing: Pressing) -> Phase:
        def names(which: Sequence[int]) -> tuple[str, ...]:
            return tuple(self.sides[k].name for k in which)

        closed = (*pressing.active, *pressing.implied)
        touching = {k: self.sides[k].name for k in pressing.active}
        edges = {
            name: phase.edges[name] if name in phase.edges else edge_at(self.base, self.sides[k], at.state)[0]
            for k, name in touching.items()
        }
        return replace(
            phase,
            touching=names(pressing.active),
            implied=names(pressing.implied),
            indeterminate=names(at.indeterminate(closed)) if pressing.implied else (),
            edges={name: edge for name, edge in edges.items() if edge >= 0},
        )

    # ---------------------------------------------------------------------------------------------- events

    def _impact_notes(self, phase: Phase, before: State, after: State, struck: Sequence[Struck]) -> list[Note]:
        """One event for all impacts at a time, with the impulses of all joints."""
        pushing = tuple(s.name for k, s in enumerate(self.sides) if any(x.impulse[k] > 0.0 for x in struck))
        hit = dict.fromkeys(self.sides[k].name for x in struck for k in x.hit)
        impulse = partial(self._impulse, phase, pushing, before, after)
        return [Note("impact", f"{', '.join(hit)}: impact", before.t, impulse=impulse)]

    def _impulse(self, phase: Phase, pushing: tuple[str, ...], before: State, after: State) -> Any:
        """Impulses of all joints and contacts between two states of a pose."""
        held = replace(phase, touching=pushing, implied=(), indeterminate=())
        system = compiled(self.base, held, self.adapt()).system
        return impulses_between(phase.system, before, system, after)

    def _changes_of(self, phase: Phase, following: Phase, at: ContactState, pressing: Pressing) -> list[Note]:
        """Events of sides that close for some time, or open."""
        before, now = ({*f.touching, *f.implied} for f in (phase, following))
        found, t = [], at.state.t
        for k, side in enumerate(self.sides):
            if side.name in now - before:
                found.append(Note("contact", f"{side.name}: contact", t + self._rest_of_rebounds(at, k)))
            elif side.name in before - now:
                found.append(Note("separation", f"{side.name}: separation", t))
        return found

    def _rest_of_rebounds(self, at: ContactState, k: int) -> float:
        """Time, s, of the rebounds that are left out where a side comes to rest: a geometric series of flights."""
        e, w, b = float(self.sides[k].restitution), float(at.rate[k]), float(at.b[k])
        return 2.0 * w / (-b * (1.0 - e)) if 0.0 < w <= at.slow[k] and b < 0.0 and e < 1.0 else 0.0


def _falls_back(at: ContactState, k: int) -> bool:
    """Whether a gap rises by no more than it may be below zero: it does not open before it closes again."""
    w, b = float(at.rate[k]), float(at.b[k])
    return w * w <= -2.0 * AT_LIMIT * float(at.unit[k]) * b


class _Forces:
    """Event function: the smallest force of the closed sides, mass metric, and what it may pull."""

    def __init__(self, solve: Solver, closed: list[int], rows: list[int], factor: Array, pull: float):
        self.solve, self.closed, self.rows, self.factor, self.pull = solve, closed, rows, factor, pull

    def _scaled(self, t: float, q: Array, v: Array) -> Array:
        found: Array = self.solve(t, q, v).lam[self.rows] * self.factor
        return found

    def __call__(self, t: float, q: Array, v: Array) -> float:
        return float(self._scaled(t, q, v).min()) + self.pull


def book(journal: Journal, notes: Sequence[Note], before: State, after: State, loss: float) -> None:
    """Record the events of a reaction; the energy is that of the first of them."""
    for n, note in enumerate(notes):
        states = (before, after) if n == 0 else (after, after)
        journal.book(
            note.kind, note.name, *states, t=note.t, energy_loss=loss if n == 0 else 0.0, of_joints=note.impulse
        )
