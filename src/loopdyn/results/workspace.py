"""Result of :func:`loopdyn.workspace`: positions that a point reaches over a grid of inputs, and singular poses."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from loopdyn.system.system import State, System

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SingularPoint:
    """Singular pose located between two points of the grid.

    Attributes
    ----------
    kind : str
        "type I" (the output loses a velocity) or "type II" (the inputs cannot go on: a dead point).
    inputs : dict
        Values of the inputs, declared units.
    position : (3,) array
        Of the output, declared units.
    state : State
        The pose, at rest.
    """

    kind: str
    inputs: dict[str, float]
    position: Array
    state: State = field(repr=False)


@dataclass(frozen=True, eq=False)
class Workspace:
    """Positions reached over a grid of inputs; prints a summary.

    Attributes
    ----------
    system : System
    output : str
    inputs : tuple of str
    data : xarray.Dataset
        Over one dimension per input, named by its label, declared units: `position` (..., xyz), NaN where it is not
        reached; `reached`; `reason` why it is not; `quality`, smallest singular value of all rows and inputs (natural
        units), zero at type II; `indicator`, determinant of the output's velocity by the inputs, zero at type I, NaN if
        the output has more independent components than there are inputs.
    singular : tuple of SingularPoint
        Where the path between neighbouring points of the grid crosses, or ends at, a singular pose.
    """

    system: System = field(repr=False)
    output: str
    inputs: tuple[str, ...]
    data: xarray.Dataset = field(repr=False)
    singular: tuple[SingularPoint, ...] = field(default=(), repr=False)

    def plot(self) -> Figure:
        """Plot the positions reached and the singular poses, seen along the world axis of their smallest extent."""
        from loopdyn.output.plot.workspaces import plot_workspace

        return plot_workspace(self)

    def __str__(self) -> str:
        reached, unit = self.data["reached"].values, self.system.units.symbol("length")
        lines = [f"{self.system.name}: {self.output} over {', '.join(self.inputs)}"]
        lines.append(f"  reached: {int(reached.sum())} of {reached.size} points of the grid")
        if reached.any():
            x = self.data["position"].values[reached]
            spans = (f"{c} {a:.4g} to {b:.4g}" for c, a, b in zip("xyz", x.min(axis=0), x.max(axis=0), strict=True))
            lines.append(f"  positions in {unit}: {', '.join(spans)}")
        reasons, counts = np.unique(self.data["reason"].values[~reached], return_counts=True)
        lines += [f"  not reached, {reason}: {n}" for reason, n in zip(reasons, counts, strict=True)]
        kinds, counts = np.unique([p.kind for p in self.singular], return_counts=True)
        lines += [f"  singular poses located, {kind}: {n}" for kind, n in zip(kinds, counts, strict=True)]
        return "\n".join(lines)
