"""From a closed state to a trajectory: solver, integrator, outputs, checks, progress."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

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
from loopdyn.quantities.wording import nearest
from loopdyn.results.run import Run
from loopdyn.run.corners import corners, table_corners
from loopdyn.run.course import Course
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

# Outputs where none are asked for: one every 10 ms, but within these numbers.
INTERVAL, FEWEST, MOST = 0.01, 200, 5000
# Floating-point numbers that a span must hold, so that outputs and steps have times of their own, and seconds, so that
# squares of steps are no zeros.
RESOLVED, SHORTEST_SPAN = 1e5, 1e-100
MOST_OUTPUTS = 100_000_000  # times of a run: more is a slip, and would not fit into memory
OWN = "by the steps themselves"  # drift control of formulations that make steps


@deferring
def simulate(
    system: System,
    state: State,
    t_span: tuple[float, float],
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
    state : State
        A closed state, e.g. from :func:`loopdyn.assemble`, taken as that at the first time of `t_span`.
    t_span : (2,)
        First and last time in s.
    t_eval : array, optional
        Output times, ascending, inside the span. By default one every 10 ms, at least 200 and at most 5000 over the
        span. Steps of the integrator do not depend on them.
    formulation : str or Formulation
        How accelerations are found.
    integrator : str or Integrator
        "auto" (DOP853, and Stiff from where stability limits its steps, see ``run.events``), "dop853", "dp5", "stiff",
        or one with its options, e.g. ``ld.RK4(step=1e-3)``.
    rtol : float
        Error of a step: of positions in rad or sizes of the mechanism, of speeds relative to the fastest so far.
    atol : float, optional
        Added to it: rad or sizes of the mechanism, and the same per second. By default nothing is added, and the
        fastest speed so far counts as no smaller than a natural floor, a millionth of what gravity and stiffness give:
        in an equilibrium it is rounding. With a number there is no such floor.
    drift : str or Baumgarte
        What keeps loops closed: "projection" (one linear correction of position and velocity per step), "velocity"
        (of velocity alone), "baumgarte" (feedback), "none".
    events : list
        What is watched: :class:`Crossing`, :class:`At`, :class:`Limits`, or functions ``f(t, q, v)`` whose zeros are
        recorded. What happened is in ``run.events``. Limits of joints are watched in every run: what happens there is
        said by `at_limit` of the joint, if no :class:`Limits` is among the events.
    progress : bool or function
        Show a progress bar, where the output is a terminal; or call this function with the time reached, some ten times
        a second. Where it raises KeyboardInterrupt, the run ends with what was computed, as by Ctrl-C (a second Ctrl-C
        ends it at once).
    checkpoint : path, optional
        Folder to which segments of the run are added as it goes. Called again with the same arguments, a run that was
        interrupted or killed goes on from the last segment that is whole. With other arguments, functions of user
        forces and events included, it is refused.

    Returns
    -------
    Run
        Also where the simulation could not reach the end: see its `status` and `message`.

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
    start, end = _span(t_span)
    system = system.for_state(state)
    first = State(start, np.array(state.q, float), np.array(state.v, float))
    times = _times(t_eval, start, end)
    check_settings(rtol, atol, drift)
    events = with_limits_of_model(system, events)
    method = chosen(formulation)
    stepping = for_formulation(integrator, method)
    if stepping.drives_steppers and drift != "projection":
        raise LoopdynError(f"{method.name} closes loops by its own steps, in its own way. Leave drift out.")
    require_support(system, method)
    decided, singular = _rank_at(system, method, first)
    solver, rank = prepare_at(system, method, first, decided), decided.count
    check_closed(system, first, "at the start")
    stepper = Stepper(system, solver, stepping, drift, rank, rtol, atol or 0.0)
    settings = _settings(method, stepper, rtol, atol)
    check_tables(system, [first])
    watched = watch(system, events, rank, first, end)
    watched.crossings += table_corners(system)
    recorder, journal = Recorder(system, times, stepper.sources, drift), Journal(system, solver)
    driven = corners(system, start, end)
    course = Course(system, stepper, method, watched, end, driven, recorder, journal, settings)
    segments = None
    if checkpoint is not None:
        methods = {"formulation": method, "integrator": stepping}
        segments = Checkpoint(checkpoint, description(system, first, times, end, events, methods, settings))
    return _drive(RunDriver(course, first, singular), progress, segments, begin)


def _drive(
    driver: RunDriver, progress: bool | Callable[[float], object], checkpoint: Checkpoint | None, begin: float
) -> Run:
    """Start or resume a run, go on until something ends it, and give what there is."""
    resumed = driver.resume(checkpoint)
    ready = time.perf_counter()
    if not resumed:
        driver.begin()
    name, start, end = driver.course.system.name, driver.first.t, driver.course.end
    with deferred() as stop, Progress(name, start, end, progress, stop) as bar:
        driver.run(bar, stop, checkpoint)
    integrating = time.perf_counter() - ready
    run = driver.result(time.perf_counter() - begin, integrating, checkpoint)
    for text in driver.suspicious():
        warn(text)
    return run


def _rank_at(system: System, method: Formulation, state: State) -> tuple[Rank, bool]:
    """Rank of the rows at a state or, where it is singular and the method can go through, where its speeds lead.

    And whether it is singular.
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
    """How a run is made, as words and numbers."""
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


# --------------------------------------------------------------------------------------------- what is given


def _span(t_span: tuple[float, float]) -> tuple[float, float]:
    span = np.asarray(t_span, float)
    if span.shape != (2,) or not np.isfinite(span).all() or not span[1] > span[0]:
        raise LoopdynError(f"t_span is {t_span}. Give the first and the last time in s, the last one being later.")
    start, end = span.tolist()
    if not SHORTEST_SPAN <= end - start < np.inf:
        raise LoopdynError(f"t_span is {t_span}, {end - start:g} s long. Give a span from {SHORTEST_SPAN:g} s on.")
    apart = float(np.spacing(max(abs(start), abs(end))))  # of two floating-point numbers there
    if end - start < RESOLVED * apart:
        raise LoopdynError(
            f"t_span is {t_span}: numbers as large as these times are {apart:.2g} s apart, too far for a span of "
            f"{end - start:g} s. Let time begin at 0."
        )
    return start, end


def output_times(start: float, end: float, every: float) -> Array:
    """Times at a distance of `every`, the last one of the span included.

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


def _times(t_eval: ArrayLike | None, start: float, end: float) -> Array:
    if t_eval is None:
        return np.linspace(start, end, 1 + int(np.clip(np.ceil((end - start) / INTERVAL), FEWEST, MOST)))
    times = np.array(t_eval, float)
    if times.ndim != 1 or not len(times) or not np.isfinite(times).all() or np.any(np.diff(times) <= 0.0):
        raise LoopdynError("t_eval must be a list of ascending times in s.")
    if times[0] < start or times[-1] > end:
        raise LoopdynError(f"t_eval goes from {times[0]:g} to {times[-1]:g} s, outside of t_span. Extend t_span.")
    return times


def check_settings(rtol: float, atol: float | None, drift: Any) -> None:
    """Refuse tolerances and drift controls that make no sense.

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


__all__ = ["check_settings", "output_times", "simulate"]
