"""All closed poses that meet given goals, by the closures of a mechanism whose bodies are held at the goals."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from loopdyn.analysis.assembly import assemble
from loopdyn.analysis.branches import branches
from loopdyn.analysis.reaching import Goal
from loopdyn.errors import LoopdynError
from loopdyn.joints import Frame, Rotation, Spherical, Weld
from loopdyn.loops.continuation import largest
from loopdyn.loops.projection import project
from loopdyn.loops.rank import decide
from loopdyn.model.mechanism import GROUND
from loopdyn.spatial.rotations import from_matrix
from loopdyn.system.system import State, System
from loopdyn.thresholds import NEARLY_CLOSED, SAME_POSE
from loopdyn.tree.functions import apart, body_motion, constraint_equations, measured_coordinates

Array = NDArray[np.float64]


def all_poses(system: System, solution: State, goals: Sequence[Goal]) -> tuple[list[State], bool]:
    """Closed poses at rest that meet the goals, and whether they are known to be all; `solution` is one of them.

    A pose is held by a weld to the ground, a point by a ball joint, in a copy of the mechanism; joint coordinates are
    given to :func:`loopdyn.analyses.branches`. Poses in which all joints are at the same places are one: the
    one nearest to `solution`.
    """
    held = _held(system, goals)
    there = body_motion(system, solution)
    start = State(solution.t, measured_coordinates(held, there), np.zeros(held.nv))
    near = assemble(held, near=start, limits=False)
    given = _given(held, goals)
    freedoms = held.nv - decide(held, near).count
    if freedoms > len(given):
        raise LoopdynError(
            f"the target leaves {freedoms - len(given)} of the degrees of freedom of '{system.name}', so there are "
            "infinitely many solutions. Give a target for each, or leave out all=True."
        )
    found = branches(held, given, t=solution.t, near=near)
    poses = []
    for branch in found:
        q = measured_coordinates(system, body_motion(held, branch.state))
        pose = project(system, State(solution.t, q, np.zeros(system.nv))).state
        if largest((constraint_equations(system, pose)[0] / system.row_units)[system.holonomic]) < NEARLY_CLOSED:
            poses.append(State(pose.t, pose.q, np.zeros(system.nv)))
    poses.sort(key=lambda pose: apart(system, solution.q, pose.q))
    return _distinct(system, poses), found.complete


def _distinct(system: System, poses: Sequence[State]) -> list[State]:
    """Poses whose joints are at different places; the first of those that agree."""
    kept: list[tuple[State, Array]] = []
    for pose in poses:
        motion = body_motion(system, pose)
        joints = [j for j in system.joints.values() if j.spec.rows_when_cut]
        places = np.array([j.frames(motion.position, motion.rotation)[3] for j in joints])
        if all(np.abs(places - other).max() > SAME_POSE * system.size for _, other in kept):
            kept.append((pose, places))
    return [pose for pose, _ in kept]


def _held(system: System, goals: Sequence[Goal]) -> System:
    """Mechanism with the bodies of the goals joined to the ground at their targets."""
    m = system.mechanism.model_copy(deep=True)
    scale = 1.0 / system.units.factor("length")
    for n, goal in enumerate(goals, 1):
        if goal.target is not None or goal.own is None or goal.position is None:
            continue
        turned = None if goal.rotation is None else Rotation(quaternion=tuple(from_matrix(goal.rotation).tolist()))
        m.add_joint(
            f"target {n}",
            Spherical() if goal.rotation is None else Weld(),
            GROUND,
            system.bodies[goal.body],
            parent_frame=Frame(position=tuple((goal.position * scale).tolist()), rotation=turned),
            child_frame=Frame(position=tuple((goal.own * scale).tolist())),
        )
    return m.compile()


def _given(held: System, goals: Sequence[Goal]) -> dict[str, float]:
    """Values of joint coordinates, SI; they must belong to the tree of the copy."""
    given = {g.target.label: g.target.value for g in goals if g.target is not None}
    cut = [label for label in given if not held.labels.coordinates[label].joint.in_tree]
    if cut:
        raise LoopdynError(f"joint {cut[0]} is cut, so its value cannot be given. Compile with other cuts=[...].")
    return given
