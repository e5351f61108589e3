"""The parts of the linear-time solver: order and pattern, factor, plans with severed joints, projection, rows chosen.

Judged by dense matrices in NumPy, by the oracle, and by `projection.project`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from itertools import combinations, pairwise
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
from tests.independent import TYPES, closed_state
from tests.loops import add_loads, crossed, loop_with, nested, poison
from tests.marks import gallery_slow

import loopdyn as ld
import loopdyn.loops.elimination.plan
from loopdyn.engine import records as rec
from loopdyn.engine.jit import kernel
from loopdyn.engine.layout import opened
from loopdyn.loops.elimination import layout
from loopdyn.loops.elimination.ldl import factor, solve
from loopdyn.loops.elimination.ordering import Pattern, factor_pattern, minimum_degree, postorder
from loopdyn.loops.elimination.passes import accelerate
from loopdyn.loops.elimination.plan import EliminationPlan, plan_elimination
from loopdyn.loops.elimination.solver import Elimination
from loopdyn.loops.projection import project
from loopdyn.loops.rank import decide

# ------------------------------------------------------------------------------- order, pattern and factor


def random_blocks(rng: np.random.Generator, nodes: int = 9) -> tuple[list[int], list[list[int]]]:
    """Nodes of up to six rows, one of them without any, and groups of coupled nodes."""
    sizes = [0, *rng.integers(1, 7, nodes - 1).tolist()]
    cliques = [rng.choice(nodes, size=int(rng.integers(1, 5)), replace=False).tolist() for _ in range(nodes)]
    return sizes, [*cliques, *([k] for k in range(nodes))]


def rows_of(sizes: list[int], nodes: list[int]) -> np.ndarray:
    start = np.concatenate([[0], np.cumsum(sizes)])
    return np.concatenate([np.arange(start[a], start[a + 1]) for a in nodes])


def random_matrix(rng: np.random.Generator, sizes: list[int], cliques: list[list[int]], width: int | None = None):
    """Sum over the groups of G G^T: positive definite, or of low rank where each G has few columns."""
    n = sum(sizes)
    A = np.zeros((n, n))
    for clique in cliques:
        rows = rows_of(sizes, clique)
        G = rng.normal(size=(len(rows), len(rows) if width is None else width))
        A[np.ix_(rows, rows)] += G @ G.T
    return A


def packed(pattern: Pattern, A: np.ndarray) -> np.ndarray:
    """Blocks of the pattern, as the kernels hold a matrix; A in the order of elimination."""
    out = np.full(pattern.size, np.nan)
    for b in range(len(pattern.node)):
        columns = slice(pattern.first[b], pattern.first[b + 1])
        for a in (b, *pattern.below[b]):
            rows = slice(pattern.first[a], pattern.first[a + 1])
            block, start = A[rows, columns], pattern.where(a, b)
            out[start : start + block.size] = block.ravel()
    assert np.isfinite(out).all()  # every place is met
    return out


def factored(pattern: Pattern, A: np.ndarray, floor: np.ndarray) -> SimpleNamespace:
    """Kernels `factor` and `solve` on arrays filled with NaN."""
    n = pattern.rows
    f = SimpleNamespace(A=packed(pattern, A), pivot=np.full(n, np.nan), inverse=np.full(n, np.nan))
    tables = Tables(pattern.node, pattern.later, pattern.block)
    f.dropped = factor_all(tables, f.A, floor, f.pivot, f.inverse)
    f.dense = np.zeros((n, n))
    for b in range(len(pattern.node)):
        first, end = pattern.first[b], pattern.first[b + 1]
        for a in (b, *pattern.below[b]):
            rows, start = slice(pattern.first[a], pattern.first[a + 1]), pattern.where(a, b)
            shape = (pattern.first[a + 1] - pattern.first[a], end - first)
            f.dense[rows, first:end] = f.A[start : start + np.prod(shape)].reshape(shape)
    f.dense = np.tril(f.dense, -1) * f.inverse + np.eye(n)
    f.solve = lambda b: solve_all(tables, f.A, f.inverse, b)
    return f


class Tables(NamedTuple):
    """What the kernels read of a pattern."""

    node: Any
    later: Any
    block: Any


@kernel
def factor_all(P, A, floor, pivot, inverse):
    return factor(P, A, floor, pivot, inverse)


@kernel
def solve_all(P, A, inverse, b):
    solve(P, A, inverse, b)


@pytest.mark.parametrize("seed", range(6))
def test_order_takes_the_node_with_the_fewest_coupled_rows_and_foresees_the_fill(seed):
    """Against elimination on a dense boolean matrix."""
    sizes, cliques = random_blocks(np.random.default_rng(seed))
    order, later = minimum_degree(sizes, cliques)
    assert sorted(order) == list(range(len(sizes)))
    near = np.zeros((len(sizes), len(sizes)), bool)
    for clique in cliques:
        near[np.ix_(clique, clique)] = True
    np.fill_diagonal(near, False)
    left = np.ones(len(sizes), bool)
    for a, found in zip(order, later, strict=True):
        degrees = near @ np.array(sizes)
        assert degrees[a] == degrees[left].min()
        neighbours = np.flatnonzero(near[a])
        assert found == neighbours.tolist()
        near[np.ix_(neighbours, neighbours)] = True
        np.fill_diagonal(near, False)
        near[a, :] = near[:, a] = False
        left[a] = False


@pytest.mark.parametrize("seed", range(6))
def test_postorder_has_the_same_factor_and_puts_branches_one_after_another(seed):
    """The order is that of another elimination; its later nodes against elimination on a dense boolean matrix."""
    rng = np.random.default_rng(seed)
    nodes = 40
    sizes = rng.integers(1, 7, nodes).tolist()
    cliques = [[k, int(rng.integers(k))] for k in range(1, nodes)]  # a tree, whose branches are eliminated by turns
    cliques += [rng.choice(nodes, size=2, replace=False).tolist() for _ in range(5)]
    first = minimum_degree(sizes, cliques)
    order, later = postorder(*first)
    assert order != first[0]
    near = np.zeros((nodes, nodes), bool)
    for clique in cliques:
        near[np.ix_(clique, clique)] = True
    for a, found in zip(order, later, strict=True):
        near[a, a] = False
        neighbours = np.flatnonzero(near[a])
        assert found == neighbours.tolist()
        near[np.ix_(neighbours, neighbours)] = True
        near[a, :] = near[:, a] = False
    patterns = [factor_pattern(sizes, *made) for made in (first, (order, later))]
    assert patterns[0].entries == patterns[1].entries
    assert patterns[0].flops == patterns[1].flops
    # the nodes before a node that lead to it stand right before it, without others between them
    place = {a: k for k, a in enumerate(order)}
    above = {a: min((place[b] for b in found), default=nodes) for a, found in zip(order, later, strict=True)}
    for k in range(nodes):
        leading = {k}
        for m in range(k - 1, -1, -1):
            if above[order[m]] in leading:
                leading.add(m)
        assert leading == set(range(k - len(leading) + 1, k + 1))


@pytest.mark.parametrize("seed", range(6))
def test_factor_of_a_sparse_matrix_is_that_of_dense_cholesky(seed):
    rng = np.random.default_rng(seed)
    sizes, cliques = random_blocks(rng)
    order, later = minimum_degree(sizes, cliques)
    pattern = factor_pattern(sizes, order, later)
    rows = rows_of(sizes, order)
    A = random_matrix(rng, sizes, cliques)[np.ix_(rows, rows)]
    f = factored(pattern, A, np.zeros(len(A)))
    C = np.linalg.cholesky(A)
    np.testing.assert_allclose(f.dense * np.sqrt(f.pivot), C, atol=1e-12 * np.abs(C).max())
    assert f.dropped == 0
    # the pattern is tight: with generic numbers no foreseen entry is zero, none is missing
    assert np.count_nonzero(np.abs(np.tril(C, -1)) > 1e-13) == pattern.entries
    assert pattern.flops == sum(c * (c + 2) for c in np.count_nonzero(np.tril(C, -1), axis=0))
    x = rng.normal(size=len(A))
    b = A @ x
    f.solve(b)
    np.testing.assert_allclose(b, x, rtol=0, atol=1e-14 * np.linalg.cond(A) * np.abs(x).max())


@pytest.mark.parametrize("seed", range(6))
def test_dependent_rows_are_dropped_and_the_rest_solves_the_equations(seed):
    """Two columns for each group of up to 20 rows: far fewer than rows."""
    rng = np.random.default_rng(seed)
    sizes, cliques = random_blocks(rng)
    order, later = minimum_degree(sizes, cliques)
    pattern = factor_pattern(sizes, order, later)
    rows = rows_of(sizes, order)
    A = random_matrix(rng, sizes, cliques, width=1)[np.ix_(rows, rows)]
    rank = np.linalg.matrix_rank(A, tol=1e-10 * np.abs(A).max())
    assert rank < len(A)
    f = factored(pattern, A, 1e-10 * np.diag(A).max() * np.ones(len(A)))
    assert f.dropped == len(A) - rank
    kept = f.inverse != 0.0
    b = A @ rng.normal(size=len(A))
    x = b.copy()
    f.solve(x)
    assert not x[~kept].any()
    s = np.linalg.svd(A[np.ix_(kept, kept)], compute_uv=False)
    np.testing.assert_allclose(A @ x, b, rtol=0, atol=1e-14 * s[0] / s[-1] * np.abs(b).max())


def test_a_matrix_without_rows_is_fine():
    pattern = factor_pattern([], *minimum_degree([], []))
    assert (pattern.rows, pattern.entries, pattern.flops) == (0, 0, 0)


# ------------------------------------------------------------------------------------------ severed joints


def bodies_of(system: ld.System, names: Collection[str]) -> set[int]:
    """Rows of the bodies that tree joints lead to."""
    return {system.joints[name].body for name in names}


def severable(system: ld.System) -> list[str]:
    """Tree joints that do not stand on a base."""
    joints = (j for j in system.joints.values() if j.in_tree)
    return [j.name for j in joints if system.model.tree[j.body, 0] >= system.n_bases]


def elimination(system: ld.System, state: ld.State, severed: Collection[str] | None = None) -> Elimination:
    """Prepared at a closed state, with the joints severed that are named."""
    rank = decide(system, state)
    e = Elimination(system, state, rank.count)
    if severed is not None:
        e._use(plan_elimination(system, bodies_of(system, severed)))
        e.choose(state, rank.count)
        assert set(e.plan.severed) == set(severed)
    return e


def solved(e: Elimination, state: ld.State, tau: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    e.set_state(state.t, state.q, state.v)
    if tau is not None:
        e.work.tau[:] = tau
    e.run(accelerate)
    return e.work.a.copy(), e.views.multipliers[: e.system.nc].copy()


def assert_solves(e: Elimination, state: ld.State, tau: np.ndarray | float = 0.0, tolerance: float = 1e-10) -> None:
    """Accelerations are the oracle's; multipliers belong to them."""
    from loopdyn.formulations.oracle import solve_dense

    s, now = e.system, ld.terms(e.system, state)
    h = now.h + tau
    expected = solve_dense(now.M, h, now.J, now.gamma, s.speed_units, s.row_units, decide(s, state).count).a
    a, lam = solved(e, state, np.broadcast_to(tau, s.nv))
    scale = np.abs(expected / s.speed_units).max()
    assert np.abs((a - expected) / s.speed_units).max() <= tolerance * scale
    force, units = now.J.T @ lam, s.speed_units
    sizes = np.abs(now.M) @ np.abs(a) + np.abs(h) + np.abs(now.J.T) @ np.abs(lam)
    assert np.abs((now.M @ a - h - force) * units).max() <= tolerance * np.abs(sizes * units).max()


def moving(m: ld.Mechanism) -> ld.Mechanism:
    m.move_base(x="0.3*sin(2*t)", z="0.2*t**2", rx="0.4*sin(t)", rz="t + 0.2*cos(3*t)")
    return m


TOWER = ld.library.turned(ld.library.tower(3))
LADDER = moving(ld.library.turned(ld.library.ladder(2)))
SEVERAL = {
    "tower": TOWER,
    "ladder on a moving base": LADDER,
    "nested four-bars": ld.library.turned(nested(2)),
    "crossed": ld.library.turned(crossed()),
    "redundant": ld.library.random_mechanism(11, bodies=7, loops=2, redundant=1, forces=True),
    "floating": ld.library.random_mechanism(12, bodies=7, loops=2, floating=True, forces=True),
}


def closed(m: ld.Mechanism, seed: int = 5, t: float = 0.3, spread: float = 0.1) -> tuple[ld.System, ld.State]:
    system = m.compile()
    return system, closed_state(system, np.random.default_rng(seed), spread, t)


@pytest.mark.parametrize("name", SEVERAL)
def test_severed_joints_leave_the_results_as_they_are(name):
    system, state = closed(SEVERAL[name])
    joints = severable(system)
    rng = np.random.default_rng(1)
    some = [rng.choice(joints, size=k, replace=False).tolist() for k in range(2, len(joints))]
    for severed in ([], *([j] for j in joints), *some, joints):
        assert_solves(elimination(system, state, severed), state)


@pytest.mark.parametrize("pair", list(combinations(["L2", "R2", "H1", "L3"], 2)))
def test_any_two_joints_of_a_tower_may_be_severed(pair):
    system, state = closed(TOWER)
    pair = [j for j in pair if system.joints[j].in_tree]
    assert_solves(elimination(system, state, pair), state)


KINDS = [kind for kind in TYPES if kind != "free"]


@pytest.mark.parametrize("turned_about", ["kept", "reversed"])
@pytest.mark.parametrize("kind", KINDS)
def test_joint_of_every_kind_may_be_severed_with_loads_on_it(kind, turned_about):
    """Motor, spring, friction and loads from outside on the coordinates of the severed joint."""
    m = loop_with(kind)
    if turned_about == "reversed":  # its child is nearer the ground
        joint = m.joints["K"]
        m.joints["K"] = joint.model_copy(update={"parent": joint.child, "child": joint.parent})
    system, state = closed(moving(add_loads(m, "K")))
    assert not any(j.spec.type == kind and not j.in_tree for j in system.joints.values())
    tau = np.random.default_rng(0).normal(size=system.nv)
    for severed in (["K"], severable(system)):
        e = elimination(system, state, severed)
        assert_solves(e, state)
        assert_solves(e, state, tau)


def test_severed_joint_that_a_relation_binds_is_refused():
    m = loop_with("revolute")
    m.add_constraint("gear", ld.constraints.Coupler(terms={"K": 1.0, "U1.1": 2.0}))
    system = m.compile()
    with pytest.raises(ld.LoopdynError, match=r"joint 'K' cannot be severed: .* Leave it"):
        plan_elimination(system, bodies_of(system, ["K"]))


def test_body_without_inertia_is_named():
    m = ld.library.tower(2)
    m.bodies["left2"] = ld.Body(mass=0.0, com=(0, 0, 0))
    system = m.compile()
    assert "L2" in severable(system)
    e = Elimination.__new__(Elimination)
    e.system, e._add = system, None
    e._use(plan_elimination(system, bodies_of(system, ["L2"])))
    state = system.state()
    e.set_state(0.0, state.q, state.v)
    with pytest.raises(ld.errors.SingularityError, match="body 'left2' has no inertia"):
        e.run(accelerate)


# ------------------------------------------------------------------------- relations, couplers and drivers


def related(cuts: list[str] | None = None, what: str = "coupler") -> ld.Mechanism:
    """Two sliding, turning arms joined by a rod; a relation between coordinates."""
    m = loop_with("cylindrical")
    add: dict[str, Callable[[], object]] = {
        "coupler": lambda: m.add_constraint(
            "k", ld.constraints.Coupler(terms={"K.angle": 0.3, "U1.1": 1.0, "U3.2": -0.4})
        ),
        "relation": lambda: m.add_constraint(
            "k",
            ld.constraints.Relation(formula="s - 0.2*sin(a) - 0.1*sin(t)", coordinates={"s": "K.slide", "a": "U1.2"}),
        ),
        "velocities": lambda: m.add_constraint(
            "k",
            ld.constraints.VelocityRelation(
                formula="w*cos(a) - 2*u - 0.1*t", speeds={"w": "K.angle", "u": "U1.1"}, coordinates={"a": "U3.1"}
            ),
        ),
        "driver": lambda: m.add_driver("k", "K.slide", "0.1*sin(3*t)"),
    }
    add[what]()
    return moving(m)


RELATIONS = ["coupler", "relation", "velocities", "driver"]


@pytest.mark.filterwarnings("ignore:.*are counted in runs only:loopdyn.errors.LoopdynWarning")  # its base turns
@pytest.mark.parametrize("what", RELATIONS)
@pytest.mark.parametrize("cuts", [["K"], ["U1"], ["G"], ["U0"], None], ids=str)
def test_relations_of_tree_and_cut_joints(what, cuts):
    """A chain with two ends on the ground: any of its joints may be cut; others are severed besides."""
    m = related(what=what)
    m.add_body("b4", ld.Inertia.box(mass=0.7, size=(0.2, 0.3, 0.1), at=(2.6, 0.3, 0.1)))
    m.add_joint("E", ld.Spherical(), "b3", "b4", at=(2.5, 0.2, 0.0))
    m.add_joint("G", ld.Universal(axis1=(1, 0.2, 0), axis2=(0, 0.3, 1)), m.ground, "b4", at=(2.9, 0.5, 0.2))
    system = m.compile(cuts=cuts)
    assert cuts is None or not system.joints[cuts[0]].in_tree
    state = closed_state(system, np.random.default_rng(2), 0.1, 0.3)
    assert_solves(elimination(system, state), state)
    bound = {"K", "U1", "U3"}
    assert_solves(elimination(system, state, [j for j in severable(system) if j not in bound]), state)


def test_user_rows_are_refused_in_words():
    m = loop_with("revolute")
    m.add_constraint("mine", ld.constraints.UserConstraint(function=lambda t, q: q[:1], rows=("mine",)))
    assert "user constraints" in ld.Graph().supports(m.compile())


@pytest.mark.parametrize("hinges", [2, 3])
@pytest.mark.parametrize("formulation", ["graph", "auto"])
def test_a_door_on_hinges_in_line_turns_as_on_one(hinges, formulation):
    """All rows are redundant: what is rounding in them cannot be told by comparing them."""
    doors = {}
    for count in (1, hinges):
        m = ld.Mechanism("door", gravity=(1.0, -2.0, -9.81))
        m.add_body("door", ld.Inertia(20.0, (0.45, 0.1, 1.0), np.diag([7.0, 8.0, 1.5])))
        for k in range(count):
            x = 0.7 * k
            m.add_joint(f"h{k}", ld.Revolute(axis=(0.1, 0.2, 1.0)), m.ground, "door", at=(0.1 * x, 0.2 * x, x))
        doors[count] = m.compile(cuts=[f"h{k}" for k in range(1, count)])
    one, several = doors[1], doors[hinges]
    assert f"0 rows of multipliers kept of {5 * (hinges - 1)}" in ld.Graph().plan(several)
    q, v = np.array([0.3]), np.array([1.0])
    alone = ld.tree.open_tree_forward_dynamics(one, ld.State(0.0, q, v))
    np.testing.assert_allclose(ld.accelerations(several, ld.State(0.0, q, v), formulation), alone, rtol=1e-13)


# --------------------------------------------------------------------------------------------- the plan


def test_plan_explains_itself():
    system = ld.library.tower(3).compile()
    text = str(plan_elimination(system, bodies_of(system, ["L2"])))
    lines = text.splitlines()
    assert lines[0].startswith("graph: 9 bodies in 3 trees, 15 speeds; 13 rows of multipliers kept of 13")
    assert lines[1] == f"cut: {', '.join(system.topology.cuts)}; severed besides: L2"
    assert lines[2].startswith("columns: at most ")
    for name in (*system.topology.cuts, "L2"):
        assert name in lines[3]
    assert "entries in the factor" in lines[3]
    assert "operations" in lines[4]
    assert "per body" in lines[4]


def test_plan_of_the_formulation_counts_the_rows_it_keeps():
    system = ld.library.turned(ld.library.bennett()).compile()  # three of the five rows are redundant
    assert "2 rows of multipliers kept of 5" in ld.Graph().plan(system)
    tree = ld.library.pendulum().compile()
    assert "0 rows of multipliers kept of 0" in ld.Graph().plan(tree)
    assert "cut: none; severed besides: none" in ld.Graph().plan(tree)


def test_long_towers_are_severed_and_loops_on_the_ground_are_not():
    """Columns of a tower would travel all the way; those of a star ladder meet at the ground."""
    for L in (20, 40):
        tower, star = (make(L).compile() for make in (ld.library.tower, ld.library.star_ladder))
        plans = plan_elimination(tower), plan_elimination(star)
        assert plans[0].severed
        assert not plans[1].severed
    # per body the work does not grow with the length
    per_body = [plan_elimination(ld.library.tower(L).compile()).flops / (3 * L) for L in (20, 40)]
    assert per_body[1] < 1.05 * per_body[0]


def test_columns_on_their_way_need_no_more_room_in_a_longer_tower():
    header = {}
    for L in (20, 40, 80):
        plan = plan_elimination(ld.library.tower(L).compile())
        header[L] = plan.ints[plan.ints[rec.H_SOLVER] + layout.P_SLOTS]
        carried = sum(len(plan.forest.nodes[k].rows) for open_ in plan.forest.open for k in open_)
        assert header[L] < 0.1 * carried
    assert header[20] == header[40] == header[80]


# ------------------------------------------------------------------------------------------------ waves


def plan_arrays(plan: EliminationPlan) -> layout.PlanArrays:
    """Tables of a plan, by name."""
    return opened(layout.open_plan, plan.ints)


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("name", SEVERAL)
def test_results_do_not_depend_on_the_size_of_waves(name, size, monkeypatch):
    """Wherever a wave ends, at a body, between the two of a cut joint, inside of a tree of the forest."""
    monkeypatch.setattr(loopdyn.loops.elimination.plan, "WAVE", size)
    system, state = closed(SEVERAL[name])
    tau = np.random.default_rng(2).normal(size=system.nv)
    for severed in ([], severable(system)[::2], severable(system)):
        e = elimination(system, state, severed)
        waves = len(plan_arrays(e.plan).wave) - 1
        assert waves == (1 if len(system.model.force) else -(-system.nb // size))
        assert_solves(e, state)
        assert_solves(e, state, tau)


@pytest.mark.parametrize("name", SEVERAL)
def test_a_wave_has_all_that_it_needs(name, monkeypatch):
    """Parents placed before children, rows of a cut after both of its bodies, a tree eliminated after all its cuts."""
    monkeypatch.setattr(loopdyn.loops.elimination.plan, "WAVE", 2)
    system = SEVERAL[name].compile()
    plan = plan_elimination(system, bodies_of(system, severable(system)[::2]))
    tables, model = plan_arrays(plan), opened(rec.open_model, plan.ints, plan.floats)
    placed, filled, gone = set(range(system.n_bases)), set(), set()
    touching = {i: {n for n, cut in enumerate(model.cut) if i in cut[:2]} for i in range(len(model.tree))}
    for begin, end in pairwise(tables.wave.tolist()):
        for i in tables.sequence[begin[layout.W_BODY] : end[layout.W_BODY]].tolist():
            assert model.tree[i, rec.PARENT] in placed
            placed.add(i)
        for n in tables.cut_order[begin[layout.W_CUT] : end[layout.W_CUT]].tolist():
            assert set(model.cut[n, :2].tolist()) <= placed
            filled.add(n)
        for i in tables.order[begin[layout.W_ORDER] : end[layout.W_ORDER]].tolist():
            assert i in placed
            assert touching[i] <= filled
            whole = {c for c in range(len(model.tree)) if model.tree[c, rec.PARENT] == i} - set(plan.forest.severed)
            assert whole <= gone
            gone.add(i)
    assert len(placed) == len(model.tree)
    assert len(gone) == system.nb
    assert len(filled) == len(model.cut)


def test_bodies_that_are_joined_are_placed_close_to_each_other():
    """Rails of a tower hang apart from each other in the spanning tree, and are walked side by side.

    A stage is three bodies; each is joined with its own stage and the next.
    """
    system = ld.library.tower(40).compile()
    plan = plan_elimination(system)
    place = {i: x for x, i in enumerate(plan.forest.sequence)}
    ends = ((j.parent, j.child) for j in system.joints.values())
    assert max(abs(place[a] - place[b]) for a, b in ends if min(a, b) >= system.n_bases) <= 6


# ------------------------------------------------------------------------------------------- projection


def disturbed(system: ld.System, state: ld.State, size: float) -> ld.State:
    rng = np.random.default_rng(8)
    q = ld.tree.increment(system, state.q, size * system.speed_units * rng.normal(size=system.nv))
    return ld.State(state.t, q, state.v + size * system.speed_units * rng.normal(size=system.nv))


def gear(kind: str = "spherical") -> ld.Mechanism:
    m = loop_with(kind)
    m.add_constraint("k", ld.constraints.Coupler(terms={"U1.1": 1.0, "U3.2": -0.4}))
    m.add_driver("d", "U0.1", "0.2*sin(2*t)")
    return moving(m)


PROJECTED = {
    "tower": (TOWER, None),
    "tower, severed": (TOWER, ["L2", "R3"]),
    "ladder, redundant, on a moving base": (LADDER, None),
    "ladder, severed": (LADDER, ["A1"]),
    "stewart, balls": (ld.library.turned(ld.library.stewart_6ups()), None),
    "floating": (SEVERAL["floating"], None),
    "coupler, driver, ball": (gear(), None),
    "coupler, driver, ball, severed": (gear(), ["K"]),
    "coupler, driver, slide, severed": (gear("cylindrical"), ["K"]),
    "coupler, driver, plane, severed": (gear("planar"), ["K"]),
    "bricard": (ld.library.turned(ld.library.bricard()), None),
}


@pytest.mark.parametrize("name", PROJECTED)
def test_linear_correction_is_the_nearest_closed_state_up_to_second_order(name):
    """One correction from a distance d: what is missing and the difference to Newton's method are of order d^2."""
    m, severed = PROJECTED[name]
    system, state = closed(m)
    if severed is not None:
        severed = [j for j in severed if j in severable(system)]
        assert severed
    e = elimination(system, state, severed)
    count, units = e.count, system.speed_units
    for size in (1e-4, 1e-5):
        start = disturbed(system, state, size)
        found = e.project(start)
        nearest = project(system, start, rank=count).state
        now, was = ld.terms(system, found), ld.terms(system, start)
        allowed = 100 * size**2 * (1 + np.abs(state.v / units).max())  # curvatures and inverse lengths of order ten
        for left, before in ((now.phi, was.phi), (now.J @ found.v + now.phi_t, was.J @ start.v + was.phi_t)):
            assert np.abs(before / system.row_units).max() > 0.01 * size
            assert np.abs(left / system.row_units).max() < allowed
        assert np.abs(found.q - nearest.q).max() < allowed * max(1.0, system.size)
        assert np.abs((found.v - nearest.v) / units).max() < allowed


@pytest.mark.parametrize("name", PROJECTED)
def test_repeated_corrections_close_to_rounding(name):
    m, severed = PROJECTED[name]
    system, state = closed(m)
    if severed is not None:
        severed = [j for j in severed if j in severable(system)]
    e = elimination(system, state, severed)
    start = disturbed(system, state, 1e-3)
    q, v = start.q.copy(), start.v.copy()
    found = e.project(start, steps=10)
    np.testing.assert_array_equal(start.q, q)  # inputs are left alone
    np.testing.assert_array_equal(start.v, v)
    now = ld.terms(system, found)
    assert np.abs(now.phi / system.row_units).max() < 1e-13 * (1 + np.abs(found.q).max())
    assert np.abs((now.J @ found.v + now.phi_t) / system.row_units).max() < 1e-11
    for j in system.joints.values():
        if j.in_tree and "w" in j.spec.coordinates:
            k = j.q0 + j.spec.coordinates.index("w")
            assert np.linalg.norm(found.q[k : k + 4]) == pytest.approx(1.0, abs=1e-14)


# ------------------------------------------------------------------------------------------ rows chosen

REDUNDANT = {
    "four_bar": ld.library.four_bar(),
    "n_four_bar": ld.library.n_four_bar(3),
    "bricard": ld.library.bricard(),
    "bennett": ld.library.bennett(),
    "ladder": ld.library.ladder(3),
    "nested": nested(2),
}


@pytest.mark.parametrize("drift", [1e-8, 1e-6])
@pytest.mark.parametrize("name", REDUNDANT)
def test_rows_chosen_off_the_manifold_are_as_many_as_were_decided(name, drift):
    """Dependent rows are independent there by the square of the drift."""
    system, state = closed(ld.library.turned(REDUNDANT[name]))
    rank = decide(system, state)
    assert rank.redundant > 0
    e = Elimination(system, state, rank.count)
    off = disturbed(system, state, drift)
    e.choose(off, rank.count)
    assert e.count == rank.count
    assert e.plan.pattern.rows == rank.count
    # the rows kept are well independent: the accelerations move with the state
    a, expected = solved(e, off)[0], ld.accelerations(system, state, "oracle")
    assert np.abs(a - expected).max() < 1e4 * drift * (1 + np.abs(expected).max())


def test_more_dependent_rows_than_were_decided_are_an_error_in_words():
    system, state = closed(ld.library.turned(ld.library.four_bar()))
    with pytest.raises(ld.errors.SingularityError, match="3 rows depend on others, 2 were expected"):
        Elimination(system, state, 3)


# ---------------------------------------------------------------------------------- what was left behind


POISONED = {
    **{name: ld.library.turned(build()) for name, build in ld.library.ALL.items()},
    "random, forces": ld.library.random_mechanism(3, bodies=8, loops=3, redundant=1, forces=True),
    **{name: related(what=name) for name in RELATIONS},
    "moving base": LADDER,
    "loads": moving(add_loads(loop_with("planar"), "K")),
}


@pytest.mark.parametrize("name", gallery_slow(POISONED))
def test_nothing_left_in_the_work_array_is_used(name):
    m = POISONED[name]
    system, state = closed(m)
    bound = {label.partition(".")[0] for c in m.constraints.values() for label in getattr(c, "joints", tuple)()}
    bound |= {d.joint.partition(".")[0] for d in m.drivers.values()}
    plans: list[list[str] | None] = [None]
    massive = all(
        np.linalg.eigvalsh(_inertia(system, b)).min() > 1e-6 for b in range(system.n_bases, len(system.bodies))
    )
    if massive:
        plans.append([j for j in severable(system) if j not in bound])
    for severed in plans:
        e = elimination(system, state, severed)
        clean = solved(e, state)
        report = e.views.diagnostics[: layout.WEAKEST_PIVOT].copy()  # the rest is given
        near = disturbed(system, state, 1e-4)
        corrected = e.project(near)
        poison(e)
        dirty = solved(e, state)
        for x, y in zip(clean, dirty, strict=True):
            np.testing.assert_array_equal(x, y)
        np.testing.assert_array_equal(e.views.diagnostics[: layout.WEAKEST_PIVOT], report)
        poison(e)
        again = e.project(near)
        np.testing.assert_array_equal(again.q, corrected.q)
        np.testing.assert_array_equal(again.v, corrected.v)


def _inertia(system: ld.System, body: int) -> np.ndarray:
    from loopdyn.engine.records import INERTIA

    xx, yy, zz, xy, xz, yz = system.model.body[body, INERTIA : INERTIA + 6]
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
