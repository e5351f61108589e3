"""Simulation of a mechanism from a closed state: solver, integrator, outputs, checks, progress."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from loopdyn.analysis.assembly import assemble
from loopdyn.errors import LoopdynError, SingularityError, warn
from loopdyn.formulations.base import Formulation
from loopdyn.formulations.momentum.formulation import nearby_regular_pose
from loopdyn.formulations.registry import DEFAULT, chosen, prepare_at, require_support
from loopdyn.integrators.base import Integrator
from loopdyn.integrators.dependence import moves_by_itself
from loopdyn.integrators.drift import DRIFTS, Baumgarte, Drift
from loopdyn.integrators.registry import for_formulation
from loopdyn.integrators.stepper import Stepper
from loopdyn.interrupts import deferred, deferring
from loopdyn.loops.rank import Rank, decide, require_regular
from loopdyn.quantities.times import check_span, given_times
from loopdyn.quantities.wording import nearest
from loopdyn.results.run import Run
from loopdyn.run.breakpoints import table_breakpoints, time_breakpoints
from loopdyn.run.compliance import compliant_changes, unsampled
from loopdyn.run.context import RunContext
from loopdyn.run.driver import RunDriver
from loopdyn.run.event_handling import check_closed
from loopdyn.run.events import Given, watch, with_limits_of_model
from loopdyn.run.progress import Progress
from loopdyn.run.recorder import Journal, Recorder
from loopdyn.run.restart import Checkpoint, description
from loopdyn.run.singular_passage import require_branch
from loopdyn.system.system import State, System
from loopdyn.tree.tables import check_tables

Array = NDArray[np.float64]

# Default number of outputs: one every 10 ms, but within these numbers.
INTERVAL, FEWEST, MOST = 0.01, 200, 5000
# Smallest number of floating-point numbers in a span, so that outputs and steps have distinct times, and of seconds,
# so that squares of steps do not underflow.
RESOLVED, SHORTEST_SPAN = 1e5, 1e-100
MOST_OUTPUTS = 100_000_000  # most output times of a run: more is a mistake, and would not fit into memory
OWN = "by the steps themselves"  # drift control of stepping formulations


@deferring
def simulate(
    system: System,
    state: State | None = None,
    t_span: tuple[float, float] | None = None,
    *,
    t_eval: ArrayLike | None = None,
    formulation: str | Formulation = DEFAULT,
    integrator: str | Integrator = "auto",
    rtol: float = 1e-8,
    atol: float | None = None,
    drift: Drift = "projection",
    events: Sequence[Given] = (),
    progress: bool | Callable[[float], object] = True,
    checkpoint: str | os.PathLike[str] | None = None,
) -> Run:
    """Integrate the motion of a mechanism.

    Parameters
    ----------
    system : System
    state : State, optional
        A closed state, e.g. from :func:`loopdyn.assemble`, taken as that at the first time of `t_span`; by default the
        start of the model, assembled.
    t_span : (2,)
        First and last time in s: ``ld.simulate(system, t_span=(0, 5))``.
    t_eval : array, optional
        Output times, ascending, inside the span. By default one every 10 ms, at least 200 and at most 5000 over the
        span. Steps of the integrator do not depend on them.
    formulation : str or Formulation
        Method that computes accelerations.
    integrator : str or Integrator
        "auto" (DOP853, and Stiff from where stability limits its steps, see ``run.events``), "dop853", "dp5", "stiff",
        or one with its options, e.g. ``ld.integrators.RK4(step=1e-3)``.
    rtol : float
        Error of a step: of positions in natural units (rad, or lengths relative to the mechanism's size), of speeds
        relative to the fastest so far.
    atol : float, optional
        Absolute error added to it, in natural units and natural units per second. By default nothing is added, and the
        fastest speed so far is at least a floor, a millionth of the speed that gravity and stiffness give, since at an
        equilibrium it is only rounding. With a number there is no such floor.
    drift : str or Baumgarte
        Drift control: "projection" (one linear correction of position and velocity per step), "velocity" (correction of
        velocity alone), "baumgarte" (feedback), "none".
    events : list
        Events to detect: :class:`Crossing`, :class:`At`, :class:`Limits`, or functions ``f(t, q, v)`` whose zeros are
        recorded. Those that happened are in ``run.events``. Joint limits are monitored in every run: `at_limit` of the
        joint says what happens there, if no :class:`Limits` is among the events.
    progress : bool or function
        Show a progress bar if the output is a terminal; or call this function with the time reached, about ten times a
        second. If it raises KeyboardInterrupt, the run ends with the outputs computed so far, as on Ctrl-C (a second
        Ctrl-C ends it at once).
    checkpoint : path, optional
        Folder to which segments of the run are added as it proceeds. Called again with the same arguments, a run that
        was interrupted or killed resumes from the last complete segment. With other arguments, including functions of
        user forces and events, the folder is refused.

    Returns
    -------
    Run
        Returned also if the simulation could not reach the end: see its `status` and `message`.

    Warns
    -----
    LoopdynWarning
        If a joint leaves its limits, or the relative energy-balance error is above 1 %.

    Examples
    --------
    >>> import loopdyn as ld
    >>> system = ld.library.four_bar().compile()
    >>> run = ld.simulate(system, ld.assemble(system), (0, 0.5), progress=False)
    >>> run.status, run.energy_error < 1e-7, run.largest_residual < 1e-9
    ('finished', True, True)
    """
    begin = time.perf_counter()
    if t_span is None:
        raise LoopdynError("simulate: the time is missing. Give the first and the last time in s: t_span=(0, 5).")
    start, end = span_of(t_span)
    state = assemble(system, t=start) if state is None else state
    system = system.for_state(state)
    first = State(start, np.array(state.q, float), np.array(state.v, float))
    times = output_grid(t_eval, start, end)
    choices = run_choices(formulation, integrator, rtol, atol, drift)
    events = with_limits_of_model(system, events)
    driver = prepare_run(system, first, end, times, choices, events)
    segments = None
    if checkpoint is not None:
        methods, settings = {"formulation": choices.method, "integrator": choices.integrator}, driver.context.settings
        segments = Checkpoint(checkpoint, description(system, first, times, end, events, methods, settings))
    return drive_to_end(driver, progress, segments, begin)


class RunChoices(NamedTuple):
    """Methods and tolerances of a run, checked."""

    method: Formulation
    integrator: Integrator
    rtol: float
    atol: float | None
    drift: Drift


def run_choices(
    formulation: str | Formulation, integrator: str | Integrator, rtol: float, atol: float | None, drift: Drift
) -> RunChoices:
    """Methods and tolerances of a run from the arguments of :func:`simulate`; raises if they do not go together."""
    check_settings(rtol, atol, drift)
    method = chosen(formulation)
    stepping = for_formulation(integrator, method)
    if stepping.drives_steppers and drift != "projection":
        raise LoopdynError(f"the steps of {method.name} close loops themselves. Leave drift out.")
    return RunChoices(method, stepping, rtol, atol, drift)


def prepare_run(
    system: System,
    first: State,
    end: float,
    times: Array,
    choices: RunChoices,
    events: Sequence[Given],
    last: float | None = None,
) -> RunDriver:
    """Prepare a run from a closed state to `end`; events may be as late as `last`, by default the end."""
    method, integrator, rtol, atol, drift = choices
    require_support(system, method)
    decided, singular = _rank_at(system, method, first)
    solver, rank = prepare_at(system, method, first, decided), decided.count
    check_closed(system, first, "at the start")
    stepper = Stepper(system, solver, integrator, drift, rank, rtol, atol or 0.0)
    settings = _settings(method, stepper, rtol, atol)
    check_tables(system, [first])
    watched = watch(system, events, rank, first, end if last is None else last)
    watched.crossings += table_breakpoints(system) + compliant_changes(system)
    recorder, journal = Recorder(system, times, stepper.sources, drift), Journal(system, solver)
    driven = time_breakpoints(system, first.t, end)
    context = RunContext(system, stepper, method, watched, end, driven, recorder, journal, settings)
    return RunDriver(context, first, singular)


def drive_to_end(
    driver: RunDriver,
    progress: bool | Callable[[float], object] = False,
    checkpoint: Checkpoint | None = None,
    begin: float | None = None,
) -> Run:
    """Start or resume a run, drive it until it ends, and return its result; it was prepared from the time `begin`."""
    begin = time.perf_counter() if begin is None else begin
    resumed = driver.resume(checkpoint)
    ready = time.perf_counter()
    if not resumed:
        driver.begin()
    name, start, end = driver.context.system.name, driver.first.t, driver.context.end
    with deferred() as stop, Progress(name, start, end, progress, stop) as bar:
        driver.run(bar, stop, checkpoint)
    integrating = time.perf_counter() - ready
    run = driver.result(time.perf_counter() - begin, integrating, checkpoint)
    for text in (*driver.suspicious(), *unsampled(run.system, run.events, run.path.t)):
        warn(text)
    return run


def _rank_at(system: System, method: Formulation, state: State) -> tuple[Rank, bool]:
    """Rank of the constraint rows at a state, and whether the state is singular.

    At a singular state that the method can pass, it is the rank a short way along its speeds.
    """
    decided = decide(system, state)
    try:
        require_regular(system, decided)
    except SingularityError:
        if not method.passes(system):
            raise
        require_branch(system, state, decided.count + 1)
        return decide(system, nearby_regular_pose(system, state)), True
    return decided, False


def _settings(method: Formulation, stepper: Stepper, rtol: float, atol: float | None) -> dict[str, Any]:
    """Settings of a run, as text and numbers."""
    drift, plan = stepper.drift, method.explains(stepper.system, stepper.solver)
    return {
        **({"plan": plan} if plan else {}),
        "formulation": repr(method),
        "integrator": repr(stepper.integrator),
        "rtol": rtol,
        "atol": atol,
        "drift": OWN if stepper.integrator.drives_steppers else repr(drift) if isinstance(drift, Baumgarte) else drift,
        "compiled": not stepper.in_python,
        "moved": moves_by_itself(stepper.system),
        **({"tolerated": str(stepper.system.tolerated)} if stepper.system.tolerated is not None else {}),
    }


# ------------------------------------------------------------------------------------------------- arguments


def span_of(t_span: tuple[float, float]) -> tuple[float, float]:
    """First and last time of a run, s; raises if there is no time between them."""
    check_span(t_span)
    start, end = np.asarray(t_span, float).tolist()
    if not SHORTEST_SPAN <= end - start < np.inf:
        raise LoopdynError(f"t_span is {t_span}, {end - start:g} s long. Give a span from {SHORTEST_SPAN:g} s on.")
    apart = float(np.spacing(max(abs(start), abs(end))))  # distance of two floating-point numbers there
    if end - start < RESOLVED * apart:
        raise LoopdynError(
            f"t_span is {t_span}: numbers as large as these times are {apart:.2g} s apart, too far for a span of "
            f"{end - start:g} s. Let time begin at 0."
        )
    return start, end


def output_times(start: float, end: float, every: float) -> Array:
    """Output times `every` apart, including the end of the span.

    Examples
    --------
    >>> output_times(0.0, 1.0, 0.4)
    array([0. , 0.4, 0.8, 1. ])
    """
    if not (np.isfinite(every) and every > 0.0) or not end > start:
        raise LoopdynError(f"outputs every {every} s from {start:g} to {end:g} s. Give positive numbers of seconds.")
    if (end - start) / every > MOST_OUTPUTS:
        raise LoopdynError(f"outputs every {every:g} s from {start:g} to {end:g} s are more than {MOST_OUTPUTS:,}.")
    times = np.array([start + every * k for k in range(int(np.floor((end - start) / every + 1e-9)) + 1)])
    times[-1] = min(times[-1], end)
    return times if times[-1] > end - 1e-9 * every else np.array([*times, end])


def output_grid(t_eval: ArrayLike | None, start: float, end: float) -> Array:
    """Output times of a run, s: those given, or as many as are usual for the span."""
    if t_eval is None:
        return np.linspace(start, end, 1 + int(np.clip(np.ceil((end - start) / INTERVAL), FEWEST, MOST)))
    return given_times(t_eval, start, end)


def check_settings(rtol: float, atol: float | None, drift: Any) -> None:
    """Raise if a tolerance or the drift control is invalid.

    Examples
    --------
    >>> check_settings(1e-8, None, "projektion")
    Traceback (most recent call last):
    ...
    loopdyn.errors.LoopdynError: there is no drift control 'projektion'. Did you mean 'projection'?
    """
    if not 0.0 < rtol < 1.0:
        raise LoopdynError(f"rtol is {rtol}. Give a number between 0 and 1, such as 1e-8.")
    if atol is not None and not (np.isfinite(atol) and atol >= 0.0):
        raise LoopdynError(f"atol is {atol}. Give zero or a positive number, such as 1e-10.")
    if not isinstance(drift, Baumgarte) and drift not in DRIFTS:
        raise LoopdynError(f"there is no drift control '{drift}'. {nearest(str(drift), DRIFTS)}")


__all__ = [
    "RunChoices",
    "check_settings",
    "drive_to_end",
    "output_grid",
    "output_times",
    "prepare_run",
    "run_choices",
    "simulate",
    "span_of",
]
