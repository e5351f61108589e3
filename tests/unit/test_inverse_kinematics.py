"""`ld.inverse_kinematics` and `ld.workspace` against closed forms of five-bar, delta robot and 6-UPS."""

import itertools

import numpy as np
import pytest
from tests.unit.test_kinematics import hexagons, numbers
from tests.unit.test_machines import delta_arms

import loopdyn as ld

# Goals are met to CLOSED = 1e-12 of the size; joint angles follow with condition numbers below 100.
EXACT = 1e-9


@pytest.fixture(scope="module")
def five_bar():
    system = ld.library.five_bar().compile()
    p = numbers(system)
    return system, p, ("BC", (p["cx"], p["cy"], 0))


def crank_angles(centre, crank, coupler, place):
    """Both crank angles that put the end of the coupler at a place: cosine theorem."""
    d = np.asarray(place)[:2] - centre
    r = np.hypot(*d)
    bend = np.arccos((crank**2 + r**2 - coupler**2) / (2 * crank * r))
    return np.arctan2(d[1], d[0]) + bend, np.arctan2(d[1], d[0]) - bend


def same_angle(a, b):
    return abs((a - b + np.pi) % (2 * np.pi) - np.pi) < EXACT


def test_all_four_solutions_of_a_five_bar_are_those_of_the_cosine_theorem(five_bar):
    system, p, C = five_bar
    place = (0.45, -0.85, 0.0)
    found = ld.inverse_kinematics(system, {C: place}, all=True)
    assert found.all
    assert len(found) == 4
    first = crank_angles((0, 0), p["crank1"], p["coupler1"], place)
    second = crank_angles((p["frame"], 0), p["crank2"], p["coupler2"], place)
    for a, e in itertools.product(first, second):
        q = [found.data["q"].sel(coordinate=label).values for label in ("A", "E")]
        pairs = [(x + p["angle1"], y + p["angle2"]) for x, y in zip(*q, strict=True)]
        assert sum(same_angle(x, a) and same_angle(y, e) for x, y in pairs) == 1
    for state in found:
        assert np.abs(ld.kinematics(system, state).point(*C)["position"].values - place).max() < EXACT


def test_the_delta_robot_has_eight_solutions_and_the_nearest_one_is_that_of_its_closed_form():
    system = ld.library.delta_robot().compile()
    p = numbers(system)
    z = p["elbow_z"] - p["down"]
    shift = np.array([0.05, 0.02, 0.03])
    goal = {"platform": ld.Frame(position=tuple(shift))}
    one, found = ld.inverse_kinematics(system, goal), ld.inverse_kinematics(system, goal, all=True)
    arms = one.data["q"].sel(coordinate=["A1", "A2", "A3"]).values[0]
    assert np.abs(arms - (np.array(delta_arms(shift + [0, 0, z])) - p["angle"])).max() < EXACT
    assert found.all
    assert len(found) == 8
    values = found.data["q"].sel(coordinate=["A1", "A2", "A3"]).values
    assert all(len(np.unique(column.round(6))) == 2 for column in values.T)  # two for each arm, in all combinations
    assert len(np.unique(values.round(6), axis=0)) == 8


def test_leg_lengths_of_a_stewart_platform_are_distances():
    system = hexagons().compile()
    angle, shift = 0.3, np.array([0.05, -0.1, 0.1])
    R = np.array([[np.cos(angle), -np.sin(angle), 0], [np.sin(angle), np.cos(angle), 0], [0, 0, 1.0]])
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = R, shift
    found = ld.inverse_kinematics(system, {"platform": pose})
    joints = system.mechanism.joints
    for k in range(1, 7):
        base, ball = (np.array(joints[f"{j}{k}"].at, float) for j in "US")
        length = np.linalg.norm(R @ ball + shift - base) - np.linalg.norm(ball - base)
        assert abs(found.data["q"].sel(coordinate=f"P{k}").item() - length) < EXACT


def test_states_that_are_found_know_the_labels_of_their_system(five_bar):
    system, _, C = five_bar
    target = {C: (0.45, -0.85, 0)}
    for found in (ld.inverse_kinematics(system, target), ld.inverse_kinematics(system, target, all=True)):
        for n, state in enumerate(found):
            assert state["A"] == found.data["q"].sel(coordinate="A").values[n]


def test_a_path_is_followed_on_one_branch_and_meets_every_target(five_bar):
    system, _, C = five_bar
    angles = np.linspace(0.0, 2 * np.pi, 41)
    places = [(0.45 + 0.1 * np.cos(x), -0.8 + 0.1 * np.sin(x), 0.0) for x in angles]
    found = ld.inverse_kinematics(system, [{C: place} for place in places])
    assert found.status == "complete"
    for state, place in zip(found, places, strict=True):
        assert np.abs(ld.kinematics(system, state).point(*C)["position"].values - place).max() < EXACT
    assert np.abs(np.diff(found.data["q"].values, axis=0)).max() < 0.2  # no jump to another branch
    assert np.abs(found.states[-1].q - found.states[0].q).max() < EXACT


def test_a_path_that_leaves_the_reach_stops_and_says_how_near_it_comes(five_bar):
    system, p, C = five_bar
    places = [(0.5, y, 0.0) for y in np.linspace(-0.72, -1.42, 15)]
    found = ld.inverse_kinematics(system, [{C: place} for place in places])
    reach = np.sqrt((p["crank1"] + p["coupler1"]) ** 2 - 0.25)  # on the line of symmetry
    assert found.status == "stopped"
    assert len(found) == sum(-y < reach for _, y, _ in places)
    assert "away" in found.message


def test_a_target_out_of_reach_is_refused_with_the_distance_of_the_nearest_pose(five_bar):
    """On the line of symmetry both cranks are extended: distance by Pythagoras."""
    system, p, C = five_bar
    with pytest.raises(ld.errors.AssemblyError, match="nearest closed pose found") as told:
        ld.inverse_kinematics(system, {C: (0.5, -2.0, 0.0)})
    missing = 2.0 - np.sqrt((p["crank1"] + p["coupler1"]) ** 2 - 0.25)
    assert f"{missing:.4g} m away" in str(told.value)
    place = ld.kinematics(system, told.value.nearest).point(*C)["position"].values
    assert abs(np.linalg.norm(place - [0.5, -2.0, 0.0]) - missing) < 1e-6  # least squares: root of rounding
    assert "loop" in str(told.value)


def test_joint_limits_are_kept_and_named():
    m = ld.library.five_bar()
    m.joints["A"] = m.joints["A"].model_copy(update={"limits": (-0.2, 0.2)})
    system = m.compile()
    p = numbers(system)
    C = ("BC", (p["cx"], p["cy"], 0))
    with pytest.raises(ld.errors.AssemblyError, match=r"limits.*A = 0\.31.*limits -0\.2 rad to 0\.2 rad"):
        ld.inverse_kinematics(system, {C: (0.45, -0.85, 0.0)})
    free = ld.inverse_kinematics(system, {C: (0.45, -0.85, 0.0)}, limits=False)
    assert abs(free.data["q"].sel(coordinate="A").item()) > 0.2


def test_a_redundant_mechanism_meets_its_target_at_a_limit_and_says_so():
    """Three links in a plane, a point as target: the free rotation keeps the middle pin at its limit."""
    m = ld.Mechanism("arm", gravity=(0, -9.81, 0))
    for k in range(3):
        m.add_body(f"link{k}", ld.Inertia.rod(mass=1.0, start=(k, 0, 0), end=(k + 1, 0, 0), radius=0.05))
        limits = {"limits": (-0.4, 0.4)} if k == 1 else {}
        parent = "ground" if k == 0 else f"link{k - 1}"
        m.add_joint("ABC"[k], ld.Revolute((0, 0, 1)), parent, f"link{k}", at=(k, 0, 0), **limits)
    system = m.compile()
    near = system.state(q={"A": 0.2, "B": 0.1, "C": 0.3})
    found = ld.inverse_kinematics(system, {("link2", (3, 0, 0)): (1.6, 1.6, 0.0)}, near=near)
    assert abs(found.data["q"].sel(coordinate="B").item()) < 0.4 + 1e-8
    place = ld.kinematics(system, found.state).point("link2", (3, 0, 0))["position"].values
    assert np.abs(place - [1.6, 1.6, 0]).max() < EXACT


def test_joint_coordinates_are_targets_too(five_bar):
    system, _, _ = five_bar
    found = ld.inverse_kinematics(system, {"C": 0.1, "A": 0.2})
    assert found.data["q"].sel(coordinate=["A", "C"]).values[0] == pytest.approx([0.2, 0.1], abs=EXACT)


@pytest.mark.parametrize(("targets", "words"), [
    ({}, "no target"), ([], "no target"), ({"BX": (0, 0, 0)}, "no body or joint"), ({"BC": (0, 0)}, "not clear"),
    ({"A": "x"}, "finite number"), ({"ground": (0, 0, 0)}, "base"), ({"BC": np.zeros((4, 4))}, "no pose"),
])  # fmt: skip
def test_wrong_targets_are_told_in_words(five_bar, targets, words):
    with pytest.raises(ld.LoopdynError, match=words):
        ld.inverse_kinematics(five_bar[0], targets)


def test_infinitely_many_solutions_are_not_listed(five_bar):
    with pytest.raises(ld.LoopdynError, match="infinitely many"):
        ld.inverse_kinematics(five_bar[0], {"A": 0.1}, all=True)


# ------------------------------------------------------------------------------------------------------ workspace


def test_singular_curves_of_a_five_bar_are_circles_about_its_pivots(five_bar):
    """Type I: crank and coupler in line, so that C is at their sum or difference from the pivot."""
    system, p, C = five_bar
    found = ld.workspace(system, C, inputs=["A", "E"], over=[(-1.0, 2.5, 12), (-1.0, 1.0, 9)])
    assert found.data["reached"].values.all()
    ends = (p["coupler1"] - p["crank1"], p["coupler1"] + p["crank1"])
    points = [x for x in found.singular if x.kind == "type I"]
    assert len(points) > 5
    for x in points:
        r = [np.linalg.norm(x.position), np.linalg.norm(x.position - [p["frame"], 0, 0])]
        assert min(abs(a - b) for a in r for b in ends) < 1e-8  # located to 1e-10 of a step
        assert ld.kinematics(system, x.state).singularity(["A", "E"], C).values["output locked"] < 1e-6


def test_positions_of_a_grid_are_those_of_the_closed_form(five_bar):
    system, p, C = five_bar
    data = ld.workspace(system, C, inputs=["A", "E"], over=[(-0.4, 0.4, 3), [0.0, 0.3]]).data
    for a, e in itertools.product(data["A"].values, data["E"].values):
        place = data["position"].sel(A=a, E=e).values
        assert any(same_angle(a + p["angle1"], x) for x in crank_angles((0, 0), p["crank1"], p["coupler1"], place))
        assert any(same_angle(e + p["angle2"], x) for x in crank_angles((1, 0), p["crank2"], p["coupler2"], place))


def test_a_rocker_reaches_its_limit_positions_and_no_further():
    """Crank and coupler extended or folded: cosine theorem at the pivot of the rocker."""
    system = ld.library.four_bar().compile()
    p = numbers(system)
    found = ld.workspace(system, "rocker", inputs="D", over=(-0.5, 1.2, 35))
    angles = [np.pi - np.arccos((1 + 0.36 - r**2) / 1.2) for r in (1.2, 0.6)]
    start = np.arctan2(p["cy"], p["cx"] - p["frame"])
    limits = sorted(a - start for a in angles)
    inside = (found.data["D"].values > limits[0]) & (found.data["D"].values < limits[1])
    assert np.array_equal(found.data["reached"].values, inside)
    assert sorted(x.inputs["D"] for x in found.singular) == pytest.approx(limits, abs=1e-8)
    assert {x.kind for x in found.singular} == {"type II"}
    reasons = set(found.data["reason"].values[~inside])
    assert reasons == {"dead point", "not connected to points that are reached"}
    assert "dead point" in str(found)


def test_a_workspace_is_drawn_and_ends_at_joint_limits():
    m = ld.library.four_bar()
    m.joints["D"] = m.joints["D"].model_copy(update={"limits": (-0.05, 0.3)})
    found = ld.workspace(m.compile(), "coupler", inputs="A", over=(0.0, 3.0, 16))
    assert "limit of D" in set(found.data["reason"].values)
    assert found.plot().axes[0].get_xlabel() == "x in m"


@pytest.mark.parametrize("over", [(0, 1), "A", [(0, 1, 3), (0, 1, 3)], (0, 1, 1e9), None])
def test_ranges_that_are_not_clear_are_told_in_words(over):
    with pytest.raises(ld.LoopdynError, match="Give"):
        ld.workspace(ld.library.four_bar().compile(), "coupler", inputs="A", over=over)
