"""Actuators of a compiled model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from loopdyn.interchange.mjcf.imported import HINGE, SLIDE
from loopdyn.interchange.mjcf.loads import times
from loopdyn.interchange.mjcf.model import CompiledModel
from loopdyn.spatial.rotations import to_matrix

Affine = tuple[float, float, float]  # constant, factor of length, factor of speed


def read_actuators(model: CompiledModel, key: int | None) -> None:
    """Write all actuators; their controls are parameters, with the values of the keyframe."""
    carried, elsewhere = [], []
    reasons: dict[str, list[str]] = {}
    for k in range(model.actuator_count()):
        name = model.label("ACTUATOR", k) or f"actuator {k}"
        before = sum(len(laws) for laws in model.motors.values())
        why = _actuator(model, k, name, key)
        if why:
            reasons.setdefault(why, []).append(f"'{name}'")
        else:
            carried.append(name)
            if sum(len(laws) for laws in model.motors.values()) == before:
                elsewhere.append(name)
    _joint_motors(model, elsewhere)
    for why, names in reasons.items():
        model.report.left_out.append(f"actuator{'s' * (len(names) > 1)} {', '.join(names)}: {why}")
    model.report.count("actuators", carried)
    if model.draft.data["parameters"]:
        model.report.changed.append(f"controls are parameters: {', '.join(model.draft.data['parameters'])}")


def _joint_motors(model: CompiledModel, elsewhere: list[str]) -> None:
    """Write the actuators on joints; where their sum on a joint is limited (actuatorfrcrange), as one motor."""
    m = model.m
    limited = []
    for k, j in enumerate(model.joints):
        laws = model.motors.get(j.name, [])
        if m.jnt_actfrclimited[k] and j.kind in (HINGE, SLIDE):
            limited.append(j.name)
            low, high = (float(x) for x in m.jnt_actfrcrange[k])
            total = " + ".join(law for _, law in laws)
            name = laws[0][0] if len(laws) == 1 else f"{j.name} actuators"
            laws = [(name, f"clip({total}, {low!r}, {high!r})")] if laws else []
        for name, law in laws:
            model.motor(name, j, law)
    if limited and elsewhere:
        model.report.left_out.append(
            f"actuatorfrcrange of the joints {', '.join(limited)} for actuators that are not on one of them alone: "
            f"{', '.join(elsewhere)}"
        )


def _actuator(model: CompiledModel, k: int, name: str, key: int | None) -> str:
    """Write one actuator, or note it for its joint; or say why that cannot be done."""
    m = model.m
    why = _cannot_be_carried(model, k)
    if why:
        return why
    gain, bias = (_affine(model, k, kind) for kind in ("gain", "bias"))
    if gain is None or bias is None:
        return "its force is not an affine function of length and speed"
    control = model.draft.name("parameters", f"ctrl_{name}")
    clipped = control
    if m.actuator_ctrllimited[k] and not model.disabled("CLAMPCTRL"):
        clipped = "clip({}, {!r}, {!r})".format(control, *(float(x) for x in m.actuator_ctrlrange[k]))
    limits = [float(x) for x in m.actuator_forcerange[k]] if m.actuator_forcelimited[k] else []
    tendon = _limited_tendon(model, k)
    of_tendon = [] if tendon is None else [float(x) for x in m.tendon_actfrcrange[tendon]]
    why = _transmit(model, k, name, _Law(gain, bias, clipped, limits, of_tendon))
    if any(gain) and not why:
        column = int(m.actuator_ctrladr[k]) if hasattr(m, "actuator_ctrladr") else k
        model.draft.data["parameters"][control] = 0.0 if key is None else float(m.key_ctrl[key][column])
    return why


def _cannot_be_carried(model: CompiledModel, k: int) -> str:
    """Reason why an actuator has no counterpart here, whatever it acts on; empty if it has one."""
    m, mj = model.m, model.mj
    if int(m.actuator_group[k]) in range(31) and int(m.opt.disableactuator) >> int(m.actuator_group[k]) & 1:
        return "its group is switched off (actuatorgroupdisable)"
    if int(m.actuator_plugin[k]) >= 0:
        return "it is a plugin"
    if int(m.actuator_dyntype[k]) != int(mj.mjtDyn.mjDYN_NONE):
        return "it has a state of its own (dyntype)"
    return ""


def _limited_tendon(model: CompiledModel, k: int) -> int | None:
    """Tendon of an actuator that limits the force of its actuators."""
    m, target = model.m, int(model.m.actuator_trnid[k][0])
    on_tendon = int(m.actuator_trntype[k]) == int(model.mj.mjtTrn.mjTRN_TENDON)
    return target if on_tendon and m.tendon_actfrclimited[target] else None


@dataclass(frozen=True)
class _Law:
    """Force of an actuator: affine in its length and speed, by a control, within limits."""

    gain: Affine
    bias: Affine
    control: str
    limits: Sequence[float]  # lowest and highest force; empty if there are none
    limits_of_tendon: Sequence[float]

    def text(self, length: str, speed: str, scale: float) -> str:
        """Formula of the force times `scale`."""
        g, b = (_sum(c, length, speed) for c in (self.gain, self.bias))
        force = b if g == "0.0" else f"({g})*{self.control}" + (f" + {b}" if b != "0.0" else "")
        force = "clip({}, {!r}, {!r})".format(force, *self.limits) if self.limits else f"({force})"
        if self.limits_of_tendon:
            force = "clip({}, {!r}, {!r})".format(force, *self.limits_of_tendon)
        return force if scale == 1.0 else f"{scale!r}*{force}"


def _transmit(model: CompiledModel, k: int, name: str, law: _Law) -> str:
    """Write the force of an actuator where it acts, or note it for its joint; or say why that cannot be done."""
    m, trn = model.m, model.mj.mjtTrn
    kind, target = int(m.actuator_trntype[k]), int(m.actuator_trnid[k][0])
    gear = [float(x) for x in m.actuator_gear[k]]
    if kind in (int(trn.mjTRN_JOINT), int(trn.mjTRN_JOINTINPARENT)):
        j = model.joints[target]
        if j.kind not in (HINGE, SLIDE):
            return "it acts on a ball or free joint"
        text = law.text(times(gear[0], "position"), times(gear[0], "speed"), gear[0])
        model.motors.setdefault(j.name, []).append((name, text))
        return ""
    if kind == int(trn.mjTRN_TENDON):
        return _pull_tendon(model, k, name, law, gear[0])
    constant = not any((*law.gain[1:], *law.bias[1:]))
    if kind == int(trn.mjTRN_SITE) and int(m.actuator_trnid[k][1]) < 0 and constant:
        body = model.bodies[m.site_bodyid[target]]
        R = model.draft.poses[body][1] @ to_matrix(m.site_quat[target])
        force, torque = ([law.text("0", "0", float(x)) for x in R @ gear[i : i + 3]] for i in (0, 3))
        at = model.draft.world_point(body, m.site_pos[target])
        model.draft.add("forces", name, type="applied", body=body, axes="body", force=force, torque=torque, at=at)
        return ""
    return "its transmission is not known here"


def _pull_tendon(model: CompiledModel, k: int, name: str, law: _Law, gear: float) -> str:
    """Write the force of an actuator on a tendon; or say why that cannot be done."""
    tendon = int(model.m.actuator_trnid[k][0])
    if _limited_tendon(model, k) is not None:
        on_it = [i for i in range(model.actuator_count()) if _limited_tendon(model, i) == tendon]
        if len(on_it) > 1:
            return "its tendon limits the sum of several actuators (actuatorfrcrange)"
    own = law.text(times(gear, "length"), times(gear, "speed"), gear)
    if (line := model.line(tendon)) is not None:
        # an actuator pushes the points apart where a tendon's force lengthens it: the same sign
        model.draft.add("forces", name, type="actuator", **line, force=own)
        return ""
    fixed = model.fixed(tendon)
    if fixed is None:
        return "its tendon is neither a straight line between two bodies nor a sum of joint coordinates"
    if not fixed:
        return "all coefficients of its tendon are zero"
    if len(fixed) > 1:
        model.draft.add("forces", name, type="joint_tendon", terms=fixed, force=own)
    else:
        ((joint, c),) = fixed.items()
        s = gear * c
        model.motors.setdefault(joint, []).append((name, law.text(times(s, "position"), times(s, "speed"), s)))
    return ""


def _affine(model: CompiledModel, k: int, kind: str) -> Affine | None:
    """Constant, factor of length, factor of speed; None if it is of another type."""
    m, mj = model.m, model.mj
    found = int(getattr(m, f"actuator_{kind}type")[k])
    prm = [float(x) for x in getattr(m, f"actuator_{kind}prm")[k][:3]]
    if kind == "bias" and found == int(mj.mjtBias.mjBIAS_NONE):
        return 0.0, 0.0, 0.0
    if kind == "gain" and found == int(mj.mjtGain.mjGAIN_FIXED):
        return prm[0], 0.0, 0.0
    affine = mj.mjtGain.mjGAIN_AFFINE if kind == "gain" else mj.mjtBias.mjBIAS_AFFINE
    return (prm[0], prm[1], prm[2]) if found == int(affine) else None


def _sum(c: Affine, length: str, speed: str) -> str:
    """Text of c0 + c1*length + c2*speed without zero terms."""
    parts = [repr(c[0])] if c[0] else []
    parts += [f"({c[1]!r})*{length}"] if c[1] else []
    parts += [f"({c[2]!r})*{speed}"] if c[2] else []
    return " + ".join(parts) or "0.0"
