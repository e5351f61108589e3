"""Evaluation of designs: the numbers of one design, and of a chunk of them in whatever process or thread.

A :class:`Job` is all that a worker needs, and is sent to it once; a chunk is the values of parameters of some designs.
Designs are independent: their numbers depend neither on the worker nor on other designs of the chunk.
"""

from __future__ import annotations

import math
import os
import pickle
import platform
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from loopdyn.analysis.assembly import assemble
from loopdyn.analysis.drive import drive
from loopdyn.analysis.equilibrium import equilibrium
from loopdyn.analysis.linearize import linearize
from loopdyn.analysis.measures import measured_at
from loopdyn.errors import AssemblyError, LoopdynError, LoopdynWarning, ModelError
from loopdyn.formulations.base import Formulation
from loopdyn.integrators.base import Integrator
from loopdyn.integrators.dependence import moves_by_itself
from loopdyn.interrupts import Halt
from loopdyn.results.drive import Drive
from loopdyn.results.equilibrium import Equilibrium
from loopdyn.results.run import Run
from loopdyn.studies.clearance import displaced
from loopdyn.studies.columns import REDUCTIONS, Column, Over, compiled
from loopdyn.studies.rollout_runner import Runner, Task
from loopdyn.studies.rollout_samples import RolloutSamples
from loopdyn.system.measures import CompiledMeasure
from loopdyn.system.system import State, System
from loopdyn.system.variation import with_parameters

Array = NDArray[np.float64]

# Codes of the status of a design, as they are stored.
STATUSES = ("not run", "finished", "stopped", "not assembled", "invalid", "failed", "worker died")
NOT_RUN, FINISHED, STOPPED, NOT_ASSEMBLED, INVALID, FAILED, DIED = range(len(STATUSES))


@dataclass(frozen=True, eq=False)
class Job:
    """Analysis that is made of every design.

    Attributes
    ----------
    system : System
        With the parameters of the model.
    parameters : tuple of str
        Names of the parameters that designs override.
    columns : tuple of Column
    over : {"run", "drive", "equilibrium", "pose"}
    span : tuple of float
        First and last time of a run, s.
    times : array
        Output times of a run, or values of the input of a drive in declared units.
    input : str
        Label that a drive moves.
    """

    system: System
    parameters: tuple[str, ...]
    columns: tuple[Column, ...]
    over: Over
    span: tuple[float, float] = (0.0, 0.0)
    times: Array = field(default_factory=lambda: np.zeros(0))
    input: str = ""
    method: Formulation | None = None
    integrator: Integrator | None = None
    rtol: float = 1e-8
    atol: float | None = None
    tolerance: float | tuple[float, float] | None = None
    clearances: tuple[str, ...] = ()  # joints whose offsets are the last columns of the designs, two each
    paths: str = ""  # folder for the runs or drives themselves; empty: they are not kept


class Row(NamedTuple):
    """Result of one design."""

    status: int
    reason: str
    values: list[float]
    seconds: float


class Evaluator:
    """Evaluates designs one after the other; each thread has its own.

    Parameters
    ----------
    job : Job
    stop : Halt
        Request of the user to stop.
    """

    def __init__(self, job: Job, stop: Halt | None = None):
        self.job, self.stop = job, stop or Halt()
        self._formulas: dict[str, CompiledMeasure] = {}

    @cached_property
    def _runner(self) -> Runner:
        job = self.job
        assert job.method is not None
        assert job.integrator is not None
        samples = RolloutSamples(job.system, 1, None, (), ())
        task = Task(samples, job.times, job.span, job.method, job.integrator, job.rtol, job.atol)
        return Runner(task, self.stop)

    def row(self, values: Sequence[float], index: int = 0) -> Row | None:
        """Numbers of a design from the values of its parameters; None if the user stopped before it was finished."""
        begin, found = time.perf_counter(), [math.nan] * len(self.job.columns)
        try:
            system = self._system(values)
            status, reason = self._evaluate(system, found, index)
        except AssemblyError as error:
            status, reason = NOT_ASSEMBLED, str(error)
        except ModelError as error:
            status, reason = INVALID, str(error)
        except LoopdynError as error:
            status, reason = FAILED, str(error)
        if self.stop.wanted and status == NOT_RUN:
            return None
        return Row(status, reason, found, time.perf_counter() - begin)

    def _system(self, values: Sequence[float]) -> System:
        """System of a design."""
        job, k = self.job, len(values) - 2 * len(self.job.clearances)
        row = dict(zip(job.parameters, values[:k], strict=True))
        if job.clearances:
            return displaced(job.system, job.clearances, row, values[k:])
        return with_parameters(job.system, row)

    def _evaluate(self, system: System, found: list[float], index: int) -> tuple[int, str]:
        of = {"run": self._run, "drive": self._drive, "equilibrium": self._equilibrium, "pose": self._pose}
        return of[self.job.over](system, found, index)

    # ---------------------------------------------------------------------------------------- each analysis

    def _run(self, system: System, found: list[float], index: int) -> tuple[int, str]:
        state = assemble(system, t=self.job.span[0], tolerance=self.job.tolerance)
        outcome = self._runner.run_from(system, system, state)
        if outcome.status == "interrupted" or outcome.path is None:
            return NOT_RUN, outcome.reason
        settings = {"moved": moves_by_itself(system)}
        run = outcome.run or Run(system, outcome.path, outcome.status, outcome.reason, settings=settings)
        self._keep(run, index)
        if run.status != "finished":
            return (STOPPED if run.status == "stopped" else FAILED), run.message
        return self._fill(found, lambda column: self._of_run(run, column), run)

    def _of_run(self, run: Run, column: Column) -> float:
        if column.text == "energy error":
            return run.energy_error
        if column.load is not None:
            values = self._bearing_load(run, column)
        else:
            values = run._measured.of(self._formula(run.system, column))
        return _reduced(column, values, run.path.t)

    def _bearing_load(self, run: Run, column: Column) -> Array:
        n, group, unit = self._components[column.name]
        wrench, unique, _ = run.wrench
        if not all(unique[n, k] for k in group):
            raise LoopdynError(f"'{column.text}' is statically indeterminate")
        return np.asarray(np.sqrt(sum(wrench[:, n, k] ** 2 for k in group)) / unit)

    @cached_property
    def _components(self) -> dict[str, tuple[int, tuple[int, ...], float]]:
        """Joint, components of its wrench and unit of each bearing load."""
        system, found = self.job.system, {}
        joints = list(system.mechanism.joints)
        for column in self.job.columns:
            if column.load is not None:
                joint, part = column.load
                group = tuple(system.joints[joint].spec.bearing_loads[part])
                unit = system.units.factor("torque" if group[0] < 3 else "force")
                found[column.name] = joints.index(joint), group, unit
        return found

    def _drive(self, system: System, found: list[float], index: int) -> tuple[int, str]:
        job = self.job
        near = None if job.tolerance is None else assemble(system, tolerance=job.tolerance)
        done = drive(system, job.input, job.times, near=near)
        self._keep(done, index)
        status, reason = self._fill(found, lambda column: self._of_drive(done, column), done)
        return (status, reason) if done.status == "complete" or status != FINISHED else (STOPPED, done.message)

    def _of_drive(self, done: Drive, column: Column) -> float:
        if column.text == "reach":
            return float(done.parameter_values()[-1]) if done.steps else math.nan
        if done.status != "complete":
            return math.nan
        made = self._formula(done.system, column)
        return _reduced(column, done._measured.of(made), done.parameter_values())

    def _equilibrium(self, system: System, found: list[float], index: int) -> tuple[int, str]:
        rest = equilibrium(system)
        values = self._at_state(system, rest.state, None, np.zeros(system.nv)) | self._poles(system, rest)
        return self._fill(found, lambda column: values[column.name], rest)

    def _poles(self, system: System, rest: Equilibrium) -> dict[str, float]:
        """Parts of poles by the names of their columns."""
        columns = [(c.name, *c.pole) for c in self.job.columns if c.pole is not None]
        if not columns:
            return {}
        poles, count = linearize(system, rest).poles(), 1 + max(k for _, k, _ in columns)
        if len(poles) != count:
            raise LoopdynError(f"there are {len(poles)} poles, but {count} with the parameters of the model.")
        return {name: float(poles[k].real if part == "re" else poles[k].imag) for name, k, part in columns}

    def _pose(self, system: System, found: list[float], index: int) -> tuple[int, str]:
        values: dict[tuple[str, float] | None, dict[str, float]] = {}

        def value(column: Column) -> float:
            at = column.at
            if at not in values:
                q = None if at is None else dict([at])
                state = assemble(system, q=q, tolerance=self.job.tolerance)
                values[at] = self._at_state(system, state, at)
            return values[at][column.name]

        first = None
        if any(column.function is not None for column in self.job.columns):
            first = assemble(system, tolerance=self.job.tolerance)
        return self._fill(found, value, first)

    def _at_state(
        self, system: System, state: State, at: tuple[str, float] | None, a: Array | None = None
    ) -> dict[str, float]:
        """Values at a state of all columns that are taken there."""
        columns = [c for c in self.job.columns if c.function is None and c.pole is None and c.at == at]
        formulas = {c.name: self._formula(system, c) for c in columns}
        return measured_at(system.for_state(state), state, formulas, a)

    # ------------------------------------------------------------------------------------------- the columns

    def _fill(self, found: list[float], value: Callable[[Column], float], result: Any) -> tuple[int, str]:
        """Fill in the numbers of all columns; the first reason why one is missing."""
        for k, column in enumerate(self.job.columns):
            try:
                found[k] = value(column) if column.function is None else _called(column, result)
            except (AssemblyError, ModelError):
                raise
            except LoopdynError as error:
                return FAILED, f"measure '{column.name}': {error}"
            if not math.isfinite(found[k]) and self._must_be_finite(result):
                return FAILED, f"measure '{column.name}' is {found[k]}"
        return FINISHED, ""

    def _must_be_finite(self, result: Any) -> bool:
        return not (isinstance(result, Drive) and result.status != "complete")

    def _formula(self, system: System, column: Column) -> CompiledMeasure:
        """Compiled formula of a column, for this system or, if it does not depend on its numbers, for all alike."""
        alike = column.fixed and system.ints is self.job.system.ints
        if not alike:
            return compiled(system, column)
        if column.name not in self._formulas:
            self._formulas[column.name] = compiled(self.job.system, column)
        return self._formulas[column.name]

    def _keep(self, result: Run | Drive, index: int) -> None:
        if self.job.paths:
            result.save(Path(self.job.paths) / f"design_{index:07d}.nc")


def _reduced(column: Column, values: Array, along: Array) -> float:
    if column.at is not None:
        return float(values[int(np.argmin(np.abs(along - column.at[1])))])
    return float(REDUCTIONS[column.reduction](values, along))


def _called(column: Column, result: Any) -> float:
    assert column.function is not None
    try:
        return float(column.function(result))
    except LoopdynError:
        raise
    except Exception as error:  # of the user's function
        raise LoopdynError(f"{type(error).__name__}: {error}") from None


# ---------------------------------------------------------------------------------------------- in a worker


class Chunk(NamedTuple):
    """Results of some designs, or a request for the model."""

    lacks_model: bool
    values: Array
    status: NDArray[np.int8]
    seconds: Array
    reasons: dict[int, str]  # by place in the chunk
    warnings: dict[str, int]  # text and place in the chunk of the first design
    worker: str  # processor on which it was computed


MODELS_KEPT = 2
_JOBS: dict[str, tuple[Job, Halt | None]] = {}  # by key, in the order of use
_LOCK = threading.Lock()
_own = threading.local()  # evaluators of a thread


def offer_job(key: str, job: Job, stop: Halt | None) -> None:
    """Make a job known to threads of this process."""
    with _LOCK:
        _JOBS[key] = job, stop


def forget_job(key: str) -> None:
    """Forget a job of this process."""
    with _LOCK:
        _JOBS.pop(key, None)


def evaluate_chunk(key: str, model: bytes | None, home: tuple[str, int], first: Sequence[int], rows: Array) -> Chunk:
    """Evaluate some designs in this process.

    Parameters
    ----------
    key : str
        Of the job.
    model : bytes or None
        The job, for a worker that does not have it yet.
    home : (str, int)
        Machine and process that asks; every other process is a worker, which does not write compiled kernels.
    first : list of int
        Numbers of the designs.
    rows : (n, parameters) array
    """
    away = home != (platform.node(), os.getpid())
    evaluator = _evaluator(key, model, away)
    if evaluator is None:
        return Chunk(True, np.zeros((0, 0)), np.zeros(0, np.int8), np.zeros(0), {}, {}, "")
    with warnings.catch_warnings(record=True) if away else _as_usual() as heard:
        if away:
            warnings.simplefilter("always", LoopdynWarning)
        return _evaluated(evaluator, first, rows, heard)


def _evaluated(evaluator: Evaluator, first: Sequence[int], rows: Array, heard: Any) -> Chunk:
    n, texts = len(rows), dict[str, int]()
    values = np.full((n, len(evaluator.job.columns)), np.nan)
    status, seconds, reasons = np.zeros(n, np.int8), np.full(n, np.nan), dict[int, str]()
    for k in range(n):
        row = None if evaluator.stop.wanted else evaluator.row(rows[k].tolist(), int(first[k]))
        if row is None:
            break
        status[k], seconds[k], values[k] = row.status, row.seconds, row.values
        if row.reason:
            reasons[k] = row.reason
        for one in heard or ():
            if issubclass(one.category, LoopdynWarning):
                texts.setdefault(str(one.message), k)
        if heard:
            heard.clear()
    return Chunk(False, values, status, seconds, reasons, texts, processor())


class _as_usual:
    """Context in which warnings are shown as usual: filters belong to all threads of a process."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        return None


def _evaluator(key: str, model: bytes | None, away: bool) -> Evaluator | None:
    """Evaluator of this thread for a job; None if the job is not known here."""
    mine: dict[str, Evaluator] = _own.__dict__.setdefault("evaluators", {})
    if key in mine:
        return mine[key]
    with _LOCK:
        if key not in _JOBS and model is not None:
            if away:
                _begin_worker()
            _JOBS[key] = _received(model), None
            while len(_JOBS) > MODELS_KEPT and away:
                _JOBS.pop(next(iter(_JOBS)))
        found = _JOBS.get(key)
    if found is None:
        return None
    while len(mine) >= MODELS_KEPT:
        mine.pop(next(iter(mine)))
    mine[key] = Evaluator(*found)
    return mine[key]


def _received(model: bytes) -> Job:
    """Job from its bytes; its arrays are read-only as they were, by which kernels are chosen."""
    job: Job = pickle.loads(model)
    system: System | None = job.system
    while system is not None:
        system.ints.flags.writeable = system.floats.flags.writeable = False
        system = system.exact
    return job


def _begin_worker() -> None:
    """Let this process use compiled kernels without writing any."""
    from loopdyn.engine import cache

    cache.use_read_only()


def processor() -> str:
    """Processor for which kernels are compiled here: numbers may differ in their last digits on another."""
    import llvmlite.binding

    from loopdyn.engine import packs

    pack = packs.found().pack
    return str(llvmlite.binding.get_host_cpu_name()) if pack is None else f"{pack.target[1]} (pack)"


__all__ = ["FINISHED", "NOT_RUN", "STATUSES", "Chunk", "Evaluator", "Job", "Row", "evaluate_chunk", "forget_job",
           "offer_job", "processor"]  # fmt: skip
