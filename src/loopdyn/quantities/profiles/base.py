"""Base of all profiles: travel, dwells, repetition, the resulting curve, and the given numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from loopdyn.errors import ModelError
from loopdyn.quantities.expressions import Program, resolve_parameters
from loopdyn.quantities.expressions import opcodes as OP
from loopdyn.quantities.expressions.programs import Instruction, assemble
from loopdyn.quantities.units import Path, Resolver, Scalar, Spec, Units

Array = NDArray[np.float64]
Steps = list[Instruction]


@dataclass(frozen=True)
class Travel:
    """One travel: piecewise cubics in powers of the time since their knots; `shape` is applied to their value.

    Without a shape the cubics are the position, from 0 to `distance`; with one they are the fraction of the time.
    """

    knots: Array  # (n,) starts of the pieces, the first at 0
    pieces: Array  # (n, 4)
    time: float
    distance: float
    shape: Callable[[Steps], Steps] | None = None
    peaks: tuple[float, float] | None = None  # largest speed and acceleration; None: those of the cubics
    offset: float = 0.0  # position at the start of the travel, relative to that of the profile

    def largest(self) -> tuple[float, float]:
        """Largest speed and acceleration."""
        if self.peaks is not None:
            return self.peaks
        speed = acceleration = 0.0
        lengths = np.diff([*self.knots, self.time])
        for (_, c1, c2, c3), d in zip(self.pieces, lengths, strict=True):
            where = [0.0, d]
            if c3 != 0.0 and 0.0 < -c2 / (3.0 * c3) < d:  # the acceleration vanishes inside
                where.append(-c2 / (3.0 * c3))
            speed = max(speed, *(abs(c1 + x * (2.0 * c2 + 3.0 * c3 * x)) for x in where))
            acceleration = max(acceleration, *(abs(2.0 * c2 + 6.0 * c3 * x) for x in (0.0, d)))
        return float(speed), float(acceleration)


@dataclass(frozen=True)
class Curve:
    """Curve of a profile with its numbers, in the units of the model and seconds.

    Attributes
    ----------
    travel_time : float
        Duration of one travel, without dwells.
    cycle_time : float
        Duration of one cycle: dwells, travel and, with `back`, the return travel.
    duration : float
        Duration of all cycles; infinite for an endless profile.
    peak_speed, peak_acceleration : float
        Largest absolute values.
    corners : ndarray
        Times within a cycle at which a piece begins.
    """

    travel_time: float
    cycle_time: float
    duration: float
    peak_speed: float
    peak_acceleration: float
    corners: Array
    program: Program

    def at(self, t: ArrayLike) -> tuple[Array, Array, Array]:
        """Position, velocity and acceleration at one or many times.

        Examples
        --------
        >>> import loopdyn as ld
        >>> x, v, a = ld.profiles.Harmonic(distance=2.0, time=1.0).curve().at(0.5)
        >>> round(float(x), 6), round(float(v), 6)
        (1.0, 3.141593)
        """
        times = np.asarray(t, float)
        jets = np.array([self.program.jet([(float(x), 1.0, 0.0)]) for x in times.ravel()]).reshape(-1, 3)
        x, v, a = (jets[:, k].reshape(times.shape) for k in range(3))
        return x, v, a


class Profile(Spec):
    """Base of all profiles: start, dwells, repetition.

    Attributes
    ----------
    start : number or formula
        Position before the motion, 0 by default.
    dwell_before, dwell_after : number or formula
        Seconds of rest before and after each travel.
    back : bool
        Whether each cycle ends with the return travel; otherwise the next one continues in the same direction.
    cycles : number or formula
        Number of cycles, 1 by default.
    endless : bool
        Whether cycles repeat forever.
    """

    profile: str
    start: Scalar = 0.0
    dwell_before: Scalar = 0.0
    dwell_after: Scalar = 0.0
    back: bool = False
    cycles: Scalar = 1.0
    endless: bool = False

    def travel(self, n: ProfileNumbers) -> Travel | None:
        """One travel; None if a problem was recorded."""
        raise NotImplementedError

    def way_back(self, there: Travel) -> tuple[Array, Array]:
        """Knots and pieces of the return travel: the same ramps in the same order, reversed in direction."""
        end = 1.0 if there.shape is not None else there.distance
        pieces = -there.pieces
        pieces[:, 0] += end
        return there.knots, pieces

    def curve(self, parameters: Mapping[str, Any] | None = None) -> Curve:
        """Curve of the profile; its formulas may use these parameters.

        Raises
        ------
        ModelError
            Lists all problems.

        Examples
        --------
        >>> import loopdyn as ld
        >>> curve = ld.profiles.Trapezoid(distance=90, time=2, dwell_after=0.5, back=True).curve()
        >>> curve.duration, round(curve.peak_speed, 6), round(curve.peak_acceleration, 6)
        (4.5, 67.5, 101.25)
        """
        r = Resolver(resolve_parameters(parameters or {}), Units())
        found = self.resolve(r, f"profile '{self.profile}'", ())
        if r.problems or found is None:
            raise ModelError(r.problems)
        return found

    @property
    def duration(self) -> float:
        """Duration of all cycles in s, infinite for an endless profile; for a profile without formulas."""
        return self.curve().duration

    @property
    def peak_speed(self) -> float:
        """Largest speed; for a profile without formulas."""
        return self.curve().peak_speed

    @property
    def peak_acceleration(self) -> float:
        """Largest acceleration; for a profile without formulas."""
        return self.curve().peak_acceleration

    def resolve(self, r: Resolver, element: str, path: Path, variable: int = 0, scale: float = 1.0) -> Curve | None:
        """Curve as a function of the variable with this index; its program gives `scale` times the model's units."""
        n = ProfileNumbers(self, r, element, path)
        before, after = n.at_least_zero("dwell_before"), n.at_least_zero("dwell_after")
        start, cycles = n("start"), n("cycles")
        if math.isfinite(cycles) and (cycles < 1.0 or not cycles.is_integer()):
            n.problem("cycles", f"'cycles' is {cycles:g}", "Give a whole number, or endless: true.")
        there = self.travel(n)
        if n.wrong or there is None:
            return None
        cycle = before + there.time + after + (there.time if self.back else 0.0)
        end = 1.0 if there.shape is not None else there.distance
        knots, pieces = [before + there.knots], [there.pieces]
        if after > 0.0:
            knots.append(np.array([before + there.time]))
            pieces.append(np.array([[end, 0.0, 0.0, 0.0]]))
        if self.back:
            k, p = self.way_back(there)
            knots.append(before + there.time + after + k)
            pieces.append(p)
        last = 0.0 if self.back else end
        table = [*np.concatenate(knots), cycle], [[0.0] * 4, *np.concatenate(pieces), [last, 0.0, 0.0, 0.0]]
        spline = [float(len(table[0])), *np.asarray(table[0]).tolist(), *np.asarray(table[1]).ravel().tolist()]
        count = math.inf if self.endless else cycles
        steps = self._instructions(variable, there, cycle, count, (start + there.offset) * scale, scale)
        speed, acceleration = there.largest()
        corners = np.array(table[0])
        return Curve(there.time, cycle, count * cycle, speed, acceleration, corners, assemble(steps, spline))

    def _instructions(
        self, variable: int, there: Travel, cycle: float, count: float, start: float, scale: float
    ) -> Steps:
        """Instructions of start + scale*(travel within the cycle + travel of earlier cycles)."""
        clock: Steps = [(OP.VARIABLE, variable), (OP.CONSTANT, 0.0), (OP.MAX, 0.0)]
        if math.isfinite(count):
            clock += [(OP.CONSTANT, count * cycle), (OP.MIN, 0.0)]
        within = clock if count == 1.0 else [*clock, (OP.CONSTANT, cycle), (OP.MOD, 0.0)]
        size = scale * (1.0 if there.shape is None else there.distance)
        table: Steps = [*within, (OP.SPLINE, 0.0)]
        steps: Steps = [*(table if there.shape is None else there.shape(table)), (OP.SCALE, size)]
        if count != 1.0 and not self.back:
            whole = [*clock, *within, (OP.SUB, 0.0), (OP.SCALE, scale * there.distance / cycle)]
            steps += [*whole, (OP.ADD, 0.0)]
        return [*steps, (OP.CONSTANT, start), (OP.ADD, 0.0)]


class ProfileNumbers:
    """Numbers of a profile by the names of its fields; problems are recorded, and `wrong` is then true."""

    def __init__(self, profile: Profile, r: Resolver, element: str, path: Path):
        self.profile, self.r, self.element, self.path = profile, r, element, path
        self.before = len(r.problems)

    @property
    def wrong(self) -> bool:
        """Whether problems were recorded."""
        return len(self.r.problems) > self.before

    def problem(self, key: str, message: str, hint: str) -> None:
        """Record a problem of one field."""
        self.r.problem(self.element, message, hint, (*self.path, key))

    def __call__(self, key: str) -> float:
        """Value of a field; NaN, with the problem recorded, if it has none."""
        return self.r.scalar(getattr(self.profile, key), "number", self.element, (*self.path, key))

    def given(self, key: str) -> bool:
        """Whether an optional field is given."""
        return getattr(self.profile, key) is not None

    def at_least_zero(self, key: str) -> float:
        """Value of a field that must not be negative."""
        x = self(key)
        if x < 0.0:
            self.problem(key, f"'{key}' is {x:g}", "Give a number that is not negative.")
        return x

    def positive(self, key: str) -> float:
        """Value of a field that must be above zero."""
        x = self(key)
        if x <= 0.0:
            self.problem(key, f"'{key}' is {x:g}", "Give a positive number.")
        return x

    def share(self, key: str, most: float) -> float:
        """Value of a field that is a fraction: above zero, at most `most`."""
        x = self(key)
        if not math.isnan(x) and not 0.0 < x <= most * (1.0 + 1e-12):
            self.problem(key, f"'{key}' is {x:g}", f"Give a fraction above 0, at most {most:g}.")
        return min(x, most)

    def one_of(self, time: str, limits: Sequence[str], *, all_of: bool) -> bool:
        """Whether the time is given instead of the limits; both or neither is a problem."""
        there = [key for key in limits if self.given(key)]
        words = f"{', '.join(limits[:-1])} and {limits[-1]}" if all_of else " or ".join(limits)
        if self.given(time):
            for key in there:
                self.problem(key, f"'{key}' and '{time}' are both given", f"Give '{time}', or {words}.")
            return True
        if len(there) < (len(limits) if all_of else 1):
            self.problem(time, f"'{time}' is missing", f"Give '{time}', or {words}.")
        return False


def joined(distance: float, time: float, phases: Sequence[tuple[float, float, float]]) -> Travel:
    """Travel of phases (duration, acceleration at its start, jerk) from rest; phases without duration are left out."""
    knots, pieces = [], []
    t = x = v = 0.0
    for d, a, j in phases:
        if d > 0.0:
            knots.append(t)
            pieces.append([x, v, a / 2.0, j / 6.0])
            x += d * (v + d * (a / 2.0 + d * j / 6.0))
            v += d * (a + d * j / 2.0)
            t += d
    return Travel(np.array(knots), np.array(pieces), time, distance)


def no_distance(n: ProfileNumbers) -> None:
    """Record that the distance is zero."""
    n.problem(
        "distance",
        "the distance is zero",
        "Give a distance, or use a number for a constant coordinate.",
    )
