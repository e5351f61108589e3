"""Independent computations in plain NumPy and SciPy, with which tests compare loopdyn.

Nothing here calls a kernel of loopdyn for the quantity that is judged. Where a state has to be brought to another
system (:func:`transfer`), the tests check afterwards that the poses and velocities of all bodies are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation as Turn

import loopdyn as ld

# ------------------------------------------------------------------------------------------ small geometry


def turn(axis: Any, angle: float) -> np.ndarray:
    """Rotation matrix about an axis of any length."""
    axis = np.asarray(axis, float)
    return Turn.from_rotvec(angle * axis / np.linalg.norm(axis)).as_matrix()


def from_quaternion(q: Any) -> np.ndarray:
    """Rotation matrix of (w, x, y, z)."""
    return Turn.from_quat(np.roll(q, -1)).as_matrix()


def rotation_vector(R: np.ndarray) -> np.ndarray:
    return Turn.from_matrix(R).as_rotvec()


def random_rotation(rng: np.random.Generator) -> np.ndarray:
    return from_quaternion(rng.normal(size=4))


def direction(rng: np.random.Generator) -> np.ndarray:
    v = rng.normal(size=3)
    return v / np.linalg.norm(v)


def quaternion(R: np.ndarray) -> tuple[float, ...]:
    """Quaternion (w, x, y, z) of a rotation matrix, for descriptions."""
    x, y, z, w = Turn.from_matrix(R).as_quat().tolist()
    return w, x, y, z


# ------------------------------------------------------------------------------------- derivatives on a path


def first_derivative(f: Callable[[float], np.ndarray], h: float) -> np.ndarray:
    """Five-point formula; error h^4 f^(5) / 30."""
    return (f(-2 * h) - 8 * f(-h) + 8 * f(h) - f(2 * h)) / (12 * h)


def second_derivative(f: Callable[[float], np.ndarray], h: float) -> np.ndarray:
    """Five-point formula; error h^4 f^(6) / 90."""
    return (-f(-2 * h) + 16 * f(-h) - 30 * f(0.0) + 16 * f(h) - f(2 * h)) / (12 * h * h)


def path(system: ld.System, state: ld.State, a: np.ndarray) -> Callable[[float], ld.State]:
    """A motion that has the speeds of `state` and the accelerations `a` at s = 0.

    Speeds of a free joint are in axes that turn with the body. Moved by xi = (omega, u) s + ... its origin runs
    straight, so that its acceleration in these axes is that of xi less omega x u, which is added here.
    """
    twice = np.array(a, float)
    for j in system.joints.values():
        if j.in_tree and j.spec.type == "free":
            k = j.v0
            twice[k + 3 : k + 6] += np.cross(state.v[k : k + 3], state.v[k + 3 : k + 6])

    def at(s: float) -> ld.State:
        q = ld.tree.increment(system, state.q, s * state.v + 0.5 * s * s * twice)
        return ld.State(state.t + s, q, state.v + s * np.asarray(a))

    return at


# ------------------------------------------------------------------------------------------------- states


def random_state(system: ld.System, rng: np.random.Generator, spread: float = 1.0, t: float = 0.0) -> ld.State:
    """Coordinates and speeds of order `spread` and one; quaternions anywhere if `spread` is not small."""
    xi = spread * rng.normal(size=system.nv)
    return system.state(ld.tree.increment(system, system.q_reference, xi), rng.normal(size=system.nv), t)


def closed_state(system: ld.System, rng: np.random.Generator, spread: float = 0.1, t: float = 0.0) -> ld.State:
    """A state near the reference pose that meets all rows at position and velocity level, by Newton's method.

    If a start cannot be closed, one nearer to the reference pose is used.
    """
    for _ in range(20):
        state = random_state(system, rng, spread, t)
        q = state.q
        for _ in range(60):
            terms = ld.terms(system, system.state(q, t=t))
            step = -np.linalg.lstsq(terms.J, terms.phi, rcond=1e-9)[0]
            length = np.linalg.norm(step)
            q = ld.tree.increment(system, q, step * min(1.0, 0.3 / max(length, 1e-30)))
            if length < 1e-13:
                break
        terms = ld.terms(system, system.state(q, state.v, t))
        if np.abs(terms.phi).max(initial=0.0) < 1e-12:
            v = state.v - np.linalg.lstsq(terms.J, terms.J @ state.v + terms.phi_t, rcond=1e-9)[0]
            return system.state(q, v, t)
        spread *= 0.5
    raise AssertionError("the test found no closed state")


def constrained(system: ld.System, state: ld.State) -> tuple[np.ndarray, np.ndarray]:
    """Accelerations and multipliers of the closed system: the dense equations, in least squares."""
    e = ld.terms(system, state)
    nv, nc = system.nv, system.nc
    matrix = np.block([[e.M, -e.J.T], [e.J, np.zeros((nc, nc))]])
    # rows and columns scaled to order one, so that one threshold separates redundant rows
    size = np.concatenate([1.0 / np.sqrt(np.diag(e.M)), np.ones(nc)])
    solution = np.linalg.lstsq(size[:, None] * matrix * size, size * np.concatenate([e.h, e.gamma]), rcond=1e-10)[0]
    solution = size * solution
    return solution[:nv], solution[nv:]


def transfer(system: ld.System, motion: ld.tree.Motion, t: float = 0.0) -> ld.State:
    """The state of `system` in which its bodies have the poses and velocities of `motion`."""
    where = {name: k for k, name in enumerate(motion.bodies)}
    q = system.q_reference.copy()
    for j in system.joints.values():
        if not j.in_tree:
            continue
        ends = [where[system.bodies[b]] for b in (j.parent, j.child)]
        (xF, F), (xM, M) = (
            (motion.position[k] + motion.rotation[k] @ p, motion.rotation[k] @ R)
            for k, (p, R) in zip(ends, (j.F, j.M), strict=True)
        )
        q[j.q0 : j.q0 + len(j.spec.coordinates)] = j.spec.measure(F.T @ M, F.T @ (xM - xF), j.par)
    rest = ld.tree.body_motion(system, system.state(q, t=t))
    rows, right = [], []
    at_rest = system.state(q, t=t)
    for k, name in enumerate(system.bodies[system.n_bases :], system.n_bases):
        i = where[name]
        rows.append(ld.tree.open_tree_body_jacobian(system, name, at_rest))
        right.append(motion.angular_velocity[i] - rest.angular_velocity[k])
        right.append(motion.velocity[i] - rest.velocity[k])
    v = np.linalg.lstsq(np.vstack(rows), np.concatenate(right), rcond=None)[0] if system.nv else np.zeros(0)
    return system.state(q, v, t)


def assert_same_motion(
    a: ld.tree.Motion,
    b: ld.tree.Motion,
    tolerance: float,
    Q: np.ndarray | None = None,
    accelerations: bool = True,
) -> None:
    """All bodies have the same motion, in any order; with `Q`, the second is the first in rotated axes."""
    Q = np.eye(3) if Q is None else Q
    where = [b.bodies.index(name) for name in a.bodies]
    fields = ["position", "velocity", "angular_velocity"]
    fields += ["acceleration", "angular_acceleration"] if accelerations else []
    np.testing.assert_allclose(b.rotation[where], Q @ a.rotation, atol=tolerance, rtol=0)
    for name in fields:
        mine, other = getattr(a, name) @ Q.T, getattr(b, name)[where]
        scale = max(1.0, float(np.abs(mine).max()))
        np.testing.assert_allclose(other, mine, atol=tolerance * scale, rtol=0, err_msg=name)


# ------------------------------------------------------------------------------------------------- joints

# What the tests know about each joint type, written from docs/notation.md.

# Labels of coordinates and speeds (docs/notation.md).
LABELS = {
    "revolute": (["A"], ["A"]),
    "prismatic": (["A"], ["A"]),
    "helical": (["A"], ["A"]),
    "cylindrical": (["A.angle", "A.slide"],) * 2,
    "universal": (["A.1", "A.2"],) * 2,
    "planar": (["A.x", "A.y", "A.angle"],) * 2,
    "translational": (["A.x", "A.y", "A.z"],) * 2,
    "spherical": (["A.w", "A.x", "A.y", "A.z"], ["A.wx", "A.wy", "A.wz"]),
    "free": (
        ["A.px", "A.py", "A.pz", "A.w", "A.x", "A.y", "A.z"],
        ["A.wx", "A.wy", "A.wz", "A.vx", "A.vy", "A.vz"],
    ),
    "weld": ([], []),
}

# Motion that each row of a cut joint prevents, in F axes (docs/notation.md).
ROWS = {
    "revolute": ("mx", "my", "fx", "fy", "fz"),
    "prismatic": ("mx", "my", "mz", "fx", "fy"),
    "helical": ("mx", "my", "fx", "fy", "screw"),
    "cylindrical": ("mx", "my", "fx", "fy"),
    "universal": ("normal", "fx", "fy", "fz"),
    "planar": ("mx", "my", "fz"),
    "translational": ("mx", "my", "mz"),
    "spherical": ("fx", "fy", "fz"),
    "free": (),
    "weld": ("mx", "my", "mz", "fx", "fy", "fz"),
}

TYPES = tuple(LABELS)
REVERSIBLE = TYPES  # those that are the same joint when parent and child are exchanged


def placement(spec: Any, q: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
    """Position and rotation that the coordinates `q` give the joint's frame on the child, seen from the parent's.

    Both in the axes in which the joint's own axes are written. Straight from the table in docs/notation.md.
    """
    zero, one = np.zeros(3), np.eye(3)
    kind = spec.type
    if kind == "revolute":
        return zero, turn(spec.axis, q[0])
    if kind in ("prismatic", "helical", "cylindrical"):
        a = np.array(spec.axis, float)
        a /= np.linalg.norm(a)
        angle = 0.0 if kind == "prismatic" else q[0]
        slide = {"prismatic": q[0], "cylindrical": q[-1]}.get(kind, 0.0)
        return (spec.pitch * q[0] if kind == "helical" else slide) * a, turn(a, angle)
    if kind == "universal":
        return zero, turn(spec.axis1, q[0]) @ turn(spec.axis2, q[1])
    if kind == "planar":
        n = np.array(spec.normal, float)
        n /= np.linalg.norm(n)
        x = np.array(spec.x, float)
        x = x - (x @ n) * n
        x /= np.linalg.norm(x)
        return q[0] * x + q[1] * np.cross(n, x), turn(n, q[2])
    if kind == "translational":
        return np.array(q, float), one
    if kind == "spherical":
        return zero, from_quaternion(q)
    if kind == "free":
        return np.array(q[:3], float), from_quaternion(q[3:])
    if kind == "weld":
        return zero, one
    raise AssertionError(f"the tests do not know the pose of '{kind}'")


def random_joint(kind: str, rng: np.random.Generator) -> Any:
    """A joint of this type in generic orientation, its axes not of length one."""
    a, b = 2.0 * direction(rng), 0.7 * direction(rng)
    while np.linalg.norm(np.cross(a, b)) < 0.5:
        b = 0.7 * direction(rng)
    return {
        "revolute": lambda: ld.Revolute(axis=a),
        "prismatic": lambda: ld.Prismatic(axis=a),
        "helical": lambda: ld.joints.Helical(axis=a, pitch=float(rng.uniform(0.1, 0.4) * rng.choice([-1, 1]))),
        "cylindrical": lambda: ld.Cylindrical(axis=a),
        "universal": lambda: ld.Universal(axis1=a, axis2=b),
        "planar": lambda: ld.Planar(normal=a, x=b),
        "translational": ld.joints.Translational,
        "spherical": ld.Spherical,
        "free": ld.Free,
        "weld": ld.joints.Weld,
    }[kind]()


def random_coordinates(kind: str, rng: np.random.Generator, most: float = 1.2) -> np.ndarray:
    """Coordinates of a joint, angles and slides between -`most` and `most`; quaternions with w > 0."""
    labels = LABELS[kind][0]
    if "A.w" not in labels:
        return rng.uniform(-most, most, len(labels))
    quaternions = rng.normal(size=4)  # the last four
    quaternions *= np.sign(quaternions[0]) / np.linalg.norm(quaternions)
    return np.concatenate([rng.uniform(-most, most, len(labels) - 4), quaternions])


def after(kind: str, q: np.ndarray, v: np.ndarray, s: float) -> np.ndarray:
    """Coordinates after the time s, to first order, if the speeds are v at q."""
    if "A.w" not in LABELS[kind][0]:
        return q + s * v
    E = from_quaternion(q[-4:])
    turned = quaternion(E @ Turn.from_rotvec(s * v[:3]).as_matrix())
    if kind == "spherical":
        return np.array(turned)
    if kind == "free":
        return np.concatenate([q[:3] + s * E @ v[3:], turned])
    raise AssertionError(f"the tests do not know the motion of '{kind}'")


def reversed_joint(spec: Any) -> Any:
    """The same joint with parent and child exchanged; a universal joint exchanges its axes too."""
    change = {"parent": spec.child, "child": spec.parent}
    if spec.type == "universal":
        change |= {"axis1": spec.axis2, "axis2": spec.axis1}
    return spec.model_copy(update=change)


def reversed_coordinates(spec: Any, q: Any, v: Any) -> tuple[Any, Any]:
    """Coordinates and speeds of the parent seen from the child, by the definition of each joint."""
    if spec.type == "universal":
        return [-q[1], -q[0]], [-v[1], -v[0]]
    if spec.type == "planar":
        R = turn((0, 0, 1), q[2])[:2, :2]
        p, u = np.array(q[:2]), np.array(v[:2])
        spin = v[2] * np.array([[0.0, -1.0], [1.0, 0.0]])
        return [*(-R.T @ p), -q[2]], [*(-R.T @ (u - spin @ p)), -v[2]]
    if spec.type == "spherical":
        R, w = from_quaternion(q), np.array(v)
        return [q[0], *(-np.array(q[1:]))], -R @ w
    if spec.type == "free":
        p, R = np.array(q[:3]), from_quaternion(q[3:])
        w, u = np.array(v[:3]), np.array(v[3:])
        # origin of F seen from M is -R^T p in M axes; its rate is omega x R^T p - u, and F axes are R
        return [*(-R.T @ p), q[3], *(-np.array(q[4:]))], [*(-R @ w), *(R @ (np.cross(w, R.T @ p) - u))]
    return [-x for x in q], [-x for x in v]


def random_inertia(rng: np.random.Generator, com: Any) -> ld.Inertia:
    """A possible body: positive second moments of mass in all directions."""
    mass = float(rng.uniform(0.5, 2.0))
    A = rng.normal(size=(3, 3))
    second = mass * (0.03 * A @ A.T + 0.01 * np.eye(3))
    matrix = np.trace(second) * np.eye(3) - second
    return ld.Inertia(mass, com, (matrix + matrix.T) / 2)


# --------------------------------------------------------------------------------------- points and momenta


def point(motion: ld.tree.Motion, body: str, at: Any) -> tuple[np.ndarray, np.ndarray]:
    """World position and velocity of a point given at the reference pose, for a body without a pose of its own."""
    k = motion.bodies.index(body)
    arm = motion.rotation[k] @ np.asarray(at, float)
    return motion.position[k] + arm, motion.velocity[k] + np.cross(motion.angular_velocity[k], arm)


def balances(m: ld.Mechanism, motion: ld.tree.Motion) -> tuple[float, np.ndarray, np.ndarray, float, np.ndarray]:
    """Kinetic energy, momentum, angular momentum about the origin, mass, and mass times centre of mass.

    For bodies given as ``Inertia(mass, com, matrix)`` without a pose.
    """
    T, p, L, mass, moment = 0.0, np.zeros(3), np.zeros(3), 0.0, np.zeros(3)
    for name, body in m.bodies.items():
        k = motion.bodies.index(name)
        R, w = motion.rotation[k], motion.angular_velocity[k]
        x, v = point(motion, name, body.com)
        i = body.inertia
        I = np.array([[i.xx, i.xy, i.xz], [i.xy, i.yy, i.yz], [i.xz, i.yz, i.zz]])
        spin = R @ I @ R.T @ w
        T += 0.5 * body.mass * v @ v + 0.5 * w @ spin
        p += body.mass * v
        L += spin + np.cross(x, body.mass * v)
        mass += body.mass
        moment += body.mass * x
    return T, p, L, mass, moment


def value(law: Any, variables: Mapping[str, float]) -> float:
    """A number, or a formula of the test's own mechanisms evaluated by Python."""
    names = {"cos": np.cos, "sin": np.sin, "tanh": np.tanh, "pi": np.pi}
    return float(eval(law, {"__builtins__": {}}, names | dict(variables))) if isinstance(law, str) else float(law)
