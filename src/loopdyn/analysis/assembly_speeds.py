"""Speeds that keep the loops closed, and the reasons why given speeds are impossible."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from loopdyn.analysis.contradictions import (
    LARGEST,
    contradiction,
)
from loopdyn.errors import AssemblyError
from loopdyn.loops.continuation import largest
from loopdyn.loops.projection import nearest_sparse_speeds, nearest_speeds
from loopdyn.loops.rank import is_large, of_matrix, scaled
from loopdyn.loops.reactions import freedom_rate
from loopdyn.loops.sparse_steps import OwnRow, takes_sparse_steps
from loopdyn.system.system import State, System
from loopdyn.thresholds import CLOSED, STILL
from loopdyn.tree.functions import (
    Motion,
    body_motion,
    terms,
)

Array = NDArray[np.float64]
SPEED_STEPS = 40  # steps to speeds that satisfy rows not affine in them
SPEEDS = 1e-9  # fraction of the largest speed by which constraints may be violated at velocity level
PARALLEL = 1e-9  # rad


# ------------------------------------------------------------------------------------------------ velocity


def speeds_for(
    system: System, pose: State, given: Mapping[str, float] | ArrayLike | None, fix: Sequence[str] | None
) -> Array:
    """Speeds that keep the loops closed, have the given values, and are otherwise as small as possible."""
    wanted: Mapping[str, float] = given if isinstance(given, Mapping) else {}
    v = np.zeros(system.nv) if given is None or isinstance(given, Mapping) else np.array(system.state(v=given).v)
    kept = {label: x for label, x in wanted.items() if fix is None or label in fix}
    for label in wanted.keys() - kept.keys():  # where to start
        if label in system.speeds:
            v[system.speeds.index(label)] = wanted[label]
    values, labels = np.array(list(kept.values()), float), list(kept)
    nearest = _nearest_sparse_speeds if takes_sparse_steps(system) else _nearest_speeds
    v, gap, size = nearest(system, pose, v, labels, values)
    if gap.max(initial=0.0) > SPEEDS * max(1.0, size):
        raise _speed_error(system, pose, labels, gap, SPEEDS * max(1.0, size))
    for k, label in enumerate(labels):
        if label in system.speeds:
            v[system.speeds.index(label)] = values[k]
    return v


def _nearest_speeds(
    system: System, pose: State, v: Array, labels: Sequence[str], values: Array
) -> tuple[Array, Array, float]:
    """Speeds nearest to v that keep the constraints and have the `values`; the residuals, and the largest term."""
    rows = speed_rows(system, pose, labels)
    v, now = nearest_speeds(system, State(pose.t, pose.q, v), CLOSED, SPEED_STEPS, given=(rows, values))
    A = np.vstack([now.J / system.row_units[:, None], rows])
    b = np.concatenate([-now.phi_t / system.row_units, values])
    return v, np.abs(A @ v - b), max(largest(b), largest(A * v))


def _nearest_sparse_speeds(
    system: System, pose: State, v: Array, labels: Sequence[str], values: Array
) -> tuple[Array, Array, float]:
    """Speeds as in `_nearest_speeds`, of a large system; the terms of its rows are of the size of the speeds."""
    own = [OwnRow(of.joint, of.k, 1.0) for of in (system.labels.speeds[label] for label in labels)]
    v, gap, _ = nearest_sparse_speeds(system, State(pose.t, pose.q, v), CLOSED, SPEED_STEPS, own, values)
    return v, np.abs(gap), max(largest(values), largest(v / system.speed_units))


def _speed_error(system: System, pose: State, labels: Sequence[str], gap: Array, scale: float) -> AssemblyError:
    """Error for given speeds, or constraints, that cannot be satisfied."""
    still = [] if is_large(system) else _held_still(system, pose, labels, speed_rows(system, pose, labels))
    if still:
        text = f"the constraints keep {', '.join(still)} from moving at this pose: {_why_still(system, pose)} "
        hint = "Correct the constraints, or give no speed."
    elif labels:
        unmet = [label for label, x in zip(labels, gap[system.nc :], strict=True) if x > scale] or labels
        text = f"the speeds of {', '.join(unmet)} contradict the constraints or each other at this pose. "
        hint = "Give fewer speeds, or consistent values."
    else:
        unmet = [row for row, x in zip(system.constraint_rows, gap, strict=False) if x > scale]
        text = f"no speeds satisfy the constraints {', '.join(unmet)} together at this pose and time. "
        hint = "Remove one of them, or change a driver that contradicts the others."
    return AssemblyError(text + hint, nearest=pose, gap=float(gap.max()))


def _held_still(system: System, pose: State, labels: Sequence[str], rows: Array) -> list[str]:
    """Given speeds that the constraints keep at zero at the pose; none if constraints depend on time."""
    now = terms(system, pose)
    if now.phi_t.any():
        return []
    A = scaled(system, now.J)
    N = np.linalg.svd(A)[2][of_matrix(A, SPEEDS).count :].T if system.nc else np.eye(system.nv)
    moves = np.abs((rows * system.speed_units) @ N).max(axis=1, initial=0.0)
    scale = np.abs(rows * system.speed_units).max(axis=1, initial=0.0)
    return [label for label, x, s in zip(labels, moves, scale, strict=True) if x < STILL * s]


def _why_still(system: System, pose: State) -> str:
    """Reasons why a mechanism cannot move: degrees of freedom, an axis that is not parallel, contradictions."""
    left = system.nv - of_matrix(scaled(system, terms(system, pose).J), SPEEDS).count
    text = f"{left} degree{'' if left == 1 else 's'} of freedom {'is' if left == 1 else 'are'} left there."
    for loop in system.topology.loops:
        odd = _odd_axis(system, pose, loop.joints)
        if odd is not None:
            tilt = f"{odd[1] / system.units.factor('angle'):.3g} {system.units.angle}"
            return f"{text} In the loop {loop} the axis of '{odd[0]}' is {tilt} off parallel to the others."
    found = contradiction(system, pose, LARGEST)
    if found is not None:
        text += f" Only small contradictions of {', '.join(found.residual)} prevent it: see ld.mobility(system, state)."
    return text


def _odd_axis(system: System, pose: State, joints: Sequence[str]) -> tuple[str, float] | None:
    """Only axis of a loop that is not parallel to the others, and the angle between them in rad."""
    motion = body_motion(system, pose)
    own = [system.joints[name] for name in joints]
    turning = [j for j in own if j.spec.turning == "about z" and len(j.spec.speeds) == 1]
    axes = {j.name: motion.rotation[j.parent] @ j.F[1][:, 2] for j in turning}
    if len(axes) < 4:  # with three axes two may be parallel by chance
        return None
    for name, axis in axes.items():
        others = [other for key, other in axes.items() if key != name]
        apart = max(float(np.linalg.norm(np.cross(others[0], other))) for other in others)
        sine = float(np.linalg.norm(np.cross(others[0], axis)))
        if apart < PARALLEL < sine:
            return name, float(np.arctan2(sine, abs(others[0] @ axis)))
    return None


def speed_rows(system: System, pose: State, labels: Sequence[str]) -> Array:
    """Rows (labels, nv) that map the speeds of the tree to speeds of tree or cut joints; bases at rest.

    Their transposes are the generalised forces of unit loads on these speeds.
    """
    motion: Motion | None = None  # that of cut joints alone is needed
    rows = np.zeros((len(labels), system.nv))
    for n, label in enumerate(labels):
        j, k, *_ = system.labels.speeds[label]
        if j.in_tree:
            rows[n, j.v0 + k] = 1.0
        else:
            motion = motion or body_motion(system, pose)
            rows[n] = freedom_rate(system, pose, motion, j, k)[0]
    return rows
