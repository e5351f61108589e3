"""Matrices of the graph in Mufti (1983), "Equations of Motion for Rigid Multibody Systems", NRC DME DM-3.

Fig. 3a: a tree of six bodies, b1 -h1- b2, b1 -h2- b3, and b4, b5, b6 on b2 by h3, h4, h5. Fig. 6: the same with cut
hinges 1-5 and 4-6. The figures are not in our copy; eq. (1) gives the first, the text of section 4 the second.
"""

from __future__ import annotations

from itertools import pairwise

import networkx
import numpy as np
import pytest

import loopdyn as ld
from loopdyn.system.graph import Edge, Forest
from loopdyn.system.spanning_tree import root_forest
from loopdyn.system.topology import Topology

pytestmark = pytest.mark.jit_off

ARCS = {"h1": (1, 2), "h2": (1, 3), "h3": (2, 4), "h4": (2, 5), "h5": (2, 6)}  # j+, j-
CUT = {"h6": (1, 5), "h7": (4, 6)}

C_A = np.array(
    [
        [1, 1, 0, 0, 0],
        [-1, 0, 1, 1, 1],
        [0, -1, 0, 0, 0],
        [0, 0, -1, 0, 0],
        [0, 0, 0, -1, 0],
        [0, 0, 0, 0, -1],
    ]
)  # eq. (1)
T_A = np.array(
    [
        [-1, -1, -1, -1, -1, -1],
        [0, -1, 0, -1, -1, -1],
        [0, 0, -1, 0, 0, 0],
        [0, 0, 0, -1, 0, 0],
        [0, 0, 0, 0, -1, 0],
        [0, 0, 0, 0, 0, -1],
    ]
)  # eq. (25)


def figure(joints: dict[str, tuple[int, int]], root: str | None = None) -> ld.Mechanism:
    """Six bodies with ball joints; `root` hangs on the ground by a free joint h0, Mufti's fictitious arc."""
    m = ld.Mechanism("figure")
    for k in range(1, 7):
        m.add_body(f"b{k}", ld.Inertia.sphere(mass=float(k), radius=0.1, at=(k, 0, 0)))
    if root is not None:
        m.add_joint("h0", ld.Free(), m.ground, root, at=(0, 0, 0))
    for name, (plus, minus) in joints.items():
        m.add_joint(name, ld.Spherical(), f"b{plus}", f"b{minus}", at=(plus + minus, 1, 0))
    return m


def floating_at_b1(joints: dict[str, tuple[int, int]], cut: dict[str, tuple[int, int]]) -> Topology:
    """The floating system with b1 as its root, as in the paper: no hinge to an external body."""
    names = ("ground", *(f"b{k}" for k in range(1, 7)))
    edges = tuple(Edge(name, *ends, "spherical", 3) for name, ends in (joints | cut).items())
    free = [-2] * 7
    free[1] = -1
    forest: Forest = root_forest(7, edges, 1, list(range(len(joints))), free)
    return Topology("figure", names, edges, 1, forest)


def in_paper_order(topology: Topology):
    """Incidence with bodies b1 ... b6: the outermost may be numbered in any order, ours is brought to the paper's."""
    found = topology.incidence()
    assert set(found.bodies[2:]) == {"b3", "b4", "b5", "b6"}
    assert found.bodies[:2] == ("b1", "b2")
    order = np.argsort(found.bodies)
    return found, order


def test_mufti1983_eq1_incidence_matrix_of_the_tree_of_figure_3a():
    found, order = in_paper_order(floating_at_b1(ARCS, {}))
    assert [found.joints[k] for k in order] == ["free:b1", "h1", "h2", "h3", "h4", "h5"]
    assert np.array_equal(found.S[np.ix_(order, order)][:, 1:], C_A)
    assert found.C.shape == (6, 5)
    assert np.linalg.matrix_rank(found.C) == 5  # "of rank n-1"
    assert np.array_equal(np.sort(found.C, axis=0)[[0, -1]], [[-1] * 5, [1] * 5])  # one +1 and one -1 in each column
    assert np.array_equal(np.abs(found.C).sum(axis=0), [2] * 5)


def test_mufti1983_section2_regular_labelling_makes_C_upper_triangular_without_its_first_row():
    for topology in (
        floating_at_b1(ARCS, {}),
        figure(ARCS).compile().topology,
        ld.library.random_mechanism(3, bodies=25, loops=0, floating=True).compile().topology,
    ):
        C = topology.incidence().C
        n = len(C)
        below = C[1:]
        assert C.shape == (n, n - 1)
        assert np.array_equal(below, np.triu(below))
        assert np.array_equal(np.diag(below), [-1] * (n - 1))


def test_mufti1983_section2_outermost_bodies_have_the_highest_numbers_round_by_round():
    topology = ld.library.random_mechanism(8, bodies=30, loops=0, floating=True).compile().topology
    labels = list(topology.regular_labelling())
    graph = networkx.DiGraph()
    for body in labels:
        graph.add_node(body)
    f, names = topology.forest, topology.names
    graph.add_edges_from((names[f.parent[b]], names[b]) for b in f.order if f.parent[b] >= 1)
    while labels:
        leaves = {b for b in graph if graph.out_degree(b) == 0}
        assert set(labels[-len(leaves) :]) == leaves
        labels = labels[: -len(leaves)]
        graph.remove_nodes_from(leaves)


def test_mufti1983_eq22_to_eq25_path_matrix_is_the_inverse_of_S():
    found, order = in_paper_order(floating_at_b1(ARCS, {}))
    S, T = found.S[np.ix_(order, order)], found.T[np.ix_(order, order)]
    n = 6
    e1, one = np.eye(n, dtype=int)[:, :1], np.ones(n, dtype=int)
    assert np.array_equal(S, np.hstack([-e1, C_A]))  # eq. (22)
    assert np.array_equal(T, T_A)  # eq. (25)
    assert np.array_equal(T @ S, np.eye(n))
    assert np.array_equal(S @ T, np.eye(n))
    T1, T2 = T[:1], T[1:]  # eq. (23) and the identities below it; T1 is the row -1^T (see our errata)
    assert np.array_equal(T1 @ C_A, np.zeros((1, n - 1)))
    assert np.array_equal(T2 @ C_A, np.eye(n - 1))
    assert np.array_equal(T1 @ e1, [[-1]])
    assert np.array_equal(T2 @ e1, np.zeros((n - 1, 1)))
    assert np.array_equal(T1[0], -one)
    for j, (plus, minus) in enumerate(ARCS.values()):  # eq. (24): t_(i, j-) = t_(i, j+) - delta_ij
        assert np.array_equal(T2[:, minus - 1], T2[:, plus - 1] - np.eye(n - 1, dtype=int)[j])


def test_mufti1983_path_matrix_tells_which_arcs_lead_to_a_body():
    """t_kl = -1 if arc h_k is on the path between b_0 and b_l, for a random tree; the path is found by networkx."""
    topology = ld.library.random_mechanism(11, bodies=20, loops=0, floating=True).compile().topology
    found = topology.incidence()
    graph = networkx.Graph()
    for e in topology.edges:
        graph.add_edge(topology.names[e.parent], topology.names[e.child], name=e.name)
    root = topology.free_roots[0]
    for column, body in enumerate(found.bodies):
        way = networkx.shortest_path(graph, root, body)
        arcs = {f"free:{root}"} | {graph.edges[pair]["name"] for pair in pairwise(way)}
        for row, joint in enumerate(found.joints):
            assert found.T[row, column] == (-1 if joint in arcs else 0)
    assert np.array_equal(found.T @ found.S, np.eye(20))


def test_mufti1983_eq62_incidence_of_the_closed_system_of_figure_6():
    found, order = in_paper_order(floating_at_b1(ARCS, CUT))
    assert found.cut == ("h6", "h7")
    C_star = np.array([[1, 0], [0, 0], [0, 0], [0, 1], [-1, 0], [0, -1]])  # arcs 1-5 and 4-6, in the order b1 ... b6
    assert np.array_equal(found.C_star[order], C_star)
    assert np.array_equal(found.C_c, np.hstack([found.C, found.C_star]))
    assert (found.C_c.shape, found.C.shape, found.C_star.shape) == ((6, 7), (6, 5), (6, 2))
    assert np.linalg.matrix_rank(found.C_c) == 5 == np.linalg.matrix_rank(found.C)  # "n-1, the same as that of C"


def test_mufti1983_figure_6_is_compiled_with_the_hinges_of_the_text_cut():
    m = figure(ARCS | CUT, root="b1")
    system = m.compile(cuts=["h6", "h7"])
    assert system.topology.cuts == ("h6", "h7")
    assert len(system.topology.loops) == 2
    found = system.topology.incidence()
    order = np.argsort(found.bodies)
    assert np.array_equal(found.S[np.ix_(order, order)], np.hstack([-np.eye(6, dtype=int)[:, :1], C_A]))
    with pytest.raises(ld.errors.ModelError, match="still form a loop"):
        m.compile(cuts=["h6"])


def test_mufti1983_remark3_on_an_external_body_C_becomes_S():
    """With hinge 0 to an external body the incidence is square and nonsingular, and T = S^-1 has all hinges."""
    m = figure(ARCS)
    m.add_joint("h0", ld.Spherical(), m.ground, "b1", at=(0, 0, 0))
    found = m.compile().topology.incidence()
    order = np.argsort(found.bodies)
    assert [found.joints[k] for k in order] == ["h0", "h1", "h2", "h3", "h4", "h5"]
    assert np.array_equal(found.C, found.S)
    assert np.array_equal(found.S[np.ix_(order, order)], np.hstack([-np.eye(6, dtype=int)[:, :1], C_A]))
    assert np.array_equal(found.T[np.ix_(order, order)], T_A)
    masses = np.diag([float(name[1]) for name in found.bodies])
    A = found.T @ masses @ found.T.T  # "A = T M T^T" is the inverse of S^T M^-1 S
    np.testing.assert_allclose(A @ (found.S.T @ np.linalg.inv(masses) @ found.S), np.eye(6), atol=1e-12)


def test_mufti1983_eq26_and_eq27_barycentric_matrices_of_the_floating_tree():
    """B = T2 mu and A = T2 M mu^T T2^T = B M B^T are A = (C^T M^-1 C)^-1 and B = A C^T M^-1, of eqs. (18), (19)."""
    found, _ = in_paper_order(floating_at_b1(ARCS, {}))
    M = np.diag([float(name[1]) for name in found.bodies])
    total, one = np.trace(M), np.ones((6, 1))
    C, T2 = found.C, found.T[1:]
    mu = np.eye(6) - M @ one @ one.T / total
    A = np.linalg.inv(C.T @ np.linalg.inv(M) @ C)
    B = A @ C.T @ np.linalg.inv(M)
    np.testing.assert_allclose(T2 @ mu, B, atol=1e-12)
    np.testing.assert_allclose(T2 @ M @ mu.T @ T2.T, A, atol=1e-12)
    np.testing.assert_allclose(B @ M @ B.T, A, atol=1e-12)
