"""`tolerance`: worst case, linear statistics and Monte Carlo of the tolerances of a mechanism."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loopdyn.errors import LoopdynError, warn
from loopdyn.model.mechanism import Mechanism
from loopdyn.model.tolerances import Band
from loopdyn.results.study import Limits, Study, ToleranceStudy
from loopdyn.studies.clearance import with_clearance
from loopdyn.studies.designs import Designs, Method, band_of, designs_of
from loopdyn.studies.designs import samples as drawn
from loopdyn.studies.study import study

Array = NDArray[np.float64]
MOST_COMBINATIONS = 256  # of ends of the bands, all of which are analysed
RESOLVED = 1e-9  # difference of two values of a measure that is worth a warning, relative to it or to one
TAILS = (0.00135, 0.99865)  # probabilities outside of three standard deviations of a normal distribution


def tolerance(
    mechanism: Mechanism,
    measure: Any,
    tolerances: Mapping[str, Any] | None = None,
    *,
    samples: int = 2000,
    limits: Limits | None = None,
    clearance: Mapping[str, float] | None = None,
    over: Any = None,
    method: Method = "random",
    seed: int = 0,
    store: str | os.PathLike[str] | None = None,
    executor: Any = None,
    workers: int | None = None,
    progress: bool | Callable[[int], object] = True,
) -> ToleranceStudy:
    """Effect of tolerances of dimensions and of clearances on measures: worst case, linear statistics, Monte Carlo.

    Slopes are central differences of the closed mechanism over the tolerance and half of it, extrapolated. The worst
    case is the extreme of the measure of the closed mechanism with all dimensions at the ends of their bands that the
    signs of the slopes say, with each at its ends alone and, up to 256, with all combinations of ends. If samples are
    beyond it, though within the bands, it is theirs, with a warning. The linear deviation is the root of the sum of
    squares (RSS) of slope times standard deviation.

    Parameters
    ----------
    mechanism : Mechanism
    measure : as for :func:`study`
    tolerances : mapping, optional
        By parameter, ``{"crank": "40 ± 0.05", "rod": "± 0.1 normal"}``; by default those of the model.
    samples : int
        Of the Monte Carlo study; those that cannot be assembled are reported, and count as outside of the limits.
    limits : mapping, optional
        Lowest and highest value of measures, for the yield: ``{"P.x": (10, 12)}``.
    clearance : mapping, optional
        Radial clearance of revolute joints, in the unit of length: the pin is displaced by it across the axis, in a
        random direction in the samples, in the worst one in the worst case.
    over : as for :func:`study`
        With clearances poses, drives and equilibria, not runs.
    method, seed, store, executor, workers, progress
        As for :func:`study`, for the samples.

    Examples
    --------
    >>> import loopdyn as ld
    >>> m = ld.library.four_bar()
    >>> found = ld.tolerance(m, "D at A=1.2", {"crank": "± 0.001", "rocker": "± 0.001"}, samples=100, progress=False)
    >>> found.contributions["dimension"].tolist()
    ['crank', 'rocker']
    """
    given = dict(mechanism.tolerances) if tolerances is None else dict(tolerances)
    if not given and not clearance:
        raise LoopdynError(
            f"'{mechanism.name}' has no tolerances, and none are given. Give them, or add to the model: "
            "tolerances: {crank: ± 0.05}."
        )
    unknown = [name for name in given if name not in mechanism.parameters]
    if unknown:
        designs_of(mechanism, {unknown[0]: [0.0]}, None, None, None)  # raises
    nominal = mechanism.resolver().parameters
    bands = {name: band_of(name, one, nominal) for name, one in given.items()}
    pins = with_clearance(mechanism, clearance or {})

    def analysed(table: Designs, **options: Any) -> Study:
        found: Study = study(mechanism, table, measure, over=over, clearance=clearance, **options)
        return found

    linear = _Linear(bands, pins, lambda table: analysed(table, progress=False, workers=1))
    if limits is not None:
        linear.study.yield_(limits)  # raises if they name no measure, before all samples are computed
    sampled = _drawn(bands, pins, samples, method, seed)
    found = analysed(sampled, store=store, executor=executor, workers=workers, progress=progress)
    yields = None if limits is None else found.yield_(limits)
    return ToleranceStudy(linear.nominal, linear.contributions(), linear.summary(found), found, yields)


def _drawn(bands: Mapping[str, Band], pins: Mapping[str, float], count: int, method: Method, seed: int) -> Designs:
    """Samples of all dimensions; a pin with clearance is displaced by all of it, in a random direction."""
    names: list[str] = [*bands]
    given: dict[str, Any] = {name: (0.0, 1.0) for name in [*names, *pins]}
    if count < 2:
        raise LoopdynError(f"{count} samples. Give at least 2.")
    table = drawn(given, count, method=method, seed=seed)
    columns = [band.at(table.values[:, j]) for j, band in enumerate(bands.values())]
    for j, (joint, radius) in enumerate(pins.items(), len(bands)):
        angle = 2.0 * np.pi * table.values[:, j]
        columns += [radius * np.cos(angle), radius * np.sin(angle)]
        names += [f"{joint} clearance 1", f"{joint} clearance 2"]
    return Designs(tuple(names), np.stack(columns, axis=1), (), method, dict(bands))


class _Linear:
    """Slopes of all measures by each dimension, at the middle of all bands.

    Parameters
    ----------
    bands : mapping
    pins : mapping
        Radial clearance by joint.
    analysed : callable
        Study of a table of designs.
    """

    def __init__(self, bands: Mapping[str, Band], pins: Mapping[str, float], analysed: Callable[[Designs], Study]):
        self.bands, self.pins, self.analysed = bands, pins, analysed
        parts = [f"{joint} clearance {k}" for joint in pins for k in (1, 2)]
        self.names = (*bands, *parts)
        self.half = np.array([*(b.half for b in bands.values()), *(r for r in pins.values() for _ in (1, 2))])
        self.middle = np.array([*(b.middle for b in bands.values()), *np.zeros(len(parts))])
        start = np.array([*(b.nominal for b in bands.values()), *np.zeros(len(parts))])
        k = len(self.names)
        rows = [start, self.middle]
        for step in (1.0, 0.5):
            for sign in (1.0, -1.0):
                rows += list(self.middle + sign * step * np.diag(self.half))
        found = self._values(np.array(rows), "")
        self.measures = list(found)
        y = np.array([found[name] for name in self.measures])  # (measures, designs)
        self.nominal = {name: float(y[n, 0]) for n, name in enumerate(self.measures)}
        self.edges = y  # (measures, designs) values with one dimension at its ends or halfway, nominal, in the middle
        plus, minus, near_plus, near_minus = (y[:, 2 + j * k : 2 + (j + 1) * k] for j in range(4))
        with np.errstate(divide="ignore", invalid="ignore"):
            coarse, fine = (plus - minus) / (2.0 * self.half), (near_plus - near_minus) / self.half
        self.slopes = np.where(self.half > 0.0, (4.0 * fine - coarse) / 3.0, 0.0)

    def _values(self, rows: Array, where: str) -> dict[str, Array]:
        found = self.study = self.analysed(Designs(self.names, rows))
        if not found.finished.all():
            first = found.failed.iloc[0]
            raise LoopdynError(
                f"the mechanism has no measure at the edge of its tolerances{where}: {first['status']}, "
                f"{first['reason']} Give smaller tolerances, or use ld.study for the samples alone."
            )
        return {name: found[name].values for name in found.units}

    def _dimensions(self) -> list[tuple[str, list[int], float, float]]:
        """Dimensions: name, columns, largest deviation and its standard deviation along one column."""
        found = [(name, [j], b.half, b.deviation) for j, (name, b) in enumerate(self.bands.items())]
        for j, (joint, radius) in enumerate(self.pins.items()):
            at = len(self.bands) + 2 * j
            found.append((f"{joint} clearance", [at, at + 1], radius, radius / np.sqrt(2.0)))
        return found

    def contributions(self) -> Any:
        """Table of slopes and their parts of the worst case and of the variance."""
        import pandas as pd

        rows = []
        for n, name in enumerate(self.measures):
            own = []
            for dimension, columns, most, deviation in self._dimensions():
                slope = self.slopes[n, columns]
                size = float(slope[0]) if len(columns) == 1 else float(np.linalg.norm(slope))
                own.append((dimension, size, most, abs(size) * most, (size * deviation) ** 2))
            worst, variance = sum(x[3] for x in own), sum(x[4] for x in own)
            rows += [
                (name, d, s, t, w / worst if worst else 0.0, v / variance if variance else 0.0) for d, s, t, w, v in own
            ]
        heads = ["measure", "dimension", "slope", "tolerance", "of_worst_case", "of_variance"]
        return pd.DataFrame(rows, columns=heads).set_index("measure")

    def summary(self, sampled: Study) -> Any:
        """Table of the worst case, the linear deviation and the samples."""
        import pandas as pd

        low, high = self._corners()
        done = sampled.finished
        if done.sum() < 2:
            raise LoopdynError(f"{int(done.sum())} of {len(sampled)} samples are finished. See ld.study for reasons.")
        rows = {}
        for n, name in enumerate(self.measures):
            x = sampled[name].values[done]
            variance = sum(float(np.sum((self.slopes[n, columns] * s) ** 2)) for _, columns, _, s in self._dimensions())
            tails = np.quantile(x, TAILS)
            deviation = float(x.std(ddof=1))
            least, most = self.widened(name, float(low[n]), float(high[n]), x)
            rows[name] = {
                "nominal": self.nominal[name], "worst_low": least, "worst_high": most,
                "linear_deviation": np.sqrt(variance), "mean": x.mean(), "deviation": deviation,
                "deviation_error": deviation / np.sqrt(2.0 * (len(x) - 1)), "low": tails[0], "high": tails[1],
            }  # fmt: skip
        return pd.DataFrame.from_dict(rows, orient="index")

    def _corners(self) -> tuple[Array, Array]:
        """Smallest and largest value of each measure at ends of the bands, in their middle and at the nominal values.

        All dimensions are at the ends that the signs of the slopes say; every dimension alone is at its ends; where
        dimensions are few, all combinations of ends. NaN where the ends by the slopes cannot be assembled.
        """
        towards = []
        for n in range(len(self.measures)):
            direction = np.zeros(len(self.names))
            for _, columns, most, _ in self._dimensions():
                slope = self.slopes[n, columns]
                size = float(np.linalg.norm(slope))
                direction[columns] = most * slope / size if size > 0.0 else 0.0
            towards += [-direction, direction]
        found = self.analysed(Designs(self.names, self.middle + np.array([*towards, *self._combinations()])))
        if not found.finished.all():
            warn(f"{found.name}: in the worst case it cannot be assembled: {found.failed['reason'].iloc[0]}")
        y = np.array([found[name].values for name in self.measures])
        ends = np.array([y[n, 2 * n : 2 * n + 2] for n in range(len(y))])
        known = np.hstack([y, self.edges])
        low, high = np.fmin.reduce(known, axis=1), np.fmax.reduce(known, axis=1)
        lost = np.isnan(ends).any(axis=1)
        return np.where(lost, np.nan, low), np.where(lost, np.nan, high)

    def _combinations(self) -> list[Array]:
        """Deviations of all combinations of ends, a pin along each of its axes; none if they are too many."""
        ends = [
            [sign * most * np.eye(len(self.names))[column] for column in columns for sign in (-1.0, 1.0)]
            for _, columns, most, _ in self._dimensions()
        ]
        if np.prod([float(len(some)) for some in ends]) > MOST_COMBINATIONS:
            return []
        return [np.sum(chosen, axis=0) for chosen in itertools.product(*ends)]

    def widened(self, name: str, low: float, high: float, x: Array) -> tuple[float, float]:
        """Worst case of a measure, with samples that are outside of it, of which it warns.

        Those of a normal distribution may be: its tails are outside of the bands.
        """
        beyond = RESOLVED * max(1.0, abs(low), abs(high))  # a measure that is zero has rounding
        if all(b.distribution != "normal" for b in self.bands.values()):
            if x.min() < low - beyond or x.max() > high + beyond:
                warn(
                    f"tolerance: '{name}' has its extremes inside of the bands, not at their ends. The worst case is "
                    "that of the samples; contributions by slopes mean little."
                )
            return min(low, float(x.min())), max(high, float(x.max()))
        return low, high


__all__ = ["tolerance"]
