"""Accelerations of a MuJoCo model whose equalities hold exactly, from MuJoCo's own quantities.

Mass matrix, forces and Jacobians (with their rates, `mj_jacDot`) are MuJoCo's; the saddle point system is solved here:
this is the limit of MuJoCo's soft constraints as they are made stiff.
"""

from __future__ import annotations

import mujoco
import numpy as np


def exact_accelerations(model: mujoco.MjModel, qpos: np.ndarray, qvel: np.ndarray) -> tuple[np.ndarray, float, float]:
    """`qacc`, and how far equalities are from being met in position and in velocity (m or rad, per s)."""
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = qpos, qvel
    mujoco.mj_forward(model, data)
    M = mass_matrix(model, data)
    bits = mujoco.mjtDisableBit
    off = model.opt.disableflags & int(bits.mjDSBL_EQUALITY | bits.mjDSBL_CONSTRAINT)
    rows = [equality(model, data, k) for k in range(model.neq) if model.eq_active0[k] and not off]
    J = np.vstack([r[0] for r in rows]) if rows else np.zeros((0, model.nv))
    gamma = np.concatenate([r[1] for r in rows]) if rows else np.zeros(0)
    n = len(gamma)
    K = np.block([[M, J.T], [J, np.zeros((n, n))]])
    solution = np.linalg.lstsq(K, np.concatenate([data.qfrc_smooth, gamma]), rcond=1e-12)[0]
    equal = data.efc_type[: data.nefc] == int(mujoco.mjtConstraint.mjCNSTR_EQUALITY)
    gap = float(np.abs(data.efc_pos[: data.nefc][equal]).max(initial=0.0))
    return solution[: model.nv], gap, float(np.abs(J @ qvel).max(initial=0.0))


def mass_matrix(model: mujoco.MjModel, data: mujoco.MjData) -> np.ndarray:
    M = np.zeros((model.nv, model.nv))
    try:
        mujoco.mj_fullM(model, data, M)
    except TypeError:  # before MuJoCo 4
        mujoco.mj_fullM(model, M, data.qM)
    return M


def equality(model: mujoco.MjModel, data: mujoco.MjData, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of one equality and -dJ/dt qvel."""
    kind, e = int(model.eq_type[k]), model.eq_data[k]
    a, b = int(model.eq_obj1id[k]), int(model.eq_obj2id[k])
    if kind == int(mujoco.mjtEq.mjEQ_JOINT):
        row = np.zeros((1, model.nv))
        row[0, model.jnt_dofadr[a]] = 1.0
        if b < 0:
            return row, np.zeros(1)
        x = data.qpos[model.jnt_qposadr[b]] - model.qpos0[model.jnt_qposadr[b]]
        p = np.polynomial.Polynomial(e[:5])
        row[0, model.jnt_dofadr[b]] = -p.deriv()(x)
        return row, np.array([p.deriv(2)(x) * data.qvel[model.jnt_dofadr[b]] ** 2])
    if kind == int(mujoco.mjtEq.mjEQ_TENDON):  # a fixed one alone
        row = np.zeros((1, model.nv))
        for w in range(model.tendon_adr[a], model.tendon_adr[a] + model.tendon_num[a]):
            row[0, model.jnt_dofadr[model.wrap_objid[w]]] = model.wrap_prm[w]
        return row, np.zeros(1)
    if int(model.eq_objtype[k]) == int(mujoco.mjtObj.mjOBJ_SITE):
        bodies, points = [int(model.site_bodyid[s]) for s in (a, b)], [data.site_xpos[s] for s in (a, b)]
    else:
        bodies = [a, b]
        anchors = (e[0:3], e[3:6]) if kind == int(mujoco.mjtEq.mjEQ_CONNECT) else (e[3:6], e[0:3])
        points = [data.xpos[i] + data.xmat[i].reshape(3, 3) @ p for i, p in zip(bodies, anchors, strict=True)]
    J, rate = np.zeros((6, model.nv)), np.zeros((6, model.nv))
    for sign, body, point in zip((1.0, -1.0), bodies, points, strict=True):
        one = np.zeros((2, 3, model.nv))
        mujoco.mj_jac(model, data, one[0], one[1], point, body)
        J += sign * one.reshape(6, -1)
        mujoco.mj_jacDot(model, data, one[0], one[1], point, body)
        rate += sign * one.reshape(6, -1)
    rows = (
        3 if kind == int(mujoco.mjtEq.mjEQ_CONNECT) or e[10] == 0.0 else 6
    )  # a weld without torquescale has no others
    return J[:rows], -rate[:rows] @ data.qvel
