"""Assembly: close all loops in position and velocity, keep what the user fixed, move the rest as little as possible.

Newton steps that are smallest in the mass metric close the loops. Coordinates that are to have given values
are brought there in small steps, the loops being closed after each, so that the mechanism stays on the
branch it starts on. Where that path is blocked, and where the start is far from closed, it is tried again
from other poses around it; the note of the state says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from loopdyn.errors import AssemblyError, ModelError, Problem, SingularityError
from loopdyn.projection import metric, smallest_step
from loopdyn.reactions import freedom_wrench
from loopdyn.system import JointData, State, System
from loopdyn.tree import Motion, body_jacobian, body_motion, difference, increment, terms
from loopdyn.wording import nearest

Array = NDArray[np.float64]

ROUNDING = 1e-16  # residual that cannot be improved
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
    t: float | None = None,
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
        Which values are kept exactly; by default all that were given by label. A label that was given no value is
        kept where it is at the start: in the array `q`, in `near`, or at the reference pose.
    near : State, optional
        Pose to start from; by default the reference pose.
    t : float, optional
        Time in s; by default that of `near`, or zero.
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
    t = (0.0 if near is None else near.t) if t is None else float(t)
    start = State(t, system.q_reference if near is None else near.q, np.zeros(system.nv))
    if q is not None and not isinstance(q, Mapping):
        start = State(t, system.state(q).q, start.v)
    _check_labels(system, q, v, fix)
    targets, loose = _targets(system, start, q if isinstance(q, Mapping) else {}, fix)
    start = State(t, _moved(system, start.q, loose), start.v)
    pose, note = _close(system, start, targets, tries)
    return State(t, pose.q, _speeds(system, pose, v, fix), note)


def _check_labels(system: System, q: object, v: object, fix: Sequence[str] | None) -> None:
    """Refuse names that are not there."""
    joints = system.joints.values()
    coordinates, speeds = ([label for j in joints for label in j.spec.labels(j.name)[k]] for k in (0, 1))
    problems = []
    for given, known, kind in (
        (q if isinstance(q, Mapping) else (), coordinates, "coordinate"),
        (v if isinstance(v, Mapping) else (), speeds, "speed"),
        (fix or (), [*coordinates, *speeds], "coordinate"),
    ):
        wrong = [label for label in given if label not in known]
        problems += [Problem("assemble", f"there is no {kind} '{w}'", nearest(w, known)) for w in wrong]
    if problems:
        raise ModelError(problems)


# ------------------------------------------------------------------------------------------------ position


def _targets(
    system: System, start: State, given: Mapping[str, float], fix: Sequence[str] | None
) -> tuple[list[_Target], list[_Target]]:
    """Coordinates that must have their values, and those whose values are only where to start."""
    kept = set(given if fix is None else fix)
    fixed: list[_Target] = []
    loose: list[_Target] = []
    problems = []
    for j in system.joints.values():
        labels = j.spec.labels(j.name)[0]
        scalar = len(labels) == len(j.spec.speeds)
        for k, label in enumerate(labels):
            if label not in given and label not in kept:
                continue
            column = j.v0 + k if j.in_tree and scalar else -1
            target = _Target(label, 0.0, column, j.q0 + k if j.in_tree else k, j)
            value = given[label] if label in given else _measured(system, start, [target])[0]
            (fixed if label in kept else loose).append(replace(target, value=float(value)))
            if label in kept and not scalar and not j.in_tree:
                hint = "Give it as an approximate pose, or choose other cuts."
                problems.append(Problem("assemble", f"'{label}' belongs to a cut joint with a quaternion", hint))
        turning = [label for label, dimension in zip(labels, j.spec.dimensions, strict=True) if dimension == "number"]
        if j.in_tree and kept & set(turning) not in (set(), set(turning)):
            hint = f"Give all of {', '.join(turning)}."
            problems.append(Problem("assemble", f"a part of the quaternion of '{j.name}' cannot be kept", hint))
    if problems:
        raise ModelError(problems)
    return fixed, loose


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
            replace(k, value=k.value if share == 1.0 else x + share * (k.value - x))
            for k, x in zip(targets, origin, strict=True)
        ]
        trial, gap = _newton(system, _predicted(system, pose, partial), partial)
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


def _predicted(system: System, pose: State, targets: Sequence[_Target]) -> State:
    """Along the tangent from a closed pose to where the targets have their values: nearly closed, same branch."""
    free, rows, weight = _held(system, targets)
    J, r, M = _rows(system, pose, rows)
    x = np.zeros(system.nv)
    for k in targets:
        if k.column >= 0:
            x[k.column] = k.value - pose.q[k.coordinate]
    if free.any():
        x[free] = smallest_step(J[:, free] * weight[:, None], (r + J @ x) * weight, metric(M[np.ix_(free, free)]))
    far = np.abs(x / system.speed_units).max(initial=0.0) > 10 * STEP
    start = pose if far else State(pose.t, increment(system, pose.q, x), pose.v)
    return _set(system, start, targets)


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
    """Damped Newton steps of least motion with the targets held; the gap that is left, or None if closed.

    Closed poses are improved as long as a step halves the residual: at a singular pose the residual is the square
    of the distance to it, and 1e-12 would be far away.
    """
    pose = start
    free, rows, weight = _held(system, targets)
    try:
        J, r, M = _rows(system, pose, rows)
    except SingularityError:  # no rows at the start, e.g. beyond the end of a curve
        return pose, np.inf
    size = _norm(r, weight)
    for _ in range(NEWTON):
        closed = size < CLOSED and not _flipped(system, pose)
        if closed and size < ROUNDING:
            return pose, None
        x = np.zeros(system.nv)
        if free.any():
            L = metric(M[np.ix_(free, free)])
            x[free] = smallest_step(J[:, free] * weight[:, None], r * weight, L)
        x = _limited(x, system.speed_units)
        share = 1.0
        while True:
            trial = State(pose.t, increment(system, pose.q, share * x), pose.v)
            try:
                J1, r1, M1 = _rows(system, trial, rows)
            except SingularityError:  # no rows there: a shorter step
                r1 = np.full(len(r), np.inf)
            if closed and _norm(r1, weight) > 0.5 * size:
                return pose, None
            if _norm(r1, weight) < (1.0 - 1e-4 * share) * size:
                break
            share *= 0.5
            if share < 1e-4:
                return pose, None if size < 1e-10 and not _flipped(system, pose) else _gap(system, pose, size)
        pose, J, r, M, size = trial, J1, r1, M1, _norm(r1, weight)
    return pose, None if size < CLOSED and not _flipped(system, pose) else _gap(system, pose, size)


def _held(system: System, targets: Sequence[_Target]) -> tuple[NDArray[np.bool_], list[_Target], Array]:
    """Speeds that targets leave free, targets that need rows of their own, and the weights of all rows."""
    free = np.ones(system.nv, bool)
    for k in targets:
        if k.column >= 0:
            free[k.column] = False
        elif k.joint.in_tree and _dimension(k) == "number":
            free[k.joint.v0 : k.joint.v0 + 3] = False
    rows = [k for k in targets if k.column < 0 and not (k.joint.in_tree and _dimension(k) == "number")]
    units = [system.size if _dimension(k) == "length" else 1.0 for k in rows]
    return free, rows, 1.0 / np.concatenate([system.row_units[system.holonomic], units])


def _gap(system: System, pose: State, size: float) -> float:
    """What is left of a pose that is not closed: the residual, or the angle between opposed axes."""
    return max(size, CLOSED, *_opposed(system, pose).values())


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
        gap = _measured(system, pose, [k])[0] - k.value
        if _dimension(k) == "angle" and k.joint.spec.type != "helical":
            gap = (gap + np.pi) % (2 * np.pi) - np.pi
        rows.append((_free_row if k.joint.in_tree else _cut_row)(system, pose, now.motion, k)[None])
        residual.append(np.array([gap]))
    return np.vstack(rows), np.concatenate(residual), now.M


def _free_row(system: System, pose: State, motion: Motion, target: _Target) -> Array:
    """Gradient of a position of a free joint, whose speeds are in axes of M."""
    j = target.joint
    row = np.zeros(system.nv)
    row[j.v0 + 3 : j.v0 + 6] = _relative(j, motion)[0][target.coordinate - j.q0]
    return row


def _cut_row(system: System, pose: State, motion: Motion, target: _Target) -> Array:
    """Gradient of a coordinate of a cut joint."""
    j = target.joint
    F = motion.rotation[j.parent] @ j.F[1]
    M = motion.rotation[j.child] @ j.M[1]
    xM = motion.position[j.child] + motion.rotation[j.child] @ j.M[0]
    torque, force = freedom_wrench(j, target.coordinate, F, M)
    row = np.zeros(system.nv)
    for body, sign in ((j.child, 1.0), (j.parent, -1.0)):
        if body < system.n_bases:
            continue
        J = body_jacobian(system, pose, system.bodies[body])
        arm = xM - motion.position[body]
        row += sign * ((torque + np.cross(arm, force)) @ J[:3] + force @ J[3:])
    return row


def _norm(r: Array, weight: Array) -> float:
    return float(np.abs(r * weight).max(initial=0.0))


def _opposed(system: System, pose: State) -> dict[str, float]:
    """Cut joints that are closed the wrong way round, which their rows cannot tell: angle between their axes."""
    axial = {"revolute", "cylindrical", "planar", "helical"}
    cut = [j for j in system.joints.values() if not j.in_tree and j.spec.type in axial]
    motion = body_motion(system, pose) if cut else None
    cosines = {j.name: _relative(j, motion)[0][2, 2] for j in cut if motion is not None}
    return {name: float(np.arccos(max(c, -1.0))) for name, c in cosines.items() if c < 0.0}


def _flipped(system: System, pose: State) -> bool:
    return bool(_opposed(system, pose))


def _failure(system: System, pose: State, targets: Sequence[_Target]) -> AssemblyError:
    now = terms(system, pose)
    weight = 1.0 / system.row_units
    gaps: dict[str, float] = {}
    for label, value in zip(system.constraint_rows, np.abs(now.phi * weight), strict=True):
        name = label.partition(".")[0]
        gaps[name] = max(gaps.get(name, 0.0), float(value))
    opposed = _opposed(system, pose)
    gaps |= opposed
    worst = max(gaps, key=lambda name: gaps[name]) if gaps else ""
    loop = next((p for p in system.topology.loops if worst in p.joints), None)
    gap = max(float(np.abs(now.phi).max(initial=0.0)), *opposed.values(), 0.0)
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
    if given is not None and not isinstance(given, Mapping):
        return _nearest_speeds(system, pose, system.state(v=given).v, np.zeros((0, system.nv)), np.zeros(0))[0]
    wanted = dict(given or {})
    kept = {label: x for label, x in wanted.items() if fix is None or label in fix}
    rows, values, labels = _speed_rows(system, pose, body_motion(system, pose), kept)
    v = np.zeros(system.nv)
    for label in wanted.keys() - kept.keys():  # where to start
        if label in system.speeds:
            v[system.speeds.index(label)] = wanted[label]
    v, gap, size = _nearest_speeds(system, pose, v, rows, values)
    scale = 1e-9 * max(1.0, size)
    if gap.max(initial=0.0) > scale:
        n = system.nc
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


def _nearest_speeds(system: System, pose: State, v: Array, rows: Array, values: Array) -> tuple[Array, Array, float]:
    """Speeds nearest to v that keep the constraints and `rows` v = `values`; the residuals, and the largest right side.

    One step is exact where the rows are affine in the speeds; a second one is against rounding.
    """
    unit = system.row_units
    for _ in range(2 if system.affine else NEWTON):
        now = terms(system, State(pose.t, pose.q, v))
        A = np.vstack([now.J / unit[:, None], rows])
        b = np.concatenate([-now.phi_t / unit, values])
        if not system.affine and _norm(A @ v - b, np.ones(len(b))) < CLOSED:
            break
        v = v + smallest_step(A, A @ v - b, metric(now.M))
    now = terms(system, State(pose.t, pose.q, v))
    gap = np.abs(np.concatenate([(now.J @ v + now.phi_t) / unit, rows @ v - values]))
    return v, gap, float(np.abs(b).max(initial=0.0))


def _speed_rows(
    system: System, pose: State, motion: Motion, given: Mapping[str, float]
) -> tuple[Array, Array, list[str]]:
    rows, values, names = [], [], []
    known = {label: (j, k) for j in system.joints.values() for k, label in enumerate(j.spec.labels(j.name)[1])}
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
