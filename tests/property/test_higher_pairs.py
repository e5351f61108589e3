"""Gaps of planar profiles against closed forms, brute-force minimisation and words.

Derivatives are also tested with those of all constraints: test_constraints.py, tests/contract/test_constraint_types.py.
"""

from __future__ import annotations

import numpy as np
import pytest

import loopdyn as ld

C = ld.constraints
SQUARE = [(1, 1, 0), (-1, 1, 0), (-1, -1, 0), (1, -1, 0)]  # counter-clockwise
ELLIPSE = {"x": "2*cos(u)", "y": "sin(u)", "u": (0, "2*pi"), "closed": True}
# A wheel with four pockets, counter-clockwise: between each of four teeth the corner goes back to the radius 0.6.
WHEEL = [(r * np.cos(a), r * np.sin(a), 0.0) for r, a in zip([2, 0.6] * 4, np.arange(8) * np.pi / 4, strict=True)]
ROUNDING = 1e-13  # of numbers of the order of one, through some ten operations


def planar(shape1: object, shape2: object, gap: int = 1, units: dict | None = None) -> ld.System:
    """The first profile on the ground, the second on a body that moves in the plane: coordinates x, y, angle."""
    m = ld.Mechanism("pair", gravity=(0, 0, 0), units=units or {})
    m.add_body("b", ld.Inertia.sphere(mass=1.0, radius=1.0))
    m.add_joint("P", ld.Planar(normal=(0, 0, 1)), m.ground, "b", at=(0, 0, 0))
    m.add_constraint("k", C.HigherPair(body1="ground", shape1=shape1, body2="b", shape2=shape2, gap=gap))
    return m.compile()


def number_of_gaps(shape1: object, shape2: object) -> int:
    with pytest.raises(ld.errors.ModelError, match=r"has \d+ gaps") as error:
        planar(shape1, shape2, gap=10**6)
    return int(str(error.value).split(" gaps")[0].split("has ")[-1])


def gap(system: ld.System, q: object) -> float:
    return float(ld.terms(system, system.state(np.asarray(q, float))).phi[0])


def all_gaps(shape1: object, shape2: object, poses: list) -> np.ndarray:
    """(poses, gaps)"""
    systems = [planar(shape1, shape2, k + 1) for k in range(number_of_gaps(shape1, shape2))]
    return np.array([[gap(system, q) for system in systems] for q in poses])


def derivatives(system: ld.System, q: object, v: object, a: object) -> tuple[float, float, float]:
    """Gap, rate and second derivative along a motion."""
    now = ld.terms(system, system.state(np.asarray(q, float), np.asarray(v, float)))
    return float(now.phi[0]), float((now.J @ v)[0]), float((now.J @ a - now.gamma)[0])


# ------------------------------------------------------------------------------------------------ closed forms

Q, V, A = np.array([2.3, 1.1, 0.4]), np.array([0.7, -1.2, 1.9]), np.array([-0.3, 0.8, 1.1])


def along(s: np.ndarray) -> np.ndarray:
    """Coordinates along the motion with the derivatives V and A at s = 0; shape (3, ...)."""
    s = np.asarray(s, float)
    return Q[:, None] + V[:, None] * s + 0.5 * A[:, None] * s * s


def differences(f: object) -> tuple[float, float, float]:
    """Value and two derivatives at 0: eighth order, h = 0.01; error h^8/600 times derivatives < 1e8, rounding 1e-11."""
    h = 0.01
    k = np.arange(-4, 5)
    y = f(along(h * k))
    first = np.array([3, -32, 168, -672, 0, 672, -168, 32, -3]) / 840
    second = np.array([-9, 128, -1008, 8064, -14350, 8064, -1008, 128, -9]) / 5040
    return float(y[4]), float(first @ y / h), float(second @ y / h**2)


def check(shape1: object, shape2: object, closed_form: object) -> None:
    system = planar(shape1, shape2)
    np.testing.assert_allclose(derivatives(system, Q, V, A), differences(closed_form), rtol=0, atol=2e-10)


def test_circle_on_circle():
    one, two = C.CircleShape(centre=(0.3, -0.2, 0), radius=0.5), C.CircleShape(centre=(0.4, 0.1, 0), radius=0.25)

    def expected(q: np.ndarray) -> np.ndarray:
        x = q[0] + 0.4 * np.cos(q[2]) - 0.1 * np.sin(q[2]) - 0.3
        y = q[1] + 0.4 * np.sin(q[2]) + 0.1 * np.cos(q[2]) + 0.2
        return np.hypot(x, y) - 0.75

    check(one, two, expected)


def test_pin_in_an_oversized_hole():
    hole, pin = C.CircleShape(centre=(0.3, -0.2, 0), radius=4, hollow=True), C.CircleShape(centre=(0, 0, 0), radius=0.5)
    check(hole, pin, lambda q: 3.5 - np.hypot(q[0] - 0.3, q[1] + 0.2))
    system = planar(hole, pin)
    assert gap(system, (0.3, -0.2, 0.0)) == pytest.approx(3.5, abs=ROUNDING)  # centres coincide: no NaN
    assert np.isfinite(ld.terms(system, system.state([0.3, -0.2, 0.0], V)).gamma).all()


def test_circle_on_line_and_line_on_circle():
    line, circle = C.LineShape(through=(0, 0.2, 0), outward=(0, 3, 0)), C.CircleShape(centre=(0.5, 0, 0), radius=0.3)
    check(line, circle, lambda q: q[1] + 0.5 * np.sin(q[2]) - 0.5)
    # The line on the moving body, its normal at angle + 90 degrees; the circle at (0.5, 0) behind it.
    check(
        circle,
        C.LineShape(through=(0, 0.2, 0), outward=(0, 1, 0)),
        lambda q: -np.sin(q[2]) * (0.5 - q[0]) + np.cos(q[2]) * -q[1] - 0.2 - 0.3,
    )


def test_ellipse_on_a_line():
    """The support function of an ellipse with half axes 2 and 1, turned by an angle: sqrt(4 sin^2 + cos^2)."""
    line, ellipse = C.LineShape(through=(0, 0, 0), outward=(0, 1, 0)), C.CurveShape(**ELLIPSE)
    check(line, ellipse, lambda q: q[1] - np.sqrt(4 * np.sin(q[2]) ** 2 + np.cos(q[2]) ** 2))
    # The line on the moving body seen from the ellipse: outward normal (-sin, cos) from its point (x, y).
    check(ellipse, line, lambda q: np.sin(q[2]) * q[0] - np.cos(q[2]) * q[1] - np.sqrt(
        4 * np.sin(q[2]) ** 2 + np.cos(q[2]) ** 2
    ))  # fmt: skip


def test_point_on_a_parabola_follows_the_nearest_point():
    """On the parabola y = u^2 with the point on its axis, below the centre of curvature at 1/2: k = 2, g'' exact."""
    bowl = C.CurveShape(x="-u", y="u**2", u=(-3, 3))
    system = planar(bowl, C.PointShape(at=(0, 0, 0)))
    h, vx, vy = 0.2, 1.3, 0.4
    g, rate, second = derivatives(system, (0, h, 0), np.array([vx, vy, 0]), np.zeros(3))
    assert (g, rate) == pytest.approx((h, vy), abs=1e-12)
    assert second == pytest.approx(-2 / (1 - 2 * h) * vx**2, rel=1e-11)  # b = k/(1 + k s) with k = -2: a hollow


def test_eccentric_cam_with_flat_follower():
    """Gap y - R - e sin(theta) for a cam with its axis at the origin, and the harmonic motion of the follower."""
    e, R, omega, theta = 0.02, 0.05, 31.0, 0.7
    m = ld.Mechanism("cam", gravity=(0, 0, 0))
    m.add_body("cam", ld.Inertia.cylinder(mass=1.0, radius=R, length=0.01, axis=(0, 0, 1), at=(e, 0, 0)))
    m.add_body("follower", ld.Inertia(0.5, (0, 0.2, 0), np.eye(3) * 1e-3))
    m.add_joint("A", ld.Revolute(axis=(0, 0, 1)), m.ground, "cam", at=(0, 0, 0))
    m.add_joint("Y", ld.Prismatic(axis=(0, 1, 0)), m.ground, "follower", at=(0, 0, 0))
    cam = C.CircleShape(centre=(e, 0, 0), radius=R)
    flat = C.LineShape(through=(0, 0, 0), outward=(0, -1, 0))
    m.add_constraint("c", C.HigherPair(body1="cam", shape1=cam, body2="follower", shape2=flat))
    system = m.compile()
    now = ld.terms(system, system.state([theta, 0.3], [omega, -0.9]))
    assert now.phi[0] == pytest.approx(0.3 - R - e * np.sin(theta), abs=1e-15)
    np.testing.assert_allclose(now.J, [[-e * np.cos(theta), 1.0]], atol=1e-15)
    assert now.gamma[0] == pytest.approx(-e * omega**2 * np.sin(theta), rel=1e-13)
    m.add_driver("turn", "A", f"{theta} + {omega}*t")
    driven = m.compile()
    state = ld.assemble(driven, near=driven.state([theta, 0.1], [omega, 0.0]))
    solution = ld.accelerations(driven, state, full=True)
    assert solution.a[1] == pytest.approx(-e * omega**2 * np.sin(theta), rel=1e-11)
    force = solution.lam[[label.startswith("c") for label in driven.constraint_rows].index(True)]
    assert force == pytest.approx(0.5 * solution.a[1], rel=1e-11)  # Newton, no gravity


# ---------------------------------------------------------------------------------------------------- polylines


def test_pin_in_a_slot_has_a_gap_with_each_wall():
    w, r = 0.5, 0.2
    slot = C.PolylineShape(points=[(w, 2, 0), (w, 0, 0), (-w, 0, 0), (-w, 2, 0)])
    pin = C.CircleShape(centre=(0, 0, 0), radius=r)
    poses = [(0.1, 0.7, 0.3), (-0.25, 0.21, 0.0), (0.3, 0.2, 0.0), (0.0, 1.9, 5.0)]
    expected = [(w - x - r, y - r, x + w - r) for x, y, _ in poses]
    np.testing.assert_allclose(all_gaps(slot, pin, poses), expected, atol=ROUNDING)
    # Above the mouth the corners are nearest, and a point in the corner itself touches both walls.
    np.testing.assert_allclose(all_gaps(slot, pin, [(0, 3, 0)])[0, [0, 2]], np.hypot(w, 1) - r, atol=ROUNDING)
    tip = C.PointShape(at=(0, 0, 0))
    in_corner = all_gaps(slot, tip, [(w, 0, 0), (w + 1e-9, -1e-9, 0), (w + 0.1, -0.2, 0)])
    np.testing.assert_allclose(in_corner[:, :2], [[0, 0], [-1e-9, -1e-9], [-0.1, -0.2]], atol=1e-15)


def distance_to_edges(p: np.ndarray, corners: np.ndarray) -> float:
    """Least distance of p from the edges of a closed polygon, in plain NumPy."""
    a, b = corners, np.roll(corners, -1, axis=0)
    u = np.clip(((p - a) * (b - a)).sum(1) / ((b - a) ** 2).sum(1), 0, 1)
    return float(np.hypot(*(p - a - u[:, None] * (b - a)).T).min())


def inside(p: np.ndarray, corners: np.ndarray) -> bool:
    """Number of edges that cross the ray to the right of p."""
    a, b = corners, np.roll(corners, -1, axis=0)
    over = (a[:, 1] > p[1]) != (b[:, 1] > p[1])
    with np.errstate(divide="ignore", invalid="ignore"):
        x = a[:, 0] + (p[1] - a[:, 1]) / (b[:, 1] - a[:, 1]) * (b[:, 0] - a[:, 0])
    return bool((over & (x > p[0])).sum() % 2)


def test_point_on_a_wheel_with_pockets_is_as_far_as_its_nearest_edge():
    """Outside and up to rounding inside; the wheel has one gap for each tooth."""
    flat = np.array(WHEEL)[:, :2]
    wheel, tip = C.PolylineShape(points=WHEEL, closed=True), C.PointShape(at=(0, 0, 0))
    rng = np.random.default_rng(3)
    poses = [p for p in rng.uniform(-3, 3, (60, 2)) if not inside(p, flat)]
    assert len(poses) > 30
    edge = 0.5 * (flat[0] + flat[1])
    normal = np.array([flat[1, 1] - flat[0, 1], flat[0, 0] - flat[1, 0]]) / np.hypot(*(flat[1] - flat[0]))
    deep = [edge - depth * normal for depth in (1e-6, 1e-3, 0.05)]
    found = all_gaps(wheel, tip, [(*p, 0.0) for p in (*poses, *deep)])
    assert found.shape[1] == 4
    expected = [distance_to_edges(p, flat) for p in poses] + [-distance_to_edges(p, flat) for p in deep]
    np.testing.assert_allclose(found.min(axis=1), expected, atol=ROUNDING)


def test_both_sides_of_the_only_pocket_have_a_gap():
    """A block with a corner cut out: a disc of radius 0.2 in it touches both of its edges."""
    block = C.PolylineShape(points=[(0, 0, 0), (2, 0, 0), (2, 1, 0), (1, 1, 0), (1, 2, 0), (0, 2, 0)], closed=True)
    disc = C.CircleShape(centre=(0, 0, 0), radius=0.2)
    found = np.sort(all_gaps(block, disc, [(1.2, 1.2, 0), (1.5, 1.3, 0)]), axis=1)
    np.testing.assert_allclose(found[:, :2], [[0.0, 0.0], [0.1, 0.3]], atol=ROUNDING)


def test_distance_of_two_polygons_is_that_of_a_corner_from_an_edge():
    one, two = np.array(SQUARE)[:, :2], np.array(SQUARE)[:, :2] * [0.5, 0.3]
    shape1 = C.PolylineShape(points=SQUARE, closed=True)
    shape2 = C.PolylineShape(points=[(x, y, 0) for x, y in two], closed=True)
    poses = [(2.5, 0.3, 0.4), (-1.2, 2.1, 1.0), (3.0, 3.0, 2.2), (1.5, 0.0, 0.0)]
    expected = []
    for x, y, angle in poses:
        R = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        moved = two @ R.T + [x, y]
        expected.append(min(*(distance_to_edges(p, one) for p in moved), *(distance_to_edges(p, moved) for p in one)))
    found = all_gaps(shape1, shape2, poses)
    assert found.shape[1] == 8  # each corner on the other polygon
    np.testing.assert_allclose(found.min(axis=1), expected, atol=ROUNDING)
    assert (np.abs(found[3]) < ROUNDING).sum() == 2  # edge on edge: at two corners


def test_block_on_the_floor_has_a_gap_for_each_corner():
    block, floor = C.PolylineShape(points=SQUARE, closed=True), C.LineShape(through=(0, 0, 0), outward=(0, 1, 0))
    expected = [sorted(1.5 + np.sqrt(2) * np.sin(0.3 + np.pi / 4 + k * np.pi / 2) for k in range(4))]
    np.testing.assert_allclose(np.sort(all_gaps(floor, block, [(0, 1.5, 0.3)])), expected, atol=ROUNDING)


# ----------------------------------------------------------------------------------------------- brute force


@pytest.mark.parametrize("curve", ["ellipse", "spline"])
def test_circle_on_a_curve_is_as_far_as_the_nearest_of_many_points(curve):
    """A million points: the distance errs by the square of half their spacing, 1e-5, over twice the distance."""
    u = np.linspace(0, 2 * np.pi, 1_000_001)
    if curve == "ellipse":
        shape, points = C.CurveShape(**ELLIPSE), np.array([2 * np.cos(u), np.sin(u)])
    else:
        angle = np.linspace(0, 2 * np.pi, 25)[:-1]
        knots = np.array([(1 + 0.2 * np.cos(3 * angle)) * f(angle) for f in (np.cos, np.sin)]).T
        from scipy.interpolate import CubicSpline

        closed = np.vstack([knots, knots[:1]])
        chord = np.concatenate([[0], np.cumsum(np.hypot(*np.diff(closed, axis=0).T))])
        points = CubicSpline(chord, closed, bc_type="periodic")(u / (2 * np.pi) * chord[-1]).T
        shape = C.CurveShape(points=[(x, y, 0) for x, y in knots], closed=True)
    system = planar(shape, C.CircleShape(centre=(0, 0, 0), radius=0.1))
    rng = np.random.default_rng(5)
    for _ in range(12):
        r, a = rng.uniform(2.2, 4), rng.uniform(-np.pi, np.pi)
        x, y = r * np.cos(a), r * np.sin(a)
        found = gap(system, (x, y, 0.7))
        assert found == pytest.approx(np.hypot(points[0] - x, points[1] - y).min() - 0.1, abs=1e-9)


def test_end_of_an_open_curve_is_a_point():
    arc = C.CurveShape(x="-u", y="-u**2", u=(-1, 1))
    system = planar(arc, C.PointShape(at=(0, 0, 0)))
    assert gap(system, (3, -1, 0)) == pytest.approx(2.0, abs=ROUNDING)
    assert gap(system, (0, 0.5, 0)) == pytest.approx(0.5, abs=1e-12)


# ---------------------------------------------------------------------------------------------- units, words


@pytest.mark.parametrize("kind", [C.CurveShape, C.PolylineShape])
def test_a_ring_whose_last_point_is_its_first_up_to_rounding_is_closed(kind):
    """cos and sin of 2 pi are 1 and -2e-16: an edge of that length had a direction of its own."""
    angles = np.linspace(0.3, 0.3 + 2 * np.pi, 25)
    ring = [(float(np.cos(a)), float(np.sin(a)), 0.0) for a in angles]
    assert ring[0] != ring[-1]
    tip = C.PointShape(at=(0, 0, 0))
    found, expected = (planar(kind(points=points, closed=True), tip) for points in (ring, ring[:-1]))
    for q in ((2, 0.6, 0), (1.5, 0.4, 0), (0.9 * np.cos(0.3), 0.9 * np.sin(0.3), 0)):
        assert gap(found, q) == gap(expected, q)


@pytest.mark.parametrize("turn", [0.0, 0.3, 1.1, 2.0])
def test_a_profile_that_touches_itself_is_refused_in_any_direction(turn):
    c, s = np.cos(turn), np.sin(turn)
    points = [(c * x - s * y, s * x + c * y, 0.0) for x, y in [(0, 0), (2, 0), (2, 1), (1, 0), (0, 1)]]
    with pytest.raises(ld.errors.ModelError, match="crosses or touches itself"):
        planar(C.PolylineShape(points=points, closed=True), C.PointShape(at=(0, 0, 0)))


def test_curves_in_millimetres():
    knots = [(1.5 * np.cos(a), np.sin(a), 0.0) for a in np.linspace(0, 2 * np.pi, 25)[:-1]]
    formulas = [{"x": f"{f}*2*cos(u)", "y": f"{f}*sin(u)", "u": (0, "2*pi"), "closed": True} for f in (1000, 1)]
    points = [{"points": [tuple(f * np.array(p)) for p in knots], "closed": True} for f in (1000, 1)]
    for big, small in (formulas, points):
        roller = [C.CircleShape(centre=(0, 0, 0), radius=f) for f in (100, 0.1)]
        found = planar(C.CurveShape(**big), roller[0], 1, {"length": "mm"})
        expected = planar(C.CurveShape(**small), roller[1])
        assert gap(found, (3, 1, 0.2)) == pytest.approx(gap(expected, (3, 1, 0.2)), abs=1e-12)


def test_profiles_in_millimetres():
    mm = {"length": "mm"}
    big = planar(C.CircleShape(centre=(300, 0, 0), radius=500), C.PolylineShape(points=[(0, 0, 0), (9, 1, 0)]), 1, mm)
    small = planar(
        C.CircleShape(centre=(0.3, 0, 0), radius=0.5), C.PolylineShape(points=[(0, 0, 0), (0.009, 0.001, 0)])
    )
    assert gap(big, (1, 1, 0)) == pytest.approx(gap(small, (1, 1, 0)), abs=ROUNDING)  # raw coordinates are SI


def test_a_pair_is_kept_in_a_model_file(tmp_path):
    m = planar(C.CurveShape(**ELLIPSE), C.CircleShape(centre=(0, 4, 0), radius="1/2")).mechanism
    m.save(tmp_path / "pair.yaml")
    again = ld.load(tmp_path / "pair.yaml")
    assert again == m
    assert np.array_equal(again.compile().floats, m.compile().floats)


POINT, CIRCLE = C.PointShape(at=(0, 0, 0)), C.CircleShape(centre=(0, 0, 0), radius=1)
HOLE = C.CircleShape(centre=(0, 0, 0), radius=1, hollow=True)
LINE, BLOCK = C.LineShape(through=(0, 0, 0), outward=(0, 1, 0)), C.PolylineShape(points=SQUARE, closed=True)


@pytest.mark.parametrize(
    ("shape1", "shape2", "words"),
    [
        (POINT, POINT, "contact of a point profile with a point profile is not offered"),
        (LINE, LINE, "not offered"),
        (LINE, HOLE, "not offered"),
        (HOLE, HOLE, "not offered"),
        (C.CurveShape(**ELLIPSE), C.CurveShape(**ELLIPSE), "not offered"),
        (C.CurveShape(**ELLIPSE), BLOCK, "not offered"),
        (HOLE, CIRCLE, "does not fit into its hole"),
        (CIRCLE, C.CircleShape(centre=(0, 0, 0), radius=0), "radius of its circle is not positive"),
        (C.LineShape(through=(0, 0, 0), outward=(0, 0, 1)), POINT, "'outward' is along the normal"),
        (C.LineShape(through=(0, 0, 0), outward=(0, 0, 0)), POINT, "'outward' has length zero"),
        (C.PolylineShape(points=[(0, 0, 0)]), POINT, "too few points. Give at least two"),
        (C.PolylineShape(points=SQUARE[:2], closed=True), POINT, "too few points. Give at least three"),
        (C.PolylineShape(points=[(0, 0, 0), (1, 0, 0), (1, 0, 5)]), POINT, "points 2 and 3 of its polyline coincide"),
        (C.PolylineShape(points=[SQUARE[k] for k in (0, 2, 1, 3)], closed=True), POINT, "crosses or touches itself"),
        (C.PolylineShape(points=[(0, 0, 0), (2, 0, 0), (1, 0, 0)]), POINT, "crosses or touches itself"),
        (C.PolylineShape(points=SQUARE[::-1], closed=True), POINT, "goes round clockwise.*set hollow: true"),
        (C.PolylineShape(points=SQUARE, closed=True, hollow=True), POINT, "goes round counter-clockwise"),
        (C.PolylineShape(points=SQUARE, hollow=True), POINT, "hollow but open"),
        (C.CurveShape(x="2*cos(u)", y="-sin(u)", u=(0, "2*pi"), closed=True), POINT, "goes round clockwise"),
        (C.CurveShape(x="cos(u)", y="sin(2*u)", u=(0, "2*pi"), closed=True), POINT, "crosses or touches itself"),
        (C.CurveShape(x="cos(u)", y="sin(u)", z="u", u=(0, 3)), POINT, "does not lie in a plane"),
        (C.CurveShape(), POINT, "no curve"),
    ],
)
def test_profiles_that_cannot_be_are_refused_in_words(shape1, shape2, words):
    with pytest.raises(ld.errors.ModelError, match=words):
        planar(shape1, shape2)


def test_a_pair_of_a_body_with_itself_is_refused():
    m = ld.Mechanism("pair")
    m.add_body("b", ld.Inertia.sphere(mass=1.0, radius=1.0))
    m.add_joint("P", ld.Planar(normal=(0, 0, 1)), m.ground, "b", at=(0, 0, 0))
    m.add_constraint("k", C.HigherPair(body1="b", shape1=CIRCLE, body2="b", shape2=POINT))
    with pytest.raises(ld.errors.ModelError, match="relates body 'b' to itself"):
        m.compile()
