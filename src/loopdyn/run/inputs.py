"""Inputs of a simulation: motors, forces and drivers whose laws are replaced by numbers that change from step to step.

In place of its law an input has a table of time whose pieces are one cubic, ``c0 + c1 d + c2 d^2 + c3 d^3`` with d the
time since the start of the step: a constant or a straight line for a force, the motion over the step for a driver. Its
coefficients are written into the constants of the compiled programs, so that nothing is prepared again. They are in the
units of the model, which the program converts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from loopdyn.engine import records as rec
from loopdyn.engine.layout import opened
from loopdyn.errors import LoopdynError
from loopdyn.forces.base import Table
from loopdyn.loops.reactions import freedom_rate
from loopdyn.quantities.wording import nearest
from loopdyn.system.laws import Law, constants_of, driver_law, force_law, with_laws
from loopdyn.system.system import State, System
from loopdyn.tree.functions import body_motion
from loopdyn.tree.joint_readings import coordinate

Array = NDArray[np.float64]

HOLDS = ("zero", "linear")
# Numbers of a table with two points, as the stack machine reads them: 2, both knots, and c0..c3 before the first knot,
# between the knots, and behind the second.
KNOT, SECOND_KNOT, BEFORE, BETWEEN = 1, 2, 3, 7
NEVER = 1e300  # s: the second knot, which no simulation reaches
# By the kind of law: tables that are replaced before they are used; a motion must be smooth.
OF_FORCE = Table(of="t", points=((0.0, 0.0), (1.0, 0.0)), interpolation="linear", outside="extend")
OF_DRIVER = Table(of="t", points=((0.0, 0.0), (1.0, 1.0)), interpolation="cubic", outside="extend")


SAME, CHANGED, JUMPED = range(3)  # how the laws of a step differ from those of the last one


class InputPlaces(NamedTuple):
    """Constants of programs in the arrays of a system or solver, and the places of the inputs among them."""

    constants: Array
    places: NDArray[np.int64]  # of the inputs that the system has
    rows: NDArray[np.int64]  # their numbers in `Inputs.numbers`, flat


class Inputs:
    """Inputs of a simulation, in the order of their names.

    Parameters
    ----------
    system : System
    names : sequence of str
        Forces, components of forces ("push.fx") and drivers.
    hold : {"zero", "linear"}
        Whether the values of forces are held over a step, or reached at its end along a straight line.
    """

    def __init__(self, system: System, names: Sequence[str], hold: str):
        if hold not in HOLDS:
            raise LoopdynError(f"there is no hold '{hold}'. {nearest(str(hold), HOLDS)}")
        self.names, self.linear = tuple(names), hold == "linear"
        twice = [name for k, name in enumerate(self.names) if name in self.names[:k]]
        if twice:
            raise LoopdynError(f"input '{twice[0]}' is named twice. Name each input once.")
        self.laws = tuple(_law(system, name) for name in self.names)
        self.drivers = tuple(k for k, law in enumerate(self.laws) if law.of_driver)
        self._moves = self.linear or bool(self.drivers)  # some laws are functions of time
        tables = {law: OF_DRIVER if law.of_driver else OF_FORCE for law in self.laws}
        self.system = with_laws(system, tables) if tables else system
        # knot, and twice c0..c3, of each input
        self.numbers = np.zeros((len(self.names), 9))
        self._committed = self.numbers.copy()  # of the last step
        self.values: list[Any] = []
        self._next: list[Any] = []
        self._motion: dict[int, tuple[float, float]] = {}  # position and speed of each driver at the end of the step
        self._reached: dict[int, tuple[float, float]] = {}

    # ------------------------------------------------------------------------------------------------- writing

    def begin(self, state: State) -> None:
        """Begin at a state: no load, and drivers go on with their present speed; they are still to be written."""
        self.numbers[:] = 0.0
        self.numbers[:, 0] = state.t
        self.values = [0.0] * len(self.names)
        self._reached = {k: self._driven(self.laws[k], state) for k in self.drivers}
        for k, (x, v) in self._reached.items():
            self._put(k, state.t, (x, v, 0.0, 0.0))
        self._committed = self.numbers.copy()

    def _driven(self, law: Law, state: State) -> tuple[float, float]:
        """Position and speed of the coordinate of a driver, in the units of the model."""
        s = self.system
        label = s.mechanism.drivers[law.name].joint
        found, unit = s.labels.coordinates[label], s.units.factor(law.dimension)
        if found.joint.in_tree:
            speed = float(state.v[s.labels.speeds[label].place])
        else:
            speed = freedom_rate(s, state, body_motion(s, state), found.joint, found.k)[1]
        return coordinate(s, state, label) / unit, speed / unit

    def target(self, system: System, ints: Any, floats: Array) -> InputPlaces:
        """Places of the inputs in arrays that begin with those of a system, or of one with more cut joints."""
        found = [(k, constants_of(system, law)) for k, law in enumerate(self.laws)]
        known = [(k, at) for k, at in found if at is not None]
        own = np.array([KNOT, *range(BEFORE, BETWEEN + 4)])
        places = np.array([at + own for _, at in known], np.int64).ravel()
        rows = np.array([9 * k + np.arange(9) for k, _ in known], np.int64).ravel()
        floats.flags.writeable = True  # the system was made for this simulation
        constants = opened(rec.open_model, ints, floats).constants
        constants[[at + SECOND_KNOT for _, at in known]] = NEVER
        return InputPlaces(constants, places, rows)

    def write(self, targets: Sequence[InputPlaces]) -> None:
        """Write the present laws into arrays."""
        numbers = self.numbers.ravel()
        for constants, places, rows in targets:
            constants[places] = numbers[rows]

    def _put(self, k: int, t: float, cubic: tuple[float, float, float, float]) -> None:
        self.numbers[k] = (t, *cubic, *cubic)

    # ------------------------------------------------------------------------------------------------ one step

    def read(self, u: Any) -> list[Any]:
        """Values of all inputs for the next step, checked; those that are not given stay as they are."""
        if u is None:
            return self._kept(range(len(self.names)), list(self.values))
        if isinstance(u, Mapping):
            values = list(self.values)
            for name, x in u.items():
                values[self._index(name)] = x
            values = self._kept([k for k, name in enumerate(self.names) if name not in u], values)
        else:
            values = u.tolist() if isinstance(u, np.ndarray) else self._listed(u)
            if not isinstance(values, list) or len(values) != len(self.names):
                raise LoopdynError(f"step: {self._count(values)}. Give {len(self.names)}: {self._listing()}.")
        for k, x in enumerate(values):
            if type(x) is not float or not math.isfinite(x):
                values[k] = self._checked(k, x)
        return values

    def _listed(self, u: Any) -> Any:
        if isinstance(u, str | bytes) or not hasattr(u, "__len__"):
            if len(self.names) == 1 and not isinstance(u, str | bytes):
                return [u]
            raise LoopdynError(f"step: the inputs are {u!r}. Give a mapping or a list of numbers: {self._listing()}.")
        return list(u)

    def _count(self, values: Any) -> str:
        return f"{len(values) if isinstance(values, list) else 1} values are given"

    def _listing(self) -> str:
        return ", ".join(self.names) or "nothing, since there are no inputs"

    def _index(self, name: Any) -> int:
        if name not in self.names:
            hint = nearest(str(name), self.names) if self.names else "Name it at the start: inputs=[...]."
            raise LoopdynError(f"step: there is no input '{name}'. {hint}")
        return self.names.index(name)

    def _kept(self, which: Sequence[int], values: list[Any]) -> list[Any]:
        """Values of which some stay: the end of a motion is given for one step only."""
        for k in which:
            if isinstance(values[k], tuple):
                raise LoopdynError(
                    f"step: driver '{self.names[k]}' was given a position and speed, which it has reached. Give the "
                    "next ones, or an acceleration."
                )
        return values

    def _checked(self, k: int, x: Any) -> Any:
        """Value of input k as a float or, for a driver, as position and speed."""
        name, driver = self.names[k], self.laws[k].of_driver
        if driver and isinstance(x, tuple | list | np.ndarray):
            if len(x) != 2:
                raise LoopdynError(
                    f"step: driver '{name}' is given {len(x)} numbers. Give an acceleration, or the position and the "
                    "speed at the end of the step: of a position alone the speed would jump, which is an impact."
                )
            return tuple(self._finite(name, one) for one in x)
        return self._finite(name, x)

    @staticmethod
    def _finite(name: str, x: Any) -> float:
        try:
            value = float(x) if not isinstance(x, str | bytes) else math.nan
        except (TypeError, ValueError):
            value = math.nan
        if not math.isfinite(value):
            raise LoopdynError(f"step: input '{name}' is {x!r}. Give a finite number.")
        return value

    def set(self, values: list[Any], start: float, end: float) -> int:
        """Make values those of the step from `start` to `end`: SAME, CHANGED, or JUMPED if accelerations may jump."""
        self._next = values
        if self._moves:
            return JUMPED if self._set_laws(values, start, end) else CHANGED
        if values == self.values:
            return SAME
        self.numbers[:, 1] = self.numbers[:, 5] = values
        return JUMPED

    def _set_laws(self, values: list[Any], start: float, end: float) -> bool:
        """Set all laws, of which some are functions of time; whether accelerations may jump."""
        h, jumps = end - start, False
        for k, (x, law) in enumerate(zip(values, self.laws, strict=True)):
            if law.of_driver:
                jumps = True
                self._put(k, start, self._cubic(k, x, h))
            elif self.linear:
                self._put(k, start, (self.values[k], (x - self.values[k]) / h, 0.0, 0.0))
            else:
                jumps = jumps or x != self.values[k]
                self._put(k, start, (x, 0.0, 0.0, 0.0))
        return jumps

    def _cubic(self, k: int, x: Any, h: float) -> tuple[float, float, float, float]:
        """Motion of driver k over a step: with constant acceleration, or to a position and speed (Hermite)."""
        x0, v0 = self._reached[k]
        if not isinstance(x, tuple):
            self._motion[k] = x0 + h * (v0 + 0.5 * x * h), v0 + x * h
            return x0, v0, 0.5 * x, 0.0
        self._motion[k] = x
        x1, v1 = x
        mean = (x1 - x0) / h
        return x0, v0, (3.0 * mean - 2.0 * v0 - v1) / h, (v0 + v1 - 2.0 * mean) / (h * h)

    def commit(self) -> None:
        """Keep the values of a step that was made."""
        self.values = self._next
        self._committed[...] = self.numbers
        if self._motion:
            self._reached |= self._motion

    def revert(self, targets: Sequence[InputPlaces]) -> None:
        """Return to the laws of the last step that was made."""
        self.numbers[...] = self._committed
        self.write(targets)

    def copy_from(self, other: Inputs) -> None:
        """Continue as other inputs of the same names do."""
        self.values, self._reached = list(other.values), dict(other._reached)
        self.numbers[...] = self._committed[...] = other._committed


def _law(system: System, name: str) -> Law:
    if not isinstance(name, str):
        raise LoopdynError(f"an input is {name!r}. Name motors, forces or drivers of the model.")
    m = system.mechanism
    if name in m.drivers:
        return driver_law(system, name)
    if name in m.user_forces:
        raise LoopdynError(f"input '{name}' is a Python function, which reads its inputs itself. Leave it out.")
    if name.partition(".")[0] not in m.forces:
        known = [*m.forces, *m.drivers]
        hint = nearest(name, known) if known else "The model has no motor, force or driver: add one."
        raise LoopdynError(f"input '{name}': there is no motor, force or driver of this name. {hint}")
    return force_law(system, name)
