"""Dataset of a run, with labels and units."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from loopdyn.joints.base import COMPONENTS
from loopdyn.results.tables import OTHER_SOURCES
from loopdyn.results.units import coordinate_units, load_units

if TYPE_CHECKING:
    import xarray

    from loopdyn.results.run import Run


def labelled(run: Run) -> xarray.Dataset:
    """Dataset of :attr:`Run.data`."""
    from loopdyn.quantities.labels import dataset

    s, p, d = run.system, run.path, run.diagnostics
    wrench, unique, others = run.wrench
    units = coordinate_units(s)
    per_row = ("time", "row")
    data: dict[str, Any] = {
        "q": (("time", "coordinate"), p.q, {"units": "rad, m or 1 (quaternion)"}),
        "v": (("time", "speed"), p.v, {"units": "rad/s or m/s"}),
        "a": (("time", "speed"), p.a, {"units": "rad/s2 or m/s2"}),
        "wrench": (("time", "joint", "component"), wrench, {"units": "N m, N", "on": "child at M, axes of F"}),
        "unique": (("joint", "component"), unique),
        "constraint_load": (("time", "constraint"), others, {"units": "N or N m"}),
        "energy_kinetic": ("time", d.energy[:, 0], {"units": "J"}),
        "energy_potential": ("time", d.energy[:, 1] + run.elastic_energy, {"units": "J"}),
        "energy_balance": ("time", run.energy_balance, {"units": "J"}),
        "momentum": (("time", "xyz"), d.momentum[:, :3], {"units": "kg m/s"}),
        "angular_momentum": (("time", "xyz"), d.momentum[:, 3:], {"units": "kg m2/s", "about": "world origin"}),
        "residual_position": (per_row, d.residual[:, 0], {"units": "rad or m"}),
        "residual_velocity": (per_row, d.residual[:, 1], {"units": "rad/s or m/s"}),
        "residual_acceleration": (per_row, d.residual[:, 2], {"units": "rad/s2 or m/s2"}),
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
    if run.active.size:
        data["partition"] = (("time", "speed"), run.active)
        data["criterion"] = (("time", "speed"), run.criterion)
    if p.work.shape[1]:
        loads, powers = run.loads
        data["load"] = (("time", "force"), loads, {"units": "N or N m"})
        data["power"] = (("time", "source"), powers, {"units": "W"})
        data["work"] = (("time", "source"), p.work, {"units": "J"})
        coords |= {"force": np.array(s.forces, str), "source": [*s.forces, *OTHER_SOURCES]}
        coords["force_units"] = ("force", np.array(load_units(s), str))
    about = {"name": s.name, "status": run.status, "message": run.message}
    return dataset(data, coords, about | {"settings": json.dumps(dict(run.settings))})
