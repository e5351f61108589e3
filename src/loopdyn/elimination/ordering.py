"""Order of elimination of a sparse symmetric matrix, and the pattern of its factor."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


def minimum_degree(sizes: Sequence[int], cliques: Iterable[Sequence[int]]) -> tuple[list[int], list[list[int]]]:
    """Order of elimination, and for each node in this order the later nodes it is coupled with.

    The node with the fewest rows among its neighbours comes first; ties go to the smaller number, so the order does
    not depend on chance.

    Parameters
    ----------
    sizes : sequence of int
        Rows of each node.
    cliques : iterable of sequences of int
        Groups of nodes that are all coupled with one another.

    Examples
    --------
    >>> minimum_degree([1, 1, 1], [(0, 1), (1, 2)])
    ([0, 1, 2], [[1], [2], []])
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
    done = [False] * len(sizes)
    order, later = [], []
    while heap:
        known, a = heapq.heappop(heap)
        if done[a] or known != degree(a):
            continue
        done[a] = True
        order.append(a)
        later.append(sorted(near[a]))
        for b in near[a]:
            near[b] |= near[a]
            near[b] -= {a, b}
        for b in near[a]:
            heapq.heappush(heap, (degree(b), b))
    return order, later


@dataclass(frozen=True)
class Pattern:
    """Pattern of L in P A P^T = L D L^T, row by row and column by column.

    Rows of a node are consecutive. `row_columns[row_start[k]:row_start[k+1]]` are the columns of row k in ascending
    order and `row_places` where these entries are in the columns; `column_rows[column_start[i]:column_start[i+1]]`
    are the rows of column i.
    """

    first: Ints  # (nodes + 1,) first row of the node at each place of the order
    place: Ints  # (nodes,) place of each node in the order
    row_start: Ints
    row_columns: Ints
    row_places: Ints
    column_start: Ints
    column_rows: Ints
    earlier: tuple[dict[int, int], ...]  # by place: offset, in a row, of the columns of each earlier place

    @property
    def rows(self) -> int:
        """Rows of the matrix."""
        return int(self.first[-1])

    @property
    def entries(self) -> int:
        """Entries of L below the diagonal."""
        return len(self.row_columns)

    @property
    def flops(self) -> int:
        """Multiplications and additions of the factorisation."""
        counts = np.diff(self.column_start)
        return int(np.sum(counts * (counts + 2)))

    def where(self, a: int, b: int) -> int:
        """Place of entry (a, b), a >= b, in an array that holds the diagonal and then the rows of L."""
        if a == b:
            return a
        p, q = (int(np.searchsorted(self.first, k, side="right")) - 1 for k in (b, a))
        return self.rows + int(self.row_start[a]) + self.earlier[q].get(p, 0) + b - int(self.first[p])


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
    earlier: list[dict[int, int]] = [{} for _ in range(n)]
    before = [0] * n  # columns that each place has gathered from earlier ones
    for p in range(n):
        for q in ahead[p]:
            earlier[q][p] = before[q]
            before[q] += width[p]
    column_start: list[int] = [0]
    column_rows: list[int] = []
    offset_of: list[dict[int, int]] = []
    for p in range(n):
        beyond: list[int] = []
        offset = {}
        for q in ahead[p]:
            offset[q] = len(beyond)
            beyond += range(first[q], first[q + 1])
        offset_of.append(offset)
        for i in range(first[p], first[p + 1]):
            column_rows += range(i + 1, first[p + 1])
            column_rows += beyond
            column_start.append(len(column_rows))
    row_start, row_columns, row_places = [0], [], []
    for q in range(n):
        for k in range(first[q], first[q + 1]):
            for p in earlier[q]:
                beyond_node = offset_of[p][q] + k - int(first[q])
                for i in range(first[p], first[p + 1]):
                    row_columns.append(i)
                    row_places.append(column_start[i] + int(first[p + 1]) - i - 1 + beyond_node)
            for i in range(first[q], k):
                row_columns.append(i)
                row_places.append(column_start[i] + k - i - 1)
            row_start.append(len(row_columns))
        earlier[q][q] = before[q]
    return Pattern(
        first,
        place,
        np.array(row_start, np.int64),
        np.array(row_columns, np.int64),
        np.array(row_places, np.int64),
        np.array(column_start, np.int64),
        np.array(column_rows, np.int64),
        tuple(earlier),
    )
