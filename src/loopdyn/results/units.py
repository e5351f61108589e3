"""Declared units of the columns of results: symbols, and their SI values."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from loopdyn.engine import records as rec
from loopdyn.system.labels import COMPONENT_DIMENSIONS, FORCE_OF
from loopdyn.system.system import System

Array = NDArray[np.float64]


def dimensions(system: System, of: str) -> list[str]:
    """Dimension of each "coordinate", "speed" (that of its integral), "load" of a force, or "component" of a reaction.

    Examples
    --------
    >>> from loopdyn import library
    >>> m = library.slider_crank()
    >>> motor = m.add_motor("motor", "A", torque=1.0)
    >>> dimensions(m.compile(), "load")
    ['torque']
    """
    if of == "coordinate":
        return [system.labels.coordinates[label].dimension for label in system.coordinates]
    if of == "speed":
        return [system.labels.speeds[label].dimension for label in system.speeds]
    if of == "load":
        return ["torque" if turns else "force" for turns in system.model.force[:, rec.FORCE_TORQUE]]
    return list(COMPONENT_DIMENSIONS)


def symbols(system: System, dimensions: Iterable[str], rate: int = 0) -> list[str]:
    """Declared units of these dimensions, or of their derivatives by time."""
    return [system.units.symbol(d, rate) for d in dimensions]


def factors(system: System, dimensions: Iterable[str]) -> Array:
    """SI values of the declared units of these dimensions."""
    return np.array([system.units.factor(d) for d in dimensions])


def load_dimensions(dimensions: Iterable[str]) -> list[str]:
    """Dimensions of loads on coordinates or constraint rows of these dimensions: torque or force."""
    return [FORCE_OF[d] for d in dimensions]


def shown(system: System, values: Array, dimensions: Iterable[str]) -> Array:
    """SI values, a column for each dimension, in the declared units; the same array if these are SI."""
    of = factors(system, dimensions)
    result: Array = values if np.all(of == 1.0) else values / of
    return result


def coordinate_units(system: System) -> list[str]:
    """Declared unit of each coordinate; 1 for the components of a quaternion."""
    return symbols(system, dimensions(system, "coordinate"))


def speed_units(system: System, rate: int = 1) -> list[str]:
    """Declared unit of each speed, or with ``rate=2`` of each acceleration."""
    return symbols(system, dimensions(system, "speed"), rate)


def load_units(system: System) -> list[str]:
    """Declared unit of the load of each force: of torque on a rotation or for torques only, of force otherwise."""
    return symbols(system, dimensions(system, "load"))
