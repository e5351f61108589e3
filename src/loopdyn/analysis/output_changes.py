"""Values of formulas and transmission angles along a path, and their derivatives by parameters along given changes.

A formula of positions, speeds and accelerations is evaluated in complex numbers; coordinates of cut joints, whose
kernels take floats only, by five-point differences along the change of the state; reactions and loads by such
differences of closed states with their accelerations.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loopdyn.analysis.derivatives import DIFFERENCE, STEP, five_points
from loopdyn.analysis.measures import Loads
from loopdyn.analysis.pose_changes import Changes
from loopdyn.analysis.transmission_angle import transmission_angles
from loopdyn.analysis.variations import Family
from loopdyn.errors import LoopdynError
from loopdyn.formulations.base import Solution
from loopdyn.formulations.registry import accelerations_at
from loopdyn.joints.base import COMPONENTS
from loopdyn.loops.projection import project
from loopdyn.loops.reactions_along import States
from loopdyn.results.measures import Measured, Path, motions_along
from loopdyn.system.measures import LOAD, POSITION, CompiledMeasure, Quantity, compiled_formula, compiled_label
from loopdyn.system.system import State, System
from loopdyn.tree import kinematics
from loopdyn.tree.functions import counted

Array = NDArray[np.float64]

TRANSMISSION = re.compile(r"transmission_angle\(\s*([\w ]+?)\s*(?:,\s*([\w ]+?)\s*)?\)")
RIGHT_ANGLE = 1e-6  # rad: as near to a right angle the transmission angle, an absolute value, has a corner


class ChangingOutput:
    """One quantity: a formula of the terms of measures, or a transmission angle.

    Parameters
    ----------
    system : System
    text : str
    """

    def __init__(self, system: System, text: str):
        self.text, self.angle = text, TRANSMISSION.fullmatch(text.strip())
        self.known: dict[int, tuple[System, CompiledMeasure]] = {}
        self._angles: bool | None = None  # whether it has angles, once that is known
        if self.angle is None:
            measure = self.compiled(system)
            self.unit, self.level = measure.unit, measure.level
            self.exact = self.level < LOAD and not any(_of_cut_joint(system, x) for x in measure.quantities)
        else:
            self.unit, self.level, self.exact = system.units.angle, POSITION, False

    def compiled(self, system: System) -> CompiledMeasure:
        """Formula for the numbers of a system."""
        if id(system) not in self.known:
            found = system.measures.get(self.text) or compiled_label(system, self.text)
            self.known[id(system)] = system, found or compiled_formula(system, self.text, f"'{self.text}'")
        return self.known[id(system)][1]

    def angles(self, system: System, path: Path, turns: Mapping[str, float] | None = None) -> dict[str, float]:
        """Angles in it at the last state of a path, with their full turns; empty if it has none.

        `turns` are those at the first state; by default they are within half a turn there.
        """
        if self.angle is not None or self._angles is False:
            return {}
        found, terms = Measured(system, path, turns=turns), list[Quantity]()
        _terms(system, self.compiled(system), terms)
        for q in terms:
            if q.kind == "points" or q.label is not None:
                found.quantity(q)
        self._angles = bool(found.ends)
        return found.ends

    def values(self, system: System, path: Path, turns: Mapping[str, float] | None = None) -> NDArray[Any]:
        """Values (n,) along a path, in the declared unit; `turns` as of :meth:`angles`."""
        if self.angle is None:
            loads = Loads(system, States(path.t, path.q, path.v, path.a))
            return Measured(system, path, loads, turns=turns).of(self.compiled(system))
        motions = motions_along(system, path)
        found = transmission_angles(system, motions, self.angle[1], self.angle[2])
        if np.any(np.abs(found - np.pi / 2) < RIGHT_ANGLE):
            raise LoopdynError(
                f"the transmission angle at '{self.angle[1]}' is a right angle at a pose of this path, where it has a "
                "corner and no derivative. Take an angle(P, Q, R) of points, which passes through it."
            )
        return found / system.units.factor("angle")

    def require_determined(self, system: System, path: Path) -> None:
        """Raise if it depends on a component of a reaction that is statically indeterminate."""
        if self.angle is not None or self.level < LOAD:
            return
        found: list[Quantity] = []
        _terms(system, self.compiled(system), found)
        reactions = Loads(system, States(path.t, path.q, path.v, path.a)).reactions
        for q in found:
            if q.kind == "reaction" and not reactions.unique[:, reactions.joints.index(q.name), q.index].all():
                raise LoopdynError(
                    f"'{q.name}.{COMPONENTS[q.index]}' is statically indeterminate: the loops are overconstrained, "
                    "and only its part of least norm is known, which has no derivative of its own. Name another one."
                )


def _terms(system: System, measure: CompiledMeasure, found: list[Quantity]) -> None:
    for q in measure.quantities:
        if q.kind == "measure":
            _terms(system, system.measures[q.name], found)
        else:
            found.append(q)


def _of_cut_joint(system: System, quantity: Quantity) -> bool:
    if quantity.kind == "measure":
        return any(_of_cut_joint(system, q) for q in system.measures[quantity.name].quantities)
    return quantity.label is not None and quantity.label.place < 0


class Moves:
    """Changes of all states of a path by one parameter: increments (n, nv), and of time (n,)."""

    def __init__(self, changes: Sequence[Changes]):
        self.xi = np.array([c.xi for c in changes])
        self.dv = np.array([c.dv for c in changes])
        self.da = np.array([c.da for c in changes])
        self.dt = np.array([c.dt for c in changes])

    def path(self, system: System, path: Path, x: complex) -> Path:
        """Path with all states moved by x."""
        q = np.empty_like(path.q, dtype=np.result_type(path.q, type(x)))
        for k, here in enumerate(path.q):
            kinematics.plus(system.ints, system.floats, here.astype(q.dtype), x * self.xi[k], q[k])
            if system.counted and q.dtype.kind == "f":
                q[k] = counted(system, float(path.t[k]), q[k])
        t = path.t + x * self.dt
        return Path(t, q, path.v + x * self.dv, path.a + x * self.da, path.along)

    def size(self, system: System, accelerations: bool = True) -> float:
        """Largest change in natural units."""
        units = system.speed_units
        parts = [self.xi / units, self.dv / units, self.dt, *([self.da / units] if accelerations else [])]
        return max((float(np.abs(x).max(initial=0.0)) for x in parts), default=0.0)


def derivatives(
    family: Family,
    output: ChangingOutput,
    path: Path,
    moves: Mapping[str, Moves],
    turns: Mapping[str, float] | None = None,
) -> dict[str, Array]:
    """Total derivatives (n,) of an output along a path by each parameter, in its declared unit.

    `turns` are angles at the first state: those of neighbours are the nearest to them, also at half a turn.
    """
    s = family.system
    if turns is None and len(path.t):
        turns = output.angles(s, beginning(path))
    if output.level >= LOAD:
        return {name: _of_loads(family, output, path, name, moved, turns) for name, moved in moves.items()}
    found: dict[str, Array] = family.by_parameter(lambda other: output.values(other, path, turns))
    for name, moved in moves.items():
        found[name] = found[name] + along_moves(s, output, path, moved, turns)
    return found


def beginning(path: Path) -> Path:
    """First state of a path."""
    return Path(path.t[:1], path.q[:1], path.v[:1], path.a[:1], path.along[:1])


def along_moves(
    system: System, output: ChangingOutput, path: Path, moved: Moves, turns: Mapping[str, float] | None = None
) -> Array:
    """Derivatives (n,) of an output, not of loads, along changes of the states of a path."""
    size = moved.size(system)
    if size == 0.0:
        return np.zeros(len(path.t))
    if turns is None:
        turns = output.angles(system, beginning(path))
    if output.exact:
        return np.asarray(output.values(system, moved.path(system, path, 1j * STEP), turns).imag / STEP)
    found: Array = five_points(lambda x: output.values(system, moved.path(system, path, x), turns), DIFFERENCE / size)
    return found


def _of_loads(
    family: Family,
    output: ChangingOutput,
    path: Path,
    name: str,
    moved: Moves,
    turns: Mapping[str, float] | None,
) -> Array:
    """Derivatives (n,) of loads, by differences of closed states: out of closure or balance they have no meaning."""
    size = max(moved.size(family.system, accelerations=False), 1.0 / (abs(family.values[name]) or 1.0))

    def at(x: float) -> Array:
        other = family.varied(name, x)
        there, a = moved.path(family.system, path, x), np.empty_like(path.a)
        for k in range(len(path.t)):
            state = project(other, State(float(there.t[k]), there.q[k], there.v[k])).state
            solved = accelerations_at(other, state)
            a[k] = solved.a if isinstance(solved, Solution) else solved
            there.q[k], there.v[k] = state.q, state.v
        return output.values(other, replace(there, a=a), turns).copy()

    found: Array = five_points(at, DIFFERENCE / size)
    return found


__all__ = ["ChangingOutput", "Moves", "along_moves", "beginning", "derivatives"]
