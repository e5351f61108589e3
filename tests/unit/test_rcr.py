"""Rcr: groups and cells on all kinds of topology, choice of speeds, velocities, drivers, runs, kernels."""

import numpy as np
import pytest
from tests.kernels import check_complex_numbers, check_nothing_is_allocated
from tests.loops import crossed, nested, under_actuated
from tests.marks import gallery_slow
from tests.unit.test_absolute import CONSTRAINTS

import loopdyn as ld
from loopdyn.engine.status import FINE
from loopdyn.formulations.graph import GraphSolver
from loopdyn.formulations.rcr import criterion, kernels, layout
from loopdyn.formulations.rcr import formulation as rcr
from loopdyn.formulations.rcr.formulation import RcrSolver
from loopdyn.loops.rank import decide
from loopdyn.testing.checking import random_sample

PIN = ld.Revolute(axis=(0, 0, 1))


def moving(m: ld.Mechanism, speed: float = 1.0, cuts: list[str] | None = None) -> tuple[ld.System, ld.State]:
    """In generic orientation, at random speeds."""
    system = ld.library.turned(m).compile(cuts=cuts)
    v = speed * system.speed_units * np.random.default_rng(1).normal(size=system.nv)
    return system, ld.assemble(system, v=v)


def prepared(system: ld.System, state: ld.State, **options) -> RcrSolver:
    solver = ld.Rcr(**options).prepare(system, decide(system, state))
    assert isinstance(solver, RcrSolver)
    return solver


def error(system: ld.System, state: ld.State, solver) -> float:
    """Largest difference to the oracle, over the largest acceleration, weight and centripetal terms."""
    exact = ld.accelerations(system, state, "oracle")
    speed = np.abs(state.v / system.speed_units).max(initial=0.0)
    size = max(np.abs(exact / system.speed_units).max(initial=0.0), 9.81 / system.size, speed**2)
    return float(np.abs((solver(state.t, state.q, state.v).a - exact) / system.speed_units).max(initial=0.0) / size)


# ----------------------------------------------------------------------------------------------------- topologies


def on_a_moving_base() -> ld.Mechanism:
    """A four-bar on a body that hangs on two axes; a tail on its coupler."""
    m = ld.Mechanism("moving_base", gravity=(0, -9.81, 0))
    m.add_body("base", ld.Inertia.box(mass=2.0, size=(0.6, 0.3, 0.2), at=(0.3, -0.1, 0.05)))
    m.add_joint("U", ld.Universal(axis1=(0, 0, 1), axis2=(1, 0, 0)), m.ground, "base", at=(0, 0, 0))
    A, B, C, D = (0.5, 0.0, 0.0), (0.7, 0.35, 0.0), (1.5, 0.6, 0.0), (1.5, 0.0, 0.0)
    for name, start, end in (("crank", A, B), ("coupler", B, C), ("rocker", C, D)):
        m.add_body(name, ld.Inertia.rod(mass=1.0, start=start, end=end, radius=0.02))
    m.add_joint("A", PIN, "base", "crank", at=A)
    m.add_joint("B", PIN, "crank", "coupler", at=B)
    m.add_joint("C", PIN, "coupler", "rocker", at=C)
    m.add_joint("D", PIN, "base", "rocker", at=D)
    m.add_body("tail", ld.Inertia.rod(mass=0.5, start=(1.1, 0.5, 0), end=(1.1, 0.9, 0.1), radius=0.02))
    m.add_joint("T", ld.Revolute(axis=(1, 0, 0)), "coupler", "tail", at=(1.1, 0.5, 0))
    return m


def three_legs() -> ld.Mechanism:
    """Redundant five-bar of Fig. 7a in our reading: three legs of two links that meet in one pin."""
    m = ld.Mechanism("three_legs", gravity=(0, -9.81, 0))
    feet, tip = [(0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (0.5, 0.9, 0.0)], np.array([0.45, 0.35, 0.0])
    for k, foot in enumerate(feet):
        along = tip - foot
        knee = foot + 0.5 * along + 0.35 * np.array([-along[1], along[0], 0.0]) / np.linalg.norm(along)
        knee, end = tuple(knee.tolist()), tuple(tip.tolist())
        m.add_body(f"low{k}", ld.Inertia.rod(mass=0.9, start=foot, end=knee, radius=0.01))
        m.add_body(f"up{k}", ld.Inertia.rod(mass=0.7, start=knee, end=end, radius=0.01))
        m.add_joint(f"A{k}", PIN, m.ground, f"low{k}", at=foot)
        m.add_joint(f"B{k}", PIN, f"low{k}", f"up{k}", at=knee)
        if k:
            m.add_joint(f"C{k}", PIN, "up0", f"up{k}", at=end)
    return m


def on_a_coupler() -> ld.Mechanism:
    """A four-bar whose coupler carries another four-bar: a group that stands on a body of a group."""
    m = ld.library.four_bar()
    r = m.resolver()
    B, C = (np.array(r.vector(m.joints[j].at, "length", "", ())) for j in "BC")
    across = np.array([-(C - B)[1], (C - B)[0], 0.0])
    E, H = B + 0.2 * (C - B), B + 0.7 * (C - B)
    F, G = E + 0.3 * across, H + 0.45 * across
    for name, start, end in (("e", E, F), ("f", F, G), ("g", G, H)):
        m.add_body(name, ld.Inertia.rod(mass=0.3, start=tuple(start), end=tuple(end), radius=0.01))
    for name, first, second, at in (("E", "coupler", "e", E), ("F", "e", "f", F), ("G", "f", "g", G)):
        m.add_joint(name, PIN, first, second, at=tuple(at))
    m.add_joint("H", PIN, "coupler", "g", at=tuple(H))
    return m


TOPOLOGIES = {
    "four_bar": ld.library.four_bar(),
    "three_legs": three_legs(),
    "under_actuated": under_actuated(),
    "moving_base": on_a_moving_base(),
    "on_a_coupler": on_a_coupler(),
    "nested": nested(),
    "crossed": crossed(),
    "tower": ld.library.tower(4),
    "stewart_6ups": ld.library.stewart_6ups(),
    **{f"ladder {L}": ld.library.ladder(L) for L in (1, 2, 5, 20)},
    **{f"star_ladder {L}": ld.library.star_ladder(L) for L in (1, 7, 20)},
}


@pytest.mark.parametrize("name", TOPOLOGIES)
def test_accelerations_equal_those_of_the_oracle(name):
    system, state = moving(TOPOLOGIES[name])
    assert error(system, state, prepared(system, state)) < 1e-10


def test_a_ladder_closes_cell_by_cell_in_two_speeds_whatever_is_cut():
    """Cut at the ground, the loops lie one in the other along one long chain: nothing widens."""
    for cuts in (None, [f"U{j}" for j in range(1, 21)], [f"A{j}" for j in range(1, 21)]):
        system, state = moving(ld.library.ladder(20), cuts=cuts)
        plan = prepared(system, state).plan_
        assert plan.width == 2
        assert [len(c.dependent) for c in plan.cells] == [2 if cuts and cuts[0] == "U1" else 3] * 20
        assert max(len(ways) for c in plan.cells for ways, _, _ in c.sides) <= 4


def test_groups_stand_on_bases_that_move():
    system, state = moving(on_a_coupler())
    plan = prepared(system, state).plan_
    assert {system.bodies[g.base] if g.base >= 0 else "ground" for g in plan.groups} == {"ground", "coupler"}
    assert "on coupler: 3 bodies" in str(plan)


def test_rows_that_no_cell_uses_close_the_group_together():
    system, state = moving(ld.library.stewart_3rrs())
    plan = prepared(system, state, candidates=["J1.wx", "J1.wy", "J1.wz", "J4", "J7"]).plan_
    assert plan.width > len(plan.independent)
    assert "together:" in str(plan)


def test_a_wide_group_is_handed_to_graph_by_name():
    system, state = moving(ld.library.tower(15))
    assert "handed to graph: group 1 of width 30 is too wide" in ld.Rcr().plan(system)
    solver = ld.Rcr().prepare(system, decide(system, state))
    assert isinstance(solver, GraphSolver)
    assert error(system, state, solver) < 1e-8
    run = ld.simulate(system, state, (0, 0.001), formulation="rcr", progress=False).raise_if_failed()
    assert "handed to graph" in run.settings["plan"]


def test_functions_in_python_are_refused_in_words():
    m = ld.library.four_bar()
    m.add_force(None, ld.forces.UserForce(function=lambda t, q, v, tau: None))
    with pytest.raises(ld.LoopdynError, match="rcr cannot treat 'four_bar': it has functions in Python"):
        ld.prepare(m.compile(), "rcr")


# --------------------------------------------------------------------------------------------------------- choice


def test_independent_forces_a_choice():
    system, state = moving(ld.library.star_ladder(6))
    for labels in (["U0.1", "U0.2"], ["U3.1", "A5"], ["A2", "U6.2"]):
        solver = prepared(system, state, independent=labels)
        assert set(solver.active) == set(labels)
        assert error(system, state, solver) < 1e-9


@pytest.mark.parametrize("options", [{"switch": 0.5}, {"independent": ["A"], "candidates": ["A"]}])
def test_wrong_options_are_refused_in_the_name_of_rcr(options):
    with pytest.raises(ld.LoopdynError, match=r"^rcr: "):
        ld.Rcr(**options)


def test_a_set_that_cannot_be_independent_is_refused():
    """Coupler and rocker of a double rocker in line: the crank is at its limit."""
    system, _ = double_rocker(0.0)
    state = ld.assemble(system, q={"q3": 0.0})
    with pytest.raises(ld.errors.SingularityError, match="'q1' cannot be independent"):
        prepared(system, state, independent=["q1"])
    assert error(system, state, prepared(system, state)) < 1e-10


@pytest.mark.parametrize("name", ["four_bar", "five_bar", "stewart_3rrs", "random_mechanism"])
def test_kernel_gives_mobilities_and_gains_of_dense_matrices(name):
    system, state = moving(ld.library.ALL[name]())
    solver = prepared(system, state)
    solver.accelerations(state.t, state.q, state.v)
    criterion.check(*solver.calls.arrays)
    now = ld.terms(system, state)
    free = np.diag(np.linalg.inv(now.M))
    np.testing.assert_allclose(solver.calls.views.free, free, rtol=1e-9)
    D = solver.calls.motions()
    np.testing.assert_allclose(now.J @ D.T / system.row_units[:, None], 0.0, atol=1e-9)
    kept = list(solver.calls.plan.independent)
    gains = D**2 * free[kept, None] / free
    gains[:, kept] = 0.0
    assert solver.calls.views.notes[layout.GAIN] == pytest.approx(gains.max(), rel=1e-8)


def test_criterion_is_that_of_partition():
    system, state = moving(on_a_moving_base())
    found = []
    for f in (ld.Rcr(), ld.Partition()):
        solver = f.prepare(system, decide(system, state))
        active = np.isin(system.speeds, solver.active)[None]
        found.append(solver.criterion(np.array([state.t]), state.q[None], state.v[None], active))
    np.testing.assert_allclose(found[0], found[1], atol=1e-9)


# ----------------------------------------------------------------------------------------------------------- runs

SAMPLES = [f"random {k}" for k in (0, 1, 2, 3, 4, 10, 13, 14)]
# s; springs are stiff, and change points follow: links in one line, a flat rhombus, bars that lie on the ground
LONG = {"flyball": 0.1, "n_four_bar": 0.2, "peaucellier": 0.12, "scissor_lift": 0.3}


@pytest.mark.slow
@pytest.mark.parametrize("name", gallery_slow([*(n for n in ld.library.ALL if n != "andrews"), *SAMPLES]))
def test_run_equals_that_of_the_graph_solver(name):
    """Library and random mechanisms in fast motion, over switches; both at a tolerance of 1e-10."""
    kind, _, number = name.partition(" ")
    system, state = moving(random_sample(5, int(number), 4) if number else ld.library.ALL[kind](), speed=4.0)
    end = LONG.get(name, 1.0)
    options = {"rtol": 1e-10, "progress": False, "t_eval": [end / 2, end]}
    run = ld.simulate(system, state, (0, end), formulation="rcr", **options).raise_if_failed()
    ref = ld.simulate(system, state, (0, end), formulation="graph", **options).raise_if_failed()
    assert run.settings["compiled"]
    assert run.largest_residual < 1e-13
    np.testing.assert_allclose(run.path.q, ref.path.q, atol=3e-8)


@pytest.mark.slow
def test_velocities_are_met_without_correction():
    system = ld.library.turned(ld.library.star_ladder(4)).compile()
    state = ld.assemble(system, v={"U0.1": 0.5, "U0.2": -0.7})
    run = ld.simulate(system, state, (0, 2), formulation="rcr", drift="velocity", rtol=1e-7, progress=False)
    assert run.settings["compiled"]
    assert np.abs(run.data["residual_velocity"]).max() < 1e-11


@pytest.mark.slow
def test_drivers_and_moving_bases_lower_the_freedoms_and_are_followed():
    m = ld.library.turned(ld.library.five_bar())
    m.add_driver("given", "A", "0.2*sin(3*t)")
    m.move_base(x="0.2*sin(3*t)", rz="0.3*sin(2*t)")
    system = m.compile()
    state = ld.assemble(system)
    assert len(prepared(system, state).active) == 1
    options = {"rtol": 1e-10, "progress": False, "t_eval": [1.0]}
    run = ld.simulate(system, state, (0, 1), formulation="rcr", **options).raise_if_failed()
    ref = ld.simulate(system, state, (0, 1), formulation="graph", **options)
    np.testing.assert_allclose(run.path.q, ref.path.q, atol=1e-7)
    assert run.energy_error < 1e-7


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:arm. full turns of A.1, A.2 of cut joints")  # of the coupler; the motion is short
@pytest.mark.parametrize("name", [n for n in CONSTRAINTS if n != "driver"])
def test_constraints_of_all_kinds_on_a_moving_base(name):
    matrix = [[0.3, 0.01, 0.02], [0.01, 0.2, 0.03], [0.02, 0.03, 0.25]]
    m = ld.Mechanism("arm", gravity=(0, 0, -9.81))
    for body, com in (("a", (0.3, 0.1, 0.2)), ("b", (1.0, 0.4, 0.3)), ("c", (1.0, 0.4, 1.3))):
        m.add_body(body, ld.Inertia(1.0, com, matrix))
    m.add_joint("A", ld.Universal(axis1=(1, 0.2, 0), axis2=(0, 1, 0.3)), m.ground, "a", at=(0, 0, 0))
    m.add_joint("B", ld.Cylindrical(axis=(0.2, 0.3, 1)), "a", "b", at=(0.8, 0.2, 0.1))
    m.add_joint("C", ld.Revolute(axis=(0.5, 0.3, 1)), "b", "c", at=(0.8, 0.2, 0.9))
    m.move_base(x="0.3*sin(t)", rz="0.4*t**2", ry="0.2*t")
    m.add_constraint("k", CONSTRAINTS[name])
    for cuts in (None, ["A"]):  # with a free root, coordinates of a cut joint are bound
        system = m.compile(cuts=cuts)
        state = ld.assemble(system, v=0.3 * np.arange(system.nv))
        state = ld.assemble(system, q=state.q, v=state.v, t=0.4)
        assert error(system, state, prepared(system, state)) < 1e-9
    system = m.compile()
    state = ld.assemble(system, v=0.3 * np.arange(system.nv))
    options = {"rtol": 1e-10, "progress": False, "t_eval": [0.3]}
    run = ld.simulate(system, state, (0, 0.3), formulation="rcr", **options).raise_if_failed()
    ref = ld.simulate(system, state, (0, 0.3), formulation="graph", **options).raise_if_failed()
    np.testing.assert_allclose(run.path.q, ref.path.q, atol=1e-8)


@pytest.mark.slow
def test_a_relation_that_is_not_affine_in_the_speeds_is_followed():
    """A particle whose speed is kept at 5 m/s, under gravity: x'^2 + y'^2 = 25."""
    m = ld.Mechanism("particle", gravity=(0, -9.81, 0))
    m.add_body("p", ld.Inertia.planar(mass=1.0, com=(0, 0, 0), izz=1.0))
    m.add_joint("P", ld.Planar(normal=(0, 0, 1)), m.ground, "p", at=(0, 0, 0))
    m.add_constraint("c", ld.constraints.VelocityRelation(formula="x**2 + y**2 - 25", speeds={"x": "P.x", "y": "P.y"}))
    system = m.compile()
    state = system.state(v={"P.x": 4.0, "P.y": 3.0})
    run = ld.simulate(system, state, (0, 1), formulation="rcr", rtol=1e-10, progress=False).raise_if_failed()
    assert len(run.events) > 0  # the best of the two speeds changes as the direction turns
    np.testing.assert_allclose(np.hypot(run.path.v[:, 0], run.path.v[:, 1]), 5.0, atol=1e-9)


@pytest.mark.slow
def test_a_mechanism_whose_motion_is_all_given_has_no_independent_speed():
    m = ld.library.four_bar()
    m.add_driver("given", "A", "0.5*t")
    system = m.compile()
    state = ld.assemble(system, q={}, v={})
    run = ld.simulate(system, state, (0, 1), formulation="rcr", progress=False, t_eval=[1.0]).raise_if_failed()
    assert run.path.q[-1, system.coordinates.index("A")] == pytest.approx(state.q[0] + 0.5, abs=1e-9)


@pytest.mark.slow
def test_a_run_into_a_pose_where_all_sets_are_singular_ends_with_a_reason():
    """The links of a parallelogram in line: its change point."""
    system, state = moving(ld.library.n_four_bar(1), speed=4.0)
    run = ld.simulate(system, state, (0, 1), formulation="rcr", rtol=1e-10, progress=False)
    assert run.status == "failed"
    assert "singular" in run.message
    assert abs(abs(run.path.q[-1, 0]) - np.pi / 2) < 0.05  # all are drawn upright


def double_rocker(speed: float) -> tuple[ld.System, ld.State]:
    """Lengths 1, 0.8, 0.5, 0.6: no link turns fully, each has two dead points."""
    m = ld.Mechanism("double_rocker")
    x, parent = 0.0, m.ground
    for k, (length, mass) in enumerate(zip((0.8, 0.5, 0.6), (1.0, 2.0, 1.5), strict=True), 1):
        m.add_body(f"bar{k}", ld.Inertia.planar(mass=mass, com=(x + length / 2, 0, 0), izz=mass * length**2 / 12))
        m.add_joint(f"q{k}", PIN, parent, f"bar{k}", at=(x, 0, 0))
        x, parent = x + length, f"bar{k}"
    ends = {"parent_frame": ld.Frame(position=(1, 0, 0)), "child_frame": ld.Frame(position=(x, 0, 0))}
    m.add_joint("q4", PIN, m.ground, "bar3", **ends)
    system = ld.library.turned(m).compile()
    return system, ld.assemble(system, q={"q1": 0.6}, v={"q1": speed})


@pytest.mark.parametrize("speed", [1.5, -1.5])
def test_dead_points_of_a_double_rocker_are_passed_by_switches(speed):
    """Both senses; the switches are those of `partition`, the energy is kept, and so is the path."""
    system, state = double_rocker(speed)
    options = {"rtol": 1e-10, "progress": False, "t_eval": np.linspace(0, 6, 61)}
    run = ld.simulate(system, state, (0, 6), formulation="rcr", **options).raise_if_failed()
    ref = ld.simulate(system, state, (0, 6), formulation="partition", **options).raise_if_failed()
    assert len(run.events) >= 8
    assert [e.name for e in run.events] == [e.name for e in ref.events]
    np.testing.assert_allclose([e.t for e in run.events], [e.t for e in ref.events], atol=1e-4)  # ends of steps
    np.testing.assert_allclose(run.path.q, ref.path.q, atol=1e-7)
    assert run.energy_error < 1e-8


# -------------------------------------------------------------------------------------------------------- kernels


@pytest.mark.parametrize("name", ["moving_base", "three_legs", "ladder 5"])
def test_nothing_is_left_from_earlier_evaluations(name):
    """Work arrays full of what is not a number, but for the state and what was noted at the choice."""
    system, state = moving(TOPOLOGIES[name])
    solver = prepared(system, state)
    for arrays in (solver.calls, solver.run):
        arrays.put(state.t, state.q, state.v)
        kernels.accelerate(*arrays.arrays)
        a, chosen = arrays.state.a.copy(), arrays.views.chosen.copy()
        arrays.work[:] = np.nan
        arrays.put(state.t, state.q, state.v)
        arrays.state.tau[:] = 0.0
        arrays.state.near[:] = 0.0
        arrays.views.chosen[:] = chosen
        arrays.views.notes[layout.ASKED] = layout.ACCELERATIONS
        assert kernels.accelerate(*arrays.arrays) == FINE
        np.testing.assert_array_equal(arrays.state.a, a)


def test_multipliers_of_a_long_ladder_balance_the_tree():
    system, state = moving(ld.library.star_ladder(60))
    solution = prepared(system, state)(state.t, state.q, state.v)
    now = ld.terms(system, state)
    missing = now.M @ solution.a - now.h - now.J.T @ solution.lam
    assert np.abs(missing).max() < 1e-11 * np.abs(now.h).max()


def test_evaluations_allocate_nothing():
    system, state = moving(ld.library.stewart_3rrs())
    solver = prepared(system, state, candidates=["J1.wx", "J1.wy", "J1.wz", "J4", "J7"])
    solver.run.put(state.t, state.q, state.v)
    check_nothing_is_allocated((kernels.accelerate, criterion.check, kernels.correct), solver.run.arrays)


@pytest.mark.jit_off
def test_kernels_run_in_complex_numbers():
    system, state = moving(ld.library.four_bar())
    calls = prepared(system, state, independent=["A"]).calls

    def evaluate(work):
        assert kernels.accelerate(calls.ints, calls.floats, work) == FINE

    check_complex_numbers(system, state, calls.work, evaluate)


def test_result_does_not_depend_on_the_order_of_the_file():
    """Bodies and joints shuffled: the same plan, the same numbers but for rounding."""
    m = ld.library.turned(ld.library.star_ladder(12))
    other = m.model_copy(deep=True)
    rng = np.random.default_rng(0)
    for section in ("bodies", "joints"):
        items = list(getattr(other, section).items())
        setattr(other, section, {items[k][0]: items[k][1] for k in rng.permutation(len(items))})
    system, again = m.compile(), other.compile()
    state = ld.assemble(system, v={"U0.1": 0.5, "U0.2": -0.7})
    there = again.state(
        dict(zip(system.coordinates, state.q, strict=True)), dict(zip(system.speeds, state.v, strict=True))
    )
    solvers = prepared(system, state), prepared(again, there)
    assert set(solvers[0].active) == set(solvers[1].active)
    assert solvers[0].plan_.width == solvers[1].plan_.width <= rcr.WIDEST
    a = dict(zip(again.speeds, solvers[1](there.t, there.q, there.v).a, strict=True))
    expected = solvers[0](state.t, state.q, state.v).a
    np.testing.assert_allclose([a[x] for x in system.speeds], expected, atol=1e-11 * np.abs(expected).max())
