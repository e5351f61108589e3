"""Edges along which a point slides: the row of the edge while it presses, and where the edge ends.

Beyond a corner the gap of a point is its distance from the corner, whose curvature has no bound: no motion keeps it
closed. So the row of a point, or of a corner of another profile, that presses on an edge is that of the straight line
of the edge, and the run must find the moment at which the point passes the end, where the side opens. A round body goes
round the corner instead, and leaves where the force would have to pull. A curve has no such line: the run must only
find its end.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from loopdyn.contacts.base import Side
from loopdyn.contacts.edges import Edges, edges_of_row
from loopdyn.system.system import State, System
from loopdyn.thresholds import AT_LIMIT
from loopdyn.tree.functions import body_motion, increment

Array = NDArray[np.float64]

SHORT = 1e-6  # s: of which only the direction of a motion counts


def _edges(system: System, side: Side) -> Edges | None:
    return system.kept.find("edges", side.name, lambda: edges_of_row(side.row, system.mechanism.resolver()))


def _seen(system: System, edges: Edges, state: State) -> Array:
    """The point where the body with the edges was at the reference pose, in the plane of the edges."""
    motion, on, of = body_motion(system, state), system.bodies.index(edges.on), system.bodies.index(edges.of)
    (x, R), (y, Q) = system.reference_poses[on], system.reference_poses[of]
    p = motion.position[of] + motion.rotation[of] @ (Q.T @ (edges.tip - y))
    found: Array = x + R @ (motion.rotation[on].T @ (p - motion.position[on]))
    flat: Array = found - ((found - edges.points[0]) @ edges.normal) * edges.normal
    return flat


def edge_at(system: System, side: Side, state: State) -> tuple[int, bool]:
    """Number of the edge on which a side presses at a state, and whether its point is at an end and moves beyond it.

    At a corner it is the edge into which the point moves; -1 if there is none that ends.
    """
    edges = _edges(system, side)
    if edges is None or not edges.chain:
        return (-1 if edges is None else 0), False
    p, a, b = _seen(system, edges, state), edges.points[:-1], edges.points[1:]
    length = np.linalg.norm(b - a, axis=1)
    along = (b - a) / length[:, None]
    u = np.clip(((p - a) * along).sum(axis=1), 0.0, length)
    apart = np.linalg.norm(p - a - u[:, None] * along, axis=1)
    near = AT_LIMIT * system.size
    moved = _seen(system, edges, State(state.t, increment(system, state.q, SHORT * state.v), state.v)) - p
    into = np.where(u <= near, 1.0, np.where(u >= length - near, -1.0, 0.0)) * (along @ moved)
    k = int(np.argmax(np.where(apart <= apart.min() + near, into, -np.inf)))
    stopped = edges.pocket[0] and k == 0 and u[k] <= near
    stopped = stopped or (edges.pocket[1] and k == len(a) - 1 and u[k] > near)
    return k, bool(apart[k] <= near and into[k] < -near * SHORT and not stopped)


def pressing_row(system: System, side: Side, edge: int) -> Side:
    """A side with the row that holds while it presses on an edge; of no edge, or a curve, its own."""
    edges = _edges(system, side)
    if edges is None or not edges.chain or edge < 0:
        return side
    return replace(side, row=edges.line(edge, system.units.factor("length")))


def ends_of(system: System, side: Side, edge: int) -> Ends | None:
    """Event function of the ends of an edge; None if there are none."""
    edges = _edges(system, side)
    found = None if edges is None or edge < 0 else Ends(system, edges, edge)
    return found if found is not None and found.ends else None


class Ends:
    """Event function: how far a point is from the ends of edge k, negative beyond one."""

    def __init__(self, system: System, edges: Edges, k: int):
        self.system, self.edges, points, last = system, edges, edges.points, len(edges.points) - 1
        ends = [(0, edges.beyond[0], False), (last, edges.beyond[1], False)] if not edges.chain else []
        if edges.chain:
            along = points[k + 1] - points[k]
            ends = [(k, -along, edges.pocket[0] and k == 0), (k + 1, along, edges.pocket[1] and k + 1 == last)]
        self.ends = [(n, beyond / np.linalg.norm(beyond)) for n, beyond, stopped in ends if not stopped]

    def __call__(self, t: float, q: Array, v: Array) -> float:
        """Least distance from an end, negative beyond it; of a curve only next to its first and last point."""
        points = self.edges.points
        p = _seen(self.system, self.edges, State(t, q, v))
        apart = np.linalg.norm(points - p, axis=1)
        nearest, found = int(np.argmin(apart)), float(np.ptp(points, axis=0).max())
        for k, beyond in self.ends:
            if self.edges.chain or nearest == k:
                over = float((p - points[k]) @ beyond)
                found = min(found, -over if over > 0.0 else float(apart[k]))
        return found
