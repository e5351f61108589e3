"""Blajer, Schiehlen, Schirm 1994 (and 1993): the method of coordinate partitioning and its criterion, by equation.

The numbers of `data/blajer1994.json` were computed independently of loopdyn (equations of motion in the three relative
angles and in absolute coordinates, two integrators). Angles are measured from +y towards +x; O1 is at the origin, O4 at
(l0, 0); f is the force of the ground on link 3.
"""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from tests.literature import test_constraint_changes as changes
from tests.literature import test_mufti1983 as mufti
from tests.literature.blajer1994 import orthogonal_projections, reactions_by, scheme_35, scheme_37, scheme_38

import loopdyn as ld
from loopdyn.formulations.partition import criteria
from loopdyn.formulations.partition.formulation import PartitionSolver
from loopdyn.loops.rank import decide

TARGETS = json.loads((Path(__file__).parent / "data" / "blajer1994.json").read_text())
EXACT = 1e-10  # of values at a state, as the specification suggests: independent methods agree to 1e-13
TRAJECTORY = 1e-8  # ... and of trajectories
NAMES = ["a1", "a2", "a3"]


def chain(L, m) -> ld.Mechanism:
    """Three rods in a row, stretched along y at the reference pose."""
    model = ld.Mechanism("four_bar", gravity=(0, -9.81, 0))
    y, parent = 0.0, model.ground
    for k in range(3):
        model.add_body(f"link{k + 1}", ld.Inertia.rod(mass=m[k], start=(0, y, 0), end=(0, y + L[k + 1], 0)))
        model.add_joint(f"a{k + 1}", ld.Revolute(axis=(0, 0, -1)), parent, f"link{k + 1}", at=(0, y, 0))
        y, parent = y + L[k + 1], f"link{k + 1}"
    return model


def four_bar(L, m) -> ld.System:
    """... closed at O4, which is cut, as in Fig. 2."""
    model = chain(L, m)
    ends = {"parent_frame": ld.Frame(position=(L[0], 0, 0)), "child_frame": ld.Frame(position=(0, sum(L[1:]), 0))}
    model.add_joint("O4", ld.Revolute(axis=(0, 0, -1)), model.ground, "link3", **ends)
    return model.compile(cuts=["O4"])


def solver_at(system: ld.System, state: ld.State, **options) -> PartitionSolver:
    solver = PartitionSolver(system, decide(system, state), ld.Partition(**options))
    solver._evaluate(state.t, state.q, state.v)
    return solver


def D_of(solver: PartitionSolver) -> np.ndarray:
    P = solver.calls.views
    D = np.zeros((len(P.I), solver.system.nv))
    D[np.arange(len(P.I)), P.I], D[:, P.D] = 1.0, P.A.T
    return D


@pytest.fixture(scope="module")
def example() -> tuple[ld.System, ld.State]:
    c = TARGETS["c_reactions"]
    system = four_bar(c["L"], c["m"])
    return system, system.state(c["q"], c["qd"])


# ------------------------------------------------------------------------------- section 2: the minimal equations


def test_eqs_7_to_14_minimal_equations_of_the_four_bar(example):
    c, (system, state) = TARGETS["c_reactions"], example
    solver = solver_at(system, state, independent=["a1"])
    P = solver.calls.views
    np.testing.assert_allclose(P.M, c["M"], atol=EXACT)
    np.testing.assert_allclose(P.h, c["h"], atol=EXACT)
    np.testing.assert_allclose(D_of(solver), [c["D_a"]], atol=EXACT)
    np.testing.assert_allclose(P.xi[:, 0], c["xi_a"], atol=EXACT)
    D, xi = D_of(solver)[0], np.array([0.0, *c["xi_a"]])
    np.testing.assert_allclose(D @ P.M @ D, c["M_d"], atol=EXACT)  # (13)
    assert D @ (P.h - P.M @ xi) == pytest.approx(c["h_d"], abs=EXACT)  # (14)
    assert P.Md[0, 0] ** 2 == pytest.approx(c["M_d"], abs=EXACT)
    np.testing.assert_allclose(solver(state.t, state.q, state.v).a, c["qdd"], atol=EXACT)  # (10), (12)


def rheonomic() -> ld.System:
    """Target c2: O4 moves as (1 + 0.1 sin 3t, 0.05 cos 2t)."""
    c = TARGETS["c_reactions"]
    model = chain(c["L"], c["m"])
    at = (0, sum(c["L"][1:]), 0)
    model.add_constraint(
        "O4", ld.constraints.PointMotion(on="ground", body="link3", point=at, x="1 + 0.1*sin(3*t)", y="0.05*cos(2*t)")
    )
    return model.compile()


def test_eqs_7_8_rheonomic_terms_eta_and_xi():
    c, system = TARGETS["c2_rheonomic"], rheonomic()
    state = ld.State(c["t"], np.array(c["q"]), np.array(c["qd"]))
    solver = solver_at(system, state, independent=["a1"])
    P = solver.calls.views
    np.testing.assert_allclose(P.A[:, 0], c["A"], atol=EXACT)
    np.testing.assert_allclose(P.xi[:, 0], c["xi"], atol=EXACT)
    np.testing.assert_allclose(ld.terms(system, state).phi_t, c["a"], atol=EXACT)
    np.testing.assert_allclose(-ld.terms(system, state).gamma, c["b"], atol=EXACT)
    # eta: what is left of the dependent speeds when the independent one is at rest
    driver = solver.kernels
    w = solver.run.state
    w.t[0], w.q[:], w.v[:] = state.t, state.q, 0.0
    driver.accelerate(driver.ints, driver.floats, driver.work)
    np.testing.assert_allclose(w.v[1:], c["eta"], atol=EXACT)
    found = solver(state.t, state.q, state.v)
    np.testing.assert_allclose(found.a, c["qdd"], atol=EXACT)
    np.testing.assert_allclose(found.lam, c["f"], atol=EXACT)


@pytest.mark.parametrize("form", ["k+n", "2k"])
def test_c3_rheonomic_trajectory(form):
    c, c2, system = TARGETS["c3_rheonomic_trajectory"], TARGETS["c2_rheonomic"], rheonomic()
    state = ld.State(c2["t"], np.array(c2["q"]), np.array(c2["qd"]))
    span = (c["t0"], c["T"])
    method = ld.Partition(form=form)
    run = ld.simulate(system, state, span, formulation=method, rtol=1e-12, progress=False, t_eval=[span[1]])
    np.testing.assert_allclose(run.path.q[-1], c["q"], atol=TRAJECTORY)
    np.testing.assert_allclose(run.path.v[-1], c["qd"], atol=TRAJECTORY)


def test_eq_15_metric_of_the_orthogonal_and_tangent_base(example):
    system, state = example
    solver = solver_at(system, state)
    P = solver.calls.views
    C, D, M = P.J[P.rows], D_of(solver), P.M
    T = np.vstack([C @ np.linalg.inv(M), D])  # (11)
    np.testing.assert_allclose(D @ C.T, 0.0, atol=1e-13)
    both = T @ M @ T.T
    np.testing.assert_allclose(both[:2, :2], C @ np.linalg.inv(M) @ C.T, atol=1e-12)
    np.testing.assert_allclose(both[:2, 2:], 0.0, atol=1e-12)  # the block is m x k
    np.testing.assert_allclose(both[2:, 2:], D @ M @ D.T, atol=1e-12)


@pytest.mark.parametrize("form", ["k+n", "2k"])
def test_g2_both_state_forms_reach_the_target_and_drift_as_stated(form):
    """k+n drifts by about the tolerance, 2k not at all."""
    g, c = TARGETS["g2_kn_vs_2k"], TARGETS["c_reactions"]
    system = four_bar(c["L"], c["m"])
    state = system.state(c["q"], c["qd"])
    method = ld.Partition(independent=["a1"], form=form)
    options = {"formulation": method, "drift": "velocity", "progress": False}
    for tolerance in (1e-6, 1e-8, 1e-10):
        run = ld.simulate(system, state, (0, 5), rtol=tolerance, **options).raise_if_failed()
        if form == "2k":
            assert run.largest_residual < 1e-13
        else:
            assert 1e-4 * tolerance < run.largest_residual < 10.0 * tolerance
    run = ld.simulate(system, state, (0, 5), rtol=1e-12, t_eval=[5.0], **options)
    assert run.path.q[-1, 0] % (2 * np.pi) == pytest.approx(g["alpha1_T"] % (2 * np.pi), abs=1e-7)
    assert run.path.v[-1, 0] == pytest.approx(g["alpha1dot_T"], abs=1e-6)


# ----------------------------------------------------------------------------------- section 3: the criterion


def pendulum(m, rho, J) -> ld.System:
    """The physical pendulum of Fig. 1 in x, y and its angle: its centre of mass on a plane, its pivot cut."""
    model = ld.Mechanism("pendulum")
    body = model.add_body("G", ld.Inertia.planar(mass=m, com=(rho, 0, 0), izz=J))
    model.add_joint("G", ld.Planar(normal=(0, 0, 1)), model.ground, body, at=(rho, 0, 0))
    model.add_joint("O", ld.Revolute(axis=(0, 0, 1)), model.ground, body, at=(0, 0, 0))
    return model.compile(cuts=["O"])


@pytest.mark.parametrize("row", TARGETS["a_physical_pendulum"]["table"], ids=lambda r: f"gamma_{r['gamma']:.2f}")
def test_eq_26_physical_pendulum(row):
    a = TARGETS["a_physical_pendulum"]
    m, rho, J, gamma = a["m"], a["rho"], a["J"], row["gamma"]
    system = pendulum(m, rho, J)
    at = {"G.x": rho * (np.cos(gamma) - 1), "G.y": rho * np.sin(gamma), "G.angle": gamma}
    found = ld.analyses.coordinates(system, system.state(q=at))
    share = m * rho**2 / (m * rho**2 + J)
    expected = [share * np.sin(gamma) ** 2, share * np.cos(gamma) ** 2, J / (m * rho**2 + J)]
    np.testing.assert_allclose(list(found.cosine.values()), expected, atol=EXACT)
    np.testing.assert_allclose(expected, [row[f"cos2_alpha_{c}"] for c in ("x", "y", "gamma")], atol=EXACT)
    assert sum(found.cosine.values()) == pytest.approx(1.0, abs=EXACT)  # M is diagonal
    assert ("G.x" in found.singular) == (abs(np.sin(gamma)) < 1e-9)
    assert ("G.y" in found.singular) == (abs(np.cos(gamma)) < 1e-9)


def test_eq_25_tangent_vectors_of_the_physical_pendulum():
    system, gamma, rho = pendulum(2.0, 0.7, 0.3), 0.5, 0.7
    state = system.state(q={"G.x": rho * (np.cos(gamma) - 1), "G.y": rho * np.sin(gamma), "G.angle": gamma})
    s, c = np.sin(gamma), np.cos(gamma)
    expected = {
        "G.x": [1.0, -c / s, -1 / (rho * s)],
        "G.y": [-s / c, 1.0, 1 / (rho * c)],
        "G.angle": [-rho * s, rho * c, 1.0],
    }
    for label, D in expected.items():
        np.testing.assert_allclose(D_of(solver_at(system, state, independent=[label])), [D], atol=1e-12)


MASSES = ["set1", "set2_m3x10", "set3_m1x10"]


@pytest.mark.parametrize("masses", MASSES)
def test_fig_3_criterion_of_the_four_bar(masses):
    """Target b: the criterion over a turn, for three sets of masses; the SVD does not see them."""
    b = TARGETS["b_criterion_curves"]
    system = four_bar(b["L"], b["masses"][masses])
    for row in b["table"]:
        q = [np.radians(row["alpha1_deg"]), row["alpha2"], row["alpha3"]]
        found = ld.analyses.coordinates(system, system.state(q))
        np.testing.assert_allclose(list(found.cosine.values()), row[masses], atol=1e-9)
        np.testing.assert_allclose(list(found.svd.values()), row["svd"], atol=1e-9)
        assert found.best == (NAMES[row[f"{masses}_best"] - 1],)
        assert ("a3" in found.singular) == (row["alpha1_deg"] in (90, 270))


def test_fig_3_sweep_has_the_extremes_and_crossings_of_the_target():
    b = TARGETS["b_criterion_curves"]
    system = four_bar(b["L"], b["masses"]["set1"])
    row = b["table"][0]
    sweep = ld.analyses.coordinates(system, system.state([0.0, row["alpha2"], row["alpha3"]])).sweep("a1")
    assert abs(sweep.value[-1] - sweep.value[0]) == pytest.approx(2 * np.pi, abs=0.03)
    # extremes between poses a step of 0.02 rad apart: off by its square
    np.testing.assert_allclose(sweep.cosine.min(axis=0), b["set1_min"], atol=3e-4)
    np.testing.assert_allclose(sweep.cosine.max(axis=0), b["set1_max"], atol=3e-4)
    difference = sweep.cosine[:, 0] - sweep.cosine[:, 1]
    at = np.flatnonzero(np.diff(np.sign(difference)))
    angles = sweep.value[at] - difference[at] * np.diff(sweep.value)[at] / np.diff(difference)[at]
    np.testing.assert_allclose(np.sort(angles), b["set1_crossings_alpha1_alpha2_rad"], atol=1e-4)


def test_eqs_23a_23b_are_one_less_the_other(example):
    system, state = example
    solver = solver_at(system, state)
    P = solver.calls.views
    cosine = (criteria.tangent(P.M, D_of(solver), np.diag(np.linalg.inv(P.M))) ** 2).sum(axis=0)
    np.testing.assert_allclose(cosine, 1.0 - orthogonal_projections(P.M, P.J[P.rows]), atol=1e-12)
    np.testing.assert_allclose(cosine, P.cosine, atol=1e-12)


def test_eqs_16_to_19_projections_of_the_dual_base_vectors(example):
    """k_i is the dual base vector: |k_i|^2 = M^-1(i, i), the sum of its squared tangent and orthogonal parts."""
    system, state = example
    solver = solver_at(system, state)
    P = solver.calls.views
    C, D, inverse = P.J[P.rows], D_of(solver), np.linalg.inv(P.M)
    for i in range(3):
        kc, kd = (C @ inverse)[:, i], D[:, i]  # (18)
        orthogonal = kc @ np.linalg.solve(C @ inverse @ C.T, kc)  # (19)
        tangent = kd @ np.linalg.solve(D @ P.M @ D.T, kd)
        assert orthogonal + tangent == pytest.approx(inverse[i, i], rel=1e-12)


def test_k2_counterexample_to_the_k_biggest():
    k2 = TARGETS["k2_counterexample"]
    M, C = np.linalg.inv(k2["Minv"]), np.array(k2["C"])
    W = criteria.tangent(M, criteria.null_space(C, 1).T, np.diag(k2["Minv"]))
    np.testing.assert_allclose((W**2).sum(axis=0), k2["cos2"], atol=1e-12)
    assert criteria.measure(W, [i - 1 for i in k2["naive_choice"]]) < 1e-20
    assert [i + 1 for i in criteria.best_set(W)] in k2["valid_choices"]


def k2_five_bar() -> tuple[ld.System, ld.State]:
    """Target k2: four rods in a row, the end of the last one at O5."""
    k2 = TARGETS["k2_fivebar"]
    model = ld.Mechanism("five_bar")
    y, parent = 0.0, model.ground
    for k, (length, mass) in enumerate(zip(k2["l"], k2["m"], strict=True)):
        model.add_body(f"link{k + 1}", ld.Inertia.rod(mass=mass, start=(0, y, 0), end=(0, y + length, 0)))
        model.add_joint(f"a{k + 1}", ld.Revolute(axis=(0, 0, -1)), parent, f"link{k + 1}", at=(0, y, 0))
        y, parent = y + length, f"link{k + 1}"
    ends = {"parent_frame": ld.Frame(position=(*k2["O5"], 0)), "child_frame": ld.Frame(position=(0, y, 0))}
    model.add_joint("O5", ld.Revolute(axis=(0, 0, -1)), model.ground, "link4", **ends)
    system = model.compile(cuts=["O5"])
    return system, system.state(k2["q"])


def test_k2_fivebar_measures_of_all_pairs():
    k2, (system, state) = TARGETS["k2_fivebar"], k2_five_bar()
    found = ld.analyses.coordinates(system, state)
    np.testing.assert_allclose(list(found.cosine.values()), k2["cos2"], atol=1e-9)
    np.testing.assert_allclose(list(found.svd.values()), k2["svd"], atol=1e-9)
    measures = dict(found.sets)
    for pair in combinations("1234", 2):
        expected = k2["pairs"]["".join(pair)]["det_normalised"]
        assert measures[tuple(f"a{i}" for i in pair)] == pytest.approx(expected, abs=1e-9)
    assert found.best == tuple(f"a{i}" for i in k2["exhaustive_best"])
    solver = solver_at(system, state)
    W = solver.projections()
    assert sorted(i + 1 for i in criteria.largest(W, 2)) == k2["pivoted_choice"]
    assert solver.active == found.best  # pivoted, then exchanged


def test_i11_partition_and_criterion_on_quasi_velocities():
    """The closed chain of Mufti's Fig. 6 in v = (r1', W_1 .. W_6): 21 speeds, 15 freedoms."""
    target = TARGETS["i11_partition_quasi_velocities"]
    pose = mufti.Pose()
    V = np.zeros((6, 3, 21))  # velocities of the centres of mass
    V[:, :, :3] = np.eye(3)

    def spin(body: int, arm: np.ndarray) -> np.ndarray:
        """Velocity of a point at `arm` beyond that of the centre of mass: W x arm."""
        out = np.zeros((3, 21))
        out[:, 3 + 3 * body : 6 + 3 * body] = -np.cross(np.eye(3), arm).T
        return out.copy()

    for j, (plus, minus) in enumerate(mufti.ARCS):
        V[minus] = V[plus] + spin(plus, pose.arms[j, 0]) - spin(minus, pose.arms[j, 1])
    W = np.zeros((6, 3, 21))
    for i in range(6):
        W[i, :, 3 + 3 * i : 6 + 3 * i] = np.eye(3)
    I = mufti.world_inertia(pose.R)
    M = sum(mufti.MASS[i] * V[i].T @ V[i] + W[i].T @ I[i] @ W[i] for i in range(6))
    rows = []
    for h, (a, b) in ((6, (1, 5)), (7, (4, 6))):
        arms = [pose.R[e - 1] @ np.array(mufti.E5["lever_arms_cut"][f"l_{e},{h}"]) for e in (a, b)]
        rows.append(V[a - 1] + spin(a - 1, arms[0]) - V[b - 1] - spin(b - 1, arms[1]))
    C = np.vstack(rows)
    found = criteria.tangent(M, criteria.null_space(C, 6).T, np.diag(np.linalg.inv(M)))
    np.testing.assert_allclose((found**2).sum(axis=0), target["cos2"], atol=EXACT)
    pivoted = sorted(criteria.largest(found, 15))
    assert pivoted == target["independent_0based"]
    naive = sorted(np.argsort(-(found**2).sum(axis=0))[:15].tolist())
    assert naive == target["naive_top15_0based"]
    smallest = [np.linalg.svd(np.delete(C, chosen, axis=1), compute_uv=False)[-1] for chosen in (pivoted, naive)]
    assert smallest == pytest.approx([target["smin_CD_pivoted"], target["smin_CD_naive"]], abs=EXACT)


@pytest.mark.parametrize("method", ["partition", "closure"])
def test_i11_trajectory_with_quaternions(method):
    """The same chain as a mechanism with ball joints: they act on columns of speeds, quaternions stay unit."""
    target = mufti.TARGETS["e9_closed_fig6_trajectory"]
    pose = mufti.Pose()
    m = mufti.close_loops(mufti.mechanism(pose.R, pose.r), mufti.E5, pose.r, pose.R)
    m.forces.clear()
    system = m.compile()
    state = mufti.moving_state(system, np.array(mufti.E5["rdot"]), np.array(mufti.E5["omega_inertial"]))
    run = ld.simulate(
        system, state, (0, target["T"]), formulation=method, rtol=1e-12, progress=False, t_eval=[target["T"]]
    ).raise_if_failed()
    assert run.active[-1].sum() == 15
    end = ld.tree.body_motion(system, ld.State(target["T"], run.path.q[-1], run.path.v[-1]))
    order = [end.bodies.index(f"b{i + 1}") for i in range(6)]
    np.testing.assert_allclose(end.position[order], target["r"], atol=1e-9)
    np.testing.assert_allclose(end.rotation[order], target["R"], atol=1e-9)
    np.testing.assert_allclose(end.angular_velocity[order], target["omega_inertial"], atol=1e-9)


# ------------------------------------------------------------------------- section 5: reactions, appendices A and B


def B_of_44(L, q) -> np.ndarray:
    """[Blajer1994 eq. (44)], rows f_x, f_y."""
    a1, a12 = q[0], q[0] + q[1]
    l0, l1, l2, _ = L
    x = [0.0, -l1 * np.cos(a1), -l1 * np.cos(a1) - l2 * np.cos(a12)]
    y = [-l0, -l0 + l1 * np.sin(a1), -l0 + l1 * np.sin(a1) + l2 * np.sin(a12)]
    return np.array([x, y])


def test_eq_44_distribution_matrix_is_the_jacobian_of_the_cut_joint(example):
    c, (system, state) = TARGETS["c_reactions"], example
    J = ld.terms(system, state).J
    rows = [system.constraint_rows.index(f"O4.{f}") for f in ("fx", "fy", "fz")]
    axes = system.joints["O4"].F[1]
    np.testing.assert_allclose((axes @ J[rows])[:2], B_of_44(c["L"], c["q"]), atol=1e-12)


def test_eqs_43_45_tangent_vector_and_closing_conditions(example):
    c, (system, state) = TARGETS["c_reactions"], example
    (l0, l1, l2, l3), (a1, a2, a3) = c["L"], c["q"]
    top = (l0 * l1 * np.cos(a1) + l0 * l2 * np.cos(a1 + a2)) / (l2 * l3 * np.sin(a3))
    side = l0 * l1 * np.cos(a1) / (l2 * l3 * np.sin(a3))
    D = D_of(solver_at(system, state, independent=["a1"]))
    np.testing.assert_allclose(D, [[1.0, -top, side]], atol=1e-12)  # (43)
    hat = np.array([[top, 1.0, 0.0], [-side, 0.0, 1.0]])  # (45)
    np.testing.assert_allclose(D @ hat.T, 0.0, atol=1e-12)
    # (32): the same generalised reaction from multipliers of the closing conditions
    found = hat.T @ np.array(c["lambda_hat"])
    np.testing.assert_allclose(found, c["generalized_reaction"], atol=EXACT)


def test_1993_eqs_22_23_tangent_vectors_and_xi_of_both_cases(example):
    c, (system, state) = TARGETS["c_reactions"], example
    (l0, l1, l2, l3), (a1, a2, a3), (v1, v2, v3) = c["L"], c["q"], c["qd"]
    a12 = a1 + a2
    s, co = np.sin, np.cos
    K1 = l0 * l1 * (v1 * s(a1) * s(a3) + v3 * co(a1) * co(a3))
    K2 = l0 * l2 * ((v1 + v2) * s(a12) * s(a3) + v3 * co(a12) * co(a3))
    L1 = l2 * l3 * s(a3) ** 2
    K3 = l2 * l3 * (v3 * co(a3) * co(a1) + v1 * s(a3) * s(a1))
    K4 = l0 * l2 * (v1 * s(a2) + v2 * s(a12) * co(a1))
    L2 = l0 * l1 * co(a1) ** 2
    case_a, case_b = (solver_at(system, state, independent=[x]) for x in ("a1", "a3"))
    np.testing.assert_allclose(case_a.calls.views.xi[:, 0], v1 * np.array([K1 + K2, -K1]) / L1, atol=EXACT)  # (23a)
    np.testing.assert_allclose(case_b.calls.views.xi[:, 0], v3 * np.array([K3, K4]) / L2, atol=EXACT)  # (23b)
    Db = [l2 * l3 * s(a3) / (l0 * l1 * co(a1)), -(l2 * co(a12) / (l1 * co(a1)) + 1.0), 1.0]
    np.testing.assert_allclose(D_of(case_b), [Db], atol=1e-12)  # (22b), in the order a1, a2, a3


def test_eqs_35_37_38_reactions_of_the_four_bar(example):
    c, (system, state) = TARGETS["c_reactions"], example
    M, h, a, B = np.array(c["M"]), np.array(c["h"]), np.array(c["qdd"]), B_of_44(c["L"], c["q"])
    xi, D = np.array([0.0, *c["xi_a"]]), np.array([c["D_a"]])
    np.testing.assert_allclose(scheme_35(M, h, B, xi), c["f_scheme35"], atol=EXACT)
    f, zero = scheme_37(M, h, B, D, a)
    np.testing.assert_allclose(f, c["f_scheme37"], atol=EXACT)
    np.testing.assert_allclose(zero, 0.0, atol=1e-12)
    np.testing.assert_allclose(scheme_38(M, h, B, a), c["f_scheme38"], atol=EXACT)
    shared = ld.reactions(system, state)["O4"]
    force = system.joints["O4"].F[1] @ [shared["fx"], shared["fy"], shared["fz"]]
    np.testing.assert_allclose(force[:2], c["f_absolute_coordinates"], atol=EXACT)


@pytest.mark.parametrize("name", ["four_bar", "slider_crank", "rssr", "five_bar", "stewart_3rrs"])
@pytest.mark.parametrize("scheme", ["35", "37", "38"])
def test_schemes_give_the_reactions_of_all_joints_with_B_built_automatically(name, scheme):
    mechanism = ld.library.turned(ld.library.ALL[name]())
    free = mechanism.compile(cuts="all")
    state = ld.assemble(free)
    found = reactions_by(free, state, scheme)
    expected = ld.reactions(free, state)
    scale = np.abs(expected.wrench).max()
    for n, joint in enumerate(expected.joints):
        for k, component in enumerate(("mx", "my", "mz", "fx", "fy", "fz")):
            label = f"{joint}.{component}"
            if label in free.constraint_rows and expected.unique[n, k]:
                value = found[free.constraint_rows.index(label)]
                assert value == pytest.approx(expected.wrench[n, k], abs=1e-8 * scale), label


def test_scheme_35_refuses_a_body_without_inertia():
    m = ld.library.four_bar()
    m.bodies["coupler"] = ld.Body(mass=0.0, com=(0, 0, 0), inertia=np.zeros((3, 3)).tolist())
    system = m.compile(cuts=["C"])
    state = ld.assemble(system, v={"A": 1.0})
    with pytest.raises(ld.errors.SingularityError, match="Use scheme 37 or 38"):
        reactions_by(system, state, "35")
    np.testing.assert_allclose(reactions_by(system, state, "37"), reactions_by(system, state, "38"), atol=1e-9)


def test_appendix_A_bases_components_and_their_transformation():
    rng = np.random.default_rng(5)
    E, T = rng.normal(size=(4, 4)), rng.normal(size=(4, 4))  # rows of E: the covariant base in a Cartesian frame
    M = E @ E.T  # (A2)
    v, w = rng.normal(size=(2, 4))
    dual = np.linalg.solve(M, E)  # (A3)
    np.testing.assert_allclose(v @ E, (M @ v) @ dual, atol=1e-12)  # (A1)
    for product in (v @ M @ w, v @ (M @ w), (M @ v) @ np.linalg.solve(M, M @ w), (M @ v) @ w):  # (A4)
        assert product == pytest.approx((v @ E) @ (w @ E), rel=1e-12)
    hat = T @ E  # (A5)
    np.testing.assert_allclose(np.linalg.solve(T.T, v) @ hat, v @ E, atol=1e-10)
    np.testing.assert_allclose((T @ M @ v) @ np.linalg.solve(T.T, dual), v @ E, atol=1e-10)
    np.testing.assert_allclose(hat @ hat.T, T @ M @ T.T, atol=1e-12)  # (A6)


def test_appendix_B_scheme_37_is_scheme_35(example):
    c, (system, state) = TARGETS["c_reactions"], example
    P = solver_at(system, state, independent=["a1"]).calls.views
    M, D, B = P.M, np.array([c["D_a"]]), B_of_44(c["L"], c["q"])
    inverse = np.linalg.inv(M)
    T = np.vstack([B @ inverse, D])
    Mb, Md = B @ inverse @ B.T, D @ M @ D.T
    np.testing.assert_allclose(
        T @ M @ T.T, np.block([[Mb, np.zeros((2, 1))], [np.zeros((1, 2)), Md]]), atol=1e-12
    )  # (B1)
    stacked = np.vstack([np.linalg.solve(Mb, B @ inverse), np.linalg.solve(Md, D)])
    np.testing.assert_allclose(np.linalg.inv((T @ M).T), stacked, atol=1e-11)  # (B2)
    xi = np.array([0.0, *c["xi_a"]])
    force = M @ np.array(c["qdd"]) - P.h
    np.testing.assert_allclose((stacked @ force)[:2], scheme_35(M, P.h, B, xi), atol=1e-11)  # (B3)
    assert abs((stacked @ force)[2]) < 1e-12


# -------------------------------------------------------------------------------- section 6: changes on the way

RUNS = ["d1_swing", "d2_loop_both_singularities", "d3_crank3_caseb_never_singular"]


def simulated(name: str, rtol: float = 1e-12, **options) -> tuple[ld.results.Run, np.ndarray]:
    """A run, and its errors at the output times."""
    d = TARGETS[name]
    system = four_bar(d["L"], d["m"])
    state = system.state(d["q0"], d["qd0"])
    run = ld.simulate(
        system,
        state,
        (0, d["T"]),
        formulation=ld.Partition(**options),
        rtol=rtol,
        t_eval=d["times"],
        progress=False,
    )
    n = len(run.path)
    return run, np.abs(run.path.q - np.array(d["q"])[:n]).max(axis=1, initial=0.0)


@pytest.mark.parametrize("form", ["k+n", "2k"])
@pytest.mark.parametrize("name", RUNS)
def test_d_runs_that_change_between_alpha1_and_alpha3(name, form):
    """As many switches, near the same times; the error is at most 1e-9 at a tolerance of 1e-12."""
    d = TARGETS[name]
    run, errors = simulated(name, candidates=["a1", "a3"], form=form)
    assert run.status == "finished"
    assert errors.max() < 1e-9
    assert len(run.events) == len(d["switches"])
    for event, (t, before, after) in zip(run.events, d["switches"], strict=True):
        label = {"a": "a1", "b": "a3"}
        assert event.name == f"independent: {label[before]} -> {label[after]}"
        assert event.t == pytest.approx(t, abs=0.02)  # after the step in which the factor 2 is passed


def test_d2_changes_four_times():
    run, errors = simulated("d2_loop_both_singularities", candidates=["a1", "a3"])
    assert len(run.events) == 4
    assert errors[-1] < 1e-9


@pytest.mark.parametrize("name", RUNS)
def test_d_runs_in_the_best_of_all_coordinates(name):
    run, errors = simulated(name)
    assert run.status == "finished"
    assert errors.max() < 1e-9


@pytest.mark.parametrize("form", ["k+n", "2k"])
@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("case", ["a", "b"])
def test_d_single_sets_die_where_the_target_says(name, case, form):
    target = TARGETS[name]["single_case"][case]
    run, errors = simulated(name, independent=["a1" if case == "a" else "a3"], form=form)
    if target["completed"]:
        assert run.status == "finished"
        assert errors.max() < 1e-9
        return
    assert run.status == "failed"
    reached = float(run.message.split("t = ")[1].split(" s")[0])
    # where sin a3 or cos a1 vanishes; a set is followed until these have fallen to a thousandth of what they were
    assert reached == pytest.approx(target["t_end"], abs=3e-4)
    assert reached <= target["t_end"] + 1e-5
    assert errors[np.array(TARGETS[name]["times"])[: len(errors)] < target["t_end"]].max(initial=0.0) < 1e-9


@pytest.mark.parametrize("method", ["partition", "closure"])
def test_g1_a_joint_released_and_another_locked_on_the_way(method):
    """Constraints deleted and added (named in the paper of 1993): freedoms change, coordinates are chosen anew."""

    def run(system: ld.System, state: ld.State, until: float) -> tuple[ld.State, int]:
        options = {"formulation": method, "rtol": 1e-12, "t_eval": [until], "progress": False}
        found = ld.simulate(system, state, (state.t, until), **options).raise_if_failed()
        return ld.State(until, found.path.q[-1], found.path.v[-1]), int(found.active[-1].sum())

    closed, opened = changes.closed().compile(cuts=["O4"]), changes.chain().compile()
    at_03, freedoms = run(closed, closed.state(*changes.START), 0.3)
    np.testing.assert_allclose(changes.vector(at_03), changes.AT_03, atol=TRAJECTORY)
    assert freedoms == 1
    before, freedoms = run(opened, ld.analyses.reconnect(closed, opened, at_03).state, 0.5)
    np.testing.assert_allclose(changes.vector(before), changes.BEFORE_LOCK, atol=TRAJECTORY)
    assert freedoms == 3
    model = changes.chain()
    model.add_driver("lock", "a2", float(before.q[1]))
    locked = model.compile()
    after = ld.analyses.reconnect(opened, locked, before).state
    np.testing.assert_allclose(changes.vector(after), changes.AFTER_LOCK, atol=TRAJECTORY)
    end, freedoms = run(locked, after, 0.8)
    np.testing.assert_allclose(changes.vector(end), changes.AT_08, atol=TRAJECTORY)
    assert freedoms == 2
