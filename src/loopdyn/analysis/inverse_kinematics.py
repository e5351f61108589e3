"""`inverse_kinematics`: closed states at which bodies, points and joint coordinates have given values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loopdyn.analysis.all_poses import all_poses
from loopdyn.analysis.assembly import PATIENCE, SPREAD, assemble
from loopdyn.analysis.assembly_closure import TRIES, SearchBudget, Target, outside_limits, values_of
from loopdyn.analysis.assembly_speeds import speeds_for
from loopdyn.analysis.closed_motion import require_closed
from loopdyn.analysis.moving_parts import declared_point, unknown
from loopdyn.analysis.reaching import Goal, Reached, directly, follow_goals, nearest_pose
from loopdyn.errors import AssemblyError, LoopdynError, ModelError
from loopdyn.joints import Frame
from loopdyn.loops.one_sided import warn_if_closed
from loopdyn.loops.rank import is_large
from loopdyn.results.inverse_kinematics import InverseKinematics
from loopdyn.system.system import State, System
from loopdyn.tree.functions import body_motion, increment

Array = NDArray[np.float64]

_WITHOUT = "solutions are sought as if there were none. Check the gaps of a run that starts there."
ROTATION = 1e-6  # deviation of a given rotation matrix from orthogonality, of numbers written with seven digits


def inverse_kinematics(
    system: System,
    targets: Mapping[Any, Any] | Sequence[Mapping[Any, Any]],
    near: State | None = None,
    *,
    all: bool = False,
    limits: bool = True,
) -> InverseKinematics:
    """Closed states at which bodies, points and joint coordinates have given values.

    Parameters
    ----------
    system : System
    targets : mapping, or sequence of mappings
        Values by name, in declared units. The name of a body: the pose of its frame as a :class:`Frame` in the world or
        as a (4, 4) matrix, or the position (3,) of its frame's origin. A pair ``(body, point)``, the point in world
        coordinates at the reference pose: its position (3,). The label of a joint coordinate, of the tree or cut: its
        value. A sequence is a path: each step starts from the last one.
    near : State, optional
        Closed state to start from, which decides the branch; by default the start of the model, assembled.
    all : bool
        Find all solutions of a single target: in closed form where :func:`loopdyn.analyses.branches` has one, otherwise
        by search (`all` of the result says which). Solutions in which all joints are at the same places are one: a rod
        that is turned about the line of its joints is the same.
    limits : bool
        Whether joint limits are kept.

    Returns
    -------
    InverseKinematics
        A path that cannot be followed to its end keeps the states up to there; its `message` says why it stopped.

    Raises
    ------
    AssemblyError
        If a single target, or the first of a path, cannot be reached: how near a closed pose comes, and what limits it.

    Examples
    --------
    The point C of a five-bar, moved by its two cranks; four solutions in all:

    >>> import loopdyn as ld
    >>> system = ld.library.five_bar().compile()
    >>> C = ("BC", (0.5, -0.9, 0))
    >>> found = ld.inverse_kinematics(system, {C: (0.45, -0.85, 0)})
    >>> ld.kinematics(system, found.state).point(*C)["position"].values.round(9).tolist()
    [0.45, -0.85, 0.0]
    """
    path = [targets] if isinstance(targets, Mapping) else list(targets)
    if not path or not isinstance(path[0], Mapping) or not all_mappings(path):
        raise LoopdynError("there is no target. Give a mapping of names to values, or a list of such mappings.")
    start = assemble(system) if near is None else near
    system = system.for_state(start)
    require_closed(system, start)
    goals = [_goals(system, start, given) for given in path]
    if all:
        if len(path) > 1:
            raise LoopdynError("all solutions of a path cannot be listed. Give one target, or leave out all=True.")
        every = _all_solutions(system, start, goals[0], limits)
        warn_if_closed(system, every.states, _WITHOUT)
        return every
    first = _solved(system, start, goals[0], limits)
    states, message = [first], ""
    for n, wanted in enumerate(goals[1:], 2):
        found = _followed(system, states[-1], wanted, limits)
        if isinstance(found, str):
            message = f"target {n} of {len(goals)} is not reached: {found}"
            break
        states.append(found)
    warn_if_closed(system, states, _WITHOUT)
    return InverseKinematics(system, tuple(states), "stopped" if message else "complete", message)


def all_mappings(path: Sequence[Any]) -> bool:
    """Whether every step of a path is a mapping with entries."""
    return not [step for step in path if not (isinstance(step, Mapping) and step)]


# ------------------------------------------------------------------------------------------------- targets


def _goals(system: System, start: State, given: Mapping[Any, Any]) -> list[Goal]:
    """Goals in SI units, checked."""
    goals = []
    for key, value in given.items():
        if isinstance(key, tuple) and len(key) == 2:
            body, at = key
            if body not in system.bodies:
                raise unknown("body", body, system.bodies)
            own = declared_point(system, body, at)
            position = _numbers(value, (3,), f"the point of '{body}'") * system.units.factor("length")
            goals.append(Goal(f"the point of '{body}'", system.bodies.index(body), own, position))
        elif key in system.bodies and key in system.labels.scalars:
            raise LoopdynError(f"'{key}' is a body and a joint. Rename one, or give a pair (body, point).")
        elif key in system.bodies:
            goals.append(_body_goal(system, key, value))
        elif key in system.labels.scalars:
            goals.append(_joint_goal(system, start, key, value))
        else:
            raise unknown("body or joint coordinate", key, [*system.bodies, *system.labels.scalars])
    held = [g.name for g in goals if g.target is None and g.body < system.n_bases]
    if held:
        raise LoopdynError(f"{held[0]} does not move: it is a base. Name another body.")
    return goals


def _body_goal(system: System, body: str, value: Any) -> Goal:
    """Pose, or position of the frame's origin."""
    name, row, own = f"'{body}'", system.bodies.index(body), np.zeros(3)
    if isinstance(value, Frame):
        r = system.mechanism.resolver()
        position, R = value.resolve(r, f"target of {name}", ())
        if r.problems:
            raise ModelError(r.problems)
        return Goal(name, row, own, position, R)
    if np.shape(value) == (4, 4):
        pose = _numbers(value, (4, 4), name)
        R = pose[:3, :3]
        if np.abs(R @ R.T - np.eye(3)).max() > ROTATION or np.linalg.det(R) < 0.0 or pose[3].tolist() != [0, 0, 0, 1]:
            raise LoopdynError(f"the target of {name} is no pose. Give a Frame, or a matrix [[R, p], [0, 1]].")
        return Goal(name, row, own, pose[:3, 3] * system.units.factor("length"), R)
    return Goal(name, row, own, _numbers(value, (3,), name) * system.units.factor("length"))


def _numbers(value: Any, shape: tuple[int, ...], name: str) -> Array:
    try:
        found = np.asarray(value, float)
    except (TypeError, ValueError, OverflowError):
        found = np.zeros(0)
    if found.shape != shape or not np.isfinite(found).all():
        raise LoopdynError(f"the target of {name} is not clear. Give a Frame, a (4, 4) matrix, or a position x, y, z.")
    return found


def _joint_goal(system: System, start: State, label: str, value: Any) -> Goal:
    of = system.labels.scalars[label]
    try:
        x = float(value) * system.units.factor(of.dimension)
    except (TypeError, ValueError, OverflowError):
        x = np.nan
    if not np.isfinite(x):
        raise LoopdynError(f"the target of {label} is {value!r}. Give a finite number.")
    j = of.joint
    return Goal(label, target=Target(label, x, j.v0 + of.k if j.in_tree else -1, j.q0 + of.k if j.in_tree else of.k, j))


# ----------------------------------------------------------------------------------------------- solutions


def _state(system: System, pose: State, note: str) -> State:
    """Closed state at the pose, with the smallest speeds that drivers allow."""
    still = State(pose.t, pose.q, np.zeros(system.nv), note, system.tolerated, system)
    return replace(still, v=speeds_for(system, still, None, None))


def _followed(system: System, start: State, goals: Sequence[Goal], limits: bool) -> State | str:
    """State reached from the start without leaving its branch, or the reason why there is none."""
    at_limit: list[Target] = []
    found, note = follow_goals(system, start, goals), "reached by following the path from the start"
    while found.met and limits:
        given = [g.target for g in goals if g.target is not None]
        new = outside_limits(system, found.pose, [*given, *at_limit])
        if not new:
            break
        at_limit += new
        labels = ", ".join(_said(system, k) for k in at_limit)
        wanted = [*goals, *(Goal(k.label, target=k) for k in at_limit)]
        beyond, found = found, follow_goals(system, found.pose, wanted)
        if not found.met:
            return _outside(system, beyond.pose, new)
        note = f"reached with {labels} at the limit: nearer poses are outside"
    if found.met:
        return _state(system, found.pose, note)
    return _why(system, nearest_pose(system, found.pose, goals), goals) if not is_large(system) else "blocked"


def _outside(system: System, pose: State, passed: Sequence[Target]) -> str:
    said = []
    for k in passed:
        low, high = (_said(system, replace(k, value=x)).rpartition("= ")[2] for x in system.limits[k.label])
        said.append(f"{_said(system, replace(k, value=values_of(system, pose, [k])[0]))}, limits {low} to {high}")
    return f"the pose there is outside the limits of its joints ({'; '.join(said)})"


def _said(system: System, target: Target) -> str:
    """Label and value of a joint coordinate, in declared units."""
    dimension = system.labels.scalars[target.label].dimension
    return f"{target.label} = {target.value / system.units.factor(dimension):.6g} {system.units.symbol(dimension)}"


def _solved(system: System, start: State, goals: Sequence[Goal], limits: bool) -> State:
    """State for one target: along the path from the start, by the nearest pose, or from other starts."""
    first = _followed(system, start, goals, limits)
    if isinstance(first, State):
        return first
    if not is_large(system):
        found = nearest_pose(system, start, goals)
        if found.met and not (limits and outside_limits(system, found.pose, [])):
            note = "reached without opening loops; the straight path from the start is blocked"
            return _state(system, found.pose, note)
    for n, there in enumerate(_other_starts(system, start, goals), 2):
        if there.met and not (limits and outside_limits(system, there.pose, [])):
            return _state(system, there.pose, f"found from start {n} around the given state: maybe on another branch")
    best = start if is_large(system) else nearest_pose(system, follow_goals(system, start, goals).pose, goals).pose
    names = ", ".join(g.name for g in goals)
    raise AssemblyError(
        f"'{system.name}' cannot reach the target of {names}: {first}. Give a target within reach, or start nearer to "
        "it with near=...",
        nearest=best,
        gap=max(float(np.abs(g.rows(system, best, body_motion(system, best)).gap).max()) for g in goals),
    )


def _other_starts(system: System, start: State, goals: Sequence[Goal]) -> Iterator[Reached]:
    """Poses closed with the goals from other starts, as :func:`loopdyn.assemble` tries them."""
    rng, work = np.random.default_rng(0), SearchBudget(system, PATIENCE)
    for n in range(1, TRIES):
        if work.done:
            return
        spread = SPREAD * min(1.0, n / (0.5 * TRIES)) * rng.uniform(-1.0, 1.0, system.nv) * system.speed_units
        yield directly(system, State(start.t, increment(system, start.q, spread), start.v), goals, work)


def _why(system: System, found: Reached, goals: Sequence[Goal]) -> str:
    """Distance of the nearest pose from each goal, and what holds it there."""
    if found.met:
        return "the straight path to it leads through poses that cannot be closed"
    motion, said = body_motion(system, found.pose), []
    length, angle = system.units.symbol("length"), system.units.symbol("angle")
    for goal in goals:
        gap = goal.rows(system, found.pose, motion).gap
        if goal.target is not None:
            there = goal.present(system, found.pose, motion).target
            said.append(f"{_said(system, there)}" if there is not None else "")
            continue
        parts = [f"{np.linalg.norm(gap[-3:]) * system.size / system.units.factor('length'):.4g} {length}"]
        if len(gap) > 3:
            parts.append(f"{np.linalg.norm(gap[:3]) / system.units.factor('angle'):.4g} {angle}")
        said.append(f"{goal.name} {' and '.join(parts)} away")
    return f"the nearest closed pose found has {', '.join(said)}; {_held(system, found, goals)}"


def _held(system: System, found: Reached, goals: Sequence[Goal]) -> str:
    """Loops that hold the bodies of the goals, and limits that the nearest pose exceeds."""
    names = {system.bodies[g.body] for g in goals if g.target is None} | {
        system.bodies[g.target.joint.child] for g in goals if g.target is not None
    }
    loops = [str(loop) for loop in system.topology.loops if names & set(loop.bodies)]
    text = f"it is held by the loop {loops[0]}" if len(loops) == 1 else f"it is held by {len(loops)} loops"
    passed = outside_limits(system, found.pose, [])
    limits = f", and is outside the limits of {', '.join(k.label for k in passed)}" if passed else ""
    return (text if loops else "the tree allows no more") + limits


def _all_solutions(system: System, start: State, goals: Sequence[Goal], limits: bool) -> InverseKinematics:
    """All states for one target."""
    first = _solved(system, start, goals, limits=False)
    found, complete = all_poses(system, first, goals)
    kept, lost = [], 0
    for pose in found:
        if limits and outside_limits(system, pose, []):
            lost += 1
        else:
            kept.append(_state(system, pose, ""))
    message = f"{lost} more are outside the limits of joints" if lost else ""
    if not kept:
        raise AssemblyError(f"all {lost} solutions are outside the limits of joints. limits=False lists them.", first)
    return InverseKinematics(system, tuple(kept), "complete", message, complete)
