"""Assembly where redundant constraints contradict each other by rounded dimensions.

No pose closes all of them. The contradicting rows are found at the pose of least residual and reported with the
smallest change of dimensions that closes the mechanism; with a tolerance, all other rows are closed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from loopdyn.analysis.assembly_closure import STEP, Held, Target, distance_to, put, values_of
from loopdyn.analysis.contradictions import (
    Contradiction,
    FrameChange,
    beyond_tolerance,
    changes_that_close,
    check_open_rows,
    contradiction,
)
from loopdyn.errors import AssemblyError
from loopdyn.loops.continuation import Rule, close, euclidean, largest
from loopdyn.loops.rank import is_large
from loopdyn.loops.sparse_steps import SparseRows
from loopdyn.system.system import State, System
from loopdyn.thresholds import CLOSED
from loopdyn.tree.functions import (
    terms,
)

Array = NDArray[np.float64]
LEAST_RESIDUAL = Rule(steps=40, longest=1.0, enough=0.0, closed=0.0, falls=0.99, norm=euclidean)
# Singular values below this multiple of the residual, within bounds, are left out of steps to the least residual.
CONTRADICTING, LEAST_SINGULAR, MOST_SINGULAR = 30.0, 1e-7, 1e-2
NAMED = 4  # changes of dimensions that an error names
MOST_STEPS = 100  # steps to a pose of least residual: five turns are enough to find the contradicting rows


# -------------------------------------------------------------------------------------- rounded dimensions


def contradicted(system: System, starts: Sequence[State], targets: Sequence[Target]) -> Contradiction | None:
    """Redundant rows that contradict others and so keep the mechanism open; None if the reason is another."""
    if system.tolerated is not None or is_large(system):
        return None
    for start in starts:
        found = contradiction(system, _follow_least_residual(system, start, targets))
        if found is not None:
            return found
    return None


def _follow_least_residual(system: System, start: State, targets: Sequence[Target]) -> State:
    """Pose of least residual with the targets at their values, reached in small steps."""
    pose = _least_residual(system, start, [])
    origin = values_of(system, pose, targets)
    steps = min(int(np.ceil(distance_to(system, pose, targets) / STEP)), MOST_STEPS)
    for k in range(1, steps + 1):
        pairs = zip(targets, origin, strict=True)
        partial = [replace(target, value=x + k / steps * (target.value - x)) for target, x in pairs]
        pose = _least_residual(system, put(system, pose, partial), partial)
    return pose


def _least_residual(system: System, start: State, targets: Sequence[Target]) -> State:
    """Pose of least residual near the start."""
    return State(start.t, close(_Contradicted(system, start.t, targets), start.q, LEAST_RESIDUAL).y, start.v)


def with_rows_open(kept: System, pose: State, note: str) -> tuple[State, str]:
    """State at a pose that closes all rows except those left open within a tolerance, with a list of these."""
    wrong = beyond_tolerance(check_open_rows(kept, pose), "the closed pose")
    if wrong:
        raise AssemblyError(wrong, nearest=pose)
    system = kept.exact or kept
    open_by = np.abs(terms(system, pose).phi)
    worst = ", ".join(
        f"{label} by {x / system.units.factor(d):.2g} {system.units.symbol(d)}"
        for label, d, x, least in zip(
            system.constraint_rows, system.row_dimensions, open_by, CLOSED * system.row_units, strict=True
        )
        if x > least
    )
    note += f"; within the tolerance these redundant constraints stay open: {worst or 'none at this pose'}"
    return replace(pose, tolerated=kept.tolerated), note


def rounded_error(
    system: System, found: Contradiction, targets: Sequence[Target], allowed: tuple[float, float] | None = None
) -> AssemblyError:
    """Error for contradicting redundant constraints: which, by how much, and which changes help."""
    angle, length = found.largest(system)
    u, of = system.units, (("angle", angle), ("length", length))
    amounts = [f"{x / u.factor(d):.2g} {u.symbol(d)}" for d, x in of if x > 0.0]
    held = f" with {', '.join(f'{k.label} = {k.value:g}' for k in targets)}" if targets else ""
    together, alone = changes_that_close(system, found)
    cure = f" The smallest change of dimensions that closes it: move {_listed(together)}." if together else ""
    cure += f" One change alone that does: move {_listed(alone[0])}." if alone else ""
    text = (
        f"the mechanism cannot be closed{held}: redundant constraints contradict each other by up to "
        f"{' and '.join(amounts)} ({', '.join(found.residual)}), as rounded dimensions do; all others close."
    )
    if allowed is not None:
        one, other = allowed[0] / u.factor("angle"), allowed[1] / u.factor("length")
        text += f" The tolerance allows {one:.2g} {u.angle} and {other:.2g} {u.length}."
    least = (
        _rounded_up(max(angle, length / system.size) / u.factor("angle")),
        _rounded_up(max(length, angle * system.size) / u.factor("length")),
    )
    return AssemblyError(
        f"{text}{cure} Or leave them open: ld.assemble(system, ..., tolerance=({least[0]:.0e}, {least[1]:.0e})) in "
        f"{u.angle} and {u.length}, --angle-tolerance and --length-tolerance on the command line.",
        nearest=found.pose,
        gap=max(angle, length),
    )


def _listed(changes: Sequence[FrameChange]) -> str:
    """Largest changes of dimensions, in words."""
    more = f" and {len(changes) - NAMED} smaller ones" if len(changes) > NAMED else ""
    return ", ".join(str(change) for change in changes[:NAMED]) + more


def _rounded_up(x: float) -> float:
    """The power of ten above twice a number: room for the residual to grow along a motion."""
    return float(10.0 ** np.ceil(np.log10(2.0 * x)))


class _Contradicted(Held):
    """Equations with contradicting rows: corrections leave out the singular values that contradictions cause."""

    def __init__(self, system: System, t: float, targets: Sequence[Target]):
        super().__init__(system, t, targets)
        self.sparse = False  # by singular values

    def correction(self, q: Array, r: Array, J: Array | SparseRows, given: Array | None = None) -> Array:
        """Smallest motion in natural units that makes the other residuals zero."""
        if isinstance(J, SparseRows) or given is not None:
            raise AssertionError("dense rows, and nothing given")
        least = float(np.clip(CONTRADICTING * largest(r), LEAST_SINGULAR, MOST_SINGULAR))
        x = np.zeros(self.system.nv)
        x[self.free] = np.linalg.pinv((J * self.units)[:, self.free], rcond=least) @ -r
        return x
