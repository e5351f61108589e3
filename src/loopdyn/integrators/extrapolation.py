"""Steps made by a stepping formulation, such as `momentum`: of one size, or extrapolated.

A symmetric step of order two has an error in even powers of its size. With 1, 2, 3 and 4 of them over the same time,
polynomials in the square of the size give a step of order 8 and an estimate of its error [Hairer1993 section II.9].
States inside a step are computed by shorter steps from its start or back from its end, which the run does not continue
from. Near a singular pose, where no step should end, they lie on a polynomial in time through such states around it:
the motion is smooth there, only the equations are singular.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from loopdyn.engine.status import AGAIN, FINE, RAISED
from loopdyn.errors import ConvergenceError, LoopdynError
from loopdyn.formulations.base import PassingSolver, Step
from loopdyn.integrators import memory
from loopdyn.integrators.base import Adaptive, Fixed
from loopdyn.integrators.loop import Method, ends_only, evaluate_dense_output
from loopdyn.system.system import State
from loopdyn.tree.functions import difference, increment
from loopdyn.tree.turns import count as count_turns

if TYPE_CHECKING:
    from loopdyn.integrators.stepper import Stepper

Array = NDArray[np.float64]

COUNTS = (1, 2, 3, 4)  # numbers of substeps over the same time that are extrapolated
SHARES = np.array([(1.0 / n,) * n + (0.0,) * (COUNTS[-1] - n) for n in COUNTS])  # the substeps as shares of this time
ESTIMATE = 7  # order of the difference between the last two extrapolations
# A substep that ends where the indicator is below this fraction of its largest value so far loses too many digits. A
# slightly shorter step is then tried: its error counts as LANDED, just above what is allowed. At the share s a closed
# pose is known to ROUNDING / s, and the direction in which it may move to ROUNDING / s^2; the whole step must not end
# where that exceeds the tolerance.
LANDING, LANDED, ROUNDING = 1e-5, 1.0 + 1e-9, float(np.finfo(float).eps)
# If a step ends on the other side of a singular pose, its end is followed as its time grows. If the end jumps by more
# than JUMP, in natural units, the step leads to another circuit, which the motion does not reach, and a step of about
# half the size is tried. Circuits closer to each other than JUMP count as meeting.
JUMP, JUMPED = 1e-5, 32.0
MET = 5.0  # times the indicator at a distance JUMP from a singular pose, by a line from the start of the step
# An interval is divided the fraction OVER of a JUMP beyond the pose that the indicators at both ends lead to, if its
# last division left at most half of it; else, or if no step can end there, at the first of these shares at which one
# can; down to the fraction SHORTEST of the step, and until MOST_PARTS have been examined.
OVER, WHERE = 0.3, (0.5, 0.4, 0.6, 0.3, 0.7)
SHORTEST, MOST_PARTS = 2.0**-40, 400
CLOSABLE = 1e-3  # fraction of the largest indicator above which a correction does not amplify errors much
# Nodes of the polynomial as shares of a step or a part of it, to which the ends of the step are added; the least number
# of states that must be found at them; the largest error, at one node, of the polynomial through all others, which is
# of one order less; and how often the part may be halved to reach it.
NODES, FEWEST = 0.5 - 0.5 * np.cos(np.pi * np.arange(1, 9) / 9.0), 6
WORST, HALVINGS = 100.0, 6
MARGIN = 8  # rounding of the times of substeps, in units in the last place
SMALL = 1e-2  # fraction of the first step below which steps near a singular pose are left to another method


@cache
def ends_and_powers(order: int) -> Method:
    """Both ends of a step, and one more row for powers inside it; `order` is zero for steps of one size."""
    return ends_only()._replace(p=np.zeros((3, 0)), order=order)


@dataclass(frozen=True)
class Crossed:
    """A step that ends on the other side of a singular pose.

    Attributes
    ----------
    start, stop : State
        Its ends.
    work : float
        Work of all forces over the step, J.
    poses : tuple of State
        The singular poses in it, without speeds, in order of time.
    indicator : float
        Smallest indicator at the ends of its substeps, as a fraction of the largest so far.
    """

    start: State
    stop: State
    work: float
    poses: tuple[State, ...]
    indicator: float


class _End(NamedTuple):
    """End of a step over a fraction of the time of another step."""

    share: float
    q: Array
    orientation: Array  # tells on which side of singular poses it is
    indicator: float


class _Extrapolated(NamedTuple):
    """Result of an extrapolated step."""

    y: Array  # increments, speeds and works after it
    doubt: Array  # their change by the last extrapolation
    error: float  # that change relative to the tolerances
    nearest: float  # smallest indicator at the ends of its substeps
    last: Step  # the one with the most substeps


@cache
def _weights() -> Array:
    """Weights (2, counts) of the extrapolation from all counts, and of its difference to that without the first.

    The recursion of Aitken and Neville [Hairer1993 section II.9] is linear: the weights are Lagrange's at h^2 = 0.
    """
    squares = np.array(COUNTS, float) ** 2

    def lagrange(x: Array) -> Array:
        return np.array([np.prod([a / (a - b) for b in x if b != a]) for a in x])

    last = lagrange(squares)
    return np.array([last, last - np.append(0.0, lagrange(squares[1:]))])


def _polynomial(x: Array, y: Array) -> Any:
    """The polynomial through values y (n, ny) at x (n)."""
    from scipy.interpolate import KroghInterpolator  # takes long to import, and is seldom used

    return KroghInterpolator(x, y)


class _Curve:
    """A motion over the part from a to b of a step, as a polynomial through states y (n, ny) at shares x (n) of it."""

    def __init__(self, a: float, b: float, nodes: list[tuple[float, Array]]):
        self.a, self.b = a, b
        self.x, self.y = np.array([x for x, _ in nodes]), np.array([y for _, y in nodes])

    def doubt(self, x: float) -> Array:
        """Error, at the node next to x that is not the first or last, of the polynomial through all others."""
        k = 1 + int(np.argmin(np.abs(self.x[1:-1] - x)))
        others = _polynomial(np.delete(self.x, k), np.delete(self.y, k, axis=0))
        return np.asarray(others(self.x[k]) - self.y[k])

    def at(self, x: float) -> tuple[Array, Array]:
        """The state at a share x of the step, and its derivative by x."""
        y, rate = _polynomial(self.x, self.y).derivatives(x, 2)
        return y, rate


class SteppingDriver:
    """Drives a stepping formulation: makes the steps of a stepper."""

    def __init__(self, stepper: Stepper, extrapolate: bool):
        self.stepper, self.extrapolate = stepper, extrapolate
        self.solver: PassingSolver = stepper.solver  # type: ignore[assignment]
        self.hands_over = False  # whether another method takes over where steps become small
        self.first = 0.0  # largest size of a step requested so far, s
        self.anew = np.nan  # time of the last restart, s: the state there is only as exact as the tolerance
        # start of the present steps: time, coordinates, works and powers
        self.t, self.q = 0.0, np.zeros(stepper.system.nq)
        self.works = self.power = np.zeros(stepper.sources)
        self.made: Step  # the last step
        self.farthest = 0.0  # largest indicator so far
        self.poses: list[State] = []  # singular poses that the present step goes through
        self.crossed: list[Crossed] = []  # steps through singular poses
        self.curves: list[_Curve] = []  # polynomials of the last accepted step, as far as they were needed
        self.blocked = False  # whether steps shall end where the mechanism is in a singular pose
        self.guessed: list[float] = []  # times at which no step can end: states there are interpolated
        self.nearest = np.inf  # smallest indicator in the last step
        self.end = np.inf  # indicator at its end

    # ------------------------------------------------------------------------------------ called by `chunk`

    def attempt(self, ints: Any, floats: Any, work: Any, m: Any, method: Any, accelerate: Any) -> int:
        """One step of size clock[SIZE]: `m.new` and clock[ERROR]."""
        h, wanted = float(m.clock[memory.SIZE]), min(float(m.clock[memory.NEXT]), float(m.clock[memory.MOST]))
        self.first, self.poses, self.curves, self.blocked = max(self.first, wanted), [], [], False
        if self._must_stop:  # a jump after it must not be reached, although the times of substeps are rounded
            h = max(h - MARGIN * float(np.spacing(m.clock[memory.STOP])), 0.5 * h)
        if self.hands_over and wanted < SMALL * self.first:
            return AGAIN
        try:
            if self.extrapolate:
                error = self._extrapolated_step(h)
            else:
                m.new[:], error = self._single(h), 0.0
        except ConvergenceError as failure:
            self.stepper.error = failure
            self.blocked = self.extrapolate and self._must_stop and self._leads_into_singular_pose(h)
            return AGAIN if self.blocked else RAISED
        except LoopdynError as failure:
            self.stepper.error = failure
            return RAISED
        if self.blocked:
            return AGAIN
        m.clock[memory.ERROR] = error
        if error <= 1.0 and self.poses:
            self.crossed.append(self._crossed())
        return FINE

    def _crossed(self) -> Crossed:
        """Record of the step in `m.new`, which goes through singular poses."""
        stepper, m, nv = self.stepper, self.stepper.memory, self.stepper.system.nv

        def end(t: float, y: Array) -> State:
            q = increment(stepper.system, m.q, y[:nv])
            return State(float(t), stepper.unwrapped(q), y[nv : 2 * nv].copy())

        start, stop = end(m.clock[memory.START], m.y), end(m.clock[memory.STOP], m.new)
        work = float((m.new - m.y)[2 * nv :].sum())
        poses = tuple(sorted(self.poses, key=lambda pose: pose.t))
        return Crossed(start, stop, work, poses, self.nearest / self.farthest)

    def _extrapolated_step(self, h: float) -> float:
        """Make a step into `m.new`, corrected if it can be accepted; returns its error."""
        m, nv = self.stepper.memory, self.stepper.system.nv
        self._begin()
        made = self._extrapolated(h)
        m.new[:], error = made.y, made.error
        self.nearest, self.made, self.end = made.nearest, made.last, np.inf
        # the pose at the end must be exact enough to be distinguished from singular ones
        if np.abs(made.doubt[:nv] / m.unit).max(initial=0.0) < self._least and self._is_singular(made.y):
            self.blocked = self._must_stop
            error = max(error, LANDED)
        elif error <= 1.0:
            error = LANDED if made.nearest < LANDING * self.farthest else max(error, self._jump(h))
        if error <= 1.0:
            self._close(m.new, float(m.clock[memory.STOP]))
        return error

    @property
    def _must_stop(self) -> bool:
        """Whether the present step ends at a time that must be reached exactly."""
        clock = self.stepper.memory.clock
        return bool(clock[memory.STOP] >= clock[memory.END])

    @property
    def _least(self) -> float:
        """Fraction of the largest indicator below which speeds are not known to the tolerance."""
        tolerance = float(self.stepper.memory.clock[[memory.RTOL, memory.ATOL]].sum())
        return max(LANDING, float(np.sqrt(ROUNDING / tolerance)))

    def _is_singular(self, y: Array) -> bool:
        """Whether the present step, ending at y, ends too close to a singular pose."""
        m, nv = self.stepper.memory, self.stepper.system.nv
        q = increment(self.stepper.system, m.q, y[:nv])
        self.end = self.solver.indicator_at(self.solver.place_at(float(m.clock[memory.STOP]), q, y[nv : 2 * nv]))
        return self.end < self._least * self.farthest

    def _leads_into_singular_pose(self, h: float) -> bool:
        """Whether a step of the time h that has no solution would end too close to a singular pose.

        Judged by shorter steps or, if these have no solution either, by the speeds at its start.
        """
        m, nv, found = self.stepper.memory, self.stepper.system.nv, []
        for x in NODES:
            try:
                found.append((x, self._extrapolated(x * h).y))
            except ConvergenceError:
                continue
        if len(found) >= FEWEST:
            x, y = (np.array(part) for part in zip(*found, strict=True))
            return self._is_singular(_polynomial(x, y)(1.0))
        bend = 0.5 * h * h * np.abs(m.k[0, nv : 2 * nv] / m.unit).max(initial=0.0)
        return bool(bend < self._least) and self._is_singular(m.y + h * m.k[0])

    def within(
        self, ints: Any, floats: Any, work: Any, m: Any, method: Any, t: float, weights: Any, accelerate: Any, _: Any
    ) -> int:
        """The state at the time t inside the last step, with its accelerations, into `work` and `m.stage`."""
        if t >= m.clock[memory.STOP]:
            return self._at_end(ints, work, m)
        h, a = t - float(m.clock[memory.START]), None
        if h <= 0.0 or not self.extrapolate:
            evaluate_dense_output(ints, work, m, method, t, weights)  # on the cubic through both ends
        try:
            if h > 0.0 and self.extrapolate:
                found = self._reachable_state(h, CLOSABLE)
                m.stage[:], a = (found, None) if found is not None else self._on_polynomial(t)
            elif h > 0.0:
                m.stage[:] = self._single(h)
        except ConvergenceError as failure:
            return self._without(t, failure)
        except LoopdynError as failure:
            self.stepper.error = failure
            return RAISED
        memory.place(ints, work, m, m.stage, t)
        if self.stepper.system.counted:
            count_turns(ints, floats, work)
        if a is None:
            return int(accelerate(ints, floats, work))
        self.stepper.views.a[:] = a
        return FINE

    def _at_end(self, ints: Any, work: Any, m: Any) -> int:
        """The end of the last step; near a singular pose its accelerations are those of the polynomial."""
        a = m.a1
        if self.extrapolate and m.count[memory.PENDING] == 1 and self.end < CLOSABLE * self.farthest:
            t = float(m.clock[memory.STOP])
            try:
                a = self._on_polynomial(t)[1]
            except ConvergenceError as failure:
                return self._without(t, failure)
        memory.put_end(ints, work, m._replace(a1=a))
        m.stage[:] = m.new
        return FINE

    def _without(self, t: float, failure: ConvergenceError) -> int:
        """Status where no state is found at the time t inside the last step.

        In a step of one size through a singular pose the state on the cubic is used, with accelerations interpolated
        between both ends. If the motion is not smooth and does not go through a singular pose, it comes close to one:
        another method may then make the step.
        """
        m, nv = self.stepper.memory, self.stepper.system.nv
        self.stepper.error = failure
        if self.extrapolate:
            return AGAIN if self.hands_over and not self.poses else RAISED
        x = (t - float(m.clock[memory.START])) / float(m.clock[memory.SIZE])
        self.guessed.append(t)
        self.stepper.views.a[:] = (1.0 - x) * m.k[0, nv : 2 * nv] + x * m.a1
        return FINE

    def on_polynomial(self, t: float) -> State:
        """The state at a time inside the last step or slightly beyond its ends, on a polynomial."""
        system, m = self.stepper.system, self.stepper.memory
        y = self._on_polynomial(t)[0]
        q = self.stepper.unwrapped(increment(system, m.q, y[: system.nv]))
        return State(t, q, y[system.nv : 2 * system.nv])

    # --------------------------------------------------------------------------------------------- one step

    def _begin(self, ahead: bool = True) -> None:
        """Set the start of the following steps to the start of the present step or, not `ahead`, to its end."""
        m, nv = self.stepper.memory, self.stepper.system.nv
        self.q = (m.q if ahead else m.q1).copy()
        if ahead:
            self.t, v = float(m.clock[memory.START]), m.y[nv : 2 * nv]
            self.works, self.power = m.y[2 * nv :], m.k[0, 2 * nv :]
        else:
            self.t, v = float(m.clock[memory.STOP]), m.v1
            self.works, self.power = m.new[2 * nv :], m.power1
        inexact = float(m.clock[[memory.RTOL, memory.ATOL]].sum()) if self.t == self.anew else 0.0
        self.farthest = max(self.farthest, self.solver.begin(self.t, self.q, v, inexact))

    def _single(self, h: float) -> Array:
        """Increments, speeds and works after one step from the start of this one."""
        m, nv, t = self.stepper.memory, self.stepper.system.nv, float(self.stepper.memory.clock[memory.START])
        q, v, _ = self.solver.step(t, m.q.copy(), m.y[nv : 2 * nv].copy(), h)
        if isinstance(self.solver, PassingSolver):  # the published scheme does not pass singular poses
            self.t, self.q, self.made = t, m.q.copy(), self.solver.last
            self.nearest, self.farthest = self.made.indicator, max(self.farthest, self.solver.first)
            if self.nearest < LANDING * self.farthest:
                raise ConvergenceError(
                    f"a step of {h:.2g} s from t = {t:g} s, or a part of it, ends in a singular pose, where digits are "
                    "lost. Use another step."
                )
            if self._jump(h) == JUMPED:
                raise ConvergenceError(
                    f"a step of {h:.2g} s from t = {t:g} s leads to another circuit, or is too long to be certain. "
                    "Use a smaller step."
                )
        works = m.y[2 * nv :] + 0.5 * h * (m.k[0, 2 * nv :] + self._powers(t + h, q, v))
        return np.concatenate([difference(self.stepper.system, m.q, q), v, works])

    def _extrapolated(self, h: float) -> _Extrapolated:
        """Increments, speeds and works after a step, extrapolated from steps with several numbers of substeps."""
        if self.stepper.sources:
            table, nearest, made = self._with_works(h)
        else:
            table, made = self.solver.take_sequences(h, SHARES)
            nearest = made.indicator
        y, doubt = _weights() @ table
        return _Extrapolated(y, doubt, self._error(doubt), nearest, made)

    def _with_works(self, h: float) -> tuple[Array, float, Step]:
        """Ends of steps with several numbers of substeps, works included; smallest indicator; the last step."""
        table, nearest = [], np.inf
        for count in COUNTS:
            powers = 0.5 * self.power

            def visit(t: float, q: Array, v: Array, total: Array = powers) -> None:
                total += self._powers(t, q, v)

            made = self.solver.take_steps(h, (1.0 / count,) * count, visit)
            nearest = min(nearest, made.indicator)
            powers -= 0.5 * self._powers(self.t + h, made.q, made.v)
            works = self.works + h / count * powers
            table.append(np.concatenate([difference(self.stepper.system, self.q, made.q), made.v, works]))
        return np.array(table), nearest, made

    def _close(self, y: Array, t: float) -> None:
        """Correct increments and speeds for the constraint residuals of the extrapolation, within its error."""
        system, nv, start = self.stepper.system, self.stepper.system.nv, self.stepper.memory.q
        q, v = self.solver.closed(t, increment(system, start, y[:nv]), y[nv : 2 * nv])
        y[:nv], y[nv : 2 * nv] = difference(system, start, q), v

    def _reachable_state(self, h: float, least: float) -> Array | None:
        """Increments, speeds and works at the time h inside the accepted step.

        Computed from its start or, if a singular pose lies between, back from its end; None if the indicator there is
        not above the share `least` of its largest value so far.
        """
        m, system, nv = self.stepper.memory, self.stepper.system, self.stepper.system.nv
        for ahead in (True, False):
            self._begin(ahead)
            try:
                made = self._extrapolated(h if ahead else h - float(m.clock[memory.SIZE]))
            except ConvergenceError:
                continue
            s, y = self.solver.indicator_at(made.last.place), made.y
            clear = s >= least * self.farthest  # both are infinite where there are no constraints
            if clear and made.error <= 1.0 and self.solver.same_side(made.last.place):
                if not ahead:
                    y[:nv] = difference(system, m.q, increment(system, self.q, y[:nv]))
                if s >= CLOSABLE * self.farthest:
                    self._close(y, float(m.clock[memory.START]) + h)
                return y
        return None

    def _on_polynomial(self, t: float) -> tuple[Array, Array]:
        """Increments, speeds and works, and accelerations, at the time t inside the accepted step.

        They lie on a polynomial through states of the step that are not close to a singular pose: over the whole step
        or, if that is not accurate, over a part of it around the time.
        """
        m, nv = self.stepper.memory, self.stepper.system.nv
        h = float(m.clock[memory.SIZE])
        x = (t - float(m.clock[memory.START])) / h
        for k in range(HALVINGS):
            a = float(np.clip(x - 0.5 ** (k + 1), 0.0, 1.0 - 0.5**k))
            curve = self._curve(a, a + 0.5**k)
            if len(curve.x) >= FEWEST and self._error(curve.doubt(x)) <= WORST:
                y, rate = curve.at(x)
                return y, rate[nv : 2 * nv] / h
        raise ConvergenceError(
            f"the state at t = {t:g} s, near a singular pose, is not found: the motion is not smooth in the step of "
            f"{h:.2g} s around it. Ask for outputs at other times, or use smaller tolerances."
        )

    def _curve(self, a: float, b: float) -> _Curve:
        """Polynomial over the part from a to b of the accepted step."""
        found = next((c for c in self.curves if (c.a, c.b) == (a, b)), None)
        if found is None:
            m, nv, h = self.stepper.memory, self.stepper.system.nv, float(self.stepper.memory.clock[memory.SIZE])
            inside = [(x, self._reachable_state(x * h, self._least)) for x in a + (b - a) * NODES]
            nodes = [(x, y) for x, y in inside if y is not None]
            if a == 0.0:
                nodes.insert(0, (0.0, m.y.copy()))
            if b == 1.0:
                end = difference(self.stepper.system, m.q, m.q1)
                nodes.append((1.0, np.concatenate([end, m.v1, m.new[2 * nv :]])))
            found = _Curve(a, b, nodes)
            self.curves.append(found)
        return found

    # --------------------------------------------------------------------------------------- singular poses

    def _jump(self, h: float) -> float:
        """Error assigned to the last step, of the time h, if it ends on another circuit than it starts on; else zero.

        An interval of the step between whose ends rows lose their independence is bisected until the ends meet in a
        singular pose, or do not. There may be several such intervals.
        """
        solver = self.solver
        start = _End(0.0, self.q, solver.orientation(solver.places[0]), solver.first)
        left = [(start, self._end(1.0, self.made), np.inf)]  # with the length of the interval that was divided
        for _ in range(MOST_PARTS):
            if not left:
                return 0.0
            before, after, whole = left.pop()
            if solver.rank_losses_between(before.orientation, after.orientation) == 0:
                continue
            apart, length = self._apart(before.q, after.q), after.share - before.share
            if apart <= JUMP:
                if not self._meet(before, after):
                    return JUMPED
                self.poses.append(State(self.t + before.share * h, before.q, np.zeros(self.stepper.system.nv)))
                continue
            if length < SHORTEST:
                return JUMPED
            expected = (self._expected(before, after, apart),) if length <= 0.5 * whole else ()
            middle = self._between(before.share, after.share, h, (*expected, *WHERE))
            if middle is None:
                return LANDED
            left += [(middle, after, length), (before, middle, length)]
        return JUMPED

    def _expected(self, before: _End, after: _End, apart: float) -> float:
        """Share of an interval near its singular pose, on the far side, if the indicator falls and rises linearly."""
        x = before.indicator / (before.indicator + after.indicator)
        aside = min(OVER * JUMP / apart, 0.25)
        return float(np.clip(x + aside if x < 0.5 else x - aside, aside, 1.0 - aside))

    def _end(self, share: float, made: Step) -> _End:
        return _End(share, made.q, self.solver.orientation(made.place), self.solver.indicator_at(made.place))

    def _apart(self, a: Array, b: Array) -> float:
        """Distance of two poses in natural units."""
        apart = difference(self.stepper.system, a, b) / self.stepper.memory.unit
        return float(np.abs(apart).max(initial=0.0))

    def _meet(self, before: _End, after: _End) -> bool:
        """Whether a singular pose lies between two neighbouring ends: the indicator falls to zero from the start.

        If it does not, the tangents have turned by a right angle against those at the start. Beyond that the step could
        lead anywhere: seen from the start, both circuits of a near miss are then on the other side.
        """
        slope = self.solver.first / max(self._apart(self.q, before.q), JUMP)
        return min(before.indicator, after.indicator) <= MET * slope * JUMP

    def _between(self, a: float, b: float, h: float, where: Sequence[float]) -> _End | None:
        """End of a step between the shares a and b of the time h, at the first part of this interval that has one."""
        for part in where:
            middle = a + part * (b - a)
            try:
                return self._end(middle, self.solver.take_steps(middle * h, (1.0 / COUNTS[-1],) * COUNTS[-1]))
            except ConvergenceError:
                continue
        return None

    def _error(self, difference: Array) -> float:
        """Error relative to the tolerances: positions in natural units, speeds relative to the fastest so far."""
        m, nv = self.stepper.memory, self.stepper.system.nv
        rtol, atol, fastest = (float(m.clock[k]) for k in (memory.RTOL, memory.ATOL, memory.FASTEST))
        apart = np.abs(difference[: 2 * nv].reshape(2, nv) / m.unit).max(axis=1, initial=0.0).tolist()
        scales = atol + rtol, atol + rtol * fastest
        return max(x / scale if scale > 0.0 else 0.0 for x, scale in zip(apart, scales, strict=True))

    def _powers(self, t: float, q: Array, v: Array) -> Array:
        """Powers of all forces at a state."""
        stepper = self.stepper
        if not stepper.sources:
            return np.zeros(0)
        w, m = stepper.views, stepper.memory
        w.t[0], w.q[:], w.v[:] = t, q, v
        status = stepper.accelerate(stepper.ints, stepper.floats, stepper.work)
        if status != FINE:
            raise stepper.failure(status)
        memory.note(stepper.ints, stepper.floats, stepper.work, m, np.zeros_like(m.y), 2)
        return np.array(m.k[2, 2 * stepper.system.nv :])


class Steps(Fixed):
    """Steps of one size, made by the formulation itself: for ``Momentum(order=...)``.

    Examples
    --------
    >>> Steps(step=1e-3).step
    0.001
    """

    name: ClassVar[str] = "steps"
    drives_steppers: ClassVar[bool] = True

    def method(self) -> Method:
        """Both ends of a step."""
        return ends_and_powers(0)

    def in_python(self, stepper: Stepper) -> Any:
        """One step of the formulation."""
        return SteppingDriver(stepper, extrapolate=False)


class Extrapolation(Adaptive):
    """Steps made by the formulation itself, four sizes of them extrapolated: adaptive, for ``Momentum()``.

    Examples
    --------
    >>> Extrapolation().method().order
    7
    """

    name: ClassVar[str] = "extrapolation"
    drives_steppers: ClassVar[bool] = True

    def method(self) -> Method:
        """Both ends of a step."""
        return ends_and_powers(ESTIMATE)

    def in_python(self, stepper: Stepper) -> Any:
        """Steps of four sizes."""
        return SteppingDriver(stepper, extrapolate=True)
