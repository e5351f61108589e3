"""Reading MJCF: every element beside MuJoCo itself, the report, and files that are wrong or hostile."""

from __future__ import annotations

import sys

import mujoco
import numpy as np
import pytest
from tests.external.mujoco_loops import exact_accelerations

import loopdyn as ld

# Rounding of two programs, relative to the largest entry; measured 1e-13 and below.
TOLERANCE = 1e-10

TREE = """
<mujoco model="everything">
  <option gravity="0.3 -0.4 -9.81"><flag contact="disable" limit="disable"/></option>
  <compiler angle="degree"/>
  <default><joint armature="0"/><geom density="800"/></default>
  <worldbody>
    <site name="wall" pos="0.5 0.1 1.2"/>
    <body name="arm" pos="0.1 0.2 0.9" euler="10 20 30">
      <joint name="shoulder" axis="1 2 0.5" pos="0.02 0 0.01" ref="25" stiffness="3" springref="-15" damping="0.2"
             armature="0.3"/>
      <geom type="box" size=".1 .05 .2" pos="0 0.1 0.1"/>
      <body name="hand" pos="0.1 0 0.4" quat="0.9 0.1 0.2 0.3">
        <joint name="pan" axis="0 0 1" damping="0.1"/>
        <joint name="reach" type="slide" axis="0.2 1 0" ref="0.1" stiffness="40" springref="0.05" armature="0.5"/>
        <joint name="tilt" axis="1 0 0" pos="0 0 0.05"/>
        <geom type="capsule" size=".03" fromto="0 0 0 0.2 0.1 0.1"/>
        <site name="grip" pos="0.1 0.05 0.02" euler="30 0 50"/>
        <body name="ball" pos="0.2 0.1 0.1">
          <joint name="wrist" type="ball" damping="0.05" stiffness="0.7"/>
          <geom type="ellipsoid" size=".04 .05 .06" pos="0.03 0 0.02"/>
        </body>
        <body name="cap" pos="0 0 -0.1"><geom type="sphere" size=".03"/></body>
      </body>
    </body>
    <body name="drone" pos="1 0 2" gravcomp="0.6">
      <freejoint name="fly"/>
      <geom type="box" size=".2 .1 .05" pos="0.02 0.03 0"/>
      <site name="hook" pos="0 0 -0.05"/>
    </body>
  </worldbody>
  <tendon>
    <spatial name="rubber" stiffness="12" damping="0.4" springlength="0.3">
      <site site="wall"/><site site="grip"/>
    </spatial>
    <spatial name="rope"><site site="grip"/><site site="hook"/></spatial>
    <fixed name="sum"><joint joint="pan" coef="0.5"/><joint joint="tilt" coef="-2"/></fixed>
  </tendon>
  <actuator>
    <motor name="push" joint="shoulder" gear="3" ctrlrange="-1 1" ctrllimited="true"/>
    <position name="servo" joint="reach" kp="20" kv="2" gear="1.5"/>
    <velocity name="spin" joint="pan" kv="0.7"/>
    <general name="limited" joint="tilt" gaintype="affine" gainprm="1 0.3 0.2" biastype="affine" biasprm="0.1 -1 -0.5"
             forcerange="-0.2 0.2" forcelimited="true"/>
    <motor name="winch" tendon="rope" gear="2"/>
    <motor name="both" tendon="sum"/>
    <motor name="jet" site="hook" gear="1 0 2 0 0.1 0"/>
  </actuator>
  <keyframe>
    <key name="k" qpos="0.2 0.4 0.15 -0.6 0.8 0.2 -0.3 0.4 1.1 0.1 1.9 0.7 0.1 -0.5 0.3"
         qvel="1 -2 0.5 1.5 0.3 -0.4 0.6 0.2 -0.1 0.4 0.9 -0.7 0.5" ctrl="1.7 0.3 -0.5 2 0.8 0.4 1.1"/>
  </keyframe>
</mujoco>
"""

LOOPS = """
<mujoco>
  <option gravity="0.3 -9 -2"/>
  <default><geom type="capsule" size=".02" contype="0" conaffinity="0"/></default>
  <worldbody>
    <body name="crank"><joint name="A" axis="0 0 1"/><geom fromto="0 0 0 0 .5 0"/></body>
    <body name="rocker" pos="1.1 0 0"><joint name="D" axis="0 0 1"/><geom fromto="0 0 0 .1 .9 0"/>
      <body name="coupler" pos="0.1 0.9 0"><joint name="C" axis="0 0 1"/><geom fromto="0 0 0 -1.2 -.4 0"/></body>
    </body>
    <body name="g1" pos="0 0 1"><joint name="G1" axis="0 0 1" ref="17"/><geom fromto="0 0 0 .1 0 0"/></body>
    <body name="g2" pos="0 0 2"><joint name="G2" axis="0 1 1" damping="0.1"/><geom fromto="0 0 0 0 .2 0"/></body>
    <body name="g3" pos="0 0 3"><joint name="G3" type="slide" axis="1 1 0"/><geom fromto="0 0 0 0 .2 0"/></body>
    <body name="kite" pos="2 1 0" euler="10 20 30"><freejoint/><geom fromto="0 0 0 0 .2 0.1"/></body>
    <body name="tail" pos="2.1 1.3 0"><freejoint/><geom fromto="0 0 0 0 .2 0.1"/></body>
  </worldbody>
  <equality>
    {pin}
    <joint name="cam" joint1="G1" joint2="G2" polycoef="0.1 0.5 0.3 -0.2 0.05"/>
    <joint name="rack" joint1="G3" joint2="G2" polycoef="0.05 0.2 0 0 0"/>
    <weld name="glue" body1="kite" body2="tail" relpose="0.1 0.2 0.3 0.8 0.1 0.2 0.3" anchor="0.02 0.03 0.04"/>
  </equality>
</mujoco>
"""
ONE = '<connect name="pin" body1="coupler" body2="crank" anchor="-1.2 -.4 0"/>'
TWO = ONE + '<connect name="pin2" body1="crank" body2="coupler" anchor="0 0.5 0.1"/>'


def test_everything_on_a_tree_has_mujocos_accelerations():
    """Joints with anchors and references, chains, springs, dampers, armature, gravcomp, tendons, actuators."""
    model = mujoco.MjModel.from_xml_string(TREE)
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    data.qpos[4:8] = [1, 0, 0, 0]  # where the spring of the ball joint is at rest
    text = TREE.replace("0.8 0.2 -0.3 0.4 1.1", "1 0 0 0 1.1")
    mujoco.mj_normalizeQuat(model, data.qpos)
    mujoco.mj_forward(model, data)
    found = ld.read_mjcf(text, keyframe="k")
    assert not [x for x in found.report.left_out if "shapes" not in x and x != "contact: flag.contact"]
    system = found.compile()
    state = found.from_mujoco(system, data.qpos, data.qvel)
    a = found.qacc(system, ld.accelerations(system, state), state)
    assert np.abs(a - data.qacc).max() < TOLERANCE * np.abs(data.qacc).max()


def test_the_spring_of_a_ball_joint_is_mujocos_away_from_its_rest_too():
    model = mujoco.MjModel.from_xml_string(TREE)
    data = mujoco.MjData(model)
    rng = np.random.default_rng(2)
    mujoco.mj_integratePos(model, data.qpos, rng.uniform(-1, 1, model.nv), 0.7)
    data.qvel[:] = rng.uniform(-1, 1, model.nv)
    mujoco.mj_forward(model, data)
    found = ld.read_mjcf(TREE)
    system = found.compile()
    state = found.from_mujoco(system, data.qpos, data.qvel)
    a = found.qacc(system, ld.accelerations(system, state), state)
    assert np.abs(a - data.qacc).max() < TOLERANCE * np.abs(data.qacc).max()


def test_states_map_there_and_back():
    found = ld.read_mjcf(TREE)
    system = found.compile()
    rng = np.random.default_rng(4)
    model = mujoco.MjModel.from_xml_string(TREE)
    qpos, qvel = model.qpos0.copy(), rng.uniform(-1, 1, model.nv)
    mujoco.mj_integratePos(model, qpos, rng.uniform(-1, 1, model.nv), 0.5)
    again = found.to_mujoco(system, found.from_mujoco(system, qpos, qvel))
    assert again[0] == pytest.approx(qpos, abs=1e-15)
    assert again[1] == pytest.approx(qvel, abs=1e-15)


def test_poses_of_all_bodies_are_mujocos():
    model = mujoco.MjModel.from_xml_string(TREE)
    data = mujoco.MjData(model)
    mujoco.mj_integratePos(model, data.qpos, np.linspace(-0.5, 0.7, model.nv), 1.0)
    mujoco.mj_kinematics(model, data)
    found = ld.read_mjcf(TREE)
    system = found.compile()
    motion = ld.tree.body_motion(system, found.from_mujoco(system, data.qpos))
    for b in range(1, model.nbody):
        k = motion.bodies.index(model.body(b).name)
        assert motion.position[k] == pytest.approx(data.xpos[b], abs=1e-14)
        assert motion.rotation[k].ravel() == pytest.approx(data.xmat[b], abs=1e-14)


@pytest.mark.parametrize("pin", [ONE, TWO], ids=["ball", "hinge"])
def test_equalities_have_the_accelerations_of_mujocos_own_rows(pin):
    text = LOOPS.format(pin=pin)
    found = ld.read_mjcf(text)
    system = found.compile()
    assert found.mechanism.joints["pin"].type == ("spherical" if pin == ONE else "revolute")
    state = ld.assemble(system, q={"A": 0.3, "G2": 0.4}, v={"A": 2.0, "G2": 1.5})
    qpos, qvel = found.to_mujoco(system, state)
    model = mujoco.MjModel.from_xml_string(text)
    expected, gap, slip = exact_accelerations(model, qpos, qvel)
    assert gap < 1e-9
    assert slip < 1e-9
    a = found.qacc(system, ld.accelerations(system, state), state)
    assert np.abs(a - expected).max() < TOLERANCE * np.abs(expected).max()


def test_a_hinge_of_two_connects_turns_through_zero_where_it_was_drawn():
    found = ld.read_mjcf(LOOPS.format(pin=TWO))
    system = found.compile()
    assert system.joints["pin"].q_reference == pytest.approx([0.0], abs=1e-12)
    assert "the connects 'pin' and 'pin2' are one hinge, 'pin'" in "\n".join(found.report.changed)


def test_a_keyframe_gives_pose_and_speeds():
    found = ld.read_mjcf(TREE, keyframe="k")
    system = found.mechanism.compile()
    state = ld.assemble(system)
    assert state.q[system.coordinates.index("shoulder")] == pytest.approx(0.2)
    assert state.v[system.speeds.index("reach")] == pytest.approx(0.5)
    assert found.mechanism.parameters["ctrl_servo"] == 0.3


def test_an_unknown_keyframe_is_an_error_that_names_those_there_are():
    with pytest.raises(ld.errors.ModelError, match=r"no keyframe 'start'.*Known: k"):
        ld.read_mjcf(TREE, keyframe="start")


def test_the_report_names_what_is_left_out():
    text = """<mujoco><worldbody><geom type="plane" size="1 1 1"/><body name="b">
      <joint name="j" range="-10 10" limited="true" frictionloss="0.1"/>
      <geom size=".1"/><site name="s"/></body></worldbody>
      <contact><exclude body1="world" body2="b"/></contact>
      <sensor><gyro site="s"/></sensor><actuator><general name="slow" joint="j" dyntype="filter" dynprm="1"/></actuator>
      <equality><joint name="off" joint1="j" active="false"/></equality></mujoco>"""
    report = str(ld.read_mjcf(text).report)
    for said in ("contact: <contact>", "sensors: <sensor>", "2 shapes", "actuator 'slow': it has a state", "'off'"):
        assert said in report
    for said in (
        "dry friction is smooth about zero speed (joint_friction): j",
        "ranges of joints are soft in MuJoCo (solreflimit, solimplimit, margin); here they are rigid stops",
    ):
        assert said in report


# --------------------------------------------------------------------------------------------------- wrong files


def test_without_mujoco_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(ld.LoopdynError, match=r"pip install 'loopdyn\[mjcf\]'"):
        ld.read_mjcf("<mujoco/>")


def test_what_mujoco_refuses_is_an_error_with_its_line():
    text = "<mujoco>\n<worldbody>\n<body>\n<joint axis='0 0 0'/><geom size='.1'/></body></worldbody></mujoco>"
    with pytest.raises(ld.errors.ModelError, match=r"text:4: MJCF: MuJoCo refuses the model: .*axis"):
        ld.read_mjcf(text)


def test_a_missing_mesh_matters_only_where_inertia_follows_from_it(tmp_path):
    text = """<mujoco><asset><mesh name="m" file="m.stl"/></asset><worldbody><body name="b"><joint name="j"/>{inertial}
      <geom type="mesh" mesh="m"/></body></worldbody></mujoco>"""
    file = tmp_path / "m.xml"
    file.write_text(text.format(inertial='<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>'))
    assert "1 meshes, whose file is missing: m.stl" in ld.read_mjcf(file).report.left_out
    file.write_text(text.format(inertial=""))
    with pytest.raises(ld.errors.ModelError, match=r"m.xml:2: body 'b': its inertia follows from the mesh 'm.stl'"):
        ld.read_mjcf(file)


def test_a_mesh_outside_the_folder_is_left_out_where_no_inertia_follows_from_it(tmp_path):
    """Public robots keep meshes in folders beside that of the model (../meshes); their bodies have an <inertial>."""
    text = """<mujoco><compiler meshdir="../meshes"/><asset><mesh name="m" file="m.stl"/></asset><worldbody>
      <body name="b"><joint name="j"/>{inertial}<geom type="mesh" mesh="m"/></body></worldbody></mujoco>"""
    whole = text.format(inertial='<inertial pos="0 0 0" mass="2" diaginertia="1 1 1"/>')
    (tmp_path / "models").mkdir()
    file = tmp_path / "models" / "m.xml"
    file.write_text(whole)
    with pytest.warns(ld.LoopdynWarning, match=r"1 meshes, whose file is outside the folder of the model: m.stl"):
        assert ld.load(file).bodies["b"].mass == 2.0
    given_as_text = ld.read_mjcf(whole)
    assert any("whose file is not read, since the model was given as text" in x for x in given_as_text.report.left_out)
    file.write_text(text.format(inertial=""))
    expected = (
        r"mesh 'm.stl', whose file is outside the folder of the model. Give a 'folder' .* Or give the body an <in"
    )
    with pytest.raises(ld.errors.ModelError, match=expected):
        ld.read_mjcf(file)
    with pytest.raises(ld.errors.ModelError, match=r"mesh 'm.stl', whose file is missing"):
        ld.read_mjcf(file, folder=tmp_path)


def test_a_missing_mesh_inside_a_frame_matters_as_much(tmp_path):
    file = tmp_path / "m.xml"
    file.write_text("""<mujoco><asset><mesh name="m" file="m.stl"/></asset><worldbody><body name="b"><joint name="j"/>
      <geom size=".1"/><frame><geom type="mesh" mesh="m"/></frame></body></worldbody></mujoco>""")
    with pytest.raises(ld.errors.ModelError, match="body 'b': its inertia follows from the mesh"):
        ld.read_mjcf(file)


def test_copies_without_end_are_refused():
    inner = '<replicate count="1000" offset="1 0 0"><body><joint/><geom size=".1"/></body></replicate>'
    text = f'<mujoco><worldbody><replicate count="1000" offset="0 1 0">{inner}</replicate></worldbody></mujoco>'
    with pytest.raises(ld.errors.ModelError, match="it makes 1000000 copies"):
        ld.read_mjcf(text)


def test_includes_and_meshes_are_read_from_the_folder_of_the_model_only(tmp_path):
    inner = tmp_path / "models"
    (inner / "parts").mkdir(parents=True)
    body = '<mujocoinclude><body name="b"><joint name="j"/><geom size=".1"/></body></mujocoinclude>'
    (inner / "parts" / "b.xml").write_text(body)
    (tmp_path / "secret.xml").write_text(body)
    file = inner / "m.xml"
    text = '<mujoco><worldbody><include file="{}"/></worldbody></mujoco>'
    file.write_text(text.format("parts/b.xml"))
    assert "b" in ld.read_mjcf(file).mechanism.bodies
    for name in ("../secret.xml", str(tmp_path / "secret.xml"), "/etc/passwd"):
        file.write_text(text.format(name))
        with pytest.raises(ld.errors.ModelError, match="outside the folder of the model"):
            ld.read_mjcf(file)
    file.write_text(text.format("../secret.xml"))
    assert "b" in ld.read_mjcf(file, folder=tmp_path).mechanism.bodies
    with pytest.raises(ld.errors.ModelError, match="the model was given as text"):
        ld.read_mjcf(text.format("parts/b.xml"))


def test_a_file_that_includes_itself_is_an_error(tmp_path):
    file = tmp_path / "m.xml"
    file.write_text('<mujoco><include file="n.xml"/></mujoco>')
    (tmp_path / "n.xml").write_text('<mujocoinclude><include file="n.xml"/></mujocoinclude>')
    with pytest.raises(ld.errors.ModelError, match="included twice"):
        ld.read_mjcf(file)


def test_names_that_loopdyn_cannot_have_are_changed_and_said():
    text = """<mujoco><worldbody><body name="ground"><joint name="a.b"/><geom size=".1"/>
      <body name="x:y"><joint name="a_b"/><geom size=".1"/></body></body></worldbody></mujoco>"""
    found = ld.read_mjcf(text)
    assert list(found.mechanism.bodies) == ["ground_2", "x_y"]
    assert list(found.mechanism.joints) == ["a_b", "a_b_2"]
    assert "'a.b' is called 'a_b'" in str(found.report)
    assert found.compile().nv == 2


def test_a_mapping_for_other_cuts_says_what_to_do():
    found = ld.read_mjcf(LOOPS.format(pin=ONE))
    system = found.mechanism.compile(cuts=["A", "glue"])
    with pytest.raises(ld.errors.ModelError, match="joint 'A' is cut"):
        found.to_mujoco(system, system.state())


LOOP = """<mujoco><compiler autolimits="true"/><option gravity="0 -9.81 0"/><worldbody>
  <body name="crank"><joint name="A" axis="0 0 1"/><geom type="capsule" size="0.01" fromto="0 0 0 0.3 0 0"/>
    <body name="coupler" pos="0.3 0 0"><joint name="B" axis="0 0 1"/>
      <geom type="capsule" size="0.01" fromto="0 0 0 0.7 0 0"/></body></body>
  <body name="rocker" pos="1 0 0"><joint name="D" axis="0 0 1" {limits}/>
    <geom type="capsule" size="0.01" fromto="0 0 0 0 {rocker} 0"/></body>
</worldbody><equality><connect body1="coupler" body2="rocker" anchor="0.7 0 0"/></equality>
<keyframe><key name="home" qpos="{home}"/></keyframe></mujoco>"""


def test_a_keyframe_within_limits_is_read_by_itself_where_qpos0_is_outside():
    # the anchor is on the pivot of the rocker, which turns alone: closed at any D, within limits in the keyframe only
    text = LOOP.format(limits='range="20 60"', rocker=0.1, home="0 0 0.6")
    found = ld.read_mjcf(text)
    assert any("keyframe 'home'" in line for line in found.report.changed)
    assert ld.assemble(found.compile()).note == "assembled directly from the start pose"
    first = ld.read_mjcf(text, keyframe="qpos0")
    assert not any("keyframe 'home'" in line for line in first.report.changed)


def test_a_keyframe_is_left_out_where_qpos0_is_closed_within_limits():
    found = ld.read_mjcf(LOOP.format(limits="", rocker=0.1, home="0 0 0.6"))
    assert any("keyframes home" in line for line in found.report.left_out)
