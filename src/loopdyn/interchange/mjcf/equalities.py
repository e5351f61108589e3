"""Equalities of a compiled model: joints that close loops, relations of coordinates."""

from __future__ import annotations

import math

import numpy as np

from loopdyn.interchange.draft import Pose, compose, inverse, pose, pose_quaternion
from loopdyn.interchange.mjcf.imported import Array
from loopdyn.interchange.mjcf.model import CompiledModel
from loopdyn.spatial.rotations import perpendicular_frame

CONNECT, WELD, JOINT, TENDON = range(4)  # mjtEq
# Two connects are one hinge if their anchors are this far apart, relative to the model, and equally far on both bodies.
ANCHORS_APART = 1e-6


def read_equalities(model: CompiledModel) -> None:
    """Write all equalities."""
    m = model.m
    connects: dict[tuple[str, str], list[tuple[str, Pose, Pose]]] = {}
    for k in range(m.neq):
        kind = int(m.eq_type[k])
        name = model.label("EQUALITY", k)
        if not m.eq_active0[k]:
            model.report.left_out.append(f"equality '{name or k}', which is not active")
        elif kind == CONNECT:
            ends, F, M = _anchors(model, k)
            if ends[::-1] in connects:
                ends, F, M = ends[::-1], M, F
            connects.setdefault(ends, []).append((name or f"connect {ends[0]} {ends[1]}", F, M))
        elif kind == WELD:
            ends, F, M = _anchors(model, k)
            made = model.draft.name("joints", name or f"weld {ends[0]} {ends[1]}")
            turns = float(m.eq_data[k][10]) == 0.0  # torquescale: the rotation is free
            model.draft.joint(made, "spherical" if turns else "weld", ends, F, M)
            model.loops.append(made)
            if turns:
                model.report.changed.append(f"the weld '{made}' has torquescale 0: it is a ball")
        elif kind == JOINT:
            _polynomial(model, k, name)
        elif kind == TENDON:
            _tendon_equality(model, k, name)
        else:
            model.report.left_out.append(f"equality '{name or k}' of a type that is not known here")
    for ends, anchors in connects.items():
        _connects(model, ends, anchors)


def _anchors(model: CompiledModel, k: int) -> tuple[tuple[str, str], Pose, Pose]:
    """Bodies of a connect or weld, and its frames on them."""
    m, data = model.m, model.m.eq_data[k]
    ids = (int(m.eq_obj1id[k]), int(m.eq_obj2id[k]))
    if int(m.eq_objtype[k]) == int(model.mj.mjtObj.mjOBJ_SITE):
        bodies = [int(m.site_bodyid[s]) for s in ids]
        F, M = (pose_quaternion(m.site_pos[s], m.site_quat[s]) for s in ids)
        if int(m.eq_type[k]) == CONNECT:
            F, M = pose(F[0]), pose(M[0])
    else:
        bodies = list(ids)
        if int(m.eq_type[k]) == CONNECT:
            F, M = pose(data[0:3].copy()), pose(data[3:6].copy())
        else:  # anchor in body 2, then the pose of body 2 in body 1
            F, M = pose_quaternion(data[3:6], data[6:10]), pose(data[0:3].copy())
    return (model.bodies[bodies[0]], model.bodies[bodies[1]]), F, M


def _connects(model: CompiledModel, ends: tuple[str, str], anchors: list[tuple[str, Pose, Pose]]) -> None:
    """Balls; the first two that lie apart are a hinge."""
    draft = model.draft
    while anchors:
        name, F, M = anchors.pop(0)
        partner = next((a for a in anchors if _apart(F[0], a[1][0], M[0], a[2][0])), None)
        made = draft.name("joints", name)
        model.loops.append(made)
        if partner is None:
            draft.joint(made, "spherical", ends, F, M)
            continue
        anchors.remove(partner)
        # z along the two anchors, and the angle zero in the drawn pose
        R_F = perpendicular_frame(partner[1][0] - F[0]).T
        R_12 = compose(inverse(draft.poses[ends[0]]), draft.poses[ends[1]])[1]
        x_in_M = R_12.T @ R_F[:, 0]
        R_M = perpendicular_frame(partner[2][0] - M[0], x_in_M).T
        draft.joint(made, "revolute", ends, (F[0], R_F), (M[0], R_M), axis=[0.0, 0.0, 1.0])
        model.report.changed.append(f"the connects '{name}' and '{partner[0]}' are one hinge, '{made}'")


def _polynomial(model: CompiledModel, k: int, name: str) -> None:
    """y - y0 = sum a_i (x - x0)^i of two joint coordinates, or y - y0 = a_0 of one."""
    m = model.m
    a = [float(c) for c in m.eq_data[k][:5]]
    y = model.joints[int(m.eq_obj1id[k])]
    y0 = float(m.qpos0[y.q])
    wanted = name or f"equality {y.name}"
    if int(m.eq_obj2id[k]) < 0:
        model.draft.add("constraints", wanted, type="coupler", terms={y.name: 1.0}, offset=y0 + a[0])
        return
    x = model.joints[int(m.eq_obj2id[k])]
    x0 = float(m.qpos0[x.q])
    if not any(a[2:]):
        terms = {y.name: 1.0, x.name: -a[1]}
        model.draft.add("constraints", wanted, type="coupler", terms=terms, offset=y0 + a[0] - a[1] * x0)
        return
    d = f"(x - {x0!r})"
    poly = " + ".join(f"({c!r})*{d}**{i}" for i, c in enumerate(a) if c != 0.0)
    formula = f"y - {y0!r} - ({poly})"
    model.draft.add("constraints", wanted, type="relation", formula=formula, coordinates={"y": y.name, "x": x.name})


def _tendon_equality(model: CompiledModel, k: int, name: str) -> None:
    m = model.m
    a = m.eq_data[k][:5]
    first, second = int(m.eq_obj1id[k]), int(m.eq_obj2id[k])
    one, two = (model.fixed(t) if t >= 0 else {} for t in (first, second))
    if one is None or two is None or np.any(a[2:]):
        model.report.left_out.append(f"equality '{name or k}' of tendons that is not linear in joint coordinates")
        return
    terms = dict(one)
    for joint, c in two.items():
        terms[joint] = terms.get(joint, 0.0) - float(a[1]) * c
    rest = float(m.tendon_length0[first]) + float(a[0])
    rest -= float(a[1]) * float(m.tendon_length0[second]) if second >= 0 else 0.0
    model.draft.add("constraints", name or f"tendons {k}", type="coupler", terms=terms, offset=rest)


def _apart(a: Array, b: Array, c: Array, d: Array) -> bool:
    """Whether anchors a, b on one body and c, d on another span an axis."""
    one, two = float(np.linalg.norm(b - a)), float(np.linalg.norm(d - c))
    scale = max(1.0, *(float(np.abs(x).max()) for x in (a, b, c, d)))
    return min(one, two) > ANCHORS_APART * scale and math.isclose(one, two, rel_tol=ANCHORS_APART)
