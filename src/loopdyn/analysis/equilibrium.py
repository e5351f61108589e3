"""Static equilibrium on the constraint manifold: v = 0, t fixed.

With N a basis of the motions that the constraints allow (J N = 0) and f the forces at rest, an equilibrium is where

    g = N^T f = 0

and its reduced stiffness is the change of -g along these motions. With multipliers lam for which f + J^T lam vanishes
along N's complement, K = -N^T d(f + J^T lam)/dq N, to first order exact also off the manifold. An equilibrium is
stable if the eigenvalues of K have positive real parts, neutral if one vanishes.

Forces may be any functions of position and need no potential. Without a potential (K is not symmetric), a positive K
excludes divergence, but not flutter, which depends on inertia and damping; the result says so. Loads that depend on
speed are evaluated at rest. Coulomb friction is zero at rest here: with it, every pose near enough to an equilibrium is
an equilibrium.

With one degree of freedom the curve of all poses is followed from the start in both directions, also beyond dead points
of the coordinate, and every sign change and every double root of g is located. With more, many starts are used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from loopdyn.analysis.assembly import assembled
from loopdyn.analysis.assembly_speeds import speed_rows
from loopdyn.analysis.equilibrium_curve import TOUCHING, SampledCurve
from loopdyn.analysis.statics import CONVERGED, LONGEST, NEUTRAL, STEPS, Statics
from loopdyn.errors import ConvergenceError, LoopdynError, ModelError, Problem
from loopdyn.loops.one_sided import warn_if_closed
from loopdyn.model.mechanism import Mechanism
from loopdyn.quantities.wording import nearest, unknown
from loopdyn.results.equilibrium import Equilibria, Equilibrium, Preload, units_of
from loopdyn.results.units import dimensions
from loopdyn.system.builder import build
from loopdyn.system.system import State, System
from loopdyn.thresholds import SAME_POSE
from loopdyn.tree.functions import apart, increment
from loopdyn.tree.joint_readings import coordinate

Array = NDArray[np.float64]
_WITHOUT = "the pose would be held by it, or cannot be reached. Simulate with damping until the parts rest."
STARTS = 64  # number of starts of a search with several degrees of freedom


@overload
def equilibrium(
    system: System, near: State | None = None, search: None = None, *, t: float | None = None
) -> Equilibrium: ...


@overload
def equilibrium(
    system: System, near: State | None = None, *, search: Mapping[str, tuple[float, float]], t: float | None = None
) -> Equilibria: ...


def equilibrium(
    system: System,
    near: State | None = None,
    search: Mapping[str, tuple[float, float]] | None = None,
    *,
    t: float | None = None,
) -> Equilibrium | Equilibria:
    """Find a static equilibrium from a start, or all equilibria over a range, and their stability.

    Parameters
    ----------
    system : System
    near : State, optional
        Pose to start from; by default the start of the model. Without `search` the mechanism is released there and
        follows the static force, so that it comes to rest in a stable equilibrium; an exact equilibrium is kept.
        Redundant constraints that are left open within a tolerance stay open.
    search : mapping, optional
        Range of a joint coordinate in declared units, ``{"A": (0, 360)}``. With one degree of freedom all equilibria on
        the circuit of the start are found; with more, those that can be reached from many starts within the ranges.
    t : float, optional
        Time in s at which drivers, motors and forces are evaluated; by default that of the start, or zero.

    Returns
    -------
    Equilibrium, or Equilibria for a search

    Raises
    ------
    LoopdynError
        If the mechanism cannot be at rest at `t`, since a driver or a base moves.
    ConvergenceError
        If no equilibrium is found; names the remaining force.

    Examples
    --------
    A rod of 2 kg and 1 m has a stable equilibrium hanging down and an unstable one upright:

    >>> import numpy as np, loopdyn as ld
    >>> m = ld.Mechanism("rod", gravity=(0, -10, 0))
    >>> b = m.add_body("rod", ld.Inertia.rod(mass=2.0, start=(0, 0, 0), end=(0, -1, 0)))
    >>> j = m.add_joint("A", ld.Revolute(axis=(0, 0, 1)), m.ground, b, at=(0, 0, 0))
    >>> system = m.compile()
    >>> rest = ld.equilibrium(system, system.state(q={"A": 2.0}))
    >>> rest.stability, abs(round(rest["A"], 9)), round(float(rest.stiffness[0, 0]), 6)
    ('stable', 0.0, 10.0)
    >>> [(e.stability, abs(round(e["A"], 6))) for e in ld.equilibrium(system, search={"A": (-1, 4)})]
    [('stable', 0.0), ('unstable', 3.141593)]
    """
    system = system if near is None else system.for_state(near)
    here = _start(system, near, t)
    statics = Statics(system, here)
    if search is None:
        found = statics.classified(statics.settle(statics.start), ())
        warn_if_closed(system, [found.state], _WITHOUT)
        return found
    ranges = _ranges(system, search)
    if statics.freedoms == 0:
        raise LoopdynError(
            f"'{system.name}' has no degree of freedom left at t = {here.t:g} s, so there is nothing to search. "
            "Remove a driver, or see ld.reactions for the loads of its joints."
        )
    if statics.freedoms == 1 and len(ranges) == 1:
        several = _along(statics, *next(iter(ranges.items())))
    else:
        several = _from_many_starts(statics, ranges)
    warn_if_closed(system, [e.state for e in several], _WITHOUT)
    return several


def zero_force(
    system: System, force: str, search: Mapping[str, tuple[float, float]], near: State | None = None
) -> tuple[State, ...]:
    """Poses of a mechanism with one degree of freedom at which the load of a spring, actuator or motor vanishes.

    Parameters
    ----------
    system : System
    force : str
        Name of the force.
    search : mapping
        Range of one joint coordinate in declared units.
    near : State, optional
        State on the circuit that is searched; by default the start of the model.

    Examples
    --------
    >>> import loopdyn as ld
    >>> m = ld.library.four_bar()
    >>> name = m.add_force("spring", ld.forces.JointSpring(joint="A", stiffness=10.0, rest=0.3))
    >>> [round(float(state.q[0]), 9) for state in ld.analyses.zero_force(m.compile(), "spring", {"A": (-1, 1)})]
    [0.3]
    """
    system = system if near is None else system.for_state(near)
    known = [n for n, f in system.mechanism.forces.items() if f.preloaded() is not None]
    if force not in known:
        if force not in system.forces:
            raise unknown("zero_force", "force", [force], known)
        raise ModelError([Problem("zero_force", f"'{force}' has no single load", nearest(force, known))])
    statics = Statics(system, _start(system, near, None))
    ranges = _ranges(system, search)
    if statics.freedoms != 1 or len(ranges) != 1:
        raise LoopdynError(
            f"'{system.name}' has {statics.freedoms} degrees of freedom, but zero_force needs a mechanism with one. "
            "Hold the others by drivers."
        )
    label, span = next(iter(ranges.items()))
    k = system.forces.index(force)
    curve = SampledCurve(statics, label, span)
    found = curve.roots(lambda q, _: float(statics.loads(q)[k]))
    return tuple(replace(statics.state(q), system=system) for q in found)


def preload(system: System, force: str, state: State | None = None) -> Preload:
    """Free length of a spring, or load of an actuator or motor, that makes a pose an equilibrium.

    Parameters
    ----------
    system : System
    force : str
        A spring with a stiffness, whose free length (`length`, `rest`) is found, or an actuator or motor, whose law is
        replaced by a constant load.
    state : State, optional
        Closed pose; speeds are ignored. By default the start of the model, assembled.

    Examples
    --------
    A rod of 2 kg and 1 m held level by a motor:

    >>> import loopdyn as ld
    >>> m = ld.Mechanism("rod", gravity=(0, -10, 0))
    >>> b = m.add_body("rod", ld.Inertia.rod(mass=2.0, start=(0, 0, 0), end=(1, 0, 0)))
    >>> j = m.add_joint("A", ld.Revolute(axis=(0, 0, 1)), m.ground, b, at=(0, 0, 0))
    >>> motor = m.add_motor("hold", "A", torque=0.0)
    >>> system = m.compile()
    >>> round(ld.analyses.preload(system, "hold").value, 9)
    10.0
    """
    pose = _start(system, None, None) if state is None else state
    system = system.for_state(pose)
    m = system.mechanism
    known = {n: key for n, f in m.forces.items() if (key := f.preloaded()) is not None}
    if force not in known:
        if force not in m.forces:
            raise unknown("preload", "force", [force], known)
        raise ModelError([Problem("preload", f"'{force}' has nothing to preload", nearest(force, known))])
    what = known[force]
    dimension = {"length": "length", "rest": _rest_dimension(system, force), "torque": "torque", "force": "force"}[what]

    def variant(value: float) -> Mechanism:
        other = m.model_copy(deep=True)
        other.forces[force] = m.forces[force].model_copy(update={what: value})
        return other

    def pushes(value: float) -> Array:
        changed = build(variant(value), cuts=list(system.topology.cuts)).tolerating_as(system)
        statics = Statics(changed, pose)
        return statics.push(pose.q)[0]

    # forces are affine in a free length and in a constant load
    g0, g1 = pushes(0.0), pushes(1.0)
    slope = g1 - g0
    size = float(slope @ slope)
    scale = Statics(system, pose).scale(pose.q)
    if size <= (NEUTRAL * NEUTRAL) * max(float(g0 @ g0), scale * scale) or size == 0.0:
        raise LoopdynError(
            f"preload: '{force}' exerts no force along any motion of '{system.name}' at this pose (no stiffness, or "
            "a dead point). Give it a stiffness, or use another pose."
        )
    value = float(-(slope @ g0) / size)
    left = g0 + value * slope
    if np.abs(left).max(initial=0.0) > NEUTRAL * max(np.abs(g0).max(initial=0.0), scale):
        raise LoopdynError(
            f"preload: '{force}' alone cannot hold '{system.name}' at this pose: it has {len(g0)} degrees of freedom, "
            "and a force remains along another one. Preload a force for each, or hold the others by drivers."
        )
    if what == "length" and value < 0.0:
        raise LoopdynError(
            f"preload: the spring '{force}' would need a negative free length, {value:.4g} "
            f"{m.units.length}, to hold this pose. Make it stiffer, or let it act at other points."
        )
    return Preload(force, what, value, m.units.symbol(dimension), variant(value))


def _rest_dimension(system: System, force: str) -> str:
    turns = dict(zip(system.forces, dimensions(system, "load"), strict=True))[force] == "torque"
    return "angle" if turns else "length"


def _start(system: System, start: State | None, t: float | None) -> State:
    if start is None:
        return assembled(system, q=dict(system.start[0]), t=t)
    return State(start.t if t is None else float(t), start.q, np.zeros(system.nv))


def _ranges(system: System, search: Mapping[str, Any]) -> dict[str, tuple[float, float]]:
    known = system.labels.scalars
    wrong = [label for label in search if label not in known]
    if wrong:
        raise unknown("search", "joint coordinate", wrong, known)
    if not search:
        raise LoopdynError("search names no coordinate. Give a range: search={'A': (0, 6.28)}.")
    out = {}
    for label, span in search.items():
        low, high = (float(x) for x in span)
        if not (np.isfinite([low, high]).all() and low < high):
            raise LoopdynError(f"search of '{label}' from {low:g} to {high:g}: give two ascending numbers.")
        factor = system.labels.factor(label)
        out[label] = (low * factor, high * factor)
    return out


def _along(statics: Statics, label: str, span: tuple[float, float]) -> Equilibria:
    curve = SampledCurve(statics, label, span)
    system = statics.system
    pushes = [abs(float(n @ statics.force(q))) for q, n in curve.points]
    size = max(statics.scale(q) for q, _ in curve.points[:: max(1, len(curve.points) // 20)])
    low, high = (min(curve.value(q) for q, _ in curve.points), max(curve.value(q) for q, _ in curve.points))
    factor, unit = units_of(system, label)
    where = f"{label} from {low / factor:.6g} to {high / factor:.6g} {unit}, {len(curve.points)} poses"
    crossed = list(dict.fromkeys(f"{x / factor:.5g}" for x in curve.singular()))
    if crossed:
        where += (
            f"; other branches cross it in singular poses at {label} = {', '.join(crossed)} {unit}: start there, too"
        )
    if curve.lost:
        where += f"; it could not be followed beyond {', '.join(f'{x / factor:.5g}' for x in curve.lost)} {unit}"
    complete = not (crossed or curve.lost)
    if max(pushes) <= TOUCHING * size:
        one = statics.classified(statics.start, (label,))
        return Equilibria(system, (one,), (label,), complete, f"in equilibrium everywhere, {where}")
    found = curve.roots(lambda q, n: float(n @ statics.force(q)))
    every = sorted((statics.classified(q, (label,)) for q in found), key=lambda e: curve.value(e.state.q))
    if not every:
        k = int(np.argmin(pushes))
        q, n = curve.points[k]
        x = statics.units * n
        ratio = float((speed_rows(system, statics.state(q), [label]) @ x)[0])
        moved = label if abs(ratio) > NEUTRAL else system.speeds[int(np.argmax(np.abs(n)))]
        x = x / (ratio if moved == label else x[system.speeds.index(moved)])
        raise ConvergenceError(
            f"'{system.name}' has no equilibrium for {where}. The force is smallest at {label} = "
            f"{curve.value(q) / factor:.6g} {unit}, {statics.pushed(q, x, moved)}. Search a wider range, or change "
            "the forces."
        )
    return Equilibria(system, tuple(every), (label,), complete, where)


def _from_many_starts(statics: Statics, ranges: Mapping[str, tuple[float, float]]) -> Equilibria:
    """Equilibria that Newton's method finds from starts spread over the ranges."""
    from scipy.stats.qmc import Halton

    system = statics.system
    found: list[Array] = []
    spread = Halton(len(ranges), scramble=False).random(STARTS + 1)[1:]
    for x in spread:
        given = {label: low + s * (high - low) for s, (label, (low, high)) in zip(x, ranges.items(), strict=True)}
        try:
            begin = assembled(system, q=given, near=statics.state(statics.start), t=statics.t, tries=1, limits=False)
        except LoopdynError:
            continue  # a part of the ranges that the mechanism does not reach
        for q in (_newton(statics, begin.q), _settled(statics, begin.q)):
            if q is None or any(apart(system, q, p) < SAME_POSE for p in found):
                continue
            values = {label: coordinate(system, statics.state(q), label) for label in ranges}
            if all(low - SAME_POSE <= values[label] <= high + SAME_POSE for label, (low, high) in ranges.items()):
                found.append(q)
    if not found:
        raise ConvergenceError(
            f"no equilibrium of '{system.name}' was found in the ranges of {', '.join(ranges)}, from {STARTS} starts. "
            "Give wider ranges, or leave out search to find the one next to the start of the model."
        )
    wanted = tuple(ranges)
    every = [statics.classified(q, wanted) for q in found]
    every.sort(key=lambda e: tuple(round(e[label], 9) for label in wanted))
    note = f"from {STARTS} starts in the range of {', '.join(wanted)}; there may be more"
    return Equilibria(system, tuple(every), wanted, False, note)


def _newton(statics: Statics, q: Array) -> Array | None:
    """Newton's method for g = 0, stable or not."""
    scale = 0.0  # the largest force so far: with relaxed springs and no weight, none remains at the end
    for _ in range(STEPS // 5):
        g, N = statics.push(q)
        scale = max(scale, statics.scale(q))
        y = np.linalg.lstsq(statics.stiffness(q, N), g, rcond=NEUTRAL)[0]
        size = float(np.abs(y).max(initial=0.0))
        if size < CONVERGED:
            return q if np.abs(g).max(initial=0.0) <= TOUCHING * scale else None
        y *= min(1.0, LONGEST / size)
        there = statics.close(increment(statics.system, q, statics.units * (N @ y)))
        if there is None:
            return None
        q = there
    return None


def _settled(statics: Statics, q: Array) -> Array | None:
    try:
        return statics.settle(q)
    except ConvergenceError:
        return None
