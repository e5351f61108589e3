"""`study`: the same analysis of many designs, on threads, processes or a cluster, with results that are never lost."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from loopdyn.engine.contents import content_digest
from loopdyn.errors import LoopdynError, warn
from loopdyn.files import in_words
from loopdyn.formulations.base import Formulation
from loopdyn.formulations.registry import DEFAULT, chosen, require_support
from loopdyn.integrators.base import Integrator
from loopdyn.integrators.registry import for_formulation
from loopdyn.interrupts import deferred
from loopdyn.model.mechanism import Mechanism
from loopdyn.quantities.wording import unknown
from loopdyn.results.study import Study
from loopdyn.run.restart import content_of_system, installed_version
from loopdyn.run.simulate import check_settings, output_grid, span_of
from loopdyn.studies.clearance import with_clearance
from loopdyn.studies.columns import Column, columns_of
from loopdyn.studies.designs import Designs, Method, designs_of
from loopdyn.studies.evaluation import Evaluator, Job, Row, processor
from loopdyn.studies.executors import Pool, pool_of
from loopdyn.studies.scheduling import Board, Scheduler, StudyBar, warn_of
from loopdyn.studies.store import Store
from loopdyn.system.system import System

Array = NDArray[np.float64]
POINTS = 181  # of a drive whose range gives no number


@dataclass(frozen=True)
class StudyPlan:
    """Size of a study before it starts; prints a summary.

    Attributes
    ----------
    designs : int
    done : int
        Designs that are in the store already.
    seconds : float
        Estimated time, from the time of the first design.
    size : int
        Estimated size of the results, bytes.
    text : str
    """

    designs: int
    done: int
    seconds: float
    size: int
    text: str

    def __str__(self) -> str:
        return self.text


@overload
def study(
    mechanism: Mechanism,
    designs: Any,
    measure: Any,
    *,
    over: Any = ...,
    samples: int | None = ...,
    method: Method | None = ...,
    seed: int | None = ...,
    t_eval: ArrayLike | None = ...,
    formulation: str | Formulation = ...,
    integrator: str | Integrator = ...,
    rtol: float = ...,
    atol: float | None = ...,
    tolerance: float | tuple[float, float] | None = ...,
    clearance: Mapping[str, float] | None = ...,
    store: str | os.PathLike[str] | None = ...,
    paths: bool = ...,
    executor: Any = ...,
    workers: int | None = ...,
    progress: bool | Callable[[int], object] = ...,
    explain: Literal[False] = ...,
) -> Study: ...


@overload
def study(
    mechanism: Mechanism,
    designs: Any,
    measure: Any,
    *,
    over: Any = ...,
    samples: int | None = ...,
    method: Method | None = ...,
    seed: int | None = ...,
    t_eval: ArrayLike | None = ...,
    formulation: str | Formulation = ...,
    integrator: str | Integrator = ...,
    rtol: float = ...,
    atol: float | None = ...,
    tolerance: float | tuple[float, float] | None = ...,
    clearance: Mapping[str, float] | None = ...,
    store: str | os.PathLike[str] | None = ...,
    paths: bool = ...,
    executor: Any = ...,
    workers: int | None = ...,
    progress: bool | Callable[[int], object] = ...,
    explain: Literal[True],
) -> StudyPlan: ...


def study(
    mechanism: Mechanism,
    designs: Any,
    measure: Any,
    *,
    over: Any = None,
    samples: int | None = None,
    method: Method | None = None,
    seed: int | None = None,
    t_eval: ArrayLike | None = None,
    formulation: str | Formulation = DEFAULT,
    integrator: str | Integrator = "auto",
    rtol: float = 1e-8,
    atol: float | None = None,
    tolerance: float | tuple[float, float] | None = None,
    clearance: Mapping[str, float] | None = None,
    store: str | os.PathLike[str] | None = None,
    paths: bool = False,
    executor: Any = None,
    workers: int | None = None,
    progress: bool | Callable[[int], object] = True,
    explain: bool = False,
) -> Study | StudyPlan:
    """Analyse many designs of a mechanism: a grid, a table, or samples of tolerances.

    The numbers of a design depend on its parameters alone: neither on the executor, the number of workers and the
    other designs, nor on whether the study was interrupted and continued. Every design has a row in the result, also
    one that could not be assembled or failed.

    Parameters
    ----------
    mechanism : Mechanism
    designs : mapping, table or Designs
        Values of parameters in the units of the model. ``{"crank": [40, 41], "rod": [90, 95]}`` is a grid;
        ``{"crank": "40 ± 0.05", "rod": "± 0.1 normal"}`` are tolerances, of which `samples` are drawn; a CSV file, data
        frame or list of mappings has a row per design. None: the tolerances of the model. Others are in
        ``ld.designs``.
    measure : Measure, formula, function, or mapping of names to them
        What is measured. Formulas have the terms of measures, also bearing loads (``"C radial force"``) and points
        (``"coupler P"``, columns x, y, z); along a run or drive reduced by ``peak(...)``, ``rms``, ``mean``,
        ``largest``, ``smallest``, ``first``, ``last``, or taken ``at t=0.5`` or ``at A=60``. ``"peak loads"`` and
        ``"rms loads"`` are all determinate bearing loads, ``"energy error"`` is that of a run, ``"reach"`` the last
        value of the input that a drive reaches. A function has the run, drive, equilibrium or state as its argument.
    over : tuple, mapping, "equilibrium" or None
        ``(start, end)`` in s: a run from the start of the model; ``{"A": (0, 360)}`` or ``{"A": (0, 360, n)}``: a drive
        over a range of an input in declared units; "equilibrium"; None: assembled poses, without motion.
    samples, method, seed
        Number of samples of tolerances, how they are drawn (see :func:`loopdyn.designs.samples`), and their seed.
    t_eval, formulation, integrator, rtol, atol
        Of runs, as for :func:`simulate`.
    tolerance : float or (angle, length), optional
        Largest residual of redundant constraints, in declared units: see :func:`assemble`.
    clearance : mapping, optional
        Radial clearance of revolute joints, in the unit of length. Designs then end with two columns for each,
        ``"B clearance 1"`` and ``"B clearance 2"``: the offset of the pin across the axis; :func:`tolerance` makes such
        designs. Not for runs.
    store : path, optional
        Folder in which finished designs are kept. Called again with the same arguments, the study continues with those
        that are missing; with another model, designs, measures or settings the folder is refused.
    paths : bool
        Keep the run or drive of each design in the store, as NetCDF in its folder `paths`.
    executor : str, Executor or Dask client, optional
        "threads", "processes", "dask" (a cluster on this machine), the address of a Dask scheduler, a client, or any
        executor of :mod:`concurrent.futures`. By default threads for runs without Python functions, which compute at
        the same time, otherwise one thread.
    workers : int, optional
        Number of threads or processes; by default one per core.
    progress : bool or function
        Show a progress bar if the output is a terminal; or call this function with the number of designs done, about
        ten times a second.
    explain : bool
        Compute the first design only, and return the number of runs, the estimated time and size.

    Returns
    -------
    Study
        With a row for every design. After Ctrl-C, designs that are not finished have the status "not run".

    Examples
    --------
    >>> import loopdyn as ld
    >>> m = ld.library.four_bar()
    >>> found = ld.study(m, {"crank": [0.28, 0.3]}, {"bearing": "peak(C radial force)"}, over=(0, 0.5), progress=False)
    >>> found.data["status"].values.tolist(), found.data["bearing"].attrs["units"]
    (['finished', 'finished'], 'N')
    """
    pins = with_clearance(mechanism, clearance or {})
    table = designs_of(mechanism, designs, samples, method, seed, tuple(pins))
    settings = {"rtol": rtol, "atol": atol, "tolerance": tolerance, "t_eval": t_eval}
    job = job_of(mechanism.compile(), table, measure, over, formulation, integrator, settings)
    job = _with_paths(job, store, paths)
    job = _with_pins(job, pins)
    board, kept = Board(len(table), len(job.columns)), None
    try:
        if store is not None:
            kept = Store(store, description(mechanism, job, table, settings))
            for part in kept.read():
                board.put(part)
        if explain:
            return _plan(job, table, board, pool_words(job, executor, workers))
        _compute(job, table, board, kept, (executor, workers), progress)
    finally:
        if kept is not None:
            kept.close()
    found = Study(mechanism.name, _units(job), table, board, over=job.over)
    if board.stopped:
        warn(f"{mechanism.name}: {board.stopped}; {board.done} of {len(table)} designs are done.")
    return found


def _compute(
    job: Job,
    table: Designs,
    board: Board,
    store: Store | None,
    asked: tuple[Any, int | None],
    progress: bool | Callable[[int], object],
) -> None:
    """Compute all designs that are missing."""
    if not len(board.left()):
        return
    with deferred() as stop:
        warm(job, table.values[board.left()[0]])
        pool = pool_of(asked[0], asked[1], compiled=_runs_compiled(job))
        if store is not None:
            store.begin_session(_session(pool, board))
        finished = False
        try:
            with StudyBar(job.system.name, len(table), progress) as bar:
                Scheduler(job, table.values, board, pool, store, stop, bar.show).run()
            finished = True
        finally:
            pool.close(kill=not finished)
    warn_of(board, job.system.name)


def warm(job: Job, values: Array) -> Row | None:
    """Compute a design here, so that its kernels are compiled before workers need them."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the worker repeats them
        return Evaluator(replace(job, paths="")).row(values.tolist())


def _runs_compiled(job: Job) -> bool:
    """Whether threads compute at the same time: runs do, without Python functions."""
    m = job.system.mechanism
    python = m.user_forces or m.user_constraints or any(c.function is not None for c in job.columns)
    return job.over == "run" and not python


def pool_words(job: Job, executor: Any, workers: int | None) -> tuple[str, int]:
    """Description and number of the workers that would be used, of those that need not be started to be known."""
    if executor in (None, "threads") or not isinstance(executor, str):
        pool: Pool = pool_of(executor, workers, compiled=_runs_compiled(job))
        words, count = pool.words, pool.workers
        if isinstance(executor, str | None):
            pool.close()
        return words, count
    from loopdyn.studies.executors import cores

    return f"executor '{executor}'", workers or cores()


def _plan(job: Job, table: Designs, board: Board, pool: tuple[str, int]) -> StudyPlan:
    left = board.left()
    row = None
    if len(left):
        warm(job, table.values[left[0]])  # a first call may compile
        row = warm(job, table.values[left[0]])
    each = row.seconds if row is not None else 0.0
    words, workers = pool
    seconds, size = each * len(left) / workers, len(table) * (8 * len(job.columns) + 8 * len(table.names) + 25)
    what = {"run": f"a run of {job.span[1] - job.span[0]:g} s", "drive": f"a drive of {job.input}",
            "equilibrium": "an equilibrium", "pose": "assembled poses"}[job.over]  # fmt: skip
    names = [c.name for c in job.columns]
    shown = ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
    lines = [
        f"{job.system.name}: {len(table):,} designs of {', '.join(table.names)} ({table.method}), {what} for each",
        f"  measured: {shown}",
        f"  in the store: {board.done:,}; to compute: {len(left):,}",
        f"  first design: {1e3 * each:.3g} ms" + (f" ({row.reason})" if row is not None and row.reason else ""),
        f"  with {words}: about {seconds:.3g} s; results of about {size / 1e6:.3g} MB",
    ]
    if workers == 1 and len(left) > 1 and each > 0.0:
        lines.append("  executor='processes' would use all cores")
    return StudyPlan(len(table), board.done, seconds, size, "\n".join(lines))


# ------------------------------------------------------------------------------------------------ the job


def job_of(
    system: System,
    table: Designs,
    measure: Any,
    over: Any,
    formulation: str | Formulation,
    integrator: str | Integrator,
    settings: Mapping[str, Any],
) -> Job:
    """Job from the arguments of a study, checked."""
    rtol, atol, t_eval = settings["rtol"], settings["atol"], settings["t_eval"]
    check_settings(rtol, atol, "projection")
    job = Job(system, table.names, (), "pose", rtol=rtol, atol=atol, tolerance=settings["tolerance"])
    if isinstance(over, Mapping):
        job = _of_drive(job, over, measure)
    elif over == "equilibrium":
        job = replace(job, over="equilibrium", columns=columns_of(system, measure, "equilibrium"))
    elif isinstance(over, list | tuple):
        job = _of_run(job, over, measure, formulation, integrator, t_eval)
    elif over is None:
        job = replace(job, columns=columns_of(system, measure, "pose"))
    else:
        raise LoopdynError(
            f"over is {over!r}. Give (start, end) in s for runs, {{'A': (0, 360)}} for drives, 'equilibrium', or None."
        )
    if job.over != "run":
        given = {
            "t_eval": t_eval is not None,
            "formulation": formulation != DEFAULT,
            "integrator": integrator != "auto",
        }
        wrong = [name for name, is_given in given.items() if is_given]
        if wrong:
            raise LoopdynError(f"{wrong[0]} is for runs, but over= is not the time of one. Leave it out.")
    return job


def _of_run(job: Job, over: Sequence[Any], measure: Any, formulation: Any, integrator: Any, t_eval: Any) -> Job:
    if len(over) != 2:
        raise LoopdynError(f"over is {over!r}. Give the first and the last time in s, the output times as t_eval.")
    start, end = span_of((over[0], over[1]))
    how = chosen(formulation)
    require_support(job.system, how)
    columns = columns_of(job.system, measure, "run")
    at = [c.at[1] for c in columns if c.at is not None]
    outside = [t for t in at if not start <= t <= end]
    if outside:
        raise LoopdynError(f"a measure is taken at t = {outside[0]:g} s, but runs go from {start:g} to {end:g} s.")
    times = np.union1d(output_grid(t_eval, start, end), at)
    stepping = for_formulation(integrator, how)
    return replace(job, over="run", columns=columns, span=(start, end), times=times, method=how, integrator=stepping)


def _of_drive(job: Job, over: Mapping[str, Any], measure: Any) -> Job:
    if len(over) != 1:
        raise LoopdynError(f"over names {len(over)} inputs. Drive one: over={{'A': (0, 360)}}.")
    label, given = next(iter(over.items()))
    if label not in job.system.labels.scalars:
        raise unknown("over", "joint coordinate", [label], job.system.labels.scalars)
    values = np.asarray(given, float)
    if values.ndim != 1 or len(values) < 2 or not np.isfinite(values).all():
        raise LoopdynError(f"the range of '{label}' is {given!r}. Give (start, stop), (start, stop, n) or a list.")
    if isinstance(given, tuple) and len(values) <= 3:
        count = POINTS if len(values) == 2 else int(values[2])
        if count < 2:
            raise LoopdynError(f"the range of '{label}' has {count} values. Give at least 2.")
        values = np.linspace(values[0], values[1], count)
    columns = columns_of(job.system, measure, "drive", label)
    at = np.array([c.at[1] for c in columns if c.at is not None])
    low, high = values.min(), values.max()
    if len(at) and (at.min() < low or at.max() > high):
        raise LoopdynError(f"a measure is taken outside of the range of '{label}', {low:g} to {high:g}. Extend it.")
    missing = np.setdiff1d(at, values)
    if len(missing):
        step = np.diff(values)
        if not (np.all(step > 0.0) or np.all(step < 0.0)):
            raise LoopdynError(f"the list of '{label}' lacks {missing[0]:g}, at which a measure is taken. Add it.")
        values = np.union1d(values, missing)[:: 1 if step[0] > 0.0 else -1]
    return replace(job, over="drive", columns=columns, times=values, input=label)


def _with_pins(job: Job, pins: Mapping[str, float]) -> Job:
    """Job whose last columns of designs are offsets of pins."""
    if not pins:
        return job
    if job.over == "run":
        raise LoopdynError("clearances are offsets of poses: over a run a pin moves in its hole. Give another over=.")
    kept = job.parameters[: len(job.parameters) - 2 * len(pins)]
    return replace(job, parameters=kept, clearances=tuple(pins))


def _with_paths(job: Job, store: Any, paths: bool) -> Job:
    if not paths:
        return job
    if store is None:
        raise LoopdynError("paths are kept in the store, but there is none. Give a folder: store='folder'.")
    if job.over not in ("run", "drive"):
        raise LoopdynError("paths are those of runs and drives. Give over=, or leave paths out.")
    folder = Path(store).resolve() / "paths"
    with in_words(folder):
        folder.mkdir(parents=True, exist_ok=True)
    return replace(job, paths=str(folder))


def _units(job: Job) -> dict[str, str]:
    return {c.name: c.unit for c in job.columns}


# -------------------------------------------------------------------------------------------- the store


def description(mechanism: Mechanism, job: Job, table: Designs, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Description of a study as plain data: two studies that could differ have different descriptions."""
    m = mechanism
    users = [{name: vars(x) for name, x in some.items()} for some in (m.user_forces, m.user_constraints)]
    kept = {k: v for k, v in m.model_dump(mode="python").items() if k not in ("tolerances", "name")}
    return {
        "model": content_digest([kept, users, content_of_system(job.system)]),
        "designs": content_digest([list(table.names), table.values]),
        "parameters": list(table.names),
        "count": len(table),
        "measure": [[*map(_plain, c.description), _function(c)] for c in job.columns],
        "clearance": list(job.clearances),
        "over": [job.over, job.input, list(job.span), content_digest(job.times)],
        "settings": [repr(job.method), repr(job.integrator), repr(job.rtol), repr(job.atol), repr(job.tolerance)],
        "paths": bool(job.paths),
        "loopdyn": installed_version(),
        "kernels": kernels(),
        "processor": processor(),
    }


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _function(column: Column) -> str:
    try:
        return "" if column.function is None else content_digest(column.function)
    except LoopdynError as error:
        raise LoopdynError(
            f"measure '{column.name}': {error}. A store must be able to tell whether it belongs to the same study: "
            "leave that object out of the function, or leave out store."
        ) from None


def kernels() -> str:
    """Digest of the sources of loopdyn, by which the numbers are computed."""
    import hashlib

    import loopdyn

    assert loopdyn.__file__ is not None
    folder, found = Path(loopdyn.__file__).parent, hashlib.sha256()
    for file in sorted(folder.rglob("*.py")):
        if file.relative_to(folder).parts[0] not in ("app", "output"):
            found.update(str(file.relative_to(folder)).encode() + file.read_bytes())
    return found.hexdigest()[:20]


def _session(pool: Pool, board: Board) -> dict[str, Any]:
    return {
        "begun": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "machine": platform.node(),
        "executor": pool.words,
        "processor": processor(),
        "kernels": kernels(),
        "done_before": board.done,
    }


__all__ = ["StudyPlan", "study"]
