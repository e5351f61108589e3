"""Reading SDF: frames, joint types, loops; beside hand calculation and, for Cassie, the file's own numbers."""

from __future__ import annotations

import re

import numpy as np
import pytest
from tests.packages import cassie_file

import loopdyn as ld


def model(inner: str, version: str = "1.9") -> str:
    return f'<sdf version="{version}"><model name="m">{inner}</model></sdf>'


def link(name: str, pose: str = "", inside: str = "", attributes: str = "") -> str:
    mass = "<inertial><mass>2</mass><inertia><ixx>.1</ixx><iyy>.2</iyy><izz>.25</izz></inertia></inertial>"
    return f'<link name="{name}"><pose {attributes}>{pose}</pose>{mass}{inside}</link>'


def joint(name: str, kind: str, parent: str, child: str, inside: str = "<axis><xyz>0 0 1</xyz></axis>") -> str:
    return f'<joint name="{name}" type="{kind}"><parent>{parent}</parent><child>{child}</child>{inside}</joint>'


def test_frames_are_resolved_relative_to_what_they_name():
    text = model(
        '<pose>0 0 5 0 0 0</pose><frame name="f" attached_to="a"><pose>0 1 0 0 0 0</pose></frame>'
        + link("a", "1 0 0 0 0 1.5707963267948966")
        + link("b", "0 0 2 0 0 0", attributes='relative_to="f"')
        + link("c", "3 0 0 0 0 90", attributes='degrees="true"')
        + link("d", "0 0 0 0 0 0.7071067811865476 0.7071067811865476", attributes='rotation_format="quat_xyzw"')
    )
    m = ld.read_sdf(text).mechanism
    at = {n: np.array(b.pose.position, float) for n, b in m.bodies.items()}
    assert at["a"] == pytest.approx([1, 0, 5])
    assert at["b"] == pytest.approx([0, 0, 7])  # y of a is -x of the model
    quarter = [np.sqrt(0.5), 0, 0, np.sqrt(0.5)]
    for name in ("a", "b", "c", "d"):
        assert m.bodies[name].pose.rotation.quaternion == pytest.approx(quarter)


def test_a_pose_that_depends_on_itself_is_an_error():
    text = model(link("a", "1 0 0 0 0 0", attributes='relative_to="b"') + link("b", "", attributes='relative_to="a"'))
    text = text.replace('relative_to="a"></pose>', 'relative_to="a">0 0 0 0 0 0</pose>')
    with pytest.raises(ld.errors.ModelError, match="depends on itself"):
        ld.read_sdf(text)


@pytest.mark.parametrize(
    ("version", "axis", "expected"),
    [
        ("1.9", "<xyz>1 0 0</xyz>", [0, 1, 0]),  # in the joint frame, which is that of the child
        ("1.9", '<xyz expressed_in="__model__">1 0 0</xyz>', [1, 0, 0]),
        ("1.9", '<xyz expressed_in="base">0 0 1</xyz>', [0, 0, 1]),
        ("1.6", "<xyz>1 0 0</xyz><use_parent_model_frame>1</use_parent_model_frame>", [1, 0, 0]),
        ("1.4", "<xyz>1 0 0</xyz>", [1, 0, 0]),
    ],
)
def test_axes_are_in_the_frame_that_the_version_says(version, axis, expected):
    turned = "0 0 0 0 0 1.5707963267948966"
    inside = link("base") + link("arm", turned) + joint("J", "revolute", "base", "arm", f"<axis>{axis}</axis>")
    m = ld.read_sdf(model(inside, version)).mechanism
    system = m.compile()
    J = ld.tree.open_tree_body_jacobian(system, "arm", system.state())[:3, system.speeds.index("J")]
    assert pytest.approx(expected, abs=1e-12) == J


def test_every_joint_type():
    kinds = {
        "revolute": "revolute", "continuous": "revolute", "prismatic": "prismatic", "ball": "spherical",
        "universal": "universal", "fixed": "weld", "screw": "helical",
    }  # fmt: skip
    two = "<axis><xyz>1 0 0</xyz></axis><axis2><xyz>0 1 0</xyz></axis2><screw_thread_pitch>0.02</screw_thread_pitch>"
    parts = [link(k) + joint(f"J_{k}", k, "world", k, two) for k in kinds]
    m = ld.read_sdf(model("".join(parts))).mechanism
    assert {k: m.joints[f"J_{k}"].type for k in kinds} == kinds
    assert m.joints["J_screw"].pitch == pytest.approx(0.02 / (2 * np.pi))
    m.compile()


def test_the_pose_of_a_nested_model_that_depends_on_a_link_inside_it_is_an_error():
    nested = '<model name="n"><pose relative_to="A">0 0 0 0 0 0</pose>' + link("b") + "</model>"
    with pytest.raises(ld.errors.ModelError, match="its pose depends on itself"):
        ld.read_sdf(model(link("a") + nested + joint("A", "revolute", "a", "n::b")))


def test_limits_of_the_largest_float_are_none():
    """As Gazebo writes them."""
    limit = "<axis><xyz>0 0 1</xyz><limit><lower>{}</lower><upper>{}</upper><effort>{}</effort></limit></axis>"
    m = ld.read_sdf(
        model(
            link("a")
            + link("b")
            + joint("A", "revolute", "world", "a", limit.format("-1.79769e+308", "1.79769e+308", "1.79769e+308"))
            + joint("B", "revolute", "a", "b", limit.format("-1.79769e+308", "2", "inf"))
        )
    )
    assert m.mechanism.joints["A"].limits is None
    assert m.mechanism.joints["B"].limits == (-1e16, 2.0)
    assert not any("effort" in line for line in m.report.left_out)


def test_before_version_1_7_a_joint_may_have_the_name_of_a_link():
    inside = link("a") + link("b", "1 0 0 0 0 0") + joint("A", "revolute", "world", "a")
    inside += joint("b", "revolute", "a", "b")
    found = ld.read_sdf(model(inside, "1.6"))
    assert list(found.mechanism.joints) == ["A", "b_joint"]
    assert "joint 'b_joint' has the name of a link, without '_joint', in the file" in found.report.changed
    assert found.mechanism.compile().nv == 2
    with pytest.raises(ld.errors.ModelError, match="two elements 'b'"):
        ld.read_sdf(model(inside, "1.7"))


def test_a_joint_to_an_included_model_says_that_it_is_not_read():
    text = model("<include><uri>model://c</uri></include>" + link("a") + joint("A", "revolute", "a", "c::base"))
    with pytest.raises(
        ld.errors.ModelError, match=r"no link 'c::base' for its child. Models of other files \(<include>\)"
    ):
        ld.read_sdf(text)


def test_loops_are_found_and_nothing_is_declared():
    ring = link("a") + link("b", "1 0 0 0 0 0") + link("c", "1 1 0 0 0 0")
    ring += joint("1", "revolute", "world", "a") + joint("2", "revolute", "a", "b") + joint("3", "revolute", "b", "c")
    found = ld.read_sdf(model(ring + joint("4", "revolute", "c", "world")))
    assert found.loops == ("4",)
    assert len(found.mechanism.compile().topology.loops) == 1


def test_springs_dampers_mimics_and_links_without_weight():
    axis = "<axis><xyz>0 1 0</xyz>{}</axis>"
    spring = "<damping>0.3</damping><spring_stiffness>5</spring_stiffness><spring_reference>0.2</spring_reference>"
    spring = f"<dynamics>{spring}</dynamics>"
    mimic = '<mimic joint="A"><multiplier>2</multiplier><offset>0.1</offset><reference>0.3</reference></mimic>'
    text = model(
        link("a")
        + link("b", inside="<gravity>false</gravity>")
        + joint("A", "revolute", "world", "a", axis.format(spring))
        + joint("B", "revolute", "world", "b", axis.format(mimic))
    )
    m = ld.read_sdf(text).mechanism
    assert (m.forces["A spring"].stiffness, m.forces["A spring"].rest) == (5.0, 0.2)
    assert m.constraints["B mimic"].terms == {"B": 1.0, "A": -2.0}
    assert m.constraints["B mimic"].offset == pytest.approx(0.1 - 2 * 0.3)
    assert m.forces["b without gravity"].force == pytest.approx((0, 0, 2 * 9.8))


def test_a_model_without_a_joint_to_the_world_floats_and_a_static_one_stands():
    pair = link("a") + link("b") + joint("J", "revolute", "a", "b")
    assert ld.read_sdf(model(pair)).mechanism.joints["a base"].type == "free"
    found = ld.read_sdf(model("<static>true</static>" + pair))
    assert found.mechanism.joints["a base"].type == "weld"
    system = found.mechanism.compile()
    assert ld.mobility(system, system.state()).dof == 0


@pytest.mark.parametrize(
    ("inside", "said"),
    [
        (link("a") + joint("J", "hinge", "world", "a"), "joints of type 'hinge' are not known"),
        (link("a") + joint("J", "revolute", "world", "arm"), "there is no link 'arm' for its child"),
        (link("a") + joint("J", "revolute", "world", "a", ""), "has no <axis>"),
        (link("a") + joint("J", "revolute", "world", "a", "<axis><xyz>0 0 0</xyz></axis>"), "has length zero"),
        (link("a") + joint("J", "revolute", "world", "a", "<axis><xyz>0 x 1</xyz></axis>"), "in place of 3 numbers"),
        (link("a", "1 2 3"), "in place of 6 numbers"),
        (link("a") + link("a"), "there are two elements 'a'"),
        (link("a") + joint("J", "screw", "world", "a"), "has no <screw_thread_pitch>"),
        (link("a", "0 0 0 0 0 nan"), "in place of 6 numbers"),
    ],
)
def test_errors_name_the_element_and_its_line(inside, said):
    with pytest.raises(ld.errors.ModelError, match=said) as caught:
        ld.read_sdf(model("\n" + inside))
    assert str(caught.value).startswith(("text:2:", "2 problems"))


def test_impossible_inertia_is_found_when_compiling_with_its_line():
    text = model("\n\n" + link("a").replace("<izz>.25", "<izz>2.5"))
    with pytest.raises(ld.errors.ModelError, match=r"text:3: body 'a': impossible inertia"):
        ld.read_sdf(text).mechanism.compile()


def test_of_several_models_one_must_be_chosen():
    text = f'<sdf version="1.7"><world name="w"><gravity>0 0 -1.6</gravity><model name="a">{link("x")}</model>'
    text += f'<model name="b">{link("y")}</model></world></sdf>'
    with pytest.raises(ld.errors.ModelError, match="2 models that can move: a, b"):
        ld.read_sdf(text)
    m = ld.read_sdf(text, model="b").mechanism
    assert list(m.bodies) == ["y"]
    assert m.gravity == (0.0, 0.0, -1.6)


def world(*inside: str) -> str:
    return f'<sdf version="1.10"><world name="w">{"".join(inside)}</world></sdf>'


FLOOR = f'<model name="floor"><static>true</static><pose>0 0 -1 0 0 0</pose>{link("plate", "0 0 0.5 0 0 0")}</model>'


def test_static_models_beside_the_one_wanted_are_ground_and_said():
    found = ld.read_sdf(world(FLOOR, f'<model name="arm">{link("a")}</model>'))
    assert list(found.mechanism.bodies) == ["a"]
    assert found.mechanism.name == "arm"
    assert "1 other static models, which count as ground: floor" in found.report.left_out
    assert list(ld.read_sdf(world(FLOOR)).mechanism.bodies) == ["plate"]  # alone it is what is wanted


def test_a_joint_of_the_world_holds_the_model_to_a_static_one():
    """The pin is 0.2 above the plate, which is drawn at -1 + 0.5: at -0.3 in the world."""
    pin = joint("P", "revolute", "floor::plate", "arm::a").replace(
        "<parent>", '<pose relative_to="floor::plate">0 0 0.2 0 0 0</pose><parent>'
    )
    found = ld.read_sdf(world(FLOOR, f'<model name="arm">{link("a")}</model>', pin))
    P = found.mechanism.joints["P"]
    assert (P.type, P.parent, P.child) == ("revolute", "ground", "a")
    assert P.parent_frame.position == pytest.approx((0, 0, -0.3))
    free = f'<model name="other">{link("b")}</model>'
    loose = pin.replace("floor::plate</parent>", "other::b</parent>")
    with pytest.raises(ld.errors.ModelError, match="joint 'P': there is no link 'other::b' for its parent"):
        ld.read_sdf(world(FLOOR, f'<model name="arm">{link("a")}</model>', free, loose), model="arm")


NESTED = (
    '<pose>1 0 0 0 0 0</pose>'
    + link("base")
    + '<model name="arm" placement_frame="flange"><pose relative_to="base">0 0 2 0 0 1.5707963267948966</pose>'
    + '<frame name="flange"><pose>0 0 -1 0 0 0</pose></frame>'
    + link("upper", "3 0 0 0 0 0")
    + link("lower", "5 0 0 0 0 0")
    + joint("elbow", "revolute", "upper", "lower")
    + "</model>"
    + joint("fix", "fixed", "world", "base", "")
    + joint("shoulder", "revolute", "base", "arm::upper")
)  # fmt: skip


def test_nested_models_are_read_with_their_frames_and_names():
    """By hand: the flange is put to (1, 0, 2), turned by 90 degrees about z; the model frame is 1 above it, so that
    3 and 5 along its x are y = 3 and 5 at height 3 in the world.
    """
    found = ld.read_sdf(model(NESTED))
    m = found.mechanism
    at = {n: b.pose.position for n, b in m.bodies.items()}
    assert at["arm/upper"] == pytest.approx((1, 3, 3))
    assert at["arm/lower"] == pytest.approx((1, 5, 3))
    assert {n: (j.parent, j.child) for n, j in m.joints.items()} == {
        "fix": ("ground", "base"),
        "shoulder": ("base", "arm/upper"),
        "arm/elbow": ("arm/upper", "arm/lower"),
    }
    assert found.report.left_out == []
    system = m.compile()
    assert ld.mobility(system, system.state()).dof == 2


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("arm::upper</child>", "arm::uper</child>"), "there is no link 'arm::uper' for its child.*arm::upper"),
        (('placement_frame="flange"', 'placement_frame="flanch"'), "there is no link, joint, frame or model 'flanch'"),
        (('relative_to="base"', 'relative_to="arm"'), "model 'arm': its pose depends on itself"),
        (('name="base"', 'name="b::a"'), "'b::a' cannot be the name"),
        (('name="lower"', 'name="upper"'), "there are two elements 'upper'"),
    ],
)
def test_errors_in_nested_models_name_the_element(change, said):
    with pytest.raises(ld.errors.ModelError, match=said):
        ld.read_sdf(model(NESTED.replace(*change)))


def test_included_models_and_what_nobody_asked_for_are_said():
    text = world(
        "<include><uri>model://sun</uri></include><gravity>0 0 -9.81</gravity><wind/>",
        f'<model name="m"><self_collide>1</self_collide>{link("a", inside="<kinematic>1</kinematic>")}',
        joint("J", "revolute", "world", "a", "<axis><xyz>0 0 1</xyz><initial_position>1</initial_position></axis>"),
        "</model>",
    ).replace('<link name="a">', '<link name="a" drake:x="1">')
    text = text.replace("<sdf ", '<sdf xmlns:drake="d" ')
    left_out = ld.read_sdf(text).report.left_out
    for said in (
        "included model 'model://sun': other files are not read",
        "1 <wind> of <world>: w",
        "1 <self_collide> of <model>: m",
        "1 <kinematic> of <link>: a",
        "1 <initial_position> of <axis>: J",
        "1 attribute 'drake:x' of <link>: a",
    ):
        assert said in left_out
    assert len(left_out) == 6


GEARS = (
    link("frame") + link("one") + link("two", "0.3 0 0 0 0 0") + joint("F", "fixed", "world", "frame", "")
    + joint("A", "revolute", "frame", "one") + joint("B", "revolute", "frame", "two", "<axis><xyz>0 0 -1</xyz></axis>")
    + joint("gear", "gearbox", "one", "two", "<gearbox_reference_body>frame</gearbox_reference_body>"
            "<gearbox_ratio>2.5</gearbox_ratio><axis><xyz>0 0 1</xyz></axis><axis2><xyz>0 0 1</xyz></axis2>")
)  # fmt: skip


def test_a_gearbox_is_a_coupler_of_the_hinges_it_couples():
    """SDF: theta2 = -ratio theta1, both about z here; hinge B turns about -z, so that B = 2.5 A."""
    found = ld.read_sdf(model(GEARS))
    system = found.mechanism.compile()
    state = ld.assemble(system, q={"A": 0.4}, v={"A": 1.0})
    assert state.q[system.coordinates.index("B")] == pytest.approx(1.0, abs=1e-12)  # rounding
    assert ld.mobility(system, state).dof == 1


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("<gearbox_reference_body>frame</gearbox_reference_body>", ""), "there is no link '' for its reference"),
        (
            ("<axis2><xyz>0 0 1", "<axis2><xyz>0 1 0"),
            "no hinges about its <axis2> .* its child 'two'",
        ),
        (
            (joint("A", "revolute", "frame", "one"), ""),
            "no hinges about its <axis> .* its parent 'one'",
        ),
    ],
)
def test_a_gearbox_that_couples_no_hinges_is_refused(change, said):
    with pytest.raises(ld.errors.ModelError, match=said):
        ld.read_sdf(model(GEARS.replace(*change)))


def test_revolute2_is_a_universal_joint_with_the_limits_of_both_axes():
    """A wheel: steered about z of the parent, rolling about y of the child."""
    limit = "<limit><lower>-0.5</lower><upper>0.5</upper></limit>"
    axes = f"<axis><xyz>0 0 1</xyz>{limit}</axis><axis2><xyz>0 1 0</xyz><limit><lower>-inf</lower></limit></axis2>"
    found = ld.read_sdf(model(link("wheel", "1 0 0 0 0 0") + joint("W", "revolute2", "world", "wheel", axes)))
    m = found.mechanism
    assert m.joints["W"].limits == {"1": (-0.5, 0.5)}
    assert any("of type revolute2 is a universal joint" in line for line in found.report.changed)
    system = m.compile()
    J = ld.tree.open_tree_body_jacobian(system, "wheel", system.state({"W.1": np.pi / 2}))[:3]
    assert J[:, system.speeds.index("W.1")] == pytest.approx([0, 0, 1], abs=1e-12)
    assert J[:, system.speeds.index("W.2")] == pytest.approx([-1, 0, 0], abs=1e-12)  # y of the child, turned by 90 deg


def test_frames_that_are_drawn_apart_from_their_joint_get_a_note():
    frames = '<frame name="p" attached_to="a"><pose>0 0.4 0.3 0 0 0</pose></frame>'
    frames += '<frame name="c" attached_to="b"><pose>0 0 0 0 0 1</pose></frame>'
    both = link("a") + link("b") + frames
    notes = ld.read_sdf(model(both + joint("J", "revolute", "p", "c"))).report.notes
    assert notes == ["joint 'J': its parent frame 'p' is drawn 0.5 m and 0 rad from where the joint is; "
                     "SDF joins them as drawn"]  # fmt: skip
    agree = both.replace("0 0.4 0.3 0 0 0", "0 0 0 0 0 0.3")  # turned about the hinge only
    assert ld.read_sdf(model(agree + joint("J", "revolute", "p", "c"))).report.notes == []
    assert len(ld.read_sdf(model(agree + joint("J", "fixed", "p", "c", ""))).report.notes) == 1


def test_a_mimic_follows_an_axis_of_a_joint_in_a_nested_model():
    mimic = '<axis><xyz>0 0 1</xyz><mimic joint="arm::U" axis="axis2"><multiplier>2</multiplier></mimic></axis>'
    axes = "<axis><xyz>1 0 0</xyz></axis><axis2><xyz>0 1 0</xyz></axis2>"
    arm = f'<model name="arm">{link("a")}{joint("U", "universal", "world", "a", axes)}</model>'
    m = ld.read_sdf(model(arm + link("b") + joint("J", "revolute", "world", "b", mimic))).mechanism
    assert m.constraints["J mimic"].terms == {"J": 1.0, "arm/U.2": -2.0}


def test_a_long_chain_of_frames_is_resolved():
    chain = "".join(
        f'<frame name="f{k}" attached_to="f{k - 1}"><pose>0.01 0 0 0 0 0</pose></frame>' for k in range(1, 3000)
    )
    inside = link("f0") + chain + link("z", "0 1 0 0 0 0", attributes='relative_to="f2999"')
    assert ld.read_sdf(model(inside)).mechanism.bodies["z"].pose.position == pytest.approx((29.99, 1, 0))


def test_cassie_has_its_loops_its_mass_and_its_freedoms():
    """Mass: the sum of what the file says. Freedoms: 6 of the pelvis and 6 of each leg.

    The tree of a leg has 13: ten hinges and the ball of the achilles rod. That rod's hinge takes five, the ball at the
    end of the plantar rod three, of which one (across the plane of its four-bar of parallel hinges) is taken already.
    """
    found = ld.read_sdf(cassie_file())
    text = (cassie_file()).read_text()
    masses = sum(float(x) for x in re.findall(r"<mass>(.*?)</mass>", text))
    assert sum(b.mass for b in found.mechanism.bodies.values()) == pytest.approx(masses)
    assert len(found.loops) == 4
    system = found.mechanism.compile()
    assert ld.mobility(system, system.state()).dof == 18
    assert "23 visual shapes" in found.report.left_out
    assert any("drawn outside their limits" in line for line in found.report.notes)
