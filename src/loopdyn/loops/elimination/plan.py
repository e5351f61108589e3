"""The plan of an elimination: which joints are severed, the order of elimination, and the layout of all arrays.

Bodies are eliminated along the spanning tree, each freedom by a scalar pivot. The multipliers of a cut joint act
on its two bodies; their columns are propagated with the bodies' inertias towards the root, where they form a matrix
of multipliers that is solved at the end by sparse elimination in minimum-degree order. In stacked loops the columns
of all of them would be propagated all the way to the root. A tree joint at which too many rows are open is therefore
*severed*: its body becomes the root of a tree of its own, free in space, and its joint one more set of rows. With no
joint severed the plan is an articulated-body algorithm with loops; with all of them severed it is the sparse matrix
J M^-1 J^T of absolute coordinates. The choice with the fewest operations is taken.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from loopdyn.engine import records as rec
from loopdyn.engine.layout import fill, opened, segments, with_block
from loopdyn.errors import LoopdynError
from loopdyn.joints.dispatch import JOINT_TYPES
from loopdyn.loops.elimination import layout
from loopdyn.loops.elimination.ordering import Pattern, factor_pattern, minimum_degree, postorder
from loopdyn.system.freezing import frames_of_cuts
from loopdyn.system.support import SUPPORT
from loopdyn.system.system import System
from loopdyn.system.uncollected import collector_paused

Ints = NDArray[np.int64]

# Limits on the number of open rows at a body, above which its joint is severed; the limit with the fewest operations is
# taken. With the first, nothing is severed in mechanisms of ordinary size, and matrices of large ones stay bounded.
LIMITS = (120, 30, 16, 10, 6, 3, 0)

# Bodies in a wave: the data of one wave, 2 to 2.5 kB per body, stay in the cache of a core between its passes. Among 24
# to 768 this was the fastest for towers of 10,000 and 20,000 bodies with a cache of 1 MB.
WAVE = 384

# Multiplications and additions of the tree part of a body, and of each of its freedoms (tree/aba.py, tree/rigid.py).
BODY_FLOPS, FREEDOM_FLOPS = 450, 110


@dataclass(frozen=True)
class RowNode:
    """Rows that are eliminated together: those of a cut joint, constraint, relation or severed joint."""

    name: str
    rows: tuple[int, ...]  # rows that are kept
    bodies: tuple[int, ...]  # bodies they act on, without bases
    all_rows: int  # number of rows, including those that are not kept
    related: bool = False  # whether it is a relation between coordinates


@dataclass(frozen=True)
class SeveredForest:
    """Nodes, and for each body the nodes that are open at it."""

    nodes: tuple[RowNode, ...]
    severed: tuple[int, ...]  # bodies, in the order of their rows
    sequence: tuple[int, ...]  # all bodies in the order of the kinematics
    open: tuple[tuple[int, ...], ...]  # by row of the body table
    roots: tuple[int, ...]  # bodies that propagate nothing to a parent


@dataclass(frozen=True, eq=False)
class EliminationPlan:
    """Everything about an elimination that does not depend on the state.

    Attributes
    ----------
    system : System
    forest : SeveredForest
    pattern : Pattern
        Of the matrix of multipliers.
    kept : (rows,) array
        Row of the extended tables that each row of the matrix is.
    flops : int
        Estimated multiplications and additions of one evaluation.
    """

    system: System
    forest: SeveredForest
    pattern: Pattern
    kept: Ints
    flops: int
    ints: Ints = field(repr=False)  # those of the system with severed joints among the cuts, then the plan
    floats: NDArray[np.float64] = field(repr=False)
    work: int = field(repr=False)  # length of the work array

    @cached_property
    def severed(self) -> tuple[str, ...]:
        """Names of the severed joints."""
        joint = {j.body: j.name for j in self.system.joints.values() if j.in_tree}
        return tuple(joint[i] for i in self.forest.severed)

    @cached_property
    def row_nodes(self) -> Ints:
        """Node of each row of the matrix."""
        order = np.argsort(self.pattern.place)
        return np.repeat(order, np.diff(self.pattern.first)).astype(np.int64)

    @cached_property
    def row_units(self) -> NDArray[np.float64]:
        """Natural unit of each row of the matrix."""
        joints = {j.body: j for j in self.system.joints.values() if j.in_tree}
        severed = [d for i in self.forest.severed for d in joints[i].spec.row_dimensions]
        units = [1.0 if d == "angle" else self.system.size for d in (*self.system.row_dimensions, *severed)]
        return np.array(units)[self.kept]

    @cached_property
    def whole_speeds(self) -> Ints:
        """Speeds of the joints that are not severed."""
        tree, severed = self.system.model.tree, set(self.forest.severed)
        first, count = tree[:, rec.V0].tolist(), tree[:, rec.NV].tolist()
        kept = (range(v, v + n) for i, (v, n) in enumerate(zip(first, count, strict=True)) if i not in severed)
        return np.array([k for speeds in kept for k in speeds], np.int64)

    @cached_property
    def extended(self) -> dict[Hashable, tuple[Ints, NDArray[np.float64], int]]:
        """Arrays and length of the work array with the blocks of others behind them, kept for the next solver."""
        return {}

    def __str__(self) -> str:
        s, width = self.system, max((len(n) for n in self.forest.open), default=0)
        lines = [
            f"graph: {s.nb} bodies in {len(self.forest.roots)} trees, {s.nv} speeds; "
            f"{self.pattern.rows} rows of multipliers kept of {sum(n.all_rows for n in self.forest.nodes)}",
            f"cut: {_listed(s.topology.cuts)}; severed besides: {_listed(self.severed)}",
            f"columns: at most {width} sets at a body, {sum(len(n) for n in self.forest.open) / max(s.nb, 1):.1f} mean",
            f"order of multipliers: {_listed([self.forest.nodes[k].name for k in np.argsort(self.pattern.place)])}; "
            f"{self.pattern.entries} entries in the factor",
            f"about {self.flops} operations, {self.flops / max(s.nb, 1):.0f} per body",
        ]
        return "\n".join(lines)


def _listed(names: Sequence[str], most: int = 8) -> str:
    return (", ".join(names[:most]) + (", ..." if len(names) > most else "")) or "none"


# ------------------------------------------------------------------------------------------------ choosing


def plan_elimination(
    system: System, severed: Collection[int] | None = None, kept: Mapping[str, Sequence[int]] | None = None
) -> EliminationPlan:
    """Plan of an elimination.

    Parameters
    ----------
    system : System
    severed : collection of int, optional
        Rows of the bodies whose joint is severed; by default chosen by the number of operations.
    kept : mapping of node name to rows, optional
        Rows of each node that are kept; all by default.

    Raises
    ------
    LoopdynError
        If a joint in `severed` has armature, or a relation or driver binds its coordinates.

    Examples
    --------
    >>> import loopdyn as ld
    >>> print(plan_elimination(ld.library.four_bar().compile()))  # doctest: +ELLIPSIS
    graph: 3 bodies in 2 trees, 3 speeds; 5 rows of multipliers kept of 5
    cut: C; severed besides: none
    ...
    """
    with collector_paused():
        sequence = _sequence(system)
        if severed is None:
            forest, pattern = _cheapest(system, sequence)
        else:
            _require_unbound(system, severed)
            forest, pattern = grow(system, sequence, lambda i, _: i in severed), None
        if kept is not None:
            nodes = tuple(RowNode(n.name, tuple(kept[n.name]), n.bodies, n.all_rows, n.related) for n in forest.nodes)
            forest, pattern = replace(forest, nodes=nodes), None
        return _freeze(system, forest, pattern or _pattern(forest))


def plans_alike(system: System, other: System) -> bool:
    """Whether all plans of two systems of one structure are the same: numbers decide only what may be severed."""
    if system.ints is not other.ints:
        return False
    one = system.kept.find("severable", None, lambda: _severable(system))
    return bool(np.array_equal(one, other.kept.find("severable", None, lambda: _severable(other))))


def with_numbers_of(system: System, plan: EliminationPlan) -> EliminationPlan:
    """Plan made for another system, with the numbers of this one, whose plans are alike."""
    _, floats, _ = with_cuts(system, plan.forest.severed)
    rest = np.zeros(len(plan.floats) - len(floats))
    return replace(plan, system=system, floats=np.concatenate([floats, rest]))


def _cheapest(system: System, sequence: Sequence[int]) -> tuple[SeveredForest, Pattern]:
    """The forest with the fewest operations among those of all `LIMITS`, and the pattern of its multipliers."""
    severable = _severable(system).tolist()
    best: tuple[SeveredForest, Pattern] | None = None
    least, most_open = 0, np.inf
    for limit in LIMITS:
        if most_open <= limit:  # nothing more would be severed: the forest of the limit before
            continue
        found, most_open = _grown_within(system, sequence, severable, limit)
        pattern = _pattern(found)
        flops = _tree_flops(system, found) + pattern.flops
        if best is None or flops < least:
            best, least = (found, pattern), flops
    if best is None:
        raise AssertionError("LIMITS is empty")
    return best


def _grown_within(
    system: System, sequence: Sequence[int], severable: Sequence[bool], limit: int
) -> tuple[SeveredForest, int]:
    """Forest with at most `limit` rows open at a severable joint, and the most that are open at one of them."""
    most = 0

    def sever(i: int, rows: int) -> bool:
        nonlocal most
        if not severable[i] or rows > limit:
            return severable[i]
        most = max(most, rows)
        return False

    return grow(system, sequence, sever), most


def _severable(system: System) -> NDArray[np.bool_]:
    """Bodies whose joint may be severed: they have inertia of their own against every motion.

    Joints without scalar coordinates, with armature, or with coordinates bound by a relation or driver are not severed.
    """
    model = system.model
    n = len(model.tree)
    moments = np.linalg.eigvalsh(system.inertias)
    scalar = np.array([kind.is_scalar() for kind in JOINT_TYPES], bool)
    allowed: NDArray[np.bool_] = (
        (model.body[:, rec.MASS] > 0.0)
        & (moments[:, 0] > SUPPORT * moments[:, 2])
        & (model.tree[:, rec.PARENT] >= system.n_bases)
        & scalar[model.tree[:, rec.KIND]]
    )
    allowed[: system.n_bases] = False
    allowed[sorted(_bound_bodies(system))] = False
    body_of = np.repeat(np.arange(n), model.tree[:, rec.NV])
    allowed[body_of[model.armature != 0.0]] = False
    return allowed


def _bound_bodies(system: System) -> set[int]:
    """Bodies on whose tree coordinates relations or drivers act."""
    body_of = np.repeat(np.arange(len(system.model.tree)), system.model.tree[:, rec.NV])
    return {int(body_of[e[rec.E_FREEDOM]]) for e in system.model.entry if e[rec.E_CUT] < 0}


def _require_unbound(system: System, severed: Collection[int]) -> None:
    """Raise if a relation, driver or armature acts on a severed joint: it would have to be a joint of the tree."""
    tree, armature = system.model.tree, system.model.armature
    rotors = {i for i in severed if armature[tree[i, rec.V0] : tree[i, rec.V0] + tree[i, rec.NV]].any()}
    for i in sorted((_bound_bodies(system) | rotors).intersection(severed)):
        name = next(j.name for j in system.joints.values() if j.body == i)
        raise LoopdynError(
            f"joint '{name}' cannot be severed: a relation or driver acts on its coordinates, or it has armature. "
            "Leave it whole."
        )


def grow(system: System, sequence: Sequence[int], sever: Callable[[int, int], bool]) -> SeveredForest:
    """Forest whose severed joints are those with ``sever(body, open rows)`` true, from the tips to the root."""
    model, n_bases = system.model, system.n_bases
    n = len(model.tree)
    nodes = _nodes(system)
    found: list[set[int]] = [set() for _ in range(n)]
    for k, node in enumerate(nodes):
        for b in node.bodies:
            found[b].add(k)
    severed, roots = [], []
    row, parent = system.nc, model.tree[:, rec.PARENT].tolist()
    joints = {j.body: j for j in system.joints.values() if j.in_tree}
    for i in range(n - 1, n_bases - 1, -1):
        p = parent[i]
        rows = sum([len(nodes[k].rows) for k in found[i]])
        if p < n_bases:
            roots.append(i)
        elif sever(i, rows):
            count = len(joints[i].spec.rows_when_cut)
            found[i].add(len(nodes))
            found[p].add(len(nodes))
            nodes.append(RowNode(joints[i].name, tuple(range(row, row + count)), (i, p), count))
            row += count
            severed.append(i)
            roots.append(i)
        else:
            found[p] |= found[i]
    open_ = tuple(tuple(sorted(f)) for f in found)
    return SeveredForest(tuple(nodes), tuple(severed), tuple(sequence), open_, tuple(roots))


def _nodes(system: System) -> list[RowNode]:
    """Nodes of the cut joints, of the constraints between two bodies, and of the relations of coordinates."""
    model, n_bases = system.model, system.n_bases
    nodes = []
    for parent, child, _, row, rows, *_ in model.cut.tolist():
        if rows == 0:  # a free joint that is cut
            continue
        bodies = tuple(b for b in (parent, child) if b >= n_bases)
        nodes.append(RowNode(system.row_elements[row], tuple(range(row, row + rows)), bodies, rows))
    body_of = np.repeat(np.arange(len(model.tree)), model.tree[:, rec.NV])
    for row, first, count, *_ in model.linear:
        bodies_: set[int] = set()
        for cut, index, _ in model.entry[first : first + count]:
            bodies_ |= {int(body_of[index])} if cut < 0 else {int(b) for b in model.cut[cut, :2] if b >= n_bases}
        nodes.append(RowNode(system.row_elements[row], (int(row),), tuple(sorted(bodies_)), 1, related=True))
    return nodes


def _pattern(forest: SeveredForest) -> Pattern:
    sizes = [len(node.rows) for node in forest.nodes]
    place = {i: x for x, i in enumerate(forest.sequence)}
    # among equally good nodes, those whose bodies are placed first come first
    first = sorted(range(len(sizes)), key=lambda k: max((place[b] for b in forest.nodes[k].bodies), default=0))
    number = {k: m for m, k in enumerate(first)}
    cliques = [[number[k] for k in forest.open[i]] for i in forest.roots]
    order, later = postorder(*minimum_degree([sizes[k] for k in first], cliques))
    return factor_pattern(sizes, [first[m] for m in order], [[first[m] for m in found] for found in later])


def _tree_flops(system: System, forest: SeveredForest) -> int:
    """Operations of everything but the matrix of multipliers.

    A column past a severed body takes a quarter of the operations counted here; its products with the other columns
    take more time than their operations suggest. For a tower of 300 bodies this count ranks ten choices of severed
    joints in the order of their measured times.
    """
    freedoms = system.model.tree[:, rec.NV].copy()
    freedoms[list(forest.severed)] = 6
    size = [len(node.rows) for node in forest.nodes]
    rows = np.array([sum([size[k] for k in found]) for found in forest.open], np.int64)
    each = BODY_FLOPS + freedoms * (FREEDOM_FLOPS + 30 * rows + rows * (rows + 1)) + 30 * rows
    return int(each[system.n_bases :].sum())


# ------------------------------------------------------------------------------------------------ freezing


def _freeze(system: System, forest: SeveredForest, pattern: Pattern) -> EliminationPlan:
    """The arrays that the kernels read."""
    model, n_bases = system.model, system.n_bases
    n = len(model.tree)
    ints, floats, cut_of = with_cuts(system, forest.severed)
    order = np.argsort(pattern.place)
    kept = np.array([r for k in order for r in forest.nodes[k].rows], np.int64)
    index = {int(r): m for m, r in enumerate(kept)}
    cut_table = opened(rec.open_model, ints, floats).cut
    all_rows = [r for _, _, _, row, rows, *_ in cut_table.tolist() for r in range(row, row + rows)]
    all_rows += model.linear[:, rec.L_ROW].tolist()
    dropped = [r for r in all_rows if r not in index]
    index |= {r: len(kept) + m for m, r in enumerate(dropped)}
    nodes_at = [sorted(int(pattern.place[k]) for k in forest.open[i]) for i in range(n)]
    width = np.diff(pattern.first)
    freedoms = model.tree[:, rec.NV].copy()
    freedoms[list(forest.severed)] = 6
    freedoms[:n_bases] = 0
    acting = _acting(cut_table, index, np.repeat(np.arange(len(width)), width), n_bases)
    related = {int(pattern.place[k]) for k in range(len(forest.nodes)) if forest.nodes[k].related}
    waves = _waves(system, forest, cut_table, cut_of)
    columns = _Columns(nodes_at, width, model.tree[:, rec.PARENT], set(forest.roots), waves.order, related)
    at, open_, block = np.zeros((n, layout.N_AT), np.int64), list[list[int]](), pattern.block.tolist()
    responses = severed = 0
    for i in waves.order:
        nodes, free = nodes_at[i], i in cut_of
        at[i] = [len(open_), len(open_) + len(nodes), responses, len(block), severed if free else -1]
        open_ += [[k, *columns.of(i, k), acting.get((i, k), -1)] for k in nodes]
        block += [pattern.where(a, b) for m, a in enumerate(nodes) for b in nodes[: m + 1]]
        responses += sum(int(width[k]) for k in nodes) * int(freedoms[i])
        severed += free
    body_of = np.repeat(np.arange(n), model.tree[:, rec.NV])
    entries = []
    for row, first, count, *_ in model.linear:
        for cut, freedom, _ in model.entry[first : first + count]:
            if index[int(row)] >= len(kept):
                entries.append([-1, -1, -1])
                continue
            k = int(np.searchsorted(pattern.first, index[int(row)], side="right")) - 1
            if cut >= 0:
                entries.append([-1, *(columns.of(int(b), k)[0] for b in (model.cut[cut, 1], model.cut[cut, 0]))])
            else:
                i = int(body_of[freedom])
                before = sum(int(width[m]) for m in nodes_at[i] if m < k)
                first_response = at[i, layout.RESPONSE] + before * freedoms[i]
                entries.append([int(first_response + freedom - model.tree[i, rec.V0]), -1, -1])
    numbers = [index.get(r, -1) for r in range(int(ints[rec.H_NC]))]
    header = {
        layout.P_ROWS: len(kept), layout.P_SLOTS: columns.end, layout.P_RESPONSES: responses, layout.P_OPEN: len(open_),
        layout.P_NODES: len(pattern.node), layout.P_LATER: len(pattern.later), layout.P_BLOCKS: len(block),
        layout.P_MATRIX: pattern.size, layout.P_SEVERED: len(waves.severed_joint), layout.P_DROPPED: len(dropped),
        layout.P_WAVES: len(waves.table) - 1,
    }  # fmt: skip
    work = rec.system_sizes(ints)[2]
    ints, floats, work = with_block(ints, floats, work, rec.H_SOLVER, header, layout.plan_sizes)
    fill(
        opened(layout.open_plan, ints),
        at=at, open=open_, node=pattern.node, later=pattern.later, block=block, index=numbers, relation_entry=entries,
        severed_joint=waves.severed_joint, kept=kept, sequence=forest.sequence, order=waves.order,
        cut_order=waves.cut_order, wave=waves.table,
    )  # fmt: skip
    flops = _tree_flops(system, forest) + pattern.flops
    return EliminationPlan(system, forest, pattern, kept, flops, ints, floats, work)


def _acting(cut_table: Ints, index: Mapping[int, int], node_of: Ints, n_bases: int) -> dict[tuple[int, int], int]:
    """Cut joint of a node by body and place of the node, if it acts on the body."""
    found: dict[tuple[int, int], int] = {}
    for n, (parent, child, _, row, rows, *_) in enumerate(cut_table.tolist()):
        for k in {int(node_of[index[r]]) for r in range(row, row + rows) if index[r] < len(node_of)}:
            found |= {(b, k): n for b in (parent, child) if b >= n_bases}
    return found


@dataclass(frozen=True)
class _Waves:
    """Parts of a mechanism that are processed one after another; see `_waves`."""

    order: list[int]  # bodies in the order of elimination
    cut_order: list[int]
    severed_joint: list[list[int]]  # body and cut
    table: list[list[int]]  # layout.W_BODY ...


def _waves(system: System, forest: SeveredForest, cut_table: Ints, cut_of: Mapping[int, int]) -> _Waves:
    """Waves in which a large mechanism is processed, so that data of one pass are still in the cache for the next.

    A wave places the next `WAVE` bodies of a sequence, then fills the rows of the cuts whose bodies are both
    placed, then eliminates the trees of the forest all of whose bodies and cuts are. Forces and relations between
    coordinates may act on any bodies: a mechanism that has them is one wave.
    """
    model, n_bases, n = system.model, system.n_bases, len(system.model.tree)
    sequence = forest.sequence
    size = WAVE if len(model.force) == len(model.linear) == 0 else n
    begins = list(range(0, max(len(sequence), 1), size))
    place = dict(zip(sequence, range(n), strict=False))

    def wave(body: int) -> int:
        return place.get(body, 0) // size  # bases are placed before the first

    of_cut = [max(wave(int(parent)), wave(int(child))) for parent, child, *_ in cut_table]
    roots, root = set(forest.roots), list(range(n))
    of_tree = [0] * n  # by root
    for i in range(n_bases, n):
        root[i] = i if i in roots else root[int(model.tree[i, rec.PARENT])]
        of_tree[root[i]] = max(of_tree[root[i]], wave(i))
    for k, (parent, child, *_) in zip(of_cut, cut_table, strict=True):
        for b in (int(parent), int(child)):
            of_tree[root[b]] = max(of_tree[root[b]], k)
    order = sorted(range(n_bases, n), key=lambda i: (of_tree[root[i]], place[root[i]], -place[i]))
    cut_order = sorted(range(len(cut_table)), key=lambda c: (of_cut[c], c))
    severed = sorted(([i, cut_of[i]] for i in forest.severed), key=lambda joint: of_cut[joint[1]])

    def begin(waves: Sequence[int]) -> list[int]:
        return [int(x) for x in np.searchsorted(waves, range(len(begins) + 1))]

    parts = (
        [*begins, len(sequence)], begin([of_cut[c] for c in cut_order]), begin([of_tree[root[i]] for i in order]),
        begin([of_cut[c] for _, c in severed]),
    )  # fmt: skip
    return _Waves(order, cut_order, severed, [list(row) for row in zip(*parts, strict=True)])


def _sequence(system: System) -> tuple[int, ...]:
    """Bodies with parents before children, in which bodies that are joined, by cut joints too, are close to each other.

    Each part of the mechanism that is connected without the bases is traversed breadth-first from its first body; a
    body reached before its parent is placed after it.
    """
    n_bases, parent = system.n_bases, system.model.tree[:, rec.PARENT].tolist()
    n = len(parent)
    near: list[list[int]] = [[] for _ in range(n)]
    for a, b in [*enumerate(parent), *system.model.cut[:, : rec.C_KIND].tolist()]:
        if min(a, b) >= n_bases:
            near[a].append(b)
            near[b].append(a)
    met, place = list[int](), [-1] * n
    for first in range(n_bases, n):
        front = [first] if place[first] < 0 else []
        for a in front:  # grows during the loop
            if place[a] < 0:
                place[a] = len(met)
                met.append(a)
                front += [b for b in near[a] if place[b] < 0]
    children: list[list[int]] = [[] for _ in range(n)]
    ready = []  # places of bodies whose parent is in the sequence
    for i in range(n_bases, n):
        if parent[i] >= n_bases:
            children[parent[i]].append(i)
        else:
            ready.append(place[i])
    heapq.heapify(ready)
    sequence: list[int] = []
    while ready:
        sequence.append(met[heapq.heappop(ready)])
        for c in children[sequence[-1]]:
            heapq.heappush(ready, place[c])
    return tuple(sequence)


class _Columns:
    """Allocation of the columns that are propagated from body to body, from the tips to the roots.

    A body reads the columns of the bodies further out from there. Once it is eliminated its places are reused, so that
    few are in use at a time and stay in the cache. Columns of relations between coordinates exist before the first body
    is eliminated, and have places of their own.
    """

    def __init__(
        self, nodes_at: Sequence[Sequence[int]], width: Ints, parent: Ints, roots: set[int], order: Sequence[int],
        related: set[int],
    ):  # fmt: skip
        self.end = 0  # number of places so far
        self._width = width
        self._free: dict[int, list[int]] = {}  # places by number of columns
        self._place: dict[tuple[int, int], int] = {}  # by body and node
        self._up: dict[tuple[int, int], tuple[int, int]] = {}
        for i in order:
            self._place |= {(i, k): self._new(k) for k in nodes_at[i] if k in related}
        for i in order:
            p = int(parent[i])
            for k in nodes_at[i] if i not in roots else ():
                first = (p, k) not in self._place
                if first:
                    self._place[p, k] = self._new(k)
                self._up[i, k] = self._place[p, k], int(first)
            for k in nodes_at[i]:
                if k not in related and (i, k) in self._place:
                    self._free.setdefault(int(width[k]), []).append(self._place[i, k])

    def _new(self, k: int) -> int:
        free = self._free.get(int(self._width[k]))
        if free:
            return free.pop()
        self.end += int(self._width[k])
        return self.end - int(self._width[k])

    def of(self, i: int, k: int) -> tuple[int, int, int]:
        """Columns of the node at place k at body i, or -1; those at the parent, or -1; whether it is the first."""
        return self._place.get((i, k), -1), *self._up.get((i, k), (-1, 0))


def with_cuts(system: System, bodies: Sequence[int]) -> tuple[Ints, NDArray[np.float64], dict[int, int]]:
    """Arrays of the system with the joints of these bodies added to the cuts, and the cut of each body.

    The joints stay in the tree for the kinematics. Their rows follow those of the system.
    """
    key, model, origin = tuple(bodies), system.model, system.kept.origin
    shared = origin if origin is not None and origin.ints is system.ints else system  # structure alone decides these
    ints, cut_of = shared.kept.find("cut", key, lambda: _cut_also(system, key))
    frames = system.kept.find("cut frames", key, lambda: _frames_of(system, key))
    end = model.body.size + model.cut_frames.size
    return ints, np.concatenate([system.floats[:end], frames.ravel(), system.floats[end:]]), cut_of


def _frames_of(system: System, bodies: Sequence[int]) -> NDArray[np.float64]:
    """Frames of the tree joints of bodies, as cuts have them."""
    joints, body = {j.body: j for j in system.joints.values() if j.in_tree}, system.model.body
    axes = body[:, rec.BODY_AXES : rec.BODY_AXES + 9].reshape(-1, 3, 3)
    own = list(zip(body[:, rec.ORIGIN : rec.ORIGIN + 3], axes, strict=True))
    return frames_of_cuts([joints[i] for i in bodies], own)


def _cut_also(system: System, bodies: Sequence[int]) -> tuple[Ints, dict[int, int]]:
    """Integers of the system with the joints of these bodies added to the cuts, and the cut of each body."""
    model = system.model
    joints = {j.body: j for j in system.joints.values() if j.in_tree}
    added: list[list[int]] = []
    cut_of: dict[int, int] = {}
    row = system.nc
    for i in bodies:
        j = joints[i]
        cut_of[i] = len(model.cut) + len(added)
        added.append([j.parent, j.child, j.spec.kind, row, len(j.spec.rows_when_cut), -1, 0])
        row += len(j.spec.rows_when_cut)
    cut = np.concatenate([model.cut, np.array(added, np.int64).reshape(-1, rec.N_CUT)])
    cut_frames = np.zeros((len(cut), rec.N_CUT_FRAMES))
    header = dict(enumerate(system.ints[: rec.H_SIZE].tolist())) | {rec.H_CUTS: len(cut), rec.H_NC: row}
    tables = {s.name: getattr(model, s.name) for s in segments(rec.Model)}
    ints, _ = rec.pack_model(header, **(tables | {"cut": cut, "cut_frames": cut_frames}))
    return ints, cut_of
