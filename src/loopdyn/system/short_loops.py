"""Basis of short loops, one for each cut joint."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from loopdyn.system.graph import Edge, Forest, Loop, tree_path


def short_loops(names: Sequence[str], edges: Sequence[Edge], forest: Forest, n_bases: int) -> Iterator[Loop]:
    """Shortest loop through each joint outside the tree and earlier ones, from the root outwards."""
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
        start = bodies.index(base)  # the loop starts at its base
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

    Both are searched with a growing limit, so that a short loop far from the root does not cost the path to the root.
    """
    limit = 8
    while True:
        along = tree_path(forest, e.parent, e.child, n_bases, limit)
        detour = _detour(edges, usable, e, limit + 1 if along is None else len(along[1]), n_bases)
        if detour is not None:
            return detour
        if along is not None:
            return along
        limit *= 2


def _detour(
    edges: Sequence[Edge], usable: Sequence[Sequence[int]], e: Edge, length: int, n_bases: int
) -> tuple[list[int], list[int]] | None:
    """Path between the ends of `e` with fewer than `length` joints that avoids the bases, if there is one.

    No path through a base can be shorter than the tree's: a breadth-first tree already has the shortest paths to the
    bases. So the search never spreads over all bodies on the ground.
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
