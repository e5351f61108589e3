"""Values by label at one state, in the units that the mechanism declares."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from loopdyn.engine import records as rec
from loopdyn.errors import LoopdynError
from loopdyn.joints.base import COMPONENTS
from loopdyn.loops.reactions import freedom_rate, reactions
from loopdyn.quantities.wording import nearest
from loopdyn.run.locking import coordinate
from loopdyn.system.system import State, System
from loopdyn.tree import power
from loopdyn.tree.functions import add_user_forces, body_motion

Array = NDArray[np.float64]

SPEED, ACCELERATION, LOAD = "speed", "acceleration", "load"


def value_of(system: System, label: str, state: State, a: Array) -> float:
    """Value of a label at a closed state with accelerations `a`, in the units of the mechanism.

    Coordinates ("A"), speeds ("A.speed", or the label of a speed) and accelerations ("A.acceleration"), components of
    reactions ("C.fx") and loads of forces, constraints and drivers ("motor", "motor.load").
    """
    known, units = system.labels, system.units
    element, _, what = label.rpartition(".")
    if label in known.coordinates:
        return _coordinate(system, label, state) / units.factor(known.coordinates[label].dimension)
    if label in known.speeds or (what == SPEED and element in known.speeds):
        label = label if label in known.speeds else element
        return _speed(system, label, state) / units.factor(known.speeds[label].dimension)
    if what == ACCELERATION and element in known.speeds and known.speeds[element].place >= 0:
        found = known.speeds[element]
        return float(a[found.place]) / units.factor(found.dimension)
    if what in COMPONENTS and element in system.mechanism.joints:
        wrench = reactions(system, state, a)[element]
        return wrench[what] / units.factor("torque" if COMPONENTS.index(what) < 3 else "force")
    name = element if what == LOAD else label
    if name in system.forces:
        return _load(system, name, state, a)
    others = _other_rows(system)
    if name in others:
        return reactions(system, state, a).multipliers[name] / units.factor(others[name])
    raise LoopdynError(f"there is no '{label}'. {nearest(label, labels_of(system))}")


def labels_of(system: System) -> list[str]:
    """All labels that :func:`value_of` knows."""
    known, joints = system.labels, system.mechanism.joints
    speeds = [label for label in known.speeds if label not in known.coordinates]
    rates = [f"{label}.{what}" for label in known.speeds for what in (SPEED, ACCELERATION)]
    loads = [f"{name}.{LOAD}" for name in (*system.forces, *_other_rows(system))]
    return [*known.coordinates, *speeds, *rates, *(f"{j}.{c}" for j in joints for c in COMPONENTS), *loads]


def _coordinate(system: System, label: str, state: State) -> float:
    found = system.labels.coordinates[label]
    return float(state.q[found.place]) if found.place >= 0 else coordinate(system, state, label)


def _speed(system: System, label: str, state: State) -> float:
    found = system.labels.speeds[label]
    if found.place >= 0:
        return float(state.v[found.place])
    return freedom_rate(system, state, body_motion(system, state), found.joint, found.k)[1]


def _other_rows(system: System) -> dict[str, str]:
    """Rows of constraints and drivers, with the dimensions of their loads."""
    joints = sum(len(j.spec.rows_when_cut) for j in system.joints.values() if not j.in_tree)
    dimensions = ("torque" if d == "angle" else "force" for d in system.row_dimensions[joints:])
    return dict(zip(system.constraint_rows[joints:], dimensions, strict=True))


def _load(system: System, name: str, state: State, a: Array) -> float:
    """Load of a force, see `Run.loads`."""
    n, work = system.forces.index(name), system.work()
    w = system.open_work(work)
    w.t[0], w.q[:], w.v[:], w.a[:] = state.t, state.q, state.v, a
    add_user_forces(system, state.t, state.q, state.v, w.tau)
    loads, powers = np.zeros(len(system.forces)), np.zeros(len(system.forces) + power.N_OTHERS)
    power.power_of_forces(system.ints, system.floats, work, False, powers, loads)
    turns = bool(system.model.force[n, rec.FORCE_TORQUE])
    return float(loads[n]) / system.units.factor("torque" if turns else "force")
