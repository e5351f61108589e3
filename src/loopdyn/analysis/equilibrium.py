"""Static equilibrium on the constraint manifold: v = 0, t fixed.

With N a basis of the motions that the constraints allow (J N = 0) and f the forces at rest, an equilibrium is where

    g = N^T f = 0

and its reduced stiffness is the change of -g along these motions. With multipliers lam for which f + J^T lam vanishes
along N's complement, K = -N^T d(f + J^T lam)/dq N, to first order exact also off the manifold. An equilibrium is
stable if the eigenvalues of K have positive real parts, neutral if one vanishes.

Nothing here needs an energy: forces may be any functions of position. Where they have none (K is not symmetric), a
positive K excludes that the mechanism drifts away, not that it starts to swing by itself (flutter), which depends on
its inertia and damping; the result says so. Loads that depend on speed are taken at rest. Coulomb friction is none
at rest here: with it, every pose near enough to an equilibrium is one.

One freedom: the curve of all poses is followed from the start in both directions, beyond dead points of the coordinate
too, and every sign change and every touching of zero of g is located. More freedoms: from many starts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from loopdyn.analysis.assembly import assemble, speed_rows
from loopdyn.analysis.contradictions import largest_open, said_open
from loopdyn.analysis.mobility import mobility
from loopdyn.analysis.pose_curve import PoseCurve
from loopdyn.engine import records as rec
from loopdyn.errors import ConvergenceError, LoopdynError, ModelError, Problem
from loopdyn.forces import Actuator, JointFriction, JointSpring, Motor, SpringDamper
from loopdyn.loops.continuation import PREDICTED, along, close, follow, last_before, least_between, zero_between
from loopdyn.loops.projection import project
from loopdyn.loops.rank import decide, scaled
from loopdyn.model.mechanism import Mechanism
from loopdyn.quantities.wording import nearest
from loopdyn.results.equilibrium import Equilibria, Equilibrium, Preload, stiffness_unit, units_of
from loopdyn.results.run import load_units
from loopdyn.run.locking import coordinate
from loopdyn.system.builder import build
from loopdyn.system.system import State, System, TableUse
from loopdyn.thresholds import DEPENDENT, SAME_POSE
from loopdyn.tree import power
from loopdyn.tree.functions import apart, body_motion, closure, difference, energy, increment, inverse_dynamics, terms
from loopdyn.tree.tables import check_tables, table_variable

Array = NDArray[np.float64]

# Natural units: rad, sizes of the mechanism; forces in N m, or N times the size.
DIFFERENCE = 1e-5  # step of central differences of forces: errors of 1e-10 by curvature and by rounding
CONVERGED = 1e-11  # Newton step that is rounding
BALANCED = 1e-13  # share of the loads at a pose that is rounding
STEPS = 300  # of the way to one equilibrium
LONGEST = 0.4  # of a step on this way
SHORTEST = 1e-9  # of a step that still counts as one
NEUTRAL = 1e-7  # share of the loads and stiffnesses at a pose below which an eigenvalue counts as zero
ASYMMETRY = 1e-6  # share of the largest stiffness by which that of conservative forces may be unsymmetric
ALONG = 0.04  # step along the curve of poses
MOST = 20_000  # steps along the curve
RESOLUTION = 1e-15  # share of a step to which it is cut where it leaves the range: rounding
FEW = 4  # steps after which the curve can have come back to its start ...
CLOSE_BY, SINGULAR = 0.1, 1e-6  # ratio of singular values of a sample that is looked at, and of a singular pose
OVERLAP = 3  # ... and how many more are then made, so that no gap is left
TOUCHING = 1e-9  # share of the largest g on the curve at which a minimum of |g| counts as zero
STARTS = 64  # of a search with several freedoms
ARGUMENT = 1e-13  # share of a step to which a root on the curve is located
MINIMUM = 1e-9  # share of a step to which a minimum is located: the root of rounding
SHOWN = 1e-6  # share of what pushes most that is worth a word
STATIC = 1e-12  # speeds, in rad or sizes per s, that are rounding


@overload
def equilibrium(
    system: System, start: State | None = None, search: None = None, *, t: float | None = None
) -> Equilibrium: ...


@overload
def equilibrium(
    system: System, start: State | None = None, *, search: Mapping[str, tuple[float, float]], t: float | None = None
) -> Equilibria: ...


def equilibrium(
    system: System,
    start: State | None = None,
    search: Mapping[str, tuple[float, float]] | None = None,
    *,
    t: float | None = None,
) -> Equilibrium | Equilibria:
    """Static equilibrium, from a start, or all of them over a range.

    Parameters
    ----------
    system : System
    start : State, optional
        Where to start, near or far; by default the start of the model. Without `search` the mechanism is let go there
        and followed downhill, so that it comes to rest in a stable equilibrium; an exact equilibrium is kept. Redundant
        constraints that it leaves open within a tolerance are left open on the way.
    search : mapping, optional
        Range of a joint coordinate in rad or m, ``{"A": (0, 2*pi)}``. With one freedom all equilibria on the circuit of
        the start are found; with more, those that can be reached from many starts within the ranges.
    t : float, optional
        Time in s at which drivers, motors and forces are held; by default that of the start, or zero.

    Returns
    -------
    Equilibrium, or Equilibria for a search

    Raises
    ------
    LoopdynError
        If the mechanism cannot stand still at `t`, since a driver or a base moves.
    ConvergenceError
        If no equilibrium is found; names what pushes the mechanism away.

    Examples
    --------
    A rod of 2 kg and 1 m hangs at rest, and stands on its head unstably:

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
    system = system if start is None else system.for_state(start)
    here = _start(system, start, t)
    statics = _Statics(system, here)
    if search is None:
        return statics.classified(statics.settle(statics.start), ())
    ranges = _ranges(system, search)
    if statics.freedoms == 0:
        raise LoopdynError(
            f"'{system.name}' has no freedom left at t = {here.t:g} s, so there is nothing to search. Remove a driver, "
            "or see ld.reactions for what its joints carry."
        )
    if statics.freedoms == 1 and len(ranges) == 1:
        return _along(statics, *next(iter(ranges.items())))
    return _from_many_starts(statics, ranges)


def zero_force(
    system: System, force: str, search: Mapping[str, tuple[float, float]], start: State | None = None
) -> tuple[State, ...]:
    """Poses of a mechanism with one freedom at which the load of a spring, actuator or motor vanishes.

    Parameters
    ----------
    system : System
    force : str
        Name of the force.
    search : mapping
        Range of one joint coordinate in rad or m.
    start : State, optional
        On the circuit that is searched; by default the start of the model.

    Examples
    --------
    >>> import loopdyn as ld
    >>> m = ld.library.four_bar()
    >>> name = m.add_force(ld.JointSpring(joint="A", stiffness=10.0, rest=0.3), "spring")
    >>> [round(float(state.q[0]), 9) for state in ld.zero_force(m.compile(), "spring", {"A": (-1, 1)})]
    [0.3]
    """
    system = system if start is None else system.for_state(start)
    known = [n for n, f in system.mechanism.forces.items() if isinstance(f, LOADED)]
    if force not in known:
        text = f"'{force}' has no single load" if force in system.forces else f"there is no force '{force}'"
        raise ModelError([Problem("zero_force", text, nearest(force, known))])
    statics = _Statics(system, _start(system, start, None))
    ranges = _ranges(system, search)
    if statics.freedoms != 1 or len(ranges) != 1:
        raise LoopdynError(
            f"'{system.name}' has {statics.freedoms} freedoms, and zero_force goes along one. Search one coordinate of "
            "a mechanism with one freedom; hold the others by drivers."
        )
    label, span = next(iter(ranges.items()))
    k = system.forces.index(force)
    curve = _Curve(statics, label, span)
    found = curve.roots(lambda q, _: float(statics.loads(q)[k]))
    return tuple(statics.state(q) for q in found)


def preload(system: System, pose: State, force: str) -> Preload:
    """Free length of a spring, or load of an actuator or motor, that makes a pose an equilibrium.

    Parameters
    ----------
    system : System
    pose : State
        A closed pose; speeds do not matter.
    force : str
        A spring with a stiffness, whose free length (`length`, `rest`) is found, or an actuator or motor, whose law is
        replaced by a constant load.

    Examples
    --------
    A rod of 2 kg and 1 m held level by a motor:

    >>> import loopdyn as ld
    >>> m = ld.Mechanism("rod", gravity=(0, -10, 0))
    >>> b = m.add_body("rod", ld.Inertia.rod(mass=2.0, start=(0, 0, 0), end=(1, 0, 0)))
    >>> j = m.add_joint("A", ld.Revolute(axis=(0, 0, 1)), m.ground, b, at=(0, 0, 0))
    >>> motor = m.add_motor("hold", "A", torque=0.0)
    >>> system = m.compile()
    >>> round(ld.preload(system, system.state(), "hold").value, 9)
    10.0
    """
    system = system.for_state(pose)
    m = system.mechanism
    known = [n for n, f in m.forces.items() if isinstance(f, LOADED)]
    if force not in known:
        text = f"'{force}' has nothing to preload" if force in m.forces else f"there is no force '{force}'"
        raise ModelError([Problem("preload", text, nearest(force, known))])
    what = _preloaded_key(m, force)
    dimension = {"length": "length", "rest": _rest_dimension(system, force), "torque": "torque", "force": "force"}[what]

    def variant(value: float) -> Mechanism:
        other = m.model_copy(deep=True)
        other.forces[force] = m.forces[force].model_copy(update={what: value})
        return other

    def pushes(value: float) -> Array:
        changed = build(variant(value), cuts=list(system.topology.cuts)).tolerating_as(system)
        statics = _Statics(changed, pose)
        return statics.push(pose.q)[0]

    # loads are affine in a free length and in a constant load
    g0, g1 = pushes(0.0), pushes(1.0)
    slope = g1 - g0
    size = float(slope @ slope)
    scale = _Statics(system, pose).scale(pose.q)
    if size <= (NEUTRAL * NEUTRAL) * max(float(g0 @ g0), scale * scale) or size == 0.0:
        raise LoopdynError(
            f"preload: '{force}' does not push along any motion of '{system.name}' at this pose (no stiffness, or a "
            "dead point of it). Give it a stiffness, or take another pose."
        )
    value = float(-(slope @ g0) / size)
    left = g0 + value * slope
    if np.abs(left).max(initial=0.0) > NEUTRAL * max(np.abs(g0).max(initial=0.0), scale):
        raise LoopdynError(
            f"preload: '{force}' alone cannot hold '{system.name}' at this pose: it has {len(g0)} freedoms, and what "
            "remains pushes along another one. Preload a force for each freedom, or hold the others by drivers."
        )
    if what == "length" and value < 0.0:
        raise LoopdynError(
            f"preload: the spring '{force}' would need a negative free length, {value * m.units.factor('length'):.4g} "
            "m, to hold this pose. Make it stiffer, or let it act at other points."
        )
    return Preload(force, what, value * m.units.factor(dimension), variant(value))


LOADED = (SpringDamper, JointSpring, Motor, Actuator)  # forces with one load


def _preloaded_key(m: Mechanism, force: str) -> str:
    f = m.forces[force]
    if isinstance(f, SpringDamper):
        return "length"
    if isinstance(f, JointSpring):
        return "rest"
    return "torque" if isinstance(f, Motor) and f.torque is not None else "force"


def _rest_dimension(system: System, force: str) -> str:
    turns = dict(zip(system.forces, load_units(system), strict=True))[force] == "N m"
    return "angle" if turns else "length"


# ---------------------------------------------------------------------------------------------- a pose at rest


class _Statics:
    """Forces along the motions of a mechanism at rest, at one time."""

    def __init__(self, system: System, start: State):
        self.poses = PoseCurve(system, start.t, 0)
        self.t = start.t
        self.units, self.rows = system.speed_units, system.row_units
        self.still = np.zeros(system.nv)
        self.levers = np.array([1.0 if u == "N m" else system.size for u in load_units(system)])
        self._require_static(start)
        rank = decide(system, State(start.t, start.q, self.still))
        self.poses.count, self.freedoms = rank.count, system.nv - rank.count
        closed = rank.state or start
        self.start = np.array(closed.q)
        if np.abs(closure(system, self.state(self.start))[0] / self.rows).max(initial=0.0) > SAME_POSE:
            raise LoopdynError("the loops are open at the start. Close them first: ld.assemble(system, ...).")

    @property
    def system(self) -> System:
        """The system that is closed at the last pose."""
        return self.poses.system

    def state(self, q: Array) -> State:
        return self.poses.state(q)

    def _require_static(self, start: State) -> None:
        """Refuse what cannot stand still: moving bases, drivers with a speed or an acceleration."""
        system = self.system
        moving = body_motion(system, self.state(start.q))
        for k in range(system.n_bases):
            rates = (moving.velocity, moving.angular_velocity, moving.acceleration, moving.angular_acceleration)
            if max(float(np.abs(x[k]).max()) for x in rates) > STATIC:
                raise LoopdynError(
                    f"'{system.name}' has no static equilibrium at t = {self.t:g} s: its base '{system.bodies[k]}' "
                    "moves. Take a time at which it rests, or simulate: ld.simulate(...)."
                )
        now = terms(system, self.state(start.q))
        for level, values in (("moves", now.phi_t), ("accelerates", now.gamma)):
            rate = np.abs(values / self.rows)
            if rate.max(initial=0.0) > STATIC:
                row = system.constraint_rows[int(np.argmax(rate))].partition(".")[0]
                kind = "driver" if row in system.mechanism.drivers else "constraint"
                raise LoopdynError(
                    f"'{system.name}' has no static equilibrium at t = {self.t:g} s: {kind} '{row}' {level} it, and "
                    "what turns or speeds up is not at rest (a governor at speed hangs on inertia forces). Take a time "
                    "at which it rests, make its motion a constant, or let ld.simulate with damping find where it "
                    "settles."
                )

    def close(self, q: Array) -> Array | None:
        """The closed pose next to q, or None."""
        found = close(self.poses, q, PREDICTED)
        return self.poses.settled(found.y) if found.closed else None

    def force(self, q: Array) -> Array:
        """Forces on the speeds at rest, in natural units."""
        return -self.units * inverse_dynamics(self.system, self.state(q), self.still)

    def push(self, q: Array) -> tuple[Array, Array]:
        """g along the motions N, and N."""
        N, _ = self.poses.motions(q)
        return N.T @ self.force(q), N

    def loads(self, q: Array) -> Array:
        """Loads of all forces."""
        return self._powers(q, self.still)[1]

    def _powers(self, q: Array, v: Array) -> tuple[Array, Array]:
        system = self.system
        work = system.work()
        w = system.open_work(work)
        w.t[0], w.q[:], w.v[:] = self.t, q, v
        for force in system.mechanism.user_forces.values():
            force.function(float(self.t), np.array(q), np.array(v), w.tau)
        powers, loads = np.zeros(len(system.forces) + power.N_OTHERS), np.zeros(len(system.forces))
        power.power_of_forces(system.ints, system.floats, work, False, powers, loads)
        return powers, loads

    def scale(self, q: Array) -> float:
        """Size of what acts: weight and loads, in natural units."""
        s = self.system
        weight = float(s.model.body[s.n_bases :, rec.MASS].sum() * np.linalg.norm(s.model.gravity)) * s.size
        loads = np.abs(self.loads(q))
        return weight + float(np.sum(loads * self.levers)) + float(np.abs(self.force(q)).max(initial=0.0))

    def stiffness(self, q: Array, N: Array) -> Array:
        """Reduced stiffness (k, k) in natural units along N."""
        _, J = self.poses.motions(q)
        lam = np.linalg.lstsq(J.T, -self.force(q), rcond=DEPENDENT)[0] if self.system.nc else np.zeros(0)

        def balance(q: Array) -> Array:
            total = self.force(q)
            if self.system.nc:
                total = total + scaled(self.system, closure(self.system, self.state(q))[1]).T @ lam
            return total

        def moved(x: Array) -> Array:
            return increment(self.system, q, DIFFERENCE * self.units * x)

        kinked = self.kink(q)
        K = np.empty((N.shape[1], N.shape[1]))
        for n, x in enumerate(N.T):
            if kinked is None:
                K[:, n] = -N.T @ (balance(moved(x)) - balance(moved(-x))) / (2.0 * DIFFERENCE)
            else:  # to the side of larger values of the variable of the table
                y = x if self.read(kinked, moved(x)) >= self.read(kinked, moved(-x)) else -x
                side = 1.0 if y is x else -1.0
                K[:, n] = -side * N.T @ (balance(moved(y)) - balance(q)) / DIFFERENCE
        return K

    def read(self, table: TableUse, q: Array) -> float:
        """Value of the variable of a table, SI."""
        return table_variable(self.system, table, self.state(q))

    def kink(self, q: Array) -> TableUse | None:
        """A table whose slope jumps at this pose, if there is one: what is linearised there holds to one side."""
        near = DIFFERENCE * float(np.max(self.units, initial=1.0))
        for table in self.system.tables:
            moves = table.of in ("position", "length") and len(table.lookup.kinks)
            if moves and np.any(np.abs(table.lookup.kinks - self.read(table, q)) <= near):
                return table
        return None

    # ------------------------------------------------------------------------------------- one equilibrium

    def settle(self, q: Array) -> Array:
        """Downhill from a pose to where nothing pushes: steps of Newton's method where the stiffness is positive.

        Elsewhere the stiffness is raised until it is. A step counts if forces do positive work along it (trapezoidal
        rule), for which no energy is needed.
        """
        longest = LONGEST
        for _ in range(STEPS):
            g, N = self.push(q)
            if not len(g) or np.abs(g).max() <= BALANCED * self.scale(q):
                return q
            K = self.stiffness(q, N)
            values, vectors = np.linalg.eigh(0.5 * (K + K.T))
            size = max(float(np.abs(values).max()), float(np.abs(g).max()))
            if values[0] > NEUTRAL * size:
                y = np.asarray(np.linalg.solve(K, g), float)
                if np.abs(y).max() < CONVERGED:
                    return q
            else:
                y = np.asarray(vectors @ ((vectors.T @ g) / np.maximum(np.abs(values), NEUTRAL * size)), float)
            moved = None
            while moved is None:
                step = y * min(1.0, longest / float(np.abs(y).max()))
                moved = self._downhill(q, N, g, step)
                if moved is None:
                    longest = 0.3 * min(longest, float(np.abs(step).max()))
                    if longest < SHORTEST:
                        if np.abs(np.linalg.lstsq(K, g, rcond=None)[0]).max() < np.sqrt(CONVERGED):
                            return q  # forces are rounding there: no step is downhill for sure
                        raise self.not_found(q)
            q = moved
            longest = min(LONGEST, 2.0 * longest)
        raise self.not_found(q)

    def _downhill(self, q: Array, N: Array, g: Array, step: Array) -> Array | None:
        there = self.close(increment(self.system, q, self.units * (N @ step)))
        if there is None:
            return None
        way = difference(self.system, q, there) / self.units
        g1, N1 = self.push(there)
        done = 0.5 * (g @ (N.T @ way) + g1 @ (N1.T @ way))
        return there if done > 0.0 else None

    def not_found(self, q: Array) -> ConvergenceError:
        g, N = self.push(q)
        x = self.units * (N @ g)
        k = int(np.argmax(np.abs(x / self.units)))
        return ConvergenceError(
            f"no equilibrium of '{self.system.name}' was found from this start: after many steps it is still pushed, "
            f"{self.pushed(q, x / x[k], self.system.speeds[k])}. Start elsewhere, search a range (search={{...}}), or "
            "change what pushes."
        )

    def pushed(self, q: Array, x: Array, label: str) -> str:
        """What pushes along a motion x in which a coordinate moves by one, in words."""
        unit = stiffness_unit(self.system, label).partition("/")[0]
        total = float(self.force(q) @ (x / self.units))
        shares = self.shares(q, x)
        least = SHOWN * max((abs(w) for _, w in shares), default=0.0)
        names = ", ".join(f"{name} {w:.4g}" for name, w in shares if abs(w) > least)
        return f"as a load on {label} by {total:.4g} {unit} ({names})"

    def shares(self, q: Array, x: Array) -> list[tuple[str, float]]:
        """Work of each force and of gravity per unit of the motion x, the largest first."""
        small = DIFFERENCE  # slow enough for friction and damping to be nothing beside the rest
        powers, _ = self._powers(q, small * x)
        names = [*self.system.forces, "user forces"]
        found = dict(zip(names, powers[: len(names)] / small, strict=False))
        heights = [energy(self.system, self.state(increment(self.system, q, s * small * x))).gravity for s in (1, -1)]
        found["gravity"] = (heights[1] - heights[0]) / (2.0 * small)
        return sorted(((n, float(w)) for n, w in found.items() if w != 0.0), key=lambda item: -abs(item[1]))

    def classified(self, q: Array, wanted: Sequence[str]) -> Equilibrium:
        """The equilibrium at a pose, with its stiffness on coordinates among which are those wanted, if they move."""
        if self.system.tolerated is not None:  # it may have been found with other rows left open
            q = self.poses.settled(project(self.system, self.state(q)).state.q)
        system = self.system
        N, _ = self.poses.motions(q)
        K = self.stiffness(q, N)
        values = np.linalg.eigvals(K)
        values = values[np.argsort(values.real)]
        least = NEUTRAL * max(self.scale(q), float(np.abs(K).max(initial=0.0)))
        conservative = bool(np.abs(K - K.T).max(initial=0.0) <= ASYMMETRY * max(np.abs(K).max(initial=0.0), least))
        if conservative:
            values = values.real
        notes = []
        stability = "unstable" if np.any(values.real < -least) else "stable"
        flat = int(np.count_nonzero(np.abs(values.real) <= least))
        if stability == "stable" and flat:
            idle = mobility(system, self.state(q)).idle
            stability = "stable" if flat == len(idle) else "neutral"
            notes += [f"{', '.join(idle)} can turn alone, which counts as nothing here"] if flat == len(idle) else []
        kinked = self.kink(q)
        if kinked is not None:
            notes.append(
                f"{kinked.element} stands at a corner of its table: stiffness and stability are those towards larger "
                f"values of {kinked.of}"
            )
        check_tables(system, [self.state(q)])
        labels, R = self._chosen(q, N, wanted)
        inverse = np.linalg.inv(R) if len(labels) else np.zeros((0, 0))
        if not len(values):
            notes.append("nothing can move")
        if not conservative:
            notes.append("forces without energy: the stiffness tells drifting away, not swinging up (flutter)")
        if any(isinstance(f, JointFriction) and f.coulomb != 0.0 for f in system.mechanism.forces.values()):
            notes.append("friction would hold it in poses around an equilibrium, too")
        for label, (low, high) in system.limits.items():
            if not low - SAME_POSE <= coordinate(system, self.state(q), label) <= high + SAME_POSE:
                notes.append(f"outside the limits of {label}, which are not stops here")
        if system.tolerated is not None:
            notes.append(said_open(largest_open([(system, self.state(q))])))
        loads = dict(zip(system.forces, self.loads(q).tolist(), strict=True))
        return Equilibrium(
            system, self.state(q), stability, labels, inverse.T @ K @ inverse, values, conservative, loads,
            "; ".join(notes),
        )  # fmt: skip

    def _chosen(self, q: Array, N: Array, wanted: Sequence[str]) -> tuple[tuple[str, ...], Array]:
        """Independent speeds, those wanted first where they can be, and their rows over the motions N."""
        from scipy.linalg import qr

        k = N.shape[1]
        if not k:
            return (), np.zeros((0, 0))
        every = self.units[:, None] * N
        if len(wanted) == k:
            R = speed_rows(self.system, self.state(q), wanted) @ every
            if np.linalg.cond(R) < 1.0 / NEUTRAL:
                return tuple(wanted), R
        order = qr(N.T, pivoting=True, mode="r")[1][:k]
        order = sorted(order.tolist())
        return tuple(self.system.speeds[n] for n in order), every[order]


def _start(system: System, start: State | None, t: float | None) -> State:
    if start is None:
        return assemble(system, q=dict(system.start[0]), t=t)
    return State(start.t if t is None else float(t), start.q, np.zeros(system.nv))


def _ranges(system: System, search: Mapping[str, Any]) -> dict[str, tuple[float, float]]:
    known = system.labels.scalars
    wrong = [label for label in search if label not in known]
    if wrong:
        raise ModelError(Problem("search", f"there is no joint coordinate '{n}'", nearest(n, known)) for n in wrong)
    if not search:
        raise LoopdynError("search names no coordinate. Give a range: search={'A': (0, 6.28)}.")
    out = {}
    for label, span in search.items():
        low, high = (float(x) for x in span)
        if not (np.isfinite([low, high]).all() and low < high):
            raise LoopdynError(f"search of '{label}' from {low:g} to {high:g}: give two ascending numbers in rad or m.")
        out[label] = (low, high)
    return out


# ------------------------------------------------------------------------------------ along the curve of poses


class _Curve:
    """All poses of a mechanism with one freedom that are reached from a start within a range of a coordinate."""

    def __init__(self, statics: _Statics, label: str, span: tuple[float, float]):
        self.statics, self.label, self.span = statics, label, span
        q = self._into_range()
        n = statics.poses.motions(q)[0][:, 0]
        if (speed_rows(statics.system, statics.state(q), [label]) @ (statics.units * n))[0] < 0.0:
            n = -n
        self.lost: list[float] = []  # values of the coordinate where the curve could not be followed further
        ahead, closed = self._march(q, n)
        behind: list[tuple[Array, Array]] = []
        if not closed:
            behind, _ = self._march(q, -n)
        # poses and directions in which the next one lies
        self.points = [(p, -x) for p, x in reversed(behind[1:])] + ahead

    def value(self, q: Array) -> float:
        """The coordinate, without jumps by whole turns for tree joints."""
        return coordinate(self.statics.system, self.statics.state(q), self.label)

    def _into_range(self) -> Array:
        low, high = self.span
        x = self.value(self.statics.start)
        if low <= x <= high:
            return self.statics.start
        s = self.statics
        nearer = low if abs(x - low) < abs(x - high) else high
        return assemble(s.system, q={self.label: nearer}, near=s.state(s.start), t=s.t).q

    def _march(self, q: Array, n: Array) -> tuple[list[tuple[Array, Array]], bool]:
        """Poses one after another until the range is left or the start is reached again."""
        low, high = self.span
        points, overlap = [(q, n)], 0
        for h, there, m in follow(self.statics.poses, q, n, ALONG, MOST):
            if not low <= self.value(there) <= high:
                share = self._at_bound(*points[-1], h)
                last = self.step(*points[-1], share * h)
                if last is not None and share > 0.0:
                    points.append(last)
                return points, False
            points.append((there, m))
            if overlap or (len(points) > FEW and self._again(there, q)):
                overlap += 1
                if overlap == OVERLAP:
                    return points, True
        self.lost.append(self.value(points[-1][0]))
        return points, False

    def singular(self) -> list[float]:
        """Values of the coordinate at singular poses on the curve: there others cross it."""
        s = self.statics
        if not s.poses.count:
            return []

        def least(q: Array) -> float:
            values = np.linalg.svd(scaled(s.system, closure(s.system, s.state(q))[1]), compute_uv=False)
            return float(values[s.poses.count - 1] / values[0])

        sizes = [least(q) for q, _ in self.points]
        found: list[float] = []
        for k in range(1, len(sizes) - 1):
            if not (sizes[k - 1] >= sizes[k] <= sizes[k + 1] and sizes[k] < CLOSE_BY):
                continue
            for n in (k - 1, k):
                (q, x), h = self.points[n], self._length(n)

                def of(share: float, q: Array = q, x: Array = x, h: float = h) -> float:
                    end = self.step(q, x, share * h)
                    return np.inf if end is None else least(end[0])

                share, size = least_between(of, 0.0, 1.0, MINIMUM)
                if min(size, sizes[k]) < SINGULAR:
                    at = self.step(q, x, share * h)
                    found.append(self.value(q if at is None else at[0]))
                    break
        return found

    def _again(self, q: Array, first: Array) -> bool:
        """Whether q is next to the first pose, but for whole turns that no force knows of."""
        s = self.statics
        turns = np.where(s.system.turning, np.round(difference(s.system, first, q) / (2.0 * np.pi)), 0.0)
        wound = increment(s.system, first, 2.0 * np.pi * turns)
        if s.system.counted:
            own = slice(s.system.nq - len(s.system.counted), None)
            wound[own] = first[own] + 2.0 * np.pi * np.round((q[own] - first[own]) / (2.0 * np.pi))
        return apart(s.system, q, first) <= 0.6 * ALONG and self._as_loaded(wound, first)

    def step(self, q: Array, n: Array, h: float) -> tuple[Array, Array] | None:
        """The pose at a distance h along n and the direction there; None if it is not near the tangent."""
        return along(self.statics.poses, q, n, h)

    def _at_bound(self, q: Array, n: Array, h: float) -> float:
        """Share of a step that ends outside at which the range is left, on its inner side."""
        low, high = self.span

        def inside(share: float) -> bool:
            end = self.step(q, n, share * h)
            return end is not None and low <= self.value(end[0]) <= high

        return last_before(inside, 0.0, 1.0, RESOLUTION)

    def roots(self, function: Callable[[Array, Array], float]) -> list[Array]:
        """Poses at which a function of pose and direction vanishes: sign changes, and touchings of zero."""
        values = np.array([function(q, n) for q, n in self.points])
        largest = float(np.abs(values).max(initial=0.0))
        found: list[Array] = []

        def between(k: int) -> Callable[[float], float]:
            q, n = self.points[k]
            h = self._length(k)

            def of(share: float) -> float:
                end = (q, n) if share == 0.0 else self.step(q, n, share * h)
                if end is None:  # not reached for steps that reached their ends
                    raise ConvergenceError(f"the curve of poses was lost at {self.label} = {self.value(q):.6g}.")
                return function(*end)

            return of

        def pose(k: int, share: float) -> Array:
            q, n = self.points[k]
            end = None if share == 0.0 else self.step(q, n, share * self._length(k))
            return q if end is None else end[0]

        for k in range(len(values) - 1):
            a, b = values[k], values[k + 1]
            if abs(a) <= BALANCED * largest:
                found.append(self.points[k][0])
            elif a * b < 0.0 and abs(b) > BALANCED * largest:
                found.append(pose(k, zero_between(between(k), 0.0, 1.0, ARGUMENT)))
            elif k > 0 and a * values[k - 1] > 0.0 and abs(values[k - 1]) >= abs(a) <= abs(b):
                found += self._touching(k, float(np.sign(a)), largest, between, pose)
        if len(values) and abs(values[-1]) <= BALANCED * largest:
            found.append(self.points[-1][0])
        distinct: list[Array] = []
        for q in found:
            if not any(apart(self.statics.system, q, p) <= SAME_POSE and self._as_loaded(q, p) for p in distinct):
                distinct.append(q)
        return distinct

    def _length(self, k: int) -> float:
        """Step from point k to the next: the component along the tangent."""
        s = self.statics
        (q, n), (p, _) = self.points[k], self.points[k + 1]
        return float(n @ (difference(s.system, q, p) / s.units))

    def _touching(
        self,
        k: int,
        sign: float,
        largest: float,
        between: Callable[[int], Callable[[float], float]],
        pose: Callable[[int, float], Array],
    ) -> list[Array]:
        """Roots next to a sample where |function| is smallest and does not change its sign: none, one or two."""
        found: list[Array] = []
        for n in (k - 1, k):
            of = between(n)

            def raised(share: float, of: Callable[[float], float] = of) -> float:
                return sign * of(share)

            share, least = least_between(raised, 0.0, 1.0, MINIMUM)
            if least < -TOUCHING * largest:
                found += [pose(n, zero_between(of, *ends, ARGUMENT)) for ends in ((0.0, share), (share, 1.0))]
            elif least <= TOUCHING * largest:
                found.append(pose(n, share))
        return found

    def _as_loaded(self, q: Array, p: Array) -> bool:
        """Whether forces are the same: a torsion spring knows how often it was wound."""
        a, b = self.statics.loads(q), self.statics.loads(p)
        return bool(np.allclose(a, b, rtol=SAME_POSE, atol=SAME_POSE * self.statics.scale(q), equal_nan=True))


def _along(statics: _Statics, label: str, span: tuple[float, float]) -> Equilibria:
    curve = _Curve(statics, label, span)
    system = statics.system
    pushes = [abs(float(n @ statics.force(q))) for q, n in curve.points]
    size = max(statics.scale(q) for q, _ in curve.points[:: max(1, len(curve.points) // 20)])
    low, high = (min(curve.value(q) for q, _ in curve.points), max(curve.value(q) for q, _ in curve.points))
    factor, unit = units_of(system, label)
    where = f"{label} from {low / factor:.6g} to {high / factor:.6g} {unit}, {len(curve.points)} poses on the way"
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
            f"'{system.name}' has no equilibrium for {where}. It is pushed least at {label} = "
            f"{curve.value(q) / factor:.6g} {unit}, {statics.pushed(q, x, moved)}. Search a wider range, or change "
            "what pushes."
        )
    return Equilibria(system, tuple(every), (label,), complete, where)


def _from_many_starts(statics: _Statics, ranges: Mapping[str, tuple[float, float]]) -> Equilibria:
    """Equilibria that Newton's method finds from starts spread over the ranges."""
    from scipy.stats.qmc import Halton

    system = statics.system
    found: list[Array] = []
    spread = Halton(len(ranges), scramble=False).random(STARTS + 1)[1:]
    for x in spread:
        given = {label: low + s * (high - low) for s, (label, (low, high)) in zip(x, ranges.items(), strict=True)}
        try:
            begin = assemble(system, q=given, near=statics.state(statics.start), t=statics.t, tries=1, limits=False)
        except LoopdynError:
            continue  # a corner of the ranges that the mechanism does not reach
        for q in (_newton(statics, begin.q), _settled(statics, begin.q)):
            if q is None or any(apart(system, q, p) < SAME_POSE for p in found):
                continue
            values = {label: coordinate(system, statics.state(q), label) for label in ranges}
            if all(low - SAME_POSE <= values[label] <= high + SAME_POSE for label, (low, high) in ranges.items()):
                found.append(q)
    if not found:
        raise ConvergenceError(
            f"no equilibrium of '{system.name}' was found in the ranges of {', '.join(ranges)}, from {STARTS} starts. "
            "Give wider ranges, or leave out search to be led downhill from the start of the model."
        )
    wanted = tuple(ranges)
    every = [statics.classified(q, wanted) for q in found]
    every.sort(key=lambda e: tuple(round(e[label], 9) for label in wanted))
    note = f"from {STARTS} starts in the range of {', '.join(wanted)}; there may be more"
    return Equilibria(system, tuple(every), wanted, False, note)


def _newton(statics: _Statics, q: Array) -> Array | None:
    """Newton's method for g = 0, stable or not."""
    scale = 0.0  # the largest on the way: where springs are relaxed and nothing weighs, none is left at the end
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


def _settled(statics: _Statics, q: Array) -> Array | None:
    try:
        return statics.settle(q)
    except ConvergenceError:
        return None
