"""`system.labels`: what the label of a coordinate or speed stands for, by hand."""

import pytest

import loopdyn as ld

pytestmark = pytest.mark.jit_off


def arm_on_a_ball():
    """Slide on the ground, arm on a ball on the slide, free body beside."""
    m = ld.Mechanism("arm", gravity=(0, 0, -9.81))
    rod = ld.Inertia.rod(mass=1.0, start=(0, 0, 0), end=(1, 0, 0), radius=0.01)
    slide, arm, loose = (m.add_body(name, rod) for name in ("slide", "arm", "loose"))
    m.add_joint("S", ld.Prismatic(axis=(1, 0, 0)), m.ground, slide, at=(0, 0, 0))
    m.add_joint("B", ld.Spherical(), slide, arm, at=(1, 0, 0))
    m.add_joint("L", ld.Free(), m.ground, loose, at=(0, 0, 0))
    return m.compile()


def test_labels_know_their_units():
    labels = arm_on_a_ball().labels
    assert {k: labels[k].unit for k in ("S", "B.w", "L.px", "L.w")} == {
        "S": "m",
        "B.w": "1",
        "L.px": "m",
        "L.w": "1",
    }
    assert {k: labels[k].unit for k in ("S.speed", "B.wx", "L.wz", "L.vz.acceleration")} == {
        "S.speed": "m/s",
        "B.wx": "rad/s",
        "L.wz": "rad/s",
        "L.vz.acceleration": "m/s^2",
    }
    assert list(labels.scalars) == ["S"]


def test_labels_know_the_place_in_a_state():
    system = arm_on_a_ball()
    for names, known in ((system.coordinates, system.labels.coordinates), (system.speeds, system.labels.speeds)):
        assert [known[label].place for label in names] == list(range(len(names)))


def test_coordinates_of_cut_joints_are_known_and_have_no_place():
    system = ld.library.four_bar().compile(cuts=["C"])
    assert system.labels.coordinates["C"].joint.name == "C"
    assert system.labels.coordinates["C"].place == system.labels.speeds["C"].place == -1


def test_a_state_says_that_the_joint_of_a_label_is_cut():
    system = ld.library.four_bar().compile(cuts=["C"])
    with pytest.raises(ld.errors.ModelError, match="joint 'C' is cut"):
        system.state(q={"C": 0.1})
    with pytest.raises(ld.errors.ModelError, match="there is no coordinate 'X'"):
        system.state(q={"X": 0.1})


def test_the_stiffness_on_a_slide_is_in_newtons_per_metre_also_if_the_mechanism_is_of_size_one():
    m = ld.Mechanism("block", gravity=(0, 0, 0))
    block = m.add_body("block", ld.Inertia.sphere(mass=1.0, radius=0.1))
    m.add_joint("S", ld.Prismatic(axis=(1, 0, 0)), m.ground, block, at=(0, 0, 0))
    m.add_force("spring", ld.forces.JointSpring(joint="S", stiffness=100.0))
    system = m.compile()
    assert system.size == 1.0  # one joint has no extent
    assert "stiffness on S: 100 N/m" in str(ld.equilibrium(system))
