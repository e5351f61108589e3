"""Bodies and joints of a compiled model."""

from __future__ import annotations

import numpy as np

from loopdyn.interchange.draft import Pose, compose, inverse, pose, pose_quaternion
from loopdyn.interchange.mjcf.imported import BALL, FREE, HINGE, SLIDE, Array, JointMap
from loopdyn.interchange.mjcf.model import CompiledModel
from loopdyn.spatial.rotations import about_axis, to_matrix


def set_poses(model: CompiledModel, qpos: Array) -> None:
    """World poses of all bodies, and of the massless ones of chains, at `qpos`."""
    data = model.mj.MjData(model.m)
    data.qpos[:] = qpos
    model.qpos = data.qpos
    model.mj.mj_kinematics(model.m, data)
    model.poses = [pose(data.xpos[b].copy(), data.xmat[b].reshape(3, 3).copy()) for b in range(model.m.nbody)]


def read_body(model: CompiledModel, b: int, gravity: Array) -> None:
    """Write a body, its joints and the massless bodies between them."""
    m, draft = model.m, model.draft
    name = draft.name("bodies", model.label("BODY", b) or f"body{b}")
    model.bodies.append(name)
    parent = model.bodies[m.body_parentid[b]]
    place = pose_quaternion(m.body_pos[b], m.body_quat[b])  # in the parent
    first, number = int(m.body_jntadr[b]), int(m.body_jntnum[b])
    for k in range(first, first + number):
        last = k == first + number - 1
        joint = draft.name("joints", model.label("JOINT", k) or (f"{name} {k - first}" if number > 1 else name))
        child = name if last else draft.name("bodies", f"{name} before {joint}")
        F, M = _joint(model, k, joint, parent, child, place if k == first else pose())
        if not last:
            draft.body(child, _carried(model, k, parent, F, M), 0.0, np.zeros(3), np.zeros((3, 3)))
        parent = child
    if number == 0:
        if m.body_mocapid[b] >= 0:
            model.report.changed.append(f"mocap body '{name}' is fixed")
        weld = draft.name("joints", f"{name} fixed")
        draft.joint(weld, "weld", (parent, name), place, pose())
    R = to_matrix(m.body_iquat[b])
    inertia = R @ np.diag(m.body_inertia[b]) @ R.T
    draft.body(name, model.poses[b], float(m.body_mass[b]), m.body_ipos[b].copy(), inertia)
    if m.body_gravcomp[b] and m.body_mass[b]:
        lift = -m.body_gravcomp[b] * m.body_mass[b] * gravity
        at = draft.world_point(name, m.body_ipos[b])
        draft.add("forces", f"{name} gravcomp", type="applied", body=name, force=lift.tolist(), at=at)


def _carried(model: CompiledModel, k: int, parent: str, F: Pose, M: Pose) -> Pose:
    """World pose of a massless body on hinge or slide k (no other joint can be followed by one more)."""
    q, axis = float(model.qpos[model.m.jnt_qposadr[k]]), model.m.jnt_axis[k]
    moved = pose(rotation=about_axis(axis, q)) if int(model.m.jnt_type[k]) == HINGE else pose(q * axis)
    return compose(compose(model.draft.poses[parent], compose(F, moved)), inverse(M))


def _joint(model: CompiledModel, k: int, name: str, parent: str, child: str, place: Pose) -> tuple[Pose, Pose]:
    """Write a joint; its frames on parent and child."""
    m = model.m
    kind, q0 = int(m.jnt_type[k]), float(m.qpos0[m.jnt_qposadr[k]])
    anchor, axis = pose(m.jnt_pos[k].copy()), m.jnt_axis[k].copy()
    limits = None
    limited = m.jnt_limited[k] and not (model.disabled("LIMIT") or model.disabled("CONSTRAINT"))
    if limited and kind in (HINGE, SLIDE):
        limits = m.jnt_range[k].tolist()
    elif limited:
        model.report.left_out.append(f"range of the joint '{name}', which has no single coordinate")
    F, own = compose(place, anchor), {"axis": axis, "limits": limits}
    if kind == HINGE:  # turned back, so that the coordinate is qpos, which is q0 where the file draws the body
        F = compose(F, pose(rotation=about_axis(axis, -q0)))
    elif kind == SLIDE:
        F = compose(F, pose(-q0 * axis))
    elif kind == FREE:
        F, anchor = pose(), pose()
    types = {HINGE: "revolute", SLIDE: "prismatic", BALL: "spherical", FREE: "free"}
    model.draft.joint(name, types[kind], (parent, child), F, anchor, **(own if kind in (HINGE, SLIDE) else {}))
    if limits is not None:
        model.draft.stop(name)
    model.joints.append(JointMap(name, kind, int(m.jnt_qposadr[k]), int(m.jnt_dofadr[k])))
    return F, anchor


def read_armature(model: CompiledModel) -> None:
    """Inertia of rotors that turn with a joint: the joint's own, and what actuators on it or its tendon add."""
    m = model.m
    total = {j.name: float(m.dof_armature[j.v]) for j in model.joints}
    trn = model.mj.mjtTrn
    for k in range(model.actuator_count()):
        own = float(m.actuator_armature[k]) if hasattr(m, "actuator_armature") else 0.0
        if own == 0.0:
            continue
        own *= float(m.actuator_gear[k][0]) ** 2
        kind, target = int(m.actuator_trntype[k]), int(m.actuator_trnid[k][0])
        fixed = model.fixed(target) if kind == int(trn.mjTRN_TENDON) else None
        if kind in (int(trn.mjTRN_JOINT), int(trn.mjTRN_JOINTINPARENT)):
            total[model.joints[target].name] += own
        elif fixed is not None and len(fixed) == 1:
            ((joint, c),) = fixed.items()
            total[joint] += own * c**2
        else:
            name = model.label("ACTUATOR", k) or f"actuator {k}"
            model.report.left_out.append(f"actuator '{name}': its armature, which is not on a single joint")
    for t in range(m.ntendon):
        own = float(m.tendon_armature[t]) if hasattr(m, "tendon_armature") else 0.0
        fixed = model.fixed(t)
        if own and fixed is not None and len(fixed) == 1:
            ((joint, c),) = fixed.items()
            total[joint] += own * c**2
        elif own:
            name = model.label("TENDON", t) or f"tendon {t}"
            model.report.left_out.append(f"tendon '{name}': its armature, which is not on a single joint")
    for j in model.joints:
        if total[j.name] and j.kind == FREE:
            model.report.left_out.append(f"armature of the joint '{j.name}', which is free")
            total[j.name] = 0.0
        elif total[j.name]:
            model.draft.data["joints"][j.name]["armature"] = total[j.name]
    model.report.count("joints with armature", [name for name, x in total.items() if x])
