"""The library's mechanisms are what their sources say: counts, geometry, mass, motion at the start, files."""

from __future__ import annotations

from functools import partial
from math import acos, atan2, cos, pi, radians, sin, sqrt, tan
from pathlib import Path

import numpy as np
import pytest

import loopdyn as ld
from loopdyn import library
from loopdyn.library import ALL, turned
from loopdyn.spatial.rotations import to_matrix

FOLDER = Path(__file__).parents[2] / "examples" / "mechanisms"
EVERY = pytest.mark.parametrize("name", ALL)

# ------------------------------------------------------------------------ small tools, independent of any formulation

RANK = 1e-9  # of matrices whose entries are of order one


def near(found, expected, tolerance):
    """Whether all entries agree within an absolute tolerance."""
    return np.abs(np.subtract(found, expected)).max() <= tolerance


def null_space(A):
    s, Vt = np.linalg.svd(A)[1:]
    return Vt[np.sum(s > RANK) :].T


def accelerations(terms):
    """a of M a = h + J^T lam, J a = gamma, by the null space of J."""
    a0 = np.linalg.lstsq(terms.J, terms.gamma, rcond=RANK)[0] if len(terms.J) else np.zeros(len(terms.h))
    Z = null_space(terms.J) if len(terms.J) else np.eye(len(terms.h))
    return a0 + Z @ np.linalg.solve(Z.T @ terms.M @ Z, Z.T @ (terms.h - terms.M @ a0))


def speeds(system, given, q=None):
    """Speeds that keep the loops closed and have the given values; the smallest if these leave a choice."""
    t = ld.terms(system, system.state(q=q))
    chosen = np.eye(system.nv)[[system.speeds.index(label) for label in given]]
    A, b = np.vstack([t.J, chosen]), np.concatenate([np.zeros(system.nc), list(given.values())])
    v = np.linalg.lstsq(A, b, rcond=RANK)[0]
    assert np.abs(A @ v - b).max() < 1e-12
    return v


def closed(system, q, fixed):
    """Coordinates near q that close the loops, with some held; Gauss-Newton."""
    free = [k for k, label in enumerate(system.speeds) if label not in fixed]
    for _ in range(50):
        t = ld.terms(system, system.state(q=q))
        if np.abs(t.phi).max() < 1e-14:
            break
        step = np.zeros(system.nv)
        step[free] = -np.linalg.lstsq(t.J[:, free], t.phi, rcond=1e-7)[0]
        q = ld.tree.increment(system, q, step)
    assert np.abs(t.phi).max() < 1e-13
    return q


def place(system, q, body, point):
    """World position of a point of a body that is given at the reference pose."""
    motion = ld.tree.body_motion(system, system.state(q=q))
    k = motion.bodies.index(body)
    return motion.position[k] + motion.rotation[k] @ np.asarray(point, float)


def joint_place(m, name):
    return m.resolver().vector(m.joints[name].at, "length", "", ())


def joint_axis(m, name):
    return m.resolver().direction(m.joints[name].axis, "", ("axis",))


def masses(m):
    r = m.resolver()
    found = {name: body.resolve(r, name, ()) for name, body in m.bodies.items()}
    assert not r.problems
    return found


def twists(m, joint):
    """Freedoms (k, 6) of a joint at its place, in world axes: written here once more, from the definition."""
    r = m.resolver()
    if joint.type in ("revolute", "prismatic", "helical", "cylindrical"):
        a = r.direction(joint.axis, "", ("axis",))
        turn, slide = [*a, 0, 0, 0], [0, 0, 0, *a]
        both = {"revolute": [turn], "prismatic": [slide], "cylindrical": [turn, slide]}
        return np.array(
            both.get(joint.type) or [np.add(turn, r.scalar(joint.pitch, "pitch", "", ()) * np.array(slide))]
        )
    if joint.type == "universal":
        return np.array([[*r.vector(a, "number", "", ()), 0, 0, 0] for a in (joint.axis1, joint.axis2)])
    if joint.type == "planar":
        n = r.direction(joint.normal, "", ("normal",))
        return np.array([[*n, 0, 0, 0], *[[0, 0, 0, *x] for x in null_space(n[None]).T]])
    return np.eye(6)[
        {"spherical": slice(3), "translational": slice(3, 6), "free": slice(6), "weld": slice(0)}[joint.type]
    ]


def all_rows(m):
    """Constraint rows of all joints at the reference pose, on the twists of all bodies at their mass centres."""
    rows = []
    column = {name: 6 * k for k, name in enumerate(m.bodies)}
    centre = {name: c for name, (_, c, _) in masses(m).items()}
    for name, joint in m.joints.items():
        S = twists(m, joint)
        forbidden = null_space(S).T if len(S) else np.eye(6)
        line = np.zeros((len(forbidden), 6 * len(column)))
        for body, sign in ((joint.child, 1), (joint.parent, -1)):
            if body != "ground":
                x, y, z = joint_place(m, name) - centre[body]
                shift = np.eye(6)
                shift[3:, :3] = [[0, z, -y], [-z, 0, x], [y, -x, 0]]  # v at the joint = v at the centre + omega x r
                line[:, column[body] : column[body] + 6] = sign * forbidden @ shift
        rows.append(line)
    return np.vstack(rows)


# ----------------------------------------------------------------------------------------- counts and closure

# bodies, joints, loops, degrees of freedom, redundant rows over all joints
COUNTS = {
    "pendulum": (1, 1, 0, 1, 0),
    "double_pendulum": (2, 2, 0, 2, 0),
    "four_bar": (3, 4, 1, 1, 3),
    "watt": (5, 7, 2, 1, 6),
    "stephenson": (5, 7, 2, 1, 6),
    "slider_crank": (3, 4, 1, 1, 3),
    "quick_return": (5, 7, 2, 1, 6),
    "five_bar": (4, 5, 1, 2, 3),
    "n_four_bar": (5, 7, 2, 1, 6),
    "andrews": (7, 10, 3, 1, 9),
    "bricard": (5, 6, 1, 1, 1),
    "bricard_slender": (5, 6, 1, 1, 1),
    "flyball": (4, 4, 0, 4, 0),
    "rssr": (3, 4, 1, 2, 0),
    "bennett": (3, 4, 1, 1, 3),
    "stewart_3rrs": (7, 9, 2, 3, 0),
    "stewart_6ups": (13, 18, 5, 6, 0),
    "ladder": (7, 10, 3, 2, 6),
    "star_ladder": (7, 10, 3, 2, 0),
    "tower": (9, 12, 3, 6, 0),
    "peaucellier": (7, 10, 3, 1, 9),
    "theo_jansen": (7, 10, 3, 1, 9),
    "scissor_lift": (7, 10, 3, 1, 9),
    "double_wishbone": (6, 8, 2, 3, 0),
    "delta_robot": (10, 15, 5, 3, 0),
    "cardan_shaft": (4, 5, 1, 1, 0),
}


@pytest.mark.parametrize("name", COUNTS)
def test_counts_of_bodies_joints_loops_and_freedoms(name):
    m = ALL[name]()
    J = all_rows(m)
    rank = np.linalg.matrix_rank(J, tol=RANK)
    loops = len(m.joints) - len(m.bodies)
    assert (len(m.bodies), len(m.joints), loops, J.shape[1] - rank, len(J) - rank) == COUNTS[name]


def test_every_mechanism_of_the_library_is_counted():
    assert set(COUNTS) | {"random_mechanism"} == set(ALL)
    assert set(library.__all__) >= {f"{n}" for n in ALL if n != "bricard_slender"}


@pytest.mark.parametrize(
    ("build", "sizes", "bodies", "joints", "freedoms", "redundant"),
    [
        (library.n_four_bar, (1, 5, 40), lambda n: 2 * n + 1, lambda n: 3 * n + 1, lambda n: 1, lambda n: 3 * n),
        (library.ladder, (1, 5, 10), lambda n: 2 * n + 1, lambda n: 3 * n + 1, lambda n: 2, lambda n: 2 * n),
        (library.star_ladder, (1, 5, 30), lambda n: 2 * n + 1, lambda n: 3 * n + 1, lambda n: 2, lambda n: 0),
        (library.tower, (1, 5, 20), lambda n: 3 * n, lambda n: 4 * n, lambda n: 2 * n, lambda n: 0),
        (library.scissor_lift, (1, 5, 20), lambda n: 2 * n + 3, lambda n: 3 * n + 4, lambda n: 1, lambda n: 3 * n + 3),
    ],
)
def test_counts_of_a_family_at_every_size(build, sizes, bodies, joints, freedoms, redundant):
    for n in sizes:
        m = build(n)
        J = all_rows(m)
        rank = np.linalg.matrix_rank(J, tol=RANK)
        assert (len(m.bodies), len(m.joints)) == (bodies(n), joints(n))
        assert (J.shape[1] - rank, len(J) - rank) == (freedoms(n), redundant(n))


FAMILIES = [library.n_four_bar, library.ladder, library.star_ladder, library.tower, library.scissor_lift]


@pytest.mark.parametrize("build", FAMILIES)
def test_a_family_has_no_member_of_size_zero(build):
    with pytest.raises(ld.LoopdynError, match="at least 1"):
        build(0)


@pytest.mark.parametrize("build", [library.star_ladder, library.tower])
def test_conditioning_of_a_generic_family_decays_no_faster_than_its_length(build):
    for n in (5, 40):
        assert n * np.linalg.svd(all_rows(build(n)), compute_uv=False)[-1] > 0.5


@EVERY
@pytest.mark.jit_off
def test_loops_are_closed_at_the_reference_pose(name):
    for m in (ALL[name](), turned(ALL[name]())):
        system = m.compile()
        t = ld.terms(system, system.state())
        assert np.abs(t.phi).max(initial=0.0) < 1e-12
        assert np.abs(t.motion.position).max() < 1e-12  # own frames are the world's at the reference pose


@EVERY
def test_start_names_coordinates_that_exist(name):
    m = ALL[name]()
    q, v = m.compile().start
    assert set(q) == set(m.start.q)
    assert set(v) == set(m.start.v)


# ------------------------------------------------------------- geometry and mass against the problems' definitions


def test_four_bar_is_the_defined_linkage():
    m = library.four_bar()
    A, B, C, D = (joint_place(m, name) for name in "ABCD")
    assert near(C, [0.9922938867700787, 0.5999505111414504, 0], 1e-15)  # circles at crank angle 1 rad
    lengths = [np.linalg.norm(p) for p in (B - A, C - B, C - D, D - A)]
    assert near(lengths, [0.3, 0.9, 0.6, 1.0], 1e-14)
    mass, centre, inertia = masses(m)["coupler"]
    assert (mass, inertia[2, 2]) == (2.0, 0.15)
    assert near(centre, [0.5847025539103422, 0.5377467702762627, 0], 1e-15)


def test_a_parameter_changes_one_length_of_the_four_bar():
    m = library.four_bar().with_(crank=0.25)
    A, B, C, D = (joint_place(m, name) for name in "ABCD")
    assert near([np.linalg.norm(p) for p in (B - A, C - B, C - D, D - A)], [0.25, 0.9, 0.6, 1.0], 1e-14)


def test_slider_crank_is_the_defined_linkage():
    m = library.slider_crank()
    assert near(joint_place(m, "C"), [0.5786328587266891, 0.02, 0], 1e-15)
    assert near(joint_place(m, "B"), [0.15 * cos(0.5), 0.15 * sin(0.5), 0], 1e-15)
    assert [masses(m)[b][0] for b in ("crank", "rod", "slider")] == [1.0, 0.8, 0.5]


def test_quick_return_is_the_defined_linkage():
    m = library.quick_return()
    B, D, E, F = (joint_place(m, name) for name in "BDEF")
    assert near(np.cross(B - D, E - D), 0, 1e-16)  # the slot runs along the arm
    lengths = [np.linalg.norm(p) for p in (B, D, E - D, F - E)]
    assert near(lengths, [0.25, 0.1, 0.2, 0.6], 1e-15)
    assert near(F[1:], [-0.1, 0], 1e-16)
    assert np.linalg.norm(D) < np.linalg.norm(B)  # Whitworth's: the arm turns fully


def test_five_bar_is_the_defined_linkage():
    m = library.five_bar()
    assert near(joint_place(m, "C"), [0.4249275778845241, -0.6759480232941408, 0], 1e-15)
    assert masses(m)["BC"][2][2, 2] == pytest.approx(1.6 * 0.81 / 12, rel=1e-14)


def test_andrews_closes_with_the_lengths_of_the_test_set():
    m = library.andrews()
    F, E, G, H = (joint_place(m, name) for name in ("F", "E2", "G", "H"))
    assert near(F, [0.006986674115451445, -0.0004317230645688955, 0], 1e-16)
    assert near(E, [-0.02096002234635434, 0.001295169193706685, 0], 1e-16)
    # d, e and zf do not enter the model: they follow from the printed angles, in all thirty digits of them
    lengths = [np.linalg.norm(E - p) for p in (F, G, H)]
    assert near(lengths, [0.028, 0.02, 0.02], 1e-16)
    D = m.resolver().vector(m.forces["spring"].point1, "length", "", ())
    assert near(D, [-0.01047239388881462, 0.02535778853027525, 0], 1e-16)
    assert sum(mass for mass, _, _ in masses(m).values()) == pytest.approx(0.21023, abs=1e-15)


@pytest.mark.parametrize(("slender", "axial", "across"), [(False, 1 / 600, 1.01 / 12), (True, 0.0, 1 / 12)])
def test_bricard_rods_have_the_defined_inertia(slender, axial, across):
    for mass, _, inertia in masses(library.bricard(slender)).values():
        assert mass == 1.0
        assert near(sorted(np.diag(inertia)), [axial, across, across], 1e-14)


def test_energy_at_the_start_is_that_of_the_problem():
    def gravity(m):
        system = m.compile()
        return ld.tree.energy(system, system.state()).gravity

    assert gravity(library.pendulum()) == pytest.approx(0.0, abs=1e-15)
    assert gravity(library.bricard()) == pytest.approx(-29.43, rel=1e-14)
    for n in (2, 5):
        system = library.n_four_bar(n).compile()
        e = ld.tree.energy(system, system.state(v=speeds(system, {"A0": -1.0})))
        assert e.gravity == pytest.approx(9.81 * ((n + 1) / 2 + n), rel=1e-14)
        assert e.kinetic == pytest.approx(((n + 1) / 3 + n) / 2, rel=1e-13)


def test_flyball_couplers_are_unstrained_and_masses_follow_from_the_density():
    m = library.flyball()
    r = m.resolver()
    for k in (1, 2):
        rod = m.forces[f"coupler{k}"]
        ends = [r.vector(p, "length", "", ()) for p in (rod.point1, rod.point2)]
        assert np.linalg.norm(ends[1] - ends[0]) == pytest.approx(0.5, rel=1e-14)
        assert masses(m)[f"arm{k}"][0] == pytest.approx(3000 * 1e-4 + 5, rel=1e-14)
    assert masses(m)["slider"][0] == 3000 * 1e-3


def test_ladder_shares_its_mass_among_any_number_of_cells():
    for n in (1, 7):
        parts = masses(library.ladder(n))
        assert sum(part[0] for part in parts.values()) == pytest.approx(5.0, rel=1e-14)
        assert near(parts["leg0"][2], 2 / (n + 1) * np.diag([1 / 12, 0.001, 1 / 12]), 1e-14)
        assert near(parts["rung1"][2], 3 / n * np.diag([0.004, 0.49 / 12, 0.49 / 12]), 1e-14)


def test_double_pendulum_is_that_of_the_paper_in_slugs_and_feet():
    m = library.double_pendulum()
    slug, foot = 14.593902937206364, 0.3048  # kg, m
    for mass, _, inertia in masses(m).values():
        assert (mass, inertia[2, 2]) == pytest.approx((slug, slug * foot**2), rel=4e-3)  # printed with three digits
    assert near(joint_place(m, "B"), [4 * foot, 0, 0], 1e-3)
    assert near(masses(m)["link2"][1], [6 * foot, 0, 0], 2e-3)


def test_stewart_3rrs_is_symmetric_and_its_shafts_lie_along_their_motors():
    m = library.stewart_3rrs()
    third = np.array([[-0.5, sqrt(0.75), 0], [-sqrt(0.75), -0.5, 0], [0, 0, 1]])  # clockwise, seen from above
    for first in (1, 4, 7):
        p = [joint_place(m, f"J{first + k}") for k in (0, 1)]
        assert near(third @ p[0], p[1], 0.011)  # printed with two digits
    for k in range(3):
        shaft = joint_place(m, f"J{k + 7}") - joint_place(m, f"J{k + 4}")
        assert abs(shaft @ joint_axis(m, f"J{k + 7}")) / np.linalg.norm(shaft) > cos(radians(4))


def test_stewart_6ups_hangs_its_slides_between_universal_and_ball_joints():
    m = library.stewart_6ups()
    for k in range(1, 7):
        leg = joint_place(m, f"S{k}") - joint_place(m, f"U{k}")
        assert np.linalg.norm(np.cross(leg, joint_axis(m, f"P{k}"))) < 1e-4
    assert sum(part[0] for part in masses(m).values()) == pytest.approx(20 + 6 * 3)


# --------------------------------------------------------------------------------------- paradoxical linkages


def bennett_corners(system, q):
    m = library.bennett()
    P = [joint_place(m, f"P{k}") for k in (1, 2, 3, 4)]
    return np.array([P[0], place(system, q, "link1", P[1]), place(system, q, "link2", P[2]), P[3]])


@pytest.mark.parametrize("change", [{}, {"u": 0.9, "v": 0.4, "phi": 0.8, "h": 0.35}])
def test_bennett_links_have_equal_lengths_and_twists_in_the_bennett_ratio(change):
    m = library.bennett().with_(**change)
    P = [joint_place(m, f"P{k}") for k in (1, 2, 3, 4)]
    e = [joint_axis(m, f"P{k}") for k in (1, 2, 3, 4)]
    links = [P[(k + 1) % 4] - P[k] for k in range(4)]
    length = [np.linalg.norm(x) for x in links]
    sine = [np.linalg.norm(np.cross(e[k], e[(k + 1) % 4])) for k in range(4)]
    for k in range(4):
        assert abs(links[k] @ e[k]) < 1e-15  # hinges are perpendicular to both their links
        assert abs(links[k] @ e[(k + 1) % 4]) < 1e-15
    assert length[0] == pytest.approx(length[2], rel=1e-14)
    assert length[1] == pytest.approx(length[3], rel=1e-14)
    assert near(np.divide(sine, length), sine[0] / length[0], 1e-13)


def signed(a, b, axis):
    """Angle from a to b about a unit axis that is perpendicular to both."""
    return atan2(np.cross(a, b) @ axis, a @ b)


def test_bennett_moves_and_its_angles_obey_the_closed_form():
    system = library.bennett().compile(cuts=["P4"])
    P1 = system.coordinates.index("P1")
    q = system.q_reference
    for angle in np.linspace(0.0, 1.2, 7):
        q = closed(system, q + (angle - q[P1]) * speeds(system, {"P1": 1.0}, q), ["P1"])
        P = bennett_corners(system, q)
        link = [P[(k + 1) % 4] - P[k] for k in range(4)]
        x = [r / np.linalg.norm(r) for r in link]
        # axes so oriented that the angles at opposite joints add up to a full turn
        z = [sign * np.cross(x[k - 1], x[k]) for k, sign in enumerate((1, 1, -1, -1))]
        z = [r / np.linalg.norm(r) for r in z]
        theta = [signed(x[k - 1], x[k], z[k]) for k in range(4)]
        alpha, beta, alpha2, beta2 = (signed(z[k], z[(k + 1) % 4], x[k]) for k in range(4))
        assert (alpha2, beta2) == pytest.approx((alpha, beta), rel=1e-10)
        assert (theta[2], theta[3]) == pytest.approx((-theta[0], -theta[1]), rel=1e-10)
        ratio = sin((beta + alpha) / 2) / sin((beta - alpha) / 2)
        assert tan(theta[0] / 2) * tan(theta[1] / 2) == pytest.approx(ratio, rel=1e-9)
        assert np.linalg.matrix_rank(ld.terms(system, system.state(q=q)).J, tol=1e-7) == 2


def test_bricard_follows_its_closed_form():
    system = library.bricard().compile(cuts=["P6"])
    q = system.q_reference
    P1 = system.coordinates.index("P1")
    for alpha in np.linspace(pi / 2, -0.4, 12):
        q = closed(system, q + (pi / 2 - alpha - q[P1]) * speeds(system, {"P1": 1.0}, q), ["P1"])
        b = acos(1 / (1 + cos(alpha)) - 1)
        s, c = sin(alpha), cos(alpha)
        assert near(place(system, q, "rod1", (1, 0, 0)), [s, 0, -c], 1e-12)
        P3 = ((1 + cos(b)) * s, -sin(b), -(1 + cos(b)) * c)
        assert near(place(system, q, "rod2", (1, -1, 0)), P3, 1e-11)
        assert near(place(system, q, "rod3", (1, -1, 1)), [s, -sin(b) * (1 + c), 1 - c], 1e-11)
        assert near(place(system, q, "rod4", (0, -1, 1)), [0, -sin(b), 1 + cos(b)], 1e-11)


def test_rssr_crank_can_turn_fully():
    m = library.rssr()
    A, B, C, D = (joint_place(m, name) for name in "ABCD")
    a, d = joint_axis(m, "A"), joint_axis(m, "D")
    coupler = np.linalg.norm(C - B)

    def turn(axis, angle, v):
        return to_matrix([cos(angle / 2), *(sin(angle / 2) * axis)]) @ v

    for angle in np.linspace(0, 2 * pi, 73):
        tip = A + turn(a, angle, B - A)
        distance = [np.linalg.norm(D + turn(d, x, C - D) - tip) for x in np.linspace(0, 2 * pi, 181)]
        assert min(distance) < coupler - 0.05
        assert max(distance) > coupler + 0.05


# --------------------------------------------------------------------- accelerations at the start, from other sources


# Closed forms and one-coordinate equations of the reference solutions, t = 0.
STARTS = [
    (library.pendulum, None, {}, {"A": 9.81}),
    # [[J + 5 m d^2, 2 m d^2], [2 m d^2, J + m d^2]] on the angles from the horizontal, loads -3 m g d and -m g d
    (library.double_pendulum, None, {}, {"A": -10.978211649276629, "B": 15.675862305148545}),
    (library.four_bar, ["C"], {"A": 8.0}, {"A": -57.58354514433628}),
    (library.four_bar, ["D"], {}, {"A": -16.32867654832981}),
    (library.slider_crank, ["C"], {"A": 12.0}, {"A": -150.1489767701239}),
    (library.five_bar, ["C"], {}, {"A": 19.53841078501679, "E": -13.5650588903662}),
    (library.andrews, ["E2", "E4", "E6"], {}, {"O": 14222.4439199541, "F": -10666.8329399656}),
    (library.bricard, ["P4"], {}, {"P1": 1.95808383233533}),
    (partial(library.bricard, slender=True), ["P6"], {}, {"P1": 1.962}),
]


@pytest.mark.parametrize(("build", "cuts", "given", "expected"), STARTS)
@pytest.mark.jit_off
def test_accelerations_at_the_start_are_those_of_the_reference_solutions(build, cuts, given, expected):
    for m in (build(), turned(build())):
        system = m.compile(cuts)
        a = accelerations(ld.terms(system, system.state(v=speeds(system, given) if given else None)))
        for label, value in expected.items():
            assert a[system.speeds.index(label)] == pytest.approx(value, rel=2e-12)


@pytest.mark.parametrize("n", [1, 2, 6])
def test_n_four_bar_falls_as_its_one_equation_says(n):
    phi = 0.4  # angle of the cranks, clockwise
    system = library.n_four_bar(n).compile()
    angle = {"A": -phi, "B": phi, "C": -phi}
    t = ld.terms(system, system.state(q={label: angle[label[0]] for label in system.coordinates}))
    assert np.abs(t.phi).max() < 1e-14
    inertia, arm = (n + 1) / 3 + n, (n + 1) / 2 + n
    assert accelerations(t)[system.speeds.index("A0")] == pytest.approx(-9.81 * arm * sin(phi) / inertia, rel=1e-12)


@pytest.mark.parametrize("n", [1, 3, 8])
def test_ladder_accelerates_as_its_equivalent_pendulum_at_every_length(n):
    system = library.ladder(n).compile()
    q = {label: value for label, value in system.start[0].items() if label in system.coordinates}
    assert np.abs(ld.terms(system, system.state(q=q)).phi).max() < 1e-14
    v = speeds(system, system.start[1], q)
    a = accelerations(ld.terms(system, system.state(q=q, v=v)))
    # two-angle body with the summed inertia, at angles (0.4, 0.3) and speeds (0.5, -0.7)
    mass, moment = 2 * 0.25 + 3, 2 * 0.5 + 3
    across, along = mass + 2 / 12, 2 * 0.001
    c, s = cos(0.3), sin(0.3)
    I1, I2 = across * c * c + along * s * s + 3 * 0.004, across
    slope = 2 * c * s * (along - across)
    a1 = (-slope * 0.5 * -0.7 - moment * 9.81 * sin(0.4) * c) / I1
    a2 = (0.5 * slope * 0.25 - moment * 9.81 * cos(0.4) * s) / I2
    assert (a1, a2) == pytest.approx((-4.56214067, -2.98349255), abs=1e-8)
    assert a[[system.speeds.index(label) for label in ("U0.1", "U0.2")]] == pytest.approx((a1, a2), rel=1e-11)


def test_flyball_starts_as_free_slider_and_arms_in_the_centrifugal_field():
    system = library.flyball().compile()
    omega, alpha, g = 2 * pi, pi / 6, 9.81
    a = dict(zip(system.speeds, accelerations(ld.terms(system, system.state(v={"spin": omega}))), strict=True))
    # one arm: rod 0.3 kg and ball 5 kg; d/d(alpha) of half its second moment about the axis of spin
    first = 0.3 * 0.5 + 5 * 1.0
    second = 0.3 / 3 + 5 * 1.0
    thin = 0.3 * 1e-4 / 12
    centrifugal = -0.05 * first * sin(alpha) - (second - thin) * sin(alpha) * cos(alpha)
    expected = (omega**2 * centrifugal + g * cos(alpha) * first) / (second + thin)
    assert a["slide"] == pytest.approx(-g, rel=1e-12)  # couplers neither strained nor moving
    assert a["hinge1"] == pytest.approx(expected, rel=1e-12)
    assert a["hinge2"] == pytest.approx(-expected, rel=1e-12)
    assert abs(a["spin"]) < 1e-12


def test_stewart_3rrs_starts_as_in_an_independent_simulation():
    # spin of the plate after 0.1 and 0.2 s, by a symplectic method in absolute coordinates with steps of 1 ms
    for g, spin in ((0.0, (0.307413934952385, 0.6145054322619461)), (9.81, (0.31023392552441437, 0.6372313601800298))):
        system = library.stewart_3rrs().with_(g=g).compile()
        motion = ld.tree.body_motion(system, system.state(), accelerations(ld.terms(system, system.state())))
        k = motion.bodies.index("plate")
        at_rest = (4 * spin[0] - spin[1]) / 0.2  # slope at t = 0 of the parabola through 0 and both values
        assert motion.angular_acceleration[k][2] == pytest.approx(at_rest, rel=0.02)


# ----------------------------------------------------------------------------------------------- turned


@EVERY
def test_a_turned_mechanism_moves_the_same(name):
    check_turned(ALL[name]())


@pytest.mark.parametrize("seed", range(6))
def test_a_turned_random_mechanism_with_forces_moves_the_same(seed):
    check_turned(library.random_mechanism(seed, forces=True, floating=seed > 3))


def check_turned(m):
    system = m.compile()
    Z = null_space(ld.terms(system, system.state()).J) if system.nc else np.eye(system.nv)
    v = Z @ np.random.default_rng(3).normal(size=Z.shape[1])
    a = accelerations(ld.terms(system, system.state(v=v)))
    there = turned(m).compile()
    assert there.speeds == system.speeds
    assert near(accelerations(ld.terms(there, there.state(v=v))), a, 1e-9 * (1 + np.abs(a).max()))


def test_turning_by_a_matrix_and_by_a_quaternion_is_the_same():
    q = np.array([0.5, -0.1, 0.7, 0.2])
    m = library.four_bar()
    assert turned(m, q) == turned(m, to_matrix(q))
    assert turned(m, q).gravity == pytest.approx(to_matrix(q) @ [0, -9.81, 0])


def test_turning_there_and_back_gives_the_same_numbers():
    m = library.random_mechanism(2, forces=True)
    R = to_matrix([0.5, -0.1, 0.7, 0.2])
    back = turned(turned(m, R), R.T)
    one, other = m.compile().joints, back.compile().joints
    for name, joint in one.items():
        for frame, again in ((joint.F, other[name].F), (joint.M, other[name].M)):
            assert near(frame[0], again[0], 1e-14)
            assert near(frame[1], again[1], 1e-14)
    for name, (mass, centre, inertia) in masses(m).items():
        again = masses(back)[name]
        assert again[0] == mass
        assert near(again[1], centre, 1e-14)
        assert near(again[2], inertia, 1e-14)


def test_turning_keeps_units_frames_and_body_axes():
    m = ld.Mechanism("m", units={"length": "mm", "angle": "deg"}, gravity=(0, 0, -9.81))
    pose = ld.Frame(position=(10, 20, 30), rotation=ld.joints.Rotation(axis=(0, 0, 1), angle=90))
    m.add_body("a", ld.Inertia.rod(1.0, (0, 0, 0), (100, 0, 0), radius=5), pose=pose, axes="body")
    m.add_body("b", ld.Inertia.box(1.0, (10, 20, 30), (50, 0, 0), {"axis": (0, 1, 0), "angle": 30}), pose=pose)
    m.add_joint("A", ld.Revolute(axis=(1, 0, 0)), "ground", "a", parent_frame=pose, child_frame=ld.Frame())
    m.add_joint("B", ld.Universal(axis1=(1, 0, 0), axis2=(0, 1, 0)), "b", "a", at=(5, 6, 7))
    one, other = m.compile(), turned(m).compile()
    assert other.q_reference == pytest.approx(one.q_reference, abs=1e-12)
    q, v = {"A": 0.3, "B.1": -0.4, "B.2": 0.7}, {"A": 1.0, "B.1": 2.0, "B.2": -0.5}
    expected = accelerations(ld.terms(one, one.state(q=q, v=v)))
    assert accelerations(ld.terms(other, other.state(q=q, v=v))) == pytest.approx(expected, rel=1e-10)


def test_what_cannot_be_turned_is_refused():
    m = library.pendulum()
    m.move_base(x="sin(t)")
    with pytest.raises(ld.errors.ModelError, match="cannot be turned"):
        turned(m)
    m = library.pendulum()
    table = {"of": "t", "points": [(0, 0), (1, 1), (2, 0)]}
    m.add_force(None, ld.forces.AppliedForce(body="bob", at=(0, 0, 0), force=(table, 0, 0)))
    with pytest.raises(ld.errors.ModelError, match="table"):
        turned(m)


# ------------------------------------------------------------------------------------------ random mechanisms

OPTIONS = [
    {},
    {"loops": 0, "bodies": 12},
    {"bodies": 3, "loops": 1},
    {"bodies": 15, "loops": 5, "forces": True},
    {"floating": True, "redundant": 2},
    {"bodies": 13, "joints": ["revolute"], "loops": 2},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_random_mechanisms_are_possible_and_close(options):
    for seed in range(15):
        m = library.random_mechanism(seed, **options)
        system = m.compile()
        t = ld.terms(system, system.state())
        assert np.abs(t.phi).max(initial=0.0) < 1e-12
        assert np.linalg.eigvalsh(t.M)[0] > 1e-6
        for _, _, inertia in masses(m).values():
            second = np.trace(inertia) / 2 * np.eye(3) - inertia  # integral of x x^T dm
            assert np.linalg.eigvalsh(second)[0] > 0


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_random_loops_are_independent_but_for_the_doubled_joints(options):
    for seed in range(10):
        m = library.random_mechanism(seed, **options)
        J = all_rows(m)
        twins = sum(6 - len(twists(m, joint)) for name, joint in m.joints.items() if name.endswith("_twin"))
        assert len(J) - np.linalg.matrix_rank(J, tol=1e-7) == twins
        assert J.shape[1] - np.linalg.matrix_rank(J, tol=1e-7) >= (6 if options.get("floating") else 0)


def test_doubled_joints_stay_redundant_away_from_the_reference_pose():
    for seed in range(10):
        m = library.random_mechanism(seed, bodies=8, loops=0, redundant=3)
        twins = [name for name in m.joints if name.endswith("_twin")]
        system = m.compile(cuts=twins)
        q = ld.tree.increment(system, system.q_reference, np.random.default_rng(seed).normal(size=system.nv))
        t = ld.terms(system, system.state(q=q))
        assert np.abs(t.phi).max() < 1e-12
        assert np.abs(t.J).max() < 1e-12


def test_a_seed_gives_one_mechanism():
    assert library.random_mechanism(4, forces=True) == library.random_mechanism(4, forces=True)
    assert library.random_mechanism(4) != library.random_mechanism(5)


def test_random_mechanisms_have_every_joint_type_in_both_directions():
    tree, loop, backward = set(), set(), 0
    for seed in range(60):
        for name, joint in library.random_mechanism(seed).joints.items():
            (loop if name.startswith("loop") else tree).add(joint.type)
            backward += joint.child == "ground"
    every = {"revolute", "prismatic", "helical", "cylindrical", "universal", "planar", "translational", "spherical"}
    assert tree == every | {"free", "weld"}
    assert loop == every | {"weld"}  # a free joint closes nothing
    assert backward > 20


def test_options_of_random_mechanisms_have_their_effect():
    m = library.random_mechanism(1, bodies=6, loops=1, joints=["revolute", "spherical"], redundant=2)
    assert (len(m.bodies), len(m.joints)) == (6, 9)
    assert {joint.type for joint in m.joints.values()} <= {"revolute", "spherical"}
    floating = library.random_mechanism(1, floating=True)
    assert all("ground" not in (joint.parent, joint.child) for joint in floating.joints.values())
    assert library.random_mechanism(1).forces == {}
    kinds = {force.type for force in library.random_mechanism(1, forces=True).forces.values()}
    assert kinds == {"spring_damper", "actuator", "bushing", "applied", "joint_spring", "joint_friction", "motor"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"joints": ["hinge"]}, "unknown joint type 'hinge'"),
        ({"bodies": 0}, "at least 1"),
        ({"bodies": 3, "joints": ["revolute"]}, "no room"),
        ({"joints": ["free"]}, "no room"),
        ({"bodies": 2, "loops": 0, "redundant": 5}, "only"),
    ],
)
def test_impossible_requests_are_refused(options, message):
    with pytest.raises(ld.LoopdynError, match=message):
        library.random_mechanism(0, **options)


# ----------------------------------------------------------------------------------------------------- files


@EVERY
def test_the_file_of_a_mechanism_is_the_mechanism(name):
    assert ld.load(FOLDER / f"{name}.yaml") == ALL[name]()


def test_every_file_is_of_the_library_or_written_by_hand():
    assert {path.stem for path in FOLDER.glob("*.yaml")} == set(ALL) | {
        "four_bar_mm",
        "four_bar_drawing",
        "scissor_lift_20",
        "stewart_6ups_stops",
    }


def test_files_of_other_sizes_are_the_mechanisms_of_the_library():
    assert ld.load(FOLDER / "scissor_lift_20.yaml") == library.scissor_lift()
    assert ld.load(FOLDER / "stewart_6ups_stops.yaml") == library.stewart_6ups(stops=True)


def test_four_bar_mm_is_converted_to_si_units():
    m = ld.load(FOLDER / "four_bar_mm.yaml")
    A, B, C, D = (joint_place(m, name) for name in "ABCD")
    assert near([np.linalg.norm(p) for p in (B - A, C - B, C - D, D - A)], [0.03, 0.09, 0.06, 0.1], 1e-14)
    mass, _, inertia = masses(m)["crank"]
    assert mass == pytest.approx(0.03 * 0.01 * 0.003 * 7850)  # bar of 10 mm x 3 mm, steel
    assert inertia[2, 2] == pytest.approx(mass * (0.03**2 + 0.01**2) / 12)
    system = m.compile()
    assert system.start[1] == {"A": pytest.approx(radians(90))}
    without = m.with_(stall=0).compile()
    A = system.speeds.index("A")
    for speed, torque in ((0.0, 0.150), (540.0, 0.075), (1080.0, 0.0)):
        state = system.state(v={"A": speed})  # deg/s, as the file declares
        load = ld.terms(system, state).h[A] - ld.terms(without, state).h[A]
        assert load == pytest.approx(torque, abs=1e-12)
