"""Tables of a run: all columns over time, smallest and largest values, a workbook."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from loopdyn.errors import LoopdynError
from loopdyn.files import in_words, write
from loopdyn.joints.base import COMPONENTS
from loopdyn.results.bearings import rms
from loopdyn.results.units import dimensions
from loopdyn.system.labels import COMPONENT_DIMENSIONS
from loopdyn.tables import workbook

if TYPE_CHECKING:
    import pandas

    from loopdyn.results.run import Run

Array = NDArray[np.float64]

OTHER_SOURCES = ("user forces", "drivers and bases")  # sources of work, besides the forces of the model


def summary_table(run: Run) -> pandas.DataFrame:
    """Table of :meth:`Run.summary`."""
    import pandas as pd

    wrench, unique, others = run.wrench
    columns: dict[str, tuple[str, Array]] = {}
    for n, joint in enumerate(run.joints):
        for k, component in enumerate(COMPONENTS):
            mark = "" if unique[n, k] else " ?"
            columns[f"{joint}.{component}{mark}"] = (COMPONENT_DIMENSIONS[k], wrench[:, n, k])
    for n, (row, dimension) in enumerate(run._other_rows.items()):
        columns[row] = (dimension, others[:, n])
    if run.path.work.shape[1]:
        loads, powers = run.loads
        for n, (name, dimension) in enumerate(zip(run.system.forces, dimensions(run.system, "load"), strict=True)):
            columns[f"{name} load"] = (dimension, loads[:, n])
        for n, name in enumerate((*run.system.forces, *OTHER_SOURCES)):
            columns[f"{name} power"] = ("power", powers[:, n])
    for k, name in enumerate(("fx", "fy", "fz", "mx", "my", "mz")):
        columns[f"shaking {name}"] = ("force" if k < 3 else "torque", run.shaking[:, k])
    rows = {}
    bounded = ~run.unbounded
    units = run.system.units
    for name, (dimension, every) in columns.items():
        unit, factor = ("W", 1.0) if dimension == "power" else (units.symbol(dimension), units.factor(dimension))
        values, times = every[bounded] / factor, run.path.t[bounded]
        if len(values) and np.isfinite(values).all() and np.any(values != 0.0):
            low, high = int(np.argmin(values)), int(np.argmax(values))
            rows[name] = (unit, values[low], times[low], values[high], times[high], rms(values, times))
    heads = ["unit", "min", "t_min", "max", "t_max", "rms"]
    return pd.DataFrame.from_dict(rows, orient="index", columns=heads)


def dataframe(run: Run) -> pandas.DataFrame:
    """Data frame of :meth:`Run.to_dataframe`."""
    import pandas as pd

    d = run.data
    columns = {f"{n} {label}": d[n].values[:, k] for n, dim in (("q", "coordinate"), ("v", "speed"), ("a", "speed"))
               for k, label in enumerate(d[dim].values)}  # fmt: skip
    for n, joint in enumerate(d["joint"].values):
        columns |= {f"{joint}.{c}": d["wrench"].values[:, n, k] for k, c in enumerate(COMPONENTS)}
    for name in ("constraint_load", "load", "power", "work"):
        if name in d:
            dim = d[name].dims[1]
            columns |= {f"{name} {x}": d[name].values[:, k] for k, x in enumerate(d[dim].values)}
    for name, measure in run.system.measures.items():
        columns[f"{name} [{measure.unit}]"] = run[name].values
    for name in ("energy_kinetic", "energy_potential", "energy_balance"):
        columns[name] = d[name].values
    for name in ("residual_position", "residual_velocity", "residual_acceleration"):
        columns[name] = np.abs(d[name].values).max(axis=1, initial=0.0)
    columns["unbounded"] = d["unbounded"].values  # times at which no forces are given
    return pd.DataFrame(columns, index=pd.Index(d["time"].values, name="time"))


def write_workbook(run: Run, file: Path) -> None:
    """Write the workbook of :meth:`Run.to_excel`."""
    import pandas as pd

    if file.suffix != ".xlsx":
        raise LoopdynError(f"a workbook cannot be written as '{file.name}'. The name must end in .xlsx.")
    events = pd.DataFrame([(e.t, e.name, e.energy_loss) for e in run.events], columns=["t", "name", "energy_loss"])
    about: dict[str, Any] = {"name": run.system.name, "status": run.status, "message": run.message}
    about |= {"energy_error": run.energy_error, "largest_residual": run.largest_residual}
    about |= asdict(run.statistics) | {k: str(v) for k, v in run.settings.items()}
    sheets = {
        "summary": run.summary().rename_axis("quantity"),
        "bearings": run.bearings().table().rename_axis("load"),
        "events": events.set_index("t"),
        "run": pd.Series(about, name="value").to_frame().rename_axis("what"),
    }
    with in_words(file):  # sheets are assembled in temporary files
        write(file, workbook(sheets))
