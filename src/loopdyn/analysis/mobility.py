"""Mobility: degrees of freedom of a mechanism, redundant constraints, and statically indeterminate reactions.

At a closed pose the rank of the constraint rows gives the instantaneous degrees of freedom and the redundant rows
*here*. Whether a loss of rank is permanent (an overconstrained mechanism) or belongs to this pose alone (a change
point) is decided to second order: with U0 a basis of the left null space of the rows and N a basis of their null
space, a loss belongs to the pose if the quadratic forms U0^T phi''(v, v) do not vanish for all v in N. A random walk
over neighbouring closed poses, whose rank is computed, is an independent check; it starts along velocities for which
these forms vanish, as they do along every finite motion. If the walk does not regain the rank that the forms say is
lost, either some velocities lead to no finite motion (a shaky mechanism), which is tested by steps along all of
them, or the verdict is "undecided".
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from loopdyn.analysis.contradictions import LARGEST, contradiction
from loopdyn.errors import AssemblyError
from loopdyn.loops.free_bodies import free_system, free_terms, joint_rank
from loopdyn.loops.projection import project
from loopdyn.loops.rank import Rank, decide, of_matrix, scaled
from loopdyn.loops.reactions import least_part
from loopdyn.loops.sparse_steps import sparse_rows, takes_sparse_steps
from loopdyn.quantities.wording import element_of
from loopdyn.system.system import State, System
from loopdyn.thresholds import CANDIDATE, EXACT, NEARLY_CLOSED
from loopdyn.tree.functions import difference, increment, terms

Array = NDArray[np.float64]

SECOND_ORDER = 1e-6  # fraction of the largest form below which a quadratic form counts as zero
IDLE = 1e-7  # motion of other bodies, relative to that of the idle one, that counts as zero
STEP = 0.05  # natural units: length of a step of the walk
WALKS, GENERATIONS = 6, 3
MORE_WALKS = 30  # most walks of one step, if the forms say that rank is lost and no neighbour has regained it
# Residual, in natural units, below which a neighbour counts as closed: EXACT, or this multiple of the residual that
# rounded dimensions leave at the pose itself, or that singular values counted as zero cause along a step.
AS_NEAR = 3.0
# If the surfaces phi = 0 touch instead of crossing, a residual EXACT leaves coordinates uncertain by its square root:
# singular values of a neighbour below this are zero. Those lost at the pose alone are of the order of STEP there.
ZERO_THERE = 1e-5
CONE_STEPS = 40  # Newton steps to such a velocity; at double roots each only halves the distance
REACHED = 0.1  # fraction of a step that remains when the loops are closed: about one, or nearly zero


@dataclass(frozen=True)
class Mobility:
    """Mobility of a mechanism at and around a pose.

    Attributes
    ----------
    dof : int
        Degrees of freedom of finite motion, idle ones included.
    dof_here : int
        Instantaneous degrees of freedom at this pose.
    idle : tuple of str
        Bodies within a loop that can move without moving anything else, e.g. a rod that spins between two ball joints.
        Bodies that move together, welded or on one joint, are listed together: ``"cylinder + piston"``.
    redundant, redundant_here : int
        Redundant rows, permanently and at this pose.
    rank : int
        Rank of the constraint equations of all joints and constraints.
    rows : int
        Number of these constraint equations.
    grubler : int
        Grübler count: 6 per body minus the constraint equations.
    verdict : str
        "regular", "overconstrained", "singular here", "shaky" or "undecided".
    dependent : dict
        Rows of each joint that take part in a dependency.
    unique : dict
        For each joint, its reaction components and whether each is statically determinate.
    gap : float
        Clarity of the rank decision: ratio of the smallest singular value kept to the largest dropped.
    tolerated : dict
        Redundant rows that are left open within a tolerance, and their residuals at this pose, rad or m.
    driven : int
        Number of drivers.
    held : dict
        If only small contradictions of redundant rows prevent motion: these rows, and their residuals at neighbouring
        poses, rad or m.
    nearly : int
        Number of these rows that are so nearly dependent that simulations count them as dependent.
    """

    name: str
    dof: int
    dof_here: int
    idle: tuple[str, ...]
    redundant: int
    redundant_here: int
    rank: int
    rows: int
    grubler: int
    verdict: str
    dependent: dict[str, tuple[str, ...]]
    unique: dict[str, dict[str, bool]]
    gap: float
    tolerated: dict[str, float] = field(default_factory=dict)
    driven: int = 0
    held: dict[str, float] = field(default_factory=dict)
    nearly: int = 0

    @property
    def rigid(self) -> bool:
        """Whether it is a structure: the constraints allow no motion, and no driver moves it."""
        return self.dof == self.dof_here == self.driven == 0

    @property
    def _explained(self) -> str:
        if self.verdict not in ("regular", "overconstrained") or self.dof or self.dof_here:
            return EXPLAIN[self.verdict]
        repeated = "; some constraints are redundant, so misfits may cause loads" if self.redundant else ""
        if self.rigid:
            return "a structure (rigid): the constraints allow no motion" + repeated
        return "drivers determine the motion, no degree of freedom is left" + repeated

    def __str__(self) -> str:
        lines = [
            f"{self.name}: {_count(self.dof, 'degree')} of freedom, {_count(self.redundant, 'redundant constraint')}"
        ]
        lines.append(f"  verdict: {self.verdict}; {self._explained}")
        if self.dof_here != self.dof or self.redundant_here != self.redundant:
            here = f"{_count(self.dof_here, 'instantaneous degree')} of freedom, {self.redundant_here} redundant"
            lines.append(f"  at this pose: {here}")
        lines.append(f"  constraint equations: {self.rows}, rank {self.rank}; Grübler count {self.grubler}")
        if self.tolerated:
            left = ", ".join(f"{row} by {x:.2g}" for row, x in self.tolerated.items())
            lines.append(f"  left open within the tolerance (rad or m): {left}")
        if self.held:
            by = ", ".join(f"{row} by {x:.2g}" for row, x in self.held.items())
            lines.append(
                f"  it could move if these were left open (rad or m): {by}. Axes or lengths may be rounded or slightly "
                "off: correct them, or see ld.assemble(system, tolerance=...)"
            )
        if self.nearly:
            lines.append(
                f"  {self.nearly} of its rows {'is' if self.nearly == 1 else 'are'} independent by less than "
                f"{CANDIDATE:g}, which simulations count as dependent: it may move there with such a residual"
            )
        if self.idle:
            lines.append(f"  idle: {', '.join(self.idle)} can turn alone")
        groups: dict[tuple[str, ...], list[str]] = {}
        for joint, rows in self.dependent.items():
            groups.setdefault(rows, []).append(joint)
        for rows, joints in groups.items():
            which = f" ({', '.join(rows)})" if any(rows) else ""
            lines.append(f"  dependent constraints, statically indeterminate reactions: {', '.join(joints)}{which}")
        indeterminate = sum(not known for rows in self.unique.values() for known in rows.values())
        total = sum(len(rows) for rows in self.unique.values())
        lines.append(f"  reactions: {total - indeterminate} of {total} components are statically determinate")
        return "\n".join(lines)


EXPLAIN = {
    "regular": "all constraints are independent",
    "overconstrained": "some constraints are redundant at every pose; the motion is not affected",
    "singular here": "constraints become dependent at this pose only: branches may meet",
    "shaky": "some velocities that the constraints allow at this pose lead to no finite motion",
    "undecided": "the second-order test and the check at neighbouring poses disagree; examine neighbouring poses",
}


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}" + ("" if n == 1 else "s")


def mobility(system: System, state: State) -> Mobility:
    """Degrees of freedom, redundant constraints and determinate reactions at and around a closed state.

    Parameters
    ----------
    system : System
    state : State
        A closed state, e.g. from :func:`loopdyn.assemble`.

    Raises
    ------
    AssemblyError
        If the loops are open.

    Examples
    --------
    >>> import loopdyn as ld
    >>> system = ld.library.four_bar().compile()
    >>> m = ld.mobility(system, ld.assemble(system))
    >>> m.dof, m.redundant, m.verdict
    (1, 3, 'overconstrained')
    """
    system = system.for_state(state)
    closed = project(system, State(state.t, state.q, np.zeros(system.nv)))
    if np.abs(sparse_rows(system, state).phi).max(initial=0.0) > NEARLY_CLOSED:
        raise AssemblyError("the loops are open at this state. Close them first: ld.assemble(system, ...).", state)
    pose = closed.state
    if takes_sparse_steps(system) and system.tolerated is None:
        here = decide(system, pose)
        if here.redundant == 0:
            return _of_independent_rows(system, pose, here)
    columns = system.speed_units
    A = scaled(system, terms(system, pose).J)
    here = of_matrix(A)
    U, _, Vt = np.linalg.svd(A, full_matrices=True)
    U0, N = U[:, here.count :], columns[:, None] * Vt[here.count :].T
    verdict, dof, best = _finite(system, pose, here, U0, N)
    lost = 0 if best is None else max(0, best.rank - here.count)
    held, nearly = _held_by(system, pose) if dof == 0 else {}, 0
    if held and verdict == "undecided":  # rows that count as dependent, but are independent by more than rounding
        nearly = of_matrix(A, EXACT).count - here.count
        here, N = of_matrix(A, EXACT), N[:, : N.shape[1] - nearly]
        verdict = "overconstrained" if here.redundant else "regular"
    redundant = here.redundant - lost
    all_rows, J_all, _ = joint_rank(system, pose)
    exact = system.exact or system
    if exact is not system:
        J_all = free_terms(exact, pose)[2].J
    dependent, unique = _dependencies(system, J_all, all_rows, least_part(system))
    tolerated = {} if system.tolerated is None else _left_open(exact, pose, system.tolerated.rows)
    return Mobility(
        name=system.name,
        dof=dof,
        dof_here=N.shape[1],
        idle=() if best is None or best.N.shape[1] == 0 else _idle(system, best.pose),
        redundant=redundant,
        redundant_here=here.redundant,
        rank=all_rows.count + lost + nearly,
        rows=all_rows.rows,
        grubler=6 * system.nb - all_rows.rows,
        verdict=verdict,
        dependent=dependent,
        unique=unique,
        gap=here.gap,
        tolerated=tolerated,
        driven=len(system.mechanism.drivers),
        held=held,
        nearly=nearly,
    )


def _of_independent_rows(system: System, pose: State, here: Rank) -> Mobility:
    """Mobility where no row depends on others: every velocity leads to a motion, every reaction is determined."""
    joints, dof = system.mechanism.joints, system.nv - here.count
    labels = [f"{name}.{row}" for name in joints for row in system.joints[name].spec.rows_when_cut]
    labels += [label for label in system.constraint_rows if element_of(label) not in joints]
    unique: dict[str, dict[str, bool]] = {}
    for label in labels:
        joint, _, row = label.partition(".")
        unique.setdefault(joint, {})[row] = True
    return Mobility(
        name=system.name,
        dof=dof,
        dof_here=dof,
        idle=_idle(system, pose) if dof else (),
        redundant=0,
        redundant_here=0,
        rank=len(labels),
        rows=len(labels),
        grubler=6 * system.nb - len(labels),
        verdict="regular",
        dependent={},
        unique=unique,
        gap=here.gap,
        tolerated={},
        driven=len(system.mechanism.drivers),
    )


def _held_by(system: System, pose: State) -> dict[str, float]:
    """Rows whose small contradictions alone prevent motion, and their residuals if it moved, rad or m."""
    found = None if system.tolerated is not None else contradiction(system, pose, LARGEST)
    return {} if found is None else dict(found.residual)


def _left_open(exact: System, pose: State, rows: tuple[str, ...]) -> dict[str, float]:
    """Residuals of rows at a pose, rad or m."""
    phi = dict(zip(exact.constraint_rows, np.abs(terms(exact, pose).phi).tolist(), strict=True))
    return {row: phi[row] for row in rows}


def _finite(system: System, pose: State, here: Rank, U0: Array, N: Array) -> tuple[str, int, _Neighbour | None]:
    """Verdict, degrees of freedom of finite motion, and a pose nearby without rank loss (None if nothing can move)."""
    dof_here = N.shape[1]
    if here.redundant == 0:
        return "regular", dof_here, _Neighbour(pose, here.count, N)
    if dof_here == 0:
        return "overconstrained" if here.clear else "undecided", 0, None
    forms = second_order(system, pose, U0, N)
    s = np.linalg.svd(forms.reshape(len(forms), -1), compute_uv=False)
    # rows and columns are scaled to one, so the form of a true rank loss is of the order of one
    pose_only = int(np.count_nonzero(s > SECOND_ORDER * max(1.0, s[0])))
    near = _near(system, pose, here)
    best = _largest_rank(system, pose, N, forms, here.count + pose_only, near)
    lost = 0 if best is None else max(0, best.rank - here.count)
    if best is not None and lost == pose_only:  # the walk confirms the forms
        verdict, dof = "singular here" if lost else "overconstrained", dof_here - lost
    else:
        dof = 0 if best is None else _reached(system, best, near)
        verdict = "shaky" if pose_only > lost and dof < dof_here - lost else "undecided"
    return verdict if here.clear else "undecided", dof, best


def second_order(system: System, pose: State, U0: Array, N: Array) -> Array:
    """Quadratic forms U0^T phi''(v, v) on N, (dependencies, dof, dof)."""
    k, n = U0.shape[1], N.shape[1]

    def gamma(v: Array) -> Array:
        return terms(system, State(pose.t, pose.q, v)).gamma

    still = gamma(np.zeros(system.nv))

    def phi2(v: Array) -> Array:
        """U0^T phi''(v, v) in scaled rows: terms quadratic in v; J a drops out, linear terms belong to phi_t."""
        value: Array = -U0.T @ ((0.5 * (gamma(v) + gamma(-v)) - still) / system.row_units)
        return value

    forms = np.zeros((k, n, n))
    for i in range(n):
        forms[:, i, i] = phi2(N[:, i])
    for i in range(n):
        for j in range(i):
            mixed = phi2(N[:, i] + N[:, j]) - forms[:, i, i] - forms[:, j, j]
            forms[:, i, j] = forms[:, j, i] = 0.5 * mixed
    return forms


def _possible(forms: Array, rng: np.random.Generator) -> Array:
    """Random velocity in N for which all forms vanish, by Newton steps, if there is one."""
    x: Array = np.asarray(rng.normal(size=forms.shape[1]))
    for _ in range(CONE_STEPS):
        x = x / np.linalg.norm(x)
        slope: Array = forms @ x
        x = x - np.linalg.lstsq(2 * slope, slope @ x, rcond=1e-12)[0]
    return x


@dataclass(frozen=True)
class _Neighbour:
    """Closed pose, the rank of its rows, and a basis of their null space in natural units."""

    pose: State
    rank: int
    N: Array


def _near(system: System, pose: State, here: Rank) -> float:
    """Residual below which a neighbour of a pose counts as closed."""
    dropped = float(here.singular_values[here.count : here.count + 1].sum())
    residual = float(np.abs(terms(system, pose).phi / system.row_units).max(initial=0.0))
    return max(EXACT, AS_NEAR * residual, AS_NEAR * GENERATIONS * STEP * dropped)


def _neighbour(system: System, at: State, step: Array, near: float) -> _Neighbour | None:
    """Closed pose next to `at` moved by `step`; None if none was found."""
    columns = system.speed_units
    found = project(system, State(at.t, increment(system, at.q, step), np.zeros(system.nv)), most=50).state
    now = terms(system, found)
    if np.abs(now.phi / system.row_units).max() > near:
        return None
    _, s, Vt = np.linalg.svd(scaled(system, now.J), full_matrices=True)
    count = int(np.count_nonzero(s > ZERO_THERE * max(1.0, s[0])))
    return _Neighbour(found, count, columns[:, None] * Vt[count:].T)


def _largest_rank(system: System, pose: State, N: Array, forms: Array, expected: int, near: float) -> _Neighbour | None:
    """Neighbour of largest rank reached by random steps; None if nothing can move."""
    rng = np.random.default_rng(0)
    columns = system.speed_units
    best: _Neighbour | None = None
    for walk in range(MORE_WALKS):
        if walk >= WALKS and best is not None and best.rank >= expected:
            break
        at, step = pose, N @ _possible(forms, rng)
        for _ in range(GENERATIONS if walk < WALKS else 1):
            step *= STEP / np.abs(step / columns).max()
            found = _neighbour(system, at, step, near)
            if found is None or np.abs(difference(system, at.q, found.pose.q) / columns).max() < REACHED * STEP:
                break
            best = found if best is None or found.rank > best.rank else best
            at, step = found.pose, found.N @ rng.normal(size=found.N.shape[1])
            if found.N.shape[1] == 0:
                break
    return best


def _reached(system: System, at: _Neighbour, near: float) -> int:
    """Number of independent finite motions of a neighbour, from steps forward minus back, which cancels curvature."""
    columns = system.speed_units
    moves = []
    for x in at.N.T:
        step = x * STEP / np.abs(x / columns).max()
        there = [_neighbour(system, at.pose, sign * step, near) for sign in (1.0, -1.0)]
        ends = [difference(system, at.pose.q, n.pose.q) if n is not None else np.zeros(system.nv) for n in there]
        moves.append((ends[0] - ends[1]) / (2 * STEP * columns))
    return int(np.count_nonzero(np.linalg.svd(np.array(moves), compute_uv=False) > REACHED)) if moves else 0


def _idle(system: System, pose: State) -> tuple[str, ...]:
    """Bodies, or two on one joint, that some allowed velocity moves as one rigid body and nothing else.

    All others are then at rest, so that only the joints next to these bodies have to be checked.
    """
    names, rows = system.bodies, sparse_rows(system, State(pose.t, pose.q, np.zeros(system.nv)))
    group = _welded(system)
    members_of: dict[int, list[int]] = {}
    for k, g in enumerate(group):
        members_of.setdefault(g, []).append(k)
    through: dict[str, list[tuple[str, ...]]] = {}
    for loop in system.topology.loops:
        for name in loop.bodies:
            through.setdefault(name, []).append(loop.bodies)
    ends = {(group[j.parent], group[j.child]) for j in system.joints.values()}
    pairs = sorted({(min(pair), max(pair)) for pair in ends if pair[0] != pair[1]})
    idle: list[tuple[int, ...]] = []
    for heads in chain(((g,) for g in members_of), pairs):
        members = sorted(k for g in heads for k in members_of[g])
        if members[0] < system.n_bases or any(set(heads) & set(found) for found in idle):
            continue
        own = {names[k] for k in members}
        if not any(len(set(loop) - own) > 1 for name in own for loop in through.get(name, ())):
            continue  # a door on two hinges is not idle
        A = rows.moving_alone(members, heads)
        s = np.linalg.svd(A, compute_uv=False)
        if np.count_nonzero(s > IDLE * max(1.0, s[0])) < A.shape[1]:
            idle.append(heads)
    declared = [names.index(name) for name in system.topology.names]
    groups = [[k for k in declared if group[k] in heads] for heads in idle]
    groups.sort(key=lambda members: declared.index(members[0]))
    return tuple(" + ".join(names[k] for k in members) for members in groups)


def _welded(system: System) -> list[int]:
    """First body of the welded group of each body."""
    group = list(range(len(system.bodies)))
    for j in system.joints.values():
        if not j.spec.speeds:
            one, other = sorted((group[j.parent], group[j.child]))
            group = [one if g == other else g for g in group]
    return group


def _dependencies(
    system: System, J: Array, rank: Rank, least: float
) -> tuple[dict[str, tuple[str, ...]], dict[str, dict[str, bool]]]:
    """Rows of each joint that take part in dependencies; for each row whether its reaction is determinate."""
    free = free_system(system)
    A = scaled(free, J)
    U0 = np.linalg.svd(A, full_matrices=True)[0][:, rank.count :] if len(A) else np.zeros((0, 0))
    known = np.linalg.norm(U0, axis=1) < least
    dependent: dict[str, tuple[str, ...]] = {}
    unique: dict[str, dict[str, bool]] = {}
    for label, sure in zip(free.constraint_rows, known, strict=True):
        joint, _, row = label.partition(".")
        unique.setdefault(joint, {})[row] = bool(sure)
        if not sure:
            dependent[joint] = (*dependent.get(joint, ()), row)
    return dependent, unique
