"""Assembly: close all loops in position and velocity, keep what the user fixed, move the rest as little as possible.

Newton steps of least length in the mass metric close the loops. Prescribed coordinates are moved to their values
in small steps, and the loops are closed after each, so that the mechanism stays on its branch. If that path is
blocked, or the start is far from closed, other starts around the pose are tried; the note of the state says so.
A closure outside a joint limit is moved to the limit if the remaining degrees of freedom allow it; otherwise
another closure is searched in the same way.

If redundant constraints contradict each other, because dimensions are rounded, no pose satisfies all of them. The error
says so, and with a tolerance all other rows are closed (:mod:`loopdyn.analysis.contradictions`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from loopdyn.analysis.assembly_closure import (
    TRIES,
    FoundPose,
    Held,
    SearchBudget,
    Target,
    brought_inside,
    directly,
    follow_targets,
    opposed,
    outside_limits,
    values_of,
    within_limits,
)
from loopdyn.analysis.assembly_contacts import outside_contacts
from loopdyn.analysis.assembly_contradictions import contradicted, rounded_error, with_rows_open
from loopdyn.analysis.assembly_speeds import speeds_for
from loopdyn.analysis.contradictions import (
    Contradiction,
    check_open_rows,
    contradiction,
)
from loopdyn.errors import AssemblyError, LoopdynError, ModelError, Problem
from loopdyn.loops.rank import of_matrix
from loopdyn.quantities.wording import unknown
from loopdyn.system.system import State, System, Tolerated
from loopdyn.thresholds import SAME_POSE
from loopdyn.tree.functions import (
    body_motion,
    difference,
    increment,
    open_tree_mass_matrix,
    terms,
)

Array = NDArray[np.float64]
RESOLVED = 1e9  # natural units: beyond, neighbouring floats are poses that differ by 1e-7
# ... unless closing them has taken this many evaluations of a small mechanism, about three per millisecond. Evaluations
# are counted, not time, so that results do not depend on the load of the machine.
PATIENCE = 10000.0
SPREAD = 0.8  # natural units: distance of other starts
EVERYWHERE = np.pi  # ... in a search for closures other than the nearest: any angle


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
        Coordinates and speeds by label, of tree joints or of cut joints, in the declared units: they are met exactly.
        An array, SI, is an approximate pose. By default the start values of the model. Full turns of angles count from
        the start; those of a cut joint are kept if its loop has parallel axes or an element depends on the angle.
    fix : list of labels, optional
        Coordinates whose values are met exactly; by default all that were given by label. A label without a value
        keeps its value at the start: in the array `q`, in `near`, or at the reference pose.
    near : State, optional
        Pose to start from; by default the reference pose. The tolerance with which it was closed holds here, too.
    t : float, optional
        Time in s; by default that of `near`, or zero.
    tries : int, optional
        Number of starts around the given pose before giving up. By default 60; fewer in large mechanisms, where the
        search is limited to about 3 s of work, counted in evaluations, and the error then says so.
    limits : bool
        Whether coordinates must be within the limits of their joints, and no rigid contact may be passed: then the
        pose is moved to the nearest one outside. Values given in `q` are kept in any case; the note says so.
    search : bool
        Close from all `tries` starts instead of stopping at the first success: the nearest of all closures found is
        returned, and the note says how many there were.
    tolerance : float or (angle, length), optional
        Largest residual, in the declared units of angles and lengths, of redundant constraints that contradict others
        because dimensions are rounded; one number holds for both. All other constraints are satisfied exactly. By
        default that of `near`, or zero. `tolerated` of the state lists the constraints that stay open; analyses and
        runs from this state leave them open. A system that already leaves rows open, like that of a run from such a
        state, leaves the same rows open unless a tolerance is given.

    Returns
    -------
    State
        Closed to 1e-12 of the mechanism's size, except for what `tolerance` allows; its `note` says how it was found.

    Raises
    ------
    AssemblyError
        Names the joints that stay open, the gap, and the nearest pose; or the limits that every closure found
        violates; or the speeds or constraints that contradict each other. If rounded dimensions make redundant
        constraints contradict: which, by how much, and the smallest change of dimensions that closes the mechanism.

    Examples
    --------
    >>> import loopdyn as ld
    >>> system = ld.library.four_bar().compile()
    >>> state = ld.assemble(system, q={"A": 0.3}, v={"A": 2.0})
    >>> round(state["A"], 9), state["A.speed"]
    (0.3, 2.0)
    >>> ld.assemble(system, q={"A": 0.3}, search=True).note
    'nearest of 2 closures found from 60 starts'
    """
    q = system.in_si(q) if isinstance(q, Mapping) else q
    v = system.in_si(v, speeds=True) if isinstance(v, Mapping) else v
    allowed = None if tolerance is None else _tolerances(system, tolerance)
    try:
        found = assembled(
            system,
            q,
            v,
            fix=fix,
            near=near,
            t=t,
            tries=tries,
            limits=limits,
            search=search,
            tolerance=allowed,
            contacts=limits,
        )
    except AssemblyError as error:
        error.nearest = replace(error.nearest, system=system) if isinstance(error.nearest, State) else None
        raise
    return replace(found, system=system)


def assembled(
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
    tolerance: tuple[float, float] | None = None,
    contacts: bool = False,
) -> State:
    """Close all loops: :func:`assemble` with coordinates and speeds in SI units; `contacts`: beyond none of them."""
    if q is None and v is None and near is None:
        q, v = system.start
    t = (0.0 if near is None else near.t) if t is None else float(t)
    start = State(t, system.q_reference if near is None else near.q, np.zeros(system.nv))
    if q is not None and not isinstance(q, Mapping):
        start = State(t, system.state(q).q, start.v)
    _check_labels(system, q, v, fix)
    targets, guesses = _targets(system, start, q if isinstance(q, Mapping) else {}, fix)
    start = State(t, _moved(system, start.q, guesses), start.v)
    allowed = tolerance
    if allowed is None and system.tolerated is None and near is not None and near.tolerated is not None:
        allowed = near.tolerated.angle, near.tolerated.length
    system = system if allowed is None else system.exact or system
    pose, note = _close(system, start, _Request(tuple(targets), tries, limits, search, allowed))
    moved = outside_contacts(system.for_state(pose), pose, targets) if contacts and system.mechanism.contacts else None
    if moved is not None:
        pose, note = replace(moved[0], tolerated=pose.tolerated), f"{note}; {moved[1]}"
    if system.tolerated is not None:
        pose, note = with_rows_open(system, pose, note)
    return State(t, pose.q, speeds_for(system.for_state(pose), pose, v, fix), note, pose.tolerated)


def _tolerances(system: System, given: float | tuple[float, float]) -> tuple[float, float]:
    """Tolerances of angles and lengths, rad and m."""
    try:
        values = np.broadcast_to(np.asarray(given, float), 2)
    except (TypeError, ValueError):
        values = np.array([np.nan, np.nan])
    if not (np.isfinite(values).all() and (values >= 0.0).all()):
        raise LoopdynError(
            f"assemble: tolerance is {given!r}. Give one number, or one for angles and one "
            f"for lengths, in {system.units.angle} and {system.units.length}."
        )
    return float(values[0]) * system.units.factor("angle"), float(values[1]) * system.units.factor("length")


def _check_labels(system: System, q: object, v: object, fix: Sequence[str] | None) -> None:
    """Raise if a label is unknown or a value cannot be a coordinate."""
    coordinates, speeds = system.labels.coordinates, system.labels.speeds
    for given, known, kind in (
        (q if isinstance(q, Mapping) else (), coordinates, "coordinate"),
        (v if isinstance(v, Mapping) else (), speeds, "speed"),
        (fix or (), [*coordinates, *speeds], "coordinate"),
    ):
        wrong = [label for label in given if label not in known]
        if wrong:
            raise unknown("assemble", kind, wrong, known)
    problems = _beyond_numbers(system, q if isinstance(q, Mapping) else {})
    if problems:
        raise ModelError(problems)


def _beyond_numbers(system: System, given: Mapping[str, float]) -> list[Problem]:
    """Coordinates that are not finite, or too large to locate a body."""
    found = []
    for label, of in system.labels.coordinates.items():
        most = RESOLVED * (system.size if of.dimension == "length" else 1.0)
        if label in given and not abs(given[label]) <= most:
            hint = "Give an angle without its full turns, or a length of the mechanism."
            found.append(Problem("assemble", f"{said(system, label, given[label])} cannot be a pose", hint))
    return found


# ------------------------------------------------------------------------------------------------ position


def _targets(
    system: System, start: State, given: Mapping[str, float], fix: Sequence[str] | None
) -> tuple[list[Target], list[Target]]:
    """Prescribed coordinates, and coordinates whose values are only a starting point."""
    kept = set(given if fix is None else fix)
    fixed: list[Target] = []
    guesses: list[Target] = []
    problems = []
    for j in system.joints.values():
        labels = j.spec.labels(j.name)[0]
        scalar = len(labels) == len(j.spec.speeds)
        for k, label in enumerate(labels):
            if label not in given and label not in kept:
                continue
            column = j.v0 + k if j.in_tree and scalar else -1
            target = Target(label, 0.0, column, j.q0 + k if j.in_tree else k, j)
            value = given[label] if label in given else values_of(system, start, [target])[0]
            (fixed if label in kept else guesses).append(replace(target, value=float(value)))
            if label in kept and not scalar and not j.in_tree:
                hint = "Give it as an approximate pose, or choose other cuts."
                problems.append(Problem("assemble", f"'{label}' belongs to a cut joint with a quaternion", hint))
        turning = [label for label, dimension in zip(labels, j.spec.dimensions, strict=True) if dimension == "number"]
        if j.in_tree and kept & set(turning) not in (set(), set(turning)):
            hint = f"Give all of {', '.join(turning)}."
            problems.append(Problem("assemble", f"a part of the quaternion of '{j.name}' cannot be kept", hint))
    if problems:
        raise ModelError(problems)
    return fixed, guesses


def _moved(system: System, q: Array, guesses: Sequence[Target]) -> Array:
    out = np.array(q, float)
    for target in guesses:
        if target.joint.in_tree:
            out[target.coordinate] = target.value
    return system.state(out).q


@dataclass(frozen=True)
class _Request:
    """Requirements on a closure, and options of the search: see :func:`assemble`."""

    targets: tuple[Target, ...]
    tries: int | None
    limits: bool
    search: bool
    allowed: tuple[float, float] | None  # tolerance of angles and lengths, rad and m


def _close(system: System, start: State, request: _Request) -> tuple[State, str]:
    """Closed pose with the targets met, within the limits."""
    targets, tries, limits, search, allowed = (getattr(request, f.name) for f in fields(request))
    best = follow_targets(system, start, targets)
    if best.gap is not None:
        clash = contradicted(system, (start, best.pose), targets)
    else:  # closed, but contradictions hold it at this pose
        clash = None if allowed is None else contradiction(system, best.pose, max(allowed[0], allowed[1] / system.size))
    if clash is not None:
        return _close_but(system, request, clash)
    beyond: FoundPose | None = None  # a closure outside the limits
    n, work = 0, SearchBudget(system, np.inf if tries is not None else PATIENCE)
    closures = []
    far = EVERYWHERE if search or best.gap is None else SPREAD  # closed, but beyond the limits
    for n, found in enumerate(_attempts(system, start, targets, best, tries or TRIES, far, work), 1):
        if found.gap is None:
            inside = brought_inside(system, found, targets, work) if limits else found
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
    clash = contradicted(system, (best.pose,), targets) if beyond is None else None
    if clash is not None:
        return _close_but(system, request, clash)
    if beyond is None:
        raise _failure(system, best.pose, targets, work.starts(n))
    raise _beyond_limits(system, beyond.pose, targets, work.starts(n))


def _attempts(
    system: System,
    start: State,
    targets: Sequence[Target],
    first: FoundPose,
    tries: int,
    far: float,
    work: SearchBudget,
) -> Iterator[FoundPose]:
    """First attempt, then attempts from other starts around the given pose until `work` is used up.

    If the first one is closed already, it violates limits: every second start is then within all limits.
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
        yield directly(system, State(start.t, q, start.v), targets, "", work)


def _within_limits(system: System, q: Array, rng: np.random.Generator) -> Array:
    """Coordinates of a pose, with those of limited tree joints at random values within their limits."""
    out = np.array(q, float)
    for label, (low, high) in system.limits.items():
        if label in system.coordinates and np.isfinite([low, high]).all():
            out[system.coordinates.index(label)] = rng.uniform(low, high)
    return out


def _note(system: System, found: FoundPose, targets: Sequence[Target], n: int, beyond: FoundPose | None) -> str:
    """Note that says how a closure was found."""
    note = found.note if n == 1 else f"assembled from start {n} around the given pose: other closures may exist"
    if beyond is not None:
        passed = ", ".join(k.label for k in outside_limits(system, beyond.pose, targets))
        note += f"; a closure nearer to the start is outside the limits of {passed}"
    given = [k for k in targets if k.label in system.limits and not within_limits(system, k, k.value)]
    for k in given:
        note += f"; {said(system, k.label, k.value)} as given is outside its limits {_range(system, k.label)}"
    return note


def _nearest(
    system: System, start: State, targets: Sequence[Target], closures: Sequence[FoundPose], starts: str
) -> tuple[State, str]:
    """Nearest of several closures to the start, in the mass metric."""
    M = open_tree_mass_matrix(system, start)

    def distance(found: FoundPose) -> float:
        x = difference(system, start.q, found.pose.q)
        return float(x @ M @ x)

    distinct: list[FoundPose] = []
    for found in sorted(closures, key=distance):
        if not any(_same(system, found.pose, other.pose) for other in distinct):
            distinct.append(found)
    taken = distinct[0].pose
    loops = Held(system, taken.t, targets)
    A = (loops.dense_rows(taken.q)[1] * system.speed_units)[:, loops.free]
    left = A.shape[1] - of_matrix(A).count
    if left:
        noun = "degree of freedom is" if left == 1 else "degrees of freedom are"
        return taken, f"nearest of the closures found from {starts}; {left} {noun} left, so there are more"
    count = "1 closure" if len(distinct) == 1 else f"{len(distinct)} closures"
    return taken, f"nearest of {count} found from {starts}"


def _same(system: System, one: State, other: State) -> bool:
    """Whether all bodies have the same poses: coordinates may differ by full turns."""
    a, b = body_motion(system, one), body_motion(system, other)
    apart = max(np.abs(a.position - b.position).max() / system.size, np.abs(a.rotation - b.rotation).max())
    return bool(apart < SAME_POSE)


def _close_but(system: System, request: _Request, found: Contradiction) -> tuple[State, str]:
    """Close all rows except contradicting ones, if a tolerance allows it."""
    if request.allowed is None:
        raise rounded_error(system, found, request.targets)
    kept = system.tolerating(Tolerated(found.rows, *request.allowed))
    # from the pose at which the rows were chosen: elsewhere they may be dependent
    pose, note = _close(kept, found.pose, replace(request, allowed=None))
    if check_open_rows(kept, pose).beyond is not None:
        raise rounded_error(system, found, request.targets, request.allowed)
    return with_rows_open(kept, pose, note)


def _range(system: System, label: str) -> str:
    low, high = (x / system.labels.factor(label) for x in system.limits[label])
    return f"[{low:.6g}, {high:.6g}]"


def said(system: System, label: str, value: float) -> str:
    """Text with the value of a coordinate in its declared unit."""
    unit = system.units.symbol(system.labels.coordinates[label].dimension)
    return f"{label} = {value / system.labels.factor(label):.6g}{'' if unit == '1' else f' {unit}'}"


def _beyond_limits(system: System, pose: State, targets: Sequence[Target], starts: str) -> AssemblyError:
    held = f" with {', '.join(said(system, k.label, k.value) for k in targets)}" if targets else ""
    passed = outside_limits(system, pose, targets)
    values = values_of(system, pose, passed)
    text = ", ".join(
        f"{said(system, k.label, x)} {_range(system, k.label)}" for k, x in zip(passed, values, strict=True)
    )
    return AssemblyError(
        f"the mechanism closes{held}, but all closures found from {starts} are outside the limits of its "
        f"joints, the nearest with {text}. If one is inside, start nearer to it with near=... or "
        "'start' in the model; otherwise correct the limits or the values given, or assemble with limits=False.",
        nearest=pose,
    )


def _said_gap(system: System, phi: Array, gap: float) -> str:
    """Largest residual in the declared unit of its row; in SI units if it is of a coordinate that must not reverse."""
    k = int(np.argmax(np.abs(phi))) if len(phi) else -1
    if k < 0 or abs(phi[k]) < gap:
        return f"{gap:.3g} (m or rad)"
    dimension = system.row_dimensions[k]
    return f"{gap / system.units.factor(dimension):.3g} {system.units.symbol(dimension)}"


def _failure(system: System, pose: State, targets: Sequence[Target], starts: str) -> AssemblyError:
    now = terms(system, pose)
    weight = 1.0 / system.row_units
    gaps: dict[str, float] = {}
    for name, value in zip(system.row_elements, np.abs(now.phi * weight), strict=True):
        gaps[name] = max(gaps.get(name, 0.0), float(value))
    against = opposed(system, pose)
    gaps |= against
    worst = max(gaps, key=lambda name: gaps[name]) if gaps else ""
    loop = next((p for p in system.topology.loops if worst in p.joints), None)
    gap = max(float(np.abs(now.phi).max(initial=0.0)), *against.values(), 0.0)
    held = f" with {', '.join(said(system, k.label, k.value) for k in targets)}" if targets else ""
    where = f"joint '{worst}'" + (f" of the loop {loop}" if loop else "")
    labels = system.coordinates[:6]
    pose_text = ", ".join(said(system, c, x) for c, x in zip(labels, pose.q, strict=False))
    return AssemblyError(
        f"the mechanism cannot be closed{held}: {where} stays open by {_said_gap(system, now.phi, gap)} from {starts}. "
        f"Nearest pose found: {pose_text}{', ...' if system.nq > 6 else ''}. Check lengths and given "
        "values, or start nearer to a closed pose with near=...",
        nearest=pose,
        gap=gap,
    )
