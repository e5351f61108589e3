"""States between the outputs of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from loopdyn.integrators.memory import rates
from loopdyn.system.system import State, System
from loopdyn.tree.functions import difference, increment

if TYPE_CHECKING:
    from loopdyn.results.run import Trajectory

Array = NDArray[np.float64]

TURNS = 12  # corrections of speeds whose rates are known
SMALL = 1e-4  # fraction of an output interval for differences of rates; its square is the relative error


def between(s: System, p: Trajectory, k: int, t: float) -> State:
    """State at a time between outputs k and k + 1: a curve of degree five through q, v and a of both."""
    h = float(p.t[k + 1] - p.t[k])
    x = (t - p.t[k]) / h
    xi = difference(s, p.q[k], p.q[k + 1])
    v0, a0 = _rates(s, np.zeros(s.nv), p.v[k], p.a[k], h)
    v1, a1 = _rates(s, xi, p.v[k + 1], p.a[k + 1], h)
    b = np.array([xi - h * v0 - h * h / 2 * a0, h * (v1 - v0 - h * a0), h * h * (a1 - a0)])
    c = np.array([[10.0, -4.0, 0.5], [-15.0, 7.0, -1.0], [6.0, -3.0, 0.5]]) @ b
    moved = h * x * v0 + (h * x) ** 2 / 2 * a0 + x**3 * (c[0] + x * (c[1] + x * c[2]))
    rate = v0 + h * x * a0 + x * x / h * (3.0 * c[0] + x * (4.0 * c[1] + x * 5.0 * c[2]))
    v, found = rate.copy(), np.empty(s.nv)
    for _ in range(TURNS):  # rates differ from speeds by half the rotation within an interval: fast convergence
        rates(s.ints, moved, v, found)
        v += rate - found
    return State(float(t), increment(s, p.q[k], moved), v)


def _rates(system: System, xi: Array, v: Array, a: Array, h: float) -> tuple[Array, Array]:
    """First and second derivative of increments xi at speeds v and accelerations a: v and a except for quaternions."""
    d = SMALL * h
    first, ahead, behind = (np.empty(system.nv) for _ in range(3))
    rates(system.ints, xi, v, first)
    rates(system.ints, xi + d * first, v + d * a, ahead)
    rates(system.ints, xi - d * first, v - d * a, behind)
    return first, (ahead - behind) / (2.0 * d)
