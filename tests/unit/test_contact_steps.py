"""Momentum steps with contacts (Moreau's scheme) against closed forms; all errors are of first order in the step."""

from __future__ import annotations

import numpy as np
import pytest
from tests.unit.test_stops import ball, cradle

import loopdyn as ld
from loopdyn.contacts import SphereOnPlane, Stop
from loopdyn.integrators import Moreau

G = 9.81
DOWN, Z = (0, 0, -G), (0, 0, 1)


def stepped(system: ld.System, start: ld.State, end: float, step: float, **options) -> ld.results.Run:
    given = {"formulation": "momentum", "integrator": Moreau(step=step), "progress": False}
    return ld.simulate(system, start, (0, end), **given, **options).raise_if_failed()


@pytest.mark.parametrize("step", [1e-2, 1e-3])
def test_a_bouncing_ball_comes_to_rest_through_infinitely_many_impacts(step):
    """At rest at sqrt(2 h/g) (1 + e)/(1 - e) = 4.0637127689 s, within some steps; all energy is booked."""
    system = ball(0.8)
    run = stepped(system, system.state(q={"z": 1.0}), 6.0, step, t_eval=np.arange(0.0, 6.0 + step / 2, step))
    moving = np.abs(run.path.v[:, 0]) > G * step
    rest = run.path.t[np.flatnonzero(moving)[-1]]
    # each of the flights that are longer than a step is wrong by a step at most; there are ln(h)/ln(0.8) of them
    assert rest == pytest.approx(4.0637127689, abs=step * np.log(step) / np.log(0.8))
    assert run.path.v[-1, 0] == pytest.approx(0.0, abs=1e-12)
    assert run.path.q[:, 0].min() > -step * np.sqrt(2 * G) * 1.01  # h |v|
    resting = run.path.t > 5.0
    assert np.ptp(run.path.q[resting, 0]) < 1e-12  # no creep
    # the impulse of the floor carries the weight, 2 kg: it starts and ends at rest
    assert run["floor.impulse"].values[-1] == pytest.approx(2.0 * G * 6.0, rel=1e-10)
    assert run.energy_error < 1e-10
    assert run.jumps[-1] == pytest.approx(2.0 * G, rel=step)  # what was lost, up to the depth at which it rests
    for label in ("floor.force", "z.acceleration"):  # not given, and said
        assert np.isnan(run[label].values).all()
    assert "momentum steps" in run.decided


def test_the_error_is_of_first_order():
    """Speed after the fourth impact, and heights, of a ball with e = 0.8: errors over the step stay bounded."""
    system, fall = ball(0.8), np.sqrt(2 / G)
    tops = fall * np.array([1 + 0.8, 1 + 1.6 + 0.64])  # of the first two rebounds
    for step in (1e-2, 1e-3):
        run = stepped(system, system.state(q={"z": 1.0}), 2.0, step, t_eval=[0.0, *tops, 2.0])
        # heights change by g t dt for a time that is wrong by a step; two impacts
        np.testing.assert_allclose(run.path.q[1:3, 0], [0.8**2, 0.8**4], atol=3.0 * np.sqrt(2 * G) * step)


def test_newtons_cradle_in_steps():
    """All four contacts in one step: Moreau's rule, (-0.6, 0.4, 0.4, 0.4, 0.4)."""
    system = cradle("simultaneous")
    run = stepped(system, system.state(q={"x0": -0.5}, v={"x0": 1.0}), 0.7, 1e-3)
    np.testing.assert_allclose(run.path.v[-1], (-0.6, 0.4, 0.4, 0.4, 0.4), atol=1e-13)


def test_a_crank_of_a_four_bar_bounces_between_stops():
    """A closed loop, against a run by events: the error of a step in time at some 2 rad/s, for two impacts."""
    m = ld.library.four_bar()
    m.add_contact("stop", Stop(joint="A", lower=-0.1, upper=0.1, restitution=0.5))
    system = m.compile()
    start = ld.assemble(system, v={"A": 2.0})
    exact = ld.simulate(system, start, (0, 0.4), progress=False, rtol=1e-10)
    for step in (2e-3, 2e-4):
        run = stepped(system, start, 0.4, step)
        assert run["A"].values[-1] == pytest.approx(exact["A"].values[-1], abs=2 * 2.0 * step)
        assert run.largest_residual < 1e-9
        assert run.energy_error < 30.0 * step


def pile(count: int) -> ld.System:
    """Balls of 1 kg one above the other on vertical slides, 0.2 m apart, radius 0.1: e = 0.3 between them."""
    m = ld.Mechanism("pile", gravity=DOWN)
    below = m.ground
    for k in range(count):
        at = (0, 0, 0.1 + 0.2 * k)
        name = m.add_body(f"b{k}", ld.Inertia.sphere(mass=1.0, radius=0.1, at=at))
        m.add_joint(f"z{k}", ld.Prismatic(axis=Z), below, name, at=at)
        m.add_contact(f"c{k}", Stop(joint=f"z{k}", lower=0.0, restitution=0.3))
        below = name
    return m.compile()


def test_a_pile_settles_and_rests():
    """Dropped from 0.2 m: all fall together, then rest; the impulses carry the weights of all above."""
    count = 12
    system = pile(count)
    run = stepped(system, system.state(q={"z0": 0.2}), 3.0, 1e-3, t_eval=[0.0, 2.0, 3.0])
    assert np.abs(run.path.v[-1]).max() < 1e-9
    np.testing.assert_allclose(run.path.q[1], run.path.q[2], atol=1e-9)  # no creep
    assert run.path.q.min() > -2.0 * 1e-3 * np.sqrt(2 * G * 0.2)  # h |r|: gaps between balls close up to twice as fast
    carried = [run[f"c{k}.impulse"].values[-1] for k in range(count)]
    # each carries the weight of those above it for 3 s, but for the momentum of 0.2 m of fall, which is lost by then
    np.testing.assert_allclose(carried, [3.0 * G * (count - k) for k in range(count)], rtol=1e-6)
    assert run.energy_error < 1e-2


@pytest.mark.slow
def test_a_pile_of_ninety_balls():
    """Steps by the elimination: dropped from 2 cm, at rest after 0.1 s but for the last bounces, in balance."""
    system = pile(90)
    run = stepped(system, system.state(q={"z0": 0.02}), 0.1, 1e-3)
    assert np.abs(run.path.v[-1]).max() < 1e-6
    assert run.path.q.min() > -2.0 * 1e-3 * np.sqrt(2 * G * 0.02)
    assert run.energy_error < 1e-9


@pytest.mark.jit_off
def test_moreau_steps_are_those_of_momentum():
    system = ball(0.5)
    with pytest.raises(ld.LoopdynError, match="momentum"):
        ld.simulate(system, system.state(q={"z": 1.0}), (0, 1), integrator=Moreau(step=1e-3), progress=False)
    with pytest.raises(ld.LoopdynError, match="beyond it"):
        stepped(system, system.state(q={"z": -0.1}), 1.0, 1e-3)
    sim = ld.Simulation(system, system.state(), step=0.01, formulation="momentum", integrator=Moreau(step=1e-3))
    assert sim.step()
    assert sim["z"] == pytest.approx(0.0, abs=1e-12)
    assert np.isnan(sim["z.acceleration"])
    with pytest.raises(ld.LoopdynError, match="there is no copy"):
        sim.copy()


def test_events_of_users_in_momentum_steps():
    """A kick of 1 m/s; an end on the way up; a lock is refused in words."""
    system = ball(0.8)
    start = system.state(q={"z": 1.0})
    kick = ld.events.At(0.2, "kick", action=lambda s: ld.State(s.t, s.q, s.v + 1.0))
    run = stepped(system, start, 0.4, 1e-3, events=[kick])
    assert run.path.q[-1, 0] == pytest.approx(1.0 - G * 0.4**2 / 2 + 0.2, rel=1e-9)
    rises = ld.events.Crossing("z - 0.5", "half", direction=1, stop=True, coordinates={"z": "z"})
    run = stepped(system, start, 3.0, 1e-3, events=[rises])
    assert run.status == "stopped"
    assert run.path.q[-1, 0] == pytest.approx(0.5, abs=1e-9)
    assert run.energy_error < 1e-10
    lock = ld.events.At(0.2, "brake", action=ld.events.Lock("z"))
    options = {"formulation": "momentum", "integrator": Moreau(step=1e-3), "progress": False}
    run = ld.simulate(system, start, (0, 1), events=[lock], **options)
    assert run.status == "failed"
    assert "constraints cannot change while contacts act in momentum steps" in run.message


def test_a_driven_table_in_momentum_steps():
    """The driver's work in impacts is booked: balance and motion, beside the run by events, of first order."""
    m = ld.Mechanism("shaken", gravity=DOWN)
    m.add_body("table", ld.Inertia.sphere(mass=1.0, radius=0.1))
    m.add_body("mass", ld.Inertia.sphere(mass=3.0, radius=0.1))
    m.add_joint("T", ld.Prismatic(axis=Z), "ground", "table", at=(0, 0, 0))
    m.add_joint("M", ld.Prismatic(axis=Z), "table", "mass", at=(0, 0, 0))
    m.add_driver("shake", "T", "0.05*sin(20*t)")
    m.add_contact("top", Stop(joint="M", lower=0.0, restitution=0.7))
    system = m.compile()
    start = ld.assemble(system, q={"M": 0.1})
    exact = ld.simulate(system, start, (0, 0.5), progress=False)
    run = stepped(system, start, 0.5, 1e-4)
    assert run["M"].values[-1] == pytest.approx(exact["M"].values[-1], abs=10 * 1e-4)  # some 2 m/s, five impacts
    assert run.energy_error < 20 * 1e-4


def test_auto_takes_momentum_steps_where_accelerations_have_no_solution():
    """A particle between two ropes of 1 m, both taut at the origin, is kicked across them: it stops, as it must.

    The origin is the one point that the ropes leave it. They pull against each other there, so that no forces give the
    accelerations -v^2/L that both need; impulses do, a little later.
    """
    m = ld.Mechanism("jam")
    m.add_body("cart", ld.Inertia.sphere(mass=1.0, radius=0.1))
    m.add_body("ball", ld.Inertia.sphere(mass=1.0, radius=0.1))
    m.add_joint("x", ld.Prismatic(axis=(1, 0, 0)), m.ground, "cart", at=(0, 0, 0))
    m.add_joint("y", ld.Prismatic(axis=(0, 1, 0)), "cart", "ball", at=(0, 0, 0))
    for name, y in (("above", 1.0), ("below", -1.0)):
        points = {"point1": (0, y, 0), "point2": (0, 0, 0)}
        m.add_contact(name, Stop(body1="ground", body2="ball", **points, upper=1.0))
    system = m.compile()
    kick = ld.events.At(0.1, "kick", action=lambda s: ld.State(s.t, s.q, np.array([1.0, 0.0])))
    run = ld.simulate(system, system.state(), (0, 0.5), events=[kick], progress=False).raise_if_failed()
    (event,) = [e for e in run.events if e.kind == "momentum steps" and "go on" in e.name]
    assert event.t == pytest.approx(0.1)
    step = 1e-3  # of the time in which it would move by its size of 1 m
    np.testing.assert_allclose(run.path.v[-1], 0.0, atol=1e-6)
    assert np.abs(run.path.q[-1]).max() < 3 * step
    assert run.energy_error < 1e-2
    started = ld.simulate(system, system.state(v={"x": 1.0}), (0, 0.1), progress=False)
    assert np.abs(started.path.v[-1]).max() < 1e-6
    assert np.abs(started.path.q[-1]).max() < 3 * step
    graph = ld.simulate(system, system.state(), (0, 0.5), events=[kick], formulation="graph", progress=False)
    assert graph.status == "failed"
    assert "Let contacts act in momentum steps" in graph.message


def grains(count: int) -> ld.System:
    """Points of 1 kg on slides of their own, above a floor: so many contacts at the same time."""
    m = ld.Mechanism("grains", gravity=DOWN)
    for k in range(count):
        at = (0.3 * k, 0, 0)
        name = m.add_body(f"g{k}", ld.Inertia.sphere(mass=1.0, radius=0.1, at=at))
        m.add_joint(f"z{k}", ld.Prismatic(axis=Z), m.ground, name, at=at)
        floor = SphereOnPlane("ground", name, through=at, outward=Z, centre=at, restitution=0.9)
        m.add_contact(f"c{k}", floor)
    return m.compile()


def test_auto_takes_momentum_steps_for_many_contacts_that_keep_changing_and_says_so():
    """22 points bounce together: they rest at sqrt(2 h/g) (1 + e)/(1 - e) = 3.84 s for h = 0.02 m, e = 0.9."""
    system = grains(22)
    start = system.state(q={f"z{k}": 0.02 for k in range(22)})
    run = ld.simulate(system, start, (0, 2.0), progress=False).raise_if_failed()
    (event,) = [e for e in run.events if e.kind == "momentum steps" and "first order, go on" in e.name]
    assert "22 contacts" in event.name
    assert "contacts by momentum steps" in run.decided
    assert np.abs(run.path.v[-1]).max() < 1e-6
    end = np.sqrt(2 * 0.02 / G) * (1 + 0.9) / (1 - 0.9)
    assert end < 2.0
    np.testing.assert_allclose(run.path.q[-1], 0.0, atol=1e-3)
    assert run.energy_error < 1e-3
