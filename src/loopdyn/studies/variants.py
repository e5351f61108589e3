"""Variants of a mechanism: runs of one model with overridden parameters, and their comparison."""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from loopdyn.analysis.assembly import assemble
from loopdyn.errors import LoopdynError
from loopdyn.files import write
from loopdyn.interrupts import deferred
from loopdyn.joints.base import COMPONENTS
from loopdyn.model.mechanism import Mechanism
from loopdyn.quantities.wording import nearest
from loopdyn.results.run import Run
from loopdyn.run.simulate import output_times, simulate
from loopdyn.tables import csv_text

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

Value = float | str
NAME = "name"  # column of a table that names its variants


@dataclass(frozen=True)
class Variant:
    """Variant of a mechanism: its parameters and its run.

    Attributes
    ----------
    name : str
    parameters : dict
        Values that differ from those of the model, in its units.
    run : Run or None
        None if the variant could not start.
    why : str
        Reason why there is no run, or why it ended early; empty if it finished.
    """

    name: str
    parameters: dict[str, Value]
    run: Run | None = field(repr=False)
    why: str = ""


@dataclass(frozen=True)
class Variants:
    """Runs of all variants of a table; prints as a table."""

    title: str
    variants: tuple[Variant, ...]
    stopped: str = ""  # message on the variants that were run if the user stopped; empty if all were run

    def __getitem__(self, name: str) -> Variant:
        found = {v.name: v for v in self.variants}
        if name not in found:
            raise LoopdynError(f"there is no variant '{name}'. {nearest(name, found)}")
        return found[name]

    @property
    def failed(self) -> tuple[Variant, ...]:
        """Variants that did not run to the end."""
        return tuple(v for v in self.variants if v.why)

    def table(self) -> pandas.DataFrame:
        """Table with a row per variant: parameters, status, peak loads and powers, energy error, reason of a failure.

        Peaks are largest absolute values over the run. Statically indeterminate loads are left out.
        """
        import pandas as pd

        rows = {}
        for v in self.variants:
            peaks = {} if v.run is None else _peaks(v.run)
            status = "not run" if v.run is None else v.run.status
            rows[v.name] = {**v.parameters, "status": status, **peaks, "why": v.why}
        frame = pd.DataFrame.from_dict(rows, orient="index", columns=None if rows else ["status", "why"])
        frame.index.name = "variant"
        given = dict.fromkeys(name for v in self.variants for name in v.parameters)
        return frame[[*given, *(c for c in frame.columns if c not in given and c != "why"), "why"]]

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write :meth:`table` to a file."""
        write(path, csv_text(self.table()))

    def plot(self, label: str) -> Figure:
        """Plot a coordinate of all variants over time.

        Parameters
        ----------
        label : str
            A coordinate, e.g. "A".
        """
        from loopdyn.output.plot.variants import plot_variants

        return plot_variants(self, label)

    def __str__(self) -> str:
        lines = [f"{self.title}: {len(self.variants)} variants, {len(self.failed)} of them failed"]
        for v in self.variants:
            given = ", ".join(f"{name} = {_short(value)}" for name, value in v.parameters.items()) or "as in the model"
            lines.append(f"{v.name}: {given}")
            if v.why:
                lines.append(f"  failed: {v.why}")
            elif v.run is not None:
                lines += [f"  {what:<32}{value:>12.5g}" for what, value in _peaks(v.run).items()]
        return "\n".join([*lines, *([self.stopped] if self.stopped else [])])


def variants(
    mechanism: Mechanism,
    table: str | os.PathLike[str] | pandas.DataFrame | Sequence[Mapping[str, Any]],
    time: float,
    *,
    every: float | None = None,
    tolerance: float | tuple[float, float] | None = None,
    **options: Any,
) -> Variants:
    """Run a mechanism with several sets of parameters; a failed run does not stop the others.

    Ctrl-C stops all of them and returns the results so far, see ``stopped``.

    Parameters
    ----------
    mechanism : Mechanism
    table : CSV file, data frame or list of mappings
        A row per variant, a column per parameter, in the units of the model; an empty cell keeps the model's value. A
        column `name` names the variants, else they are numbered.
    time : float
        Seconds to simulate.
    every : float, optional
        Seconds between outputs, from which peaks are taken.
    tolerance : float or (angle, length), optional
        Largest residual of redundant constraints, in declared units: see :func:`loopdyn.assemble`.
    **options
        Options of :func:`loopdyn.simulate`.

    Examples
    --------
    A rod that falls from the horizontal: the load of its pin is a quarter of its weight at first, and grows.

    >>> import loopdyn as ld
    >>> m = ld.Mechanism("rod", gravity=(0, -10, 0), parameters={"length": 1.0})
    >>> rod = m.add_body("rod", ld.Inertia.rod(mass=1.0, start=(0, 0, 0), end=("length", 0, 0)))
    >>> pin = m.add_joint("A", ld.Revolute(axis=(0, 0, 1)), m.ground, rod, at=(0, 0, 0))
    >>> both = ld.variants(m, [{"name": "short", "length": 0.5}, {"name": "long"}], 0.3, progress=False)
    >>> [v.name for v in both.variants], both.failed
    (['short', 'long'], ())
    >>> bool(both.table().loc["short", "A radial force, N"] > both.table().loc["long", "A radial force, N"])
    True
    """
    rows = _rows(table)
    known = mechanism.parameters
    for column in dict.fromkeys(c for row in rows.values() for c in row):
        if column not in known:
            hint = nearest(column, [*known, NAME]) if known else "Give the model parameters first."
            raise LoopdynError(f"column '{column}' of the variants is not a parameter of '{mechanism.name}'. {hint}")
    found: list[Variant] = []
    stopped = ""
    for name, row in rows.items():
        try:
            variant, wanted = _run(mechanism, name, row, time, every, tolerance, options)
        except KeyboardInterrupt:  # before there was a run
            variant, wanted = None, True
        found += [] if variant is None else [variant]
        if wanted:
            stopped = f"stopped by the user: {len(found)} of {len(rows)} variants were started"
            break
    return Variants(mechanism.name, tuple(found), stopped)


def _run(
    mechanism: Mechanism,
    name: str,
    row: dict[str, Value],
    time: float,
    every: float | None,
    tolerance: float | tuple[float, float] | None,
    options: dict[str, Any],
) -> tuple[Variant, bool]:
    """Run one variant; also return whether the user wants to stop."""
    try:
        system = mechanism.with_(**row).compile()
        state = assemble(system, tolerance=tolerance)
        span = state.t, state.t + time
        times = None if every is None else output_times(*span, every)
        with deferred() as stop:
            run = simulate(system, state, span, t_eval=times, **options)
    except LoopdynError as error:
        return Variant(name, row, None, str(error)), False
    return Variant(name, row, run, "" if run.status in ("finished", "stopped") else run.message), stop.wanted


def _rows(table: Any) -> dict[str, dict[str, Value]]:
    """Name and changed parameters of each variant."""
    lines = _read(Path(table)) if isinstance(table, str | os.PathLike) else _cells(table)
    if not lines:
        raise LoopdynError("the table of variants is empty. Write a line of names, then one per variant.")
    rows: dict[str, dict[str, Value]] = {}
    for k, cells in enumerate(lines, 1):
        name = str(cells.pop(NAME, k)).strip()
        if name in rows:
            raise LoopdynError(f"two variants are called '{name}'. Give each its own name.")
        rows[name] = {c: _value(x) for c, x in cells.items()}
    return rows


def _value(cell: Any) -> Value:
    """A number, or a formula."""
    try:
        return float(cell)
    except ValueError:
        return str(cell).strip()


def _cells(table: Any) -> list[dict[str, Any]]:
    """Cells by column of each row of a data frame or list of mappings, without the empty ones."""
    import pandas as pd

    frame = pd.DataFrame(table)
    heads = [str(c).strip() for c in frame.columns]
    return [
        {c: x for c, x in zip(heads, row, strict=True) if not pd.isna(x) and str(x).strip()}
        for row in frame.itertuples(index=False, name=None)
    ]


def _read(file: Path) -> list[dict[str, Any]]:
    """Cells by column of each line of a file, as they are written, without the empty ones."""
    form = "Write a line of names, then one per variant, with commas between."
    try:
        with file.open(encoding="utf-8-sig", newline="") as stream:  # byte-order mark of spreadsheets
            reader = csv.reader(stream, skipinitialspace=True)
            lines = [(reader.line_num, [x.strip() for x in row]) for row in reader]
    except FileNotFoundError:
        raise LoopdynError(f"there is no such file: '{file}'. Give a table of variants, ending in .csv.") from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise LoopdynError(f"'{file}' is not a table: {error}. {form}") from None
    lines = [(number, row) for number, row in lines if any(row)]
    if not lines:
        return []
    heads = lines[0][1]
    while heads[-1] == "":  # commas at the end of a line, as spreadsheets leave them
        heads.pop()
    if len(heads) == 1 and ";" in heads[0]:
        raise LoopdynError(f"'{file}' has semicolons between its cells. {form}")
    wrong = [c for c in heads if c == "" or heads.count(c) > 1]
    if wrong:
        what = f"has two columns '{wrong[0]}'" if wrong[0] else "has a column without a name"
        raise LoopdynError(f"'{file}' {what}. {form}")
    for number, row in lines[1:]:
        if any(row[len(heads) :]):
            raise LoopdynError(
                f"'{file}', line {number}: more cells than the {len(heads)} names of the first line. {form}"
            )
    return [{c: x for c, x in zip(heads, row, strict=False) if x} for _, row in lines[1:]]


def _peaks(run: Run) -> dict[str, float]:
    """Largest absolute values of the quantities of the table, with units."""
    bearings = run.bearings().table()
    peaks = {f"{name}, {row.unit}": float(row.peak) for name, row in bearings.iterrows() if row.determined}
    of_bearings = {f"{joint}.{part}" for joint in run.joints for part in COMPONENTS}
    for name, row in run.summary().iterrows():  # drivers, motors, springs, friction
        if str(name).removesuffix(" ?") not in of_bearings and not str(name).startswith("shaking"):
            peaks[f"{name}, {row['unit']}"] = float(max(abs(row["min"]), abs(row["max"])))
    shaking = run.shaking[~run.unbounded]
    units = run.system.units
    largest = float(np.linalg.norm(shaking[:, :3], axis=1).max(initial=0.0))
    peaks[f"shaking force, {units.force}"] = largest / units.factor("force")
    return peaks | {"energy error": run.energy_error}


def _short(value: Value) -> str:
    return value if isinstance(value, str) else f"{value:.6g}"


__all__ = ["Variant", "Variants", "variants"]
