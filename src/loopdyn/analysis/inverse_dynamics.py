"""Inverse dynamics of closed loops: motor loads for a given motion.

With the motors removed, the equations of motion along the motions N that the constraints allow (J N = 0) are

    N^T W u = N^T (M a - h)

where column j of W is the generalised force of a unit load on motor j (virtual work), and u are the loads. Forces of
the model (gravity, springs, friction, other motors) are in h. A motor or driver of the model on a coordinate that is
among the motors is left out: its load is the unknown.

With as many independent motors as degrees of freedom u is unique. With fewer, the motion must be a possible one: the
residual is the generalised force that no motor can supply. With more, u is the solution nearest to a preload in a
stated norm, by default the one of least norm; the difference of two solutions is self-balanced: loads that act against
each other and do not affect the motion.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from loopdyn.analysis.assembly_speeds import speed_rows
from loopdyn.analysis.drive_inputs import POINTS, span_of_profiles
from loopdyn.analysis.prescribed_motion import check_same, followed, given_samples, pieces_of, without
from loopdyn.errors import LoopdynError, ModelError, Problem
from loopdyn.forces import Motor
from loopdyn.loops.one_sided import warn_if_closed
from loopdyn.loops.rank import of_matrix, scaled
from loopdyn.loops.reactions import freedom_rate
from loopdyn.quantities.times import check_span, given_times
from loopdyn.quantities.wording import nearest, unknown
from loopdyn.results.inverse_dynamics import InverseDynamics, what_is_missing
from loopdyn.results.path import Sampled, Samples
from loopdyn.results.run import Run
from loopdyn.results.units import factors
from loopdyn.system.labels import FORCE_OF
from loopdyn.system.system import State, System
from loopdyn.thresholds import CONSISTENT
from loopdyn.tree.functions import Terms, body_motion, terms
from loopdyn.tree.tables import check_tables

if TYPE_CHECKING:
    pass

Array = NDArray[np.float64]
Rule = Literal["minimum norm", "weights", "preload"]

# Largest residual of a possible motion, as a fraction of the largest generalised force along it: above the rounding of
# accelerations from a solver (1e-12), below an error that matters.
POSSIBLE = 1e-8


def inverse_dynamics(
    system: System,
    motion: Run | Samples | Sequence[State] | Mapping[str, Any],
    t_eval: ArrayLike | None = None,
    *,
    t_span: tuple[float, float] | None = None,
    accelerations: ArrayLike | None = None,
    motors: Sequence[str] | None = None,
    rule: Rule | None = None,
    weights: Mapping[str, float] | None = None,
    preload: Mapping[str, ArrayLike] | None = None,
    near: State | None = None,
    impossible: Literal["raise", "mark"] = "raise",
    tolerance: float = POSSIBLE,
) -> InverseDynamics:
    """Inverse dynamics: motor loads for a given motion.

    Parameters
    ----------
    system : System
    motion : Run, samples, list of State, or mapping
        A run of this system; anything with arrays ``t, q, v, a``; states, with `accelerations`; or joint coordinates
        by label, each as a formula of ``t``, a number, a profile or a table in the units of the model. The mapping
        must determine the motion: the mechanism is closed along its branch, and speeds and accelerations follow from
        the constraints.
    t_eval : array, optional
        Times in s of a motion by formulas, ascending; by default 361 over `t_span`.
    t_span : (float, float), optional
        First and last time in s of a motion by formulas; by default the whole of a profile.
    accelerations : (n, nv) array, optional
        For a motion by states.
    motors : list of labels, optional
        Joint coordinates with a motor, of tree or cut joints. By default those of the mapping on which the model has
        a motor or a driver; else all on which it has one; else those of the mapping. Motors and drivers of the model on
        these coordinates are left out, all others act.
    rule : {"minimum norm", "weights", "preload"}, optional
        Distribution of loads among redundant motors. "minimum norm" (default): the sum of force^2 + (torque/size of
        the mechanism)^2 is least. "weights": the sum of weight*load^2 is least. "preload": loads nearest to the
        preload, in the norm of the weights if they are given. By default chosen from `weights` and `preload`.
    weights : mapping, optional
        Positive weight of load^2 for each motor, loads in declared units.
    preload : mapping, optional
        Loads by motor, numbers or one value per time, in declared units; others zero. Only their self-balanced part can
        be chosen for a given motion: the result is as near to them as possible.
    near : State, optional
        Pose from which a motion by formulas is assembled: chooses the branch. By default the start of the model.
        Redundant constraints that it leaves open within a tolerance are left open along the motion.
    impossible : {"raise", "mark"}
        Behaviour if the motors cannot produce the motion: an error, or marks in ``possible`` with the ``residual``.
    tolerance : float
        Largest residual, as a fraction of the largest generalised force.

    Returns
    -------
    InverseDynamics

    Examples
    --------
    A rod of 2 kg and 1 m that rotates at a constant rate from the horizontal needs the torque of its weight:

    >>> import numpy as np, loopdyn as ld
    >>> m = ld.Mechanism("rod", gravity=(0, -10, 0))
    >>> b = m.add_body("rod", ld.Inertia.rod(mass=2.0, start=(0, 0, 0), end=(1, 0, 0)))
    >>> j = m.add_joint("A", ld.Revolute(axis=(0, 0, 1)), m.ground, b, at=(0, 0, 0))
    >>> found = ld.inverse_dynamics(m.compile(), {"A": "pi*t"}, np.linspace(0, 1, 5))
    >>> found.verdict, [round(x, 3) + 0.0 for x in found.load[:, 0].tolist()]
    ('fully actuated', [10.0, 7.071, 0.0, -7.071, -10.0])
    """
    if not isinstance(motion, Mapping) and not (t_span is None and t_eval is None):
        raise LoopdynError("times belong to a motion by formulas; this one has its own. Leave them out.")
    _check_options(motion, accelerations, motors, impossible, tolerance)
    known = _motor_labels(system)
    chosen = _chosen_motors(system, motion, motors, known)
    times = _times(system, motion, t_span, t_eval) if isinstance(motion, Mapping) else None
    samples, pieces, unbounded = _sampled(system, motion, times, accelerations, near)
    along = (State(float(t), q, v) for t, q, v in zip(samples.t, samples.q, samples.v, strict=True))
    warn_if_closed(system, along, "the loads of the motors are those without its force. Choose a motion off it.")
    name, metric = _rule(system, chosen, [known[c] for c in chosen], rule, weights, preload)
    wanted = _preloads(chosen, preload, len(samples.t)) * factors(system, [known[c] for c in chosen])
    parts = []
    for piece, first, end in pieces:
        plant, replaced = _plant(piece, chosen, motion if isinstance(motion, Mapping) else {})
        part = Sampled(*(np.asarray(x)[first:end] for x in (samples.t, samples.q, samples.v, samples.a)))
        check_tables(plant, (State(*x) for x in zip(part.t, part.q, part.v, strict=True)))
        parts.append((plant, replaced, _solve(plant, part, chosen, metric, wanted[first:end], unbounded[first:end])))
    found = [part for _, _, part in parts]
    redundant = max(len(chosen) - p.rank for p in found)
    if redundant == 0 and (weights is not None or preload is not None or rule not in (None, "minimum norm")):
        raise LoopdynError(
            f"the motors {', '.join(chosen)} are not redundant, so the motion determines their loads. Leave out "
            "rule, weights and preload."
        )
    result = _joined(parts, pieces, samples, chosen, known, tolerance, name if redundant else "")
    if impossible == "raise" and not result.possible.all():
        raise LoopdynError(
            what_is_missing(result)
            + " Add motors, use the motion of a run or of the free mechanism, or see the residual "
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
        raise unknown("motors", "joint coordinate", wrong, known)
    if len(set(chosen)) < len(chosen):
        raise LoopdynError(f"a motor is named twice among {', '.join(chosen)}. Name each coordinate once.")
    if not chosen:
        raise LoopdynError(
            f"'{system.name}' has no motor and no driver. Name the coordinates that are driven: motors=['...']. "
            f"{nearest('', known)}"
        )
    return chosen


def _times(
    system: System, motion: Mapping[str, Any], t_span: tuple[float, float] | None, t_eval: ArrayLike | None
) -> Array:
    """Times of a motion by formulas: those given, or as many as :func:`loopdyn.drive` has over the span."""
    if t_span is not None:
        check_span(t_span)
    if t_eval is not None:
        return given_times(t_eval, *(t_span or (-np.inf, np.inf)))
    return np.linspace(*(t_span or span_of_profiles(system, motion)), POINTS)


def _sampled(
    system: System,
    motion: Run | Samples | Sequence[State] | Mapping[str, Any],
    times: Array | None,
    accelerations: ArrayLike | None,
    start: State | None,
) -> tuple[Samples, Sequence[tuple[System, int, int]], NDArray[np.bool_]]:
    """Samples of the motion, parts with one set of constraints, and flags of unbounded accelerations."""
    samples: Samples
    if isinstance(motion, Mapping):
        samples, pieces = followed(system, motion, np.zeros(0) if times is None else times, start)
        unbounded = np.zeros(len(samples.t), bool)
    elif isinstance(motion, Run):
        check_same(system, motion.system)
        samples, pieces, unbounded = motion.path, motion.pieces, motion.unbounded
    else:
        samples = given_samples(system, motion, accelerations)
        states = motion if isinstance(motion, Sequence) else ()
        pieces = pieces_of([system.for_state(state) for state in states] or [system] * len(samples.t))
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
    """Results of all parts of the motion joined."""
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


def _check_options(motion: object, accelerations: object, motors: object, impossible: str, tolerance: float) -> None:
    if isinstance(motion, str):
        raise LoopdynError(f"the motion '{motion}' names no coordinate. Give a mapping: {{'A': '{motion}'}}.")
    if isinstance(motors, str):
        raise LoopdynError(f"motors is a list of labels, not a text. Write motors=['{motors}'].")
    states = isinstance(motion, Sequence)
    if states and accelerations is None:
        raise LoopdynError("states alone do not determine accelerations. Give accelerations (n, nv) with them.")
    if not states and accelerations is not None:
        raise LoopdynError("accelerations belong to a motion by states; this one has its own. Leave them out.")
    if impossible not in ("raise", "mark"):
        raise LoopdynError(f"impossible='{impossible}' is unknown. Use 'raise' or 'mark'.")
    if not tolerance > 0.0:
        raise LoopdynError(f"tolerance is {tolerance}. Give a positive fraction, e.g. 1e-8.")


def _motor_labels(system: System) -> dict[str, str]:
    """Joint speeds that can have a motor, with the dimensions of their loads."""
    own, speeds = system.mechanism.joints, system.labels.speeds
    return {label: FORCE_OF[found.dimension] for label, found in speeds.items() if found.joint.name in own}


def _default_motors(system: System, motion: object) -> tuple[str, ...]:
    m = system.mechanism
    own = [f.joint for f in m.forces.values() if isinstance(f, Motor)] + [d.joint for d in m.drivers.values()]
    if isinstance(motion, Mapping):  # a motor elsewhere may represent a load, such as gas pressure
        own = [label for label in own if label in motion] or own or list(motion)
    return tuple(dict.fromkeys(own))


def _plant(system: System, motors: Sequence[str], driven: Mapping[str, Any]) -> tuple[System, tuple[str, ...]]:
    """Mechanism without motors and drivers on these coordinates, and without drivers of prescribed coordinates."""
    m = system.mechanism
    forces = [name for name, f in m.forces.items() if isinstance(f, Motor) and f.joint in motors]
    drivers = [name for name, d in m.drivers.items() if d.joint in motors or d.joint in driven]
    return without(system, forces, drivers), (*forces, *drivers)


# -------------------------------------------------------------------------------------------- the loads


@dataclass(frozen=True)
class _Part:
    """Results along a part of a motion."""

    load: Array
    speed: Array
    internal: Array
    residual: Array
    missing: Array  # (n,) norm of the residual in natural units
    scale: float  # largest generalised force in natural units
    freedoms: int
    rank: int


def _solve(
    plant: System, path: Samples, motors: Sequence[str], metric: Array, preload: Array, unbounded: NDArray[np.bool_]
) -> _Part:
    n, m, units = len(path.t), len(motors), plant.speed_units
    equations = [_equations(plant, path, k, motors) for k in range(n)]
    rank = max(r for r, *_ in equations)  # rank of the constraints if no pose is singular
    freedoms = plant.nv - rank
    out = _Part(np.full((n, m), np.nan), np.zeros((n, m)), np.full((n, m), np.nan), np.zeros((n, plant.nv)),
                np.zeros(n), max(scale for *_, scale in equations), freedoms, 0)  # fmt: skip
    turning = _motor_labels(plant)
    motor_units = np.array([1.0 if turning[label] == "torque" else plant.size for label in motors])
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
    """Raise if a motion violates the constraints: its loads would be meaningless."""
    rows, units = plant.row_units, plant.speed_units
    J = np.abs(scaled(plant, now.J))
    v, acc = np.abs(state.v / units), np.abs(a / units)
    levels = (
        ("loops are open", now.phi / rows, np.ones(plant.nc)),
        ("speeds violate the constraints", (now.J @ state.v + now.phi_t) / rows, J @ v + np.abs(now.phi_t / rows)),
        ("accelerations violate the constraints", (now.J @ a - now.gamma) / rows, J @ acc + np.abs(now.gamma / rows)),
    )
    for what, residual, size in levels:
        worst = int(np.argmax(np.abs(residual))) if plant.nc else 0
        if plant.nc and abs(residual[worst]) > CONSISTENT * max(float(size.max()), 1.0):
            raise LoopdynError(
                f"the motion is impossible for '{plant.name}': at t = {state.t:g} s its {what}, most in row "
                f"'{plant.constraint_rows[worst]}' (by {abs(residual[worst]):.2g}). Close states with ld.assemble and "
                "use consistent accelerations, or give the motion as formulas."
            )


def _motor_speeds(plant: System, state: State, motors: Sequence[str], W: Array) -> Array:
    """Speeds of the coordinates with motors, including the motion of bases, which the rows leave out."""
    speeds = W.T @ state.v
    if not plant.mechanism.base:
        return np.asarray(speeds, float)
    at_rest = State(state.t, state.q, np.zeros(plant.nv))
    still = body_motion(plant, at_rest)
    for n, label in enumerate(motors):
        j, k, *_ = plant.labels.speeds[label]
        if not j.in_tree:
            speeds[n] += freedom_rate(plant, at_rest, still, j, k)[1]
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
    """Rule in words, and the square roots of the weights of the loads."""
    rule = rule or ("preload" if preload is not None else "weights" if weights is not None else "minimum norm")
    if rule not in ("minimum norm", "weights", "preload"):
        raise LoopdynError(f"the rule '{rule}' is unknown. Use 'minimum norm', 'weights' or 'preload'.")
    if (preload is not None) != (rule == "preload"):
        raise LoopdynError("preload and rule='preload' belong together. Give both or neither.")
    if rule == "weights" and weights is None:
        raise LoopdynError("rule='weights' needs weights. Give them: weights={'A': 1.0, ...}.")
    if rule == "minimum norm" and weights is not None:
        raise LoopdynError("weights need rule='weights' or rule='preload'. Choose one of them, or leave weights out.")
    for what, given in (("weights", weights), ("preload", preload)):
        wrong = [label for label in given or {} if label not in motors]
        if wrong:
            raise ModelError(Problem(what, f"'{n}' is not among the motors", nearest(n, motors)) for n in wrong)
    plain = np.array([1.0 / system.size**2 if u == "torque" else 1.0 for u in units])
    arm = f"{system.size / system.units.factor('length'):.3g} {system.units.symbol('length')}"
    text = f"least sum of force^2 + (torque/{arm})^2"
    if weights is not None:
        missing = [label for label in motors if label not in weights]
        if missing:
            raise LoopdynError(f"weights of {', '.join(missing)} are missing. Give one for every motor.")
        plain = np.array([float(weights[label]) for label in motors]) / factors(system, units) ** 2
        if not (np.isfinite(plain).all() and (plain > 0.0).all()):
            raise LoopdynError("weights must be positive numbers. A motor with a large weight gets a small load.")
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
