"""Linear equations with contacts: one that presses is a constraint, others are refused or absent, and it is said."""

import numpy as np
import pytest

import loopdyn as ld
from loopdyn.contacts import SphereOnPlane, Stop

G = 9.81
Z = (0, 0, 1)


def two_rods(**stop):
    """Two points of 1 kg on arms of 1 m that hang; a stop at the elbow."""
    m = ld.Mechanism("double", gravity=(0, -G, 0), parameters={"bound": 0.0, "push": 3.0})
    m.add_body("one", ld.Inertia.point(1.0, at=(0, -1, 0)))
    m.add_body("two", ld.Inertia.point(1.0, at=(0, -2, 0)))
    m.add_joint("A", ld.Revolute(axis=Z), m.ground, "one", at=(0, 0, 0))
    m.add_joint("B", ld.Revolute(axis=Z), "one", "two", at=(0, -1, 0))
    m.add_force("motor", ld.forces.Motor(joint="B", torque="push"))
    m.add_contact("elbow", Stop(joint="B", **stop))
    return m


def test_a_stop_that_presses_is_a_constraint_and_its_force_the_margin():
    """A motor of 3 N m presses the elbow to its stop: one pendulum, omega^2 = g (1 + 2)/(1 + 4); the margin 3 N m."""
    system = two_rods(upper=0.0).compile()
    found = ld.linearize(system, ld.State(0.0, np.zeros(2), np.zeros(2)))
    assert [s.name for s in found.states] == ["A", "A.speed"]
    assert np.abs(found.poles()) ** 2 == pytest.approx(3 * G / 5, rel=1e-11)
    assert found.contacts == pytest.approx({"elbow": 3.0}, rel=1e-11)
    assert "valid while contact 'elbow' stays closed: it presses with 3 N*m" in found.notes
    assert found.as_data()["contacts"] == found.contacts
    assert "stays closed" in str(found)


def test_a_stop_from_which_the_motor_pulls_away_is_absent():
    """Pushed off its stop the elbow swings; the equations are those without the stop, and say so."""
    m = two_rods(lower=0.0)
    system = m.compile()
    found = ld.linearize(system, ld.State(0.0, np.zeros(2), np.zeros(2)))
    assert len(found.states) == 4
    assert not found.contacts
    assert any("'elbow' opens here" in note for note in found.notes)
    m.contacts.clear()
    free = ld.linearize(m.compile(), ld.State(0.0, np.zeros(2), np.zeros(2)))
    np.testing.assert_array_equal(found.matrices.A, free.matrices.A)


def test_contacts_without_linear_equations_are_refused():
    system = two_rods(upper=0.0).compile()
    hit = ld.State(0.0, np.zeros(2), np.array([0.0, 1.0]))
    with pytest.raises(ld.LoopdynError, match="'elbow' is hit at a speed"):
        ld.linearize(system, hit)
    with pytest.raises(ld.LoopdynError, match="'elbow' is passed"):
        ld.linearize(system, ld.State(0.0, np.array([0.0, 0.1]), np.zeros(2)))
    idle = two_rods(upper=0.0).with_(push=0.0).compile()
    with pytest.raises(ld.LoopdynError, match="elbow of 'double' touches without pressing"):
        ld.linearize(idle, ld.State(0.0, np.zeros(2), np.zeros(2)))
    with pytest.raises(ld.LoopdynError, match="elbow is closed there"):
        ld.sensitivity(system, "omega(0)", "push", state=ld.State(0.0, np.zeros(2), np.zeros(2)))


def test_a_stop_that_is_left_at_a_speed_is_absent():
    system = two_rods(upper=0.0).compile()
    found = ld.linearize(system, ld.State(0.0, np.zeros(2), np.array([0.0, -1.0])))
    assert len(found.states) == 4
    assert any("'elbow' opens here" in note for note in found.notes)


def test_a_bound_is_an_input_by_the_parameter_in_its_formula():
    """The stop holds the elbow at `bound`: as an input it shifts B by itself, and so the equilibrium of A."""
    system = two_rods(upper="bound").compile()
    state = ld.State(0.0, np.zeros(2), np.zeros(2))
    found = ld.linearize(system, state, inputs=["bound"], outputs=["A", "B"])
    assert found.D.values[:, 0] == pytest.approx([0.0, 1.0], abs=1e-9)
    # moment of the lower weight about A per angle of B: g; inertia 5
    assert found.B.values[1, 0] == pytest.approx(-G / 5, abs=1e-8)


def block():
    """A block on rollers above a floor that it presses on by its weight: a point on a plane, free along x."""
    m = ld.Mechanism("block", gravity=(0, 0, -G), parameters={"radius": 0.2})
    m.add_body("block", ld.Inertia.point(2.0, at=(0, 0, 0.2)))
    m.add_joint("p", ld.joints.Translational(), m.ground, "block", at=(0, 0, 0.2))
    m.add_force(
        "spring", ld.forces.SpringDamper("ground", "block", (-1, 0, 0.2), (0, 0, 0.2), stiffness=50.0, length=1.0)
    )
    m.add_contact(
        "floor",
        SphereOnPlane(
            on="ground", body="block", through=(0, 0, 0), outward=(0, 0, 1), centre=(0, 0, 0.2), radius="radius"
        ),
    )
    return m.compile()


def test_a_body_that_rests_on_a_plane_presses_with_its_weight():
    """2 kg: 19.62 N. Along the floor k/m = 25; across no force: two zero poles."""
    system = block()
    found = ld.linearize(system, ld.assemble(system))
    assert found.contacts == pytest.approx({"floor": 2 * G}, rel=1e-11)
    assert found.modes().omega == pytest.approx([5.0], rel=1e-11)
    assert found.zero_chains == (2,)
    with pytest.raises(ld.LoopdynError, match="'radius' moves contact floor"):
        ld.linearize(system, ld.assemble(system), inputs=["radius"])


def test_along_a_run_contacts_stay_as_they_are_or_it_is_refused():
    system = two_rods(upper=0.0).compile()
    rests = ld.simulate(system, ld.State(0.0, np.array([0.1, 0.0]), np.zeros(2)), (0, 0.2), progress=False)
    path = ld.linearize(system, rests)
    assert path.A.shape[1:] == (2, 2)
    # g (m + 2 m) cos A/5 along the run
    np.testing.assert_allclose(path.A.values[:, 1, 0], -3 * G / 5 * np.cos(rests["A"].values), rtol=1e-9)
    hits = ld.simulate(system, ld.State(0.0, np.array([0.0, -0.2]), np.zeros(2)), (0, 1.0), progress=False)
    with pytest.raises(ld.LoopdynError, match="constraints change in this run"):
        ld.linearize(system, hits)


def test_along_a_run_with_a_lock_is_refused():
    """Before, equations after the lock were those without it."""
    system = ld.library.double_pendulum().compile()
    lock = ld.events.At(0.1, "lock", action=ld.events.Lock("B"))
    run = ld.simulate(system, ld.assemble(system), (0, 0.2), events=[lock], progress=False)
    with pytest.raises(ld.LoopdynError, match="constraints change in this run"):
        ld.linearize(system, run)


def test_multipliers_over_an_impact_are_refused():
    """A ball that rebounds without loss is periodic; its multipliers need the saltation of the impact."""
    m = ld.Mechanism("ball", gravity=(0, 0, -G))
    m.add_body("ball", ld.Inertia.point(1.0))
    m.add_joint("z", ld.Prismatic(axis=Z, limits=(0, 10), at_limit={"rebound": 1.0}), m.ground, "ball", at=(0, 0, 0))
    system = m.compile()
    fall = np.sqrt(2 / G)
    run = ld.simulate(system, system.state(q={"z": 1.0}), (0, 2.1 * fall), progress=False)
    with pytest.raises(ld.LoopdynError, match="jumps at t ="):
        ld.linearize(system, run).floquet(2 * fall)


def test_a_compliant_stop_keeps_its_stiffness_beside_a_rigid_one_that_presses():
    """A wagon on a buffer and a part that rests on a stop: omega^2 = k/m of the wagon alone."""
    m = ld.Mechanism("both", gravity=(0, -9.81, 0))
    m.add_body("wagon", ld.Inertia.box(mass=2.0, size=(0.2, 0.1, 0.1), at=(0, 0, 0)))
    m.add_joint("X", ld.Prismatic(axis=(1, 0, 0)), m.ground, "wagon", at=(0, 0, 0))
    m.add_contact("buffer", ld.contacts.Stop(joint="X", upper=0.1, stiffness=3000))
    m.add_motor("push", "X", force=60.0)
    m.add_body("part", ld.Inertia.sphere(mass=1.0, radius=0.1))
    m.add_joint("Y", ld.Prismatic(axis=(0, 1, 0)), m.ground, "part", at=(0, 0, 0))
    m.add_contact("floor", ld.contacts.Stop(joint="Y", lower=0.0))
    system = m.compile()
    found = ld.linearize(system, system.state({"X": 0.1 + 60.0 / 3000.0}))
    assert found.contacts == pytest.approx({"floor": 9.81})
    assert np.abs(found.poles().imag).max() == pytest.approx(np.sqrt(3000.0 / 2.0), rel=1e-9)
