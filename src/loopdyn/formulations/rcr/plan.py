"""The plan of `Rcr`: groups of loops, their bases, the order in which loops are closed, and the dependent speeds.

An *element* closes loops: a cut joint, a constraint between two bodies, or a relation between coordinates. It binds the
tree joints on its loop. Elements that share tree joints are coupled and make a *group*, whose joints are a
connected part of the tree; the body that carries it is its *base*, ground or any other body. Groups that share only a
body are solved separately: a group carried by a body of another is first reduced to inertia and force of that body.

Inside a group the elements are closed one after another, always one with the fewest unknown speeds next: as many of
these as its rows determine are *dependent*, the others *tentative*, and its remaining rows are put aside. For the cells
of a ladder this is the order of the paper, on any tree. Rows put aside constrain tentative speeds alone; as many of
them as the rank requires determine as many tentative speeds, which are solved for together at the end: the aggregate
part of a group, dense in the number of tentative speeds, its *width*. Everything else is linear in the number of
bodies.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import scipy
from numpy.typing import NDArray

from loopdyn.engine import records as rec
from loopdyn.formulations.partition import criteria
from loopdyn.system.system import System
from loopdyn.thresholds import CANDIDATE

Array = NDArray[np.float64]

# Fraction of the largest pivot of an element, in natural units, below which the speed becomes tentative instead of
# dependent and the row is put aside. Both are exact; dividing by small pivots loses digits.
SMALL_PIVOT = 1e-3


@dataclass(frozen=True)
class Part:
    """A pair of bodies on which rows of an element act, and the tree joints between them, by the bodies they carry.

    `entry` is the entry of the relation it belongs to, -1 for a cut joint.
    """

    cut: int
    entry: int
    child: int
    parent: int
    child_side: tuple[int, ...]  # from the child inward, to the body where both sides meet
    parent_side: tuple[int, ...]


@dataclass(frozen=True)
class LoopElement:
    """Rows that are closed together, the bodies they act on, and the speeds they bind."""

    name: str
    rows: tuple[int, ...]
    parts: tuple[Part, ...]
    direct: tuple[tuple[int, int], ...]  # entry and speed, if a relation acts on a tree coordinate
    joints: tuple[int, ...]  # tree joints of its group, by body
    base: int  # the body that carries them
    linear: int = -1


@dataclass(frozen=True)
class Cell:
    """An element in its group, with the speeds that follow from some of its rows; if none do, its rows close last.

    `sides` are, for each part, the tree joints whose speeds enter (body, sign) and the two bodies, or -1, whose motion
    is known when the cell is closed and enters as a whole.
    """

    element: int
    rows: tuple[int, ...]
    dependent: tuple[int, ...]
    sides: tuple[tuple[tuple[tuple[int, int], ...], int, int], ...]


@dataclass(frozen=True)
class CoupledGroup:
    """Coupled loops on one base.

    `steps` in the order of evaluation: a body (not negative) whose motion relative to the base is then known, or cell
    ``-1 - step``. `tentative` has the independent speeds first; the last ones follow from the `closing` cells.
    """

    base: int  # -1 for ground and bases with given motion
    bodies: tuple[int, ...]
    steps: tuple[int, ...]
    closing: tuple[int, ...]
    tentative: tuple[int, ...]
    followers: int  # number of tentative speeds that follow at the end

    @property
    def freedoms(self) -> int:
        """Independent speeds."""
        return len(self.tentative) - self.followers


@dataclass(frozen=True)
class ReductionPlan:
    """Groups and cells of a system at one state; see the docstring of the module."""

    system: System
    elements: tuple[LoopElement, ...] = field(repr=False)
    cells: tuple[Cell, ...]
    groups: tuple[CoupledGroup, ...]

    @property
    def width(self) -> int:
        """Width of the widest group."""
        return max((len(g.tentative) for g in self.groups), default=0)

    @cached_property
    def independent(self) -> tuple[int, ...]:
        """Independent speeds, including those outside of all loops, ascending."""
        dependent = {k for c in self.cells for k in c.dependent}
        for g in self.groups:
            dependent |= set(g.tentative[g.freedoms :])
        return tuple(k for k in range(self.system.nv) if k not in dependent)

    @property
    def rows_kept(self) -> int:
        """Number of rows that determine speeds."""
        return sum(len(c.rows) for c in self.cells)

    def __str__(self) -> str:
        s = self.system
        names = s.speeds
        lines = [
            f"rcr: {len(self.independent)} of {s.nv} speeds independent; {self.rows_kept} of {s.nc} rows kept; "
            f"{_counted(len(self.groups), 'group')} of loops, {s.nb - sum(len(g.bodies) for g in self.groups)} bodies "
            "outside of loops"
        ]
        for n, g in enumerate(self.groups[:MANY], 1):
            base = s.bodies[g.base] if g.base >= 0 else " and ".join(s.topology.bases)
            first = ", ".join(names[k] for k in g.tentative[: g.freedoms]) or "none"
            lines.append(f"  {n}. on {base}: {_counted(len(g.bodies), 'body')}, independent: {first}")
            cells = [self.cells[-1 - x] for x in g.steps if x < 0]
            for c in cells[:MANY]:
                following = ", ".join(names[k] for k in c.dependent)
                lines.append(f"     {self.elements[c.element].name}: {following} by {len(c.rows)} of "
                             f"{len(self.elements[c.element].rows)} rows")  # fmt: skip
            if len(cells) > MANY:
                lines.append(f"     ... and {len(cells) - MANY} more cells")
            if g.followers:
                together = ", ".join(names[k] for k in g.tentative[g.freedoms :])
                by = ", ".join(dict.fromkeys(self.elements[self.cells[c].element].name for c in g.closing))
                lines.append(f"     together: {together} by rows of {by}; width {len(g.tentative)}")
        if len(self.groups) > MANY:
            lines.append(f"  ... and {len(self.groups) - MANY} more groups")
        return "\n".join(lines)


MANY = 6  # groups, and cells of a group, that are written out


def _counted(n: int, noun: str) -> str:
    plural = noun[:-1] + "ies" if noun.endswith("y") else noun + "s"
    return f"{n} {noun if n == 1 else plural}"


# ------------------------------------------------------------------------------------------- what closes loops


class Tree:
    """The spanning tree with all bases taken as one root."""

    def __init__(self, system: System):
        table, self.n_bases = system.model.tree, system.n_bases
        self.parent = [-1] * self.n_bases + [int(p) for p in table[self.n_bases :, rec.PARENT]]
        self.first = [int(k) for k in table[:, rec.V0]]
        self.count = [0] * self.n_bases + [int(n) for n in table[self.n_bases :, rec.NV]]
        self.depth = [0] * len(table)
        for b in range(self.n_bases, len(table)):
            self.depth[b] = self.depth[self.parent[b]] + 1
        self.body = np.repeat(np.arange(len(table)), self.count).tolist()  # by speed

    def root(self, b: int) -> int:
        """The body, or 0 for any base."""
        return b if b >= self.n_bases else 0

    def speeds(self, b: int) -> range:
        """Speeds of the joint that carries a body."""
        return range(self.first[b], self.first[b] + self.count[b])

    def ways(self, a: int, b: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Paths from two bodies inward to the body where they meet, without that body."""
        up: tuple[list[int], list[int]] = ([], [])
        a, b = self.root(a), self.root(b)
        while a != b:
            side = 0 if self.depth[a] >= self.depth[b] else 1
            x = (a, b)[side]
            up[side].append(x)
            x = self.root(self.parent[x])
            a, b = (x, b) if side == 0 else (a, x)
        return tuple(up[0]), tuple(up[1])

    def joints(self, starts: Iterable[int]) -> tuple[tuple[int, ...], int]:
        """Tree joints between all of the bodies, and the body that carries them."""
        heap = [(-self.depth[x], x) for x in {self.root(b) for b in starts}]
        heapq.heapify(heap)
        found: list[int] = []
        while len(heap) > 1:
            x = heapq.heappop(heap)[1]
            while heap and heap[0][1] == x:
                heapq.heappop(heap)
            if not heap:
                heapq.heappush(heap, (-self.depth[x], x))
                break
            found.append(x)
            p = self.root(self.parent[x])
            heapq.heappush(heap, (-self.depth[p], p))
        return tuple(found), heap[0][1]


def find_elements(system: System, tree: Tree) -> list[LoopElement]:
    """Cut joints and constraints between two bodies, then relations of coordinates."""
    model, found = system.model, []
    for n, (parent, child, _, row, rows, *_) in enumerate(model.cut.tolist()):
        child_side, parent_side = tree.ways(child, parent)
        if rows and (child_side or parent_side):
            part = Part(n, -1, child, parent, child_side, parent_side)
            joints, base = tree.joints((child, parent))
            found.append(
                LoopElement(system.row_elements[row], tuple(range(row, row + rows)), (part,), (), joints, base)
            )
    for n, (row, first, count, *_) in enumerate(model.linear.tolist()):
        parts, direct, ends, own = [], [], [], []
        for e, (cut, index, _) in enumerate(model.entry[first : first + count].tolist(), first):
            if cut < 0:
                direct.append((e, index))
                own.append(tree.body[index])
                ends += [own[-1], tree.parent[own[-1]]]
            else:
                parent, child = (int(b) for b in model.cut[cut, :2])
                parts.append(Part(cut, e, child, parent, *tree.ways(child, parent)))
                ends += [child, parent]
        joints, base = tree.joints(ends)
        found.append(LoopElement(system.row_elements[row], (row,), tuple(parts), tuple(direct), joints, base, n))
    return found


def bound_speeds(element: LoopElement, tree: Tree) -> list[int]:
    """Speeds that enter the rows of an element."""
    sides = [b for part in element.parts for b in (*part.child_side, *part.parent_side)]
    through = [k for b in sides for k in tree.speeds(b)]
    return list(dict.fromkeys([*through, *(k for _, k in element.direct)]))


def _coupled(elements: Sequence[LoopElement]) -> list[list[int]]:
    """Elements that share tree joints, directly or by others, in the order of the first of each."""
    leader = list(range(len(elements)))

    def find(e: int) -> int:
        while leader[e] != e:
            leader[e] = leader[leader[e]]
            e = leader[e]
        return e

    owner: dict[int, int] = {}
    for e, element in enumerate(elements):
        for b in element.joints:
            leader[find(owner.setdefault(b, e))] = find(e)
    groups: dict[int, list[int]] = {}
    for e, element in enumerate(elements):
        if element.joints:
            groups.setdefault(find(e), []).append(e)
    return list(groups.values())


# --------------------------------------------------------------------------------------------- rows as numbers


class JacobianEntries:
    """Entries of J at one state, computed on demand: J itself would be too large for many loops.

    `entry` has torque, force and point of each entry of the relations that acts on a cut joint.
    """

    def __init__(self, system: System, tree: Tree, work: rec.Work, entry: Array):
        self.system, self.tree, self.work, self.entry = system, tree, work, entry
        self.X, self.S = work.body[:, rec.X : rec.X + 3], work.dof
        self.R = work.body[:, rec.R : rec.R + 9].reshape(-1, 3, 3)

    def columns(self, element: LoopElement, speeds: Sequence[int]) -> Array:
        """Columns of J for the rows of an element, in natural units (rows, speeds)."""
        s, place = self.system, {k: n for n, k in enumerate(speeds)}
        out = np.zeros((len(element.rows), len(speeds)))
        for part in element.parts:
            if part.entry < 0:
                rows = self.work.rows[list(element.rows)]
                at = s.model.cut_frames[part.cut, rec.M_POINT : rec.M_POINT + 3]
                point = self.X[part.child] + self.R[part.child] @ at
            else:
                rows, point = self.entry[part.entry, None, :6], self.entry[part.entry, 6:]
            for side, sign in ((part.child_side, 1.0), (part.parent_side, -1.0)):
                for b in side:
                    for k in self.tree.speeds(b):
                        if k in place:
                            w = self.S[k, rec.SW : rec.SW + 3]
                            v = self.S[k, rec.SV : rec.SV + 3] + np.cross(w, point - self.X[b])
                            out[:, place[k]] += sign * (rows[:, :3] @ w + rows[:, 3:] @ v)
        for e, k in element.direct:
            if k in place:
                out[0, place[k]] += self.work.factor[e]
        return out * s.speed_units[list(speeds)] / s.row_units[list(element.rows), None]

    def local_columns(self, element: LoopElement, speeds: Sequence[int]) -> Array:
        """Columns of J with the size of the element's own loops as the unit of length: each of many cells is small."""
        s = self.system
        size = max((self._reach(part) for part in element.parts), default=0.0) / s.size or 1.0
        rows = np.array([size if s.row_dimensions[r] == "length" else 1.0 for r in element.rows])
        columns = np.where(s.speed_units[list(speeds)] == s.size, size, 1.0)
        return np.asarray(self.columns(element, speeds) * columns / rows[:, None], float)

    def _reach(self, part: Part) -> float:
        """Largest distance of a joint of its loop from the point where it closes."""
        point = self.X[part.child] if part.child >= self.tree.n_bases else self.X[part.parent]
        arms = self.X[[*part.child_side, *part.parent_side]] - point
        return float(np.linalg.norm(arms, axis=1).max(initial=0.0))


def _dependent(Y: Array, preferred: NDArray[np.bool_], small: float) -> list[int]:
    """Columns to solve for: those with pivots above `small`, preferred ones first."""
    found: list[int] = []
    rest = Y.copy()
    for pool in (preferred, ~preferred):
        places = np.flatnonzero(pool)
        if not len(places) or len(found) == len(Y):
            continue
        _, R, order = scipy.linalg.qr(rest[:, places], mode="economic", pivoting=True)
        pivots = np.abs(np.diag(R))
        top = max(float(np.abs(Y).max(initial=0.0)), 1.0)  # natural units: rows of mere rounding count as zero
        sound = int(np.count_nonzero(pivots > small * top))
        found += places[order[: min(sound, len(Y) - len(found))]].tolist()
        if found:
            Q = np.linalg.qr(Y[:, found])[0]
            rest = Y - Q @ (Q.T @ Y)
    return found


# ------------------------------------------------------------------------------------------------ making a plan


class _Grouping:
    """A group under construction; `allowed`: speeds that may be independent, `wanted`: those that shall be."""

    def __init__(
        self, numbers: JacobianEntries, elements: Sequence[LoopElement], members: list[int], allowed: set[int]
    ):
        self.numbers, self.elements, self.members, self.allowed = numbers, elements, members, allowed
        self.tree = tree = numbers.tree
        self.bodies = sorted({b for e in members for b in elements[e].joints})
        inside = set(self.bodies)
        base = min((elements[e].base for e in members), key=lambda b: tree.depth[b])
        self.base = base if base >= tree.n_bases else -1
        self.outward: dict[int, list[int]] = {b: [] for b in self.bodies}
        self.roots = {b for b in self.bodies if tree.parent[b] not in inside}
        for b in self.bodies:
            if b not in self.roots:
                self.outward[tree.parent[b]].append(b)
        self.bound = {e: bound_speeds(elements[e], tree) for e in members}
        self.tentative: list[int] = []
        self.known: set[int] = set()  # speeds that are tentative or follow
        self.placed: set[int] = set()
        self.steps: list[int | Cell] = []
        self.aside: list[tuple[int, list[int]]] = []  # element, places of rows in it

    def close_all(self, wanted: set[int]) -> None:
        """Close the elements in turn, always one with the fewest unknown speeds next."""
        self._know([k for b in self.bodies for k in self.tree.speeds(b) if k in wanted], tentative=True)
        self._place(self.roots)
        users: dict[int, list[int]] = {}
        for e in self.members:
            for k in self.bound[e]:
                users.setdefault(k, []).append(e)
        heap = [self._urgency(e) for e in self.members]
        heapq.heapify(heap)
        done: set[int] = set()
        while heap:
            *key, e = heapq.heappop(heap)
            if e in done or (*key, e) != self._urgency(e):
                continue
            done.add(e)
            new = self._close(e)
            for other in {x for k in new for x in users[k]} - done:
                heapq.heappush(heap, self._urgency(other))
        left = [k for b in self.bodies for k in self.tree.speeds(b) if k not in self.known]
        self._know(left, tentative=True)
        self._place(self.roots)
        for b in self.bodies:
            self._place(self.outward[b])

    def _urgency(self, e: int) -> tuple[int, int, str, int]:
        unknown = sum(k not in self.known for k in self.bound[e])
        element = self.elements[e]
        return max(unknown - len(element.rows), 0), unknown, element.name, e

    def _know(self, speeds: Sequence[int], tentative: bool) -> None:
        self.known.update(speeds)
        if tentative:
            self.tentative += speeds

    def _place(self, bodies: Iterable[int]) -> None:
        """Note the bodies whose motion relative to the base is known now, outward."""
        stack = sorted(bodies, reverse=True)
        while stack:
            b = stack.pop()
            above = b in self.roots or self.tree.parent[b] in self.placed
            if b in self.placed or not above or any(k not in self.known for k in self.tree.speeds(b)):
                continue
            self.placed.add(b)
            self.steps.append(b)
            stack += reversed(self.outward[b])

    def _close(self, e: int) -> list[int]:
        """Close an element; returns the speeds that become known."""
        element = self.elements[e]
        unknown = [k for k in self.bound[e] if k not in self.known]
        Y = self.numbers.local_columns(element, unknown)
        columns = _dependent(Y, np.array([k not in self.allowed for k in unknown], bool), SMALL_PIVOT)
        holonomic = self.numbers.system.holonomic[list(element.rows)]
        rows = criteria.independent_rows(Y[:, columns], holonomic, len(columns))
        dependent = tuple(unknown[c] for c in columns)
        self._know([k for k in unknown if k not in dependent], tentative=True)
        if dependent:
            self._place_anew(e)
            sides = tuple(self._side(part) for part in element.parts)
            self.steps.append(Cell(e, tuple(element.rows[r] for r in rows), dependent, sides))
            self._know(dependent, tentative=False)
        self._place_anew(e)
        rest = [r for r in range(len(element.rows)) if r not in rows]
        if rest:
            self.aside.append((e, rest))
        return unknown

    def _place_anew(self, e: int) -> None:
        """Note bodies whose motion has become known with the joints of an element."""
        self._place({self.tree.body[k] for k in self.bound[e]})

    def _side(self, part: Part) -> tuple[tuple[tuple[int, int], ...], int, int]:
        """Paths inward from both bodies to one whose motion is known, or to where they meet; see :class:`Cell`."""
        path: list[tuple[int, int]] = []
        ends = []
        for way, start, sign in ((part.child_side, part.child, 1), (part.parent_side, part.parent, -1)):
            end = self.tree.parent[way[-1]] if way else start
            for b in way:
                if b in self.placed:
                    end = b
                    break
                path.append((b, sign))
            # a relation's right side contains the given acceleration of a base that it acts on itself
            ends.append(-1 if end == self.base or (end < self.tree.n_bases and not way and part.entry >= 0) else end)
        if ends[0] == ends[1]:
            ends = [-1, -1]  # a motion that both sides share does not matter
        return tuple(path), ends[0], ends[1]

    # ------------------------------------------------------------------------------------------- rows put aside

    def reduced(self) -> Array:
        """Rows put aside as rows of the tentative speeds alone (rows, tentative), natural units."""
        t = len(self.tentative)
        E = {k: np.eye(t)[n] for n, k in enumerate(self.tentative)}
        for step in self.steps:
            if isinstance(step, Cell):
                Y, speeds = self._chosen(step), self.bound[step.element]
                at = [speeds.index(k) for k in step.dependent]
                rest = [n for n, k in enumerate(speeds) if k not in step.dependent]
                right = Y[:, rest] @ np.array([E[speeds[n]] for n in rest]).reshape(len(rest), t)
                E |= dict(zip(step.dependent, -np.linalg.solve(Y[:, at], right), strict=True))
        found = [np.zeros((0, t))]
        for e, rows in self.aside:
            J = self.numbers.columns(self.elements[e], self.bound[e])[rows]
            found.append(J @ np.array([E[k] for k in self.bound[e]]).reshape(len(self.bound[e]), t))
        return np.vstack(found)

    def _chosen(self, cell: Cell) -> Array:
        element = self.elements[cell.element]
        return self.numbers.columns(element, self.bound[cell.element])[[element.rows.index(r) for r in cell.rows]]

    def closing(self, R: Array, count: int) -> tuple[list[Cell], list[int]] | None:
        """Cells for `count` of the rows put aside, and the tentative speeds that follow; None if there are too few."""
        places = [(e, self.elements[e].rows[r]) for e, rows in self.aside for r in rows]
        holonomic = self.numbers.system.holonomic[[row for _, row in places]]
        rows = criteria.independent_rows(R, holonomic, count)
        preferred = np.array([k not in self.allowed for k in self.tentative], bool)
        columns = _dependent(R[rows], preferred, CANDIDATE)
        if len(columns) < count:
            return None
        cells = []
        for e in dict.fromkeys(places[r][0] for r in rows):
            own = tuple(places[r][1] for r in rows if places[r][0] == e)
            cells.append(Cell(e, own, (), tuple(self._side(part) for part in self.elements[e].parts)))
        return cells, [self.tentative[c] for c in columns]


def plan_reduction(
    numbers: JacobianEntries, count: int, wanted: Sequence[int] | None, allowed: NDArray[np.bool_]
) -> ReductionPlan | None:
    """Groups, cells and their order; None if the speeds `wanted`, or any allowed ones, cannot be independent.

    Parameters
    ----------
    numbers : Numbers
        Numbers of the state at which the choice is made.
    count : int
        Number of independent rows.
    wanted : sequence of int, optional
        Speeds that shall be independent.
    allowed : (nv,) array of bool
        Speeds that may be independent.
    """
    system, tree = numbers.system, numbers.tree
    elements = find_elements(system, tree)
    chosen = set(np.flatnonzero(allowed).tolist() if wanted is None else wanted)
    groupings = [_Grouping(numbers, elements, members, chosen) for members in _coupled(elements)]
    for g in groupings:
        g.close_all(set() if wanted is None else chosen)
    left = count - sum(len(x.dependent) for g in groupings for x in g.steps if isinstance(x, Cell))
    if left < 0:
        return None
    cells: list[Cell] = []
    groups = []
    for g, share in zip(groupings, _shares(groupings, left), strict=True):
        closing: list[Cell] = []
        followers: list[int] = []
        if share is not None:
            found = g.closing(*share)
            if found is None:
                return None
            closing, followers = found
        steps = []
        for x in g.steps:
            if isinstance(x, Cell):
                cells.append(x)
            steps.append(-len(cells) if isinstance(x, Cell) else x)
        first = len(cells)
        cells += closing
        tentative = [k for k in g.tentative if k not in followers] + followers
        last = tuple(range(first, len(cells)))
        groups.append(CoupledGroup(g.base, tuple(g.bodies), tuple(steps), last, tuple(tentative), len(followers)))
    plan = ReductionPlan(system, tuple(elements), tuple(cells), tuple(groups))
    if len(plan.independent) != system.nv - count:
        return None
    fits = set(plan.independent) <= chosen if wanted is None else set(plan.independent) == chosen
    return plan if fits else None


def _shares(groupings: Sequence[_Grouping], left: int) -> list[tuple[Array, int] | None]:
    """Rows put aside of each group and how many of them count, `left` in all: those with the largest pivots."""
    if not left:
        return [None] * len(groupings)
    reduced = [g.reduced() for g in groupings]
    pivots = [
        (-float(x), n)
        for n, R in enumerate(reduced)
        if R.size
        for x in np.abs(np.diag(scipy.linalg.qr(R.T, mode="r", pivoting=True)[0]))
    ]
    which = [n for _, n in sorted(pivots)[:left]]
    counts = [which.count(n) for n in range(len(groupings))]
    return [(R, k) if k else None for R, k in zip(reduced, counts, strict=True)]
