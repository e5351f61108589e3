"""`ld.kinematics`: Jacobians with loops closed, singular poses; against closed forms and derivatives along poses."""

from pathlib import Path

import numpy as np
import pytest

import loopdyn as ld
from loopdyn.loops.sparse_steps import takes_sparse_steps

MODELS = Path(__file__).parents[2] / "examples" / "mechanisms"
# Closed states are closed to 1e-12 and conditions are below 100: three digits are left for other machines.
EXACT = 1e-9
# Central differences with steps of 1e-5: errors of order h^2 times third derivatives below 10, and 1e-12/h of closing.
STEP, DIFFERENCES = 1e-5, 2e-6


def four_bar_ratios(crank, coupler, rocker, a, b, c):
    """Speeds of coupler and rocker per speed of the crank, from the loop equations; angles from the x axis."""
    A = np.array([[-coupler * np.sin(b), rocker * np.sin(c)], [coupler * np.cos(b), -rocker * np.cos(c)]])
    return np.linalg.solve(A, [crank * np.sin(a), -crank * np.cos(a)])


def angle_of(system, state, body, start, end):
    k = ld.kinematics(system, state)
    d = k.point(body, end)["position"].values - k.point(body, start)["position"].values
    return np.arctan2(d[1], d[0])


def numbers(system):
    r = system.mechanism.resolver()
    return {key: r.scalar(key, "number", "", ()) for key in r.parameters}


@pytest.mark.parametrize("angle", [-2.0, 0.0, 0.7, 2.9])
def test_four_bar_ratios_are_those_of_its_loop_equations(angle):
    system = ld.library.four_bar().compile()
    p, state = numbers(system), ld.assemble(system, q={"A": angle})
    B, C, D = (p["bx"], p["by"], 0), (p["cx"], p["cy"], 0), (p["frame"], 0, 0)
    b, c = angle_of(system, state, "coupler", B, C), angle_of(system, state, "rocker", D, C)
    coupler, rocker = four_bar_ratios(p["crank"], p["coupler"], p["rocker"], 1.0 + angle, b, c)
    k = ld.kinematics(system, state)
    found = k.ratios("A").sel(input="A")
    expected = {"A": 1.0, "B": coupler - 1.0, "C": rocker - coupler, "D": rocker}
    assert max(abs(float(found.sel(speed=label)) - x) for label, x in expected.items()) < EXACT
    assert abs(k.jacobian("coupler", wrt=["A"]).sel(component="wz").item() - coupler) < EXACT
    assert np.abs(found["explicit"].values).max() == 0.0


def test_slider_crank_speed_and_acceleration_are_those_of_its_closed_form():
    system = ld.library.slider_crank().compile()
    p, w, alpha = numbers(system), 2.0, 3.0
    r, rod, e = p["crank"], p["rod"], p["offset"]
    state = ld.assemble(system, q={"A": 0.3}, v={"A": w})
    a = p["angle"] + 0.3

    def place(a):  # of the slider: r cos(a) + sqrt(rod^2 - (r sin(a) - e)^2)
        return r * np.cos(a) + np.sqrt(rod**2 - (r * np.sin(a) - e) ** 2 + 0j)

    first = place(a + 1e-30j).imag / 1e-30  # complex step: exact
    second = (place(a + 1e-4) - 2 * place(a) + place(a - 1e-4)).real / 1e-8
    k = ld.kinematics(system, state, a={"A": alpha})
    assert abs(k.ratios("A").sel(speed="D").item() - first) < EXACT
    slider = k.body("slider")
    assert abs(slider["velocity"].values[0] - first * w) < EXACT
    # second difference: rounding 1e-16 / 1e-8
    assert abs(slider["acceleration"].values[0] - (second * w**2 + first * alpha)) < 1e-6


@pytest.mark.parametrize("cut", ["A", "D"])
def test_accelerations_of_inputs_do_not_depend_on_which_joint_is_cut(cut):
    found = []
    for cuts in ([cut], ["C"]):
        system = ld.library.four_bar().compile(cuts=cuts)
        state = ld.assemble(system, q={"A": 0.4}, v={"A": 2.0})
        found.append(ld.kinematics(system, state, a={"A": 5.0}).body("rocker")["acceleration"].values)
    assert np.abs(found[0] - found[1]).max() < EXACT


def test_default_accelerations_are_those_of_the_actual_motion():
    """A rod released from the horizontal: 3 g / 2 at its end, textbook."""
    m = ld.Mechanism("rod", gravity=(0, -9.81, 0))
    m.add_body("rod", ld.Inertia.rod(mass=1.0, start=(0, 0, 0), end=(1, 0, 0)))
    m.add_joint("A", ld.Revolute(axis=(0, 0, 1)), "ground", "rod", at=(0, 0, 0))
    k = ld.kinematics(m.compile())
    assert abs(k.point("rod", (1, 0, 0))["acceleration"].values[1] + 1.5 * 9.81) < EXACT


def delta_jacobian(system, state):
    """Velocity of the platform per arm speed: (rod . velocity) = (rod . elbow velocity), for each arm."""
    k, rows, right = ld.kinematics(system, state), [], []
    p = numbers(system)
    z = p["elbow_z"] - p["down"]
    for n in (1, 2, 3):
        c, s = np.cos(2 * np.pi * (n - 1) / 3), np.sin(2 * np.pi * (n - 1) / 3)
        knee = k.point(f"arm{n}", (p["elbow"] * c, p["elbow"] * s, p["elbow_z"]))["position"].values
        ball = k.point("platform", (p["platform"] * c, p["platform"] * s, z))["position"].values
        rod, shoulder = ball - knee, np.array([p["base"] * c, p["base"] * s, 0.0])
        rows.append(rod)
        right.append(rod @ np.cross([-s, c, 0.0], knee - shoulder))
    return np.linalg.solve(np.array(rows), np.diag(right))


def test_delta_robot_jacobian_is_its_closed_form_and_the_platform_does_not_turn():
    system = ld.library.delta_robot().compile()
    state = ld.assemble(system, q={"A1": 0.2, "A2": -0.1, "A3": 0.05})
    J = ld.kinematics(system, state).jacobian("platform", wrt=["A1", "A2", "A3"]).values
    assert np.abs(J[:3]).max() < EXACT
    assert np.abs(J[3:] - delta_jacobian(system, state)).max() < EXACT


def leg_jacobian(system, state):
    """Leg speeds per twist of the platform (world origin): unit vectors of the legs and their moments."""
    k, rows = ld.kinematics(system, state), []
    for n in range(6):
        joints = system.mechanism.joints
        base, end = np.array(joints[f"U{n + 1}"].at, float), joints[f"S{n + 1}"].at
        ball = k.point("platform", end)["position"].values
        leg = (ball - base) / np.linalg.norm(ball - base)
        rows.append([*np.cross(ball - k.body("platform")["position"].values, leg), *leg])
    return np.array(rows)


def test_leg_speeds_of_a_stewart_platform_are_its_inverse_jacobian():
    system = ld.library.stewart_6ups().compile()
    legs = [f"P{k + 1}" for k in range(6)]
    state = ld.assemble(system, q=dict.fromkeys(legs, 0.05) | {"P2": 0.08, "P5": 0.02})
    J = ld.kinematics(system, state).jacobian("platform", wrt=legs).values
    assert np.abs(leg_jacobian(system, state) @ J - np.eye(6)).max() < EXACT


@pytest.mark.parametrize(("name", "inputs", "part"), [
    ("five_bar", ["A", "E"], ("BC", (0.5, -0.9, 0.3))), ("five_bar", ["C", "E"], "DC"), ("bennett", ["J1"], None),
    ("stephenson", ["A"], "EG"), ("rssr", ["A"], "rocker"), ("cardan_shaft", None, None),
])  # fmt: skip
def test_jacobians_are_derivatives_along_closed_poses(name, inputs, part):
    """Of positions and of rotations; inputs of tree and of cut joints, redundant rows, idle spins."""
    system = getattr(ld.library, name)().compile()
    if inputs is None:
        inputs = [next(iter(system.mechanism.joints))]
    inputs = [x if x in system.labels.scalars else next(iter(system.labels.scalars)) for x in inputs]
    body = part[0] if isinstance(part, tuple) else part or list(system.mechanism.bodies)[-1]
    point = part[1] if isinstance(part, tuple) else (0.2, 0.1, -0.3)
    state = ld.assemble(system)
    k = ld.kinematics(system, state)
    J, T = k.jacobian(body, point, wrt=inputs).values, k.jacobian(body, wrt=inputs).values
    here = {x: _value(system, state, x) for x in inputs}
    for n, label in enumerate(inputs):
        ends = []
        for sign in (1, -1):
            there = ld.assemble(system, q={**here, label: here[label] + sign * STEP}, near=state)
            ends.append(ld.kinematics(system, there))
        d = [e.point(body, point)["position"].values for e in ends]
        assert np.abs((d[0] - d[1]) / (2 * STEP) - J[:, n]).max() < DIFFERENCES
        R = [e.body(body)["rotation"].values for e in ends]
        W = (R[0] - R[1]) / (2 * STEP) @ k.body(body)["rotation"].values.T
        assert np.abs(np.array([W[2, 1], W[0, 2], W[1, 0]]) - T[:3, n]).max() < DIFFERENCES


def _value(system, state, label):
    return ld.results.InverseKinematics(system, (state,)).data["q"].sel(coordinate=label).item()


def test_a_driver_is_the_explicit_part_and_no_input():
    """A five-bar whose crank E is driven at 3 rad/s: with A at rest, E turns at 3 rad/s."""
    m = ld.library.five_bar()
    m.add_driver("turning", "E", "3*t")
    system = m.compile()
    k = ld.kinematics(system, ld.assemble(system, v={"A": 0.5}))
    ratios = k.ratios("A")
    assert abs(ratios.sel(speed="E").item()) < EXACT
    assert abs(ratios.sel(speed="E")["explicit"].item() - 3.0) < EXACT
    # velocity = J u + explicit part: that of the state itself
    J = k.jacobian("DC", wrt="A")
    body = k.body("DC")
    velocity = np.concatenate([body["angular_velocity"].values, body["velocity"].values])
    assert np.abs(J.values[:, 0] * 0.5 + J["explicit"].values - velocity).max() < EXACT
    with pytest.raises(ld.LoopdynError, match="not independent"):
        k.ratios(["A", "E"])


def test_a_wheel_rolls_by_its_radius():
    m = ld.Mechanism("wheel", gravity=(0, 0, -9.81))
    m.add_body("wheel", ld.Inertia.cylinder(mass=1.0, radius=0.3, length=0.1, axis=(0, 1, 0), at=(0, 0, 0.3)))
    m.add_joint("J", ld.Planar(normal=(0, 1, 0)), "ground", "wheel", at=(0, 0, 0.3))
    m.add_constraint("rolls", ld.constraints.Rolling(on="ground", body="wheel", normal=(0, 0, 1), through=(0, 0, 0),
                                         centre=(0, 0, 0.3), radius=0.3, axis=(0, 1, 0)))  # fmt: skip
    system = m.compile()
    J = ld.kinematics(system, ld.assemble(system)).jacobian("wheel", (0, 0, 0.3), wrt="J.angle").values[:, 0]
    assert np.abs(np.abs(J) - [0.3, 0.0, 0.0]).max() < EXACT


def test_numbers_are_in_declared_units():
    """Tip of a crank of 30 mm: 1 deg/s moves it by 30 pi/180 mm/s."""
    system = ld.load(MODELS / "four_bar_mm.yaml").compile()
    crank = float(system.mechanism.parameters["crank"])
    state = ld.assemble(system, q={"A": 30.0}, v={"A": 2.0})
    k = ld.kinematics(system, state)
    joint = system.joints["B"]
    tip = (system.reference_poses[joint.child][0] + system.reference_poses[joint.child][1] @ joint.M[0]) * 1000.0
    J = k.jacobian("crank", tip, wrt="A")
    assert np.linalg.norm(J.values) == pytest.approx(crank * np.pi / 180.0, rel=EXACT)
    assert J["component_units"].values.tolist() == ["mm/s"] * 3
    assert J["input_units"].values.tolist() == ["deg/s"]
    point = k.point("crank", tip)
    assert np.linalg.norm(point["position"].values) == pytest.approx(crank, rel=EXACT)
    assert np.linalg.norm(point["velocity"].values) == pytest.approx(2.0 * crank * np.pi / 180.0, rel=EXACT)
    assert k.body("crank")["angular_velocity"].values[2] == pytest.approx(2.0, rel=EXACT)
    assert (point["velocity"].attrs["units"], point["acceleration"].attrs["units"]) == ("mm/s", "mm/s^2")
    there = ld.inverse_kinematics(system, {"A": 30.0})
    assert there.data["q"].sel(coordinate="A").item() == pytest.approx(30.0, rel=EXACT)
    found = ld.workspace(system, ("crank", tip), inputs="A", over=(0, 40, 3))
    assert found.data["A"].values.tolist() == [0.0, 20.0, 40.0]
    assert np.linalg.norm(found.data["position"].values[1]) == pytest.approx(crank, rel=EXACT)


# ------------------------------------------------------------------------------------------------ singular poses


@pytest.mark.parametrize(("reach", "angle"), [(1.2, 0.0), (0.6, np.pi)])
def test_a_four_bar_with_crank_and_coupler_aligned_is_of_type_1_or_2_by_its_input(reach, angle):
    """Extended and folded: cosine theorem for the triangle of frame, rocker and crank plus or minus coupler."""
    system = ld.library.four_bar().compile()
    a = np.arccos((1.0 + reach**2 - 0.6**2) / (2 * reach)) - angle
    k = ld.kinematics(system, ld.assemble(system, q={"A": a - 1.0}))
    forward, back = k.singularity("A", "D"), k.singularity("D", "A")
    assert (forward.kind, forward.zlatanov) == ("type I", ("RI", "IO"))
    assert (back.kind, back.zlatanov) == ("type II", ("RO", "II"))
    assert forward.values["output locked"] < 1e-7 < forward.values["inputs locked"]
    with pytest.raises(ld.errors.SingularityError, match="singular pose of its input D"):
        k.ratios("D")


def test_five_bar_flat_poses_are_of_type_1_and_2():
    """Crank and coupler in line: the point C at rest, A free. Couplers in line: cranks locked, C moves."""
    system = ld.library.five_bar().compile()
    p = numbers(system)
    C = ("BC", (p["cx"], p["cy"], 0))
    beta = p["tilt"] - p["angle1"]  # angle from AB to BC at the reference pose
    straight = ld.kinematics(system, ld.assemble(system, q={"B": -beta, "A": 2.0}))
    assert straight.singularity(["A", "E"], C).kind == "type I"
    # shorter couplers can be in line: the angle from BC to CD at the reference pose is taken back by the pin C
    system = ld.library.five_bar().with_(coupler1=0.82, coupler2=0.82).compile()
    p = numbers(system)
    bend = np.arctan2(p["dy"] - p["cy"], p["dx"] - p["cx"]) - p["tilt"]
    flat = ld.kinematics(system, ld.assemble(system, q={"C": -bend, "A": -0.1}))
    found = flat.singularity(["A", "E"], ("BC", (p["cx"], p["cy"], 0)))
    assert found.kind == "type II"


def test_a_platform_of_similar_hexagons_turned_by_90_degrees_is_singular():
    """Fichter (1986): hexagons that face each other's gaps, platform turned by 90 degrees about its normal."""
    system = hexagons().compile()
    legs = [f"P{k + 1}" for k in range(6)]
    states = [turned(system, angle) for angle in (40, 90)]
    smallest = [np.linalg.svd(leg_jacobian(system, s), compute_uv=False)[-1] for s in states]
    assert smallest[1] < 1e-9 < 1e-3 < smallest[0]  # by the lines of the legs alone
    regular, found = (ld.kinematics(system, s).singularity(legs, "platform") for s in states)
    assert regular.kind == "regular"
    assert (found.kind, found.zlatanov) == ("type II", ("RO", "II"))
    assert found.values["inputs locked"] < 1e-7


def hexagon(radius, z, half):
    angles = np.radians([c + side * half for c in (0, 120, 240) for side in (-1, 1)])
    return [np.array((radius * np.cos(a), radius * np.sin(a), z)) for a in angles]


def hexagons():
    """Like the 6-UPS of the library, with points that are not rounded."""
    m = ld.Mechanism("hexagons", gravity=(0, 0, -9.81))
    m.add_body("platform", ld.Inertia.cylinder(mass=5.0, radius=0.4, length=0.05, axis=(0, 0, 1), at=(0, 0, 0.8)))
    for k, (a, b) in enumerate(zip(hexagon(0.6, 0.0, 15.0), hexagon(0.4, 0.8, 45.0), strict=True), 1):
        leg, side = b - a, np.cross(b - a, (0.1, 0.2, 1.0))
        m.add_body(f"lower{k}", ld.Inertia.rod(mass=1, start=tuple(a), end=tuple(a + 0.5 * leg), radius=0.02))
        m.add_body(f"upper{k}", ld.Inertia.rod(mass=1, start=tuple(a + 0.5 * leg), end=tuple(b), radius=0.01))
        axes = {"axis1": tuple(side), "axis2": tuple(np.cross(leg, side))}
        m.add_joint(f"U{k}", ld.Universal(**axes), "ground", f"lower{k}", at=tuple(a))
        m.add_joint(f"P{k}", ld.Prismatic(axis=tuple(leg)), f"lower{k}", f"upper{k}", at=tuple(a + 0.5 * leg))
        m.add_joint(f"S{k}", ld.Spherical(), f"upper{k}", "platform", at=tuple(b))
    return m


def turned(system, degrees):
    """Closed state with the platform turned about its normal."""
    goal = ld.Frame(rotation=ld.joints.Rotation(axis=(0, 0, 1), angle=np.radians(degrees)))
    return ld.inverse_kinematics(system, {"platform": goal}).state


def test_a_flat_parallelogram_gains_a_freedom():
    """All four pins of a parallelogram in line: its change point, where the constraints lose rank."""
    m = ld.library.four_bar().with_(crank=0.5, rocker=0.5, coupler=1.0)
    system = m.compile()
    state = ld.assemble(system, q={"A": -1.0})
    k = ld.kinematics(system, state)
    assert np.abs(ld.tree.constraint_equations(system, state)[0]).max() < 1e-12
    found = k.singularity("A", "D")
    assert "IIM" in found.zlatanov
    assert (found.freedoms, found.freedoms_here) == (1, 2)
    assert found.values["constraints"] < 1e-7


def test_the_unit_of_length_of_singular_values_is_stated_and_changes_no_rank():
    system = ld.library.slider_crank().compile()
    k = ld.kinematics(system)
    one, other = k.singularity("A", "D"), k.singularity("A", "D", length=10.0)
    assert one.length == pytest.approx(system.size)
    assert other.length == 10.0
    assert one.kind == other.kind == "regular"
    assert "unit of length 10 m" in str(other)


# ------------------------------------------------------------------------------------------------------ refusals


def test_freedoms_that_are_left_are_named():
    system = ld.library.five_bar().compile()
    with pytest.raises(ld.LoopdynError, match=r"A does not determine .* 1 degree of freedom is left, in .*E"):
        ld.kinematics(system).jacobian("DC", wrt="A")
    # ... and what they do not move is answered
    assert ld.kinematics(system).jacobian("AB", wrt="A").sel(component="wz").item() == pytest.approx(1.0)


def test_names_that_do_not_exist_come_with_the_nearest_one():
    k = ld.kinematics(ld.library.four_bar().compile())
    for call in (lambda: k.body("crnk"), lambda: k.point("crnk", (0, 0, 0)), lambda: k.jacobian("crnk", wrt="A")):
        with pytest.raises(ld.LoopdynError, match="Did you mean 'crank'"):
            call()
    with pytest.raises(ld.LoopdynError, match="there is no input 'Z'"):
        k.ratios("Z")


def test_an_open_state_is_refused():
    system = ld.library.four_bar().compile()
    with pytest.raises(ld.errors.AssemblyError, match="open"):
        ld.kinematics(system, system.state(q={"A": 0.3}))


def test_a_large_ladder_is_answered_by_sparse_steps():
    """All legs of the ladder stay parallel: their speeds equal those of the first."""
    system = ld.library.ladder(60).compile()
    assert takes_sparse_steps(system)
    k = ld.kinematics(system)
    found = k.jacobian("leg50", wrt=["U0.1", "U0.2"]).values
    # sparse steps leave residuals of rounding times the length of the ladder
    assert np.abs(found[:3] - k.jacobian("leg0", wrt=["U0.1", "U0.2"]).values[:3]).max() < 1e-8
    with pytest.raises(ld.LoopdynError, match=r"U0\.1 does not determine .* left"):
        k.jacobian("leg50", wrt="U0.1")
