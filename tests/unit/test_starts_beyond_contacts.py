"""Starts beyond contacts: the nearest pose outside, against closed forms and a search of many poses."""

from __future__ import annotations

import numpy as np
import pytest

import loopdyn as ld
from loopdyn.constraints import CircleShape, LineShape, PointShape, PolylineShape
from loopdyn.contacts import Contact, Stop

Z = (0, 0, 1)


def disc(*contacts: Contact) -> ld.System:
    """A disc of radius 0.5 m in the plane, with its centre at the origin."""
    m = ld.Mechanism("disc", gravity=(0, -9.81, 0))
    m.add_body("disc", ld.Inertia(2.0, (0, 0, 0), np.eye(3) * 0.3))
    m.add_joint("P", ld.Planar(normal=Z), m.ground, "disc", at=(0, 0, 0))
    for k, contact in enumerate(contacts):
        m.add_contact(f"c{k}", contact)
    return m.compile()


def floor(height: float, outward: tuple = (0, 1, 0)) -> Contact:
    line = LineShape(through=tuple(height * np.array(outward) / np.linalg.norm(outward)), outward=outward)
    return Contact(body1="ground", shape1=line, body2="disc", shape2=CircleShape(centre=(0, 0, 0), radius=0.5))


def test_a_disc_in_the_floor_is_lifted_straight_up():
    system = disc(floor(-0.3))
    state = ld.assemble(system)
    np.testing.assert_allclose([state["P.x"], state["P.y"], state["P.angle"]], [0, 0.2, 0], atol=1e-10)
    assert "moved to the nearest pose outside 'c0', by 0.2 m" in state.note
    run = ld.simulate(system, state, (0, 0.1), progress=False)
    assert run["c0.force"].values[-1] == pytest.approx(2 * 9.81, rel=1e-9)


def test_a_disc_in_a_groove_moves_until_it_touches_both_walls():
    """Walls at right angles: both gaps are zero, each by its own motion."""
    system = disc(floor(-0.3, (1, 1, 0)), floor(-0.2, (-1, 1, 0)))
    state = ld.assemble(system)
    e, f = np.array([1, 1]) / np.sqrt(2), np.array([-1, 1]) / np.sqrt(2)
    np.testing.assert_allclose([state["P.x"], state["P.y"]], 0.2 * e + 0.3 * f, atol=1e-10)


def test_a_disc_beyond_one_wall_only_stays_off_the_other_one():
    system = disc(floor(-0.3, (1, 1, 0)), floor(-0.9, (-1, 1, 0)))
    state = ld.assemble(system)
    np.testing.assert_allclose([state["P.x"], state["P.y"]], [0.2 / np.sqrt(2)] * 2, atol=1e-10)


def rocker(**bounds: float) -> ld.System:
    m = ld.library.four_bar()
    m.add_contact("stop", Stop(joint="D", **bounds))
    return m.compile()


def test_the_loops_stay_closed_when_a_linkage_is_moved_off_its_stop():
    system = rocker(lower=0.2)
    state = ld.assemble(system)
    assert state["D"] == pytest.approx(0.2, abs=1e-10)
    assert "outside 'stop', by 0.2 rad" in state.note
    free = ld.assemble(ld.library.four_bar().compile(), q={"D": 0.2})  # one freedom: the stop decides the pose
    np.testing.assert_allclose(state["A"], free["A"], atol=1e-9)
    assert ld.simulate(system, state, (0, 0.1), progress=False).status == "finished"


def test_of_many_poses_outside_none_is_nearer():
    """A free five-bar whose two cranks leave two freedoms; distances in the mass metric of the first pose."""
    m = ld.library.five_bar()
    system = m.compile()
    label = system.coordinates[1]
    here = ld.assemble(system)
    bound = here[label] + 0.15
    m.add_contact("stop", Stop(joint=label, lower=float(bound)))
    stopped = m.compile()
    found = ld.assemble(stopped, near=here)
    M = ld.tree.open_tree_mass_matrix(system, here)

    def distance(state: ld.State) -> float:
        d = state.q - here.q
        return float(d @ M @ d)

    assert found[label] == pytest.approx(bound, abs=1e-10)
    rng = np.random.default_rng(1)
    for _ in range(200):
        first = system.coordinates[0]
        values = {label: bound + 0.05 * abs(rng.normal()), first: found[first] + 0.1 * rng.normal()}
        try:
            other = ld.assemble(system, q=values, near=found, tries=1)
        except ld.errors.AssemblyError:
            continue
        assert distance(other) >= distance(found) - 1e-12


def test_values_that_are_given_are_kept_and_a_run_from_there_is_refused():
    system = rocker(upper=0.1)
    state = ld.assemble(system, q={"D": 0.2})
    assert state["D"] == pytest.approx(0.2, abs=1e-12)
    assert "as given it is beyond 'stop', by 0.1 rad, where no run can start" in state.note
    with pytest.raises(ld.errors.LoopdynError, match=r"ld\.assemble\(system, near=state\) gives the nearest one"):
        ld.simulate(system, state, (0, 0.1), progress=False)
    inside = ld.assemble(system, near=state)
    assert inside["D"] == pytest.approx(0.1, abs=1e-10)
    assert ld.assemble(system, near=state, limits=False)["D"] == pytest.approx(0.2, abs=1e-12)


def test_where_there_is_no_pose_outside_it_says_so():
    """A disc of diameter 1 between walls that are 0.8 apart; a rocker that does not reach its stop."""
    with pytest.raises(ld.errors.AssemblyError, match=r"cannot be closed with D = -0\.2 rad"):
        ld.assemble(ld.library.four_bar().compile(), q={"D": -0.2})
    with pytest.raises(ld.errors.AssemblyError, match=r"beyond 'stop', by 0\.2 rad, and no pose outside"):
        ld.assemble(rocker(upper=-0.2))
    system = disc(floor(-0.4), floor(-0.4, (0, -1, 0)))
    with pytest.raises(ld.errors.AssemblyError, match=r"beyond 'c0', by 0\.1 m, 'c1', by 0\.1 m, and no pose outside"):
        ld.assemble(system)
    with pytest.raises(ld.errors.AssemblyError, match=r"with P\.y as given, but the pose is beyond 'c0'"):
        ld.assemble(disc(floor(-0.3)), q={"P.y": 0.0})


def test_depths_are_in_the_declared_units():
    m = ld.Mechanism("pin", units={"length": "mm", "angle": "deg"})
    m.add_body("b", ld.Inertia(1.0, (0, 0, 0), np.eye(3)))
    m.add_joint("P", ld.Planar(normal=Z), m.ground, "b", at=(0, 0, 0))
    corner = PolylineShape(points=[(-50, -20, 0), (50, -20, 0), (50, 30, 0), (-50, 30, 0)], closed=True)
    m.add_contact("box", Contact(body1="ground", shape1=corner, body2="b", shape2=PointShape(at=(0, 0, 0))))
    state = ld.assemble(m.compile())
    assert "outside 'box', by 20 mm" in state.note
    np.testing.assert_allclose([state["P.x"], state["P.y"]], [0, -20], atol=1e-7)
