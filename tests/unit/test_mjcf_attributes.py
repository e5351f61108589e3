"""Every attribute of MJCF is carried over or reported: the list against MuJoCo's own, and one small model for each.

MuJoCo computes the expected accelerations itself, with its equalities made exact. What cannot be carried over must be
named in the report, by the words given here.
"""

from __future__ import annotations

import re
from itertools import pairwise

import mujoco
import numpy as np
import pytest
from tests.external.mujoco_loops import exact_accelerations

import loopdyn as ld
from loopdyn.interchange.markup import parse
from loopdyn.interchange.mjcf import schema
from loopdyn.interchange.report import Report

pytestmark = pytest.mark.jit_off

# Rounding of two programs times the condition of saddle point systems near folds; measured 1e-10 and below.
TOLERANCE = 1e-7

SHAPES = """<geom type="capsule" size=".03" fromto="0 0 0 .1 .2 .4" mass="1"/>
<geom type="box" size=".05 .1 .02" pos=".1 0 .3" euler="20 30 40" mass=".5"/>"""
A, B = '<joint name="A" axis="1 2 3" pos=".1 0 0"/>', '<joint name="B" axis="-1 .5 2"/>'
WALL = '<worldbody><site name="w" pos="1 1 1"/></worldbody>'
FIXED = '<tendon><fixed name="t" {}><joint joint="A" coef="-2"/>{}</fixed></tendon>'
OTHER = '<joint joint="B" coef="0.7"/>'
LINE = WALL + '<tendon><spatial name="t" {}><site site="w"/><site site="s2"/></spatial></tendon>'
FREE = '<joint name="A" type="free"/>'
BALL = '<joint name="A" type="ball" {}/>'


def two(a: str = A, b: str = B, more: str = "", option: str = "", of_a: str = "", default: str = "") -> str:
    """Two bodies in generic positions, on the joints a and b."""
    return f"""<mujoco><compiler angle="degree"/>{option}<default>{default}</default><worldbody>
<body name="a" pos=".1 .2 .3" euler="10 20 30" {of_a}>{a}{SHAPES}<site name="s1" pos=".1 .1 .1" euler="15 25 35"/>
<body name="b" pos=".1 .2 .4" euler="-20 30 15">{b}{SHAPES}<site name="s2" pos=".1 -.1 .2" euler="5 -25 60"/></body>
</body></worldbody>{more}</mujoco>"""


def joint(attributes: str, kind: str = "hinge") -> str:
    return two(f'<joint name="A" type="{kind}" axis="1 2 3" pos=".1 0 0" {attributes}/>')


def actuator(attributes: str, kind: str = "position", more: str = "", a: str = A, option: str = "") -> str:
    where = "" if re.search(r"\b(joint|jointinparent|tendon|site|body|cranksite)=", attributes) else 'joint="A"'
    return two(a, more=f'{more}<actuator><{kind} name="m" {where} {attributes}/></actuator>', option=option)


def flag(name: str, **parts: str) -> str:
    return two(**parts, option=f'<option><flag {name}="disable"/></option>')


PD = 'kp="50" kv="2"'
ZERO = '<tendon><fixed name="t" {}><joint joint="A" coef="0"/></fixed></tendon>'
LIMITED = '<joint name="A" axis="1 2 3" actuatorfrcrange="-1 2"/>'
TWO_ON_A = f'<actuator><position joint="A" {PD}/><velocity joint="A" kv="3" gear="-2"/></actuator>'

# What is carried over: MuJoCo has the same accelerations.
CARRIED = {
    "limit of the sum of two actuators on a joint": two(LIMITED, more=TWO_ON_A),
    "limit of actuators on a joint, through a tendon over it": two(
        LIMITED, more=FIXED.format("", "") + f'<actuator><position tendon="t" {PD}/></actuator>'
    ),
    "limit of actuators on a joint that is switched off": two(
        '<joint name="A" axis="1 2 3" actuatorfrcrange="-1 2" actuatorfrclimited="false"/>', more=TWO_ON_A
    ),
    "limit of actuators on a tendon": actuator(
        f'tendon="t" {PD} gear="2"', more=LINE.format('actuatorfrcrange="-1 2" actuatorfrclimited="true"')
    ),
    "weld without torque": two(FREE, more='<equality><weld body1="b" anchor=".1 .2 .3" torquescale="0"/></equality>'),
    "weld with another torque": two(FREE, more='<equality><weld body1="b" torquescale="0.3"/></equality>'),
    "controls are not limited": actuator(
        'ctrlrange="1 2" ctrllimited="true"', "motor", option='<option><flag clampctrl="disable"/></option>'
    ),
    "controls are limited": actuator('ctrlrange="1 2" ctrllimited="true"', "motor"),
    "force is limited": actuator(f'{PD} forcerange="-1 2" forcelimited="true" gear="3"'),
    "gain and bias": actuator('gaintype="affine" gainprm="1 2 3" biastype="affine" biasprm=".4 .5 .6"', "general"),
    "damping ratio": actuator('kp="50" dampratio="1"'),
    "damper": actuator('kv="4" ctrlrange="0 2"', "damper"),
    "joint in parent": actuator('jointinparent="A"', "motor"),
    "site": actuator('site="s2" gear="1 2 3 .4 .5 .6" biastype="affine" biasprm="2 0 0" gainprm="0"', "general"),
    "armature of actuators": actuator('armature=".3" gear="2"', "motor"),
    "armature of actuators on a tendon": actuator('tendon="t" armature=".3" gear="2"', "motor", FIXED.format("", "")),
    "damping of actuators": actuator('damping=".3 .2 .1" gear="2"', "motor"),
    "damping of actuators on a tendon": actuator('tendon="t" damping=".3 .2 .1"', "motor", FIXED.format("", OTHER)),
    "armature": joint('armature="0.4"'),
    "armature of a slide": joint('armature="0.4"', "slide"),
    "armature of a ball": joint('armature="0.4"', "ball"),
    "stiffness and damping": joint('stiffness="5" damping="1" springref="20"'),
    "stiffness with powers": joint('stiffness="5 2 3" damping="1 .5 .2" springref="20"'),
    "stiffness of a slide with powers": joint('stiffness="50 20 30" damping="1 .5 .2" springref="0.1"', "slide"),
    "stiffness from a time constant": joint('springdamper="0.5 1"'),
    "stiffness of a line with powers": two(more=LINE.format('stiffness="30 20 10" damping="2 1 1" springlength=".4"')),
    "stiffness of a line with a dead band": two(more=LINE.format('stiffness="30" springlength=".4 1.2"')),
    "stiffness over one joint": two(more=FIXED.format('stiffness="6" damping=".5" springlength=".3"', "")),
    "stiffness over one joint with powers": two(more=FIXED.format('stiffness="6 5 4" springlength="-.1 .3"', "")),
    "stiffness over two joints": two(more=FIXED.format('stiffness="6" damping=".5 .2"', OTHER)),
    "armature of a tendon over one joint": two(more=FIXED.format('armature=".2"', "")),
    "stiffness of a tendon whose coefficients are zero": two(more=ZERO.format('stiffness="6" springlength=".3"')),
    "servo over two joints": actuator(f'tendon="t" {PD} gear="2"', more=FIXED.format("", OTHER)),
    "servo along a line": actuator(f'tendon="t" {PD} gear="2"', more=LINE.format("")),
    "gravity compensation": two(of_a='gravcomp="0.7"'),
    "gravity is switched off": flag("gravity"),
    "equality that is not active": two(more='<equality><joint joint1="A" joint2="B" active="false"/></equality>'),
    "equality of tendons": two(
        more=FIXED.format("", OTHER) + '<equality><tendon tendon1="t" polycoef=".2"/></equality>'
    ),
}

# What is left out or changed: the report says so in these words. Where MuJoCo has the same accelerations at one state
# nevertheless, the second entry is True.
REPORTED = {
    "springyield": (joint('stiffness="50" springyield="1"'), True, "yield of the spring of the joint 'A'"),
    "springyield of a tendon": (two(more=LINE.format('stiffness="9" springyield="1"')), True, "yield of its spring"),
    "range": (joint('range="-10 10" limited="true"'), True, "here they are rigid stops"),
    "range of a ball": (joint('range="0 10" limited="true"', "ball"), True, "range of the joint 'A', which has no"),
    "range of a tendon": (two(more=LINE.format('range="0 9" limited="true"')), True, "tendon 't': its range (0 to 9)"),
    "dry friction of a tendon": (two(more=LINE.format('frictionloss="1"')), True, "tendon 't': its dry friction"),
    "dry friction": (joint('frictionloss="0"'), True, ""),
    "dry friction, smooth": (joint('frictionloss=".1"'), False, "dry friction is smooth about zero speed"),
    "dry friction of a ball": (joint('frictionloss=".1"', "ball"), True, "dry friction of the joint 'A'"),
    "armature of a free joint": (two(FREE.replace("/>", ' armature=".3"/>')), False, "of the joint 'A', which is free"),
    "armature of a line": (two(more=LINE.format('armature=".2"')), False, "tendon 't': its armature"),
    "armature over two joints": (
        actuator('tendon="t" armature=".2"', "motor", FIXED.format("", OTHER)), False, "actuator 'm': its armature",
    ),
    "tendon around a corner": (
        two(more=WALL + '<tendon><spatial name="t" stiffness="9"><site site="w"/><site site="s1"/><pulley divisor="2"/>'
            '<site site="s1"/><site site="s2"/></spatial></tendon>'), False, "tendon 't': its spring and damper",
    ),
    "tendon around a shape": (
        f'<mujoco><worldbody><geom name="g" size=".1" pos="0 0 .5"/><site name="w" pos="1 1 1"/><site name="side" '
        f'pos="0 1 .5"/><body>{A}{SHAPES}<site name="s"/></body></worldbody><tendon><spatial name="t">'
        '<site site="w"/><geom geom="g" sidesite="side"/><site site="s"/></spatial></tendon></mujoco>',
        True, "1 tendons that are not straight lines between two sites: t",
    ),
    "limit of actuators of a ball, which MuJoCo ignores": (
        two(BALL.format('actuatorfrcrange="-1 1" actuatorfrclimited="true"')), True, "",
    ),
    "servo on a tendon whose coefficients are zero": (
        actuator(f'tendon="t" {PD}', more=ZERO.format("")), True, "all coefficients of its tendon are zero",
    ),
    "limit of a joint that a line acts on": (
        actuator(f'tendon="t" {PD}', a=LIMITED, more=LINE.format("")), False, "actuatorfrcrange of the joints A for",
    ),
    "gravity compensation by actuators": (
        two('<joint name="A" axis="1 2 3" actuatorgravcomp="true"/>', of_a='gravcomp="1"',
            more='<actuator><motor joint="A"/></actuator>'), True, "(actuatorgravcomp)",
    ),
    "group that is switched off": (
        actuator(f'{PD} group="2"', option='<option actuatorgroupdisable="2"/>'), True, "(actuatorgroupdisable)",
    ),
    "delay": (actuator(f'{PD} delay=".1" nsample="20" interp="linear"'), True, "position.delay (line"),
    "state": (actuator('kp="50" actrange="-1 1"', "intvelocity"), False, "it has a state of its own"),
    "time constant": (actuator('kp="50" timeconst=".1"'), False, "it has a state of its own"),
    "filter": (actuator('dyntype="filter" dynprm="1"', "general"), True, "general.dynprm"),
    "cylinder": (actuator('area="2" timeconst="1"', "cylinder"), True, "it has a state of its own"),
    "direct current": (actuator('motorconst=".5" resistance="1"', "dcmotor"), False, "dcmotor.motorconst"),
    "reference site": (
        actuator('site="s2" refsite="s1" gear="1 2 3 0 0 0" biastype="affine" biasprm="2 0 0"', "general"), False,
        "its transmission is not known",
    ),
    "crank": (
        actuator('cranksite="s2" slidersite="s1" cranklength=".5"', "motor"), True, "its transmission is not known",
    ),
    "adhesion": (actuator('body="b" gain="3" ctrlrange="0 1"', "adhesion"), True, "its transmission is not known"),
    "fluid": (
        two(option='<option density="1.2" viscosity=".1" wind="3 0 0"/>'), False, "forces of the surrounding fluid",
    ),
    "mocap": (
        '<mujoco><worldbody><body name="m" mocap="true"><geom size=".1"/></body></worldbody></mujoco>', True,
        "mocap body 'm' is fixed",
    ),
    "equality of tendons with powers": (
        two(more=FIXED.format("", OTHER) + LINE.format("").replace('"t"', '"u"')
            + '<equality><tendon name="e" tendon1="t" tendon2="u" polycoef="0 1 1"/></equality>'),
        None, "equality 'e' of tendons that is not linear",
    ),
    "all actuators off": (flag("actuation", more=TWO_ON_A), True, "(flag actuation)"),
    "all equalities off": (
        flag("equality", more='<equality><joint joint1="A" joint2="B"/></equality>'), True, "(flag equality)",
    ),
    "all constraints off": (
        flag("constraint", more='<equality><joint joint1="A" joint2="B"/></equality>'), True, "(flag constraint)",
    ),
    "springs off": (flag("spring", a='<joint name="A" stiffness="5"/>'), True, "(flag spring)"),
    "dampers off": (flag("damper", a='<joint name="A" damping="5"/>'), True, "(flag damper)"),
    "dry friction off": (flag("frictionloss", a='<joint name="A" frictionloss="5"/>'), True, "(flag frictionloss)"),
    "ranges off": (flag("limit", a='<joint name="A" range="0 1" limited="true"/>'), True, "(flag limit)"),
    "fluid shapes": (
        f'<mujoco><worldbody><body>{A}<geom size=".1" fluidshape="ellipsoid"/></body></worldbody></mujoco>', True,
        "geom.fluidshape (line 1)",
    ),
    "keyframe": (
        two(more='<keyframe><key name="k" time="3" qpos="1 2" qvel="1 2" ctrl=""/></keyframe>'), True, "key.time (line",
    ),
    "looks": (two(a=A.replace("/>", ' group="3"/>')), True, "data without effect on the motion: joint.group"),
    "softness": (joint('range="0 1" limited="true" solreflimit="1 1" margin=".1"'), True, "friction: joint.sol"),
}  # fmt: skip

# Attributes whose effect is compared with MuJoCo elsewhere, or that a plain model of this file cannot show.
ELSEWHERE = {
    ("flag", "passive"),  # of older versions
    ("equality/joint", "active"),
    ("default/equality", "active"),
    ("connect", "active"),
    ("weld", "active"),
    ("equality/tendon", "active"),
    *(
        (element, a)
        for element in ("plugin", "instance", "config")
        for a in ("instance", "plugin", "name", "key", "value")
    ),
}


def attributes_of(schema_text: str) -> set[tuple[str, str, str]]:
    """(element it is in, element, attribute) of MuJoCo's printed schema; wrapped lines continue far to the right."""
    found: set[tuple[str, str, str]] = set()
    path: list[str] = []
    for line in schema_text.splitlines():
        start = re.match(r"( *)(\(world\)body|\w+) \([!?*R]\)(.*)", line)
        if start:
            depth = len(start[1]) // 3
            path = [*path[:depth], start[2].replace("(world)", "")]
            words = start[3].split()
        else:
            words = line.split()
        inside = [schema.whole(*pair) for pair in pairwise(path)]  # what is left out as a whole covers all in it
        parent = path[-2] if len(path) > 1 else ""
        found |= set() if any(inside[:-1]) else {(parent, path[-1], word) for word in words}
    return found


def disagreement(text: str, seeds=range(2)) -> float:
    """Largest difference of accelerations from MuJoCo's, relative to the largest, at random closed states."""
    model = mujoco.MjModel.from_xml_string(text)
    bits = mujoco.mjtDisableBit
    model.opt.disableflags |= int(bits.mjDSBL_CONTACT | bits.mjDSBL_LIMIT | bits.mjDSBL_FRICTIONLOSS)
    found = ld.read_mjcf(text)
    found.mechanism.contacts.clear()  # the stops of ranges, which are switched off in MuJoCo, too
    system = found.compile()
    worst = 0.0
    for seed in seeds:
        rng = np.random.default_rng(seed)
        qpos = model.qpos0.copy()
        mujoco.mj_integratePos(model, qpos, 0.5 * rng.standard_normal(model.nv), 1.0)
        near = found.from_mujoco(system, qpos, rng.standard_normal(model.nv))
        state = ld.assemble(system, q=near.q, v=near.v, limits=False)
        expected, *_ = exact_accelerations(model, *found.to_mujoco(system, state))
        a = found.qacc(system, ld.accelerations(system, state, "oracle"), state)
        worst = max(worst, float(np.abs(a - expected).max() / np.abs(expected).max()))
    return worst


def test_the_list_of_attributes_is_that_of_the_installed_mujoco():
    found = attributes_of(mujoco.mj_printSchema(False, True))
    assert len(found) > 500
    assert sorted(x for x in found if schema.fate(*x) is None) == []


def test_an_attribute_or_element_that_is_not_known_is_reported():
    """Of a version of MuJoCo that is yet to come; the installed one refuses such a file."""
    report = Report("new.xml")
    text = '<mujoco><worldbody><body><joint torsion="1"/><spline x="1"/></body></worldbody></mujoco>'
    schema.report_unused(parse(text, ""), report)
    assert report.left_out == [
        "joint.torsion, an attribute that is not known here (line 1)",
        "<spline>, an element that is not known here (line 1)",
    ]


@pytest.mark.parametrize("name", CARRIED)
def test_what_is_carried_over_has_mujocos_accelerations(name):
    assert disagreement(CARRIED[name]) < TOLERANCE
    left = [x for x in ld.read_mjcf(CARRIED[name]).report.left_out if "shapes" not in x and "not active" not in x]
    assert left == []


@pytest.mark.parametrize("name", REPORTED)
def test_what_is_left_out_or_changed_is_reported(name):
    text, same, words = REPORTED[name]
    report = ld.read_mjcf(text).report
    assert any(words in line for line in (*report.left_out, *report.changed)) or words == ""
    if same is not None and "A" in ld.read_mjcf(text).mechanism.joints:
        assert (disagreement(text) < TOLERANCE) == same


def test_every_attribute_that_the_reader_judges_is_in_one_of_these_models():
    seen = set()
    for text in (*CARRIED.values(), *(text for text, *_ in REPORTED.values())):
        for parent, element in schema._walk("", parse(text, "")):
            seen |= {(schema.known(parent, element.tag), a) for a in element.attributes}
    actuators = {x for x in seen if schema.ATTRIBUTES.get(x[0] or "") is schema._ACTUATOR}
    tendons = {x for x in seen if schema.ATTRIBUTES.get(x[0] or "") is schema._TENDON}
    shared = {id(schema._ACTUATOR): {a for _, a in actuators}, id(schema._TENDON): {a for _, a in tendons}}
    missing = []
    for element, said in schema.ATTRIBUTES.items():
        for attribute in said.get(schema.JUDGED, "").split():
            known = (element, attribute) in seen or attribute in shared.get(id(said), ())
            if not (known or (element, attribute) in ELSEWHERE or element.startswith("composite")):
                missing.append((element, attribute))
    assert missing == []
