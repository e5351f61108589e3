"""Adding and removing constraints at a state, e.g. joints that are released or locked.

The bodies keep their poses. Removing constraints keeps the velocities too. If constraints are added, the
velocities jump to the nearest ones that the new mechanism allows, in the metric of kinetic energy,

    minimise 1/2 (v+ - v-)^T M (v+ - v-)   subject to   J v+ = -phi_t

whose multipliers are the impulses. Kinetic energy never increases if no constraint depends on time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from loopdyn.analysis.assembly import assembled
from loopdyn.errors import AssemblyError, ModelError, Problem
from loopdyn.formulations.oracle import solve_dense
from loopdyn.loops.free_bodies import free_state, free_system, joint_loads
from loopdyn.loops.rank import decide
from loopdyn.loops.reactions import Reactions, distribute
from loopdyn.system.system import State, System
from loopdyn.tree.functions import (
    Motion,
    body_motion,
    energy,
    measured_coordinates,
    open_tree_body_jacobian,
    open_tree_mass_matrix,
    terms,
)
from loopdyn.tree.start import given

Array = NDArray[np.float64]

NEWTON = 20  # most steps to velocities that satisfy rows not affine in the speeds
OPEN = 1e-7  # residual, natural units, below which the poses satisfy the new constraints


@dataclass(frozen=True)
class Change:
    """State after a change of constraints.

    Attributes
    ----------
    state : State
        State of the new system.
    impulse : Reactions
        Impulses of all joints, N s and N m s, on their declared children at M's origin in F axes.
    energy_loss : float
        Kinetic energy lost, J.
    """

    state: State
    impulse: Reactions
    energy_loss: float


def reconnect(system: System, other: System, state: State | None = None) -> Change:
    """Transfer a state to a system of the same bodies with other joints or constraints.

    Parameters
    ----------
    system, other : System
        Mechanism before and after; same bodies, other joints, constraints or drivers.
    state : State, optional
        State of `system`; by default its start, assembled.

    Returns
    -------
    Change

    Raises
    ------
    AssemblyError
        If the poses of the bodies violate the new constraints.

    Examples
    --------
    Releasing a joint dissipates no energy:

    >>> import loopdyn as ld
    >>> closed = ld.library.four_bar()
    >>> state = ld.assemble(closed.compile(), v={"A": 2.0})
    >>> opened = ld.library.four_bar()
    >>> del opened.joints["C"]
    >>> change = reconnect(closed.compile(), opened.compile(), state)
    >>> abs(change.energy_loss) < 1e-12
    True
    """
    state = given(system, state)
    system = system.for_state(state)
    if set(system.bodies) != set(other.bodies):
        odd = sorted(set(system.bodies) ^ set(other.bodies))
        raise ModelError([Problem("reconnect", f"the systems differ in bodies {', '.join(odd)}", "Keep all bodies.")])
    motion = body_motion(system, state)
    q = measured_coordinates(other, motion)
    _keep_turns(system, state, other, q)
    pose = State(state.t, q, np.zeros(other.nv))
    allowed = OPEN
    if state.tolerated is not None and other.tolerated is None:
        angle, length = state.tolerated.angle, state.tolerated.length
        pose = assembled(other, near=pose, limits=False, tolerance=(angle, length))
        pose, other = replace(pose, v=np.zeros(other.nv)), other.for_state(pose)
        allowed = max(OPEN, angle, length / other.size)
    gap = _misfit(other, pose, motion)
    if gap > allowed:
        raise AssemblyError(
            f"the poses of the bodies violate the new constraints by {gap:.3g} of the mechanism's size. Change "
            "constraints at a state that satisfies the new ones.",
            pose,
            gap,
        )
    before = energy(system, state).kinetic
    p = _momentum(system, state, other, pose)
    # not loops.projection.nearest_speeds: momenta are given here, not speeds, which bodies without inertia do not have
    M, after = open_tree_mass_matrix(other, pose), pose
    for _ in range(1 if other.affine else NEWTON):
        now, rank = terms(other, after), decide(other, after).count
        v = solve_dense(M, p, now.J, -now.phi_t, other.speed_units, other.row_units, rank).a
        after = replace(pose, v=v)
    return Change(after, impulses_between(system, state, other, after), before - energy(other, after).kinetic)


def _keep_turns(system: System, state: State, other: System, q: Array) -> None:
    """Coordinates q with the full turns of angles that both systems have."""
    for n, label in enumerate(other.coordinates):
        j, k, *_ = other.labels.coordinates[label]
        same = system.joints.get(j.name)
        alike = label in system.coordinates and same is not None and same.spec.type == j.spec.type
        if alike and j.spec.dimensions[k] == "angle":
            q[n] += 2 * np.pi * np.round((state.q[system.coordinates.index(label)] - q[n]) / (2 * np.pi))


def _misfit(other: System, pose: State, motion: Motion) -> float:
    """Distance of the poses given by the new coordinates from those of the bodies, and the gap of the loops."""
    now = terms(other, pose)
    row = {name: k for k, name in enumerate(motion.bodies)}
    order = [row[name] for name in other.bodies]
    away = np.abs(now.motion.position - motion.position[order]).max() / other.size
    turned = np.abs(now.motion.rotation - motion.rotation[order]).max()
    open_ = np.abs((now.phi / other.row_units)[other.holonomic]).max(initial=0.0)
    return float(max(away, turned, open_))


def _momentum(system: System, state: State, other: System, pose: State) -> Array:
    """Generalised momentum of the bodies' current velocities in the coordinates of `other`."""
    free = free_system(system)
    there = free_state(system, body_motion(system, state))
    per_body = open_tree_mass_matrix(free, there) @ there.v
    p = np.zeros(other.nv)
    motion = body_motion(system, state)
    row = {name: k for k, name in enumerate(motion.bodies)}
    for j in free.joints.values():
        if j.in_tree:
            name = free.bodies[j.body]
            R = motion.rotation[row[name]]
            spin, push = R @ per_body[j.v0 : j.v0 + 3], R @ per_body[j.v0 + 3 : j.v0 + 6]
            J = open_tree_body_jacobian(other, name, pose)
            p += J[:3].T @ spin + J[3:].T @ push
    p += other.model.armature * _speeds_of_rotors(system, state.v, other)
    return p


def _speeds_of_rotors(system: System, v: Array, other: System) -> Array:
    """Speeds in `other` of the freedoms that have armature, taken from `system`; others are zero."""
    out = np.zeros(other.nv)
    for there, here in ((other, system), (system, other)):
        for j in there.joints.values():
            if j.in_tree and there.model.armature[j.v0 : j.v0 + len(j.spec.speeds)].any():
                same = here.joints.get(j.name)
                if same is None or not same.in_tree or same.spec.armature != j.spec.armature:
                    message = "has armature, which the change of constraints would remove or add"
                    raise ModelError([Problem(f"joint '{j.name}'", message, "Keep the joint as it is.")])
                if there is other:
                    n = len(j.spec.speeds)
                    out[j.v0 : j.v0 + n] = v[same.v0 : same.v0 + n]
    return out


def impulses_between(system: System, state: State, other: System, after: State) -> Reactions:
    """Impulses of all joints of `other` from the jump of the bodies' momenta between two states of one pose."""
    free = free_system(other)
    v1 = free_state(other, body_motion(other, after))
    v0 = free_state(system, body_motion(system, state))
    before = _reordered(free_system(system), v0.v, free)
    jump = open_tree_mass_matrix(free, v1) @ (v1.v - before)  # in the bodies' own axes
    motion = body_motion(other, after)
    rotors = other.model.armature * (after.v - _speeds_of_rotors(system, state.v, other))
    jump += joint_loads(other, free, motion) @ rotors  # torques on rotors act between the bodies of their joints
    load = np.zeros((len(other.bodies), 6))
    for j in free.joints.values():
        if j.in_tree:
            k = other.bodies.index(free.bodies[j.body])
            load[k] = np.concatenate([motion.rotation[k] @ jump[j.v0 + n : j.v0 + n + 3] for n in (0, 3)])
    return distribute(other, after, load)


def _reordered(source: System, v: Array, target: System) -> Array:
    """Speeds of free bodies in the order of another system of the same bodies."""
    out = np.empty_like(v)
    found = {source.bodies[j.body]: v[j.v0 : j.v0 + 6] for j in source.joints.values() if j.in_tree}
    for j in target.joints.values():
        if j.in_tree:
            out[j.v0 : j.v0 + 6] = found[target.bodies[j.body]]
    return out
