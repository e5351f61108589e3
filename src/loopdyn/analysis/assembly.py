"""Assembly: close all loops in position and velocity, keep what the user fixed, move the rest as little as possible.

Newton steps that are smallest in the mass metric close the loops. Coordinates that are to have given values
are brought there in small steps, the loops being closed after each, so that the mechanism stays on the
branch it starts on. Where that path is blocked, and where the start is far from closed, it is tried again
from other poses around it; the note of the state says so. A closure outside the limits of a joint is moved to
these limits if the freedoms left allow it; otherwise another one is looked for in the same way.

Where redundant constraints contradict each other by rounded dimensions no pose closes all of them. The error then says
so, and with a tolerance the mechanism is closed in all rows but those (:mod:`loopdyn.analysis.contradictions`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from loopdyn.analysis.contradictions import (
    LARGEST,
    Change,
    Contradiction,
    beyond_tolerance,
    changes_that_close,
    contradiction,
    look,
)
from loopdyn.errors import AssemblyError, LoopdynError, ModelError, Problem, SingularityError
from loopdyn.loops.projection import metric, smallest_step
from loopdyn.loops.rank import of_matrix, scaled
from loopdyn.loops.reactions import freedom_rate
from loopdyn.quantities.wording import nearest
from loopdyn.system.system import JointData, State, System, Tolerated
from loopdyn.tree.functions import (
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

Array = NDArray[np.float64]

ROUNDING = 1e-16  # residual that cannot be improved
CLOSED = 1e-12  # residual, rad or lengths in sizes of the mechanism, at which loops count as closed
STEP = 0.15  # rad or sizes of the mechanism: how far fixed coordinates are moved before loops are closed again
FOLLOWED = 1000.0  # rad or sizes of the mechanism: paths longer than some 160 turns are not followed
RESOLVED = 1e9  # rad or sizes of the mechanism: beyond, neighbouring floats are poses that differ by 1e-7
NEWTON = 40  # steps of one closure at most
TRIES = 60  # starts around the given pose before giving up ...
# ... unless closing them has taken so many evaluations of a small mechanism, three of which take a millisecond or so.
# The clock is not asked, so that results do not depend on what else a machine does.
PATIENCE = 10000.0
BODIES, DENSE = 40.0, 4e5  # speeds, and rows times speeds squared, that double the work of an evaluation
SPREAD = 0.8  # rad or sizes of the mechanism: how far around
EVERYWHERE = np.pi  # the same where other closures are looked for than the next one: any angle
LEAST_SHARE = 1e-2  # of a Newton step that is tried before it counts as leading nowhere
STALLED = 8  # steps in which the residual must fall to nine tenths, else the pose is a least gap
SPEEDS = 1e-9  # share of the largest speed by which constraints may be violated at velocity level
LIMIT = 1e-9  # rad or sizes of the mechanism by which a limit may be passed
SAME = 1e-6  # rad or sizes of the mechanism: poses of bodies that count as one closure
# Singular values below so many residuals, within these bounds, are left out of steps to the pose of least residual.
CONTRADICTING, LEAST_SINGULAR, MOST_SINGULAR = 30.0, 1e-7, 1e-2
STILL = 1e-9  # share of a unit motion below which a coordinate stands still
PARALLEL = 1e-9  # rad
NAMED = 4  # changes of dimensions that an error names
MOST_STEPS = 100  # to a pose of least residual: five turns follow a branch well enough to see what contradicts


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
    tries: int | None = None,
    limits: bool = True,
    search: bool = False,
    tolerance: float | tuple[float, float] | None = None,
) -> State:
    """Close all loops.

    Parameters
    ----------
    system : System
    q, v : mapping of label to value, or array, optional
        Coordinates and speeds in SI units. Those given by label, of tree joints or of cut joints, are kept; an
        array is an approximate pose. By default the start values of the model. Full turns of angles count from the
        start; those of a cut joint are kept if its loop has parallel axes or something reads the angle.
    fix : list of labels, optional
        Which values are kept exactly; by default all that were given by label. A label that was given no value is
        kept where it is at the start: in the array `q`, in `near`, or at the reference pose.
    near : State, optional
        Pose to start from; by default the reference pose. The tolerance with which it was closed holds here, too.
    t : float, optional
        Time in s; by default that of `near`, or zero.
    tries : int, optional
        Starts around the given pose before giving up. By default 60; fewer in large mechanisms, where the work of some
        3 s, counted in evaluations and not by the clock, is the limit, and the error then says so.
    limits : bool
        Whether coordinates must be within the limits of their joints; values given in `q` are kept in any case.
    search : bool
        Whether to close from all `tries` starts, not from the first that succeeds: the nearest of all closures found
        is taken, and the note says how many there were.
    tolerance : float or (angle, length), optional
        By how much redundant constraints may be open that rounded dimensions keep from agreeing with the others, in
        rad and in m; one number holds for both. All other constraints are met exactly. By default that of `near`, or
        none may be open. Which are open is in `tolerated` of the state; analyses and runs that begin at the state leave
        them open. A system that leaves rows open itself, as that of a run from such a state, goes on leaving these open
        unless a tolerance is given.

    Returns
    -------
    State
        Closed to 1e-12 of the size of the mechanism, but for what `tolerance` allows; its `note` says how it was found.

    Raises
    ------
    AssemblyError
        Naming the joints that stay open, the gap, and the nearest pose; or the limits that no closure found keeps;
        or the speeds or constraints that contradict each other. Where rounded dimensions keep redundant constraints
        from agreeing: which, by how much, and the smallest change of dimensions that closes the mechanism.

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
    allowed = None if tolerance is None else _tolerances(tolerance)
    if allowed is None and system.tolerated is None and near is not None and near.tolerated is not None:
        allowed = near.tolerated.angle, near.tolerated.length
    system = system if allowed is None else system.exact or system
    pose, note = _close(system, start, _Request(tuple(targets), tries, limits, search, allowed))
    if system.tolerated is not None:
        pose, note = _with_rows_open(system, pose, note)
    return State(t, pose.q, _speeds(system.for_state(pose), pose, v, fix), note, pose.tolerated)


def _tolerances(given: float | tuple[float, float]) -> tuple[float, float]:
    """Tolerances of angles and lengths, rad and m."""
    try:
        values = np.broadcast_to(np.asarray(given, float), 2)
    except (TypeError, ValueError):
        values = np.array([np.nan, np.nan])
    if not (np.isfinite(values).all() and (values >= 0.0).all()):
        raise LoopdynError(
            f"assemble: tolerance is {given!r}. Give one number, or one for angles in rad and one for lengths in m."
        )
    return float(values[0]), float(values[1])


def _check_labels(system: System, q: object, v: object, fix: Sequence[str] | None) -> None:
    """Refuse names that are not there, and values that are no pose."""
    coordinates, speeds = system.labels.coordinates, system.labels.speeds
    problems = []
    for given, known, kind in (
        (q if isinstance(q, Mapping) else (), coordinates, "coordinate"),
        (v if isinstance(v, Mapping) else (), speeds, "speed"),
        (fix or (), [*coordinates, *speeds], "coordinate"),
    ):
        wrong = [label for label in given if label not in known]
        problems += [Problem("assemble", f"there is no {kind} '{w}'", nearest(w, known)) for w in wrong]
    problems += _beyond_numbers(system, q if isinstance(q, Mapping) else {})
    if problems:
        raise ModelError(problems)


def _beyond_numbers(system: System, given: Mapping[str, float]) -> list[Problem]:
    """Coordinates that are not finite, or too large to say where a body is."""
    found = []
    for label, of in system.labels.coordinates.items():
        most = RESOLVED * (system.size if of.dimension == "length" else 1.0)
        if label in given and not abs(given[label]) <= most:
            hint = "Give an angle without its full turns, in rad, or a length in m."
            found.append(Problem("assemble", f"{label} = {given[label]:g} cannot be a pose", hint))
    return found


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


@dataclass(frozen=True)
class _Request:
    """What a closure must meet, and how it is looked for: see :func:`assemble`."""

    targets: tuple[_Target, ...]
    tries: int | None
    limits: bool
    search: bool
    allowed: tuple[float, float] | None  # tolerance of angles and lengths, rad and m


def _close(system: System, start: State, request: _Request) -> tuple[State, str]:
    """A closed pose with the targets met, within the limits."""
    targets, tries, limits, search, allowed = (getattr(request, f.name) for f in fields(request))
    best = _follow(system, start, targets)
    if best.gap is not None:
        clash = _contradicted(system, (start, best.pose), targets)
    else:  # closed, but held there by contradictions beside it
        clash = None if allowed is None else contradiction(system, best.pose, max(allowed[0], allowed[1] / system.size))
    if clash is not None:
        return _close_but(system, request, clash)
    beyond: _Found | None = None  # a closure outside the limits
    n, work = 0, _Work(system, np.inf if tries is not None else PATIENCE)
    closures = []
    far = EVERYWHERE if search or best.gap is None else SPREAD  # closed, yet not the end: it is beyond the limits
    for n, found in enumerate(_attempts(system, start, targets, best, tries or TRIES, far, work), 1):
        if found.gap is None:
            inside = _inside(system, found, targets, work) if limits else found
            if inside is None:
                beyond = beyond or found
                continue
            if not search:
                return inside.pose, _note(system, inside, targets, n, beyond)
            closures.append(inside)
        elif best.gap is not None and found.gap < best.gap:
            best = found
    if closures:
        return _nearest(system, start, targets, closures, work.starts(n))
    clash = _contradicted(system, (best.pose,), targets) if beyond is None else None
    if clash is not None:
        return _close_but(system, request, clash)
    if beyond is None:
        raise _failure(system, best.pose, targets, work.starts(n))
    raise _beyond_limits(system, beyond.pose, targets, work.starts(n))


class _Work:
    """Evaluations of rows, in those of a small mechanism, that the search for a closure has taken and may take."""

    def __init__(self, system: System, most: float = np.inf):
        self.each = 1.0 + system.nv / BODIES + system.nc * system.nv**2 / DENSE
        self.left = most

    def evaluated(self) -> None:
        """Count one evaluation."""
        self.left -= self.each

    @property
    def done(self) -> bool:
        """Whether no more may be begun."""
        return self.left <= 0.0

    def starts(self, n: int) -> str:
        """How many starts there were, in words, and whether more would have been made."""
        if not self.done or n >= TRIES:
            return "1 start" if n == 1 else f"{n} starts"
        return f"{n} of {TRIES} starts (the search of so large a mechanism ends there; tries={TRIES} makes all)"


def _attempts(
    system: System, start: State, targets: Sequence[_Target], first: _Found, tries: int, far: float, work: _Work
) -> Iterator[_Found]:
    """The first attempt, then those from other starts around the given pose, none of them begun when `work` is done.

    Where the first one is closed already, limits are in the way: every second start is then within all of them.
    """
    yield first
    rng = np.random.default_rng(0)
    for n in range(1, tries):
        if work.done:
            return
        spread = far * min(1.0, n / (0.5 * tries)) * rng.uniform(-1.0, 1.0, system.nv) * system.speed_units
        q = increment(system, start.q, spread)
        if first.gap is None and n % 2:
            q = _within_limits(system, start.q, rng)
        yield _directly(system, State(start.t, q, start.v), targets, "", work)


def _within_limits(system: System, q: Array, rng: np.random.Generator) -> Array:
    """Coordinates of a pose, those of tree joints with limits at random between them."""
    out = np.array(q, float)
    for label, (low, high) in system.limits.items():
        if label in system.coordinates and np.isfinite([low, high]).all():
            out[system.coordinates.index(label)] = rng.uniform(low, high)
    return out


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
    system: System, start: State, targets: Sequence[_Target], closures: Sequence[_Found], starts: str
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
        return taken, f"nearest of the closures found from {starts}; {left} {noun} left, so there are more"
    count = "1 closure" if len(distinct) == 1 else f"{len(distinct)} closures"
    return taken, f"nearest of {count} found from {starts}"


def _same(system: System, one: State, other: State) -> bool:
    """Whether all bodies are in the same places: coordinates may differ by whole turns."""
    a, b = body_motion(system, one), body_motion(system, other)
    apart = max(np.abs(a.position - b.position).max() / system.size, np.abs(a.rotation - b.rotation).max())
    return bool(apart < SAME)


# -------------------------------------------------------------------------------------- rounded dimensions


def _contradicted(system: System, starts: Sequence[State], targets: Sequence[_Target]) -> Contradiction | None:
    """Redundant rows that keep the mechanism open by contradicting others; None if it is something else."""
    if system.tolerated is not None:
        return None
    for start in starts:
        found = contradiction(system, _follow_least_residual(system, start, targets))
        if found is not None:
            return found
    return None


def _follow_least_residual(system: System, start: State, targets: Sequence[_Target]) -> State:
    """Pose of least residual with the targets at their values, to which they are brought in small steps."""
    pose = _least_residual(system, start, [])
    origin = _measured(system, pose, targets)
    steps = min(int(np.ceil(_distance(system, pose, targets) / STEP)), MOST_STEPS)
    for k in range(1, steps + 1):
        pairs = zip(targets, origin, strict=True)
        partial = [replace(target, value=x + k / steps * (target.value - x)) for target, x in pairs]
        pose = _least_residual(system, _set(system, pose, partial), partial)
    return pose


def _least_residual(system: System, start: State, targets: Sequence[_Target]) -> State:
    """Pose of least residual near the start: Newton steps without the singular values that contradictions make."""
    pose = start
    free, rows, weight = _held(system, targets)
    try:
        J, r = _rows(system, pose, rows)
    except SingularityError:
        return pose
    for _ in range(NEWTON):
        size = _norm(r, weight)
        A = (J * weight[:, None] * system.speed_units)[:, free]
        least = float(np.clip(CONTRADICTING * size, LEAST_SINGULAR, MOST_SINGULAR))
        x = np.zeros(system.nv)
        x[free] = system.speed_units[free] * (np.linalg.pinv(A, rcond=least) @ (-r * weight))
        x = _limited(x, system.speed_units)
        trial = State(pose.t, increment(system, pose.q, x), pose.v)
        try:
            J, r_new = _rows(system, trial, rows)
        except SingularityError:
            return pose
        if not np.linalg.norm(r_new * weight) < 0.99 * np.linalg.norm(r * weight):
            return pose
        pose, r = trial, r_new
    return pose


def _close_but(system: System, request: _Request, found: Contradiction) -> tuple[State, str]:
    """Close all rows but those that contradict others, where a tolerance allows it."""
    if request.allowed is None:
        raise _rounded(system, found, request.targets)
    kept = system.tolerating(Tolerated(found.rows, *request.allowed))
    # from where the rows were chosen: on the way from the start they may depend on each other
    pose, note = _close(kept, found.pose, replace(request, allowed=None))
    if look(kept, pose).beyond is not None:
        raise _rounded(system, found, request.targets, request.allowed)
    return _with_rows_open(kept, pose, note)


def _with_rows_open(kept: System, pose: State, note: str) -> tuple[State, str]:
    """A pose that closes a system but for the rows it leaves open within their tolerance, and which are open there."""
    wrong = beyond_tolerance(look(kept, pose), "the closed pose")
    if wrong:
        raise AssemblyError(wrong, nearest=pose)
    system = kept.exact or kept
    open_by = np.abs(terms(system, pose).phi)
    worst = ", ".join(
        f"{label} by {x:.2g} {'rad' if d == 'angle' else 'm'}"
        for label, d, x, least in zip(
            system.constraint_rows, system.row_dimensions, open_by, CLOSED * system.row_units, strict=True
        )
        if x > least
    )
    note += f"; within the tolerance these redundant constraints stay open: {worst or 'none at this pose'}"
    return replace(pose, tolerated=kept.tolerated), note


def _rounded(
    system: System, found: Contradiction, targets: Sequence[_Target], allowed: tuple[float, float] | None = None
) -> AssemblyError:
    """Redundant constraints contradict each other: which, by how much, and what would help."""
    angle, length = found.largest(system)
    amounts = [f"{x:.2g} {unit}" for x, unit in ((angle, "rad"), (length, "m")) if x > 0.0]
    held = f" with {', '.join(f'{k.label} = {k.value:g}' for k in targets)}" if targets else ""
    together, alone = changes_that_close(system, found)
    cure = f" The smallest change of dimensions that closes it: move {_listed(together)}." if together else ""
    cure += f" One change alone that does: move {_listed(alone[0])}." if alone else ""
    text = (
        f"the mechanism cannot be closed{held}: redundant constraints contradict each other by up to "
        f"{' and '.join(amounts)} ({', '.join(found.residual)}), as rounded dimensions make them; all others close."
    )
    if allowed is not None:
        text += f" The tolerance allows {allowed[0]:.2g} rad and {allowed[1]:.2g} m."
    least = _rounded_up(max(angle, length / system.size)), _rounded_up(max(length, angle * system.size))
    return AssemblyError(
        f"{text}{cure} Or leave them open: ld.assemble(system, ..., tolerance=({least[0]:.0e}, {least[1]:.0e})) in rad "
        "and m, --angle-tolerance and --length-tolerance on the command line.",
        nearest=found.pose,
        gap=max(angle, length),
    )


def _listed(changes: Sequence[Change]) -> str:
    """Changes of dimensions in words, the largest ones."""
    more = f" and {len(changes) - NAMED} smaller ones" if len(changes) > NAMED else ""
    return ", ".join(str(change) for change in changes[:NAMED]) + more


def _rounded_up(x: float) -> float:
    """The power of ten above twice a number: room for the residual to grow along a motion."""
    return float(10.0 ** np.ceil(np.log10(2.0 * x)))


# -------------------------------------------------------------------------------------------------- limits


def _allowed(system: System, target: _Target, value: float) -> bool:
    """Whether a coordinate may have this value; an angle may be off by whole turns."""
    low, high = system.limits[target.label]
    length = _dimension(target) == "length"
    if target.joint.spec.is_periodic(_number(target)):
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
        j, k, *_ = system.labels.coordinates[label]
        target = _Target(label, 0.0, j.v0 + k if j.in_tree else -1, j.q0 + k if j.in_tree else k, j)
        value = _measured(system, pose, [target])[0]
        if not _allowed(system, target, value):
            found.append(replace(target, value=low if abs(value - low) < abs(value - high) else high))
    return found


def beyond_limits(system: System, pose: State) -> bool:
    """Whether a coordinate, also of a cut joint, is beyond its limits; angles may be off by whole turns."""
    return bool(_outside(system, pose, []))


def _inside(system: System, found: _Found, targets: Sequence[_Target], work: _Work) -> _Found | None:
    """The closure, brought within the limits of all joints along its branch; None if that is not possible."""
    at_limit: list[_Target] = []
    while new := _outside(system, found.pose, [*targets, *at_limit]):
        at_limit += new
        moved = _follow(system, found.pose, [*targets, *at_limit], work)
        if moved.gap is not None:
            return None
        labels = ", ".join(f"{k.label} = {k.value:g}" for k in at_limit)
        found = _Found(moved.pose, None, f"closed with {labels} at the limit: nearer closures are outside")
    return found


def _range(system: System, label: str) -> str:
    low, high = system.limits[label]
    return f"[{low:g}, {high:g}]"


def _beyond_limits(system: System, pose: State, targets: Sequence[_Target], starts: str) -> AssemblyError:
    held = f" with {', '.join(f'{k.label} = {k.value:g}' for k in targets)}" if targets else ""
    passed = _outside(system, pose, targets)
    values = _measured(system, pose, passed)
    text = ", ".join(f"{k.label} = {x:.4g} {_range(system, k.label)}" for k, x in zip(passed, values, strict=True))
    return AssemblyError(
        f"the mechanism closes{held}, but all closures found from {starts} are outside the limits of its "
        f"joints, the nearest with {text} (rad or m). If there is one inside, start nearer to it with near=... or "
        "'start' in the model; otherwise correct the limits or the values given, or assemble with limits=False.",
        nearest=pose,
    )


# ------------------------------------------------------------------------------------------------ one closure


@dataclass(frozen=True)
class _Found:
    """A pose, the gap that is left there (None if closed), and how it was reached."""

    pose: State
    gap: float | None
    note: str


def _directly(system: System, start: State, targets: Sequence[_Target], note: str, work: _Work | None = None) -> _Found:
    """Put the targets at their values at once and close the loops."""
    return _Found(*_newton(system, _set(system, start, targets), targets, work), note)


def _follow(system: System, start: State, targets: Sequence[_Target], work: _Work | None = None) -> _Found:
    """Bring the targets to their values step by step, the loops being closed after each step.

    When `work` is done, a step that fails is not made shorter: the targets are put at their values directly.
    """
    work = work or _Work(system)
    pose, gap = _newton(system, start, [], work)
    if not targets:
        return _Found(pose, gap, "closed from the pose it started at")
    if gap is not None:
        return _directly(system, start, targets, "closed from the pose it started at", work)
    distance = _distance(system, pose, targets)
    if distance > FOLLOWED:
        return _directly(system, start, targets, "too far to follow; closed directly, perhaps on another branch", work)
    done, step = 0.0, 1.0 if distance == 0.0 else min(1.0, STEP / distance)
    origin = _measured(system, pose, targets)
    while done < 1.0:
        share = min(1.0, done + step)
        partial = [
            replace(k, value=k.value if share == 1.0 else x + share * (k.value - x))
            for k, x in zip(targets, origin, strict=True)
        ]
        trial, gap = _newton(system, _predicted(system, pose, partial), partial, work)
        moved = np.abs(difference(system, pose.q, trial.q) / system.speed_units).max(initial=0.0)
        if gap is None and moved < 10 * STEP:
            pose, done = trial, share
            step *= 1.5
        else:
            step *= 0.4
            if step * distance < 1e-3 * STEP or work.done:
                blocked = "the way from the start is blocked; closed directly, perhaps on another assembly branch"
                return _directly(system, start, targets, blocked, work)
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


def _number(target: _Target) -> int:
    """Number of a coordinate among those of its joint."""
    j = target.joint
    return target.coordinate - (j.q0 if j.in_tree else 0)


def _dimension(target: _Target) -> str:
    return target.joint.spec.dimensions[_number(target)]


def _measured(system: System, pose: State, targets: Sequence[_Target]) -> list[float]:
    """Present values of the targets."""
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


def _newton(
    system: System, start: State, targets: Sequence[_Target], work: _Work | None = None
) -> tuple[State, float | None]:
    """Damped Newton steps of least motion with the targets held; the gap that is left, or None if closed.

    Closed poses are improved as long as a step halves the residual: at a singular pose the residual is the square
    of the distance to it, and 1e-12 would be far away.
    """
    pose, work = start, work or _Work(system)
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
            work.evaluated()
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
        j, n = k.joint, k.coordinate
        if not j.in_tree and j.spec.is_periodic(n) and not system.knows_turns(j, n):
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
    cut = [j for j in system.joints.values() if not j.in_tree and j.spec.turning == "about z"]
    motion = body_motion(system, pose) if cut else None
    cosines = {j.name: relative_pose(j, motion)[0][2, 2] for j in cut if motion is not None}
    return {name: float(np.arccos(max(c, -1.0))) for name, c in cosines.items() if c < 0.0}


def flipped(system: System, pose: State) -> bool:
    """Whether axes of some cut joint point against each other: its rows vanish there too, but it is not closed."""
    return bool(_opposed(system, pose))


def _failure(system: System, pose: State, targets: Sequence[_Target], starts: str) -> AssemblyError:
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
        f"the mechanism cannot be closed{held}: {where} stays open by {gap:.3g} (m or rad) from {starts}. "
        f"Nearest pose found (rad or m): {pose_text}{', ...' if system.nq > 6 else ''}. Check lengths and given "
        "values, or start nearer to a closed pose with near=...",
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
        raise _speed_error(system, pose, labels, rows, gap, SPEEDS * max(1.0, size))
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


def _speed_error(
    system: System, pose: State, labels: Sequence[str], rows: Array, gap: Array, scale: float
) -> AssemblyError:
    """Speeds that were given cannot be met, or the constraints themselves cannot."""
    still = _held_still(system, pose, labels, rows)
    if still:
        text = f"the constraints let {', '.join(still)} not move at this pose: {_why_still(system, pose)} "
        hint = "Correct what holds it, or give no speed."
    elif labels:
        unmet = [label for label, x in zip(labels, gap[system.nc :], strict=True) if x > scale] or labels
        text = f"the speeds of {', '.join(unmet)} contradict the constraints or each other at this pose. "
        hint = "Give fewer speeds, or values that fit together."
    else:
        unmet = [row for row, x in zip(system.constraint_rows, gap, strict=False) if x > scale]
        text = f"no speeds meet the constraints {', '.join(unmet)} together at this pose and time. "
        hint = "Remove one of them, or change a driver that leads where the others do not let it go."
    return AssemblyError(text + hint, nearest=pose, gap=float(gap.max()))


def _held_still(system: System, pose: State, labels: Sequence[str], rows: Array) -> list[str]:
    """Speeds among those given that the constraints hold at zero at the pose; none where constraints move in time."""
    now = terms(system, pose)
    if now.phi_t.any():
        return []
    A = scaled(system, now.J)
    N = np.linalg.svd(A)[2][of_matrix(A, SPEEDS).count :].T if system.nc else np.eye(system.nv)
    moves = np.abs((rows * system.speed_units) @ N).max(axis=1, initial=0.0)
    scale = np.abs(rows * system.speed_units).max(axis=1, initial=0.0)
    return [label for label, x, s in zip(labels, moves, scale, strict=True) if x < STILL * s]


def _why_still(system: System, pose: State) -> str:
    """What keeps a mechanism from moving: freedoms left, an axis out of parallel, small contradictions."""
    left = system.nv - of_matrix(scaled(system, terms(system, pose).J), SPEEDS).count
    text = f"{left} degree{'' if left == 1 else 's'} of freedom {'is' if left == 1 else 'are'} left there."
    for loop in system.topology.loops:
        odd = _odd_axis(system, pose, loop.joints)
        if odd is not None:
            return (
                f"{text} In the loop {loop} the axis of '{odd[0]}' is {odd[1]:.3g} rad out of parallel to the others."
            )
    found = contradiction(system, pose, LARGEST)
    if found is not None:
        text += f" Only {', '.join(found.residual)} hold it, by small contradictions: see ld.mobility(system, state)."
    return text


def _odd_axis(system: System, pose: State, joints: Sequence[str]) -> tuple[str, float] | None:
    """The only axis of a loop that is not parallel to the others, and the angle between them in rad."""
    motion = body_motion(system, pose)
    own = [system.joints[name] for name in joints]
    turning = [j for j in own if j.spec.turning == "about z" and len(j.spec.speeds) == 1]
    axes = {j.name: motion.rotation[j.parent] @ j.F[1][:, 2] for j in turning}
    if len(axes) < 4:  # of three axes two may be parallel by chance
        return None
    for name, axis in axes.items():
        others = [other for key, other in axes.items() if key != name]
        apart = max(float(np.linalg.norm(np.cross(others[0], other))) for other in others)
        sine = float(np.linalg.norm(np.cross(others[0], axis)))
        if apart < PARALLEL < sine:
            return name, float(np.arctan2(sine, abs(others[0] @ axis)))
    return None


def speed_rows(system: System, pose: State, labels: Sequence[str]) -> Array:
    """Rows (labels, nv) that give joint speeds, of tree or cut joints, from those of the tree; bases at rest.

    Their transposes are the generalised forces of unit loads on these speeds.
    """
    motion = body_motion(system, pose)
    rows = np.zeros((len(labels), system.nv))
    for n, label in enumerate(labels):
        j, k, *_ = system.labels.speeds[label]
        if j.in_tree:
            rows[n, j.v0 + k] = 1.0
        else:
            rows[n] = freedom_rate(system, pose, motion, j, k)[0]
    return rows


__all__ = ["assemble", "beyond_limits", "flipped", "speed_rows"]
