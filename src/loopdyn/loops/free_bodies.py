"""The mechanism with all its joints cut: every body free, every joint a set of rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from loopdyn.joints.dispatch import wrenches
from loopdyn.loops.rank import Rank, of_matrix, scaled
from loopdyn.spatial.rotations import from_matrix
from loopdyn.system.system import State, System
from loopdyn.tree.functions import Motion, Terms, body_motion, readings, terms
from loopdyn.tree.user_rows import UserRows, user_rows

Array = NDArray[np.float64]


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
    """Accelerations of the free joints; `still` is the motion of the free bodies for zero accelerations of these."""
    row = {name: k for k, name in enumerate(order)}
    a = np.empty(free.nv)
    for j in free.joints.values():
        if j.in_tree:
            k, n = row[free.bodies[j.body]], j.body
            R = motion.rotation[k]
            a[j.v0 : j.v0 + 3] = R.T @ (motion.angular_acceleration[k] - still.angular_acceleration[n])
            a[j.v0 + 3 : j.v0 + 6] = R.T @ (motion.acceleration[k] - still.acceleration[n])
    return a


def joint_loads(system: System, free: System, motion: Motion) -> Array:
    """W: loads on the free bodies, in their own axes, that are equivalent to unit loads on each speed of the tree."""
    W = np.zeros((free.nv, system.nv))
    first = {free.bodies[j.body]: j.v0 for j in free.joints.values() if j.in_tree}
    for j in system.joints.values():
        if not j.in_tree:
            continue
        F, M, _, at = j.frames(motion.position, motion.rotation)
        for n, wrench in enumerate(wrenches(j.spec, F, M, j.par)):
            torque, force = wrench[:3], wrench[3:]
            for body, sign in ((j.child, 1.0), (j.parent, -1.0)):
                if system.bodies[body] in first:
                    k, R = first[system.bodies[body]], motion.rotation[body]
                    moment = torque + np.cross(at - motion.position[body], force)
                    W[k : k + 3, j.v0 + n] += sign * (R.T @ moment)
                    W[k + 3 : k + 6, j.v0 + n] += sign * (R.T @ force)
    return W


def free_terms(system: System, state: State) -> tuple[System, State, Terms]:
    """The free bodies at a state of the tree: their system, their state, and the terms there."""
    free = free_system(system)
    there = free_state(system, body_motion(system, state))
    there = State(state.t, there.q, there.v)
    return free, there, terms(free, there, readings(system, free, state), carried_rows(system, state, free, there))


def carried_rows(system: System, state: State, free: System, there: State) -> UserRows | None:
    """Rows of user constraints, which are functions of the coordinates of `system`, in the speeds of its free bodies.

    With W of :func:`joint_loads` a row J over the tree becomes J W^T, since W^T maps the speeds of the bodies to those
    of the tree; the accelerations of the free bodies at zero accelerations of the tree go to the right side.
    """
    if not system.mechanism.user_constraints:
        return None
    rows = user_rows(system)(state.t, state.q, state.v)
    motion = body_motion(system, state)
    J = rows.J @ joint_loads(system, free, motion).T
    still = body_motion(free, there)
    return replace(rows, J=J, gamma=rows.gamma + J @ free_accelerations(free, motion, still, system.bodies))


def joint_rank(system: System, state: State) -> tuple[Rank, Array, State]:
    """Rank of the rows of all joints at the pose of `state`, their Jacobian over free bodies, and the free state."""
    free, there, now = free_terms(system, state)
    return of_matrix(scaled(free, now.J)), now.J, there
