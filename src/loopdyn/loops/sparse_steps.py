"""Smallest steps of large systems in linear time: the equations of :mod:`loopdyn.loops.projection`, sparse.

The mass matrix of a tree and the rows of loops that stand on one another are dense in the speeds of the joints. With
the motions V of the bodies as unknowns of their own they are not: of V, the speeds x, the momenta mu that joints pass
on and the multipliers lam,

    minimise  1/2 V^T I V + 1/2 x^T A x    subject to    V_i - X_i V_parent - S_i x_i = 0,    G V + D x = -r

I: inertias of the bodies, A: armature; G: rows of cut joints on their two bodies, D: rows of relations. Everything is
in natural units. Dependent rows make the equations singular: a small share of lam is taken off, and its influence is
removed again by repetition (proximal iteration), as in :mod:`loopdyn.loops.least_norm`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import scipy
from numpy.typing import NDArray

from loopdyn.engine import records as rec
from loopdyn.joints.dispatch import wrenches
from loopdyn.system.system import JointData, State, System, require_state
from loopdyn.thresholds import LARGEST_DENSE_STEP
from loopdyn.tree import jacobian
from loopdyn.tree.functions import require_rows
from loopdyn.tree.user_rows import user_rows

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
Entries = tuple[Ints, Ints, Array]  # rows, columns, values

# Fraction of what a multiplier moves that makes the equations regular. What it moves is the square of a singular value:
# those below 3e-7 count as zero, as in reactions.
PROXIMAL = 1e-13
MOST_REPETITIONS = 20  # each must halve the residual; at most 4 were needed in the library
HELPS = 0.5  # fraction of the residual that a repetition may leave, or it is the last


def takes_sparse_steps(system: System) -> bool:
    """Whether steps of the system are sparse: it is large, and its tree has inertia against every motion."""
    return max(system.nc, system.nv) > LARGEST_DENSE_STEP and not system.unsupported


class OwnRow(NamedTuple):
    """A row of its own for a coordinate or speed of a joint that is to have a value."""

    joint: JointData
    k: int  # which of its freedoms
    unit: float  # natural unit
    gradient: Array | None = None  # by the speeds of a tree joint, where it is not one of these


class _Structure:
    """Structure of the equations of a system, the same at all states. Columns: motions of bodies, then speeds."""

    def __init__(self, system: System):
        model = system.model
        self.system, self.bases, self.nb = system, system.n_bases, system.nb
        self.body_of = np.repeat(np.arange(len(model.tree)), model.tree[:, rec.NV])  # of each speed
        self.parent = model.tree[self.bases :, rec.PARENT]
        self.scale = np.concatenate([np.tile([1.0] * 3 + [system.size] * 3, self.nb), system.speed_units])
        counts = model.cut[:, rec.C_ROWS]
        self.cut_of = np.repeat(np.arange(len(model.cut)), counts)  # of each row of a cut
        within = np.arange(len(self.cut_of)) - np.repeat(np.cumsum(counts) - counts, counts)
        self.row_of = model.cut[self.cut_of, rec.C_ROW] + within
        self.relations = np.repeat(model.linear[:, rec.L_ROW], model.linear[:, rec.L_COUNT])  # row of each entry
        self.cut_joints = {j.cut: j for j in system.joints.values() if j.cut >= 0}

    def on_pair(self, w: rec.Work, row: Ints, cut: Ints, wrench: Array) -> list[Entries]:
        """Entries of rows whose wrenches (torque, force) act at the origin of M of cuts, on child and parent."""
        model, found = self.system.model, []
        child, local = model.cut[cut, rec.C_CHILD], model.cut_frames[cut, rec.M_POINT : rec.M_POINT + 3]
        R = w.body[child, rec.R : rec.R + 9].reshape(-1, 3, 3)
        x = w.body[child, rec.X : rec.X + 3] + np.einsum("nij,nj->ni", R, local)
        torque, force = wrench[:, :3], wrench[:, 3:]
        for body, sign in ((child, 1.0), (model.cut[cut, rec.C_PARENT], -1.0)):
            six = sign * np.hstack([torque + np.cross(x - w.body[body, rec.X : rec.X + 3], force), force])
            moves = body >= self.bases
            columns = 6 * (body[moves, None] - self.bases) + np.arange(6)
            found.append((np.repeat(row[moves], 6), columns.ravel(), six[moves].ravel()))
        return found

    def cut_wrench(self, w: rec.Work, j: JointData, k: int) -> Array:
        """Wrench (torque, force), world axes, of a unit load on freedom k of a joint."""
        data = self.system.model.body
        R = [w.body[b, rec.R : rec.R + 9].reshape(3, 3) for b in (j.parent, j.child)]
        own = [data[b, rec.BODY_AXES : rec.BODY_AXES + 9].reshape(3, 3) for b in (j.parent, j.child)]
        found: Array = wrenches(j.spec, R[0] @ own[0] @ j.F[1], R[1] @ own[1] @ j.M[1], j.par)[k]
        return found

    def rows(self, w: rec.Work, user: Array) -> list[Entries]:
        """Entries of all constraint rows; `user`: rows of user constraints over the speeds."""
        system, first = self.system, 6 * self.nb
        entry = system.model.entry[: len(self.relations)]
        own = entry[:, rec.E_CUT] < 0
        parts = self.on_pair(w, self.row_of, self.cut_of, w.rows[self.row_of])
        parts.append((self.relations[own], first + entry[own, rec.E_FREEDOM], w.factor[: len(entry)][own]))
        for e in np.flatnonzero(~own):
            cut, freedom = int(entry[e, rec.E_CUT]), int(entry[e, rec.E_FREEDOM])
            wrench = w.factor[e] * self.cut_wrench(w, self.cut_joints[cut], freedom)
            parts += self.on_pair(w, self.relations[[e]], np.array([cut]), wrench[None])
        k, c = np.nonzero(user)
        return [*parts, (k + system.nc - len(user), first + c, user[k, c])]

    def own_rows(self, w: rec.Work, own: Sequence[OwnRow]) -> list[Entries]:
        """Entries of rows that follow the constraint rows."""
        parts: list[Entries] = []
        for n, (j, k, _, gradient) in enumerate(own, self.system.nc):
            if not j.in_tree:
                parts += self.on_pair(w, np.array([n]), np.array([j.cut]), self.cut_wrench(w, j, k)[None])
            else:
                six = np.eye(len(j.spec.speeds))[k] if gradient is None else gradient
                columns = 6 * self.nb + j.v0 + np.arange(len(six))
                parts.append((np.full(len(six), n), columns, six))
        return parts

    def kinematics(self, w: rec.Work) -> scipy.sparse.csr_matrix:
        """T with T (V, x) = V_i - X_i V_parent - S_i x_i, natural units."""
        n, inner = 6 * self.nb, np.flatnonzero(self.parent >= self.bases)
        at, p = 6 * inner, 6 * (self.parent[inner] - self.bases)
        x, y, z = w.body[self.bases + inner, rec.ARM : rec.ARM + 3].T
        ones, six = np.ones(n), np.arange(6)
        parts: list[Entries] = [(np.arange(n), np.arange(n), ones)]
        parts.append(((at[:, None] + six).ravel(), (p[:, None] + six).ravel(), np.full(6 * len(at), -1.0)))
        # v_i = v_p + w_p x arm
        for row, column, value in ((3, 1, z), (3, 2, -y), (4, 0, -z), (4, 2, x), (5, 0, y), (5, 1, -x)):
            parts.append((at + row, p + column, -value))
        rows = 6 * (self.body_of[:, None] - self.bases) + six
        columns = np.repeat(n + np.arange(self.system.nv), 6)
        parts.append((rows.ravel(), columns, -w.dof[:, rec.SW : rec.SW + 6].ravel()))
        return self.matrix(parts, n, self.scale[:n])

    def inertia(self, w: rec.Work) -> scipy.sparse.csr_matrix:
        """Inertias of all bodies about their reference points, and armature; natural units, the largest is one."""
        system, bases = self.system, self.bases
        R = w.body[bases:, rec.R : rec.R + 9].reshape(-1, 3, 3)
        arm = np.einsum("nij,nj->ni", R, system.model.body[bases:, rec.COM : rec.COM + 3])
        mass, zero, (x, y, z) = system.model.body[bases:, rec.MASS], np.zeros(self.nb), arm.T
        skew = np.array([[zero, -z, y], [z, zero, -x], [-y, x, zero]]).transpose(2, 0, 1)
        blocks = np.zeros((self.nb, 6, 6))
        m = mass[:, None, None]
        blocks[:, :3, :3] = R @ system.inertias[bases:] @ R.transpose(0, 2, 1) - m * (skew @ skew)
        blocks[:, :3, 3:], blocks[:, 3:, :3] = m * skew, -m * skew
        blocks[:, 3:, 3:] = m * np.eye(3)
        D = self.scale[:6]
        blocks *= np.outer(D, D)
        of_bodies = scipy.sparse.bsr_matrix((blocks, np.arange(self.nb), np.arange(self.nb + 1)))
        armature = scipy.sparse.diags(system.model.armature * system.speed_units**2)
        found = scipy.sparse.block_diag([of_bodies, armature], format="csr")
        return found / (float(found.diagonal().max(initial=0.0)) or 1.0)

    def matrix(self, parts: Sequence[Entries], rows: int, units: Array) -> scipy.sparse.csr_matrix:
        """Sparse matrix over motions and speeds in natural units; `units` of its rows."""
        row, column, value = (np.concatenate(x) for x in zip(*parts, strict=True))
        value = value * self.scale[column] / units[row]
        return scipy.sparse.csr_matrix((value, (row, column)), shape=(rows, len(self.scale)))


_structures: WeakKeyDictionary[System, _Structure] = WeakKeyDictionary()


def _structure(system: System) -> _Structure:
    """The structure of a system, made once."""
    if system not in _structures:
        _structures[system] = _Structure(system)
    return _structures[system]


@dataclass(frozen=True, eq=False)
class SparseRows:
    """Constraint rows at one state, with rows of their own for some freedoms behind them; natural units.

    Attributes
    ----------
    phi, rate : array
        Residuals at position and velocity level, of the constraint rows alone.
    gamma : array
        Right side at acceleration level.
    matrix : (rows, 6 nb + nv) sparse matrix
        The rows over the motions of the bodies and the speeds.
    """

    system: System
    phi: Array
    rate: Array
    gamma: Array
    matrix: scipy.sparse.csr_matrix
    work: rec.Work

    def times(self, x: Array) -> Array:
        """J x for the speeds x: bases are at rest."""
        result: Array = self.matrix @ self._motions(x)
        return result

    def sizes(self, x: Array) -> Array:
        """Sizes of the terms of which J x is the sum."""
        result: Array = abs(self.matrix) @ np.abs(self._motions(x))
        return result

    def _motions(self, x: Array) -> Array:
        """Motions of the bodies, and the speeds x that cause them."""
        T, n = self._parts[1], 6 * self.system.nb
        motions: Array = np.append(self._tree.solve(-(T[:, n:] @ x)), x)
        return motions

    @cached_property
    def _tree(self) -> scipy.sparse.linalg.SuperLU:
        """Factor of the kinematics of the bodies, which are in the order of the tree."""
        T, n = self._parts[1], 6 * self.system.nb
        return scipy.sparse.linalg.splu(T[:, :n].tocsc(), permc_spec="NATURAL")

    @cached_property
    def _equations(self) -> scipy.sparse.csc_matrix:
        """Kinematics and constraint rows, of which motions that are allowed are the null space."""
        return scipy.sparse.vstack([_structure(self.system).kinematics(self.work), self.matrix]).tocsc()

    def moving_alone(self, bodies: Sequence[int], together: Sequence[int]) -> Array:
        """Equations of motions in which all other bodies are at rest; their null space is what can move alone.

        `together`: those of `bodies` that move as one rigid body; the others follow, as welds and joints let them.
        Unknowns: motions of the bodies, speeds of the joints next to them; natural units.
        """
        system, first, w = self.system, 6 * self.system.nb, self.work
        tree, n_bases = system.model.tree, system.n_bases
        near = [i for b in bodies for i in (b, *self._children.get(b, ()))]
        speeds = [k for i in dict.fromkeys(near) for k in range(tree[i, rec.V0], tree[i, rec.V0] + tree[i, rec.NV])]
        columns = [6 * (b - n_bases) + c for b in bodies for c in range(6)] + [first + k for k in speeds]
        E = self._equations
        entries = [np.arange(E.indptr[c], E.indptr[c + 1]) for c in columns]
        among = np.concatenate(entries)
        used, row = np.unique(E.indices[among], return_inverse=True)
        found = np.zeros((len(used), len(columns)))
        found[row, np.repeat(np.arange(len(columns)), [len(e) for e in entries])] = E.data[among]
        as_one = np.zeros((6 * (len(together) - 1), len(columns)))
        for n, b in enumerate(together[1:]):
            x, y, z = (w.body[b, rec.X : rec.X + 3] - w.body[together[0], rec.X : rec.X + 3]) / system.size
            rigid = np.eye(6)
            rigid[3:, :3] = [[0.0, z, -y], [-z, 0.0, x], [y, -x, 0.0]]  # v + w x arm
            at, of = 6 * bodies.index(b), 6 * bodies.index(together[0])
            as_one[6 * n : 6 * n + 6, at : at + 6] = np.eye(6)
            as_one[6 * n : 6 * n + 6, of : of + 6] -= rigid
        return np.vstack([found, as_one])

    @cached_property
    def _children(self) -> dict[int, list[int]]:
        """Bodies whose tree joint is on a body."""
        found: dict[int, list[int]] = {}
        for i, p in enumerate(self.system.model.tree[:, rec.PARENT].tolist()):
            if i >= self.system.n_bases:
                found.setdefault(p, []).append(i)
        return found

    def chosen(self, rows: NDArray[np.bool_]) -> SparseRows:
        """Rows with these alone in steps."""
        return self if rows.all() else replace(self, matrix=self.matrix[np.flatnonzero(rows)])

    @cached_property
    def _parts(self) -> tuple[scipy.sparse.csr_matrix, scipy.sparse.csr_matrix, Array]:
        """Inertia, kinematics, and what a unit of each multiplier moves, of which a small share is taken off."""
        of_system = _structure(self.system)
        I = of_system.inertia(self.work)
        six = I.diagonal()[: 6 * self.system.nb].reshape(-1, 2, 3).max(axis=2)  # of each body: turning, moving
        mobility = 1.0 / np.where(six > 0.0, six, 1.0)
        squared = self.matrix.multiply(self.matrix)
        moved = squared @ np.append(np.repeat(mobility.ravel(), 3), np.ones(self.system.nv))
        return I, of_system.kinematics(self.work), np.where(moved > 0.0, moved, 1.0)

    def step(self, r: Array, free: NDArray[np.bool_] | None = None) -> tuple[Array, Array]:
        """Smallest x in the mass metric with J x = -r, and what is missing: rows that contradict others leave it.

        `free` (nv,): speeds that x may have; all by default.
        """
        n, nv = 6 * self.system.nb, self.system.nv
        I, T, moved = self._parts
        takes = np.append(np.ones(n, bool), np.ones(nv, bool) if free is None else free)
        first = int(takes.sum())
        blocks = [
            [I[takes][:, takes], T[:, takes].T, self.matrix[:, takes].T],
            [T[:, takes], None, None],
            [self.matrix[:, takes], None, scipy.sparse.diags(-PROXIMAL * moved)],
        ]
        factor = scipy.sparse.linalg.splu(scipy.sparse.bmat(blocks, format="csc"))
        y, right = np.zeros(n + nv), np.zeros(factor.shape[0])
        missing, before = r, np.inf
        for _ in range(MOST_REPETITIONS):
            right[first + n :] = -missing
            y[takes] += factor.solve(right)[:first]
            right[first : first + n] = -T @ y
            missing = r + self.matrix @ y
            left = float(np.abs(missing).max(initial=0.0))
            if left == 0.0 or not left < HELPS * before:
                break
            before = left
        x: Array = y[n:]
        return x, missing


def sparse_rows(system: System, state: State, own: Sequence[OwnRow] = ()) -> SparseRows:
    """Constraint rows at a state, and rows of their `own` for some freedoms.

    Examples
    --------
    >>> import loopdyn as ld
    >>> system = ld.library.four_bar().compile()
    >>> rows = sparse_rows(system, system.state(q={"A": 1e-3}))
    >>> x, missing = rows.step(rows.phi)
    >>> bool(abs(missing).max() < 1e-15)
    True
    """
    require_state(system, state)
    work, of_system = system.work(), _structure(system)
    w = system.open_work(work)
    w.t[0], w.q[:], w.v[:] = state.t, state.q, state.v
    rate, user = np.empty(system.nc), user_rows(system)(state.t, state.q, state.v)
    user.write(w, np.empty(user.J.shape), rate)
    jacobian.residuals(system.ints, system.floats, work, rate)
    parts = of_system.rows(w, user.J) + of_system.own_rows(w, own)
    units = np.append(system.row_units, [row.unit for row in own])
    matrix = of_system.matrix(parts, system.nc + len(own), units)
    require_rows(system, w, np.asarray(matrix[: system.nc].sum(axis=1)), state.t)
    return SparseRows(system, w.phi / system.row_units, rate / system.row_units, w.gamma / system.row_units, matrix, w)
