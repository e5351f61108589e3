"""Result of :func:`loopdyn.linearize`: matrices, poles, modes and frequency responses, in declared units."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from loopdyn.errors import LoopdynError
from loopdyn.results.modes import Modes, modes_of
from loopdyn.results.poles import Poles, balancing, poles_of
from loopdyn.system.system import State, System

if TYPE_CHECKING:
    import xarray

Array = NDArray[np.float64]


class Signal(NamedTuple):
    """State, input or output: its name, declared unit, and the SI value of this unit."""

    name: str
    unit: str
    factor: float


class Matrices(NamedTuple):
    """A, B, C and D, SI."""

    A: Array
    B: Array
    C: Array
    D: Array


@dataclass(frozen=True, eq=False)
class Linearization:
    """Linear system ``dz/dt = f + A z + B u``, ``y = y0 + C z + D u`` for small changes; prints a summary.

    All labelled numbers are in declared units; time is in s, poles in rad/s.

    Attributes
    ----------
    system : System
    state : State
        State at which it holds.
    states, inputs, outputs : tuple of Signal
        Names and units. States are independent positions, then independent speeds (".speed"); positions of a joint with
        a quaternion are a rotation vector ("S.rx") and a position ("S.px") in axes of F.
    matrices : Matrices
        In SI units.
    notes : tuple of str
        Remarks on the result.
    contacts : dict
        Forces by which closed contacts press, declared units: the equations hold while none of them vanishes.
    """

    system: System = field(repr=False)
    state: State
    states: tuple[Signal, ...]
    inputs: tuple[Signal, ...]
    outputs: tuple[Signal, ...]
    matrices: Matrices = field(repr=False)
    notes: tuple[str, ...]
    contacts: dict[str, float]
    _rates: Array = field(repr=False)  # of the states, at the state itself; SI
    _values: Array = field(repr=False)  # of the outputs; SI
    _units: Array = field(repr=False)  # natural units of the states
    _motion: Array = field(repr=False)  # (nv, states): increments of the tree per state; SI
    _shown: Array = field(repr=False)  # the same, rotation vectors and positions in axes of F

    # ----------------------------------------------------------------------------------------------- matrices

    @cached_property
    def A(self) -> xarray.DataArray:
        """State matrix: rates of the states per state."""
        return self._labelled("A", "rate", "state", self.matrices.A)

    @cached_property
    def B(self) -> xarray.DataArray:
        """Input matrix: rates of the states per input."""
        return self._labelled("B", "rate", "input", self.matrices.B)

    @cached_property
    def C(self) -> xarray.DataArray:
        """Output matrix: outputs per state."""
        return self._labelled("C", "output", "state", self.matrices.C)

    @cached_property
    def D(self) -> xarray.DataArray:
        """Outputs per input, the states held."""
        return self._labelled("D", "output", "input", self.matrices.D)

    @cached_property
    def residual(self) -> xarray.DataArray:
        """Rates of the states at the state itself: zero at an equilibrium."""
        return self._vector("residual", "rate", self._rates)

    @cached_property
    def output_values(self) -> xarray.DataArray:
        """Outputs at the state itself."""
        return self._vector("output", "output", self._values)

    def _signals(self, dim: str) -> tuple[Signal, ...]:
        return {"rate": self.states, "state": self.states, "input": self.inputs, "output": self.outputs}[dim]

    def _factors(self, dim: str) -> Array:
        return np.array([s.factor for s in self._signals(dim)])

    def _coords(self, *dims: str) -> dict[str, Any]:
        coords: dict[str, Any] = {}
        for dim in dims:
            units = [_per_second(s.unit) if dim == "rate" else s.unit for s in self._signals(dim)]
            coords |= {dim: [s.name for s in self._signals(dim)], f"{dim}_units": (dim, np.array(units, str))}
        return coords

    def _labelled(self, name: str, above: str, below: str, values: Array) -> xarray.DataArray:
        from loopdyn.quantities.labels import dataset

        declared = values * self._factors(below) / self._factors(above)[:, None]
        found: xarray.DataArray = dataset({name: ((above, below), declared)}, self._coords(above, below))[name]
        return found.assign_attrs(units=f"{above}_units per {below}_units")

    def _vector(self, name: str, dim: str, values: Array) -> xarray.DataArray:
        from loopdyn.quantities.labels import dataset

        data = {f"{name} values": (dim, values / self._factors(dim))}
        return dataset(data, self._coords(dim))[f"{name} values"].assign_attrs(units=f"{dim}_units").rename(name)

    def _declared(self) -> Matrices:
        z, u, y = (self._factors(dim) for dim in ("state", "input", "output"))
        A, B, C, D = self.matrices
        return Matrices(A * z / z[:, None], B * u / z[:, None], C * z / y[:, None], D * u / y[:, None])

    # ------------------------------------------------------------------------------------------- poles, modes

    @property
    def _speeds(self) -> NDArray[np.bool_]:
        return np.array([s.name.endswith(".speed") for s in self.states], bool)

    @cached_property
    def _poles(self) -> Poles:
        return poles_of(self.matrices.A, self._units, self._speeds)

    def pole_change(self, pole: complex, dA: Array) -> complex:
        """Change of a simple pole s for a small change of A, SI: ``l dA r / (l r)`` with its eigenvectors.

        Examples
        --------
        >>> import loopdyn as ld
        >>> system = ld.library.pendulum().compile()
        >>> found = ld.linearize(system, ld.equilibrium(system))
        >>> abs(found.pole_change(found.poles()[0], np.eye(2)) - 1.0) < 1e-12
        True
        """
        A = self.matrices.A
        scale = balancing(A, self._units, self._speeds)
        U, _, Vh = np.linalg.svd(A * scale / scale[:, None] - pole * np.eye(len(A)))
        left, right = U[:, -1].conj(), Vh[-1].conj()
        return complex(left @ (dA * scale / scale[:, None]) @ right / (left @ right))

    def poles(self) -> NDArray[np.complex128]:
        """Poles in rad/s, as many as there are states: zero ones first, exactly zero, then by size.

        Examples
        --------
        >>> import loopdyn as ld
        >>> system = ld.library.pendulum().compile()
        >>> ld.linearize(system, ld.equilibrium(system)).poles().imag.round(6).tolist()
        [-3.132092, 3.132092]
        """
        found = self._poles
        return np.concatenate([np.zeros(sum(found.chains), complex), found.values])

    @property
    def zero_chains(self) -> tuple[int, ...]:
        """Lengths of the chains of zero poles: 2 for a cyclic or idle freedom, 1 for a position that has no speed."""
        return self._poles.chains

    def modes(self) -> Modes:
        """Modes: frequencies, damping, shapes; prints a table of what moves.

        Examples
        --------
        >>> import loopdyn as ld
        >>> system = ld.library.pendulum().compile()
        >>> modes = ld.linearize(system, ld.equilibrium(system)).modes()
        >>> round(float(modes.frequency[0]), 6), modes.moving(0)
        (0.498488, {'A': (1+0j)})
        """
        return modes_of(self.system, self.state, self._poles, self._motion, self._shown)

    # ---------------------------------------------------------------------------------------------- frequency

    def frequency_response(self, omega: ArrayLike) -> xarray.DataArray:
        """Outputs per input of the steady oscillation, complex, declared units.

        Parameters
        ----------
        omega : (n,) array
            Angular frequencies in rad/s.

        Examples
        --------
        >>> import loopdyn as ld
        >>> m = ld.library.pendulum()
        >>> motor = m.add_motor("motor", "A", torque=0.0)
        >>> system = m.compile()
        >>> there = ld.linearize(system, ld.equilibrium(system), inputs=["motor"])
        >>> bool(abs(there.frequency_response([0.0])[0, 0, 0] * 9.81 - 1) < 1e-9)
        True
        """
        from loopdyn.quantities.labels import dataset

        if not self.inputs:
            raise LoopdynError("there are no inputs to respond to. Name them: ld.linearize(..., inputs=[...]).")
        A, B, C, D = self._declared()
        w = np.atleast_1d(np.asarray(omega, float))
        found = np.empty((len(w), len(C), B.shape[1]), complex)
        for k, x in enumerate(w):
            try:
                found[k] = C @ np.linalg.solve(1j * x * np.eye(len(A)) - A, B) + D
            except np.linalg.LinAlgError:
                raise LoopdynError(
                    f"there is no steady oscillation at {x:g} rad/s, where a pole is. Choose another frequency."
                ) from None
        coords = {"omega": w, **self._coords("output", "input")}
        made: xarray.DataArray = dataset({"response": (("omega", "output", "input"), found)}, coords)["response"]
        made["omega"].attrs["units"] = "rad/s"
        return made.assign_attrs(units="output_units per input_units")

    def plot(self, omega: ArrayLike | None = None) -> Any:
        """Plot the poles; with frequencies in rad/s the frequency response, gain and phase of each output."""
        from loopdyn.output.plot.linear import plot_poles, plot_response

        return plot_poles(self) if omega is None else plot_response(self, self.frequency_response(omega))

    # ---------------------------------------------------------------------------------------------- handed on

    def to_scipy(self) -> Any:
        """Linear system of `scipy.signal`, declared units.

        Examples
        --------
        >>> import loopdyn as ld
        >>> ld.linearize(ld.library.pendulum().compile()).to_scipy().A.shape
        (2, 2)
        """
        from scipy.signal import StateSpace

        self._require_signals("scipy.signal")
        return StateSpace(*self._declared())

    def to_control(self) -> Any:
        """`control.StateSpace` of python-control (``pip install 'loopdyn[control]'``), declared units, named signals.

        Dots in names become underscores, as python-control wants them.
        """
        from loopdyn.output.control import state_space

        self._require_signals("python-control")
        names = [[s.name for s in signals] for signals in (self.states, self.inputs, self.outputs)]
        return state_space(self._declared(), names, self.system.name)

    def _require_signals(self, tool: str) -> None:
        if not self.outputs:
            raise LoopdynError(f"{tool} needs outputs. Name them: ld.linearize(..., outputs=[...]).")

    def save(self, path: str | PathLike[str]) -> None:
        """Write A, B, C, D in declared units with names and units to a `.npz` (NumPy) or `.mat` (MATLAB) file."""
        name = fspath(path)
        data: dict[str, Any] = dict(self._declared()._asdict())
        for kind in ("state", "input", "output"):
            data[f"{kind}s"] = np.array([s.name for s in self._signals(kind)], object if name.endswith(".mat") else str)
            data[f"{kind}_units"] = np.array(
                [s.unit for s in self._signals(kind)], object if name.endswith(".mat") else str
            )
        data["residual"] = self._rates / self._factors("state")
        if name.endswith(".npz"):
            np.savez(name, **data)
        elif name.endswith(".mat"):
            from scipy.io import savemat

            savemat(name, data)
        else:
            raise LoopdynError(f"'{name}' is neither .npz nor .mat. Name the file by the format you want.")

    def as_data(self) -> dict[str, Any]:
        """Plain data: matrices, names, units, poles and modes, in declared units."""
        m, modes = self._declared(), self.modes()
        return {
            "states": [s._asdict() for s in self.states],
            "inputs": [s._asdict() for s in self.inputs],
            "outputs": [s._asdict() for s in self.outputs],
            **{name: value.tolist() for name, value in m._asdict().items()},
            "residual": (self._rates / self._factors("state")).tolist(),
            "poles": [[p.real, p.imag] for p in self.poles().tolist()],
            "zero_chains": list(self.zero_chains),
            "modes": modes.as_data(),
            "notes": list(self.notes),
            "contacts": dict(self.contacts),
        }

    def __str__(self) -> str:
        names = f"{len(self.states)} states: {', '.join(s.name for s in self.states)}"
        lines = [f"{self.system.name}, linearized at t = {self.state.t:g} s; {names}"]
        for kind, signals in (("inputs", self.inputs), ("outputs", self.outputs)):
            if signals:
                lines.append(f"  {kind}: {', '.join(f'{s.name} [{s.unit}]' for s in signals)}")
        lines.append(str(self.modes()))
        return "\n".join([*lines, *(f"  {note}" for note in self.notes)])


def _per_second(unit: str) -> str:
    return f"{unit}/s" if not unit.endswith("/s") else f"{unit}^2"


__all__ = ["Linearization", "Matrices", "Signal"]
