"""Remarks on a linearization: corners of laws, friction, limits, a state away from equilibrium."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from loopdyn.analysis.derivatives import Derivatives
from loopdyn.analysis.minimal_states import Chart
from loopdyn.errors import warn
from loopdyn.loops.continuation import largest
from loopdyn.thresholds import AT_LIMIT
from loopdyn.tree.joint_readings import coordinate
from loopdyn.tree.tables import check_tables, table_variable

Array = NDArray[np.float64]

CORNER = 1e-9  # fraction of the range of a table next to a corner that counts as at the corner
BALANCED = 1e-9  # accelerations in natural units, relative to those of the weight over the size, that are rounding


def remarks(at: Derivatives, chart: Chart) -> tuple[str, ...]:
    """Remarks; corners also warn, since the equations hold to one side only."""
    system, state = at.system, at.state
    check_tables(system, [state])
    notes = []
    for table in system.tables:
        knots, x = table.lookup.kinks, table_variable(system, table, state)
        if len(knots) and table.of != "t" and np.any(np.abs(knots - x) <= CORNER * np.ptp(table.lookup.knots)):
            notes.append(
                f"{table.element} is at a corner of its table of {table.of}: the equations hold to one side only"
            )
            warn(f"{system.name}: {notes[-1]}. Linearize next to the corner for the other side.")
    for name, force in system.mechanism.forces.items():
        if force.sticks():
            notes.append(f"friction '{name}' is linearized as the damper that it is at these speeds, it does not stick")
    for label, (low, high) in system.limits.items():
        x = coordinate(system, state, label)
        unit = 1.0 if system.labels.coordinates[label].dimension == "angle" else system.size
        if not low + AT_LIMIT * unit < x < high - AT_LIMIT * unit:
            notes.append(f"{label} is at its limit, which does not act here")
    rates = chart.axes.acceleration(at.a)[chart.speeds] / chart.units[chart.speeds]
    gravity = float(np.linalg.norm(system.model.gravity)) / system.size
    if largest(rates) > BALANCED * max(gravity, 1.0):
        notes.append("not an equilibrium: accelerations remain (residual), the equations hold about this motion")
    return tuple(notes)
