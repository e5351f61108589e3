"""Clearance in pins: a joint whose frame on the parent is displaced, so that the mechanism closes with the offset."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loopdyn.errors import LoopdynError
from loopdyn.joints.base import Joint
from loopdyn.model.mechanism import Mechanism
from loopdyn.quantities.units import Path
from loopdyn.quantities.wording import nearest
from loopdyn.spatial.rotations import perpendicular_frame
from loopdyn.system.builder import Builder
from loopdyn.system.system import Pose, System

Array = NDArray[np.float64]


def with_clearance(mechanism: Mechanism, clearance: Mapping[str, float]) -> dict[str, float]:
    """Radial clearances by joint, checked."""
    found = {}
    for joint, radius in clearance.items():
        if joint not in mechanism.joints:
            known = [name for name, spec in mechanism.joints.items() if spec.type == "revolute"]
            raise LoopdynError(f"clearance: there is no joint '{joint}'. {nearest(joint, known)}")
        if mechanism.joints[joint].type != "revolute":
            raise LoopdynError(f"clearance of '{joint}': it is no revolute joint. Give those of pins only.")
        if not (np.isfinite(radius) and radius >= 0.0):
            raise LoopdynError(f"the clearance of '{joint}' is {radius}. Give a radius, zero or positive.")
        found[joint] = float(radius)
    return found


class _Displaced(Builder):
    """Builder that displaces the frames of some joints on their parents, by world vectors at the reference pose, m."""

    def __init__(self, m: Mechanism, offsets: Mapping[str, Array]):
        self._offsets = offsets
        super().__init__(m)

    def _frames(self, spec: Joint, ends: list[int], element: str, path: Path) -> list[Pose] | None:
        frames = super()._frames(spec, ends, element, path)
        offset = self._offsets.get(str(path[1]))
        if frames is None or offset is None:
            return frames
        (p, R), child = frames
        return [(p + self.poses[ends[0]][1].T @ offset, R), child]


def displaced(system: System, clearances: tuple[str, ...], values: Mapping[str, float], offsets: Any) -> System:
    """System with overridden parameters and displaced pins.

    Parameters
    ----------
    system : System
    clearances : tuple of str
        Joints.
    values : mapping
        Parameters.
    offsets : list of float
        Two components across the axis of each joint, in the unit of length.
    """
    found, unit = {}, system.units.factor("length")
    for joint, k in zip(clearances, range(0, len(offsets), 2), strict=True):
        data = system.joints[joint]
        axis = system.reference_poses[data.parent][1] @ data.F[1][:, 2]
        x, y, _ = perpendicular_frame(axis)
        found[joint] = unit * (offsets[k] * x + offsets[k + 1] * y)
    asked = system.asked
    return _Displaced(system.mechanism.with_(**values), found).build(asked.cuts, asked.free, asked.counted)


__all__ = ["displaced", "with_clearance"]
