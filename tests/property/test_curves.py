"""A point on a curve: rows against derivatives of phi, beads on wires against their equations of motion."""

from __future__ import annotations

import numpy as np
import pytest
from tests.independent import first_derivative, path, random_inertia, random_state

import loopdyn as ld
from loopdyn.tree import jacobian, kinematics

G = 9.81
FORMULATIONS = ("oracle", "relative", "graph", ld.Absolute(solver="kkt"), ld.Absolute(solver="nullspace"))
CIRCLE = [(2 * np.cos(x), 2 * np.sin(x), 0.0) for x in np.linspace(0, 2 * np.pi, 40, endpoint=False)]


def bead(gravity: tuple = (0, 0, -G), **curve: object) -> ld.Mechanism:
    """A ball of 2 kg that does not turn, its centre on a curve of the ground."""
    m = ld.Mechanism("bead", gravity=gravity)
    m.add_body("bead", ld.Inertia.sphere(mass=2.0, radius=0.01))
    m.add_joint("T", ld.joints.Translational(), m.ground, "bead", at=(0, 0, 0))
    m.add_constraint("wire", ld.constraints.PointOnCurve(on="ground", body="bead", point=(0, 0, 0), **curve))
    return m


def at(system: ld.System, x: np.ndarray, v: np.ndarray) -> ld.State:
    return system.state(x, v)


# --------------------------------------------------------------------------------------------- closed forms


@pytest.mark.parametrize("formulation", FORMULATIONS, ids=str)
def test_a_bead_on_a_parabola(formulation):
    """z = k x^2: (1 + 4 k^2 x^2) x'' + 4 k^2 x x'^2 + 2 g k x = 0."""
    k, x, dx = 0.7, 0.45, 1.3
    system = bead(x="u", z=f"{k}*u**2", u=(-3, 3)).compile()
    state = at(system, np.array([x, 0, k * x * x]), np.array([dx, 0, 2 * k * x * dx]))
    ddx = -(4 * k * k * x * dx**2 + 2 * G * k * x) / (1 + 4 * k * k * x * x)
    solution = ld.accelerations(system, state, formulation, full=True)
    np.testing.assert_allclose(solution.a, [ddx, 0.0, 2 * k * (dx**2 + x * ddx)], rtol=1e-11, atol=1e-12)
    force = 2.0 * (solution.a + [0, 0, G])  # of the wire, by Newton
    assert np.linalg.norm(solution.lam) == pytest.approx(np.linalg.norm(force), rel=1e-11)


@pytest.mark.jit_off
def test_a_bead_on_a_helix_slides_with_constant_acceleration():
    """(R cos u, R sin u, c u): (R^2 + c^2) u'' = -g c; the wire carries m R u'^2 inwards and gravity across it."""
    R, c, u, du = 0.8, 0.3, 2.1, 3.7
    system = bead(x=f"{R}*cos(u)", y=f"{R}*sin(u)", z=f"{c}*u", u=(-10, 10)).compile()
    tangent, inward = np.array([-R * np.sin(u), R * np.cos(u), c]), -R * np.array([np.cos(u), np.sin(u), 0])
    state = at(system, np.array([R * np.cos(u), R * np.sin(u), c * u]), tangent * du)
    ddu = -G * c / (R * R + c * c)
    for formulation in FORMULATIONS:
        solution = ld.accelerations(system, state, formulation, full=True)
        np.testing.assert_allclose(solution.a, tangent * ddu + inward * du**2, rtol=1e-10)
        across = G * R / np.hypot(R, c)
        assert np.linalg.norm(solution.lam) == pytest.approx(2.0 * np.hypot(R * du**2, across), rel=1e-10)


def test_a_bead_on_a_parabola_keeps_its_energy_and_its_wire():
    """RK4 with 2000 steps of 1 ms; the residual of its order, (1e-3)^4 times derivatives of the order of 1e3."""
    system = bead(x="u", z="u**2", u=(-3, 3)).compile()
    state = ld.assemble(system, q={"T.x": 1.0})
    solve = ld.prepare(system, "relative", state)
    y, h = np.concatenate([state.q, state.v]), 1e-3

    def f(y: np.ndarray) -> np.ndarray:
        return np.concatenate([y[3:], solve(0.0, y[:3], y[3:]).a])

    for _ in range(2000):
        k1 = f(y)
        k2 = f(y + 0.5 * h * k1)
        k3 = f(y + 0.5 * h * k2)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + f(y + h * k3))
    assert y[2] == pytest.approx(y[0] ** 2, abs=1e-8)
    assert y[1] == pytest.approx(0.0, abs=1e-12)
    assert 0.5 * y[3:] @ y[3:] + G * y[2] == pytest.approx(G, abs=1e-7)


def test_a_straight_curve_is_a_point_on_a_line():
    start, along = np.array([0.2, -0.1, 0.4]), np.array([1.0, 2.0, 0.5])
    curve = bead(points=[tuple(start + s * along) for s in (-2.0, 0.0, 1.0, 3.0)])
    line = bead(points=[(0, 0, 0), (1, 0, 0)])
    del line.constraints["wire"]
    line.add_constraint(
        "wire", ld.constraints.PointOnLine(on="ground", body="bead", point=(0, 0, 0), direction=along, through=start)
    )
    a, b = curve.compile(), line.compile()
    state = at(a, start + 0.3 * along, 1.2 * along)
    np.testing.assert_allclose(ld.accelerations(a, state), ld.accelerations(b, state), rtol=1e-11)


def test_a_closed_spline_through_a_circle_carries_a_bead_around():
    """40 points of a circle of radius 2: for the step s = 2 pi/40 a cubic spline errs by s^4 R/384 in place.

    In curvature it errs by the share s^2/12.
    """
    system = bead(points=CIRCLE, closed=True, gravity=(0, 0, 0)).compile()
    for x in np.linspace(0.0, 2 * np.pi, 17):
        out, along = np.array([np.cos(x), np.sin(x), 0]), np.array([-np.sin(x), np.cos(x), 0])
        state = ld.assemble(system, near=at(system, 2 * out, np.zeros(3)), v=3.0 * along)
        np.testing.assert_allclose(state.q, 2 * out, atol=1e-5)
        np.testing.assert_allclose(ld.accelerations(system, state), -9.0 / 2.0 * out, atol=9.0 / 2.0 * 0.003)


def test_a_point_off_the_plane_of_a_curve_is_pulled_into_it():
    system = bead(points=CIRCLE, closed=True).compile()
    state = ld.assemble(system, q=np.array([1.4, 0.9, 0.5]))
    assert abs(state.q[2]) < 1e-12
    assert np.hypot(*state.q[:2]) == pytest.approx(2.0, abs=1e-5)
    assert ld.mobility(system, state).dof == 1


# -------------------------------------------------------------------------------------------------- the rows

SPACE = {
    "helix": {"x": "2*cos(u)", "y": "2*sin(u)", "z": "0.7*u", "u": (-9, 9)},
    "twisted cubic": {"x": "u", "y": "0.3*u**2", "z": "0.1*u**3", "u": (-4, 4)},
    "closed": {"x": "2*cos(u)", "y": "2*sin(u)", "z": "0.5*sin(2*u)", "u": (0, "2*pi"), "closed": True},
    "spline": {"points": [(-3, 0, 1), (-1, 1, 0), (0.5, 1, 0.6), (2, 0, 1), (3, -2, 2)]},
}


def arm(curve: dict, cuts: list[str] | None = None) -> ld.System:
    """The curve on a body on a universal joint on a moving ground, the point on a free body."""
    rng = np.random.default_rng(8)
    m = ld.Mechanism("arm", gravity=(1, -9, 2))
    for name in "ab":
        m.add_body(name, random_inertia(rng, rng.normal(size=3)))
    m.add_joint("A", ld.Universal(axis1=(1, 0.2, 0), axis2=(0, 1, 0.3)), m.ground, "a", at=(0.1, 0.3, 0))
    m.add_constraint("k", ld.constraints.PointOnCurve(on="a", body="b", point=(0.4, 0.2, 0.3), **curve))
    m.move_base(x="0.3*sin(t)", rz="0.4*t**2", ry="0.2*t")
    return m.compile(cuts=cuts)


def on_the_curve(system: ld.System, seed: int) -> tuple[ld.State, np.random.Generator]:
    """A pose on the curve with arbitrary speeds."""
    rng = np.random.default_rng(seed)
    state = random_state(system, rng, 0.3, t=0.4)
    pose = ld.assemble(system, q=state.q, t=0.4)
    return system.state(pose.q, state.v, 0.4), rng


@pytest.mark.jit_off
@pytest.mark.parametrize("name", SPACE)
def test_J_is_the_derivative_of_phi_off_the_curve_and_gamma_belongs_to_it_on_the_curve(name):
    """Exact derivatives by complex steps: of phi anywhere, of the rate J v + phi_t on the curve."""
    system = arm(SPACE[name])
    state, rng = on_the_curve(system, 2)
    a = rng.normal(size=system.nv)
    off = system.state(ld.tree.increment(system, state.q, 0.1 * rng.normal(size=system.nv)), state.v, 0.4)
    step = 1e-30

    def rows(t: complex, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        work = system.work(np.complex128)
        w = system.open_work(work)
        w.t[0], w.q[:], w.v[:] = t, q, v
        J, rate = np.empty((system.nc, system.nv), complex), np.empty(system.nc, complex)
        kinematics.place(system.ints, system.floats, work, False)
        jacobian.constraint_terms(system.ints, system.floats, work, J, rate)
        return w.phi.copy(), rate

    def moved(q: np.ndarray, xi: np.ndarray) -> np.ndarray:
        out = np.empty(system.nq, complex)
        kinematics.plus(system.ints, system.floats, q.astype(complex), xi.astype(complex), out)
        return out

    for at_ in (state, off):
        now = ld.terms(system, at_)
        for k in range(system.nv):
            phi, _ = rows(at_.t, moved(at_.q, 1j * step * np.eye(system.nv)[k]), at_.v)
            np.testing.assert_allclose(phi.imag / step, now.J[:, k], atol=1e-11)
        phi, _ = rows(at_.t + 1j * step, at_.q, at_.v)
        np.testing.assert_allclose(phi.imag / step, now.phi_t, atol=1e-11)
    assert np.abs(ld.terms(system, off).phi).max() > 1e-3
    now = ld.terms(system, state)
    _, rate = rows(state.t + 1j * step, moved(state.q, 1j * step * state.v), state.v + 1j * step * a)
    np.testing.assert_allclose(rate.imag / step, now.J @ a - now.gamma, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", SPACE)
def test_phi_is_smooth_along_a_motion(name):
    """Five-point differences of phi along a path that crosses the curve: error h^4 = 1e-12 times derivatives of 1e3."""
    system = arm(SPACE[name])
    state, rng = on_the_curve(system, 4)
    along = path(system, state, rng.normal(size=system.nv))
    now = ld.terms(system, state)
    slope = first_derivative(lambda s: ld.terms(system, along(s)).phi, 1e-3)
    np.testing.assert_allclose(slope, now.J @ state.v + now.phi_t, atol=1e-7)


def test_cut_joints_change_nothing():
    tree, cut = arm(SPACE["helix"]), arm(SPACE["helix"], ["A"])
    state = ld.assemble(tree, v=np.linspace(-1, 1, tree.nv), t=0.4)
    for formulation in FORMULATIONS:
        a = ld.accelerations(tree, state, formulation)
        np.testing.assert_allclose(a, ld.accelerations(tree, state, "oracle"), rtol=1e-9, atol=1e-9)
    there = ld.assemble(cut, t=0.4, near=cut.state(t=0.4))
    assert ld.terms(cut, there).J.shape == (cut.nc, cut.nv)
    r = ld.reactions(tree, state)
    assert r.residual < 1e-9 * (1 + np.abs(r.wrench).max())


# ------------------------------------------------------------------------------------------------ ends and words


def test_beyond_the_end_of_an_open_curve_the_rows_are_refused_in_words():
    system = bead(points=[(0, 0, 0), (1, 0, 0), (2, 0.5, 0)]).compile()
    for x in (0.0, 2.0):  # at the ends themselves all is well
        state = system.state([x, 0.25 * x, 0.0])
        assert np.isfinite(ld.terms(system, state).J).all()
    gone = system.state([-0.1, 0.0, 0.0])
    with pytest.raises(ld.errors.SingularityError, match=r"'wire.fn'.*left the end of its curve"):
        ld.terms(system, gone)
    solve = {f: ld.prepare(system, f, system.state([1.0, 0.0, 0.0])) for f in FORMULATIONS}
    for f in FORMULATIONS:
        with pytest.raises(ld.errors.SingularityError, match="left the end of its curve"):
            solve[f](0.0, gone.q, gone.v)
    with pytest.raises(ld.LoopdynError, match="wire"):
        ld.assemble(system, q={"T.x": -0.1, "T.y": 0.0, "T.z": 0.0})


def test_a_curve_is_kept_in_a_model_file(tmp_path):
    for k, curve in enumerate((*SPACE.values(), {"points": CIRCLE, "closed": True})):
        m = bead(**curve)
        m.save(tmp_path / f"{k}.yaml")
        again = ld.load(tmp_path / f"{k}.yaml")
        assert again == m
        assert np.array_equal(again.compile().floats, m.compile().floats)


def test_a_curve_in_other_units_is_the_same_curve():
    m = ld.Mechanism("bead", units={"length": "mm"})
    m.add_body("bead", ld.Inertia.sphere(mass=2.0, radius=10))
    m.add_joint("T", ld.joints.Translational(), m.ground, "bead", at=(0, 0, 0))
    m.add_constraint(
        "wire",
        ld.constraints.PointOnCurve(on="ground", body="bead", point=(0, 0, 0), x="1000*u", z="700*u**2", u=(-3, 3)),
    )
    system, other = m.compile(), bead(x="u", z="0.7*u**2", u=(-3, 3)).compile()
    state = system.state([0.3, 0.1, 0.2], [1.0, 2.0, 3.0])
    np.testing.assert_allclose(ld.terms(system, state).phi, ld.terms(other, state).phi, atol=1e-14)
    np.testing.assert_allclose(ld.terms(system, state).gamma, ld.terms(other, state).gamma, rtol=1e-12)


@pytest.mark.parametrize(
    ("curve", "words"),
    [
        ({}, "no curve"),
        ({"points": CIRCLE, "x": "u"}, "given twice"),
        ({"points": CIRCLE[:1]}, "too few points"),
        ({"points": CIRCLE[:2], "closed": True}, "too few points"),
        ({"points": [(0, 0, 0), (1, 0, 0), (1, 0, 0)]}, "points 2 and 3 of its curve coincide"),
        ({"x": "u**2", "u": (-1, 1)}, "zero derivative at u = 0"),
        ({"x": "sqrt(u)", "u": (0, 1)}, "not smooth at u = 0"),
        ({"x": "u", "u": (1, 0)}, "range of 'u' is empty"),
        ({"x": "cos(u)", "y": "sin(u)", "u": (0, 6), "closed": True}, "does not close"),
        ({"x": "w"}, "unknown name 'w'"),
    ],
)
def test_a_wrong_curve_is_refused_in_words(curve, words):
    with pytest.raises(ld.errors.ModelError, match=words):
        bead(**curve).compile()
