"""Motion of the centres of mass of bodies: the same whatever the frames and coordinates of two models are."""

from __future__ import annotations

import numpy as np

import loopdyn as ld


def centres(system: ld.System, state: ld.State, a: np.ndarray, names: list[str]) -> dict[str, np.ndarray]:
    """Position, velocity, angular velocity, acceleration and angular acceleration of each body, at its centre of mass.

    The centre is that of the declared mass properties, in world axes.
    """
    motion = ld.tree.body_motion(system, state, a)
    r = system.mechanism.resolver()
    found = {}
    for name in names:
        k = motion.bodies.index(name)
        body = system.mechanism.bodies[name]
        mass, com, _ = body.resolve(r, name, ())
        x, R = system.reference_poses[k]
        own = com if body.axes == "body" or body.pose is None else R.T @ (com - x)
        arm = motion.rotation[k] @ own if mass else np.zeros(3)
        w, alpha = motion.angular_velocity[k], motion.angular_acceleration[k]
        velocity = motion.velocity[k] + np.cross(w, arm)
        acceleration = motion.acceleration[k] + np.cross(alpha, arm) + np.cross(w, np.cross(w, arm))
        found[name] = np.array([motion.position[k] + arm, velocity, w, acceleration, alpha])
    return found


def difference(one: dict[str, np.ndarray], two: dict[str, np.ndarray]) -> float:
    """Largest difference over the largest value of its kind, but not less than one in SI units."""
    kinds = range(5)
    scale = [max(1.0, *(np.abs(m[k]).max() for m in one.values())) for k in kinds]
    return max(float(np.abs(one[n][k] - two[n][k]).max()) / scale[k] for n in one for k in kinds)
