"""`linearize`: the linear equations of a closed mechanism for small motions about a state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from loopdyn.analysis.assembly import assemble
from loopdyn.analysis.derivatives import Derivatives
from loopdyn.analysis.linear_inputs import LinearInputs
from loopdyn.analysis.linear_outputs import LinearOutputs
from loopdyn.analysis.linear_remarks import remarks
from loopdyn.analysis.minimal_states import SPEED, Chart
from loopdyn.analysis.resting_contacts import with_resting_contacts
from loopdyn.errors import LoopdynError
from loopdyn.loops.projection import project
from loopdyn.results.equilibrium import Equilibrium
from loopdyn.results.linear_path import LinearizationPath
from loopdyn.results.linearization import Linearization, Matrices, Signal
from loopdyn.results.run import Run
from loopdyn.system.system import State, System

Array = NDArray[np.float64]


@overload
def linearize(
    system: System,
    state: State | Equilibrium | None = None,
    *,
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
    independent: Sequence[str] | None = None,
) -> Linearization: ...
@overload
def linearize(
    system: System,
    state: Run,
    *,
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
    independent: Sequence[str] | None = None,
) -> LinearizationPath: ...
def linearize(
    system: System,
    state: State | Equilibrium | Run | None = None,
    *,
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
    independent: Sequence[str] | None = None,
) -> Linearization | LinearizationPath:
    """Linear equations of small motions about a state, all loops closed, in minimal coordinates.

    States are independent positions, then independent speeds; all others follow from the closed loops. Derivatives are
    exact: no difference quotients of the motion. Away from rest and from an equilibrium the equations hold for small
    deviations from the motion that passes through the state; the rates of the states there are the `residual`.
    Redundant constraint equations do no harm.

    A contact that presses at the state is a constraint of these equations, which hold while it stays closed: its force,
    the margin, is in the `contacts` of the result.

    Parameters
    ----------
    system : System
    state : State, Equilibrium or Run, optional
        A closed state; by default the start of the model, assembled. Of a run, its outputs: A(t), B(t) along it.
    inputs : sequence of str, optional
        By name, and each is a small addition to what the model has: motors and actuators ("motor"), components of
        applied forces ("push.fx"), parameters, and drivers and moved bases, of which position, speed and acceleration
        are three inputs: "drive", "drive.speed", "drive.acceleration"; "ground.x", ...
    outputs : sequence of str, optional
        Labels ("A", "A.speed", "C.fx", "motor.load"), measures, or formulas of them and of points ("x(P)",
        "distance(P, Q)"). By default the independent positions.
    independent : sequence of str, optional
        Names of the independent positions, and of speeds with ".speed" where rolling leaves fewer of them; by default
        the best ones by the projective criterion.

    Returns
    -------
    Linearization or LinearizationPath

    Raises
    ------
    AssemblyError
        If the loops are open at the state.
    SingularityError
        At a singular pose, where accelerations are not unique.
    LoopdynError
        Where small motions have no linear equations: at a contact that is hit, or touches without pressing; along a
        run whose constraints change.

    Examples
    --------
    Small swings of a hanging double pendulum:

    >>> import loopdyn as ld
    >>> system = ld.library.double_pendulum().compile()
    >>> there = ld.linearize(system, ld.equilibrium(system))
    >>> [s.name for s in there.states], len(there.modes())
    (['A', 'B', 'A.speed', 'B.speed'], 2)
    """
    options = _Options(tuple(inputs or ()), None if outputs is None else tuple(outputs))
    if isinstance(state, Run):
        return _along(system, state, options, independent)
    if isinstance(state, Equilibrium):
        state = state.state
    state = assemble(system) if state is None else state
    return _at_state(system, state, options, independent)


class _Options(NamedTuple):
    inputs: tuple[str, ...]
    outputs: tuple[str, ...] | None


def _along(system: System, run: Run, options: _Options, independent: Sequence[str] | None) -> LinearizationPath:
    """Linear equations along a run, with the independent coordinates of its first output."""
    if not len(run.path.t):
        raise LoopdynError("the run has no outputs. Simulate a longer span.")
    _require_same_constraints(run)
    first = run.state(0)
    names, resting = independent, with_resting_contacts(system.for_state(first), first)
    if names is None:
        chart = Chart(Derivatives(resting.system, first))
        names = chart.names if len(chart.speeds) < len(chart.positions) else chart.names[: len(chart.positions)]

    def at(t: float, complete: bool = True) -> Linearization:
        there = run.at(t)
        of = resting.system.for_state(there)
        closed = replace(project(of, there).state, tolerated=there.tolerated)
        found = _at_state(system, closed, options if complete else _Options((), ()), names)
        if found.contacts.keys() != resting.forces.keys():
            raise LoopdynError(
                f"other contacts are closed at t = {t:g} s than at the start of the run, so that there are no linear "
                "equations along all of it. Take a part of the run in which they stay as they are."
            )
        return found

    return LinearizationPath(run, tuple(at(float(t)) for t in run.path.t), at)


def _require_same_constraints(run: Run) -> None:
    """Raise if constraints of a run change, or are not those of its system."""
    changed = any(phase.locks or phase.released or phase.added for phase in run.phases)
    present = [system for system, _, _ in run.pieces]
    if changed or len({phase.touching for phase in run.phases if any(phase.system is s for s in present)}) > 1:
        raise LoopdynError(
            f"constraints change in this run of '{run.system.name}' (locks, releases, contacts), and with them the "
            "states of linear equations. Linearize a run between these events, or single states: "
            "ld.linearize(system, run.at(t))."
        )


def _at_state(system: System, start: State, options: _Options, independent: Sequence[str] | None) -> Linearization:
    system, forces, contact_notes = with_resting_contacts(system.for_state(start), start, options.inputs)
    at = Derivatives(system, start)
    chart = Chart(at, independent)
    found = chart.states()
    named, units = chart.named, system.units
    states = tuple(
        Signal(name, units.symbol(d, int(name.endswith(SPEED))), units.factor(d))
        for name, d in zip(chart.names, chart.dimensions, strict=True)
    )
    given = LinearInputs(chart, options.inputs)
    wanted = tuple(named.names[k] for k in chart.positions) if options.outputs is None else options.outputs
    read = LinearOutputs(chart, wanted, found)
    matrices = Matrices(found.rates, given.rates(len(states)), read.per_state(found), read.per_input(given))
    natural = np.array([1.0 if d == "angle" else system.size for d in chart.dimensions])
    return Linearization(
        system, at.state, states, given.signals, read.signals, matrices, (*contact_notes, *remarks(at, chart)), forces,
        chart.rates(), read.values, natural, found.xi, chart.axes.to_F(found.xi),
    )  # fmt: skip
