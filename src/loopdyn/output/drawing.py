"""Geometry of a picture of a mechanism: shapes of the bodies, joints, springs, and the view.

Only geometry, in body frames; :mod:`loopdyn.output.plot` and :mod:`loopdyn.output.viewer` draw it. A body looks like
the parts its mass properties were given by (rods, boxes, cylinders, spheres, meshes, discs that roll). Joint points
that no part reaches, and bodies without such parts, get bars and plates between their joints.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from loopdyn.engine import records as rec
from loopdyn.errors import LoopdynError
from loopdyn.model.inertia import Box, Cylinder, Mesh, Point, Rod, Sphere, read_stl
from loopdyn.model.mechanism import Body
from loopdyn.quantities.units import Resolver
from loopdyn.spatial.rotations import perpendicular_frame
from loopdyn.system.system import JointData, Pose, System

Array = NDArray[np.float64]

# Proportions of the picture, relative to the size of the mechanism: thin enough to tell a link from its neighbour,
# thick enough to be seen in a picture of some 500 pixels.
BAR = 0.012  # radius of a bar that was given none
CLOSE = 1e-6  # points nearer than this are one point

# Cosine of the angle below which directions count as parallel or, as a sine, as perpendicular.
PARALLEL = 1e-6

# One colour per body, in turn: distinct for most colour-blind readers, readable on light and dark ground.
COLOURS = ("#3b7dd8", "#e08a1e", "#2ba58c", "#b5539b", "#d1495b", "#7a6bd1", "#8a9a2b", "#4aa3c7", "#a8703c", "#6c7a89")
GROUND_COLOUR = "#8a8f98"


class RunLike(Protocol):
    """Attributes of a run that plots and pages need."""

    @property
    def system(self) -> System:
        """Mechanism of the run."""

    @property
    def data(self) -> Any:
        """xarray.Dataset: q, v, a, wrench, energies and residuals over time, in declared units."""

    def poses(self) -> tuple[Array, Array]:
        """Positions (time, body, 3) in m and rotations (time, body, 3, 3) of the frames of `system.bodies`."""

    def velocities(self) -> tuple[Array, Array]:
        """Velocities and angular velocities (time, body, 3) of these frames, in world axes."""


def determined(data: Any) -> Any:
    """Flags (joint, component) of statically determinate reactions, from a run's data."""
    for variable in data.data_vars.values():
        if variable.dims == ("joint", "component") and variable.dtype == bool:
            return variable
    raise LoopdynError(
        "the run has reactions but no marks of indeterminate components (bool by joint and component). "
        "Keep them with 'wrench' in its data."
    )


@dataclass(frozen=True)
class Shape:
    """Shape of a part of a body, in the body's own frame.

    ``size`` is (radius, length) of a rod or cylinder along z, the edges of a box, (radius,) of a sphere, (thickness,)
    of a plate normal to z. ``points`` are the corners (n, 2) of a plate, in order, or the triangles (n, 3, 3) of a
    mesh.
    """

    kind: Literal["rod", "box", "cylinder", "sphere", "plate", "mesh"]
    position: Array
    axes: Array  # columns
    size: tuple[float, ...]
    points: Array | None = None

    def outline(self) -> Array:
        """Points (n, 3) that enclose it, in the body's own frame."""
        if self.kind == "mesh":
            assert self.points is not None
            local = self.points.reshape(-1, 3)
        elif self.kind == "plate":
            assert self.points is not None
            local = np.column_stack([self.points, np.zeros(len(self.points))])
        else:
            half = {
                "rod": lambda r, length: (r, r, length / 2),
                "cylinder": lambda r, length: (r, r, length / 2),
                "sphere": lambda r: (r, r, r),
                "box": lambda x, y, z: (x / 2, y / 2, z / 2),
            }[self.kind](*self.size)  # type: ignore[operator]
            signs = np.array(np.meshgrid([-1, 1], [-1, 1], [-1, 1])).reshape(3, -1).T
            local = signs * np.array(half)
        result: Array = self.position + local @ self.axes.T
        return result

    def reaches(self, p: Array, margin: float) -> bool:
        """Whether a point of the body's frame is in the shape or nearer to it than `margin`."""
        x, y, z = self.axes.T @ (p - self.position)
        if self.kind == "sphere":
            return bool(np.linalg.norm((x, y, z)) <= self.size[0] + margin)
        if self.kind == "box":
            return bool(np.all(np.abs((x, y, z)) <= np.array(self.size) / 2 + margin))
        if self.kind in ("rod", "cylinder"):
            return bool(np.hypot(x, y) <= self.size[0] + margin and abs(z) <= self.size[1] / 2 + margin)
        return True  # the fastening points of a mesh are not known here


@dataclass(frozen=True)
class DrawnBody:
    """A body and its shapes."""

    name: str
    row: int
    mass: float
    com: Array  # in its own frame
    colour: str
    shapes: tuple[Shape, ...]


@dataclass(frozen=True)
class Span:
    """Spring, actuator or distance: a line between points of two bodies, each in its body's frame."""

    name: str
    kind: Literal["coil", "piston", "rod"]
    bodies: tuple[int, int]
    points: tuple[Array, Array]


@dataclass(frozen=True)
class Drawing:
    """Elements to draw of a system."""

    system: System

    @cached_property
    def size(self) -> float:
        """Half the diagonal of the box around joints, centres of mass and given shapes at the reference pose, in m."""
        points = [p for row in range(len(self.system.bodies)) for p in self._world(row, self._fixed_points(row))]
        if not points:
            return 1.0
        span = float(np.linalg.norm(np.ptp(np.array(points), axis=0)) / 2)
        return span if span > 0.0 else 1.0

    @property
    def bar(self) -> float:
        """Radius of a bar that was given none, in m."""
        return BAR * self.size

    @cached_property
    def joints(self) -> tuple[JointData, ...]:
        """Joints that have a symbol: all except free joints."""
        return tuple(j for j in self.system.joints.values() if j.spec.rows_when_cut)

    @cached_property
    def normal(self) -> Array | None:
        """Unit normal of the plane in which all motion takes place; None for a spatial mechanism."""
        found: Array | None = None
        slides = []
        for j in self.system.joints.values():
            z = self.system.reference_poses[j.child][1] @ j.M[1][:, 2]
            if j.spec.type in ("revolute", "planar"):
                if found is not None and np.linalg.norm(np.cross(found, z)) > PARALLEL:
                    return None
                found = z if found is None else found
            elif j.spec.type == "prismatic":
                slides.append(z)
            elif j.spec.type != "weld":
                return None
        if found is None or any(abs(s @ found) > PARALLEL for s in slides):
            return None
        return -found if found[np.argmax(np.abs(found))] < 0 else found  # seen from the positive side

    @cached_property
    def up(self) -> Array:
        """Unit vector opposite to gravity; without gravity z, or y for a mechanism in the xy plane."""
        g = self.system.model.gravity
        if np.linalg.norm(g) > 0.0:
            result: Array = -g / np.linalg.norm(g)
            return result
        flat = self.normal is not None and abs(self.normal[2]) > 0.5
        return np.array([0.0, 1.0, 0.0] if flat else [0.0, 0.0, 1.0])

    @cached_property
    def bodies(self) -> tuple[DrawnBody, ...]:
        """All bodies, the ground included, by row."""
        colours: dict[str, str] = {}
        for name in self.system.mechanism.bodies:
            colours[name] = COLOURS[len(colours) % len(COLOURS)]
        drawn = []
        for row, name in enumerate(self.system.bodies):
            data = self.system.model.body[row]
            mass, com = float(data[rec.MASS]), self._com(row)
            colour = colours.get(name, GROUND_COLOUR)
            drawn.append(DrawnBody(name, row, mass, com, colour, tuple(self._shapes(row))))
        return tuple(drawn)

    @cached_property
    def spans(self) -> tuple[Span, ...]:
        """Springs, actuators and distances between points."""
        m, r = self.system.mechanism, self.system.mechanism.resolver()
        found = []
        for name, element in (*m.forces.items(), *m.constraints.items()):
            if element.drawn_as is None:
                continue
            rows = [self.system.bodies.index(getattr(element, f"body{k}")) for k in "12"]
            points = [r.vector(getattr(element, f"point{k}"), "length", name, ()) for k in "12"]
            local = [self._local(row, p) for row, p in zip(rows, points, strict=True)]
            found.append(Span(name, element.drawn_as, (rows[0], rows[1]), (local[0], local[1])))
        return tuple(found)

    def joint_points(self, row: int) -> list[Array]:
        """Different points of a body at which joints, springs and distances are fastened, in its own frame."""
        points: list[Array] = []
        for j in self.joints:
            points += [frame[0] for body, frame in ((j.parent, j.F), (j.child, j.M)) if body == row]
        for s in self.spans:
            points += [p for body, p in zip(s.bodies, s.points, strict=True) if body == row]
        return _distinct(points, CLOSE * self.system.size)

    # ---------------------------------------------------------------------------------------- shapes

    def _local(self, row: int, point: Array) -> Array:
        """A world point at the reference pose, in the body's own frame."""
        p, R = self.system.reference_poses[row]
        result: Array = R.T @ (point - p)
        return result

    def _world(self, row: int, points: list[Array]) -> list[Array]:
        p, R = self.system.reference_poses[row]
        return [p + R @ x for x in points]

    def _com(self, row: int) -> Array:
        result: Array = self.system.mass_centres[row]
        return result

    def _fixed_points(self, row: int) -> list[Array]:
        points = self.joint_points(row)
        if self.system.bodies[row] in self.system.mechanism.bodies:
            points.append(self._com(row))
        for shape in self._given(row, 0.0):
            points += list(shape.outline())
        return points

    def _given(self, row: int, bar: float) -> list[Shape]:
        """Shapes of the parts of a body's mass properties, and of discs and spheres that roll."""
        m, name = self.system.mechanism, self.system.bodies[row]
        body, r = m.bodies.get(name), m.resolver()
        shapes = [] if body is None else [s for _, part in body.parts() if (s := _shape(part, r, bar)) is not None]
        if body is not None and _in_world_axes(body):
            p, R = self.system.reference_poses[row]
            shapes = [_moved(s, (-R.T @ p, R.T)) for s in shapes]
        for element in m.constraints.values():
            wheel = element.wheel()
            if wheel is not None and wheel.body == name:
                radius = r.scalar(wheel.radius, "length", name, ())
                centre = self._local(row, r.vector(wheel.centre, "length", name, ()))
                if wheel.axis is None:
                    shapes.append(Shape("sphere", centre, np.eye(3), (radius,)))
                else:
                    axis = self.system.reference_poses[row][1].T @ r.direction(wheel.axis, name, ())
                    shapes.append(Shape("cylinder", centre, perpendicular_frame(axis).T, (radius, 2 * bar)))
        return shapes

    def _shapes(self, row: int) -> list[Shape]:
        shapes = self._given(row, self.bar)
        if row == 0:  # the ground: its supports are drawn with the joints
            return shapes
        com, points = self._com(row), self.joint_points(row)
        if shapes:
            loose = [p for p in points if not any(s.reaches(p, 2 * self.bar) for s in shapes)]
            return shapes + [self._bar(p, com) for p in loose if np.linalg.norm(p - com) > self.bar]
        if len(points) == 1 and np.linalg.norm(points[0] - com) > self.bar:
            return [self._bar(points[0], com), Shape("sphere", com, np.eye(3), (2.5 * self.bar,))]
        if len(points) < 2:
            return [Shape("sphere", com, np.eye(3), (2.5 * self.bar,))]
        return self._between(np.array(points))

    def _between(self, points: Array) -> list[Shape]:
        """A bar between two joints, a plate through several in a plane, bars from the middle otherwise."""
        middle = points.mean(axis=0)
        _, spread, axes = np.linalg.svd(points - middle, full_matrices=True)
        flat = CLOSE * self.size
        along = (points - middle) @ axes[0]
        if len(points) == 2 or spread[1] <= flat:
            return [self._bar(points[np.argmin(along)], points[np.argmax(along)])]
        if len(points) > 3 and spread[2] > flat:
            return [self._bar(middle, p) for p in points]
        if np.linalg.det(axes) < 0.0:
            axes[2] *= -1.0
        local = (points - middle) @ axes.T
        return [Shape("plate", middle, axes.T, (1.2 * self.bar,), _hull(local[:, :2]))]

    def _bar(self, a: Array, b: Array) -> Shape:
        return _rod(a, b, self.bar)


# ------------------------------------------------------------------------------------------ conversion


def _in_world_axes(body: Body) -> bool:
    return body.pose is not None and body.axes == "world"


def _shape(part: Any, r: Resolver, bar: float) -> Shape | None:
    """Shape of a part of mass properties, in the axes it was written in; None if it has none."""
    name = "drawing"  # the numbers were checked when the mechanism was compiled

    def vector(value: Any) -> Array:
        return r.vector(value, "length", name, ())

    def length(value: Any) -> float:
        return r.scalar(value, "length", name, ())

    match part:
        case Rod():
            return _rod(vector(part.start), vector(part.end), max(length(part.radius), bar))
        case Box():
            turned = np.eye(3) if part.rotation is None else part.rotation.resolve(r, name, ())
            x, y, z = (length(edge) for edge in part.size)
            return Shape("box", vector(part.at), turned, (x, y, z))
        case Cylinder():
            axes = perpendicular_frame(r.direction(part.axis, name, ())).T
            return Shape("cylinder", vector(part.at), axes, (length(part.radius), length(part.length)))
        case Sphere():
            return Shape("sphere", vector(part.at), np.eye(3), (length(part.radius),))
        case Point():
            return Shape("sphere", vector(part.at), np.eye(3), (2.5 * bar,))
        case Mesh():
            turned = np.eye(3) if part.rotation is None else part.rotation.resolve(r, name, ())
            triangles = read_stl(Path(part.file)) * r.units.factor("length")
            return Shape("mesh", vector(part.at), turned, (), triangles)
    return None  # mass properties alone


def _rod(a: Array, b: Array, radius: float) -> Shape:
    length = float(np.linalg.norm(b - a))
    return Shape("rod", (a + b) / 2, perpendicular_frame((b - a) / length).T, (radius, length))


def _moved(shape: Shape, pose: Pose) -> Shape:
    p, R = pose
    return Shape(shape.kind, p + R @ shape.position, R @ shape.axes, shape.size, shape.points)


def _distinct(points: list[Array], distance: float) -> list[Array]:
    found: list[Array] = []
    for p in points:
        if all(np.linalg.norm(p - other) > distance for other in found):
            found.append(p)
    return found


def _hull(points: Array) -> Array:
    """Corners of the convex hull of points in a plane, anticlockwise."""
    from scipy.spatial import ConvexHull

    result: Array = points[ConvexHull(points).vertices]
    return result


# ------------------------------------------------------------------------------------------- quantities


def world_frames(poses: tuple[Array, Array], joint: JointData, end: str) -> tuple[Array, Array]:
    """Positions (time, 3) and axes (time, 3, 3) of frame "F" or "M" of a joint."""
    body, (p, A) = (joint.parent, joint.F) if end == "F" else (joint.child, joint.M)
    x, R = poses[0][:, body], poses[1][:, body]
    return x + R @ p, R @ A
