"""The published scheme: reactions that close the joints at the end of a step; every body free, every joint cut.

C.-F. Huang, C.-D. Yan, S.-L. Jeng, W.-H. Cheing, *A constrained multibody system dynamics avoiding kinematic
singularities*, 2002.

| paper | code | shape | meaning |
|---|---|---|---|
| r_i, A_i | `r`, `A` | (n, 3), (n, 3, 3) | mass centre; axes of the body as columns, world |
| r'_i, omega'_i | `v`, `w` | (n, 3) | velocity of the centre, world axes; angular velocity, body axes |
| C_i | `C` | (n, 3) | angular acceleration without reactions, body axes |
| (F_i + B_i)/m_i | `f` | (n, 3) | acceleration of the centre without reactions, world axes |
| D_i, R_i/m_i | `D`, `R` | (n, 3, nc) | the same by unit reactions: angular, body axes; of the centre, world axes |
| r + U, W | | (3,), (3, nc) | a point at the end of the step without reactions, and what unit reactions add |
| q + P, H | | (3,), (3, nc) | the same for a vector on a body |
| Q | `Q` | (nc,) | reactions on the declared child (link i), along the axes of F at the start of the step |
| d'^c, q', h' | `c`, `q`, `h` | (3,) | points from the mass centre, axes and normals of joints; body axes |

Body 0 is the ground, which has no acceleration. Over a step of length dt a point moves by U + W, a vector by P + H,
second-order Taylor polynomials in which Q is linear; the joints, closed at its end, make (36), linear in Q.

Deviations
----------
- J'_i need not be diagonal: the axes are the body's own.
- (20): primes and hats; (22), (23): W_i - W_j = (r_j - r_i) + (U_j - U_i); (27): (q_j + P_j)^ leads the term of H_i,
  and its three equations, of rank two, are projected on two normals of q_i + P_i; (31): the right side has the
  opposite sign; (33): (h_j + P_j)^T leads the term of H_i.
- (34), (35) satisfy action and reaction only if the loads on both bodies act at one point. In cylindrical and prismatic
  joints c_i and c_j differ: there the force on link j acts at c_i as well, which the paper does not say.
- Only the moments of a joint that belong to its rows are unknowns; the paper's 45 unknowns of the platform include six
  about the axes of its hinges, which its 39 equations do not determine.
- A is projected to a rotation after each step, which the paper does not say.
- The paper solves by Gaussian elimination. If rows are redundant at all poses, as those of planar loops in space, Q is
  not determined: then the Q of minimum norm is taken, with the number of independent rows of the mechanism.

The update of the velocity, r' + r'' dt, is our interpretation of "using Eqs. (5)-(10)". With it the scheme is of first
order and unstable; docs/theory/momentum.md shows it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy

from loopdyn.engine import records as rec
from loopdyn.errors import ConvergenceError, SingularityError
from loopdyn.formulations.absolute.kernels import tilde
from loopdyn.formulations.base import Array, Solution, Solver, SteppingSolver
from loopdyn.joints import Free
from loopdyn.loops.rank import Rank
from loopdyn.spatial.rotations import perpendicular_frame, to_matrix
from loopdyn.system.support import SUPPORT
from loopdyn.system.system import JointData, State, System
from loopdyn.tree.functions import body_motion, open_tree_forward_dynamics

JOINTS = ("spherical", "revolute", "cylindrical", "prismatic")  # sections 5 to 8 of the paper


class HuangSolver(SteppingSolver):
    """The printed scheme, prepared for one system in which every body has a free joint to the ground.

    Parameters
    ----------
    system : System
        ``mechanism.compile(free=list(mechanism.bodies))``, for which :meth:`refusal` returns None.
    regular : Solver
        Gives accelerations at a state; the scheme itself only has steps.
    rank : Rank
        Number of independent rows, where the mechanism is regular.

    Examples
    --------
    >>> import loopdyn as ld
    >>> from loopdyn.loops.rank import decide
    >>> mechanism = ld.library.double_pendulum()
    >>> system = mechanism.compile(free=list(mechanism.bodies))
    >>> state = system.state()
    >>> solver = HuangSolver(system, ld.prepare(system, "graph"), decide(system, state))
    >>> q, v, impulse = solver.step(state.t, state.q, state.v, 1e-3)
    >>> impulse.shape
    (10,)
    """

    def __init__(self, system: System, regular: Solver, rank: Rank):
        self.system, self.regular, self.rank = system, regular, rank
        free = {j.child: j for j in system.joints.values() if j.in_tree}
        q0, v0 = ([getattr(free[i], key) for i in range(1, 1 + system.nb)] for key in ("q0", "v0"))
        self.q0, self.v0 = np.array(q0, int), np.array(v0, int)
        data = system.model.body  # a body on a free joint of the ground has its own frame in kernels, too
        self.com = data[:, rec.COM : rec.COM + 3]
        self.per_mass = np.zeros(1 + system.nb)
        self.per_mass[1:] = 1.0 / data[1:, rec.MASS]
        self.per_inertia = np.zeros((1 + system.nb, 3, 3))
        self.per_inertia[1:] = np.linalg.inv(system.inertias[1:])
        self.joints = []
        first = 0
        for joint in (system.joints[name] for name in system.topology.cuts):
            if joint.spec.rows_when_cut:  # a free joint that the user declared has none
                self.joints.append(_Joint.of(joint, self.com, first))
                first += len(joint.spec.rows_when_cut)

    @staticmethod
    def refusal(system: System) -> str | None:
        """None if the scheme supports `system`, else the reason in words."""
        m = system.mechanism
        if system.tolerated is not None:
            return f"{system.tolerated}, and the printed scheme meets all rows of a joint"
        floating = set(system.topology.free_roots)
        for name, joint in system.joints.items():
            if joint.in_tree and system.bodies[joint.body] not in floating:
                return (
                    f"body '{system.bodies[joint.body]}' is carried by joint '{name}', and the printed scheme has all "
                    "bodies free: compile(free=[...]) with the names of all of them"
                )
            if not joint.in_tree and joint.spec.type not in (*JOINTS, Free().type):
                return f"joint '{name}' is {joint.spec.type}, and the paper has {', '.join(JOINTS)} joints only"
        for kind, names in (
            ("constraint", m.constraints),
            ("user constraint", m.user_constraints),
            ("driver", m.drivers),
            ("base motion of", m.base),
        ):
            if names:
                return f"it has the {kind} '{next(iter(names))}', and the paper has joints on a fixed ground only"
        moments = np.linalg.eigvalsh(system.inertias[1:])
        thin = (system.model.body[1:, rec.MASS] <= 0.0) | (moments[:, 0] <= SUPPORT * moments[:, 2])
        if thin.any():
            body = system.bodies[1 + int(np.argmax(thin))]
            return f"body '{body}' has no mass or a singular inertia, and the printed scheme needs the inverse of both"
        return None

    def solve(self, t: float, q: Array, v: Array) -> Solution:
        """Accelerations and multipliers of the regular solver."""
        return self.regular(t, q, v)

    def step(self, t: float, q: Array, v: Array, h: float) -> tuple[Array, Array, Array]:
        """One step of length h.

        Parameters
        ----------
        t : float
        q : (nq,) array
        v : (nv,) array
        h : float

        Returns
        -------
        q : (nq,) array
        v : (nv,) array
        impulse : (nc,) array
            h times the reactions, which are constant over the step, in the order of the constraint rows: on the
            declared child at the origin of M, along the axes of F at the start of the step.

        Raises
        ------
        SingularityError
            If the reactions are not determined: no pivot is left in (36).
        ConvergenceError
            If the scheme has diverged.
        """
        with np.errstate(over="ignore", invalid="ignore"):  # `_update` raises if numbers are not finite
            step = self._begin(State(t, q, v), h)
            Q = self._solve(*self._closed_at_the_end(step), t)
            q_end, v_end = self._update(step, Q, t, q)
        return q_end, v_end, h * Q

    def equations(self, t: float, q: Array, v: Array, h: float) -> tuple[Array, Array]:
        """Matrix (nc, nc) and right side (nc,) of the linear system (36) for the reactions over a step of length h."""
        return self._closed_at_the_end(self._begin(State(t, q, v), h))

    # ------------------------------------------------------------------------------------------ parts of a step

    def _begin(self, state: State, h: float) -> _Step:
        """State in the paper's symbols, accelerations by applied forces alone, and accelerations by unit reactions."""
        n = 1 + self.system.nb
        r, v, w = np.zeros((n, 3)), np.zeros((n, 3)), np.zeros((n, 3))
        A = np.tile(np.eye(3), (n, 1, 1))
        for i, (iq, iv) in enumerate(zip(self.q0, self.v0, strict=True), 1):
            r[i], A[i] = state.q[iq : iq + 3], to_matrix(state.q[iq + 3 : iq + 7])
            w[i], v[i] = state.v[iv : iv + 3], state.v[iv + 3 : iv + 6]
        r = r + _turned(A, self.com)
        v = _turned(A, v + np.cross(w, self.com))
        # [Huang2002 eqs. 9, 13.c] with all joints open; forces are taken at the start of the step
        alone = body_motion(self.system, state, open_tree_forward_dynamics(self.system, state))
        omega, alpha, arm = alone.angular_velocity, alone.angular_acceleration, r - alone.position
        f = alone.acceleration + np.cross(alpha, arm) + np.cross(omega, np.cross(omega, arm))
        C = np.einsum("nji,nj->ni", A, alpha)
        return _Step(h, r, A, v, w, C, f, *self._unit_reactions(r, A))

    def _unit_reactions(self, r: Array, A: Array) -> tuple[Array, Array]:
        """D and R/m: accelerations of the bodies by unit reactions, one column each."""
        R = np.zeros((len(r), 3, self.system.nc))
        N = np.zeros_like(R)  # moments about the mass centres, body axes
        for joint in self.joints:
            c_i, c_j, m, f = joint.c_i, joint.c_j, joint.moments, joint.forces
            i, j = c_i.body, c_j.body
            if joint.slides:
                c_j = _Fixed(j, A[j].T @ (r[i] + A[i] @ c_i.x - r[j]))
            axes = A[j] @ joint.F
            for c, sign in ((c_i, 1.0), (c_j, -1.0)):  # [Huang2002 eqs. 34, 35]
                own = sign * A[c.body].T @ axes
                R[c.body, :, f] = sign * axes[:, : f.stop - f.start]
                N[c.body, :, m] = own[:, : m.stop - m.start]
                N[c.body, :, f] = c.hat @ own[:, : f.stop - f.start]
        return self.per_inertia @ N, self.per_mass[:, None, None] * R  # [Huang2002 eqs. 13.d, 9]

    def _closed_at_the_end(self, step: _Step) -> tuple[Array, Array]:
        """Matrix and right side of the linear system [Huang2002 eq. 36]."""
        matrix, right = np.zeros((self.system.nc, self.system.nc)), np.zeros(self.system.nc)
        for joint in self.joints:
            k = joint.moments.start
            for rows, values in joint.equations(step):
                matrix[k : k + len(values)], right[k : k + len(values)] = rows, values
                k += len(values)
        return matrix, right

    def _solve(self, matrix: Array, right: Array, t: float) -> Array:
        """Reactions; of minimum norm, in natural units, if rows are redundant at all poses."""
        units = self.system.row_units
        try:
            if not self.rank.redundant:
                return np.asarray(np.linalg.solve(matrix, right), float)  # Gaussian elimination, as section 10 has it
            U, s, Vt = np.linalg.svd(matrix / np.outer(units, units))
        except np.linalg.LinAlgError:
            raise SingularityError(
                f"huang2002: the reactions of '{self.system.name}' are not determined at t = {t:g} s: the joints lose "
                "rank at this pose, and with them the matrix of the scheme. The default scheme of momentum passes it."
            ) from None
        kept = self.rank.count
        return np.asarray(Vt[:kept].T @ ((U[:, :kept].T @ (right / units)) / s[:kept]) / units, float)

    def _update(self, step: _Step, Q: Array, t: float, q: Array) -> tuple[Array, Array]:
        """State at the end of the step."""
        h = step.h
        a = step.f + step.R @ Q  # [Huang2002 eq. 9]
        alpha = step.C + step.D @ Q  # [Huang2002 eq. 10]
        r = step.r + step.v * h + a * h**2 / 2
        v = step.v + a * h
        w = step.w + alpha * h
        A = _axes_at_the_end(step.A, step.w, alpha, h)
        turn = np.abs(w).max(axis=1) * h  # beyond half a turn a step the polynomials of A mean nothing
        if not (turn.max() < np.pi and np.isfinite(v).all() and (np.linalg.det(A) > 0.0).all()):
            body = self.system.bodies[int(np.argmax(turn))]
            raise ConvergenceError(
                f"huang2002 has blown up at t = {t:g} s: body '{body}' turns by {turn.max():.1g} rad in a step. The "
                "printed update keeps errors of velocities that the joints forbid, and adds to them. Take smaller "
                "steps to get further, or the default scheme of momentum."
            )
        U, _, Vt = np.linalg.svd(A)
        A = U @ Vt  # the rotation nearest to it
        r = r - _turned(A, self.com)
        v = np.einsum("nji,nj->ni", A, v) - np.cross(w, self.com)
        turns = scipy.spatial.transform.Rotation.from_matrix(A).as_quat()[:, [3, 0, 1, 2]]
        q_end, v_end = np.array(q), np.empty(self.system.nv)
        for i, (iq, iv) in enumerate(zip(self.q0, self.v0, strict=True), 1):
            q_end[iq : iq + 3] = r[i]
            q_end[iq + 3 : iq + 7] = turns[i] if turns[i] @ q[iq + 3 : iq + 7] >= 0.0 else -turns[i]
            v_end[iv : iv + 3], v_end[iv + 3 : iv + 6] = w[i], v[i]
        return q_end, v_end


def _turned(A: Array, x: Array) -> Array:
    """Vectors (n, 3) from body axes to world axes."""
    world: Array = np.einsum("nij,nj->ni", A, x)
    return world


def _axes_at_the_end(A: Array, w: Array, alpha: Array, h: float) -> Array:
    """A + A' h + A'' h^2/2 [Huang2002 eqs. 5.a, 5.b, 12]."""
    spin = tilde(w)
    end: Array = A + A @ (spin * h + (tilde(alpha) + spin @ spin) * h**2 / 2)
    return end


@dataclass(frozen=True)
class _Step:
    """Data at the start of a step of length h, and points and vectors of the bodies at its end.

    Each of these is its value without reactions, and a matrix of the contributions of unit reactions.
    """

    h: float
    r: Array
    A: Array
    v: Array
    w: Array
    C: Array
    f: Array
    D: Array  # accelerations that unit reactions give: angular,
    R: Array  # and of the mass centres

    @cached_property
    def r_free(self) -> Array:
        """Mass centres at the end without reactions, (n, 3)."""
        return self.r + self.v * self.h + self.f * self.h**2 / 2

    @cached_property
    def A_free(self) -> Array:
        """Axes at the end without reactions, (n, 3, 3)."""
        return _axes_at_the_end(self.A, self.w, self.C, self.h)

    def point(self, c: _Fixed) -> tuple[Array, Array]:
        """r + U and W of a point [Huang2002 eqs. 6, 12, 13.b]; the columns of W are (14.a) and (14.b)."""
        i = c.body
        W = (self.A[i] @ c.hat.T @ self.D[i] + self.R[i]) * self.h**2 / 2
        return self.r_free[i] + self.A_free[i] @ c.x, W

    def vector(self, q: _Fixed) -> tuple[Array, Array]:
        """q + P and H of a vector [Huang2002 eqs. 15, 18, 19.a, 19.b]; the columns of H are (20.a) and (20.b)."""
        i = q.body
        return self.A_free[i] @ q.x, self.A[i] @ q.hat.T @ self.D[i] * self.h**2 / 2


@dataclass(frozen=True)
class _Fixed:
    """A vector fixed in a body, in its axes; a point is given by the vector from the centre of mass."""

    body: int
    x: Array

    @cached_property
    def hat(self) -> Array:
        """Matrix of the cross product."""
        return tilde(self.x)


@dataclass(frozen=True)
class _Joint:
    """A cut joint: link i is its declared child, link j its declared parent."""

    type: str
    c_i: _Fixed  # origins of M and F
    c_j: _Fixed
    q_i: _Fixed  # axis: z of M and of F
    q_j: _Fixed
    h_i: _Fixed  # x of M and y of F, which a prismatic joint keeps at right angles
    h_j: _Fixed
    F: Array  # axes of F in link j, as columns
    moments: slice  # columns of its reactions: moments about the first axes of F,
    forces: slice  # and forces along the first axes of F

    @classmethod
    def of(cls, joint: JointData, com: Array, first: int) -> _Joint:
        """From the data of a system, the mass centres of its bodies and the number of its first row."""
        i, j, (p_M, M), (p_F, F) = joint.child, joint.parent, joint.M, joint.F
        rows = joint.spec.rows_when_cut  # moments first
        middle = first + sum(row.startswith("m") for row in rows)
        return cls(
            joint.spec.type,
            _Fixed(i, p_M - com[i]),
            _Fixed(j, p_F - com[j]),
            _Fixed(i, M[:, 2]),
            _Fixed(j, F[:, 2]),
            _Fixed(i, M[:, 0]),
            _Fixed(j, F[:, 1]),
            F,
            slice(first, middle),
            slice(middle, first + len(rows)),
        )

    @property
    def slides(self) -> bool:
        """Whether its two points may be apart."""
        return self.type in ("cylindrical", "prismatic")

    def equations(self, step: _Step) -> list[tuple[Array, Array]]:
        """Rows of the joint in (36) and their right sides: rotations first, as in the rows of a system."""
        (r_i, W_i), (r_j, W_j) = step.point(self.c_i), step.point(self.c_j)
        if self.type == "spherical":
            return [(W_i - W_j, r_j - r_i)]  # [Huang2002 eq. 23]
        (q_i, H_i), (q_j, H_j) = step.vector(self.q_i), step.vector(self.q_j)
        normals, hat = perpendicular_frame(q_i)[:2], tilde(q_i)
        found = [(normals @ (tilde(q_j) @ H_i - hat @ H_j), normals @ (hat @ q_j))]  # [Huang2002 eq. 27]
        if self.type == "revolute":
            return [*found, (W_i - W_j, r_j - r_i)]  # [Huang2002 eq. 23]
        if self.type == "prismatic":
            (h_i, Hh_i), (h_j, Hh_j) = step.vector(self.h_i), step.vector(self.h_j)
            found.append(((h_j @ Hh_i + h_i @ Hh_j)[None], -(h_i @ h_j)[None]))  # [Huang2002 eq. 33]
        D = r_i - r_j
        found.append((normals @ (tilde(D) @ H_i - hat @ (W_i - W_j)), normals @ (hat @ D)))  # [Huang2002 eq. 31]
        return found
