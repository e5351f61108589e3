"""Inverse dynamics of closed loops: what motors must give for a motion.

With the motors taken out, the equations of motion along the motions N that the constraints allow (J N = 0) are

    N^T W u = N^T (M a - h)

where column j of W is the generalised force of a unit load on motor j (virtual work), and u are the loads. Forces of
the model (gravity, springs, friction, other motors) are in h. What a motor or driver of the model does on a coordinate
that is among the motors is left out: its load is what is asked for.

With as many independent motors as freedoms u is exact. With fewer, the motion must be one that the mechanism can make:
what is missing is the residual, a generalised force that no motor can supply. With more, u is the one nearest to a
preload in a stated norm, by default the least; what is between is self-balanced: loads against each other that move
nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from loopdyn.analysis.assembly import assemble, speed_rows
from loopdyn.analysis.contradictions import within_tolerance
from loopdyn.analysis.mobility import mobility
from loopdyn.errors import AssemblyError, LoopdynError, ModelError, Problem, SingularityError
from loopdyn.forces import Motor
from loopdyn.formulations.registry import prepare
from loopdyn.joints.dispatch import wrenches
from loopdyn.loops.projection import project
from loopdyn.loops.rank import CANDIDATE, dead_drivers, decide, of_matrix, scaled
from loopdyn.quantities.wording import nearest
from loopdyn.results.inverse_dynamics import InverseDynamics, element_name, what_is_missing
from loopdyn.results.run import Run
from loopdyn.run.locking import coordinate
from loopdyn.system.builder import build
from loopdyn.system.system import State, System
from loopdyn.tree.functions import Terms, body_motion, closure, counted, difference, increment, terms
from loopdyn.tree.tables import check_tables

if TYPE_CHECKING:
    pass

Array = NDArray[np.float64]
Rule = Literal["minimum norm", "weights", "preload"]

# Share of the largest generalised force on the way that may be missing in a motion that counts as possible: above the
# rounding of accelerations that a solver found (1e-12), below an error that matters.
POSSIBLE = 1e-8
# Share of the largest term by which positions, speeds and accelerations of a given motion may miss the constraints.
CONSISTENT = 1e-6
LONGEST = 0.1  # rad or sizes of the mechanism of one step along a given motion
CORRECTION = 0.03  # rad or sizes by which closing may move the end of a step; more means another branch
HALVINGS = 12  # of a step before the motion counts as blocked


class Samples(Protocol):
    """A motion by samples: row k of q, v, a at time t[k]; a :class:`Run` has one as ``run.path``."""

    @property
    def t(self) -> Array:
        """Times (n,)."""

    @property
    def q(self) -> Array:
        """Coordinates (n, nq)."""

    @property
    def v(self) -> Array:
        """Speeds (n, nv)."""

    @property
    def a(self) -> Array:
        """Accelerations (n, nv)."""


@dataclass(frozen=True)
class _Samples:
    t: Array
    q: Array
    v: Array
    a: Array


def inverse_dynamics(
    system: System,
    motion: Run | Samples | Sequence[State] | Mapping[str, Any],
    times: ArrayLike | None = None,
    *,
    accelerations: ArrayLike | None = None,
    motors: Sequence[str] | None = None,
    rule: Rule | None = None,
    weights: Mapping[str, float] | None = None,
    preload: Mapping[str, ArrayLike] | None = None,
    start: State | None = None,
    impossible: Literal["raise", "mark"] = "raise",
    tolerance: float = POSSIBLE,
) -> InverseDynamics:
    """Loads of motors that give a mechanism a motion.

    Parameters
    ----------
    system : System
    motion : Run, samples, list of State, or mapping
        A run of this system; anything with arrays ``t, q, v, a``; states, with `accelerations`; or joint coordinates
        by label, each as a formula of ``t``, a number or a table in the units of the model, at the `times` given. The
        mapping must leave nothing open: the mechanism is closed along its branch, and speeds and accelerations follow
        from the constraints.
    times : array, optional
        Times in s, ascending, for a motion by formulas.
    accelerations : (n, nv) array, optional
        For a motion by states.
    motors : list of labels, optional
        Joint coordinates with a motor, of tree or cut joints. By default those of the mapping on which the
        model has a motor or a driver, or all on which it has one, or those of the mapping. What the model has there is
        left out, the rest of it acts.
    rule : {"minimum norm", "weights", "preload"}, optional
        How loads are shared where motors are redundant. "minimum norm" (default): the sum of force^2 + (torque/size of
        the mechanism)^2 is least. "weights": the sum of weight*load^2. "preload": loads nearest to the preload, in the
        norm of the weights if they are given. Follows from `weights` and `preload` where it is not said.
    weights : mapping, optional
        For each motor, positive, of load^2 in SI.
    preload : mapping, optional
        Loads by motor, numbers or one value per time, in SI; others zero. The motion leaves only their self-balanced
        part free: the result has as much of them as possible.
    start : State, optional
        Where a motion by formulas starts to be closed: chooses the assembly branch. By default the start of the model.
        Redundant constraints that it leaves open within a tolerance are left open along the motion.
    impossible : {"raise", "mark"}
        What happens if the motors cannot make the motion: an error, or marks in ``possible`` with the ``residual``.
    tolerance : float
        Share of the largest generalised force that may be missing.

    Returns
    -------
    InverseDynamics

    Examples
    --------
    A rod of 2 kg and 1 m, turned at a constant rate from the horizontal, needs the torque of its weight:

    >>> import numpy as np, loopdyn as ld
    >>> m = ld.Mechanism("rod", gravity=(0, -10, 0))
    >>> b = m.add_body("rod", ld.Inertia.rod(mass=2.0, start=(0, 0, 0), end=(1, 0, 0)))
    >>> j = m.add_joint("A", ld.Revolute(axis=(0, 0, 1)), m.ground, b, at=(0, 0, 0))
    >>> found = ld.inverse_dynamics(m.compile(), {"A": "pi*t"}, np.linspace(0, 1, 5))
    >>> found.verdict, [round(x, 3) + 0.0 for x in found.load[:, 0].tolist()]
    ('fully actuated', [10.0, 7.071, 0.0, -7.071, -10.0])
    """
    _check_options(motion, times, accelerations, motors, impossible, tolerance)
    known = _motor_labels(system)
    chosen = _chosen_motors(system, motion, motors, known)
    samples, pieces, unbounded = _sampled(system, motion, times, accelerations, start)
    name, metric = _rule(system, chosen, [known[c] for c in chosen], rule, weights, preload)
    wanted = _preloads(chosen, preload, len(samples.t))
    parts = []
    for piece, first, end in pieces:
        plant, replaced = _plant(piece, chosen, motion if isinstance(motion, Mapping) else {})
        part = _Samples(*(np.asarray(x)[first:end] for x in (samples.t, samples.q, samples.v, samples.a)))
        check_tables(plant, (State(*x) for x in zip(part.t, part.q, part.v, strict=True)))
        parts.append((plant, replaced, _solve(plant, part, chosen, metric, wanted[first:end], unbounded[first:end])))
    found = [part for _, _, part in parts]
    redundant = max(len(chosen) - p.rank for p in found)
    if redundant == 0 and (weights is not None or preload is not None or rule not in (None, "minimum norm")):
        raise LoopdynError(
            f"the motors {', '.join(chosen)} are not redundant, so the motion fixes their loads and there is nothing "
            "to share. Leave out rule, weights and preload."
        )
    result = _joined(parts, pieces, samples, chosen, known, tolerance, name if redundant else "")
    if impossible == "raise" and not result.possible.all():
        raise LoopdynError(
            what_is_missing(result)
            + " Add motors, take a motion of a run or of the free mechanism, or see the residual "
            "with impossible='mark'."
        )
    return result


def _chosen_motors(
    system: System, motion: object, motors: Sequence[str] | None, known: Mapping[str, str]
) -> tuple[str, ...]:
    """Labels of the coordinates with a motor, checked."""
    chosen = tuple(motors) if motors is not None else _default_motors(system, motion)
    wrong = [label for label in chosen if label not in known]
    if wrong:
        raise ModelError(Problem("motors", f"there is no joint coordinate '{n}'", nearest(n, known)) for n in wrong)
    if len(set(chosen)) < len(chosen):
        raise LoopdynError(f"a motor is named twice among {', '.join(chosen)}. Name each coordinate once.")
    if not chosen:
        raise LoopdynError(
            f"'{system.name}' has no motor and no driver. Name the coordinates that are driven: motors=['...']. "
            f"{nearest('', known)}"
        )
    return chosen


def _sampled(
    system: System,
    motion: Run | Samples | Sequence[State] | Mapping[str, Any],
    times: ArrayLike | None,
    accelerations: ArrayLike | None,
    start: State | None,
) -> tuple[Samples, Sequence[tuple[System, int, int]], NDArray[np.bool_]]:
    """Samples of the motion, parts with one set of constraints, and where accelerations may be unbounded."""
    samples: Samples
    if isinstance(motion, Mapping):
        samples, pieces = _followed(system, motion, np.asarray(times, float), start)
        unbounded = np.zeros(len(samples.t), bool)
    elif isinstance(motion, Run):
        _check_same(system, motion.system)
        samples, pieces, unbounded = motion.path, motion.pieces, motion.unbounded
    else:
        samples = _given(system, motion, accelerations)
        states = motion if isinstance(motion, Sequence) else ()
        pieces = _pieces([system.for_state(state) for state in states] or [system] * len(samples.t))
        unbounded = np.zeros(len(samples.t), bool)
    if not len(samples.t):
        raise LoopdynError("the motion has no times. Give at least one.")
    return samples, pieces, unbounded


def _joined(
    parts: Sequence[tuple[System, Sequence[str], _Part]],
    pieces: Sequence[tuple[System, int, int]],
    samples: Samples,
    chosen: tuple[str, ...],
    known: Mapping[str, str],
    tolerance: float,
    rule: str,
) -> InverseDynamics:
    """The answers of all parts of the motion as one."""
    found = [part for _, _, part in parts]
    t, q, v, a = (np.array(x, float) for x in (samples.t, samples.q, samples.v, samples.a))
    return InverseDynamics(
        parts[0][0],
        chosen,
        tuple(known[c] for c in chosen),
        t,
        q,
        v,
        a,
        load=np.concatenate([p.load for p in found]),
        speed=np.concatenate([p.speed for p in found]),
        internal=np.concatenate([p.internal for p in found]),
        residual=np.concatenate([p.residual for p in found]),
        possible=~(np.concatenate([p.missing for p in found]) > tolerance * max(p.scale for p in found)),
        freedoms=max(p.freedoms for p in found),
        rank=max(p.rank for p in found),
        rule=rule,
        replaced=tuple(dict.fromkeys(name for _, names, _ in parts for name in names)),
        pieces=tuple((plant, first, end) for (plant, _, _), (_, first, end) in zip(parts, pieces, strict=True)),
    )


def _check_options(
    motion: object, times: object, accelerations: object, motors: object, impossible: str, tolerance: float
) -> None:
    if isinstance(motion, str):
        raise LoopdynError(f"the motion '{motion}' names no coordinate. Give a mapping: {{'A': '{motion}'}}.")
    if isinstance(motors, str):
        raise LoopdynError(f"motors is a list of labels, not a text. Write motors=['{motors}'].")
    if isinstance(motion, Mapping) and times is None:
        raise LoopdynError("a motion by formulas needs times. Give them: times=np.linspace(0, 1, 201).")
    if not isinstance(motion, Mapping) and times is not None:
        raise LoopdynError("times belong to a motion by formulas; this one has its own. Leave them out.")
    states = isinstance(motion, Sequence)
    if states and accelerations is None:
        raise LoopdynError("states alone do not say how speeds change. Give accelerations (n, nv) with them.")
    if not states and accelerations is not None:
        raise LoopdynError("accelerations belong to a motion by states; this one has its own. Leave them out.")
    if impossible not in ("raise", "mark"):
        raise LoopdynError(f"impossible='{impossible}' is unknown. Use 'raise' or 'mark'.")
    if not tolerance > 0.0:
        raise LoopdynError(f"tolerance is {tolerance}. Give a positive share, e.g. 1e-8.")


def _check_same(system: System, other: System) -> None:
    if system.coordinates != other.coordinates or system.speeds != other.speeds:
        raise LoopdynError(
            f"the run is one of '{other.name}' with other coordinates. Use run.system, or compile with the same cuts."
        )


def _motor_labels(system: System) -> dict[str, str]:
    """Joint speeds that can have a motor, with the units of their loads."""
    own = system.mechanism.joints
    return {label: found.load_unit for label, found in system.labels.speeds.items() if found.joint.name in own}


def _default_motors(system: System, motion: object) -> tuple[str, ...]:
    m = system.mechanism
    own = [f.joint for f in m.forces.values() if isinstance(f, Motor)] + [d.joint for d in m.drivers.values()]
    if isinstance(motion, Mapping):  # a motor elsewhere may stand for a load, such as that of a gas
        own = [label for label in own if label in motion] or own or list(motion)
    return tuple(dict.fromkeys(own))


def _plant(system: System, motors: Sequence[str], driven: Mapping[str, Any]) -> tuple[System, tuple[str, ...]]:
    """The mechanism without motors and drivers on these coordinates, nor drivers of those whose motion is given."""
    m = system.mechanism
    forces = [name for name, f in m.forces.items() if isinstance(f, Motor) and f.joint in motors]
    drivers = [name for name, d in m.drivers.items() if d.joint in motors or d.joint in driven]
    return _without(system, forces, drivers), (*forces, *drivers)


def _without(
    system: System,
    forces: Sequence[str],
    drivers: Sequence[str],
    new: Mapping[str, tuple[str, Any]] | None = None,
    counting: Sequence[str] = (),
) -> System:
    """The same tree without some forces and drivers, and with new drivers (joint, motion) by name.

    Angles of cut joints in `counting`, whose turns the system does not count, become coordinates that are counted.
    """
    if not forces and not drivers and not new:
        return system
    m = system.mechanism.model_copy(deep=True)
    for name in forces:
        del m.forces[name]
    for name in drivers:
        del m.drivers[name]
    for name, (joint, law) in (new or {}).items():
        m.add_driver(name, joint, law)
    changed = build(m, list(system.topology.cuts), counted=(*system.counted, *counting)).tolerating_as(system)
    if not counting:
        _check_same(changed, system)
    return changed


# ------------------------------------------------------------------------------------------- the motion


def _given(system: System, motion: Any, accelerations: ArrayLike | None) -> Samples:
    """Samples from states and accelerations, or from arrays, with their shapes checked."""
    if isinstance(motion, Sequence):
        t, q, v = (np.array([getattr(s, n) for s in motion], float) for n in ("t", "q", "v"))
        samples = _Samples(t, q, v, np.asarray(accelerations, float))
    else:
        missing = [n for n in ("t", "q", "v", "a") if not hasattr(motion, n)]
        if missing:
            raise LoopdynError(
                f"a motion of type {type(motion).__name__} has no {', '.join(missing)}. Give a Run, states with "
                "accelerations, or coordinates as formulas of t with times."
            )
        samples = _Samples(*(np.asarray(getattr(motion, n), float) for n in ("t", "q", "v", "a")))
    n = len(samples.t)
    for name, x, width in (("q", samples.q, system.nq), ("v", samples.v, system.nv), ("a", samples.a, system.nv)):
        if n and x.shape != (n, width):
            raise LoopdynError(f"the motion has {name} of shape {x.shape}, ({n}, {width}) is needed. Check its order.")
    return samples


def _pieces(systems: Sequence[System]) -> list[tuple[System, int, int]]:
    """Runs of samples that leave the same redundant rows open: the system, the first and the one behind the last."""
    found: list[tuple[System, int, int]] = []
    for k, system in enumerate(systems):
        if found and found[-1][0].tolerated == system.tolerated:
            found[-1] = (*found[-1][:2], k + 1)
        else:
            found.append((system, k, k + 1))
    return found


def _followed(
    system: System, motion: Mapping[str, Any], times: Array, start: State | None
) -> tuple[Samples, list[tuple[System, int, int]]]:
    """A motion by formulas, closed along its branch, with speeds and accelerations from the constraints.

    With it the pieces in which the same redundant rows are left open.
    """
    system = system if start is None else system.for_state(start)
    if times.ndim != 1 or not len(times) or not np.isfinite(times).all() or np.any(np.diff(times) <= 0.0):
        raise LoopdynError("times must be finite, ascending numbers. Give for example np.linspace(0, 1, 201).")
    known = system.labels.coordinates
    wrong = [label for label in motion if label not in known]
    if wrong:
        raise ModelError(Problem("motion", f"there is no joint coordinate '{n}'", nearest(n, known)) for n in wrong)
    other = [name for name, d in system.mechanism.drivers.items() if d.joint in motion]
    names = {element_name("motion", label): (label, law) for label, law in motion.items()}
    free = _without(system, [], other)
    counting = _uncounted(free, motion)
    driven = _without(system, [], other, names, counting)
    t, still = float(times[0]), np.zeros(system.nv)
    if counting and system.base_turns:
        _check_turns(driven, names, times)
    here = start or assemble(free, q=dict(system.start[0]) or None, t=t)
    values = {label: coordinate(system, here, label) for label in counting}
    phi = terms(driven, State(t, _counted(system, driven, t, here.q, values), still)).phi
    for name, (label, _) in names.items():
        row = next(k for k, r in enumerate(driven.constraint_rows) if r.partition(".")[0] == name)
        values[label] = coordinate(system, here, label) - float(phi[row])
    posed = assemble(free, q=values, near=State(t, here.q, still), t=t)
    here = State(t, _counted(system, driven, t, posed.q, values), still)
    rank = decide(driven, here)
    _check_determined(system, free, rank.count, posed, motion)
    at = _moving(driven, here, rank.count)
    found = [at]
    for end in times[1:]:
        at = _advance(*at, float(end), rank.count)
        found.append(at)
    own = [driven.coordinates.index(label) for label in system.coordinates]
    samples = _Samples(times, *(np.array(x) for x in zip(*((s.q[own], s.v, a) for _, s, a in found), strict=True)))
    return samples, _pieces([system.tolerating_as(s) for s, _, _ in found])


def _uncounted(system: System, labels: Iterable[str]) -> tuple[str, ...]:
    """Angles of cut joints among the labels whose full turns no coordinate of the system tells."""
    found = []
    for label in labels:
        joint, k, *_ = system.labels.coordinates[label]
        if not joint.in_tree and joint.spec.is_periodic(k) and not system.knows_turns(joint, k):
            found.append(label)
    return tuple(found)


def _counted(system: System, driven: System, t: float, q: Array, near: Mapping[str, float]) -> Array:
    """Coordinates of the driven system: those of the system, and angles that it counts alone, next to given values."""
    known = dict(zip(system.coordinates, q.tolist(), strict=True))
    return counted(driven, t, [known[label] if label in known else near[label] for label in driven.coordinates])


def _check_turns(driven: System, names: Mapping[str, tuple[str, Any]], times: Array) -> None:
    """Refuse motions of more than half a turn of a cut joint where a base turns, so that its turns are not counted."""
    for name, (label, _) in names.items():
        if label not in driven.counted:
            continue
        row = driven.constraint_rows.index(name)
        rest = driven.q_reference
        here = coordinate(driven, State(0.0, rest, np.zeros(driven.nv)), label)
        values = [here - closure(driven, State(float(t), rest, np.zeros(driven.nv)))[0][row] for t in times]
        if np.abs(values).max() > np.pi:
            raise LoopdynError(
                f"'{label}' belongs to a cut joint in a loop with skew axes, on a base that turns, so that "
                "its motion cannot be followed by more than half a turn. Cut another joint: compile(cuts=[...])."
            )


def _check_determined(system: System, free: System, rank: int, here: State, motion: Mapping[str, Any]) -> None:
    open_ = system.nv - rank
    if not open_:
        return
    found = mobility(free, State(here.t, here.q, np.zeros(system.nv)))
    open_ -= len(found.idle)
    if open_ > 0:
        can = [label for label in system.coordinates if label in system.speeds and label not in motion]
        of = f"the motion of {', '.join(motion)}" if motion else "what is given"
        count = "1 freedom" if found.dof == 1 else f"{found.dof} freedoms"
        raise LoopdynError(
            f"'{system.name}' has {count}, and {of} leaves {open_} open. Give the motion of {open_} more, e.g. of "
            f"{', '.join(can[:4])}."
        )


def _moving(driven: System, state: State, rank: int) -> tuple[System, State, Array]:
    """Speeds and accelerations at a closed pose from the constraints, with the system that leaves rows open there."""
    driven, state = within_tolerance(driven, state, f"t = {state.t:g} s")
    closed = project(driven, state, rank=rank if driven.holonomic.all() else None)
    now = terms(driven, closed.state)
    A = scaled(driven, now.J)
    U, s, Vt = np.linalg.svd(A, full_matrices=False)
    if rank and s[rank - 1] < CANDIDATE * max(float(s[0]), 1.0):
        raise SingularityError(
            f"at t = {state.t:g} s '{driven.name}' is in a dead point of the given motion, where its speeds and "
            "accelerations do not follow from it. Give the motion of another coordinate, or times beside this one."
        )
    if np.abs(now.phi / driven.row_units).max(initial=0.0) > CONSISTENT:
        raise AssemblyError(_blocked(driven, closed.state), closed.state)
    if rank < driven.nv:  # idle freedoms (the spin of a rod) move as forces let them
        a = prepare(driven, "oracle", closed.state)(state.t, closed.state.q, closed.state.v).a
        return driven, closed.state, a
    a = driven.speed_units * (Vt[:rank].T @ ((U[:, :rank].T @ (now.gamma / driven.row_units)) / s[:rank]))
    return driven, closed.state, a


def _blocked(driven: System, pose: State) -> str:
    drivers = driven.mechanism.drivers
    given = {element_name("motion", d.joint): f"the motion of '{d.joint}'" for d in drivers.values()}
    dead = [given.get(name, f"driver '{name}'") for name in dead_drivers(driven, pose)[0]]
    reason = (
        f"{' and '.join(dead)} {'is' if len(dead) == 1 else 'are'} at a dead point"
        if dead
        else "the mechanism does not reach so far, or a dead point is in the way"
    )
    return (
        f"the motion of '{driven.name}' cannot be followed beyond t = {pose.t:.6g} s: {reason}. Give a smaller motion, "
        "or the motion of another coordinate; ld.singular_poses and ld.mobility show where it locks."
    )


def _advance(driven: System, state: State, a: Array, end: float, rank: int) -> tuple[System, State, Array]:
    """From one time to the next along the branch, in steps short enough to stay on it."""
    h = end - state.t
    halvings = 0
    while state.t < end:
        fastest = float(np.abs(state.v / driven.speed_units).max(initial=0.0))
        h = min(h, end - state.t, LONGEST / fastest if fastest > 0.0 else np.inf)
        t = end if state.t + h >= end - 1e-12 * abs(end) else state.t + h
        h = t - state.t
        q = increment(driven, state.q, h * state.v + 0.5 * h * h * a)
        trial = project(driven, State(t, q, state.v + h * a), rank=rank if driven.holonomic.all() else None)
        moved = np.abs(difference(driven, q, trial.state.q) / driven.speed_units).max(initial=0.0)
        if trial.position > CONSISTENT * driven.size or moved > CORRECTION:
            halvings += 1
            if halvings > HALVINGS:
                raise AssemblyError(_blocked(driven, state), state)
            h *= 0.5
            continue
        driven, state, a = _moving(driven, trial.state, rank)
        halvings = max(0, halvings - 1)
        h *= 2.0
    return driven, state, a


# -------------------------------------------------------------------------------------------- the loads


@dataclass(frozen=True)
class _Part:
    """What is found along a piece of a motion."""

    load: Array
    speed: Array
    internal: Array
    residual: Array
    missing: Array  # (n,) size of the residual in natural units
    scale: float  # largest generalised force in natural units
    freedoms: int
    rank: int


def _solve(
    plant: System, path: Samples, motors: Sequence[str], metric: Array, preload: Array, unbounded: NDArray[np.bool_]
) -> _Part:
    n, m, units = len(path.t), len(motors), plant.speed_units
    equations = [_equations(plant, path, k, motors) for k in range(n)]
    rank = max(r for r, *_ in equations)  # of the constraints where no pose is singular
    freedoms = plant.nv - rank
    out = _Part(np.full((n, m), np.nan), np.zeros((n, m)), np.full((n, m), np.nan), np.zeros((n, plant.nv)),
                np.zeros(n), max(scale for *_, scale in equations), freedoms, 0)  # fmt: skip
    turning = _motor_labels(plant)
    motor_units = np.array([1.0 if turning[label] == "N m" else plant.size for label in motors])
    drive = 0
    for k, (own, N, A, b, speed, _) in enumerate(equations):
        out.speed[k] = speed
        if own < rank or unbounded[k]:
            continue
        r = of_matrix(A / motor_units).count  # entries of the order of one, or zero
        drive = max(drive, r)
        U, s, Vt = np.linalg.svd(A / metric, full_matrices=False)
        least = (Vt[:r].T @ ((U[:, :r].T @ b) / s[:r])) / metric
        wished = preload[k] * metric
        internal = (wished - Vt[:r].T @ (Vt[:r] @ wished)) / metric
        out.load[k], out.internal[k] = least + internal, internal
        missing = b - A @ out.load[k]
        out.residual[k], out.missing[k] = N @ missing / units, np.abs(missing).max(initial=0.0)
    return _Part(out.load, out.speed, out.internal, out.residual, out.missing, out.scale, freedoms, drive)


def _equations(
    plant: System, path: Samples, k: int, motors: Sequence[str]
) -> tuple[int, Array, Array, Array, Array, float]:
    """Rank of the constraints, N, N^T W, N^T (M a - h) in natural units, speeds of the motors, size of the forces."""
    state = State(float(path.t[k]), np.asarray(path.q[k], float), np.asarray(path.v[k], float))
    a, units = np.asarray(path.a[k], float), plant.speed_units
    now = terms(plant, state)
    _check_consistent(plant, now, state, a)
    J = scaled(plant, now.J)
    rank = of_matrix(J).count
    N = np.linalg.svd(J)[2][rank:].T if plant.nc else np.eye(plant.nv)
    W = speed_rows(plant, state, motors).T
    needed = units * (now.M @ a - now.h)
    scale = np.abs(N).T @ (units * (np.abs(now.M) @ np.abs(a) + np.abs(now.h)))
    A = N.T @ (units[:, None] * W)
    return rank, N, A, N.T @ needed, _motor_speeds(plant, state, motors, W), float(scale.max(initial=0.0))


def _check_consistent(plant: System, now: Terms, state: State, a: Array) -> None:
    """Refuse a motion that breaks the constraints: its loads would have no meaning."""
    rows, units = plant.row_units, plant.speed_units
    J = np.abs(scaled(plant, now.J))
    v, acc = np.abs(state.v / units), np.abs(a / units)
    levels = (
        ("loops are open", now.phi / rows, np.ones(plant.nc)),
        ("speeds break the constraints", (now.J @ state.v + now.phi_t) / rows, J @ v + np.abs(now.phi_t / rows)),
        ("accelerations break the constraints", (now.J @ a - now.gamma) / rows, J @ acc + np.abs(now.gamma / rows)),
    )
    for what, residual, size in levels:
        worst = int(np.argmax(np.abs(residual))) if plant.nc else 0
        if plant.nc and abs(residual[worst]) > CONSISTENT * max(float(size.max()), 1.0):
            raise LoopdynError(
                f"the motion is not one of '{plant.name}': at t = {state.t:g} s its {what}, most in row "
                f"'{plant.constraint_rows[worst]}' (by {abs(residual[worst]):.2g}). Close states with ld.assemble and "
                "take accelerations that fit, or give the motion as formulas."
            )


def _motor_speeds(plant: System, state: State, motors: Sequence[str], W: Array) -> Array:
    """Speeds of the coordinates with motors; the motion of bases, which the rows leave out, is added."""
    speeds = W.T @ state.v
    if not plant.mechanism.base:
        return np.asarray(speeds, float)
    still = body_motion(plant, State(state.t, state.q, np.zeros(plant.nv)))
    for n, label in enumerate(motors):
        j, k, *_ = plant.labels.speeds[label]
        if not j.in_tree:
            F, M = still.rotation[j.parent] @ j.F[1], still.rotation[j.child] @ j.M[1]
            torque, force = np.split(wrenches(j.spec, F, M, j.par)[k], 2)
            at = still.position[j.child] + still.rotation[j.child] @ j.M[0]
            for body, sign in ((j.child, 1.0), (j.parent, -1.0)):
                moment = torque + np.cross(at - still.position[body], force)
                speeds[n] += sign * (moment @ still.angular_velocity[body] + force @ still.velocity[body])
    return np.asarray(speeds, float)


# ---------------------------------------------------------------------------------------------- the rule


def _rule(
    system: System,
    motors: Sequence[str],
    units: Sequence[str],
    rule: str | None,
    weights: Mapping[str, float] | None,
    preload: Mapping[str, ArrayLike] | None,
) -> tuple[str, Array]:
    """The rule in words, and the square roots of the weights of the loads."""
    rule = rule or ("preload" if preload is not None else "weights" if weights is not None else "minimum norm")
    if rule not in ("minimum norm", "weights", "preload"):
        raise LoopdynError(f"the rule '{rule}' is unknown. Use 'minimum norm', 'weights' or 'preload'.")
    if (preload is not None) != (rule == "preload"):
        raise LoopdynError("a preload goes with rule='preload', and this rule with a preload. Give both or neither.")
    if rule == "weights" and weights is None:
        raise LoopdynError("rule='weights' needs weights. Give them: weights={'A': 1.0, ...}.")
    if rule == "minimum norm" and weights is not None:
        raise LoopdynError("weights go with rule='weights' or 'preload'. Choose one of them, or leave weights out.")
    for what, given in (("weights", weights), ("preload", preload)):
        wrong = [label for label in given or {} if label not in motors]
        if wrong:
            raise ModelError(Problem(what, f"'{n}' is not among the motors", nearest(n, motors)) for n in wrong)
    plain = np.array([1.0 / system.size**2 if u == "N m" else 1.0 for u in units])
    text = f"least sum of force^2 + (torque/{system.size:.3g} m)^2"
    if weights is not None:
        missing = [label for label in motors if label not in weights]
        if missing:
            raise LoopdynError(f"weights of {', '.join(missing)} are missing. Give one for every motor.")
        plain = np.array([float(weights[label]) for label in motors])
        if not (np.isfinite(plain).all() and (plain > 0.0).all()):
            raise LoopdynError(
                "weights must be positive numbers. A large weight spares a motor, a small one burdens it."
            )
        text = "least sum of weight*load^2, weights " + ", ".join(f"{k} {float(w):g}" for k, w in weights.items())
    if preload is not None:
        text = f"preload {', '.join(preload)}: its self-balanced part is added to the {text}"
    return text, np.sqrt(plain)


def _preloads(motors: Sequence[str], preload: Mapping[str, ArrayLike] | None, n: int) -> Array:
    out = np.zeros((n, len(motors)))
    for label, value in (preload or {}).items():
        given = np.asarray(value, float)
        if given.shape not in ((), (n,)) or not np.isfinite(given).all():
            raise LoopdynError(f"the preload of '{label}' must be a number or {n} numbers, one per time. Correct it.")
        out[:, motors.index(label)] = given
    return out
