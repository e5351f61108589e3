"""Joints locked, constraints released and added inside a run.

A run then has phases, each with a system of its own: the same bodies and the same tree, so the same coordinates and
speeds, but other constraint rows. A lock is a driver that holds a coordinate where it is. Velocities jump to the
nearest ones that the new rows allow in the metric of kinetic energy (:func:`loopdyn.analyses.reconnect`): a plastic
impact, in which the momentum along all remaining freedoms is conserved. Releasing rows causes no jump.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from pydantic import TypeAdapter

from loopdyn.analysis.reconnect import Change, reconnect
from loopdyn.constraints import Constraint, UserConstraint
from loopdyn.constraints.dispatch import AnyConstraint
from loopdyn.errors import LoopdynError
from loopdyn.loops.reactions import Reactions
from loopdyn.quantities.units import Units
from loopdyn.quantities.wording import nearest, unknown
from loopdyn.run.contact_ends import pressing_row
from loopdyn.system.builder import build
from loopdyn.system.sides import add_rows, remove_rigid, sides_of
from loopdyn.system.system import State, System, Tolerated
from loopdyn.tree.joint_readings import coordinate

_CONSTRAINT: TypeAdapter[Any] = TypeAdapter(AnyConstraint)


@dataclass(frozen=True)
class Lock:
    """Action of an event: hold a joint coordinate where it is from then on.

    Parameters
    ----------
    joint : str
        Label of the coordinate, e.g. ``"A"`` or ``"C.slide"``.

    Examples
    --------
    >>> import loopdyn as ld
    >>> ld.events.At(0.5, "brake", action=ld.events.Lock("A")).action
    Lock(joint='A')
    """

    joint: str


@dataclass(frozen=True)
class Release:
    """Action of an event: unlock a joint coordinate, or remove a constraint, a driver or a cut joint.

    A tree joint cannot be released, since its coordinates would be missing: compile with it among the cuts.

    Examples
    --------
    >>> Release("A").name
    'A'
    """

    name: str


@dataclass(frozen=True)
class Add:
    """Action of an event: add a constraint from then on, or put back what was released.

    The poses of the bodies must satisfy it; their speeds jump to the nearest ones that do, as at a lock. It may be
    released again.

    Parameters
    ----------
    name : str
        Name of the new constraint, or of the constraint, driver or cut joint that was released.
    constraint : Constraint, optional
        The new constraint, in the units of the model. What it takes from the reference pose (a length that is not
        given) is that of the reference pose, not of the event.

    Examples
    --------
    >>> from loopdyn.constraints import Distance
    >>> Add("rod", Distance("crank", "rocker", (0, 1, 0), (1, 1, 0), length=1.2)).name
    'rod'
    """

    name: str
    constraint: Constraint | None = None


@dataclass(frozen=True)
class Phase:
    """Constraints that act from a given output on."""

    system: System = field(repr=False)
    first: int = 0  # output
    locks: Mapping[str, float] = field(default_factory=dict)  # coordinates, rad or m
    released: tuple[str, ...] = ()
    tolerated: Tolerated | None = None  # redundant rows that are left open, see `loopdyn.assemble`
    touching: tuple[str, ...] = ()  # sides of contacts whose rows hold
    implied: tuple[str, ...] = ()  # sides that stay closed because those rows hold
    added: Mapping[str, Constraint] = field(default_factory=dict)
    indeterminate: tuple[str, ...] = ()  # closed sides whose forces are one distribution of many
    edges: Mapping[str, int] = field(default_factory=dict)  # of a profile on which a point presses, by closed side

    def as_data(self) -> dict[str, Any]:
        """Plain data of the phase, without its system."""
        tolerated = None if self.tolerated is None else asdict(self.tolerated)
        return {
            "first": self.first,
            "locks": dict(self.locks),
            "released": list(self.released),
            "tolerated": tolerated,
            "added": {name: spec.model_dump(mode="json") for name, spec in self.added.items()},
            "touching": list(self.touching),
            "implied": list(self.implied),
            "indeterminate": list(self.indeterminate),
            "edges": dict(self.edges),
        }


def as_it_is(system: System) -> None:
    """Leave a system as it is."""


def phase_of(base: System, data: Mapping[str, Any], adapt: Callable[[System], None] = as_it_is) -> Phase:
    """A phase of a run of `base` from its plain data; `adapt` writes the inputs into its system."""
    given = data["tolerated"]
    tolerated = None if given is None else Tolerated(tuple(given["rows"]), given["angle"], given["length"])
    sides = (tuple(data[key]) for key in ("touching", "implied", "indeterminate"))
    added = {name: _CONSTRAINT.validate_python(spec) for name, spec in data["added"].items()}
    touching, implied, indeterminate = sides
    phase = Phase(
        base, int(data["first"]), dict(data["locks"]), tuple(data["released"]), tolerated, touching, implied, added,
        indeterminate, {name: int(edge) for name, edge in data["edges"].items()},
    )  # fmt: skip
    return compiled(base, phase, adapt)


def change(
    base: System,
    phase: Phase,
    state: State,
    action: Lock | Release | Add,
    first: int,
    adapt: Callable[[System], None] = as_it_is,
) -> tuple[Phase, Change]:
    """Next phase, from the output `first` on, and the velocity jump that leads to it.

    Parameters
    ----------
    base : System
        System of the first phase of the run.
    phase : Phase
        Current phase.
    state : State
    action : Lock, Release or Add
    first : int
    adapt : callable
        Writes the inputs of a simulation into the system of the next phase.
    """
    locks, released, added = dict(phase.locks), phase.released, dict(phase.added)
    if isinstance(action, Add):
        _check_added(base, phase, action)
    if isinstance(action, Lock):
        locks[action.joint] = coordinate(phase.system, state, action.joint, "ld.events.Lock")
    elif isinstance(action, Add):
        released = tuple(name for name in released if name != action.name)
        if action.constraint is not None:
            added[action.name] = action.constraint
    elif action.name in added:
        del added[action.name]
    elif action.name in locks:
        del locks[action.name]
    else:
        _check_release(base, phase, action.name)
        released = (*released, action.name)
    following = compiled(base, replace(phase, first=first, locks=locks, released=released, added=added), adapt)
    jump = reconnect(phase.system, following.system, state)
    # the bodies keep their poses, so the coordinates are kept as they were, without the rounding of measuring them
    return following, replace(jump, state=State(state.t, state.q, jump.state.v))


def require_lockable(system: System, label: str) -> None:
    """Raise LoopdynError if no tree joint or cut joint has a coordinate with this label."""
    if label not in system.labels.coordinates:
        raise unknown("ld.events.Lock", "joint coordinate", [label], system.labels.scalars)


def _check_added(base: System, phase: Phase, action: Add) -> None:
    """Raise if a name is taken, or if nothing of this name was released."""
    m = base.mechanism
    taken = [*m.joints, *m.constraints, *m.user_constraints, *m.drivers, *m.contacts, *phase.added]
    if action.constraint is None and action.name not in phase.released:
        what = f"nothing called '{action.name}' was released"
        raise LoopdynError(f"ld.events.Add: {what}. {nearest(action.name, phase.released)}")
    if action.constraint is not None and action.name in taken:
        raise LoopdynError(f"ld.events.Add: there is something called '{action.name}' already. Choose another name.")
    if isinstance(action.constraint, UserConstraint):
        raise LoopdynError(f"ld.events.Add: '{action.name}' is a Python function, which a run cannot add.")


def _check_release(base: System, phase: Phase, name: str) -> None:
    m, cuts = base.mechanism, base.topology.cuts
    can = [x for x in (*phase.added, *m.constraints, *m.drivers, *m.user_constraints, *cuts) if x not in phase.released]
    if name in can:
        return
    if name in m.joints and name not in phase.released:
        raise LoopdynError(
            f"ld.events.Release: joint '{name}' is a tree joint, so its coordinates would be missing. "
            f'Cut it from the start: compile(cuts=["{name}", ...]).'
        )
    raise LoopdynError(
        f"ld.events.Release: there is nothing called '{name}' to release. {nearest(name, [*phase.locks, *can])}"
    )


def compiled(base: System, phase: Phase, adapt: Callable[[System], None] = as_it_is) -> Phase:
    """Phase with its compiled system; one with the same rows is found again, unless inputs are written into it."""
    if not (phase.locks or phase.released or phase.added or phase.touching) and phase.tolerated == base.tolerated:
        return replace(phase, system=base, tolerated=base.tolerated)
    if adapt is not as_it_is or phase.added:
        return _compiled(base, phase, adapt)
    rows = (
        tuple(sorted(phase.locks.items())),
        phase.released,
        phase.touching,
        phase.tolerated,
        tuple(sorted(phase.edges.items())),
    )
    found = base.kept.find("phases", rows, lambda: _compiled(base, phase, adapt))
    return replace(phase, system=found.system, tolerated=found.tolerated)


def _compiled(base: System, phase: Phase, adapt: Callable[[System], None]) -> Phase:
    m = base.mechanism.model_copy(deep=True)
    remove_rigid(m, sides_of(base))
    constraints: dict[str, Any] = m.constraints
    constraints |= phase.added
    touching = [side for side in sides_of(base) if side.name in phase.touching]
    add_rows(m, [pressing_row(base, side, phase.edges.get(side.name, -1)) for side in touching])
    for name in phase.released:
        for group in (m.joints, m.constraints, m.drivers, m.user_constraints):
            group.pop(name, None)
    units = m.resolver().units
    for label, value in phase.locks.items():
        m.add_driver(
            f"lock {label.replace('.', '_')}", label, value / units.factor(base.labels.coordinates[label].dimension)
        )
    cuts = [cut for cut in base.topology.cuts if cut not in phase.released]
    system = build(m, cuts, counted=base.counted)
    adapt(system)
    if system.coordinates != base.coordinates or system.speeds != base.speeds:
        raise LoopdynError(
            f"without {', '.join(phase.released)} the mechanism has another spanning tree. Compile with other cuts."
        )
    if phase.tolerated is not None:
        left = tuple(row for row in phase.tolerated.rows if row in system.constraint_rows)
        system = system.tolerating(replace(phase.tolerated, rows=left))
    return replace(phase, system=system, tolerated=system.tolerated)


# Impulses, or a function that computes them when they are asked for: that takes longer than a singular passage itself.
Impulses = Reactions | Callable[[], Reactions] | None


def computed(given: Impulses) -> Reactions | None:
    """Impulses, computed if they have not been yet."""
    return given() if callable(given) else given


def impulse_as_data(impulse: Reactions | None) -> dict[str, Any] | None:
    """Impulses as plain data."""
    if impulse is None:
        return None
    data = asdict(impulse) | {"units": impulse.units.model_dump()}
    return data | {"wrench": impulse.wrench.tolist(), "unique": impulse.unique.tolist(),
                   "multipliers": dict(impulse.multipliers)}  # fmt: skip


def impulse_of(data: Mapping[str, Any] | None) -> Reactions | None:
    """Impulses from plain data."""
    if data is None:
        return None
    wrench, unique = np.array(data["wrench"], float).reshape(-1, 6), np.array(data["unique"], bool).reshape(-1, 6)
    units = Units(**data.get("units", {}))
    return Reactions(tuple(data["joints"]), wrench, unique, data["norm"], data["residual"], data["multipliers"], units)
