"""`State`: time, coordinates and speeds; a state of a system has labels and units."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from loopdyn.errors import LoopdynError, ModelError, Problem

if TYPE_CHECKING:
    from loopdyn.system.system import System

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Tolerated:
    """Redundant constraint rows that are left open within a tolerance, since dimensions are rounded.

    Attributes
    ----------
    rows : tuple of str
        Their labels. All other rows are satisfied exactly.
    angle, length : float
        Tolerance in SI units, rad and m, whatever units the mechanism declares: with these numbers a state can be used
        with copies of its mechanism in other units. ``ld.assemble(tolerance=)`` and messages are in declared units.
    """

    rows: tuple[str, ...]
    angle: float
    length: float

    def of(self, system: System) -> Array:
        """Tolerance of each row of a system: zero for rows that are satisfied exactly."""
        allowed = {"angle": self.angle, "length": self.length}
        pairs = zip(system.constraint_rows, system.row_dimensions, strict=True)
        return np.array([allowed[d] if row in self.rows else 0.0 for row, d in pairs])

    def __str__(self) -> str:
        return f"{', '.join(self.rows)} left open within {self.angle:.3g} rad, {self.length:.3g} m"


@dataclass(frozen=True, eq=False)
class State:
    """Time, coordinates and speeds; ``state["A"]`` and ``state["A.speed"]`` are numbers in the declared units.

    States are equal if t, q and v are.

    Attributes
    ----------
    t : float
        Time in s.
    q : (nq,) array
        Coordinates of the tree joints, SI; then the counted angles of cut joints (``system.counted``), rad.
    v : (nv,) array
        Speeds of the tree joints, SI.
    note : str
        How the state was found, if that matters.
    tolerated : Tolerated or None
        Constraint rows that the state leaves open, see :func:`loopdyn.assemble`; analyses and runs that begin at the
        state leave them open, too.
    system : System or None
        System whose state it is, for labels and units; a state made by hand has none.

    Examples
    --------
    >>> import loopdyn as ld
    >>> state = ld.assemble(ld.library.four_bar().compile(), {"A": 0.3}, {"A": 2.0})
    >>> round(state["A"], 9), round(state["A.speed"], 9)
    (0.3, 2.0)
    """

    t: float
    q: Array
    v: Array
    note: str = ""
    tolerated: Tolerated | None = None
    system: System | None = field(default=None, repr=False)

    def __getitem__(self, label: str) -> float:
        """Coordinate or speed of a tree or cut joint, in the declared units."""
        if self.system is None:
            raise LoopdynError(
                f"this state was made without a system, so '{label}' has no meaning. Make it with system.state(...), "
                "or use its arrays q and v, SI."
            )
        found = self.system.labels.find(label, "state")
        if found.kind not in ("coordinate", "speed"):
            article = "an" if found.kind[0] in "ae" else "a"
            message = f"'{label}' is {article} {found.kind}, but a state has coordinates and speeds only"
            raise ModelError([Problem("state", message, "Loads are in ld.reactions, motions in ld.kinematics.")])
        if found.index >= 0:
            return float((self.q if found.kind == "coordinate" else self.v)[found.index]) / found.factor
        from loopdyn.tree.joint_readings import measured

        return measured(self.system, self, label.removesuffix(".speed"))[found.kind == "speed"] / found.factor

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, State):
            return NotImplemented
        return self.t == other.t and np.array_equal(self.q, other.q) and np.array_equal(self.v, other.v)

    __hash__ = None  # type: ignore[assignment]  # its arrays can be changed

    def __deepcopy__(self, memo: dict[int, Any]) -> State:
        """Copy with arrays of its own, of the same system."""
        copies = {f.name: getattr(self, f.name) for f in fields(self)}
        return State(**copies | {"q": np.array(self.q), "v": np.array(self.v)})


def require_state(system: System, state: State) -> None:
    """Raise ModelError if a state is one of another system: other numbers or names of coordinates and speeds."""
    for name, value, size in (("q", state.q, system.nq), ("v", state.v, system.nv)):
        if np.shape(value) != (size,):
            message = f"{name} has shape {np.shape(value)}, '{system.name}' needs ({size},)"
            raise ModelError([Problem("state", message, "Make it with system.state(...) or ld.assemble.")])
    own = state.system
    if own is None or own is system or own.coordinates is system.coordinates:
        return
    if own.coordinates != system.coordinates or own.speeds != system.speeds:
        message = f"it is one of '{own.name}' with other coordinates ({', '.join(own.coordinates[:4])}, ...)"
        raise ModelError([Problem("state", message, "Assemble this system, or compile both with the same cuts=[...].")])


def state_key(state: State) -> tuple[float, bytes, bytes]:
    """Equal for states with equal numbers: by it is found again what was decided at one."""
    return state.t, np.asarray(state.q, float).tobytes(), np.asarray(state.v, float).tobytes()
