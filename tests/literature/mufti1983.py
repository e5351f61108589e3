"""The matrices and equations of Mufti's report, one by one, for bodies joined at points.

I. H. Mufti, *Equations of motion for rigid multibody systems*, National Research Council Canada,
Division of Mechanical Engineering, DM-3 (NRC 22797), 1983.

Plain NumPy on body data, for tests and benchmarks; :class:`loopdyn.Absolute` applies the report to any system.

| paper | code | shape | meaning |
|---|---|---|---|
| n | `n` | | bodies |
| j+, j- | `arcs[j]` | (nh, 2) | bodies at the ends of hinge j, -1 for a body whose motion is given |
| c_ij, C | `C` | (n, nh) | incidence: +1 at j+, -1 at j- |
| R_i l_ij | `arms[j]` | (nh, 2, 3) | from the centre of mass to the hinge point, on j+ and on j- |
| L, L~, L^ | `L`, `Lt`, `Lh` | (n, nh, 3), (3n, 3nh), (n, nh, 3) | c_ij R_i l_ij, its tilde, its centripetal part |
| m_i, M | `m`, `M` | (n,), (3n, 3n) | masses |
| R_i I_i R_i^T, I | `I`, `Ib` | (n, 3, 3), (3n, 3n) | inertias about the centres of mass, inertial axes |
| R_i omega_i | `W` | (n, 3) | angular velocities, inertial axes |
| F_i, G_i, g_j | `F`, `G`, `g` | (n, 3), (n, 3), (nh, 3) | loads on bodies, torques in hinges (+ on j+) |
| u_1 ... u_4, u-bar_2 | `u1` ... `u4`, `u2_bar` | (3n,), (3n,), (3nh,), (nq,), (3n,) | right sides |
| T, T_2 | `T`, `T2` | (n, n), (nt, n) | inverse of S, which is C with the arc to the root; its rows of hinges |
| mu, B, A | `B`, `A` | (nt, n), (nt, nt) | T_2 mu; (C^T M^-1 C)^-1; nt tree hinges |
| D, D~, D^ | `D`, `Dt`, `Dh` | (n, n, 3), (3n, 3n), (n, n, 3) | barycentric vectors -L B |
| K | `K` | (3n, 3n) | inertia matrix of the augmented bodies |
| P, Q | `Pb`, `Qb` | (3nt, ng), (3nh, nq) | axes of rotation and of constraint |
| Q-bar | `Q_bar` | (3nh, nr) | directions in which a hinge transmits force |
| f, lambda, lambda_c, lambda* | `f`, `lam` | (3nh,), (nq,) | forces (+ on j+) and torques of constraint |
| H, J, Z, Y | `H`, `J`, `Z`, `Y` | | as in the Appendix |

Deviations
----------
- Where marks are lost or formulas misprinted in the available text, the corrected form is used:
  L~ and h^ in (10); E = T_1^T (T_1 M T_1^T)^-1 T_1 below (19); h'_i with the cross product and N summed over
  its second index in (38); u_4 = dQ^T/dt C^T w in (49); u-bar_2 and dP/dt in (57), (61); the second
  derivative of r^_0 in Remark 3; -L~ T_2 u_1 in (68); S^2 in (A-11). Tests prove each.
- The equation before (51) has lost its number; it is (50).
- (73) is right as printed only if all cut hinges join two bodies of the system. :func:`closed_by_cuts` uses the
  symmetric J = Z^T diag(M, I) Z, which is right for cuts to the ground too.
- A prismatic hinge (Remark 5) turns with j+: the lever arm of j+ reaches to the point of j- and 2 s' W x p is added
  to u_3 of its hinge (`u3_extra`).
- With a base whose motion is given, reduced rotations (61) get the terms of its angular velocity (`W0`, `W0_dot`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import block_diag, cho_factor, cho_solve, solve_triangular
from scipy.sparse.linalg import splu

from loopdyn.formulations.absolute.kernels import (
    blocks,
    centripetal,
    expand,
    incidence,
    path_matrix,
    saddle,
    tilde,
)

Array = NDArray[np.float64]


# ------------------------------------------------------------------------------------------ the bodies


@dataclass(frozen=True)
class Bodies:
    """Bodies, hinges and loads at one state, all vectors in inertial axes.

    The first hinges form a tree; the last `cuts` close loops. Either the tree has n - 1 hinges, or n with one or
    more that start at a body whose motion is given (-1, Remark 3).

    Parameters
    ----------
    m, I, W, F, G : arrays
        See the table at the top of the module.
    arcs : list of (int, int)
        Bodies j+ and j- of each hinge, -1 for a body whose motion is given.
    arms : (nh, 2, 3) array
        Lever arms R_i l_ij; that of a given body is not used.
    g : (nh, 3) array
        Torques in the hinges.
    cuts : int
        How many of the last hinges are cut.
    base : (nh, 3) array
        Acceleration of the hinge point on the given body, d2(r^_0)/dt2, in the rows of its hinges. [Remark 3]
    u3_extra : (nh, 3) array
        2 s' W_{j+} x p of prismatic hinges. [Remark 5]
    P, Q, Q_bar_axes : lists of (3, k) arrays
        Axes of each hinge: of rotation, of constraint torque, of constraint force. Ball joints by default.
    P_dot, Q_dot : lists of (3, k) arrays
        Their rates of change.
    W0, W0_dot : (3,) arrays
        Angular velocity and acceleration of the given body.

    Examples
    --------
    Two equal bodies, joined at a ball halfway, one of them pushed at its centre:

    >>> two = Bodies(
    ...     m=np.ones(2), I=np.array([np.eye(3)] * 2), W=np.zeros((2, 3)),
    ...     F=np.array([[0.0, 2.0, 0.0], [0.0, 0.0, 0.0]]), G=np.zeros((2, 3)),
    ...     arcs=[(0, 1)], arms=np.array([[[1.0, 0, 0], [-1.0, 0, 0]]]),
    ... )
    >>> float(kkt(two).f[1].round(3))
    -0.5
    """

    m: Array
    I: Array
    W: Array
    F: Array
    G: Array
    arcs: list[tuple[int, int]]
    arms: Array
    g: Array | None = None
    cuts: int = 0
    base: Array | None = None
    u3_extra: Array | None = None
    P: list[Array] | None = None
    P_dot: list[Array] | None = None
    Q: list[Array] = field(default_factory=list)
    Q_dot: list[Array] = field(default_factory=list)
    Q_bar_axes: list[Array] | None = None
    W0: Array = field(default_factory=lambda: np.zeros(3))
    W0_dot: Array = field(default_factory=lambda: np.zeros(3))

    # ---------------------------------------------------------------------------------- sizes, topology

    @property
    def n(self) -> int:
        """Number of bodies."""
        return len(self.m)

    @property
    def nh(self) -> int:
        """Number of hinges."""
        return len(self.arcs)

    @property
    def nt(self) -> int:
        """Number of hinges of the tree."""
        return self.nh - self.cuts

    @property
    def grounded(self) -> bool:
        """Whether the tree hangs on a body whose motion is given."""
        return self.nt == self.n

    @cached_property
    def C(self) -> Array:
        """C_c = (C, C*) [Mufti1983 eqs. (1), (62)]."""
        return incidence(self.arcs, self.n)

    @cached_property
    def T(self) -> Array:
        """Inverse of S = (-e_1, C), or of C itself with a given base [Mufti1983 eqs. (22), (23)]."""
        C = self.C[:, : self.nt]
        if self.grounded:
            return path_matrix(C)
        root = int(np.flatnonzero((C < 0).sum(axis=1) == 0)[0])
        return path_matrix(np.column_stack([-np.eye(self.n)[root], C]))

    @cached_property
    def T2(self) -> Array:
        """Rows of T that belong to hinges: T_2 C = 1 [Mufti1983 eq. (24)]."""
        return self.T if self.grounded else self.T[1:]

    # ------------------------------------------------------------------------------------- mass, arms, loads

    @cached_property
    def M(self) -> Array:
        """diag(m_i)."""
        return expand(np.diag(self.m))

    @cached_property
    def Ib(self) -> Array:
        """diag(R_i I_i R_i^T)."""
        return np.asarray(block_diag(*self.I))

    @cached_property
    def L(self) -> Array:
        """L_ij = c_ij R_i l_ij [Mufti1983 eq. (5)]."""
        L = np.zeros((self.n, self.nh, 3))
        for j, ends in enumerate(self.arcs):
            for end, sign, arm in zip(ends, (1.0, -1.0), self.arms[j], strict=True):
                if end >= 0:
                    L[end, j] = sign * arm
        return L

    @cached_property
    def Lt(self) -> Array:
        """L~."""
        return blocks(tilde(self.L))

    @cached_property
    def Lh(self) -> Array:
        """L^ [Mufti1983 eq. (10)]."""
        return centripetal(self.W, self.L)

    @cached_property
    def u1(self) -> Array:
        """F."""
        return self.F.ravel()

    @cached_property
    def u2(self) -> Array:
        """G + C g - h^ [Mufti1983 eq. (10)]."""
        gyroscopic = np.cross(self.W, np.einsum("nij,nj->ni", self.I, self.W))
        hinges = self.C @ self.g if self.g is not None else 0.0
        return np.asarray(self.G + hinges - gyroscopic).ravel()

    @cached_property
    def u3(self) -> Array:
        """L^^T 1_n, with the motion of the base [Remark 3] and of sliders [Remark 5]."""
        u = self.Lh.sum(axis=0)
        for extra in (self.base, self.u3_extra):
            if extra is not None:
                u = u + extra
        return np.asarray(u).ravel()

    # ----------------------------------------------------------------------------------------- joint axes

    @cached_property
    def Pb(self) -> Array:
        """diag(P_j) of the tree hinges; three axes where nothing else is given [Mufti1983 eq. (54), first]."""
        return _diagonal(self.P or [np.eye(3)] * self.nt)[: 3 * self.nt]

    @cached_property
    def Pb_dot(self) -> Array:
        """Rate of change of P."""
        return _diagonal(self.P_dot or [np.zeros((3, 3))] * self.nt)[: 3 * self.nt]

    @cached_property
    def Qb(self) -> Array:
        """diag(Q_j) of all hinges [Mufti1983 eq. (46)]."""
        return _diagonal(self.Q or [np.zeros((3, 0))] * self.nh)

    @cached_property
    def u4(self) -> Array:
        """dQ^T/dt C^T w, with the angular velocity of a given base [Mufti1983 eq. (49)]."""
        rate = self.C.T @ self.W + self.from_base[:, None] * self.W0
        turn = self.from_base[:, None] * self.W0_dot
        Q_dot = _diagonal(self.Q_dot or [np.zeros((3, 0))] * self.nh)
        return np.asarray(Q_dot.T @ rate.ravel() + self.Qb.T @ turn.ravel())

    @cached_property
    def from_base(self) -> Array:
        """1 for hinges that start at the given body, -1 for those that end there."""
        return np.array([float(a < 0) - float(b < 0) for a, b in self.arcs])

    @cached_property
    def Q_bar(self) -> Array:
        """Directions of constraint force: all three unless a hinge is prismatic [Mufti1983 Remark 5]."""
        return _diagonal(self.Q_bar_axes or [np.eye(3)] * self.nh)

    @cached_property
    def H(self) -> Array:
        """Columns of all constraint forces and torques, (C Q-bar, 0; L~ Q-bar, C Q) [Mufti1983 eqs. (49), (64)]."""
        C = expand(self.C)
        upper = np.hstack([C @ self.Q_bar, np.zeros((3 * self.n, self.Qb.shape[1]))])
        return np.vstack([upper, np.hstack([self.Lt @ self.Q_bar, C @ self.Qb])])

    @cached_property
    def gamma(self) -> Array:
        """Right side of H^T (r'', w') = gamma: minus u_3 and u_4."""
        return -np.concatenate([self.Q_bar.T @ self.u3, self.u4])

    # ---------------------------------------------------------------------------------------- barycentres

    @cached_property
    def B(self) -> Array:
        """T_2 mu, mu = 1 - M 1 1^T / m; T for a given base [Mufti1983 eqs. (20), (26), Remark 3]."""
        if self.grounded:
            return self.T
        mu = np.eye(self.n) - np.outer(self.m, np.ones(self.n)) / self.m.sum()
        return np.asarray(self.T2 @ mu)

    @cached_property
    def A(self) -> Array:
        """(C^T M^-1 C)^-1 = B M B^T [Mufti1983 eqs. (21), (26), (27)]."""
        return np.asarray((self.B * self.m) @ self.B.T)

    @cached_property
    def D(self) -> Array:
        """Barycentric vectors -L B [Mufti1983 eq. (28)]."""
        return np.asarray(-np.tensordot(self.L[:, : self.nt], self.B, (1, 0)).transpose(0, 2, 1))

    @cached_property
    def Dt(self) -> Array:
        """D~."""
        return blocks(tilde(self.D))

    @cached_property
    def Dh(self) -> Array:
        """D^."""
        return centripetal(self.W, self.D)

    @cached_property
    def K(self) -> Array:
        """I + D~ M D~^T, positive definite [Mufti1983 eqs. (28), (35)]."""
        return np.asarray(self.Ib + (self.Dt * np.repeat(self.m, 3)) @ self.Dt.T)

    @cached_property
    def u2_bar(self) -> Array:
        """D~ u_1 + u_2 + D~ M B^T u_3 [Mufti1983 eq. (28)]."""
        u3 = self.u3.reshape(-1, 3)[: self.nt]
        moved = self.m[:, None] * (self.B.T @ u3)
        return np.asarray(self.Dt @ (self.u1 + moved.ravel()) + self.u2)


def _diagonal(parts: list[Array]) -> Array:
    """Quasi-diagonal matrix of (3, k) blocks, also for k = 0."""
    out = np.zeros((3 * len(parts), sum(p.shape[1] for p in parts)))
    k = 0
    for j, p in enumerate(parts):
        out[3 * j : 3 * j + 3, k : k + p.shape[1]] = p
        k += p.shape[1]
    return out


@dataclass(frozen=True)
class Answer:
    """Accelerations and constraint loads.

    Attributes
    ----------
    rdd, wd : (n, 3) arrays
        Accelerations of the centres of mass and angular accelerations, inertial axes.
    f : array
        Constraint forces on j+ by hinge, in the directions Q-bar (inertial axes for hinges without a slide).
    lam : array
        Constraint torques on j+ in the directions Q.
    size : int
        Order of the largest system of equations that was solved.
    """

    rdd: Array
    wd: Array
    f: Array
    lam: Array
    size: int


# ------------------------------------------------------------------------------ absolute coordinates


def kkt(b: Bodies, sparse: bool = False) -> Answer:
    """All unknowns at once [Mufti1983 eqs. (10), (49), (63)]."""
    nf = b.Q_bar.shape[1]
    if sparse:
        J, H = mass_sparse(b), columns_sparse(b)
        x, y = _saddle_sparse(J, np.concatenate([b.u1, b.u2]), H, b.gamma)
    else:
        x, y = saddle(np.asarray(block_diag(b.M, b.Ib)), np.concatenate([b.u1, b.u2]), b.H, b.gamma)
    return _answer(b, x, y[:nf], y[nf:], len(x) + len(y))


def hinge_forces(b: Bodies, sparse: bool = False) -> Answer:
    """Constraint forces first, accelerations from them [Mufti1983 eqs. (12)-(14), (50)]."""
    if sparse:
        Ji, H = inverse_mass_sparse(b), columns_sparse(b)
        free = Ji @ np.concatenate([b.u1, b.u2])
        y = splu((H.T @ Ji @ H).tocsc()).solve(b.gamma - H.T @ free)
        x = free + Ji @ (H @ y)
    else:
        mass = np.repeat(b.m, 3)[:, None]
        inverse = np.linalg.inv(b.I)

        def divide(z: Array) -> Array:
            n3 = 3 * b.n
            low = np.einsum("nij,njk->nik", inverse, z[n3:].reshape(b.n, 3, -1)).reshape(n3, -1)
            return np.vstack([z[:n3] / mass, low])

        free = divide(np.concatenate([b.u1, b.u2])[:, None])[:, 0]
        X = divide(b.H)
        y = cho_solve(cho_factor(b.H.T @ X), b.gamma - b.H.T @ free)
        x = free + X @ y
    nf = b.Q_bar.shape[1]
    return _answer(b, x, y[:nf], y[nf:], len(y))


def turning_and_forces(b: Bodies, sparse: bool = False) -> Answer:
    """Angular accelerations and hinge forces; ball joints [Mufti1983 eq. (15)]."""
    n3, C = 3 * b.n, expand(b.C)
    CM = C.T / np.repeat(b.m, 3)
    rhs = np.concatenate([b.u2, CM @ b.u1 + b.u3])
    if sparse:
        c, Lt = sp.csc_array(C), _levers_sparse(b)
        K = sp.block_array([[_inertia_sparse(b), -Lt], [-Lt.T, -(c.T @ sp.diags_array(1 / np.repeat(b.m, 3)) @ c)]])
        x = splu(K.tocsc()).solve(rhs)
    else:
        x = np.linalg.solve(np.block([[b.Ib, -b.Lt], [-b.Lt.T, -CM @ C]]), rhs)
    w, f = x[:n3], x[n3:]
    rdd = (b.u1 + C @ f) / np.repeat(b.m, 3)
    return _answer(b, np.concatenate([rdd, w]), f, np.zeros(0), len(rhs))


def turning_numerically(b: Bodies) -> Answer:
    """Angular accelerations, C^T M^-1 C inverted as a matrix; ball joints [Mufti1983 eq. (16)]."""
    C = expand(b.C)
    CM = C.T / np.repeat(b.m, 3)
    LA = np.linalg.solve(CM @ C, b.Lt.T).T
    w = np.asarray(np.linalg.solve(b.Ib + LA @ b.Lt.T, b.u2 - LA @ (CM @ b.u1 + b.u3)), np.float64)
    return _from_turning(b, w, len(w))


# ------------------------------------------------------------------------------------------ barycentric


def turning(b: Bodies) -> Answer:
    """K w' = u-bar_2 by Cholesky; ball joints, tree [Mufti1983 eqs. (28), (29)]."""
    w = cho_solve(cho_factor(b.K), b.u2_bar)
    return _from_turning(b, w, len(w))


def turning_by_blocks(b: Bodies) -> Answer:
    """The same with K, h' and N from the vectors d_ij, free system [Mufti1983 eqs. (30)-(38)]."""
    K = inertia_by_blocks(b)
    w = cho_solve(cho_factor(K), right_side_by_blocks(b, K))
    return _from_turning(b, w, len(w))


def inertia_by_blocks(b: Bodies) -> Array:
    """K_ii = R_i I_i R_i^T - sum_k m_k d~_ik d~_ik, K_ij = m d~_ij d~_ji [Mufti1983 eqs. (30), (31), (35)]."""
    d, i = tilde(b.D), np.arange(b.n)
    K = b.m.sum() * (d @ d.transpose(1, 0, 2, 3))
    K[i, i] = b.I - (b.m[:, None, None] * (d @ d)).sum(axis=1)
    return blocks(K)


def right_side_by_blocks(b: Bodies, K: Array) -> Array:
    """-h' + D~ F + G + C g + N 1_n [Mufti1983 eqs. (32)-(34), (36)-(38)]."""
    n, total, d, W = b.n, b.m.sum(), tilde(b.D), b.W
    parts, k = K.reshape(n, 3, n, 3).transpose(0, 2, 1, 3), np.arange(n)
    h = np.cross(W, np.einsum("nxy,ny->nx", parts[k, k], W))
    turned = np.cross(W[None], np.einsum("jixy,jy->ijx", parts, W))  # W_j x K_ji W_j
    N = -turned + total * np.einsum("jixy,ijy->ijx", d, b.D) * np.einsum("jx,jx->j", W, W)[None, :, None]
    N[k, k] = 0.0
    hinges = b.C @ b.g if b.g is not None else 0.0
    return np.asarray((-h + b.G + hinges + N.sum(axis=1)).ravel() + b.Dt @ b.u1)


def turning_and_torques(b: Bodies) -> Answer:
    """Angular accelerations and constraint torques; tree of ball, universal and pin joints [Mufti1983 eq. (51)]."""
    CQ = expand(b.C) @ b.Qb
    w, lam = saddle(b.K, b.u2_bar, CQ, -b.u4)
    return _from_turning(b, w, len(w) + len(lam), lam)


def joint_rates(b: Bodies, gamma_dot: Array) -> tuple[Answer, Array, Array]:
    """Angular acceleration of body 1 and joint angles' accelerations, symmetric [Mufti1983 eqs. (55)-(61)].

    With a given base w = 1 W0 - T^T P gamma', so that only the joint angles remain [Remark 3].

    Returns
    -------
    Answer, w_1' (3,), gamma'' (ng,)
    """
    ones, T2P = expand(np.ones((b.n, 1))), expand(b.T2).T @ b.Pb
    bias = -expand(b.T2).T @ (b.Pb_dot @ gamma_dot)  # w' for zero w_1' and gamma''
    if b.grounded:
        first, V = np.tile(b.W0_dot, b.n), -T2P
    else:
        first, V = np.zeros(3 * b.n), np.hstack([ones, -T2P])
    x = cho_solve(cho_factor(V.T @ b.K @ V), V.T @ (b.u2_bar - b.K @ (bias + first)))
    w = V @ x + bias + first
    g_c = constraint_torques(b, w)
    lam = np.asarray(np.linalg.lstsq(b.Qb[: 3 * b.nt], g_c, rcond=None)[0], np.float64)
    own = 0 if b.grounded else 3
    return _from_turning(b, w, len(x), lam), (b.W0_dot if b.grounded else x[:3]), x[own:]


def constraint_torques(b: Bodies, w: Array) -> Array:
    """g^c = T_2 (K w' - u-bar_2), on j+ [Mufti1983 eqs. (52), (56)]."""
    return np.asarray(expand(b.T2) @ (b.K @ w - b.u2_bar))


def _from_turning(b: Bodies, w: Array, size: int, lam: Array | None = None) -> Answer:
    """r'' = E u_1 + D~^T w' + D^^T 1 and f = -A (C^T M^-1 u_1 + u_3 + L~^T w') [Mufti1983 eqs. (15), (19), (69)]."""
    n3 = 3 * b.nt
    c = (b.u3[:n3] + b.Lt[:, :n3].T @ w).reshape(-1, 3)
    mean = np.zeros((b.n, 3)) if b.grounded else np.tile(b.F.sum(axis=0) / b.m.sum(), (b.n, 1))
    rdd = mean - b.B.T @ c
    f = b.T2 @ (b.m[:, None] * rdd - b.F)  # from M r'' = F + C f
    return _answer(b, np.concatenate([rdd.ravel(), w]), f.ravel(), np.zeros(0) if lam is None else lam, size)


# --------------------------------------------------------------------------------------- closed chains


def root_and_turning(b: Bodies) -> tuple[Array, Array]:
    """Z and z with (r'', w') = Z (r_1'', w') + z for the tree [Mufti1983 eqs. (40-d), (68), (69)].

    Without r_1'' for a given base.
    """
    n3, nt3 = 3 * b.n, 3 * b.nt
    LT2 = b.Lt[:, :nt3] @ expand(b.T2)
    Z = np.vstack([-LT2.T, np.eye(n3)])
    z = np.concatenate([-(b.T2.T @ b.u3[:nt3].reshape(-1, 3)).ravel(), np.zeros(n3)])
    if not b.grounded:
        Z = np.hstack([np.vstack([expand(np.ones((b.n, 1))), np.zeros((n3, 3))]), Z])
    return Z, z


def closed_by_cuts(b: Bodies, rank: int | None = None) -> Answer:
    """Tree by r_1'' and w', cut hinges by multipliers; ball joints, symmetric J [Mufti1983 eqs. (70)-(73)].

    `rank` below 3 n* drops that many singular values of the cut hinges' rows (A-12).
    """
    n3, nt3 = 3 * b.n, 3 * b.nt
    Z, z = root_and_turning(b)
    full = np.asarray(block_diag(b.M, b.Ib))
    J, u = Z.T @ full @ Z, Z.T @ (np.concatenate([b.u1, b.u2]) - full @ z)
    star = np.vstack([expand(b.C[:, b.nt :]), b.Lt[:, nt3:]])  # C*, L*~
    H, right = Z.T @ star, -b.u3[nt3:] - star.T @ z
    q, lam = least_saddle(J, u, H, right, H.shape[1] if rank is None else rank)
    x = Z @ q + z
    f = b.T2 @ (b.m[:, None] * x[:n3].reshape(-1, 3) - b.F - b.C[:, b.nt :] @ lam.reshape(-1, 3))
    return _answer(b, x, np.concatenate([f.ravel(), lam]), np.zeros(0), len(q) + len(lam))


def printed_eq73(b: Bodies) -> Answer:
    """Eq. (73) with the J and u-bar of (70) as printed: only for cuts between bodies [Mufti1983 eqs. (70)-(73)]."""
    n3, nt3 = 3 * b.n, 3 * b.nt
    LT2 = b.Lt[:, :nt3] @ expand(b.T2)
    hat = (b.T2.T @ b.u3[:nt3].reshape(-1, 3)).ravel()  # (L^ T_2)^T 1_n
    ones = expand(np.ones((1, b.n)))
    J = np.block([[b.m.sum() * np.eye(3), -ones @ b.M @ LT2.T], [np.zeros((n3, 3)), b.K]])
    u = np.concatenate([ones @ b.u1 + ones @ b.M @ hat, b.u2_bar])
    C, Lt = expand(b.C[:, b.nt :]), b.Lt[:, nt3:]
    HT = np.hstack([C.T @ ones.T, Lt.T - C.T @ LT2.T])
    right = C.T @ hat - b.u3[nt3:]
    k = len(right)
    x = np.linalg.solve(np.block([[J, -HT.T], [-HT, np.zeros((k, k))]]), np.concatenate([u, -right]))
    Z, z = root_and_turning(b)
    return _answer(b, Z @ x[: n3 + 3] + z, x[n3 + 3 :], np.zeros(0), len(x))


# ------------------------------------------------------------------- linear algebra of the Appendix


def by_qr(J: Array, u: Array, H: Array, gamma: Array) -> tuple[Array, Array]:
    """The same by the Cholesky factor of H^T J^-1 H from a QR factorisation [Mufti1983 eqs. (A-3)-(A-5)]."""
    L = np.linalg.cholesky(J)
    X, free = solve_triangular(L, H, lower=True), solve_triangular(L, u, lower=True)
    R = np.linalg.qr(X, mode="r")
    y = solve_triangular(R, solve_triangular(R, gamma - X.T @ free, trans="T"))
    return solve_triangular(L, free + X @ y, lower=True, trans="T"), y


def by_svd(J: Array, u: Array, H: Array, gamma: Array, rank: int) -> tuple[Array, Array]:
    """The same for dependent columns of H: y of minimum norm [Mufti1983 eqs. (A-7)-(A-12)]."""
    L = np.linalg.cholesky(J)
    X, free = solve_triangular(L, H, lower=True), solve_triangular(L, u, lower=True)
    _, s, Wt = np.linalg.svd(X, full_matrices=False)
    W = Wt[:rank].T
    y = W @ ((W.T @ (gamma - X.T @ free)) / s[:rank] ** 2)
    return solve_triangular(L, free + X @ y, lower=True, trans="T"), y


def least_saddle(J: Array, u: Array, H: Array, gamma: Array, rank: int) -> tuple[Array, Array]:
    """By QR where the columns of H are independent, else by SVD."""
    return by_qr(J, u, H, gamma) if rank == H.shape[1] else by_svd(J, u, H, gamma, rank)


def complement_by_svd(H: Array, rank: int) -> tuple[Array, Array]:
    """Y, Z from the singular value decomposition, for any rank [Mufti1983 eqs. (A-7)-(A-10)]."""
    V, s, Wt = np.linalg.svd(H)
    return (V[:, :rank] / s[:rank]) @ Wt[:rank], V[:, rank:]


def complement_by_rows(H: Array) -> tuple[Array, Array]:
    """Y, Z with the last rows of H inverted; they must be independent [Mufti1983 Appendix, after (A-6)]."""
    n, k = H.shape
    inverse = np.linalg.inv(H[n - k :])
    Z = np.vstack([np.eye(n - k), -(H[: n - k] @ inverse).T])
    return np.vstack([np.zeros((n - k, k)), inverse.T]), Z


# ------------------------------------------------------------------------------------- sparse matrices


def _blocks_sparse(A: Array, rows: Any, columns: Any, shape: tuple[int, int]) -> Any:
    """(k, 3, 3) blocks at the given block rows and columns."""
    i = np.broadcast_to(3 * rows[:, None, None] + np.arange(3)[None, :, None], A.shape)
    j = np.broadcast_to(3 * columns[:, None, None] + np.arange(3)[None, None, :], A.shape)
    return sp.csc_array((A.ravel(), (i.ravel(), j.ravel())), shape=shape)


def _inertia_sparse(b: Bodies) -> Any:
    k = np.arange(b.n)
    return _blocks_sparse(b.I, k, k, (3 * b.n, 3 * b.n))


def _levers_sparse(b: Bodies) -> Any:
    places = [(i, j, e) for j, arc in enumerate(b.arcs) for e, i in enumerate(arc) if i >= 0]
    arms = tilde(np.array([(1.0 - 2.0 * e) * b.arms[j, e] for _, j, e in places]))
    rows, columns = np.array([i for i, _, _ in places]), np.array([j for _, j, _ in places])
    return _blocks_sparse(arms, rows, columns, (3 * b.n, 3 * b.nh))


def mass_sparse(b: Bodies) -> Any:
    """diag(M, I)."""
    return sp.block_diag([sp.diags_array(np.repeat(b.m, 3)), _inertia_sparse(b)], format="csc")


def inverse_mass_sparse(b: Bodies) -> Any:
    """diag(M, I)^-1."""
    k = np.arange(b.n)
    low = _blocks_sparse(np.asarray(np.linalg.inv(b.I), np.float64), k, k, (3 * b.n, 3 * b.n))
    return sp.block_diag([sp.diags_array(1.0 / np.repeat(b.m, 3)), low], format="csc")


def columns_sparse(b: Bodies) -> Any:
    """H."""
    C = sp.kron(sp.csc_array(b.C), sp.eye_array(3), format="csc")
    Q_bar, Q = sp.csc_array(b.Q_bar), sp.csc_array(b.Qb)
    if Q.shape[1] == 0:
        return sp.vstack([C @ Q_bar, _levers_sparse(b) @ Q_bar], format="csc")
    return sp.block_array([[C @ Q_bar, None], [_levers_sparse(b) @ Q_bar, C @ Q]], format="csc")


def _saddle_sparse(J: Any, u: Array, H: Any, gamma: Array) -> tuple[Array, Array]:
    matrix = sp.block_array([[J, -H], [-H.T, None]], format="csc")
    x = splu(matrix).solve(np.concatenate([u, -gamma]))
    return x[: len(u)], x[len(u) :]


def _answer(b: Bodies, x: Array, f: Array, lam: Array, size: int) -> Answer:
    n3 = 3 * b.n
    return Answer(x[:n3].reshape(-1, 3), x[n3:].reshape(-1, 3), f, lam, size)
