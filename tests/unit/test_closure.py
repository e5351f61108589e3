"""Closure: recognised groups, runs that stay closed, limits, branches."""

from __future__ import annotations

from functools import partial
from itertools import permutations, product

import numpy as np
import pytest
from scipy.optimize import brentq
from tests import closed_forms
from tests.kernels import check_complex_numbers, check_nothing_is_allocated
from tests.literature.test_blajer1994 import TARGETS, four_bar
from tests.marks import gallery_slow
from tests.unit.test_partition import moving

import loopdyn as ld
from loopdyn.analysis.branches import _searched
from loopdyn.engine.status import FINE
from loopdyn.formulations.closure import kernels
from loopdyn.formulations.closure.formulation import Closer, explicit_sets, plan_for
from loopdyn.formulations.closure.planner import plan_closure
from loopdyn.integrators.memory import Output
from loopdyn.integrators.stepper import Stepper
from loopdyn.loops.rank import decide
from loopdyn.testing.checking import random_sample
from loopdyn.tree.functions import apart

PIN = ld.Revolute(axis=(0, 0, 1))


def ring(kinds: str) -> ld.Mechanism:
    """Four bodies, one of them the ground, joined by pins (R) and slides (P) in a ring that lies in a tilted plane."""
    m = ld.Mechanism("ring", gravity=(0, -9.81, 0))
    points = [(0, 0, 0), (0.3, 0.8, 0.1), (1.4, 1.1, -0.2), (1.6, 0.1, 0.3)]  # out of plane too: bodies of any shape
    ways = [(1, 0.2, 0), (0.1, 1, 0), (1, -0.4, 0), (0.6, 1, 0)]
    for name, com in zip("abc", [(0.2, 0.3, 0.1), (0.9, 1.0, 0), (1.5, 0.6, 0.2)], strict=True):
        m.add_body(name, ld.Inertia.sphere(mass=1.0, radius=0.2, at=com))
    bodies = ["ground", "a", "b", "c", "ground"]
    for k, kind in enumerate(kinds):
        joint = PIN if kind == "R" else ld.Prismatic(axis=ways[k])
        m.add_joint(f"{kind}{k}", joint, bodies[k], bodies[k + 1], at=points[k])
    return ld.library.turned(m)


RINGS = sorted({"".join(p) for kinds in ("RRRR", "RRRP", "RRPP") for p in permutations(kinds)})


@pytest.mark.parametrize("kinds", RINGS)
@pytest.mark.parametrize("cut", range(4))
def test_planar_rings_of_pins_and_slides_are_explicit_with_any_joint_as_input_and_any_cut(kinds, cut):
    """RR, RP, PR, PP dyads: a pin among the three that remain; three slides cannot be closed by turning."""
    m = ring(kinds)
    system = m.compile(cuts=[f"{kinds[cut]}{cut}"])
    state = ld.assemble(system)
    for k in range(system.nv):
        J = ld.tree.constraint_equations(system, state)[1]
        others = [i for i in range(3) if i != k]
        if np.linalg.matrix_rank(J[:, others], 1e-6) < 2:
            continue  # this input moves nothing here, or not by itself
        plan = plan_for(system, state, [k])
        assert plan.explicit
        close, signs = Closer(plan), plan.signs(state)
        np.testing.assert_allclose(close(0.0, np.array(state.q), signs), state.q, atol=1e-13)
        trials = [close(0.0, state.q + step * np.eye(3)[k], signs) for step in (0.05, -0.05)]
        found = [q for q in trials if q is not None]  # one of them may be beyond a limit
        assert found
        for q in found:
            phi, _ = ld.tree.constraint_equations(system, ld.State(0.0, q, state.v))
            assert np.abs(phi).max() < 1e-13


def test_groups_are_solved_in_the_order_of_the_loops():
    """Andrews' squeezer: three loops, the first one feeding the others."""
    plan = ld.Closure(independent=["O"]).plan(ld.library.andrews().compile())
    assert [set(g.joints) for g in plan.groups] == [{"F", "E2", "B"}, {"E4", "G", "A5"}, {"E6", "H", "A7"}]
    assert plan.explicit
    assert "all in closed form" in str(plan)


def test_what_has_no_closed_form_is_iterated_and_the_plan_says_so():
    plan = ld.Closure().plan(ld.library.bricard().compile())
    assert not plan.explicit
    assert "iterated" in str(plan)


def test_axes_that_are_parallel_at_one_pose_only_are_no_group():
    """A pin whose axis is tilted by a first joint: three pins are parallel where it is drawn, and not beside it."""
    m = ring("RRRR")
    system = m.compile()
    state = ld.assemble(system)
    assert plan_for(system, state, [0]).groups
    tilted = ld.Mechanism("tilted")
    points = [(0, 0, 0), (0.3, 0.8, 0), (1.4, 1.1, 0), (1.6, 0.1, 0)]
    for name in "abc":
        tilted.add_body(name, ld.Inertia.sphere(mass=1.0, radius=0.2, at=(1, 1, 0)))
    bodies, axes = ["ground", "a", "b", "c", "ground"], [(1, 0.3, 0.2), (0, 0, 1), (0, 0, 1), (0, 0, 1)]
    for k in range(4):
        tilted.add_joint(f"J{k}", ld.Revolute(axis=axes[k]), bodies[k], bodies[k + 1], at=points[k])
    system = tilted.compile()
    state = system.state()
    assert plan_closure(system, state, [system.speeds.index("J0")]).groups
    assert plan_for(system, state, [system.speeds.index("J0")]).groups == ()


def test_a_driver_gives_its_coordinate_and_the_rest_is_explicit():
    m = ld.library.five_bar()
    m.add_driver("given", "A", "0.2*sin(3*t)")
    system = m.compile()
    state = ld.assemble(system, v={"E": 0.5})
    method = ld.Closure(independent=["E"])
    run = ld.simulate(system, state, (0, 1), formulation=method, rtol=1e-10, progress=False)
    assert "all in closed form" in run.settings["plan"]
    ref = ld.simulate(system, state, (0, 1), formulation="partition", rtol=1e-10, progress=False)
    np.testing.assert_allclose(run.path.q, ref.path.q, atol=1e-8)
    assert run.largest_residual < 1e-13


@pytest.mark.parametrize("slide", [False, True])
def test_rods_with_two_balls_are_explicit(slide):
    """RSSR and RSSP: a crank, a rod with two balls, and a rocker or a slider; the spin of the rod is idle."""
    m = ld.library.rssr()
    if slide:
        m.joints["D"] = ld.Prismatic(axis=(1, 0.2, 0.3), parent="ground", child="rocker", at=m.joints["D"].at)
    system = ld.library.turned(m).compile()
    state = ld.assemble(system, v={"A": 5.0, "B.wx": 0.3})
    settings = {"rtol": 1e-10, "progress": False, "t_eval": np.linspace(0, 1, 11)}
    run = ld.simulate(system, state, (0, 1), formulation="closure", drift="none", **settings)
    assert "all in closed form" in run.settings["plan"]
    ref = ld.simulate(system, state, (0, 1), formulation="graph", **settings)
    np.testing.assert_allclose(run.path.q, ref.path.q, atol=1e-7)
    assert run.largest_residual < 1e-13


SPATIAL = {
    "spherical": (closed_forms.spherical_four_bar, False, {"A": 3.0}, 0.3, ["spherical RRR"]),
    "shafts": (closed_forms.shafts, False, {"A": 8.0}, 1.0, ["spherical RU"]),
    "hooked rod": (closed_forms.hooked_rod, False, {"A": 5.0}, 0.5, ["RUS", "(US)"]),
    "hooked rod of hinges": (closed_forms.crossed_rod, False, {"A": 5.0}, 0.5, ["RUS", "(US)", "two hinges whose"]),
    "wrist": (closed_forms.wrist, False, {"A": 5.0}, 0.5, ["RUS", "(US)", "spherical RRR"]),
    "arm": (closed_forms.arm, False, {"A": 2.0}, 0.2, ["brings a ball", "(RRR)", "spherical RRR"]),
    "arm with a slide": (partial(closed_forms.arm, "PR"), False, {"A": 2.0}, 0.2, ["brings a ball", "(RRP)"]),
    "arm that slides out": (partial(closed_forms.arm, "RP"), False, {"A": 2.0}, 0.2, ["brings a ball", "(RRP)"]),
    "arm with skew axes": (partial(closed_forms.arm, "RR", 0.3), False, {"A": 2.0}, 0.2, ["two skew hinges", "(RRS)"]),
    "3-RRS": (ld.library.stewart_3rrs, False, {}, 0.1, ["RSS", "two skew hinges", "(RRS)"]),
    "RRS legs, axes skew": (partial(closed_forms.tripod, "skew"), False, {}, 0.1, ["RSS", "two skew", "(RRS)"]),
    "RRS legs, axes meet": (partial(closed_forms.tripod, "meet"), False, {}, 0.1, ["RSS", "(US)", "two hinges whose"]),
    **{
        f"{leg} legs{', platform free' if free else ''}": (
            partial(closed_forms.platform, leg), free, {}, 0.1, ["PUS" if leg == "UPS" else "RUS", "(US)"]
        )
        for leg in ("UPS", "URS", "RUS")
        for free in (False, True)
    },
}  # fmt: skip


@pytest.mark.parametrize("name", SPATIAL)
def test_spatial_loops_with_closed_forms_are_explicit_and_runs_equal_those_of_the_graph_solver(name):
    build, free, v, end, kinds = SPATIAL[name]
    system = ld.library.turned(build()).compile(free=["platform"] if free else [])
    state = ld.assemble(system, v=v)
    settings = {"rtol": 1e-10, "progress": False, "t_eval": np.linspace(0, end, 6)}
    run = ld.simulate(system, state, (0, end), formulation="closure", drift="none", **settings)
    assert run.status == "finished", run.message
    plan = run.settings["plan"]
    assert "all in closed form" in plan
    assert all(kind in plan for kind in kinds)
    if free:
        assert "free:platform.wx" in plan.splitlines()[0]  # its pose is independent, legs are functions of it
    ref = ld.simulate(system, state, (0, end), formulation="graph", **settings)
    np.testing.assert_allclose(run.path.q, ref.path.q, atol=1e-8)
    assert run.largest_residual < 1e-13


@pytest.mark.jit_off
@pytest.mark.parametrize("name", SPATIAL)
def test_spatial_loops_close_to_rounding_beside_the_pose_and_keep_their_branch(name):
    build, free, _, _, _ = SPATIAL[name]
    system = ld.library.turned(build()).compile(free=["platform"] if free else [])
    state = ld.assemble(system)
    rank = decide(system, state)
    rng = np.random.default_rng(3)
    for chosen in explicit_sets(system, rank, np.ones(system.nv, bool))[:4]:
        plan = plan_for(system, state, chosen)
        close, signs, found = Closer(plan), plan.signs(state), 0
        again = close(0.0, state.q, signs)
        rounding = 1e-14 / close.margins.min()  # it grows where a group is nearly stretched
        np.testing.assert_allclose(again, state.q, atol=max(1e-12, rounding))
        for _ in range(10):
            move = np.zeros(system.nv)
            move[list(chosen)] = rng.uniform(-0.1, 0.1, len(chosen))
            q = close(0.0, ld.tree.increment(system, state.q, move), signs)
            if q is not None:
                found += 1
                there = ld.State(0.0, q, np.zeros(system.nv))
                assert np.abs(ld.tree.constraint_equations(system, there)[0]).max() < 1e-13
                np.testing.assert_array_equal(plan.signs(there), signs)
        assert found >= 4


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("spherical", 2), ("shafts", 2), ("hooked rod", 4), ("hooked rod of hinges", 4), ("wrist", 8), ("arm", 8),
        ("arm with skew axes", 8),
    ],
)  # fmt: skip
def test_branches_of_spatial_loops_are_complete(name, count):
    """All that Newton's method finds from many starts, which knows no groups, is in the list."""
    system = SPATIAL[name][0]().compile()
    state = ld.assemble(system)
    given = {"A": float(state.q[system.coordinates.index("A")]) + 0.02}
    found = ld.analyses.branches(system, given, near=state)
    assert found.complete
    assert len(found) == count
    for branch in found:
        assert np.abs(ld.tree.constraint_equations(system, branch.state)[0]).max() < 1e-13
    start = np.array(state.q)
    start[system.coordinates.index("A")] = given["A"]
    for other in _searched(found.plan, 0.0, start, [system.speeds.index("A")]):
        assert min(apart(system, other.state.q, b.state.q) for b in found) < 1e-6


@pytest.mark.parametrize("slide", [False, True])
def test_branches_of_rods_with_two_balls_need_no_spin(slide):
    m = ld.library.rssr()
    if slide:
        m.joints["D"] = ld.Prismatic(axis=(1, 0.2, 0.3), parent="ground", child="rocker", at=m.joints["D"].at)
    system = m.compile()
    found = ld.analyses.branches(system, {"A": 0.3})
    assert (len(found), found.complete) == (2, True)
    for branch in found:
        assert np.abs(ld.tree.constraint_equations(system, branch.state)[0]).max() < 1e-13
    values = sorted(b.state.q[system.coordinates.index("D")] for b in found)
    # by hand: the ball of the crank at A = 0.3, and the rocker's on its circle or line, at the length of the rod
    n = np.array([0, 0.3, 1]) / np.hypot(0.3, 1.0)
    r = np.array([0.15, 0, 0])
    B = np.cos(0.3) * r + np.sin(0.3) * np.cross(n, r) + (1 - np.cos(0.3)) * n * (n @ r)
    C, pivot = np.array([0.3, 0.6, 0.3]), np.array([0.3, 0.6, -0.1])
    length, axis = np.linalg.norm(C - r), np.array([1, 0.2, 0.3] if slide else [1, 0.2, 0])
    axis = axis / np.linalg.norm(axis)

    def gap(x):
        if slide:
            return np.linalg.norm(C + x * axis - B) - length
        u = C - pivot
        turned = np.cos(x) * u + np.sin(x) * np.cross(axis, u) + (1 - np.cos(x)) * axis * (axis @ u)
        return np.linalg.norm(pivot + turned - B) - length

    xs = np.linspace(-3.1, 3.1, 4001)
    signs = np.sign([gap(x) for x in xs])
    roots = [brentq(gap, xs[k], xs[k + 1], xtol=1e-14) for k in np.flatnonzero(signs[1:] != signs[:-1])]
    np.testing.assert_allclose(values, sorted(roots), atol=1e-12)


def test_branches_of_a_platform_are_found_from_its_pose():
    """With three legs, whose six groups have two closures each."""
    m = closed_forms.platform("UPS")
    for k in (2, 4, 6):
        for name in (f"U{k}", f"P{k}", f"S{k}"):
            del m.joints[name]
        for name in (f"lower{k}", f"upper{k}"):
            del m.bodies[name]
    system = m.compile(free=["platform"])
    found = ld.analyses.branches(system, {"free:platform.pz": 0.02, "free:platform.px": 0.01})
    assert (len(found), found.complete) == (64, True)
    for branch in found:
        assert np.abs(ld.tree.constraint_equations(system, branch.state)[0]).max() < 1e-13
        assert branch.state.q[system.coordinates.index("free:platform.pz")] == 0.02


@pytest.mark.jit_off
@pytest.mark.parametrize("axes", ["parallel", "meet", "skew"])
@pytest.mark.parametrize("free", [False, True])
def test_legs_rrs_are_explicit_from_both_angles_of_one_and_one_angle_of_another(axes, free):
    """Two balls are then known, a hinge of the platform, and the third leg says how far it has turned about it."""
    system = ld.library.turned(closed_forms.tripod(axes)).compile(free=["platform"] if free else [])
    state = ld.assemble(system)
    plan = plan_for(system, state, [system.speeds.index(x) for x in ("A1", "B1", "A2")])
    assert plan.explicit
    assert "S1+S2" in plan.groups[1].joints
    close, signs = Closer(plan), plan.signs(state)
    np.testing.assert_allclose(close(0.0, state.q, signs), state.q, atol=1e-12)
    poses = [close(0.0, state.q + x * np.eye(system.nq)[0], signs) for x in np.linspace(-0.05, 0.05, 5)]
    found = [ld.State(0.0, q, np.zeros(system.nv)) for q in poses if q is not None]
    assert len(found) >= 2
    for there in found:
        assert np.abs(ld.tree.constraint_equations(system, there)[0]).max() < 1e-13
        np.testing.assert_array_equal(plan.signs(there), signs)


@pytest.mark.parametrize("axes", ["meet", "skew"])
def test_closures_of_a_platform_on_legs_rrs_are_complete(axes):
    """All that Newton's method finds from many starts is in the list; of a torus up to four closures."""
    system = closed_forms.tripod(axes).compile()
    state = ld.assemble(system)
    labels = ["A1", "B1", "A2"]
    given = {x: float(state.q[system.coordinates.index(x)]) for x in labels}
    found = ld.analyses.branches(system, given, near=state)
    assert found.complete
    for branch in found:
        assert np.abs(ld.tree.constraint_equations(system, branch.state)[0]).max() < 1e-13
    others = _searched(found.plan, 0.0, state.q, [system.speeds.index(x) for x in labels])
    assert len(others) > 3
    for other in others:
        assert min(apart(system, other.state.q, b.state.q) for b in found) < 1e-6


def test_a_leg_rrs_of_a_body_that_is_placed_is_explicit():
    """A body on a crank, held by a leg besides that has a row too many: the leg's knee is on the axis of the crank."""
    system = ld.library.turned(closed_forms.carried_leg()).compile()
    state = ld.assemble(system, v={"A": 3.0})
    plan = plan_for(system, state, [system.speeds.index("A")])
    assert plan.explicit
    assert [g.joints for g in plan.groups] == [("J1", "J2", "S")]
    run, ref = (
        ld.simulate(system, state, (0, 0.5), formulation=f, rtol=1e-10, progress=False, t_eval=[0.25, 0.5])
        for f in (ld.Closure(independent=["A"]), "oracle")
    )
    np.testing.assert_allclose(run.path.q, ref.path.q, atol=1e-8)
    assert run.largest_residual < 1e-13


def test_closures_of_a_platform_given_its_pose_are_four_for_each_leg():
    """Leg to both sides of the slide's zero, and the universal joint turned over: 2^12 in all, counted on one leg."""
    system = ld.library.stewart_6ups().compile(free=["platform"])
    state = ld.assemble(system)
    platform = [k for k, label in enumerate(system.speeds) if "platform" in label]
    plan = plan_for(system, state, platform)
    assert (plan.explicit, len(plan.groups)) == (True, 12)
    close, signs = Closer(plan), plan.signs(state)
    of_leg = [n for n, g in enumerate(plan.groups) if "S1" in g.joints]
    poses = []
    for change in product((1, -1), repeat=len(of_leg)):
        other = signs.copy()
        other[of_leg] *= change
        q = close(0.0, state.q, other)
        assert np.abs(ld.tree.constraint_equations(system, ld.State(0.0, q, state.v))[0]).max() < 1e-13
        poses.append(q[[system.coordinates.index(x) for x in ("U1.1", "U1.2", "P1")]])
    assert len({tuple(np.round(p, 6)) for p in poses}) == 4


def test_the_limit_of_a_spatial_loop_is_located_and_other_coordinates_take_over():
    """The universal joint of the rod reaches its limit: forced, a run ends there; free, it goes on with other ones."""
    system = closed_forms.hooked_rod(reverse=True).compile()
    state = ld.assemble(system, v={"A": 5.0})
    forced = ld.simulate(system, state, (0, 1), formulation=ld.Closure(independent=["A"]), progress=False)
    assert forced.status == "failed"
    said = float(forced.message.split("A = ")[1].split(" ")[0].rstrip("."))
    assert min(abs(said - p.value) for p in ld.analyses.singular_poses(system, "A", near=state)) < 1e-6
    settings = {"rtol": 1e-11, "progress": False, "t_eval": np.linspace(0, 1, 6)}
    run = ld.simulate(system, state, (0, 1), formulation="closure", **settings)
    assert run.status == "finished", run.message
    assert any("independent: A -> " in e.name for e in run.events)
    ref = ld.simulate(system, state, (0, 1), formulation="partition", **settings)
    np.testing.assert_allclose(run.path.q, ref.path.q, atol=1e-9)  # A is left before errors of a step grow by it
    assert run.largest_residual < 1e-13


def test_groups_that_follow_an_iterated_block_are_explicit_and_the_block_is_no_larger_than_it_must_be():
    """Bennett's linkage moves a rod with two balls and a rocker, and beside it a four-bar stands on its own."""
    m = ld.library.bennett()
    m.add_body("rod", ld.Inertia.rod(mass=1.0, start=(-0.4, -0.3, 0.1), end=(-0.9, -0.9, 0.3), radius=0.02))
    m.add_body("lever", ld.Inertia.box(mass=1.0, size=(0.1, 0.2, 0.1), at=(-1.0, -0.8, 0)))
    m.add_joint("B1", ld.Spherical(), "link3", "rod", at=(-0.4, -0.3, 0.1))
    m.add_joint("B2", ld.Spherical(), "rod", "lever", at=(-0.9, -0.9, 0.3))
    m.add_joint("R", ld.Revolute(axis=(1, 0.2, 0)), "ground", "lever", at=(-1.0, -0.7, -0.3))
    other = ld.library.four_bar()
    for name, body in other.bodies.items():
        m.bodies[name] = body.model_copy()
    m.parameters |= {k: x for k, x in other.parameters.items() if k not in m.parameters}
    for name, joint in other.joints.items():
        m.joints[name] = joint.model_copy()
    system = m.compile()
    state = ld.assemble(system, v={"P1": 2.0, "A": 8.0})
    labels = [x for x in system.speeds if x in ("P1", "A")]
    spin = next(x for x in system.speeds if x.startswith(("B1.w", "B2.w")))
    method = ld.Closure(independent=[*labels, spin])
    plan = method.plan(system)
    assert [(b.coordinates, b.closes) for b in plan.blocks] == [(("P2", "P4"), ("P3",))]
    assert "iterated: P2, P4, which close P3" in str(plan)
    order = [set(x.joints) if x in plan.groups else "block" for x in plan.sequence]
    assert order == [set("BCD"), "block", {"R", "B1", "B2"}]
    settings = {"rtol": 1e-10, "progress": False, "t_eval": np.linspace(0, 0.4, 5)}
    run = ld.simulate(system, state, (0, 0.4), formulation=method, drift="none", **settings)
    assert run.status == "finished", run.message
    ref = ld.simulate(system, state, (0, 0.4), formulation="graph", **settings)
    np.testing.assert_allclose(run.path.q, ref.path.q, atol=1e-8)
    assert run.largest_residual < 1e-13


def test_a_prepared_solver_takes_another_set_where_that_of_the_call_before_is_singular():
    """Called all around the turn of a double rocker, whose cranks both have dead points."""
    system = four_bar([1.0, 0.7, 0.6, 0.5], [0.7, 0.6, 0.5])
    target = TARGETS["d2_loop_both_singularities"]
    solve = ld.prepare(system, "closure", system.state(target["q0"], target["qd0"]))
    judge = ld.prepare(system, "oracle", system.state(target["q0"], target["qd0"]))
    for q, v in zip(target["q"], target["qd"], strict=True):
        state = ld.assemble(system, q=np.array(q), v=np.array(v))
        a = judge(0.0, state.q, state.v).a
        np.testing.assert_allclose(solve(0.0, state.q, state.v).a, a, atol=1e-7 * max(1.0, np.abs(a).max()))


def test_functions_in_python_are_refused_in_words():
    m = ld.library.four_bar()
    m.add_force(None, ld.forces.UserForce(function=lambda t, q, v, out: None, name="f"))
    assert "Python" in (ld.Closure().supports(m.compile()) or "")


# ----------------------------------------------------------------------------------------------------- runs


@pytest.mark.parametrize("name", ["four_bar", "slider_crank", "five_bar", "n_four_bar", "andrews"])
def test_runs_equal_those_of_the_oracle_and_stay_closed_without_projection(name):
    system = ld.library.turned(ld.library.ALL[name]()).compile()
    state = ld.assemble(system)
    end = 0.02 if name == "andrews" else 0.5
    settings = {"rtol": 1e-11, "progress": False, "t_eval": np.linspace(0, end, 6)}
    run = ld.simulate(system, state, (0, end), formulation="closure", drift="none", **settings)
    ref = ld.simulate(system, state, (0, end), formulation="oracle", **settings)
    np.testing.assert_allclose(run.path.q, ref.path.q, atol=1e-7 if name == "andrews" else 1e-8)
    assert run.largest_residual < 1e-13
    assert "all in closed form" in run.settings["plan"]


@pytest.mark.parametrize("name", ["watt", "stephenson"])
def test_six_bars_are_solved_loop_by_loop(name):
    system = ld.library.ALL[name]().compile()
    plan = ld.Closure(independent=["A"]).plan(system)
    assert [set(g.joints) for g in plan.groups] == [set("BCD"), set("EFG")]
    assert plan.explicit
    assert ld.analyses.singular_poses(system, "A") == ()  # the crank turns fully
    found = ld.analyses.branches(system, {"A": 0.3})
    assert (len(found), found.complete) == (4, True)
    run = ld.simulate(system, ld.assemble(system), (0, 3), formulation="closure", drift="none", progress=False)
    assert run.status == "finished", run.message
    assert abs(run.path.q[-1, 0]) > 2 * np.pi
    assert run.largest_residual < 1e-13


def test_a_stephenson_six_bar_driven_at_its_second_rocker_is_a_triad_and_iterated():
    system = ld.library.stephenson().compile()
    plan = ld.Closure(independent=["F"]).plan(system)
    assert [set(b.coordinates) for b in plan.blocks] == [set("ABDG")]
    assert plan.groups == ()


# s: change points follow; springs are stiff; fast
SHORT = {
    "n_four_bar": 0.1,
    "flyball": 0.05,
    "andrews": 0.01,
    "stewart_6ups": 0.05,
    "peaucellier": 0.12,
    "scissor_lift": 0.3,
}


def compare_with_oracle(name: str, end: float) -> ld.results.Run:
    """A run without projection and one that the oracle drives, both at a tolerance of 1e-10."""
    kind, _, number = name.partition(" ")
    m = random_sample(5, int(number), 4) if number else ld.library.ALL[kind]()
    system, state = moving(m)
    options = {"rtol": 1e-10, "progress": False, "t_eval": [end / 2, end]}
    run = ld.simulate(system, state, (0, end), formulation="closure", drift="none", **options).raise_if_failed()
    ref = ld.simulate(system, state, (0, end), formulation="oracle", **options).raise_if_failed()
    np.testing.assert_allclose(run.path.q, ref.path.q, atol=3e-8)
    assert run.largest_residual < 1e-13
    return run


@pytest.mark.parametrize("name", [*gallery_slow(ld.library.ALL), *(f"random {k}" for k in (0, 1, 2, 3, 4, 10, 13, 14))])
def test_runs_equal_those_of_the_oracle_on_library_and_random_mechanisms(name):
    compare_with_oracle(name, SHORT.get(name, 0.15))


@pytest.mark.slow
@pytest.mark.parametrize("name", [*(n for n in ld.library.ALL if n not in SHORT), *(f"random {k}" for k in range(30))])
def test_longer_runs_equal_those_of_the_oracle_too(name):
    compare_with_oracle(name, 0.8)


def largest_residual(seconds: float) -> tuple[float, float]:
    """Of a four-bar that runs, after every hundredth step, and how far its crank has turned.

    At the coordinates that are integrated, angles within a turn: with all turns added, as outputs have them, the
    rounding of the angle alone is larger.
    """
    system = ld.library.four_bar().compile()
    state = ld.assemble(system)
    rank = decide(system, state)
    stepper = Stepper(
        system, ld.Closure().prepare(system, rank), ld.integrators.DOP853(), "none", rank.count, 1e-8, 0.0
    )
    stepper.allow(0.0, seconds)
    stepper.start(state, seconds)
    nothing = np.zeros((0, 3))
    out = Output(np.zeros(0), nothing, nothing, nothing, np.zeros((0, stepper.sources)), np.zeros(0, np.int64),
                 np.zeros(1, np.int64))  # fmt: skip
    largest = 0.0
    while stepper.t < seconds:
        assert stepper.advance(out, 100).succeeded
        phi, _ = ld.tree.constraint_equations(system, ld.State(0.0, stepper.ends_of_step()[1].q, state.v))
        largest = max(largest, float(np.abs(phi).max()) / system.size)
    return largest, float(stepper.state().q[0])


def test_a_running_four_bar_stays_closed_to_rounding():
    largest, turned = largest_residual(100.0)
    assert abs(turned) > 50 * 2 * np.pi
    assert largest < 1e-13


@pytest.mark.slow
def test_a_four_bar_that_runs_for_10000_s_stays_closed_to_rounding():
    largest, turned = largest_residual(10_000.0)
    print(largest, turned)  # shown with -s
    assert abs(turned) > 5000 * 2 * np.pi
    assert largest < 1e-13


def test_a_run_ends_at_the_limit_of_its_coordinate_which_is_located():
    """The rocker turns back at a limit that is predicted: the run is not carried over it, nor is it held there."""
    system = ld.library.four_bar().compile()
    state = ld.assemble(system)
    run = ld.simulate(system, state, (0, 5), formulation=ld.Closure(independent=["D"]), progress=False)
    assert run.status == "failed"
    limits = [p.value for p in ld.analyses.singular_poses(system, "D")]
    said = float(run.message.split("D = ")[1].split(" ")[0].rstrip("."))
    assert min(abs(said - x) for x in limits) < 1e-6


def test_a_run_keeps_its_branch():
    system = ld.library.four_bar().compile()
    first, second = ld.analyses.branches(system, {"A": 0.3})
    for branch in (first, second):
        state = ld.assemble(system, q=branch.state.q, v={"A": 8.0})
        run = ld.simulate(system, state, (0, 2), formulation=ld.Closure(independent=["A"]), progress=False)
        assert run.status == "finished"
        plan = plan_for(system, state, [0])
        signs = [plan.signs(ld.State(0.0, q, np.zeros(3)))[0] for q in run.path.q]
        assert set(signs) == set(branch.signs.values())


@pytest.mark.parametrize(
    "settings",
    [
        *({"rtol": 10.0**-k} for k in (1, 2, 4, 8, 11)),
        *({"integrator": ld.integrators.RK4(step=h)} for h in (0.01, 0.03)),
    ],
)
def test_a_run_does_not_slip_to_another_branch_at_a_change_point(settings):
    """A parallelogram in line at A0 = -pi/2: its two motions cross there, and no coordinate tells which one goes on."""
    system = ld.library.n_four_bar(1).compile()
    run = ld.simulate(system, ld.assemble(system), (0, 4), formulation="closure", progress=False, **settings)
    assert run.status == "failed"
    assert "singular" in run.message or "cannot be closed" in run.message
    assert np.abs(run.path.q[:, 0] + run.path.q[:, 1]).max() < 1e-9  # a parallelogram as long as it went
    assert run.path.q[:, 0].min() > -np.pi / 2
    assert run.path.q[-1, 0] < -1.4  # and it went up to there, but for a step


# ------------------------------------------------------------------------------------------------- the kernels


@pytest.mark.parametrize("name", ["3-RRS", "wrist"])
def test_evaluations_allocate_nothing(name):
    system, state = moving(SPATIAL[name][0]())
    solver = ld.prepare(system, "closure", state)
    assert solver.plan_.explicit
    driver = solver.kernels
    solver.run.put(state.t, state.q, state.v)
    check_nothing_is_allocated((kernels.accelerate, kernels.accepted), (driver.ints, driver.floats, driver.work))


@pytest.mark.jit_off
@pytest.mark.parametrize("name", ["3-RRS", "wrist"])
def test_kernels_run_in_complex_numbers(name):
    """The root of degree four too: the closed pose is differentiated through it."""
    system, state = moving(SPATIAL[name][0](), speed=0.5)
    label = system.speeds[0]
    found = explicit_sets(system, decide(system, state), np.ones(system.nv, bool))
    chosen = next(c for c in found if 0 in c)
    solver = ld.prepare(system, ld.Closure(independent=[system.speeds[k] for k in chosen]), state)
    assert solver.plan_.explicit
    assert label in solver.active
    driver = solver.kernels

    def evaluate(work):
        assert kernels.accelerate(driver.ints, driver.floats, work) == FINE

    check_complex_numbers(system, state, driver.work, evaluate)


# ------------------------------------------------------------------------------------------------- branches


def test_sets_for_two_freedoms_are_prepared_and_exchanged_on_the_way_without_candidates():
    """The five-bar swings through poses where its two cranks, or a crank and a coupler, do not serve."""
    system = ld.library.five_bar().compile()
    state = ld.assemble(system, v={"A": 6.0, "E": -3.0})
    settings = {"rtol": 1e-10, "progress": False, "t_eval": np.linspace(0, 2, 9)}
    run = ld.simulate(system, state, (0, 2), formulation="closure", drift="none", **settings)
    assert run.status == "finished", run.message
    changes = [e.name for e in run.events]
    assert changes
    for name in changes:  # the prepared sets alone: every one of them makes the others explicit
        labels = name.split("-> ")[1].split(", ")
        assert plan_for(system, state, [system.speeds.index(x) for x in labels]).explicit
    ref = ld.simulate(system, state, (0, 2), formulation="graph", **settings)
    np.testing.assert_allclose(run.path.q, ref.path.q, atol=3e-8)
    assert run.largest_residual < 1e-13


def test_branches_of_the_four_bar_are_two_and_complete():
    found = ld.analyses.branches(ld.library.four_bar().compile(), {"A": 0.3})
    assert (len(found), found.complete) == (2, True)
    assert {b.name for b in found} == {"B-C-D +", "B-C-D -"}
    assert "all there are" in str(found)


def test_branches_out_of_reach_are_none():
    found = ld.analyses.branches(ld.library.four_bar().compile(), {"D": 1.5})
    assert (len(found), found.complete) == (0, True)


def test_branches_that_are_searched_for_are_said_to_be_perhaps_incomplete():
    system = ld.library.bennett().compile()
    found = ld.analyses.branches(system, {"P1": 0.2})
    assert not found.complete
    assert len(found) >= 1
    for branch in found:
        assert np.abs(ld.tree.constraint_equations(system, branch.state)[0]).max() < 1e-10


def test_branches_need_as_many_coordinates_as_there_are_freedoms():
    system = ld.library.five_bar().compile()
    with pytest.raises(ld.LoopdynError, match="2 degrees of freedom"):
        ld.analyses.branches(system, {"A": 0.0})
    with pytest.raises(ld.LoopdynError, match="no independent coordinate"):
        ld.analyses.branches(system, {"A": 0.0, "nothing": 0.0})


def test_crank_of_a_crank_rocker_has_no_singular_pose():
    assert ld.analyses.singular_poses(ld.library.four_bar().compile(), "A") == ()


# ------------------------------------------------------------------------------------------------ equations


@pytest.mark.parametrize("name", ["four_bar", "slider_crank"])
@pytest.mark.parametrize("label", ["A", "D"])
def test_equations_in_symbols_equal_the_numerical_ones(name, label):
    system = ld.library.ALL[name]().compile()
    state = ld.assemble(system, q={"A": 0.4}, v={"A": 3.0})
    found = ld.analyses.equations(system, [label], state)
    k = system.speeds.index(label)
    at = found.evaluate({label: state.q[k]}, {label: state.v[k]})
    solver = ld.prepare(system, ld.Closure(independent=[label]), state)
    a = solver(state.t, state.q, state.v).a
    P = solver.calls.views
    np.testing.assert_allclose([at["q"][x] for x in system.coordinates], state.q, atol=1e-12)
    np.testing.assert_allclose([at["v"][x] for x in system.speeds], state.v, atol=1e-12)
    np.testing.assert_allclose(at["A"], P.A, atol=1e-11)
    np.testing.assert_allclose(at["xi"], P.xi[:, 0], atol=1e-11)
    np.testing.assert_allclose([at["a"][x] for x in system.speeds], a, atol=1e-10)
    scope: dict = {f"q_{label}": float(state.q[k])}
    exec(found.python(), scope)
    np.testing.assert_allclose([scope[f"q_{x}"] for x in system.coordinates], state.q, atol=1e-12)
    assert "\\xi" in found.latex()


@pytest.mark.parametrize("slide", [False, True])
def test_equations_of_rods_with_two_balls_equal_the_numerical_ones(slide):
    """RSSR and RSSP; of the rod's ball the quaternion before is given, and its spin is a second freedom."""
    m = ld.library.rssr()
    if slide:
        m.joints["D"] = ld.Prismatic(axis=(1, 0.2, 0.3), parent="ground", child="rocker", at=m.joints["D"].at)
    system = m.compile()
    near = ld.assemble(system, v={"A": 5.0, "B.wx": 0.3})
    state = ld.simulate(system, near, (0, 0.3), progress=False, rtol=1e-10).at(0.3)
    labels = ["A", "B.wx"]
    found = ld.analyses.equations(system, labels, near)
    chosen = [system.speeds.index(x) for x in labels]
    plan = plan_for(system, near, chosen)
    given = dict(zip(system.coordinates, near.q, strict=True)) | {"A": float(state.q[0])}
    del given["D"]
    q = np.array(near.q)
    q[0] = state.q[0]
    q = Closer(plan)(0.0, q, plan.signs(near))  # the ball turned from where it was at `near`
    v = np.zeros(system.nv)
    v[chosen] = 3.0, -0.7
    solver = ld.prepare(system, ld.Closure(independent=labels), near)
    P = solver.calls.views
    solver(0.0, q, v)
    v[P.D] = P.A @ v[chosen]
    a = solver(0.0, q, v).a.copy()
    at = found.evaluate(given, {"A": 3.0, "B.wx": -0.7})
    np.testing.assert_allclose([at["q"][x] for x in system.coordinates], q, atol=1e-13)
    np.testing.assert_allclose([at["v"][x] for x in system.speeds], v, atol=1e-12)
    np.testing.assert_allclose(at["A"], P.A, atol=1e-12)
    np.testing.assert_allclose(at["xi"], P.xi[:, 0], atol=1e-11)
    np.testing.assert_allclose([at["a"][x] for x in system.speeds], a, atol=1e-10)
    judge = ld.accelerations(system, ld.State(0.0, q, v), "oracle")
    np.testing.assert_allclose([at["a"][x] for x in system.speeds], judge, atol=1e-9)
    scope: dict = {f"q0_{x}".replace(".", "_"): value for x, value in given.items() if x != "A"} | {"q_A": given["A"]}
    exec(found.python(), scope)
    np.testing.assert_allclose([scope[f"q_{x}".replace(".", "_")] for x in system.coordinates], q, atol=1e-13)


def test_equations_refuse_in_words_what_has_none():
    with pytest.raises(ld.LoopdynError, match="neither revolute, nor prismatic, nor spherical"):
        ld.analyses.equations(closed_forms.hooked_rod().compile(), ["A"])
    with pytest.raises(ld.LoopdynError, match="cut at 'D', which is not spherical"):
        ld.analyses.equations(ld.library.rssr().compile(cuts=["D"]), ["A", "B.wx"])
    with pytest.raises(ld.LoopdynError, match="neither revolute nor prismatic"):
        ld.analyses.equations(closed_forms.shafts().compile(), ["A"])
