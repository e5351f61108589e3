"""Result of reading MJCF: the mechanism, and the correspondence of its coordinates with MuJoCo's."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from loopdyn.errors import ModelError, Problem
from loopdyn.interchange.report import Imported
from loopdyn.spatial.rotations import to_matrix
from loopdyn.system.system import State, System
from loopdyn.tree.start import given

Array = NDArray[np.float64]

FREE, BALL, SLIDE, HINGE = range(4)  # mjtJoint


@dataclass(frozen=True)
class JointMap:
    """Indices of the coordinates of a MuJoCo joint, and its name here."""

    name: str
    kind: int
    q: int  # first index in qpos
    v: int  # first index in qvel


@dataclass(frozen=True)
class ImportedMJCF(Imported):
    """Model read from MJCF, with the correspondence of coordinates.

    Attributes
    ----------
    joints : tuple of JointMap
        In MuJoCo's order.
    """

    joints: tuple[JointMap, ...] = ()

    def compile(self) -> System:
        """System with MuJoCo's own tree: equalities are the cuts."""
        return self.mechanism.compile(cuts=list(self.loops))

    def from_mujoco(self, system: System, qpos: ArrayLike, qvel: ArrayLike | None = None, t: float = 0.0) -> State:
        """State of :meth:`compile`'s system at MuJoCo's `qpos` and `qvel`.

        Hinge and slide coordinates are the same. Quaternions are w, x, y, z in both. MuJoCo's speeds of a free body are
        its velocity in world axes, then its angular velocity in its own axes; here the angular velocity is first and
        both are in its own axes.
        """
        x, y = np.asarray(qpos, float), None if qvel is None else np.asarray(qvel, float)
        q: dict[str, float] = {}
        v: dict[str, float] = {}
        for j in self.joints:
            labels_q, labels_v = system.joints[j.name].spec.labels(j.name)
            q |= dict(zip(labels_q, x[j.q : j.q + len(labels_q)], strict=True))
            if y is not None:
                speeds = y[j.v : j.v + len(labels_v)]
                if j.kind == FREE:
                    speeds = np.concatenate([speeds[3:], to_matrix(x[j.q + 3 : j.q + 7]).T @ speeds[:3]])
                v |= dict(zip(labels_v, speeds, strict=True))
        return system.state(q, v, t)

    def to_mujoco(self, system: System, state: State | None = None) -> tuple[Array, Array]:
        """`qpos` and `qvel` of MuJoCo at a state of :meth:`compile`'s system, by default its start."""
        state = given(system, state)
        x, y = [], []
        for j in self.joints:
            q, v = self._values(system, j, state.q, state.v)
            x.append(q)
            y.append(np.concatenate([to_matrix(q[3:]) @ v[3:], v[:3]]) if j.kind == FREE else v)
        return np.concatenate([*x, []]), np.concatenate([*y, []])

    def qacc(self, system: System, a: ArrayLike, state: State | None = None) -> Array:
        """`qacc` of MuJoCo for accelerations `a` of :meth:`compile`'s system at a state, by default its start."""
        state = given(system, state)
        z = []
        for j in self.joints:
            q, v = self._values(system, j, state.q, state.v)
            _, b = self._values(system, j, state.q, np.asarray(a, float))
            # velocity of a free body is in its own axes here: these turn
            z.append(
                np.concatenate([to_matrix(q[3:]) @ (b[3:] + np.cross(v[:3], v[3:])), b[:3]]) if j.kind == FREE else b
            )
        return np.concatenate([*z, []])

    @staticmethod
    def _values(system: System, j: JointMap, q: Array, v: Array) -> tuple[Array, Array]:
        data = system.joints[j.name]
        if not data.in_tree:
            message = f"joint '{j.name}' is cut, so MuJoCo's coordinate is not among those of the system"
            raise ModelError([Problem("state", message, "Use the system of '.compile()', which cuts the equalities.")])
        return q[data.q0 : data.q0 + len(data.spec.coordinates)], v[data.v0 : data.v0 + len(data.spec.speeds)]
