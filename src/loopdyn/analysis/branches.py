"""Assembly branches: all closures of a mechanism for given independent coordinates, and the poses where they meet.

[Blajer1993 section 4, Fig. 3], with the groups of :mod:`loopdyn.formulations.closure.plan`: a group of joints has two
closures, told apart by the sign of its determinant, which meet where the group is singular. A mechanism all of whose
coordinates follow by such groups has at most 2^groups closures, and they are all found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

from loopdyn.analysis.assembly import said
from loopdyn.analysis.assembly_closure import flipped
from loopdyn.analysis.contradictions import check_open_rows, largest_open, said_open
from loopdyn.errors import LoopdynError
from loopdyn.formulations.closure.formulation import Closer, plan_for
from loopdyn.formulations.closure.plan import ClosurePlan
from loopdyn.formulations.partition.criteria import measure, null_space
from loopdyn.loops.continuation import Rule, close, least_between, zero_between
from loopdyn.loops.projection import Loops
from loopdyn.loops.rank import decide, scaled
from loopdyn.quantities.wording import unknown
from loopdyn.system.system import State, System, require_exact
from loopdyn.thresholds import SAME_POSE
from loopdyn.tree.functions import apart, constraint_equations, increment

Array = NDArray[np.float64]

MOST_GROUPS = 16  # most groups with two closures each whose combinations are all tried
STARTS = 60  # starts of the search if coordinates are iterated
# Starts are random, so most are far away: steps are limited but not damped, since a local minimum is no closure.
SEARCH = Rule(steps=40, longest=0.5)
SAMPLES = 2000  # samples of a range that is searched for singular poses
TOUCHING = 1e-10  # discriminant, in natural units, of a group that is singular without being at a limit
CLOSE_BY = 1e-3  # ... of a sample near which one is searched
# Component of a coordinate in the motion at a singular pose below which it is singular too, and ratio of singular
# values below which the rows lose rank: the pose is located to the square root of rounding, about 1e-7.
STANDS_STILL = 1e-5


@dataclass(frozen=True)
class Branch:
    """One closure.

    Attributes
    ----------
    name : str
        Signs of the determinants of the groups, e.g. "B-C-D +"; the number of a pose that was found by search.
    signs : dict
        +1 or -1 by group.
    state : State
        The pose, at rest.
    """

    name: str
    signs: dict[str, int]
    state: State


@dataclass(frozen=True)
class Branches:
    """Closures for given independent coordinates; can be printed and iterated over.

    Attributes
    ----------
    plan : Plan
        How they were found.
    given : dict
        The independent coordinates, in declared units.
    found : tuple of Branch
    complete : bool
        Whether these are all closures.
    """

    plan: ClosurePlan
    given: dict[str, float]
    found: tuple[Branch, ...]
    complete: bool

    def __iter__(self) -> Iterator[Branch]:
        return iter(self.found)

    def __len__(self) -> int:
        return len(self.found)

    def __str__(self) -> str:
        s = self.plan.system
        at = ", ".join(said(s, k, x * s.labels.factor(k)) for k, x in self.given.items()) or "nothing given"
        how = "all there are" if self.complete else "found by search, so there may be more"
        lines = [f"{s.name} at {at}: {len(self)} closures, {how}"]
        open_ = largest_open((s, branch.state) for branch in self)
        lines += [f"  {said_open(s, open_)}"] if open_ else []
        for branch in self:
            pose = zip(s.coordinates, branch.state.q, strict=True)
            values = ", ".join(said(s, label, x) for label, x in pose if label not in self.given)
            lines.append(f"  {branch.name or 'only one'}: {values}")
        return "\n".join(lines)


@dataclass(frozen=True)
class SingularPose:
    """Singular pose: the dependent coordinates are not determined by the independent one.

    Attributes
    ----------
    group : str
        Joints of the group that is extended or folded there.
    value : float
        Independent coordinate, in its declared unit.
    limit : bool
        Whether the mechanism cannot be closed beyond it.
    state : State
        The pose, at rest.
    singular : tuple of str
        All coordinates that cannot be independent there: the given one and, where singularities coincide, others.
    """

    group: str
    value: float
    limit: bool
    state: State
    singular: tuple[str, ...]


def branches(system: System, q: Mapping[str, float], t: float = 0.0, near: State | None = None) -> Branches:
    """All closures of a mechanism for given independent coordinates.

    Parameters
    ----------
    system : System
    q : mapping of label to value
        As many coordinates, in declared units, as the mechanism has degrees of freedom; idle spins of rods need not be
        given. The pose of a body on a free joint is given by its coordinates; omitted ones have their values at `near`.
    t : float
        Time in s, for mechanisms with drivers.
    near : State, optional
        Closed state at which the geometry is examined; by default the one nearest to the reference pose. If it leaves
        redundant constraints open within a tolerance, closures that do so are searched.

    Examples
    --------
    >>> import loopdyn as ld
    >>> found = ld.analyses.branches(ld.library.four_bar().compile(), {"A": 0.3})
    >>> len(found), found.complete, [b.name for b in found]
    (2, True, ['B-C-D +', 'B-C-D -'])
    """
    system = system if near is None else system.for_state(near)
    state, chosen = _given(system, q, near)
    plan = plan_for(system, state, chosen)
    start = np.array(state.q)
    for label, value in system.in_si(q).items():
        start[system.coordinates.index(label)] = value
    start = system.state(start).q
    complete = plan.explicit and system.tolerated is None  # closed forms leave no row open
    found = _all(plan, t, start) if complete else _searched(plan, t, start, chosen)
    labelled = (replace(b, state=replace(b.state, system=system)) for b in found)
    return Branches(plan, dict(q), tuple(labelled), complete)


def _given(system: System, q: Mapping[str, float], near: State | None) -> tuple[State, list[int]]:
    """Closed state, and the indices of the independent speeds.

    Coordinates of a quaternion belong to all speeds of their joint. If degrees of freedom are missing, speeds of ball
    joints, which have no coordinate of their own, are added: the spins of rods.
    """
    chosen: list[int] = []
    known = system.labels.coordinates
    for label in q:
        if label not in known or not known[label].joint.in_tree:
            raise unknown("branches", "independent coordinate", [label], system.coordinates)
        j = known[label].joint
        whole = list(range(j.v0, j.v0 + len(j.spec.speeds)))
        own = whole if label not in system.speeds else [system.speeds.index(label)]
        chosen += [k for k in own if k not in chosen]
    rank = decide(system, near or system.state())
    state, freedoms = rank.state or system.state(), system.nv - rank.count
    missing = freedoms - len(chosen)
    balls = [j.v0 + k for j in system.joints.values() if j.in_tree for k in j.spec.spins()]
    W = null_space(scaled(system, constraint_equations(system, state)[1]), rank.count).T
    sets = [[*chosen, *c] for c in combinations([k for k in balls if k not in chosen], missing)] if missing > 0 else []
    best = max(sets, key=lambda c: measure(W, c), default=chosen)
    if len(best) != freedoms:
        raise LoopdynError(
            f"{len(chosen)} coordinates are given, but '{system.name}' has {freedoms} degrees of freedom. Give as many."
        )
    return state, best


def _all(plan: ClosurePlan, t: float, start: Array) -> Iterator[Branch]:
    two = sum(len(g.closures) > 1 for g in plan.groups)
    if two > MOST_GROUPS:
        raise LoopdynError(
            f"'{plan.system.name}' has {two} groups with two closures each, too many to list. Find the one you "
            "want with ld.assemble."
        )
    close = Closer(plan)
    dead: set[tuple[int, ...]] = set()
    for signs in product(*(g.closures for g in plan.groups)):
        if any(signs[:n] in dead for n in range(1, len(signs) + 1)):
            continue
        q = close(t, start, np.array(signs, float))
        if q is None:
            dead.add(signs[: close.failed + 1])
            continue
        named = {g.name: s for g, s in zip(plan.groups, signs, strict=True)}
        told = [(g.name, s) for g, s in zip(plan.groups, signs, strict=True) if len(g.closures) > 1]
        name = ", ".join(f"{group} {'+-'[s < 0]}{abs(s) if abs(s) > 1 else ''}" for group, s in told)
        yield Branch(name, named, State(t, q, np.zeros(plan.system.nv)))


def _searched(plan: ClosurePlan, t: float, start: Array, chosen: list[int]) -> list[Branch]:
    """Closed poses that Newton's method finds from random starts with the independent speeds fixed."""
    system = plan.system
    rng, units = np.random.default_rng(0), system.speed_units
    D = np.array([k not in chosen for k in range(system.nv)])
    found: list[Array] = []
    for n in range(STARTS):
        q = start
        if n:
            move = np.zeros(system.nv)
            move[D] = (rng.uniform(-np.pi, np.pi, int(D.sum())) * units[D]) / np.where(units[D] == 1.0, 1.0, np.pi)
            q = increment(system, start, move)
        there = _closed(system, t, q, D)
        if there is not None and all(apart(system, there, p) > SAME_POSE for p in found):
            found.append(there)
    still = np.zeros(system.nv)
    return [Branch(f"{n}", {}, State(t, q, still, tolerated=system.tolerated)) for n, q in enumerate(found, 1)]


def _closed(system: System, t: float, q: Array, D: NDArray[np.bool_]) -> Array | None:
    """Closure that Newton's method finds from a pose by moving only the speeds D; None if it finds none."""
    found = close(Loops(system, t, free=D), q, SEARCH)
    at = State(t, found.y, np.zeros(system.nv))
    wrong = not found.closed or flipped(system, at) or check_open_rows(system, at).beyond is not None
    return None if wrong else found.y


# ------------------------------------------------------------------------------------------ singular poses


def singular_poses(
    system: System,
    label: str,
    span: tuple[float, float] | None = None,
    t: float = 0.0,
    near: State | None = None,
) -> tuple[SingularPose, ...]:
    """Poses at which a coordinate cannot be independent, for a mechanism with one degree of freedom in closed form.

    Parameters
    ----------
    system : System
    label : str
        The independent coordinate.
    span : (2,), optional
        Range of the search in declared units; by default one turn about the pose `near`, or for a slide twice the
        mechanism's size to both sides.
    t : float
        Time in s.
    near : State, optional
        Closed state at which the geometry is examined; by default the one nearest to the reference pose.

    Examples
    --------
    The rocker of a crank-rocker has two limits in each of its closures:

    >>> import loopdyn as ld
    >>> found = ld.analyses.singular_poses(ld.library.four_bar().compile(), "D")
    >>> sorted({round(p.value, 3) for p in found if p.limit})
    [-3.088, -0.08, 0.972, 2.144]
    """
    require_exact(system, near, "singular_poses", f"ld.drive(system, '{label}', ..., near=...), which lists them")
    state, chosen = _given(system, {label: 0.0}, near)
    plan = plan_for(system, state, chosen)
    if not plan.explicit:
        raise LoopdynError(
            f"coordinates of '{system.name}' are iterated if '{label}' is independent, so its singular poses are not "
            "known in advance. See ld.analyses.coordinates(system, state).sweep(...)."
        )
    four = [g.name for g in plan.groups if len(g.closures) > 2]
    if four:
        raise LoopdynError(
            f"the group {four[0]} of '{system.name}' has up to four closures, told apart along a motion only, so its "
            "singular poses are not known in advance. See ld.analyses.coordinates(system, state).sweep(...)."
        )
    k = system.coordinates.index(label)
    half = np.pi if system.speed_units[chosen[0]] == 1.0 else 2.0 * system.size
    factor = system.labels.factor(label)
    low, high = (x * factor for x in span) if span else (state.q[k] - half, state.q[k] + half)
    found: list[SingularPose] = []
    for signs in product(*(g.closures for g in plan.groups)):
        for pose in _on_branch(plan, t, state.q, k, np.array(signs, float), (low, high)):
            if all(p.group != pose.group or apart(system, p.state.q, pose.state.q) > SAME_POSE for p in found):
                found.append(pose)
    declared = [replace(p, value=p.value / factor, state=replace(p.state, system=system)) for p in found]
    return tuple(sorted(declared, key=lambda p: p.value))


def _on_branch(
    plan: ClosurePlan, t: float, q: Array, k: int, signs: Array, span: tuple[float, float]
) -> Iterator[SingularPose]:
    close = Closer(plan)

    def margin(g: int) -> Callable[[float], float]:
        """Discriminant of group g; NaN if an earlier group cannot be closed."""

        def of(x: float) -> float:
            trial = np.array(q)
            trial[k] = x
            closed = close(t, trial, signs)
            return float(close.margins[g]) if closed is not None or close.failed >= g else np.nan

        return of

    def pose(x: float) -> Array | None:
        trial = np.array(q)
        trial[k] = x
        return close(t, trial, signs)

    xs = np.linspace(*span, SAMPLES + 1)
    for n, group in enumerate(plan.groups):
        of = margin(n)
        values = np.array([of(float(x)) for x in xs])
        for i in range(SAMPLES):
            a, b, x = values[i], values[i + 1], None
            if a * b < 0.0:
                x, limit = zero_between(of, float(xs[i]), float(xs[i + 1]), 1e-14), True
                x = x if of(x) >= 0.0 else float(np.nextafter(x, xs[i] if a > 0.0 else xs[i + 1]))
            elif i > 0 and b < CLOSE_BY and values[i - 1] >= a and a <= b:
                least, value = least_between(of, float(xs[i - 1]), float(xs[i + 1]), 1e-12)
                if abs(value) < TOUCHING:
                    x, limit = least, False
            at = None if x is None else pose(x)
            if x is not None and at is not None:
                there = State(t, at, np.zeros(plan.system.nv))
                yield SingularPose(group.name, x, limit, there, _standing(plan, there))


def _standing(plan: ClosurePlan, state: State) -> tuple[str, ...]:
    """Speeds that cannot be independent at a pose."""
    system, rank = plan.system, plan.system.nv - len(plan.independent)
    _, values, V = np.linalg.svd(scaled(system, constraint_equations(system, state)[1]))
    if values[rank - 1] < STANDS_STILL * values[0]:
        return system.speeds  # the rows lose rank: no coordinate determines the motion
    shares = np.linalg.norm(V[rank:], axis=0)
    return tuple(label for label, x in zip(system.speeds, shares, strict=True) if x < STANDS_STILL)
