"""Constraints given as Python functions: against built-in ones, and against derivatives along a motion."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.independent import first_derivative, path, random_inertia, random_state

import loopdyn as ld

FORMULATIONS = ("oracle", "relative", ld.Absolute(solver="kkt"), ld.Absolute(solver="nullspace"))
POINT, ANCHOR, LENGTH = np.array([0.4, -0.2, 0.3]), np.array([1.0, 2.0, 0.5]), 2.2


def rotation(q: np.ndarray) -> np.ndarray:
    """Matrix of a unit quaternion, in complex arithmetic too."""
    w, x, y, z = q
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def length(t: float, q: np.ndarray) -> np.ndarray:
    """Distance of a point of a free body from a fixed one, less a length that grows."""
    d = q[:3] + rotation(q[3:7]) @ POINT - ANCHOR
    return np.array([np.sqrt(d @ d) - LENGTH - 0.1 * np.sin(3 * t)])


def length_of_floats(t: float, q: np.ndarray) -> list[float]:
    d = q[:3] + rotation(q[3:7]) @ POINT - ANCHOR
    return [math.sqrt(d @ d) - LENGTH - 0.1 * math.sin(3 * t)]


def length_by_magnitude(t: float, q: np.ndarray) -> np.ndarray:
    """Takes complex numbers and drops what they carry."""
    d = q[:3] + rotation(q[3:7]) @ POINT - ANCHOR
    return np.array([abs(np.linalg.norm(d)) - LENGTH - 0.1 * np.sin(3 * t)])


def slope(t: float, q: np.ndarray) -> np.ndarray:
    """Derivative by the speeds of the free joint: omega and v in body axes."""
    R = rotation(q[3:7])
    d = q[:3] + R @ POINT - ANCHOR
    e = R.T @ d / np.sqrt(d @ d)
    return np.concatenate([np.cross(POINT, e), e])[None]


def body(constraint: ld.constraints.UserConstraint | ld.constraints.Distance | None = None) -> ld.Mechanism:
    """A free body whose frame is where the world's is at the reference pose."""
    rng = np.random.default_rng(4)
    m = ld.Mechanism("body", gravity=(1, -9, 2))
    m.add_body("a", random_inertia(rng, (0.1, 0.2, 0.3)))
    if constraint is not None:
        m.add_constraint("k", constraint)
    return m


def rod() -> ld.constraints.Distance:
    law = f"{LENGTH} + 0.1*sin(3*t)"
    return ld.constraints.Distance(body1="ground", body2="a", point1=tuple(ANCHOR), point2=tuple(POINT), length=law)


USERS = {
    "complex steps": ld.constraints.UserConstraint(function=length, rows=("distance",)),
    "differences": ld.constraints.UserConstraint(function=length_of_floats, rows=("distance",)),
    "the given Jacobian, and complex steps": ld.constraints.UserConstraint(
        function=length, rows=("distance",), jacobian=slope
    ),
    "the given Jacobian, and differences": ld.constraints.UserConstraint(
        function=length_of_floats, rows=("distance",), jacobian=slope
    ),
}
# five-point differences: 1e-12 of truncation and, of second derivatives, 1e-16/h^2 = 1e-10 of rounding times speeds^2
TOLERANCE = {name: 1e-11 if "complex" in name else 1e-8 for name in USERS}


@pytest.mark.jit_off
@pytest.mark.parametrize("name", USERS)
def test_a_function_of_the_distance_is_a_distance(name):
    user, own = body(USERS[name]).compile(), body(rod()).compile()
    assert ld.tree.user_rows(user).methods == {"k": name}
    for seed in range(3):
        state = random_state(own, np.random.default_rng(seed), 0.6, t=0.3)
        new, old = ld.terms(user, state), ld.terms(own, state)
        for what in ("phi", "phi_t", "J", "gamma"):
            np.testing.assert_allclose(getattr(new, what), getattr(old, what), atol=TOLERANCE[name], err_msg=what)


@pytest.mark.parametrize("name", USERS)
def test_all_formulations_take_it(name):
    user, own = body(USERS[name]).compile(), body(rod()).compile()
    state = ld.assemble(user, v=np.linspace(-1, 1, 6), t=0.2)
    assert abs(ld.terms(own, state).phi[0]) < 1e-11
    expected = ld.accelerations(own, state, "oracle", full=True)
    for f in FORMULATIONS:
        found = ld.accelerations(user, state, f, full=True)
        np.testing.assert_allclose(found.a, expected.a, atol=100 * TOLERANCE[name])
        np.testing.assert_allclose(found.lam, expected.lam, atol=100 * TOLERANCE[name])
    assert ld.mobility(user, state).dof == ld.mobility(own, state).dof == 5


def chain(constraint: ld.constraints.UserConstraint | None = None) -> ld.Mechanism:
    """Universal, spherical and revolute joints in a row on a moving ground; the loop closed by a rod."""
    rng = np.random.default_rng(3)
    m = ld.Mechanism("chain", gravity=(1, -9, 2))
    for k, name in enumerate("abc"):
        m.add_body(name, random_inertia(rng, (float(k), 0.2, 0.1)))
    m.add_joint("A", ld.Universal(axis1=(1, 0.2, 0), axis2=(0, 1, 0.3)), m.ground, "a", at=(0, 0, 0))
    m.add_joint("S", ld.Spherical(), "b", "a", at=(0.8, 0.2, 0.1))
    m.add_joint("C", ld.Revolute(axis=(0.5, 0.3, 1)), "b", "c", at=(1.6, 0.2, 0.9))
    m.add_constraint("rod", ld.constraints.Distance(body1="ground", body2="c", point1=(2, 2, 0), point2=(2, 0.3, 0.4)))
    m.move_base(x="0.3*sin(t)", rz="0.4*t**2", ry="0.2*t")
    if constraint is not None:
        m.add_constraint("k", constraint)
    return m


def test_reactions_and_free_bodies_see_a_user_constraint():
    """The same relation of joint coordinates as a formula and as a function: reactions, multipliers, mobility."""
    formula = ld.constraints.Relation(formula="sin(a)*b - c**2 + 0.1*t", coordinates={"a": "A.1", "b": "A.2", "c": "C"})
    by_formula = chain()
    by_formula.add_constraint("k", formula)
    own = by_formula.compile(cuts=[])
    a, b, c = (own.coordinates.index(label) for label in ("A.1", "A.2", "C"))
    function = ld.constraints.UserConstraint(
        function=lambda t, q: [np.sin(q[a]) * q[b] - q[c] ** 2 + 0.1 * t], rows=("row",), dimension="angle"
    )
    user = chain(function).compile(cuts=[])
    state = ld.assemble(own, v=np.linspace(-1, 1, own.nv), t=0.4)
    accelerations = ld.accelerations(own, state, "oracle")
    for f in FORMULATIONS:
        np.testing.assert_allclose(ld.accelerations(user, state, f), accelerations, rtol=1e-9, atol=1e-9)
    old, new = ld.reactions(own, state), ld.reactions(user, state)
    np.testing.assert_allclose(new.wrench, old.wrench, rtol=1e-8, atol=1e-8)
    assert new.multipliers["k"] == pytest.approx(old.multipliers["k"], rel=1e-8)
    assert new.residual < 1e-9 * (1 + np.abs(new.wrench).max())
    first, second = ld.mobility(own, state), ld.mobility(user, state)
    assert (first.dof, first.rank, first.rows) == (second.dof, second.rank, second.rows)


@pytest.mark.parametrize("complex_", [True, False])
def test_rows_of_any_function_belong_together(complex_):
    """d phi/dt = J v + phi_t and d(J v + phi_t)/dt = J a - gamma along a motion, with quaternions in q."""

    def f(t, q):
        if not complex_:
            q = np.asarray(q, dtype=object).astype(float)
        return [q[2] * q[3] + q[4] ** 2 * t, q[5] - q[0] * q[1]]

    system = chain(ld.constraints.UserConstraint(function=f, rows=("one", "two"))).compile(cuts=[])
    assert ld.tree.user_rows(system).methods["k"] == ("complex steps" if complex_ else "differences")
    rng = np.random.default_rng(6)
    state = random_state(system, rng, 0.4, t=0.3)
    a = rng.normal(size=system.nv)
    along = path(system, state, a)

    def rate(s: float) -> np.ndarray:
        now = ld.terms(system, along(s))
        return now.J @ along(s).v + now.phi_t

    now = ld.terms(system, state)
    slopes = first_derivative(lambda s: ld.terms(system, along(s)).phi, 1e-3)
    np.testing.assert_allclose(slopes, rate(0.0), atol=1e-8)
    np.testing.assert_allclose(first_derivative(rate, 1e-3), now.J @ a - now.gamma, atol=1e-7)


@pytest.mark.parametrize("complex_", [True, False])
def test_a_skate_by_a_function(complex_):
    """Chaplygin's sleigh: u' = c w^2, (I + m c^2) w' = -m c u w."""
    sin, cos = (np.sin, np.cos) if complex_ else (math.sin, math.cos)
    m = ld.Mechanism("sleigh")
    m.add_body("sleigh", ld.Inertia(2.0, (0.4, 0, 0), np.diag([0.1, 0.2, 0.3]).tolist()))
    m.add_joint("P", ld.Planar(normal=(0, 0, 1)), m.ground, "sleigh", at=(0, 0, 0))
    skate = ld.constraints.UserConstraint(
        function=lambda t, q, v: v[1] * cos(q[2]) - v[0] * sin(q[2]), rows=("blade",), level="velocity"
    )
    m.add_constraint("k", skate)
    system = m.compile()
    assert system.coordinates == ("P.x", "P.y", "P.angle")
    assert not system.holonomic.any()
    u, w, angle, c = 1.7, 2.3, 0.6, 0.4
    state = ld.assemble(system, q={"P.angle": angle}, v={"P.x": u * np.cos(angle), "P.angle": w})
    du, dw = c * w**2, -2.0 * c * u * w / (0.3 + 2.0 * c**2)
    expected = [du * np.cos(angle) - u * w * np.sin(angle), du * np.sin(angle) + u * w * np.cos(angle), dw]
    for f in FORMULATIONS:
        np.testing.assert_allclose(ld.accelerations(system, state, f), expected, rtol=1e-9)


def test_a_function_that_drops_imaginary_parts_is_differentiated_by_differences():
    user = body(ld.constraints.UserConstraint(function=length_by_magnitude, rows=("distance",))).compile()
    assert ld.tree.user_rows(user).methods == {"k": "differences"}


def test_a_user_constraint_cannot_be_saved(tmp_path):
    with pytest.raises(ld.errors.ModelError, match=r"constraint 'k': a Python function cannot be saved"):
        body(USERS["complex steps"]).save(tmp_path / "x.yaml")


def test_a_wrong_user_constraint_is_refused_in_words():
    with pytest.raises(ld.errors.ModelError, match="names of their own"):
        body(ld.constraints.UserConstraint(function=length, rows=("x", "x"))).compile()
    for more, words in (({"rows": ("x", "y")}, "2 rows are named"), ({"rows": ("x",), "jacobian": length}, "Jacobian")):
        system = body(ld.constraints.UserConstraint(function=length, **more)).compile()
        with pytest.raises(ld.errors.ModelError, match=words):
            ld.terms(system, system.state())
    m = body(USERS["complex steps"])
    with pytest.raises(ld.errors.ModelError, match="already"):
        m.add_driver("k", "A", "t")


def test_a_formulation_that_runs_compiled_refuses_it_with_a_reason():
    system = body(USERS["complex steps"]).compile()
    with pytest.raises(ld.LoopdynError, match="graph cannot treat 'body': the model has user constraints"):
        ld.prepare(system, "graph")
