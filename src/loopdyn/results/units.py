"""SI units of coordinates and of the loads of forces, by number."""

from __future__ import annotations

from loopdyn.forces.base import TURNS_ONLY
from loopdyn.system.system import System


def coordinate_units(system: System) -> list[str]:
    """Unit of each coordinate: rad, m, or 1 for the components of a quaternion."""
    return [system.labels.coordinates[label].unit for label in system.coordinates]


def load_units(system: System) -> list[str]:
    """Unit of the load of each force: of a torque on a freedom that turns or of what has torques only, of a force else.

    Examples
    --------
    >>> from loopdyn import library
    >>> m = library.slider_crank()
    >>> motor = m.add_motor("motor", "A", torque=1.0)
    >>> load_units(m.compile())
    ['N m']
    """
    units = []
    for n, name in enumerate(system.forces):
        label = getattr(system.mechanism.forces[name], "joint", "")
        turns = not label and bool(system.model.force[n, TURNS_ONLY] == 1)
        if label:
            joint, _, suffix = (label, "", "") if label in system.joints else label.partition(".")
            spec = system.joints[joint].spec
            turns = spec.speed_dimensions[spec.speeds.index(suffix)] == "angle"
        units.append("N m" if turns else "N")
    return units
