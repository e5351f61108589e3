"""Singular passages of a run: momentum steps take over near a singular pose, and the regular method resumes after it.

Near a singular pose accelerations lose accuracy, and forces may grow without bound. Momentum steps need neither: the
impulses over a step are those that close the joints at its end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from loopdyn.analysis.finite_motion import second_order
from loopdyn.engine.status import PASSAGE
from loopdyn.errors import SingularityError
from loopdyn.formulations.base import SingularityMonitor
from loopdyn.integrators.dependence import depends_on_time
from loopdyn.integrators.extrapolation import LANDING, Crossed, Extrapolation, SteppingDriver
from loopdyn.integrators.outcome import Outcome
from loopdyn.integrators.stepper import Stepper
from loopdyn.loops.rank import is_large, scaled
from loopdyn.loops.reactions import LOST, Reactions, impulses
from loopdyn.run.locking import Impulses, computed, impulse_as_data, impulse_of
from loopdyn.system.system import State, System
from loopdyn.tree.functions import energy, terms

if TYPE_CHECKING:
    from loopdyn.run.context import RunContext

Array = NDArray[np.float64]

# A passage ends when the indicator rises, is above RISEN (a fraction of the largest so far), as large as at the entry
# or above ENOUGH, and would have been zero at least BEHIND regular steps ago; or when it is above FAR.
RISEN, ENOUGH, BEHIND, FAR = 0.02, 0.2, 2.0, 0.5
TOUCHED = LANDING  # fraction of the largest indicator, below which a passage that crosses no pose begins or ends in one
# Fraction of the largest singular value below which a singular value is zero, so that the pose is singular; and
# fraction of the fastest speed by which speeds there may differ from those of a branch.
ZERO, ALONG = 1e-7, 1e-6
RELAXED = 100.0  # factor on the tolerances if rounding makes them unreachable
# A step that may lead to a singular pose is accepted if the indicator is above CLEAR at the ends of this many parts of
# it (the larger number if it has a minimum inside) and, extrapolated by a parabola, over the next step.
CLEAR, LOOKS = 0.03, (2, 6)
GUESSED = "state in a singular pose, where no step ends: interpolated between both ends of a step"
COLLAPSED = 1e3  # multiple of the shortest possible step, below which the step size is no guide


@dataclass(frozen=True)
class Passage:
    """Part of a run near or through a singular pose.

    Attributes
    ----------
    start, stop : float
        Times in s.
    through : bool
        True if momentum steps went past the pose or through it; False if two circuits of the mechanism come close
        without meeting (a near miss), and small regular steps stayed on the same circuit.
    poses : tuple of float
        Times of singular poses, s, each located to 1e-5 in natural units.
    indicator : float
        Singularity indicator: smallest length of a constraint row orthogonal to the others at the ends of the steps,
        relative to the largest of the run. It is zero in a singular pose.
    relaxed : float
        Factor on the tolerances of the run; more than one if rounding made them unreachable.
    steps : int
    energy_jump : float
        Energy at the end minus energy at the start and work done, J.
    impulses : Reactions, optional
        Impulses of all joints and constraints over the momentum steps, N m s and N s; None if there were only regular
        steps. Components in the direction of unbounded forces are not unique: they depend on where the steps end.
    branches : tuple of (nv,) arrays
        Speeds along the branches that meet in the pose, scaled so that the fastest is 1 in natural units; empty if
        unknown: they are found if one row is lost and the mechanism has one degree of freedom.
    contacts : mapping, optional
        No singular pose, but momentum steps with contacts (:class:`loopdyn.integrators.Moreau`): the impulse of each
        side over all of them, N s or N m s. Forces in between are not given.
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
    of_joints: Impulses = field(default=None, repr=False)
    contacts: Mapping[str, float] | None = None

    @cached_property
    def impulses(self) -> Reactions | None:
        """Impulses of all joints, if there were momentum steps; computed when they are read."""
        return computed(self.of_joints)

    @property
    def crossed(self) -> bool:
        """Whether a step ended on the other side of a singular pose."""
        return bool(self.poses)

    @property
    def unbounded(self) -> bool:
        """Whether forces may be unbounded: the passage goes through a singular pose, or begins or ends in one."""
        return self.crossed or self.indicator < TOUCHED or self.contacts is not None

    def as_data(self) -> dict[str, Any]:
        """Plain numbers, for files."""
        plain = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in ("branches", "of_joints")}
        branches = [b.tolist() for b in self.branches]
        return {**plain, "branches": branches, "impulses": impulse_as_data(self.impulses)}

    def __str__(self) -> str:
        """One line."""
        if self.contacts is not None:
            return f"contacts by {self.steps} momentum steps until t = {self.stop:.6g} s, of first order"
        kind = "momentum" if self.through else "small"
        when = ", ".join(f"{t:.6g}" for t in self.poses)
        if self.crossed:
            poses = "singular poses" if len(self.poses) > 1 else "a singular pose"
            what = f"passage through {poses} at t = {when} s by"
        elif not self.through:
            what = "near miss of a singular pose by"
        elif self.unbounded:
            what = "start or end in a singular pose by"
        else:
            what = "nearly singular pose passed by"
        met = f", {len(self.branches)} branches meet there" if self.branches else ""
        relaxed = f", tolerances times {self.relaxed:g}" if self.relaxed > 1.0 else ""
        return (
            f"{what} {self.steps} {kind} steps until t = {self.stop:.6g} s; indicator down to {self.indicator:.1e}, "
            f"energy changed by {self.energy_jump:.1e} J{relaxed}{met}"
        )


def passage_of(data: dict[str, Any]) -> Passage:
    """Passage from the data of :meth:`Passage.as_data`."""
    known = {f.name: data[f.name] for f in fields(Passage) if f.name in data}
    branches, poses = tuple(np.array(b) for b in data["branches"]), tuple(data.get("poses", ()))
    return Passage(**{**known, "branches": branches, "poses": poses, "of_joints": impulse_of(data.get("impulses"))})


def tangents(system: System, pose: State, rank: int) -> tuple[Array, ...]:
    """Speeds along the branches that meet in a singular pose; none for large systems, or if more than one row is lost.

    With U0 the left null vector of J and N its two-dimensional null space, the branches are those x in N for which the
    quadratic form U0^T phi''(x, x) vanishes.
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
    # roots of a x^2 + 2 b x y + c y^2 = 0 without cancellation
    largest = -(b + np.copysign(np.sqrt(root), b))
    found = [N @ np.array(x) for x in ((largest, a), (c, largest))]
    return tuple(v / np.abs(v / units).max() for v in found)


def require_branch(system: System, state: State, rank: int, inexact: float = 0.0) -> None:
    """Raise if the speeds in a singular pose are along none of its branches; large systems are not checked.

    Along a branch there are accelerations with J a = gamma, though fewer than `rank` rows are independent. Speeds may
    be `inexact` by this fraction of the fastest.

    Raises
    ------
    SingularityError
        Names the branches, if they were found.
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
        f"'{system.name}' is in a singular pose at t = {state.t:g} s and {what}: its motion is not determined. "
        f"Give it speeds along one of its branches{known}, or start near the pose."
    )


class OngoingPassage:
    """Passage in progress: the regular stepper that it replaces, and the stepper that makes its steps.

    Parameters
    ----------
    regular : Stepper
        Stopped at the start of a step that it should not take.
    monitor : SingularityMonitor
        Singularity monitor of its solver.
    start : State, optional
        Start or restart of the run, if the regular stepper could not start there.
    works : array, optional
        Works until then.
    largest : float
        Largest indicator so far, if known.
    """

    def __init__(
        self,
        regular: Stepper,
        monitor: SingularityMonitor,
        start: State | None = None,
        works: Array | None = None,
        largest: float = 0.0,
    ):
        self.regular, self.monitor = regular, monitor
        regular.undo()
        self.size = regular.step_size  # of the step that was not taken
        here, done = regular.start_of_step()
        self.start = here if start is None else start
        self.works = done if works is None else works
        self.steps = regular.counts.steps
        self.through, self.relaxed = True, 1.0
        self.stepper = self._by_momentum(regular, self.start, self.works)
        self._steps.hands_over = True
        if start is None and self.size > COLLAPSED * regular.shortest_step:
            self.stepper.propose(self.size)
        self.entry = self.last = self.smallest = self._indicator(self.start)
        # the regular solver knows the largest indicator of the run, in its own measure
        self.largest = max(largest, self.entry / self.monitor.indicator)
        self._steps.farthest = self.largest
        self.time = self.start.t
        self.path = [self.start]  # ends of the momentum steps
        self.ended, self.reached, self.done = False, self.start, self.works  # state and works where it ended
        self.branches: tuple[Array, ...] = ()
        self.across: list[Crossed] = []  # momentum steps through singular poses
        self.meets = False  # whether small regular steps reached a singular pose, so that it is no near miss

    @property
    def _steps(self) -> SteppingDriver:
        """Driver of the momentum steps."""
        made = self.stepper.stepping
        assert made is not None
        return made

    def _indicator(self, state: State) -> float:
        return self.monitor.momentum.begin(state.t, state.q, state.v)

    def _by_momentum(self, here: Stepper, state: State, works: Array) -> Stepper:
        """Momentum steps from a state on."""
        stepper = here.with_solver(self.monitor.momentum, Extrapolation())
        stepper.start(state, here.target, works)
        return stepper

    def change(self) -> Stepper:
        """Switch to small regular steps: two circuits seem to come close here without meeting.

        If that is impossible, since the pose is singular, restart the passage with a larger tolerance.
        """
        self.across = [c for c in self._steps.crossed if c.stop.t <= self.stepper.step_start]
        if self.stepper.undo():
            self.stepper.count_rejected()
        try:
            self.stepper = self._regular_at(*self.stepper.start_of_step())
            self.through = False
        except SingularityError:
            self._begin_again()
        return self.stepper

    def _begin_again(self) -> None:
        """Restart momentum steps at the entry with a larger tolerance: rounding makes the given one unreachable."""
        before = self.stepper.counts
        self.through, self.relaxed = True, RELAXED
        self.stepper = self._by_momentum(self.regular, self.start, self.works)
        rtol, atol = self.regular.tolerances
        self.stepper.tolerances = RELAXED * rtol, RELAXED * atol
        self.stepper.count_rejected(before.rejected - self.stepper.counts.rejected + before.steps - self.steps)
        self._steps.farthest = self.largest
        self.last = self.smallest = self.entry
        self.time, self.path, self.across = self.start.t, [self.start], []

    def _regular_at(self, state: State, works: Array) -> Stepper:
        here = self.stepper
        after = here.with_solver(self.regular.solver, self.regular.integrator)
        after.tolerances = self.regular.tolerances  # the passage may have used larger ones
        self.monitor.restart()
        after.start(state, here.target, works)
        return after

    def must_be_undone(self) -> bool:
        """Whether the last regular step of a near miss may have led to the other circuit or to a singular pose.

        With a singular pose it is no near miss.
        """
        if self.through:
            return False
        self.monitor.restart()
        momentum, (start, stop) = self.monitor.momentum, self.stepper.ends_of_step()
        momentum.begin(start.t, start.q, start.v)
        end = momentum.place_at(stop.t, stop.q, stop.v)
        self.meets = bool(momentum.indicator_at(end) < LANDING * self.largest)
        return self.meets or not momentum.same_side(end)

    def undo(self) -> Stepper:
        """Repeat the last step, taken or not, with half its size and with the pivot rows chosen at its start."""
        stepper, half = self.stepper, 0.5 * self.stepper.step_size
        stepper.undo()
        stepper.count_rejected()
        if self.meets or half < stepper.shortest_step or not self._starts_anew():
            self._begin_again()
        else:
            stepper.propose(half)
        return self.stepper

    def _starts_anew(self) -> bool:
        """Prepare the regular solver at the start of the step, with whose pivots later ones are compared.

        Return False if that pose is singular.
        """
        state, works = self.stepper.start_of_step()
        try:
            self.stepper.prepare_again(self.stepper.ends_of_step()[0])
            self.monitor.restart()
            self.stepper.start(state, self.stepper.target, works)
        except SingularityError:
            return False
        return True

    def is_over(self) -> bool:
        """Whether the passage is over after the last step."""
        state = self.stepper.state()
        s, h = self._indicator(state), state.t - self.time
        self.smallest = min(self.smallest, s)
        if self.through:
            self.smallest = min(self.smallest, self._steps.nearest)
            self.path.append(state)
            known, self.across = len(self.across), list(self._steps.crossed)
            if len(self.across) > known and not self.branches:
                self.branches = tangents(self.stepper.system, self.across[-1].poses[0], self.stepper.rank)
        rate = (s - self.last) / h if h > 0.0 else 0.0
        self.last, self.time, self.largest = s, state.t, max(self.largest, s)
        if rate <= 0.0:
            return False
        risen = s > RISEN * self.largest and s >= min(self.entry, ENOUGH * self.largest)
        return (risen and s > BEHIND * rate * self.size) or s > FAR * self.largest

    def leave(self) -> Stepper:
        """Regular stepper, started where the passage ends."""
        return self._regular_at(self.stepper.state(), self.stepper.works_reached)

    def end_at(self, state: State, works: Array) -> None:
        """End the passage inside the last step, at an event or the end of the run."""
        self.ended, self.reached, self.done = True, state, works
        if self.through:
            self.path = [s for s in self.path if s.t < state.t] + [state]
            self.across = [c for c in self._steps.crossed if c.poses[0].t <= state.t]
            momentum = self.monitor.momentum
            there = momentum.place_at(state.t, state.q, state.v)
            self.smallest = min(self.smallest, momentum.indicator_at(there))

    def passage(self) -> Passage:
        """Record of the passage."""
        here = self.stepper
        if not self.ended:  # it ends with the last step
            self.end_at(here.state(), here.works_reached)
        now, works = self.reached, self.done
        before, after = (moving_energy(here.system, state) for state in (self.start, now))
        jump = after - before - float((works - self.works).sum())
        steps = here.counts.steps - self.steps
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

    def _impulses(self) -> Impulses:
        if len(self.path) < 2 or not (self.through or self.across):
            return None
        poses = [pose for c in self.across for pose in c.poses]
        return partial(impulses, self.stepper.system, tuple(self.path), poses)


def passage_by_one_step(system: System, made: Crossed, rank: int) -> Passage:
    """Passage made of one step of the `momentum` formulation through a singular pose."""
    jump = moving_energy(system, made.stop) - moving_energy(system, made.start) - made.work
    branches = tangents(system, made.poses[0], rank)
    times = made.start.t, made.stop.t
    of_joints = partial(impulses, system, (made.start, made.stop), made.poses)
    poses = tuple(pose.t for pose in made.poses)
    return Passage(*times, True, poses, made.indicator, 1.0, 1, jump, branches, of_joints)


def moving_energy(system: System, state: State) -> float:
    """Kinetic energy and potential energy of gravity, J, which the work of forces changes."""
    found = energy(system, state)
    return found.kinetic + found.gravity


class SingularPoses:
    """Singular passages of a run: begins one where a step leads to a singular pose, and ends it after the pose.

    Parameters
    ----------
    context : RunContext
    """

    def __init__(self, context: RunContext):
        self.context = context
        self.ongoing: OngoingPassage | None = None
        self.farthest = 0.0  # largest indicator, by momentum, of the steps that were checked closely

    # ------------------------------------------------------------------------------------------ beginning

    def begin(self, start: State | None = None, works: Array | None = None, largest: float = 0.0) -> bool:
        """Switch to momentum steps if the regular method cannot continue or start; False if that is not possible."""
        monitor = self.context.stepper.monitor
        if self.ongoing is not None or monitor is None:
            return False
        self.ongoing = OngoingPassage(self.context.stepper, monitor, start, works, largest)
        self.context.stepper = self.ongoing.stepper
        return True

    def near_singular(self) -> bool:
        """Whether the pose at which the solver requests to be prepared again is close to a singular one."""
        monitor = self.context.stepper.monitor
        return monitor is not None and monitor.near_singular(self.context.stepper.evaluated())

    def step_avoids_singularity(self, outcome: Outcome) -> bool:
        """Check closely a step that may lead to a singular pose; True if it does not and is accepted."""
        stepper, monitor = self.context.stepper, self.context.stepper.monitor
        if monitor is None or self.ongoing is not None or outcome.status != PASSAGE:
            return False
        monitor.hold_step()
        momentum, (start, end) = monitor.momentum, stepper.ends_of_step()
        parts = np.arange(1, looks := LOOKS[monitor.dips]) / looks
        try:
            inside = [stepper.interpolate(start.t + x * (end.t - start.t)) for x in parts]
        except SingularityError:  # no closed states between its ends: it leads across a singular pose
            return False
        # the indicator of momentum does not depend on which rows `graph` has chosen
        seen = [momentum.begin(start.t, start.q, start.v)]
        for place in (*inside, end):
            last = momentum.place_at(place.t, place.q, place.v)
            seen.append(momentum.indicator_at(last))
        self.farthest = max(self.farthest, *seen)
        if not (momentum.same_side(last) and is_clear(np.array(seen), CLEAR * self.farthest)):
            return False
        monitor.take_step()
        return True

    # ----------------------------------------------------------------------------------------- in a passage

    @property
    def blocked(self) -> bool:
        """Whether the next stop of the run is in a singular pose, where no step can end."""
        made = self.context.stepper.stepping
        return made is not None and made.blocked

    def steps_past_stop(self) -> bool:
        """Allow momentum steps to end after the next stop, at which the mechanism is in a singular pose.

        The state there is interpolated inside a step, which is possible as long as no force may jump in it.
        """
        context, stop = self.context, self.context.stop
        made = context.stepper.stepping
        assert made is not None
        due = any(e.t == stop for e in context.watch.times) or bool((context.breakpoints == stop).any())
        if (stop < context.end or due or context.laws_jump) and depends_on_time(context.system):
            return False
        context.stepper.aim(context.stepper.target + made.first)
        context.stepper.propose(made.first)
        return True

    def what_blocks(self) -> str:
        """Reason in words why no step can end at the next stop."""
        stop = self.context.stop
        due = next((e for e in self.context.watch.times if stop <= e.t <= np.nextafter(stop, np.inf)), None)
        what = "a breakpoint of a profile or table" if due is None else f"'{due.name}'"
        if self.context.laws_jump and stop == self.context.end:
            what = "a change of the inputs"
        return (
            f"no step can end at t = {stop:.9g} s, the time of {what}: the pose is singular there, and forces, which "
            "depend on time, may jump. Move it slightly, or use a larger rtol; if nothing happens there, use an "
            "output time instead (t_eval)."
        )

    def repeat_if_wrong_circuit(self, outcome: Outcome) -> bool:
        """Repeat the last step of a passage if it led to another circuit; False if it did not."""
        ongoing = self.ongoing
        if ongoing is None:
            return False
        if outcome.end == "asks" and ongoing.through:
            self.change(ongoing)
        elif outcome.end == "asks" or (outcome.stepped and ongoing.must_be_undone()):
            self._go_on_with(ongoing.undo())
        else:
            return False
        return True

    def change(self, ongoing: OngoingPassage) -> None:
        """Switch to small regular steps from the start of the last step."""
        self._go_on_with(ongoing.change())

    def _go_on_with(self, stepper: Stepper) -> None:
        self.context.stepper = stepper
        self.context.recorder.take_back(stepper.t)

    def note_steps(self) -> None:
        """Record estimated states and singular poses in steps that a stepping formulation made itself."""
        stepper, journal = self.context.stepper, self.context.journal
        made = stepper.stepping
        if made is None:
            return
        for t in made.guessed:
            if all((e.t, e.kind) != (t, "singular pose") for e in journal.events):
                journal.book("singular pose", GUESSED, stepper.state(), t=t)
        made.guessed.clear()
        if self.ongoing is None:
            for step in made.crossed:
                if step.poses[0].t <= stepper.t:  # an event may have undone the step
                    journal.book_passage(passage_by_one_step(stepper.system, step, stepper.rank), step.start, step.stop)
            made.crossed.clear()

    # ---------------------------------------------------------------------------------------------- ending

    def end_at(self, state: State, works: Array) -> None:
        """End an ongoing passage inside the last step, where the run ends."""
        if self.ongoing is not None:
            self.ongoing.end_at(state, works)

    def go_on_after_end(self) -> None:
        """Continue an ongoing passage after the end of the run, which is extended, unless it is over there."""
        if self.ongoing is None:
            return
        self.ongoing.ended = False
        if self.context.stepper.t == self.context.end and self.ongoing.is_over():
            self.go_on_regularly()

    def go_on_regularly(self) -> None:
        """Resume the regular method after a singular pose, and record the passage."""
        ongoing, self.ongoing = self.ongoing, None
        assert ongoing is not None
        self._book(ongoing)
        stepper = self.context.stepper = ongoing.leave()
        stepper.aim(self.context.next_stop(stepper.t))  # momentum steps may have aimed beyond the end

    def leave(self, state: State, works: Array) -> None:
        """End an ongoing passage where the run restarts."""
        ongoing, self.ongoing = self.ongoing, None
        if ongoing is None:
            return
        made = self.context.stepper
        if made.counts.steps > ongoing.steps:
            ongoing.end_at(state, works)
            self._book(ongoing)
        ongoing.regular.take_counts(made)
        self.context.stepper = ongoing.regular

    def book_rest(self) -> None:
        """Record a passage in which the run ends."""
        if self.ongoing is not None and self.context.stepper.t > self.ongoing.start.t:
            self.context.journal.book_passage(self.ongoing.passage(), self.ongoing.start, self.ongoing.reached)

    def _book(self, ongoing: OngoingPassage) -> None:
        """Record a passage; raises if it did not follow the motion."""
        made = ongoing.passage()
        ends = ongoing.start, ongoing.reached
        self.context.journal.book_passage(made, *ends)
        self.context.recorder.check_passage(ongoing.stepper.system, made, *ends)


def is_clear(seen: Array, least: float) -> bool:
    """Whether an indicator, sampled at the ends of equal parts of a step, stays off zero over this step and the next.

    Near a singular pose it falls to zero and rises again linearly: no line through two neighbouring samples may reach
    zero within another part. Over the next step it is extrapolated by a parabola.
    """
    x = np.linspace(0.0, 1.0, len(seen))
    ahead = np.polyval(np.polyfit(x, seen, 2), 1.0 + x)
    onward, back = 2.0 * seen[1:] - seen[:-1], 2.0 * seen[:-1] - seen[1:]
    return bool(min(seen.min(), ahead.min()) > least and min(onward.min(), back.min()) > 0.0)
