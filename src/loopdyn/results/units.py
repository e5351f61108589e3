"""SI units of coordinates and of the loads of forces, by number."""

from __future__ import annotations

from loopdyn.engine import records as rec
from loopdyn.system.system import System


def coordinate_units(system: System) -> list[str]:
    """Unit of each coordinate: rad, m, or 1 for the components of a quaternion."""
    return [system.labels.coordinates[label].unit for label in system.coordinates]


def load_units(system: System) -> list[str]:
    """Unit of the load of each force: N m on a rotation or for torques only, N otherwise.

    Examples
    --------
    >>> from loopdyn import library
    >>> m = library.slider_crank()
    >>> motor = m.add_motor("motor", "A", torque=1.0)
    >>> load_units(m.compile())
    ['N m']
    """
    return ["N m" if turns else "N" for turns in system.model.force[:, rec.FORCE_TORQUE]]
