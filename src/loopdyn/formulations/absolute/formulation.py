"""Newton-Euler equations of all bodies with the constraint equations of all joints, and methods to solve them.

I. H. Mufti, *Equations of motion for rigid multibody systems*, National Research Council Canada,
Division of Mechanical Engineering, DM-3 (NRC 22797), 1983.

| paper | code | shape | meaning |
|---|---|---|---|
| (r'', w') | `x` | (6n,) | accelerations of the centres of mass, then angular accelerations, world axes |
| diag(M, I) | `mass`, `inertia` | (n,), (n, 3, 3) | masses; inertias about the centres of mass, world axes |
| (u_1, u_2) | `u` | (6n,) | loads less gyroscopic torques |
| H^T | `H` rows: `J` | (rows, 6n) | rows of all joints, of the tree and cut |
| -(u_3, u_4) | `gamma` | (rows,) | their right side |
| (f, lambda) | `-lam` | (rows,) | multipliers; ours act on the declared child |
| K, D, T, u-bar_2 | as in ``tests/literature/mufti1983.py`` | | barycentric form |
| Y, Z | `Y`, `Z` | | H^T Y = 1, H^T Z = 0 (Appendix) |

| solver | equations | unknowns at once |
|---|---|---|
| `kkt`, `sparse` | (10), (49), (63) | x and all multipliers |
| `schur` | (12)-(14), (50), by (A-3)-(A-5) or (A-7)-(A-12) | all multipliers |
| `barycentric` | (28), (51), (72), (73) | w', one point of each floating part, remaining multipliers |
| `nullspace` | (40-a)-(40-c), (A-6), (A-10) | free motions |
| `penalty` | Gauss's principle (39) with a penalty, Remark 1 | x |

Deviations
----------
- Any joint and constraint of a system is treated, by its rows; the paper has ball, universal, pin and prismatic
  joints. Multipliers have the signs of loopdyn: on the declared child, the negative of the paper's.
- `barycentric` eliminates the hinge forces of the tree's ball, universal and pin joints; all other rows keep their
  multipliers. Each group of bodies so connected has its own barycentres; if no hinge connects it to a base, its centre
  of mass replaces the paper's r_1, which makes J of (70) symmetric and diag(m, K), also for cuts to the ground.
- A singular inertia: `schur` uses diag(M, I) + J^T w J and u + J^T w gamma, which have the same solution. The other
  solvers take it as it is.
- Loads on freedoms of tree joints (motors, springs, user forces) are carried over as wrenches on the two bodies that
  do the same work, so that angles beyond half a turn count as in the tree.
- Remark 4 (Baumgarte) is off by default. It acts on position and velocity of the rows of cut joints and
  constraints; tree joints cannot drift, since their coordinates are the state.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, get_args

import numpy as np
import scipy
from numpy.typing import NDArray

from loopdyn.engine import records as rec
from loopdyn.errors import LoopdynError, SingularityError
from loopdyn.formulations.absolute import kernels
from loopdyn.formulations.base import Array, Formulation, FunctionSolver, Solution, Solver
from loopdyn.loops.free_bodies import carried_rows
from loopdyn.loops.rank import Rank, scaled
from loopdyn.spatial.rotations import from_matrix
from loopdyn.system.builder import build
from loopdyn.system.support import SUPPORT
from loopdyn.system.system import State, System
from loopdyn.tree import rnea
from loopdyn.tree.functions import Motion, add_user_forces, body_motion, readings, terms

Method = Literal["kkt", "sparse", "schur", "barycentric", "nullspace", "penalty"]
Dependent = Literal["qr", "svd"]

# Joints that hold two body points together: their forces are eliminated by barycentres.
POINT_JOINTS = ("spherical", "universal", "revolute")

# The augmented Lagrangian stops when a step no longer halves the residual, or after so many steps.
MOST_STEPS = 20


@dataclass(frozen=True)
class Absolute(Formulation):
    """Absolute coordinates: all bodies free, all joints constraints.

    Parameters
    ----------
    solver : str
        "kkt", "sparse", "schur", "barycentric", "nullspace" or "penalty"; see the table in the module.
    dependent : str
        Treatment of dependent rows: "qr" keeps an independent set and gives the others no load, "svd" gives
        multipliers of minimum norm over the rows of all joints.
    penalty : float
        Weight of the squared residual against the inertias, both in units of the mechanism; for "penalty".
    augmented : bool
        Whether "penalty" repeats the step with the multipliers found until the residual no longer falls.
    baumgarte : (alpha, beta), optional
        phi'' + alpha phi' + beta phi = 0 in place of phi'' = 0. Off by default.

    Examples
    --------
    >>> import loopdyn as ld
    >>> from loopdyn.loops.rank import decide
    >>> system = ld.library.four_bar().compile()
    >>> state = system.state()
    >>> solve = Absolute(solver="nullspace").prepare(system, decide(system, state))
    >>> solve(state.t, state.q, state.v).a.shape
    (3,)
    >>> ld.Absolute(solver="lu")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    loopdyn.errors.ModelError: Absolute: solver is 'lu'. Give 'kkt' or 'sparse' or 'schur' or ...
    """

    name: ClassVar[str] = "absolute"
    uses_absolute: ClassVar[bool] = True

    solver: Method = "kkt"
    dependent: Dependent = "qr"
    penalty: float = 1e6
    augmented: bool = True
    baumgarte: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        for key, known in (("solver", get_args(Method)), ("dependent", get_args(Dependent))):
            if getattr(self, key) not in known:
                raise LoopdynError(f"{key} = {getattr(self, key)!r} is unknown; known: {', '.join(known)}")
        if not self.penalty > 0.0:
            raise LoopdynError(f"penalty = {self.penalty} is not positive")
        if self.baumgarte is not None and (len(self.baumgarte) != 2 or min(self.baumgarte) < 0.0):
            raise LoopdynError(f"baumgarte = {self.baumgarte} is not a pair of numbers that are not negative")
        object.__setattr__(self, "approximate", self.solver == "penalty")

    def supports(self, system: System) -> str | None:
        """All systems without armature, which is an inertia of coordinates: the equations are those of free bodies."""
        for j in system.joints.values():
            if j.in_tree and system.model.armature[j.v0 : j.v0 + len(j.spec.speeds)].any():
                return f"joint '{j.name}' has armature, and these are the equations of free bodies; use 'graph'"
        return super().supports(system)

    def plan(self, system: System) -> str:
        """One line."""
        full = _all_cut(system)
        size = {
            "schur": f"{full.nc} multipliers",
            "nullspace": f"{6 * system.nb} accelerations, null space of {full.nc} rows",
            "penalty": f"{6 * system.nb} accelerations",
        }.get(self.solver, f"{6 * system.nb} accelerations and {full.nc} multipliers")
        if self.solver == "barycentric":
            hinges = _Hinges(system)
            unknowns = 3 * system.nb + 3 * len(hinges.floating)
            size = f"{unknowns} accelerations and {full.nc - 3 * len(hinges.bodies)} multipliers"
        return f"absolute ({self.solver}): {system.nb} bodies, {full.nc} rows of all joints; {size} at once"

    def prepare(self, system: System, rank: Rank) -> Solver:
        """Prepare the system with all joints cut, and the solver."""
        bodies = _BodyLevel(system, rank, self.baumgarte)
        choose = _independent_by_qr if self.dependent == "qr" else _independent_by_svd
        solve_rows: Callable[[_Equations], tuple[Array, Array, dict[str, float]]] = {
            "kkt": lambda e: _kkt(choose(e)),
            "sparse": lambda e: _sparse(choose(e)),
            "schur": lambda e: _schur_svd(e) if self.dependent == "svd" else _schur(choose(e)),
            "barycentric": lambda e: _barycentric(e, bodies, choose),
            "nullspace": lambda e: _nullspace(choose(e)),
            "penalty": lambda e: _penalty(e, self.penalty, self.augmented),
        }[self.solver]

        def solve(t: float, q: Array, v: Array) -> Solution:
            equations = bodies.equations(State(t, q, v))
            try:
                x, lam, notes = solve_rows(equations)
            except np.linalg.LinAlgError:
                raise SingularityError(
                    f"absolute ({self.solver}): the equations of '{system.name}' are singular at t = {t:g} s. Either "
                    "a motion that the joints allow has no inertia, or the joints lose rank at this pose."
                ) from None
            return Solution(bodies.joint_accelerations(equations, x), lam[bodies.cut_rows], notes)

        return FunctionSolver(solve)


# ----------------------------------------------------------------------------------------- body level


@dataclass(frozen=True)
class _Equations:
    """diag(M, I) x = u + J^T lam, J x = gamma at one state; `rank` of the rows are independent."""

    mass: Array  # (n,)
    inertia: Array  # (n, 3, 3)
    u: Array  # (6n,)
    J: Array  # (rows, 6n)
    gamma: Array
    rank: int
    scale: Array  # (6n,) units of x
    thin: bool  # whether some inertia is singular
    tree_rows: NDArray[np.int64]  # numbers of rows that belong to tree joints: always independent
    closing: Array  # (nc, nv) scaled Jacobian of the cut rows in tree coordinates, if rows are dependent
    cut_rows: NDArray[np.int64]
    tree: rec.Work  # of the tree at zero joint accelerations
    rest: Motion  # the same at the bodies' own frames
    omega: Array  # (n, 3)
    com: Array  # (n, 3) from the own origin to the centre of mass

    @property
    def dense_mass(self) -> Array:
        """diag(M, I)."""
        n = len(self.mass)
        out = np.zeros((6 * n, 6 * n))
        out[np.arange(3 * n), np.arange(3 * n)] = np.repeat(self.mass, 3)
        for i, block in enumerate(self.inertia):
            k = 3 * (n + i)
            out[k : k + 3, k : k + 3] = block
        return out


def _all_cut(system: System) -> System:
    """Mechanism with every body free, without loads on freedoms of tree joints."""
    forces = {
        name: force
        for name, force in system.mechanism.forces.items()
        if not any(system.joints[joint].in_tree for joint in force.joints())
    }
    contacts = {  # of which compliant ones load freedoms, too
        name: contact
        for name, contact in system.mechanism.contacts.items()
        if not any(system.joints[joint].in_tree for joint in contact.joints())
    }
    bare = system.mechanism.model_copy(update={"forces": forces, "user_forces": {}, "contacts": contacts})
    return build(bare, "all", counted=())


class _BodyLevel:
    """Maps a state of the tree to the equations of the bodies, and their accelerations back."""

    def __init__(self, system: System, rank: Rank, baumgarte: tuple[float, float] | None):
        self.system, self.full, self.baumgarte = system, _all_cut(system), baumgarte
        full, nb = self.full, system.n_bases
        number = {name: k for k, name in enumerate(full.constraint_rows)}
        self.cut_rows = np.array([number[name] for name in system.constraint_rows], int)
        self.tree_rows = np.setdiff1d(np.arange(full.nc), self.cut_rows)
        self.rank = len(self.tree_rows) + rank.count
        self.redundant = rank.count < system.nc
        # bodies in the order of the tree; `order[i]` is the row of the same body in the arrays of `full`
        self.order = np.array([full.bodies.index(name) for name in system.bodies], int)
        joints = [next(j for j in full.joints.values() if j.body == row) for row in self.order[nb:]]
        self.q0, self.v0 = np.array([j.q0 for j in joints], int), np.array([j.v0 for j in joints], int)
        data = full.model.body[self.order]
        axes = data[:, rec.BODY_AXES : rec.BODY_AXES + 9].reshape(-1, 3, 3)
        self.com = full.mass_centres[self.order][nb:]  # in the body's own axes
        self.inertia = np.einsum("nji,njk,nkl->nil", axes[nb:], full.inertias[self.order][nb:], axes[nb:])
        self.mass = data[nb:, rec.MASS].copy()
        moments = np.linalg.eigvalsh(self.inertia)
        self.thin = bool(np.any(self.mass <= 0.0) or np.any(moments[:, 0] <= SUPPORT * moments[:, 2]))
        self.scale = np.repeat([system.size, 1.0], 3 * system.nb)
        self.hinges = _Hinges(system)
        rows = [number[f"{name}.{row}"] for name in self.hinges.names for row in ("fx", "fy", "fz")]
        self.hinge_rows = np.array(rows, int)  # eliminated by barycentres

    def equations(self, state: State) -> _Equations:
        """All terms, in accelerations of centres of mass and angular accelerations, world axes."""
        system, full, nb = self.system, self.full, self.system.n_bases
        work = self._tree_work(state)
        rest = body_motion(system, state)
        there = self._free_state(state, rest)
        now = terms(full, there, readings(system, full, state), carried_rows(system, state, full, there))
        R = rest.rotation[nb:]
        omega, com = rest.angular_velocity[nb:], np.einsum("nij,nj->ni", R, self.com)
        # speeds of body i = [R^T w, R^T (r' + c~ w)]; zero x needs accelerations `bias` of these speeds
        X = np.zeros((system.nb, 6, 6))  # columns: r', w
        X[:, 3:, :3] = X[:, :3, 3:] = R.transpose(0, 2, 1)
        X[:, 3:, 3:] = R.transpose(0, 2, 1) @ kernels.tilde(com)
        still = now.motion
        rows = self.order[nb:]
        bias = np.zeros((system.nb, 6))
        bias[:, :3] = np.einsum("nji,nj->ni", R, -still.angular_acceleration[rows])
        inward = -np.cross(omega, np.cross(omega, com))
        bias[:, 3:] = np.einsum("nji,nj->ni", R, inward - still.acceleration[rows])
        columns = self.v0[:, None] + np.arange(6)
        J = np.einsum("knc,ncx->knx", now.J[:, columns], X)
        full_bias = np.zeros(full.nv)
        full_bias[columns] = bias
        h = np.einsum("ncx,nc->nx", X, (now.h - now.M @ full_bias)[columns])
        gamma = now.gamma - now.J @ full_bias
        closing = np.zeros((0, 0))
        if self.redundant or self.baumgarte is not None:
            loops = terms(system, state)
            closing = scaled(system, loops.J)
            if self.baumgarte is not None:  # [Mufti1983 Remark 4]; the coordinates satisfy tree joints
                alpha, beta = self.baumgarte
                drift = alpha * (loops.J @ state.v + loops.phi_t) + beta * loops.phi * system.holonomic
                gamma[self.cut_rows] -= drift
        h += self._freedom_loads(work, state, rest.position[nb:] + com)
        return _Equations(
            self.mass,
            R @ self.inertia @ R.transpose(0, 2, 1),
            np.concatenate([h[:, :3].ravel(), h[:, 3:].ravel()]),
            np.hstack([J[:, :, :3].reshape(full.nc, -1), J[:, :, 3:].reshape(full.nc, -1)]),
            gamma,
            self.rank,
            self.scale,
            self.thin,
            self.tree_rows,
            closing,
            self.cut_rows,
            work,
            rest,
            omega,
            com,
        )

    def _tree_work(self, state: State) -> rec.Work:
        """Work arrays of the tree for zero joint accelerations: reference points, motion subspaces, loads."""
        work = self.system.work()
        w = self.system.open_work(work)
        w.t[0], w.q[:], w.v[:] = state.t, state.q, state.v
        rnea.rnea(self.system.ints, self.system.floats, work)
        return w

    def _free_state(self, state: State, rest: Motion) -> State:
        """Poses and velocities as coordinates of free bodies, relative to the ground."""
        q, v = np.zeros(self.full.nq), np.zeros(self.full.nv)
        R0, p0, w0, v0 = rest.rotation[0], rest.position[0], rest.angular_velocity[0], rest.velocity[0]
        for i, (iq, iv) in enumerate(zip(self.q0, self.v0, strict=True), self.system.n_bases):
            R, d = rest.rotation[i], rest.position[i] - p0
            q[iq : iq + 3] = R0.T @ d
            q[iq + 3 : iq + 7] = from_matrix(R0.T @ R)
            v[iv : iv + 3] = R.T @ (rest.angular_velocity[i] - w0)
            v[iv + 3 : iv + 6] = R.T @ (rest.velocity[i] - v0 - np.cross(w0, d))
        return State(state.t, q, v)

    def _freedom_loads(self, work: rec.Work, state: State, centres: Array) -> Array:
        """Loads on freedoms of tree joints as forces and torques on the bodies, (n, 6)."""
        system, nb = self.system, self.system.n_bases
        load = work.load.copy()
        add_user_forces(system, state.t, state.q, state.v, load)
        out = np.zeros((len(work.body), 6))
        for i in np.flatnonzero(system.model.tree[:, rec.NV]):
            parent, v0, nv = system.model.tree[i, [rec.PARENT, rec.V0, rec.NV]]
            if i < nb or not load[v0 : v0 + nv].any():
                continue
            S = work.dof[v0 : v0 + nv, : rec.SV + 3].T
            wrench = np.linalg.pinv(S).T @ load[v0 : v0 + nv]  # about the reference point
            for body, sign in ((i, 1.0), (parent, -1.0)):
                if body >= nb:
                    arm = work.body[i, rec.X : rec.X + 3] - centres[body - nb]
                    out[body, :3] += sign * wrench[3:]
                    out[body, 3:] += sign * (wrench[:3] + np.cross(arm, wrench[3:]))
        return out[nb:]

    def joint_accelerations(self, e: _Equations, x: Array) -> Array:
        """Accelerations of the tree coordinates, joint by joint, from the accelerations x of the bodies."""
        system, nb, n3 = self.system, self.system.n_bases, 3 * self.system.nb
        alpha = np.zeros((len(e.rest.position), 3))
        linear = np.zeros_like(alpha)
        wd = x[n3:].reshape(-1, 3)
        origin = x[:n3].reshape(-1, 3) - np.cross(wd, e.com) - np.cross(e.omega, np.cross(e.omega, e.com))
        alpha[nb:] = wd - e.rest.angular_acceleration[nb:]
        linear[nb:] = origin - e.rest.acceleration[nb:]
        a = np.zeros(system.nv)
        tree, points = system.model.tree, e.tree.body[:, rec.X : rec.X + 3]
        for i in range(nb, len(tree)):
            parent, v0, nv = tree[i, [rec.PARENT, rec.V0, rec.NV]]
            if not nv:
                continue
            at = [linear[k] + np.cross(alpha[k], points[i] - e.rest.position[k]) for k in (i, parent)]
            S = e.tree.dof[v0 : v0 + nv, : rec.SV + 3].T
            twist = np.concatenate([alpha[i] - alpha[parent], at[0] - at[1]])
            a[v0 : v0 + nv] = np.linalg.lstsq(S, twist, rcond=None)[0]
        return a


# ------------------------------------------------------------------------------------- dependent rows


@dataclass(frozen=True)
class _Independent:
    """Equations with independent rows J = back^T (all rows); lam = back y."""

    e: _Equations
    J: Array
    gamma: Array
    back: Callable[[Array], Array]


def _independent_by_qr(e: _Equations) -> _Independent:
    """All rows of tree joints, and the cut rows that a pivoted QR chooses first."""
    rows = len(e.gamma)
    if e.rank == rows:
        return _Independent(e, e.J, e.gamma, lambda y: y)
    count = e.rank - len(e.tree_rows)
    pivots = scipy.linalg.qr(e.closing.T, mode="r", pivoting=True)[1][:count]
    kept = np.sort(np.concatenate([e.tree_rows, e.cut_rows[pivots]]))

    def back(y: Array) -> Array:
        lam = np.zeros(rows)
        lam[kept] = y
        return lam

    return _Independent(e, e.J[kept], e.gamma[kept], back)


def _independent_by_svd(e: _Equations) -> _Independent:
    """Combinations of rows that belong to the largest singular values [Mufti1983 eqs. (A-7)-(A-9)]."""
    if e.rank == len(e.gamma):
        return _Independent(e, e.J, e.gamma, lambda y: y)
    W = np.linalg.svd(e.J * e.scale, full_matrices=False)[0][:, : e.rank]
    return _Independent(e, W.T @ e.J, W.T @ e.gamma, lambda y: W @ y)


# -------------------------------------------------------------------------------------------- solvers


def _kkt(r: _Independent) -> tuple[Array, Array, dict[str, float]]:
    """All unknowns at once [Mufti1983 eqs. (10), (49), (63)]."""
    e, D = r.e, r.e.scale
    x, y = kernels.saddle(e.dense_mass * np.outer(D, D), D * e.u, (r.J * D).T, r.gamma)
    return D * x, r.back(y), {"order": float(len(x) + len(y))}


def _sparse(r: _Independent) -> tuple[Array, Array, dict[str, float]]:
    """All unknowns at once, with sparse matrices."""
    e, n = r.e, len(r.e.mass)
    s = float(e.mass.sum()) / n or 1.0
    k = np.arange(n)
    rows = np.broadcast_to(3 * (n + k)[:, None, None] + np.arange(3)[None, :, None], (n, 3, 3)).ravel()
    columns = np.broadcast_to(3 * (n + k)[:, None, None] + np.arange(3)[None, None, :], (n, 3, 3)).ravel()
    diagonal = np.arange(3 * n)
    values = np.concatenate([np.repeat(e.mass, 3), e.inertia.ravel()]) / s
    places = (np.concatenate([diagonal, rows]), np.concatenate([diagonal, columns]))
    J = scipy.sparse.csc_array(r.J)
    matrix = scipy.sparse.block_array([[scipy.sparse.csc_array((values, places)), -J.T], [-J, None]], format="csc")
    try:
        z = scipy.sparse.linalg.splu(matrix).solve(np.concatenate([e.u / s, -r.gamma]))
    except RuntimeError as error:  # exactly singular
        raise np.linalg.LinAlgError(str(error)) from None
    return z[: 6 * n], r.back(s * z[6 * n :]), {"order": float(len(z)), "nonzeros": float(matrix.nnz)}


def _whitened(e: _Equations, J: Array, gamma: Array) -> tuple[Array, Array, Callable[[Array], Array]]:
    """L^-1 J^T, L^-1 u and the function L^-T, for diag(M, I) = L L^T; body by body if all inertias are regular."""
    n = len(e.mass)
    if e.thin:
        w = float(np.abs(e.dense_mass * np.outer(e.scale, e.scale)).max()) / _row_sizes(e, J) ** 2
        L = np.linalg.cholesky(e.dense_mass + J.T @ (w[:, None] * J))
        X = scipy.linalg.solve_triangular(L, np.column_stack([J.T, e.u + J.T @ (w * gamma)]), lower=True)
        return X[:, :-1], X[:, -1], lambda y: scipy.linalg.solve_triangular(L, y, lower=True, trans="T")
    root = np.sqrt(np.repeat(e.mass, 3))
    factors = np.linalg.cholesky(e.inertia)

    def forward(z: Array) -> Array:
        low = np.linalg.solve(factors, z[3 * n :].reshape(n, 3, -1)).reshape(3 * n, -1)
        return np.vstack([z[: 3 * n] / root[:, None], low])

    def backward(y: Array) -> Array:
        low = np.linalg.solve(factors.transpose(0, 2, 1), y[3 * n :].reshape(n, 3, 1)).ravel()
        return np.concatenate([y[: 3 * n] / root, low])

    X = forward(np.column_stack([J.T, e.u]))
    return X[:, :-1], X[:, -1], backward


def _schur(r: _Independent) -> tuple[Array, Array, dict[str, float]]:
    """Multipliers from the Cholesky factor of J diag(M, I)^-1 J^T [Mufti1983 eqs. (12)-(14), (50), (A-3)-(A-5)]."""
    X, free, backward = _whitened(r.e, r.J, r.gamma)
    R = np.linalg.qr(X, mode="r")
    y = scipy.linalg.solve_triangular(R, scipy.linalg.solve_triangular(R, r.gamma - X.T @ free, trans="T"))
    return backward(free + X @ y), r.back(y), {"order": float(len(y))}


def _schur_svd(e: _Equations) -> tuple[Array, Array, dict[str, float]]:
    """Multipliers of minimum norm for dependent rows [Mufti1983 eqs. (A-11), (A-12)]."""
    X, free, backward = _whitened(e, e.J, e.gamma)
    _, s, Wt = np.linalg.svd(X, full_matrices=False)
    W = Wt[: e.rank].T
    lam = W @ ((W.T @ (e.gamma - X.T @ free)) / s[: e.rank] ** 2)
    return backward(free + X @ lam), lam, {"order": float(len(lam))}


def _nullspace(r: _Independent) -> tuple[Array, Array, dict[str, float]]:
    """Accelerations along the free motions Z [Mufti1983 eqs. (40-a)-(40-c), (A-6), (A-10)]."""
    e, D = r.e, r.e.scale
    H = (r.J * D).T
    Y, Z = kernels.complement_by_qr(H)
    x, y = kernels.by_complement(e.dense_mass * np.outer(D, D), D * e.u, r.gamma, Y, Z)
    return D * x, r.back(y), {"order": float(Z.shape[1])}


def _penalty(e: _Equations, penalty: float, augmented: bool) -> tuple[Array, Array, dict[str, float]]:
    """Gauss's least constraint with a penalty on the residual; multipliers from it [Mufti1983 eq. (39), Remark 1]."""
    M = e.dense_mass * np.outer(e.scale, e.scale)
    w = penalty * float(np.trace(M)) / len(M) / _row_sizes(e, e.J) ** 2
    J = e.J * e.scale
    factor = scipy.linalg.cho_factor(M + J.T @ (w[:, None] * J))
    lam, last = np.zeros(len(e.gamma)), np.inf
    x, steps = np.zeros(len(M)), 0
    for steps in range(1, (MOST_STEPS if augmented else 1) + 1):  # noqa: B007
        trial = scipy.linalg.cho_solve(factor, e.scale * e.u + J.T @ (lam + w * e.gamma))
        residual = e.gamma - J @ trial
        size = float(np.abs(residual * np.sqrt(w)).max(initial=0.0))
        if not size < 0.5 * last:
            break
        x, lam, last = trial, lam + w * residual, size
    return e.scale * x, lam, {"steps": float(steps), "residual": last}


def _row_sizes(e: _Equations, J: Array) -> Array:
    size: Array = np.linalg.norm(J * e.scale, axis=1)
    size[size == 0.0] = 1.0
    return size


# ---------------------------------------------------------------------------------------- barycentric


class _Hinges:
    """Tree joints that hold points of two bodies together, and the groups of bodies they connect."""

    def __init__(self, system: System):
        nb, tree = system.n_bases, system.model.tree
        leading = {j.body: j for j in system.joints.values() if j.in_tree}
        self.bodies = [i - nb for i in range(nb, len(tree)) if leading[i].spec.type in POINT_JOINTS]
        self.parents = [int(tree[i + nb, rec.PARENT]) - nb for i in self.bodies]  # negative: a base
        self.names = {leading[i + nb].name for i in self.bodies}
        n = len(tree) - nb
        parent_of = dict(zip(self.bodies, self.parents, strict=True))
        self.floating: list[int] = []  # first bodies of groups that no hinge connects to a base
        self.group = np.full(n, -1)  # number of the floating group, -1 if it is connected to a base
        for i in range(n):
            if i not in parent_of:
                self.group[i] = len(self.floating)
                self.floating.append(i)
            elif parent_of[i] >= 0:
                self.group[i] = self.group[parent_of[i]]
        arcs = [(p if p >= 0 else -1, i) for i, p in parent_of.items()]
        self.C = kernels.incidence(arcs, n)
        S = np.column_stack([-np.eye(n)[:, self.floating], self.C])
        self.T2 = kernels.path_matrix(S)[len(self.floating) :]


def _barycentric(
    e: _Equations, bodies: _BodyLevel, choose: Callable[[_Equations], _Independent]
) -> tuple[Array, Array, dict[str, float]]:
    """Hinge forces of point joints eliminated by barycentric vectors [Mufti1983 eqs. (28), (51), (72), (73)]."""
    hinges, nb, n = bodies.hinges, bodies.system.n_bases, len(e.mass)
    points = e.tree.body[:, rec.X : rec.X + 3]
    centres = e.rest.position[nb:] + e.com
    nh, ng = len(hinges.bodies), len(hinges.floating)
    L, u3 = np.zeros((n, nh, 3)), np.zeros((nh, 3))
    for j, (i, p) in enumerate(zip(hinges.bodies, hinges.parents, strict=True)):
        point = points[i + nb]
        L[i, j] = -(point - centres[i])
        if p >= 0:
            L[p, j] = point - centres[p]
        else:  # [Mufti1983 Remark 3]
            k, arm = p + nb, point - e.rest.position[p + nb]
            spin = np.cross(e.rest.angular_velocity[k], np.cross(e.rest.angular_velocity[k], arm))
            u3[j] = e.rest.acceleration[k] + np.cross(e.rest.angular_acceleration[k], arm) + spin
    u3 += kernels.centripetal(e.omega, L).sum(axis=0)
    # B = T_2 mu, group by group; a group connected to a base has mu = 1
    in_group = (hinges.group[:, None] == np.arange(ng)).astype(float)  # (n, ng)
    m_group = in_group.T @ e.mass
    share = np.divide(e.mass, in_group @ m_group, out=np.zeros(n), where=in_group @ m_group > 0.0)
    B = hinges.T2 - (hinges.T2 @ (share[:, None] * in_group)) @ in_group.T
    D = -np.tensordot(L, B, (1, 0)).transpose(0, 2, 1)
    Dt, m3 = kernels.blocks(kernels.tilde(D)), np.repeat(e.mass, 3)
    K = (Dt * m3) @ Dt.T
    for i, block in enumerate(e.inertia):
        K[3 * i : 3 * i + 3, 3 * i : 3 * i + 3] += block
    moved = (B.T @ u3).ravel()
    u1, u2 = e.u[: 3 * n], e.u[3 * n :]
    P = kernels.expand(in_group)
    # unknowns: accelerations of the groups' centres of mass, w'; r'' = P r_c'' + D~^T w' - B^T u_3
    J = np.zeros((3 * ng + 3 * n, 3 * ng + 3 * n))
    J[: 3 * ng, : 3 * ng] = np.diag(np.repeat(m_group, 3))
    J[3 * ng :, 3 * ng :] = K
    u = np.concatenate([P.T @ u1, Dt @ (u1 + m3 * moved) + u2])
    # the remaining rows in these unknowns
    rest = np.setdiff1d(np.arange(len(e.gamma)), bodies.hinge_rows)
    Jr, Jw = e.J[rest, : 3 * n], e.J[rest, 3 * n :]
    remaining = replace(
        e,
        J=np.hstack([Jr @ P, Jr @ Dt.T + Jw]),
        gamma=e.gamma[rest] + Jr @ moved,
        rank=e.rank - 3 * nh,
        scale=np.repeat([bodies.system.size, 1.0], [3 * ng, 3 * n]),
        tree_rows=np.flatnonzero(np.isin(rest, e.tree_rows)),
        cut_rows=np.searchsorted(rest, e.cut_rows),
    )
    r = choose(remaining)
    s = remaining.scale
    z, y = kernels.saddle(J * np.outer(s, s), s * u, (r.J * s).T, r.gamma)
    z = s * z
    x = np.concatenate([P @ z[: 3 * ng] + Dt.T @ z[3 * ng :] - moved, z[3 * ng :]])
    lam = np.zeros(len(e.gamma))
    lam[rest] = r.back(y)
    return x, lam, {"order": float(len(z) + len(y))}
