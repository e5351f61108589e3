"""Whether the equations of motion depend on time, and on the number of full turns of angles."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from loopdyn.engine import records as rec
from loopdyn.quantities.expressions import opcodes as OP
from loopdyn.system.system import System


def _reads(system: System, program: int, variable: int) -> bool:
    """Whether a program of the frozen arrays reads a variable."""
    model = system.model
    code = model.code[model.program[program] : model.program[program + 1]]
    return bool(np.any((code & OP.MASK == OP.VARIABLE) & (code >> OP.BITS == variable)))


def moves_by_itself(system: System) -> bool:
    """Whether drivers or bases have, or may have, a prescribed motion: constraints then do work."""
    model = system.model
    if system.mechanism.user_constraints or not system.affine:
        return True  # whether they do is not known
    programs = [*model.base_programs.ravel(), *model.cut[:, rec.C_PROGRAM], *model.linear[:, rec.L_PROGRAM]]
    return any(_reads(system, int(k), 0) for k in programs if k >= 0)


def depends_on_time(system: System) -> bool:
    """Whether the equations may depend on time explicitly, and so may have a jump at some time."""
    model, users = system.model, system.mechanism.user_forces or system.mechanism.user_constraints
    return bool(users) or any(_reads(system, k, 0) for k in range(len(model.program) - 1))


def angles_to_wrap(system: System) -> NDArray[np.int64]:
    """Coordinates that are angles from which whole turns can be subtracted: nothing depends on their number."""
    if system.mechanism.user_forces or system.mechanism.user_constraints:
        return np.zeros(0, np.int64)
    angles = {
        j.q0 + k
        for j in system.joints.values()
        if j.in_tree
        for k in range(len(j.spec.dimensions))
        if j.spec.is_periodic(k)
    }
    model = system.model
    m = system.mechanism
    read = {label for part in (*m.forces.values(), *m.contacts.values()) for label in part.reads()}
    angles -= {k for k, label in enumerate(system.coordinates) if label in read}
    angles -= {int(c) for cut, _, c in model.entry if cut < 0}
    angles -= {int(c) for body, cut, _, c in model.term if body < 0 and cut < 0}
    angles -= set(model.path[:, 0].tolist())
    return np.array(sorted(angles), np.int64)
