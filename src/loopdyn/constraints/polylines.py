"""Polylines in the plane: crossings, orientation, convex chains.

A convex chain is a longest run of edges between two corners that turn to the right (pockets), or between the ends. A
round body touches each chain in at most one place, so that one gap per chain describes all contacts that can be closed
at the same time: both walls of a pocket, or of a slot.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

LARGE = 1e9  # sizes of a polyline: farther than anything

STRAIGHT = 1e-12  # sine of a turn below which two edges are one straight line


def across(a: Array, b: Array) -> Array:
    """Cross product of plane vectors, along the last axis."""
    found: Array = a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]
    return found


def signed_area(points: Array) -> float:
    """Area of a closed polyline, positive if it is counter-clockwise."""
    return 0.5 * float(across(points, np.roll(points, -1, axis=0)).sum())


def crossing(points: Array, closed: bool) -> tuple[int, int] | None:
    """Numbers of two edges that cross or touch, other than at the corner between neighbours; None if there are none."""
    ends = np.roll(points, -1, axis=0) if closed else points[1:]
    starts = points if closed else points[:-1]
    n = len(starts)
    edges = ends - starts
    turns = across(edges, np.roll(edges, -1, axis=0))
    back = (
        np.abs(turns) <= STRAIGHT * np.linalg.norm(edges, axis=1) * np.linalg.norm(np.roll(edges, -1, 0), axis=1)
    ) & ((edges * np.roll(edges, -1, axis=0)).sum(axis=1) < 0.0)
    folded = np.flatnonzero(back if closed else back[:-1])
    if folded.size:
        return int(folded[0]), int((folded[0] + 1) % n)
    i, j = np.triu_indices(n, 2)
    if closed:
        apart = ~((i == 0) & (j == n - 1))
        i, j = i[apart], j[apart]
    a, b, c, d = starts[i], ends[i], starts[j], ends[j]
    side = [across(b - a, c - a), across(b - a, d - a), across(d - c, a - c), across(d - c, b - c)]
    proper = (side[0] * side[1] < 0.0) & (side[2] * side[3] < 0.0)
    touches = np.zeros(len(i), bool)
    for s, p, (q0, q1) in zip(side, (c, d, a, b), ((a, b), (a, b), (c, d), (c, d)), strict=True):
        touches |= (s == 0.0) & (((p - q0) * (p - q1)).sum(axis=1) <= 0.0)
    found = np.flatnonzero(proper | touches)
    return (int(i[found[0]]), int(j[found[0]])) if found.size else None


@dataclass
class Chain:
    """A convex chain: numbers of its corners in order, and whether its first and its last edge end in a pocket."""

    corners: list[int]  # the first again at the end if the chain is closed
    first_in_pocket: bool
    last_in_pocket: bool


def turns(points: Array, closed: bool) -> Array:
    """Sine of the turn at each corner, positive to the left (convex); 1 at the ends of an open polyline."""
    before, after = points - np.roll(points, 1, axis=0), np.roll(points, -1, axis=0) - points
    with np.errstate(all="ignore"):
        found: Array = across(before, after) / np.linalg.norm(before, axis=1) / np.linalg.norm(after, axis=1)
    if not closed:
        found[[0, -1]] = 1.0
    return found


def pockets(points: Array, closed: bool) -> list[int]:
    """Corners that turn to the right."""
    return [int(k) for k in np.flatnonzero(turns(points, closed) < -STRAIGHT)]


def with_split(points: Array, flat: Array) -> Array:
    """Closed polyline with one more point, in the middle of an edge, if it has only one pocket.

    Both edges of the only pocket would be ends of one chain, which has one gap.
    """
    found, n = pockets(flat, True), len(points)
    if len(found) != 1:
        return points
    lengths = np.linalg.norm(np.roll(points, -1, axis=0) - points, axis=1)
    lengths[[found[0], found[0] - 1]] = 0.0
    k = int(np.argmax(lengths))
    return np.insert(points, k + 1, 0.5 * (points[k] + points[(k + 1) % n]), axis=0)


def convex_chains(points: Array, closed: bool) -> list[Chain]:
    """Chains of a polyline, split at its pockets; with only one, also at a point on a straight edge."""
    n, found = len(points), pockets(points, closed)
    if closed and not found:
        return [Chain([*range(n), 0], False, False)]
    if closed and len(found) == 1:
        found += [int(k) for k in np.flatnonzero(np.abs(turns(points, closed)) <= STRAIGHT)[:1]]
    inner = set(pockets(points, closed))
    ends = sorted(found)
    ends = [*ends, ends[0] + n] if closed else [0, *ends, n - 1]
    return [Chain([k % n for k in range(a, b + 1)], a % n in inner, b % n in inner) for a, b in pairwise(ends)]


def convex_corners(points: Array, closed: bool) -> list[int]:
    """Corners with which a polyline can touch a straight edge: those that turn to the left, and the ends."""
    return [int(k) for k in np.flatnonzero(turns(points, closed) > STRAIGHT)]


def depths(points: Array, closed: bool, edges: list[tuple[int, int]]) -> list[float]:
    """Half of the least thickness of the material behind each edge: what is deeper belongs to the other side.

    The thickness is piecewise linear along an edge, and least at one of its ends or where another corner is behind it.
    """
    n = len(points)
    walls = [(k, (k + 1) % n) for k in range(n if closed else n - 1)]
    return [0.5 * min(_behind(points, a, b, walls), default=np.inf) for a, b in edges]


def _behind(points: Array, a: int, b: int, walls: list[tuple[int, int]]) -> list[float]:
    """Distances from edge (a, b) to what is behind it, straight into the material."""
    edge = points[b] - points[a]
    length = float(np.linalg.norm(edge))
    along = edge / length
    inward = np.array([-along[1], along[0]])
    seen = np.column_stack([(points - points[a]) @ along, (points - points[a]) @ inward])
    found = [
        float(y) for k, (x, y) in enumerate(seen) if k not in (a, b) and 0.0 < x < length and y > STRAIGHT * length
    ]
    for x in (0.0, length):
        for p, q in walls:
            if {a, b} & {p, q}:
                continue
            (x0, y0), (x1, y1) = seen[p], seen[q]
            if min(x0, x1) <= x <= max(x0, x1) and x0 != x1:
                y = float(y0 + (y1 - y0) * (x - x0) / (x1 - x0))
                found += [y] if y > STRAIGHT * length else []
    return found


def pocket_radius(points: Array, closed: bool, k: int) -> float:
    """Half of the distance from pocket k to the nearest edge that does not end in it.

    A body that moves into a pocket passes below the ends of both its edges at once: within this distance, where there
    is nothing else, each edge goes on.
    """
    n = len(points)
    size = float(np.ptp(points, axis=0).max())
    distances = [LARGE * size]
    for p, q in [(i, (i + 1) % n) for i in range(n if closed else n - 1)]:
        if k not in (p, q):
            edge = points[q] - points[p]
            u = np.clip((points[k] - points[p]) @ edge / (edge @ edge), 0.0, 1.0)
            distances.append(float(np.linalg.norm(points[k] - points[p] - u * edge)))
    return 0.5 * min(distances)
