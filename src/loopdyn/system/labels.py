"""`system.labels`: the table of all names by which numbers of a system are given and read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from loopdyn.errors import LoopdynError
from loopdyn.joints.base import COMPONENTS
from loopdyn.quantities.units import Units
from loopdyn.quantities.wording import element_of, unknown

if TYPE_CHECKING:
    from loopdyn.system.system import JointData

SPEED, ACCELERATION, LOAD, POWER = ".speed", ".acceleration", ".load", ".power"
GAP, FORCE, IMPULSE = "gap", "contact force", "contact impulse"  # kinds of the labels of contacts
FORCE_OF = {"angle": "torque", "length": "force"}  # dimension of the load on a coordinate or constraint row
COMPONENT_DIMENSIONS = ("torque",) * 3 + ("force",) * 3  # of reactions: mx, my, mz, fx, fy, fz


class Label(NamedTuple):
    """Entry of :class:`Labels`: a number that a state, run or analysis has under a name."""

    name: str
    kind: str  # "coordinate", "speed", "acceleration", "reaction", "load", "constraint load", "power", "body", GAP ...
    element: str  # name of the joint, force, constraint or body
    # in q or v (-1: of a cut joint, measured), among the components of a reaction, among forces, rows or bodies
    index: int  # type: ignore[assignment]  # hides a method of tuples that nobody calls
    dimension: str  # of the number, for a speed or acceleration that of its integral; empty for a body
    unit: str  # declared unit of the number
    factor: float  # SI value of this unit


def row_labels(name: str, rows: Sequence[str]) -> list[str]:
    """Labels of the rows of a constraint: its name for a single row, name.row for several.

    Examples
    --------
    >>> row_labels("rod", ["distance"]), row_labels("pin", ["x", "y"])
    (['rod'], ['pin.x', 'pin.y'])
    """
    return [name] if len(rows) == 1 else [f"{name}.{row}" for row in rows]


class JointLabel(NamedTuple):
    """A joint coordinate or speed."""

    joint: JointData
    k: int  # index among the coordinates or speeds of its joint
    dimension: str  # "angle", "length" or, for a component of a quaternion, "number"; for a speed that of its integral
    place: int  # index in q or v; -1 if a state does not have it, as for cut joints
    scalar: bool  # whether each coordinate of the joint has its own speed


class JointLabels:
    """Coordinates and speeds of joints by label, in the order of the joints.

    Parameters
    ----------
    joints : iterable of JointData
    counted : sequence of str
        Angles of cut joints that are the last coordinates.
    nq : int
        Number of coordinates, these included.
    """

    def __init__(self, joints: Iterable[JointData], counted: Sequence[str] = (), nq: int = 0):
        self.coordinates: dict[str, JointLabel] = {}
        self.speeds: dict[str, JointLabel] = {}
        counted_places = {label: nq - len(counted) + n for n, label in enumerate(counted)}
        for j in joints:
            spec, in_tree = j.spec, j.in_tree
            scalar = spec.is_scalar()
            q, v = spec.labels(j.name)
            for k, label in enumerate(q):
                place = j.q0 + k if in_tree else counted_places.get(label, -1)
                self.coordinates[label] = JointLabel(j, k, spec.dimensions[k], place, scalar)
            for k, label in enumerate(v):
                self.speeds[label] = JointLabel(j, k, spec.speed_dimensions[k], j.v0 + k if in_tree else -1, scalar)

    @cached_property
    def scalars(self) -> dict[str, JointLabel]:
        """Coordinates that are one number each, with a speed of the same label."""
        return {label: found for label, found in self.coordinates.items() if found.scalar}


class Named(NamedTuple):
    """Elements of a system that have loads or poses, by index."""

    units: Units
    reactions: Sequence[str]  # joints
    forces: Mapping[str, str]  # names, and the dimensions of their loads
    rows: Mapping[str, str]  # rows of constraints and drivers, and their dimensions
    bodies: Sequence[str]
    contacts: Callable[[], Mapping[str, str]]  # names, and the dimensions of their gaps


class Labels(JointLabels, Mapping[str, Label]):
    """Table of all labels of a system: ``labels["A.speed"]`` tells kind, element, index, dimension and declared unit.

    ============================ =============================================================================
    ``"A"``, ``"C.slide"``       coordinate of a joint with one, or with several freedoms
    ``"A.speed"``, ``"S.wx"``    its speed; that of a joint with a quaternion has a name of its own
    ``"A.acceleration"``         its acceleration
    ``"C.fx"``, ``"C.mz"``       component of the reaction on the child of a joint, in axes of F
    ``"motor.load"``, ``".power"``  load and power of a force; ``"gear.load"``, ``"gear.row.load"`` of a constraint
    ``"stop.gap"``, ``".force"``    smallest gap of a contact, sum of the forces of its sides
    ``"stop.impulse"``           sum of its impulses until then
    ``"coupler"``                body
    ============================ =============================================================================

    Bodies, joints and forces may have the same name: a coordinate is meant where a number is asked for.

    Examples
    --------
    >>> import loopdyn as ld
    >>> labels = ld.library.four_bar().compile().labels
    >>> labels["A"].unit, labels["A.speed"].unit, labels["C.mx"].unit, labels["coupler"].kind
    ('rad', 'rad/s', 'N*m', 'body')
    """

    def __init__(self, joints: Iterable[JointData], counted: Sequence[str], nq: int, named: Named):
        super().__init__(joints, counted, nq)
        self._named = named

    def factor(self, label: str, speed: bool = False) -> float:
        """SI value of the declared unit of a joint coordinate or speed."""
        return self._named.units.factor((self.speeds if speed else self.coordinates)[label].dimension)

    @cached_property
    def _all(self) -> dict[str, tuple[Label, ...]]:
        found: dict[str, tuple[Label, ...]] = {}
        for entry in self._entries():
            found[entry.name] = (*found.get(entry.name, ()), entry)
        return found

    def _entries(self) -> Iterator[Label]:
        units = self._named.units

        def entry(name: str, kind: str, index: int, dimension: str, rate: int = 0) -> Label:
            unit, factor = units.symbol(dimension, rate), units.factor(dimension)
            return Label(name, kind, element_of(name), index, dimension, unit, factor)

        for label, of in self.coordinates.items():
            yield entry(label, "coordinate", of.place, of.dimension)
        for label, of in self.speeds.items():
            own = label not in self.coordinates
            yield entry(label if own else label + SPEED, "speed", of.place, of.dimension, 1)
            yield entry(label + ACCELERATION, "acceleration", of.place, of.dimension, 2)
        for joint in self._named.reactions:
            for k, component in enumerate(COMPONENTS):
                yield entry(f"{joint}.{component}", "reaction", k, COMPONENT_DIMENSIONS[k])
        for n, (force, dimension) in enumerate(self._named.forces.items()):
            yield entry(force + LOAD, "load", n, dimension)
            yield Label(force + POWER, "power", force, n, "power", "W", 1.0)
        for n, (row, dimension) in enumerate(self._named.rows.items()):
            yield entry(row + LOAD, "constraint load", n, FORCE_OF[dimension])
        for n, (name, dimension) in enumerate(self._named.contacts().items()):
            load = FORCE_OF[dimension]
            yield entry(f"{name}.gap", GAP, n, dimension)
            yield entry(f"{name}.force", FORCE, n, load)
            yield Label(f"{name}.impulse", IMPULSE, name, n, load, f"{units.symbol(load)}*s", units.factor(load))
        for n, body in enumerate(self._named.bodies):
            yield Label(body, "body", body, n, "", "", 1.0)

    def __getitem__(self, name: str) -> Label:
        return self.find(name, "label")

    def find(self, name: str, who: str) -> Label:
        """Entry of a label; `who` asks for it, for the message if there is none or more than one."""
        found = self._all.get(name)
        if found is None:
            raise unknown(who, "label", [name], self._all)
        if len(found) > 1 and found[1].kind != "body":
            kinds = " and ".join(f"a {entry.kind}" for entry in found)
            raise LoopdynError(f"{who}: '{name}' is {kinds}. Rename one of the elements '{found[0].element}'.")
        return found[0]

    def body(self, name: str, who: str) -> int:
        """Row of a body among all bodies of the system."""
        if name not in self._named.bodies:
            raise unknown(who, "body", [name], self._named.bodies)
        return self._named.bodies.index(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    def __repr__(self) -> str:
        rows = [(x.name, x.kind, x.unit) for entries in self._all.values() for x in entries]
        width = max((len(name) for name, _, _ in rows), default=0)
        return "\n".join(f"{name:<{width}}  {kind:<15}  {unit}".rstrip() for name, kind, unit in rows)
