"""Rows of constraints against derivatives of phi along a motion, and against closed forms."""

import numpy as np
import pytest

import loopdyn as ld

POINT = ld.constraints.PointShape(at=(1, 0.2, 1.3))
DISC = ld.constraints.CircleShape(centre=(0.9, 0.3, 1), radius=0.2)
HOLE = ld.constraints.CircleShape(centre=(0.2, 0.1, 0.8), radius=3.0, hollow=True)
EDGE = ld.constraints.LineShape(through=(0.3, -0.5, 0.2), outward=(0.2, 1, 0.1))
ROOF = ld.constraints.PolylineShape(points=[(2, -1, 0.5), (0.4, -0.8, 0.5), (-1, -1, 0.5)])
OVAL = ld.constraints.CurveShape(x="0.3 + 0.6*cos(u)", y="0.4*sin(u)", z="0.2", u=(0, "2*pi"), closed=True)
ARC = ld.constraints.CurveShape(points=[(1.5, -1, 0), (0.5, -0.6, 0), (-1, -1, 0), (-2, -2, 0)])


def pair(shape1: object, shape2: object, normal: tuple = (0, 0, 1), **gap: int) -> ld.constraints.HigherPair:
    return ld.constraints.HigherPair(body1="a", shape1=shape1, body2="c", shape2=shape2, normal=normal, **gap)


MATRIX = [[0.3, 0.01, 0.02], [0.01, 0.2, 0.03], [0.02, 0.03, 0.25]]

CONSTRAINTS = {
    "distance": ld.constraints.Distance(body1="ground", body2="c", point1=(1, 2, 3), point2=(1, 0.5, 1.2)),
    "driven distance": ld.constraints.Distance(
        body1="a", body2="c", point1=(1, 2, 3), point2=(1, 0.5, 1.2), length="2 + 0.3*sin(3*t)"
    ),
    "point on line": ld.constraints.PointOnLine(on="a", body="c", point=(1, 1, 1), direction=(1, 2, 0.4)),
    "point on plane": ld.constraints.PointOnPlane(on="a", body="c", point=(1, 1, 1), normal=(1, 2, 0.4)),
    "slot": ld.constraints.Slot(on="a", body="c", point=(1, 1, 1), direction=(1, 2, 0), axis=(2, -1, 0.5)),
    "point motion": ld.constraints.PointMotion(on="a", body="c", point=(1, 1, 1), x="1 + sin(t)", z="t**3"),
    "parabola": ld.constraints.PointOnCurve(
        on="a", body="c", point=(1, 1, 1), x="1 + u", y="1 + 0.1*u**2", z="1 + 0.3*u", u=(-9, 9)
    ),
    "circle": ld.constraints.PointOnCurve(
        on="a",
        body="c",
        point=(1, 1, 1),
        x="9*cos(u) - 8",
        y="1 + 9*sin(u)",
        z="2 - cos(u)",
        u=(0, "2*pi"),
        closed=True,
    ),
    "sphere": ld.constraints.Rolling(
        on="a", body="c", normal=(0.1, 0.2, 1), through=(0, 0, -0.3), centre=(1, 1, 1), radius=0.4
    ),
    "disc": ld.constraints.Rolling(
        on="a", body="c", normal=(0.1, 0.2, 1), through=(0, 0, -0.3), centre=(1, 1, 1), radius=0.4, axis=(1, 0, 0.4)
    ),
    "coupler": ld.constraints.Coupler(terms={"A.1": 1.0, "A.2": 0.7, "B.slide": -2.0, "C": 0.3}, offset=0.1),
    "relation": ld.constraints.Relation(
        formula="sin(a)*b - 2*s**2 + c*a + 0.1*t**2*b", coordinates={"a": "A.1", "b": "A.2", "s": "B.slide", "c": "C"}
    ),
    "velocity relation": ld.constraints.VelocityRelation(
        formula="va*vc**2 + sin(a)*vs + t*b - exp(0.3*vs)",
        speeds={"va": "A.1", "vs": "B.slide", "vc": "C"},
        coordinates={"a": "A.1", "b": "B.angle"},
    ),
    "disc on disc": pair(DISC, DISC, (0.1, 0.2, 1)),
    "pin in hole": pair(HOLE, POINT),
    "edge on disc": pair(DISC, EDGE, (0.1, 0.2, 1)),
    "disc on edges": pair(DISC, ROOF),
    "edges on edge": pair(ROOF, EDGE, gap=2),
    "edges on edges": pair(ROOF, ROOF, gap=3),
    "point on cam": pair(OVAL, POINT),
    "disc on arc": pair(DISC, ARC),
    "edge on cam": pair(OVAL, EDGE),
    "edge on arc": pair(EDGE, ARC),
}


def arm() -> ld.Mechanism:
    """Three bodies in a row on a universal, a cylindrical and a revolute joint, in generic orientation."""
    m = ld.Mechanism("arm", gravity=(0, 0, -9.81))
    m.add_body("a", ld.Inertia(1.0, (0.3, 0.1, 0.2), MATRIX))
    m.add_body("b", ld.Inertia(2.0, (1.0, 0.4, 0.3), MATRIX))
    m.add_body("c", ld.Inertia(2.0, (1.0, 0.4, 1.3), MATRIX))
    m.add_joint("A", ld.Universal(axis1=(1, 0.2, 0), axis2=(0, 1, 0.3)), m.ground, "a", at=(0, 0, 0))
    m.add_joint("B", ld.Cylindrical(axis=(0.2, 0.3, 1)), "a", "b", at=(0.8, 0.2, 0.1))
    m.add_joint("C", ld.Revolute(axis=(0.5, 0.3, 1)), "b", "c", at=(0.8, 0.2, 0.9))
    m.move_base(x="0.3*sin(t)", rz="0.4*t**2", ry="0.2*t")
    return m


def check_rows_along_a_motion(system: ld.System, seed: int) -> None:
    """phi' = J v + phi_t and (J v + phi_t)' = J a - gamma along q + v s + a s^2/2, by central differences."""
    rng = np.random.default_rng(seed)
    q0 = ld.tree.increment(system, system.q_reference, 0.3 * rng.normal(size=system.nv))
    v, a, t = rng.normal(size=system.nv), rng.normal(size=system.nv), 0.37

    def at(s: float) -> ld.tree.Terms:
        q = ld.tree.increment(system, q0, v * s + 0.5 * a * s * s)
        return ld.terms(system, ld.State(t + s, q, v + a * s))

    def rate(s: float) -> np.ndarray:
        now = at(s)
        return now.J @ (v + a * s) + now.phi_t

    now, h = at(0.0), 1e-3  # fourth-order differences: error h^4 times derivatives of the order of 10
    slope = [(f(-2 * h) - 8 * f(-h) + 8 * f(h) - f(2 * h)) / (12 * h) for f in (lambda s: at(s).phi, rate)]
    holonomic = system.holonomic
    np.testing.assert_allclose(slope[0][holonomic], rate(0.0)[holonomic], rtol=0, atol=1e-8)
    np.testing.assert_allclose(slope[1], now.J @ a - now.gamma, rtol=0, atol=1e-7)


@pytest.mark.jit_off
@pytest.mark.parametrize("name", CONSTRAINTS)
def test_the_rows_of_a_constraint_are_derivatives_of_phi(name):
    m = arm()
    m.add_constraint("k", CONSTRAINTS[name])
    check_rows_along_a_motion(m.compile(), seed=1)


def test_the_row_of_a_driver_is_the_derivative_of_phi():
    m = arm()
    m.add_driver("k", "B.angle", "sin(2*t)")
    check_rows_along_a_motion(m.compile(), seed=2)


@pytest.mark.parametrize("name", ["coupler", "distance", "disc"])
def test_constraints_mean_the_same_when_all_joints_are_cut(name):
    """Accelerations of the bodies in tree coordinates and with every body free, at a closed state."""
    m = arm()
    m.add_constraint("k", CONSTRAINTS[name])
    system = m.compile()
    state = ld.assemble(system, v=np.linspace(-1.0, 1.0, system.nv), t=0.2)
    a = ld.accelerations(system, state, "oracle")
    r = ld.reactions(system, state, a)
    # free bodies with the rows of all joints and the constraint balance these accelerations
    assert r.residual < 1e-9 * (1.0 + np.abs(r.wrench).max())


def test_two_gears_move_as_one_inertia():
    """Wheels with I = 1 kg m^2, ratio -1/2, torque 3 N m on the first: (1 + 1/4) a = 3; the mesh carries -I_B a_B/2."""
    m = ld.Mechanism("gears")
    for name, x in (("a", 0.0), ("b", 3.0)):
        wheel = ld.Inertia.cylinder(mass=2.0, radius=1.0, length=0.1, axis=(0, 0, 1), at=(x, 0, 0))
        m.add_body(name, wheel)
        m.add_joint(name.upper(), ld.Revolute(axis=(0, 0, 1)), m.ground, name, at=(x, 0, 0))
    m.add_constraint("mesh", ld.constraints.Coupler(terms={"A": 1.0, "B": 2.0}))
    m.add_motor("motor", "A", torque=3.0)
    system = m.compile()
    state = ld.assemble(system, v={"A": 1.0})
    np.testing.assert_allclose(state.v, [1.0, -0.5], atol=1e-14)
    solution = ld.accelerations(system, state, full=True)
    np.testing.assert_allclose(solution.a, [2.4, -1.2], rtol=1e-13)
    np.testing.assert_allclose(solution.lam, [-0.6], rtol=1e-13)


def test_a_sphere_rolls_down_a_plane_with_five_sevenths_of_g_sin():
    slope = 0.3
    normal = (-np.sin(slope), 0.0, np.cos(slope))
    m = ld.Mechanism("ball", gravity=(0, 0, -9.81))
    centre = tuple(0.2 * np.array(normal))
    m.add_body("ball", ld.Inertia.sphere(mass=3.0, radius=0.2, at=centre))
    m.add_constraint(
        "roll",
        ld.constraints.Rolling(on="ground", body="ball", normal=normal, through=(0, 0, 0), centre=centre, radius=0.2),
    )
    system = m.compile()
    state = system.state()
    a = ld.accelerations(system, state)
    motion = ld.tree.body_motion(system, state, a)
    # acceleration of the centre: the frame's origin is at the contact, which turns with the ball
    arm_ = np.array(centre)
    centre_acceleration = motion.acceleration[1] + np.cross(motion.angular_acceleration[1], arm_)
    down = -np.array([np.cos(slope), 0.0, np.sin(slope)])
    np.testing.assert_allclose(centre_acceleration @ down, 5 / 7 * 9.81 * np.sin(slope), rtol=1e-12)


def test_a_driven_crank_has_the_acceleration_of_its_driver():
    m = ld.library.four_bar()
    m.start = {}
    m.add_driver("turn", "A", "0.3 + 2*t + 0.5*t**2")
    system = m.compile()
    state = ld.assemble(system)
    k = system.speeds.index("A")
    assert state.q[system.coordinates.index("A")] == pytest.approx(0.3, abs=1e-12)
    assert state.v[k] == pytest.approx(2.0, abs=1e-12)
    for formulation in ("oracle", "relative"):
        assert ld.accelerations(system, state, formulation)[k] == pytest.approx(1.0, abs=1e-11)
    assert ld.mobility(system, state).dof == 0


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (ld.constraints.Distance(body1="a", body2="a", point1=(0, 0, 0), point2=(1, 0, 0)), "to itself"),
        (ld.constraints.Distance(body1="a", body2="q", point1=(0, 0, 0), point2=(1, 0, 0)), "no body 'q'"),
        (ld.constraints.PointOnLine(on="a", body="c", point=(0, 0, 0), direction=(0, 0, 0)), "length zero"),
        (ld.constraints.Slot(on="a", body="c", point=(0, 0, 0), direction=(0, 0, 1), axis=(0, 0, 1)), "perpendicular"),
        (ld.constraints.PointMotion(on="a", body="c", point=(0, 0, 0)), "no coordinate"),
        (ld.constraints.Coupler(terms={"Z": 1.0}), "no joint 'Z'"),
        (ld.constraints.Coupler(terms={}), "no terms"),
    ],
)
def test_a_wrong_constraint_is_refused_in_words(spec, words):
    m = arm()
    m.add_constraint("k", spec)
    with pytest.raises(ld.errors.ModelError, match=words):
        m.compile()


SOLVERS = ("kkt", "sparse", "schur", "barycentric", "nullspace")


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_all_formulations_agree_at_closed_states(name):
    """Relative and absolute against the oracle, at states closed in position and velocity, on a moving ground."""
    m = arm()
    m.add_constraint("k", CONSTRAINTS[name])
    system = m.compile()
    for seed in range(3):
        rng = np.random.default_rng(seed)
        q = ld.tree.increment(system, system.q_reference, 0.2 * rng.normal(size=system.nv))
        state = ld.assemble(system, q=q, v=rng.normal(size=system.nv), t=0.2)
        a = ld.accelerations(system, state, "oracle")
        for f in ("relative", "graph", *(ld.Absolute(solver=s) for s in SOLVERS)):
            # conditions up to 1e5 (closed poses at the edge of what the arm can reach) times rounding
            np.testing.assert_allclose(
                ld.accelerations(system, state, f), a, rtol=0, atol=1e-9 * (1 + np.abs(a).max()), err_msg=str(f)
            )
