"""Edges of a profile on which a point of the other one presses: a convex chain of a polyline, or an open curve."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loopdyn.constraints.gaps import ON_CHAIN, ON_CURVE
from loopdyn.constraints.higher_pair import HigherPair, gaps_between
from loopdyn.constraints.point_on_curve import FIRST, IS_CLOSED, LAST, SAMPLE
from loopdyn.constraints.shapes import LineShape, PointShape
from loopdyn.quantities.units import Resolver

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Edges:
    """Edges and the point, in world axes of the reference pose, SI.

    Attributes
    ----------
    row : HigherPair
        Gap of the side.
    on, of : str
        Bodies of the edges and of the point.
    points : (n, 3)
        Corners of the chain, or samples of the curve, which is one edge.
    beyond : (2, 3)
        Directions in which a curve ends; none for a chain.
    pocket : tuple of bool
        Whether the first and the last edge end in a pocket, whose other edge stops the point.
    tip, normal : (3,)
        The point, and the normal of the plane.
    """

    row: HigherPair
    on: str
    of: str
    points: Array
    beyond: Array
    pocket: tuple[bool, bool]
    tip: Array
    normal: Array

    @property
    def chain(self) -> bool:
        """Whether the edges are straight."""
        return not len(self.beyond)

    def line(self, k: int, unit: float) -> HigherPair:
        """Row of the straight line of edge k; `unit` is that of lengths."""
        a, b = self.points[k], self.points[k + 1]
        edge = LineShape(through=tuple(a / unit), outward=tuple(np.cross(b - a, self.normal)))
        point, row = PointShape(at=tuple(self.tip / unit)), self.row
        first, second = (edge, point) if self.on == row.body1 else (point, edge)
        return HigherPair(body1=row.body1, shape1=first, body2=row.body2, shape2=second, normal=row.normal)


def edges_of_row(row: Any, r: Resolver) -> Edges | None:
    """Edges of the row of a side; None if it has none, or if a round body touches them, which goes round their ends."""
    if not isinstance(row, HigherPair):
        return None
    found = gaps_between(row.shape1, row.shape2, row.normal, r, "", ())
    if found is None or found.gaps[row.gap - 1].radius > 0.0:
        return None
    gap, pocket, beyond = found.gaps[row.gap - 1], (False, False), np.zeros((0, 3))
    if gap.kind == ON_CHAIN:
        count = int(gap.surface[0])
        points = np.reshape(gap.surface[3 : 3 + 3 * count], (count, 3)) + found.origin
        pocket = gap.surface[1] > 0.0, gap.surface[2] > 0.0
    elif gap.kind == ON_CURVE and not gap.curve[3].constants[IS_CLOSED]:
        data = gap.curve[3].constants
        points = data[SAMPLE:].reshape(-1, 3)
        jets = np.array([[law.jet([(u, 1.0, 0.0)]) for law in gap.curve[:3]] for u in data[[FIRST, LAST]]])
        beyond = jets[:, :, 1] * [[-1.0], [1.0]]
    else:
        return None
    names = (row.body2, row.body1) if gap.on_second else (row.body1, row.body2)
    return Edges(row, *names, points, beyond, pocket, gap.centre + found.origin, found.normal)
