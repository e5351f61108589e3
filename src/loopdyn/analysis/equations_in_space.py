"""Symbolic equations of a spatial loop that is closed by a rod with two ball joints (RSSR, RSSP).

The planar case is :mod:`loopdyn.analysis.equations`. Body axes coincide with world axes at the reference pose. A pose
is (R, t): a point r at the reference pose is at R r + t. Motions are written body by body from the root, in body axes,
each about the point of its joint: velocities as columns for the speeds, accelerations for constant speeds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loopdyn.analysis.equations import Equations, symbol
from loopdyn.engine import records as rec
from loopdyn.errors import LoopdynError
from loopdyn.formulations.closure import layout
from loopdyn.formulations.closure.plan import ClosurePlan
from loopdyn.system.system import JointData, State
from loopdyn.tree.functions import body_motion

Array = NDArray[np.float64]

SAME = 1e-12  # relative to the mechanism's size, or to a matrix: frames that coincide; numbers that are 0 or 1


class SpatialWriter:
    """Executes a plan with symbols."""

    def __init__(self, plan: ClosurePlan, state: State):
        import sympy as sp

        self.sp, self.plan, self.system = sp, plan, plan.system
        self.signs = plan.signs(state)
        self.at = body_motion(self.system, self.system.state())
        self.values: dict[Any, float] = {}
        self.g: list[tuple[Any, Any]] = []
        self.where: list[tuple[Any, Any]] = []
        self.found: dict[str, Any] = {}  # coordinates of revolute and prismatic joints solved by groups
        self._check()

    def _check(self) -> None:
        s, reason = self.system, ""
        for j in s.joints.values():
            (p, F), (x, M) = self._frame(j, 0), self._frame(j, 1)
            if j.spec.type not in ("revolute", "prismatic", "spherical"):
                reason = f"joint '{j.name}' is neither revolute, nor prismatic, nor spherical"
            elif j.in_tree and j.child != j.body:
                reason = f"the child of joint '{j.name}' is nearer to the ground than its parent; exchange them"
            elif not j.in_tree and j.spec.type != "spherical":
                reason = f"the loop is cut at '{j.name}', which is not spherical; compile with other cuts"
            elif np.abs(x - p).max() > SAME * s.size or np.abs(F - M).max() > SAME:
                reason = f"joint '{j.name}' is open or rotated at the reference pose; place it by at="
        rods = (layout.ROD_PIN, layout.ROD_SLIDE)
        kinds = [step[layout.S_KIND] for step in self.plan.steps]
        if not reason and (
            not self.plan.explicit or len(self.plan.groups) != 1 or self.plan.groups[0].kind not in rods
        ):
            reason = "it is not a single loop closed by a rod with two ball joints for these coordinates"
        if not reason and any(k not in (layout.JOIN, layout.READ, *rods) for k in kinds):
            reason = "some coordinates are given by relations"
        if not reason:
            step = self.plan.steps[next(n for n, k in enumerate(kinds) if k in rods)]
            moved = self.plan.lists[step[layout.S_MOVED] : step[layout.S_MOVED + 2]]
            if s.bodies.index("ground") in moved:
                reason = "its rod is connected to the ground; choose other coordinates"
        if reason:
            raise LoopdynError(
                f"the equations of '{s.name}' cannot be written in symbols: {reason}. Or use formulation='closure'."
            )

    # ------------------------------------------------------------------------------------------------ numbers

    def _frame(self, j: JointData, end: int) -> tuple[Array, Array]:
        return j.frame(end, self.at.position, self.at.rotation)

    def _number(self, name: str, value: float) -> Any:
        for exact in (0, 1, -1):
            if abs(value - exact) < SAME * self.system.size:
                return self.sp.Integer(exact)
        x = self.sp.Symbol(name, real=True)
        self.values[x] = float(value)
        return x

    def _vector(self, name: str, value: Array) -> Any:
        return self.sp.Matrix([self._number(f"{c}_{name}", float(x)) for c, x in zip("xyz", value, strict=True)])

    def _point(self, j: JointData) -> Any:
        return self._vector(j.name, self._frame(j, 0)[0])

    def _axis(self, j: JointData) -> Any:
        return self._vector(f"axis_{j.name}", self._frame(j, 0)[1][:, 2])

    def _axes(self, j: JointData) -> Any:
        """Axes of a ball joint at the reference pose, as columns."""
        E = self._frame(j, 0)[1]
        return self.sp.Matrix(3, 3, lambda a, b: self._number(f"e{a}{b}_{j.name}", float(E[a, b])))

    # ------------------------------------------------------------------------------------------------- symbols

    def _define(self, name: str, e: Any) -> Any:
        x = self.sp.Symbol(name, real=True)
        self.g.append((x, e))
        return x

    def _define_vector(self, name: str, u: Any) -> Any:
        return self.sp.Matrix([self._define(f"{name}{c}", x) for c, x in zip("xyz", u, strict=True)])

    def _named(self, name: str, X: Any) -> Any:
        """Matrix with symbols for entries that are more than a number or a symbol."""

        def entry(i: int, k: int) -> Any:
            e = X[i, k]
            if e.is_Atom:
                return e
            x = self.sp.Symbol(f"{name}_{i + 1}{k + 1}", real=True)
            self.where.append((x, e))
            return x

        return self.sp.Matrix(X.rows, X.cols, entry)

    def _about(self, n: Any, angle: Any) -> Any:
        """Rotation about the unit vector n."""
        sp = self.sp
        c, s = sp.cos(angle), sp.sin(angle)
        skew = sp.Matrix([[0, -n[2], n[1]], [n[2], 0, -n[0]], [-n[1], n[0], 0]])
        return c * sp.eye(3) + s * skew + (1 - c) * n * n.T

    def _ball(self, j: JointData, given: Sequence[Any]) -> Any:
        """Rotation matrix of a ball joint in body axes, from its quaternion."""
        w, x, y, z = given
        Q = self.sp.Matrix(
            [
                [1 - 2 * (y**2 + z**2), 2 * (x * y - w * z), 2 * (x * z + w * y)],
                [2 * (x * y + w * z), 1 - 2 * (x**2 + z**2), 2 * (y * z - w * x)],
                [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x**2 + y**2)],
            ]
        )
        E = self._axes(j)
        return E * Q * E.T

    def _turn(self, j: JointData) -> Any:
        """Rotation of the child relative to the parent, from the coordinates of a joint."""
        if j.spec.type == "revolute":
            return self._about(self._axis(j), symbol("q", j.name))
        if j.spec.type == "prismatic":
            return self.sp.eye(3)
        return self._ball(j, self._quaternion(j))

    def _quaternion(self, j: JointData, kind: str = "q") -> list[Any]:
        return [symbol(kind, label) for label in j.spec.labels(j.name)[0]]

    def _shift(self, j: JointData) -> Any:
        return symbol("q", j.name) * self._axis(j) if j.spec.type == "prismatic" else self.sp.zeros(3, 1)

    # --------------------------------------------------------------------------------------------------- steps

    def _placed(self, body: int, r: Any) -> Any:
        R, t = self.pose[body]
        return R * r + t

    def _move(self, bodies: Sequence[int], R: Any, t: Any) -> None:
        for b in bodies:
            R0, t0 = self.pose[b]
            self.pose[b] = R * R0, R * t0 + t

    def _attach(self, j: JointData, end: int, bodies: Sequence[int], turn: Any, shift: Any) -> None:
        """Move a part, not moved before, so that joint j has this rotation and shift; the body at `end` is fixed."""
        p = self._point(j)
        if end == 1:  # the parent is the part that moves
            turn = turn.T
            shift = -(turn * shift)
        R, t = self.pose[(j.parent, j.child)[end]]
        self._move(bodies, R * turn, R * (p + shift - turn * p) + t)

    def _rod(self, step: Sequence[int]) -> None:
        sp, lists = self.sp, self.plan.lists
        j1, j2, j3 = (self.plan.joints[k] for k in step[layout.S_JOINT : layout.S_JOINT + 3])
        e1, e2, e3 = step[layout.S_END : layout.S_END + 3]
        m1, m2, m3 = step[layout.S_MOVED : layout.S_MOVED + 3]
        moved, rod = lists[m1:m2], lists[m2:m3]
        none = sp.zeros(3, 1)
        self._attach(j1, e1, moved, sp.eye(3), none)
        still = (j1.parent, j1.child)[e1]
        R, _ = self.pose[still]
        a, n = self._placed(still, self._point(j1)), R * self._axis(j1)
        b = self._placed((j2.parent, j2.child)[e2], self._point(j2))
        c = self._placed((j3.parent, j3.child)[1 - e3], self._point(j3))
        ends = [self._frame(j, 0)[0] for j in (j2, j3)]
        ll = self._number("ll", float((ends[1] - ends[0]) @ (ends[1] - ends[0])))
        sign, way = int(self.signs[0]), 1 if e1 == 0 else -1
        if step[layout.S_KIND] == layout.ROD_PIN:
            u = self._define_vector("u", b - a)
            w = self._define_vector("w", c - a)
            K = self._define("K", (u.dot(u) + w.dot(w) - ll) / 2 - n.dot(w) * n.dot(u))
            u, w = self._define_vector("p", u - n.dot(u) * n), self._define_vector("d", w - n.dot(w) * n)
            uu, ww = self._define("pp", u.dot(u)), self._define("dd", w.dot(w))
            root = self._define("root", sign * sp.sqrt(uu * ww - K**2))
            r = self._define_vector("r", (K * w - root * n.cross(w)) / ww)
            f = self._define("f", sp.atan2(n.dot(u.cross(r)), u.dot(r)))
            turn = self._about(n, f)
            self._move(moved, turn, a - turn * a)
            self.found[j1.name] = way * f
        else:
            w = self._define_vector("w", b - c)
            e = way * n
            along = self._define("along", w.dot(e))
            root = self._define("root", sign * sp.sqrt(ll - w.dot(w) + along**2))
            self._move(moved, sp.eye(3), (root - along) * e)
            self.found[j1.name] = root - along
        tree = j2 if j2.in_tree else j3
        self._spin(tree, j3 if tree is j2 else j2)
        self._attach(tree, 0, rod, self._turn(tree), none)

    def _spin(self, j: JointData, other: JointData) -> None:
        """Quaternion of ball joint j after the smallest rotation from q0 that points the rod at the other ball joint.

        In the axes of the joint on its parent, u is the old direction of the rod and s the new one.
        """
        sp, E = self.sp, self._axes(j)
        old = self._quaternion(j, "q0")
        rod = self._point(other) - self._point(j)
        R, _ = self.pose[j.parent]
        far = other.parent if other.child == j.child else other.child  # the other body at this joint
        goal = self._placed(far, self._point(other)) - self._placed(j.parent, self._point(j))
        u = self._define_vector("v", E.T * self._ball(j, old) * rod)
        s = self._define_vector("s", E.T * R.T * goal)
        N, c = u.cross(s), u.dot(s)
        size = self._define("size", sp.sqrt((c + s.dot(s)) ** 2 + N.dot(N)))
        w, (x, y, z) = (c + s.dot(s)) / size, N / size
        w0, x0, y0, z0 = old
        new = (
            w * w0 - x * x0 - y * y0 - z * z0,
            w * x0 + x * w0 + y * z0 - z * y0,
            w * y0 - x * z0 + y * w0 + z * x0,
            w * z0 + x * y0 - y * x0 + z * w0,
        )
        for x, e in zip(self._quaternion(j), new, strict=True):
            self.g.append((x, e))

    def _positions(self) -> None:
        """Definitions g: the steps of the plan."""
        sp = self.sp
        self.pose = {b: (sp.eye(3), sp.zeros(3, 1)) for b in range(len(self.system.bodies))}
        for step in self.plan.steps:
            kind, j = step[layout.S_KIND], self.plan.joints[step[layout.S_JOINT]]
            if kind == layout.JOIN:
                bodies = self.plan.lists[step[layout.S_MOVED] : step[layout.S_MOVED + 1]]
                self._attach(j, step[layout.S_END], bodies, self._turn(j), self._shift(j))
            elif kind != layout.READ:
                self._rod(step)
            elif j.name in self.found:
                self.g.append((symbol("q", j.name), self.found[j.name]))

    # ---------------------------------------------------------------------------------------------- the tree

    def _columns(self, J: Any, r: Any) -> Any:
        """Velocity of a point at r due to the angular velocities J, column by column."""
        return self.sp.Matrix.hstack(*(J[:, k].cross(r) for k in range(J.cols)))

    def _tree(self, v: Any) -> None:
        """Velocities and accelerations of all bodies, gravity and orientation, by the coordinates of the tree."""
        sp, s = self.sp, self.system
        none, still = sp.zeros(3, 1), sp.zeros(3, s.nv)
        gravity = self._vector("g", s.model.gravity)
        base = (still, still, none, none, gravity, sp.eye(3))
        self.motion = {b: base for b in range(s.n_bases)}
        self.origin = {b: none for b in range(s.n_bases)}
        for j in sorted((j for j in s.joints.values() if j.in_tree), key=lambda j: j.body):
            Jw, Jv, alpha, a, g, R = self.motion[j.parent]
            body = s.bodies[j.body]
            turn, p, w = self._named(f"R_{j.name}", self._turn(j)), self._point(j), Jw * v
            r = p - self.origin[j.parent] + self._shift(j)
            turns, slides = sp.zeros(3, s.nv), sp.zeros(3, s.nv)
            if j.spec.type == "prismatic":
                slides[:, j.v0] = self._axis(j)
            elif j.spec.type == "revolute":
                turns[:, j.v0] = self._axis(j)
            else:
                turns[:, j.v0 : j.v0 + 3] = self._axes(j)
            at = a + alpha.cross(r) + w.cross(w.cross(r)) + 2 * w.cross(slides * v)
            Jw2 = self._named(f"Jw_{body}", turn.T * Jw + turns)
            Jv2 = self._named(f"Jv_{body}", turn.T * (Jv + self._columns(Jw, r)) + slides)
            alpha2 = self._named(f"alpha_{body}", turn.T * alpha + (Jw2 * v).cross(turns * v))
            rest = {"a": turn.T * at, "g": turn.T * g, "R": R * turn}
            a2, g2, R2 = (self._named(f"{name}_{body}", e) for name, e in rest.items())
            self.motion[j.body] = Jw2, Jv2, alpha2, a2, g2, R2
            self.origin[j.body] = p

    def _dynamics(self, v: Any) -> tuple[Any, Any]:
        """M and h of the tree, by the Newton-Euler equations."""
        sp, s = self.sp, self.system
        M, h = sp.zeros(s.nv, s.nv), sp.zeros(s.nv, 1)
        for b in range(s.n_bases, len(s.bodies)):
            data, name = s.model.body[b], s.bodies[b]
            R = self.at.rotation[b] @ data[rec.BODY_AXES : rec.BODY_AXES + 9].reshape(3, 3).T
            inertia = R @ s.inertias[b] @ R.T
            offset = data[rec.COM : rec.COM + 3] - data[rec.ORIGIN : rec.ORIGIN + 3]
            com = self._vector(f"com_{name}", self.at.position[b] + R @ offset)
            m = self._number(f"m_{name}", float(data[rec.MASS]))
            I = sp.Matrix(
                3, 3, lambda i, k, X=inertia, b=name: self._number(f"I{min(i, k)}{max(i, k)}_{b}", float(X[i, k]))
            )
            Jw, Jv, alpha, a, g, _ = self.motion[b]
            c, w = com - self.origin[b], self._named(f"w_{name}", Jw * v)
            Jc = self._named(f"Jc_{name}", Jv + self._columns(Jw, c))
            ac = self._named(f"ac_{name}", a + alpha.cross(c) + w.cross(w.cross(c)))
            M += m * Jc.T * Jc + Jw.T * I * Jw
            h += m * Jc.T * (g - ac) - Jw.T * (I * alpha + w.cross(I * w))
        return M, h

    def _closing_rows(self, v: Any) -> tuple[Any, Any]:
        """C and C' v of the cut ball joint, in world axes."""
        (j,) = (j for j in self.system.joints.values() if not j.in_tree)
        found = []
        for b in (j.parent, j.child):
            Jw, Jv, alpha, a, _, R = self.motion[b]
            r, w = self._point(j) - self.origin[b], Jw * v
            found.append((R * (Jv + self._columns(Jw, r)), R * (a + alpha.cross(r) + w.cross(w.cross(r)))))
        return found[1][0] - found[0][0], found[1][1] - found[0][1]

    def write(self) -> Equations:
        """Equations with all their parts."""
        sp, s = self.sp, self.system
        self._positions()
        v = sp.Matrix([symbol("v", x) for x in s.speeds])
        self._tree(v)
        I = [s.speeds.index(x) for x in self.plan.independent]
        D = [k for k in range(s.nv) if k not in I]
        C, rate = (self._named(name, e) for name, e in zip(("C", "rate"), self._closing_rows(v), strict=True))
        c1, c2, c3 = (C[:, k] for k in D)
        adjugate = sp.Matrix.vstack(c2.cross(c3).T, c3.cross(c1).T, c1.cross(c2).T)
        inverse = self._named("Ci", adjugate / c1.dot(c2.cross(c3)))
        A, xi = -inverse * C.extract([0, 1, 2], I), -inverse * rate
        A_named, xi_named = self._named("A", A), self._named("xi", xi)
        M, h = (self._named(name, e) for name, e in zip("Mh", self._dynamics(v), strict=True))
        T, rest = sp.zeros(s.nv, len(I)), sp.zeros(s.nv, 1)
        for n, k in enumerate(I):
            T[k, n] = 1
        for n, k in enumerate(D):
            T[k, :], rest[k] = A_named[n, :], xi_named[n]
        labels = tuple(s.speeds[k] for k in D)
        minimal = T.T * M * T, T.T * (h - M * rest)
        return Equations(self.plan, tuple(self.g), A, xi, M, h, *minimal, labels, self.values, tuple(self.where))
