"""Motion given by formulas, states or samples, closed along its branch, with speeds and accelerations.

Speeds and accelerations of a motion by formulas follow from the constraints, with the formulas as drivers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from loopdyn.analysis.assembly import assembled
from loopdyn.analysis.contradictions import within_tolerance
from loopdyn.analysis.mobility import mobility
from loopdyn.errors import AssemblyError, LoopdynError, SingularityError
from loopdyn.formulations.registry import prepare
from loopdyn.loops.continuation import StepLength
from loopdyn.loops.projection import project
from loopdyn.loops.rank import dead_drivers, decide, scaled
from loopdyn.quantities.wording import unknown
from loopdyn.results.inverse_dynamics import element_name
from loopdyn.results.path import Sampled, Samples
from loopdyn.system.builder import build
from loopdyn.system.system import State, System
from loopdyn.thresholds import CANDIDATE, CONSISTENT
from loopdyn.tree.functions import constraint_equations, counted, difference, increment, terms
from loopdyn.tree.joint_readings import coordinate

if TYPE_CHECKING:
    pass

Array = NDArray[np.float64]
LONGEST = 0.1  # natural units: step along a given motion
# Natural units: largest correction at the end of a step; more means another branch. It is not relative to the step: for
# a motion that starts from rest as the third power of time the predicted step is zero.
CORRECTION = 0.03
BLOCKED = (
    2.0**-12
)  # fraction of the longest step at which the motion counts as blocked: closer, it does not determine speeds


def check_same(system: System, other: System) -> None:
    """Raise if a run is of a system with other coordinates."""
    if system.coordinates != other.coordinates or system.speeds != other.speeds:
        raise LoopdynError(
            f"the run is one of '{other.name}' with other coordinates. Use run.system, or compile with the same cuts."
        )


def without(
    system: System,
    forces: Sequence[str],
    drivers: Sequence[str],
    new: Mapping[str, tuple[str, Any]] | None = None,
    counting: Sequence[str] = (),
) -> System:
    """System with the same tree, without some forces and drivers, and with new drivers (joint, motion) by name.

    Full turns of the cut joints in `counting`, which the system does not count, are counted by added coordinates.
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
        check_same(changed, system)
    return changed


# ------------------------------------------------------------------------------------------- the motion


def given_samples(system: System, motion: Any, accelerations: ArrayLike | None) -> Samples:
    """Samples from states and accelerations, or from arrays, with their shapes checked."""
    if isinstance(motion, Sequence):
        t, q, v = (np.array([getattr(s, n) for s in motion], float) for n in ("t", "q", "v"))
        samples = Sampled(t, q, v, np.asarray(accelerations, float))
    else:
        missing = [n for n in ("t", "q", "v", "a") if not hasattr(motion, n)]
        if missing:
            raise LoopdynError(
                f"a motion of type {type(motion).__name__} has no {', '.join(missing)}. Give a Run, states with "
                "accelerations, or coordinates as formulas of t with t_eval."
            )
        samples = Sampled(*(np.asarray(getattr(motion, n), float) for n in ("t", "q", "v", "a")))
    n = len(samples.t)
    for name, x, width in (("q", samples.q, system.nq), ("v", samples.v, system.nv), ("a", samples.a, system.nv)):
        if n and x.shape != (n, width):
            raise LoopdynError(f"the motion has {name} of shape {x.shape}, ({n}, {width}) is needed. Check its axes.")
    return samples


def pieces_of(systems: Sequence[System]) -> list[tuple[System, int, int]]:
    """Ranges of samples that leave the same redundant rows open: the system, the first sample and one past the last."""
    found: list[tuple[System, int, int]] = []
    for k, system in enumerate(systems):
        if found and found[-1][0].tolerated == system.tolerated:
            found[-1] = (*found[-1][:2], k + 1)
        else:
            found.append((system, k, k + 1))
    return found


def followed(
    system: System, motion: Mapping[str, Any], times: Array, start: State | None
) -> tuple[Samples, list[tuple[System, int, int]]]:
    """Motion by formulas, closed along its branch, with speeds and accelerations from the constraints.

    Also returned are the pieces in which the same redundant rows are left open.
    """
    system = system if start is None else system.for_state(start)
    known = system.labels.coordinates
    wrong = [label for label in motion if label not in known]
    if wrong:
        raise unknown("motion", "joint coordinate", wrong, known)
    other = [name for name, d in system.mechanism.drivers.items() if d.joint in motion]
    names = {element_name("motion", label): (label, law) for label, law in motion.items()}
    free = without(system, [], other)
    counting = _uncounted(free, motion)
    driven = without(system, [], other, names, counting)
    t, still = float(times[0]), np.zeros(system.nv)
    if counting and system.base_turns:
        _check_turns(driven, names, times)
    here = start or assembled(free, q=dict(system.start[0]) or None, t=t)
    values = {label: coordinate(system, here, label) for label in counting}
    phi = terms(driven, State(t, _counted(system, driven, t, here.q, values), still)).phi
    for name, (label, _) in names.items():
        row = driven.constraint_rows.index(name)
        values[label] = coordinate(system, here, label) - float(phi[row])
    posed = assembled(free, q=values, near=State(t, here.q, still), t=t)
    here = State(t, _counted(system, driven, t, posed.q, values), still)
    rank = decide(driven, here)
    _check_determined(system, free, rank.count, posed, motion)
    at = _moving(driven, here, rank.count)
    found = [at]
    for end in times[1:]:
        at = _advance(*at, float(end), rank.count)
        found.append(at)
    own = [driven.coordinates.index(label) for label in system.coordinates]
    samples = Sampled(times, *(np.array(x) for x in zip(*((s.q[own], s.v, a) for _, s, a in found), strict=True)))
    return samples, pieces_of([system.tolerating_as(s) for s, _, _ in found])


def _uncounted(system: System, labels: Iterable[str]) -> tuple[str, ...]:
    """Angles of cut joints among the labels whose full turns the system does not count."""
    found = []
    for label in labels:
        joint, k, *_ = system.labels.coordinates[label]
        if not joint.in_tree and joint.spec.is_periodic(k) and not system.knows_turns(joint, k):
            found.append(label)
    return tuple(found)


def _counted(system: System, driven: System, t: float, q: Array, near: Mapping[str, float]) -> Array:
    """Coordinates of the driven system: those of the system, and additional counted angles nearest to given values."""
    known = dict(zip(system.coordinates, q.tolist(), strict=True))
    return counted(driven, t, [known[label] if label in known else near[label] for label in driven.coordinates])


def _check_turns(driven: System, names: Mapping[str, tuple[str, Any]], times: Array) -> None:
    """Raise if a cut joint on a turning base, whose full turns are not counted, moves by more than half a turn."""
    for name, (label, _) in names.items():
        if label not in driven.counted:
            continue
        row = driven.constraint_rows.index(name)
        rest = driven.q_reference
        here = coordinate(driven, State(0.0, rest, np.zeros(driven.nv)), label)
        values = [
            here - constraint_equations(driven, State(float(t), rest, np.zeros(driven.nv)))[0][row] for t in times
        ]
        if np.abs(values).max() > np.pi:
            raise LoopdynError(
                f"'{label}' belongs to a cut joint in a loop with skew axes, on a rotating base, so that "
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
        of = f"the motion of {', '.join(motion)}" if motion else "the given motion"
        count = "1 degree of freedom" if found.dof == 1 else f"{found.dof} degrees of freedom"
        raise LoopdynError(
            f"'{system.name}' has {count}, and {of} leaves {open_} free. Give the motion of {open_} more, "
            f"e.g. of {', '.join(can[:4])}."
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
            f"at t = {state.t:g} s '{driven.name}' is at a dead point of the given motion, which does not determine "
            "speeds and accelerations there. Give the motion of another coordinate, or other times."
        )
    if np.abs(now.phi / driven.row_units).max(initial=0.0) > CONSISTENT:
        raise AssemblyError(_blocked(driven, closed.state), closed.state)
    if rank < driven.nv:  # idle degrees of freedom (the spin of a rod) follow the forces
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
        else "it is out of reach, or beyond a dead point"
    )
    return (
        f"the motion of '{driven.name}' cannot be followed beyond t = {pose.t:.6g} s: {reason}. Give a smaller motion, "
        "or the motion of another coordinate; ld.analyses.singular_poses and ld.mobility show its dead points."
    )


def _advance(driven: System, state: State, a: Array, end: float, rank: int) -> tuple[System, State, Array]:
    """Advance from one time to the next in steps short enough to stay on the branch."""
    step = StepLength(end - state.t, BLOCKED)
    while state.t < end:
        fastest = float(np.abs(state.v / driven.speed_units).max(initial=0.0))
        step.limit(min(end - state.t, LONGEST / fastest if fastest > 0.0 else np.inf))
        t = end if state.t + step.h >= end - 1e-12 * abs(end) else state.t + step.h
        h = t - state.t
        q = increment(driven, state.q, h * state.v + 0.5 * h * h * a)
        trial = project(driven, State(t, q, state.v + h * a), rank=rank if driven.holonomic.all() else None)
        moved = np.abs(difference(driven, q, trial.state.q) / driven.speed_units).max(initial=0.0)
        if trial.position <= CONSISTENT * driven.size and moved <= CORRECTION:
            driven, state, a = _moving(driven, trial.state, rank)
            step.counted()
        elif not step.failed():
            raise AssemblyError(_blocked(driven, state), state)
    return driven, state, a
