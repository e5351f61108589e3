"""The same mechanism for other engines: MuJoCo, Pinocchio, Exudyn, and a sparse matrix for SciPy.

Made from a compiled system: tree joints, inertias and frames as loopdyn has frozen them, cut joints as constraints.
Only what the benchmark models need: a ground at rest, tree joints that are hinges, universal joints (two hinges in a
row), balls (three in a row, so that all coordinates are angles) and slides, which may have a spring and a damper; cut
joints that are balls and hinges.

How a cut joint is closed:

* a ball: one point (MuJoCo `connect`, Pinocchio `CONTACT_3D`): 3 rows in every engine;
* a hinge: loopdyn has 5 rows, of which it drops the dependent ones. The others get `points` points on its axis, of
  3 rows each: two in general; one is enough, and faster for them, where the loop keeps the axes parallel by itself, as
  in a planar mechanism.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as spl
from scipy.spatial.transform import Rotation

import loopdyn as ld
from loopdyn.engine import records as rec
from loopdyn.joints.dispatch import PRISMATIC, REVOLUTE, SPHERICAL, UNIVERSAL
from loopdyn.spatial.rotations import about_axis

APART = 0.2  # m between the two points that close a hinge

Vector = np.ndarray


@dataclass(frozen=True)
class Link:
    """A body: its axes are those of its parent when its coordinates are zero, its origin is its joint."""

    parent: int  # 0 is the ground, as in the list of links
    first: int  # index of its first speed
    offset: Vector  # origin in the parent
    hinges: tuple[Vector, ...]  # axes, one after another
    mass: float
    com: Vector
    inertia: Vector  # about the centre of mass
    slide: bool = False  # along its one axis, and not about it


@dataclass(frozen=True)
class Closure:
    """A cut joint: points on two bodies that coincide; `axis`, on the first body, of a hinge."""

    bodies: tuple[int, int]
    points: tuple[Vector, Vector]
    axes: tuple[Vector, Vector] | None

    def at(self, points: int) -> list[tuple[Vector, Vector]]:
        """Pairs of points that close the joint."""
        if self.axes is None or points == 1:
            return [self.points]
        p, a = self.points, self.axes
        return [(p[0] + s * a[0], p[1] + s * a[1]) for s in (-APART / 2, APART / 2)]


@dataclass(frozen=True)
class Mechanism:
    """Input of all engines."""

    links: tuple[Link | None, ...]  # the ground first, None
    closures: tuple[Closure, ...]
    gravity: Vector
    nv: int
    balls: tuple[tuple[int, int], ...] = ()  # first coordinate and first speed of each ball in the tree
    stiffness: Vector | None = None  # (nv,) of springs on freedoms, and their dampers
    damping: Vector | None = None

    def angles(self, q: Vector) -> Vector:
        """Coordinates of the other engines, one for each speed; balls must be where their angles are zero."""
        for k, _ in self.balls:
            if not abs(q[k]) > 1.0 - 1e-12:
                raise ValueError("a ball of the tree does not start at its reference pose")
        return np.delete(q, [k for k, _ in self.balls]) * ~np.isin(np.arange(self.nv), self._turning())

    def angle_accelerations(self, rates: Vector, a: Vector) -> Vector:
        """Accelerations of the other engines from those of loopdyn, where the angles of balls are zero."""
        a = a.copy()
        for _, n in self.balls:
            x, y, z = rates[n : n + 3]
            a[n : n + 3] += -y * z, x * z, -x * y
        return a

    def _turning(self) -> list[int]:
        return [k + n for _, k in self.balls for n in range(3)]

    def state(self, angles: Vector, rates: Vector) -> tuple[Vector, Vector]:
        """Coordinates and speeds of loopdyn from those of the other engines."""
        q, v = angles.copy(), rates.copy()
        for k, n in self.balls:  # k counts the scalar parts of the balls before it too
            a, b, c = angles[n : n + 3]
            turn = Rotation.from_euler("XYZ", [a, b, c])
            x, y, z, w = turn.as_quat(canonical=True)
            q[k : k + 3] = x, y, z
            q = np.insert(q, k, w)
            own = np.array(
                [
                    [np.cos(b) * np.cos(c), np.sin(c), 0.0],
                    [-np.cos(b) * np.sin(c), np.cos(c), 0.0],
                    [np.sin(b), 0.0, 1.0],
                ]
            )
            v[n : n + 3] = own @ rates[n : n + 3]
        return q, v

    @property
    def planar(self) -> bool:
        """Whether all hinges are parallel at the reference pose."""
        axes = np.array([a for link in self.links[1:] for a in link.hinges])
        return bool(np.abs(np.cross(axes, axes[0])).max() < 1e-9)

    def depth_first(self) -> list[int]:
        """Bodies with every branch contiguous, as Pinocchio's sparse factors expect."""
        children: list[list[int]] = [[] for _ in self.links]
        for i in range(1, len(self.links)):
            children[self.links[i].parent].append(i)
        order, stack = [], children[0][::-1]
        while stack:
            i = stack.pop()
            order.append(i)
            stack += children[i][::-1]
        return order


def describe(system: ld.System, springs: dict[str, tuple[float, float]] | None = None) -> Mechanism:
    """Read a compiled system without its forces; stiffness and damping of freedoms are given by label."""
    model = system.model
    stiffness, damping = np.zeros(system.nv), np.zeros(system.nv)
    for label, values in (springs or {}).items():
        k = system.speeds.index(label)
        stiffness[k], damping[k] = values
    if system.n_bases != 1 or len(model.force) != len(springs or {}) or len(model.linear):
        raise ValueError(f"'{system.name}' has moved bases, forces or constraints, which the other engines do not get")
    links: list[Link | None] = [None]
    balls = []
    for (parent, kind, place, first, _, reverse, *_), data in zip(model.tree[1:].tolist(), model.body[1:], strict=True):
        A = data[rec.AXES : rec.AXES + 9].reshape(3, 3)
        if kind == REVOLUTE:
            hinges: tuple[Vector, ...] = (A[2],)
        elif kind == UNIVERSAL and not reverse:
            cosine, sine = data[rec.PAR : rec.PAR + 2]
            hinges = (A[0], cosine * A[0] + sine * A[1])
        elif kind == PRISMATIC:
            hinges = (A[2],)
        elif kind == SPHERICAL and not reverse:
            hinges = tuple(A)
            balls.append((place, first))
        else:
            raise ValueError(f"'{system.name}' has tree joints that are none of hinge, slide, universal joint and ball")
        xx, yy, zz, xy, xz, yz = data[rec.INERTIA : rec.INERTIA + 6]
        inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        offset, com = data[rec.OFFSET : rec.OFFSET + 3], data[rec.COM : rec.COM + 3]
        links.append(Link(parent, first, offset, hinges, float(data[rec.MASS]), com, inertia, kind == PRISMATIC))
    closures = []
    for (parent, child, kind, *_), frames in zip(model.cut.tolist(), model.cut_frames, strict=True):
        if kind not in (REVOLUTE, SPHERICAL):
            raise ValueError(f"'{system.name}' has cut joints that are neither balls nor hinges")
        points = frames[rec.F_POINT : rec.F_POINT + 3], frames[rec.M_POINT : rec.M_POINT + 3]
        axes = frames[rec.F_AXES + 6 : rec.F_AXES + 9], frames[rec.M_AXES + 6 : rec.M_AXES + 9]
        closures.append(Closure((parent, child), points, axes if kind == REVOLUTE else None))
    balls.sort()
    return Mechanism(
        tuple(links), tuple(closures), np.array(model.gravity), system.nv, tuple(balls), stiffness, damping
    )


# --------------------------------------------------------------------------------------------------------- MuJoCo

# As hard as MuJoCo allows (its constraints are soft by design), Newton's method with a sparse Jacobian; the rest is its
# default.
MUJOCO_HARDNESS = "0.9999 0.9999 0.001 0.5 2"
MUJOCO_SETTINGS = (
    f"mj_forward, solver Newton, jacobian sparse, iterations 100, tolerance 1e-8 (defaults), solimp {MUJOCO_HARDNESS} "
    "(the hardest allowed), solref default; started from its own last solution"
)


FLAT = 1e-13  # share added to inertias: of a flat body one moment is the sum of the others, which must not round upward


def mjcf(m: Mechanism, points: int) -> str:
    """The mechanism as MuJoCo's XML; hinge or slide k of a body is joint "j<index of its speed>"."""

    def numbers(x) -> str:
        return " ".join(repr(float(v)) for v in x)

    root = ET.Element("mujoco")
    ET.SubElement(root, "compiler", angle="radian", autolimits="false")
    option = ET.SubElement(root, "option", gravity=numbers(m.gravity), solver="Newton", jacobian="sparse")
    ET.SubElement(option, "flag", contact="disable")
    bodies = [ET.SubElement(root, "worldbody")]
    for i, link in enumerate(m.links[1:], start=1):
        body = ET.SubElement(bodies[link.parent], "body", name=f"b{i}", pos=numbers(link.offset))
        bodies.append(body)
        I = link.inertia + FLAT * np.trace(link.inertia) * np.eye(3)
        full = numbers([I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2]])
        ET.SubElement(body, "inertial", pos=numbers(link.com), mass=repr(link.mass), fullinertia=full)
        for k, axis in enumerate(link.hinges):
            n = link.first + k
            spring = {"stiffness": repr(float(m.stiffness[n])), "damping": repr(float(m.damping[n]))}
            kind = "slide" if link.slide else "hinge"
            ET.SubElement(body, "joint", name=f"j{n}", type=kind, axis=numbers(axis), **spring)
    equality = ET.SubElement(root, "equality")
    for n, closure in enumerate(m.closures):
        for s, pair in enumerate(closure.at(points)):
            names = [f"c{n}.{s}.{end}" for end in (1, 2)]
            for name, body, p in zip(names, closure.bodies, pair, strict=True):
                ET.SubElement(bodies[body], "site", name=name, pos=numbers(p))
            ET.SubElement(equality, "connect", site1=names[0], site2=names[1], solimp=MUJOCO_HARDNESS)
    return ET.tostring(root, encoding="unicode")


class MuJoCo:
    """The mechanism at one state in MuJoCo."""

    def __init__(self, m: Mechanism, q: Vector, v: Vector, points: int = 1, loops: bool = True):
        import mujoco

        self.forward, self.step, self.inverse = mujoco.mj_forward, mujoco.mj_step, mujoco.mj_inverse
        self.model = mujoco.MjModel.from_xml_string(mjcf(m, points))
        self.data = mujoco.MjData(self.model)
        joints = [mujoco.mj_name2id(self.model, mujoco.mjtObj.mjOBJ_JOINT, f"j{k}") for k in range(m.nv)]
        self.place = self.model.jnt_dofadr[joints]
        if not loops:
            self.data.eq_active[:] = 0
        self.data.qpos[self.model.jnt_qposadr[joints]] = q
        self.data.qvel[self.place] = v

    def __call__(self) -> None:
        self.forward(self.model, self.data)

    def steps(self, times: int) -> None:
        """Make steps, each mj_forward and an integration, in MuJoCo's own loop without Python."""
        self.step(self.model, self.data, nstep=times)

    def force_missing(self, a: Vector) -> float:
        """Largest force that the accelerations `a` would need besides gravity, over the largest of bias forces.

        Says whether the model is the same where the accelerations cannot: MuJoCo solves with the mass matrix, whose
        condition number in a tree of depth 100 is 1e9, so that its accelerations have that many digits less.
        """
        self()
        self.data.qacc[self.place] = a
        self.inverse(self.model, self.data)
        return float(np.abs(self.data.qfrc_inverse).max() / np.abs(self.data.qfrc_bias).max())

    @property
    def a(self) -> Vector:
        self()
        return self.data.qacc[self.place].copy()


# ------------------------------------------------------------------------------------------------------ Pinocchio


class Pinocchio:
    """The mechanism at one state in Pinocchio; the two methods differ in how they close loops.

    `mu` and `iterations` are those of its proximal settings; the accuracy at which it stops is asked to be zero, so
    that the number of iterations is what is given. Its data grow with the cube of the number of speeds: 4 GB for 500.
    """

    def __init__(self, m: Mechanism, q: Vector, v: Vector, points: int = 1):
        import pinocchio as pin

        self.pin, self.model = pin, pin.Model()
        self.model.gravity.linear = m.gravity
        joint = {0: 0}
        place = np.zeros(m.nv, int)
        for i in m.depth_first():
            link = m.links[i]
            joint[i], at = joint[link.parent], pin.SE3(np.eye(3), link.offset)
            for k, axis in enumerate(link.hinges):
                kind = (pin.JointModelPrismaticUnaligned if link.slide else pin.JointModelRevoluteUnaligned)(axis)
                joint[i] = self.model.addJoint(joint[i], kind, at, f"j{link.first + k}")
                place[link.first + k] = self.model.idx_vs[joint[i]]
                at = pin.SE3.Identity()
            self.model.appendBodyToJoint(joint[i], pin.Inertia(link.mass, link.com, link.inertia), pin.SE3.Identity())
        self.place = place
        self.q, self.v, self.tau = np.zeros(m.nv), np.zeros(m.nv), np.zeros(m.nv)
        self.q[place], self.v[place] = q, v
        self.stiffness, self.damping = np.zeros(m.nv), np.zeros(m.nv)
        self.stiffness[place], self.damping[place] = m.stiffness, m.damping
        self.constraints = pin.StdVec_RigidConstraintModel()
        for closure in m.closures:
            ends = [joint[b] for b in closure.bodies]
            for p1, p2 in closure.at(points):
                at = [pin.SE3(np.eye(3), p) for p in (p1, p2)]
                made = pin.RigidConstraintModel(
                    pin.ContactType.CONTACT_3D, self.model, ends[0], at[0], ends[1], at[1], pin.ReferenceFrame.LOCAL
                )
                self.constraints.append(made)

    def tree(self) -> Vector:
        """Accelerations of the tree without its loops."""
        tau = -self.stiffness * self.q - self.damping * self.v
        return self.pin.aba(self.model, self.model.createData(), self.q, self.v, tau)[self.place]

    def constraint_dynamics(self, *proximal: tuple[float, int]) -> list[Callable[[], Vector]]:
        """A call for each pair of mu and iterations."""
        data, constraint_data = self._data()
        self.pin.initConstraintDynamics(self.model, data, self.constraints, constraint_data)
        return [self._call(self.pin.constraintDynamics, data, constraint_data, *p) for p in proximal]

    def lcaba(self, *proximal: tuple[float, int]) -> list[Callable[[], Vector]]:
        """A call for each pair of mu and iterations."""
        data, constraint_data = self._data()
        self.pin.computeJointMinimalOrdering(self.model, data, self.constraints)
        return [self._call(self.pin.lcaba, data, constraint_data, *p) for p in proximal]

    def _data(self):
        """Data for one method: after the other has used them its results would be wrong."""
        constraint_data = self.pin.StdVec_RigidConstraintData()
        for constraint in self.constraints:
            constraint_data.append(constraint.createData())
        return self.model.createData(), constraint_data

    def _call(self, solve, data, constraint_data, mu: float, iterations: int) -> Callable[[], Vector]:
        settings = self.pin.ProximalSettings(0.0, 0.0, mu, iterations)
        given = (self.model, data, self.q, self.v, self.tau, self.constraints, constraint_data, settings)
        return lambda: solve(*given)


# --------------------------------------------------------------------------------------------------------- Exudyn


class Exudyn:
    """The mechanism as a kinematic tree of Exudyn, every hinge a link of its own; loops are closed by points."""

    def __init__(self, m: Mechanism, q: Vector, v: Vector):
        import exudyn as exu

        container = exu.SystemContainer()
        self.exu, self.container, self.mbs = exu, container, container.AddSystem()
        number: dict[int, int] = {0: -1}  # link at which the last hinge of each body is
        axes = {-1: np.eye(3)}  # of each link where all coordinates are zero
        place = np.zeros(m.nv, int)
        kinds, parents, turns, offsets, masses, coms, inertias = ([] for _ in range(7))
        for i in m.depth_first():
            link = m.links[i]
            parent, offset = number[link.parent], link.offset
            for k, axis in enumerate(link.hinges):
                n, last = len(kinds), k == len(link.hinges) - 1
                x = across(axis)[0]
                axes[n] = np.column_stack([x, np.cross(axis, x), axis])
                kinds.append(exu.JointType.PrismaticZ if link.slide else exu.JointType.RevoluteZ)
                parents.append(parent)
                turns.append(axes[parent].T @ axes[n])
                offsets.append(axes[parent].T @ offset)
                masses.append(link.mass if last else 0.0)
                coms.append(axes[n].T @ link.com if last else np.zeros(3))
                inertias.append(axes[n].T @ link.inertia @ axes[n] if last else np.zeros((3, 3)))
                place[link.first + k] = n
                parent, offset = n, np.zeros(3)
            number[i] = parent
        self.place = place
        first, rates, stiffness, damping = (np.zeros(m.nv) for _ in range(4))
        first[place], rates[place], stiffness[place], damping[place] = q, v, m.stiffness, m.damping
        self.first, self.rates = first, rates
        node = self.mbs.AddNode(
            exu_item(
                "NodeGenericODE2",
                referenceCoordinates=[0.0] * m.nv,
                initialCoordinates=first.tolist(),
                initialCoordinates_t=rates.tolist(),
                numberOfODE2Coordinates=m.nv,
            )
        )
        self.node = node
        tree = self.mbs.AddObject(
            exu_item(
                "ObjectKinematicTree",
                nodeNumber=node,
                jointTypes=kinds,
                linkParents=parents,
                jointTransformations=exu.Matrix3DList(turns),
                jointOffsets=exu.Vector3DList(offsets),
                linkInertiasCOM=exu.Matrix3DList(inertias),
                linkCOMs=exu.Vector3DList(coms),
                linkMasses=masses,
                baseOffset=[0.0] * 3,
                gravity=m.gravity.tolist(),
                jointPControlVector=stiffness.tolist(),
                jointDControlVector=damping.tolist(),
                jointPositionOffsetVector=[0.0] * m.nv,
                jointVelocityOffsetVector=[0.0] * m.nv,
            )
        )
        ground = self.mbs.AddObject(exu_item("ObjectGround"))
        for closure in m.closures:
            markers, frames = [], []
            for k, (body, point) in enumerate(zip(closure.bodies, closure.points, strict=True)):
                n = number[body]
                if closure.axes is not None:
                    x = across(closure.axes[k])[0]
                    frame = np.column_stack([x, np.cross(closure.axes[k], x), closure.axes[k]])
                    frames.append((axes[n].T @ frame).tolist())
                if n < 0:
                    marker = exu_item("MarkerBodyRigid", bodyNumber=ground, localPosition=point.tolist())
                else:
                    at = (axes[n].T @ point).tolist()
                    marker = exu_item("MarkerKinematicTreeRigid", objectNumber=tree, linkNumber=n, localPosition=at)
                markers.append(self.mbs.AddMarker(marker))
            if frames and m.planar:  # the third row would depend on the others
                turned = {f"rotationMarker{k}": frame for k, frame in enumerate(frames)}
                joint = exu_item(
                    "ObjectJointGeneric", constrainedAxes=[1, 1, 0, 0, 0, 0], markerNumbers=markers, **turned
                )
            else:
                joint = exu_item("ObjectJointSpherical", markerNumbers=markers)
            self.mbs.AddObject(joint)
        self.mbs.Assemble()

    def solve(self, span: float, steps: int) -> tuple[Vector, Vector]:
        """Coordinates and speeds after steps of its generalised-alpha method with default settings."""
        settings = self.exu.SimulationSettings()
        integration = settings.timeIntegration
        integration.numberOfSteps, integration.endTime, integration.verboseMode = steps, span, 0
        settings.solutionSettings.writeSolutionToFile = False
        self.mbs.SolveDynamic(settings)
        kind = self.exu.OutputVariableType
        q, v = (self.mbs.GetNodeOutput(self.node, k) for k in (kind.Coordinates, kind.Coordinates_t))
        return np.array(q)[self.place], np.array(v)[self.place]


def exu_item(name: str, **given):
    import exudyn.itemInterface as items

    return getattr(items, name)(**given)


# ---------------------------------------------------------------------------------------------------------- SciPy


class Sparse:
    """Absolute coordinates: M a - J^T lam = f, J a = gamma, written here in NumPy and solved by SciPy.

    Unknown are angular acceleration and acceleration of the centre of mass of every body, in world axes, and the
    multipliers of all joints. Only the solution of the given matrix is timed. The equations are derived here once
    more, so that they judge where dense matrices are too large.
    """

    def __init__(self, m: Mechanism, q: Vector, v: Vector):
        self.m, self.v = m, v
        n = len(m.links)
        self.R, self.x, self.w = np.zeros((n, 3, 3)), np.zeros((n, 3)), np.zeros((n, 3))
        self.R[0] = np.eye(3)
        self.centre = np.zeros((n, 3))
        self.axes: list[list[Vector]] = [[] for _ in m.links]
        self.J: list[tuple[int, int, Vector]] = []  # row, body, 6 numbers
        self.gamma: list[float] = []
        for i, link in enumerate(m.links[1:], start=1):
            p = link.parent
            self.x[i] = self.x[p] + self.R[p] @ link.offset
            R, w = self.R[p], self.w[p]
            for k, axis in enumerate(link.hinges):
                self.axes[i].append(R @ axis)
                w = w + v[link.first + k] * (R @ axis)
                R = R @ about_axis(axis, q[link.first + k])
            self.R[i], self.w[i] = R, w
            self.centre[i] = self.x[i] + R @ link.com
        for i, link in enumerate(m.links[1:], start=1):
            self._tree_joint(i, link.parent)
        for closure in m.closures:
            self._closure(closure)
        self._assemble()

    def _row(self, child: int, parent: int, P: Vector, torque: Vector, force: Vector, gamma: float) -> None:
        """Relative acceleration at the point P along a torque and a force direction is gamma, velocity terms apart."""
        for body, sign in ((child, 1.0), (parent, -1.0)):
            if body:
                turn = torque + np.cross(P - self.centre[body], force)
                self.J.append((len(self.gamma), body, sign * np.concatenate([turn, force])))
                arm = P - self.centre[body]
                gamma -= sign * force @ np.cross(self.w[body], np.cross(self.w[body], arm))
        self.gamma.append(gamma)

    def _tree_joint(self, i: int, p: int) -> None:
        zero, rate = np.zeros(3), self.w[i] - self.w[p]
        for e in np.eye(3):
            self._row(i, p, self.x[i], zero, e, 0.0)
        if len(self.axes[i]) == 2:
            a, b = self.axes[i]
            turning = np.cross(np.cross(self.w[p], a), b) + np.cross(a, np.cross(self.w[i], b))
            self._row(i, p, self.x[i], np.cross(a, b), zero, -turning @ rate)
        else:
            for e in across(self.axes[i][0]):
                self._row(i, p, self.x[i], e, zero, -np.cross(self.w[p], e) @ rate)

    def _closure(self, closure: Closure) -> None:
        """One point; of a planar mechanism its components in the plane, which are independent."""
        i, j = closure.bodies
        P = self.x[j] + self.R[j] @ closure.points[1]
        directions = across(self.R[i] @ closure.axes[0]) if closure.axes and self.m.planar else np.eye(3)
        for e in directions:
            self._row(j, i, P, np.zeros(3), e, 0.0)

    def _assemble(self) -> None:
        n, rows = 6 * (len(self.m.links) - 1), len(self.gamma)
        f = np.zeros(n)
        blocks = []
        for i, link in enumerate(self.m.links[1:], start=1):
            I = self.R[i] @ link.inertia @ self.R[i].T
            blocks += [I, link.mass * np.eye(3)]
            f[6 * i - 6 : 6 * i - 3] = -np.cross(self.w[i], I @ self.w[i])
            f[6 * i - 3 : 6 * i] = link.mass * self.m.gravity
        where = np.array([[row, 6 * body - 6 + k] for row, body, _ in self.J for k in range(6)]).T
        J = sp.csr_matrix((np.concatenate([x for *_, x in self.J]), where), shape=(rows, n))
        self.K = sp.bmat([[sp.block_diag(blocks), -J.T], [J, None]], format="csc")
        self.K.eliminate_zeros()
        self.right = np.concatenate([f, self.gamma])

    def __call__(self) -> Vector:
        return spl.spsolve(self.K, self.right)

    def refined(self) -> Vector:
        """Accelerations of the hinges, the solution being refined by its residual."""
        factor = spl.splu(self.K)
        x = factor.solve(self.right)
        for _ in range(3):
            x += factor.solve(self.right - self.K @ x)
        return self.hinges(x)

    def hinges(self, x: Vector) -> Vector:
        """Accelerations of the hinges from those of the bodies."""
        alpha = np.vstack([np.zeros(3), x[: 6 * (len(self.m.links) - 1)].reshape(-1, 6)[:, :3]])
        a = np.zeros(self.m.nv)
        for i, link in enumerate(self.m.links[1:], start=1):
            relative, axes, k = alpha[i] - alpha[link.parent], self.axes[i], link.first
            relative = relative - np.cross(self.w[link.parent], axes[0]) * self.v[k]
            if len(axes) == 2:
                relative -= np.cross(self.w[i], axes[1]) * self.v[k + 1]
            a[k : k + len(axes)] = np.linalg.lstsq(np.array(axes).T, relative, rcond=None)[0]
        return a


def across(axis: Vector) -> Vector:
    """Two unit vectors perpendicular to an axis and to each other."""
    return np.linalg.svd(axis[None])[2][1:]
