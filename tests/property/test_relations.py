"""Relations of joint coordinates and speeds by formula: against couplers, closed forms, and other cuts."""

from __future__ import annotations

import numpy as np
import pytest
from tests.independent import closed_state, random_inertia, transfer

import loopdyn as ld
from loopdyn.loops.projection import project

FORMULATIONS = ("oracle", "relative", "graph", ld.Absolute(solver="kkt"), ld.Absolute(solver="nullspace"))


def wheels(ratio: ld.constraints.Coupler | ld.constraints.Relation | None = None, **more: object) -> ld.Mechanism:
    """Two wheels on parallel axes, I = 1 and 0.25 kg m^2, torque 3 N m on the first."""
    m = ld.Mechanism("wheels", **more)
    for name, x, radius in (("a", 0.0, 1.0), ("b", 3.0, 0.5)):
        m.add_body(name, ld.Inertia.cylinder(mass=2.0, radius=radius, length=0.1, axis=(0, 0, 1), at=(x, 0, 0)))
        m.add_joint(name.upper(), ld.Revolute(axis=(0, 0, 1)), m.ground, name, at=(x, 0, 0))
    m.add_motor("motor", "A", torque=3.0)
    if ratio is not None:
        m.add_constraint("mesh", ratio)
    return m


def body_accelerations(
    system: ld.System, state: ld.State, formulation: str | ld.formulations.Formulation = "oracle"
) -> np.ndarray:
    """Angular and linear accelerations of all bodies, by name."""
    motion = ld.tree.body_motion(system, state, ld.accelerations(system, state, formulation))
    order = np.argsort(motion.bodies)
    return np.hstack([motion.angular_acceleration, motion.acceleration])[order]


# --------------------------------------------------------------------------------------------- closed forms


@pytest.mark.jit_off
def test_a_linear_relation_is_a_coupler():
    coupler = wheels(ld.constraints.Coupler(terms={"A": 1.0, "B": 2.0}, offset=0.3)).compile()
    relation = wheels(ld.constraints.Relation(formula="a + 2*b - 0.3", coordinates={"a": "A", "b": "B"})).compile()
    state = ld.assemble(coupler, q={"A": 0.7}, v={"A": 1.0})
    old, new = (ld.terms(s, state) for s in (coupler, relation))
    for name in ("J", "gamma", "phi", "phi_t"):
        np.testing.assert_allclose(getattr(new, name), getattr(old, name), atol=1e-15)
    assert new.system.row_dimensions == old.system.row_dimensions == ("angle",)


@pytest.mark.parametrize("formulation", FORMULATIONS, ids=str)
def test_a_noncircular_gear_has_the_acceleration_of_its_reduced_inertia(formulation):
    """b = g(a) = -(a - 0.2 sin a): (I_a + I_b g'^2) a'' + I_b g' g'' a'^2 = torque.

    The multiplier times d phi/da = -g' is the load on wheel a: I_a a'' = torque - lam g'.
    """
    system = wheels(ld.constraints.Relation(formula="b + a - 0.2*sin(a)", coordinates={"a": "A", "b": "B"})).compile()
    state = ld.assemble(system, q={"A": 0.8}, v={"A": 4.0})
    a, da, Ia, Ib = 0.8, 4.0, 1.0, 0.25
    g1, g2 = -(1 - 0.2 * np.cos(a)), -0.2 * np.sin(a)
    dda = (3.0 - Ib * g1 * g2 * da**2) / (Ia + Ib * g1**2)
    np.testing.assert_allclose(state.v, [da, g1 * da], rtol=1e-13)
    solution = ld.accelerations(system, state, formulation, full=True)
    np.testing.assert_allclose(solution.a, [dda, g1 * dda + g2 * da**2], rtol=1e-11)
    np.testing.assert_allclose(
        solution.lam, [(3.0 - Ia * dda) / g1], rtol=1e-11
    )  # d phi/da = -g', and I a'' = M + lam d phi


def test_the_noncircular_gear_keeps_its_energy_while_it_turns():
    """Energy less work of the torque, integrated by RK4 with 2000 steps of 1 ms: error below 1e-9."""
    system = wheels(ld.constraints.Relation(formula="b + a - 0.2*sin(a)", coordinates={"a": "A", "b": "B"})).compile()
    state = ld.assemble(system, v={"A": 4.0})
    solve = ld.prepare(system, "relative", state)
    y, h = np.concatenate([state.q, state.v]), 1e-3

    def f(y: np.ndarray) -> np.ndarray:
        return np.concatenate([y[2:], solve(0.0, y[:2], y[2:]).a])

    start = ld.tree.energy(system, state).kinetic
    for _ in range(2000):
        k1 = f(y)
        k2 = f(y + 0.5 * h * k1)
        k3 = f(y + 0.5 * h * k2)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + f(y + h * k3))
    end = ld.tree.energy(system, system.state(y[:2], y[2:])).kinetic
    assert end - start == pytest.approx(3.0 * y[0], abs=1e-8)
    assert y[1] == pytest.approx(-(y[0] - 0.2 * np.sin(y[0])), abs=1e-9)


def test_a_relation_with_time_drives_like_a_driver():
    driver, relation = wheels(), wheels(ld.constraints.Relation(formula="a - 0.3*sin(2*t)", coordinates={"a": "A"}))
    driver.add_driver("mesh", "A", "0.3*sin(2*t)")
    state = ld.assemble(driver.compile(), t=0.4, v={"B": 1.0})
    old, new = (ld.terms(m.compile(), state) for m in (driver, relation))
    for name in ("J", "gamma", "phi", "phi_t"):
        np.testing.assert_allclose(getattr(new, name), getattr(old, name), atol=1e-15)


def test_units_of_a_relation_are_those_of_the_model():
    """A rack, s = 0.05 m a, written in mm and degrees."""
    m = ld.Mechanism("rack", units={"length": "mm", "angle": "deg"})
    m.add_body("pinion", ld.Inertia.sphere(mass=1.0, radius=10.0))
    m.add_body("rack", ld.Inertia.sphere(mass=1.0, radius=10.0))
    m.add_joint("A", ld.Revolute(axis=(0, 0, 1)), m.ground, "pinion", at=(0, 0, 0))
    m.add_joint("B", ld.Prismatic(axis=(1, 0, 0)), m.ground, "rack", at=(0, 0, 0))
    m.add_constraint("mesh", ld.constraints.Relation(formula="s - 50*radians(a)", coordinates={"s": "B", "a": "A"}))
    system = m.compile()
    state = ld.assemble(system, q={"A": np.degrees(0.4)})
    assert state.q[system.coordinates.index("B")] == pytest.approx(0.02, rel=1e-13)
    row = dict(zip(system.speeds, ld.terms(system, state).J[0], strict=True))
    assert row == pytest.approx({"A": -0.05, "B": 1.0}, rel=1e-13)
    assert system.row_dimensions == ("length",)


def test_a_relation_loses_rank_where_its_derivatives_vanish():
    system = wheels(ld.constraints.Relation(formula="a**2 - b**2", coordinates={"a": "A", "b": "B"})).compile()
    assert ld.mobility(system, system.state()).dof_here == 2
    assert ld.mobility(system, ld.assemble(system, q={"A": 0.5}, near=system.state({"B": 0.4}))).dof_here == 1


# ------------------------------------------------------------------------------------- conditions on velocities


def sleigh(offset: float, slope: float = 0.0) -> ld.System:
    """Chaplygin's sleigh: blade at the joint, centre of mass `offset` ahead, m = 2 kg, I = 0.3 kg m^2."""
    m = ld.Mechanism("sleigh", gravity=(-slope, 0, -9.81))
    matrix = np.diag([0.1, 0.2, 0.3])
    m.add_body("sleigh", ld.Inertia(2.0, (offset, 0, 0), matrix.tolist()))
    m.add_joint("P", ld.Planar(normal=(0, 0, 1)), m.ground, "sleigh", at=(0, 0, 0))
    skate = ld.constraints.VelocityRelation(
        formula="vy*cos(angle) - vx*sin(angle)",
        speeds={"vx": "P.x", "vy": "P.y"},
        coordinates={"angle": "P.angle"},
    )
    m.add_constraint("blade", skate)
    return m.compile()


@pytest.mark.jit_off
@pytest.mark.parametrize("formulation", FORMULATIONS, ids=str)
def test_chaplygins_sleigh(formulation):
    """u' = c w^2, (I + m c^2) w' = -m c u w for the speed u along the blade and the spin w, c the offset."""
    system, c, m, inertia = sleigh(0.4), 0.4, 2.0, 0.3
    u, w, angle = 1.7, 2.3, 0.6
    v = {"P.x": u * np.cos(angle), "P.y": u * np.sin(angle), "P.angle": w}
    state = system.state({"P.angle": angle}, v)
    a = dict(zip(system.speeds, ld.accelerations(system, state, formulation), strict=True))
    du, dw = c * w**2, -m * c * u * w / (inertia + m * c**2)
    assert a["P.angle"] == pytest.approx(dw, rel=1e-11)
    assert a["P.x"] == pytest.approx(du * np.cos(angle) - u * w * np.sin(angle), rel=1e-11)
    assert a["P.y"] == pytest.approx(du * np.sin(angle) + u * w * np.cos(angle), rel=1e-11)


def test_a_knife_edge_on_a_slope_moves_on_a_cycloid():
    """Centre of mass at the blade, slope along -x: w constant, u = -(g/w) sin(w t), a cycloid that does not go down."""
    g, w, t_end, steps = 3.0, 2.0, np.pi, 1000
    system = sleigh(0.0, slope=g)
    assert not system.holonomic.any()
    solve = ld.prepare(system, "relative")
    y, h = np.concatenate([system.q_reference, system.state(v={"P.angle": w}).v]), t_end / steps

    def f(y: np.ndarray) -> np.ndarray:
        return np.concatenate([y[3:], solve(0.0, y[:3], y[3:]).a])

    for _ in range(steps):
        k1 = f(y)
        k2 = f(y + 0.5 * h * k1)
        k3 = f(y + 0.5 * h * k2)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + f(y + h * k3))
    # x' = u cos(w t), y' = u sin(w t), u = -(g/w) sin(w t), integrated by hand; RK4 with 1000 steps errs by 1e-10
    assert y[0] == pytest.approx(-g / (2 * w * w) * np.sin(w * t_end) ** 2, abs=1e-9)
    assert y[1] == pytest.approx(-g / (2 * w) * (t_end - np.sin(2 * w * t_end) / (2 * w)), abs=1e-9)


def test_velocities_alone_are_constrained():
    system = sleigh(0.4)
    state = ld.assemble(system, q={"P.x": 5.0, "P.y": -3.0, "P.angle": 0.7}, v={"P.x": 1.0})
    v = dict(zip(system.speeds, state.v, strict=True))
    assert v["P.y"] == pytest.approx(np.tan(0.7), rel=1e-12)
    assert ld.mobility(system, state).dof_here == 2


def test_a_row_that_is_not_affine_in_the_speeds_is_met_by_assembling():
    """|v| = 5 m/s: the nearest velocity to (3, 3.9) has its direction; accelerations stay perpendicular to it."""
    m = ld.Mechanism("governed", gravity=(0, -9.81, 0))
    m.add_body("p", ld.Inertia.sphere(mass=1.0, radius=0.1))
    m.add_joint("P", ld.Planar(normal=(0, 0, 1)), m.ground, "p", at=(0, 0, 0))
    m.add_constraint("c", ld.constraints.VelocityRelation(formula="x**2 + y**2 - 25", speeds={"x": "P.x", "y": "P.y"}))
    system = m.compile()
    state = ld.assemble(system, v=[3.0, 3.9, 0.0])
    direction = np.array([3.0, 3.9]) / np.hypot(3.0, 3.9)
    np.testing.assert_allclose(state.v[:2], 5 * direction, rtol=1e-3)  # nearest along the gradient, not radially exact
    assert state.v[:2] @ state.v[:2] == pytest.approx(25.0, rel=1e-13)
    g = np.array([0.0, -9.81])
    expected = g - (g @ state.v[:2]) / 25.0 * state.v[:2]  # Gauss: the load is along the velocity
    for formulation in FORMULATIONS:
        np.testing.assert_allclose(ld.accelerations(system, state, formulation)[:2], expected, rtol=1e-11)


# --------------------------------------------------------------------------------------------------- cut joints


def chain(moving: bool = True) -> ld.Mechanism:
    """Universal, cylindrical, spherical and planar joints in a row on a moving ground, in generic orientation."""
    rng = np.random.default_rng(3)
    m = ld.Mechanism("chain", gravity=(1, -9, 2))
    for k, name in enumerate("abcdf"):
        m.add_body(name, random_inertia(rng, (float(k), 0.2, 0.1)))
    m.add_joint("A", ld.Universal(axis1=(1, 0.2, 0), axis2=(0, 1, 0.3)), m.ground, "a", at=(0, 0, 0))
    m.add_joint("B", ld.Cylindrical(axis=(0.2, 0.3, 1)), "a", "b", at=(0.8, 0.2, 0.1))
    m.add_joint("S", ld.Spherical(), "c", "b", at=(1.6, 0.2, 0.9))
    m.add_joint("P", ld.Planar(normal=(0.5, 0.3, 1)), "c", "d", at=(2.2, 0.2, 0.9))
    m.add_joint("T", ld.Free(), "d", "f", at=(2.9, 0.5, 0.9))
    if moving:
        m.move_base(x="0.3*sin(t)", rz="0.4*t**2", ry="0.2*t")
    return m


RELATIONS = {
    "positions": ld.constraints.Relation(
        formula="sin(a)*b - 2*s**2 + cos(c)*a + 0.1*t**2*x - 0.4*y*r",
        coordinates={"a": "A.1", "b": "A.2", "s": "B.slide", "c": "B.angle", "x": "P.x", "y": "P.y", "r": "P.angle"},
    ),
    "speeds": ld.constraints.VelocityRelation(
        formula="a*va*vc**2 + sin(c)*vs + t*x - vr*wy + vx*wz - 0.3*vz**2*tx",
        speeds={"va": "A.1", "vs": "B.slide", "vc": "B.angle", "vr": "P.angle", "vx": "P.x", "wy": "S.wy", "wz": "S.wz",
                "vz": "T.vz", "tx": "T.wx"},
        coordinates={"a": "A.1", "c": "B.angle", "x": "P.x"},
    ),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:.*are counted in runs only:loopdyn.errors.LoopdynWarning")  # its base turns
@pytest.mark.parametrize("name", RELATIONS)
@pytest.mark.parametrize("cuts", ["A", "B", "S", "P", "T", "all"])
def test_a_relation_means_the_same_for_tree_joints_and_cut_joints(name, cuts):
    m = chain()
    m.add_constraint("k", RELATIONS[name])
    tree = m.compile(cuts=[])
    state = project(tree, closed_state(tree, np.random.default_rng(5), 0.4, t=0.6)).state
    cut = m.compile(cuts="all" if cuts == "all" else [cuts])
    there = transfer(cut, ld.tree.body_motion(tree, state), t=0.6)
    now = ld.terms(cut, there)
    assert np.abs(now.phi).max() < 1e-10
    assert np.abs(now.J @ there.v + now.phi_t).max() < 1e-10  # the row has the same rate
    # bodies accelerate alike; the scale is that of the accelerations, of the order of 100
    np.testing.assert_allclose(body_accelerations(cut, there), body_accelerations(tree, state), atol=1e-8)


def test_factors_count_the_turns_of_a_joint_that_another_formulation_cuts():
    """a^2 at a = 8 rad has the slope 16, whether the joint is in the tree or, for free bodies, cut."""
    system = wheels(ld.constraints.Relation(formula="b - 0.1*a**2", coordinates={"a": "A", "b": "B"})).compile()
    state = ld.assemble(system, q={"A": 8.0}, v={"A": 1.0})
    dda = (3.0 - 0.25 * 1.6 * 0.2) / (1.0 + 0.25 * 1.6**2)  # b = g(a), g' = 1.6, g'' = 0.2
    for formulation in FORMULATIONS:
        assert ld.accelerations(system, state, formulation)[0] == pytest.approx(dda, rel=1e-11)
    r = ld.reactions(system, state)
    assert r.residual < 1e-11
    assert r.multipliers["mesh"] == pytest.approx(0.25 * (1.6 * dda + 0.2), rel=1e-11)


# ---------------------------------------------------------------------------------------------- files and words


def test_relations_are_kept_in_model_files(tmp_path):
    m = chain(moving=False)
    for name, spec in RELATIONS.items():
        m.add_constraint(name, spec)
    m.save(tmp_path / "chain.yaml")
    again = ld.load(tmp_path / "chain.yaml")
    assert again == m
    state = closed_state(m.compile(), np.random.default_rng(1), 0.2, t=0.3)
    np.testing.assert_array_equal(ld.terms(again.compile(), state).J, ld.terms(m.compile(), state).J)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (ld.constraints.Relation(formula="a", coordinates={}), "names no coordinates"),
        (ld.constraints.Relation(formula=1.0, coordinates={"a": "A.1"}), "is a number"),
        (ld.constraints.Relation(formula="a + zz", coordinates={"a": "A.1"}), "'zz', which has no meaning"),
        (ld.constraints.Relation(formula="a", coordinates={"a": "A.1", "b": "A.2"}), "does not use 'b'"),
        (ld.constraints.Relation(formula="a", coordinates={"a": "Q"}), "no joint 'Q'"),
        (ld.constraints.Relation(formula="a", coordinates={"a": "S.wx"}), "no single coordinate"),
        (ld.constraints.Relation(formula="a +", coordinates={"a": "A.1"}), "ends too early|invalid syntax"),
        (ld.constraints.Relation(formula="a + t", coordinates={"a": "A.1", "t": "A.2"}), "'t' is time"),
        (ld.constraints.VelocityRelation(formula="a", speeds={}), "names no speeds"),
        (
            ld.constraints.VelocityRelation(formula="a", speeds={"a": "A.1"}, coordinates={"a": "A.2"}),
            "a coordinate and a speed",
        ),
    ],
)
def test_a_wrong_relation_is_refused_in_words(spec, words):
    m = chain()
    m.add_constraint("k", spec)
    with pytest.raises(ld.errors.ModelError, match=words):
        m.compile()
