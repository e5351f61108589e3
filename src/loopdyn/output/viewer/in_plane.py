"""Velocities of a planar mechanism for its page: instant centres, centrodes, velocity polygon, transmission angles."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from loopdyn.analysis.transmission_angle import transmission_angles
from loopdyn.errors import LoopdynError
from loopdyn.output.drawing import Drawing
from loopdyn.output.viewer.numbers import Array, floats, packed
from loopdyn.system.system import System

OUT_OF_PLANE = 1e-6  # speed out of the plane, relative to the largest, above which a motion is not planar


class _Placed(NamedTuple):
    """Poses of all bodies at one moment."""

    position: Array
    rotation: Array


def planar_motion(drawing: Drawing, velocities: tuple[Array, Array]) -> dict[str, Any]:
    """Normal of the plane and arrays of velocities and speeds of rotation about it; nothing if none moves in it.

    From these the page finds the instant centre of two bodies, where both have the same velocity, and the velocities of
    all joints. All of it is independent of the scale of the velocities.
    """
    linear, angular = velocities
    normal = drawing.normal
    if normal is None:
        return {}
    most, fastest = np.abs(linear).max(initial=0.0), np.abs(angular).max(initial=0.0)
    spin = angular @ normal
    out, tilted = np.abs(linear @ normal), np.abs(angular - spin[..., None] * normal)
    if fastest == 0.0 or (out > OUT_OF_PLANE * most).any() or (tilted > OUT_OF_PLANE * fastest).any():
        return {}
    return {"normal": floats(normal), "arrays": {"velocity": packed(linear), "spin": packed(spin)}}


def transmissions(system: System, poses: tuple[Array, Array]) -> dict[str, Array]:
    """Transmission angles over time in declared units, by output joint, of the links that have one."""
    moments: list[Any] = [_Placed(x, R) for x, R in zip(*poses, strict=True)]
    found = {}
    for name, joint in system.joints.items():
        if (joint.parent < system.n_bases) != (joint.child < system.n_bases):
            try:
                found[name] = transmission_angles(system, moments, name, None) / system.units.factor("angle")
            except LoopdynError:  # no output link of a planar four-bar or slider-crank: it has no such angle
                continue
    return found
