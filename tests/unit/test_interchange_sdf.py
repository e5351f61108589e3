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
    with pytest.raises(ld.ModelError, match="depends on itself"):
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
    J = ld.tree.body_jacobian(system, system.state(), "arm")[:3, system.speeds.index("J")]
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
    with pytest.raises(ld.ModelError, match=said) as caught:
        ld.read_sdf(model("\n" + inside))
    assert str(caught.value).startswith(("text:2:", "2 problems"))


def test_impossible_inertia_is_found_when_compiling_with_its_line():
    text = model("\n\n" + link("a").replace("<izz>.25", "<izz>2.5"))
    with pytest.raises(ld.ModelError, match=r"text:3: body 'a': impossible inertia"):
        ld.read_sdf(text).mechanism.compile()


def test_of_several_models_one_must_be_chosen():
    text = f'<sdf version="1.7"><world name="w"><gravity>0 0 -1.6</gravity><model name="a">{link("x")}</model>'
    text += f'<model name="b">{link("y")}</model></world></sdf>'
    with pytest.raises(ld.ModelError, match="2 models: a, b"):
        ld.read_sdf(text)
    m = ld.read_sdf(text, model="b").mechanism
    assert list(m.bodies) == ["y"]
    assert m.gravity == (0.0, 0.0, -1.6)


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
