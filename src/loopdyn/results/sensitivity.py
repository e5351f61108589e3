"""Result of :func:`loopdyn.sensitivity`: values and derivatives by parameters, as data, table and plot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from loopdyn.errors import LoopdynError
from loopdyn.quantities.wording import unknown
from loopdyn.system.system import System

if TYPE_CHECKING:
    import pandas
    import xarray
    from matplotlib.figure import Figure

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Sensitivity:
    """Values of quantities and their derivatives by parameters; prints a table.

    Attributes
    ----------
    system : System
    of : tuple of str
        Quantities.
    parameters : dict
        Values of the parameters, in the units of the model.
    values : (m, ...) array
        Values in declared units, along the samples of a path if there is one.
    derivatives : (m, p, ...) array
        Derivatives of them per unit of each parameter.
    units : tuple of str
        Declared unit of each quantity.
    along : mapping
        Name of the dimension of the path, and its coordinate; empty for single numbers.
    held : tuple of str
        Coordinates and speeds that are held while a parameter changes.
    cost : dict
        Evaluations of the equations of motion for the derivatives: "real", "complex" (each worth some two real ones)
        and "states" (states or stages at which they were needed).
    """

    system: System = field(repr=False)
    of: tuple[str, ...]
    parameters: dict[str, float]
    values: Array = field(repr=False)
    derivatives: Array = field(repr=False)
    units: tuple[str, ...]
    along: Mapping[str, Array] = field(default_factory=dict, repr=False)
    held: tuple[str, ...] = ()
    cost: dict[str, int] = field(default_factory=dict, repr=False)

    def __getitem__(self, key: tuple[str, str]) -> float | Array:
        """Derivative of a quantity by a parameter: ``found["x(P)", "crank"]``."""
        name, parameter = key
        if name not in self.of:
            raise unknown("sensitivity", "quantity", [name], self.of)
        if parameter not in self.parameters:
            raise unknown("sensitivity", "parameter", [parameter], self.parameters)
        found: Array = self.derivatives[self.of.index(name), list(self.parameters).index(parameter)]
        return found if found.ndim else float(found)

    def value(self, name: str) -> float | Array:
        """Value of a quantity, in its declared unit."""
        if name not in self.of:
            raise unknown("sensitivity", "quantity", [name], self.of)
        found: Array = self.values[self.of.index(name)]
        return found if found.ndim else float(found)

    @cached_property
    def data(self) -> xarray.Dataset:
        """Dataset of `value`, `derivative` and `contribution` (derivative times the value of the parameter).

        `unit` has the declared unit of each quantity, `parameter_value` the values of the parameters.
        """
        from loopdyn.quantities.labels import dataset

        path = tuple(self.along)
        names = list(self.parameters)
        sizes = np.array(list(self.parameters.values())).reshape(1, -1, *(1,) * len(path))
        by = ("quantity", "parameter", *path)
        return dataset(
            {
                "value": (("quantity", *path), self.values, {"units": "unit"}),
                "derivative": (by, self.derivatives, {"units": "unit, per unit of the parameter"}),
                "contribution": (by, self.derivatives * sizes, {"units": "unit"}),
                "parameter_value": ("parameter", list(self.parameters.values())),
            },
            {"quantity": list(self.of), "parameter": names, "unit": ("quantity", list(self.units)), **self.along},
        )

    def table(self) -> pandas.DataFrame:
        """One row per quantity and parameter: value, derivative, contribution (derivative times parameter), relative.

        `relative` is the change of the quantity in per cent per one per cent of the parameter. Along a path each row
        has the sample with the largest derivative.
        """
        import pandas as pd

        rows = []
        for i, name in enumerate(self.of):
            for j, (parameter, p) in enumerate(self.parameters.items()):
                d, y = self.derivatives[i, j], self.values[i]
                k = int(np.argmax(np.abs(d))) if d.ndim else ()
                slope, value = float(d[k]), float(y[k])
                relative = slope * p / value if value else np.nan
                rows.append((name, value, self.units[i], parameter, p, slope, slope * p, relative))
        columns = ["quantity", "value", "unit", "parameter", "at", "derivative", "contribution", "relative"]
        return pd.DataFrame(rows, columns=columns)

    def plot(self) -> Figure:
        """Plot the contributions of the parameters, derivative times value: bars, or curves along a path."""
        from loopdyn.output.plot.sensitivities import plot_sensitivity

        if not self.parameters:
            raise LoopdynError("there is no parameter to plot. Name parameters: ld.sensitivity(..., parameters=[...]).")
        return plot_sensitivity(self)

    def __str__(self) -> str:
        lines = [f"{self.system.name}: derivatives by {', '.join(self.parameters)}"]
        if self.held:
            lines[0] += f", {', '.join(self.held)} held"
        wide = max(map(len, self.of), default=0)
        for i, name in enumerate(self.of):
            y, path = self.values[i], bool(self.along)
            shown = f"{y.min():.6g} to {y.max():.6g}" if path else f"{float(y):.9g}"
            lines.append(f"  {name:<{wide}} {shown} {self.units[i]}")
            for j, (parameter, p) in enumerate(self.parameters.items()):
                d = self.derivatives[i, j]
                text = f"{d.min():.6g} to {d.max():.6g}" if path else f"{float(d):.9g}"
                lines.append(f"    by {parameter} ({p:g}): {text}")
        if self.cost:
            evaluations = f"{self.cost['real']} real and {self.cost['complex']} complex evaluations"
            lines.append(f"  cost: {evaluations} at {self.cost['states']} states")
        return "\n".join(lines)
