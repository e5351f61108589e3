"""Assembly: close all loops in position and velocity, keep what the user fixed, move the rest as little as possible.

Newton steps that are smallest in the mass metric close the loops. Coordinates that are to have given values
are brought there in small steps, the loops being closed after each, so that the mechanism stays on the
branch it starts on. Where that path is blocked, and where the start is far from closed, it is tried again
from other poses around it; the note of the state says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from loopdyn.errors import AssemblyError, ModelError, Problem
from loopdyn.projection import metric, smallest_step
from loopdyn.system import JointData, State, System
from loopdyn.tree import Motion, body_jacobian, body_motion, difference, increment, terms
from loopdyn.wording import nearest

Array = NDArray[np.float64]

CLOSED = 1e-12  # residual, rad or lengths in sizes of the mechanism, at which loops count as closed
STEP = 0.15  # rad or sizes of the mechanism: how far fixed coordinates are moved before loops are closed again
NEWTON = 40  # steps of one closure at most
TRIES = 60  # starts around the given pose before giving up
SPREAD = 0.8  # rad or sizes of the mechanism: how far around


@dataclass(frozen=True)
class _Target:
    """A coordinate that is to have a value: of a tree joint (column), or measured at a cut joint."""

    label: str
    value: float
    column: int  # v index of a tree joint, -1 for a cut joint
    coordinate: int  # q index of a tree joint; number of the coordinate within a cut joint
    joint: JointData


def assemble(
    system: System,
    q: Mapping[str, float] | ArrayLike | None = None,
    v: Mapping[str, float] | ArrayLike | None = None,
    *,
    fix: Sequence[str] | None = None,
    near: State | None = None,
    t: float = 0.0,
    tries: int = TRIES,
) -> State:
    """Close all loops.

    Parameters
    ----------
    system : System
    q, v : mapping of label to value, or array, optional
        Coordinates and speeds in SI units. Those given by label, of tree joints or of cut joints, are kept; an
        array is an approximate pose. By default the start values of the model.
    fix : list of labels, optional
        Which of the given values are kept exactly; by default all that were given by label.
    near : State, optional
        Pose to start from; by default the reference pose.
    t : float
        Time in s.
    tries : int
        Starts around the given pose before giving up.

    Returns
    -------
    State
        Closed to 1e-12 of the size of the mechanism; its `note` says how it was found.

    Raises
    ------
    AssemblyError
        Naming the joints that stay open, the gap, and the nearest pose.

    Examples
    --------
    >>> import loopdyn as ld
    >>> system = ld.library.four_bar().compile()
    >>> state = ld.assemble(system, q={"A": 0.3}, v={"A": 2.0})
    >>> float(state.v[system.speeds.index("A")])
    2.0
    """
    if q is None and v is None and near is None:
        q, v = system.start
    start = State(t, system.q_reference, np.zeros(system.nv)) if near is None else State(t, near.q, near.v)
    if q is not None and not isinstance(q, Mapping):
        start = State(t, system.state(q).q, start.v)
    targets, loose = _targets(system, q if isinstance(q, Mapping) else {}, fix)
    start = State(t, _moved(system, start.q, loose), start.v)
    pose, note = _close(system, start, targets, tries)
    speeds = _speeds(system, pose, v, fix)
    return State(t, pose.q, speeds, note)


# ------------------------------------------------------------------------------------------------ position


def _targets(
    system: System, given: Mapping[str, float], fix: Sequence[str] | None
) -> tuple[list[_Target], list[_Target]]:
    """Coordinates that must have their values, and those whose values are only where to start."""
    found: dict[str, _Target] = {}
    for j in system.joints.values():
        for k, label in enumerate(j.spec.labels(j.name)[0]):
            if label in given:
                scalar = len(j.spec.coordinates) == len(j.spec.speeds)
                column = j.v0 + k if j.in_tree and scalar else -1
                found[label] = _Target(label, float(given[label]), column, j.q0 + k if j.in_tree else k, j)
    labels = [label for j in system.joints.values() for label in j.spec.labels(j.name)[0]]
    wrong = [label for label in (*given, *(fix or ())) if label not in labels]
    if wrong:
        raise ModelError(Problem("assemble", f"there is no coordinate '{w}'", nearest(w, labels)) for w in wrong)
    kept = set(found if fix is None else fix)
    fixed = [t for label, t in found.items() if label in kept]
    curved = [
        t.label for t in fixed if len(t.joint.spec.coordinates) != len(t.joint.spec.speeds) and not t.joint.in_tree
    ]
    if curved:
        hint = "Give it as an approximate pose, or choose other cuts."
        raise ModelError(Problem("assemble", f"'{c}' belongs to a cut joint with a quaternion", hint) for c in curved)
    return fixed, [t for label, t in found.items() if label not in kept]


def _moved(system: System, q: Array, loose: Sequence[_Target]) -> Array:
    out = np.array(q, float)
    for target in loose:
        if target.joint.in_tree:
            out[target.coordinate] = target.value
    return system.state(out).q


def _close(system: System, start: State, targets: Sequence[_Target], tries: int) -> tuple[State, str]:
    """A closed pose with the targets met."""
    best = _follow(system, start, targets)
    if best.gap is None:
        return best.pose, best.note
    rng = np.random.default_rng(0)
    unit = system.speed_units
    for n in range(1, tries):
        spread = SPREAD * min(1.0, n / (0.5 * tries)) * rng.uniform(-1.0, 1.0, system.nv) * unit
        other = State(start.t, increment(system, start.q, spread), start.v)
        found = _directly(system, other, targets, "")
        if found.gap is None:
            return found.pose, f"closed from start {n + 1} around the given pose: other closures may exist"
        if best.gap is not None and found.gap < best.gap:
            best = found
    raise _failure(system, best.pose, targets)


@dataclass(frozen=True)
class _Found:
    """A pose, the gap that is left there (None if closed), and how it was reached."""

    pose: State
    gap: float | None
    note: str


def _directly(system: System, start: State, targets: Sequence[_Target], note: str) -> _Found:
    """Put the targets at their values at once and close the loops."""
    return _Found(*_newton(system, _set(system, start, targets), targets), note)


def _follow(system: System, start: State, targets: Sequence[_Target]) -> _Found:
    """Bring the targets to their values step by step, the loops being closed after each step."""
    pose, gap = _newton(system, start, [])
    if not targets:
        return _Found(pose, gap, "closed from the pose it started at")
    if gap is not None:
        return _directly(system, start, targets, "closed from the pose it started at")
    distance = _distance(system, pose, targets)
    done, step = 0.0, 1.0 if distance == 0.0 else min(1.0, STEP / distance)
    origin = _measured(system, pose, targets)
    while done < 1.0:
        share = min(1.0, done + step)
        partial = [
            _Target(k.label, x + share * (k.value - x), k.column, k.coordinate, k.joint)
            for k, x in zip(targets, origin, strict=True)
        ]
        trial, gap = _newton(system, _set(system, pose, partial), partial)
        moved = np.abs(difference(system, pose.q, trial.q) / system.speed_units).max(initial=0.0)
        if gap is None and moved < 10 * STEP:
            pose, done = trial, share
            step *= 1.5
        else:
            step *= 0.4
            if step * distance < 1e-3 * STEP:
                blocked = "the way from the start is blocked; closed directly, perhaps on another assembly branch"
                return _directly(system, start, targets, blocked)
    return _Found(pose, None, "closed by following the path from the start")


def _set(system: System, pose: State, targets: Sequence[_Target]) -> State:
    """Put tree coordinates at their values; cut joints follow by Newton."""
    q = np.array(pose.q)
    for k in targets:
        if k.joint.in_tree:
            q[k.coordinate] = k.value
    return State(pose.t, system.state(q).q, pose.v)


def _distance(system: System, pose: State, targets: Sequence[_Target]) -> float:
    away = 0.0
    for k, x in zip(targets, _measured(system, pose, targets), strict=True):
        length = len(k.joint.spec.dimensions) > 0 and _dimension(k) == "length"
        away = max(away, abs(k.value - x) / (system.size if length else 1.0))
    return away


def _dimension(target: _Target) -> str:
    j = target.joint
    k = target.coordinate - (j.q0 if j.in_tree else 0)
    return j.spec.dimensions[k]


def _measured(system: System, pose: State, targets: Sequence[_Target]) -> list[float]:
    """Present values of the targets."""
    motion = None
    out = []
    for k in targets:
        if k.joint.in_tree:
            out.append(float(pose.q[k.coordinate]))
        else:
            motion = motion or body_motion(system, pose)
            out.append(float(_cut_coordinates(k.joint, motion)[k.coordinate]))
    return out


def _relative(j: JointData, motion: Motion) -> tuple[Array, Array]:
    """Rotation and position of M seen from F."""
    F = motion.rotation[j.parent] @ j.F[1]
    M = motion.rotation[j.child] @ j.M[1]
    xF = motion.position[j.parent] + motion.rotation[j.parent] @ j.F[0]
    xM = motion.position[j.child] + motion.rotation[j.child] @ j.M[0]
    return F.T @ M, F.T @ (xM - xF)


def _cut_coordinates(j: JointData, motion: Motion) -> Array:
    return j.spec.measure(*_relative(j, motion), j.par)


def _newton(system: System, start: State, targets: Sequence[_Target]) -> tuple[State, float | None]:
    """Damped Newton steps of least motion with the targets held; the gap that is left, or None if closed."""
    pose = start
    free = np.ones(system.nv, bool)
    for k in targets:
        if k.column >= 0:
            free[k.column] = False
        elif k.joint.in_tree:
            free[k.joint.v0 : k.joint.v0 + len(k.joint.spec.speeds)] = False
    cut = [k for k in targets if not k.joint.in_tree]
    weight = np.concatenate([1.0 / system.row_units[system.holonomic], np.ones(len(cut))])
    J, r, M = _rows(system, pose, cut)
    size = _norm(r, weight)
    for _ in range(NEWTON):
        if size < CLOSED and not _flipped(system, pose):
            return pose, None
        x = np.zeros(system.nv)
        if free.any():
            L = metric(M[np.ix_(free, free)])
            x[free] = smallest_step(J[:, free] * weight[:, None], r * weight, L)
        x = _limited(x, system.speed_units)
        share = 1.0
        while True:
            trial = State(pose.t, increment(system, pose.q, share * x), pose.v)
            J1, r1, M1 = _rows(system, trial, cut)
            if _norm(r1, weight) < (1.0 - 1e-4 * share) * size:
                break
            share *= 0.5
            if share < 1e-4:
                rounding = size < 1e-10 and not _flipped(system, pose)
                return pose, None if rounding else max(size, CLOSED)
        pose, J, r, M, size = trial, J1, r1, M1, _norm(r1, weight)
    return pose, None if size < CLOSED and not _flipped(system, pose) else max(size, CLOSED)


def _limited(x: Array, unit: Array) -> Array:
    """A step of at most one unit in any coordinate."""
    largest = np.abs(x / unit).max(initial=0.0)
    return x if largest <= 1.0 else x / largest


def _rows(system: System, pose: State, cut: Sequence[_Target]) -> tuple[Array, Array, Array]:
    """Jacobian and residual of positions, and mass matrix; coordinates of cut joints with targets give rows too."""
    now, h = terms(system, pose), system.holonomic
    if not cut:
        return now.J[h], now.phi[h], now.M
    rows, residual = [now.J[h]], [now.phi[h]]
    for k in cut:
        value = _measured(system, pose, [k])[0]
        gap = value - k.value
        if _dimension(k) == "angle" and k.joint.spec.type != "helical":
            gap = (gap + np.pi) % (2 * np.pi) - np.pi
        rows.append(_cut_row(system, pose, now.motion, k)[None])
        residual.append(np.array([gap]))
    return np.vstack(rows), np.concatenate(residual), now.M


def _cut_row(system: System, pose: State, motion: Motion, target: _Target) -> Array:
    """Gradient of a coordinate of a cut joint."""
    j = target.joint
    F = motion.rotation[j.parent] @ j.F[1]
    M = motion.rotation[j.child] @ j.M[1]
    xM = motion.position[j.child] + motion.rotation[j.child] @ j.M[0]
    torque, force = _dual(j, target.coordinate, F, M)
    row = np.zeros(system.nv)
    for body, sign in ((j.child, 1.0), (j.parent, -1.0)):
        if body < system.n_bases:
            continue
        J = body_jacobian(system, pose, system.bodies[body])
        arm = xM - motion.position[body]
        row += sign * ((torque + np.cross(arm, force)) @ J[:3] + force @ J[3:])
    return row


def _dual(j: JointData, k: int, F: Array, M: Array) -> tuple[Array, Array]:
    """Torque and force on M at its origin that work on coordinate k alone."""
    zero, z = np.zeros(3), F[:, 2]
    kind = j.spec.type
    if kind == "universal":
        a1, a2 = F[:, 0], j.par[0] * M[:, 0] + j.par[1] * M[:, 1]
        first, second = (a1, a2) if k == 0 else (a2, a1)
        return (first - j.par[0] * second) / j.par[1] ** 2, zero
    turns = {"revolute": (z,), "helical": (z,), "cylindrical": (z, None), "planar": (None, None, z)}
    slides = {"prismatic": (z,), "cylindrical": (None, z), "planar": (F[:, 0], F[:, 1]), "translational": tuple(F.T)}
    axis = turns[kind][k] if kind in turns and k < len(turns[kind]) else None
    if axis is not None:
        return axis, zero
    slide = slides[kind][k]
    return zero, zero if slide is None else slide


def _norm(r: Array, weight: Array) -> float:
    return float(np.abs(r * weight).max(initial=0.0))


def _flipped(system: System, pose: State) -> bool:
    """Whether some cut joint is closed the wrong way round: its axes opposed, which its rows cannot tell."""
    axial = {"revolute", "cylindrical", "planar", "helical"}
    cut = [j for j in system.joints.values() if not j.in_tree and j.spec.type in axial]
    if not cut:
        return False
    motion = body_motion(system, pose)
    return any(_relative(j, motion)[0][2, 2] < 0.0 for j in cut)


def _failure(system: System, pose: State, targets: Sequence[_Target]) -> AssemblyError:
    now = terms(system, pose)
    weight = 1.0 / system.row_units
    gaps: dict[str, float] = {}
    for label, value in zip(system.constraint_rows, np.abs(now.phi * weight), strict=True):
        name = label.partition(".")[0]
        gaps[name] = max(gaps.get(name, 0.0), float(value))
    worst = max(gaps, key=lambda name: gaps[name]) if gaps else ""
    loop = next((p for p in system.topology.loops if worst in p.joints), None)
    gap = float(np.abs(now.phi).max(initial=0.0))
    held = f" with {', '.join(f'{k.label} = {k.value:g}' for k in targets)}" if targets else ""
    where = f"joint '{worst}'" + (f" of the loop {loop}" if loop else "")
    labels = system.coordinates[:6]
    pose_text = ", ".join(f"{c} = {x:.4g}" for c, x in zip(labels, pose.q, strict=False))
    return AssemblyError(
        f"the mechanism cannot be closed{held}: {where} stays open by {gap:.3g} (m or rad). Nearest pose found: "
        f"{pose_text}{', ...' if system.nq > 6 else ''}. Check lengths and given values, or start nearer to a closed "
        "pose with near=...",
        nearest=pose,
        gap=gap,
    )


# ------------------------------------------------------------------------------------------------ velocity


def _speeds(
    system: System, pose: State, given: Mapping[str, float] | ArrayLike | None, fix: Sequence[str] | None
) -> Array:
    """Speeds that keep the loops closed, have the given values, and move the rest as little as possible."""
    now = terms(system, pose)
    if given is not None and not isinstance(given, Mapping):
        v0 = system.state(v=given).v
        L = metric(now.M)
        unit = system.row_units
        return v0 + smallest_step(now.J / unit[:, None], (now.J @ v0 + now.phi_t) / unit, L)
    rows, values, labels = _speed_rows(system, pose, now.motion, dict(given or {}))
    unit = system.row_units
    A = np.vstack([now.J / unit[:, None], rows])
    b = np.concatenate([-now.phi_t / unit, values])
    L = metric(now.M)
    v = smallest_step(A, -b, L)
    v += smallest_step(A, A @ v - b, L)  # once more against rounding
    gap = np.abs(A @ v - b)
    scale = 1e-9 * max(1.0, float(np.abs(b).max(initial=0.0)))
    if gap.max(initial=0.0) > scale:
        n = len(now.J)
        contradicted = [labels[k] for k in range(len(labels)) if gap[n + k] > scale] or labels
        raise AssemblyError(
            f"the speeds of {', '.join(contradicted)} contradict the constraints or each other at this pose. "
            "Give fewer speeds, or values that fit together.",
            nearest=pose,
            gap=float(gap.max()),
        )
    for k, label in enumerate(labels):
        if label in system.speeds:
            v[system.speeds.index(label)] = values[k]
    return v


def _speed_rows(
    system: System, pose: State, motion: Motion, given: Mapping[str, float]
) -> tuple[Array, Array, list[str]]:
    rows, values, names = [], [], []
    known = {label: (j, k) for j in system.joints.values() for k, label in enumerate(j.spec.labels(j.name)[1])}
    wrong = [label for label in given if label not in known]
    if wrong:
        raise ModelError(Problem("assemble", f"there is no speed '{w}'", nearest(w, known)) for w in wrong)
    for label, value in given.items():
        j, k = known[label]
        if j.in_tree:
            row = np.zeros(system.nv)
            row[j.v0 + k] = 1.0
        else:
            row = _cut_row(system, pose, motion, _Target(label, value, -1, k, j))
        rows.append(row)
        values.append(float(value))
        names.append(label)
    return np.array(rows).reshape(-1, system.nv), np.array(values), names


__all__ = ["assemble"]
