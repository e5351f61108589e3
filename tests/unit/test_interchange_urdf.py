"""Reading URDF: beside Pinocchio's own reading, loops from URDF+ and from a sidecar, and files that are wrong."""

from __future__ import annotations

import numpy as np
import pytest

import loopdyn as ld

INERTIA = '<inertia ixx=".02" iyy=".03" izz=".04" ixy=".001" ixz="-.002" iyz=".003"/>'


def link(name: str, origin: str = 'xyz="0.1 0.2 0.05" rpy="0.3 -0.4 0.5"') -> str:
    return f'<link name="{name}"><inertial><origin {origin}/><mass value="1.3"/>{INERTIA}</inertial></link>'


def joint(name: str, kind: str, parent: str, child: str, inside: str = '<axis xyz="0 0 1"/>', at: str = "") -> str:
    origin = f"<origin {at}/>" if at else ""
    ends = f'<parent link="{parent}"/><child link="{child}"/>'
    return f'<joint name="{name}" type="{kind}">{origin}{ends}{inside}</joint>'


def robot(*parts: str) -> str:
    return '<robot name="r"><link name="world"/>\n' + "\n".join(parts) + "</robot>"


CHAIN = robot(
    link("a"),
    link("b"),
    link("c"),
    joint("A", "continuous", "world", "a", '<axis xyz="1 2 3"/>', 'xyz="0.1 0.2 0.3" rpy="0.5 0.2 -0.7"'),
    joint("B", "prismatic", "a", "b", '<axis xyz="0 1 1"/><limit lower="-1" upper="1" effort="1" velocity="1"/>'),
    joint("fix", "fixed", "b", "tool", "", 'xyz="0 0.1 0" rpy="0 1.5707963267948966 0"'),
    '<link name="tool"/>',
    joint("C", "revolute", "tool", "c", '<limit lower="-2" upper="2" effort="1" velocity="1"/>', 'rpy="0.1 0.2 0.3"'),
)


def test_a_chain_has_the_mass_matrix_and_the_forces_that_pinocchio_reads_from_the_same_text():
    pin = pytest.importorskip("pinocchio", reason="Pinocchio has no wheels for this platform")
    model = pin.buildModelFromXML(CHAIN)
    data = model.createData()
    rng = np.random.default_rng(3)
    values, speeds = rng.uniform(-1, 1, 3), rng.uniform(-1, 1, 3)
    order = [model.names[i] for i in range(1, model.njoints)]
    given = dict(zip(order, zip(values, speeds, strict=True), strict=True))
    # Pinocchio writes a continuous joint as cosine and sine
    q = np.concatenate([[np.cos(x), np.sin(x)] if n == "A" else [x] for n, (x, _) in given.items()])
    tau = pin.nonLinearEffects(model, data, q, speeds)
    M = pin.crba(model, data, q)
    M = np.triu(M) + np.triu(M, 1).T
    m = ld.read_urdf(CHAIN).mechanism
    system = m.compile()
    state = system.state({n: x for n, (x, _) in given.items()}, {n: v for n, (_, v) in given.items()})
    terms = ld.terms(system, state)
    k = [system.speeds.index(n) for n in order]
    assert terms.M[np.ix_(k, k)] == pytest.approx(M, abs=1e-12)  # rounding; entries are of order one
    assert -terms.h[k] == pytest.approx(tau, abs=1e-11)


def test_what_is_left_out_and_changed_is_reported():
    limit = '<limit lower="-1" upper="1" effort="5" velocity="1"/>'
    text = robot(
        link("a").replace("</link>", '<visual/><collision/><collision/></link>'),
        joint("A", "revolute", "world", "a", limit + '<dynamics damping="0.2" friction="0.1"/>'),
        "<transmission/><gazebo/><ros2_control/>",
    )  # fmt: skip
    found = ld.read_urdf(text)
    for said in (
        "1 visual shapes",
        "2 collision shapes",
        "1 transmissions",
        "1 gazebo tags",
        "1 <ros2_control> of <robot>",
    ):
        assert said in found.report.left_out
    assert "1 limits of effort and speed: A" in found.report.left_out
    assert "dry friction is smooth about zero speed (joint_friction): A" in str(found.report)
    assert found.mechanism.forces["A spring"].damping == 0.2
    assert found.mechanism.joints["A"].limits == (-1.0, 1.0)


def test_every_element_and_attribute_that_is_not_used_is_reported():
    text = robot(
        link("a").replace("<mass ", '<mass unit="kg" ') + '<sunshade color="red"><pole/></sunshade>',
        link("b").replace("</link>", "<inertial/><warmth/></link>"),
        joint("A", "continuous", "world", "a", '<axis xyz="0 0 1"/><limit lower="-1" effort="1e9" jerk="3"/>'),
        joint("B", "floating", "world", "b", '<dynamics damping="1"/>'),
    ).replace("<robot ", '<robot version="7.0" xmlns:x="y" ')
    report = ld.read_urdf(text).report
    assert sorted(report.left_out) == [
        "1 <dynamics> of <joint>: B",
        "1 <sunshade> of <robot>",
        "1 <warmth> of <link>: b",
        "1 attribute 'jerk' of <limit>: A",
        "1 attribute 'lower' of <limit>: A",
        "1 attribute 'unit' of <mass>: a",
        "1 further <inertial> of <link>: b",
    ]
    assert "version '7.0' of URDF is not known here: read like 1.2" in report.notes


def test_limits_that_are_infinite_are_none():
    limit = '<limit lower="-inf" upper="{}" effort="1.79769e+308" velocity="inf"/>'
    text = robot(
        link("a"), link("b"), joint("A", "revolute", "world", "a", limit.format("inf")),
        joint("B", "prismatic", "a", "b", limit.format("0.2")),
    )  # fmt: skip
    found = ld.read_urdf(text)
    assert found.mechanism.joints["A"].limits is None
    assert found.mechanism.joints["B"].limits == (-1e16, 0.2)
    assert not any("effort" in line for line in found.report.left_out)


def test_limits_that_leave_no_room_are_noted():
    text = robot(link("a"), joint("A", "revolute", "world", "a", '<limit effort="1" velocity="1"/>'))
    assert "limits of 'A' (0 to 0) leave no room: not kept" in ld.read_urdf(text).report.notes


def test_an_origin_may_have_a_quaternion():
    """Half a turn about x and y together: x and y change places."""
    half = 'xyz="0 0 0" quat_xyzw="1 1 0 0"'
    m = ld.read_urdf(robot(link("a"), joint("A", "continuous", "world", "a", at=half))).mechanism
    assert m.bodies["a"].pose.rotation.quaternion == pytest.approx((0, 0.5**0.5, 0.5**0.5, 0))
    for at, said in ((half + ' rpy="0 0 0"', "both rpy and quat_xyzw"), ('quat_xyzw="0 0 0 0"', "quat_xyzw is zero")):
        with pytest.raises(ld.errors.ModelError, match=said):
            ld.read_urdf(robot(link("a"), joint("A", "continuous", "world", "a", at=at)))


def test_mimic_is_a_coupler():
    text = robot(
        link("a"),
        link("b"),
        joint("A", "continuous", "world", "a"),
        joint("B", "continuous", "world", "b", '<axis xyz="0 1 0"/><mimic joint="A" multiplier="-2" offset="0.3"/>'),
    )
    coupler = ld.read_urdf(text).mechanism.constraints["B mimic"]
    assert coupler.terms == {"B": 1.0, "A": 2.0}
    assert coupler.offset == 0.3


def test_the_root_is_fixed_or_floats():
    text = f'<robot name="r">{link("base")}</robot>'
    assert ld.read_urdf(text).mechanism.joints["base base"].type == "weld"
    assert ld.read_urdf(text, floating=True).mechanism.joints["base base"].type == "free"


BARS = (
    link("crank", 'xyz="0 0.25 0"'),
    link("rocker", 'xyz="0 0.45 0"'),
    link("coupler", 'xyz="0.6 0.2 0"'),
    joint("A", "continuous", "world", "crank"),
    joint("D", "continuous", "world", "rocker", at='xyz="1.1 0 0"'),
    joint("B", "continuous", "crank", "coupler", at='xyz="0 0.5 0"'),
)
LOOP = """<loop name="C" type="continuous"><predecessor link="coupler"><origin xyz="1.2 0.4 0"/></predecessor>
  <successor link="rocker"><origin xyz="0.1 0.9 0"/></successor><axis xyz="0 0 1"/></loop>"""
SIDECAR = """
gravity: [0, -9.81, 0]
joints:
  C:
    type: revolute
    parent: coupler
    child: rocker
    parent_frame: {position: [1.2, 0.4, 0]}
    child_frame: {position: [0.1, 0.9, 0]}
    axis: [0, 0, 1]
"""


def hand_made() -> ld.Mechanism:
    """The same four-bar by `at`."""
    m = ld.Mechanism("hand", gravity=(0, -9.81, 0))
    matrix = [[0.02, 0.001, -0.002], [0.001, 0.03, 0.003], [-0.002, 0.003, 0.04]]
    for name, com in (("crank", (0, 0.25, 0)), ("rocker", (1.1, 0.45, 0)), ("coupler", (0.6, 0.7, 0))):
        m.add_body(name, ld.Inertia(1.3, com, matrix))
    pin = ld.Revolute(axis=(0, 0, 1))
    m.add_joint("A", pin, m.ground, "crank", at=(0, 0, 0))
    m.add_joint("D", pin, m.ground, "rocker", at=(1.1, 0, 0))
    m.add_joint("B", pin, "crank", "coupler", at=(0, 0.5, 0))
    m.add_joint("C", pin, "coupler", "rocker", at=(1.2, 0.9, 0))
    return m


@pytest.mark.parametrize("way", ["urdf+", "sidecar"])
def test_a_loop_from_urdf_plus_and_from_a_sidecar_moves_like_one_built_by_hand(way, tmp_path):
    if way == "urdf+":
        found = ld.read_urdf(robot(*BARS, LOOP), gravity=(0, -9.81, 0))
    else:
        (tmp_path / "loops.yaml").write_text(SIDECAR)
        found = ld.read_urdf(robot(*BARS), loops=tmp_path / "loops.yaml")
    assert found.loops == ("C",)
    results = []
    for m in (hand_made(), found.mechanism):
        system = m.compile(cuts=["C"])
        state = ld.assemble(system, q={"A": 0.4}, v={"A": 3.0})
        a = ld.accelerations(system, state)
        results.append([a[system.speeds.index(n)] for n in "ABD"])
    assert results[1] == pytest.approx(results[0], rel=1e-12)


def test_a_coupling_of_urdf_plus():
    ratio = '<coupling name="gear"><predecessor link="crank"/><successor link="rocker"/><ratio value="3"/></coupling>'
    m = ld.read_urdf(robot(*BARS, ratio)).mechanism
    assert m.constraints["gear"].terms == {"D": 1.0, "A": -3.0}


def geared_leg(ratio: float, knee: str = "continuous") -> str:
    """A leg whose ankle is moved by a belt over the knee; centres of mass on the pins, so that M is constant."""

    def inertial(name: str, mass: float, about_axis: float) -> str:
        entries = f'<inertia ixx="{about_axis}" iyy="{about_axis}" izz="{about_axis}"/>'
        return f'<link name="{name}"><inertial><mass value="{mass}"/>{entries}</inertial></link>'

    belt = f'<predecessor link="foot"/><successor link="rotor"/><ratio value="{ratio}"/>'
    return robot(
        '<link name="hip"/>',
        inertial("shank", 2.0, 0.05),
        inertial("foot", 0.5, 0.01),
        inertial("rotor", 0.1, 0.0002),
        joint("hip", "fixed", "world", "hip", "", 'xyz="0 0 1"'),
        joint("knee", knee, "hip", "shank"),
        joint("heel", "fixed", "shank", "plate", "", 'xyz="0.3 0 0"'),
        '<link name="plate"/>',
        joint("ankle", "continuous", "plate", "foot"),
        joint("rotor", "continuous", "hip", "rotor", at='xyz="0.1 0 0"'),
        f'<coupling name="belt">{belt}</coupling>',
    )


@pytest.mark.jit_off
def test_the_ratio_of_a_coupling_holds_for_every_joint_from_the_common_ancestor():
    """By hand: the rotor turns by N (knee + ankle), so that with torque T at the knee

    (Js + Jf + mf L^2 + N^2 Jr) a + (Jf + N^2 Jr) b = T,    (Jf + N^2 Jr)(a + b) = 0.
    """
    N, Js, Jf, mf, L, Jr, T = 12.0, 0.05, 0.01, 0.5, 0.3, 0.0002, 1.7
    m = ld.read_urdf(geared_leg(N)).mechanism
    assert m.constraints["belt"].terms == {"rotor": 1.0, "knee": -N, "ankle": -N}
    m.add_motor("T", "knee", torque=T)
    system = m.compile()
    state = ld.assemble(system, q={"knee": 0.8, "ankle": -0.3})
    assert state.q[system.coordinates.index("rotor")] == pytest.approx(12.0 * 0.5, abs=1e-12)  # rounding
    seen = N**2 * Jr + Jf
    M = np.array([[Js + mf * L**2 + seen, seen], [seen, seen]])
    a = ld.accelerations(system, state)
    found = [a[system.speeds.index(n)] for n in ("knee", "ankle")]
    assert found == pytest.approx(np.linalg.solve(M, [T, 0.0]), rel=1e-10)  # rounding, M has condition 30


@pytest.mark.parametrize(
    ("ends", "said"),
    [
        ('<predecessor link="foot"/><successor link="shank"/>', "no joint that moves lies between .*'shank'"),
        ('<predecessor link="foot"/><successor link="foot"/>', "no joint that moves lies between"),
        ('<predecessor link="foot"/><successor link="roter"/>', "there is no link 'roter'.*rotor"),
        ('<predecessor link="foot"/>', "has no <successor>"),
        ('<predecessor link="foot"/><successor link="rotor"/><ratio/>', "'' in place of a number"),
    ],
)
def test_a_coupling_without_a_meaning_is_refused(ends, said):
    """With no joint on one side the ratio would lock the other side."""
    text = geared_leg(12.0)
    start, end = text.index('<predecessor link="foot"/>'), text.index("</coupling>")
    ratio = "" if "ratio" in ends else '<ratio value="12"/>'
    with pytest.raises(ld.errors.ModelError, match=said):
        ld.read_urdf(text[:start] + ends + ratio + text[end:])


def test_a_coupling_over_slides_and_hinges_together_is_refused():
    with pytest.raises(ld.errors.ModelError, match=r"adds up metres and radians .*'knee'"):
        ld.read_urdf(geared_leg(12.0, knee="prismatic"))
    with pytest.raises(ld.errors.ModelError, match="'knee' of type floating has no single coordinate"):
        ld.read_urdf(geared_leg(12.0, knee="floating"))


def test_errors_of_the_sidecar_have_its_lines(tmp_path):
    file = tmp_path / "loops.yaml"
    for text, said in (
        (SIDECAR.replace("type: revolute", "type: hinge"), r"loops.yaml:5: joint 'C'.*hinge"),
        (SIDECAR.replace("child: rocker", "child: rokker"), r"loops.yaml:7: joint 'C': there is no body 'rokker'"),
        (SIDECAR + "bodies: {x: {mass: 1}}", r"loops.yaml:11: sidecar: unknown key 'bodies'"),
        ("joints: [1]", "'joints' is not a mapping"),
        ("- 1", "is not a mapping"),
        ("reference: {Q: 1}", r"loops.yaml:1: reference: 'Q' is not a joint of the URDF"),
    ):
        file.write_text(text)
        with pytest.raises(ld.errors.ModelError, match=said):
            ld.read_urdf(robot(*BARS), loops=file).mechanism.compile()


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ([link("a"), joint("A", "ball", "world", "a")], "joint 'A': joints of type 'ball' are not known"),
        ([link("a"), joint("A", "fixed", "world", "arm")], "there is no link 'arm' for its child"),
        ([link("a"), link("b"), joint("A", "fixed", "world", "a")], "have 2 roots"),
        ([link("a"), joint("A", "fixed", "world", "a"), joint("B", "fixed", "world", "a")], "URDF is a tree"),
        ([link("a"), joint("A", "continuous", "world", "a", '<axis xyz="0 0 0"/>')], "axis has length zero"),
        ([link("a"), joint("A", "continuous", "world", "a", '<axis xyz="0 1"/>')], "in place of 3 numbers"),
        (
            [link("a").replace('value="1.3"', 'value="heavy"'), joint("A", "fixed", "world", "a")],
            "in place of a number",
        ),
        (
            [link("a"), link("b"), joint("A", "fixed", "a", "b"), joint("B", "fixed", "b", "a")],
            "it is its own ancestor",
        ),
        ([link("a"), link("a"), joint("A", "fixed", "world", "a")], "two of the name 'a'"),
        ([link("a"), joint("A", "continuous", "world", "a", '<mimic joint="X"/>')], "mimics the joint 'X'"),
        ([link("a").replace("<mass", "<m"), joint("A", "fixed", "world", "a")], "needs <mass> and <inertia>"),
        (["<loop name='L' type='gear'/>"], "loops of type 'gear' are not known"),
    ],
)
def test_errors_name_the_element(parts, said):
    with pytest.raises(ld.errors.ModelError, match=said) as caught:
        ld.read_urdf(robot(*parts))
    assert "text:" in str(caught.value)


def test_a_model_in_millimetres_by_mistake_is_seen_by_its_size():
    """URDF is in metres: a drawing in mm is 1000 times too large, and nothing but its size shows it."""
    text = robot(link("a"), joint("A", "continuous", "world", "a", at='xyz="0 350 0"'))
    assert "check that its lengths are in m, not mm" in str(ld.read_urdf(text).report)


def test_impossible_inertia_is_noted_refused_with_its_line_or_mended():
    """diag(1, 1, 3): second moments are (1.5, 1.5, -0.5); without the negative one the inertia is diag(1.5, 1.5, 3)."""
    inertia = '<inertia ixx="1" iyy="1" izz="3" ixy="0" ixz="0" iyz="0"/>'
    text = robot(link("a", "").replace(INERTIA, inertia), joint("A", "continuous", "world", "a"))
    found = ld.read_urdf(text)
    assert "body 'a': impossible inertia" in found.report.notes[0]
    with pytest.raises(ld.errors.ModelError, match=r"text:2: body 'a': impossible inertia"):
        found.mechanism.compile()
    mended = ld.read_urdf(text, mend=True)
    matrix = mended.mechanism.bodies["a"].inertia
    assert (matrix.xx, matrix.yy, matrix.zz) == pytest.approx((1.5, 1.5, 3.0))
    assert "mended by 0.5 kg m^2" in str(mended.report)
    mended.mechanism.compile()


@pytest.mark.parametrize("mend", [False, True])
def test_inertia_without_mass_is_legal_as_it_is(mend):
    """A rotor: no weight, and the inertia about its axis is all that the joint moves."""
    heavy = robot(link("a"), joint("A", "continuous", "world", "a"))
    found = ld.read_urdf(heavy.replace("1.3", "0"), mend=mend)
    assert not found.report.notes
    assert found.mechanism.bodies["a"].mass == 0.0
    assert found.mechanism.bodies["a"].inertia == ld.read_urdf(heavy).mechanism.bodies["a"].inertia
    found.mechanism.compile()


def test_the_axis_of_a_fixed_joint_is_of_no_meaning():
    text = robot(link("a"), joint("A", "fixed", "world", "a", '<axis xyz="0 0 0"/>'))
    ld.read_urdf(text).mechanism.compile()
