"""Contradictions: redundant constraints that contradict each other because dimensions are rounded.

An overconstrained mechanism moves because some of its rows are linear combinations of others. With dimensions rounded
to six digits they are so only to 1e-6: no pose satisfies all rows exactly, though every pose of the motion satisfies
all of them to 1e-6. Such rows differ from a loop that is too short in three ways: singular values are either of the
size of the residual or far above it; the rows that are kept can be closed exactly; and the residual of the others
remains as small at neighbouring poses.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy
from numpy.typing import NDArray

from loopdyn.engine import records as rec
from loopdyn.errors import LoopdynError
from loopdyn.loops.free_bodies import free_terms
from loopdyn.loops.projection import project
from loopdyn.loops.rank import is_large, of_matrix, scaled
from loopdyn.system.system import State, System, Tolerated
from loopdyn.thresholds import CANDIDATE, EXACT
from loopdyn.tree.functions import body_motion, difference, increment, terms

Array = NDArray[np.float64]

# Largest residual, natural units, of rows that may be meant to agree: pi/2 written as 1.57 is off by 8e-4.
LARGEST = 2e-3
SPREAD = 30.0  # singular values below this multiple of the residual may come from rounded dimensions ...
SMALLEST_GAP = 10.0  # ... if those above are larger by this factor
ROUNDING = 1e-14  # rad or m: residual that is not reported
NEARBY = 0.2  # natural units: distance of neighbouring poses
# Largest ratio of the residual at neighbouring poses to that at the pose. If a loop is too short by 2e-3, the other
# rows lead to poses at which it is open by the square of the distance, 0.2**2 / 2.
GROWS = 5.0
# Rows are chosen again if the smallest singular value of the n rows that are kept falls below this fraction of the
# n-th singular value of all rows: with the best choice they are nearly equal.
WEAK = 0.3
POSES = 4  # neighbouring poses
PATHS, STEPS = 4, 10  # number and length of random paths from the pose along which a change of dimensions must hold
ALONE = 1e-3  # fraction of the residual that remains if a change of one frame closes the mechanism
AXES = ("rx", "ry", "rz", "x", "y", "z")


@dataclass(frozen=True)
class Contradiction:
    """Redundant rows with a small residual, and the pose at which they were found.

    Attributes
    ----------
    pose : State
        Pose at which all other rows are satisfied exactly.
    rows : tuple of str
        The rows that are not kept.
    residual : mapping
        Largest residual there or at neighbouring poses of each row that is open, rad or m.
    """

    pose: State
    rows: tuple[str, ...]
    residual: Mapping[str, float]

    def largest(self, system: System) -> tuple[float, float]:
        """Largest residual of an angle and of a length, rad and m."""
        dimension = dict(zip(system.constraint_rows, system.row_dimensions, strict=True))
        angle, length = (
            max([x for row, x in self.residual.items() if dimension[row] == d], default=0.0)
            for d in ("angle", "length")
        )
        return angle, length


def contradiction(system: System, pose: State, within: float = 0.0) -> Contradiction | None:
    """Rows that contradict others at a pose of least residual; None if it is open for another reason.

    At a closed pose rows may agree and still prevent motion, since they contradict each other at neighbouring poses.
    They are found if their residual, in natural units, stays below `within`.
    """
    open_by = float(np.abs(_residual(system, pose)).max(initial=0.0))
    if is_large(system) or system.nc == 0 or not max(open_by, within) > EXACT or open_by > LARGEST:
        return None
    rows = dependent_rows(system, pose, max(SPREAD * open_by, 2.0 * within))
    # rows that agree up to rounding do so at neighbouring poses, too
    agree = open_by < EXACT and len(rows) == of_matrix(scaled(system, terms(system, pose).J), EXACT).redundant
    if not rows or agree:
        return None
    kept = system.tolerating(Tolerated(rows, np.inf, np.inf))
    at_rest = State(pose.t, pose.q, np.zeros(system.nv))
    closed = _closed(kept, at_rest)
    if closed is None:
        return None
    beside = _neighbouring_poses(kept, closed)
    if beside is None:
        return None
    found = np.array([np.abs(_residual(system, p)) for p in (closed, *beside)])
    if found.max() > GROWS * max(open_by, found[0].max(), within):
        return None
    largest = dict(zip(system.constraint_rows, found.max(axis=0), strict=True))
    units = dict(zip(system.constraint_rows, system.row_units, strict=True))
    residual = {row: float(largest[row] * units[row]) for row in rows if largest[row] > EXACT}
    return Contradiction(closed, rows, residual)


def dependent_rows(system: System, pose: State, least: float) -> tuple[str, ...]:
    """Rows that depend on others if singular values below `least` count as zero; none if that is not clear."""
    A = scaled(system, terms(system, pose).J)
    s = np.linalg.svd(A, compute_uv=False)
    top = max(float(s[:1].sum()), 1.0)
    count = int(np.count_nonzero(s > max(least, CANDIDATE) * top))
    if count == len(A) or (count < len(s) and count and s[count - 1] < SMALLEST_GAP * s[count]):
        return ()
    may_go = _may_go(system)
    Q = np.linalg.qr(A[~may_go].T)[0] if not may_go.all() else np.zeros((A.shape[1], 0))
    rest = A[may_go] - (A[may_go] @ Q) @ Q.T
    order = scipy.linalg.qr(rest.T, mode="r", pivoting=True)[1]
    held = np.linalg.matrix_rank(A[~may_go], tol=CANDIDATE * top) if not may_go.all() else 0
    gone = np.flatnonzero(may_go)[order[max(count - held, 0) :]]
    return tuple(system.constraint_rows[k] for k in sorted(gone.tolist()))


def _may_go(system: System) -> NDArray[np.bool_]:
    """Rows of joints and of constraints between bodies; relations, drivers and user constraints are always met."""
    found = np.zeros(system.nc, bool)
    for row, count in system.model.cut[:, [rec.C_ROW, rec.C_ROWS]]:
        found[row : row + count] = True
    return found & system.holonomic


def _residual(system: System, pose: State) -> Array:
    """Residuals of the holonomic rows, in natural units."""
    result: Array = np.where(system.holonomic, terms(system, pose).phi / system.row_units, 0.0)
    return result


def _closed(kept: System, pose: State) -> State | None:
    found = project(kept, pose, most=50).state
    return found if np.abs(_residual(kept, found)).max(initial=0.0) < EXACT else None


def _neighbouring_poses(kept: System, pose: State) -> list[State] | None:
    """Neighbouring poses that satisfy the kept rows; empty if these allow no motion, None if none is found."""
    N = kept.speed_units[:, None] * _freedoms(kept, pose)
    if N.shape[1] == 0:
        return []
    rng, found = np.random.default_rng(0), []
    for _ in range(POSES):
        x = N @ rng.normal(size=N.shape[1])
        x *= NEARBY * rng.uniform(0.5, 1.0) / np.abs(x / kept.speed_units).max()
        there = _closed(kept, State(pose.t, increment(kept, pose.q, x), pose.v))
        if there is not None and np.abs(difference(kept, pose.q, there.q) / kept.speed_units).max() > 0.1 * NEARBY:
            found.append(there)
    return found or None


def _freedoms(kept: System, pose: State) -> Array:
    """Orthonormal basis (nv, n) of the speeds that the rows allow, in natural units."""
    _, s, Vt = np.linalg.svd(scaled(kept, terms(kept, pose).J))
    count = int(np.count_nonzero(s > CANDIDATE * max(float(s[:1].sum()), 1.0)))
    return np.asarray(Vt[count:].T, float)


# ------------------------------------------------------------------------------------ rows left open in a run


@dataclass(frozen=True)
class OpenRowsCheck:
    """Check of the rows that are left open, at a state."""

    beyond: tuple[str, str, str] | None  # a row that exceeds the tolerance, its residual, and the tolerance
    weak: bool  # whether the kept rows become nearly dependent although all rows together do not


def check_open_rows(system: System, state: State) -> OpenRowsCheck:
    """Compare the rows that a system leaves open with its tolerance."""
    exact, tolerated = system.exact, system.tolerated
    if exact is None or tolerated is None:
        return OpenRowsCheck(None, False)
    now, allowed = terms(exact, state), np.maximum(tolerated.of(exact), EXACT * exact.row_units)
    kept = np.array([row not in tolerated.rows for row in exact.constraint_rows])
    over = np.where(kept, 0.0, np.abs(now.phi) / allowed)
    k = int(np.argmax(over))
    unit, factor = exact.units.symbol(exact.row_dimensions[k]), exact.units.factor(exact.row_dimensions[k])
    texts = f"{abs(now.phi[k]) / factor:.3g} {unit}", f"{allowed[k] / factor:.6g} {unit}"
    beyond = (exact.constraint_rows[k], *texts) if over[k] > 1.0 else None
    A = scaled(exact, now.J)
    of_all, of_kept = (np.linalg.svd(rows, compute_uv=False) for rows in (A, A[kept]))
    n = int(np.count_nonzero(kept))
    return OpenRowsCheck(beyond, bool(n and n <= len(of_all) and of_kept[n - 1] < WEAK * of_all[n - 1]))


def choose_again(system: System, state: State) -> tuple[System, State] | None:
    """System with as many other rows left open, and the nearest state that closes it.

    None if no others can be left open within the tolerance.
    """
    exact, tolerated = system.exact, system.tolerated
    if exact is None or tolerated is None:
        return None
    rows = dependent_rows(exact, state, SPREAD * float(np.abs(_residual(exact, state)).max(initial=0.0)))
    if len(rows) != len(tolerated.rows) or rows == tolerated.rows:
        return None
    other = exact.tolerating(replace(tolerated, rows=rows))
    after = project(other, state).state
    closed = np.abs(_residual(other, after)).max(initial=0.0) < EXACT
    return (other, after) if closed and check_open_rows(other, after).beyond is None else None


def beyond_tolerance(watched: OpenRowsCheck, where: str) -> str:
    """Error message for a row that exceeds the tolerance; empty if none does."""
    if watched.beyond is None:
        return ""
    row, x, most = watched.beyond
    return (
        f"the redundant constraint '{row}' is open by {x} at {where}, more than the tolerance {most}. "
        "Correct the dimensions that ld.assemble names without a tolerance, or allow a larger one."
    )


def within_tolerance(system: System, state: State, where: str) -> tuple[System, State]:
    """System and state, with other rows left open if the kept ones become nearly dependent.

    Raises LoopdynError, which mentions `where`, if rows exceed the tolerance and no others can be left open.
    """
    if system.tolerated is None:
        return system, state
    watched = check_open_rows(system, state)
    if watched.beyond or watched.weak:
        found = choose_again(system, state)
        if found is not None:
            return found
    if watched.beyond:
        raise LoopdynError(beyond_tolerance(watched, where))
    return system, state


def largest_open(pairs: Iterable[tuple[System, State]]) -> dict[str, float]:
    """Largest residual of each row that systems leave open at their states, in declared units."""
    found: dict[str, float] = {}
    for system, state in pairs:
        if system.tolerated is not None and system.exact is not None:
            units = np.array([system.units.factor(d) for d in system.row_dimensions])
            phi = dict(zip(system.constraint_rows, np.abs(terms(system.exact, state).phi) / units, strict=True))
            found |= {row: max(found.get(row, 0.0), float(phi[row])) for row in system.tolerated.rows}
    return found


def said_open(system: System, residuals: Mapping[str, float]) -> str:
    """Rows that are left open by residuals in declared units, in words."""
    of = dict(zip(system.constraint_rows, system.row_dimensions, strict=True))
    rows = ", ".join(
        f"{row} by {x:.2g} {system.units.symbol(of[row])}"
        for row, x in residuals.items()
        if x * system.units.factor(of[row]) > ROUNDING
    )
    return f"left open within the tolerance: {rows or 'none by more than rounding'}"


# ---------------------------------------------------------------------------------- changes of dimensions


@dataclass(frozen=True)
class FrameChange:
    """Change of the placement of a joint on a body."""

    joint: str
    body: str
    axis: str  # axis of the body's frame: rx, ry, rz rotations, x, y, z displacements
    amount: float  # in the unit
    unit: str  # declared

    def __str__(self) -> str:
        about = f"about {self.axis[1]}" if self.axis.startswith("r") else f"along {self.axis}"
        return f"'{self.joint}' on '{self.body}' {about} by {self.amount:.3g} {self.unit}"


def changes_that_close(
    system: System, found: Contradiction
) -> tuple[tuple[FrameChange, ...], tuple[tuple[FrameChange, ...], ...]]:
    """Changes of joint placements that make the rows agree, to first order, along motions from the pose.

    First the smallest change of all placements together, in the sum of squares in natural units, largest parts first;
    empty if such changes do not help. Then each change of a single placement that is sufficient, the smallest first.
    """
    A, b, names = _equations(system, found)
    x, left = _least_norm(A, b)
    together = _changes(system, names, x) if left < ALONE else ()
    cures = []
    for k in range(0, A.shape[1], 6):
        x, left = _least_norm(A[:, k : k + 6], b)
        if left < ALONE:
            cures.append((float(np.linalg.norm(x)), _changes(system, names[k : k + 6], x)))
    return together, tuple(changes for _, changes in sorted(cures, key=lambda cure: cure[0]))


def _poses_along_paths(kept: System, pose: State) -> list[State]:
    """Poses along random paths from a pose; the pose itself is the first."""
    found, rng = [pose], np.random.default_rng(0)
    for _ in range(PATHS):
        at, step = pose, rng.normal(size=kept.nv)
        for _ in range(STEPS):
            N = _freedoms(kept, at)
            if N.shape[1] == 0:
                return found
            x = N @ (N.T @ step)
            step = x * NEARBY / np.abs(x).max()
            there = _closed(kept, State(at.t, increment(kept, at.q, kept.speed_units * step), at.v))
            if there is None:
                break
            at = there
            found.append(at)
    return found


def _least_norm(A: Array, b: Array) -> tuple[Array, float]:
    """Least-norm solution of A x = b, and the fraction of b that remains."""
    size = max(float(np.abs(b).max(initial=0.0)), 1e-300)
    x = np.linalg.lstsq(A, b / size, rcond=1e-6)[0]
    return np.asarray(size * x, float), float(np.abs(A @ x - b / size).max(initial=0.0))


def _changes(system: System, names: Sequence[tuple[str, str, str]], x: Array) -> tuple[FrameChange, ...]:
    least = 1e-3 * np.abs(x).max(initial=0.0)
    chosen = [k for k in np.argsort(-np.abs(x), kind="stable").tolist() if abs(x[k]) > least]
    units, changes = system.units, []
    for k in chosen:
        joint, body, axis = names[k]
        dimension, one = ("angle", 1.0) if axis.startswith("r") else ("length", system.size)
        amount = float(x[k]) * one / units.factor(dimension)
        changes.append(FrameChange(joint, body, axis, amount, units.symbol(dimension)))
    return tuple(changes)


def _equations(system: System, found: Contradiction) -> tuple[Array, Array, list[tuple[str, str, str]]]:
    """A x = b for changes x of the frames of joints, in natural units.

    With six degrees of freedom for each body, the rows of all joints, with residual phi, can be satisfied near a pose
    if and only if U^T phi = 0 for all U with U^T J = 0. A change of a frame changes phi of its own joint only: with a
    negative sign for F, a positive one for M; both changes are in axes of the body, phi is in axes of F.
    """
    joints = [j for j in system.joints.values() if j.name in system.mechanism.joints]
    names = [(j.name, system.bodies[body], axis) for j in joints for body in (j.parent, j.child) for axis in AXES]
    blocks, rights = [], []
    lost = len(found.rows)
    for pose in _poses_along_paths(system.tolerating(Tolerated(found.rows, np.inf, np.inf)), found.pose):
        free, _, now = free_terms(system, State(pose.t, pose.q, np.zeros(system.nv)))
        place = {label: k for k, label in enumerate(free.constraint_rows)}
        U = np.linalg.svd(scaled(free, now.J))[0]
        U = U[:, U.shape[1] - lost :] if system.nc else U[:, :0]
        S = np.zeros((free.nc, len(names)))
        motion = body_motion(system, pose)
        for n, j in enumerate(joints):
            parent, child = motion.rotation[j.parent], motion.rotation[j.child]
            of_F, of_M = (np.kron(np.eye(2), X) for X in (j.F[1].T, j.F[1].T @ parent.T @ child))
            for k, row in enumerate(("mx", "my", "mz", "fx", "fy", "fz")):
                if f"{j.name}.{row}" in place:
                    at = place[f"{j.name}.{row}"]
                    S[at, 12 * n : 12 * n + 6] -= of_F[k]
                    S[at, 12 * n + 6 : 12 * n + 12] += of_M[k]
        blocks.append(U.T @ S)
        rights.append(-U.T @ (now.phi / free.row_units))
    return np.vstack(blocks), np.concatenate(rights), names


__all__ = [
    "LARGEST",
    "Contradiction",
    "FrameChange",
    "beyond_tolerance",
    "changes_that_close",
    "check_open_rows",
    "choose_again",
    "contradiction",
    "dependent_rows",
    "largest_open",
    "said_open",
    "within_tolerance",
]
