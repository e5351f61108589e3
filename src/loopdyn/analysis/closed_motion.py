"""Motion of a closed mechanism as a function of its inputs, and ranks that classify singular poses.

At a closed state the speeds v of the tree satisfy

    J v = -phi_t           rows of loops, constraints and drivers
    S v = u - s_t          speeds u of the inputs, of tree or cut joints

Everything is solved in natural units, by singular values whose number :func:`loopdyn.loops.rank.of_matrix` decides, so
that redundant rows do no harm. Large systems are solved by sparse steps instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from loopdyn.analysis.assembly_speeds import speed_rows
from loopdyn.analysis.measured_rows import MeasuredRows
from loopdyn.analysis.mobility import mobility
from loopdyn.analysis.moving_parts import MovingPart, joint_speeds, speed_dimensions
from loopdyn.errors import AssemblyError, LoopdynError, SingularityError
from loopdyn.loops.continuation import largest
from loopdyn.loops.projection import project
from loopdyn.loops.rank import NEIGHBOUR, decide, is_large, of_matrix
from loopdyn.loops.sparse_steps import OwnRow, sparse_rows, takes_sparse_steps
from loopdyn.system.system import State, System
from loopdyn.thresholds import CANDIDATE, CONSISTENT, NEARLY_CLOSED
from loopdyn.tree.functions import constraint_equations, increment, terms

Array = NDArray[np.float64]

SHARE = 0.3  # fraction of the largest motion from which a joint is named in a message
NAMED = 6  # joints named at most
TRIALS = 2  # neighbouring poses at which ranks are decided: one of them may be singular by chance


@dataclass(frozen=True)
class InputMap:
    """Speeds v = V u + v0 of the tree for speeds u of the inputs, SI.

    Attributes
    ----------
    V : (nv, k) array
    v0 : (nv,) array
        Explicit part: speeds while the inputs are at rest, due to drivers and moved bases.
    left : (nv, m) array
        Motions that the inputs do not determine, orthonormal in natural units.
    """

    inputs: tuple[str, ...]
    V: Array
    v0: Array
    left: Array


def require_closed(system: System, state: State) -> None:
    """Raise AssemblyError if loops are open at a state."""
    gap = largest(sparse_rows(system, state).phi[system.holonomic])
    if gap > NEARLY_CLOSED:
        raise AssemblyError(
            f"the loops of '{system.name}' are open at this state, by {gap:.2g} (rad, or relative to the size). "
            "Close them first: ld.assemble(system, near=state).",
            state,
            gap,
        )


def input_map(system: System, state: State, inputs: tuple[str, ...]) -> InputMap:
    """Speeds of the tree as a function of those of the inputs; raises if the inputs are dependent."""
    return (_sparse_map if takes_sparse_steps(system) else _dense_map)(system, state, inputs)


def _dense_map(system: System, state: State, inputs: tuple[str, ...]) -> InputMap:
    # rows that are affine in the speeds are evaluated at rest, which leaves no rounding of the speeds in phi_t
    now = terms(system, State(state.t, state.q, np.zeros(system.nv)) if system.affine else state)
    units, k = system.speed_units, len(inputs)
    own = _units(system, inputs, system.size)
    J = now.J / system.row_units[:, None]
    S = speed_rows(system, state, inputs) / own[:, None]
    D = np.vstack([J, S]) * units
    rank, loops = of_matrix(D), of_matrix(J * units)
    if rank.count - loops.count < k:
        raise _dependent(system, state, inputs, system.nv - loops.count)
    U, s, Vt = np.linalg.svd(D)
    right = np.zeros((len(D), k + 1))
    right[system.nc :, :k] = np.diag(1.0 / own)
    right[: system.nc, k] = -now.phi_t / system.row_units
    right[system.nc :, k] = -_explicit_speeds(system, state, inputs) / own
    n = rank.count
    x = units[:, None] * (Vt[:n].T @ ((U[:, :n].T @ right) / s[:n, None]))
    return InputMap(inputs, x[:, :k], x[:, k], Vt[n:].T)


def _sparse_map(system: System, state: State, inputs: tuple[str, ...]) -> InputMap:
    """Map of a large system; `left` is one of the motions that remain, if there are any."""
    own = _units(system, inputs, system.size)
    joints = (system.labels.speeds[label] for label in inputs)
    rest = State(state.t, state.q, np.zeros(system.nv))
    rows = sparse_rows(system, rest, [OwnRow(of.joint, of.k, unit) for of, unit in zip(joints, own, strict=True)])
    freedoms, columns = system.nv - decide(system, state).count, []
    right = np.zeros((system.nc + len(inputs), len(inputs) + 1))
    right[system.nc :, :-1] = -np.diag(1.0 / own)
    right[: system.nc, -1] = rows.rate
    right[system.nc :, -1] = _explicit_speeds(system, state, inputs) / own
    for r in right.T:
        x, missing = rows.step(r)
        if largest(missing) > CONSISTENT * max(largest(r), 1.0):
            raise _dependent(system, state, inputs, freedoms)
        columns.append(system.speed_units * x)
    left = np.zeros((system.nv, 0))
    if freedoms > len(inputs):
        some = np.random.default_rng(0).normal(size=system.nv)
        some = some + rows.step(rows.times(some))[0]
        left = (some / np.linalg.norm(some))[:, None]
    found = np.array(columns).T
    return InputMap(inputs, found[:, :-1], found[:, -1], left)


def _units(system: System, labels: Sequence[str], length: float) -> Array:
    """Natural units of joint speeds, for a given unit of length."""
    return np.array([1.0 if d == "angle" else length for d in speed_dimensions(system, labels)])


def _explicit_speeds(system: System, state: State, inputs: Sequence[str]) -> Array:
    """Speeds of the inputs while the tree is at rest: those of cut joints on moved bases."""
    if not system.mechanism.base:
        return np.zeros(len(inputs))
    return joint_speeds(system, State(state.t, state.q, np.zeros(system.nv)), inputs)


def moving_joints(system: System, state: State, motions: Array) -> str:
    """Names of the joint speeds that take the largest part in some motions (nv, m), natural units."""
    labels = tuple(system.speeds if is_large(system) else system.labels.speeds)
    units = _units(system, labels, system.size)
    shares = np.abs((speed_rows(system, state, labels) / units[:, None] * system.speed_units) @ motions).max(axis=1)
    moving = [label for label, x in zip(labels, shares, strict=True) if x > SHARE * shares.max(initial=0.0)]
    return ", ".join(moving[:NAMED]) + (", ..." if len(moving) > NAMED else "")


def _dependent(system: System, state: State, inputs: Sequence[str], freedoms: int) -> LoopdynError:
    """Error for inputs that depend on each other, at this pose or at all."""
    names, one = ", ".join(inputs), len(inputs) == 1
    if not is_large(system) and len(inputs) <= freedoms:
        there = [_locked_ranks(system, pose, inputs) for pose in _neighbours(system, state)]
        if max(both - loops for loops, both in there) == len(inputs):
            return SingularityError(
                f"'{system.name}' is at a singular pose of its input{'' if one else 's'} {names}: "
                f"{'it has' if one else 'they have'} no independent speeds here, but nearby. See "
                f"ld.kinematics(system, state).singularity({list(inputs)!r}), or choose other inputs here."
            )
    return LoopdynError(
        f"'{system.name}' has {freedoms} degree{'' if freedoms == 1 else 's'} of freedom, but {names} "
        f"{'is' if one else 'are'} not independent: the loops, drivers or other inputs fix "
        f"{'it' if one else 'one of them'}. Name other inputs, or fewer."
    )


def require_determined(system: System, state: State, found: InputMap, part: MovingPart) -> None:
    """Raise if a part can move while the inputs are fixed."""
    if not found.left.size:
        return
    length = np.array([1.0 if d == "angle" else system.size for d in part.dimensions])
    moves = (part.rows(system, state) * system.speed_units) @ found.left / length[:, None]
    if largest(moves) > CANDIDATE:
        names = ", ".join(found.inputs)
        m = 1 if takes_sparse_steps(system) else found.left.shape[1]
        raise LoopdynError(
            f"{names} {'does' if len(found.inputs) == 1 else 'do'} not determine the motion of {part.name} in "
            f"'{system.name}': at least {m} degree{'' if m == 1 else 's'} of freedom {'is' if m == 1 else 'are'} left, "
            f"in {moving_joints(system, state, found.left)}. Name more inputs."
        )


def idle_only(system: System, state: State, found: InputMap) -> bool:
    """Whether only idle motions are left: bodies moving alone, such as rods between two balls."""
    return bool(found.left.shape[1]) and len(mobility(system, state).idle) >= found.left.shape[1]


def input_accelerations(system: System, state: State, inputs: tuple[str, ...], given: Array) -> Array:
    """Accelerations (nv,) of the tree at which the inputs have given accelerations, SI, by the constraints alone."""
    found = input_map(system, state, inputs)
    if found.left.size:
        raise LoopdynError(
            f"accelerations of {', '.join(inputs)} do not determine those of '{system.name}': "
            f"{moving_joints(system, state, found.left)} can move besides. Give one for each degree of freedom, or "
            "a=ld.accelerations(system, state).a."
        )
    rows = system.kept.take("measured rows", lambda: MeasuredRows(system))
    try:
        _, J, _, gamma = rows(state.t, state.q, state.v, np.zeros(len(rows.cut)))
    finally:
        system.kept.give("measured rows", rows)
    bias = dict(zip(rows.cut, gamma[rows.measured], strict=True))
    turning = [x for x in inputs if x not in bias and x not in system.speeds]
    if turning:
        raise LoopdynError(f"{turning[0]} belongs to a cut ball joint: its acceleration cannot be given. Name another.")
    units = system.speed_units
    own = _units(system, inputs, system.size)
    scale = np.concatenate([system.row_units, own])
    D = np.vstack([J[rows.own], speed_rows(system, state, inputs)]) / scale[:, None] * units
    right = np.concatenate([gamma[rows.own], given + [bias.get(label, 0.0) for label in inputs]]) / scale
    U, s, Vt = np.linalg.svd(D, full_matrices=False)
    n = of_matrix(D).count
    result: Array = units * (Vt[:n].T @ ((U[:, :n].T @ right) / s[:n]))
    return result


# ------------------------------------------------------------------------------------------------ ranks


@dataclass(frozen=True)
class Ranks:
    """Ranks of J, and of J together with the rows of inputs, of the output, and of both; singular values of each."""

    counts: tuple[int, int, int, int]
    values: tuple[Array, Array, Array, Array]


def ranks(system: System, pose: State, inputs: Sequence[str], output: MovingPart | None, length: float) -> Ranks:
    """Ranks at a pose, with `length` in m as the unit of length."""
    units = np.where(system.turning, 1.0, length)
    rows = np.array([1.0 if d == "angle" else length for d in system.row_dimensions])
    J = constraint_equations(system, pose)[1] * units / rows[:, None]
    S = speed_rows(system, pose, inputs) * units / _units(system, inputs, length)[:, None]
    O = np.zeros((0, system.nv))
    if output is not None:
        scale = np.array([1.0 if d == "angle" else length for d in output.dimensions])
        O = output.rows(system, pose) * units / scale[:, None]
    found = [of_matrix(np.vstack(parts)) for parts in ((J,), (J, S), (J, O), (J, S, O))]
    counts = [r.count for r in found]
    values = [r.singular_values for r in found]
    return Ranks((counts[0], counts[1], counts[2], counts[3]), (values[0], values[1], values[2], values[3]))


def _locked_ranks(system: System, pose: State, inputs: Sequence[str]) -> tuple[int, int]:
    """Ranks of J, and of J with the inputs locked."""
    found = ranks(system, pose, inputs, None, system.size)
    return found.counts[0], found.counts[1]


def usual_ranks(
    system: System, pose: State, inputs: Sequence[str], output: MovingPart | None, length: float
) -> tuple[int, int, int, int]:
    """Largest ranks at closed poses next to a pose: those from which a singular pose differs."""
    found = [ranks(system, p, inputs, output, length).counts for p in (pose, *_neighbours(system, pose))]
    a, b, c, d = (max(column) for column in zip(*found, strict=True))
    return a, b, c, d


def _neighbours(system: System, pose: State) -> list[State]:
    """Closed poses at a small distance, in random directions that the constraints allow."""
    if is_large(system):
        raise LoopdynError(
            f"'{system.name}' is too large: singular poses are classified by dense matrices. See ld.mobility(system, "
            "state) for its degrees of freedom."
        )
    still, units = np.zeros(system.nv), system.speed_units
    J = constraint_equations(system, pose)[1] * units / system.row_units[:, None]
    N = np.linalg.svd(J)[2][of_matrix(J).count :] if system.nc else np.eye(system.nv)
    rng, found = np.random.default_rng(0), []
    for _ in range(TRIALS if len(N) else 0):
        x = rng.normal(size=len(N)) @ N
        step = NEIGHBOUR * units * x / largest(x)
        there = project(system, State(pose.t, increment(system, pose.q, step), still)).state
        if largest(constraint_equations(system, there)[0][system.holonomic]) <= NEARLY_CLOSED * system.size:
            found.append(State(there.t, there.q, still))
    return found
