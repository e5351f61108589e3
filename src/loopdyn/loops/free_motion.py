"""Motion of a mechanism without its contacts at a state: accelerations, and what impulses do to the speeds.

Small systems use a basis N of the motions that the constraint rows allow, by dense matrices. Large ones use the sparse
elimination of `graph`: the response to an impulse is the change of the accelerations under an additional load, two
evaluations for each impulse, so that nothing grows faster than the number of bodies.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from loopdyn.engine.jit import kernel
from loopdyn.engine.records import (
    C_CHILD,
    C_PARENT,
    C_ROW,
    C_ROWS,
    E_CUT,
    E_FREEDOM,
    L_COUNT,
    L_FIRST,
    L_ROW,
    M_POINT,
    open_model,
    open_work,
)
from loopdyn.errors import SingularityError
from loopdyn.forces.loading import body_point
from loopdyn.loops.elimination.passes import accelerate
from loopdyn.loops.elimination.solver import Elimination
from loopdyn.loops.rank import decide
from loopdyn.loops.sparse_steps import takes_sparse_steps
from loopdyn.spatial.plucker import get3, neg, scale
from loopdyn.system.system import State, System
from loopdyn.tree.functions import add_user_forces, energy, open_tree_forward_dynamics, require_rows, terms
from loopdyn.tree.jacobian import add_power, freedom_of_cut, residuals
from loopdyn.tree.massless_motions import motions_without_inertia
from loopdyn.tree.user_rows import user_rows

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

# Part of a row, natural units, that the loops leave movable, below which the loops alone hold it.
HELD = 1e-9
# The same by the response of the speeds, relative to that without constraints, both as squares: of large systems. It is
# a difference, whose rounding is some 1e-14.
HELD_BY_RESPONSE = 1e-12
LARGE = 1e3  # times the other accelerations: a load whose response loses no digits in the difference


class FreeMotion:
    """Motion of a system at a state without contacts.

    Attributes
    ----------
    a : (nv,) array
        Accelerations.
    twice_kinetic : float
        Twice the kinetic energy of the motions that constraints do not give, J; of large systems that of all motions.
    pushed : float
        Size of the accelerations in the metric of kinetic energy.
    """

    a: Array
    twice_kinetic: float
    pushed: float

    def respond(self, rows: Array) -> Array:
        """Speeds (nv, n) after unit impulses along rows (n, nv)."""
        raise NotImplementedError

    def movable(self, rows: Array, response: Array) -> NDArray[np.bool_]:
        """Flags of the rows that the constraints alone do not hold; `response` is that of :meth:`respond`."""
        raise NotImplementedError


def free_motion(system: System, state: State) -> FreeMotion:
    """Motion of a system at a state without contacts, by sparse elimination if the system is large."""
    sparse = takes_sparse_steps(system) and not system.mechanism.user_constraints
    return _Sparse(system, state) if sparse else _Dense(system, state)


class _Dense(FreeMotion):
    """By a basis N of the motions that the constraint rows allow."""

    def __init__(self, system: System, state: State):
        now, rank = terms(system, state), decide(system, state).count
        D, rows = system.speed_units, system.row_units
        U, sigma, Vt = np.linalg.svd((now.J * D) / rows[:, None], full_matrices=True)
        N = D[:, None] * Vt[rank:].T
        if motions_without_inertia(now.M * np.outer(D, D), Vt[rank:].T).size:
            raise SingularityError(
                f"'{system.name}' has a motion without inertia, whose accelerations no contact determines. Give the "
                "bodies that can move freely mass or inertia."
            )
        inertia = N.T @ now.M @ N
        a = D * (Vt[:rank].T @ ((U[:, :rank].T @ (now.gamma / rows)) / sigma[:rank]))
        self.a = a + N @ np.linalg.solve(inertia, N.T @ (now.h - now.M @ a))
        self.N, self.inertia, self._units = N, inertia, D
        moved = N.T @ now.M @ state.v
        self.twice_kinetic = float(moved @ np.linalg.solve(inertia, moved))
        self.pushed = float(np.sqrt(max(float(self.a @ now.M @ self.a), 0.0)))

    def respond(self, rows: Array) -> Array:
        found: Array = self.N @ np.linalg.solve(self.inertia, (rows @ self.N).T)
        return found

    def movable(self, rows: Array, response: Array) -> NDArray[np.bool_]:
        found: NDArray[np.bool_] = np.linalg.norm(rows @ self.N, axis=1) > HELD * np.linalg.norm(
            rows * self._units, axis=1
        )
        return found


class _Sparse(FreeMotion):
    """By the elimination of `graph`."""

    def __init__(self, system: System, state: State):
        self.system, self.state = system, state
        rank = decide(system, state)
        self.elimination = Elimination(system, rank.state or state, rank.count)
        self._user = np.zeros(system.nv)
        add_user_forces(system, state.t, state.q, state.v, self._user)
        self.a = self._accelerations(self._user)
        self.twice_kinetic = 2.0 * energy(system, state).kinetic
        self.pushed = float(np.sqrt(2.0 * float(energy(system, State(state.t, state.q, self.a)).kinetic)))

    def _accelerations(self, load: Array) -> Array:
        e, state = self.elimination, self.state
        e.set_state(state.t, state.q, state.v)
        e.keep_rows()
        e.work.tau[:] = load
        e.run(accelerate)
        if not np.isfinite(e.work.a).all():
            raise SingularityError(f"'{self.system.name}' has no finite accelerations at t = {state.t:g} s.")
        return np.array(e.work.a)

    def respond(self, rows: Array) -> Array:
        found = np.zeros((self.system.nv, len(rows)))
        for n, row in enumerate(rows):
            found[:, n] = self._change(row, self.a, lambda load: self._accelerations(self._user + load))
        return found

    def movable(self, rows: Array, response: Array) -> NDArray[np.bool_]:
        s, state = self.system, self.state
        free = open_tree_forward_dynamics(s, state)
        found = np.zeros(len(rows), bool)
        for n, (row, answer) in enumerate(zip(rows, response.T, strict=True)):
            alone = self._change(row, free, lambda load: open_tree_forward_dynamics(s, state, load))
            found[n] = row @ answer > HELD_BY_RESPONSE * (row @ alone)
        return found

    def _change(self, row: Array, without: Array, accelerations: Callable[[Array], Array]) -> Array:
        """Change of accelerations by a unit load along a row; the first of two loads tells how large one loses none."""
        units, size = self.system.speed_units, 1.0
        least, change = float(np.abs(without / units).max(initial=0.0)), np.zeros(len(row))
        for _ in range(2):
            change = (accelerations(size * row) - without) / size
            answer = float(np.abs(change / units).max(initial=0.0))
            size = LARGE * least / answer if answer > 0.0 and least > 0.0 else 1.0
        return change


@kernel
def add_rows(ints, floats, work, chosen, J):
    """Add rows of the Jacobian to J (n, nv) at the state at which `residuals` has left its data in `work`."""
    model, data = open_model(ints, floats), open_work(ints, work)
    B = data.body
    for n in range(model.cut.shape[0]):
        first, i, j = model.cut[n, C_ROW], model.cut[n, C_PARENT], model.cut[n, C_CHILD]
        for m in range(chosen.size):
            k = chosen[m]
            if first <= k < first + model.cut[n, C_ROWS]:
                x, _ = body_point(B, j, get3(model.cut_frames, n, M_POINT))
                torque, force = get3(data.rows, k, 0), get3(data.rows, k, 3)
                add_power(model, data, j, x, torque, force, J[m])
                add_power(model, data, i, x, neg(torque), neg(force), J[m])
    for n in range(model.linear.shape[0]):
        for m in range(chosen.size):
            if model.linear[n, L_ROW] == chosen[m]:
                for e in range(model.linear[n, L_FIRST], model.linear[n, L_FIRST] + model.linear[n, L_COUNT]):
                    cut, index, c = model.entry[e, E_CUT], model.entry[e, E_FREEDOM], data.factor[e]
                    if cut < 0:
                        J[m, index] += c
                    else:
                        _, _, _, torque, force, x = freedom_of_cut(model, data, cut, index)
                        torque, force = scale(c, torque), scale(c, force)
                        add_power(model, data, model.cut[cut, C_CHILD], x, torque, force, J[m])
                        add_power(model, data, model.cut[cut, C_PARENT], x, neg(torque), neg(force), J[m])


def rows_at(system: System, state: State, chosen: Ints) -> tuple[Array, Array, Array, Array]:
    """Residuals and rates of all rows of a system at a state; of chosen ones, Jacobian and right side."""
    work = system.work()
    w = system.open_work(work)
    w.t[0], w.q[:], w.v[:] = state.t, state.q, state.v
    rate, J = np.zeros(system.nc), np.zeros((len(chosen), system.nv))
    user = user_rows(system)(state.t, state.q, state.v)
    user.write(w, np.empty(user.J.shape), rate)
    residuals(system.ints, system.floats, work, rate)
    require_rows(system, w, rate[:, None], state.t)
    add_rows(system.ints, system.floats, work, chosen, J)
    first = system.nc - len(user.phi)
    own = np.flatnonzero(chosen >= first)
    J[own] = user.J[chosen[own] - first]
    return w.phi.copy(), rate, J, w.gamma[chosen]
