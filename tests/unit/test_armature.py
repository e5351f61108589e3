"""Armature: a rotor that turns with a joint coordinate, against hand calculations and rotors that are bodies."""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np
import pytest

import loopdyn as ld

pytestmark = pytest.mark.jit_off

# Rounding of saddle point systems of a few bodies, relative to the largest entry; measured 1e-14 and below.
TOLERANCE = 1e-11
TREE_FORMULATIONS = ("relative", "graph", "rcr", "partition", "closure", "auto", "momentum")


def pendulum(armature: float | None = None) -> ld.Mechanism:
    """A point mass of 2 kg on a massless rod of 0.5 m, drawn level; gravity 10 m/s^2."""
    m = ld.Mechanism("pendulum", gravity=(0, -10, 0))
    m.add_body("bob", ld.Inertia(2.0, (0.5, 0, 0), np.zeros((3, 3))))
    m.add_joint("A", ld.Revolute(axis=(0, 0, 1)), m.ground, "bob", at=(0, 0, 0), armature=armature)
    return m


def with_armature(m: ld.Mechanism, armature: dict[str, float]) -> ld.Mechanism:
    m = m.model_copy(deep=True)
    for name, value in armature.items():
        m.joints[name] = m.joints[name].model_copy(update={"armature": value})
    return m


def with_rotors(m: ld.Mechanism, armature: dict[str, float]) -> ld.Mechanism:
    """The same by bodies: a rotor on the ground for each, which a coupler turns with the joint."""
    m = m.model_copy(deep=True)
    for name, value in armature.items():
        m.add_body(f"{name} rotor", ld.Inertia(0.0, (0, 0, 0), value * np.eye(3)))
        m.add_joint(f"{name} rotor", ld.Revolute(axis=(0, 0, 1)), m.ground, f"{name} rotor", at=(0, 0, 0))
        m.add_constraint(f"{name} gear", ld.constraints.Coupler(terms={f"{name} rotor": 1.0, name: -1.0}))
    return m


def moving(m: ld.Mechanism) -> tuple[ld.System, ld.State]:
    system = m.compile()
    return system, ld.assemble(system, q={"A": 0.4}, v={"A": 2.0})


def test_a_pendulum_with_armature_by_hand():
    """(m l^2 + G) a = -m g l; T = (m l^2 + G) v^2 / 2; the bearing carries the weight less what falls."""
    system = pendulum(0.3).compile()
    state = system.state(v={"A": 2.0})
    a = -2.0 * 10.0 * 0.5 / (2.0 * 0.25 + 0.3)
    assert ld.tree.open_tree_forward_dynamics(system, state) == pytest.approx([a], rel=1e-14)
    assert ld.tree.energy(system, state).kinetic == pytest.approx(0.5 * 0.8 * 4.0, rel=1e-14)
    assert ld.tree.open_tree_mass_matrix(system, state) == pytest.approx(np.array([[0.8]]), rel=1e-14)
    assert ld.tree.open_tree_inverse_dynamics(system, state, [1.5]) == pytest.approx([0.8 * 1.5 + 10.0], rel=1e-14)
    force = ld.reactions(system, state, [a])["A"]
    assert force["fx"] == pytest.approx(-2.0 * 0.5 * 4.0, rel=1e-13)
    assert force["fy"] == pytest.approx(2.0 * (10.0 + 0.5 * a), rel=1e-13)


def test_a_slide_has_armature_as_a_mass_without_weight():
    m = ld.Mechanism("drop", gravity=(0, -10, 0))
    m.add_body("b", ld.Inertia.sphere(mass=2.0, radius=0.1))
    m.add_joint("S", ld.Prismatic(axis=(0, 1, 0)), m.ground, "b", at=(0, 0, 0), armature=3.0)
    system = m.compile()
    assert ld.tree.open_tree_forward_dynamics(system, system.state()) == pytest.approx([-2.0 * 10.0 / 5.0], rel=1e-14)


def test_what_turns_a_rotor_acts_between_the_bodies_of_its_joint():
    """A carrier of inertia I1 and a wheel of I2 on it, G between them: I1 w1' = -(tau - G a), a = w2' - w1'."""
    m = ld.Mechanism("satellite")
    for name, inertia in (("carrier", 0.7), ("wheel", 0.2)):
        m.add_body(name, ld.Inertia(1.0, (0, 0, 0), inertia * np.eye(3)))
    m.add_joint("C", ld.Revolute(axis=(0, 0, 1)), m.ground, "carrier", at=(0, 0, 0))
    m.add_joint("W", ld.Revolute(axis=(0, 0, 1)), "carrier", "wheel", at=(0, 0, 0), armature=0.5)
    m.add_motor("drive", "W", torque=3.0)
    system = m.compile()
    a = 3.0 / (0.5 + 0.7 * 0.2 / 0.9)  # of the wheel against the carrier
    expected = {"C": -(3.0 - 0.5 * a) / 0.7, "W": a}
    state = system.state()
    found = ld.tree.open_tree_forward_dynamics(system, state)
    assert dict(zip(system.speeds, found, strict=True)) == pytest.approx(expected, rel=1e-13)
    assert ld.reactions(system, state, found).residual < 1e-13


@pytest.mark.parametrize("formulation", ["oracle", *TREE_FORMULATIONS])
def test_every_formulation_has_the_accelerations_of_rotors_that_are_bodies(formulation):
    armature = {"A": 0.3, "B": 0.2}
    system, state = moving(with_armature(ld.library.four_bar(), armature))
    other, there = moving(with_rotors(ld.library.four_bar(), armature))
    expected = dict(zip(other.speeds, ld.accelerations(other, there, "oracle"), strict=True))
    found = dict(zip(system.speeds, ld.accelerations(system, state, formulation), strict=True))
    assert found == pytest.approx({k: expected[k] for k in found}, rel=TOLERANCE)
    assert system.nv == 3


def test_energy_and_reactions_are_those_of_rotors_that_are_bodies():
    """Rotors without mass on the ground load their own bearings with nothing."""
    armature = {"A": 0.3, "B": 0.2}
    system, state = moving(with_armature(ld.library.four_bar(), armature))
    other, there = moving(with_rotors(ld.library.four_bar(), armature))
    assert ld.tree.energy(system, state).kinetic == pytest.approx(ld.tree.energy(other, there).kinetic, rel=1e-13)
    one = ld.reactions(system, state, ld.accelerations(system, state, "oracle"))
    two = ld.reactions(other, there, ld.accelerations(other, there, "oracle"))
    for name in "ABCD":
        assert one[name] == pytest.approx(two[name], abs=1e-10 * np.abs(two.wrench).max())
    assert one.residual < 1e-12


def test_a_joint_with_armature_is_not_cut_if_another_one_can_be():
    for name in "ABCD":
        system = with_armature(ld.library.four_bar(), {name: 0.1}).compile()
        assert name not in system.topology.cuts


def test_a_cut_joint_with_armature_is_refused_in_words():
    m = with_armature(ld.library.four_bar(), {"A": 0.1})
    with pytest.raises(
        ld.errors.ModelError, match=r"joint 'A': has armature and is cut.*Cut a joint of the loop without armature"
    ):
        m.compile(cuts=["A"])
    with pytest.raises(ld.errors.ModelError, match="has armature and is cut"):
        with_armature(ld.library.four_bar(), dict.fromkeys("ABCD", 0.1)).compile()


def test_absolute_coordinates_refuse_armature_in_words():
    system, state = moving(with_armature(ld.library.four_bar(), {"A": 0.1}))
    with pytest.raises(ld.LoopdynError, match="joint 'A' has armature"):
        ld.accelerations(system, state, "absolute")


@pytest.mark.parametrize(
    ("joint", "armature", "words"),
    [
        (ld.Revolute(axis=(0, 0, 1)), -1.0, "'armature' is negative"),
        (ld.Cylindrical(axis=(0, 0, 1)), 1.0, "Give a mapping with: angle, slide"),
        (ld.Free(), 1.0, "has no coordinate 'A' for armature"),
        (ld.Spherical(), {"x": 1.0}, "has no coordinate 'x' for armature"),
    ],
)
def test_armature_that_cannot_be_is_refused_in_words(joint, armature, words):
    m = ld.Mechanism("m")
    m.add_body("b", ld.Inertia.sphere(mass=1.0, radius=0.1))
    m.add_joint("A", joint, m.ground, "b", at=(0, 0, 0), armature=armature)
    with pytest.raises(ld.errors.ModelError, match=words):
        m.compile()


def test_armature_is_in_units_of_the_file_and_survives_it(tmp_path):
    m = ld.Mechanism("m", units={"length": "mm", "mass": "g"})
    m.add_body("b", ld.Inertia.sphere(mass=1000.0, radius=100.0))
    m.add_joint(
        "A", ld.Cylindrical(axis=(0, 0, 1)), m.ground, "b", at=(0, 0, 0), armature={"angle": 2e6, "slide": 50.0}
    )
    file = tmp_path / "m.yaml"
    m.save(file)
    assert ld.load(file).compile().model.armature == pytest.approx([2e-3, 0.05], rel=1e-14)


def test_a_massless_body_is_carried_by_the_armature_of_its_joint():
    """Two hinges on one body, as MJCF has them: the body between them has no mass, and its joint has a rotor."""
    m = ld.Mechanism("wrist")
    m.add_body("between", ld.Inertia.massless())
    m.add_body("hand", ld.Inertia(1.0, (0, 0, 0), np.diag([0.2, 0.3, 0.4])))
    m.add_joint("A", ld.Revolute(axis=(1, 0, 0)), m.ground, "between", at=(0, 0, 0), armature=0.1)
    m.add_joint("B", ld.Revolute(axis=(0, 1, 0)), "between", "hand", at=(0, 0, 0))
    m.add_motor("drive", "A", torque=3.0)
    system = m.compile()
    assert ld.tree.open_tree_forward_dynamics(system, system.state()) == pytest.approx([3.0 / 0.3, 0.0], abs=1e-12)


def test_a_massless_rotor_on_a_gear_by_hand():
    """A rotor without mass, inertia 0.02 about its axis, turned 10 times by a pendulum: 100 * 0.02 reflected."""
    m = pendulum()
    m.add_body("rotor", ld.Inertia(0.0, (0, 0, 0), np.diag([0.01, 0.01, 0.02])))
    m.add_joint("R", ld.Revolute(axis=(0, 0, 1)), m.ground, "rotor", at=(0, 0, 0))
    m.add_constraint("gear", ld.constraints.Coupler(terms={"R": 1.0, "A": -10.0}))
    system = m.compile()
    a = dict(zip(system.speeds, ld.accelerations(system, system.state(), "graph"), strict=True))
    assert a["A"] == pytest.approx(-10.0 / (0.5 + 2.0), rel=1e-12)


def test_a_tendon_over_two_joints_by_hand():
    """Two wheels of inertia 0.2 and 0.5 on the ground, force 3 on length = 2 A - B: accelerations 30 and -6."""
    m = ld.Mechanism("tendon")
    for name, inertia in (("a", 0.2), ("b", 0.5)):
        m.add_body(name, ld.Inertia(1.0, (0, 0, 0), inertia * np.eye(3)))
        m.add_joint(name.upper(), ld.Revolute(axis=(0, 0, 1)), m.ground, name, at=(0, 0, 0))
    m.add_force("t", ld.forces.JointTendon(terms={"A": 2.0, "B": -1.0}, force="5 - 4*length - 2*speed"))
    system = m.compile()
    state = system.state(q={"A": 0.5, "B": 1.5}, v={"A": 1.0, "B": 3.0})  # length -0.5, speed -1
    force = 5.0 + 2.0 + 2.0
    assert ld.tree.open_tree_forward_dynamics(system, state) == pytest.approx(
        [2 * force / 0.2, -force / 0.5], rel=1e-13
    )


@pytest.mark.parametrize("cut", ["C", "D"])
def test_a_constant_tendon_over_two_pins_of_a_four_bar_is_two_motors(cut):
    """Force 3 on 2 A - B: torques 6 on A and -3 on B. The forces around it read pins in the tree and the cut one."""
    tendon, motors = ld.library.four_bar(), ld.library.four_bar()
    tendon.add_force("t", ld.forces.JointTendon(terms={"A": 2.0, "B": -1.0}, force=3.0))
    motors.add_force("a", ld.forces.Motor(joint="A", torque=6.0))
    motors.add_force("b", ld.forces.Motor(joint="B", torque=-3.0))
    for m in (tendon, motors):
        m.add_force("spring", ld.forces.JointSpring(joint="C", stiffness=20.0, rest=0.5))
    expected = ld.assemble(motors.compile(cuts=[cut]))
    system, other = tendon.compile(cuts=[cut]), motors.compile(cuts=[cut])
    assert ld.mobility(system, expected).dof == 1
    a = ld.accelerations(other, expected, "oracle")
    for formulation in ("oracle", "absolute", *TREE_FORMULATIONS):
        found = ld.accelerations(system, expected, formulation)
        assert found == pytest.approx(a, rel=TOLERANCE, abs=TOLERANCE * np.abs(a).max())
    loads = [ld.reactions(s, expected, a)["D"] for s in (system, other)]
    assert loads[0] == pytest.approx(loads[1], rel=1e-9)


def test_a_servo_comes_back_from_mjcf_with_its_control(tmp_path):
    """Read, written, read again: MuJoCo has the same accelerations for both files at the same control."""
    text = """<mujoco><worldbody><body name="a"><joint name="A" axis="0 1 0" armature=".2"/>
    <geom size=".1" pos=".3 0 0"/>
    <body name="b" pos=".5 0 0"><joint name="B" axis="0 0 1"/><geom size=".1" pos=".2 0 0"/></body></body>
    <body name="c"><joint name="C" axis="1 0 0" actuatorfrcrange="-3 3"/><geom size=".1" pos="0 .3 0"/></body>
    </worldbody><tendon><fixed name="both"><joint joint="A" coef=".5"/><joint joint="B" coef="2"/></fixed>
    </tendon><actuator><position name="servo" joint="A" kp="50" kv="2" ctrlrange="-1 1" ctrllimited="true" gear="-2"/>
    <position name="grip" tendon="both" kp="7" kv="1" forcerange="-2 2" forcelimited="true"/>
    <position name="held" joint="C" kp="40" gear="3" forcerange="-9 0.5" forcelimited="true"/></actuator>
    <keyframe><key name="k" qpos=".2 .3 .1" qvel="1 2 3" ctrl=".7 -.4 .3"/></keyframe></mujoco>"""
    file = tmp_path / "m.xml"
    ld.write_mjcf(ld.read_mjcf(text, keyframe="k").mechanism, file)
    again = ld.read_mjcf(file, keyframe="start")
    assert dict(again.mechanism.parameters) == {"ctrl_servo": 0.7, "ctrl_grip": -0.4, "ctrl_held": 0.3}
    found = []
    for model, key in ((mujoco.MjModel.from_xml_string(text), 0), (mujoco.MjModel.from_xml_path(str(file)), 0)):
        data = mujoco.MjData(model)
        mujoco.mj_resetDataKeyframe(model, data, key)
        mujoco.mj_forward(model, data)
        found.append(data.qacc.copy())
    assert found[1] == pytest.approx(found[0], rel=1e-9)  # masses that MuJoCo wants on nothing here; rounding of poses


@pytest.mark.parametrize("formulation", TREE_FORMULATIONS)
@pytest.mark.parametrize("name", ["andrews", "rssr", "stewart_3rrs", "random_mechanism"])
def test_formulations_agree_with_the_dense_oracle_for_armature_on_every_tree_joint(name, formulation):
    """M differs from that without armature by the diagonal alone, and all methods solve with this M."""
    plain = ld.library.turned(ld.library.ALL[name]())
    cuts = list(plain.compile().topology.cuts)
    m = plain.model_copy(deep=True)
    rng = np.random.default_rng(5)
    for joint in m.joints:
        scalar = len(m.joints[joint].speeds) == len(m.joints[joint].coordinates) == 1
        if joint not in cuts and scalar:
            m.joints[joint] = m.joints[joint].model_copy(update={"armature": rng.uniform(0.1, 0.5)})
    system, without = m.compile(cuts=cuts), plain.compile(cuts=cuts)
    state = ld.assemble(system)
    armature = system.model.armature
    assert np.count_nonzero(armature) > 0
    added = ld.terms(system, state).M - ld.terms(without, state).M
    assert added == pytest.approx(np.diag(armature), abs=1e-12)
    expected = ld.accelerations(system, state, "oracle")
    found = ld.accelerations(system, state, formulation)
    assert found == pytest.approx(expected, abs=1e-9 * np.abs(expected).max())  # condition of the closures


def test_locking_a_joint_keeps_the_momentum_of_rotors():
    """Two wheels on one axis, 0.7 and 0.2 kg m^2 with a rotor of 0.5 between them; locking them together.

    The rotor turns with the difference of the speeds: afterwards it stands, and the momentum of the wheels about the
    free axis is kept. Impulse of the lock on the second wheel: its own change of momentum and that of the rotor.
    """
    m = ld.Mechanism("clutch")
    for name, inertia in (("one", 0.7), ("two", 0.2)):
        m.add_body(name, ld.Inertia(1.0, (0, 0, 0), inertia * np.eye(3)))
    m.add_joint("A", ld.Revolute(axis=(0, 0, 1)), m.ground, "one", at=(0, 0, 0))
    m.add_joint("B", ld.Revolute(axis=(0, 0, 1)), "one", "two", at=(0, 0, 0), armature=0.5)
    locked = m.model_copy(deep=True)
    locked.add_driver("lock", "B", 0.0)
    system, other = m.compile(), locked.compile()
    change = ld.analyses.reconnect(system, system.state(v={"A": 1.0, "B": 3.0}), other)
    after = (0.7 * 1.0 + 0.2 * 4.0) / 0.9
    assert dict(zip(other.speeds, change.state.v, strict=True)) == pytest.approx({"A": after, "B": 0.0}, abs=1e-12)
    assert change.impulse.multipliers["lock"] == pytest.approx(0.2 * (after - 4.0) - 0.5 * 3.0, rel=1e-12)


def test_armature_of_mjcf_adds_no_speeds():
    """A gripper with armature on all driven joints has as many speeds as MuJoCo counts."""
    file = Path(__file__).parents[2] / "examples" / "gripper.xml"
    system = ld.read_mjcf(file).compile()
    model = mujoco.MjModel.from_xml_path(str(file))
    assert np.count_nonzero(model.dof_armature) > 1
    assert system.nv == model.nv
    assert np.sort(system.model.armature) == pytest.approx(np.sort(model.dof_armature))
