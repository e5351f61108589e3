"""Dynamics of the spanning tree: the functions called from Python, one per quantity.

Kernels are in the modules of this package, one algorithm per file; the functions here check their arguments and return
fresh arrays. Cut joints are open in all of them except in :func:`terms` and :func:`constraint_equations`, which give
their rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from loopdyn.engine import records as rec
from loopdyn.errors import LoopdynError, ModelError, Problem, SingularityError
from loopdyn.quantities.wording import unknown
from loopdyn.spatial.rows import cross_rows
from loopdyn.system.system import JointData, State, System, require_state
from loopdyn.tree import aba, crba, energies, jacobian, kinematics, rnea, turns
from loopdyn.tree.massless_motions import LARGEST_DENSE, motions_without_inertia, smallest_groups
from loopdyn.tree.start import given
from loopdyn.tree.user_rows import UserRows, user_rows

if TYPE_CHECKING:
    import xarray

Array = NDArray[np.float64]

MOVING = 1e-6  # a body moves if it is faster than this fraction of the fastest


@dataclass(frozen=True)
class Motion:
    """Motion of all bodies, world axes; row k belongs to ``bodies[k]`` (bases first), at its own frame's origin.

    Attributes
    ----------
    bodies : tuple of str
    position, velocity, acceleration : (n, 3) arrays
    rotation : (n, 3, 3) array
        Columns are the axes of the body's frame.
    angular_velocity, angular_acceleration : (n, 3) arrays
    """

    bodies: tuple[str, ...]
    position: Array
    rotation: Array
    velocity: Array
    angular_velocity: Array
    acceleration: Array
    angular_acceleration: Array


@dataclass(frozen=True)
class Energy:
    """Energies in J and momenta in SI units, about the world origin."""

    kinetic: float
    gravity: float
    momentum: Array
    angular_momentum: Array


@dataclass(frozen=True)
class Terms:
    """Everything in ``M a = h + J^T lam``, ``J a = gamma`` at one state.

    Attributes
    ----------
    M : (nv, nv) array
        Mass matrix of the tree.
    h : (nv,) array
        Applied forces, motors and gravity less velocity terms.
    J : (nc, nv) array
        Jacobian of the rows of cut joints.
    gamma : (nc,) array
        Right side at acceleration level.
    phi : (nc,) array
        Residual of the rows at position level.
    phi_t : (nc,) array
        Partial derivative of phi by time: ``J v + phi_t`` is the residual at velocity level.
    """

    system: System
    M: Array
    h: Array
    J: Array
    gamma: Array
    phi: Array
    phi_t: Array
    _work: rec.Work = field(repr=False)

    @cached_property
    def motion(self) -> Motion:
        """Poses, velocities and, for zero joint accelerations, accelerations of all bodies."""
        return motion_in(self.system, self._work)

    def dataset(self) -> xarray.Dataset:
        """Labelled data with the dimensions ``speed``, ``speed2`` and ``row``, in the SI units that it names."""
        from loopdyn.tree.labelled_terms import labelled

        return labelled(self)


# ---------------------------------------------------------------------------------------- preparation


def _prepare(system: System, given_state: State | None) -> tuple[NDArray[Any], rec.Work]:
    """A work array that holds the state, and its parts."""
    state = given(system, given_state)
    require_state(system, state)
    work = system.work()
    w = system.open_work(work)
    w.t[0], w.q[:], w.v[:] = state.t, state.q, state.v
    return work, w


def sized(values: ArrayLike, size: int, name: str) -> Array:
    """The values as a new array of the given size; another size raises and is not broadcast."""
    given = np.array(values, float)
    if given.shape != (size,):
        raise ModelError([Problem(name, f"its shape is {given.shape}, not ({size},)", "Give one value for each.")])
    return given


def add_user_forces(system: System, t: float, q: ArrayLike, v: ArrayLike, tau: Array) -> None:
    """Add all user forces to the generalised forces `tau` (nv,); each is called with copies of the state."""
    for force in system.mechanism.user_forces.values():
        force.function(float(t), np.array(q, float), np.array(v, float), tau)


def _finite(system: System, values: Array, what: str, t: float) -> Array:
    bad = np.flatnonzero(~np.isfinite(values))
    if bad.size:
        raise SingularityError(
            f"{what} of '{system.speeds[bad[0]]}' is not a finite number at t = {t:g} s. Check springs and actuators "
            "whose points coincide there, formulas that divide by zero, and the state."
        )
    return values


def require_rows(system: System, w: rec.Work, J: Array, t: float) -> None:
    """Raise SingularityError, naming the row, if constraint rows are undefined at the state in `w`."""
    sound = np.isfinite(w.phi) & np.isfinite(w.gamma) & np.isfinite(J).all(axis=1)
    if not sound.all():
        row = system.constraint_rows[int(np.argmin(sound))]
        raise SingularityError(
            f"the constraint row '{row}' is not defined at t = {t:g} s: a point has left the end of its curve, the "
            "points of a distance coincide, or a formula has no finite value there. Check the state, and make the "
            "curve longer or the formula defined."
        )


def bodies_without_inertia(system: System, state: State, N: Array | None = None) -> list[tuple[str, ...]]:
    """Groups of bodies that can move without inertia, each group by itself; from the root outwards.

    Parameters
    ----------
    system : System
    state : State
    N : (nv, m) array, optional
        Basis of the motions examined, in natural units; by default all that the tree allows with cut joints open.
    """
    units = system.speed_units
    M = open_tree_mass_matrix(system, state) * np.outer(units, units)
    found = motions_without_inertia(M, np.eye(system.nv) if N is None else N)
    groups = smallest_groups([_moving_bodies(system, state, units * x) for x in found.T])
    return sorted(groups, key=lambda group: [system.bodies.index(body) for body in group])


def _moving_bodies(system: System, pose: State, v: Array) -> list[str]:
    """Bodies that move at these speeds: turn, or displace their centre of mass."""
    motion = body_motion(system, State(pose.t, pose.q, v))
    still = body_motion(system, State(pose.t, pose.q, np.zeros(system.nv)))
    spin = motion.angular_velocity - still.angular_velocity
    arm = np.einsum("nij,nj->ni", motion.rotation, system.mass_centres)
    speed = (motion.velocity - still.velocity + np.cross(spin, arm)) / system.size
    size = np.maximum(np.linalg.norm(spin, axis=1), np.linalg.norm(speed, axis=1))
    size[: system.n_bases] = 0.0
    return [system.bodies[k] for k in np.flatnonzero(size > MOVING * size.max())]


def no_inertia_in_tree(system: System, state: State, row: int) -> SingularityError:
    """Error of recursive methods on the tree when a pivot vanishes at a state.

    `row` is the body that their kernels report: the innermost of those that fail, since the bodies inboard of a body
    without inertia fail as well. In a system too large for dense matrices the body named is the outermost of those that
    compile() found.
    """
    if system.nv <= LARGEST_DENSE:
        groups = bodies_without_inertia(system, State(state.t, state.q, np.zeros(system.nv)))
        bodies = groups[-1] if groups else (system.bodies[row],)
    else:
        bodies = (system.unsupported or (system.bodies[row],))[:1]
    rows = [system.bodies.index(b) for b in bodies]
    joint = next((j.name for j in system.joints.values() if j.body == rows[0]), "?")
    one = len(bodies) == 1
    them = f"body '{bodies[0]}' has" if one else f"bodies {', '.join(repr(b) for b in bodies)} together have"
    return SingularityError(
        f"{them} no inertia against the motion of joint '{joint}', so the acceleration is not determined in the tree, "
        f"where cut joints, constraints and drivers hold nothing. Give {'it' if one else 'one of them'} mass or "
        "inertia, cut the mechanism elsewhere: compile(cuts=[...]), or use 'partition', which needs inertia only where "
        "nothing is held, as 'auto' does."
    )


# ------------------------------------------------------------------------------------------- functions


def open_tree_forward_dynamics(system: System, state: State | None = None, tau: ArrayLike | None = None) -> Array:
    """Accelerations of the tree, cut joints open, by the articulated-body algorithm.

    Parameters
    ----------
    system : System
    state : State, optional
    tau : (nv,) array, optional
        Generalised forces added to those of the model.

    Returns
    -------
    (nv,) array

    Examples
    --------
    A rod of length 1 m falls from the horizontal with 3 g / 2:

    >>> import loopdyn as ld
    >>> m = ld.Mechanism("rod", gravity=(0, -9.81, 0))
    >>> b = m.add_body("rod", ld.Inertia.rod(mass=1.0, start=(0, 0, 0), end=(1, 0, 0)))
    >>> j = m.add_joint("A", ld.Revolute(axis=(0, 0, 1)), m.ground, b, at=(0, 0, 0))
    >>> system = m.compile()
    >>> ld.tree.open_tree_forward_dynamics(system, system.state()).round(6)
    array([-14.715])
    """
    state = given(system, state)
    work, w = _prepare(system, state)
    if tau is not None:
        w.tau[:] = sized(tau, system.nv, "tau")
    add_user_forces(system, state.t, state.q, state.v, w.tau)
    status = aba.aba(system.ints, system.floats, work)
    if status >= 0:
        raise no_inertia_in_tree(system, state, status)
    return _finite(system, w.a.copy(), "acceleration", state.t)


def open_tree_inverse_dynamics(system: System, a: ArrayLike, state: State | None = None) -> Array:
    """Generalised forces in addition to those of the model that give the tree the accelerations `a`.

    Examples
    --------
    >>> import loopdyn as ld
    >>> system = ld.library.four_bar().compile()
    >>> state = system.state(q={"A": 0.2}, v={"A": 1.0})
    >>> tau = ld.tree.open_tree_inverse_dynamics(system, ld.tree.open_tree_forward_dynamics(system, state), state)
    >>> bool(abs(tau).max() < 1e-12)
    True
    """
    state = given(system, state)
    work, w = _prepare(system, state)
    w.a[:] = sized(a, system.nv, "a")
    applied = np.zeros(system.nv)
    add_user_forces(system, state.t, state.q, state.v, applied)
    rnea.rnea(system.ints, system.floats, work)
    return _finite(system, w.tau - applied, "generalised force", state.t)


def open_tree_mass_matrix(system: System, state: State | None = None) -> Array:
    """Mass matrix (nv, nv) of the tree.

    Examples
    --------
    >>> import loopdyn as ld
    >>> system = ld.library.pendulum().compile()
    >>> ld.tree.open_tree_mass_matrix(system, system.state()).shape
    (1, 1)
    """
    work, _ = _prepare(system, state)
    M = np.empty((system.nv, system.nv))
    kinematics.place(system.ints, system.floats, work, True)
    crba.crba(system.ints, system.floats, work, M)
    return M


def open_tree_body_jacobian(system: System, body: str, state: State | None = None) -> Array:
    """Jacobian (6, nv) of a body: angular velocity, then velocity of its frame's origin, in world axes.

    Examples
    --------
    >>> import loopdyn as ld
    >>> system = ld.library.four_bar().compile()
    >>> ld.tree.open_tree_body_jacobian(system, "crank").shape
    (6, 3)
    """
    if body not in system.bodies:
        raise unknown("open_tree_body_jacobian", "body", [body], system.bodies)
    work, _ = _prepare(system, state)
    J = np.empty((6, system.nv))
    jacobian.body_jacobian(system.ints, system.floats, work, system.bodies.index(body), J)
    return J


def energy(system: System, state: State | None = None) -> Energy:
    """Kinetic energy, potential energy of gravity (zero at the world origin), momentum and angular momentum.

    Bases, whose motion is prescribed, do not count.

    Examples
    --------
    >>> import loopdyn as ld
    >>> system = ld.library.four_bar().compile()
    >>> ld.tree.energy(system, system.state()).kinetic
    0.0
    """
    work, _ = _prepare(system, state)
    out = np.empty(8)
    energies.energy(system.ints, system.floats, work, out)
    return Energy(float(out[0]), float(out[1]), out[2:5].copy(), out[5:8].copy())


def body_motion(system: System, state: State | None = None, a: ArrayLike | None = None) -> Motion:
    """Poses, velocities and accelerations of all bodies; the joint accelerations `a` are zero by default.

    Examples
    --------
    >>> import loopdyn as ld
    >>> system = ld.library.four_bar().compile()
    >>> ld.tree.body_motion(system, system.state()).bodies[0]
    'ground'
    """
    work, w = _prepare(system, state)
    if a is not None:
        w.a[:] = sized(a, system.nv, "a")
    kinematics.move(system.ints, system.floats, work)
    return motion_in(system, w)


def motion_in(system: System, w: rec.Work) -> Motion:
    """Shift from reference points and kernel axes to the bodies' own frames."""
    B, data = w.body, system.model.body
    n = len(B)
    R = B[:, rec.R : rec.R + 9].reshape(n, 3, 3)
    arm = np.einsum("nij,nj->ni", R, data[:, rec.ORIGIN : rec.ORIGIN + 3])
    omega, alpha = B[:, rec.W : rec.W + 3], B[:, rec.AW : rec.AW + 3]
    spin, axes = cross_rows(omega, arm), data[:, rec.BODY_AXES : rec.BODY_AXES + 9].reshape(n, 3, 3)
    x, v = B[:, rec.X : rec.X + 3] + arm, B[:, rec.V : rec.V + 3] + spin
    dv = B[:, rec.AV : rec.AV + 3] + cross_rows(alpha, arm) + cross_rows(omega, spin)
    return Motion(system.bodies, x, R @ axes, v, omega.copy(), dv, alpha.copy())


def relative_pose(joint: JointData, motion: Motion) -> tuple[Array, Array]:
    """Rotation (3, 3) and position (3) of the frame M of a joint, seen from F in its axes."""
    F, M, xF, xM = joint.frames(motion.position, motion.rotation)
    return F.T @ M, F.T @ (xM - xF)


def joint_coordinates(joint: JointData, motion: Motion) -> Array:
    """Coordinates of any joint, cut or in the tree, from the poses of its bodies; angles within half a turn."""
    return joint.spec.measure(*relative_pose(joint, motion), joint.par)


def measured_coordinates(system: System, motion: Motion) -> Array:
    """Coordinates (nq,) at which the bodies have the poses of `motion`, which may be that of another system of them.

    Joints of the tree are measured; angles are within half a turn.

    Examples
    --------
    >>> import loopdyn as ld
    >>> system = ld.library.four_bar().compile()
    >>> measured_coordinates(system, body_motion(system, system.state(q={"A": 0.2}))).round(12)[0]
    np.float64(0.2)
    """
    row = {name: k for k, name in enumerate(motion.bodies)}
    order = [row[name] for name in system.bodies]
    there = replace(motion, position=motion.position[order], rotation=motion.rotation[order])
    q = np.zeros(system.nq)
    for j in system.joints.values():
        if j.in_tree:
            q[j.q0 : j.q0 + len(j.spec.coordinates)] = joint_coordinates(j, there)
    return counted(system, 0.0, q)


def increment(system: System, q: ArrayLike, xi: ArrayLike) -> Array:
    """q (+) xi: coordinates moved along the joints' manifolds by the increments xi (nv).

    Examples
    --------
    >>> import loopdyn as ld
    >>> system = ld.library.four_bar().compile()
    >>> bool(ld.tree.increment(system, system.q_reference, [0.1, 0.2, 0.3])[0] == 0.1)
    True
    """
    out = np.empty(system.nq)
    kinematics.plus(system.ints, system.floats, sized(q, system.nq, "q"), sized(xi, system.nv, "xi"), out)
    # with a rotating base the pose alone, without its time, does not determine the angle: only runs count turns then
    return counted(system, 0.0, out) if system.counted and not system.base_turns else out


def difference(system: System, q: ArrayLike, p: ArrayLike) -> Array:
    """Increments xi with ``p = q (+) xi``; rotations are the shortest ones.

    Examples
    --------
    >>> import loopdyn as ld
    >>> system = ld.library.four_bar().compile()
    >>> q = system.q_reference
    >>> ld.tree.difference(system, q, q)
    array([0., 0., 0.])
    """
    out = np.empty(system.nv)
    kinematics.minus(system.ints, system.floats, sized(q, system.nq, "q"), sized(p, system.nq, "p"), out)
    return out


def apart(system: System, q: ArrayLike, p: ArrayLike) -> float:
    """Distance of two poses: largest motion between them in natural units, whole turns not counted.

    Examples
    --------
    >>> import loopdyn as ld
    >>> system = ld.library.four_bar().compile()
    >>> apart(system, [0.1, 0.2, 0.3], [0.1 + 2 * np.pi, 0.2, 0.3]) < 1e-12
    True
    """
    d = difference(system, p, q) / system.speed_units
    d[system.turning] = (d[system.turning] + np.pi) % (2.0 * np.pi) - np.pi
    return float(np.abs(d).max(initial=0.0))


def readings(system: System, other: System, state: State | None = None) -> Array:
    """Joint coordinates that forces, relations and measures in laws of `other` depend on, with full turns; else zero.

    `other` is the same mechanism with other cuts, possibly without some of its forces. With these values it reads the
    angles of its cut joints with the same full turns.

    Examples
    --------
    >>> import loopdyn as ld
    >>> system = ld.library.four_bar().compile()
    >>> readings(system, system.absolute).size
    0
    """
    if (out := np.zeros(len(system.model.reader))).size:
        turns.readings(system.ints, system.floats, _prepare(system, state)[0], out)
    forces = [k for k, name in enumerate(system.forces) if name in other.forces]
    first = len(out) - len(system.law_terms)
    read = [first + system.law_terms.index(label) for label in other.law_terms]
    result: Array = np.concatenate([out[forces], out[len(system.forces) : first], out[read]])
    return result


def counted(system: System, t: float, q: ArrayLike) -> Array:
    """Coordinates q whose counted angles of cut joints (`system.counted`) are read from the pose.

    Each gets the number of full turns that brings it nearest to its previous value, which must be less than half a turn
    away.

    Examples
    --------
    >>> import loopdyn as ld
    >>> system = ld.library.four_bar().compile()
    >>> counted(system, 0.0, system.q_reference)
    array([0., 0., 0.])
    """
    out = np.array(q, float)
    if system.counted:
        work = system.work()
        w = system.open_work(work)
        w.t[0], w.q[:] = t, out
        turns.count(system.ints, system.floats, work)
        out[:] = w.q
    return out


def terms(
    system: System, state: State | None = None, angles: ArrayLike | None = None, user: UserRows | None = None
) -> Terms:
    """Everything in the equations of motion at one state.

    Parameters
    ----------
    system : System
    state : State, optional
    angles : array, optional
        Angles of cut joints whose turns do not follow from the coordinates are read within half a turn of these
        (:func:`readings`), by default of zero.
    user : UserRows, optional
        Rows of user constraints, if they are known already.

    Examples
    --------
    >>> import loopdyn as ld
    >>> system = ld.library.four_bar().compile()
    >>> t = ld.terms(system, system.state())
    >>> t.M.shape, t.J.shape, bool(abs(t.phi).max() < 1e-12)
    ((3, 3), (5, 3), True)
    """
    state = given(system, state)
    work, w = _prepare(system, state)
    if angles is not None:
        w.near[:] = sized(angles, w.near.size, "angles")
    applied, M = np.zeros(system.nv), np.empty((system.nv, system.nv))
    add_user_forces(system, state.t, state.q, state.v, applied)
    rnea.rnea(system.ints, system.floats, work)  # places the bodies for all three
    h = _finite(system, applied - w.tau, "generalised force", state.t)
    crba.crba(system.ints, system.floats, work, M)
    J, rate = _constraint_terms(system, state, work, w, user)
    return Terms(system, M, h, J, w.gamma.copy(), w.phi.copy(), rate - J @ state.v, w)


def _constraint_terms(
    system: System, state: State, work: NDArray[Any], w: rec.Work, user: UserRows | None = None
) -> tuple[Array, Array]:
    """Jacobian of all constraint rows and their rates, phi and gamma into `w`, where the bodies have been placed."""
    J, rate = np.empty((system.nc, system.nv)), np.empty(system.nc)
    (user or user_rows(system)(state.t, state.q, state.v)).write(w, J, rate)
    jacobian.constraint_terms(system.ints, system.floats, work, J, rate)
    require_rows(system, w, J, state.t)
    return J, rate


def constraint_equations(system: System, state: State | None = None) -> tuple[Array, Array]:
    """Residual of the constraint rows at position level and their Jacobian, `phi` and `J` of :func:`terms` alone.

    Examples
    --------
    >>> import loopdyn as ld
    >>> system = ld.library.four_bar().compile()
    >>> phi, J = ld.tree.constraint_equations(system, system.state())
    >>> J.shape, bool(abs(phi).max() < 1e-12)
    ((5, 3), True)
    """
    state = given(system, state)
    work, w = _prepare(system, state)
    kinematics.place(system.ints, system.floats, work, False)
    J, _ = _constraint_terms(system, state, work, w)
    return w.phi.copy(), J


class TreeSolver:
    """Accelerations of one tree at many states, without allocation per call.

    Examples
    --------
    >>> import loopdyn as ld
    >>> system = ld.library.four_bar().compile()
    >>> solve = ld.tree.TreeSolver(system)
    >>> solve(0.0, system.q_reference, [0.0, 0.0, 0.0]).shape
    (3,)
    """

    def __init__(self, system: System):
        if system.mechanism.user_forces:
            raise ModelError(
                [Problem("TreeSolver", "the model has user forces", "Use forward_dynamics, which calls them.")]
            )
        self.system = system
        self._work = system.work()
        self.views = system.open_work(self._work)
        self._arrays = (system.ints, system.floats, self._work)
        self._free = Lock()  # the work array serves one thread at a time

    def __call__(self, t: float, q: ArrayLike, v: ArrayLike, tau: ArrayLike | None = None) -> Array:
        """Accelerations (nv,) as a view that the next call overwrites."""
        if not self._free.acquire(blocking=False):
            raise LoopdynError("a TreeSolver is used by two threads at once. Make one for each thread.")
        try:
            return self._solve(t, q, v, tau)
        finally:
            self._free.release()

    def _solve(self, t: float, q: ArrayLike, v: ArrayLike, tau: ArrayLike | None) -> Array:
        w = self.views
        w.t[0] = t
        w.q[:] = q
        w.v[:] = v
        w.tau[:] = 0.0 if tau is None else tau
        status = aba.aba(*self._arrays)
        if status >= 0:
            raise no_inertia_in_tree(self.system, State(t, np.array(q, float), np.array(v, float)), status)
        result: Array = w.a
        return result
