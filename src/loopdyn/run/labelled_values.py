"""Values by label at one state, in the units that the mechanism declares."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from loopdyn.analysis.measures import measures
from loopdyn.errors import LoopdynError
from loopdyn.loops.reactions import reactions
from loopdyn.loops.reactions_along import States
from loopdyn.results.force_loads import force_loads
from loopdyn.results.measures import Measured, Path
from loopdyn.system.labels import ACCELERATION, LOAD, SPEED
from loopdyn.system.system import State, System
from loopdyn.tree.joint_readings import measured

Array = NDArray[np.float64]


def value_of(system: System, label: str, state: State, a: Array) -> float:
    """Value of a label of ``system.labels``, or of a measure, at a closed state with accelerations `a`, declared units.

    Where accelerations are NaN, in a singular passage, so are reactions and loads of constraints.

    Examples
    --------
    >>> import loopdyn as ld
    >>> system = ld.library.pendulum().compile()
    >>> value_of(system, "A.speed", system.state(v={"A": 2.0}), np.zeros(1))
    2.0
    """
    if label in system.measures:
        return measures(system, state, a)[label]
    found = system.labels.find(label, "Simulation")
    if found.kind == "body":
        raise LoopdynError(f"'{label}' is a body, which has no single number. See ld.kinematics(system, sim.state).")
    if found.kind in ("reaction", "constraint load") and np.isnan(a).any():  # in a singular passage
        return float("nan")
    if found.kind == "reaction":
        return float(reactions(system, state, a)[found.element][label.rpartition(".")[2]])
    if found.kind == "constraint load":
        return float(reactions(system, state, a).multipliers[label.removesuffix(LOAD)])
    if found.kind in ("load", "power"):
        path = States(np.array([state.t]), state.q[None], state.v[None], a[None])
        return float(force_loads(system, path, False)[found.kind == "power"][0, found.index]) / found.factor
    if found.index >= 0:
        values = {"coordinate": state.q, "speed": state.v, "acceleration": a}[found.kind]
        return float(values[found.index]) / found.factor
    if found.kind == "acceleration":
        here = Path(np.array([state.t]), state.q[None], state.v[None], a[None], np.array([state.t]))
        name = label.removesuffix(ACCELERATION)
        return float(Measured(system, here).of_cut(found.kind, name, system.labels.speeds[name])[0]) / found.factor
    return measured(system, state, label.removesuffix(SPEED))[found.kind == "speed"] / found.factor
