"""Result of :func:`loopdyn.inverse_kinematics`: closed states at which bodies, points and joints have given values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from loopdyn.system.system import State, System
from loopdyn.tree.functions import body_motion, joint_coordinates

if TYPE_CHECKING:
    import xarray


@dataclass(frozen=True)
class InverseKinematics:
    """States that meet the targets; can be printed and iterated over.

    Attributes
    ----------
    system : System
    states : tuple of State
        One for a single target, one per target of a path, or all solutions. Each `note` says how it was found.
    status : str
        "complete", or "stopped": a path ends before a target that cannot be reached.
    message : str
        Reason why it stopped, and what to do.
    all : bool
        Whether `states` are known to be all solutions of one target.
    """

    system: System = field(repr=False)
    states: tuple[State, ...]
    status: str = "complete"
    message: str = ""
    all: bool = False

    @property
    def state(self) -> State:
        """First state: the solution of a single target."""
        return self.states[0]

    def __iter__(self) -> Iterator[State]:
        return iter(self.states)

    def __len__(self) -> int:
        return len(self.states)

    @cached_property
    def data(self) -> xarray.Dataset:
        """Joint coordinates `q` (sample, coordinate) of tree and cut joints, in declared units.

        Angles of cut joints are within half a turn unless the state knows their turns.
        """
        from loopdyn.quantities.labels import dataset

        s, labels = self.system, list(self.system.labels.coordinates)
        of = [s.labels.coordinates[label] for label in labels]
        units = np.array([s.units.factor(label.dimension) for label in of])
        q = np.empty((len(self), len(labels)))
        for n, state in enumerate(self.states):
            motion = body_motion(s, state)
            for k, label in enumerate(of):
                if label.place >= 0:
                    q[n, k] = state.q[label.place]
                else:
                    x = float(joint_coordinates(label.joint, motion)[label.k])
                    q[n, k] = s.with_turns(label.joint, label.k, x, state.q)
        symbols = [s.units.symbol(label.dimension) for label in of]
        times = ("sample", [x.t for x in self], {"units": "s"})
        coords = {"coordinate": labels, "coordinate_units": ("coordinate", symbols), "time": times}
        data = {"q": (("sample", "coordinate"), q / units, {"units": "coordinate_units"})}
        return dataset(data, coords, {"name": s.name, "status": self.status})

    def __str__(self) -> str:
        how = "all solutions" if self.all else "solution" if len(self) == 1 else "states"
        lines = [f"{self.system.name}: {len(self)} {how}, {self.status}"]
        lines += [f"  {self.message}"] if self.message else []
        return "\n".join(lines + [f"  {n}: {note}" for n, note in enumerate((s.note for s in self), 1) if note][:12])
