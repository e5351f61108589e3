"""Stop: bounds of a joint coordinate, of the distance of two points, or of a measure; rigid or compliant."""

from __future__ import annotations

from typing import ClassVar, Literal

from loopdyn.constraints.base import Constraint
from loopdyn.constraints.distance import Distance
from loopdyn.constraints.driver import Driver
from loopdyn.contacts.base import OneSided, Side, check_restitution
from loopdyn.forces.actuator import Actuator
from loopdyn.forces.base import Force, Places, check_not_negative
from loopdyn.forces.motor import Motor
from loopdyn.quantities.units import Path, Place, Resolver, Scalar
from loopdyn.quantities.wording import element_of, nearest

POINTS = ("body1", "body2", "point1", "point2")
BOUNDS = ("lower", "upper")
ENDLESS = (float("inf"), -float("inf"))


class Stop(OneSided):
    """Stop: a joint coordinate, the distance of two points, or a measure stays within bounds.

    The part that reaches a rigid bound rebounds by its restitution, comes to rest there, and leaves it again when the
    force of the stop would have to pull. With a `stiffness` the stop is compliant: beyond the bound, at the depth d, it
    pushes back with ``stiffness*d + damping*d'``, which never pulls, and with nothing inside the bounds.

    Parameters
    ----------
    joint : str, optional
        Label of the coordinate, e.g. ``"A"`` or ``"C.slide"``.
    body1, body2 : str, optional
        Instead of `joint`: the two bodies of the points whose distance is bounded.
    point1, point2 : (3,), optional
        Points whose distance is bounded, in world coordinates at the reference pose.
    measure : str, optional
        Instead of `joint`: name of a measure of positions that is an angle or a length. Such a stop is rigid.
    lower, upper : number, optional
        Bounds in units of angle or length; without them those of the joint's `limits`.
    restitution : number, optional
        Coefficient of restitution: speed after an impact divided by speed before, from 0 (plastic) to 1 (elastic).
        By default 0, or with the joint's `limits` the rebound of its `at_limit`.
    stiffness : number, optional
        Of a compliant stop, instead of a restitution: torque per angle or force per length.
    damping : number, optional
        Of a compliant stop: stiffness times second; 0 by default.

    Examples
    --------
    >>> Stop(joint="A", lower=0.0, restitution=0.8).lower
    0.0
    >>> Stop(joint="A", lower=0.0, stiffness=1e4, damping=20.0).damping
    20.0
    """

    label: ClassVar[str] = "stop"

    type: Literal["stop"] = "stop"
    joint: str | None = None
    body1: str | None = None
    body2: str | None = None
    point1: Place | None = None
    point2: Place | None = None
    measure: str | None = None
    lower: Scalar | None = None
    upper: Scalar | None = None
    restitution: Scalar | None = None
    stiffness: Scalar | None = None
    damping: Scalar | None = None

    def joints(self) -> tuple[str, ...]:
        """The joint whose coordinate it bounds."""
        return () if self.joint is None else (element_of(self.joint),)

    def reads(self) -> tuple[str, ...]:
        """The coordinate that it bounds."""
        return () if self.joint is None else (self.joint,)

    def replaces_limits(self) -> tuple[str, ...]:
        """The coordinate, if its own limits are the bounds."""
        return (self.joint,) if self.joint is not None and self.lower is None and self.upper is None else ()

    def _given(self, r: Resolver) -> tuple[list[tuple[str, Scalar]], Scalar | None]:
        """Bounds that there are, by key, and the restitution if it is given, here or by the joint."""
        bounds, e = [self.lower, self.upper], self.restitution
        if self.replaces_limits() and self.joint in r.limits:
            low, high, rebound = r.limits[self.joint]
            bounds, e = [low, high], rebound if e is None else e
        given = [(key, x) for key, x in zip(BOUNDS, bounds, strict=True) if x is not None and x not in ENDLESS]
        return given, e

    def sides(self, name: str, r: Resolver) -> list[Side]:
        """One side for each bound."""
        given, restitution = self._given(r)
        section: Literal["constraints", "drivers", "user_constraints"] = "constraints"
        if self.joint is not None or self.measure is not None:
            section = "drivers" if self.measure is None else "user_constraints"
        return [
            Side(
                name,
                name if len(given) == 1 else f"{name} {key}",
                1 if key == "lower" else -1,
                self._row(x),
                restitution or 0.0,
                self.joint,
                x,
                section,
                measure=self.measure,
                stiffness=self.stiffness or 0.0,
                damping=self.damping or 0.0,
            )
            for key, x in given
        ]

    def _row(self, bound: Scalar) -> Constraint | Driver | None:
        """Constraint that holds while a bound is reached; None for a measure, whose row needs the compiled system."""
        if self.measure is not None:
            return None
        if self.joint is not None:
            return Driver(joint=self.joint, motion=bound)
        points = {key: getattr(self, key) for key in POINTS}
        return Distance(**points, length=bound)

    def force(self, r: Resolver, places: Places, element: str, path: Path) -> Force | None:
        """Motor or actuator whose law is that of the compliant bounds."""
        if self.stiffness is None or self.measure is not None:
            return None
        x = "length" if self.joint is None else "position"
        pushes = {"lower": ("+", f"{x} - ({{}})", "speed"), "upper": ("-", f"({{}}) - {x}", "-speed")}
        law = "0"
        for key, bound in self._given(r)[0]:
            sign, gap, rate = pushes[key]
            law += f" {sign} {self._push(gap.format(bound), rate)}"
        if self.joint is None:
            return Actuator(**{key: getattr(self, key) for key in POINTS}, force=law)
        f = places.freedom(self.joint, element, (*path, "joint"))
        if f is None:
            return None
        return Motor(joint=self.joint, torque=law) if f.rotation else Motor(joint=self.joint, force=law)

    def _push(self, gap: str, rate: str) -> str:
        """Formula of the load of a compliant bound: nothing while its gap is open, and never a pull."""
        return f"step(-({gap}))*max(0, -({self.stiffness})*({gap}) - ({self.damping or 0.0})*({rate}))"

    def check(self, r: Resolver, places: Places, element: str, path: Path) -> None:
        """Record the problems of its numbers, names and points."""
        points = [key for key in POINTS if getattr(self, key) is not None]
        if sum([self.joint is not None, bool(points), self.measure is not None]) != 1:
            hint = "Give either 'joint', or 'body1', 'body2', 'point1' and 'point2', or 'measure'."
            r.problem(element, "bounds one thing: a coordinate, a distance or a measure", hint, path)
            return
        if self.measure is not None and self.measure not in r.measures:
            hint = nearest(self.measure, r.measures)
            r.problem(element, f"there is no measure '{self.measure}'", hint, (*path, "measure"))
            return
        missing = [key for key in POINTS if key not in points] if points else []
        for key in missing:
            r.problem(element, f"'{key}' is missing", "Two bodies and a point on each are needed.", (*path, key))
        given, restitution = self._given(r)
        if not given:
            r.problem(element, "has no bound", "Give 'lower', 'upper' or both, or limits of the joint.", path)
        self._check_law(restitution, r, element, path)
        if missing:
            return
        found = []
        for key, bound in given:
            found.append(r.scalar(bound, "number", element, (*path, key)))
            row = self._row(bound)
            if row is not None:
                row.resolve(r, places, element, path)
        if len(found) == 2 and not found[0] < found[1]:
            hint = "Let 'lower' be below 'upper'; without play use a driver, or a distance constraint."
            r.problem(element, f"leaves no room between {found[0]:g} and {found[1]:g}", hint, path)
        if points and found and found[-1] <= 0.0:
            r.problem(element, "bounds a distance by a number that is not positive", "Give a positive length.", path)

    def _check_law(self, restitution: Scalar | None, r: Resolver, element: str, path: Path) -> None:
        """Record the problems of restitution, stiffness and damping."""
        if restitution is not None:
            check_restitution(restitution, r, element, path)
        numbers = {key: getattr(self, key) for key in ("stiffness", "damping")}
        values = {key: r.scalar(x, "number", element, (*path, key)) for key, x in numbers.items() if x is not None}
        check_not_negative(r, element, path, **values)
        if self.stiffness is None:
            if self.damping is not None:
                r.problem(element, "has damping but no stiffness", "Give 'stiffness' as well.", (*path, "damping"))
            return
        if values["stiffness"] == 0.0:
            hint = "Give a positive number, or none for a rigid stop."
            r.problem(element, "'stiffness' is zero", hint, (*path, "stiffness"))
        if restitution is not None:
            source = "" if self.restitution is not None else f", the rebound in 'at_limit' of '{self.joint}'"
            message = f"has a stiffness and a restitution{source}, which contradict each other"
            hint = "A rigid stop has a restitution; a compliant one rebounds by its stiffness and damping."
            r.problem(element, message, hint, (*path, "stiffness"))
        if self.measure is not None:
            hint = "Bound a joint coordinate or the distance of two points, or leave the stiffness out."
            r.problem(element, "is compliant, but bounds a measure", hint, (*path, "stiffness"))
