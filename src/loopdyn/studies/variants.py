"""Variants of a mechanism: runs of one model with overridden parameters, and their comparison."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from loopdyn.analysis.assembly import assemble
from loopdyn.errors import LoopdynError
from loopdyn.files import write
from loopdyn.interrupts import deferred
from loopdyn.joints.base import COMPONENTS
from loopdyn.model.mechanism import Mechanism
from loopdyn.quantities.times import check_span
from loopdyn.quantities.wording import nearest, unknown
from loopdyn.results.run import Run
from loopdyn.run.simulate import simulate
from loopdyn.studies.tables import NAME, Value, rows_of
from loopdyn.tables import csv_text

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure


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
            raise unknown("variants", "variant", [name], found)
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
    t_span: tuple[float, float],
    *,
    t_eval: ArrayLike | None = None,
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
    t_span : (float, float)
        First and last time of the runs, s.
    t_eval : array, optional
        Output times, from which peaks are taken, as for :func:`loopdyn.simulate`.
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
    >>> both = ld.analyses.variants(m, [{"name": "short", "length": 0.5}, {"name": "long"}], (0, 0.3), progress=False)
    >>> [v.name for v in both.variants], both.failed
    (['short', 'long'], ())
    >>> bool(both.table().loc["short", "A radial force, N"] > both.table().loc["long", "A radial force, N"])
    True
    """
    check_span(t_span)
    rows = rows_of(table, "variants")
    known = mechanism.parameters
    for column in dict.fromkeys(c for row in rows.values() for c in row):
        if column not in known:
            hint = nearest(column, [*known, NAME]) if known else "Give the model parameters first."
            raise LoopdynError(f"column '{column}' of the variants is not a parameter of '{mechanism.name}'. {hint}")
    found: list[Variant] = []
    stopped = ""
    for name, row in rows.items():
        try:
            variant, wanted = _run(mechanism, name, row, t_span, {"t_eval": t_eval, **options}, tolerance)
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
    t_span: tuple[float, float],
    options: dict[str, Any],
    tolerance: float | tuple[float, float] | None,
) -> tuple[Variant, bool]:
    """Run one variant; also return whether the user wants to stop."""
    try:
        system = mechanism.with_(**row).compile()
        state = assemble(system, t=t_span[0], tolerance=tolerance)
        with deferred() as stop:
            run = simulate(system, state, t_span, **options)
    except LoopdynError as error:
        return Variant(name, row, None, str(error)), False
    return Variant(name, row, run, "" if run.status in ("finished", "stopped") else run.message), stop.wanted


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
