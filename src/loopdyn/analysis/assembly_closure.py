"""One closure: close the loops from a pose, directly or while moving coordinates to prescribed values in small steps.

A prescribed coordinate is a :class:`Target`. Cut joints whose axes are antiparallel are not closed, though their rows
vanish.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from loopdyn.errors import SingularityError
from loopdyn.loops.continuation import CORRECTION, Rule, StepLength, close, largest
from loopdyn.loops.projection import Loops
from loopdyn.loops.reactions import freedom_rate
from loopdyn.loops.sparse_steps import OwnRow, SparseRows, sparse_rows, takes_sparse_steps
from loopdyn.system.system import JointData, State, System
from loopdyn.thresholds import AT_LIMIT, CLOSED
from loopdyn.tree.functions import (
    Motion,
    body_motion,
    constraint_equations,
    difference,
    increment,
    joint_coordinates,
    relative_pose,
)

Array = NDArray[np.float64]

STEP = 0.15  # natural units: step of prescribed coordinates before loops are closed again
LEAP = 10.0 * STEP  # ... and largest motion of any coordinate in such a step
# Fraction of LEAP at which the path counts as blocked. Often it is, and closing directly costs less than finer steps.
BLOCKED = 1e-4
FOLLOWED = 1000.0  # natural units: paths longer than some 160 turns are not followed
FAR = Rule(steps=40, longest=1.0, damped=True)  # a start may be anywhere
TRIES = 60  # number of starts around the given pose before giving up ...
BODIES, DENSE = 40.0, 4e5  # speeds, and rows times speeds squared, that double the work of an evaluation


@dataclass(frozen=True)
class Target:
    """Prescribed coordinate: of a tree joint (column), or measured at a cut joint."""

    label: str
    value: float
    column: int  # v index of a tree joint, -1 for a cut joint
    coordinate: int  # q index of a tree joint; number of the coordinate within a cut joint
    joint: JointData


class SearchBudget:
    """Budget of a search for closures: row evaluations used and allowed, counted in those of a small mechanism."""

    def __init__(self, system: System, most: float = np.inf):
        dense = 0.0 if takes_sparse_steps(system) else system.nc * system.nv**2 / DENSE
        self.each = 1.0 + system.nv / BODIES + dense
        self.left = most

    def evaluated(self) -> None:
        """Count one evaluation."""
        self.left -= self.each

    @property
    def done(self) -> bool:
        """Whether the budget is used up."""
        return self.left <= 0.0

    def starts(self, n: int) -> str:
        """Number of starts, in words, and whether the search ended early."""
        if not self.done or n >= TRIES:
            return "1 start" if n == 1 else f"{n} starts"
        return f"{n} of {TRIES} starts (the search of so large a mechanism ends there; tries={TRIES} makes all)"


# -------------------------------------------------------------------------------------------------- limits


def within_limits(system: System, target: Target, value: float) -> bool:
    """Whether a value is within the limits of a coordinate; angles are compared modulo full turns."""
    low, high = system.limits[target.label]
    length = _dimension(target) == "length"
    if target.joint.spec.is_periodic(_number(target)):
        value += 2 * np.pi * np.round(((low + high) / 2 - value) / (2 * np.pi))
    slack = AT_LIMIT * (system.size if length else 1.0)
    return bool(low - slack <= value <= high + slack)


def outside_limits(system: System, pose: State, targets: Sequence[Target]) -> list[Target]:
    """Targets at the nearer limit for coordinates beyond their limits that are not prescribed."""
    given = {k.label for k in targets}
    found = []
    for label, (low, high) in system.limits.items():
        if label in given:
            continue
        j, k, *_ = system.labels.coordinates[label]
        target = Target(label, 0.0, j.v0 + k if j.in_tree else -1, j.q0 + k if j.in_tree else k, j)
        value = values_of(system, pose, [target])[0]
        if not within_limits(system, target, value):
            found.append(replace(target, value=low if abs(value - low) < abs(value - high) else high))
    return found


def beyond_limits(system: System, pose: State) -> bool:
    """Whether a coordinate of a tree or cut joint is beyond its limits; angles are compared modulo full turns."""
    return bool(outside_limits(system, pose, []))


def brought_inside(system: System, found: FoundPose, targets: Sequence[Target], work: SearchBudget) -> FoundPose | None:
    """Closure moved within the limits of all joints along its branch; None if that is not possible."""
    at_limit: list[Target] = []
    while new := outside_limits(system, found.pose, [*targets, *at_limit]):
        at_limit += new
        moved = follow_targets(system, found.pose, [*targets, *at_limit], work)
        if moved.gap is not None:
            return None
        labels = ", ".join(f"{k.label} = {k.value:g}" for k in at_limit)
        found = FoundPose(moved.pose, None, f"assembled with {labels} at the limit: nearer closures are outside")
    return found


# ------------------------------------------------------------------------------------------------ one closure


@dataclass(frozen=True)
class FoundPose:
    """Pose, the gap that remains there (None if closed), and how it was reached."""

    pose: State
    gap: float | None
    note: str


def directly(
    system: System, start: State, targets: Sequence[Target], note: str, work: SearchBudget | None = None
) -> FoundPose:
    """Set the targets to their values at once and close the loops."""
    return FoundPose(*newton(system, put(system, start, targets), targets, work), note)


def follow_targets(
    system: System, start: State, targets: Sequence[Target], work: SearchBudget | None = None
) -> FoundPose:
    """Move the targets to their values step by step, closing the loops after each step.

    When `work` is used up, a failed step is not shortened: the targets are set to their values directly.
    """
    work = work or SearchBudget(system)
    pose, gap = newton(system, start, [], work)
    if not targets:
        return FoundPose(pose, gap, "assembled directly from the start pose")
    if gap is not None:
        return directly(system, start, targets, "assembled directly from the start pose", work)
    distance = distance_to(system, pose, targets)
    if distance > FOLLOWED:
        return directly(system, start, targets, "too far to follow: assembled directly, maybe on another branch", work)
    distance = max(distance, STEP)
    done, step = 0.0, StepLength(LEAP / distance, BLOCKED, first=STEP / distance)
    origin = values_of(system, pose, targets)
    while done < 1.0:
        share = min(1.0, done + step.h)
        partial = [
            replace(k, value=k.value if share == 1.0 else x + share * (k.value - x))
            for k, x in zip(targets, origin, strict=True)
        ]
        predicted = _predicted(system, pose, partial)
        trial, gap = newton(system, predicted, partial, work)
        moved, wrong = (largest(difference(system, q, trial.q) / system.speed_units) for q in (pose.q, predicted.q))
        if gap is None and moved < LEAP and wrong <= CORRECTION * max(moved, STEP):
            pose, done = trial, share
            step.counted()
        elif not step.failed() or work.done:
            blocked = "the path from the start is blocked: assembled directly, maybe on another branch"
            return directly(system, start, targets, blocked, work)
    return FoundPose(pose, None, "assembled by following the path from the start")


def put(system: System, pose: State, targets: Sequence[Target]) -> State:
    """Set tree coordinates to their values; Newton's method then adapts the cut joints."""
    q = np.array(pose.q)
    for k in targets:
        if k.joint.in_tree:
            q[k.coordinate] = k.value
    return State(pose.t, system.state(q).q, pose.v)


def _predicted(system: System, pose: State, targets: Sequence[Target]) -> State:
    """Pose on the tangent from a closed pose, with the targets at their values: nearly closed, on the same branch."""
    loops, x = Held(system, pose.t, targets), np.zeros(system.nv)
    for k in targets:
        if k.column >= 0:
            x[k.column] = k.value - pose.q[k.coordinate]
    r, J = loops.evaluate(pose.q)
    x += system.speed_units * loops.correction(pose.q, r, J, given=x)
    far = np.abs(x / system.speed_units).max(initial=0.0) > LEAP
    start = pose if far else State(pose.t, increment(system, pose.q, x), pose.v)
    return put(system, start, targets)


def distance_to(system: System, pose: State, targets: Sequence[Target]) -> float:
    """Distance of the targets from their values, natural units."""
    away = 0.0
    for k, x in zip(targets, values_of(system, pose, targets), strict=True):
        length = len(k.joint.spec.dimensions) > 0 and _dimension(k) == "length"
        away = max(away, abs(k.value - x) / (system.size if length else 1.0))
    return away


def _number(target: Target) -> int:
    """Index of a coordinate within its joint."""
    j = target.joint
    return target.coordinate - (j.q0 if j.in_tree else 0)


def _dimension(target: Target) -> str:
    return target.joint.spec.dimensions[_number(target)]


def values_of(system: System, pose: State, targets: Sequence[Target]) -> list[float]:
    """Current values of the targets."""
    motion = None
    out = []
    for k in targets:
        if k.joint.in_tree:
            out.append(float(pose.q[k.coordinate]))
        else:
            motion = motion or body_motion(system, pose)
            x = float(joint_coordinates(k.joint, motion)[k.coordinate])
            out.append(system.with_turns(k.joint, k.coordinate, x, pose.q))
    return out


class Held(Loops):
    """Constraint equations with targets: target coordinates of tree joints are fixed, others add rows."""

    def __init__(self, system: System, t: float, targets: Sequence[Target], work: SearchBudget | None = None):
        free, self.rows, self.weight = _free_and_rows(system, targets)
        super().__init__(system, t, free=free, mass_metric=True)
        self.work = work or SearchBudget(system)

    def evaluate(self, q: Array) -> tuple[Array, Array | SparseRows]:
        """Residuals and Jacobian; infinite if rows are undefined, e.g. beyond the end of a curve."""
        try:
            return self._sparse_rows(self.state(q)) if self.sparse else self.dense_rows(q)
        except SingularityError:
            return np.full(len(self.weight), np.inf), np.zeros((len(self.weight), self.system.nv))

    def dense_rows(self, q: Array) -> tuple[Array, Array]:
        """Residuals and dense Jacobian of a system of any size."""
        J, r = _rows(self.system, self.state(q), self.rows)
        return r * self.weight, J * self.weight[:, None]

    def _sparse_rows(self, pose: State) -> tuple[Array, SparseRows]:
        """Residuals, and the rows of a large system with those of the targets behind them."""
        system, motion = self.system, body_motion(self.system, pose)
        own = [
            OwnRow(k.joint, k.coordinate, system.size if _dimension(k) == "length" else 1.0, _gradient(motion, k))
            for k in self.rows
        ]
        h, now = system.holonomic, sparse_rows(system, pose, own)
        gaps = np.array([_gap_of(system, pose, k) / row.unit for k, row in zip(self.rows, own, strict=True)])
        return np.concatenate([now.phi[h], gaps]), now.chosen(np.append(h, np.ones(len(own), bool)))

    def moved(self, q: Array, x: Array) -> Array:
        """Pose moved by x; counts an evaluation."""
        self.work.evaluated()
        return super().moved(q, x)


def newton(
    system: System, start: State, targets: Sequence[Target], work: SearchBudget | None = None
) -> tuple[State, float | None]:
    """Close the loops with the targets fixed; return the remaining gap, or None if closed."""
    found = close(Held(system, start.t, targets, work), start.q, FAR)
    pose = State(start.t, found.y, start.v)
    return pose, None if found.closed and not flipped(system, pose) else _gap(system, pose, found.size)


def _free_and_rows(system: System, targets: Sequence[Target]) -> tuple[NDArray[np.bool_], list[Target], Array]:
    """Speeds that are not prescribed, targets that need rows, and the weights of all rows."""
    free = np.ones(system.nv, bool)
    for k in targets:
        if k.column >= 0:
            free[k.column] = False
        elif k.joint.in_tree and _dimension(k) == "number":
            turning = [n for n, dimension in enumerate(k.joint.spec.speed_dimensions) if dimension == "angle"]
            free[k.joint.v0 + np.array(turning)] = False
    rows = [k for k in targets if k.column < 0 and not (k.joint.in_tree and _dimension(k) == "number")]
    units = [system.size if _dimension(k) == "length" else 1.0 for k in rows]
    return free, rows, 1.0 / np.concatenate([system.row_units[system.holonomic], units])


def _gap(system: System, pose: State, size: float) -> float:
    """Gap of a pose that is not closed: the residual, or the angle between antiparallel axes."""
    return max(size, CLOSED, *opposed(system, pose).values())


def _rows(system: System, pose: State, cut: Sequence[Target]) -> tuple[Array, Array]:
    """Jacobian and residual of positions; coordinates of cut joints with targets give rows too."""
    (phi, J), h = constraint_equations(system, pose), system.holonomic
    if not cut:
        return J[h], phi[h]
    motion = body_motion(system, pose)
    rows, residual = [J[h]], [phi[h]]
    for k in cut:
        rows.append(_row(system, pose, motion, k)[None])
        residual.append(np.array([_gap_of(system, pose, k)]))
    return np.vstack(rows), np.concatenate(residual)


def _gap_of(system: System, pose: State, target: Target) -> float:
    """Distance of a target from its value; less than half a turn for an angle whose turns are not counted."""
    gap, j, n = values_of(system, pose, [target])[0] - target.value, target.joint, target.coordinate
    if not j.in_tree and j.spec.is_periodic(n) and not system.knows_turns(j, n):
        gap = (gap + np.pi) % (2 * np.pi) - np.pi
    return gap


def _row(system: System, pose: State, motion: Motion, target: Target) -> Array:
    """Gradient of a coordinate of a cut joint, or of a length of a joint that has a quaternion besides."""
    j, gradient = target.joint, _gradient(motion, target)
    if gradient is None:
        return freedom_rate(system, pose, motion, j, target.coordinate)[0]
    row = np.zeros(system.nv)
    row[j.v0 : j.v0 + len(j.spec.speeds)] = gradient
    return row


def _gradient(motion: Motion, target: Target) -> Array | None:
    """Gradient of a coordinate of a tree joint by the speeds of this joint; None for a cut joint."""
    j = target.joint
    return j.spec.gradient(_number(target), relative_pose(j, motion)[0]) if j.in_tree else None


def opposed(system: System, pose: State) -> dict[str, float]:
    """Cut joints that are closed the wrong way round, which their rows cannot tell: angle between their axes."""
    cut = [j for j in system.joints.values() if not j.in_tree and j.spec.turning == "about z"]
    motion = body_motion(system, pose) if cut else None
    cosines = {j.name: relative_pose(j, motion)[0][2, 2] for j in cut if motion is not None}
    return {name: float(np.arccos(max(c, -1.0))) for name, c in cosines.items() if c < 0.0}


def flipped(system: System, pose: State) -> bool:
    """Whether axes of some cut joint point against each other: its rows vanish there too, but it is not closed."""
    return bool(opposed(system, pose))
