"""Partition: criteria, choice of sets, forms of the state, switching."""

from itertools import combinations

import numpy as np
import pytest
from tests.kernels import check_complex_numbers, check_nothing_is_allocated
from tests.literature.blajer1994 import orthogonal_projections
from tests.marks import gallery_slow
from tests.unit.test_absolute import CONSTRAINTS

import loopdyn as ld
from loopdyn.engine.status import FINE
from loopdyn.formulations.partition import criteria, kernels, layout
from loopdyn.formulations.partition.formulation import PartitionSolver
from loopdyn.loops.rank import decide
from loopdyn.testing.checking import random_sample


def prepared(system: ld.System, state: ld.State, **options) -> PartitionSolver:
    return PartitionSolver(system, decide(system, state), ld.Partition(**options))


def random_case(rng: np.random.Generator, n: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """A mass matrix and sparse constraint rows."""
    B = rng.normal(size=(n, n))
    C = rng.normal(size=(n - k, n)) * (rng.random((n - k, n)) < 0.5)
    return B @ B.T + 0.1 * np.eye(n), C


def projections(M: np.ndarray, C: np.ndarray) -> np.ndarray:
    D = criteria.null_space(C, len(C)).T
    return criteria.tangent(M, D, np.diag(np.linalg.inv(M)))


# ---------------------------------------------------------------------------------------------- criteria


def test_tangent_and_orthogonal_criterion_are_one_by_cosine_and_sine():
    rng = np.random.default_rng(1)
    for n, k in ((3, 1), (6, 2), (9, 4)):
        M, C = random_case(rng, n, k)
        while np.linalg.matrix_rank(C) < n - k:
            M, C = random_case(rng, n, k)
        cos2 = (projections(M, C) ** 2).sum(axis=0)
        np.testing.assert_allclose(cos2 + orthogonal_projections(M, C), 1.0, atol=1e-10)
        N = projections(M, C).T @ projections(M, C)
        other = criteria.orthogonal(M, C)
        np.testing.assert_allclose(other.T @ other, N, atol=1e-9)


def test_criterion_does_not_depend_on_units_of_coordinates():
    M, C = random_case(np.random.default_rng(2), 7, 2)
    s = np.array([1.0, 1e3, 1e-3, 10.0, 0.2, 5.0, 1.0])
    scaled = projections(M * np.outer(s, s), C * s)
    np.testing.assert_allclose((scaled**2).sum(axis=0), (projections(M, C) ** 2).sum(axis=0), atol=1e-8)


def test_the_k_biggest_projections_may_form_a_singular_set():
    """Counterexample: C = [1, -1, 0], the two biggest are the first two, whose dependent column is zero."""
    M = np.linalg.inv([[1.0, 0.8, 0.25], [0.8, 1.0, -0.25], [0.25, -0.25, 1.0]])
    C = np.array([[1.0, -1.0, 0.0]])
    W = projections(M, C)
    cos2 = (W**2).sum(axis=0)
    np.testing.assert_allclose(cos2, [0.9, 0.9, 0.375], atol=1e-12)
    assert criteria.measure(W, [0, 1]) < 1e-20
    assert criteria.best_set(W) in ([0, 2], [1, 2])
    assert criteria.measure(W, criteria.best_set(W)) > 0.3


def test_pivoting_and_exchange_find_the_best_set_almost_always():
    """n = 8, k = 3, random sparse rows: 94 % by pivoting, 99 % with exchange (specification)."""
    rng = np.random.default_rng(3)
    pivoted = found = naive = count = 0
    while count < 300:
        M, C = random_case(rng, 8, 3)
        if np.linalg.cond(C) > 1e6:
            continue
        W = projections(M, C)
        best = max(criteria.measure(W, list(s)) for s in combinations(range(8), 3))
        naive += criteria.measure(W, list(np.argsort(-(W**2).sum(axis=0))[:3])) > best * (1 - 1e-9)
        pivoted += criteria.measure(W, criteria.largest(W, 3)) > best * (1 - 1e-9)
        found += criteria.measure(W, criteria.best_set(W)) > best * (1 - 1e-9)
        count += 1
    assert naive < pivoted < found
    assert found >= 0.97 * count


def test_exchange_gain_is_the_ratio_of_the_measures():
    """What the kernel compares after each step equals det N of the set with one coordinate exchanged."""
    system = ld.library.five_bar().compile()
    state = ld.assemble(system, v={"A": 1.0})
    solver = prepared(system, state)
    solver._evaluate(state.t, state.q, state.v)
    kernels.check(*solver.calls.arrays)
    W, now = solver.projections(), list(solver.choice.independent)
    gains = [
        criteria.measure(W, [j if x == i else x for x in now]) / criteria.measure(W, now)
        for i in now
        for j in range(system.nv)
        if j not in now
    ]
    assert float(solver.calls.views.notes[layout.GAIN]) == pytest.approx(max(gains), rel=1e-10)


@pytest.mark.jit_off
@pytest.mark.parametrize("name", ["four_bar", "rssr", "stewart_3rrs", "bricard"])
def test_kernel_gives_the_criterion_of_dense_matrices(name):
    system = ld.library.turned(ld.library.ALL[name]()).compile()
    state = ld.assemble(system)
    solver = prepared(system, state)
    now = ld.terms(system, state)
    W = criteria.tangent(
        now.M,
        criteria.null_space(now.J, solver.rank.count).T,
        np.diag(np.linalg.inv(now.M)),
    )
    np.testing.assert_allclose(solver.calls.views.cosine, (W**2).sum(axis=0), rtol=1e-7, atol=1e-10)
    np.testing.assert_allclose(solver.calls.views.free, np.diag(np.linalg.inv(now.M)), rtol=1e-7)


def test_svd_and_lu_do_not_see_masses_and_the_projective_criterion_does():
    best = {}
    for criterion in ("tangent", "svd", "lu"):
        best[criterion] = []
        for mass in (0.01, 100.0):
            m = ld.library.four_bar()
            rocker = m.bodies["rocker"]
            m.bodies["rocker"] = rocker.model_copy(update={"mass": mass})
            system = m.compile(cuts=["C"])
            best[criterion].append(
                prepared(system, ld.assemble(system), criterion=criterion).projections().round(12).tolist()
            )
    assert best["svd"][0] == best["svd"][1]
    assert best["lu"][0] == best["lu"][1]
    assert best["tangent"][0] != best["tangent"][1]


# ------------------------------------------------------------------------------------------- what is asked for


def test_independent_forces_a_choice():
    system = ld.library.four_bar().compile()
    state = ld.assemble(system, v={"A": 2.0})
    for label in system.speeds:
        solver = prepared(system, state, independent=[label])
        assert solver.active == (label,)
        expected = ld.accelerations(system, state, "oracle")
        np.testing.assert_allclose(solver(state.t, state.q, state.v).a, expected, rtol=1e-10)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"criterion": "qr"}, "criterion is 'qr'. Give"),
        ({"form": "n"}, "form is 'n'. Give"),
        ({"switch": 0.5}, "switch is 0.5"),
        ({"independent": ["A"], "candidates": ["A"]}, "Give one of them"),
    ],
)
def test_wrong_options_are_refused_in_words(options, words):
    with pytest.raises(ld.LoopdynError, match=words):
        ld.Partition(**options)


def test_wrong_labels_are_refused_in_words():
    system = ld.library.four_bar().compile()
    state = ld.assemble(system)
    with pytest.raises(ld.LoopdynError, match="no speed 'Z'"):
        ld.accelerations(system, state, ld.Partition(independent=["Z"]))
    with pytest.raises(ld.LoopdynError, match="names 2 speeds, and 'four_bar' has 1 freedoms"):
        ld.accelerations(system, state, ld.Partition(independent=["A", "B"]))


def rolling_ball() -> ld.Mechanism:
    """A ball that rolls down a slope, with a spin about the normal: two of its rows constrain velocities alone."""
    m = ld.Mechanism("ball", gravity=(3.0, 0, -9.0))
    ball = m.add_body("ball", ld.Inertia.sphere(mass=2.0, radius=0.1, at=(0, 0, 0.1)))
    m.add_joint("J", ld.Free(), m.ground, ball, at=(0, 0, 0.1))
    plane = {"on": "ground", "body": "ball", "normal": (0, 0, 1), "through": (0, 0, 0)}
    m.add_constraint("floor", ld.constraints.Rolling(**plane, centre=(0, 0, 0.1), radius=0.1))
    return m


def test_two_k_form_refuses_rows_that_constrain_velocities_alone():
    with pytest.raises(ld.LoopdynError, match=r"constrains velocities alone.*use form='k\+n'"):
        ld.prepare(rolling_ball().compile(), ld.Partition(form="2k"))


def test_a_rolling_ball_has_five_sevenths_of_the_acceleration_of_a_sliding_one():
    system = rolling_ball().compile()
    state = ld.assemble(system, v={"J.wz": 1.0})
    run = ld.simulate(system, state, (0, 1), formulation="partition", rtol=1e-10, progress=False).raise_if_failed()
    assert run.path.q[-1, 0] == pytest.approx(0.5 * 3.0 * 5 / 7, abs=1e-8)
    assert run.largest_residual < 1e-12


# ------------------------------------------------------------------------------------------------- simulating


FORMS = pytest.mark.parametrize("form", ["k+n", "2k"])


def moving(m: ld.Mechanism, speed: float = 4.0) -> tuple[ld.System, ld.State]:
    system = ld.library.turned(m).compile()
    v = speed * system.speed_units * np.random.default_rng(1).normal(size=system.nv)
    return system, ld.assemble(system, v=v)


# s; springs are stiff, and change points follow: links in one line, a flat rhombus, bars that lie on the ground
LONG = {"flyball": 0.1, "n_four_bar": 0.2, "peaucellier": 0.12, "scissor_lift": 0.3}
SAMPLES = [f"random {k}" for k in (0, 1, 2, 3, 4, 10, 13, 14)]


@FORMS
@pytest.mark.parametrize("name", gallery_slow([*(n for n in ld.library.ALL if n != "andrews"), *SAMPLES]))
def test_run_equals_that_of_the_graph_solver(name, form):
    """Library and random mechanisms in fast motion, over switches; both at a tolerance of 1e-10."""
    kind, _, number = name.partition(" ")
    m = random_sample(5, int(number), 4) if number else ld.library.ALL[kind]()
    system, state = moving(m)
    end = LONG.get(name, 1.0)
    options = {"rtol": 1e-10, "progress": False, "t_eval": [end / 2, end]}
    run = ld.simulate(system, state, (0, end), formulation=ld.Partition(form=form), **options).raise_if_failed()
    ref = ld.simulate(system, state, (0, end), formulation="graph", **options).raise_if_failed()
    assert run.settings["compiled"]
    assert run.largest_residual < 1e-13
    np.testing.assert_allclose(run.path.q, ref.path.q, atol=3e-8)


@FORMS
def test_a_run_into_a_pose_where_all_sets_are_singular_ends_with_a_reason(form):
    """The links of a parallelogram in line: its change point."""
    system, state = moving(ld.library.n_four_bar(1))
    run = ld.simulate(system, state, (0, 1), formulation=ld.Partition(form=form), rtol=1e-10, progress=False)
    assert run.status == "failed"
    assert "singular" in run.message
    assert run.statistics.steps < 2000
    assert abs(abs(run.path.q[-1, 0]) - np.pi / 2) < 0.05  # all are drawn upright


@FORMS
def test_velocities_are_met_without_correction(form):
    system = ld.library.turned(ld.library.four_bar()).compile()
    run = ld.simulate(
        system,
        ld.assemble(system),
        (0, 2),
        formulation=ld.Partition(form=form),
        drift="velocity",
        rtol=1e-7,
        progress=False,
    )
    assert run.settings["compiled"]
    assert np.abs(run.data["residual_velocity"]).max() < 1e-11
    assert (run.largest_residual < 1e-13) == (form == "2k")


def driven() -> ld.Mechanism:
    m = ld.library.turned(ld.library.five_bar())
    m.add_driver("given", "A", "0.2*sin(3*t)")
    m.move_base(x="0.2*sin(3*t)", rz="0.3*sin(2*t)")
    return m


@FORMS
def test_drivers_and_moving_bases_lower_the_freedoms_and_are_followed(form):
    system = driven().compile()
    state = ld.assemble(system)
    solver = ld.prepare(system, ld.Partition(form=form), state)
    assert len(solver.active) == 1
    options = {"rtol": 1e-10, "progress": False, "t_eval": [1.0]}
    run = ld.simulate(system, state, (0, 1), formulation=ld.Partition(form=form), **options).raise_if_failed()
    ref = ld.simulate(system, state, (0, 1), formulation="graph", **options)
    np.testing.assert_allclose(run.path.q, ref.path.q, atol=1e-7)
    assert run.energy_error < 1e-7


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
    system = m.compile()
    state = ld.assemble(system, v=0.3 * np.arange(system.nv))
    options = {"rtol": 1e-10, "progress": False, "t_eval": [0.3]}
    run = ld.simulate(system, state, (0, 0.3), formulation="partition", **options).raise_if_failed()
    ref = ld.simulate(system, state, (0, 0.3), formulation="graph", **options).raise_if_failed()
    np.testing.assert_allclose(run.path.q, ref.path.q, atol=1e-8)


def test_a_relation_that_is_not_affine_in_the_speeds_is_followed():
    """A particle whose speed is kept at 5 m/s, under gravity: x'^2 + y'^2 = 25."""
    m = ld.Mechanism("particle", gravity=(0, -9.81, 0))
    m.add_body("p", ld.Inertia.planar(mass=1.0, com=(0, 0, 0), izz=1.0))
    m.add_joint("P", ld.Planar(normal=(0, 0, 1)), m.ground, "p", at=(0, 0, 0))
    m.add_constraint("c", ld.constraints.VelocityRelation(formula="x**2 + y**2 - 25", speeds={"x": "P.x", "y": "P.y"}))
    system = m.compile()
    state = system.state(v={"P.x": 4.0, "P.y": 3.0})
    run = ld.simulate(system, state, (0, 1), formulation="partition", rtol=1e-10, progress=False).raise_if_failed()
    assert len(run.events) > 0  # the best of the two speeds changes as the direction turns
    np.testing.assert_allclose(np.hypot(run.path.v[:, 0], run.path.v[:, 1]), 5.0, atol=1e-9)
    # the angle of the velocity turns by -g cos(angle) / 5
    angle = np.arctan2(run.path.v[:, 1], run.path.v[:, 0])
    along = 2.0 * np.arctan(np.tanh(np.arctanh(np.tan(angle[0] / 2)) - 9.81 * run.path.t / 10))
    np.testing.assert_allclose(angle, along, atol=1e-8)


def test_a_mechanism_whose_motion_is_all_given_has_no_independent_speed():
    m = ld.library.four_bar()
    m.add_driver("given", "A", "0.5*t")
    system = m.compile()
    state = ld.assemble(system, q={}, v={})
    run = ld.simulate(system, state, (0, 1), formulation="partition", progress=False, t_eval=[1.0]).raise_if_failed()
    assert run.path.q[-1, system.coordinates.index("A")] == pytest.approx(state.q[0] + 0.5, abs=1e-9)


def four_bar_of_figure_2(L=(1.0, 0.7, 0.6, 0.5), m=(0.7, 0.6, 0.5)) -> ld.Mechanism:
    model = ld.Mechanism("four_bar", gravity=(0, -9.81, 0))
    y, parent = 0.0, model.ground
    for k in range(3):
        model.add_body(f"link{k + 1}", ld.Inertia.rod(mass=m[k], start=(0, y, 0), end=(0, y + L[k + 1], 0)))
        model.add_joint(f"a{k + 1}", ld.Revolute(axis=(0, 0, -1)), parent, f"link{k + 1}", at=(0, y, 0))
        y, parent = y + L[k + 1], f"link{k + 1}"
    ends = {"parent_frame": ld.Frame(position=(L[0], 0, 0)), "child_frame": ld.Frame(position=(0, y, 0))}
    model.add_joint("O4", ld.Revolute(axis=(0, 0, -1)), model.ground, "link3", **ends)
    return model


LOOPING = ([2.6, -2.365501815045841, 1.3038054455195054], [6.0, 0.33680300519902995, -12.437099448376784])


@pytest.fixture(scope="module")
def looping() -> tuple[ld.System, ld.State]:
    """A motion that passes both singular poses of each coordinate."""
    system = four_bar_of_figure_2().compile(cuts=["O4"])
    return system, system.state(*LOOPING)


def test_switches_are_events_and_the_history_is_in_the_data(looping):
    system, state = looping
    run = ld.simulate(system, state, (0, 1), formulation="partition", rtol=1e-11, progress=False).raise_if_failed()
    assert [e.name for e in run.events] == ["independent: a1 -> a2", "independent: a2 -> a1"]
    active, criterion = run.data["partition"].values, run.data["criterion"].values
    assert active.sum(axis=1).tolist() == [1] * len(run.path)
    changes = run.path.t[1:][np.any(active[1:] != active[:-1], axis=1)]
    for event, after in zip(run.events, changes, strict=True):
        assert 0.0 <= after - event.t < 0.02
    # never worse than by the factor `switch`, and what a step adds to it; steps are short at this tolerance
    assert (criterion.max(axis=1) < 3.0 * criterion[active]).all()
    assert run.plot.active().axes[0].get_yticklabels()[1].get_text() == "a2"


def test_the_history_is_saved_with_the_run(looping, tmp_path):
    system, state = looping
    run = ld.simulate(system, state, (0, 0.1), formulation="partition", progress=False, t_eval=[0.0, 0.05, 0.1])
    run.save(tmp_path / "run.nc")
    again = ld.load_run(tmp_path / "run.nc")
    np.testing.assert_array_equal(again.active, run.active)
    np.testing.assert_array_equal(again.data["criterion"].values, run.criterion)


def test_switching_changes_no_state(looping):
    """No projection, no solve: the state of the event is the one reached, and it lies on the constraints."""
    system, state = looping
    run = ld.simulate(system, state, (0, 1), formulation=ld.Partition(form="2k"), rtol=1e-10, progress=False)
    for event in run.events:
        assert event.state is event.after
        now = ld.terms(system, event.state)
        assert np.abs(now.phi).max() < 1e-13
        assert np.abs(now.J @ event.state.v).max() < 1e-12


@FORMS
def test_adams_keeps_order_and_step_over_a_switch(looping, form):
    """Two evaluations a step throughout, 4th order over four switches; a restart costs three Runge-Kutta steps each."""
    system, state = looping
    reference = ld.simulate(system, state, (0, 2), formulation="graph", rtol=1e-13, progress=False, t_eval=[2.0])
    method = ld.Partition(candidates=["a1", "a3"], form=form)
    errors = []
    for step in (5e-4, 2.5e-4, 1.25e-4):
        options = {
            "formulation": method,
            "integrator": ld.integrators.ABM(step=step),
            "progress": False,
            "t_eval": [2.0],
        }
        run = ld.simulate(system, state, (0, 2), **options).raise_if_failed()
        assert len(run.events) == 4
        steps = round(2 / step)
        assert run.statistics.steps == steps
        # two a step, two more in each of the three first ones, one at the start
        assert run.statistics.evaluations == 2 * steps + 7
        errors.append(np.abs(run.path.q[-1] - reference.path.q[-1]).max())
        anew = ld.simulate(system, state, (0, 2), events=[ld.events.At(e.t, "anew") for e in run.events], **options)
        assert anew.statistics.evaluations >= run.statistics.evaluations + 4 * 6
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert (orders > 3.8).all()


def test_hysteresis_keeps_a_set_that_is_nearly_as_good(looping):
    system, state = looping
    first = []
    for switch in (1.0, 2.0, 10.0, 1e4):
        method = ld.Partition(switch=switch)
        run = ld.simulate(system, state, (0, 0.2), formulation=method, rtol=1e-9, progress=False).raise_if_failed()
        first.append(run.events[0].t)
    assert first == sorted(first)
    assert first[0] < first[-1] < 0.0691  # where a1 is singular


def test_a_forced_set_dies_at_its_singular_pose_with_a_reason(looping):
    system, state = looping
    run = ld.simulate(system, state, (0, 2), formulation=ld.Partition(independent=["a1"]), rtol=1e-9, progress=False)
    assert run.status == "failed"
    assert "'a1' cannot be independent" in run.message
    assert run.path.t[-1] < 0.0691


def test_an_interrupted_run_with_switches_goes_on_with_its_coordinates(looping, tmp_path, interrupt_at):
    system, state = looping
    interrupt_at(t=0.3)
    options = {"formulation": "partition", "rtol": 1e-9, "progress": False, "t_eval": np.linspace(0, 0.6, 61)}
    options |= {"checkpoint": tmp_path / "run"}
    first = ld.simulate(system, state, (0, 0.6), **options)
    assert first.status == "interrupted"
    assert first.active[-1].tolist() == [False, True, False]
    again = ld.simulate(system, state, (0, 0.6), **options)
    whole = ld.simulate(system, state, (0, 0.6), **{**options, "checkpoint": None})
    assert [e.name for e in again.events] == [e.name for e in whole.events]
    np.testing.assert_array_equal(again.active, whole.active)
    np.testing.assert_allclose(again.path.q, whole.path.q, atol=1e-10)


@pytest.mark.parametrize("integrator", ["stiff", ld.integrators.GeneralizedAlpha(step=1e-3)])
def test_integrators_in_python_drive_it_too(integrator):
    system = ld.library.four_bar().compile()
    state = ld.assemble(system, v={"A": 1.0})
    options = {"integrator": integrator, "rtol": 1e-6, "progress": False, "t_eval": [0.2]}
    run = ld.simulate(system, state, (0, 0.2), formulation="partition", **options).raise_if_failed()
    ref = ld.simulate(system, state, (0, 0.2), formulation="oracle", **options)
    np.testing.assert_allclose(run.path.q, ref.path.q, atol=1e-8)


def test_user_functions_in_python_are_called():
    m = ld.library.four_bar()

    def push(t, q, v, out):
        out[0] += 3.0 * np.sin(t)

    m.add_force(None, ld.forces.UserForce(function=push))
    system = m.compile()
    state = ld.assemble(system, v={"A": 1.0})
    state = ld.State(0.4, state.q, state.v)
    np.testing.assert_allclose(
        ld.accelerations(system, state, "partition"), ld.accelerations(system, state, "oracle"), rtol=1e-10
    )


# ------------------------------------------------------------------------------------------------- the kernels


def test_evaluations_allocate_nothing():
    system, state = moving(ld.library.stewart_3rrs())
    solver = prepared(system, state)
    driver = solver.kernels
    solver.run.put(state.t, state.q, state.v)
    arrays = driver.ints, driver.floats, driver.work
    check_nothing_is_allocated((kernels.accelerate, kernels.check, kernels.correct), arrays)


@pytest.mark.jit_off
def test_kernels_run_in_complex_numbers():
    system, state = moving(ld.library.four_bar())
    calls = prepared(system, state, independent=["A"]).calls

    def evaluate(work):
        assert kernels.accelerate(calls.ints, calls.floats, work) == FINE
        kernels.check(calls.ints, calls.floats, work)

    check_complex_numbers(system, state, calls.work, evaluate)
