"""`PathResult`: the face that all results along a path share, of runs, kinematic analyses and inverse dynamics."""

from __future__ import annotations

import html
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from loopdyn.engine.cached import cached_property
from loopdyn.errors import LoopdynError
from loopdyn.files import write
from loopdyn.quantities.wording import unknown
from loopdyn.results.measures import Measured, labelled
from loopdyn.results.measures import Path as MeasuredPath
from loopdyn.system.labels import ACCELERATION, SPEED, Label
from loopdyn.system.system import State, System, point_on
from loopdyn.tree.functions import Motion, body_motion

if TYPE_CHECKING:
    import xarray

    from loopdyn.results.bearings import Bearings

Array = NDArray[np.float64]

FULL_TURN = 2.0 * np.pi
RATES = ("coordinate", "speed", "acceleration")
BODY_MOTION = {"position": ("length", 0), "velocity": ("length", 1), "acceleration": ("length", 2),
               "angular_velocity": ("angle", 1), "angular_acceleration": ("angle", 2)}  # fmt: skip


def per(unit: str, by: str, rate: int) -> str:
    """Unit of a derivative of this order by a quantity in the unit `by`.

    Examples
    --------
    >>> per("mm", "deg", 1), per("deg", "deg", 1), per("deg", "deg", 2), per("mm", "deg", 2)
    ('mm/deg', '1', '1/deg', 'mm/deg^2')
    """
    if unit == by:
        return "1" if rate == 1 else f"1/{by}"
    return f"{unit}/{by}" if rate == 1 else f"{unit}/{by}^2"


class Samples(Protocol):
    """Sampled motion, SI: row k of q, v, a at time t[k]; a :class:`Run` has one as ``run.path``."""

    @property
    def t(self) -> Array:
        """Times (n,)."""

    @property
    def q(self) -> Array:
        """Coordinates (n, nq)."""

    @property
    def v(self) -> Array:
        """Speeds (n, nv)."""

    @property
    def a(self) -> Array:
        """Accelerations (n, nv)."""


@dataclass(frozen=True)
class Sampled:
    """Sampled motion."""

    t: Array
    q: Array
    v: Array
    a: Array


class PathResult:
    """Result along a path: ``[label]``, :meth:`point`, :meth:`body` in the declared units of the mechanism.

    A class of results has the samples of its motion, its :attr:`data`, and the loads that it knows.
    """

    system: System
    data: xarray.Dataset  # all results, with labels and declared units
    along = "time"  # dimension of the path

    @property
    def samples(self) -> Samples:
        """Motion in SI units."""
        raise NotImplementedError

    def state(self, k: int) -> State:
        """State of sample k."""
        raise NotImplementedError

    def bearings(self) -> Bearings:
        """Loads of all bearings in world and body axes, with peaks, means and RMS; prints as a table."""
        raise self._without_loads("bearing loads")

    def _loads(self, label: Label) -> Array:
        """Values (n,) in SI units of a reaction component, load or power."""
        raise self._without_loads(f"'{label.name}'")

    def _remarks(self, label: Label) -> dict[str, bool]:
        """Attributes of the values of a label."""
        return {}

    def _without_loads(self, what: str) -> LoopdynError:
        return LoopdynError(
            f"{type(self).__name__} of '{self.system.name}' has no {what}. Loads are in ld.simulate(...), and in "
            "ld.inverse_dynamics(...) for a given motion."
        )

    # ------------------------------------------------------------------------------------------ by label

    def __getitem__(self, label: str) -> xarray.DataArray:
        """Values of a label of ``system.labels``, or of a measure, along the path, in its declared unit."""
        import xarray as xr

        if label in self.system.measures:
            return self._measure(label)
        if label not in self.system.labels:
            raise unknown(type(self).__name__, "label", [label], [*self.system.labels, *self.system.measures])
        found = self.system.labels.find(label, type(self).__name__)
        if found.kind == "body":
            raise LoopdynError(f"'{label}' is a body, which has no single number. Use .body('{label}') or .point(...).")
        if found.kind in RATES:
            values, rate = self._motion_of(found), RATES.index(found.kind)
            unit, factor = self._per(found.dimension, rate)
        else:
            values, unit, factor = self._loads(found), found.unit, found.factor
        attributes = {"units": unit, **self._remarks(found)}
        return xr.DataArray(values / factor, dims=self.along, coords=self._coords(), name=label, attrs=attributes)

    @cached_property
    def _measured(self) -> Measured:
        """Measures along the path; here of motions alone."""
        p = self.samples
        return Measured(self.system, MeasuredPath(p.t, p.q, p.v, p.a, p.t), motions=self._motions)

    def _measure(self, name: str) -> xarray.DataArray:
        """Measure of the model along the path, in its unit."""
        unit = self.system.measures[name].unit
        return labelled(name, self._measured.values(name), unit, self.along, self._coords())

    def _motion_of(self, found: Label) -> Array:
        """Values (n,) in SI units of a coordinate, speed or acceleration."""
        rate = RATES.index(found.kind)
        if found.index >= 0:
            values: Array = getattr(self.samples, "qva"[rate])[:, found.index]
            return values
        return self._of_cut(found.name.removesuffix(SPEED).removesuffix(ACCELERATION), rate)

    def _of_cut(self, label: str, rate: int) -> Array:
        """Values (n,) in SI units of a coordinate of a cut joint or, by `rate`, of its speed or acceleration."""
        known = self.system.labels.speeds if rate else self.system.labels.coordinates
        return self._measured.of_cut(RATES[rate], label, known[label])

    def _per(self, dimension: str, rate: int) -> tuple[str, float]:
        """Declared unit of a quantity or its derivatives along the path, and its SI value."""
        return self.system.units.symbol(dimension, rate), self.system.units.factor(dimension)

    def _coords(self) -> dict[str, Any]:
        return {"time": ("time", self.samples.t, {"units": "s"})}

    # ------------------------------------------------------------------------------------ bodies and points

    @cached_property
    def _motions(self) -> Sequence[Motion]:
        """Motion of all bodies at each sample, SI."""
        p = self.samples
        return [body_motion(self.system, State(float(p.t[k]), p.q[k], p.v[k]), p.a[k]) for k in range(len(p.t))]

    def poses(self) -> tuple[Array, Array]:
        """Positions (n, bodies, 3) in m and rotations (n, bodies, 3, 3) of the frames of all bodies, bases included."""
        shape = (-1, len(self.system.bodies), 3)
        position = np.array([m.position for m in self._motions]).reshape(shape)
        return position, np.array([m.rotation for m in self._motions]).reshape(*shape, 3)

    def velocities(self) -> tuple[Array, Array]:
        """Velocities in m/s and angular velocities in rad/s, each (n, bodies, 3), of the frames of all bodies.

        In a kinematic analysis over an input they are derivatives by the input in SI units.
        """
        shape = (-1, len(self.system.bodies), 3)
        return (
            np.array([m.velocity for m in self._motions]).reshape(shape),
            np.array([m.angular_velocity for m in self._motions]).reshape(shape),
        )

    def body(self, name: str) -> xarray.Dataset:
        """Pose, velocity and acceleration of a body's frame along the path, in world axes.

        Examples
        --------
        >>> import loopdyn as ld
        >>> run = ld.simulate(ld.library.pendulum().compile(), t_span=(0, 1), progress=False)
        >>> run.body("bob")["angular_velocity"].dims
        ('time', 'xyz')
        """
        row = self.system.labels.body(name, type(self).__name__)
        parts = {part: np.array([getattr(m, part)[row] for m in self._motions]) for part in BODY_MOTION}
        found = self._vectors(parts, {"body": name})
        turned = np.array([m.rotation[row] for m in self._motions]).reshape(-1, 3, 3)
        found["rotation"] = ((self.along, "xyz", "axis"), turned, {"units": "1", "columns": "axes of the body's frame"})
        return found.assign_coords(axis=["x", "y", "z"])

    def point(self, body: str, at: ArrayLike) -> xarray.Dataset:
        """Path of a point of a body (a coupler curve), with its velocity and acceleration.

        Parameters
        ----------
        body : str
        at : (3,)
            The point in world coordinates at the reference pose, in the declared unit of length.

        Examples
        --------
        >>> import loopdyn as ld
        >>> turn = ld.drive(ld.library.four_bar().compile(), "A", (0, 6.2, 63))
        >>> turn.point("coupler", at=(0.5, 0.5, 0))["position"].dims
        ('sample', 'xyz')
        """
        own, row = point_on(self.system, body, at), self.system.bodies.index(body)
        parts: dict[str, list[Array]] = {"position": [], "velocity": [], "acceleration": []}
        for m in self._motions:
            arm, w = m.rotation[row] @ own, m.angular_velocity[row]
            parts["position"].append(m.position[row] + arm)
            parts["velocity"].append(m.velocity[row] + np.cross(w, arm))
            turning = np.cross(m.angular_acceleration[row], arm) + np.cross(w, np.cross(w, arm))
            parts["acceleration"].append(m.acceleration[row] + turning)
        return self._vectors(parts, {"body": body, "at": np.asarray(at, float).tolist()})

    def _vectors(self, parts: dict[str, Any], attributes: dict[str, Any]) -> xarray.Dataset:
        """Dataset of vectors along the path, given in SI units."""
        from loopdyn.quantities.labels import dataset

        data = {}
        for name, values in parts.items():
            unit, factor = self._per(*BODY_MOTION[name])
            data[name] = ((self.along, "xyz"), np.reshape(values, (-1, 3)) / factor, {"units": unit})
        return dataset(data, {**self._coords(), "xyz": ["x", "y", "z"]}, attributes)

    # ---------------------------------------------------------------------------------------------- output

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write :attr:`data` to a NetCDF file, which :func:`xarray.open_dataset` reads."""
        file = Path(path)
        if file.suffix not in (".nc", ".h5"):
            raise LoopdynError(f"results are saved as NetCDF, not as '{file.name}'. The name must end in .nc.")
        write(file, bytes(self.data.to_netcdf(engine="h5netcdf")))

    def _repr_html_(self) -> str:
        """Summary for Jupyter."""
        return f"<pre>{html.escape(str(self))}</pre>"
