"""Spring-damper between a point of one body and a point of another."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from loopdyn.engine.jit import inline
from loopdyn.engine.records import ON_LINE
from loopdyn.forces.base import Force, Places, Record, check_not_negative
from loopdyn.forces.line import OWN, two_points
from loopdyn.quantities.units import Path, Place, Resolver, Scalar

SPRING_DAMPER = 0
STIFFNESS, DAMPING, FREE_LENGTH = range(OWN, OWN + 3)


class SpringDamper(Force):
    """Spring and damper between a point of one body and a point of another.

    The force along the line through the points is ``stiffness*(distance - length) + damping*rate``, pulling
    when positive.

    Parameters
    ----------
    body1, body2 : str
        Names of the bodies.
    point1, point2 : (3,)
        The points, in world coordinates at the reference pose, in units of length.
    stiffness, damping : number
        In units of force per length, and force times second per length.
    length : number, optional
        Free length, in units of length; without it, the distance of the points at the reference pose.

    Examples
    --------
    >>> SpringDamper("crank", "ground", (0, 1, 0), (1, 1, 0), stiffness=100.0).stiffness
    100.0
    """

    label: ClassVar[str] = "spring_damper"
    code: ClassVar[int] = SPRING_DAMPER
    acts_on: ClassVar[int] = ON_LINE
    stores_energy: ClassVar[bool] = True
    drawn_as: ClassVar[Literal["coil"]] = "coil"

    type: Literal["spring_damper"] = "spring_damper"
    body1: str
    body2: str
    point1: Place
    point2: Place
    stiffness: Scalar = 0.0
    damping: Scalar = 0.0
    length: Scalar | None = None

    def __init__(self, *args: Any, **data: Any) -> None:
        names = ("body1", "body2", "point1", "point2", "stiffness", "damping", "length")
        super().__init__(**dict(zip(names, args, strict=False)), **data)

    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]

    def bodies(self) -> tuple[str, ...]:
        """Its two bodies."""
        return self.body1, self.body2

    def preloaded(self) -> Literal["length"]:
        """Its free length."""
        return "length"

    def resolve(self, r: Resolver, places: Places, element: str, path: Path) -> Record | None:
        """Bodies and points; stiffness, damping, free length."""
        ends = two_points(self, r, places, element, path)
        if ends is None:
            return None
        bodies, floats, distance = ends
        k = r.scalar(self.stiffness, "stiffness", element, (*path, "stiffness"))
        c = r.scalar(self.damping, "damping", element, (*path, "damping"))
        free = distance if self.length is None else r.scalar(self.length, "length", element, (*path, "length"))
        check_not_negative(r, element, path, stiffness=k, damping=c, length=free)
        return Record(bodies, floats=[*floats, k, c, free])


@inline
def pull(model, n, length, rate):
    k, c, free = model.force_data[n, STIFFNESS], model.force_data[n, DAMPING], model.force_data[n, FREE_LENGTH]
    return k * (length - free) + c * rate


@inline
def energy(model, n, length):
    stretched = length - model.force_data[n, FREE_LENGTH]
    return 0.5 * model.force_data[n, STIFFNESS] * stretched * stretched
