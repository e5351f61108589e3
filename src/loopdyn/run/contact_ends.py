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

from loopdyn.constraints.gaps import ON_CHAIN, ON_CURVE
from loopdyn.constraints.higher_pair import HigherPair, gaps_between
from loopdyn.constraints.point_on_curve import FIRST, IS_CLOSED, LAST, SAMPLE
from loopdyn.constraints.shapes import LineShape, PointShape
from loopdyn.contacts.base import Side
from loopdyn.system.system import State, System
from loopdyn.thresholds import AT_LIMIT
from loopdyn.tree.functions import body_motion, increment

Array = NDArray[np.float64]


SHORT = 1e-6  # s: of which only the direction of a motion counts


class Edges:
    """Edges of one profile on which a point of the other one presses: a convex chain, or an open curve as one edge.

    Parameters
    ----------
    system : System
        Without contacts.
    row : HigherPair
        Gap of the side.
    """

    def __init__(self, system: System, row: HigherPair):
        self.system, self.row, self.points = system, row, np.zeros((0, 3))
        found = gaps_between(row.shape1, row.shape2, row.normal, system.mechanism.resolver(), "", ())
        assert found is not None  # compile() has checked it
        gap, origin = found.gaps[row.gap - 1], found.origin
        self.chain, self.on_second, self.pocket = gap.kind == ON_CHAIN, gap.on_second, (False, False)
        self.tip, self.normal = gap.centre + origin, found.normal
        if gap.radius > 0.0:
            return
        if self.chain:
            count = int(gap.surface[0])
            self.points = np.reshape(gap.surface[3 : 3 + 3 * count], (count, 3)) + origin
            self.pocket = gap.surface[1] > 0.0, gap.surface[2] > 0.0
        elif gap.kind == ON_CURVE and not gap.curve[3].constants[IS_CLOSED]:
            data = gap.curve[3].constants
            self.points = data[SAMPLE:].reshape(-1, 3)
            jets = np.array([[law.jet([(u, 1.0, 0.0)]) for law in gap.curve[:3]] for u in data[[FIRST, LAST]]])
            self.beyond = jets[:, :, 1] * [[-1.0], [1.0]]
        names = (row.body2, row.body1) if gap.on_second else (row.body1, row.body2)
        self.on, self.of = (system.bodies.index(name) for name in names)

    def nearest(self, state: State) -> tuple[int, bool]:
        """Number of the nearest edge, and whether the point is at its end and moves beyond it.

        At a corner it is the edge into which the point moves; -1 if there is none with an end.
        """
        if not len(self.points):
            return -1, False
        if not self.chain:
            return 0, False
        p, a, b = self.seen(state), self.points[:-1], self.points[1:]
        length = np.linalg.norm(b - a, axis=1)
        along = (b - a) / length[:, None]
        u = np.clip(((p - a) * along).sum(axis=1), 0.0, length)
        apart = np.linalg.norm(p - a - u[:, None] * along, axis=1)
        near = AT_LIMIT * self.system.size
        moved = self.seen(State(state.t, increment(self.system, state.q, SHORT * state.v), state.v)) - p
        into = np.where(u <= near, 1.0, np.where(u >= length - near, -1.0, 0.0)) * (along @ moved)
        k = int(np.argmax(np.where(apart <= apart.min() + near, into, -np.inf)))
        stops = (k == 0 and self.pocket[0] and u[k] <= near) or (k == len(a) - 1 and self.pocket[1] and u[k] > near)
        return k, bool(apart[k] <= near and into[k] < -near * SHORT and not stops)

    def seen(self, state: State) -> Array:
        """The point where the body with the edge was at the reference pose, in the plane of the edge."""
        motion, poses = body_motion(self.system, state), self.system.reference_poses
        (x, R), (y, Q) = poses[self.on], poses[self.of]
        p = motion.position[self.of] + motion.rotation[self.of] @ (Q.T @ (self.tip - y))
        found: Array = x + R @ (motion.rotation[self.on].T @ (p - motion.position[self.on]))
        flat: Array = found - ((found - self.points[0]) @ self.normal) * self.normal
        return flat

    def line(self, k: int) -> HigherPair:
        """Row of the straight line of edge k."""
        unit = self.system.units.factor("length")
        a, b = self.points[k], self.points[k + 1]
        edge = LineShape(through=tuple(a / unit), outward=tuple(np.cross(b - a, self.normal)))
        shapes = (edge, PointShape(at=tuple(self.tip / unit)))
        first, second = reversed(shapes) if self.on_second else shapes
        return HigherPair(
            body1=self.row.body1, shape1=first, body2=self.row.body2, shape2=second, normal=self.row.normal
        )


class Ends:
    """Event function: how far a point is from the ends of edge k, negative beyond one."""

    def __init__(self, edges: Edges, k: int):
        self.edges, points = edges, edges.points
        last = len(points) - 1
        if edges.chain:
            along = points[k + 1] - points[k]
            ends = [(k, -along, edges.pocket[0] and k == 0), (k + 1, along, edges.pocket[1] and k + 1 == last)]
        else:
            ends = [(0, edges.beyond[0], False), (last, edges.beyond[1], False)]
        self.ends = [(n, beyond / np.linalg.norm(beyond)) for n, beyond, stopped in ends if not stopped]

    def __call__(self, t: float, q: Array, v: Array) -> float:
        """Least distance from an end, negative beyond it; of a curve only next to its first and last point."""
        edges = self.edges
        p = edges.seen(State(t, q, v))
        apart = np.linalg.norm(edges.points - p, axis=1)
        nearest, found = int(np.argmin(apart)), float(np.ptp(edges.points, axis=0).max())
        for k, beyond in self.ends:
            if edges.chain or nearest == k:
                over = float((p - edges.points[k]) @ beyond)
                found = min(found, -over if over > 0.0 else float(apart[k]))
        return found


def edges_of(system: System, side: Side) -> Edges | None:
    """Edges that a side presses on; None if it is no contact of profiles."""
    row = side.row
    if not isinstance(row, HigherPair):
        return None
    return system.kept.find("edges", side.name, lambda: Edges(system, row))


def edge_at(system: System, side: Side, state: State) -> tuple[int, bool]:
    """Number of the edge on which a side presses at a state, -1 for none that ends; whether it leaves it there."""
    edges = edges_of(system, side)
    return (-1, False) if edges is None else edges.nearest(state)


def pressing_row(system: System, side: Side, edge: int) -> Side:
    """A side with the row that holds while it presses on an edge."""
    edges = edges_of(system, side)
    return replace(side, row=edges.line(edge)) if edges is not None and edges.chain and edge >= 0 else side


def ends_of(system: System, side: Side, edge: int) -> Ends | None:
    """Event function of the ends of an edge; None if there are none."""
    edges = edges_of(system, side)
    found = None if edges is None or edge < 0 else Ends(edges, edge)
    return found if found is not None and found.ends else None
