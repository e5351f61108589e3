"""Order of elimination of a sparse symmetric matrix, and the pattern of its factor."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from loopdyn.loops.elimination.layout import N_NODE, START

Ints = NDArray[np.int64]


def minimum_degree(
    sizes: Sequence[int], cliques: Iterable[Sequence[int]], after: Mapping[int, Sequence[int]] | None = None
) -> tuple[list[int], list[list[int]]]:
    """Order of elimination, and for each node in this order the later nodes it is coupled with.

    The node with the fewest rows among its neighbours comes first; ties go to the smaller number, so the order does
    not depend on chance.

    Parameters
    ----------
    sizes : sequence of int
        Rows of each node.
    cliques : iterable of sequences of int
        Groups of nodes that are all coupled with one another.
    after : mapping, optional
        Nodes that must be eliminated before a node; it is coupled with all of them.

    Examples
    --------
    >>> minimum_degree([1, 1, 1], [(0, 1), (1, 2)])
    ([0, 1, 2], [[1], [2], []])
    >>> minimum_degree([1, 1, 1], [(0, 1), (1, 2)], after={0: [1]})[0]
    [2, 1, 0]
    """
    near: list[set[int]] = [set() for _ in sizes]
    for clique in cliques:
        for a in clique:
            near[a].update(clique)
    for a, found in enumerate(near):
        found.discard(a)

    def degree(a: int) -> int:
        return sum(sizes[b] for b in near[a])

    heap = [(degree(a), a) for a in range(len(sizes))]
    heapq.heapify(heap)
    done, waits = [False] * len(sizes), after or {}
    order, later = [], []
    while heap:
        known, a = heapq.heappop(heap)
        if done[a] or known != degree(a) or not all(done[b] for b in waits.get(a, ())):
            continue  # it is found again when a node that it is coupled with is eliminated
        done[a] = True
        order.append(a)
        later.append(sorted(near[a]))
        for b in near[a]:
            near[b] |= near[a]
            near[b] -= {a, b}
        for b in near[a]:
            heapq.heappush(heap, (degree(b), b))
    return order, later


def postorder(order: Sequence[int], later: Sequence[Sequence[int]]) -> tuple[list[int], list[list[int]]]:
    """Order of the same elimination in which each node follows closely after those that change it.

    Like :func:`minimum_degree` it returns the order and the later nodes that each is coupled with. A node is changed by
    the elimination of nodes that are coupled with it, and these form the elimination tree: the parent of a node is the
    first of its later nodes. Branches of the tree are independent and may be eliminated one after another. The factor
    stays the same, and data that are needed one after another lie close together in memory.

    Examples
    --------
    >>> postorder([0, 1, 2, 3], [[2], [3], [3], []])
    ([1, 0, 2, 3], [[3], [2], [3], []])
    """
    place = {a: p for p, a in enumerate(order)}
    children: dict[int, list[int]] = {a: [] for a in order}
    roots = []
    for a, found in zip(order, later, strict=True):
        if found:
            children[min(found, key=place.__getitem__)].append(a)
        else:
            roots.append(a)
    made: list[int] = []
    waiting = roots
    while waiting:  # parents before children, last branch first: the reverse of the result
        made.append(waiting.pop())
        waiting += children[made[-1]]
    made.reverse()
    return made, [list(later[place[a]]) for a in made]


@dataclass(frozen=True, eq=False)
class Pattern:
    """Blocks of L in P A P^T = L D L^T; nodes are numbered by their places in the order of elimination.

    The array of the matrix holds, node by node, its square diagonal block (of which the lower half counts) and then the
    rows of the later nodes it is coupled with, in ascending order, each with one entry per row of the node.
    `block` has, for each node and each pair a >= b of these later nodes, where the block of a and b begins: it is
    changed when the node is eliminated.
    """

    first: Ints  # (nodes + 1,) first row of the node at each place of the order
    place: Ints  # (nodes,) place of each node in the order
    node: Ints  # (nodes, N_NODE)
    later: Ints
    block: Ints
    below: tuple[dict[int, int], ...]  # by place: where the rows of each later place begin in the array

    @property
    def rows(self) -> int:
        """Rows of the matrix."""
        return int(self.first[-1])

    @property
    def size(self) -> int:
        """Length of the array of the matrix."""
        width = np.diff(self.first)
        return int(np.sum(width * (width + self._rows_below)))

    @property
    def _rows_below(self) -> Ints:
        """Rows of later nodes that each node is coupled with."""
        width = np.diff(self.first)
        return np.array([sum(int(width[q]) for q in found) for found in self.below], np.int64)

    @property
    def _counts(self) -> Ints:
        """Entries below the diagonal of each column of L."""
        width = np.diff(self.first)
        behind = np.repeat(self.first[1:], width) - 1 - np.arange(self.rows)
        counts: Ints = behind + np.repeat(self._rows_below, width)
        return counts

    @property
    def entries(self) -> int:
        """Entries of L below the diagonal."""
        return int(self._counts.sum())

    @property
    def flops(self) -> int:
        """Multiplications and additions of the factorisation."""
        return int(np.sum(self._counts * (self._counts + 2)))

    def where(self, a: int, b: int) -> int:
        """Start of the block of the nodes at the places a >= b in the array."""
        return int(self.node[b, START]) if a == b else self.below[b][a]


def factor_pattern(sizes: Sequence[int], order: Sequence[int], later: Sequence[Sequence[int]]) -> Pattern:
    """Pattern of the factor for nodes eliminated in `order`.

    Examples
    --------
    >>> order, later = minimum_degree([2, 1], [(0, 1)])
    >>> factor_pattern([2, 1], order, later).entries
    3
    """
    n = len(order)
    place = np.empty(n, np.int64)
    place[list(order)] = np.arange(n)
    width = [sizes[a] for a in order]
    first = np.concatenate([[0], np.cumsum(width, dtype=np.int64)]).astype(np.int64)
    ahead = [sorted(int(place[b]) for b in found) for found in later]
    starts, below = [], []
    end = 0
    for p in range(n):
        starts.append(end)
        end += width[p] ** 2
        found = {}
        for q in ahead[p]:
            found[q] = end
            end += width[q] * width[p]
        below.append(found)
    node = np.zeros((n, N_NODE), np.int64)
    block: list[int] = []
    begin = 0
    for p, beyond in enumerate(ahead):
        node[p] = [first[p], width[p], starts[p], begin, begin + len(beyond), len(block)]
        begin += len(beyond)
        block += [below[b][a] if a != b else starts[a] for k, a in enumerate(beyond) for b in beyond[: k + 1]]
    flat = np.array([q for found in ahead for q in found], np.int64)
    return Pattern(first, place, node, flat, np.array(block, np.int64), tuple(below))
