"""Bodies and joints as a graph: edges, spanning forests, loops. Bodies are numbers; there is no geometry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Edge:
    """Joint as an edge of the graph, between rows of the body table."""

    name: str
    parent: int
    child: int
    type: str
    freedoms: int
    loaded: bool = False  # carries a spring, motor or friction: better kept in the tree
    read: bool = False  # an element depends on the turns of its angle: cut only if that holds for a whole loop
    rotor: bool = False  # has armature: must be kept in the tree

    def other(self, body: int) -> int:
        """Body at the other end."""
        return self.child if body == self.parent else self.parent


@dataclass(frozen=True)
class Forest:
    """Rooted spanning forest: for each body its parent and the joint to it (-1: a free root)."""

    parent: list[int]
    joint: list[int]
    order: list[int]  # bodies, parents first, each branch contiguous
    depth: list[int]


@dataclass(frozen=True)
class Loop:
    """Closed chain: bodies and joints in order around it, its base, and the joint that closes it."""

    bodies: tuple[str, ...]
    joints: tuple[str, ...]
    base: str
    closing: str

    def __str__(self) -> str:
        chain = " ".join(f"{b} -{j}-" for b, j in zip(self.bodies, self.joints, strict=True))
        return f"{chain} {self.bodies[0]}"


def adjacency(n: int, edges: Sequence[Edge]) -> list[list[int]]:
    """Joints of each body."""
    adjacent: list[list[int]] = [[] for _ in range(n)]
    for k, e in enumerate(edges):
        adjacent[e.parent].append(k)
        adjacent[e.child].append(k)
    return adjacent


def tree_path(forest: Forest, a: int, b: int, n_bases: int, limit: int) -> tuple[list[int], list[int]] | None:
    """Bodies and joints from a to b along the tree, None if more than `limit` joints; all bases count as one body."""
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
