"""Dataset of a run, with labels and units."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from threading import RLock
from typing import TYPE_CHECKING, Any

import numpy as np

from loopdyn.joints.base import COMPONENTS
from loopdyn.results.contacts import contact_values
from loopdyn.results.tables import OTHER_SOURCES
from loopdyn.results.units import coordinate_units, dimensions, load_units, shown, speed_units, symbols
from loopdyn.system.labels import COMPONENT_DIMENSIONS, Label

if TYPE_CHECKING:
    import xarray

    from loopdyn.results.run import Run


def labelled(run: Run) -> xarray.Dataset:
    """Dataset of :attr:`Run.data`: what is not recorded is computed when it is read."""
    from loopdyn.quantities.labels import dataset
    from loopdyn.quantities.lazy import computed

    s, p = run.system, run.path
    data: dict[str, Any] = {
        "q": _recorded(run, p.q, "coordinate", 0),
        "v": _recorded(run, p.v, "speed", 1),
        "a": _recorded(run, run.samples.a, "speed", 2),
        **_derived(run),
        "steps": ("time", p.steps),
        "unbounded": (
            "time",
            run.unbounded,
            {"means": "no forces are given: in a singular passage, or momentum steps"},
        ),
    }
    coords: dict[str, Any] = {
        "time": ("time", p.t, {"units": "s"}),
        "coordinate": np.array(s.coordinates, str),
        "speed": np.array(s.speeds, str),
        "joint": np.array(run.joints, str),
        "component": list(COMPONENTS),
        "row": np.array(list(run._rows), str),
        "constraint": np.array(list(run._other_rows), str),
        "xyz": ["x", "y", "z"],
        "coordinate_units": ("coordinate", np.array(coordinate_units(s), str)),
        "speed_units": ("speed", np.array(speed_units(s), str)),
        "acceleration_units": ("speed", np.array(speed_units(s, 2), str)),
        "component_units": ("component", np.array(symbols(s, COMPONENT_DIMENSIONS), str)),
        "row_units": ("row", np.array(symbols(s, run._rows.values()), str)),
        "row_speed_units": ("row", np.array(symbols(s, run._rows.values(), 1), str)),
        "row_acceleration_units": ("row", np.array(symbols(s, run._rows.values(), 2), str)),
        "constraint_units": ("constraint", np.array(symbols(s, run._other_rows.values()), str)),
    }
    known = s.measures
    if known:
        lock, size = RLock(), (len(p), len(known))
        data["measures"] = computed(("time", "measure"), lambda: _measures(run), size, lock, {"units": "measure_units"})
        coords["measure"] = np.array(list(known), str)
        coords["measure_units"] = ("measure", np.array([measure.unit for measure in known.values()], str))
    contacts = list(s.mechanism.contacts)
    if contacts:
        coords["contact"] = np.array(contacts, str)
        for what, name in (("gap", "gap"), ("force", "contact_force")):
            labels, size = [s.labels[f"{x}.{what}"] for x in contacts], (len(p), len(contacts))
            values = partial(_of_contacts, run, labels)
            units = f"{name}_units"
            data[name] = computed(("time", "contact"), values, size, RLock(), {"units": units})
            coords[units] = ("contact", np.array([label.unit for label in labels], str))
    if run.active.size:
        data["partition"] = (("time", "speed"), run.active)
        data["criterion"] = (("time", "speed"), run.criterion, {"units": "1"})
    if p.work.shape[1]:
        data["work"] = (("time", "source"), p.work, {"units": "J"})
        coords |= {"force": np.array(s.forces, str), "source": [*s.forces, *OTHER_SOURCES]}
        coords["force_units"] = ("force", np.array(load_units(s), str))
    about = {"name": s.name, "status": run.status, "message": run.message}
    return dataset(data, coords, about | {"settings": json.dumps(dict(run.settings))})


def _measures(run: Run) -> np.ndarray[Any, Any]:
    """Values (time, measure) of all measures, each in its unit."""
    return np.column_stack([run._measured.values(name) for name in run.system.measures])


def _of_contacts(run: Run, labels: Sequence[Label]) -> np.ndarray[Any, Any]:
    """Values (time, contact) of a quantity of all contacts, each in its unit."""
    return np.column_stack([contact_values(run, label) / label.factor for label in labels])


def _derived(run: Run) -> dict[str, xarray.Variable]:
    """Variables that follow from the recorded ones; each is computed with those of the same pass when one is read."""
    from loopdyn.quantities.lazy import computed

    n, lock = len(run.path), RLock()
    forces, sources = len(run.system.forces), run.path.work.shape[1]

    def over_time(compute: Callable[[], Any], size: tuple[tuple[str, int], ...], **attributes: str) -> xarray.Variable:
        dims, shape = ("time", *(d for d, _ in size)), (n, *(m for _, m in size))
        return computed(dims, compute, shape, lock, attributes)

    s = run.system
    joint, component, row = ("joint", len(run.joints)), ("component", len(COMPONENTS)), ("row", len(run._rows))
    other, xyz = ("constraint", len(run._other_rows)), ("xyz", 3)
    wrench = over_time(
        lambda: shown(s, run.wrench[0], COMPONENT_DIMENSIONS), (joint, component), units="component_units",
        on="child at M, axes of F"
    )  # fmt: skip
    unique = computed(("joint", "component"), lambda: run.wrench[1], (joint[1], component[1]), lock, dtype=bool)

    def residual(level: int) -> xarray.Variable:
        values = lambda: shown(s, run.diagnostics.residual[:, level], run._rows.values())  # noqa: E731
        return over_time(values, (row,), units=f"row_{('', 'speed_', 'acceleration_')[level]}units")

    found = {
        "wrench": wrench,
        "unique": unique,
        "constraint_load": over_time(
            lambda: shown(s, run.wrench[2], run._other_rows.values()), (other,), units="constraint_units"
        ),
        "energy_kinetic": over_time(lambda: run.diagnostics.energy[:, 0], (), units="J"),
        "energy_potential": over_time(lambda: run.diagnostics.energy[:, 1] + run.elastic_energy, (), units="J"),
        "energy_balance": over_time(lambda: run.energy_balance, (), units="J"),
        "momentum": over_time(lambda: run.diagnostics.momentum[:, :3], (xyz,), units="kg*m/s"),
        "angular_momentum": over_time(
            lambda: run.diagnostics.momentum[:, 3:], (xyz,), units="kg*m^2/s", about="world origin"
        ),
        "residual_position": residual(0),
        "residual_velocity": residual(1),
        "residual_acceleration": residual(2),
    }
    if sources:
        loads = dimensions(s, "load")
        found["load"] = over_time(lambda: shown(s, run.loads[0], loads), (("force", forces),), units="force_units")
        found["power"] = over_time(lambda: run.loads[1], (("source", sources),), units="W")
    return found


def _recorded(run: Run, values: Any, dim: str, rate: int) -> xarray.Variable:
    """Recorded coordinates, speeds or accelerations, in the declared units when they are read."""
    from loopdyn.quantities.lazy import computed

    units = ("coordinate_units", "speed_units", "acceleration_units")[rate]
    of = dimensions(run.system, dim)
    return computed(("time", dim), lambda: shown(run.system, values, of), values.shape, RLock(), {"units": units})
