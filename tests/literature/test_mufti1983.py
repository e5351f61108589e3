"""Mufti 1983: every equation against numbers from independent solutions (50-digit Lagrange, free-body recursion).

The numbers of `data/mufti1983.json` belong to the 6-body tree of the report's Fig. 3a, closed as in Fig. 6.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import minimize
from tests.literature import mufti1983 as mufti

import loopdyn as ld
from loopdyn.formulations.absolute.formulation import Absolute
from loopdyn.formulations.absolute.kernels import by_complement, complement_by_qr
from loopdyn.formulations.oracle import Oracle
from loopdyn.loops.rank import decide
from loopdyn.spatial.rotations import about_axis, from_matrix
from loopdyn.system.system import State

TARGETS = json.loads((Path(__file__).parent / "data" / "mufti1983.json").read_text())
DATA = TARGETS["mufti_data"]
N = 6
ARCS = [(a - 1, b - 1) for a, b in DATA["arcs_1based"]]
MASS, INERTIA = np.array(DATA["m"]), np.array(DATA["I"])
GRAVITY = np.array(DATA["gravity"])
AXES = np.eye(3)
BALL = [(0, 1, 2)] * 5
MIXED = [(0, 1), (2,), (0, 1, 2), (1,), (1, 2)]  # h1 universal x,y; h2 pin z; h3 ball; h4 pin y; h5 universal y,z
EXACT = 1e-10
ARM = {tuple(int(k) - 1 for k in key[2:].split(",")): np.array(v) for key, v in DATA["lever_arms"].items()}
ARMS = [[ARM[plus, j], ARM[minus, j]] for j, (plus, minus) in enumerate(ARCS)]  # body axes; hinges count from 1 there


def close(found, wanted, tolerance=EXACT):
    np.testing.assert_allclose(np.ravel(found), np.ravel(wanted), rtol=0, atol=tolerance)


def euler(angles):
    """Rx(a) Ry(b) Rz(c)."""
    return about_axis(AXES[0], angles[0]) @ about_axis(AXES[1], angles[1]) @ about_axis(AXES[2], angles[2])


def turned_joint(R, W, axes, angles, rates):
    """Rotation and angular velocity beyond a joint; its axes P and their rates."""
    P, P_dot = [], []
    for k, angle, rate in zip(axes, angles, rates, strict=True):
        p = R @ AXES[k]
        P.append(p)
        P_dot.append(np.cross(W, p))
        W = W + rate * p
        R = R @ about_axis(AXES[k], angle)
    return R, W, np.array(P).T, np.array(P_dot).T


def constraint_axes(P, P_dot, W):
    """Q with P^T Q = 0, and its rate; W turns with the first axis."""
    if P.shape[1] == 3:
        return np.zeros((3, 0)), np.zeros((3, 0))
    if P.shape[1] == 1:
        Q = np.linalg.svd(P)[0][:, 1:]
        return Q, np.cross(W, Q.T).T
    if P.shape[1] == 0:
        return np.eye(3), np.zeros((3, 3))
    n = np.cross(P[:, 0], P[:, 1])
    n_dot = np.cross(P_dot[:, 0], P[:, 1]) + np.cross(P[:, 0], P_dot[:, 1])
    s = np.linalg.norm(n)
    q = n / s
    return q[:, None], ((n_dot - q * (q @ n_dot)) / s)[:, None]


class Pose:
    """Kinematics of the tree from joint angles."""

    def __init__(self, joints=BALL, gamma=None, gamma_dot=None, R1=None, W1=None, slider=None):
        gamma = DATA["gamma"] if gamma is None else gamma
        gamma_dot = DATA["gamma_dot"] if gamma_dot is None else gamma_dot
        self.R, self.W = np.zeros((N, 3, 3)), np.zeros((N, 3))
        a, rate = DATA["euler_xyz_body1"], DATA["euler_rates_body1"]
        R, W, *_ = turned_joint(np.eye(3), np.zeros(3), (0, 1, 2), a, rate)
        self.R[0], self.W[0] = (R, W) if R1 is None else (R1, W1)
        self.P, self.P_dot, self.Q, self.Q_dot = [], [], [], []
        for j, ((plus, minus), axes) in enumerate(zip(ARCS, joints, strict=True)):
            angles, rates = gamma[j][: len(axes)], gamma_dot[j][: len(axes)]
            self.R[minus], self.W[minus], P, P_dot = turned_joint(self.R[plus], self.W[plus], axes, angles, rates)
            self.add(P.reshape(3, -1), P_dot.reshape(3, -1), self.W[plus])
        self.rates = np.concatenate([r[: len(axes)] for r, axes in zip(gamma_dot, joints, strict=True)])
        self.slider = slider
        self.arms = np.array([[self.R[p] @ ARMS[j][0], self.R[q] @ ARMS[j][1]] for j, (p, q) in enumerate(ARCS)])

    def add(self, P, P_dot, W):
        Q, Q_dot = constraint_axes(P, P_dot, W)
        for values, value in zip((self.P, self.P_dot, self.Q, self.Q_dot), (P, P_dot, Q, Q_dot), strict=True):
            values.append(value)

    @property
    def r(self):
        """Positions of the centres of mass, by (7)."""
        r = np.zeros((N, 3))
        r[0] = DATA["r1"]
        for j, (plus, minus) in enumerate(ARCS):
            r[minus] = r[plus] + self.arms[j, 0] - self.arms[j, 1]
        return r


def loads(extra=True):
    F = MASS[:, None] * GRAVITY
    if not extra:
        return {"F": F, "G": np.zeros((N, 3))}
    return {"F": F + np.array(DATA["F_extra"]), "G": np.array(DATA["G"]), "g": np.array(DATA["g_hinge"])}


def world_inertia(R):
    return R @ INERTIA @ R.transpose(0, 2, 1)


def tree(pose, with_axes=True, **given):
    axes = {"P": pose.P, "P_dot": pose.P_dot, "Q": pose.Q, "Q_dot": pose.Q_dot} if with_axes else {}
    return mufti.Bodies(
        m=MASS, I=world_inertia(pose.R), W=pose.W, arcs=ARCS, arms=pose.arms, **(loads() | axes | given)
    )


def closed(target, extra=True):
    """The ball tree of e1 with the cut hinges and velocities of a target."""
    pose = Pose()
    return closed_at(target, pose.R, np.array(target["omega_inertial"]), extra)


def closed_at(target, R, W, extra=True):
    cut = sorted({int(key.split(",")[1]) for key in target["lever_arms_cut"]})
    arcs, arms = list(ARCS), [[R[p] @ ARMS[j][0], R[q] @ ARMS[j][1]] for j, (p, q) in enumerate(ARCS)]
    for h in cut:
        ends = target.get("cut_hinges_1based", {"h6": [1, 5], "h7": [0, 6]})[f"h{h}"]
        arcs.append((ends[0] - 1, ends[1] - 1))
        local = [np.array(target["lever_arms_cut"].get(f"l_{e},{h}", (0, 0, 0))) for e in ends]
        arms.append([R[e - 1] @ arm if e else arm for e, arm in zip(ends, local, strict=True)])
    given = loads(extra)
    if "g" in given:
        given["g"] = np.vstack([given["g"], np.zeros((len(cut), 3))])
    return mufti.Bodies(m=MASS, I=world_inertia(R), W=W, arcs=arcs, arms=np.array(arms), cuts=len(cut), **given)


def check(answer, target, f="f", tolerance=EXACT):
    close(answer.rdd, target["rdd"], tolerance)
    close(answer.wd, target["wdot_inertial"], tolerance)
    if f:
        close(answer.f, target[f], tolerance)


# ------------------------------------------------------------------------------- trees of ball joints


E1, E2, E3, E4 = (TARGETS[k] for k in ("e1_ball_tree", "e2_mixed_tree", "e3_remark3_base", "e4_remark5_prismatic"))
BALL_SOLVERS = {
    "eq10": mufti.kkt,
    "eq10_sparse": lambda b: mufti.kkt(b, sparse=True),
    "eq14": mufti.hinge_forces,
    "eq14_sparse": lambda b: mufti.hinge_forces(b, sparse=True),
    "eq15": mufti.turning_and_forces,
    "eq15_sparse": lambda b: mufti.turning_and_forces(b, sparse=True),
    "eq16": mufti.turning_numerically,
    "eq28": mufti.turning,
    "eq38": mufti.turning_by_blocks,
}


def test_eq1_incidence_matrix_of_fig_3a():
    wanted = [[1, 1, 0, 0, 0], [-1, 0, 1, 1, 1], [0, -1, 0, 0, 0], [0, 0, -1, 0, 0], [0, 0, 0, -1, 0], [0, 0, 0, 0, -1]]
    close(mufti.incidence(ARCS, N), wanted, 0)


def test_eq25_path_matrix_of_fig_3a():
    T = tree(Pose()).T
    wanted = -np.eye(N)
    wanted[0] = -1
    wanted[1, 3:] = -1
    close(T, wanted, 0)


def test_eq7_positions_and_orientations_of_the_data():
    pose = Pose()
    close(pose.R, E1["R"])
    close(pose.r, E1["r"])
    close(pose.W, E1["omega_inertial"])


@pytest.mark.parametrize("name", BALL_SOLVERS)
def test_e1_eqs_10_14_15_16_28_38_ball_tree(name):
    check(BALL_SOLVERS[name](tree(Pose())), E1)


def test_e1_eq35_inertia_matrix():
    b = tree(Pose())
    close(b.K, E1["K"])
    close(mufti.inertia_by_blocks(b), E1["K"])


def test_eqs_18_19_inverse_of_the_lagrangian_matrix():
    b = tree(Pose())
    C, M, T1, T2 = b.C, np.diag(b.m), b.T[:1], b.T2
    both = np.linalg.inv(np.block([[M, -C], [-C.T, np.zeros((5, 5))]]))
    E = T1.T @ np.linalg.inv(T1 @ M @ T1.T) @ T1
    close(E, np.ones((N, N)) / b.m.sum())
    Mi = np.linalg.inv(M)
    close(np.block([[Mi - Mi @ C @ b.B, -Mi @ C @ b.A], [-b.B, -b.A]]), both)
    close(np.block([[E, E @ M @ T2.T - T2.T], [T2 @ M @ E - T2, T2 @ M @ E @ M @ T2.T - T2 @ M @ T2.T]]), both)


def test_eq31_barycentric_products():
    b = tree(Pose())
    d = mufti.tilde(b.D)
    for i in range(N):
        for j in range(N):
            if i != j:
                total = -np.einsum("k,kxy,kyz->xz", b.m, d[i], d[j])
                close(total, b.m.sum() * d[i, j] @ d[j, i])


def test_eqs_36_37_velocity_terms_without_hats():
    """-D~ M D^^T 1_n - h^ = -h' + N 1_n."""
    b = tree(Pose())
    long = -b.Dt @ (b.m[:, None] * b.Dh.sum(axis=0)).ravel() + b.u2 + b.Dt @ b.u1
    close(mufti.right_side_by_blocks(b, b.K), long)
    close(b.u2_bar, long)


def gauss(b):
    """Weight and target of the least-squares form of (39), and its constraints."""
    J = np.block([[b.M, np.zeros_like(b.M)], [np.zeros_like(b.M), b.Ib]])
    u = np.concatenate([b.u1, b.u2])
    return J, np.linalg.solve(J, u)


def test_eq39_least_constraint_by_an_independent_solver():
    b = tree(Pose(MIXED))
    J, free = gauss(b)
    inverse = np.linalg.inv(np.linalg.cholesky(J).T)  # x = free + inverse y turns (39) into y^T y / 2
    G, right = b.H.T @ inverse, b.gamma - b.H.T @ free
    found = minimize(
        lambda y: 0.5 * y @ y,
        np.zeros(len(free)),
        jac=lambda y: y,
        constraints={"type": "eq", "fun": lambda y: G @ y - right, "jac": lambda y: G},
        method="SLSQP",
        options={"ftol": 1e-14},
    )
    assert found.success
    x = free + inverse @ found.x
    close(x[:18], E2["rdd"], 1e-8)
    close(x[18:], E2["wdot_inertial"], 1e-8)


def test_eq39_least_constraint_by_weighted_least_squares():
    """Constraints removed by one QR, the rest an unconstrained least-squares problem."""
    b = tree(Pose(MIXED))
    J, free = gauss(b)
    Q, R = np.linalg.qr(b.H, mode="complete")
    k = b.H.shape[1]
    x0 = Q[:, :k] @ np.linalg.solve(R[:k].T, b.gamma)
    root = np.linalg.cholesky(J).T
    z = np.linalg.lstsq(root @ Q[:, k:], root @ (free - x0), rcond=None)[0]
    x = x0 + Q[:, k:] @ z
    close(x[:18], E2["rdd"])
    close(x[18:], E2["wdot_inertial"])


@pytest.mark.parametrize("choice", ["eq40d", "qr", "svd", "rows"])
def test_eq40_dalembert_without_multipliers(choice):
    b = tree(Pose())
    J, free = gauss(b)
    H = b.H
    Y, Z = {
        "eq40d": lambda: (np.linalg.pinv(H.T), mufti.root_and_turning(b)[0]),
        "qr": lambda: complement_by_qr(H),
        "svd": lambda: mufti.complement_by_svd(H, H.shape[1]),
        "rows": lambda: mufti.complement_by_rows(np.roll(H, -18, axis=0)),
    }[choice]()
    if choice == "rows":  # last come the rows of r_2 to r_6, which are independent
        Y, Z = np.roll(Y, 18, axis=0), np.roll(Z, 18, axis=0)
    close(H.T @ Z, np.zeros((H.shape[1], Z.shape[1])))
    close(H.T @ Y, np.eye(H.shape[1]))
    x, y = by_complement(J, J @ free, b.gamma, Y, Z)
    close(x, np.concatenate([np.ravel(E1["rdd"]), np.ravel(E1["wdot_inertial"])]))
    close(y, E1["f"])


# ---------------------------------------------------------------------------- given base (Remark 3)


def grounded(pose, given, target, **more):
    """The tree on hinge 0, whose point moves as given."""
    arm = pose.R[0] @ np.array(target.get("l_1_0", given.get("l10")))
    base = np.zeros((N, 3))
    base[0] = given["a"]
    g = np.vstack([target.get("g0", given.get("g0")), DATA["g_hinge"]])
    return mufti.Bodies(
        m=MASS,
        I=world_inertia(pose.R),
        W=pose.W,
        arcs=[(-1, 0), *ARCS],
        arms=np.concatenate([[[np.zeros(3), arm]], pose.arms]),
        base=base,
        **(loads() | {"g": g} | more),
    )


@pytest.mark.parametrize("name", [n for n in BALL_SOLVERS if n != "eq38"])
def test_e3_remark3_given_base(name):
    b = grounded(Pose(), E3["base"], E3)
    check(BALL_SOLVERS[name](b), E3)


E10 = TARGETS["e10_grounded_mixed"]


def mixed_on_base(R0, W0, W0_dot, target):
    R1, W1, P0, P0_dot = turned_joint(R0, W0, (0, 1), E10["gamma0"], E10["gamma0_dot"])
    pose = Pose(MIXED, R1=R1, W1=W1)
    Q0, Q0_dot = constraint_axes(P0, P0_dot, W0)
    axes = {
        "P": [P0, *pose.P],
        "P_dot": [P0_dot, *pose.P_dot],
        "Q": [Q0, *pose.Q],
        "Q_dot": [Q0_dot, *pose.Q_dot],
        "W0": W0,
        "W0_dot": W0_dot,
    }
    return grounded(pose, E10["base"], E10, **axes), np.concatenate([E10["gamma0_dot"], pose.rates])


@pytest.mark.parametrize("rotating", [False, True])
def test_e10_eqs_49_50_51_61_mixed_tree_on_a_given_base(rotating):
    target = E10["rotating_base"] if rotating else E10
    if rotating:
        R0, W0, W0_dot = euler(target["R0_euler_xyz"]), np.array(target["W0"]), np.array(target["W0dot"])
    else:
        R0, W0, W0_dot = np.eye(3), np.zeros(3), np.zeros(3)
    b, rates = mixed_on_base(R0, W0, W0_dot, target)
    answer, _, gamma_ddot = mufti.joint_rates(b, rates)
    close(gamma_ddot, target["gamma_ddot"])
    for found in (answer, mufti.kkt(b), mufti.kkt(b, sparse=True), mufti.hinge_forces(b), mufti.turning_and_torques(b)):
        check(found, target)
        close(b.Qb @ found.lam, target["gc"])


# ---------------------------------------------------------------------- universal, pin, prismatic joints


MIXED_SOLVERS = {
    "eq49": mufti.kkt,
    "eq49_sparse": lambda b: mufti.kkt(b, sparse=True),
    "eq50": mufti.hinge_forces,
    "eq50_sparse": lambda b: mufti.hinge_forces(b, sparse=True),
    "eq51": mufti.turning_and_torques,
}


@pytest.mark.parametrize("name", MIXED_SOLVERS)
def test_e2_eqs_49_50_51_mixed_tree(name):
    b = tree(Pose(MIXED))
    answer = MIXED_SOLVERS[name](b)
    check(answer, E2)
    close(b.Qb @ answer.lam, E2["constraint_torque_gc"])


def test_e2_eq61_joint_accelerations():
    pose = Pose(MIXED)
    b = tree(pose)
    answer, w1_dot, gamma_ddot = mufti.joint_rates(b, pose.rates)
    check(answer, E2)
    close(w1_dot, E2["omega1dot"])
    close(gamma_ddot, E2["gamma_ddot"])
    close(b.Qb @ answer.lam, E2["constraint_torque_gc"])


def test_eqs_42_45_47_60_relative_angular_velocities():
    pose = Pose(MIXED)
    b = tree(pose)
    omega = -(b.C.T @ b.W).ravel()
    close(omega, b.Pb @ pose.rates)
    close(b.Qb.T @ omega, np.zeros(b.Qb.shape[1]))
    close(np.tile(b.W[0], N) - mufti.expand(b.T2).T @ b.Pb @ pose.rates, b.W)


def prismatic():
    """Hinge 3 a slider along an axis of body 2, its lever arm reaching to the point of body 4 [Remark 5]."""
    joints = [MIXED[0], MIXED[1], (), MIXED[3], MIXED[4]]
    pose = Pose(joints)
    p = pose.R[1] @ np.array(E4["axis_in_body2"])
    pose.arms[2, 0] += E4["s"] * p
    extra = np.zeros((5, 3))
    extra[2] = 2 * E4["sdot"] * np.cross(pose.W[1], p)
    Q_bar = [np.eye(3)] * 5
    Q_bar[2] = np.linalg.svd(p[:, None])[0][:, 1:]
    return pose, tree(pose, u3_extra=extra, Q_bar_axes=Q_bar), p


@pytest.mark.parametrize("name", ["eq49", "eq49_sparse", "eq50", "eq50_sparse"])
def test_e4_remark5_prismatic_hinge(name):
    pose, b, p = prismatic()
    close(pose.r, E4["r"])
    answer = MIXED_SOLVERS[name](b)
    check(answer, E4, f=None)
    close(b.Q_bar @ answer.f, E4["f_inertial"])
    close(b.Qb @ answer.lam, E4["gc_about_sliding_hinge_point"])
    hinge = -(b.C.T @ answer.rdd).ravel() - b.Lt.T @ answer.wd.ravel() - b.u3
    close(p @ hinge.reshape(-1, 3)[2], E4["sddot"])


# ------------------------------------------------------------------------------------- closed chains


E5, E5B, E6, E7 = (
    TARGETS[k]
    for k in (
        "e5_closed_fig6_full_rank",
        "e5b_cut_to_ground",
        "e6_redundant_double_ball",
        "e7_redundant_duplicated_hinge",
    )
)


@pytest.mark.parametrize(
    "solve",
    [mufti.kkt, lambda b: mufti.kkt(b, sparse=True), mufti.hinge_forces, mufti.closed_by_cuts],
    ids=["eq63", "eq63_sparse", "eq63_by_eq14", "eq73"],
)
@pytest.mark.parametrize("target", [E5, E5B], ids=["e5", "e5b_cut_to_ground"])
def test_e5_e5b_eqs_63_73_closed_chains(target, solve):
    check(solve(closed(target)), target, "lambda_c")


def test_e5_eq73_as_printed_is_right_for_cuts_between_bodies_only():
    found = mufti.printed_eq73(closed(E5))
    check(found, E5, f=None)
    close(found.f, E5["lambda_c"][5:])
    assert np.abs(mufti.printed_eq73(closed(E5B)).rdd - E5B["rdd"]).max() > 0.1


def test_e5_eq64_rank():
    assert np.linalg.matrix_rank(closed(E5).H) == E5["rank_H"]


@pytest.mark.parametrize("target", [E6, E7], ids=["e6_double_ball", "e7_duplicated_hinge"])
def test_e6_e7_eqs_A11_A12_dependent_constraints(target):
    b = closed(target)
    assert b.H.shape[1] == target["columns"]
    s = np.linalg.svd(b.H, compute_uv=False)
    close(s[: target["rank_H"]], target["singular_values"][: target["rank_H"]])
    J = np.block([[b.M, np.zeros_like(b.M)], [np.zeros_like(b.M), b.Ib]])
    x, y = mufti.by_svd(J, np.concatenate([b.u1, b.u2]), b.H, b.gamma, target["rank_H"])
    close(x[:18], target["rdd"])
    close(x[18:], target["wdot_inertial"])
    close(y, target["lambda_min_norm"])
    close(np.linalg.norm(y), target["lambda_norm"])
    Y, Z = mufti.complement_by_svd(b.H, target["rank_H"])
    close(by_complement(J, np.concatenate([b.u1, b.u2]), b.gamma, Y, Z)[0], x)
    check(mufti.closed_by_cuts(b, target["rank_H"] - 15), target, f=None)


def test_eqs_A3_A4_A5_cholesky_factor_by_qr():
    b = closed(E5)
    J = np.block([[b.M, np.zeros_like(b.M)], [np.zeros_like(b.M), b.Ib]])
    x, y = mufti.by_qr(J, np.concatenate([b.u1, b.u2]), b.H, b.gamma)
    close(x[:18], E5["rdd"])
    close(y, E5["lambda_c"])
    R = np.linalg.qr(np.linalg.solve(np.linalg.cholesky(J), b.H), mode="r")
    close(R.T @ R, b.H.T @ np.linalg.solve(J, b.H))


def test_f1_pin_four_bar_in_space_redundant():
    target, four = TARGETS["f1_spatial_pin_fourbar_redundant"], TARGETS["c_reactions"]
    b = pin_four_bar(four)
    assert b.H.shape[1] == target["columns"]
    J = np.block([[b.M, np.zeros_like(b.M)], [np.zeros_like(b.M), b.Ib]])
    s = np.linalg.svd(b.H, compute_uv=False)
    assert np.count_nonzero(s > 1e-10) == target["rank"]
    close(s[: target["rank"]], target["singular_values"][: target["rank"]])
    x, y = mufti.by_svd(J, np.concatenate([b.u1, b.u2]), b.H, b.gamma, target["rank"])
    close(y, target["lambda_min_norm"])
    # angles are measured clockwise from +y
    close(np.diff(np.concatenate([[0.0], -x[9:].reshape(3, 3)[:, 2]])), target["qdd"])
    close(y[9:12], target["force_on_link3_at_O4"])
    null = np.linalg.svd(b.H)[2][target["rank"] :]
    unique = np.flatnonzero(np.abs(null).max(axis=0) < 1e-10)
    assert unique.tolist() == target["unique_components_0based"]


def pin_four_bar(four):
    lengths = four["L"][1:]
    m, g = np.array(four["m"]), four["g"]
    q, qd = np.cumsum(four["q"]), np.cumsum(four["qd"])
    R = np.array([about_axis(AXES[2], np.pi / 2 - a) for a in q])
    W = np.array([[0, 0, -w] for w in qd])
    J = m * np.array(lengths) ** 2 / 12
    half = np.array([R[i] @ [length / 2, 0, 0] for i, length in enumerate(lengths)])
    arms = np.zeros((4, 2, 3))
    arms[0, 1] = -half[0]
    arms[1] = half[0], -half[1]
    arms[2] = half[1], -half[2]
    arms[3, 0] = half[2]
    F = m[:, None] * np.array([0, -g, 0.0])
    F[1, 2] += 3.0
    G = np.zeros((3, 3))
    G[2] = [0.5, -0.2, 0.0]
    Q = [AXES[:, :2]] * 4
    b = mufti.Bodies(
        m=m,
        I=np.array([R[i] @ np.diag([0.001, J[i], J[i]]) @ R[i].T for i in range(3)]),
        W=W,
        F=F,
        G=G,
        arcs=[(-1, 0), (0, 1), (1, 2), (2, -1)],
        arms=arms,
        cuts=1,
        Q=Q,
        Q_dot=[np.zeros((3, 2))] * 4,
    )
    return b


# -------------------------------------------------------------------------------------- trajectories


def quaternion_rate(W, q):
    w, v = q[:, :1], q[:, 1:]
    return 0.5 * np.hstack([-np.sum(W * v, axis=1, keepdims=True), w * W + np.cross(W, v)])


def rotations(q):
    from loopdyn.spatial.rotations import to_matrix

    return np.array([to_matrix(x / np.linalg.norm(x)) for x in q])


def test_e8_eq61_mixed_tree_trajectory():
    """Unknowns: r_1, orientation of body 1 and joint angles (a ball by its three angles)."""
    target = TARGETS["e8_mixed_tree_trajectory"]
    sizes = np.cumsum([0] + [len(j) for j in MIXED])
    start = Pose(MIXED)

    def split(y):
        gamma = [y[10 + sizes[j] : 10 + sizes[j + 1]] for j in range(5)]
        rate = [y[25 + sizes[j] : 25 + sizes[j + 1]] for j in range(5)]
        return Pose(MIXED, gamma, rate, rotations(y[None, 3:7])[0], y[22:25])

    def rhs(t, y):
        pose = split(y)
        answer, w1_dot, gamma_ddot = mufti.joint_rates(tree(pose, **loads(False), g=None), pose.rates)
        turn = quaternion_rate(y[None, 22:25], y[None, 3:7])[0]
        return np.concatenate([y[19:22], turn, np.zeros(3), y[25:], answer.rdd[0], w1_dot, gamma_ddot])

    gamma0 = np.concatenate([g[: len(j)] for g, j in zip(DATA["gamma"], MIXED, strict=True)])
    y0 = np.concatenate(
        [DATA["r1"], from_matrix(start.R[0]), np.zeros(3), gamma0, DATA["r1dot"], start.W[0], start.rates]
    )
    end = solve_ivp(rhs, (0, target["T"]), y0, method="DOP853", rtol=1e-12, atol=1e-12).y[:, -1]
    pose = split(end)
    close(end[10:19], target["gamma"], 1e-9)
    close(end[25:], target["gamma_dot"], 1e-9)
    close(pose.R, target["R"], 1e-9)
    close(pose.W, target["omega_inertial"], 1e-9)
    close(end[:3], target["r"][0], 1e-9)
    close(end[19:22], target["rdot"][0], 1e-9)


def test_e9_eq63_closed_chain_trajectory():
    target = TARGETS["e9_closed_fig6_trajectory"]

    def rhs(t, y):
        _, q, v, W = np.split(y, [18, 42, 60])
        W = W.reshape(N, 3)
        answer = mufti.hinge_forces(closed_at(E5, rotations(q.reshape(N, 4)), W, extra=False))
        turn = quaternion_rate(W, q.reshape(N, 4))
        return np.concatenate([v, turn.ravel(), answer.rdd.ravel(), answer.wd.ravel()])

    quaternions = np.array([from_matrix(R) for R in Pose().R])
    y0 = np.concatenate([np.ravel(x) for x in (E1["r"], quaternions, E5["rdot"], E5["omega_inertial"])])
    end = solve_ivp(rhs, (0, target["T"]), y0, method="DOP853", rtol=1e-12, atol=1e-12).y[:, -1]
    close(end[:18], target["r"], 1e-9)
    close(rotations(end[18:42].reshape(N, 4)), target["R"], 1e-9)
    close(end[42:60], target["rdot"], 1e-9)
    close(end[60:], target["omega_inertial"], 1e-9)


# ------------------------------------------------------------------- the same as mechanisms of loopdyn


def frame(position, R=None):
    return ld.Frame(position=tuple(np.asarray(position, float).tolist()), rotation=None if R is None else rotation(R))


def rotation(R):
    return ld.joints.Rotation(quaternion=tuple(from_matrix(R).tolist()))


def vector(x):
    return tuple(np.asarray(x, float).tolist())


def joint_of(axes):
    if len(axes) == 3:
        return ld.Spherical()
    if len(axes) == 2:
        return ld.Universal(axis1=vector(AXES[axes[0]]), axis2=vector(AXES[axes[1]]))
    return ld.Revolute(axis=vector(AXES[axes[0]]))


def mechanism(R, r, joints=BALL, torque_on_1=(0, 0, 0)):
    """The 6-body tree at a pose, its loads as applied forces."""
    m = ld.Mechanism("mufti", gravity=vector(GRAVITY))
    torque = np.array(DATA["G"]) + mufti.incidence(ARCS, N) @ np.array(DATA["g_hinge"])
    torque[0] += torque_on_1
    for i in range(N):
        m.bodies[f"b{i + 1}"] = ld.Body(
            mass=MASS[i], com=(0, 0, 0), inertia=INERTIA[i], axes="body", pose=frame(r[i], R[i])
        )
        m.add_force(
            f"load{i + 1}",
            ld.forces.AppliedForce(
                body=f"b{i + 1}", at=vector(r[i]), force=vector(DATA["F_extra"][i]), torque=vector(torque[i])
            ),
        )
    for j, (plus, minus) in enumerate(ARCS):
        spec = joint_of(joints[j]) if joints[j] else ld.Prismatic(axis=vector(E4["axis_in_body2"]))
        join(m, f"h{j + 1}", spec, f"b{plus + 1}", f"b{minus + 1}", ARMS[j])
    return m


def join(m, name, spec, parent, child, arms):
    m.joints[name] = spec.model_copy(
        update={"parent": parent, "child": child, "parent_frame": frame(arms[0]), "child_frame": frame(arms[1])}
    )


def close_loops(m, target, r, R):
    for h in sorted({int(key.split(",")[1]) for key in target["lever_arms_cut"]}):
        ends = target.get("cut_hinges_1based", {"h6": [1, 5], "h7": [0, 6]})[f"h{h}"]
        arms = [np.array(target["lever_arms_cut"].get(f"l_{e},{h}", (0, 0, 0))) for e in ends]
        if ends[0] == 0:
            arms[0] = r[5] + R[5] @ arms[1]
        join(m, f"h{h}", ld.Spherical(), f"b{ends[0]}" if ends[0] else "ground", f"b{ends[1]}", arms)
    return m


def moving_state(system, rdot, W):
    """The reference pose with the speeds that give the bodies these velocities."""
    still = system.state()
    rest = ld.tree.body_motion(system, still)
    rows, twist = [], []
    for i in range(N):
        k = rest.bodies.index(f"b{i + 1}")
        rows.append(ld.tree.open_tree_body_jacobian(system, f"b{i + 1}", still))
        twist.append(np.concatenate([W[i] - rest.angular_velocity[k], rdot[i] - rest.velocity[k]]))
    v, *_ = np.linalg.lstsq(np.vstack(rows), np.concatenate(twist), rcond=None)
    close(np.vstack(rows) @ v, np.concatenate(twist), 1e-12)
    return State(0.0, still.q, v)


def bodies_of(system, state, a):
    motion = ld.tree.body_motion(system, state, a)
    order = [motion.bodies.index(f"b{i + 1}") for i in range(N)]
    return motion.acceleration[order], motion.angular_acceleration[order]


METHODS = [Oracle()]
METHODS += [
    Absolute(solver=s, dependent=d)
    for s in ("kkt", "sparse", "schur", "barycentric", "nullspace")
    for d in ("qr", "svd")
]


def check_mechanism(m, rdot, W, target, forces=None, cuts=("all", None), rank=None, minimum_norm=None):
    """Accelerations of all bodies, and forces in the hinges where all joints are cut."""
    for cut in cuts:
        system = m.compile(cuts=cut)
        state = moving_state(system, np.array(rdot), np.array(W))
        decided = decide(system, state)
        if rank is not None and cut == "all":
            assert decided.count == rank
        for method in METHODS:
            solution = method.prepare(system, decided)(state.t, state.q, state.v)
            rdd, wd = bodies_of(system, state, solution.a)
            close(rdd, target["rdd"])
            close(wd, target["wdot_inertial"])
            if cut == "all" and forces is not None:
                close(hinge_loads(system, solution.lam), forces)
            if cut == "all" and minimum_norm is not None and getattr(method, "dependent", "") == "svd":
                close(hinge_loads(system, solution.lam), minimum_norm)


def hinge_loads(system, lam):
    """Constraint forces on j+ in inertial axes, by hinge: ours act on the child, in axes of the joint on the parent."""
    found = []
    for name in sorted(n for n in system.joints if n.startswith("h")):
        j = system.joints[name]
        axes = system.reference_poses[j.parent][1] @ j.F[1]
        rows = {row: lam[system.constraint_rows.index(f"{name}.{row}")] for row in j.spec.rows_when_cut}
        found.append(-axes @ [rows.get(f, 0.0) for f in ("fx", "fy", "fz")])
    return np.array(found)


def test_e1_as_a_mechanism():
    pose = Pose()
    m = mechanism(pose.R, pose.r)
    check_mechanism(m, E1["rdot"], E1["omega_inertial"], E1, E1["f"])


def test_e2_as_a_mechanism():
    pose = Pose(MIXED)
    m = mechanism(pose.R, pose.r, MIXED)
    check_mechanism(m, E2["rdot"], E2["omega_inertial"], E2, E2["f"])
    system = m.compile()
    state = moving_state(system, np.array(E2["rdot"]), np.array(E2["omega_inertial"]))
    a = Absolute("barycentric").prepare(system, decide(system, state))(state.t, state.q, state.v).a
    found = {label: a[k] for k, label in enumerate(system.speeds)}
    labels = ["h1.1", "h1.2", "h2", "h4", "h5.1", "h5.2"]
    close([found[label] for label in labels], np.array(E2["gamma_ddot"])[[0, 1, 2, 6, 7, 8]])


def test_e4_as_a_mechanism():
    pose, _, _ = prismatic()
    joints = [MIXED[0], MIXED[1], (), MIXED[3], MIXED[4]]
    m = mechanism(pose.R, pose.r, joints)
    check_mechanism(m, E4["rdot"], pose.W, E4, E4["f_inertial"])


def on_base(pose, given, torque, spec, arm, R0, W0=(0, 0, 0), W0_dot=(0, 0, 0)):
    """Hinge 0 on a platform whose motion is given by polynomials of t."""
    r1 = np.array(given["p"]) - pose.R[0] @ arm
    r = pose.r - pose.r[0] + r1
    m = mechanism(pose.R, r, MIXED if isinstance(spec, ld.Universal) else BALL, -np.array(torque))
    m.bodies["platform"] = ld.Body(mass=1.0, com=(0, 0, 0), inertia=np.eye(3), axes="body", pose=frame(given["p"], R0))
    da, db, dc = W0
    turn = np.array(W0_dot) + [dc * db, -da * dc, da * db]  # second derivatives of the angles at zero angles
    laws = {k: f"{v!r}*t + {a / 2!r}*t*t" for k, v, a in zip("xyz", given["v"], given["a"], strict=True)}
    laws |= {k: f"{float(w)!r}*t + {float(a) / 2!r}*t*t" for k, w, a in zip(("rx", "ry", "rz"), W0, turn, strict=True)}
    m.move_base("platform", **laws)
    join(m, "h0", spec, "platform", "b1", [np.zeros(3), arm])
    rdot = np.zeros((N, 3))
    rdot[0] = np.array(given["v"]) - np.cross(pose.W[0], pose.R[0] @ arm)
    for j, (plus, minus) in enumerate(ARCS):
        rdot[minus] = rdot[plus] + np.cross(pose.W[plus], pose.arms[j, 0]) - np.cross(pose.W[minus], pose.arms[j, 1])
    return m, rdot


def test_e3_as_a_mechanism():
    pose, given = Pose(), E3["base"]
    m, rdot = on_base(pose, given, given["g0"], ld.Spherical(), np.array(given["l10"]), np.eye(3))
    check_mechanism(m, rdot, pose.W, E3, E3["f"])


@pytest.mark.parametrize("rotating", [False, True])
def test_e10_as_a_mechanism(rotating):
    target = E10["rotating_base"] if rotating else E10
    R0 = euler(target["R0_euler_xyz"]) if rotating else np.eye(3)
    W0, W0_dot = (np.array(target["W0"]), np.array(target["W0dot"])) if rotating else (np.zeros(3), np.zeros(3))
    R1, W1, *_ = turned_joint(R0, W0, (0, 1), E10["gamma0"], E10["gamma0_dot"])
    pose = Pose(MIXED, R1=R1, W1=W1)
    m, rdot = on_base(pose, E10["base"], E10["g0"], joint_of((0, 1)), np.array(E10["l_1_0"]), R0, W0, W0_dot)
    check_mechanism(m, rdot, pose.W, target, target["f"])


@pytest.mark.parametrize("target", [E5, E5B], ids=["e5", "e5b_cut_to_ground"])
def test_e5_e5b_as_mechanisms(target):
    pose = Pose()
    m = close_loops(mechanism(pose.R, pose.r), target, pose.r, pose.R)
    cuts = ("all", None, ["h6", "h7"], ["h1", "h3"])
    check_mechanism(m, target["rdot"], target["omega_inertial"], target, target["lambda_c"], cuts)


@pytest.mark.parametrize("target", [E6, E7], ids=["e6_double_ball", "e7_duplicated_hinge"])
def test_e6_e7_as_mechanisms(target):
    pose = Pose()
    m = close_loops(mechanism(pose.R, pose.r), target, pose.r, pose.R)
    check_mechanism(
        m,
        target["rdot"],
        target["omega_inertial"],
        target,
        cuts=("all", ["h6", "h7", "h8"]),
        rank=target["rank_H"],
        minimum_norm=target["lambda_min_norm"],
    )


def test_f1_as_a_mechanism():
    target, four = TARGETS["f1_spatial_pin_fourbar_redundant"], TARGETS["c_reactions"]
    lengths = four["L"][1:]
    m = ld.Mechanism("f1", gravity=(0, -four["g"], 0))
    angles, at = np.cumsum(four["q"]), np.zeros(3)
    for i, length in enumerate(lengths):
        R = about_axis(AXES[2], np.pi / 2 - angles[i])
        J = four["m"][i] * length**2 / 12
        centre = at + R @ [length / 2, 0, 0]
        inertia = np.diag([0.001, J, J])
        m.bodies[f"b{i + 1}"] = ld.Body(
            mass=four["m"][i], com=(0, 0, 0), inertia=inertia, axes="body", pose=frame(centre, R)
        )
        m.add_joint(f"h{i}", ld.Revolute(axis=(0, 0, 1)), f"b{i}" if i else "ground", f"b{i + 1}", at=vector(at))
        at = at + R @ [length, 0, 0]
        if i == 1:
            m.add_force("push", ld.forces.AppliedForce(body="b2", at=vector(centre), force=(0, 0, 3)))
        if i == 2:
            m.add_force("twist", ld.forces.AppliedForce(body="b3", at=vector(centre), torque=(0.5, -0.2, 0)))
    m.add_joint("h3", ld.Revolute(axis=(0, 0, 1)), "b3", "ground", at=(four["L"][0], 0, 0))
    system = m.compile(cuts=["h3"])
    state = system.state(v={f"h{i}": -four["qd"][i] for i in range(3)})
    rank = decide(system, state)
    assert (rank.count, rank.redundant) == (2, 3)
    for method in METHODS:
        solution = method.prepare(system, rank)(state.t, state.q, state.v)
        close(-solution.a, target["qdd"])
        rows = dict(zip(system.constraint_rows, solution.lam, strict=True))
        R_F = system.reference_poses[system.joints["h3"].parent][1] @ system.joints["h3"].F[1]
        force = -R_F @ [rows["h3.fx"], rows["h3.fy"], rows["h3.fz"]]
        close(force[:2], target["force_on_link3_at_O4"][:2])
