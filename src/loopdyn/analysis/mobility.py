"""Mobility: degrees of freedom of a mechanism, redundant constraints, and statically indeterminate reactions.

At a closed pose the rank of the constraint rows gives the instantaneous degrees of freedom and the redundant rows
*here*. :mod:`loopdyn.analysis.finite_motion` decides which of them are permanent. Small systems are examined by dense
matrices and singular values; large ones (:func:`loopdyn.loops.sparse_steps.takes_sparse_steps`) by pivots of the
elimination and by sparse equations of balance, in time that grows with the number of bodies.
"""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from loopdyn.analysis.assembly import assemble
from loopdyn.analysis.contradictions import LARGEST, contradiction
from loopdyn.analysis.finite_motion import DensePose, FiniteMotion, finite_motion
from loopdyn.analysis.large_poses import EliminatedRows, LargePose
from loopdyn.errors import AssemblyError
from loopdyn.loops.free_bodies import free_system, free_terms, joint_rank
from loopdyn.loops.projection import project
from loopdyn.loops.rank import Rank, decide, is_large, of_matrix, scaled
from loopdyn.loops.reactions_balance import indeterminate_parts, least_part
from loopdyn.loops.sparse_steps import sparse_rows, takes_sparse_steps
from loopdyn.quantities.wording import element_of
from loopdyn.system.system import State, System
from loopdyn.thresholds import CANDIDATE, EXACT, NEARLY_CLOSED
from loopdyn.tree.functions import terms
from loopdyn.tree.massless_motions import LARGEST_DENSE

Array = NDArray[np.float64]

IDLE = 1e-7  # motion of other bodies, relative to that of the idle one, that counts as zero
NEAR = 1e-3  # margin of rank below which it is reported: four orders above that at which rank is lost
# Of a large system: parts of rows in self-balanced sets of reactions that are within this factor of the threshold are
# in doubt. Rounding makes 1e-14 of them in ladders of 10,000 bodies; those that are not zero are above 1e-2 there.
CLEAR_PART = 10.0


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
        Redundant rows that are left open within a tolerance, and their residuals at this pose, declared units.
    driven : int
        Number of drivers.
    held : dict
        If only small contradictions of redundant rows prevent motion: these rows, and their residuals at neighbouring
        poses, declared units.
    nearly : int
        Number of these rows that are so nearly dependent that simulations count them as dependent.
    margin : float
        Distance to a loss of rank: smallest singular value that counts, natural units, as a fraction of the largest or
        of one. Of a large system the smallest part of a row that the rows before it do not contain.
    not_judged : tuple of str
        What could not be judged, and why.
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
    margin: float = np.inf
    not_judged: tuple[str, ...] = ()

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

    def _repr_html_(self) -> str:
        """Text for Jupyter."""
        return f"<pre>{html.escape(str(self))}</pre>"

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
            lines.append(f"  left open within the tolerance (declared units): {left}")
        if self.held:
            by = ", ".join(f"{row} by {x:.2g}" for row, x in self.held.items())
            lines.append(
                f"  it could move if these were left open (declared units): {by}. Axes or lengths may be rounded or "
                "slightly off: correct them, or see ld.assemble(system, tolerance=...)"
            )
        if self.nearly:
            lines.append(
                f"  {self.nearly} of its rows {'is' if self.nearly == 1 else 'are'} independent by less than "
                f"{CANDIDATE:g}, which simulations count as dependent: it may move there with such a residual"
            )
        if self.margin < NEAR:
            lines.append(f"  margin of rank: {self.margin:.2g}; below {CANDIDATE:g} a row would be lost")
        lines += [f"  not judged: {reason}" for reason in self.not_judged]
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
    "undecided": "the second-order test and the check at neighbouring poses disagree, or something was not judged; "
    "examine neighbouring poses",
}


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}" + ("" if n == 1 else "s")


def mobility(system: System, state: State | None = None) -> Mobility:
    """Degrees of freedom, redundant constraints and determinate reactions at and around a closed state.

    Parameters
    ----------
    system : System
    state : State, optional
        A closed state; by default the start of the model, assembled.

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
    state = assemble(system) if state is None else state
    system = system.for_state(state)
    closed = project(system, State(state.t, state.q, np.zeros(system.nv)))
    if np.abs(sparse_rows(system, state).phi).max(initial=0.0) > NEARLY_CLOSED:
        raise AssemblyError("the loops are open at this state. Close them first: ld.assemble(system, ...).", state)
    pose = closed.state
    if takes_sparse_steps(system) and system.tolerated is None and not system.mechanism.user_constraints:
        return _of_large(system, pose)
    A = scaled(system, terms(system, pose).J)
    here = of_matrix(A)
    dof_here = system.nv - here.count
    found = finite_motion(DensePose.of(system, pose, A, here.count), here)
    verdict, doubts = found.verdict, found.doubts
    held, nearly = _held_by(system, pose) if found.dof == 0 else {}, 0
    if held and verdict == "undecided":  # rows that count as dependent, but are independent by more than rounding
        nearly = of_matrix(A, EXACT).count - here.count
        here, dof_here, doubts = of_matrix(A, EXACT), dof_here - nearly, ()
        verdict = "overconstrained" if here.redundant else "regular"
    all_rows, J_all, _ = joint_rank(system, pose)
    exact = system.exact or system
    if exact is not system:
        J_all = free_terms(exact, pose)[2].J
    return _described(
        system,
        replace(found, verdict=verdict, doubts=doubts),
        here,
        dof_here=dof_here,
        rank=all_rows.count,
        determinate=_determinate(system, J_all, all_rows, least_part(system)),
        tolerated={} if system.tolerated is None else _left_open(exact, pose, system.tolerated.rows),
        held=held,
        nearly=nearly,
    )


def _of_large(system: System, pose: State) -> Mobility:
    """Mobility of a large system, without dense matrices."""
    here, doubts = decide(system, pose), []
    dof_here = system.nv - here.count
    if here.redundant == 0:  # every velocity leads to a motion, every reaction is determined
        idle = _idle(system, pose) if dof_here else ()
        determinate = dict.fromkeys(_all_rows(system), True)
        found = FiniteMotion("regular", dof_here, None)
        return _described(system, found, here, rank=len(determinate), determinate=determinate, idle=idle)
    eliminated = EliminatedRows(system, pose)
    found = finite_motion(LargePose(system, pose, eliminated), replace(here, count=eliminated.count))
    if eliminated.count != here.count:
        doubts.append(f"rank: {here.count} rows are independent by singular values, {eliminated.count} by pivots")
    parts, least = indeterminate_parts(system, pose), least_part(system)
    between = parts[(parts > least / CLEAR_PART) & (parts < least * CLEAR_PART)]
    if len(between):
        doubts.append(
            f"reactions: self-balanced sets of them contain up to {between.max():.1g} of {len(between)} components, "
            f"which is neither zero nor clearly above {least:g}"
        )
    if found.dof == 0 and is_large(system):
        doubts.append(
            f"contradictions: with more than {LARGEST_DENSE} rows it is not examined whether small contradictions of "
            "redundant constraints, such as rounded dimensions, alone prevent motion"
        )
    verdict = "undecided" if eliminated.count != here.count else found.verdict
    return _described(
        system,
        replace(found, verdict=verdict, doubts=(*found.doubts, *doubts)),
        here,
        rank=len(parts) - here.redundant,  # the joints of the tree are independent
        determinate=dict(zip(_all_rows(system), (parts < least).tolist(), strict=True)),
    )


def _described(
    system: System,
    found: FiniteMotion,
    here: Rank,
    *,
    rank: int,
    determinate: Mapping[str, bool],
    idle: tuple[str, ...] | None = None,
    dof_here: int | None = None,
    tolerated: dict[str, float] | None = None,
    held: dict[str, float] | None = None,
    nearly: int = 0,
) -> Mobility:
    """Mobility from its parts; `rank` here, and determinate reactions, of the rows of all joints and constraints."""
    lost = 0 if found.best is None else max(0, found.best.rank - here.count + nearly)
    if idle is None:
        idle = () if found.best is None or found.best.freedoms == 0 else _idle(system, found.best.state)
    unique: dict[str, dict[str, bool]] = {}
    dependent: dict[str, tuple[str, ...]] = {}
    for label, sure in determinate.items():
        joint, _, row = label.partition(".")
        unique.setdefault(joint, {})[row] = sure
        if not sure:
            dependent[joint] = (*dependent.get(joint, ()), row)
    return Mobility(
        name=system.name,
        dof=found.dof,
        dof_here=system.nv - here.count if dof_here is None else dof_here,
        idle=idle,
        redundant=here.redundant - lost,
        redundant_here=here.redundant,
        rank=rank + lost + nearly,
        rows=len(determinate),
        grubler=6 * system.nb - len(determinate),
        verdict=found.verdict,
        dependent=dependent,
        unique=unique,
        gap=here.gap,
        tolerated=tolerated or {},
        driven=len(system.mechanism.drivers),
        held=held or {},
        nearly=nearly,
        margin=here.margin,
        not_judged=found.doubts,
    )


def _all_rows(system: System) -> list[str]:
    """Labels of the constraint equations of all joints as the mechanism has them, then of constraints."""
    joints = system.mechanism.joints
    labels = [f"{name}.{row}" for name in joints for row in system.joints[name].spec.rows_when_cut]
    return labels + [label for label in system.constraint_rows if element_of(label) not in joints]


def _held_by(system: System, pose: State) -> dict[str, float]:
    """Rows whose small contradictions alone prevent motion, and their residuals if it moved, declared units."""
    found = None if system.tolerated is not None else contradiction(system, pose, LARGEST)
    return {} if found is None else _declared(system, found.residual)


def _left_open(exact: System, pose: State, rows: tuple[str, ...]) -> dict[str, float]:
    """Residuals of rows at a pose, declared units."""
    phi = dict(zip(exact.constraint_rows, np.abs(terms(exact, pose).phi).tolist(), strict=True))
    return _declared(exact, {row: phi[row] for row in rows})


def _declared(system: System, residuals: Mapping[str, float]) -> dict[str, float]:
    """Residuals of rows in declared units."""
    of = dict(zip(system.constraint_rows, system.row_dimensions, strict=True))
    return {row: x / system.units.factor(of[row]) for row, x in residuals.items()}


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
    taken: set[int] = set()
    for heads in chain(((g,) for g in members_of), pairs):
        members = sorted(k for g in heads for k in members_of[g])
        if members[0] < system.n_bases or not taken.isdisjoint(heads):
            continue
        own = {names[k] for k in members}
        if not any(len(set(loop) - own) > 1 for name in own for loop in through.get(name, ())):
            continue  # a door on two hinges is not idle
        A = rows.moving_alone(members, heads)
        s = np.linalg.svd(A, compute_uv=False)
        if np.count_nonzero(s > IDLE * max(1.0, s[0])) < A.shape[1]:
            idle.append(heads)
            taken |= set(heads)
    place = {name: n for n, name in enumerate(system.topology.names)}  # as declared
    groups = [sorted((k for g in heads for k in members_of[g]), key=lambda k: place[names[k]]) for heads in idle]
    groups.sort(key=lambda members: place[names[members[0]]])
    return tuple(" + ".join(names[k] for k in members) for members in groups)


def _welded(system: System) -> list[int]:
    """First body of the welded group of each body."""
    leader = list(range(len(system.bodies)))

    def first(k: int) -> int:
        while leader[k] != k:
            leader[k] = leader[leader[k]]
            k = leader[k]
        return k

    for j in system.joints.values():
        if not j.spec.speeds:
            one, other = sorted((first(j.parent), first(j.child)))
            leader[other] = one
    return [first(k) for k in range(len(leader))]


def _determinate(system: System, J: Array, rank: Rank, least: float) -> dict[str, bool]:
    """Rows of all joints and constraints, and whether the reaction of each is determinate."""
    free = free_system(system)
    A = scaled(free, J)
    U0 = np.linalg.svd(A, full_matrices=True)[0][:, rank.count :] if len(A) else np.zeros((0, 0))
    known = np.linalg.norm(U0, axis=1) < least
    return dict(zip(free.constraint_rows, known.tolist(), strict=True))
