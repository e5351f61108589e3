"""The planner of `closure`: the order in which parts of a mechanism are joined, and the groups solved meanwhile.

Bodies are combined into parts (see :mod:`loopdyn.formulations.closure.kernels`): by welds and by joints whose
coordinates are known, then by groups of joints in a ring that have a closed form, until nothing is left or nothing more
is recognised. Loops need not be declared: any ring is considered, so that loops are solved in a feasible order
(six-bars of Watt and Stephenson, block triangular). Three hinges in series with a common point are equivalent to a ball
(a wrist), two such hinges to a universal joint, and two balls between the same two parts to a hinge along the line
through them. Among the remaining constraints the smallest set that determines all coordinates it depends on is
iterated, a block; then the planner continues.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from loopdyn.constraints.coupler import COUPLER
from loopdyn.engine.records import E_COORDINATE, E_CUT, L_COUNT, L_FIRST, L_KIND
from loopdyn.formulations.closure import layout
from loopdyn.formulations.closure.joint_geometry import APART, PARALLEL, JointGeometry, Line
from loopdyn.formulations.closure.plan import ClosedFormGroup, ClosurePlan, IteratedBlock, together
from loopdyn.joints import Joint, Revolute, Spherical, Universal
from loopdyn.loops.rank import of_matrix, scaled
from loopdyn.system.system import JointData, State, System
from loopdyn.tree.functions import constraint_equations, increment

Array = NDArray[np.float64]

# Joints that may be one of the pins of a group, since the other two joints keep the parts in their plane.
SOFT = ("spherical", "universal", "cylindrical")
Ring = tuple[JointData, JointData, JointData]
BALLS = ("spherical", "universal")  # joints that keep a point of one part at a point of another
PLACES = 1e-12  # entries of the Jacobian, in natural units, that are smaller at a pose and at one nearby are zero
BESIDE = 0.1  # distance of the nearby pose, in natural units, so that no entry vanishes by chance


def plan_closure(
    system: System, state: State, independent: Iterable[int], groups: bool = True, apart: bool = True
) -> ClosurePlan:
    """The order of steps for independent speeds (by number); axes are compared at a closed state.

    Parameters
    ----------
    system : System
    state : State
    independent : list of int
    groups : bool
        Whether groups are used.
    apart : bool
        Whether iterated coordinates are divided into blocks.

    Examples
    --------
    >>> import loopdyn as ld
    >>> system = ld.library.four_bar().compile()
    >>> print(plan_closure(system, ld.assemble(system), [0]))
    closure: A independent, 2 coordinates follow, all in closed form
      1. B-C-D: three pins (RRR), places coupler, rocker
    """
    return Planner(system, state, sorted(independent)).plan(groups, apart)


def is_explicit(system: System, state: State, independent: Iterable[int]) -> bool:
    """Whether the plan for independent speeds iterates nothing.

    Examples
    --------
    >>> import loopdyn as ld
    >>> system = ld.library.four_bar().compile()
    >>> is_explicit(system, ld.assemble(system), [0])
    True
    """
    planner = Planner(system, state, sorted(independent))
    planner.grow()
    return not planner.open_speeds()


class Planner:
    """Joins parts until nothing more is recognised."""

    def __init__(self, system: System, state: State, independent: Sequence[int]):
        self.system, self.independent, self.state = system, independent, state
        self.at = JointGeometry(system, state)
        self.joints = list(system.joints.values())
        self.part = list(range(len(system.bodies)))  # of each body
        self.bodies = {b: [b] for b in self.part}  # of each part
        self.known: set[int] = set()  # coordinates, by number
        self.steps: list[tuple[int, ...]] = []
        self.lists: list[int] = []
        self.sequence: list[ClosedFormGroup | IteratedBlock] = []
        self.count = 0  # of groups
        self.lines: list[Line] = []
        self.numbers = {name: k for k, name in enumerate(system.joints)}
        chosen = set(independent)
        for j in system.joints.values():
            if j.in_tree:
                given = [j.v0 + k in chosen for k in range(len(j.spec.speeds))]
                if all(given):
                    self.known.update(range(j.q0, j.q0 + len(j.spec.coordinates)))
                elif len(j.spec.speeds) == len(j.spec.coordinates):
                    self.known.update(j.q0 + k for k, yes in enumerate(given) if yes)
        self.follow = system.nq - len(system.counted) - len(self.known)

    def grow(self, groups: bool = True) -> None:
        """Join parts as far as possible without iteration."""
        while (
            self._join()
            or self._read()
            or self._linear()
            or (groups and (self._group() or self._wrist() or self._hook() or self._line() or self._torus()))
        ):
            pass

    def plan(self, groups: bool, apart: bool) -> ClosurePlan:
        """All steps; see :func:`plan_closure`."""
        self.grow(groups)
        while self._block(apart):
            self.grow(groups)
        s, labels = self.system, tuple(self.system.speeds[k] for k in self.independent)
        found = tuple(self.sequence), self.follow, tuple(self.joints), tuple(self.steps), tuple(self.lists)
        return ClosurePlan(s, labels, *found, tuple(self.lines))

    def _ends(self, j: JointData) -> tuple[int, int]:
        return self.part[j.parent], self.part[j.child]

    def _coordinates(self, j: JointData) -> range:
        return range(j.q0, j.q0 + len(j.spec.coordinates))

    def _step(self, kind: int, joints: Sequence[int], ends: Sequence[int], group: int, moved: Sequence[int]) -> None:
        """Add a step; `moved` are parts whose bodies move."""
        where = [len(self.lists)]
        for part in moved:
            self.lists += self.bodies[part]
            where.append(len(self.lists))
        row = [kind, *joints, *[0] * (4 - len(joints)), *ends, *[0] * (4 - len(ends)), group]
        self.steps.append((*row, *where, *[where[-1]] * (3 - len(where))))

    def _unite(self, still: int, moved: int) -> None:
        for b in self.bodies[moved]:
            self.part[b] = still
        self.bodies[still] += self.bodies.pop(moved)

    def _still(self, parts: Iterable[int]) -> int:
        """The part that is kept fixed: that of the ground, else the largest."""
        return max(parts, key=lambda p: (p == self.part[0], len(self.bodies[p]), -p))

    def _join(self) -> bool:
        """Join parts by welds and by joints whose coordinates are known."""
        found = False
        for j in self.system.joints.values():
            a, b = self._ends(j)
            weld = not j.spec.coordinates
            if a != b and (weld or (j.in_tree and self.known.issuperset(self._coordinates(j)))):
                end = 0 if self._still((a, b)) == a else 1
                self._step(layout.JOIN, [self.numbers[j.name]], [end], -1, [(b, a)[end]])
                self._unite((a, b)[end], (b, a)[end])
                found = True
        return found

    def _read(self) -> bool:
        """Read the coordinates of a joint of the tree whose bodies are in one part."""
        found = False
        for j in self.system.joints.values():
            a, b = self._ends(j)
            if j.in_tree and a == b and not self.known.issuperset(self._coordinates(j)):
                self._step(layout.READ, [self.numbers[j.name]], [], -1, [])
                self.known.update(self._coordinates(j))
                found = True
        return found

    def _linear(self) -> bool:
        """Find a coordinate that a driver or a linear relation determines."""
        model = self.system.model
        for n, line in enumerate(model.linear):
            entries = range(line[L_FIRST], line[L_FIRST] + line[L_COUNT])
            if line[L_KIND] != COUPLER or any(model.entry[k, E_CUT] >= 0 for k in entries):
                continue
            unknown = [k for k in entries if int(model.entry[k, E_COORDINATE]) not in self.known]
            if len(unknown) == 1 and model.factor[unknown[0]] != 0.0:
                self._step(layout.LINEAR, [n, unknown[0]], [], -1, [])
                self.known.add(int(model.entry[unknown[0], E_COORDINATE]))
                return True
        return False

    # ------------------------------------------------------------------------------------------------ groups

    def _group(self) -> bool:
        for ring in self._rings():
            found = self._rod(ring) or self._sphere(ring) or self._planar(ring) or self._skew(ring)
            if found is not None:
                kind, parts, joints = found
                rod_left = kind in (layout.ROD_PIN, layout.ROD_SLIDE) and not self._spins(joints)
                self._solve(kind, parts, joints, parts[1:2] if rod_left else parts[1:])
                return True
        return self._pair() or self._hinges() or self._level()

    def _spins(self, joints: Sequence[JointData]) -> bool:
        """Whether a rod is held by two balls and its spin, a coordinate of the ball in the tree, is independent."""
        balls = [j for j in joints if j.spec.type == "spherical"]
        chosen = set(self.independent)
        return len(balls) == 2 and any(j.in_tree and any(j.v0 + k in chosen for k in range(3)) for j in balls)

    def _solve(self, kind: int, parts: Sequence[int], joints: Sequence[JointData], moved: Sequence[int]) -> None:
        """Add a group; the first of its parts is fixed, `moved` are placed relative to it."""
        ends = [0 if self.part[j.parent] == first else 1 for j, first in zip(joints, parts, strict=True)]
        bodies, ground = self.system.bodies, self.part[0]
        put = [p for p in (parts[0], *moved) if p != ground] if ground in moved else moved  # what moves against it
        places = tuple(bodies[b] for p in put for b in self.bodies[p] if b < len(bodies))
        names = tuple(j.name for j in joints)
        self._step(kind, [self.numbers[n] for n in names], ends, self.count, moved)
        self.sequence.append(ClosedFormGroup(kind, names, tuple(ends), places))
        self.count += 1
        for p in moved:
            self._unite(parts[0], p)

    def _pair(self) -> bool:
        """Two parts joined by a universal joint and by a ball, or by a hinge whose axis passes through it."""
        hooks = [j for j in self.joints if j.spec.type == "universal"]
        for hook in hooks:
            for other in self.joints:
                ends = set(self._ends(hook))
                if len(ends) == 2 and ends == set(self._ends(other)) and other is not hook:
                    kind = self._kind_of_pair(hook, other)
                    if kind is not None:
                        still = self._still(ends)
                        (moved,) = ends - {still}
                        joints = (hook, other) if kind == layout.POINTED else (other, hook)
                        self._solve(kind, (still, moved), joints, (moved,))
                        return True
        return False

    def _kind_of_pair(self, hook: JointData, other: JointData) -> int | None:
        axes, least = self.at.axes(hook), APART * self.system.size
        arm = self.at.frame(other, 0)[0] - self.at.frame(hook, 0)[0]
        if other.spec.type == "spherical":
            away = min(float(np.linalg.norm(np.cross(x, arm))) for x in axes) > least
            return layout.POINTED if away else None
        if other.spec.type == "revolute":
            n = self.at.axis(other)
            askew = min(float(np.linalg.norm(np.cross(x, n))) for x in axes) > PARALLEL
            return layout.HOOKED if askew and float(np.linalg.norm(np.cross(n, arm))) < least else None
        return None

    def _hinges(self) -> bool:
        """Two parts joined by two hinges whose axes are not parallel: those of a placed universal joint."""
        hinges = [j for j in self.joints if j.spec.type == "revolute" and len(set(self._ends(j))) == 2]
        for k, j1 in enumerate(hinges):
            for j2 in hinges[:k]:
                ends = set(self._ends(j1))
                if ends == set(self._ends(j2)) and self._distance(j1, j2)[1] > PARALLEL:
                    still = self._still(ends)
                    (moved,) = ends - {still}
                    self._solve(layout.HINGES, (still, moved), (j1, j2), (moved,))
                    return True
        return False

    def _distance(self, j1: JointData, j2: JointData) -> tuple[float, float]:
        """Distance of the axes of two hinges, relative to the mechanism's size, and the sine of their angle."""
        N = np.cross(self.at.axis(j1), self.at.axis(j2))
        sine = float(np.linalg.norm(N))
        apart = abs(float((self.at.frame(j2, 0)[0] - self.at.frame(j1, 0)[0]) @ N)) / max(sine, PARALLEL)
        return apart / self.system.size, sine

    def _level(self) -> bool:
        """Four parts in a ring: a hinge, two joints that move in a plane it is not perpendicular to, a ball."""
        return any(self._solve_level(*found) for found in self._rings_of_four())

    def _torus(self) -> bool:
        """Four parts in a ring: a hinge, two skew hinges behind it, a ball.

        A hinge equivalent to two balls comes first: that of a platform, whose leg is then placed.
        """
        rings = sorted(self._rings_of_four(), key=lambda found: found[1].name in self.system.joints)
        return any(self._solve_torus(*found) for found in rings)

    def _rings_of_four(self) -> Iterator[tuple[Sequence[int], JointData, JointData, JointData, JointData]]:
        """Parts and joints of rings of a hinge, two hinges or slides, and a ball, in this order."""
        at: dict[int, list[JointData]] = {}
        for j in self.joints:
            if len(set(self._ends(j))) == 2 and j.spec.type in ("revolute", "prismatic"):
                for part in self._ends(j):
                    at.setdefault(part, []).append(j)
        for ball in self.joints:
            if ball.spec.type != "spherical" or len(set(self._ends(ball))) < 2:
                continue
            for still, last in (self._ends(ball), self._ends(ball)[::-1]):
                for second in at.get(last, []):
                    (middle,) = set(self._ends(second)) - {last}
                    for first in at.get(middle, []):
                        (moved,) = set(self._ends(first)) - {middle}
                        for hinge in at.get(moved, []):
                            parts = still, moved, middle, last
                            ring = set(self._ends(hinge)) == {still, moved} and len(set(parts)) == 4
                            if ring and hinge.spec.type == "revolute":
                                yield parts, hinge, first, second, ball

    def _solve_level(
        self, parts: Sequence[int], hinge: JointData, first: JointData, second: JointData, ball: JointData
    ) -> bool:
        hard = [j for j in (first, second) if j.spec.type == "revolute"]
        slides = [j for j in (first, second) if j.spec.type == "prismatic"]
        if not hard or not self.at.in_plane(hard, slides, []):
            return False
        n1, n2 = self.at.axis(hinge), self.at.axis(hard[0])
        arm = self.at.frame(ball, 0)[0] - self.at.frame(hinge, 0)[0]
        far = min(float(np.linalg.norm(np.cross(n, arm))) for n in (n1, n2)) > APART * self.system.size
        if not far or float(np.linalg.norm(np.cross(n1, n2))) < PARALLEL:
            return False
        still, moved, _, last = parts
        self._attach_in_series(parts, (hinge, first, second))
        self._solve(layout.LEVEL, (still, moved, last), (hinge, hard[0], ball), (moved,))
        return True

    def _attach_in_series(self, parts: Sequence[int], joints: Sequence[JointData]) -> None:
        """Attach parts in series, with the joints at their zeros."""
        for j, held, attached in zip(joints, parts[:-1], parts[1:], strict=True):
            self._step(layout.HANG, [self.numbers[j.name]], [0 if self.part[j.parent] == held else 1], -1, [attached])

    def _solve_torus(
        self, parts: Sequence[int], hinge: JointData, first: JointData, second: JointData, ball: JointData
    ) -> bool:
        """Add the group of `_torus`; one of the three hinges has a coordinate, which distinguishes the roots."""
        hinges, centre = (hinge, first, second), self.at.frame(ball, 0)[0]
        if any(j.spec.type != "revolute" for j in hinges) or not any(j.in_tree for j in hinges):
            return False
        arms = [float(np.linalg.norm(np.cross(self.at.axis(j), centre - self.at.frame(j, 0)[0]))) for j in hinges]
        if min(arms) < APART * self.system.size or not self._is_skew(first, second):
            return False
        self._attach_in_series(parts, hinges)
        self._solve(layout.TORUS, parts, (*hinges, ball), parts[1:2])
        return True

    def _is_skew(self, j1: JointData, j2: JointData) -> bool:
        """Whether the axes of two hinges neither intersect nor are parallel."""
        apart, sine = self._distance(j1, j2)
        return apart > APART and sine > PARALLEL

    def _skew(self, ring: Ring) -> tuple[int, tuple[int, int, int], Ring] | None:
        """Kind, parts and joints in order of a ring of two skew hinges and a ball."""
        balls = [j for j in ring if j.spec.type == "spherical"]
        hinges = [j for j in ring if j.spec.type == "revolute"]
        if len(balls) != 1 or len(hinges) != 2 or not self._is_skew(*hinges):
            return None
        (middle,) = set(self._ends(hinges[0])) & set(self._ends(hinges[1]))
        still = self._still(self._ends(balls[0]))
        (last,) = set(self._ends(balls[0])) - {still}
        j1, j2 = hinges if still in self._ends(hinges[0]) else hinges[::-1]
        away = np.cross(self.at.axis(j1), self.at.frame(balls[0], 0)[0] - self.at.frame(j1, 0)[0])
        if float(np.linalg.norm(away)) < APART * self.system.size:
            return None
        return layout.SKEW, (still, middle, last), (j1, j2, balls[0])

    def _line(self) -> bool:
        """Two balls between the same two parts: a hinge along the line through them."""
        between: dict[frozenset[int], list[JointData]] = {}
        for j in self.joints:
            if j.spec.type == "spherical" and len(set(self._ends(j))) == 2:
                between.setdefault(frozenset(self._ends(j)), []).append(j)
        for parts, (j1, *others) in between.items():
            for j2 in others:
                name, still = f"{j1.name}+{j2.name}", self._still(parts)
                apart = float(np.linalg.norm(self.at.frame(j2, 0)[0] - self.at.frame(j1, 0)[0]))
                if name not in self.numbers and apart > APART * self.system.size:
                    (other,) = parts - {still}
                    self._add_line(name, j1, j2, still, other)
                    return True
        return False

    def _add_line(self, name: str, j1: JointData, j2: JointData, still: int, other: int) -> None:
        e1, e2 = (0 if self.part[j.parent] == still else 1 for j in (j1, j2))
        frames = len(self.part), len(self.part) + 1  # as bodies of the two parts
        self._step(layout.LINE, [self.numbers[j1.name], self.numbers[j2.name], *frames], [e1, e2], -1, [])
        self.lines.append((j1, j2, e1, e2))
        self.at.add_line(self.lines[-1])
        for part, frame in zip((still, other), frames, strict=True):
            self.part.append(part)
            self.bodies[part].append(frame)
        self.numbers[name] = len(self.joints)
        here = np.zeros(3), np.eye(3)
        hinge = JointData(name, Revolute(axis=(0, 0, 1)), *frames, here, here, (0.0, 0.0), np.zeros(0))
        self.joints.append(hinge)

    def _wrist(self) -> bool:
        """Three hinges in series with intersecting axes, between parts with no other joints: equivalent to a ball."""
        at = self._joints_at()
        for j2 in self._own():
            x, y = self._ends(j2)
            if x == y or any(len(at[p]) != 2 or p == self.part[0] for p in (x, y)):
                continue
            (j1,), (j3,) = ([j for j in at[p] if j is not j2] for p in (x, y))
            hinges, name = (j1, j2, j3), f"{j1.name}+{j2.name}+{j3.name}"
            if j1 is j3 or name in self.numbers or any(j.spec.type != "revolute" for j in hinges):
                continue
            point = self.at.meet(hinges)
            if point is not None:
                self._stand_for(name, Spherical(), self._far(j1, x), self._far(j3, y), point, None, (0.0, 0.0))
                return True
        return False

    def _hook(self) -> bool:
        """Two hinges in series with intersecting axes, at a part without other joints: a universal joint."""
        for middle, joints in self._joints_at().items():
            if len(joints) != 2 or middle == self.part[0] or any(j.spec.type != "revolute" for j in joints):
                continue
            j1, j2 = joints
            name, point = f"{j1.name}+{j2.name}", self.at.meet(joints)
            ends = self._far(j1, middle), self._far(j2, middle)
            if name in self.numbers or point is None or self.part[ends[0]] == self.part[ends[1]]:
                continue
            first, second = self.at.axis(j1), self.at.axis(j2)
            normal = np.cross(first, second)
            z = normal / np.linalg.norm(normal)
            axes = np.column_stack([first, np.cross(z, first), z])
            par = float(first @ second), float(np.linalg.norm(normal))
            self._stand_for(name, Universal(axis1=(1, 0, 0), axis2=(0, 1, 0)), *ends, point, axes, par)
            return True
        return False

    def _own(self) -> list[JointData]:
        """Joints of the system."""
        return self.joints[: len(self.system.joints)]

    def _joints_at(self) -> dict[int, list[JointData]]:
        """Joints of the system that join a part to others, by part."""
        at: dict[int, list[JointData]] = {}
        for j in self._own():
            a, b = self._ends(j)
            if a != b:
                at.setdefault(a, []).append(j)
                at.setdefault(b, []).append(j)
        return at

    def _far(self, j: JointData, part: int) -> int:
        """The body of a joint that is not in a part."""
        return j.parent if self.part[j.child] == part else j.child

    def _stand_for(
        self, name: str, spec: Joint, first: int, last: int, point: Array, axes: Array | None, par: tuple[float, float]
    ) -> None:
        """Add a joint between two bodies that is equivalent to the hinges between them."""
        self.numbers[name] = len(self.joints)
        F, M = self.at.seen_from(first, point, axes), self.at.seen_from(last, point, axes)
        self.joints.append(JointData(name, spec, first, last, F, M, par, np.zeros(0)))

    def _rings(self) -> Iterator[Ring]:
        """Three joints that join three parts in a ring."""
        at: dict[int, list[JointData]] = {}
        between: dict[frozenset[int], list[JointData]] = {}
        for j in self.joints:
            a, b = self._ends(j)
            if a != b and j.spec.type in ("revolute", "prismatic", *SOFT):
                between.setdefault(frozenset((a, b)), []).append(j)
                at.setdefault(a, []).append(j)
                at.setdefault(b, []).append(j)
        for (a, b), joints in ((sorted(pair), found) for pair, found in between.items()):
            for j1 in joints:
                for j2 in at[b]:
                    c = next(p for p in self._ends(j2) if p != b)
                    if c > b and c != a:
                        for j3 in between.get(frozenset((c, a)), []):
                            yield j1, j2, j3

    def _rod(self, ring: Ring) -> tuple[int, tuple[int, int, int], Ring] | None:
        """Kind, parts and joints in order of a pin or slide with a rod between two balls, or ball and universal."""
        balls = [j for j in ring if j.spec.type in BALLS]
        others = [j for j in ring if j.spec.type in ("revolute", "prismatic")]
        hooked = sum(j.spec.type == "universal" for j in balls)
        if len(balls) != 2 or len(others) != 1 or hooked > 1:
            return None
        (j1,) = others
        (rod,) = set(self._ends(balls[0])) & set(self._ends(balls[1]))
        still = self._still(self._ends(j1))
        (moved,) = set(self._ends(j1)) - {still}
        j2, j3 = balls if moved in self._ends(balls[0]) else balls[::-1]
        kind = layout.ROD_PIN if j1.spec.type == "revolute" else layout.ROD_SLIDE
        if kind == layout.ROD_PIN:
            a, n = self.at.frame(j1, 0)[0], self.at.axis(j1)
            arms = [np.linalg.norm(np.cross(n, self.at.frame(j, 0)[0] - a)) for j in balls]
            if min(arms) < APART * self.system.size:
                return None
        return kind, (still, moved, rod), (j1, j2, j3)

    def _sphere(self, ring: Ring) -> tuple[int, tuple[int, int, int], Ring] | None:
        """Kind, parts and joints in order of a ring of three hinges whose axes meet in a point."""
        if any(j.spec.type != "revolute" for j in ring) or self.at.meet(ring) is None:
            return None
        j1, j2, j3 = ring
        still = self._still(part for j in ring for part in self._ends(j))
        while still in self._ends(j2):
            j1, j2, j3 = j2, j3, j1
        (x,) = set(self._ends(j1)) & set(self._ends(j2))
        (y,) = set(self._ends(j2)) & set(self._ends(j3))
        return layout.SPHERE, (still, x, y), (j1, j2, j3)

    def _planar(self, ring: Ring) -> tuple[int, tuple[int, int, int], Ring] | None:
        """Kind, parts (the first one is fixed) and joints in order, if the ring moves in a plane."""
        slides = [j for j in ring if j.spec.type == "prismatic"]
        soft = [j for j in ring if j.spec.type in SOFT]
        hard = [j for j in ring if j.spec.type == "revolute"]
        if len(slides) > 2 or len(soft) > 1 or not self.at.in_plane(hard, slides, soft):
            return None
        kind = (layout.PINS, layout.SLIDE, layout.SLIDES)[len(slides)]
        best = None
        for j1, j2, j3 in permutations(ring):
            (p,) = set(self._ends(j3)) & set(self._ends(j1))
            (x,) = set(self._ends(j1)) & set(self._ends(j2))
            (y,) = set(self._ends(j2)) & set(self._ends(j3))
            right = {
                layout.PINS: j1 not in soft and j3 not in soft,
                layout.SLIDE: j3 in slides and j1 not in soft,
                layout.SLIDES: j1 not in slides,
            }[kind]
            if right:
                rank = (self._still((p, x, y)) == p, -self.numbers[j1.name])
                if best is None or rank > best[0]:
                    best = rank, (p, x, y), (j1, j2, j3)
        if best is None or not self.at.apart(kind, best[2]):
            return None
        return kind, best[1], best[2]

    # ------------------------------------------------------------------------------------------------ blocks

    def _block(self, apart: bool) -> bool:
        """Next coordinates to be iterated: the fewest constraints that determine all coordinates they depend on."""
        speeds = self.open_speeds()
        if not speeds:
            return False
        J, entries = self._jacobian
        units: dict[str, list[int]] = {}
        for row, name in enumerate(self.system.row_elements):
            if entries[row, speeds].any():
                units.setdefault(name, []).append(row)
        depends = {name: frozenset(k for k in speeds if entries[rows, k].any()) for name, rows in units.items()}
        for names in together(depends) if apart else ():
            rows = [row for name in names for row in units[name]]
            columns = sorted({k for name in names for k in depends[name]})
            if len(rows) >= len(columns) and of_matrix(J[rows][:, columns]).count == len(columns):
                self._iterate(names, columns, rows)
                return True
        self._iterate(list(units), speeds, [row for rows in units.values() for row in rows])
        return True

    def open_speeds(self) -> list[int]:
        """Speeds whose coordinates are not known yet; for a ball those that are not independent."""
        found: list[int] = []
        for j in self.system.joints.values():
            if j.in_tree and not self.known.issuperset(self._coordinates(j)):
                scalar = len(j.spec.speeds) == len(j.spec.coordinates)
                found += [
                    j.v0 + k
                    for k in range(len(j.spec.speeds))
                    if (j.q0 + k not in self.known if scalar else j.v0 + k not in self.independent)
                ]
        return sorted(found)

    @cached_property
    def _jacobian(self) -> tuple[Array, NDArray[np.bool_]]:
        """Jacobian in natural units at the state, and which of its entries are not always zero."""
        s, rng = self.system, np.random.default_rng(0)
        aside = increment(s, self.state.q, BESIDE * rng.uniform(-1.0, 1.0, s.nv) * s.speed_units)
        poses = [State(self.state.t, q, np.zeros(s.nv)) for q in (self.state.q, aside)]
        J, nearby = (scaled(s, constraint_equations(s, pose)[1]) for pose in poses)
        return J, np.maximum(np.abs(J), np.abs(nearby)) > PLACES

    def _iterate(self, names: Sequence[str], speeds: Sequence[int], rows: Sequence[int]) -> None:
        s, chosen, labels = self.system, set(speeds) | set(self.independent), []
        for j in s.joints.values():
            if j.in_tree and any(j.v0 + k in set(speeds) for k in range(len(j.spec.speeds))):
                scalar = len(j.spec.speeds) == len(j.spec.coordinates)
                solved = [q for k, q in enumerate(self._coordinates(j)) if not scalar or j.v0 + k in chosen]
                labels += [s.coordinates[q] for q in solved if q not in self.known]
                self.known.update(solved)
        start = len(self.lists)
        self.lists += [*speeds, *rows]
        where = start, start + len(speeds), len(self.lists)
        self.steps.append((layout.ITERATE, *where, *[0] * (layout.N_STEP - 4)))
        self.sequence.append(IteratedBlock(tuple(labels), tuple(names), tuple(speeds), tuple(rows)))
