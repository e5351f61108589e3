"""Spring-dampers: between two points, and on a joint coordinate (linear or torsional)."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np

from loopdyn.forces.base import JOINT_SPRING, SPRING, Force, Places, Record
from loopdyn.quantities.units import Path, Resolver, Scalar, Vec3


class SpringDamper(Force):
    """Spring and damper between a point of one body and a point of another.

    The force along the line through the points is ``stiffness*(distance - length) + damping*rate``, pulling
    when positive.

    Parameters
    ----------
    body1, body2 : str
        Names of the bodies.
    point1, point2 : (3,)
        The points, in world coordinates at the reference pose.
    stiffness, damping : number
        In N/m and N s/m.
    length : number, optional
        Free length; without it, the distance of the points at the reference pose.

    Examples
    --------
    >>> SpringDamper("crank", "ground", (0, 1, 0), (1, 1, 0), stiffness=100.0).stiffness
    100.0
    """

    label: ClassVar[str] = "spring_damper"

    type: Literal["spring_damper"] = "spring_damper"
    body1: str
    body2: str
    point1: Vec3
    point2: Vec3
    stiffness: Scalar = 0.0
    damping: Scalar = 0.0
    length: Scalar | None = None

    def __init__(self, *args: Any, **data: Any) -> None:
        names = ("body1", "body2", "point1", "point2", "stiffness", "damping", "length")
        super().__init__(**dict(zip(names, args, strict=False)), **data)

    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]

    def resolve(self, r: Resolver, places: Places, element: str, path: Path) -> Record | None:
        """Bodies and points; stiffness, damping, free length."""
        ends = two_points(self, r, places, element, path)
        if ends is None:
            return None
        ints, floats, distance = ends
        k = r.scalar(self.stiffness, "stiffness", element, (*path, "stiffness"))
        c = r.scalar(self.damping, "damping", element, (*path, "damping"))
        free = distance if self.length is None else r.scalar(self.length, "length", element, (*path, "length"))
        check_not_negative(r, element, path, stiffness=k, damping=c, length=free)
        return Record(SPRING, ints, [*floats, k, c, free])


def two_points(
    force: object, r: Resolver, places: Places, element: str, path: Path
) -> tuple[list[int], list[float], float] | None:
    """Rows of the two bodies, their points in body axes, and the distance at the reference pose."""
    ints: list[int] = []
    floats: list[float] = []
    world = []
    for k in ("1", "2"):
        name, p = getattr(force, "body" + k), getattr(force, "point" + k)
        ints.append(places.body(name, element, (*path, "body" + k)))
        world.append(r.vector(p, "length", element, (*path, "point" + k)))
    if min(ints) < 0:
        return None
    if ints[0] == ints[1]:
        r.problem(element, "joins a body to itself", "Name two different bodies.", (*path, "body2"))
        return None
    for body, p in zip(ints, world, strict=True):
        floats.extend(places.point(body, p))
    return ints, floats, float(np.linalg.norm(world[1] - world[0]))


def check_not_negative(r: Resolver, element: str, path: Path, **values: float) -> None:
    """Record a problem for each negative value."""
    for name, value in values.items():
        if value < 0.0:
            r.problem(element, f"'{name}' is negative", "Give zero or a positive number.", (*path, name))


class JointSpring(Force):
    """Spring and damper on a joint coordinate: torsional on an angle, linear on a slide.

    The load on the coordinate is ``-stiffness*(position - rest) - damping*speed``.

    Examples
    --------
    >>> JointSpring(joint="A", stiffness=5.0, rest=0.2).rest
    0.2
    """

    label: ClassVar[str] = "joint_spring"

    type: Literal["joint_spring"] = "joint_spring"
    joint: str
    stiffness: Scalar = 0.0
    damping: Scalar = 0.0
    rest: Scalar = 0.0

    def reads(self) -> tuple[str, ...]:
        """Its joint, unless it is a mere damper."""
        return () if self.stiffness == 0.0 else (self.joint,)

    def resolve(self, r: Resolver, places: Places, element: str, path: Path) -> Record | None:
        """Freedom; stiffness, damping, rest position."""
        f = places.freedom(self.joint, element, (*path, "joint"))
        if f is None:
            return None
        turn = "angular_" if f.rotation else ""
        k = r.scalar(self.stiffness, turn + "stiffness", element, (*path, "stiffness"))
        c = r.scalar(self.damping, turn + "damping", element, (*path, "damping"))
        if f.dimension == "" and k != 0.0:
            hint = "Use a bushing, which is meant for several rotations at once."
            r.problem(element, f"'{self.joint}' has no single coordinate for a spring", hint, (*path, "joint"))
            return None
        rest = r.scalar(self.rest, f.dimension or "number", element, (*path, "rest"))
        check_not_negative(r, element, path, stiffness=k, damping=c)
        return Record(JOINT_SPRING, [f.cut, f.index, f.coordinate], [k, c, rest])
