"""`drive` against closed forms that are written here: positions, derivatives, dead, turning and change points."""

from __future__ import annotations

from math import acos, cos, pi, sin, sqrt

import matplotlib
import numpy as np
import pytest

import loopdyn as ld
from loopdyn.quantities import profiles

matplotlib.use("Agg")

PIN = ld.Revolute(axis=(0, 0, 1))

# Positions: rounding of a few operations with numbers of the order of one, 1e-15, times a condition of ten or so.
POSITION = 1e-12
# Closed forms are differentiated here by seven-point differences of step 5e-3: their error is h^6 = 2e-14 times a
# seventh (eighth) derivative over 140 (560), and rounding, some 1e-15/h (6e-15/h^2, the larger one).
H, FIRST, SECOND = 5e-3, 1e-11, 1e-9


def derivatives(function, x):
    """First and second derivative of a function of arrays, by seven points."""
    f = [function(x + k * H) for k in range(-3, 4)]
    first = sum(c * y for c, y in zip((-1, 9, -45, 0, 45, -9, 1), f, strict=True)) / (60 * H)
    return first, sum(c * y for c, y in zip((2, -27, 270, -490, 270, -27, 2), f, strict=True)) / (180 * H * H)


def circles(p, r, q, s, side):
    """Where circles about p and q of radius r and s meet, on the left (1) or right (-1) of the line from p to q."""
    d = q - p
    size = np.hypot(d[0], d[1])
    along = (r**2 - s**2 + size**2) / (2 * size)
    across = side * np.sqrt(r**2 - along**2)
    return p + (along * d + across * np.array([-d[1], d[0]])) / size


def agree(drive, label, closed_form, wrapped=True):
    """Coordinate, ratio and second ratio of a single input against a closed form of its absolute angle."""
    k = [str(x) for x in drive.data["speed"].values].index(label)
    s = drive.data["parameter"].values
    found = drive.data["q"].sel(coordinate=label).values
    wrong = found - (closed_form(s) - closed_form(np.zeros(1)))
    if wrapped:
        wrong = (wrong + pi) % (2 * pi) - pi
    assert np.abs(wrong).max() < POSITION
    first, second = derivatives(lambda x: np.unwrap(closed_form(x)) if wrapped else closed_form(x), s)
    if wrapped:  # an angle that jumps by a turn between the seven points
        first_ok = np.abs(first) < 100
        assert first_ok.mean() > 0.95
    else:
        first_ok = np.ones(len(s), bool)
    assert np.abs(drive.data["v"].values[:, k] - first)[first_ok].max() < FIRST
    assert np.abs(drive.data["a"].values[:, k] - second)[first_ok].max() < SECOND


def four_bar_angles(theta, frame=1.0, crank=0.3, coupler=0.9, rocker=0.6):
    """Angles of coupler and rocker, and the pin between them, for crank angles."""
    B = crank * np.array([np.cos(theta), np.sin(theta)])
    D = np.array([frame + 0 * theta, 0 * theta])
    C = circles(B, coupler, D, rocker, 1)
    return np.arctan2(*(C - B)[::-1]), np.arctan2(*(C - D)[::-1]), B, C


# ---------------------------------------------------------------------------------------------- closed forms


def test_a_turn_of_the_four_bar_is_that_of_two_circles():
    turn = ld.drive(ld.library.four_bar().compile(), "A", (0, 2 * pi))
    assert turn.status == "complete"
    assert turn.steps == 361
    agree(turn, "D", lambda s: four_bar_angles(1 + s)[1])
    agree(turn, "B", lambda s: four_bar_angles(1 + s)[0] - 1 - s)
    agree(turn, "C", lambda s: four_bar_angles(1 + s)[1] - four_bar_angles(1 + s)[0])  # a cut joint
    # full turns are counted, of cut joints as well
    assert turn.data["q"].sel(coordinate="B").values[-1] == pytest.approx(-2 * pi, abs=POSITION)


def test_the_coupler_curve_of_the_four_bar():
    turn = ld.drive(ld.library.four_bar().compile(), "A", (0, 6, 91))
    s = turn.data["parameter"].values
    tilt0, _, B0, _ = four_bar_angles(np.array([1.0]))
    at = B0[:, 0] + 0.5 * np.array([cos(tilt0[0] + 0.4), sin(tilt0[0] + 0.4)])

    def curve(x):
        tilt, _, B, _ = four_bar_angles(1 + x)
        return (B + 0.5 * np.array([np.cos(tilt + 0.4), np.sin(tilt + 0.4)])).T

    path = turn.point("coupler", at=(*at, 0))
    first, second = derivatives(curve, s)
    np.testing.assert_allclose(path["position"].values[:, :2], curve(s), atol=POSITION)
    np.testing.assert_allclose(path["velocity"].values[:, :2], first, atol=FIRST)
    np.testing.assert_allclose(path["acceleration"].values[:, :2], second, atol=SECOND)


def test_a_turn_of_the_slider_crank():
    turn = ld.drive(ld.library.slider_crank().compile(), "A", (0, 2 * pi))

    def slide(s):
        return 0.15 * np.cos(0.5 + s) + np.sqrt(0.45**2 - (0.15 * np.sin(0.5 + s) - 0.02) ** 2)

    agree(turn, "D", slide, wrapped=False)
    # dead centres of the slider: crank and rod in line, stretched and folded, above a slide 0.02 off
    centres = (np.arcsin(0.02 / 0.6) - 0.5 + 2 * pi, pi + np.arcsin(0.02 / 0.3) - 0.5)
    found = {e.value for e in turn.events if e.label == "D"}
    assert len(found) == 2
    assert max(min(abs(x - y) for y in centres) for x in found) < 1e-10


def test_a_turn_of_the_quick_return():
    turn = ld.drive(ld.library.quick_return().compile(), "A", (0, 2 * pi))

    def arm(s):
        return np.arctan2(0.25 * np.sin(0.7 + s) + 0.1, 0.25 * np.cos(0.7 + s))

    def block(s):
        return np.hypot(0.25 * np.cos(0.7 + s), 0.25 * np.sin(0.7 + s) + 0.1)

    def ram(s):
        return 0.2 * np.cos(arm(s)) + np.sqrt(0.6**2 - (0.2 * np.sin(arm(s))) ** 2)

    agree(turn, "D", arm)
    agree(turn, "C", block, wrapped=False)
    agree(turn, "G", ram, wrapped=False)
    assert turn.data["q"].sel(coordinate="D").values[-1] == pytest.approx(2 * pi, abs=POSITION)  # the arm turns fully
    # quick return: the ram turns where the arm is along the slide, that is where the crank pin is 0.1 below
    down = np.arcsin(-0.1 / 0.25)
    expected = sorted((x - 0.7) % (2 * pi) for x in (down, pi - down))
    found = [e.value for e in turn.events if e.label == "G"]
    np.testing.assert_allclose(found, expected, atol=1e-10)


def test_a_turn_of_stephensons_six_bar():
    turn = ld.drive(ld.library.stephenson().compile(), "A", (0, 2 * pi))

    def rocker(s):
        tilt, _, B, _ = four_bar_angles(1 + s)
        E = B + 0.5 * np.array([np.cos(tilt), np.sin(tilt)]) + 0.4 * np.array([-np.sin(tilt), np.cos(tilt)])
        F = np.array([1.5 + 0 * s, 1.0 + 0 * s])
        G = circles(E, 1.2, F, 0.7, 1)
        return np.arctan2(*(G - F)[::-1])

    agree(turn, "F", rocker)


# -------------------------------------------------------------------------- dead points, turning points, change points


def linkage(frame, crank, coupler, rocker, angle, side=1):
    """A four-bar with its crank at an angle at the reference pose."""
    B = crank * np.array([cos(angle), sin(angle)])
    D = np.array([frame, 0.0])
    C = circles(B, coupler, D, rocker, side)
    m = ld.Mechanism("linkage")
    for name in ("crank", "coupler", "rocker"):
        m.add_body(name, ld.Inertia.planar(mass=1.0, com=(0, 0, 0), izz=0.1))
    m.add_joint("A", PIN, "ground", "crank", at=(0, 0, 0))
    m.add_joint("B", PIN, "crank", "coupler", at=(*B, 0))
    m.add_joint("C", PIN, "coupler", "rocker", at=(*C, 0))
    m.add_joint("D", PIN, "ground", "rocker", at=(*D, 0))
    return m


def stretched(frame, crank, far):
    """Crank angle at which pin B is `far` from the rocker's pivot: coupler and rocker in line."""
    return acos((frame**2 + crank**2 - far**2) / (2 * frame * crank))


@pytest.mark.parametrize(
    ("lengths", "far"),
    [
        ((1.0, 0.9, 0.4, 0.8), 1.2),  # Grashof, the coupler is shortest: double rocker
        ((1.6, 0.9, 0.7, 0.8), 1.5),  # not Grashof: triple rocker
    ],
)
def test_dead_points_of_rockers_are_where_coupler_and_rocker_are_in_line(lengths, far):
    frame, crank, coupler, _ = lengths
    limit = stretched(frame, crank, far)
    start = 0.7 * limit
    system = linkage(*lengths, start).compile()
    up = ld.drive(system, "A", (0, 2 * pi))
    assert up.status == "stopped"
    assert up.limit.kind == "dead point"
    assert up.limit.inputs["A"] == pytest.approx(limit - start, abs=1e-10)
    # located: the pose is closed, and the coupler's pin is on the line from B to D
    B = crank * np.array([cos(limit), sin(limit)])
    d = np.array([frame, 0.0]) - B
    C = B + coupler * d / np.linalg.norm(d)
    motion = ld.tree.body_motion(system, up.limit.state)
    at = system.mechanism.resolver().vector(system.mechanism.joints["C"].at, "length", "", ())
    k = system.bodies.index("coupler")
    np.testing.assert_allclose((motion.position[k] + motion.rotation[k] @ at)[:2], C, atol=1e-10)
    # what was computed is kept, up to the limit, and nothing is made up
    s = up.data["parameter"].values
    assert 0 < limit - start - s[-1] < 2 * pi / 360
    assert np.isfinite(up.data["v"].values).all()
    assert "cannot go on" in up.message
    assert "there B, D, C can move without it" in up.message


def test_the_slider_locks_at_its_dead_centres():
    system = ld.library.slider_crank().compile()
    reference = 0.15 * cos(0.5) + sqrt(0.45**2 - (0.15 * sin(0.5) - 0.02) ** 2)
    out = ld.drive(system, "D", (0, 0.1))
    assert out.limit.kind == "dead point"
    assert out.limit.value == pytest.approx(sqrt(0.6**2 - 0.02**2) - reference, abs=1e-12)
    back = ld.drive(system, "D", (0, -1, 101))
    assert back.limit.value == pytest.approx(sqrt(0.3**2 - 0.02**2) - reference, abs=1e-12)


def test_turning_points_of_the_rocker_are_where_crank_and_coupler_are_in_line():
    turn = ld.drive(ld.library.four_bar().compile(), "A", (0, 2 * pi, 73))
    out = acos((1 + 1.2**2 - 0.6**2) / (2 * 1.2))  # crank angle, coupler stretched; folded: opposite the crank
    back = acos((1 + 0.6**2 - 0.6**2) / (2 * 0.6)) + pi
    expected = sorted((x - 1) % (2 * pi) for x in (out, back))
    found = [e for e in turn.events if e.label == "D"]
    np.testing.assert_allclose([e.value for e in found], expected, atol=1e-10)
    assert {e.kind for e in found} == {"turning point"}
    assert "its ratio to A is zero" in found[0].text


@pytest.mark.parametrize("values", [(0, 2 * pi), tuple(np.linspace(0, 2 * pi, 361) + 0.0)])
def test_a_parallelogram_keeps_to_its_branch_through_change_points(values):
    angle = 1.0
    system = linkage(2.0, 1.0, 2.0, 1.0, angle).compile()
    turn = ld.drive(system, "A", values if len(values) == 2 else list(values))
    assert turn.status == "complete"
    assert [e.kind for e in turn.events] == ["change point"] * 2
    np.testing.assert_allclose([e.value for e in turn.events], [pi - angle, 2 * pi - angle], atol=1e-10)
    assert "branches cross" in turn.events[0].text
    s = turn.data["parameter"].values
    np.testing.assert_allclose(turn.data["q"].sel(coordinate="D"), s, atol=POSITION)
    # 1e-9: poses 0.0035 rad beside the change point have a condition of 1e3, squared for second derivatives
    np.testing.assert_allclose(turn.data["v"].sel(speed="D"), 1, atol=1e-9)


def test_steps_in_a_change_point_itself_are_marked_and_on_the_branch():
    system = linkage(2.0, 1.0, 2.0, 1.0, 1.0).compile()
    near = pi - 1 + np.array([-0.2, -0.1, 0.0, 1e-9, 1e-4, 0.1, 0.2])
    found = ld.drive(system, "A", list(near))
    assert found.data["regular"].values.tolist() == [True, True, False, False, False, True, True]
    np.testing.assert_allclose(found.data["q"].sel(coordinate="D"), near, atol=POSITION)
    np.testing.assert_allclose(found.ratio("D"), 1, atol=1e-9)
    np.testing.assert_allclose(found.data["a"], 0, atol=1e-7)
    assert [e.kind for e in found.events] == ["change point"]


def test_an_antiparallelogram_keeps_to_its_branch_too():
    angle = 1.0
    lengths = (2.0, 1.0, 2.0, 1.0)
    system = linkage(*lengths, angle, side=-1).compile()
    turn = ld.drive(system, "A", (0, 3.0, 301))
    s = turn.data["parameter"].values
    # tan(D/2) of the crossed linkage: (frame - crank)/(frame + crank) ... by circles, the side changing at pi
    C = circles(np.array([np.cos(angle + s), np.sin(angle + s)]), 2.0, np.array([2 + 0 * s, 0 * s]), 1.0, -1.0)
    after = circles(np.array([np.cos(angle + s), np.sin(angle + s)]), 2.0, np.array([2 + 0 * s, 0 * s]), 1.0, 1.0)
    C = np.where(angle + s < pi, C, after)
    expected = np.unwrap(np.arctan2(C[1], C[0] - 2))
    found = turn.data["q"].sel(coordinate="D").values
    # circles that nearly touch have the root of rounding as their error: left out next to the change point
    clear = np.abs(angle + s - pi) > 0.02
    wrong = (found - (expected - expected[0]) + pi) % (2 * pi) - pi
    assert np.abs(wrong[clear]).max() < 1e-11
    assert [e.kind for e in turn.events if e.kind != "turning point"] == ["change point"]


# ---------------------------------------------------------------------------------------- inputs of several kinds


def test_a_motion_in_time_gives_velocities_and_accelerations_in_time():
    m = ld.library.slider_crank()
    profile = profiles.Harmonic(distance=2.0, time=0.5)
    moved = ld.drive(m.compile(), "A", profile)
    t = moved.data["time"].values
    np.testing.assert_allclose(t, np.linspace(0, 0.5, 361))

    def slide(time):
        s = 0.5 + (1 - np.cos(2 * pi * np.clip(time, 0, 0.5)))
        return 0.15 * np.cos(s) + np.sqrt(0.45**2 - (0.15 * np.sin(s) - 0.02) ** 2)

    inside = slice(12, -12)  # acceleration jumps at both ends, which differences over 0.015 s must not see
    # h^6 times the seventh (eighth) power of twice the frequency of 2 pi, over 140 (560)
    first, second = derivatives(slide, t)
    found = moved.data["q"].sel(coordinate="D").values
    np.testing.assert_allclose(found, slide(t) - slide(0.0), atol=POSITION)
    np.testing.assert_allclose(moved.data["v"].sel(speed="D").values[inside], first[inside], rtol=0, atol=1e-8)
    np.testing.assert_allclose(moved.data["a"].sel(speed="D").values[inside], second[inside], rtol=0, atol=1e-6)
    # the ratio is that of geometry
    turned = ld.drive(m.compile(), "A", list(moved.data["q"].sel(coordinate="A").values[::40]))
    np.testing.assert_allclose(moved.ratio("D").values[::40], turned.ratio("D").values, atol=1e-11)


def test_a_motion_beyond_a_dead_point_stops_in_time():
    system = ld.library.slider_crank().compile()
    moved = ld.drive(system, "D", "0.1*t", t_eval=np.linspace(0, 1, 51))
    reference = 0.15 * cos(0.5) + sqrt(0.45**2 - (0.15 * sin(0.5) - 0.02) ** 2)
    assert moved.limit.kind == "dead point"
    assert moved.limit.value == pytest.approx(10 * (sqrt(0.6**2 - 0.02**2) - reference), abs=1e-10)
    assert "t = 0.21" in moved.limit.text


def test_two_inputs_of_a_five_bar():
    system = ld.library.five_bar().compile()
    both = ld.drive(system, {"A": (0, 1, 51), "E": (0, -2, 51)})

    def elbow(a, e):
        B = 0.4 * np.array([np.cos(-2.6 + a), np.sin(-2.6 + a)])
        D = np.array([1 + 0.4 * np.cos(-0.9 + e), 0.4 * np.sin(-0.9 + e)])
        C = circles(B, 0.9, D, 0.9, -1)
        return np.arctan2(*(C - B)[::-1]) - a

    s = both.data["parameter"].values
    expected = np.unwrap(elbow(s, -2 * s))
    found = both.data["q"].sel(coordinate="B").values
    np.testing.assert_allclose(found, expected - expected[0], atol=POSITION)
    k = list(both.data["speed"].values).index("B")
    first, second = derivatives(lambda x: np.unwrap(elbow(x, -2 * x)), s)
    np.testing.assert_allclose(both.data["v"].values[:, k], first, atol=FIRST)
    np.testing.assert_allclose(both.data["a"].values[:, k], second, atol=SECOND)
    for n, move in enumerate((lambda x: (x, -2 * s), lambda x: (s, x))):
        at = (s, -2 * s)[n]
        first, second = derivatives(lambda x, move=move: np.unwrap(elbow(*move(x))), at)
        np.testing.assert_allclose(both.data["ratio"].values[:, k, n], first, atol=FIRST)
        np.testing.assert_allclose(both.data["ratio2"].values[:, k, n, n], second, atol=SECOND)
    # the chain rule ties all second derivatives together, the mixed one included
    u1 = np.array([1.0, -2.0])
    chained = np.einsum("ncij,i,j->nc", both.data["ratio2"].values, u1, u1)
    np.testing.assert_allclose(chained, both.data["a"].values, atol=1e-12)


def test_drivers_of_the_model_stand_still_in_a_range_and_move_in_time():
    m = ld.library.five_bar()
    m.add_driver("other", "E", "-0.3 - 2*t")
    system = m.compile()
    free = ld.library.five_bar().compile()
    still = ld.drive(system, "A", (0, 0.5, 11))
    same = ld.drive(free, {"A": (0, 0.5, 11), "E": (-0.3, -0.3, 11)})
    np.testing.assert_allclose(still.data["q"], same.data["q"], atol=POSITION)
    np.testing.assert_allclose(still.data["v"] / 2, same.data["v"], atol=1e-11)  # over the whole way of 0.5 rad
    np.testing.assert_allclose(still.data["a"] / 4, same.data["a"], atol=1e-11)
    moving = ld.drive(system, "A", "t", t_eval=np.linspace(0, 0.5, 11))
    both = ld.drive(free, {"A": (0, 0.5, 11), "E": (-0.3, -1.3, 11)})
    np.testing.assert_allclose(moving.data["q"], both.data["q"], atol=POSITION)
    np.testing.assert_allclose(moving.data["v"] / 2, both.data["v"], atol=1e-11)
    np.testing.assert_allclose(moving.data["a"] / 4, both.data["a"], atol=1e-11)


def test_results_do_not_depend_on_which_joint_is_cut():
    turns = [ld.drive(ld.library.four_bar().compile(cuts=[c]), "A", (0, 6, 25)) for c in "ABCD"]
    for turn in turns:
        for name, dim in (("q", "coordinate"), ("v", "speed"), ("a", "speed")):
            one, other = turn.data[name].sel({dim: list("ABCD")}), turns[2].data[name].sel({dim: list("ABCD")})
            np.testing.assert_allclose(one, other, atol=1e-11)


def test_an_idle_rod_does_not_keep_a_spatial_linkage_from_being_driven():
    system = ld.library.rssr().compile()
    turn = ld.drive(system, "A", (0, 2 * pi, 91))
    assert turn.status == "complete"
    assert "Idle:" in turn.message
    # the rod keeps its length: the loop is closed at every step
    for k in (0, 30, 90):
        assert np.abs(ld.tree.constraint_equations(system, turn.state(k))[0]).max() < 1e-13
    # back where it was, but for the idle turn of the rod
    assert turn.data["q"].sel(coordinate="D").values[-1] == pytest.approx(0, abs=POSITION)


def test_velocities_are_those_the_constraints_allow_in_space():
    system = ld.library.turned(ld.library.bennett()).compile()
    label = next(x for x in system.coordinates)
    turn = ld.drive(system, label, (0, 1, 11))
    for k in range(11):
        state = turn.state(k)
        t = ld.terms(system, state)
        assert np.abs(t.J @ state.v).max() < 1e-12
        assert np.abs(t.J @ turn.data["a"].values[k, : system.nv] - t.gamma).max() < 1e-11


# ------------------------------------------------------------------------------------------- transmission angle


def test_the_transmission_angle_of_a_four_bar_is_that_between_coupler_and_rocker():
    turn = ld.drive(ld.library.four_bar().compile(), "A", (0, 2 * pi, 91))
    s = turn.data["parameter"].values
    diagonal = 1 + 0.09 - 0.6 * np.cos(1 + s)
    mu = np.arccos((0.81 + 0.36 - diagonal) / (2 * 0.9 * 0.6))
    np.testing.assert_allclose(turn.transmission_angle("D"), np.minimum(mu, pi - mu), atol=1e-12)


def test_the_transmission_angle_of_a_slider_crank_is_that_of_the_rod_to_the_normal():
    turn = ld.drive(ld.library.slider_crank().compile(), "A", (0, 2 * pi, 91))
    s = turn.data["parameter"].values
    lean = np.arcsin(np.abs(0.15 * np.sin(0.5 + s) - 0.02) / 0.45)
    np.testing.assert_allclose(turn.transmission_angle("D"), pi / 2 - lean, atol=1e-12)


def test_a_block_in_a_slot_pushes_square_to_it():
    turn = ld.drive(ld.library.quick_return().compile(), "A", (0, 2 * pi, 31))
    np.testing.assert_allclose(turn.transmission_angle("D", at="C"), pi / 2, atol=1e-7)  # arcsin near one


def test_where_there_is_no_transmission_angle_that_is_said():
    turn = ld.drive(ld.library.watt().compile(), "A", (0, 1, 5))
    with pytest.raises(ld.LoopdynError, match="quality"):
        turn.transmission_angle("B")
    with pytest.raises(ld.errors.ModelError, match="no joint 'Q'"):
        turn.transmission_angle("Q")


# ------------------------------------------------------------------------------------------------ what is said


@pytest.mark.parametrize(
    ("build", "inputs", "motion", "said"),
    [
        (
            "five_bar",
            "A",
            (0, 1),
            "1 of its 2 degrees of freedom is left, in B, E, D, C. Drive 2 coordinates, for example A, E.",
        ),
        ("slider_crank", {"A": (0, 1), "D": (0, 1)}, None, "has 1 degree of freedom, but A, D are not independent"),
        ("slider_crank", "a", (0, 1), "there is no joint coordinate 'a'"),
        ("slider_crank", "A", 3.0, "the motion of 'A' is not clear"),
        ("slider_crank", "A", (0, 1, 1), "n from 2 to"),
        ("slider_crank", "A", (0, np.inf), "the motion of 'A' is not clear"),
        ("slider_crank", "A", "2*t", "needs times"),
        ("slider_crank", "A", "2*time", "unknown name 'time'"),
        ("slider_crank", {}, None, "no input is given"),
        ("five_bar", {"A": (0, 1, 5), "E": (0, 1, 6)}, None, "ranges of different lengths (A: 5, E: 6)"),
        ("five_bar", {"A": (0, 1, 5), "E": "t"}, None, "only ranges or only motions"),
        ("four_bar", "D", (2, 3), "cannot reach D = 2 rad, where the range begins: dead point at D = 0.972"),
    ],
)
def test_what_is_wrong_is_said_with_a_next_step(build, inputs, motion, said):
    with pytest.raises(ld.LoopdynError) as error:
        ld.drive(ld.library.ALL[build]().compile(), inputs, motion)
    assert said in str(error.value)


def test_a_start_at_a_change_point_is_refused():
    m = linkage(2.0, 1.0, 2.0, 1.0, 0.0)
    with pytest.raises(ld.LoopdynError, match="starts at a change point"):
        ld.drive(m.compile(), "A", (0, 1))


def test_velocity_constraints_are_refused():
    m = ld.library.five_bar()
    m.add_constraint("blade", ld.constraints.VelocityRelation(formula="va - 2*ve", speeds={"va": "A", "ve": "E"}))
    with pytest.raises(ld.LoopdynError, match="constrains velocities only"):
        ld.drive(m.compile(), "A", (0, 1))


def test_a_limit_of_a_joint_ends_the_motion_where_it_is_reached():
    m = ld.library.four_bar()
    m.joints["D"] = m.joints["D"].model_copy(update={"limits": (2 * pi - 0.5, 2 * pi + 0.7)})
    system = m.compile()
    turn = ld.drive(system, "A", (0, 2 * pi))
    assert turn.limit.kind == "limit"
    assert turn.limit.label == "D"
    reached = four_bar_angles(np.array([1 + turn.limit.value]))[1] - four_bar_angles(np.array([1.0]))[1]
    assert float(reached[0]) == pytest.approx(0.7, abs=1e-10)
    assert ld.drive(system, "A", (0, 2 * pi, 37), limits=False).status == "complete"


@pytest.mark.parametrize("start", [-5.0, 0.5, 5.0])
def test_limits_more_than_a_turn_apart_that_hold_the_start_are_not_shifted(start):
    m = ld.library.four_bar()
    m.joints["A"] = m.joints["A"].model_copy(update={"limits": (-9.0, 10.0)})
    system = m.compile()
    begin = ld.assemble(system, q={"A": start})
    for target, end in ((15.0, 10.0), (-15.0, -9.0)):
        found = ld.drive(system, "A", (start, target, 41), near=begin)
        assert found.limit.kind == "limit"
        assert found.limit.value == pytest.approx(end, abs=1e-9)  # located to rounding


def test_ranges_and_results_are_in_declared_units():
    m = ld.Mechanism("arm", units={"length": "mm", "angle": "deg"})
    m.add_body("arm", ld.Inertia.planar(mass=1.0, com=(50, 0, 0), izz=1.0))
    m.add_joint("A", PIN, "ground", "arm", at=(0, 0, 0))
    system = m.compile()
    turn = ld.drive(system, "A", (0, 90, 4))
    np.testing.assert_allclose(turn.path.q[:, 0], np.radians([0, 30, 60, 90]), atol=1e-15)
    table = turn.to_dataframe()
    assert list(table.columns[:3]) == ["A [deg]", "A' [1]", "A'' [1/deg]"]
    np.testing.assert_allclose(table["A [deg]"], [0, 30, 60, 90], atol=1e-13)
    assert "A in deg from 0 to 90" in str(turn)
    end = turn.point("arm", at=(100, 0, 0))  # mm
    np.testing.assert_allclose(end["position"].values[-1], [0, 100, 0], atol=1e-12)
    np.testing.assert_allclose(end["velocity"].values[-1], [-100 * pi / 180, 0, 0], atol=1e-12)
    np.testing.assert_allclose(end["acceleration"].values[-1], [0, -100 * (pi / 180) ** 2, 0], atol=1e-12)


def test_the_summary_plots_table_and_film_show_the_same(tmp_path):
    turn = ld.drive(ld.library.slider_crank().compile(), "A", (0, 2 * pi, 73))
    text = str(turn)
    assert "slider_crank driven at A: 73 steps" in text
    assert text.count("turning point of D") == 2
    figure = turn.plot("D", "A")
    labels = [ax.get_ylabel() for ax in figure.axes]
    assert labels == ["m", "rad", "m/rad", "1", "m/rad^2", "1/rad", "quality"]
    assert figure.axes[-1].get_xlabel() == "A in rad"
    curve = turn.plot_point("rod", at=(0.3, 0.05, 0))
    assert curve.axes[0].get_xlabel() == "x in m"
    matplotlib.pyplot.close("all")
    turn.to_csv(tmp_path / "turn.csv")
    assert (tmp_path / "turn.csv").read_text().startswith("A in rad,A [rad],")
    page = turn.animate(tmp_path / "turn.html")
    assert page.stat().st_size > 1e5
    assert "slider_crank" in page.read_text()
    assert turn.as_data()["events"][0]["kind"] == "turning point"


def test_a_point_and_a_label_that_are_not_there_are_named():
    turn = ld.drive(ld.library.slider_crank().compile(), "A", (0, 1, 5))
    with pytest.raises(ld.errors.ModelError, match="no body 'rods'"):
        turn.point("rods", at=(0, 0, 0))
    with pytest.raises(ld.errors.ModelError, match="not x, y, z"):
        turn.point("rod", at=(0, 0))
    with pytest.raises(ld.errors.ModelError, match="no coordinate 'X'"):
        turn.ratio("X")


def test_ratios_of_any_two_coordinates():
    turn = ld.drive(ld.library.four_bar().compile(), "A", (0.1, 1.1, 11))
    np.testing.assert_allclose(turn.ratio("D", by="B") * turn.ratio("B"), turn.ratio("D"), rtol=1e-12)


def test_values_may_go_forth_and_back():
    system = ld.library.four_bar().compile()
    values = [0.0, 0.5, 1.0, 0.5, 0.0]
    found = ld.drive(system, "A", values).data["q"].values
    np.testing.assert_allclose(found, found[::-1], atol=POSITION)


def test_a_near_miss_of_a_change_point_is_followed_on_its_own_circuit():
    lengths = (2.0, 1.0, 2.0, 1.0001)
    turn = ld.drive(linkage(*lengths, 1.0).compile(), "A", (0, 2 * pi))
    s = turn.data["parameter"].values
    expected = four_bar_angles(1 + s, *lengths)[1] - four_bar_angles(np.array([1.0]), *lengths)[1]
    wrong = (turn.data["q"].sel(coordinate="D").values - expected + pi) % (2 * pi) - pi
    assert np.abs(wrong).max() < 1e-12  # 1e-15 times the condition there, some hundreds
    assert {e.kind for e in turn.events} == {"turning point"}


def test_two_inputs_stop_where_the_couplers_are_in_line():
    m = ld.library.five_bar().with_(coupler1=0.65, coupler2=0.65, angle1=-1.0, angle2=-2.0)
    both = ld.drive(m.compile(), {"A": (0, -1.5, 101), "E": (0, 1.0, 101)})
    assert both.limit.kind == "dead point"
    B = 0.4 * np.exp(1j * (-1.0 + both.limit.inputs["A"]))
    D = 1 + 0.4 * np.exp(1j * (-2.0 + both.limit.inputs["E"]))
    assert abs(abs(B - D) - 1.3) < 1e-12


def test_coarse_and_fine_steps_give_the_same_poses_and_events():
    system = ld.library.four_bar().compile()
    coarse, fine = (ld.drive(system, "A", (0, 2 * pi, n)) for n in (5, 361))
    np.testing.assert_allclose(coarse.data["q"], fine.data["q"][::90], atol=POSITION)
    np.testing.assert_allclose([e.value for e in coarse.events], [e.value for e in fine.events], atol=1e-10)


def in_line() -> ld.Mechanism:
    """A slider-crank drawn stretched, in mm and deg, as one would draw it."""
    m = ld.Mechanism("press", units={"length": "mm", "angle": "deg"})
    for name in ("crank", "rod", "slider"):
        m.add_body(name, ld.Inertia.planar(mass=1.0, com=(0, 0, 0), izz=100.0))
    m.add_joint("A", PIN, "ground", "crank", at=(0, 0, 0))
    m.add_joint("B", PIN, "crank", "rod", at=(50, 0, 0))
    m.add_joint("C", PIN, "rod", "slider", at=(200, 0, 0))
    m.add_joint("D", ld.Prismatic(axis=(1, 0, 0)), "ground", "slider", at=(200, 0, 0))
    return m


def test_turning_points_at_the_ends_of_the_range_are_told():
    turn = ld.drive(in_line().compile(), "A", (0, 360))
    found = [e for e in turn.events if e.label == "D"]
    np.testing.assert_allclose([e.value for e in found], [0, 180, 360], atol=1e-8)
    assert "turning point of D at A = 180 deg: D = -100 mm" in found[1].text


def test_a_start_at_a_dead_point_of_the_input_is_told_from_an_input_that_is_fixed():
    system = in_line().compile()
    with pytest.raises(ld.LoopdynError, match="starts at a dead point of D"):
        ld.drive(system, "D", (0, -50))
    back = ld.drive(system, "D", (-10, -120), near=ld.assemble(system, q={"A": 17}))
    assert back.limit.inputs["D"] == pytest.approx(-100, abs=1e-9)  # both pins in line again, 100 mm back
    m = in_line()
    m.add_driver("held", "A", 10)
    with pytest.raises(ld.LoopdynError, match="D is not independent"):
        ld.drive(m.compile(), "D", (0, 1))


def test_the_end_of_a_curve_is_where_the_motion_ends():
    m = ld.Mechanism("bead")
    m.add_body("bead", ld.Inertia.sphere(mass=1, radius=0.1))
    m.add_joint("T", ld.joints.Translational(), "ground", "bead", at=(0, 0, 0))
    wire = ld.constraints.PointOnCurve(on="ground", body="bead", point=(0, 0, 0), x="u", y="0*u", z="u**2", u=(-1, 1))
    m.add_constraint("wire", wire)
    along = ld.drive(m.compile(), "T.x", (0, 2, 16))
    x = along.data["parameter"].values
    np.testing.assert_allclose(along.data["q"].sel(coordinate="T.z"), x**2, atol=POSITION)
    np.testing.assert_allclose(along.data["a"].sel(speed="T.z"), 2, atol=1e-11)
    assert along.limit.kind == "end of a curve"
    assert along.limit.value == pytest.approx(1.0, abs=1e-5)  # rows are defined for a millionth of the range beyond


def test_a_base_in_motion_stands_still_in_a_range():
    m = ld.library.four_bar()
    m.move_base(x="0.3*t", rz="0.5*t")
    paths = [
        ld.drive(x.compile(), "A", (0, 2, 5)).point("coupler", at=(0.5, 0.5, 0)) for x in (m, ld.library.four_bar())
    ]
    for name in ("position", "velocity", "acceleration"):
        np.testing.assert_allclose(paths[0][name], paths[1][name], atol=1e-14)


def test_every_body_free_gives_the_same():
    trees = [ld.library.four_bar().compile(cuts=cuts) for cuts in ("all", None)]
    one, other = (ld.drive(s, "A", (0, 2 * pi, 19)).data for s in trees)
    for name, dim in (("q", "coordinate"), ("v", "speed"), ("a", "speed")):
        np.testing.assert_allclose(one[name].sel({dim: "D"}), other[name].sel({dim: "D"}), atol=1e-12)


def in_line_slider_crank():
    m = ld.Mechanism("slider_crank")
    m.add_body("crank", ld.Inertia.rod(mass=1, start=(0, 0, 0), end=(0.04, 0, 0)))
    m.add_body("rod", ld.Inertia.rod(mass=1, start=(0.04, 0, 0), end=(0.16, 0, 0)))
    m.add_body("piston", ld.Inertia.point(mass=1, at=(0.16, 0, 0)))
    m.add_joint("A", PIN, "ground", "crank", at=(0, 0, 0))
    m.add_joint("B", PIN, "crank", "rod", at=(0.04, 0, 0))
    m.add_joint("C", PIN, "rod", "piston", at=(0.16, 0, 0))
    m.add_joint("D", ld.Prismatic(axis=(1, 0, 0)), "ground", "piston", at=(0.16, 0, 0))
    return m.compile()


@pytest.mark.parametrize("first", [-0.02, -0.03])
@pytest.mark.parametrize("last", [0.0, -0.08])
def test_a_range_that_ends_in_a_dead_point_says_so_and_gives_no_ratios_there(first, last):
    # the stroke of the piston is twice the crank; at its ends the crank turns while the piston stands
    system = in_line_slider_crank()
    push = ld.drive(system, "D", (first, last, 6), near=ld.assemble(system, q={"A": 1.0}))
    d = push.data
    assert [e.kind for e in push.events if e.kind == "dead point"] == ["dead point"]
    assert np.isfinite(d["v"].values[:5]).all()
    if push.steps == 6:  # by rounding the last step may also be beyond the dead point, and is then not there
        assert d["regular"].values.tolist() == [True] * 5 + [False]
        assert np.isnan(d["v"].sel(speed="A").values[-1])
        assert np.isnan(d["a"].sel(speed="A").values[-1])
        assert d["v"].sel(speed="D").values[-1] == pytest.approx(1.0, abs=1e-6)
        assert "unbounded" in str(push)
    else:
        assert push.status == "stopped"
        assert d["regular"].values.all()


@pytest.mark.parametrize("angle", [-1.1, 0.3, 0.8, 1.0, 1.3, 2.0, 2.5])  # rounding differs on the way to the point
def test_a_range_that_begins_in_a_dead_point_is_told_to_begin_beside_it(angle):
    system = in_line_slider_crank()
    with pytest.raises(ld.LoopdynError, match=r"dead point at D = 0 m, where the range begins.*next to it"):
        ld.drive(system, "D", (0, -0.05), near=ld.assemble(system, q={"A": angle}))


def test_cut_angles_have_the_turns_of_the_way_between_distant_samples():
    m = ld.library.bennett()  # no path of the tree counts the turns of a cut joint
    apart = (1.5, 20.0, 2)  # two samples, almost three turns apart
    cut, in_tree = (ld.drive(m.compile(cuts=[joint]), "P1", apart)["P2"].values for joint in ("P2", "P4"))
    assert abs(in_tree[-1]) > 6.0
    assert cut == pytest.approx(in_tree, abs=1e-8)  # each closed to 1e-10 or better
