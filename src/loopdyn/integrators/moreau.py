"""Steps of momentum with contacts: Moreau's time-stepping on the steps of `momentum`.

A step ends where the loops are closed by impulses, without contacts: at the coordinates q* with the speeds v*. Gaps
that are closed in its middle, q + h v / 2, then take impulses Z of their own,

    r+ = r* + A Z,    Z >= 0,    r+ + e r >= 0,    Z (r+ + e r) = 0,

where r, r* and r+ are their speeds for v, v* and v+ at the pose q*. The change of speeds acts over half of the step:
the coordinates at its end are q* + h (v+ - v*) / 2, closed again. So a part at rest stays where it is, however many
steps are made.

The impulses of a step do the work Z (r + r+) / 2 = (1 - e) Z r / 2, and without loads Z r = -Z A Z / (1 + e): they
never add energy, if there is one e. Should they with several ones, the smallest of them holds for all in that step.

No event is located: any number of impacts may fall into one step. The error of times, heights and speeds is of first
order in the step, and so is the depth by which a gap may be below zero, at most h |r|: half of it in the step whose
middle is still outside, and half of it in the next one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from loopdyn.errors import LoopdynError
from loopdyn.integrators import memory
from loopdyn.integrators.base import Fixed
from loopdyn.integrators.extrapolation import SteppingDriver, ends_and_powers
from loopdyn.integrators.loop import Method
from loopdyn.loops.complementarity import solve_lcp
from loopdyn.loops.one_sided import ContactState, gaps
from loopdyn.system.sides import sides_of
from loopdyn.system.system import State
from loopdyn.tree.functions import difference, energy, increment
from loopdyn.tree.power import GIVEN, N_OTHERS

if TYPE_CHECKING:
    from loopdyn.integrators.stepper import Stepper

Array = NDArray[np.float64]


class ContactSteps(SteppingDriver):
    """Makes steps of momentum with impulses of contacts.

    Attributes
    ----------
    whole, inside : list
        Time, energy lost (J) and impulses (N s or N m s) of all sides, of the last step and of parts of it that were
        made to interpolate.
    """

    def __init__(self, stepper: Stepper):
        super().__init__(stepper, extrapolate=False)
        self.base = stepper.system
        self.sides = sides_of(self.base)
        self.whole: tuple[float, float, Array] = (np.nan, 0.0, np.zeros(len(self.sides)))
        self.inside: list[tuple[float, float, Array]] = []

    def attempt(self, ints: Any, floats: Any, work: Any, m: Any, method: Any, accelerate: Any) -> int:
        """One step of size clock[SIZE]: `m.new` and clock[ERROR]."""
        status = super().attempt(ints, floats, work, m, method, accelerate)
        self.whole = self.inside[-1] if self.inside else self.whole
        self.inside = []
        return status

    def _single(self, h: float) -> Array:
        """Increments, speeds and works after one step from the start of this one."""
        m, system, nv = self.stepper.memory, self.stepper.system, self.stepper.system.nv
        y, t = super()._single(h), float(self.stepper.memory.clock[memory.START])
        start = State(t, self.stepper.unwrapped(m.q), m.y[nv : 2 * nv].copy())
        end = State(t + h, increment(system, start.q, y[:nv]), y[nv : 2 * nv].copy())
        middle = State(t + 0.5 * h, increment(system, start.q, 0.5 * h * start.v), start.v)
        closed = np.flatnonzero(gaps(self.base, middle)[0] <= 0.0).tolist()
        lost, impulse = 0.0, np.zeros(len(self.sides))
        if closed:
            v, impulse, lost, given = self._struck(start, end, closed)
            q = increment(system, end.q, 0.5 * h * (v - end.v))
            q, v = self.solver.closed(t + h, q, v)
            y[:nv], y[nv : 2 * nv] = difference(system, start.q, q), v
            y[2 * nv :] = m.y[2 * nv :] + 0.5 * h * (m.k[0, 2 * nv :] + self._powers(t + h, q, v))
            if m.count[memory.MOVED]:
                y[GIVEN - N_OTHERS] += given
        self.inside.append((t + h, lost, impulse))
        return y

    def _struck(self, start: State, end: State, closed: list[int]) -> tuple[Array, Array, float, float]:
        """Speeds after the impulses of closed sides, the impulses, the energy that they take, and work of drivers."""
        before = gaps(self.base, State(end.t, end.q, start.v))[1]  # at the pose of A: the work is then exact
        at = ContactState(self.base, self.stepper.system, self.sides, end, closed)
        at.check_held(closed)
        found = [k for k in closed if not at.held[k]]
        e = np.array([float(self.sides[k].restitution) for k in found])
        Z, lost = self._impulses(at, found, e, before[found])
        if lost < 0.0 and np.ptp(e) > 0.0:
            Z, lost = self._impulses(at, found, np.full(len(e), e.min()), before[found])
        impulse = np.zeros(len(self.sides))
        impulse[found] = Z
        v = at.moved(impulse)
        kinetic = [float(energy(self.base, State(end.t, end.q, x)).kinetic) for x in (end.v, v)]
        return v, impulse, lost, kinetic[1] - kinetic[0] - at.work(impulse)

    def _impulses(self, at: ContactState, found: list[int], e: Array, before: Array) -> tuple[Array, float]:
        """Impulses of sides, and the energy that they take."""
        A, d = at.scaled(found)
        z = solve_lcp(A, (at.rate[found] + e * before) * d)
        if z is None:
            names = ", ".join(f"'{self.sides[k].name}'" for k in found)
            raise LoopdynError(f"no impulses keep {names} from closing. Check whether these stops agree.")
        after = at.rate[found] + (A @ z) / d
        return z * d, float(-0.5 * (z * d) @ (before + after))


class Moreau(Fixed):
    """Steps of one size in which contacts act by impulses, for ``Momentum()``: first order, any number of contacts.

    No contact is an event then; forces of contacts and joints are not given, but sums of impulses.

    Examples
    --------
    >>> Moreau(step=1e-3).step
    0.001
    """

    name: ClassVar[str] = "moreau"
    drives_steppers: ClassVar[bool] = True

    def method(self) -> Method:
        """Both ends of a step."""
        return ends_and_powers(0)

    def in_python(self, stepper: Stepper) -> Any:
        """One step of the formulation, with contacts."""
        return ContactSteps(stepper)
