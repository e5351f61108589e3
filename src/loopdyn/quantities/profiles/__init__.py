"""Motion profiles: rest-to-rest motions with dwells and repetition, as laws of time.

A profile can be used wherever a law of ``t`` is allowed, above all as the motion of a driver, in Python and in files:

    motion: {profile: trapezoid, distance: 90, time: 2, dwell_after: 0.5, back: true, cycles: 3}

Distances are in the units of the model, times in seconds. One cycle is: dwell before, travel, dwell after and, with
``back``, the return travel; the next cycle begins where the last one ended. Before and after the motion the coordinate
is constant. Every profile becomes a program of the stack machine of formulas (:mod:`loopdyn.quantities.expressions`),
so position, velocity and acceleration are closed forms.

The laws, for a travel h in the time T, with their largest speed in h/T and acceleration in h/T^2:

==================  ===========================================================  =============  ==================
`Trapezoid`         constant acceleration, constant speed, constant braking       by its ramps   by its ramps
`SCurve`            trapezoid with limited jerk: seven phases                     by its ramps   by its ramps
`Polynomial345`     10 x^3 - 15 x^4 + 6 x^5: no jump of acceleration              15/8           10/sqrt(3)
`Polynomial4567`    35 x^4 - 84 x^5 + 70 x^6 - 20 x^7: no jump of jerk            35/16          84 sqrt(5)/25
`Cycloidal`         x - sin(2 pi x)/(2 pi)                                        2              2 pi
`Harmonic`          (1 - cos(pi x))/2: acceleration jumps at both ends            pi/2           pi^2/2
`Spline`            a C2 curve through points                                     by its points  by its points
==================  ===========================================================  =============  ==================
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Tag

from loopdyn.quantities.profiles.base import Curve, Profile
from loopdyn.quantities.profiles.ramps import SCurve, Trapezoid
from loopdyn.quantities.profiles.shaped import Cycloidal, Harmonic, Polynomial345, Polynomial4567
from loopdyn.quantities.profiles.spline import Spline

AnyProfile = (
    Annotated[Trapezoid, Tag("trapezoid")]
    | Annotated[SCurve, Tag("s_curve")]
    | Annotated[Polynomial345, Tag("polynomial_345")]
    | Annotated[Polynomial4567, Tag("polynomial_4567")]
    | Annotated[Cycloidal, Tag("cycloidal")]
    | Annotated[Harmonic, Tag("harmonic")]
    | Annotated[Spline, Tag("spline")]
)

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
