"""Joint reactions, one routine for all formulations: from accelerations, over the rows of all joints.

Every body is set free and every joint is taken as a constraint. With the accelerations known, Newton's and
Euler's equations of the bodies are linear in the multipliers of all rows,

    J^T lam = M a - h

and under redundancy the distribution of minimum weighted norm is taken. A component is unique if no set of
reactions that balance themselves contains it; the others are marked. The result does not depend on which
joints were cut, nor on how the accelerations were computed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from loopdyn.errors import ModelError, Problem
from loopdyn.rank import Rank, of_matrix, scaled
from loopdyn.rotations import from_matrix
from loopdyn.system import JointData, State, System
from loopdyn.tree import Motion, Terms, angles, body_jacobian, body_motion, inverse_dynamics, terms
from loopdyn.tree.user_rows import UserRows, user_rows
from loopdyn.wording import nearest

if TYPE_CHECKING:
    import xarray

Array = NDArray[np.float64]

COMPONENTS = ("mx", "my", "mz", "fx", "fy", "fz")

# A component counts as unique if every self-balanced set of reactions of unit norm contains less of it than this.
UNIQUE = 1e-7


@dataclass(frozen=True)
class Reactions:
    """Constraint wrench of each joint on its declared child, at the origin of M, in axes of F.

    Attributes
    ----------
    joints : tuple of str
    wrench : (n, 6) array
        Columns mx, my, mz in N m and fx, fy, fz in N. Loads of motors, springs and friction are not in it.
    unique : (n, 6) array of bool
        False where redundancy leaves a component undetermined; its value is then that of the stated distribution.
    norm : str
        What the distribution minimises.
    residual : float
        Largest unbalanced load on a body, N or N m: a check of the accelerations.
    multipliers : mapping
        Loads of constraints and drivers by row label, N or N m.
    """

    joints: tuple[str, ...]
    wrench: Array
    unique: NDArray[np.bool_]
    norm: str
    residual: float
    multipliers: Mapping[str, float]

    def __getitem__(self, joint: str) -> dict[str, float]:
        """Components of one joint by name."""
        return dict(zip(COMPONENTS, self.wrench[self.joints.index(joint)].tolist(), strict=True))

    def dataset(self) -> xarray.Dataset:
        """The same with labels."""
        import xarray as xr

        dims = ("joint", "component")
        data = {
            "wrench": (dims, self.wrench, {"units": "N m, N", "norm": self.norm}),
            "unique": (dims, self.unique),
        }
        return xr.Dataset(data, {"joint": list(self.joints), "component": list(COMPONENTS)})

    def __str__(self) -> str:
        width = max(len(j) for j in self.joints) if self.joints else 5
        lines = [f"{'joint':<{width}} " + "".join(f"{c:>12}" for c in COMPONENTS)]
        rounding = 1e-12 * np.abs(self.wrench).max(initial=0.0)
        shown = np.where(np.abs(self.wrench) > rounding, self.wrench, 0.0)
        for name, values, known in zip(self.joints, shown, self.unique, strict=True):
            cells = "".join(f"{v:>11.5g}{' ' if u else '?'}" for v, u in zip(values, known, strict=True))
            lines.append(f"{name:<{width}} {cells}")
        if not self.unique.all():
            lines.append(f"?: not determined by the rigid model; distribution: {self.norm}")
        return "\n".join(lines)


def free_system(system: System) -> System:
    """`system.absolute` without user forces, which are functions of the tree coordinates of `system`."""
    free = system.absolute
    if free.mechanism.user_forces:
        free = replace(free, mechanism=free.mechanism.model_copy(update={"user_forces": {}}))
    return free


def free_state(system: System, motion: Motion) -> State:
    """State of `system.absolute` with the poses and velocities of `motion`."""
    free = system.absolute
    row = {name: k for k, name in enumerate(motion.bodies)}
    q, v = np.empty(free.nq), np.empty(free.nv)
    for j in free.joints.values():
        if j.in_tree:
            k = row[free.bodies[j.body]]
            R = motion.rotation[k]
            base, R0 = motion.position[0], motion.rotation[0]
            q[j.q0 : j.q0 + 3] = R0.T @ (motion.position[k] - base)
            q[j.q0 + 3 : j.q0 + 7] = from_matrix(R0.T @ R)
            omega = motion.angular_velocity[k] - motion.angular_velocity[0]
            arm = motion.position[k] - base
            relative = motion.velocity[k] - motion.velocity[0] - np.cross(motion.angular_velocity[0], arm)
            v[j.v0 : j.v0 + 3] = R.T @ omega
            v[j.v0 + 3 : j.v0 + 6] = R.T @ relative
    return State(0.0, q, v)


def free_accelerations(free: System, motion: Motion, still: Motion, order: tuple[str, ...]) -> Array:
    """Accelerations of the free joints: `still` is the motion of the free bodies at zero accelerations of theirs."""
    row = {name: k for k, name in enumerate(order)}
    a = np.empty(free.nv)
    for j in free.joints.values():
        if j.in_tree:
            k, n = row[free.bodies[j.body]], j.body
            R = motion.rotation[k]
            a[j.v0 : j.v0 + 3] = R.T @ (motion.angular_acceleration[k] - still.angular_acceleration[n])
            a[j.v0 + 3 : j.v0 + 6] = R.T @ (motion.acceleration[k] - still.acceleration[n])
    return a


def freedom_wrench(j: JointData, k: int, F: Array, M: Array) -> tuple[Array, Array]:
    """Torque and force on M at its origin, world axes, whose power is speed k of the joint and no other one."""
    zero, z = np.zeros(3), F[:, 2]
    kind = j.spec.type
    if kind == "universal":
        a1, a2 = F[:, 0], j.par[0] * M[:, 0] + j.par[1] * M[:, 1]
        first, second = (a1, a2) if k == 0 else (a2, a1)
        return (first - j.par[0] * second) / j.par[1] ** 2, zero
    turns = {"revolute": {0: z}, "helical": {0: z}, "cylindrical": {0: z}, "planar": {2: z}}
    slides = {"prismatic": {0: z}, "cylindrical": {1: z}, "planar": {0: F[:, 0], 1: F[:, 1]}}
    turns |= {"spherical": dict(enumerate(M.T)), "free": dict(enumerate(M.T))}
    slides |= {"translational": dict(enumerate(F.T)), "free": dict(enumerate(M.T, 3))}
    return turns.get(kind, {}).get(k, zero), slides.get(kind, {}).get(k, zero)


def _joint_loads(system: System, state: State, free: System, motion: Motion) -> tuple[Array, Array]:
    """B with (speeds of the free bodies) = B v + ..., and W, the loads on them of unit loads on each speed of the tree.

    W is dual to B: B^T W = 1.
    """
    B, W = np.zeros((free.nv, system.nv)), np.zeros((free.nv, system.nv))
    first = {free.bodies[j.body]: j.v0 for j in free.joints.values() if j.in_tree}
    for name, k in first.items():
        R = motion.rotation[system.bodies.index(name)]
        jacobian = body_jacobian(system, state, name)
        B[k : k + 3], B[k + 3 : k + 6] = R.T @ jacobian[:3], R.T @ jacobian[3:]
    for j in system.joints.values():
        if not j.in_tree:
            continue
        F, M = motion.rotation[j.parent] @ j.F[1], motion.rotation[j.child] @ j.M[1]
        at = motion.position[j.child] + motion.rotation[j.child] @ j.M[0]
        for n in range(len(j.spec.speeds)):
            torque, force = freedom_wrench(j, n, F, M)
            for body, sign in ((j.child, 1.0), (j.parent, -1.0)):
                if system.bodies[body] in first:
                    k, R = first[system.bodies[body]], motion.rotation[body]
                    moment = torque + np.cross(at - motion.position[body], force)
                    W[k : k + 3, j.v0 + n] += sign * (R.T @ moment)
                    W[k + 3 : k + 6, j.v0 + n] += sign * (R.T @ force)
    return B, W


def _weights(free: System, motion: Motion, length: float, compliance: Mapping[str, ArrayLike] | None) -> Array:
    """Weight of each row of the free system in the norm that is minimised."""
    given = {name: np.broadcast_to(np.asarray(c, float), 6) for name, c in (compliance or {}).items()}
    names = [name for name, j in free.joints.items() if not j.in_tree]
    wrong = [name for name in given if name not in names]
    if wrong:
        raise ModelError(Problem("compliance", f"there is no joint '{n}'", nearest(n, names)) for n in wrong)
    if any((six <= 0.0).any() for six in given.values()):
        raise ModelError([Problem("compliance", "a compliance is not positive", "Give positive numbers.")])
    plain = np.array([1.0 / length**2] * 3 + [1.0] * 3)
    rows = [(free.joints[name], row) for name in names for row in free.joints[name].spec.rows_when_cut]
    weights = np.array([1.0 / length**2 if d == "angle" else 1.0 for d in free.row_dimensions])
    weights[: len(rows)] = [given.get(j.name, plain) @ _direction(j, row, motion) ** 2 for j, row in rows]
    return weights


def free_terms(system: System, state: State) -> tuple[System, State, Terms]:
    """The free bodies at a state of the tree: their system, their state, and the terms there."""
    free = free_system(system)
    there = free_state(system, body_motion(system, state))
    there = State(state.t, there.q, there.v)
    return free, there, terms(free, there, angles(system, state), carried_rows(system, state, free, there))


def carried_rows(system: System, state: State, free: System, there: State) -> UserRows | None:
    """Rows of user constraints, which are functions of the coordinates of `system`, in the speeds of its free bodies.

    With B and W of :func:`_joint_loads`: a row J over the tree becomes J W^T, since W^T B = 1, and what the free bodies
    do at zero accelerations of the tree goes to the right side.
    """
    if not system.mechanism.user_constraints:
        return None
    rows = user_rows(system)(state.t, state.q, state.v)
    motion = body_motion(system, state)
    J = rows.J @ _joint_loads(system, state, free, motion)[1].T
    still = body_motion(free, there)
    return replace(rows, J=J, gamma=rows.gamma + J @ free_accelerations(free, motion, still, system.bodies))


def joint_rank(system: System, state: State) -> tuple[Rank, Array, State]:
    """Rank of the rows of all joints at the pose of `state`, their Jacobian over free bodies, and the free state."""
    free, there, now = free_terms(system, state)
    return of_matrix(scaled(free, now.J)), now.J, there


def reactions(
    system: System,
    state: State,
    a: ArrayLike,
    *,
    length: float | None = None,
    compliance: Mapping[str, ArrayLike] | None = None,
) -> Reactions:
    """Reactions of all joints for known accelerations.

    Parameters
    ----------
    system : System
    state : State
        A closed state.
    a : (nv,) array
        Accelerations of the tree coordinates, from any formulation.
    length : float, optional
        Under redundancy the sum of force^2 + (moment/length)^2 is minimised; by default with the size of the
        mechanism.
    compliance : mapping, optional
        Compliances of joints, one number or six (mx, my, mz, fx, fy, fz) each: the elastic energy is minimised.
        Joints that are not named keep the weights above.

    Returns
    -------
    Reactions

    Examples
    --------
    >>> import loopdyn as ld
    >>> system = ld.library.pendulum().compile()
    >>> state = system.state()
    >>> r = reactions(system, state, ld.tree.forward_dynamics(system, state))
    >>> bool(r.unique.all())
    True
    """
    motion = body_motion(system, state, a)
    free, _, now = free_terms(system, state)
    load = now.M @ free_accelerations(free, motion, now.motion, system.bodies) - now.h
    if system.forces or system.mechanism.user_forces:
        # Loads on joint coordinates as the tree has them: user forces, and angles beyond half a turn, which
        # joints that are cut cannot tell.
        B, W = _joint_loads(system, state, free, motion)
        load -= W @ (B.T @ load - inverse_dynamics(system, state, a))
    return distribute(system, state, load, length, compliance)


def distribute(
    system: System,
    state: State,
    load: Array,
    length: float | None = None,
    compliance: Mapping[str, ArrayLike] | None = None,
) -> Reactions:
    """Wrenches of all joints that put the generalised load `load` on the free bodies of `system.absolute`.

    `state` is that of the tree. Forces or impulses, whichever `load` is.
    """
    length = system.size if length is None else length
    free, _, now = free_terms(system, state)
    keep = of_matrix(scaled(free, now.J)).count
    weights = np.sqrt(_weights(free, now.motion, length, compliance))
    # In the scaled multipliers weights*lam the norm is plain; equations of balance may be scaled at will.
    A = now.J * free.speed_units / weights[:, None]
    U, s, Vt = np.linalg.svd(A, full_matrices=True)
    lam = (U[:, :keep] @ ((Vt[:keep] @ (free.speed_units * load)) / s[:keep])) / weights
    loose = U[:, keep:] if len(A) else np.zeros((0, 0))
    known = np.linalg.norm(loose, axis=1) < UNIQUE
    norm = f"least sum of force^2 + (moment/{length:.3g} m)^2" if compliance is None else "least elastic energy"
    residual = float(np.abs(load - now.J.T @ lam).max(initial=0.0))
    return _by_joint(free, now.motion, lam, known, norm, residual)


def _by_joint(
    free: System, motion: Motion, lam: Array, known: NDArray[np.bool_], norm: str, residual: float
) -> Reactions:
    names = tuple(name for name, j in free.joints.items() if not j.in_tree)
    wrench = np.zeros((len(names), 6))
    unique = np.ones((len(names), 6), bool)
    row = 0
    for n, name in enumerate(names):
        j = free.joints[name]
        for suffix in j.spec.rows_when_cut:
            direction = _direction(j, suffix, motion)
            wrench[n] += lam[row] * direction
            unique[n, np.abs(direction) > UNIQUE] &= known[row]
            row += 1
    others = dict(zip(free.constraint_rows[row:], lam[row:].tolist(), strict=True))
    return Reactions(names, wrench, unique, norm, residual, others)


def _direction(j: JointData, suffix: str, motion: Motion) -> Array:
    """Wrench of one row at closure, in axes of F: torque, force."""
    out = np.zeros(6)
    if suffix in COMPONENTS:
        out[COMPONENTS.index(suffix)] = 1.0
    elif suffix == "screw":
        out[5], out[2] = 1.0, -j.par[0]
    else:  # common normal of a universal joint, x of F and the second axis, which is fixed in M
        F = motion.rotation[j.parent] @ j.F[1]
        M = motion.rotation[j.child] @ j.M[1]
        second = F.T @ (j.par[0] * M[:, 0] + j.par[1] * M[:, 1])
        out[:3] = np.cross([1.0, 0.0, 0.0], second) / j.par[1]
    return out
