"""Rigid stops on measures: heights of points and sums of coordinates, against closed forms and other contacts."""

from __future__ import annotations

import numpy as np
import pytest

import loopdyn as ld
from loopdyn.contacts import Backlash, Stop

PRECISE = {"rtol": 1e-10, "progress": False}
Z = (0, 0, 1)


def pendulum(restitution: float) -> ld.System:
    """A rod of 800 mm that falls from the horizontal until its tip is 400 mm below the pin: at -30 degrees."""
    m = ld.Mechanism("flap", gravity=(0, -9.81, 0), units={"length": "mm", "angle": "deg"})
    m.add_body("rod", ld.Inertia.rod(mass=2.0, start=(0, 0, 0), end=(800, 0, 0)))
    m.add_joint("A", ld.Revolute(axis=Z), m.ground, "rod", at=(0, 0, 0))
    m.add_point("tip", (800, 0, 0), on="rod")
    m.add_measure("height", "y(tip)")
    m.add_contact("floor", Stop(measure="height", lower=-400, restitution=restitution))
    return m.compile()


@pytest.mark.parametrize("restitution", [0.0, 0.5, 1.0])
def test_the_tip_of_a_rod_hits_the_floor(restitution):
    """The speed at the impact by the energy; the weight of a rod at rest is borne half by the floor."""
    system = pendulum(restitution)
    run = ld.simulate(system, system.state(), (0, 2.0), **PRECISE)
    hit = next(e for e in run.events if e.kind == "impact")
    speed = np.sqrt(3 * 9.81 / 0.8 * np.sin(np.pi / 6))  # m L^2/3 w^2/2 = m g L/2 sin
    assert hit.state["A"] == pytest.approx(-30.0, abs=1e-7)
    assert hit.state["A.speed"] == pytest.approx(-np.degrees(speed), rel=1e-8)
    assert hit.after["A.speed"] == pytest.approx(restitution * np.degrees(speed), rel=1e-8, abs=1e-7)
    momentum = 2.0 * 0.8**2 / 3 * (1 + restitution) * speed
    lever = 0.8 * np.cos(np.pi / 6)
    assert run["floor.impulse"].values[run.path.t > hit.t][0] == pytest.approx(momentum / lever, rel=1e-8)
    assert run["floor.gap"].values.min() > -1e-6  # mm
    assert run.energy_error < 1e-8
    if restitution < 1.0:
        assert run["floor.force"].values[-1] == pytest.approx(2.0 * 9.81 / 2, rel=1e-9)
        assert run["A"].values[-1] == pytest.approx(-30.0, abs=1e-9)
    assert (system.labels["floor.gap"].unit, system.labels["floor.force"].unit) == ("mm", "N")


def test_a_measure_of_coordinates_is_a_backlash():
    def gears(measured: bool) -> ld.System:
        m = ld.Mechanism("gears", gravity=(0, 0, 0))
        for name, inertia, x in (("a", 0.01, 0.0), ("b", 0.05, 1.0)):
            m.add_body(name, ld.Inertia(1.0, (x, 0, 0), np.eye(3) * inertia))
            m.add_joint(name.upper(), ld.Revolute(axis=Z), m.ground, name, at=(x, 0, 0))
        m.add_motor("motor", "A", torque="0.3*cos(7*t)")
        m.add_measure("slip", "A + 2*B")
        if measured:
            m.add_contact("mesh", Stop(measure="slip", lower=-0.01, upper=0.01, restitution=0.4))
        else:
            m.add_contact("mesh", Backlash(terms={"A": 1.0, "B": 2.0}, play=0.02, restitution=0.4))
        return m.compile()

    runs = [ld.simulate(s, s.state(), (0, 1.0), **PRECISE) for s in (gears(True), gears(False))]
    found, expected = ([(e.kind, e.name) for e in run.events] for run in runs)
    assert len(expected) > 5
    assert found == expected
    np.testing.assert_allclose(*([e.t for e in run.events] for run in runs), rtol=0, atol=1e-8)
    forces = [run["mesh.force"].values[-1] for run in runs]
    assert forces[0] == pytest.approx(forces[1], rel=1e-6)
    assert {run.system.labels["mesh.force"].unit for run in runs} == {"N*m"}


def coupler(stop: bool) -> ld.Mechanism:
    m = ld.library.four_bar()
    m.add_point("P", (0.5, 0.5, 0), on="coupler")
    m.add_measure("height", "y(P)")
    if stop:
        m.add_contact("table", Stop(measure="height", lower=0.4))
    return m


def test_a_point_of_a_coupler_rests_on_a_height(tmp_path):
    """The force by virtual work: a motor that holds the crank there instead does the same work."""
    coupler(True).save(tmp_path / "table.yaml")
    assert ld.load(tmp_path / "table.yaml") == coupler(True)
    system, free = coupler(True).compile(), coupler(False).compile()
    run = ld.simulate(system, ld.assemble(system, v={"A": 0.0}), (0, 4.0), **PRECISE)
    assert run.status == "finished", run.message
    assert run["table.gap"].values.min() > -1e-9
    rest = run.state(-1)
    assert np.abs(rest.v).max() < 1e-9
    held = ld.inverse_dynamics(free, {"A": f"{rest['A']!r} + 0*t"}, [0.0, 1.0], motors=["A"])
    torque = float(held.data["load"][0, 0])

    def height(crank: float) -> float:
        return float(ld.analyses.measures(free, ld.assemble(free, q={"A": crank}))["height"])

    rise = (height(rest["A"] + 1e-5) - height(rest["A"] - 1e-5)) / 2e-5
    assert run["table.force"].values[-1] == pytest.approx(torque / rise, rel=1e-6)


def test_runs_with_a_stop_on_a_measure_are_saved_and_continued(tmp_path):
    system = pendulum(0.5)
    run = ld.simulate(system, system.state(), (0, 1.0), progress=False)
    run.save(tmp_path / "run.nc")
    again = ld.load_run(tmp_path / "run.nc")
    assert [e.kind for e in again.events] == [e.kind for e in run.events]
    np.testing.assert_allclose(again["floor.force"].values, run["floor.force"].values, rtol=1e-9)


def test_gap_of_a_rack_with_play_is_a_length_whatever_comes_first():
    m = ld.Mechanism("rack", units={"length": "mm", "angle": "deg"})
    for name, joint in (("pinion", ld.Revolute(axis=Z)), ("rack", ld.Prismatic(axis=(1, 0, 0)))):
        m.add_body(name, ld.Inertia(1.0, (0, 0, 0), np.eye(3)))
        m.add_joint(name[0].upper(), joint, m.ground, name, at=(0, 0, 0))
    m.add_contact("teeth", Backlash(terms={"P": 0.5, "R": 1.0}, play=2.0))
    system = m.compile()
    assert (system.labels["teeth.gap"].unit, system.labels["teeth.force"].unit) == ("mm", "N")
    run = ld.simulate(system, system.state(v={"R": 1.0}), (0, 0.5), t_eval=[0.0, 0.5], progress=False)
    np.testing.assert_allclose(run["teeth.gap"].values, [1.0, 0.5], rtol=1e-9)
