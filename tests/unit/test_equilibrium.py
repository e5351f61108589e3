"""Static equilibria against closed forms: pendulum, four-bar by virtual work, toggle; what is not static is refused."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import brentq
from tests.independent import first_derivative
from tests.linkages import linkage, pose

import loopdyn as ld

G = 9.81
LOCATED = 1e-9  # rad or m: roots are found to rounding over the stiffness
STIFF = 1e-6  # relative: central differences of forces with steps of 1e-5


def pendulum(stiffness: float, rest: float = 0.0, **extra) -> ld.Mechanism:
    """A rod of 2 kg and 1 m hanging from A, with a torsion spring."""
    m = ld.Mechanism("pendulum", gravity=(0, -G, 0), **extra)
    m.add_body("rod", ld.Inertia.rod(mass=2.0, start=(0, 0, 0), end=(0, -1, 0)))
    m.add_joint("A", ld.Revolute(axis=(0, 0, 1)), m.ground, "rod", at=(0, 0, 0))
    m.add_force("spring", ld.forces.JointSpring(joint="A", stiffness=stiffness, rest=rest))
    return m


@pytest.mark.parametrize("start", [-3.0, 0.0, 2.5, 9.0])
def test_a_pendulum_with_a_torsion_spring_settles_where_the_spring_holds_its_weight(start):
    """k (rest - x) = m g l/2 sin x, which has one root for k > m g l/2; stiffness k + m g l/2 cos x."""
    k, rest = 12.0, 1.2
    system = pendulum(k, rest).compile()
    x = brentq(lambda x: k * (rest - x) - G * np.sin(x), 0.0, rest, xtol=1e-15)
    found = ld.equilibrium(system, system.state(q={"A": start}))
    assert found["A"] == pytest.approx(x, abs=LOCATED)
    assert found.stability == "stable"
    assert found.freedoms == ("A",)
    assert found.stiffness[0, 0] == pytest.approx(k + G * np.cos(x), rel=STIFF)
    assert found.loads["spring"] == pytest.approx(k * (rest - x))
    assert found.reactions["A"]["fy"] == pytest.approx(2 * G)
    assert found.reactions["A"]["fx"] == pytest.approx(0.0, abs=1e-9)
    assert found.conservative


def test_all_equilibria_of_a_soft_torsion_spring_are_found_and_told_apart():
    """k (rest - x) = m g l/2 sin x with a soft spring has many roots, stable and unstable in turn."""
    k, rest = 1.0, 0.5
    f = lambda x: k * (rest - x) - G * np.sin(x)  # noqa: E731
    xs = np.linspace(-12, 12, 24001)
    signs = np.sign([f(x) for x in xs])
    roots = [brentq(f, a, b, xtol=1e-15) for a, b, s in zip(xs, xs[1:], signs * np.roll(signs, -1)) if s < 0]
    found = ld.equilibrium(pendulum(k, rest).compile(), search={"A": (-12.0, 12.0)})
    assert found.complete
    assert [e["A"] for e in found] == pytest.approx(roots, abs=LOCATED)
    for e, x in zip(found, roots, strict=True):
        stiffness = k + G * np.cos(x)
        assert e.stiffness[0, 0] == pytest.approx(stiffness, rel=STIFF)
        assert e.stability == ("stable" if stiffness > 0 else "unstable")
    assert len(roots) == 5
    assert "5 equilibria" in str(found)


def test_a_search_reports_an_end_of_its_range_and_one_turn_once():
    system = pendulum(0.0).compile()
    found = ld.equilibrium(system, search={"A": (0.0, 2 * np.pi)})
    assert [e.stability for e in found] == ["stable", "unstable"]
    assert [e["A"] for e in found] == pytest.approx([0.0, np.pi], abs=LOCATED)
    wound = pendulum(1e-12).compile()  # with a spring, however soft, a turn more is another pose
    assert len(ld.equilibrium(wound, search={"A": (-0.1, 2 * np.pi + 0.1)})) in (2, 3)


def test_where_the_stiffness_vanishes_an_equilibrium_is_neutral():
    """k = m g l/2 and rest = pi: k (pi - x) - k sin x = 0 at x = pi alone, of third order."""
    system = pendulum(G, np.pi).compile()
    (found,) = ld.equilibrium(system, search={"A": (1.0, 5.0)})
    assert found.stability == "neutral"
    assert found["A"] == pytest.approx(np.pi, abs=1e-4)  # g is cubic there: rounding is felt as its third root
    balanced = pendulum(0.0)
    balanced.gravity = (0, 0, 0)
    (anywhere,) = ld.equilibrium(balanced.compile(), search={"A": (1.0, 5.0)})
    assert anywhere.stability == "neutral"


def test_two_roots_between_two_samples_are_not_missed():
    """A motor whose load dips below zero over 0.01 rad only, less than a step along the curve."""
    m = pendulum(0.0)
    m.gravity = (0, 0, 0)
    m.add_motor("dip", "A", torque="(position - 0.7123)**2 - 0.005**2")
    found = ld.equilibrium(m.compile(), search={"A": (0.0, 1.5)})
    assert [e["A"] for e in found] == pytest.approx([0.7073, 0.7173], abs=LOCATED)
    assert [e.stability for e in found] == ["stable", "unstable"]


# ------------------------------------------------------------------------------------------- closed loops

LENGTHS, MASSES, START = (1.0, 0.3, 0.9, 0.6), (1.0, 2.0, 1.5), 0.7


def energy(x: float, k: float, free: float) -> float:
    """Weight and a spring from (0.5, -0.5) to the coupler pin C, at a crank angle."""
    A, B, C, D = pose(LENGTHS, x, 1)
    heights = [(p[1] + q[1]) / 2 for p, q in ((A, B), (B, C), (D, C))]
    length = np.hypot(*(C - [0.5, -0.5]))
    return G * np.dot(MASSES, heights) + 0.5 * k * (length - free) ** 2


def sprung(k: float = 60.0, free: float = 0.4) -> ld.Mechanism:
    m, points = linkage(LENGTHS, START, 1, MASSES)
    m.add_force(
        "spring", ld.forces.SpringDamper("ground", "rocker", (0.5, -0.5, 0), points[2], stiffness=k, length=free)
    )
    return m


def test_a_four_bar_with_a_spring_rests_where_virtual_work_vanishes():
    k, free = 60.0, 0.4
    slope = lambda x: first_derivative(lambda s: np.array([energy(x + s, k, free)]), 1e-3)[0]  # noqa: E731
    xs = np.linspace(START, START + 2 * np.pi, 721)
    values = [slope(x) for x in xs]
    roots = [brentq(slope, a, b, xtol=1e-13) for a, b, u, w in zip(xs, xs[1:], values, values[1:]) if u * w < 0]
    found = ld.equilibrium(sprung(k, free).compile(), search={"A": (0.0, 2 * np.pi)})
    assert len(found) == len(roots) >= 2
    # the five-point formula is good to 1e-9 here
    assert [e["A"] + START for e in found] == pytest.approx(roots, abs=1e-7)
    for e, x in zip(found, roots, strict=True):
        curvature = first_derivative(lambda s, x=x: np.array([slope(x + s)]), 1e-3)[0]
        assert e.stiffness[0, 0] == pytest.approx(curvature, rel=1e-5)
        assert e.stability == ("stable" if curvature > 0 else "unstable")


def test_a_search_by_a_coordinate_with_dead_points_goes_beyond_them():
    """The rocker turns back twice in a turn of the crank: by its angle the same equilibria are found."""
    system = sprung().compile()
    by_crank = ld.equilibrium(system, search={"A": (0.0, 2 * np.pi)})
    by_rocker = ld.equilibrium(system, search={"D": (-3.0, 3.0)})
    turn = lambda e: e["A"] % (2 * np.pi)  # noqa: E731
    assert sorted(map(turn, by_rocker)) == pytest.approx(sorted(map(turn, by_crank)), abs=1e-8)
    cut = sprung().compile(cuts=["D"])
    by_cut = ld.equilibrium(cut, search={"D": (-3.0, 3.0)})
    assert sorted(map(turn, by_cut)) == pytest.approx(sorted(map(turn, by_crank)), abs=1e-8)


def test_branches_that_cross_the_curve_are_told():
    """A parallelogram standing upright: flat, at +-90 deg, the crossed linkage begins. Hanging is beyond the range."""
    m, _ = linkage((1.0, 0.5, 1.0, 0.5), np.pi / 2, 1)
    found = ld.equilibrium(m.compile(), search={"A": (-3.0, 3.0)})
    assert [e.stability for e in found] == ["unstable"]
    assert found[0]["A"] == pytest.approx(0.0, abs=LOCATED)
    # G (1/2 + 2 + 1.5/2) 0.5 m, with the opposite sign
    assert found[0].stiffness[0, 0] == pytest.approx(-G * 0.5 * (0.5 * 1.0 + 2.0 + 0.5 * 1.5), rel=STIFF)
    assert not found.complete
    assert "singular poses at A = -1.5708, 1.5708 rad" in found.note
    assert ld.equilibrium(sprung().compile(), search={"A": (2.0, 4.0)}).complete


def test_from_any_start_a_mechanism_settles_in_a_stable_equilibrium():
    system = sprung().compile()
    stable = [e["A"] for e in ld.equilibrium(system, search={"A": (0.0, 2 * np.pi)}) if e.stability == "stable"]
    for start in (0.0, 1.5, 3.0, 4.5):
        found = ld.equilibrium(system, ld.assemble(system, q={"A": start}))
        assert found.stability == "stable"
        assert min(abs((found["A"] - x + np.pi) % (2 * np.pi) - np.pi) for x in stable) < 1e-8


def toggle(k: float = 200.0, half: float = 1.0, bar: float = 1.05) -> ld.Mechanism:
    """Two bars of length `bar` over a span of 2 `half`, without weight; a spring pulls the slider back to the span.

    With the slider at x from the left pin the bars rise to h = sqrt(bar^2 - (x/2)^2); the spring has its free length at
    x = 2 `half`: V = k/2 (x - 2 half)^2. Equilibria: x = 2 half, above and below, and the stretched pose h = 0.
    """
    rise = float(np.sqrt(bar**2 - half**2))
    m = ld.Mechanism("toggle")
    m.add_body("left", ld.Inertia.rod(mass=1.0, start=(0, 0, 0), end=(half, rise, 0)))
    m.add_body("right", ld.Inertia.rod(mass=1.0, start=(half, rise, 0), end=(2 * half, 0, 0)))
    m.add_body("slider", ld.Inertia.box(mass=0.5, size=(0.1, 0.1, 0.1), at=(2 * half, 0, 0)))
    pin = ld.Revolute(axis=(0, 0, 1))
    m.add_joint("A", pin, m.ground, "left", at=(0, 0, 0))
    m.add_joint("B", pin, "left", "right", at=(half, rise, 0))
    m.add_joint("C", pin, "right", "slider", at=(2 * half, 0, 0))
    m.add_joint("S", ld.Prismatic(axis=(1, 0, 0)), m.ground, "slider", at=(2 * half, 0, 0))
    m.add_force("spring", ld.forces.JointSpring(joint="S", stiffness=k))
    return m


def test_a_bistable_toggle_has_three_equilibria_and_snaps_through_the_unstable_one():
    """x = 2 bar cos a: dV/da = 0 at a = +-a0 and 0, where V'' is k (2 bar sin a0)^2 and -2 bar k (2 bar - 2 half)."""
    k, half, bar = 200.0, 1.0, 1.05
    a0 = float(np.arccos(half / bar))
    system = toggle(k, half, bar).compile()
    found = ld.equilibrium(system, search={"A": (-2.5 * a0, 0.5 * a0)})
    assert [e["A"] for e in found] == pytest.approx([-2 * a0, -a0, 0.0], abs=LOCATED)
    assert [e.stability for e in found] == ["stable", "unstable", "stable"]
    expected = [k * (2 * bar * np.sin(a0)) ** 2, -2 * bar * k * (2 * bar - 2 * half), k * (2 * bar * np.sin(a0)) ** 2]
    assert [e.stiffness[0, 0] for e in found] == pytest.approx(expected, rel=STIFF)
    # the slide turns back in the stretched pose: searched by it, all three are found as well
    assert len(ld.equilibrium(system, search={"S": (-0.2, 0.2)})) == 3
    stretched = found[1].loads["spring"]
    assert stretched == pytest.approx(-k * (2 * bar - 2 * half))


def test_equilibria_of_two_freedoms_from_many_starts():
    """A double pendulum has four: hanging, standing, and two mixed ones."""
    m = ld.Mechanism("double", gravity=(0, -G, 0))
    pin = ld.Revolute(axis=(0, 0, 1))
    for n, name in enumerate(("upper", "lower")):
        m.add_body(name, ld.Inertia.rod(mass=1.0, start=(0, -n, 0), end=(0, -n - 1, 0)))
    m.add_joint("A", pin, m.ground, "upper", at=(0, 0, 0))
    m.add_joint("B", pin, "upper", "lower", at=(0, -1, 0))
    system = m.compile()
    found = ld.equilibrium(system, search={"A": (-1.0, 4.0), "B": (-1.0, 4.0)})
    assert not found.complete
    places = {(round(e["A"] / np.pi), round(e["B"] / np.pi)): e.stability for e in found}
    assert places == {(0, 0): "stable", (0, 1): "unstable", (1, 0): "unstable", (1, 1): "unstable"}
    hanging = next(e for e in found if e.stability == "stable")
    # V = -1.5 m g l cos A - 0.5 m g l cos(A + B), twice differentiated by A and B
    assert hanging.stiffness == pytest.approx(G * np.array([[2.0, 0.5], [0.5, 0.5]]), rel=STIFF)


def test_a_platform_settles_on_its_legs_with_its_weight_in_them():
    system = ld.library.stewart_6ups().compile()
    found = ld.equilibrium(system)
    assert found.stability == "stable"
    assert len(found.eigenvalues) == 6
    # all reactions on the ground together carry the weight of all bodies
    mass = 20.0 + 6 * 3.0
    total = np.zeros(3)
    motion = ld.tree.body_motion(system, found.state)
    bearings = ld.results.Bearings.of(
        system, np.zeros(1), found.state.q[None], found.reactions.joints, found.reactions.wrench[None],
        found.reactions.unique,
    )  # fmt: skip
    assert motion.bodies[0] == "ground"
    for k in range(6):
        total += bearings.load(f"U{k + 1}")[0][0]
    assert total == pytest.approx([0.0, 0.0, mass * G], abs=1e-6)


# -------------------------------------------------------------------------------------- springs, motors, drivers


def test_a_driver_that_rests_holds_its_coordinate_and_carries_its_load():
    m = pendulum(0.0)
    m.add_driver("hold", "A", "0.4 + t**3")
    found = ld.equilibrium(m.compile())
    assert found["A"] == pytest.approx(0.4)
    assert found.note == "nothing can move"
    assert found.reactions.multipliers["hold"] == pytest.approx(G * np.sin(0.4))
    with pytest.raises(ld.LoopdynError, match="driver 'hold' moves it"):
        ld.equilibrium(m.compile(), t=1.0)


def test_a_governor_at_speed_is_not_static_and_that_is_said():
    m = ld.library.flyball()
    m.add_driver("shaft", "spin", "30*t")
    m.start = type(m.start)()
    with pytest.raises(ld.LoopdynError, match=r"driver 'shaft' moves it.*governor at speed.*ld.simulate"):
        ld.equilibrium(m.compile())
    rotating = pendulum(1.0)
    rotating.move_base(ry="5*t")
    with pytest.raises(ld.LoopdynError, match=r"its base 'ground' moves"):
        ld.equilibrium(rotating.compile())


def test_a_motor_holds_the_mechanism_at_its_stall_torque():
    m = pendulum(0.0)
    m.add_motor("motor", "A", torque="5 - 0.2*speed")
    found = ld.equilibrium(m.compile(), search={"A": (-1.0, 4.0)})
    assert [e["A"] for e in found] == pytest.approx([np.arcsin(5 / G), np.pi - np.arcsin(5 / G)], abs=LOCATED)


@pytest.mark.parametrize("search", [None, {"A": (0.0, 6.0)}])
def test_without_an_equilibrium_the_error_names_what_pushes(search):
    m = pendulum(0.0)
    m.add_motor("motor", "A", torque=12.0)
    with pytest.raises(
        ld.errors.ConvergenceError, match=r"no equilibrium.*as a load on A by .* N\*m \(motor 12, gravity -"
    ):
        ld.equilibrium(m.compile(), search=search)


def test_forces_without_energy_are_said_and_friction_is_mentioned():
    m = ld.Mechanism("follower")
    pin = ld.Revolute(axis=(0, 0, 1))
    for n, name in enumerate(("one", "two")):
        m.add_body(name, ld.Inertia.rod(mass=1.0, start=(n, 0, 0), end=(n + 1, 0, 0), radius=0.01))
    m.add_joint("A", pin, m.ground, "one", at=(0, 0, 0))
    m.add_joint("B", pin, "one", "two", at=(1, 0, 0))
    for joint in ("A", "B"):
        m.add_force(None, ld.forces.JointSpring(joint=joint, stiffness=10.0))
    m.add_force("push", ld.forces.AppliedForce(body="two", force=(-2, 0, 0), at=(2, 0, 0), axes="body"))
    m.add_force(None, ld.forces.JointFriction(joint="A", coulomb=0.1))
    found = ld.equilibrium(m.compile())
    assert not found.conservative
    # Ziegler's column: the force P = 2 N along the second rod has the moments -P sin B about A and none about B
    assert found.stiffness == pytest.approx(np.array([[10.0, 2.0], [0.0, 10.0]]), rel=STIFF, abs=1e-6)
    assert "flutter" in found.note
    assert "friction" in found.note


def test_the_idle_spin_of_a_rod_does_not_make_an_equilibrium_neutral():
    found = ld.equilibrium(ld.library.rssr().compile())
    assert found.stability == "stable"
    assert "can turn alone" in found.note


def test_zero_force_positions_of_a_spring():
    """The spring of the four-bar has its free length where C is that far from its foot."""
    m = sprung(free=0.9)
    length = lambda x: np.hypot(*(pose(LENGTHS, x, 1)[2] - [0.5, -0.5])) - 0.9  # noqa: E731
    xs = np.linspace(START, START + 2 * np.pi, 361)
    roots = [brentq(length, a, b, xtol=1e-14) for a, b in pairwise(xs) if length(a) * length(b) < 0]
    found = ld.analyses.zero_force(m.compile(), "spring", {"A": (0.0, 2 * np.pi)})
    assert sorted(s.q[0] + START for s in found) == pytest.approx(roots, abs=LOCATED)
    with pytest.raises(ld.LoopdynError, match=r"there is no force 'sprong'. Did you mean 'spring'"):
        ld.analyses.zero_force(m.compile(), "sprong", {"A": (0.0, 1.0)})
    five = ld.library.five_bar()
    five.add_force("spring", ld.forces.JointSpring(joint="A", stiffness=1.0))
    with pytest.raises(ld.LoopdynError, match="has 2 degrees of freedom"):
        ld.analyses.zero_force(five.compile(), "spring", {"A": (0.0, 1.0)})


@pytest.mark.parametrize("units", [{}, {"length": "mm", "angle": "deg", "torque": "N*mm"}])
def test_preload_makes_a_pose_an_equilibrium_in_any_units(units):
    """Torsion spring: rest = x + m g l/2 sin(x)/k. Motor: m g l/2 sin x."""
    scale = 1000.0 if units else 1.0
    m = ld.Mechanism("pendulum", gravity=(0, -G, 0), units=units)
    m.add_body("rod", ld.Inertia.rod(mass=2.0, start=(0, 0, 0), end=(0, -scale, 0)))
    m.add_joint("A", ld.Revolute(axis=(0, 0, 1)), m.ground, "rod", at=(0, 0, 0))
    stiffness = 4.0 * (1000.0 * np.pi / 180.0 if units else 1.0)  # 4 N m/rad
    m.add_force("spring", ld.forces.JointSpring(joint="A", stiffness=stiffness))
    system = m.compile()
    rad = 180.0 / np.pi if units else 1.0  # in declared units
    found = ld.analyses.preload(system, "spring", system.state(q={"A": 0.6 * rad}))
    assert found.what == "rest"
    assert found.value == pytest.approx((0.6 + G * np.sin(0.6) / 4.0) * rad, rel=1e-9)
    again = found.mechanism.compile()
    assert ld.equilibrium(again, again.state(q={"A": 0.5 * rad}))["A"] == pytest.approx(0.6 * rad, abs=1e-8 * rad)
    other = m.model_copy(deep=True)
    del other.forces["spring"]
    other.add_motor("motor", "A", torque="17*speed")
    system = other.compile()
    assert ld.analyses.preload(system, "motor", system.state(q={"A": 0.6 * rad})).value == pytest.approx(
        scale * G * np.sin(0.6), rel=1e-9
    )


def test_preload_of_a_spring_between_points_and_where_none_helps():
    m = sprung()
    system = m.compile()
    state = ld.assemble(system, q={"A": 1.0})
    found = ld.analyses.preload(system, "spring", state)
    # dV/dx = 0: weight = -k (length - free) dlength/dx
    x = START + 1.0
    length = lambda x: np.hypot(*(pose(LENGTHS, x, 1)[2] - [0.5, -0.5]))  # noqa: E731
    weight = first_derivative(lambda s: np.array([energy(x + s, 0.0, 0.0)]), 1e-3)[0]
    expected = length(x) + weight / (60.0 * first_derivative(lambda s: np.array([length(x + s)]), 1e-3)[0])
    assert (found.what, found.value) == ("length", pytest.approx(expected, abs=1e-8))
    five = ld.library.five_bar()
    five.add_motor("motor", "A", torque=0.0)
    system = five.compile()
    with pytest.raises(ld.LoopdynError, match="'motor' alone cannot hold 'five_bar'"):
        ld.analyses.preload(system, "motor")
    soft = sprung(k=0.0).compile()
    with pytest.raises(ld.LoopdynError, match="exerts no force along any motion"):
        ld.analyses.preload(soft, "spring")
    with pytest.raises(ld.LoopdynError, match="there is no force 'x'"):
        ld.analyses.preload(soft, "x")


@pytest.mark.parametrize(
    ("search", "words"),
    [
        ({"Q": (0, 1)}, "there is no joint coordinate 'Q'"),
        ({"A": (1, 0)}, "two ascending numbers"),
        ({}, "names no coordinate"),
    ],
)
def test_wrong_searches_are_refused(search, words):
    with pytest.raises(ld.LoopdynError, match=words):
        ld.equilibrium(pendulum(1.0).compile(), search=search)


def test_an_open_start_is_refused_and_values_print_in_the_units_of_the_model():
    system = ld.library.four_bar().compile()
    with pytest.raises(ld.LoopdynError, match="open"):
        ld.equilibrium(system, system.state(q={"A": 3.0}))
    m = ld.Mechanism("lever", gravity=(0, -10, 0), units={"length": "mm", "angle": "deg"})
    m.add_body("rod", ld.Inertia.rod(mass=2, start=(0, 0, 0), end=(1000, 0, 0)))
    m.add_joint("A", ld.Revolute(axis=(0, 0, 1)), m.ground, "rod", at=(0, 0, 0))
    assert "-90 deg" in str(ld.equilibrium(m.compile()))


def test_long_names_are_printed_apart_from_their_values():
    m = ld.Mechanism("lever", gravity=(0, -10, 0))
    m.add_body("rod", ld.Inertia.rod(mass=2, start=(0, 0, 0), end=(1, 0, 0)))
    m.add_joint("a_joint_with_a_long_name", ld.Revolute(axis=(0, 0, 1)), m.ground, "rod", at=(0, 0, 0))
    assert re.search(r"a_joint_with_a_long_name\s+-1\.57", str(ld.equilibrium(m.compile())))
    turn = str(ld.drive(m.compile(), "a_joint_with_a_long_name", (0, 1, 5)))
    assert re.search(r"smallest\s+at a_joint_with_a_long_name\s+largest\s+at a_joint_with_a_long_name\s+speed", turn)
    assert re.search(r"a_joint_with_a_long_name\s+rad\s", turn)


def test_slides_of_a_mechanism_of_size_one_do_not_count_as_angles():
    m = ld.Mechanism("two slides")  # all joints in one place: their size is one
    for joint, axis in (("P", (1, 0, 0)), ("R", (0, 1, 0))):
        m.add_body(f"of {joint}", ld.Inertia.sphere(mass=1, radius=0.1))
        m.add_joint(joint, ld.Prismatic(axis=axis), "ground", f"of {joint}", at=(0, 0, 0))
        m.add_motor(f"push on {joint}", joint, force="sin(position)")
    system = m.compile()
    assert system.size == 1.0
    found = ld.equilibrium(system, search={"P": (0.5, 13), "R": (0.5, 13)})
    # every pair of 1, 2, 3, 4 times pi m, stable where both are odd; loads vanish in all of them
    places = [(round(e["P"] / np.pi, 6), round(e["R"] / np.pi, 6), e.stability) for e in found]
    assert places == [(p, r, "stable" if p % 2 and r % 2 else "unstable") for p in range(1, 5) for r in range(1, 5)]


def test_one_slide_of_size_one_has_all_its_equilibria():
    m = ld.Mechanism("slide")
    m.add_body("b", ld.Inertia.sphere(mass=1, radius=0.1))
    m.add_joint("P", ld.Prismatic(axis=(1, 0, 0)), "ground", "b", at=(0, 0, 0))
    m.add_motor("push", "P", force="sin(position)")
    found = ld.equilibrium(m.compile(), search={"P": (0.5, 20)})
    np.testing.assert_allclose([e["P"] for e in found], np.pi * np.arange(1, 7), atol=1e-9)


def follower_column(load):
    """Ziegler's column: two rods with springs under a force that turns with the second; upright it is at rest."""
    m = ld.Mechanism("column")
    m.add_body("a", ld.Inertia.rod(mass=1, start=(0, 0, 0), end=(1, 0, 0)))
    m.add_body("b", ld.Inertia.rod(mass=1, start=(1, 0, 0), end=(2, 0, 0)))
    m.add_joint("A", ld.Revolute(axis=(0, 0, 1)), "ground", "a", at=(0, 0, 0))
    m.add_joint("B", ld.Revolute(axis=(0, 0, 1)), "a", "b", at=(1, 0, 0))
    for joint in "AB":
        m.add_force(f"spring {joint}", ld.forces.JointSpring(joint=joint, stiffness=1.0))
    m.add_force("load", ld.forces.AppliedForce(body="b", at=(2, 0, 0), force=(-load, 0, 0), axes="body"))
    return m.compile()


@pytest.mark.slow
def test_an_equilibrium_in_which_springs_are_relaxed_is_found_under_a_large_follower_force():
    found = ld.equilibrium(follower_column(5.0), search={"A": (-0.5, 0.5), "B": (-0.5, 0.5)})
    assert len(found) == 1
    assert abs(found[0]["A"]) < 1e-9
    assert "flutter" in found[0].note


def test_ranges_without_an_equilibrium_are_named():
    with pytest.raises(ld.errors.ConvergenceError, match=r"in the ranges of A, B.*wider ranges"):
        ld.equilibrium(follower_column(0.5), search={"A": (0.3, 0.5), "B": (0.3, 0.5)})
