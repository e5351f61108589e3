"""Results of `equilibrium` and `preload`, as text and data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loopdyn.joints.base import COMPONENTS
from loopdyn.loops.reactions import Reactions, reactions
from loopdyn.model.mechanism import Mechanism
from loopdyn.results.units import factors, load_dimensions, load_units, symbols
from loopdyn.system.system import State, System
from loopdyn.tree.joint_readings import coordinate

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Equilibrium:
    """Static equilibrium and its stability; prints a summary.

    Attributes
    ----------
    system : System
    state : State
        The pose, at rest.
    stability : str
        "stable", "unstable" or "neutral", by the eigenvalues of the reduced stiffness.
    freedoms : tuple of str
        Speeds for which the stiffness is given, as many as the mechanism has degrees of freedom.
    stiffness : (k, k) array
        Reduced stiffness: restoring load per displacement of these coordinates, in declared units (of torque per
        angle, of force per length, ...), see `stiffness_units`.
    eigenvalues : (k,) array
        Eigenvalues of the stiffness in natural units, ascending by their real parts, N m.
    conservative : bool
        Whether the stiffness is symmetric.
    loads : dict
        Load of each force of the model: tension of a line, torque or force on a coordinate; in declared units.
    note : str
        Remarks on the result.
    """

    system: System = field(repr=False)
    state: State
    stability: str
    freedoms: tuple[str, ...]
    stiffness: Array = field(repr=False)
    eigenvalues: NDArray[Any] = field(repr=False)
    conservative: bool
    loads: dict[str, float] = field(repr=False)
    note: str = ""

    def __getitem__(self, label: str) -> float:
        """Value of a coordinate of a tree or cut joint, in its declared unit."""
        return coordinate(self.system, self.state, label) / self.system.labels.factor(label)

    @property
    def stiffness_units(self) -> list[list[str]]:
        """Units of the stiffness: of the load on each of the freedoms per displacement of each."""
        of = [self.system.labels.speeds[label].dimension for label in self.freedoms]
        loads, moves = symbols(self.system, load_dimensions(of)), symbols(self.system, of)
        return [[f"{load}/{move}" for move in moves] for load in loads]

    @cached_property
    def reactions(self) -> Reactions:
        """Joint reactions there."""
        return reactions(self.system, self.state, np.zeros(self.system.nv))

    def as_data(self) -> dict[str, Any]:
        """Plain data of the equilibrium, in declared units."""
        carried = self.reactions
        open_ = [f"{j}.{c}" for j, marks in zip(carried.joints, carried.unique, strict=True)
                 for c, known in zip(COMPONENTS, marks, strict=True) if not known]  # fmt: skip
        return {
            "q": self.system.in_units(dict(zip(self.system.coordinates, self.state.q.tolist(), strict=True))),
            "t": self.state.t,
            "stability": self.stability,
            "freedoms": list(self.freedoms),
            "stiffness": self.stiffness.tolist(),
            "stiffness_units": self.stiffness_units,
            "conservative": self.conservative,
            "loads": dict(self.loads),
            "reactions": {joint: carried[joint] for joint in carried.joints},
            "undetermined": open_,
            "multipliers": dict(carried.multipliers),
            "note": self.note,
        }

    def __str__(self) -> str:
        lines = [f"{self.system.name}: {self.stability} equilibrium"]
        known = dict(zip(self.system.forces, load_units(self.system), strict=True))
        rows = positions(self.system, self.state)
        rows += [(name, f"{x + 0.0:.6g} {known[name]}") for name, x in self.loads.items() if np.isfinite(x)]
        width = max([12, *(len(name) + 1 for name, _ in rows)])
        lines += [f"  {name:<{width}}{text}" for name, text in rows]
        if len(self.freedoms) == 1:
            unit = said_stiffness(self)
            lines.append(f"  stiffness on {self.freedoms[0]}: {unit}")
        elif self.freedoms:
            lines.append("  eigenvalues of the stiffness: " + ", ".join(f"{x:.5g}" for x in self.eigenvalues) + " N*m")
        return "\n".join([*lines, f"  {self.note}"] if self.note else lines)


@dataclass(frozen=True, eq=False)
class Equilibria(Sequence[Equilibrium]):
    """Equilibria found in a range, in the order of the searched coordinate; prints a table.

    Attributes
    ----------
    found : tuple of Equilibrium
    labels : tuple of str
        Coordinates that were searched.
    complete : bool
        Whether all poses were examined, so that there are no other equilibria on this circuit.
    note : str
        Range of the search.
    """

    system: System = field(repr=False)
    found: tuple[Equilibrium, ...]
    labels: tuple[str, ...]
    complete: bool
    note: str

    def __len__(self) -> int:
        return len(self.found)

    def __getitem__(self, k: Any) -> Any:
        return self.found[k]

    def __iter__(self) -> Iterator[Equilibrium]:
        return iter(self.found)

    def __str__(self) -> str:
        count = "1 equilibrium" if len(self) == 1 else f"{len(self)} equilibria"
        lines = [f"{self.system.name}: {count}; {self.note}"]
        notes = [e.note.split("; ") if e.note else [] for e in self]
        common = [text for text in notes[0] if all(text in other for other in notes)] if notes else []
        for e, own in zip(self, notes, strict=True):
            values = dict(positions(self.system, e.state))
            at = ", ".join(
                f"{label} = {values.get(label) or _shown(self.system, e.state, label)}" for label in self.labels
            )
            stiffness = ""
            if len(e.freedoms) == 1:
                stiffness = f", stiffness {said_stiffness(e)}"
            text = "; ".join(x for x in own if x not in common)
            lines.append(f"  {e.stability:<9} {at}{stiffness}" + (f" ({text})" if text else ""))
        return "\n".join([*lines, *(f"  {text}" for text in common)])


@dataclass(frozen=True)
class Preload:
    """Value of a force that makes a pose an equilibrium.

    Attributes
    ----------
    force : str
        The spring, actuator or motor.
    what : str
        "length" (free length), "rest", "torque" or "force".
    value : float
        In the declared unit.
    unit : str
        This unit.
    mechanism : Mechanism
        Model with this value.
    """

    force: str
    what: str
    value: float
    unit: str
    mechanism: Mechanism = field(repr=False)

    def __str__(self) -> str:
        return f"{self.force}: {self.what} = {self.value:.9g} {self.unit}"


def units_of(system: System, label: str) -> tuple[float, str]:
    """SI value and name of the model's unit of a coordinate."""
    dimension = system.labels.coordinates[label].dimension
    return system.units.factor(dimension), "" if dimension == "number" else system.units.symbol(dimension)


def _shown(system: System, state: State, label: str) -> str:
    factor, unit = units_of(system, label)
    value = coordinate(system, state, label) / factor
    return f"{value:.7g} {unit}".strip()


def positions(system: System, state: State) -> list[tuple[str, str]]:
    """Coordinates of the tree in the units of the model."""
    return [(label, _shown(system, state, label)) for label in system.coordinates if label in system.speeds]


def declared_stiffness(system: System, freedoms: Sequence[str], K: Array) -> Array:
    """Stiffness on speeds of the tree or of cut joints, SI, in declared units."""
    of = [system.labels.speeds[label].dimension for label in freedoms]
    declared: Array = K * factors(system, of) / factors(system, load_dimensions(of))[:, None]
    return declared


def said_stiffness(found: Equilibrium) -> str:
    """Stiffness on the only freedom, with its declared unit."""
    return f"{found.stiffness[0, 0]:.6g} {found.stiffness_units[0][0]}"
