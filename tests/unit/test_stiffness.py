"""Stiff mechanisms: the stiffness test of `integrator="auto"`, and the stiff integrator it goes over to."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from tests.marks import gallery_slow

import loopdyn as ld


def motion(system: ld.System, until: float, rtol: float = 1e-8, integrator: str = "auto", **start) -> ld.Run:
    return ld.simulate(system, ld.assemble(system, **start), (0, until), t_eval=np.linspace(0, until, 11), rtol=rtol,
                       integrator=integrator, progress=False).raise_if_failed()  # fmt: skip


def damped_four_bar(damping: float) -> ld.System:
    """A four-bar whose crank is held by a spring and a damper: it creeps to where the spring balances gravity."""
    m = ld.library.four_bar()
    m.add_force("closer", ld.forces.JointSpring(joint="A", stiffness=50.0, damping=damping))
    return m.compile()


def test_the_flyball_governor_is_found_stiff_and_said_to_be():
    """The rate of its dampers is some 1e4/s: an explicit step of 6/1e4 s is stable, whatever the tolerance."""
    system = ld.library.flyball().compile()
    run, explicit = motion(system, 2.0), motion(system, 2.0, integrator="dop853")
    assert len(run.events) == 1
    event = run.events[0]
    assert event.name.startswith("stiff: stability, not accuracy, limits steps to 0.000")
    assert "Stiff(longest=None) goes on" in event.name
    assert 0.0 < event.t < 0.1
    assert run.settings["integrator"] == "AutoIntegrator(longest=None)"
    assert run.statistics.evaluations < 0.5 * explicit.statistics.evaluations
    # errors of a step are below 1e-8 rad; some 400 steps of a motion that does not amplify them
    assert np.abs(run.path.q - explicit.path.q).max() < 1e-7
    assert run.energy_error < 1e-7


def flyball_by_hand(times: np.ndarray) -> np.ndarray:
    """Height of the slider: Lagrange's equations of the symmetric motion, spin eliminated by angular momentum."""
    K, C, g, rod, ball, slider = 8e5, 4e4, 9.81, 0.3, 5.0, 3.0
    across, along = rod * (1.0 + 0.01**2) / 12, rod * 2 * 0.01**2 / 12
    hinge = across + rod * 0.25 + ball  # of an arm about its hinge
    fixed = rod * 2 * 0.01**2 / 12 + slider * 2 * 0.1**2 / 12  # shaft and slider about z

    def spin_inertia(alpha: float) -> tuple[float, float]:
        """About z, all of it, and its derivative by alpha."""
        c, s = np.cos(alpha), np.sin(alpha)
        inertia = along * s**2 + across * c**2 + rod * (0.05 + 0.5 * c) ** 2 + ball * (0.05 + c) ** 2
        slope = 2 * (along - across) * s * c - rod * (0.05 + 0.5 * c) * s - 2 * ball * (0.05 + c) * s
        return fixed + 2 * inertia, 2 * slope

    momentum = spin_inertia(np.pi / 6)[0] * 2 * np.pi

    def rhs(t, y):
        height, alpha, rate, turn = y
        c, s = np.cos(alpha), np.sin(alpha)
        z = 1.0 - 0.5 * s - height
        length = np.hypot(0.5 * c, z)
        by_height, by_alpha = -z / length, (-0.25 * c * s - 0.5 * c * z) / length
        pull = K * (length - 0.5) + C * (by_height * rate + by_alpha * turn)
        inertia, slope = spin_inertia(alpha)
        centrifugal = 0.5 * slope * (momentum / inertia) ** 2
        weight = 2 * g * c * (0.5 * rod + ball)
        return [rate, turn, -g - 2 * pull * by_height / slider,
                (centrifugal + weight - 2 * pull * by_alpha) / (2 * hinge)]  # fmt: skip

    found = solve_ivp(rhs, (0, times[-1]), [0.5, np.pi / 6, 0, 0], "Radau", times, rtol=1e-10, atol=1e-11)
    return found.y[0]


def test_the_flyball_governor_against_equations_by_hand():
    system = ld.library.flyball().compile()
    run = motion(system, 2.0)
    slide = run.path.q[:, system.coordinates.index("slide")] + 0.5
    # the cubic between the steps of SciPy's Radau is good to some 1e-8
    assert np.abs(slide - flyball_by_hand(run.path.t)).max() < 1e-7


@pytest.mark.parametrize(("damping", "stiff"), [(1.0, False), (5000.0, True)])
def test_a_four_bar_with_a_strong_damper_is_found_stiff(damping, stiff):
    """Reduced to its crank: inertia of some 0.3 kg m2 against 5000 N m s, a rate of 2e4/s, and a creep over seconds."""
    system = damped_four_bar(damping)
    run = motion(system, 2.0)
    assert [e.kind for e in run.events] == ["stiff"] * stiff
    explicit = motion(system, 2.0, integrator="dop853")
    assert np.abs(run.path.q - explicit.path.q).max() < 1e-7
    assert run.largest_residual < 1e-9
    if stiff:
        assert run.statistics.evaluations < 0.1 * explicit.statistics.evaluations


# flyball is stiff; the 6-UPS platform too, once its damped legs have come to rest
REGULAR = sorted(set(ld.library.ALL) - {"flyball", "stewart_6ups"})


@pytest.mark.parametrize("name", gallery_slow(REGULAR))
@pytest.mark.parametrize("rtol", [1e-8, 1e-4])
def test_regular_mechanisms_are_not_found_stiff(name, rtol):
    system = ld.library.ALL[name]().compile()
    run = motion(system, 0.05 if name == "andrews" else 2.0, rtol)
    assert not [e for e in run.events if e.kind == "stiff"]


def test_near_the_end_of_a_run_it_does_not_change_over():
    """Less than a hundred steps are left when the platform has come to rest after two to three seconds."""
    system = ld.library.stewart_6ups().compile()
    assert not [e for e in motion(system, 3.0).events if e.kind == "stiff"]


@pytest.mark.parametrize("rtol", [1e-6, 1e-8, 1e-10])
def test_the_stiff_integrator_keeps_its_tolerance_on_a_regular_motion(rtol):
    """Four-bar against the independent reference; errors of some 100 steps add up."""
    from tests.literature.test_trajectories import reference

    expected = reference("four_bar/reference.csv", 0.5)
    system = ld.library.four_bar().compile()
    run = ld.simulate(system, ld.assemble(system), (0, 0.5), t_eval=[0.5], integrator="stiff", rtol=rtol,
                      progress=False).raise_if_failed()  # fmt: skip
    assert run.path.q[-1, 0] == pytest.approx(expected["theta1"][-1] - 1.0, abs=100 * rtol)
    assert run.settings["compiled"]


def test_a_run_that_went_over_is_resumed_as_such(tmp_path, interrupt_at):
    system = ld.library.flyball().compile()
    state, times = ld.assemble(system), np.linspace(0, 1, 21)

    def simulate(folder=None):
        return ld.simulate(system, state, (0, 1), t_eval=times, checkpoint=folder, progress=False)

    whole = simulate()
    interrupt_at(95)
    stopped = simulate(tmp_path / "run")
    assert stopped.status == "interrupted"
    assert len(stopped.events) == 1
    resumed = simulate(tmp_path / "run")
    assert [e.name for e in resumed.events] == [e.name for e in whole.events]
    np.testing.assert_array_equal(resumed.path.q, whole.path.q)


def test_a_light_wheel_with_dry_friction_creeps_in_few_steps():
    """Torque 0.3 N m against 1 N m of friction, smooth over 0.01 rad/s: it creeps at 0.01 atanh(0.3) rad/s.

    With 1e-5 kg m^2 it gets there at a rate of 1e7/s. Stages of explicit steps that are stable, some 1e-7 s, lie within
    a speed of 1e-2 rad/s of each other, so derivatives by speeds must be taken over much less.
    """
    m = ld.Mechanism("wheel", gravity=(0, -9.81, 0))
    for name, inertia, x in (("wheel", 1e-5, 0.0), ("pendulum", 1.0, 0.5)):
        m.add_body(name, ld.Inertia(1.0, (x, 0, 0), inertia * np.eye(3)))
        m.add_joint(name, ld.Revolute(axis=(0, 0, 1)), m.ground, name, at=(0, 0, 0))
    m.add_force("motor", ld.forces.Motor(joint="wheel", torque=0.3))
    m.add_force("friction", ld.forces.JointFriction(joint="wheel", coulomb=1.0))
    run = motion(m.compile(), 0.1)
    assert run.statistics.steps + run.statistics.rejected < 200  # 53 seen; some 200,000 explicit ones
    speed = 0.01 * np.arctanh(0.3)
    assert run.path.v[-1, 0] == pytest.approx(speed, rel=1e-6)  # its rate of change is followed to 1e-8 of 1 rad/s
    # it lags behind by about speed/1e7, the rate at which it gets there
    assert run.path.q[-1, 0] == pytest.approx(0.1 * speed, abs=2e-7 * speed)


@pytest.mark.parametrize("formulation", ["auto", "graph"])
def test_a_light_linkage_let_go_against_a_very_stiff_spring_vibrates_as_in_the_closed_form(formulation):
    """Deflections of 1e-7 rad: neither first step nor tolerance may be those of the fall that the spring prevents."""
    m = ld.Mechanism("slider-crank", gravity=(0, -9.81, 0))
    pin, (crank, rod, block), stiffness = ld.Revolute(axis=(0, 0, 1)), (2e-5, 0.05, 5e-8), 6e5
    A, B, C = (0, 0, 0), (0.3, 0.4, 0), (1.5, 0, 0)
    for name, mass, one, other in (("crank", crank, A, B), ("rod", rod, B, C)):
        length, middle = float(np.linalg.norm(np.subtract(one, other))), tuple(np.add(one, other) / 2)
        m.add_body(name, ld.Inertia(mass=mass, com=middle, matrix=np.eye(3) * mass * length**2 / 12))
    m.add_body("block", ld.Inertia(mass=block, com=C, matrix=np.eye(3) * block * 1e-3))
    for name, parent, child, at in (("A", "ground", "crank", A), ("B", "crank", "rod", B), ("C", "rod", "block", C)):
        m.add_joint(name, pin, parent, child, at=at)
    m.add_joint("S", ld.Prismatic(axis=(1, 0, 0)), m.ground, "block", at=C)
    m.add_force(None, ld.forces.JointSpring(joint="A", stiffness=stiffness))
    system, times = m.compile(), np.linspace(0, 0.02, 41)
    run = ld.simulate(system, ld.assemble(system), (0, 0.2), t_eval=times, formulation=formulation, progress=False)
    assert run.status == "finished", run.message
    # at 1 rad/s of the crank: the rod turns at -0.25 rad/s, B moves by (-0.4, 0.3), C by (-0.5, 0) m/s
    inertia = crank * 0.25 / 3 + rod * (0.45**2 + 0.15**2 + 1.6 / 12 * 0.25**2) + block * 0.25
    weight = 9.81 * (crank * 0.15 + rod * 0.15)
    rate, deflection = np.sqrt(stiffness / inertia), weight / stiffness
    expected = -deflection * (1 - np.cos(rate * times))
    # rtol is 1e-8 in each of some ten steps for each of 24 vibrations; phases add up
    assert np.abs(run.path.q[:, system.coordinates.index("A")] - expected).max() < 1e-4 * deflection
