"""Many motions of one structure: other states, parameters and inputs, in compiled code on all cores."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from loopdyn.engine.jit import specialise
from loopdyn.engine.uncompiled import python_function
from loopdyn.errors import LoopdynError, warn
from loopdyn.formulations.base import Formulation
from loopdyn.formulations.registry import DEFAULT, chosen, require_support
from loopdyn.integrators.base import Integrator
from loopdyn.integrators.registry import for_formulation
from loopdyn.interrupts import Halt, deferred
from loopdyn.quantities.wording import nearest
from loopdyn.results.bearings import over_time
from loopdyn.results.run import Trajectory
from loopdyn.results.units import coordinate_units, dimensions, shown, speed_units
from loopdyn.run.simulate import check_settings, output_grid, span_of
from loopdyn.studies.rollout_runner import DRIFT, Runner, SampleOutcome, Task
from loopdyn.studies.rollout_samples import Parameters, RolloutSamples, samples_of
from loopdyn.system.system import State, System

if TYPE_CHECKING:
    import xarray

Array = NDArray[np.float64]

REDUCTIONS = ("peak", "last", "rms")
MOST_NUMBERS = 500_000_000  # of all outputs, 4 GB: more belongs into a reduction
PULSE = 0.1  # seconds between two updates of the progress bar, and two checks for Ctrl-C
UNITS = {"q": "coordinate_units", "v": "speed_units", "a": "acceleration_units"}  # coordinates that have them

# Bound at run time.
function: Any = None


def rollout(
    system: System,
    states: State | Sequence[State] | None,
    t_span: tuple[float, float],
    t_eval: ArrayLike | None = None,
    *,
    parameters: Parameters | None = None,
    inputs: Mapping[str, Any] | None = None,
    formulation: str | Formulation = DEFAULT,
    integrator: str | Integrator = "auto",
    rtol: float = 1e-8,
    atol: float | None = None,
    threads: int | None = None,
    reduce: Any = None,
    progress: bool | Callable[[int], object] = True,
) -> xarray.Dataset:
    """Integrate many motions of one structure: other initial states, parameters or inputs, on all cores.

    The result of a sample is that of :func:`simulate` with the same state, to rounding; it does not depend on the other
    samples, their order or the number of threads.

    Parameters
    ----------
    system : System
    states : State or list of State or None
        Closed initial states, one for each sample or one for all, taken as those at the first time of `t_span`. None:
        the start of the model, assembled for each sample.
    t_span : (2,)
        First and last time in s.
    t_eval : array, optional
        Output times of all samples, as for :func:`simulate`.
    parameters : mapping or list of mappings, optional
        Overridden parameters in the units of the model: ``{"crank": [40, 41, 42]}``, or one mapping for each sample.
    inputs : mapping, optional
        Tables of time in place of the laws of forces: ``{"motor": (times, values)}``, with values (n,) for all samples
        or (samples, n), in the units of the model, over the whole span. A component of a force with three is
        ``"push.fx"``, of its torque ``"push.tx"``. Between the times monotone cubics, as for a :class:`Table` of a
        force; ``(times, values, "linear")`` or ``"cubic"`` for others.
    formulation, integrator, rtol, atol
        As for :func:`simulate`.
    threads : int, optional
        Number of threads; by default one for each core.
    reduce : {"peak", "last", "rms"} or function, optional
        Keep less than all outputs of a sample: the largest absolute values, the last ones, the root of the time mean
        of the squares, or what a function compiled by :func:`numba.njit` makes of its outputs ``(t, q, v, a)`` in
        declared units, a number or a one-dimensional array.
    progress : bool or function
        Show a progress bar if the output is a terminal; or call this function with the number of samples done, about
        ten times a second.

    Returns
    -------
    xarray.Dataset
        `q`, `v` and `a` by sample (and time), in declared units, or `value` of a function; `status`, `reason` and
        `seconds` of each sample. A sample that fails or stops early never stops others: its outputs are NaN from
        there on, and with `reduce` all of them. After Ctrl-C samples that are not finished have the status
        "interrupted".

    Raises
    ------
    LoopdynError
        If the model calls Python functions, which would be called one at a time.

    Examples
    --------
    >>> import loopdyn as ld
    >>> system = ld.library.four_bar().compile()
    >>> states = [ld.assemble(system, v={"A": speed}) for speed in (6.0, 7.0, 8.0)]
    >>> found = ld.rollout(system, states, (0, 0.5), progress=False)
    >>> found["q"].dims, found["status"].values.tolist()
    (('sample', 'time', 'coordinate'), ['finished', 'finished', 'finished'])
    >>> faster = ld.rollout(system, states, (0, 0.5), reduce="peak", progress=False)
    >>> faster["v"].sel(speed="A").dims
    ('sample',)
    """
    _require_compiled(system)
    span = span_of(t_span)
    check_settings(rtol, atol, DRIFT)
    samples = samples_of(system, states, parameters, inputs, span)
    method = chosen(formulation)
    stepping = for_formulation(integrator, method)
    require_support(samples.system, method)
    task = Task(samples, output_grid(t_eval, *span), span, method, stepping, rtol, atol)
    kept = _kept(reduce, samples, task.times)
    with deferred() as stop:
        _run(task, kept, _thread_count(threads, samples.count), stop, progress)
    for text, k in kept.warnings.items():
        warn(f"{system.name}: sample {k}: {text}")
    return kept.dataset()


def _require_compiled(system: System) -> None:
    m = system.mechanism
    for kind, found in (("force", m.user_forces), ("constraint", m.user_constraints)):
        if found:
            raise LoopdynError(
                f"{kind} '{next(iter(found))}' is a Python function, which only one thread at a time can call. Write "
                "it as a formula or table, or use ld.simulate for each sample."
            )


def _thread_count(threads: int | None, samples: int) -> int:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if threads is None:
        return min(cores, samples)
    if threads < 1:
        raise LoopdynError(f"threads is {threads}. Give a positive number, or leave it out for one per core.")
    if threads > cores:
        warn(f"rollout: {threads} threads on {cores} cores take turns; more than one per core gains nothing.")
    return min(threads, samples)


# ------------------------------------------------------------------------------------------------ threads


def _run(task: Task, kept: RolloutResults, threads: int, stop: Halt, progress: bool | Callable[[int], object]) -> None:
    """Run all samples in threads, which take the next one when they are free, until all are done or the user stops."""
    waiting, lock = iter(range(task.samples.count)), threading.Lock()
    broken = threading.Event()

    def work() -> None:
        runner = Runner(task, stop)
        while not (stop.wanted or broken.is_set()):
            with lock:
                k = next(waiting, None)
            if k is None:
                return
            outcome = runner.run(k)
            if outcome.status != "interrupted":
                kept.put(k, outcome)

    with ThreadPoolExecutor(threads) as pool, _Bar(task, progress) as bar:
        futures = {pool.submit(work) for _ in range(threads)}
        try:
            left = futures
            while left:
                done, left = wait(left, PULSE, FIRST_EXCEPTION)
                for future in done:
                    future.result()
                try:
                    bar.show(kept.done)
                except KeyboardInterrupt:
                    stop.ask()
        finally:
            broken.set()  # an error of the program itself, or a second Ctrl-C: no further samples


class _Bar:
    """Progress bar over the samples."""

    def __init__(self, task: Task, wanted: bool | Callable[[int], object]):
        self.name, self.count, self.wanted = task.samples.system.name, task.samples.count, wanted
        self.bar: Any = None

    def __enter__(self) -> _Bar:
        if self.wanted is True:
            from rich.console import Console
            from rich.progress import Progress

            console = Console(stderr=True)
            if console.is_terminal:
                self.bar = Progress(console=console, transient=True)
                self.task = self.bar.add_task(self.name, total=self.count)
                self.bar.start()
        return self

    def show(self, done: int) -> None:
        """Show the number of samples that are done."""
        if callable(self.wanted):
            self.wanted(done)
        if self.bar is not None:
            self.bar.update(self.task, completed=done)

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.stop()


# ------------------------------------------------------------------------------------------------ results


def _kept(reduce: Any, samples: RolloutSamples, times: Array) -> RolloutResults:
    """Arrays for the results, by the reduction that is asked for."""
    if reduce is None:
        return AllOutputs(samples, times)
    if isinstance(reduce, str):
        if reduce not in REDUCTIONS:
            raise LoopdynError(f"there is no reduction '{reduce}'. {nearest(reduce, REDUCTIONS)}")
        return Reduced(samples, times, reduce)
    if python_function(reduce) is reduce:
        raise LoopdynError(
            "reduce is a Python function, which only one thread at a time can call. Compile it: @numba.njit, with the "
            "arguments (t, q, v, a)."
        )
    return ReducedByFunction(samples, times, reduce)


class RolloutResults:
    """Results of all samples: what is common to all reductions."""

    def __init__(self, samples: RolloutSamples, times: Array):
        self.samples, self.times, n = samples, times, samples.count
        self.status = np.full(n, "interrupted", object)
        self.reason = np.full(n, "the user stopped before it was finished", object)
        self.seconds, self.energy_error = np.full(n, np.nan), np.full(n, np.nan)
        self.done, self.warnings = 0, dict[str, int]()  # texts, and the first sample that each is about
        self.lock = threading.Lock()

    def put(self, k: int, outcome: SampleOutcome) -> None:
        """Keep the outcome of sample k."""
        wrong = "" if outcome.path is None else self.keep(k, outcome.path, outcome.status == "finished")
        if wrong:
            outcome = outcome._replace(status="failed", reason=wrong)
        self.status[k], self.reason[k], self.seconds[k] = outcome.status, outcome.reason, outcome.seconds
        self.energy_error[k] = outcome.energy_error
        with self.lock:
            self.done += 1
            for text in outcome.warnings:
                self.warnings[text] = min(k, self.warnings.get(text, k))

    def keep(self, k: int, path: Trajectory, whole: bool) -> str:
        """Keep outputs of sample k; `whole`: they reach the end. The reason if it fails, or ""."""
        raise NotImplementedError

    def declared(self, values: Array, dim: str) -> Array:
        """Values in the declared units of the labels of their last dimension."""
        return shown(self.samples.system, values, dimensions(self.samples.system, dim))

    def variables(self) -> dict[str, Any]:
        """Variables of the Dataset, with dimensions and units."""
        raise NotImplementedError

    def dataset(self) -> xarray.Dataset:
        """Dataset of all samples."""
        from loopdyn.quantities.labels import dataset

        s = self.samples.system
        data = {
            **self.variables(),
            "status": ("sample", self.status.astype(str)),
            "reason": ("sample", self.reason.astype(str)),
            "energy_error": ("sample", self.energy_error, {"units": "1", "means": "relative energy-balance error"}),
            "seconds": ("sample", self.seconds, {"units": "s", "means": "computing time"}),
        }
        names, table = self.samples.parameter_table()
        if names:
            data["parameters"] = (("sample", "parameter"), table, {"units": "those of the model"})
        used = {dim for dims, *_ in data.values() for dim in ([dims] if isinstance(dims, str) else dims)}
        coords = {
            "sample": np.arange(self.samples.count),
            "time": ("time", self.times, {"units": "s"}),
            "coordinate": np.array(s.coordinates, str),
            "speed": np.array(s.speeds, str),
            "parameter": np.array(names, str),
        }
        coords = {name: x for name, x in coords.items() if name in used}
        if "coordinate" in used:
            coords["coordinate_units"] = ("coordinate", np.array(coordinate_units(s), str))
        if "speed" in used:
            coords["speed_units"] = ("speed", np.array(speed_units(s), str))
            coords["acceleration_units"] = ("speed", np.array(speed_units(s, 2), str))
        return dataset(data, coords, {"name": s.name})


class AllOutputs(RolloutResults):
    """All outputs of all samples."""

    def __init__(self, samples: RolloutSamples, times: Array):
        super().__init__(samples, times)
        n, m, s = samples.count, len(times), samples.system
        numbers = n * m * (s.nq + 2 * s.nv)
        if numbers > MOST_NUMBERS:
            raise LoopdynError(
                f"the outputs of {n} samples at {m} times need {8e-9 * numbers:.3g} GB. Use reduce=, or fewer times: "
                "t_eval."
            )
        self.arrays = {name: np.full((n, m, size), np.nan) for name, size in (("q", s.nq), ("v", s.nv), ("a", s.nv))}

    def keep(self, k: int, path: Trajectory, whole: bool) -> str:
        """Keep the outputs at the times of all: a run that stops may have one more."""
        n = int(np.searchsorted(self.times, path.t[-1], side="right")) if len(path) else 0
        for name, array in self.arrays.items():
            array[k, :n] = getattr(path, name)[:n]
        return ""

    def variables(self) -> dict[str, Any]:
        """q, v and a by sample and time."""
        dims = {"q": "coordinate", "v": "speed", "a": "speed"}
        return {
            name: (("sample", "time", dims[name]), self.declared(x, dims[name]), {"units": UNITS[name]})
            for name, x in self.arrays.items()
        }


class Reduced(RolloutResults):
    """One number for each coordinate, speed and acceleration of a sample."""

    def __init__(self, samples: RolloutSamples, times: Array, how: str):
        super().__init__(samples, times)
        n, s = samples.count, samples.system
        self.how = how
        self.arrays = {name: np.full((n, size), np.nan) for name, size in (("q", s.nq), ("v", s.nv), ("a", s.nv))}

    def keep(self, k: int, path: Trajectory, whole: bool) -> str:
        """Keep the reduced outputs of a sample that reached the end."""
        for name, array in self.arrays.items() if whole else ():
            array[k] = reduced(self.how, path.t, getattr(path, name))
        return ""

    def variables(self) -> dict[str, Any]:
        """q, v and a by sample."""
        dims = {"q": "coordinate", "v": "speed", "a": "speed"}
        about = {"reduced": self.how}
        return {
            name: (("sample", dims[name]), self.declared(x, dims[name]), {"units": UNITS[name], **about})
            for name, x in self.arrays.items()
        }


class ReducedByFunction(RolloutResults):
    """Value of a compiled function of the outputs of a sample."""

    def __init__(self, samples: RolloutSamples, times: Array, given: Any):
        super().__init__(samples, times)
        self.given, self.kernel = given, specialise(apply, function=given)
        self.array: Array | None = None
        self.scalar = True

    def keep(self, k: int, path: Trajectory, whole: bool) -> str:
        """Keep the value of the function for a sample that reached the end; what it raises is the reason."""
        if not whole:
            return ""
        q, v, a = (self.declared(x, of) for x, of in ((path.q, "coordinate"), (path.v, "speed"), (path.a, "speed")))
        outputs = tuple(np.ascontiguousarray(x) for x in (path.t, q, v, a))
        try:
            with self.lock:
                if self.array is None:
                    self.array = self._empty(self.given(*outputs))
            self.kernel(*outputs, self.array[k])
        except (ArithmeticError, LookupError, ValueError) as error:  # of compiled code; others are mistakes in it
            return f"reduce: {type(error).__name__}: {error}"
        return ""

    def _empty(self, value: Any) -> Array:
        found = np.asarray(value, float)
        if found.ndim > 1:
            raise LoopdynError(f"reduce returns {found.ndim} dimensions. Return a number or a one-dimensional array.")
        self.scalar = found.ndim == 0
        return np.full((self.samples.count, max(found.size, 1)), np.nan)

    def variables(self) -> dict[str, Any]:
        """Value of the function by sample."""
        values = np.full((self.samples.count, 1), np.nan) if self.array is None else self.array
        return {"value": ("sample", values[:, 0]) if self.scalar else (("sample", "item"), values)}


def apply(t: Any, q: Any, v: Any, a: Any, out: Any) -> None:
    """Value of the bound function of a path, into out (n,)."""
    out[:] = function(t, q, v, a)


def reduced(how: str, t: Array, x: Array) -> Array:
    """Reduction of outputs x (n, m) at the times t (n,) to (m,).

    Examples
    --------
    >>> t = np.array([0.0, 1.0, 3.0])
    >>> reduced("rms", t, np.array([[1.0], [1.0], [1.0]])), reduced("peak", t, np.array([[1.0], [-4.0], [2.0]]))
    (array([1.]), array([4.]))
    """
    result: Array
    if how == "last":
        result = x[-1]
    elif how == "peak":
        result = np.abs(x).max(axis=0)
    else:
        result = np.sqrt(over_time(x**2, t))
    return result


__all__ = ["rollout"]
