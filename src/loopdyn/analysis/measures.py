"""Measures at a state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from loopdyn.analysis.assembly import assemble
from loopdyn.formulations.base import Solution
from loopdyn.formulations.registry import accelerations_at
from loopdyn.loops.reactions_along import PathReactions, States, reactions_along
from loopdyn.quantities.wording import unknown
from loopdyn.results.force_loads import force_loads
from loopdyn.results.measures import Measured, Path
from loopdyn.system.measures import ACCELERATION, CompiledMeasure, Quantity
from loopdyn.system.system import State, System
from loopdyn.tree.functions import sized

Array = NDArray[np.float64]


@dataclass(frozen=True)
class MeasureValues(Mapping[str, float]):
    """Values of measures by name, in the units of the model; prints as a table.

    Attributes
    ----------
    units : dict
        Unit of each measure.
    """

    values_by_name: dict[str, float] = field(repr=False)
    units: dict[str, str]

    def __getitem__(self, name: str) -> float:
        if name not in self.values_by_name:
            raise unknown("", "measure", [name], self.values_by_name)
        return self.values_by_name[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.values_by_name)

    def __len__(self) -> int:
        return len(self.values_by_name)

    def __str__(self) -> str:
        width = max((len(name) for name in self), default=0)
        return "\n".join(f"{name:<{width}} {x:>14.8g} {self.units[name]}" for name, x in self.items())


class Loads:
    """Reactions and loads along a path, computed when a term needs them."""

    def __init__(self, system: System, path: States):
        self.system, self.path = system, path

    @cached_property
    def reactions(self) -> PathReactions:
        """Reactions of all joints and rows."""
        return reactions_along(self.system, self.path)

    @cached_property
    def forces(self) -> tuple[Array, Array]:
        """Loads and powers of forces."""
        return force_loads(self.system, self.path, False)

    def __call__(self, quantity: Quantity) -> Array:
        """Values (n,) of a term in SI units."""
        if quantity.kind == "reaction":
            return self.reactions.wrench[:, self.reactions.joints.index(quantity.name), quantity.index]
        if quantity.kind == "row":
            return self.reactions.multipliers[:, self.reactions.rows.index(quantity.name)]
        return self.forces[0 if quantity.kind == "load" else 1][:, quantity.index]


def measures(system: System, state: State | None = None, a: ArrayLike | None = None) -> MeasureValues:
    """Values of all measures of a mechanism at a state.

    Parameters
    ----------
    system : System
    state : State, optional
        A closed state; by default the start of the model, assembled.
    a : (nv,) array, optional
        Accelerations of the tree coordinates; by default those of the mechanism, computed if a measure needs them.

    Returns
    -------
    MeasureValues
        In the units of the model. Angles between points are within half a turn.

    Examples
    --------
    >>> import loopdyn as ld
    >>> m = ld.library.pendulum()
    >>> m.add_measure("turned", "degrees(A)")
    'turned'
    >>> system = m.compile()
    >>> round(ld.measures(system, system.state(q={"A": 0.5}))["turned"], 6)
    28.64789
    """
    state = assemble(system) if state is None else state
    known = system.measures
    values = measured_at(system, state, known, None if a is None else sized(a, system.nv, "a"))
    return MeasureValues(values, {name: measure.unit for name, measure in known.items()})


def measured_at(
    system: System, state: State, known: Mapping[str, CompiledMeasure], a: Array | None = None
) -> dict[str, float]:
    """Values of compiled formulas at a state; accelerations `a` are computed if one needs them and none are given."""
    if a is not None:
        found = a
    elif any(measure.level >= ACCELERATION for measure in known.values()):
        solved = accelerations_at(system, state)
        found = solved.a if isinstance(solved, Solution) else solved
    else:
        found = np.zeros(system.nv)
    here = States(np.array([state.t]), state.q[None], state.v[None], found[None])
    measured = Measured(system, Path(*here, here.t), Loads(system.for_state(state), here))
    return {name: float(measured.of(measure)[0]) for name, measure in known.items()}


__all__ = ["Loads", "MeasureValues", "measured_at", "measures"]
