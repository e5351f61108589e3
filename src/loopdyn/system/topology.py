"""The graph of bodies and joints: spanning tree, cut joints, loops, labelling and matrices [Mufti1983 sections 2, 4].

Pure Python; no geometry beyond the question whether a body that is left at the end of a branch has enough
inertia to be moved there.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from loopdyn.errors import ModelError, Problem
from loopdyn.quantities.wording import nearest

if TYPE_CHECKING:
    import networkx
    from matplotlib.axes import Axes

# An unsupported body is given a support by exchanging cuts; each round must mend at least one body.
Unsupported = Callable[["Forest"], list[int]]


@dataclass(frozen=True)
class Edge:
    """A joint as an edge of the graph, between rows of the body table."""

    name: str
    parent: int
    child: int
    type: str
    freedoms: int
    loaded: bool = False  # carries a spring, motor or friction: better kept in the tree
    read: bool = False  # something depends on the turns of its angle: cut only where all joints of a loop are read
    rotor: bool = False  # has armature: must be kept in the tree

    def other(self, body: int) -> int:
        """The body at the other end."""
        return self.child if body == self.parent else self.parent


@dataclass(frozen=True)
class Forest:
    """A rooted spanning forest: for each body its parent and the joint to it (-1: a free root)."""

    parent: list[int]
    joint: list[int]
    order: list[int]  # bodies, parents first, each branch together
    depth: list[int]


@dataclass(frozen=True)
class Loop:
    """A closed chain: bodies and joints in order around it, its base, and the joint that closes it."""

    bodies: tuple[str, ...]
    joints: tuple[str, ...]
    base: str
    closing: str

    def __str__(self) -> str:
        chain = " ".join(f"{b} -{j}-" for b, j in zip(self.bodies, self.joints, strict=True))
        return f"{chain} {self.bodies[0]}"


@dataclass(frozen=True)
class Incidence:
    """Matrices of the graph in Mufti's regular labelling [Mufti1983 eqs. (1), (22)-(25), (62)].

    Row i belongs to ``bodies[i]``, column i of `S` and row i of `T` to the joint that leads to it. An arc has
    +1 at the body it leaves (towards the root) and -1 at the body it enters; the ground has no row.
    """

    bodies: tuple[str, ...]
    joints: tuple[str, ...]  # inboard joint of each body
    S: NDArray[np.int64]
    C: NDArray[np.int64]  # columns of S whose joint joins two bodies or stands on a base: no free roots
    C_star: NDArray[np.int64]  # cut joints, +1 at the declared parent
    cut: tuple[str, ...]

    @property
    def C_c(self) -> NDArray[np.int64]:
        """Incidence of the closed system, (C, C*) [Mufti1983 eq. (62)]."""
        return np.hstack([self.C, self.C_star])

    @cached_property
    def T(self) -> NDArray[np.int64]:
        """Path matrix S^-1: -1 where the joint of the row is on the path to the body of the column."""
        n = len(self.bodies)
        T = np.zeros((n, n), np.int64)
        for body in range(n):
            # [Mufti1983 eq. (24)]: t_i,j- = t_i,j+ - delta_ij; parents have smaller numbers
            above = np.flatnonzero(self.S[:body, body] == 1)
            if above.size:
                T[:, body] = T[:, above[0]]
            T[body, body] -= 1
        return T


@dataclass(frozen=True)
class Topology:
    """How a mechanism hangs together: tree, cut joints, loops.

    Attributes
    ----------
    name : str
        Name of the mechanism.
    bases : tuple of str
        Ground, and roots whose motion is given.
    order : tuple of str
        Bodies in the order of the arrays, parents before children.
    cuts : tuple of str
        Joints that are cut, i.e. kept as constraints.
    """

    name: str
    names: tuple[str, ...]
    edges: tuple[Edge, ...]
    n_bases: int
    forest: Forest = field(repr=False)

    @property
    def bases(self) -> tuple[str, ...]:
        """Ground, and roots whose motion is given."""
        return self.names[: self.n_bases]

    @cached_property
    def order(self) -> tuple[str, ...]:
        """Bodies in the order of the arrays, parents before children."""
        return tuple(self.names[b] for b in self.forest.order)

    @cached_property
    def cut_edges(self) -> tuple[int, ...]:
        """Indices of the joints that are not in the tree."""
        tree = set(self.forest.joint)
        return tuple(k for k in range(len(self.edges)) if k not in tree)

    @property
    def cuts(self) -> tuple[str, ...]:
        """Names of the cut joints."""
        return tuple(self.edges[k].name for k in self.cut_edges)

    @property
    def free_roots(self) -> tuple[str, ...]:
        """Bodies that float: they are joined to the ground by an added free joint."""
        return tuple(self.names[b] for b in self.forest.order if self.forest.joint[b] < 0)

    def inboard(self, body: str) -> str | None:
        """Name of the joint that leads to `body` in the tree; None for a free root."""
        if body not in self.names:
            raise ModelError([Problem("topology", f"there is no body '{body}'", nearest(body, self.names))])
        k = self.forest.joint[self.names.index(body)]
        return None if k < 0 else self.edges[k].name

    @cached_property
    def loops(self) -> tuple[Loop, ...]:
        """A basis of short loops: each closes by one joint that no earlier loop has."""
        adjacent = adjacency(len(self.names), self.edges)
        tree = shallow_forest(self.names, self.edges, adjacent, self.n_bases)
        return tuple(_short_loops(self.names, self.edges, tree, self.n_bases))

    @cached_property
    def graph(self) -> networkx.MultiGraph:
        """The graph of bodies and joints as a networkx multigraph."""
        import networkx as nx

        g = nx.MultiGraph(name=self.name)
        g.add_nodes_from(self.names)
        cut = set(self.cut_edges)
        for k, e in enumerate(self.edges):
            g.add_edge(self.names[e.parent], self.names[e.child], key=e.name, type=e.type, cut=k in cut)
        return g

    # ---------------------------------------------------------------------------------- Mufti's matrices

    def regular_labelling(self) -> tuple[str, ...]:
        """Bodies in Mufti's regular labelling: the outermost get the highest numbers, round by round."""
        f = self.forest
        children = [0] * len(self.names)
        for b in f.order:
            children[f.parent[b]] += 1
        labels: list[int] = []
        outermost = [b for b in reversed(f.order) if children[b] == 0]
        while outermost:
            labels.extend(outermost)
            following = []
            for b in outermost:
                p = f.parent[b]
                children[p] -= 1
                if children[p] == 0 and p >= self.n_bases:
                    following.append(p)
            outermost = following
        return tuple(self.names[b] for b in reversed(labels))

    def incidence(self) -> Incidence:
        """Incidence matrices C, C*, C_c and path matrix T; dense, made when asked for."""
        f = self.forest
        bodies = self.regular_labelling()
        number = {self.names.index(b): k for k, b in enumerate(bodies)} if len(bodies) < 64 else None
        if number is None:
            index = {name: k for k, name in enumerate(self.names)}
            number = {index[b]: k for k, b in enumerate(bodies)}
        n = len(bodies)
        S = np.zeros((n, n), np.int64)
        joined = []
        names = [""] * n
        for b, k in number.items():
            S[k, k] = -1
            if f.parent[b] in number:
                S[number[f.parent[b]], k] = 1
            names[k] = self.edges[f.joint[b]].name if f.joint[b] >= 0 else f"free:{self.names[b]}"
            joined.append((k, f.joint[b] >= 0))
        C_star = np.zeros((n, len(self.cut_edges)), np.int64)
        for column, e in enumerate(self.edges[k] for k in self.cut_edges):
            if e.parent in number:
                C_star[number[e.parent], column] = 1
            if e.child in number:
                C_star[number[e.child], column] = -1
        keep = [k for k, real in sorted(joined) if real]
        return Incidence(bodies, tuple(names), S, S[:, keep], C_star, self.cuts)

    # ------------------------------------------------------------------------------------------- showing

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self, most: int = 60) -> Iterator[str]:
        bodies = len(self.names) - self.n_bases
        counts = [_count(bodies, "body"), _count(len(self.edges), "joint"), _count(len(self.loops), "loop")]
        yield f"{self.name}: {', '.join(counts)}, {len(self.cuts)} cut"
        yield from islice(self._tree_lines(), most)
        if len(self.names) > most:
            yield f"... and {len(self.names) - most} more bodies"
        cut = [self.edges[k] for k in self.cut_edges]
        for e in cut[:most]:
            yield f"cut: {e.name}, {e.type}, {self.names[e.parent]} - {self.names[e.child]}"
        if len(cut) > most:
            yield f"... and {len(cut) - most} more cut joints"
        for k, loop in enumerate(self.loops[:most]):
            yield f"loop {k + 1}: {loop}   (base {loop.base})"
        if len(self.loops) > most:
            yield f"... and {len(self.loops) - most} more loops"

    def _tree_lines(self) -> Iterator[str]:
        f = self.forest
        children: dict[int, list[int]] = {}
        for b in f.order:
            children.setdefault(f.parent[b], []).append(b)
        for base in range(self.n_bases):
            yield self.names[base] + ("" if base == 0 else " (given motion)")
            below = children.get(base, [])
            stack = [(b, "", b == below[-1]) for b in reversed(below)]
            while stack:
                b, indent, last = stack.pop()
                k = f.joint[b]
                how = "free" if k < 0 else f"{self.edges[k].name}, {self.edges[k].type}"
                turned = k >= 0 and self.edges[k].child != b
                yield f"{indent}{'└─' if last else '├─'} {self.names[b]}  ({how}{', reversed' if turned else ''})"
                below = children.get(b, [])
                inner = indent + ("   " if last else "│  ")
                stack.extend((c, inner, c == below[-1]) for c in reversed(below))

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the graph: bodies as nodes, tree joints as full lines, cut joints dashed.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        matplotlib Axes
        """
        import matplotlib.pyplot as plt
        import networkx as nx

        ax = plt.subplots(figsize=(7, 5), layout="constrained")[1] if ax is None else ax
        place = nx.kamada_kawai_layout(nx.Graph(self.graph)) if len(self.names) > 1 else {self.names[0]: (0.0, 0.0)}
        colours = ["0.75" if name in self.bases else "#9ecae1" for name in self.names]
        nx.draw_networkx_nodes(self.graph, place, nodelist=self.names, node_color=colours, node_size=900, ax=ax)
        nx.draw_networkx_labels(self.graph, place, font_size=8, ax=ax)
        between: dict[tuple[str, str], list[str]] = {}
        for a, b, key, cut in self.graph.edges(keys=True, data="cut"):
            style, colour = ("dashed", "#d62728") if cut else ("solid", "0.2")
            nx.draw_networkx_edges(
                self.graph, place, edgelist=[(a, b, key)], style=style, edge_color=colour, width=1.6, ax=ax
            )
            between.setdefault((a, b), []).append(key)
        labels = {pair: ", ".join(keys) for pair, keys in between.items()}
        nx.draw_networkx_edge_labels(nx.Graph(self.graph), place, edge_labels=labels, font_size=8, ax=ax)
        ax.set_title(f"{self.name}: tree joints full, cut joints dashed")
        ax.set_axis_off()
        return ax


def _count(n: int, noun: str) -> str:
    plural = noun[:-1] + "ies" if noun.endswith("y") else noun + "s"
    return f"{n} {noun if n == 1 else plural}"


# ------------------------------------------------------------------------------------- finding the tree


def adjacency(n: int, edges: Sequence[Edge]) -> list[list[int]]:
    """For each body the joints at it."""
    adjacent: list[list[int]] = [[] for _ in range(n)]
    for k, e in enumerate(edges):
        adjacent[e.parent].append(k)
        adjacent[e.child].append(k)
    return adjacent


def shallow_forest(
    names: Sequence[str],
    edges: Sequence[Edge],
    adjacent: Sequence[Sequence[int]],
    n_bases: int,
    free: Sequence[int] = (),
) -> Forest:
    """Breadth-first forest from the bases, then from a root of each floating component.

    Welds do not count as a step. Among joints that reach a body at the same depth, one whose angle is read is
    preferred, then one that carries a load, then the one with the fewest freedoms (so that a cut has few rows),
    then by name: the result does not depend on the order in which joints were written.

    Bodies that are `free` are roots, grown from last: what can be reached without them hangs there.
    """
    n = len(names)
    joint = [-2] * n
    for b in (*range(n_bases), *free):
        joint[b] = -1
    frontier = list(range(n_bases))
    if free:
        _grow(names, edges, adjacent, joint, frontier)
        frontier = sorted(free, key=lambda b: names[b])
    roots = iter(_floating_roots(names, adjacent, n_bases))
    while True:
        _grow(names, edges, adjacent, joint, frontier)
        root = next((r for r in roots if joint[r] == -2), None)
        if root is None:
            break
        joint[root] = -1
        frontier = [root]
    return hang(n, edges, n_bases, [k for k in joint if k >= 0], joint)


def _grow(
    names: Sequence[str],
    edges: Sequence[Edge],
    adjacent: Sequence[Sequence[int]],
    joint: list[int],
    frontier: list[int],
) -> None:
    """Extend the tree from `frontier` to everything that can be reached."""

    def rank(k: int) -> tuple[bool, bool, int, str]:
        return (not edges[k].read, not edges[k].loaded, edges[k].freedoms, edges[k].name)

    while frontier:
        ring = deque(frontier)
        layer = []
        while ring:  # bodies welded to this layer belong to it
            b = ring.popleft()
            layer.append(b)
            welds = (k for k in adjacent[b] if edges[k].type == "weld")
            for k in sorted(welds, key=lambda k: edges[k].name):
                c = edges[k].other(b)
                if joint[c] == -2:
                    joint[c] = k
                    ring.append(c)
        best: dict[int, int] = {}
        for b in layer:
            for k in adjacent[b]:
                c = edges[k].other(b)
                if joint[c] == -2 and (c not in best or rank(k) < rank(best[c])):
                    best[c] = k
        for c, k in best.items():
            joint[c] = k
        frontier = sorted(best, key=lambda c: names[c])


def _floating_roots(names: Sequence[str], adjacent: Sequence[Sequence[int]], n_bases: int) -> list[int]:
    """Bodies by number of joints, then name: the first of a floating component becomes its root."""
    return sorted(range(n_bases, len(names)), key=lambda b: (-len(adjacent[b]), names[b]))


def hang(n: int, edges: Sequence[Edge], n_bases: int, tree: Sequence[int], joint: Sequence[int]) -> Forest:
    """Root the tree joints `tree`: parents, depths, and an order that keeps branches together.

    Bodies whose entry in `joint` is -1 are free roots. Branches follow each other along the loops that join them: what
    is computed together lies together in memory, whatever the order of the file.
    """
    branches = adjacency(n, [edges[k] for k in tree])
    along = _along_joints(n, edges, n_bases)
    parent, inboard, depth = [-1] * n, [-1] * n, [0] * n
    order: list[int] = []
    seen = [False] * n
    for root in (*range(n_bases), *(b for b in range(n_bases, n) if joint[b] == -1)):
        if seen[root]:
            continue
        seen[root] = True
        if root >= n_bases:
            parent[root], depth[root] = 0, 1  # a free root hangs on the ground by its added joint
        stack = [root]
        while stack:
            b = stack.pop()
            if b >= n_bases:
                order.append(b)
            following = [(edges[tree[i]].other(b), tree[i]) for i in branches[b]]
            for c, k in sorted(following, key=lambda x: -along[x[0]]):
                if not seen[c]:
                    seen[c] = True
                    parent[c], inboard[c], depth[c] = b, k, depth[b] + 1
                    stack.append(c)
    return Forest(parent, inboard, order, depth)


def _along_joints(n: int, edges: Sequence[Edge], n_bases: int) -> list[int]:
    """When each body is met on a walk along joints, in depth first and never through a base."""
    adjacent = adjacency(n, edges)
    met = [0] * n
    count = 0
    seen = [b < n_bases for b in range(n)]
    starts = [edges[k].other(b) for b in range(n_bases) for k in adjacent[b]]
    for start in (*starts, *range(n_bases, n)):
        stack = [start]
        while stack:
            b = stack.pop()
            if seen[b]:
                continue
            seen[b] = True
            count += 1
            met[b] = count
            stack += [c for k in reversed(adjacent[b]) if not seen[c := edges[k].other(b)]]
    return met


def forest_of_cuts(names: Sequence[str], edges: Sequence[Edge], n_bases: int, cuts: set[int]) -> Forest | list[int]:
    """Forest that remains when `cuts` are taken out, or the joints of a loop that still remains."""
    kept = [k for k in range(len(edges)) if k not in cuts]
    leader = list(range(len(names)))

    def find(b: int) -> int:
        while leader[b] != b:
            leader[b] = leader[leader[b]]
            b = leader[b]
        return b

    for b in range(1, n_bases):
        leader[b] = 0
    for k in kept:
        a, b = find(edges[k].parent), find(edges[k].child)
        if a == b:
            return _path_joints(edges, [j for j in kept if j < k], edges[k], n_bases) + [k]
        leader[a] = b
    adjacent = adjacency(len(names), edges)
    joint = [-2] * len(names)
    rooted = {find(0)}
    for b in _floating_roots(names, adjacent, n_bases):
        if find(b) not in rooted:
            rooted.add(find(b))
            joint[b] = -1
    return hang(len(names), edges, n_bases, kept, joint)


def _path_joints(edges: Sequence[Edge], kept: Sequence[int], closing: Edge, n_bases: int) -> list[int]:
    """Joints on the way between the ends of `closing` through the joints `kept`; bases count as one body.

    None where the ends hang together by added free joints only.
    """

    def node(b: int) -> int:
        return 0 if b < n_bases else b

    came: dict[int, tuple[int, int]] = {node(closing.parent): (-1, -1)}
    ring = deque(came)
    neighbours: dict[int, list[int]] = {}
    for k in kept:
        neighbours.setdefault(node(edges[k].parent), []).append(k)
        neighbours.setdefault(node(edges[k].child), []).append(k)
    while ring:
        b = ring.popleft()
        for k in neighbours.get(b, []):
            c = node(edges[k].child) if node(edges[k].parent) == b else node(edges[k].parent)
            if c not in came:
                came[c] = (b, k)
                ring.append(c)
    path, b = [], node(closing.child)
    while came.get(b, (-1, -1))[1] >= 0:
        path.append(came[b][1])
        b = came[b][0]
    return path


def rotors_in_tree(edges: Sequence[Edge], n_bases: int, forest: Forest) -> Forest:
    """Exchange cuts so that joints with armature are in the tree, where another joint of the loop has none."""
    n = len(forest.parent)
    cut = [k for k in range(len(edges)) if edges[k].rotor and k not in set(forest.joint)]
    for k in sorted(cut, key=lambda k: edges[k].name):
        tree = [j for j in forest.joint if j >= 0]
        others = [j for j in _path_joints(edges, tree, edges[k], n_bases) if not edges[j].rotor]
        if others:
            out = min(others, key=lambda j: (edges[j].loaded, -edges[j].freedoms, edges[j].name))
            joint = [-1 if b >= n_bases and forest.joint[b] < 0 else -2 for b in range(n)]
            forest = hang(n, edges, n_bases, sorted({*tree, k} - {out}), joint)
    return forest


def supported_forest(
    names: Sequence[str], edges: Sequence[Edge], n_bases: int, forest: Forest, unsupported: Unsupported
) -> Forest:
    """Exchange cuts so that no massless body is left at the end of a branch, where that is possible.

    `unsupported` lists bodies, once for each of their loose freedoms. Exchanges are tried in the order of names: the
    result does not depend on the order of the description.
    """
    bad = unsupported(forest)
    while bad:
        better = None
        for candidate in _exchanges(edges, n_bases, forest, sorted(set(bad), key=lambda b: names[b])):
            left = unsupported(candidate)
            if len(left) < len(bad) and (better is None or len(left) < len(better[1])):
                better = (candidate, left)
                if not left:
                    break
        if better is None:
            return forest
        forest, bad = better
    return forest


def _exchanges(edges: Sequence[Edge], n_bases: int, forest: Forest, bad: Sequence[int]) -> Iterator[Forest]:
    """Forests that put a cut joint at an unsupported body into the tree and cut another of its loop."""
    tree = [k for k in forest.joint if k >= 0]
    inside = set(tree)
    for b in bad:
        at_body = (k for k in range(len(edges)) if k not in inside and b in (edges[k].parent, edges[k].child))
        for k in sorted(at_body, key=lambda k: edges[k].name):
            path = _path_joints(edges, tree, edges[k], n_bases)
            for out in sorted((k for k in path if not edges[k].rotor), key=lambda k: (edges[k].read, edges[k].name)):
                yield _exchanged(edges, n_bases, forest, out, k)


def _exchanged(edges: Sequence[Edge], n_bases: int, forest: Forest, out: int, into: int) -> Forest:
    """Forest with the joint `into` in the place of the joint `out`, and the same free roots."""
    n = len(forest.parent)
    kept = sorted(({k for k in forest.joint if k >= 0} - {out}) | {into})
    joint = [-1 if b >= n_bases and forest.joint[b] < 0 else -2 for b in range(n)]
    return hang(n, edges, n_bases, kept, joint)


def _worth(edges: Sequence[Edge], forest: Forest, k: int) -> tuple[bool, int, int, str]:
    """Order in which joints of the tree are given up."""
    e = edges[k]
    return (e.loaded, -e.freedoms, -max(forest.depth[e.parent], forest.depth[e.child]), e.name)


def forest_of_read_joints(
    edges: Sequence[Edge], n_bases: int, forest: Forest, unsupported: Unsupported | None
) -> Forest:
    """Exchange cuts so that no joint whose angle is read is cut, where another joint of a loop can be.

    One pass is enough: a joint that closes a loop of read joints alone does so in every tree that holds them. Among the
    joints that can be cut instead, one without a load is preferred, then one with many freedoms (few rows), then one
    far from the root (a shallow tree), then by name; rotors stay in the tree. `unsupported`: see
    :func:`supported_forest`; an exchange must not add to it.
    """
    inside = set(forest.joint)
    for k in sorted((k for k, e in enumerate(edges) if e.read and k not in inside), key=lambda k: edges[k].name):
        tree_path = _tree_path(forest, edges[k].parent, edges[k].child, n_bases, len(edges))
        path = [] if tree_path is None or -1 in tree_path[1] else tree_path[1]
        free = [j for j in path if not (edges[j].read or edges[j].rotor)]
        for out in sorted(free, key=partial(_worth, edges, forest)):
            other = _exchanged(edges, n_bases, forest, out, k)
            if unsupported is None or len(unsupported(other)) <= len(unsupported(forest)):
                forest = other
                break
    return forest


# --------------------------------------------------------------------------------------------- the loops


def _short_loops(names: Sequence[str], edges: Sequence[Edge], forest: Forest, n_bases: int) -> Iterator[Loop]:
    """For each joint outside the tree, from the root outwards, a shortest loop through it and earlier ones."""
    tree = set(forest.joint)
    usable: list[list[int]] = [[] for _ in names]
    for k in tree:
        if k >= 0:
            usable[edges[k].parent].append(k)
            usable[edges[k].child].append(k)
    depth = forest.depth

    def reach(k: int) -> tuple[int, int, str]:
        a, b = depth[edges[k].parent], depth[edges[k].child]
        return (max(a, b), min(a, b), edges[k].name)

    for k in sorted((k for k in range(len(edges)) if k not in tree), key=reach):
        e = edges[k]
        bodies, joints = _short_path(edges, forest, usable, e, n_bases)
        usable[e.parent].append(k)
        usable[e.child].append(k)
        base = min(bodies, key=lambda b: (depth[b], names[b]))
        start = bodies.index(base)  # the loop is told from its base
        around = [*joints, k]
        yield Loop(
            tuple(names[b] for b in bodies[start:] + bodies[:start]),
            tuple(edges[j].name for j in around[start:] + around[:start]),
            names[base],
            e.name,
        )


def _short_path(
    edges: Sequence[Edge], forest: Forest, usable: Sequence[Sequence[int]], e: Edge, n_bases: int
) -> tuple[list[int], list[int]]:
    """Bodies and joints between the ends of `e`: along the tree, or by a detour if that is shorter.

    Both are searched with a growing limit, so that a short loop far from the root does not cost the way to it.
    """
    limit = 8
    while True:
        along = _tree_path(forest, e.parent, e.child, n_bases, limit)
        detour = _detour(edges, usable, e, limit + 1 if along is None else len(along[1]), n_bases)
        if detour is not None:
            return detour
        if along is not None:
            return along
        limit *= 2


def _tree_path(forest: Forest, a: int, b: int, n_bases: int, limit: int) -> tuple[list[int], list[int]] | None:
    """Bodies and joints from a to b along the tree, None if more than `limit` joints; two bases meet as one."""
    up: tuple[list[int], list[int]] = ([a], [])
    down: tuple[list[int], list[int]] = ([b], [])
    while a != b and not (a < n_bases and b < n_bases):
        if len(up[1]) + len(down[1]) == limit:
            return None
        if b < n_bases or (a >= n_bases and forest.depth[a] >= forest.depth[b]):
            up[1].append(forest.joint[a])
            a = forest.parent[a]
            up[0].append(a)
        else:
            down[1].append(forest.joint[b])
            b = forest.parent[b]
            down[0].append(b)
    return up[0] + down[0][-2::-1], up[1] + down[1][::-1]


def _detour(
    edges: Sequence[Edge], usable: Sequence[Sequence[int]], e: Edge, length: int, n_bases: int
) -> tuple[list[int], list[int]] | None:
    """A path between the ends of `e` with fewer than `length` joints, if there is one that avoids the bases.

    No path through a base can be shorter than the tree's: a breadth-first tree already has the shortest ways
    to the bases. So the search never fans out over everything that stands on the ground.
    """
    came: list[dict[int, tuple[int, int]]] = [{e.parent: (-1, -1)}, {e.child: (-1, -1)}]
    fronts = [[e.parent], [e.child]]
    for step in range(length - 1):
        side = step % 2
        following = []
        for b in fronts[side]:
            if b < n_bases:
                continue
            for k in usable[b]:
                c = edges[k].other(b)
                if c in came[side]:
                    continue
                came[side][c] = (b, k)
                if c in came[1 - side]:
                    return _joined(came, c)
                following.append(c)
        fronts[side] = following
    return None


def _joined(came: Sequence[dict[int, tuple[int, int]]], middle: int) -> tuple[list[int], list[int]]:
    halves = []
    for side in (0, 1):
        bodies, joints, b = [middle], [], middle
        while came[side][b][1] >= 0:
            b, k = came[side][b]
            bodies.append(b)
            joints.append(k)
        halves.append((bodies, joints))
    (b0, j0), (b1, j1) = halves
    return b0[::-1] + b1[1:], j0[::-1] + j1
