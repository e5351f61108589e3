"""Linear equations along a run, and Floquet multipliers of a periodic one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from loopdyn.errors import LoopdynError
from loopdyn.results.linearization import Linearization
from loopdyn.results.run import Run
from loopdyn.system.state import State
from loopdyn.tree.functions import apart

if TYPE_CHECKING:
    import xarray

Array = NDArray[np.float64]

TOLERANCE = 1e-10  # relative, of the motion over a period: multipliers to some nine digits
PERIODIC = 1e-5  # natural units: largest difference of the states a period apart; runs are computed to 1e-6 and better


@dataclass(frozen=True, eq=False)
class Floquet:
    """Multipliers of a periodic motion: factors by which small deviations grow over one period.

    Attributes
    ----------
    period : float
        In s.
    multipliers : (n,) array
        Complex, the largest first. One of an autonomous motion is one: a shift in time.
    monodromy : (n, n) array
        Deviations after a period per deviation at its start, SI.
    """

    period: float
    multipliers: NDArray[np.complex128]
    monodromy: Array = field(repr=False)

    def __str__(self) -> str:
        lines = [f"period {self.period:.9g} s, largest multiplier {np.abs(self.multipliers).max(initial=0.0):.6g}"]
        lines += [f"  {m.real:.7g}" + (f" {m.imag:+.7g}i" if m.imag else "") for m in self.multipliers]
        return "\n".join(lines)


@dataclass(frozen=True, eq=False)
class LinearizationPath:
    """Linear equations about each output of a run, ``dz/dt = A(t) z + B(t) u`` for small deviations from it.

    Attributes
    ----------
    run : Run
    points : tuple of Linearization
        At each output. Poles of one of them, frozen in time, do not tell stability.
    """

    run: Run = field(repr=False)
    points: tuple[Linearization, ...] = field(repr=False)
    _at: Callable[[float, bool], Linearization] = field(repr=False)  # at a time, with inputs and outputs or without

    @cached_property
    def A(self) -> xarray.DataArray:
        """State matrices over `time`, declared units."""
        return self._along("A")

    @cached_property
    def B(self) -> xarray.DataArray:
        """Input matrices over `time`."""
        return self._along("B")

    @cached_property
    def C(self) -> xarray.DataArray:
        """Output matrices over `time`."""
        return self._along("C")

    @cached_property
    def D(self) -> xarray.DataArray:
        """Direct matrices over `time`."""
        return self._along("D")

    def _along(self, name: str) -> xarray.DataArray:
        import xarray as xr

        times = xr.Variable("time", [p.state.t for p in self.points], {"units": "s"})
        first: xarray.DataArray = getattr(self.points[0], name)
        values = np.array([getattr(p, name).values for p in self.points])
        coords = {"time": times, **{key: value.variable for key, value in first.coords.items()}}
        return xr.DataArray(values, dims=("time", *first.dims), coords=coords, name=name, attrs=first.attrs)

    def at(self, t: float) -> Linearization:
        """Linear equations at any time of the run."""
        return self._at(t, True)

    def floquet(self, period: float) -> Floquet:
        """Floquet multipliers over one period from the start of the run, which must be periodic with it.

        Laws of time must have this period, too. The run is interpolated: write its outputs densely.

        Parameters
        ----------
        period : float
            In s.
        """
        from scipy.integrate import solve_ivp

        t0 = self.points[0].state.t
        begin, end = self.run.at(t0), self._end(t0, period)
        self._require_smooth(t0, t0 + period)
        self._require_periodic(begin, end, period)
        n = len(self.points[0].states)
        scale = self.points[0]._units

        def rate(t: float, flat: Array) -> Array:
            A = self._at(t, False).matrices.A * scale / scale[:, None]
            return np.asarray((A @ flat.reshape(n, n)).ravel())

        found = solve_ivp(rate, (t0, t0 + period), np.eye(n).ravel(), "DOP853", rtol=TOLERANCE, atol=1e-2 * TOLERANCE)
        if not found.success:
            raise LoopdynError(f"the linear equations could not be followed over the period: {found.message}")
        last = found.y[:, -1].reshape(n, n)
        values = np.linalg.eigvals(last).astype(complex)
        order = np.lexsort((-values.imag, -values.real, -np.round(np.abs(values), 9)))
        return Floquet(float(period), values[order], last * scale[:, None] / scale)

    def _end(self, t0: float, period: float) -> State:
        if not 0.0 < period < np.inf:
            raise LoopdynError(f"the period is {period}. Give a positive time in s.")
        return self.run.at(t0 + period)

    def _require_smooth(self, begin: float, end: float) -> None:
        """Raise if the state jumps within a period: deviations jump, too."""
        for e in self.run.events:
            if begin <= e.t <= end and e.after is not e.state and e.after != e.state:
                raise LoopdynError(
                    f"the run of '{self.points[0].system.name}' jumps at t = {e.t:g} s ({e.name}), where deviations "
                    "jump, too. Take derivatives of the run by parameters of its start: ld.sensitivity(...)."
                )

    def _require_periodic(self, begin: State, end: State, period: float) -> None:
        system = self.points[0].system
        units = system.speed_units
        moved = apart(system, begin.q, end.q)
        faster = float(np.abs((end.v - begin.v) / units).max(initial=0.0))
        if max(moved, faster / max(1.0, float(np.abs(begin.v / units).max(initial=0.0)))) > PERIODIC:
            raise LoopdynError(
                f"the run of '{system.name}' is not periodic with {period:g} s: after it the pose is {moved:.2g} and "
                f"the speeds are {faster:.2g} off, in natural units. Start on the periodic motion, and give its period."
            )

    def __str__(self) -> str:
        first, last = self.points[0], self.points[-1]
        names, span = ", ".join(s.name for s in first.states), f"{first.state.t:g} to {last.state.t:g} s"
        name, count = first.system.name, len(self.points)
        return f"{name}, linearized at {count} outputs from {span}; {len(first.states)} states: {names}"
