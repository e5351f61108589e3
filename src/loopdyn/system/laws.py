"""Laws of forces and drivers that are replaced from outside: by tables of a rollout, or by inputs of a simulation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from loopdyn.engine import records as rec
from loopdyn.errors import LoopdynError
from loopdyn.forces.base import Table
from loopdyn.quantities.expressions import opcodes as OP
from loopdyn.quantities.wording import nearest
from loopdyn.system.builder import build
from loopdyn.system.system import System

COMPONENTS = ("tx", "ty", "tz", "fx", "fy", "fz")  # laws of a force with components, in the order of its programs
MOTION = "motion"  # field of the law of a driver


class Law(NamedTuple):
    """Law of a force or driver, and the dimension of its value."""

    name: str  # of the force or driver
    program: int  # index among the programs of the force
    field: str  # in which its class keeps it: "torque", "force" or "motion"
    dimension: str

    @property
    def of_driver(self) -> bool:
        """Whether it is the motion of a driver."""
        return self.field == MOTION


def force_law(system: System, label: str) -> Law:
    """Law of a force by name, or by name and component ("push.fx"); raises if there is none that can be replaced."""
    name, _, component = label.partition(".")
    force = system.mechanism.forces.get(name)
    if force is None:
        raise LoopdynError(f"input '{label}': there is no force '{name}'. {nearest(name, system.mechanism.forces)}")
    laws = {key: getattr(force, key, None) for key in ("torque", "force")}
    parts = isinstance(laws["force"], tuple)
    if not any(x is not None for x in laws.values()) or parts != bool(component):
        hint = f"Name a component: {', '.join(f'{name}.{c}' for c in COMPONENTS)}." if parts else "Name a motor."
        raise LoopdynError(f"input '{label}': it has no law that can be replaced. {hint}")
    if parts and component not in COMPONENTS:
        raise LoopdynError(f"input '{label}': there is no component '{component}'. {nearest(component, COMPONENTS)}")
    program = COMPONENTS.index(component) if parts else 0
    field = ("torque" if program < 3 else "force") if parts else next(k for k, x in laws.items() if x is not None)
    return Law(name, program, field, field)


def driver_law(system: System, name: str) -> Law:
    """Motion of a driver."""
    joint = system.mechanism.drivers[name].joint
    return Law(name, 0, MOTION, system.labels.coordinates[joint].dimension)


def with_laws(system: System, laws: Mapping[Law, Table | float]) -> System:
    """System in which tables of time, or numbers, stand in place of laws; its arrays are its own."""
    m = system.mechanism.snapshot()
    for law, table in laws.items():
        elements: dict[str, Any] = m.drivers if law.of_driver else m.forces
        before = getattr(elements[law.name], law.field)
        after: Any = table
        if isinstance(before, tuple):
            after = tuple(table if n == law.program % 3 else x for n, x in enumerate(before))
        elements[law.name] = elements[law.name].model_copy(update={law.field: after})
    made = build(m, list(system.topology.cuts), counted=system.counted)
    if made.coordinates != system.coordinates:
        raise LoopdynError("the tree of the mechanism changes with its inputs. Compile it with cuts=[...].")
    return made.tolerating_as(system)


def constants_of(system: System, law: Law) -> int | None:
    """Index of the first constant of a law among those of all programs; None if a system does not have the law."""
    model = system.model
    if law.of_driver:
        if law.name not in system.constraint_rows:
            return None
        row = system.constraint_rows.index(law.name)
        program = int(model.linear[model.linear[:, rec.L_ROW] == row][0, rec.L_PROGRAM])
    else:
        if law.name not in system.forces:
            return None
        program = int(model.force[system.forces.index(law.name), rec.FORCE_PROGRAM]) + law.program
    code = model.code[model.program[program] : model.program[program + 1]]
    return int((code >> OP.BITS)[np.isin(code & OP.MASK, OP.READS_CONSTANTS)].min())
