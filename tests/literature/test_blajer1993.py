"""Blajer, Schiehlen, Schirm 1993: closing conditions by inverse kinematics, by equation.

The four-bar is that of `test_blajer1994`: angles from +y towards +x, O1 at the origin, O4 at (l0, 0). Numbers of
`data/blajer1993.json` were computed independently of loopdyn; formulas of the paper are written out here, with the
corrections of its errata ((19b), (23a), (23b)).
"""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from numpy import cos, sin
from tests.literature import test_blajer1994 as b94

import loopdyn as ld
from loopdyn.formulations.closure.formulation import Closer, plan_for
from loopdyn.loops.rank import decide

TARGETS = json.loads((Path(__file__).parent / "data" / "blajer1993.json").read_text())
EXACT = 1e-10
L, MASSES = b94.TARGETS["c_reactions"]["L"], b94.TARGETS["c_reactions"]["m"]
L0, L1, L2, L3 = L


def same_angle(x: float, y: float) -> bool:
    return bool(abs((x - y + np.pi) % (2 * np.pi) - np.pi) < 1e-12)


def alpha2(a1: float, a3: float) -> float:
    """(18)."""
    s = L0 * L2 * cos(a1) + L0 * L3 * cos(a1 + a3) + L1 * L3 * sin(a3)
    c = L0 * L2 * sin(a1) + L0 * L3 * sin(a1 + a3) - L1 * L3 * cos(a3) - L1 * L2
    return float(np.arctan2(s, c))


@pytest.fixture(scope="module")
def four_bar() -> ld.System:
    return b94.four_bar(L, MASSES)


def closed(system: ld.System) -> ld.State:
    c = b94.TARGETS["c_reactions"]
    return system.state(c["q"], c["qd"])


def closures(system: ld.System, label: str, value: float) -> list[np.ndarray]:
    """Poses by the plan for one independent coordinate, in all branches."""
    state = closed(system)
    plan = plan_for(system, state, [system.speeds.index(label)])
    q, close = np.array(state.q), Closer(plan)
    q[system.coordinates.index(label)] = value
    found = [close(0.0, q, np.array(signs, float)) for signs in product((1, -1), repeat=len(plan.groups))]
    return [x for x in found if x is not None]


@pytest.mark.parametrize("a1", np.linspace(-3.0, 3.0, 13))
def test_eqs_17a_18_alpha3_and_alpha2_from_alpha1(four_bar, a1):
    a3 = np.arccos((L0**2 + L1**2 - L2**2 - L3**2 - 2 * L0 * L1 * sin(a1)) / (2 * L2 * L3))
    found = closures(four_bar, "a1", float(a1))
    assert len(found) == 2
    for expected in (a3, -a3):
        match = [q for q in found if same_angle(q[2], expected)]
        assert len(match) == 1
        assert same_angle(match[0][1], alpha2(a1, expected))


@pytest.mark.parametrize("a3", [1.3, 1.7, 2.1])
def test_eqs_17b_18_alpha1_and_alpha2_from_alpha3(four_bar, a3):
    turn = np.arccos((L0**2 + L1**2 - L2**2 - L3**2 - 2 * L2 * L3 * cos(a3)) / (2 * L0 * L1))
    found = closures(four_bar, "a3", a3)
    assert len(found) == 2
    for expected in (np.pi / 2 + turn, np.pi / 2 - turn):
        # (17b) is printed for a1 with sin a1 = ..., of which arccos gives the angle from pi/2
        match = [q for q in found if same_angle(q[0], expected)]
        assert len(match) == 1
        assert same_angle(match[0][1], alpha2(expected, a3))


@pytest.mark.parametrize("a2", [0.2, 0.29, 1.0])
def test_alpha2_as_independent_coordinate_closes_the_loop_too(four_bar, a2):
    found = closures(four_bar, "a2", a2)
    assert len(found) == 2
    for q in found:
        phi, _ = ld.tree.constraint_equations(four_bar, ld.State(0.0, q, np.zeros(3)))
        assert np.abs(phi).max() < 1e-14


def test_eqs_19_to_23_velocities_and_accelerations_of_both_cases(four_bar):
    state = closed(four_bar)
    (a1, a2, a3), (w1, w2, w3) = state.q, state.v
    K1 = L0 * L1 * (w1 * sin(a1) * sin(a3) + w3 * cos(a1) * cos(a3))
    K2 = L0 * L2 * ((w1 + w2) * sin(a1 + a2) * sin(a3) + w3 * cos(a1 + a2) * cos(a3))
    K3 = L2 * L3 * (w3 * cos(a3) * cos(a1) + w1 * sin(a3) * sin(a1))
    K4 = L0 * L2 * (w1 * sin(a2) + w2 * sin(a1 + a2) * cos(a1))
    P1, P2 = L2 * L3 * sin(a3) ** 2, L0 * L1 * cos(a1) ** 2
    A_a = [-(L0 * L1 * cos(a1) + L0 * L2 * cos(a1 + a2)) / (L2 * L3 * sin(a3)), L0 * L1 * cos(a1) / (L2 * L3 * sin(a3))]
    A_b = [L2 * L3 * sin(a3) / (L0 * L1 * cos(a1)), -(L2 * cos(a1 + a2) / (L1 * cos(a1)) + 1)]
    cases = {"a1": (A_a, [w1 * (K1 + K2) / P1, -w1 * K1 / P1]), "a3": (A_b, [w3 * K3 / P2, w3 * K4 / P2])}
    for label, (A, xi) in cases.items():
        solver = ld.Closure(independent=[label]).prepare(four_bar, decide(four_bar, state))
        found = solver(state.t, state.q, state.v)
        P = solver.calls.views
        np.testing.assert_allclose(P.A[:, 0], A, atol=EXACT)
        np.testing.assert_allclose(P.xi[:, 0], xi, atol=EXACT)
        np.testing.assert_allclose(found.a, b94.TARGETS["c_reactions"]["qdd"], atol=EXACT)


def test_fig_3_singular_configurations_of_case_b(four_bar):
    """Four, in mirror pairs, at cos a1 = 0: the distance of O2 and O4 has its extremes there."""
    poses = ld.analyses.singular_poses(four_bar, "a3", span=(-np.pi, np.pi))
    assert len(poses) == 4
    assert all(p.limit for p in poses)
    for p in poses:
        assert abs(cos(p.state.q[0])) < 1e-6  # a double root: the value of a3 is known to 1e-14, that of a1 to its root
        expected = (L0**2 + L1**2 - L2**2 - L3**2 - 2 * L0 * L1 * sin(p.state.q[0])) / (2 * L2 * L3)
        assert abs(cos(p.value) - expected) < 1e-12
    np.testing.assert_allclose([p.value for p in poses], [-p.value for p in reversed(poses)], atol=1e-12)


@pytest.mark.parametrize(("lengths", "together"), [([1.0, 0.6, 0.9, 0.7], True), ([1.0, 0.6, 0.9, 0.75], False)])
def test_singularities_of_cases_a_and_b_meet_only_if_l0_is_a_sum_of_the_others(lengths, together):
    """l0 = -l1 + l2 + l3 in the first case: at the stretched pose both sets are singular."""
    system = b94.four_bar(lengths, [1.0, 1.0, 1.0])
    start = ld.assemble(system, q={"a1": 2.2})
    poses = {}
    for label in ("a1", "a3"):
        k = system.speeds.index(label)
        assert plan_for(system, start, [k]).explicit
        poses[label] = ld.analyses.singular_poses(system, label, span=(-np.pi, np.pi + 0.1), near=start)
    assert poses["a3"]
    apart = [
        np.abs((p.state.q - r.state.q + np.pi) % (2 * np.pi) - np.pi).max()
        for p in poses["a1"]
        for r in poses["a3"]
    ]  # fmt: skip
    assert (min(apart, default=np.inf) < 1e-5) == together
    named = {p.singular for label in poses for p in poses[label]}
    assert all(label in p.singular for label in poses for p in poses[label])
    assert any({"a1", "a3"} <= set(labels) for labels in named) == together


# --------------------------------------------------------------------------------------- several loops in turn


def six_bar() -> ld.System:
    """Target g3: four-bar A0 A B B0, with a link from the point K of its coupler to a slider S."""
    m = ld.Mechanism("six_bar")
    for name, mass in (("crank", 1.0), ("coupler", 2.0), ("rocker", 1.5), ("link", 1.0), ("slider", 0.5)):
        m.add_body(name, ld.Inertia.planar(mass=mass, com=(0.1, 0.2, 0), izz=0.1))
    pin = ld.Revolute(axis=(0, 0, 1))

    def joint(name, kind, parent, child, at, there):
        frames = {"parent_frame": ld.Frame(position=at), "child_frame": ld.Frame(position=there)}
        m.add_joint(name, kind, parent, child, **frames)

    # each body has its frame at its first pin, x along it
    joint("A0", pin, "ground", "crank", (0, 0, 0), (0, 0, 0))
    joint("A", pin, "crank", "coupler", (0.4, 0, 0), (0, 0, 0))
    joint("B0", pin, "ground", "rocker", (1, 0, 0), (0, 0, 0))
    joint("B", pin, "coupler", "rocker", (0.9, 0, 0), (0.8, 0, 0))
    joint("K", pin, "coupler", "link", (0.5, 0.3, 0), (0, 0, 0))
    joint("S", pin, "slider", "link", (0, 0, 0), (1.0, 0, 0))
    joint("s", ld.Prismatic(axis=(cos(0.2), sin(0.2), 0)), "ground", "slider", (0, 1.2, 0), (0, 0, 0))
    return m.compile(cuts=["B", "S"])


def test_g3_closing_conditions_of_a_six_bar_in_sequence():
    system = six_bar()
    k = {label: n for n, label in enumerate(system.coordinates)}
    state = ld.assemble(system, q={"A0": 0.3})
    plan = plan_for(system, state, [system.speeds.index("A0")])
    assert [set(g.joints) for g in plan.groups] == [{"A", "B", "B0"}, {"K", "S", "s"}]
    for alpha in sorted({row["alpha"] for row in TARGETS["g3_sixbar_sequence"]["rows"]}):
        rows = [r for r in TARGETS["g3_sixbar_sequence"]["rows"] if r["alpha"] == alpha]
        expected = [r for r in rows if r["closable"]]
        found = ld.analyses.branches(system, {"A0": alpha}, near=state)
        assert found.complete
        assert len(found) == len(expected)
        for r in expected:
            match = [b for b in found if abs(b.state.q[k["s"]] - r["s"]) < 1e-12]
            assert len(match) == 1
            q = match[0].state.q
            assert same_angle(q[k["A0"]] + q[k["A"]], r["phi"])
            assert same_angle(q[k["A0"]] + q[k["A"]] + q[k["K"]], r["theta"] + np.pi)  # theirs goes from S to K
            there = ld.State(0.0, q, np.zeros(system.nv))
            solver = ld.Closure(independent=["A0"]).prepare(system, decide(system, there))
            solver(0.0, q, np.zeros(system.nv))
            P = solver.calls.views
            A = dict(zip((system.speeds[d] for d in P.D), P.A[:, 0], strict=True))
            slopes = [1 + A["A"], A["s"], 1 + A["A"] + A["K"]]
            np.testing.assert_allclose(slopes, [r["dz_dalpha_fd"][n] for n in (0, 2, 3)], atol=1e-8)


# ------------------------------------------------------------------------------------------------ trajectories


def simulated(name: str, **options):
    target = b94.TARGETS[name]
    system = b94.four_bar(target["L"], target["m"])
    state = system.state(target["q0"], target["qd0"])
    run = ld.simulate(system, state, (0.0, target["T"]), t_eval=target["times"], formulation=ld.Closure(**options),
                      rtol=1e-12, progress=False)  # fmt: skip
    n = len(run.path.t)
    turn = run.path.q - np.array(target["q"])[:n]
    return run, np.abs((turn + np.pi) % (2 * np.pi) - np.pi).max()


@pytest.mark.parametrize("name", b94.RUNS)
def test_d_runs_that_change_between_cases_a_and_b(name):
    run, error = simulated(name, candidates=["a1", "a3"])
    assert run.status == "finished"
    assert error < 1e-9
    assert run.largest_residual < 1e-13


def test_d2_changes_four_times_and_single_sets_die_where_the_target_says():
    target = b94.TARGETS["d2_loop_both_singularities"]
    run, error = simulated("d2_loop_both_singularities", candidates=["a1", "a3"])
    assert (len(run.events), error < 1e-9) == (4, True)
    for case, label in (("a", "a1"), ("b", "a3")):
        single, _ = simulated("d2_loop_both_singularities", independent=[label])
        assert single.status == "failed"
        t = float(single.message.split("t = ")[1].split(" ")[0])
        assert abs(t - target["single_case"][case]["t_end"]) < 1e-4


def test_k2_fivebar_by_explicit_functions_of_every_pair():
    """All pairs that are not singular make the other two explicit; the best one of the target is taken."""
    k2, (system, state) = b94.TARGETS["k2_fivebar"], b94.k2_five_bar()
    start = ld.assemble(system, q=state.q, v={"a1": 1.0, "a3": -0.5})
    solver = ld.prepare(system, "closure", start)
    assert solver.active == tuple(f"a{i}" for i in k2["exhaustive_best"])
    judge = ld.accelerations(system, start, "oracle")
    for pair, figures in k2["pairs"].items():
        method = ld.Closure(independent=[f"a{i}" for i in pair])
        assert figures["det_normalised"] > 0.0
        assert ld.prepare(system, method, start).plan_.explicit
        np.testing.assert_allclose(ld.accelerations(system, start, method), judge, atol=EXACT)


def test_c2_rheonomic_terms_eta_and_xi():
    c, system = b94.TARGETS["c2_rheonomic"], b94.rheonomic()
    state = ld.State(c["t"], np.array(c["q"]), np.array(c["qd"]))
    solver = ld.prepare(system, ld.Closure(independent=["a1"]), state)
    found, P = solver(state.t, state.q, state.v), solver.calls.views
    np.testing.assert_allclose(P.A[:, 0], c["A"], atol=EXACT)
    np.testing.assert_allclose(P.xi[:, 0], c["xi"], atol=EXACT)
    np.testing.assert_allclose(found.a, c["qdd"], atol=EXACT)


def test_g2_of_a_closed_form_nothing_drifts():
    g = b94.TARGETS["g2_kn_vs_2k"]
    system = b94.four_bar(L, MASSES)
    run = ld.simulate(system, closed(system), (0, 5), formulation=ld.Closure(independent=["a1"]), rtol=1e-12,
                      drift="none", t_eval=[5.0], progress=False)  # fmt: skip
    assert run.largest_residual < 1e-13
    assert run.path.q[-1, 0] % (2 * np.pi) == pytest.approx(g["alpha1_T"] % (2 * np.pi), abs=1e-7)
    assert run.path.v[-1, 0] == pytest.approx(g["alpha1dot_T"], abs=1e-6)


def test_c3_rheonomic_trajectory_iterated():
    """The point O4 is led by a constraint beside the joints, which has no group: the plan says so."""
    c, c2, system = b94.TARGETS["c3_rheonomic_trajectory"], b94.TARGETS["c2_rheonomic"], b94.rheonomic()
    state = ld.State(c2["t"], np.array(c2["q"]), np.array(c2["qd"]))
    run = ld.simulate(system, state, (c["t0"], c["T"]), formulation="closure", rtol=1e-12, progress=False,
                      t_eval=[c["T"]])  # fmt: skip
    assert "iterated: " in run.settings["plan"]
    np.testing.assert_allclose(run.path.q[-1], c["q"], atol=b94.TRAJECTORY)
    np.testing.assert_allclose(run.path.v[-1], c["qd"], atol=b94.TRAJECTORY)
