"""Full turns of joint angles that something reads: which joint is cut must not change them."""

from itertools import permutations

import pytest

import loopdyn as ld

pytestmark = pytest.mark.jit_off

PIN = ld.Revolute(axis=(0, 0, 1))


def four_bar(names="ABCD", friction=(), coupler=None):
    """A crank (A, B), a coupler (B, C) and a rocker (C, D), by names in this order; the crank turns fully."""
    a, b, c, d = names
    m = ld.Mechanism("bar")
    m.add_body("crank", ld.Inertia.rod(0.5, (0, 0, 0), (0.3, 0, 0)))
    m.add_body("coupler", coupler or ld.Inertia.rod(1.0, (0.3, 0, 0), (0.8, 0.6, 0)))
    m.add_body("rocker", ld.Inertia.rod(0.7, (1, 0, 0), (0.8, 0.6, 0)))
    m.add_joint(a, PIN, m.ground, "crank", at=(0, 0, 0))
    m.add_joint(d, PIN, m.ground, "rocker", at=(1, 0, 0))
    m.add_joint(b, PIN, "crank", "coupler", at=(0.3, 0, 0))
    m.add_joint(c, PIN, "coupler", "rocker", at=(0.8, 0.6, 0))
    for joint in friction:
        m.add_force(ld.JointFriction(joint=joint, viscous=1e-3))
    return m


READERS = {
    "spring": lambda m, joint: m.add_force(ld.JointSpring(joint=joint, stiffness=0.2)),
    "motor": lambda m, joint: m.add_motor("motor", joint, torque="-0.05*position"),
    "driver": lambda m, joint: m.add_driver("servo", joint, "-15*t"),
    "relation": lambda m, joint: m.add_constraint("r", ld.Relation(formula="x - 15*t", coordinates={"x": joint})),
    "coupler": lambda m, joint: m.add_constraint("k", ld.Coupler(terms={joint: 1.0})),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("names", ["ABCD", "DCBA", "AYXD", "XYAB"])
def test_a_joint_whose_angle_is_read_is_not_cut(reader, names):
    for joint in names:
        m = four_bar(names, friction=names)
        READERS[reader](m, joint)
        assert m.compile().topology.cuts != (joint,)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_the_joint_of_a_loop_that_nothing_reads_is_the_cut_one(count):
    for read in permutations("ABCD", count):
        m = four_bar(friction="ABCD")
        for joint in read:
            m.add_force(ld.JointSpring(joint=joint, stiffness=0.2))
        assert set(m.compile().topology.cuts).isdisjoint(read)


def test_speeds_alone_do_not_choose_the_cut():
    plain = four_bar(friction="BC").compile().topology.cuts
    m = four_bar(friction="BC")
    m.add_motor("motor", "C", torque="1 - 0.1*speed")
    m.add_force(ld.JointSpring(joint="C", damping=0.1))
    assert m.compile().topology.cuts == plain


@pytest.mark.parametrize(("limits", "cut"), [((-1.0, 7.0), "B"), ((-1.0, 1.0), "C")])
def test_limits_are_read_if_they_are_more_than_half_a_turn_away(limits, cut):
    m = four_bar()
    m.joints["C"] = m.joints["C"].model_copy(update={"limits": limits})
    assert m.compile().topology.cuts == (cut,)


def test_exchanges_leave_no_massless_body_at_the_end_of_a_branch():
    # a coupler without inertia cannot hang on B or C alone, so a pin on the ground is cut, though read
    m = four_bar(coupler=ld.Inertia.massless())
    for joint in "AD":
        m.add_force(ld.JointSpring(joint=joint, stiffness=0.2))
    assert m.compile().topology.cuts[0] in "AD"
