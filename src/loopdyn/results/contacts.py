"""Gaps, forces and impulses of contacts along a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from loopdyn.loops.one_sided import gaps
from loopdyn.system.labels import FORCE, GAP, Label
from loopdyn.system.sides import all_sides
from loopdyn.system.system import State

if TYPE_CHECKING:
    from loopdyn.results.run import Run

Array = NDArray[np.float64]


def contact_values(run: Run, label: Label) -> Array:
    """Values (n,) in SI units of a label of a contact: its smallest gap, its force, or the sum of its impulses."""
    path, sides = run.path, all_sides(run.system)
    own = [k for k, side in enumerate(sides) if side.element == label.element]
    if label.kind == GAP:
        states = (State(float(t), q, v) for t, q, v in zip(path.t, path.q, path.v, strict=True))
        return np.array([gaps(run.system, state, sides)[0][own].min() for state in states])
    signs = {sides[k].name: sides[k].sign for k in own}
    if label.kind == FORCE and sides[own[0]].compliant:
        return np.abs(run.loads[0][:, run.system.forces.index(label.element)])
    if label.kind == FORCE:
        rows, loads = list(run._other_rows), run.wrench[2]
        present = [name for name in signs if name in rows]
        found: Array = sum((signs[x] * loads[:, rows.index(x)] for x in present), np.zeros(len(path)))
        for p in run.passages:
            if p.contacts is not None:
                found[(path.t >= p.start) & (path.t <= p.stop)] = np.nan
        return found
    found = np.zeros(len(path))
    for event in run.events:
        if event.kind == "impact" and event.impulse is not None:
            pushed = event.impulse.multipliers
            found[path.t >= event.t] += sum(sign * pushed.get(name, 0.0) for name, sign in signs.items())
    for p in run.passages:
        if p.contacts is not None:  # only the sum is known
            found[path.t >= p.stop] += sum(p.contacts[name] for name in signs)
            found[(path.t > p.start) & (path.t < p.stop)] = np.nan
    return found


def indeterminate(run: Run, element: str) -> bool:
    """Whether the force of a contact was at some time one distribution of many."""
    names = {side.name for side in all_sides(run.system) if side.element == element}
    return any(names & set(phase.indeterminate) for phase in run.phases)


def compliant_energy(run: Run) -> Array:
    """Energy (n,) that compliant contacts store along a run, J."""
    system, path, found = run.system, run.path, np.zeros(len(run.path))
    for side in (side for side in all_sides(system) if side.compliant):
        turns = system.labels[f"{side.element}.gap"].dimension == "angle"
        stiffness = float(side.stiffness) * system.units.factor("angular_stiffness" if turns else "stiffness")
        for k in range(len(path)):
            gap = gaps(system, State(float(path.t[k]), path.q[k], path.v[k]), [side])[0][0]
            found[k] += 0.5 * stiffness * min(gap, 0.0) ** 2
    return found
