"""Inputs of a linearization: small additions to motors and forces, to drivers and moved bases, and to parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from loopdyn.analysis.derivatives import (
    DIFFERENCE,
    Derivatives,
    TermsChange,
    by_parameter,
    five_points,
    no_change,
    parameter_value,
)
from loopdyn.analysis.minimal_states import Chart, Response
from loopdyn.errors import LoopdynError
from loopdyn.loops.continuation import largest
from loopdyn.quantities.expressions import run_program
from loopdyn.quantities.wording import unknown
from loopdyn.results.force_loads import own_loads
from loopdyn.results.linearization import Signal
from loopdyn.results.measures import Path
from loopdyn.system.builder import build
from loopdyn.system.laws import COMPONENTS, Law, force_law, with_laws
from loopdyn.system.measures import Quantity
from loopdyn.system.system import System
from loopdyn.tree.functions import terms

Array = NDArray[np.float64]

LEVELS = ("", ".speed", ".acceleration")
BASE = ("x", "y", "z", "rx", "ry", "rz")


class LinearInput(NamedTuple):
    """An input: its signal, the changes that it causes while the state is held, and systems with other values of it."""

    signal: Signal
    changes: Callable[[Derivatives], TermsChange]  # per SI unit
    # derivative per SI unit of a function of a system whose numbers change with the input
    by: Callable[[System, Callable[[System], Array]], Array] | None = None
    law: Law | None = None  # that the input adds to

    def own_load(self, at: Derivatives, quantity: Quantity) -> float:
        """TermsChange of the load or power of the force itself per SI unit of the input: both are linear in its law."""
        if self.law is None or quantity.name != self.law.name:
            return 0.0
        if COMPONENTS.count(self.signal.name.rpartition(".")[2]):
            raise LoopdynError(
                f"output '{quantity.name}.{quantity.kind}' is the size of a force, of which input "
                f"'{self.signal.name}' is a component. Leave it out: the input is known."
            )
        here, s = at.state, at.system
        path = Path(np.array([here.t]), here.q[None], here.v[None], at.a[None], np.zeros(1))
        some, none = (float(own_loads(_with_load(s, self.law, x), path)(quantity)[0]) for x in (1.0, 0.0))
        return (some - none) / self.signal.factor


def find_input(system: System, name: str, t: float) -> LinearInput:
    """Input of this name; raises if there is none."""
    m = system.mechanism
    base, level = _split(name)
    if base in m.drivers:
        return _of_driver(system, name, base, level)
    body, _, component = base.rpartition(".")
    if body in system.bodies[: system.n_bases] and component in BASE:
        return _of_base(system, name, body, component, level, t)
    if name in m.parameters:
        return _of_parameter(system, name)
    if name in m.user_forces:
        raise LoopdynError(f"input '{name}' is a Python function. Add a motor or a force where it acts.")
    if name.partition(".")[0] in m.forces:
        return _of_force(system, name)
    known = [*m.forces, *m.drivers, *m.parameters, *(f"{body}.x" for body in system.bodies[: system.n_bases])]
    raise unknown("inputs", "motor, force, driver, parameter or moved base", [name], known)


def _split(name: str) -> tuple[str, int]:
    """Name without ".speed" or ".acceleration", and its order of derivative."""
    for order, suffix in ((1, LEVELS[1]), (2, LEVELS[2])):
        if name.endswith(suffix):
            return name.removesuffix(suffix), order
    return name, 0


def _of_driver(system: System, name: str, driver: str, order: int) -> LinearInput:
    """Position, speed or acceleration of a driver: phi = x - motion, and its rates."""
    row = system.constraint_rows.index(driver)
    dimension = system.row_dimensions[row]

    def changes(at: Derivatives) -> TermsChange:
        found = no_change(at.system)
        (found.phi, found.rate, found.bias)[order][at.system.constraint_rows.index(driver), 0] = -1.0
        return found

    return LinearInput(Signal(name, system.units.symbol(dimension, order), system.units.factor(dimension)), changes)


def _of_force(system: System, name: str) -> LinearInput:
    """Load of a motor, or a component of a force: h is linear in it."""
    law = force_law(system, name)

    factor = system.units.factor(law.dimension)

    def changes(at: Derivatives) -> TermsChange:
        found, s = no_change(at.system), at.system
        size = max(1.0, largest(at.terms.h) / factor)  # of the size of the other loads: the least rounding
        none, some = (_with_load(s, law, x) for x in (0.0, size))
        found.balance[:, 0] = -(terms(some, at.state).h - terms(none, at.state).h) / (size * factor)
        return found

    return LinearInput(Signal(name, system.units.symbol(law.dimension), factor), changes, law=law)


def _with_load(system: System, law: Law, value: float) -> System:
    """System in which a number, declared unit, stands in place of the law of a force."""
    return system.kept.find("input load", (law, value), lambda: with_laws(system, {law: value}))


def _of_parameter(system: System, name: str) -> LinearInput:
    """Parameter, in its own unit."""
    parameter_value(system, name)  # which checks it
    return LinearInput(
        Signal(name, "", 1.0), lambda at: at.by_parameter(name), lambda other, f: by_parameter(other, name, f)
    )


def _of_base(system: System, name: str, body: str, component: str, order: int, t: float) -> LinearInput:
    """Displacement, speed or acceleration of a base: differences of its motion over time, which is replaced."""
    dimension = "length" if component in BASE[:3] else "angle"
    factor = system.units.factor(dimension)

    def moved(other: System, t: float, x: float) -> System:
        jet = base_jet(other, body, component, t)
        jet[order] += x
        return _with_base(other, body, component, t, jet / factor)

    def by(other: System, f: Callable[[System], Array]) -> Array:
        h = DIFFERENCE * (system.size if dimension == "length" else 1.0)
        found: Array = five_points(lambda x: f(moved(other, t, x)), h)
        return found

    signal = Signal(name, system.units.symbol(dimension, order), factor)
    return LinearInput(signal, lambda at: at.split(by(at.system, at.residuals)), by)


def base_jet(system: System, body: str, component: str, t: float) -> Array:
    """Displacement of a base and its first and second derivative at a time, SI."""
    model = system.model
    n = int(model.base_programs[system.bodies.index(body), BASE.index(component)])
    if n < 0:
        return np.zeros(3)
    jets = np.zeros((max(1, len(system.open_work(system.work()).jets)), 3))
    jets[0] = t, 1.0, 0.0
    stack = np.zeros_like(system.open_work(system.work()).stack)
    begin, end = model.program[n], model.program[n + 1]
    return np.array(run_program(model.code, begin, end, model.constants, jets, stack), float)


def _with_base(system: System, body: str, component: str, t: float, jet: Array) -> System:
    """System whose base has a given displacement, speed and acceleration at a time, declared units."""
    from loopdyn.model.mechanism import BaseMotion

    m = system.mechanism.snapshot()
    x, v, a = (repr(float(value)) for value in jet)
    formula = f"{x} + ({v})*(t - ({t!r})) + 0.5*({a})*(t - ({t!r}))**2"
    m.base[body] = m.base.get(body, BaseMotion()).model_copy(update={component: formula})
    made = build(m, list(system.topology.cuts), counted=system.counted)
    if made.coordinates != system.coordinates:
        raise LoopdynError(f"the tree changes if base '{body}' is moved. Compile the mechanism with cuts=[...].")
    return made.tolerating_as(system)


class LinearInputs:
    """Inputs with the responses to them.

    Attributes
    ----------
    signals : tuple of Signal
    responses : list of Response
        To each input, per SI unit.
    """

    def __init__(self, chart: Chart, names: tuple[str, ...]):
        at = chart.at
        for k, name in enumerate(names):
            if name in names[:k]:
                raise LoopdynError(f"input '{name}' is named twice. Name each input once.")
        self.found = [find_input(at.system, name, at.state.t) for name in names]
        self.signals = tuple(one.signal for one in self.found)
        self.responses: list[Response] = []
        none = np.zeros((len(chart.speeds), 1))
        for one in self.found:
            change = one.changes(at)
            y = chart.poses(change.phi, f"input '{one.signal.name}'")
            self.responses.append(chart.response(y, none, change))

    def rates(self, states: int) -> Array:
        """Rates (states, inputs) of the states per input, SI."""
        return np.hstack([np.zeros((states, 0)), *(r.rates for r in self.responses)])
