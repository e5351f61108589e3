"""Forces on a mechanism at rest, along the motions that its constraints allow.

With N a basis of these motions (J N = 0) and f the forces at rest, g = N^T f is the reduced force, and the reduced
stiffness is the change of -g along N. With multipliers lam for which f + J^T lam vanishes along N's complement,
K = -N^T d(f + J^T lam)/dq N, to first order exact also off the manifold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from loopdyn.analysis.assembly_speeds import speed_rows
from loopdyn.analysis.contradictions import largest_open, said_open
from loopdyn.analysis.mobility import mobility
from loopdyn.analysis.pose_curve import PoseCurve
from loopdyn.engine import records as rec
from loopdyn.errors import ConvergenceError, LoopdynError
from loopdyn.loops.continuation import PREDICTED, close
from loopdyn.loops.one_sided import closed_sides
from loopdyn.loops.projection import project
from loopdyn.loops.rank import decide, scaled
from loopdyn.results.equilibrium import Equilibrium, declared_stiffness
from loopdyn.results.units import dimensions, shown
from loopdyn.system.labels import FORCE_OF
from loopdyn.system.system import State, System, TableUse
from loopdyn.thresholds import DEPENDENT, SAME_POSE
from loopdyn.tree import power
from loopdyn.tree.functions import (
    add_user_forces,
    body_motion,
    constraint_equations,
    difference,
    energy,
    increment,
    open_tree_inverse_dynamics,
    terms,
)
from loopdyn.tree.joint_readings import coordinate
from loopdyn.tree.tables import check_tables, table_variable

Array = NDArray[np.float64]

# Natural units; forces in N m, or N times the mechanism's size.
DIFFERENCE = 1e-5  # step of central differences of forces: errors of 1e-10 by truncation and by rounding
CONVERGED = 1e-11  # Newton step that is rounding
BALANCED = 1e-13  # fraction of the loads at a pose that is rounding
STEPS = 300  # most steps to an equilibrium
LONGEST = 0.4  # largest such step
SHORTEST = 1e-9  # smallest such step
NEUTRAL = 1e-7  # fraction of the loads and stiffnesses at a pose below which an eigenvalue counts as zero
ASYMMETRY = 1e-6  # fraction of the largest stiffness by which that of conservative forces may be unsymmetric
SHOWN = 1e-6  # fraction of the largest contribution from which a force is named
STATIC = 1e-12  # speeds, natural units per s, that are rounding


# ---------------------------------------------------------------------------------------------- a pose at rest


class Statics:
    """Forces along the motions of a mechanism at rest, at one time."""

    def __init__(self, system: System, start: State):
        self.poses = PoseCurve(system, start.t, 0)
        self.t = start.t
        self.units, self.rows = system.speed_units, system.row_units
        self.still = np.zeros(system.nv)
        self.levers = np.array([1.0 if d == "torque" else system.size for d in dimensions(system, "load")])
        self._require_static(start)
        rank = decide(system, State(start.t, start.q, self.still))
        self.poses.count, self.freedoms = rank.count, system.nv - rank.count
        closed = rank.state or start
        self.start = np.array(closed.q)
        if np.abs(constraint_equations(system, self.state(self.start))[0] / self.rows).max(initial=0.0) > SAME_POSE:
            raise LoopdynError("the loops are open at the start. Close them first: ld.assemble(system, ...).")

    @property
    def system(self) -> System:
        """System that is closed at the last pose."""
        return self.poses.system

    def state(self, q: Array) -> State:
        """State at rest."""
        return self.poses.state(q)

    def _require_static(self, start: State) -> None:
        """Raise if the mechanism cannot be at rest: moving bases, drivers with a speed or an acceleration."""
        system = self.system
        moving = body_motion(system, self.state(start.q))
        for k in range(system.n_bases):
            rates = (moving.velocity, moving.angular_velocity, moving.acceleration, moving.angular_acceleration)
            if max(float(np.abs(x[k]).max()) for x in rates) > STATIC:
                raise LoopdynError(
                    f"'{system.name}' has no static equilibrium at t = {self.t:g} s: its base '{system.bodies[k]}' "
                    "moves. Choose a time at which it is at rest, or simulate: ld.simulate(...)."
                )
        now = terms(system, self.state(start.q))
        for level, values in (("moves", now.phi_t), ("accelerates", now.gamma)):
            rate = np.abs(values / self.rows)
            if rate.max(initial=0.0) > STATIC:
                row = system.row_elements[int(np.argmax(rate))]
                kind = "driver" if row in system.mechanism.drivers else "constraint"
                raise LoopdynError(
                    f"'{system.name}' has no static equilibrium at t = {self.t:g} s: {kind} '{row}' {level} it "
                    "(a governor at speed, for example, depends on inertia forces). Choose a time at which it is at "
                    "rest, make its motion a constant, or find a steady motion by ld.simulate with damping."
                )

    def close(self, q: Array) -> Array | None:
        """Closed pose next to q, or None."""
        found = close(self.poses, q, PREDICTED)
        return self.poses.settled(found.y) if found.closed else None

    def force(self, q: Array) -> Array:
        """Forces on the speeds at rest, in natural units."""
        return -self.units * open_tree_inverse_dynamics(self.system, self.still, self.state(q))

    def push(self, q: Array) -> tuple[Array, Array]:
        """Reduced force g = N^T f, and N."""
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
        add_user_forces(system, self.t, q, v, w.tau)
        powers, loads = np.zeros(len(system.forces) + power.N_OTHERS), np.zeros(len(system.forces))
        power.power_of_forces(system.ints, system.floats, work, False, powers, loads)
        return powers, loads

    def scale(self, q: Array) -> float:
        """Size of weight and loads, in natural units."""
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
                total = total + scaled(self.system, constraint_equations(self.system, self.state(q))[1]).T @ lam
            return total

        def moved(x: Array) -> Array:
            return increment(self.system, q, DIFFERENCE * self.units * x)

        kinked = self.kink(q)
        K = np.empty((N.shape[1], N.shape[1]))
        for n, x in enumerate(N.T):
            if kinked is None:
                K[:, n] = -N.T @ (balance(moved(x)) - balance(moved(-x))) / (2.0 * DIFFERENCE)
            else:  # towards larger values of the variable of the table
                y = x if self.read(kinked, moved(x)) >= self.read(kinked, moved(-x)) else -x
                side = 1.0 if y is x else -1.0
                K[:, n] = -side * N.T @ (balance(moved(y)) - balance(q)) / DIFFERENCE
        return K

    def read(self, table: TableUse, q: Array) -> float:
        """Value of the variable of a table, SI."""
        return table_variable(self.system, table, self.state(q))

    def kink(self, q: Array) -> TableUse | None:
        """Table whose slope jumps at this pose, if any: a linearization there holds to one side only."""
        near = DIFFERENCE * float(np.max(self.units, initial=1.0))
        for table in self.system.tables:
            moves = table.of in ("position", "length") or table.lookup.entry is not None
            if moves and len(table.lookup.kinks) and np.any(np.abs(table.lookup.kinks - self.read(table, q)) <= near):
                return table
        return None

    # ------------------------------------------------------------------------------------- one equilibrium

    def settle(self, q: Array) -> Array:
        """Follow the reduced force from a pose to an equilibrium: Newton steps where the stiffness is positive.

        Elsewhere the stiffness is raised until it is. A step is accepted if forces do positive work along it
        (trapezoidal rule), which needs no potential.
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
                            return q  # forces are rounding there: the sign of their work is uncertain
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
        """Error for a search that ended at a pose out of equilibrium."""
        g, N = self.push(q)
        x = self.units * (N @ g)
        k = int(np.argmax(np.abs(x / self.units)))
        return ConvergenceError(
            f"no equilibrium of '{self.system.name}' was found from this start: after many steps a force remains, "
            f"{self.pushed(q, x / x[k], self.system.speeds[k])}. Start elsewhere, search a range (search={{...}}), or "
            "change the forces."
        )

    def pushed(self, q: Array, x: Array, label: str) -> str:
        """Forces along a motion x in which a coordinate moves by one, in words."""
        dimension, units = FORCE_OF[self.system.labels.speeds[label].dimension], self.system.units
        unit, one = units.symbol(dimension), units.factor(dimension)
        total = float(self.force(q) @ (x / self.units)) / one
        shares = self.shares(q, x)
        least = SHOWN * max((abs(w) for _, w in shares), default=0.0)
        names = ", ".join(f"{name} {w / one:.4g}" for name, w in shares if abs(w) > least)
        return f"as a load on {label} by {total:.4g} {unit} ({names})"

    def shares(self, q: Array, x: Array) -> list[tuple[str, float]]:
        """Work of each force and of gravity per unit of the motion x, the largest first."""
        small = DIFFERENCE  # slow enough for friction and damping to be negligible
        powers, _ = self._powers(q, small * x)
        names = [*self.system.forces, "user forces"]
        found = dict(zip(names, powers[: len(names)] / small, strict=False))
        heights = [energy(self.system, self.state(increment(self.system, q, s * small * x))).gravity for s in (1, -1)]
        found["gravity"] = (heights[1] - heights[0]) / (2.0 * small)
        return sorted(((n, float(w)) for n, w in found.items() if w != 0.0), key=lambda item: -abs(item[1]))

    def classified(self, q: Array, wanted: Sequence[str]) -> Equilibrium:
        """Equilibrium at a pose, with its stiffness for coordinates that include those wanted, if they can move."""
        if self.system.tolerated is not None:  # the pose may have been found with other rows left open
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
            notes += [f"{', '.join(idle)} can turn alone, which is ignored here"] if flat == len(idle) else []
        kinked = self.kink(q)
        if kinked is not None:
            notes.append(
                f"{kinked.element} is at a corner of its table: stiffness and stability are those towards larger "
                f"values of {kinked.of}"
            )
        check_tables(system, [self.state(q)])
        labels, R = self._chosen(q, N, wanted)
        inverse = np.linalg.inv(R) if len(labels) else np.zeros((0, 0))
        if not len(values):
            notes.append("nothing can move")
        if not conservative:
            notes.append("forces without a potential: the stiffness shows divergence, but not flutter")
        if any(f.sticks() for f in system.mechanism.forces.values()):
            notes.append("friction can also hold it at poses around an equilibrium")
        for label, (low, high) in system.limits.items():
            if not low - SAME_POSE <= coordinate(system, self.state(q), label) <= high + SAME_POSE:
                notes.append(f"outside the limits of {label}, which do not act here")
        closed = closed_sides(system, [self.state(q)])
        if closed:
            notes.append(f"closed contacts do not act here: {', '.join(closed)}")
        if system.tolerated is not None:
            notes.append(said_open(system, largest_open([(system, self.state(q))])))
        declared = shown(system, self.loads(q), dimensions(system, "load"))
        loads = dict(zip(system.forces, declared.tolist(), strict=True))
        state = replace(self.state(q), system=system)
        stiffness = declared_stiffness(system, labels, inverse.T @ K @ inverse)
        return Equilibrium(system, state, stability, labels, stiffness, values, conservative, loads, "; ".join(notes))

    def _chosen(self, q: Array, N: Array, wanted: Sequence[str]) -> tuple[tuple[str, ...], Array]:
        """Independent speeds, the wanted ones first if possible, and their rows over the motions N."""
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
