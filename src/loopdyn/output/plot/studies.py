"""Plots of a study: scatter, histogram, contributions, Pareto front."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from loopdyn.errors import LoopdynError
from loopdyn.output.drawing import COLOURS
from loopdyn.output.plot.axes import new_panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from loopdyn.results.study import Study


class StudyPlots:
    """Plots of a study; designs that are not finished are counted in the title.

    Parameters
    ----------
    study : Study
    """

    def __init__(self, study: Study):
        self._study = study

    def _panel(self, what: str) -> tuple[Figure, Any]:
        s, missing = self._study, int(np.sum(~self._study.finished))
        title = f"{s.name}: {what}" + (f" ({missing} of {len(s)} designs not finished)" if missing else "")
        figure, (ax,) = new_panels(title, 1, height=3.6)
        return figure, ax

    def _label(self, name: str) -> str:
        unit = self._study.units.get(name, "")
        return f"{name} in {unit}" if unit else name

    def scatter(self, x: str, y: str) -> Figure:
        """Plot two parameters or measures against each other; designs that are not finished as crosses on the axis."""
        s = self._study
        a, b, done = s[x].values, s[y].values, s.finished
        figure, ax = self._panel(f"{y} by {x}")
        ax.plot(a[done], b[done], ".", color=COLOURS[0])
        left = ~done & np.isfinite(a)
        if left.any():
            low = float(np.min(b[done])) if done.any() else 0.0
            ax.plot(a[left], np.where(np.isfinite(b[left]), b[left], low), "x", color=COLOURS[1], label="not finished")
            ax.legend()
        ax.set(xlabel=self._label(x), ylabel=self._label(y))
        return figure

    def histogram(self, measure: str, *, bins: int = 40) -> Figure:
        """Plot how often a measure has which values."""
        s = self._study
        figure, ax = self._panel(measure)
        ax.hist(s[measure].values[s.finished], bins=bins, color=COLOURS[0])
        ax.set(xlabel=self._label(measure), ylabel="designs")
        return figure

    def contributions(self, measure: str | None = None) -> Figure:
        """Plot the contribution of each parameter to the variance of a measure."""
        found = self._study.sensitivity(measure)
        column = "total" if "total" in found else "contribution"
        figure, ax = self._panel(f"contributions to the variance{'' if measure is None else f' of {measure}'}")
        ordered = found[column].sort_values()
        ax.barh([str(x) for x in ordered.index], ordered.to_numpy(), color=COLOURS[0])
        ax.set(xlabel="total Sobol index" if column == "total" else "fraction of the variance")
        return figure

    def pareto(self, x: str, y: str) -> Figure:
        """Plot two measures and the designs that no other surpasses in both, smaller being better."""
        s = self._study
        a, b = s[x].values[s.finished], s[y].values[s.finished]
        if not len(a):
            raise LoopdynError("no design is finished, so that there is nothing to plot. See .failed.")
        front = pareto_front(a, b)
        figure, ax = self._panel(f"{y} by {x}, Pareto front")
        ax.plot(a, b, ".", color=COLOURS[0])
        ax.plot(a[front], b[front], "o-", color=COLOURS[1], label="Pareto front")
        ax.set(xlabel=self._label(x), ylabel=self._label(y))
        ax.legend()
        return figure


def pareto_front(a: Any, b: Any) -> list[int]:
    """Places of the points that no other surpasses in both numbers, in ascending order of the first.

    Examples
    --------
    >>> pareto_front([1, 2, 3, 2], [3, 1, 2, 2])
    [0, 1]
    """
    found: list[int] = []
    for k in np.lexsort((b, a)).tolist():
        if not found or b[k] < b[found[-1]]:
            found.append(k)
    return found
