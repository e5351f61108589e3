"""Stop: rigid bounds of a joint coordinate, or of the distance of two points."""

from __future__ import annotations

from typing import ClassVar, Literal

from loopdyn.constraints.base import Constraint
from loopdyn.constraints.distance import Distance
from loopdyn.constraints.driver import Driver
from loopdyn.contacts.base import OneSided, Side, check_restitution
from loopdyn.forces.base import Places
from loopdyn.quantities.units import Path, Place, Resolver, Scalar
from loopdyn.quantities.wording import element_of

POINTS = ("body1", "body2", "point1", "point2")
BOUNDS = ("lower", "upper")
ENDLESS = (float("inf"), -float("inf"))


class Stop(OneSided):
    """Rigid stop: a joint coordinate, or the distance of two points, stays within bounds.

    The part that reaches a bound rebounds by its restitution, comes to rest there, and leaves it again when the force
    of the stop would have to pull.

    Parameters
    ----------
    joint : str, optional
        Label of the coordinate, e.g. ``"A"`` or ``"C.slide"``.
    body1, body2 : str, optional
        Instead of `joint`: the two bodies of the points whose distance is bounded.
    point1, point2 : (3,), optional
        Points whose distance is bounded, in world coordinates at the reference pose.
    lower, upper : number, optional
        Bounds in units of angle or length; without them those of the joint's `limits`.
    restitution : number, optional
        Coefficient of restitution: speed after an impact divided by speed before, from 0 (plastic) to 1 (elastic).
        By default 0, or with the joint's `limits` the rebound of its `at_limit`.

    Examples
    --------
    >>> Stop(joint="A", lower=0.0, restitution=0.8).lower
    0.0
    """

    label: ClassVar[str] = "stop"

    type: Literal["stop"] = "stop"
    joint: str | None = None
    body1: str | None = None
    body2: str | None = None
    point1: Place | None = None
    point2: Place | None = None
    lower: Scalar | None = None
    upper: Scalar | None = None
    restitution: Scalar | None = None

    def joints(self) -> tuple[str, ...]:
        """The joint whose coordinate it bounds."""
        return () if self.joint is None else (element_of(self.joint),)

    def reads(self) -> tuple[str, ...]:
        """The coordinate that it bounds."""
        return () if self.joint is None else (self.joint,)

    def replaces_limits(self) -> tuple[str, ...]:
        """The coordinate, if its own limits are the bounds."""
        return (self.joint,) if self.joint is not None and self.lower is None and self.upper is None else ()

    def _given(self, r: Resolver) -> tuple[list[tuple[str, Scalar]], Scalar]:
        """Bounds that there are, by key, and the restitution."""
        bounds, e = [self.lower, self.upper], self.restitution
        if self.replaces_limits() and self.joint in r.limits:
            low, high, rebound = r.limits[self.joint]
            bounds, e = [low, high], rebound if e is None else e
        given = [(key, x) for key, x in zip(BOUNDS, bounds, strict=True) if x is not None and x not in ENDLESS]
        return given, 0.0 if e is None else e

    def sides(self, name: str, r: Resolver) -> list[Side]:
        """One side for each bound."""
        given, restitution = self._given(r)
        return [
            Side(
                name,
                name if len(given) == 1 else f"{name} {key}",
                1 if key == "lower" else -1,
                self._row(x),
                restitution,
                self.joint,
                x,
                "constraints" if self.joint is None else "drivers",
            )
            for key, x in given
        ]

    def _row(self, bound: Scalar) -> Constraint | Driver:
        """Constraint that holds while a bound is reached."""
        if self.joint is not None:
            return Driver(joint=self.joint, motion=bound)
        points = {key: getattr(self, key) for key in POINTS}
        return Distance(**points, length=bound)

    def check(self, r: Resolver, places: Places, element: str, path: Path) -> None:
        """Record the problems of its numbers, names and points."""
        points = [key for key in POINTS if getattr(self, key) is not None]
        if (self.joint is None) == (not points):
            hint = "Give either 'joint', or 'body1', 'body2', 'point1' and 'point2'."
            r.problem(element, "bounds one thing: a coordinate or a distance", hint, path)
            return
        missing = [key for key in POINTS if key not in points] if points else []
        for key in missing:
            r.problem(element, f"'{key}' is missing", "Two bodies and a point on each are needed.", (*path, key))
        given, restitution = self._given(r)
        if not given:
            r.problem(element, "has no bound", "Give 'lower', 'upper' or both, or limits of the joint.", path)
        check_restitution(restitution, r, element, path)
        if missing:
            return
        found = []
        for key, bound in given:
            found.append(r.scalar(bound, "number", element, (*path, key)))
            self._row(bound).resolve(r, places, element, path)
        if len(found) == 2 and not found[0] < found[1]:
            hint = "Let 'lower' be below 'upper'; without play use a driver, or a distance constraint."
            r.problem(element, f"leaves no room between {found[0]:g} and {found[1]:g}", hint, path)
        if self.joint is None and found and found[-1] <= 0.0:
            r.problem(element, "bounds a distance by a number that is not positive", "Give a positive length.", path)
