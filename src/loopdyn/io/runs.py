"""Runs as NetCDF files: results with labels, and the model, so that everything can be computed again."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

import numpy as np

from loopdyn.errors import LoopdynError
from loopdyn.files import write
from loopdyn.io.yaml import load
from loopdyn.results.run import Run, Statistics, Trajectory
from loopdyn.results.units import dimensions, factors
from loopdyn.run.events import Event
from loopdyn.run.locking import impulse_as_data, impulse_of, phase_of
from loopdyn.run.singular_passage import passage_of
from loopdyn.system.system import State, System

ENGINE: Literal["h5netcdf"] = "h5netcdf"
HDF5 = b"\x89HDF\r\n\x1a\n"  # first bytes of such a file
MARK = b"loopdyn run, sha256:"  # before the checksum, at the end of the file, which readers of HDF5 ignore
# Required content of a run file, besides derived results: dimensions and types of variables.
VARIABLES = {
    "time": (("time",), "f"),
    "q": (("time", "coordinate"), "f"),
    "v": (("time", "speed"), "f"),
    "a": (("time", "speed"), "f"),
    "steps": (("time",), "i"),
    "jumps": (("time",), "f"),
    "wrench": (("time", "joint", "component"), "f"),
    "unique": (("joint", "component"), "bi"),
    "constraint_load": (("time", "constraint"), "f"),
    "event_numbers": (("event", "number"), "f"),
    "event_state_q": (("event", "coordinate"), "f"),
    "event_state_v": (("event", "speed"), "f"),
    "event_after_q": (("event", "coordinate"), "f"),
    "event_after_v": (("event", "speed"), "f"),
}
STATUSES = ("finished", "stopped", "interrupted", "failed")


def save_run(run: Run, path: str | os.PathLike[str]) -> None:
    """Write a run; an existing file is replaced when the new one is complete."""
    file = Path(path)
    if file.suffix not in (".nc", ".h5"):
        raise LoopdynError(f"a run is saved as NetCDF, not as '{file.name}'. The name must end in .nc.")
    system = run.system
    data = run.data.copy()
    data.attrs |= {
        "model": _model_text(system),
        "cuts": json.dumps(list(system.topology.cuts)),
        "statistics": json.dumps(asdict(run.statistics)),
        "event_names": json.dumps([e.name for e in run.events]),
        "event_kinds": json.dumps([e.kind for e in run.events]),
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
    # made in memory: HDF5 can crash the process if the disk is full
    content = bytes(data.to_netcdf(engine=ENGINE))
    write(file, content + MARK + hashlib.sha256(content).digest())


def _model_text(system: System) -> str:
    """Text of the model file; empty if the model has functions, which a file cannot contain."""
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
        System of the run; by default built from the model in the file.

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
    data = _read(path)
    attributes = dict(data.attrs)
    with _understood(path):
        model, cuts = str(attributes.pop("model")), list(json.loads(attributes.pop("cuts")))
    system = system or _system(model, cuts, path)
    with _understood(path):
        labels = list(data["coordinate"].values), list(data["speed"].values)
    if labels != (list(system.coordinates), list(system.speeds)):
        raise LoopdynError(f"'{path}' holds a run of another system. Give the system it was made with: system=...")
    with _understood(path):
        _check(data, attributes)
        return _run(data, attributes, system)


def _read(path: str | os.PathLike[str]) -> Any:
    """Content of a file, after its checksum was verified: HDF5 trusts its input."""
    import xarray as xr

    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise LoopdynError(f"'{path}' cannot be read: {error.strerror}. Give a file made by run.save.") from None
    end = content.rfind(MARK)
    if not content.startswith(HDF5) or end < 0:
        raise LoopdynError(
            f"'{path}' is not a run that loopdyn saved, or only a part of one. Give a file made by run.save."
        )
    if hashlib.sha256(content[:end]).digest() != content[end + len(MARK) :]:
        raise LoopdynError(
            f"'{path}' is damaged or was changed: its checksum is wrong. Copy it again, or simulate again."
        )
    with _understood(path):
        return xr.load_dataset(io.BytesIO(content[:end]), engine=ENGINE)


@contextlib.contextmanager
def _understood(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn any error in reading the content of a file into a message that names the file."""
    try:
        yield
    except LoopdynError:
        raise
    except Exception as error:  # xarray, h5netcdf and HDF5 raise errors of many types
        raise LoopdynError(
            f"'{path}' is not a run that loopdyn saved ({type(error).__name__}: {error}). Give a file made by run.save."
        ) from error


def _check(data: Any, attributes: dict[str, Any]) -> None:
    """Raise if variables have other shapes or types, or attributes are unknown."""
    for name, (dims, kinds) in VARIABLES.items():
        if data[name].dims != dims or data[name].dtype.kind not in kinds:
            raise ValueError(f"'{name}' is {data[name].dtype} over {data[name].dims}")
    t, q = data["time"].values, data["q"].values
    if not (np.isfinite(t).all() and np.isfinite(q).all()) or np.any(np.diff(t) <= 0.0):
        raise ValueError("times or coordinates are not ascending, finite numbers")
    if "event_kinds" not in attributes or "speed_units" not in data:
        raise ValueError("events without kinds, or numbers without units: an earlier version saved it")
    counts = {len(json.loads(attributes[name])) for name in ("event_names", "event_kinds")}
    if data.sizes["number"] != 2 or counts != {data.sizes["event"]}:
        raise ValueError("events are not complete")
    if attributes["status"] not in STATUSES:
        raise ValueError(f"the status '{attributes['status']}' is unknown")


def _system(model: str, cuts: list[str], path: Any) -> System:
    if not model:
        raise LoopdynError(
            f"'{path}' contains no model, since it had user functions. Give the system: load_run(path, system)."
        )
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.yaml"
        file.write_text(model, encoding="utf-8")
        return load(file).compile(cuts=cuts)


def _run(data: Any, attributes: dict[str, Any], system: System) -> Run:
    from loopdyn.quantities.labels import dataset

    lists = ("event_names", "event_kinds", "event_impulses", "phases", "passages")
    names, kinds, impulses, phases, passages = (json.loads(attributes.pop(x)) for x in lists)
    statistics = Statistics(**json.loads(attributes.pop("statistics")))
    work = data["work"].values if "work" in data else np.zeros((data.sizes["time"], 0))
    t, (q, v, a) = data["time"].values, (_si(system, data[name]) for name in ("q", "v", "a"))
    path = Trajectory(t, q, v, a, work, data["steps"].values)
    jumps, events = data["jumps"].values, []
    for k, name in enumerate(names):
        at, loss = (float(x) for x in data["event_numbers"].values[k])
        before, after = (
            State(at, data[f"event_{which}_q"].values[k], data[f"event_{which}_v"].values[k], system=system)
            for which in ("state", "after")
        )
        events.append(Event(at, name, before, after, loss, impulse_of(impulses[k]), kind=kinds[k]))
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
    # saved results are not computed again
    variables, coords = ({name: x.variable for name, x in some.items()} for some in (kept.data_vars, kept.coords))
    run.__dict__["data"] = dataset(variables, coords, attributes)  # without the indexes of the file: it makes its own
    others = kept["constraint_load"].values * factors(system, run._other_rows.values())
    run.__dict__["wrench"] = (_si(system, kept["wrench"]), kept["unique"].values, others)
    return run


def _si(system: System, found: Any) -> Any:
    """Values of a variable in SI units: its columns are coordinates, speeds or components of reactions."""
    return found.values * factors(system, dimensions(system, found.dims[-1]))
