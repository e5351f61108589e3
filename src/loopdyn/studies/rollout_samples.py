"""Samples of a rollout: the state, parameters and input tables of each, from what the user gives for all."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from loopdyn.analysis.assembly import assemble
from loopdyn.engine import records as rec
from loopdyn.engine.layout import opened
from loopdyn.errors import ExpressionError, LoopdynError
from loopdyn.forces.base import Table
from loopdyn.quantities.expressions import Interpolation, Program, table_program
from loopdyn.quantities.wording import nearest
from loopdyn.system.laws import Law, constants_of, force_law, with_laws
from loopdyn.system.system import State, System, require_state
from loopdyn.system.variation import with_parameters

Array = NDArray[np.float64]
Parameters = Mapping[str, Any] | Sequence[Mapping[str, Any]]


class LoadTable(NamedTuple):
    """Table of time of one load, shared or one for each sample."""

    law: Law
    times: Array  # (n,) s
    values: Array  # (1 or samples, n), in the units of the model
    interpolation: Interpolation
    unit: float  # SI value of the unit of the values

    def curve(self, k: int) -> Program:
        """Program of sample k, by which the constants and breakpoints of the table are known."""
        values = self.values[k if len(self.values) > 1 else 0]
        return table_program(
            self.times,
            values,
            0,
            interpolation=self.interpolation,
            outside="hold",
            output_scale=self.unit,
        )


@dataclass(frozen=True)
class RolloutSamples:
    """All samples of a rollout.

    Attributes
    ----------
    system : System
        System of all samples, with tables where there are inputs.
    count : int
    states : tuple of State or None
        One for each sample, or one for all; None if each is assembled at the start of its model.
    parameters : tuple of mappings
        One for each sample, or one for all; empty if none is overridden.
    inputs : tuple of LoadTable
    """

    system: System
    count: int
    states: tuple[State, ...] | None
    parameters: tuple[Mapping[str, Any], ...]
    inputs: tuple[LoadTable, ...]

    def varied(self, k: int) -> System:
        """System with the parameters of sample k."""
        if not self.parameters:
            return self.system
        return with_parameters(self.system, self.parameters[k if len(self.parameters) > 1 else 0])

    def parameter_table(self) -> tuple[list[str], Array]:
        """Names of the parameters that are overridden, and their values (samples, n) in the units of the model."""
        names = list(dict.fromkeys(name for row in self.parameters for name in row))
        before = self.system.mechanism.resolver().parameters if names else {}
        table = np.array([[float(row.get(name, before[name])) for name in names] for row in self.parameters])
        return names, np.broadcast_to(table, (self.count, len(names)))

    def state_of(self, k: int, system: System) -> State:
        """State of sample k, whose system is given; raises if it is not finite."""
        if self.states is None:
            return assemble(system)
        state = self.states[k if len(self.states) > 1 else 0]
        for labels, values in ((system.coordinates, state.q), (system.speeds, state.v)):
            if not np.isfinite(values).all():
                n = int(np.argmin(np.isfinite(values)))
                raise LoopdynError(f"'{labels[n]}' of its state is {values[n]}. Give finite numbers.")
        return state

    def with_inputs(self, system: System, k: int) -> System:
        """System with the tables of sample k in place of those of the first."""
        if not self.inputs:
            return system
        floats, tables = system.floats.copy(), list(system.tables)
        constants = opened(rec.open_model, system.ints, floats).constants
        for one in self.inputs:
            program = one.curve(k)
            at = constants_of(system, one.law)
            assert at is not None
            constants[at : at + len(program.constants)] = program.constants
            assert program.table is not None
            place = self._tables()[one.law]
            tables[place] = replace(tables[place], lookup=program.table)
        floats.flags.writeable = False
        other = copy.copy(system)
        other.__dict__.update(floats=floats, tables=tuple(tables))
        return other

    def _tables(self) -> dict[Law, int]:
        """Places of the tables of the inputs among those of the system, whose forces list them in this order."""
        found: dict[Law, int] = {}
        for name in {one.law.name for one in self.inputs}:
            number = self.system.forces.index(name)
            own = [place for place, table in enumerate(self.system.tables) if table.force == number]
            laws = sorted(one.law for one in self.inputs if one.law.name == name)
            found |= dict(zip(laws, own, strict=True))
        return found


# ---------------------------------------------------------------------------------------------- arguments


def samples_of(
    system: System,
    states: State | Sequence[State] | None,
    parameters: Parameters | None,
    inputs: Mapping[str, Any] | None,
    span: tuple[float, float],
) -> RolloutSamples:
    """Samples from the arguments of :func:`loopdyn.rollout`; raises LoopdynError if they do not fit together."""
    given = None if states is None else (states,) if isinstance(states, State) else tuple(states)
    rows = _parameter_rows(parameters)
    tables = [_read_input(system, label, table, span) for label, table in (inputs or {}).items()]
    lengths = {
        "states": 1 if given is None else len(given),
        "parameters": max(len(rows), 1),
        **{f"input '{one.law.name}'": len(one.values) for one in tables},
    }
    if (given is not None and not given) or (parameters is not None and not rows):
        raise LoopdynError("there are no samples: states or parameters are empty. Give at least one of each.")
    count = max(lengths.values())
    wrong = [f"{n} of {what}" for what, n in lengths.items() if n not in (1, count)]
    if wrong:
        raise LoopdynError(f"{count} samples, but {', '.join(wrong)}. Give one for all, or one for each sample.")
    for k, state in enumerate(given or ()):
        try:
            require_state(system, state)
        except LoopdynError as error:
            raise LoopdynError(f"sample {k}: {error} All samples have one structure.") from None
    if tables:
        system = _with_tables(system, tables)
    _check_names(system, rows)
    return RolloutSamples(system, count, given, rows, tuple(tables))


def _check_names(system: System, rows: Sequence[Mapping[str, Any]]) -> None:
    known = system.mechanism.parameters
    unknown = sorted({str(name) for row in rows for name in row if name not in known})
    if unknown:
        raise LoopdynError(f"parameter '{unknown[0]}': there is no such parameter. {nearest(unknown[0], known)}")


def _parameter_rows(parameters: Parameters | None) -> tuple[Mapping[str, Any], ...]:
    """Parameters of each sample, from a mapping of names to values or arrays, or from a list of mappings."""
    if parameters is None:
        return ()
    if not isinstance(parameters, Mapping):
        return tuple(_numbers_only(dict(row)) for row in parameters)
    columns = {name: np.atleast_1d(np.asarray(x, object)) for name, x in parameters.items()}
    bad = [name for name, x in columns.items() if x.ndim != 1]
    if bad:
        raise LoopdynError(f"parameter '{bad[0]}' has several dimensions. Give one number for each sample.")
    lengths = {name: len(x) for name, x in columns.items()}
    count = max(lengths.values(), default=0)
    wrong = [f"'{name}' has {n}" for name, n in lengths.items() if n not in (1, count)]
    if wrong:
        raise LoopdynError(f"parameters of {count} samples, but {', '.join(wrong)}. Give one for all, or one for each.")
    rows = ({name: x[k if len(x) > 1 else 0] for name, x in columns.items()} for k in range(count))
    return tuple(map(_numbers_only, rows))


def _numbers_only(row: dict[str, Any]) -> dict[str, float]:
    """Parameters of one sample as numbers; raises if one is something else, such as a formula."""
    for name, value in row.items():
        if not isinstance(value, Real):
            raise LoopdynError(f"parameter '{name}' is {value!r}. Give a number for each sample, or one for all.")
    return {name: float(value) for name, value in row.items()}


def _read_input(system: System, label: str, given: Any, span: tuple[float, float]) -> LoadTable:
    """Table of a label, a force or a component of one, from times, values and an interpolation."""
    law = force_law(system, label)
    times, values, how = _table_of(label, given)
    found = LoadTable(law, times, values, how, system.mechanism.units.factor(law.dimension))
    try:
        for k in range(len(values)):
            found.curve(k)
    except ExpressionError as error:
        raise LoopdynError(f"input '{label}': {error}.") from None
    if times[0] > span[0] or times[-1] < span[1]:
        where = f"from {times[0]:g} to {times[-1]:g} s, the run from {span[0]:g} to {span[1]:g} s"
        raise LoopdynError(f"input '{label}': its table goes {where}. Give values for the whole run.")
    return found


def _table_of(label: str, given: Any) -> tuple[Array, Array, Interpolation]:
    hint = "Give (times, values) or (times, values, interpolation)."
    if not isinstance(given, tuple) or len(given) not in (2, 3):
        raise LoopdynError(f"input '{label}' is no table. {hint}")
    how: Interpolation = given[2] if len(given) == 3 else "monotone"
    if how not in ("monotone", "linear", "cubic"):
        raise LoopdynError(f"input '{label}': there is no interpolation {how!r}. Known: monotone, linear, cubic.")
    times, values = _numbers(label, given[0]), np.atleast_2d(_numbers(label, given[1]))
    if times.ndim != 1 or len(times) < 2 or values.ndim != 2 or values.shape[1] != len(times) or not len(values):
        shapes = f"{np.shape(given[0])} and {np.shape(given[1])}"
        raise LoopdynError(
            f"input '{label}': times and values have the shapes {shapes}. Give (n,) and (n,) or (samples, n)."
        )
    return times, values, how


def _numbers(label: str, given: ArrayLike) -> Array:
    try:
        found = np.asarray(given, float)
    except (TypeError, ValueError):
        raise LoopdynError(f"input '{label}': its table is not made of numbers.") from None
    if not np.isfinite(found).all():
        raise LoopdynError(f"input '{label}': its table has a number that is not finite.")
    return found


def _with_tables(system: System, inputs: Sequence[LoadTable]) -> System:
    """System in which tables of time stand in place of the laws of the inputs: those of the first sample."""
    tables = {}
    for one in inputs:
        points = tuple(zip(one.times.tolist(), one.values[0].tolist(), strict=True))
        tables[one.law] = Table(of="t", points=points, interpolation=one.interpolation, outside="hold")
    return with_laws(system, tables)
