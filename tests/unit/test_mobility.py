"""Mobility: known counts of known linkages, in any orientation and size; singular, shaky and rigid ones told apart."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from tests.variants import scaled

import loopdyn as ld
from loopdyn.library import ALL, turned

PIN = ld.Revolute(axis=(0, 0, 1))

# Degrees of freedom and redundant rows, from the literature or by counting: a loop of a plane linkage has six rows,
# three of them (out of the plane) repeat others. Idle bodies after them.
KNOWN = {
    "pendulum": (1, 0, ()),
    "double_pendulum": (2, 0, ()),
    "four_bar": (1, 3, ()),
    "slider_crank": (1, 3, ()),
    "five_bar": (2, 3, ()),
    "n_four_bar": (1, 6, ()),  # two square windows: not flat
    "andrews": (1, 9, ()),
    "bricard": (1, 1, ()),
    "bricard_slender": (1, 1, ()),
    "flyball": (4, 0, ()),
    "rssr": (2, 0, ("coupler",)),
    "bennett": (1, 3, ()),
    "stewart_3rrs": (3, 0, ()),
    "stewart_6ups": (6, 0, ()),
    "ladder": (2, 6, ()),
    "star_ladder": (2, 0, ()),
    "tower": (6, 0, ()),
}


def link(m: ld.Mechanism, name: str, start: tuple[float, ...], end: tuple[float, ...]) -> str:
    return m.add_body(name, ld.Inertia.rod(mass=1.0, start=start, end=end, radius=0.02))


def chain(name: str, *points: tuple[float, ...], axis=(0, 0, 1)) -> ld.Mechanism:
    """Links from point to point on parallel pins, the first and the last pin on the ground."""
    m = ld.Mechanism(name)
    bodies = [link(m, f"link{k}", a, b) for k, (a, b) in enumerate(pairwise(points), 1)]
    ends = ["ground", *bodies, "ground"]
    for k, at in enumerate(points):
        m.add_joint(f"P{k + 1}", ld.Revolute(axis=axis), ends[k], ends[k + 1], at=at)
    return m


def flat_windows(N: int) -> ld.Mechanism:
    """`n_four_bar` with all links in one line, drawn there: windows of side 1, cranks turned to +x."""
    m = ld.Mechanism("flat")
    for i in range(N + 1):
        link(m, f"crank{i}", (i, 0, 0), (i + 1, 0, 0))
        m.add_joint(f"A{i}", PIN, "ground", f"crank{i}", at=(i, 0, 0))
    for i in range(N):
        link(m, f"coupler{i}", (i + 1, 0, 0), (i + 2, 0, 0))
        m.add_joint(f"B{i}", PIN, f"crank{i}", f"coupler{i}", at=(i + 1, 0, 0))
        m.add_joint(f"C{i}", PIN, f"coupler{i}", f"crank{i + 1}", at=(i + 2, 0, 0))
    return m


# models a thousand times as large or as small, without units: what is suspicious about them is meant
pytestmark = pytest.mark.filterwarnings("ignore:.*(gravity is|from joint to joint):loopdyn.errors.LoopdynWarning")

VARIANTS = {
    "as drawn": lambda m: m,
    "turned": turned,
    "1000 times as large": partial(scaled, factor=1e3),
    "1/1000 as large, turned": lambda m: turned(scaled(m, 1e-3)),
}
EVERY_VARIANT = pytest.mark.parametrize("variant", VARIANTS)


def found(m: ld.Mechanism, **given: object) -> ld.results.Mobility:
    system = m.compile()
    return ld.mobility(system, ld.assemble(system, **given) if given else system.state())


@EVERY_VARIANT
@pytest.mark.parametrize("name", KNOWN)
def test_library_has_its_known_freedoms_and_redundancies(name, variant):
    m = VARIANTS[variant](ALL[name]())
    result = found(m)
    dof, redundant, idle = KNOWN[name]
    assert (result.dof, result.redundant, result.idle) == (dof, redundant, idle)
    assert (result.dof_here, result.redundant_here) == (dof, redundant)
    assert result.verdict == ("overconstrained" if redundant else "regular")
    assert result.grubler == dof - redundant
    assert result.rank == 6 * len(m.bodies) - dof
    assert result.gap >= 1e6  # far from the 1e3 below which the verdict is "undecided"


@pytest.mark.parametrize("name", ["four_bar", "rssr", "bennett", "bricard", "ladder", "andrews"])
def test_mobility_is_the_same_at_another_pose_and_in_motion(name):
    m = turned(ALL[name]())
    system = m.compile()
    rng = np.random.default_rng(2)
    q = ld.tree.increment(system, system.q_reference, 0.2 * rng.normal(size=system.nv))
    result = ld.mobility(system, ld.assemble(system, q=q, v=rng.normal(size=system.nv)))
    assert (result.dof, result.redundant, result.idle) == KNOWN[name]


@pytest.mark.parametrize("cuts", [["A"], ["B"], ["C"], ["D"], "all"])
@pytest.mark.parametrize("name", ["four_bar", "rssr"])
def test_mobility_does_not_depend_on_the_cut(name, cuts):
    system = turned(ALL[name]()).compile(cuts=cuts)
    result = ld.mobility(system, system.state())
    assert (result.dof, result.redundant, result.idle) == KNOWN[name]


# ----------------------------------------------------------------------------------------------- singular poses


@EVERY_VARIANT
@pytest.mark.parametrize("N", [1, 2, 4])
def test_flat_windows_have_one_freedom_and_n_more_at_this_pose(N, variant):
    result = found(VARIANTS[variant](flat_windows(N)))
    assert (result.dof, result.dof_here) == (1, N + 1)
    assert (result.redundant, result.redundant_here) == (3 * N, 4 * N)
    assert result.verdict == "singular here"


def test_windows_brought_flat_by_assembly_are_seen_as_flat():
    system = ld.library.n_four_bar(2).compile()
    result = ld.mobility(system, ld.assemble(system, q={"A0": -np.pi / 2}))
    assert (result.dof, result.dof_here, result.redundant, result.redundant_here) == (1, 3, 6, 8)


@EVERY_VARIANT
def test_change_point_of_a_four_bar_is_singular_at_this_pose_alone(variant):
    """Shortest and longest link together as long as the others: 0.3 + 1.0 = 0.8 + 0.5."""
    result = found(VARIANTS[variant](chain("change", (0, 0, 0), (-0.3, 0, 0), (0.5, 0, 0), (1.0, 0, 0))))
    assert (result.dof, result.dof_here) == (1, 2)
    assert (result.redundant, result.redundant_here) == (3, 4)
    assert result.verdict == "singular here"
    assert "at this pose: 2 instantaneous degrees of freedom, 4 redundant" in str(result)


@EVERY_VARIANT
@pytest.mark.parametrize("middle", [0.4, 0.5])
def test_two_bars_in_line_between_fixed_pins_are_shaky(middle, variant):
    """The pin between them can move across at first order, but the bars are just long enough."""
    m = chain("shaky", (0, 0, 0), (middle, 0, 0), (1.0, 0, 0))
    result = found(VARIANTS[variant](m))
    assert (result.dof, result.dof_here) == (0, 1)
    assert result.verdict == "shaky"


def test_three_bars_in_line_stretched_out_are_shaky():
    result = found(chain("shaky", (0, 0, 0), (0.4, 0, 0), (0.7, 0, 0), (1.0, 0, 0)))
    assert (result.dof, result.dof_here, result.verdict) == (0, 2, "shaky")


def beside(*mechanisms: ld.Mechanism) -> ld.Mechanism:
    """Mechanisms on one ground that have nothing to do with each other; names end in their number."""
    both = ld.Mechanism("both")
    for k, m in enumerate(mechanisms):
        r = m.resolver()
        for name, body in m.bodies.items():
            both.add_body(f"{name}_{k}", ld.Inertia(*body.resolve(r, name, ())))
        for name, joint in m.joints.items():
            ends = {end: getattr(joint, end) for end in ("parent", "child")}
            change = {end: b if b == "ground" else f"{b}_{k}" for end, b in ends.items()}
            change["at"] = tuple(r.vector(joint.at, "length", "", ()))
            both.joints[f"{name}_{k}"] = joint.model_copy(update=change)
    return both


TWO_BARS = chain("shaky", (0, 0, 0), (0.4, 0, 0), (1.0, 0, 0))
THREE_BARS = chain("shaky", (0, 0, 0), (0.4, 0, 0), (0.7, 0, 0), (1.0, 0, 0))
CHANGE = chain("change", (0, 0, 0), (-0.3, 0, 0), (0.5, 0, 0), (1.0, 0, 0))


@EVERY_VARIANT
@pytest.mark.parametrize(
    ("parts", "dof", "dof_here", "redundant", "redundant_here", "verdict"),
    [
        # each part counted alone: bars in line 0 (1 or 2 here, 4 rows repeat), four-bar 1 (3), change point 1 (2; 3, 4)
        ((TWO_BARS, ld.library.four_bar()), 1, 2, 7, 7, "shaky"),
        ((THREE_BARS, ld.library.four_bar()), 1, 3, 7, 7, "shaky"),
        ((TWO_BARS, ld.library.pendulum()), 1, 2, 4, 4, "shaky"),
        ((TWO_BARS, TWO_BARS), 0, 2, 8, 8, "shaky"),
        ((CHANGE, ld.library.four_bar()), 2, 3, 6, 7, "singular here"),
        ((CHANGE, TWO_BARS), 1, 3, 7, 8, "shaky"),
        ((flat_windows(2), TWO_BARS), 1, 4, 10, 12, "shaky"),
    ],
)
def test_freedoms_of_parts_beside_each_other_add_up(parts, dof, dof_here, redundant, redundant_here, verdict, variant):
    result = found(VARIANTS[variant](beside(*parts)))
    assert (result.dof, result.dof_here) == (dof, dof_here)
    assert (result.redundant, result.redundant_here) == (redundant, redundant_here)
    assert (result.verdict, result.idle) == (verdict, ())


def test_shaky_part_on_a_moving_arm_leaves_the_freedom_of_the_arm():
    m = ld.Mechanism("arm")
    link(m, "arm", (0, 0, 0), (1, 0, 0))
    m.add_joint("A", ld.Revolute(axis=(0, 1, 1)), "ground", "arm", at=(0, 0, 0))
    for name, start, end in (("one", (0, 0, 0), (0.4, 0, 0)), ("two", (0.4, 0, 0), (1, 0, 0))):
        link(m, name, start, end)
    for name, parent, child, x in (("P1", "arm", "one", 0.0), ("P2", "one", "two", 0.4), ("P3", "two", "arm", 1.0)):
        m.add_joint(name, PIN, parent, child, at=(x, 0, 0))
    result = found(m)
    assert (result.dof, result.dof_here, result.verdict) == (1, 2, "shaky")


# ------------------------------------------------------------------------------------------------------------ idle


BALLS = np.array([0.15, 0.0, 0.0]), np.array([0.3, 0.6, 0.3])  # ends of the coupler of an RSSR


@pytest.mark.parametrize("turn", [lambda m: m, turned])
@pytest.mark.parametrize(
    ("middle", "dof", "idle"),
    [
        (ld.joints.Weld(), 2, ("upper + lower",)),  # the coupler in two pieces: it spins as one
        (ld.Prismatic(axis=tuple(BALLS[1] - BALLS[0])), 3, ("upper + lower",)),  # a strut that changes its length
        (ld.Cylindrical(axis=tuple(BALLS[1] - BALLS[0])), 4, ("upper", "lower")),  # each of them spins
        (ld.Universal(axis1=(1, 0, 0), axis2=(0, 0, 1)), 4, ("upper + lower",)),  # it spins bent as it is
    ],
)
def test_coupler_of_two_bodies_spins_between_its_balls(middle, dof, idle, turn):
    """Crank and rocker on skew axes; 24 freedoms less 5 + 3 + 3 + 5 rows and those of the joint half way."""
    m = ld.Mechanism("divided")
    half = tuple(0.5 * (BALLS[0] + BALLS[1]))
    places = {
        "crank": ((0, 0, 0), BALLS[0]),
        "upper": (BALLS[0], half),
        "lower": (half, BALLS[1]),
        "rocker": (BALLS[1], (0.3, 0.6, -0.1)),
    }
    for name, (start, end) in places.items():
        link(m, name, tuple(start), tuple(end))
    m.add_joint("A", ld.Revolute(axis=(0, 0.3, 1)), "ground", "crank", at=(0, 0, 0))
    m.add_joint("B", ld.Spherical(), "crank", "upper", at=BALLS[0])
    m.add_joint("middle", middle, "upper", "lower", at=half)
    m.add_joint("C", ld.Spherical(), "lower", "rocker", at=BALLS[1])
    m.add_joint("D", ld.Revolute(axis=(1, 0.2, 0)), "ground", "rocker", at=(0.3, 0.6, -0.1))
    result = found(turn(m))
    assert (result.dof, result.redundant, set(result.idle)) == (dof, 0, set(idle))


def test_struts_between_balls_spin_each_as_a_pair():
    """Platform on six struts with balls at both ends: 13 bodies, 12 balls, 6 slides: 78 - 36 - 30 = 12, six idle."""
    m = ld.Mechanism("struts")
    m.add_body("platform", ld.Inertia.box(mass=1.0, size=(1, 1, 0.1), at=(0, 0, 1)))
    for k in range(6):
        foot, head = k * np.pi / 3 + 0.2 * (-1) ** k, k * np.pi / 3 - 0.3 * (-1) ** k
        low = np.array([np.cos(foot), np.sin(foot), 0.0])
        high = np.array([0.5 * np.cos(head), 0.5 * np.sin(head), 1.0])
        link(m, f"cylinder{k}", tuple(low), tuple(0.5 * (low + high)))
        link(m, f"piston{k}", tuple(0.5 * (low + high)), tuple(high))
        m.add_joint(f"foot{k}", ld.Spherical(), "ground", f"cylinder{k}", at=low)
        m.add_joint(f"slide{k}", ld.Prismatic(axis=tuple(high - low)), f"cylinder{k}", f"piston{k}", at=low)
        m.add_joint(f"head{k}", ld.Spherical(), f"piston{k}", "platform", at=high)
    result = found(m)
    assert (result.dof, result.redundant) == (12, 0)
    assert {frozenset(pair.split(" + ")) for pair in result.idle} == {
        frozenset((f"cylinder{k}", f"piston{k}")) for k in range(6)
    }


def test_door_on_two_hinges_is_not_idle():
    """It moves alone, but that is the motion it is made for."""
    door = ld.Mechanism("door")
    door.add_body("door", ld.Inertia.box(mass=1.0, size=(1, 0.1, 2), at=(0.5, 0, 1)))
    for name, z in (("low", 0.0), ("high", 1.0)):
        door.add_joint(name, PIN, "ground", "door", at=(0, 0, z))
    result = found(beside(door, ld.library.pendulum()))
    assert (result.dof, result.redundant, result.idle) == (2, 5, ())


# --------------------------------------------------------------------------------------------------- structures


@EVERY_VARIANT
def test_triangle_of_pinned_bars_is_an_overconstrained_structure(variant):
    """Two bars and the ground make a triangle: two freedoms less two in-plane rows; three rows repeat others."""
    result = found(VARIANTS[variant](chain("triangle", (0, 0, 0), (0.4, 0.7, 0), (1.0, 0, 0))))
    assert (result.dof, result.dof_here, result.redundant, result.redundant_here) == (0, 0, 3, 3)
    assert result.verdict == "overconstrained"
    assert result.grubler == -3


@EVERY_VARIANT
@pytest.mark.parametrize(
    ("places", "dof", "redundant"), [(((0, 0, 0), (0, 0, 1)), 1, 5), (((0, 0, 0), (1, 0, 0)), 0, 4)]
)
def test_two_parallel_hinges_turn_only_if_they_share_their_axis(places, dof, redundant, variant):
    """A door keeps its freedom and five rows repeat; hinges side by side hold it, one of five rows is new."""
    m = ld.Mechanism("door")
    m.add_body("door", ld.Inertia.box(mass=1.0, size=(1, 0.1, 2), at=(0.5, 0, 1)))
    for name, at in zip(("low", "high"), places, strict=True):
        m.add_joint(name, PIN, "ground", "door", at=at)
    result = found(VARIANTS[variant](m))
    assert (result.dof, result.redundant, result.verdict) == (dof, redundant, "overconstrained")


def test_open_chain_and_single_bodies_are_regular():
    m = ld.Mechanism("loose")
    m.add_body("stone", ld.Inertia.sphere(mass=1.0, radius=0.1))
    result = found(m)
    assert (result.dof, result.redundant, result.rows, result.verdict) == (6, 0, 0, "regular")


@pytest.mark.parametrize("seed", range(12))
def test_random_mechanisms_have_the_counts_they_were_built_with(seed):
    """Loops are placed with independent rows; a doubled joint repeats all its rows."""
    extra = seed % 3
    m = ld.library.random_mechanism(seed, bodies=8, loops=2, redundant=extra)
    result = found(m)
    repeated = sum(len(j.rows_when_cut) for name, j in m.joints.items() if name.endswith("_twin"))
    rows = sum(len(j.rows_when_cut) for j in m.joints.values())
    assert result.redundant == result.redundant_here == repeated
    assert result.dof == result.dof_here == 6 * len(m.bodies) - (rows - repeated)
    assert result.rows == rows


# ---------------------------------------------------------------------------------------------- what is determined


@EVERY_VARIANT
def test_plane_pins_have_unique_forces_in_the_plane_and_nothing_else(variant):
    """In-plane forces follow from the plane motion; out of the plane twelve unknowns meet nine balances."""
    result = found(VARIANTS[variant](ld.library.four_bar()))
    if variant.endswith("turned"):  # axes of the pins' frames are turned about z: in the plane still
        assert set(result.unique) == set("ABCD")
    for rows in result.unique.values():
        assert rows == {"mx": False, "my": False, "fx": True, "fy": True, "fz": False}
    assert result.dependent == {joint: ("mx", "my", "fz") for joint in result.dependent}
    assert set(result.dependent) == set("ABCD")


def test_dependent_rows_are_only_named_where_they_are():
    """A pendulum on a doubled hinge, and another body beside it: its joint is not among the dependent ones."""
    m = ld.Mechanism("two")
    for name in ("left", "right"):
        m.add_body(name, ld.Inertia.rod(mass=1.0, start=(0, 0, 0), end=(1, 0, 0), radius=0.1))
    m.add_joint("low", PIN, "ground", "left", at=(0, 0, 0))
    m.add_joint("high", PIN, "ground", "left", at=(0, 0, 1))
    m.add_joint("ball", ld.Spherical(), "left", "right", at=(1, 0, 0))
    result = found(m)
    assert set(result.dependent) == {"low", "high"}
    assert all(result.unique["ball"].values())


# -------------------------------------------------------------------------------------------------------- report


def test_report_says_it_in_words():
    text = str(found(ld.library.four_bar()))
    assert text.startswith("four_bar: 1 degree of freedom, 3 redundant constraints")
    assert "verdict: overconstrained" in text
    assert "constraint equations: 20, rank 17; Grübler count -2" in text
    assert "reactions: 8 of 20 components are statically determinate" in text
    assert "idle: coupler" in str(found(ld.library.rssr()))


@pytest.mark.parametrize("factor", [1e-3, 1.0, 1e3])
def test_open_loop_is_refused(factor):
    """Open by 1e-5 of the size, however large the mechanism is."""
    system = scaled(ld.library.four_bar(), factor).compile()
    with pytest.raises(ld.errors.AssemblyError, match="loops are open"):
        ld.mobility(system, system.state(q={"A": 1e-5}))


def test_moving_base_changes_nothing():
    m = ld.library.four_bar()
    m.move_base(x="0.1*sin(t)", rz="0.2*t")
    system = m.compile()
    result = ld.mobility(system, ld.assemble(system, t=1.3))
    assert (result.dof, result.redundant) == (1, 3)


@pytest.mark.parametrize("here", [(2, 4), None])
def test_base_that_turns_against_the_ground_changes_nothing(here):
    """The last pin stands on a base of given motion; frozen in time, it is the same four-bar at its change point."""
    m = CHANGE.model_copy(deep=True) if here else ld.library.four_bar()
    m.add_body("sled", ld.Inertia.sphere(mass=1.0, radius=0.1))
    m.move_base("sled", x="0.4*sin(t)", rx="0.2*t", rz="0.7*t")
    last = "P4" if here else "D"
    on_ground = next(end for end in ("parent", "child") if getattr(m.joints[last], end) == "ground")
    m.joints[last] = m.joints[last].model_copy(update={on_ground: "sled"})
    result = found(m)
    assert (result.dof, result.redundant) == (1, 3)
    assert (result.dof_here, result.redundant_here) == (here or (1, 3))
    assert result.verdict == ("singular here" if here else "overconstrained")
