"""Profiles with constant acceleration or constant jerk in phases."""

from __future__ import annotations

import math
from typing import ClassVar, Literal

from loopdyn.quantities.profiles.base import Profile, ProfileNumbers, Travel, joined, no_distance
from loopdyn.quantities.units import Scalar

THIRD = "1/3"  # fraction of the time in each ramp: the usual compromise between the largest speed and acceleration


class Trapezoid(Profile):
    """Constant acceleration, constant speed, constant braking.

    Either `time` with its fractions `ramp_up` and `ramp_down` (1/3 each), or the limits `speed` and `acceleration`
    (`deceleration` if braking differs), from which the shortest time follows; a short travel then has no phase of
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

    def travel(self, n: ProfileNumbers) -> Travel | None:
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
            no_distance(n)
            return None
        v = math.copysign(v, h)
        return joined(h, T, [(times[0], v / times[0], 0.0), (times[1], 0.0, 0.0), (times[2], -v / times[2], 0.0)])


class SCurve(Profile):
    """Trapezoid with limited jerk: the acceleration is itself a trapezoid, so that only the jerk jumps.

    Either `time` with the fraction `ramp` of it in each ramp (1/3) and the fraction `smooth` of a ramp in which the
    acceleration changes (1: it is never constant), or the limits `speed`, `acceleration` and `jerk`, from which the
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

    def travel(self, n: ProfileNumbers) -> Travel | None:
        """Seven phases: in a ramp of duration `Ta`, jerk acts for `Tj` at either end."""
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
            no_distance(n)
            return None
        a = h / (Ta + cruise) / (Ta - Tj)  # the peak speed of the travel, reached in one ramp
        j, flat = a / Tj, max(Ta - 2.0 * Tj, 0.0)
        up = [(Tj, 0.0, j), (flat, a, 0.0), (Tj, a, -j)]
        down = [(Tj, 0.0, -j), (flat, -a, 0.0), (Tj, -a, j)]
        return joined(h, T, [*up, (cruise, 0.0, 0.0), *down])
