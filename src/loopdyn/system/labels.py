"""`system.labels`: meaning of the labels of joint coordinates and speeds, of tree and cut joints."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from loopdyn.system.system import JointData

UNITS = {"angle": "rad", "length": "m", "number": "1"}  # SI; the last for components of a quaternion


class Label(NamedTuple):
    """A joint coordinate or speed."""

    joint: JointData
    k: int  # index among the coordinates or speeds of its joint
    dimension: str  # "angle", "length" or, for a component of a quaternion, "number"; for a speed that of its integral
    place: int  # index in q or v; -1 if a state does not have it, as for cut joints
    scalar: bool  # whether each coordinate of the joint has its own speed

    @property
    def unit(self) -> str:
        """SI unit of a coordinate; for a speed, its unit times s."""
        return UNITS[self.dimension]

    @property
    def load_unit(self) -> str:
        """SI unit of a load on a speed."""
        return "N m" if self.dimension == "angle" else "N"


class Labels:
    """Coordinates and speeds of joints by label, in the order of the joints.

    Parameters
    ----------
    joints : iterable of JointData
    counted : sequence of str
        Angles of cut joints that are the last coordinates.
    nq : int
        Number of coordinates, these included.

    Examples
    --------
    >>> import loopdyn as ld
    >>> labels = ld.library.four_bar().compile().labels
    >>> labels.coordinates["A"].unit, labels.speeds["A"].load_unit
    ('rad', 'N m')
    """

    def __init__(self, joints: Iterable[JointData], counted: Sequence[str] = (), nq: int = 0):
        self.coordinates: dict[str, Label] = {}
        self.speeds: dict[str, Label] = {}
        counted_places = {label: nq - len(counted) + n for n, label in enumerate(counted)}
        for j in joints:
            spec, in_tree = j.spec, j.in_tree
            scalar = spec.is_scalar()
            q, v = spec.labels(j.name)
            for k, label in enumerate(q):
                place = j.q0 + k if in_tree else counted_places.get(label, -1)
                self.coordinates[label] = Label(j, k, spec.dimensions[k], place, scalar)
            for k, label in enumerate(v):
                self.speeds[label] = Label(j, k, spec.speed_dimensions[k], j.v0 + k if in_tree else -1, scalar)

    @cached_property
    def scalars(self) -> dict[str, Label]:
        """Coordinates that are one number each, with a speed of the same label."""
        return {label: found for label, found in self.coordinates.items() if found.scalar}
