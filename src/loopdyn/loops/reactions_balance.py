"""Rows of all joints and constraints over the free bodies, at one state, and the distribution of loads over them.

This is the general way: sparse matrices by SciPy, state by state. `loops.reactions_along` computes the same for a whole
path in compiled code, and comes here where pivots do not tell the rank.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from loopdyn.engine import records as rec
from loopdyn.engine.layout import opened
from loopdyn.errors import ModelError, Problem
from loopdyn.joints.dispatch import wrenches
from loopdyn.loops.distribution.layout import DistributionScratch, DistributionTables
from loopdyn.loops.distribution.plan import DistributionPlanner, Rows, scratch
from loopdyn.loops.elimination.passes import balance
from loopdyn.loops.elimination.plan import plan_elimination, plans_alike, with_cuts
from loopdyn.loops.least_norm import smallest_solution
from loopdyn.loops.rank import is_large, of_matrix
from loopdyn.quantities.wording import unknown
from loopdyn.system.system import JointData, State, System
from loopdyn.tree.functions import Motion, add_user_forces, body_motion, relative_pose
from loopdyn.tree.user_rows import user_rows

Array = NDArray[np.float64]
PairRows = list[tuple[NDArray[np.int64], Array]]  # bodies and rows on them: children, then parents

# A component is unique if self-balanced sets of reactions of unit norm contain less of it than this.
UNIQUE = 1e-7
WITHIN = 10.0  # ... or than so many tolerances
# Near a singular pose: a singular value of the rows below this fraction of the largest is lost; so small a part of a
# row in the lost direction does not count.
LOST = 1e-3
PROBES = 4  # random sets of reactions from which the self-balanced part is taken


def least_part(system: System) -> float:
    """Threshold below which the part of a row in self-balanced sets of reactions counts as zero.

    Rows that are left open within a tolerance depend on others up to this tolerance.
    """
    t = system.tolerated
    return UNIQUE if t is None else max(UNIQUE, WITHIN * max(t.angle, t.length / system.size))


def compliances(names: Sequence[str], length: float, compliance: Mapping[str, ArrayLike] | None) -> Array:
    """Weights (joints, 6) of the components of each joint in the norm that is minimised."""
    given = {name: np.broadcast_to(np.asarray(c, float), 6) for name, c in (compliance or {}).items()}
    wrong = [name for name in given if name not in names]
    if wrong:
        raise unknown("compliance", "joint", wrong, names)
    if any((six <= 0.0).any() for six in given.values()):
        raise ModelError([Problem("compliance", "a compliance is not positive", "Give positive numbers.")])
    plain = np.array([1.0 / length**2] * 3 + [1.0] * 3)
    return np.array([given.get(name, plain) for name in names]).reshape(-1, 6)


class End(NamedTuple):
    """One end of a step: momenta of all bodies (n, 6) in world axes, applied loads, and the rows of the joints."""

    momentum: Array  # angular about the centre of mass, and linear
    applied: Array  # torque about the centre of mass and force, of gravity and applied forces
    rotors: Array  # (n, 6, m) loads on the bodies that turn the rotors, per unit of each of the m speeds with armature
    rows: scipy.sparse.csr_matrix  # scaled, over (angular velocity, velocity of the centre of mass) of moving bodies
    weights: Array  # scaled multipliers are weights times multipliers
    directions: Array
    unique: NDArray[np.bool_]


class Distribution(NamedTuple):
    """Loads of all joints and other rows at one state."""

    wrench: Array  # (joints, 6)
    unique: NDArray[np.bool_]  # (joints, 6)
    others: Array  # (rows of constraints and drivers,)
    residual: float  # largest unbalanced load on a body, N or N m


class RowOrder(NamedTuple):
    """Order of the rows of a balance: joints as the mechanism has them, then constraints."""

    names: tuple[str, ...]
    joints: NDArray[np.int64]  # body and cut of each joint of the tree
    row_cut: NDArray[np.int64]
    rows: NDArray[np.int64]
    others: tuple[str, ...]
    turns: NDArray[np.bool_]  # whether the other rows are of angles
    row_joint: NDArray[np.int64]  # joint of each row of a joint
    varying: list[tuple[int, int, int]]  # joints whose wrenches depend on the pose, with their rows


def _order(system: System, cut: NDArray[np.int64], cut_of: Mapping[int, int]) -> RowOrder:
    """Order of the rows; floating bodies included, on whose speeds user forces may act, though they have no rows."""
    own = [j for j in system.joints.values() if j.name in system.mechanism.joints]
    cuts = [cut_of[j.body] if j.in_tree else j.cut for j in own]
    constraints = range(len(system.topology.cuts), len(system.model.cut))
    counts = cut[[*cuts, *constraints], rec.C_ROWS]
    row_cut = np.repeat(np.array([*cuts, *constraints], np.int64), counts)
    within = np.arange(len(row_cut)) - np.repeat(np.cumsum(counts) - counts, counts)
    others = tuple(system.constraint_rows[sum(len(j.spec.rows_when_cut) for j in own if not j.in_tree) :])
    dimension = dict(zip(system.constraint_rows, system.row_dimensions, strict=True))
    of_joints = [len(j.spec.rows_when_cut) for j in own]
    ends = np.cumsum(of_joints).tolist()
    return RowOrder(
        tuple(j.name for j in own),
        np.array([[i, k] for i, k in cut_of.items()], np.int64).reshape(-1, 2),
        row_cut,
        cut[row_cut, rec.C_ROW] + within,
        others,
        np.array([dimension[label] == "angle" for label in others], bool),
        np.repeat(np.arange(len(own)), of_joints),
        [(n, ends[n] - of_joints[n], ends[n]) for n, j in enumerate(own) if j.spec.rows_vary],
    )


class Balance:
    """Rows of all joints and constraints of a system over its free bodies, as a sparse matrix at one state."""

    def __init__(self, system: System):
        # rows left open within a tolerance carry loads like redundant rows
        self.tolerated = () if system.tolerated is None else system.tolerated.rows
        self.least = least_part(system)
        system = system.exact or system
        shared = system.kept.origin if system.kept.origin is not None else system
        shared = shared if shared.ints is system.ints else system  # structure alone decides these
        self.ints, self.floats, self.cut_of = with_cuts(system, [j.body for j in system.joints.values() if j.in_tree])
        self.array = np.zeros(rec.system_sizes(self.ints)[2])
        self.work: rec.Work = opened(rec.open_work, self.ints, self.array)
        model: rec.Model = opened(rec.open_model, self.ints, self.floats)
        self.cut, self.frames, self.constants = model.cut, model.cut_frames, model.constants
        order: RowOrder = shared.kept.find("rows of reactions", None, lambda: _order(system, self.cut, self.cut_of))
        self.names, self.others, self.joints = order.names, order.others, order.joints
        self.row_cut, self.rows, self.turns, self.row_joint = order.row_cut, order.rows, order.turns, order.row_joint
        self._varying = order.varying
        self._scratch: dict[int, DistributionScratch] = {}
        self._shapes: list[tuple[float, float]] | None = None  # parameters of the joints whose directions are known
        self._read(system)

    def use_numbers(self, system: System) -> None:
        """Continue with another system of the same structure, whose plans are alike, as if it were made for it."""
        if system is not self.system:
            _, self.floats[...], _ = with_cuts(system, [j.body for j in system.joints.values() if j.in_tree])
            self._read(system)

    def _read(self, system: System) -> None:
        """Take what depends on the numbers of a system, except for its arrays."""
        self.system, own = system, [system.joints[name] for name in self.names]
        shapes = [j.par for j in own]
        if shapes != self._shapes:
            self.direction = np.vstack([np.zeros((0, 6)), *(j.spec.row_wrenches(np.eye(3), j.par) for j in own)])
            self._shapes = shapes
        self.varying = [(own[n], first, end) for n, first, end in self._varying]
        self.redundant: bool | None = None  # whether rows depended on others when they were last distributed
        self.turned = np.flatnonzero(system.model.armature)  # speeds with armature
        # of the equations of balance: those of one link, so that they are of the order of one however many there are
        self.units = np.tile([1.0] * 3 + [system.link_length] * 3, system.nb)

    @cached_property
    def structure(self) -> DistributionTables:
        """Tables of the compiled distribution; all threads share them."""
        system, cut_of = self.system, self.cut_of

        def make() -> DistributionTables:
            free = system.mechanism.user_constraints  # their rows act on all speeds: every joint stays in the tree
            severed = () if free else plan_elimination(system).forest.severed
            rows = Rows(self.row_cut, self.cut, cut_of, system.model.n_user)
            place = {name: n for n, name in enumerate(self.names)}
            varying = [(place[j.name], cut_of[j.body] if j.in_tree else j.cut, k) for j, k, _ in self.varying]
            return DistributionPlanner(system, rows, severed).structure(varying, self.row_joint)

        origin = system.kept.origin
        alike = origin is not None and plans_alike(system, origin)
        return (origin if alike else system).kept.find("distribution", self.tolerated, make)

    def scratch(self, columns: int) -> DistributionScratch:
        """Arrays of the compiled distribution for so many right sides."""
        if columns not in self._scratch:
            rows = len(self.row_cut) + len(self.system.model.linear) + self.system.model.n_user
            self._scratch[columns] = scratch(self.structure, rows, columns)
        return self._scratch[columns]

    def directions(self, motion: Motion) -> Array:
        """Wrench (torque, force) of each row of a joint at closure, in axes of F."""
        found = self.direction.copy()
        for j, first, end in self.varying:
            found[first:end] = j.spec.row_wrenches(relative_pose(j, motion)[0], j.par)
        return found

    def loads(self, state: State, a: Array) -> Array:
        """Loads of the joints on each body for the accelerations `a`; leaves the rows in the work array."""
        w, system = self.work, self.system
        w.t[0], w.q[:], w.v[:], w.a[:], w.tau[:] = state.t, state.q, state.v, a, 0.0
        add_user_forces(system, state.t, state.q, state.v, w.tau)
        load = np.zeros((len(w.body), 6))
        balance(self.ints, self.floats, self.array, self.joints, load)
        return load

    def end(self, state: State) -> End:
        """Data of one end of a step for :func:`impulses`."""
        system = self.system
        load = self.loads(state, np.zeros(system.nv))  # loads of the joints for zero accelerations
        body, data = self.work.body, system.model.body
        R = body[:, rec.R : rec.R + 9].reshape(-1, 3, 3)
        inertia, mass = R @ system.inertias @ R.transpose(0, 2, 1), data[:, rec.MASS, None]
        arm = np.einsum("nij,nj->ni", R, data[:, rec.COM : rec.COM + 3])
        W, V, AW, AV = (body[:, k : k + 3] for k in (rec.W, rec.V, rec.AW, rec.AV))
        spin, drift = np.einsum("nij,nj->ni", inertia, W), np.cross(W, arm)
        twist = np.einsum("nij,nj->ni", inertia, AW) + np.cross(W, spin)
        push = mass * (AV + np.cross(AW, arm) + np.cross(W, drift))
        of_joints = np.hstack([load[:, :3] - np.cross(arm, load[:, 3:]), load[:, 3:]])
        rows, weights, directions = self.scaled_rows(state, system.size, None)
        moves = _moves(arm[system.n_bases :])
        rows = (rows @ scipy.sparse.diags(1.0 / self.units) @ moves @ scipy.sparse.diags(self.units)).tocsr()
        momentum, applied = np.hstack([spin, mass * (V + drift)]), np.hstack([twist, push]) - of_joints
        unique = self.are_unique(directions, self.indeterminacy(rows)[1])
        return End(momentum, applied, self.of_rotors(arm), rows, weights, directions, unique)

    def of_rotors(self, arm: Array) -> Array:
        """Loads (bodies, 6, m) about the centres of mass, at the present state, that turn the m rotors.

        `arm` (bodies, 3): from the reference points to the centres of mass.
        """
        armature = self.system.model.armature
        out = np.zeros((len(arm), 6, len(self.turned)))
        for m, k in enumerate(self.turned):
            load = self.of_motors({self.system.speeds[k]: float(armature[k])})
            load[:, :3] -= np.cross(arm, load[:, 3:])
            out[:, :, m] = load
        return out

    def of_motors(self, loads: Mapping[str, float]) -> Array:
        """Loads on the bodies (bodies, 6) of loads on joint speeds, at the state of the last :meth:`loads`."""
        total = np.zeros(6 * len(self.work.body))
        known = self.system.labels.speeds
        wrong = [label for label in loads if label not in known]
        if wrong:
            raise unknown("loads", "joint speed", wrong, known)
        for label, value in loads.items():
            j, k, *_ = known[label]
            total += value * self._dual_rows(j, [k]).toarray()[0]
        return total.reshape(-1, 6)

    def matrix(self, state: State) -> scipy.sparse.csr_matrix:
        """Rows over the motions of the bodies (angular velocity, velocity of the reference point; world axes)."""
        body = self.work.body
        X, R = body[:, rec.X : rec.X + 3], body[:, rec.R : rec.R + 9].reshape(-1, 3, 3)
        parent, child = self.cut[self.row_cut, rec.C_PARENT], self.cut[self.row_cut, rec.C_CHILD]
        points = self.frames[self.row_cut, rec.M_POINT : rec.M_POINT + 3]
        x = X[child] + np.einsum("nij,nj->ni", R[child], points)
        G = self.work.rows[self.rows]
        torque, force = G[:, :3], G[:, 3:]
        parts = [_coo(_pair_rows(torque, force, x, body, parent, child), len(body))]
        duals = self._duals()
        related = self.system.model.linear
        if len(related):
            parts.append(scipy.sparse.vstack([self._relation(row, duals) for row in related]))
        if self.system.mechanism.user_constraints:
            rows = user_rows(self.system)(state.t, state.q, state.v)
            parts.append(scipy.sparse.csr_matrix(rows.J) @ duals.T)
        rows = parts[0] if len(parts) == 1 else scipy.sparse.vstack(parts).tocoo()
        bases = 6 * self.system.n_bases
        moves = rows.col >= bases
        place = rows.row[moves], rows.col[moves] - bases
        return scipy.sparse.csr_matrix((rows.data[moves], place), shape=(rows.shape[0], rows.shape[1] - bases))

    def _duals(self) -> scipy.sparse.csr_matrix:
        """Loads on the bodies (6 rows each) of unit loads on the speeds of the tree (columns)."""
        if not (len(self.system.model.linear) or self.system.mechanism.user_constraints):
            return scipy.sparse.csr_matrix((6 * len(self.work.body), self.system.nv))
        # in the order of the speeds, which is that of the tree and not of the joints in the model
        tree = sorted((j for j in self.system.joints.values() if j.in_tree), key=lambda j: j.v0)
        parts = [self._dual_rows(j, range(len(j.spec.speeds))) for j in tree if j.spec.speeds]
        return scipy.sparse.vstack(parts).tocsr().T

    def _dual_rows(self, j: JointData, freedoms: Iterable[int]) -> scipy.sparse.coo_matrix:
        """Loads on the bodies of unit loads on freedoms of a joint, one row each."""
        body = self.work.body
        data = self.system.model.body
        R = [body[b, rec.R : rec.R + 9].reshape(3, 3) for b in (j.parent, j.child)]
        own = [data[b, rec.BODY_AXES : rec.BODY_AXES + 9].reshape(3, 3) for b in (j.parent, j.child)]
        F, M = R[0] @ own[0] @ j.F[1], R[1] @ own[1] @ j.M[1]
        place = data[j.child, rec.ORIGIN : rec.ORIGIN + 3] + own[1] @ j.M[0]
        x = body[j.child, rec.X : rec.X + 3] + R[1] @ place
        torque, force = np.hsplit(wrenches(j.spec, F, M, j.par)[list(freedoms)], 2)
        return _coo(_pair_rows(torque, force, x, body, j.parent, j.child), len(body))

    def _relation(self, relation: Array, duals: scipy.sparse.csr_matrix) -> scipy.sparse.csr_matrix:
        """Row of a relation of coordinates."""
        _, first, count, *_ = (int(x) for x in relation)
        cut_joints = {j.cut: j for j in self.system.joints.values() if j.cut >= 0}
        row = scipy.sparse.csr_matrix((1, duals.shape[0]))
        for e in range(first, first + count):
            cut, freedom, *_ = (int(x) for x in self.system.model.entry[e])
            part = duals[:, [freedom]].T if cut < 0 else self._dual_rows(cut_joints[cut], [freedom])
            row = row + self.work.factor[e] * part
        return row

    def distribute(
        self, state: State, load: Array, length: float, compliance: Mapping[str, ArrayLike] | None
    ) -> Distribution:
        """Multipliers of minimum norm that balance `load` (bodies, 6), and which of them are unique."""
        A, weights, directions = self.scaled_rows(state, length, compliance)
        b = self.units * load[self.system.n_bases :].ravel()
        y, indeterminacy = self.indeterminacy(A, b[:, None])
        residual = float(np.abs((b - A.T @ y[:, 0]) / self.units).max(initial=0.0))
        n, lam = len(directions), y[:, 0] / weights
        wrench, unique = self.wrenches(lam, directions), self.are_unique(directions, indeterminacy)
        return Distribution(wrench, unique, lam[n:], residual)

    def scaled_rows(
        self, state: State, length: float, compliance: Mapping[str, ArrayLike] | None
    ) -> tuple[scipy.sparse.csr_matrix, Array, Array]:
        """Rows at the state of the last :meth:`loads`, scaled by weights of the norm and `units`; weights; directions.

        The norm of the scaled multipliers weights*lam is Euclidean; equations of balance may have any scale.
        """
        J, directions = self.matrix(state), self.directions(body_motion(self.system, state))
        of_joints = np.sum(compliances(self.names, length, compliance)[self.row_joint] * directions**2, axis=1)
        weights = np.sqrt(np.append(of_joints, np.where(self.turns, 1.0 / length**2, 1.0)))
        values = J.data / np.repeat(weights, np.diff(J.indptr)) * self.units[J.indices]
        return scipy.sparse.csr_matrix((values, J.indices, J.indptr), shape=J.shape), weights, directions

    def indeterminacy(self, A: scipy.sparse.csr_matrix, *right: Array) -> tuple[Array, Array]:
        """Minimum-norm solutions for the right sides, and the part of each row in self-balanced sets of reactions."""
        if self.tolerated:
            return self._indeterminacy_within_tolerance(A, *right)
        probes = np.random.default_rng(0).normal(size=(A.shape[0], PROBES))
        y = smallest_solution(A, np.column_stack([*right, A.T @ probes]))
        return y[:, :-PROBES], np.sqrt(np.mean((probes - y[:, -PROBES:]) ** 2, axis=1))

    def _indeterminacy_within_tolerance(self, A: scipy.sparse.csr_matrix, *right: Array) -> tuple[Array, Array]:
        """:meth:`indeterminacy` with rows that depend on others up to a tolerance: the rank is that without these rows.

        The balance is then satisfied up to the load times the tolerance.
        """
        labels = self.system.constraint_rows
        left = [labels[k] in self.tolerated if k < self.system.nc else False for k in self.rows]
        others = np.append(~np.array(left, bool), np.ones(A.shape[0] - len(left), bool))
        rows = A.toarray()
        kept = of_matrix(rows[others]).count
        U, s, Vt = np.linalg.svd(rows, full_matrices=False)
        y = U[:, :kept] @ ((Vt[:kept] @ np.column_stack([*right, np.zeros(A.shape[1])])) / s[:kept, None])
        return y[:, :-1], np.sqrt(np.maximum(1.0 - (U[:, :kept] ** 2).sum(axis=1), 0.0))

    def unique_near_singular(self, pose: State) -> NDArray[np.bool_]:
        """Flags of the components of each joint that are unique near a singular pose; none of large systems."""
        if is_large(self.system):
            return np.zeros((len(self.names), 6), bool)
        self.loads(pose, np.zeros(self.system.nv))
        rows, _, directions = self.scaled_rows(pose, self.system.size, None)
        U, s, _ = np.linalg.svd(rows.toarray())
        kept = int(np.count_nonzero(s > LOST * s[0]))
        indeterminacy = np.sqrt((U[:, kept:] ** 2).sum(axis=1))
        indeterminacy = np.where(indeterminacy > LOST, indeterminacy, 0.0)  # the pose is not known better
        return self.are_unique(directions, indeterminacy)

    def wrenches(self, lam: Array, directions: Array) -> Array:
        """Wrenches (joints, 6) of multipliers, those of joints first."""
        wrench = np.zeros((len(self.names), 6))
        np.add.at(wrench, self.row_joint, lam[: len(directions), None] * directions)
        return wrench

    def are_unique(self, directions: Array, indeterminacy: Array) -> NDArray[np.bool_]:
        """Components of each joint that no self-balanced set of reactions contains."""
        unique = np.ones((len(self.names), 6), bool)
        held = (np.abs(directions) <= UNIQUE) | (indeterminacy[: len(directions), None] < self.least)
        np.logical_and.at(unique, self.row_joint, held)
        return unique


def _moves(arm: Array) -> scipy.sparse.bsr_matrix:
    """Velocities of reference points from those of centres of mass; `arm` (n, 3) leads from those to these."""
    n, zero, (x, y, z) = len(arm), np.zeros(len(arm)), arm.T
    blocks = np.tile(np.eye(6), (n, 1, 1))
    blocks[:, 3:, :3] = np.array([[zero, -z, y], [z, zero, -x], [-y, x, zero]]).transpose(2, 0, 1)
    return scipy.sparse.bsr_matrix((blocks, np.arange(n), np.arange(n + 1)))


@contextmanager
def balance_of(system: System) -> Iterator[Balance]:
    """The balance of a system; meanwhile nobody else has its work array.

    It is kept with the system or, if this one has been made of another by other numbers, with that one for all alike.
    """
    origin = system.kept.origin
    alike = origin is not None and system.tolerated is None and system.exact is None
    alike = alike and plans_alike(system, origin) and origin.tolerated is None and origin.exact is None
    home = origin if alike else system
    own = home.kept.take("balance", lambda: Balance(system))
    own.use_numbers(system.exact or system)
    own.constants[...] = system.model.constants  # inputs of a simulation change them
    yield own
    home.kept.give("balance", own)


def _pair_rows(torque: Array, force: Array, x: Array, body: Array, parent: Any, child: Any) -> PairRows:
    """Rows that act at x on the child, and with opposite sign on the parent, about their reference points."""
    sides = []
    for b, sign in ((child, 1.0), (parent, -1.0)):
        moment = torque + np.cross(x - body[b, rec.X : rec.X + 3], force)
        sides.append((np.broadcast_to(b, len(torque)), sign * np.hstack([moment, force])))
    return sides


def _coo(sides: PairRows, bodies: int) -> scipy.sparse.coo_matrix:
    n = len(sides[0][1])
    rows = np.tile(np.repeat(np.arange(n), 6), 2)
    columns = np.concatenate([(6 * b[:, None] + np.arange(6)).ravel() for b, _ in sides])
    values = np.concatenate([block.ravel() for _, block in sides])
    return scipy.sparse.coo_matrix((values, (rows, columns)), shape=(n, 6 * bodies))


def indeterminate_parts(system: System, state: State) -> Array:
    """Part of each row in self-balanced sets of reactions: rows of the joints of the mechanism, then constraints.

    A row is statically indeterminate from :func:`least_part` on. Moments are measured by forces on an arm of one link.
    """
    with balance_of(system) as of_system:
        of_system.loads(state, np.zeros(system.nv))
        rows = of_system.scaled_rows(state, system.link_length, None)[0]
        return of_system.indeterminacy(rows)[1]
