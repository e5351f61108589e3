"""Choice of the tree joints and the cut joints.

The only geometry used is whether a body at the end of a branch has enough inertia along the freedoms of its joint.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from loopdyn.system.graph import Edge, Forest, adjacency, tree_path

# An unsupported body is supported by exchanging cuts; each round must support at least one body.
Unsupported = Callable[["Forest"], list[int]]


def shallow_forest(
    names: Sequence[str],
    edges: Sequence[Edge],
    adjacent: Sequence[Sequence[int]],
    n_bases: int,
    free: Sequence[int] = (),
) -> Forest:
    """Breadth-first forest from the bases, then from a root of each floating component.

    Welds do not count as a step. Among joints that reach a body at the same depth, a joint is preferred if an element
    depends on its angle, then if it carries a load, then if it has few freedoms, then by name: the result does not
    depend on the order in which joints were written.

    Bodies that are `free` are roots from which the tree grows last: bodies reachable from others are attached there.
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
    return root_forest(n, edges, n_bases, [k for k in joint if k >= 0], joint)


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
            welds = (k for k in adjacent[b] if edges[k].freedoms == 0)
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


def root_forest(n: int, edges: Sequence[Edge], n_bases: int, tree: Sequence[int], joint: Sequence[int]) -> Forest:
    """Root the forest of the joints `tree`: parents, depths, and an order that keeps branches contiguous.

    Bodies whose entry in `joint` is -1 are free roots. Branches are ordered along the loops that connect them: data
    that is used together is near in memory, whatever the order of the file.
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
            parent[root], depth[root] = 0, 1  # a free root is connected to the ground by its added joint
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
    """Position of each body in a depth-first traversal along joints that does not pass through a base."""
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
    """Forest that remains without `cuts`, or the joints of a loop that still remains."""
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
    return root_forest(len(names), edges, n_bases, kept, joint)


def _path_joints(edges: Sequence[Edge], kept: Sequence[int], closing: Edge, n_bases: int) -> list[int]:
    """Joints on the path between the ends of `closing` through the joints `kept`; bases count as one body.

    None if the ends are connected by added free joints only.
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
    """Exchange cuts so that joints with armature are in the tree, if another joint of the loop has none."""
    n = len(forest.parent)
    cut = [k for k in range(len(edges)) if edges[k].rotor and k not in set(forest.joint)]
    for k in sorted(cut, key=lambda k: edges[k].name):
        tree = [j for j in forest.joint if j >= 0]
        others = [j for j in _path_joints(edges, tree, edges[k], n_bases) if not edges[j].rotor]
        if others:
            out = min(others, key=lambda j: (edges[j].loaded, -edges[j].freedoms, edges[j].name))
            joint = [-1 if b >= n_bases and forest.joint[b] < 0 else -2 for b in range(n)]
            forest = root_forest(n, edges, n_bases, sorted({*tree, k} - {out}), joint)
    return forest


def supported_forest(
    names: Sequence[str], edges: Sequence[Edge], n_bases: int, forest: Forest, unsupported: Unsupported
) -> Forest:
    """Exchange cuts so that no massless body is left at the end of a branch, if possible.

    `unsupported` lists bodies, once for each of their freedoms without inertia. Exchanges are tried in the order of
    names: the result does not depend on the order of the description.
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
    """Forest with the joint `into` in place of the joint `out`, and the same free roots."""
    n = len(forest.parent)
    kept = sorted(({k for k in forest.joint if k >= 0} - {out}) | {into})
    joint = [-1 if b >= n_bases and forest.joint[b] < 0 else -2 for b in range(n)]
    return root_forest(n, edges, n_bases, kept, joint)


def _worth(edges: Sequence[Edge], forest: Forest, k: int) -> tuple[bool, int, int, str]:
    """Sort key for the order in which tree joints are cut."""
    e = edges[k]
    return (e.loaded, -e.freedoms, -max(forest.depth[e.parent], forest.depth[e.child]), e.name)


def forest_of_read_joints(
    edges: Sequence[Edge], n_bases: int, forest: Forest, unsupported: Unsupported | None
) -> Forest:
    """Exchange cuts so that no joint is cut on whose angle an element depends, if another joint of the loop can be.

    One pass is enough: a joint that closes a loop of only such joints does so in every tree that holds them. Among the
    joints that can be cut instead, one without a load is preferred, then one with many freedoms (few rows), then one
    far from the root (a shallow tree), then by name; rotors stay in the tree. `unsupported`: see
    :func:`supported_forest`; an exchange must not add to it.
    """
    inside = set(forest.joint)
    for k in sorted((k for k, e in enumerate(edges) if e.read and k not in inside), key=lambda k: edges[k].name):
        found = tree_path(forest, edges[k].parent, edges[k].child, n_bases, len(edges))
        path = [] if found is None or -1 in found[1] else found[1]
        free = [j for j in path if not (edges[j].read or edges[j].rotor)]
        for out in sorted(free, key=partial(_worth, edges, forest)):
            other = _exchanged(edges, n_bases, forest, out, k)
            if unsupported is None or len(unsupported(other)) <= len(unsupported(forest)):
                forest = other
                break
    return forest
