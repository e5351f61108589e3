"""Motion profiles: how a drive goes from rest to rest, with dwells and repetition, as a law of time.

A profile stands wherever a law of ``t`` may stand, above all as the motion of a driver, in Python and in files:

    motion: {profile: trapezoid, distance: 90, time: 2, dwell_after: 0.5, back: true, cycles: 3}

Distances are in the units of the model, times in seconds. One cycle is: dwell before, travel, dwell after and, with
``back``, the travel back; the next cycle begins where the last one ended. Before and after the motion the coordinate
rests. Every profile becomes a program of the stack machine of formulas (:mod:`loopdyn.quantities.expressions`), so
position, velocity and acceleration are closed forms.

The laws, for a travel h in the time T, with their largest speed in h/T and acceleration in h/T^2:

==================  ===========================================================  =============  ==================
`Trapezoid`         constant acceleration, constant speed, constant braking       by its ramps   by its ramps
`SCurve`            the same with limited jerk: seven phases                      by its ramps   by its ramps
`Polynomial345`     10 x^3 - 15 x^4 + 6 x^5: no jump of acceleration              15/8           10/sqrt(3)
`Polynomial4567`    35 x^4 - 84 x^5 + 70 x^6 - 20 x^7: no jump of jerk            35/16          84 sqrt(5)/25
`Cycloidal`         x - sin(2 pi x)/(2 pi)                                        2              2 pi
`Harmonic`          (1 - cos(pi x))/2: acceleration jumps at both ends            pi/2           pi^2/2
`Spline`            a C2 curve through points                                     by its points  by its points
==================  ===========================================================  =============  ==================
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import Tag

from loopdyn.errors import ModelError
from loopdyn.quantities.expressions import Program, resolve_parameters
from loopdyn.quantities.expressions import opcodes as OP
from loopdyn.quantities.expressions.programs import Instruction, assemble
from loopdyn.quantities.units import Path, Resolver, Scalar, Spec, Units, Vec2

__all__ = [
    "AnyProfile",
    "Curve",
    "Cycloidal",
    "Harmonic",
    "Polynomial345",
    "Polynomial4567",
    "Profile",
    "SCurve",
    "Spline",
    "Trapezoid",
]

Array = NDArray[np.float64]
Steps = list[Instruction]

THIRD = "1/3"  # of the time, in each ramp: the usual compromise between the largest speed and acceleration


@dataclass(frozen=True)
class Travel:
    """One way: cubics in pieces, each in powers of the time since its knot; `shape` is applied to what they give.

    Without a shape the cubics are the position, from 0 to `distance`; with one they are the share of the time.
    """

    knots: Array  # (n,) where the pieces begin, the first at 0
    pieces: Array  # (n, 4)
    time: float
    distance: float
    shape: Callable[[Steps], Steps] | None = None
    peaks: tuple[float, float] | None = None  # largest speed and acceleration; None: those of the cubics
    offset: float = 0.0  # position at the start of the travel, beside that of the profile

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
    """A profile with its numbers: what it comes to, in the units of the model and seconds.

    Attributes
    ----------
    travel_time : float
        Of one way, without dwells.
    cycle_time : float
        Of one cycle: dwells, travel and, if asked for, the way back.
    duration : float
        Of all cycles; infinite for an endless profile.
    peak_speed, peak_acceleration : float
        Largest absolute values.
    corners : ndarray
        Times within a cycle at which another piece of it begins.
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
        >>> x, v, a = Harmonic(distance=2.0, time=1.0).curve().at(0.5)
        >>> round(float(x), 6), round(float(v), 6)
        (1.0, 3.141593)
        """
        times = np.asarray(t, float)
        jets = np.array([self.program.jet([(float(x), 1.0, 0.0)]) for x in times.ravel()]).reshape(-1, 3)
        x, v, a = (jets[:, k].reshape(times.shape) for k in range(3))
        return x, v, a


class Profile(Spec):
    """Base of all profiles: where it starts, dwells, repetition.

    Attributes
    ----------
    start : number or formula
        Position before the motion, 0 by default.
    dwell_before, dwell_after : number or formula
        Seconds of rest before and after each travel.
    back : bool
        Whether each cycle ends with the way back; otherwise the next one goes on in the same direction.
    cycles : number or formula
        How many, 1 by default.
    endless : bool
        Whether cycles go on for ever.
    """

    profile: str
    start: Scalar = 0.0
    dwell_before: Scalar = 0.0
    dwell_after: Scalar = 0.0
    back: bool = False
    cycles: Scalar = 1.0
    endless: bool = False

    def travel(self, n: Numbers) -> Travel | None:
        """One way; None if a problem was recorded."""
        raise NotImplementedError

    def way_back(self, there: Travel) -> tuple[Array, Array]:
        """Knots and pieces of the way back: the same ramps in the same order, the other way."""
        end = 1.0 if there.shape is not None else there.distance
        pieces = -there.pieces
        pieces[:, 0] += end
        return there.knots, pieces

    def curve(self, parameters: Mapping[str, Any] | None = None) -> Curve:
        """The profile with its numbers; formulas in it are of these parameters.

        Raises
        ------
        ModelError
            With all that is wrong.

        Examples
        --------
        >>> curve = Trapezoid(distance=90, time=2, dwell_after=0.5, back=True).curve()
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
        """Seconds of all cycles, infinite for an endless profile; of a profile without formulas."""
        return self.curve().duration

    @property
    def peak_speed(self) -> float:
        """Largest speed; of a profile without formulas."""
        return self.curve().peak_speed

    @property
    def peak_acceleration(self) -> float:
        """Largest acceleration; of a profile without formulas."""
        return self.curve().peak_acceleration

    def resolve(self, r: Resolver, element: str, path: Path, variable: int = 0, scale: float = 1.0) -> Curve | None:
        """The curve of the variable of this number, its program in `scale` times the units of the model."""
        n = Numbers(self, r, element, path)
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
        """start + scale*(travel within the cycle + what earlier cycles have covered)."""
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


class Numbers:
    """The numbers of a profile by the names of its fields; problems are recorded, and `wrong` is then true."""

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
        """Whether a field that may be left out is there."""
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
        """Value of a field that is a share: above zero, at most `most`."""
        x = self(key)
        if not math.isnan(x) and not 0.0 < x <= most * (1.0 + 1e-12):
            self.problem(key, f"'{key}' is {x:g}", f"Give a share above 0, at most {most:g}.")
        return min(x, most)

    def one_of(self, time: str, limits: Sequence[str], *, all_of: bool) -> bool:
        """Whether the time is given, and not the limits; both or neither is a problem."""
        there = [key for key in limits if self.given(key)]
        words = f"{', '.join(limits[:-1])} and {limits[-1]}" if all_of else " or ".join(limits)
        if self.given(time):
            for key in there:
                self.problem(key, f"'{key}' and '{time}' are both given", f"Give '{time}', or {words}.")
            return True
        if len(there) < (len(limits) if all_of else 1):
            self.problem(time, f"'{time}' is missing", f"Give '{time}', or {words}.")
        return False


def _joined(distance: float, time: float, phases: Sequence[tuple[float, float, float]]) -> Travel:
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


class Trapezoid(Profile):
    """Constant acceleration, constant speed, constant braking.

    Either `time` with the shares `ramp_up` and `ramp_down` of it (1/3 each), or the limits `speed` and `acceleration`
    (`deceleration` where braking differs), from which the shortest time follows; a short travel then has no phase of
    constant speed.

    Examples
    --------
    >>> Trapezoid(distance=0.3, speed=0.5, acceleration=2.0).duration
    0.85
    """

    label: ClassVar[str] = "profile 'trapezoid'"

    profile: Literal["trapezoid"] = "trapezoid"
    distance: Scalar
    time: Scalar | None = None
    ramp_up: Scalar = THIRD
    ramp_down: Scalar = THIRD
    speed: Scalar | None = None
    acceleration: Scalar | None = None
    deceleration: Scalar | None = None

    def travel(self, n: Numbers) -> Travel | None:
        """Three phases."""
        h = n("distance")
        size = abs(h)
        if n.one_of("time", ("speed", "acceleration"), all_of=True):
            if n.given("deceleration"):
                n.problem("deceleration", "'deceleration' and 'time' are both given", "Use ramp_down with a time.")
            T = n.positive("time")
            up = n.share("ramp_up", 1.0)
            down = n.share("ramp_down", 1.0)
            if up + down > 1.0 + 1e-12:
                n.problem("ramp_down", f"ramp_up and ramp_down add up to {up + down:g}", "Give 1 or less together.")
            if n.wrong:
                return None
            times = (up * T, max((1.0 - up - down) * T, 0.0), down * T)
            v = size / (times[0] / 2.0 + times[1] + times[2] / 2.0)
        else:
            if n.wrong:
                return None
            v, a = n.positive("speed"), n.positive("acceleration")
            b = n.positive("deceleration") if n.given("deceleration") else a
            if n.wrong:
                return None
            v = min(v, math.sqrt(2.0 * size * a * b / (a + b)))  # the whole travel in both ramps
            cruise = size / v - v / (2.0 * a) - v / (2.0 * b) if size > 0.0 else 0.0
            times = (v / a, max(cruise, 0.0), v / b)
            T = math.fsum(times)
        if size == 0.0 or T == 0.0:
            _no_distance(n)
            return None
        v = math.copysign(v, h)
        return _joined(h, T, [(times[0], v / times[0], 0.0), (times[1], 0.0, 0.0), (times[2], -v / times[2], 0.0)])


def _no_distance(n: Numbers) -> None:
    n.problem("distance", "the distance is zero", "Give the way to go; for a coordinate that rests, a number does.")


class SCurve(Profile):
    """A trapezoid with limited jerk: the acceleration is itself a trapezoid, so that nothing jumps but the jerk.

    Either `time` with the share `ramp` of it in each ramp (1/3) and the share `smooth` of a ramp in which the
    acceleration changes (1: it never stays constant), or the limits `speed`, `acceleration` and `jerk`, from which the
    shortest time follows.

    Examples
    --------
    >>> SCurve(distance=0.5, speed=1.0, acceleration=10.0, jerk=100.0).duration
    0.7
    """

    label: ClassVar[str] = "profile 's_curve'"

    profile: Literal["s_curve"] = "s_curve"
    distance: Scalar
    time: Scalar | None = None
    ramp: Scalar = THIRD
    smooth: Scalar = 1.0
    speed: Scalar | None = None
    acceleration: Scalar | None = None
    jerk: Scalar | None = None

    def travel(self, n: Numbers) -> Travel | None:
        """Seven phases: of a ramp `Ta`, jerk acts for `Tj` at either end."""
        h = n("distance")
        size = abs(h)
        if n.one_of("time", ("speed", "acceleration", "jerk"), all_of=True):
            T, ramp, smooth = n.positive("time"), n.share("ramp", 0.5), n.share("smooth", 1.0)
            if n.wrong:
                return None
            Ta, Tj, cruise = ramp * T, smooth * ramp * T / 2.0, max((1.0 - 2.0 * ramp) * T, 0.0)
        else:
            if n.wrong:
                return None
            v, a, j = n.positive("speed"), n.positive("acceleration"), n.positive("jerk")
            if n.wrong:
                return None
            Tj = min(a / j, math.sqrt(v / j))  # v is reached before a is, or not
            Ta = v / (j * Tj) + Tj
            cruise = size / v - Ta
            if cruise < 0.0:  # v is not reached: both ramps make up the travel, with a reached or not
                cruise, Tj = 0.0, min(a / j, (size / (2.0 * j)) ** (1.0 / 3.0))
                Ta = 2.0 * Tj if Tj < a / j else Tj / 2.0 + math.sqrt(Tj * Tj / 4.0 + size / a)
            T = 2.0 * Ta + cruise
        if size == 0.0 or T == 0.0:
            _no_distance(n)
            return None
        a = h / (Ta + cruise) / (Ta - Tj)  # the speed that the travel takes, reached in one ramp
        j, flat = a / Tj, max(Ta - 2.0 * Tj, 0.0)
        up = [(Tj, 0.0, j), (flat, a, 0.0), (Tj, a, -j)]
        down = [(Tj, 0.0, -j), (flat, -a, 0.0), (Tj, -a, j)]
        return _joined(h, T, [*up, (cruise, 0.0, 0.0), *down])


class _Shaped(Profile):
    """A law of the share x of the time: either the `time`, or a limit of `speed`, of `acceleration`, or of both."""

    peaks: ClassVar[tuple[float, float]]  # largest speed and acceleration for distance and time one

    distance: Scalar
    time: Scalar | None = None
    speed: Scalar | None = None
    acceleration: Scalar | None = None

    @staticmethod
    def shape(x: Steps) -> Steps:
        """Instructions for the share of the distance, from those for x."""
        raise NotImplementedError

    def travel(self, n: Numbers) -> Travel | None:
        """The share of the time grows evenly."""
        h, T = n("distance"), 0.0
        if n.one_of("time", ("speed", "acceleration"), all_of=False):
            T = n.positive("time")
        else:
            limits = [n.positive(key) if n.given(key) else math.inf for key in ("speed", "acceleration")]
            if n.wrong:
                return None
            T = max(self.peaks[0] * abs(h) / limits[0], math.sqrt(self.peaks[1] * abs(h) / limits[1]))
        if n.wrong:
            return None
        if h == 0.0:
            _no_distance(n)
            return None
        largest = self.peaks[0] * abs(h) / T, self.peaks[1] * abs(h) / T**2
        return Travel(np.zeros(1), np.array([[0.0, 1.0 / T, 0.0, 0.0]]), T, h, self.shape, largest)


def _polynomial(x: Steps, first: int, factors: Sequence[float]) -> Steps:
    """x^first (f0 + f1 x + f2 x^2 + ...), by Horner's rule."""
    steps: Steps = [(OP.CONSTANT, factors[-1])]
    for factor in reversed(factors[:-1]):
        steps += [*x, (OP.MUL, 0.0), (OP.CONSTANT, factor), (OP.ADD, 0.0)]
    return [*steps, *x, (OP.POWER, first), (OP.MUL, 0.0)]


class Polynomial345(_Shaped):
    """10 x^3 - 15 x^4 + 6 x^5: speed and acceleration are zero at both ends.

    Examples
    --------
    >>> Polynomial345(distance=1.0, time=2.0).peak_speed
    0.9375
    """

    label: ClassVar[str] = "profile 'polynomial_345'"
    peaks: ClassVar[tuple[float, float]] = (15.0 / 8.0, 10.0 / math.sqrt(3.0))

    profile: Literal["polynomial_345"] = "polynomial_345"

    @staticmethod
    def shape(x: Steps) -> Steps:
        """The polynomial."""
        return _polynomial(x, 3, (10.0, -15.0, 6.0))


class Polynomial4567(_Shaped):
    """35 x^4 - 84 x^5 + 70 x^6 - 20 x^7: speed, acceleration and jerk are zero at both ends.

    Examples
    --------
    >>> Polynomial4567(distance=1.0, speed=2.1875).duration
    1.0
    """

    label: ClassVar[str] = "profile 'polynomial_4567'"
    peaks: ClassVar[tuple[float, float]] = (35.0 / 16.0, 84.0 * math.sqrt(5.0) / 25.0)

    profile: Literal["polynomial_4567"] = "polynomial_4567"

    @staticmethod
    def shape(x: Steps) -> Steps:
        """The polynomial."""
        return _polynomial(x, 4, (35.0, -84.0, 70.0, -20.0))


class Cycloidal(_Shaped):
    """x - sin(2 pi x)/(2 pi): the acceleration is a sine and zero at both ends.

    Examples
    --------
    >>> Cycloidal(distance=90, time=0.5).peak_speed
    360.0
    """

    label: ClassVar[str] = "profile 'cycloidal'"
    peaks: ClassVar[tuple[float, float]] = (2.0, 2.0 * math.pi)

    profile: Literal["cycloidal"] = "cycloidal"

    @staticmethod
    def shape(x: Steps) -> Steps:
        """The share less a sine."""
        turn = 2.0 * math.pi
        return [*x, *x, (OP.SCALE, turn), (OP.SIN, 0.0), (OP.SCALE, 1.0 / turn), (OP.SUB, 0.0)]


class Harmonic(_Shaped):
    """(1 - cos(pi x))/2: the projection of a circular motion; the acceleration jumps at both ends.

    Examples
    --------
    >>> round(Harmonic(distance=1.0, time=1.0).peak_acceleration, 6)
    4.934802
    """

    label: ClassVar[str] = "profile 'harmonic'"
    peaks: ClassVar[tuple[float, float]] = (math.pi / 2.0, math.pi**2 / 2.0)

    profile: Literal["harmonic"] = "harmonic"

    @staticmethod
    def shape(x: Steps) -> Steps:
        """Half of one less the cosine."""
        cosine: Steps = [*x, (OP.SCALE, math.pi), (OP.COS, 0.0), (OP.SCALE, -0.5)]
        return [*cosine, (OP.CONSTANT, 0.5), (OP.ADD, 0.0)]


class Spline(Profile):
    """A C2 curve of cubics through points (time, position), the first time being 0; `start` is added to positions.

    With ``ends="rest"`` it begins and ends at rest. With ``ends="periodic"`` speed and acceleration at the end are
    those at the start, for cycles that go on without a stop (``endless=True``); there are then no dwells and no way
    back.

    Examples
    --------
    >>> x, v, a = Spline(points=[(0, 0), (1, 30), (3, 90)]).curve().at([0.0, 1.0, 3.0])
    >>> x.tolist(), v[[0, 2]].tolist()
    ([0.0, 30.0, 90.0], [0.0, 0.0])
    """

    label: ClassVar[str] = "profile 'spline'"

    profile: Literal["spline"] = "spline"
    points: tuple[Vec2, ...]
    ends: Literal["rest", "periodic"] = "rest"

    def travel(self, n: Numbers) -> Travel | None:
        """Cubics between the points."""
        rows = [n.r.vector(p, "number", n.element, (*n.path, "points", k)) for k, p in enumerate(self.points)]
        if n.wrong:
            return None
        fault = self._fault(np.array(rows).reshape(-1, 2), n("dwell_before") + n("dwell_after"))
        if fault is not None:
            n.problem(*fault)
            return None
        t, x = np.array(rows).T
        offset = float(x[0])
        pieces = _cubics(t, x, self.ends)
        pieces[:, 0] -= offset
        return Travel(t[:-1], pieces, float(t[-1]), float(x[-1]) - offset, offset=offset)

    def _fault(self, points: Array, dwells: float) -> tuple[str, str, str] | None:
        """What is wrong with the points: key, message and hint."""
        if len(points) < 2:
            return "points", f"{len(points)} point(s) are given", "Give two or more: [[0, 0], [1, 90]]."
        t, x = points.T
        if t[0] != 0.0:
            return "points", f"the first point is at t = {t[0]:g}", "Begin at 0, and use dwell_before."
        back = np.flatnonzero(np.diff(t) <= 0.0)
        if len(back):
            what = f"times must increase, but {t[back[0] + 1]:g} follows {t[back[0]]:g}"
            return "points", what, "Sort the points and remove doubles."
        if np.ptp(x) == 0.0:
            return "points", "all points have the same position", "Give points that differ."
        if self.ends == "periodic" and (self.back or dwells > 0.0):
            return "ends", "a periodic spline has no dwells and no way back", "Use ends: rest with them."
        if self.ends == "periodic" and not self.endless:
            return "ends", "a periodic spline would end at full speed", "Give endless: true, or use ends: rest."
        return None

    def way_back(self, there: Travel) -> tuple[Array, Array]:
        """Through the same points in reverse order."""
        times = np.append(there.knots, there.time)
        values = np.append(there.pieces[:, 0], there.distance)
        t = (there.time - times)[::-1]
        return t[:-1], _cubics(t, values[::-1], self.ends)


def _cubics(t: Array, x: Array, ends: str) -> Array:
    """Pieces (n - 1, 4) of the C2 spline through points, powers ascending."""
    from scipy.interpolate import CubicSpline  # slow to import, and most profiles need none of it

    if ends == "rest":
        return np.asarray(CubicSpline(t, x, bc_type="clamped").c[::-1].T, float)
    slope = (x[-1] - x[0]) / (t[-1] - t[0])  # cycles that go on: what repeats is the rest beside an even motion
    wave = x - x[0] - slope * t
    wave[-1] = 0.0
    pieces: Array = np.array(CubicSpline(t, wave, bc_type="periodic").c[::-1].T, float)
    pieces[:, 0] += x[0] + slope * t[:-1]
    pieces[:, 1] += slope
    return pieces


AnyProfile = (
    Annotated[Trapezoid, Tag("trapezoid")]
    | Annotated[SCurve, Tag("s_curve")]
    | Annotated[Polynomial345, Tag("polynomial_345")]
    | Annotated[Polynomial4567, Tag("polynomial_4567")]
    | Annotated[Cycloidal, Tag("cycloidal")]
    | Annotated[Harmonic, Tag("harmonic")]
    | Annotated[Spline, Tag("spline")]
)
