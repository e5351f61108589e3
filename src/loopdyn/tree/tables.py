"""Variables at which the laws of forces read their tables; warnings and errors outside the range of a table."""

from __future__ import annotations

from collections.abc import Iterable

from loopdyn.engine.jit import kernel
from loopdyn.engine.records import (
    FORCE_COORDINATE,
    FORCE_CUT,
    FORCE_FREEDOM,
    FORCE_ON,
    ON_FREEDOM,
    open_model,
    open_work,
)
from loopdyn.errors import LoopdynError, warn
from loopdyn.forces.dispatch import act
from loopdyn.forces.measured import put_terms
from loopdyn.system.system import State, System, TableUse
from loopdyn.tree.kinematics import kinematics


@kernel
def read_law(ints, floats, work, n):
    """Run the law of force n at (t, q, v) in `work`; the variables of its program are then in the jets."""
    model, data = open_model(ints, floats), open_work(ints, work)
    kinematics(model, data)
    data.jets[:, :] = 0.0
    put_terms(model, data)
    act(model, data, n)


def table_place(system: System, table: TableUse) -> int | None:
    """Index of the variable of a table among t, all q and all v of the tree; None if it is none of them."""
    k = table.lookup.variable
    if table.force < 0 or k == 0:
        return 0
    if k < 0:
        return None  # of a measure
    force = system.model.force[table.force]
    if force[FORCE_ON] != ON_FREEDOM or force[FORCE_CUT] >= 0:
        return None
    of_position = force[FORCE_COORDINATE] >= 0 and k == 1  # without a scalar coordinate, the speed comes after t
    return int(1 + force[FORCE_COORDINATE] if of_position else 1 + system.nq + force[FORCE_FREEDOM])


def table_variable(system: System, table: TableUse, state: State) -> float:
    """Value of the variable of a table at a state, SI; of a measure in the units of the model."""
    place = table_place(system, table)
    if place is not None:
        return float([state.t, *state.q, *state.v][place])
    work = system.work()
    w = system.open_work(work)
    w.t[0], w.q[:], w.v[:] = state.t, state.q, state.v
    read_law(system.ints, system.floats, work, table.force)
    entry = table.lookup.entry
    return float(w.jets[table.lookup.variable, 0]) if entry is None else entry.evaluate(w.jets[:, 0].tolist())


def check_tables(system: System, states: Iterable[State]) -> None:
    """Warn, once per table, if a state is outside the range of a table; raise where that is an error."""
    watched = [table for table in system.tables if table.lookup.outside != "extend"]
    for state in states if watched else ():
        for table in list(watched):
            x = table_variable(system, table, state)
            if table.lookup.left_by(x):
                leave_table(table, f": {table.of} = {x * table.lookup.scale:.6g}")
                watched.remove(table)


def leave_table(table: TableUse, where: str) -> None:
    """Warn that the range of a table is left, unless its law is extended there; raise where that is an error."""
    if table.lookup.outside == "error":
        raise LoopdynError(table.left(where))
    if table.lookup.outside == "hold":
        warn(table.left(where))
