"""Small systems beside Lagrange's equations, derived here by SymPy from energies alone.

A system is described once, as a list of joints and bodies, and made twice: as a mechanism of loopdyn and as a
Lagrangian. The derivation knows nothing of recursions, velocity terms or motion subspaces: it writes where a body is,

    D_i(q, t) = D_parent(q, t) S(at) E(q) S(-at)        displacement of the body since the reference pose, 4x4

with E the motion of the joint and S(at) the shift to its place. With N the integral of x x^T dm over the body, where x
is (x, y, z, 1) at the reference pose, its kinetic energy is T = tr(D' N D'^T) / 2, and Lagrange's equation

    d/dt dT/dq'_j - dT/dq_j + dV/dq_j + dP/dq'_j = Q_j

becomes tr(dD/dq_j N D''^T) + dV/dq_j + dP/dq'_j = Q_j, since d/dt and d/dq_j commute. V is the potential, P the
dissipation. All derivatives of D, V and P are SymPy's; time counts as one more coordinate, whose motion is given.

Rotations of a ball are written by Rodrigues parameters, a chart of their own, to which quaternions and their speeds are
mapped.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
import sympy as sp

import loopdyn as ld

# Both sides are exact; rounding through the condition of M (below 1e4 here) stays below 1e-12.
TOLERANCE = 1e-10
GRAVITY = (1.5, -2.5, -9.0)
TIME = sp.Symbol("t", real=True)


# ------------------------------------------------------------------------------------------------- geometry


def unit(v):
    return np.array(v, float) / np.linalg.norm(v)


def skew(v):
    x, y, z = v
    return sp.Matrix([[0, -z, y], [z, 0, -x], [-y, x, 0]])


def vee(W):
    return sp.Matrix([W[2, 1], W[0, 2], W[1, 0]])


def motion(R, p):
    """4x4 matrix of a displacement."""
    return sp.Matrix(sp.BlockMatrix([[sp.Matrix(R), sp.Matrix(p)], [sp.zeros(1, 3), sp.ones(1, 1)]]))


def inverse(D):
    R, p = D[:3, :3], D[:3, 3]
    return motion(R.T, -R.T * p)


def turn(axis, angle):
    """Rotation about a unit vector (Rodrigues)."""
    K = skew(axis)
    return sp.eye(3) + sp.sin(angle) * K + (1 - sp.cos(angle)) * K * K


def rodrigues(c):
    """Rotation about the direction of c by twice the arctangent of its length: a chart without roots or sines."""
    K = skew(c)
    return sp.eye(3) + 2 / (1 + c[0] ** 2 + c[1] ** 2 + c[2] ** 2) * (K + K * K)


def planar_axes(normal, x):
    z = unit(normal)
    y = unit(np.cross(z, x))
    return np.cross(y, z), y, z


def joint_motion(joint, c):
    """Motion of the child against the parent, world axes at the reference pose, in the chart c."""
    zero = [0, 0, 0]
    match joint.type:
        case "revolute":
            return motion(turn(unit(joint.axis), c[0]), zero)
        case "prismatic":
            return motion(sp.eye(3), c[0] * sp.Matrix(unit(joint.axis)))
        case "helical":
            axis = unit(joint.axis)
            return motion(turn(axis, c[0]), joint.pitch * c[0] * sp.Matrix(axis))
        case "cylindrical":
            axis = unit(joint.axis)
            return motion(turn(axis, c[0]), c[1] * sp.Matrix(axis))
        case "universal":
            return motion(turn(unit(joint.axis1), c[0]) * turn(unit(joint.axis2), c[1]), zero)
        case "planar":
            x, y, z = planar_axes(joint.normal, joint.x)
            return motion(turn(z, c[2]), c[0] * sp.Matrix(x) + c[1] * sp.Matrix(y))
        case "translational":
            return motion(sp.eye(3), c)
        case "spherical":
            return motion(rodrigues(c), zero)
        case "free":
            return motion(rodrigues(c[3:]), c[:3])
    raise ValueError(joint.type)


# --------------------------------------------------------------------------------------------- a system, twice


@dataclass
class Lagrange:
    """A mechanism of loopdyn and its Lagrangian, grown together."""

    base: dict = field(default_factory=dict)

    def __post_init__(self):
        self.mechanism = ld.Mechanism("small", gravity=GRAVITY)
        self.c, self.u = [], []  # chart and its rates
        self.joints = {}  # name: its slice of the chart
        self.inertia = {}  # body: N
        self.V = self.P = sp.Integer(0)
        self.Q = {}
        self.place = {"ground": self._base_motion()}
        if self.base:
            self.mechanism.move_base(**self.base)

    def _base_motion(self):
        x, y, z, rx, ry, rz = (sp.sympify(self.base.get(k, 0), {"t": TIME}) for k in ("x", "y", "z", "rx", "ry", "rz"))
        R = turn((0, 0, 1), rz) * turn((0, 1, 0), ry) * turn((1, 0, 0), rx)
        return motion(R, [x, y, z])

    def add(self, parent, joint, at, reverse, rng):
        """A body on a joint; reversed, the body is the declared parent."""
        k = len(self.joints)
        name, body = f"J{k}", f"body{k}"
        mass, com = round(rng.uniform(0.5, 2.0), 3), np.round(at + 0.4 * rng.normal(size=3), 3)
        A = rng.normal(size=(3, 3))
        second = 0.02 * A @ A.T + 0.01 * np.eye(3)
        inertia = np.trace(second) * np.eye(3) - second
        self.mechanism.add_body(body, ld.Inertia(mass, tuple(com), inertia))
        ends = (body, parent) if reverse else (parent, body)
        self.mechanism.add_joint(name, joint, *ends, at=tuple(at))

        n = len(joint.speeds)
        chart = sp.symbols(f"c{k}_:{n}", real=True)
        self.joints[name] = slice(len(self.c), len(self.c) + n)
        self.c += chart
        self.u += sp.symbols(f"u{k}_:{n}", real=True)
        E = joint_motion(joint, chart)
        shift, back = motion(sp.eye(3), at), motion(sp.eye(3), -np.array(at))
        self.place[body] = (self.place[parent] * shift * (inverse(E) if reverse else E) * back).expand()

        c = np.array([*com, 1.0])
        self.inertia[body] = mass * np.outer(c, c)
        self.inertia[body][:3, :3] += second
        self.V -= mass * self.point(body, com).dot(sp.Matrix(GRAVITY))
        return body

    def point(self, body, p):
        """World position of the body point that is at p at the reference pose."""
        return (self.place[body] * sp.Matrix([*p, 1]))[:3, :]

    def rate(self, e):
        """Derivative by time of a function of t and the chart."""
        e = sp.Matrix(e)
        return e.jacobian(self.c) * sp.Matrix(self.u) + e.diff(TIME)

    def angular_velocity(self, body):
        R = self.place[body][:3, :3]
        return vee(self.rate(R.reshape(9, 1)).reshape(3, 3) * R.T)

    def push(self, body, p, force, torque=(0, 0, 0)):
        """Generalised force of a load on a body, by its power."""
        x, w = self.rate(self.point(body, p)), self.angular_velocity(body)
        power = x.dot(sp.Matrix(force)) + w.dot(sp.Matrix(torque))
        for u in self.u:
            self.Q[u] = self.Q.get(u, 0) + power.diff(u)

    # ---------------------------------------------------------------------------------------- equations

    def accelerations(self, t, c, u):
        """Second derivatives of the chart, (n,)."""
        n, z, dz = len(c), [*self.c, TIME], np.array([*u, 1.0])
        load = [self.V.diff(x) + self.P.diff(dx) - self.Q.get(dx, 0) for x, dx in zip(self.c, self.u, strict=True)]
        M, bias = np.zeros((n, n)), np.array(sp.lambdify([z, self.u], load, cse=True)([*c, t], u), float)
        for body, N in self.inertia.items():
            D = self.place[body][:3, :]
            first = [D.diff(x) for x in z]
            second = [[d.diff(y) for y in z[: k + 1]] for k, d in enumerate(first)]
            first, second = sp.lambdify([z], [first, second], cse=True)([*c, t])
            for j in range(n):
                M[j] += [np.trace(first[j] @ N @ d.T) for d in first[:n]]
                for k, row in enumerate(second):
                    for i, d in enumerate(row):
                        bias[j] += (1 if i == k else 2) * np.trace(first[j] @ N @ d.T) * dz[i] * dz[k]
        return -np.linalg.solve(M, bias)

    def assert_same_accelerations(self, seed=0, t=0.6):
        rng = np.random.default_rng(seed)
        n = len(self.c)
        system = self.mechanism.compile()
        assert system.nc == 0
        c, u = rng.uniform(0.2, 1.2, n) * rng.choice([-1, 1], n), rng.normal(size=n)
        expected = self.accelerations(t, c, u)
        q, v, a = {}, {}, {}
        for name, s in self.joints.items():
            joint = self.mechanism.joints[name]
            values = map_joint(joint.type, c[s], u[s], expected[s])
            for out, labels, numbers in zip(
                (q, v, a), (*joint.labels(name), joint.labels(name)[1]), values, strict=True
            ):
                out |= dict(zip(labels, numbers, strict=True))
        state = system.state(q, v, t)
        expected = np.array([a[label] for label in system.speeds])
        ours = ld.tree.open_tree_forward_dynamics(system, state)
        error = np.abs(ours - expected).max() / np.abs(expected).max()
        assert error <= TOLERANCE, f"relative error {error:.1e} on the scale {np.abs(expected).max():.3g}"


def map_joint(kind, c, u, a):
    """Coordinates, speeds and accelerations of a joint from its chart: only those of balls differ."""
    if kind not in ("spherical", "free"):
        return c, u, a
    k = 0 if kind == "spherical" else 3
    x, dx = sp.symbols("x:3", real=True), sp.symbols("dx:3", real=True)
    R = rodrigues(x)
    w = vee(R.T * sum((R.diff(x[k]) * dx[k] for k in range(3)), sp.zeros(3)))  # in axes of the child
    B = w.jacobian(dx)
    rate = w.jacobian(x) * sp.Matrix(dx)
    R, B, rate = sp.lambdify([x, dx], [R, B, rate], cse=True)(c[k:], u[k:])
    quaternion = unit([1.0, *c[k:]])
    omega, alpha = B @ u[k:], B @ a[k:] + rate.ravel()
    if kind == "spherical":
        return quaternion, omega, alpha
    # v: velocity of the origin of M in axes of M
    speed = R.T @ u[:3]
    return [*c[:3], *quaternion], [*omega, *speed], [*alpha, *(R.T @ a[:3] - np.cross(omega, speed))]


# ------------------------------------------------------------------------------------------------------ systems

A1, A2, A3 = (1.0, 2.0, -0.5), (-0.3, 0.8, 1.1), (0.9, -0.2, 0.4)
REVOLUTE = [ld.Revolute(axis=a) for a in (A1, A2, A3)]
PRISMATIC = ld.Prismatic(axis=A2)
HELICAL = ld.joints.Helical(axis=A3, pitch=-0.15)
CYLINDRICAL = ld.Cylindrical(axis=A1)
UNIVERSAL = ld.Universal(axis1=A1, axis2=A3)
PLANAR = ld.Planar(normal=A2, x=(1, 0.3, 0))

CHAINS = {
    "pendulum": [REVOLUTE[0]],
    "double pendulum in space": [REVOLUTE[0], REVOLUTE[1]],
    "slider on a rotating arm": [REVOLUTE[2], PRISMATIC],
    "screw": [HELICAL],
    "sleeve with a screw": [CYLINDRICAL, HELICAL],
    "body on skew universal axes": [UNIVERSAL],
    "body in a plane": [PLANAR],
    "arm on a body in a plane": [PLANAR, REVOLUTE[1]],
    "arm on a table that does not turn": [ld.joints.Translational(), REVOLUTE[0]],
    "ball": [ld.Spherical()],
    "free body": [ld.Free()],
}
LARGE_CHAINS = {
    "three arms in space": [REVOLUTE[0], REVOLUTE[1], REVOLUTE[2]],
    "ball on an arm": [REVOLUTE[0], ld.Spherical()],
    "universal joint on a slider": [PRISMATIC, UNIVERSAL],
}
WAYS = {"as declared": False, "reversed": True}


def chain(joints, reverse, base=None, seed=0):
    """A body after another, each on the next joint."""
    rng = np.random.default_rng(seed)
    system = Lagrange(base or {})
    parent = "ground"
    for joint in joints:
        at = np.round(0.5 * rng.normal(size=3), 3)
        parent = system.add(parent, joint, at, reverse, rng)
    return system


@pytest.mark.jit_off
@pytest.mark.parametrize("reverse", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("joints", CHAINS.values(), ids=CHAINS)
def test_accelerations_obey_lagranges_equations(joints, reverse):
    chain(joints, reverse).assert_same_accelerations()


@pytest.mark.slow
@pytest.mark.parametrize("reverse", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("joints", LARGE_CHAINS.values(), ids=LARGE_CHAINS)
def test_accelerations_of_larger_systems_obey_lagranges_equations(joints, reverse):
    chain(joints, reverse).assert_same_accelerations()


# --------------------------------------------------------------------------------------------------- moving base

MOTION = {"x": "0.3*sin(2*t)", "y": "0.2*t**2", "z": "0.1*cos(3*t)", "rx": "0.5*sin(t)", "ry": "0.7*t", "rz": "t**3/3"}
BASES = {
    "shaken": {k: MOTION[k] for k in ("x", "y", "z")},
    "rolling": {"rx": MOTION["rx"]},
    "pitching": {"ry": MOTION["ry"]},
    "yawing": {"rz": MOTION["rz"]},
    "moved in all ways": MOTION,
}


@pytest.mark.jit_off
@pytest.mark.parametrize("base", BASES.values(), ids=BASES)
def test_accelerations_on_a_moving_base_obey_lagranges_equations_with_time(base):
    chain([REVOLUTE[0]], reverse=False, base=base).assert_same_accelerations()


@pytest.mark.slow
@pytest.mark.parametrize("reverse", WAYS.values(), ids=WAYS)
def test_accelerations_of_a_chain_on_a_moving_base_obey_lagranges_equations_with_time(reverse):
    chain([PRISMATIC, REVOLUTE[1]], reverse, base=MOTION).assert_same_accelerations()


# -------------------------------------------------------------------------------------------------------- forces

P1, P2 = (0.7, -0.4, 0.2), (-0.3, 0.5, 0.9)
ENDS = {"body1": "ground", "body2": "body1", "point1": P1, "point2": P2}


def distance(s):
    """Distance of the points of ENDS and its rate."""
    line = s.point("body1", P2) - s.point("ground", P1)
    length = sp.sqrt(line.dot(line))
    return length, s.rate([length])[0]


def spring_damper(s):
    s.mechanism.add_force(None, ld.forces.SpringDamper(stiffness=40.0, damping=3.0, length=0.6, **ENDS))
    length, rate = distance(s)
    s.V += 40.0 * (length - 0.6) ** 2 / 2
    s.P += 3.0 * rate**2 / 2


def spring_of_its_length_as_drawn(s):
    s.mechanism.add_force(None, ld.forces.SpringDamper(stiffness=40.0, **ENDS))
    s.V += 40.0 * (distance(s)[0] - np.linalg.norm(np.subtract(P1, P2))) ** 2 / 2


def actuator(s):
    s.mechanism.add_force(None, ld.forces.Actuator(force="5*cos(t) - 2*length - 0.5*speed", **ENDS))
    length, rate = distance(s)
    force = 5 * sp.cos(TIME) - 2 * length - rate / 2
    for c, u in zip(s.c, s.u, strict=True):
        s.Q[u] = force * length.diff(c)


def joint_springs(s):
    for k, (c, u) in enumerate(zip(s.c, s.u, strict=True)):
        s.mechanism.add_force(None, ld.forces.JointSpring(joint=f"J{k}", stiffness=7.0 + k, damping=0.4, rest=0.3))
        s.V += (7.0 + k) * (c - 0.3) ** 2 / 2
        s.P += 0.4 * u**2 / 2


def joint_friction(s):
    for k, u in enumerate(s.u):
        s.mechanism.add_force(None, ld.forces.JointFriction(joint=f"J{k}", viscous=0.6, coulomb=0.8, transition=0.5))
        s.P += 0.6 * u**2 / 2 + 0.8 * 0.5 * sp.log(sp.cosh(u / 0.5))


def motors(s):
    s.mechanism.add_motor("turning", "J0", torque="3*sin(2*t) - 0.5*position*speed")
    s.mechanism.add_motor("sliding", "J1", force="2 - position**2 + 0.1*speed")
    (c0, c1), (u0, u1) = s.c, s.u
    s.Q[u0] = 3 * sp.sin(2 * TIME) - c0 * u0 / 2
    s.Q[u1] = 2 - c1**2 + u1 / 10


def bushing(s, body1="ground", body2="body1"):
    """Springs along three axes, equal ones about them (others have no potential), and six dampers."""
    linear, damping, angular_damping = (30.0, 20.0, 10.0), (1.0, 2.0, 3.0), (0.3, 0.2, 0.1)
    turned = ld.joints.Rotation(axis=A1, angle=0.9)
    s.mechanism.add_force(
        None,
        ld.forces.Bushing(
            body1=body1,
            body2=body2,
            at=P1,
            rotation=turned,
            stiffness=linear,
            damping=damping,
            angular_stiffness=(4.0, 4.0, 4.0),
            angular_damping=angular_damping,
        ),
    )
    axes = s.place[body1][:3, :3] * turn(unit(A1), sp.Float(0.9))
    R = s.place[body1][:3, :3].T * s.place[body2][:3, :3]
    d = axes.T * (s.point(body2, P1) - s.point(body1, P1))
    spin = axes.T * (s.angular_velocity(body2) - s.angular_velocity(body1))
    angle = sp.acos((R.trace() - 1) / 2)
    s.V += sum(k * x**2 / 2 for k, x in zip(linear, d, strict=True)) + 4.0 * angle**2 / 2
    s.P += sum(c * x**2 / 2 for c, x in zip(damping, s.rate(d), strict=True))
    s.P += sum(c * x**2 / 2 for c, x in zip(angular_damping, spin, strict=True))


def bushing_the_other_way(s):
    bushing(s, "body1", "ground")


def applied_in_world_axes(s):
    s.mechanism.add_force(
        None, ld.forces.AppliedForce(body="body1", at=P2, force=(1, "4*sin(t)", -2), torque=("t", 0.5, -1))
    )
    s.push("body1", P2, (1, 4 * sp.sin(TIME), -2), (TIME, 0.5, -1))


def applied_in_body_axes(s):
    s.mechanism.add_force(
        None, ld.forces.AppliedForce(body="body1", at=P2, force=(1, "4*sin(t)", -2), torque=("t", 0.5, -1), axes="body")
    )
    R = s.place["body1"][:3, :3]
    s.push("body1", P2, R * sp.Matrix([1, 4 * sp.sin(TIME), -2]), R * sp.Matrix([TIME, 0.5, -1]))


FORCES = [
    spring_damper,
    spring_of_its_length_as_drawn,
    actuator,
    joint_springs,
    joint_friction,
    motors,
    bushing,
    bushing_the_other_way,
    applied_in_world_axes,
    applied_in_body_axes,
]


@pytest.mark.jit_off
@pytest.mark.parametrize("reverse", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("force", FORCES, ids=lambda f: f.__name__)
def test_forces_obey_lagranges_equations_with_their_potential_and_dissipation(force, reverse):
    system = chain([REVOLUTE[2], PRISMATIC], reverse)
    force(system)
    system.assert_same_accelerations()


@pytest.mark.jit_off
def test_forces_against_a_moving_base_obey_lagranges_equations():
    system = chain([REVOLUTE[2], PRISMATIC], reverse=False, base={"x": MOTION["x"], "rz": MOTION["rz"]})
    spring_damper(system)
    bushing(system)
    system.assert_same_accelerations()
