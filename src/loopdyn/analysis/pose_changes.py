"""Changes of a closed state by parameters: the implicit function theorem for poses, speeds and equilibria.

With S the rows of the coordinates and speeds that are held (h their values), the changes of a closed state are

    [J; S] dq = [-phi_p; h_p],     [J; S] dv = [-dr; h'_p]       dr along (dq, p), speeds held

and, where accelerations follow from given ones of the inputs, [J; S] da = [-dG; 0]. At an equilibrium, with the motions
N that the rows allow and dq = dq_p + N z,

    N^T E_q N z = -N^T (E_p + E_q dq_p),      E = -f - J^T lam, at rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from loopdyn.analysis.assembly_speeds import speed_rows
from loopdyn.analysis.closed_motion import require_closed
from loopdyn.analysis.variations import AGREEING, Family, Local
from loopdyn.errors import LoopdynError, SingularityError, warn
from loopdyn.loops.continuation import largest
from loopdyn.loops.rank import decide, of_matrix, require_inertia, require_regular, scaled
from loopdyn.quantities.wording import unknown
from loopdyn.system.builder import build
from loopdyn.system.system import State, System
from loopdyn.thresholds import CANDIDATE
from loopdyn.tree.functions import terms

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Changes:
    """Derivatives of a state by one parameter: increments of coordinates, speeds, accelerations (nv,); of time."""

    xi: Array
    dv: Array
    da: Array
    dt: float = 0.0


def held_labels(system: System, state: State, wanted: Sequence[str] | None) -> tuple[str, ...]:
    """Independent speeds of the tree whose coordinates are held: those named, or those of the model's start first."""
    rank = decide(system, state)
    require_regular(system, rank)
    known = system.labels.speeds
    start = dict.fromkeys(x for part in system.start for x in part if x in known)
    given = [*wanted] if wanted is not None else [*start]
    wrong = [x for x in given if x not in known]
    if wrong:
        raise unknown("sensitivity: hold", "speed", wrong, known)
    J = scaled(system, terms(system, state).J)
    freedoms = system.nv - rank.count
    N = np.linalg.svd(J)[2][rank.count :].T if system.nc else np.eye(system.nv)
    rows = speed_rows(system, state, given) * system.speed_units @ N if given else np.zeros((0, freedoms))
    chosen, basis = [], np.zeros((0, freedoms))
    for label, row in zip(given, rows, strict=True):
        rest = row - basis.T @ (basis @ row)
        if np.linalg.norm(rest) > CANDIDATE * max(float(np.linalg.norm(row)), 1.0):
            chosen.append(label)
            basis = np.vstack([basis, rest / np.linalg.norm(rest)])
        elif wanted is not None:
            raise LoopdynError(f"hold: '{label}' depends on the others at this pose of '{system.name}'. Leave it out.")
    if wanted is not None and len(chosen) < freedoms:
        raise LoopdynError(
            f"hold: '{system.name}' has {freedoms} degrees of freedom, but {len(chosen)} coordinates are held. Name "
            f"{freedoms - len(chosen)} more."
        )
    tree = list(system.speeds)
    while len(chosen) < freedoms:  # the largest part of the motions that are left
        rest = N - (N @ basis.T) @ basis
        k = int(np.argmax(np.linalg.norm(rest, axis=1)))
        chosen.append(tree[k])
        basis = np.vstack([basis, rest[k] / np.linalg.norm(rest[k])])
    return tuple(chosen)


class HeldPoses:
    """Changes of closed states of a mechanism by parameters, some coordinates and speeds held.

    Parameters
    ----------
    family : Family
    held : sequence of str
        Labels of speeds, which determine the motion.
    """

    def __init__(self, family: Family, held: Sequence[str]):
        self.family, self.held = family, tuple(held)
        system = family.system
        cut = [label for label in held if not system.labels.speeds[label].joint.in_tree]
        self.tree = [system.speeds.index(label) for label in held if label not in cut]
        self.cut = cut
        self.driven = family if not cut else Family(_with_drivers(system, cut), family.parameters)

    def at(
        self, state: State, a: Array | None = None, given: Mapping[str, tuple[Array, Array]] | None = None
    ) -> dict[str, Changes]:
        """Changes by each parameter at a state with accelerations `a` of the tree.

        `given` has, by parameter, the derivatives of the held coordinates and of their speeds, SI; zero by default.
        """
        s, driven = self.driven.system, self.driven
        zero = np.zeros(s.nv)
        local = Local(s, State(state.t, state.q, state.v), 0, zero if a is None else a)
        S = np.zeros((len(self.tree), s.nv))
        S[np.arange(len(self.tree)), self.tree] = 1.0
        units = np.concatenate([s.row_units, s.speed_units[self.tree]])
        D = np.vstack([local.terms.J, S]) / units[:, None] * s.speed_units
        U, sv, Vt = np.linalg.svd(D, full_matrices=False)
        n = of_matrix(D).count
        if n < s.nv:
            raise SingularityError(
                f"{', '.join(self.held) or 'nothing'} held: '{s.name}' can still move at this pose, which is singular "
                "or needs more coordinates held. There is no derivative here: name other coordinates, hold=[...]."
            )

        def solved(right: Array, name: str) -> Array:
            r = right / units
            x = Vt[:n].T @ ((U[:, :n].T @ r) / sv[:n])
            if largest(D @ x - r) > AGREEING * max(largest(r), largest(x), 1.0 / (abs(driven.values[name]) or 1.0)):
                raise LoopdynError(
                    f"with another value of '{name}' alone the loops of '{s.name}' do not close: rows are redundant, "
                    "and contradict each other then. Change the parameters together, by one on which they depend."
                )
            result: Array = s.speed_units * x
            return result

        found = {}
        for name in driven.parameters:
            unit = abs(driven.values[name]) or 1.0
            dF = driven.floats[name]
            h, dh = (np.zeros(len(self.held)),) * 2 if given is None else given[name]
            xi = solved(self._right(-local.changed(zero, zero, 0.0, dF, unit).phi, h), name)
            dv = solved(self._right(-local.changed(xi, zero, 0.0, dF, unit).rate, dh), name)
            da = zero
            if a is not None:
                da = solved(np.append(-local.changed(xi, dv, 0.0, dF, unit).bias, np.zeros(len(self.tree))), name)
            found[name] = Changes(xi, dv, da)
        return found

    def _right(self, rows: Array, held: Array) -> Array:
        """Right side of the rows: changes of held coordinates of cut joints are added to those of their drivers."""
        labels = self.driven.system.constraint_rows
        for k, label in enumerate(self.cut):
            rows[labels.index(f"held {k + 1}")] += held[self.held.index(label)]
        inside = [n for n, label in enumerate(self.held) if label not in self.cut]
        return np.append(rows, held[inside])


def start_changes(family: Family, held: Sequence[str]) -> dict[str, tuple[Array, Array]]:
    """Derivatives of held coordinates and speeds of the model's start by each parameter, SI; zero where it has none."""
    own = [family.system.start[n].keys() for n in (0, 1)]
    if own[1] and not any(x in held for x in own[1]):
        warn(
            f"{family.system.name}: the start gives the speed of {', '.join(own[1])}, but the derivatives are those "
            f"with the speed of {', '.join(held)} held. Name the others: hold=[...]."
        )

    def values(s: System) -> Array:
        return np.array([[s.start[n][x] if x in own[n] else 0.0 for x in held] for n in (0, 1)]).reshape(2, -1)

    found = family.by_parameter(values)
    return {name: (x[0], x[1]) for name, x in found.items()}


def _with_drivers(system: System, labels: Sequence[str]) -> System:
    """System of the same tree whose drivers hold coordinates of cut joints."""
    m = system.mechanism.model_copy(deep=True)
    for k, label in enumerate(labels):
        m.add_driver(f"held {k + 1}", label, 0.0)
    s = build(m, list(system.topology.cuts), counted=system.counted)
    if s.coordinates != system.coordinates or s.speeds != system.speeds:
        raise LoopdynError(f"the spanning tree of '{system.name}' is not that of its cuts. Compile it with cuts only.")
    return s


def dynamic_changes(family: Family, state: State, changes: Mapping[str, Changes]) -> tuple[Local, dict[str, Changes]]:
    """Changes with those of the accelerations of the free motion; and the equations at the state."""
    s = family.system
    rank = decide(s, state)
    require_regular(s, rank)
    require_inertia(s, state, rank)
    local, found = Local(s, state, rank.count), {}
    for name, c in changes.items():
        moved = local.changed(c.xi, c.dv, c.dt, family.floats[name], abs(family.values[name]) or 1.0)
        da = local.solve(moved.balance[:, None], moved.bias[:, None])[0][:, 0]
        found[name] = Changes(c.xi, c.dv, da, c.dt)
    return local, found


def equilibrium_changes(family: Family, state: State) -> tuple[dict[str, Changes], tuple[str, ...]]:
    """Changes of an equilibrium by each parameter, and the idle coordinates that are held meanwhile.

    Raises if its stiffness vanishes along a motion that a parameter loads.
    """
    s = family.system
    require_closed(s, state)
    rank = decide(s, state)
    require_regular(s, rank)
    zero = np.zeros(s.nv)
    local = Local(s, State(state.t, state.q, zero), rank.count, zero)
    N, units = local.motions, s.speed_units
    K = np.array([N.T @ (units * local.changed(units * n, zero).balance) for n in N.T]).T.reshape(N.shape[1], -1)
    U, sizes, Vt = np.linalg.svd(K)
    count = int(np.count_nonzero(sizes > CANDIDATE * sizes.max(initial=0.0)))
    idle = _largest_parts(N @ Vt[count:].T)  # of a freedom that nothing holds: any value of it is an equilibrium
    D = np.vstack([K / sizes.max(initial=0.0) if count else K, N[idle]])
    found = {}
    for name in family.parameters:
        unit, dF = abs(family.values[name]) or 1.0, family.floats[name]
        rows = local.changed(zero, zero, 0.0, dF, unit).phi
        if local.open_by(rows) > AGREEING * max(largest(rows / s.row_units), 1.0 / unit):
            raise LoopdynError(
                f"with another value of '{name}' alone the loops of '{s.name}' do not close: rows are redundant, and "
                "contradict each other then. Change the parameters together, by one on which they depend."
            )
        first = local.smallest_for(-rows)
        push = N.T @ (units * local.changed(first, zero, 0.0, dF, unit).balance)
        loads = max(largest(push), largest(units * local.terms.h) / unit)
        if largest(U[:, count:].T @ push) > AGREEING * loads:
            raise SingularityError(
                f"this equilibrium of '{s.name}' is neutral: its stiffness vanishes along a motion that '{name}' "
                f"loads ({', '.join(s.speeds[k] for k in idle)}), so the pose is no smooth function of it. Choose "
                "other values, or hold that motion by a driver."
            )
        right = np.append(push / sizes.max(initial=0.0) if count else 0.0 * push, first[idle] / units[idle])
        z = np.linalg.lstsq(D, -right, rcond=None)[0] if N.shape[1] else np.zeros(0)
        found[name] = Changes(first + units * (N @ z), zero, zero)
    return found, tuple(s.speeds[k] for k in idle)


def _largest_parts(motions: Array) -> list[int]:
    """Places of as many coordinates as there are motions (nv, m), whose values determine them: the largest parts."""
    places: list[int] = []
    rest = np.array(motions)
    for _ in range(motions.shape[1]):
        k = int(np.argmax(np.linalg.norm(rest, axis=1)))
        places.append(k)
        along = rest[k] / np.linalg.norm(rest[k])
        rest = rest - np.outer(rest @ along, along)
    return places
