"""Poles of a linearized mechanism and their derivatives by parameters, by left and right eigenvectors.

With A r = s r and l A = s l, a simple pole s changes by

    ds = l dA r / (l r)

where dA is the total change of the exact matrix A by the parameter. The state moves with it: an equilibrium, or a pose
of which some coordinates are held. dA is a five-point difference of exact matrices along the exact change of the state.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from loopdyn.analysis.derivatives import DIFFERENCE, Derivatives, five_points
from loopdyn.analysis.linear_remarks import BALANCED
from loopdyn.analysis.linearize import linearize
from loopdyn.analysis.minimal_states import SPEED, Chart
from loopdyn.analysis.output_changes import Moves
from loopdyn.analysis.pose_changes import Changes, dynamic_changes
from loopdyn.analysis.variations import AGREEING, Family, Local
from loopdyn.errors import LoopdynError, warn
from loopdyn.loops.continuation import largest
from loopdyn.loops.projection import project
from loopdyn.results.measures import Path
from loopdyn.system.system import State, System

Array = NDArray[np.float64]

MODAL = re.compile(r"(?:(omega|frequency|damping)\(\s*(\d+)\s*\)|pole\(\s*(\d+)\s*\)\.(real|imag))")
UNITS = {"frequency": "Hz", "damping": "1"}  # of others rad/s
# Distance of a pole from the next one, as a fraction of its size, from which it is simple. Poles that coincide are
# computed to the root of rounding, 1e-14, apart where their eigenvectors coincide, too.
SIMPLE = 1e-6


class ModalQuantity(NamedTuple):
    """A number of a mode: ``omega(0)``, ``frequency(0)``, ``damping(0)``, ``pole(0).real`` or ``pole(0).imag``."""

    text: str
    kind: str
    mode: int

    @property
    def unit(self) -> str:
        """Unit of the number."""
        return UNITS.get(self.kind, "rad/s")

    def value(self, s: complex) -> float:
        """Number of the pole s, as of :class:`loopdyn.results.Modes`."""
        if self.kind in ("real", "imag"):
            return float(getattr(s, self.kind))
        if self.kind == "damping":
            return -s.real / abs(s)
        if self.kind == "frequency":
            return abs(s) / (2.0 * np.pi) if s.imag else 0.0
        return abs(s)

    def change(self, s: complex, ds: complex) -> float:
        """Derivative of the number, if the pole s changes by ds."""
        size = (s.conjugate() * ds).real / abs(s)
        if self.kind in ("real", "imag"):
            return float(getattr(ds, self.kind))
        if self.kind == "damping":
            return -(ds.real - s.real * size / abs(s)) / abs(s)
        if self.kind == "frequency":
            return size / (2.0 * np.pi) if s.imag else 0.0
        return size


def modal_quantity(text: str) -> ModalQuantity | None:
    """Read the text of a modal quantity; None for everything else.

    Examples
    --------
    >>> modal_quantity("pole(1).real"), modal_quantity("x(P)")
    (ModalQuantity(text='pole(1).real', kind='real', mode=1), None)
    """
    found = MODAL.fullmatch(text.strip())
    return ModalQuantity(text, found[1] or found[4], int(found[2] or found[3])) if found else None


class ModalChanges:
    """Poles at a state, and their derivatives by the parameters of a family.

    Parameters
    ----------
    family : Family
    path : Path
        The state alone.
    moves : mapping
        Changes of the state by each parameter.
    """

    def __init__(self, family: Family, path: Path, moves: Mapping[str, Moves]):
        self.family, self.path = family, path
        self.at = linearize(family.system, _state(path), outputs=())
        self.modes = self.at.modes().poles
        names = [s.name for s in self.at.states]
        positions = [name for name in names if not name.endswith(SPEED)]
        self._names = positions if 2 * len(positions) == len(names) else names
        self._by = [self._matrix_by(name, moves[name]) for name in family.parameters]

    def derivatives(self, of: ModalQuantity) -> tuple[Array, Array]:
        """Value (1,) of a quantity, and derivatives (p, 1) by the parameters."""
        if of.mode >= len(self.modes):
            raise LoopdynError(
                f"'{of.text}': '{self.at.system.name}' has {len(self.modes)} modes here, numbered from 0. See "
                "print(ld.linearize(system, state).modes())."
            )
        s = complex(self.modes[of.mode])
        self._require_simple(of, s)
        slopes = [of.change(s, self.at.pole_change(s, dA)) for dA in self._by]
        return np.array([of.value(s)]), np.array(slopes)[:, None]

    def _require_simple(self, of: ModalQuantity, s: complex) -> None:
        gap = float(np.sort(np.abs(self.at.poles() - s))[1:].min(initial=np.inf))  # the first is the pole itself
        if gap <= SIMPLE * abs(s):
            raise LoopdynError(
                f"'{of.text}': the pole {s:.6g} rad/s is repeated: the next one is {gap:.2g} rad/s away, "
                f"{gap / abs(s):.2g} of its size. Repeated poles have no derivatives, since a parameter may part them. "
                "Choose values of the parameters at which they are apart."
            )

    def _matrix_by(self, name: str, moved: Moves) -> Array:
        """Total derivative of A by a parameter."""
        family = self.family
        size = max(moved.size(family.system, accelerations=False), 1.0 / (abs(family.values[name]) or 1.0))

        def at(x: float) -> Array:
            return self._matrix(family.varied(name, x), _state(moved.path(family.system, self.path, x)))

        found: Array = five_points(at, DIFFERENCE / size)
        return found

    def _matrix(self, system: System, near: State) -> Array:
        """A at the closed state next to one, with the independent coordinates of the state itself."""
        chart = Chart(Derivatives(system, project(system, near).state), self._names)
        Local.evaluations += 1
        Local.complex_evaluations += len(chart.names)
        return chart.states().rates


def _state(path: Path) -> State:
    return State(float(path.t[0]), path.q[0], path.v[0])


def modal_derivatives(
    family: Family, path: Path, moves: Mapping[str, Moves], wanted: Sequence[ModalQuantity]
) -> dict[str, tuple[Array, Array]]:
    """Values (1,) of modal quantities at a state, and derivatives (p, 1) by the parameters, by their texts."""
    found = ModalChanges(family, path, moves)
    return {of.text: found.derivatives(of) for of in wanted}


def warn_of_held_pose(family: Family, path: Path, moves: Mapping[str, Moves]) -> None:
    """Warn if a state is an equilibrium that other parameters move, while its pose is held."""
    s, state = family.system, _state(path)
    changes = {name: Changes(x.xi[0], x.dv[0], x.da[0], float(x.dt[0])) for name, x in moves.items()}
    local, found = dynamic_changes(family, state, changes)
    units = s.speed_units
    still = BALANCED * max(float(np.linalg.norm(s.model.gravity)) / s.size, 1.0)
    if largest(local.a / units) > still or largest(state.v / units) > 0.0:
        return
    moved = [name for name, c in found.items() if largest(c.da / units) * (abs(family.values[name]) or 1.0) > AGREEING]
    if moved:
        warn(
            f"{s.name}: derivatives of poles by {', '.join(moved)} are those at the pose held, which is no equilibrium "
            "with another value. Those about the equilibrium: state=ld.equilibrium(system)."
        )
