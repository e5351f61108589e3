"""Runs as NetCDF files: results with labels, and the model, so that everything can be computed again."""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

import numpy as np

from loopdyn.errors import LoopdynError
from loopdyn.events import Event
from loopdyn.io.yaml import load
from loopdyn.locking import impulse_as_data, impulse_of, phase_of
from loopdyn.passages import passage_of
from loopdyn.results import Run, Statistics, Trajectory
from loopdyn.system import State, System

ENGINE: Literal["h5netcdf"] = "h5netcdf"


def save_run(run: Run, path: str | os.PathLike[str]) -> None:
    """Write a run; a file that is there is replaced when the new one is complete."""
    file = Path(path)
    if file.suffix not in (".nc", ".h5"):
        raise LoopdynError(f"a run is saved as NetCDF, not as '{file.name}'. End the name in .nc.")
    system = run.system
    data = run.data.copy()
    data.attrs |= {
        "model": _model_text(system),
        "cuts": json.dumps(list(system.topology.cuts)),
        "statistics": json.dumps(asdict(run.statistics)),
        "event_names": json.dumps([e.name for e in run.events]),
        "event_impulses": json.dumps([impulse_as_data(e.impulse) for e in run.events]),
        "phases": json.dumps([p.as_data() for p in run.phases]),
        "passages": json.dumps([p.as_data() for p in run.passages]),
    }
    numbers = np.array([[e.t, e.energy_loss] for e in run.events]).reshape(-1, 2)
    data["jumps"] = ("time", run.jumps, {"units": "J"})
    data["event_numbers"] = (("event", "number"), numbers)
    for name in ("state", "after"):
        states = [getattr(e, name) for e in run.events]
        data[f"event_{name}_q"] = (("event", "coordinate"), np.array([s.q for s in states]).reshape(-1, system.nq))
        data[f"event_{name}_v"] = (("event", "speed"), np.array([s.v for s in states]).reshape(-1, system.nv))
    part = file.with_name(file.name + ".part")
    data.to_netcdf(part, engine=ENGINE)
    os.replace(part, file)


def _model_text(system: System) -> str:
    """The model file; empty if the model has functions, which a file cannot hold."""
    if system.mechanism.user_forces or system.mechanism.user_constraints:
        return ""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.yaml"
        system.mechanism.model_copy(deep=True).save(file)
        return file.read_text(encoding="utf-8")


def load_run(path: str | os.PathLike[str], system: System | None = None) -> Run:
    """Read a run that :meth:`Run.save` wrote.

    Parameters
    ----------
    path : str or Path
    system : System, optional
        The system of the run; by default made from the model in the file.

    Examples
    --------
    >>> import tempfile, pathlib, loopdyn as ld
    >>> system = ld.library.pendulum().compile()
    >>> run = ld.simulate(system, ld.assemble(system), (0, 1), progress=False)
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "run.nc"
    >>> run.save(file)
    >>> ld.load_run(file).status
    'finished'
    """
    import xarray as xr

    try:
        data = xr.load_dataset(path, engine=ENGINE)
        attributes = dict(data.attrs)
        model, cuts = attributes.pop("model"), json.loads(attributes.pop("cuts"))
    except (OSError, KeyError, ValueError) as error:
        raise LoopdynError(
            f"'{path}' is not a run that loopdyn saved ({error}). Give a file made by run.save."
        ) from None
    system = system or _system(model, cuts, path)
    if list(system.coordinates) != list(data["coordinate"].values):
        raise LoopdynError(f"'{path}' holds a run of another system. Give the system it was made with: system=...")
    return _run(data, attributes, system)


def _system(model: str, cuts: list[str], path: Any) -> System:
    if not model:
        raise LoopdynError(
            f"'{path}' holds no model, since it had user functions. Give the system: load_run(path, system)."
        )
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.yaml"
        file.write_text(model, encoding="utf-8")
        return load(file).compile(cuts=cuts)


def _run(data: Any, attributes: dict[str, Any], system: System) -> Run:
    from loopdyn.labels import dataset

    kinds = ("event_names", "event_impulses", "phases", "passages")
    names, impulses, phases, passages = (json.loads(attributes.pop(x)) for x in kinds)
    statistics = Statistics(**json.loads(attributes.pop("statistics")))
    work = data["work"].values if "work" in data else np.zeros((data.sizes["time"], 0))
    t, q, v, a = (data[name].values for name in ("time", "q", "v", "a"))
    path = Trajectory(t, q, v, a, work, data["steps"].values)
    jumps, events = data["jumps"].values, []
    for k, name in enumerate(names):
        at, loss = (float(x) for x in data["event_numbers"].values[k])
        before, after = (
            State(at, data[f"event_{which}_q"].values[k], data[f"event_{which}_v"].values[k])
            for which in ("state", "after")
        )
        events.append(Event(at, name, before, after, loss, impulse_of(impulses[k])))
    kept = data.drop_vars([v for v in data.variables if str(v).startswith("event_") or v == "jumps"])
    settings = json.loads(attributes["settings"])
    made = tuple(phase_of(system, p) for p in phases)
    if made and made[0].tolerated is not None:
        system = system.tolerating(made[0].tolerated)
    names_of = {"active": "partition", "criterion": "criterion"}
    chosen = {key: data[name].values for key, name in names_of.items() if name in data}
    ended = attributes["status"], attributes["message"]
    run = Run(
        system,
        path,
        *ended,
        tuple(events),
        statistics,
        settings,
        jumps,
        made,
        **chosen,
        passages=tuple(passage_of(p) for p in passages),
    )
    # what was computed is not computed again
    run.__dict__["data"] = dataset(dict(kept.data_vars), dict(kept.coords), attributes)
    run.__dict__["wrench"] = (kept["wrench"].values, kept["unique"].values, kept["constraint_load"].values)
    return run
