"""What all constraints share: their records in the frozen arrays.

A *pair* constraint relates a frame F on one body to a frame M on another, like a cut joint, and is written in
the same terms (see :mod:`loopdyn.joints.rows`): rows of `phi`, direction `G` of the load on the second body
at M's origin, and `gamma`. A *linear* constraint relates joint coordinates. Where time enters, `explicit`
receives the rate of change of `phi` that is not due to motion, and `gamma` the second derivative.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from loopdyn.engine.records import LINEAR
from loopdyn.forces.base import Freedom, Places
from loopdyn.quantities.expressions import Program
from loopdyn.quantities.units import Path, Resolver, Spec

Array = NDArray[np.float64]

# Codes of the pair constraints in kernels; smaller codes are joint types.
DISTANCE, POINT_ON_LINE, POINT_ON_PLANE, POINT_ON_CURVE = range(20, 24)
POINT_MOTION, SLOT, ROLLING_SPHERE, ROLLING_DISC = range(24, 28)
FIRST_CONSTRAINT = DISTANCE

IDENTITY = np.eye(3)


@dataclass
class PairRecord:
    """A constraint between two bodies as the kernels see it; points and axes in the bodies' own terms."""

    kind: int
    bodies: tuple[int, int]
    F_point: Array
    M_point: Array
    rows: tuple[str, ...]  # names of the rows
    F_axes: Array = field(default_factory=lambda: IDENTITY)  # rows are the axes
    M_axes: Array = field(default_factory=lambda: IDENTITY)
    par: tuple[float, float] = (0.0, 0.0)
    programs: list[Program] = field(default_factory=list)


@dataclass
class LinearRecord:
    """A relation of joint coordinates: one row whose direction is the sum of factor * direction of each freedom.

    LINEAR: sum coefficient * coordinate = program(t). RELATION and VELOCITY_RELATION: program = 0, with the
    variables t and, for each freedom, its coordinate and its speed; the coefficients are then unused.
    """

    freedoms: list[Freedom]
    coefficients: list[float]
    program: Program
    dimension: str  # of the row: "angle" or "length"
    kind: int = LINEAR


class Constraint(Spec):
    """Base of all constraint types."""

    type: str

    def resolve(self, r: Resolver, places: Places, element: str, path: Path) -> PairRecord | LinearRecord | None:
        """Record for the kernels; None if a problem was recorded."""
        raise NotImplementedError

    def joints(self) -> tuple[str, ...]:
        """Joints whose coordinates it relates."""
        return ()

    def reads(self) -> tuple[str, ...]:
        """Labels of the joint coordinates whose value, not only whose speed, it depends on."""
        return ()


def two_bodies(
    first: str, second: str, keys: tuple[str, str], r: Resolver, places: Places, element: str, path: Path
) -> tuple[int, int] | None:
    """Rows of two different bodies; None, with the problem recorded, otherwise."""
    rows = tuple(places.body(b, element, (*path, k)) for b, k in zip((first, second), keys, strict=True))
    if min(rows) < 0:
        return None
    if rows[0] == rows[1]:
        r.problem(element, f"relates body '{first}' to itself", "Name two different bodies.", (*path, keys[1]))
        return None
    return rows[0], rows[1]


def frame_rows(places: Places, body: int, axes: Array) -> Array:
    """Rows of a world frame at the reference pose, in the axes of a body."""
    return np.ascontiguousarray(places.axes(body, axes.T).T)
