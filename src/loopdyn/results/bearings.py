"""Loads of bearings over a motion, for a report: in world axes and in axes of the bodies, peaks, means, RMS.

For each joint: force and moment on its declared child at the origin of M. Loads of motors, springs and friction on the
joint's own freedom are not included (docs/notation.md). Statically indeterminate components are marked, and so are
sums that contain them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from loopdyn.errors import LoopdynError
from loopdyn.joints.base import COMPONENTS
from loopdyn.quantities.wording import unknown
from loopdyn.system.labels import COMPONENT_DIMENSIONS
from loopdyn.system.system import State, System
from loopdyn.tree.functions import body_motion

if TYPE_CHECKING:
    import pandas
    import xarray

Array = NDArray[np.float64]
Marks = NDArray[np.bool_]

FRAMES = ("world", "parent", "child")  # axes in which loads are given: of the world, of the joint's two bodies
MIXED = 1e-9  # fraction of a component in another axis below which it is rounding


@dataclass(frozen=True, eq=False)
class Bearings:
    """Loads of all bearings over a motion; prints as a table.

    Attributes
    ----------
    system : System
    t : (n,) array
    joints : tuple of str
    wrench : (n, joints, 6) array
        Moment and force on the child at M, in axes of F, SI. NaN where forces are unbounded.
    unique : (joints, 6) array of bool
        False for statically indeterminate components.
    axes : (n, joints, 3, 3, 3) array
        Rotation from components in F to components in each of :data:`FRAMES`.
    """

    system: System = field(repr=False)
    t: Array = field(repr=False)
    joints: tuple[str, ...]
    wrench: Array = field(repr=False)
    unique: Marks = field(repr=False)
    axes: Array = field(repr=False)

    @classmethod
    def of(cls, system: System, t: Array, q: Array, joints: Sequence[str], wrench: Array, unique: Marks) -> Bearings:
        """Bearing loads from reactions along a motion."""
        axes = np.zeros((len(t), len(joints), len(FRAMES), 3, 3))
        still = np.zeros(system.nv)
        for k in range(len(t)):
            R = body_motion(system, State(float(t[k]), q[k], still)).rotation
            for n, name in enumerate(joints):
                j = system.joints[name]
                F = R[j.parent] @ j.F[1]
                axes[k, n] = F, j.F[1], R[j.child].T @ F
        return cls(system, t, tuple(joints), wrench, unique, axes)

    def index(self, joint: str) -> int:
        """Index of a joint."""
        if joint not in self.joints:
            raise unknown("bearing", "joint", [joint], self.joints)
        return self.joints.index(joint)

    def load(self, joint: str, axes: str = "world") -> tuple[Array, Array, Marks]:
        """Force and moment (n, 3) in declared units, and which of fx, fy, fz, mx, my, mz are determinate.

        Parameters
        ----------
        joint : str
        axes : {"world", "parent", "child"}
            World axes, or the body axes of the joint's parent or child.
        """
        if axes not in FRAMES:
            raise LoopdynError(f"there are no axes '{axes}' of a bearing. Use one of: {', '.join(FRAMES)}.")
        n = self.index(joint)
        R = self.axes[:, n, FRAMES.index(axes)]
        force, moment = (np.einsum("tij,tj->ti", R, self.wrench[:, n, part]) for part in (slice(3, 6), slice(0, 3)))
        mixed = np.abs(R).max(axis=0, initial=0.0) > MIXED  # (3, 3): which components of F enter
        known = [not np.any(mixed[i] & ~self.unique[n, part]) for part in (slice(3, 6), slice(0, 3)) for i in range(3)]
        units = self.system.units
        return force / units.factor("force"), moment / units.factor("torque"), np.array(known)

    @cached_property
    def data(self) -> xarray.Dataset:
        """Forces and moments of all joints in all axes, with labels and units."""
        from loopdyn.quantities.labels import dataset

        shape = (len(self.t), len(self.joints), len(FRAMES), 3)
        force, moment = np.empty(shape), np.empty(shape)
        known = np.empty((len(self.joints), len(FRAMES), 6), bool)
        for n, joint in enumerate(self.joints):
            for f, axes in enumerate(FRAMES):
                force[:, n, f], moment[:, n, f], known[n, f] = self.load(joint, axes)
        dims = ("time", "joint", "axes", "xyz")
        return dataset(
            {
                "force": (dims, force, {"units": self.system.units.force, "on": "child at M"}),
                "moment": (dims, moment, {"units": self.system.units.torque, "on": "child at M"}),
                "force_determined": (dims[1:], known[..., :3]),
                "moment_determined": (dims[1:], known[..., 3:]),
            },
            {
                "time": ("time", self.t, {"units": "s"}),
                "joint": np.array(self.joints, str),
                "axes": list(FRAMES),
                "xyz": ["x", "y", "z"],
            },
        )

    def parts(self, joint: str) -> dict[str, tuple[str, Array, bool]]:
        """Loads that a bearing is selected by: declared unit, values (n,), whether they are determinate, by name.

        Radial and axial force and tilting and axial moment for bearings with an axis, guiding force of a slide, normal
        force of a plane, force and moment for others; single components in axes of F if only some of them are
        determinate.
        """
        units = self.system.units
        return {name: (units.symbol(d), x / units.factor(d), known) for name, (d, x, known) in self.si(joint).items()}

    def si(self, joint: str) -> dict[str, tuple[str, Array, bool]]:
        """Loads of :meth:`parts` in SI units, with "force" or "torque" in place of a unit."""
        n = self.index(joint)
        w, known = self.wrench[:, n], self.unique[n]
        found = {}
        for name, group in self.system.joints[joint].spec.bearing_loads.items():
            alike = len(set(known[list(group)].tolist())) == 1
            # a sum with indeterminate components is useless: the components are given instead
            for label, columns in {name: group}.items() if alike else [(COMPONENTS[k], (k,)) for k in group]:
                values, dimension = np.linalg.norm(w[:, columns], axis=1), COMPONENT_DIMENSIONS[columns[0]]
                found[label] = dimension, values, bool(known[list(columns)].all())
        return found

    def table(self) -> pandas.DataFrame:
        """Peak with its time, mean and RMS over time of each part of each bearing's load, in declared units.

        Parts that are zero throughout are left out; indeterminate ones have a question mark and the values of the
        stated distribution. Times of unbounded forces are excluded.
        """
        import pandas as pd

        rows: dict[str, tuple[Any, ...]] = {}
        units = self.system.units
        size = float(np.nanmax(np.abs(self.wrench), initial=0.0)) if self.wrench.size else 0.0
        for joint in self.joints:
            for name, (dimension, every, known) in self.si(joint).items():
                bounded = np.isfinite(every)
                values, t = every[bounded], self.t[bounded]
                if not len(values) or (known and values.max() <= ROUNDING * size):
                    continue
                unit, values = units.symbol(dimension), values / units.factor(dimension)
                k = int(np.argmax(values))
                label = f"{joint} {name}" + ("" if known else " ?")
                rows[label] = (unit, values[k], t[k], float(over_time(values, t)), rms(values, t), known)
        heads = ["unit", "peak", "t_peak", "mean", "rms", "determined"]
        return pd.DataFrame.from_dict(rows, orient="index", columns=heads)

    def __str__(self) -> str:
        every = self.table()
        table = every[every["determined"] | (every["peak"] > 0.0)]
        open_ = [str(name).removesuffix(" ?") for name in every.index if name not in table.index]
        width = max([len(str(name)) for name in table.index] + [10]) + 2
        lines = [f"{self.system.name}: loads of bearings", f"{'':<{width}}{'peak':>12}{'at t in s':>12}{'mean':>12}"
                 f"{'RMS':>12}  unit"]  # fmt: skip
        for name, (unit, peak, t, mean, rms, _) in table.iterrows():
            lines.append(f"{name!s:<{width}}{peak:>12.5g}{t:>12.5g}{mean:>12.5g}{rms:>12.5g}  {unit}")
        if not table["determined"].all():
            lines.append("?: statically indeterminate; values of one distribution, see ld.reactions")
        if open_:
            lines.append(f"statically indeterminate, and zero in this distribution: {', '.join(open_)}")
        unbounded = int(np.count_nonzero(~np.isfinite(self.wrench).all(axis=(1, 2))))
        if unbounded:
            lines.append(f"left out: {unbounded} times in singular passages, where forces may be unbounded")
        return "\n".join(lines)


# Fraction of the largest load of all bearings below which a load is rounding.
ROUNDING = 1e-10


def over_time(values: Array, t: Array) -> Any:
    """Mean over time by the trapezoidal rule, of each column; mean of the values if times do not ascend."""
    if len(t) < 2 or np.any(np.diff(t) < 0.0) or t[-1] <= t[0]:
        return np.mean(values, axis=0)
    return np.trapezoid(values, t, axis=0) / (t[-1] - t[0])


def rms(values: Array, t: Array) -> float:
    """Root mean square over time.

    Examples
    --------
    >>> round(rms(np.array([0.0, 1.0, 1.0]), np.array([0.0, 1.0, 4.0])) ** 2, 6)
    0.875
    """
    return float(np.sqrt(over_time(values**2, t)))
