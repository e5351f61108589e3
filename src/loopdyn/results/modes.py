"""Modes of a linearized mechanism: frequencies, damping, and what moves in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from loopdyn.analysis.assembly_speeds import speed_rows
from loopdyn.analysis.minimal_states import perturbed
from loopdyn.errors import LoopdynError
from loopdyn.results.poles import Poles
from loopdyn.system.system import State, System

if TYPE_CHECKING:
    import xarray

    from loopdyn.output.mode_animation import ModeFilm

Array = NDArray[np.float64]

MOVES = 0.05  # fraction of the largest motion of a mode from which a joint is named in the table
NAMED = 5  # joints named at most
ROUNDING = 1e-9  # a real part this small relative to the pole is printed as no damping


@dataclass(frozen=True, eq=False)
class Modes:
    """Modes, the slowest first; a pair of conjugate poles is one mode. Prints a table.

    Attributes
    ----------
    poles : (n,) array
        Pole of each mode in rad/s, that with a positive imaginary part.
    labels : tuple of str
        Joint coordinates whose motion is known, of tree and cut joints.
    shapes : (n, labels) array
        Motion of each coordinate, complex: the largest, in natural units, is one. SI.
    chains : tuple of int
        Lengths of the chains of zero poles, see :attr:`loopdyn.results.Linearization.zero_chains`.
    free : tuple of tuple of str
        Coordinates that move in each direction that nothing holds.
    """

    system: System = field(repr=False)
    state: State = field(repr=False)
    poles: NDArray[np.complex128]
    labels: tuple[str, ...] = field(repr=False)
    shapes: NDArray[np.complex128] = field(repr=False)
    chains: tuple[int, ...]
    free: tuple[tuple[str, ...], ...]
    _sizes: Array = field(repr=False)  # natural unit of each coordinate
    _motions: NDArray[np.complex128] = field(repr=False)  # (n, nv): increments of the tree

    def __len__(self) -> int:
        return len(self.poles)

    @property
    def omega(self) -> Array:
        """Size of each pole in rad/s: the natural frequency without damping."""
        return np.abs(self.poles)

    @property
    def frequency(self) -> Array:
        """Natural frequency without damping, Hz; zero for modes that do not oscillate."""
        return np.asarray(np.where(self.poles.imag != 0.0, self.omega / (2.0 * np.pi), 0.0))

    @property
    def damping(self) -> Array:
        """Damping ratio of each mode: -1 to 1, and 1 or -1 if it does not oscillate."""
        return np.asarray(-self.poles.real / self.omega)

    def moving(self, mode: int) -> dict[str, complex]:
        """Coordinates that take part in a mode, the largest motion first, in natural units (1 is the largest)."""
        shape = self._shape(mode) / self._sizes
        order = np.argsort(-np.abs(shape), kind="stable")
        return {self.labels[k]: complex(shape[k]) for k in order if abs(shape[k]) >= MOVES}

    def _shape(self, mode: int) -> NDArray[np.complex128]:
        if not 0 <= mode < len(self):
            raise LoopdynError(f"there is no mode {mode}: there are {len(self)}, numbered from 0.")
        return np.asarray(self.shapes[mode])

    def dataset(self) -> xarray.Dataset:
        """Labelled data, dimensions `mode` and `coordinate`; shapes in declared units."""
        from loopdyn.quantities.labels import dataset

        s = self.system
        of = [_dimension(s, label) for label in self.labels]
        units = np.array([s.units.symbol(d) for d in of], str)
        factors = np.array([s.units.factor(d) for d in of])
        data = {
            "pole": ("mode", self.poles, {"units": "rad/s"}),
            "frequency": ("mode", self.frequency, {"units": "Hz"}),
            "damping": ("mode", self.damping, {"units": "1"}),
            "shape": (("mode", "coordinate"), self.shapes / factors, {"units": "coordinate_units"}),
        }
        coords = {"coordinate": list(self.labels), "coordinate_units": ("coordinate", units)}
        return dataset(data, {"mode": np.arange(len(self)), **coords})

    def animate(self, mode: int, path: str | Path, *, size: float | None = None, **options: Any) -> Path:
        """Write one period of a mode as a page or film; loops stay closed.

        Parameters
        ----------
        mode : int
            Number of the mode, from 0.
        path : str or Path
            File that ends in ``.html``, ``.gif``, ``.mp4`` or ``.png``.
        size : float, optional
            Largest motion, in natural units (rad, or relative to the size of the mechanism); by default 0.2.
        **options
            As for :meth:`loopdyn.results.Run.animate`.
        """
        from loopdyn.output.mode_animation import animate_mode

        return animate_mode(self._film(mode, size), path, **options)

    def _film(self, mode: int, size: float | None = None) -> ModeFilm:
        """One period of a mode as a motion that pages show; arguments as of :meth:`animate`."""
        from loopdyn.output.mode_animation import mode_film

        self._shape(mode)
        return mode_film(self.system, self.state, self._motions[mode], size)

    def as_data(self) -> list[dict[str, Any]]:
        """Plain data of each mode."""
        rows = zip(self.poles, self.frequency, self.damping, strict=True)
        return [
            {
                "pole": [p.real, p.imag],
                "frequency": float(f),
                "damping": float(z),
                "moving": {label: [x.real, x.imag] for label, x in self.moving(n).items()},
            }
            for n, (p, f, z) in enumerate(rows)
        ]

    def __str__(self) -> str:
        lines = [f"  {'mode':>4}  {'pole in rad/s':<28}{'Hz':>10}{'damping':>10}  moves"]
        for n, (p, f, z) in enumerate(zip(self.poles, self.frequency, self.damping, strict=True)):
            real = 0.0 if abs(p.real) < ROUNDING * abs(p) else p.real
            pole = f"{real:.6g}" + (f" ± {p.imag:.6g}i" if p.imag else "")
            hertz = f"{f:.5g}" if p.imag else "-"
            lines.append(f"  {n:>4}  {pole:<28}{hertz:>10}{z + 0.0:>10.4f}  {self._said(n)}")
        for chain, names in zip(self.chains, self.free, strict=True):
            what = ", ".join(names[:NAMED]) + (", ..." if len(names) > NAMED else "")
            lines.append(f"  free  {chain} zero pole{'' if chain == 1 else 's'}: {what}")
        return "\n".join(lines)

    def _said(self, mode: int) -> str:
        parts = []
        for label, x in list(self.moving(mode).items())[:NAMED]:
            if abs(x.imag) < 1e-6:
                parts.append(f"{label} {x.real:.2g}")
            else:
                parts.append(f"{label} {abs(x):.2g}∠{np.degrees(np.angle(x)):.0f}°")
        return ", ".join(parts)


def _dimension(system: System, label: str) -> str:
    named = perturbed(system)
    if label in named.names:
        return named.dimensions[named.names.index(label)]
    return system.labels.speeds[label].dimension


def modes_of(system: System, state: State, poles: Poles, motion: Array, shown: Array) -> Modes:
    """Modes with their shapes; `motion` (nv, states): increments of the tree per state, `shown`: in axes of F."""
    named = perturbed(system)
    cut = [label for label, of in system.labels.speeds.items() if of.place < 0]
    rows = np.vstack([shown, speed_rows(system, state, cut) @ motion])
    labels = (*named.names, *cut)
    sizes = np.array([1.0 if _dimension(system, label) == "angle" else system.size for label in labels])
    kept = poles.values.imag >= 0.0
    motions, shapes = ((x @ poles.vectors[:, kept]).T for x in (motion, rows))
    largest = np.array([_largest(x / sizes) for x in shapes]).reshape(-1, 1)
    free = tuple(_movers(labels, np.abs(rows @ x) / sizes) for x in poles.still.T)
    return Modes(
        system, state, poles.values[kept], labels, shapes / largest, poles.chains, free, sizes, motions / largest
    )


def _largest(x: NDArray[np.complex128]) -> complex:
    """Component of the largest size; one for a mode of speeds alone, in which no position moves."""
    k = int(np.argmax(np.abs(x) > (1.0 - 1e-9) * np.abs(x).max(initial=0.0)))
    return complex(x[k]) or 1.0


def _movers(labels: Sequence[str], sizes: Array) -> tuple[str, ...]:
    most = sizes.max(initial=0.0)
    order = np.argsort(-sizes, kind="stable")
    return tuple(labels[k] for k in order if most > 0.0 and sizes[k] >= MOVES * most)
