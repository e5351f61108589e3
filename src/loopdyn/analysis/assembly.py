"""Assembly: close all loops in position and velocity, keep what the user fixed, move the rest as little as possible.

Newton steps that are smallest in the mass metric close the loops. Coordinates that are to have given values
are brought there in small steps, the loops being closed after each, so that the mechanism stays on the
branch it starts on. Where that path is blocked, and where the start is far from closed, it is tried again
from other poses around it; the note of the state says so. A closure outside the limits of a joint is moved to
these limits if the freedoms left allow it; otherwise another one is looked for in the same way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from loopdyn.errors import AssemblyError, ModelError, Problem, SingularityError
from loopdyn.projection import metric, smallest_step
from loopdyn.rank import of_matrix
from loopdyn.reactions import freedom_rate
from loopdyn.system import JointData, State, System
from loopdyn.tree import (
    Motion,
    body_motion,
    closure,
    difference,
    increment,
    joint_coordinates,
    mass_matrix,
    relative_pose,
    terms,
)
from loopdyn.wording import nearest

Array = NDArray[np.float64]

ROUNDING = 1e-16  # residual that cannot be improved
CLOSED = 1e-12  # residual, rad or lengths in sizes of the mechanism, at which loops count as closed
STEP = 0.15  # rad or sizes of the mechanism: how far fixed coordinates are moved before loops are closed again
NEWTON = 40  # steps of one closure at most
TRIES = 60  # starts around the given pose before giving up
SPREAD = 0.8  # rad or sizes of the mechanism: how far around
EVERYWHERE = np.pi  # the same where other closures are looked for than the next one: any angle
LEAST_SHARE = 1e-2  # of a Newton step that is tried before it counts as leading nowhere
STALLED = 8  # steps in which the residual must fall to nine tenths, else the pose is a least gap
SPEEDS = 1e-9  # share of the largest speed by which constraints may be violated at velocity level
LIMIT = 1e-9  # rad or sizes of the mechanism by which a limit may be passed
SAME = 1e-6  # rad or sizes of the mechanism: poses of bodies that count as one closure


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
    limits: bool = True,
    search: bool = False,
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
    limits : bool
        Whether coordinates must be within the limits of their joints; values given in `q` are kept in any case.
    search : bool
        Whether to close from all `tries` starts, not from the first that succeeds: the nearest of all closures found
        is taken, and the note says how many there were.

    Returns
    -------
    State
        Closed to 1e-12 of the size of the mechanism; its `note` says how it was found.

    Raises
    ------
    AssemblyError
        Naming the joints that stay open, the gap, and the nearest pose; or the limits that no closure found keeps;
        or the speeds or constraints that contradict each other.

    Examples
    --------
    >>> import loopdyn as ld
    >>> system = ld.library.four_bar().compile()
    >>> state = ld.assemble(system, q={"A": 0.3}, v={"A": 2.0})
    >>> float(state.v[system.speeds.index("A")])
    2.0
    >>> ld.assemble(system, q={"A": 0.3}, search=True).note
    'nearest of 2 closures found from 60 starts'
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
    pose, note = _close(system, start, targets, tries, limits, search)
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


def _close(
    system: System, start: State, targets: Sequence[_Target], tries: int, limits: bool, search: bool
) -> tuple[State, str]:
    """A closed pose with the targets met, within the limits."""
    best = _follow(system, start, targets)
    beyond: _Found | None = None  # a closure outside the limits
    closures = []
    far = EVERYWHERE if search or best.gap is None else SPREAD  # closed, yet not the end: it is beyond the limits
    for n, found in enumerate(_attempts(system, start, targets, best, tries, far), 1):
        if found.gap is None:
            inside = _inside(system, found, targets) if limits else found
            if inside is None:
                beyond = beyond or found
                continue
            if not search:
                return inside.pose, _note(system, inside, targets, n, beyond)
            closures.append(inside)
        elif best.gap is not None and found.gap < best.gap:
            best = found
    if closures:
        return _nearest(system, start, targets, closures, tries)
    raise _failure(system, best.pose, targets) if beyond is None else _beyond_limits(system, beyond.pose, targets)


def _attempts(
    system: System, start: State, targets: Sequence[_Target], first: _Found, tries: int, far: float
) -> Iterator[_Found]:
    """The first attempt, then those from other starts around the given pose."""
    yield first
    rng = np.random.default_rng(0)
    for n in range(1, tries):
        spread = far * min(1.0, n / (0.5 * tries)) * rng.uniform(-1.0, 1.0, system.nv) * system.speed_units
        yield _directly(system, State(start.t, increment(system, start.q, spread), start.v), targets, "")


def _note(system: System, found: _Found, targets: Sequence[_Target], n: int, beyond: _Found | None) -> str:
    """How a closure was found."""
    note = found.note if n == 1 else f"closed from start {n} around the given pose: other closures may exist"
    if beyond is not None:
        passed = ", ".join(k.label for k in _outside(system, beyond.pose, targets))
        note += f"; a closure nearer to the start is outside the limits of {passed}"
    given = [k for k in targets if k.label in system.limits and not _allowed(system, k, k.value)]
    for k in given:
        note += f"; {k.label} = {k.value:g} as given is outside its limits {_range(system, k.label)}"
    return note


def _nearest(
    system: System, start: State, targets: Sequence[_Target], closures: Sequence[_Found], tries: int
) -> tuple[State, str]:
    """Of several closures the nearest to the start in the mass metric."""
    M = mass_matrix(system, start)

    def distance(found: _Found) -> float:
        x = difference(system, start.q, found.pose.q)
        return float(x @ M @ x)

    distinct: list[_Found] = []
    for found in sorted(closures, key=distance):
        if not any(_same(system, found.pose, other.pose) for other in distinct):
            distinct.append(found)
    taken = distinct[0].pose
    free, rows, weight = _held(system, targets)
    J, _ = _rows(system, taken, rows)
    A = (J * weight[:, None] * system.speed_units)[:, free]
    left = int(np.count_nonzero(free)) - of_matrix(A).count
    if left:
        noun = "freedom is" if left == 1 else "freedoms are"
        return taken, f"nearest of the closures found from {tries} starts; {left} {noun} left, so there are more"
    count = "1 closure" if len(distinct) == 1 else f"{len(distinct)} closures"
    return taken, f"nearest of {count} found from {tries} starts"


def _same(system: System, one: State, other: State) -> bool:
    """Whether all bodies are in the same places: coordinates may differ by whole turns."""
    a, b = body_motion(system, one), body_motion(system, other)
    apart = max(np.abs(a.position - b.position).max() / system.size, np.abs(a.rotation - b.rotation).max())
    return bool(apart < SAME)


# -------------------------------------------------------------------------------------------------- limits


def _allowed(system: System, target: _Target, value: float) -> bool:
    """Whether a coordinate may have this value; an angle may be off by whole turns."""
    low, high = system.limits[target.label]
    length = _dimension(target) == "length"
    if not length and target.joint.spec.type != "helical":
        value += 2 * np.pi * np.round(((low + high) / 2 - value) / (2 * np.pi))
    slack = LIMIT * (system.size if length else 1.0)
    return bool(low - slack <= value <= high + slack)


def _outside(system: System, pose: State, targets: Sequence[_Target]) -> list[_Target]:
    """Coordinates beyond their limits but for those that were given, each to be brought to the nearer limit."""
    given = {k.label for k in targets}
    found = []
    for label, (low, high) in system.limits.items():
        if label in given:
            continue
        j = system.joints[label.partition(".")[0]]
        k = j.spec.labels(j.name)[0].index(label)
        target = _Target(label, 0.0, j.v0 + k if j.in_tree else -1, j.q0 + k if j.in_tree else k, j)
        value = _measured(system, pose, [target])[0]
        if not _allowed(system, target, value):
            found.append(replace(target, value=low if abs(value - low) < abs(value - high) else high))
    return found


def _inside(system: System, found: _Found, targets: Sequence[_Target]) -> _Found | None:
    """The closure, brought within the limits of all joints along its branch; None if that is not possible."""
    at_limit: list[_Target] = []
    while new := _outside(system, found.pose, [*targets, *at_limit]):
        at_limit += new
        moved = _follow(system, found.pose, [*targets, *at_limit])
        if moved.gap is not None:
            return None
        labels = ", ".join(f"{k.label} = {k.value:g}" for k in at_limit)
        found = _Found(moved.pose, None, f"closed with {labels} at the limit: nearer closures are outside")
    return found


def _range(system: System, label: str) -> str:
    low, high = system.limits[label]
    return f"[{low:g}, {high:g}]"


def _beyond_limits(system: System, pose: State, targets: Sequence[_Target]) -> AssemblyError:
    held = f" with {', '.join(f'{k.label} = {k.value:g}' for k in targets)}" if targets else ""
    passed = _outside(system, pose, targets)
    values = _measured(system, pose, passed)
    text = ", ".join(f"{k.label} = {x:.4g} {_range(system, k.label)}" for k, x in zip(passed, values, strict=True))
    return AssemblyError(
        f"the mechanism closes{held}, but only outside the limits of its joints: {text} (rad or m). Correct the "
        "limits or the values given, or assemble with limits=False.",
        nearest=pose,
    )


# ------------------------------------------------------------------------------------------------ one closure


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
    J, r = _rows(system, pose, rows)
    x = np.zeros(system.nv)
    for k in targets:
        if k.column >= 0:
            x[k.column] = k.value - pose.q[k.coordinate]
    if free.any():
        L = metric(mass_matrix(system, pose)[np.ix_(free, free)])
        x[free] = smallest_step(J[:, free] * weight[:, None], (r + J @ x) * weight, L)
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
            out.append(float(joint_coordinates(k.joint, motion)[k.coordinate]))
    return out


def _newton(system: System, start: State, targets: Sequence[_Target]) -> tuple[State, float | None]:
    """Damped Newton steps of least motion with the targets held; the gap that is left, or None if closed.

    Closed poses are improved as long as a step halves the residual: at a singular pose the residual is the square
    of the distance to it, and 1e-12 would be far away.
    """
    pose = start
    free, rows, weight = _held(system, targets)
    try:
        J, r = _rows(system, pose, rows)
    except SingularityError:  # no rows at the start, e.g. beyond the end of a curve
        return pose, np.inf
    size = _norm(r, weight)
    sizes = [size]
    for _ in range(NEWTON):
        closed = size < CLOSED and not flipped(system, pose)
        if closed and size < ROUNDING:
            return pose, None
        x = np.zeros(system.nv)
        if free.any():
            L = metric(mass_matrix(system, pose)[np.ix_(free, free)])
            x[free] = smallest_step(J[:, free] * weight[:, None], r * weight, L)
        x = _limited(x, system.speed_units)
        share = 1.0
        while True:
            trial = State(pose.t, increment(system, pose.q, share * x), pose.v)
            try:
                J1, r1 = _rows(system, trial, rows)
            except SingularityError:  # no rows there: a shorter step
                r1 = np.full(len(r), np.inf)
            if closed and _norm(r1, weight) > 0.5 * size:
                return pose, None
            if _norm(r1, weight) < (1.0 - 1e-4 * share) * size:
                break
            share *= 0.5
            if share < LEAST_SHARE:
                return pose, None if size < 1e-10 and not flipped(system, pose) else _gap(system, pose, size)
        pose, J, r, size = trial, J1, r1, _norm(r1, weight)
        sizes.append(size)
        if len(sizes) > STALLED and size > 0.9 * sizes[-STALLED - 1]:
            break
    return pose, None if size < CLOSED and not flipped(system, pose) else _gap(system, pose, size)


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


def _rows(system: System, pose: State, cut: Sequence[_Target]) -> tuple[Array, Array]:
    """Jacobian and residual of positions; coordinates of cut joints with targets give rows too."""
    (phi, J), h = closure(system, pose), system.holonomic
    if not cut:
        return J[h], phi[h]
    motion = body_motion(system, pose)
    rows, residual = [J[h]], [phi[h]]
    for k in cut:
        gap = _measured(system, pose, [k])[0] - k.value
        if _dimension(k) == "angle" and k.joint.spec.type != "helical":
            gap = (gap + np.pi) % (2 * np.pi) - np.pi
        rows.append(_row(system, pose, motion, k)[None])
        residual.append(np.array([gap]))
    return np.vstack(rows), np.concatenate(residual)


def _row(system: System, pose: State, motion: Motion, target: _Target) -> Array:
    """Gradient of a coordinate of a cut joint, or of a position of a free joint, whose speeds are in axes of M."""
    j = target.joint
    if not j.in_tree:
        return freedom_rate(system, pose, motion, j, target.coordinate)[0]
    row = np.zeros(system.nv)
    row[j.v0 + 3 : j.v0 + 6] = relative_pose(j, motion)[0][target.coordinate - j.q0]
    return row


def _norm(r: Array, weight: Array) -> float:
    return float(np.abs(r * weight).max(initial=0.0))


def _opposed(system: System, pose: State) -> dict[str, float]:
    """Cut joints that are closed the wrong way round, which their rows cannot tell: angle between their axes."""
    axial = {"revolute", "cylindrical", "planar", "helical"}
    cut = [j for j in system.joints.values() if not j.in_tree and j.spec.type in axial]
    motion = body_motion(system, pose) if cut else None
    cosines = {j.name: relative_pose(j, motion)[0][2, 2] for j in cut if motion is not None}
    return {name: float(np.arccos(max(c, -1.0))) for name, c in cosines.items() if c < 0.0}


def flipped(system: System, pose: State) -> bool:
    """Whether axes of some cut joint point against each other: its rows vanish there too, but it is not closed."""
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
        f"the mechanism cannot be closed{held}: {where} stays open by {gap:.3g} (m or rad). Nearest pose found "
        f"(rad or m): {pose_text}{', ...' if system.nq > 6 else ''}. Check lengths and given values, or start nearer "
        "to a closed pose with near=...",
        nearest=pose,
        gap=gap,
    )


# ------------------------------------------------------------------------------------------------ velocity


def _speeds(
    system: System, pose: State, given: Mapping[str, float] | ArrayLike | None, fix: Sequence[str] | None
) -> Array:
    """Speeds that keep the loops closed, have the given values, and move the rest as little as possible."""
    wanted: Mapping[str, float] = given if isinstance(given, Mapping) else {}
    v = np.zeros(system.nv) if given is None or isinstance(given, Mapping) else np.array(system.state(v=given).v)
    kept = {label: x for label, x in wanted.items() if fix is None or label in fix}
    for label in wanted.keys() - kept.keys():  # where to start
        if label in system.speeds:
            v[system.speeds.index(label)] = wanted[label]
    rows, values, labels = speed_rows(system, pose, list(kept)), np.array(list(kept.values()), float), list(kept)
    v, gap, size = _nearest_speeds(system, pose, v, rows, values)
    if gap.max(initial=0.0) > SPEEDS * max(1.0, size):
        raise _contradiction(system, pose, labels, gap, SPEEDS * max(1.0, size))
    for k, label in enumerate(labels):
        if label in system.speeds:
            v[system.speeds.index(label)] = values[k]
    return v


def _nearest_speeds(system: System, pose: State, v: Array, rows: Array, values: Array) -> tuple[Array, Array, float]:
    """Speeds nearest to v that keep the constraints and `rows` v = `values`; the residuals, and the largest term.

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
    return v, gap, max(float(np.abs(b).max(initial=0.0)), float(np.abs(A * v).max(initial=0.0)))


def _contradiction(system: System, pose: State, labels: Sequence[str], gap: Array, scale: float) -> AssemblyError:
    """Speeds that were given cannot be met, or the constraints themselves cannot."""
    if labels:
        unmet = [label for label, x in zip(labels, gap[system.nc :], strict=True) if x > scale] or labels
        text = f"the speeds of {', '.join(unmet)} contradict the constraints or each other at this pose. "
        hint = "Give fewer speeds, or values that fit together."
    else:
        unmet = [row for row, x in zip(system.constraint_rows, gap, strict=False) if x > scale]
        text = f"no speeds meet the constraints {', '.join(unmet)} together at this pose and time. "
        hint = "Remove one of them, or change a driver that leads where the others do not let it go."
    return AssemblyError(text + hint, nearest=pose, gap=float(gap.max()))


def speed_rows(system: System, pose: State, labels: Sequence[str]) -> Array:
    """Rows (labels, nv) that give joint speeds, of tree or cut joints, from those of the tree; bases at rest.

    Their transposes are the generalised forces of unit loads on these speeds.
    """
    motion = body_motion(system, pose)
    known = {label: (j, k) for j in system.joints.values() for k, label in enumerate(j.spec.labels(j.name)[1])}
    rows = np.zeros((len(labels), system.nv))
    for n, label in enumerate(labels):
        j, k = known[label]
        if j.in_tree:
            rows[n, j.v0 + k] = 1.0
        else:
            rows[n] = freedom_rate(system, pose, motion, j, k)[0]
    return rows


__all__ = ["assemble", "flipped", "speed_rows"]
