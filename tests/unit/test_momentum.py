"""Steps of `Momentum`: order, conservation, closure, everything a model can have, what is refused."""

import numpy as np
import pytest

import loopdyn as ld
from loopdyn.formulations.momentum import formulation as momentum
from loopdyn.formulations.momentum.formulation import MomentumSolver
from loopdyn.formulations.momentum.large import LargeMomentumSolver
from loopdyn.loops.projection import correct
from loopdyn.loops.rank import decide
from loopdyn.tree import energy

FOUR_BAR = {"q": {"A": 0.3}, "v": {"A": 2.0}}


def solver_of(system, state, order=2):
    return MomentumSolver(system, decide(system, state), ld.prepare(system, "graph", state), order)


def take_steps(system, state, time, count, order=2):
    """The state after `count` steps of one size."""
    solver = solver_of(system, state, order)
    t, q, v = state.t, state.q, state.v
    for _ in range(count):
        q, v, _ = solver.step(t, q, v, time / count)
        t += time / count
    return ld.State(t, q, v)


def difference(system, a, b):
    return np.abs(np.concatenate([ld.tree.difference(system, a.q, b.q), a.v - b.v])).max()


def reference(system, state, time):
    """The same by accelerations of the dense oracle and DOP853 at a tight tolerance."""
    run = ld.simulate(system, state, (0, time), t_eval=[time], formulation="oracle", rtol=1e-11, progress=False)
    run.raise_if_failed()
    return ld.State(time, run.path.q[-1], run.path.v[-1])


@pytest.mark.parametrize(("order", "count"), [(2, 100), (4, 50), (6, 40)])
def test_halving_a_step_divides_the_error_by_two_to_the_order(order, count):
    system = ld.library.four_bar().compile()
    state = ld.assemble(system, **FOUR_BAR)
    exact = reference(system, state, 0.5)
    errors = [difference(system, take_steps(system, state, 0.5, n, order), exact) for n in (count, 2 * count)]
    assert np.log2(errors[0] / errors[1]) == pytest.approx(order, abs=0.3)


def floating():
    """Two bars on a spherical and a universal joint, free in space, without gravity."""
    m = ld.Mechanism("floating", gravity=(0, 0, 0))
    box = ld.Inertia.box(mass=2.0, size=(0.3, 0.2, 0.6))
    a = m.add_body("a", box)
    b = m.add_body("b", ld.Inertia.rod(mass=1.0, start=(0.1, 0, 0.3), end=(0.5, 0.4, 0.8), radius=0.02))
    c = m.add_body("c", ld.Inertia.rod(mass=0.5, start=(0.5, 0.4, 0.8), end=(0.2, 0.9, 1.0), radius=0.02))
    m.add_joint("base", ld.Free(), m.ground, a, at=(0, 0, 0))
    m.add_joint("S", ld.Spherical(), a, b, at=(0.1, 0, 0.3))
    m.add_joint("U", ld.Universal(axis1=(1, 0, 0), axis2=(0, 1, 0)), b, c, at=(0.5, 0.4, 0.8))
    return m.compile()


def test_momentum_of_a_free_system_is_conserved_to_rounding():
    system = floating()
    v = np.random.default_rng(1).normal(size=system.nv)
    start = ld.State(0.0, system.state().q, v)
    end = take_steps(system, start, 2.0, 200)
    before, after = energy(system, start), energy(system, end)
    size = np.abs(before.angular_momentum).max() + np.abs(before.momentum).max()
    # 200 steps of 1e-2 s: rounding of positions of 1 m over the size of a step, 1e-14 a step
    assert np.abs(after.momentum - before.momentum).max() < 1e-11 * size
    assert np.abs(after.angular_momentum - before.angular_momentum).max() < 1e-11 * size
    assert abs(after.kinetic / before.kinetic - 1.0) < 1e-3


def energies(count):
    system = ld.library.four_bar().compile()
    state = ld.assemble(system, **FOUR_BAR)
    solver = solver_of(system, state)
    q, v, h = state.q, state.v, 2e-3
    found = np.empty(count)
    for k in range(count):
        q, v, _ = solver.step(k * h, q, v, h)
        e = energy(system, ld.State(0.0, q, v))
        found[k] = e.kinetic + e.gravity
    e = energy(system, state)
    return np.abs(found - e.kinetic - e.gravity)


def test_the_error_of_the_energy_does_not_grow():
    errors = energies(6000).reshape(6, -1).max(axis=1)
    assert errors[-1] < 1.5 * errors[0]


@pytest.mark.slow
def test_the_error_of_the_energy_is_bounded_over_a_hundred_thousand_steps():
    errors = energies(100_000).reshape(10, -1).max(axis=1)
    assert errors.max() < 1.5 * errors[0]


@pytest.mark.parametrize("name", ["stewart_6ups", "bricard", "rssr"])
def test_spatial_loops_close_to_rounding_and_follow_the_oracle(name):
    system = getattr(ld.library, name)().compile()
    state = ld.assemble(system)
    end = take_steps(system, state, 0.1, 40, order=4)
    assert np.abs(ld.tree.constraint_equations(system, end)[0] / system.row_units).max() < 1e-12
    assert difference(system, end, reference(system, state, 0.1)) < 1e-6


def driven():
    m = ld.library.five_bar()
    m.add_driver("turn", next(iter(m.joints)), "0.4*t + 0.1*sin(5*t)")
    return m


def with_loads():
    m = ld.library.four_bar()
    m.add_motor("motor", "A", "3 - 0.2*speed")
    m.add_force(
        None, ld.forces.SpringDamper("crank", "rocker", (0, 0.2, 0), (1.15, 0.45, 0), 50.0, 2.0, 0.5, name="spring")
    )
    m.add_force(None, ld.forces.JointFriction("B", viscous=0.05, name="friction"))
    return m


def on_a_moving_base():
    m = ld.library.four_bar()
    m.move_base("ground", x="0.1*sin(3*t)", rz="0.2*t")
    return m


@pytest.mark.parametrize("change", [driven, with_loads, on_a_moving_base])
def test_drivers_loads_and_moving_bases_are_of_order_four_too(change):
    system = change().compile()
    state = ld.assemble(system, v={} if change is driven else {"A": 2.0})
    exact = reference(system, state, 0.2)
    errors = [difference(system, take_steps(system, state, 0.2, n, 4), exact) for n in (20, 40)]
    assert errors[1] < 1e-5
    assert np.log2(errors[0] / errors[1]) > 3.5


def test_bodies_without_thickness_need_no_inverse_of_their_inertia():
    m = ld.Mechanism("thin", gravity=(0, 0, -9.81))
    rod = m.add_body("rod", ld.Inertia.rod(mass=1.0, start=(0, 0, 0), end=(1, 0, 0)))
    point = m.add_body("point", ld.Inertia.point(mass=0.5, at=(1, 0, 0)))
    m.add_joint("A", ld.Universal(axis1=(0, 0, 1), axis2=(0, 1, 0)), m.ground, rod, at=(0, 0, 0))
    m.add_joint("B", ld.joints.Weld(), rod, point, at=(1, 0, 0))
    system = m.compile()
    state = ld.assemble(system, v={"A.1": 2.0})
    assert difference(system, take_steps(system, state, 0.5, 100, 4), reference(system, state, 0.5)) < 1e-6


def test_rolling_is_closed_in_velocity_and_of_order_two():
    m = ld.Mechanism("ball", gravity=(0, 0, -9.81))
    ball = m.add_body("ball", ld.Inertia.sphere(mass=1.0, radius=0.1, at=(0, 0, 0.1)))
    m.add_joint("F", ld.Free(), m.ground, ball, at=(0, 0, 0.1))
    floor = {"on": "ground", "normal": (0, 0, 1), "through": (0, 0, 0)}
    m.add_constraint("rolls", ld.constraints.Rolling(body="ball", centre=(0, 0, 0.1), radius=0.1, **floor))
    m.add_force(
        None, ld.forces.SpringDamper("ground", "ball", (0.5, 0.2, 0.1), (0, 0, 0.1), 20.0, 0.0, 0.1, name="spring")
    )
    system = m.compile()
    state = ld.assemble(system, v={"F.wy": 3.0, "F.wz": 2.0})
    exact = reference(system, state, 0.4)
    ends = [take_steps(system, state, 0.4, n) for n in (40, 80)]
    errors = [difference(system, end, exact) for end in ends]
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2.0, abs=0.3)
    now = ld.terms(system, ends[1])
    assert np.abs((now.J @ ends[1].v + now.phi_t) / system.row_units).max() < 1e-12


def test_a_step_back_undoes_a_step():
    system = ld.library.bricard().compile()
    state = ld.assemble(system)
    solver = solver_of(system, state)
    q, v, _ = solver.step(0.0, state.q, state.v, 0.01)
    q, v, _ = solver.step(0.01, q, v, -0.01)
    assert np.abs(q - state.q).max() < 1e-12
    assert np.abs(v - state.v).max() < 1e-10


def test_impulses_are_the_time_integral_of_the_multipliers():
    m = ld.library.four_bar()
    system = m.compile()
    state = ld.assemble(system, **FOUR_BAR)
    h = 1e-3
    _, _, impulse = solver_of(system, state).step(0.0, state.q, state.v, h)
    solve = ld.prepare(system, "oracle", state)
    middle = take_steps(system, state, h / 2, 1)
    lam = solve(h / 2, middle.q, middle.v).lam
    J = ld.terms(system, middle).J
    # multipliers are not unique, the loads that they put on the freedoms are; both ends of a step share them
    assert np.allclose(J.T @ impulse / h, J.T @ lam, rtol=5e-3, atol=5e-3 * np.abs(lam).max())


@pytest.mark.parametrize(
    ("formulation", "integrator", "words"),
    [
        (ld.Momentum(order=4), "auto", "are of one size"),
        (ld.Momentum(scheme="huang2002"), "auto", "are of one size"),
        (ld.Momentum(), "dop853", "makes its steps itself"),
        ("graph", ld.integrators.Steps(step=1e-3), "drives formulations that make steps themselves"),
    ],
)
def test_integrators_that_cannot_drive_a_formulation_are_refused(formulation, integrator, words):
    m = ld.library.double_pendulum()
    system = m.compile(free=list(m.bodies))
    with pytest.raises(ld.LoopdynError, match=words):
        ld.simulate(system, ld.assemble(system), (0, 1), formulation=formulation, integrator=integrator, progress=False)


def test_options_that_do_not_exist_are_refused():
    with pytest.raises(ld.LoopdynError, match="order is 3"):
        ld.Momentum(order=3)
    with pytest.raises(ld.LoopdynError, match=r"scheme is 'verlet'. Give 'rattle' or 'huang2002'"):
        ld.Momentum(scheme="verlet")


def test_extrapolated_steps_keep_the_tolerance_and_outputs_lie_on_the_motion():
    system = ld.library.four_bar().compile()
    state = ld.assemble(system, **FOUR_BAR)
    exact = ld.simulate(system, state, (0, 1), formulation="graph", rtol=1e-11, progress=False)
    run = ld.simulate(system, state, (0, 1), formulation="momentum", rtol=1e-9, progress=False)
    assert run.status == "finished"
    assert np.abs(run.path.q - exact.path.q).max() < 1e-7
    assert run.energy_error < 1e-7
    assert run.largest_residual < 1e-12


def test_the_work_of_motors_and_dampers_is_balanced():
    system = with_loads().compile()
    state = ld.assemble(system, v={"A": 2.0})
    run = ld.simulate(system, state, (0, 1), formulation="momentum", rtol=1e-9, progress=False)
    assert run.status == "finished"
    assert run.energy_error < 1e-6


def test_the_printed_scheme_runs_on_bodies_that_are_all_free_and_is_refused_elsewhere():
    m = ld.library.double_pendulum()
    printed, steps = ld.Momentum(scheme="huang2002"), ld.integrators.Steps(step=1e-3)
    system = m.compile(free=list(m.bodies))
    run = ld.simulate(system, ld.assemble(system), (0, 0.5), formulation=printed, integrator=steps, progress=False)
    assert run.status == "finished"
    assert 1e-9 < run.largest_residual < 1e-3  # it is not drift-free, and nothing corrects it
    tree = m.compile()
    with pytest.raises(ld.LoopdynError, match="free"):
        ld.simulate(tree, ld.assemble(tree), (0, 0.5), formulation=printed, integrator=steps, progress=False)


def moving_loop():
    """A four-bar on a base that moves, with a driven crank, a spring and a damper."""
    m = ld.library.four_bar()
    m.start = {"q": {}, "v": {}}
    m.move_base(x="0.1*sin(3*t)", rz="0.2*t")
    m.add_driver("drive", "A", "0.3 + 2*t + 0.1*sin(5*t)")
    m.add_force(None, ld.forces.JointSpring("D", stiffness=3.0, damping=0.4, name="spring"))
    return m


LARGE = {
    "double pendulum": ld.library.double_pendulum,
    "four-bar": ld.library.four_bar,
    "four-bar that is driven on a moving base": moving_loop,
    "6-UPS": ld.library.stewart_6ups,
    "Bricard": ld.library.bricard,
    "tower": ld.library.tower,
    "Andrews": ld.library.andrews,
}


@pytest.mark.parametrize("name", LARGE)
def test_steps_by_elimination_are_those_by_dense_matrices(name):
    system = LARGE[name]().compile()
    state = ld.assemble(system)
    rank, regular = decide(system, state), ld.prepare(system, "graph", state)
    h = 1e-4 if name == "Andrews" else 5e-3
    dense, sparse = (
        kind(system, rank, regular, 4).step(state.t, state.q, state.v, h)
        for kind in (MomentumSolver, LargeMomentumSolver)
    )
    # positions are differences of world coordinates over parts of the step: their rounding comes back over h
    rounding = 1e3 * np.finfo(float).eps
    assert np.abs(dense[0] - sparse[0]).max() < rounding
    fastest = max(np.abs(dense[1] / system.speed_units).max(), 1.0)
    assert np.abs((dense[1] - sparse[1]) / system.speed_units).max() < rounding / h * fastest
    J = ld.terms(system, state).J  # under redundancy impulses differ, what they do does not
    assert np.abs(J.T @ (dense[2] - sparse[2])).max(initial=0.0) < 1e-8 * np.abs(J.T @ dense[2]).max(initial=1.0)


def test_many_windows_fold_flat_by_steps_in_linear_time():
    """Couplers only translate: a pendulum, and flat where the cranks have turned by a right angle."""
    system = ld.library.n_four_bar(50).compile()
    assert momentum.in_linear_time(system)
    run = ld.simulate(system, ld.assemble(system), (0, 1), t_eval=np.linspace(0, 1, 5), progress=False)
    assert run.status == "finished", run.message
    assert len(run.passages) == 1
    A = run.data["q"].sel(coordinate="A0").values
    assert np.abs(run.data["q"].sel(coordinate="A50").values - A).max() < 1e-7
    assert run.energy_error < 1e-7
    start = run.data["v"].sel(speed="A0").values[0]
    inertia, arm = 51 / 3 + 50, 51 / 2 + 50
    speed = np.sqrt(start**2 + 2 * 9.81 * arm / inertia * (1 - np.cos(A)))  # of the pendulum, by its energy
    assert np.abs(np.abs(run.data["v"].sel(speed="A0").values) - speed).max() < 1e-6


def test_a_large_system_with_rows_of_velocities_alone_is_refused(monkeypatch):
    m = ld.library.four_bar()
    m.add_constraint("follow", ld.constraints.VelocityRelation(formula="a - b", speeds={"a": "A", "b": "D"}))
    system = m.compile()
    monkeypatch.setattr(momentum, "is_large", lambda system: True)
    assert "velocities only" in ld.Momentum().supports(system)


def test_motions_that_change_rows_are_found_in_natural_units():
    """Rows are divided by their units; against dense matrices, on a mechanism whose size is not one."""
    system = ld.library.stewart_6ups().compile()
    state = ld.assemble(system)
    regular = ld.prepare(system, "graph", state)
    solver = LargeMomentumSolver(system, decide(system, state), regular, 2)
    solver.begin(state.t, state.q, state.v)
    solver._factor(solver.places[0])
    kept = solver.elimination.plan.kept
    u = np.random.default_rng(0).normal(size=(len(kept), 3))
    solved, x = solver._minimum_energy_motions(u)
    terms = ld.terms(system, state)
    J = (terms.J / system.row_units[:, None])[kept]
    np.testing.assert_allclose(J @ x, u, atol=1e-12)  # rounding, of rows and motions of the order of one
    np.testing.assert_allclose(J @ np.linalg.solve(terms.M, J.T) @ solved, u, atol=1e-12)


@pytest.mark.jit_off
@pytest.mark.parametrize("name", ["four_bar", "bennett", "stewart_6ups", "rssr"])
def test_compiled_correction_is_the_smallest_in_the_mass_metric(name):
    """As by singular values of the rows in Python; both are linear steps, so that they differ by rounding.

    Off the constraint manifold the rows of Bennett's linkage contradict each other to second order in the distance.
    """
    system = ld.library.turned(getattr(ld.library, name)()).compile()
    state = ld.assemble(system)
    solver, rng, unit = ld.prepare(system, "momentum", state), np.random.default_rng(2), system.speed_units
    away, allowed = 1e-4, 1e-8 if name == "bennett" else 1e-12
    q = ld.tree.increment(system, state.q, away * unit * rng.normal(size=system.nv))
    v = state.v + 0.1 * unit * rng.normal(size=system.nv)
    found, expected = solver.closed(0.2, q, v), correct(system, 0.2, q, v, solver.rank)
    for one, other in zip(found, expected, strict=True):
        assert np.abs(one - other).max() <= allowed * max(1.0, np.abs(other).max())
