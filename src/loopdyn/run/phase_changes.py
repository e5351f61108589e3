"""Changes of a motion by parameters where constraints change: a joint locked, a constraint released or added.

The bodies keep their poses, and the speeds jump to the nearest ones that the new rows allow
(:mod:`loopdyn.analysis.reconnect`), with impulses P:

    M (v+ - v) = J^T P,     J v+ = -phi_t

With total changes d at the event, whose time moves with the parameter,

    M d(v+ - v) - J^T dP = -(dM (v+ - v) - dJ^T P)
    J d(v+ - v)          = -d(J v+ + phi_t) - J dv        the first term with v+ held

A lock holds the value that its coordinate has at the event: its row moves by the total change of that value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from loopdyn.analysis.variations import AGREEING, Family, Local
from loopdyn.errors import LoopdynError
from loopdyn.loops.continuation import largest
from loopdyn.loops.rank import decide, require_inertia, require_regular
from loopdyn.run.locking import Add, Lock, Phase, Release, change, compiled
from loopdyn.run.variational import ChangedState, Pass
from loopdyn.system.system import State, System
from loopdyn.tree.joint_readings import coordinate

Array = NDArray[np.float64]


class PhaseFamily(Family):
    """System of a phase of a run, and its neighbours with other values of some parameters.

    Parameters
    ----------
    base : Family
        Of the first phase.
    phase : Phase
    locks : mapping
        Derivatives (p,) of the values of locked coordinates.
    """

    def __init__(self, base: Family, phase: Phase, locks: Mapping[str, Array]):
        super().__init__(phase.system, base.parameters)
        self.base, self.phase, self.locks = base, phase, dict(locks)

    def varied(self, name: str, x: float) -> System:
        """System of the phase with a parameter larger by x, coordinates locked where they then are."""
        of, k = self.base.varied(name, x), self.parameters.index(name)
        values = {label: value + x * float(self.locks[label][k]) for label, value in self.phase.locks.items()}
        made = compiled(of, replace(self.phase, locks=values)).system
        if not np.array_equal(made.ints, self.system.ints):
            raise LoopdynError(
                f"the structure of '{self.system.name}' behind a change of constraints changes with its parameter "
                f"'{name}', so there is no derivative by it. Choose another value."
            )
        return made


def change_phase(
    passing: Pass, base: Family, phase: Phase, last: ChangedState, dt: Array, action: Lock | Release | Add, t: float
) -> tuple[Pass, Phase, ChangedState]:
    """Pass, phase and state behind an event that changes constraints and whose time changes by dt (p,)."""
    flow, a = passing.rate(last.q, last.v), last.local.a
    dq, dv = last.dq + flow * dt[:, None], last.dv + a * dt[:, None]
    following, jump = change(base.system, phase, last.state, action, first=0)
    locks = dict(passing.family.locks) if isinstance(passing.family, PhaseFamily) else {}
    if isinstance(action, Lock):
        locks[action.joint] = _value_changes(passing, last, action.joint, dq, dv, dt)
    family = PhaseFamily(base, following, {label: locks[label] for label in following.locks})
    behind = State(t, last.q, jump.state.v)
    rank = decide(following.system, behind)
    require_regular(following.system, rank)
    require_inertia(following.system, behind, rank)
    entered = passing.of(family, rank.count)
    dv = _behind_jump(entered, last, behind, (dq, dv, dt), action)
    now = Local(following.system, behind, rank.count)
    dq, dv = dq - entered.rate(behind.q, behind.v) * dt[:, None], dv - now.a * dt[:, None]
    node = entered.node(t, np.array(behind.q), np.array(behind.v), dq, dv, correcting=True)
    return entered, following, node


def _value_changes(passing: Pass, last: ChangedState, label: str, dq: Array, dv: Array, dt: Array) -> Array:
    """Total derivatives (p,) of a coordinate at an event, SI."""
    family = passing.family

    def at(system: System, state: State) -> float:
        return coordinate(system, state, label, "ld.events.Lock")

    own = family.by_parameter(lambda s: at(s, last.state))  # of cut joints, which the pose of the tree decides
    return np.array([
        own[name] + float(passing.along(lambda s: np.array([at(family.system, s)]), last, *moved)[0])
        for name, *moved in zip(family.parameters, dq, dv, dt.tolist(), strict=True)
    ])  # fmt: skip


def _behind_jump(
    entered: Pass, last: ChangedState, behind: State, total: tuple[Array, Array, Array], action: Lock | Release | Add
) -> Array:
    """Total changes (p, nv) of the speeds behind the jump, for those of coordinates, speeds and time before it."""
    s, family = entered.system, entered.family
    state, zero = State(last.t, behind.q, behind.v), np.zeros(s.nv)
    # by linearity the difference of both has the momentum of the jump and its impulses, and no other loads
    jump, none = (Local(s, state, entered.count, x) for x in (behind.v - last.v, zero))
    found = []
    for name, dq, dv, dt in zip(family.parameters, *total, strict=True):
        moved = entered.increments(behind.q, dq), zero, float(dt), family.floats[name], abs(family.values[name]) or 1.0
        with_jump, without = jump.changed(*moved), none.changed(*moved)
        gap = np.where(s.holonomic, with_jump.phi, 0.0) / s.row_units
        if largest(gap) > AGREEING * max(largest(moved[0] / s.speed_units), 1.0 / moved[4]):
            what = action.joint if isinstance(action, Lock) else action.name
            raise LoopdynError(
                f"with another value of '{name}' the poses at t = {last.t:g} s do not satisfy the constraints that "
                f"hold from then on ('{what}'), so there is no derivative. Let the event happen where they do."
            )
        balance = with_jump.balance - without.balance
        bias = with_jump.rate + jump.terms.J @ dv
        found.append(dv + jump.solve(balance[:, None], bias[:, None])[0][:, 0])
    return np.array(found).reshape(len(family.parameters), s.nv)


__all__ = ["PhaseFamily", "change_phase"]
