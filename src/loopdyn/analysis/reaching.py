"""Reaching goals: closed poses at which bodies, points and joint coordinates have given values.

A goal adds rows to the constraint equations: the displacement of a point, the displacement and rotation vector of a
body, or a joint coordinate, each from its value. Closed poses are followed while the goals move from their present
values to the given ones (a body turns about a fixed axis), by the methods of :mod:`loopdyn.loops.continuation`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from loopdyn.analysis.assembly_closure import (
    BLOCKED,
    FAR,
    LEAP,
    STEP,
    SearchBudget,
    Target,
    flipped,
    values_of,
)
from loopdyn.engine import records as rec
from loopdyn.errors import SingularityError
from loopdyn.loops.continuation import CORRECTION, PREDICTED, Rule, StepLength, close, euclidean, largest
from loopdyn.loops.projection import Loops
from loopdyn.loops.rank import of_matrix
from loopdyn.loops.reactions import freedom_rate
from loopdyn.loops.sparse_steps import SparseRows
from loopdyn.spatial.rotations import about_axis
from loopdyn.system.system import State, System
from loopdyn.thresholds import CLOSED, ROUNDING
from loopdyn.tree.functions import Motion, body_motion, constraint_equations, difference, open_tree_body_jacobian

Array = NDArray[np.float64]

APPROACHES = 200  # steps to the nearest pose at most: they converge linearly at the boundary of the reach
DAMPING, MOST_DAMPING = 1e-3, 1e6  # of the first step to the nearest pose; beyond the last no step helps
EASED, TIGHTENED = 0.3, 5.0  # factors of the damping after a step that helped, and after one that did not
SETTLED = 1e-9  # relative decrease of the distance below which the nearest pose is found


class GoalRows(NamedTuple):
    """Rows of a goal at a pose: residuals in natural units, and the wrench (torque, force at a point) of each row.

    A row times a motion is torque . w + force . v of the point of the body; or it is the gradient of a coordinate.
    """

    gap: Array
    body: int
    at: Array
    wrench: Array  # (n, 6), natural units per SI
    gradient: Array | None = None  # (nv,), instead of a wrench


@dataclass(frozen=True, eq=False)
class Goal:
    """Value that a body, a point or a joint coordinate is to have.

    Attributes
    ----------
    name : str
    position : (3,) array or None
        World position of the point `own` of the body `body`, SI.
    rotation : (3, 3) array or None
        Rotation of the body; None if it is free.
    target : Target or None
        Joint coordinate with its value.
    """

    name: str
    body: int = -1
    own: Array | None = None
    position: Array | None = None
    rotation: Array | None = None
    target: Target | None = None

    def rows(self, system: System, pose: State, motion: Motion) -> GoalRows:
        """Residuals and rows at a pose."""
        if self.target is not None:
            return self._coordinate(system, pose, motion)
        assert self.position is not None
        assert self.own is not None
        R, size = motion.rotation[self.body], system.size
        x = motion.position[self.body] + R @ self.own
        gap, wrench = (x - self.position) / size, np.hstack([np.zeros((3, 3)), np.eye(3) / size])
        if self.rotation is not None:
            gap = np.concatenate([rotation_vector(R @ self.rotation.T), gap])
            wrench = np.vstack([np.hstack([np.eye(3), np.zeros((3, 3))]), wrench])
        return GoalRows(gap, self.body, x, wrench)

    def _coordinate(self, system: System, pose: State, motion: Motion) -> GoalRows:
        target = self.target
        assert target is not None
        j, n = target.joint, target.coordinate
        gap = values_of(system, pose, [target])[0] - target.value
        number = n - (j.q0 if j.in_tree else 0)
        if not j.in_tree and j.spec.is_periodic(n) and not system.knows_turns(j, n):
            gap = (gap + np.pi) % (2 * np.pi) - np.pi
        unit = system.size if j.spec.dimensions[number] == "length" else 1.0
        gradient = np.eye(system.nv)[target.column] if j.in_tree else freedom_rate(system, pose, motion, j, n)[0]
        return GoalRows(np.array([gap / unit]), -1, np.zeros(3), np.zeros((0, 6)), gradient / unit)

    def part_way(self, origin: Goal, share: float) -> Goal:
        """Goal at a fraction of the path from `origin`, the same goal with the values at the start."""
        if share >= 1.0:
            return self
        if self.target is not None and origin.target is not None:
            x = origin.target.value
            return replace(self, target=replace(self.target, value=x + share * (self.target.value - x)))
        assert self.position is not None
        assert origin.position is not None
        position = origin.position + share * (self.position - origin.position)
        if self.rotation is None or origin.rotation is None:
            return replace(self, position=position)
        turn = rotation_vector(self.rotation @ origin.rotation.T)
        angle = float(np.linalg.norm(turn))
        R = about_axis(turn, share * angle) @ origin.rotation if angle > 0.0 else origin.rotation
        return replace(self, position=position, rotation=R)

    def present(self, system: System, pose: State, motion: Motion) -> Goal:
        """Goal with the values that it has at a pose."""
        if self.target is not None:
            value = self.target.value + float(self._coordinate(system, pose, motion).gap[0]) * self._unit(system)
            return replace(self, target=replace(self.target, value=value))
        R = motion.rotation[self.body]
        assert self.own is not None
        return replace(
            self, position=motion.position[self.body] + R @ self.own, rotation=None if self.rotation is None else R
        )

    def _unit(self, system: System) -> float:
        """Natural unit of a joint coordinate."""
        assert self.target is not None
        j = self.target.joint
        number = self.target.coordinate - (j.q0 if j.in_tree else 0)
        return system.size if j.spec.dimensions[number] == "length" else 1.0


def rotation_vector(R: Array) -> Array:
    """Axis times angle of a rotation matrix, rad."""
    from scipy.spatial.transform import Rotation

    return np.asarray(Rotation.from_matrix(R).as_rotvec(), float)


class Reaching(Loops):
    """Constraint equations with the rows of goals behind them; corrections are smallest in the mass metric."""

    def __init__(self, system: System, t: float, goals: Sequence[Goal], work: SearchBudget | None = None):
        super().__init__(system, t, mass_metric=True)
        self.goals, self.work = tuple(goals), work or SearchBudget(system)

    def moved(self, q: Array, x: Array) -> Array:
        """Pose moved by x; counts an evaluation."""
        self.work.evaluated()
        return super().moved(q, x)

    def goal_rows(self, q: Array) -> list[GoalRows]:
        """Rows of all goals at a pose."""
        pose = self.state(q)
        motion = body_motion(self.system, pose)
        return [goal.rows(self.system, pose, motion) for goal in self.goals]

    def evaluate(self, q: Array) -> tuple[Array, Array | SparseRows]:
        """Residuals and Jacobian; infinite if rows are undefined, e.g. beyond the end of a curve."""
        own = self.goal_rows(q)
        gaps = np.concatenate([rows.gap for rows in own])
        try:
            r, J = super().evaluate(q)
        except SingularityError:
            n = int(self.system.holonomic.sum()) + len(gaps)
            return np.full(n, np.inf), np.zeros((n, self.system.nv))
        r = np.concatenate([r, gaps])
        if isinstance(J, SparseRows):
            return r, replace(J, matrix=scipy.sparse.vstack([J.matrix, self._sparse(J, own)]).tocsr())
        return r, np.vstack([J, self.dense(q, own)])

    def dense(self, q: Array, own: Sequence[GoalRows]) -> Array:
        """Rows of the goals over the speeds, SI."""
        pose, found = self.state(q), [np.zeros((0, self.system.nv))]
        motion = body_motion(self.system, pose)
        for rows in own:
            if rows.gradient is not None:
                found.append(rows.gradient[None])
                continue
            J = open_tree_body_jacobian(self.system, self.system.bodies[rows.body], pose)
            torque, force = rows.wrench[:, :3], rows.wrench[:, 3:]
            found.append((torque + np.cross(rows.at - motion.position[rows.body], force)) @ J[:3] + force @ J[3:])
        return np.vstack(found)

    def _sparse(self, J: SparseRows, own: Sequence[GoalRows]) -> scipy.sparse.csr_matrix:
        """Rows of the goals over the motions of the bodies and the speeds, natural units."""
        system, first = self.system, 6 * self.system.nb
        found = []
        for rows in own:
            if rows.gradient is not None:
                part = scipy.sparse.lil_matrix((1, first + system.nv))
                part[0, first:] = rows.gradient * self.units
            else:
                torque, force = rows.wrench[:, :3], rows.wrench[:, 3:]
                arm = rows.at - J.work.body[rows.body, rec.X : rec.X + 3]
                part = scipy.sparse.lil_matrix((len(rows.wrench), first + system.nv))
                k = 6 * (rows.body - system.n_bases)
                part[:, k : k + 6] = np.hstack([torque + np.cross(arm, force), force * system.size])
            found.append(part.tocsr())
        return scipy.sparse.vstack(found).tocsr()

    def missing(self, q: Array) -> Array:
        """Residuals of the goals alone, natural units."""
        return np.concatenate([np.zeros(0), *(rows.gap for rows in self.goal_rows(q))])


# ------------------------------------------------------------------------------------------------ the path


@dataclass(frozen=True)
class Reached:
    """Pose at which a search ended, and whether the goals are met there; `share` of the path that was followed."""

    pose: State
    met: bool
    share: float = 1.0


def follow_goals(system: System, start: State, goals: Sequence[Goal]) -> Reached:
    """Closed poses from a closed start while the goals move to their values; ends where the path is blocked."""
    pose = start
    motion = body_motion(system, pose)
    origins = [goal.present(system, pose, motion) for goal in goals]
    distance = max(largest(Reaching(system, pose.t, goals).missing(pose.q)), STEP)
    step, done = StepLength(LEAP / distance, BLOCKED, first=STEP / distance), 0.0
    while done < 1.0:
        share = min(1.0, done + step.h)
        partial = [g.part_way(o, share) for g, o in zip(goals, origins, strict=True)]
        equations = Reaching(system, pose.t, partial)
        predicted = equations.moved(pose.q, equations.correction(pose.q, *equations.evaluate(pose.q)))
        found = close(equations, predicted, PREDICTED)
        moved, wrong = (largest(difference(system, q, found.y) / system.speed_units) for q in (pose.q, predicted))
        trial = State(pose.t, found.y, pose.v)
        if found.closed and moved < LEAP and wrong <= CORRECTION * max(moved, STEP) and not flipped(system, trial):
            pose, done = trial, share
            step.counted()
        elif not step.failed():
            return Reached(pose, False, done)
    return Reached(pose, True)


def nearest_pose(system: System, start: State, goals: Sequence[Goal]) -> Reached:
    """Closed pose nearest to the goals that can be reached from a closed start without opening loops.

    Least squares over the closed poses, by damped steps along the motions that the constraints allow.
    """
    loops, goal = Loops(system, start.t, mass_metric=True), Reaching(system, start.t, goals)
    q, damping = start.q, DAMPING
    gap = goal.missing(q)
    for _ in range(APPROACHES):
        if largest(gap) < CLOSED:
            return Reached(State(start.t, q, start.v), True)
        J = constraint_equations(system, loops.state(q))[1][system.holonomic]
        A = J * system.speed_units / system.row_units[system.holonomic, None]
        N = np.linalg.svd(A)[2][of_matrix(A).count :].T if len(A) else np.eye(system.nv)
        B = goal.dense(q, goal.goal_rows(q)) * system.speed_units @ N
        before = euclidean(gap)
        while damping < MOST_DAMPING:
            x = N @ np.linalg.solve(B.T @ B + damping * np.eye(N.shape[1]), -B.T @ gap)
            found = close(loops, loops.moved(q, x), PREDICTED)
            trial = goal.missing(found.y) if found.closed and largest(x) < LEAP else np.full(1, np.inf)
            if euclidean(trial) < before:
                break
            damping *= TIGHTENED
        else:
            break
        q, gap, damping = found.y, trial, damping * EASED
        if before - euclidean(gap) < SETTLED * before:
            break
    return Reached(State(start.t, q, start.v), largest(gap) < CLOSED)


def directly(system: System, start: State, goals: Sequence[Goal], work: SearchBudget) -> Reached:
    """Close loops and goals at once from a pose that may be far away."""
    rule = Rule(FAR.steps, FAR.longest, damped=True, enough=ROUNDING)
    found = close(Reaching(system, start.t, goals, work), start.q, rule)
    pose = State(start.t, found.y, start.v)
    return Reached(pose, found.closed and not flipped(system, pose))
