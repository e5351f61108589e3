"""Anderson and Critchley (2003): Figs. 5, 6, 8, 10, and three formulas that are printed wrong.

The paper's own parameters are lost with its figures: these sets and their numbers come from an independent prototype in
the coordinates of the paper (relative angles, body axes, phantom bodies) and from dense equations in absolute
coordinates. Fig. 6 is the drift of a four-bar with constraints at acceleration and at velocity level, by RK4 with
h = 0.01 s; the error is the gap at the last pin.
"""

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from tests.loops import under_actuated

import loopdyn as ld
from loopdyn.formulations.rcr.formulation import RcrSolver

TARGETS = json.loads((Path(__file__).parent / "data" / "anderson2003.json").read_text())
FRAME, LENGTHS, MASSES, WIDTH = 1.0, (0.4, 0.9, 0.7), (1.0, 2.0, 1.5), 0.02
START = [1.0, -0.5857315426515687, -2.0422256866237967]
RATES = np.array([1.0, -1.2451133102801084, 0.5996804065950313])  # of all angles for a crank at 1 rad/s
TIMES = (1, 2, 5, 10, 20)

# gravity, speed of the crank, accelerations at the start, and the gap at TIMES with constraints at acceleration level
SETS = {
    "violent": (9.81, 2.0, [-14.154216517932133, 19.04505877201462, -7.6810852254679585],
                [5.611573334692377e-06, 3.6701570045324874e-05, 2.5722032331506456e-04, 1.0876658265855982e-03,
                 4.462901768200932e-03]),
    "gentle": (0.0, 1.0, [-0.5826290140219722, 1.0808029875518224, -0.14766093126283547],
               [2.3284789625082686e-10, 1.6591738659942528e-09, 6.219941812237191e-09, 2.7931337431755016e-08,
                1.3472627569794573e-07]),
    "spinning": (0.0, 6.0, None,
                 [2.1036160360922535e-06, 4.708281373708306e-05, 4.2307765983024285e-04, 1.8514040349665174e-03,
                  7.723913359071417e-03]),
}  # fmt: skip
# With velocities enforced the prototype's gap of the gentle set stays at 1.3e-9 from the first second on, where ours is
# 1.5e-10; why is not known. Differences of that size, and growing at that rate per second, are not resolved by it.
UNRESOLVED = 1.3e-9


def four_bar(gravity: float) -> ld.System:
    """Three bars in a row along x at the reference pose, whose last end is pinned to the ground at (FRAME, 0)."""
    m = ld.Mechanism("four_bar", gravity=(0, -gravity, 0))
    x, parent = 0.0, m.ground
    for k, (length, mass) in enumerate(zip(LENGTHS, MASSES, strict=True), 1):
        izz = mass * (length**2 + WIDTH**2) / 12
        m.add_body(f"bar{k}", ld.Inertia.planar(mass=mass, com=(x + length / 2, 0, 0), izz=izz))
        m.add_joint(f"q{k}", ld.Revolute(axis=(0, 0, 1)), parent, f"bar{k}", at=(x, 0, 0))
        x, parent = x + length, f"bar{k}"
    ends = {"parent_frame": ld.Frame(position=(FRAME, 0, 0)), "child_frame": ld.Frame(position=(x, 0, 0))}
    m.add_joint("q4", ld.Revolute(axis=(0, 0, 1)), m.ground, "bar3", **ends)
    return m.compile(cuts=["q4"])


@cache
def gap(name: str, drift: str, formulation: str | ld.formulations.Formulation = "graph") -> np.ndarray:
    """Gap at the last pin, every 0.01 s for 20 s."""
    gravity, speed, _, _ = SETS[name]
    system = four_bar(gravity)
    state = ld.assemble(system, q=START, v=speed * RATES)
    run = ld.simulate(system, state, (0, 20), t_eval=np.linspace(0, 20, 2001), integrator=ld.integrators.RK4(step=0.01),
                      drift=drift, formulation=formulation, progress=False).raise_if_failed()  # fmt: skip
    return np.linalg.norm(run.diagnostics.residual[:, 0], axis=1)


@pytest.mark.parametrize("name", [pytest.param("violent", marks=pytest.mark.slow), "gentle"])
def test_accelerations_at_the_start(name):
    gravity, speed, expected, _ = SETS[name]
    system = four_bar(gravity)
    a = ld.accelerations(system, ld.assemble(system, q=START, v=speed * RATES))
    np.testing.assert_allclose(a, expected, rtol=1e-8)


@pytest.mark.parametrize("name", SETS)
def test_gap_with_constraints_at_acceleration_level_is_that_of_the_prototype(name):
    found = gap(name, "none")[[100 * t for t in TIMES]]
    tolerance = [UNRESOLVED * (1 + t) for t in TIMES] if name == "gentle" else [1e-3 * x for x in SETS[name][3]]
    assert np.all(np.abs(found - SETS[name][3]) < tolerance)


@pytest.mark.parametrize("name", SETS)
def test_at_acceleration_level_the_gap_grows_with_the_square_of_time(name):
    """Twice the time, four times the gap; a linear growth would be two."""
    found = gap(name, "none")
    assert 3.5 < found[2000] / found[1000] < 5.5


@pytest.mark.parametrize("name", SETS)
def test_at_velocity_level_the_gap_is_bounded_or_grows_linearly(name):
    """Largest gap until 10 s and until 20 s; it stays a hundred times smaller than without."""
    found = gap(name, "velocity")
    assert found.max() / found[:1001].max() < 2.2
    assert found.max() < 0.01 * gap(name, "none").max()


@pytest.mark.parametrize("name", SETS)
def test_with_projection_there_is_no_drift(name):
    """One correction a step: what is left is the square of the error of a step, the same all the time."""
    found = gap(name, "projection")
    assert found.max() < 1e-9
    assert found[1001:].max() < 2.0 * found[:1001].max() + 1e-14


# ------------------------------------------------------------------------------------------- coordinate reduction


@pytest.mark.parametrize("name", [pytest.param("violent", marks=pytest.mark.slow), "gentle"])
def test_fig_5_trajectories_overlap(name):
    """Reduced and with multipliers, beside a run of dense equations at small tolerance."""
    gravity, speed, _, _ = SETS[name]
    target = TARGETS["four_bar"][name]
    system = four_bar(gravity)
    state = ld.assemble(system, q=START, v=speed * RATES)
    for formulation in ("rcr", "relative"):
        run = ld.simulate(system, state, (0, 5), t_eval=target["ref_t"], rtol=1e-11, formulation=formulation,
                          progress=False).raise_if_failed()  # fmt: skip
        turns = np.array(target["ref_q"])[:, :3]
        np.testing.assert_allclose(run.path.q, turns, atol=2e-7)
        np.testing.assert_allclose(run.path.v[:, 0], target["ref_u1"], atol=2e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS["velocity_gap"])
def test_fig_6_gap_of_reduced_equations_is_that_of_the_prototype(name):
    """Velocities are exact by construction and the first angle stays independent, as in the prototype.

    Its gap to one per cent after 1 s; later these motions have forgotten their start. At no time a hundredth of the
    gap without.
    """
    found = gap(name, "velocity", ld.Rcr(independent=["q1"]))[[100 * t for t in TIMES]]
    np.testing.assert_allclose(found[0], TARGETS["velocity_gap"][name][0], rtol=1e-2)
    assert found.max() < 1e-2 * gap(name, "none").max()


def three_legs() -> tuple[ld.System, ld.State]:
    """Redundant five-bar, our reading of Fig. 7a: three legs (0.6, 0.55) that meet in one pin."""
    target = TARGETS["five_bar"]
    m = ld.Mechanism("five_bar", gravity=(0, -9.81, 0))
    inner, outer = 0.6, 0.55

    def bar(name: str, length: float, mass: float, x: float) -> None:
        m.add_body(name, ld.Inertia.planar(mass=mass, com=(x + length / 2, 0, 0), izz=_izz(mass, length)))

    pin = ld.Revolute(axis=(0, 0, 1))
    bar("a1", inner, 1.0, 0.0)
    bar("b1", outer, 0.8, inner)
    m.add_joint("q1", pin, m.ground, "a1", at=(0, 0, 0))
    m.add_joint("q2", pin, "a1", "b1", at=(inner, 0, 0))
    tip = inner + outer
    for k, foot in ((3, (1.0, 0.0, 0.0)), (6, (0.5, 0.9, 0.0))):
        bar(f"b{k}", outer, 0.7, tip)
        bar(f"a{k}", inner, 0.9, tip + outer)
        m.add_joint(f"q{k}", pin, "b1", f"b{k}", at=(tip, 0, 0))
        m.add_joint(f"q{k + 1}", pin, f"b{k}", f"a{k}", at=(tip + outer, 0, 0))
        ends = {"parent_frame": ld.Frame(position=foot), "child_frame": ld.Frame(position=(tip + outer + inner, 0, 0))}
        m.add_joint(f"q{k + 2}", pin, m.ground, f"a{k}", **ends)
    system = m.compile(cuts=["q5", "q8"])
    q = {f"q{k + 1}": target["q0"][k] for k in (0, 1, 2, 3, 5, 6)}
    v = {f"q{k + 1}": target["u0"][k] for k in (0, 1, 2, 3, 5, 6)}
    return system, ld.assemble(system, q=q, v=v)


def _izz(mass: float, length: float) -> float:
    return mass * (length**2 + WIDTH**2) / 12


def test_fig_8_redundant_five_bar():
    target = TARGETS["five_bar"]
    system, state = three_legs()
    solver = ld.prepare(system, ld.Rcr(independent=["q1", "q2"]), state)
    assert isinstance(solver, RcrSolver)
    assert [len(c.dependent) for c in solver.plan_.cells] == [2, 2]
    expected = [target["udot0"][int(x[1:]) - 1] for x in system.speeds]
    np.testing.assert_allclose(solver(state.t, state.q, state.v).a, expected, rtol=1e-9)
    run = ld.simulate(system, state, (0, 0.3), t_eval=target["t"], rtol=1e-11, formulation="rcr",
                      progress=False).raise_if_failed()  # fmt: skip
    first = [system.speeds.index(x) for x in ("q1", "q2")]
    np.testing.assert_allclose(run.path.q[:, first], target["q12"], atol=1e-7)
    np.testing.assert_allclose(run.path.v[:, first], target["u12"], atol=1e-5)


def test_fig_7b_under_actuated_parallel_manipulator():
    """Independent as the paper has it: one leg up to the plate, then the pins at the plate of the other legs.

    Each of these legs is one cell with two dependent pins. Accelerations are those of dense equations in all
    coordinates, and the run is that of multipliers, over switches to better speeds.
    """
    system = ld.library.turned(under_actuated()).compile(cuts=["A1", "A2"])
    state = ld.assemble(system, v={"A0": 1.0, "B0": -0.5, "E0": 0.7, "E1": 0.4, "E2": -0.6})
    exact = ld.accelerations(system, state, "oracle")
    first = ["A0", "B0", "E0", "E1", "E2"]
    solver = ld.prepare(system, ld.Rcr(independent=first), state)
    assert isinstance(solver, RcrSolver)
    assert solver.active == tuple(x for x in system.speeds if x in first)
    assert [len(c.dependent) for c in solver.plan_.cells] == [2, 2]
    for found in (solver(state.t, state.q, state.v).a, ld.accelerations(system, state, "rcr")):
        np.testing.assert_allclose(found, exact, atol=1e-10 * np.abs(exact).max())
    options = {"t_eval": [0.5, 1.0], "rtol": 1e-10, "progress": False}
    run = ld.simulate(system, state, (0, 1), formulation="rcr", **options).raise_if_failed()
    ref = ld.simulate(system, state, (0, 1), formulation="graph", **options).raise_if_failed()
    np.testing.assert_allclose(run.path.q, ref.path.q, atol=1e-7)
    assert run.largest_residual < 1e-12


@pytest.mark.parametrize("L", [1, 2, *(pytest.param(L, marks=pytest.mark.slow) for L in (5, 10, 100))])
def test_fig_10_all_ladders_follow_the_pendulum(L):
    """Two angles of the equivalent pendulum, integrated apart from any multibody code."""
    target = TARGETS["ladder"]
    system = ld.library.ladder(L).compile()
    state = ld.assemble(system)
    run = ld.simulate(system, state, (0, 5), t_eval=target["t"], rtol=1e-11, formulation="rcr",
                      progress=False).raise_if_failed()  # fmt: skip
    for label, expected in (("U0.1", "q1"), (f"U{L}.2", "q2")):
        found = run.path.q[:, system.coordinates.index(label)]
        np.testing.assert_allclose(found, target[expected], atol=1e-7)


def test_a_loop_on_a_moving_base_needs_the_load_of_its_closing_joint():
    """After (66) the paper lets inertia and force of the loop pass to its base as they are.

    With H00 - H M^-1 H^T the base gets what dense equations in absolute coordinates say.
    """
    target = TARGETS["moving_base"]
    m = ld.Mechanism("moving_base", gravity=(0, -9.81, 0))
    X, Z = (1, 0, 0), (0, 0, 1)
    m.add_body("base", ld.Inertia(2.0, (0.3, -0.1, 0.05), np.diag([0.2, 0.3, 0.25]).tolist()))
    m.add_joint("U", ld.Universal(axis1=Z, axis2=X), m.ground, "base", at=(0, 0, 0))
    start = x = 0.3 + 0.2
    parent = "base"
    for k, (length, mass) in enumerate(zip(LENGTHS, MASSES, strict=True), 1):
        across, along = mass * (length**2 + WIDTH**2) / 12, mass * WIDTH**2 / 4
        inertia = np.diag([along, across, across]).tolist()
        m.add_body(f"bar{k}", ld.Inertia(mass, (x + length / 2, 0.0, 0.05), inertia))
        m.add_joint(f"q{k}", ld.Revolute(axis=Z), parent, f"bar{k}", at=(x, 0.0, 0.05))
        x, parent = x + length, f"bar{k}"
    ends = {"parent_frame": ld.Frame(position=(start + FRAME, 0, 0.05)), "child_frame": ld.Frame(position=(x, 0, 0.05))}
    m.add_joint("q4", ld.Revolute(axis=Z), "base", "bar3", **ends)
    # on the coupler at (0.1, 0.05, 0) from its centre
    at = np.array([start + LENGTHS[0] + LENGTHS[1] / 2 + 0.1, 0.05, 0.05])
    m.add_body("tail", ld.Inertia(0.5, (at + [0, 0.3, 0]).tolist(), np.diag([0.02, 0.01, 0.03]).tolist()))
    m.add_joint("T", ld.Revolute(axis=X), "bar2", "tail", at=at.tolist())
    system = m.compile(cuts=["q4"])
    labels = ["U.1", "U.2", "q1", "q2", "q3", None, "T"]
    place = [labels.index(x) for x in system.speeds]
    q, v = np.array(target["q"])[place], np.array(target["u"])[place]
    state = ld.assemble(system, q=q, v=v)
    np.testing.assert_allclose(state.q, q, atol=1e-9)
    expected, printed = (np.array(target[k])[place] for k in ("udot_correct", "udot_as_printed"))
    found = ld.accelerations(system, state, "rcr")
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    assert np.abs(printed - expected).max() > 20.0


# --------------------------------------------------------------------------- equations (33)-(55), word for word


def test_dependent_accelerations_contain_the_body_before():
    """(51) and (55) are printed with Gamma^k and Xi^k in the place of Gamma^(k-1), Xi^(k-1).

    The four-bar with its phantom body in the plane (omega, vx, vy at mass centres, body axes): with the correction the
    dependent accelerations are those of the closed loop, as printed they are not. Our kernels give the same.
    """
    target, udot = TARGETS["eq55"], TARGETS["four_bar"]["violent"]["udot0"]
    q, u = (np.array(TARGETS["four_bar"]["violent"][k]) for k in ("q0", "u0"))
    # joint to centre in own axes, centre of the body before to joint in its axes
    r = [np.array([x / 2, 0.0]) for x in LENGTHS] + [np.array([-FRAME, 0.0])]
    s = [np.zeros(2)] + [np.array([x / 2, 0.0]) for x in LENGTHS]
    quarter = np.array([[0.0, -1.0], [1.0, 0.0]])
    S, P, A = [], [], [np.zeros(3)]
    omega = 0.0
    for k in range(4):
        c, sn = np.cos(q[k]), np.sin(q[k])
        C = np.array([[c, -sn], [sn, c]])  # own axes to those of the body before
        gamma = C.T @ s[k] + r[k]
        shift = np.eye(3)  # of velocities: S^T
        shift[1:, 0], shift[1:, 1:] = quarter @ gamma, C.T
        S.append(shift.T)
        P.append(np.concatenate([[1.0], quarter @ r[k]]))
        before = omega
        omega += u[k]
        a = C.T @ (A[-1][1:] - before**2 * s[k]) - omega**2 * r[k]  # remainders have no angular part here
        A.append(np.concatenate([[0.0], a]))
    kS, tau, found = np.eye(3), np.eye(3), {}
    for k in (3, 2, 1):
        B = kS.T @ P[k]
        X = B @ tau / (B @ tau @ B)  # (45)
        chi = -np.outer(P[k], X)  # (48)
        before = S[k] @ kS  # (43)
        found[k] = X, chi, before, S[k].T + chi @ before.T  # (49)
        tau = tau - np.outer(tau @ B, X)  # (44)
        kS = before
    Ap, At = P[0] * udot[0], A[-1]
    Gamma, Xi = np.eye(3), np.zeros((3, 3))
    right, printed = [], []
    for k in (1, 2, 3):
        X, chi, before, delta = found[k]
        right.append(-X @ (before.T @ Gamma @ Ap + (before.T @ Xi + np.eye(3)) @ At))
        Gamma, Xi = delta @ Gamma, delta @ Xi + chi  # (52), (53)
        printed.append(-X @ (before.T @ Gamma @ Ap + (before.T @ Xi + np.eye(3)) @ At))
    np.testing.assert_allclose(right, udot[1:], rtol=1e-9)
    np.testing.assert_allclose(right, target["udot"], rtol=1e-9)
    np.testing.assert_allclose(printed, target["as_printed"], rtol=1e-6)
    system = four_bar(9.81)
    a = ld.accelerations(system, ld.assemble(system, q=START, v=2.0 * RATES), "rcr")
    np.testing.assert_allclose(a, udot[:3], rtol=1e-8)
