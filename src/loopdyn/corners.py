"""Times at which motion profiles have corners: steps of an integrator end there, lest they jump over a short motion."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from loopdyn.errors import LoopdynError
from loopdyn.expressions import resolve_parameters
from loopdyn.model import Mechanism
from loopdyn.profiles import Profile
from loopdyn.quantities import Resolver

Array = NDArray[np.float64]

MOST = 1_000_000  # corners of a profile in a run; each ends a step


def corners(mechanism: Mechanism, start: float, end: float) -> Array:
    """Times (n,) in s between `start` and `end` at which a profile of the mechanism begins another piece, ascending.

    Examples
    --------
    >>> import loopdyn as ld
    >>> m = ld.library.pendulum()
    >>> name = m.add_driver("d", "A", ld.profiles.Cycloidal(distance=1.0, time=0.5, dwell_before=0.2))
    >>> corners(m, 0.0, 10.0).tolist()
    [0.2, 0.7]
    """
    numbers = Resolver(resolve_parameters(mechanism.parameters), mechanism.units)
    found = [t for p in _profiles(mechanism) for t in _of_profile(p, numbers, start, end)]
    return np.unique(np.array(found, float))


def _profiles(part: Any) -> Iterator[Profile]:
    """All profiles in a model."""
    if isinstance(part, Profile):
        yield part
    elif isinstance(part, BaseModel):
        for name in type(part).model_fields:
            yield from _profiles(getattr(part, name))
    elif isinstance(part, dict):
        for value in part.values():
            yield from _profiles(value)


def _of_profile(profile: Profile, r: Resolver, start: float, end: float) -> Iterator[float]:
    curve = profile.resolve(r, "profile", ())
    if curve is None:
        return  # compiling has said what is wrong
    first = max(0.0, np.floor(start / curve.cycle_time))
    last = np.ceil(min(end, curve.duration) / curve.cycle_time)
    if (last - first) * len(curve.corners) > MOST:
        raise LoopdynError(
            f"the profile '{profile.profile}' repeats every {curve.cycle_time:g} s, {last - first:.3g} times between "
            f"{start:g} and {end:g} s, and a step must end at each of its corners. Check 'time' and 'cycles', or ask "
            "for less time."
        )
    for k in range(int(first), int(last)):
        yield from (float(t) for t in k * curve.cycle_time + curve.corners if start < t < end)
