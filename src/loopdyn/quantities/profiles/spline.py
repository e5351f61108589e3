"""Profile through given points."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np

from loopdyn.quantities.profiles.base import Array, Profile, ProfileNumbers, Travel
from loopdyn.quantities.units import Vec2


class Spline(Profile):
    """C2 curve of cubics through points (time, position), the first at time 0; `start` is added to positions.

    With ``ends="rest"`` it begins and ends at rest. With ``ends="periodic"`` speed and acceleration at the end are
    those at the start, for cycles that continue without a stop (``endless=True``); there are then no dwells and no
    return travel.

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

    def travel(self, n: ProfileNumbers) -> Travel | None:
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
        """Problem of the points: key, message and hint."""
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
        """Curve through the same points in reverse order."""
        times = np.append(there.knots, there.time)
        values = np.append(there.pieces[:, 0], there.distance)
        t = (there.time - times)[::-1]
        return t[:-1], _cubics(t, values[::-1], self.ends)


def _cubics(t: Array, x: Array, ends: str) -> Array:
    """Pieces (n - 1, 4) of the C2 spline through points, powers ascending."""
    from scipy.interpolate import CubicSpline  # slow to import, and most profiles need none of it

    if ends == "rest":
        return np.asarray(CubicSpline(t, x, bc_type="clamped").c[::-1].T, float)
    slope = (x[-1] - x[0]) / (t[-1] - t[0])  # continuing cycles: the periodic part is the deviation from uniform motion
    wave = x - x[0] - slope * t
    wave[-1] = 0.0
    pieces: Array = np.array(CubicSpline(t, wave, bc_type="periodic").c[::-1].T, float)
    pieces[:, 0] += x[0] + slope * t[:-1]
    pieces[:, 1] += slope
    return pieces
