"""Reactions along a path of states, in one compiled pass.

The numbers come from :mod:`loopdyn.loops.distribution`, state by state without a call from Python. Which components are
unique is decided

* by structure for joints outside of all loops: no row is open at their body, so no set of reactions is self-balanced;
* by the count of pivots where as many freedoms are kept as there are rows to find: nothing is redundant, everything is
  unique. This costs nothing, and is known at every state;
* by geometry where rows are redundant: a direction may turn, a component enter a self-balanced set at one pose and not
  at another. There the self-balanced parts of a few random sets of reactions are computed together with the loads.

Where pivots do not tell the rank (near a singular pose, or where a loop is not quite closed), or where accelerations do
not satisfy the constraints, a state is left to :class:`loopdyn.loops.reactions_balance.Balance`; so are all states of a
system with rows that are left open within a tolerance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from loopdyn.errors import ModelError, Problem
from loopdyn.loops.distribution import layout
from loopdyn.loops.distribution.along import distribute_along
from loopdyn.loops.distribution.passes import KEPT, MISSING, N_SUMMARY, OFF, UNCLEAR
from loopdyn.loops.reactions_balance import PROBES, Balance, Distribution, balance_of, compliances
from loopdyn.quantities.wording import unknown
from loopdyn.system.system import State, System
from loopdyn.tree.functions import add_user_forces
from loopdyn.tree.user_rows import user_rows

Array = NDArray[np.float64]

# Unbalanced load as a fraction of the largest load, up to which the compiled pass is taken; accelerations of solvers
# leave 1e-13 to 1e-11.
BALANCED = 1e-9


class States(NamedTuple):
    """States along a path, one in each row, with accelerations."""

    t: Array
    q: Array
    v: Array
    a: Array


@dataclass(frozen=True)
class PathReactions:
    """Constraint wrenches along a path.

    Attributes
    ----------
    joints : tuple of str
    wrench : (n, joints, 6) array
        As in :class:`loopdyn.results.Reactions`.
    unique : (n, joints, 6) array of bool
    rows : tuple of str
        Labels of the rows of constraints and drivers.
    multipliers : (n, rows) array
        Loads of these rows, N or N m.
    residual : (n,) array
        Largest unbalanced load on a body, N or N m.
    one_by_one : (n,) array of bool
        True where the state was not computed in the compiled pass.
    """

    joints: tuple[str, ...]
    wrench: Array
    unique: NDArray[np.bool_]
    rows: tuple[str, ...]
    multipliers: Array
    residual: Array
    one_by_one: NDArray[np.bool_]


def reactions_along(
    system: System,
    path: States,
    loads: Mapping[str, ArrayLike] | None = None,
    length: float | None = None,
    compliance: Mapping[str, ArrayLike] | None = None,
) -> PathReactions:
    """Reactions of all joints at all states of a path.

    Parameters
    ----------
    system : System
        For states that leave rows open within a tolerance, the system without these rows.
    path : States
        Closed states with their accelerations.
    loads : mapping, optional
        Further loads on joint speeds at each state, N m or N by label.
    length, compliance : optional
        As in :func:`loopdyn.reactions`.

    Examples
    --------
    >>> import loopdyn as ld
    >>> system = ld.library.pendulum().compile()
    >>> run = ld.simulate(system, system.state(), (0, 1), t_eval=[0, 0.5, 1], progress=False)
    >>> p = run.path
    >>> reactions_along(system, States(p.t, p.q, p.v, p.a)).wrench.shape
    (3, 1, 6)
    """
    size = checked_length(system, length)
    with balance_of(system) as balance:
        return _Pass(balance, path, loads or {}, size, compliance).run()


def checked_length(system: System, length: float | None) -> float:
    """Length in m by which moments are compared with forces: the size of the mechanism unless one is given."""
    length = system.size if length is None else length
    if not 0.0 < length * length < np.inf:
        units = system.units
        given = f"length is {length / units.factor('length'):g} {units.length}"
        raise ModelError([Problem("reactions", given, "Give a length above zero.")])
    return length


class _Pass:
    """One pass over a path, and its results."""

    def __init__(
        self,
        balance: Balance,
        path: States,
        loads: Mapping[str, ArrayLike],
        length: float,
        compliance: Mapping[str, ArrayLike] | None,
    ):
        n, joints = len(path.t), len(balance.names)
        self.balance, self.path, self.length, self.compliance = balance, path, length, compliance
        self.labels = tuple(loads)
        self.push = np.zeros((n, len(loads)))
        for m, values in enumerate(loads.values()):
            self.push[:, m] = values
        self.pushed = _freedoms(balance, self.labels)
        self.wrench, self.unique = np.zeros((n, joints, 6)), np.ones((n, joints, 6), bool)
        self.others, self.summary = np.zeros((n, len(balance.others))), np.zeros((n, N_SUMMARY))

    def run(self) -> PathReactions:
        """Reactions at all states."""
        n, b = len(self.path.t), self.balance
        alone = np.ones(n, bool)
        if n and not b.tolerated:
            self._compiled()
            alone = (self.summary[:, UNCLEAR] > 0.0) | ~(self.summary[:, OFF] <= BALANCED)
        residual = self.summary[:, MISSING].copy()
        for k in np.flatnonzero(alone).tolist():
            self.wrench[k], self.unique[k], self.others[k], residual[k] = self._alone(k)
        return PathReactions(b.names, self.wrench, self.unique, b.others, self.others, residual, alone)

    def _alone(self, k: int) -> Distribution:
        """Reactions at one state by the general way."""
        b, p = self.balance, self.path
        state = State(float(p.t[k]), p.q[k], p.v[k])
        loads = dict(zip(self.labels, self.push[k].tolist(), strict=True))
        load = b.loads(state, p.a[k]) - b.of_motors(loads)
        return b.distribute(state, load, self.length, self.compliance)

    def _compiled(self) -> None:
        """Reactions at all states by the compiled pass: self-balanced sets only where rows are redundant."""
        b, n = self.balance, len(self.path.t)
        structure = b.structure
        rows = int(np.count_nonzero(structure.unknown[:-1, layout.U_ROW] >= 0))
        inputs = self._inputs()

        def redundant() -> NDArray[np.bool_]:
            found: NDArray[np.bool_] = self.summary[:, KEPT] < rows
            return found

        if b.redundant is None:  # the first state tells what to expect of the others
            self._call(np.arange(1), inputs, rows > 0)
            b.redundant = bool(redundant()[0])
        self._call(np.arange(n), inputs, b.redundant)
        found = redundant()
        if not b.redundant and found.any():
            self._call(np.flatnonzero(found), inputs, True)
        b.redundant = bool(found.any())

    def _inputs(self) -> tuple[Array, ...]:
        """Path with the loads and rows of Python functions at each state."""
        system, p, n = self.balance.system, self.path, len(self.path.t)
        tau, user = np.zeros((n, system.nv)), np.zeros((n, system.model.n_user, system.nv))
        rows = user_rows(system) if system.mechanism.user_constraints else None
        if rows is not None or system.mechanism.user_forces:
            for k in range(n):
                add_user_forces(system, p.t[k], p.q[k], p.v[k], tau[k])
                if rows is not None:
                    user[k] = rows(p.t[k], p.q[k], p.v[k]).J
        return (*(np.ascontiguousarray(x, float) for x in p), tau, user)

    def _call(self, which: NDArray[np.int64], inputs: tuple[Array, ...], with_probes: bool) -> None:
        b = self.balance
        scratch = b.scratch(1 + PROBES if with_probes else 1)
        rows = len(scratch.root)
        probes = np.random.default_rng(0).normal(size=(rows, PROBES)) if with_probes else np.zeros((rows, 0))
        weights = compliances(b.names, self.length, self.compliance)
        scratch.direction[:] = b.direction
        of_joints = np.sum(weights[b.row_joint] * b.direction**2, axis=1)
        scratch.root[:] = np.sqrt(np.append(of_joints, np.where(b.turns, 1.0 / self.length**2, 1.0)))
        distribute_along(
            (b.ints, b.floats, b.array),
            b.joints,
            b.structure,
            scratch,
            which,
            inputs,
            (self.pushed, self.push),
            (probes, weights, self.length, b.least),
            (self.wrench, self.unique, self.others, self.summary),
        )


def _freedoms(balance: Balance, labels: Sequence[str]) -> NDArray[np.int64]:
    """Cut and freedom (n, 2) of each joint speed."""
    known = balance.system.labels.speeds
    wrong = [label for label in labels if label not in known]
    if wrong:
        raise unknown("loads", "joint speed", wrong, known)
    found = [(balance.cut_of[j.body] if j.in_tree else j.cut, k) for j, k, *_ in (known[label] for label in labels)]
    return np.array(found, np.int64).reshape(-1, 2)
