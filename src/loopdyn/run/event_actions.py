"""Actions of events: an impact at a limit, functions of users."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loopdyn.errors import LoopdynError
from loopdyn.loops.projection import metric, smallest_step
from loopdyn.system.system import State, System
from loopdyn.tree.functions import terms

Array = NDArray[np.float64]


def impact(system: System, state: State, row: Array, rate: float, unit: float, restitution: float, rank: int) -> Array:
    """Speeds after an impact that reverses the rate of a coordinate while loops stay closed.

    The change is the smallest one in the mass metric. `row` is the gradient of the coordinate by the speeds, `unit` its
    natural unit.

    Examples
    --------
    The speed of a single mass is reversed and halved:

    >>> import loopdyn as ld
    >>> system = ld.library.pendulum().compile()
    >>> impact(system, system.state(v={"A": -2.0}), np.array([1.0]), -2.0, 1.0, 0.5, 0)
    array([1.])
    """
    now, rows = terms(system, state), system.row_units
    J = np.vstack([now.J / rows[:, None], row / unit])
    r = np.append((now.J @ state.v + now.phi_t) / rows, (1.0 + restitution) * rate / unit)
    v: Array = state.v + smallest_step(J, r, metric(now.M), min(rank + 1, system.nv))
    return v


def apply(action: Callable[[State], State], state: State, name: str) -> State:
    """State after an action, at the same time."""
    after: Any = action(state)
    if not isinstance(after, State) or after.q.shape != state.q.shape or after.v.shape != state.v.shape:
        raise LoopdynError(f"event '{name}': its action must return a State of the same system.")
    return State(state.t, np.array(after.q, float), np.array(after.v, float))
