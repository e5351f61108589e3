"""Profiles that are one curve of the fraction of the time: polynomials, cycloid, harmonic."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar, Literal

import numpy as np

from loopdyn.quantities.expressions import opcodes as OP
from loopdyn.quantities.profiles.base import Profile, ProfileNumbers, Steps, Travel, no_distance
from loopdyn.quantities.units import Scalar


class _Shaped(Profile):
    """Law of the fraction x of the time: given by `time`, or by a limit of `speed`, of `acceleration`, or of both."""

    peaks: ClassVar[tuple[float, float]]  # largest speed and acceleration for distance and time one

    distance: Scalar
    time: Scalar | None = None
    speed: Scalar | None = None
    acceleration: Scalar | None = None

    @staticmethod
    def shape(x: Steps) -> Steps:
        """Instructions for the fraction of the distance, from those for x."""
        raise NotImplementedError

    def travel(self, n: ProfileNumbers) -> Travel | None:
        """Travel with a linearly growing fraction of the time."""
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
            no_distance(n)
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
        """x minus a sine."""
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
        """Half of one minus the cosine."""
        cosine: Steps = [*x, (OP.SCALE, math.pi), (OP.COS, 0.0), (OP.SCALE, -0.5)]
        return [*cosine, (OP.CONSTANT, 0.5), (OP.ADD, 0.0)]
