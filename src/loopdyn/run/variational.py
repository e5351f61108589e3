"""Forward variational equations along a run: the motion and its changes by parameters, integrated together.

With x = (q, v) and S = dx/dp the equations x' = f(t, x, p) are differentiated, S' = f_x S + f_p: accelerations by
:class:`loopdyn.analysis.variations.Local`, with loops kept closed to first order after every step. Coordinates are
those of the tree, whatever coordinates a method of the run takes as independent, so that a switch of these
changes nothing.

At an event g(t, x, p) = 0 that takes the state x to R(t, x, p),

    dt = -(g_p + g_x S) / (g_t + g_x f)                     change of its time
    S+ = R_p + R_x (S + f dt) + R_t dt - f+ dt               saltation

and at a breakpoint of a law, whose time may depend on the parameters, R is the identity.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from loopdyn.analysis.derivatives import DIFFERENCE, five_points
from loopdyn.analysis.pose_changes import Changes
from loopdyn.analysis.variations import ALONG_FLOATS, Family, Local
from loopdyn.errors import LoopdynError, SingularityError
from loopdyn.integrators.runge_kutta import dop853
from loopdyn.loops.continuation import largest
from loopdyn.loops.projection import correct
from loopdyn.system.system import State, System
from loopdyn.thresholds import CANDIDATE
from loopdyn.tree import kinematics

Array = NDArray[np.float64]

COMPLEX = 1e-20  # imaginary step to the rates of coordinates
SAFETY, GROW, SHRINK = 0.9, 5.0, 0.2  # of the size of the next step
MOST_STEPS = 100_000
SHORTEST = 1e-12  # fraction of the span: a shorter step means that the motion is not smooth
FIRST = 1e-3  # fraction of the span of the first step after a restart
# Tolerance of the error of changes over that of the motion: differences along the floats have errors of 1e-10, which
# inertias that are small against others enlarge, and which shorter steps do not make smaller.
COARSER = 50.0
GRAZING = 1e-4  # fraction of the usual rate of an event function: slower crossings graze, and rounding decides on them


def rates(system: System, q: Array, v: Array) -> Array:
    """Rates (nq,) of the coordinates; zero for counted angles, which follow from the pose."""
    moved = np.empty(system.nq, complex)
    kinematics.plus(system.ints, system.floats, q.astype(complex), 1j * COMPLEX * v, moved)
    found: Array = moved.imag / COMPLEX
    found[system.nq - len(system.counted) :] = 0.0
    return found


@dataclass(frozen=True)
class ChangedState:
    """A state of the pass with its equations and changes: raw coordinates dq (p, nq), dv and da (p, nv)."""

    t: float
    q: Array
    v: Array
    local: Local
    dq: Array
    dv: Array
    da: Array

    @property
    def state(self) -> State:
        """State of the motion."""
        return State(self.t, self.q, self.v)


@dataclass
class Stages:
    """Stages of a pass with weights of their quadrature and changes by each parameter, and the ends of its steps.

    Stages are of low order each: only their weighted sum is exact to the tolerance.
    """

    nodes: list[ChangedState] = field(default_factory=list)
    states: list[State] = field(default_factory=list)
    a: list[Array] = field(default_factory=list)
    weights: list[float] = field(default_factory=list)
    changes: list[tuple[Changes, ...]] = field(default_factory=list)

    def add(self, state: State, a: Array, weight: float, changes: tuple[Changes, ...]) -> None:
        """Add a state."""
        self.states.append(state)
        self.a.append(a)
        self.weights.append(weight)
        self.changes.append(changes)


class Pass:
    """Integration of a motion with its changes between two discontinuities.

    Parameters
    ----------
    family : Family
    count : int
        Number of independent rows.
    rtol : float
    """

    def __init__(self, family: Family, count: int, rtol: float):
        self.family, self.system, self.count, self.rtol = family, family.system, count, rtol
        self.names = family.parameters
        s = self.system
        self.scalar = s.nq - len(s.counted) == s.nv and all(
            j.spec.is_scalar() for j in s.joints.values() if j.in_tree and j.spec.speeds
        )
        self.fastest = 0.0
        none = np.zeros(len(self.names))
        # times of the last and the next breakpoint of a law, with their changes: between them laws are smooth
        self.smooth: tuple[tuple[float, Array], tuple[float, Array]] = (-np.inf, none), (np.inf, none)
        self.size: float | None = None
        self.steps = 0
        units = [abs(family.values[name]) or 1.0 for name in self.names]
        self.floats = list(zip([family.floats[name] for name in self.names], units, strict=True))

    def of(self, family: Family, count: int) -> Pass:
        """Pass that continues this one with other constraints on the same tree."""
        found = Pass(family, count, self.rtol)
        found.fastest, found.smooth = self.fastest, self.smooth
        return found

    # ------------------------------------------------------------------------------------------ coordinates

    def rate(self, q: Array, v: Array) -> Array:
        """Rates of the coordinates."""
        if self.scalar:
            return np.concatenate([v, np.zeros(self.system.nq - self.system.nv)])
        return rates(self.system, q, v)

    def raw(self, q: Array, xi: Array) -> Array:
        """Change of the coordinates for increments."""
        return self.rate(q, xi)

    def increments(self, q: Array, dq: Array) -> Array:
        """Increments (nv,) for a change of the coordinates."""
        if self.scalar:
            return dq[: self.system.nv]
        G = np.array([rates(self.system, q, e) for e in np.eye(self.system.nv)]).T
        found: Array = np.linalg.lstsq(G, dq, rcond=None)[0]
        return found

    def changed_rate(self, q: Array, v: Array, dq: Array, dv: Array) -> Array:
        """Derivative of the rates of the coordinates; they are polynomials of at most third degree."""
        if self.scalar:
            return self.rate(q, dv)
        size = max(largest(dq), largest(dv), 1e-300)
        found: Array = five_points(lambda x: rates(self.system, q + x * dq, v + x * dv), DIFFERENCE / size)
        return found

    # ----------------------------------------------------------------------------------------------- nodes

    def node(self, t: float, q: Array, v: Array, dq: Array, dv: Array, correcting: bool = False) -> ChangedState:
        """Equations at a state, and the changes of the accelerations; `correcting` closes the changes first."""
        local = Local(self.system, State(t, q, v), self.count)
        if local.margin < CANDIDATE:
            raise SingularityError(
                f"'{self.system.name}' is in a singular pose at t = {t:g} s, where its motion is no smooth function of "
                "the parameters. End the run earlier, or start it elsewhere."
            )
        da = np.zeros_like(dv)
        zero = np.zeros(self.system.nv)
        for k, (floats, unit) in enumerate(self.floats):
            side = self._side(k, t, unit)
            xi = self.increments(q, dq[k])
            if correcting and self.system.nc:
                gap = local.changed(xi, zero, 0.0, floats, unit, side).phi
                xi = xi - local.smallest_for(np.where(self.system.holonomic, gap, 0.0))
                dq[k] = self.raw(q, xi)
                dv[k] = dv[k] - local.smallest_for(local.changed(xi, dv[k], 0.0, floats, unit, side).rate)
            moved = local.changed(xi, dv[k], 0.0, floats, unit, side)
            da[k] = local.solve(moved.balance[:, None], moved.bias[:, None])[0][:, 0]
        return ChangedState(t, q, v, local, dq, dv, da)

    def _side(self, k: int, t: float, unit: float) -> int:
        """Side to which a parameter may change without moving a breakpoint of a law across the time t; 0: both."""
        (first, before), (last, behind) = self.smooth
        h = 2.0 * ALONG_FLOATS * unit
        allowed = [
            side for side in (1, -1) if first + side * h * before[k] <= t <= last + side * h * behind[k]
        ]  # fmt: skip
        if not allowed:
            raise LoopdynError(
                f"two breakpoints of a law of '{self.system.name}' are too close for a derivative by "
                f"'{self.names[k]}', at t = {t:g} s. Make the law smoother."
            )
        return 0 if len(allowed) == 2 else allowed[0]

    def changes(self, node: ChangedState, dt: Array | None = None) -> tuple[Changes, ...]:
        """Changes at a fixed time, or total ones at a time that changes by dt (p,)."""
        found = [
            Changes(self.increments(node.q, dq), dv, da) for dq, dv, da in zip(node.dq, node.dv, node.da, strict=True)
        ]
        if dt is None:
            return tuple(found)
        flow, a = node.v, node.local.a
        return tuple(Changes(c.xi + flow * x, c.dv + a * x, c.da, float(x)) for c, x in zip(found, dt, strict=True))

    # ----------------------------------------------------------------------------------------------- steps

    def integrate(self, node: ChangedState, end: float, record: Stages | None = None) -> ChangedState:
        """Integrate to a later time."""
        span = end - node.t
        while node.t < end:
            h = min(self.size or FIRST * span, end - node.t)
            if end - node.t - h < 1e-3 * h:
                h = end - node.t
            new, error, stages = self.step(node, h)
            self.steps += 1
            if self.steps > MOST_STEPS or h < SHORTEST * span:
                raise LoopdynError(
                    f"the changes of the motion of '{self.system.name}' cannot be followed beyond t = {node.t:g} s: "
                    "the steps become too short, since laws jump there or the equations are stiff. End the run earlier."
                )
            factor = GROW if error == 0.0 else min(GROW, max(SHRINK, SAFETY * error ** (-1.0 / 8.0)))
            if error > 1.0:
                self.size = h * min(factor, 0.9)
                continue
            if record is not None:
                for stage, weight in stages:
                    record.add(stage.state, stage.local.a, h * weight, self.changes(stage))
            last = node.t + h >= end
            self.size = h * factor if not last else max(h * factor, self.size or 0.0)
            node = self.accepted(end if last else node.t + h, *new)
            if record is not None:
                record.nodes.append(node)
        return node

    def accepted(self, t: float, q: Array, v: Array, dq: Array, dv: Array) -> ChangedState:
        """State at the end of a step, loops closed."""
        if self.system.nc:
            q, v = correct(self.system, t, q, v, self.count)
        node = self.node(t, q, v, dq, dv, correcting=True)
        units = self.system.speed_units
        self.fastest = max(self.fastest, largest(v / units))
        return node

    def step(self, node: ChangedState, h: float) -> tuple[tuple[Array, ...], float, list[tuple[ChangedState, float]]]:
        """State and changes after a step, its error relative to the tolerance, and its stages with their weights."""
        method, stages = dop853(), [node]
        slopes = [self._slopes(node)]
        y = (node.q, node.v, node.dq, node.dv)
        for i in range(1, len(method.c)):
            q, v, dq, dv = (x + h * _weighted(method.a[i, :i], [k[n] for k in slopes]) for n, x in enumerate(y))
            stages.append(self.node(node.t + h * float(method.c[i]), q, v, dq, dv))
            slopes.append(self._slopes(stages[-1]))
        new = tuple(x + h * _weighted(method.b, [k[n] for k in slopes]) for n, x in enumerate(y))
        both = [[h * _weighted(e, [k[n] for k in slopes]) for n in range(4)] for e in method.e]
        high, low = (self._size(y, new, errors) for errors in both)
        norm = float(np.sqrt(high * high + 0.01 * low * low))
        error = high * high / norm if norm > 0.0 else 0.0
        return new, error, [(s, float(b)) for s, b in zip(stages, method.b, strict=True)]

    def _slopes(self, node: ChangedState) -> tuple[Array, ...]:
        q, v = node.q, node.v
        dq = np.array([self.changed_rate(q, v, x, dx) for x, dx in zip(node.dq, node.dv, strict=True)])
        return self.rate(q, v), node.local.a, dq.reshape(node.dq.shape), node.da

    def _size(self, y: tuple[Array, ...], new: tuple[Array, ...], errors: list[Array]) -> float:
        """Largest error: of positions in natural units, of speeds and changes relative to the largest ones."""
        nv, units = self.system.nv, self.system.speed_units
        speed = max(self.fastest, largest(new[1] / units), 1e-300)
        found = max(largest(errors[0]) / max(float(np.min(units, initial=1.0)), 1e-300) if not self.scalar
                    else largest(errors[0][:nv] / units), largest(errors[1] / units) / speed)  # fmt: skip
        for k in range(len(self.names)):
            span = [
                max(largest(np.abs(x[k])), largest(np.abs(z[k])), 1e-30) for x, z in zip(y[2:], new[2:], strict=True)
            ]
            unit = 1.0 / self.floats[k][1]  # a change of the size of the state, per size of the parameter
            moved = largest(errors[2][k]) / max(span[0], 0.1 * unit)
            found = max(found, moved / COARSER, largest(errors[3][k]) / max(span[1], 0.1 * unit * speed) / COARSER)
        return found / self.rtol

    # ---------------------------------------------------------------------------------------------- events

    def along(self, f: Callable[[State], Array], node: ChangedState, dq: Array, dv: Array, dt: float) -> Array:
        """Derivative of a function of the state along a change of it, by five-point differences."""
        size = max(largest(dq), largest(dv / self.system.speed_units), abs(dt))
        if size == 0.0:
            return np.zeros_like(f(node.state))
        found: Array = five_points(
            lambda x: f(State(node.t + x * dt, node.q + x * dq, node.v + x * dv)), DIFFERENCE / size
        )
        return found

    def time_changes(
        self, node: ChangedState, g: Callable[[State], float], by: Mapping[str, float], name: str
    ) -> Array:
        """Changes (p,) of the time at which g vanishes; `by` are its derivatives by the parameters themselves."""

        def f(state: State) -> Array:
            return np.array([g(state)])

        flow, a = self.rate(node.q, node.v), node.local.a
        total = float(self.along(f, node, flow, a, 1.0)[0])
        units = self.system.speed_units
        still = np.zeros(self.system.nv)
        size = 0.0
        for k, unit in enumerate(units):
            e = np.eye(self.system.nv)[k] * unit
            size = max(size, abs(float(self.along(f, node, self.raw(node.q, e), still, 0.0)[0])) * self.fastest)
            rate = float(self.along(f, node, np.zeros_like(node.q), e, 0.0)[0])
            size = max(size, abs(rate) * largest(a / units))
        if abs(total) <= GRAZING * size:
            raise LoopdynError(
                f"'{name}' only grazes at t = {node.t:g} s: its function touches zero with a rate of nearly zero, so "
                "that the event has no derivative there. Change the start or the event."
            )
        return np.array(
            [
                -(by[p] + float(self.along(f, node, dq, dv, 0.0)[0])) / total
                for p, dq, dv in zip(self.names, node.dq, node.dv, strict=True)
            ]
        )

    def after(
        self,
        node: ChangedState,
        dt: Array,
        reset: Callable[[State], State] | None,
        by: Mapping[str, tuple[Array, Array]] | None,
        t: float,
    ) -> ChangedState:
        """State behind an event whose time changes by dt (p,); `by` are derivatives of the reset by the parameters."""
        flow, a = self.rate(node.q, node.v), node.local.a
        new = node.state if reset is None else reset(node.state)
        dq, dv = np.array(node.dq), np.array(node.dv)
        for k, name in enumerate(self.names):
            change = node.dq[k] + flow * dt[k], node.dv[k] + a * dt[k]
            if reset is not None and by is not None:
                moved_q = self.along(lambda s: reset(s).q, node, *change, float(dt[k]))
                moved_v = self.along(lambda s: reset(s).v, node, *change, float(dt[k]))
                change = by[name][0] + moved_q, by[name][1] + moved_v
            dq[k], dv[k] = change
        behind = Local(self.system, State(t, new.q, new.v), self.count)
        dq -= self.rate(new.q, new.v) * dt[:, None]
        dv -= behind.a * dt[:, None]
        self.size = None
        return self.node(t, np.array(new.q), np.array(new.v), dq, dv, correcting=True)


def _weighted(weights: Array, values: list[Array]) -> Array:
    return np.tensordot(weights, np.array(values[: len(weights)]), axes=(0, 0))


__all__ = ["ChangedState", "Pass", "Stages", "rates"]
