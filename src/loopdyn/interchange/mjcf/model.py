"""Model that MuJoCo has compiled, and the draft that is made from it."""

from __future__ import annotations

from typing import Any

import numpy as np

from loopdyn.interchange.draft import Draft, Pose
from loopdyn.interchange.mjcf.imported import HINGE, SLIDE, Array, JointMap
from loopdyn.interchange.report import Report
from loopdyn.model.mechanism import GROUND


class CompiledModel:
    """Data shared by the readers of bodies, joints, equalities, loads and actuators."""

    def __init__(self, mujoco: Any, model: Any, shown: str, report: Report):
        self.mj = mujoco
        self.m = model
        self.report = report
        names = bytes(model.names)
        self.draft = Draft(names[: names.index(b"\0")].decode("utf-8", "replace"), shown, report)
        self.bodies: list[str] = [GROUND]
        self.joints: list[JointMap] = []
        self.loops: list[str] = []
        self.motors: dict[str, list[tuple[str, str]]] = {}  # laws of actuators on each joint, with their names
        self.off = int(model.opt.disableflags)
        self.qpos: Array = np.zeros(model.nq)  # the pose that is read ...
        self.poses: list[Pose] = []  # ... and the world poses of all bodies there

    def disabled(self, what: str) -> bool:
        """Whether a flag of the model switches something off."""
        flag = getattr(self.mj.mjtDisableBit, "mjDSBL_" + what, None)
        if flag is None:  # springs and dampers were one flag in older versions
            flag = getattr(self.mj.mjtDisableBit, "mjDSBL_PASSIVE", None)
        return flag is not None and bool(self.off & int(flag))

    def label(self, kind: str, k: int) -> str:
        """Name of element k of a kind; empty if it has none."""
        name = self.mj.mj_id2name(self.m, getattr(self.mj.mjtObj, "mjOBJ_" + kind), k)
        return name or ""

    def actuator_count(self) -> int:
        """Number of actuators, by its name in this version of MuJoCo."""
        return int(getattr(self.m, "nactuator", self.m.nu))

    def fixed(self, t: int) -> dict[str, float] | None:
        """Coefficients of a fixed tendon by joint, without those that are zero; None for a spatial one."""
        m = self.m
        wraps = range(m.tendon_adr[t], m.tendon_adr[t] + m.tendon_num[t])
        if any(int(m.wrap_type[w]) != int(self.mj.mjtWrap.mjWRAP_JOINT) for w in wraps):
            return None
        terms: dict[str, float] = {}
        for w in wraps:
            j = self.joints[int(m.wrap_objid[w])]
            if j.kind not in (HINGE, SLIDE):
                return None
            terms[j.name] = terms.get(j.name, 0.0) + float(m.wrap_prm[w])
        return {joint: c for joint, c in terms.items() if c}

    def line(self, t: int) -> dict[str, Any] | None:
        """Bodies and points of a spatial tendon that is a straight line between two sites."""
        m = self.m
        wraps = range(m.tendon_adr[t], m.tendon_adr[t] + m.tendon_num[t])
        sites = [int(m.wrap_objid[w]) for w in wraps]
        is_line = len(sites) == 2 and all(int(m.wrap_type[w]) == int(self.mj.mjtWrap.mjWRAP_SITE) for w in wraps)
        if not is_line or m.site_bodyid[sites[0]] == m.site_bodyid[sites[1]]:
            return None
        bodies = [self.bodies[m.site_bodyid[s]] for s in sites]
        points = [self.draft.world_point(b, m.site_pos[s]) for b, s in zip(bodies, sites, strict=True)]
        return {"body1": bodies[0], "body2": bodies[1], "point1": points[0], "point2": points[1]}

    def motor(self, name: str, j: JointMap, law: str) -> None:
        """Write a motor on a joint with one coordinate."""
        self.draft.add("forces", name, type="motor", joint=j.name, **{"torque" if j.kind == HINGE else "force": law})
