"""Loads and powers of forces along a path."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from loopdyn.loops.reactions_along import States
from loopdyn.results.measures import Loads, Path
from loopdyn.system.measures import Quantity
from loopdyn.system.system import System
from loopdyn.tree import power
from loopdyn.tree.functions import add_user_forces

Array = NDArray[np.float64]


def force_loads(system: System, path: States, moved: bool) -> tuple[Array, Array]:
    """Loads (n, forces), and powers (n, sources) of all sources of work; `moved`: drivers or bases do work, too.

    Examples
    --------
    >>> import loopdyn as ld
    >>> m = ld.library.pendulum()
    >>> motor = m.add_motor("motor", "A", torque="2")
    >>> system = m.compile()
    >>> force_loads(system, States(*(np.zeros((1, *n)) for n in ((), (1,), (1,), (1,)))), False)[0]
    array([[2.]])
    """
    n, forces = len(path.t), len(system.forces)
    loads, powers = np.zeros((n, forces)), np.zeros((n, forces + power.N_OTHERS))
    work = system.work()
    w = system.open_work(work)
    for k in range(n):
        w.t[0], w.q[:], w.v[:], w.a[:] = path.t[k], path.q[k], path.v[k], path.a[k]
        w.tau[:] = 0.0
        add_user_forces(system, path.t[k], path.q[k], path.v[k], w.tau)
        power.power_of_forces(system.ints, system.floats, work, moved, powers[k], loads[k])
    return loads, powers


def own_loads(system: System, path: Path) -> Loads:
    """Loads and powers of forces along a path as terms of formulas, in the type of the path."""

    def loads(quantity: Quantity) -> NDArray[Any]:
        work, found = system.work(path.dtype), []
        w = system.open_work(work)
        for k in range(len(path.t)):
            powers, of = (np.zeros(len(system.forces) + n, path.dtype) for n in (power.N_OTHERS, 0))
            w.t[0], w.q[:], w.v[:], w.a[:], w.tau[:] = path.t[k], path.q[k], path.v[k], path.a[k], 0.0
            power.power_of_forces(system.ints, system.floats, work, False, powers, of)
            found.append((of if quantity.kind == "load" else powers)[quantity.index])
        return np.array(found)

    return loads
