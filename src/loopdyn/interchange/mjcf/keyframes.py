"""Keyframe that a model starts from."""

from __future__ import annotations

import numpy as np

from loopdyn.errors import ModelError, Problem
from loopdyn.interchange.mjcf.imported import SLIDE, Array, ImportedMJCF
from loopdyn.interchange.mjcf.model import CompiledModel
from loopdyn.quantities.wording import nearest
from loopdyn.system.builder import build

NEARER = (
    0.1  # fraction of the residual of loops at qpos0, or of its distance from limits, below which a keyframe is better
)
SOFTLY_CLOSED = 1e-2  # rad or m: residual of equalities, which are soft, at a pose that was saved as closed


def chosen_keyframe(model: CompiledModel, wanted: str | int | None) -> int | None:
    """Number of the keyframe to read; None for `qpos0`."""
    m = model.m
    names = [model.label("KEY", k) or str(k) for k in range(m.nkey)]
    if wanted is None and names and _is_better(model, m.key_qpos[0], m.qpos0):
        model.report.changed.append(
            f"the reference pose is the keyframe '{names[0]}': qpos0 leaves loops open or is outside the limits of "
            'joints (keyframe="qpos0" reads it all the same)'
        )
        return 0
    if wanted is None or (wanted == "qpos0" and "qpos0" not in names):
        if names:
            model.report.left_out.append(f"keyframes {', '.join(names)}: read one with keyframe=")
        return None
    if isinstance(wanted, int) and 0 <= wanted < m.nkey:
        return wanted
    if str(wanted) not in names:
        hint = nearest(str(wanted), names)
        raise ModelError([Problem("keyframe", f"there is no keyframe '{wanted}'", hint, model.draft.file)])
    return names.index(str(wanted))


def _is_better(model: CompiledModel, one: Array, other: Array) -> bool:
    """Whether a pose is nearer to closed than another, or as near and within limits that the other exceeds."""
    if not model.m.neq:
        return False
    (gap, beyond), (other_gap, other_beyond) = (_misfit(model, qpos) for qpos in (one, other))
    return gap < NEARER * other_gap or (beyond < NEARER * other_beyond and gap < max(2.0 * other_gap, SOFTLY_CLOSED))


def _misfit(model: CompiledModel, qpos: Array) -> tuple[float, float]:
    """Largest residual of equalities at a pose, and by how much limits of joints are passed, rad or m."""
    m, data = model.m, model.mj.MjData(model.m)
    data.qpos[:] = qpos
    model.mj.mj_forward(m, data)
    rows = data.efc_type[: data.nefc] == int(model.mj.mjtConstraint.mjCNSTR_EQUALITY)
    scalar = (m.jnt_limited != 0) & (m.jnt_type >= SLIDE)
    at, (low, high) = qpos[m.jnt_qposadr[scalar]], m.jnt_range[scalar].T
    beyond = np.maximum(low - at, at - high).max(initial=0.0)
    return float(np.abs(data.efc_pos[: data.nefc][rows]).max(initial=0.0)), float(beyond)


def set_start(model: CompiledModel, key: int) -> None:
    """Speeds of the keyframe by label; its pose is the reference pose."""
    found = ImportedMJCF(model.draft.mechanism(), model.report, tuple(model.loops), tuple(model.joints))
    system = build(found.mechanism, cuts=list(found.loops))
    v = found.from_mujoco(system, model.m.key_qpos[key], model.m.key_qvel[key]).v.tolist()
    model.draft.data["start"] = {"v": {label: x for label, x in zip(system.speeds, v, strict=True) if x != 0.0}}
    model.report.carried.append(f"pose and speeds of the keyframe '{model.label('KEY', key) or key}'")
