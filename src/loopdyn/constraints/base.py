"""Base of all constraints: their contract and their records in the frozen arrays.

A constraint type is one file, named after the type: its code, a subclass of :class:`Constraint` with the user's data,
and the kernel that writes its rows (`rows` of a pair, `terms` of a linear constraint).
:mod:`loopdyn.constraints.dispatch` lists the types and chooses among them.

A *pair* constraint relates a frame F on one body to a frame M on another, like a cut joint, and is written in
the same terms (see :mod:`loopdyn.joints.rows`): rows of `phi`, direction `G` of the load on the second body
at M's origin, and `gamma`. A *linear* constraint relates joint coordinates. Where time enters, `phi_t`
receives the rate of change of `phi` that is not due to motion, and `gamma` the second derivative.
"""

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from loopdyn.engine.jit import inline
from loopdyn.forces.base import Freedom, Places
from loopdyn.quantities.expressions import Program, run_program
from loopdyn.quantities.units import Path, Place, Resolver, Scalar, Spec, Vec3
from loopdyn.spatial.plucker import put3

Array = NDArray[np.float64]

# Codes of pair constraints in kernels begin here; smaller ones are joint types. Linear constraints have codes of their
# own.
FIRST_CONSTRAINT = 20

IDENTITY = np.eye(3)


@dataclass
class PairRecord:
    """A constraint between two bodies as the kernels see it; points and axes in the bodies' own terms."""

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
    """A relation between joint coordinates: one row whose direction is the sum of factor * direction of each freedom.

    The variables of its program are t and, for each freedom j, its coordinate (1 + 2 j) and its speed (2 + 2 j), as
    far as the type offers them. The factors are these coefficients, or computed at the state.
    """

    freedoms: list[Freedom]
    coefficients: list[float]
    program: Program
    dimension: str  # of the row: "angle" or "length"
    holonomic: bool = True  # whether it constrains positions


class Wheel(NamedTuple):
    """A disc of a body about an axis, or without an axis a sphere; as the user gave them."""

    body: str
    centre: Place
    radius: Scalar
    axis: Vec3 | None


class Constraint(Spec):
    """Base of all constraint types."""

    code: ClassVar[int]  # in kernels
    angles: ClassVar[tuple[str, ...]] = ()  # names of the rows of a pair that are angles; others are lengths
    nonholonomic: ClassVar[tuple[str, ...]] = ()  # names of the rows of a pair that constrain velocities only
    affine: ClassVar[bool] = True  # whether its rows are certainly affine in the speeds
    drawn_as: ClassVar[Literal["rod"] | None] = None  # between `point1` of `body1` and `point2` of `body2`

    type: str

    def resolve(self, r: Resolver, places: Places, element: str, path: Path) -> PairRecord | LinearRecord | None:
        """Record for the kernels; None if a problem was recorded."""
        raise NotImplementedError

    def bodies(self) -> tuple[str, ...]:
        """Bodies that it connects; none if it relates joint coordinates."""
        return ()

    def joints(self) -> tuple[str, ...]:
        """Joints whose coordinates it relates."""
        return ()

    def reads(self) -> tuple[str, ...]:
        """Labels of the joint coordinates whose value, not only rate, it depends on."""
        return ()

    def wheel(self) -> Wheel | None:
        """Shape of a body for drawings; None if it has none."""
        return None


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


def guided(
    c: Any, names: tuple[str, ...], axes: Array, r: Resolver, places: Places, element: str, path: Path
) -> PairRecord | None:
    """A `point` of `body` guided by a frame of `on` at `through`, by default at the point itself."""
    bodies = two_bodies(c.on, c.body, ("on", "body"), r, places, element, path)
    p = r.vector(c.point, "length", element, (*path, "point"))
    origin = p if c.through is None else r.vector(c.through, "length", element, (*path, "through"))
    if bodies is None:
        return None
    F, M = (frame_rows(places, body, axes) for body in bodies)
    return PairRecord(bodies, places.point(bodies[0], origin), places.point(bodies[1], p), names, F, M)


@inline
def put_motion(jets, j, x, dx, ddx):
    """Variables of entry j along the motion: its coordinate and its speed, with their derivatives."""
    put3(jets, 1 + 2 * j, 0, (x, dx, ddx))
    put3(jets, 2 + 2 * j, 0, (dx, ddx, 0.0 * ddx))


@inline
def motion_in_time(model, work, n):
    """Value, rate and acceleration of program n, which has no variable but t, at the present time."""
    jets = work.jets
    jets[0, 0], jets[0, 1], jets[0, 2] = work.t[0], 1.0, 0.0
    return run_program(model.code, model.program[n], model.program[n + 1], model.constants, jets, work.stack)
