"""Springs, dampers and dry friction of the joints and tendons of a compiled model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from loopdyn.interchange.mjcf.imported import BALL, FREE, HINGE, SLIDE, JointMap
from loopdyn.interchange.mjcf.model import CompiledModel

Coefficients = tuple[float, ...]  # of powers, the linear one first


def read_joint_loads(model: CompiledModel, j: JointMap) -> None:
    """Write what acts on a joint by itself."""
    m, draft = model.m, model.draft
    k = model.joints.index(j)
    own = _Passive(
        _spring(model, "jnt", k), _damping(model, "dof", j.v), (float(m.qpos_spring[j.q]), float(m.qpos_spring[j.q]))
    )
    friction = float(m.dof_frictionloss[j.v])
    if model.disabled("FRICTIONLOSS") or model.disabled("CONSTRAINT"):
        friction = 0.0
    if hasattr(m, "jnt_springyield") and m.jnt_springyield[k]:
        model.report.left_out.append(f"yield of the spring of the joint '{j.name}' (springyield)")
    if m.jnt_actfrclimited[k] and j.kind not in (HINGE, SLIDE):
        model.report.left_out.append(f"actuatorfrcrange of the joint '{j.name}', which has no single coordinate")
    if j.kind in (HINGE, SLIDE):
        if own.linear:
            draft.spring(j.name, own.stiffness[0], own.damping[0], own.rest[0])
        else:
            model.motor(f"{j.name} spring", j, own.law("position", "speed"))
        draft.friction(j.name, friction)
        return
    if not own.linear:
        model.report.left_out.append(f"nonlinear stiffness or damping of the joint '{j.name}'")
    stiffness, damping = own.stiffness[0], own.damping[0]
    ends = draft.data["joints"][j.name]
    labels = ("wx", "wy", "wz") if j.kind == BALL else ("wx", "wy", "wz", "vx", "vy", "vz")
    for suffix in labels if damping else ():
        draft.spring(f"{j.name}.{suffix}", 0.0, damping, 0.0)
    drawn, rest = (x[j.q : j.q + (7 if j.kind == FREE else 4)] for x in (model.qpos, m.qpos_spring))
    if stiffness and not np.array_equal(drawn, rest):
        model.report.left_out.append(f"spring of the joint '{j.name}', whose rest is not the pose of the keyframe")
    elif stiffness:
        at = draft.world_point(ends["child"], m.jnt_pos[k])
        turn, move = [stiffness] * 3, [stiffness] * 3 if j.kind == FREE else [0.0] * 3
        given = {"stiffness": move, "angular_stiffness": turn}
        draft.add(
            "forces", f"{j.name} spring", type="bushing", body1=ends["parent"], body2=ends["child"], at=at, **given
        )
    if friction:
        model.report.left_out.append(f"dry friction of the joint '{j.name}', which has no single coordinate")


def read_tendons(model: CompiledModel) -> None:
    """Write what acts on tendons by itself."""
    m = model.m
    bent = []
    for t in range(m.ntendon):
        name = model.label("TENDON", t) or f"tendon {t}"
        own = _Passive(
            _spring(model, "tendon", t), _damping(model, "tendon", t), tuple(float(x) for x in m.tendon_lengthspring[t])
        )
        line, fixed = model.line(t), model.fixed(t)
        reach = "its range ({:g} to {:g})".format(*(float(x) for x in m.tendon_range[t]))
        parts = {reach: "limited", "its dry friction": "frictionloss", "yield of its spring": "springyield"}
        extra = [w for w, key in parts.items() if getattr(m, f"tendon_{key}", np.zeros(m.ntendon))[t]]
        if own and line is not None:
            _line_load(model, name, line, own)
        elif own and fixed is not None and len(fixed) == 1:
            ((joint, b),) = fixed.items()
            j = next(x for x in model.joints if x.name == joint)
            if own.linear:
                model.draft.spring(joint, own.stiffness[0] * b**2, own.damping[0] * b**2, own.rest[0] / b)
            else:
                model.motor(name, j, f"{b!r}*({own.law(times(b, 'position'), times(b, 'speed'))})")
        elif own and fixed:
            law = own.law("length", "speed")
            model.draft.add("forces", name, type="joint_tendon", terms=fixed, force=law)
        elif own and fixed is None:
            extra.append("its spring and damper")
        if extra:
            model.report.left_out.append(f"tendon '{name}': {', '.join(extra)}")
        elif line is None and fixed is None:
            bent.append(name)
    model.report.leave_out("tendons that are not straight lines between two sites", bent)


def _line_load(model: CompiledModel, name: str, line: dict[str, Any], own: _Passive) -> None:
    """Spring and damper of a tendon that is a straight line."""
    if own.linear:
        given = {"stiffness": own.stiffness[0], "damping": own.damping[0], "length": own.rest[0]}
        model.draft.add("forces", name, type="spring_damper", **line, **given)
    else:
        model.draft.add("forces", name, type="actuator", **line, force=own.law("length", "speed"))


def _spring(model: CompiledModel, kind: str, k: int) -> Coefficients:
    """Stiffness of a joint or tendon, and the coefficients of higher powers."""
    return () if model.disabled("SPRING") else _coefficients(model, kind, "stiffness", k)


def _damping(model: CompiledModel, kind: str, k: int) -> Coefficients:
    """Damping of a freedom or tendon, with that of the actuators on it, and the coefficients of higher powers."""
    if model.disabled("DAMPER"):
        return ()
    found = _coefficients(model, kind, "damping", k)
    trn = model.mj.mjtTrn
    wanted = [int(trn.mjTRN_TENDON)] if kind == "tendon" else [int(trn.mjTRN_JOINT), int(trn.mjTRN_JOINTINPARENT)]
    target = k if kind == "tendon" else int(model.m.dof_jntid[k])
    for a in range(model.actuator_count() if hasattr(model.m, "actuator_damping") else 0):
        if int(model.m.actuator_trntype[a]) in wanted and int(model.m.actuator_trnid[a][0]) == target:
            gear = float(model.m.actuator_gear[a][0])
            more = _coefficients(model, "actuator", "damping", a)
            found = tuple(x + gear**2 * y for x, y in zip(found, more, strict=True))
    return found


def _coefficients(model: CompiledModel, kind: str, what: str, k: int) -> Coefficients:
    m = model.m
    linear = float(np.ravel(getattr(m, f"{kind}_{what}")[k])[0])
    poly = getattr(m, f"{kind}_{what}poly", None)  # since MuJoCo 3.4
    return (linear, *(float(x) for x in (() if poly is None else np.ravel(poly[k]))))


@dataclass(frozen=True)
class _Passive:
    """Spring and damper of a joint or tendon, as MuJoCo computes them.

    With x the length beyond the nearer end of the rest interval, the force is -(k0 x + k1 x^2 + k2 x^3 ...) and
    -(c0 v + c1 v |v| + c2 v^3 ...).
    """

    stiffness: Coefficients
    damping: Coefficients
    rest: tuple[float, ...]  # low and high end of the lengths at which the spring is slack

    def __post_init__(self) -> None:
        object.__setattr__(self, "stiffness", self.stiffness or (0.0,))
        object.__setattr__(self, "damping", self.damping or (0.0,))

    def __bool__(self) -> bool:
        return any(self.stiffness) or any(self.damping)

    @property
    def linear(self) -> bool:
        """Whether a linear spring with one rest length and a linear damper say it."""
        return not (any(self.stiffness[1:]) or any(self.damping[1:])) and (
            self.rest[0] == self.rest[1] or not any(self.stiffness)
        )

    def law(self, length: str, speed: str) -> str:
        """Formula of the force."""
        low, high = self.rest
        x = f"({length} - {low!r})" if low == high else f"({length} - clip({length}, {low!r}, {high!r}))"
        parts = [f"{c!r}*{x}" + (f"**{i + 1}" if i else "") for i, c in enumerate(self.stiffness) if c]
        parts += [f"{c!r}*{speed}" + (f"*abs({speed})**{i}" if i else "") for i, c in enumerate(self.damping) if c]
        return f"-({' + '.join(parts)})"


def times(factor: float, name: str) -> str:
    """Text of a variable times a factor."""
    return name if factor == 1.0 else f"({factor!r}*{name})"
