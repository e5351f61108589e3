"""Mobility: how a mechanism can move, which constraints are redundant, which reactions are unique.

At a closed pose the rank of the constraint rows gives the freedoms and the redundant rows *here*. Whether a
loss of rank is permanent (an overconstrained mechanism) or belongs to this pose alone (a change point) is
decided to second order: with U0 a basis of the dependencies between rows and N one of the velocities the
rows allow, a loss belongs to the pose if U0^T phi''(v, v) does not vanish for all v in N. A walk over closed
neighbours, whose rank is counted anew, is the second opinion. Where both differ the verdict is "undecided".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from loopdyn.errors import AssemblyError
from loopdyn.projection import project
from loopdyn.rank import Rank, of_matrix, scaled
from loopdyn.reactions import UNIQUE, free_system, joint_rank
from loopdyn.system import State, System
from loopdyn.tree import body_jacobian, difference, increment, terms

Array = NDArray[np.float64]

CLOSED = 1e-9  # residual, in sizes of the mechanism, up to which a state is taken as closed and projected
SECOND_ORDER = 1e-6  # share of the largest form below which a quadratic form counts as zero
IDLE = 1e-7  # motion of other bodies, against that of the idle one, that counts as none
STEP = 0.05  # rad or sizes of the mechanism: length of a step of the walk
WALKS, GENERATIONS = 6, 3


@dataclass(frozen=True)
class Mobility:
    """How a mechanism can move at and around a pose.

    Attributes
    ----------
    dof : int
        Freedoms of finite motion, idle ones included.
    dof_here : int
        Freedoms of velocity at this pose.
    idle : tuple of str
        Bodies that can move alone without moving anything else, e.g. a rod between two balls about its axis.
    redundant, redundant_here : int
        Rows that say nothing new, permanently and at this pose.
    rank : int
        Independent rows among those of all joints and constraints.
    rows : int
        All these rows.
    grubler : int
        Freedoms counted as 6 per body less the rows.
    verdict : str
        "regular", "overconstrained", "singular here", "shaky" or "undecided".
    dependent : dict
        For each joint that takes part in a dependency, its rows that do.
    unique : dict
        For each joint, its reaction rows and whether each is determined.
    gap : float
        How clear the decision on rank was: smallest singular value kept over the largest dropped.
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

    def __str__(self) -> str:
        lines = [
            f"{self.name}: {_count(self.dof, 'degree')} of freedom, {_count(self.redundant, 'redundant constraint')}"
        ]
        lines.append(f"  verdict: {self.verdict}; {EXPLAIN[self.verdict]}")
        if self.dof_here != self.dof or self.redundant_here != self.redundant:
            here = f"{_count(self.dof_here, 'freedom')} of velocity, {self.redundant_here} redundant"
            lines.append(f"  at this pose: {here}")
        lines.append(f"  rows of all joints: {self.rows}, independent {self.rank}; Grübler count {self.grubler}")
        if self.idle:
            lines.append(f"  idle: {', '.join(self.idle)} can turn alone")
        groups: dict[tuple[str, ...], list[str]] = {}
        for joint, rows in self.dependent.items():
            groups.setdefault(rows, []).append(joint)
        for rows, joints in groups.items():
            which = f" ({', '.join(rows)})" if any(rows) else ""
            lines.append(f"  dependent, reactions not unique: {', '.join(joints)}{which}")
        loose = sum(not known for rows in self.unique.values() for known in rows.values())
        total = sum(len(rows) for rows in self.unique.values())
        lines.append(f"  reactions: {total - loose} of {total} components are determined by the rigid model")
        return "\n".join(lines)


EXPLAIN = {
    "regular": "all constraints are independent",
    "overconstrained": "some constraints repeat others at every pose; the motion is not affected",
    "singular here": "constraints lose independence at this pose alone: branches of motion may meet",
    "shaky": "it can move at first order only; there is no finite motion from this pose",
    "undecided": "second-order test and walk do not agree; look at neighbouring poses",
}


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}" + ("" if n == 1 else "s")


def mobility(system: System, state: State) -> Mobility:
    """How the mechanism can move at and around a closed state.

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
    closed = project(system, State(state.t, state.q, np.zeros(system.nv)))
    if np.abs(terms(system, state).phi / system.row_units).max(initial=0.0) > CLOSED:
        raise AssemblyError("the loops are open at this state. Close them first: ld.assemble(system, ...).", state)
    pose = closed.state
    columns = system.speed_units
    A = scaled(system, terms(system, pose).J)
    here = of_matrix(A)
    U, _, Vt = np.linalg.svd(A, full_matrices=True)
    U0, N = U[:, here.count :], columns[:, None] * Vt[here.count :].T
    pose_only = _second_order(system, pose, U0, N)
    walked = _walk(system, pose, N, columns, here)
    dof_here = system.nv - here.count
    verdict = _verdict(here, pose_only, walked, dof_here)
    lost = pose_only if walked is None or walked < here.count else walked - here.count
    dof = 0 if verdict == "shaky" else dof_here - lost
    redundant = here.redundant - (0 if verdict == "shaky" else lost)
    all_rows, J_all, _ = joint_rank(system, pose)
    dependent, unique = _dependencies(system, J_all, all_rows)
    return Mobility(
        name=system.name,
        dof=dof,
        dof_here=dof_here,
        idle=_idle(system, pose, N),
        redundant=redundant,
        redundant_here=here.redundant,
        rank=all_rows.count + (here.redundant - redundant),
        rows=all_rows.rows,
        grubler=6 * system.nb - all_rows.rows,
        verdict=verdict,
        dependent=dependent,
        unique=unique,
        gap=here.gap,
    )


def _verdict(here: Rank, pose_only: int, walked: int | None, dof_here: int) -> str:
    """Join the second-order test and the walk; `walked` is the rank found around, None if nothing moves."""
    if here.redundant == 0:
        return "regular"
    if not here.clear:
        return "undecided"
    if walked is None:
        return "shaky" if dof_here > 0 and pose_only > 0 else "overconstrained" if dof_here == 0 else "undecided"
    if walked - here.count != pose_only:
        return "undecided"
    return "singular here" if pose_only else "overconstrained"


def _second_order(system: System, pose: State, U0: Array, N: Array) -> int:
    """Number of dependencies that the quadratic forms U0^T phi''(v, v) on N take away."""
    k, n = U0.shape[1], N.shape[1]
    if k == 0 or n == 0:
        return 0

    def phi2(v: Array) -> Array:
        """U0^T phi''(v, v) in scaled rows: the velocity terms, since J a drops out."""
        still = terms(system, State(pose.t, pose.q, np.zeros(system.nv))).gamma
        moving = terms(system, State(pose.t, pose.q, v)).gamma
        value: Array = -U0.T @ ((moving - still) / system.row_units)
        return value

    forms = np.zeros((k, n, n))
    for i in range(n):
        forms[:, i, i] = phi2(N[:, i])
    for i in range(n):
        for j in range(i):
            mixed = phi2(N[:, i] + N[:, j]) - forms[:, i, i] - forms[:, j, j]
            forms[:, i, j] = forms[:, j, i] = 0.5 * mixed
    s = np.linalg.svd(forms.reshape(k, -1), compute_uv=False)
    # rows and columns are scaled to one, so a form of a true loss is of the order of one
    return int(np.count_nonzero(s > SECOND_ORDER * max(1.0, s[0])))


def _walk(system: System, pose: State, N: Array, columns: Array, here: Rank) -> int | None:
    """Largest rank among closed neighbours reached in a few generations of steps; None if nothing can move."""
    if N.shape[1] == 0 or here.redundant == 0:
        return here.count if N.shape[1] else None
    rng = np.random.default_rng(0)
    ranks = []
    for _ in range(WALKS):
        at, directions = pose, N
        for _ in range(GENERATIONS):
            step = directions @ rng.normal(size=directions.shape[1])
            step *= STEP / np.abs(step / columns).max()
            found = project(system, State(pose.t, increment(system, at.q, step), np.zeros(system.nv)), most=50)
            moved = np.abs(difference(system, at.q, found.state.q) / columns).max()
            if np.abs(terms(system, found.state).phi / system.row_units).max() > 1e-11 or moved < 0.1 * STEP:
                break
            at = found.state
            A = scaled(system, terms(system, at).J)
            there = of_matrix(A)
            ranks.append(there.count)
            directions = columns[:, None] * np.linalg.svd(A, full_matrices=True)[2][there.count :].T
            if directions.shape[1] == 0:
                break
    return max(ranks) if ranks else None


def _idle(system: System, pose: State, N: Array) -> tuple[str, ...]:
    """Bodies for which some allowed velocity moves them and nothing else."""
    if N.shape[1] == 0 or system.nb < 2:
        return ()
    moves = [body_jacobian(system, pose, name) @ N for name in system.bodies[system.n_bases :]]
    for move in moves:
        move[3:] /= system.size
    idle = []
    for k, name in enumerate(system.bodies[system.n_bases :]):
        others = np.vstack([move for n, move in enumerate(moves) if n != k])
        s = np.linalg.svd(others, compute_uv=False)
        quiet = N.shape[1] - int(np.count_nonzero(s > IDLE * max(1.0, s[:1].sum())))
        touches = any(name in loop.bodies for loop in system.topology.loops)
        if quiet > 0 and touches:
            idle.append(name)
    return tuple(idle)


def _dependencies(
    system: System, J: Array, rank: Rank
) -> tuple[dict[str, tuple[str, ...]], dict[str, dict[str, bool]]]:
    """Which rows of which joints take part in dependencies; for each row whether its reaction is determined."""
    free = free_system(system)
    A = scaled(free, J)
    U0 = np.linalg.svd(A, full_matrices=True)[0][:, rank.count :] if len(A) else np.zeros((0, 0))
    known = np.linalg.norm(U0, axis=1) < UNIQUE
    dependent: dict[str, tuple[str, ...]] = {}
    unique: dict[str, dict[str, bool]] = {}
    for label, sure in zip(free.constraint_rows, known, strict=True):
        joint, _, row = label.partition(".")
        unique.setdefault(joint, {})[row] = bool(sure)
        if not sure:
            dependent[joint] = (*dependent.get(joint, ()), row)
    return dependent, unique
