"""Dataset of a run, with labels and units."""

from __future__ import annotations

import json
from collections.abc import Callable
from threading import RLock
from typing import TYPE_CHECKING, Any

import numpy as np

from loopdyn.joints.base import COMPONENTS
from loopdyn.results.tables import OTHER_SOURCES
from loopdyn.results.units import coordinate_units, load_units

if TYPE_CHECKING:
    import xarray

    from loopdyn.results.run import Run


def labelled(run: Run) -> xarray.Dataset:
    """Dataset of :attr:`Run.data`: what is not recorded is computed when it is read."""
    from loopdyn.quantities.labels import dataset
    from loopdyn.quantities.lazy import computed

    s, p = run.system, run.path
    units = coordinate_units(s)
    data: dict[str, Any] = {
        "q": (("time", "coordinate"), p.q, {"units": "rad, m or 1 (quaternion)"}),
        "v": (("time", "speed"), p.v, {"units": "rad/s or m/s"}),
        "a": (("time", "speed"), p.a, {"units": "rad/s2 or m/s2"}),
        **_derived(run),
        "steps": ("time", p.steps),
        "unbounded": ("time", run.unbounded, {"means": "in a singular passage: no forces are given"}),
    }
    coords: dict[str, Any] = {
        "time": ("time", p.t, {"units": "s"}),
        "coordinate": np.array(s.coordinates, str),
        "speed": np.array(s.speeds, str),
        "joint": np.array(run.joints, str),
        "component": list(COMPONENTS),
        "row": np.array(list(run._rows), str),
        "constraint": np.array(list(run._other_rows), str),
        "constraint_units": ("constraint", np.array(list(run._other_rows.values()), str)),
        "xyz": ["x", "y", "z"],
        "coordinate_units": ("coordinate", units),
    }
    known = s.measures
    if known:
        lock = RLock()
        data["measures"] = computed(("time", "measure"), lambda: _measures(run), (len(p), len(known)), lock)
        coords["measure"] = np.array(list(known), str)
        coords["measure_units"] = ("measure", np.array([measure.unit for measure in known.values()], str))
    if run.active.size:
        data["partition"] = (("time", "speed"), run.active)
        data["criterion"] = (("time", "speed"), run.criterion)
    if p.work.shape[1]:
        data["work"] = (("time", "source"), p.work, {"units": "J"})
        coords |= {"force": np.array(s.forces, str), "source": [*s.forces, *OTHER_SOURCES]}
        coords["force_units"] = ("force", np.array(load_units(s), str))
    about = {"name": s.name, "status": run.status, "message": run.message}
    return dataset(data, coords, about | {"settings": json.dumps(dict(run.settings))})


def _measures(run: Run) -> np.ndarray[Any, Any]:
    """Values (time, measure) of all measures, each in its unit."""
    return np.column_stack([run._measured.values(name) for name in run.system.measures])


def _derived(run: Run) -> dict[str, xarray.Variable]:
    """Variables that follow from the recorded ones; each is computed with those of the same pass when one is read."""
    from loopdyn.quantities.lazy import computed

    n, lock = len(run.path), RLock()
    forces, sources = len(run.system.forces), run.path.work.shape[1]

    def over_time(compute: Callable[[], Any], size: tuple[tuple[str, int], ...], **attributes: str) -> xarray.Variable:
        dims, shape = ("time", *(d for d, _ in size)), (n, *(m for _, m in size))
        return computed(dims, compute, shape, lock, attributes)

    joint, component, row = ("joint", len(run.joints)), ("component", len(COMPONENTS)), ("row", len(run._rows))
    other, xyz = ("constraint", len(run._other_rows)), ("xyz", 3)
    wrench = over_time(lambda: run.wrench[0], (joint, component), units="N m, N", on="child at M, axes of F")
    unique = computed(("joint", "component"), lambda: run.wrench[1], (joint[1], component[1]), lock, dtype=bool)

    def residual(level: int, units: str) -> xarray.Variable:
        return over_time(lambda: run.diagnostics.residual[:, level], (row,), units=units)

    found = {
        "wrench": wrench,
        "unique": unique,
        "constraint_load": over_time(lambda: run.wrench[2], (other,), units="N or N m"),
        "energy_kinetic": over_time(lambda: run.diagnostics.energy[:, 0], (), units="J"),
        "energy_potential": over_time(lambda: run.diagnostics.energy[:, 1] + run.elastic_energy, (), units="J"),
        "energy_balance": over_time(lambda: run.energy_balance, (), units="J"),
        "momentum": over_time(lambda: run.diagnostics.momentum[:, :3], (xyz,), units="kg m/s"),
        "angular_momentum": over_time(
            lambda: run.diagnostics.momentum[:, 3:], (xyz,), units="kg m2/s", about="world origin"
        ),
        "residual_position": residual(0, "rad or m"),
        "residual_velocity": residual(1, "rad/s or m/s"),
        "residual_acceleration": residual(2, "rad/s2 or m/s2"),
    }
    if sources:
        found["load"] = over_time(lambda: run.loads[0], (("force", forces),), units="N or N m")
        found["power"] = over_time(lambda: run.loads[1], (("source", sources),), units="W")
    return found
