"""Comparison of all formulations on one mechanism: accelerations, reactions and computing time."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, get_args, get_type_hints

import numpy as np
from numpy.typing import NDArray

from loopdyn.analysis.assembly import assemble
from loopdyn.errors import LoopdynError
from loopdyn.formulations.base import Formulation
from loopdyn.formulations.registry import CLASSES, formulation_class, prepare
from loopdyn.joints.base import COMPONENTS
from loopdyn.loops.reactions import reactions
from loopdyn.results.units import dimensions, factors, symbols
from loopdyn.system.system import State, System

Array = NDArray[np.float64]

SHOWN = 24  # rows shown of each table; `as_data` has all
LONG = 0.02  # seconds of repeated evaluations that are timed


@dataclass(frozen=True)
class Result:
    """Result of one formulation in declared units: accelerations, wrenches of all joints; seconds of an evaluation."""

    a: Array
    wrench: Array
    seconds: float


@dataclass(frozen=True)
class Comparison:
    """Results of all formulations at one state.

    Attributes
    ----------
    name : str
    note : str
        How the state was found.
    units : (str, str)
        Declared units of accelerations, and of forces and moments.
    speeds : tuple of str
    joints : tuple of str
    unique : (n, 6) array of bool
        Whether each component of a reaction is statically determinate.
    results : dict of Result
        By name of the formulation.
    unsupported : dict
        Formulations that refuse the model, and their reasons.
    acceleration_difference, reaction_difference : float
        Largest difference between any two exact formulations, relative to the largest value.
    approximate : tuple of str
        Formulations that are approximate by nature and do not count for the differences.
    """

    name: str
    note: str
    units: tuple[str, str]
    speeds: tuple[str, ...]
    joints: tuple[str, ...]
    unique: NDArray[np.bool_]
    results: dict[str, Result]
    unsupported: dict[str, str]
    acceleration_difference: float
    reaction_difference: float
    approximate: tuple[str, ...]

    def as_data(self) -> dict[str, Any]:
        """Plain data of the comparison, for JSON."""
        return {
            "name": self.name,
            "note": self.note,
            "units": dict(zip(("accelerations", "reactions"), self.units, strict=True)),
            "formulations": {
                name: {
                    "accelerations": dict(zip(self.speeds, r.a.tolist(), strict=True)),
                    "reactions": {
                        joint: dict(zip(COMPONENTS, row, strict=True))
                        for joint, row in zip(self.joints, r.wrench.tolist(), strict=True)
                    },
                    "seconds": r.seconds,
                    "approximate": name in self.approximate,
                }
                for name, r in self.results.items()
            },
            "unique": {
                joint: dict(zip(COMPONENTS, row, strict=True))
                for joint, row in zip(self.joints, self.unique.tolist(), strict=True)
            },
            "unsupported": self.unsupported,
            "acceleration_difference": self.acceleration_difference,
            "reaction_difference": self.reaction_difference,
        }

    def __str__(self) -> str:
        names = list(self.results)
        wide = max(12, *(len(n) + 2 for n in names)) if names else 12
        lines = [f"{self.name}: {self.note}", "", f"accelerations of the joint coordinates, {self.units[0]}"]
        lines += [f"{'':<18}" + "".join(f"{n:>{wide}}" for n in names)]
        rows = list(zip(self.speeds, np.array([r.a for r in self.results.values()]).T.tolist(), strict=True))
        lines += _table(rows, wide)
        heads = f"reactions on each joint's child, {self.units[1]}, in axes of the joint's frame (z is its axis);"
        lines += ["", heads]
        lines += ["?: statically indeterminate"]
        wrenches = np.array([r.wrench for r in self.results.values()])
        largest = np.abs(wrenches).max(initial=0.0)
        cells = []
        for n, joint in enumerate(self.joints):
            for k, component in enumerate(COMPONENTS):
                if np.abs(wrenches[:, n, k]).max(initial=0.0) > 1e-9 * largest:
                    mark = "" if self.unique[n, k] else " ?"
                    cells.append((f"{joint}.{component}{mark}", wrenches[:, n, k].tolist()))
        lines += _table(cells, wide)
        times = "".join(f"{1e6 * r.seconds:>{wide}.0f}" for r in self.results.values())
        lines += ["", f"{'microseconds':<18}{times}"]
        exact = f"exact formulations ({len(names) - len(self.approximate)})"
        lines.append(
            f"largest relative difference between {exact}: accelerations {self.acceleration_difference:.1e}, "
            f"reactions {self.reaction_difference:.1e}"
        )
        if self.approximate:
            lines.append(f"approximate by nature: {', '.join(self.approximate)}")
        lines += [f"not applicable: {name}: {reason}" for name, reason in self.unsupported.items()]
        return "\n".join(lines)


def _table(rows: list[tuple[str, list[float]]], wide: int) -> list[str]:
    lines = [f"{label:<18}" + "".join(f"{x:>{wide}.5g}" for x in values) for label, values in rows[:SHOWN]]
    return [*lines, f"... and {len(rows) - SHOWN} more: --json shows all"] if len(rows) > SHOWN else lines


def every_formulation() -> dict[str, Formulation]:
    """All registered formulations by name; a formulation with several solvers appears once for each.

    Examples
    --------
    >>> list(every_formulation())[:2]
    ['oracle', 'kkt']
    """
    found: dict[str, Formulation] = {}
    for name in CLASSES:
        kind = formulation_class(name)
        solvers = _solvers(kind)
        found |= {s: kind(solver=s) for s in solvers} if solvers else {name: kind()}  # type: ignore[call-arg]
    return found


def _solvers(kind: type[Formulation]) -> tuple[str, ...]:
    """Values that the option `solver` of a formulation may have."""
    hints = get_type_hints(kind)
    return get_args(hints["solver"]) if "solver" in hints else ()


def compare(system: System, state: State | None = None) -> Comparison:
    """Run every formulation that can treat the system at one state.

    Parameters
    ----------
    system : System
    state : State, optional
        A closed state; by default the start of the model, with its loops closed.

    Raises
    ------
    AssemblyError
        If the loops cannot be closed.
    SingularityError
        If some motion has no inertia, so that its acceleration is not determined.

    Examples
    --------
    >>> import loopdyn as ld
    >>> from loopdyn.analysis.comparing import compare
    >>> compare(ld.library.four_bar().compile()).acceleration_difference < 1e-9
    True
    """
    at = assemble(system) if state is None else state
    system = system.for_state(at)
    results: dict[str, Result] = {}
    unsupported: dict[str, str] = {}
    approximate = []
    unique = np.ones((0, 6), bool)
    joints: tuple[str, ...] = ()
    moved, symbol = dimensions(system, "speed"), system.units.symbol
    one = factors(system, moved)
    for name, method in every_formulation().items():
        reason = method.supports(system)
        if reason is not None:
            unsupported[name] = reason
            continue
        solver = prepare(system, method, at)
        try:
            solution = solver(at.t, at.q, at.v)
        except LoopdynError as error:
            unsupported[name] = str(error)
            continue
        loads = reactions(system, at, solution.a)
        unique, joints = loads.unique, loads.joints
        results[name] = Result(solution.a / one, loads.declared, _seconds(solver, at))
        if method.approximate:
            approximate.append(name)
    exact = [r for name, r in results.items() if name not in approximate]
    return Comparison(
        name=system.name,
        note=at.note or "state as given",
        units=(" and ".join(dict.fromkeys(symbols(system, moved, 2))), f"{symbol('force')} and {symbol('torque')}"),
        speeds=system.speeds,
        joints=joints,
        unique=unique,
        results=results,
        unsupported=unsupported,
        acceleration_difference=_difference([r.a * one / system.speed_units for r in exact]),
        reaction_difference=_difference([r.wrench for r in exact]),
        approximate=tuple(approximate),
    )


def _difference(values: list[Array]) -> float:
    """Largest difference between any two, relative to the largest value."""
    if not values:
        return 0.0
    together = np.array(values)
    largest = float(np.abs(together).max(initial=0.0))
    return float(np.ptp(together, axis=0).max(initial=0.0)) / largest if largest > 0.0 else 0.0


def _seconds(solver: Any, at: State) -> float:
    """Best time of one evaluation."""
    best, begin = np.inf, time.perf_counter()
    while time.perf_counter() - begin < LONG:
        start = time.perf_counter()
        solver(at.t, at.q, at.v)
        best = min(best, time.perf_counter() - start)
    return best
