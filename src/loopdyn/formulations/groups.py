"""The planner of `closure`: in which order parts of a mechanism are joined, and which groups are solved on the way.

Bodies are put together into parts (see :mod:`loopdyn.formulations.closing`): by welds and by joints whose coordinates
are known, then by groups of three joints in a ring whose axes make them planar, until nothing is left or nothing more
is recognised. Loops need not be given: any ring of three parts will do, so that loops are solved in the order in which
they can be (six-bars of Watt and Stephenson, block triangular). What is left is iterated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from loopdyn.formulations import closing
from loopdyn.records import E_COORDINATE, E_CUT, L_COUNT, L_FIRST, L_KIND, LINEAR
from loopdyn.system import JointData, State, System
from loopdyn.tree import Motion, body_motion

Array = NDArray[np.float64]

PARALLEL = 1e-9  # sine of the angle between axes that count as parallel, or cosine of perpendicular ones
APART = 1e-9  # distance, in sizes of the mechanism, of pins that are not on one line
# Joints that may be one of the pins of a group: the other two joints keep the parts in their plane.
SOFT = ("spherical", "universal", "cylindrical")
WORDS = {
    closing.PINS: "three pins (RRR)",
    closing.SLIDE: "two pins and a slide (RRP)",
    closing.SLIDES: "a pin and two slides (RPP)",
    closing.ROD_PIN: "a pin and a rod with two balls (RSS)",
    closing.ROD_SLIDE: "a slide and a rod with two balls (PSS)",
}
Ring = tuple[JointData, JointData, JointData]


@dataclass(frozen=True)
class Group:
    """Three joints in a ring, solved in closed form.

    Attributes
    ----------
    kind : int
        What is solved: PINS, SLIDE, SLIDES, ROD_PIN, ROD_SLIDE of :mod:`loopdyn.formulations.closing`.
    joints : tuple of str
        From the part that stands still to the first one that moves, on to the second, and back.
    ends : tuple of int
        Of each joint, which end (0 parent, 1 child) is on the part that comes first.
    places : tuple of str
        Bodies that get their places by it.
    """

    kind: int
    joints: tuple[str, str, str]
    ends: tuple[int, int, int]
    places: tuple[str, ...]

    @property
    def name(self) -> str:
        """Its joints."""
        return "-".join(self.joints)

    @property
    def branches(self) -> int:
        """How many closures it has."""
        return 1 if self.kind == closing.SLIDES else 2

    def __str__(self) -> str:
        return f"{self.name}: {WORDS[self.kind]}, places {', '.join(self.places)}"


@dataclass(frozen=True)
class Plan:
    """How dependent coordinates follow from independent ones.

    Attributes
    ----------
    independent : tuple of str
        Speeds, and the coordinates that belong to them, that are given.
    groups : tuple of Group
        Solved explicitly, in this order.
    iterated : tuple of str
        Coordinates that are found by Newton's method.
    """

    system: System
    independent: tuple[str, ...]
    groups: tuple[Group, ...]
    iterated: tuple[str, ...]
    steps: tuple[tuple[int, ...], ...] = field(repr=False)
    lists: tuple[int, ...] = field(repr=False)

    @property
    def explicit(self) -> bool:
        """Whether nothing is iterated."""
        return not self.iterated

    def __str__(self) -> str:
        s = self.system
        known = [len(j.spec.coordinates) for j in s.joints.values() if j.in_tree]
        dependent = sum(known) - len(self.independent)
        title = f"closure: {', '.join(self.independent) or 'nothing'} independent, {dependent} coordinates follow"
        lines = [f"{title}, {'all in closed form' if self.explicit else f'{len(self.iterated)} of them iterated'}"]
        lines += [f"  {k}. {group}" for k, group in enumerate(self.groups, 1)]
        if self.iterated:
            lines.append(f"  iterated: {', '.join(self.iterated)}")
        return "\n".join(lines)

    def numbers(self, floats: int, work: int) -> tuple[NDArray[np.int64], Array, int]:
        """Ints and floats for the kernels, and the length of their work; floats and work begin at these places."""
        s = self.system
        joints = list(s.joints.values())
        header = np.zeros(closing.C_SIZE, np.int64)
        counts = (closing.C_STEPS, closing.C_BODIES, closing.C_JOINTS, closing.C_GROUPS, closing.C_LISTS)
        header[list(counts)] = len(self.steps), len(s.bodies), len(joints), len(self.groups), len(self.lists)
        header[[closing.C_FLOATS, closing.C_WORK]] = floats, work
        table = [[j.spec.kind, j.parent, j.child, j.q0] for j in joints]
        frames = [np.concatenate([j.F[0], j.F[1].ravel(), j.M[0], j.M[1].ravel(), j.par]) for j in joints]
        parts = [header, np.array(self.steps, np.int64).ravel(), np.array(table, np.int64).ravel(), self.lists]
        ints = np.concatenate([np.asarray(p, np.int64) for p in parts])
        length = len(s.bodies) * closing.N_POSE + len(self.groups) + closing.N_OWN_NOTES
        return ints, np.concatenate([*frames, np.ones(len(self.groups))]), length

    def signs(self, state: State) -> Array:
        """Which closure of each group the pose of a state is: the sign of the group's determinant there."""
        at = _Places(self.system, state)
        return np.array([at.sign(g) for g in self.groups])


def make_plan(system: System, state: State, independent: Iterable[int], groups: bool = True) -> Plan:
    """The order of steps for independent speeds (by number); axes are compared at a closed state.

    Examples
    --------
    >>> import loopdyn as ld
    >>> system = ld.library.four_bar().compile()
    >>> print(make_plan(system, ld.assemble(system), [0]))
    closure: A independent, 2 coordinates follow, all in closed form
      1. B-C-D: three pins (RRR), places coupler, rocker
    """
    return _Planner(system, state, sorted(independent)).plan(groups)


# ------------------------------------------------------------------------------------------------- geometry


class _Places:
    """Points and axes of joints at a pose, in world axes."""

    def __init__(self, system: System, state: State):
        self.system = system
        self.motion: Motion = body_motion(system, State(state.t, state.q, np.zeros(system.nv)))

    def frame(self, j: JointData, end: int) -> tuple[Array, Array]:
        """Origin and axes (columns) of the frame of a joint on its parent (0) or child (1)."""
        body, (p, R) = ((j.parent, j.F), (j.child, j.M))[end]
        x, A = self.motion.position[body], self.motion.rotation[body]
        return x + A @ p, A @ R

    def axis(self, j: JointData) -> Array:
        return self.frame(j, 0)[1][:, 2]

    def sign(self, g: Group) -> float:
        j1, j2, j3 = (self.system.joints[name] for name in g.joints)
        a, A = self.frame(j1, g.ends[0])
        b, _ = self.frame(j2, 0)
        if g.kind == closing.PINS:
            c, _ = self.frame(j3, 0)
            determinant = A[:, 2] @ np.cross(b - a, c - b)
        elif g.kind == closing.ROD_PIN:
            c, _ = self.frame(j3, 0)
            determinant = A[:, 2] @ np.cross(b - a, c - a)
        elif g.kind == closing.ROD_SLIDE:
            c, _ = self.frame(j3, 0)
            determinant = (b - c) @ A[:, 2] * (1.0 if g.ends[0] == 0 else -1.0)
        elif g.kind == closing.SLIDE:
            still = 1 - g.ends[2]
            along = self.frame(j3, still)[1][:, 2] * (1.0 if still == 0 else -1.0)
            determinant = (b - a) @ along
        else:
            return 1.0
        return 1.0 if determinant >= 0.0 else -1.0


# -------------------------------------------------------------------------------------------------- planning


class _Planner:
    """Grows parts until nothing more is recognised."""

    def __init__(self, system: System, state: State, independent: Sequence[int]):
        self.system, self.independent = system, independent
        self.at = _Places(system, state)
        self.part = list(range(len(system.bodies)))  # of each body
        self.bodies = {b: [b] for b in self.part}  # of each part
        self.known: set[int] = set()  # coordinates, by number
        self.done: set[str] = set()  # joints that have been used
        self.steps: list[tuple[int, ...]] = []
        self.lists: list[int] = []
        self.groups: list[Group] = []
        self.numbers = {name: k for k, name in enumerate(system.joints)}
        chosen = set(independent)
        for j in system.joints.values():
            if j.in_tree:
                given = [j.v0 + k in chosen for k in range(len(j.spec.speeds))]
                if all(given):
                    self.known.update(range(j.q0, j.q0 + len(j.spec.coordinates)))
                elif len(j.spec.speeds) == len(j.spec.coordinates):
                    self.known.update(j.q0 + k for k, yes in enumerate(given) if yes)

    def plan(self, groups: bool) -> Plan:
        while self._join() or self._read() or self._linear() or (groups and self._group()):
            pass
        s = self.system
        left = tuple(label for k, label in enumerate(s.coordinates) if k not in self.known)
        labels = tuple(s.speeds[k] for k in self.independent)
        return Plan(s, labels, tuple(self.groups), left, tuple(self.steps), tuple(self.lists))

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
        row = [kind, *joints, *[0] * (3 - len(joints)), *ends, *[0] * (3 - len(ends)), group]
        self.steps.append((*row, *where, *[where[-1]] * (3 - len(where))))

    def _unite(self, still: int, moved: int) -> None:
        for b in self.bodies[moved]:
            self.part[b] = still
        self.bodies[still] += self.bodies.pop(moved)

    def _still(self, parts: Iterable[int]) -> int:
        """Of some parts the one that stands still: that of the ground, else the largest."""
        return max(parts, key=lambda p: (p == self.part[0], len(self.bodies[p]), -p))

    def _join(self) -> bool:
        """Join two parts by a weld or by a joint whose coordinates are known."""
        for j in self.system.joints.values():
            a, b = self._ends(j)
            weld = not j.spec.coordinates
            if a != b and (weld or (j.in_tree and self.known.issuperset(self._coordinates(j)))):
                end = 0 if self._still((a, b)) == a else 1
                self._step(closing.JOIN, [self.numbers[j.name]], [end], -1, [(b, a)[end]])
                self._unite((a, b)[end], (b, a)[end])
                return True
        return False

    def _read(self) -> bool:
        """Read the coordinates of a joint of the tree whose bodies are in one part."""
        found = False
        for j in self.system.joints.values():
            a, b = self._ends(j)
            if j.in_tree and a == b and not self.known.issuperset(self._coordinates(j)):
                self._step(closing.READ, [self.numbers[j.name]], [], -1, [])
                self.known.update(self._coordinates(j))
                found = True
        return found

    def _linear(self) -> bool:
        """A coordinate that a driver or a linear relation gives."""
        model = self.system.model
        for n, line in enumerate(model.linear):
            entries = range(line[L_FIRST], line[L_FIRST] + line[L_COUNT])
            if line[L_KIND] != LINEAR or any(model.entry[k, E_CUT] >= 0 for k in entries):
                continue
            unknown = [k for k in entries if int(model.entry[k, E_COORDINATE]) not in self.known]
            if len(unknown) == 1 and model.factor[unknown[0]] != 0.0:
                self._step(closing.LINEAR, [n, unknown[0]], [], -1, [])
                self.known.add(int(model.entry[unknown[0], E_COORDINATE]))
                return True
        return False

    # ------------------------------------------------------------------------------------------------ groups

    def _group(self) -> bool:
        for ring in self._rings():
            found = self._rod(ring) or self._planar(ring)
            if found is not None:
                kind, parts, joints = found
                ends = []
                for j, first in zip(joints, parts, strict=True):
                    ends.append(0 if self.part[j.parent] == first else 1)
                places = tuple(self.system.bodies[b] for p in parts[1:] for b in self.bodies[p])
                names = tuple(j.name for j in joints)
                self._step(kind, [self.numbers[n] for n in names], ends, len(self.groups), parts[1:])
                self.groups.append(Group(kind, names, tuple(ends), places))  # type: ignore[arg-type]
                for p in parts[1:]:
                    self._unite(parts[0], p)
                return True
        return False

    def _rings(self) -> Iterator[Ring]:
        """Three joints that join three parts in a ring."""
        at: dict[int, list[JointData]] = {}
        between: dict[frozenset[int], list[JointData]] = {}
        for j in self.system.joints.values():
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
        """The same for a pin or a slide that a rod with two balls closes; one of the balls is in the tree."""
        balls = [j for j in ring if j.spec.type == "spherical"]
        others = [j for j in ring if j.spec.type in ("revolute", "prismatic")]
        if len(balls) != 2 or len(others) != 1 or not any(j.in_tree for j in balls):
            return None
        (j1,) = others
        (rod,) = set(self._ends(balls[0])) & set(self._ends(balls[1]))
        still = self._still(self._ends(j1))
        (moved,) = set(self._ends(j1)) - {still}
        j2, j3 = balls if moved in self._ends(balls[0]) else balls[::-1]
        kind = closing.ROD_PIN if j1.spec.type == "revolute" else closing.ROD_SLIDE
        if kind == closing.ROD_PIN:
            a, n = self.at.frame(j1, 0)[0], self.at.axis(j1)
            arms = [np.linalg.norm(np.cross(n, self.at.frame(j, 0)[0] - a)) for j in balls]
            if min(arms) < APART * self.system.size:
                return None
        return kind, (still, moved, rod), (j1, j2, j3)

    def _planar(self, ring: Ring) -> tuple[int, tuple[int, int, int], Ring] | None:
        """Kind, parts (the first one stands still) and joints in order, if the ring moves in a plane."""
        slides = [j for j in ring if j.spec.type == "prismatic"]
        soft = [j for j in ring if j.spec.type in SOFT]
        hard = [j for j in ring if j.spec.type == "revolute"]
        if len(slides) > 2 or len(soft) > 1 or not self._in_plane(hard, slides, soft):
            return None
        kind = (closing.PINS, closing.SLIDE, closing.SLIDES)[len(slides)]
        best = None
        for j1, j2, j3 in permutations(ring):
            (p,) = set(self._ends(j3)) & set(self._ends(j1))
            (x,) = set(self._ends(j1)) & set(self._ends(j2))
            (y,) = set(self._ends(j2)) & set(self._ends(j3))
            right = {
                closing.PINS: j1 not in soft and j3 not in soft,
                closing.SLIDE: j3 in slides and j1 not in soft,
                closing.SLIDES: j1 not in slides,
            }[kind]
            if right:
                rank = (self._still((p, x, y)) == p, -self.numbers[j1.name])
                if best is None or rank > best[0]:
                    best = rank, (p, x, y), (j1, j2, j3)
        if best is None or not self._apart(kind, best[2]):
            return None
        return kind, best[1], best[2]

    def _in_plane(self, hard: list[JointData], slides: list[JointData], soft: list[JointData]) -> bool:
        """Whether pins are parallel, and slides perpendicular to them."""
        axes = [self.at.axis(j) for j in hard]
        ways = [self.at.axis(j) for j in slides]
        if axes:
            n = axes[0]
        elif len(ways) == 2:
            n = np.cross(ways[0], ways[1])
            n = n / max(float(np.linalg.norm(n)), PARALLEL)
        else:
            return False
        axes += [self.at.axis(j) for j in soft if j.spec.type == "cylindrical"]
        parallel = all(np.linalg.norm(np.cross(n, a)) < PARALLEL for a in axes)
        return parallel and all(abs(n @ e) < PARALLEL for e in ways)

    def _apart(self, kind: int, joints: Ring) -> bool:
        """Whether pins are not on one line, nor slides parallel."""
        if kind == closing.SLIDES:
            return float(np.linalg.norm(np.cross(self.at.axis(joints[1]), self.at.axis(joints[2])))) > PARALLEL
        n = self.at.axis(joints[0])
        pins = [self.at.frame(j, 0)[0] for j in (joints if kind == closing.PINS else joints[:2])]
        least = APART * self.system.size
        return all(float(np.linalg.norm(np.cross(n, p - q))) > least for i, p in enumerate(pins) for q in pins[:i])
