"""Counterweights: effect of a mass on a body in a given motion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from loopdyn.engine import records as rec
from loopdyn.errors import LoopdynError, ModelError, Problem
from loopdyn.model.inertia import Point
from loopdyn.model.mechanism import Body
from loopdyn.quantities.wording import nearest
from loopdyn.results.bearings import ROUNDING, Bearings, rms
from loopdyn.system.builder import build
from loopdyn.system.system import System

if TYPE_CHECKING:
    import pandas

    from loopdyn.results.inverse_dynamics import InverseDynamics
    from loopdyn.results.run import Run

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Counterweight:
    """Point mass on a body, and its effect on loads in the motion of a run, which is assumed unchanged.

    Attributes
    ----------
    run : Run
    body : str
    mass : float
        In the declared unit.
    at : (3,)
        World coordinates at the reference pose, in the declared unit.
    motors : list of labels or None
        Motors that produce the motion; None: those and the drivers of the model, if they are not redundant.
    """

    run: Run = field(repr=False)
    body: str
    mass: float
    at: tuple[float, ...]
    motors: Sequence[str] | None = None

    def __post_init__(self) -> None:
        moving = self.run.system.bodies[self.run.system.n_bases :]
        if self.body not in moving:
            text = "it does not move, so a mass there has no effect" if self.body in self.run.system.bodies else None
            message = text or f"there is no body '{self.body}'"
            raise ModelError([Problem(f"counterweight on '{self.body}'", message, nearest(self.body, moving))])
        if len(self.at) != 3 or not np.isfinite([self.mass, *self.at]).all():
            raise LoopdynError(f"counterweight on '{self.body}': give a mass and a point of three numbers.")

    @cached_property
    def system(self) -> System:
        """Mechanism with the mass."""
        old = self.run.system
        m = old.mechanism.model_copy(deep=True)
        body, length = m.bodies[self.body], old.units.factor("length")
        at = np.array(self.at)
        if body.axes == "body":
            x, R = old.reference_poses[old.bodies.index(self.body)]
            at = R.T @ (at - x / length)
        point = Point(mass=self.mass, at=tuple(at.tolist()))
        m.bodies[self.body] = Body.model_copy(body, update={"points": (*body.points, point)})
        return build(m, cuts=list(old.topology.cuts))

    @property
    def before(self) -> Array:
        """Shaking force and moment (n, 6) without the mass, SI, as :attr:`Run.shaking`."""
        return self.run.shaking

    @cached_property
    def after(self) -> Array:
        """Shaking force and moment (n, 6) with the mass, SI."""
        return replace(self.run, system=self.system, phases=()).shaking

    @cached_property
    def loads(self) -> tuple[InverseDynamics, InverseDynamics]:
        """Inverse dynamics without and with the mass: loads of the motors and of the bearings."""
        from loopdyn.analysis.inverse_dynamics import inverse_dynamics

        if len(self.run.pieces) > 1:
            raise LoopdynError(
                "constraints change within the run, but a counterweight needs one set of them. Split the run."
            )
        moved = replace(self.run, system=self.system, phases=())
        without = inverse_dynamics(self.run.system, self.run, motors=self.motors)
        if self.motors is None and len(without.motors) > without.rank:  # loads would be distributed otherwise
            raise LoopdynError(
                f"counterweight on '{self.body}': the motors {', '.join(without.motors)} are redundant. "
                "Choose those that produce the motion with motors=[...]; the others act as in the run."
            )
        return without, inverse_dynamics(self.system, moved, motors=self.motors)

    def bearings(self) -> tuple[Bearings, Bearings]:
        """Loads of the bearings without and with the mass."""
        one, other = self.loads
        return one.bearings(), other.bearings()

    def table(self) -> pandas.DataFrame:
        """Peaks and RMS without and with the mass: shaking, bearings, motors.

        The weight is subtracted from the shaking force, since it is constant.
        """
        import pandas as pd

        rows: dict[str, tuple[str, float, float, float, float]] = {}
        t = self.run.path.t

        units = self.system.units

        def add(name: str, dimension: str, one: Array, other: Array) -> None:
            known = np.isfinite(one) & np.isfinite(other)
            a, b, at = (*(x[known] / units.factor(dimension) for x in (one, other)), t[known])
            if len(a):
                largest = [float(np.abs(x).max()) for x in (a, b)]
                rows[name] = (units.symbol(dimension), largest[0], largest[1], rms(a, at), rms(b, at))

        moving = [self._moving(s, force) for s, force in ((self.run.system, self.before), (self.system, self.after))]
        add("shaking force without weight", "force", *(np.linalg.norm(x, axis=1) for x in moving))
        turning = [np.linalg.norm(x[:, 3:], axis=1) for x in (self.before, self.after)]
        add("shaking moment about the origin", "torque", *turning)
        one, other = self.loads
        for k, (motor, unit) in enumerate(zip(one.motors, one.dimensions, strict=True)):
            add(f"motor {motor}", unit, one.load[:, k], other.load[:, k])
        both = self.bearings()
        largest = max(float(np.nanmax(np.abs(x.wrench), initial=0.0)) for x in both)
        for joint in both[0].joints:
            after = both[1].si(joint)
            for name, (unit, values, known) in both[0].si(joint).items():
                new = after[name][1]
                if max(np.nanmax(values, initial=0.0), np.nanmax(new, initial=0.0)) > ROUNDING * largest:
                    add(f"{joint} {name}" + ("" if known else " ?"), unit, values, new)
        heads = ["unit", "peak before", "peak after", "RMS before", "RMS after"]
        return pd.DataFrame.from_dict(rows, orient="index", columns=heads)

    def _moving(self, system: System, shaking: Array) -> Array:
        """Shaking force (n, 3) without the weight."""
        bodies = system.model.body[system.n_bases :]
        weight = float(bodies[:, rec.MASS].sum()) * np.asarray(system.model.gravity)
        return np.asarray(shaking[:, :3] - weight, float)

    def __str__(self) -> str:
        units = self.system.units
        place = ", ".join(f"{x:g}" for x in self.at)
        what = f"{self.mass:g} {units.mass} on {self.body} at ({place}) {units.length}"
        lines = [f"{what}; the motion is assumed unchanged"]
        table = self.table()
        width = max(len(str(name)) for name in table.index) + 2
        lines.append(f"{'':<{width}}{'peak':>12}{'with it':>12}{'RMS':>12}{'with it':>12}  unit")
        for name, (unit, *numbers) in table.iterrows():
            lines.append(f"{name!s:<{width}}" + "".join(f"{x:>12.5g}" for x in numbers) + f"  {unit}")
        if any(str(name).endswith("?") for name in table.index):
            lines.append("?: statically indeterminate")
        return "\n".join(lines)
