"""A tree as Pinocchio sees it, made from a mechanism as its user described it.

Nothing of loopdyn's frozen arrays is used: bodies, joints, forces and base motions are read from the
:class:`loopdyn.Mechanism`, and of the compiled system only the labels of q and v, the names of cut joints and the names
of free roots. Pinocchio has other coordinates, so a :class:`Twin` also maps a state:

    v' = T v + u(t),        a' = T a + c + du/dt

with primes for Pinocchio, u the given motion of moved bases and c = dT/dt v. Then

    M = T^T M' T,           h = T^T (tau' - nle' - M' (c + du/dt))

A joint that the tree enters from its declared child is built in Pinocchio in the direction of the tree, as the
inverse motion. Cylindrical and universal joints become two joints in a row, welds a shift of the body's frame.
Quaternions are x, y, z, w there; twists have the linear part first; the speeds of a planar joint are in the axes of the
child.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import pinocchio as pin
import sympy

import loopdyn as ld
from loopdyn.model.mechanism import GROUND, Mechanism

LWA = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
NAMES = {name: getattr(math, name) for name in ("sin", "cos", "tanh", "sqrt", "exp", "pi")}


# --------------------------------------------------------------------------------------- reading the description


def unit(v):
    v = np.array(v, float)
    return v / np.linalg.norm(v)


def rotation_of(spec):
    """Rotation matrix of a `loopdyn.joints.Rotation`."""
    if spec is None:
        return np.eye(3)
    if spec.quaternion is not None:
        w, x, y, z = unit(spec.quaternion)
        return pin.Quaternion(w, x, y, z).matrix()
    if spec.rpy is not None:
        return pin.rpy.rpyToMatrix(*map(float, spec.rpy))
    return pin.AngleAxis(float(spec.angle), unit(spec.axis)).matrix()


def pose_of(frame):
    """SE3 of a `loopdyn.Frame`; None is the world's."""
    if frame is None:
        return pin.SE3.Identity()
    return pin.SE3(rotation_of(frame.rotation), np.array(frame.position, float))


def body_pose(m: Mechanism, name: str):
    """Pose of a body's own frame at the reference pose."""
    return pose_of(m.bodies[name].pose) if name in m.bodies else pin.SE3.Identity()


def body_inertia(m: Mechanism, name: str):
    """Inertia of a body in its own frame, from mass, com and matrix given directly."""
    body = m.bodies[name]
    I = body.inertia
    matrix = np.array([[I.xx, I.xy, I.xz], [I.xy, I.yy, I.yz], [I.xz, I.yz, I.zz]], float)
    given = pin.Inertia(float(body.mass), np.array(body.com, float), matrix)
    return given if body.axes == "body" else body_pose(m, name).actInv(given)


def joint_frames(m: Mechanism, joint):
    """Frames F and M of a joint, each in the own frame of its body, with the axes of the placement."""
    if joint.at is not None:
        at = pin.SE3(np.eye(3), np.array(joint.at, float))
        return body_pose(m, joint.parent).actInv(at), body_pose(m, joint.child).actInv(at)
    frames = []
    for body, frame in ((joint.parent, joint.parent_frame), (joint.child, joint.child_frame)):
        frames.append(pose_of(m.bodies[body].frames[frame] if isinstance(frame, str) else frame))
    return tuple(frames)


def joint_axes(joint):
    """Axes of the frames F and M (columns), in the axes in which the joint is placed.

    z is the axis or normal; x is the given direction, or X (Y if X is nearly along z) made perpendicular to z. A
    universal joint has x along its first axis and z along the common normal.
    """
    if joint.type in ("translational", "spherical", "free", "weld"):
        return np.eye(3)
    if joint.type == "universal":
        x, z = unit(joint.axis1), unit(np.cross(joint.axis1, joint.axis2))
        return np.array([x, np.cross(z, x), z]).T
    z = unit(joint.normal if joint.type == "planar" else joint.axis)
    x = getattr(joint, "x", None)
    if x is None:
        x = (0.0, 1.0, 0.0) if abs(z[0]) > 0.9 else (1.0, 0.0, 0.0)
    y = unit(np.cross(z, x))
    return np.array([np.cross(y, z), y, z]).T


# ------------------------------------------------------------------------------------------- one joint at a time


def joint_models(joint, reverse):
    """Joints of Pinocchio, in a row, that together move as this one."""
    kind = joint.type
    if kind == "revolute":
        return [pin.JointModelRevoluteUnaligned(unit(joint.axis))]
    if kind == "prismatic":
        return [pin.JointModelPrismaticUnaligned(unit(joint.axis))]
    if kind == "helical":
        return [pin.JointModelHelicalUnaligned(unit(joint.axis), float(joint.pitch))]
    if kind == "cylindrical":
        axis = unit(joint.axis)
        return [pin.JointModelRevoluteUnaligned(axis), pin.JointModelPrismaticUnaligned(axis)]
    if kind == "universal":
        axes = [unit(joint.axis1), unit(joint.axis2)]
        return [pin.JointModelRevoluteUnaligned(a) for a in (reversed(axes) if reverse else axes)]
    return {
        "planar": [pin.JointModelPlanar()],
        "translational": [pin.JointModelTranslation()],
        "spherical": [pin.JointModelSpherical()],
        "free": [pin.JointModelFreeFlyer()],
        "weld": [],
    }[kind]


def quaternion_rotation(q):
    w, x, y, z = q
    return pin.Quaternion(w, x, y, z).matrix()


def map_coordinates(kind, reverse, q):
    """Coordinates of Pinocchio's joint(s)."""
    if kind == "universal" and reverse:
        return -q[::-1]
    if kind == "planar":
        x, y, angle = q
        c, s = math.cos(angle), math.sin(angle)
        if reverse:  # position of F in M: -R^T p
            return np.array([-c * x - s * y, s * x - c * y, c, -s])
        return np.array([x, y, c, s])
    if kind == "spherical":
        w, e = q[0], q[1:]
        return np.array([*(-e if reverse else e), w])
    if kind == "free":
        p, w, e = q[:3], q[3], q[4:]
        if reverse:
            return np.array([*(-quaternion_rotation(q[3:]).T @ p), *-e, w])
        return np.array([*p, *e, w])
    return -q if reverse else q


def map_speeds(kind, reverse, q, v):
    """T and c = dT/dt v of Pinocchio's joint(s)."""
    n = len(v)
    c = np.zeros(n)
    if kind == "universal" and reverse:
        return -np.eye(2)[::-1], c
    if kind == "planar":
        x, y, angle = q
        vx, vy, w = v
        if reverse:  # twist of F against M at F's origin, in axes of F: of M against F, shifted by -p, negative
            return np.array([[-1, 0, -y], [0, -1, x], [0, 0, -1.0]]), np.array([-w * vy, w * vx, 0.0])
        ca, sa = math.cos(angle), math.sin(angle)
        T = np.array([[ca, sa, 0], [-sa, ca, 0], [0, 0, 1.0]])
        return T, np.array([w * (-sa * vx + ca * vy), w * (-ca * vx - sa * vy), 0.0])
    if kind == "spherical" and reverse:
        return -quaternion_rotation(q), c  # R (omega x omega) = 0
    if kind == "free":
        T = np.eye(6)[[3, 4, 5, 0, 1, 2]]
        if reverse:
            R = quaternion_rotation(q[3:])
            T = -np.block([[pin.skew(q[:3]) @ R, R], [R, np.zeros((3, 3))]])  # c: R (w x v) + R v x R w = 0
        return T, c
    return (-np.eye(n) if reverse else np.eye(n)), c


# ------------------------------------------------------------------------------------------------ the whole tree


@dataclass
class Link:
    """A joint of the tree: where its values are in q, v of both engines."""

    kind: str
    reverse: bool
    q: slice
    v: slice
    q_pin: slice
    v_pin: slice


@dataclass
class Twin:
    """A compiled tree of loopdyn, and the same tree in Pinocchio."""

    mechanism: Mechanism
    system: ld.System
    model: pin.Model = field(default_factory=pin.Model)
    links: list[Link] = field(default_factory=list)
    place: dict = field(default_factory=dict)  # body: (joint of Pinocchio, pose of the body's own frame in it)
    driven: dict = field(default_factory=dict)  # moved base: slices of its values in Pinocchio's q and v

    def __post_init__(self):
        m = self.mechanism
        self.model.gravity.linear = np.array(m.gravity, float)
        self._place_bases()
        roots = [label[5:].rpartition(".")[0] for label in self.system.speeds if label.startswith("free:")]
        for base in list(self.place):
            self._grow(base)
        for root in dict.fromkeys(roots):
            self._grow(self._add_root(root))
        for body, (joint, pose) in self.place.items():
            self.model.addFrame(pin.Frame(body, joint, 0, pose, pin.FrameType.OP_FRAME))
            if body in m.bodies and body not in m.base:
                self.model.appendBodyToJoint(joint, body_inertia(m, body), pose)
        self.data = self.model.createData()

    # ------------------------------------------------------------------------------------------- building

    def _grow(self, root):
        """Add what hangs on a body, depth first: Pinocchio's crba needs the joints of a branch one after another."""
        stack = [(root, None, None)]
        while stack:
            here, name, before = stack.pop()
            if name is not None:
                self._add_joint(name, self.mechanism.joints[name], before, here)
            for name, joint in self.mechanism.joints.items():
                there = {joint.parent: joint.child, joint.child: joint.parent}.get(here)
                if there is not None and there not in self.place and name not in self.system.topology.cuts:
                    stack.append((there, name, here))

    def _place_bases(self):
        for body in (GROUND, *(b for b in self.mechanism.base if b != GROUND)):
            joint = 0
            if body in self.mechanism.base:
                joint = self.model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), f"base {body}")
                nq, nv = self.model.nq, self.model.nv
                self.driven[body] = (slice(nq - 7, nq), slice(nv - 6, nv))
            self.place[body] = (joint, pin.SE3.Identity())

    def _add_root(self, body):
        """A floating root: its free joint has the pose of the body's own frame in the ground's as coordinates."""
        joint, pose = self.place[GROUND]
        self._link(f"free:{body}", "free", False, [pin.JointModelFreeFlyer()], joint, pose)
        self.place[body] = (self.model.njoints - 1, pin.SE3.Identity())
        return body

    def _add_joint(self, name, joint, here, there):
        reverse = joint.parent == there
        F, M = joint_frames(self.mechanism, joint)
        inboard, outboard = (M, F) if reverse else (F, M)
        if joint.type == "planar":  # the plane of Pinocchio's is x, y
            axes = pin.SE3(joint_axes(joint), np.zeros(3))
            inboard, outboard = inboard * axes, outboard * axes
        parent, pose = self.place[here]
        placement = pose * inboard
        if joint.type == "weld":
            self.place[there] = (parent, placement * outboard.inverse())
            return
        self._link(name, joint.type, reverse, joint_models(joint, reverse), parent, placement)
        self.place[there] = (self.model.njoints - 1, outboard.inverse())

    def _link(self, name, kind, reverse, models, parent, placement):
        q_pin, v_pin = self.model.nq, self.model.nv
        for k, joint_model in enumerate(models):
            parent = self.model.addJoint(parent, joint_model, placement, f"{name} {k}")
            placement = pin.SE3.Identity()
        q, v = (
            slice(found[0], found[-1] + 1)
            for found in (
                [k for k, label in enumerate(labels) if label == name or label.rpartition(".")[0] == name]
                for labels in (self.system.coordinates, self.system.speeds)
            )
        )
        self.links.append(Link(kind, reverse, q, v, slice(q_pin, self.model.nq), slice(v_pin, self.model.nv)))

    # ---------------------------------------------------------------------------------------- the state

    def state(self, state: ld.State):
        """q', v' of Pinocchio, T, and the velocity terms c + du/dt."""
        q, v = pin.neutral(self.model), np.zeros(self.model.nv)
        T, c = np.zeros((self.model.nv, self.system.nv)), np.zeros(self.model.nv)
        for k in self.links:
            q[k.q_pin] = map_coordinates(k.kind, k.reverse, state.q[k.q])
            T[k.v_pin, k.v], c[k.v_pin] = map_speeds(k.kind, k.reverse, state.q[k.q], state.v[k.v])
        v += T @ state.v
        for body, (q_pin, v_pin) in self.driven.items():
            q[q_pin], v[v_pin], c[v_pin] = base_motion(self.mechanism, body, state.t)
        return q, v, T, c

    def update(self, state: ld.State, a=None):
        """Bring `data` to a state, with accelerations `a` of loopdyn's speeds; returns q', v', T, c."""
        q, v, T, c = self.state(state)
        a_pin = (0.0 if a is None else T @ a) + c
        pin.forwardKinematics(self.model, self.data, q, v, a_pin)
        pin.computeJointJacobians(self.model, self.data, q)
        pin.updateFramePlacements(self.model, self.data)
        return q, v, T, c

    # ---------------------------------------------------------------------------- bodies, after `update`

    def frame(self, body):
        return self.model.getFrameId(body, pin.FrameType.OP_FRAME)

    def pose(self, body):
        return self.data.oMf[self.frame(body)]

    def velocity(self, body):
        return pin.getFrameVelocity(self.model, self.data, self.frame(body), LWA)

    def acceleration(self, body):
        return pin.getFrameClassicalAcceleration(self.model, self.data, self.frame(body), LWA)

    def jacobian(self, body):
        """Jacobian (6, nv'), linear part first, at the origin of the body's own frame, world axes."""
        return pin.getFrameJacobian(self.model, self.data, self.frame(body), LWA).reshape(6, self.model.nv)

    def point(self, body, p):
        """World position and velocity of the body point that is at the world point p at the reference pose."""
        X, v = self.pose(body), self.velocity(body)
        arm = X.rotation @ body_pose(self.mechanism, body).actInv(np.array(p, float))
        return X.translation + arm, v.linear + np.cross(v.angular, arm)

    def turned(self, body):
        """Rotation of a body since the reference pose."""
        return self.pose(body).rotation @ body_pose(self.mechanism, body).rotation.T

    def masses(self):
        """(mass, world position of the mass centre) of all bodies whose motion is not given."""
        found = []
        for body in self.mechanism.bodies:
            if body not in self.mechanism.base:
                inertia = body_inertia(self.mechanism, body)
                found.append((inertia.mass, self.pose(body).act(inertia.lever)))
        return found

    # ------------------------------------------------------------------------------------------- loads

    def loads(self, state: ld.State):
        """Wrenches on Pinocchio's joints, in their own frames, and loads on loopdyn's speeds; after `update`."""
        wrenches = [pin.Force.Zero() for _ in range(self.model.njoints)]
        tau = np.zeros(self.system.nv)

        def push(body, x, force, torque=(0.0, 0.0, 0.0)):
            joint = self.place[body][0]
            world = pin.Force(np.array(force, float), np.cross(x, force) + np.array(torque, float))
            wrenches[joint] += self.data.oMi[joint].actInv(world)

        for force in self.mechanism.forces.values():
            if force.type in ("joint_spring", "joint_friction", "motor"):
                self._joint_load(force, state, tau)
            elif force.type in ("spring_damper", "actuator"):
                self._line(force, state.t, push)
            elif force.type == "bushing":
                self._bushing(force, push)
            else:
                turn = self.turned(force.body) if force.axes == "body" else np.eye(3)
                F, N = (turn @ [value(x, t=state.t) for x in law] for law in (force.force, force.torque))
                push(force.body, self.point(force.body, force.at)[0], F, N)
        return wrenches, tau

    def _joint_load(self, force, state, tau):
        k = self.system.speeds.index(force.joint)
        named = dict(zip(self.system.coordinates, state.q, strict=True))
        x, dx = named.get(force.joint), state.v[k]  # no single coordinate for a rotation of a ball
        if force.type == "joint_spring":
            tau[k] -= force.stiffness * (x - force.rest) + force.damping * dx
        elif force.type == "joint_friction":
            tau[k] -= force.viscous * dx + force.coulomb * math.tanh(dx / force.transition)
        else:
            law = force.torque if force.torque is not None else force.force
            tau[k] += value(law, t=state.t, position=x, speed=dx)

    def _line(self, force, t, push):
        x1, v1 = self.point(force.body1, force.point1)
        x2, v2 = self.point(force.body2, force.point2)
        length = np.linalg.norm(x2 - x1)
        e = (x2 - x1) / length
        rate = e @ (v2 - v1)
        if force.type == "actuator":
            apart = value(force.force, t=t, length=length, speed=rate)
        else:
            free = force.length
            if free is None:
                free = np.linalg.norm(np.subtract(force.point2, force.point1))
            apart = -force.stiffness * (length - free) - force.damping * rate
        push(force.body1, x1, -apart * e)
        push(force.body2, x2, apart * e)

    def _bushing(self, force, push):
        R0 = rotation_of(force.rotation)
        R1, R2 = self.turned(force.body1) @ R0, self.turned(force.body2) @ R0
        (x1, v1), (x2, v2) = self.point(force.body1, force.at), self.point(force.body2, force.at)
        w1, w2 = self.velocity(force.body1).angular, self.velocity(force.body2).angular
        d, rate = R1.T @ (x2 - x1), R1.T @ (v2 - v1 - np.cross(w1, x2 - x1))
        theta, spin = pin.log3(R1.T @ R2), R1.T @ (w2 - w1)
        F = R1 @ -(np.multiply(force.stiffness, d) + np.multiply(force.damping, rate))
        N = R1 @ -(np.multiply(force.angular_stiffness, theta) + np.multiply(force.angular_damping, spin))
        push(force.body2, x2, F, N)
        push(force.body1, x2, -F, -N)


def value(law, **variables):
    """Number or formula of a test's own mechanism."""
    return eval(law, {"__builtins__": {}}, NAMES | variables) if isinstance(law, str) else float(law)


# -------------------------------------------------------------------------------------------------- moved bases


def base_motion(m: Mechanism, body: str, t: float):
    """q', v', a' of the free flyer that carries a moved base; derivatives by SymPy."""
    time = sympy.Symbol("t", real=True)
    motion = m.base[body]
    x, y, z, rx, ry, rz = (
        sympy.sympify(getattr(motion, k), locals={"t": time}) for k in ("x", "y", "z", "rx", "ry", "rz")
    )
    R = sympy.rot_ccw_axis3(rz) * sympy.rot_ccw_axis2(ry) * sympy.rot_ccw_axis1(rx)
    p = sympy.Matrix([x, y, z])
    spin = R.T * R.diff(time)  # of the turning axes, in these axes
    w = sympy.Matrix([spin[2, 1], spin[0, 2], spin[1, 0]])
    numbers = [
        np.array(e.subs(time, t).evalf(17), float) for e in (R, p, p.diff(time), p.diff(time, 2), w, w.diff(time))
    ]
    R, p, dp, ddp, w, dw = numbers[0], *(x.ravel() for x in numbers[1:])
    rest = body_pose(m, body)
    X = pin.SE3(R @ rest.rotation, rest.translation + p)
    w, dw = rest.rotation.T @ w, rest.rotation.T @ dw
    v = X.rotation.T @ dp
    q = pin.SE3ToXYZQUAT(X)
    return q, np.array([*v, *w]), np.array([*(X.rotation.T @ ddp - np.cross(w, v)), *dw])
