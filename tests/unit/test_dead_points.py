"""Runs that a driver leads to a dead point name the driver."""

import numpy as np
import pytest
from scipy import optimize

import loopdyn as ld

PIN = ld.Revolute(axis=(0, 0, 1))
O4, C0 = np.array([1.1, 0.0]), np.array([1.2, 0.9])
CRANK, COUPLER = 0.5, float(np.hypot(1.2, 0.4))


def four_bar(motion: str) -> ld.Mechanism:
    """A four-bar whose rocker is driven."""
    m = ld.Mechanism("four_bar", gravity=(0, -9.81, 0))
    m.add_body("crank", ld.Inertia.rod(mass=0.5, start=(0, 0, 0), end=(0, 0.5, 0)))
    m.add_body("coupler", ld.Inertia.rod(mass=1.0, start=(0, 0.5, 0), end=(1.2, 0.9, 0)))
    m.add_body("rocker", ld.Inertia.rod(mass=0.75, start=(1.2, 0.9, 0), end=(1.1, 0, 0)))
    m.add_joint("A", PIN, m.ground, "crank", at=(0, 0, 0))
    m.add_joint("B", PIN, "crank", "coupler", at=(0, 0.5, 0))
    m.add_joint("C", PIN, "coupler", "rocker", at=(1.2, 0.9, 0))
    m.add_joint("D", PIN, m.ground, "rocker", at=(1.1, 0, 0))
    m.add_driver("servo", "D", motion)
    return m


def four_bar_and_wheel() -> ld.Mechanism:
    """The driven four-bar with a wheel beside it that nothing connects to it."""
    m = four_bar("t")
    m.add_body("wheel", ld.Inertia.sphere(mass=1.0, radius=0.2, at=(3, 0, 0)))
    m.add_joint("W", PIN, m.ground, "wheel", at=(3, 0, 0))
    return m


def folded() -> float:
    """Angle of the rocker at which crank and coupler lie on one line, folded: |C| = coupler - crank."""

    def gap(angle: float) -> float:
        c, s = np.cos(angle), np.sin(angle)
        C = O4 + np.array([[c, -s], [s, c]]) @ (C0 - O4)
        return float(np.hypot(*C) - (COUPLER - CRANK))

    return float(optimize.brentq(gap, 0.5, 1.2))


@pytest.mark.parametrize(
    "formulation", ["auto", *(pytest.param(name, marks=pytest.mark.jit_off) for name in ("graph", "partition"))]
)  # auto takes a minute as plain Python
def test_a_run_that_a_driver_leads_to_its_dead_point_names_the_driver(formulation):
    dead = folded()  # with 1 rad/s the time, too
    system = four_bar("t").compile()
    run = ld.simulate(
        system,
        ld.assemble(system, t=dead - 0.02),
        (dead - 0.02, dead + 0.02),
        formulation=formulation,
        rtol=1e-5,
        progress=False,
    )
    assert run.status == "failed"
    assert "driver 'servo' is at a dead point" in run.message
    assert "A, B can move without it" in run.message
    said = float(run.message.rpartition("At t = ")[2].partition(" s ")[0])
    assert said == pytest.approx(dead, abs=1e-3)  # steps shrink before it


@pytest.mark.jit_off
def test_of_two_drivers_the_one_at_its_dead_point_is_named():
    """A second mechanism beside the first has a driver that is far from any dead point."""
    dead = folded()
    m = four_bar_and_wheel()
    m.add_driver("motor", "W", "2*t")
    system = m.compile()
    start = dead - 0.02
    run = ld.simulate(system, ld.assemble(system, t=start), (start, dead + 0.02), formulation="partition", rtol=1e-5,
                      progress=False)  # fmt: skip
    assert "driver 'servo' is at a dead point" in run.message
    assert "motor" not in run.message


@pytest.mark.jit_off
def test_a_run_that_fails_for_another_reason_blames_no_driver():
    """A force that becomes NaN; the driver is far from its dead points."""
    m = four_bar("0.1*t")
    m.add_force("broken", ld.forces.UserForce(function=lambda t, q, v, tau: tau.fill(np.nan if t > 0.01 else 0.0)))
    system = m.compile()
    run = ld.simulate(system, ld.assemble(system), (0, 0.05), formulation="partition", rtol=1e-5, progress=False)
    assert run.status == "failed"
    assert "dead point" not in run.message


@pytest.mark.jit_off
def test_a_drive_that_a_driver_of_the_model_ends_names_it_and_not_the_input():
    dead = folded()
    m = four_bar_and_wheel()
    found = ld.drive(m.compile(), {"W": "2*t"}, t_span=(0, 1.2))
    assert found.status == "stopped"
    assert found.limit.kind == "dead point"
    assert found.limit.value == pytest.approx(dead, abs=1e-9)  # a root that drive finds to rounding
    assert "driver 'servo' cannot go on" in found.message
    assert "W cannot go on" not in found.message


@pytest.mark.jit_off
def test_inverse_dynamics_names_what_is_at_a_dead_point():
    times = np.linspace(0.9, 1.0, 11)  # the dead point is at 0.922
    with pytest.raises(ld.errors.AssemblyError, match=r"beyond t = 0.92.* driver 'servo' is at a dead point"):
        ld.inverse_dynamics(four_bar_and_wheel().compile(), {"W": "t"}, t_eval=times)
    m = four_bar("t")
    del m.drivers["servo"]
    with pytest.raises(ld.errors.AssemblyError, match=r"beyond t = 0.92.* the motion of 'D' is at a dead point"):
        ld.inverse_dynamics(m.compile(), {"D": "t"}, t_eval=times)
