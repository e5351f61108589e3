"""Absolute coordinates: every way of solving them gives the oracle's answer."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from tests.marks import gallery_slow

import loopdyn as ld
from loopdyn.errors import SingularityError
from loopdyn.formulations.absolute.formulation import Absolute
from loopdyn.formulations.oracle import Oracle
from loopdyn.library import ALL, random_mechanism, turned
from loopdyn.loops.projection import project
from loopdyn.loops.rank import decide
from loopdyn.system.system import State

EXACT = ["kkt", "sparse", "schur", "barycentric", "nullspace"]
AGREE = 1e-8
RANDOM = [
    {"seed": s, "bodies": 4 + s % 5, "loops": 1 + s % 4, "redundant": s % 3, "forces": True, "floating": s % 5 == 4}
    for s in range(20)
]


def moving(mechanism, seed=0, amount=0.02, t=0.3):
    """A closed state near the reference pose with speeds."""
    system = mechanism.compile()
    rng = np.random.default_rng(seed)
    start = system.state()
    rank = decide(system, start)
    q = ld.tree.increment(system, start.q, amount * rng.normal(size=system.nv))
    state = State(t, q, 0.3 * rng.normal(size=system.nv))
    return system, project(system, state, rank=rank.count).state


def relative(found, wanted):
    return np.abs(found - wanted).max(initial=0.0) / max(1.0, np.abs(wanted).max(initial=0.0))


def errors(system, state, *methods):
    """Largest relative differences of accelerations and of J^T lam from the oracle."""
    rank = decide(system, state)
    assert rank.clear
    wanted = Oracle().prepare(system, rank)(state.t, state.q, state.v)
    J = ld.terms(system, state).J
    out = []
    for method in methods:
        found = method.prepare(system, rank)(state.t, state.q, state.v)
        out.append(max(relative(found.a, wanted.a), relative(J.T @ found.lam, J.T @ wanted.lam)))
    return np.array(out)


def all_exact():
    return [Absolute(solver=s, dependent=d) for s in EXACT for d in ("qr", "svd")]


@pytest.mark.parametrize("name", gallery_slow(ALL))
def test_all_solvers_agree_with_the_oracle_on_the_library(name):
    # flat parallelograms lose rank at their reference pose only: they are left there
    amount = 0.0 if name == "n_four_bar" else 0.02
    system, state = moving(turned(ALL[name]()), amount=amount)
    assert errors(system, state, *all_exact()).max() < AGREE
    assert errors(system, state, Absolute("penalty")).max() < 1e-6


@pytest.mark.parametrize("given", RANDOM, ids=lambda g: f"seed{g['seed']}")
def test_all_solvers_agree_with_the_oracle_on_random_mechanisms(given):
    system, state = moving(random_mechanism(**given))
    assert errors(system, state, *all_exact()).max() < AGREE


@pytest.mark.parametrize("solver", [*EXACT, "penalty"])
def test_the_choice_of_cuts_does_not_matter(solver):
    m = turned(ld.library.andrews())
    system, state = moving(m)
    motion = ld.tree.body_motion(system, state, _solve(system, state, solver).a)
    poses = {name: (p, R) for name, p, R in zip(motion.bodies, motion.position, motion.rotation, strict=True)}
    other = m.compile(cuts="all")
    free = _same_motion(other, poses, motion)
    found = ld.tree.body_motion(other, free, _solve(other, free, solver).a)
    for k, name in enumerate(found.bodies):
        i = motion.bodies.index(name)
        assert relative(found.angular_acceleration[k], motion.angular_acceleration[i]) < 1e-6


def _solve(system, state, solver):
    return Absolute(solver).prepare(system, decide(system, state))(state.t, state.q, state.v)


def _same_motion(system, poses, motion):
    """State of a system of free bodies."""
    from loopdyn.spatial.rotations import from_matrix

    q, v = np.zeros(system.nq), np.zeros(system.nv)
    for j in system.joints.values():
        if j.in_tree:
            name = system.bodies[j.body]
            i = motion.bodies.index(name)
            p, R = poses[name]
            q[j.q0 : j.q0 + 7] = [*p, *from_matrix(R)]
            v[j.v0 : j.v0 + 6] = [*(R.T @ motion.angular_velocity[i]), *(R.T @ motion.velocity[i])]
    return State(0.3, q, v)


def test_given_base_motion():
    m = random_mechanism(3, bodies=6, loops=2)
    m.move_base("ground", x="0.3*sin(2*t)", z="0.1*t**2", rx="0.2*t", ry="0.3*sin(t)", rz="0.4*t**2")
    system, state = moving(m)
    assert errors(system, state, *all_exact()).max() < AGREE


CONSTRAINTS = {
    "distance": ld.constraints.Distance(
        body1="ground", body2="c", point1=(1, 2, 3), point2=(1, 0.5, 1.2), length="2 + 0.3*sin(3*t)"
    ),
    "plane": ld.constraints.PointOnPlane(on="a", body="c", point=(1, 1, 1), normal=(1, 2, 0.4)),
    "rolling": ld.constraints.Rolling(
        on="a", body="c", normal=(0.1, 0.2, 1), through=(0, 0, -0.3), centre=(1, 1, 1), radius=0.4
    ),
    "coupler": ld.constraints.Coupler(terms={"A.1": 1.0, "A.2": 0.7, "B.slide": -2.0, "C": 0.3}, offset=0.1),
    "driver": None,
}


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_constraints_and_drivers(name):
    matrix = [[0.3, 0.01, 0.02], [0.01, 0.2, 0.03], [0.02, 0.03, 0.25]]
    m = ld.Mechanism("arm", gravity=(0, 0, -9.81))
    for body, com in (("a", (0.3, 0.1, 0.2)), ("b", (1.0, 0.4, 0.3)), ("c", (1.0, 0.4, 1.3))):
        m.add_body(body, ld.Inertia(1.0, com, matrix))
    m.add_joint("A", ld.Universal(axis1=(1, 0.2, 0), axis2=(0, 1, 0.3)), m.ground, "a", at=(0, 0, 0))
    m.add_joint("B", ld.Cylindrical(axis=(0.2, 0.3, 1)), "a", "b", at=(0.8, 0.2, 0.1))
    m.add_joint("C", ld.Revolute(axis=(0.5, 0.3, 1)), "b", "c", at=(0.8, 0.2, 0.9))
    m.move_base(x="0.3*sin(t)", rz="0.4*t**2", ry="0.2*t")
    if name == "driver":
        m.add_driver("k", "C", "7 + 0.3*sin(t)")
    else:
        m.add_constraint("k", CONSTRAINTS[name])
    system = m.compile()
    q = ld.tree.increment(system, system.q_reference, 0.1 * np.arange(system.nv))
    state = State(0.3, q, 0.2 * np.arange(system.nv))
    assert errors(system, state, *all_exact()).max() < AGREE


def test_loads_on_joints_count_beyond_half_a_turn():
    m = turned(ld.library.four_bar())
    m.add_force(None, ld.forces.JointSpring(joint="A", stiffness=3.0, rest=0.1))
    system, state = moving(m)
    k = system.coordinates.index("A")
    q = state.q.copy()
    q[k] += 2 * np.pi
    assert errors(system, State(state.t, q, state.v), *all_exact()).max() < AGREE


def test_user_forces():
    m = turned(ld.library.five_bar())

    def push(t, q, v, tau):
        tau[0] += 2.0 - 0.1 * v[0]

    m.add_force("push", ld.forces.UserForce(function=push))
    system, state = moving(m)
    assert errors(system, state, *all_exact()).max() < AGREE


# ------------------------------------------------------------------------------------------- penalty


def test_penalty_error_falls_in_proportion_to_the_penalty():
    system, state = moving(turned(ld.library.bricard()))
    weights = [1e3, 1e4, 1e5, 1e6]
    e = errors(system, state, *(Absolute("penalty", penalty=p, augmented=False) for p in weights))
    order = np.diff(np.log10(e))
    assert np.all(np.abs(order + 1.0) < 0.1), e


def test_augmented_lagrangian_removes_the_penalty_error():
    system, state = moving(turned(ld.library.bricard()))
    plain, augmented = errors(
        system, state, Absolute("penalty", penalty=1e4, augmented=False), Absolute("penalty", penalty=1e4)
    )
    assert augmented < 1e-8 < plain


def test_only_penalty_is_approximate():
    assert Absolute("penalty").approximate
    assert not any(Absolute(s).approximate for s in EXACT)


# ---------------------------------------------------------------------------------- singular inertias


def thin_four_bar(crank_mass=0.5):
    m = ld.Mechanism("thin", gravity=(0, -9.81, 0))
    points = [(0, 0, 0), (0, 0.5, 0), (1.2, 0.9, 0), (1.1, 0, 0)]
    names = ["crank", "coupler", "rocker"]
    for name, mass, a, b in zip(names, (crank_mass, 1.0, 0.75), points, points[1:], strict=False):
        m.add_body(name, ld.Inertia.rod(mass=mass, start=a, end=b))
    ends = ["ground", *names, "ground"]
    for k, at in enumerate(points):
        m.add_joint("ABCD"[k], ld.Revolute(axis=(0, 0, 1)), ends[k], ends[k + 1], at=at)
    return turned(m)


def test_rods_without_thickness():
    system, state = moving(thin_four_bar())
    assert errors(system, state, *all_exact(), Absolute("penalty")).max() < AGREE


def test_massless_link():
    system, state = moving(thin_four_bar(crank_mass=0.0))
    assert errors(system, state, *all_exact(), Absolute("penalty")).max() < AGREE


def test_point_mass_on_a_ball_joint_is_refused_in_words():
    m = ld.Mechanism("point", gravity=(0, 0, -9.81))
    b = m.add_body("bob", ld.Inertia.point(mass=1.0, at=(1, 0, 0)))
    m.add_joint("A", ld.Spherical(), m.ground, b, at=(0, 0, 0))
    system = m.compile()
    state = system.state()
    for solver in ("schur", "nullspace", "penalty"):
        with pytest.raises(SingularityError, match="no inertia"):
            _solve(system, state, solver)


# ------------------------------------------------------------------------------------------- options


def test_unknown_options_raise():
    with pytest.raises(ld.LoopdynError, match="kkt"):
        Absolute(solver="lu")
    with pytest.raises(ld.LoopdynError, match="svd"):
        Absolute(dependent="lq")
    with pytest.raises((TypeError, ld.LoopdynError)):
        Absolute(tolerance=1e-3)
    with pytest.raises(ld.LoopdynError, match="not positive"):
        Absolute("penalty", penalty=0.0)
    with pytest.raises(ld.LoopdynError, match="pair"):
        Absolute(baumgarte=(1.0, -1.0))
    with pytest.raises(dataclasses.FrozenInstanceError):
        Absolute().solver = "schur"


def test_baumgarte_is_off_by_default_and_acts_on_residuals_only():
    system, state = moving(turned(ld.library.rssr()))
    rank = decide(system, state)
    plain, damped = Absolute(), Absolute(baumgarte=(20.0, 100.0))
    assert plain.baumgarte is None
    at = (state.t, state.q, state.v)
    assert relative(damped.prepare(system, rank)(*at).a, plain.prepare(system, rank)(*at).a) < 1e-9
    # off the manifold: J a = gamma - alpha phi' - beta phi
    q = ld.tree.increment(system, state.q, 1e-3 * np.arange(1, system.nv + 1))
    off = State(state.t, q, state.v + 1e-2)
    now = ld.terms(system, off)
    wanted = now.gamma - 20.0 * (now.J @ off.v + now.phi_t) - 100.0 * now.phi
    for solver in EXACT:
        a = Absolute(solver, baumgarte=(20.0, 100.0)).prepare(system, rank)(off.t, off.q, off.v).a
        assert relative(now.J @ a, wanted) < 1e-9
        a = Absolute(solver).prepare(system, rank)(off.t, off.q, off.v).a
        assert relative(now.J @ a, now.gamma) < 1e-9


def test_inputs_are_not_written():
    system, state = moving(turned(ld.library.four_bar()))
    q, v = state.q.copy(), state.v.copy()
    for solver in EXACT:
        _solve(system, state, solver)
    assert np.array_equal(q, state.q)
    assert np.array_equal(v, state.v)


@pytest.mark.parametrize("solver", [*EXACT, "penalty"])
def test_the_plan_says_what_is_solved(solver):
    system = ld.library.four_bar().compile()
    plan = Absolute(solver).plan(system)
    assert plan.startswith(f"absolute ({solver}): 3 bodies, 20 rows")
