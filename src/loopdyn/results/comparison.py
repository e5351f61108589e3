"""Comparison of runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from loopdyn.errors import LoopdynError
from loopdyn.joints.base import COMPONENTS
from loopdyn.results.bearings import rms
from loopdyn.results.units import coordinate_units, dimensions, shown, speed_units
from loopdyn.system.labels import COMPONENT_DIMENSIONS
from loopdyn.system.system import System
from loopdyn.tree.functions import energy as energy_of

if TYPE_CHECKING:
    import pandas
    import xarray

    from loopdyn.results.run import Run

Array = NDArray[np.float64]


def compare_runs(runs: Sequence[Run], names: Sequence[str] | None = None) -> xarray.Dataset:
    """Combine runs of variants: q, v and energies along a new dimension ``run``.

    Parameters
    ----------
    runs : list of Run
        They may have different systems; quantities that a run does not have are NaN.
    names : list of str, optional
        By default the names of the systems, numbered.

    Examples
    --------
    >>> import loopdyn as ld
    >>> runs = []
    >>> for length in (1.0, 1.1):
    ...     system = ld.library.pendulum().with_(length=length).compile()
    ...     runs.append(ld.simulate(system, ld.assemble(system), (0, 1), progress=False))
    >>> ld.results.compare_runs(runs, ["short", "long"])["q"].dims
    ('run', 'time', 'coordinate')
    """
    import xarray as xr

    labels = list(names) if names is not None else [f"{k + 1} {r.system.name}" for k, r in enumerate(runs)]
    if len(labels) != len(runs) or len(set(labels)) != len(labels):
        raise LoopdynError(f"{len(labels)} different names are needed for {len(runs)} runs.")
    parts = _common(runs)
    require_same_units([run.system for run in runs])
    return xr.concat(parts, "run", join="outer").assign_coords(run=np.array(labels, str))


def differences(run: Run, other: Run) -> pandas.DataFrame:
    """Largest differences of two runs at the times of the first: the result of :meth:`Run.compare`."""
    import pandas as pd

    a, b = _common([run, other])
    require_same_units([run.system, other.system])
    rows: dict[str, tuple[float, float, float]] = {}
    for name, dim in (("q", "coordinate"), ("v", "speed")):
        there = set(b[dim].values)
        for label in (x for x in a[dim].values if x in there):
            x, y = a[name].sel({dim: label}).values, b[name].sel({dim: label}).values
            rows[f"{name} {label}"] = _difference(x, y, a["time"].values)
    for name in ("energy_kinetic", "energy_gravity"):
        rows[name] = _difference(a[name].values, b[name].values, a["time"].values)
    if np.array_equal(run.path.t, other.path.t):
        both = [n for n in run.joints if n in other.joints]
        bounded = ~(run.unbounded | other.unbounded)
        for joint in both:
            m, n = run.joints.index(joint), other.joints.index(joint)
            known = run.wrench[1][m] & other.wrench[1][n]
            for k in np.flatnonzero(known):
                one = run.system.units.factor(COMPONENT_DIMENSIONS[k])
                x, y = run.wrench[0][bounded, m, k] / one, other.wrench[0][bounded, n, k] / one
                if np.any(x != 0.0) or np.any(y != 0.0):
                    rows[f"{joint}.{COMPONENTS[k]}"] = _difference(x, y, run.path.t[bounded])
    return pd.DataFrame.from_dict(rows, orient="index", columns=["largest", "time", "rms"])


def require_same_units(systems: Sequence[System]) -> None:
    """Raise if systems declare different units: their numbers cannot be compared."""
    for system in systems[1:]:
        if system.units != systems[0].units:
            raise LoopdynError(
                f"'{systems[0].name}' and '{system.name}' declare different units. Declare the same in both models."
            )


def _difference(a: Array, b: Array, t: Array) -> tuple[float, float, float]:
    d = np.abs(a - b)
    k = int(np.argmax(d))
    return float(d[k]), float(t[k]), rms(d, t)


def _common(runs: Sequence[Run]) -> list[xarray.Dataset]:
    """q, v and energies of each run at the times of the first one that all of them reach."""
    from loopdyn.quantities.labels import dataset

    if not runs or any(not len(r.path) for r in runs):
        raise LoopdynError("a run without results cannot be compared. Simulate it again.")
    first, last = max(r.path.t[0] for r in runs), min(r.path.t[-1] for r in runs)
    times = runs[0].path.t[(runs[0].path.t >= first) & (runs[0].path.t <= last)]
    if not len(times):
        raise LoopdynError("the runs have no time in common. Simulate the same span.")
    found = []
    for r in runs:
        states = [r.at(float(t)) for t in times]
        q, v = (np.array([getattr(x, n) for x in states]) for n in ("q", "v"))
        energy = np.array([(e.kinetic, e.gravity) for e in (energy_of(r.system, x) for x in states)])
        s = r.system
        data = {
            "q": (("time", "coordinate"), shown(s, q, dimensions(s, "coordinate")), {"units": "coordinate_units"}),
            "v": (("time", "speed"), shown(s, v, dimensions(s, "speed")), {"units": "speed_units"}),
            "energy_kinetic": ("time", energy[:, 0], {"units": "J"}),
            "energy_gravity": ("time", energy[:, 1], {"units": "J"}),
        }
        coords: dict[str, Any] = {
            "coordinate": np.array(s.coordinates, str),
            "coordinate_units": ("coordinate", np.array(coordinate_units(s), str)),
            "speed": np.array(s.speeds, str),
            "speed_units": ("speed", np.array(speed_units(s), str)),
        }
        found.append(dataset(data, {"time": ("time", times, {"units": "s"}), **coords}))
    return found
