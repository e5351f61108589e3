"""`Study`: numbers of many designs, as a table, with yield, sensitivities and the best design."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from loopdyn.errors import LoopdynError
from loopdyn.files import write
from loopdyn.quantities.labels import dataset
from loopdyn.quantities.wording import unknown
from loopdyn.results.indices import linear_contributions, sobol_indices
from loopdyn.tables import csv_text

if TYPE_CHECKING:
    import pandas
    import xarray

    from loopdyn.output.plot.studies import StudyPlots
    from loopdyn.studies.designs import Designs
    from loopdyn.studies.scheduling import Board

Array = NDArray[np.float64]
Limits = Mapping[str, tuple[float | None, float | None]]

FINISHED = "finished"


@dataclass(frozen=True)
class Yield:
    """Fraction of designs within all limits; prints a summary.

    Attributes
    ----------
    value : float
        Designs within all limits, divided by all designs that were run. A design that is not finished counts as
        outside.
    error : float
        Standard error of `value` as an estimate from random samples.
    within : int
    designs : int
        Designs that were run.
    outside : dict
        Finished designs outside each limit.
    unfinished : dict
        Designs without numbers, by status.
    """

    value: float
    error: float
    within: int
    designs: int
    outside: dict[str, int]
    unfinished: dict[str, int]

    def __str__(self) -> str:
        lines = [f"yield {100 * self.value:.4g} % ± {100 * self.error:.2g} % ({self.within} of {self.designs} designs)"]
        lines += [f"  outside {limit}: {n}" for limit, n in self.outside.items()]
        lines += [f"  {status}: {n}, counted as outside" for status, n in self.unfinished.items()]
        return "\n".join(lines)


class Study:
    """Result of a study: a row for every design; prints a summary.

    Attributes
    ----------
    name : str
        Name of the mechanism.
    units : dict
        Unit of each measure.
    stopped : str
        Why the study ended early; empty if all designs were run.
    """

    def __init__(self, name: str, units: Mapping[str, str], designs: Designs, board: Board, over: str = ""):
        self.name, self.units, self.over = name, dict(units), over
        self.designs, self._board, self.stopped = designs, board, board.stopped

    def __len__(self) -> int:
        return len(self.designs)

    @cached_property
    def data(self) -> xarray.Dataset:
        """Dataset with the dimension `design`: each measure, `parameters`, `status`, `reason`, `seconds`.

        Numbers of designs that are not finished are NaN.
        """
        from loopdyn.studies.evaluation import STATUSES

        b, n = self._board, len(self.designs)
        data: dict[str, Any] = {
            name: ("design", b.values[:, k], {"units": unit}) for k, (name, unit) in enumerate(self.units.items())
        }
        reasons = np.full(n, "", object)
        for k, reason in b.reasons.items():
            reasons[k] = reason
        reasons[b.status == 0] = b.stopped or "not run"
        data["status"] = ("design", np.array(STATUSES)[b.status])
        data["reason"] = ("design", reasons)
        data["seconds"] = ("design", b.seconds, {"units": "s", "means": "computing time"})
        data["parameters"] = (("design", "parameter"), self.designs.values, {"units": "those of the model"})
        coords: dict[str, Any] = {"design": np.arange(n), "parameter": np.array(self.designs.names, str)}
        if self.designs.labels:
            coords["name"] = ("design", np.array(self.designs.labels, str))
        attributes = {"name": self.name, "over": self.over, "method": self.designs.method, "stopped": self.stopped}
        return dataset(data, coords, attributes)

    def __getitem__(self, name: str) -> xarray.DataArray:
        """Values of a measure or parameter by design."""
        if name in self.units:
            return self.data[name]
        if name not in self.designs.names:
            raise unknown("study", "measure or parameter", [name], [*self.units, *self.designs.names])
        return self.data["parameters"].sel(parameter=name, drop=True).rename(name)

    def table(self) -> pandas.DataFrame:
        """Table with a row per design: parameters, measures, status, reason, seconds."""
        import pandas as pd

        d = self.data
        columns: dict[str, Any] = {name: self.designs.values[:, j] for j, name in enumerate(self.designs.names)}
        for name in self.units:
            columns[name if name not in columns else f"{name} (measure)"] = d[name].values
        columns |= {name: d[name].values for name in ("status", "reason", "seconds")}
        index = pd.Index(self.designs.labels or np.arange(len(self)), name="design")
        return pd.DataFrame(columns, index=index)

    @property
    def failed(self) -> pandas.DataFrame:
        """Rows of :meth:`table` that are not finished."""
        table = self.table()
        return table[table["status"] != FINISHED]

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write :meth:`table` to a file."""
        write(path, csv_text(self.table()))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write :attr:`data` to a NetCDF file, which :func:`xarray.open_dataset` reads."""
        if not str(path).endswith((".nc", ".h5")):
            raise LoopdynError(f"results are saved as NetCDF, not as '{path}'. The name must end in .nc.")
        data = self.data.copy()
        data["reason"] = data["reason"].astype(str)
        write(path, bytes(data.to_netcdf(engine="h5netcdf")))

    def report(self, path: str | os.PathLike[str], limits: Limits | None = None) -> None:
        """Write a page with the yield within limits, if any, histograms, contributions, and designs that failed.

        Parameters
        ----------
        path : file ending in .html
        limits : mapping, optional
            As for :meth:`yield_`.
        """
        from loopdyn.output.study_report import write_study

        write_study(self, _page(path), None if limits is None else self.yield_(limits))

    # ----------------------------------------------------------------------------------------- statistics

    @property
    def finished(self) -> NDArray[np.bool_]:
        """Flags (designs,) of those that have numbers."""
        return np.asarray(self.data["status"].values == FINISHED)

    def _measure(self, name: str | None) -> str:
        """Name of a measure; the only one if none is given."""
        if name is None and len(self.units) == 1:
            return next(iter(self.units))
        if name is None:
            raise LoopdynError(f"the study has several measures. Name one: {', '.join(self.units)}.")
        if name not in self.units:
            raise unknown("study", "measure", [name], self.units)
        return name

    def unfinished(self) -> dict[str, int]:
        """Number of designs by status, of those without numbers."""
        names, counts = np.unique(self.data["status"].values[~self.finished], return_counts=True)
        return dict(zip(names.tolist(), counts.tolist(), strict=True))

    def yield_(self, limits: Limits) -> Yield:
        """Fraction of designs within limits.

        Parameters
        ----------
        limits : mapping
            Lowest and highest value of measures, in their units; None for no limit: ``{"toe": (-0.1, None)}``.

        Examples
        --------
        >>> import loopdyn as ld
        >>> m = ld.library.four_bar()
        >>> found = ld.study(m, {"crank": [0.2, 0.3, 2.0]}, {"D": "D at A=1.2"}, progress=False)
        >>> found.yield_({"D": (None, 2.0)}).designs
        3
        """
        if not limits:
            raise LoopdynError("there are no limits. Give at least one: {'toe': (-0.1, 0.1)}.")
        run = np.asarray(self._board.status != 0)
        inside, outside = self.finished.copy(), dict[str, int]()
        for given, (low, high) in limits.items():
            name = self._measure(given)
            values = self.data[name].values
            above = -np.inf if low is None else float(low)
            below = np.inf if high is None else float(high)
            if not above < below:
                raise LoopdynError(f"the limits of '{name}' are {(low, high)}. Give two ascending numbers.")
            good = (values >= above) & (values <= below)
            outside[f"{name} in [{above:g}, {below:g}] {self.units[name]}"] = int(np.sum(self.finished & ~good))
            inside &= good
        n, within = int(run.sum()), int(inside.sum())
        if not n:
            raise LoopdynError("no design was run. Run the study first.")
        value = within / n
        error = float(np.sqrt(max(value * (1.0 - value), 1.0 / (n + 2) ** 2) / n))
        return Yield(value, error, within, n, outside, {k: v for k, v in self.unfinished().items() if k != "not run"})

    def sensitivity(self, measure: str | None = None) -> pandas.DataFrame:
        """Contribution of each parameter to the variance of a measure.

        For samples by "saltelli" these are the Sobol indices, `first` and `total`, with their standard errors, where
        all designs are finished. For others they are linear: `slope` of a least-squares fit over the finished
        designs, `contribution` (slope times standard deviation, squared, divided by the variance), and in the row
        "not linear" the part of the variance that the fit does not explain.

        Parameters
        ----------
        measure : str, optional
            The only one by default.
        """
        name = self._measure(measure)
        values, designs = self.data[name].values, self.designs
        if designs.method == "saltelli":
            if not self.finished.all():
                raise LoopdynError(
                    f"{int(np.sum(~self.finished))} designs have no numbers, without which there are no Sobol indices. "
                    "Give narrower ranges, or other samples."
                )
            return sobol_indices(designs.names, values)
        return linear_contributions(designs.names, designs.values[self.finished], values[self.finished])

    def best(
        self, measure: str | None = None, *, largest: bool = False, limits: Limits | None = None
    ) -> dict[str, Any]:
        """Design with the smallest value of a measure, and its numbers: a row of :meth:`table`.

        Parameters
        ----------
        measure : str, optional
            The only one by default.
        largest : bool
            Take the largest value.
        limits : mapping, optional
            Consider designs within these limits only.
        """
        name = self._measure(measure)
        allowed = self.finished.copy()
        for given, (low, high) in (limits or {}).items():
            values = self.data[self._measure(given)].values
            allowed &= (values >= (-np.inf if low is None else low)) & (values <= (np.inf if high is None else high))
        if not allowed.any():
            raise LoopdynError("no finished design is within the limits. Widen them, or see .failed.")
        values = np.where(allowed, self.data[name].values * (-1.0 if largest else 1.0), np.inf)
        row = self.table().iloc[int(np.argmin(values))]
        return {"design": row.name, **row.to_dict()}

    @property
    def plot(self) -> StudyPlots:
        """Plots: scatter, histogram, contributions, pareto."""
        from loopdyn.output.plot.studies import StudyPlots

        return StudyPlots(self)

    def __str__(self) -> str:
        count, finished = len(self), int(self.finished.sum())
        lines = [f"{self.name}: {count} designs of {', '.join(self.designs.names)}, {finished} finished"]
        lines += [f"  {status}: {n}" for status, n in self.unfinished().items()]
        lines += [f"  ended early: {self.stopped}"] if self.stopped else []
        if finished:
            width = max(len(name) for name in self.units) + 2
            heads = ("smallest", "mean", "largest", "deviation")
            lines.append(f"  {'':<{width}}" + "".join(f"{h:>12}" for h in heads) + "  unit")
            for name, unit in self.units.items():
                x = self.data[name].values[self.finished]
                numbers = (x.min(), x.mean(), x.max(), x.std(ddof=1) if finished > 1 else 0.0)
                lines.append(f"  {name:<{width}}" + "".join(f"{v:>12.6g}" for v in numbers) + f"  {unit}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<Study of {len(self)} designs of '{self.name}'>"

    def _repr_html_(self) -> str:
        """Summary for Jupyter."""
        import html

        return f"<pre>{html.escape(str(self))}</pre>"


@dataclass(frozen=True)
class ToleranceStudy:
    """Worst case, linear statistics and Monte Carlo of tolerances; prints a table.

    Attributes
    ----------
    nominal : dict
        Value of each measure at the nominal values of all parameters.
    contributions : DataFrame
        A row per measure and dimension: `slope`, the tolerance, and its parts of the worst case and of the variance.
    summary : DataFrame
        A row per measure: worst case and deviations.
    study : Study
        The Monte Carlo samples.
    yields : Yield or None
        Against the limits, if there are any.
    """

    nominal: dict[str, float]
    contributions: pandas.DataFrame = field(repr=False)
    summary: pandas.DataFrame = field(repr=False)
    study: Study = field(repr=False)
    yields: Yield | None = None

    def report(self, path: str | os.PathLike[str]) -> None:
        """Write a page, ending in .html, with yield, worst case, contributions, histograms, and samples that failed."""
        from loopdyn.output.study_report import write_tolerance

        write_tolerance(self, _page(path))

    def __str__(self) -> str:
        units = self.study.units
        lines = [f"{self.study.name}: tolerances, {len(self.study)} samples"]
        missing = self.study.unfinished()
        lines += [f"  {status}: {n} samples, in no mean or deviation" for status, n in missing.items()]
        heads = ("nominal", "worst -", "worst +", "linear sd", "sampled sd", "0.135 %", "99.865 %")
        for name, row in self.summary.iterrows():
            lines.append(f"  {name} in {units[str(name)]}")
            lines.append("    " + "".join(f"{h:>12}" for h in heads))
            numbers = [row[k] for k in ("nominal", "worst_low", "worst_high", "linear_deviation", "deviation", "low",
                                        "high")]  # fmt: skip
            lines.append("    " + "".join(f"{x:>12.6g}" for x in numbers))
            own = self.contributions.loc[[name]]
            for _, part in own.sort_values("of_variance", ascending=False).iterrows():
                words = f"slope {part['slope']:>12.6g}, {100 * part['of_variance']:5.1f} % of the variance"
                lines.append(f"      {part['dimension']:<16} {words}")
        lines += [str(self.yields)] if self.yields is not None else []
        return "\n".join(lines)


def _page(path: str | os.PathLike[str]) -> str | os.PathLike[str]:
    if not str(path).endswith(".html"):
        raise LoopdynError(f"a report is a page, not '{path}'. The name must end in .html.")
    return path


__all__ = ["Study", "ToleranceStudy", "Yield"]
