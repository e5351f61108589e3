"""Closing conditions and minimal equations in symbols, as in the papers.

[Blajer1993 eqs. (5)-(7), (12)-(14)]. The plan of `closure` is executed with SymPy: each step gives one or more
definitions that use those before it. Lengths and directions are symbols with values; angles of bodies are counted
from the reference pose, in the plane in which the mechanism moves. A spatial loop that is closed by a rod with two
ball joints is in :mod:`loopdyn.analysis.equations_in_space`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from loopdyn.engine import records as rec
from loopdyn.errors import LoopdynError
from loopdyn.formulations.closure import layout
from loopdyn.formulations.closure.formulation import plan_for
from loopdyn.formulations.closure.joint_geometry import PARALLEL
from loopdyn.formulations.closure.plan import ClosurePlan
from loopdyn.loops.rank import decide
from loopdyn.quantities.wording import unknown
from loopdyn.spatial.rotations import perpendicular_frame
from loopdyn.system.system import JointData, State, System, require_exact
from loopdyn.tree.functions import body_motion

if TYPE_CHECKING:
    import sympy

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Equations:
    """Closing conditions and minimal equations in symbols.

    Attributes
    ----------
    plan : Plan
    g : tuple of (Symbol, expression)
        Definitions in order; the last ones are the dependent coordinates. eq. (5)
    A, xi : Matrix
        v_D = A v_I, a_D = A a_I + xi, with all coordinates and speeds as symbols; eta = 0. eqs. (6), (7)
    M, h : Matrix
        Mass matrix and generalised forces of the tree. eq. (1)
    M_minimal, h_minimal : Matrix
        M' a_I = h'. eqs. (12)-(14)
    dependent : tuple of str
        Rows of A and xi.
    values : dict
        Values of the constants.
    where : tuple of (Symbol, expression)
        Definitions in order, with all coordinates and speeds as symbols, that A, xi, M and h use; none for planar
        mechanisms.
    """

    plan: ClosurePlan
    g: tuple[tuple[sympy.Symbol, sympy.Expr], ...]
    A: sympy.Matrix
    xi: sympy.Matrix
    M: sympy.Matrix
    h: sympy.Matrix
    M_minimal: sympy.Matrix
    h_minimal: sympy.Matrix
    dependent: tuple[str, ...]
    values: dict[sympy.Symbol, float]
    where: tuple[tuple[sympy.Symbol, sympy.Expr], ...] = ()

    def latex(self) -> str:
        """Definitions g, then the definitions used by A and xi, then A and xi, as lines of LaTeX."""
        import sympy as sp

        lines = [f"{sp.latex(x)} = {sp.latex(e)}" for x, e in (*self.g, *self.where)]
        return "\n".join([*lines, f"A = {sp.latex(self.A)}", f"\\xi = {sp.latex(self.xi)}"])

    def python(self) -> str:
        """Definitions g as lines of Python, constants first."""
        import sympy as sp

        lines = [f"{x} = {value!r}" for x, value in self.values.items()]
        lines += [f"{x} = {sp.pycode(e, fully_qualified_modules=False)}" for x, e in self.g]
        return "from math import atan2, cos, sin, sqrt\n" + "\n".join(lines)

    @cached_property
    def _function(self) -> Any:
        import sympy as sp

        s = self.plan.system
        names = [symbol("q", x) for x in s.coordinates] + [symbol("v", x) for x in s.speeds]
        parts = [self.A, self.xi, self.M_minimal, self.h_minimal]
        if not self.where:
            return sp.lambdify(names, [p.subs(self.values) for p in parts], "numpy", cse=True)
        defined = [(x, sp.Float(value)) for x, value in self.values.items()] + list(self.where)
        return sp.lambdify(names, parts, "numpy", cse=lambda whole: (defined, whole))

    def evaluate(self, q: Mapping[str, float], v: Mapping[str, float]) -> dict[str, Any]:
        """Numbers at independent coordinates and speeds: all q and v, A, xi, M', h' and the accelerations.

        For a ball joint of a rod that can spin, `q` also has its previous quaternion: the rod is rotated from there by
        the smallest angle.
        """
        defined = {x for x, _ in self.g}
        known: dict[Any, Any] = dict(self.values)
        for label, value in q.items():
            known[symbol("q0" if symbol("q", label) in defined else "q", label)] = float(value)
        for x, e in self.g:
            known[x] = float(e.subs(known))
        s = self.plan.system
        all_q = {x: float(known[symbol("q", x)]) for x in s.coordinates}
        independent = np.array([v[x] for x in self.plan.independent])
        at = list(all_q.values())
        A = np.asarray(self._function(*at, *np.zeros(s.nv))[0], float)
        all_v = dict(v) | dict(zip(self.dependent, A @ independent, strict=True))
        A, xi, M, h = (np.asarray(x, float) for x in self._function(*at, *[all_v[x] for x in s.speeds]))
        a = np.linalg.solve(M, h[:, 0])
        all_a = dict(zip(self.plan.independent, a, strict=True))
        all_a |= dict(zip(self.dependent, A @ a + xi[:, 0], strict=True))
        return {"q": all_q, "v": all_v, "a": all_a, "A": A, "xi": xi[:, 0], "M": M, "h": h[:, 0]}

    def __str__(self) -> str:
        lines = [str(self.plan), *(f"  {x} = {e}" for x, e in self.g)]
        return "\n".join(lines)


def equations(system: System, independent: Sequence[str], state: State | None = None) -> Equations:
    """Closing conditions, A, xi and the minimal equations of a mechanism in symbols.

    Parameters
    ----------
    system : System
        Mechanism of revolute and prismatic joints in one plane with a plan in closed form, or one loop of revolute and
        prismatic joints closed by a rod with two ball joints (RSSR, RSSP); gravity is its only force.
    independent : list of str
        The independent coordinates.
    state : State, optional
        Closed state, whose branch is used; by default the one nearest to the reference pose.

    Examples
    --------
    >>> import loopdyn as ld
    >>> system = ld.library.four_bar().compile()
    >>> found = ld.analyses.equations(system, ["A"])
    >>> [str(x) for x, _ in found.g][-2:], found.M_minimal.shape
    (['q_B', 'q_D'], (1, 1))
    """
    require_exact(system, state, "equations", "ld.accelerations and ld.terms, which give numbers")
    wrong = [label for label in independent if label not in system.speeds]
    if wrong:
        raise unknown("equations", "coordinate", wrong, system.speeds)
    rank = decide(system, state or system.state())
    closed = rank.state or system.state()
    if len(independent) != system.nv - rank.count:
        raise LoopdynError(
            f"{len(independent)} coordinates are given, but '{system.name}' has {system.nv - rank.count} degrees of "
            "freedom. Give as many."
        )
    plan = plan_for(system, closed, [system.speeds.index(x) for x in independent])
    try:
        import sympy  # noqa: F401
    except ImportError:
        raise LoopdynError(
            "ld.analyses.equations needs SymPy, which is not installed. Run: pip install 'loopdyn[symbols]'."
        ) from None
    if any(j.spec.type == "spherical" for j in system.joints.values()):
        from loopdyn.analysis.equations_in_space import SpatialWriter

        _check_loads(plan)
        return SpatialWriter(plan, closed).write()
    return _Writer(plan, closed).write()


def _check_loads(plan: ClosurePlan) -> None:
    s = plan.system
    m = s.mechanism
    if s.forces or m.user_forces or m.constraints or m.drivers or m.base or s.model.armature.any():
        raise LoopdynError(
            f"the equations of '{s.name}' cannot be written in symbols: it has forces, constraints, drivers, armature "
            "or a moving base besides joints and gravity. Use formulation='closure' instead."
        )


def symbol(kind: str, label: str) -> sympy.Symbol:
    """Symbol of a coordinate (kind "q") or a speed ("v"); "q0" is a previous coordinate."""
    import sympy as sp

    return sp.Symbol(f"{kind}_{label.replace('.', '_')}", real=True)


class _Writer:
    """Executes a plan with symbols; a pose is (angle, x, y): a point r at the reference pose is at R r + (x, y)."""

    def __init__(self, plan: ClosurePlan, state: State):
        import sympy as sp

        self.sp, self.plan, self.system = sp, plan, plan.system
        self.signs = plan.signs(state)
        self.values: dict[Any, float] = {}
        self.g: list[tuple[Any, Any]] = []
        self._check()
        _check_loads(plan)
        self.at = body_motion(self.system, self.system.state())
        joint = next(j for j in self.system.joints.values() if j.spec.type == "revolute")
        n = self._frame(joint, 0)[1][:, 2]
        self.plane = perpendicular_frame(n)
        self.n = self.plane[2]
        for j in self.system.joints.values():
            z = self._frame(j, 0)[1][:, 2]
            off = np.linalg.norm(np.cross(z, n)) if j.spec.type == "revolute" else abs(z @ n)
            if off > PARALLEL:
                raise LoopdynError(
                    f"'{j.name}' does not move in the plane of the others. The equations need a planar mechanism."
                )
        self.joints = list(self.system.joints.values())
        self.pose: dict[int, Any] = {}

    def _check(self) -> None:
        s = self.system
        wrong = [j.name for j in s.joints.values() if j.spec.type not in ("revolute", "prismatic")]
        reason = ""
        if wrong or not any(j.spec.type == "revolute" for j in s.joints.values()):
            reason = f"joint '{wrong[0]}' is neither revolute nor prismatic" if wrong else "there is no revolute joint"
        elif not self.plan.explicit:
            reason = f"{', '.join(self.plan.iterated)} are iterated"
        if reason:
            raise LoopdynError(
                f"the equations of '{s.name}' cannot be written in symbols: {reason}. Use formulation='closure'."
            )

    # ------------------------------------------------------------------------------------------------ numbers

    def _frame(self, j: JointData, end: int) -> tuple[Array, Array]:
        return j.frame(end, self.at.position, self.at.rotation)

    def _constant(self, name: str, value: float) -> Any:
        if abs(value) < 1e-14 * self.system.size:
            return self.sp.Integer(0)
        x = self.sp.Symbol(name, real=True)
        self.values[x] = float(value)
        return x

    def _point(self, j: JointData, end: int) -> Any:
        """Position of a joint on one of its bodies at the reference pose."""
        p = self.plane[:2] @ self._frame(j, end)[0]
        on = self.system.bodies[(j.parent, j.child)[end]]
        return self.sp.Matrix([self._constant(f"{c}_{j.name}_{on}", p[k]) for k, c in enumerate("xy")])

    def _way(self, j: JointData, end: int) -> Any:
        e = self.plane[:2] @ self._frame(j, end)[1][:, 2]
        on = self.system.bodies[(j.parent, j.child)[end]]
        return self.sp.Matrix([self._constant(f"e{c}_{j.name}_{on}", e[k]) for k, c in enumerate("xy")])

    def _sense(self, j: JointData) -> int:
        return 1 if self._frame(j, 0)[1][:, 2] @ self.n > 0 else -1

    # ------------------------------------------------------------------------------------------------- symbols

    def _turn(self, angle: Any) -> Any:
        c, s = self.sp.cos(angle), self.sp.sin(angle)
        return self.sp.Matrix([[c, -s], [s, c]])

    def _put(self, pose: Any, r: Any) -> Any:
        return self._turn(pose[0]) * r + pose[1]

    def _define(self, name: str, e: Any) -> Any:
        x = self.sp.Symbol(name, real=True)
        self.g.append((x, e))
        return x

    def _reference(self, j: JointData) -> float:
        """Coordinate of a tree or cut joint at the reference pose."""
        (p, F), (x, M) = self._frame(j, 0), self._frame(j, 1)
        if j.in_tree:
            return float(self.system.q_reference[j.q0])
        return float(j.spec.measure(F.T @ M, F.T @ (x - p), j.par)[0])

    def _attached(self, j: JointData, end: int, pose: Any, q: Any) -> Any:
        """Pose of the body at the other end of a joint, from that of the body at `end` and the coordinate q."""
        way = 1 if end == 0 else -1
        r, goal = self._point(j, 1 - end), self._point(j, end)
        if j.spec.type == "revolute":
            angle = pose[0] + way * self._sense(j) * (q - self._constant(f"q0_{j.name}", self._reference(j)))
        else:
            F, M = self._frame(j, 0)[1], self._frame(j, 1)[1]
            askew = float(np.arctan2(np.cross(F[:, 0], M[:, 0]) @ self.n, F[:, 0] @ M[:, 0]))  # offset of an open slide
            angle = pose[0] - way * self._constant(f"askew_{j.name}", askew)
            goal = goal + way * q * self._way(j, end)
        return angle, self._put(pose, goal) - self._turn(angle) * r

    def _read(self, j: JointData) -> Any:
        first, second = self.pose[j.parent], self.pose[j.child]
        if j.spec.type == "revolute":
            return self._sense(j) * (second[0] - first[0]) + self._constant(f"q0_{j.name}", self._reference(j))
        apart = self._put(second, self._point(j, 1)) - self._put(first, self._point(j, 0))
        return apart.dot(self._turn(first[0]) * self._way(j, 0))

    def _move(self, bodies: Sequence[int], angle: Any, shift: Any) -> None:
        """x -> R x + shift for all points of these bodies."""
        for b in bodies:
            phi, t = self.pose[b]
            self.pose[b] = (phi + angle, self._turn(angle) * t + shift)

    def _attach(self, j: JointData, end: int, bodies: Sequence[int], q: Any) -> None:
        """Move a part so that joint j has the coordinate q; the body at `end` is fixed."""
        still, other = (j.parent, j.child)[end], (j.parent, j.child)[1 - end]
        angle, t = self._attached(j, end, self.pose[still], q)
        turn = angle - self.pose[other][0]
        self._move(bodies, turn, t - self._turn(turn) * self.pose[other][1])

    def _about(self, bodies: Sequence[int], centre: Any, angle: Any) -> None:
        self._move(bodies, angle, centre - self._turn(angle) * centre)

    def _place(self, j: JointData, end: int) -> Any:
        return self._put(self.pose[(j.parent, j.child)[end]], self._point(j, end))

    # --------------------------------------------------------------------------------------------------- steps

    def _group(self, step: Sequence[int], lists: Sequence[int]) -> None:
        sp, kind, number = self.sp, step[layout.S_KIND], step[layout.S_GROUP]
        j1, j2, j3 = (self.joints[k] for k in step[layout.S_JOINT : layout.S_JOINT + 3])
        e1, e2, e3 = step[layout.S_END : layout.S_END + 3]
        m1, m2, m3 = step[layout.S_MOVED : layout.S_MOVED + 3]
        first, second, k = lists[m1:m2], lists[m2:m3], number + 1
        sign = int(self.signs[number]) * self._sense(j1)
        zero = sp.Integer(0)
        self._attach(j3, 1 - e3, second, zero)
        if kind == layout.SLIDES:
            self._attach(j2, 1 - e2, first, zero)
            ways = []
            for j, end in ((j3, 1 - e3), (j2, 1 - e2)):
                body = (j.parent, j.child)[end]
                ways.append((1 if end == 0 else -1) * self._turn(self.pose[body][0]) * self._way(j, end))
            d = self._place(j1, e1) - self._place(j1, 1 - e1)
            x = sp.Matrix.hstack(*ways).LUsolve(d)
            one, two = (self._define(f"s{n}_{k}", x[n - 1]) for n in (1, 2))
            self._move(second, zero, one * ways[0])
            self._move(first, zero, one * ways[0] + two * ways[1])
            return
        self._attach(j1, e1, first, zero)
        a, b1, b2 = self._place(j1, e1), self._place(j2, e2), self._place(j2, 1 - e2)
        ux, uy = (self._define(f"u{c}_{k}", x) for c, x in zip("xy", b1 - a, strict=True))
        uu = self._define(f"uu_{k}", ux**2 + uy**2)
        if kind == layout.SLIDE:
            body, still = (j3.parent, j3.child)[1 - e3], 1 - e3
            e = (1 if still == 0 else -1) * self._turn(self.pose[body][0]) * self._way(j3, still)
            wx, wy = (self._define(f"w{c}_{k}", x) for c, x in zip("xy", b2 - a, strict=True))
            across = self._define(f"across_{k}", wx * e[1] - wy * e[0])
            branch = int(self.signs[number])
            x = self._define(f"s_{k}", -(wx * e[0] + wy * e[1]) + branch * sp.sqrt(uu - across**2))
            self._move(second, zero, x * e)
            rx, ry = wx + x * e[0], wy + x * e[1]
        else:
            c = self._place(j3, 1 - e3)
            wx, wy = (self._define(f"w{n}_{k}", x) for n, x in zip("xy", c - a, strict=True))
            px, py = (self._define(f"p{n}_{k}", x) for n, x in zip("xy", b2 - c, strict=True))
            pp, ww = self._define(f"pp_{k}", px**2 + py**2), self._define(f"ww_{k}", wx**2 + wy**2)
            x = self._define(f"x_{k}", (ww + uu - pp) / (2 * ww))
            y = self._define(f"y_{k}", -sign * sp.sqrt(uu / ww - x**2))
            rx, ry = x * wx - y * wy, x * wy + y * wx
            vx, vy = rx - wx, ry - wy
            turn = self._define(f"phi2_{k}", sp.atan2(px * vy - py * vx, px * vx + py * vy))
            self._about(second, c, turn)
        turn = self._define(f"phi1_{k}", sp.atan2(ux * ry - uy * rx, ux * rx + uy * ry))
        self._about(first, a, turn)

    def _positions(self) -> None:
        """Definitions g: the steps of the plan."""
        sp, lists = self.sp, self.plan.lists
        self.pose = {b: (sp.Integer(0), sp.zeros(2, 1)) for b in range(len(self.system.bodies))}
        for step in self.plan.steps:
            kind = step[layout.S_KIND]
            j = self.joints[step[layout.S_JOINT]]
            if kind == layout.JOIN:
                bodies = lists[step[layout.S_MOVED] : step[layout.S_MOVED + 1]]
                self._attach(j, step[layout.S_END], bodies, symbol("q", j.name))
            elif kind == layout.READ:
                self._define(f"q_{j.name}", self._read(j))
            else:
                self._group(step, lists)

    def _tree(self) -> None:
        """Poses of all bodies by the coordinates of the tree."""
        sp, s = self.sp, self.system
        self.pose = {b: (sp.Integer(0), sp.zeros(2, 1)) for b in range(s.n_bases)}
        by_body = {j.body: j for j in s.joints.values() if j.in_tree}
        for b in range(s.n_bases, len(s.bodies)):
            j = by_body[b]
            end = 0 if j.child == b else 1
            self.pose[b] = self._attached(j, end, self.pose[(j.parent, j.child)[end]], symbol("q", j.name))

    def _closing_rows(self) -> Any:
        rows = []
        for j in self.joints:
            if not j.in_tree:
                d = self._place(j, 1) - self._place(j, 0)
                if j.spec.type == "revolute":
                    rows += list(d)
                else:
                    e = self._turn(self.pose[j.parent][0]) * self._way(j, 0)
                    rows += [d[0] * e[1] - d[1] * e[0], self.pose[j.child][0] - self.pose[j.parent][0]]
        return self.sp.Matrix(rows)

    def _dynamics(self, q: Any, v: Any) -> tuple[Any, Any]:
        """M and h of the tree, by Lagrange's equations."""
        sp, s = self.sp, self.system
        M, potential = sp.zeros(s.nv, s.nv), sp.Integer(0)
        gravity = self.plane[:2] @ s.model.gravity
        g = [self._constant(f"g{c}", float(x)) for c, x in zip("xy", gravity, strict=True)]
        for b in range(s.n_bases, len(s.bodies)):
            data, name = s.model.body[b], s.bodies[b]
            axes = data[rec.BODY_AXES : rec.BODY_AXES + 9].reshape(3, 3)
            R = self.at.rotation[b] @ axes.T
            inertia = R @ s.inertias[b] @ R.T
            offset = data[rec.COM : rec.COM + 3] - data[rec.ORIGIN : rec.ORIGIN + 3]
            com = self.plane[:2] @ (self.at.position[b] + R @ offset)
            m, J = self._constant(f"m_{name}", data[rec.MASS]), self._constant(f"J_{name}", self.n @ inertia @ self.n)
            r = sp.Matrix([self._constant(f"{c}_com_{name}", com[k]) for k, c in enumerate("xy")])
            x, phi = self._put(self.pose[b], r), sp.Matrix([self.pose[b][0]])
            Jx, Jphi = x.jacobian(q), phi.jacobian(q)
            M += m * Jx.T * Jx + J * Jphi.T * Jphi
            potential -= m * (g[0] * x[0] + g[1] * x[1])
        kinetic = (v.T * M * v)[0] / 2
        momentum_rate = (M * v).jacobian(q) * v
        h = sp.Matrix([sp.diff(kinetic - potential, x) for x in q]) - momentum_rate
        return M, h

    def write(self) -> Equations:
        """Equations with all their parts."""
        sp, s = self.sp, self.system
        self._positions()
        self._tree()
        q, v = (sp.Matrix([symbol(kind, x) for x in s.speeds]) for kind in "qv")
        I = [s.speeds.index(x) for x in self.plan.independent]
        D = [k for k in range(s.nv) if k not in I]
        C = self._closing_rows().jacobian(q)
        rate = (C * v).jacobian(q) * v
        if D:
            C_D = C.extract(list(range(C.rows)), D)
            A, xi = -C_D.LUsolve(C.extract(list(range(C.rows)), I)), -C_D.LUsolve(rate)
        else:
            A, xi = sp.zeros(0, len(I)), sp.zeros(0, 1)
        M, h = self._dynamics(q, v)
        T, rest = sp.zeros(s.nv, len(I)), sp.zeros(s.nv, 1)
        for n, k in enumerate(I):
            T[k, n] = 1
        for n, k in enumerate(D):
            T[k, :], rest[k] = A[n, :], xi[n]
        labels = tuple(s.speeds[k] for k in D)
        minimal = T.T * M * T, T.T * (h - M * rest)
        return Equations(self.plan, tuple(self.g), A, xi, M, h, *minimal, labels, self.values)
