"""Outputs of a linearization: coordinates, speeds, accelerations, points, measures, loads, determined reactions.

An output is a function of the motion of the whole mechanism, and is differentiated by a complex step through the
program of its formula. Reactions are multipliers of the mechanism with all joints cut, whose derivatives are those of
:mod:`loopdyn.analysis.derivatives`.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from loopdyn.analysis.derivatives import STEP
from loopdyn.analysis.free_reactions import FreeReactions
from loopdyn.analysis.linear_inputs import LinearInput, LinearInputs
from loopdyn.analysis.minimal_states import Chart, Response
from loopdyn.errors import LoopdynError, ModelError, Problem
from loopdyn.results.force_loads import own_loads
from loopdyn.results.linearization import Signal
from loopdyn.results.measures import Loads, Measured, Path
from loopdyn.system.measures import CompiledMeasure, Quantity, compiled_formula
from loopdyn.system.system import System
from loopdyn.tree import kinematics

Array = NDArray[np.float64]


class _Motion(NamedTuple):
    """Position, speed or acceleration of the tree, or a position of a joint with a quaternion in axes of F."""

    signal: Signal
    kind: str  # "coordinate", "speed", "acceleration" or "in F"
    place: int  # among the speeds
    value: float  # at the state, SI

    def per(self, chart: Chart, r: Response) -> Array:
        source = {"coordinate": r.xi, "speed": r.dv, "acceleration": r.da}
        values: Array = (chart.axes.to_F(r.xi) if self.kind == "in F" else source[self.kind])[self.place]
        return values


def _motion(chart: Chart, name: str) -> _Motion | None:
    """Motion of the tree by its label; None for everything else."""
    system, at, units = chart.at.system, chart.at, chart.at.system.units
    places = {name: k for k, name in enumerate(chart.named.names)}
    of = system.labels.coordinates.get(name)
    if name in places and not (of and of.scalar):  # rotation vectors are zero at the state itself
        d, value = chart.named.dimensions[places[name]], float(at.state.q[of.place]) if of else 0.0
        return _Motion(Signal(name, units.symbol(d), units.factor(d)), "in F", places[name], value)
    if name not in system.labels:
        return None
    label = system.labels.find(name, "outputs")
    base = name.removesuffix(".speed").removesuffix(".acceleration")
    if label.kind not in ("coordinate", "speed", "acceleration") or label.index < 0:
        return None
    if base not in system.labels.speeds:
        hint = f"Its changes are {', '.join(n for n in chart.named.names if n.startswith(label.element + '.'))}."
        raise ModelError([Problem("outputs", f"'{name}' is a component of a quaternion", hint)])
    place = system.labels.speeds[base].place
    value = {"coordinate": at.state.q, "speed": at.state.v, "acceleration": at.a}[label.kind][label.index]
    return _Motion(Signal(name, label.unit, label.factor), label.kind, place, float(value))


class LinearOutputs:
    """Outputs with their values and derivatives.

    Attributes
    ----------
    signals : tuple of Signal
    values : (outputs,) array
        At the state itself, SI.
    """

    def __init__(self, chart: Chart, names: tuple[str, ...], states: Response):
        self.chart, self.at, system = chart, chart.at, chart.at.system
        for k, name in enumerate(names):
            if name in names[:k]:
                raise LoopdynError(f"output '{name}' is named twice. Name each output once.")
        self._read: list[_Motion | CompiledMeasure] = [
            _motion(chart, name) or compiled_formula(system, name, f"output '{name}'") for name in names
        ]
        self.signals = tuple(
            read.signal if isinstance(read, _Motion) else Signal(name, read.unit, read.factor)
            for name, read in zip(names, self._read, strict=True)
        )
        nothing = Response(
            *(np.zeros((len(x), 1)) for x in (states.xi, states.dv, states.da, states.dlam, states.rates))
        )
        self.values = np.array([
            read.value if isinstance(read, _Motion) else float(self._complex(read, nothing, None)[0].real) * read.factor
            for read in self._read
        ])  # fmt: skip

    def per_state(self, states: Response) -> Array:
        """C: outputs per state, SI."""
        return self._per(states, None)

    def per_input(self, inputs: LinearInputs) -> Array:
        """D: outputs per input, the states held, SI."""
        columns = [np.zeros((len(self._read), 0))]
        for one, response in zip(inputs.found, inputs.responses, strict=True):
            column = self._per(response, one)
            if one.by is not None:
                column += one.by(self.at.system, self._with)[:, None]
            columns.append(column)
        return np.hstack(columns)

    def _per(self, response: Response, given: LinearInput | None) -> Array:
        rows = [
            read.per(self.chart, response)
            if isinstance(read, _Motion)
            else self._complex(read, response, given).imag / STEP * read.factor
            for read in self._read
        ]
        return np.array(rows).reshape(len(rows), response.xi.shape[1])

    def _with(self, other: System) -> Array:
        """Outputs that are formulas, SI, at the same coordinates, speeds and accelerations in another system."""
        here, found = self.at.state, []
        path = Path(np.array([here.t]), here.q[None], here.v[None], self.at.a[None], np.zeros(1))
        for read, signal in zip(self._read, self.signals, strict=True):
            if isinstance(read, _Motion):
                found.append(0.0)  # held
                continue
            formula = compiled_formula(other, read.formula, f"output '{signal.name}'")
            found.append(float(Measured(other, path, self._held(other, path)).of(formula)[0]) * read.factor)
        return np.array(found)

    def _held(self, other: System, path: Path) -> Loads:
        """Loads of forces of another system; reactions are held, their changes are part of the response."""
        known = own_loads(other, path)

        def loads(quantity: Quantity) -> NDArray[Any]:
            if quantity.kind not in ("reaction", "row"):
                return known(quantity)
            return np.array([self._free_reactions.value(quantity)])

        return loads

    # ------------------------------------------------------------------------------------------------- formulas

    def _complex(self, read: CompiledMeasure, response: Response, given: LinearInput | None) -> NDArray[np.complex128]:
        """Values of a formula with an imaginary step along each column of a response."""
        path = self._path(response)

        def loads(quantity: Quantity) -> NDArray[np.complex128]:
            if quantity.kind in ("reaction", "row"):
                value, change = self._reactions(quantity, response, given)
                return np.asarray(value + 1j * STEP * change)
            known = own_loads(self.at.system, path)(quantity)
            return known if given is None else known + 1j * STEP * given.own_load(self.at, quantity)

        found: NDArray[np.complex128] = Measured(self.at.system, path, loads).of(read)
        return found

    def _path(self, response: Response) -> Path:
        s, here, m = self.at.system, self.at.state, response.xi.shape[1]
        q = np.empty((m, s.nq), complex)
        for k in range(m):
            kinematics.plus(s.ints, s.floats, here.q.astype(complex), 1j * STEP * response.xi[:, k], q[k])
        v, a = here.v + 1j * STEP * response.dv.T, self.at.a + 1j * STEP * response.da.T
        return Path(np.full(m, here.t, complex), q, v, a, np.zeros(m))

    def _reactions(self, quantity: Quantity, response: Response, given: LinearInput | None) -> tuple[float, Array]:
        free = self._free_reactions
        return free.value(quantity), free.component(quantity, self._path(response), given)

    @cached_property
    def _free_reactions(self) -> FreeReactions:
        return FreeReactions(self.at)
